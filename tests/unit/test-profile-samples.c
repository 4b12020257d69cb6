/* SPDX-License-Identifier: MIT */
/* The samples that a profile keeps on demand, with their times and fields. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "pm/profile.h"

/* Two events, one stack of one frame, and a thread that began at 1,000 ns. */
static const char head[] =
	"{\"type\":\"header\",\"format\":\"pmrec\",\"version\":1,\"pmrec\":\"0.1.0\","
	"\"created\":\"2024-05-06T07:08:09Z\",\"clock\":\"monotonic\",\"host\":{\"cpus\":2},"
	"\"command\":[\"prog\"],\"events\":["
	"{\"id\":0,\"name\":\"a\",\"requested\":\"a\",\"actual\":\"a\",\"modifiers\":\"\","
	"\"unit\":\"ns\",\"freq\":999},"
	"{\"id\":1,\"name\":\"b\",\"requested\":\"b\",\"actual\":\"b\",\"modifiers\":\"\","
	"\"unit\":\"events\",\"period\":1}],"
	"\"options\":{\"call_graph\":\"dwarf\",\"stack_bytes\":8,\"ring_bytes\":8}}\n"
	"{\"type\":\"thread\",\"pid\":1,\"tid\":1,\"comm\":\"prog\",\"time\":1000}\n"
	"{\"type\":\"frame\",\"id\":0,\"module\":null,\"address\":\"0x1\",\"how\":\"ip\"}\n"
	"{\"type\":\"stack\",\"id\":0,\"parent\":null,\"frames\":[0]}\n";

/* @more follows the key of the stack. */
static void put_sample(struct pm_str *file, unsigned time, const char *cpu,
		       unsigned event, unsigned period, const char *more)
{
	pm_str_printf(file,
		      "{\"type\":\"sample\",\"time\":%u,\"pid\":1,\"tid\":1,\"cpu\":%s,"
		      "\"event\":%u,\"period\":%u,\"stack\":0%s}\n",
		      time, cpu, event, period, more);
}

/* Not in order of time; the last one is before the thread's line. */
static struct pm_str mixed(void)
{
	struct pm_str file = { 0 };

	pm_str_puts(&file, head);
	put_sample(&file, 5000, "1", 0, 50, ",\"fields\":{\"n\":5,\"who\":\"five\"}");
	put_sample(&file, 2000, "0", 1, 20, "");
	put_sample(&file, 3000, "null", 0, 0,
		   ",\"stop\":\"truncated\",\"fields\":{\"who\":\"three\",\"low\":-3}");
	put_sample(&file, 3000, "0", 1, 31, ",\"fields\":{\"n\":3,\"who\":\"five\"}");
	put_sample(
		&file, 9000, "0", 0, 90,
		",\"fields\":{\"high\":\"0xffff888012345678\",\"n\":9223372036854775807}");
	return file;
}

static struct pm_profile *load(struct pm_str *file,
			       const struct pm_profile_options *options)
{
	struct pm_file_reader *reader;
	struct pm_profile *profile = NULL;
	struct pm_error err = { 0 };

	assert_false(file->failed);
	if (pm_file_reader_open_memory(&reader, file->data, file->len, &err) < 0 ||
	    pm_profile_load(&profile, reader, options, &err) < 0)
		fail_msg("%s", err.text);
	pm_file_reader_free(reader);
	pm_str_release(file);
	return profile;
}

static const struct pm_profile_field *field(const struct pm_profile *profile,
					    size_t sample, uint32_t at, const char *name)
{
	const struct pm_profile_sample *of = &profile->samples.data[sample];
	const struct pm_profile_field *found;

	assert_true(at < of->fields);
	assert_true(of->first_field + of->fields <= profile->fields.len);
	found = &profile->fields.data[of->first_field + at];
	assert_true(found->name < profile->field_names.len);
	assert_string_equal(profile->field_names.data[found->name], name);
	return found;
}

/* ---- tests --------------------------------------------------------------------------- */

static void nothing_is_kept_unasked(void **state)
{
	const struct pm_profile_options options[] = {
		{ 0 },
		{ .keep_fields = true },
		{ .keep_fields = true, .time_set = true, .time_to = 1 },
	};

	for (size_t i = 0; i < PM_ARRAY_LEN(options); i++) {
		struct pm_str file = mixed();
		struct pm_profile *profile = load(&file, &options[i]);

		assert_int_equal(profile->samples.len, 0);
		assert_null(profile->samples.data);
		assert_int_equal(profile->fields.len, 0);
		assert_int_equal(profile->events.data[0].total.samples, 3);
		assert_int_equal(profile->events.data[1].total.period, 51);
		pm_profile_free(profile);
	}
}

