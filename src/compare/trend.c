/* SPDX-License-Identifier: MIT */
/* Levels of every number over many commits. */
#include <math.h>
#include <string.h>

#include "trend-internal.h"

void pm_trend_release(struct pm_trend *trend)
{
	free(trend->case_name);
	free(trend->scope);
	free(trend->module);
	free(trend->event);
	free(trend->unit);
	free(trend->machine);
	pm_vec_release(&trend->points);
	pm_vec_release(&trend->steps);
	*trend = (struct pm_trend){ 0 };
}

void pm_trends_release(struct pm_trends *trends)
{
	for (size_t i = 0; i < trends->commits.len; i++) {
		free(trends->commits.data[i].commit);
		free(trends->commits.data[i].subject);
		free(trends->commits.data[i].created);
	}
	for (size_t i = 0; i < trends->list.len; i++)
		pm_trend_release(&trends->list.data[i]);
	for (size_t i = 0; i < trends->warnings.len; i++)
		free(trends->warnings.data[i]);
	pm_vec_release(&trends->commits);
	pm_vec_release(&trends->list);
	pm_vec_release(&trends->warnings);
	*trends = (struct pm_trends){ 0 };
}

/* ---- the order ------------------------------------------------------------------------- */

/* Returns -1 if there is no step. */
static double size_of_last(const struct pm_trend *trend)
{
	if (trend->steps.len == 0)
		return -1;
	return fabs(trend->steps.data[trend->steps.len - 1].change);
}

static int compare_trend_texts(const char *a, const char *b)
{
	if (!a || !b)
		return (a != NULL) - (b != NULL);
	return strcmp(a, b);
}

static int largest_first(const void *a, const void *b)
{
	const struct pm_trend *x = a, *y = b;
	double size_x = size_of_last(x), size_y = size_of_last(y);
	int ret;

	if (size_x != size_y)
		return PM_COMPARE(size_y, size_x);
	ret = compare_trend_texts(x->case_name, y->case_name);
	if (ret == 0)
		ret = compare_trend_texts(x->scope, y->scope);
	if (ret == 0)
		ret = compare_trend_texts(x->event, y->event);
	if (ret == 0)
		ret = compare_trend_texts(x->module, y->module);
	if (ret != 0)
		return ret;
	return compare_trend_texts(x->machine, y->machine);
}

int pm_trends_find(struct pm_trends *out, const struct pm_trend_of *commits, size_t len,
		   struct pm_error *err)
{
	struct pm_trends trends = { 0 };
	int ret = pm_trends_collect(&trends, commits, len);

	for (size_t i = 0; i < trends.list.len && ret == 0; i++)
		ret = pm_trend_find_steps(&trends.list.data[i]);
	if (ret < 0) {
		pm_trends_release(&trends);
		return pm_error_set(err, ret, "out of memory");
	}
	if (trends.list.len > 0)
		qsort(trends.list.data, trends.list.len, sizeof(*trends.list.data),
		      largest_first);
	*out = trends;
	return 0;
}
