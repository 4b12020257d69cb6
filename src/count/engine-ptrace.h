/* SPDX-License-Identifier: MIT */
/*
 * The engine for unprivileged users: breakpoints in the code of traced processes.
 * Definitions that its files share.
 *
 *   sites (of files, once) ─► image (of a process: what is planted where) ─► hits ─► pm_calls
 */
#pragma once

#include "pm/count.h"

#include <sched.h>
#include <signal.h>
#include <sys/user.h>

enum {
	PM_PTR_INSN_MAX = 15,
	PM_PTR_SLOT_BYTES = 40,
#if defined(__aarch64__)
	PM_PTR_TRAP_BYTES = 4,
#else
	PM_PTR_TRAP_BYTES = 1,
#endif
};

/* ---- engine-ptrace-slot.c, engine-ptrace-slot-arm64.c ----------------------------------- */

/* The contents of a slot. */
struct pm_ptr_code {
	uint8_t bytes[PM_PTR_SLOT_BYTES];
	uint8_t len;
	/* from here on the instruction is done; 0: never */
	uint8_t tail_at;
	uint8_t pushed_at; /* from here on 8 bytes of the stack are used; 0: none */
};

/* Makes code for @slot that has the effect of the instruction at @address, and continues
 * after that instruction. Returns -EOPNOTSUPP if that is impossible, or only possible in
 * a nearer slot. If the code's length is 0, no slot is needed: pm_ptr_arm64_run() carries
 * out the instruction. */
int pm_ptr_slot_make_x86(const uint8_t *bytes, uint8_t len, uint64_t address,
			 uint64_t slot, struct pm_ptr_code *out);
/* @second_stack: there may be a second stack, of return addresses (FEAT_GCS). */
int pm_ptr_slot_make_arm64(const uint8_t *bytes, uint8_t len, uint64_t address,
			   uint64_t slot, bool second_stack, struct pm_ptr_code *out);

/* Laid out like struct user_regs_struct of aarch64. */
struct pm_ptr_arm64 {
	uint64_t x[31], sp, pc, pstate;
};
/* Carries out the instruction @word at regs->pc if it depends only on registers and on
 * its own address. Returns false, with nothing changed, if the instruction needs a slot
 * or is not a valid one. */
bool pm_ptr_arm64_run(uint32_t word, struct pm_ptr_arm64 *regs);

/* ---- engine-ptrace-regs.c: other machine-dependent code ---------------------------------- */

/* Registers of a stopped thread. */
struct pm_ptr_regs {
	uint64_t ip, sp, flags; /* EFLAGS, PSTATE */
#if defined(__aarch64__)
	struct pm_ptr_arm64 user;
#else
	struct user_regs_struct user;
#endif
};

/* The breakpoint instruction, and the maximum distance between a place and its slot. */
extern const uint8_t pm_ptr_trap[PM_PTR_TRAP_BYTES];
extern const uint64_t pm_ptr_near_bytes;
/* The function above for this machine. */
int pm_ptr_slot_make(const uint8_t *bytes, uint8_t len, uint64_t address, uint64_t slot,
		     struct pm_ptr_code *out);

/* Returns -ESRCH if the thread is being killed, -EOPNOTSUPP if it runs in another mode
 * than we do. */
int pm_ptr_regs_get(pid_t tid, struct pm_ptr_regs *out);
/* Sets all of @regs->user. The system call that the thread may be in is not restarted. */
int pm_ptr_regs_set(pid_t tid, const struct pm_ptr_regs *regs);
/* Makes the thread continue at @ip, with @sp. Its other registers are unchanged: they are
 * those of @regs. */
void pm_ptr_regs_move(pid_t tid, const struct pm_ptr_regs *regs, uint64_t ip,
		      uint64_t sp);
/* Compares the general registers. Flags are left out, although a return from a signal
 * handler restores them, too. */
bool pm_ptr_regs_same(const struct pm_ptr_regs *a, const struct pm_ptr_regs *b);
/* Returns the address of the breakpoint that may have caused the SIGTRAP that the thread
 * received. */
uint64_t pm_ptr_regs_trapped_at(const struct pm_ptr_regs *regs);
/* Returns the value that pm_place_leaves() needs. */
uint64_t pm_ptr_regs_asked(const struct pm_ptr_regs *regs, const struct pm_place *place);
/* Whether the signal was caused by a breakpoint, wherever that is. */
bool pm_ptr_is_trap(const siginfo_t *info);
/* Carries out the instruction @bytes for the thread, which is past it afterwards. */
void pm_ptr_regs_run(pid_t tid, const struct pm_ptr_regs *regs, const uint8_t *bytes);
/* Gets the address that a thread at an entry will return to. @sp_offset: as in
 * pm_place. */
