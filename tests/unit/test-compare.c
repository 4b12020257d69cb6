/* SPDX-License-Identifier: MIT */
/* Two sides of counting documents: which rows there are, and what is said of them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "pm/compare.h"
#include "tests/stat-documents.h"

#include "noise.h"

/* ---- documents ------------------------------------------------------------------------- */

static const char *const program[] = { "./prog" };

/* One event, so many runs of these numbers; begun at @begin seconds, one a second. */
static void document(struct pm_stat *stat, const char *event, enum pm_stat_class class,
		     const uint64_t *numbers, size_t runs, uint64_t begin)
{
	stat_begin(stat, "count");
	stat_subject(stat, program, 1);
	stat_event(stat, event, "", class)->default_set = false;
	for (size_t i = 0; i < runs; i++)
		stat_run(stat, 0, &numbers[i])->begin_ns = (begin + i) * 1000000000;
}

static struct pm_compare_options options;

static void compare(struct pm_comparison *ret, const struct pm_stat *base,
		    const struct pm_stat *new)
{
	struct pm_error err = { 0 };

	if (pm_compare_stats(ret, &base, 1, &new, new ? 1 : 0, &options, &err) < 0)
		fail_msg("%s", err.text);
}

static const struct pm_compare_row *row_of(const struct pm_comparison *comparison,
					   const char *scope, const char *event)
{
	for (size_t i = 0; i < comparison->rows.len; i++) {
		const struct pm_compare_row *row = &comparison->rows.data[i];

		if (strcmp(row->event, event) == 0 &&
		    strcmp(row->scope ? row->scope : "", scope ? scope : "") == 0)
			return row;
	}
	fail_msg("there is no row %s of %s", event, scope ? scope : "the program");
	return NULL;
}

/* The verdict of one row, and of all. */
static enum pm_verdict verdict(const char *event, enum pm_stat_class class,
			       const uint64_t *base, size_t base_len, const uint64_t *new,
			       size_t new_len)
{
	struct pm_stat documents[2];
	struct pm_comparison comparison;
	enum pm_verdict ret;

	document(&documents[0], event, class, base, base_len, 0);
	document(&documents[1], event, class, new, new_len, 0);
	compare(&comparison, &documents[0], &documents[1]);
	ret = row_of(&comparison, NULL, event)->verdict;
	assert_int_equal(comparison.verdict, ret);
	pm_comparison_release(&comparison);
	pm_stat_release(&documents[0]);
	pm_stat_release(&documents[1]);
	return ret;
}

#define VERDICT(event, class, base, new) \
	verdict(event, class, base, PM_ARRAY_LEN(base), new, PM_ARRAY_LEN(new))
#define NUMBERS(...) ((const uint64_t[]){ __VA_ARGS__ })

/* ---- gates ----------------------------------------------------------------------------- */

static void test_gates(void **state)
{
	static const struct {
		const char *text, *scope, *event;
		double limit;
		bool both;
	} cases[] = {
		{ "wall=5%", NULL, "wall-time", 0.05, false },
		{ "instructions:u=0.5%", NULL, "instructions:u", 0.005, false },
		{ "sim.*=\302\2610.5%", NULL, "sim.*", 0.005, true },
		{ "sim.Ir=+-2%", NULL, "sim.Ir", 0.02, true },
		{ "fn:parse:sim.Ir=1%", "parse", "sim.Ir", 0.01, false },
		{ "fn:ns::parse(int, char):sim.Ir=1%", "ns::parse(int, char)", "sim.Ir",
		  0.01, false },
		{ "fn:a::operator==(a const&):calls=0%", "a::operator==(a const&)",
		  "calls", 0, false },
		{ "fn:f:instructions:u=1%", "f", "instructions:u", 0.01, false },
		{ "fn:f:sched:sched_switch=1%", "f", "sched:sched_switch", 0.01, false },
		{ "fn:prog.c:10-20:sim.Ir=1%", "prog.c:10-20", "sim.Ir", 0.01, false },
		{ "fn:prog.c:10:sim.Ir=1%", "prog.c:10", "sim.Ir", 0.01, false },
		{ "fn:f:cycles self=1%", "f", "cycles self", 0.01, false },
	};

	for (size_t i = 0; i < PM_ARRAY_LEN(cases); i++) {
		struct pm_gates gates = { 0 };
		const struct pm_gate *gate;

		assert_int_equal(pm_gates_parse(&gates, cases[i].text, "--gate", NULL),
				 0);
		assert_int_equal(gates.list.len, 1);
		gate = &gates.list.data[0];
		assert_string_equal(gate->event, cases[i].event);
		assert_string_equal(gate->scope ? gate->scope : "",
				    cases[i].scope ? cases[i].scope : "");
		assert_true(fabs(gate->limit - cases[i].limit) < 1e-12);
		assert_int_equal(gate->both, cases[i].both);
		pm_gates_release(&gates);
	}
}

