/* SPDX-License-Identifier: MIT */
/*
 * Levels of a series and the steps between them.
 *
 * Among all piecewise constant lines through the points, finds the one with the least
 * cost. A point costs its distance from the line in units of the noise, but at most the
 * cost of an outlier. Each step costs a penalty. Only the values themselves need to be
 * tried as levels, and one pass over the points finds the best line, in time proportional
 * to points times levels (Storath and others: Jump-penalized least absolute values
 * estimation, 2017).
 *
 * The noise is estimated from differences of adjacent points, on which steps have hardly
 * any influence.
 */
#include <float.h>
#include <math.h>
#include <string.h>

#include "compare-internal.h"
#include "pm/stats.h"
#include "trend-internal.h"

enum {
	LEVELS_MAX = 512, /* if there are more values, their quantiles are used */
};

/* In units of the noise. One or two outliers in a row cost no more than a step. Three
 * cost more, and are a new level if the series stays there. In pure noise, these costs
 * find a step in one of 10,000 series. */
static const double outlier_cost = 6, step_cost = 12;
/* The limit for the smallest step worth reporting, in units of noise. */
static const double least_in_noise = 6;
/* Sigma is this times the median of |differences| of adjacent points: 1.4826 /
 * sqrt(2). */
static const double sigma_of_median = 1.0484;
/* A difference of more than this many medians is not noise: 4 sigma of differences. */
static const double most_in_medians = 6;
/* The noise of few points cannot be estimated well, and may be larger. */
static const double few_points = 4;

/* The smallest step worth reporting; smaller ones are ignored or uncertain. The same
 * limits as the gates of compare.h. */
struct trend_least {
	double fraction;
	double floor; /* in the unit of the series */
};

static double least_fraction(enum pm_stat_class class)
{
	switch (class) {
	case PM_STAT_EXACT:
		return 0.0005;
	case PM_STAT_LOW_NOISE:
		return 0.005;
	case PM_STAT_NOISY:
		break;
	}
	return 0.01;
}

static struct trend_least least_of(const struct pm_trend *trend)
{
	return (struct trend_least){
		.fraction = least_fraction(trend->class),
		.floor = pm_compare_floor(trend->event),
	};
}

/* ---- values ---------------------------------------------------------------------------- */

/* The points that have a value; place[0], place[1] … are their indices. */
struct known {
	double *values;
	size_t *place;
	size_t len;
};

static void release_known(struct known *known)
{
	free(known->values);
	free(known->place);
}

static int find_known(struct known *out, const struct pm_trend *trend)
{
	size_t len = trend->points.len > 0 ? trend->points.len : 1;

	out->values = calloc(len, sizeof(*out->values));
	out->place = calloc(len, sizeof(*out->place));
	if (!out->values || !out->place)
		return -ENOMEM;
	for (size_t i = 0; i < trend->points.len; i++) {
		double median = trend->points.data[i].median;

		if (!isfinite(median))
			continue;
		out->values[out->len] = median;
		out->place[out->len++] = i;
	}
	return 0;
}

static int compare_trend_values(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	if (x < y)
		return -1;
	return x > y;
}

/* Changes the order of @values. @len must not be 0. */
static double median_in_place(double *values, size_t len)
{
	qsort(values, len, sizeof(*values), compare_trend_values);
	return pm_stats_quantile(values, len, 0.5);
}

/* @room has space for @len values. */
static double median_of_copy(const double *values, size_t len, double *room)
{
	memcpy(room, values, len * sizeof(*room));
	return median_in_place(room, len);
}

/*
 * Computes sigma from the squares of the differences of adjacent points, without those
 * that may be steps or outliers. The median alone is often inaccurate for few points, and
 * is 0 if most points are equal.
 */
static double sigma_of_most(const double *sorted, size_t len)
{
	double median = pm_stats_quantile(sorted, len, 0.5), sum = 0;
	size_t most = 0, end = median > 0 ? len : len - (len + 9) / 10;

	while (most < end && (median == 0 || sorted[most] <= most_in_medians * median)) {
		sum += sorted[most] * sorted[most];
		most++;
	}
	if (most > 0)
		return sqrt(sum / (double)(2 * most));
	return 0;
}

/* Returns the smallest difference above 0, or 0 if all values are equal. */
static double least_difference(const double *sorted, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (sorted[i] > 0)
			return sorted[i];
	return 0;
}

