/* SPDX-License-Identifier: MIT */
/* Rows of a comparison in readable form. */
#include "compare-show.h"
#include "pm/suite.h"

#include <string.h>

#define P_LEAST 1e-12

enum {
	COMMIT_DIGITS = 8,
	SUBJECT_COLUMNS = 50,
	NAME_COLUMNS = 32,
	TIMES_FROM = 10, /* changes from this size on are shown as a factor */
	OTHER_UNIT = 1000, /* a side that is smaller by this factor has its own unit */
};

/* ---- sections -------------------------------------------------------------------------- */

/* Whether the row has changed within its gate. Noisy values have only changed if the
 * change exceeds chance. */
static bool is_change_within_gate(const struct pm_compare_row *row)
{
	return row->gated && (row->low > 0 || row->high < 0);
}

enum pm_compare_section pm_compare_section_of(const struct pm_compare_row *row)
{
	switch (row->verdict) {
	case PM_VERDICT_SAME:
		if (is_change_within_gate(row))
			return PM_COMPARED_WITHIN;
		return PM_COMPARED_SAME;
	case PM_VERDICT_WORSE:
		if (row->gated)
			return PM_COMPARED_FAILED;
		return PM_COMPARED_WORSE;
	case PM_VERDICT_ACCEPTED:
		return PM_COMPARED_ACCEPTED;
	case PM_VERDICT_BETTER:
		return PM_COMPARED_BETTER;
	case PM_VERDICT_CHANGED:
		return PM_COMPARED_CHANGED;
	case PM_VERDICT_INCONCLUSIVE:
		if (row->gated)
			return PM_COMPARED_OPEN;
		return PM_COMPARED_UNDECIDED;
	case PM_VERDICT_UNKNOWN:
		if (row->gated)
			return PM_COMPARED_OPEN;
		return PM_COMPARED_UNKNOWN;
	case PM_VERDICT_NEW:
		return PM_COMPARED_NEW;
	case PM_VERDICT_GONE:
		if (row->gated)
			return PM_COMPARED_OPEN;
		return PM_COMPARED_GONE;
	}
	return PM_COMPARED_UNKNOWN;
}

const char *pm_compare_section_words(enum pm_compare_section section)
{
	static const char *const words[] = {
		[PM_COMPARED_FAILED] = "beyond the gate",
		[PM_COMPARED_ACCEPTED] = "accepted, beyond the gate",
		[PM_COMPARED_OPEN] = "gated, and not decided",
		[PM_COMPARED_WORSE] = "worse, without a gate",
		[PM_COMPARED_CHANGED] = "changed",
		[PM_COMPARED_BETTER] = "better",
		[PM_COMPARED_NEW] = "new",
		[PM_COMPARED_GONE] = "gone",
		[PM_COMPARED_UNDECIDED] = "inconclusive, without a gate",
		[PM_COMPARED_UNKNOWN] = "unknown",
		[PM_COMPARED_WITHIN] = "within the gate",
		[PM_COMPARED_SAME] = "unchanged",
	};

	return words[section];
}

void pm_compare_count(struct pm_compare_counts *out,
		      const struct pm_comparison *comparison)
{
	*out = (struct pm_compare_counts){ 0 };
	for (size_t i = 0; i < comparison->rows.len; i++) {
		const struct pm_compare_row *row = &comparison->rows.data[i];

		out->of[pm_compare_section_of(row)]++;
		out->gated += row->gated;
		out->gated_new += row->gated && row->verdict == PM_VERDICT_NEW &&
				  isnan(row->at_most);
	}
}

/* ---- the verdict ----------------------------------------------------------------------- */

/* Returns the first row of a section, which is the heaviest: rows are sorted by
 * weight. */
static const struct pm_compare_row *first_row_of_section(
	const struct pm_comparison *comparison, enum pm_compare_section section)
{
	for (size_t i = 0; i < comparison->rows.len; i++)
		if (pm_compare_section_of(&comparison->rows.data[i]) == section)
			return &comparison->rows.data[i];
	return NULL;
}

static void put_first_row_of_section(struct pm_str *str,
				     const struct pm_comparison *comparison,
				     enum pm_compare_section section)
{
	const struct pm_compare_row *row = first_row_of_section(comparison, section);

