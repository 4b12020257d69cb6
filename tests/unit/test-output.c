/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "src/output/output-internal.h"

/* ---- names and numbers ------------------------------------------------------------------- */

static void test_names(void **state)
{
	static const struct {
		const char *name;
		size_t width;
		const char *ascii, *expected; /* ascii NULL: the same */
	} cases[] = {
		{ "main", 10, NULL, "main" },
		{ "main", 0, NULL, "main" },
		{ "f(int, char)", 12, NULL, "f(int, char)" },
		{ "f(int, char)", 11, "f(...)", "f(…)" },
		{ "f()", 3, NULL, "f()" },
		{ "ns::f(int (*)(char), T<a>)", 12, "ns::f(...)", "ns::f(…)" },
		{ "std::map<int, std::less<int>>::find(int)", 30,
		  "std::map<...>::find(...)", "std::map<…>::find(…)" },
		{ "std::vec::Vec<T, A>::push_back", 20, "...::push_back",
		  "…::Vec<…>::push_back" },
		{ "v8::internal::Scanner::Next", 20, "...::Scanner::Next",
		  "…::Scanner::Next" },
		{ "abcdefghijklmnopqrstuvwxyz", 10, "abcd...xyz", "abcd…vwxyz" },
	};
	struct pm_str str = { 0 };

	for (size_t i = 0; i < PM_ARRAY_LEN(cases); i++) {
		pm_str_clear(&str);
		pm_put_name(&str, cases[i].name, cases[i].width, false);
		assert_string_equal(str.data, cases[i].expected);
		pm_str_clear(&str);
		pm_put_name(&str, cases[i].name, cases[i].width, true);
		assert_string_equal(str.data,
				    cases[i].ascii ? cases[i].ascii : cases[i].expected);
	}
	pm_str_release(&str);
}

static void test_operators_and_anonymous(void **state)
{
	static const struct {
		const char *name;
		size_t width;
		const char *expected;
	} cases[] = {
		{ "A::operator()(int) const", 22, "A::operator()(…) const" },
		{ "operator<< <char>(std::ostream&, char)", 20, "operator<< <char>(…)" },
		{ "operator<< <char>(std::ostream&, char)", 17, "operator<< <…>(…)" },
		{ "A<int, long>::operator->(int, long)", 22, "A<…>::operator->(…)" },
		{ "(anonymous namespace)::f(int)", 28, "(anonymous namespace)::f(…)" },
		{ "f(int", 4, "f(…" },
		{ "operator-<int*, std::vector<int> >(int)", 15, "operator-<…>(…)" },
		{ "<alloc::Vec<T> as Extend<T>>::extend", 22, "<…Vec<…> as …>::extend" },
		{ "<alloc::Vec<T> as Extend<T>>::extend", 20, "<…Vec<…>…>::extend" },
		{ "<alloc::Vec<T> as Extend<T>>::extend", 16, "…::extend" },
		{ "<Sip as Hash<u8>>::write", 22, "<Sip as …>::write" },
		{ "<alloc::vec::Vec<T>>::push", 20, "<…Vec<…>>::push" },
		{ "main::{lambda a.cc:8:11}::operator()", 36,
		  "main::{lambda a.cc:8:11}::operator()" },
		{ "main::{lambda a.cc:8:11}::operator()", 35,
		  "main::{lambda a.cc:8:11}" },
		{ "main::{lambda a.cc:8:11}::operator()", 21, "…::{lambda a.cc:8:11}" },
		{ "main::{lambda a.cc:8:11}::operator()", 15, "…bda a.cc:8:11}" },
	};
	struct pm_str str = { 0 };

	for (size_t i = 0; i < PM_ARRAY_LEN(cases); i++) {
		pm_str_clear(&str);
		pm_put_name(&str, cases[i].name, cases[i].width, false);
		assert_string_equal(str.data, cases[i].expected);
	}
	pm_str_release(&str);
}

