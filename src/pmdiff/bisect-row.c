/* SPDX-License-Identifier: MIT */
#include "bisect-internal.h"

#include <math.h>
#include <string.h>

enum {
	NAMES_BYTES = 200, /* of functions in a message; each name may use half of them */
	NAME_BYTES = 100,
};

void pmdiff_moved_release(struct pmdiff_moved *moved)
{
	free(moved->scope);
	free(moved->module);
	free(moved->event);
	free(moved->unit);
	*moved = (struct pmdiff_moved){ 0 };
}

struct documents {
	PM_VEC(const struct pm_stat *) list;
};

static int documents_borrow_side(struct documents *documents,
				 const struct pmdiff_side *side)
{
	int ret = 0;

	for (size_t i = 0; i < side->stats.len && ret == 0; i++)
		ret = pm_vec_push(&documents->list, &side->stats.data[i]);
	return ret;
}

static int compare_sides_of_step(struct pm_comparison *out,
				 const struct pmdiff_side sides[2],
				 const struct pm_compare_options *options,
				 struct pm_error *err)
{
	struct documents base = { 0 }, new = { 0 };
	int ret = documents_borrow_side(&base, &sides[0]);

	if (ret == 0)
		ret = documents_borrow_side(&new, &sides[1]);
	if (ret < 0)
		ret = pm_error_no_memory(err);
	else
		ret = pm_compare_stats(out, base.list.data, base.list.len, new.list.data,
				       new.list.len, options, err);
	pm_vec_release(&base.list);
	pm_vec_release(&new.list);
	return ret;
}

int pmdiff_compare_sides(struct pm_comparison *out, const struct pmdiff_side sides[2],
			 const struct pmdiff_options *options, struct pm_error *err)
{
	return compare_sides_of_step(out, sides,
				     &(const struct pm_compare_options){
					     .force = options->force,
					     .gates_default = { -1, -1, -1 },
				     },
				     err);
}

/* ---- finding the row ----------------------------------------------------------------- */

static const char row_source[] = "--row";

/* Whether the row matches --row. If no row matches it, no other row may be used
 * instead. */
static bool is_row_of_option(const struct pm_compare_row *row)
{
	return row->base.known && row->new.known && row->gated &&
	       row->gate_source &&strcmp(row->gate_source, row_source) == 0;
}

/* Whether the row is worse than at the good end. A row that exceeds its hard limit may
 * have exceeded it at the good end, too; it has then changed only if the change exceeds
 * the gate, which is infinite if there is only the limit. */
static bool is_row_worse_than_at_good(const struct pm_compare_row *row)
{
	return isnan(row->at_most) || row->base.median <= row->at_most ||
	       fabs(row->change) > row->gate;
}

static bool has_row_moved(const struct pm_compare_row *row, bool named)
{
	if (!row->base.known || !row->new.known)
		return false;
	/* Functions that only explain a change have no verdict. */
	if (!named)
		return row->verdict == PM_VERDICT_WORSE &&
		       is_row_worse_than_at_good(row) &&
		       (row->gated || row->subject == PM_COMPARE_PROGRAM);
	return is_row_of_option(row) &&
	       (row->verdict == PM_VERDICT_WORSE || row->verdict == PM_VERDICT_BETTER ||
		row->verdict == PM_VERDICT_CHANGED);
}

static int copy_optional_text(char **out, const char *text)
{
	*out = NULL;
	if (!text)
		return 0;
	*out = strdup(text);
	if (!*out)
		return -ENOMEM;
	return 0;
}

static int moved_from_row(struct pmdiff_moved *out, const struct pm_compare_row *row,
			  struct pm_error *err)
{
	struct pmdiff_moved moved = {
		.subject = row->subject,
		.class = row->class,
		.before = row->base.median,
		.after = row->new.median,
	};

	if (copy_optional_text(&moved.scope, row->scope) < 0 ||
	    copy_optional_text(&moved.module, row->module) < 0 ||
	    copy_optional_text(&moved.event, row->event) < 0 ||
	    copy_optional_text(&moved.unit, row->unit) < 0) {
		pmdiff_moved_release(&moved);
		return pm_error_no_memory(err);
	}
	*out = moved;
	return 0;
}

static bool is_function_of_event(const struct pm_compare_row *row, const char *event)
{
	bool moved;

	if (event)
		moved = strcmp(row->event, event) == 0;
	else
		moved = row->verdict == PM_VERDICT_WORSE;

	return row->subject == PM_COMPARE_SCOPE && row->scope && row->base.known &&
	       row->new.known &&moved &&pm_compare_own_part(row) > 0;
}