static void test_gate_lists(void **state)
{
	static const char *const wrong[] = { "",          "wall",      "wall=5",
					     "wall=-5%",  "=5%",       "fn:f=1%",
					     "wall=nan%", "wall=0x5%", "fn::f:=1%",
					     "wall<=",    "wall<=5x",  "wall<=-1",
					     "wall<5",    "<=5",       "wall=1e3%" };
	struct pm_gates gates = { 0 };
	struct pm_error err = { 0 };

	assert_int_equal(pm_gates_parse(&gates, "wall=5%, fn:f(a, b):calls=0%,sim.Ir=1%",
					"pmdiff.json", NULL),
			 0);
	assert_int_equal(gates.list.len, 3);
	assert_string_equal(gates.list.data[1].scope, "f(a, b)");
	assert_string_equal(gates.list.data[2].event, "sim.Ir");
	assert_string_equal(gates.list.data[2].source, "pmdiff.json");
	for (size_t i = 0; i < PM_ARRAY_LEN(wrong); i++) {
		if (pm_gates_parse(&gates, wrong[i], "--gate", &err) != -EINVAL)
			fail_msg("'%s' is taken", wrong[i]);
		assert_int_equal(gates.list.len, 3);
	}
	pm_gates_release(&gates);
}

/* Gates that rows are looked up by, and slips of the pen. */
static void test_gates_mean_rows(void **state)
{
	struct pm_stat base, new;
	struct pm_comparison comparison;
	struct pm_gates gates = { 0 };
	struct pm_error err = { 0 };
	const struct pm_stat *of_base = &base, *of_new = &new;

	document(&base, "instructions", PM_STAT_LOW_NOISE, NUMBERS(1000000), 1, 0);
	document(&new, "instructions", PM_STAT_LOW_NOISE, NUMBERS(1030000), 1, 0);
	free(base.events.data[0].requested);
	free(new.events.data[0].requested);
	base.events.data[0].requested = stat_text("instructions:u");
	new.events.data[0].requested = stat_text("instructions:u");
	options.gates = &gates;
	assert_int_equal(
		pm_gates_parse(&gates, "instr*=1%,instructions:u=5%", "--gate", NULL), 0);
	compare(&comparison, &base, &new);
	assert_int_equal(comparison.verdict, PM_VERDICT_SAME);
	assert_true(comparison.rows.data[0].gated &&
		    comparison.rows.data[0].gate == 0.05);
	assert_string_equal(comparison.rows.data[0].event, "instructions:u");
	pm_comparison_release(&comparison);
	assert_int_equal(pm_gates_parse(&gates, "instructions=2%", "pmdiff.json", NULL),
			 0);
	compare(&comparison, &base, &new);
	assert_int_equal(comparison.verdict, PM_VERDICT_WORSE);
	assert_string_equal(comparison.rows.data[0].gate_source, "pmdiff.json");
	pm_comparison_release(&comparison);

	/* Of a repository, for machines that have something else: told, not refused. */
	assert_int_equal(pm_gates_parse(&gates, "sim.Ir=1%", "pmdiff.json", NULL), 0);
	compare(&comparison, &base, &new);
	assert_int_equal(row_of(&comparison, NULL, "sim.Ir")->verdict,
			 PM_VERDICT_UNKNOWN);
	assert_int_equal(comparison.warnings.len, 1);
	pm_comparison_release(&comparison);
	assert_int_equal(pm_gates_parse(&gates, "instructoins:u=1%", "pmdiff.json", NULL),
			 0);
	assert_int_equal(
		pm_compare_stats(&comparison, &of_base, 1, &of_new, 1, &options, &err),
		-ENOENT);
	assert_string_equal(err.fix, "instructions:u");
	pm_gates_release(&gates);
	/* Of --gate, too, if it is known for what others have. */
	assert_int_equal(pm_gates_parse(&gates, "cycles:u=1%,sim.Dr=1%", "--gate", NULL),
			 0);
	compare(&comparison, &base, &new);
	assert_int_equal(row_of(&comparison, NULL, "cycles:u")->verdict,
			 PM_VERDICT_UNKNOWN);
	pm_comparison_release(&comparison);
	pm_gates_release(&gates);
	assert_int_equal(pm_gates_parse(&gates, "cyclops=1%", "--gate", NULL), 0);
	assert_int_equal(
		pm_compare_stats(&comparison, &of_base, 1, &of_new, 1, &options, &err),
		-ENOENT);
	assert_non_null(strstr(err.fix, "instructions:u"));
	pm_gates_release(&gates);
	options.gates = NULL;
	pm_stat_release(&base);
	pm_stat_release(&new);
}

/* ---- classes --------------------------------------------------------------------------- */

static void test_exact(void **state)
{
	static const uint64_t base[] = { 1000000 }, same[] = { 1000400 },
			      more[] = { 1001000 };
	static const uint64_t less[] = { 990000 }, none[] = { 0 },
			      vary[] = { 999000, 1002000 };

	assert_int_equal(VERDICT("sim.Ir", PM_STAT_EXACT, base, same), PM_VERDICT_SAME);
	assert_int_equal(VERDICT("sim.Ir", PM_STAT_EXACT, base, more), PM_VERDICT_WORSE);
	assert_int_equal(VERDICT("sim.Ir", PM_STAT_EXACT, base, less), PM_VERDICT_BETTER);
	assert_int_equal(VERDICT("sim.Ir", PM_STAT_EXACT, none, base), PM_VERDICT_WORSE);
	assert_int_equal(VERDICT("sim.Ir", PM_STAT_EXACT, none, none), PM_VERDICT_SAME);
	/* Values that vary are judged with the gate of such. */
	assert_int_equal(VERDICT("sim.Ir", PM_STAT_EXACT, vary, more), PM_VERDICT_SAME);
}

