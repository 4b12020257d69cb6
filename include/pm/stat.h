/* SPDX-License-Identifier: MIT */
/*
 * The result of a counting run as one document: created by src/count, written and read by
 * src/file (see docs/pmstat.schema.json), shown by src/output, compared by pmdiff. Plain
 * data. The document owns its strings and arrays; a NULL string means "unknown".
 */
#pragma once

#include "pm/base.h"
#include "pm/stat-state.h"

enum {
	PM_STAT_VERSION = 1, /* of the file */
};

/* ---- values -------------------------------------------------------------------------- */

/* "ok", "multiplexed", "not_counted", "not_supported", "not_permitted", "not_known". */
const char *pm_stat_state_name(enum pm_stat_state state);

struct pm_stat_value {
	enum pm_stat_state state;
	/* In the event's own unit (ns, bytes, times), scaled if it was multiplexed;
	 * undefined in the last four states. */
	uint64_t value;
	/* As counted: less than `value` if multiplexed; undefined without a value. Both
	 * times are 0 if they do not exist (wall time, simulated events). */
	uint64_t raw, enabled_ns, running_ns;
};
static inline bool pm_stat_has_value(const struct pm_stat_value *value)
{
	return value->state <= PM_STAT_MULTIPLEXED;
}

/* ---- events -------------------------------------------------------------------------- */

/* How much equal runs differ: determines how they are compared. */
enum pm_stat_class {
	PM_STAT_EXACT, /* the same each time: simulated instructions, calls */
	PM_STAT_LOW_NOISE, /* instructions, faults */
	PM_STAT_NOISY, /* times, misses, switches */
};
/* "exact", "low_noise", "noisy". */
const char *pm_stat_class_name(enum pm_stat_class class);

struct pm_stat_event {
	char *name; /* "instructions", "task-clock", "sim.Ir", "wall-time" */
	char *requested; /* as typed, with modifiers; equal to name if it was not typed */
	char *unit; /* "ns", "bytes", "J", …; "" for plain counts */
	double scale; /* value × scale is in `unit`; 1 except for PMUs with .scale */
	char *source; /* "hardware", "software", "cache", "raw", "pmu", "tracepoint",
		       * "breakpoint", "probe", "tool" (what wait4(2) and clocks say),
		       * "simulated" */
	enum pm_stat_class class;
	int8_t better; /* -1: less is better, 1: more, 0: neither */
	int32_t group; /* events of one group have the same number; -1: none */
	/* The kernel was excluded: as typed, or because it is not allowed. */
	bool user_only;
	bool default_set; /* not requested by name */
	enum pm_stat_state state; /* of the event as a whole */
	char *why; /* one sentence for a state that is not OK, else NULL */
};

/* ---- runs ---------------------------------------------------------------------------- */

struct pm_stat_row { /* --per thread, --per cpu */
	int32_t pid, tid; /* 0: not by thread */
	char *comm; /* NULL: not by thread */
	int32_t cpu; /* -1: not by CPU */
	struct pm_stat_value *values; /* by event */
};

struct pm_stat_interval { /* -I */
	uint64_t at_ns; /* its end, since the start of the run */
	struct pm_stat_value *values; /* by event; only of this interval */
	PM_VEC(struct pm_stat_row) rows;
};

struct pm_stat_run {
	uint32_t variant; /* of `ab`: 0 is A, 1 is B */
	uint64_t begin_ns; /* CLOCK_REALTIME; 0: unknown */
	bool exited; /* false: attached, or still running at the end of the time */
	int32_t exit_code; /* -1: ended by a signal */
	int32_t signal; /* 0: none */
	/* by --timeout, by Ctrl-C, or because counting ended before the run */
	bool stopped;
	struct pm_stat_value *values; /* by event */
	PM_VEC(struct pm_stat_row) rows;
	PM_VEC(struct pm_stat_interval) intervals;
};

/* A run that was stopped or failed may have done less than the others. */
static inline bool pm_stat_run_ended_well(const struct pm_stat_run *run)
{
	return !run->stopped &&
	       (!run->exited || (run->signal == 0 && run->exit_code == 0));
}

/* ---- functions and ranges ------------------------------------------------------------ */

enum pm_stat_scope_kind {
	PM_STAT_FUNCTION,
	PM_STAT_RANGE, /* --range */
	PM_STAT_INLINED, /* one place where a function was inlined, or all of them */
};
/* "function", "range", "inlined". */
const char *pm_stat_kind_name(enum pm_stat_scope_kind kind);

