/* SPDX-License-Identifier: MIT */
/* The parts of a command that it marks itself, through libpmself: src/self/marks.c is the
 * other end. */
#include "marks.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

enum {
	/* In the command: above the numbers that it may expect for its own files. */
	FD_LEAST = 100,
	VALUE_BYTES = 16,
};

static const char variable[] = "PMSELF_MARKS";

int pm_marks_export(const char *value, struct pm_error *err)
{
	int ret;

	if (value)
		ret = setenv(variable, value, 1);
	else
		ret = unsetenv(variable);
	if (ret < 0)
		return pm_error_set(err, -errno, "environment: %s", strerror(errno));
	return 0;
}

int pm_marks_open(struct pm_marks *marks, struct pm_error *err)
{
	char value[VALUE_BYTES];
	int ends[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
		return pm_error_set(err, -errno, "a socket for marks: %s",
				    strerror(errno));
	marks->fd = ends[0];
	marks->theirs = fcntl(ends[1], F_DUPFD, FD_LEAST);
	if (marks->theirs < 0) {
		int ret = -errno;

		close(ends[1]);
		return pm_error_set(err, ret, "a socket for marks: %s", strerror(-ret));
	}
	close(ends[1]);
	snprintf(value, sizeof(value), "fd:%d", marks->theirs);
	return pm_marks_export(value, err);
}

void pm_marks_give(struct pm_marks *marks)
{
	unsetenv(variable);
	if (marks->theirs >= 0)
		close(marks->theirs);
	marks->theirs = -1;
}

void pm_marks_close(struct pm_marks *marks)
{
	pm_marks_give(marks);
	if (marks->fd >= 0)
		close(marks->fd);
	marks->fd = -1;
}

int pm_marks_next(struct pm_marks *marks, char *out)
{
	ssize_t n;

	if (marks->fd < 0)
		return 0;
	do
		n = recv(marks->fd, out, 1, MSG_DONTWAIT);
	while (n < 0 && errno == EINTR);
	if (n == 1)
		return 1;
	/* The other end has been closed by all processes. */
	if (n == 0 || errno != EAGAIN)
		pm_marks_close(marks);
	return 0;
}

void pm_marks_answer(struct pm_marks *marks, char mark)
{
	while (marks->fd >= 0 && send(marks->fd, &mark, 1, MSG_NOSIGNAL) < 0 &&
	       errno == EINTR)
		;
}

int pm_marks_none(const char *command, const char *from, const char *to,
		  struct pm_error *err)
{
	if (from) {
		pm_error_set(err, -ENODATA,
			     "it has no part to count: it did not call %.100s, and after "
			     "it %.100s",
			     from, to);
		pm_error_fix(err, "names as `nm` tells them, of functions that are not "
				  "inlined; or without --marked");
	} else {
		pm_error_set(err, -ENODATA,
			     "it has marked no part to count: it did not call "
			     "perf_start() of libpmself, nor a request of valgrind's");
		pm_error_fix(err, "perf_start() and perf_stop() around the part; or "
				  "without --marked");
	}
	pm_error_where(err, command, -1);
	return -ENODATA;
}
