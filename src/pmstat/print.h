/* SPDX-License-Identifier: MIT */
/*
 * Prints results in the requested form.
 */
#pragma once

#include "options.h"

struct pmstat_print {
	const struct pmstat_options *options;
	struct pm_sink sink; /* the file of -o; otherwise unused */
	FILE *to;
	bool begun; /* an interval was printed */
	bool reader_gone; /* the reader of the intervals has closed the pipe */
	bool interrupted; /* a signal such as that of Ctrl-C ended the runs */
};

/* To be called before anything runs, so that an unwritable file is reported early. */
int pmstat_print_open(struct pmstat_print *print, const struct pmstat_options *options,
		      struct pm_error *err);
/* The callback of -I for struct pm_count_options, with the struct pmstat_print as
 * @user. */
void pmstat_print_interval(void *user, const struct pm_stat *stat,
			   const struct pm_stat_run *run);
/* Prints the complete result, and gives the file its final name. */
int pmstat_print_result(struct pmstat_print *print, const struct pm_stat *stat,
			struct pm_error *err);
/* Releases @print. Without a result no file remains, and an existing file is
 * unchanged. */
void pmstat_print_release(struct pmstat_print *print);
/* Prints `pmstat: …` on stderr, unless --quiet. */
void PM_PRINTF(2, 3)
	pmstat_say(const struct pmstat_options *options, const char *format, ...);
