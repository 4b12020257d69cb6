/* SPDX-License-Identifier: MIT */
/*
 * Where results go, and in which form.
 */
#pragma once

#include "options.h"

struct pmstat_print {
	const struct pmstat_options *options;
	struct pm_sink sink; /* -o; unused without */
	FILE *to;
	bool begun; /* an interval was printed */
	bool interrupted; /* by Ctrl-C and the like */
};

/* Before anything runs, so that a file that cannot be written is told in time. */
int pmstat_print_open(struct pmstat_print *print, const struct pmstat_options *options,
		      struct pm_error *err);
/* -I: for struct pm_count_options, with the struct pmstat_print as @user. */
void pmstat_print_interval(void *user, const struct pm_stat *stat,
			   const struct pm_stat_run *run);
/* All of it, and the file gets its name. */
int pmstat_print_result(struct pmstat_print *print, const struct pm_stat *stat,
			struct pm_error *err);
/* Without a result no file stays behind, and one of before stays as it was. */
void pmstat_print_release(struct pmstat_print *print);
/* `pmstat: …` on stderr, unless --quiet. */
void PM_PRINTF(2, 3)
	pmstat_say(const struct pmstat_options *options, const char *format, ...);
