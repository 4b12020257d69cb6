/* SPDX-License-Identifier: MIT */
#include "cases.h"

#include <string.h>

#include "pm/suite.h"
#include "say.h"

struct measuring {
	struct pmdiff_workshop *shop;
	struct pmdiff_side *sides; /* array of two */
	size_t wanted; /* number of cases that --case selects */
};

/* ---- one case -------------------------------------------------------------------------- */

static void clear_trees_attempt(struct pmdiff_tree *trees)
{
	for (size_t i = 0; i < 2; i++) {
		pmdiff_tree_forget_missing(&trees[i]);
		trees[i].failed = trees[i].absent = false;
	}
}

/* Drops the runs of a side: without runs of the other side, they are not a
 * measurement. */
static void release_side_runs(struct pmdiff_side *side)
{
	for (size_t i = 0; i < side->stats.len; i++)
		pm_stat_release(&side->stats.data[i]);
	pm_vec_release(&side->stats);
}

/* Moves the measured documents into the case. If the program is missing, that is not a
 * failure if the other side has it: the case is new, or gone. */
static int move_runs_to_case(struct pmdiff_side_case *to, struct pmdiff_side *from,
			     const struct pm_error *why, bool failed)
{
	pm_vec_release(&to->stats);
	to->stats.data = from->stats.data;
	to->stats.len = from->stats.len;
	to->stats.cap = from->stats.cap;
	from->stats.data = NULL;
	from->stats.len = from->stats.cap = 0;
	if (!failed)
		return 0;
	free(to->failure);
	to->failure = strdup(why->text);
	if (!to->failure)
		return -ENOMEM;
	return 0;
}

/* After one side has failed, measures only the other one, because the case may be new and
 * have a hard limit. */
static int measure_side_that_works(struct measuring *it, struct pmdiff_side of[2],
				   size_t failed, struct pm_error why[2],
				   struct pm_error *err)
{
	struct pmdiff_tree *tree = &it->shop->trees[!failed];
	struct pmdiff_side *side = &of[!failed];
	int ret;

	release_side_runs(&of[0]);
	release_side_runs(&of[1]);
	pmdiff_tree_forget_missing(tree);
	ret = pmdiff_meter_measure(&it->shop->meter, tree, side, 1, &why[!failed]);
	if (ret == -ENOMEM) {
		*err = why[!failed];
		return ret;
	}
	tree->failed = ret < 0;
	if (ret < 0)
		release_side_runs(side);
	return 0;
}

static int measure_sides_of_case(struct measuring *it, struct pmdiff_side of[2],
				 struct pm_error why[2], struct pm_error *err)
{
	struct pmdiff_tree *trees = it->shop->trees;
	struct pm_error first = { .offset = -1 };
	int ret = pmdiff_meter_measure(&it->shop->meter, trees, of, 2, &first);

	if (ret == 0)
		return 0;
	if (ret == -ENOMEM) {
		*err = first;
		return ret;
	}
	/* A problem that both sides have, such as a function that neither has, is not the
	 * fault of a tree. */
	if (!trees[0].failed && !trees[1].failed) {
		trees[0].failed = trees[1].failed = true;
		why[0] = why[1] = first;
		release_side_runs(&of[0]);
		release_side_runs(&of[1]);
		return 0;
	}
	why[trees[1].failed] = first;
	return measure_side_that_works(it, of, trees[1].failed, why, err);
}

static void release_case_sides(struct pmdiff_side (*sides)[2])
{
	pmdiff_side_release(&(*sides)[0]);
	pmdiff_side_release(&(*sides)[1]);
}

/* @on says which sides have the case; without a harness, both have it. */
static int measure_case_of_sides(struct measuring *it, const char *name,
				 const char *group,
				 const struct pmdiff_measured *measured, const bool on[2],
				 struct pm_error *err)
{
	PM_CLEANUP(release_case_sides) struct pmdiff_side of[2] = { 0 };
	struct pmdiff_meter *meter = &it->shop->meter;
	struct pmdiff_tree *trees = it->shop->trees;
	struct pm_error why[2] = { { .offset = -1 }, { .offset = -1 } };
	int ret = 0;

