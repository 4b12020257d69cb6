/* SPDX-License-Identifier: MIT */
/* Prints one document of a counting run: the fullest, or with --least the emptiest. */
#include "tests/stat-documents.h"

int main(int argc, char **argv)
{
	struct pm_stat stat = { 0 };
	int r;

	if (argc > 1 && strcmp(argv[1], "--least") == 0)
		stat_begin(&stat, "count");
	else
		stat_whole(&stat);
	r = pm_stat_write(&stat, STDOUT_FILENO, NULL);
	pm_stat_release(&stat);
	return r < 0;
}
