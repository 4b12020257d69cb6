/* SPDX-License-Identifier: MIT */
/* Two coroutines on stacks of their own that switch to each other by swapcontext(3). */
#include "unwind-burn.h"

#include <sys/mman.h>
#include <ucontext.h>

enum {
	STACK_BYTES = 65536,
	PAGE_BYTES = 4096,
};

static ucontext_t back, first, second;
static volatile uint64_t sink;

static NOINLINE void deep(unsigned int depth, ucontext_t *from, ucontext_t *to)
{
	if (depth > 0)
		deep(depth - 1, from, to);
	else
		swapcontext(from, to);
	sink = burn_steps(sink, 2);
}

static void run_first(int a, int b)
{
	sink += (uint64_t)(a + b);
	deep(3, &first, &second);
	deep(0, &first, &back);
	sink++;
	/* Returns to uc_link. */
}

static void run_second(void)
{
	for (;;)
		deep(2, &second, &first);
}

static void *new_stack(void)
{
	uint8_t *stack = mmap(NULL, STACK_BYTES + PAGE_BYTES, PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	/* No other mapping may be adjacent: stacks are distinguished by their
	 * mappings. */
	if (stack == MAP_FAILED || mprotect(stack, PAGE_BYTES, PROT_NONE) != 0)
		exit(1);
	return stack + PAGE_BYTES;
}

static NOINLINE void round_trip(void *stacks[2])
{
	getcontext(&first);
	first.uc_stack.ss_sp = stacks[0];
	first.uc_stack.ss_size = STACK_BYTES;
	first.uc_link = &back;
	makecontext(&first, (void (*)(void))run_first, 2, 3, 4);
	getcontext(&second);
	second.uc_stack.ss_sp = stacks[1];
	second.uc_stack.ss_size = STACK_BYTES;
	second.uc_link = NULL;
	makecontext(&second, run_second, 0);
	swapcontext(&back, &first);
	swapcontext(&back, &first);
	sink++;
}

int main(int argc, char **argv)
{
	clock_t end = burn_until(argc, argv);
	void *stacks[2] = { new_stack(), new_stack() };

	do
		round_trip(stacks);
	while (argc <= 2 && clock() < end);
	return sink == 0;
}
