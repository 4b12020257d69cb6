/* SPDX-License-Identifier: MIT */
/*
 * Counting with the kernel's perf events, beside the sampling of pm/perf.h: counters that
 * are read, and hits. The kernel writes a hit each time a thread reaches one of a set of
 * places in code. It contains the counts of a group of counters. Source throughout:
 * perf_event_open(2), linux/perf_event.h.
 */
#pragma once

#include "pm/perf.h"
#include "pm/stat-state.h"

/* ---- values -------------------------------------------------------------------------- */

/* As returned by read(2). For one descriptor, none of the three ever decreases, so that
 * differences are valid. */
struct pm_count_read {
	uint64_t value, enabled_ns, running_ns;
};

struct pm_count {
	enum pm_stat_state state;
	uint64_t raw, enabled_ns, running_ns;
	uint64_t value; /* raw * enabled / running, rounded; 0 without a value */
};

/* Returns @after - @before, member by member. -ERANGE if one would be negative (a counter
 * was closed in between); @out is unchanged then. */
int pm_count_delta(const struct pm_count_read *before, const struct pm_count_read *after,
		   struct pm_count_read *out);
/* Scales a count up to the time in which it was enabled. A counter that ran for 0 of its
 * N ns is NOT_COUNTED; one that was never enabled (none of its tasks ran) is OK with 0.
 * Saturates. Pure. */
struct pm_count pm_count_scale(const struct pm_count_read *delta);

/* ---- counters ------------------------------------------------------------------------ */

struct pm_counters_options {
	const struct pm_event_spec *specs; /* borrowed until pm_counters_free() */
	size_t specs_len;
	/* Used with the fields that belong to it, as in struct pm_perf_options. */
	enum pm_perf_target target;
	pid_t pid;
	const pid_t *tids;
	size_t tids_len;
	int cgroup_fd;
	const char *cpus;
	bool no_inherit;
	/* Otherwise counting starts with the exec of PM_PERF_COMMAND, or at once. */
	bool begin_disabled;
	/* If the members of a group do not fit on the counters together, opens them one
	 * by one and adds a note (perf's :W for all groups). */
	bool weak_groups;
	/* Which rows there are; one row for everything by default. */
	enum pm_counters_by {
		PM_COUNTERS_SUM,
		PM_COUNTERS_BY_CPU,
		/* One row for the command's first thread, or for each of `tids`. Threads
		 * started by these get rows of their own once they have ended
		 * (attr.inherit_stat, PERF_RECORD_READ). While they run, and if there can
		 * be no ring or the kernel reports no counts (pm_counters_ends_untold()),
		 * their counts are included in the row of the thread that they descend
		 * from. Not for whole CPUs. */
		PM_COUNTERS_BY_THREAD,
	} by;
};

/* How an event was opened. */
struct pm_counters_event {
	struct pm_event_spec spec; /* never substituted */
	enum pm_stat_state state; /* OK, NOT_SUPPORTED or NOT_PERMITTED */
	bool kernel_dropped; /* the kernel may not be counted: user space only */
	bool group_broken; /* not counted together with its group */
	struct pm_error why; /* reason for a state that is not OK */
};

struct pm_counters_row {
	pid_t pid, tid; /* 0: the row is not by thread */
	char comm[16];
	int cpu; /* -1: the row is not by CPU */
};

struct pm_counters;

/*
 * Opens every event that this machine has and this user may use. An event that cannot be
 * opened is reported as a state of that event, not as an error. Errors are a target that
 * is gone (-ESRCH), a CPU that does not exist (-ENODEV), and too few descriptors or too
 * little memory. If one member of a group is missing, the others are opened without it.
 * Uncore PMUs, which belong to a socket, are counted on one CPU of each socket
 * (pm_event_spec.cpus), whatever the target is.
 */
int pm_counters_open(struct pm_counters **out, const struct pm_counters_options *options,
		     struct pm_error *err);
void pm_counters_free(struct pm_counters *counters);
const struct pm_counters_event *pm_counters_events(const struct pm_counters *counters,
						   size_t *len);
const struct pm_perf_notes *pm_counters_notes(const struct pm_counters *counters);
int pm_counters_enable(struct pm_counters *counters);
int pm_counters_disable(struct pm_counters *counters);
/* By thread, the kernel writes the counts of ended threads to rings:
 * pm_counters_poll_fds() returns their descriptors for poll(2), and pm_counters_drain()
 * is to be called when one of them is readable. The other modes have no rings. */
