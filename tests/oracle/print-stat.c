/* SPDX-License-Identifier: MIT */
/* Prints one document of a counting run: the fullest, or with --least the emptiest. */
#include "tests/stat-documents.h"

static void make_whole(struct pm_stat *stat)
{
	stat_whole(stat);
	stat_differences(stat);
}

int main(int argc, char **argv)
{
	struct pm_stat stat = { 0 };
	int r;

	if (argc > 1 && strcmp(argv[1], "--least") == 0)
		stat_begin(&stat, "count");
	else
		make_whole(&stat);
	r = pm_stat_write(&stat, STDOUT_FILENO, NULL);
	pm_stat_release(&stat);
	return r < 0;
}
