/* SPDX-License-Identifier: MIT */
/* Definitions shared by the documents of trends. */
#pragma once

#include "compare-show.h"

/* A trend as a row of a comparison, for functions that print those. Borrows from
 * @trend. */
void pm_trend_row(struct pm_compare_row *out, const struct pm_trend *trend);
/* The same, with the levels around @step as its sides. */
void pm_trend_step_row(struct pm_compare_row *out, const struct pm_trend *trend,
		       const struct pm_trend_step *step);
/* A number of the series, in a suitable unit. */
void pm_put_trend_value(struct pm_str *str, const struct pm_trend *trend, double value,
			bool ascii);
/* "3f2a1bc0  Make parse slower"; the subject cut to @width columns (0: whole). */
void pm_put_trend_commit(struct pm_str *str, const struct pm_trend_commit *commit,
			 size_t width, bool ascii);
/* "2 of 14 numbers have moved over 37 commits". */
void pm_put_trend_verdict(struct pm_str *str, const struct pm_trends *trends);
/* Number of trends with a step; these come first. */
size_t pm_trends_moved(const struct pm_trends *trends);
/* The last point with a value; the number of points if none has one. */
size_t pm_trend_last(const struct pm_trend *trend);
/* Mean of the values of commits [begin, end); NaN if there is none. */
double pm_trend_mean(const struct pm_trend *trend, size_t begin, size_t end);
