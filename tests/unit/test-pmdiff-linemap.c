/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "src/pmdiff/linemap.h"

#include <stdlib.h>
#include <string.h>

static struct pmdiff_linemap *parse(const char *text)
{
	PM_AUTO_FREE char *copy = strdup(text);
	struct pmdiff_linemap *map;

	assert_non_null(copy);
	assert_int_equal(pmdiff_linemap_parse(&map, copy), 0);
	return map;
}

static void test_lines(void **state)
{
	struct pmdiff_linemap *map = parse("diff --git a/src/a.c b/src/a.c\n"
					   "index 1..2 100644\n"
					   "--- a/src/a.c\n"
					   "+++ b/src/a.c\n"
					   "@@ -2,0 +3,2 @@ int main(void)\n"
					   "+--- a/none.c\n"
					   "+@@ -1 +1 @@\n"
					   "@@ -10,3 +12 @@\n"
					   "-x\n"
					   "-y\n"
					   "--- a/other.c\n"
					   "+z\n"
					   "@@ -20,2 +19,0 @@\n"
					   "-gone\n"
					   "-gone\n"
					   "@@ -30 +28 @@\n"
					   "-old\n"
					   "+new\n"
					   "diff --git a/b.c b/b.c\n"
					   "--- a/b.c\n"
					   "+++ b/b.c\n"
					   "@@ -1 +1,2 @@\n"
					   "-a\n"
					   "+b\n"
					   "+c\n");
	static const uint32_t lines[][2] = {
		{ 1, 1 },   { 2, 2 },   { 3, 5 },   { 9, 11 },  { 10, 12 },
		{ 11, 12 }, { 12, 12 }, { 13, 13 }, { 19, 19 }, { 20, 0 },
		{ 21, 0 },  { 22, 20 }, { 29, 27 }, { 30, 28 }, { 31, 29 },
	};

	for (size_t i = 0; i < PM_ARRAY_LEN(lines); i++)
		if (pmdiff_linemap_of(map, "src/a.c", lines[i][0]) != lines[i][1])
			fail_msg("line %u is %u", lines[i][0],
				 pmdiff_linemap_of(map, "src/a.c", lines[i][0]));
	assert_int_equal(pmdiff_linemap_of(map, "b.c", 1), 1);
	assert_int_equal(pmdiff_linemap_of(map, "b.c", 2), 3);
	/* Files that git does not tell of are the same, and what looks like one is none. */
	assert_int_equal(pmdiff_linemap_of(map, "c.c", 7), 7);
	assert_int_equal(pmdiff_linemap_of(map, "none.c", 1), 1);
	assert_int_equal(pmdiff_linemap_of(map, "other.c", 11), 11);
	pmdiff_linemap_free(map);
}

/* Hunks behind a file whose name is not known are none of the file before. */
static void test_new_files(void **state)
{
	struct pmdiff_linemap *map = parse("diff --git a/a.c b/a.c\n"
					   "--- a/a.c\n+++ b/a.c\n"
					   "@@ -2 +2,2 @@\n-b\n+B\n+C\n"
					   "diff --git a/b.c b/b.c\n"
					   "--- /dev/null\n+++ b/b.c\n"
					   "@@ -0,0 +1,2 @@\n+x\n+y\n"
					   "--- \"a/q\\\"uote.c\"\n"
					   "+++ \"b/q\\\"uote.c\"\n"
					   "@@ -1,2 +0,0 @@\n-x\n-y\n"
					   "--- a/with blank.c\t\n"
					   "+++ b/with blank.c\t\n"
					   "@@ -1 +0,0 @@\n-x\n");

	assert_int_equal(pmdiff_linemap_of(map, "a.c", 1), 1);
	assert_int_equal(pmdiff_linemap_of(map, "a.c", 9), 10);
	assert_int_equal(pmdiff_linemap_of(map, "with blank.c", 1), 0);
	assert_int_equal(pmdiff_linemap_of(map, "with blank.c", 3), 2);
	pmdiff_linemap_free(map);
}

static void test_odd(void **state)
{
	static const char *const texts[] = {
		"",
		"@@ -1 +1 @@\n",
		"--- a/x\n@@ -\n@@ -1\n@@ -1 +\n@@ -1,x +1 @@\n@@ -99999999999 +1 @@\n",
		"--- a/x\n@@ -1,2000000000 +1,2000000000 @@\n",
		"--- /dev/null\n+++ b/new.c\n@@ -0,0 +1,5 @@\n",
	};

	for (size_t i = 0; i < PM_ARRAY_LEN(texts); i++) {
		struct pmdiff_linemap *map = parse(texts[i]);

		assert_int_equal(pmdiff_linemap_of(map, "x", 1), 1);
		pmdiff_linemap_free(map);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lines),
		cmocka_unit_test(test_new_files),
		cmocka_unit_test(test_odd),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
