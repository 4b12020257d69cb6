/* SPDX-License-Identifier: MIT */
#include "marks.h"

#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "pm/base.h"

static const char variable[] = "PMSELF_MARKS";
static const char callgrind[] = "callgrind";
static const char socket_prefix[] = "fd:";

enum {
	/* Requests of valgrind's callgrind (valgrind.org/docs/manual/cl-manual.html,
	 * "Callgrind specific client requests"): 'C', 'T', and a number. */
	REQUEST_START = 'C' << 24 | 'T' << 16 | 4,
	REQUEST_STOP = 'C' << 24 | 'T' << 16 | 5,
};

bool pm_self_marks_are_wanted(void)
{
	const char *value = secure_getenv(variable);

	return value && value[0];
}

/*
 * Valgrind recognises a request by instructions that change nothing: rotations by 128
 * bits in total, and a register that is exchanged with itself. The request's number and
 * five arguments are in memory, and a register points to them. Without valgrind the
 * request has no effect.
 */
static void valgrind_request(uint64_t number)
{
	volatile uint64_t words[6] = { number };

#if defined(__x86_64__)
	uint64_t result = 0;

	__asm__ volatile("rolq $3, %%rdi; rolq $13, %%rdi\n\t"
			 "rolq $61, %%rdi; rolq $51, %%rdi\n\t"
			 "xchgq %%rbx, %%rbx"
			 : "+d"(result)
			 : "a"(&words[0])
			 : "cc", "memory");
#elif defined(__aarch64__)
	register uint64_t result __asm__("x3") = 0;
	register volatile uint64_t *pointer __asm__("x4") = &words[0];

	__asm__ volatile("ror x12, x12, #3; ror x12, x12, #13\n\t"
			 "ror x12, x12, #51; ror x12, x12, #61\n\t"
			 "orr x10, x10, x10"
			 : "+r"(result)
			 : "r"(pointer)
			 : "cc", "memory", "x12", "x10");
#else
	(void)words;
#endif
}

static int exchange_mark(int fd, char mark)
{
	ssize_t n;

	do
		n = send(fd, &mark, 1, MSG_NOSIGNAL);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	do
		n = recv(fd, &mark, 1, 0);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	if (n != 1)
		return -EPIPE;
	return 0;
}

/* Whether callgrind is counting a part. */
static _Atomic bool is_counted;

static int send_mark(bool begin)
{
	const char *value = secure_getenv(variable);
	uint64_t fd;

	if (!value)
		return -EINVAL;
	if (strcmp(value, callgrind) == 0) {
		/* The callers send the request, to keep the library's code out. */
		is_counted = begin;
		return 0;
	}
	if (strncmp(value, socket_prefix, strlen(socket_prefix)) != 0 ||
	    !pm_parse_u64(value + strlen(socket_prefix), &fd) || fd > INT32_MAX)
		return -EINVAL;
	return exchange_mark((int)fd, begin ? '+' : '-');
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool begun; /* whether a part was started; protected by the lock */

int pm_self_mark(bool begin)
{
	int saved = errno, ret;

	pthread_mutex_lock(&lock);
	if (begun != begin)
		ret = send_mark(begin);
	else if (begin)
		ret = -EALREADY;
	else
		ret = -ESRCH;
	if (ret == 0)
		begun = begin;
	pthread_mutex_unlock(&lock);
	errno = saved;
	if (ret == 0 && begin && is_counted)
		valgrind_request(REQUEST_START);
	return ret;
}

bool pm_self_mark_ends_at_once(void)
{
	bool ends = is_counted;

	if (!ends)
		return false;
	valgrind_request(REQUEST_STOP);
	pthread_mutex_lock(&lock);
	begun = false;
	is_counted = false;
	pthread_mutex_unlock(&lock);
	return true;
}
