/* SPDX-License-Identifier: MIT */
/* Documents of counting runs, made by hand: for tests of what writes, reads and shows them. */
#pragma once

#include "pm/stat.h"

#include <math.h>
#include <string.h>

#define STAT_CHECK(condition)     \
	do {                      \
		if (!(condition)) \
			abort();  \
	} while (0)

static inline char *stat_text(const char *text)
{
	char *copy;

	STAT_CHECK(pm_stat_text(&copy, text) == 0);
	return copy;
}

static inline struct pm_stat_event *stat_event(struct pm_stat *stat, const char *name,
					       const char *unit, enum pm_stat_class class)
{
	struct pm_stat_event event = {
		.name = stat_text(name),
		.requested = stat_text(name),
		.unit = stat_text(unit),
		.scale = 1,
		.source = stat_text("software"),
		.class = class,
		.better = -1,
		.group = -1,
		.default_set = true,
	};

	STAT_CHECK(pm_vec_push(&stat->events, event) == 0);
	return &stat->events.data[stat->events.len - 1];
}

static inline void stat_why(struct pm_stat_event *event, enum pm_stat_state state,
			    const char *why)
{
	event->state = state;
	free(event->why);
	event->why = stat_text(why);
}

/* One for each event: the number, or the event's state where it has none. */
static inline struct pm_stat_value *stat_values(const struct pm_stat *stat,
						const uint64_t *numbers)
{
	struct pm_stat_value *values = pm_stat_values_new(stat->events.len);

	STAT_CHECK(values);
	for (size_t i = 0; i < stat->events.len; i++)
		values[i] = (struct pm_stat_value){ .state = stat->events.data[i].state,
						    .value = numbers[i],
						    .raw = numbers[i] };
	return values;
}

static inline struct pm_stat_run *stat_run(struct pm_stat *stat, uint32_t variant,
					   const uint64_t *numbers)
{
	struct pm_stat_run run = {
		.variant = variant,
		.begin_ns = 1700000000000000000,
		.exited = true,
		.values = stat_values(stat, numbers),
	};

	STAT_CHECK(pm_vec_push(&stat->runs, run) == 0);
	return &stat->runs.data[stat->runs.len - 1];
}

static inline void stat_subject(struct pm_stat *stat, const char *const *argv, size_t len)
{
	struct pm_stat_subject subject = { 0 };

	for (size_t i = 0; i < len; i++)
		STAT_CHECK(pm_vec_push(&subject.argv, stat_text(argv[i])) == 0);
	STAT_CHECK(pm_vec_push(&stat->subjects, subject) == 0);
}

static inline void stat_begin(struct pm_stat *stat, const char *engine)
{
	*stat = (struct pm_stat){
		.version = stat_text("0.1.0"),
		.created = stat_text("2024-05-06T07:08:09Z"),
		.engine = stat_text(engine),
		.host = { .paranoid = INT32_MIN, .smt = -1 },
	};
}

static inline void stat_metric(struct pm_stat *stat, const char *name, uint32_t event,
			       uint32_t variant, int32_t scope, double value)
{
	struct pm_stat_metric metric = {
		.name = stat_text(name),
		.unit = stat_text(""),
		.formula = stat_text("a / b"),
		.variant = variant,
		.scope = scope,
		.known = value >= 0,
		.value = value,
		.event = event,
	};

	STAT_CHECK(pm_vec_push(&stat->metrics, metric) == 0);
}

static inline void stat_warning(struct pm_stat *stat, const char *text)
{
	STAT_CHECK(pm_vec_push(&stat->warnings, stat_text(text)) == 0);
}

static inline struct pm_stat_scope *stat_scope(struct pm_stat *stat, uint32_t run,
					       const char *name, uint64_t calls,
					       const uint64_t *numbers)
{
	struct pm_stat_scope scope = {
		.run = run,
		.name = stat_text(name),
		.symbol = stat_text(name),
		.module = stat_text("/usr/bin/prog"),
		.file = stat_text("src/prog.c"),
		.line = 12,
		.line_end = 20,
		.low = 0x1139,
		.high = 0x1180,
		.places = 1,
		.calls = calls,
		.calls_kept = calls,
		.max_depth = calls > 0,
		.calls_exact = true,
		.values = stat_values(stat, numbers),
	};

	STAT_CHECK(pm_vec_push(&stat->scopes, scope) == 0);
	return &stat->scopes.data[stat->scopes.len - 1];
}

