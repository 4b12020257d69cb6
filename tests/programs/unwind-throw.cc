/* SPDX-License-Identifier: MIT */
/*
 * C++ exceptions: libgcc's unwinder leaves frames without a ret, enters landing pads with
 * the stack pointer of another frame, and continues from those by _Unwind_Resume.
 */
#include <memory>
#include <stdexcept>
#include <string>

extern "C" {
#include "unwind-burn.h"
}

static volatile uint64_t sink = 1;

struct cleanup {
	uint64_t x;
	NOINLINE explicit cleanup(uint64_t start) : x(start)
	{
	}
	NOINLINE ~cleanup()
	{
		sink = sink + burn_steps(x, 2);
	}
};

struct large {
	uint64_t room[40];
};

static NOINLINE void throws(uint64_t x)
{
	if (x & 1)
		throw std::runtime_error("odd");
	if (x & 2)
		throw large{ { x } };
	sink = sink + x;
}

static NOINLINE uint64_t cleans_up(uint64_t x)
{
	cleanup outer(x);
	std::string text(3 + (x & 3), 'x');
	{
		cleanup inner(x + 1);
		throws(x);
	}
	return text.size() + outer.x;
}

static NOINLINE uint64_t rethrows(uint64_t x)
{
	cleanup mine(x);

	try {
		return cleans_up(x);
	} catch (const std::exception &error) {
		sink = sink + static_cast<uint64_t>(error.what()[0]);
		if (x & 4)
			throw;
		return 1;
	}
}

static NOINLINE uint64_t aligned_frame(uint64_t x)
{
	alignas(64) volatile uint64_t room[8] = { x };
	std::unique_ptr<cleanup> owned(new cleanup(x));

	room[x & 7] = rethrows(x) + owned->x;
	return room[x & 7];
}

static NOINLINE uint64_t variable_frame(uint64_t len, uint64_t x)
{
	volatile uint8_t *bytes = static_cast<volatile uint8_t *>(__builtin_alloca(len));

	bytes[len - 1] = 1;
	try {
		return aligned_frame(x) + bytes[len - 1];
	} catch (const large &) {
		return bytes[len - 1];
	} catch (...) {
		try {
			throws(2);
		} catch (const large &caught) {
			return caught.room[0];
		}
		throw;
	}
}

static NOINLINE uint64_t no_exception(uint64_t x) noexcept
{
	return variable_frame(100 + (x & 7), x) + 1;
}

int main(int argc, char **argv)
{
	clock_t end = burn_until(argc, argv);

	/* 0: none; 1: caught; 2: large; 5: rethrown. */
	do
		sink = sink + no_exception(0) + no_exception(1) + no_exception(2) +
		       no_exception(5);
	while (argc <= 2 && clock() < end);
	return sink == 0;
}
