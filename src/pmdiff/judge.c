/* SPDX-License-Identifier: MIT */
#include "judge.h"
#include "history.h"
#include "place.h"
#include "say.h"

#include <string.h>

enum {
	SEED = 0x706d, /* any: the same numbers are to give the same verdict */
};

static int no_memory(struct pm_error *err)
{
	return pm_error_set(err, -ENOMEM, "out of memory");
}

/* ---- history ----------------------------------------------------------------------------- */

/* The commits that are judged are no measure of themselves. */
static bool is_judged(const struct pmdiff_inputs *inputs, const char *commit)
{
	const struct pmdiff_side *new = &inputs->sides[1];

	if (new->commit)
		return strcmp(new->commit, commit) == 0;
	for (size_t i = 0; i < new->stats.len; i++) {
		const struct pm_stat *stat = &new->stats.data[i];

		if (stat->subjects.len > 0 && stat->subjects.data[0].commit &&
		    strcmp(stat->subjects.data[0].commit, commit) == 0)
			return true;
	}
	return false;
}

static void warn_of(const struct pmdiff_history *history,
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
	PM_VEC(const struct pm_stat *) stats;
};

static void release_earlier(struct earlier *earlier)
{
	pm_vec_release(&earlier->stats);
	pmdiff_history_release(&earlier->history);
}

static int read_earlier(struct earlier *ret, const struct pmdiff_inputs *inputs,
			const struct pmdiff_options *options, struct pm_error *err)
{
	const struct pmdiff_history *history = &ret->history;
	int r;

	if (!options->history || inputs->recordings)
		return 0;
	r = pmdiff_history_read(&ret->history, options->history, err);
	/* The first run of all makes it. */
	if (r == -ENOENT && options->action == PMDIFF_RUN)
		return 0;
	if (r == 0)
		warn_of(history, options);
	for (size_t i = 0; i < history->commits.len && r == 0; i++) {
		const struct pmdiff_history_commit *commit = &history->commits.data[i];

		if (!is_judged(inputs, commit->commit) &&
		    pm_vec_push(&ret->stats, &commit->stat) < 0)
			r = no_memory(err);
	}
	return r;
}

/* ---- comparing --------------------------------------------------------------------------- */

struct pointers {
	PM_VEC(const struct pm_stat *) list;
};

static void release_pointers(struct pointers *pointers)
{
	pm_vec_release(&pointers->list);
}

static int point_at(struct pointers *ret, const struct pmdiff_side *side,
		    struct pm_error *err)
{
	for (size_t i = 0; i < side->stats.len; i++)
		if (pm_vec_push(&ret->list, &side->stats.data[i]) < 0)
			return no_memory(err);
	return 0;
}

static int compare_counts(struct pm_comparison *ret, const struct pmdiff_inputs *inputs,
			  const struct pm_compare_options *how, struct pm_error *err)
{
	PM_CLEANUP(release_pointers) struct pointers base = { 0 };
	PM_CLEANUP(release_pointers) struct pointers new = { 0 };
	/* The one document of `ab` is both. */
	const struct pmdiff_side *last = &inputs->sides[inputs->sides[1].stats.len > 0];
	int r = point_at(&base, &inputs->sides[0], err);

	if (r == 0)
		r = point_at(&new, last, err);
	return r < 0 ? r
		     : pm_compare_stats(ret, base.list.data, base.list.len, new.list.data,
					new.list.len, how, err);
}

/* What we know of a side better than its numbers do. */
static int name_side(struct pm_compare_of *of, const struct pmdiff_side *side)
{
	struct {
		char **to;
		const char *text;
	} texts[] = { { &of->name, side->name },
		      { &of->commit, side->commit },
		      { &of->subject, side->subject } };

	for (size_t i = 0; i < PM_ARRAY_LEN(texts); i++) {
		char *copy = texts[i].text ? strdup(texts[i].text) : NULL;

		if (!texts[i].text)
			continue;
		if (!copy)
			return -ENOMEM;
		free(*texts[i].to);
		*texts[i].to = copy;
	}
	return 0;
}

static int name_sides(struct pm_comparison *comparison,
		      const struct pmdiff_inputs *inputs)
{
	int r = name_side(&comparison->base, &inputs->sides[0]);

	return r < 0 ? r : name_side(&comparison->new, &inputs->sides[1]);
}