struct pm_stat_thread { /* of a scope */
	int32_t pid, tid;
	char *comm;
	uint64_t calls;
	struct pm_stat_value *values;
};

struct pm_stat_caller { /* --calls-from */
	/* Innermost first: the caller, its caller, and so on. */
	PM_VEC(struct pm_stat_frame {
		char *function, *file; /* NULL: unknown */
		uint32_t line; /* 0: unknown */
		char *module;
		uint64_t address; /* svma */
	})
	frames;
	uint64_t calls;
	struct pm_stat_value *values;
};

/* The distribution of one event over single calls. If there were more calls than could be
 * kept, the quantiles come from a sample of `calls_kept` calls. */
struct pm_stat_spread {
	/* false: the engine sees no single calls, or the event has no value. */
	bool known;
	uint64_t min, p50, p99, max;
};

struct pm_stat_scope {
	uint32_t run; /* index in runs */
	enum pm_stat_scope_kind kind;
	char *name; /* demangled, or as typed for a range */
	char *symbol; /* as in the symbol table, NULL for ranges */
	char *module; /* path */
	char *build_id; /* hex, NULL: none */
	char *file; /* where it is defined, NULL: unknown */
	uint32_t line, line_end; /* 0: unknown; [line, line_end] for ranges of lines */
	uint64_t low, high; /* svma [low, high) of its first piece */
	uint32_t places; /* number of places of an inlined function, else 1 */
	/* No engine could see whether it was called: the numbers of calls are
	 * undefined. */
	bool calls_unknown;
	uint64_t calls; /* calls that were entered */
	uint64_t nested; /* calls made from inside the function itself: recursion */
	uint32_t max_depth; /* 1: no recursion; 0: never called */
	uint64_t unfinished; /* left by longjmp, exception or the end of the program */
	bool calls_exact; /* false: hits were lost, and `calls` is a lower bound */
	uint64_t lost; /* hits that are missing from the values */
	/* By event: only outermost calls, with everything that they called. Includes
	 * unfinished calls as far as they were seen. */
	struct pm_stat_value *values;
	/* By event; each call separately, nested ones too. NULL: no single calls were
	 * seen. */
	struct pm_stat_spread *per_call;
	uint64_t calls_kept;
	PM_VEC(struct pm_stat_thread) threads; /* --per thread */
	PM_VEC(struct pm_stat_caller) callers;
};

/* ---- derived numbers ----------------------------------------------------------------- */

/* Instructions per cycle and the like: `value` is computed from the means over the runs
 * of a variant. */
struct pm_stat_metric {
	char *name, *unit; /* "IPC", "" */
	char *formula; /* "instructions / cycles" */
	uint32_t variant;
	int32_t scope; /* index in scopes; -1: of the program */
	bool known; /* false: an input has no value, or the divisor is 0 */
	double value;
	uint32_t event; /* the event beside which it is shown */
};

/* ---- B against A ---------------------------------------------------------------------- */

enum pm_stat_outcome {
	PM_STAT_UNKNOWN, /* one of the two has no value */
	PM_STAT_EQUAL, /* in all runs */
	PM_STAT_LESS, /* B has less than A, by more than chance explains */
	PM_STAT_MORE,
	PM_STAT_UNDECIDED, /* the difference may be chance */
	PM_STAT_TOO_FEW, /* too few runs to decide */
};
/* "unknown", "equal", "less", "more", "undecided", "too_few_runs". */
const char *pm_stat_outcome_name(enum pm_stat_outcome outcome);

/* From `ab`: one number of the program or of a function. NaN: unknown. */
struct pm_stat_difference {
	int32_t scope; /* index of the first scope of the function; -1: the program */
	uint32_t event; /* index in events; equal to their number: calls */
	size_t runs[2]; /* with a value, by variant */
	size_t runs_needed; /* on each side, so that a difference can exceed chance */
	double median[2]; /* in the unit of the event, like the next three */
	double by, by_low, by_high; /* B - A, and its 95 % interval */
	double change, change_low, change_high; /* the same as fractions of A */
	double p; /* probability of such a difference by chance alone */
	/* corrected over the rows that decide; for others equal to `p` */
	double p_corrected;
	/* Compared by pairs of neighbouring runs; otherwise by all values of both
	 * sides. */
	bool paired;
	bool decides; /* it counts for the verdict; other rows are only shown */
	enum pm_stat_outcome outcome;
	enum pm_stat_state state; /* of the first side without a value; else OK */
};

/* ---- the document -------------------------------------------------------------------- */