/* Returns the noise of one point, or 0 if all points are equal. */
static double noise_of(const struct known *known, double least, double *room)
{
	double level, sigma;
	size_t len = known->len - 1;

	for (size_t i = 0; i < known->len; i++)
		room[i] = fabs(known->values[i]);
	level = median_in_place(room, known->len);
	for (size_t i = 0; i < len; i++)
		room[i] = fabs(known->values[i + 1] - known->values[i]);
	sigma = sigma_of_median * median_in_place(room, len);
	sigma = fmax(sigma, sigma_of_most(room, len));
	sigma *= 1 + few_points / (double)known->len;
	sigma = fmax(sigma, least * level / least_in_noise);
	if (sigma > 0)
		return sigma;
	return least_difference(room, len) / least_in_noise;
}

/* ---- the best line --------------------------------------------------------------------- */

struct levels {
	double *values; /* in ascending order, without duplicates */
	size_t len;
};

static int find_levels(struct levels *out, const struct known *known)
{
	size_t unique = 0, thin;
	double *values = malloc(known->len * sizeof(*values));

	if (!values)
		return -ENOMEM;
	memcpy(values, known->values, known->len * sizeof(*values));
	qsort(values, known->len, sizeof(*values), compare_trend_values);
	for (size_t i = 0; i < known->len; i++)
		if (unique == 0 || values[i] > values[unique - 1])
			values[unique++] = values[i];
	thin = PM_MIN(unique, LEVELS_MAX);
	for (size_t i = 0; i < thin; i++)
		values[i] = values[i * unique / thin];
	*out = (struct levels){ .values = values, .len = thin };
	return 0;
}

struct line {
	struct levels levels;
	double *cost; /* by level: cost of the best line so far that ends there */
	bool *stepped; /* by point and level: whether that line came from another level */
	uint16_t *best; /* by point: the level at which the best line so far ends */
};

static void release_line(struct line *line)
{
	free(line->levels.values);
	free(line->cost);
	free(line->stepped);
	free(line->best);
}

static int init_line(struct line *line, const struct known *known)
{
	int ret = find_levels(&line->levels, known);

	if (ret < 0)
		return ret;
	line->cost = calloc(line->levels.len, sizeof(*line->cost));
	line->stepped = calloc(known->len, line->levels.len * sizeof(*line->stepped));
	line->best = calloc(known->len, sizeof(*line->best));
	if (line->cost && line->stepped && line->best)
		return 0;
	return -ENOMEM;
}

static void add_point(struct line *line, size_t point, double value, double sigma)
{
	size_t levels = line->levels.len, best = 0;
	double from =
		point > 0 ? line->cost[line->best[point - 1]] + step_cost : INFINITY;
	bool *stepped = &line->stepped[point * levels];

	for (size_t i = 0; i < levels; i++) {
		double distance = fabs(value - line->levels.values[i]) / sigma;

		stepped[i] = from < line->cost[i];
		line->cost[i] = fmin(from, line->cost[i]) + fmin(distance, outlier_cost);
		if (line->cost[i] < line->cost[best])
			best = i;
	}
	line->best[point] = (uint16_t)best;
}

/* Marks where levels start, including the first. */
static int mark_level_starts(const struct known *known, double sigma, bool *begins)
{
	PM_CLEANUP(release_line) struct line line = { 0 };
	size_t level;
	int ret = init_line(&line, known);

	if (ret < 0)
		return ret;
	for (size_t i = 0; i < known->len; i++)
		add_point(&line, i, known->values[i], sigma);
	level = line.best[known->len - 1];
	for (size_t i = known->len - 1; i > 0; i--) {
		begins[i] = line.stepped[i * line.levels.len + level];
		if (begins[i])
			level = line.best[i - 1];
	}
	begins[0] = true;
	return 0;
}

/* ---- levels ---------------------------------------------------------------------------- */

struct piece {
	size_t begin, end;
	double median;
};

struct pieces {
	PM_VEC(struct piece) list;
};

/* Returns the change as a fraction; a change from 0 is infinite. */
static double fraction_of_change(double before, double after)
{
	if (before == after)
		return 0;
	if (before == 0)
		return copysign(INFINITY, after);
	return (after - before) / fabs(before);
}

/* Returns the step as a fraction, or 0 if it is below the event's floor. */
static double size_of_step(const struct trend_least *least, double before, double after)
{
	if (fabs(after - before) < least->floor)
		return 0;
	return fabs(fraction_of_change(before, after));
}

static int find_pieces(struct pieces *out, const struct known *known, const bool *begins,
		       double *room)
{
	for (size_t i = 0; i < known->len;) {
		struct piece piece = { .begin = i, .end = i + 1 };

		while (piece.end < known->len && !begins[piece.end])
			piece.end++;
		piece.median = median_of_copy(known->values + i, piece.end - i, room);
		if (pm_vec_push(&out->list, piece) < 0)
			return -ENOMEM;
		i = piece.end;
	}
	return 0;
}

