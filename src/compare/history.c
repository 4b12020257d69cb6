/* SPDX-License-Identifier: MIT */
/* Measures how much a number changes from commit to commit without a regression. */
#include "compare-internal.h"
#include "pm/stats.h"

#include <math.h>
#include <string.h>

enum {
	CHANGES_MIN = 5, /* fewer changes have no meaningful quartiles */
};
#define FAR_RANGES 3.0

static bool is_same_history_text(const char *a, const char *b)
{
	if (a && b)
		return strcmp(a, b) == 0;
	return a == b;
}

bool pm_history_is_like(const struct pm_stat *a, const struct pm_stat *b)
{
	return is_same_history_text(a->engine, b->engine) &&
	       is_same_history_text(a->host.arch, b->host.arch) &&
	       is_same_history_text(a->host.cpu_model, b->host.cpu_model) &&
	       is_same_history_text(a->host.virt, b->host.virt);
}

static bool is_module_of(const char *path, const char *name)
{
	size_t a_len, b_len;

	if (!path || !name)
		return path == name;
	path = pm_module_name(path, &a_len);
	name = pm_module_name(name, &b_len);
	return a_len == b_len && memcmp(path, name, a_len) == 0;
}

int pm_history_median(const struct pm_stat *stat, const struct pm_compare_row *row,
		      double *out)
{
	struct pm_side sides[PM_SIDES] = { { .docs = &stat, .len = 1 }, { 0 } };
	struct pm_event_pairs pairs PM_CLEANUP(pm_event_pairs_release) = { 0 };
	struct pm_scope_groups groups PM_CLEANUP(pm_scope_groups_release) = { 0 };
	const struct pm_scope_group *group = NULL;
	int ret;

	*out = NAN;
	sides[PM_BASE].ended = pm_stat_variants_ended(stat) & 1;
	ret = pm_event_pairs_find(&pairs, sides);
	if (ret == 0 && row->scope)
		ret = pm_scope_groups_find(&groups, sides);
	for (size_t i = 0; ret == 0 && i < groups.list.len && !group; i++) {
		const struct pm_stat_scope *of = groups.list.data[i].of[PM_BASE];

		if (strcmp(of->name, row->scope) == 0 &&
		    is_module_of(of->module, row->module))
			group = &groups.list.data[i];
	}
	if (ret < 0 || (row->scope && !group))
		return ret;
	for (size_t i = 0; ret == 0 && i <= pairs.list.len; i++) {
		struct pm_compare_row found;

		if (strcmp(i < pairs.list.len ? pairs.list.data[i].name : "calls",
			   row->event) != 0 ||
		    (i == pairs.list.len && !group))
			continue;
		ret = pm_compare_row_fill(&found, sides, group, &pairs, i);
		if (ret == 0 && found.base.known) {
			struct pm_stats_summary summary;

			ret = pm_stats_summarize(found.base.values, found.base.len,
						 &summary);
			if (ret == 0)
				*out = summary.median;
		}
		pm_compare_row_free(&found);
	}
	return ret;
}

int pm_history_gate(const struct pm_compare_options *options, const struct pm_stat *like,
		    const struct pm_compare_row *row, double *ret_gate, bool *ret_known)
{
	PM_AUTO_FREE double *changes = calloc(options->history_len + 1, sizeof(*changes));
	struct pm_stats_summary summary;
	double before = NAN;
	size_t len = 0;
	int ret = changes ? 0 : -ENOMEM;

	*ret_known = false;
	for (size_t i = 0; i < options->history_len && ret == 0; i++) {
		double median;

		if (!pm_history_is_like(options->history[i], like))
			continue;
		ret = pm_history_median(options->history[i], row, &median);
		if (isnan(median))
			continue;
		if (before > 0)
			changes[len++] = fabs(median - before) / before;
		before = median;
	}
	if (ret < 0 || len < CHANGES_MIN)
		return ret;
	ret = pm_stats_summarize(changes, len, &summary);
	if (ret == 0) {
		*ret_gate = summary.q3 + FAR_RANGES * (summary.q3 - summary.q1);
		*ret_known = true;
	}
	return ret;
}
