/* SPDX-License-Identifier: MIT */
/* Prints one document of a counting run: the most complete one, with --least the emptiest
 * one, or with --suite both as cases of a suite. */
#include "pm/suite.h"
#include "tests/stat-documents.h"

static void make_whole(struct pm_stat *stat)
{
	stat_whole(stat);
	stat_differences(stat);
}

static int print_suite(void)
{
	PM_CLEANUP(pm_suite_release) struct pm_suite suite = { 0 };
	struct pm_stat whole = { 0 }, least = { 0 };

	make_whole(&whole);
	stat_begin(&least, "count");
	STAT_CHECK(pm_suite_add(&suite, "BM_parse/64", &whole, NULL) == 0);
	STAT_CHECK(pm_suite_add(&suite, "größe", &least, NULL) == 0);
	return pm_suite_write(&suite, STDOUT_FILENO, NULL) < 0;
}

int main(int argc, char **argv)
{
	struct pm_stat stat = { 0 };
	int r;

	if (argc > 1 && strcmp(argv[1], "--suite") == 0)
		return print_suite();
	if (argc > 1 && strcmp(argv[1], "--least") == 0)
		stat_begin(&stat, "count");
	else
		make_whole(&stat);
	r = pm_stat_write(&stat, STDOUT_FILENO, NULL);
	pm_stat_release(&stat);
	return r < 0;
}
