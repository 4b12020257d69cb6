/* SPDX-License-Identifier: MIT */
#include "tests/oracle/shadow.h"

#include <sys/syscall.h>

enum {
	/* From the return address of a handler to the rip in the kernel's struct
	 * rt_sigframe (arch/x86/include/asm/sigframe.h): pretcode, the head of
	 * ucontext_t, 16 registers. */
	SIGFRAME_RIP = 8 + 40 + 16 * 8,
};

static void push(struct shadow_thread *thread, struct shadow_entry entry)
{
	if (pm_vec_push(&thread->now.entries, entry) < 0)
		abort();
}

static struct shadow_entry *top(struct shadow_thread *thread)
{
	size_t len = thread->now.entries.len;

	return len > 0 ? &thread->now.entries.data[len - 1] : NULL;
}

enum shadow_op shadow_op_of(const uint8_t code[16])
{
	size_t at = 0;
	uint8_t opcode;

	/* Skips bnd, rep, notrack, address and operand size, and REX prefixes. */
	while (at < 14 && (code[at] == 0xf2 || code[at] == 0xf3 || code[at] == 0x3e ||
			   code[at] == 0x2e || code[at] == 0x66 || code[at] == 0x67 ||
			   (code[at] & 0xf0) == 0x40))
		at++;
	opcode = code[at];
	if (opcode == 0xe8)
		return SHADOW_OP_CALL;
	if (opcode == 0xc3 || opcode == 0xc2)
		return SHADOW_OP_RETURN;
	if ((opcode & 0xf8) == 0x58 || opcode == 0x8f)
		return SHADOW_OP_POP;
	if (opcode == 0xff && (code[at + 1] >> 3 & 7) == 2)
		return SHADOW_OP_CALL;
	if (opcode == 0xff && (code[at + 1] >> 3 & 7) == 4)
		return SHADOW_OP_JUMP;
	if (opcode == 0x0f && code[at + 1] == 0x05)
		return SHADOW_OP_SYSCALL;
	return opcode == 0xcc ? SHADOW_OP_BREAK : SHADOW_OP_OTHER;
}

/* Finds the innermost frame of @shadow that is at or above @sp on @stack; returns the
 * length up to it, or 0: none. */
static size_t find_frame(const struct shadow_thread *thread, const struct shadow *shadow,
			 uint64_t stack, uint64_t sp)
{
	for (size_t len = shadow->entries.len; len > 0; len--) {
		uint64_t slot = shadow->entries.data[len - 1].slot;

		if (slot >= sp && thread->stack_of(thread->arg, slot) == stack)
			return len;
	}
	return 0;
}

/* Pushes the return address that was written to @sp, at the start of a new stack, if it
 * is one. */
static void push_uncalled(struct shadow_thread *thread, uint64_t sp)
{
	uint64_t pc;

	if (thread->read(thread->arg, sp, &pc) && thread->stack_of(thread->arg, pc))
		push(thread,
		     (struct shadow_entry){
			     .pc = pc, .sp = sp + 8, .slot = sp, .uncalled = true });
}

/* The stack pointer is on another stack than the innermost frame. */
static void change_stack(struct shadow_thread *thread, uint64_t stack, uint64_t sp)
{
	struct shadow other = { 0 };
	size_t len = find_frame(thread, &thread->now, stack, sp);

	/* longjmp(3) returned from a handler on its own stack. */
	if (len > 0) {
		thread->now.entries.len = len;
		return;
	}
	for (size_t i = 0; i < thread->parked.len; i++) {
		len = find_frame(thread, &thread->parked.data[i], stack, sp);
		if (len == 0)
			continue;
		other = thread->parked.data[i];
		other.entries.len = len;
		thread->parked.data[i] = thread->now;
		thread->now = other;
		return;
	}
	if (pm_vec_push(&thread->parked, thread->now) < 0)
		abort();
	thread->now = other;
	/* The target of swapcontext(3) is treated as called from where makecontext(3)
	 * makes it return to. */
	push_uncalled(thread, sp);
}

static void follow_call(struct shadow_thread *thread, const struct shadow_regs *after)
{
	struct shadow_entry entry = {
		.sp = after->sp + 8,
		.slot = after->sp,
	};

	if (!thread->read(thread->arg, after->sp, &entry.pc))
		abort();
	push(thread, entry);
}

/* Drops frames that the stack pointer has left without a ret. */
static bool drop(struct shadow_thread *thread, uint64_t sp)
{
	bool dropped = false;
	struct shadow_entry *entry;

	while ((entry = top(thread)) && entry->slot < sp) {
		thread->now.entries.len--;
		dropped = true;
	}
	return dropped;
}

static enum shadow_event arrived(struct shadow_thread *thread)
{
	bool was = thread->in_transit;

	thread->in_transit = false;
	return was ? SHADOW_ARRIVED : SHADOW_STAYED;
}

enum shadow_event shadow_follow(struct shadow_thread *thread, enum shadow_op op,
				const struct shadow_regs *before,
				const struct shadow_regs *after)
{
	struct shadow_entry *entry = top(thread);
	uint64_t stack;

	if (op == SHADOW_OP_CALL && after->sp == before->sp - 8) {
		follow_call(thread, after);
		return SHADOW_STAYED;
	}
	if (op == SHADOW_OP_JUMP) {
		/* libgcc's eh_return: pop %rcx, jmp *%rcx */
		drop(thread, after->sp);
		return arrived(thread);
	}
	if (after->sp == before->sp)
		return SHADOW_STAYED;
	if (op == SHADOW_OP_SYSCALL && before->rax == SYS_rt_sigreturn && entry &&
	    entry->interrupted) {
		thread->in_transit = entry->in_transit;
		thread->now.entries.len--;
		return SHADOW_STAYED;
	}
	if (op == SHADOW_OP_RETURN) {
		if (entry && entry->slot == before->sp)
			thread->now.entries.len--;
		else
			drop(thread, after->sp);
		/* The first return on a new stack, to the coroutine's function. */
		if (thread->in_transit && thread->now.entries.len == 0)
			push_uncalled(thread, after->sp);
		return arrived(thread);
	}
	/* vfork(2) keeps its return address in a register, because its child overwrites
	 * the slot. */
	if (op == SHADOW_OP_POP && entry && entry->slot == before->sp)
		return SHADOW_STAYED;
	stack = thread->stack_of(thread->arg, after->sp);
	/* Below the lowest touched page there is no mapping yet. */
	if (stack && thread->stack_of(thread->arg, before->sp) != stack) {
		change_stack(thread, stack, after->sp);
		thread->in_transit = true;
	}
	if (op == SHADOW_OP_OTHER && drop(thread, after->sp))
		thread->in_transit = true;
	return SHADOW_STAYED;
}

void shadow_signal(struct shadow_thread *thread, const struct shadow_regs *before,
		   const struct shadow_regs *after)
{
	push(thread, (struct shadow_entry){
			     .pc = before->pc,
			     .sp = before->sp,
			     .slot = after->sp + SIGFRAME_RIP,
			     .interrupted = true,
			     .in_transit = thread->in_transit,
		     });
	thread->in_transit = false;
	follow_call(thread, after);
}

void shadow_copy(struct shadow_thread *to, const struct shadow_thread *from)
{
	for (size_t i = 0; i < from->now.entries.len; i++)
		push(to, from->now.entries.data[i]);
}

void shadow_release(struct shadow_thread *thread)
{
	for (size_t i = 0; i < thread->parked.len; i++)
		pm_vec_release(&thread->parked.data[i].entries);
	pm_vec_release(&thread->parked);
	pm_vec_release(&thread->now.entries);
}