bool pm_ptr_regs_return(pid_t tid, const struct pm_ptr_regs *regs, uint64_t sp_offset,
			uint64_t *out);

/* Prepares @regs for a system call by the instruction at @instruction, and gets its
 * result. */
extern const uint8_t pm_ptr_syscall[];
extern const size_t pm_ptr_syscall_len;
void pm_ptr_regs_call(struct pm_ptr_regs *regs, uint64_t instruction, long number,
		      const uint64_t arguments[6]);
int64_t pm_ptr_regs_called(const struct pm_ptr_regs *regs);

/* ---- engine-ptrace-sites.c ------------------------------------------------------------- */

/* An instruction of a file where visits are observed. */
struct pm_ptr_site {
	uint64_t offset; /* in the file */
	uint8_t bytes[PM_PTR_INSN_MAX];
	uint8_t len;
	bool linker; /* the dynamic linker executes it when mappings have changed */
	uint32_t first, places; /* in pm_ptr_sites.order; sorted by pm_place_turn() */
};

struct pm_ptr_file {
	dev_t dev;
	ino_t ino;
	PM_VEC(struct pm_ptr_site) sites; /* only added to */
	/* End offsets of the executable segments in the file: the bytes from there to the
	 * end of the page are mapped, too, and unused. */
	PM_VEC(uint64_t) ends;
};

struct pm_ptr_sites {
	PM_VEC(struct pm_ptr_file) files;
	PM_VEC(uint32_t) order; /* indices of places */
	PM_VEC(int64_t) by_module; /* file of a module; -1: none, -2: not looked up yet */
	size_t wanted; /* files of regions; the files after these are dynamic linkers */
};

int pm_ptr_sites_init(struct pm_ptr_sites *sites, const struct pm_regions *regions,
		      struct pm_error *err);
void pm_ptr_sites_release(struct pm_ptr_sites *sites);
/* Returns the index of the module's file, -1 if it has no sites, or -ENOMEM. */
int64_t pm_ptr_sites_find(struct pm_ptr_sites *sites, const struct pm_procs *procs,
			  uint32_t module);
/* Adds the module, which is a dynamic linker. Returns 0, or a negative error if it cannot
 * be used. */
int pm_ptr_sites_add_linker(struct pm_ptr_sites *sites, const struct pm_procs *procs,
			    uint32_t module);

/* ---- engine-ptrace-image.c ------------------------------------------------------------- */

struct pm_ptr_break {
	/* avma; `after`: the next instruction; `slot` 0: none */
	uint64_t address, after, slot;
	uint32_t file, site;
	uint8_t original[PM_PTR_TRAP_BYTES];
	uint8_t code_len, tail_at, pushed_at; /* as struct pm_ptr_code */
};

/* Memory for slots in a process. */
struct pm_ptr_room {
	uint64_t start, end, used; /* avma; everything below `used` is taken */
	bool ours; /* a mapping that was made for slots */
};

/* The breakpoints of one address space. */
struct pm_ptr_image {
	unsigned int refs; /* processes that share it: more than one after a vfork */
	PM_VEC(struct pm_ptr_break) breaks; /* by address */
	PM_VEC(struct pm_ptr_room) rooms;
	uint64_t unplanted; /* places that got no breakpoint */
	bool restored; /* the program's bytes are back */
	bool may_map; /* a system call of ours is harmless in it */
};

struct pm_ptr_image *pm_ptr_image_new(void); /* NULL without memory */
struct pm_ptr_image *pm_ptr_image_copy(const struct pm_ptr_image *image);
void pm_ptr_image_unref(struct pm_ptr_image *image);
/*
 * Reads the mappings of @pid and plants what is missing. @tid is one of its threads,
 * which is stopped. Returns 0, -ENOMEM, or -ESRCH if the process is being killed.
 */
int pm_ptr_image_update(struct pm_ptr_image *image, struct pm_ptr_sites *sites,
			struct pm_procs *procs, pid_t pid, pid_t tid);
/* Restores the program's bytes. Slots stay, for threads that are in them. */
void pm_ptr_image_restore(struct pm_ptr_image *image, pid_t tid);
/* The same for the stopped process @pid if it is not known which breakpoints it has.
 * Returns 0 or -ENOMEM. */