/* Joins the two adjacent pieces that differ least, until all steps are large enough. */
static void join_pieces(struct pieces *pieces, const struct known *known,
			const struct trend_least *least, double *room)
{
	while (pieces->list.len > 1) {
		struct piece *list = pieces->list.data;
		size_t smallest = 0;
		double size = INFINITY;

		for (size_t i = 0; i + 1 < pieces->list.len; i++) {
			double change =
				size_of_step(least, list[i].median, list[i + 1].median);

			if (change < size) {
				smallest = i;
				size = change;
			}
		}
		if (size > 0 && size >= least->fraction)
			return;
		list[smallest].end = list[smallest + 1].end;
		list[smallest].median =
			median_of_copy(known->values + list[smallest].begin,
				       list[smallest].end - list[smallest].begin, room);
		memmove(&list[smallest + 1], &list[smallest + 2],
			(pieces->list.len - smallest - 2) * sizeof(*list));
		pieces->list.len--;
	}
}

static enum pm_verdict judge_step(int8_t better, double change)
{
	if (better == 0)
		return PM_VERDICT_CHANGED;
	if ((change > 0) == (better > 0))
		return PM_VERDICT_BETTER;
	return PM_VERDICT_WORSE;
}

/* @place is the place of the first point of the new level, which is not the first point
 * of all. */
static int add_step(struct pm_trend *trend, const size_t *place, double before,
		    double after, double noise)
{
	double change = fraction_of_change(before, after);
	struct pm_trend_step step = {
		.at = place[0],
		.from = place[-1],
		.before = before,
		.after = after,
		.change = change,
		.noise = noise,
		.verdict = judge_step(trend->better, change),
	};

	return pm_vec_push(&trend->steps, step);
}

/* Returns the noise around the levels, in the unit of the series. */
static double noise_around(const struct pieces *pieces, const struct known *known,
			   double *room)
{
	for (size_t i = 0; i < pieces->list.len; i++) {
		const struct piece *piece = &pieces->list.data[i];

		for (size_t at = piece->begin; at < piece->end; at++)
			room[at] = fabs(known->values[at] - piece->median);
	}
	return 1.4826 * median_in_place(room, known->len);
}

static int add_steps(struct pm_trend *trend, const struct pieces *pieces,
		     const struct known *known, double *room)
{
	double noise = noise_around(pieces, known, room);
	int ret = 0;

	for (size_t i = 1; ret == 0 && i < pieces->list.len; i++) {
		double before = pieces->list.data[i - 1].median,
		       after = pieces->list.data[i].median;

		ret = add_step(trend, &known->place[pieces->list.data[i].begin], before,
			       after, before == 0 ? NAN : noise / fabs(before));
	}
	return ret;
}

static int find_noisy(struct pm_trend *trend, const struct known *known, double *room)
{
	struct trend_least least = least_of(trend);
	double sigma = noise_of(known, least.fraction, room);
	PM_AUTO_FREE bool *begins = calloc(known->len, sizeof(*begins));
	struct pieces pieces = { 0 };
	int ret;

	if (!begins)
		return -ENOMEM;
	if (!(sigma > 0) || !isfinite(sigma)) /* all points are equal */
		return 0;
	ret = mark_level_starts(known, sigma, begins);
	if (ret == 0)
		ret = find_pieces(&pieces, known, begins, room);
	if (ret == 0) {
		join_pieces(&pieces, known, &least, room);
		ret = add_steps(trend, &pieces, known, room);
	}
	pm_vec_release(&pieces.list);
	return ret;
}

/* ---- series without noise -------------------------------------------------------------- */

/* Finds the steps of an exact series. Each change is a step, even if the next commit
 * reverts it. Changes that are too small add up until they are large enough. */
static int find_exact(struct pm_trend *trend, const struct known *known)
{
	struct trend_least least = least_of(trend);
	double level = known->values[0];
	int ret = 0;

	for (size_t i = 1; ret == 0 && i < known->len; i++) {
		double value = known->values[i];

		if (value == level || size_of_step(&least, level, value) < least.fraction)
			continue;
		ret = add_step(trend, &known->place[i], level, value, 0);
		level = value;
	}
	return ret;
}

int pm_trend_find_steps(struct pm_trend *trend)
{
	PM_CLEANUP(release_known) struct known known = { 0 };
	PM_AUTO_FREE double *room = NULL;
	int ret = find_known(&known, trend);

	if (ret < 0 || known.len < 2)
		return ret;
	if (trend->class == PM_STAT_EXACT)
		return find_exact(trend, &known);
	room = calloc(known.len, sizeof(*room));
	if (!room)
		return -ENOMEM;
	return find_noisy(trend, &known, room);
}
