/* SPDX-License-Identifier: MIT */
/*
 * Sampling with the kernel's perf events: from an event name as typed by the user to a
 * stream of decoded records ordered by time. Source throughout: perf_event_open(2),
 * linux/perf_event.h.
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
	PM_EVENT_PMU, /* pmu/term=value,.../ and names known to a PMU or to libpfm4 */
	PM_EVENT_BREAKPOINT, /* mem:ADDRESS|SYMBOL[/LEN][:rwx] */
	PM_EVENT_TRACEPOINT, /* sys:name */
	PM_EVENT_UPROBE, /* uprobe:, uretprobe: and usdt: at a place in a file */
	PM_EVENT_KPROBE, /* kprobe: and kretprobe: at a kernel symbol */
};

/*
 * Where a probe or a breakpoint is placed, as typed. A spec whose place has not been
 * resolved (`wanted`) cannot be opened: the program looks the place up in files
 * (pm/probe.h) and replaces the spec by one spec for each place found. The struct
 * pm_event_specs owns the strings; a string that does not apply is NULL.
 */
struct pm_event_place {
	bool wanted; /* not resolved yet */
	bool on_return; /* uretprobe, kretprobe */
	bool usdt;
	const char *file; /* uprobe: a path or the name of a library; usdt: FILE */
	const char *symbol; /* a name or a glob; for usdt PROVIDER:NAME */
	const char *source; /* uprobe: the src.c of src.c:LINE */
	uint32_t line;
	uint64_t offset; /* in bytes from the symbol */
};

/* One event as typed, resolved to what the kernel expects. Plain data that may be copied.
 * The strings that it points to stay valid as long as the struct pm_event_specs that owns
 * them. */
struct pm_event_spec {
	char requested[PM_EVENT_NAME_MAX]; /* as typed, with modifiers: "cycles:u" */
	char name[PM_EVENT_NAME_MAX]; /* canonical, without modifiers: "cycles" */
	char modifiers[PM_EVENT_MODIFIERS_MAX]; /* as typed, "" if none: "u" */
	enum pm_event_kind kind;
	/* Fields of perf_event_attr. A uprobe is described by `path` and the offset in
	 * config2, a kprobe by `path` (a symbol, or NULL) and the offset or address; a
	 * breakpoint has its address in config1 and its length in config2. */
	uint32_t type; /* PERF_TYPE_*, or the number of a PMU in sysfs */
	uint64_t config, config1, config2;
	uint32_t bp_type; /* HW_BREAKPOINT_*, breakpoints only */
	const char *path; /* probes: the file, or the kernel's symbol */
	const char *filter; /* --filter of a tracepoint, NULL: none */
	const char *cpus; /* "0-3": the only CPUs that the PMU works on; NULL: all */
	struct pm_event_place place;
	bool user, kernel; /* which privilege levels count; both without modifiers */
	bool explicit_kernel; /* `:k` was typed: the kernel must not be left out */
	bool hypervisor; /* h; also set if none of u, k, h was typed */
	bool host_only, guest_only; /* H, G; both are set if both were typed */
	bool no_idle; /* I: attr.exclude_idle */
	uint8_t precise; /* number of `p`: attr.precise_ip; 3 with `P` */
	bool precise_most; /* P: accepts a machine that supports less than 3 */
	bool read_group; /* S: each sample contains the counts of its group */
	bool pinned, exclusive; /* D, e; in a group the leader has them */
	/* List index of the group's leader; the event's own index if it is in no
	 * group. */
	uint32_t leader;
	/* The event's own -F or -c (`cycles/freq=999/`, `cycles/period=N/`); otherwise
	 * the recording's rate applies. Tracepoints, probes and breakpoints without a
	 * rate of their own sample every hit (period 1). */
	bool rate_given, by_frequency;
	uint64_t rate;
};

struct pm_event_specs {
	PM_VEC(struct pm_event_spec) list;
	PM_VEC(char *) texts; /* owned; the specs point to them */
};
void pm_event_specs_release(struct pm_event_specs *specs);
/* Returns a copy that stays valid as long as @specs; NULL if out of memory. */
const char *pm_event_specs_keep(struct pm_event_specs *specs, const char *text,
				size_t len);
