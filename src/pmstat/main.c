/* SPDX-License-Identifier: MIT */
#include "course.h"

#include <locale.h>

/* Resolves the options that depend on the machine. */
static int complete_options(struct pmstat_options *options, struct pm_error *err)
{
	int ret = 0;

	if (!options->event_given && options->engine != PM_COUNT_ENGINE_CALLGRIND)
		ret = pm_count_default_events(&options->specs, err);
	if (ret < 0)
		return ret;
	return pm_places_resolve(&options->probes, &options->specs, &options->targets,
				 options->commands[0], err);
}

/* Prints the help or the version. That can fail, too. */
static int pmstat_help_or_version(enum pmstat_action action, struct pm_error *err)
{
	struct pm_sink sink = { .file = stdout };

	if (action == PMSTAT_HELP)
		pm_options_print_help(&pmstat_option_table, stdout);
	else
		puts("pmstat " PMSTAT_VERSION);
	return pm_sink_close(&sink, err);
}

int main(int argc, char **argv)
{
	struct pmstat_options options;
	struct pm_error err = { 0 };
	int ret, status = 0;

	pm_streams_hold();
	setlocale(LC_CTYPE, ""); /* numbers stay in the C locale */
	ret = pmstat_options_parse(&options, argc, argv, &err);
	if (ret == 0) {
		if (options.action == PMSTAT_COUNT)
			ret = complete_options(&options, &err);
		else
			ret = pmstat_help_or_version(options.action, &err);
	}
	if (ret < 0) {
		pm_error_print(&err, "pmstat", stderr);
		status = PM_STATUS_FAILED;
	} else if (options.action == PMSTAT_COUNT) {
		status = pmstat_course_run(&options);
	}
	pmstat_options_release(&options);
	return status;
}
