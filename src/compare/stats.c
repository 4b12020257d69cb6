/* SPDX-License-Identifier: MIT */
/* Counting documents against each other: rows, the gate of each, and all of it together. */
#include "compare-internal.h"

#include <math.h>
#include <string.h>

/*
 * What changes without anybody's fault: nothing but the loader's handling of paths in simulated
 * counts; where code and data lie moves a program's time by some tenths of a percent; a busy
 * machine's clock varies by 1 % from run to run, its wall-time by 20 %, and both by more from one
 * minute to the next.
 */
#define GATE_EXACT     0.0005
#define GATE_LOW_NOISE 0.005
#define GATE_NOISY     0.005
#define GATE_WALL      0.05
#define GATE_NO_TURNS  0.1

/* What a comparison is made with. */
struct work {
	struct pm_comparison *comparison;
	const struct pm_compare_options *options;
	struct pm_side sides[PM_SIDES];
	struct pm_event_pairs pairs;
	struct pm_scope_groups groups;
	bool turns, one_machine;
	bool *used; /* by gate */
	bool gates_mean_nothing; /* none of them: what decides without any does */
};

static void work_release(struct work *work)
{
	pm_event_pairs_release(&work->pairs);
	pm_scope_groups_release(&work->groups);
	free(work->used);
}

static int no_memory(struct pm_error *err)
{
	return pm_error_set(err, -ENOMEM, "out of memory");
}

/* ---- the sides ---------------------------------------------------------------------- */

static int set_sides(struct work *work, const struct pm_stat *const *base,
		     size_t base_len, const struct pm_stat *const *new, size_t new_len,
		     struct pm_error *err)
{
	bool ab = base_len == 1 && base[0]->subjects.len == 2 &&
		  (new_len == 0 || (new_len == 1 && new[0] == base[0]));

	if (ab) {
		new = base;
		new_len = 1;
	}
	if (base_len == 0 || new_len == 0)
		return pm_error_set(err, -EINVAL, "there is nothing to compare with");
	work->sides[PM_BASE] = (struct pm_side){ .docs = base, .len = base_len };
	work->sides[PM_NEW] =
		(struct pm_side){ .docs = new, .len = new_len, .variant = ab ? 1 : 0 };
	for (unsigned int side = 0; side < PM_SIDES; side++) {
		struct pm_side *of = &work->sides[side];

		for (size_t i = 0; i < of->len; i++) {
			if (of->docs[i]->subjects.len > 1 && !ab)
				return pm_error_set(
					err, -EINVAL,
					"a document of two programs is both sides by "
					"itself: give it alone");
			if (pm_stat_variants_ended(of->docs[i]) >> of->variant & 1)
				of->ended = true;
		}
	}
	return 0;
}

static int describe(struct pm_compare_of *of, const struct pm_side *side)
{
	const struct pm_stat *first = side->docs[0];
	struct pm_str command = { 0 };
	int r;

	of->documents = side->len;
	for (size_t i = 0; i < side->len; i++)
		for (size_t j = 0; j < side->docs[i]->runs.len; j++) {
			const struct pm_stat_run *run = &side->docs[i]->runs.data[j];

			of->runs += pm_side_counts(side, run);
			of->left_out += run->variant == side->variant &&
					!pm_side_counts(side, run);
		}
	r = pm_stat_text(&of->created, first->created);
	if (r < 0 || side->variant >= first->subjects.len)
		return r;
	for (size_t i = 0; i < first->subjects.data[side->variant].argv.len; i++) {
		pm_str_puts(&command, i > 0 ? " " : "");
		pm_str_puts(&command, first->subjects.data[side->variant].argv.data[i]);
	}
	if (command.failed ||
	    pm_stat_text(&of->commit, first->subjects.data[side->variant].commit) < 0)
		r = -ENOMEM;
	else
		r = pm_stat_text(&of->command, command.data);
	pm_str_release(&command);
	return r;
}

static int warn_of_sides(struct work *work)
{
	static const char *const names[] = { "base", "new side" };
	const struct pm_compare_of *of[] = { &work->comparison->base,
					     &work->comparison->new };

	for (unsigned int side = 0; side < PM_SIDES; side++) {
		if (of[side]->left_out > 0 &&
		    pm_compare_warn(work->comparison,
				    "Of the %s %zu of %zu runs are left out: they were "
				    "stopped or failed.",
				    names[side], of[side]->left_out,
				    of[side]->left_out + of[side]->runs) < 0)
			return -ENOMEM;
		if (!work->sides[side].ended && of[side]->runs > 0 &&
		    pm_compare_warn(
			    work->comparison,
			    "No run of the %s ended well: they may have done less than "
			    "they should.",
			    names[side]) < 0)
			return -ENOMEM;
	}
	return 0;
}

