/* SPDX-License-Identifier: MIT */
/*
 * Sampling events of the kernel: from the words a user types to a time-ordered stream of
 * decoded records. Source throughout: perf_event_open(2), linux/perf_event.h.
 */
#pragma once

#include "pm/base.h"

struct perf_branch_entry;
struct perf_event_attr;
struct perf_event_header;

/* ---- event specifications ------------------------------------------------------------ */

enum {
	PM_EVENT_NAME_MAX = 512, /* C++ names are long */
	PM_EVENT_MODIFIERS_MAX = 16,
};

enum pm_event_kind {
	PM_EVENT_HARDWARE,
	PM_EVENT_SOFTWARE,
	PM_EVENT_CACHE,
	PM_EVENT_RAW, /* rNNN */
	PM_EVENT_PMU, /* pmu/term=value,.../ and names that a PMU or libpfm4 gives */
	PM_EVENT_BREAKPOINT, /* mem:ADDRESS|SYMBOL[/LEN][:rwx] */
	PM_EVENT_TRACEPOINT, /* sys:name */
	PM_EVENT_UPROBE, /* uprobe:, uretprobe: and usdt: on a place in a file */
	PM_EVENT_KPROBE, /* kprobe: and kretprobe: on a symbol of the kernel */
};

/*
 * What a probe or a breakpoint is on, as typed. A spec whose place is still words cannot be
 * opened: the program finds the places in files (pm/probe.h) and puts a spec for each of
 * them in its place. Texts are owned by the struct pm_event_specs, NULL where there is none.
 */
struct pm_event_place {
	bool wanted; /* still words */
	bool on_return; /* uretprobe, kretprobe */
	bool usdt;
	const char *file; /* uprobe: a path or the name of a library; usdt: FILE */
	const char *symbol; /* a name or a glob; of usdt PROVIDER:NAME */
	const char *source; /* uprobe: src.c of src.c:LINE */
	uint32_t line;
	uint64_t offset; /* bytes behind the symbol */
};

/* One event as typed, resolved to what the kernel wants. Plain data, copy freely; texts by
 * pointer live as long as the struct pm_event_specs that it came from. */
struct pm_event_spec {
	char requested[PM_EVENT_NAME_MAX]; /* as typed, with modifiers: "cycles:u" */
	char name[PM_EVENT_NAME_MAX]; /* canonical, without modifiers: "cycles" */
	char modifiers[PM_EVENT_MODIFIERS_MAX]; /* as typed, "" if none: "u" */
	enum pm_event_kind kind;
	/* Of perf_event_attr. For a uprobe config1 and config2 stand for `path` and the offset
	 * in it, for a kprobe for `path` (a symbol, or NULL) and the offset or address; for a
	 * breakpoint they are its address and its length. */
	uint32_t type; /* PERF_TYPE_*, or the number of a PMU in sysfs */
	uint64_t config, config1, config2;
	uint32_t bp_type; /* HW_BREAKPOINT_*, breakpoints only */
	const char *path; /* probes: the file, or the kernel's symbol */
	const char *filter; /* --filter of a tracepoint, NULL: none */
	const char *cpus; /* "0-3": a PMU that works on these only; NULL: on all */
	struct pm_event_place place;
	bool user, kernel; /* which privilege levels count; both without modifiers */
	bool explicit_kernel; /* `:k` was typed: dropping the kernel would be a lie */
	bool hypervisor; /* h; without any of u, k, h, too */
	bool host_only, guest_only; /* H, G; both typed: both */
	bool no_idle; /* I: attr.exclude_idle */
	uint8_t precise; /* number of `p`: attr.precise_ip; 3 with `P` */
	bool precise_most; /* P: where the machine has less than 3, that is fine, too */
	bool read_group; /* S: each sample has the counts of the group */
	bool pinned, exclusive; /* D, e; of a group its leader has them */
	/* Index in the list of the group's leader; its own index when it is in no group. */
	uint32_t leader;
	/* Its own -F or -c (`cycles/freq=999/`, `cycles/period=N/`), else the recording's.
	 * Tracepoints, probes and breakpoints without: every hit (period 1). */
	bool rate_given, by_frequency;
	uint64_t rate;
};

