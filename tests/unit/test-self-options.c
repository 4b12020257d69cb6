/* SPDX-License-Identifier: MIT */
/* What program and environment ask of libpmself, and who of them wins. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "src/self/options.h"

static const char *const variables[] = { "PMSELF",       "PMSELF_RATE",
					 "PMSELF_EVENT", "PMSELF_OUTPUT",
					 "PMSELF_TABLE", "PMSELF_ENGINE",
					 "PMSELF_FIRST", "PMSELF_THREADS" };

static int setup(void **state)
{
	(void)state;
	for (size_t i = 0; i < PM_ARRAY_LEN(variables); i++)
		unsetenv(variables[i]);
	return 0;
}

static int init(struct pm_self_settings *ret, const struct pmself_options *options)
{
	struct pm_error err = { 0 };
	int code = pm_self_settings_init(ret, options, &err);

	assert_int_equal(code, err.code);
	return code;
}

static void test_defaults(void **state)
{
	struct pm_self_settings settings;

	(void)state;
	assert_int_equal(init(&settings, NULL), 0);
	assert_int_equal(settings.rate_hz, 999);
	assert_null(settings.event);
	assert_null(settings.output);
	assert_null(settings.table);
	assert_int_equal(settings.tid, 0);
	assert_false(settings.automatic);
	pm_self_settings_release(&settings);
}

/* Programs that were built with an older header, or a newer one. */
static void test_sizes(void **state)
{
	struct {
		struct pmself_options options;
		char more[64];
	} newer = { .options = PMSELF_OPTIONS_INIT };
	struct pmself_options *options = &newer.options;
	struct pm_self_settings settings;

	(void)state;
	memset(newer.more, 0xff, sizeof(newer.more));
	options->size = sizeof(newer);
	options->rate_hz = 7;
	options->this_thread_only = 1;
	assert_int_equal(init(&settings, options), 0);
	assert_int_equal(settings.rate_hz, 7);
	assert_int_equal(settings.tid, gettid());
	pm_self_settings_release(&settings);
	options->size = offsetof(struct pmself_options, this_thread_only);
	assert_int_equal(init(&settings, options), 0);
	assert_int_equal(settings.rate_hz, 7);
	assert_int_equal(settings.tid, 0);
	pm_self_settings_release(&settings);
	options->size = 0;
	assert_int_equal(init(&settings, options), -EINVAL);
	pm_self_settings_release(&settings);
}

static void test_environment_wins(void **state)
{
	struct pmself_options options = PMSELF_OPTIONS_INIT;
	struct pm_self_settings settings;

	(void)state;
	options.rate_hz = 5;
	options.event = "cycles";
	options.output = "a";
	options.table = "b";
	options.this_thread_only = 1;
	setenv("PMSELF_RATE", "100000", 1);
	setenv("PMSELF_EVENT", "cpu-clock", 1);
	setenv("PMSELF_OUTPUT", "none", 1);
	setenv("PMSELF_TABLE", "none", 1);
	setenv("PMSELF_ENGINE", "timer", 1);
	setenv("PMSELF_THREADS", "all", 1);
	assert_int_equal(init(&settings, &options), 0);
	assert_int_equal(settings.rate_hz, 100000);
	assert_string_equal(settings.event, "cpu-clock");
	assert_null(settings.output);
	assert_string_equal(settings.table, "");
	assert_int_equal(settings.engine, PMSELF_ENGINE_TIMER);
	assert_int_equal(settings.tid, 0);
	pm_self_settings_release(&settings);
	setenv("PMSELF_RATE", "100001", 1);
	assert_int_equal(init(&settings, &options), -EINVAL);
	pm_self_settings_release(&settings);
}

static void check_output(const char *asked, const char *expected)
{
	struct pm_self_settings settings;

	setenv("PMSELF_OUTPUT", asked, 1);
	assert_int_equal(init(&settings, NULL), 0);
	assert_string_equal(settings.output, expected);
	pm_self_settings_release(&settings);
}

static void test_names(void **state)
{
	struct pmself_options options = PMSELF_OPTIONS_INIT;
	struct pm_self_settings settings;
	char pid[64], appended[64];

	(void)state;
	snprintf(pid, sizeof(pid), "x-%d-%%p%%", (int)getpid());
	check_output("x-%p-%%p%", pid);
	/* Of a program that another profiled one has executed. */
	setenv("PMSELF", "on", 1);
	pm_self_tell_children();
	check_output("x", "x");
	setenv("PMSELF_FIRST", "1", 1);
	pm_self_tell_children();
	assert_string_equal(getenv("PMSELF_FIRST"), "1");
	snprintf(appended, sizeof(appended), "x.%d", (int)getpid());
	check_output("x", appended);
	check_output("x-%p-%%p%", pid);
	check_output("/dev/null", "/dev/null");
	/* What the program itself names is its own business. */
	unsetenv("PMSELF_OUTPUT");
	options.output = "x";
	assert_int_equal(init(&settings, &options), 0);
	assert_string_equal(settings.output, "x");
	pm_self_settings_release(&settings);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_defaults, setup),
		cmocka_unit_test_setup(test_sizes, setup),
		cmocka_unit_test_setup(test_environment_wins, setup),
		cmocka_unit_test_setup(test_names, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