static void test_cut_fits(void **state)
{
	static const char *const names[] = {
		"héllo wörld, ein längerer Name",
		"a\x1b[31m\x01\xff\xfe red",
		"f(((((((((",
		"))))))))))))",
		"<<<<<>>>>>><",
		"operatoroperatoroperator<operator()",
		"operator",
		"x->y->z->w",
		"日本語の関数名はとても長い",
	};

	for (size_t i = 0; i < PM_ARRAY_LEN(names); i++) {
		for (size_t width = 1; width < 50; width++) {
			for (int ascii = 0; ascii < 2; ascii++) {
				struct pm_str str = { 0 };

				pm_put_name(&str, names[i], width, ascii);
				assert_true(pm_columns(str.data) <= width);
				for (size_t at = 0; at < str.len;) {
					size_t n =
						pm_utf8_char(str.data + at, str.len - at);

					assert_true(n > 0);
					assert_true((unsigned char)str.data[at] >= 0x20);
					at += n;
				}
				pm_str_release(&str);
			}
		}
	}
}

static void test_cut_ends(void **state)
{
	struct pm_str str = { 0 };

	pm_put_cut(&str, "abcdefgh", 5, false, false);
	assert_string_equal(str.data, "abcd…");
	pm_str_clear(&str);
	pm_put_cut(&str, "abcdefgh", 5, true, true);
	assert_string_equal(str.data, "...gh");
	pm_str_clear(&str);
	pm_put_cut(&str, "abcdefgh", 0, true, true);
	assert_string_equal(str.data, "abcdefgh");
	pm_str_release(&str);
}

static void test_numbers(void **state)
{
	static const struct {
		uint64_t value;
		const char *count, *duration;
	} cases[] = {
		{ 0, "0", "0 ms" },
		{ 999, "999", "999 ns" },
		{ 1000, "1,000", "0.001 ms" },
		{ 1534567, "1,534,567", "1.53 ms" },
		{ 12345678, "12,345,678", "12 ms" },
		{ 4010000000, "4,010,000,000", "4.01 s" },
		{ 100000000000, "100,000,000,000", "1 min 40 s" },
		{ 7380000000000, "7,380,000,000,000", "2 h 03 min" },
		{ UINT64_MAX, "18,446,744,073,709,551,615", "5124095 h 34 min" },
	};
	struct pm_str str = { 0 };

	for (size_t i = 0; i < PM_ARRAY_LEN(cases); i++) {
		pm_str_clear(&str);
		pm_put_count(&str, cases[i].value);
		assert_string_equal(str.data, cases[i].count);
		pm_str_clear(&str);
		pm_put_duration(&str, cases[i].value);
		assert_string_equal(str.data, cases[i].duration);
	}
	pm_str_release(&str);
}

static void test_shell(void **state)
{
	struct pm_str str = { 0 };

	pm_put_shell(&str, "a-b_c.d/e:f");
	pm_str_putc(&str, ' ');
	pm_put_shell(&str, "");
	pm_str_putc(&str, ' ');
	pm_put_shell(&str, "f(int)");
	pm_str_putc(&str, ' ');
	pm_put_shell(&str, "it's");
	assert_string_equal(str.data, "a-b_c.d/e:f '' 'f(int)' 'it'\\''s'");
	pm_str_release(&str);
}

/* ---- whole reports ----------------------------------------------------------------------- */

static const char long_name[] =
	"ns::very<long, template<with, many<arguments>>>::and_a_very_long_method_name_too(int, "
	"char const*, std::basic_string<char, std::char_traits<char>, std::allocator<char>>)";

/* Names that would break a terminal, a line, a field or a folded stack. */
static const char *const hostile[] = {
	"\\u001b]0;owned\\u0007\\u001b[2J",
	"semi;colon\\nnewline",
	"comma,\\\"quote\\\" \\ttab",
	long_name,
	"a",
	"日本語\\u0085\\u009b",
};

