/* SPDX-License-Identifier: MIT */
/* Shared by stacks*.c. */
#pragma once

#include "session.h"
#include "stack-names.h"

struct pm_rec_stack_frame {
	uint64_t pc;
	uint64_t address; /* to look up: in the module, or absolute without one */
	uint32_t module; /* PM_FILE_NONE: in none */
};

struct pm_rec_stack_thread {
	pid_t tid;
	struct pm_stat_line seen;
	bool stopped; /* the thread could be examined */
	struct pm_trace_regs regs;
	uint8_t *bytes;
	size_t bytes_len, bytes_below; /* bytes_below: those below the stack pointer */
	uint64_t *theirs; /* libunwind's chain, if requested */
	ssize_t theirs_len; /* negative: libunwind failed */
	const char *stop; /* why the chain ends early; NULL: complete */
	PM_VEC(struct pm_rec_stack_frame) frames;
};

struct pm_rec_stacks {
	PM_VEC(struct pm_rec_stack_thread) threads; /* sorted by tid */
	struct pm_rec_names names;
	uint64_t still_ns; /* how long the first thread was stopped */
	pid_t pid;
	bool incomplete; /* threads were created faster than they could be found */
	bool changed; /* the mappings changed while the stacks were read */
	bool verbose;
};

/* Prints to stdout. Returns 0 or a negative errno. */
int pm_rec_stacks_print(const struct pm_rec_stacks *stacks, const struct pm_procs *procs);
