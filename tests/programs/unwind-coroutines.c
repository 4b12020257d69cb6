/* SPDX-License-Identifier: MIT */
/*
 * Coroutines on stacks that are prepared by hand, one for each way in which libraries end
 * such a stack: with the address of a function that is never reached (libco), with a
 * place behind a jump in code without CFI (boost.context), with a number that is not an
 * address (minicoro), and with a frame pointer of 0. x86-64.
 */
#include "unwind-burn.h"

#include <sys/mman.h>

enum {
	STACK_BYTES = 65536,
	PAGE_BYTES = 4096,
	KINDS = 4,
};

/* Without CFI, as is usual for such code. */
__asm__(".text\n"
	".globl co_switch\n"
	".type co_switch, @function\n"
	"co_switch:\n" /* (void **from, void *to) */
	"	push %rbp\n"
	"	push %rbx\n"
	"	push %r12\n"
	"	push %r13\n"
	"	push %r14\n"
	"	push %r15\n"
	"	mov %rsp, (%rdi)\n"
	"	mov %rsi, %rsp\n"
	"	pop %r15\n"
	"	pop %r14\n"
	"	pop %r13\n"
	"	pop %r12\n"
	"	pop %rbx\n"
	"	pop %rbp\n"
	"	ret\n"
	".size co_switch, . - co_switch\n"
	".globl co_finish\n"
	".type co_finish_jump, @function\n"
	"co_finish_jump:\n"
	"	jmp *%rbx\n"
	"co_finish:\n"
	"	xor %edi, %edi\n"
	"	call _exit@PLT\n"
	"	hlt\n"
	".size co_finish_jump, . - co_finish_jump\n"
	".globl co_by_frame_pointer\n"
	".type co_outer, @function\n"
	"co_outer:\n"
	"	push %rbp\n"
	"	mov %rsp, %rbp\n"
	"	call *%rbx\n"
	"	pop %rbp\n"
	"	ret\n"
	".size co_outer, . - co_outer\n"
	".type co_by_frame_pointer, @function\n"
	"co_by_frame_pointer:\n"
	"	xor %ebp, %ebp\n"
	"	call co_outer\n"
	"	ud2\n"
	".size co_by_frame_pointer, . - co_by_frame_pointer\n");
void co_switch(void **from, void *to);
void co_finish(void);
void co_by_frame_pointer(void);

static void *back, *coroutine;
static volatile uint64_t sink;

static NOINLINE void not_reached(void)
{
	abort();
}

static NOINLINE void body(void)
{
	for (;;) {
		sink = burn_steps(sink, 20000);
		co_switch(&coroutine, back);
	}
}

static void *new_stack(unsigned int kind)
{
	uint8_t *stack = mmap(NULL, STACK_BYTES + 2 * PAGE_BYTES, PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	void *const outermost[KINDS] = { (void *)not_reached, (void *)co_finish,
					 (void *)0xdeaddeaddeaddead, NULL };
	void **top;

	/* No other mapping may be adjacent: stacks are distinguished by their
	 * mappings. */
	if (stack == MAP_FAILED || mprotect(stack, PAGE_BYTES, PROT_NONE) != 0 ||
	    mprotect(stack + PAGE_BYTES + STACK_BYTES, PAGE_BYTES, PROT_NONE) != 0)
		exit(1);
	/* As far below the end of the stack as a call leaves the stack pointer. */
	top = (void **)(void *)(stack + PAGE_BYTES + STACK_BYTES - 64);
	top[-1] = outermost[kind];
	top[-2] = outermost[kind] ? (void *)body : (void *)co_by_frame_pointer;
	top[-4] = (void *)body; /* rbx */
	return top - 8;
}

int main(int argc, char **argv)
{
	clock_t end = burn_until(argc, argv);
	void *coroutines[KINDS];

	for (unsigned int i = 0; i < KINDS; i++)
		coroutines[i] = new_stack(i);
	do {
		for (unsigned int i = 0; i < KINDS; i++) {
			coroutine = coroutines[i];
			co_switch(&back, coroutine);
			coroutines[i] = coroutine;
		}
	} while (argc <= 2 && clock() < end);
	return sink == 1;
}
