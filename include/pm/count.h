/* SPDX-License-Identifier: MIT */
/*
 * Counts functions and ranges of code: where they begin and end (regions), what a thread
 * does there (visits), and the engines that observe it. Whole programs need only
 * pm/counters.h.
 *
 *   names ─► pm_regions (pm/probe.h finds functions, flow.c their exits) ─► engine
 *   engine ─► struct pm_visit, one for each entry and exit ─► pm_calls ─► struct pm_stat_scope
 *
 * An engine without individual visits (callgrind) fills the scopes itself.
 */
#pragma once

#include "pm/counters.h"
#include "pm/probe.h"
#include "pm/run.h"
#include "pm/stat.h"

/* ---- regions ------------------------------------------------------------------------- */

/* Where control goes when a thread reaches a place. */
enum pm_place_kind {
	PM_PLACE_ENTRY,
	PM_PLACE_EXIT, /* a return, or a jump out of it: the instruction is about to run */
	/* Control enters a range from the rest of the function, or leaves it to there. */
	PM_PLACE_IN,
	PM_PLACE_OUT,
};

/* An instruction at which an engine observes a region. A region can have two places at
 * one address: if control enters at the region's only instruction, it also leaves there.
 * The place of the entry is then the first of the two. */
struct pm_place {
	uint32_t region;
	enum pm_place_kind kind;
	uint64_t address, offset; /* svma; offset in the file */
	/* sp at the function's first instruction minus sp here: an entry may be observed
	 * after some pushes. 0 at a return. sp + sp_offset is constant within one call of
	 * a function, and so it also matches the visits of IN and OUT. */
	uint32_t sp_offset;
	bool sp_known; /* false: sp_offset is unknown and 0; never false for entries */
	/* For EXIT and OUT at a conditional jump: control leaves only if pm_place_leaves()
	 * returns true. 0: always; otherwise one of the conditions below. */
	uint8_t condition;
	/* The DWARF number of the register that a condition tests, and the tested bits. */
	uint8_t condition_register;
	uint64_t condition_bits;
	/* For ENTRY: the function jumps back to it. If a call with the same sp is already
	 * open, the visit belongs to that call and no new call begins. */
	bool again;
	/* For IN: control reaches it only from outside the range. If a call with the same
	 * sp is still open, it was left by an exception or longjmp(3), and a new call
	 * begins. */
	bool fresh;
	/* The instruction's bytes, which a breakpoint replaces. */
	uint8_t bytes[16];
	uint8_t len;
	/* The kernel emulates it instead of stepping over it (arch/x86/kernel/uprobes.c,
	 * arch/arm64/kernel/probes/decode-insn.c). */
	bool cheap;
	/* The kernel refuses a probe there, or a probe would break the program. */
	bool refused;
	/* How many of the instructions between the place where control arrives and this
	 * one could fault, or end the call in another way, before it is seen. */
	uint8_t passed;
	/* For candidates: the number of instructions after the first one (0: the first
	 * one itself), and whether moving to this one costs nothing but register
	 * values. */
	uint8_t behind;
	bool slides;
};

/* Conditions. Each kind is numbered from the value below, in the order of the
 * instruction's encoding. */
enum {
	PM_PLACE_IF_EFLAGS = 1, /* x86-64 */
	PM_PLACE_IF_NZCV = 17, /* aarch64 */
	PM_PLACE_IF_NO_BITS = 31, /* all of condition_bits are 0 in condition_register */
	PM_PLACE_IF_BITS = 32, /* at least one of them is not */
};
/* @value is needed if condition is not 0: the processor's flags at the place (EFLAGS,
 * PSTATE), or the value of condition_register there. */
bool pm_place_leaves(const struct pm_place *place, uint64_t value);
/* Whether control enters the function or range at @place. */
static inline bool pm_place_is_way_in(const struct pm_place *place)
{
	return place->kind == PM_PLACE_ENTRY || place->kind == PM_PLACE_IN;
}
static inline bool pm_place_asks_register(const struct pm_place *place)
{
	return place->condition >= PM_PLACE_IF_NO_BITS;
}

struct pm_regions;
enum {
	PM_PLACE_TURNS = 5
};
/* The order in which places at one address are reported, by ascending turn: regions that
 * are left there, regions that begin there, and regions that also end there because it is
 * their only instruction. */
int pm_place_turn(const struct pm_regions *regions, uint32_t place);

