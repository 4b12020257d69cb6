/* SPDX-License-Identifier: MIT */
/* exported SECONDS: test input for the exporters. C++ with inlined functions, recursion
 * (direct and mutual), two threads, time in the kernel, page faults, and a function whose
 * name has an arrow. Each thread uses SECONDS of CPU time. */
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

namespace work
{

volatile unsigned sink;

__attribute__((noinline)) double cpu_seconds()
{
	timespec at;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &at);
	return (double)at.tv_sec + (double)at.tv_nsec / 1e9;
}

template <typename T> inline __attribute__((always_inline)) T mix(T value)
{
	for (int i = 0; i < 60000; i++)
		value = value * 1103515245u + 12345u;
	return value;
}

struct Box {
	unsigned value;
	__attribute__((noinline)) Box *operator->()
	{
		value = mix(value);
		return this;
	}
};

__attribute__((noinline)) unsigned odd(unsigned depth);

__attribute__((noinline)) unsigned even(unsigned depth)
{
	unsigned below = depth == 0 ? mix(1u) : odd(depth - 1);

	return mix(below) + 1;
}

__attribute__((noinline)) unsigned odd(unsigned depth)
{
	unsigned below = depth == 0 ? mix(2u) : even(depth - 1);

	return below + 2;
}

__attribute__((noinline)) unsigned direct(unsigned depth)
{
	unsigned below = depth == 0 ? 0 : direct(depth - 1);

	return mix(below) + 3;
}

/* Page faults, and time in the kernel. */
__attribute__((noinline)) void touch()
{
	enum {
		BYTES = 1 << 18
	};
	char *memory = (char *)mmap(NULL, BYTES, PROT_READ | PROT_WRITE,
				    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED)
		exit(1);
	for (size_t i = 0; i < BYTES; i += 4096)
		memory[i] = 1;
	munmap(memory, BYTES);
}

__attribute__((noinline)) void all(double seconds)
{
	Box box = { 1 };

	for (double end = cpu_seconds() + seconds; cpu_seconds() < end;) {
		sink = even(5) + direct(4) + box->value;
		touch();
	}
}

} // namespace work

static void *thread(void *argument)
{
	pthread_setname_np(pthread_self(), "w"); /* one character confuses readers */
	work::all(*(double *)argument);
	return NULL;
}

int main(int argc, char **argv)
{
	double seconds = argc > 1 ? atof(argv[1]) : 0.3;
	pthread_t other;

	if (pthread_create(&other, NULL, thread, &seconds) != 0)
		return 1;
	work::all(seconds);
	pthread_join(other, NULL);
	return 0;
}