/*
 * Replaces the spec at @at by the @len specs @with, whose `leader` must be that of the
 * replaced spec; the leader indices of later events are adjusted. If the replaced spec
 * was in no group, the new ones are in no group either. If it led a group, the first new
 * spec leads it. On -ENOMEM nothing has changed.
 */
int pm_event_specs_replace(struct pm_event_specs *specs, size_t at,
			   const struct pm_event_spec *with, size_t len);

/*
 * Appends the events of a comma-separated list, which may contain `{}` groups.
 * docs/events.md describes all kinds of events; each may have modifiers. On -EINVAL @err
 * names the invalid part and similar names, and nothing is appended. Reads sysfs (PMUs)
 * and tracefs (tracepoints).
 */
int pm_event_specs_parse(const char *text, struct pm_event_specs *specs,
			 struct pm_error *err);

enum {
	PM_EVENT_UNIT_MAX = 64,
};
/* If the event's PMU declares a unit, count * @scale is in @unit. Otherwise @unit is ""
 * and @scale is 1. */
void pm_event_spec_unit(const struct pm_event_spec *spec, char unit[PM_EVENT_UNIT_MAX],
			double *scale);

/* Checks whether the processor can watch the address and length of a breakpoint (config1,
 * config2). Returns 0, or -EINVAL with the reason: the kernel would give no reason, or
 * would watch something else. */
int pm_event_check_address(const struct pm_event_spec *spec, struct pm_error *err);

/*
 * Event names for help and "did you mean"; NULL-terminated, static. The parser also
 * accepts perf's other spellings of cache events (L1d-read-miss).
 */
const char *const *pm_event_names(void);

/* Sets *out to the substitute for an event on a machine without a PMU: `cycles` becomes
 * `cpu-clock`. Returns false if there is none for this event and error. */
bool pm_event_spec_fallback(const struct pm_event_spec *spec, int open_errno,
			    struct pm_event_spec *out);

/* ---- tracepoints --------------------------------------------------------------------- */

/* All tracepoints of this kernel as "sys:name", sorted. */
struct pm_tracepoint_names {
	struct pm_str text; /* the list points into it */
	PM_VEC(const char *) list;
};
/* Returns 0; -ENOENT: tracefs is not mounted; -EACCES: this user may not read it; or
 * -ENOMEM. @err names the remedy. */
int pm_tracepoint_names_read(struct pm_tracepoint_names *out, struct pm_error *err);
void pm_tracepoint_names_release(struct pm_tracepoint_names *names);

enum pm_event_field_kind {
	PM_EVENT_FIELD_UNSIGNED, /* includes pointers */
	PM_EVENT_FIELD_SIGNED,
	/* Untrusted bytes up to a NUL. An array of bytes is in hex ("0a0b"), one of
	 * numbers is "1,2". */
	PM_EVENT_FIELD_TEXT,
};

struct pm_event_field {
	const char *name; /* valid as long as the tracepoint */
	enum pm_event_field_kind kind;
	union {
		uint64_t number;
		int64_t negative_too;
		const char *text; /* valid until the next call with the same fields */
	};
};

/* Empty if zero-initialised. To be reused for each sample. */
struct pm_event_fields {
	PM_VEC(struct pm_event_field) list;
	struct pm_str texts;
};
void pm_event_fields_release(struct pm_event_fields *fields);

/*
 * Layout of the raw bytes of an event's samples. For a tracepoint, tracefs describes the
 * fields; the `common_` fields are left out. A uprobe has `ip`, or `func` and `ret_ip` on
 * return (struct uprobe_trace_entry_head of kernel/trace/trace_uprobe.c); a kprobe has
 * the same (struct kprobe_trace_entry_head, kretprobe_trace_entry_head). Read-only once
 * created.
 */
struct pm_tracepoint;
/* Returns -EINVAL if this kind of event has no fields. */
int pm_tracepoint_new(struct pm_tracepoint **out, const struct pm_event_spec *spec,
		      struct pm_error *err);
