/* SPDX-License-Identifier: MIT */
/*
 * The engine of ordinary users: breakpoints in the code of processes that are traced. What its
 * files share.
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

/* What stands in a slot. */
struct pm_ptr_code {
	uint8_t bytes[PM_PTR_SLOT_BYTES];
	uint8_t len;
	uint8_t tail_at; /* from here on the instruction is done; 0: it never comes here */
	uint8_t pushed_at; /* from here on 8 bytes of the stack are taken; 0: none */
};

/* Code for @slot that does what the instruction at @address does, and goes on behind it.
 * -EOPNOTSUPP: that cannot be had, or only nearer. Of no length: no slot is needed, as the
 * instruction is one that pm_ptr_arm64_run() carries out. */
int pm_ptr_slot_make_x86(const uint8_t *bytes, uint8_t len, uint64_t address,
			 uint64_t slot, struct pm_ptr_code *ret);
/* @second_stack: there may be one of return addresses (FEAT_GCS). */
int pm_ptr_slot_make_arm64(const uint8_t *bytes, uint8_t len, uint64_t address,
			   uint64_t slot, bool second_stack, struct pm_ptr_code *ret);

/* As struct user_regs_struct of aarch64. */
struct pm_ptr_arm64 {
	uint64_t x[31], sp, pc, pstate;
};
/* Carries out the instruction @word at regs->pc, where that takes nothing but registers and
 * where it stands. False, with nothing changed: it is one that needs a slot, or is none. */
bool pm_ptr_arm64_run(uint32_t word, struct pm_ptr_arm64 *regs);

/* ---- engine-ptrace-regs.c: what else depends on the machine ------------------------------ */

/* Registers of a thread that stands still. */
struct pm_ptr_regs {
	uint64_t ip, sp, flags; /* EFLAGS, PSTATE */
#if defined(__aarch64__)
	struct pm_ptr_arm64 user;
#else
	struct user_regs_struct user;
#endif
};

/* What stands at a place, and how far from it its slot may be. */
extern const uint8_t pm_ptr_trap[PM_PTR_TRAP_BYTES];
extern const uint64_t pm_ptr_near_bytes;
/* As those above. */
int pm_ptr_slot_make(const uint8_t *bytes, uint8_t len, uint64_t address, uint64_t slot,
		     struct pm_ptr_code *ret);

/* -ESRCH: it is being killed; -EOPNOTSUPP: it runs in another mode than we. */
int pm_ptr_regs_get(pid_t tid, struct pm_ptr_regs *ret);
/* All of @regs->user; the system call that the thread may be in is not started again. */
int pm_ptr_regs_set(pid_t tid, const struct pm_ptr_regs *regs);
/* The thread goes on at @ip, with @sp; the other registers are as @regs, which it has. */
void pm_ptr_regs_move(pid_t tid, const struct pm_ptr_regs *regs, uint64_t ip,
		      uint64_t sp);
/* But for flags, which a signal's handler gives back, too. */
bool pm_ptr_regs_same(const struct pm_ptr_regs *a, const struct pm_ptr_regs *b);
/* Of a thread that got a SIGTRAP: the address of the breakpoint that it may come from. */
uint64_t pm_ptr_regs_trapped_at(const struct pm_ptr_regs *regs);
/* What pm_place_leaves() asks for. */
uint64_t pm_ptr_regs_asked(const struct pm_ptr_regs *regs, const struct pm_place *place);
/* Whether the signal is a breakpoint's, wherever that is. */
bool pm_ptr_is_trap(const siginfo_t *info);
/* The instruction with these bytes is carried out by us, and the thread is behind it. */
void pm_ptr_regs_run(pid_t tid, const struct pm_ptr_regs *regs, const uint8_t *bytes);
/* Of a thread at an entry: the address that it is to return to; @sp_offset: as pm_place's. */
bool pm_ptr_regs_return(pid_t tid, const struct pm_ptr_regs *regs, uint64_t sp_offset,
			uint64_t *ret);

