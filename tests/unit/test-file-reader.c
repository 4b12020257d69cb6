/* SPDX-License-Identifier: MIT */
#include "tests/file-compare.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <sys/mman.h>

#include <cmocka.h>

#define EVENT(id)                                                                 \
	"{\"id\":" id ",\"name\":\"c\",\"requested\":\"c:u\",\"actual\":\"c:u\"," \
	"\"modifiers\":\"u\",\"unit\":\"ns\",\"freq\":99}"
#define HEADER_END                                                                  \
	",\"host\":{\"cpus\":null},\"command\":[\"ls\",\"-l\"],\"events\":[" EVENT( \
		"0") "],\"options\":{\"call_graph\":\"fp\",\"stack_bytes\":0,"      \
		     "\"ring_bytes\":4096}}\n"
#define HEADER                                                                       \
	"{\"type\":\"header\",\"format\":\"pmrec\",\"version\":1,\"pmrec\":\"0.1\"," \
	"\"created\":\"2024-01-01T00:00:00Z\",\"clock\":\"monotonic\"" HEADER_END
#define MODULE "{\"type\":\"module\",\"id\":0,\"path\":\"/bin/ls\",\"kind\":\"file\"}\n"
#define FRAMES                                                              \
	"{\"type\":\"frame\",\"id\":0,\"module\":0,\"address\":\"0x1f\","   \
	"\"how\":\"ip\"}\n"                                                 \
	"{\"type\":\"frame\",\"id\":1,\"module\":null,\"address\":\"0x2\"," \
	"\"how\":\"cfi\"}\n"
#define STACKS "{\"type\":\"stack\",\"id\":0,\"parent\":null,\"frames\":[1,0]}\n"
#define GOOD   HEADER MODULE FRAMES STACKS
#define SAMPLE                                                                       \
	"{\"type\":\"sample\",\"time\":5,\"pid\":7,\"tid\":8,\"cpu\":0,\"event\":0," \
	"\"period\":100,\"stack\":1}\n"
#define FOOTER                                                                      \
	"{\"type\":\"footer\",\"samples\":1,\"lost\":0,\"throttled\":0,"            \
	"\"truncated\":0,\"stops\":{\"root\":1},\"duration_ns\":9,\"cpu_ns\":null," \
	"\"exit\":{\"code\":3},\"events\":[{\"id\":0,\"samples\":1,\"period\":100," \
	"\"lost\":null,\"counted\":102,\"others\":2}]}\n"

static struct pm_file_reader *open_text(const char *text, size_t len)
{
	struct pm_file_reader *reader = NULL;
	struct pm_error err = { 0 };

	if (pm_file_reader_open_memory(&reader, text, len, &err) != 0)
		fail_msg("%s", err.text);
	return reader;
}

/* Reads to the end and counts. */
static int drain(struct pm_file_reader *reader, size_t *count, struct pm_error *err)
{
	struct pm_file_record record;
	int result;

	*count = 0;
	while ((result = pm_file_reader_next(reader, &record, err)) > 0)
		++*count;
	return result;
}

static void next(struct pm_file_reader *reader, struct pm_file_record *record,
		 enum pm_file_type type, uint64_t line)
{
	struct pm_error err = { 0 };

	if (pm_file_reader_next(reader, record, &err) != 1)
		fail_msg("line %lld: %s", (long long)err.offset, err.text);
	assert_int_equal(record->type, type);
	assert_int_equal(record->line, line);
}

/* ---- good files ---------------------------------------------------------------------- */

