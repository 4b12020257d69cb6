/* SPDX-License-Identifier: MIT */
/*
 * Counting of functions and of ranges of code: where they begin and end (regions), what a
 * thread does there (visits), and the engines that see it. Whole programs are counted by
 * pm/counters.h alone.
 *
 *   names ─► pm_regions (pm/probe.h finds functions, flow.c their exits) ─► engine
 *   engine ─► struct pm_visit, one for each entry and exit ─► pm_calls ─► struct pm_stat_scope
 *
 * An engine that has no single visits (callgrind) fills scopes by itself.
 */
#pragma once

#include "pm/counters.h"
#include "pm/probe.h"
#include "pm/run.h"
#include "pm/stat.h"

/* ---- regions ------------------------------------------------------------------------- */

/* What a thread that comes by a place does. */
enum pm_place_kind {
	PM_PLACE_ENTRY,
	PM_PLACE_EXIT, /* a return, or a jump out of it: the instruction is about to run */
	/* Of ranges: where control comes in from or goes out to the rest of the function. */
	PM_PLACE_IN,
	PM_PLACE_OUT,
};

/* An instruction where an engine looks. A region can have two places at one address: what
 * comes in by the only instruction also leaves by it, in this order. */
struct pm_place {
	uint32_t region;
	enum pm_place_kind kind;
	uint64_t address, offset; /* svma; in the file */
	/* sp at the function's first instruction minus sp here: an entry may be some pushes
	 * behind it. At a return it is 0. sp + sp_offset is the same wherever one call of a
	 * function is, and so tells apart the visits of IN and OUT, too. */
	uint32_t sp_offset;
	bool sp_known; /* false: sp_offset is not known, and 0; never so of entries */
	/* Of EXIT and OUT at a conditional jump: control leaves only when pm_place_leaves() says
	 * so. 0: always; else a condition as below. */
	uint8_t condition;
	/* Of conditions of a register: its DWARF number, and which of its bits. */
	uint8_t condition_register;
	uint64_t condition_bits;
	/* Of ENTRY: the function jumps back to it, so that a call that is open with the same
	 * sp here is this one, and no new one begins. */
	bool again;
	/* Of IN: control comes to it from outside of the range only, so that a call that is open
	 * with the same sp here was left by an exception or longjmp(3), and a new one begins. */
	bool fresh;
	/* The instruction's bytes: what a breakpoint takes the place of. */
	uint8_t bytes[16];
	uint8_t len;
	/* The kernel emulates it instead of stepping over it (arch/x86/kernel/uprobes.c,
	 * arch/arm64/kernel/probes/decode-insn.c). */
	bool cheap;
	/* The kernel refuses a probe there, or a probe would break the program. */
	bool refused;
	/* So many instructions between where control comes by and here could fault, or have
	 * another effect that ends the call before it is seen. */
	uint8_t passed;
	/* Of candidates: the number of instructions behind the first one, 0: that itself; and
	 * whether to be there costs nothing but registers' values. */
	uint8_t behind;
	bool slides;
};

/* Conditions, each from the first of its kind on, as instructions have them. */
enum {
	PM_PLACE_IF_EFLAGS = 1, /* x86-64 */
	PM_PLACE_IF_NZCV = 17, /* aarch64 */
	PM_PLACE_IF_NO_BITS = 31, /* all of condition_bits are 0 in condition_register */
	PM_PLACE_IF_BITS = 32, /* one is not */
};
/* @value, needed where condition is not 0: the processor's flags at the place (EFLAGS, PSTATE),
 * or what condition_register has there. */
bool pm_place_leaves(const struct pm_place *place, uint64_t value);
static inline bool pm_place_asks_register(const struct pm_place *place)
{
	return place->condition >= PM_PLACE_IF_NO_BITS;
}

