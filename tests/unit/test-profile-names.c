/* SPDX-License-Identifier: MIT */
/* Names given to frames after the recording, and profiles that are looked at as they grow. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "pm/profile.h"

static const char header[] =
	"{\"type\":\"header\",\"format\":\"pmrec\",\"version\":1,\"pmrec\":\"0.1.0\","
	"\"created\":\"2024-05-06T07:08:09Z\",\"clock\":\"monotonic\","
	"\"host\":{\"hostname\":\"h\",\"kernel\":\"k\",\"arch\":\"x86_64\",\"cpus\":2,"
	"\"cpu_model\":null,\"virt\":null},\"command\":[\"prog\"],\"events\":["
	"{\"id\":0,\"name\":\"cycles\",\"requested\":\"cycles:u\",\"actual\":\"cycles:u\","
	"\"modifiers\":\"u\",\"unit\":\"events\",\"freq\":999}],"
	"\"options\":{\"call_graph\":\"dwarf\",\"stack_bytes\":8,\"ring_bytes\":8}}\n";

static const char footer[] =
	"{\"type\":\"footer\",\"samples\":8,\"lost\":0,\"throttled\":0,\"truncated\":0,"
	"\"stops\":{},\"duration_ns\":100000,\"cpu_ns\":100,\"exit\":{\"code\":0},"
	"\"events\":[{\"id\":0,\"samples\":8,\"period\":8,\"lost\":0}]}\n";

/*
 * Modules a (with a build-id, frames 0 and 1, a third at the address of 0 found in another
 * way), b (frame 3, named by the file), and no module (frame 4). Three samples in 0, one in 1
 * called by 0, two in b, one in none, one without stack.
 */
static const char modules[] =
	"{\"type\":\"module\",\"id\":0,\"path\":\"/x/a\",\"build_id\":\"aabb\",\"kind\":\"file\"}\n"
	"{\"type\":\"module\",\"id\":1,\"path\":\"/x/b\",\"build_id\":null,\"kind\":\"file\"}\n"
	"{\"type\":\"thread\",\"pid\":5,\"tid\":5,\"comm\":\"c\",\"time\":100}\n"
	"{\"type\":\"frame\",\"id\":0,\"module\":0,\"address\":\"0x20\",\"how\":\"leaf\"}\n"
	"{\"type\":\"frame\",\"id\":1,\"module\":0,\"address\":\"0x10\",\"how\":\"leaf\"}\n"
	"{\"type\":\"frame\",\"id\":2,\"module\":0,\"address\":\"0x20\",\"how\":\"cfi\"}\n"
	"{\"type\":\"frame\",\"id\":3,\"module\":1,\"address\":\"0x30\",\"how\":\"leaf\"}\n"
	"{\"type\":\"frame\",\"id\":4,\"module\":null,\"address\":\"0x40\",\"how\":\"leaf\"}\n"
	"{\"type\":\"stack\",\"id\":0,\"parent\":null,\"frames\":[0]}\n"
	"{\"type\":\"stack\",\"id\":1,\"parent\":null,\"frames\":[2,1]}\n"
	"{\"type\":\"stack\",\"id\":3,\"parent\":null,\"frames\":[3]}\n"
	"{\"type\":\"stack\",\"id\":4,\"parent\":null,\"frames\":[4]}\n";

static const char symbol_b[] =
	"{\"type\":\"symbol\",\"frame\":3,\"functions\":[{\"name\":"
	"\"from_file\",\"file\":null}]}\n";

static void put_samples(struct pm_str *file, unsigned count, const char *stack)
{
	for (unsigned i = 0; i < count; i++)
		pm_str_printf(
			file,
			"{\"type\":\"sample\",\"time\":%zu,\"pid\":5,\"tid\":5,\"cpu\":0,"
			"\"event\":0,\"period\":1,\"stack\":%s}\n",
			200 + file->len, stack);
}