static void records_hold_what_the_lines_say(void **state)
{
	static const char text[] =
		GOOD "{\"type\":\"thread\",\"pid\":7,\"tid\":8,\"comm\":\"l\\u0073\","
		     "\"time\":4}\n" SAMPLE
		     "{\"type\":\"sample\",\"time\":6,\"pid\":null,\"tid\":null,"
		     "\"cpu\":null,\"event\":0,\"period\":0,\"stack\":null,"
		     "\"stop\":\"no-memory\"}\n"
		     "{\"type\":\"symbol\",\"frame\":1,\"functions\":["
		     "{\"name\":\"f\",\"file\":\"f.c\",\"line\":3,\"start\":null},"
		     "{\"name\":null,\"start\":\"0x1f60\"},{}]}\n"
		     "{\"type\":\"lost\",\"time\":7,\"cpu\":1,\"count\":12}\n"
		     "{\"type\":\"note\",\"text\":\"\xc3\xa4\"}\n"
		     "{\"type\":\"title\",\"pid\":7,\"time\":8,\"text\":\"l: \\u001b\"}\n"
		     "{\"type\":\"title\",\"pid\":7,\"time\":9,\"text\":null}\n" FOOTER;
	struct pm_file_reader *reader = open_text(text, strlen(text));
	struct pm_file_record r;

	next(reader, &r, PM_FILE_HEADER, 1);
	assert_int_equal(r.header.version, 1);
	assert_string_equal(r.header.pmrec, "0.1");
	assert_null(r.header.host.hostname);
	assert_int_equal(r.header.host.cpus, 0);
	assert_int_equal(r.header.command_len, 2);
	assert_string_equal(r.header.command[1], "-l");
	assert_int_equal(r.header.events_len, 1);
	assert_string_equal(r.header.events[0].requested, "c:u");
	assert_true(r.header.events[0].by_frequency);
	assert_int_equal(r.header.events[0].rate, 99);
	assert_int_equal(r.header.options.ring_bytes, 4096);
	next(reader, &r, PM_FILE_MODULE, 2);
	assert_null(r.module.build_id);
	assert_string_equal(r.module.kind, "file");
	next(reader, &r, PM_FILE_FRAME, 3);
	assert_int_equal(r.frame.address, 0x1f);
	assert_string_equal(r.frame.how, "ip");
	next(reader, &r, PM_FILE_FRAME, 4);
	assert_int_equal(r.frame.module, PM_FILE_NONE);
	next(reader, &r, PM_FILE_STACK, 5);
	assert_int_equal(r.stack.id, 0);
	assert_int_equal(r.stack.parent, PM_FILE_NONE);
	assert_int_equal(r.stack.frame, 1);
	next(reader, &r, PM_FILE_STACK, 5); /* second node of the same line */
	assert_int_equal(r.stack.id, 1);
	assert_int_equal(r.stack.parent, 0);
	assert_int_equal(r.stack.frame, 0);
	next(reader, &r, PM_FILE_THREAD, 6);
	assert_string_equal(r.thread.comm, "ls");
	next(reader, &r, PM_FILE_SAMPLE, 7);
	assert_int_equal(r.sample.period, 100);
	assert_int_equal(r.sample.stack, 1);
	assert_null(r.sample.stop);
	next(reader, &r, PM_FILE_SAMPLE, 8);
	assert_int_equal(r.sample.pid, PM_FILE_NONE);
	assert_int_equal(r.sample.cpu, PM_FILE_NONE);
	assert_int_equal(r.sample.stack, PM_FILE_NONE);
	assert_string_equal(r.sample.stop, "no-memory");
	next(reader, &r, PM_FILE_SYMBOL, 9);
	assert_int_equal(r.symbol.functions_len, 3);
	assert_int_equal(r.symbol.functions[0].line, 3);
	assert_int_equal(r.symbol.functions[0].start, 0);
	assert_null(r.symbol.functions[1].name);
	assert_int_equal(r.symbol.functions[1].start, 0x1f60);
	assert_int_equal(r.symbol.functions[2].start, 0);
	next(reader, &r, PM_FILE_LOST, 10);
	assert_int_equal(r.lost.count, 12);
	next(reader, &r, PM_FILE_NOTE, 11);
	assert_string_equal(r.note.text, "\xc3\xa4");
	next(reader, &r, PM_FILE_TITLE, 12);
	assert_int_equal(r.title.pid, 7);
	assert_int_equal(r.title.time, 8);
	assert_string_equal(r.title.text, "l: \033");
	next(reader, &r, PM_FILE_TITLE, 13);
	assert_null(r.title.text);
	next(reader, &r, PM_FILE_FOOTER, 14);
	assert_string_equal(r.footer.stops[0].name, "root");
	assert_false(r.footer.cpu_known);
	assert_true(r.footer.exited);
	assert_int_equal(r.footer.exit, 3);
	assert_false(r.footer.events[0].lost_known);
	assert_true(r.footer.events[0].counted_known);
	assert_int_equal(r.footer.events[0].counted, 102);
	assert_int_equal(r.footer.events[0].others, 2);
	assert_int_equal(pm_file_reader_next(reader, &r, NULL), 0);
	assert_int_equal(pm_file_reader_next(reader, &r, NULL), 0);
	assert_false(pm_file_reader_cut(reader));
	pm_file_reader_free(reader);
}

static void strangers_are_passed_over(void **state)
{
	static const char text[] =
		GOOD "{\"type\":\"weather\",\"rain\":true,\"id\":-1}\n"
		     "\n"
		     "{\"tid\":8,\"type\":\"sample\",\"pid\":7, \"time\" : 5,"
		     "\"new\":{\"a\":[1.5,{}]},\"cpu\":0,\"event\":0,\"period\":1,"
		     "\"stack\":0,\"stop\":null}\r\n"
		     "{\"type\":\"frame\",\"id\":2,\"module\":null,"
		     "\"address\":\"0x00ABCdef\",\"how\":\"new-way\"}\n"
		     "{\"type\":\"thread\",\"pid\":null,\"tid\":null,"
		     "\"comm\":\"\",\"time\":1}\n" FOOTER;
	struct pm_file_reader *reader = open_text(text, strlen(text));
	struct pm_file_record r;

	for (size_t i = 0; i < 6; i++)
		assert_int_equal(pm_file_reader_next(reader, &r, NULL), 1);
	next(reader, &r, PM_FILE_SAMPLE, 8);
	assert_null(r.sample.stop);
	next(reader, &r, PM_FILE_FRAME, 9);
	assert_int_equal(r.frame.address, 0xabcdef);
	next(reader, &r, PM_FILE_THREAD, 10);
	assert_int_equal(r.thread.tid, PM_FILE_NONE);
	next(reader, &r, PM_FILE_FOOTER, 11);
	pm_file_reader_free(reader);
}

/* ---- cut files ----------------------------------------------------------------------- */

/* However much of a file is there, it is read: every record whose line is whole, and no
 * error, because a recorder may be killed at any byte. */