static void test_low_noise(void **state)
{
	static const uint64_t base[] = { 1000, 1001, 1002, 1003, 1004 };
	static const uint64_t near[] = { 1004, 1005, 1006 },
			      more[] = { 1010, 1012, 1011 };
	static const uint64_t mixed[] = { 1002, 1020, 1030 };
	static const uint64_t faults[] = { 60, 61 }, few[] = { 75, 76 },
			      many[] = { 78, 79 };

	assert_int_equal(VERDICT("instructions", PM_STAT_LOW_NOISE, base, near),
			 PM_VERDICT_SAME);
	assert_int_equal(VERDICT("instructions", PM_STAT_LOW_NOISE, base, more),
			 PM_VERDICT_WORSE);
	assert_int_equal(VERDICT("instructions", PM_STAT_LOW_NOISE, more, base),
			 PM_VERDICT_BETTER);
	assert_int_equal(VERDICT("instructions", PM_STAT_LOW_NOISE, base, mixed),
			 PM_VERDICT_INCONCLUSIVE);
	/* 25 % more, but 15 faults. */
	assert_int_equal(VERDICT("page-faults", PM_STAT_LOW_NOISE, faults, few),
			 PM_VERDICT_SAME);
	assert_int_equal(VERDICT("page-faults", PM_STAT_LOW_NOISE, faults, many),
			 PM_VERDICT_WORSE);
}

static void test_noisy(void **state)
{
	static const uint64_t base[] = { 1000, 1010, 1020, 1030, 1040, 1050, 1060, 1070 };
	static const uint64_t more[] = { 1201, 1211, 1221, 1231, 1241, 1251, 1261, 1271 };
	static const uint64_t wide[] = { 1001, 1011, 1221, 1231, 1241, 1051, 1261, 1071 };
	static const uint64_t few[] = { 1200, 1210, 1220 };
	static const uint64_t steady[] = { 1000, 1001, 1000, 1001, 1000, 1001, 1000 };

	assert_int_equal(VERDICT("cache-misses", PM_STAT_NOISY, base, more),
			 PM_VERDICT_WORSE);
	assert_int_equal(VERDICT("cache-misses", PM_STAT_NOISY, more, base),
			 PM_VERDICT_BETTER);
	assert_int_equal(VERDICT("cache-misses", PM_STAT_NOISY, base, wide),
			 PM_VERDICT_INCONCLUSIVE);
	assert_int_equal(VERDICT("cache-misses", PM_STAT_NOISY, base, few),
			 PM_VERDICT_INCONCLUSIVE);
	assert_int_equal(VERDICT("cache-misses", PM_STAT_NOISY, steady, steady),
			 PM_VERDICT_SAME);
}

/* More than chance, but perhaps not more than the gate. */
static void test_interval(void **state)
{
	uint64_t base[20], more[20];

	/* Neighbours have nothing in common. */
	for (size_t i = 0; i < 20; i++) {
		base[i] = 1000 + 2 * i;
		more[19 - i] = base[i] + 10;
	}
	assert_int_equal(VERDICT("cache-misses", PM_STAT_NOISY, base, more),
			 PM_VERDICT_INCONCLUSIVE);
	for (size_t i = 0; i < 20; i++)
		more[i] += 30;
	assert_int_equal(VERDICT("cache-misses", PM_STAT_NOISY, base, more),
			 PM_VERDICT_WORSE);
}

static void test_unknown_is_not_zero(void **state)
{
	struct pm_stat base, new;
	struct pm_comparison comparison;
	const struct pm_stat *of_base = &base, *of_new = &new;
	const struct pm_compare_row *row;
	struct pm_error err = { 0 };

	document(&base, "cycles", PM_STAT_NOISY, NUMBERS(1000), 1, 0);
	document(&new, "cycles", PM_STAT_NOISY, NUMBERS(0), 1, 0);
	new.runs.data[0].values[0].state = PM_STAT_NOT_SUPPORTED;
	assert_int_equal(
		pm_compare_stats(&comparison, &of_base, 1, &of_new, 1, &options, &err),
		-EINVAL);
	stat_event(&base, "instructions", "", PM_STAT_LOW_NOISE);
	stat_event(&new, "instructions", "", PM_STAT_LOW_NOISE);
	free(base.runs.data[0].values);
	free(new.runs.data[0].values);
	base.runs.data[0].values = stat_values(&base, NUMBERS(1000, 7));
	new.runs.data[0].values = stat_values(&new, NUMBERS(0, 7));
	new.runs.data[0].values[0].state = PM_STAT_NOT_SUPPORTED;
	compare(&comparison, &base, &new);
	row = row_of(&comparison, NULL, "cycles");
	assert_int_equal(row->verdict, PM_VERDICT_UNKNOWN);
	assert_true(!row->new.known &&isnan(row->change) && isnan(row->new.median));
	assert_non_null(strstr(row->why, "not supported on the new side"));
	assert_int_equal(comparison.verdict, PM_VERDICT_SAME);
	pm_comparison_release(&comparison);
	pm_stat_release(&base);
	pm_stat_release(&new);
}

/* A run that failed is left out, and told. */
static void test_failed_runs(void **state)
{
	struct pm_stat base, new;
	struct pm_comparison comparison;

	document(&base, "sim.Ir", PM_STAT_EXACT, NUMBERS(1000, 7), 2, 0);
	document(&new, "sim.Ir", PM_STAT_EXACT, NUMBERS(1000), 1, 0);
	base.runs.data[1].exit_code = 3;
	compare(&comparison, &base, &new);
	assert_int_equal(comparison.verdict, PM_VERDICT_SAME);
	assert_int_equal(comparison.base.left_out, 1);
	assert_int_equal(comparison.base.runs, 1);
	assert_int_equal(comparison.warnings.len, 1);
	pm_comparison_release(&comparison);
	pm_stat_release(&base);
	pm_stat_release(&new);
}