static void put_all(struct pm_str *file)
{
	pm_str_puts(file, header);
	pm_str_puts(file, modules);
	put_samples(file, 3, "0");
	put_samples(file, 1, "2");
	put_samples(file, 2, "3");
	put_samples(file, 1, "4");
	put_samples(file, 1, "null");
	pm_str_puts(file, symbol_b);
}

/* ---- a symbolizer that notes what it is asked ------------------------------------------- */

struct asked {
	struct pm_str text;
	bool with_file;
	bool starts; /* it knows only where functions begin: at 0x10 all of them */
	int code;
};

static int symbolize(void *context, const struct pm_profile_info *info,
		     const struct pm_profile_nameless *nameless, size_t len,
		     pm_profile_name_fn name, void *to)
{
	struct asked *asked = context;

	for (size_t i = 0; i < len; i++) {
		pm_str_printf(&asked->text, "%s%s self %llu:", nameless[i].module->path,
			      nameless[i].named ? " named" : "",
			      (unsigned long long)nameless[i].self.samples);
		for (size_t j = 0; j < nameless[i].addresses_len; j++) {
			unsigned address = (unsigned)nameless[i].addresses[j];
			char text[32];
			struct pm_file_function functions[] = {
				{ .name = "inlined", .file = "/src/i.h", .line = 7 },
				{ .name = text },
			};
			bool inlined = asked->with_file;
			int r;

			snprintf(text, sizeof(text), "given_%x", address);
			if (asked->starts)
				functions[1] = (struct pm_file_function){ .start = 0x10 };
			pm_str_printf(&asked->text, " %x", address);
			r = name(to, i, j, functions + !inlined, 1 + inlined);
			assert_int_equal(r, 0);
		}
		pm_str_puts(&asked->text, "\n");
	}
	return asked->code;
}

static uint64_t self_of(const struct pm_profile *profile, const char *function)
{
	struct pm_view *view = NULL;
	struct pm_table table;
	uint64_t samples = 0;

	assert_int_equal(pm_view_new(&view, profile, 0, NULL, NULL), 0);
	assert_int_equal(pm_table_init(&table, view, PM_KEY_FUNCTION, false), 0);
	for (size_t i = 0; i < table.rows.len; i++)
		if (strcmp(profile->functions.data[table.rows.data[i].id].name,
			   function) == 0)
			samples += table.rows.data[i].self.samples;
	pm_table_release(&table);
	pm_view_free(view);
	return samples;
}

static int load(struct pm_profile **ret, const struct pm_str *file,
		const struct pm_profile_options *options)
{
	struct pm_file_reader *reader;
	int r;

	assert_false(file->failed);
	assert_int_equal(pm_file_reader_open_memory(&reader, file->data, file->len, NULL),
			 0);
	r = pm_profile_load(ret, reader, options, NULL);
	pm_file_reader_free(reader);
	return r;
}

/* ---- tests -------------------------------------------------------------------------------- */

static void test_only_the_nameless(void **state)
{
	struct asked asked = { 0 };
	const struct pm_profile_symbolizer symbolizer = { .context = &asked,
							  .symbolize = symbolize };
	const struct pm_profile_options options = { .symbolizer = &symbolizer };
	struct pm_str file = { 0 };
	struct pm_profile *profile = NULL;

	put_all(&file);
	pm_str_puts(&file, footer);
	assert_int_equal(load(&profile, &file, &options), 0);
	assert_string_equal(asked.text.data, "/x/a self 4: 10 20\n");
	assert_int_equal(self_of(profile, "given_20"), 3);
	assert_int_equal(self_of(profile, "given_10"), 1);
	assert_int_equal(self_of(profile, "from_file"), 2);
	assert_int_equal(self_of(profile, "[unknown]"), 1);
	assert_int_equal(self_of(profile, "[no stack]"), 1);
	/* The frame of the same address that was found in another way has it, too. */
	assert_string_equal(
		profile->functions.data[pm_profile_level_function(profile, 1, 0)].name,
		"given_20");
	assert_int_equal(profile->info.symbols, 1);
	assert_int_equal(profile->info.found, 3);
	pm_profile_free(profile);
	pm_str_release(&asked.text);
	pm_str_release(&file);
}

