/* SPDX-License-Identifier: MIT */
/* Names that may have been meant. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "pm/base.h"

#include <string.h>

static void last_parts_are_known(void **state)
{
	assert_true(pm_name_is_last_part("ns::f", "f"));
	assert_true(pm_name_is_last_part("a::b::f", "b::f"));
	assert_true(pm_name_is_last_part("ns::f<a::b>", "f"));
	assert_true(pm_name_is_last_part("ns::s<a::b>::f", "f"));
	assert_true(pm_name_is_last_part("ns::f<int>", "f<int>"));
	assert_true(pm_name_is_last_part("ns::operator->", "operator->"));
	assert_true(pm_name_is_last_part("ns::operator>", "operator>"));
	/* The name itself is no part of it. */
	assert_false(pm_name_is_last_part("f", "f"));
	assert_false(pm_name_is_last_part("::f", "f"));
	assert_false(pm_name_is_last_part("ns::off", "f"));
	assert_false(pm_name_is_last_part("ns::f", "::f"));
	assert_false(pm_name_is_last_part("ns::f<a::b>", "b"));
	assert_false(pm_name_is_last_part("ns::s<int>::f", "s"));
	assert_false(pm_name_is_last_part("", "f"));
	assert_false(pm_name_is_last_part(">", "f"));
}

/* What is told of @names (NULL behind them) when @wanted was typed. */
static void assert_told(const char *wanted, const char *const *names, const char *told)
{
	struct pm_near_names near = { .wanted = wanted };
	struct pm_error err;

	for (; *names; names++)
		pm_near_names_add(&near, *names);
	pm_error_set(&err, -2, "none");
	pm_near_names_tell(&near, &err);
	assert_string_equal(err.text, told);
	pm_near_names_tell(&near, NULL);
}

#define NAMES(...) ((const char *const[]){ __VA_ARGS__, NULL })

static void near_names_are_told(void **state)
{
	char longest[PM_NEAR_NAMES_BYTES + 1];

	assert_told("prse", NAMES("main", "parse", "emit"), "none; near names: parse");
	assert_told("prse", NAMES("main", "emit"), "none");
	/* The nearest first, each once, and four at most. */
	assert_told("abcdefgh",
		    NAMES("abcdefxx", "abcdefgx", "abcdefgx", "abcdefgy", "abcdefgz",
			  "abcdefgv"),
		    "none; near names: abcdefgx, abcdefgy, abcdefgz, abcdefgv");
	/* With its scope, or with it and a slip. */
	assert_told("f", NAMES("ns::f"), "none");
	assert_told("gu", NAMES("a::gu", "b::gu"), "none; near names: a::gu, b::gu");
	assert_told("srot_rows", NAMES("app::sort_rows<long>"),
		    "none; near names: app::sort_rows<long>");
	assert_told("app::srot", NAMES("app::sort"), "none; near names: app::sort");
	assert_told("rows", NAMES("row_sort", "my_rows"), "none; near names: my_rows");
	/* Too long to be told. */
	memset(longest, 'x', sizeof(longest));
	memcpy(longest + sizeof(longest) - 5, "::gu", 5);
	assert_told("gu", NAMES(longest), "none");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(last_parts_are_known),
		cmocka_unit_test(near_names_are_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