/* Sources are told as people of the repository know them: a worktree is gone by then. */
static void shorten_files(struct pm_comparison *comparison, const char *root)
{
	size_t len = root ? strlen(root) : 0;

	for (size_t i = 0; i < comparison->rows.len && len > 0; i++) {
		char *file = comparison->rows.data[i].file;

		if (file && strncmp(file, root, len) == 0 && file[len] == '/' &&
		    file[len + 1] != '\0')
			memmove(file, file + len + 1, strlen(file + len + 1) + 1);
	}
}

static int shorten(struct pm_comparison *comparison, const struct pmdiff_inputs *inputs,
		   struct pm_error *err)
{
	PM_AUTO_FREE char *top = NULL;
	int r;

	for (size_t side = 0; side < PM_ARRAY_LEN(inputs->sides); side++)
		shorten_files(comparison, inputs->sides[side].root);
	r = pmdiff_find_top(&top, err);
	if (r == 0)
		shorten_files(comparison, top);
	return r;
}

int pmdiff_judge(struct pm_comparison *ret, const struct pmdiff_inputs *inputs,
		 const struct pmdiff_options *options, struct pm_error *err)
{
	PM_CLEANUP(release_earlier) struct earlier earlier = { 0 };
	struct pm_compare_options how = {
		.gates = &options->gates,
		.force = options->force,
		.gates_default = { -1, -1, -1 },
		.seed = SEED,
		.functions_explain = options->action == PMDIFF_RUN &&
				     pmdiff_names_no_functions(options),
	};
	int r = read_earlier(&earlier, inputs, options, err);

	*ret = (struct pm_comparison){ 0 };
	if (r < 0)
		return r;
	how.history = earlier.stats.data;
	how.history_len = earlier.stats.len;
	r = inputs->recordings ? pm_compare_profiles(ret, inputs->profiles[0],
						     inputs->profiles[1], &how, err)
			       : compare_counts(ret, inputs, &how, err);
	/* Files that have nothing in common are no mistake of words. */
	if (r == -EINVAL)
		r = -EXDEV;
	if ((r == 0 || r == -EXDEV) && name_sides(ret, inputs) < 0)
		r = no_memory(err);
	return r < 0 ? r : shorten(ret, inputs, err);
}

int pmdiff_check_gates(const struct pmdiff_side sides[2],
		       const struct pmdiff_options *options, struct pm_error *err)
{
	PM_CLEANUP(pm_comparison_release) struct pm_comparison comparison = { 0 };
	/* Borrowed: not to be released. */
	struct pmdiff_inputs inputs = { .sides = { sides[0], sides[1] } };
	struct pm_compare_options how = { .gates = &options->gates,
					  .force = true,
					  .gates_default = { -1, -1, -1 },
					  .seed = SEED };
	struct pm_error why = { .offset = -1 };
	int r = compare_counts(&comparison, &inputs, &how, &why);

	/* What else there is will be said of all of them. */
	if (r != -ENOENT)
		return 0;
	*err = why;
	return -EINVAL; /* as of any option */
}

/* ---- keeping ----------------------------------------------------------------------------- */

static bool has_commit(const struct pmdiff_history *history, const char *commit)
{
	for (size_t i = 0; i < history->commits.len; i++)
		if (strcmp(history->commits.data[i].commit, commit) == 0)
			return true;
	return false;
}

int pmdiff_keep(const struct pmdiff_inputs *inputs, const struct pmdiff_options *options,
		struct pm_error *err)
{
	PM_CLEANUP(pmdiff_history_release) struct pmdiff_history history = { 0 };
	int r;

	if (!options->history)
		return 0;
	r = pmdiff_history_read(&history, options->history, err);
	if (r == -ENOENT)
		r = 0;
	for (size_t i = 0; i < PM_ARRAY_LEN(inputs->sides) && r == 0; i++) {
		const struct pmdiff_side *side = &inputs->sides[i];

		if (i > 0 || !has_commit(&history, side->commit))
			r = pmdiff_history_write(options->history, side->commit,
						 side->stats.data, side->stats.len, err);
	}
	return r;
}

enum pmdiff_status pmdiff_status_of(const struct pm_comparison *comparison,
				    const struct pmdiff_options *options)
{
	if (comparison->verdict == PM_VERDICT_WORSE)
		return PMDIFF_STATUS_REGRESSION;
	if (comparison->verdict == PM_VERDICT_INCONCLUSIVE && options->strict)
		return PMDIFF_STATUS_INCONCLUSIVE;
	return PMDIFF_STATUS_FINE;
}
