/* SPDX-License-Identifier: MIT */
/* Tables by several keys, what filters leave out, and how many CPUs ran at a time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "pm/profile.h"

/*
 * Events: a clock at 100 Hz, faults at 100 Hz, calls one by one, and blocked time. Stacks: 0 is
 * foo; 1 is bar; 2 is foo called by bar; 3 is foo called by foo.
 */
static const char head[] =
	"{\"type\":\"header\",\"format\":\"pmrec\",\"version\":1,\"pmrec\":\"0.1.0\","
	"\"created\":\"2024-05-06T07:08:09Z\",\"clock\":\"monotonic\",\"host\":{\"cpus\":2},"
	"\"command\":[\"prog\"],\"events\":["
	"{\"id\":0,\"name\":\"cpu-clock\",\"requested\":\"cpu-clock\",\"actual\":"
	"\"cpu-clock\",\"modifiers\":\"\",\"unit\":\"ns\",\"freq\":100},"
	"{\"id\":1,\"name\":\"faults\",\"requested\":\"faults\",\"actual\":\"faults\","
	"\"modifiers\":\"\",\"unit\":\"events\",\"freq\":100},"
	"{\"id\":2,\"name\":\"calls\",\"requested\":\"calls\",\"actual\":\"calls\","
	"\"modifiers\":\"\",\"unit\":\"events\",\"period\":1},"
	"{\"id\":3,\"name\":\"off-cpu\",\"requested\":\"--off-cpu\",\"actual\":\"off-cpu\","
	"\"modifiers\":\"\",\"unit\":\"ns\",\"period\":1}],"
	"\"options\":{\"call_graph\":\"dwarf\",\"stack_bytes\":8,\"ring_bytes\":8}}\n"
	"{\"type\":\"module\",\"id\":0,\"path\":\"/bin/one\",\"kind\":\"file\"}\n"
	"{\"type\":\"module\",\"id\":1,\"path\":\"/lib/two.so\",\"kind\":\"file\"}\n"
	"{\"type\":\"frame\",\"id\":0,\"module\":0,\"address\":\"0x1\",\"how\":\"ip\"}\n"
	"{\"type\":\"frame\",\"id\":1,\"module\":1,\"address\":\"0x2\",\"how\":\"ip\"}\n"
	"{\"type\":\"symbol\",\"frame\":0,\"functions\":[{\"name\":\"foo\"}]}\n"
	"{\"type\":\"symbol\",\"frame\":1,\"functions\":[{\"name\":\"bar\"}]}\n"
	"{\"type\":\"stack\",\"id\":0,\"parent\":null,\"frames\":[0]}\n"
	"{\"type\":\"stack\",\"id\":1,\"parent\":null,\"frames\":[1]}\n"
	"{\"type\":\"stack\",\"id\":2,\"parent\":1,\"frames\":[0]}\n"
	"{\"type\":\"stack\",\"id\":3,\"parent\":0,\"frames\":[0]}\n";

enum {
	MS = 1000000,
	FOO = 0,
	BAR = 1,
};

static void put_thread(struct pm_str *file, unsigned pid, unsigned tid, const char *comm)
{
	pm_str_printf(file,
		      "{\"type\":\"thread\",\"pid\":%u,\"tid\":%u,\"comm\":\"%s\","
		      "\"time\":1}\n",
		      pid, tid, comm);
}

/* @ms after the start, less 1 ns; a @tid of 0 is the idle task. */
static void put(struct pm_str *file, unsigned event, unsigned ms, unsigned tid,
		unsigned cpu, unsigned period, unsigned stack)
{
	pm_str_printf(file,
		      "{\"type\":\"sample\",\"time\":%llu,\"pid\":%u,\"tid\":%u,"
		      "\"cpu\":%u,\"event\":%u,\"period\":%u,\"stack\":%u}\n",
		      (unsigned long long)ms * MS, tid == 0 ? 0 : 7, tid, cpu, event,
		      period, stack);
}

static struct pm_str begin(void)
{
	struct pm_str file = { 0 };

	pm_str_puts(&file, head);
	put_thread(&file, 7, 7, "main");
	return file;
}

