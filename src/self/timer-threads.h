/* SPDX-License-Identifier: MIT */
/*
 * Which threads are sampled by timers: made when a thread is seen, deleted when it has gone.
 * The helper's.
 */
#pragma once

#include "timer-signal.h"

struct pm_self_timers {
	uint64_t interval_ns;
	bool stacks;
	pid_t only; /* this thread; 0: all */
	unsigned int round;
	uint64_t look_cpu_ns; /* CPU time at which the next look is due */
	uint64_t links; /* of the folder of threads when it was looked at: how many */
	unsigned int unchanged; /* looks, one behind the other, that found nothing new */
	/* Of threads that have gone; of all once they are stopped. */
	uint64_t ticks, unread;
	size_t blocked; /* without samples, for SIGPROF is blocked there */
	/* For the user. */
	size_t threads; /* that have a timer, at the same time at most */
	size_t without_now, without; /* those that did not; at the same time, at most */
	int without_errno;
};

/* A timer's clock of another thread of this process. */
clockid_t pm_self_thread_clock(pid_t tid);
/* A timer of @clock that will send a signal with @value to a thread: its number, or negative
 * errno. It does not run yet. */
int pm_self_timer_new(clockid_t clock, pid_t to, int number, void *value);
int pm_self_timer_run(int timer, uint64_t first_ns, uint64_t interval_ns);
void pm_self_timer_delete(int timer);

/* Timers for threads that are new, none for those that have gone. 0 or negative errno. */
int pm_self_timers_look(struct pm_self_timers *timers);
/* The same, unless the last look was a moment of CPU time ago. */
int pm_self_timers_look_again(struct pm_self_timers *timers);
/* The threads have been the same for many looks. */
bool pm_self_timers_stable(const struct pm_self_timers *timers);
/* The thread has gone and its samples are taken: the slot becomes free. */
void pm_self_timers_release(struct pm_self_timers *timers, struct pm_self_slot *slot);
/* Deletes all; the slots are as those of threads that have gone. */
void pm_self_timers_stop(void);
