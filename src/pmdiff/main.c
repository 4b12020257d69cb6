/* SPDX-License-Identifier: MIT */
#include "ack.h"
#include "bisect.h"
#include "import.h"
#include "judge.h"
#include "print.h"
#include "profile.h"
#include "read.h"
#include "run.h"
#include "trend.h"

#include <locale.h>

/* Prints the help in one write, because errors of any write but the last one would be
 * lost; the buffer therefore has to hold all of it. The write may fail, too. */
static int pmdiff_print_usage(enum pmdiff_action action, struct pm_error *err)
{
	static char buffer[1 << 14];
	struct pm_sink sink = { .file = stdout };

	setvbuf(stdout, buffer, _IOFBF, sizeof(buffer));
	if (action == PMDIFF_HELP)
		pm_options_print_help(&pmdiff_option_table, stdout);
	else
		puts("pmdiff " PMDIFF_VERSION);
	return pm_sink_close(&sink, err);
}

static int print_error_for_status(const struct pm_error *err, int status)
{
	pm_error_print(err, "pmdiff", stderr);
	return status;
}

static int status_of_error(int error)
{
	switch (error) {
	case -EXDEV:
		return PMDIFF_STATUS_INCOMPARABLE;
	case -ENOMEM:
		return PM_STATUS_FAILED;
	default:
		return PMDIFF_STATUS_USAGE;
	}
}

/* Prints several differences on separate lines, because one line would be too short. */
static void print_differences(const struct pm_comparison *comparison,
			      struct pm_error *err)
{
	size_t len = comparison->differences.len;

	if (len > 1)
		snprintf(err->text, sizeof(err->text),
			 "the sides do not compare: %zu things differ", len);
	pm_error_print(err, "pmdiff", stderr);
	for (size_t i = 0; i < len && len > 1; i++) {
		struct pm_error line = { .offset = -1 };

		snprintf(line.text, sizeof(line.text), "  %s",
			 comparison->differences.data[i]);
		pm_error_print(&line, "pmdiff", stderr);
	}
}

/* Writes the failure to the documents, too. If that fails, the new error is only printed:
 * @status, that of the first failure, is returned in any case. */
static int write_failure_to_documents(const struct pmdiff_options *options,
				      const struct pm_comparison *comparison,
				      const struct pm_error *why, int status)
{
	struct pm_error err = { .offset = -1 };

	if (pmdiff_print_failure(options, comparison, why, &err) < 0)
		pm_error_print(&err, "pmdiff", stderr);
	return status;
}

/* For failures that occur before there are two sides. */
static int write_early_failure(const struct pmdiff_options *options,
			       const struct pm_error *why, int status)
{
	const struct pm_comparison nothing = { 0 };

	return write_failure_to_documents(options, &nothing, why,
					  print_error_for_status(why, status));
}

/* @workshop is where the sides were measured; NULL: they are files. */
static int judge_and_print(const struct pmdiff_inputs *inputs,
			   const struct pmdiff_options *options,
			   struct pmdiff_workshop *workshop)
{
	PM_CLEANUP(pm_comparison_release) struct pm_comparison comparison = { 0 };
	struct pmdiff_shown shown = { .comparison = &comparison,
				      .base = inputs->profiles[0],
				      .new = inputs->profiles[1] };
	struct pm_error err = { .offset = -1 };
	int ret = pmdiff_judge(&comparison, inputs, options, &err);

	if (ret < 0) {
		print_differences(&comparison, &err);
		return write_failure_to_documents(options, &comparison, &err,
						  status_of_error(ret));
	}
	if (workshop)
		ret = pmdiff_profile(&comparison, workshop, inputs->sides, &err);
	if (ret < 0 || pmdiff_print_comparison(options, &shown, &err) < 0)
		return print_error_for_status(&err, PM_STATUS_FAILED);
	return pmdiff_status_of(&comparison, options);
}

static int compare_given_files(const struct pmdiff_options *options)
{
	PM_CLEANUP(pmdiff_inputs_release) struct pmdiff_inputs inputs = { 0 };
	struct pm_error err = { .offset = -1 };
	int ret = pmdiff_read(&inputs, options, &err);

	if (ret < 0)
		return write_early_failure(options, &err, status_of_error(ret));
	return judge_and_print(&inputs, options, NULL);
}

/* -EINVAL means that the request is impossible. All other errors mean that something is
 * wrong with the repository, a build or the command. */
static int status_of_run(int error)
{
	switch (error) {
	case -EINVAL:
		return PMDIFF_STATUS_USAGE;
	case -EXDEV:
		return PMDIFF_STATUS_INCOMPARABLE;
	case -ERANGE:
		return PMDIFF_STATUS_INCONCLUSIVE;
	default:
		return PM_STATUS_FAILED;
	}
}

