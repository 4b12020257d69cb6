/* SPDX-License-Identifier: MIT */
/* Several cases in one comparison. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "pm/compare.h"
#include "tests/stat-documents.h"

/* One case, of which each side has one document. */
struct sample {
	struct pm_stat base, new;
	const struct pm_stat *docs[2];
};

enum {
	RUNS = 20,
};

static void fill(struct pm_stat *stat, enum pm_stat_class class, uint64_t from,
		 uint64_t step, unsigned int turn)
{
	static const char *const argv[] = { "prog" };
	uint64_t runs = class == PM_STAT_EXACT ? 1 : RUNS;
	struct pm_stat_event *event;

	stat_begin(stat, class == PM_STAT_EXACT ? "callgrind" : "count");
	stat_subject(stat, argv, 1);
	event = stat_event(stat, class == PM_STAT_EXACT ? "sim.Ir" : "task-clock",
			   class == PM_STAT_EXACT ? "" : "ns", class);
	event->default_set = false;
	for (uint64_t i = 0; i < runs; i++) {
		uint64_t value = from + step * (i * 7 % RUNS);
		struct pm_stat_run *run = stat_run(stat, 0, &value);

		run->begin_ns += 2 * i + turn;
	}
}

static struct sample make(enum pm_stat_class class, uint64_t base, uint64_t new,
			  uint64_t step)
{
	struct sample sample = { 0 };

	fill(&sample.base, class, base, step, 0);
	fill(&sample.new, class, new, step, 1);
	return sample;
}

static void release(struct sample *sample)
{
	pm_stat_release(&sample->base);
	pm_stat_release(&sample->new);
}

static struct pm_compare_input input_of(struct sample *sample, const char *name)
{
	sample->docs[0] = &sample->base;
	sample->docs[1] = &sample->new;
	return (struct pm_compare_input){ .name = name,
					  .base = &sample->docs[0],
					  .base_len = 1,
					  .new = &sample->docs[1],
					  .new_len = 1 };
}

static void compare(struct pm_comparison *ret, const struct pm_compare_input *inputs,
		    size_t len, const char *gates)
{
	PM_CLEANUP(pm_gates_release) struct pm_gates parsed = { 0 };
	struct pm_compare_options options = { .gates = &parsed };
	struct pm_error err = { 0 };

	if (gates && pm_gates_parse(&parsed, gates, "pmdiff.json", &err) < 0)
		fail_msg("%s", err.text);
	if (pm_compare_cases(ret, inputs, len, &options, &err) < 0)
		fail_msg("%s", err.text);
	/* Only names of gates are read later, and they are gone. */
	for (size_t i = 0; i < ret->rows.len; i++)
		ret->rows.data[i].gate_source = NULL;
}

static const struct pm_compare_case *find(const struct pm_comparison *comparison,
					  const char *name)
{
	for (size_t i = 0; i < comparison->cases.len; i++)
		if (strcmp(comparison->cases.data[i].name, name) == 0)
			return &comparison->cases.data[i];
	fail_msg("no case %s", name);
	return NULL;
}

/* ---- tests --------------------------------------------------------------------------------- */

static void test_verdicts(void **state)
{
	struct sample same = make(PM_STAT_EXACT, 1000, 1000, 0);
	struct sample worse = make(PM_STAT_EXACT, 1000, 1100, 0);
	struct sample better = make(PM_STAT_EXACT, 1000, 900, 0);
	struct pm_compare_input inputs[] = {
		input_of(&same, "same/1"),
		input_of(&better, "better"),
		input_of(&worse, "worse"),
	};
	PM_CLEANUP(pm_comparison_release) struct pm_comparison comparison = { 0 };

	compare(&comparison, inputs, 3, NULL);
	assert_int_equal(comparison.verdict, PM_VERDICT_WORSE);
	assert_int_equal(comparison.cases.len, 3);
	/* The worst first, each with its rows. */
	assert_string_equal(comparison.cases.data[0].name, "worse");
	assert_string_equal(comparison.cases.data[1].name, "better");
	assert_string_equal(comparison.cases.data[2].name, "same/1");
	for (size_t i = 0; i < 3; i++) {
		const struct pm_compare_case *one = &comparison.cases.data[i];

		assert_int_equal(one->len, 1);
		assert_int_equal(one->first, i);
		assert_string_equal(comparison.rows.data[i].case_name, one->name);
		assert_int_equal(comparison.rows.data[i].case_at, i);
		assert_string_equal(one->engine, "callgrind");
	}
	assert_int_equal(comparison.base.runs, 3);
	release(&same);
	release(&worse);
	release(&better);
}