static struct pm_str hostile_file(void)
{
	struct pm_str file = { 0 };

	pm_str_printf(
		&file,
		"{\"type\":\"header\",\"format\":\"pmrec\",\"version\":1,\"pmrec\":\"0\","
		"\"created\":\"2024-05-06T07:08:09Z\",\"clock\":\"monotonic\",\"host\":{"
		"\"hostname\":\"h\",\"kernel\":\"k\",\"arch\":\"x\",\"cpus\":1,"
		"\"cpu_model\":null,\"virt\":null},\"command\":[\"%s\",\"%s\"],"
		"\"events\":[{\"id\":0,\"name\":\"e\",\"requested\":\"%s\",\"actual\":\"e\","
		"\"modifiers\":\"\",\"unit\":\"events\",\"freq\":9}],\"options\":{"
		"\"call_graph\":\"dwarf\",\"stack_bytes\":8,\"ring_bytes\":8}}\n"
		"{\"type\":\"note\",\"text\":\"%s\"}\n"
		"{\"type\":\"thread\",\"pid\":1,\"tid\":1,\"comm\":\"%s\",\"time\":1}\n"
		"{\"type\":\"module\",\"id\":0,\"path\":\"/x/%s\",\"kind\":\"file\"}\n",
		hostile[0], hostile[3], hostile[0], hostile[1], hostile[1], hostile[1]);
	for (unsigned i = 0; i < PM_ARRAY_LEN(hostile); i++) {
		pm_str_printf(
			&file,
			"{\"type\":\"frame\",\"id\":%u,\"module\":0,\"address\":"
			"\"0x%x\",\"how\":\"ip\"}\n"
			"{\"type\":\"symbol\",\"frame\":%u,\"functions\":[{\"name\":"
			"\"%s\",\"file\":\"/%s\",\"line\":3}]}\n",
			i, i, i, hostile[i], hostile[i]);
	}
	/* A path through all of them, and a branch at each. */
	for (unsigned i = 0; i < 120; i++) {
		char parent[16] = "null";

		if (i > 0)
			snprintf(parent, sizeof(parent), "%u", i - i % 2 - (i % 2 == 0));
		pm_str_printf(
			&file,
			"{\"type\":\"stack\",\"id\":%u,\"parent\":%s,\"frames\":[%u]}"
			"\n"
			"{\"type\":\"sample\",\"time\":%u,\"pid\":1,\"tid\":1,\"cpu\":"
			"0,\"event\":0,\"period\":1,\"stack\":%u}\n",
			i, i > 1 ? parent : (i ? "0" : "null"),
			i % (unsigned)PM_ARRAY_LEN(hostile), i + 1, i);
	}
	return file;
}

static struct pm_profile *load(const struct pm_str *file)
{
	struct pm_file_reader *reader;
	struct pm_profile *profile = NULL;
	struct pm_error err = { 0 };

	assert_false(file->failed);
	if (pm_file_reader_open_memory(&reader, file->data, file->len, &err) < 0 ||
	    pm_profile_load(&profile, reader, NULL, &err) < 0)
		fail_msg("%s:%lld: %s", err.source, (long long)err.offset, err.text);
	pm_file_reader_free(reader);
	return profile;
}

typedef int (*write_fn)(const struct pm_report *report, FILE *to, struct pm_error *err);

static char *text_of(const struct pm_report *report, write_fn write)
{
	struct pm_error err = { 0 };
	char *text = NULL;
	size_t len;
	FILE *to = open_memstream(&text, &len);

	assert_non_null(to);
	if (write(report, to, &err) < 0)
		fail_msg("%s", err.text);
	assert_int_equal(fclose(to), 0);
	assert_int_equal(strlen(text), len);
	return text;
}

