/* SPDX-License-Identifier: MIT */
#include "pm/run.h"

#include <stdio.h>

int main(void)
{
	fputs("pmdiff: is being built\n", stderr);
	return PM_STATUS_FAILED;
}
