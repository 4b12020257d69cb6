/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <linux/perf_event.h>
#include <string.h>

#include "pm/perf.h"

static struct pm_event_spec parse(const char *text)
{
	struct pm_event_specs specs = { 0 };
	struct pm_error err = { 0 };
	struct pm_event_spec spec;

	if (pm_event_specs_parse(text, &specs, &err) < 0)
		fail_msg("%s: %s", text, err.text);
	assert_int_equal(specs.list.len, 1);
	spec = specs.list.data[0];
	pm_event_specs_release(&specs);
	return spec;
}

static void refuse(const char *text, const char *because)
{
	struct pm_event_specs specs = { 0 };
	struct pm_error err = { 0 };

	assert_int_equal(pm_event_specs_parse(text, &specs, &err), -EINVAL);
	assert_int_equal(err.code, -EINVAL);
	if (!strstr(err.text, because))
		fail_msg("\"%s\": \"%s\" does not say \"%s\"", text, err.text, because);
	assert_int_equal(specs.list.len, 0);
	assert_int_equal(pm_event_specs_parse(text, &specs, NULL), -EINVAL);
	pm_event_specs_release(&specs);
}

static void test_plain_names(void **state)
{
	static const struct {
		const char *text, *name;
		uint32_t type;
		uint64_t config;
	} cases[] = {
		{ "cycles", "cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES },
		{ "cpu-cycles", "cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES },
		{ "instructions", "instructions", PERF_TYPE_HARDWARE,
		  PERF_COUNT_HW_INSTRUCTIONS },
		{ "branch-instructions", "branches", PERF_TYPE_HARDWARE,
		  PERF_COUNT_HW_BRANCH_INSTRUCTIONS },
		{ "branch-misses", "branch-misses", PERF_TYPE_HARDWARE,
		  PERF_COUNT_HW_BRANCH_MISSES },
		{ "idle-cycles-backend", "stalled-cycles-backend", PERF_TYPE_HARDWARE,
		  PERF_COUNT_HW_STALLED_CYCLES_BACKEND },
		{ "ref-cycles", "ref-cycles", PERF_TYPE_HARDWARE,
		  PERF_COUNT_HW_REF_CPU_CYCLES },
		{ "cpu-clock", "cpu-clock", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK },
		{ "faults", "page-faults", PERF_TYPE_SOFTWARE,
		  PERF_COUNT_SW_PAGE_FAULTS },
		{ "cs", "context-switches", PERF_TYPE_SOFTWARE,
		  PERF_COUNT_SW_CONTEXT_SWITCHES },
		{ "migrations", "cpu-migrations", PERF_TYPE_SOFTWARE,
		  PERF_COUNT_SW_CPU_MIGRATIONS },
	};

	for (size_t i = 0; i < PM_ARRAY_LEN(cases); i++) {
		struct pm_event_spec spec = parse(cases[i].text);

		assert_string_equal(spec.requested, cases[i].text);
		assert_string_equal(spec.name, cases[i].name);
		assert_string_equal(spec.modifiers, "");
		assert_int_equal(spec.type, cases[i].type);
		assert_int_equal(spec.config, cases[i].config);
		assert_true(spec.user && spec.kernel && !spec.explicit_kernel);
	}
}

/* The configs were read out of `perf stat -vv -e EVENT` of perf 6.1. */
static void test_cache_names(void **state)
{
	static const struct {
		const char *text, *name;
		uint64_t config;
	} cases[] = {
		{ "L1-dcache-loads", "L1-dcache-loads", 0 },
		{ "L1-dcache-load-misses", "L1-dcache-load-misses", 0x10000 },
		{ "L1-dcache-stores", "L1-dcache-stores", 0x100 },
		{ "L1-dcache-prefetch-misses", "L1-dcache-prefetch-misses", 0x10200 },
		{ "L1-icache-load-misses", "L1-icache-load-misses", 0x10001 },
		{ "LLC-loads", "LLC-loads", 2 },
		{ "LLC-store-misses", "LLC-store-misses", 0x10102 },
		{ "dTLB-load-misses", "dTLB-load-misses", 0x10003 },
		{ "iTLB-loads", "iTLB-loads", 4 },
		{ "branch-loads", "branch-loads", 5 },
		{ "branch-load-misses", "branch-load-misses", 0x10005 },
		{ "node-prefetches", "node-prefetches", 0x206 },
		/* other spellings */
		{ "LLC", "LLC-loads", 2 },
		{ "LLC-Reference", "LLC-loads", 2 },
		{ "L1-dcache-misses", "L1-dcache-load-misses", 0x10000 },
		{ "L1-dcache-misses-load", "L1-dcache-load-misses", 0x10000 },
		{ "l1d-read-miss", "L1-dcache-load-misses", 0x10000 },
		{ "Data-TLB-loads", "dTLB-loads", 3 },
		{ "bpu-misses", "branch-load-misses", 0x10005 },
		{ "L2-speculative-read-misses", "LLC-prefetch-misses", 0x10202 },
	};

	for (size_t i = 0; i < PM_ARRAY_LEN(cases); i++) {
		struct pm_event_spec spec = parse(cases[i].text);

		assert_string_equal(spec.name, cases[i].name);
		assert_int_equal(spec.type, PERF_TYPE_HW_CACHE);
		assert_int_equal(spec.config, cases[i].config);
	}
}

static void test_impossible_cache_names(void **state)
{
	refuse("L1-icache-stores", "unknown event \"L1-icache-stores\"");
	refuse("iTLB-prefetches", "unknown event");
	refuse("branch-stores", "unknown event");
	refuse("L1-dcache-", "unknown event");
	refuse("L1-dcache-load-load", "unknown event");
	refuse("L1-dcache-loads-", "unknown event");
	refuse("L1-dcachex", "near names: L1-dcache-loads");
	refuse("L1-dcache-misses-miss", "unknown event");
}

static void test_listed_names_parse(void **state)
{
	const char *const *names = pm_event_names();
	size_t caches = 0;

	for (size_t i = 0; names[i]; i++) {
		struct pm_event_spec spec = parse(names[i]);

		if (spec.type != PERF_TYPE_HW_CACHE)
			continue;
		caches++;
		assert_string_equal(spec.name, names[i]);
	}
	/* 7 caches of up to 3 operations, less L1i stores, iTLB and branch writes and
	 * prefetches: 16 pairs. */
	assert_int_equal(caches, 32);
}

static void test_modifiers(void **state)
{
	struct pm_event_spec spec = parse("cycles:u");

	assert_string_equal(spec.requested, "cycles:u");
	assert_string_equal(spec.name, "cycles");
	assert_string_equal(spec.modifiers, "u");
	assert_true(spec.user && !spec.kernel && !spec.explicit_kernel);
	spec = parse("LLC-loads:k");
	assert_true(!spec.user && spec.kernel && spec.explicit_kernel);
	spec = parse("cs:uk");
	assert_true(spec.user && spec.kernel && spec.explicit_kernel);
	spec = parse("cs:ku");
	assert_true(spec.user && spec.kernel && spec.explicit_kernel);
	spec = parse("cs:");
	assert_true(spec.user && spec.kernel && !spec.explicit_kernel);
	refuse("cycles:U", "unknown modifier \"U\" in \"cycles:U\"; there are u (user");
	refuse("cycles:uu", "modifier \"u\" is twice");
	refuse("cycles:u:k", "unknown modifier \":\"");
	refuse("cycles:ukukukukukukukukuk", "too many modifiers");
}

static void test_wrong_names(void **state)
{
	char longer[600];

	refuse("cylces", "unknown event \"cylces\"; near names: cycles");
	refuse("Cycles", "near names: cycles");
	refuse("instruction", "near names: instructions");
	refuse("dTLB-load-mises:u",
	       "unknown event \"dTLB-load-mises\"; near names: dTLB-load-");
	refuse("zzzzzzzzzzzzzzzz", "unknown event \"zzzzzzzzzzzzzzzz\"");
	refuse("dummy", "never gives a sample");
	refuse("bpf-output", "never gives a sample");
	refuse("", "missing");
	refuse(",", "missing");
	refuse("cycles,", "missing");
	refuse(",cycles", "missing");
	refuse("cycles,,cs", "missing");
	refuse(":u", "unknown event \"\"");
	refuse("cycles,cpu-clokc:u,cs", "\"cpu-clokc\"; near names: cpu-clock");
	memset(longer, 'x', sizeof(longer) - 1);
	longer[sizeof(longer) - 1] = '\0';
	refuse(longer, "longer than 511 bytes");
}

static void test_lists(void **state)
{
	struct pm_event_specs specs = { 0 };
	struct pm_error err = { 0 };
	static char many[2100 * 3 + 1];

	assert_int_equal(pm_event_specs_parse("cycles:u, cs ,LLC-loads", &specs, &err),
			 0);
	assert_int_equal(specs.list.len, 3);
	assert_string_equal(specs.list.data[1].requested, "cs");
	/* Appends; and a failure leaves what was there. */
	assert_int_equal(pm_event_specs_parse("faults", &specs, &err), 0);
	assert_int_equal(pm_event_specs_parse("cycles,nonsense", &specs, &err), -EINVAL);
	assert_int_equal(specs.list.len, 4);
	assert_string_equal(specs.list.data[3].name, "page-faults");
	for (size_t i = 0; i < 2100; i++)
		memcpy(many + 3 * i, "cs,", 3);
	many[sizeof(many) - 2] = '\0';
	assert_int_equal(pm_event_specs_parse(many, &specs, &err), -EINVAL);
	assert_non_null(strstr(err.text, "more than 2048 events"));
	assert_int_equal(specs.list.len, 4);
	pm_event_specs_release(&specs);
}

static void test_fallback(void **state)
{
	static const int missing[] = { ENOENT, ENXIO, ENODEV, EOPNOTSUPP };
	static const int other[] = { 0,      EACCES, EPERM,  EINVAL,
				     ENOSYS, EMFILE, ENOMEM, EBUSY };
	struct pm_event_spec cycles = parse("cpu-cycles:k"), ret = { 0 };
	struct pm_event_spec instructions = parse("instructions"),
			     loads = parse("LLC-loads");

	for (size_t i = 0; i < PM_ARRAY_LEN(missing); i++) {
		assert_true(pm_event_spec_fallback(&cycles, missing[i], &ret));
		assert_string_equal(ret.name, "cpu-clock");
		assert_string_equal(ret.requested, "cpu-cycles:k");
		assert_string_equal(ret.modifiers, "k");
		assert_int_equal(ret.type, PERF_TYPE_SOFTWARE);
		assert_int_equal(ret.config, PERF_COUNT_SW_CPU_CLOCK);
		assert_true(!ret.user && ret.kernel && ret.explicit_kernel);
		assert_false(pm_event_spec_fallback(&instructions, missing[i], &ret));
		assert_false(pm_event_spec_fallback(&loads, missing[i], &ret));
	}
	memset(&ret, 0xee, sizeof(ret));
	for (size_t i = 0; i < PM_ARRAY_LEN(other); i++)
		assert_false(pm_event_spec_fallback(&cycles, other[i], &ret));
	assert_int_equal(ret.type, 0xeeeeeeee);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_plain_names),
		cmocka_unit_test(test_cache_names),
		cmocka_unit_test(test_impossible_cache_names),
		cmocka_unit_test(test_listed_names_parse),
		cmocka_unit_test(test_modifiers),
		cmocka_unit_test(test_wrong_names),
		cmocka_unit_test(test_lists),
		cmocka_unit_test(test_fallback),
	};

	return cmocka_run_group_tests_name("event-spec", tests, NULL, NULL);
}
