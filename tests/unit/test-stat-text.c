/* SPDX-License-Identifier: MIT */
/* Counting runs as people and programs read them: whole texts of documents made by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "pm/compare.h"
#include "pm/stat-output.h"
#include "tests/stat-documents.h"

static const char no_pmu[] = "this machine has no hardware counters, or its hypervisor "
			     "keeps them";

/* ---- what is shown --------------------------------------------------------------------- */

static char *stream_text; /* of the last one */
static size_t stream_len;

static FILE *stream_open(void)
{
	FILE *to;

	free(stream_text);
	stream_text = NULL;
	to = open_memstream(&stream_text, &stream_len);
	assert_non_null(to);
	return to;
}

static const char *shown(const struct pm_stat_report *report)
{
	FILE *to = stream_open();

	assert_int_equal(pm_output_stat_text(report, to, NULL), 0);
	fclose(to);
	return stream_text;
}

static const char *shown_80(const struct pm_stat *stat)
{
	struct pm_stat_report report = { .stat = stat, .width = 80 };

	return shown(&report);
}

static const char *csv_of(const struct pm_stat *stat, const char *separator)
{
	struct pm_stat_report report = { .stat = stat };
	FILE *to = stream_open();

	assert_int_equal(pm_output_stat_csv(&report, separator, to, NULL), 0);
	fclose(to);
	return stream_text;
}

static void assert_has(const char *text, const char *part)
{
	if (!strstr(text, part))
		fail_msg("not there: %s\n\tin:\n%s", part, text);
}

static void assert_lacks(const char *text, const char *part)
{
	if (strstr(text, part))
		fail_msg("there: %s\n\tin:\n%s", part, text);
}

/* No line of a text for a screen may be wider than that. */
static void assert_fits(const char *text, size_t columns)
{
	size_t at = 0;

	for (const char *c = text; *c; c++) {
		at = *c == '\n' ? 0 : at + (((unsigned char)*c & 0xc0) != 0x80);
		if (at > columns)
			fail_msg("wider than %zu:\n%s", columns, text);
	}
}

static void add_events(struct pm_stat *stat)
{
	struct pm_stat_event *event;

	stat_event(stat, "task-clock", "ns", PM_STAT_NOISY);
	event = stat_event(stat, "wall-time", "ns", PM_STAT_NOISY);
	free(event->source);
	event->source = stat_text("tool");
	stat_event(stat, "page-faults", "", PM_STAT_LOW_NOISE);
	event = stat_event(stat, "max-rss", "bytes", PM_STAT_LOW_NOISE);
	free(event->source);
	event->source = stat_text("tool");
	stat_why(stat_event(stat, "cycles", "", PM_STAT_NOISY), PM_STAT_NOT_SUPPORTED,
		 no_pmu);
	stat_why(stat_event(stat, "branches", "", PM_STAT_NOISY), PM_STAT_NOT_SUPPORTED,
		 no_pmu);
	stat_event(stat, "instructions", "", PM_STAT_LOW_NOISE)->user_only = true;
}

enum {
	TASK_CLOCK,
	WALL_TIME,
	PAGE_FAULTS,
	MAX_RSS,
	CYCLES,
	BRANCHES,
	INSTRUCTIONS,
	EVENTS,
};

static const uint64_t plain[EVENTS] = {
	12345678, 12612345, 123, 4700160, 0, 0, 1234567890
};

static void make_one(struct pm_stat *stat)
{
	static const char *const argv[] = { "./sumbench", "a b" };

	stat_begin(stat, "count");
	stat_subject(stat, argv, 2);
	add_events(stat);
	stat_run(stat, 0, plain);
}

/* ---- one run --------------------------------------------------------------------------- */