/* ---- gates -------------------------------------------------------------------------- */

/* Who looks into functions, or simulates, takes most of the time himself. */
static bool is_undisturbed(const struct work *work)
{
	return strcmp(work->comparison->engine, "count") == 0;
}

/* Events that depend on other users of the machine, or that include the parent's own
 * values. */
static bool depends_on_others(const struct pm_stat_event *event)
{
	static const char *const names[] = { "context-switches", "cgroup-switches",
					     "cpu-migrations",   "major-faults",
					     "user-time",        "system-time",
					     "max-rss" };

	for (size_t i = 0; i < PM_ARRAY_LEN(names); i++)
		if (strcmp(event->name, names[i]) == 0)
			return true;
	return false;
}

/* Whether @event measures the program alone, here. */
static bool is_trusted(const struct work *work, const struct pm_stat_event *event)
{
	if (strcmp(event->name, "wall-time") == 0)
		return work->turns && is_undisturbed(work);
	/* A clock tells of the machine, too. */
	if (strcmp(event->name, "task-clock") == 0 && !work->turns && !work->one_machine)
		return false;
	return !depends_on_others(event);
}

static bool decides(const struct work *work, const struct pm_compare_row *row,
		    const struct pm_stat_event *event)
{
	if (!event || row->class == PM_STAT_EXACT)
		return true;
	if (row->better == 0 || !is_trusted(work, event))
		return false;
	if (!event->default_set || strcmp(event->source, "simulated") == 0)
		return true;
	/* There may be many functions, each with all events, and measuring them takes
	 * time. */
	if (row->scope)
		return strcmp(event->name, "instructions") == 0;
	return work->comparison->deciding &&
	       strcmp(row->event, work->comparison->deciding) == 0;
}

/* Whether the program has @event on both sides. */
static int is_known_on_both(const struct work *work, size_t event, bool *ret)
{
	struct pm_compare_row row;
	int r = pm_compare_row_fill(&row, work->sides, NULL, &work->pairs, event);

	if (r == 0)
		*ret = row.base.known && row.new.known;
	pm_compare_row_free(&row);
	return r;
}

/* If somebody has requested events, only these decide. */
static bool are_events_asked_for(const struct work *work)
{
	for (size_t i = 0; i < work->pairs.list.len; i++) {
		const struct pm_event_pair *pair = &work->pairs.list.data[i];

		for (unsigned int side = 0; side < PM_SIDES; side++)
			if (pair->of[side] && !pair->of[side]->default_set)
				return true;
	}
	return false;
}

static int find_deciding(struct work *work)
{
	size_t best = PM_COMPARE_DECIDERS, at = 0;

	if (are_events_asked_for(work) || !is_undisturbed(work))
		return 0;
	for (size_t i = 0; i < work->pairs.list.len; i++) {
		const struct pm_event_pair *pair = &work->pairs.list.data[i];
		const struct pm_stat_event *event = pair->of[PM_NEW];
		bool known = false;
		size_t rank;

		if (!pair->of[PM_BASE] || !event)
			continue;
		rank = pm_compare_decider_rank(event->name);
		if (rank >= best || !is_trusted(work, event))
			continue;
		if (is_known_on_both(work, i, &known) < 0)
			return -ENOMEM;
		if (known) {
			best = rank;
			at = i;
		}
	}
	return best == PM_COMPARE_DECIDERS ? 0
					   : pm_stat_text(&work->comparison->deciding,
							  work->pairs.list.data[at].name);
}

static bool varies(const struct pm_compare_side *side)
{
	return side->max - side->min > GATE_EXACT * fabs(side->min);
}

/* An address more or less in a simulated run is no reason to look away from ten times that. */
static bool is_nearly_exact(const struct pm_compare_row *row,
			    const struct pm_stat_event *event)
{
	return row->class == PM_STAT_LOW_NOISE &&
	       (!event || event->class == PM_STAT_EXACT) && !varies(&row->base) &&
	       !varies(&row->new);
}