	if (!row)
		return;
	pm_str_puts(str, ": ");
	pm_put_compare_name(str, row, NAME_COLUMNS, true);
	/* If differences may be chance, readers would mistake the
	 * largest one for a result. */
	if (isnan(row->change) || row->verdict == PM_VERDICT_INCONCLUSIVE)
		return;
	/* A value above a hard limit may have decreased. */
	if (row->new.median > row->at_most && row->change <= 0)
		return;
	pm_str_putc(str, ' ');
	pm_put_compare_change(str, row);
}

static const char *number_is_or_are(size_t count)
{
	return pm_plural(count, "number is", "numbers are");
}

static void put_first_finding(struct pm_str *str, const struct pm_comparison *comparison,
			      const struct pm_compare_counts *counts)
{
	const size_t *of = counts->of;
	size_t changed = of[PM_COMPARED_WORSE] + of[PM_COMPARED_CHANGED];

	if (of[PM_COMPARED_FAILED] > 0) {
		pm_str_printf(str, ", %zu of %zu gated numbers beyond the gate",
			      of[PM_COMPARED_FAILED], counts->gated);
		put_first_row_of_section(str, comparison, PM_COMPARED_FAILED);
	} else if (of[PM_COMPARED_OPEN] > 0) {
		pm_str_printf(str, ", %zu of %zu gated numbers not decided",
			      of[PM_COMPARED_OPEN], counts->gated);
		put_first_row_of_section(str, comparison, PM_COMPARED_OPEN);
	} else if (of[PM_COMPARED_ACCEPTED] > 0) {
		pm_str_printf(str,
			      ", %zu of %zu gated numbers beyond the gate as accepted",
			      of[PM_COMPARED_ACCEPTED], counts->gated);
		put_first_row_of_section(str, comparison, PM_COMPARED_ACCEPTED);
	} else if (of[PM_COMPARED_BETTER] > 0 &&
		   comparison->verdict == PM_VERDICT_BETTER) {
		pm_str_printf(str, ", %zu %s better", of[PM_COMPARED_BETTER],
			      number_is_or_are(of[PM_COMPARED_BETTER]));
		put_first_row_of_section(str, comparison, PM_COMPARED_BETTER);
	} else if (changed > 0) {
		const char *words = number_is_or_are(changed);
		enum pm_compare_section first = PM_COMPARED_CHANGED;

		if (counts->gated > 0)
			words = pm_plural(changed, "number without a gate is",
					  "numbers without a gate are");
		if (of[PM_COMPARED_WORSE] > 0)
			first = PM_COMPARED_WORSE;
		pm_str_printf(str, ", %zu %s not as before", changed, words);
		put_first_row_of_section(str, comparison, first);
	} else if (of[PM_COMPARED_WITHIN] > 0) {
		pm_str_printf(str, ", %zu of %zu gated numbers changed within it",
			      of[PM_COMPARED_WITHIN], counts->gated);
		put_first_row_of_section(str, comparison, PM_COMPARED_WITHIN);
	} else if (counts->gated > counts->gated_new) {
		size_t within = counts->gated - counts->gated_new;

		pm_str_printf(str, ", %zu gated %s within the gate", within,
			      number_is_or_are(within));
	}
}

enum pm_verdict pm_compare_verdict_of(const struct pm_compare_report *report)
{
	if (report->failure)
		return PM_VERDICT_UNKNOWN;
	return report->comparison->verdict;
}

/* Returns the words for a comparison without findings. Values may have changed even if
 * all gates hold. */
static const char *words_for_no_finding(const struct pm_compare_counts *counts)
{
	const size_t *of = counts->of;
	size_t differing = of[PM_COMPARED_WORSE] + of[PM_COMPARED_CHANGED] +
			   of[PM_COMPARED_BETTER] + of[PM_COMPARED_WITHIN];

	if (differing > 0)
		return "nothing beyond the gate";
	return "no change";
}

/* Whether every case is new or gone: then "no change" would be wrong. */
static bool has_no_common_case(const struct pm_comparison *comparison)
{
	for (size_t i = 0; i < comparison->cases.len; i++)
		if (comparison->cases.data[i].verdict != PM_VERDICT_NEW &&
		    comparison->cases.data[i].verdict != PM_VERDICT_GONE)
			return false;
	return comparison->cases.len > 0;
}

static void put_count_of_cases(struct pm_str *str, size_t count, const char *what,
			       bool *first)
{
	if (count == 0)
		return;
	if (*first)
		pm_str_puts(str, ": ");
	else
		pm_str_puts(str, ", ");
	pm_str_printf(str, "%zu %s", count, what);
	*first = false;
}