static void test_one_run(void **state)
{
	PM_CLEANUP(pm_stat_release) struct pm_stat stat = { 0 };
	struct pm_stat_value *value;

	make_one(&stat);
	value = &stat.runs.data[0].values[INSTRUCTIONS];
	value->state = PM_STAT_MULTIPLEXED;
	value->raw = 800000000;
	value->enabled_ns = 12000000;
	value->running_ns = 7500000;
	stat_metric(&stat, "CPUs utilised", TASK_CLOCK, 0, -1, 0.9788);
	stat_metric(&stat, "IPC", INSTRUCTIONS, 0, -1, 1.934);
	stat_metric(&stat, "unknown", INSTRUCTIONS, 0, -1, -1);
	assert_string_equal(
		shown_80(&stat),
		"./sumbench 'a b'\n"
		"\n"
		"     12.35 ms  task-clock    0.98 CPUs utilised\n"
		"     12.61 ms  wall-time\n"
		"          123  page-faults\n"
		"    4.482 MiB  max-rss\n"
		"not supported  cycles\n"
		"not supported  branches\n"
		"1,234,567,890  instructions  1.93 IPC            (62.5 % of the time)\n"
		"\n"
		"not supported: cycles, branches – this machine has no hardware counters, or its\n"
		"  hypervisor keeps them\n"
		"without the kernel: instructions\n");
	assert_fits(stream_text, 80);
}

static void test_quiet_ascii_color(void **state)
{
	PM_CLEANUP(pm_stat_release) struct pm_stat stat = { 0 };
	struct pm_stat_report report = { .stat = &stat, .quiet = true, .ascii = true };

	make_one(&stat);
	stat.runs.data[0].values[TASK_CLOCK].value = 12345;
	assert_has(shown(&report), "12.35 us");
	assert_lacks(stream_text, "sumbench");
	assert_lacks(stream_text, "hypervisor");
	assert_lacks(stream_text, "\033");
	report.quiet = false;
	assert_has(shown(&report), "branches - this machine");
	for (const char *c = stream_text; *c; c++)
		assert_true((unsigned char)*c < 0x80);
	report.ascii = false;
	report.color = true;
	assert_has(shown(&report), "\033[1m./sumbench 'a b'");
	assert_has(stream_text, "12.35 µs");
}

/* Every state has its words, and no value that looks like one. */
static void test_states(void **state)
{
	PM_CLEANUP(pm_stat_release) struct pm_stat stat = { 0 };
	struct pm_stat_value *values;

	make_one(&stat);
	values = stat.runs.data[0].values;
	stat_why(&stat.events.data[BRANCHES], PM_STAT_NOT_PERMITTED, "only root may");
	values[BRANCHES].state = PM_STAT_NOT_PERMITTED;
	values[PAGE_FAULTS].state = PM_STAT_NOT_COUNTED;
	assert_has(shown_80(&stat), "not permitted  branches\n");
	assert_has(stream_text, "  not counted  page-faults\n");
	assert_has(stream_text, "not supported  cycles\n");
	assert_has(stream_text, "\nnot permitted: branches – only root may\n");
	assert_lacks(stream_text, "123  page");
	assert_has(csv_of(&stat, ","), ",page-faults,,,not_counted,,,,,,,\n");
}

static void test_the_kernel_left_out(void **state)
{
	PM_CLEANUP(pm_stat_release) struct pm_stat stat = { 0 };

	make_one(&stat);
	for (size_t i = 0; i < stat.events.len; i++)
		stat.events.data[i].user_only = i != WALL_TIME && i != MAX_RSS;
	assert_has(shown_80(&stat), "All events were counted without the kernel.\n");
	stat.events.data[TASK_CLOCK].user_only = false;
	assert_has(shown_80(&stat), "without the kernel: page-faults, instructions\n");
}

static void test_ends(void **state)
{
	PM_CLEANUP(pm_stat_release) struct pm_stat stat = { 0 };
	struct pm_stat_report report;
	struct pm_stat_run *run;

	make_one(&stat);
	run = &stat.runs.data[0];
	assert_lacks(shown_80(&stat), "exit");
	run->exit_code = 3;
	assert_has(shown_80(&stat), "\nexit status 3\n");
	run->exit_code = -1;
	run->signal = 6;
	assert_has(shown_80(&stat), "\nkilled by signal 6 (Aborted)\n");
	run->exited = false;
	run->signal = 0;
	run->stopped = true;
	assert_has(shown_80(&stat), "\ncounting was stopped before the end\n");
	/* What was stopped took it calmly, or not. */
	run->exited = true;
	run->exit_code = 0;
	assert_has(shown_80(&stat), "\ncounting was stopped before the end\n");
	run->exit_code = -1;
	run->signal = 15;
	assert_has(shown_80(&stat), "\ncounting was stopped before the end, and then: "
				    "killed by signal 15 (Terminated)\n");
	/* As was asked. */
	report = (struct pm_stat_report){ .stat = &stat, .timed = true };
	assert_lacks(shown(&report), "before the end");
	assert_lacks(shown(&report), "killed");
	stat_run(&stat, 0, plain);
	stat_run(&stat, 0, plain)->exit_code = 1;
	stat_run(&stat, 0, plain)->exit_code = 1;
	assert_has(shown_80(&stat), "\nexit status 1: 2 of 4 runs\n");
}

