/* SPDX-License-Identifier: MIT */
/* The command line of pmrec: values, targets, and what does not go together. */
#include <getopt.h>
#include <linux/perf_event.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "src/pmrec/control.h"
#include "src/pmrec/options-parts.h"
#include "src/pmrec/snapshot.h"

enum {
	WORDS_MAX = 24,
};

/* Words with single spaces between them. */
static int parse(struct pm_rec_options *options, const char *line, struct pm_error *err)
{
	static char words[512];
	static char *argv[WORDS_MAX];
	int argc = 0;

	snprintf(words, sizeof(words), "pmrec %s", line);
	for (char *word = strtok(words, " "); word && argc < WORDS_MAX - 1;
	     word = strtok(NULL, " "))
		argv[argc++] = word;
	argv[argc] = NULL;
	optind = 0; /* getopt(3): begin anew */
	opterr = 0;
	*err = (struct pm_error){ 0 };
	return pm_rec_options_parse(options, argc, argv, err);
}

static void refuse(const char *line, const char *why)
{
	struct pm_rec_options options;
	struct pm_error err;

	if (parse(&options, line, &err) != -EINVAL)
		fail_msg("%s is taken", line);
	if (!strstr(err.text, why))
		fail_msg("%s: \"%s\" is not in \"%s\"", line, why, err.text);
	pm_rec_options_release(&options);
}

static void accept(struct pm_rec_options *options, const char *line)
{
	struct pm_error err;

	if (parse(options, line, &err) != 0)
		fail_msg("%s: %s", line, err.text);
}

static void test_durations(void **state)
{
	static const struct {
		const char *text;
		uint64_t ns;
	} good[] = {
		{ "1.5s", 1500000000 },   { "500ms", 500000000 },  { "2m", 120000000000 },
		{ "2min", 120000000000 }, { "1h", 3600000000000 }, { "3", 3000000000 },
		{ "0.25", 250000000 },    { "7us", 7000 },         { "1.s", 1000000000 },
	};
	static const char *const bad[] = { "",
					   "s",
					   "-1s",
					   "0",
					   "0s",
					   ".5s",
					   "1e3",
					   "1.5.s",
					   "2d",
					   "1 s",
					   "0x1s",
					   "99999999999999999999s",
					   "999999999999s",
					   "1sx" };
	uint64_t ns;

	for (size_t i = 0; i < PM_ARRAY_LEN(good); i++) {
		assert_int_equal(pm_parse_duration(&ns, "-d", good[i].text, "x", NULL),
				 0);
		assert_int_equal(ns, good[i].ns);
	}
	for (size_t i = 0; i < PM_ARRAY_LEN(bad); i++)
		if (pm_parse_duration(&ns, "-d", bad[i], "x", NULL) != -EINVAL)
			fail_msg("%s is taken", bad[i]);
}

static void test_sizes(void **state)
{
	uint64_t bytes;

	assert_int_equal(pm_parse_size(&bytes, "-s", "100M", "x", NULL), 0);
	assert_int_equal(bytes, 100 << 20);
	assert_int_equal(pm_parse_size(&bytes, "-s", "1.5k", "x", NULL), 0);
	assert_int_equal(bytes, 1536);
	assert_int_equal(pm_parse_size(&bytes, "-s", "12345", "x", NULL), 0);
	assert_int_equal(bytes, 12345);
	assert_int_equal(pm_parse_size(&bytes, "-s", "2T", "x", NULL), 0);
	assert_int_equal(bytes, 2ull << 40);
	assert_int_equal(pm_parse_size(&bytes, "-s", "0", "x", NULL), -EINVAL);
	assert_int_equal(pm_parse_size(&bytes, "-s", "M", "x", NULL), -EINVAL);
	assert_int_equal(pm_parse_size(&bytes, "-s", "1MB", "x", NULL), -EINVAL);
	assert_int_equal(pm_parse_size(&bytes, "-s", "1Q", "x", NULL), -EINVAL);
	assert_int_equal(pm_parse_size(&bytes, "-s", "99999999T", "x", NULL), -EINVAL);
}

