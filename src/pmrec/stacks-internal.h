/* SPDX-License-Identifier: MIT */
/* What stacks*.c share. */
#pragma once

#include "session.h"
#include "stack-names.h"

struct pm_rec_stack_frame {
	uint64_t pc;
	uint64_t address; /* to look up; in the module, or as it is without one */
	uint32_t module; /* PM_FILE_NONE: in none */
};

struct pm_rec_stack_thread {
	pid_t tid;
	struct pm_stat_line seen;
	bool stopped; /* it could be looked at */
	struct pm_trace_regs regs;
	uint8_t *bytes;
	size_t bytes_len, bytes_below; /* the latter lie below the stack pointer */
	uint64_t *theirs; /* libunwind's chain, if it was asked for */
	ssize_t theirs_len; /* negative: it failed */
	const char *stop; /* why there are no more frames; NULL: complete */
	PM_VEC(struct pm_rec_stack_frame) frames;
};

struct pm_rec_stacks {
	PM_VEC(struct pm_rec_stack_thread) threads; /* by tid */
	struct pm_rec_names names;
	uint64_t still_ns; /* how long the first of them stood still */
	pid_t pid;
	bool incomplete; /* threads were made faster than they could be found */
	bool changed; /* what was mapped, while we looked */
	bool verbose;
};

/* To stdout. 0 or negative errno. */
int pm_rec_stacks_print(const struct pm_rec_stacks *stacks, const struct pm_procs *procs);
