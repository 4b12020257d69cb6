/* SPDX-License-Identifier: MIT */
/*
 * probes N [SECONDS]: calls its functions as often as their names say, N times over, and
 * then waits for SECONDS. For tests of probes (tests/cli/pmrec-probes.bats), which count
 * the hits. The markers are those that sys/sdt.h makes, but do not need that header.
 */
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#define NEVER_INLINE __attribute__((noinline))

void thrice(int n), alias_target(int n), alias_other(int n), burn(int n);
int nest(int depth), watched(int n);

/* The counter that activates a marker. */
__attribute__((section(".probes"), used)) volatile uint16_t probes_counted_semaphore;

/* SystemTap wiki, "UserSpaceProbeImplementation": a no-op, and a note that describes
 * it. */
#define MARK(name, semaphore)                                              \
	__asm__ volatile("990: nop\n"                                      \
			 ".pushsection .note.stapsdt,\"\",\"note\"\n"      \
			 ".balign 4\n"                                     \
			 ".4byte 992f-991f, 994f-993f, 3\n"                \
			 "991: .asciz \"stapsdt\"\n"                       \
			 "992: .balign 4\n"                                \
			 "993: .8byte 990b\n"                              \
			 ".8byte _.stapsdt.base\n"                         \
			 ".8byte " semaphore "\n"                          \
			 ".asciz \"probes\"\n"                             \
			 ".asciz \"" name "\"\n"                           \
			 ".asciz \"\"\n"                                   \
			 "994: .balign 4\n"                                \
			 ".popsection\n"                                   \
			 ".ifndef _.stapsdt.base\n"                        \
			 ".pushsection .stapsdt.base,\"aG\",\"progbits\"," \
			 ".stapsdt.base,comdat\n"                          \
			 ".weak _.stapsdt.base\n"                          \
			 ".hidden _.stapsdt.base\n"                        \
			 "_.stapsdt.base: .space 1\n"                      \
			 ".size _.stapsdt.base, 1\n"                       \
			 ".popsection\n"                                   \
			 ".endif\n")

volatile int probes_sum;
volatile int probes_counted_hits; /* how often the counted marker was active */

NEVER_INLINE void thrice(int n)
{
	probes_sum += n;
}

NEVER_INLINE static void hidden(int n)
{
	probes_sum -= n; /* LINE hidden */
}

/* Its code is at each place from which it is called. */
static inline __attribute__((always_inline)) void spread(int n)
{
	probes_sum ^= n; /* LINE spread */
}

NEVER_INLINE void alias_target(int n)
{
	probes_sum += 2 * n;
}
__attribute__((alias("alias_target"))) void alias_other(int n);

/* Calls itself: a stack with five of its frames. */
NEVER_INLINE int nest(int depth)
{
	if (depth == 0)
		return probes_sum;
	return nest(depth - 1) + depth;
}

/* Takes time that samples of other events can see, below a watched function. */
NEVER_INLINE void burn(int n)
{
	for (int i = 0; i < n; i++)
		probes_sum += i;
}

NEVER_INLINE int watched(int n)
{
	burn(n);
	return probes_sum;
}

NEVER_INLINE static void once(int n)
{
	thrice(n);
	thrice(n + 1);
	thrice(n + 2);
	spread(n);
	hidden(n); /* two adjacent copies of one line would be one place */
	spread(n + 1);
	alias_other(n);
	nest(4);
	MARK("plain", "0");
	MARK("twice", "0");
	MARK("twice", "0");
	if (probes_counted_semaphore > 0) {
		MARK("counted", "probes_counted_semaphore");
		probes_counted_hits++;
	}
	free(malloc(100));
}

int main(int argc, char **argv)
{
	int n = argc > 1 ? atoi(argv[1]) : 10;
	int seconds = argc > 2 ? atoi(argv[2]) : 0;

	for (int i = 0; i < n; i++)
		once(i);
	if (argc > 3)
		watched(atoi(argv[3]));
	if (seconds > 0)
		sleep((unsigned int)seconds);
	return probes_counted_hits == n ? 3 : 0;
}