int pm_ptr_image_heal(struct pm_ptr_sites *sites, struct pm_procs *procs, pid_t pid);
const struct pm_ptr_break *pm_ptr_image_find(const struct pm_ptr_image *image,
					     uint64_t address);
/* Whether all regions are in the program's own file, which is mapped in @space. */
bool pm_ptr_image_is_program(struct pm_ptr_sites *sites, const struct pm_procs *procs,
			     pid_t pid, const struct pm_space *space);
/* Returns the break whose slot contains @ip, where a thread is, or NULL. */
const struct pm_ptr_break *pm_ptr_image_in_slot(const struct pm_ptr_image *image,
						uint64_t ip);

/* ---- engine-ptrace-call.c -------------------------------------------------------------- */

/* Makes the stopped thread map @len bytes, readable and executable, at @address, which
 * must be unused. Returns 0 or a negative error. The thread's registers are restored
 * afterwards. */
int pm_ptr_map(pid_t tid, uint64_t address, uint64_t len);

/* ---- engine-ptrace-counts.c ------------------------------------------------------------ */

/* The counts of a run's threads. */
struct pm_ptr_counts {
	PM_VEC(struct pm_event_spec) specs; /* one group if possible */
	PM_VEC(struct pm_ptr_total {
		uint64_t value, raw, enabled_ns, running_ns;
		bool known;
	})
	totals; /* of threads that have ended, by event */
	/* The states of the first thread's counters; they are not updated later. */
	PM_VEC(struct pm_counters_event) events;
	/* the task-clock event that /proc replaces, as perf is denied; -1: none */
	int32_t clock;
	uint64_t threads_missed; /* threads that could not be counted */
	struct pm_error why; /* the reason for the last of these threads */
};

/* The counters of a thread. None if zero-initialised. */
struct pm_ptr_counters {
	struct pm_counters *counters;
	struct pm_counters_values values;
	bool elsewhere; /* its counts are in the totals of struct pm_hits */
};

int pm_ptr_counts_init(struct pm_ptr_counts *counts, const struct pm_event_spec *specs,
		       size_t len);
void pm_ptr_counts_release(struct pm_ptr_counts *counts);
void pm_ptr_counts_open(struct pm_ptr_counts *counts, struct pm_ptr_counters *thread,
			pid_t tid);
/* Fills @out, by event, and the visit's times. @cpu_ns: the thread's CPU time, used for
 * `clock`. */
void pm_ptr_counts_read(struct pm_ptr_counts *counts, struct pm_ptr_counters *thread,
			uint64_t cpu_ns, uint64_t *out, struct pm_visit *visit);
/* Adds the thread's counts to the totals. */
void pm_ptr_counts_close(struct pm_ptr_counts *counts, struct pm_ptr_counters *thread);
/* Adds the counts of hits. Returns 0 or -ENOMEM. */
int pm_ptr_counts_add_hits(struct pm_ptr_counts *counts, const struct pm_hits *hits);
/* Fills in the states and values of the first events of the run. */
int pm_ptr_counts_finish(const struct pm_ptr_counts *counts, struct pm_stat *stat,
			 struct pm_stat_value *values);

/* Gets the svma of @offset in an ELF file. Returns false if the offset is not mapped. */
bool pm_ptr_file_address(int fd, uint64_t offset, uint64_t *out);

/* ---- engine-ptrace-hw.c ---------------------------------------------------------------- */

/*
 * The processor's breakpoints. On aarch64, the kernel disables them until the thread has
 * made one step over the place. A traced thread that a signal stops there continues
 * without that step (user_disable_single_step() in arch/arm64/kernel/debug-monitors.c):
 * all later hits would be missing, without any indication.
 */
enum {
#if defined(__aarch64__)
	PM_PTR_HW_MAX = 0,
#else
	PM_PTR_HW_MAX = 4,
#endif
};

/* Unused if zero-initialised. */
struct pm_ptr_hw {
	struct pm_hits *hits; /* NULL: unused */
	PM_VEC(struct pm_event_spec) specs; /* of the places' breakpoints */
	PM_VEC(uint32_t)
	order, classes; /* index in pm_regions.places; class as in pm_hits_options */
};

/*
 * Starts watching the places of @pid, which is stopped. Returns 1 if they are in its
 * program and the processor watches them; new threads must then be passed to
 * pm_hits_follow(). Returns 0 if that is not possible, or -ENOMEM.
 */
