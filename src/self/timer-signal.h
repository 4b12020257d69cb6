/* SPDX-License-Identifier: MIT */
/*
 * The part of the timer engine that runs inside the handler of SIGPROF, and what it
 * shares with the helper thread: a slot for each sampled thread.
 *
 * A handler may be pending when a profile ends, and run at any time later. Slots and
 * their buffers are therefore never freed, only reused, and a handler checks whether its
 * slot still belongs to the timer that sent the signal.
 */
#pragma once

#include <signal.h>
#include <stdatomic.h>

#include "pm/base.h"
#include "pm/perf.h"

enum {
	PM_SELF_SLOTS_MAX = 4096, /* threads at the same time */
	PM_SELF_ENTRIES = 64, /* per slot: a quarter of a second of a 250 Hz kernel */
	PM_SELF_STACK_BYTES = 8192, /* copied of a stack, as in engine-perf.c */
	PM_SELF_NO_TIMER = -1,
};

/* One sample. */
struct pm_self_entry {
	uint64_t time; /* CLOCK_MONOTONIC */
	uint64_t regs[PM_DWARF_REGS_MAX]; /* indexed by DWARF number */
	uint32_t ticks; /* timer ticks that the sample stands for */
	uint32_t cpu; /* UINT32_MAX: unknown */
	uint32_t stack_len;
	uint8_t stack[PM_SELF_STACK_BYTES];
};

struct pm_self_slot {
	/* The kernel's number of the timer, or none. The helper sets it before the timer
	 * runs. */
	atomic_int timer;
	/* A handler is running, so no other one may write. */
	atomic_bool busy;
	bool stacks; /* copy stacks */
	/* NULL: the slot was never used, nor were the ones after it. */
	struct pm_self_entry *entries;
	/* Number of entries ever written, and ever taken. */
	atomic_uint head, tail;
	/* Since the slot was given to this thread: ticks of all samples; samples; samples
	 * that found no room; samples whose stack could not be read. */
	_Atomic uint64_t ticks, samples, lost, unread;
	/* The remaining members belong to the helper. */
	pid_t tid; /* 0: the slot is free */
	unsigned int round; /* the last look for threads that found this thread */
	bool gone; /* the thread has ended, but samples of it may be left */
	bool named; /* its name was reported */
	bool blocked; /* the thread blocks SIGPROF */
	uint64_t lost_told;
};

extern struct pm_self_slot pm_self_slots[PM_SELF_SLOTS_MAX];

/* Installs our handler of SIGPROF. Returns 0 or a negative errno. */
int pm_self_signal_install(void);
/* Whether our handler is still installed. */
bool pm_self_signal_is_ours(void);
/*
 * Requires that no timer is running. Restores the program's handler, unless the program
 * has installed another one meanwhile. No signal of ours arrives after that.
 */
void pm_self_signal_remove(void);
