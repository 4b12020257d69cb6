/* SPDX-License-Identifier: MIT */
#include "pm/base.h"

#include <stdarg.h>
#include <string.h>

int pm_error_set(struct pm_error *err, int code, const char *format, ...)
{
	char text[PM_ERROR_TEXT_MAX];
	va_list args;

	if (!err)
		return code;
	/* The arguments may include the text of @err itself, so format into a copy
	 * first. */
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	*err = (struct pm_error){ .code = code, .offset = -1 };
	memcpy(err->text, text, sizeof(text));
	return code;
}

int pm_error_no_memory(struct pm_error *err)
{
	return pm_error_set(err, -ENOMEM, "out of memory");
}

void pm_error_where(struct pm_error *err, const char *source, int64_t offset)
{
	size_t len;

	if (!err)
		return;
	len = strnlen(source, sizeof(err->source) - 1);
	memmove(err->source, source, len);
	err->source[len] = '\0';
	err->offset = offset;
}

void pm_error_fix(struct pm_error *err, const char *format, ...)
{
	char fix[PM_ERROR_FIX_MAX];
	va_list args;

	if (!err)
		return;
	va_start(args, format);
	vsnprintf(fix, sizeof(fix), format, args);
	va_end(args);
	memcpy(err->fix, fix, sizeof(fix));
}

const char *pm_error_open_text(int code)
{
	if (code == -ENOTSUP)
		return "this is no regular file";
	return strerror(-code);
}

const char *pm_error_elf_text(int code)
{
	if (code == -ENOEXEC)
		return "this is no ELF file";
	return strerror(-code);
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
	/* If out of memory, the unescaped text is better than nothing. */
	fputs(line.failed ? err->text : line.data, to);
	pm_str_release(&line);
}