	clear_trees_attempt(trees);
	pmdiff_meter_choose(meter, measured, name);
	pmdiff_meter_explain(meter);
	if (on[0] && on[1])
		ret = measure_sides_of_case(it, of, why, err);
	else
		ret = measure_side_that_works(it, of, !on[1], why, err);
	for (size_t i = 0; i < 2 && ret == 0; i++) {
		struct pmdiff_side_case *to =
			pmdiff_side_add_case(&it->sides[i], name, group);
		bool gone = !on[i] || (trees[i].absent && !trees[!i].absent);

		if (!to ||
		    move_runs_to_case(to, &of[i], &why[i], trees[i].failed && !gone) < 0)
			return pm_error_no_memory(err);
		to->explains = pmdiff_names_no_functions(measured);
		to->measured = *measured;
		if (to->failure)
			pmdiff_say(meter->options, "%s: %s", name, to->failure);
	}
	return ret;
}

/* ---- the cases of a harness ------------------------------------------------------------ */

static bool names_contain(const struct pmdiff_names *names, const char *name)
{
	for (size_t i = 0; i < names->list.len; i++)
		if (strcmp(names->list.data[i], name) == 0)
			return true;
	return false;
}

static void release_case_lists(struct pmdiff_names (*lists)[2])
{
	pmdiff_names_release(&(*lists)[0]);
	pmdiff_names_release(&(*lists)[1]);
}

/* Stores the failure of the command as that of a single case, because otherwise nothing
 * would show it. */
static int fail_harness_as_case(struct measuring *it, const struct pmdiff_case *one,
				const struct pm_error why[2], const int code[2],
				struct pm_error *err)
{
	it->wanted++;
	for (size_t i = 0; i < 2; i++) {
		struct pmdiff_side_case *to =
			pmdiff_side_add_case(&it->sides[i], one->name, one->name);

		if (!to || (code[i] < 0 && !(to->failure = strdup(why[i].text))))
			return pm_error_no_memory(err);
		if (code[i] < 0)
			pmdiff_say(it->shop->meter.options, "%s: %s", one->name,
				   to->failure);
	}
	return 0;
}

/* Moves the words of the case's command, which may be run once more, see profile.h. */
static void keep_case_words(struct pmdiff_side_case *to, struct pmdiff_names *words)
{
	to->words.data = words->list.data;
	to->words.len = words->list.len;
	to->words.cap = words->list.cap;
	*words = (struct pmdiff_names){ 0 };
}

static int measure_of_harness(struct measuring *it, const struct pmdiff_case *one,
			      const struct pmdiff_harness *harness, const char *name,
			      const bool on[2], struct pm_error *err)
{
	PM_CLEANUP(pmdiff_names_release) struct pmdiff_names words = { 0 };
	struct pmdiff_measured measured = one->measured;
	const char *wrong = pm_suite_name_check(name);
	struct pmdiff_side_case *there = pmdiff_side_find_case(&it->sides[0], name);
	int ret;

	if (!pmdiff_is_case_wanted(it->shop->meter.options, name, one->name))
		return 0;
	it->wanted++;
	/* The case was registered twice, and the filter matches both. */
	if (there && there->group == one->name) {
		pmdiff_say(it->shop->meter.options,
			   "%s: several cases are called %s: they are measured as one",
			   one->name, name);
		return 0;
	}
	if (there)
		return pm_error_set(err, -EINVAL, "two cases are called \"%.200s\"",
				    name);
	if (wrong) {
		pmdiff_say(it->shop->meter.options, "%s: %s: it is left out", one->name,
			   wrong);
		return 0;
	}
	if (pmdiff_harness_words(&words, harness, one->measured.command, name) < 0)
		return pm_error_no_memory(err);
	measured.command = (const char *const *)words.list.data;
	if (measured.part == PM_DIFF_PART_UNSET)
		measured.marks = pmdiff_harness_marks(harness);
	ret = measure_case_of_sides(it, name, one->name, &measured, on, err);
	if (ret == 0)
		keep_case_words(pmdiff_side_find_case(&it->sides[1], name), &words);
	return ret;
}