static struct pm_profile *load(struct pm_str *file,
			       const struct pm_profile_options *options)
{
	struct pm_file_reader *reader;
	struct pm_profile *profile = NULL;
	struct pm_error err = { 0 };

	assert_false(file->failed);
	if (pm_file_reader_open_memory(&reader, file->data, file->len, &err) < 0 ||
	    pm_profile_load(&profile, reader, options, &err) < 0)
		fail_msg("%s", err.text);
	pm_file_reader_free(reader);
	pm_str_release(file);
	return profile;
}

static const struct pm_profile_options wall = { .keep_samples = true, .latency = true };
static const struct pm_profile_options parallel = { .keep_samples = true,
						    .parallelism = true };

static uint64_t period_of(const struct pm_profile *profile, uint32_t event,
			  const char *function)
{
	struct pm_view *view;
	struct pm_table table;
	uint64_t period = 0;

	assert_int_equal(pm_view_new(&view, profile, event, NULL, NULL), 0);
	assert_int_equal(pm_table_init(&table, view, PM_KEY_FUNCTION, false), 0);
	for (size_t i = 0; i < table.rows.len; i++)
		if (strcmp(profile->functions.data[table.rows.data[i].id].name,
			   function) == 0)
			period = table.rows.data[i].self.period;
	pm_table_release(&table);
	pm_view_free(view);
	return period;
}

/* ---- how many ran ---------------------------------------------------------------------- */

/* foo alone for 9 s, then bar in 128 threads on as many CPUs for 1 s. */
static void test_wall_clock(void **state)
{
	struct pm_str file = begin();
	struct pm_profile *profile;

	for (unsigned i = 1; i <= 900; i++)
		put(&file, 0, i * 10, 7, 0, 10 * MS, FOO);
	for (unsigned i = 901; i <= 1000; i++)
		for (unsigned cpu = 0; cpu < 128; cpu++)
			put(&file, 0, i * 10, 100 + cpu, cpu, 10 * MS, BAR);
	profile = load(&file, &wall);
	assert_int_equal(profile->clock_event, 0);
	assert_true(profile->latency);
	assert_true(profile->events.data[0].divided);
	assert_int_equal(profile->parallelism.len, profile->samples.len);
	for (size_t i = 0; i < profile->samples.len; i++)
		assert_int_equal(profile->parallelism.data[i], i < 900 ? 1 : 128);
	assert_int_equal(period_of(profile, 0, "foo"), 9000ull * MS);
	assert_int_equal(period_of(profile, 0, "bar"), 1000ull * MS);
	pm_profile_free(profile);
}

/* Four threads take turns on two CPUs, 6 ms each: never more than two run. */
static void test_more_threads_than_cpus(void **state)
{
	struct pm_str file = begin();
	struct pm_profile *profile;

	for (unsigned i = 1; i <= 100; i++) {
		put(&file, 0, i * 12, 101 + i % 2, 0, 10 * MS, BAR);
		put(&file, 0, i * 12 + 3, 103 + i % 2, 1, 10 * MS, BAR);
	}
	profile = load(&file, &parallel);
	assert_false(profile->latency);
	for (size_t i = 1; i + 1 < profile->samples.len; i++)
		assert_int_equal(profile->parallelism.data[i], 2);
	assert_int_equal(period_of(profile, 0, "bar"), 2000ull * MS);
	pm_profile_free(profile);
}

static void test_pauses(void **state)
{
	static const struct {
		unsigned ms, cpu, expected;
	} cases[] = {
		{ 10, 1, 2 },  { 15, 0, 2 }, { 20, 1, 2 }, /* CPU 0 from 5 on */
		{ 25, 0, 1 }, /* CPU 1 ran up to 20 */
		{ 50, 0, 1 },  { 90, 0, 1 }, { 95, 0, 2 }, /* and again from 90 on */
		{ 100, 1, 1 },
	};
	struct pm_str file = begin();
	struct pm_profile *profile;

	for (size_t i = 0; i < PM_ARRAY_LEN(cases); i++)
		put(&file, 0, cases[i].ms, 100 + cases[i].cpu, cases[i].cpu, 10 * MS,
		    FOO);
	profile = load(&file, &parallel);
	for (size_t i = 0; i < PM_ARRAY_LEN(cases); i++)
		assert_int_equal(profile->parallelism.data[i], cases[i].expected);
	pm_profile_free(profile);
}

