/* SPDX-License-Identifier: MIT */
/* Compares counting documents: rows, their gates, and everything together. */
#include "compare-internal.h"
#include "pm/suite.h"

#include <math.h>
#include <string.h>

/*
 * Changes that have no cause in the program: simulated counts change only because the
 * loader handles different paths. The placement of code and data changes a program's time
 * by some tenths of a percent. On a busy machine, clocks vary by 1 % from run to run, and
 * wall-time by 20 %; both vary by more from one minute to the next.
 */
#define GATE_EXACT     0.0005
#define GATE_LOW_NOISE 0.005
#define GATE_NOISY     0.005
#define GATE_WALL      0.05
#define GATE_NO_TURNS  0.1

/* The comparison of one case, or of everything if there are no cases. */
struct work {
	struct pm_comparison *comparison; /* of this case only */
	const struct pm_compare_options *options;
	const struct pm_compare_input *input;
	size_t gates; /* number of gates for this case */
	struct pm_side sides[PM_SIDES];
	struct pm_event_pairs pairs;
	struct pm_scope_groups groups;
	bool turns, one_machine;
	bool *used; /* by gate, for all cases: whether it was used; borrowed */
	size_t used_here; /* number of gates that were used for this case */
	bool gates_mean_nothing; /* no gate matches: the verdict is that of a comparison
	                          * without gates */
};

static void case_work_release(struct work *work)
{
	pm_event_pairs_release(&work->pairs);
	pm_scope_groups_release(&work->groups);
}

static int compare_no_memory(struct pm_error *err)
{
	return pm_error_set(err, -ENOMEM, "out of memory");
}

/* ---- the sides ---------------------------------------------------------------------- */

/* Whether the input is the only document of `ab`, which contains both sides. */
static bool is_ab(const struct pm_compare_input *input)
{
	return input->base_len == 1 && input->base[0]->subjects.len == 2 &&
	       (input->new_len == 0 ||
		(input->new_len == 1 && input->new[0] == input->base[0]));
}

static int set_side(struct pm_side *of, const struct pm_stat *const *docs, size_t len,
		    bool ab, struct pm_error *err)
{
	of->docs = docs;
	of->len = len;
	for (size_t i = 0; i < len; i++) {
		if (docs[i]->subjects.len > 1 && !ab)
			return pm_error_set(err, -EINVAL,
					    "a document of two programs is both sides by "
					    "itself: give it alone");
		if (pm_stat_variants_ended(docs[i]) >> of->variant & 1)
			of->ended = true;
	}
	return 0;
}

static int set_sides(struct work *work, struct pm_error *err)
{
	const struct pm_compare_input *input = work->input;
	bool ab = is_ab(input);
	int ret = set_side(&work->sides[PM_BASE], input->base, input->base_len, ab, err);

	work->sides[PM_NEW].variant = ab;
	if (ret < 0)
		return ret;
	if (ab)
		return set_side(&work->sides[PM_NEW], input->base, 1, ab, err);
	return set_side(&work->sides[PM_NEW], input->new, input->new_len, ab, err);
}

/* Returns the first document of the new side, or of the base if only the base has
 * documents. */
static const struct pm_stat *newest_document(const struct work *work)
{
	const struct pm_side *side = &work->sides[PM_NEW];

	if (side->len > 0)
		return side->docs[0];
	return work->sides[PM_BASE].docs[0];
}

