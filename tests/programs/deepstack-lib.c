/* SPDX-License-Identifier: MIT */
/* The recursions of deepstack.c, which has them in itself and in a shared library. */
#include "deepstack.h"

#include <stddef.h>
#include <string.h>

#define NOINLINE        __attribute__((noinline, noclone))
#define OPAQUE(pointer) __asm__ volatile("" : : "r"(pointer) : "memory")
#if defined(__clang__)
#undef NOINLINE
#define NOINLINE __attribute__((noinline))
#endif

/* Defines a recursive function whose frames have about @bytes bytes. @bottom is not an
 * argument: no register that a frame saves shows which function is at the bottom. */
#define RECURSION(name, bytes)                                             \
	static NOINLINE void name(int frames, void (*const *bottom)(void)) \
	{                                                                  \
		char room[(bytes)-48];                                     \
                                                                           \
		memset(room, frames, 64);                                  \
		OPAQUE(room);                                              \
		if (frames > 1)                                            \
			name(frames - 1, bottom);                          \
		else                                                       \
			(*bottom)();                                       \
		OPAQUE(room);                                              \
	}

RECURSION(rec_small, 200)
RECURSION(rec_middle, 1000)
RECURSION(rec_large, 100000)

void DESCEND(int bytes, int frames, void (*const *bottom)(void))
{
	if (bytes <= 200)
		rec_small(frames, bottom);
	else if (bytes <= 1000)
		rec_middle(frames, bottom);
	else
		rec_large(frames, bottom);
	OPAQUE(NULL);
}
