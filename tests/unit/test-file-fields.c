/* SPDX-License-Identifier: MIT */
/* What tracepoints add to a file: fields of samples, filters and groups of events. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "tests/file-compare.h"

#define HEADER_BEGIN                                                                  \
	"{\"type\":\"header\",\"format\":\"pmrec\",\"version\":1,\"pmrec\":\"0\","    \
	"\"created\":\"\",\"clock\":\"monotonic\",\"host\":{\"cpus\":1},\"command\":" \
	"[],\"events\":["
#define HEADER_END \
	"],\"options\":{\"call_graph\":\"fp\",\"stack_bytes\":0,\"ring_bytes\":0}}\n"
#define EVENT(id, more)                                                        \
	"{\"id\":" #id ",\"name\":\"c\",\"requested\":\"c\",\"actual\":\"c\"," \
	"\"modifiers\":\"\",\"unit\":\"ns\",\"freq\":1" more "}"
#define HEADER HEADER_BEGIN EVENT(0, "") HEADER_END
#define SAMPLE                                                                       \
	"{\"type\":\"sample\",\"time\":5,\"pid\":7,\"tid\":8,\"cpu\":0,\"event\":0," \
	"\"period\":1,\"stack\":null,\"stop\":\"no_regs\""

/* ---- writing ---------------------------------------------------------------------------- */

static const struct pm_file_event events[] = {
	{ 0, "s:a", "s:a", "s:a", "", "events", false, 1, "pid == 1 && comm ~ \"a*\"",
	  0 },
	{ 1, "s:b", "s:b", "s:b", "", "events", false, 1, NULL, 0 },
	{ 2, "s:c", "s:c", "s:c", "", "events", false, 1, NULL, 2 },
};

static int write_header(struct pm_file_writer *writer, const struct pm_file_event *of)
{
	return pm_file_write_header(
		writer, &(struct pm_file_header){ .version = PM_FILE_VERSION,
						  .pmrec = "0",
						  .created = "",
						  .clock = "monotonic",
						  .events = of,
						  .events_len = 3,
						  .options = { "none", 0, 0 } });
}

static int write_sample(struct pm_file_writer *writer, const struct pm_file_field *fields,
			size_t len)
{
	const struct pm_file_sample sample = { .time = 5,
					       .pid = 7,
					       .tid = 8,
					       .period = 1,
					       .stack = PM_FILE_NONE,
					       .stop = "no_regs",
					       .fields = fields,
					       .fields_len = len };

	return pm_file_write_sample(writer, &sample);
}

static const struct pm_file_field fields[] = {
	{ .name = "comm", .kind = PM_FILE_FIELD_TEXT, .text = "a \"b\"\n\xff" },
	{ .name = "zero", .kind = PM_FILE_FIELD_UNSIGNED, .number = 0 },
	{ .name = "large", .kind = PM_FILE_FIELD_UNSIGNED, .number = INT64_MAX },
	{ .name = "larger", .kind = PM_FILE_FIELD_UNSIGNED, .number = 1ull << 63 },
	{ .name = "largest", .kind = PM_FILE_FIELD_UNSIGNED, .number = UINT64_MAX },
	{ .name = "one", .kind = PM_FILE_FIELD_SIGNED, .negative_too = 1 },
	{ .name = "minus", .kind = PM_FILE_FIELD_SIGNED, .negative_too = -1 },
	{ .name = "least", .kind = PM_FILE_FIELD_SIGNED, .negative_too = INT64_MIN },
	{ .name = "", .kind = PM_FILE_FIELD_TEXT, .text = "" },
};

/* Opens a writer over @file, a temporary file. */
static struct pm_file_writer *writer_of(char *file)
{
	struct pm_file_writer *writer = NULL;
	int fd = mkstemp(file);

	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(pm_file_writer_open(&writer, file, NULL), 0);
	return writer;
}

static char *text_of(struct pm_file_writer *writer, const char *file)
{
	char *text = calloc(1, 1 << 16);
	FILE *from;

	assert_non_null(text);
	assert_int_equal(pm_file_writer_close(writer, NULL), 0);
	from = fopen(file, "rbe");
	assert_non_null(from);
	assert_true(fread(text, 1, (1 << 16) - 1, from) > 0);
	fclose(from);
	unlink(file);
	return text;
}