/* Every line fits, and nothing in it moves a cursor. */
static void assert_tame(const char *text, size_t width)
{
	while (*text) {
		size_t len = strcspn(text, "\n");
		char *line = strndup(text, len);

		assert_int_equal(text[len], '\n');
		for (size_t i = 0; i < len; i++) {
			if ((unsigned char)line[i] < 0x20 || line[i] == 0x7f)
				fail_msg("control character in: %s", line);
			assert_false((unsigned char)line[i] == 0xc2 &&
				     (unsigned char)line[i + 1] < 0xa0);
		}
		if (width > 0 && pm_columns(line) > width)
			fail_msg("%zu columns, not %zu: %s", pm_columns(line), width,
				 line);
		free(line);
		text += len + 1;
	}
}

static void test_text_is_tame(void **state)
{
	struct pm_str file = hostile_file();
	struct pm_profile *profile = load(&file);

	for (int show = PM_SHOW_TABLE; show <= PM_SHOW_CALLEES; show++) {
		for (int key = PM_KEY_FUNCTION; key <= PM_KEY_ADDRESS; key++) {
			for (unsigned width = 80; width < 200; width += 40) {
				struct pm_report report = {
					.profile = profile,
					.event = PM_PROFILE_NONE,
					.show = (enum pm_report_show)show,
					.key = (enum pm_key)key,
					.function = "a",
					.limit = 0,
					.quiet = true,
					.width = width,
				};
				char *text = text_of(&report, pm_output_text);

				assert_tame(text, width);
				free(text);
				/* Words are not cut, so these lines may stick out. */
				report.quiet = false;
				text = text_of(&report, pm_output_text);
				assert_tame(text, 0);
				free(text);
			}
		}
	}
	pm_profile_free(profile);
	pm_str_release(&file);
}

static int write_folded(const struct pm_report *report, FILE *to, struct pm_error *err)
{
	return pm_output_folded(report, false, to, err);
}

static void test_folded_is_parsable(void **state)
{
	struct pm_str file = hostile_file();
	struct pm_profile *profile = load(&file);
	struct pm_report report = { .profile = profile, .event = 0 };
	char *text = text_of(&report, write_folded);
	uint64_t sum = 0;

	assert_tame(text, 0);
	for (char *save, *line = strtok_r(text, "\n", &save); line;
	     line = strtok_r(NULL, "\n", &save)) {
		char *count = strrchr(line, ' ');
		uint64_t value;

		assert_non_null(count);
		assert_true(pm_parse_u64(count + 1, &value));
		sum += value;
		assert_int_equal(strncmp(line, "semi:colon\\x0anewline;", 22), 0);
	}
	assert_int_equal(sum, 120);
	free(text);
	pm_profile_free(profile);
	pm_str_release(&file);
}

static int write_csv(const struct pm_report *report, FILE *to, struct pm_error *err)
{
	return pm_output_csv(report, ",", to, err);
}

/* Fields of the first line that is left, RFC 4180; 0 at the end. */
static size_t count_fields(const char **at)
{
	size_t fields = 1;
	bool quoted = false;

	if (**at == '\0')
		return 0;
	for (; **at && (quoted || **at != '\n'); (*at)++) {
		if (**at == '"')
			quoted = !quoted;
		else if (**at == ',' && !quoted)
			fields++;
	}
	assert_int_equal(**at, '\n');
	(*at)++;
	return fields;
}

static void test_csv_is_parsable(void **state)
{
	struct pm_str file = hostile_file();
	struct pm_profile *profile = load(&file);

	for (int key = PM_KEY_FUNCTION; key <= PM_KEY_ADDRESS; key++) {
		struct pm_report report = { .profile = profile,
					    .event = 0,
					    .key = (enum pm_key)key,
					    .limit = PM_LIMIT_DEFAULT };
		char *text = text_of(&report, write_csv);
		const char *at = text;
		size_t titles = count_fields(&at), fields;

		for (const char *c = text; *c; c++)
			if (((unsigned char)*c < 0x20 && *c != '\n' && *c != '\t') ||
			    *c == 0x7f || (c[0] == '\xc2' && (unsigned char)c[1] < 0xa0))
				fail_msg("control character before: %.40s", c + 1);
		assert_true(titles > 7);
		while ((fields = count_fields(&at)) > 0)
			assert_int_equal(fields, titles);
		free(text);
	}
	pm_profile_free(profile);
	pm_str_release(&file);
}