static void test_lists(void **state)
{
	struct pm_rec_options options;

	accept(&options, "-p 12,7 -p 9");
	assert_int_equal(options.targets.pids.list.len, 3);
	assert_int_equal(options.targets.pids.list.data[0], 12);
	assert_int_equal(options.targets.pids.list.data[2], 9);
	assert_true(options.attach);
	assert_null(options.command);
	pm_rec_options_release(&options);
	refuse("-p 12,", "-p 12,: expected the number of a process");
	refuse("-p ,12", "expected the number of a process");
	refuse("-p 0", "expected the number of a process");
	refuse("-t 1x", "expected the number of a thread");
	refuse("-t 99999999999", "expected the number of a thread");
	for (size_t i = 0; i < 2; i++) {
		static const char *const good[] = { "-C 0", "-C 0,2-4,17 -- true" };

		accept(&options, good[i]);
		assert_true(options.targets.all_cpus && options.attach &&
			    options.targets.cpus);
		pm_rec_options_release(&options);
	}
	refuse("-C 1-", "-C 1-: expected numbers of CPUs");
	refuse("-C ,", "expected numbers of CPUs");
	refuse("-C 1,", "expected numbers of CPUs");
	refuse("-C all", "expected numbers of CPUs");
}

static void test_targets(void **state)
{
	struct pm_rec_options options;

	accept(&options, "-a -G g -C 1 -- sleep 5");
	assert_true(options.attach && options.targets.all_cpus);
	assert_string_equal(options.targets.cgroup, "g");
	assert_string_equal(options.command[0], "sleep");
	pm_rec_options_release(&options);
	accept(&options, "-u bob -i -D 20 --duration 1s");
	assert_true(options.targets.no_inherit && options.delay_ms == 20);
	assert_false(options.wait_for_control);
	pm_rec_options_release(&options);
	accept(&options, "-D -1 --control fifo:a,b true");
	assert_true(options.wait_for_control && !options.attach);
	pm_rec_options_release(&options);
	refuse("", "no command to record");
	refuse("-i", "no command to record");
	refuse("-p 1 -a", "exclude each other");
	refuse("-p 1 -C 0", "exclude each other");
	refuse("-t 1 -u root", "exclude each other");
	refuse("-a -i", "nothing is inherited");
	refuse("-D -1 true", "there is no --control");
	refuse("-D x true", "-D x: expected a number of milliseconds");
	refuse("-D -5 true", "expected a number of milliseconds");
	refuse("-u", "needs a value");
	refuse("--max-samples 0 true", "--max-samples 0: expected a number");
	refuse("--overwrite -o - true", "several files");
	refuse("--overwrite --max-samples 5 true", "do not go with it");
	refuse("--overwrite --raw r true", "exclude each other");
	refuse("-p 1 --engine ptrace", "a command that it starts");
	refuse("--engine ptrace --duration 1s true", "--engine ptrace has none of");
	refuse("-p 1 --user bob", "-u is for what runs already");
	refuse("-r 100 true", "expected a priority");
	refuse("--json true", "--json belongs to");
	refuse("--stacks -a", "of which process");
	refuse("--stacks -p 1,2", "one process at a time");
	refuse("--stacks -p 1 true", "runs no command");
}

static void test_filters(void **state)
{
	struct pm_rec_options options;

	accept(&options, "-j any_call,u true");
	assert_int_equal(options.branches,
			 PERF_SAMPLE_BRANCH_ANY_CALL | PERF_SAMPLE_BRANCH_USER);
	pm_rec_options_release(&options);
	/* Levels alone are no kind of branch. */
	accept(&options, "-j k true");
	assert_int_equal(options.branches,
			 PERF_SAMPLE_BRANCH_ANY | PERF_SAMPLE_BRANCH_KERNEL);
	pm_rec_options_release(&options);
	refuse("-j any, true", "unknown kind of branch \"\"");
	refuse("-j anyone true", "unknown kind of branch \"anyone\"");
	accept(&options, "-b true");
	assert_int_equal(options.branches, PERF_SAMPLE_BRANCH_ANY);
	pm_rec_options_release(&options);
	accept(&options, "--call-graph lbr true");
	assert_true(options.lbr && options.branches == 0);
	assert_int_equal(options.call_graph, PM_CALL_GRAPH_FP);
	pm_rec_options_release(&options);
	refuse("-b --call-graph lbr true", "exclude each other");
	refuse("-j any --off-cpu true", "--off-cpu has none of -b");
	refuse("--call-graph lbr --off-cpu true", "--off-cpu has none of -b");
	refuse("--engine ptrace -b true", "--engine ptrace has none of");
	refuse("--raw x --call-graph lbr true", "only --call-graph dwarf");
	refuse("--filter x true", "behind the -e that it filters");
	refuse("-e cpu-clock --filter x true", "cpu-clock is no tracepoint");
	accept(&options, "--list tracepoint sched:* --json");
	assert_int_equal(options.action, PM_REC_LIST);
	assert_string_equal(options.list_kind, "tracepoint");
	assert_string_equal(options.list_glob, "sched:*");
	assert_true(options.json);
	pm_rec_options_release(&options);
	accept(&options, "--list cpu*");
	assert_null(options.list_kind);
	assert_string_equal(options.list_glob, "cpu*");
	pm_rec_options_release(&options);
	refuse("--list a b", "a kind and a glob, no more");
}

