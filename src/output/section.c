/* SPDX-License-Identifier: MIT */
#include "output-internal.h"

#include <string.h>

enum {
	CANDIDATES = 4, /* candidates for an ambiguous name in a message */
	CANDIDATE_COLUMNS = 60,
	FLUSH_BYTES = 1 << 16,
};

/* ---- sections ---------------------------------------------------------------------------- */

static void put_candidate(struct pm_str *names, const char *name)
{
	pm_str_separate(names, ", ");
	pm_str_puts(names, name);
}

/* Sets @err to name the heaviest of several functions that match a name. */
static int refuse_ambiguous_name(const struct pm_section *section, struct pm_error *err)
{
	const struct pm_profile *profile = section->report->profile;
	PM_CLEANUP(pm_table_release) struct pm_table table = { 0 };
	struct pm_str names = { 0 };
	size_t found = 0;

	if (pm_table_init(&table, section->view, PM_KEY_FUNCTION, true) < 0)
		return pm_error_set(err, -ENOMEM, "out of memory");
	for (size_t i = 0; i < table.rows.len && found <= CANDIDATES; i++) {
		uint32_t id = table.rows.data[i].id;
		struct pm_str name = { 0 };

		if (!section->only.set[id])
			continue;
		pm_put_name(&name, profile->functions.data[id].name, CANDIDATE_COLUMNS,
			    section->report->ascii);
		/* Instances of a template may look the same. */
		if (name.data && !(names.data && strstr(names.data, name.data)) &&
		    found++ < CANDIDATES)
			put_candidate(&names, name.data);
		pm_str_release(&name);
	}
	if (found > CANDIDATES)
		pm_str_printf(&names, ", %s", section->report->ascii ? "..." : "…");
	pm_error_set(err, -ENOTUNIQ, "'%s' fits %zu functions", section->report->function,
		     section->only.names);
	if (names.len > 0 && !names.failed)
		pm_error_fix(err, "one of: %s", names.data);
	pm_str_release(&names);
	return -ENOTUNIQ;
}

int pm_section_init(struct pm_section *out, const struct pm_report *report,
		    uint32_t event, struct pm_error *err)
{
	PM_CLEANUP(pm_section_release) struct pm_section section = { .report = report };
	int ret;

	ret = pm_view_new(&section.view, report->profile, event, report->filter, err);
	if (ret == 0 &&
	    (report->show == PM_SHOW_CALLERS || report->show == PM_SHOW_CALLEES ||
	     report->show == PM_SHOW_ANNOTATE)) {
		ret = pm_function_set_init(&section.only, report->profile,
					   report->function, err);
		if (ret == 0 && section.only.names > 1)
			ret = refuse_ambiguous_name(&section, err);
	}
	if (ret == 0 && report->show == PM_SHOW_ANNOTATE) {
		ret = pm_annotate_choose(&section.choices, section.view, report->function,
					 err);
		/* Another event may have the function. */
		if (ret == -ENOENT)
			ret = 0;
	}
	if (ret < 0)
		return ret;
	*out = section;
	section = (struct pm_section){ 0 };
	return 0;
}

void pm_section_release(struct pm_section *section)
{
	pm_view_free(section->view);
	pm_function_set_release(&section->only);
	pm_annotate_choices_release(&section->choices);
	pm_table_release(&section->functions);
}

int pm_section_failed(int code, struct pm_error *err)
{
	if (code != -E2BIG)
		return pm_error_set(err, code, "out of memory");
	pm_error_set(err, code, "the table has more than %d rows", PM_TABLE_ROWS_MAX);
	pm_error_fix(err, "fewer words after --by, or a part: --time, --tid, --symbol");
	return code;
}

const struct pm_table *pm_section_functions(struct pm_section *section)
{
	if (!section->functions_made &&
	    pm_table_init(&section->functions, section->view, PM_KEY_FUNCTION, false) < 0)
		return NULL;
	section->functions_made = true;
	return &section->functions;
}

bool pm_section_is_stackless(const struct pm_section *section)
{
	const struct pm_view *view = section->view;
	const struct pm_profile *profile = view->profile;

	for (size_t i = 0; i < view->cells.len; i++) {
		uint32_t stack = profile->cells.data[view->cells.data[i]].stack;
		uint32_t id = pm_profile_level_function(profile, stack, 0);

		if (strcmp(profile->functions.data[id].name, PM_NO_STACK) != 0)
			return false;
	}
	return view->cells.len > 0;
}

