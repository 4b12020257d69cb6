/* SPDX-License-Identifier: MIT */
/*
 * Functions whose instructions are known: `count-instructions CALLS TURNS` calls a loop
 * of TURNS turns CALLS times from another function, and calls two functions that jump to
 * one more every second time, depending on flags and, if there is such a jump, on a
 * register. Prints for each the number of calls and of instructions, without those at its
 * ends. One more function, `unprobed`, begins with an instruction on which the kernel
 * accepts no probe.
 */
#include <stdio.h>
#include <stdlib.h>

void goes_round(unsigned long turns);
void calls_it(unsigned long turns, unsigned long calls);
void on_flags(unsigned long odd), on_register(unsigned long odd), unprobed(void);

#if defined(__x86_64__)
#define FUNCTION "@function"
#define UNPROBED "lock addl $0, -8(%rsp)\n"
__asm__("goes_round:\n"
	"push %rbp\n"
	"1: add $1, %rax\nsub $1, %rdi\njne 1b\n"
	"pop %rbp\nret\n"
	"calls_it:\n"
	"push %rbx\npush %rbp\nmov %rdi, %rbp\nmov %rsi, %rbx\n"
	"1: mov %rbp, %rdi\ncall goes_round\nsub $1, %rbx\njne 1b\n"
	"pop %rbp\npop %rbx\nret\n"
	"on_flags:\n"
	"test %rdi, %rdi\nje jumped_to\nret\n"
	"on_register:\n"
	"test %rdi, %rdi\njne jumped_to\nret\n");
enum {
	ROUND_FIXED = 2,
	CALLER_FIXED = 6,
};
#elif defined(__aarch64__)
#define FUNCTION "%function"
#define UNPROBED "yield\n"
__asm__("goes_round:\n"
	"adr x1, .\n"
	"1: add x2, x2, #1\nsubs x0, x0, #1\nb.ne 1b\n"
	"ret\n"
	"calls_it:\n"
	"stp x29, x30, [sp, #-32]!\nmov x29, sp\nstp x19, x20, [sp, #16]\n"
	"mov x19, x0\nmov x20, x1\n"
	"1: mov x0, x19\nbl goes_round\nsubs x20, x20, #1\nb.ne 1b\n"
	"ldp x19, x20, [sp, #16]\nldp x29, x30, [sp], #32\nret\n"
	"on_flags:\n"
	"cmp x0, #0\nb.eq jumped_to\nret\n"
	"on_register:\n"
	"nop\ntbnz x0, #0, jumped_to\nret\n");
enum {
	ROUND_FIXED = 1,
	CALLER_FIXED = 7,
};
#endif
/* Instructions of each turn, and of each call with its return. */
enum {
	TURN = 3,
	CALL = 5,
};
__asm__(".type goes_round, " FUNCTION "\n.size goes_round, calls_it - goes_round\n"
	".type calls_it, " FUNCTION "\n.size calls_it, on_flags - calls_it\n"
	".type on_flags, " FUNCTION "\n.size on_flags, on_register - on_flags\n"
	".type on_register, " FUNCTION "\n.size on_register, . - on_register\n"
	".type jumped_to, " FUNCTION "\n"
	"jumped_to: nop\nret\n"
	".size jumped_to, . - jumped_to\n"
	".type unprobed, " FUNCTION "\n"
	"unprobed: " UNPROBED "ret\n"
	".size unprobed, . - unprobed\n");

int main(int argc, char **argv)
{
	unsigned long calls = argc > 1 ? strtoul(argv[1], NULL, 10) : 10;
	unsigned long turns = argc > 2 ? strtoul(argv[2], NULL, 10) : 10;
	unsigned long each = ROUND_FIXED + TURN * turns;

	if (calls == 0 || turns == 0)
		return 1;
	calls_it(turns, calls);
	for (unsigned long i = 0; i < calls; i++) {
		on_flags(i % 2);
		on_register(i % 2);
		unprobed();
	}
	printf("goes_round: %lu %lu\n", calls, calls * each);
	printf("calls_it: 1 %lu\n", CALLER_FIXED + calls * (each + CALL));
	/* One before the jump, and the jump itself if it is not taken. */
	printf("on_flags: %lu %lu\n", calls, calls + calls / 2);
	printf("on_register: %lu %lu\n", calls, calls + (calls + 1) / 2);
	return 0;
}
