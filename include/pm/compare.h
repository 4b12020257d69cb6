/* SPDX-License-Identifier: MIT */
/*
 * What has changed between two sides, and whether that is more than chance: counting documents
 * (pm/stat.h) or recordings (pm/profile.h). Made by src/compare, shown by src/output.
 *
 * Terms. base, new: the two sides. row: one number of one subject, on both sides: the program's
 * wall-time, a function's calls. change: new against base, as a fraction of base: 0.03 is 3 %
 * more. gate: how large a change may be, as a fraction. worse: a change into the direction that
 * the event's `better` calls bad; of an event that has none, any change.
 *
 * How a row is judged depends on its class (enum pm_stat_class):
 *   exact      the same each time: any change beyond the gate. Values that differ within a side
 *              are not exact, whatever they are called: such a row is judged as low-noise,
 *              by default with the gate of exact ones if they differ by less than that.
 *   low-noise  the ratio of the medians beyond the gate, and at most one in ten values of a
 *              side among the other's middle half. What was multiplexed is judged as noisy.
 *   noisy      the shift's whole 95 % interval beyond the gate, and its probability by
 *              chance below 1 in 100, corrected by Holm over the noisy rows that decide.
 *              If the sides ran in turns and there are ten pairs of neighbours, the
 *              ratios of pairs are tested (Wilcoxon's signed ranks), because a
 *              disturbance of the machine changes both neighbours alike and cancels out.
 *              Otherwise all values are tested (Hodges-Lehmann, Mann-Whitney). Rows that
 *              do not decide are shown, but not corrected.
 * A row is inconclusive if there are too few runs, if only a part of its interval lies
 * beyond the gate, or if more of its hits are lost than the gate allows.
 *
 * Default gates: exact 0.05 %; low-noise 0.5 %, or what history says if that is more
 * (faults and simulated misses: and 16 of them); wall-time 5 %; other noisy rows 0.5 %;
 * noisy rows 10 % if the sides did not run in turns, because the changing load of the
 * machine is then in the change.
 *
 * If no gate is set, or if all gates are for other machines, these decide (`gated`):
 * exact rows; requested events; simulated events; instructions of functions. If no events
 * were requested, one event of the program decides: the first of cycles, instructions and
 * task-clock that both sides have, if no measuring of functions disturbed the program
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
	/* Pattern of the names of cases, or of groups of cases; NULL: all, and what has none. */
	char *case_name;
	bool case_exact; /* no pattern: the case is the one of this name */
	char *scope; /* pattern (fnmatch(3)) of functions' names; NULL: the program */
	/* Pattern of events' names, "calls"; "wall" is wall-time. Without modifiers all of them;
	 * of recordings "cycles", "cycles self", "self". */
	char *event;
	/* A fraction, at least 0; of shares, of everything: 0.01 is one point. */
	double limit;
	/* Or a hard limit ("<=1.2M"): what the new side may have at most, whatever the base has, in
	 * the unit of the event. NaN: `limit` holds. */
	double at_most;
	bool both; /* a change to the better fails, too ("=±0.5%" or "=+-0.5%") */
	char *source; /* for people: "--gate", "pmdiff.json" */
};

struct pm_gates {
	/* If several gates match a row, the last change and the last hard limit hold. */
	PM_VEC(struct pm_gate) list;
};

/* "EVENT=N%", "fn:NAME:EVENT=N%", "EVENT<=NUMBER" with the suffix k, M, G (thousands),
 * ns, us, ms, s or KiB, MiB, GiB, each perhaps with "CASE//" before it, and lists of them,
 * separated by commas. A colon or a comma in a C++ name needs no quoting: EVENT follows the last
 * colon that leaves a known word. -EINVAL with one clear line. */
int pm_gates_parse(struct pm_gates *gates, const char *text, const char *source,
		   struct pm_error *err);
void pm_gates_release(struct pm_gates *gates);

/* ---- a comparison -------------------------------------------------------------------- */

