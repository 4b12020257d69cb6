/* SPDX-License-Identifier: MIT */
/* Two recordings, function by function. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "pm/compare.h"

/* ---- recordings ------------------------------------------------------------------------ */

/* One function, called by main in so many samples. */
struct leaf {
	const char *name;
	unsigned int samples;
	bool inlined; /* into main */
	unsigned int caller; /* number of another one, from 1; 0: main */
};

struct recording {
	const char *program, *event;
	unsigned int period;
	bool attached;
	const struct leaf *leaves;
	size_t len;
};

static void put_header(struct pm_str *file, const struct recording *recording)
{
	pm_str_printf(file,
		      "{\"type\":\"header\",\"format\":\"pmrec\",\"version\":1,"
		      "\"pmrec\":\"0.1.0\",\"created\":\"2024-05-06T07:08:09Z\","
		      "\"clock\":\"monotonic\",\"host\":{\"hostname\":\"h\","
		      "\"kernel\":\"k\",\"arch\":\"x86_64\",\"cpus\":2,"
		      "\"cpu_model\":\"CPU\",\"virt\":null},\"command\":[\"./%s\"],"
		      "\"events\":[{\"id\":0,\"name\":\"cycles\","
		      "\"requested\":\"cycles\",\"actual\":\"%s\",\"modifiers\":\"\","
		      "\"unit\":\"events\",\"period\":%u}],\"options\":"
		      "{\"call_graph\":\"dwarf\",\"stack_bytes\":8,\"ring_bytes\":8}}\n"
		      "{\"type\":\"module\",\"id\":0,\"path\":\"/tmp/%s\","
		      "\"build_id\":null,\"kind\":\"file\"}\n",
		      recording->program, recording->event, recording->period,
		      recording->program);
}

static void put_leaf(struct pm_str *file, const struct recording *recording,
		     unsigned int id, const struct leaf *leaf)
{
	const char *caller = leaf->inlined ? ",{\"name\":\"main\"}" : "";
	char parent[16] = "null";

	if (id > 0 && !leaf->inlined)
		snprintf(parent, sizeof(parent), "%u", leaf->caller);

	pm_str_printf(file,
		      "{\"type\":\"frame\",\"id\":%u,\"module\":0,"
		      "\"address\":\"0x%x\",\"how\":\"cfi\"}\n"
		      "{\"type\":\"symbol\",\"frame\":%u,\"functions\":["
		      "{\"name\":\"%s\",\"file\":\"a.c\",\"line\":%u}%s]}\n"
		      "{\"type\":\"stack\",\"id\":%u,\"parent\":%s,\"frames\":[%u]}\n",
		      id, 0x1000 * (id + 1), id, leaf->name, 10 * id, caller, id, parent,
		      id);
	for (unsigned int i = 0; i < leaf->samples; i++)
		pm_str_printf(file,
			      "{\"type\":\"sample\",\"time\":5,\"pid\":1,\"tid\":1,"
			      "\"cpu\":0,\"event\":0,\"period\":%u,\"stack\":%u}\n",
			      recording->period, id);
}

static struct pm_profile *record(const struct recording *recording)
{
	static const struct leaf root = { "main", 0, false };
	struct pm_file_reader *reader;
	struct pm_profile *profile = NULL;
	struct pm_error err = { 0 };
	struct pm_str file = { 0 };
	unsigned int samples = 0;

	put_header(&file, recording);
	put_leaf(&file, recording, 0, &root);
	for (unsigned int i = 0; i < recording->len; i++) {
		put_leaf(&file, recording, i + 1, &recording->leaves[i]);
		samples += recording->leaves[i].samples;
	}
	pm_str_printf(&file,
		      "{\"type\":\"footer\",\"samples\":%u,\"lost\":0,\"throttled\":0,"
		      "\"truncated\":0,\"stitched\":0,\"stops\":{\"root\":%u},"
		      "\"duration_ns\":9000,\"cpu_ns\":5000,\"exit\":%s,\"events\":[{"
		      "\"id\":0,\"samples\":%u,\"period\":%u,\"lost\":0}]}\n",
		      samples, samples, recording->attached ? "null" : "{\"code\":0}",
		      samples, samples * recording->period);
	assert_false(file.failed);
	if (pm_file_reader_open_memory(&reader, file.data, file.len, &err) < 0 ||
	    pm_profile_load(&profile, reader, NULL, &err) < 0)
		fail_msg("%s:%lld: %s", err.source, (long long)err.offset, err.text);
	pm_file_reader_free(reader);
	pm_str_release(&file);
	return profile;
}

/* ---- comparisons ----------------------------------------------------------------------- */