const struct pm_compare_row *pmdiff_next_function(const struct pm_comparison *comparison,
						  const char *event,
						  const struct pm_compare_row *last)
{
	const struct pm_compare_row *best = NULL;

	for (size_t i = 0; i < comparison->rows.len; i++) {
		const struct pm_compare_row *row = &comparison->rows.data[i];

		if (!is_function_of_event(row, event))
			continue;
		if (last && (pm_compare_own_part(row) > pm_compare_own_part(last) ||
			     (pm_compare_own_part(row) == pm_compare_own_part(last) &&
			      row <= last)))
			continue;
		if (!best || pm_compare_own_part(row) > pm_compare_own_part(best))
			best = row;
	}
	return best;
}

/* Names functions that got worse: one may have gained what another one lost. In that case
 * the program has not got worse, but the user may bisect such a function. */
static int report_worse_functions(const struct pm_comparison *comparison,
				  struct pm_error *err)
{
	const struct pm_compare_row *first = pmdiff_next_function(comparison, NULL, NULL);
	struct pm_str names = { 0 };

	if (!first) {
		pm_error_set(err, -ERANGE, "nothing got worse from good to bad");
		pm_error_fix(err, "--row ROW, for one that moved otherwise; or more "
				  "runs (-r)");
		return -ERANGE;
	}
	for (const struct pm_compare_row *row = first; row && names.len < NAMES_BYTES;
	     row = pmdiff_next_function(comparison, NULL, row)) {
		if (row != first)
			pm_str_puts(&names, ", ");
		pm_str_printable(&names, row->scope, strnlen(row->scope, NAME_BYTES));
		pm_str_printf(&names, " %+.2f %%", 100 * row->change);
	}
	pm_error_set(err, -ERANGE,
		     "nothing got worse in the whole program from good to bad; functions "
		     "that did: %s",
		     pm_text_or(names.data, "?"));
	pm_error_fix(err, "--row 'fn:%.*s:%s'", NAME_BYTES, first->scope, first->event);
	pm_str_release(&names);
	return -ERANGE;
}

static int find_moved_row(struct pmdiff_moved *out,
			  const struct pm_comparison *comparison, const char *named,
			  struct pm_error *err)
{
	bool measured = false;

	for (size_t i = 0; i < comparison->rows.len; i++)
		if (has_row_moved(&comparison->rows.data[i], named != NULL))
			return moved_from_row(out, &comparison->rows.data[i], err);
	for (size_t i = 0; named && i < comparison->rows.len && !measured; i++)
		measured = is_row_of_option(&comparison->rows.data[i]);
	if (named && !measured) {
		pm_error_set(err, -EINVAL, "--row: %.200s was not measured at both ends",
			     named);
		if (strncmp(named, "fn:", 3) == 0)
			pm_error_fix(err, "--fn NAME, for its function");
		return -EINVAL;
	}
	if (named)
		return pm_error_set(err, -ERANGE, "%.200s did not move from good to bad",
				    named);
	return report_worse_functions(comparison, err);
}

/* Adds the row as a gate that allows no change. */
static int add_gate_for_moved_row(struct pm_gates *gates, const char *row,
				  struct pm_error *err)
{
	PM_AUTO_FREE char *text = NULL;

	if (asprintf(&text, "%s=+-0%%", row) < 0) {
		text = NULL;
		return pm_error_no_memory(err);
	}
	return pm_gates_parse(gates, text, row_source, err);
}

int pmdiff_moved_find(struct pmdiff_moved *out, const struct pmdiff_side sides[2],
		      const struct pmdiff_meter *meter, struct pm_error *err)
{
	PM_CLEANUP(pm_comparison_release) struct pm_comparison comparison = { 0 };
	PM_CLEANUP(pm_gates_release) struct pm_gates of_row = { 0 };
	const struct pmdiff_options *options = meter->options;
	const char *named = options->measured.row;
	struct pm_compare_options how = {
		.gates = named ? &of_row : &options->gates,
		.force = options->force,
		.gates_default = { -1, -1, -1 },
		.functions_explain = meter->all_functions,
	};
	int ret = 0;

	if (named)
		ret = add_gate_for_moved_row(&of_row, named, err);
	if (ret == 0)
		ret = compare_sides_of_step(&comparison, sides, &how, err);
	if (ret < 0)
		return ret;
	return find_moved_row(out, &comparison, named, err);
}

/* ---- the row in other comparisons ---------------------------------------------------- */

static bool are_optional_texts_equal(const char *a, const char *b)
{
	if (a && b)
		return strcmp(a, b) == 0;
	return a == b;
}

const struct pm_compare_row *pmdiff_moved_in(const struct pmdiff_moved *moved,
					     const struct pm_comparison *comparison)
{
	for (size_t i = 0; i < comparison->rows.len; i++) {
		const struct pm_compare_row *row = &comparison->rows.data[i];

		if (row->subject == moved->subject && row->base.known &&
		    row->new.known &&are_optional_texts_equal(row->scope, moved->scope) &&
		    are_optional_texts_equal(row->module, moved->module) &&
		    are_optional_texts_equal(row->event, moved->event))
			return row;
	}
	return NULL;
}