/* ---- history --------------------------------------------------------------------------- */

static void test_history(void **state)
{
	static const uint64_t before[] = { 1000, 1020, 1000, 1030, 1010, 1030, 1000 };
	struct pm_stat past[7], base, new;
	const struct pm_stat *history[7];
	struct pm_comparison comparison;

	for (size_t i = 0; i < PM_ARRAY_LEN(past); i++) {
		document(&past[i], "instructions", PM_STAT_LOW_NOISE, &before[i], 1, 0);
		history[i] = &past[i];
	}
	document(&base, "instructions", PM_STAT_LOW_NOISE, NUMBERS(1000), 1, 0);
	document(&new, "instructions", PM_STAT_LOW_NOISE, NUMBERS(1030), 1, 0);
	options.history = history;
	/* Changes: 20/1000, 20/1020, 30/1000, 20/1030, 20/1010, 30/1030. */
	options.history_len = PM_ARRAY_LEN(past);
	compare(&comparison, &base, &new);
	assert_int_equal(comparison.verdict, PM_VERDICT_SAME);
	assert_string_equal(comparison.rows.data[0].gate_source, "history");
	assert_true(fabs(comparison.rows.data[0].gate - 0.048409) < 1e-5);
	pm_comparison_release(&comparison);
	/* Four changes are too few. */
	options.history_len = 5;
	compare(&comparison, &base, &new);
	assert_int_equal(comparison.verdict, PM_VERDICT_WORSE);
	assert_string_equal(comparison.rows.data[0].gate_source, "default");
	pm_comparison_release(&comparison);
	options.history = NULL;
	options.history_len = 0;
	for (size_t i = 0; i < PM_ARRAY_LEN(past); i++)
		pm_stat_release(&past[i]);
	pm_stat_release(&base);
	pm_stat_release(&new);
}

/* ---- scopes ---------------------------------------------------------------------------- */

static void add_function(struct pm_stat *stat, const char *name, const char *module,
			 uint64_t calls, uint64_t number)
{
	struct pm_stat_scope *scope = stat_scope(stat, 0, name, calls, &number);

	free(scope->module);
	scope->module = stat_text(module);
}

/* Paths, builds and suffixes differ; who is called the same in another library does not. */
static void test_scopes(void **state)
{
	struct pm_stat base, new;
	struct pm_comparison comparison;

	document(&base, "sim.Ir", PM_STAT_EXACT, NUMBERS(100000), 1, 0);
	document(&new, "sim.Ir", PM_STAT_EXACT, NUMBERS(100000), 1, 0);
	add_function(&base, "f", "/tmp/a/prog", 10, 1000);
	add_function(&base, "f", "/usr/lib/libf.so.1.2", 10, 5000);
	add_function(&base, "part.part.0", "/tmp/a/prog", 1, 500);
	add_function(&base, "old", "/tmp/a/prog", 1, 7);
	add_function(&new, "f", "/tmp/b/prog", 11, 1100);
	add_function(&new, "f", "/usr/lib/libf.so.1.3", 10, 5000);
	add_function(&new, "part", "/tmp/b/prog", 1, 400);
	add_function(&new, "young", "/tmp/b/prog", 1, 7);
	new.scopes.data[2].kind = PM_STAT_INLINED;
	compare(&comparison, &base, &new);
	assert_int_equal(comparison.verdict, PM_VERDICT_WORSE);
	assert_int_equal(comparison.rows.len, 11);
	assert_string_equal(comparison.rows.data[0].module, "prog");
	assert_true(fabs(comparison.rows.data[0].change - 0.1) < 1e-9);
	assert_int_equal(row_of(&comparison, "part", "sim.Ir")->verdict,
			 PM_VERDICT_BETTER);
	assert_true(row_of(&comparison, "part", "sim.Ir")->inlined_new);
	assert_false(row_of(&comparison, "part", "sim.Ir")->inlined_base);
	assert_int_equal(row_of(&comparison, "old", "calls")->verdict, PM_VERDICT_GONE);
	assert_int_equal(row_of(&comparison, "young", "sim.Ir")->verdict, PM_VERDICT_NEW);
	pm_comparison_release(&comparison);
	pm_stat_release(&base);
	pm_stat_release(&new);
}

/* A star is part of some names: such a function is not one of many that may go. */
static void test_gone(void **state)
{
	static const struct {
		const char *gate;
		enum pm_verdict verdict;
	} cases[] = {
		{ "fn:S::operator*:calls=1%", PM_VERDICT_INCONCLUSIVE },
		{ "fn:S::*:calls=1%", PM_VERDICT_SAME },
	};

	for (size_t i = 0; i < PM_ARRAY_LEN(cases); i++) {
		struct pm_stat base, new;
		struct pm_comparison comparison;
		struct pm_gates gates = { 0 };

		document(&base, "sim.Ir", PM_STAT_EXACT, NUMBERS(100000), 1, 0);
		document(&new, "sim.Ir", PM_STAT_EXACT, NUMBERS(100000), 1, 0);
		add_function(&base, "S::operator*", "/prog", 1, 7);
		add_function(&base, "S::f", "/prog", 1, 7);
		add_function(&new, "S::f", "/prog", 1, 7);
		assert_int_equal(pm_gates_parse(&gates, cases[i].gate, "--gate", NULL),
				 0);
		options.gates = &gates;
		compare(&comparison, &base, &new);
		assert_int_equal(comparison.verdict, cases[i].verdict);
		options.gates = NULL;
		pm_comparison_release(&comparison);
		pm_gates_release(&gates);
		pm_stat_release(&base);
		pm_stat_release(&new);
	}
}

