/* SPDX-License-Identifier: MIT */
#include "browse.h"
#include "options.h"
#include "follow.h"
#include "resymbolize.h"

#include <langinfo.h>
#include <locale.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>
#include <sys/stat.h>

enum {
	STATUS_DONE = 0,
	/* The file cannot be read or is invalid, or the output cannot be written. */
	STATUS_FILE = 1,
	STATUS_USAGE = 2,
};

static int print_error_and_fail(const struct pm_error *err, int status)
{
	pm_error_print(err, "pmreport", stderr);
	return status;
}

static void PM_PRINTF(1, 2) print_report_warning(const char *format, ...)
{
	struct pm_error text = { .offset = -1 };
	va_list args;

	va_start(args, format);
	vsnprintf(text.text, sizeof(text.text), format, args);
	va_end(args);
	pm_error_print(&text, "pmreport", stderr);
}

/* ---- the screen ------------------------------------------------------------------------- */

static void set_terminal_options(struct pm_report_options *options)
{
	struct pm_report *report = &options->report;
	int fd = options->output ? -1 : STDOUT_FILENO;

	report->color = pm_color_is_wanted(options->color, fd);
	report->ascii = strcmp(nl_langinfo(CODESET), "UTF-8") != 0;
	if (!options->width_set)
		report->width = pm_sink_width(fd);
}

/* ---- reading and writing ------------------------------------------------------------------ */

static void close_report_reader(struct pm_file_reader **reader)
{
	pm_file_reader_free(*reader);
}

static int load_recording(struct pm_profile **out, const char *input,
			  const struct pm_profile_options *options, struct pm_error *err)
{
	PM_CLEANUP(close_report_reader) struct pm_file_reader *reader = NULL;
	int ret = pm_file_reader_open(&reader, input, err);

	if (ret == 0)
		ret = pm_profile_load(out, reader, options, err);
	if (ret == -ENOENT) {
		PM_AUTO_FREE char *partial = NULL;

		/* The recorder was killed early, or has not written a sample yet. */
		if (pm_file_partial_find(input, &partial) != PM_FILE_PARTIAL_NONE)
			pm_error_fix(err, "pmreport %s", partial);
		else if (strcmp(input, "samples.json") == 0)
			pm_error_fix(err, "pmrec PROGRAM, which writes it");
	}
	return ret;
}

/* Loads the recording to compare with. Only its sums are needed. */
static int load_base(struct pm_profile **out, const struct pm_report_options *options,
		     struct pm_error *err)
{
	struct pm_profile_options base = options->profile;

	if (!options->diff)
		return 0;
	base.keep_samples = base.latency || base.parallelism;
	return load_recording(out, options->diff, &base, err);
}

static bool is_same_regular_file(const char *a, const char *b)
{
	struct stat left, right;

	return a && b && strcmp(a, "-") != 0 && strcmp(b, "-") != 0 &&
	       stat(a, &left) == 0 && stat(b, &right) == 0 && S_ISREG(right.st_mode) &&
	       left.st_dev == right.st_dev && left.st_ino == right.st_ino;
}

/* Refuses to overwrite a recording: it cannot be restored, and `-o` and `-i` are easily
 * mixed up. */
static int check_output_file(const struct pm_report_options *options,
			     struct pm_error *err)
{
	if (!is_same_regular_file(options->input, options->output) &&
	    !is_same_regular_file(options->diff, options->output))
		return 0;
	pm_error_set(err, -EINVAL, "the report would overwrite the recording");
	pm_error_where(err, options->output, -1);
	pm_error_fix(err, "-o with another name");
	return -EINVAL;
}

static int check_terminal(const struct pm_report_options *options, struct pm_error *err)
{
	bool standard = !options->output || strcmp(options->output, "-") == 0;

	if (!options->format->binary || !standard || !isatty(STDOUT_FILENO))
		return 0;
	pm_error_set(err, -EINVAL, "%s is not for a terminal: -o %s writes it to a file",
		     options->format->name, options->format->binary);
	return -EINVAL;
}

static int find_report_event(struct pm_report_options *options,
			     const struct pm_profile *profile, struct pm_error *err)
{
	if (options->event) {
		options->report.event =
			pm_profile_find_event(profile, options->event, err);
		if (options->report.event == PM_PROFILE_NONE)
			return -ENOENT;
		return 0;
	}
	/* If the format has room for only one event, mention the others. */
	if (options->format->one_event && profile->events.len > 1)
		print_report_warning("the first of %zu events, %s; --event chooses",
				     profile->events.len, profile->events.data[0].actual);
	return 0;
}

/* Checks that an event samples time, if the options need that. Faults or calls are not a
 * clock. */
static int check_clock(const struct pm_report_options *options,
		       const struct pm_profile *profile, struct pm_error *err)
{
	if ((!options->profile.latency && !options->profile.parallelism) ||
	    profile->clock_event != PM_PROFILE_NONE || profile->info.read_samples == 0)
		return 0;
	pm_error_set(err, -EINVAL,
		     "how many CPUs ran at a time cannot be told: no event of this "
		     "recording is sampled by time");
	pm_error_fix(err, "pmrec -F HZ, which samples a clock or cycles");
	return -EINVAL;
}