/* One thread is on one CPU at a time, however soon it is sampled again. */
static void test_moving_thread(void **state)
{
	struct pm_str file = begin();
	struct pm_profile *profile;

	for (unsigned i = 1; i < 100; i++)
		put(&file, 0, i * 9, 7, i % 3, 10 * MS, FOO);
	profile = load(&file, &parallel);
	for (size_t i = 0; i < profile->samples.len; i++)
		assert_int_equal(profile->parallelism.data[i], 1);
	pm_profile_free(profile);
}

/* The first sample of a thread says nothing of the time before it began. */
static void test_new_thread(void **state)
{
	struct pm_str file = begin();
	struct pm_profile *profile;

	put(&file, 0, 10, 7, 0, 10 * MS, FOO);
	put(&file, 0, 20, 7, 0, 10 * MS, FOO);
	pm_str_printf(&file,
		      "{\"type\":\"thread\",\"pid\":7,\"tid\":8,\"comm\":\"new\","
		      "\"time\":%llu}\n",
		      22ull * MS);
	put(&file, 0, 26, 8, 1, 10 * MS, BAR);
	profile = load(&file, &parallel);
	assert_int_equal(profile->samples.len, 3);
	for (size_t i = 0; i < profile->samples.len; i++)
		assert_int_equal(profile->parallelism.data[i], 1);
	pm_profile_free(profile);
}

static void test_idle_and_blocked(void **state)
{
	struct pm_str file = begin();
	struct pm_profile *profile;

	put_thread(&file, 0, 0, "swapper");
	for (unsigned i = 1; i <= 10; i++) {
		put(&file, 0, i * 10, 7, 0, 10 * MS, FOO);
		put(&file, 0, i * 10, 0, 1, 10 * MS, BAR);
	}
	put(&file, 3, 105, 7, 0, 77, FOO);
	put(&file, 2, 50, 7, 0, 1, FOO);
	profile = load(&file, &wall);
	assert_int_equal(period_of(profile, 0, "foo"), 100 * MS);
	assert_int_equal(period_of(profile, 0, "bar"), 0);
	assert_int_equal(period_of(profile, 3, "foo"), 77);
	assert_int_equal(period_of(profile, 2, "foo"), 1);
	assert_false(profile->events.data[3].divided);
	assert_false(profile->events.data[2].divided);
	for (size_t i = 0; i < profile->samples.len; i++) {
		const struct pm_profile_cell *cell =
			&profile->cells.data[profile->samples.data[i].cell];
		bool idle = profile->threads.data[cell->thread].pid == 0;

		assert_int_equal(profile->parallelism.data[i],
				 idle || cell->event == 3 ? 0 : 1);
	}
	pm_profile_free(profile);
}

/* What a division of small numbers leaves over is not lost. */
static void test_small_periods(void **state)
{
	struct pm_str file = begin();
	struct pm_profile *profile;

	for (unsigned i = 1; i <= 30; i++) {
		for (unsigned cpu = 0; cpu < 3; cpu++) {
			put(&file, 0, i * 10, 100 + cpu, cpu, 10 * MS, BAR);
			put(&file, 1, i * 10, 100 + cpu, cpu, 1, BAR);
		}
	}
	profile = load(&file, &wall);
	assert_int_equal(period_of(profile, 1, "bar"), 30);
	assert_int_equal(period_of(profile, 0, "bar"), 300 * MS);
	pm_profile_free(profile);
}

static void test_no_clock(void **state)
{
	struct pm_str file = begin();
	struct pm_profile *profile;

	put(&file, 2, 10, 7, 0, 5, FOO);
	put(&file, 3, 20, 7, 0, 6, FOO);
	profile = load(&file, &wall);
	assert_int_equal(profile->clock_event, PM_PROFILE_NONE);
	assert_false(profile->latency);
	assert_int_equal(period_of(profile, 2, "foo"), 5);
	assert_int_equal(profile->parallelism.data[0], 0);
	pm_profile_free(profile);
}