/* Appends "; 5 cases: 1 failed, 2 new". */
static void put_counts_of_cases(struct pm_str *str,
				const struct pm_comparison *comparison)
{
	size_t failed = 0, new = 0, gone = 0;
	bool first = true;

	for (size_t i = 0; i < comparison->cases.len; i++) {
		const struct pm_compare_case *one = &comparison->cases.data[i];

		failed += one->verdict == PM_VERDICT_UNKNOWN;
		new += one->verdict == PM_VERDICT_NEW;
		gone += one->verdict == PM_VERDICT_GONE;
	}
	if (comparison->cases.len == 0)
		return;
	pm_str_printf(str, "; %zu case%s", comparison->cases.len,
		      pm_plural_s(comparison->cases.len));
	put_count_of_cases(str, failed, "failed", &first);
	put_count_of_cases(str, new, "new", &first);
	put_count_of_cases(str, gone, "gone", &first);
}

void pm_put_compare_verdict(struct pm_str *str, const struct pm_compare_report *report)
{
	const struct pm_comparison *comparison = report->comparison;
	struct pm_compare_counts counts;

	if (report->failure) {
		pm_str_puts(str, "nothing was compared: ");
		pm_str_printable(str, report->failure, strlen(report->failure));
		return;
	}
	pm_compare_count(&counts, comparison);
	if (comparison->verdict != PM_VERDICT_SAME)
		pm_str_puts(str, pm_verdict_name(comparison->verdict));
	else if (has_no_common_case(comparison))
		pm_str_puts(str, "no case is on both sides");
	else
		pm_str_puts(str, words_for_no_finding(&counts));
	put_first_finding(str, comparison, &counts);
	put_counts_of_cases(str, comparison);
	if (comparison->forced && comparison->differences.len > 0)
		pm_str_puts(str, " (forced: the sides do not compare)");
}

void pm_put_compare_deciding(struct pm_str *str, const struct pm_comparison *comparison)
{
	size_t others = 0, decide = 0;

	for (size_t i = 0; i < comparison->rows.len; i++) {
		const struct pm_compare_row *row = &comparison->rows.data[i];

		others += !row->gated && row->base.known && row->new.known;
		decide += row->gated && !row->scope && row->gate_source &&
			  strcmp(row->gate_source, "default") == 0 &&
			  comparison->deciding &&
			  strcmp(row->event, comparison->deciding) == 0;
	}
	if (decide == 0)
		return;
	pm_str_printable(str, comparison->deciding, strlen(comparison->deciding));
	pm_str_puts(str, " decides.");
	if (others > 0)
		pm_str_puts(str,
			    " The other numbers are secondary: they are not corrected "
			    "for how many they are, and decide nothing.");
}

/* ---- names ----------------------------------------------------------------------------- */

void pm_put_compare_name(struct pm_str *str, const struct pm_compare_row *row,
			 size_t width, bool ascii)
{
	if (row->case_name) {
		pm_put_cut(str, row->case_name, width, false, ascii);
		pm_str_puts(str, PM_CASE_SEPARATOR);
	}
	pm_put_compare_row(str, row, width, ascii);
}

void pm_put_compare_row(struct pm_str *str, const struct pm_compare_row *row,
			size_t width, bool ascii)
{
	if (row->of_history)
		pm_str_puts(str, PM_HISTORY_PREFIX);
	if (row->scope) {
		pm_str_puts(str, "fn:");
		pm_put_name(str, row->scope, width, ascii);
		pm_str_putc(str, ':');
	}
	pm_put_cut(str, row->event, width, false, ascii);
}

void pm_put_compare_place(struct pm_str *str, const struct pm_compare_row *row,
			  bool whole)
{
	const char *file = row->file;

	if (!file)
		return;
	if (!whole)
		file = pm_basename(file);
	pm_str_printable(str, file, strlen(file));
	if (row->line > 0)
		pm_str_printf(str, ":%u", row->line);
}

const char *pm_compare_inlined_words(const struct pm_compare_row *row)
{
	if (row->inlined_base == row->inlined_new || row->verdict == PM_VERDICT_NEW ||
	    row->verdict == PM_VERDICT_GONE)
		return "";
	if (row->inlined_new)
		return "inlined now";
	return "no longer inlined";
}

const char *pm_compare_class_words(enum pm_stat_class class)
{
	switch (class) {
	case PM_STAT_EXACT:
		return "exact";
	case PM_STAT_LOW_NOISE:
		return "low noise";
	case PM_STAT_NOISY:
		return "noisy";
	}
	return "";
}