int pm_ptr_hw_start(struct pm_ptr_hw *hw, struct pm_ptr_sites *sites,
		    const struct pm_regions *regions, struct pm_procs *procs,
		    const struct pm_event_spec *counters, size_t counters_len, pid_t pid);
void pm_ptr_hw_release(struct pm_ptr_hw *hw);
/* Passes the available hits to @see, oldest first. Returns 0 or a negative error. */
int pm_ptr_hw_drain(struct pm_ptr_hw *hw, bool final,
		    int (*see)(void *user, const struct pm_hit *hit, uint32_t place),
		    void *user, struct pm_error *err);
/* Marks the scopes of a run that may lack hits. */
void pm_ptr_hw_tell_lost(const struct pm_ptr_hw *hw, const struct pm_regions *regions,
			 struct pm_stat_scope *scopes, size_t len);

/* ---- engine-ptrace-callers.c ----------------------------------------------------------- */

enum {
	PM_PTR_CALLERS_MAX = 256, /* frames in a chain */
};

/* Chains of callers. Empty if zero-initialised. */
struct pm_ptr_callers {
	PM_VEC(struct pm_ptr_frame {
		int64_t module; /* in the table of processes, or PM_MODULE_NONE */
		/* offset in the file; svma, set with the name */
		uint64_t offset, address;
		char *function, *file; /* NULL: unknown */
		uint32_t line;
	})
	frames;
	PM_VEC(struct pm_ptr_chain {
		size_t first;
		uint32_t len;
	})
	chains;
	PM_VEC(uint32_t) words; /* frames of chains, innermost first */
	struct pm_index by_frame, by_chain;
};

void pm_ptr_callers_release(struct pm_ptr_callers *callers);
/* A thread that is stopped at an entry. */
struct pm_ptr_look {
	pid_t pid, tid;
	const struct pm_ptr_regs *regs;
	uint64_t sp_offset; /* as in pm_place */
	uint32_t depth; /* number of callers */
};
/* Returns the number of the thread's chain of callers, or PM_INDEX_NONE if it is
 * unknown. */
uint32_t pm_ptr_callers_look(struct pm_ptr_callers *callers, struct pm_procs *procs,
			     const struct pm_ptr_look *look);
/* Finds names for all frames. Returns 0 or -ENOMEM. */
int pm_ptr_callers_name(struct pm_ptr_callers *callers, const struct pm_procs *procs);
int pm_ptr_callers_fill(const struct pm_ptr_callers *callers,
			const struct pm_procs *procs, uint32_t caller,
			struct pm_stat_caller *out);

/* ---- engine-ptrace-cpu.c --------------------------------------------------------------- */

/* The CPU of the tracing thread. Any CPU if zero-initialised. */
struct pm_ptr_cpu {
	cpu_set_t before;
	uint64_t stops, hold_until;
	bool moved;
	int on;
	pid_t held; /* a stopped thread that is restricted to CPU `on`; 0: none */
	cpu_set_t held_before;
};

/* To be called when @tid has stopped. From time to time, this moves the tracing thread to
 * the CPU of @tid. */
void pm_ptr_cpu_follow(struct pm_ptr_cpu *cpu, pid_t pid, pid_t tid);
/* Restricts the stopped thread @tid to the CPU of the tracing thread. To be ended by
 * pm_ptr_cpu_let() after the thread was woken, and before the tracing thread waits. */
void pm_ptr_cpu_hold(struct pm_ptr_cpu *cpu, pid_t tid);
void pm_ptr_cpu_let(struct pm_ptr_cpu *cpu);
void pm_ptr_cpu_release(struct pm_ptr_cpu *cpu);

/* ---- engine-ptrace-follow.c ------------------------------------------------------------ */

struct pm_ptr_thread {
	pid_t tid; /* 0: unused row */
	uint32_t process; /* row */
	bool counted, hit;
	bool by_hits; /* the processor watches it; nothing is planted */
	struct pm_ptr_counters counters;
	uint64_t stolen_ns; /* time during which we kept it stopped */
	/* Registers of the thread at visits that were reported before a signal arrived,
	 * when the planted instruction had not run yet. If the thread comes back with
	 * these registers, that is not another visit. The most recent ones are last. */
	PM_VEC(struct pm_ptr_regs) again;
};

