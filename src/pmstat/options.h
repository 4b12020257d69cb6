/* SPDX-License-Identifier: MIT */
/*
 * The command line of pmstat as plain data.
 */
#pragma once

#include "pm/count.h"

enum {
	PMSTAT_VARIANTS = 2, /* commands of `ab` */
};

enum pmstat_action {
	PMSTAT_COUNT,
	PMSTAT_HELP,
	PMSTAT_TELL_VERSION,
};

enum pmstat_form {
	PMSTAT_TEXT,
	PMSTAT_CSV,
	PMSTAT_JSON,
};

struct pmstat_options {
	enum pmstat_action action;

	/* The events and functions to count. */
	struct pm_event_specs specs;
	struct pm_probes probes; /* the places in files that specs refer to */
	PM_VEC(char *) simulated; /* names of sim.* events of -e, owned */
	bool event_given;
	PM_VEC(struct pm_region_spec) regions; /* --fn, --range; strings are borrowed */
	enum pm_count_engine engine;
	enum pm_counters_by by;
	uint32_t calls_from; /* number of callers' frames; 0: not requested */
	bool live;
	bool marked; /* only the parts that the command marks */
	/* --marked=FROM,TO: the functions that mark the parts. NULL: the command marks
	 * them itself. */
	const char *marked_from, *marked_to;
	const char *stacks; /* a file for the cost of each stack; NULL: none */

	/* The targets. The commands' words are borrowed from argv and NULL-terminated; a
	 * command is NULL if not given. With `attach` the command only sets the
	 * duration. */
	struct pm_targets_request targets;
	bool attach;
	bool ab;
	char **commands[PMSTAT_VARIANTS];
	const char *user; /* user that runs the commands; NULL: ours */

	/* Number of runs, and timing. */
	uint64_t repeat; /* of each variant; UINT64_MAX if only --time is given */
	uint64_t time_ns; /* --time; 0: none */
	uint64_t warmups;
	bool keep_going;
	uint64_t interval_ms, delay_ms, timeout_ns; /* 0: none */

	/* Where and in which form results are written. */
	enum pmstat_form form;
	const char *separator; /* for PMSTAT_CSV */
	const char *output; /* NULL: stderr; "-": stdout */
	enum pm_color_wish color;
	bool quiet, verbose;
};

/* Returns 0, or -EINVAL with a message of one line in @err. Call the release function in
 * both cases. */
int pmstat_options_parse(struct pmstat_options *options, int argc, char **argv,
			 struct pm_error *err);
void pmstat_options_release(struct pmstat_options *options);
extern const struct pm_option_table pmstat_option_table;
/* Whether an engine is needed: for functions, for ranges, or for a simulator. */
bool pmstat_needs_engine(const struct pmstat_options *options);
