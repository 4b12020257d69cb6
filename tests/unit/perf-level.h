/* SPDX-License-Identifier: MIT */
/* For tests that depend on kernel.perf_event_paranoid, which others change for moments. */
#pragma once

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

/* As it is now, until this program ends: at() of tests/cli/common.bash waits for that. */
static inline void keep_perf_level(void)
{
	int fd = open("/proc/sys/kernel/perf_event_paranoid", O_RDONLY | O_CLOEXEC);

	/* Half a minute is more than anybody changes it for. */
	for (int i = 0; fd >= 0 && i < 3000 && flock(fd, LOCK_SH | LOCK_NB) < 0; i++)
		usleep(10000);
}