/* ---- one with everything in it --------------------------------------------------------- */

static inline void stat_whole_events(struct pm_stat *stat)
{
	struct pm_stat_event *event;

	stat_event(stat, "wall-time", "ns", PM_STAT_NOISY);
	stat_event(stat, "page-faults", "", PM_STAT_LOW_NOISE)->better = 0;
	event = stat_event(stat, "instructions", "", PM_STAT_LOW_NOISE);
	event->group = 0;
	event->user_only = true;
	event->default_set = false;
	event = stat_event(stat, "power/energy-pkg/", "J", PM_STAT_NOISY);
	event->scale = 2.3283064365386962890625e-10;
	event->better = 1;
	event = stat_event(stat, "cycles", "", PM_STAT_NOISY);
	stat_why(event, PM_STAT_NOT_SUPPORTED,
		 "this machine has no \"PMU\"\tof\n2 lines");
	event = stat_event(stat, "sched:sched_switch", "", PM_STAT_EXACT);
	stat_why(event, PM_STAT_NOT_PERMITTED, "only root may");
}

static inline void stat_whole_run(struct pm_stat *stat, uint32_t variant)
{
	static const uint64_t numbers[] = { 1234567890, 123, 4000000, UINT64_MAX, 0, 0 };
	static const uint64_t part[] = { 1000000, 23, 1, 0, 0, 0 };
	struct pm_stat_run *run = stat_run(stat, variant, numbers);
	struct pm_stat_interval interval = { .at_ns = 1000123456,
					     .values = stat_values(stat, part) };
	struct pm_stat_row row = { .pid = 12,
				   .tid = 13,
				   .comm = stat_text("a\033[31m\"b\xff"),
				   .cpu = -1,
				   .values = stat_values(stat, part) };

	run->values[2].state = PM_STAT_MULTIPLEXED;
	run->values[2].raw = 3000000;
	run->values[2].enabled_ns = 400;
	run->values[2].running_ns = 300;
	STAT_CHECK(pm_vec_push(&run->rows, row) == 0);
	row = (struct pm_stat_row){ .cpu = 1, .values = stat_values(stat, part) };
	STAT_CHECK(pm_vec_push(&interval.rows, row) == 0);
	STAT_CHECK(pm_vec_push(&run->intervals, interval) == 0);
}

static inline void stat_whole_scope(struct pm_stat *stat)
{
	static const uint64_t numbers[] = { 1000, 2, 3000, 0, 0, 0 };
	static const uint64_t part[] = { 600, 1, 2000, 0, 0, 0 };
	struct pm_stat_scope *scope = stat_scope(stat, 0, "ns::f(int)", 100, numbers);
	struct pm_stat_thread thread = { .pid = 12,
					 .tid = 13,
					 .comm = stat_text("worker"),
					 .calls = 60,
					 .values = stat_values(stat, part) };
	struct pm_stat_caller caller = { .calls = 60, .values = stat_values(stat, part) };
	struct pm_stat_frame frame = { .function = stat_text("main"),
				       .file = stat_text("src/prog.c"),
				       .line = 40,
				       .module = stat_text("/usr/bin/prog"),
				       .address = 0x1200 };

	scope->build_id = stat_text("0123456789abcdef");
	scope->nested = 3;
	scope->max_depth = 4;
	scope->unfinished = 1;
	scope->calls_exact = false;
	scope->lost = 5;
	scope->per_call = calloc(stat->events.len, sizeof(*scope->per_call));
	STAT_CHECK(scope->per_call);
	scope->per_call[0] = (struct pm_stat_spread){ true, 8, 10, 12, 14 };
	STAT_CHECK(pm_vec_push(&scope->threads, thread) == 0);
	STAT_CHECK(pm_vec_push(&caller.frames, frame) == 0);
	frame = (struct pm_stat_frame){ .address = 0x7f0000001000 };
	STAT_CHECK(pm_vec_push(&caller.frames, frame) == 0);
	STAT_CHECK(pm_vec_push(&scope->callers, caller) == 0);
	scope = stat_scope(stat, 1, "prog.c:10-20", 0, numbers);
	scope->kind = PM_STAT_RANGE;
	free(scope->symbol);
	scope->symbol = NULL;
}