static int describe_side(struct pm_compare_of *of, const struct pm_side *side)
{
	const struct pm_stat *first = side->len > 0 ? side->docs[0] : NULL;
	struct pm_str command = { 0 };
	int ret;

	of->documents = side->len;
	if (!first)
		return 0;
	for (size_t i = 0; i < side->len; i++)
		for (size_t j = 0; j < side->docs[i]->runs.len; j++) {
			const struct pm_stat_run *run = &side->docs[i]->runs.data[j];

			of->runs += pm_side_counts(side, run);
			of->left_out += run->variant == side->variant &&
					!pm_side_counts(side, run);
		}
	ret = pm_stat_text(&of->created, first->created);
	if (ret < 0 || side->variant >= first->subjects.len)
		return ret;
	for (size_t i = 0; i < first->subjects.data[side->variant].argv.len; i++) {
		pm_str_puts(&command, i > 0 ? " " : "");
		pm_str_puts(&command, first->subjects.data[side->variant].argv.data[i]);
	}
	if (command.failed ||
	    pm_stat_text(&of->commit, first->subjects.data[side->variant].commit) < 0)
		ret = -ENOMEM;
	else
		ret = pm_stat_text(&of->command, command.data);
	pm_str_release(&command);
	return ret;
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

/* Whether the engine does not disturb times. Measuring functions, or simulating, takes
 * most of the time itself. */
static bool is_engine_undisturbed(const struct work *work)
{
	return strcmp(work->comparison->engine, "count") == 0;
}

/* Whether the event depends on other users of the machine, or includes values of the
 * parent. */
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

/* Whether @event measures only the program, in this comparison. */
static bool is_trusted(const struct work *work, const struct pm_stat_event *event)
{
	if (strcmp(event->name, "wall-time") == 0)
		return work->turns && is_engine_undisturbed(work);
	/* Clocks also depend on the state of the machine: that of pmstat, and that of
	 * google-benchmark. */
	if ((strcmp(event->name, "task-clock") == 0 ||
	     strcmp(event->name, "cpu-time") == 0) &&
	    !work->turns && !work->one_machine)
		return false;
	return !depends_on_others(event);
}

static bool does_row_decide(const struct work *work, const struct pm_compare_row *row,
			    const struct pm_stat_event *event)
{
	if (!event || row->class == PM_STAT_EXACT)
		return true;
	if (row->better == 0 || !is_trusted(work, event))
		return false;
	if (!event->default_set || strcmp(event->source, "simulated") == 0)
		return true;
	/* A function is judged by its instructions only: there may be many functions, each
	 * with all events, and measuring them takes time. */
	if (row->scope)
		return strcmp(event->name, "instructions") == 0;
	return work->comparison->deciding &&
	       strcmp(row->event, work->comparison->deciding) == 0;
}

/* Whether the program has @event on both sides. */
static int is_known_on_both(const struct work *work, size_t event, bool *out)
{
	struct pm_compare_row row;
	int ret = pm_compare_row_fill(&row, work->sides, NULL, &work->pairs, event);

	if (ret == 0)
		*out = row.base.known && row.new.known;
	pm_compare_row_free(&row);
	return ret;
}

/* Whether events were requested; then only these determine the verdict. */
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

	if (are_events_asked_for(work) || !is_engine_undisturbed(work))
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
	if (best == PM_COMPARE_DECIDERS)
		return 0;
	return pm_stat_text(&work->comparison->deciding, work->pairs.list.data[at].name);
}

static bool does_exact_side_vary(const struct pm_compare_side *side)
{
	return side->max - side->min > GATE_EXACT * fabs(side->min);
}

/* Whether the row counts as nearly exact. Simulated runs that differ by one address must
 * not hide ten times that difference. */
static bool is_nearly_exact(const struct pm_compare_row *row,
			    const struct pm_stat_event *event)
{
	return row->class == PM_STAT_LOW_NOISE &&
	       (!event || event->class == PM_STAT_EXACT) &&
	       !does_exact_side_vary(&row->base) && !does_exact_side_vary(&row->new);
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
	if (row->class == PM_STAT_EXACT || is_nearly_exact(row, event))
		return GATE_EXACT;
	if (row->class == PM_STAT_LOW_NOISE)
		return GATE_LOW_NOISE;
	return GATE_NOISY;
}

static int set_default_gate(const struct work *work, struct pm_compare_row *row,
			    const struct pm_stat_event *event)
{
	double of_history;
	bool known = false;

	row->gate = default_gate(work, row, event);
	row->gate_source = "default";
	row->gated = (work->gates == 0 || work->gates_mean_nothing) &&
		     does_row_decide(work, row, event);
	if (row->class == PM_STAT_LOW_NOISE && work->options->history_len > 0) {
		int ret = pm_history_gate(work->options, newest_document(work), row,
					  &of_history, &known);

		if (ret < 0)
			return ret;
	}
	if (known && of_history > row->gate) {
		row->gate = of_history;
		row->gate_source = "history";
	}
	return 0;
}

/* Whether the gate is a pattern, so that some of the rows that it matches may be gone.
 * C++ names may contain stars themselves. */
static bool is_pattern(const struct pm_gate *gate, const struct pm_compare_row *row)
{
	return gate->scope && strpbrk(gate->scope, "*?") &&
	       (!row->scope || strcmp(gate->scope, row->scope) != 0);
}