static double default_gate(const struct work *work, const struct pm_compare_row *row,
			   const struct pm_stat_event *event)
{
	double given = work->options->gates_default[row->class];

	if (given > 0)
		return given;
	if (row->class == PM_STAT_NOISY && !work->turns)
		return GATE_NO_TURNS;
	if (strcmp(row->event, "wall-time") == 0)
		return GATE_WALL;
	return row->class == PM_STAT_EXACT || is_nearly_exact(row, event) ? GATE_EXACT
	       : row->class == PM_STAT_LOW_NOISE                          ? GATE_LOW_NOISE
									  : GATE_NOISY;
}

static int set_default_gate(const struct work *work, struct pm_compare_row *row,
			    const struct pm_stat_event *event)
{
	double of_history;
	bool known = false;

	row->gate = default_gate(work, row, event);
	row->gate_source = "default";
	row->gated = (!work->options->gates || work->options->gates->list.len == 0 ||
		      work->gates_mean_nothing) &&
		     decides(work, row, event);
	if (row->class == PM_STAT_LOW_NOISE && work->options->history_len > 0) {
		int r = pm_history_gate(work->options, work->sides[PM_NEW].docs[0], row,
					&of_history, &known);

		if (r < 0)
			return r;
	}
	if (known && of_history > row->gate) {
		row->gate = of_history;
		row->gate_source = "history";
	}
	return 0;
}

/* Of all that a pattern means some may go; but names of C++ have stars of their own. */
static bool is_pattern(const struct pm_gate *gate, const struct pm_compare_row *row)
{
	return gate->scope && strpbrk(gate->scope, "*?") &&
	       (!row->scope || strcmp(gate->scope, row->scope) != 0);
}

/* If several gates match a row, the last one holds, which comes first here. A limit of a
 * change and a hard limit both hold. */
static void apply_gate(struct pm_compare_row *row, const struct pm_gate *gate)
{
	bool hard = !isnan(gate->at_most);

	if (hard ? !isnan(row->at_most) : row->gate_source && isfinite(row->gate))
		return;
	row->gated =
		row->gated || row->verdict != PM_VERDICT_GONE || !is_pattern(gate, row);
	if (hard)
		row->at_most = gate->at_most;
	if (hard && row->gate_source)
		return;
	row->gate = gate->limit;
	row->both = gate->both;
	row->gate_source = gate->source;
}

static int set_gate(struct work *work, struct pm_compare_row *row,
		    const struct pm_event_pair *pair)
{
	const struct pm_gates *gates = work->options->gates;
	const struct pm_stat_event *event = NULL;
	struct pm_gate_target target = {
		.scope = row->scope,
		.symbol = row->symbol,
		.event = row->event,
	};

	for (unsigned int side = 0; pair && side < PM_SIDES; side++)
		if (pair->of[side]) {
			event = pair->of[side];
			target.requested[side] = event->requested;
			target.user_only = event->user_only;
		}
	row->at_most = NAN;
	for (size_t i = gates ? gates->list.len : 0; i-- > 0;) {
		const struct pm_gate *gate = &gates->list.data[i];

		if (!pm_gate_fits(gate, &target))
			continue;
		work->used[i] = true;
		apply_gate(row, gate);
	}
	return row->gate_source ? 0 : set_default_gate(work, row, event);
}

/* ---- rows --------------------------------------------------------------------------- */

/* What wait4(2) and clocks tell is never known of a function, nor is what nobody asked for
 * missed where the machine does not have it. */
static bool is_missed(const struct pm_compare_row *row, const struct pm_event_pair *pair)
{
	const struct pm_stat_event *event =
		pair->of[PM_NEW] ? pair->of[PM_NEW] : pair->of[PM_BASE];

	if (row->base.known || row->new.known || row->gated)
		return true;
	return !event->default_set && !(row->scope && strcmp(event->source, "tool") == 0);
}

/* That it is missed where it was counted before is no "fine". */
static int warn_of_lack(struct work *work, const struct pm_compare_row *row)
{
	if (row->base.known == row->new.known || row->verdict != PM_VERDICT_SAME)
		return 0;
	return pm_compare_warn(work->comparison,
			       "%s%s%s would decide, but the %s has no number of it.",
			       row->scope ? row->scope : "", row->scope ? ": " : "",
			       row->event, row->base.known ? "new side" : "base");
}