/* Names that people typed are shown as typed; foreign bytes never reach the screen. */
static void test_names(void **state)
{
	PM_CLEANUP(pm_stat_release) struct pm_stat stat = { 0 };

	make_one(&stat);
	free(stat.events.data[0].requested);
	stat.events.data[0].requested = stat_text("task-clock:u\033[2J");
	stat.events.data[0].default_set = false;
	stat_warning(&stat, "a\nb\033");
	free(stat.subjects.data[0].argv.data[0]);
	stat.subjects.data[0].argv.data[0] = stat_text("./\033]0;x\a");
	assert_has(shown_80(&stat), "task-clock:u\\x1b[2J");
	assert_has(stream_text, "warning: a\\x0ab\\x1b\n");
	assert_lacks(stream_text, "\033");
	assert_lacks(stream_text, "\a");
	assert_lacks(csv_of(&stat, ","), "\033");
}

/* ---- rows and intervals ---------------------------------------------------------------- */

static void add_rows(struct pm_stat *stat, struct pm_stat_run *run)
{
	for (int32_t i = 0; i < 2; i++) {
		struct pm_stat_row row = { .pid = 10,
					   .tid = 10 + i,
					   .comm = stat_text(i > 0 ? "worker" : "main"),
					   .cpu = -1,
					   .values = stat_values(stat, plain) };

		assert_int_equal(pm_vec_push(&run->rows, row), 0);
	}
}

static void test_rows(void **state)
{
	PM_CLEANUP(pm_stat_release) struct pm_stat stat = { 0 };

	make_one(&stat);
	add_rows(&stat, &stat.runs.data[0]);
	assert_has(
		shown_80(&stat),
		"\n"
		"thread     task-clock  wall-time  page-faults    max-rss   instructions\n"
		"main 10      12.35 ms   12.61 ms          123  4.482 MiB  1,234,567,890\n"
		"worker 11    12.35 ms   12.61 ms          123  4.482 MiB  1,234,567,890\n");
	for (unsigned int width = 60; width < 110; width++) {
		struct pm_stat_report report = { .stat = &stat, .width = width };

		assert_fits(shown(&report), width);
	}
	assert_has(csv_of(&stat, ","), "\nrow,0,0,0,,,10,11,worker,,");
}

static void test_intervals(void **state)
{
	PM_CLEANUP(pm_stat_release) struct pm_stat stat = { 0 };
	struct pm_stat_report report = { .stat = &stat, .width = 80 };
	struct pm_stat_run *run;
	FILE *to;

	make_one(&stat);
	run = &stat.runs.data[0];
	for (uint64_t i = 1; i <= 2; i++) {
		struct pm_stat_interval interval = { .at_ns = i * 1000123456,
						     .values =
							     stat_values(&stat, plain) };

		assert_int_equal(pm_vec_push(&run->intervals, interval), 0);
	}
	to = stream_open();
	assert_int_equal(pm_output_stat_interval_text(&report, run, true, to, NULL), 0);
	fclose(to);
	assert_string_equal(stream_text,
			    "     seconds             count  event\n"
			    "    2.000247          12.35 ms  task-clock\n"
			    "    2.000247          12.61 ms  wall-time\n"
			    "    2.000247               123  page-faults\n"
			    "    2.000247         4.482 MiB  max-rss\n"
			    "    2.000247     1,234,567,890  instructions\n");
	assert_has(shown(&report), "    1.000123          12.35 ms  task-clock\n");
	assert_has(csv_of(&stat, ","), "\ninterval,0,0,,,1000123456,");
	/* Once told, they do not come again. */
	report.intervals_told = true;
	assert_lacks(shown(&report), "1.000123");
	to = stream_open();
	assert_int_equal(pm_output_stat_csv(&report, ",", to, NULL), 0);
	fclose(to);
	assert_lacks(stream_text, "interval,");
	assert_lacks(stream_text, "what,");
	to = stream_open();
	assert_int_equal(pm_output_stat_interval_csv(&report, run, false, ",", to, NULL),
			 0);
	fclose(to);
	assert_has(stream_text,
		   "interval,0,0,,,2000246912,,,,,,,,,,,,,,,,task-clock,12345678,ns,ok,");
	assert_lacks(stream_text, "1000123456");
}

