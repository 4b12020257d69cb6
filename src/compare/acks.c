/* SPDX-License-Identifier: MIT */
/* Regressions that somebody has accepted: those and no further ones. */
#include "compare-internal.h"

#include <math.h>

#include "pm/suite.h"

void pm_compare_row_name(struct pm_str *str, const struct pm_compare_row *row)
{
	if (row->case_name) {
		pm_str_puts(str, row->case_name);
		pm_str_puts(str, PM_CASE_SEPARATOR);
	}
	if (row->of_history)
		pm_str_puts(str, PM_HISTORY_PREFIX);
	if (row->scope) {
		pm_str_puts(str, "fn:");
		pm_str_puts(str, row->scope);
		pm_str_putc(str, ':');
	}
	pm_str_puts(str, row->event);
}

/* Whether the new value is worse by being larger. */
static bool is_more(const struct pm_compare_row *row)
{
	return row->new.median > row->at_most || !(row->new.median < row->base.median);
}

/* The gate that the row has anyway is as far as a value may be from the accepted level, and the
 * base from the one that it was accepted against. If the base has become better since, the way back
 * is a regression of its own. */
static bool covers(const struct pm_ack *ack, const struct pm_compare_row *row)
{
	double gate = isfinite(row->gate) ? row->gate : 0;
	double far = gate * fabs(ack->to), base_far = gate * fabs(ack->from);

	if (is_more(row))
		return row->new.median <= ack->to + far &&
		       !(row->base.median < ack->from - base_far);
	return row->new.median >= ack->to - far &&
	       !(row->base.median > ack->from + base_far);
}

static int accept_row(struct pm_compare_row *row, const struct pm_ack *ack)
{
	row->verdict = PM_VERDICT_ACCEPTED;
	row->ack = ack;
	return pm_compare_why(row, "Accepted%s%.10s: %s", ack->commit ? " for " : "",
			      ack->commit ? ack->commit : "", ack->reason);
}

/* What was accepted of a row is accepted over the history, too: NULL without memory, or if it was
 * not. */
static const struct pm_ack *find_ack(const struct pm_acks *acks,
				     const struct pm_compare_row *row,
				     struct pm_str *name)
{
	struct pm_compare_row direct = *row;
	const struct pm_ack *ack;

	pm_str_clear(name);
	pm_compare_row_name(name, row);
	ack = name->failed ? NULL : pm_acks_find(acks, name->data);
	if (ack || !row->of_history)
		return ack;
	direct.of_history = false;
	pm_str_clear(name);
	pm_compare_row_name(name, &direct);
	return name->failed ? NULL : pm_acks_find(acks, name->data);
}

int pm_compare_accept(struct pm_comparison *comparison, const struct pm_acks *acks)
{
	PM_CLEANUP(pm_str_release) struct pm_str name = { 0 };

	for (size_t i = 0; acks && i < comparison->rows.len; i++) {
		struct pm_compare_row *row = &comparison->rows.data[i];
		const struct pm_ack *ack;

		if (row->verdict != PM_VERDICT_WORSE || !row->gated || !row->new.known)
			continue;
		ack = find_ack(acks, row, &name);
		if (name.failed)
			return -ENOMEM;
		if (ack && covers(ack, row) && accept_row(row, ack) < 0)
			return -ENOMEM;
		if (ack && row->verdict == PM_VERDICT_WORSE &&
		    pm_compare_warn(comparison,
				    "That %s is up to %.6g was accepted, but not this.",
				    name.data, ack->to) < 0)
			return -ENOMEM;
	}
	return 0;
}
