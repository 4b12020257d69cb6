/* SPDX-License-Identifier: MIT */
/*
 * The part of the timer engine that runs inside the handler of SIGPROF, and what it shares with
 * the helper thread: a slot for each thread that is sampled.
 *
 * A handler may be on its way when a profile ends, and begin its work any time later. So slots
 * and their buffers are never given back, only used again, and a handler looks whether its slot
 * is still meant for the timer that it is called by.
 */
#pragma once

#include <signal.h>
#include <stdatomic.h>

#include "pm/base.h"
#include "pm/perf.h"

enum {
	PM_SELF_SLOTS_MAX = 4096, /* threads at a time */
	PM_SELF_ENTRIES = 64, /* of a slot: a quarter of a second of a kernel of 250 Hz */
	PM_SELF_STACK_BYTES = 8192, /* copied of a stack, as engine-perf.c has it */
	PM_SELF_NO_TIMER = -1,
};

/* One sample. */
struct pm_self_entry {
	uint64_t time; /* CLOCK_MONOTONIC */
	uint64_t regs[PM_DWARF_REGS_MAX]; /* by DWARF number */
	uint32_t ticks; /* of the timer that it stands for */
	uint32_t cpu; /* UINT32_MAX: unknown */
	uint32_t stack_len;
	uint8_t stack[PM_SELF_STACK_BYTES];
};

struct pm_self_slot {
	/* The kernel's number of the timer, or none. Set by the helper, before the timer runs. */
	atomic_int timer;
	/* A handler is at work, so that no other one writes. */
	atomic_bool busy;
	bool stacks; /* to be copied */
	struct pm_self_entry
		*entries; /* NULL: was never used, nor were those behind it */
	/* How many were written, ever, and taken. */
	atomic_uint head, tail;
	/* Since the slot is this thread's: ticks of all samples; samples, and those of them that
	 * found no room; those whose stack could not be read. */
	_Atomic uint64_t ticks, samples, lost, unread;
	/* The helper's. */
	pid_t tid; /* 0: the slot is free */
	unsigned int round; /* of looking for threads, in which it was there */
	bool gone; /* the thread, but some of its samples may be there */
	bool named; /* its name was told */
	bool blocked; /* SIGPROF is blocked there */
	uint64_t lost_told;
};

extern struct pm_self_slot pm_self_slots[PM_SELF_SLOTS_MAX];

/* The handler of SIGPROF becomes ours. 0 or negative errno. */
int pm_self_signal_install(void);
/* Whether it still is. */
bool pm_self_signal_is_ours(void);
/*
 * No timer runs any more. The program's handler gets back to its place, unless the program has
 * put another one there meanwhile; no signal of ours comes after that.
 */
void pm_self_signal_remove(void);