void pm_tracepoint_free(struct pm_tracepoint *tracepoint);
/* Returns 0; -EBADMSG if a field would lie outside of @raw or if @raw belongs to another
 * event; or -ENOMEM. */
int pm_tracepoint_fields(const struct pm_tracepoint *tracepoint, const uint8_t *raw,
			 size_t raw_len, struct pm_event_fields *out);

/* ---- what this machine offers -------------------------------------------------------- */

enum pm_perf_available {
	PM_PERF_AVAILABLE,
	PM_PERF_USER_ONLY, /* this user may not sample the kernel */
	PM_PERF_COUNTS_ONLY, /* the event cannot sample */
	PM_PERF_NOT_AVAILABLE,
};
/* Checks whether this user may record the event by opening and closing it. For every
 * result but the first, @err says why not. */
enum pm_perf_available pm_perf_try(const struct pm_event_spec *spec,
				   struct pm_error *err);
/* Checks whether events can be opened for the control group of this folder. Returns 0, or
 * -ENOENT with the reason. */
int pm_perf_check_cgroup(int fd, struct pm_error *err);

/* A PMU of this machine as described by sysfs. The list owns the strings. */
struct pm_pmu_about {
	char *name;
	uint32_t type;
	char *cpus; /* "0-3": the only CPUs it works on; NULL: all */
	struct pm_pmu_words {
		PM_VEC(char *) list; /* sorted */
	} events, /* the `name` of NAME/name/ */
		terms; /* the `term` of NAME/term=value/ */
};
struct pm_pmus {
	PM_VEC(struct pm_pmu_about) list; /* sorted by name */
};
/* The list is empty if there is no sysfs. Returns 0 or -ENOMEM. */
int pm_pmus_read(struct pm_pmus *out);
void pm_pmus_release(struct pm_pmus *pmus);

/* ---- records ------------------------------------------------------------------------- */

enum {
	PM_DWARF_REGS_MAX = 33, /* aarch64: x0-x30, sp, pc; x86-64 uses 17 */
};

enum pm_regs_abi {
	PM_REGS_NONE = 0, /* a kernel thread, or user registers were not requested */
	PM_REGS_32 = 1,
	PM_REGS_64 = 2,
};

struct pm_user_regs {
	enum pm_regs_abi abi;
	/* Indexed by the DWARF register number of the task's ABI: psABI x86-64 fig. 3.36,
	 * for PM_REGS_32 psABI i386 table 2.14. */
	uint64_t value[PM_DWARF_REGS_MAX];
	uint64_t known; /* bit n: value[n] is known; other values are undefined */
	uint64_t flags; /* x86: EFLAGS of hits (pm/counters.h); otherwise undefined */
};

struct pm_sample {
	uint64_t ip;
	uint64_t period;
	/* The kernel's callchain, leaf first, with PERF_CONTEXT_* markers (values >=
	 * PERF_CONTEXT_MAX) in between. NULL and 0 if none was recorded. 8-byte
	 * aligned. */
	const uint64_t *callchain;
	size_t callchain_len;
	struct pm_user_regs regs;
	/* Bytes copied from the user stack pointer upwards. `stack_len` is the kernel's
	 * dyn_size, `stack_asked` the space that the copy takes in the ring. If both are
	 * equal, the stack may continue beyond the copy. */
	const uint8_t *stack;
	size_t stack_len;
	size_t stack_asked;
	uint64_t address; /* PERF_SAMPLE_ADDR: of the data; 0 if not requested */
	/* PERF_SAMPLE_RAW: a tracepoint's fields in the layout of its format file.
	 * Borrowed. */
	const uint8_t *raw;
	size_t raw_len;
	/* PERF_SAMPLE_BRANCH_STACK: newest first. Borrowed. */
	const struct perf_branch_entry *branches;
	size_t branches_len;
	/* PERF_SAMPLE_READ as 64-bit words, to be decoded by pm_perf_count().
	 * Borrowed. */
	const uint64_t *counts;
	size_t counts_len;
	/* How many of the copied bytes lie below the stack pointer; 0 if the kernel made
	 * the copy. Some assembler code keeps there what its CFI refers to (OpenSSL's
	 * SHA-2 for AVX2). */
	size_t stack_below;
};