/* A system call that @regs begin at the instruction for it, and what it gave. */
extern const uint8_t pm_ptr_syscall[];
extern const size_t pm_ptr_syscall_len;
void pm_ptr_regs_call(struct pm_ptr_regs *regs, uint64_t instruction, long number,
		      const uint64_t arguments[6]);
int64_t pm_ptr_regs_called(const struct pm_ptr_regs *regs);

/* ---- engine-ptrace-sites.c ------------------------------------------------------------- */

/* An instruction of a file where visits are seen. */
struct pm_ptr_site {
	uint64_t offset; /* in the file */
	uint8_t bytes[PM_PTR_INSN_MAX];
	uint8_t len;
	bool linker; /* the dynamic linker comes here when mappings have changed */
	uint32_t first, places; /* in pm_ptr_sites.order; by pm_place_turn() */
};

struct pm_ptr_file {
	dev_t dev;
	ino_t ino;
	PM_VEC(struct pm_ptr_site) sites; /* only added to */
	/* Where the executable segments end in the file: what is mapped behind that, up to the
	 * end of the page, belongs to nobody. */
	PM_VEC(uint64_t) ends;
};

struct pm_ptr_sites {
	PM_VEC(struct pm_ptr_file) files;
	PM_VEC(uint32_t) order; /* indices of places */
	PM_VEC(int64_t) by_module; /* file of a module, -1: none, -2: not looked yet */
	size_t wanted; /* files of regions; those behind are dynamic linkers */
};

int pm_ptr_sites_init(struct pm_ptr_sites *sites, const struct pm_regions *regions,
		      struct pm_error *err);
void pm_ptr_sites_release(struct pm_ptr_sites *sites);
/* The index of the module's file, -1: none that matters here; -ENOMEM. */
int64_t pm_ptr_sites_find(struct pm_ptr_sites *sites, const struct pm_procs *procs,
			  uint32_t module);
/* Adds the dynamic linker that the module is. 0; negative where it cannot be used. */
int pm_ptr_sites_add_linker(struct pm_ptr_sites *sites, const struct pm_procs *procs,
			    uint32_t module);

/* ---- engine-ptrace-image.c ------------------------------------------------------------- */

struct pm_ptr_break {
	/* avma; `after`: behind the instruction; `slot` 0: none */
	uint64_t address, after, slot;
	uint32_t file, site;
	uint8_t original[PM_PTR_TRAP_BYTES];
	uint8_t code_len, tail_at, pushed_at; /* as struct pm_ptr_code */
};

/* Where slots are in a process. */
struct pm_ptr_room {
	uint64_t start, end, used; /* avma; all below `used` is taken */
	bool ours; /* a mapping that was made for it */
};

/* Of one address space. */
struct pm_ptr_image {
	unsigned int refs; /* processes: more than one after a vfork */
	PM_VEC(struct pm_ptr_break) breaks; /* by address */
	PM_VEC(struct pm_ptr_room) rooms;
	uint64_t unplanted; /* places that no slot could be made for */
	bool restored; /* the program's bytes are back */
	bool may_map; /* a system call of ours does no harm in it */
};

struct pm_ptr_image *pm_ptr_image_new(void); /* NULL without memory */
struct pm_ptr_image *pm_ptr_image_copy(const struct pm_ptr_image *image);
void pm_ptr_image_unref(struct pm_ptr_image *image);
/*
 * Looks what @pid has mapped and plants what is not there yet. @tid, of it, stands still. 0,
 * -ENOMEM, or -ESRCH: it is being killed.
 */
int pm_ptr_image_update(struct pm_ptr_image *image, struct pm_ptr_sites *sites,
			struct pm_procs *procs, pid_t pid, pid_t tid);
/* Puts the bytes of the program back; slots stay, for who stands in them. */
void pm_ptr_image_restore(struct pm_ptr_image *image, pid_t tid);
/* The same of @pid, which stands still, where nobody knows what is planted. 0 or -ENOMEM. */
int pm_ptr_image_heal(struct pm_ptr_sites *sites, struct pm_procs *procs, pid_t pid);
const struct pm_ptr_break *pm_ptr_image_find(const struct pm_ptr_image *image,
					     uint64_t address);
