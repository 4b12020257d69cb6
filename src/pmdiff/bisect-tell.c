/* SPDX-License-Identifier: MIT */
#include "bisect-internal.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

enum {
	FUNCTIONS_MAX = 5, /* functions to print */
	GROUP_DIGITS = 3,
	NAME_MAX_BYTES = 200,
};

static void append_value_with_unit(struct pm_str *text, double value, const char *unit)
{
	char digits[32];
	size_t len;

	if (!isfinite(value)) {
		pm_str_puts(text, "?");
		return;
	}
	if (unit && strcmp(unit, "ns") == 0) {
		pm_str_printf(text, "%.3f ms", value / 1e6);
		return;
	}
	if (fabs(value) >= 1e15 || value != floor(value)) {
		pm_str_printf(text, "%g", value);
	} else {
		len = (size_t)snprintf(digits, sizeof(digits), "%" PRId64,
				       (int64_t)value);
		for (size_t i = 0; i < len; i++) {
			if (i > 0 && (len - i) % GROUP_DIGITS == 0 &&
			    digits[i - 1] != '-')
				pm_str_putc(text, ',');
			pm_str_putc(text, digits[i]);
		}
	}
	if (unit && *unit)
		pm_str_printf(text, " %s", unit);
}

/* "1,000 → 1,030 (+3.00 %)" */
static void append_change_of_value(struct pm_str *text, double before, double after,
				   const char *unit)
{
	append_value_with_unit(text, before, unit);
	pm_str_puts(text, " → ");
	append_value_with_unit(text, after, unit);
	if (before != 0 && isfinite(before) && isfinite(after))
		pm_str_printf(text, " (%+.2f %%)", (after - before) / before * 100);
}

static void append_printable_name(struct pm_str *text, const char *foreign)
{
	size_t len = strlen(foreign);

	pm_str_printable(text, foreign, PM_MIN(len, NAME_MAX_BYTES));
}

static void append_commit_text(struct pm_str *text, const struct pmdiff_commit *commit)
{
	pm_str_printf(text, "commit %s\n    ", commit->hash);
	append_printable_name(text, commit->subject);
	pm_str_puts(text, "\n    ");
	append_printable_name(text, commit->author);
	pm_str_printf(text, ", %s\n", commit->date);
}

/* ---- functions ----------------------------------------------------------------------- */

static void append_moved_functions(struct pm_str *text,
				   const struct pm_comparison *comparison,
				   const char *event)
{
	const struct pm_compare_row *row = NULL;

	for (int i = 0; i < FUNCTIONS_MAX; i++) {
		row = pmdiff_next_function(comparison, event, row);
		if (!row)
			break;
		if (i == 0)
			pm_str_puts(text,
				    "\nfunctions that moved most, with what they call\n");
		pm_str_puts(text, "    ");
		append_printable_name(text, row->scope);
		pm_str_puts(text, ": ");
		append_change_of_value(text, row->base.median, row->new.median,
				       row->unit);
		if (row->file) {
			pm_str_puts(text, ", ");
			append_printable_name(text, row->file);
			if (row->line)
				pm_str_printf(text, ":%u", row->line);
		}
		pm_str_putc(text, '\n');
	}
}

/* ---- the whole output ---------------------------------------------------------------- */

void pmdiff_tell_commit(FILE *to, const struct pmdiff_commit *commit,
			const struct pmdiff_moved *moved,
			const struct pm_comparison *steps)
{
	PM_CLEANUP(pm_str_release) struct pm_str text = { 0 };
	const struct pm_compare_row *row = steps ? pmdiff_moved_in(moved, steps) : NULL;

	append_commit_text(&text, commit);
	pm_str_puts(&text, "\nmoved ");
	if (moved->scope) {
		append_printable_name(&text, moved->scope);
		pm_str_puts(&text, ", ");
	}
	pm_str_printf(&text, "%s: ", moved->event);
	append_change_of_value(&text, row ? row->base.median : moved->before,
			       row ? row->new.median : moved->after, moved->unit);
	pm_str_putc(&text, '\n');
	if (!row)
		pm_str_puts(&text,
			    "    (from good to bad: the commit and the one before it "
			    "could not be compared)\n");
	if (steps)
		append_moved_functions(&text, steps, moved->event);
	if (!text.failed)
		fwrite(text.data, 1, text.len, to);
}
