/* SPDX-License-Identifier: MIT */
/*
 * The part of the timer engine that runs in the handler of SIGPROF, and the data that it
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
	PM_SELF_ENTRIES = 64, /* of a slot: a quarter of a second on a kernel with 250
	                       * Hz */
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
	/* The kernel's id of the timer, or an invalid one. The helper sets it before the
	 * timer runs. */
	atomic_int timer;
	/* A handler is running, and no other one may write. */
	atomic_bool busy;
	bool stacks; /* whether stacks are copied */
	/* NULL: neither this slot nor any after it was ever used. */
	struct pm_self_entry *entries;
	/* Numbers of entries that were ever written, and ever read. */
	atomic_uint head, tail;
	/* Counts since the slot was assigned to this thread: ticks of all samples;
	 * samples; samples for which there was no room; samples whose stack could not be
	 * read. */
	_Atomic uint64_t ticks, samples, lost, unread;
	/* The remaining members belong to the helper. */
	pid_t tid; /* 0: the slot is free */
	unsigned int round; /* number of the last search for threads that found this
	                     * one */
	bool gone; /* the thread has ended, but there may be samples of it left */
	bool named; /* its name has been reported */
	bool blocked; /* the thread blocks SIGPROF */
	uint64_t lost_told;
};

extern struct pm_self_slot pm_self_slots[PM_SELF_SLOTS_MAX];

/* Installs our handler of SIGPROF. Returns 0 or a negative errno. */
int pm_self_signal_install(void);
/* Whether our handler is still installed. */
bool pm_self_signal_is_ours(void);
/*
 * Restores the program's handler, unless the program itself has installed another one
 * since then. No timer may be running. No signal of ours arrives after this.
 */
void pm_self_signal_remove(void);