static void a_cut_at_any_byte_is_no_error(void **state)
{
	static const char text[] =
		GOOD SAMPLE "{\"type\":\"note\",\"text\":\"n\"}\n" FOOTER;

	for (size_t len = 0; len <= strlen(text); len++) {
		PM_AUTO_FREE char *part = malloc(len + 1);
		struct pm_file_reader *reader = NULL;
		struct pm_error err = { 0 };
		size_t count, expected = 0;
		int result;

		assert_non_null(part);
		memcpy(part, text, len);
		result = pm_file_reader_open_memory(&reader, part, len, &err);
		if (len < strlen(HEADER) - 1) {
			assert_int_equal(result, -ENODATA);
			assert_non_null(strstr(err.text, "nothing was recorded"));
			continue;
		}
		assert_int_equal(result, 0);
		/* The last byte of a line is its newline, which need not be there. */
		for (size_t i = 0; i < len; i++)
			expected += text[i + 1] == '\n';
		if (len >= strlen(GOOD) - 1)
			expected++; /* the second node of the run */
		assert_int_equal(drain(reader, &count, &err), 0);
		assert_int_equal(count, expected);
		assert_int_equal(drain(reader, &count, &err), 0); /* and stays there */
		assert_int_equal(count, 0);
		assert_int_equal(pm_file_reader_cut(reader), len < strlen(text) - 1);
		pm_file_reader_free(reader);
	}
}

static void a_tail_of_zeros_is_a_cut(void **state)
{
	static const char text[] = GOOD SAMPLE "{\"type\":\"sam\0\0\0\0\0\0\0\0\0\0";
	struct pm_file_reader *reader = open_text(text, sizeof(text) - 1);
	struct pm_error err = { 0 };
	size_t count;

	assert_int_equal(drain(reader, &count, &err), 0);
	assert_int_equal(count, 7);
	assert_true(pm_file_reader_cut(reader));
	pm_file_reader_free(reader);
}

/* ---- files that grow ------------------------------------------------------------------ */

static size_t file_bytes(struct pm_str *file)
{
	pm_str_puts(file, HEADER MODULE "{\"type\":\"thread\",\"pid\":1,\"tid\":1,"
					"\"comm\":\"c\",\"time\":5}\n" FOOTER);
	assert_false(file->failed);
	return file->len;
}

/* Byte by byte, through a pipe and as a file: the same records, and -EAGAIN in between. */
static void what_grows_is_read_as_it_comes(void **state)
{
	for (int pipe_too = 0; pipe_too < 2; pipe_too++) {
		PM_AUTO_CLOSE int to = -1;
		PM_AUTO_CLOSE int from = -1;
		struct pm_str file = { 0 };
		size_t len = file_bytes(&file), header = strcspn(file.data, "\n") + 1;
		struct pm_file_reader *reader;
		struct pm_file_record record;
		unsigned int records = 0, again = 0;
		int ends[2], r;
		char path[64];

		if (pipe_too) {
			assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
			from = ends[0];
			to = ends[1];
		} else {
			to = memfd_create("growing", MFD_CLOEXEC);
			snprintf(path, sizeof(path), "/proc/self/fd/%d", to);
			from = open(path, O_RDONLY | O_CLOEXEC);
		}
		assert_true(to >= 0 && from >= 0);
		assert_int_equal(write(to, file.data, header), header);
		snprintf(path, sizeof(path), "/proc/self/fd/%d", from);
		assert_int_equal(pm_file_reader_open(&reader, path, NULL), 0);
		pm_file_reader_follow(reader, true);
		assert_true(pm_file_reader_fd(reader) >= 0);
		for (size_t at = header; at < len; at++) {
			while ((r = pm_file_reader_next(reader, &record, NULL)) > 0)
				records++;
			assert_int_equal(r, -EAGAIN);
			again++;
			assert_int_equal(write(to, file.data + at, 1), 1);
		}
		while ((r = pm_file_reader_next(reader, &record, NULL)) > 0)
			records++;
		assert_int_equal(r, -EAGAIN);
		assert_int_equal(records, 4);
		assert_int_equal(record.type, PM_FILE_FOOTER);
		assert_int_equal(record.line, 4);
		assert_true(again > 100);
		pm_cleanup_close(&to);
		to = -1;
		if (!pipe_too)
			pm_file_reader_follow(reader, false);
		assert_int_equal(pm_file_reader_next(reader, &record, NULL), 0);
		assert_false(pm_file_reader_cut(reader));
		pm_file_reader_free(reader);
		pm_str_release(&file);
	}
}

/* ---- bad files ----------------------------------------------------------------------- */

