/* SPDX-License-Identifier: MIT */
/*
 * A program that runs in single steps from its entry point on, with the truth about its
 * stack. Only one of its threads and children runs at a time, the newest first, until it
 * ends or has to wait.
 */
#pragma once

#include "pm/proc.h"
#include "pm/unwind.h"
#include "tests/oracle/shadow.h"
#include "tests/oracle/spaces.h"

enum {
	TRACEES_MAX = 16, /* threads and children at once */
	CODE_BYTES = 16,
	OPS_SLOTS = 1 << 16,
};

/* One thread. */
struct tracee {
	pid_t pid, tid;
	struct pm_unw_regs regs;
	struct shadow_thread shadow;
	/* The step that was started: it may wait in a system call. */
	bool stepping;
	enum shadow_op op;
	struct shadow_regs before;
	int deliver; /* the signal that is delivered with the step */
};

struct tracer_range {
	uint64_t start, end; /* [start, end) */
	bool main; /* grows downward: identified by its end */
};

struct tracer {
	struct tracee *tracees[TRACEES_MAX];
	size_t tracees_len;
	size_t current; /* the one that is stepped */
	struct pm_procs *procs;
	struct spaces_modules modules;
	struct spaces_maps maps; /* of the current tracee */
	unsigned int maps_epoch; /* changes with them */
	bool maps_stale;
	unsigned int signals_epoch; /* changes with handlers and masks */
	/* All mappings, sorted. */
	PM_VEC(struct tracer_range) ranges;
	size_t range; /* the result of the last lookup */
	/* The operations at addresses; direct-mapped. */
	struct {
		uint64_t pc;
		enum shadow_op op;
	} ops[OPS_SLOTS];
	uint64_t steps;
	int exit_status; /* of the first process; -1: it has not exited */
	bool failed; /* a tracee is not in the expected state */
};

/* Starts at the entry point of @argv[0], or with @from_loader at the very first
 * instruction. @env (KEY=VALUE or NULL) is its environment; its output is discarded.
 * Returns 0 or -errno. */
int tracer_start(struct tracer *tracer, char *const argv[], char *env, bool from_loader);
void tracer_release(struct tracer *tracer); /* kills the remaining tracees */

enum tracer_result {
	TRACER_ENDED,
	TRACER_STEPPED, /* one instruction, or the entry into a signal handler */
	TRACER_ARRIVED, /* the same, and a transit has ended */
	TRACER_SWITCHED, /* another thread is stepped from now on */
};
/* Executes one step. @signo: sent before it, so that its handler interrupts exactly here;
 * or 0. */
enum tracer_result tracer_step(struct tracer *tracer, int signo);

struct tracee *tracer_tracee(const struct tracer *tracer);
/* Copies the stack, from @below bytes below the stack pointer upward: at most @len bytes
 * to @ret. */
size_t tracer_stack(struct tracer *tracer, size_t below, uint8_t *ret, size_t len);
/* Reads the mappings again if they may have changed. */
void tracer_refresh(struct tracer *tracer);
bool tracer_catches(const struct tracer *tracer,
		    int signo); /* has an unblocked handler */
bool tracer_peek(const struct tracer *tracer, uint64_t address, uint64_t *ret);