struct pm_mmap_record {
	uint64_t start, len, pgoff; /* bytes */
	uint32_t prot; /* PROT_* */
	uint32_t major, minor; /* device numbers */
	uint64_t inode;
	/* distinguishes files that had the same inode number one after the other */
	uint64_t inode_generation;
	bool identified; /* from an MMAP2 record: the file's identity is known */
	const char *path; /* as recorded by the kernel: a path, "//anon", "[vdso]", … */
};

/* One decoded record. Its pointers refer to the ring and are valid until the next call on
 * that ring. */
struct pm_record {
	uint32_t type; /* PERF_RECORD_* */
	uint16_t misc;
	uint64_t time; /* ns, CLOCK_MONOTONIC */
	uint32_t pid,
		tid; /* the task concerned; FORK: the child, EXIT: the exiting task */
	uint32_t cpu;
	/* Index of the event in struct pm_perf; 0 for records that belong to no event. */
	uint32_t event;
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
		/* PERF_RECORD_READ: the final count of an inherited event when its thread
		 * ends. The layout has both times and no group. */
		struct {
			uint64_t value, enabled_ns, running_ns;
		} read;
		struct {
			bool out; /* the task leaves the CPU; false: it returns */
			bool preempted; /* it was still runnable */
		} switched; /* PERF_RECORD_SWITCH, _SWITCH_CPU_WIDE, of pid and tid */
	};
};

/* Which fields the records have, as requested in the attr. */
struct pm_record_layout {
	uint64_t sample_type; /* PERF_SAMPLE_* */
	uint64_t regs_user; /* mask in perf's register numbers of the architecture */
	uint64_t read_format; /* PERF_FORMAT_*, for PERF_SAMPLE_READ */
	/* PERF_SAMPLE_BRANCH_*, for PERF_SAMPLE_BRANCH_STACK */
	uint64_t branch_sample_type;
	/* Maps the id of PERF_SAMPLE_ID(ENTIFIER) to the event's index. Borrowed. */
	const struct pm_event_ids *ids;
};

/*
 * Decodes one record of header.size bytes, all of which must be readable at the 8-byte
 * aligned @header. Returns -EBADMSG if a field would lie outside of the record; @out is
 * unchanged then. Record types unknown to this version are accepted: only type, misc,
 * time and the ids are set.
 */
int pm_record_decode(const struct perf_event_header *header,
		     const struct pm_record_layout *layout, struct pm_record *out,
		     struct pm_error *err);

/* ---- ring ---------------------------------------------------------------------------- */

/*
 * One mapped ring. It may also lie in plain memory, for tests and fuzzers. Records are
 * peeked in place; only a record that wraps is copied to `scratch`.
 */
struct pm_ring {
	void *base; /* struct perf_event_mmap_page, then the data pages */
	size_t map_bytes; /* 0: the ring does not own its memory */
	uint8_t *data;
	size_t data_bytes; /* a power of two */
	uint64_t head; /* a snapshot of data_head: records may be read up to here */
	uint64_t tail; /* the reader's position; published by pm_ring_publish() */
	uint8_t *scratch; /* 64 KiB, allocated for the first record that wraps */
	/*
	 * A ring that keeps the newest records: the kernel writes downwards and
	 * overwrites the oldest records without waiting for the reader. It can only be
	 * read while its output is paused. `tail` is then where the previous reading
	 * started, and `starts` lists the records, newest first, as byte offsets from
	 * `head`.
	 */
	bool backward, stopped;
	PM_VEC(uint32_t) starts;
};

/* Maps 1 + @data_pages pages of @fd. @data_pages must be a power of two. Returns -EPERM
 * if that exceeds the mlock limit. */
int pm_ring_map(struct pm_ring *ring, int fd, size_t data_pages, struct pm_error *err);
/* The same for an event that has write_backward. */
int pm_ring_map_backward(struct pm_ring *ring, int fd, size_t data_pages,
			 struct pm_error *err);