const int *pm_counters_poll_fds(const struct pm_counters *counters, size_t *len);
void pm_counters_drain(struct pm_counters *counters);

/* Values at one moment. Empty if zero-initialised; to be reused for each reading. */
struct pm_counters_values {
	PM_VEC(struct pm_counters_row) rows; /* rows are only ever added */
	/* All rows × events, row by row. If a row is a sum (over CPUs or threads), the
	 * parts are scaled one by one, since they were multiplexed differently. */
	PM_VEC(struct pm_count_read) reads;
	PM_VEC(uint64_t) whole; /* scaled from the start */
	/* Sum of the differences between successive readings, each scaled, for the value
	 * between two readings. It differs from `whole`, since an event may have had no
	 * counter between two readings. */
	PM_VEC(uint64_t) scaled;
};
void pm_counters_values_release(struct pm_counters_values *values);
/*
 * Reads all counters. Each group takes one read(2) if the kernel supports it (it does not
 * for running tasks together with the tasks they start). Events that are not OK read as
 * 0. By thread, also collects the counts of ended threads from the rings. Returns 0 or a
 * negative error.
 */
int pm_counters_read(struct pm_counters *counters, struct pm_counters_values *out,
		     struct pm_error *err);
/*
 * These return the count between two readings, of one row or of all rows together.
 * @before NULL: since the start. The count is also NOT_COUNTED if a row by thread has
 * decreased because a thread that it included has ended and has its own row now.
 */
struct pm_count pm_counters_row_count(const struct pm_counters *counters,
				      const struct pm_counters_values *before,
				      const struct pm_counters_values *after, size_t row,
				      size_t event);
struct pm_count pm_counters_total(const struct pm_counters *counters,
				  const struct pm_counters_values *before,
				  const struct pm_counters_values *after, size_t event);
/* Returns an upper bound of the number of threads that ended without getting a row
 * because some of their records did not arrive. Their counts are in the row of the thread
 * that they descend from. Final once all of them have ended. */
uint64_t pm_counters_lost_rows(const struct pm_counters *counters);
/* Whether threads have ended and the kernel reported the counts of none of them: a kernel
 * bug in most versions from Linux 5.13 to 6.18. */
bool pm_counters_ends_untold(const struct pm_counters *counters);

/* ---- hits ---------------------------------------------------------------------------- */

/*
 * Places in code, each a uprobe or an execution breakpoint, in one group with counters:
 * each time a thread reaches one of them, the kernel writes the counts of that thread.
 * Threads and processes started by the target are included (inherited PERF_SAMPLE_READ,
 * Linux 6.12). Where the kernel refuses that, each thread of the target is opened on its
 * own: from its first instruction if the caller holds it, otherwise with a note.
 */
struct pm_hits_options {
	const struct pm_event_spec *counters; /* only kinds that count; borrowed */
	size_t counters_len;
	/* Resolved probes (pm/probe.h: path, config2) and :x breakpoints. If several
	 * share an address, each gets its own hits, in this order. */
	const struct pm_event_spec *places;
	size_t places_len;
	/* One class for each place. pm_hits_count() returns the number of hits for each
	 * class. Use at most some dozens: each is an event of the kernel. NULL: all
	 * places are of class 0. Borrowed for the call. */
	const uint32_t *classes;
	enum pm_perf_target target; /* COMMAND or TASKS */
	pid_t pid;
	const pid_t *tids;
	size_t tids_len;
	bool no_inherit;
	bool begin_disabled;
	/* The caller holds each new thread until it has called pm_hits_follow() for it,
	 * as a tracer can. Nothing has to be inherited then. */
	bool follow;
	/* Stacks at the hits of some places: how many bytes are copied (0: none), and for
	 * which places. */
	uint32_t stack_bytes;
	/* One flag for each place, NULL: none; borrowed for the call. */
	const bool *with_stack;
	size_t ring_pages; /* data pages of each ring, 0: choose */
};

enum {
	PM_HITS_COUNTERS_MAX = 32
};

struct pm_hit {
	uint64_t time; /* ns, CLOCK_MONOTONIC */
	pid_t pid, tid;
	uint32_t cpu;
	uint32_t place; /* index in `places` */
	uint64_t sp, ip; /* user space, at the place */
	uint64_t flags; /* EFLAGS; 0 on other architectures */
	/*
	 * The counts of the thread since it started or was opened, on all CPUs. When a
	 * thread moves to another CPU, the context switch reports what it had counted on
	 * the old one (context-switches is a sampling member of the group).
	 */
	uint64_t counts[PM_HITS_COUNTERS_MAX]; /* raw, by index in `counters` */
	uint64_t enabled_ns, running_ns; /* of the group, also since the thread started */
	/* Registers and stack, if requested; borrowed. */
	const struct pm_sample *sample;
};