int pm_section_tree(const struct pm_section *section, bool fold, struct pm_tree **out)
{
	enum pm_report_show show = section->report->show;
	bool top_down = show == PM_SHOW_TREE || show == PM_SHOW_CALLEES;
	const struct pm_function_set *only = NULL;

	if (section->only.set)
		only = &section->only;
	return pm_tree_new(out, section->view,
			   top_down ? PM_TREE_TOP_DOWN : PM_TREE_BOTTOM_UP, only, fold);
}

void pm_report_events(const struct pm_report *report, uint32_t *first, uint32_t *end)
{
	if (report->event != PM_PROFILE_NONE) {
		*first = report->event;
		*end = report->event + 1;
	} else {
		*first = 0;
		*end = (uint32_t)report->profile->events.len;
	}
}

/* ---- trees ------------------------------------------------------------------------------ */

static bool node_is_above(const struct pm_tree *tree, double limit, uint32_t node)
{
	return pm_weight_percent(&tree->nodes.data[node].total, &tree->view->total) >=
	       limit;
}

int pm_tree_next(struct pm_tree *tree, double limit, uint32_t *node)
{
	uint32_t at = *node;
	int ret = pm_tree_expand(tree, at);

	if (ret < 0)
		return ret;
	/* Children are sorted: the first one below the limit ends the group. */
	if (tree->nodes.data[at].children > 0 &&
	    node_is_above(tree, limit, tree->nodes.data[at].first_child)) {
		*node = tree->nodes.data[at].first_child;
		return 1;
	}
	while (at != 0) {
		const struct pm_tree_node *parent =
			&tree->nodes.data[tree->nodes.data[at].parent];
		uint32_t next = at + 1;

		if (next < parent->first_child + parent->children &&
		    node_is_above(tree, limit, next)) {
			*node = next;
			return 1;
		}
		at = tree->nodes.data[at].parent;
	}
	return 0;
}

/* ---- words ---------------------------------------------------------------------------- */

const char *pm_basename(const char *path)
{
	const char *slash = strrchr(path, '/');

	if (slash && slash[1] != '\0')
		return slash + 1;
	return path;
}

bool pm_stop_is_incomplete(const char *stop)
{
	/* The chain is complete, has no callers by design, ends where the kernel ends it,
	 * or the program had no stack. */
	static const char *const fine[] = { "root", "not_asked", "fp_end", "exec" };

	if (!stop)
		return false;
	for (size_t i = 0; i < PM_ARRAY_LEN(fine); i++)
		if (strcmp(stop, fine[i]) == 0)
			return false;
	return true;
}

/* ---- documents with whole stacks ------------------------------------------------------------ */

uint64_t *pm_stack_lengths(const struct pm_profile *profile, const uint32_t *frame_bytes)
{
	uint64_t *lengths = calloc(profile->stacks.len + 1, sizeof(*lengths));

	for (size_t i = 0; lengths && i < profile->stacks.len; i++) {
		const struct pm_profile_stack *stack = &profile->stacks.data[i];

		lengths[i] = frame_bytes[stack->frame];
		if (stack->parent != PM_PROFILE_NONE)
			lengths[i] += lengths[stack->parent];
	}
	return lengths;
}

int pm_check_document_bytes(uint64_t bytes, uint64_t most, struct pm_error *err)
{
	if (bytes <= most)
		return 0;
	pm_error_set(err, -EFBIG,
		     "this format has a stack anew for each sample, and would take %llu "
		     "GiB; at most %llu are written",
		     (unsigned long long)(bytes >> 30), (unsigned long long)(most >> 30));
	pm_error_fix(err, "--html or --format firefox, which have each stack once, or a "
			  "part: --time, --tid, --symbol");
	return -EFBIG;
}

/* ---- output in large pieces ----------------------------------------------------------------- */

void pm_flush_some(struct pm_str *str, FILE *to)
{
	if (str->failed || str->len < FLUSH_BYTES)
		return;
	fwrite(str->data, 1, str->len, to);
	pm_str_clear(str);
}

int pm_flush_all(struct pm_str *str, FILE *to, struct pm_error *err)
{
	bool failed = str->failed;

	if (!failed && str->len > 0)
		fwrite(str->data, 1, str->len, to);
	pm_str_release(str);
	if (failed)
		return pm_error_set(err, -ENOMEM, "out of memory");
	return 0;
}
