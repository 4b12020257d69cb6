/* SPDX-License-Identifier: MIT */
/* Results of other tools: what is made of them, and what is said of those that are none. Files
 * that the tools themselves have written are the business of pmdiff-import.bats. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>
#include <sys/mman.h>

#include "pm/import.h"

/* ---- reading ------------------------------------------------------------------------------- */

static int read_bytes(struct pm_suite *suite, const char *data, size_t len,
		      enum pm_import_format format, struct pm_error *err)
{
	PM_AUTO_CLOSE int fd = memfd_create("result", MFD_CLOEXEC);
	char path[64];

	assert_true(fd >= 0);
	assert_int_equal(write(fd, data, len), len);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return pm_import_read(suite, path, format, err);
}

static void take(struct pm_suite *suite, const char *data)
{
	struct pm_error err = { .offset = -1 };

	if (read_bytes(suite, data, strlen(data), PM_IMPORT_AUTO, &err) < 0)
		fail_msg("%s", err.text);
}

/* Is refused, with @what in the message. */
static void refuse(const char *data, const char *what)
{
	PM_CLEANUP(pm_suite_release) struct pm_suite suite = { 0 };
	struct pm_error err = { .offset = -1 };

	assert_int_not_equal(read_bytes(&suite, data, strlen(data), PM_IMPORT_AUTO, &err),
			     0);
	if (!strstr(err.text, what))
		fail_msg("\"%s\" is not in: %s", what, err.text);
	assert_int_equal(suite.cases.len, 0);
	assert_null(strchr(err.text, '\n'));
}

static const struct pm_stat *stat_of(const struct pm_suite *suite, const char *name)
{
	const struct pm_suite_case *one = pm_suite_find(suite, name);

	if (!one)
		fail_msg("no case is called %s", name ? name : "(none)");
	return &one->stat;
}

/* The value of @event in run @run, in its unit; NaN: it has none. */
static double value_of(const struct pm_stat *stat, size_t run, const char *event)
{
	for (size_t i = 0; i < stat->events.len; i++) {
		const struct pm_stat_value *value = &stat->runs.data[run].values[i];

		if (strcmp(stat->events.data[i].name, event) == 0)
			return pm_stat_has_value(value)
				       ? (double)value->value * stat->events.data[i].scale
				       : NAN;
	}
	fail_msg("there is no event %s", event);
	return NAN;
}

static const struct pm_stat_event *event_of(const struct pm_stat *stat, const char *name)
{
	for (size_t i = 0; i < stat->events.len; i++)
		if (strcmp(stat->events.data[i].name, name) == 0)
			return &stat->events.data[i];
	return NULL;
}

static void assert_near(double a, double b)
{
	if (!(fabs(a - b) <= 1e-6 * fabs(b)))
		fail_msg("%.17g is not %.17g", a, b);
}

/* ---- google-benchmark ---------------------------------------------------------------------- */

#define GOOGLE(entries)                                                               \
	"{\"context\":{\"date\":\"2026-11-26T02:00:00+01:00\",\"host_name\":\"ci\","  \
	"\"executable\":\"./bench\",\"num_cpus\":2,\"library_build_type\":\"debug\"," \
	"\"cpu_scaling_enabled\":true},\"benchmarks\":[" entries "]}"
#define GOOGLE_RUN(name, real, unit, more)                               \
	"{\"name\":\"" name "\",\"run_name\":\"" name                    \
	"\",\"run_type\":\"iteration\",\"repetitions\":2,\"threads\":1," \
	"\"iterations\":1000,\"real_time\":" real ",\"cpu_time\":1.5e+0" \
	",\"time_unit\":\"" unit "\"" more "}"