static int add_row(struct work *work, const struct pm_scope_group *group, size_t event)
{
	const struct pm_event_pair *pair =
		event < work->pairs.list.len ? &work->pairs.list.data[event] : NULL;
	struct pm_compare_row row;
	int r = pm_compare_row_fill(&row, work->sides, group, &work->pairs, event);

	if (r == 0)
		r = set_gate(work, &row, pair);
	/* Nobody said that it decides: without a value it does not, nor does what explains. */
	if (r == 0 && pm_gate_is_default(&row) && group &&
	    work->options->functions_explain)
		row.gated = false;
	if (r == 0 && pm_gate_is_default(&row) && row.gated &&
	    (!row.base.known || !row.new.known)) {
		r = warn_of_lack(work, &row);
		row.gated = false;
	}
	if (r == 0 && (!pair || is_missed(&row, pair))) {
		r = pm_vec_push(&work->comparison->rows, row);
		if (r == 0)
			return 0;
	}
	pm_compare_row_free(&row);
	return r;
}

/* Engines that see functions know nothing of whole programs. */
static bool program_is_shown(const struct work *work)
{
	if (work->groups.list.len == 0)
		return true;
	for (unsigned int side = 0; side < PM_SIDES; side++)
		for (size_t i = 0; i < work->sides[side].len; i++) {
			const struct pm_stat *stat = work->sides[side].docs[i];

			for (size_t r = 0; r < stat->runs.len; r++)
				for (size_t e = 0; e < stat->events.len; e++)
					if (pm_stat_has_value(
						    &stat->runs.data[r].values[e]))
						return true;
		}
	return false;
}

static int add_rows(struct work *work)
{
	size_t events = work->pairs.list.len;

	for (size_t e = 0; program_is_shown(work) && e < events; e++)
		if (add_row(work, NULL, e) < 0)
			return -ENOMEM;
	for (size_t g = 0; g < work->groups.list.len; g++)
		for (size_t e = 0; e <= events; e++)
			if (add_row(work, &work->groups.list.data[g],
				    (events + e) % (events + 1)) < 0)
				return -ENOMEM;
	return 0;
}

/* ---- gates that mean nothing -------------------------------------------------------- */

/* What is not measured here, but perhaps elsewhere. */
static int add_unknown(struct work *work, const struct pm_gate *gate)
{
	struct pm_compare_row row = {
		.subject = gate->scope ? PM_COMPARE_SCOPE : PM_COMPARE_PROGRAM,
		.class = PM_STAT_NOISY,
		.base = { .median = NAN,
			  .min = NAN,
			  .max = NAN,
			  .share = NAN,
			  .weight = NAN },
		.new = { .median = NAN,
			 .min = NAN,
			 .max = NAN,
			 .share = NAN,
			 .weight = NAN },
		.change = NAN,
		.low = NAN,
		.high = NAN,
		.difference = NAN,
		.difference_low = NAN,
		.difference_high = NAN,
		.p = NAN,
		.p_holm = NAN,
		.gate = gate->limit,
		.at_most = gate->at_most,
		.both = gate->both,
		.gate_source = gate->source,
		.verdict = PM_VERDICT_UNKNOWN,
	};

	if (pm_stat_text(&row.scope, gate->scope) == 0 &&
	    pm_stat_text(&row.event, gate->event) == 0 &&
	    pm_stat_text(&row.unit, "") == 0 &&
	    pm_compare_why(&row, "It was measured on neither side.") == 0 &&
	    pm_vec_push(&work->comparison->rows, row) == 0)
		return pm_compare_warn(
			work->comparison,
			"The gate %s%s%s%s of %s decides nothing here: neither side "
			"has measured it.",
			gate->scope ? "fn:" : "", gate->scope ? gate->scope : "",
			gate->scope ? ":" : "", gate->event, gate->source);
	pm_compare_row_free(&row);
	return -ENOMEM;
}

/* Where all gates are for other machines, what decides here is what decides without gates: a
 * comparison that cannot fail is worse than one whose gates nobody has chosen. */
static int gate_by_default(struct work *work)
{
	struct pm_comparison *comparison = work->comparison;

	for (size_t i = 0; i < comparison->rows.len; i++)
		pm_compare_row_free(&comparison->rows.data[i]);
	comparison->rows.len = 0;
	work->gates_mean_nothing = true;
	return pm_compare_warn(comparison, "No gate means anything that was measured "
					   "here: those by default decide.") < 0 ||
			       add_rows(work) < 0
		       ? -ENOMEM
		       : 0;
}