/* Two static functions of one name: told apart by their files, or not at all. */
static void test_repeated_scopes(void **state)
{
	struct pm_stat base, new;
	struct pm_comparison comparison;
	struct pm_stat *both[] = { &base, &new };

	for (size_t i = 0; i < 2; i++) {
		document(both[i], "sim.Ir", PM_STAT_EXACT, NUMBERS(100000), 1, 0);
		add_function(both[i], "f", "/prog", 1, i == 0 ? 100 : 300);
		add_function(both[i], "f", "/prog", 1, i == 0 ? 300 : 100);
	}
	compare(&comparison, &base, &new);
	assert_int_equal(comparison.rows.len, 3);
	assert_int_equal(row_of(&comparison, "f", "sim.Ir")->verdict, PM_VERDICT_UNKNOWN);
	assert_non_null(strstr(row_of(&comparison, "f", "calls")->why, "cannot be told"));
	pm_comparison_release(&comparison);
	free(base.scopes.data[0].file);
	free(new.scopes.data[1].file);
	base.scopes.data[0].file = stat_text("/a/other.c");
	new.scopes.data[1].file = stat_text("/b/other.c");
	compare(&comparison, &base, &new);
	assert_int_equal(comparison.rows.len, 5);
	assert_int_equal(comparison.verdict, PM_VERDICT_SAME);
	pm_comparison_release(&comparison);
	pm_stat_release(&base);
	pm_stat_release(&new);
}

/* ---- sides ----------------------------------------------------------------------------- */

static void test_incomparable(void **state)
{
	struct pm_stat base, new;
	const struct pm_stat *of_base = &base, *of_new = &new;
	struct pm_comparison comparison;
	struct pm_error err = { 0 };

	document(&base, "cycles", PM_STAT_LOW_NOISE, NUMBERS(1000), 1, 0);
	document(&new, "cycles", PM_STAT_LOW_NOISE, NUMBERS(1000), 1, 0);
	base.host.cpu_model = stat_text("One");
	new.host.cpu_model = stat_text("Other");
	base.host.kernel = stat_text("6.1");
	new.host.kernel = stat_text("6.2");
	new.events.data[0].user_only = true;
	assert_int_equal(
		pm_compare_stats(&comparison, &of_base, 1, &of_new, 1, &options, &err),
		-EXDEV);
	assert_non_null(strstr(err.text, "cpu: One on the base, Other on the new side"));
	assert_non_null(strstr(err.text, "user space only on the new side"));
	assert_int_equal(comparison.differences.len, 2);
	assert_int_equal(comparison.rows.len, 0);
	pm_comparison_release(&comparison);
	options.force = true;
	compare(&comparison, &base, &new);
	assert_true(comparison.forced);
	assert_int_equal(comparison.differences.len, 2);
	assert_int_equal(comparison.warnings.len, 1); /* the kernel */
	assert_int_equal(comparison.rows.data[0].verdict, PM_VERDICT_SAME);
	options.force = false;
	pm_comparison_release(&comparison);
	pm_stat_release(&base);
	pm_stat_release(&new);
}

/* ---- noise ----------------------------------------------------------------------------- */

enum {
	RUNS = 20,
};

/* The default events of pmstat without a PMU: seven numbers that measure nearly the
 * same. */
static void add_noisy_events(struct pm_stat *stat)
{
	stat_event(stat, "task-clock", "ns", PM_STAT_NOISY);
	stat_event(stat, "wall-time", "ns", PM_STAT_NOISY);
	stat_event(stat, "user-time", "ns", PM_STAT_NOISY);
	stat_event(stat, "system-time", "ns", PM_STAT_NOISY);
	stat_event(stat, "context-switches", "", PM_STAT_NOISY)->better = 0;
	stat_event(stat, "cpu-migrations", "", PM_STAT_NOISY)->better = 0;
	stat_event(stat, "max-rss", "bytes", PM_STAT_NOISY);
}

static void add_noisy_run(struct pm_stat *stat, uint32_t variant,
			  const struct noise *noise, uint64_t at)
{
	uint64_t cpu = noise->cpu;
	const uint64_t values[] = { cpu * 1000,
				    (uint64_t)noise->wall * 1000,
				    cpu * 970,
				    cpu * 30,
				    noise->wall % 7,
				    noise->wall % 3,
				    (1000 + noise->wall % 11) * 4096 };

	stat_run(stat, variant, values)->begin_ns = at * 1000000000;
}

/* @runs of both sides in turns, as pmstat ab runs them; B has @scale times the work. */
static void make_noisy_ab(struct pm_stat *ab, const struct noise (*noise)[2], size_t runs,
			  double scale)
{
	stat_begin(ab, "count");
	stat_subject(ab, program, 1);
	stat_subject(ab, program, 1);
	add_noisy_events(ab);
	for (size_t run = 0; run < runs; run++)
		for (uint32_t turn = 0; turn < 2; turn++) {
			uint32_t side = (uint32_t)(run + turn) & 1;
			struct noise of = noise[run][turn];

			if (side == 1)
				of.cpu = (uint32_t)(of.cpu * scale);
			add_noisy_run(ab, side, &of, 2 * run + turn);
		}
}