void pm_put_compare_side(struct pm_str *str, const struct pm_compare_of *of, bool ascii)
{
	bool by_hash = of->name && of->commit && strcmp(of->name, of->commit) == 0;

	if (!by_hash)
		pm_put_cut(str, pm_text_or(of->name, "?"), SUBJECT_COLUMNS, true, ascii);
	if (of->commit) {
		if (!by_hash)
			pm_str_puts(str, "  ");
		pm_str_printable(str, of->commit, strnlen(of->commit, COMMIT_DIGITS));
	}
	if (of->subject) {
		pm_str_puts(str, "  ");
		pm_put_cut(str, of->subject, SUBJECT_COLUMNS, false, ascii);
	}
	if (of->runs > 0)
		pm_str_printf(str, "  %zu run%s", of->runs, pm_plural_s(of->runs));
	if (of->documents > 1 && of->documents != of->runs)
		pm_str_printf(str, " in %zu documents", of->documents);
	if (of->left_out > 0)
		pm_str_printf(str, ", %zu left out that did not end well", of->left_out);
}

/* ---- numbers --------------------------------------------------------------------------- */

static bool is_row_a_share(const struct pm_compare_row *row)
{
	return strcmp(row->unit, "%") == 0;
}

/* Writes @number in a unit that suits @size. */
static void put_row_number(struct pm_str *str, const struct pm_compare_row *row,
			   double number, double size, bool ascii)
{
	/* pm_stat_unit_of() needs no other member of the event. */
	struct pm_stat_event event = { .unit = row->unit };
	struct pm_stat_unit unit = pm_stat_unit_of(&event, size, ascii);

	if (is_row_a_share(row))
		unit.decimals = 2;
	/* If there are many digits, the first ones are sufficient. */
	if (fabs(number) * unit.factor >= 1e15 || (number != 0 && fabs(number) < 1e-6)) {
		pm_str_printf(str, "%.3g", number * unit.factor);
	} else {
		pm_put_stat_number(str, &unit, number);
	}
	if (unit.suffix[0]) {
		pm_str_putc(str, ' ');
		pm_str_printable(str, unit.suffix, strlen(unit.suffix));
	}
}

static double size_of_side(const struct pm_compare_side *side)
{
	if (side->known)
		return fabs(side->median);
	return 0;
}

void pm_put_compare_median(struct pm_str *str, const struct pm_compare_row *row,
			   const struct pm_compare_side *side, bool ascii)
{
	double larger = fmax(size_of_side(&row->base), size_of_side(&row->new));

	if (!side->known || !isfinite(side->median)) {
		pm_str_putc(str, '-');
		return;
	}
	/* A side that would be rounded to almost nothing in the common unit has its
	 * own. */
	if (fabs(side->median) > 0 && fabs(side->median) < larger / OTHER_UNIT)
		larger = fabs(side->median);
	put_row_number(str, row, side->median, larger, ascii);
}

/* Appends a percentage with a sign and the significant digits. */
static void put_signed_percent(struct pm_str *str, double percent)
{
	double size = fabs(percent);

	if (size == 0)
		pm_str_putc(str, '0');
	else if (size < 0.095)
		pm_str_printf(str, "%+.2g", percent);
	else if (size < 100)
		pm_str_printf(str, "%+.2f", percent);
	else
		pm_str_printf(str, "%+.0f", percent);
}

void pm_put_compare_change(struct pm_str *str, const struct pm_compare_row *row)
{
	if (isnan(row->change)) {
		pm_str_putc(str, '-');
	} else if (isinf(row->change)) {
		pm_str_puts(str, "from 0");
	} else if (is_row_a_share(row)) {
		put_signed_percent(str, 100 * row->change);
		pm_str_puts(str, " points");
	} else if (row->change >= TIMES_FROM) {
		pm_str_printf(str, "%.4g times", 1 + row->change);
	} else {
		put_signed_percent(str, 100 * row->change);
		pm_str_puts(str, " %");
	}
}

void pm_put_compare_interval(struct pm_str *str, const struct pm_compare_row *row,
			     bool ascii)
{
	if (!isfinite(row->low) || !isfinite(row->high) || row->low == row->high)
		return;
	put_signed_percent(str, 100 * row->low);
	if (ascii)
		pm_str_puts(str, " .. ");
	else
		pm_str_puts(str, " … ");
	put_signed_percent(str, 100 * row->high);
	if (!is_row_a_share(row))
		pm_str_puts(str, " %");
}

