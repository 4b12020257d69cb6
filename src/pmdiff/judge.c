/* SPDX-License-Identifier: MIT */
#include "judge.h"
#include "history.h"
#include "place.h"
#include "say.h"

#include <string.h>

enum {
	SEED = 0x706d, /* arbitrary constant, so that equal numbers give equal verdicts */
};

/* ---- history ----------------------------------------------------------------------------- */

static bool are_stats_of_commit(const struct pm_stat *stats, size_t len,
				const char *commit)
{
	for (size_t i = 0; i < len; i++)
		if (stats[i].subjects.len > 0 && stats[i].subjects.data[0].commit &&
		    strcmp(stats[i].subjects.data[0].commit, commit) == 0)
			return true;
	return false;
}

/* Whether @commit is one of those that are compared; it must not be part of its own
 * reference. */
static bool is_commit_judged(const struct pmdiff_inputs *inputs, const char *commit)
{
	const struct pmdiff_side *new = &inputs->sides[1];

	if (new->commit)
		return strcmp(new->commit, commit) == 0;
	for (size_t i = 0; i < new->cases.len; i++)
		if (are_stats_of_commit(new->cases.data[i].stats.data,
					new->cases.data[i].stats.len, commit))
			return true;
	return are_stats_of_commit(new->stats.data, new->stats.len, commit);
}

static void report_history_warnings(const struct pmdiff_history *history,
				    const struct pmdiff_options *options)
{
	for (size_t i = 0; i < history->warnings.len; i++)
		pmdiff_say(options, "warning: %s", history->warnings.data[i]);
	if (history->foreign > 0)
		pmdiff_say(options,
			   "warning: %s: %zu files are not named as commits are: they "
			   "are left out",
			   options->history, history->foreign);
}

struct earlier {
	struct pmdiff_history history;
	PM_VEC(const struct pm_stat *) stats; /* of commits without cases */
	PM_VEC(struct earlier_case {
		const char *name;
		PM_VEC(const struct pm_stat *) list;
	})
	cases;
};

static void earlier_release(struct earlier *earlier)
{
	pm_vec_release(&earlier->stats);
	for (size_t i = 0; i < earlier->cases.len; i++)
		pm_vec_release(&earlier->cases.data[i].list);
	pm_vec_release(&earlier->cases);
	pmdiff_history_release(&earlier->history);
}

static int earlier_add_case(struct earlier *out, const struct pm_suite_case *one)
{
	size_t at = 0;

	if (!one->name)
		return pm_vec_push(&out->stats, &one->stat);
	while (at < out->cases.len && strcmp(out->cases.data[at].name, one->name) != 0)
		at++;
	if (at == out->cases.len &&
	    pm_vec_push(&out->cases, (struct earlier_case){ .name = one->name }) < 0)
		return -ENOMEM;
	return pm_vec_push(&out->cases.data[at].list, &one->stat);
}

static int read_earlier_documents(struct earlier *out, const struct pmdiff_inputs *inputs,
				  const struct pmdiff_options *options,
				  struct pm_error *err)
{
	const struct pmdiff_history *history = &out->history;
	int ret;

	if (!options->history || inputs->recordings)
		return 0;
	ret = pmdiff_history_read(&out->history, options->history, err);
	/* The directory of the history is created at the end of the first run. */
	if (ret == -ENOENT && options->action == PMDIFF_RUN)
		return 0;
	if (ret == 0)
		report_history_warnings(history, options);
	for (size_t i = 0; i < history->commits.len && ret == 0; i++) {
		const struct pmdiff_history_commit *commit = &history->commits.data[i];

		if (is_commit_judged(inputs, commit->commit))
			continue;
		for (size_t j = 0; j < commit->suite.cases.len && ret == 0; j++)
			if (earlier_add_case(out, &commit->suite.cases.data[j]) < 0)
				ret = pm_error_no_memory(err);
	}
	return ret;
}

/* ---- comparing --------------------------------------------------------------------------- */

struct pointers {
	PM_VEC(const struct pm_stat *) list;
};

static void pointers_release(struct pointers *pointers)
{
	pm_vec_release(&pointers->list);
}

static int point_at_stats(struct pointers *out, const struct pm_stat *stats, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (pm_vec_push(&out->list, &stats[i]) < 0)
			return -ENOMEM;
	return 0;
}

/* The arguments of pm_compare_cases(), with the lists that it borrows. */
struct compared {
	PM_VEC(struct pm_compare_input) inputs;
	PM_VEC(struct pointers) lists;
};