static int measure_listed(struct measuring *it, const struct pmdiff_case *one,
			  const struct pmdiff_harness *harness,
			  const struct pmdiff_names lists[2], struct pm_error *err)
{
	int ret = 0;

	for (size_t i = 0; i < lists[1].list.len && ret == 0; i++) {
		const char *name = lists[1].list.data[i];
		const bool on[] = { names_contain(&lists[0], name), true };

		ret = measure_of_harness(it, one, harness, name, on, err);
	}
	for (size_t i = 0; i < lists[0].list.len && ret == 0; i++) {
		const char *name = lists[0].list.data[i];

		if (!names_contain(&lists[1], name))
			ret = measure_of_harness(it, one, harness, name,
						 (const bool[]){ true, false }, err);
	}
	return ret;
}

static int measure_group(struct measuring *it, const struct pmdiff_case *one,
			 struct pm_error *err)
{
	PM_CLEANUP(release_case_lists) struct pmdiff_names lists[2] = { 0 };
	const struct pmdiff_harness *harness = pmdiff_harness_of(&one->measured);
	struct pmdiff_meter *meter = &it->shop->meter;
	struct pm_error why[2] = { { .offset = -1 }, { .offset = -1 } };
	int ret[2];

	clear_trees_attempt(it->shop->trees);
	pmdiff_meter_choose(meter, &one->measured, one->name);
	/* Ask the new side first, because the configuration belongs to it. */
	for (size_t i = 2; i-- > 0;) {
		ret[i] = pmdiff_harness_list(&lists[i], &harness, meter,
					     &it->shop->trees[i], &why[i]);
		if (ret[i] == -ENOMEM) {
			*err = why[i];
			return ret[i];
		}
	}
	if (ret[0] < 0 && ret[1] < 0)
		return fail_harness_as_case(it, one, why, ret, err);
	if (!harness)
		return measure_case_of_sides(it, one->name, one->name, &one->measured,
					     (const bool[]){ true, true }, err);
	/* A side that has the program but gives no list has failed. */
	for (size_t i = 0; i < 2; i++)
		if (ret[i] < 0 && ret[i] != -ENOENT)
			return fail_harness_as_case(it, one, why, ret, err);
	pmdiff_say(meter->options, "%s: %zu cases of %s", one->name, lists[1].list.len,
		   pmdiff_harness_name(harness));
	return measure_listed(it, one, harness, lists, err);
}

/* ---- all ------------------------------------------------------------------------------- */

int pmdiff_cases_measure(struct pmdiff_workshop *workshop, struct pmdiff_side sides[2],
			 struct pm_error *err)
{
	struct measuring it = { .shop = workshop, .sides = sides };
	const struct pmdiff_options *options = workshop->meter.options;
	int ret = 0;

	for (size_t i = 0; i < options->cases.len && ret == 0; i++) {
		const struct pmdiff_case *one = &options->cases.data[i];

		if (one->measured.harness > PM_DIFF_HARNESS_NONE) {
			ret = measure_group(&it, one, err);
		} else if (pmdiff_is_case_wanted(options, one->name, NULL)) {
			it.wanted++;
			ret = measure_case_of_sides(&it, one->name, NULL, &one->measured,
						    (const bool[]){ true, true }, err);
		}
	}
	if (ret == 0 && it.wanted == 0)
		ret = pm_error_set(err, -EINVAL, "--case %.200s means none of the cases",
				   options->case_pattern);
	return ret;
}
