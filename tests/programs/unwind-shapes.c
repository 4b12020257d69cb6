/* SPDX-License-Identifier: MIT */
/*
 * One pass over many shapes of prologues, epilogues and frames. It is built by several
 * compilers with many options, and stepped through by tests/oracle/oracle-step.c. A
 * function is named after the shape that its code should have, provided that the compiler
 * agrees.
 */
#include "unwind-burn.h"

#include <alloca.h>
#include <stdarg.h>
#include <string.h>

/* Callers must not use any knowledge of what it does. */
#define SHAPE NOINLINE __attribute__((used))

typedef uint64_t word;
typedef double vector __attribute__((vector_size(32)));

static volatile word sink = 3;

static SHAPE word leaf(word x)
{
	return x * 3 + 1;
}

/* Uses the red zone, if there is one. */
static SHAPE word red_zone(word x)
{
	volatile word room[8];

	for (int i = 0; i < 3; i++)
		room[(x + (word)i) & 7] = x ^ (word)i;
	return room[x & 7] + room[(x + 1) & 7];
}

static SHAPE word one_saved(word x)
{
	return leaf(x) + x;
}

static SHAPE word all_saved(word a, word b, word c, word d, word e, word f)
{
	word g = leaf(a), h = leaf(b), i = leaf(c);

	OPAQUE(g);
	OPAQUE(h);
	OPAQUE(i);
	return leaf(d + g) + leaf(e + h) + leaf(f + i) + a + b + c + d + e + f + g + h +
	       i;
}

/* Registers saved by mov into an existing frame. */
static SHAPE word saved_late(word x, word y)
{
	volatile word room[40];
	word z;

	room[x & 31] = y;
	if ((x & 0xff) == 0xaa)
		return room[0];
	z = leaf(y);
	OPAQUE(z);
	z += leaf(z) + all_saved(x, y, z, x, y, z);
	return z + x + y + room[x & 31];
}

/* Shrink-wrapped: only one path has the frame. */
static SHAPE word early_exit(word x, word y)
{
	if (x & 1)
		return y + 1;
	if (y == 0x1234)
		return leaf(x) + leaf(y) + y;
	for (word i = 0; i < 2; i++)
		y += all_saved(x, y, i, x, y, i);
	return y + x;
}

static SHAPE __attribute__((cold)) word cold(word x)
{
	return all_saved(x, 1, 2, 3, 4, x) + x;
}

/* A part in .text.unlikely, which begins in the middle of a frame. */
static SHAPE word cold_part(word x, word y)
{
	word z = leaf(x);

	if (__builtin_expect(x & 1, 0)) {
		z += cold(y) + leaf(z);
		z ^= cold(z);
	}
	return z + y + leaf(y);
}

/* More than a page: with -fstack-clash-protection, each page is touched. */
static SHAPE word large_frame(word x)
{
	volatile word room[5000];

	room[x & 1023] = x;
	room[4000 + (x & 511)] = leaf(x);
	return room[x & 1023] + leaf(room[4000 + (x & 511)]);
}

static SHAPE word variable_array(word len, word x)
{
	volatile uint8_t room[len];

	room[len / 2] = (uint8_t)x;
	return leaf(room[len / 2]) + len;
}

static SHAPE word variable_large(word len, word x)
{
	volatile uint8_t *room = alloca(len * 4096);

	room[len] = (uint8_t)x;
	x = leaf(room[len]);
	return all_saved(x, len, x, len, x, len) + room[len];
}

static SHAPE word alloca_in_loop(word rounds, word x)
{
	for (word i = 0; i < rounds; i++) {
		uint8_t *bytes = alloca(16 + (x & 63));

		memset(bytes, (int)x, 16);
		OPAQUE(bytes);
		x += leaf(bytes[3]);
	}
	return x;
}

/* Arguments from the seventh on are on the stack, pushed or stored. */
static SHAPE word many_arguments(word a, word b, word c, word d, word e, word f, word g,
				 word h, word i, word j)
{
	word k = leaf(g) + leaf(h);

	OPAQUE(k);
	return a + b + c + d + e + f + g + h + leaf(i) + leaf(j) + k;
}

static SHAPE word pushes_arguments(word x)
{
	word y = many_arguments(x, 1, 2, 3, 4, 5, 6, leaf(x), 8, x);

	y += many_arguments(y, 1, 2, 3, 4, 5, x, 7, 8, 9);
	return y + many_arguments(1, 2, 3, x, 5, 6, y, 8, leaf(y), 10) + x;
}

static SHAPE word variadic(int count, ...)
{
	va_list list;
	word sum = 0;

	va_start(list, count);
	while (count-- > 0)
		sum += leaf(va_arg(list, word));
	va_end(list);
	return sum;
}

struct large {
	word at[12];
};

static SHAPE struct large returns_struct(word x)
{
	struct large ret;

	for (word i = 0; i < 12; i++)
		ret.at[i] = leaf(x + i);
	return ret;
}

static SHAPE word takes_struct(struct large large, word x)
{
	return leaf(large.at[x % 12]) + large.at[(x + 1) % 12];
}

static SHAPE word passes_struct(word x)
{
	struct large large = returns_struct(x);

	return takes_struct(large, x) + takes_struct(returns_struct(x + 1), x);
}