struct found {
	unsigned int of_windows, slower, ab_slower, ab_faster;
};

/* Windows of @noise that begin one pair after the other: how many are called slower. */
static struct found find_slower(const struct noise (*noise)[2], size_t windows,
				double scale)
{
	struct found found = { .of_windows = (unsigned int)windows };

	for (size_t i = 0; i < windows; i++) {
		struct pm_comparison comparison;
		struct pm_stat ab;

		make_noisy_ab(&ab, &noise[i], RUNS, scale);
		compare(&comparison, &ab, NULL);
		assert_int_equal(comparison.base.runs, RUNS);
		assert_int_equal(comparison.warnings.len, 0);
		assert_string_equal(comparison.deciding, "task-clock");
		found.slower += comparison.verdict == PM_VERDICT_WORSE;
		pm_comparison_release(&comparison);
		assert_int_equal(pm_compare_ab(&ab), 0);
		assert_int_equal(ab.differences.len, 7);
		for (size_t row = 0; row < 7; row++)
			assert_int_equal(ab.differences.data[row].decides, row == 0);
		assert_true(ab.differences.data[0].paired);
		found.ab_slower += ab.differences.data[0].outcome == PM_STAT_MORE;
		found.ab_faster += ab.differences.data[0].outcome == PM_STAT_LESS;
		pm_stat_release(&ab);
	}
	return found;
}

/* Real noise: nothing is reported slower than itself; 1 % more work mostly is, 3 %
 * always. */
static void test_noise(void **state)
{
	enum {
		WINDOWS = PM_ARRAY_LEN(noise_self) - RUNS
	};
	struct found found = find_slower(noise_self, WINDOWS, 1);

	assert_int_equal(found.slower, 0);
	assert_int_equal(found.ab_slower + found.ab_faster, 0);
	found = find_slower(noise_self, WINDOWS, 1.01);
	print_message("1 %%: %u and %u of %u\n", found.slower, found.ab_slower,
		      found.of_windows);
	assert_true(found.slower >= WINDOWS / 2);
	assert_true(found.ab_slower >= WINDOWS * 3 / 4);
	found = find_slower(noise_self, WINDOWS, 1.03);
	assert_int_equal(found.slower, WINDOWS);
	assert_int_equal(found.ab_slower, WINDOWS);
}

/* A change of 5 % that was measured, its sides always in one order. */
static void test_noise_of_a_change(void **state)
{
	for (size_t i = 0; i < PM_ARRAY_LEN(noise_slower) - RUNS; i++) {
		struct pm_comparison comparison;
		struct pm_stat ab;

		stat_begin(&ab, "count");
		stat_subject(&ab, program, 1);
		stat_subject(&ab, program, 1);
		add_noisy_events(&ab);
		for (size_t run = 0; run < RUNS; run++)
			for (uint32_t side = 0; side < 2; side++)
				add_noisy_run(&ab, side, &noise_slower[i + run][side],
					      2 * run + side);
		compare(&comparison, &ab, NULL);
		assert_int_equal(comparison.verdict, PM_VERDICT_WORSE);
		pm_comparison_release(&comparison);
		pm_stat_release(&ab);
	}
}

/* Rows that do not decide are not corrected, and fail nothing. */
static void test_secondary(void **state)
{
	struct pm_comparison comparison;
	const struct pm_compare_row *row;
	struct pm_stat ab;

	make_noisy_ab(&ab, noise_self, RUNS, 1);
	for (size_t i = 0; i < ab.runs.len; i++)
		if (ab.runs.data[i].variant == 1)
			ab.runs.data[i].values[2].value *= 2; /* user-time */
	compare(&comparison, &ab, NULL);
	row = row_of(&comparison, NULL, "user-time");
	assert_int_equal(row->verdict, PM_VERDICT_WORSE);
	assert_false(row->gated);
	assert_true(row->p_holm == row->p);
	assert_true(comparison.verdict != PM_VERDICT_WORSE);
	pm_comparison_release(&comparison);
	pm_stat_release(&ab);
}

/* cycles come before task-clock, if both sides have them; requested events decide
 * alone. */
static void test_deciding(void **state)
{
	static const struct {
		const char *events
			[3]; /* "!" in front: asked for; "-": not supported on one side */
		const char *deciding; /* NULL: none by default */
		bool decides[3];
	} cases[] = {
		{ { "task-clock", "cycles", "wall-time" }, "cycles", { false, true } },
		{ { "task-clock", "-cycles", "wall-time" }, "task-clock", { true } },
		{ { "instructions", "task-clock", "-cycles" }, "instructions", { true } },
		{ { "task-clock", "!cache-misses", "!user-time" },
		  NULL,
		  { false, true } },
		{ { "wall-time", "page-faults", "user-time" }, NULL, { false } },
	};

	for (size_t i = 0; i < PM_ARRAY_LEN(cases); i++) {
		struct pm_comparison comparison;
		struct pm_stat ab;

		stat_begin(&ab, "count");
		stat_subject(&ab, program, 1);
		stat_subject(&ab, program, 1);
		for (size_t e = 0; e < 3; e++) {
			const char *name = cases[i].events[e];
			bool asked = name[0] == '!', lacks = name[0] == '-';

			stat_event(&ab, name + (asked || lacks), "", PM_STAT_NOISY)
				->default_set = !asked;
		}
		for (uint64_t run = 0; run < 40; run++) {
			struct pm_stat_run *of =
				stat_run(&ab, run & 1, NUMBERS(run, run, run));

			of->begin_ns = run;
			for (size_t e = 0; e < 3; e++)
				if (cases[i].events[e][0] == '-' && (run & 1))
					of->values[e].state = PM_STAT_NOT_SUPPORTED;
		}
		compare(&comparison, &ab, NULL);
		assert_int_equal(!comparison.deciding, !cases[i].deciding);
		if (cases[i].deciding)
			assert_string_equal(comparison.deciding, cases[i].deciding);
		assert_int_equal(pm_compare_ab(&ab), 0);
		for (size_t e = 0; e < 3; e++) {
			const char *name = cases[i].events[e];
			const struct pm_compare_row *row =
				row_of(&comparison, NULL,
				       name + (name[0] == '!' || name[0] == '-'));

			/* Times of the user alone are never asked to decide a comparison. */
			if (strcmp(row->event, "user-time") != 0)
				assert_int_equal(row->gated, cases[i].decides[e]);
			if (strcmp(row->event, "user-time") != 0)
				assert_int_equal(ab.differences.data[e].decides,
						 cases[i].decides[e]);
		}
		pm_comparison_release(&comparison);
		pm_stat_release(&ab);
	}
}