struct pm_event_specs {
	PM_VEC(struct pm_event_spec) list;
	PM_VEC(char *) texts; /* what the specs point to */
};
void pm_event_specs_release(struct pm_event_specs *specs);
/* A copy that lives as long as @specs; NULL without memory. */
const char *pm_event_specs_keep(struct pm_event_specs *specs, const char *text,
				size_t len);
/*
 * Puts the @len specs @with (their `leader` as that of the one that goes) in the place of the
 * one at @at; leaders behind it move with their events. A spec that was in no group gives
 * specs in no group; the first takes over a group that it led. -ENOMEM; then nothing changed.
 */
int pm_event_specs_replace(struct pm_event_specs *specs, size_t at,
			   const struct pm_event_spec *with, size_t len);

/*
 * Appends the events of a comma list, `{}` groups in it, all kinds of docs/events.md, each
 * with optional modifiers. -EINVAL names the part that is wrong and the near names; nothing
 * is appended then. Reads sysfs (PMUs) and tracefs (tracepoints).
 */
int pm_event_specs_parse(const char *text, struct pm_event_specs *specs,
			 struct pm_error *err);

enum {
	PM_EVENT_UNIT_MAX = 64,
};
/* For an event of a PMU that says in what its numbers are: the count * @scale is in @unit.
 * Else "" and 1. */
void pm_event_spec_unit(const struct pm_event_spec *spec, char unit[PM_EVENT_UNIT_MAX],
			double *scale);

/* Whether the processor can watch what a breakpoint (config1, config2) is on. 0, or -EINVAL with
 * the reason, where the kernel would give none, or watch something else. */
int pm_event_check_address(const struct pm_event_spec *spec, struct pm_error *err);

/*
 * The names for help and "did you mean"; NULL-terminated, static. perf's other spellings of
 * cache events (L1d-read-miss) parse, too.
 */
const char *const *pm_event_names(void);

/* The substitute where the machine has no PMU: `cycles` becomes `cpu-clock`. */
bool pm_event_spec_fallback(const struct pm_event_spec *spec, int open_errno,
			    struct pm_event_spec *ret);

/* ---- tracepoints --------------------------------------------------------------------- */

/* All that this kernel has, "sys:name", sorted. */
struct pm_tracepoint_names {
	struct pm_str text; /* what the list points into */
	PM_VEC(const char *) list;
};
/* -ENOENT: tracefs is not mounted, -EACCES: not for this user; @err has the remedy. */
int pm_tracepoint_names_read(struct pm_tracepoint_names *ret, struct pm_error *err);
void pm_tracepoint_names_release(struct pm_tracepoint_names *names);

enum pm_event_field_kind {
	PM_EVENT_FIELD_UNSIGNED, /* and pointers */
	PM_EVENT_FIELD_SIGNED,
	/* Foreign bytes up to a NUL; arrays of bytes in hex ("0a0b"), of numbers "1,2". */
	PM_EVENT_FIELD_TEXT,
};

struct pm_event_field {
	const char *name; /* lives as long as the tracepoint */
	enum pm_event_field_kind kind;
	union {
		uint64_t number;
		int64_t negative_too;
		const char *text; /* until the next call with the same fields */
	};
};

/* Zero-initialised is empty; used again for each sample. */
struct pm_event_fields {
	PM_VEC(struct pm_event_field) list;
	struct pm_str texts;
};
void pm_event_fields_release(struct pm_event_fields *fields);

/*
 * What the raw bytes of an event's samples are: for a tracepoint as tracefs describes them,
 * all but its `common_` fields; for a uprobe `ip`, on return `func` and `ret_ip` (struct
 * uprobe_trace_entry_head of kernel/trace/trace_uprobe.c), for a kprobe the same (struct
 * kprobe_trace_entry_head, kretprobe_trace_entry_head). Read-only once made.
 */
