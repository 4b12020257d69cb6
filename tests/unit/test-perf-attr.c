/* SPDX-License-Identifier: MIT */
/* What an attr has beside its event: rates, levels, the layout that all events share. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <linux/perf_event.h>
#include <string.h>

#include "src/perf/perf-internal.h"

static struct pm_event_specs specs;

static void parse(const char *text)
{
	struct pm_error err = { 0 };

	pm_event_specs_release(&specs);
	if (pm_event_specs_parse(text, &specs, &err) < 0)
		fail_msg("%s: %s", text, err.text);
}

/* Each kind's own bits of the attr; the oracle compares the rest with perf's. */
static struct perf_event_attr attr_of(size_t index, struct pm_attr_request *request)
{
	const struct pm_event_spec *spec = &specs.list.data[index];
	struct pm_perf_event event = { *spec, *spec, false, 1, false };
	struct pm_perf_features features = { true, true };
	struct perf_event_attr attr;

	request->event = &event;
	request->features = &features;
	pm_attr_shape_of(specs.list.data, specs.list.len, PM_CALL_GRAPH_NONE,
			 request->shape.branches, &request->shape);
	pm_attr_fill(request, &attr);
	request->event = NULL;
	return attr;
}

static void test_attrs(void **state)
{
	struct pm_attr_request request = { .first = true, .switches = true };
	struct perf_event_attr attr;

	parse("mem:0x1000/2:w,cs,cs,{cycles,cs}:SD");
	/* As pm/probe.h leaves a uretprobe. */
	specs.list.data[1].kind = PM_EVENT_UPROBE;
	specs.list.data[1].type = 8;
	specs.list.data[1].config = 1;
	specs.list.data[1].path = "/p";
	specs.list.data[1].config2 = 0x40;
	attr = attr_of(0, &request);
	assert_true(attr.bp_addr == 0x1000 && attr.bp_len == 2 && attr.bp_type == 2);
	assert_true(attr.sample_period == 1 && !attr.freq && attr.context_switch);
	/* All in one layout. */
	assert_true(attr.sample_type & PERF_SAMPLE_RAW);
	assert_true(attr.sample_type & PERF_SAMPLE_ADDR);
	assert_true(attr.sample_type & PERF_SAMPLE_READ);
	assert_true(attr.read_format & PERF_FORMAT_GROUP);
	request = (struct pm_attr_request){ .shape.branches = 8, .overwrite = true };
	attr = attr_of(1, &request);
	assert_true(attr.type == 8 && attr.config == 1 && attr.config2 == 0x40);
	assert_string_equal((const char *)(uintptr_t)attr.config1, "/p");
	assert_true(attr.write_backward && !attr.context_switch && !attr.mmap);
	assert_true(attr.sample_type & PERF_SAMPLE_BRANCH_STACK);
	assert_true(attr.branch_sample_type == 8);
	attr = attr_of(3, &request);
	assert_true(attr.pinned && attr.disabled && attr.enable_on_exec && !attr.inherit);
	request.member = request.counted = true;
	attr = attr_of(4, &request);
	assert_true(!attr.pinned && !attr.disabled && !attr.enable_on_exec);
	assert_true(attr.sample_period == 0 && !attr.freq);
	parse("cycles:k,cs");
	request =
		(struct pm_attr_request){ .no_inherit = true, .no_enable_on_exec = true };
	attr = attr_of(0, &request);
	assert_true(!attr.inherit && !attr.enable_on_exec && attr.exclude_guest);
	assert_true(attr.exclude_user && attr.exclude_hv && !attr.exclude_kernel);
	assert_false(attr.sample_type & (PERF_SAMPLE_RAW | PERF_SAMPLE_ADDR |
					 PERF_SAMPLE_READ | PERF_SAMPLE_BRANCH_STACK));
	assert_false(attr_of(1, &request).exclude_guest);
	pm_event_specs_release(&specs);
}

/* Where the kernel would give a sample for each hit. */
static void test_fixed_periods(void **state)
{
	static const struct {
		const char *text;
		uint64_t rate, unsaid;
		bool by_frequency;
	} cases[] = {
		{ "page-faults", 5, 5, false },   { "page-faults", 1, 0, false },
		{ "page-faults", 99, 0, true },   { "cpu-clock", 1000, 0, false },
		{ "task-clock", 1000, 0, false }, { "cycles", 1000, 0, false },
		{ "mem:0x1000:w", 3, 3, false },
	};

	for (size_t i = 0; i < PM_ARRAY_LEN(cases); i++) {
		struct pm_perf_features features = { true, true };
		struct pm_perf_event event = { 0 };
		struct pm_attr_request request = { .event = &event,
						   .features = &features };
		struct perf_event_attr attr;

		parse(cases[i].text);
		event.actual = specs.list.data[0];
		event.rate = cases[i].rate;
		event.by_frequency = cases[i].by_frequency;
		assert_int_equal(pm_attr_unsaid_period(&event), cases[i].unsaid);
		pm_attr_fill(&request, &attr);
		assert_int_equal(!(attr.sample_type & PERF_SAMPLE_PERIOD),
				 cases[i].unsaid != 0);
	}
	pm_event_specs_release(&specs);
}

/* Of processes only where events are inherited at all. */
static void test_threads_only(void **state)
{
	struct pm_perf_features features = { .inherit_thread = true };
	struct pm_perf_event event = { 0 };
	struct pm_attr_request request = { .event = &event, .features = &features };
	struct perf_event_attr attr;

	parse("cpu-clock");
	event.actual = specs.list.data[0];
	event.rate = 1000;
	pm_attr_fill(&request, &attr);
	assert_true(attr.inherit && attr.inherit_thread);
	request.no_inherit = true;
	pm_attr_fill(&request, &attr);
	assert_true(!attr.inherit && !attr.inherit_thread);
	pm_event_specs_release(&specs);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_attrs),
		cmocka_unit_test(test_fixed_periods),
		cmocka_unit_test(test_threads_only),
	};

	return cmocka_run_group_tests_name("perf-attr", tests, NULL, NULL);
}