static void test_written_form(void **state)
{
	char file[] = "/tmp/pm-fields-XXXXXX";
	struct pm_file_writer *writer = writer_of(file);
	PM_AUTO_FREE char *text = NULL;

	assert_int_equal(write_header(writer, events), 0);
	assert_int_equal(write_sample(writer, fields, PM_ARRAY_LEN(fields)), 0);
	assert_int_equal(write_sample(writer, fields, 0), 0);
	text = text_of(writer, file);
	assert_non_null(strstr(text, "\"name\":\"s:a\",\"requested\":\"s:a\",\"actual\":"
				     "\"s:a\",\"modifiers\":\"\",\"unit\":\"events\","
				     "\"period\":1,\"filter\":\"pid == 1 && comm ~ "
				     "\\\"a*\\\"\"},{\"id\":1"));
	assert_non_null(strstr(text, "\"period\":1,\"group\":0},{\"id\":2"));
	assert_non_null(strstr(text, "\"period\":1}],"));
	assert_non_null(strstr(
		text,
		"\n" SAMPLE ",\"fields\":{\"comm\":\"a \\\"b\\\"\\u000a\xef\xbf\xbd\","
		"\"zero\":0,\"large\":9223372036854775807,"
		"\"larger\":\"0x8000000000000000\","
		"\"largest\":\"0xffffffffffffffff\",\"one\":1,\"minus\":-1,"
		"\"least\":-9223372036854775808,\"\":\"\"}}\n" SAMPLE "}\n"));
}

static void test_not_written(void **state)
{
	struct pm_file_event wrong[3];
	const struct pm_file_field twice[] = { fields[1], fields[2], fields[1] };
	const struct pm_file_field nameless[] = { { .kind = PM_FILE_FIELD_UNSIGNED } };
	const struct pm_file_field textless[] = { { "a", PM_FILE_FIELD_TEXT } };
	char file[] = "/tmp/pm-fields-XXXXXX";
	struct pm_file_writer *writer = writer_of(file);
	PM_AUTO_FREE char *text = NULL;

	memcpy(wrong, events, sizeof(wrong));
	wrong[1].leader = 2; /* it comes later */
	assert_int_equal(write_header(writer, wrong), -EINVAL);
	wrong[1].leader = 0;
	wrong[2].leader = 1; /* which is a member itself */
	assert_int_equal(write_header(writer, wrong), -EINVAL);
	assert_int_equal(write_header(writer, events), 0);
	assert_int_equal(write_sample(writer, twice, 3), -EINVAL);
	assert_int_equal(write_sample(writer, nameless, 1), -EINVAL);
	assert_int_equal(write_sample(writer, textless, 1), -EINVAL);
	text = text_of(writer, file);
	assert_null(strstr(text, "sample"));
}

/* ---- reading ---------------------------------------------------------------------------- */

static struct pm_file_reader *reader_of(const char *text)
{
	struct pm_file_reader *reader = NULL;
	struct pm_error err = { 0 };

	if (pm_file_reader_open_memory(&reader, text, strlen(text), &err) < 0)
		fail_msg("%s", err.text);
	return reader;
}

static void check_fields(const struct pm_file_sample *sample)
{
	static const char *const texts[] = { "a \"b\"\n\xef\xbf\xbd",
					     NULL,
					     NULL,
					     "0x8000000000000000",
					     "0xffffffffffffffff",
					     NULL,
					     NULL,
					     NULL,
					     "" };

	assert_int_equal(sample->fields_len, PM_ARRAY_LEN(fields));
	for (size_t i = 0; i < PM_ARRAY_LEN(fields); i++) {
		const struct pm_file_field *field = &sample->fields[i];

		assert_string_equal(field->name, fields[i].name);
		if (texts[i]) {
			assert_int_equal(field->kind, PM_FILE_FIELD_TEXT);
			assert_string_equal(field->text, texts[i]);
		} else {
			assert_int_equal(field->number, fields[i].number);
			assert_int_equal(field->kind, fields[i].negative_too < 0
							      ? PM_FILE_FIELD_SIGNED
							      : PM_FILE_FIELD_UNSIGNED);
		}
	}
}

static void test_read_back(void **state)
{
	char file[] = "/tmp/pm-fields-XXXXXX";
	struct pm_file_writer *writer = writer_of(file);
	struct pm_file_reader *reader;
	struct pm_file_record record;
	PM_AUTO_FREE char *text = NULL;

	assert_int_equal(write_header(writer, events), 0);
	assert_int_equal(write_sample(writer, fields, PM_ARRAY_LEN(fields)), 0);
	/* Without what needs escapes it is for the fast parser. */
	assert_int_equal(write_sample(writer, fields + 1, PM_ARRAY_LEN(fields) - 1), 0);
	assert_int_equal(write_sample(writer, NULL, 0), 0);
	text = text_of(writer, file);
	reader = reader_of(text);
	assert_int_equal(pm_file_reader_next(reader, &record, NULL), 1);
	assert_string_equal(record.header.events[0].filter, events[0].filter);
	assert_null(record.header.events[1].filter);
	for (uint32_t i = 0; i < 3; i++)
		assert_int_equal(record.header.events[i].leader, events[i].leader);
	assert_int_equal(pm_file_reader_next(reader, &record, NULL), 1);
	check_fields(&record.sample);
	assert_int_equal(pm_file_reader_next(reader, &record, NULL), 1);
	assert_int_equal(record.sample.fields_len, PM_ARRAY_LEN(fields) - 1);
	assert_string_equal(record.sample.stop, "no_regs");
	assert_int_equal(pm_file_reader_next(reader, &record, NULL), 1);
	assert_int_equal(record.sample.fields_len, 0);
	pm_file_reader_free(reader);
}

