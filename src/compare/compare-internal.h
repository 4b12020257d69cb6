/* SPDX-License-Identifier: MIT */
#pragma once

#include "pm/compare.h"

/* ---- names -------------------------------------------------------------------------- */

/* Length of the modifiers behind the last colon: 1 of "instructions:u", 0: none. */
size_t pm_event_modifiers_len(const char *event, size_t len);
/* The event's own name, with the modifiers that were typed. */
int pm_event_shown(char **ret, const struct pm_stat_event *event);
/* Without what compilers append to the name of a copy or part: ".isra.0", a hash of Rust. */
size_t pm_base_name_len(const char *name);
/* With a star for each number that compilers give to what has no name, "{lambda(int)#1}"; NULL
 * where there is none. */
int pm_name_without_numbers(char **ret, const char *name, size_t len);
/* And without parameters. */
size_t pm_bare_name_len(const char *name);
/* The file's own name, without the version of a library; "" for NULL. */
const char *pm_module_name(const char *path, size_t *ret_len);

/* ---- gates -------------------------------------------------------------------------- */

/* What gates may mean. */
struct pm_gate_target {
	const char *scope, *symbol; /* NULL: the program; no symbol */
	const char *event; /* of the row */
	const char *requested[2]; /* as typed for each side; NULL: not */
	bool user_only;
};
/* Whether it is for the case @name, or for all. NULL: there are no cases, and what names one is
 * for none. */
bool pm_gate_fits_case(const struct pm_gate *gate, const char *name, const char *group);
bool pm_gate_fits(const struct pm_gate *gate, const struct pm_gate_target *target);
/* Nobody has set the gate of @row. */
bool pm_gate_is_default(const struct pm_compare_row *row);
/* A name of a row that may have been meant, NULL: none is like it. */
const char *pm_gate_near(const struct pm_gate *gate,
			 const struct pm_comparison *comparison);
/* Of a gate that means no row: whether somebody has mistyped it, rather than meant another
 * machine. */
bool pm_gate_is_slip(const struct pm_gate *gate, const struct pm_comparison *comparison);
/* -ENOENT: the case that it names is none of these. */
int pm_gate_no_case(const struct pm_gate *gate, const struct pm_comparison *comparison,
		    struct pm_error *err);
/* -ENOENT with near names, or some of those that there are. */
int pm_gate_not_found(const struct pm_gate *gate, const struct pm_comparison *comparison,
		      struct pm_error *err);

/* ---- documents side by side --------------------------------------------------------- */

enum {
	PM_BASE,
	PM_NEW,
	PM_SIDES,
};

/* Documents of one side, and which of their runs count. */
struct pm_side {
	const struct pm_stat *const *docs;
	size_t len;
	uint32_t variant;
	bool ended; /* some run ended well: others are left out */
};
bool pm_side_counts(const struct pm_side *side, const struct pm_stat_run *run);

struct pm_scope_member {
	uint32_t side, doc, scope;
};

/* One function or range in all runs of both sides. */
struct pm_scope_group {
	const struct pm_stat_scope
		*of[PM_SIDES]; /* the first one, NULL: not on that side */
	PM_VEC(struct pm_scope_member)
	members; /* in the order of sides, documents, runs */
	bool repeated; /* several in one run: which is which cannot be told */
};
struct pm_scope_groups {
	PM_VEC(struct pm_scope_group) list;
};
void pm_scope_groups_release(struct pm_scope_groups *groups);
int pm_scope_groups_find(struct pm_scope_groups *groups, const struct pm_side *sides);

/* One event on both sides. */
struct pm_event_pair {
	char *name; /* as shown */
	const struct pm_stat_event
		*of[PM_SIDES]; /* the first one, NULL: not on that side */
};
struct pm_event_pairs {
	PM_VEC(struct pm_event_pair) list;
	/* By side and document: the index of each pair among its events, PM_INDEX_NONE. */
	uint32_t **at[PM_SIDES];
	size_t docs[PM_SIDES];
};
void pm_event_pairs_release(struct pm_event_pairs *pairs);
int pm_event_pairs_find(struct pm_event_pairs *pairs, const struct pm_side *sides);

/* The row of @group (NULL: the program) and the pair with index @event (of as many as there
 * are: calls), its values in, not yet judged. */
