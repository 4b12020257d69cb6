/* SPDX-License-Identifier: MIT */
/*
 * Compares two sides, counting documents (pm/stat.h) or recordings (pm/profile.h): what
 * has changed, and whether it is more than chance. Created by src/compare, shown by
 * src/output.
 *
 * Terms. base, new: the two sides. row: one number of one subject on both sides, e.g. the
 * program's wall-time or a function's calls. change: new against base, as a fraction of
 * base: 0.03 is 3 % more. gate: how large a change may be, as a fraction. worse: a change
 * in the bad direction according to the event's `better`; if the event has none, any
 * change.
 *
 * How a row is judged depends on its class (enum pm_stat_class):
 *   exact      the same each time: any change beyond the gate counts. Values that differ
 *              within a side are not exact, whatever their class: such a row is judged as
 *              low-noise, by default with the gate of exact rows if they differ by less
 *              than that.
 *   low-noise  the ratio of the medians is beyond the gate, and at most one in ten values
 *              of a side is among the other's middle half. Multiplexed values are judged
 *              as noisy.
 *   noisy      the whole 95 % interval of the shift is beyond the gate, and its
 *              probability by chance is below 1 in 100, corrected by Holm over the noisy
 *              rows that decide. If the sides ran in turns and there are ten pairs of
 *              neighbours, the ratios of pairs are tested (Wilcoxon's signed ranks),
 *              because a disturbance of the machine changes both neighbours alike and
 *              cancels out. Otherwise all values are tested (Hodges-Lehmann,
 *              Mann-Whitney). Rows that do not decide are shown, but not corrected.
 * A row is inconclusive if there are too few runs, if only a part of its interval lies
 * beyond the gate, or if more of its hits are lost than the gate allows.
 *
 * Default gates: exact 0.05 %; low-noise 0.5 %, or the gate from the history if that is
 * larger (faults and simulated misses: also at least 16 of them); wall-time 5 %; other
 * noisy rows 0.5 %; noisy rows 10 % if the sides did not run in turns, because the change
 * then includes the changing load of the machine.
 *
 * If no gate is set, or if all gates are for other machines, these decide (`gated`):
 * exact rows; requested events; simulated events; instructions of functions. If no events
 * were requested, one event of the program decides: the first of cycles, instructions and
 * task-clock that both sides have, if measuring functions did not disturb the program
 * (engine "count"); task-clock only in turns or on one machine. Clocks, switches,
 * migrations and faults measure nearly the same: a correction for all of them would hide
 * a change in each.
 */
#pragma once

#include "pm/acks.h"
#include "pm/base.h"
#include "pm/profile.h"
#include "pm/stat.h"

/* ---- gates --------------------------------------------------------------------------- */

struct pm_gate {
	/* Pattern of names of cases, or of groups of cases; NULL: all cases, and rows
	 * without a case. */
	char *case_name;
	bool case_exact; /* not a pattern: only the case with this name */
	char *scope; /* pattern (fnmatch(3)) of function names; NULL: the program */
	/* Pattern of event names, or "calls"; "wall" is wall-time. Without modifiers, any
	 * modifiers match. For recordings "cycles", "cycles self", "self". */
	char *event;
	/* A fraction, at least 0. For shares it is a fraction of everything: 0.01 is one
	 * percentage point. */
	double limit;
	/* Or a hard limit ("<=1.2M"): the maximum for the new side, whatever the value of
	 * the base, in the unit of the event. NaN: `limit` applies. */
	double at_most;
	bool both; /* a change to the better also fails ("=±0.5%" or "=+-0.5%") */
	char *source; /* for people: "--gate", "pmdiff.json" */
};

struct pm_gates {
	/* If several gates match a row, the last change and the last hard limit apply. */
	PM_VEC(struct pm_gate) list;
};

/* Parses "EVENT=N%", "fn:NAME:EVENT=N%", "EVENT<=NUMBER" with the suffix k, M, G
 * (thousands), ns, us, ms, s or KiB, MiB, GiB, each optionally after "CASE//", and lists
 * of them, separated by commas. A colon or a comma in a C++ name needs no quotes: EVENT
 * follows the last colon that leaves a known word. Returns -EINVAL with one clear
 * line. */
