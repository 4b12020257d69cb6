/* SPDX-License-Identifier: MIT */
#include "bisect-internal.h"

#include <math.h>
#include <string.h>

#include "say.h"

enum {
	TREE_GOOD, /* stays at the good end, to be measured together with others */
	TREE_STEP,
};

struct bisection {
	struct pmdiff_workshop shop;
	struct pmdiff_range range;
	struct pmdiff_moved moved;
	struct pmdiff_side good; /* measured once; used for rows that never vary */
	uint64_t runs;
	size_t measured;
};

enum side_of_range {
	GOOD,
	BAD,
	UNKNOWN,
};

static void bisection_release(struct bisection *it)
{
	pmdiff_side_release(&it->good);
	pmdiff_moved_release(&it->moved);
	pmdiff_range_release(&it->range);
	pmdiff_workshop_release(&it->shop);
}

static void release_end_sides(struct pmdiff_side (*sides)[2])
{
	pmdiff_side_release(&(*sides)[0]);
	pmdiff_side_release(&(*sides)[1]);
}

/* ---- one commit ---------------------------------------------------------------------- */

/* If the build fails, tries again without the files that the previous build has left. */
static int bisection_build_step(struct bisection *it, const struct pmdiff_commit *commit,
				size_t tree_index, struct pm_error *err)
{
	struct pmdiff_tree *tree = &it->shop.trees[tree_index];
	int ret;

	tree->commit = commit;
	tree->role = NULL;
	pmdiff_tree_forget_missing(tree);
	ret = pmdiff_worktree_move(tree->path, commit->hash, PMDIFF_KEEP_UNTRACKED, err);
	if (ret == 0)
		ret = pmdiff_meter_build(&it->shop.meter, tree, err);
	if (ret != PMDIFF_BAD_COMMIT)
		return ret;
	ret = pmdiff_worktree_move(tree->path, commit->hash, PMDIFF_REMOVE_UNTRACKED,
				   err);
	if (ret < 0)
		return ret;
	return pmdiff_meter_build(&it->shop.meter, tree, err);
}

/* Measures a step. Numbers that vary also drift with time: for these, the good end is
 * measured again together with the step. */
static int bisection_measure_step(struct bisection *it, struct pmdiff_side sides[2],
				  struct pm_error *err)
{
	struct pmdiff_meter *meter = &it->shop.meter;

	if (it->moved.class != PM_STAT_EXACT)
		return pmdiff_meter_measure(meter, it->shop.trees, sides, 2, err);
	meter->runs = 1;
	return pmdiff_meter_measure(meter, &it->shop.trees[TREE_STEP], &sides[TREE_STEP],
				    1, err);
}

/* Finds the end of the range that the step is closer to. */
static int bisection_judge_step(enum side_of_range *out, struct bisection *it,
				const struct pmdiff_side sides[2], struct pm_error *err)
{
	PM_CLEANUP(pm_comparison_release) struct pm_comparison comparison = { 0 };
	const struct pmdiff_side with[] = {
		sides[TREE_GOOD].stats.len ? sides[TREE_GOOD] : it->good,
		sides[TREE_STEP],
	};
	const struct pm_compare_row *row;
	int ret = pmdiff_compare_sides(&comparison, with, it->shop.meter.options, err);

	if (ret < 0)
		return ret;
	row = pmdiff_moved_in(&it->moved, &comparison);
	if (!row)
		return pm_error_set(err, PMDIFF_BAD_COMMIT, "it has no %s%s%s",
				    it->moved.event, pm_text_if(it->moved.scope, " of "),
				    pm_text_or_empty(it->moved.scope));
	if ((row->new.median - row->base.median) / (it->moved.after - it->moved.before) >
	    0.5)
		*out = BAD;
	else
		*out = GOOD;
	return 0;
}

static int bisection_try_step(enum side_of_range *out, struct bisection *it,
			      const struct pmdiff_commit *commit, struct pm_error *err)
{
	PM_CLEANUP(release_end_sides) struct pmdiff_side sides[2] = { 0 };
	int ret = bisection_build_step(it, commit, TREE_STEP, err);

	if (ret == 0)
		ret = bisection_measure_step(it, sides, err);
	if (ret == 0)
		ret = bisection_judge_step(out, it, sides, err);
	return ret;
}

static int bisection_decide_commit(struct bisection *it, const char *hash, size_t left,
				   struct pm_error *err)
{
	const struct pmdiff_options *options = it->shop.meter.options;
	PM_CLEANUP(pmdiff_commit_release) struct pmdiff_commit commit = { 0 };
	enum side_of_range where = UNKNOWN;
	const char *decision = "good";
	struct pm_error why = { 0 };
	int ret = pmdiff_commit_find(&commit, &it->shop.repository, hash, err);

	if (ret < 0)
		return ret;
	ret = bisection_try_step(&where, it, &commit, &why);
	if (ret < 0 && ret != PMDIFF_BAD_COMMIT) {
		if (err)
			*err = why;
		return ret;
	}
	it->measured++;
	pmdiff_progress_clear(&it->shop.meter.progress);
	if (ret < 0)
		decision = "left out: ";
	else if (where == BAD)
		decision = "bad";
	pmdiff_say(options, "of %zu, " PMDIFF_SHORT_HASH " (%.100s) is %s%s", left,
		   commit.hash, commit.subject, decision, pm_text_if(ret < 0, why.text));
	if (ret < 0)
		return pmdiff_range_add(&it->range.skipped, hash, err);
	if (where == GOOD)
		return pmdiff_range_add(&it->range.good, hash, err);
	free(it->range.bad);
	it->range.bad = strdup(hash);
	if (!it->range.bad)
		return pm_error_no_memory(err);
	return 0;
}

