/* SPDX-License-Identifier: MIT */
/*
 * Functions that begin with instructions on which kernels accept no probe, most of them
 * common AVX ones: `count-avx CALLS` calls each function CALLS times and prints how
 * often, as pmstat would. `count-avx CALLS wide` also calls one that begins with AVX-512.
 * One, `only_jumps`, consists of nothing but such an instruction, and there is no other
 * place to observe.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef __x86_64__

#define FUNCTION(name, body)                                                         \
	".type " name ", @function\n.globl " name "\n" name ":\n" body ".size " name \
	", . - " name "\n"

__asm__(".text\n" FUNCTION("loads", "vmovdqu (%rsi), %ymm0\nvmovdqu %ymm0, (%rdi)\n"
				    "vzeroupper\nret\n")
		FUNCTION("moves", "vmovd %edi, %xmm0\nvmovd %xmm0, %eax\nret\n")
			FUNCTION("clears", "vpxor %xmm0, %xmm0, %xmm0\nret\n") FUNCTION(
				"loops", "vpxor %xmm0, %xmm0, %xmm0\n"
					 "mov $3, %ecx\n"
					 "1: vpaddd %xmm0, %xmm0, %xmm0\n"
					 "dec %ecx\njne 1b\nret\n")
				FUNCTION("only_jumps", ".byte 0x3e, 0xff, 0xe7\n")
					FUNCTION("plain", "mov %edi, %eax\nret\n")
						FUNCTION("widens",
							 "vmovdqu32 (%rsi), %zmm0\n"
							 "vzeroupper\nret\n"));

int loads(void *to, const void *from), moves(int value), clears(void), loops(void);
int only_jumps(int (*to)(void)), plain(int value), widens(void *to, const void *from);

static int nothing(void)
{
	return 0;
}

int main(int argc, char **argv)
{
	static char from[64], to[64];
	unsigned long calls = argc > 1 ? strtoul(argv[1], NULL, 10) : 10;
	int wide = argc > 2 && strcmp(argv[2], "wide") == 0;

	if (!__builtin_cpu_supports("avx2") ||
	    (wide && !__builtin_cpu_supports("avx512f")))
		return 77;
	for (unsigned long i = 0; i < calls; i++) {
		loads(to, from);
		moves(1);
		clears();
		loops();
		only_jumps(nothing);
		plain(1);
		if (wide)
			widens(to, from);
	}
	printf("loads: %lu 0\nmoves: %lu 0\nclears: %lu 0\nloops: %lu 0\n", calls, calls,
	       calls, calls);
	printf("only_jumps: %lu 0\nplain: %lu 0\n", calls, calls);
	if (wide)
		printf("widens: %lu 0\n", calls);
	return 0;
}

#else

int main(void)
{
	return 77;
}

#endif