struct pm_tracepoint;
/* -EINVAL: an event of a kind that has no fields. */
int pm_tracepoint_new(struct pm_tracepoint **ret, const struct pm_event_spec *spec,
		      struct pm_error *err);
void pm_tracepoint_free(struct pm_tracepoint *tracepoint);
/* -EBADMSG when a field would lie outside of @raw, or it is of another event; -ENOMEM. */
int pm_tracepoint_fields(const struct pm_tracepoint *tracepoint, const uint8_t *raw,
			 size_t raw_len, struct pm_event_fields *ret);

/* ---- what is here -------------------------------------------------------------------- */

enum pm_perf_available {
	PM_PERF_AVAILABLE,
	PM_PERF_USER_ONLY, /* not inside the kernel, for this user */
	PM_PERF_COUNTS_ONLY, /* it gives no samples */
	PM_PERF_NOT_AVAILABLE,
};
/* Whether this user may record an event here: it is opened, and closed at once. @err says
 * why not, for all but the first. */
enum pm_perf_available pm_perf_try(const struct pm_event_spec *spec,
				   struct pm_error *err);
/* Whether the control group of this folder can have events: 0, or -ENOENT with the reason. */
int pm_perf_check_cgroup(int fd, struct pm_error *err);

/* A PMU of this machine, as sysfs tells of it; texts owned by the list. */
struct pm_pmu_about {
	char *name;
	uint32_t type;
	char *cpus; /* "0-3": it works on these only; NULL: on all */
	struct pm_pmu_words {
		PM_VEC(char *) list; /* sorted */
	} events, /* `name` of NAME/name/ */
		terms; /* `term` of NAME/term=value/ */
};
struct pm_pmus {
	PM_VEC(struct pm_pmu_about) list; /* by name */
};
/* Empty where there is no sysfs. 0 or -ENOMEM. */
int pm_pmus_read(struct pm_pmus *ret);
void pm_pmus_release(struct pm_pmus *pmus);

/* ---- records ------------------------------------------------------------------------- */

enum {
	PM_DWARF_REGS_MAX = 33, /* aarch64: x0-x30, sp, pc; x86-64 uses 17 */
};

enum pm_regs_abi {
	PM_REGS_NONE = 0, /* a kernel thread, or user registers were not asked for */
	PM_REGS_32 = 1,
	PM_REGS_64 = 2,
};

struct pm_user_regs {
	enum pm_regs_abi abi;
	/* By DWARF number of the task's ABI: psABI x86-64 fig. 3.36, for PM_REGS_32 psABI i386
	 * table 2.14. */
	uint64_t value[PM_DWARF_REGS_MAX];
	uint64_t known; /* bit n: value[n] is known; the others hold no meaning */
	uint64_t flags; /* x86: EFLAGS, of hits (pm/counters.h); else without meaning */
};

struct pm_sample {
	uint64_t ip;
	uint64_t period;
	/* The kernel's callchain, leaf first, with PERF_CONTEXT_* markers between (values
	 * >= PERF_CONTEXT_MAX). NULL and 0 when none was recorded. 8-byte aligned. */
	const uint64_t *callchain;
	size_t callchain_len;
	struct pm_user_regs regs;
	/* Bytes copied from the user stack pointer upward; `stack_len` is the kernel's
	 * dyn_size. `stack_asked` is what the ring spent; equal lengths mean that the stack
	 * may go on beyond the copy. */
	const uint8_t *stack;
	size_t stack_len;
	size_t stack_asked;
	uint64_t address; /* PERF_SAMPLE_ADDR: of the data; 0 when it was not asked for */
	/* PERF_SAMPLE_RAW: a tracepoint's fields as its format describes them. Borrowed. */
	const uint8_t *raw;
	size_t raw_len;
	/* PERF_SAMPLE_BRANCH_STACK: newest first. Borrowed. */
	const struct perf_branch_entry *branches;
	size_t branches_len;
	/* PERF_SAMPLE_READ, as words; pm_perf_count() finds its way. Borrowed. */
	const uint64_t *counts;
	size_t counts_len;
	/* How many of the bytes lie below the stack pointer; 0 in what the kernel copies. Some
	 * assembler keeps there what its CFI reads (OpenSSL's SHA-2 for AVX2). */
	size_t stack_below;
};