struct pm_regions;
enum {
	PM_PLACE_TURNS = 5
};
/* In which order places of one address are told, by ascending turn: what is left there, what
 * begins there, and what also ends with its only instruction. */
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
	uint32_t places_total; /* of inlined ones: how many places of its kind exist */
	/* One function inlined at many places: they add up to the region with this index, which
	 * has no places of its own. -1: none. */
	int32_t sum;
	/* Inlined, and mixed with other code: how often control came to one of its pieces is not
	 * how often it was called. So of a sum with such a place. */
	bool parted;
	/* A function that was also inlined, at unknown places: if it has no calls of its
	 * own, the number of calls is unknown. */
	bool inlined_away;
};

struct pm_regions {
	PM_VEC(struct pm_region) list;
	PM_VEC(struct pm_place) places; /* by region, entries first */
	/* For each place, in their order: other places where the same could be seen. The
	 * places were chosen from these. */
	PM_VEC(struct pm_place) candidates;
	bool asked; /* the kernel has said which of them take a probe */
	PM_VEC(int) files;
	PM_VEC(char *) notes; /* one line each, for the user */
};
void pm_regions_release(struct pm_regions *regions);

enum {
	PM_REGIONS_MAX = 1024, /* that one command line may mean */
	PM_REGION_PLACES_MAX = 4096, /* of all of them */
};

/* What to find: --fn or --range as typed. */
struct pm_region_spec {
	bool range;
	const char *text;
};

/*
 * Finds the functions and ranges that are meant and the places to look at in each.
 *
 * A function: NAME, a glob, C++ names with or without parameters, NAME@LIBRARY, FILE:LINE of
 * its definition. A range: FILE:FROM-TO (lines, both included), 0xA-0xB (svma of the program
 * or, with @LIBRARY, of a library; the end excluded). Without @LIBRARY a function is looked for
 * in the program and then in the libraries that it needs; the first of these that has it counts.
 * A name that is there only inlined gives one INLINED region for each place and, of several
 * places, before them their sum; one that is there both ways gives all of them, and a note. A
 * glob finds inlined functions only where it finds no others.
 *
 * Code that cannot be analysed (an indirect jump whose targets are unknown may leave it) gives
 * the places that are known, and a note that says what may be missed.
 *
 * 0; -ENOENT with near names, or with what a stripped file lacks; -EINVAL; -E2BIG; -ENOEXEC;
 * -ENODATA; -EOPNOTSUPP (a machine that flow.c does not know); -ENOMEM. @regions is then
 * unchanged.
 */
int pm_regions_find(struct pm_regions *regions, const struct pm_region_spec *specs,
		    size_t len, const struct pm_probe_context *context,
		    struct pm_error *err);

/*
 * Asks the kernel which of the places take a probe, and replaces those that do not: the
 * next instruction also shows an entry. A place without a replacement is `refused`. 0;
 * negative with @err: nothing is known, and nothing was changed.
 */
int pm_regions_ask_kernel(struct pm_regions *regions, struct pm_error *err);
/* Whether probes can see no call of @region, nor of the parts of which it is the sum. */
bool pm_regions_is_deaf(const struct pm_regions *regions, uint32_t region);

/* ---- calls --------------------------------------------------------------------------- */

/* A thread came by a place. */
struct pm_visit {
	uint64_t time; /* ns, CLOCK_MONOTONIC */
	pid_t pid, tid;
	/* Index in pm_regions.places. One with a condition is left out when control stays. */
	uint32_t place;
	uint64_t sp; /* at the place; the stack grows down */
	const uint64_t *counts; /* of the thread, only growing, by event */
	uint64_t enabled_ns, running_ns; /* of the group that they are of */
	const struct pm_sample *stack; /* at entries with --calls-from; NULL: none */
	uint32_t caller; /* id of who called, given by the engine; UINT32_MAX: unknown */
};

struct pm_calls_options {
	const struct pm_regions *regions; /* borrowed */
	size_t events; /* how many counts a visit has */
	bool by_thread;
	/* Called when a call has ended, for --live. NULL: not. Borrowed values. */
	void (*ended)(void *user, uint32_t region, const struct pm_visit *entry,
		      const struct pm_visit *exit, uint32_t depth);
	/* Gives the frames of a caller of visits. NULL: callers have none. 0 or -ENOMEM. */
	int (*name_caller)(void *user, uint32_t caller, struct pm_stat_caller *ret);
	void *user;
};