/* Whether @gate applies to the loss of @row. If a case is gone, all its rows are; then
 * only a gate with the name of the case applies. */
static bool is_missed_by(const struct work *work, const struct pm_gate *gate,
			 const struct pm_compare_row *row)
{
	if (work->input->name && work->sides[PM_NEW].len == 0)
		return gate->case_name && strcmp(gate->case_name, work->input->name) == 0;
	return !is_pattern(gate, row);
}

/* Applies a gate. If several gates match a row, the last one of them applies, which comes
 * first here. A limit for the change and a hard limit both apply. */
static void apply_gate(const struct work *work, struct pm_compare_row *row,
		       const struct pm_gate *gate)
{
	bool hard = !isnan(gate->at_most);

	if (hard ? !isnan(row->at_most) : row->gate_source && isfinite(row->gate))
		return;
	row->gated = row->gated || row->verdict != PM_VERDICT_GONE ||
		     is_missed_by(work, gate, row);
	if (hard)
		row->at_most = gate->at_most;
	if (hard && row->gate_source)
		return;
	row->gate = gate->limit;
	row->both = gate->both;
	row->gate_source = gate->source;
}

static int set_counted_gate(struct work *work, struct pm_compare_row *row,
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

		if (!pm_gate_fits_case(gate, work->input->name, work->input->group) ||
		    !pm_gate_fits(gate, &target))
			continue;
		work->used[i] = true;
		work->used_here++;
		apply_gate(work, row, gate);
	}
	if (row->gate_source)
		return 0;
	return set_default_gate(work, row, event);
}

/* ---- rows --------------------------------------------------------------------------- */

/* Whether a missing value should have been there. A function never has the values of
 * wait4(2) and clocks. An event that was not requested may be missing if the machine does
 * not have it. */
static bool is_value_missed(const struct pm_compare_row *row,
			    const struct pm_event_pair *pair)
{
	const struct pm_stat_event *event =
		pair->of[PM_NEW] ? pair->of[PM_NEW] : pair->of[PM_BASE];

	if (row->base.known || row->new.known || row->gated)
		return true;
	return !event->default_set && !(row->scope && strcmp(event->source, "tool") == 0);
}

/* Warns of a value that is missing: one that was counted before must not disappear
 * silently. */
static int warn_of_lack(struct work *work, const struct pm_compare_row *row)
{
	if (row->base.known == row->new.known || row->verdict != PM_VERDICT_SAME)
		return 0;
	return pm_compare_warn(work->comparison,
			       "%s%s%s would decide, but the %s has no number of it.",
			       pm_text_or_empty(row->scope), pm_text_if(row->scope, ": "),
			       row->event, row->base.known ? "new side" : "base");
}

/* Sets the verdict of a row of a case that only one side has. */
static void set_lonely(const struct work *work, struct pm_compare_row *row)
{
	if ((work->sides[PM_BASE].len > 0 && work->sides[PM_NEW].len > 0) ||
	    (!row->base.known && !row->new.known))
		return;
	if (work->sides[PM_BASE].len == 0)
		row->verdict = PM_VERDICT_NEW;
	else
		row->verdict = PM_VERDICT_GONE;
	free(PM_TAKE_PTR(row->why));
}

static int add_counted_row(struct work *work, const struct pm_scope_group *group,
			   size_t event)
{
	const struct pm_event_pair *pair =
		event < work->pairs.list.len ? &work->pairs.list.data[event] : NULL;
	struct pm_compare_row row;
	int ret = pm_compare_row_fill(&row, work->sides, group, &work->pairs, event);

	if (ret == 0)
		set_lonely(work, &row);
	if (ret == 0)
		ret = set_counted_gate(work, &row, pair);
	/* Rows with a default gate are not gated if they have no value; nor are functions
	 * that only explain. */
	if (ret == 0 && pm_gate_is_default(&row) && group &&
	    work->options->functions_explain)
		row.gated = false;
	if (ret == 0 && pm_gate_is_default(&row) && row.gated &&
	    (!row.base.known || !row.new.known)) {
		ret = warn_of_lack(work, &row);
		row.gated = false;
	}
	if (ret == 0 && (!pair || is_value_missed(&row, pair))) {
		ret = pm_vec_push(&work->comparison->rows, row);
		if (ret == 0)
			return 0;
	}
	pm_compare_row_free(&row);
	return ret;
}