struct pm_region {
	enum pm_stat_scope_kind kind;
	char *name; /* as in pm_stat_scope; owned */
	char *symbol, *module, *build_id, *file;
	uint32_t line, line_end;
	int fd; /* the ELF file; owned by the pm_regions */
	PM_VEC(struct pm_region_piece {
		uint64_t low, high; /* svma [low, high) */
	})
	pieces; /* the first has the entry; others are .cold and the like */
	/* For inlined functions: the number of places where the function was inlined. */
	uint32_t places_total;
	/* For a function inlined at several places: index of the region that is their
	 * sum, which has no places of its own. -1: none. */
	int32_t sum;
	/* Inlined and interleaved with other code: the number of entries into its pieces
	 * is not the number of calls. A sum is parted if one of its parts is. */
	bool parted;
	/* A function that was also inlined at unknown places: if the out-of-line function
	 * has no calls, the number of calls is unknown. */
	bool inlined_away;
};

struct pm_regions {
	PM_VEC(struct pm_region) list;
	PM_VEC(struct pm_place) places; /* by region, entries first */
	/* For each place, in the same order: the other places at which the same event
	 * could be observed. The places were chosen from these. */
	PM_VEC(struct pm_place) candidates;
	bool asked; /* the kernel has reported which of them accept a probe */
	PM_VEC(int) files;
	PM_VEC(char *) notes; /* one line each, for the user */
};
void pm_regions_release(struct pm_regions *regions);

enum {
	PM_REGIONS_MAX = 1024, /* regions on one command line */
	PM_REGION_PLACES_MAX = 4096, /* places in all regions together */
};

/* A function or range to find: --fn or --range as typed. */
struct pm_region_spec {
	bool range;
	const char *text;
};

/*
 * Finds the functions and ranges that are specified, and the places to observe in each.
 *
 * A function: NAME, a glob, C++ names with or without parameters, NAME@LIBRARY, FILE:LINE
 * of its definition. A range: FILE:FROM-TO (lines, both included), 0xA-0xB (svma of the
 * program or, with @LIBRARY, of a library; the end excluded). Without @LIBRARY, a
 * function is searched for in the program and then in the libraries that it needs; the
 * first that has it is used. A name that exists only inlined gives one INLINED region for
 * each place and, if there are several places, their sum before them. A name that exists
 * both ways gives all of these and a note. A glob finds inlined functions only if it
 * matches no others.
 *
 * For code that cannot be analysed (an indirect jump with unknown targets may leave it),
 * the result has the known places, and a note says what may be missed.
 *
 * Returns 0; -ENOENT with similar names, or with what a stripped file lacks; -EINVAL;
 * -E2BIG; -ENOEXEC; -ENODATA; -EOPNOTSUPP (a machine that flow.c does not know); -ENOMEM.
 * On error, @regions is unchanged.
 */
int pm_regions_find(struct pm_regions *regions, const struct pm_region_spec *specs,
		    size_t len, const struct pm_probe_context *context,
		    struct pm_error *err);

/*
 * Asks the kernel which of the places accept a probe, and replaces those that do not: an
 * entry can also be observed at the next instruction. A place without a replacement is
 * marked `refused`. Returns 0, or a negative error with @err; then nothing is known and
 * nothing was changed.
 */
int pm_regions_ask_kernel(struct pm_regions *regions, struct pm_error *err);
/* Whether probes can see no call of @region, nor of the parts that it is the sum of. */
bool pm_regions_is_deaf(const struct pm_regions *regions, uint32_t region);

/* ---- calls --------------------------------------------------------------------------- */

/* A thread reached a place. */
struct pm_visit {
	uint64_t time; /* ns, CLOCK_MONOTONIC */
	pid_t pid, tid;
	/* Index in pm_regions.places. Visits at which the place's condition does not hold
	 * are left out. */
	uint32_t place;
	uint64_t sp; /* at the place; the stack grows down */
	const uint64_t *counts; /* of the thread, by event; they never decrease */
	uint64_t enabled_ns, running_ns; /* of the counters' group */
	const struct pm_sample *stack; /* at entries with --calls-from; NULL: none */
	/* The caller's id, assigned by the engine; UINT32_MAX: unknown. */
	uint32_t caller;
};

struct pm_calls_options {
	const struct pm_regions *regions; /* borrowed */
	size_t events; /* number of counts in a visit */
	bool by_thread;
	/* Called at the end of each call, for --live. NULL: no callback. The values are
	 * borrowed. */
	void (*ended)(void *user, uint32_t region, const struct pm_visit *entry,
		      const struct pm_visit *exit, uint32_t depth);
	/* Sets *out to the frames of a visit's caller. Returns 0 or -ENOMEM. NULL:
	 * callers have no frames. */
	int (*name_caller)(void *user, uint32_t caller, struct pm_stat_caller *out);
	void *user;
};