/*
 * Pauses the output of a backward ring (true) or resumes it (false). While it is paused,
 * the ring returns the records written since the last pause that have not been
 * overwritten, oldest first.
 */
int pm_ring_stop(struct pm_ring *ring, bool stop, struct pm_error *err);
void pm_ring_release(struct pm_ring *ring);
/* Takes a new snapshot of data_head, with the required acquire barrier. */
void pm_ring_refresh(struct pm_ring *ring);
/*
 * Returns the record at the tail without consuming it. Returns 1; 0 if none is left
 * before `head`; -EBADMSG if its size is below 8, not a multiple of 8, or more than is
 * available (the ring is then unusable); -ENOMEM if the record wraps and there is no
 * scratch buffer. @out is valid until pm_ring_consume().
 */
int pm_ring_peek(struct pm_ring *ring, const struct perf_event_header **out,
		 struct pm_error *err);
/* Steps over the peeked record. The next publish returns its space to the kernel. */
void pm_ring_consume(struct pm_ring *ring);
void pm_ring_publish(struct pm_ring *ring);

/* ---- a recording --------------------------------------------------------------------- */

enum pm_call_graph {
	PM_CALL_GRAPH_NONE, /* the instruction pointer only */
	PM_CALL_GRAPH_FP, /* frame pointers: the kernel's callchain of user space */
	PM_CALL_GRAPH_DWARF, /* user registers and a copy of the stack */
};

/* What to sample. */
enum pm_perf_target {
	PM_PERF_COMMAND, /* `pid`, waiting for its exec, and (inherit) all it starts */
	PM_PERF_TASKS, /* the threads `tids`, and (inherit) all they start from now on */
	PM_PERF_CPUS, /* every task, on `cpus` */
	PM_PERF_CGROUP, /* the tasks in `cgroup_fd`, on `cpus` */
};

struct pm_perf_options {
	const struct pm_event_spec *specs; /* borrowed until pm_perf_free() */
	size_t specs_len;
	bool by_frequency; /* for specs that have no rate of their own */
	/* In Hz, or the period if !by_frequency; UINT64_MAX Hz: the maximum. */
	uint64_t rate;
	enum pm_call_graph call_graph;
	uint32_t
		stack_bytes; /* DWARF only; a multiple of 8, at most PM_STACK_BYTES_MAX */
	bool returns; /* with DWARF: also user return addresses by frame pointers */
	uint64_t branches; /* PERF_SAMPLE_BRANCH_*, 0: none */
	size_t ring_pages; /* data pages of each ring, 0: choose */
	bool ring_pages_explicit; /* note any shrinking, even to a sufficient size */
	enum pm_perf_target target;
	pid_t pid;
	const pid_t *tids; /* borrowed for the call */
	size_t tids_len;
	int cgroup_fd; /* a directory of the cgroup file system */
	const char *cpus; /* "0-3,8"; NULL: all that are online */
	bool no_inherit;
	/* New threads inherit the events, new processes do not (Linux 5.13). Older
	 * kernels ignore this, so the caller has to drop records of other processes. */
	bool threads_only;
	/* Events start only with pm_perf_enable(). Otherwise they start with the exec of
	 * PM_PERF_COMMAND, or at once. */
	bool begin_disabled;
	bool switches; /* PERF_RECORD_SWITCH for each task */
	bool overwrite; /* rings keep the newest records; see pm_perf_snapshot() */
	/* Never use per-CPU events for a command or tasks, see pm_perf_per_cpu(). */
	bool per_task;
};

/* perf_sample_ustack_size() keeps a record below 64 KiB; the kernel rejects a larger size
 * with EINVAL. */
#define PM_STACK_BYTES_MAX 65528u

/* How a requested event was opened. */
struct pm_perf_event {
	struct pm_event_spec requested;
	struct pm_event_spec actual; /* differs after a fallback */
	bool by_frequency;
	uint64_t rate; /* Hz or period, after clamping */
	bool kernel_dropped; /* kernel samples not permitted here: user space only */
};

