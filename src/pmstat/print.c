/* SPDX-License-Identifier: MIT */
#include "print.h"

#include <errno.h>
#include <langinfo.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>

#include "pm/stat-output.h"

enum {
	FILE_MODE = 0600, /* as for recordings: it reveals commands and arguments */
};

int pmstat_print_open(struct pmstat_print *print, const struct pmstat_options *options,
		      struct pm_error *err)
{
	int ret = 0;

	if (options->output)
		ret = pm_sink_open(&print->sink, options->output, FILE_MODE, err);
	if (ret < 0)
		return ret;
	print->options = options;
	if (options->output)
		print->to = print->sink.file;
	else
		print->to = stderr;
	return 0;
}

static struct pm_stat_report report_of(const struct pmstat_print *print,
				       const struct pm_stat *stat)
{
	const struct pmstat_options *options = print->options;
	int fd = -1;

	if (!print->sink.path)
		fd = fileno(print->to);
	return (struct pm_stat_report){
		.stat = stat,
		.intervals_told =
			options->interval_ms > 0 && options->form != PMSTAT_JSON,
		.quiet = options->quiet,
		.verbose = options->verbose,
		.timed = options->timeout_ns > 0 && !print->interrupted,
		.color = pm_color_is_wanted(options->color, fd),
		.ascii = strcmp(nl_langinfo(CODESET), "UTF-8") != 0,
		.width = pm_sink_width(fd),
	};
}

/* Prints an interval at once, because the next one may be far off. A full disk is
 * reported at the end. */
void pmstat_print_interval(void *user, const struct pm_stat *stat,
			   const struct pm_stat_run *run)
{
	struct pmstat_print *print = user;
	struct pm_stat_report report = report_of(print, stat);

	if (print->options->form == PMSTAT_TEXT)
		pm_output_stat_interval_text(&report, run, !print->begun, print->to,
					     NULL);
	else if (print->options->form == PMSTAT_CSV)
		pm_output_stat_interval_csv(&report, run, !print->begun,
					    print->options->separator, print->to, NULL);
	print->begun = true;
	if (fflush(print->to) == 0 || errno != EPIPE || print->reader_gone)
		return;
	/* The reader wants no more intervals. SIGPIPE, which means the same, is ignored
	 * here. */
	print->reader_gone = true;
	kill(getpid(), SIGTERM);
}

/* Prints the warnings, unless stderr shows them as part of the result: in the text, or in
 * JSON without -o. CSV has no place for them. */
static void print_result_warnings(const struct pmstat_print *print,
				  const struct pm_stat *stat)
{
	bool told = print->options->form == PMSTAT_TEXT ||
		    (print->options->form == PMSTAT_JSON && !print->options->output);

	for (size_t i = 0; i < stat->warnings.len && !told; i++)
		pmstat_say(print->options, "warning: %s", stat->warnings.data[i]);
}

/* Checks that results without -o were written. stderr stays open, and is unbuffered. */
static int check_stderr(struct pm_error *err)
{
	if (fflush(stderr) == 0 && !ferror(stderr))
		return 0;
	pm_error_set(err, -EIO, "cannot write all of the result");
	pm_error_where(err, "standard error", -1);
	return -EIO;
}

static int write_stat_json(const struct pmstat_print *print, const struct pm_stat *stat,
			   struct pm_error *err)
{
	const char *path = print->sink.path;
	int ret;

	fflush(print->to);
	ret = pm_stat_write(stat, fileno(print->to), err);
	if (!path && print->options->output)
		path = "standard output";
	else if (!path)
		path = "standard error";
	if (ret < 0)
		pm_error_where(err, path, -1);
	return ret;
}

int pmstat_print_result(struct pmstat_print *print, const struct pm_stat *stat,
			struct pm_error *err)
{
	struct pm_stat_report report = report_of(print, stat);
	int ret = -EINVAL;

	print_result_warnings(print, stat);
	switch (print->options->form) {
	case PMSTAT_TEXT:
		ret = pm_output_stat_text(&report, print->to, err);
		break;
	case PMSTAT_CSV:
		ret = pm_output_stat_csv(&report, print->options->separator, print->to,
					 err);
		break;
	case PMSTAT_JSON:
		ret = write_stat_json(print, stat, err);
		break;
	}
	if (ret < 0)
		return ret;
	if (print->sink.file)
		return pm_sink_close(&print->sink, err);
	return check_stderr(err);
}

void pmstat_print_release(struct pmstat_print *print)
{
	pm_sink_release(&print->sink);
}

void pmstat_say(const struct pmstat_options *options, const char *format, ...)
{
	struct pm_error text = { .offset = -1 };
	va_list args;

	if (options->quiet)
		return;
	va_start(args, format);
	vsnprintf(text.text, sizeof(text.text), format, args);
	va_end(args);
	pm_error_print(&text, "pmstat", stderr);
}