static void other_files_are_named(void **state)
{
	static const struct {
		const char *bytes;
		size_t len;
		int result;
		const char *text;
	} cases[] = {
#define CASE(bytes, result, text) { bytes, sizeof(bytes) - 1, result, text }
		CASE("", -ENODATA, "empty"),
		CASE("PERFILE2\x68\0\0\0\0\0\0\0", -EBADMSG,
		     "this is a perf.data file; pmreport reads files of pmrec"),
		CASE("\x1f\x8b\x08\0\0\0\0\0", -EBADMSG, "gzip"),
		CASE("\x7f"
		     "ELF\2\1\1\0",
		     -EBADMSG, "program"),
		CASE("main;f 3\nmain;g 4\n", -EBADMSG, "no file of pmrec"),
		CASE("{\n  \"format\": \"pmstat\"\n}\n", -EBADMSG, "no file of pmrec"),
		CASE("[]\n", -EBADMSG, "expected an object"),
		CASE(SAMPLE, -EBADMSG, "no header"),
		CASE("\n" HEADER, -EBADMSG, "no file of pmrec"),
		CASE("{\"type\":\"header\",\"format\":\"pmstat\",\"version\":1}\n",
		     -EBADMSG, "header.format: expected \"pmrec\", not \"pmstat\""),
		CASE("{\"type\":\"header\",\"format\":\"pmrec\"}\n", -EBADMSG,
		     "header.version: missing"),
		CASE("{\"type\":\"header\",\"format\":\"pmrec\",\"version\":0}\n",
		     -EBADMSG, "header.version"),
		CASE("{\"type\":\"header\",\"format\":\"pmrec\",\"version\":2,"
		     "\"events\":7}\n",
		     -ENOTSUP,
		     "file version 2 is newer than this pmreport understands (1)"),
		CASE("{\"type\":\"header\",\"format\":\"pmrec\",\"version\":1,"
		     "\"pmrec\":\"\",\"created\":\"\",\"clock\":\"\",\"host\":[]}\n",
		     -EBADMSG, "header.host: expected an object"),
		CASE("{\"type\":\"header\",\"format\":\"pmrec\",\"version\":1,"
		     "\"pmrec\":\"\",\"created\":\"\",\"clock\":\"\",\"host\":{},"
		     "\"command\":[]}\n",
		     -EBADMSG, "header.host.cpus: missing"),
		CASE("{\"type\":\"header\",\"format\":\"pmrec\",\"version\":1,"
		     "\"pmrec\":\"\",\"created\":\"\",\"clock\":\"\","
		     "\"host\":{\"cpus\":1},\"command\":[],\"events\":[" EVENT(
			     "0") "," EVENT("2") "]}\n",
		     -EBADMSG, "header.events[1].id: expected 1"),
		CASE("\x28\xb5\x2f\xfd\x08\xff\xff\xff\xff\xff\xff\xff", -EBADMSG,
		     "damaged"),
		/* A frame that wants a window of 2^31 bytes. */
		CASE("\x28\xb5\x2f\xfd\x00\xa8\x01\x00\x00", -EBADMSG, "damaged"),
	};

	for (size_t i = 0; i < PM_ARRAY_LEN(cases); i++) {
		struct pm_file_reader *reader = NULL;
		struct pm_error err = { 0 };

		assert_int_equal(pm_file_reader_open_memory(&reader, cases[i].bytes,
							    cases[i].len, &err),
				 cases[i].result);
		assert_null(reader);
		if (!strstr(err.text, cases[i].text))
			fail_msg("case %zu: '%s' lacks '%s'", i, err.text, cases[i].text);
	}
}

#define OF_SAMPLE(time, pid, event, stack)                                  \
	"{\"type\":\"sample\",\"time\":" time ",\"pid\":" pid ",\"tid\":8," \
	"\"cpu\":0,\"event\":" event ",\"period\":1,\"stack\":" stack "}"
#define TIMES_4(x)    x "," x "," x "," x
#define TIMES_1025(x) TIMES_4(TIMES_4(TIMES_4(TIMES_4(TIMES_4(x))))) "," x
#define OF_FRAME(id, module, address)                                                  \
	"{\"type\":\"frame\",\"id\":" id ",\"module\":" module ",\"address\":" address \
	",\"how\":\"ip\"}"
#define OF_STACK(id, parent, frames) \
	"{\"type\":\"stack\",\"id\":" id ",\"parent\":" parent ",\"frames\":" frames "}"