/* One sample in each of @functions, with names unless @nameless, and perhaps a note. */
static struct pm_str flat_file(unsigned functions, bool nameless, const char *note)
{
	struct pm_str file = { 0 };

	pm_str_printf(
		&file,
		"{\"type\":\"header\",\"format\":\"pmrec\",\"version\":1,\"pmrec\":\"0\","
		"\"created\":\"2024-05-06T07:08:09Z\",\"clock\":\"monotonic\",\"host\":{"
		"\"hostname\":\"h\",\"kernel\":\"k\",\"arch\":\"x\",\"cpus\":1,"
		"\"cpu_model\":null,\"virt\":null},\"command\":[],\"events\":[{\"id\":0,"
		"\"name\":\"e\",\"requested\":\"e\",\"actual\":\"e\",\"modifiers\":\"\","
		"\"unit\":\"events\",\"freq\":9}],\"options\":{\"call_graph\":\"dwarf\","
		"\"stack_bytes\":8,\"ring_bytes\":8}}\n"
		"{\"type\":\"module\",\"id\":0,\"path\":\"/x/m\",\"kind\":\"file\"}\n");
	if (note)
		pm_str_printf(&file, "{\"type\":\"note\",\"text\":\"%s\"}\n", note);
	for (unsigned i = 0; i < functions; i++) {
		pm_str_printf(&file,
			      "{\"type\":\"frame\",\"id\":%u,\"module\":0,\"address\":"
			      "\"0x%x\",\"how\":\"ip\"}\n"
			      "{\"type\":\"stack\",\"id\":%u,\"parent\":null,\"frames\":"
			      "[%u]}\n"
			      "{\"type\":\"sample\",\"time\":%u,\"pid\":1,\"tid\":1,"
			      "\"cpu\":0,\"event\":0,\"period\":2,\"stack\":%u}\n",
			      i, i, i, i, i, i);
		if (!nameless)
			pm_str_printf(&file,
				      "{\"type\":\"symbol\",\"frame\":%u,\"functions\":"
				      "[{\"name\":\"f%u\"}]}\n",
				      i, i);
	}
	pm_str_printf(&file,
		      "{\"type\":\"footer\",\"samples\":%u,\"lost\":0,\"throttled\":0,"
		      "\"truncated\":0,\"stops\":{},\"duration_ns\":9,\"cpu_ns\":9,"
		      "\"exit\":null,\"events\":[]}\n",
		      functions);
	return file;
}

/* What was recorded instead of a command; whoever named it cannot steer the terminal. */
static void test_target(void **state)
{
	struct pm_str file = flat_file(1, false, NULL), attached = { 0 };
	const char *at = strstr(file.data, "\"command\":[],");
	struct pm_report report = { .event = PM_PROFILE_NONE, .ascii = true };
	struct pm_profile *profile;
	char *text;

	assert_non_null(at);
	pm_str_printf(&attached, "%.*s\"command\":[],\"target\":\"-G a\\u001b[2J\",%s",
		      (int)(at - file.data), file.data, at + strlen("\"command\":[],"));
	profile = load(&attached);
	report.profile = profile;
	text = text_of(&report, pm_output_text);
	assert_true(strncmp(text, "pmrec -G a", 10) == 0);
	assert_null(strchr(text, '\033'));
	free(text);
	text = text_of(&report, pm_output_json);
	assert_non_null(strstr(text, ",\"target\":\"-G a\\u001b[2J\""));
	free(text);
	pm_profile_free(profile);
	pm_str_release(&attached);
	pm_str_release(&file);
}

