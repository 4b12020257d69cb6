/* SPDX-License-Identifier: MIT */
#pragma once

#include "pm/compare.h"

/* ---- names -------------------------------------------------------------------------- */

/* The length of the modifiers after the last colon: 1 for "instructions:u", 0: none. */
size_t pm_event_modifiers_len(const char *event, size_t len);
/* Returns the event's own name, with the modifiers that were typed. */
int pm_event_shown(char **out, const struct pm_stat_event *event);
/* The length without suffixes of compilers for a copy or part: ".isra.0", a hash of
 * Rust. */
size_t pm_base_name_len(const char *name);
/* Replaces each number that compilers give to unnamed things by a star:
 * "{lambda(int)#1}"; NULL: there is none. */
int pm_name_without_numbers(char **out, const char *name, size_t len);
/* Like pm_base_name_len(), and without parameters. */
size_t pm_bare_name_len(const char *name);
/* The base name of the file, without the version of a library; "" for NULL. */
const char *pm_module_name(const char *path, size_t *ret_len);

/* ---- gates -------------------------------------------------------------------------- */

/* What a gate may match. */
struct pm_gate_target {
	const char *scope, *symbol; /* NULL: the program; no symbol */
	const char *event; /* of the row */
	const char *requested[2]; /* as typed for each side; NULL: not typed */
	bool user_only;
};
/* Whether the gate is for the case @name, or for all cases. @name NULL: there are no
 * cases, and a gate that names one does not fit. */
bool pm_gate_fits_case(const struct pm_gate *gate, const char *name, const char *group);
bool pm_gate_fits(const struct pm_gate *gate, const struct pm_gate_target *target);
/* Whether the gate of @row was not set by the user. */
bool pm_gate_is_default(const struct pm_compare_row *row);
/* Returns the name of a row that may have been meant; NULL: none is similar. */
const char *pm_gate_near(const struct pm_gate *gate,
			 const struct pm_comparison *comparison);
/* For a gate that matches no row: whether it is probably mistyped, rather than meant for
 * another machine. */
bool pm_gate_is_slip(const struct pm_gate *gate, const struct pm_comparison *comparison);
/* Returns -ENOENT: the case that the gate names does not exist. */
int pm_gate_no_case(const struct pm_gate *gate, const struct pm_comparison *comparison,
		    struct pm_error *err);
/* Returns -ENOENT with similar names, or with some of the existing ones. */
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
	bool ended; /* some run ended well: the others are left out */
};
bool pm_side_counts(const struct pm_side *side, const struct pm_stat_run *run);

struct pm_scope_member {
	uint32_t side, doc, scope;
};

/* One function or range in all runs of both sides. */
struct pm_scope_group {
	const struct pm_stat_scope
		*of[PM_SIDES]; /* the first one; NULL: not on that side */
	PM_VEC(struct pm_scope_member)
	members; /* in the order of sides, documents, runs */
	bool repeated; /* several in one run, which cannot be distinguished */
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
		*of[PM_SIDES]; /* the first one; NULL: not on that side */
};
struct pm_event_pairs {
	PM_VEC(struct pm_event_pair) list;
	/* By side and document: the index of each pair among its events, or
	 * PM_INDEX_NONE. */
	uint32_t **at[PM_SIDES];
	size_t docs[PM_SIDES];
};
void pm_event_pairs_release(struct pm_event_pairs *pairs);
int pm_event_pairs_find(struct pm_event_pairs *pairs, const struct pm_side *sides);

/* Fills the row of @group (NULL: the program) and the pair with index @event (equal to
 * their number: calls) with its values. It is not judged yet. */
int pm_compare_row_fill(struct pm_compare_row *row, const struct pm_side *sides,
			const struct pm_scope_group *group,
			const struct pm_event_pairs *pairs, size_t event);
void pm_compare_row_free(struct pm_compare_row *row);
/* Fills row->pairs. */
int pm_compare_pairs_find(struct pm_compare_row *row);

