/* SPDX-License-Identifier: MIT */
#include <fcntl.h>

#include "pm/run.h"

void pm_streams_hold(void)
{
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
		/* Opened the wrong way round, it still refuses what a closed one refuses. */
		int flags = fd == STDIN_FILENO ? O_WRONLY : O_RDONLY;
		int held;

		if (fcntl(fd, F_GETFD) >= 0)
			continue;
		/* The lowest number that is free is this one. */
		held = open("/dev/null", flags | O_CLOEXEC);
		if (held > STDERR_FILENO)
			close(held);
	}
}
