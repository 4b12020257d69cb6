/* SPDX-License-Identifier: MIT */
#include "print.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "options.h"

/* This does not use stdio, whose locks belong to the program. Writing to a pipe without a
 * reader must not end the program by SIGPIPE. */
void pm_self_print(const char *text)
{
	struct timespec now = { 0 };
	sigset_t pipe, before, pending;
	size_t len = strlen(text);
	bool was_pending;

	sigemptyset(&pipe);
	sigaddset(&pipe, SIGPIPE);
	pthread_sigmask(SIG_BLOCK, &pipe, &before);
	sigpending(&pending);
	was_pending = sigismember(&pending, SIGPIPE);
	while (len > 0) {
		ssize_t n = write(STDERR_FILENO, text, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EPIPE && !was_pending)
			sigtimedwait(&pipe, NULL, &now);
		if (n <= 0)
			break;
		text += n;
		len -= (size_t)n;
	}
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

void pm_self_print_error(const struct pm_error *err)
{
	struct pm_str line = { 0 };

	if (!pm_self_may_print())
		return;
	pm_str_puts(&line, "pmself: ");
	if (err->source[0]) {
		pm_str_printable(&line, err->source, strlen(err->source));
		pm_str_puts(&line, ": ");
	}
	pm_str_printable(&line, err->text, strlen(err->text));
	if (err->fix[0]) {
		pm_str_puts(&line, "; try: ");
		pm_str_printable(&line, err->fix, strlen(err->fix));
	}
	pm_str_putc(&line, '\n');
	if (!line.failed)
		pm_self_print(line.data);
	pm_str_release(&line);
}