int pm_gates_parse(struct pm_gates *gates, const char *text, const char *source,
		   struct pm_error *err);
void pm_gates_release(struct pm_gates *gates);

/* ---- a comparison -------------------------------------------------------------------- */

enum pm_verdict {
	PM_VERDICT_SAME, /* within the gate, or not more than chance */
	PM_VERDICT_BETTER,
	/* Beyond the gate, and it is unknown which direction is better. */
	PM_VERDICT_CHANGED,
	PM_VERDICT_WORSE, /* a regression if the row is gated */
	PM_VERDICT_ACCEPTED, /* worse, but within an accepted level */
	PM_VERDICT_INCONCLUSIVE, /* may be beyond the gate: more runs would show it */
	PM_VERDICT_UNKNOWN, /* no value on one side or both: see why */
	PM_VERDICT_NEW, /* the subject is on the new side only */
	PM_VERDICT_GONE,
};
/* "same", "better", "changed", "worse", "accepted", "inconclusive", "unknown", "new", "gone". */
const char *pm_verdict_name(enum pm_verdict verdict);

enum pm_compare_subject {
	PM_COMPARE_PROGRAM,
	PM_COMPARE_SCOPE, /* function, range or inlined function of a counting run */
	PM_COMPARE_FUNCTION, /* of a recording */
};

/* One side of a row. */
struct pm_compare_side {
	bool known; /* false: there is no number; `why` of the row has the reason */
	/* In the unit of the row: one for each run that ended well, in the order of the
	 * runs; a recording has only one. */
	double *values;
	size_t len;
	uint64_t *
		begins; /* when the run of each started (CLOCK_REALTIME, ns); NULL: unknown */
	double median, min, max; /* NaN if not known */
	/* For a recording: the number of samples that the value was computed from, and
	 * their share of all samples of the event, in percent. */
	uint64_t samples;
	double share;
	double weight; /* the sum of their periods; NaN: does not apply */
	/* For functions: the fraction of hits that are missing, in the run where most
	 * are. The value is then a lower bound. */
	double lost;
};

/* A run of each side that started one right after the other: the indices of their
 * values. */
struct pm_compare_pair {
	uint32_t base, new;
};

struct pm_compare_row {
	const char
		*case_name; /* as in the comparison's cases, borrowed; NULL: no cases */
	size_t case_at; /* index of that case in the comparison's cases */
	enum pm_compare_subject subject;
	char *scope; /* function or range, NULL: the program */
	char *symbol; /* as in the symbol table, NULL: unknown */
	char *module; /* short name, NULL: none or unknown */
	/* Where the scope is: on the new side if it exists there, otherwise on the base;
	 * NULL: unknown. */
	char *file;
	uint32_t line; /* 0: unknown */
	/* "sim.Ir", "wall-time", "calls"; for recordings "cycles self", "cycles
	 * total". */
	char *event;
	/* "ns", "bytes", "" for counts. For recordings of a whole program on both sides,
	 * "ns" or "": the unit of what the samples represent. For other recordings "%",
	 * because shares are compared. */
	char *unit;
	enum pm_stat_class class; /* as it was judged */
	const char
		*method; /* for people: "exact", "medians", "Hodges-Lehmann" … ; static */
	int8_t better; /* -1: less is better, 1: more, 0: neither */
	struct pm_compare_side base, new;
	/* Only in noisy rows. Empty if the sides did not run in turns. */
	PM_VEC(struct pm_compare_pair) pairs;
	/* The unit of a recording's weights: "ns", or "" for counts; NULL: not a recording.
	 * Static. */
	const char *weight_unit;
	/* NaN: unknown. A change from 0 is +infinity. `low` and `high` are its 95 %
	 * interval; both equal `change` if the method has no interval. For shares, it is
	 * the difference as a fraction of everything: 0.03 is 3 percentage points
	 * more. */
	double change, low, high;
	double difference, difference_low,
		difference_high; /* the same in `unit`; NaN: unknown */
	/* The probability by Wilcoxon or Mann-Whitney, or that so many samples differ by
	 * chance; NaN: not tested. */
	double p;
	double p_holm; /* corrected, for rows that decide; otherwise equal to `p` */
	double gate; /* a fraction; infinite: only a hard limit is set */
	double at_most; /* of the new side; NaN: no limit */
	bool gated; /* a gate requires this row: a regression fails the comparison */
	bool both; /* see struct pm_gate */
	/* "--gate", "pmdiff.json", "history", "default". Valid as long as the gates. */
	const char *gate_source;
	bool of_history; /* the base is the level of earlier commits */
	/* With of_history: no row can have a level yet, because there are too few
	 * commits. The row is then not inconclusive. */
	bool too_early;
	const struct pm_ack *ack; /* valid as long as the acks; NULL: not accepted */
	enum pm_verdict verdict;
	char *why; /* one sentence if the verdict needs one, else NULL */
	bool inlined_base, inlined_new; /* inlined everywhere on that side */
};