static void test_wall_clock_of_a_range(void **state)
{
	const struct pm_profile_options options = {
		.keep_samples = true,
		.latency = true,
		.time_set = true,
		.time_from = 0.055,
		.time_to = 1,
	};
	struct pm_str file = begin();
	struct pm_profile *profile;

	for (unsigned i = 1; i <= 10; i++)
		for (unsigned cpu = 0; cpu < (i > 5 ? 2 : 1); cpu++)
			put(&file, 0, i * 10, 100 + cpu, cpu, 10 * MS, FOO);
	profile = load(&file, &options);
	assert_int_equal(profile->samples.len, 10);
	assert_int_equal(period_of(profile, 0, "foo"), 50 * MS);
	pm_profile_free(profile);
}

/* ---- keys ------------------------------------------------------------------------------ */

static struct pm_profile *several(const struct pm_profile_options *options)
{
	struct pm_str file = begin();

	put_thread(&file, 7, 8, "work");
	put_thread(&file, 7, 9, "work");
	put(&file, 0, 10, 7, 0, 1, 2); /* bar -> foo */
	put(&file, 0, 20, 7, 0, 2, 1); /* bar */
	put(&file, 0, 30, 8, 1, 4, 3); /* foo -> foo */
	put(&file, 0, 40, 9, 0, 8, 0); /* foo */
	put(&file, 0, 50, 9, 1, 16, 2); /* bar -> foo */
	return load(&file, options);
}

struct expected {
	uint32_t ids[PM_KEYS_MAX];
	uint64_t self, total;
};

static void check_rows(const struct pm_profile *profile, const struct pm_keys *keys,
		       const struct expected *expected, size_t len)
{
	struct pm_view *view;
	struct pm_table table;

	assert_int_equal(pm_view_new(&view, profile, 0, NULL, NULL), 0);
	assert_int_equal(pm_table_init_keys(&table, view, keys, false), 0);
	assert_int_equal(table.rows.len, len);
	for (size_t i = 0; i < len; i++) {
		const struct pm_row *row = &table.rows.data[i];

		for (uint32_t k = 0; k < keys->len; k++)
			assert_int_equal(pm_row_id(row, k), expected[i].ids[k]);
		assert_int_equal(row->self.period, expected[i].self);
		assert_int_equal(row->total.period, expected[i].total);
	}
	pm_table_release(&table);
	pm_view_free(view);
}

/* Functions are numbered as they were symbolised: foo 0, bar 1; so are modules. */
static void test_comm_and_function(void **state)
{
	const struct pm_keys keys = { { PM_KEY_COMM, PM_KEY_FUNCTION }, 2 };
	const struct expected expected[] = {
		{ { 1, 0 }, 28, 28 },
		{ { 0, 1 }, 2, 3 },
		{ { 0, 0 }, 1, 1 },
		{ { 1, 1 }, 0, 16 },
	};
	const struct pm_profile_options options = { 0 };
	struct pm_profile *profile = several(&options);

	check_rows(profile, &keys, expected, PM_ARRAY_LEN(expected));
	pm_profile_free(profile);
}

static void test_three_keys(void **state)
{
	const struct pm_keys keys = { { PM_KEY_MODULE, PM_KEY_THREAD, PM_KEY_CPU }, 3 };
	const struct expected expected[] = {
		{ { 0, 2, 1 }, 16, 16 }, { { 0, 2, 0 }, 8, 8 }, { { 0, 1, 1 }, 4, 4 },
		{ { 1, 0, 0 }, 2, 3 },   { { 0, 0, 0 }, 1, 1 }, { { 1, 2, 1 }, 0, 16 },
	};
	struct pm_profile *profile = several(&parallel);

	check_rows(profile, &keys, expected, PM_ARRAY_LEN(expected));
	pm_profile_free(profile);
}