int pm_compare_row_fill(struct pm_compare_row *row, const struct pm_side *sides,
			const struct pm_scope_group *group,
			const struct pm_event_pairs *pairs, size_t event);
void pm_compare_row_free(struct pm_compare_row *row);
/* Fills row->pairs. */
int pm_compare_pairs_find(struct pm_compare_row *row);

/* What makes numbers incomparable into @comparison->differences, what makes them doubtful into
 * its warnings. */
int pm_compare_sides_check(struct pm_comparison *comparison, const struct pm_side *sides,
			   const struct pm_event_pairs *pairs);
/* "begun in turns": a run of each side lies between runs of the other, and not in a few blocks. */
int pm_sides_took_turns(const struct pm_side *sides, bool *ret);
/* As far as they tell their names. */
bool pm_sides_ran_on_one_machine(const struct pm_side *sides);

PM_PRINTF(2, 3)
int pm_compare_warn(struct pm_comparison *comparison, const char *format, ...);
PM_PRINTF(2, 3)
int pm_compare_differ(struct pm_comparison *comparison, const char *format, ...);
/* -EXDEV, with all differences. */
int pm_compare_refuse(const struct pm_comparison *comparison, struct pm_error *err);
PM_PRINTF(2, 3)
int pm_compare_why(struct pm_compare_row *row, const char *format, ...);

/* ---- judging ------------------------------------------------------------------------ */

/* Of earlier commits that were measured as @like was, how much a low-noise row changes from one
 * to the next: false when there are too few to tell. */
int pm_history_gate(const struct pm_compare_options *options, const struct pm_stat *like,
		    const struct pm_compare_row *row, double *ret_gate, bool *ret_known);

/* From one machine or engine to another numbers jump, which is no noise. */
bool pm_history_is_like(const struct pm_stat *a, const struct pm_stat *b);
/* The median of @row in one document; NaN: it has none. */
int pm_history_median(const struct pm_stat *stat, const struct pm_compare_row *row,
		      double *ret);
/* Adds a row for each row that a history gate fits, judged as the others are. @inputs: by case.
 * -ENOENT: a gate fits none, and that is a slip. */
int pm_history_rows_add(struct pm_comparison *comparison,
			const struct pm_compare_input *inputs,
			const struct pm_gates *gates, struct pm_error *err);

/* If no events were requested, one decides, the first of these that both sides have:
 * cycles, instructions, task-clock. PM_COMPARE_DECIDERS: it is none of them. */
enum {
	PM_COMPARE_DECIDERS = 3,
};
size_t pm_compare_decider_rank(const char *event);
/* Change, interval and probability of varying values; both sides are known. The
 * correction is for `family` rows together. */
int pm_compare_measure(struct pm_compare_row *row, size_t family, double alpha,
		       uint64_t seed);
#define PM_COMPARE_BY_PAIRS "pairs" /* the method of a row */
/* The least probability that so many values could give. */
double pm_compare_least_p(const struct pm_compare_row *row);
/* The same for all values of both sides, @a and @b of them. */
double pm_compare_least_p_of_values(size_t a, size_t b);
/* The least number of runs a side with which a probability can be below @alpha, corrected for
 * @family rows. */
size_t pm_compare_runs_needed(size_t family, double alpha);
/* Sets class, method, change and verdict of all rows: their values and gates are there. */
int pm_compare_judge(struct pm_comparison *comparison, uint64_t seed);
/* By how much @event differs at least before anybody cares: a few faults more or less are the work
 * of addresses, which differ from run to run; a few simulated misses, of those that differ from
 * build to build. */
double pm_compare_floor(const char *event);
/* Which way a change is, of a row whose change is beyond its gate. */
enum pm_verdict pm_compare_direction(const struct pm_compare_row *row, double change);
/* Tells of rows of the program that have moved in which function most of it is. */
int pm_compare_explain(struct pm_comparison *comparison);
/* Rows that are worse by no more than somebody has accepted are ACCEPTED. */
int pm_compare_accept(struct pm_comparison *comparison, const struct pm_acks *acks);
/* Orders the rows and cases, and finds the verdicts of cases and of all. */
void pm_compare_conclude(struct pm_comparison *comparison);