static int compare(struct pm_comparison *ret, const struct recording *base,
		   const struct recording *new, const struct pm_gates *gates,
		   struct pm_error *err)
{
	struct pm_profile *profiles[] = { record(base), record(new) };
	struct pm_compare_options options = { .gates = gates };
	int r = pm_compare_profiles(ret, profiles[0], profiles[1], &options, err);

	/* What was found outlives what it was found in. */
	pm_profile_free(profiles[0]);
	pm_profile_free(profiles[1]);
	return r;
}

static const struct pm_compare_row *row_of(const struct pm_comparison *comparison,
					   const char *scope, const char *event)
{
	for (size_t i = 0; i < comparison->rows.len; i++) {
		const struct pm_compare_row *row = &comparison->rows.data[i];

		if (strcmp(row->event, event) == 0 &&
		    strcmp(row->scope ? row->scope : "", scope) == 0)
			return row;
	}
	fail_msg("there is no row %s of %s", event, scope);
	return NULL;
}

#define RECORDING(program, attached, ...)                                                \
	{                                                                                \
		program, "cycles", 1000, attached, (const struct leaf[]){ __VA_ARGS__ }, \
			PM_ARRAY_LEN(((const struct leaf[]){ __VA_ARGS__ }))             \
	}

/* What got faster makes the rest a larger share of less: of whole programs that is not told. */
static void test_weights(void **state)
{
	const struct recording base =
		RECORDING("old", false, { "f", 500, false }, { "g", 500, false });
	const struct recording new =
		RECORDING("new", false, { "f", 50, false }, { "g", 510, false });
	const struct pm_compare_row *row;
	struct pm_comparison comparison;

	assert_int_equal(compare(&comparison, &base, &new, NULL, NULL), 0);
	assert_int_equal(comparison.verdict, PM_VERDICT_BETTER);
	row = row_of(&comparison, "f", "cycles self");
	assert_int_equal(row->verdict, PM_VERDICT_BETTER);
	assert_true(fabs(row->change + 0.9) < 1e-9 && row->low < -0.9 &&
		    row->high > -0.9);
	assert_true(row->base.median == 500000 && row->new.median == 50000);
	assert_true(row->base.samples == 500 && row->base.share == 50);
	assert_string_equal(row->unit, "");
	assert_string_equal(row->module, "old");
	assert_int_equal(row->line, 10);
	row = row_of(&comparison, "g", "cycles self");
	assert_int_equal(row->verdict, PM_VERDICT_SAME);
	assert_true(row->new.share > 91);
	row = row_of(&comparison, "main", "cycles total");
	assert_int_equal(row->verdict, PM_VERDICT_BETTER);
	assert_true(row->base.median == 1000000 && row->new.median == 560000);
	assert_int_equal(row_of(&comparison, "", "cycles")->verdict, PM_VERDICT_BETTER);
	assert_int_equal(comparison.warnings.len, 1); /* the command */
	pm_comparison_release(&comparison);

	assert_int_equal(compare(&comparison, &new, &base, NULL, NULL), 0);
	assert_int_equal(comparison.verdict, PM_VERDICT_CHANGED);
	/* Who did it stands before those who have inherited it. */
	row = &comparison.rows.data[0];
	assert_int_equal(row->verdict, PM_VERDICT_WORSE);
	assert_string_equal(row->scope, "f");
	assert_string_equal(row->event, "cycles self");
	pm_comparison_release(&comparison);
}

/* Of parts of programs only shares are known, of which nobody knows which way is better until a
 * gate says so. */
static void test_shares(void **state)
{
	const struct recording base =
		RECORDING("prog", true, { "f", 500, false }, { "g", 500, false });
	const struct recording new =
		RECORDING("prog", true, { "f", 300, false }, { "g", 600, false });
	const struct pm_compare_row *row;
	struct pm_comparison comparison;
	struct pm_gates gates = { 0 };
	struct pm_error err = { 0 };

	assert_int_equal(compare(&comparison, &base, &new, NULL, NULL), 0);
	assert_int_equal(comparison.verdict, PM_VERDICT_CHANGED);
	row = row_of(&comparison, "g", "cycles self");
	assert_int_equal(row->verdict, PM_VERDICT_CHANGED);
	assert_string_equal(row->unit, "%");
	assert_true(fabs(row->change - 1.0 / 6) < 1e-9);
	assert_true(row->low > 0.1 && row->high < 0.25);
	assert_true(row->new.weight == 600000);
	pm_comparison_release(&comparison);

	assert_int_equal(pm_gates_parse(&gates, "fn:g:cycles self=10%", "--gate", NULL),
			 0);
	assert_int_equal(compare(&comparison, &base, &new, &gates, NULL), 0);
	assert_int_equal(comparison.verdict, PM_VERDICT_WORSE);
	assert_true(comparison.rows.data[0].gated);
	pm_comparison_release(&comparison);
	assert_int_equal(pm_gates_parse(&gates, "fn:gg:cycles=10%", "--gate", NULL), 0);
	assert_int_equal(compare(&comparison, &base, &new, &gates, &err), -ENOENT);
	assert_non_null(strstr(err.text, "fn:gg:cycles"));
	pm_gates_release(&gates);
}