static void test_lines_too(void **state)
{
	struct asked asked = { .with_file = true };
	const struct pm_profile_symbolizer symbolizer = { .context = &asked,
							  .lines = true,
							  .symbolize = symbolize };
	struct pm_profile_options options = { .symbolizer = &symbolizer };
	struct pm_str file = { 0 };
	struct pm_profile *profile = NULL;

	/* Of a recording that was cut, so may have been the names of b. */
	put_all(&file);
	assert_int_equal(load(&profile, &file, &options), 0);
	assert_string_equal(asked.text.data, "/x/a self 4: 10 20\n/x/b self 2: 30\n");
	pm_profile_free(profile);
	pm_str_clear(&asked.text);
	pm_str_puts(&file, footer);
	assert_int_equal(load(&profile, &file, &options), 0);
	assert_string_equal(asked.text.data,
			    "/x/a self 4: 10 20\n/x/b named self 2: 30\n");
	assert_int_equal(self_of(profile, "inlined"), 6);
	assert_int_equal(self_of(profile, "from_file"), 0);
	pm_profile_free(profile);

	/* Without inlined functions the one that contains them has the time. */
	options.no_inlines = true;
	assert_int_equal(load(&profile, &file, &options), 0);
	assert_int_equal(self_of(profile, "given_30"), 2);
	pm_profile_free(profile);

	/* A name that says no more than the file's does not replace it. */
	asked.with_file = false;
	assert_int_equal(load(&profile, &file, &options), 0);
	assert_int_equal(self_of(profile, "from_file"), 2);
	assert_int_equal(self_of(profile, "given_20"), 3);
	pm_profile_free(profile);
	pm_str_release(&asked.text);
	pm_str_release(&file);
}

static const char starts[] =
	"{\"type\":\"module\",\"id\":2,\"path\":\"/x/a\",\"build_id\":\"ccdd\",\"kind\":\"file\"}\n"
	"{\"type\":\"frame\",\"id\":5,\"module\":2,\"address\":\"0x22\",\"how\":\"leaf\"}\n"
	"{\"type\":\"frame\",\"id\":6,\"module\":0,\"address\":\"0x50\",\"how\":\"leaf\"}\n"
	"{\"type\":\"stack\",\"id\":5,\"parent\":null,\"frames\":[5]}\n"
	"{\"type\":\"stack\",\"id\":6,\"parent\":null,\"frames\":[6]}\n"
	"{\"type\":\"symbol\",\"frame\":0,\"functions\":[{\"start\":\"0x18\"}]}\n"
	"{\"type\":\"symbol\",\"frame\":1,\"functions\":[{\"start\":\"0x10\"}]}\n"
	"{\"type\":\"symbol\",\"frame\":2,\"functions\":[{\"start\":\"0x18\"}]}\n"
	"{\"type\":\"symbol\",\"frame\":4,\"functions\":[{\"start\":\"0x38\"}]}\n"
	"{\"type\":\"symbol\",\"frame\":5,\"functions\":[{\"start\":\"0x18\"}]}\n"
	"{\"type\":\"symbol\",\"frame\":6,\"functions\":[{\"name\":null}]}\n";

static size_t functions_called(const struct pm_profile *profile, const char *name,
			       uint64_t start)
{
	size_t found = 0;

	for (size_t i = 0; i < profile->functions.len; i++) {
		const struct pm_profile_function *function = &profile->functions.data[i];

		if (strcmp(function->name, name) != 0)
			continue;
		assert_true(function->unknown);
		assert_int_equal(function->start, start);
		found++;
	}
	return found;
}