static void compared_release(struct compared *compared)
{
	for (size_t i = 0; i < compared->lists.len; i++)
		pointers_release(&compared->lists.data[i]);
	pm_vec_release(&compared->lists);
	pm_vec_release(&compared->inputs);
}

/* Adds the documents as a list, which is valid as long as @compared. */
static int compared_add_list(struct compared *compared, const struct pm_stat *stats,
			     size_t len, const struct pm_stat *const **out,
			     size_t *ret_len)
{
	struct pointers list = { 0 };

	if (point_at_stats(&list, stats, len) < 0 ||
	    pm_vec_push(&compared->lists, list) < 0) {
		pointers_release(&list);
		return -ENOMEM;
	}
	*out = list.list.data;
	*ret_len = list.list.len;
	return 0;
}

static int compared_add_input(struct compared *compared,
			      const struct pmdiff_side_case *base,
			      const struct pmdiff_side_case *new,
			      const struct earlier *earlier)
{
	const struct pmdiff_side_case *any = new ? new : base;
	struct pm_compare_input input = {
		.name = any->name,
		.group = any->group,
		.failed_base = base ? base->failure : NULL,
		.failed_new = new ? new->failure : NULL,
		.functions_explain = any->explains,
	};

	if ((base && compared_add_list(compared, base->stats.data, base->stats.len,
				       &input.base, &input.base_len) < 0) ||
	    (new &&compared_add_list(compared, new->stats.data, new->stats.len,
				     &input.new, &input.new_len) < 0))
		return -ENOMEM;
	for (size_t i = 0; earlier && i < earlier->cases.len; i++)
		if (strcmp(earlier->cases.data[i].name, any->name) == 0) {
			input.history = earlier->cases.data[i].list.data;
			input.history_len = earlier->cases.data[i].list.len;
		}
	return pm_vec_push(&compared->inputs, input);
}

/* Adds the cases in the order of the new side; cases that only the base has come last. */
static int compared_add_cases(struct compared *compared,
			      const struct pmdiff_side sides[2],
			      const struct pmdiff_options *options,
			      const struct earlier *earlier)
{
	for (size_t i = 0; i < sides[1].cases.len; i++) {
		const struct pmdiff_side_case *new = &sides[1].cases.data[i];

		if (pmdiff_is_case_wanted(options, new->name, new->group) &&
		    compared_add_input(compared,
				       pmdiff_side_find_case(&sides[0], new->name), new,
				       earlier) < 0)
			return -ENOMEM;
	}
	for (size_t i = 0; i < sides[0].cases.len; i++) {
		const struct pmdiff_side_case *base = &sides[0].cases.data[i];

		if (pmdiff_is_case_wanted(options, base->name, base->group) &&
		    !pmdiff_side_find_case(&sides[1], base->name) &&
		    compared_add_input(compared, base, NULL, earlier) < 0)
			return -ENOMEM;
	}
	return 0;
}

static int compared_add_only_input(struct compared *compared,
				   const struct pmdiff_side sides[2],
				   const struct pm_compare_options *how)
{
	/* The only document of `ab`, which the base has, contains both sides. */
	const struct pmdiff_side *last = &sides[sides[1].stats.len > 0];
	struct pm_compare_input input = { .history = how->history,
					  .history_len = how->history_len,
					  .functions_explain = sides[1].explains };

	if (compared_add_list(compared, sides[0].stats.data, sides[0].stats.len,
			      &input.base, &input.base_len) < 0 ||
	    compared_add_list(compared, last->stats.data, last->stats.len, &input.new,
			      &input.new_len) < 0)
		return -ENOMEM;
	return pm_vec_push(&compared->inputs, input);
}

static int compare_counts_of_sides(struct pm_comparison *out,
				   const struct pmdiff_side sides[2],
				   const struct pmdiff_options *options,
				   const struct earlier *earlier,
				   const struct pm_compare_options *how,
				   struct pm_error *err)
{
	PM_CLEANUP(compared_release) struct compared compared = { 0 };
	bool cases = sides[0].cases.len + sides[1].cases.len > 0;
	int ret;

	if (cases)
		ret = compared_add_cases(&compared, sides, options, earlier);
	else
		ret = compared_add_only_input(&compared, sides, how);

