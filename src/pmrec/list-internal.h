/* SPDX-License-Identifier: MIT */
#pragma once

#include "pm/perf.h"

enum pm_rec_list_kind {
	PM_REC_LIST_HARDWARE,
	PM_REC_LIST_SOFTWARE,
	PM_REC_LIST_CACHE,
	PM_REC_LIST_PMU,
	PM_REC_LIST_TRACEPOINT,
	PM_REC_LIST_PROBE,
	PM_REC_LIST_KINDS,
};

struct pm_rec_list_row {
	enum pm_rec_list_kind kind;
	char *name; /* as -e accepts it, or a pattern: "uprobe:FILE:SYMBOL" */
	char *aliases; /* other names, "a b", or NULL */
	enum pm_perf_available available;
	const char *reason; /* why it is not available; NULL: it is */
	const char *fix; /* NULL: none known */
};

struct pm_rec_list {
	PM_VEC(struct pm_rec_list_row) rows; /* by kind */
	struct pm_pmus pmus;
	PM_VEC(char *) texts; /* strings that `reason` and `fix` point to, each once */
	bool wanted[PM_REC_LIST_KINDS];
	const char *glob; /* NULL: all */
	/* Without a glob or a kind, thousands of tracepoints would hide the other
	 * events. */
	bool sum_up_tracepoints;
	const char *no_tracepoints,
		*no_tracepoints_fix; /* reason and fix; NULL: listable */
};

extern const char *const pm_rec_list_kind_names[PM_REC_LIST_KINDS];

void pm_rec_list_print_text(const struct pm_rec_list *list, bool color,
			    struct pm_str *out);
void pm_rec_list_print_json(const struct pm_rec_list *list, struct pm_str *out);