struct aligned {
	word lane[8];
} __attribute__((aligned(64)));

static SHAPE word take_aligned(struct aligned *aligned)
{
	return leaf(aligned->lane[2] + (word)((uintptr_t)aligned & 63));
}

static SHAPE word realigned(word x)
{
	struct aligned aligned;

	memset(&aligned, (int)x, sizeof(aligned));
	return take_aligned(&aligned) + leaf(aligned.lane[x & 7]);
}

static SHAPE word realigned_saved(word x, word y, word z)
{
	struct aligned aligned = { .lane = { x, y, z } };
	word a = take_aligned(&aligned), b = leaf(a), c = leaf(b + x);

	OPAQUE(c);
	return a + b + c + x + y + z + leaf(c) + take_aligned(&aligned);
}

/* gcc keeps the caller's CFA in a register here (DRAP). */
static SHAPE word realigned_variable(word len, word b, word c, word d, word e, word f,
				     word on_stack)
{
	struct aligned aligned = { .lane = { b, c, d } };
	uint8_t *bytes = alloca(len);

	memset(bytes, (int)b, len);
	OPAQUE(bytes);
	return take_aligned(&aligned) + bytes[len / 2] + e + f + leaf(on_stack) +
	       on_stack + many_arguments(b, c, d, e, f, len, b, c, on_stack, e);
}

/* Vectors that live across a call are spilled to aligned slots. */
static SHAPE __attribute__((target("avx2"))) word avx(word x, word y)
{
	vector a = { (double)x, (double)y, 3, 4 };
	vector b = { 1, (double)x, 3, (double)y };

	x = leaf(x);
	a += b;
	y += leaf(x);
	a *= b;
	x += leaf((word)a[1]);
	return (word)(a[0] + b[2]) + x + y;
}

static SHAPE word tail_caller(word x)
{
	return all_saved(x, x, x, x, x, leaf(x)) ? leaf(x + 2) : early_exit(x, x);
}

static SHAPE word tail_indirect(word x, word (*to)(word))
{
	x += leaf(x);
	return to(x);
}

static SHAPE word chooses(word x)
{
	/* A jump table. */
	switch (x & 7) {
	case 0:
		return leaf(x) + 1;
	case 1:
		return leaf(x + 1) * 2;
	case 2:
		return one_saved(x);
	case 3:
		return leaf(x) ^ leaf(x + 1);
	case 4:
		return red_zone(x);
	case 5:
		return leaf(x) - 7;
	default:
		return early_exit(x, x) + 2;
	}
}

static SHAPE word recursive(word depth, word x)
{
	if (depth == 0)
		return leaf(x);
	x = recursive(depth - 1, x + depth);
	OPAQUE(x);
	return x + depth;
}

static SHAPE word floating(double x, double y)
{
	double z = (double)leaf((word)x);

	z += y * (double)leaf((word)z);
	return (word)(z + x);
}

static SHAPE word wide(long double x, word y)
{
	long double z = x * (long double)leaf(y);

	return (word)(z + (long double)leaf((word)z));
}

static SHAPE word protected_array(word x)
{
	char text[32];

	memset(text, (int)x & 0x3f, sizeof(text));
	OPAQUE(x);
	text[x & 31] = 0;
	return leaf((word)text[3]) + strlen(text);
}

static SHAPE word returns_address(word x)
{
	void *address = __builtin_return_address(0);

	return leaf(x) + (address != NULL);
}

/* Must also save vector registers. */
static SHAPE __attribute__((ms_abi)) word microsoft(word a, word b, word c, word d,
						    word e)
{
	word f = leaf(a + e);

	OPAQUE(f);
	return all_saved(a, b, c, d, e, f) + leaf(f);
}

static SHAPE word all_shapes(word x)
{
	x += leaf(x) + red_zone(x) + one_saved(x) + all_saved(x, 2, x, 4, x, 6);
	x += saved_late(x | 0x100, 3) + early_exit(0, x) + early_exit(1, x);
	x += early_exit(2, 0x1234) + cold_part(x | 1, 2) + cold_part(2, x);
	x += large_frame(x) + variable_array(100 + (x & 15), x);
	x += variable_large(3, x) + alloca_in_loop(3, x) + pushes_arguments(x);
	x += variadic(5, x, x, x, x, x) + passes_struct(x) + realigned(x);
	x += realigned_saved(x, 2, 3) + realigned_variable(100, x, 3, 4, 5, 6, x);
	if (__builtin_cpu_supports("avx2"))
		x += avx(x & 0xffff, 3);
	x += tail_caller(x) + tail_indirect(x, leaf) + tail_indirect(x, one_saved);
	for (word i = 0; i < 8; i++)
		x += chooses(i);
	x += recursive(4, x) + floating((double)(x & 0xffff), 2.5);
	x += wide((long double)(x & 0xffff), 3) + protected_array(x);
#ifndef WITHOUT_MS_ABI
	x += microsoft(x, 2, 3, 4, 5);
#endif
	return x + returns_address(x);
}

int main(int argc, char **argv)
{
	clock_t end = burn_until(argc, argv);

	/* Once is enough for single-stepping; with a clock, runs would differ. */
	do
		sink = all_shapes(sink);
	while (argc <= 2 && clock() < end);
	return sink == 0;
}
