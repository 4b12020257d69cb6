/* SPDX-License-Identifier: MIT */
/* Selects samples and sums their weights over the stack tree. */
#include "profile-internal.h"

#include <regex.h>
#include <string.h>

/* A filter, resolved for this profile. A member that is NULL is no condition. */
struct compiled {
	bool *threads; /* by thread */
	bool *modules; /* by module; the last one is "no module" */
	bool *stacks; /* by stack: contains the function */
};

static void compiled_release(struct compiled *compiled)
{
	free(compiled->threads);
	free(compiled->modules);
	free(compiled->stacks);
}

/* ---- lists ----------------------------------------------------------------------------- */

/* Gets the next item of a comma-separated list. Returns false at its end. */
static bool next_list_item(const char **list, const char **item, size_t *len)
{
	const char *comma;

	while (**list == ',')
		(*list)++;
	if (**list == '\0')
		return false;
	comma = strchrnul(*list, ',');
	*item = *list;
	*len = (size_t)(comma - *list);
	*list = comma;
	return true;
}

static bool item_equals_text(const char *text, const char *item, size_t len)
{
	return strncmp(text, item, len) == 0 && text[len] == '\0';
}

/*
 * The selection made by a list so far. With `!` an item is excluded, and a list that
 * starts with such an item selects all others.
 */
struct choice {
	bool *chosen; /* NULL if out of memory */
	bool begun;
};

static void choice_release(struct choice *choice)
{
	free(choice->chosen);
}

/* Removes the mark from an item. Returns whether the item is included. */
static bool take_negation_mark(struct choice *choice, size_t count, const char **item,
			       size_t *len)
{
	bool in = **item != '!' || *len < 2;

	if (!choice->begun && !in)
		memset(choice->chosen, true, count);
	choice->begun = true;
	*item += !in;
	*len -= !in;
	return in;
}

static int filter_comm(const struct pm_profile *profile, const char *list, bool *threads,
		       struct pm_error *err)
{
	size_t count = profile->threads.len, len;
	PM_CLEANUP(choice_release)
	struct choice choice = { .chosen = calloc(count + 1, sizeof(bool)) };
	const char *item;

	if (!choice.chosen)
		return pm_error_set(err, -ENOMEM, "out of memory");
	while (next_list_item(&list, &item, &len)) {
		bool in = take_negation_mark(&choice, count, &item, &len), found = false;

		for (size_t i = 0; i < count; i++) {
			if (item_equals_text(profile->threads.data[i].comm, item, len)) {
				found = true;
				choice.chosen[i] = in;
			}
		}
		if (!found) {
			pm_error_set(err, -ENOENT, "no thread is called '%.*s'", (int)len,
				     item);
			pm_error_fix(err, "--by thread to see their names");
			return -ENOENT;
		}
	}
	for (size_t i = 0; i < count; i++)
		threads[i] &= choice.chosen[i];
	return 0;
}

enum id_kind {
	ID_OF_PROCESS,
	ID_OF_THREAD,
};

static int choose_id(const struct pm_profile *profile, uint64_t id, enum id_kind kind,
		     bool in, struct choice *choice)
{
	bool found = false;

	for (size_t i = 0; i < profile->threads.len; i++) {
		const struct pm_profile_thread *thread = &profile->threads.data[i];

		uint32_t its = kind == ID_OF_THREAD ? thread->tid : thread->pid;

		if (its == id) {
			found = true;
			choice->chosen[i] = in;
		}
	}
	if (!found)
		return -ENOENT;
	return 0;
}

static int filter_ids(const struct pm_profile *profile, const char *list,
		      enum id_kind kind, bool *threads, struct pm_error *err)
{
	size_t count = profile->threads.len, len;
	PM_CLEANUP(choice_release)
	struct choice choice = { .chosen = calloc(count + 1, sizeof(bool)) };
	const char *item, *what = kind == ID_OF_THREAD ? "thread" : "process";

	if (!choice.chosen)
		return pm_error_set(err, -ENOMEM, "out of memory");
	while (next_list_item(&list, &item, &len)) {
		bool in = take_negation_mark(&choice, count, &item, &len);
		char text[24];
		uint64_t id;

		snprintf(text, sizeof(text), "%.*s", (int)PM_MIN(len, 23), item);
		if (!pm_parse_u64(text, &id))
			return pm_error_set(err, -EINVAL, "'%.*s' is no %s id", (int)len,
					    item, what);
		if (choose_id(profile, id, kind, in, &choice) < 0) {
			pm_error_set(err, -ENOENT, "no %s %.*s in this recording", what,
				     (int)len, item);
			pm_error_fix(err, "--by %s to see which there are", what);
			return -ENOENT;
		}
	}
	for (size_t i = 0; i < count; i++)
		threads[i] &= choice.chosen[i];
	return 0;
}