/* A description of a side, for headings. */
struct pm_compare_of {
	char *name; /* file, revision, for people */
	char *commit; /* full hash, NULL: unknown */
	char *subject; /* of the commit, one line; NULL: unknown */
	char *created; /* of the first document; NULL: unknown */
	char *command; /* NULL: unknown */
	size_t documents, runs;
	size_t left_out; /* runs that did not end well */
};

/* ---- origins of added cost ----------------------------------------------------------- */

enum {
	PM_HOT_ROWS = 10, /* of each list */
};

struct pm_hot_row {
	char *function; /* NULL: unknown */
	char *module; /* short name; NULL: unknown, or this is a line */
	/* Relative to the root of the sources, if it is below it; NULL: unknown. */
	char *file;
	/* For a function, the line with most of its samples. 0: unknown. */
	uint32_t line;
	double base, new; /* cost, in the unit */
};

/* For something that got worse: a profile of each side, compared in absolute numbers. */
struct pm_hot {
	/* Every instruction was counted (callgrind); otherwise samples (pmrec). */
	bool exact;
	char *event; /* "sim.Ir", "cpu-clock" */
	const char *unit; /* "ns", "" for counts; static */
	double all[2]; /* cost of everything, base and new */
	struct pm_hot_rows {
		PM_VEC(struct pm_hot_row) list; /* most added cost first */
		size_t more; /* others whose cost has also increased */
	} self, total,
		lines; /* functions by themselves; functions with their callees; lines */
	char *page; /* the file with the differential flame graph; NULL: not requested */
};

struct pm_hot_options {
	bool exact;
	const char *roots[2]; /* root folders of the sources; NULL: unknown */
	/* Returns the line of the new side that @line of the base has become; 0: it was
	 * removed. NULL: lines have not moved. @file is relative to the root. */
	uint32_t (*line_of)(void *user, const char *file, uint32_t line);
	void *user;
};

/* Compares the first event that both profiles have samples of. Returns 0, -EINVAL if
 * there is none, or -ENOMEM. */
int pm_hot_find(struct pm_hot **out, const struct pm_profile *base,
		const struct pm_profile *new, const struct pm_hot_options *options,
		struct pm_error *err);
void pm_hot_free(struct pm_hot *hot);

/* One case of several. */
struct pm_compare_case {
	char *name;
	/* A side without documents does not have the case. */
	struct pm_compare_of base, new;
	char *engine, *deciding; /* as in struct pm_comparison */
	/* As in a comparison. NEW or GONE: the case is on one side only. UNKNOWN: it
	 * cannot be compared, or it failed on the new side; `why` has the reason, and
	 * there are no rows. */
	enum pm_verdict verdict;
	char *why; /* one sentence, else NULL */
	bool failed_base, failed_new; /* the case exists, but produced no values */
	size_t first, len; /* its rows, which are neighbours */
	struct pm_hot *hot; /* the profiles, if the case got worse; NULL: not profiled */
};

