/* SPDX-License-Identifier: MIT */
/* Tables that another thread makes, and tables that are too large to be made. */
#include "tests/unit/cfi-bytes.h"
#include "unwind/unwind-parts.h"

#include <fcntl.h>
#include <pthread.h>

enum {
	ADDRESSES = 64,
};

/* A helper that takes tasks, and lets nothing be done at once. */
struct aside {
	struct pm_unw_helper helper;
	struct pm_unw_task *task; /* that was taken last */
	size_t taken, asked;
	bool full; /* no task is taken */
};

static bool never_now(void *user, size_t bytes)
{
	struct aside *aside = user;

	assert_true(bytes > 0);
	aside->asked++;
	return false;
}

static bool take_task(void *user, struct pm_unw_task *task)
{
	struct aside *aside = user;

	if (aside->full)
		return false;
	assert_null(aside->task);
	aside->task = task;
	aside->taken++;
	return true;
}

/* This program, whose header has no table. */
static struct pm_unw_module *open_without_table(void)
{
	PM_AUTO_CLOSE int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	struct pm_unw_module *module;

	assert_true(fd >= 0);
	assert_int_equal(pm_unw_module_open(&module, fd, NULL), 0);
	module->hdr_table = 0;
	return module;
}

static struct pm_unw_module *open_with(struct aside *aside)
{
	struct pm_unw_module *module = open_without_table();

	aside->helper = (struct pm_unw_helper){ never_now, take_task, aside };
	pm_unw_module_set_helper(module, &aside->helper);
	return module;
}

static void *run_task(void *task)
{
	pm_unw_task_run(task);
	pm_unw_task_unref(task);
	return NULL;
}

static void run_in_thread(struct aside *aside)
{
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, run_task, aside->task), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	aside->task = NULL;
}

static void test_table_made_aside(void **state)
{
	struct pm_unwinder *unwinder = pm_unwinder_new(), *plain = pm_unwinder_new();
	struct pm_unw_module *at_once = open_without_table(), *module;
	const struct pm_unw_fde_table *fdes = pm_unw_fde_scan(at_once);
	struct aside aside = { .task = NULL };
	size_t rules = 0, step = fdes->places.len / ADDRESSES + 1;

	(void)state;
	assert_true(unwinder && plain && fdes->places.len > 100);
	module = open_with(&aside);
	/* The first look-up requests the table; until it is made, look-ups have no
	 * answer. */
	for (size_t i = 0; i < fdes->places.len; i += step)
		assert_int_equal(
			pm_unw_rule_find(unwinder, module, fdes->places.data[i].start)
				.found,
			PM_UNW_FOUND_PENDING);
	assert_int_equal(aside.taken, 1);
	assert_int_equal(aside.asked, 1);
	assert_true(pm_unw_module_tables(module).pending);
	run_in_thread(&aside);
	for (size_t i = 0; i < fdes->places.len; i += step) {
		uint64_t svma = fdes->places.data[i].start;
		enum pm_unw_found found = pm_unw_rule_find(unwinder, module, svma).found;

		assert_int_equal(found, pm_unw_rule_find(plain, at_once, svma).found);
		rules += found == PM_UNW_FOUND_RULE;
	}
	assert_true(rules > ADDRESSES / 2);
	assert_int_equal(aside.taken, 1);
	assert_int_equal(module->eh_scanned.places.len, fdes->places.len);
	pm_unw_module_free(module);
	pm_unw_module_free(at_once);
	pm_unwinder_free(unwinder);
	pm_unwinder_free(plain);
}

/* The helper has too much to do and refuses; at the next request, it makes the table. */
static void test_refused_task(void **state)
{
	struct pm_unwinder *unwinder = pm_unwinder_new();
	struct aside aside = { .full = true };
	struct pm_unw_module *module = open_with(&aside);
	uint64_t entry = module->entry;

	(void)state;
	assert_non_null(unwinder);
	for (int i = 0; i < 3; i++)
		assert_int_equal(pm_unw_rule_find(unwinder, module, entry).found,
				 PM_UNW_FOUND_PENDING);
	assert_int_equal(aside.taken, 0);
	aside.full = false;
	assert_int_equal(pm_unw_rule_find(unwinder, module, entry).found,
			 PM_UNW_FOUND_PENDING);
	run_in_thread(&aside);
	assert_int_not_equal(pm_unw_rule_find(unwinder, module, entry).found,
			     PM_UNW_FOUND_PENDING);
	pm_unw_module_free(module);
	pm_unwinder_free(unwinder);
}