/* ---- modules ----------------------------------------------------------------------------- */

static int match_module(const struct pm_profile *profile, const char *item, bool in,
			bool *modules, struct pm_error *err)
{
	size_t count = profile->modules.len, len = strlen(item);
	bool found = false;
	regex_t regex;

	for (size_t i = 0; i < count; i++) {
		const struct pm_profile_module *module = &profile->modules.data[i];

		if (item_equals_text(module->name, item, len) ||
		    item_equals_text(module->path, item, len)) {
			found = true;
			modules[i] = in;
		}
	}
	if (item_equals_text(pm_profile_module_name(profile, PM_PROFILE_NONE), item,
			     len)) {
		found = true;
		modules[count] = in;
	}
	if (found)
		return 0;
	if (regcomp(&regex, item, REG_EXTENDED | REG_NOSUB) != 0)
		return pm_error_set(err, -EINVAL,
				    "'%s' is neither a module nor an expression", item);
	for (size_t i = 0; i < count; i++) {
		if (regexec(&regex, profile->modules.data[i].path, 0, NULL, 0) == 0) {
			found = true;
			modules[i] = in;
		}
	}
	regfree(&regex);
	if (found)
		return 0;
	pm_error_set(err, -ENOENT, "no module of this recording matches '%s'", item);
	pm_error_fix(err, "--by module to see their names");
	return -ENOENT;
}

static int filter_modules(const struct pm_profile *profile, const char *list,
			  bool *modules, struct pm_error *err)
{
	struct choice choice = { .chosen = modules };
	const char *item;
	size_t len;

	while (next_list_item(&list, &item, &len)) {
		bool in = take_negation_mark(&choice, profile->modules.len + 1, &item,
					     &len);
		PM_AUTO_FREE char *text = strndup(item, len);
		int ret;

		if (!text)
			return -ENOMEM;
		ret = match_module(profile, text, in, modules, err);
		if (ret < 0)
			return ret;
	}
	return 0;
}

/* ---- functions on the stack ------------------------------------------------------------ */

static bool stack_has(const struct pm_profile *profile, uint32_t stack,
		      const struct pm_function_set *set)
{
	uint32_t levels = pm_profile_levels(profile, stack);

	for (uint32_t i = 0; i < levels; i++)
		if (set->set[pm_profile_level_function(profile, stack, i)])
			return true;
	return false;
}

static int filter_symbol(const struct pm_profile *profile, const char *pattern,
			 bool *stacks, struct pm_error *err)
{
	PM_CLEANUP(pm_function_set_release) struct pm_function_set set = { 0 };
	bool out = pattern[0] == '!' && pattern[1] != '\0';
	int ret = pm_function_set_init(&set, profile, pattern + out, err);

	if (ret < 0)
		return ret;
	for (uint32_t i = 0; i < profile->stacks.len; i++) {
		uint32_t parent = profile->stacks.data[i].parent;

		stacks[i] = (parent != PM_PROFILE_NONE && stacks[parent]) ||
			    stack_has(profile, i, &set);
	}
	for (uint32_t i = 0; out && i < profile->stacks.len; i++)
		stacks[i] = !stacks[i];
	return 0;
}

static int compile_filter(struct compiled *out, const struct pm_profile *profile,
			  const struct pm_filter *filter, struct pm_error *err)
{
	int ret = 0;

	if (filter->comm || filter->pid || filter->tid) {
		out->threads = malloc(profile->threads.len + 1);
		if (!out->threads)
			return pm_error_set(err, -ENOMEM, "out of memory");
		memset(out->threads, true, profile->threads.len + 1);
	}
	if (filter->comm)
		ret = filter_comm(profile, filter->comm, out->threads, err);
	if (ret == 0 && filter->pid)
		ret = filter_ids(profile, filter->pid, ID_OF_PROCESS, out->threads, err);
	if (ret == 0 && filter->tid)
		ret = filter_ids(profile, filter->tid, ID_OF_THREAD, out->threads, err);
	if (ret == 0 && filter->module) {
		out->modules = calloc(profile->modules.len + 1, sizeof(bool));
		if (out->modules)
			ret = filter_modules(profile, filter->module, out->modules, err);
		else
			ret = pm_error_set(err, -ENOMEM, "out of memory");
	}
	if (ret == 0 && filter->symbol) {
		out->stacks = calloc(profile->stacks.len + 1, sizeof(bool));
		if (out->stacks)
			ret = filter_symbol(profile, filter->symbol, out->stacks, err);
		else
			ret = pm_error_set(err, -ENOMEM, "out of memory");
	}
	return ret;
}