/*
 * One shadow stack for each thread, by stack pointer: an exit belongs to the youngest open
 * entry of its region whose stack pointer was the same; what was opened above it, and what lies
 * below the stack pointer of a new entry on the same stack, was left by longjmp or an exception
 * and is unfinished. Inclusive values are of the outermost call. One thread of ours.
 */
struct pm_calls;
/* 0 or -ENOMEM, as all of these. */
int pm_calls_new(struct pm_calls **ret, const struct pm_calls_options *options);
void pm_calls_free(struct pm_calls *calls);
int pm_calls_visit(struct pm_calls *calls, const struct pm_visit *visit);
/* The thread or process is gone, or has become another program: what it had open is unfinished,
 * up to the last counts that were seen of the thread. */
void pm_calls_thread_exit(struct pm_calls *calls, pid_t tid);
/* @pid 0: not known yet. */
void pm_calls_thread_named(struct pm_calls *calls, pid_t pid, pid_t tid,
			   const char *comm);
/* A forked process goes on with copies of its parent thread's open calls, which it may return
 * from, though its counters began anew, and so does elapsed time, at @time. */
int pm_calls_fork(struct pm_calls *calls, pid_t parent_tid, pid_t pid, pid_t tid,
		  uint64_t time);
/*
 * What each place that a thread comes by costs, like @overhead of pm_calls_finish(): for calls
 * inside of which other visits were seen. Without this, half of what a call costs.
 */
int pm_calls_set_visit_cost(struct pm_calls *calls, const uint64_t *costs);
/* Where the costs depend on how a function is entered: @call of those that are entered at a @cheap
 * place, or at another one, and @visit of each such place. In the place of @overhead. */
int pm_calls_set_costs(struct pm_calls *calls, bool cheap, const uint64_t *call,
		       const uint64_t *visit);
/* Everything is over: fills one scope for each region that is not a part of a sum, and one for
 * each sum, appended to stat->scopes with @run. -ENOMEM. Values have the scaling of multiplexed
 * groups applied; @overhead (per call, by event of visits, and behind them of elapsed time; NULL:
 * none) is taken off, never below 0. Elapsed time is the event "wall-time" of source "tool". */
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
	const struct pm_event_spec *specs; /* what to count; borrowed */
	size_t specs_len;
	const struct pm_regions *regions; /* borrowed */
	struct pm_targets *targets; /* who runs already; NULL: the command */
	char **command; /* NULL-terminated */
	const char *user; /* --user */
	bool data_on_stdout; /* the command's output goes to stderr */
	bool no_inherit;
	bool by_thread;
	bool live; /* tell each call's end, to this one: a line without its newline */
	void (*live_line)(void *user, const char *line);
	/* Appends a value of @event in the unit that people are to read. */
	void (*live_value)(struct pm_str *line, const struct pm_stat_event *event,
			   uint64_t value);
	void *live_user;
	/* Called while it runs, once at most, for what nobody should wait for to be told: that a
	 * range makes it crawl. NULL: not. */
	void (*warn)(void *user, const char *text);
	void *warn_user;
	uint32_t calls_from; /* how many callers; 0: none */
	bool marked; /* only what the command marks; callgrind alone */
	/* With `marked`: from the begin of this function to the begin of that one, as the symbol
	 * table names them. NULL: what the command marks itself. */
	const char *marked_from, *marked_to;
	/* A file for what each stack has cost, a recording; callgrind alone, and without regions.
	 * NULL: none. */
	const char *stacks;
	bool keep_overhead; /* measure it, tell it, and do not subtract it */
	uint64_t timeout_ns; /* 0: none */
};

/*
 * One run of one engine: starts the command (or looks at the targets), sees all visits, and
 * appends to @stat one run, its scopes, the events' states (they are the first specs_len of
 * stat->events, made by the caller), overhead, settings and warnings. Whole-program values of
 * the run are filled, too, where the engine has them. Signals to this program reach @child.
 * 0, also when the command failed (the run says how); negative: nothing was run, or the counting
 * failed in the middle, and @err says why. The command then runs on and is waited for.
 */
