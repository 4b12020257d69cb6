/* SPDX-License-Identifier: MIT */
/*
 * no-cfi MS: for MS milliseconds of CPU time, runs code that has no CFI and creates its
 * frame below the registers that it has saved, like the AVX2 code of BLAKE3: the word
 * above the one that the frame pointer points at is not a return address, and the stack
 * pointer has been rounded down. Half of the time each is spent in
 *   main, calls_leaf, leaf_without_cfi
 *   main, calls_caller, caller_without_cfi, called_back
 */
#include "unwind-burn.h"

#define ENTER               \
	"	push %rbp\n"      \
	"	push %r15\n"      \
	"	push %r14\n"      \
	"	push %rbx\n"      \
	"	mov %rsp, %rbp\n" \
	"	sub $680, %rsp\n" \
	"	and $-64, %rsp\n"
#define LEAVE               \
	"	mov %rbp, %rsp\n" \
	"	pop %rbx\n"       \
	"	pop %r14\n"       \
	"	pop %r15\n"       \
	"	pop %rbp\n"       \
	"	ret\n"

uint64_t leaf_without_cfi(uint64_t x, uint64_t steps);
uint64_t caller_without_cfi(uint64_t (*fn)(uint64_t), uint64_t x);

__asm__("	.text\n"
	"	.p2align 4\n"
	"	.type leaf_without_cfi, @function\n"
	"leaf_without_cfi:\n" ENTER "	mov %rdi, %rax\n"
	"	mov %rsi, 8(%rsp)\n"
	"1:	mov %rax, (%rsp)\n"
	"	mov %rax, %rbx\n"
	"	shl $13, %rbx\n"
	"	xor %rbx, %rax\n"
	"	mov %rax, %r14\n"
	"	shr $7, %r14\n"
	"	xor %r14, %rax\n"
	"	mov %rax, %r15\n"
	"	shl $17, %r15\n"
	"	xor %r15, %rax\n"
	"	decq 8(%rsp)\n"
	"	jne 1b\n" LEAVE "	.size leaf_without_cfi, . - leaf_without_cfi\n"
	"	.p2align 4\n"
	"	.type caller_without_cfi, @function\n"
	"caller_without_cfi:\n" ENTER "	mov %rdi, %rbx\n"
	"	mov %rsi, %rdi\n"
	"	call *%rbx\n"
	"	mov %rax, (%rsp)\n"
	"	add (%rsp), %rax\n" LEAVE
	"	.size caller_without_cfi, . - caller_without_cfi\n");

enum {
	STEPS = 50000,
};

static volatile uint64_t sink;

static NOINLINE uint64_t called_back(uint64_t x)
{
	return burn_steps(x, STEPS);
}

static NOINLINE void calls_leaf(void)
{
	sink = leaf_without_cfi(sink + 1, STEPS);
	sink++;
}

static NOINLINE void calls_caller(void)
{
	sink = caller_without_cfi(called_back, sink + 1);
	sink++;
}

int main(int argc, char **argv)
{
	clock_t end = burn_until(argc, argv);

	while (clock() < end) {
		calls_leaf();
		calls_caller();
	}
	return sink == 0;
}