/* Counts of a group and branches, as written and as read. */
static void test_counts_and_branches(void **state)
{
	static const struct pm_file_event_count counts[] = { { 0, 7 }, { 1, INT64_MAX } };
	char file[] = "/tmp/pm-fields-XXXXXX";
	struct pm_file_writer *writer = writer_of(file);
	struct pm_file_branch branches[] = {
		{ 0, 1, PM_FILE_BRANCH_MISPREDICTED | 4 << PM_FILE_BRANCH_TYPE_SHIFT,
		  12 },
		{ 1, 0, 0, PM_FILE_NONE },
	};
	struct pm_file_sample sample = { .stack = PM_FILE_NONE,
					 .counts = counts,
					 .counts_len = 2,
					 .branches = branches,
					 .branches_len = 2 };
	struct pm_file_event_count wrong = { 3, 1 };
	struct pm_file_reader *reader;
	struct pm_file_record record;
	PM_AUTO_FREE char *text = NULL;
	uint32_t frame;

	assert_int_equal(write_header(writer, events), 0);
	assert_int_equal(pm_file_write_sample(writer, &sample), -EINVAL);
	for (uint64_t i = 0; i < 2; i++)
		assert_int_equal(
			pm_file_intern_frame(writer, PM_FILE_NONE, i, "branch", &frame),
			0);
	assert_int_equal(pm_file_write_sample(writer, &sample), 0);
	sample.counts = &wrong;
	sample.counts_len = 1;
	assert_int_equal(pm_file_write_sample(writer, &sample), -EINVAL);
	wrong = (struct pm_file_event_count){ 0, 1ull << 63 };
	assert_int_equal(pm_file_write_sample(writer, &sample), -ERANGE);
	text = text_of(writer, file);
	assert_non_null(strstr(text, ",\"stack\":null,\"counts\":[0,7,1,"
				     "9223372036854775807],\"branches\":[0,1,65,12,1,0,"
				     "0,null]}\n"));
	reader = reader_of(text);
	do
		assert_int_equal(pm_file_reader_next(reader, &record, NULL), 1);
	while (record.type != PM_FILE_SAMPLE);
	assert_int_equal(record.sample.counts_len, 2);
	for (size_t i = 0; i < 2; i++) {
		assert_int_equal(record.sample.counts[i].event, counts[i].event);
		assert_int_equal(record.sample.counts[i].count, counts[i].count);
	}
	assert_int_equal(record.sample.branches_len, 2);
	assert_memory_equal(record.sample.branches, branches, sizeof(branches));
	pm_file_reader_free(reader);
}

static void refused(const char *text, const char *because)
{
	struct pm_file_reader *reader = NULL;
	struct pm_file_record record;
	struct pm_error err = { 0 };
	int r = pm_file_reader_open_memory(&reader, text, strlen(text), &err);

	while (r >= 0 && (r = pm_file_reader_next(reader, &record, &err)) > 0)
		;
	assert_int_equal(r, -EBADMSG);
	if (!strstr(err.text, because))
		fail_msg("\"%s\" does not say \"%s\"", err.text, because);
	pm_file_reader_free(reader);
}