	if (ret < 0)
		return pm_error_no_memory(err);
	if (compared.inputs.len == 0)
		return pm_error_set(err, -EINVAL, "--case %.200s means none of the cases",
				    options->case_pattern);
	return pm_compare_cases(out, compared.inputs.data, compared.inputs.len, how, err);
}

/* Replaces the names in the documents by the side's name, commit and subject, where these
 * are known. */
static int set_compared_names(struct pm_compare_of *of, const struct pmdiff_side *side)
{
	struct {
		char **to;
		const char *text;
	} texts[] = { { &of->name, side->name },
		      { &of->commit, side->commit },
		      { &of->subject, side->subject } };

	for (size_t i = 0; i < PM_ARRAY_LEN(texts); i++) {
		char *copy;

		if (!texts[i].text)
			continue;
		copy = strdup(texts[i].text);
		if (!copy)
			return -ENOMEM;
		free(*texts[i].to);
		*texts[i].to = copy;
	}
	return 0;
}

static int set_names_of_sides(struct pm_comparison *comparison,
			      const struct pmdiff_inputs *inputs)
{
	int ret = set_compared_names(&comparison->base, &inputs->sides[0]);

	if (ret < 0)
		return ret;
	return set_compared_names(&comparison->new, &inputs->sides[1]);
}

/* Makes paths of sources relative to the repository, because the worktree no longer
 * exists when they are read. */
static void shorten_paths_below(struct pm_comparison *comparison, const char *root)
{
	size_t len = strlen(pm_text_or_empty(root));

	for (size_t i = 0; i < comparison->rows.len && len > 0; i++) {
		char *file = comparison->rows.data[i].file;

		if (file && strncmp(file, root, len) == 0 && file[len] == '/' &&
		    file[len + 1] != '\0')
			memmove(file, file + len + 1, strlen(file + len + 1) + 1);
	}
}

static int shorten_compared_paths(struct pm_comparison *comparison,
				  const struct pmdiff_inputs *inputs,
				  struct pm_error *err)
{
	PM_AUTO_FREE char *top = NULL;
	int ret;

	for (size_t side = 0; side < PM_ARRAY_LEN(inputs->sides); side++)
		shorten_paths_below(comparison, inputs->sides[side].root);
	ret = pmdiff_find_top(&top, err);
	if (ret == 0)
		shorten_paths_below(comparison, top);
	return ret;
}

int pmdiff_judge(struct pm_comparison *out, const struct pmdiff_inputs *inputs,
		 const struct pmdiff_options *options, struct pm_error *err)
{
	PM_CLEANUP(earlier_release) struct earlier earlier = { 0 };
	struct pm_compare_options how = {
		.gates = &options->gates,
		.force = options->force,
		.gates_default = { -1, -1, -1 },
		.seed = SEED,
		.history_gates = &options->history_gates,
		.acks = &options->acks,
		.cases_left_out = options->case_pattern != NULL,
	};
	int ret = read_earlier_documents(&earlier, inputs, options, err);

	*out = (struct pm_comparison){ 0 };
	if (ret < 0)
		return ret;
	how.history = earlier.stats.data;
	how.history_len = earlier.stats.len;
	if (inputs->recordings)
		ret = pm_compare_profiles(out, inputs->profiles[0], inputs->profiles[1],
					  &how, err);
	else
		ret = compare_counts_of_sides(out, inputs->sides, options, &earlier, &how,
					      err);
	/* If the files have nothing in common, that is not an error of usage. */
	if (ret == -EINVAL)
		ret = -EXDEV;
	if ((ret == 0 || ret == -EXDEV) && set_names_of_sides(out, inputs) < 0)
		ret = pm_error_no_memory(err);
	if (ret < 0)
		return ret;
	return shorten_compared_paths(out, inputs, err);
}

int pmdiff_check_gates(const struct pmdiff_side sides[2],
		       const struct pmdiff_options *options, struct pm_error *err)
{
	PM_CLEANUP(pm_comparison_release) struct pm_comparison comparison = { 0 };
	struct pm_compare_options how = { .gates = &options->gates,
					  .force = true,
					  .gates_default = { -1, -1, -1 },
					  .seed = SEED };
	struct pm_error why = { .offset = -1 };
	int ret = compare_counts_of_sides(&comparison, sides, options, NULL, &how, &why);

	/* Other problems are reported when all runs are compared. */
	if (ret != -ENOENT)
		return 0;
	*err = why;
	return -EINVAL; /* the result for any invalid option */
}

/* ---- keeping ----------------------------------------------------------------------------- */