static const struct {
	const char *line, *text;
} bad_lines[] = {
	{ "{\"type\":\"sample\",\"time\":5", "as JSON" },
	{ "hello", "as JSON" },
	{ "{} {}", "as JSON" },
	{ "{\"type\":\"note\",\"text\":\"\xff\"}", "as JSON" },
	{ "{\"type\":\"note\",\"text\":\"a\\u0000b\"}", "as JSON" },
	{ "{\"type\":\"note\",\"text\":\"a\",\"text\":\"b\"}", "as JSON" },
	{ "{\"type\":\"x\",\"y\":1e400}", "as JSON" },
	{ OF_SAMPLE("18446744073709551616", "1", "0", "0"), "as JSON" },
	{ OF_SAMPLE("05", "1", "0", "0"), "as JSON" },
	{ "{}", "line.type: missing" },
	{ "7", "as JSON" },
	{ "[7]", "expected an object" },
	{ "{\"type\":7}", "line.type: expected a string" },
	{ OF_SAMPLE("-1", "1", "0", "0"),
	  "sample.time: expected a non-negative integer" },
	{ OF_SAMPLE("1.0", "1", "0", "0"),
	  "sample.time: expected a non-negative integer" },
	{ OF_SAMPLE("\"1\"", "1", "0", "0"),
	  "sample.time: expected a non-negative integer" },
	{ OF_SAMPLE("null", "1", "0", "0"),
	  "sample.time: expected a non-negative integer" },
	{ OF_SAMPLE("1", "4294967295", "0", "0"),
	  "sample.pid: expected at most 4294967294" },
	{ OF_SAMPLE("1", "1", "1", "0"), "sample.event: 1 is not defined" },
	{ OF_SAMPLE("1", "1", "0", "2"), "sample.stack: 2 is not defined" },
	{ "{\"type\":\"sample\",\"time\":5,\"pid\":1}", "sample.tid: missing" },
	{ OF_FRAME("3", "0", "\"0x1\""), "frame.id: expected 2, the next one, not 3" },
	{ OF_FRAME("1", "0", "\"0x1\""), "frame.id: expected 2" },
	{ OF_FRAME("2", "1", "\"0x1\""), "frame.module: 1 is not defined" },
	{ OF_FRAME("2", "0", "\"1f\""), "frame.address: expected a hex" },
	{ OF_FRAME("2", "0", "\"0x\""), "frame.address: expected a hex" },
	{ OF_FRAME("2", "0", "\"0x1g\""), "frame.address: expected a hex" },
	{ OF_FRAME("2", "0", "\"0x-1\""), "frame.address: expected a hex" },
	{ OF_FRAME("2", "0", "\"0x10000000000000000\""),
	  "frame.address: expected a hex" },
	{ OF_FRAME("2", "0", "31"), "frame.address: expected a string" },
	{ OF_STACK("1", "null", "[0]"), "stack.id: expected 2" },
	{ OF_STACK("2", "2", "[0]"), "stack.parent: 2 is not defined" },
	{ OF_STACK("2", "0", "[0,1,2]"), "stack.frames: 2 is not defined" },
	{ OF_STACK("2", "0", "[]"), "stack.frames: expected at least one" },
	{ OF_STACK("2", "0", "0"), "stack.frames: expected an array" },
	{ OF_STACK("2", "0", "[0,null]"), "stack.frames: expected a non-negative" },
	{ "{\"type\":\"symbol\",\"frame\":2,\"functions\":[{}]}",
	  "symbol.frame: 2 is not defined" },
	{ "{\"type\":\"symbol\",\"frame\":1,\"functions\":[]}",
	  "symbol.functions: expected at least one" },
	{ "{\"type\":\"symbol\",\"frame\":1,\"functions\":[" TIMES_1025("{}") "]}",
	  "symbol.functions: more than 1,024" },
	{ "{\"type\":\"symbol\",\"frame\":1,\"functions\":[{},7]}",
	  "symbol.functions[1]: expected an object" },
	{ "{\"type\":\"symbol\",\"frame\":1,\"functions\":[{\"name\":7}]}",
	  "symbol.functions[0].name: expected a string or null" },
	{ "{\"type\":\"symbol\",\"frame\":1,\"functions\":[{\"start\":\"12\"}]}",
	  "symbol.functions[0].start: expected a hexadecimal address" },
	{ "{\"type\":\"module\",\"id\":2,\"path\":\"\",\"kind\":\"\"}",
	  "module.id: expected 1" },
	{ HEADER, "a second header" },
};

/* Alone, then as the last line without its newline: bad is not the same as cut, unless it
 * could be the beginning of something good. */
static void bad_lines_are_refused_with_their_number(void **state)
{
	for (size_t i = 0; i < PM_ARRAY_LEN(bad_lines); i++) {
		PM_AUTO_FREE char *text = NULL;
		struct pm_file_reader *reader;
		struct pm_error err = { 0 }, again = { 0 };
		struct pm_file_record record = { .line = 4711 };
		size_t count;

		assert_true(asprintf(&text, "%s%s\n%s", GOOD, bad_lines[i].line, FOOTER) >
			    0);
		reader = open_text(text, strlen(text));
		assert_int_equal(drain(reader, &count, &err), -EBADMSG);
		assert_int_equal(count, 6);
		if (!strstr(err.text, bad_lines[i].text))
			fail_msg("%s: '%s' lacks '%s'", bad_lines[i].line, err.text,
				 bad_lines[i].text);
		assert_int_equal(err.offset, 6);
		assert_int_equal(pm_file_reader_next(reader, &record, &again), -EBADMSG);
		assert_string_equal(again.text, err.text);
		assert_int_equal(record.line, 4711);
		pm_file_reader_free(reader);
	}
}

static void nothing_follows_the_footer(void **state)
{
	static const char *const tails[] = { SAMPLE, "{\"type\":\"weather\"}\n", HEADER,
					     "x" };

	for (size_t i = 0; i < PM_ARRAY_LEN(tails); i++) {
		PM_AUTO_FREE char *text = NULL;
		struct pm_file_reader *reader;
		struct pm_error err = { 0 };
		size_t count;

		assert_true(asprintf(&text, "%s%s\n%s", GOOD, FOOTER, tails[i]) > 0);
		reader = open_text(text, strlen(text));
		assert_int_equal(drain(reader, &count, &err), -EBADMSG);
		assert_non_null(strstr(err.text, "after the footer"));
		pm_file_reader_free(reader);
	}
}