/* A slip must not pass for a gate. A repository's gates may be for machines of all kinds. */
static int check_gates(struct work *work, struct pm_error *err)
{
	const struct pm_gates *gates = work->options->gates;
	size_t used = 0, len = gates ? gates->list.len : 0;

	for (size_t i = 0; i < len; i++) {
		used += work->used[i];
		if (!work->used[i] &&
		    pm_gate_is_slip(&gates->list.data[i], work->comparison))
			return pm_gate_not_found(&gates->list.data[i], work->comparison,
						 err);
	}
	if (len > 0 && used == 0 && gate_by_default(work) < 0)
		return no_memory(err);
	for (size_t i = 0; i < len; i++)
		if (!work->used[i] && add_unknown(work, &gates->list.data[i]) < 0)
			return no_memory(err);
	return 0;
}

/* ---- all of it ---------------------------------------------------------------------- */

static int begin(struct work *work)
{
	struct pm_comparison *comparison = work->comparison;
	const struct pm_stat *newest = work->sides[PM_NEW].docs[0];
	size_t gates = work->options->gates ? work->options->gates->list.len : 0;

	work->used = calloc(gates + 1, sizeof(*work->used));
	work->one_machine = pm_sides_ran_on_one_machine(work->sides);
	if (!work->used || pm_sides_took_turns(work->sides, &work->turns) < 0 ||
	    describe(&comparison->base, &work->sides[PM_BASE]) < 0 ||
	    describe(&comparison->new, &work->sides[PM_NEW]) < 0 ||
	    pm_stat_text(&comparison->engine, newest->engine) < 0 ||
	    pm_stat_text(&comparison->cpu_model, newest->host.cpu_model) < 0 ||
	    pm_event_pairs_find(&work->pairs, work->sides) < 0 ||
	    pm_scope_groups_find(&work->groups, work->sides) < 0)
		return -ENOMEM;
	return warn_of_sides(work) < 0 || find_deciding(work) < 0
		       ? -ENOMEM
		       : pm_compare_sides_check(comparison, work->sides, &work->pairs);
}

/* Where runs were not in turns, times tell of the machine as well as of the program. */
static int warn_of_turns(const struct work *work)
{
	for (size_t i = 0; !work->turns && i < work->comparison->rows.len; i++) {
		const struct pm_compare_row *row = &work->comparison->rows.data[i];

		if (row->class == PM_STAT_NOISY && row->base.known && row->new.known &&
		    (row->gated || is_undisturbed(work)))
			return pm_compare_warn(
				work->comparison,
				"The sides did not run in turns: what changed on the machine "
				"in between is in every time and cannot be told from the "
				"program's own. `pmdiff run` and `pmstat ab` take turns.");
	}
	return 0;
}

static bool have_common(const struct pm_comparison *comparison)
{
	for (size_t i = 0; i < comparison->rows.len; i++)
		if (comparison->rows.data[i].base.known &&
		    comparison->rows.data[i].new.known)
			return true;
	return false;
}

static int compare(struct work *work, struct pm_error *err)
{
	struct pm_comparison *comparison = work->comparison;
	int r;

	if (begin(work) < 0)
		return no_memory(err);
	comparison->forced = comparison->differences.len > 0 && work->options->force;
	if (comparison->differences.len > 0 && !work->options->force)
		return pm_compare_refuse(comparison, err);
	if (add_rows(work) < 0)
		return no_memory(err);
	if (!have_common(comparison))
		return pm_error_set(
			err, -EINVAL,
			"nothing was measured on both sides: there is nothing to "
			"compare");
	r = check_gates(work, err);
	if (r < 0)
		return r;
	if (warn_of_turns(work) < 0 ||
	    pm_compare_judge(comparison, work->options->seed) < 0 ||
	    pm_compare_explain(comparison) < 0)
		return no_memory(err);
	pm_compare_conclude(comparison);
	return 0;
}

int pm_compare_stats(struct pm_comparison *ret, const struct pm_stat *const *base,
		     size_t base_len, const struct pm_stat *const *new, size_t new_len,
		     const struct pm_compare_options *options, struct pm_error *err)
{
	struct pm_comparison comparison PM_CLEANUP(pm_comparison_release) = { 0 };
	struct work work PM_CLEANUP(work_release) = { .comparison = &comparison,
						      .options = options };
	int r = set_sides(&work, base, base_len, new, new_len, err);

	if (r < 0)
		return r;
	r = compare(&work, err);
	/* Refused, it tells why. */
	if (r < 0 && r != -EXDEV)
		return r;
	*ret = comparison;
	comparison = (struct pm_comparison){ 0 };
	return r;
}
