/* SPDX-License-Identifier: MIT */
#include <fcntl.h>

#include "pm/run.h"

void pm_streams_hold(void)
{
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
		/* With the wrong access mode, reads or writes fail as they do for a
		 * closed stream. */
		int flags = fd == STDIN_FILENO ? O_WRONLY : O_RDONLY;
		int held;

		if (fcntl(fd, F_GETFD) >= 0)
			continue;
		/* open(2) returns the lowest free descriptor, which is @fd. */
		held = open("/dev/null", flags | O_CLOEXEC);
		if (held > STDERR_FILENO)
			close(held);
	}
}