struct pm_mmap_record {
	uint64_t start, len, pgoff; /* bytes */
	uint32_t prot; /* PROT_* */
	uint32_t major, minor; /* of the device */
	uint64_t inode;
	/* distinguishes successive files with one inode number */
	uint64_t inode_generation;
	bool identified; /* a record of MMAP2: the file is known */
	const char *path; /* as the kernel saw it, "//anon", "[vdso]", … */
};

/* One record, decoded. Pointers lead into the ring: valid until the next call on it. */
struct pm_record {
	uint32_t type; /* PERF_RECORD_* */
	uint16_t misc;
	uint64_t time; /* ns, CLOCK_MONOTONIC */
	uint32_t pid, tid; /* whom it is about; for FORK the child, for EXIT who exits */
	uint32_t cpu;
	uint32_t
		event; /* index of the event in struct pm_perf; 0 for records of no event */
	union {
		struct pm_sample sample; /* PERF_RECORD_SAMPLE */
		struct pm_mmap_record mmap; /* PERF_RECORD_MMAP, _MMAP2 */
		struct {
			const char *name;
			bool exec; /* PERF_RECORD_MISC_COMM_EXEC: a new program */
		} comm; /* PERF_RECORD_COMM */
		struct {
			uint32_t parent_pid, parent_tid;
		} fork; /* PERF_RECORD_FORK and _EXIT */
		uint64_t lost; /* PERF_RECORD_LOST, _LOST_SAMPLES: how many */
		/* PERF_RECORD_READ: what an inherited event of a thread that ends had counted;
		 * the layout has both times, and no group. */
		struct {
			uint64_t value, enabled_ns, running_ns;
		} read;
		struct {
			bool out; /* it leaves the CPU; else it comes back */
			bool preempted; /* it would have run on */
		} switched; /* PERF_RECORD_SWITCH, _SWITCH_CPU_WIDE; pid, tid: whose */
	};
};

/* What the fields of a record are, as asked for in the attr. */
struct pm_record_layout {
	uint64_t sample_type; /* PERF_SAMPLE_* */
	uint64_t regs_user; /* mask of the architecture's perf register numbers */
	uint64_t read_format; /* PERF_FORMAT_*, of PERF_SAMPLE_READ */
	uint64_t
		branch_sample_type; /* PERF_SAMPLE_BRANCH_*, of PERF_SAMPLE_BRANCH_STACK */
	/* id of PERF_SAMPLE_ID(ENTIFIER) → event index. Borrowed. */
	const struct pm_event_ids *ids;
};

/*
 * Decodes one record of header.size bytes (all of them readable at @header, 8-byte aligned).
 * -EBADMSG when a field would lie outside of the record; @ret is unchanged then. Record
 * types that this version does not know are fine: only type, misc, time and ids are set.
 */
int pm_record_decode(const struct perf_event_header *header,
		     const struct pm_record_layout *layout, struct pm_record *ret,
		     struct pm_error *err);

/* ---- ring ---------------------------------------------------------------------------- */

/*
 * One mmap'd ring. Also over plain memory, so that tests and fuzzers feed it.
 * Records are peeked in place; only one that wraps is copied, into `scratch`.
 */
struct pm_ring {
	void *base; /* struct perf_event_mmap_page, then the data pages */
	size_t map_bytes; /* 0: memory is not ours */
	uint8_t *data;
	size_t data_bytes; /* a power of two */
	uint64_t head; /* read up to here is allowed; a snapshot of data_head */
	uint64_t tail; /* ours; published by pm_ring_publish() */
	uint8_t *scratch; /* 64 KiB, made by the first record that wraps */
	/*
	 * A ring that keeps the newest: written downwards, over the oldest, by nobody's leave.
	 * It can be read while its output is paused only; `tail` is then where the last
	 * reading began, and `starts` has the records, newest first, as bytes above `head`.
	 */
	bool backward, stopped;
	PM_VEC(uint32_t) starts;
};