struct pm_stat_host {
	char *hostname, *kernel, *arch, *cpu_model, *virt; /* NULL: unknown or none */
	uint32_t cpus;
	int32_t paranoid; /* INT32_MIN: unknown */
	char *governor; /* of CPU 0 */
	int8_t smt; /* 1: on, 0: off, -1: unknown */
};

struct pm_stat_subject {
	PM_VEC(char *) argv; /* of the variant; empty: attached */
	char *build_id; /* of the program's file, hex */
	/* What it was built from, if that is known (pmdiff). The other two are undefined
	 * without `commit`. */
	char *commit; /* full hash, NULL: unknown */
	int64_t commit_time; /* of its committer, seconds since 1970; -1: unknown */
	int8_t dirty; /* 1: with uncommitted changes, 0: without, -1: unknown */
};

struct pm_stat {
	char *version; /* of pmstat */
	char *created; /* UTC, ISO 8601; NULL: unknown */
	/* "count" (no functions), "uprobe", "ptrace", "callgrind"; in an imported
	 * document the tool that measured, e.g. "hyperfine" (pm/import.h). */
	char *engine;
	char *target; /* for people: "-p 12", "-a"; NULL: a command */
	struct pm_stat_host host;
	PM_VEC(struct pm_stat_subject) subjects; /* by variant */
	PM_VEC(struct pm_stat_event) events;
	PM_VEC(struct pm_stat_run) runs; /* in the order of execution; without warm-ups */
	uint32_t warmups;
	PM_VEC(struct pm_stat_scope) scopes;
	/* The cost of measuring one call of a function, which is part of its values, by
	 * event; NULL: no functions. With `overhead_subtracted`, it was subtracted from
	 * `values` and `per_call`. */
	struct pm_stat_value *overhead;
	/* The part of that cost that a call adds to a measured function which contains
	 * it; NULL: unknown. */
	struct pm_stat_value *overhead_inner;
	bool overhead_subtracted;
	PM_VEC(struct pm_stat_metric) metrics;
	/* From `ab`, by pm_compare_ab(): written, but not read again, because the runs
	 * imply it. */
	PM_VEC(struct pm_stat_difference) differences;
	PM_VEC(char *) warnings; /* full sentences */
	PM_VEC(struct pm_stat_setting { char *name, *value; })
	settings; /* fixed by the engine: GLIBC_TUNABLES, cache sizes */
};

/* Returns a mask: bit N is set if any run of variant N ended well. Summaries then leave
 * out the runs of that variant that did not; see pm_stat_is_summed(). */
uint32_t pm_stat_variants_ended(const struct pm_stat *stat);
static inline bool pm_stat_is_summed(uint32_t variants_ended,
				     const struct pm_stat_run *run)
{
	return pm_stat_run_ended_well(run) || run->variant >= 32 ||
	       !(variants_ended >> run->variant & 1);
}
void pm_stat_release(struct pm_stat *stat);
/*
 * Joins documents of the same measurement: runs one after the other, scopes with them,
 * and each warning once. Properties of the first document (host, subjects, date) apply to
 * all. Metrics and differences are left out, because they belong to single documents.
 * Returns -EINVAL if engines, events or subjects differ, or -ENOMEM. Except for its
 * arrays, the content of @out is borrowed from @stats: release it with
 * pm_stat_join_release().
 */
int pm_stat_join(struct pm_stat *out, const struct pm_stat *stats, size_t len,
		 struct pm_error *err);
void pm_stat_join_release(struct pm_stat *joined);
/* Copies a string for a document; *out is NULL if @text is. Returns 0 or -ENOMEM. */
int pm_stat_text(char **out, const char *text);
/* Returns @len values, all NOT_COUNTED, or NULL if out of memory. */
struct pm_stat_value *pm_stat_values_new(size_t len);

/* ---- the file ------------------------------------------------------------------------ */

/*
 * Writes the document as one JSON object and a newline: see docs/format.md. Checks the
 * document before the first byte: -EINVAL if an index is out of range, an array of values
 * or a required text is NULL, or a factor is not a number. Returns 0 or negative errno
 * with @err.
 */
int pm_stat_write(const struct pm_stat *stat, int fd, struct pm_error *err);
/* Reads a document of pm_stat_write(), compressed by zstd or not, from the position of
 * @fd to its end; @name is for messages. Invalid input is reported in a clear line.
 * Returns -EBADMSG, -ENOTSUP (a newer version), -EFBIG, -ENOMEM, or the error of read(2);
 * @out is then unchanged. */
int pm_stat_read(struct pm_stat *out, int fd, const char *name, struct pm_error *err);