/* What is left out for want of room is not said to be below the limit. */
static void test_left_out_rows(void **state)
{
	static const struct {
		unsigned functions;
		double limit;
		const char *said;
	} cases[] = {
		{ 40, PM_LIMIT_DEFAULT, "  ... 10 more (25.0% in all; --limit 0" },
		{ 400, PM_LIMIT_DEFAULT,
		  "  ... 390 more below 0.5% (97.5% in all; --lim" },
		{ 40, 3, "  ... 40 more below 3% (100.0% in all; --limit 0" },
	};

	for (size_t i = 0; i < PM_ARRAY_LEN(cases); i++) {
		struct pm_str file = flat_file(cases[i].functions, false, NULL);
		struct pm_profile *profile = load(&file);
		struct pm_report report = { .profile = profile,
					    .event = PM_PROFILE_NONE,
					    .limit = cases[i].limit,
					    .ascii = true,
					    .width = 80 };
		char *text = text_of(&report, pm_output_text);

		if (!strstr(text, cases[i].said))
			fail_msg("%s is not in: %s", cases[i].said, text);
		free(text);
		pm_profile_free(profile);
		pm_str_release(&file);
	}
}

/* Why no function has a name: told by the recorder, or the file has none. */
static void test_no_names_at_all(void **state)
{
	static const char told[] = "names were left out (--no-symbols)";

	for (int noted = 0; noted < 2; noted++) {
		struct pm_str file = flat_file(200, true, noted ? told : NULL);
		struct pm_profile *profile = load(&file);
		struct pm_report report = { .profile = profile,
					    .event = PM_PROFILE_NONE,
					    .limit = PM_LIMIT_DEFAULT };
		char *text = text_of(&report, pm_output_text);

		assert_int_equal(strstr(text, "--no-symbols") != NULL, noted);
		assert_int_equal(strstr(text, "100.0% in m (stripped;") != NULL, !noted);
		free(text);
		pm_profile_free(profile);
		pm_str_release(&file);
	}
}

static void test_errors_write_nothing(void **state)
{
	static const struct {
		const char *function;
		int code;
	} cases[] = {
		{ "nothing like it", -ENOENT },
		{ ".", -ENOTUNIQ },
		{ "[", -EINVAL },
	};
	struct pm_str file = hostile_file();
	struct pm_profile *profile = load(&file);

	for (size_t i = 0; i < PM_ARRAY_LEN(cases); i++) {
		struct pm_report report = { .profile = profile,
					    .event = PM_PROFILE_NONE,
					    .show = PM_SHOW_CALLERS,
					    .function = cases[i].function };
		write_fn formats[] = { pm_output_text, write_csv, pm_output_json };

		for (size_t f = 0; f < PM_ARRAY_LEN(formats); f++) {
			struct pm_error err = { 0 };
			char *text = NULL;
			size_t len;
			FILE *to = open_memstream(&text, &len);

			assert_int_equal(formats[f](&report, to, &err), cases[i].code);
			assert_int_equal(fclose(to), 0);
			assert_int_equal(len, 0);
			assert_true(err.text[0] != '\0');
			free(text);
		}
	}
	pm_profile_free(profile);
	pm_str_release(&file);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_operators_and_anonymous),
		cmocka_unit_test(test_cut_fits),
		cmocka_unit_test(test_cut_ends),
		cmocka_unit_test(test_numbers),
		cmocka_unit_test(test_shell),
		cmocka_unit_test(test_text_is_tame),
		cmocka_unit_test(test_folded_is_parsable),
		cmocka_unit_test(test_csv_is_parsable),
		cmocka_unit_test(test_target),
		cmocka_unit_test(test_left_out_rows),
		cmocka_unit_test(test_no_names_at_all),
		cmocka_unit_test(test_errors_write_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
