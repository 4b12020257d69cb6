/* SPDX-License-Identifier: MIT */
/*
 * cfi-loop MS: spends its time in functions whose CFI says that they are their own
 * caller: `still` at the same place of the stack, `rising` sixteen bytes further up each
 * time. The loops do not begin at the functions' first bytes, as a return to the first
 * byte of a function is a root. For x86-64.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

void still(long rounds);
void rising(long rounds);

#if defined(__x86_64__)
/* DW_CFA_val_expression (0x16): register 16, the return address, is DW_OP_breg16 0, itself. */
__asm__(".text\n"
	".globl still\n"
	".type still, @function\n"
	"still:\n"
	".cfi_startproc\n"
	".cfi_def_cfa %rsp, 0\n"
	".cfi_escape 0x16, 0x10, 0x02, 0x80, 0x00\n"
	"nop\n"
	"1: dec %rdi\n"
	"jnz 1b\n"
	"ret\n"
	".cfi_endproc\n"
	".size still, .-still\n"
	".globl rising\n"
	".type rising, @function\n"
	"rising:\n"
	".cfi_startproc\n"
	".cfi_def_cfa %rsp, 16\n"
	".cfi_escape 0x16, 0x10, 0x02, 0x80, 0x00\n"
	"nop\n"
	"1: dec %rdi\n"
	"jnz 1b\n"
	"ret\n"
	".cfi_endproc\n"
	".size rising, .-rising\n");
#else
void still(long rounds)
{
	(void)rounds;
}

void rising(long rounds)
{
	(void)rounds;
}
#endif

/* CPU time, as other processes may delay us. */
static long now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

int main(int argc, char **argv)
{
	long end = now_ms() + (argc > 1 ? strtol(argv[1], NULL, 10) : 200);

#if !defined(__x86_64__)
	fprintf(stderr, "cfi-loop: its CFI is for x86-64\n");
	return 1;
#endif
	while (now_ms() < end) {
		still(1000000);
		rising(1000000);
	}
	return 0;
}