/* The module goes before, or after, the task is run. */
static void test_module_gone(void **state)
{
	struct pm_unwinder *unwinder = pm_unwinder_new();

	(void)state;
	assert_non_null(unwinder);
	for (int after = 0; after < 2; after++) {
		struct aside aside = { .task = NULL };
		struct pm_unw_module *module = open_with(&aside);

		assert_int_equal(pm_unw_rule_find(unwinder, module, module->entry).found,
				 PM_UNW_FOUND_PENDING);
		if (after)
			run_in_thread(&aside);
		pm_unw_module_free(module);
		if (!after)
			run_in_thread(&aside);
	}
	pm_unwinder_free(unwinder);
}

/* The budget of all regions and tables is as before when they are gone. */
static void test_table_too_large(void **state)
{
	static const uint8_t cie[] = { 20,  0,    0,
				       0,   0,    0,
				       0,   0,    1,
				       'z', 'R',  0,
				       1,   0x78, 0x10,
				       1,   2,    DW_CFA_def_cfa,
				       7,   8,    DW_CFA_offset | 16,
				       1,   0,    0 };
	enum {
		FDES = (1 << 21) + 1,
		FDE_BYTES = 13,
		BYTES = sizeof(cie) + FDES * FDE_BYTES,
	};
	struct pm_unw_part_load load = { 0, 0, 1 << 16, true };
	struct pm_unw_parts parts = { .arch = PM_UNW_X86_64,
				      .loads = &load,
				      .loads_len = 1 };
	PM_AUTO_FREE uint8_t *bytes = calloc(1, BYTES);
	struct pm_unwinder *unwinder = pm_unwinder_new();
	size_t table_bytes[2] = { 0 };

	(void)state;
	assert_true(bytes && unwinder);
	memcpy(bytes, cie, sizeof(cie));
	for (uint32_t i = 0; i < FDES; i++) {
		uint32_t at = (uint32_t)sizeof(cie) + i * FDE_BYTES;
		uint16_t range[] = { (uint16_t)(i * 40503), 1 };

		memcpy(bytes + at, &(uint32_t){ FDE_BYTES - 4 }, 4);
		memcpy(bytes + at + 4, &(uint32_t){ at + 4 }, 4);
		memcpy(bytes + at + 8, range, sizeof(range));
	}
	/* One more than there may be, and as many. */
	for (size_t i = 0; i < 2; i++) {
		struct pm_unw_module *module;

		parts.eh_frame =
			(struct pm_unw_part){ 1 << 20, bytes, BYTES - i * FDE_BYTES };
		assert_int_equal(pm_unw_module_from_parts(&module, &parts, NULL), 0);
		assert_int_equal(pm_unw_rule_find(unwinder, module, 0x1000).found,
				 i == 0 ? PM_UNW_FOUND_TOO_LARGE : PM_UNW_FOUND_RULE);
		assert_true(pm_unw_module_tables(module).too_large == (i == 0));
		table_bytes[i] = module->eh_scanned.places.cap *
				 sizeof(*module->eh_scanned.places.data);
		pm_unw_module_free(module);
	}
	assert_int_equal(table_bytes[0], 0);
	assert_int_equal(table_bytes[1], 16 << 21);
	pm_unwinder_free(unwinder);
	/* All of the memory is available again. */
	assert_true(pm_unw_budget_take((size_t)1 << 29));
	pm_unw_budget_give((size_t)1 << 29);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_table_made_aside),
		cmocka_unit_test(test_refused_task),
		cmocka_unit_test(test_module_gone),
		cmocka_unit_test(test_table_too_large),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