struct pm_comparison {
	bool recordings; /* of pmrec; else of pmstat */
	struct pm_compare_of base, new;
	char *engine, *cpu_model; /* of the new side; NULL: unknown */
	/* The worst one first; empty: there are no cases. */
	PM_VEC(struct pm_compare_case) cases;
	/* By case; within a case, the most important row first: gated rows before others,
	 * then by verdict, in recordings self before total, then by size relative to
	 * noise. */
	PM_VEC(struct pm_compare_row) rows;
	PM_VEC(char *)
	differences; /* "cpu: X on the base, Y on the new side": incomparable unless
		      * forced */
	PM_VEC(char *) warnings; /* full sentences */
	/* The only event that decides, because no gate is set and no event was requested;
	 * NULL: not needed. */
	char *deciding;
	bool forced; /* compared in spite of the differences */
	struct pm_hot *hot; /* if there are no cases, as in a case */
	/* The verdict on all gated rows: WORSE, INCONCLUSIVE, BETTER, CHANGED or SAME. A
	 * row that is gated by default and inconclusive makes the comparison inconclusive
	 * only if no other row has an answer. If nothing is gated, all rows count, and it
	 * is never WORSE.
	 * With cases, the worst verdict of them: UNKNOWN makes it INCONCLUSIVE; NEW or
	 * GONE do not count. */
	enum pm_verdict verdict;
};

struct pm_compare_options {
	const struct pm_gates *gates; /* NULL or none: defaults */
	bool force; /* compare the sides even if they differ */
	double gates_default[3]; /* by enum pm_stat_class; 0: the built-in one */
	/* Documents of earlier commits, oldest first. A low-noise gate is derived from
	 * the noise in them (third quartile plus three interquartile ranges of their
	 * changes). */
	const struct pm_stat *const *history;
	size_t history_len;
	uint64_t seed; /* of bootstraps */
	/* Functions were measured to find the origin of a change. Cost that only moves
	 * between functions is not a regression, so that a function counts only if a gate
	 * names it. */
	bool functions_explain;
	/* How far rows may be from the level of the history; NULL or none: no limit. */
	const struct pm_gates *history_gates;
	const struct pm_acks *acks; /* NULL or none: nothing is accepted */
	/* Only some cases are compared: gates for other cases are not mistakes. */
	bool cases_left_out;
};

/* One case of both sides. */
struct pm_compare_input {
	const char *name; /* NULL: the only case */
	const char *group; /* also matched by gates; NULL: none */
	/* Documents of each side. There are none if the side does not have the case, or
	 * if the case failed there. */
	const struct pm_stat *const *base;
	size_t base_len;
	const struct pm_stat *const *new;
	size_t new_len;
	/* Why the side has no documents, in one sentence; NULL: it does not have the
	 * case. */
	const char *failed_base, *failed_new;
	/* These replace the members of the same name in the options. */
	const struct pm_stat *const *history;
	size_t history_len;
	bool functions_explain;
};

/*
 * @base and @new: one or several documents, each of one program. A single document of
 * `pmstat ab` contains both sides; @new_len is then 0. The caller adds names and subjects
 * of the sides. Returns -EXDEV if the sides differ so that their numbers cannot be
 * compared, unless forced: @err has all differences in one line, and out->differences has
 * each of them (no other failure sets @out); -ENOENT if a gate of "--gate" matches no
 * row, or a gate of another source is mistyped; -EINVAL if nothing is in common; -ENOMEM.
 * A gate of another source that matches nothing here gets a row PM_VERDICT_UNKNOWN.
 */
int pm_compare_stats(struct pm_comparison *out, const struct pm_stat *const *base,
		     size_t base_len, const struct pm_stat *const *new, size_t new_len,
		     const struct pm_compare_options *options, struct pm_error *err);
/*
 * Like pm_compare_stats() for several cases, whose rows are corrected together as if they
 * were one comparison. A case on only one side is NEW or GONE. If gates name only other
 * cases, a case is judged without gates. A case whose sides cannot be compared is
 * UNKNOWN, and the other cases are compared; -EXDEV if no case can be compared. Returns
 * -ENOENT also if a gate of "--gate" names no case.
 */
int pm_compare_cases(struct pm_comparison *out, const struct pm_compare_input *inputs,
		     size_t len, const struct pm_compare_options *options,
		     struct pm_error *err);
