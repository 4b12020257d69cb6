/* SPDX-License-Identifier: MIT */
/*
 * A library whose inline chains are known. MARK(id) notes, in a section of its own, the
 * address of the instruction that it stands for; the line that bears the comment "@tag" is
 * what test-symbols.c expects for it.
 */
#include "truth.h"

#define NOINLINE __attribute__((noinline))
#define INLINE   static inline __attribute__((always_inline))
#define EXPORT   __attribute__((visibility("default")))

volatile int sink;

/* A pair: the distance to the marked instruction, the id. It outlives every strip. */
#define MARK(id)                                                                   \
	__asm__ volatile("9:\tnop\n\t.pushsection pm_truth,\"a\"\n\t.balign 8\n\t" \
			 ".quad 9b - .\n\t.quad %c0\n\t.popsection"                \
			 :                                                         \
			 : "i"(id))

INLINE int deepest(int x, int id)
{
	sink = x;
	MARK(id); /* @deepest */
	return x + sink;
}

INLINE int middle(int x, int id)
{
	int y = sink * x;

	y += deepest(y, id); /* @middle */
	return y;
}

INLINE int upper(int x, int id)
{
	return middle(x - 1, id) + /* @upper */
	       sink;
}

/* Three levels, twice in one function: the same lines inside, others outside. */
EXPORT NOINLINE int pm_truth_chain(int x)
{
	x += upper(x, TRUTH_CHAIN_FIRST); /* @chain-first */
	x *= 3;
	x += upper(x, TRUTH_CHAIN_SECOND); /* @chain-second */
	return x;
}

static NOINLINE int ____local_function(int x)
{
	sink = x;
	MARK(TRUTH_LOCAL); /* @local */
	return sink;
}
/* As glibc has them for its own calls. */
static int __GI_____local_function(int x)
	__attribute__((used, alias("____local_function")));

/* No inlining; calls a local function, which only .symtab and DWARF know. */
EXPORT NOINLINE int pm_truth_plain(int x)
{
	x += ____local_function(x);
	MARK(TRUTH_PLAIN); /* @plain */
	return x * sink;
}

/* One function by three names: the exported one without underscores is its name. */
EXPORT NOINLINE int __pm_truth_alias(int x)
{
	sink = x;
	MARK(TRUTH_ALIAS); /* @alias */
	return sink;
}
EXPORT int pm_truth_alias(int x) __attribute__((weak, alias("__pm_truth_alias")));
static int zz_local_alias(int x) __attribute__((used, alias("__pm_truth_alias")));

/* Split into a hot and a cold part: the cold one is the same function elsewhere. */
EXPORT NOINLINE int pm_truth_cold(int x)
{
	if (__builtin_expect(x == 12345, 0)) {
		pm_truth_never(x);
		MARK(TRUTH_COLD); /* @cold */
		pm_truth_never(deepest(x, TRUTH_COLD_INLINE)); /* @cold-inline */
		return 1;
	}
	sink = x;
	MARK(TRUTH_HOT); /* @hot */
	return sink;
}

__attribute__((cold, noinline)) EXPORT void pm_truth_never(int x)
{
	sink = x;
}

/* Assembler code: no DWARF function, a label without a size, then one with. */
#if defined(__aarch64__)
#define TRAP "brk #0"
#else
#define TRAP "int3"
#endif
__asm__(".text\n"
	".globl pm_truth_unsized\n"
	"pm_truth_unsized:\n"
	"\tnop\n"
	"9:\tnop\n\tret\n"
	".pushsection pm_truth,\"a\"\n\t.balign 8\n\t.quad 9b - .\n\t.quad 7\n\t.popsection\n"
	".globl pm_truth_sized\n"
	".type pm_truth_sized, @function\n"
	"pm_truth_sized:\n\tret\n"
	".size pm_truth_sized, . - pm_truth_sized\n"
	/* Behind the sized one: belongs to nobody. */
	".pushsection pm_truth,\"a\"\n\t.balign 8\n\t.quad 9f - .\n\t.quad 8\n\t.popsection\n"
	"9:\t" TRAP "\n");

/* Through the PLT to itself, as -fPIC does with what may be preempted. */
EXPORT NOINLINE int pm_truth_calls(int x)
{
	return pm_truth_plain(x) + pm_truth_chain(x);
}