static void test_google(void **state)
{
	PM_CLEANUP(pm_suite_release) struct pm_suite suite = { 0 };
	const struct pm_stat *stat;

	take(&suite,
	     GOOGLE(GOOGLE_RUN("BM_a/8", "0.25", "ns", ",\"items_per_second\":2e9,\"found\":3") "," GOOGLE_RUN(
		     "BM_b", "2", "us",
		     "") "," GOOGLE_RUN("BM_a/8", "0.5", "ns",
					",\"load\":-1,\"x\":NaN") ","
								  "{\"name\":\"BM_a/8_mean\",\"run_name\":\"BM_a/8\","
								  "\"run_type\":\"aggregate\",\"aggregate_name\":\"mean\","
								  "\"real_time\":9}"));
	assert_int_equal(suite.cases.len, 2);
	stat = stat_of(&suite, "BM_a/8");
	assert_string_equal(stat->engine, "google-benchmark");
	assert_string_equal(stat->created, "2026-11-26T01:00:00Z");
	assert_string_equal(stat->host.hostname, "ci");
	assert_int_equal(stat->host.cpus, 2);
	assert_null(stat->host.cpu_model);
	assert_string_equal(stat->subjects.data[0].argv.data[0], "./bench");
	assert_int_equal(stat->runs.len, 2);
	assert_int_equal(stat->runs.data[0].begin_ns, 0);
	assert_near(value_of(stat, 0, "wall-time"), 0.25);
	assert_near(value_of(stat, 1, "wall-time"), 0.5);
	assert_near(value_of(stat, 0, "cpu-time"), 1.5);
	assert_near(value_of(stat, 0, "items_per_second"), 2e9);
	assert_int_equal(event_of(stat, "items_per_second")->better, 1);
	assert_int_equal(event_of(stat, "found")->better, 0);
	/* What a repetition does not have, or is no number here, is not 0. */
	assert_true(isnan(value_of(stat, 1, "items_per_second")));
	assert_true(isnan(value_of(stat, 1, "load")));
	assert_true(isnan(value_of(stat, 1, "x")));
	assert_int_equal(stat->warnings.len, 3); /* debug, frequency, load */
	assert_near(value_of(stat_of(&suite, "BM_b"), 0, "wall-time"), 2000);
	assert_near(value_of(stat_of(&suite, "BM_b"), 0, "cpu-time"), 1500);
}

static void test_google_errors(void **state)
{
	PM_CLEANUP(pm_suite_release) struct pm_suite suite = { 0 };
	const struct pm_stat *stat;

	take(&suite,
	     GOOGLE("{\"name\":\"BM_a\",\"run_type\":\"iteration\","
		    "\"error_occurred\":true,\"error_message\":\"no file\"}," GOOGLE_RUN(
			    "BM_a", "1", "s", "")));
	stat = stat_of(&suite, "BM_a");
	assert_false(pm_stat_run_ended_well(&stat->runs.data[0]));
	assert_true(isnan(value_of(stat, 0, "wall-time")));
	assert_true(pm_stat_run_ended_well(&stat->runs.data[1]));
	assert_near(value_of(stat, 1, "wall-time"), 1e9);
	assert_non_null(strstr(stat->warnings.data[2], "no file"));
	refuse(GOOGLE("{\"name\":\"BM_a_mean\",\"run_type\":\"aggregate\"}"),
	       "aggregates only");
	refuse(GOOGLE(""), "no benchmark");
	refuse(GOOGLE("7"), "benchmarks[0]: expected an object");
	refuse(GOOGLE("{\"run_type\":\"iteration\"}"), "benchmarks[0].name: missing");
	refuse(GOOGLE(GOOGLE_RUN("BM_a", "-1", "ns", "")),
	       "benchmarks[0].real_time: expected a number that is not negative");
	refuse(GOOGLE(GOOGLE_RUN("BM_a", "\"1\"", "ns", "")), "expected a number");
	refuse(GOOGLE(GOOGLE_RUN("BM_a", "1e300", "ns", "")), "longer than a time");
	refuse(GOOGLE(GOOGLE_RUN("BM_a", "1", "h", "")), "expected ns, us, ms or s");
	refuse("{\"context\":{},\"benchmarks\":{}}", "expected an array");
}

/* ---- hyperfine, pytest-benchmark ----------------------------------------------------------- */