/* Whether all that is wanted is in the program's own file, which @space shows. */
bool pm_ptr_image_is_program(struct pm_ptr_sites *sites, const struct pm_procs *procs,
			     pid_t pid, const struct pm_space *space);
/* Of a thread that stands in a slot at @ip: the break whose slot it is, else NULL. */
const struct pm_ptr_break *pm_ptr_image_in_slot(const struct pm_ptr_image *image,
						uint64_t ip);

/* ---- engine-ptrace-call.c -------------------------------------------------------------- */

/* Has the stopped thread map @len bytes, readable and executable, at @address, where nothing
 * is. 0 or negative; the thread is as before. */
int pm_ptr_map(pid_t tid, uint64_t address, uint64_t len);

/* ---- engine-ptrace-counts.c ------------------------------------------------------------ */

/* What the threads of a run have counted. */
struct pm_ptr_counts {
	PM_VEC(struct pm_event_spec) specs; /* one group, where they may be one */
	PM_VEC(struct pm_ptr_total {
		uint64_t value, raw, enabled_ns, running_ns;
		bool known;
	})
	totals; /* of threads that ended, by event */
	/* As the first thread's counters say; what is only found out later does not change. */
	PM_VEC(struct pm_counters_event) events;
	int32_t clock; /* a task-clock that /proc tells of, as perf is denied; -1: none */
	uint64_t threads_missed; /* that could not be counted */
	struct pm_error why; /* of the last of these */
};

/* The counters of a thread. Zero-initialised is none. */
struct pm_ptr_counters {
	struct pm_counters *counters;
	struct pm_counters_values values;
	bool elsewhere; /* in the totals of struct pm_hits */
};

int pm_ptr_counts_init(struct pm_ptr_counts *counts, const struct pm_event_spec *specs,
		       size_t len);
void pm_ptr_counts_release(struct pm_ptr_counts *counts);
void pm_ptr_counts_open(struct pm_ptr_counts *counts, struct pm_ptr_counters *thread,
			pid_t tid);
/* Fills @ret, by event, and the visit's times. @cpu_ns: of the thread, where `clock` is. */
void pm_ptr_counts_read(struct pm_ptr_counts *counts, struct pm_ptr_counters *thread,
			uint64_t cpu_ns, uint64_t *ret, struct pm_visit *visit);
/* Adds what it had counted to the totals. */
void pm_ptr_counts_close(struct pm_ptr_counts *counts, struct pm_ptr_counters *thread);
/* Adds what hits have counted. 0 or -ENOMEM. */
int pm_ptr_counts_add_hits(struct pm_ptr_counts *counts, const struct pm_hits *hits);
/* States and values of the first events of the run. */
int pm_ptr_counts_finish(const struct pm_ptr_counts *counts, struct pm_stat *stat,
			 struct pm_stat_value *values);

/* The svma of what is at @offset of an ELF file; false when it is mapped nowhere. */
bool pm_ptr_file_address(int fd, uint64_t offset, uint64_t *ret);

/* ---- engine-ptrace-hw.c ---------------------------------------------------------------- */

/*
 * Breakpoints of the processor. Those of aarch64 are switched off by the kernel until one step
 * over the place is done, and who is traced goes on without that step when a signal stops him
 * there (user_disable_single_step() in arch/arm64/kernel/debug-monitors.c): whatever comes
 * later would be missing, and nobody would know.
 */
enum {
#if defined(__aarch64__)
	PM_PTR_HW_MAX = 0,
#else
	PM_PTR_HW_MAX = 4,
#endif
};

/* Zero-initialised is unused. */
struct pm_ptr_hw {
	struct pm_hits *hits; /* NULL: not in use */
	PM_VEC(struct pm_event_spec) specs; /* of places */
	PM_VEC(uint32_t)
	order, classes; /* place in pm_regions; and as of pm_hits_options */
};