/* Notes for users on problems in spite of which the recording continues. Each text is a
 * full sentence. */
struct pm_perf_notes {
	PM_VEC(char *) texts;
};

struct pm_perf;

/*
 * Opens every event for the target on every online CPU, or on those of `cpus`, with one
 * ring per CPU. If there are too few file descriptors for that, it uses one ring per
 * thread, and a note says what that costs. Records about processes (FORK, MMAP2, …) come
 * from all CPUs, whatever is sampled. For PM_PERF_CPUS and _CGROUP the idle task (pid 0)
 * is included, as in perf record -a. Where the kernel or its limits require it, the setup
 * degrades step by step (attr bits of newer kernels, `perf_event_paranoid`,
 * `perf_event_mlock_kb`, `perf_event_max_sample_rate`, no PMU), and pm_perf_notes() lists
 * each step that changes the result. On failure @err says which of paranoid, seccomp,
 * mlock and file descriptors is the cause, the value found, and the fix. Returns -ESRCH
 * if the target is gone, -ENODEV for a CPU that is not online.
 */
int pm_perf_open(struct pm_perf **out, const struct pm_perf_options *options,
		 struct pm_error *err);
void pm_perf_free(struct pm_perf *perf);
/*
 * The same for a process that is about to exit. Closing the last event of a tracepoint
 * makes the kernel wait. A child process therefore closes those events, and this process
 * does not wait for it. The child holds nothing else: no other descriptor, no terminal,
 * no directory. If there is no child, the caller waits.
 */
void pm_perf_free_behind(struct pm_perf *perf);
/* Closes @fd, whose file may have been unlinked, in the same way. Returns the child, which the
 * caller waits for some time, or 0 if there is no child. */
pid_t pm_perf_close_behind(int fd);

const struct pm_perf_event *pm_perf_events(const struct pm_perf *perf, size_t *len);
const struct pm_perf_notes *pm_perf_notes(const struct pm_perf *perf);
size_t pm_perf_ring_pages(
	const struct pm_perf *perf); /* data pages per ring, as mapped */

/*
 * Returns the time in which samples at the requested rates fill a quarter of a ring, for
 * a caller that reads on a timer. 0: no event has a rate.
 */
uint64_t pm_perf_quarter_ns(const struct pm_perf *perf);
/* Whether all events are clocks, so that the rate of samples is bounded. */
bool pm_perf_is_paced(const struct pm_perf *perf);

/* Measures how much time the interrupted thread loses to one sample of a clock, and to
 * each byte of copied stack. Uses about 50 ms of CPU time of the calling thread. @kernel:
 * the kernel may be sampled. */
struct pm_perf_cost {
	double sample_ns, byte_ns;
};
int pm_perf_measure_cost(bool kernel, struct pm_perf_cost *out);

/* The file descriptors of the rings, to be polled along with the caller's own. A ring
 * wakes the caller when it is a quarter full, or half full if pm_perf_quarter_ns() is
 * known and the events are per-CPU. */
const int *pm_perf_poll_fds(const struct pm_perf *perf, size_t *len);

/*
 * Starts and stops sampling; returns 0 or -errno. Records about processes (and SWITCH
 * records) are written from the start, or from the exec of PM_PERF_COMMAND, until
 * pm_perf_free().
 */
int pm_perf_enable(struct pm_perf *perf);
int pm_perf_disable(struct pm_perf *perf);

/*
 * Whether the events were opened per CPU and not per task, although tasks are the target.
 * An inherited event restarts its period in each task, so that short-lived threads are
 * hardly ever sampled; a per-CPU event does not. A filter in the kernel then passes only
 * the target's tasks (tree-filter.c). The caller has to drop samples and other records of
 * processes that it does not know: with many tasks the records about processes cover the
 * whole system, and a sample may belong to a task that reuses the id of a target's task.
 * Conversely, a task's last samples may follow its EXIT record. Used for root, or with
 * CAP_PERFMON and CAP_BPF, for hardware events and clocks that have a frequency or a
 * period above 1.
 */
bool pm_perf_per_cpu(const struct pm_perf *perf);

