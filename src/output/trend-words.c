/* SPDX-License-Identifier: MIT */
/* Trends in words for people. */
#include "trend-show.h"

#include <string.h>

enum {
	COMMIT_DIGITS = 8,
};

void pm_trend_row(struct pm_compare_row *out, const struct pm_trend *trend)
{
	*out = (struct pm_compare_row){
		.subject = trend->scope ? PM_COMPARE_SCOPE : PM_COMPARE_PROGRAM,
		.case_name = trend->case_name,
		.scope = trend->scope,
		.module = trend->module,
		.event = trend->event,
		.unit = trend->unit,
		.class = trend->class,
		.better = trend->better,
		.base = { .median = NAN },
		.new = { .median = NAN },
		.change = NAN,
		.low = NAN,
		.high = NAN,
		.gate = NAN,
	};
}

void pm_trend_step_row(struct pm_compare_row *out, const struct pm_trend *trend,
		       const struct pm_trend_step *step)
{
	pm_trend_row(out, trend);
	out->base.known = out->new.known = true;
	out->base.median = step->before;
	out->new.median = step->after;
	out->change = step->change;
	out->verdict = step->verdict;
}

void pm_put_trend_value(struct pm_str *str, const struct pm_trend *trend, double value,
			bool ascii)
{
	struct pm_compare_row row;

	pm_trend_row(&row, trend);
	row.new.known = isfinite(value);
	row.new.median = value;
	pm_put_compare_median(str, &row, &row.new, ascii);
}

void pm_put_trend_commit(struct pm_str *str, const struct pm_trend_commit *commit,
			 size_t width, bool ascii)
{
	if (commit->commit)
		pm_str_printable(str, commit->commit,
				 strnlen(commit->commit, COMMIT_DIGITS));
	else
		pm_str_puts(str, "unknown commit");
	if (!commit->subject)
		return;
	pm_str_puts(str, "  ");
	pm_put_cut(str, commit->subject, width, false, ascii);
}

void pm_put_trend_verdict(struct pm_str *str, const struct pm_trends *trends)
{
	size_t moved = pm_trends_moved(trends);

	if (trends->list.len == 0)
		pm_str_puts(str, "no number was measured in two commits");
	else if (moved == 0)
		pm_str_printf(str, "none of %zu numbers has moved", trends->list.len);
	else
		pm_str_printf(str, "%zu of %zu numbers %s moved", moved, trends->list.len,
			      pm_plural(moved, "has", "have"));
	pm_str_printf(str, " over %zu commit%s", trends->commits.len,
		      pm_plural_s(trends->commits.len));
}

size_t pm_trends_moved(const struct pm_trends *trends)
{
	size_t moved = 0;

	while (moved < trends->list.len && trends->list.data[moved].steps.len > 0)
		moved++;
	return moved;
}

size_t pm_trend_last(const struct pm_trend *trend)
{
	size_t i = trend->points.len;

	while (i > 0 && !isfinite(trend->points.data[i - 1].median))
		i--;
	if (i > 0)
		return i - 1;
	return trend->points.len;
}

double pm_trend_mean(const struct pm_trend *trend, size_t begin, size_t end)
{
	double sum = 0;
	size_t len = 0;

	for (size_t i = begin; i < end; i++) {
		if (!isfinite(trend->points.data[i].median))
			continue;
		sum += trend->points.data[i].median;
		len++;
	}
	if (len == 0)
		return NAN;
	return sum / (double)len;
}