struct pm_hits;

/* Checks whether this user may use hits of uprobes here; @err says what is missing. */
int pm_hits_check(struct pm_error *err);
int pm_hits_open(struct pm_hits **out, const struct pm_hits_options *options,
		 struct pm_error *err);
void pm_hits_free(struct pm_hits *hits);
/* States of the counters, in order of the options. Those that are not OK are not in the
 * group. */
const struct pm_counters_event *pm_hits_counters(const struct pm_hits *hits, size_t *len);
const struct pm_perf_notes *pm_hits_notes(const struct pm_hits *hits);
const int *pm_hits_poll_fds(const struct pm_hits *hits, size_t *len);
int pm_hits_enable(struct pm_hits *hits);
int pm_hits_disable(struct pm_hits *hits);
/* Adds one more thread. Not allowed in the middle of a round. */
int pm_hits_follow(struct pm_hits *hits, pid_t tid, struct pm_error *err);
/* With pm_hits_finds_threads(): the caller holds new threads from now on, as with
 * `follow`. */
void pm_hits_hold(struct pm_hits *hits);
/* Whether @tid is followed on its own, as far as the records read so far show. */
bool pm_hits_follows(const struct pm_hits *hits, pid_t tid);
/* To be called when the thread @former has become @tid by an exec, after all records so
 * far have been read. */
void pm_hits_renamed(struct pm_hits *hits, pid_t former, pid_t tid);
/* starts a round, like pm_perf_begin() */
void pm_hits_begin(struct pm_hits *hits, bool final);

enum pm_hits_what {
	PM_HITS_HIT,
	PM_HITS_RECORD, /* FORK, EXIT, COMM, MMAP2, for the caller's process table */
};
/* Returns the next hit or record of the round, oldest first, borrowed until the next
 * call. Returns 1, 0 at the end of the round, or a negative error. PM_HITS_HIT fills
 * @hit, PM_HITS_RECORD fills @record. */
int pm_hits_next(struct pm_hits *hits, enum pm_hits_what *what, struct pm_hit *hit,
		 struct pm_record *record, struct pm_error *err);
/* Number of hits that are missing because a ring had no space. Valid once events are
 * disabled and the last round is over. */
uint64_t pm_hits_lost(const struct pm_hits *hits);
/* The same for the places of one class. */
uint64_t pm_hits_lost_of(const struct pm_hits *hits, uint32_t class);
/* Sets *out to how often the kernel saw hits of a class, lost ones included: the true
 * number of calls. */
int pm_hits_count(const struct pm_hits *hits, uint32_t class, uint64_t *out);
/* Sets @out[] to the counts of the whole target, by index in `counters`; 0 for counters
 * that are not OK. */
int pm_hits_totals(const struct pm_hits *hits, struct pm_count_read *out);
/* Whether other events used the processor's counters for some of the time. Hits were
 * missed then, and the totals are too small. */
bool pm_hits_crowded(const struct pm_hits *hits);
/* Whether threads ran for a moment before their events were opened, because nothing is
 * inherited here. Some of their first hits may be missing and are in no count. */
bool pm_hits_missed(const struct pm_hits *hits);
/* Whether each round looks for new threads because nothing is inherited. The more
 * frequent the rounds, the fewer threads are missed. */
bool pm_hits_finds_threads(const struct pm_hits *hits);
/* Lost records of any kind, known at any time. They include context switches; if one of
 * these is lost, the counts of its thread may be too small for a while. */
uint64_t pm_hits_lost_records(const struct pm_hits *hits);

/* ---- which instructions take a probe --------------------------------------------------- */

struct pm_probed_insn {
	uint8_t bytes[16]; /* the instruction, padded with zeros */
	bool refused; /* the kernel refuses a probe here: there would be no hits */
};
/*
 * Asks the kernel about all instructions at once, which takes about 0.1 s whatever their
 * number. They must be code of the mode that this program runs in. Requires permission to
 * use probes. Returns 0; on a negative error, with @err, nothing is known.
 */
int pm_hits_ask(struct pm_probed_insn *insns, size_t len, struct pm_error *err);
