/* SPDX-License-Identifier: MIT */
/*
 * The truth about a thread that is stepped instruction by instruction: which return addresses
 * stand where, kept by watching call, ret and signals go by. Knows no CFI and no unwinder.
 * It is told each instruction from the first of the program on, where the stack is empty.
 */
#pragma once

#include "pm/base.h"

/* What an instruction is to a stack. */
enum shadow_op {
	SHADOW_OP_OTHER = 1,
	SHADOW_OP_CALL,
	SHADOW_OP_RETURN,
	SHADOW_OP_POP, /* one register from the stack */
	SHADOW_OP_JUMP, /* indirect: may lead out of a function */
	SHADOW_OP_SYSCALL,
	SHADOW_OP_BREAK, /* int3 */
};
enum shadow_op shadow_op_of(const uint8_t code[16]);

/* A caller, or with `interrupted` what a signal interrupted. */
struct shadow_entry {
	uint64_t pc;
	uint64_t sp; /* the stack pointer in this frame */
	/* Where pc stands: the return address's slot; of an interrupted frame the rip in the
	 * sigcontext, which the handler may change. */
	uint64_t slot;
	bool interrupted;
	bool uncalled; /* the return address was written there, by no call */
	bool in_transit; /* when it was interrupted */
};

struct shadow {
	PM_VEC(struct shadow_entry) entries; /* outermost first */
};

/* Names the stack that @sp is in; 0: in no memory that is mapped. */
typedef uint64_t (*shadow_stack_fn)(void *arg, uint64_t sp);
/* Reads 8 bytes of the thread's memory. */
typedef bool (*shadow_read_fn)(void *arg, uint64_t address, uint64_t *ret);

struct shadow_thread {
	struct shadow now;
	/* The stacks that swapcontext(3) or the like left. */
	PM_VEC(struct shadow) parked;
	/*
	 * The stack pointer has left a frame and no instruction has returned yet: inside
	 * longjmp(3), swapcontext(3), _Unwind_RaiseException. `now` is what it goes to.
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

/* Of a register set, what matters. */
struct shadow_regs {
	uint64_t pc, sp, rax;
};

/* The instruction @op was executed. */
enum shadow_event shadow_follow(struct shadow_thread *thread, enum shadow_op op,
				const struct shadow_regs *before,
				const struct shadow_regs *after);
/* A signal's handler was entered. */
void shadow_signal(struct shadow_thread *thread, const struct shadow_regs *before,
		   const struct shadow_regs *after);
/* @to begins with the stack of @from: a fork(2), or a vfork(2). */
void shadow_copy(struct shadow_thread *to, const struct shadow_thread *from);
void shadow_release(struct shadow_thread *thread);
