/* SPDX-License-Identifier: MIT */
#include <fcntl.h>

#include "pm/run.h"

void pm_streams_hold(void)
{
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
		/* With the wrong access mode, it fails where a closed one would fail. */
		int flags = fd == STDIN_FILENO ? O_WRONLY : O_RDONLY;
		int held;

		if (fcntl(fd, F_GETFD) >= 0)
			continue;
		/* This is the lowest free number. */
		held = open("/dev/null", flags | O_CLOEXEC);
		if (held > STDERR_FILENO)
			close(held);
	}
}
