/* SPDX-License-Identifier: MIT */
/* exec-chain N: sets its name to stage-N, works 0.1 s, then executes itself with N - 1
 * until 0. */
#include "work.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	int left = argc > 1 ? atoi(argv[1]) : 2;
	double until = cpu_seconds() + 0.1;
	char text[32];

	snprintf(text, sizeof(text), "stage-%d", left);
	prctl(PR_SET_NAME, text);
	while (cpu_seconds() < until)
		work(1000);
	if (left <= 0)
		return 0;
	snprintf(text, sizeof(text), "%d", left - 1);
	execl("/proc/self/exe", argv[0], text, (char *)NULL);
	return 1;
}