/*
 * For a document of `pmstat ab`: fills its differences, of the program and then of each
 * function, by event. The rows that decide are the same as in pm_compare_stats(). A
 * difference is more than chance if its probability is below 1 in 500, corrected by Holm
 * over the rows that decide. There is no gate: any difference counts. Returns -ENOMEM.
 */
int pm_compare_ab(struct pm_stat *stat);
/*
 * Compares functions by self and by total, for every event that both have. Copies and
 * parts that compilers make of a function count as that function. Its lambdas count as
 * one function, "{lambda()#*}", if the sides number them differently. If both are
 * recordings of a whole program that ended well, weights are compared; by default a
 * change has to exceed 10 % of the function's weight and 1 % of everything. Otherwise
 * shares are compared; by default a change has to exceed one point, and is CHANGED,
 * because it is unknown which direction is better. A change must also be more than
 * chance: 1 in 100 after Holm. Nothing is gated by default, because one recording does
 * not show how much a program differs from run to run. A gate fails if the whole interval
 * is beyond it. Gates and failures are as in pm_compare_stats(), except that a gate that
 * matches nothing causes a warning, unless it comes from "--gate". An event that only one
 * side has causes a warning, too.
 */
int pm_compare_profiles(struct pm_comparison *out, const struct pm_profile *base,
			const struct pm_profile *new,
			const struct pm_compare_options *options, struct pm_error *err);
#define PM_HISTORY_PREFIX "history:" /* prefix of the names of rows for history gates */
/* Appends the name that gates and acceptances use: "parse_small//fn:parse:sim.Ir". */
void pm_compare_row_name(struct pm_str *str, const struct pm_compare_row *row);
void pm_comparison_release(struct pm_comparison *comparison);
/* Returns how much of a function's change is its own, to order functions. A change passes
 * through all callers of the function that causes it: each has the same absolute change,
 * and the innermost has the largest change relative to its cost. */
double pm_compare_own_part(const struct pm_compare_row *row);

/* ---- trends over many commits -------------------------------------------------------- */

struct pm_trend_commit {
	char *commit, *subject; /* NULL: unknown */
	char *created; /* when it was measured; NULL: unknown */
};

struct pm_trend_point { /* of one commit */
	double median, min, max; /* NaN: no value in this commit */
	size_t runs;
};

struct pm_trend_step {
	size_t at; /* index of the first point of the new level */
	/* The last point with a value before `at`. If there are points without a value in
	 * between, any of their commits may be the cause. */
	size_t from;
	double before, after; /* medians of the levels */
	double change; /* a fraction; infinite if `before` is 0 */
	double noise; /* of the series around its levels, fraction of the level before; NaN:
		       * unknown */
	enum pm_verdict verdict; /* BETTER, WORSE, CHANGED */
};

struct pm_trend {
	char *case_name; /* NULL: no cases */
	char *scope, *module, *event, *unit; /* scope NULL: the program */
	/* Engine and processor of the values, if the history has several, because their
	 * values cannot be compared. NULL: all values have the same. */
	char *machine;
	enum pm_stat_class class; /* as it was judged */
	int8_t better;
	PM_VEC(struct pm_trend_point) points; /* by commit */
	PM_VEC(struct pm_trend_step) steps; /* change points, oldest first */
};

struct pm_trends {
	PM_VEC(struct pm_trend_commit) commits; /* oldest first */
	PM_VEC(struct pm_trend) list; /* largest last step first */
	PM_VEC(char *) warnings;
};

struct pm_trend_of { /* one commit, or one case of it */
	const struct pm_stat *stat;
	const char *case_name; /* NULL: the only one */
	const char *commit, *subject; /* NULL: unknown */
};
/*
 * Finds the levels, and the steps between them, of every row that at least two commits
 * have. Cases of one commit must be adjacent. Exact rows have a step wherever a value
 * differs from the level by 0.05 %, even if only one commit does. Other rows have a step
 * where levels differ by more than the noise of their points explains, which takes at
 * least three points, and by 0.5 % (noisy rows 1 %); faults and simulated misses must
 * also differ by 16.
 */
int pm_trends_find(struct pm_trends *out, const struct pm_trend_of *commits, size_t len,
		   struct pm_error *err);
void pm_trends_release(struct pm_trends *trends);
