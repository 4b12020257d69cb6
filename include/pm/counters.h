/* SPDX-License-Identifier: MIT */
/*
 * Counting events of the kernel, beside the sampling of pm/perf.h: counters that are read, and
 * hits, which are places in code that tell all counters of a group each time a thread comes by.
 * Source throughout: perf_event_open(2), linux/perf_event.h.
 */
#pragma once

#include "pm/perf.h"

/* ---- values -------------------------------------------------------------------------- */

/* What is known of a number. Anything but the first two has no value: it is never 0. */
enum pm_count_state {
	PM_COUNT_OK,
	PM_COUNT_MULTIPLEXED, /* counted a part of the time, and scaled */
	PM_COUNT_NOT_COUNTED, /* the event was never on a counter */
	PM_COUNT_NOT_SUPPORTED, /* this machine does not have it */
	PM_COUNT_NOT_PERMITTED, /* this user may not have it */
};

/* As read(2) gives it. Only ever grows for one descriptor: subtract all three. */
struct pm_count_read {
	uint64_t value, enabled_ns, running_ns;
};

struct pm_count {
	enum pm_count_state state;
	uint64_t raw, enabled_ns, running_ns;
	uint64_t value; /* raw * enabled / running, rounded; 0 without a value */
};

/* @after - @before, member by member. -ERANGE when one would be negative (a counter that was
 * closed in between); @ret is unchanged then. */
int pm_count_delta(const struct pm_count_read *before, const struct pm_count_read *after,
		   struct pm_count_read *ret);
/* A counter that ran 0 of its N ns is NOT_COUNTED; one that was never enabled (no task of it
 * ran) is OK with 0. Saturates. Pure. */
struct pm_count pm_count_scale(const struct pm_count_read *delta);

/* ---- counters ------------------------------------------------------------------------ */

struct pm_counters_options {
	const struct pm_event_spec *specs; /* borrowed until pm_counters_free() */
	size_t specs_len;
	enum pm_perf_target
		target; /* with what belongs to it, as in struct pm_perf_options */
	pid_t pid;
	const pid_t *tids;
	size_t tids_len;
	int cgroup_fd;
	const char *cpus;
	bool no_inherit;
	/* Else on with the exec of PM_PERF_COMMAND, or at once. */
	bool begin_disabled;
	/* A group whose members do not fit on the counters together is opened one by one,
	 * and a note tells so (perf's :W for all groups). */
	bool weak_groups;
	/* What rows there are; without, one row for all. */
	enum pm_counters_by {
		PM_COUNTERS_SUM,
		PM_COUNTERS_BY_CPU,
		/* The command's first thread, or each of `tids`; threads that these start have
		 * rows of their own once they have ended (attr.inherit_stat,
		 * PERF_RECORD_READ). As long as they run, and where no ring can be had or the
		 * kernel tells nothing (pm_counters_ends_untold()), their counts are in the
		 * row of the one that all came from. Not of whole CPUs. */
		PM_COUNTERS_BY_THREAD,
	} by;
};

/* What became of an event. */
struct pm_counters_event {
	struct pm_event_spec spec; /* never substituted */
	enum pm_count_state state; /* OK, NOT_SUPPORTED or NOT_PERMITTED */
	bool kernel_dropped; /* the kernel may not be counted here: user space only */
	bool group_broken; /* not counted together with its group */
	struct pm_error why; /* of a state that is not OK */
};

struct pm_counters_row {
	pid_t pid, tid; /* 0: not by thread */
	char comm[16];
	int cpu; /* -1: not by CPU */
};

struct pm_counters;

/*
 * Opens every event that this machine has and this user may have. An event that cannot be
 * opened is a state of that event, not an error; an error is a target that is gone (-ESRCH), a
 * CPU that is not there (-ENODEV), no descriptors or no memory. Members of a group with one
 * that is not there are opened without it. Uncore PMUs, which belong to a socket, are counted
 * on one CPU of each of them (pm_event_spec.cpus), whatever the target is.
 */
int pm_counters_open(struct pm_counters **ret, const struct pm_counters_options *options,
		     struct pm_error *err);
void pm_counters_free(struct pm_counters *counters);
const struct pm_counters_event *pm_counters_events(const struct pm_counters *counters,
						   size_t *len);