/* Copies and parts are the function; inlined on one side, it is one row. */
static void test_names(void **state)
{
	const struct recording base = RECORDING(
		"prog", false, { "f", 300, false }, { "f.part.0", 200, false, 1 },
		{ "r::run::h0123456789abcdef", 100, false }, { "old", 100, false });
	const struct recording new =
		RECORDING("prog", false, { "f", 500, true },
			  { "r::run::hfedcba9876543210", 100, false },
			  { "young", 100, false }, { "rare", 2, false });
	const struct pm_compare_row *row;
	struct pm_comparison comparison;

	assert_int_equal(compare(&comparison, &base, &new, NULL, NULL), 0);
	row = row_of(&comparison, "f", "cycles total");
	assert_int_equal(row->verdict, PM_VERDICT_SAME);
	assert_true(row->base.samples == 500 && row->new.samples == 500);
	assert_true(!row->inlined_base && row->inlined_new);
	row = row_of(&comparison, "r::run", "cycles self");
	assert_true(row->base.samples == 100 && row->new.samples == 100);
	assert_int_equal(row_of(&comparison, "old", "cycles self")->verdict,
			 PM_VERDICT_GONE);
	assert_int_equal(row_of(&comparison, "young", "cycles self")->verdict,
			 PM_VERDICT_NEW);
	assert_true(row_of(&comparison, "young", "cycles self")->change > 1e300);
	/* Two samples are nothing. */
	assert_int_equal(row_of(&comparison, "rare", "cycles self")->verdict,
			 PM_VERDICT_SAME);
	pm_comparison_release(&comparison);
}

/* Fewer samples, the same change: not more than chance. */
static void test_chance(void **state)
{
	const struct recording base =
		RECORDING("prog", false, { "f", 10, false }, { "g", 90, false });
	const struct recording new =
		RECORDING("prog", false, { "f", 22, false }, { "g", 90, false });
	struct pm_comparison comparison;
	struct pm_gates gates = { 0 };

	assert_int_equal(compare(&comparison, &base, &new, NULL, NULL), 0);
	assert_int_equal(comparison.verdict, PM_VERDICT_SAME);
	pm_comparison_release(&comparison);
	assert_int_equal(pm_gates_parse(&gates, "fn:f:self=10%", "--gate", NULL), 0);
	assert_int_equal(compare(&comparison, &base, &new, &gates, NULL), 0);
	assert_int_equal(comparison.verdict, PM_VERDICT_INCONCLUSIVE);
	pm_comparison_release(&comparison);
	pm_gates_release(&gates);
}

static void test_events(void **state)
{
	const struct recording base = RECORDING("prog", false, { "f", 10, false });
	struct recording new = base;
	struct pm_comparison comparison;
	struct pm_error err = { 0 };

	new.event = "cpu-clock";
	assert_int_equal(compare(&comparison, &base, &new, NULL, &err), -EXDEV);
	assert_non_null(strstr(err.text,
			       "cycles: cycles on the base, cpu-clock on the new side"));
	pm_comparison_release(&comparison);
	new.event = "cycles";
	new.period = 500;
	assert_int_equal(compare(&comparison, &base, &new, NULL, NULL), 0);
	assert_int_equal(comparison.warnings.len, 1);
	/* Ten samples of half the weight each. */
	assert_true(row_of(&comparison, "f", "cycles self")->change == -0.5);
	pm_comparison_release(&comparison);
}