/* ---- the ends ------------------------------------------------------------------------ */

static int bisection_measure_ends(struct bisection *it, struct pm_error *err)
{
	PM_CLEANUP(release_end_sides) struct pmdiff_side sides[2] = { 0 };
	struct pmdiff_meter *meter = &it->shop.meter;
	const char *row = meter->options->measured.row;
	int ret = 0;

	for (size_t i = 0; i < 2 && ret == 0; i++)
		ret = pmdiff_meter_build(meter, &it->shop.trees[i], err);
	/* Without a row, functions can show a change that cancels out in the total. */
	if (!row || strncmp(row, "fn:", 3) == 0)
		pmdiff_meter_explain(meter);
	if (ret == 0)
		ret = pmdiff_meter_measure(meter, it->shop.trees, sides, 2, err);
	if (ret == 0)
		ret = pmdiff_moved_find(&it->moved, sides, meter, err);
	if (!row)
		meter->all_functions = false;
	if (ret < 0)
		return ret;
	it->good = sides[0];
	sides[0] = (struct pmdiff_side){ 0 };
	return 0;
}

/* ---- the result ---------------------------------------------------------------------- */

static int bisection_measure_pair(struct bisection *it, struct pmdiff_side sides[2])
{
	struct pmdiff_meter *meter = &it->shop.meter;

	meter->runs = it->moved.class == PM_STAT_EXACT ? 1 : it->runs;
	pmdiff_meter_explain(meter);
	return pmdiff_meter_measure(meter, it->shop.trees, sides, 2, NULL);
}

/* Measures the commit and its predecessor once more, together. */
static int bisection_compare_pair(struct bisection *it, struct pm_comparison *out,
				  const struct pmdiff_commit *commit)
{
	PM_CLEANUP(release_end_sides) struct pmdiff_side sides[2] = { 0 };
	PM_CLEANUP(pmdiff_commit_release) struct pmdiff_commit before = { 0 };
	PM_AUTO_FREE char *rev = NULL;
	int ret;

	if (asprintf(&rev, "%s^", commit->hash) < 0) {
		rev = NULL;
		return -ENOMEM;
	}
	ret = pmdiff_commit_find(&before, &it->shop.repository, rev, NULL);
	if (ret == 0)
		ret = bisection_build_step(it, &before, TREE_GOOD, NULL);
	if (ret == 0)
		ret = bisection_build_step(it, commit, TREE_STEP, NULL);
	if (ret == 0)
		ret = bisection_measure_pair(it, sides);
	if (ret < 0)
		return ret;
	return pmdiff_compare_sides(out, sides, it->shop.meter.options, NULL);
}

static int bisection_report_found(struct bisection *it, FILE *to, struct pm_error *err)
{
	PM_CLEANUP(pm_comparison_release) struct pm_comparison comparison = { 0 };
	PM_CLEANUP(pmdiff_commit_release) struct pmdiff_commit commit = { 0 };
	int ret = pmdiff_commit_find(&commit, &it->shop.repository, it->range.bad, err);
	bool compared;

	if (ret < 0)
		return ret;
	compared = bisection_compare_pair(it, &comparison, &commit) == 0;
	pmdiff_tell_commit(to, &commit, &it->moved, compared ? &comparison : NULL);
	return 0;
}

static int bisection_report_candidates(struct bisection *it, FILE *to,
				       struct pm_error *err)
{
	PM_CLEANUP(pmdiff_hashes_release) struct pmdiff_hashes left = { 0 };
	int ret = pmdiff_range_left(&left, &it->range, err);

	if (ret == 0)
		fprintf(to,
			"%s%s%s moved in one of these, some of which could not be "
			"measured:\n",
			pm_text_or_empty(it->moved.scope),
			pm_text_if(it->moved.scope, ", "), it->moved.event);
	for (size_t i = 0; i < left.list.len && ret == 0; i++) {
		PM_CLEANUP(pmdiff_commit_release) struct pmdiff_commit commit = { 0 };
		PM_CLEANUP(pm_str_release) struct pm_str subject = { 0 };

		ret = pmdiff_commit_find(&commit, &it->shop.repository, left.list.data[i],
					 err);
		if (ret < 0)
			break;
		pm_str_printable(&subject, commit.subject, strlen(commit.subject));
		fprintf(to, "    %s %s\n", commit.hash, pm_str_text(&subject));
	}
	if (ret < 0)
		return ret;
	return 1;
}

/* ---- the whole search ---------------------------------------------------------------- */

static int bisection_search_commit(struct bisection *it, FILE *to, struct pm_error *err)
{
	PM_AUTO_FREE char *next = NULL;
	size_t left;
	int ret = bisection_measure_ends(it, err);

	it->shop.meter.brief = true;
	while (ret == 0) {
		free(PM_TAKE_PTR(next));
		ret = pmdiff_range_next(&next, &left, &it->range, err);
		if (ret < 0 || !next)
			break;
		ret = bisection_decide_commit(it, next, left, err);
	}
	if (ret < 0)
		return ret;
	if (left == 1)
		return bisection_report_found(it, to, err);
	return bisection_report_candidates(it, to, err);
}

int pmdiff_bisect(const struct pmdiff_options *options, FILE *to, struct pm_error *err)
{
	static const char *const roles[] = { "the good end", "the bad end" };
	PM_CLEANUP(bisection_release) struct bisection it = { 0 };
	int ret = pmdiff_workshop_open(&it.shop, options, roles, err);

	if (ret == 0)
		ret = pmdiff_range_init(&it.range, it.shop.commits[0].hash,
					it.shop.commits[1].hash, err);
	it.runs = it.shop.meter.runs;
	if (ret < 0)
		return ret;
	return bisection_search_commit(&it, to, err);
}
