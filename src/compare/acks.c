/* SPDX-License-Identifier: MIT */
/* Applies accepted regressions, which do not cover further ones. */
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

/* Whether the new value is worse because it is larger. */
static bool is_more(const struct pm_compare_row *row)
{
	return row->new.median > row->at_most || !(row->new.median < row->base.median);
}

/* Whether the row is worse than its base, and does not merely exceed a hard limit. */
static bool is_beyond_base(const struct pm_compare_row *row, double gate)
{
	return isnan(row->at_most) ||
	       (isfinite(row->gate) &&
		fabs(row->new.median - row->base.median) > gate * fabs(row->base.median));
}

/* Whether the base is still the one from which the regression was accepted. If the base
 * has changed by more than the gate, in either direction, this is another regression. The
 * median of a history follows the accepted level slowly, and a hard limit does not depend
 * on the base: in these cases, only a better base makes it another regression. */
static bool is_same_base(const struct pm_ack *ack, const struct pm_compare_row *row,
			 double gate)
{
	double by = row->base.median - ack->from, far = gate * fabs(ack->from);

	if (!row->of_history && is_beyond_base(row, gate))
		return !(fabs(by) > far);
	if (is_more(row))
		return !(by < -far);
	return !(by > far);
}

/* Whether the new value is within the accepted level, which it may exceed by the gate of
 * the row. */
static bool does_ack_cover_row(const struct pm_ack *ack, const struct pm_compare_row *row)
{
	double gate = isfinite(row->gate) ? row->gate : 0;
	double by = row->new.median - ack->to, far = gate *fabs(ack->to);

	return (is_more(row) ? by <= far : by >= -far) && is_same_base(ack, row, gate);
}

static int accept_row(struct pm_compare_row *row, const struct pm_ack *ack)
{
	row->verdict = PM_VERDICT_ACCEPTED;
	row->ack = ack;
	return pm_compare_why(row, "Accepted%s%.10s: %s",
			      pm_text_if(ack->commit, " for "),
			      pm_text_or_empty(ack->commit), ack->reason);
}

/* Finds the entry for the row. An accepted row is also accepted over the history. Returns
 * NULL if the row is not accepted, or if memory runs out. */
static const struct pm_ack *find_ack(const struct pm_acks *acks,
				     const struct pm_compare_row *row,
				     struct pm_str *name)
{
	struct pm_compare_row direct = *row;
	const struct pm_ack *ack;

	pm_str_clear(name);
	pm_compare_row_name(name, row);
	if (name->failed)
		ack = NULL;
	else
		ack = pm_acks_find(acks, name->data);
	if (ack || !row->of_history)
		return ack;
	direct.of_history = false;
	pm_str_clear(name);
	pm_compare_row_name(name, &direct);
	if (name->failed)
		return NULL;
	return pm_acks_find(acks, name->data);
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
		if (ack && does_ack_cover_row(ack, row) && accept_row(row, ack) < 0)
			return -ENOMEM;
		if (ack && row->verdict == PM_VERDICT_WORSE &&
		    pm_compare_warn(comparison,
				    "That %s is up to %.6g was accepted, but not this.",
				    name.data, ack->to) < 0)
			return -ENOMEM;
	}
	return 0;
}