static void test_hyperfine(void **state)
{
	PM_CLEANUP(pm_suite_release) struct pm_suite suite = { 0 };
	const struct pm_stat *stat;

	take(&suite,
	     "{\"results\":[{\"command\":\"a\\nb\",\"mean\":0.02,\"user\":0.01,"
	     "\"system\":0.002,\"times\":[0.01,0.02,0.5],\"exit_codes\":[0,1,null]}"
	     ",{\"command\":\"c\",\"times\":[1]}]}");
	stat = stat_of(&suite, "a b");
	assert_string_equal(stat->subjects.data[0].argv.data[0], "a\nb");
	assert_int_equal(stat->runs.len, 3);
	assert_near(value_of(stat, 1, "wall-time"), 2e7);
	assert_true(pm_stat_run_ended_well(&stat->runs.data[0]));
	assert_false(pm_stat_run_ended_well(&stat->runs.data[1]));
	assert_false(pm_stat_run_ended_well(&stat->runs.data[2]));
	assert_int_equal(stat->metrics.len, 2);
	assert_near(stat->metrics.data[0].value, 0.01);
	assert_null(stat->created);
	assert_int_equal(stat_of(&suite, "c")->metrics.len, 0);
	refuse("{\"results\":[{\"command\":\"c\",\"times\":[]}]}", "no times");
	refuse("{\"results\":[{\"command\":\"c\"}]}", "results[0].times: missing");
	refuse("{\"results\":[{\"command\":\"c\",\"times\":[1,-2]}]}",
	       "results[0].times: value 1: expected seconds");
	refuse("{\"results\":[{\"command\":\"c\",\"times\":[1]},"
	       "{\"command\":\"c\",\"times\":[1]}]}",
	       "results[1].command: two cases have the same name: c");
	refuse("{\"results\":[{\"command\":\"\",\"times\":[1]}]}", "empty");
	refuse("{\"results\":[{\"command\":\"c\",\"times\":[1],\"exit_codes\":[-1]}]}",
	       "exit_codes: value 0");
	refuse("{\"results\":[{\"command\":7,\"times\":[1]}]}", "expected a string");
	refuse("{\"results\":[]}", "no benchmark");
}

static void test_long_name(void **state)
{
	PM_CLEANUP(pm_suite_release) struct pm_suite suite = { 0 };
	char text[1024], name[512];

	memset(name, 'x', sizeof(name));
	name[sizeof(name) - 1] = '\0';
	snprintf(text, sizeof(text), "{\"results\":[{\"command\":\"%s\",\"times\":[1]}]}",
		 name);
	take(&suite, text);
	assert_true(strlen(suite.cases.data[0].name) <= PM_SUITE_NAME_MAX);
	assert_null(pm_suite_name_check(suite.cases.data[0].name));
	assert_string_equal(suite.cases.data[0].stat.subjects.data[0].argv.data[0], name);
}

#define PYTEST(benchmark)                                                                \
	"{\"machine_info\":{\"node\":\"ci\",\"machine\":\"x86_64\",\"release\":\"6.1\"," \
	"\"cpu\":{\"brand_raw\":\"A CPU\",\"count\":4},\"python_version\":\"3.11.2\"},"  \
	"\"commit_info\":{\"id\":\"0123456789012345678901234567890123456789\","          \
	"\"dirty\":true},\"datetime\":\"2026-11-26T01:02:03.5\",\"version\":\"4.0.0\","  \
	"\"benchmarks\":[" benchmark "]}"

static void test_pytest(void **state)
{
	PM_CLEANUP(pm_suite_release) struct pm_suite suite = { 0 };
	const struct pm_stat *stat;

	take(&suite,
	     PYTEST("{\"name\":\"test_a\",\"fullname\":\"t.py::test_a\",\"stats\":"
		    "{\"median\":2e-9,\"data\":[1e-9,2e-9,3e-9]}},"
		    "{\"name\":\"test_b\",\"fullname\":\"t.py::test_b\",\"stats\":"
		    "{\"median\":0.25}}"));
	stat = stat_of(&suite, "t.py::test_a");
	assert_int_equal(stat->runs.len, 3);
	assert_near(value_of(stat, 2, "wall-time"), 3);
	assert_string_equal(stat->created, "2026-11-26T01:02:03Z");
	assert_string_equal(stat->host.cpu_model, "A CPU");
	assert_int_equal(stat->host.cpus, 4);
	assert_string_equal(stat->subjects.data[0].commit,
			    "0123456789012345678901234567890123456789");
	assert_int_equal(stat->subjects.data[0].dirty, 1);
	assert_int_equal(stat->warnings.len, 0);
	stat = stat_of(&suite, "t.py::test_b");
	assert_int_equal(stat->runs.len, 1);
	assert_near(value_of(stat, 0, "wall-time"), 2.5e8);
	assert_int_equal(stat->warnings.len, 1);
	refuse(PYTEST("{\"fullname\":\"a\",\"stats\":{}}"), "median: missing");
	refuse(PYTEST("{\"fullname\":\"a\",\"stats\":{\"data\":7}}"),
	       "expected an array");
	refuse(PYTEST("{\"fullname\":\"a\"}"), "benchmarks[0].stats: missing");
}