static void samples_are_in_order_of_time(void **state)
{
	const struct pm_profile_options options = { .keep_samples = true };
	static const struct {
		uint64_t time_ns, period;
		uint32_t cpu, event;
	} want
		[] = {
			{ 1000, 20, 0, 1 },
			{ 2000, 1, PM_FILE_NONE, 0 }, /* a sample without a period still is one */
			{ 2000, 31, 0, 1 },
			{ 4000, 50, 1, 0 },
			{ 8000, 90, 0, 0 },
		};
	struct pm_str file = mixed();
	struct pm_profile *profile = load(&file, &options);

	assert_int_equal(profile->info.start_ns, 1000);
	assert_int_equal(profile->samples.len, PM_ARRAY_LEN(want));
	for (size_t i = 0; i < PM_ARRAY_LEN(want); i++) {
		const struct pm_profile_sample *sample = &profile->samples.data[i];
		const struct pm_profile_cell *cell;

		assert_true(sample->cell < profile->cells.len);
		cell = &profile->cells.data[sample->cell];
		assert_int_equal(sample->time_ns, want[i].time_ns);
		/* Two samples of one time: which one is first is left open. */
		if (i == 1 || i == 2)
			continue;
		assert_int_equal(sample->period, want[i].period);
		assert_int_equal(sample->cpu, want[i].cpu);
		assert_int_equal(cell->event, want[i].event);
		assert_null(profile->stops.data[cell->stop]);
	}
	for (size_t i = 1; i < 3; i++) {
		const struct pm_profile_sample *sample = &profile->samples.data[i];
		const struct pm_profile_cell *cell = &profile->cells.data[sample->cell];
		size_t which = cell->event == 0 ? 1 : 2;

		assert_int_equal(sample->period, want[which].period);
		assert_int_equal(sample->cpu, want[which].cpu);
	}
	assert_int_not_equal(profile->samples.data[1].cell,
			     profile->samples.data[2].cell);
	assert_int_equal(profile->fields.len, 0);
	pm_profile_free(profile);
}

static void a_range_keeps_what_is_in_it(void **state)
{
	/* Both ends are in it: 2,000 to 4,000 ns of 8,000. */
	const struct pm_profile_options options[] = {
		{ .keep_samples = true,
		  .time_set = true,
		  .time_percent = true,
		  .time_from = 25,
		  .time_to = 50 },
		{ .keep_samples = true,
		  .time_set = true,
		  .time_from = 2e-6,
		  .time_to = 4e-6 },
	};

	for (size_t i = 0; i < PM_ARRAY_LEN(options); i++) {
		struct pm_str file = mixed();
		struct pm_profile *profile = load(&file, &options[i]);

		assert_int_equal(profile->samples.len, 3);
		assert_int_equal(profile->samples.data[0].time_ns, 2000);
		assert_int_equal(profile->samples.data[2].time_ns, 4000);
		assert_int_equal(profile->events.data[0].total.samples, 2);
		assert_int_equal(profile->events.data[0].total.period, 51);
		assert_int_equal(profile->events.data[1].total.samples, 1);
		assert_int_equal(profile->info.read_samples, 5);
		pm_profile_free(profile);
	}
}

/* A file that says that its first thread began after a sample of it. */
static void what_is_before_the_start_is_at_it(void **state)
{
	const struct pm_profile_options options = { .keep_samples = true };
	struct pm_str file = { 0 };
	struct pm_profile *profile;

	pm_str_puts(&file, head);
	put_sample(&file, 500, "0", 0, 1, "");
	put_sample(&file, 1500, "0", 0, 1, "");
	profile = load(&file, &options);
	assert_int_equal(profile->info.start_ns, 500);
	assert_int_equal(profile->samples.data[0].time_ns, 0);
	assert_int_equal(profile->samples.data[1].time_ns, 1000);
	pm_profile_free(profile);
}

static void fields_stay_with_their_samples(void **state)
{
	const struct pm_profile_options options = { .keep_samples = true,
						    .keep_fields = true };
	struct pm_str file = mixed();
	struct pm_profile *profile = load(&file, &options);
	size_t truncated = profile->samples.data[1].cpu == PM_FILE_NONE ? 1 : 2;
	const struct pm_profile_field *at, *other;

	assert_int_equal(profile->samples.len, 5);
	assert_int_equal(profile->field_names.len, 4); /* n, who, low, high */
	assert_int_equal(profile->samples.data[0].fields, 0);

	assert_int_equal(profile->samples.data[truncated].fields, 2);
	at = field(profile, truncated, 0, "who");
	assert_int_equal(at->kind, PM_FILE_FIELD_TEXT);
	assert_string_equal(at->text, "three");
	at = field(profile, truncated, 1, "low");
	assert_int_equal(at->kind, PM_FILE_FIELD_SIGNED);
	assert_int_equal(at->negative_too, -3);

	at = field(profile, 3 - truncated, 0, "n");
	assert_int_equal(at->kind, PM_FILE_FIELD_UNSIGNED);
	assert_int_equal(at->number, 3);
	other = field(profile, 3 - truncated, 1, "who");
	at = field(profile, 3, 1, "who");
	assert_string_equal(at->text, "five");
	assert_ptr_equal(at->text, other->text); /* equal texts are one */

	at = field(profile, 4, 0, "high");
	assert_string_equal(at->text, "0xffff888012345678");
	at = field(profile, 4, 1, "n");
	assert_int_equal(at->number, INT64_MAX);
	pm_profile_free(profile);
}