static int measure_and_compare(const struct pmdiff_options *options)
{
	PM_CLEANUP(pmdiff_inputs_release) struct pmdiff_inputs inputs = { 0 };
	struct pmdiff_workshop workshop;
	struct pm_error err = { .offset = -1 };
	int status, ret = pmdiff_measure(inputs.sides, &workshop, options, &err);

	if (ret < 0)
		return write_early_failure(options, &err, status_of_run(ret));
	status = judge_and_print(&inputs, options, &workshop);
	pmdiff_workshop_release(&workshop);
	/* Drop the functions: there may be a thousand, and the user has not requested
	 * them. */
	for (size_t i = 0; i < 2; i++)
		pmdiff_side_forget_functions(&inputs.sides[i]);
	/* Results are printed before this, so that a full disk does not cost the user a
	 * long measurement. */
	ret = pmdiff_keep(&inputs, options, &err);
	if (ret < 0)
		return print_error_for_status(&err, PM_STATUS_FAILED);
	return status;
}

static int bisect_and_print(const struct pmdiff_options *options)
{
	struct pm_sink sink = { .file = stdout };
	struct pm_error err = { .offset = -1 };
	int found = pmdiff_bisect(options, sink.file, &err);

	if (found < 0)
		return print_error_for_status(&err, status_of_run(found));
	if (pm_sink_close(&sink, &err) < 0)
		return print_error_for_status(&err, PM_STATUS_FAILED);
	if (found == 0)
		return PMDIFF_STATUS_FINE;
	return PMDIFF_STATUS_INCONCLUSIVE;
}

static int judge_and_print_trend(const struct pmdiff_options *options)
{
	PM_CLEANUP(pm_trends_release) struct pm_trends trends = { 0 };
	struct pm_error err = { .offset = -1 };
	int ret = pmdiff_trend(&trends, options, &err);

	if (ret < 0)
		return print_error_for_status(&err, status_of_error(ret));
	if (pmdiff_print_trends(options, &trends, &err) < 0)
		return print_error_for_status(&err, PM_STATUS_FAILED);
	return PMDIFF_STATUS_FINE;
}

static int accept_and_print(const struct pmdiff_options *options)
{
	struct pm_sink sink = { .file = stdout };
	struct pm_error err = { .offset = -1 };
	int ret = pmdiff_ack(options, sink.file, &err);

	if (ret < 0)
		return print_error_for_status(&err, status_of_error(ret));
	if (pm_sink_close(&sink, &err) < 0)
		return print_error_for_status(&err, PM_STATUS_FAILED);
	return PMDIFF_STATUS_FINE;
}

static int import_foreign_result(const struct pmdiff_options *options)
{
	struct pm_error err = { .offset = -1 };
	int ret = pmdiff_import(options, &err);

	if (ret < 0)
		return print_error_for_status(&err, status_of_error(ret));
	return PMDIFF_STATUS_FINE;
}

static int perform_action(const struct pmdiff_options *options)
{
	struct pm_error err = { .offset = -1 };
	int ret = pmdiff_print_check(options, &err);

	if (ret < 0)
		return print_error_for_status(&err, status_of_run(ret));
	switch (options->action) {
	case PMDIFF_RUN:
		return measure_and_compare(options);
	case PMDIFF_BISECT:
		return bisect_and_print(options);
	case PMDIFF_TREND:
		return judge_and_print_trend(options);
	case PMDIFF_IMPORT:
		return import_foreign_result(options);
	case PMDIFF_ACK:
		return accept_and_print(options);
	case PMDIFF_COMPARE:
	case PMDIFF_HELP:
	case PMDIFF_TELL_VERSION:
		break;
	}
	return compare_given_files(options);
}

int main(int argc, char **argv)
{
	struct pmdiff_options options;
	struct pm_error err = { .offset = -1 };
	int ret, status;

	pm_streams_hold();
	setlocale(LC_CTYPE, ""); /* numbers stay in the C locale */
	ret = pmdiff_options_parse(&options, argc, argv, &err);
	if (ret == 0 &&
	    (options.action == PMDIFF_HELP || options.action == PMDIFF_TELL_VERSION)) {
		ret = pmdiff_print_usage(options.action, &err);
		if (ret < 0)
			status = print_error_for_status(&err, PM_STATUS_FAILED);
		else
			status = PMDIFF_STATUS_FINE;
	} else {
		if (ret == 0)
			ret = pmdiff_options_complete(&options, &err);
		if (ret < 0)
			status = print_error_for_status(&err, status_of_error(ret));
		else
			status = perform_action(&options);
	}
	pmdiff_options_release(&options);
	return status;
}