/* ---- criterion ----------------------------------------------------------------------------- */

static void test_criterion(void **state)
{
	PM_CLEANUP(pm_suite_release) struct pm_suite suite = { 0 }, estimate = { 0 };
	const struct pm_stat *stat;

	take(&suite, "{\"sampling_mode\":\"Linear\",\"iters\":[10.0,20.0],"
		     "\"times\":[25.0,60.0]}");
	stat = stat_of(&suite, NULL);
	assert_int_equal(stat->runs.len, 2);
	assert_near(value_of(stat, 0, "wall-time"), 2.5);
	assert_near(value_of(stat, 1, "wall-time"), 3);
	take(&estimate, "{\"mean\":{\"point_estimate\":7.5},\"median_abs_dev\":{},"
			"\"slope\":null}");
	assert_near(value_of(stat_of(&estimate, NULL), 0, "wall-time"), 7.5);
	assert_int_equal(stat_of(&estimate, NULL)->warnings.len, 1);
	refuse("{\"iters\":[0],\"times\":[1]}", "sample.iters: value 0");
	refuse("{\"iters\":[1,2],\"times\":[1]}", "as many values");
	refuse("{\"iters\":[],\"times\":[]}", "no times");
	refuse("{\"iters\":[1],\"times\":[\"1\"]}", "expected nanoseconds");
	refuse("{\"iters\":[1],\"times\":[-1]}", "at least 0");
	refuse("{\"iters\":[1e-320],\"times\":[1e300]}", "at least 0");
	refuse("{\"mean\":7,\"median_abs_dev\":{}}", "mean: expected an object");
}

/* ---- perf stat ----------------------------------------------------------------------------- */

#define PERF_LINE(value, unit, event, runtime, percent)               \
	"{\"counter-value\" : \"" value "\", \"unit\" : \"" unit      \
	"\", \"event\" : \"" event "\", \"event-runtime\" : " runtime \
	", \"pcnt-running\" : " percent                               \
	", \"metric-value\" : 1.5, \"metric-unit\" : \"per thing\"}\n"