/* Every key of the format, every state, and texts that need care. */
static inline void stat_whole(struct pm_stat *stat)
{
	static const char *const a[] = { "./prog", "10 000", "" };
	static const char *const b[] = { "./prog-\xc3\xa9", "--fast" };
	static const uint64_t overhead[] = { 5400, 0, 12, 0, 0, 0 };
	struct pm_stat_setting setting = { stat_text("GLIBC_TUNABLES"),
					   stat_text("glibc.cpu.hwcaps=-AVX2") };

	stat_begin(stat, "uprobe");
	stat->target = stat_text("-p 12");
	stat->host = (struct pm_stat_host){ .hostname = stat_text("host"),
					    .kernel = stat_text("6.18"),
					    .arch = stat_text("x86_64"),
					    .cpu_model = stat_text("CPU"),
					    .cpus = 2,
					    .paranoid = -1,
					    .governor = stat_text("performance"),
					    .smt = 1 };
	stat_subject(stat, a, PM_ARRAY_LEN(a));
	stat_subject(stat, b, PM_ARRAY_LEN(b));
	stat->subjects.data[0].build_id = stat_text("0123456789abcdef");
	stat->subjects.data[0].commit =
		stat_text("0123456789abcdef0123456789abcdef01234567");
	stat->subjects.data[0].commit_time = 1700000000;
	stat->subjects.data[0].dirty = 1;
	stat_whole_events(stat);
	stat->warmups = 2;
	stat_whole_run(stat, 0);
	stat_whole_run(stat, 1);
	stat->runs.data[1].exit_code = -1;
	stat->runs.data[1].signal = 6;
	stat_whole_run(stat, 0);
	stat->runs.data[2].exited = false;
	stat->runs.data[2].stopped = true;
	stat_whole_scope(stat);
	stat->overhead = stat_values(stat, overhead);
	stat->overhead_subtracted = true;
	stat_metric(stat, "IPC", 2, 0, -1, 1.93);
	stat_metric(stat, "CPUs utilised", 0, 1, 1, -1);
	stat_metric(stat, "a third", 0, 0, 0, 1.0 / 3);
	stat_warning(stat, "One run was disturbed.");
	STAT_CHECK(pm_vec_push(&stat->settings, setting) == 0);
}

/* B against A, of the program and of a function's calls. */
static inline void stat_differences(struct pm_stat *stat)
{
	struct pm_stat_difference difference = {
		.scope = -1,
		.runs = { 20, 19 },
		.median = { 1e6, 1.01e6 },
		.by = 1e4,
		.by_low = 5e3,
		.by_high = 1.5e4,
		.change = 0.01,
		.change_low = 0.005,
		.change_high = 0.015,
		.p = 1e-5,
		.p_corrected = 2e-5,
		.paired = true,
		.decides = true,
		.outcome = PM_STAT_MORE,
	};

	STAT_CHECK(pm_vec_push(&stat->differences, difference) == 0);
	difference = (struct pm_stat_difference){
		.scope = 0,
		.event = (uint32_t)stat->events.len,
		.median = { NAN, NAN },
		.by = NAN,
		.by_low = NAN,
		.by_high = NAN,
		.change = NAN,
		.change_low = NAN,
		.change_high = NAN,
		.p = NAN,
		.p_corrected = NAN,
		.state = PM_STAT_NOT_COUNTED,
	};
	STAT_CHECK(pm_vec_push(&stat->differences, difference) == 0);
}