static void test_gates(void **state)
{
	static const struct {
		const char *gates;
		enum pm_verdict a, b;
	} cases[] = {
		{ NULL, PM_VERDICT_WORSE, PM_VERDICT_WORSE },
		{ "sim.Ir=15%", PM_VERDICT_SAME, PM_VERDICT_SAME },
		{ "*//sim.Ir=15%", PM_VERDICT_SAME, PM_VERDICT_SAME },
		/* The other is judged without gates. */
		{ "BM_x/8//sim.Ir=15%", PM_VERDICT_SAME, PM_VERDICT_WORSE },
		{ "BM_*//sim.Ir=15%", PM_VERDICT_SAME, PM_VERDICT_WORSE },
		{ "sim.Ir=15%,b[1]//sim.Ir=5%", PM_VERDICT_SAME, PM_VERDICT_WORSE },
		{ "sim.Ir=1%,BM_x/8//sim.Ir<=2k", PM_VERDICT_WORSE, PM_VERDICT_WORSE },
		{ "sim.Ir=15%,BM_x/8//sim.Ir<=1k", PM_VERDICT_WORSE, PM_VERDICT_SAME },
		/* Of another case, whatever that is. */
		{ "sim.Ir=15%,c//sim.Ir=1%", PM_VERDICT_SAME, PM_VERDICT_SAME },
		{ "group//sim.Ir=15%", PM_VERDICT_SAME, PM_VERDICT_WORSE },
	};
	struct sample a = make(PM_STAT_EXACT, 1000, 1100, 0);
	struct sample b = make(PM_STAT_EXACT, 2000, 2200, 0);
	struct pm_compare_input inputs[] = { input_of(&a, "BM_x/8"),
					     input_of(&b, "b[1]") };

	inputs[0].group = "group";
	for (size_t i = 0; i < PM_ARRAY_LEN(cases); i++) {
		struct pm_comparison comparison = { 0 };

		compare(&comparison, inputs, 2, cases[i].gates);
		if (find(&comparison, "BM_x/8")->verdict != cases[i].a ||
		    find(&comparison, "b[1]")->verdict != cases[i].b)
			fail_msg("%s: %s and %s", cases[i].gates,
				 pm_verdict_name(find(&comparison, "BM_x/8")->verdict),
				 pm_verdict_name(find(&comparison, "b[1]")->verdict));
		pm_comparison_release(&comparison);
	}
	release(&a);
	release(&b);
}

static int refuse(const struct pm_compare_input *inputs, size_t len, const char *gates,
		  struct pm_error *err)
{
	PM_CLEANUP(pm_gates_release) struct pm_gates parsed = { 0 };
	struct pm_compare_options options = { .gates = &parsed };
	struct pm_comparison comparison = { 0 };
	int r;

	assert_int_equal(pm_gates_parse(&parsed, gates, "--gate", NULL), 0);
	r = pm_compare_cases(&comparison, inputs, len, &options, err);
	pm_comparison_release(&comparison);
	return r;
}

static void test_slips(void **state)
{
	struct sample a = make(PM_STAT_EXACT, 1000, 1100, 0);
	struct pm_compare_input input = input_of(&a, "parse");
	struct pm_error err = { 0 };

	assert_int_equal(refuse(&input, 1, "prase//sim.Ir=1%", &err), -ENOENT);
	assert_non_null(strstr(err.text, "names no case"));
	assert_string_equal(err.fix, "parse");
	assert_int_equal(refuse(&input, 1, "parse//sim.It=1%", &err), -ENOENT);
	assert_non_null(strstr(err.text, "parse//sim.It"));
	/* Without cases there is none to name. */
	input.name = NULL;
	assert_int_equal(refuse(&input, 1, "parse//sim.Ir=1%", &err), -ENOENT);
	assert_int_equal(refuse(&input, 1, "sim.Ir=1%", &err), 0);
	release(&a);
}