static void test_interval_rows(void **state)
{
	PM_CLEANUP(pm_stat_release) struct pm_stat stat = { 0 };
	struct pm_stat_interval interval = { .at_ns = 500000000 };
	struct pm_stat_row row = { .cpu = 3 };

	make_one(&stat);
	interval.values = stat_values(&stat, plain);
	row.values = stat_values(&stat, plain);
	assert_int_equal(pm_vec_push(&interval.rows, row), 0);
	assert_int_equal(pm_vec_push(&stat.runs.data[0].intervals, interval), 0);
	assert_has(shown_80(&stat),
		   "    0.500000  CPU 3                         12.35 ms  task-clock\n");
}

/* ---- many runs ------------------------------------------------------------------------- */

static void test_repeated(void **state)
{
	PM_CLEANUP(pm_stat_release) struct pm_stat stat = { 0 };

	make_one(&stat);
	stat.warmups = 1;
	for (uint64_t i = 1; i < 10; i++) {
		uint64_t numbers[EVENTS];

		memcpy(numbers, plain, sizeof(plain));
		numbers[TASK_CLOCK] += i * 234567;
		numbers[WALL_TIME] += i == 9 ? 30000000 : i * 20000;
		numbers[PAGE_FAULTS] += i % 2;
		numbers[INSTRUCTIONS] += i * 1000;
		stat_run(&stat, 0, numbers);
	}
	stat_metric(&stat, "IPC", INSTRUCTIONS, 0, -1, 1.934);
	assert_string_equal(
		shown_80(&stat),
		"./sumbench 'a b'\n"
		"10 runs, after 1 to warm up\n"
		"\n"
		"event                  mean        σ    min  median    max        CV\n"
		"task-clock         13.40 ms   ± 0.71  12.35   13.40  14.46     5.3 %\n"
		"wall-time          15.68 ms   ± 9.46  12.61   12.70  42.61    60.3 %\n"
		"page-faults           123.5    ± 0.5  123.0   123.5  124.0     0.4 %\n"
		"max-rss           4.482 MiB  ± 0.000  4.482   4.482  4.482       0 %\n"
		"cycles        not supported\n"
		"branches      not supported\n"
		"instructions        1,235 M      ± 0  1,235   1,235  1,235  <0.001 %\n"
		"warning: runs differ by more than 5 %, their mean says little: task-clock,\n"
		"  wall-time\n"
		"warning: outliers, the median says more: wall-time (1 of 10)\n"
		"\n"
		"1.93 IPC\n"
		"not supported: cycles, branches – this machine has no hardware counters, or its\n"
		"  hypervisor keeps them\n"
		"without the kernel: instructions\n");
	assert_fits(stream_text, 80);
}

/* A mean of fewer runs than the heading says is told. */
static void test_some_runs(void **state)
{
	PM_CLEANUP(pm_stat_release) struct pm_stat stat = { 0 };

	make_one(&stat);
	stat_run(&stat, 0, plain);
	assert_lacks(shown_80(&stat), "not counted");
	stat.runs.data[1].values[INSTRUCTIONS].state = PM_STAT_NOT_COUNTED;
	assert_has(shown_80(&stat),
		   "\nwarning: not counted in all runs: instructions (1 of 2)\n");
}

/* ---- A and B --------------------------------------------------------------------------- */