/* Calls that no engine could see are not known; they are neither "not counted" nor 0. */
static void test_unknown_calls(void **state)
{
	struct pm_stat ab;

	stat_begin(&ab, "uprobe");
	stat_subject(&ab, program, 1);
	stat_subject(&ab, program, 1);
	stat_event(&ab, "task-clock", "ns", PM_STAT_NOISY);
	for (uint32_t run = 0; run < 4; run++) {
		stat_run(&ab, run % 2, NUMBERS(1000));
		stat_scope(&ab, run, "f", run % 2, NUMBERS(100))->calls_unknown =
			run % 2 == 0;
	}
	assert_int_equal(pm_compare_ab(&ab), 0);
	assert_int_equal(ab.differences.len, 3);
	assert_int_equal(ab.differences.data[1].event, 1);
	assert_int_equal(ab.differences.data[1].outcome, PM_STAT_UNKNOWN);
	assert_int_equal(ab.differences.data[1].state, PM_STAT_NOT_KNOWN);
	assert_false(ab.differences.data[1].decides);
	pm_stat_release(&ab);
}

/* ---- hard limits ----------------------------------------------------------------------- */

static void test_hard_limits(void **state)
{
	static const struct {
		const char *gates;
		uint64_t base, new;
		enum pm_verdict verdict;
	} cases[] = {
		{ "sim.Ir<=1.2M", 1000000, 1200000, PM_VERDICT_SAME },
		{ "sim.Ir<=1.2M", 1000000, 1200001, PM_VERDICT_WORSE },
		/* Whatever it was before. */
		{ "sim.Ir<=1.2M", 5000000, 1300000, PM_VERDICT_WORSE },
		{ "sim.Ir<=1300 k", 5000000, 1300000, PM_VERDICT_SAME },
		/* Both kinds hold, and of each kind the last. */
		{ "sim.Ir<=1.2M,sim.Ir=1%", 1000000, 1100000, PM_VERDICT_WORSE },
		{ "sim.Ir=1%,sim.Ir<=1.2M", 1000000, 1100000, PM_VERDICT_WORSE },
		{ "sim.Ir<=1M,sim.Ir<=2M,sim.Ir=1%", 1000000, 1005000, PM_VERDICT_SAME },
	};

	for (size_t i = 0; i < PM_ARRAY_LEN(cases); i++) {
		PM_CLEANUP(pm_gates_release) struct pm_gates gates = { 0 };
		struct pm_stat base, new;
		struct pm_comparison comparison;

		assert_int_equal(pm_gates_parse(&gates, cases[i].gates, "--gate", NULL),
				 0);
		options.gates = &gates;
		document(&base, "sim.Ir", PM_STAT_EXACT, &cases[i].base, 1, 0);
		document(&new, "sim.Ir", PM_STAT_EXACT, &cases[i].new, 1, 0);
		compare(&comparison, &base, &new);
		options.gates = NULL;
		if (comparison.verdict != cases[i].verdict)
			fail_msg("%s: %s", cases[i].gates,
				 pm_verdict_name(comparison.verdict));
		assert_true(comparison.rows.data[0].gated);
		pm_comparison_release(&comparison);
		pm_stat_release(&base);
		pm_stat_release(&new);
	}
}

/* A function that is new has no base, and a limit all the same. */
static void test_hard_limit_of_new(void **state)
{
	PM_CLEANUP(pm_gates_release) struct pm_gates gates = { 0 };
	struct pm_stat base, new;
	struct pm_comparison comparison;

	assert_int_equal(pm_gates_parse(&gates, "fn:f:calls<=9", "--gate", NULL), 0);
	options.gates = &gates;
	document(&base, "sim.Ir", PM_STAT_EXACT, NUMBERS(1000), 1, 0);
	document(&new, "sim.Ir", PM_STAT_EXACT, NUMBERS(1000), 1, 0);
	stat_scope(&new, 0, "f", 10, NUMBERS(500));
	compare(&comparison, &base, &new);
	options.gates = NULL;
	assert_int_equal(comparison.verdict, PM_VERDICT_WORSE);
	assert_int_equal(row_of(&comparison, "f", "calls")->verdict, PM_VERDICT_WORSE);
	pm_comparison_release(&comparison);
	pm_stat_release(&base);
	pm_stat_release(&new);
}