static void test_one_side(void **state)
{
	struct sample same = make(PM_STAT_EXACT, 1000, 1000, 0);
	struct sample other = make(PM_STAT_EXACT, 1000, 1000, 0);
	struct pm_compare_input inputs[] = {
		input_of(&same, "same"),
		input_of(&other, "other"),
	};
	struct pm_comparison comparison = { 0 };

	inputs[1].base_len = 0;
	compare(&comparison, inputs, 2, NULL);
	assert_int_equal(comparison.verdict, PM_VERDICT_SAME);
	assert_int_equal(find(&comparison, "other")->verdict, PM_VERDICT_NEW);
	assert_int_equal(find(&comparison, "other")->len, 1);
	pm_comparison_release(&comparison);
	/* A hard limit needs no base. */
	compare(&comparison, inputs, 2, "sim.Ir=1%,other//sim.Ir<=10");
	assert_int_equal(comparison.verdict, PM_VERDICT_WORSE);
	assert_int_equal(find(&comparison, "other")->verdict, PM_VERDICT_WORSE);
	pm_comparison_release(&comparison);
	inputs[1].base_len = 1;
	inputs[1].new_len = 0;
	compare(&comparison, inputs, 2, "sim.Ir=1%");
	assert_int_equal(comparison.verdict, PM_VERDICT_SAME);
	assert_int_equal(find(&comparison, "other")->verdict, PM_VERDICT_GONE);
	pm_comparison_release(&comparison);
	/* Somebody wants to know. */
	compare(&comparison, inputs, 2, "sim.Ir=1%,other//sim.Ir=1%");
	assert_int_equal(comparison.verdict, PM_VERDICT_INCONCLUSIVE);
	pm_comparison_release(&comparison);
	inputs[1].failed_new = "it has crashed";
	compare(&comparison, inputs, 2, "other//sim.Ir=1%");
	assert_int_equal(comparison.verdict, PM_VERDICT_INCONCLUSIVE);
	assert_int_equal(find(&comparison, "other")->verdict, PM_VERDICT_UNKNOWN);
	assert_true(find(&comparison, "other")->failed_new);
	assert_string_equal(find(&comparison, "other")->why, "it has crashed");
	assert_int_equal(find(&comparison, "other")->len, 0);
	pm_comparison_release(&comparison);
	release(&same);
	release(&other);
}

/* Another processor in one case does not end the other. */
static void test_not_comparable(void **state)
{
	struct sample a = make(PM_STAT_EXACT, 1000, 1000, 0);
	struct sample b = make(PM_STAT_EXACT, 1000, 1100, 0);
	struct pm_compare_input inputs[] = { input_of(&a, "a"), input_of(&b, "b") };
	struct pm_comparison comparison = { 0 };
	struct pm_compare_options options = { 0 };
	struct pm_error err = { 0 };

	a.base.host.arch = stat_text("x86_64");
	a.new.host.arch = stat_text("aarch64");
	compare(&comparison, inputs, 2, NULL);
	assert_int_equal(comparison.verdict, PM_VERDICT_WORSE);
	assert_int_equal(find(&comparison, "a")->verdict, PM_VERDICT_UNKNOWN);
	assert_non_null(strstr(find(&comparison, "a")->why, "architecture"));
	assert_int_equal(comparison.differences.len, 1);
	assert_non_null(strstr(comparison.differences.data[0], "a: architecture"));
	pm_comparison_release(&comparison);
	assert_int_equal(pm_compare_cases(&comparison, inputs, 1, &options, &err),
			 -EXDEV);
	pm_comparison_release(&comparison);
	release(&a);
	release(&b);
}

/* Rows that decide are one family, whatever case they are of. */
static void test_holm(void **state)
{
	struct sample a = make(PM_STAT_NOISY, 1000000, 1030000, 100);
	struct sample b = make(PM_STAT_NOISY, 1000000, 1000000, 100);
	struct sample c = make(PM_STAT_NOISY, 1000000, 1000000, 100);
	struct pm_compare_input inputs[] = { input_of(&a, "a"), input_of(&b, "b"),
					     input_of(&c, "c") };
	PM_CLEANUP(pm_comparison_release) struct pm_comparison all = { 0 }, one = { 0 };
	double alone, together;

	compare(&one, inputs, 1, NULL);
	compare(&all, inputs, 3, NULL);
	assert_int_equal(find(&all, "a")->verdict, PM_VERDICT_WORSE);
	assert_int_equal(find(&all, "b")->verdict, PM_VERDICT_SAME);
	alone = one.rows.data[0].p_holm;
	together = all.rows.data[find(&all, "a")->first].p_holm;
	assert_true(alone > 0 && fabs(together / alone - 3) < 1e-9);
	release(&a);
	release(&b);
	release(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_verdicts),       cmocka_unit_test(test_gates),
		cmocka_unit_test(test_slips),          cmocka_unit_test(test_one_side),
		cmocka_unit_test(test_not_comparable), cmocka_unit_test(test_holm),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