static void test_perf(void **state)
{
	PM_CLEANUP(pm_suite_release) struct pm_suite suite = { 0 };
	const struct pm_stat_value *values;
	const struct pm_stat *stat;

	take(&suite,
	     "# started on Thu\n\n" PERF_LINE(
		     "1.5", "msec", "task-clock", "1500000",
		     "100.00") PERF_LINE("<not supported>", "", "cycles", "0",
					 "100.00") PERF_LINE("<not counted>", "",
							     "cache-misses", "0", "0.00")
		     PERF_LINE("1000.000000", "", "instructions:u", "750000", "50.00") PERF_LINE(
			     "0.25", "Joules", "power/energy-pkg/", "1",
			     "100.00") "{\"metric-value\" : 0.1, \"metric-unit\" : \"more of it\"}\n");
	stat = stat_of(&suite, NULL);
	values = stat->runs.data[0].values;
	assert_string_equal(stat->engine, "perf-stat");
	assert_int_equal(stat->events.len, 5);
	assert_near(value_of(stat, 0, "task-clock"), 1.5e6);
	assert_string_equal(stat->events.data[0].unit, "ns");
	assert_int_equal(values[1].state, PM_STAT_NOT_SUPPORTED);
	assert_int_equal(stat->events.data[1].state, PM_STAT_NOT_SUPPORTED);
	assert_non_null(stat->events.data[1].why);
	assert_int_equal(values[2].state, PM_STAT_NOT_COUNTED);
	assert_int_equal(values[3].state, PM_STAT_MULTIPLEXED);
	assert_int_equal(values[3].value, 1000);
	assert_int_equal(values[3].raw, 500);
	assert_int_equal(values[3].enabled_ns, 1500000);
	assert_true(stat->events.data[3].user_only);
	assert_int_equal(stat->events.data[3].class, PM_STAT_LOW_NOISE);
	assert_near(value_of(stat, 0, "power/energy-pkg/"), 0.25);
	assert_int_equal(stat->events.data[4].better, 0);
	refuse(PERF_LINE("12,5", "msec", "task-clock", "1", "100"),
	       "event 1: task-clock: \"12,5\" is no count");
	refuse(PERF_LINE("-1", "", "cycles", "1", "100"), "is no count");
	refuse(PERF_LINE("nan", "", "cycles", "1", "100"), "is no count");
	refuse("{\"interval\" : 1.0, \"counter-value\" : \"1\", \"event\" : \"cs\"}",
	       "line[0].interval: counts of the whole program");
	refuse("{\"counter-value\" : \"1\"}", "event: missing");
	refuse("{\"metric-value\" : 1}", "no event");
	refuse(PERF_LINE("1", "", "cs", "1", "100") "cat: no such file\n", "line 2");
}

static void test_perf_table(void **state)
{
	PM_CLEANUP(pm_suite_release) struct pm_suite suite = { 0 };
	const struct pm_stat *stat;

	take(&suite,
	     "# started on Thu\n\n0.65,msec,task-clock,0.50%,647388,100.00,0.1,CPUs\n"
	     "<not supported>,,cycles,0,100.00,,\n47,,page-faults,647388,50.00,,\n");
	stat = stat_of(&suite, NULL);
	assert_int_equal(stat->events.len, 3);
	assert_near(value_of(stat, 0, "task-clock"), 650000);
	assert_true(isnan(value_of(stat, 0, "cycles")));
	assert_int_equal(stat->runs.data[0].values[2].state, PM_STAT_MULTIPLEXED);
	assert_int_equal(stat->warnings.len, 1); /* means */
	refuse("hello\n", "line 1: neither JSON");
	pm_suite_release(&suite);
	/* Times that no clock has, and more than all of the time. */
	take(&suite,
	     "5,,cs,1e25,1e12,,\n6,,faults,1e25,100.00,,\n7,,migrations,9,150,,\n");
	stat = stat_of(&suite, NULL);
	for (size_t i = 0; i < 3; i++) {
		assert_int_equal(stat->runs.data[0].values[i].running_ns, 0);
		assert_int_equal(stat->runs.data[0].values[i].enabled_ns, 0);
	}
	/* A bracket that is not closed, also as the last byte of the file: with ASan. */
	refuse("<", "line 1");
	refuse("1,,cycles,5,100.00\n<", "line 2");
	refuse("<not counted\n", "line 1");
	refuse("1,2\n", "line 1");
	refuse("1,,cycles,many,100.00\n", "line 1");
}

/* ---- iai-callgrind ------------------------------------------------------------------------- */

#define IAI(version, rest)                                                             \
	"{\"version\":\"" version "\",\"module_path\":\"bench::group::parse\",\"id\":" \
	"\"small\",\"benchmark_exe\":\"/t/bench\"," rest "}"