enum pm_verdict {
	PM_VERDICT_SAME, /* within the gate, or not more than chance */
	PM_VERDICT_BETTER,
	PM_VERDICT_CHANGED, /* beyond the gate, and nobody knows which way is better */
	PM_VERDICT_WORSE, /* a regression where the row is gated */
	PM_VERDICT_ACCEPTED, /* worse, up to a level that somebody has accepted */
	PM_VERDICT_INCONCLUSIVE, /* may be beyond the gate: more runs would tell */
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
	bool known; /* false: no number, and `why` of the row says it */
	/* Of each run that ended well, in the order in which they ran; one number of recordings.
	 * In the unit of the row. */
	double *values;
	size_t len;
	uint64_t *
		begins; /* when the run of each began (CLOCK_REALTIME, ns); NULL: unknown */
	double median, min, max; /* NaN if not known */
	/* Of a recording: the samples that the number stands on, and which part of all in the
	 * event it is, in percent. */
	uint64_t samples;
	double share;
	double weight; /* and the sum of their periods; NaN: no such thing */
	/* Of functions, by the run that has most: which part of the hits is missing, such that
	 * the number is at least so large. */
	double lost;
};

/* Runs of both sides that began one right after the other: indices of their values. */
struct pm_compare_pair {
	uint32_t base, new;
};

struct pm_compare_row {
	const char
		*case_name; /* as in the comparison's cases, borrowed; NULL: no cases */
	size_t case_at; /* its index there */
	enum pm_compare_subject subject;
	char *scope; /* function or range, NULL: the program */
	char *symbol; /* as in the symbol table, NULL: unknown */
	char *module; /* short name, NULL: none or unknown */
	char *file; /* where the scope is, on the new side if it is there; NULL: unknown */
	uint32_t line; /* 0: unknown */
	/* "sim.Ir", "wall-time", "calls"; of recordings "cycles self", "cycles total". */
	char *event;
	/* "ns", "bytes", "" counts. Of recordings "ns" or "" where both are of a whole program:
	 * what the samples stand for; else "%": shares. */
	char *unit;
	enum pm_stat_class class; /* as it was judged */
	const char
		*method; /* for people: "exact", "medians", "Hodges-Lehmann" … ; static */
	int8_t better; /* -1: less is, 1: more, 0: neither */
	struct pm_compare_side base, new;
	PM_VEC(struct pm_compare_pair) pairs; /* of noisy rows; empty: not in turns */
	const char *weight_unit; /* of a recording: "ns", "" counts; NULL: none; static */
	/* NaN: unknown. A change from 0 is +infinity. `low` and `high`: 95 % interval of it; both
	 * `change` where the method has none. Of a share the difference of both as a fraction
	 * of everything: 0.03 is 3 points more. */
	double change, low, high;
	double difference, difference_low,
		difference_high; /* the same in `unit`; NaN: unknown */
	/* By Wilcoxon or Mann-Whitney, or the chance of so many samples; NaN: not
	 * tested. */
	double p;
	double p_holm; /* corrected, of rows that decide; else equal to `p` */
	double gate; /* a fraction; infinite: only a hard limit is set */
	double at_most; /* of the new side; NaN: no limit */
	bool gated; /* somebody asked for this row by a gate: a regression fails the comparison */
	bool both; /* see struct pm_gate */
	/* "--gate", "pmdiff.json", "history", "default". Lives as long as the gates. */
	const char *gate_source;
	bool of_history; /* the base is the level of earlier commits */
	bool too_early; /* of_history: too few commits for any level, thus nothing is open */
	const struct pm_ack *ack; /* lives as long as the acks; NULL: not accepted */
	enum pm_verdict verdict;
	char *why; /* one sentence where the verdict needs one, else NULL */
	bool inlined_base, inlined_new; /* everywhere inlined on that side */
};

/* What sides were, for headings. */
struct pm_compare_of {
	char *name; /* file, revision, for people */
	char *commit; /* full hash, NULL: unknown */
	char *subject; /* of the commit, one line; NULL: unknown */
	char *created; /* of the first document; NULL: unknown */
	char *command; /* NULL: unknown */
	size_t documents, runs;
	size_t left_out; /* runs that did not end well */
};

/* ---- where added cost is ------------------------------------------------------------- */

enum {
	PM_HOT_ROWS = 10, /* of each list */
};

struct pm_hot_row {
	char *function; /* NULL: unknown */
	char *module; /* short name; NULL: unknown, or of a line */
	char *file; /* below the top of the sources, if it is there; NULL: unknown */
	uint32_t
		line; /* of a line; of a function, where most of its samples are; 0: unknown */
	double base, new; /* cost, in the unit */
};