/* More than a few, so that whichever sort there is has something to do. */
static void many_samples_in_any_order(void **state)
{
	enum {
		SAMPLES = 5000
	};
	const struct pm_profile_options options = { .keep_samples = true,
						    .keep_fields = true };
	struct pm_str file = { 0 };
	struct pm_profile *profile;
	uint64_t period = 0;

	pm_str_puts(&file, head);
	for (unsigned i = 0; i < SAMPLES; i++) {
		char fields[64];
		unsigned time = 1000 + i * 2741 % SAMPLES;

		snprintf(fields, sizeof(fields), ",\"fields\":{\"time\":%u}", time);
		put_sample(&file, time, i % 3 ? "0" : "1", i % 2, 1 + i % 7, fields);
		period += 1 + i % 7;
	}
	profile = load(&file, &options);
	assert_int_equal(profile->samples.len, SAMPLES);
	for (size_t i = 0; i < SAMPLES; i++) {
		const struct pm_profile_sample *sample = &profile->samples.data[i];

		assert_int_equal(sample->time_ns, i);
		assert_int_equal(field(profile, i, 0, "time")->number, 1000 + i);
		period -= sample->period;
	}
	assert_int_equal(period, 0);
	pm_profile_free(profile);
}

/* What a counted event weighs is what it counted since the sample before, in its thread on its
 * CPU; where CPUs are sampled, on its CPU. */
static struct pm_profile *counted(const char *target)
{
	struct pm_str file = { 0 };
	const char *split = strstr(head, "\"command\"");

	pm_str_append(&file, head, (size_t)(split - head));
	pm_str_printf(&file, "\"target\":%s,", target);
	/* The second event is the first one's to count. */
	pm_str_puts(&file, "\"command\":[\"prog\"],\"events\":["
			   "{\"id\":0,\"name\":\"a\",\"requested\":\"a:S\",\"actual\":"
			   "\"a:S\",\"modifiers\":\"S\",\"unit\":\"ns\",\"freq\":999},"
			   "{\"id\":1,\"name\":\"b\",\"requested\":\"b:S\",\"actual\":"
			   "\"b:S\",\"modifiers\":\"S\",\"unit\":\"events\",\"freq\":999,"
			   "\"group\":0}],");
	pm_str_puts(&file, strstr(head, "\"options\""));
	put_sample(&file, 2000, "0", 0, 10, ",\"counts\":[0,10,1,100]");
	put_sample(&file, 3000, "1", 0, 10, ",\"counts\":[0,10,1,7]");
	put_sample(&file, 4000, "0", 0, 10, ",\"counts\":[0,20,1,100]");
	put_sample(&file, 5000, "0", 0, 10, ",\"counts\":[0,30,1,130]");
	pm_str_puts(&file,
		    "{\"type\":\"sample\",\"time\":6000,\"pid\":1,\"tid\":2,\"cpu\":"
		    "0,\"event\":0,\"period\":10,\"stack\":0,\"counts\":[0,5,1,140]}\n");
	return load(&file, NULL);
}

static void counts_of_a_group_are_weights(void **state)
{
	static const struct {
		const char *target;
		uint64_t period, samples;
	} cases[] = {
		/* 100 + 7 + 30, and 140 of another thread; or 10 more on the same CPU. */
		{ "null", 277, 4 },
		{ "\"-p 1\"", 277, 4 },
		{ "\"-a\"", 147, 4 },
	};

	for (size_t i = 0; i < PM_ARRAY_LEN(cases); i++) {
		struct pm_profile *profile = counted(cases[i].target);

		assert_false(profile->events.data[0].counted);
		assert_true(profile->events.data[1].counted);
		assert_int_equal(profile->events.data[0].total.period, 50);
		assert_int_equal(profile->events.data[0].total.samples, 5);
		assert_int_equal(profile->events.data[1].total.period, cases[i].period);
		assert_int_equal(profile->events.data[1].total.samples, cases[i].samples);
		assert_int_equal(profile->info.read_samples, 5);
		pm_profile_free(profile);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_is_kept_unasked),
		cmocka_unit_test(samples_are_in_order_of_time),
		cmocka_unit_test(a_range_keeps_what_is_in_it),
		cmocka_unit_test(what_is_before_the_start_is_at_it),
		cmocka_unit_test(fields_stay_with_their_samples),
		cmocka_unit_test(many_samples_in_any_order),
		cmocka_unit_test(counts_of_a_group_are_weights),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
