// SPDX-License-Identifier: MIT
// annotate-inline ROUNDS: spends its time in mixed(), most of it in the inlined
// scramble().
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

static inline uint32_t scramble(uint32_t x)
{
	x ^= x >> 15;
	x *= UINT32_C(0x2c1b3c6d);
	return x ^ (x >> 12);
}

__attribute__((noinline)) uint64_t mixed(std::vector<uint32_t> &values)
{
	uint64_t sum = 0;

	for (auto &value : values)
		sum += value = scramble(value + 1);
	return sum;
}

int main(int argc, char **argv)
{
	std::vector<uint32_t> values(4096, 3);
	uint64_t all = 0;
	long rounds = argc > 1 ? std::atol(argv[1]) : 1;

	for (long i = 0; i < rounds; i++)
		all += mixed(values);
	std::printf("%llu\n", static_cast<unsigned long long>(all));
	return 0;
}