static void test_one_key_of_samples(void **state)
{
	const struct pm_keys keys = { { PM_KEY_CPU }, 1 };
	const struct expected expected[] = {
		{ { 1 }, 20, 20 },
		{ { 0 }, 11, 11 },
	};
	struct pm_profile *profile = several(&parallel);

	check_rows(profile, &keys, expected, PM_ARRAY_LEN(expected));
	pm_profile_free(profile);
}

/* Each key by itself must agree with the faster way to the same table. */
static void test_keys_agree(void **state)
{
	struct pm_profile *profile = several(&parallel);
	struct pm_view *view;

	assert_int_equal(pm_view_new(&view, profile, 0, NULL, NULL), 0);
	for (int key = PM_KEY_FUNCTION; key <= PM_KEY_ADDRESS; key++) {
		const struct pm_keys keys = { { (enum pm_key)key, PM_KEY_PROCESS }, 2 };
		struct pm_table one, two;

		assert_int_equal(pm_table_init(&one, view, (enum pm_key)key, true), 0);
		if (key == PM_KEY_PROCESS) {
			pm_table_release(&one);
			continue;
		}
		/* There is one process: it divides nothing. */
		assert_int_equal(pm_table_init_keys(&two, view, &keys, true), 0);
		assert_int_equal(one.rows.len, two.rows.len);
		for (size_t i = 0; i < one.rows.len; i++) {
			assert_int_equal(one.rows.data[i].id, two.rows.data[i].id);
			assert_int_equal(one.rows.data[i].self.period,
					 two.rows.data[i].self.period);
			assert_int_equal(one.rows.data[i].total.period,
					 two.rows.data[i].total.period);
		}
		pm_table_release(&one);
		pm_table_release(&two);
	}
	pm_view_free(view);
	pm_profile_free(profile);
}

/* ---- what is left out -------------------------------------------------------------------- */

static void test_left_out(void **state)
{
	static const struct {
		struct pm_filter filter;
		uint64_t period; /* 0: there is an error */
	} cases[] = {
		{ { .comm = "!work" }, 3 },
		{ { .comm = "!main" }, 28 },
		{ { .comm = "work,!work" }, 0 }, /* nothing passes */
		{ { .comm = "main,work" }, 31 },
		{ { .comm = "!nobody" }, 0 },
		{ { .tid = "!7,!8" }, 24 },
		{ { .tid = "!77" }, 0 },
		{ { .pid = "!7" }, 0 },
		{ { .module = "!one" }, 2 },
		{ { .module = "!two.so" }, 29 },
		{ { .module = "!^/lib" }, 29 },
		{ { .symbol = "!bar" }, 12 },
		{ { .symbol = "!foo" }, 2 },
		{ { .symbol = "!" }, 0 },
		{ { .comm = "!main", .symbol = "!bar" }, 12 },
	};
	const struct pm_profile_options options = { 0 };
	struct pm_profile *profile = several(&options);

	for (size_t i = 0; i < PM_ARRAY_LEN(cases); i++) {
		struct pm_view *view;
		struct pm_error err = { 0 };

		if (pm_view_new(&view, profile, 0, &cases[i].filter, &err) < 0) {
			assert_int_equal(cases[i].period, 0);
			assert_true(err.text[0] != '\0');
			continue;
		}
		assert_int_equal(view->total.period, cases[i].period);
		pm_view_free(view);
	}
	pm_profile_free(profile);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_wall_clock),
		cmocka_unit_test(test_more_threads_than_cpus),
		cmocka_unit_test(test_pauses),
		cmocka_unit_test(test_moving_thread),
		cmocka_unit_test(test_new_thread),
		cmocka_unit_test(test_idle_and_blocked),
		cmocka_unit_test(test_small_periods),
		cmocka_unit_test(test_no_clock),
		cmocka_unit_test(test_wall_clock_of_a_range),
		cmocka_unit_test(test_comm_and_function),
		cmocka_unit_test(test_three_keys),
		cmocka_unit_test(test_one_key_of_samples),
		cmocka_unit_test(test_keys_agree),
		cmocka_unit_test(test_left_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
