/* SPDX-License-Identifier: MIT */
/*
 * The truth about a thread that runs in single steps: which return addresses are in which
 * slots, found by watching call, ret and signals. Does not use CFI or an unwinder. It
 * gets each instruction of the program, from the first one on, where the stack is empty.
 */
#pragma once

#include "pm/base.h"

/* The effect of an instruction on a stack. */
enum shadow_op {
	SHADOW_OP_OTHER = 1,
	SHADOW_OP_CALL,
	SHADOW_OP_RETURN,
	SHADOW_OP_POP, /* one register from the stack */
	SHADOW_OP_JUMP, /* indirect: may leave a function */
	SHADOW_OP_SYSCALL,
	SHADOW_OP_BREAK, /* int3 */
};
enum shadow_op shadow_op_of(const uint8_t code[16]);

/* A caller, or, with `interrupted`, a place that a signal interrupted. */
struct shadow_entry {
	uint64_t pc;
	uint64_t sp; /* the stack pointer in this frame */
	/* Where pc is stored: the return address's slot; for an interrupted frame, the
	 * rip in the sigcontext, which the handler may change. */
	uint64_t slot;
	bool interrupted;
	bool uncalled; /* the return address was stored there, but not by a call */
	bool in_transit; /* at the time of the interruption */
};

struct shadow {
	PM_VEC(struct shadow_entry) entries; /* outermost first */
};

/* Identifies the stack of @sp; 0: no mapped memory. */
typedef uint64_t (*shadow_stack_fn)(void *arg, uint64_t sp);
/* Reads 8 bytes of the thread's memory. */
typedef bool (*shadow_read_fn)(void *arg, uint64_t address, uint64_t *ret);

struct shadow_thread {
	struct shadow now;
	/* Stacks that were left by swapcontext(3) or similar functions. */
	PM_VEC(struct shadow) parked;
	/*
	 * The stack pointer has left a frame, and no instruction has returned yet: inside
	 * longjmp(3), swapcontext(3), _Unwind_RaiseException. `now` is the target.
	 */
	bool in_transit;
	shadow_stack_fn stack_of;
	shadow_read_fn read;
	void *arg;
};

enum shadow_event {
	SHADOW_STAYED,
	SHADOW_ARRIVED, /* the transit is over */
};

/* The relevant registers. */
struct shadow_regs {
	uint64_t pc, sp, rax;
};

/* Call after the execution of an instruction @op. */
enum shadow_event shadow_follow(struct shadow_thread *thread, enum shadow_op op,
				const struct shadow_regs *before,
				const struct shadow_regs *after);
/* Call after the entry into a signal handler. */
void shadow_signal(struct shadow_thread *thread, const struct shadow_regs *before,
		   const struct shadow_regs *after);
/* Starts @to with the stack of @from, after a fork(2) or a vfork(2). */
void shadow_copy(struct shadow_thread *to, const struct shadow_thread *from);
void shadow_release(struct shadow_thread *thread);
