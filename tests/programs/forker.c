/* SPDX-License-Identifier: MIT */
/* Three children, named kid-0 to kid-2, work 0.1 s each; the parent waits for them. */
#include "work.h"

#include <stdio.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

int main(void)
{
	for (int i = 0; i < 3; i++) {
		pid_t pid = fork();

		if (pid == 0) {
			char name[16];

			snprintf(name, sizeof(name), "kid-%d", i);
			prctl(PR_SET_NAME, name);
			while (cpu_seconds() < 0.1)
				work(1000);
			_exit(0);
		}
		if (pid < 0)
			return 1;
	}
	while (wait(NULL) > 0)
		;
	return 0;
}