/* Maps 1 + @data_pages pages of @fd. @data_pages a power of two. -EPERM: mlock limit. */
int pm_ring_map(struct pm_ring *ring, int fd, size_t data_pages, struct pm_error *err);
/* The same for an event with write_backward. */
int pm_ring_map_backward(struct pm_ring *ring, int fd, size_t data_pages,
			 struct pm_error *err);
/*
 * The output of such a ring has been paused: until the next call it gives, oldest first, what
 * came since the last time and was not written over (true). Or it goes on (false).
 */
int pm_ring_stop(struct pm_ring *ring, bool stop, struct pm_error *err);
void pm_ring_release(struct pm_ring *ring);
/* Takes a new snapshot of data_head, with the acquire barrier that it needs. */
void pm_ring_refresh(struct pm_ring *ring);
/*
 * The record at the tail, without consuming it. Returns 1, 0 when none is left before
 * `head`, -EBADMSG when its size is below 8, no multiple of 8 or more than is there (the
 * ring is then unusable), -ENOMEM when it wraps and there is no scratch. @ret is valid until
 * pm_ring_consume().
 */
int pm_ring_peek(struct pm_ring *ring, const struct perf_event_header **ret,
		 struct pm_error *err);
/* Steps over the peeked record. The kernel gets the room at the next publish. */
void pm_ring_consume(struct pm_ring *ring);
void pm_ring_publish(struct pm_ring *ring);

/* ---- a recording --------------------------------------------------------------------- */

enum pm_call_graph {
	PM_CALL_GRAPH_NONE, /* the instruction pointer only */
	PM_CALL_GRAPH_FP, /* the kernel's frame-pointer chain of user space */
	PM_CALL_GRAPH_DWARF, /* user registers and a copy of the stack */
};

/* Whom to sample. */
enum pm_perf_target {
	PM_PERF_COMMAND, /* `pid`, which waits for its exec, and with inherit all it starts */
	PM_PERF_TASKS, /* the threads `tids`, and with inherit all they start from now on */
	PM_PERF_CPUS, /* everybody, on `cpus` */
	PM_PERF_CGROUP, /* who is in `cgroup_fd`, on `cpus` */
};

struct pm_perf_options {
	const struct pm_event_spec *specs; /* borrowed until pm_perf_free() */
	size_t specs_len;
	bool by_frequency; /* for specs without a rate of their own */
	uint64_t
		rate; /* Hz, or the period when !by_frequency; UINT64_MAX Hz: the maximum */
	enum pm_call_graph call_graph;
	uint32_t stack_bytes; /* DWARF only; multiple of 8, at most PM_STACK_BYTES_MAX */
	bool returns; /* with DWARF: the user's return addresses along frame pointers, too */
	uint64_t branches; /* PERF_SAMPLE_BRANCH_*, 0: none */
	size_t ring_pages; /* data pages of each ring, 0: choose */
	bool ring_pages_explicit; /* then every shrinking is noted, not only to a tight size */
	enum pm_perf_target target;
	pid_t pid;
	const pid_t *tids; /* borrowed for the call */
	size_t tids_len;
	int cgroup_fd; /* a folder of the cgroup file system */
	const char *cpus; /* "0-3,8"; NULL: all that are online */
	bool no_inherit;
	/* New threads inherit, new processes do not (Linux 5.13; older ones ignore it, so that
	 * the caller has to leave out what is of others). */
	bool threads_only;
	/* Events begin only with pm_perf_enable(); otherwise with the exec of PM_PERF_COMMAND,
	 * or at once. */
	bool begin_disabled;
	bool switches; /* PERF_RECORD_SWITCH for each task */
	bool overwrite; /* rings keep the newest; read when stopped by pm_perf_snapshot() */
	/* Never events of a CPU for a command or tasks, see pm_perf_per_cpu(). */
	bool per_task;
};

/* perf_sample_ustack_size() keeps a record below 64 KiB; more is EINVAL. */
#define PM_STACK_BYTES_MAX 65528u