static void bad_footers_are_refused(void **state)
{
#define OF_FOOTER(stops, exit, events)                                           \
	"{\"type\":\"footer\",\"samples\":1,\"lost\":0,\"throttled\":0,"         \
	"\"truncated\":0,\"stops\":" stops ",\"duration_ns\":9,\"cpu_ns\":null," \
	"\"exit\":" exit ",\"events\":" events "}\n"
#define OF_EVENT(id) "{\"id\":" id ",\"samples\":1,\"period\":1,\"lost\":2}"
	static const struct {
		const char *line, *text;
	} cases[] = {
		{ OF_FOOTER("{\"root\":-1}", "null", "[]"), "footer.stops.root" },
		{ OF_FOOTER("[]", "null", "[]"), "footer.stops: expected an object" },
		{ OF_FOOTER("{}", "{}", "[]"), "footer.exit.code: expected either" },
		{ OF_FOOTER("{}", "{\"code\":1,\"signal\":1}", "[]"), "expected either" },
		{ OF_FOOTER("{}", "1", "[]"), "footer.exit: expected an object" },
		{ OF_FOOTER("{}", "null", "[" OF_EVENT("1") "]"),
		  "footer.events[0].id: expected 0" },
		{ OF_FOOTER("{}", "null", "[" OF_EVENT("0") "," OF_EVENT("1") "]"),
		  "more than the header has" },
		{ OF_FOOTER("{}", "null", "[{\"id\":0,\"samples\":1,\"period\":1}]"),
		  "footer.events[0].lost: missing" },
	};

	for (size_t i = 0; i < PM_ARRAY_LEN(cases); i++) {
		PM_AUTO_FREE char *text = NULL;
		struct pm_file_reader *reader;
		struct pm_error err = { 0 };
		size_t count;

		assert_true(asprintf(&text, "%s%s", GOOD, cases[i].line) > 0);
		reader = open_text(text, strlen(text));
		assert_int_equal(drain(reader, &count, &err), -EBADMSG);
		if (!strstr(err.text, cases[i].text))
			fail_msg("'%s' lacks '%s'", err.text, cases[i].text);
		pm_file_reader_free(reader);
	}
}

/* A header and one line of @len bytes: @begin, then @unit again and again, then @end. */
static char *long_line(const char *begin, const char *unit, const char *end, size_t len,
		       size_t *total)
{
	size_t head = strlen(HEADER), at = head + strlen(begin);
	size_t unit_len = strlen(unit),
	       units = (len + head - strlen(end) - at) / unit_len;
	char *text = malloc(head + len + 1);

	assert_non_null(text);
	memcpy(text, HEADER, head);
	memcpy(text + head, begin, strlen(begin));
	if (unit_len == 1)
		memset(text + at, *unit, units);
	for (size_t i = 0; unit_len > 1 && i < units; i++)
		memcpy(text + at + i * unit_len, unit, unit_len);
	at += units * unit_len;
	memset(text + at, ' ', head + len - at);
	memcpy(text + head + len - strlen(end), end, strlen(end));
	text[head + len] = '\n';
	*total = head + len + 1;
	return text;
}

static void hostile_sizes_are_refused(void **state)
{
	static const struct {
		const char *begin, *unit, *end;
		size_t len;
		int result;
		const char *text;
	} cases[] = {
		{ "{\"type\":\"note\",\"text\":\"", "x", "\"}", PM_FILE_LINE_MAX, 0, "" },
		{ "{\"type\":\"note\",\"text\":\"", "x", "\"}", PM_FILE_LINE_MAX + 1,
		  -EBADMSG, "longer than 64 MiB" },
		{ "{\"type\":\"x\",\"a\":[0", ",[]", "]}", 4 << 20, -EBADMSG,
		  "more than 1048576 values" },
		{ "{\"type\":\"x\",\"a\":\"\\\"", ",[]", "\"}", 4 << 20, 0, "" },
		{ "{\"type\":\"x\",\"a\":", "[", "", 1 << 20, -EBADMSG, "as JSON" },
		{ "{\"type\":\"x\",\"a\":", "{\"\":", "", 1 << 20, -EBADMSG, "as JSON" },
	};

	for (size_t i = 0; i < PM_ARRAY_LEN(cases); i++) {
		struct pm_error err = { 0 };
		size_t len, count;
		PM_AUTO_FREE char *text = long_line(cases[i].begin, cases[i].unit,
						    cases[i].end, cases[i].len, &len);
		struct pm_file_reader *reader = open_text(text, len);

		assert_int_equal(drain(reader, &count, &err), cases[i].result);
		if (!strstr(err.text, cases[i].text))
			fail_msg("'%s' lacks '%s'", err.text, cases[i].text);
		pm_file_reader_free(reader);
	}
}

/* ---- both parsers -------------------------------------------------------------------- */

/* Every good and bad line above, and what comes of changing, dropping or doubling any one
 * byte: the fast parser takes nothing that jansson sees otherwise. */
