// SPDX-License-Identifier: MIT
// Exceptions through functions whose calls are known, and C++ names: `count-throw [TIMES]`.
// Ends with status 3.
#include "count.h"

#include <cstdlib>
#include <stdexcept>

static volatile unsigned long sink;

namespace shapes
{

struct Square {
	unsigned long side;

	WHOLE unsigned long area(unsigned long times)
	{
		sink += times;
		return side * side * times;
	}
};

// Two functions with the same name.
WHOLE unsigned long scaled(unsigned long value)
{
	return value * 2 + sink % 2;
}

WHOLE unsigned long scaled(double value)
{
	return static_cast<unsigned long>(value) + sink % 3;
}

} // namespace shapes

static WHOLE void throws(unsigned long i)
{
	sink += i;
	if (i % 2 == 0)
		throw std::runtime_error("even");
	sink += i;
}

// Has something to clean up when it is left.
static WHOLE void thrown_through(unsigned long i)
{
	struct Counter {
		~Counter()
		{
			sink += 1;
		}
	} counter;

	throws(i);
	sink += i;
}

static WHOLE void catches(unsigned long i)
{
	try {
		thrown_through(i);
	} catch (const std::exception &) {
		sink += 2;
	}
}

int main(int argc, char **argv)
{
	unsigned long times = argc > 1 ? strtoul(argv[1], nullptr, 10) : 100;
	shapes::Square square = { 3 };

	for (unsigned long i = 0; i < times; i++) {
		catches(i);
		square.area(i);
		shapes::scaled(i);
	}
	shapes::scaled(2.5);
	truth("catches(unsigned long)", times, 0);
	truth("thrown_through(unsigned long)", times, (times + 1) / 2);
	truth("throws(unsigned long)", times, (times + 1) / 2);
	truth("shapes::Square::area(unsigned long)", times, 0);
	truth("shapes::scaled(unsigned long)", times, 0);
	truth("shapes::scaled(double)", 1, 0);
	return 3;
}