/* A few samples more are no regression of a gate, nor are they none. */
static void test_gated_interval(void **state)
{
	const struct recording base =
		RECORDING("prog", false, { "f", 1000, false }, { "g", 100, false });
	const struct recording more =
		RECORDING("prog", false, { "f", 1150, false }, { "g", 100, false });
	const struct recording much =
		RECORDING("prog", false, { "f", 1500, false }, { "g", 100, false });
	struct pm_comparison comparison;
	struct pm_gates gates = { 0 };

	assert_int_equal(pm_gates_parse(&gates, "fn:f:self=10%", "pmdiff.json", NULL), 0);
	assert_int_equal(compare(&comparison, &base, &more, &gates, NULL), 0);
	assert_int_equal(comparison.verdict, PM_VERDICT_INCONCLUSIVE);
	assert_true(comparison.rows.data[0].p_holm < 0.01);
	pm_comparison_release(&comparison);
	assert_int_equal(compare(&comparison, &base, &much, &gates, NULL), 0);
	assert_int_equal(comparison.verdict, PM_VERDICT_WORSE);
	assert_int_equal(comparison.warnings.len, 0);
	pm_comparison_release(&comparison);
	/* What a repository wants of counts is told not to be here. */
	assert_int_equal(
		pm_gates_parse(&gates, "wall=5%,fn:h:sim.Ir=1%", "pmdiff.json", NULL), 0);
	assert_int_equal(compare(&comparison, &base, &much, &gates, NULL), 0);
	assert_int_equal(comparison.warnings.len, 1);
	assert_non_null(strstr(comparison.warnings.data[0], "wall-time, h:sim.Ir"));
	pm_comparison_release(&comparison);
	pm_gates_release(&gates);
}

/* A lambda in front of others takes their numbers: all of them are compared as one. */
static void test_lambdas(void **state)
{
	const struct recording base = RECORDING(
		"prog", false, { "m()::{lambda(int)#1}::x", 500, false },
		{ "m()::{lambda(int)#2}::x", 100, false },
		{ "r::{closure#1}", 300, false }, { "m()::$_0::y", 300, false });
	const struct recording new = RECORDING(
		"prog", false, { "m()::{lambda(int)#1}::x", 10, false },
		{ "m()::{lambda(int)#2}::x", 500, false },
		{ "m()::{lambda(int)#3}::x", 100, false },
		{ "r::{closure#1}", 300, false }, { "m()::'lambda'()::z", 100, false },
		{ "m()::'lambda0'()::z", 100, false });
	const struct pm_compare_row *row;
	struct pm_comparison comparison;

	assert_int_equal(compare(&comparison, &base, &new, NULL, NULL), 0);
	row = row_of(&comparison, "m()::{lambda(int)#*}::x", "cycles self");
	assert_int_equal(row->verdict, PM_VERDICT_SAME);
	assert_true(row->base.samples == 600 && row->new.samples == 610);
	/* The same ones on both sides, and one alone, have their numbers. */
	row_of(&comparison, "r::{closure#1}", "cycles self");
	row_of(&comparison, "m()::$_0::y", "cycles self");
	row = row_of(&comparison, "m()::'lambda*'()::z", "cycles self");
	assert_true(row->new.samples == 200);
	pm_comparison_release(&comparison);
}

/* So have those that are called by their places, when they are moved. */
static void test_places_of_lambdas(void **state)
{
	const struct recording base = RECORDING(
		"prog", false,
		{ "m()::{lambda a.cc:7:25}::operator()(int) const", 500, false },
		{ "{unnamed a.cc:9:1}::x", 200, false },
		{ "r::{impl a.rs:7:1}", 300, false });
	const struct recording new = RECORDING(
		"prog", false,
		{ "m()::{lambda a.cc:17:5}::operator()(int) const", 500, false },
		{ "{unnamed a.cc:19:1}::x", 200, false },
		{ "r::{impl a.rs:8:1}", 300, false });
	struct pm_comparison comparison;

	assert_int_equal(compare(&comparison, &base, &new, NULL, NULL), 0);
	assert_int_equal(row_of(&comparison,
				"m()::{lambda a.cc:*:*}::operator()(int) const",
				"cycles self")
				 ->verdict,
			 PM_VERDICT_SAME);
	assert_int_equal(
		row_of(&comparison, "{unnamed a.cc:*:*}::x", "cycles self")->verdict,
		PM_VERDICT_SAME);
	/* What else has a place is not known to be the same. */
	row_of(&comparison, "r::{impl a.rs:7:1}", "cycles self");
	row_of(&comparison, "r::{impl a.rs:8:1}", "cycles self");
	pm_comparison_release(&comparison);
}

/* No samples are not the same as any. */
static void test_no_samples(void **state)
{
	const struct recording base = RECORDING("prog", true, { "f", 1000, false });
	const struct recording none = RECORDING("prog", true, { "f", 0, false });
	struct pm_comparison comparison;
	struct pm_error err = { 0 };

	assert_int_equal(compare(&comparison, &base, &none, NULL, &err), -EINVAL);
	assert_non_null(strstr(err.text, "both have samples of"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_weights),
		cmocka_unit_test(test_shares),
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_chance),
		cmocka_unit_test(test_events),
		cmocka_unit_test(test_gated_interval),
		cmocka_unit_test(test_no_samples),
		cmocka_unit_test(test_lambdas),
		cmocka_unit_test(test_places_of_lambdas),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