static void both_parsers_agree(void **state)
{
	static const char *const lines[] = {
		OF_SAMPLE("9223372036854775807", "4294967294", "0", "null"),
		OF_SAMPLE("9223372036854775808", "0", "0", "1"),
		OF_SAMPLE("99999999999999999999999", "0", "0", "1"),
		"{\"type\":\"sample\",\"time\":5,\"pid\":null,\"tid\":0,\"cpu\":null,"
		"\"event\":0,\"period\":1,\"stack\":0,\"stop\":\"no-memory\"}",
		OF_FRAME("2", "null", "\"0xffffffffffffffff\""),
		OF_FRAME("2", "null", "\"0x10000000000000000\""),
		OF_STACK("2", "null", "[1,22,333]"),
		OF_STACK("2", "17", "[1,,2]"),
		"{\"type\":\"symbol\",\"frame\":7,\"functions\":[{\"name\":\"a<b, c>::d(e) "
		"const\",\"file\":\"/a/long/name.cc\",\"line\":12},{\"name\":null},"
		"{\"name\":\"\",\"line\":0}]}",
		"{\"type\":\"symbol\",\"frame\":7,\"functions\":[{\"name\":\"a\",\"file\":"
		"\"b\"},{\"name\":\"c\",\"line\":4294967295}]}",
		"{\"type\":\"symbol\",\"frame\":7,\"functions\":[{\"name\":null,\"line\":1,"
		"\"start\":\"0xffffffffffffffff\"},{\"name\":null,\"start\":\"0x1A\"}]}",
	};
	static const char with[] = "\"\\,:}]0195aAgx{[ \t\x7f\xc3-.e\n";
	size_t taken = 0;

	for (size_t i = 0; i < PM_ARRAY_LEN(lines); i++) {
		size_t len = strlen(lines[i]);
		char changed[512];
		bool fast;

		assert_true(parsers_agree(lines[i], len, &fast));
		taken += fast;
		for (size_t at = 0; at < len; at++) {
			memcpy(changed, lines[i], len);
			assert_true(parsers_agree(changed, at, NULL));
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
	for (size_t i = 0; i < PM_ARRAY_LEN(bad_lines); i++)
		assert_true(parsers_agree(bad_lines[i].line, strlen(bad_lines[i].line),
					  NULL));
	assert_int_equal(taken, 5); /* the five good ones: our own form is not missed */
}

/* ---- with the writer ----------------------------------------------------------------- */

static uint32_t random_next(uint32_t *seed)
{
	return *seed = *seed * 1664525 + 1013904223;
}

enum {
	SAMPLES = 3000,
	DEPTH = 30,
};

/* The frame at @depth of sample @i: stacks that share their roots, as real ones do. */
static uint64_t address_at(uint32_t i, uint32_t depth)
{
	uint32_t seed = depth < 20 ? i / 100 : i * 31 + depth;

	return random_next(&seed) % 500 + (uint64_t)depth * 1000;
}

static void write_many(const char *path, bool footer)
{
	const struct pm_file_event event = { 0, "c", "c", "c", "", "ns", false, 7 };
	const struct pm_file_header header = {
		.version = 1,
		.pmrec = "t",
		.created = "",
		.clock = "monotonic",
		.events = &event,
		.events_len = 1,
		.options = { .call_graph = "dwarf" },
	};
	const struct pm_file_module module = { 0, "/x", "abcd", "file" };
	const struct pm_file_footer end = { .samples = SAMPLES };
	struct pm_file_writer *writer = NULL;

	assert_int_equal(pm_file_writer_open(&writer, path, NULL), 0);
	assert_int_equal(pm_file_write_header(writer, &header), 0);
	assert_int_equal(pm_file_write_module(writer, &module), 0);
	for (uint32_t i = 0; i < SAMPLES; i++) {
		struct pm_file_sample sample = { .time = i, .stack = PM_FILE_NONE };
		uint32_t frame;

		for (uint32_t depth = 0; depth < DEPTH; depth++) {
			assert_int_equal(
				pm_file_intern_frame(writer, 0, address_at(i, depth),
						     depth % 2 ? "cfi" : "fp", &frame),
				0);
			assert_int_equal(pm_file_intern_stack(writer, sample.stack, frame,
							      &sample.stack),
					 0);
		}
		assert_int_equal(pm_file_write_sample(writer, &sample), 0);
		if (i % 1000 == 999)
			assert_int_equal(pm_file_writer_flush(writer), 0);
	}
	if (footer)
		assert_int_equal(pm_file_write_footer(writer, &end), 0);
	assert_int_equal(pm_file_writer_close(writer, NULL), 0);
}

struct seen {
	PM_VEC(struct pm_file_frame) frames;
	PM_VEC(struct pm_file_stack) stacks;
	uint32_t samples;
};

static void check_sample(const struct seen *seen, const struct pm_file_sample *sample)
{
	uint32_t at = sample->stack;

	assert_int_equal(sample->time, seen->samples);
	for (uint32_t depth = DEPTH; depth-- > 0;) {
		const struct pm_file_frame *frame;

		assert_true(at < seen->stacks.len);
		frame = &seen->frames.data[seen->stacks.data[at].frame];
		assert_int_equal(frame->address, address_at(seen->samples, depth));
		at = seen->stacks.data[at].parent;
	}
	assert_int_equal(at, PM_FILE_NONE);
}

/* Every chain comes back as it was put in. */
static uint32_t read_many(struct pm_file_reader *reader)
{
	struct seen seen = { 0 };
	struct pm_file_record record;
	struct pm_error err = { 0 };
	int result;

	while ((result = pm_file_reader_next(reader, &record, &err)) > 0) {
		if (record.type == PM_FILE_FRAME)
			assert_int_equal(pm_vec_push(&seen.frames, record.frame), 0);
		if (record.type == PM_FILE_STACK)
			assert_int_equal(pm_vec_push(&seen.stacks, record.stack), 0);
		if (record.type == PM_FILE_SAMPLE) {
			check_sample(&seen, &record.sample);
			seen.samples++;
		}
	}
	if (result < 0)
		fail_msg("%s", err.text);
	pm_vec_release(&seen.frames);
	pm_vec_release(&seen.stacks);
	return seen.samples;
}

/* The file that write_many() makes under @name, in memory. */
static char *made(const char *name, bool footer, size_t *len)
{
	char folder[] = "/tmp/pm-file-XXXXXX", path[64];
	PM_AUTO_FCLOSE FILE *file = NULL;
	char *bytes = malloc(4 << 20);

	assert_non_null(bytes);
	assert_non_null(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/%s", folder, name);
	write_many(path, footer);
	file = fopen(path, "rbe");
	assert_non_null(file);
	*len = fread(bytes, 1, 4 << 20, file);
	assert_true(*len < 4 << 20);
	unlink(path);
	rmdir(folder);
	return bytes;
}

static void what_was_written_is_read(void **state)
{
	static const char *const names[] = { "s.json", "s.json.zst" };
	size_t lens[2];

	for (size_t i = 0; i < PM_ARRAY_LEN(names); i++) {
		PM_AUTO_FREE char *bytes = made(names[i], true, &lens[i]);
		struct pm_file_reader *reader = open_text(bytes, lens[i]);

		assert_int_equal(read_many(reader), SAMPLES);
		assert_false(pm_file_reader_cut(reader));
		pm_file_reader_free(reader);
	}
	assert_true(lens[1] < lens[0] / 3);
}

/* What was flushed survives, whatever is missing of the compressed stream after it. */
static void a_cut_compressed_file_is_read(void **state)
{
	size_t len;
	PM_AUTO_FREE char *bytes = made("s.json.zst", true, &len);
	uint32_t last = 0;

	for (size_t cut = 1000; cut < len; cut += 997) {
		struct pm_file_reader *reader = NULL;
		struct pm_error err = { 0 };
		uint32_t samples;

		if (pm_file_reader_open_memory(&reader, bytes, cut, &err) < 0) {
			assert_int_equal(last, 0);
			assert_non_null(strstr(err.text, "nothing was recorded"));
			continue;
		}
		samples = read_many(reader);
		assert_true(samples >= last);
		assert_true(pm_file_reader_cut(reader));
		last = samples;
		pm_file_reader_free(reader);
	}
	assert_true(last >= 2000); /* two flushes were whole by then */
}

static void damage_in_a_compressed_file_is_told(void **state)
{
	size_t len, count;
	PM_AUTO_FREE char *bytes = made("s.json.zst", true, &len);
	struct pm_file_reader *reader;
	struct pm_error err = { 0 };

	bytes[len - 2] ^= 0x55; /* in the checksum */
	reader = open_text(bytes, len);
	assert_int_equal(drain(reader, &count, &err), -EBADMSG);
	assert_non_null(strstr(err.text, "damaged"));
	pm_file_reader_free(reader);
}

static void compressed_pieces_may_follow_each_other(void **state)
{
	size_t len;
	PM_AUTO_FREE char *bytes = made("s.json.zst", false, &len);
	/* RFC 8878: an empty frame (single segment, no content), then a skippable one. */
	static const char more[] = "\x28\xb5\x2f\xfd\x20\x00\x01\x00\x00"
				   "\x50\x2a\x4d\x18\x03\x00\x00\x00xyz";
	PM_AUTO_FREE char *both = malloc(len + sizeof(more) - 1);
	struct pm_file_reader *reader;

	assert_non_null(both);
	memcpy(both, bytes, len);
	memcpy(both + len, more, sizeof(more) - 1);
	reader = open_text(both, len + sizeof(more) - 1);
	assert_int_equal(read_many(reader), SAMPLES);
	assert_true(pm_file_reader_cut(reader));
	pm_file_reader_free(reader);
}

static void files_and_pipes_are_opened(void **state)
{
	struct pm_file_reader *reader = NULL;
	struct pm_error err = { 0 };
	int ends[2], saved;
	size_t count;

	assert_int_equal(pm_file_reader_open(&reader, "/nonexistent/s.json", &err),
			 -ENOENT);
	assert_string_equal(err.source, "/nonexistent/s.json");
	assert_true(err.fix[0]);
	assert_int_equal(pm_file_reader_open(&reader, "/", &err), -EISDIR);
	assert_int_equal(pm_file_reader_open(&reader, "/dev/null", &err), -ENODATA);
	assert_null(reader);

	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	assert_int_equal(write(ends[1], GOOD, strlen(GOOD)), strlen(GOOD));
	assert_int_equal(write(ends[1], "nonsense\n", 9), 9);
	close(ends[1]);
	saved = dup(STDIN_FILENO);
	dup2(ends[0], STDIN_FILENO);
	close(ends[0]);
	assert_int_equal(pm_file_reader_open(&reader, "-", &err), 0);
	dup2(saved, STDIN_FILENO);
	close(saved);
	assert_int_equal(drain(reader, &count, &err), -EBADMSG);
	assert_int_equal(count, 6);
	assert_string_equal(err.source, "standard input");
	assert_int_equal(err.offset, 6);
	pm_file_reader_free(reader);
	pm_file_reader_free(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(records_hold_what_the_lines_say),
		cmocka_unit_test(strangers_are_passed_over),
		cmocka_unit_test(a_cut_at_any_byte_is_no_error),
		cmocka_unit_test(a_tail_of_zeros_is_a_cut),
		cmocka_unit_test(what_grows_is_read_as_it_comes),
		cmocka_unit_test(other_files_are_named),
		cmocka_unit_test(bad_lines_are_refused_with_their_number),
		cmocka_unit_test(nothing_follows_the_footer),
		cmocka_unit_test(bad_footers_are_refused),
		cmocka_unit_test(hostile_sizes_are_refused),
		cmocka_unit_test(both_parsers_agree),
		cmocka_unit_test(what_was_written_is_read),
		cmocka_unit_test(a_cut_compressed_file_is_read),
		cmocka_unit_test(damage_in_a_compressed_file_is_told),
		cmocka_unit_test(compressed_pieces_may_follow_each_other),
		cmocka_unit_test(files_and_pipes_are_opened),
	};

	return cmocka_run_group_tests_name("file-reader", tests, NULL, NULL);
}
