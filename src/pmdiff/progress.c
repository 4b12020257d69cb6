/* SPDX-License-Identifier: MIT */
#include "progress.h"

#include <stdarg.h>

enum {
	NS_PER_SECOND = 1000000000,
	SECONDS_PER_MINUTE = 60,
	MARGIN = 1, /* writing to the last column makes some terminals wrap */
};

void pmdiff_progress_init(struct pmdiff_progress *progress,
			  const struct pmdiff_options *options)
{
	*progress = (struct pmdiff_progress){
		.shown = !options->quiet && isatty(STDERR_FILENO),
	};
}

void pmdiff_progress_begin(struct pmdiff_progress *progress, uint64_t runs)
{
	progress->runs = runs;
	progress->done = 0;
	progress->begin_ns = pm_now_ns();
}

void pmdiff_progress_step(struct pmdiff_progress *progress)
{
	progress->done++;
}

/* Appends an estimate, which is based on the runs so far and therefore needs at least
 * one. */
static void append_time_left(struct pm_str *line, const struct pmdiff_progress *progress)
{
	uint64_t left;

	if (progress->done == 0 || progress->done >= progress->runs)
		return;
	left = (pm_now_ns() - progress->begin_ns) / progress->done *
	       (progress->runs - progress->done) / NS_PER_SECOND;
	pm_str_puts(line, ", about ");
	if (left >= 2 * SECONDS_PER_MINUTE)
		pm_str_printf(line, "%llu min",
			      (unsigned long long)left / SECONDS_PER_MINUTE);
	else
		pm_str_printf(line, "%llu s", (unsigned long long)left + 1);
	pm_str_puts(line, " left");
}

void pmdiff_progress_show(const struct pmdiff_progress *progress, const char *format, ...)
{
	PM_CLEANUP(pm_str_release) struct pm_str line = { 0 }, text = { 0 };
	char what[PM_ERROR_TEXT_MAX];
	size_t len, width = pm_sink_width(STDERR_FILENO) - MARGIN;
	va_list args;

	if (!progress->shown)
		return;
	va_start(args, format);
	len = (size_t)vsnprintf(what, sizeof(what), format, args);
	va_end(args);
	pm_str_printable(&text, what, PM_MIN(len, sizeof(what) - 1));
	append_time_left(&text, progress);
	if (text.failed)
		return;
	/* Do not cut within a character. */
	len = 0;
	for (size_t columns = 0; len < text.len && columns < width; columns++) {
		size_t one = pm_utf8_char(text.data + len, text.len - len);

		len += PM_MAX(one, 1);
	}
	pm_str_puts(&line, "\r\033[K");
	pm_str_append(&line, text.data, len);
	if (!line.failed)
		fwrite(line.data, 1, line.len, stderr);
}

void pmdiff_progress_clear(const struct pmdiff_progress *progress)
{
	if (progress->shown)
		fputs("\r\033[K", stderr);
}