/* Of what got worse: a profile of each side, compared in absolute numbers. */
struct pm_hot {
	bool exact; /* every instruction was counted (callgrind); else samples (pmrec) */
	char *event; /* "sim.Ir", "cpu-clock" */
	const char *unit; /* "ns", "" counts; static */
	double all[2]; /* cost of everything, base and new */
	struct pm_hot_rows {
		PM_VEC(struct pm_hot_row) list; /* the most added cost first */
		size_t more; /* others that cost more than before, too */
	} self, total,
		lines; /* functions by themselves; with all that they call; lines */
	char *page; /* the differential flame graph, a file; NULL: none was wanted */
};

struct pm_hot_options {
	bool exact;
	const char *roots[2]; /* folders that the sources were in; NULL: unknown */
	/* Which line of the new side @line of the base has become; 0: it is gone. NULL: lines
	 * stay. @file is below the root. */
	uint32_t (*line_of)(void *user, const char *file, uint32_t line);
	void *user;
};

/* Of the first event that both have samples of. -EINVAL: there is none; -ENOMEM. */
int pm_hot_find(struct pm_hot **ret, const struct pm_profile *base,
		const struct pm_profile *new, const struct pm_hot_options *options,
		struct pm_error *err);
void pm_hot_free(struct pm_hot *hot);

/* One case of several. */
struct pm_compare_case {
	char *name;
	struct pm_compare_of base, new; /* without documents: not on that side */
	char *engine, *deciding; /* as in struct pm_comparison */
	/* As of a comparison; NEW, GONE: on one side only. UNKNOWN: it cannot be compared, or it
	 * failed on the new side, and `why` says it. Then it has no rows. */
	enum pm_verdict verdict;
	char *why; /* one sentence, else NULL */
	bool failed_base, failed_new; /* it is there, and gave no numbers */
	size_t first, len; /* its rows, which are neighbours */
	struct pm_hot *hot; /* of what got worse; NULL: it was not profiled */
};

struct pm_comparison {
	bool recordings; /* of pmrec; else of pmstat */
	struct pm_compare_of base, new;
	char *engine, *cpu_model; /* of the new side, NULL: unknown */
	/* The worst first; empty: there are no cases. */
	PM_VEC(struct pm_compare_case) cases;
	/* By case. Heaviest first: gated before others, then by verdict, of recordings self before
	 * total, then by size against noise. */
	PM_VEC(struct pm_compare_row) rows;
	PM_VEC(char *)
	differences; /* "cpu: X on the base, Y on the new side": incomparable unless
				     * forced */
	PM_VEC(char *) warnings; /* full sentences */
	/* The one event that decides because no gate is set and no event was requested;
	 * NULL: none is needed. */
	char *deciding;
	bool forced; /* compared in spite of the differences */
	struct pm_hot *hot; /* without cases, as of a case */
	/* Of all that is gated: WORSE, INCONCLUSIVE, BETTER, CHANGED or SAME. A row that is gated
	 * by default and inconclusive makes it so only where no other has an answer. Where nothing
	 * is gated, of all rows, and never WORSE. Of cases, the worst verdict of them: one that is
	 * UNKNOWN makes it INCONCLUSIVE, one that is NEW or GONE does not count. */
	enum pm_verdict verdict;
};

struct pm_compare_options {
	const struct pm_gates *gates; /* NULL or none: defaults */
	bool force; /* whatever the sides are */
	double gates_default[3]; /* by enum pm_stat_class; 0: the built-in one */
	/* Documents of earlier commits, oldest first: what a low-noise gate learns its noise from
	 * (third quartile and three interquartile ranges of their changes). */
	const struct pm_stat *const *history;
	size_t history_len;
	uint64_t seed; /* of bootstraps */
	/* Functions were measured to tell where a change comes from. What moves between them is
	 * nobody's loss: none decides that no gate names. */
	bool functions_explain;
	/* How far rows may be from the level of the history; NULL or none: however far. */
	const struct pm_gates *history_gates;
	const struct pm_acks *acks; /* NULL or none: nothing is accepted */
	/* Only some of the cases are compared: gates of the others mean no slip. */
	bool cases_left_out;
};

/* One case of both sides. */
struct pm_compare_input {
	const char *name; /* NULL: the only one */
	const char *group; /* which gates may name, too; NULL: none */
	/* Documents of each side; none: the side does not have it, or it failed there. */
	const struct pm_stat *const *base;
	size_t base_len;
	const struct pm_stat *const *new;
	size_t new_len;
	/* Why the side has no documents, one sentence; NULL: it does not have the case. */
	const char *failed_base, *failed_new;
	/* In the place of those of the options. */
	const struct pm_stat *const *history;
	size_t history_len;
	bool functions_explain;
};

