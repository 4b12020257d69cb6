/* SPDX-License-Identifier: MIT */
/*
 * Exceptions are thrown in four threads while their stacks are sampled: the program's own
 * unwinder runs beside ours. self-throw [SECONDS (1)]
 */
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <pmself.h>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

static __attribute__((noinline)) unsigned dive(unsigned depth, unsigned long n)
{
	std::string text(n % 40, 'x');

	if (depth == 0) {
		if (n % 3 == 0)
			throw std::runtime_error("three");
		if (n % 3 == 1)
			throw n;
		return 0;
	}
	return dive(depth - 1, n) + unsigned(text.size());
}

static void fly(std::chrono::steady_clock::time_point end, unsigned long *caught)
{
	for (unsigned long n = 0; std::chrono::steady_clock::now() < end; n++)
		try {
			dive(n % 20, n);
		} catch (const std::exception &) {
			++*caught;
		} catch (unsigned long) {
			++*caught;
		}
}

/* Its name is longer than a line of a table. */
template <typename Threads>
static __attribute__((noinline)) void await_all(Threads &threads)
{
	for (auto &thread : threads)
		thread.join();
	asm volatile("" ::: "memory"); /* prevents a tail call of join() */
}

int main(int argc, char **argv)
{
	double seconds = argc > 1 ? std::strtod(argv[1], nullptr) : 1;
	struct pmself_options options = PMSELF_OPTIONS_INIT;
	std::vector<unsigned long> caught(4);
	std::vector<std::thread> threads;

	options.rate_hz = 4000;
	if (pmself_start(&options) < 0)
		return 1;
	auto end = std::chrono::steady_clock::now() +
		   std::chrono::milliseconds(long(seconds * 1000));
	for (auto &count : caught)
		threads.emplace_back(fly, end, &count);
	await_all(threads);
	if (pmself_stop() < 0)
		return 1;
	for (auto count : caught)
		if (count == 0)
			return 1;
	std::puts("ok");
}