static void test_iai(void **state)
{
	PM_CLEANUP(pm_suite_release)
	struct pm_suite two = { 0 }, three = { 0 }, six = { 0 };
	const struct pm_stat *stat;

	take(&two, IAI("2", "\"callgrind_summary\":{\"summaries\":[{\"events\":{\"Ir\":"
			    "{\"new\":700,\"old\":600},\"RamHits\":{\"new\":5},"
			    "\"Dr\":{\"old\":6}}}]},\"tool_summaries\":[]"));
	stat = stat_of(&two, "bench::group::parse small");
	assert_near(value_of(stat, 0, "sim.Ir"), 700);
	assert_near(value_of(stat, 0, "sim.RAMhits"), 5);
	assert_null(event_of(stat, "sim.Dr"));
	assert_int_equal(event_of(stat, "sim.Ir")->class, PM_STAT_EXACT);
	take(&three,
	     IAI("3",
		 "\"tool_summaries\":[{\"tool\":\"Callgrind\",\"summaries\":{\"segments\":"
		 "[],\"total\":{\"regressions\":[],\"summary\":{\"CallgrindSummary\":"
		 "{\"Ir\":{\"metrics\":{\"Both\":[800,700]}},\"EstimatedCycles\":"
		 "{\"metrics\":{\"Left\":900}},\"Bc\":{\"metrics\":{\"Right\":1}}}}}}},"
		 "{\"tool\":\"DHAT\",\"summaries\":{\"total\":{\"summary\":"
		 "{\"DhatSummary\":{\"TotalBytes\":{\"metrics\":{\"Left\":64}}}}}}},"
		 "{\"tool\":\"Massif\",\"summaries\":{\"total\":{\"summary\":\"None\"}}}]"));
	stat = stat_of(&three, "bench::group::parse small");
	assert_int_equal(stat->events.len, 3);
	assert_near(value_of(stat, 0, "sim.Ir"), 800);
	assert_near(value_of(stat, 0, "sim.cycles"), 900);
	assert_near(value_of(stat, 0, "dhat.TotalBytes"), 64);
	assert_string_equal(event_of(stat, "dhat.TotalBytes")->unit, "bytes");
	take(&six,
	     IAI("6",
		 "\"profiles\":[{\"tool\":\"Callgrind\",\"summaries\":{\"parts\":[],"
		 "\"total\":{\"summary\":{\"Callgrind\":{\"Ir\":{\"metrics\":{\"Left\":"
		 "{\"Int\":1234}}},\"L1HitRate\":{\"metrics\":{\"Left\":{\"Float\":"
		 "99.5}}}}}}}}]") "\n"
				  "{\"version\":\"6\",\"module_path\":\"bench::b\",\"profiles\":[{\"tool\":"
				  "\"Callgrind\",\"summaries\":{\"total\":{\"summary\":{\"Callgrind\":{\"Ir\":"
				  "{\"metrics\":{\"Left\":{\"Int\":5}}}}}}}}]}\n");
	assert_int_equal(six.cases.len, 2);
	stat = stat_of(&six, "bench::group::parse small");
	assert_int_equal(stat->events.len, 1);
	assert_near(value_of(stat, 0, "sim.Ir"), 1234);
	assert_near(value_of(stat_of(&six, "bench::b"), 0, "sim.Ir"), 5);
	refuse(IAI("6", "\"profiles\":[]"), "no number");
	refuse(IAI("6", "\"profiles\":7"), "profiles: expected an array");
	refuse(IAI("6", "\"profiles\":[{\"tool\":\"Callgrind\"}]"), "summaries: missing");
	refuse(IAI("3",
		   "\"tool_summaries\":[{\"tool\":\"Callgrind\",\"summaries\":{\"total\":"
		   "{\"summary\":{\"C\":{\"Ir\":{\"metrics\":{\"Left\":-1}}}}}}}]"),
	       "Ir: expected a count");
	refuse(IAI("2", "\"callgrind_summary\":{\"summaries\":[]},\"tool_summaries\":[]"),
	       "expected one run");
}

