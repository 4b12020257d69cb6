/* SPDX-License-Identifier: MIT */
#pragma once

#include "pm/compare.h"

/* ---- names -------------------------------------------------------------------------- */

/* Returns the length of the modifiers after the last colon: 1 for "instructions:u", 0 if
 * there are none. */
size_t pm_event_modifiers_len(const char *event, size_t len);
/* Sets @out to the event's own name, with the modifiers that the user typed. */
int pm_event_shown(char **out, const struct pm_stat_event *event);
/* Returns the length without suffixes that compilers append for a copy or part of a
 * function: ".isra.0", or a hash of Rust. */
size_t pm_base_name_len(const char *name);
/* Replaces each number that compilers give to unnamed things, as in "{lambda(int)#1}", by
 * a star. Sets @out to NULL if the name has none. */
int pm_name_without_numbers(char **out, const char *name, size_t len);
/* Like pm_base_name_len(), and without parameters. */
size_t pm_bare_name_len(const char *name);
/* Returns the base name of the file, without the version of a library; "" for NULL. */
const char *pm_module_name(const char *path, size_t *ret_len);

/* ---- gates -------------------------------------------------------------------------- */

/* The properties of a row that a gate is matched with. */
struct pm_gate_target {
	const char *scope, *symbol; /* NULL: the row is the program's; there is no
	                             * symbol */
	const char *event; /* of the row */
	const char *requested[2]; /* as typed for each side; NULL: not requested */
	bool user_only;
};
/* Whether the gate is for the case @name, or for all cases. @name is NULL if there are no
 * cases; then a gate that names one does not match. */
bool pm_gate_fits_case(const struct pm_gate *gate, const char *name, const char *group);
bool pm_gate_fits(const struct pm_gate *gate, const struct pm_gate_target *target);
/* Whether the gate of @row is a default, and was not set by the user. */
bool pm_gate_is_default(const struct pm_compare_row *row);
/* Returns the name of a row that the user may have meant, or NULL if none is similar. */
const char *pm_gate_near(const struct pm_gate *gate,
			 const struct pm_comparison *comparison);
/* For a gate that matches no row: whether it is probably a typo, and not meant for
 * another machine. */
bool pm_gate_is_slip(const struct pm_gate *gate, const struct pm_comparison *comparison);
/* Returns -ENOENT, with the message that the case which the gate names does not exist. */
int pm_gate_no_case(const struct pm_gate *gate, const struct pm_comparison *comparison,
		    struct pm_error *err);
/* Returns -ENOENT, with a message that has similar names, or some of the existing
 * ones. */
int pm_gate_not_found(const struct pm_gate *gate, const struct pm_comparison *comparison,
		      struct pm_error *err);

/* ---- documents side by side --------------------------------------------------------- */

enum {
	PM_BASE,
	PM_NEW,
	PM_SIDES,
};

/* The documents of one side, and the selection of their runs. */
struct pm_side {
	const struct pm_stat *const *docs;
	size_t len;
	uint32_t variant;
	bool ended; /* some run ended well: runs that did not are left out */
};
bool pm_side_counts(const struct pm_side *side, const struct pm_stat_run *run);

struct pm_scope_member {
	uint32_t side, doc, scope;
};

/* One function or range in all runs of both sides. */
struct pm_scope_group {
	const struct pm_stat_scope
		*of[PM_SIDES]; /* the first member; NULL: not on that side */
	PM_VEC(struct pm_scope_member)
	members; /* in the order of sides, documents and runs */
	bool repeated; /* it occurs several times in one run, and these cannot be
	                * distinguished */
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
		*of[PM_SIDES]; /* the first one of each side; NULL: not on that side */
};
struct pm_event_pairs {
	PM_VEC(struct pm_event_pair) list;
	/* By side and document: for each pair, the index among the document's events, or
	 * PM_INDEX_NONE. */
	uint32_t **at[PM_SIDES];
	size_t docs[PM_SIDES];
};
void pm_event_pairs_release(struct pm_event_pairs *pairs);
int pm_event_pairs_find(struct pm_event_pairs *pairs, const struct pm_side *sides);

/* Fills @row with the values of @group (NULL: the program) and of the pair with index
 * @event; an index equal to the number of pairs stands for calls. The row is not judged
 * yet. */
int pm_compare_row_fill(struct pm_compare_row *row, const struct pm_side *sides,
			const struct pm_scope_group *group,
			const struct pm_event_pairs *pairs, size_t event);