static const struct pm_suite *find_suite_of_commit(const struct pmdiff_history *history,
						   const char *commit)
{
	for (size_t i = 0; i < history->commits.len; i++)
		if (strcmp(history->commits.data[i].commit, commit) == 0)
			return &history->commits.data[i].suite;
	return NULL;
}

static void release_joined_suite(struct pm_suite *suite)
{
	for (size_t i = 0; i < suite->cases.len; i++)
		pm_stat_join_release(&suite->cases.data[i].stat);
	pm_vec_release(&suite->cases);
}

/* Joins the runs of each case into one document. Everything except the arrays
 * is borrowed from @side. */
static int join_runs_of_side(struct pm_suite *out, const struct pmdiff_side *side,
			     struct pm_error *err)
{
	bool cases = side->cases.len > 0;
	int ret = 0;

	for (size_t i = 0; i < (cases ? side->cases.len : 1) && ret == 0; i++) {
		const struct pmdiff_side_case *of = cases ? &side->cases.data[i] : NULL;
		struct pm_suite_case one = { .name = of ? of->name : NULL };

		if (of && of->stats.len == 0)
			continue;
		if (of)
			ret = pm_stat_join(&one.stat, of->stats.data, of->stats.len, err);
		else
			ret = pm_stat_join(&one.stat, side->stats.data, side->stats.len,
					   err);
		if (ret == 0 && pm_vec_push(&out->cases, one) < 0) {
			pm_stat_join_release(&one.stat);
			ret = pm_error_no_memory(err);
		}
	}
	return ret;
}

/* Adds the cases that --case has left out, so that they keep their entry in the history.
 * They are borrowed, too. */
static int add_left_out_cases(struct pm_suite *out, const struct pm_suite *kept,
			      struct pm_error *err)
{
	int ret = 0;

	for (size_t i = 0; i < kept->cases.len && ret == 0; i++) {
		const struct pm_suite_case *of = &kept->cases.data[i];
		struct pm_suite_case one = { .name = of->name };

		if (!of->name || pm_suite_find(out, of->name))
			continue;
		ret = pm_stat_join(&one.stat, &of->stat, 1, err);
		if (ret == 0 && pm_vec_push(&out->cases, one) < 0) {
			pm_stat_join_release(&one.stat);
			ret = pm_error_no_memory(err);
		}
	}
	return ret;
}

/* Stores the side's counts. @kept is the commit's entry in the history; NULL: none. */
static int keep_side_in_history(const struct pmdiff_side *side,
				const struct pm_suite *kept,
				const struct pmdiff_options *options,
				struct pm_error *err)
{
	PM_CLEANUP(release_joined_suite) struct pm_suite suite = { 0 };
	int ret = join_runs_of_side(&suite, side, err);

	if (ret == 0 && kept && options->case_pattern && suite.cases.len > 0)
		ret = add_left_out_cases(&suite, kept, err);
	if (ret < 0 || suite.cases.len == 0)
		return ret;
	return pmdiff_history_write_suite(options->history, side->commit, &suite, err);
}

int pmdiff_keep(const struct pmdiff_inputs *inputs, const struct pmdiff_options *options,
		struct pm_error *err)
{
	PM_CLEANUP(pmdiff_history_release) struct pmdiff_history history = { 0 };
	int ret;

	if (!options->history)
		return 0;
	ret = pmdiff_history_read(&history, options->history, err);
	if (ret == -ENOENT)
		ret = 0;
	for (size_t i = 0; i < PM_ARRAY_LEN(inputs->sides) && ret == 0; i++) {
		const struct pmdiff_side *side = &inputs->sides[i];
		const struct pm_suite *kept =
			find_suite_of_commit(&history, side->commit);

		if (i > 0 || !kept)
			ret = keep_side_in_history(side, kept, options, err);
	}
	return ret;
}

enum pmdiff_status pmdiff_status_of(const struct pm_comparison *comparison,
				    const struct pmdiff_options *options)
{
	if (comparison->verdict == PM_VERDICT_WORSE)
		return PMDIFF_STATUS_REGRESSION;
	for (size_t i = 0; i < comparison->cases.len; i++)
		if (comparison->cases.data[i].failed_new)
			return PMDIFF_STATUS_FAILED;
	if (comparison->verdict == PM_VERDICT_INCONCLUSIVE && options->strict)
		return PMDIFF_STATUS_INCONCLUSIVE;
	return PMDIFF_STATUS_FINE;
}
