/* SPDX-License-Identifier: MIT */
/*
 * Timers of the sampled threads: created when a thread is found, deleted when it has
 * ended. They belong to the helper.
 */
#pragma once

#include "timer-signal.h"

struct pm_self_timers {
	uint64_t interval_ns;
	bool stacks;
	pid_t only; /* sample only this thread; 0: all */
	unsigned int round;
	uint64_t look_cpu_ns; /* CPU time at which the next search for threads is due */
	uint64_t links; /* link count of /proc/self/task at the last search */
	unsigned int unchanged; /* number of searches in a row that found no change */
	/* Sums over the threads that have ended, and over all threads after
	 * pm_self_timers_stop(). */
	uint64_t ticks, unread;
	size_t blocked; /* threads without samples because they block SIGPROF */
	/* For the report to the user: */
	size_t threads; /* maximum number of threads with a timer at the same time */
	/* Threads that could not get a timer: in the last search, and the maximum. */
	size_t without_now, without;
	int without_errno;
};

/* Returns the CPU-time clock of another thread of this process. */
clockid_t pm_self_thread_clock(pid_t tid);
/* Creates a timer of @clock that sends signal @number with @value to thread @to. It does
 * not run yet. Returns its id or a negative errno. */
int pm_self_timer_new(clockid_t clock, pid_t to, int number, void *value);
int pm_self_timer_run(int timer, uint64_t first_ns, uint64_t interval_ns);
void pm_self_timer_delete(int timer);

/* Creates timers for new threads and deletes those of ended ones. Returns 0 or a negative
 * errno. */
int pm_self_timers_look(struct pm_self_timers *timers);
/* The same, unless the last search was only a short CPU time ago. */
int pm_self_timers_look_again(struct pm_self_timers *timers);
/* Whether many searches in a row found the same threads. */
bool pm_self_timers_stable(const struct pm_self_timers *timers);
/* Frees the slot of a thread that has ended and whose samples have been read. */
void pm_self_timers_release(struct pm_self_timers *timers, struct pm_self_slot *slot);
/* Deletes all timers. The slots then look like those of ended threads. */
void pm_self_timers_stop(void);