/* Three runs are too few to find a change, but enough for a limit, which needs no base. */
static void test_hard_limit_of_few(void **state)
{
	static const uint64_t few[][2] = { { 100, 7 }, { 150, 8 }, { 90, 9 } };
	PM_CLEANUP(pm_gates_release) struct pm_gates gates = { 0 };

	assert_int_equal(pm_gates_parse(&gates, "task-clock<=200", "--gate", NULL), 0);
	for (int known = 0; known < 2; known++) {
		struct pm_comparison comparison;
		struct pm_stat sides[2];

		for (size_t side = 0; side < 2; side++) {
			stat_begin(&sides[side], "count");
			stat_subject(&sides[side], program, 1);
			stat_event(&sides[side], "task-clock", "", PM_STAT_NOISY);
			stat_event(&sides[side], "wall-time", "", PM_STAT_NOISY);
			for (size_t i = 0; i < PM_ARRAY_LEN(few); i++)
				if (stat_run(&sides[side], 0, few[i]) && side == 0 &&
				    !known)
					sides[0].runs.data[i].values[0].state =
						PM_STAT_NOT_COUNTED;
		}
		options.gates = &gates;
		compare(&comparison, &sides[0], &sides[1]);
		options.gates = NULL;
		assert_int_equal(row_of(&comparison, NULL, "task-clock")->verdict,
				 PM_VERDICT_SAME);
		assert_int_equal(comparison.verdict, PM_VERDICT_SAME);
		pm_comparison_release(&comparison);
		pm_stat_release(&sides[0]);
		pm_stat_release(&sides[1]);
	}
}

/* 8 calls were seen, and 8 were not. */
static void test_hard_limit_of_lost(void **state)
{
	static const struct {
		const char *gate;
		enum pm_verdict verdict;
	} cases[] = {
		{ "fn:f:calls<=7", PM_VERDICT_WORSE },
		{ "fn:f:calls<=9", PM_VERDICT_INCONCLUSIVE },
		{ "fn:f:calls<=16", PM_VERDICT_SAME },
	};

	for (size_t i = 0; i < PM_ARRAY_LEN(cases); i++) {
		PM_CLEANUP(pm_gates_release) struct pm_gates gates = { 0 };
		struct pm_stat base, new;
		struct pm_comparison comparison;

		assert_int_equal(pm_gates_parse(&gates, cases[i].gate, "--gate", NULL),
				 0);
		options.gates = &gates;
		document(&base, "sim.Ir", PM_STAT_EXACT, NUMBERS(1000), 1, 0);
		document(&new, "sim.Ir", PM_STAT_EXACT, NUMBERS(1000), 1, 0);
		stat_scope(&base, 0, "f", 8, NUMBERS(500));
		stat_scope(&new, 0, "f", 8, NUMBERS(500))->lost = 8;
		compare(&comparison, &base, &new);
		options.gates = NULL;
		assert_int_equal(row_of(&comparison, "f", "calls")->verdict,
				 cases[i].verdict);
		pm_comparison_release(&comparison);
		pm_stat_release(&base);
		pm_stat_release(&new);
	}
}

/* Not in turns: wall-time decides nothing, and is told to. */
static void test_no_turns(void **state)
{
	struct pm_stat sides[2];
	struct pm_comparison comparison;

	for (uint32_t side = 0; side < 2; side++) {
		stat_begin(&sides[side], "count");
		stat_subject(&sides[side], program, 1);
		add_noisy_events(&sides[side]);
		for (size_t run = 0; run < RUNS; run++) {
			struct noise noise = noise_self[run][0];

			noise.wall += side * 100000;
			noise.cpu += side * noise.cpu / 20;
			add_noisy_run(&sides[side], 0, &noise, 1000 * side + run);
		}
	}
	compare(&comparison, &sides[0], &sides[1]);
	assert_int_equal(comparison.verdict, PM_VERDICT_SAME);
	assert_int_equal(row_of(&comparison, NULL, "wall-time")->verdict,
			 PM_VERDICT_WORSE);
	assert_false(row_of(&comparison, NULL, "wall-time")->gated);
	assert_true(row_of(&comparison, NULL, "task-clock")->gate == 0.1);
	assert_int_equal(comparison.warnings.len, 1);
	pm_comparison_release(&comparison);
	pm_stat_release(&sides[0]);
	pm_stat_release(&sides[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_gates),
		cmocka_unit_test(test_gate_lists),
		cmocka_unit_test(test_gates_mean_rows),
		cmocka_unit_test(test_exact),
		cmocka_unit_test(test_low_noise),
		cmocka_unit_test(test_noisy),
		cmocka_unit_test(test_interval),
		cmocka_unit_test(test_unknown_is_not_zero),
		cmocka_unit_test(test_failed_runs),
		cmocka_unit_test(test_history),
		cmocka_unit_test(test_scopes),
		cmocka_unit_test(test_repeated_scopes),
		cmocka_unit_test(test_gone),
		cmocka_unit_test(test_incomparable),
		cmocka_unit_test(test_noise),
		cmocka_unit_test(test_noise_of_a_change),
		cmocka_unit_test(test_secondary),
		cmocka_unit_test(test_deciding),
		cmocka_unit_test(test_unknown_calls),
		cmocka_unit_test(test_hard_limits),
		cmocka_unit_test(test_hard_limit_of_new),
		cmocka_unit_test(test_hard_limit_of_few),
		cmocka_unit_test(test_hard_limit_of_lost),
		cmocka_unit_test(test_no_turns),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