static uint64_t unknown_of(const struct pm_profile *profile)
{
	struct pm_view *view = NULL;
	uint64_t samples;

	assert_int_equal(pm_view_new(&view, profile, 0, NULL, NULL), 0);
	samples = view->unknown.samples;
	pm_view_free(view);
	return samples;
}

/* Functions without a name are told apart by where they begin, and have none all the same. */
static void test_starts(void **state)
{
	struct asked asked = { .starts = true };
	const struct pm_profile_symbolizer symbolizer = { .context = &asked,
							  .symbolize = symbolize };
	struct pm_profile_options options = { 0 };
	struct pm_str file = { 0 };
	struct pm_profile *profile = NULL;

	put_all(&file);
	pm_str_puts(&file, starts);
	put_samples(&file, 4, "5");
	put_samples(&file, 5, "6");
	pm_str_puts(&file, footer);
	assert_int_equal(load(&profile, &file, &options), 0);
	assert_int_equal(self_of(profile, "[0x18]"), 3 + 4);
	assert_int_equal(self_of(profile, "[0x10]"), 1);
	assert_int_equal(self_of(profile, "[unknown]"), 5 + 1);
	/* Two builds of one file: not the same function. In no file there are none. */
	assert_int_equal(functions_called(profile, "[0x18]", 0x18), 2);
	assert_int_equal(functions_called(profile, "[0x10]", 0x10), 1);
	assert_int_equal(functions_called(profile, "[unknown]", 0), 2);
	assert_int_equal(unknown_of(profile), 15); /* with the one without a stack */
	/* That is no symbol. */
	assert_int_equal(profile->info.symbols, 1);
	pm_profile_free(profile);

	/* Who knows no more than the file is not believed more. */
	options.symbolizer = &symbolizer;
	assert_int_equal(load(&profile, &file, &options), 0);
	assert_string_equal(asked.text.data, "/x/a self 9: 10 20 50\n/x/a self 4: 22\n");
	assert_int_equal(self_of(profile, "[0x18]"), 3 + 4);
	assert_int_equal(self_of(profile, "[0x10]"), 1 + 5);
	assert_int_equal(profile->info.found, 0);
	pm_profile_free(profile);
	asked.starts = false;
	assert_int_equal(load(&profile, &file, &options), 0);
	assert_int_equal(self_of(profile, "given_20"), 3);
	assert_int_equal(functions_called(profile, "[0x18]", 0x18), 2);
	assert_int_equal(self_of(profile, "[0x18]"), 0);
	pm_profile_free(profile);

	options = (struct pm_profile_options){ .no_starts = true };
	assert_int_equal(load(&profile, &file, &options), 0);
	assert_int_equal(self_of(profile, "[unknown]"), 14);
	assert_int_equal(profile->functions.data[0].start, 0);
	assert_int_equal(unknown_of(profile), 15);
	pm_profile_free(profile);
	pm_str_release(&asked.text);
	pm_str_release(&file);
}

static void test_failure(void **state)
{
	struct asked asked = { .code = -EIO };
	const struct pm_profile_symbolizer symbolizer = { .context = &asked,
							  .symbolize = symbolize };
	const struct pm_profile_options options = { .symbolizer = &symbolizer };
	struct pm_str file = { 0 };
	struct pm_profile *profile = NULL;

	put_all(&file);
	assert_int_equal(load(&profile, &file, &options), -EIO);
	assert_null(profile);
	pm_str_release(&asked.text);
	pm_str_release(&file);
}