/* Whether rows of the whole program are shown. Engines that measure functions have no
 * such values. */
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

static int add_counted_rows(struct work *work)
{
	size_t events = work->pairs.list.len;

	for (size_t e = 0; program_is_shown(work) && e < events; e++)
		if (add_counted_row(work, NULL, e) < 0)
			return -ENOMEM;
	for (size_t g = 0; g < work->groups.list.len; g++)
		for (size_t e = 0; e <= events; e++)
			if (add_counted_row(work, &work->groups.list.data[g],
					    (events + e) % (events + 1)) < 0)
				return -ENOMEM;
	return 0;
}

/* ---- one case ----------------------------------------------------------------------- */

/* Applies default gates. If all gates are for other machines, the rows count that would
 * count without gates: a comparison that cannot fail is worse than one whose gates were
 * not chosen by the user. */
static int gate_by_default(struct work *work)
{
	struct pm_comparison *comparison = work->comparison;

	for (size_t i = 0; i < comparison->rows.len; i++)
		pm_compare_row_free(&comparison->rows.data[i]);
	comparison->rows.len = 0;
	work->gates_mean_nothing = true;
	if (pm_compare_warn(comparison, "No gate means anything that was measured "
					"here: those by default decide.") < 0 ||
	    add_counted_rows(work) < 0)
		return -ENOMEM;
	return 0;
}

static int begin_case(struct work *work)
{
	struct pm_comparison *comparison = work->comparison;
	const struct pm_gates *gates = work->options->gates;
	const struct pm_stat *newest = newest_document(work);

	for (size_t i = 0; gates && i < gates->list.len; i++)
		work->gates += pm_gate_fits_case(&gates->list.data[i], work->input->name,
						 work->input->group);
	work->one_machine = pm_sides_ran_on_one_machine(work->sides);
	if (pm_sides_took_turns(work->sides, &work->turns) < 0 ||
	    describe_side(&comparison->base, &work->sides[PM_BASE]) < 0 ||
	    describe_side(&comparison->new, &work->sides[PM_NEW]) < 0 ||
	    pm_stat_text(&comparison->engine, newest->engine) < 0 ||
	    pm_stat_text(&comparison->cpu_model, newest->host.cpu_model) < 0 ||
	    pm_event_pairs_find(&work->pairs, work->sides) < 0 ||
	    pm_scope_groups_find(&work->groups, work->sides) < 0)
		return -ENOMEM;
	if (warn_of_sides(work) < 0 || find_deciding(work) < 0)
		return -ENOMEM;
	return pm_compare_sides_check(comparison, work->sides, &work->pairs);
}

/* Warns if times were not measured in turns: they then depend on the machine as well as
 * on the program. */
