/* SPDX-License-Identifier: MIT */
/* Joins documents of one measurement; pmdiff keeps these for each commit. */
#include "stat-internal.h"

#include <string.h>

static bool is_same_stat_text(const char *a, const char *b)
{
	return a == b || (a && b && strcmp(a, b) == 0);
}

/* Returns NULL, or the difference that prevents joining @b to @a. */
static const char *find_difference(const struct pm_stat *a, const struct pm_stat *b)
{
	if (!is_same_stat_text(a->engine, b->engine))
		return "engines";
	if (a->subjects.len != b->subjects.len)
		return "numbers of subjects";
	if (a->events.len != b->events.len)
		return "numbers of events";
	for (size_t i = 0; i < a->events.len; i++) {
		const struct pm_stat_event *x = &a->events.data[i],
					   *y = &b->events.data[i];

		if (!is_same_stat_text(x->name, y->name) ||
		    !is_same_stat_text(x->requested, y->requested) ||
		    !is_same_stat_text(x->unit, y->unit) || x->scale != y->scale ||
		    x->user_only != y->user_only)
			return "events";
	}
	return NULL;
}

static int join_warnings(struct pm_stat *to, const struct pm_stat *from)
{
	for (size_t i = 0; i < from->warnings.len; i++) {
		char *warning = from->warnings.data[i];
		size_t j = 0;

		while (j < to->warnings.len &&
		       !is_same_stat_text(to->warnings.data[j], warning))
			j++;
		if (j == to->warnings.len && pm_vec_push(&to->warnings, warning) < 0)
			return -ENOMEM;
	}
	return 0;
}

static int join_one(struct pm_stat *to, const struct pm_stat *from)
{
	size_t runs_before = to->runs.len;

	for (size_t i = 0; i < from->runs.len; i++)
		if (pm_vec_push(&to->runs, from->runs.data[i]) < 0)
			return -ENOMEM;
	for (size_t i = 0; i < from->scopes.len; i++) {
		struct pm_stat_scope scope = from->scopes.data[i];

		scope.run += (uint32_t)runs_before;
		if (pm_vec_push(&to->scopes, scope) < 0)
			return -ENOMEM;
	}
	return join_warnings(to, from);
}

static int copy_subjects(struct pm_stat *to, const struct pm_stat *from)
{
	for (size_t i = 0; i < from->subjects.len; i++)
		if (pm_vec_push(&to->subjects, from->subjects.data[i]) < 0)
			return -ENOMEM;
	return 0;
}

int pm_stat_join(struct pm_stat *out, const struct pm_stat *stats, size_t len,
		 struct pm_error *err)
{
	struct pm_stat joined;
	int ret = 0;

	if (len == 0)
		return pm_error_set(err, -EINVAL, "there are no counts");
	joined = stats[0];
	memset(&joined.subjects, 0, sizeof(joined.subjects));
	memset(&joined.runs, 0, sizeof(joined.runs));
	memset(&joined.scopes, 0, sizeof(joined.scopes));
	memset(&joined.metrics, 0, sizeof(joined.metrics));
	memset(&joined.differences, 0, sizeof(joined.differences));
	memset(&joined.warnings, 0, sizeof(joined.warnings));
	ret = copy_subjects(&joined, &stats[0]);
	for (size_t i = 0; ret == 0 && i < len; i++) {
		const char *difference = find_difference(&stats[0], &stats[i]);

		if (difference) {
			pm_stat_join_release(&joined);
			return pm_error_set(
				err, -EINVAL,
				"counts of different %s are not one measurement",
				difference);
		}
		ret = join_one(&joined, &stats[i]);
	}
	if (ret < 0) {
		pm_stat_join_release(&joined);
		return pm_error_set(err, ret, "out of memory");
	}
	*out = joined;
	return 0;
}

void pm_stat_join_release(struct pm_stat *joined)
{
	pm_vec_release(&joined->subjects);
	pm_vec_release(&joined->runs);
	pm_vec_release(&joined->scopes);
	pm_vec_release(&joined->warnings);
	*joined = (struct pm_stat){ 0 };
}