static int browse_report(struct pm_report_options *options, struct pm_error *err)
{
	int ret = pm_browse(&options->report, options, err);

	if (ret == -ENOENT || ret == -EINVAL || ret == -ENOTUNIQ)
		return print_error_and_fail(err, STATUS_USAGE);
	if (ret < 0)
		return print_error_and_fail(err, STATUS_FILE);

	if (ret > 0) {
		signal(ret, SIG_DFL);
		raise(ret);
	}
	return STATUS_DONE;
}

/* Reports a newer recording, which may have another name: see pm_file_writer_open(). */
static void report_newer_recording(const char *input)
{
	PM_AUTO_FREE char *partial = NULL;
	enum pm_file_partial found = pm_file_partial_find(input, &partial);
	struct stat reported, newer;

	if (found == PM_FILE_PARTIAL_NONE || stat(input, &reported) < 0 ||
	    stat(partial, &newer) < 0 || newer.st_mtime < reported.st_mtime)
		return;
	if (found == PM_FILE_PARTIAL_GROWING)
		print_report_warning(
			"a newer recording is being made, %s: it has no sample yet",
			partial);
	else
		print_report_warning(
			"the newest recording is %s: it has no samples, or pmrec was killed "
			"before the first",
			partial);
}

static int write_requested_report(struct pm_report_options *options,
				  const struct pm_profile *profile)
{
	PM_CLEANUP(pm_sink_release) struct pm_sink sink = { 0 };
	PM_CLEANUP(pm_str_release) struct pm_str left_out = { 0 };
	struct pm_error err = { .offset = -1 };
	int ret;

	options->report.left_out = &left_out;
	options->report.profile = profile;
	options->report.filter = &options->filter;
	options->report.field = options->field;
	if (check_clock(options, profile, &err) < 0 ||
	    find_report_event(options, profile, &err) < 0)
		return print_error_and_fail(&err, STATUS_USAGE);
	if (options->tui)
		return browse_report(options, &err);
	if (pm_sink_open(&sink, options->output, 0666, &err) < 0)
		return print_error_and_fail(&err, STATUS_FILE);
	ret = options->format->write(options, sink.file, &err);
	if (ret == -ENOMEM)
		return print_error_and_fail(&err, STATUS_FILE);
	if (ret < 0)
		return print_error_and_fail(&err, STATUS_USAGE);
	if (left_out.len > 0 && !left_out.failed)
		print_report_warning("%s", left_out.data);
	if (profile->info.cut)
		print_report_warning(
			"%s is cut short: the recorder was stopped before it could finish, "
			"or records still",
			options->input);
	report_newer_recording(options->input);
	if (options->format->lacks && !options->report.quiet)
		print_report_warning("%s", options->format->lacks);
	if (pm_sink_close(&sink, &err) < 0)
		return print_error_and_fail(&err, STATUS_FILE);
	return STATUS_DONE;
}

/* Prints the help or the version. That can fail, too. */
static int print_help_or_version(const struct pm_report_options *options)
{
	struct pm_sink sink = { .file = stdout };
	struct pm_error err = { .offset = -1 };

	if (options->help)
		pm_options_print_help(&pm_report_option_table, stdout);
	else
		puts("pmreport " PMREPORT_VERSION);
	if (pm_sink_close(&sink, &err) < 0)
		return print_error_and_fail(&err, STATUS_FILE);
	return STATUS_DONE;
}

/* Loads the file in its current state, or follows it, and writes the report. */
static int load_and_report(struct pm_report_options *options,
			   struct pm_resymbolize *resymbolize)
{
	struct pm_error err = { .offset = -1 };
	struct pm_profile_stream *stream = NULL;
	struct pm_profile *loaded = NULL, *base = NULL;
	const struct pm_profile *profile = NULL;
	int status, ret = load_base(&base, options, &err);

	options->report.base = base;
	if (ret == 0 && options->follow) {
		ret = pm_follow(&stream, &profile, options, resymbolize, &err);
		set_terminal_options(options); /* the size may have changed */
	} else if (ret == 0) {
		ret = load_recording(&loaded, options->input, &options->profile, &err);
		profile = loaded;
	}
	if (ret < 0)
		status = print_error_and_fail(&err, STATUS_FILE);
	else
		status = write_requested_report(options, profile);
	if (status == STATUS_DONE)
		pm_resymbolize_tell(resymbolize, profile, options->report.file);
	pm_profile_free(base);
	pm_profile_free(loaded);
	pm_profile_stream_free(stream);
	return status;
}

int main(int argc, char **argv)
{
	struct pm_report_options options;
	struct pm_error err = { .offset = -1 };
	struct pm_resymbolize *resymbolize;
	int status;

	pm_streams_hold();
	setlocale(LC_CTYPE, ""); /* numbers keep the format of the C locale */
	if (pm_report_options_parse(&options, argc, argv, &err) < 0)
		return print_error_and_fail(&err, STATUS_USAGE);
	if (options.help || options.version)
		return print_help_or_version(&options);
	if (check_output_file(&options, &err) < 0 || check_terminal(&options, &err) < 0 ||
	    pm_resymbolize_new(&resymbolize, &options.symbols, &err) < 0)
		return print_error_and_fail(&err, STATUS_USAGE);
	if (pm_browse_check(&options, &err) < 0) {
		pm_resymbolize_free(resymbolize);
		return print_error_and_fail(&err, STATUS_FILE);
	}
	set_terminal_options(&options);
	options.profile.symbolizer = pm_resymbolize_symbolizer(resymbolize);
	status = load_and_report(&options, resymbolize);
	pm_resymbolize_free(resymbolize);
	return status;
}