void pm_put_compare_gate(struct pm_str *str, const struct pm_compare_row *row, bool ascii)
{
	if (!isfinite(row->gate) && isnan(row->at_most)) {
		pm_str_puts(str, "none");
		return;
	}
	if (isfinite(row->gate)) {
		if (row->both && ascii)
			pm_str_puts(str, "+-");
		else if (row->both)
			pm_str_puts(str, "±");
		pm_str_printf(str, "%.3g %s", 100 * row->gate,
			      is_row_a_share(row) ? "points" : "%");
	}
	if (!isnan(row->at_most)) {
		if (isfinite(row->gate))
			pm_str_puts(str, ", at most ");
		else
			pm_str_puts(str, "at most ");
		put_row_number(str, row, row->at_most, row->at_most, ascii);
	}
	if (!row->gate_source)
		return;
	pm_str_puts(str, " (");
	pm_str_printable(str, row->gate_source, strlen(row->gate_source));
	pm_str_putc(str, ')');
}

/* Appends the shares of the total, which are also shown for weights in recordings. */
static void put_shares_of_sides(struct pm_str *str, const struct pm_compare_row *row)
{
	if (is_row_a_share(row) || !row->base.known || !row->new.known ||
	    !isfinite(row->base.share) || !isfinite(row->new.share))
		return;
	pm_str_printf(str, ", %.2f %% and %.2f %% of all", row->base.share,
		      row->new.share);
}

void pm_put_compare_method(struct pm_str *str, const struct pm_compare_row *row)
{
	bool samples = row->base.samples > 0 || row->new.samples > 0;

	pm_str_puts(str, pm_text_or(row->method, pm_compare_class_words(row->class)));
	if (samples) {
		pm_str_puts(str, ", ");
		pm_put_count(str, row->base.samples);
		pm_str_puts(str, " and ");
		pm_put_count(str, row->new.samples);
		pm_str_puts(str, " samples");
		put_shares_of_sides(str, row);
	} else if (row->base.known && row->new.known) {
		pm_str_printf(str, ", %zu ", row->base.len);
		if (row->of_history)
			pm_str_printf(str, "commits and %zu ", row->new.len);
		else if (row->base.len != row->new.len)
			pm_str_printf(str, "and %zu ", row->new.len);
		pm_str_printf(str, "run%s%s", pm_plural_s(row->new.len),
			      pm_text_if(!row->of_history, " a side"));
	}
	/* No probability is 0, but with many samples it may be too small for a double. */
	if (isfinite(row->p_holm) && row->p_holm < P_LEAST)
		pm_str_printf(str, ", p < %.0e", P_LEAST);
	else if (isfinite(row->p_holm))
		pm_str_printf(str, row->p_holm < 0.0005 ? ", p %.0e" : ", p %.3f",
			      row->p_holm);
}

/* ---- cases ----------------------------------------------------------------------------- */

struct pm_comparison pm_compare_view(const struct pm_comparison *comparison,
				     const struct pm_compare_case *one)
{
	struct pm_comparison view = {
		.base = one->base,
		.new = one->new,
		.engine = one->engine,
		.cpu_model = comparison->cpu_model,
		.deciding = one->deciding,
		.hot = one->hot,
		.verdict = one->verdict,
	};

	view.rows.data = comparison->rows.data + one->first;
	view.rows.len = one->len;
	return view;
}

void pm_put_compare_case(struct pm_str *str, const struct pm_compare_report *report,
			 const struct pm_compare_case *one)
{
	struct pm_comparison view = pm_compare_view(report->comparison, one);
	struct pm_compare_report of = *report;

	of.comparison = &view;
	of.failure = NULL;
	if (one->verdict == PM_VERDICT_UNKNOWN) {
		if (one->failed_new || one->failed_base)
			pm_str_puts(str, "failed");
		else
			pm_str_puts(str, "not compared");
	} else {
		pm_put_compare_verdict(str, &of);
	}
	if (one->why) {
		pm_str_puts(str, ": ");
		pm_str_printable(str, one->why, strlen(one->why));
	}
}

/* ---- JSON ------------------------------------------------------------------------------ */

void pm_put_compare_json(struct pm_str *str, const char *key, double number)
{
	pm_str_puts(str, key);
	if (isfinite(number))
		pm_str_printf(str, "%.17g", number);
	else
		pm_str_puts(str, "null");
}

void pm_put_compare_json_text(struct pm_str *str, const char *key, const char *text)
{
	pm_str_puts(str, key);
	pm_str_json(str, text);
}