const struct pm_perf_notes *pm_counters_notes(const struct pm_counters *counters);
int pm_counters_enable(struct pm_counters *counters);
int pm_counters_disable(struct pm_counters *counters);
/* By thread, what tells of ended ones lies in rings: descriptors for poll(2), and what to call
 * when one of them is readable. None in the other ways. */
const int *pm_counters_poll_fds(const struct pm_counters *counters, size_t *len);
void pm_counters_drain(struct pm_counters *counters);

/* Values of one moment; zero-initialised is empty, used again for each reading. */
struct pm_counters_values {
	PM_VEC(struct pm_counters_row) rows; /* rows are never lost, only added */
	/* All rows × events, row by row. What a row is the sum of (CPUs, threads) is scaled one
	 * by one, for they were not multiplexed alike. */
	PM_VEC(struct pm_count_read) reads;
	PM_VEC(uint64_t) whole; /* scaled from the beginning */
	/* Sums of what was scaled from one reading to the next: what was between two of them.
	 * Not the whole, for an event may have been on no counter in between. */
	PM_VEC(uint64_t) scaled;
};
void pm_counters_values_release(struct pm_counters_values *values);
/*
 * Reads them all, groups each in one read(2) where the kernel lets it (not of tasks that run
 * already, with what they start). Of events that are not OK the reads are 0. By thread, takes also what ended threads have left in the ring. 0 or negative.
 */
int pm_counters_read(struct pm_counters *counters, struct pm_counters_values *ret,
		     struct pm_error *err);
/*
 * What was counted between two readings, of one row, or of all of them together. @before NULL:
 * since the beginning. NOT_COUNTED also for a row by thread that has got less, because one of
 * those that it stood for has ended and has its own row now.
 */
struct pm_count pm_counters_row_count(const struct pm_counters *counters,
				      const struct pm_counters_values *before,
				      const struct pm_counters_values *after, size_t row,
				      size_t event);
struct pm_count pm_counters_total(const struct pm_counters *counters,
				  const struct pm_counters_values *before,
				  const struct pm_counters_values *after, size_t event);
/* At most so many threads have ended without a row: not all records of them came. What they had
 * counted is in the row of the one that they came from. Known once all of them have ended. */
uint64_t pm_counters_lost_rows(const struct pm_counters *counters);
/* Whether threads have ended, and the kernel has told of none what it had counted: most of
 * Linux 5.13 to 6.18 do not, by a mistake. */
bool pm_counters_ends_untold(const struct pm_counters *counters);

/* ---- hits ---------------------------------------------------------------------------- */

/*
 * Places in code, each a uprobe or an execution breakpoint, in one group with counters: each
 * time a thread comes by one of them the kernel writes what the counters of that thread are.
 * Threads and processes that the target starts are counted, too (inherited PERF_SAMPLE_READ,
 * Linux 6.12; before that, where it is refused, per thread of the target: from their first
 * instruction on if the caller holds them, else with a note).
 */
struct pm_hits_options {
	const struct pm_event_spec *counters; /* kinds that count only; borrowed */
	size_t counters_len;
	/* Resolved probes (pm/probe.h: path, config2) and breakpoints of :x. Of several at one
	 * address each gets its hits, in their order. */
	const struct pm_event_spec *places;
	size_t places_len;
	/* One for each place: how often those with the same number were hit is known in all
	 * (pm_hits_count()). At most some dozens: each is an event of the kernel. NULL: all are
	 * of class 0. Borrowed for the call. */
	const uint32_t *classes;
	enum pm_perf_target target; /* COMMAND or TASKS */
	pid_t pid;
	const pid_t *tids;
	size_t tids_len;
	bool no_inherit;
	bool begin_disabled;
	/* The caller holds each new thread until pm_hits_follow() was called for it, as a tracer
	 * can: so nothing need be inherited. */
	bool follow;
	/* For stacks at a hit of a place: bytes of it that are copied, 0: none; and which. */
	uint32_t stack_bytes;
	const bool
		*with_stack; /* one for each place, NULL: none; borrowed for the call */
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
	uint64_t sp, ip; /* of user space, at the place */
	uint64_t flags; /* EFLAGS; 0 where there is no such thing */
	/*
	 * What the thread's counters had counted, since it began or was opened, on all CPUs.
	 * A thread that moved to another CPU since its last hit tells with the switch what it
	 * had counted there (context-switches as a sampling member of the group).
	 */
	uint64_t counts[PM_HITS_COUNTERS_MAX]; /* raw, by index in `counters` */
	uint64_t enabled_ns, running_ns; /* of the group, in the same way */
	const struct pm_sample
		*sample; /* registers and stack, where asked for; borrowed */
};