static void make_two(struct pm_stat *stat, uint64_t runs)
{
	static const char *const argv[] = { "./old", "./new" };

	stat_begin(stat, "count");
	stat_subject(stat, &argv[0], 1);
	stat_subject(stat, &argv[1], 1);
	add_events(stat);
	stat_event(stat, "sim.Ir", "", PM_STAT_EXACT);
	for (uint64_t i = 0; i < 2 * runs; i++) {
		/* In no order, without ties. */
		uint64_t noise = i * 7919 % 101, b = i % 2;
		uint64_t numbers[EVENTS + 1] = {
			[TASK_CLOCK] = 10000000 + b * 400000 + noise * 1000,
			[WALL_TIME] = 11000000 + noise * 20000,
			[PAGE_FAULTS] = 123,
			[MAX_RSS] = 8192000 - b * 4096000 + noise * 4096,
			[INSTRUCTIONS] = 1000000000 + b * 2000000000 + noise,
			[EVENTS] = 1000000 + b * 2000,
		};

		stat_run(stat, (uint32_t)b, numbers);
	}
	assert_int_equal(pm_compare_ab(stat), 0);
}

/* What was cut short would move the mean of what was not. */
static void test_left_out(void **state)
{
	PM_CLEANUP(pm_stat_release) struct pm_stat stat = { 0 };
	uint64_t numbers[EVENTS];

	make_one(&stat);
	stat_run(&stat, 0, plain);
	memcpy(numbers, plain, sizeof(plain));
	numbers[PAGE_FAULTS] += 300;
	stat_run(&stat, 0, numbers)->stopped = true;
	assert_has(shown_80(&stat), "page-faults             123 ");
	assert_has(stream_text,
		   "\nOf 3 runs 1 did not end well: not in the numbers above, "
		   "but in --json and -x.\n");
	stat.runs.data[2].stopped = false;
	assert_has(shown_80(&stat), "page-faults             223 ");
	assert_lacks(stream_text, "did not end well");
	stat.runs.data[2].exit_code = 1;
	assert_has(shown_80(&stat), "page-faults             123 ");
	/* Where all of them failed, they are what there is. */
	stat.runs.data[0].exit_code = stat.runs.data[1].exit_code = 1;
	assert_has(shown_80(&stat), "page-faults             223 ");
	assert_lacks(stream_text, "did not end well");
	/* What another side does, is nothing to this one. */
	stat.runs.data[0].exit_code = 0;
	stat.runs.data[0].variant = 1;
	assert_int_equal(pm_stat_variants_ended(&stat), 2);
}

static void test_compared(void **state)
{
	PM_CLEANUP(pm_stat_release) struct pm_stat stat = { 0 };

	make_two(&stat, 10);
	assert_string_equal(
		shown_80(&stat),
		"A: ./old\n"
		"B: ./new\n"
		"10 runs each, in turn\n"
		"\n"
		"instructions decides: B has 200 % more (200 … 200 %)\n"
		"sim.Ir decides: B has 0.20 % more\n"
		"\n"
		"event          median A   median B      p\n"
		"task-clock     10.05 ms   10.44 ms  1e-05  B is 4.0 % slower (3.7 … 4.3 %)\n"
		"wall-time      11.94 ms   11.88 ms  0.971  no difference (-4.6 … 4.8 %)\n"
		"page-faults         123        123  1.000  equal in all runs\n"
		"max-rss       7.996 MiB  4.078 MiB  1e-05  B has 49 % less (48 … 50 %)\n"
		"cycles                -          -      -  not supported\n"
		"branches              -          -      -  not supported\n"
		"instructions    1,000 M    3,000 M  1e-05  B has 200 % more (200 … 200 %)\n"
		"sim.Ir        1,000,000  1,002,000  2e-05  B has 0.20 % more\n"
		"In brackets: the 95 % interval of the difference. p: Mann-Whitney's test; a\n"
		"  difference is reported below 0.002. The others are secondary: not corrected,\n"
		"  and they decide nothing.\n"
		"\n"
		"not supported: cycles, branches – this machine has no hardware counters, or its\n"
		"  hypervisor keeps them\n"
		"without the kernel: instructions\n");
	assert_fits(stream_text, 80);
}

