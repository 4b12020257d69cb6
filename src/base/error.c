/* SPDX-License-Identifier: MIT */
#include "pm/base.h"

#include <stdarg.h>
#include <string.h>

int pm_error_set(struct pm_error *err, int code, const char *format, ...)
{
	va_list args;

	if (!err)
		return code;
	err->code = code;
	err->source[0] = '\0';
	err->offset = -1;
	err->fix[0] = '\0';
	va_start(args, format);
	vsnprintf(err->text, sizeof(err->text), format, args);
	va_end(args);
	return code;
}

void pm_error_where(struct pm_error *err, const char *source, int64_t offset)
{
	if (!err)
		return;
	snprintf(err->source, sizeof(err->source), "%s", source);
	err->offset = offset;
}

void pm_error_fix(struct pm_error *err, const char *format, ...)
{
	va_list args;

	if (!err)
		return;
	va_start(args, format);
	vsnprintf(err->fix, sizeof(err->fix), format, args);
	va_end(args);
}

void pm_error_print(const struct pm_error *err, const char *program, FILE *to)
{
	struct pm_str line = { 0 };

	pm_str_printf(&line, "%s: ", program);
	if (err->source[0]) {
		pm_str_printable(&line, err->source, strlen(err->source));
		if (err->offset >= 0)
			pm_str_printf(&line, ":%lld", (long long)err->offset);
		pm_str_puts(&line, ": ");
	}
	pm_str_printable(&line, err->text, strlen(err->text));
	pm_str_putc(&line, '\n');
	if (err->fix[0]) {
		pm_str_printf(&line, "%s: try: ", program);
		pm_str_printable(&line, err->fix, strlen(err->fix));
		pm_str_putc(&line, '\n');
	}
	/* With no memory left the plain text is better than nothing. */
	fputs(line.failed ? err->text : line.data, to);
	pm_str_release(&line);
}