void pm_compare_row_free(struct pm_compare_row *row);
/* Finds the pairs of runs, and fills row->pairs. */
int pm_compare_pairs_find(struct pm_compare_row *row);

/* Adds the reasons why numbers cannot be compared to @comparison->differences, and the
 * reasons why they are doubtful to its warnings. */
int pm_compare_sides_check(struct pm_comparison *comparison, const struct pm_side *sides,
			   const struct pm_event_pairs *pairs);
/* Sets @out to whether the sides were run in turns: a run of each side is between runs of
 * the other, and the runs are not just in a few blocks. */
int pm_sides_took_turns(const struct pm_side *sides, bool *out);
/* Whether both sides ran on the same machine, as far as their host names are known. */
bool pm_sides_ran_on_one_machine(const struct pm_side *sides);

PM_PRINTF(2, 3)
int pm_compare_warn(struct pm_comparison *comparison, const char *format, ...);
PM_PRINTF(2, 3)
int pm_compare_differ(struct pm_comparison *comparison, const char *format, ...);
/* Returns -EXDEV, with all differences in the message. */
int pm_compare_refuse(const struct pm_comparison *comparison, struct pm_error *err);
PM_PRINTF(2, 3)
int pm_compare_why(struct pm_compare_row *row, const char *format, ...);

/* ---- judging ------------------------------------------------------------------------ */

/* Finds how much a low-noise row changes from one commit to the next, in earlier commits
 * that were measured like @like. Sets *ret_known to false if there are too few. */
int pm_history_gate(const struct pm_compare_options *options, const struct pm_stat *like,
		    const struct pm_compare_row *row, double *ret_gate, bool *ret_known);

/* Whether both were measured in the same way: numbers of different machines or engines
 * differ by more than noise. */
bool pm_history_is_like(const struct pm_stat *a, const struct pm_stat *b);
/* Sets @out to the median of @row in one document, or to NaN if it has no value. */
int pm_history_median(const struct pm_stat *stat, const struct pm_compare_row *row,
		      double *out);
/* Adds a row for each row that a history gate matches, and judges it. @inputs are indexed
 * by case. Returns -ENOENT if a gate matches no row and is a typo. */
int pm_history_rows_add(struct pm_comparison *comparison,
			const struct pm_compare_input *inputs,
			const struct pm_gates *gates, struct pm_error *err);

/* If no events were requested, one of these determines the verdict: the first that both
 * sides have of cycles, instructions and task-clock. PM_COMPARE_DECIDERS means that an
 * event is none of them. */
enum {
	PM_COMPARE_DECIDERS = 3,
};
size_t pm_compare_decider_rank(const char *event);
/* Computes change, interval and probability of varying values; both sides must be known.
 * @family is the number of rows that are corrected together. */
int pm_compare_measure(struct pm_compare_row *row, size_t family, double alpha,
		       uint64_t seed);
#define PM_COMPARE_BY_PAIRS "pairs" /* a row's method */
/* Returns the smallest probability that this number of values can give. */
double pm_compare_least_p(const struct pm_compare_row *row);
/* The same for unpaired values, of which the sides have @a and @b. */
double pm_compare_least_p_of_values(size_t a, size_t b);
/* Returns the smallest number of runs on each side with which a probability can be below
 * @alpha, corrected for @family rows. */
size_t pm_compare_runs_needed(size_t family, double alpha);
/* Sets class, method, change and verdict of all rows. Their values and gates must have
 * been set. */
int pm_compare_judge(struct pm_comparison *comparison, uint64_t seed);
/* Returns the difference of @event below which a change is ignored. A few faults depend
 * on addresses, which differ from run to run; a few simulated misses depend on addresses
 * that differ from build to build. */
double pm_compare_floor(const char *event);
/* Returns the direction of a change that exceeds the gate of its row. */
enum pm_verdict pm_compare_direction(const struct pm_compare_row *row, double change);
/* Notes in changed rows of the program which function has most of the change. */
int pm_compare_explain(struct pm_comparison *comparison);
/* Sets the verdict of rows that are worse, but within an accepted level, to ACCEPTED. */
int pm_compare_accept(struct pm_comparison *comparison, const struct pm_acks *acks);
/* Sorts the rows and cases, and finds the verdict of each case and of the whole
 * comparison. */
void pm_compare_conclude(struct pm_comparison *comparison);