static void test_refused(void **state)
{
	refused(HEADER SAMPLE ",\"counts\":[0]}\n", "counts: expected 2 values for each");
	refused(HEADER SAMPLE ",\"counts\":{}}\n", "sample.counts: expected an array");
	refused(HEADER SAMPLE ",\"counts\":[0,null]}\n", "counts: expected a non-neg");
	refused(HEADER SAMPLE ",\"counts\":[1,5]}\n", "sample.counts: 1 is not defined");
	refused(HEADER SAMPLE ",\"branches\":[0,0,0]}\n", "expected 4 values for each");
	refused(HEADER SAMPLE ",\"branches\":[null,0,0,0]}\n", "expected a non-negative");
	refused(HEADER SAMPLE ",\"branches\":[0,0,0,null]}\n",
		"sample.branches: 0 is not defined yet");
	refused(HEADER SAMPLE ",\"fields\":[]}\n", "sample.fields: expected an object");
	refused(HEADER SAMPLE ",\"fields\":{\"a\":1.5}}\n",
		"sample.fields: a: expected an integer or a string");
	refused(HEADER SAMPLE ",\"fields\":{\"a\":null}}\n", "a: expected an integer");
	refused(HEADER SAMPLE ",\"fields\":{\"a\":{}}}\n", "a: expected an integer");
	refused(HEADER SAMPLE ",\"fields\":{\"a\":9223372036854775808}}\n", "as JSON");
	refused(HEADER SAMPLE ",\"fields\":{\"a\":1,\"b\":2,\"a\":1}}\n", "as JSON");
	refused(HEADER_BEGIN EVENT(0, ",\"filter\":7") HEADER_END,
		"header.events[0].filter: expected a string");
	refused(HEADER_BEGIN EVENT(0, ",\"group\":0") HEADER_END,
		"events[0].group: expected an event before it");
	refused(HEADER_BEGIN EVENT(0, ",\"group\":1") "," EVENT(1, "") HEADER_END,
		"events[0].group: expected an event before it");
	refused(HEADER_BEGIN EVENT(0, "") "," EVENT(1, ",\"group\":0") "," EVENT(
			2, ",\"group\":1") HEADER_END,
		"events[2].group: expected an event before it");
	refused(HEADER_BEGIN EVENT(0, ",\"group\":\"a\"") HEADER_END,
		"events[0].group: expected a non-negative");
}

static void test_nothing_is_nothing(void **state)
{
	struct pm_file_reader *reader = reader_of(
		HEADER_BEGIN EVENT(0, ",\"group\":null,\"filter\":null") HEADER_END SAMPLE
		",\"fields\":null}\n" SAMPLE ",\"fields\":{}}\n" SAMPLE
		",\"fields\":{\"a\":-5}}\n" SAMPLE
		",\"stop\":\"x\",\"fields\":{\"a\":-0}}\n");
	struct pm_file_record record;

	assert_int_equal(pm_file_reader_next(reader, &record, NULL), 1);
	assert_int_equal(record.header.events[0].leader, 0);
	assert_null(record.header.events[0].filter);
	for (size_t i = 0; i < 2; i++) {
		assert_int_equal(pm_file_reader_next(reader, &record, NULL), 1);
		assert_int_equal(record.sample.fields_len, 0);
	}
	assert_int_equal(pm_file_reader_next(reader, &record, NULL), 1);
	assert_int_equal(record.sample.fields[0].negative_too, -5);
	/* One key twice. */
	assert_int_equal(pm_file_reader_next(reader, &record, NULL), -EBADMSG);
	pm_file_reader_free(reader);
}

/* The fast parser takes nothing that jansson sees otherwise, whichever byte is changed. */
static void test_both_parsers_agree(void **state)
{
	static const char *const lines[] = {
		SAMPLE ",\"fields\":{\"prev_comm\":\"sh\",\"p\":-12,\"q\":0,\"q2\":12}}",
		SAMPLE ",\"fields\":{\"a\":9223372036854775807,\"aa\":\"\",\"aaa\":-7}}",
		SAMPLE ",\"fields\":{\"a\":-9223372036854775807}}",
		SAMPLE ",\"counts\":[0,17,1,9223372036854775807]}",
		SAMPLE ",\"fields\":{\"a\":1},\"branches\":[0,1,65,null,2,3,0,12]}",
	};
	static const char slow[] = SAMPLE ",\"fields\":{\"a\":-9223372036854775808}}";
	static const char with[] = "\"\\,:}]0195aAgx{[ \t\x7f\xc3-.e\n";

	assert_true(parsers_agree(slow, strlen(slow), NULL));
	for (size_t i = 0; i < PM_ARRAY_LEN(lines); i++) {
		size_t len = strlen(lines[i]);
		char changed[512];
		bool fast;

		assert_true(parsers_agree(lines[i], len, &fast));
		assert_true(fast);
		for (size_t at = 0; at < len; at++) {
			memcpy(changed, lines[i], len);
			for (size_t w = 0; w <= sizeof(with) - 1; w++) {
				changed[at] = with[w]; /* the NUL, too */
				assert_true(parsers_agree(changed, len, NULL));
			}
			memcpy(changed + at, lines[i] + at + 1, len - at - 1);
			assert_true(parsers_agree(changed, len - 1, NULL));
			memcpy(changed + at + 1, lines[i] + at, len - at);
			changed[at] = lines[i][at];
			assert_true(parsers_agree(changed, len + 1, NULL));
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_written_form),
		cmocka_unit_test(test_not_written),
		cmocka_unit_test(test_read_back),
		cmocka_unit_test(test_counts_and_branches),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_nothing_is_nothing),
		cmocka_unit_test(test_both_parsers_agree),
	};

	return cmocka_run_group_tests_name("file-fields", tests, NULL, NULL);
}