/*
 * 1: the places are in the program of @pid, which stands still, and are watched by the
 * processor; new threads are to be given to pm_hits_follow(). 0: that cannot be; -ENOMEM.
 */
int pm_ptr_hw_start(struct pm_ptr_hw *hw, struct pm_ptr_sites *sites,
		    const struct pm_regions *regions, struct pm_procs *procs,
		    const struct pm_event_spec *counters, size_t counters_len, pid_t pid);
void pm_ptr_hw_release(struct pm_ptr_hw *hw);
/* Gives the hits that there are, oldest first. 0 or negative. */
int pm_ptr_hw_drain(struct pm_ptr_hw *hw, bool final,
		    int (*see)(void *user, const struct pm_hit *hit, uint32_t place),
		    void *user, struct pm_error *err);
/* The scopes of a run, of which hits may be missing. */
void pm_ptr_hw_tell_lost(const struct pm_ptr_hw *hw, const struct pm_regions *regions,
			 struct pm_stat_scope *scopes, size_t len);

/* ---- engine-ptrace-callers.c ----------------------------------------------------------- */

enum {
	PM_PTR_CALLERS_MAX = 256, /* frames of a chain */
};

/* Chains of callers. Zero-initialised is empty. */
struct pm_ptr_callers {
	PM_VEC(struct pm_ptr_frame {
		int64_t module; /* in the table of processes, or PM_MODULE_NONE */
		uint64_t offset, address; /* in the file; svma, once it is named */
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
/* A thread that stands at an entry. */
struct pm_ptr_look {
	pid_t pid, tid;
	const struct pm_ptr_regs *regs;
	uint64_t sp_offset; /* as pm_place's */
	uint32_t depth; /* how many callers */
};
/* The number of the chain that it was called by; PM_INDEX_NONE: unknown. */
uint32_t pm_ptr_callers_look(struct pm_ptr_callers *callers, struct pm_procs *procs,
			     const struct pm_ptr_look *look);
/* Finds names for all frames. 0 or -ENOMEM. */
int pm_ptr_callers_name(struct pm_ptr_callers *callers, const struct pm_procs *procs);
int pm_ptr_callers_fill(const struct pm_ptr_callers *callers,
			const struct pm_procs *procs, uint32_t caller,
			struct pm_stat_caller *ret);

/* ---- engine-ptrace-cpu.c --------------------------------------------------------------- */

/* Where this thread of ours runs. Zero-initialised is anywhere. */
struct pm_ptr_cpu {
	cpu_set_t before;
	uint64_t stops, hold_until;
	bool moved;
	int on;
	pid_t held; /* a thread that may run on `on` alone, while it is stopped; 0: none */
	cpu_set_t held_before;
};

/* @tid has stopped; now and then this thread moves to its CPU. */
void pm_ptr_cpu_follow(struct pm_ptr_cpu *cpu, pid_t pid, pid_t tid);
/* Has the stopped thread @tid go on where this one is: to be ended by pm_ptr_cpu_let() once it
 * has been woken, before this thread waits. */
void pm_ptr_cpu_hold(struct pm_ptr_cpu *cpu, pid_t tid);
void pm_ptr_cpu_let(struct pm_ptr_cpu *cpu);
void pm_ptr_cpu_release(struct pm_ptr_cpu *cpu);

/* ---- engine-ptrace-follow.c ------------------------------------------------------------ */

struct pm_ptr_thread {
	pid_t tid; /* 0: the row is free */
	uint32_t process; /* row */
	bool counted, hit;
	bool by_hits; /* the processor watches it, and nothing is planted */
	struct pm_ptr_counters counters;
	uint64_t stolen_ns; /* that it stood still for us */
	/* A signal came before a planted instruction had run: when the thread comes back with
	 * these registers, that visit has been seen already. The last came last. */
	PM_VEC(struct pm_ptr_regs) again;
};

struct pm_ptr_process {
	pid_t pid; /* 0: the row is free */
	struct pm_ptr_image *image;
	size_t threads;
	bool counted;
	bool planted; /* looked at, at least once */
	bool by_hits; /* its new threads are so, too */
	bool attached; /* it ran before us */
};

/* The tracer: who is followed, and what each does at the places. */
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
	pid_t command; /* counted from its exec on; 0: none */
	bool command_begun;
	uint64_t unplanted, privileged; /* places; programs that got no privileges */
	/* Processes whose maker was killed before it could tell of them. */
	uint64_t strangers;
	bool blocked; /* a thread had blocked the signal that breakpoints are */
	uint32_t calls_from;
	bool kept_waiting; /* others may have stopped while a stack was read */
	/* What a visit is told to; and that an address space's thread has forked, ended. */
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
/* Follows a process that runs, whole; what it runs now is planted when it has stopped. */
int pm_ptr_attach(struct pm_ptr *ptr, pid_t pid, struct pm_error *err);
/* Takes what the trace says. 0 or negative. */
int pm_ptr_event(struct pm_ptr *ptr, const struct pm_trace_event *event);
/* To be called after it: a thread that is to stay on this CPU goes on. */
void pm_ptr_go_on(struct pm_ptr *ptr);
/* Takes the hits that there are; @final: there will be no more. */
int pm_ptr_drain(struct pm_ptr *ptr, bool final, struct pm_error *err);
/* From now on everybody who stops goes for good, as he was without us. */
void pm_ptr_let_go(struct pm_ptr *ptr);

uint32_t pm_ptr_find_thread(const struct pm_ptr *ptr, pid_t tid); /* PM_INDEX_NONE */
struct pm_ptr_process *pm_ptr_process_of(struct pm_ptr *ptr, uint32_t thread);

/* ---- engine-ptrace-visit.c ------------------------------------------------------------- */

enum pm_ptr_trap {
	PM_PTR_TRAP_FOREIGN, /* a SIGTRAP of the program's own */
	PM_PTR_TRAP_OURS,
	PM_PTR_TRAP_LINKER, /* and mappings may have changed */
};

/* A thread is about to get a SIGTRAP: its visits are told, and it is sent to its slot. An enum
 * pm_ptr_trap, or negative. */
int pm_ptr_take_trap(struct pm_ptr *ptr, uint32_t row, uint64_t now);
/* Who stands in a slot stands where he would without us. */
void pm_ptr_leave_slot(struct pm_ptr *ptr, uint32_t row);
/* A breakpoint that it ran into before it saw our wish to stop. */
bool pm_ptr_trap_is_pending(const struct pm_ptr *ptr, uint32_t row);

/* ---- engine-ptrace-cost.c -------------------------------------------------------------- */

/* By event and behind them elapsed time. */
struct pm_ptr_costs {
	uint64_t *call; /* what is inside of a call's values */
	uint64_t *visit; /* … for each visit inside of it */
	uint64_t whole_ns; /* that a call takes, with all that is done for it */
	bool by_hits; /* the processor watched */
	bool known;
};
int pm_ptr_costs_init(struct pm_ptr_costs *costs, size_t events);
void pm_ptr_costs_release(struct pm_ptr_costs *costs);
/* @hw: where the processor watches, if that can be had. Nobody else is followed meanwhile.
 * Negative, with the reason; @costs is unchanged then. */
int pm_ptr_measure(const struct pm_event_spec *specs, size_t len, bool hw,
		   struct pm_ptr_costs *costs, struct pm_error *err);

/* ---- engine-ptrace.c ------------------------------------------------------------------- */

enum pm_ptr_kind {
	PM_PTR_CHOOSE, /* what was measured to be cheaper */
	PM_PTR_STOPS,
	PM_PTR_HITS, /* where it can be */
};

/* pm_engine_ptrace_run() is this one, which chooses. */
int pm_ptr_run(struct pm_stat *stat, const struct pm_engine_options *options,
	       enum pm_ptr_kind kind, struct pm_child *child, struct pm_error *err);