struct pm_ptr_process {
	pid_t pid; /* 0: unused row */
	struct pm_ptr_image *image;
	size_t threads;
	bool counted;
	bool planted; /* its mappings have been examined at least once */
	bool by_hits; /* its new threads inherit by_hits */
	bool attached; /* it was already running when we attached to it */
};

/* The tracer: the threads that it follows, and their visits. */
struct pm_ptr {
	struct pm_trace *trace;
	struct pm_procs *procs;
	struct pm_ptr_sites sites;
	struct pm_ptr_counts counts;
	struct pm_ptr_cpu cpu;
	struct pm_ptr_callers callers;
	struct pm_ptr_hw hw;
	bool hw_wanted; /* for the first process */
	const struct pm_regions *regions;
	PM_VEC(struct pm_ptr_thread) threads;
	PM_VEC(struct pm_ptr_process) processes;
	struct pm_index threads_index;
	PM_VEC(uint32_t) free_threads, free_processes;
	PM_VEC(uint64_t) values; /* of one visit */
	bool no_inherit, by_thread;
	bool letting_go;
	pid_t command; /* the command, counted from its exec on; 0: none */
	bool command_begun;
	/* places; programs that got no privileges */
	uint64_t unplanted, privileged;
	/* Processes whose parent was killed before it could report them. */
	uint64_t strangers;
	bool blocked; /* a thread had blocked SIGTRAP, the breakpoints' signal */
	uint32_t calls_from;
	/* others may have been stopped while a stack was read */
	bool kept_waiting;
	/* Callbacks: a visit; a fork; a thread has ended or is no longer followed; a
	 * thread's name. */
	const struct pm_ptr_listener {
		int (*visit)(void *user, const struct pm_visit *visit);
		int (*fork)(void *user, pid_t parent_tid, pid_t pid, pid_t tid);
		void (*exit)(void *user, pid_t tid);
		void (*named)(void *user, pid_t pid, pid_t tid, const char *comm);
	} * listener;
	void *user;
};

int pm_ptr_init(struct pm_ptr *ptr, const struct pm_regions *regions,
		const struct pm_event_spec *specs, size_t specs_len,
		struct pm_error *err);
void pm_ptr_release(struct pm_ptr *ptr);
/* Follows a running process, with all threads; breakpoints are planted when it has
 * stopped. */
int pm_ptr_attach(struct pm_ptr *ptr, pid_t pid, struct pm_error *err);
/* Handles an event of the trace. Returns 0 or a negative error. */
int pm_ptr_event(struct pm_ptr *ptr, const struct pm_trace_event *event);
/* To be called after pm_ptr_event(): lets the thread continue, maybe restricted to this
 * CPU. */
void pm_ptr_go_on(struct pm_ptr *ptr);
/* Handles the available hits; @final: there will be no more. */
int pm_ptr_drain(struct pm_ptr *ptr, bool final, struct pm_error *err);
/* From now on, each thread that stops is released for good, without any trace of us. */
void pm_ptr_let_go(struct pm_ptr *ptr);

/* ---- engine-ptrace-cost.c -------------------------------------------------------------- */

/* By event, then elapsed time. */
struct pm_ptr_costs {
	uint64_t *call; /* the part that is included in a call's own values */
	uint64_t *visit; /* the part for each visit inside a call */
	uint64_t whole_ns; /* time that observing a call takes, all included */
	bool by_hits; /* measured with the processor's breakpoints */
	bool known;
};
int pm_ptr_costs_init(struct pm_ptr_costs *costs, size_t events);
void pm_ptr_costs_release(struct pm_ptr_costs *costs);
/* Measures the costs with a child process. @hw: with the processor's breakpoints, if
 * possible. No other process may be followed during the measurement. On a negative error,
 * with the reason in @err, @costs is unchanged. */
int pm_ptr_measure(const struct pm_event_spec *specs, size_t len, bool hw,
		   struct pm_ptr_costs *costs, struct pm_error *err);

/* ---- engine-ptrace.c ------------------------------------------------------------------- */

enum pm_ptr_kind {
	PM_PTR_CHOOSE, /* the one that was measured to be cheaper */
	PM_PTR_STOPS,
	PM_PTR_HITS, /* if possible */
};

/* Like pm_engine_ptrace_run(), which uses PM_PTR_CHOOSE. */
int pm_ptr_run(struct pm_stat *stat, const struct pm_engine_options *options,
	       enum pm_ptr_kind kind, struct pm_child *child, struct pm_error *err);