static void test_control_words(void **state)
{
	static const char words[] = "ping\nena";
	static const char rest[] = "ble\n\nenable \nstop\0disable\n";
	struct pm_rec_control control;
	int ends[2];

	assert_int_equal(pipe(ends), 0);
	pm_rec_control_init(&control);
	control.fd = ends[0];
	assert_int_equal(pm_rec_control_next(&control), PM_REC_CONTROL_NONE);
	assert_int_equal(write(ends[1], words, sizeof(words) - 1), sizeof(words) - 1);
	pm_rec_control_read(&control);
	assert_int_equal(pm_rec_control_next(&control), PM_REC_CONTROL_PING);
	/* Half a line waits for the other half. */
	assert_int_equal(pm_rec_control_next(&control), PM_REC_CONTROL_NONE);
	assert_int_equal(write(ends[1], rest, sizeof(rest) - 1), sizeof(rest) - 1);
	pm_rec_control_read(&control);
	assert_int_equal(pm_rec_control_next(&control), PM_REC_CONTROL_ENABLE);
	assert_int_equal(pm_rec_control_next(&control), PM_REC_CONTROL_UNKNOWN);
	assert_string_equal(control.line, "enable ");
	assert_int_equal(pm_rec_control_next(&control), PM_REC_CONTROL_STOP);
	assert_int_equal(pm_rec_control_next(&control), PM_REC_CONTROL_DISABLE);
	/* A line without end takes no room, and is none of the words. */
	for (int i = 0; i < 50; i++) {
		assert_int_equal(write(ends[1], "stop", 4), 4);
		pm_rec_control_read(&control);
		assert_int_equal(pm_rec_control_next(&control), PM_REC_CONTROL_NONE);
	}
	assert_int_equal(write(ends[1], "\n", 1), 1);
	close(ends[1]);
	pm_rec_control_read(&control);
	assert_int_equal(pm_rec_control_next(&control), PM_REC_CONTROL_UNKNOWN);
	/* The other end is closed: no more to wait for. */
	pm_rec_control_read(&control);
	assert_int_equal(control.fd, -1);
	pm_rec_control_release(&control);
}

static void test_snapshot_names(void **state)
{
	const struct timespec time = { 1763751601, 123456789 };
	char name[64];

	assert_int_equal(pm_rec_snapshot_name("a.b/run.json.zst", &time, 0, name, 64), 0);
	assert_string_equal(name, "a.b/run-20251121T190001.123.json.zst");
	assert_int_equal(pm_rec_snapshot_name("x.json/run", &time, 2, name, 64), 0);
	assert_string_equal(name, "x.json/run-20251121T190001.123-2");
	assert_int_equal(pm_rec_snapshot_name("run.zst", &time, 0, name, 64), 0);
	assert_string_equal(name, "run-20251121T190001.123.zst");
	assert_int_equal(pm_rec_snapshot_name("run.json", &time, 0, name, 20),
			 -ENAMETOOLONG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_durations),
		cmocka_unit_test(test_sizes),
		cmocka_unit_test(test_lists),
		cmocka_unit_test(test_targets),
		cmocka_unit_test(test_filters),
		cmocka_unit_test(test_control_words),
		cmocka_unit_test(test_snapshot_names),
	};

	return cmocka_run_group_tests_name("options", tests, NULL, NULL);
}