static void test_too_few_to_compare(void **state)
{
	PM_CLEANUP(pm_stat_release) struct pm_stat six = { 0 }, seven = { 0 };

	make_two(&six, 6);
	assert_has(shown_80(&six), "too few runs to say (A 6, B 6; needs 7)");
	assert_lacks(stream_text, "slower");
	assert_lacks(stream_text, "brackets");
	assert_has(stream_text, "equal in all runs");
	assert_has(stream_text, "B has 0.20 % more\n"); /* simulated: exact */
	make_two(&seven, 7);
	assert_lacks(shown_80(&seven), "too few");
	assert_has(stream_text, "slower");
	/* Correcting four numbers for one another takes more runs. */
	for (size_t i = 0; i < seven.events.len; i++)
		seven.events.data[i].default_set = false;
	assert_int_equal(pm_compare_ab(&seven), 0);
	assert_has(shown_80(&seven), "too few runs to say (A 7, B 7; needs 8)");
	assert_lacks(stream_text, "slower");
}

/* ---- functions ------------------------------------------------------------------------- */

static void make_functions(struct pm_stat *stat)
{
	static const uint64_t numbers[EVENTS] = {
		5000000, 5100000, 12, 0, 0, 0, 30000000
	};
	static const uint64_t overhead[EVENTS] = { 5400, 0, 0, 0, 0, 0, 321 };
	struct pm_stat_scope *scope;
	struct pm_stat_frame frame = { .function = stat_text("fill(std::vector<int>&)"),
				       .file = stat_text("/src/sumbench.cc"),
				       .line = 40 };
	struct pm_stat_caller caller = { .calls = 100000 };
	struct pm_stat_thread thread = {
		.pid = 10, .tid = 11, .comm = stat_text("worker"), .calls = 61728
	};

	make_one(stat);
	free(stat->engine);
	stat->engine = stat_text("uprobe");
	stat->overhead = stat_values(stat, overhead);
	stat->overhead_subtracted = true;
	scope = stat_scope(stat, 0, "ns::push(int const&)", 123456, numbers);
	scope->values[MAX_RSS].state = PM_STAT_NOT_COUNTED;
	scope->nested = 23;
	scope->max_depth = 7;
	scope->unfinished = 2;
	scope->lost = 12;
	scope->calls_exact = false;
	scope->per_call = calloc(EVENTS, sizeof(*scope->per_call));
	assert_non_null(scope->per_call);
	scope->per_call[WALL_TIME] = (struct pm_stat_spread){ true, 31, 39, 120, 51234 };
	thread.values = stat_values(stat, numbers);
	thread.values[MAX_RSS].state = PM_STAT_NOT_COUNTED;
	assert_int_equal(pm_vec_push(&scope->threads, thread), 0);
	assert_int_equal(pm_vec_push(&caller.frames, frame), 0);
	frame = (struct pm_stat_frame){ .module = stat_text("/lib/libc.so.6"),
					.address = 0x1234 };
	assert_int_equal(pm_vec_push(&caller.frames, frame), 0);
	caller.values = stat_values(stat, numbers);
	caller.values[MAX_RSS].state = PM_STAT_NOT_COUNTED;
	assert_int_equal(pm_vec_push(&scope->callers, caller), 0);
	scope = stat_scope(stat, 0, "never", 0, numbers);
	scope->kind = PM_STAT_INLINED;
	scope->places = 3;
	scope->calls_exact = false;
}

static void test_functions(void **state)
{
	PM_CLEANUP(pm_stat_release) struct pm_stat stat = { 0 };

	make_functions(&stat);
	assert_has(
		shown_80(&stat),
		"\n"
		"ns::push(int const&)  prog  prog.c:12\n"
		"  at least 123,456 calls, 23 of them from inside of itself, 7 deep, 2 unfinished\n"
		"  warning: lost 12 hits, the numbers are too small\n"
		"                median    min     p99       max  per outer       total\n"
		"  task-clock                                      40.51 ns    5.000 ms\n"
		"  wall-time      39 ns  31 ns  120 ns  51.23 µs   41.32 ns    5.100 ms\n"
		"  page-faults                                     0.000097          12\n"
		"  instructions                                       243.0  30,000,000\n"
		"\n"
		"  thread      calls  task-clock  wall-time  page-faults  instructions\n"
		"  worker 11  61,728    5.000 ms   5.100 ms           12    30,000,000\n"
		"\n"
		"  called from               calls  task-clock  wall-time  page-faults\n"
		"  fill(…) sumbench.cc:40  100,000    5.000 ms   5.100 ms           12\n"
		"  ← 0x1234 in libc.so.6\n"
		"\n"
		"  called from             instructions\n"
		"  fill(…) sumbench.cc:40    30,000,000\n"
		"  ← 0x1234 in libc.so.6\n"
		"\n"
		"never  prog  prog.c:12  inlined at 3 places\n"
		"  0 times in one of its parts\n");
	assert_fits(stream_text, 80);
	assert_has(
		stream_text,
		"\nEach call cost 5.400 µs of task-clock, 321 instructions more; "
		"subtracted. The\n  program's own numbers above include it. Calls of "
		"ns::push(int const&) take\n  less time than that: what is left of it is "
		"uncertain.\n");
	stat.overhead[0].value = 30;
	assert_has(shown_80(&stat), "own numbers above include it.\n");
	stat.overhead_subtracted = false;
	assert_has(shown_80(&stat), " not subtracted.\n");
}