static void test_callgrind_out(void **state)
{
	PM_CLEANUP(pm_suite_release) struct pm_suite suite = { 0 };
	const struct pm_stat *stat;

	take(&suite, "# callgrind format\nversion: 1\ncreator: callgrind-3.19.0\npid: 7\n"
		     "cmd:  ./bench a\npart: 1\n\nevents: Ir Dr\nfn=(1) main\n1 7 7\n"
		     "totals: 10 4\n\npart: 2\nevents: Ir Dr\ntotals: 5\n");
	stat = stat_of(&suite, NULL);
	assert_string_equal(stat->engine, "iai-callgrind");
	assert_string_equal(stat->subjects.data[0].argv.data[0], "./bench a");
	assert_near(value_of(stat, 0, "sim.Ir"), 15);
	assert_near(value_of(stat, 0, "sim.Dr"), 4);
	refuse("# callgrind format\nevents: Ir\n", "not written to its end");
	refuse("# callgrind format\nevents: Ir\ntotals: 1 2\n", "line 3");
	refuse("# callgrind format\nevents: Ir\ntotals: -1\n", "line 3");
	refuse("# callgrind format\nevents: Ir\nevents: Dr\n", "line 3");
	refuse("# callgrind format\ntotals: 1\n", "line 2");
	refuse("# callgrind format\nevents: Ir\ntotals: 18446744073709551615\n"
	       "totals: 1\n",
	       "line 4");
}

/* ---- what is none of them ------------------------------------------------------------------ */

static void test_foreign(void **state)
{
	PM_CLEANUP(pm_suite_release) struct pm_suite suite = { 0 };
	struct pm_error err = { .offset = -1 };
	char deep[8192];

	refuse("", "empty");
	refuse("# only a comment\n", "empty");
	refuse("{}", "by which a tool is known");
	refuse("[]", "by which a tool is known");
	refuse("[1]", "by which a tool is known");
	refuse("{\"results\":", "cannot be read as JSON: line 1");
	refuse("{\"results\":[],\n\"results\":[]}", "duplicate");
	refuse("{\"format\":\"pmstat\",\"version\":1}",
	       "is a document of pmstat already");
	memset(deep, '[', sizeof(deep));
	assert_int_equal(
		read_bytes(&suite, deep, sizeof(deep), PM_IMPORT_HYPERFINE, &err),
		-EBADMSG);
	assert_non_null(strstr(err.text, "depth"));
	assert_int_equal(pm_import_read(&suite, "/nowhere/at/all", PM_IMPORT_AUTO, &err),
			 -ENOENT);
	assert_string_equal(err.source, "/nowhere/at/all");
	/* What somebody says is right; then it lacks what that has. */
	assert_int_equal(read_bytes(&suite, "{}", 2, PM_IMPORT_HYPERFINE, &err),
			 -EBADMSG);
	assert_non_null(strstr(err.text, "results: missing"));
	assert_string_equal(pm_import_format_name(PM_IMPORT_AUTO), "auto");
	assert_null(pm_import_format_name(PM_IMPORT_FORMATS));
}

static void test_sizes(void **state)
{
	PM_CLEANUP(pm_suite_release) struct pm_suite suite = { 0 };
	PM_CLEANUP(pm_str_release) struct pm_str text = { 0 };
	struct pm_error err = { .offset = -1 };

	pm_str_puts(&text, "{\"results\":[");
	for (size_t i = 0; i <= PM_SUITE_CASES_MAX; i++)
		pm_str_printf(&text, "%s{\"command\":\"%zu\",\"times\":[1]}",
			      i ? "," : "", i);
	pm_str_puts(&text, "]}");
	assert_int_equal(read_bytes(&suite, text.data, text.len, PM_IMPORT_AUTO, &err),
			 -EFBIG);
	pm_str_clear(&text);
	pm_str_puts(&text, "{\"context\":{},\"benchmarks\":[{\"name\":\"a\"");
	for (size_t i = 0; i <= 256; i++)
		pm_str_printf(&text, ",\"c%zu\":1", i);
	pm_str_puts(&text, "}]}");
	assert_int_equal(read_bytes(&suite, text.data, text.len, PM_IMPORT_AUTO, &err),
			 -EFBIG);
	assert_non_null(strstr(err.text, "256 counters"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_google),    cmocka_unit_test(test_google_errors),
		cmocka_unit_test(test_hyperfine), cmocka_unit_test(test_long_name),
		cmocka_unit_test(test_pytest),    cmocka_unit_test(test_criterion),
		cmocka_unit_test(test_perf),      cmocka_unit_test(test_perf_table),
		cmocka_unit_test(test_iai),       cmocka_unit_test(test_callgrind_out),
		cmocka_unit_test(test_foreign),   cmocka_unit_test(test_sizes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
