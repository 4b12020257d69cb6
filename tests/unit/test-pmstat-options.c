/* SPDX-License-Identifier: MIT */
/* The command line of pmstat: what it means, and what does not go together. */
#include <getopt.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "src/pmstat/options.h"

enum {
	WORDS_MAX = 24,
};

/* Words with single spaces between them. */
static int parse(struct pmstat_options *options, const char *line, struct pm_error *err)
{
	static char words[512];
	static char *argv[WORDS_MAX];
	int argc = 0;

	snprintf(words, sizeof(words), "pmstat %s", line);
	for (char *word = strtok(words, " "); word && argc < WORDS_MAX - 1;
	     word = strtok(NULL, " "))
		argv[argc++] = word;
	argv[argc] = NULL;
	optind = 0; /* getopt(3): begin anew */
	*err = (struct pm_error){ 0 };
	return pmstat_options_parse(options, argc, argv, err);
}

static void accept(struct pmstat_options *options, const char *line)
{
	struct pm_error err;

	if (parse(options, line, &err) != 0)
		fail_msg("%s: %s", line, err.text);
}

static void refuse(const char *line, const char *why)
{
	struct pmstat_options options;
	struct pm_error err;

	if (parse(&options, line, &err) >= 0)
		fail_msg("%s is taken", line);
	if (!strstr(err.text, why))
		fail_msg("%s: \"%s\" is not in \"%s\"", line, why, err.text);
	pmstat_options_release(&options);
}

static void test_plain(void **state)
{
	struct pmstat_options options;

	accept(&options, "true -r 5");
	assert_int_equal(options.repeat, 1);
	assert_string_equal(options.commands[0][1], "-r");
	assert_null(options.commands[1]);
	assert_false(options.event_given || options.attach || options.ab);
	assert_false(pmstat_needs_engine(&options));
	assert_int_equal(options.form, PMSTAT_TEXT);
	pmstat_options_release(&options);
	accept(&options, "-r 7 -w 2 -I 100 -D 20 --timeout 1500 -x \\t -o - -- true");
	assert_int_equal(options.repeat, 7);
	assert_int_equal(options.warmups, 2);
	assert_int_equal(options.interval_ms, 100);
	assert_int_equal(options.delay_ms, 20);
	assert_int_equal(options.timeout_ns, 1500000000);
	assert_string_equal(options.separator, "\t");
	pmstat_options_release(&options);
	accept(&options, "--time 2m --timeout 2s true");
	assert_true(options.repeat == UINT64_MAX);
	assert_true(options.time_ns == 120000000000);
	assert_int_equal(options.timeout_ns, 2000000000);
	pmstat_options_release(&options);
	accept(&options, "-a -- sleep 5");
	assert_true(options.attach && options.targets.all_cpus);
	pmstat_options_release(&options);
}

static void test_events(void **state)
{
	struct pmstat_options options;

	accept(&options, "-e {task-clock,page-faults},cs -e cycles:u true");
	assert_int_equal(options.specs.list.len, 4);
	assert_int_equal(options.simulated.len, 0);
	pmstat_options_release(&options);
	accept(&options, "--engine callgrind -e sim.Ir,sim.D1mr -e sim.Bc true");
	assert_int_equal(options.simulated.len, 3);
	assert_string_equal(options.simulated.data[0], "sim.Ir");
	assert_string_equal(options.simulated.data[2], "sim.Bc");
	assert_int_equal(options.specs.list.len, 0);
	assert_true(options.event_given && pmstat_needs_engine(&options));
	pmstat_options_release(&options);
	/* What is not simulated keeps its commas. */
	refuse("-e sim.Ir,{task-clock,page-faults} true", "sim.Ir is simulated");
	refuse("--engine callgrind -e {task-clock,cs},sim.Ir true",
	       "task-clock: --engine callgrind");
	refuse("-e sim.Ir true", "only --engine callgrind");
	refuse("--engine callgrind -e sim.Ir, true", "name is missing in the list");
}

static void test_comparisons(void **state)
{
	struct pmstat_options options;

	accept(&options, "ab -- old 1 ::: new 2 3");
	assert_true(options.ab);
	assert_int_equal(options.repeat, 20);
	assert_string_equal(options.commands[0][1], "1");
	assert_null(options.commands[0][2]);
	assert_string_equal(options.commands[1][2], "3");
	assert_null(options.commands[1][3]);
	pmstat_options_release(&options);
	/* Elsewhere it is a word like any other. */
	accept(&options, "-- ab ::: b");
	assert_false(options.ab);
	assert_string_equal(options.commands[0][1], ":::");
	pmstat_options_release(&options);
	refuse("ab old", "two commands");
	refuse("ab -- old :::", "two commands");
	refuse("ab -- ::: new", "two commands");
	refuse("ab -- a ::: b ::: c", "one ::: only");
	refuse("ab -I 10 -- a ::: b", "without -I");
}

static void test_functions(void **state)
{
	struct pmstat_options options;

	accept(&options, "--fn a* --range f.c:1-2 --calls-from --live --per thread true");
	assert_int_equal(options.regions.len, 2);
	assert_false(options.regions.data[0].range);
	assert_true(options.regions.data[1].range);
	assert_int_equal(options.calls_from, 1);
	assert_true(options.live && pmstat_needs_engine(&options));
	assert_int_equal(options.by, PM_COUNTERS_BY_THREAD);
	pmstat_options_release(&options);
	accept(&options, "--fn a --calls-from=12 --engine ptrace -p 1");
	assert_int_equal(options.calls_from, 12);
	assert_int_equal(options.engine, PM_COUNT_ENGINE_PTRACE);
	pmstat_options_release(&options);
	refuse("--fn a --calls-from=0 true", "--calls-from=0");
	refuse("--fn a --calls-from 2 true", "--calls-from=2");
	refuse("--calls-from 2 --fn a true", "--calls-from=2");
	accept(&options, "--fn a --calls-from -- 2");
	assert_string_equal(options.commands[0][0], "2");
	pmstat_options_release(&options);
	refuse("--fn a --per cpu true", "--per thread only");
	refuse("--fn a -D 10 true", "-I and -D do not go");
	refuse("--fn a -p 1 -- sleep 5", "not with a command");
	refuse("--fn a --live --json true", "-o FILE parts them");
	refuse("--engine callgrind --live --fn a true", "no --live");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_plain),
		cmocka_unit_test(test_events),
		cmocka_unit_test(test_comparisons),
		cmocka_unit_test(test_functions),
	};

	return cmocka_run_group_tests_name("pmstat-options", tests, NULL, NULL);
}