static void test_functions_of_many_runs(void **state)
{
	PM_CLEANUP(pm_stat_release) struct pm_stat stat = { 0 };
	static const uint64_t numbers[EVENTS] = { 1000, 2000, 3, 0, 0, 0, 4000 };

	make_one(&stat);
	stat_run(&stat, 0, plain);
	/* Two functions of one name; nothing is said about the order. */
	stat_scope(&stat, 0, "f", 10, numbers);
	stat_scope(&stat, 0, "g", 5, numbers);
	stat_scope(&stat, 0, "f", 100, numbers)->low = 0x2000;
	stat_scope(&stat, 1, "f", 100, numbers)->low = 0x2000;
	stat_scope(&stat, 1, "f", 11, numbers);
	stat_scope(&stat, 1, "g", 5, numbers);
	add_rows(&stat, &stat.runs.data[0]);
	assert_has(shown_80(&stat), "\nf  prog  prog.c:12\n");
	assert_has(stream_text, "told by --json and -x.\n");
	assert_has(stream_text,
		   "\ncalls            10.50   ± 0.71  10.00   10.50  11.00  6.7 %\n");
	assert_has(stream_text,
		   "\ncalls                5      ± 0      5       5      5  0 %\n");
	assert_has(stream_text,
		   "\ncalls              100      ± 0    100     100    100  0 %\n");
}

/* An engine that knows of functions only says nothing of the program. */
static void test_functions_alone(void **state)
{
	PM_CLEANUP(pm_stat_release) struct pm_stat stat = { 0 };

	make_functions(&stat);
	for (size_t i = 0; i < EVENTS; i++)
		stat.runs.data[0].values[i].state = PM_STAT_NOT_COUNTED;
	assert_has(shown_80(&stat), "engine uprobe\n\nns::push(int const&)  prog");
	stat.scopes.data[0].values[WALL_TIME].state = PM_STAT_MULTIPLEXED;
	stat.scopes.data[0].values[WALL_TIME].enabled_ns = 200;
	stat.scopes.data[0].values[WALL_TIME].running_ns = 100;
	assert_has(shown_80(&stat), "\ncounted a part of the time and scaled up: "
				    "wall-time (50.0 %)\n");
}

/* ---- for programs ---------------------------------------------------------------------- */

static void test_csv(void **state)
{
	PM_CLEANUP(pm_stat_release) struct pm_stat stat = { 0 };
	const char *text;
	size_t commas = 0;

	make_functions(&stat);
	text = csv_of(&stat, ",");
	for (const char *c = text; *c != '\n'; c++)
		commas += *c == ',';
	assert_int_equal(commas, 31);
	assert_has(text, "\nrun,0,0,0,,,,,,,,,,,,,,,,,,task-clock,12345678,ns,ok,"
			 "12345678,,,,,,\n");
	assert_has(text, "\nrun,0,0,0,,,,,,,,,,,,,,,,,,cycles,,,not_supported,,,,,,,\n");
	assert_has(text, "\nfunction,0,0,,,,,,,,ns::push(int const&),/usr/bin/prog,"
			 "src/prog.c,12,,123456,23,7,2,0,12,wall-time,5100000,ns,ok,"
			 "5100000,,,31,39,120,51234\n");
	assert_has(text, "\nthread,0,0,,,,10,11,worker,,ns::push(int const&),"
			 "/usr/bin/prog,src/prog.c,12,,61728,,,,,,task-clock,");
	assert_has(text, ",fill(std::vector<int>&) /src/sumbench.cc:40 < 0x1234,100000,");
	assert_has(text, "\noverhead,,,,,,,,,,,,,,,,,,,,,task-clock,5400,ns,ok,");
	assert_has(text, "\ninlined,0,0,");
	/* What the separator is in is quoted, whatever it is. */
	free(stat.scopes.data[1].name);
	stat.scopes.data[1].name = stat_text("a;b\"c");
	assert_has(csv_of(&stat, ";"), ";\"a;b\"\"c\";");
	assert_has(csv_of(&stat, "0, "), "0, ");
}

