/* SPDX-License-Identifier: MIT */
#include "pm/symbol.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void check(const char *mangled, const char *expected)
{
	PM_AUTO_FREE char *name = pm_demangle(mangled);

	if (!expected) {
		assert_null(name);
		return;
	}
	assert_non_null(name);
	assert_string_equal(name, expected);
}

static void leaves_what_is_not_mangled(void **state)
{
	check("main", NULL);
	check("", NULL);
	check("_", NULL);
	check("_Z", NULL);
	check("_R", NULL);
	check("_ZN", NULL);
	check("_start", NULL);
	check("_Zone_of_c", NULL);
	check("_Reserved", NULL);
	check("__libc_start_main", NULL);
}

static void cpp_without_parameters(void **state)
{
	check("_Z3foov", "foo");
	check("_Z3fooIiEvT_", "foo<int>");
	check("_ZNSt6vectorIiSaIiEE9push_backERKi",
	      "std::vector<int, std::allocator<int> >::push_back");
	check("_ZN3FooC1Ev", "Foo::Foo");
	check("_ZN3FooC4Ev", "Foo::Foo");
	check("_ZN3FooD0Ev", "Foo::~Foo");
	check("_ZN12_GLOBAL__N_13fooEv", "(anonymous namespace)::foo");
	check("_ZNKSt8functionIFviEEclEi", "std::function<void (int)>::operator()");
	check("_ZN1Acv1BEv", "A::operator B");
	check("_ZlsRSoRK3Foo", "operator<<");
}

static void cpp_keeps_what_tells_lambdas_apart(void **state)
{
	check("_ZZ4mainENKUliE_clEi", "main::{lambda(int)#1}::operator()");
	check("_ZZ4mainENKUlvE0_clEv", "main::{lambda()#2}::operator()");
}

static void suffixes_of_copies_stay(void **state)
{
	check("_Z3foov.cold", "foo.cold");
	check("_Z3fooi.constprop.0.isra.0", "foo.constprop.0.isra.0");
	check("_Z3foov.llvm.1234567", "foo");
	check("_Z3foov.llvm.1234567.cold", "foo.cold");
	check("_ZN3foo3bar17h0123456789abcdefE.llvm.42", "foo::bar");
}

static void rust_without_hashes(void **state)
{
	check("_ZN4core3ptr13drop_in_place17h0123456789abcdefE",
	      "core::ptr::drop_in_place");
	check("_ZN60_$LT$alloc..vec..Vec$LT$T$GT$$u20$as$u20$core..ops..Drop$GT$4drop"
	      "17hfedcba9876543210E",
	      "<alloc::vec::Vec<T> as core::ops::Drop>::drop");
	check("_RNvCskwGfYPst2Cb_3foo16example_function", "foo::example_function");
	check("_RNvNtCs1234_7mycrate3foo3bar", "mycrate::foo::bar");
	check("_RNCNvC7mycrate4main0B3_", "mycrate::main::{closure#0}");
}

static void long_names_of_real_libraries(void **state)
{
	/* Longer than what libiberty takes with its own limit. */
	struct pm_str mangled = { 0 };
	PM_AUTO_FREE char *name = NULL;

	pm_str_puts(&mangled, "_ZN");
	for (int i = 0; i < 80; i++)
		pm_str_puts(&mangled, "16some_long_name_x");
	pm_str_puts(&mangled, "1fEv");
	name = pm_demangle(mangled.data);
	assert_non_null(name);
	assert_int_equal(strlen(name), 80 * 18 + 1);
	assert_string_equal(name + 79 * 18, "some_long_name_x::f");
	pm_str_release(&mangled);
}

static void over_the_limit_is_no_name(void **state)
{
	struct pm_str mangled = { 0 };

	pm_str_puts(&mangled, "_ZN");
	while (mangled.len < 5000)
		pm_str_puts(&mangled, "3abc");
	pm_str_puts(&mangled, "Ev");
	check(mangled.data, NULL);
	pm_str_release(&mangled);
}

/* Each substitution doubles the text: printed in full it would be gigabytes. */
static void doubling_is_cut(void **state)
{
	struct pm_str mangled = { 0 };
	PM_AUTO_FREE char *name = NULL;

	pm_str_puts(&mangled, "_ZN1AIiiE");
	pm_str_clear(&mangled);
	pm_str_puts(&mangled, "_Z1fI1AIiiES0_IS1_S1_E");
	for (int i = 2; i < 36; i++) {
		char digit = (char)(i < 10 ? '0' + i : 'A' + i - 10);

		pm_str_printf(&mangled, "S_IS%c_S%c_E", digit, digit);
	}
	pm_str_puts(&mangled, "Evv");
	name = pm_demangle(mangled.data);
	if (name) {
		assert_true(strlen(name) <= 16384 + strlen("…"));
		assert_string_equal(name + strlen(name) - strlen("…"), "…");
	}
	pm_str_release(&mangled);
}

static void deep_nesting_does_not_overrun(void **state)
{
	static const char *const openers[] = { "P",  "PF",   "1AI", "KFPvS",
					       "A_", "M1AF", "DTcl" };

	for (size_t i = 0; i < PM_ARRAY_LEN(openers); i++) {
		struct pm_str mangled = { 0 };

		pm_str_puts(&mangled, "_Z1f");
		while (mangled.len + strlen(openers[i]) <= 4090)
			pm_str_puts(&mangled, openers[i]);
		pm_str_puts(&mangled, "i");
		free(pm_demangle(mangled.data));
		pm_str_release(&mangled);
	}
}

static void results_are_printable(void **state)
{
	static const char mangled[] = "_Z5a\033[1mv";
	PM_AUTO_FREE char *name = pm_demangle(mangled);

	if (name)
		assert_null(strchr(name, '\033'));
	check("_Z4na\x01xv", "na\\x01x");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(leaves_what_is_not_mangled),
		cmocka_unit_test(cpp_without_parameters),
		cmocka_unit_test(cpp_keeps_what_tells_lambdas_apart),
		cmocka_unit_test(suffixes_of_copies_stay),
		cmocka_unit_test(rust_without_hashes),
		cmocka_unit_test(long_names_of_real_libraries),
		cmocka_unit_test(over_the_limit_is_no_name),
		cmocka_unit_test(doubling_is_cut),
		cmocka_unit_test(deep_nesting_does_not_overrun),
		cmocka_unit_test(results_are_printable),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