static int warn_of_turns(const struct work *work)
{
	for (size_t i = 0; !work->turns && i < work->comparison->rows.len; i++) {
		const struct pm_compare_row *row = &work->comparison->rows.data[i];

		if (row->class == PM_STAT_NOISY && row->base.known && row->new.known &&
		    (row->gated || is_engine_undisturbed(work)))
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

/* Adds the rows of one case with their gates. They are not judged yet. */
static int fill_case(struct work *work, struct pm_error *err)
{
	struct pm_comparison *comparison = work->comparison;
	bool both = work->sides[PM_BASE].len > 0 && work->sides[PM_NEW].len > 0;

	if (begin_case(work) < 0)
		return compare_no_memory(err);
	comparison->forced = comparison->differences.len > 0 && work->options->force;
	if (comparison->differences.len > 0 && !work->options->force)
		return pm_compare_refuse(comparison, err);
	if (add_counted_rows(work) < 0)
		return compare_no_memory(err);
	if (both && !have_common(comparison))
		return pm_error_set(
			err, -EINVAL,
			"nothing was measured on both sides: there is nothing to "
			"compare");
	if (work->gates > 0 && work->used_here == 0 && both && gate_by_default(work) < 0)
		return compare_no_memory(err);
	if (both && warn_of_turns(work) < 0)
		return compare_no_memory(err);
	return 0;
}

/* ---- all cases ---------------------------------------------------------------------- */

/* The comparison of all cases, while it is built. */
struct whole {
	struct pm_comparison *comparison;
	const struct pm_compare_options *options;
	const struct pm_compare_input *inputs;
	size_t len;
	bool *used; /* by gate: whether it was used */
	size_t refused; /* number of cases that were refused */
};

static void whole_release(struct whole *whole)
{
	free(whole->used);
}

/* Adds a row that was not measured here, but perhaps elsewhere. @at is the index of the
 * case. */
static int add_unknown(struct pm_comparison *comparison, const struct pm_gate *gate,
		       size_t at)
{
	struct pm_compare_row row = {
		.case_name = at < comparison->cases.len ? comparison->cases.data[at].name
							: NULL,
		.case_at = at,
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
	    pm_vec_push(&comparison->rows, row) == 0)
		return pm_compare_warn(
			comparison,
			"The gate %s%s%s%s%s%s of %s decides nothing here: neither side "
			"has measured it.",
			pm_text_or_empty(gate->case_name),
			pm_text_if(gate->case_name, PM_CASE_SEPARATOR),
			pm_text_if(gate->scope, "fn:"), pm_text_or_empty(gate->scope),
			pm_text_if(gate->scope, ":"), gate->event, gate->source);
	pm_compare_row_free(&row);
	return -ENOMEM;
}

enum cases {
	CASES_ALL,
	CASES_MEASURED, /* those with rows */
};

/* Returns the index of the first of @cases that @gate is for, or `len` if there is
 * none. */
static size_t first_case_of(const struct whole *whole, const struct pm_gate *gate,
			    enum cases cases)
{
	const struct pm_comparison *comparison = whole->comparison;
	size_t at = 0;

	for (; at < whole->len; at++) {
		bool unknown = at < comparison->cases.len &&
			       comparison->cases.data[at].verdict == PM_VERDICT_UNKNOWN;

		if (!(cases == CASES_MEASURED && unknown) &&
		    pm_gate_fits_case(gate, whole->inputs[at].name,
				      whole->inputs[at].group))
			break;
	}
	return at;
}

/* Warns of a file's gate that names a case which was not measured. This is not an error,
 * because the cases of a harness change, and a repository may have several harnesses. A
 * gate inside a case belongs to that case. */
static int warn_of_no_case(struct pm_comparison *comparison, const struct pm_gate *gate)
{
	if (comparison->cases.len == 0 || gate->case_exact)
		return 0;
	return pm_compare_warn(comparison,
			       "The gate %s" PM_CASE_SEPARATOR
			       "%s%s%s%s of %s names no case that was measured: it "
			       "decides nothing.",
			       gate->case_name, pm_text_if(gate->scope, "fn:"),
			       pm_text_or_empty(gate->scope),
			       pm_text_if(gate->scope, ":"), gate->event, gate->source);
}

/* Checks that all gates were used. A typo is an error; but gates of a repository may be
 * for different machines. */
static int check_gates_used(struct whole *whole, struct pm_error *err)
{
	const struct pm_gates *gates = whole->options->gates;
	struct pm_comparison *comparison = whole->comparison;

	for (size_t i = 0; gates && i < gates->list.len; i++) {
		const struct pm_gate *gate = &gates->list.data[i];
		bool for_none = first_case_of(whole, gate, CASES_ALL) == whole->len;

		if (whole->used[i])
			continue;
		if (for_none && strcmp(gate->source, "--gate") == 0 &&
		    !whole->options->cases_left_out)
			return pm_gate_no_case(gate, comparison, err);
		if (for_none && !whole->options->cases_left_out &&
		    warn_of_no_case(comparison, gate) < 0)
			return compare_no_memory(err);
		if (first_case_of(whole, gate, CASES_MEASURED) < whole->len &&
		    pm_gate_is_slip(gate, comparison))
			return pm_gate_not_found(gate, comparison, err);
	}
	for (size_t i = 0; gates && i < gates->list.len; i++) {
		const struct pm_gate *gate = &gates->list.data[i];
		size_t at = first_case_of(whole, gate, CASES_MEASURED);

		if (!whole->used[i] && at < whole->len &&
		    add_unknown(comparison, gate, at) < 0)
			return compare_no_memory(err);
	}
	return 0;
}

/* Moves the warnings and differences of a case to those of the whole comparison, with the
 * name of the case. */
static int move_sentences(struct pm_comparison *to, struct pm_comparison *from,
			  const char *name)
{
	for (size_t i = 0; i < from->warnings.len; i++)
		if (pm_compare_warn(to, "%s: %s", name, from->warnings.data[i]) < 0)
			return -ENOMEM;
	for (size_t i = 0; i < from->differences.len; i++)
		if (pm_compare_differ(to, "%s: %s", name, from->differences.data[i]) < 0)
			return -ENOMEM;
	return 0;
}

static int move_rows(struct pm_comparison *to, struct pm_comparison *from, size_t at)
{
	if (pm_vec_reserve(&to->rows, to->rows.len + from->rows.len) < 0)
		return -ENOMEM;
	for (size_t i = 0; i < from->rows.len; i++) {
		struct pm_compare_row *row = &to->rows.data[to->rows.len++];

		*row = from->rows.data[i];
		row->case_name = to->cases.data[at].name;
		row->case_at = at;
	}
	from->rows.len = 0;
	return 0;
}

/* Copies properties of one case: those of the whole come from the first case that has
 * them. */
static int add_to_side(struct pm_compare_of *all, const struct pm_compare_of *one)
{
	all->documents += one->documents;
	all->runs += one->runs;
	all->left_out += one->left_out;
	if (!all->created && pm_stat_text(&all->created, one->created) < 0)
		return -ENOMEM;
	if (all->commit)
		return 0;
	return pm_stat_text(&all->commit, one->commit);
}

/* Sets the engine, which is shown only if all cases have the same one. */
static int add_engine(struct pm_comparison *all, const struct pm_comparison *one,
		      bool first)
{
	if (!all->cpu_model && pm_stat_text(&all->cpu_model, one->cpu_model) < 0)
		return -ENOMEM;
	if (first)
		return pm_stat_text(&all->engine, one->engine);
	if (all->engine && one->engine && strcmp(all->engine, one->engine) != 0)
		free(PM_TAKE_PTR(all->engine));
	return 0;
}

static int describe_case(struct pm_compare_case *one, struct pm_comparison *of,
			 const struct pm_compare_input *input)
{
	const char *why = input->failed_new ? input->failed_new : input->failed_base;
	bool on_new = input->new_len > 0 || is_ab(input);

	one->base = of->base;
	one->new = of->new;
	one->engine = PM_TAKE_PTR(of->engine);
	one->deciding = PM_TAKE_PTR(of->deciding);
	of->base = of->new = (struct pm_compare_of){ 0 };
	one->failed_base = input->failed_base != NULL;
	one->failed_new = input->failed_new != NULL;
	if (input->failed_new || (input->base_len == 0 && !on_new))
		one->verdict = PM_VERDICT_UNKNOWN;
	else if (input->base_len == 0)
		one->verdict = PM_VERDICT_NEW;
	else if (!on_new)
		one->verdict = PM_VERDICT_GONE;
	return pm_stat_text(&one->why, why);
}

/* Refuses a case, and leaves its rows out: numbers that cannot be compared would be read
 * as if they could. */
static int refuse_case(struct whole *whole, struct pm_compare_case *one,
		       const struct pm_error *why)
{
	whole->refused++;
	one->verdict = PM_VERDICT_UNKNOWN;
	return pm_stat_text(&one->why, why->text);
}

static int add_case(struct whole *whole, size_t at, struct pm_error *err)
{
	PM_CLEANUP(pm_comparison_release) struct pm_comparison of = { 0 };
	struct pm_compare_options options = *whole->options;
	struct work work PM_CLEANUP(case_work_release) = { .comparison = &of,
							   .options = &options,
							   .input = &whole->inputs[at],
							   .used = whole->used };
	struct pm_compare_case *one = &whole->comparison->cases.data[at];
	const struct pm_compare_input *input = work.input;
	bool any = !input->failed_new && (input->base_len > 0 || input->new_len > 0);
	struct pm_error why = { .offset = -1 };
	int ret;

	options.history = input->history;
	options.history_len = input->history_len;
	options.functions_explain = input->functions_explain;
	ret = set_sides(&work, &why);
	if (ret == 0 && any)
		ret = fill_case(&work, &why);
	if (ret == -ENOMEM)
		return compare_no_memory(err);
	if (add_to_side(&whole->comparison->base, &of.base) < 0 ||
	    add_to_side(&whole->comparison->new, &of.new) < 0 ||
	    add_engine(whole->comparison, &of, at == 0) < 0 ||
	    move_sentences(whole->comparison, &of, one->name) < 0 ||
	    describe_case(one, &of, input) < 0)
		return compare_no_memory(err);
	whole->comparison->forced = whole->comparison->forced || of.forced;
	if (ret < 0) {
		if (refuse_case(whole, one, &why) < 0)
			return compare_no_memory(err);
		return 0;
	}
	if (move_rows(whole->comparison, &of, at) < 0)
		return compare_no_memory(err);
	return 0;
}

static int name_cases(struct whole *whole)
{
	for (size_t i = 0; i < whole->len; i++) {
		struct pm_compare_case one = { 0 };

		if (pm_stat_text(&one.name, whole->inputs[i].name) < 0 ||
		    pm_vec_push(&whole->comparison->cases, one) < 0) {
			free(one.name);
			return -ENOMEM;
		}
	}
	return 0;
}

static int add_cases(struct whole *whole, struct pm_error *err)
{
	int ret = name_cases(whole) < 0 ? compare_no_memory(err) : 0;

	for (size_t i = 0; i < whole->len && ret == 0; i++)
		ret = add_case(whole, i, err);
	if (ret == 0 && whole->refused == whole->len) {
		if (whole->comparison->differences.len > 0)
			ret = pm_compare_refuse(whole->comparison, err);
		else
			ret = pm_error_set(err, -EINVAL, "%s: %s",
					   whole->comparison->cases.data[0].name,
					   whole->comparison->cases.data[0].why);
	}
	return ret;
}

/* Adds the only case, which has no name. */
static int add_only(struct whole *whole, struct pm_error *err)
{
	const struct pm_compare_input *input = &whole->inputs[0];
	struct pm_compare_options options = *whole->options;
	struct work work PM_CLEANUP(case_work_release) = { .comparison =
								   whole->comparison,
							   .options = &options,
							   .input = input,
							   .used = whole->used };
	int ret;

	options.history = input->history;
	options.history_len = input->history_len;
	options.functions_explain = input->functions_explain;
	if (input->base_len == 0 || (input->new_len == 0 && !is_ab(input)))
		return pm_error_set(err, -EINVAL, "there is nothing to compare with");
	ret = set_sides(&work, err);
	if (ret < 0)
		return ret;
	return fill_case(&work, err);
}

static int judge_all(struct whole *whole, struct pm_error *err)
{
	const struct pm_compare_options *options = whole->options;
	int ret = check_gates_used(whole, err);

	if (ret < 0)
		return ret;
	if (pm_compare_judge(whole->comparison, whole->options->seed) < 0 ||
	    pm_compare_explain(whole->comparison) < 0)
		return compare_no_memory(err);
	ret = pm_history_rows_add(whole->comparison, whole->inputs,
				  options->history_gates, err);
	if (ret < 0)
		return ret;
	if (pm_compare_accept(whole->comparison, options->acks) < 0)
		return compare_no_memory(err);
	pm_compare_conclude(whole->comparison);
	return 0;
}

int pm_compare_cases(struct pm_comparison *out, const struct pm_compare_input *inputs,
		     size_t len, const struct pm_compare_options *options,
		     struct pm_error *err)
{
	struct pm_comparison comparison PM_CLEANUP(pm_comparison_release) = { 0 };
	struct whole whole PM_CLEANUP(whole_release) = { .comparison = &comparison,
							 .options = options,
							 .inputs = inputs,
							 .len = len };
	int ret;

	if (len == 0)
		return pm_error_set(err, -EINVAL, "there is nothing to compare with");
	whole.used = calloc((options->gates ? options->gates->list.len : 0) + 1,
			    sizeof(*whole.used));
	if (!whole.used)
		return compare_no_memory(err);
	if (inputs[0].name)
		ret = add_cases(&whole, err);
	else
		ret = add_only(&whole, err);
	if (ret == 0)
		ret = judge_all(&whole, err);
	/* On refusal, the comparison has the reasons. */
	if (ret < 0 && ret != -EXDEV)
		return ret;
	*out = comparison;
	comparison = (struct pm_comparison){ 0 };
	return ret;
}

int pm_compare_stats(struct pm_comparison *out, const struct pm_stat *const *base,
		     size_t base_len, const struct pm_stat *const *new, size_t new_len,
		     const struct pm_compare_options *options, struct pm_error *err)
{
	struct pm_compare_input input = {
		.base = base,
		.base_len = base_len,
		.new = new,
		.new_len = new_len,
		.history = options->history,
		.history_len = options->history_len,
		.functions_explain = options->functions_explain,
	};

	return pm_compare_cases(out, &input, 1, options, err);
}
