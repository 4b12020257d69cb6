/* SPDX-License-Identifier: MIT */
#include "doctor.h"
#include "list.h"
#include "options.h"
#include "session.h"
#include "stacks.h"

/* Prints the help or the version. Fails if standard output cannot be written. */
static int print_information(enum pm_rec_action action)
{
	struct pm_sink sink = { .file = stdout };
	struct pm_error err = { 0 };

	if (action == PM_REC_HELP)
		pm_rec_options_help();
	else
		puts("pmrec " PMREC_VERSION);
	if (pm_sink_close(&sink, &err) == 0)
		return 0;
	pm_error_print(&err, "pmrec", stderr);
	return PM_STATUS_FAILED;
}

int main(int argc, char **argv)
{
	struct pm_rec_options options;
	struct pm_error err = { 0 };
	int status = 0;

	pm_streams_hold();
	if (pm_rec_options_parse(&options, argc, argv, &err) < 0 ||
	    (options.action == PM_REC_RECORD &&
	     pm_places_resolve(&options.probes, &options.specs, &options.targets,
			       options.command, &err) < 0)) {
		pm_error_print(&err, "pmrec", stderr);
		status = PM_STATUS_FAILED;
	} else if (options.action == PM_REC_HELP || options.action == PM_REC_VERSION) {
		status = print_information(options.action);
	} else if (options.action == PM_REC_DOCTOR) {
		status = pm_rec_doctor_run(&options);
	} else if (options.action == PM_REC_STACKS) {
		status = pm_rec_stacks_run(&options);
	} else if (options.action == PM_REC_LIST) {
		status = pm_rec_list_run(&options);
	} else {
		status = pm_rec_session_run(&options);
	}
	pm_rec_options_release(&options);
	return status;
}
