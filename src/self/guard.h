/* SPDX-License-Identifier: MIT */
/*
 * The C library ends a program when its last thread ends: that thread calls exit(3). As
 * long as the library has a thread, no thread of the program would ever be the last one:
 * nothing would be flushed, and signals would stay pending forever, because our threads
 * block them all. The guard is a second thread of ours, which takes over the duties of
 * the last thread.
 *
 * The guard shares the program's table of file descriptors, so that flushed data are
 * written to the right files. The helper, which has its own table, checks whether any
 * other thread is left.
 */
#pragma once

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>

struct pm_self_guard {
	pthread_t thread;
	pthread_mutex_t lock; /* protects the members below */
	pthread_cond_t changed;
	pid_t tid;
	bool alone, dismissed;
	sigset_t mask; /* of the thread that started the profile */
};

/* Starts the guard, which blocks all signals until it ends the program; it then uses
 * @mask. Returns 0 or a negative errno. After success, the guard's thread id is known. */
int pm_self_guard_start(struct pm_self_guard *guard, const sigset_t *mask);
/* To be called if no other thread is left: the guard calls exit(3). */
void pm_self_guard_end_program(struct pm_self_guard *guard);
/* May also be called from within the guard's exit(3). */
void pm_self_guard_stop(struct pm_self_guard *guard);

enum pm_self_own_thread {
	PM_SELF_HELPER,
	PM_SELF_GUARD,
};

/* Sets a thread id that pm_self_is_own_thread() compares. */
void pm_self_set_own_thread(enum pm_self_own_thread which, pid_t tid);
/* Whether the first thread of the process has ended, while other threads still run. */
bool pm_self_first_thread_ended(void);
/* Whether only the library's threads are left, which implies that the first thread has
 * ended. */
bool pm_self_is_left_alone(void);