/*
 * One shadow stack for each thread, matched by stack pointer. An exit belongs to the
 * youngest open entry of its region with the same stack pointer. Calls that were opened
 * above that entry, and calls below the stack pointer of a new entry on the same stack,
 * were left by longjmp(3) or an exception and are unfinished. Inclusive values count only
 * the outermost call. Only one thread of pmstat may use it.
 */
struct pm_calls;
/* Returns 0 or -ENOMEM, like all functions of this section that return int. */
int pm_calls_new(struct pm_calls **out, const struct pm_calls_options *options);
void pm_calls_free(struct pm_calls *calls);
int pm_calls_visit(struct pm_calls *calls, const struct pm_visit *visit);
/* To be called when a thread or process has exited, or has executed another program: its
 * open calls are unfinished, and end with the last counts that were read for the
 * thread. */
void pm_calls_thread_exit(struct pm_calls *calls, pid_t tid);
/* Sets the name of a thread. @pid is 0 if it is not known yet. */
void pm_calls_thread_named(struct pm_calls *calls, pid_t pid, pid_t tid,
			   const char *comm);
/* A forked process continues with copies of its parent thread's open calls and may return
 * from them, although its counters start at 0 and its elapsed time at @time. */
int pm_calls_fork(struct pm_calls *calls, pid_t parent_tid, pid_t pid, pid_t tid,
		  uint64_t time);
/*
 * Sets the cost of each place that a thread reaches, in the format of @overhead of
 * pm_calls_finish(). It is subtracted from calls that contain other visits. Default: half
 * of the cost of a call.
 */
int pm_calls_set_visit_cost(struct pm_calls *calls, const uint64_t *costs);
/* Replaces @overhead if costs depend on how a function is entered: @call is the cost of
 * calls that are entered at a @cheap place, or at one that is not, and @visit the cost of
 * each such place. */
int pm_calls_set_costs(struct pm_calls *calls, bool cheap, const uint64_t *call,
		       const uint64_t *visit);
/* Ends the counting: appends to stat->scopes one scope with @run for each region that is
 * not a part of a sum, and one for each sum. Values are scaled for multiplexed groups.
 * @overhead (per call, by event of the visits, then elapsed time; NULL: none) is
 * subtracted, at most down to 0. Elapsed time is the event "wall-time" of source "tool".
 * Returns 0 or -ENOMEM. */
int pm_calls_finish(struct pm_calls *calls, struct pm_stat *stat, uint32_t run,
		    const uint64_t *overhead);

/* ---- engines ------------------------------------------------------------------------- */

enum pm_count_engine {
	PM_COUNT_ENGINE_AUTO,
	PM_COUNT_ENGINE_UPROBE,
	PM_COUNT_ENGINE_PTRACE,
	PM_COUNT_ENGINE_CALLGRIND,
};

struct pm_engine_options {
	const struct pm_event_spec *specs; /* events to count; borrowed */
	size_t specs_len;
	const struct pm_regions *regions; /* borrowed */
	struct pm_targets *targets; /* running targets; NULL: the command */
	char **command; /* NULL-terminated */
	const char *user; /* --user */
	bool data_on_stdout; /* the command's output goes to stderr */
	bool no_inherit;
	bool by_thread;
	/* Whether to report the end of each call to live_line, as a line without its
	 * newline. */
	bool live;
	void (*live_line)(void *user, const char *line);
	/* Appends a value of @event in a human-readable unit. */
	void (*live_value)(struct pm_str *line, const struct pm_stat_event *event,
			   uint64_t value);
	void *live_user;
	/* Called at most once, while the program runs, for a warning that should not wait
	 * for the end: a range makes the program very slow. NULL: no callback. */
	void (*warn)(void *user, const char *text);
	void *warn_user;
	uint32_t calls_from; /* number of callers; 0: none */
	bool marked; /* only the parts that the command marks; callgrind only */
	/* With `marked`: from the start of this function to the start of that one, by
	 * their names in the symbol table. NULL: the parts that the command marks. */
	const char *marked_from, *marked_to;
	/* A file for a recording of the cost of each stack; only for callgrind, and
	 * without regions. NULL: none. */
	const char *stacks;
	bool keep_overhead; /* measure and report it, but do not subtract it */
	uint64_t timeout_ns; /* 0: none */
};

