/* SPDX-License-Identifier: MIT */
/* Definitions shared by the documents of trends. */
#pragma once

#include "compare-show.h"

/* Converts a trend to a row of a comparison, for functions that print those. Borrows from
 * @trend. */
void pm_trend_row(struct pm_compare_row *out, const struct pm_trend *trend);
/* The same, with the levels around @step as its sides. */
void pm_trend_step_row(struct pm_compare_row *out, const struct pm_trend *trend,
		       const struct pm_trend_step *step);
/* Appends a number of the series, in a suitable unit. */
void pm_put_trend_value(struct pm_str *str, const struct pm_trend *trend, double value,
			bool ascii);
/* Appends "3f2a1bc0  Make parse slower", with the subject truncated to @width columns (0:
 * whole). */
void pm_put_trend_commit(struct pm_str *str, const struct pm_trend_commit *commit,
			 size_t width, bool ascii);
/* Appends "2 of 14 numbers have moved over 37 commits". */
void pm_put_trend_verdict(struct pm_str *str, const struct pm_trends *trends);
/* Returns the number of trends with a step; these come first. */
size_t pm_trends_moved(const struct pm_trends *trends);
/* Returns the index of the last point with a value; the number of points if there is
 * none. */
size_t pm_trend_last(const struct pm_trend *trend);
/* Returns the mean of the values of commits [begin, end); NaN if there is none. */
double pm_trend_mean(const struct pm_trend *trend, size_t begin, size_t end);