struct pm_hits;

/* Whether this user may have hits of uprobes here; @err says what is missing. */
int pm_hits_check(struct pm_error *err);
int pm_hits_open(struct pm_hits **ret, const struct pm_hits_options *options,
		 struct pm_error *err);
void pm_hits_free(struct pm_hits *hits);
/* States of the counters, in their order: those that are not OK are not in the group. */
const struct pm_counters_event *pm_hits_counters(const struct pm_hits *hits, size_t *len);
const struct pm_perf_notes *pm_hits_notes(const struct pm_hits *hits);
const int *pm_hits_poll_fds(const struct pm_hits *hits, size_t *len);
int pm_hits_enable(struct pm_hits *hits);
int pm_hits_disable(struct pm_hits *hits);
/* One more thread. Not in the middle of a round. */
int pm_hits_follow(struct pm_hits *hits, pid_t tid, struct pm_error *err);
/* Where pm_hits_finds_threads(): from now on the caller holds them, as with `follow`. */
void pm_hits_hold(struct pm_hits *hits);
/* Whether @tid is followed on its own, as far as has been read. */
bool pm_hits_follows(const struct pm_hits *hits, pid_t tid);
/* By an exec the thread @former has become @tid. All records so far have been read. */
void pm_hits_renamed(struct pm_hits *hits, pid_t former, pid_t tid);
void pm_hits_begin(struct pm_hits *hits, bool final); /* a round, as pm_perf_begin() */

enum pm_hits_what {
	PM_HITS_HIT,
	PM_HITS_RECORD, /* FORK, EXIT, COMM, MMAP2: the caller keeps processes by it */
};
/* The next of the round, oldest first, borrowed until the next call. 1, 0 at the end of the
 * round, or negative. Of PM_HITS_HIT @hit is filled, of the other @record. */
int pm_hits_next(struct pm_hits *hits, enum pm_hits_what *what, struct pm_hit *hit,
		 struct pm_record *record, struct pm_error *err);
/* Once events are disabled and the last round is over: hits that found no room in a ring, and
 * which are therefore missing. */
uint64_t pm_hits_lost(const struct pm_hits *hits);
/* The same of the places of one class. */
uint64_t pm_hits_lost_of(const struct pm_hits *hits, uint32_t class);
/* How often the kernel saw places of a class hit, lost ones too: the truth about calls. */
int pm_hits_count(const struct pm_hits *hits, uint32_t class, uint64_t *ret);
/* What was counted in all of the target, by index in `counters`. Of those that are not OK 0. */
int pm_hits_totals(const struct pm_hits *hits, struct pm_count_read *ret);
/* Whether the processor's counters were given to others for some of the time: hits were not seen
 * then, and totals are too small. */
bool pm_hits_crowded(const struct pm_hits *hits);
/* Whether threads ran for a moment before they were looked at, as nothing is handed on here: any
 * of their first hits may be missing, and no count knows of them. */
bool pm_hits_missed(const struct pm_hits *hits);
/* Whether new threads are looked for in each round, as nothing is handed on to them: the sooner
 * rounds follow on each other, the less is missed. */
bool pm_hits_finds_threads(const struct pm_hits *hits);
/* Records of any kind that were lost, known at any time. Those of threads that leave a CPU are
 * among them, and without these the counts of a thread may be too small for a while. */
uint64_t pm_hits_lost_records(const struct pm_hits *hits);

/* ---- which instructions take a probe --------------------------------------------------- */

struct pm_probed_insn {
	uint8_t bytes[16]; /* the instruction, and zeros */
	bool refused; /* the kernel puts no probe on it: there would be no hits */
};
/*
 * Asks the kernel about all of them at once, which takes about 0.1 s however many they are: code
 * of the mode that this program runs in. It is for who may have probes. 0; negative with @err,
 * and nothing is known.
 */
int pm_hits_ask(struct pm_probed_insn *insns, size_t len, struct pm_error *err);