/* ---- the view ---------------------------------------------------------------------------- */

static bool cell_passes_filter(const struct pm_profile *profile,
			       const struct compiled *filter,
			       const struct pm_profile_cell *cell)
{
	if (filter->threads && !filter->threads[cell->thread])
		return false;
	if (filter->stacks && !filter->stacks[cell->stack])
		return false;
	if (filter->modules) {
		uint32_t frame = profile->stacks.data[cell->stack].frame;
		uint32_t module = profile->frames.data[frame].module;

		if (module == PM_PROFILE_NONE)
			return filter->modules[profile->modules.len];
		return filter->modules[module];
	}
	return true;
}

/* Returns, by stack, whether it has stitched frames. These are the outer ones, so
 * checking the outermost frame is enough. */
static bool *find_stitched(const struct pm_profile *profile)
{
	bool *stitched = calloc(profile->stacks.len + 1, sizeof(*stitched));

	for (size_t i = 0; stitched && i < profile->stacks.len; i++) {
		const struct pm_profile_stack *stack = &profile->stacks.data[i];

		if (stack->parent == PM_PROFILE_NONE)
			stitched[i] = profile->frames.data[stack->frame].stitched;
		else
			stitched[i] = stitched[stack->parent];
	}
	return stitched;
}

static int view_add_passing_cells(struct pm_view *view, const struct compiled *filter)
{
	const struct pm_profile *profile = view->profile;
	PM_AUTO_FREE bool *stitched = NULL;

	/* A file may have thousands of events and millions of stacks, so skip events
	 * without samples. */
	if (profile->events.data[view->event].total.samples == 0)
		return 0;
	stitched = find_stitched(profile);
	if (!stitched)
		return -ENOMEM;
	for (size_t i = 0; i < profile->cells.len; i++) {
		const struct pm_profile_cell *cell = &profile->cells.data[i];
		uint32_t leaf;

		if (cell->event != view->event || cell->weight.samples == 0)
			continue;
		pm_weight_add(&view->all, &cell->weight);
		if (!cell_passes_filter(profile, filter, cell))
			continue;
		if (pm_vec_push(&view->cells, (uint32_t)i) < 0)
			return -ENOMEM;
		pm_weight_add(&view->total, &cell->weight);
		pm_weight_add(&view->stops[cell->stop], &cell->weight);
		pm_weight_add(&view->self[cell->stack], &cell->weight);
		leaf = pm_profile_level_function(profile, cell->stack, 0);
		if (profile->functions.data[leaf].unknown)
			pm_weight_add(&view->unknown, &cell->weight);
		if (stitched[cell->stack])
			pm_weight_add(&view->stitched, &cell->weight);
	}
	memcpy(view->sum, view->self, profile->stacks.len * sizeof(*view->sum));
	for (size_t i = profile->stacks.len; i-- > 0;) {
		uint32_t parent = profile->stacks.data[i].parent;

		if (parent != PM_PROFILE_NONE)
			pm_weight_add(&view->sum[parent], &view->sum[i]);
	}
	return 0;
}

int pm_view_new(struct pm_view **out, const struct pm_profile *profile, uint32_t event,
		const struct pm_filter *filter, struct pm_error *err)
{
	PM_CLEANUP(compiled_release) struct compiled compiled = { 0 };
	struct pm_view *view;
	int ret = 0;

	if (filter)
		ret = compile_filter(&compiled, profile, filter, err);

	if (ret < 0)
		return ret;
	view = calloc(1, sizeof(*view));
	if (!view)
		return pm_error_set(err, -ENOMEM, "out of memory");
	view->profile = profile;
	view->event = event;
	view->self = calloc(profile->stacks.len + 1, sizeof(*view->self));
	view->sum = calloc(profile->stacks.len + 1, sizeof(*view->sum));
	view->stops = calloc(profile->stops.len + 1, sizeof(*view->stops));
	if (!view->self || !view->sum || !view->stops ||
	    view_add_passing_cells(view, &compiled) < 0) {
		pm_view_free(view);
		return pm_error_set(err, -ENOMEM, "out of memory");
	}
	*out = view;
	return 0;
}

void pm_view_free(struct pm_view *view)
{
	if (!view)
		return;
	free(view->self);
	free(view->sum);
	free(view->stops);
	pm_vec_release(&view->cells);
	free(view);
}
