/* SPDX-License-Identifier: MIT */
/* Limits on the work of each process, and pauses of processes that exceed them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "src/chain/budget.h"

#define MS 1000000ull

enum {
	GREEDY = 100,
	MODEST = 200,
	MODEST_NS = 3000, /* a sample's work, less than what is free */
};

/* A sample of @pid at @time that takes @ns, or what it gets. Returns what it took. */
static uint32_t sample(struct pm_chain_budget *budget, uint32_t pid, uint64_t time,
		       uint32_t ns)
{
	uint32_t *left = pm_chain_budget_begin(budget, pid, time), took;

	took = ns < *left ? ns : *left;
	*left -= took;
	pm_chain_budget_settle(budget);
	return took;
}

/* A program that is alone never lacks anything, however long it runs. */
static void test_modest_process_gets_all(void **state)
{
	struct pm_chain_budget *budget = pm_chain_budget_new(0);

	(void)state;
	assert_non_null(budget);
	/* Cold, it takes more at once. */
	assert_int_equal(sample(budget, MODEST, 1 * MS, 4 * MS), 4 * MS);
	for (uint64_t i = 2; i < 20000; i++)
		assert_int_equal(sample(budget, MODEST, i * MS, 40000), 40000);
	assert_int_equal(pm_chain_budget_cut(budget)->pauses, 0);
	pm_chain_budget_free(budget);
}

/* Nor does it at a higher rate, which has as much work more often. */
static void test_higher_rate_gets_more(void **state)
{
	struct pm_chain_budget *budget = pm_chain_budget_new(4995);

	(void)state;
	assert_non_null(budget);
	for (uint64_t i = 1; i < 100000; i++)
		assert_int_equal(sample(budget, MODEST, i * MS / 5, 40000), 40000);
	assert_int_equal(pm_chain_budget_cut(budget)->pauses, 0);
	pm_chain_budget_free(budget);
}

/* Greedy processes get little of each second, and less each time; a modest one beside
 * them gets all that it needs. */
static void test_greedy_processes_pause(void **state)
{
	enum {
		SECONDS = 20,
		GREEDY_LEN = 4,
	};
	struct pm_chain_budget *budget = pm_chain_budget_new(0);
	uint64_t took[SECONDS] = { 0 }, whole = 0;

	(void)state;
	assert_non_null(budget);
	for (uint64_t i = 0; i < SECONDS * 1000; i++) {
		for (uint32_t k = 0; k < GREEDY_LEN; k++)
			took[i / 1000] +=
				sample(budget, GREEDY + k, (i + 1) * MS, 4 * MS);
		assert_int_equal(sample(budget, MODEST, (i + 1) * MS, MODEST_NS),
				 MODEST_NS);
	}
	for (size_t i = 0; i < SECONDS; i++)
		whole += took[i];
	/* What may be spent at once, and at most a quarter of a second in each. */
	assert_in_range(took[0], 64 * MS, 400 * MS);
	assert_true(whole / SECONDS < 150 * MS);
	assert_true(pm_chain_budget_cut(budget)->pauses >= GREEDY_LEN);
	assert_in_range(pm_chain_budget_cut(budget)->first_pid, GREEDY,
			GREEDY + GREEDY_LEN - 1);
	assert_true(pm_chain_budget_cut(budget)->others);
	/* After a long time it has a share again. */
	assert_int_equal(sample(budget, GREEDY, (SECONDS + 60) * 1000 * MS, 4 * MS),
			 4 * MS);
	pm_chain_budget_free(budget);
}

/* A program may start ever new processes: together they get no more. */
static void test_many_processes_share(void **state)
{
	struct pm_chain_budget *budget = pm_chain_budget_new(0);
	uint64_t took = 0;

	(void)state;
	assert_non_null(budget);
	for (uint32_t i = 0; i < 10000; i++) {
		took += sample(budget, 1000 + i, 1 * MS + i * 100000ull, 4 * MS);
		assert_int_equal(sample(budget, MODEST, 1 * MS + i * 100000ull, 2000),
				 2000);
	}
	assert_in_range(took, 64 * MS, 500 * MS);
	pm_chain_budget_free(budget);
}

/* Work that is not part of unwinding counts, too. */
static void test_other_work_counts(void **state)
{
	struct pm_chain_budget *budget = pm_chain_budget_new(0);

	(void)state;
	assert_non_null(budget);
	assert_int_equal(sample(budget, GREEDY, 1 * MS, 1000), 1000);
	pm_chain_budget_spend(budget, GREEDY, 1000 * MS);
	assert_int_equal(sample(budget, GREEDY, 2 * MS, 1000), 0);
	assert_int_equal(sample(budget, MODEST, 2 * MS, 1000), 1000);
	assert_int_equal(sample(budget, GREEDY, 300 * MS, 1000), 1000);
	/* The next pause is twice as long. */
	pm_chain_budget_spend(budget, GREEDY, 1000 * MS);
	assert_int_equal(sample(budget, GREEDY, 600 * MS, 1000), 0);
	assert_int_equal(sample(budget, GREEDY, 900 * MS, 1000), 1000);
	/* After half a minute within its share the pauses are short again. */
	assert_int_equal(sample(budget, GREEDY, 60000 * MS, 1000), 1000);
	pm_chain_budget_spend(budget, GREEDY, 1000 * MS);
	assert_int_equal(sample(budget, GREEDY, 60200 * MS, 1000), 0);
	assert_int_equal(sample(budget, GREEDY, 60300 * MS, 1000), 1000);
	pm_chain_budget_free(budget);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_modest_process_gets_all),
		cmocka_unit_test(test_higher_rate_gets_more),
		cmocka_unit_test(test_greedy_processes_pause),
		cmocka_unit_test(test_many_processes_share),
		cmocka_unit_test(test_other_work_counts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