/*
 * Follows threads that a target's process started while the events were being opened, and
 * that therefore inherited nothing. Returns true if they are followed from now on, which
 * requires pm_perf_per_cpu().
 */
bool pm_perf_follow(struct pm_perf *perf, const pid_t *tids, size_t len);
/* Whether the kernel passes samples of @tid now, which requires pm_perf_per_cpu().
 * Returns false for a task that is gone. */
bool pm_perf_follows(const struct pm_perf *perf, pid_t tid);

/*
 * To be called regularly (once a second). Opens events on CPUs that have come online, and
 * reopens events that stopped because their CPU went offline. Returns 1 if anything
 * changed (including poll fds), 0 if nothing did, or a negative error.
 */
int pm_perf_check_cpus(struct pm_perf *perf, struct pm_error *err);

/* With `overwrite`: pauses the rings for reading (true) or resumes them (false). */
int pm_perf_snapshot(struct pm_perf *perf, bool stop);

/*
 * Starts a round: reads the clock, then the heads of all rings. Records up to that time
 * are complete in every ring, so pm_perf_next() can return them in time order; later ones
 * wait for the next round. @final: events are disabled, return everything.
 */
void pm_perf_begin(struct pm_perf *perf, bool final);
/*
 * Returns the next record of the round, oldest first, borrowed until the next call.
 * Returns 1; 0 at the end of the round, when all consumed space goes back to the kernel;
 * or a negative error that names the CPU. -EBADMSG means that a record or a ring cannot
 * be read: it is reported once, and later calls continue with what is readable. Times may
 * step back by microseconds if an NMI wrote a record after another record got its
 * timestamp and before that one was written.
 */
int pm_perf_next(struct pm_perf *perf, struct pm_record *out, struct pm_error *err);
/*
 * Returns the count of event @index at the time of the sample, in the sample's task and
 * on its CPU, if that event is in the group of the sampling event (`S`). Returns -ENOENT
 * if it is not in the group, and -ENOTSUP if no event has an `S`.
 */
int pm_perf_count(const struct pm_perf *perf, const struct pm_record *record,
		  size_t index, uint64_t *out);
/*
 * While held, records stay where they are: those returned since pm_perf_hold(true) are
 * borrowed until pm_perf_hold(false) or the next round. This includes a record that
 * wraps: only the next one that wraps reuses its copy, and a round passes the end of a
 * ring at most once. No space goes back to the kernel while records are held: hold few of
 * them, and only briefly.
 */
void pm_perf_hold(struct pm_perf *perf, bool hold);

/*
 * Sets *out to the number of samples of event @index that the kernel counted as lost
 * (PERF_FORMAT_LOST, Linux 6.0). It is correct even if the last PERF_RECORD_LOST never
 * fitted into the ring. Returns -ENOTSUP on older kernels, where only the sum of the
 * records is known.
 */
int pm_perf_lost(const struct pm_perf *perf, size_t index, uint64_t *out);

/*
 * @counted is the kernel's count of event @index while it sampled; the periods of its
 * samples should add up to it. With pm_perf_per_cpu(), @others is the sum of the periods
 * of samples dropped because they belonged to other tasks. Returns -ENOTSUP if the two
 * cannot be compared: a clock that samples user space alone counts all time.
 */
int pm_perf_counted(const struct pm_perf *perf, size_t index, uint64_t *counted,
		    uint64_t *others);

/* ---- what works here ----------------------------------------------------------------------- */

/* One thing that a recording may need from this machine, tried as this user. Strings are
 * static. */
struct pm_perf_check {
	const char *name, *use; /* "kernel samples", and its purpose */
	bool works;
	bool needed; /* without it a user cannot even record their own programs */
	char found[64]; /* the value found, "" if there is none */
	struct pm_error why; /* why it does not work, and how to fix that */
};

typedef PM_VEC(struct pm_perf_check) pm_perf_checks;

/* Runs all checks, and leaves nothing behind. Release @out with pm_vec_release(). Returns
 * 0 or -ENOMEM. */
int pm_perf_checks_run(pm_perf_checks *out);
