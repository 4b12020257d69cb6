/* SPDX-License-Identifier: MIT */
/* Names that are kept from one profile of a process to the next. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>
#include <sys/wait.h>

#include "src/self/name-cache.h"

static const struct pm_self_file one = { .device = 1, .inode = 2, .bytes = 3 };

static const char *name_of(const struct pm_self_file *file, uint64_t address)
{
	const struct pm_symbol_function *functions;
	size_t len;

	if (!pm_self_names_find(file, address, &functions, &len))
		return NULL;
	return len > 0 ? functions[0].name : "";
}

static void add(const struct pm_self_file *file, uint64_t address, const char *name)
{
	const struct pm_symbol_function function = { .name = name };

	pm_self_names_add(file, address, &function, 1);
}

static void test_chain(void **state)
{
	char name[] = "inner";
	struct pm_symbol_function functions[] = { { name, "a.c", 7 },
						  { "outer", NULL, 0 } };
	const struct pm_symbol_function *found;
	size_t len;

	pm_self_names_clear();
	pm_self_names_add(&one, 100, functions, 2);
	strcpy(name, "gone");
	assert_true(pm_self_names_find(&one, 100, &found, &len));
	assert_int_equal(len, 2);
	assert_string_equal(found[0].name, "inner");
	assert_string_equal(found[0].file, "a.c");
	assert_int_equal(found[0].line, 7);
	assert_string_equal(found[1].name, "outer");
	assert_null(found[1].file);
	/* That nothing is known there is known, too. */
	pm_self_names_add(&one, 101, NULL, 0);
	assert_string_equal(name_of(&one, 101), "");
	assert_null(name_of(&one, 102));
}

/* A file that was written to is another one. */
static void test_file(void **state)
{
	struct pm_self_file other = one;

	pm_self_names_clear();
	add(&one, 100, "first");
	other.modified_ns = 1;
	assert_null(name_of(&other, 100));
	add(&other, 100, "second");
	assert_string_equal(name_of(&one, 100), "first");
	assert_string_equal(name_of(&other, 100), "second");
	assert_int_equal(pm_self_file_of(-1, &other), -EBADF);
	assert_int_equal(pm_self_file_of(0, &other), 0);
}

/* However many there are, the last is known, and memory is bounded. */
static void test_bounds(void **state)
{
	char name[4096];
	size_t known = 0;

	pm_self_names_clear();
	for (uint64_t i = 0; i < 40000; i++)
		add(&one, i, "same");
	assert_string_equal(name_of(&one, 39999), "same");
	for (uint64_t i = 0; i < 40000; i++)
		known += name_of(&one, i) != NULL;
	assert_in_range(known, 1, 1 << 14);
	memset(name, 'n', sizeof(name));
	for (uint64_t i = 0; i < 3000; i++) {
		snprintf(name + sizeof(name) - 8, 8, "%d", (int)i);
		add(&one, 100000 + i, name);
	}
	known = 0;
	for (uint64_t i = 0; i < 3000; i++)
		known += name_of(&one, 100000 + i) != NULL;
	assert_in_range(known, 1, 1100);
	assert_string_equal(name_of(&one, 102999), name);
}

static void test_child(void **state)
{
	int status = -1;
	pid_t pid;

	pm_self_names_clear();
	add(&one, 100, "of parent");
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		bool wrong = name_of(&one, 100) != NULL;

		add(&one, 100, "of child");
		_exit(wrong || strcmp(name_of(&one, 100), "of child") != 0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_string_equal(name_of(&one, 100), "of parent");
	pm_self_names_clear();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_chain),
		cmocka_unit_test(test_file),
		cmocka_unit_test(test_bounds),
		cmocka_unit_test(test_child),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