int pm_engine_uprobe_run(struct pm_stat *stat, const struct pm_engine_options *options,
			 struct pm_child *child, struct pm_error *err);
int pm_engine_ptrace_run(struct pm_stat *stat, const struct pm_engine_options *options,
			 struct pm_child *child, struct pm_error *err);
/*
 * callgrind has no single calls, and thus no spread of them; it knows neither the numbers of
 * threads nor who else but the direct caller called. Signal handlers are no part of what they
 * interrupt. What a function jumps to at its end is no part of it, unless it recurses; values by
 * caller are then NOT_COUNTED. The last instructions before a deadly signal are not told.
 */
int pm_engine_callgrind_run(struct pm_stat *stat, const struct pm_engine_options *options,
			    struct pm_child *child, struct pm_error *err);
/* Whether this user may use it here; @err says what is missing. */
int pm_engine_uprobe_check(struct pm_error *err);
int pm_engine_ptrace_check(struct pm_error *err);
int pm_engine_callgrind_check(struct pm_error *err);

/* ---- simulated events ---------------------------------------------------------------- */

/* What callgrind counts: "sim.Ir", "sim.D1mr", …; NULL from the end on. */
const char *pm_sim_event_name(size_t index);
/* Those of which "sim.costs" is the list; NULL from the end on. */
const char *pm_sim_cost_name(size_t index);
/* A sum of what callgrind counts. */
struct pm_sim_term {
	const char *column; /* "Ir", "D1mr"; NULL: the end */
	int weight;
};
/* For "sim.cycles" and the like; NULL: the event is counted as it is. */
const struct pm_sim_term *pm_sim_event_terms(const char *name);
/* Whether a word of -e means one of these, known or not: those that begin with "sim." */
bool pm_sim_event_is(const char *word);
/*
 * Appends the event to stat->events, from where pm_engine_callgrind_run() takes it: it counts
 * the events whose source is "simulated" and gives all others the state NOT_SUPPORTED. To be
 * called for each sim.* of -e, before pm_count_describe_events(); without -e for sim.Ir.
 * 0, -ENOENT with a near name, -ENOMEM.
 */
int pm_sim_event_describe(struct pm_stat *stat, const char *name, bool default_set,
			  struct pm_error *err);

/* ---- whole programs ------------------------------------------------------------------ */

/* The events of a run without -e: software events always; cycles, instructions, branches and
 * misses where there is a PMU; top-down slots where it has them. */
int pm_count_default_events(struct pm_event_specs *specs, struct pm_error *err);
/* Appends to stat->events what specs and, behind them, the tool's own numbers are: wall-time,
 * user-time, system-time, max-rss. */
int pm_count_describe_events(struct pm_stat *stat, const struct pm_event_specs *specs,
			     bool default_set);
/* How many tool events that are. */
enum {
	PM_COUNT_TOOL_EVENTS = 4
};

struct pm_count_options {
	const struct pm_event_specs *specs;
	struct pm_targets *targets; /* NULL: the command */
	char **command; /* with targets it only says how long; NULL: nothing does */
	const char *user;
	bool data_on_stdout; /* as in struct pm_engine_options */
	bool no_inherit;
	enum pm_counters_by by;
	uint64_t interval_ns, delay_ms, timeout_ns; /* 0: none */
	/* Only the parts that the command marks by perf_start() and perf_stop() of libpmself.
	 * -ENODATA: it has marked none. */
	bool marked;
	uint32_t variant;
	/* Called after each interval, for printing while it runs. NULL: not. */
	void (*interval)(void *user, const struct pm_stat *stat,
			 const struct pm_stat_run *run);
	void *user_data;
};
/* One run of a whole program, appended to stat->runs. As the engines' functions. */
int pm_count_run(struct pm_stat *stat, const struct pm_count_options *options,
		 struct pm_child *child, struct pm_error *err);
/* Fills stat->metrics from the runs, for each variant, and for scopes. */
int pm_count_metrics(struct pm_stat *stat);