static void test_csv_scales(void **state)
{
	PM_CLEANUP(pm_stat_release) struct pm_stat stat = { 0 };

	stat_whole(&stat);
	stat.runs.data[0].values[3].value = 1ULL << 32;
	assert_has(csv_of(&stat, ","), ",power/energy-pkg/,1,J,ok,");
	assert_has(stream_text, ",instructions,4000000,,multiplexed,3000000,400,300,");
	assert_has(stream_text, "\nmetric,0,,,,,,,,,ns::f(int),,,,,,,,,,,a third,"
				"0.3333333333333333,");
	assert_has(stream_text,
		   "\nmetric,1,,,,,,,,,prog.c:10-20,,,,,,,,,,,CPUs utilised,,");
}

static void test_settings(void **state)
{
	PM_CLEANUP(pm_stat_release) struct pm_stat stat = { 0 };
	struct pm_stat_report report = { .stat = &stat, .width = 80, .verbose = true };

	stat_whole(&stat);
	assert_has(shown_80(&stat), "\nsettings: GLIBC_TUNABLES");
	assert_lacks(stream_text, stat.settings.data[0].value);
	assert_has(stream_text, " (values: -v)\n");
	assert_has(shown(&report), stat.settings.data[0].value);
	assert_lacks(stream_text, "(values: -v)");
}

/* Whatever a document says, it can be shown. */
static void test_whole(void **state)
{
	PM_CLEANUP(pm_stat_release) struct pm_stat stat = { 0 }, least = { 0 };
	struct pm_stat_report report = { .stat = &stat, .width = 1 };

	stat_whole(&stat);
	assert_has(shown_80(&stat), "A: ./prog '10 000' ''\n");
	shown(&report);
	report.width = 0;
	shown(&report);
	/* Variants that no table has a place for. */
	for (size_t i = 0; i < stat.runs.len; i++)
		stat.runs.data[i].variant = 5;
	shown(&report);
	csv_of(&stat, ",");
	for (size_t i = 0; i < stat.runs.len; i++)
		stat.runs.data[i].variant = 0;
	stat.runs.len = 1; /* what remains of it */
	stat.scopes.len = 1;
	stat.metrics.len = 1;
	shown(&report);
	stat.runs.len = 3;
	stat.scopes.len = 2;
	stat.metrics.len = 3;
	stat_begin(&least, "count");
	assert_string_equal(shown_80(&least), "(no command)\n0 runs\n\n");
	csv_of(&least, ",");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one_run),
		cmocka_unit_test(test_quiet_ascii_color),
		cmocka_unit_test(test_states),
		cmocka_unit_test(test_the_kernel_left_out),
		cmocka_unit_test(test_ends),
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_rows),
		cmocka_unit_test(test_intervals),
		cmocka_unit_test(test_interval_rows),
		cmocka_unit_test(test_repeated),
		cmocka_unit_test(test_some_runs),
		cmocka_unit_test(test_left_out),
		cmocka_unit_test(test_compared),
		cmocka_unit_test(test_too_few_to_compare),
		cmocka_unit_test(test_functions),
		cmocka_unit_test(test_functions_of_many_runs),
		cmocka_unit_test(test_functions_alone),
		cmocka_unit_test(test_csv),
		cmocka_unit_test(test_csv_scales),
		cmocka_unit_test(test_settings),
		cmocka_unit_test(test_whole),
	};
	int failed = cmocka_run_group_tests(tests, NULL, NULL);

	free(stream_text);
	return failed;
}