/*
 * One run of one engine: starts the command (or attaches to the targets), sees all
 * visits, and appends one run to @stat, with its scopes, the events' states (the first
 * specs_len of stat->events, which the caller has appended), overhead, settings and
 * warnings. Whole-program values of the run are filled as well if the engine has them.
 * Signals to this program are forwarded to @child. Returns 0, also if the command failed
 * (the run records how). Negative: nothing was run, or the counting failed in the middle,
 * and @err has the reason; the command then runs on and is waited for.
 */
int pm_engine_uprobe_run(struct pm_stat *stat, const struct pm_engine_options *options,
			 struct pm_child *child, struct pm_error *err);
int pm_engine_ptrace_run(struct pm_stat *stat, const struct pm_engine_options *options,
			 struct pm_child *child, struct pm_error *err);
/*
 * callgrind has no individual calls, and thus no spread of their values. It knows neither
 * thread ids nor any caller except the direct one. Signal handlers are not part of the
 * code that they interrupt. Code that a function jumps to at its end is not part of the
 * function unless it recurses; values by caller are then NOT_COUNTED. The last
 * instructions before a fatal signal are not reported.
 */
int pm_engine_callgrind_run(struct pm_stat *stat, const struct pm_engine_options *options,
			    struct pm_child *child, struct pm_error *err);
/* Whether this user may use the engine on this system; @err has what is missing. */
int pm_engine_uprobe_check(struct pm_error *err);
int pm_engine_ptrace_check(struct pm_error *err);
int pm_engine_callgrind_check(struct pm_error *err);

/* ---- simulated events ---------------------------------------------------------------- */

/* The events of callgrind: "sim.Ir", "sim.D1mr", …; NULL past the last one. */
const char *pm_sim_event_name(size_t index);
/* The events that "sim.costs" stands for; NULL past the last one. */
const char *pm_sim_cost_name(size_t index);
/* A term of an event that is a sum of callgrind's columns. */
struct pm_sim_term {
	const char *column; /* "Ir", "D1mr"; NULL: the end */
	int weight;
};
/* The terms of "sim.cycles" and the like; NULL: the event is a column itself. */
const struct pm_sim_term *pm_sim_event_terms(const char *name);
/* Whether a word of -e is a simulated event, known or not: it begins with "sim." */
bool pm_sim_event_is(const char *word);
/*
 * Appends the event to stat->events, for pm_engine_callgrind_run(), which counts the
 * events with source "simulated" and sets the state of all others to NOT_SUPPORTED. To be
 * called for each sim.* of -e, before pm_count_describe_events(); without -e, for sim.Ir.
 * Returns 0, -ENOENT with a similar name, or -ENOMEM.
 */
int pm_sim_event_describe(struct pm_stat *stat, const char *name, bool default_set,
			  struct pm_error *err);

/* ---- whole programs ------------------------------------------------------------------ */

/* The events of a run without -e: software events always; cycles, instructions, branches
 * and misses if there is a PMU; top-down slots if the PMU has them. */
int pm_count_default_events(struct pm_event_specs *specs, struct pm_error *err);
/* Appends to stat->events the events of @specs, and then the tool's own values:
 * wall-time, user-time, system-time, max-rss. */
int pm_count_describe_events(struct pm_stat *stat, const struct pm_event_specs *specs,
			     bool default_set);
/* Number of the tool's own events. */
enum {
	PM_COUNT_TOOL_EVENTS = 4
};

struct pm_count_options {
	const struct pm_event_specs *specs;
	struct pm_targets *targets; /* NULL: the command */
	char **command; /* with targets it only sets the duration; NULL: nothing does */
	const char *user;
	bool data_on_stdout; /* as in struct pm_engine_options */
	bool no_inherit;
	enum pm_counters_by by;
	uint64_t interval_ns, delay_ms, timeout_ns; /* 0: none */
	/* Only the parts that the command marks by perf_start() and perf_stop() of
	 * libpmself. -ENODATA: it marked none. */
	bool marked;
	uint32_t variant;
	/* Called after each interval, to print while the program runs. NULL: no
	 * callback. */
	void (*interval)(void *user, const struct pm_stat *stat,
			 const struct pm_stat_run *run);
	void *user_data;
};
/* One run of a whole program, appended to stat->runs. Returns like the functions of the
 * engines. */
int pm_count_run(struct pm_stat *stat, const struct pm_count_options *options,
		 struct pm_child *child, struct pm_error *err);
/* Fills stat->metrics from the runs, for each variant, and for scopes. */
int pm_count_metrics(struct pm_stat *stat);