/* Adds what makes numbers incomparable to @comparison->differences, and what makes them
 * doubtful to its warnings. */
int pm_compare_sides_check(struct pm_comparison *comparison, const struct pm_side *sides,
			   const struct pm_event_pairs *pairs);
/* Whether the sides started in turns: a run of each side is between runs of the other,
 * and they are not in a few blocks. */
int pm_sides_took_turns(const struct pm_side *sides, bool *out);
/* As far as their host names are known. */
bool pm_sides_ran_on_one_machine(const struct pm_side *sides);

PM_PRINTF(2, 3)
int pm_compare_warn(struct pm_comparison *comparison, const char *format, ...);
PM_PRINTF(2, 3)
int pm_compare_differ(struct pm_comparison *comparison, const char *format, ...);
/* Returns -EXDEV, with all differences. */
int pm_compare_refuse(const struct pm_comparison *comparison, struct pm_error *err);
PM_PRINTF(2, 3)
int pm_compare_why(struct pm_compare_row *row, const char *format, ...);

/* ---- judging ------------------------------------------------------------------------ */

/* Finds how much a low-noise row changes from one commit to the next, in earlier commits
 * that were measured like @like. *ret_known false: there are too few. */
int pm_history_gate(const struct pm_compare_options *options, const struct pm_stat *like,
		    const struct pm_compare_row *row, double *ret_gate, bool *ret_known);

/* Numbers of different machines or engines differ by more than noise. */
bool pm_history_is_like(const struct pm_stat *a, const struct pm_stat *b);
/* Returns the median of @row in one document; NaN: it has none. */
int pm_history_median(const struct pm_stat *stat, const struct pm_compare_row *row,
		      double *out);
/* Adds a row for each row that a history gate matches, and judges it. @inputs: by case.
 * -ENOENT: a gate matches no row, and is mistyped. */
int pm_history_rows_add(struct pm_comparison *comparison,
			const struct pm_compare_input *inputs,
			const struct pm_gates *gates, struct pm_error *err);

/* If no events were requested, one decides: the first of these that both sides have:
 * cycles, instructions, task-clock. PM_COMPARE_DECIDERS: the event is none of them. */
enum {
	PM_COMPARE_DECIDERS = 3,
};
size_t pm_compare_decider_rank(const char *event);
/* Computes change, interval and probability of varying values; both sides must be known.
 * The correction is for `family` rows together. */
int pm_compare_measure(struct pm_compare_row *row, size_t family, double alpha,
		       uint64_t seed);
#define PM_COMPARE_BY_PAIRS "pairs" /* the method of a row */
/* The smallest probability that this number of values can give. */
double pm_compare_least_p(const struct pm_compare_row *row);
/* The same for all values of both sides, @a and @b of them. */
double pm_compare_least_p_of_values(size_t a, size_t b);
/* The smallest number of runs on each side with which a probability can be below @alpha,
 * corrected for @family rows. */
size_t pm_compare_runs_needed(size_t family, double alpha);
/* Sets class, method, change and verdict of all rows, which have their values and
 * gates. */
int pm_compare_judge(struct pm_comparison *comparison, uint64_t seed);
/* The difference of @event below which a change is ignored. A few faults depend on
 * addresses, which differ from run to run; a few simulated misses depend on those that
 * differ from build to build. */
double pm_compare_floor(const char *event);
/* Returns the direction of a change that is beyond the gate of its row. */
enum pm_verdict pm_compare_direction(const struct pm_compare_row *row, double change);
/* Notes in changed rows of the program in which function most of the change is. */
int pm_compare_explain(struct pm_comparison *comparison);
/* Sets rows that are worse within an accepted level to ACCEPTED. */
int pm_compare_accept(struct pm_comparison *comparison, const struct pm_acks *acks);
/* Orders the rows and cases, and finds the verdicts of cases and of all. */
void pm_compare_conclude(struct pm_comparison *comparison);