/* What became of a requested event. */
struct pm_perf_event {
	struct pm_event_spec requested;
	struct pm_event_spec actual; /* differs after a fallback */
	bool by_frequency;
	uint64_t rate; /* Hz or period, after clamping */
	bool kernel_dropped; /* kernel samples not allowed here: user only */
};

/* Things a user has to know but that stop nothing; each a full sentence. */
struct pm_perf_notes {
	PM_VEC(char *) texts;
};

struct pm_perf;

/*
 * Opens every event for the target on every online CPU, or those of `cpus`, one ring per CPU
 * (one per thread where there are not enough file descriptors for more, and a note tells what
 * that costs). What is told of processes (FORK, MMAP2, …) comes on all CPUs, whatever is
 * sampled. For PM_PERF_CPUS and _CGROUP the idle task counts, as in perf record -a (pid 0).
 * Degrades step by step where the kernel or the limits ask for it (older kernels' attr bits,
 * `perf_event_paranoid`, `perf_event_mlock_kb`, `perf_event_max_sample_rate`, no PMU) and
 * writes each step that changes what a user gets into pm_perf_notes(). When it fails, @err
 * tells which of paranoid, seccomp, mlock, fds it is, the value found and the fix; -ESRCH when
 * the target is gone, -ENODEV for a CPU that is not online.
 */
int pm_perf_open(struct pm_perf **ret, const struct pm_perf_options *options,
		 struct pm_error *err);
void pm_perf_free(struct pm_perf *perf);
/*
 * The same for a process that ends now. The kernel waits whenever the last event of a
 * tracepoint is closed. A child process closes those events and is not waited for; it holds
 * nothing else: no other descriptor, no terminal, no directory. Without a child the caller
 * waits.
 */
void pm_perf_free_behind(struct pm_perf *perf);
/* Closes @fd, of a file that may have no name any more, in the same way. */
void pm_perf_close_behind(int fd);

const struct pm_perf_event *pm_perf_events(const struct pm_perf *perf, size_t *len);
const struct pm_perf_notes *pm_perf_notes(const struct pm_perf *perf);
size_t pm_perf_ring_pages(
	const struct pm_perf *perf); /* as mapped, data pages per ring */

/*
 * The time in which samples at the requested rates fill a quarter of a ring, for a caller
 * that reads on a timer; 0: no event has a rate.
 */
uint64_t pm_perf_quarter_ns(const struct pm_perf *perf);
/* Whether all events are clocks, so that no sample comes more often. */
bool pm_perf_is_paced(const struct pm_perf *perf);

/* Measures how much time one sample of a clock, and each byte of copied stack, costs
 * the interrupted thread. Uses some 50 ms of CPU time of the calling thread. @kernel:
 * the kernel may be sampled. */
struct pm_perf_cost {
	double sample_ns, byte_ns;
};
int pm_perf_measure_cost(bool kernel, struct pm_perf_cost *ret);

/* The ring fds, for the caller's poll(2) beside its own. A ring wakes at a quarter; where
 * pm_perf_quarter_ns() is known and the events are of CPUs, at the half. */
const int *pm_perf_poll_fds(const struct pm_perf *perf, size_t *len);

/*
 * Begins and ends the sampling; 0 or -errno. What is told of processes (and SWITCH records)
 * comes from the beginning, or from the exec of PM_PERF_COMMAND, to pm_perf_free().
 */
int pm_perf_enable(struct pm_perf *perf);
int pm_perf_disable(struct pm_perf *perf);

/*
 * Whether events were opened for CPUs and not for the tasks, though tasks are the target. An
 * event that tasks inherit begins its period anew in each of them, so that short threads are
 * hardly ever sampled; one of a CPU does not. In the kernel a filter then lets through only
 * the target's tasks (tree-filter.c). The caller has to leave out samples and other records of
 * processes that it knows nothing of: for many tasks what is told of processes is of
 * everybody, and a sample may be of one whose number was a target's. The other way round, a
 * task's last samples may come behind its EXIT record. Done where root or CAP_PERFMON with
 * CAP_BPF allow it, for hardware events and clocks with a frequency or a period above 1.
 */
