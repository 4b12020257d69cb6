/* SPDX-License-Identifier: MIT */
/*
 * The C library ends a program when its last thread ends: that thread calls exit(3). A thread of
 * ours is one more, and so no thread of the program would ever be the last one: nothing would be
 * flushed, and signals would wait for ever, as our threads block them all. The guard is a second
 * thread of ours, which does in the end what the last one would have done.
 *
 * It has the program's table of file descriptors, and keeps it: what is flushed goes where it
 * should. The helper, whose table is another, looks whether anybody else is left.
 */
#pragma once

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>

struct pm_self_guard {
	pthread_t thread;
	pthread_mutex_t lock; /* of all below */
	pthread_cond_t changed;
	pid_t tid;
	bool alone, dismissed;
	sigset_t mask; /* of who began the profile */
};

/* With the signals blocked that it is to block; @mask: what it has when it ends the program. 0, and
 * its number is known; or negative errno. */
int pm_self_guard_start(struct pm_self_guard *guard, const sigset_t *mask);
/* There is no other thread any more: the guard calls exit(3). */
void pm_self_guard_end_program(struct pm_self_guard *guard);
/* To be called also from within its exit(3). */
void pm_self_guard_stop(struct pm_self_guard *guard);

/* Whether the first thread of the process has ended. The process lives on with the others. */
bool pm_self_first_thread_ended(void);
/* And whether none is left but the library's. */
bool pm_self_is_left_alone(void);