/*
 * @base and @new: one or several documents, each of one program; a document of `pmstat ab` is
 * both sides by itself, with @new_len 0. Names and subjects of the sides are the caller's to add.
 * -EXDEV where they differ such that numbers do not compare, with all that differs in one line and
 * in ret->differences (the one failure that sets @ret), unless forced; -ENOENT, a gate of "--gate"
 * means no row, or one of another source is a slip of the pen; -EINVAL, nothing is in common;
 * -ENOMEM. A gate of another source that means nothing here gets a row PM_VERDICT_UNKNOWN.
 */
int pm_compare_stats(struct pm_comparison *ret, const struct pm_stat *const *base,
		     size_t base_len, const struct pm_stat *const *new, size_t new_len,
		     const struct pm_compare_options *options, struct pm_error *err);
/*
 * The same of several cases, whose rows are corrected for one another as if they were one
 * comparison. A case of one side only is NEW or GONE. If gates name other cases only, a case is
 * judged without gates. A case whose sides do not compare is UNKNOWN, and the others are compared.
 * -EXDEV: that is so of all. -ENOENT, too: a gate of "--gate" names no case.
 */
int pm_compare_cases(struct pm_comparison *ret, const struct pm_compare_input *inputs,
		     size_t len, const struct pm_compare_options *options,
		     struct pm_error *err);
/*
 * Of a document of `pmstat ab`: fills its differences, of the program and then of each function, by
 * event. What decides is as in pm_compare_stats(); beyond chance is a probability below 1 in 500,
 * corrected by Holm for what decides. There is no gate: any difference counts. -ENOMEM.
 */
int pm_compare_ab(struct pm_stat *stat);
/*
 * Functions by self and by total, of every event that both have; copies and parts that compilers
 * make of a function are that function; so are its lambdas, as "{lambda()#*}", where the sides have
 * other numbers of them. Where both recordings are of a whole program that ended
 * well, weights are compared: by default more than 10 % of the function's own and 1 % of
 * everything. Else shares, by default more than one point, of which nobody knows which way is
 * better (CHANGED). Always more than chance: 1 in 100 after Holm. Nothing is gated by default,
 * for one recording does not tell how much a program differs from run to run. A gate fails where
 * the whole interval is beyond it. Gates and failures are those of pm_compare_stats(), but for
 * gates that mean nothing here, of which a warning tells unless they are of "--gate"; events of one
 * side alone get one, too.
 */
int pm_compare_profiles(struct pm_comparison *ret, const struct pm_profile *base,
			const struct pm_profile *new,
			const struct pm_compare_options *options, struct pm_error *err);
#define PM_HISTORY_PREFIX "history:" /* of the name of a row of a history gate */
/* As gates and acceptances name it: "parse_small//fn:parse:sim.Ir". */
void pm_compare_row_name(struct pm_str *str, const struct pm_compare_row *row);
void pm_comparison_release(struct pm_comparison *comparison);
/* How much of a function's change is its own doing, to order functions by, of those that a change
 * goes through from caller to callee: each has the same in numbers, and the innermost the largest
 * part of its own. */
double pm_compare_own_part(const struct pm_compare_row *row);

/* ---- over many commits --------------------------------------------------------------- */

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
	/* The last point before it that has a value; with points without one in between, any
	 * of their commits may be the cause. */
	size_t from;
	double before, after; /* medians of the levels */
	double change; /* fraction; infinite from 0 */
	double noise; /* of the series around its levels, fraction of the level before; NaN:
		       * unknown */
	enum pm_verdict verdict; /* BETTER, WORSE, CHANGED */
};

struct pm_trend {
	char *case_name; /* NULL: no cases */
	char *scope, *module, *event, *unit; /* scope NULL: the program */
	/* What the values are of, where the history has several: engine and processor, whose
	 * numbers do not compare. NULL: all are of the same. */
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
 * Levels and the steps between them, of every row that at least two commits have. Cases of one
 * commit stand one behind the other. Exact rows
 * have a step wherever a value is 0.05 % away from the level, be it for one commit; others where
 * levels differ by more than the noise of their points explains, which takes three points at
 * least, and by 0.5 % (noisy rows 1 %); faults and simulated misses by 16, too.
 */
int pm_trends_find(struct pm_trends *ret, const struct pm_trend_of *commits, size_t len,
		   struct pm_error *err);
void pm_trends_release(struct pm_trends *trends);
