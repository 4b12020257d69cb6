// SPDX-License-Identifier: MIT
// probes-cpp N: overloads, members, templates and inlined functions, each called a known
// number of times: for tests of probes (tests/cli/pmrec-probes.bats).
#include <cstdlib>

#define NEVER_INLINE __attribute__((noinline))

namespace shapes
{
volatile int sum;

NEVER_INLINE void area(int side)
{
	sum = sum + side;
}

NEVER_INLINE void area(int width, char height)
{
	sum = sum + width * height;
}

struct circle {
	int radius;

	NEVER_INLINE circle(int r)
		: radius(r)
	{
		sum = sum + r;
	}
	NEVER_INLINE bool operator==(const circle &other) const
	{
		return radius == other.radius;
	}
};

template <typename T> NEVER_INLINE T grow(T value)
{
	sum = sum + 1;
	return value + 1;
}

/* Exists only where it is inlined. */
__attribute__((always_inline)) inline void outline(int side)
{
	for (int i = 0; i < side; i++)
		sum = sum + 4;
}
} // namespace shapes

int main(int argc, char **argv)
{
	int n = argc > 1 ? atoi(argv[1]) : 10;

	for (int i = 0; i < n; i++) {
		shapes::area(i);
		shapes::area(i, 2);
		shapes::area(i + 1, 2);
		shapes::circle one(i), two(i + 1), three(i + 2);
		if (one == two)
			return 1;
		shapes::outline(i + 1);
		shapes::grow(i);
		shapes::grow(static_cast<long>(i));
	}
	return 0;
}