/* Looks after each record; what is seen at the end is what loading gives. */
static void test_stream(void **state)
{
	struct asked asked = { 0 };
	const struct pm_profile_symbolizer symbolizer = { .context = &asked,
							  .symbolize = symbolize };
	const struct pm_profile_options options = { .symbolizer = &symbolizer };
	struct pm_str file = { 0 };
	struct pm_file_reader *reader;
	struct pm_file_record record;
	struct pm_profile_stream *stream;
	const struct pm_profile *profile = NULL;
	struct pm_profile *whole = NULL;
	uint64_t samples = 0;

	/* Twice, so that samples without a stack come before other stacks, too. */
	put_all(&file);
	pm_str_puts(&file,
		    "{\"type\":\"frame\",\"id\":5,\"module\":0,\"address\":\"0x50\","
		    "\"how\":\"leaf\"}\n"
		    "{\"type\":\"stack\",\"id\":5,\"parent\":0,\"frames\":[5]}\n");
	put_samples(&file, 2, "5");
	put_samples(&file, 3, "null");
	pm_str_puts(&file, "{\"type\":\"symbol\",\"frame\":0,\"functions\":[{\"name\":"
			   "\"recorded\",\"file\":null}]}\n");
	pm_str_puts(&file, footer);
	assert_int_equal(pm_file_reader_open_memory(&reader, file.data, file.len, NULL),
			 0);
	assert_int_equal(pm_profile_stream_new(&stream, &options, NULL), 0);
	while (pm_file_reader_next(reader, &record, NULL) > 0) {
		assert_int_equal(pm_profile_stream_add(stream, &record, NULL), 0);
		samples += record.type == PM_FILE_SAMPLE;
		assert_int_equal(
			pm_profile_stream_look(stream, PM_PROFILE_GROWS, &profile, NULL),
			0);
		if (profile->events.len > 0)
			assert_int_equal(profile->events.data[0].total.samples, samples);
	}
	assert_int_equal(pm_profile_stream_look(stream, PM_PROFILE_WHOLE, &profile, NULL),
			 0);
	/* Each address is asked for once. */
	assert_string_equal(asked.text.data,
			    "/x/a self 0: 20\n/x/a self 0: 10\n/x/a self 0: 20\n"
			    "/x/b self 0: 30\n/x/a self 0: 50\n");
	assert_int_equal(load(&whole, &file, &options), 0);
	assert_int_equal(profile->events.data[0].total.samples, 13);
	assert_int_equal(whole->events.data[0].total.samples, 13);
	for (size_t i = 0; i < 6; i++) {
		static const char *const names[] = { "recorded",  "given_10",
						     "given_50",  "from_file",
						     "[unknown]", "[no stack]" };

		assert_int_equal(self_of(profile, names[i]), self_of(whole, names[i]));
		assert_true(self_of(whole, names[i]) > 0);
	}
	assert_int_equal(profile->stacks.len, whole->stacks.len);
	assert_int_equal(profile->frames.len, whole->frames.len);
	assert_int_equal(profile->cells.len, whole->cells.len);
	assert_false(profile->info.cut);
	assert_int_equal(profile->info.duration_ns, whole->info.duration_ns);
	assert_int_equal(profile->info.end_ns, whole->info.end_ns);
	assert_int_equal(profile->info.start_ns, whole->info.start_ns);
	pm_profile_free(whole);
	pm_profile_stream_free(stream);
	pm_file_reader_free(reader);
	pm_str_release(&asked.text);
	pm_str_release(&file);
}

static void test_stream_keeps_no_samples(void **state)
{
	const struct pm_profile_options kept = { .keep_samples = true };
	const struct pm_profile_options part = { .time_set = true };
	struct pm_profile_stream *stream;

	assert_int_equal(pm_profile_stream_new(&stream, &kept, NULL), -ENOTSUP);
	assert_int_equal(pm_profile_stream_new(&stream, &part, NULL), -ENOTSUP);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_only_the_nameless),
		cmocka_unit_test(test_lines_too),
		cmocka_unit_test(test_starts),
		cmocka_unit_test(test_failure),
		cmocka_unit_test(test_stream),
		cmocka_unit_test(test_stream_keeps_no_samples),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