bool pm_perf_per_cpu(const struct pm_perf *perf);

/*
 * Threads that a target's process started while the events were being opened, so that nothing
 * was inherited: true when they are followed from now on, which takes pm_perf_per_cpu().
 */
bool pm_perf_follow(struct pm_perf *perf, const pid_t *tids, size_t len);
/* Whether the kernel lets through samples of @tid now, which takes pm_perf_per_cpu(). False for a
 * task that is gone. */
bool pm_perf_follows(const struct pm_perf *perf, pid_t tid);

/*
 * To be called now and then (each second): CPUs that came online get their events, and those
 * whose events stopped with their CPU get new ones. 1 when there was something (poll fds have
 * changed), 0, or a negative error.
 */
int pm_perf_check_cpus(struct pm_perf *perf, struct pm_error *err);

/* With `overwrite`: stops the rings for reading (true), lets them go on (false). */
int pm_perf_snapshot(struct pm_perf *perf, bool stop);

/*
 * Begins a round: all rings' heads are read, after the clock. Records up to that clock are
 * complete in every ring, so pm_perf_next() gives them in time order; younger ones wait for
 * the next round. @final: events are disabled, give everything.
 */
void pm_perf_begin(struct pm_perf *perf, bool final);
/*
 * The next record of the round, oldest first, borrowed until the next call. 1, 0 at the end
 * of the round (all consumed room is then given back to the kernel), or a negative error
 * that names the CPU: -EBADMSG for a record or a ring that cannot be read. It is told once;
 * calls after it go on with what is readable. Times may step back by microseconds, where an
 * NMI wrote between the stamp and the writing of another record.
 */
int pm_perf_next(struct pm_perf *perf, struct pm_record *ret, struct pm_error *err);
/*
 * What event @index of the sampling one's group (`S`) had counted when this sample was taken,
 * in its task on its CPU. -ENOENT: it is not in the group; -ENOTSUP: no event has an `S`.
 */
int pm_perf_count(const struct pm_perf *perf, const struct pm_record *record,
		  size_t index, uint64_t *ret);
/*
 * While held, records stay where they are: those given since pm_perf_hold(true) are borrowed
 * until pm_perf_hold(false) or the next round. (One that wraps, too: its copy is used again
 * by the next one that wraps, and a round goes over the end of a ring once at most.) The
 * kernel gets no room back meanwhile, so hold little, and not for long.
 */
void pm_perf_hold(struct pm_perf *perf, bool hold);

/*
 * Samples that the kernel counted as lost for event @index (PERF_FORMAT_LOST, Linux 6.0),
 * which is the truth also when the last PERF_RECORD_LOST never fitted. -ENOTSUP on older
 * kernels: then the sum of the records is all there is.
 */
int pm_perf_lost(const struct pm_perf *perf, size_t index, uint64_t *ret);

/*
 * What the kernel has counted of event @index while it sampled, which the periods of its samples
 * should come to; and with pm_perf_per_cpu() in @others what the periods of samples came to that
 * were left out because they were of other tasks. -ENOTSUP where the two cannot be compared:
 * a clock that samples user space alone counts all time.
 */
int pm_perf_counted(const struct pm_perf *perf, size_t index, uint64_t *counted,
		    uint64_t *others);

/* ---- what works here ----------------------------------------------------------------------- */

/* One thing that a recording may want of this machine, tried by this user. Texts are static. */
struct pm_perf_check {
	const char *name, *use; /* "kernel samples", what it is good for */
	bool works;
	bool needed; /* without it not even programs of one's own can be recorded */
	char found[64]; /* a value, "" if there is none */
	struct pm_error why; /* it does not work, and what mends that */
};

typedef PM_VEC(struct pm_perf_check) pm_perf_checks;

/* Nothing stays behind. @ret is to be released with pm_vec_release(). 0 or -ENOMEM. */
int pm_perf_checks_run(pm_perf_checks *ret);
