// SPDX-License-Identifier: MIT
// What the page's data is compared on: threads of the same and of other names, recursion,
// inlined functions, faults and system calls.
#include <cstdlib>
#include <string>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <thread>
#include <vector>

static volatile long sink;

static inline long mix(long a)
{
	for (int i = 0; i < 3; i++)
		a ^= a << 7, a ^= (long)((unsigned long)a >> 9);
	return a;
}

__attribute__((noinline)) long recurse(int n)
{
	long sum = 0;

	for (int i = 0; i < 40; i++)
		sum += mix(n + i);
	return n < 2 ? sum : sum + recurse(n - 1) + recurse(n - 2);
}

__attribute__((noinline)) void touch(size_t bytes)
{
	std::vector<char> memory(bytes);

	for (size_t i = 0; i < bytes; i += 4096)
		memory[i] = (char)mix((long)i);
	sink = memory[bytes / 2];
}

__attribute__((noinline)) void ask()
{
	struct stat status;

	for (int i = 0; i < 5000; i++)
		sink = stat("/", &status) + mix(i);
}

static void work(const char *name, int times)
{
	prctl(PR_SET_NAME, name);
	for (int i = 0; i < times; i++) {
		sink = recurse(23);
		touch(4 << 20);
		ask();
	}
}

int main(int argc, char **argv)
{
	int times = argc > 1 ? atoi(argv[1]) : 4;
	std::thread a(work, "worker", times), b(work, "worker", times);

	work("leader", times);
	a.join();
	b.join();
}
