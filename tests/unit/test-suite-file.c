/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <sys/mman.h>

#include "pm/suite.h"
#include "tests/stat-documents.h"

static int file_of(const char *data, size_t len)
{
	int fd = memfd_create("suite", MFD_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, data, len), len);
	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	return fd;
}

/* NUL-terminated. */
static char *written(const struct pm_suite *suite, size_t *len)
{
	PM_AUTO_CLOSE int fd = file_of("", 0);
	char *data;

	assert_int_equal(pm_suite_write(suite, fd, NULL), 0);
	*len = (size_t)lseek(fd, 0, SEEK_END);
	data = calloc(1, *len + 1);
	assert_non_null(data);
	assert_int_equal(pread(fd, data, *len, 0), *len);
	return data;
}

static int read_bytes(struct pm_suite *suite, const char *data, size_t len,
		      struct pm_error *err)
{
	PM_AUTO_CLOSE int fd = file_of(data, len);

	return pm_suite_read(suite, fd, "suite.json", err);
}

static void add(struct pm_suite *suite, const char *name, bool whole)
{
	struct pm_stat stat = { 0 };

	if (whole)
		stat_whole(&stat);
	else
		stat_begin(&stat, "count");
	assert_int_equal(pm_suite_add(suite, name, &stat, NULL), 0);
	assert_null(stat.version);
}

/* ---- tests --------------------------------------------------------------------------------- */

static void test_round_trip(void **state)
{
	PM_CLEANUP(pm_suite_release) struct pm_suite suite = { 0 }, again = { 0 };
	PM_AUTO_FREE char *first = NULL, *second = NULL;
	size_t len, len_again;

	add(&suite, "BM_parse<int, 4>/64", true);
	add(&suite, "größe: \"x\\y\"", false);
	first = written(&suite, &len);
	assert_int_equal(read_bytes(&again, first, len, NULL), 0);
	assert_int_equal(again.cases.len, 2);
	assert_string_equal(again.cases.data[0].name, "BM_parse<int, 4>/64");
	assert_string_equal(again.cases.data[1].name, "größe: \"x\\y\"");
	assert_int_equal(again.cases.data[0].stat.runs.len,
			 suite.cases.data[0].stat.runs.len);
	second = written(&again, &len_again);
	assert_int_equal(len, len_again);
	assert_memory_equal(first, second, len);
	assert_ptr_equal(pm_suite_find(&again, "größe: \"x\\y\""), &again.cases.data[1]);
	assert_null(pm_suite_find(&again, NULL));
	assert_null(pm_suite_find(&again, "parse"));
}

/* The documents that pmstat writes are suites of one case. */
static void test_plain(void **state)
{
	PM_CLEANUP(pm_suite_release) struct pm_suite suite = { 0 };
	PM_CLEANUP(pm_stat_release) struct pm_stat stat = { 0 };
	PM_AUTO_FREE char *data = NULL;
	PM_AUTO_CLOSE int fd = file_of("", 0);
	size_t len;

	stat_whole(&stat);
	assert_int_equal(pm_stat_write(&stat, fd, NULL), 0);
	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	assert_int_equal(pm_suite_read(&suite, fd, "counts.json", NULL), 0);
	assert_int_equal(suite.cases.len, 1);
	assert_null(suite.cases.data[0].name);
	data = written(&suite, &len);
	assert_memory_equal(data, "{\"format\":\"pmstat\",", 19);
}

static void test_one_document_is_expected(void **state)
{
	PM_CLEANUP(pm_suite_release) struct pm_suite suite = { 0 };
	PM_AUTO_FREE char *data = NULL;
	PM_AUTO_CLOSE int fd = -1;
	struct pm_stat stat;
	struct pm_error err = { 0 };
	size_t len;

	add(&suite, "a", true);
	data = written(&suite, &len);
	fd = file_of(data, len);
	assert_int_equal(pm_stat_read(&stat, fd, "suite.json", &err), -EBADMSG);
	assert_non_null(strstr(err.text, "several cases"));
}

static void test_names(void **state)
{
	PM_CLEANUP(pm_suite_release) struct pm_suite suite = { 0 };
	char longest[PM_SUITE_NAME_MAX + 2];
	struct pm_stat stat = { 0 };
	struct pm_error err = { 0 };

	memset(longest, 'x', sizeof(longest));
	longest[PM_SUITE_NAME_MAX] = '\0';
	assert_null(pm_suite_name_check(longest));
	longest[PM_SUITE_NAME_MAX] = 'x';
	longest[PM_SUITE_NAME_MAX + 1] = '\0';
	assert_non_null(pm_suite_name_check(longest));
	assert_non_null(pm_suite_name_check(""));
	assert_non_null(pm_suite_name_check("a\nb"));
	assert_non_null(pm_suite_name_check("a\x1b[2J"));
	assert_non_null(pm_suite_name_check("a\x7f"));
	assert_non_null(pm_suite_name_check("a\xc2\x9b"));
	assert_non_null(pm_suite_name_check("a\xff"));
	assert_non_null(pm_suite_name_check("a\xe2\x82"));
	assert_null(pm_suite_name_check("BM_x<a, b>/8/64 µs"));
	add(&suite, "a", false);
	stat_begin(&stat, "count");
	assert_int_equal(pm_suite_add(&suite, "a", &stat, &err), -EINVAL);
	assert_non_null(strstr(err.text, "the same name: a"));
	assert_int_equal(pm_suite_add(&suite, "a\tb", &stat, &err), -EINVAL);
	assert_string_equal(stat.engine, "count"); /* still ours */
	assert_int_equal(suite.cases.len, 1);
	pm_stat_release(&stat);
}

static void test_rows_of_cases(void **state)
{
	assert_string_equal(pm_case_row("parse//sim.Ir"), "sim.Ir");
	assert_string_equal(pm_case_row("BM_x/8/64//fn:parse:sim.Ir"), "fn:parse:sim.Ir");
	assert_string_equal(pm_case_row("fetch/http://x//wall"), "wall");
	assert_string_equal(pm_case_row("a///cpu/cycles/"), "cpu/cycles/");
	assert_null(pm_case_row("cpu/cycles/"));
	assert_null(pm_case_row("cpu//"));
	assert_null(pm_case_row("//sim.Ir"));
	assert_null(pm_case_row(""));
}

static void test_cut_anywhere(void **state)
{
	PM_CLEANUP(pm_suite_release) struct pm_suite suite = { 0 };
	PM_AUTO_FREE char *data = NULL;
	size_t len;

	add(&suite, "a", false);
	add(&suite, "b", false);
	data = written(&suite, &len);
	for (size_t cut = 0; cut < len - 1; cut++) {
		struct pm_suite none = { 0 };
		struct pm_error err = { 0 };

		assert_int_equal(read_bytes(&none, data, cut, &err), -EBADMSG);
		assert_string_equal(err.source, "suite.json");
		assert_int_equal(none.cases.len, 0);
	}
}

#define LEAST                                                                        \
	"{\"format\":\"pmstat\",\"version\":1,\"pmstat\":\"\",\"created\":\"\","     \
	"\"engine\":\"\",\"target\":null,\"host\":{},\"subjects\":[],\"events\":[]," \
	"\"warmups\":0,\"runs\":[],\"scopes\":[],\"overhead\":null,\"metrics\":[],"  \
	"\"warnings\":[],\"settings\":[]}"
#define SUITE(cases) "{\"format\":\"pmstat-suite\",\"version\":1,\"cases\":" cases "}"

static void test_refused(void **state)
{
	static const struct {
		const char *text, *why;
		int code;
	} cases[] = {
		{ SUITE("[]"), "at least one", -EBADMSG },
		{ SUITE("{}"), "expected an array", -EBADMSG },
		{ SUITE("[1]"), "expected an object", -EBADMSG },
		{ SUITE("[{\"case\":\"a\"}]"), "stat: missing", -EBADMSG },
		{ SUITE("[{\"stat\":" LEAST "}]"), "case: missing", -EBADMSG },
		{ SUITE("[{\"case\":null,\"stat\":" LEAST "}]"), "a string", -EBADMSG },
		{ SUITE("[{\"case\":\"\",\"stat\":" LEAST "}]"), "is empty", -EBADMSG },
		{ SUITE("[{\"case\":\"a\\nb\",\"stat\":" LEAST "}]"), "control",
		  -EBADMSG },
		{ SUITE("[{\"case\":\"a\",\"stat\":[]}]"), "a document of pmstat",
		  -EBADMSG },
		{ SUITE("[{\"case\":\"a\",\"stat\":{\"format\":\"pmrec\"}}]"),
		  "a document of pmstat", -EBADMSG },
		{ SUITE("[{\"case\":\"a\",\"stat\":{\"format\":\"pmstat\","
			"\"version\":9}}]"),
		  "has version 9", -ENOTSUP },
		{ SUITE("[{\"case\":\"a\",\"stat\":" LEAST "},"
			"{\"case\":\"a\",\"stat\":" LEAST "}]"),
		  "two cases are called", -EBADMSG },
		{ "{\"format\":\"pmstat-suite\",\"version\":2,\"cases\":[]}",
		  "has version 2", -ENOTSUP },
		{ "{\"format\":\"pmstat-suite\",\"version\":0,\"cases\":[]}",
		  "at least 1", -EBADMSG },
		{ "{\"format\":\"pmstat-suite\"}", "version: missing", -EBADMSG },
		{ "{\"format\":\"pmdiff\"}", "no file of pmstat", -EBADMSG },
		{ "[]", "no file of pmstat", -EBADMSG },
	};

	for (size_t i = 0; i < PM_ARRAY_LEN(cases); i++) {
		struct pm_suite suite = { 0 };
		struct pm_error err = { 0 };

		assert_int_equal(
			read_bytes(&suite, cases[i].text, strlen(cases[i].text), &err),
			cases[i].code);
		if (!strstr(err.text, cases[i].why))
			fail_msg("%s: %s", cases[i].text, err.text);
		assert_int_equal(suite.cases.len, 0);
	}
}

static void test_what_cannot_be_written(void **state)
{
	PM_CLEANUP(pm_suite_release) struct pm_suite suite = { 0 };
	PM_AUTO_CLOSE int fd = file_of("", 0);
	struct pm_error err = { 0 };

	assert_int_equal(pm_suite_write(&suite, fd, &err), -EINVAL);
	add(&suite, NULL, false);
	add(&suite, "b", false);
	assert_int_equal(pm_suite_write(&suite, fd, &err), -EINVAL);
	assert_non_null(strstr(err.text, "has no name"));
	suite.cases.data[0].name = stat_text("a");
	free(suite.cases.data[1].stat.engine);
	suite.cases.data[1].stat.engine = NULL;
	assert_int_equal(pm_suite_write(&suite, fd, &err), -EINVAL);
	assert_int_equal(lseek(fd, 0, SEEK_END), 0); /* not a byte */
	suite.cases.data[1].stat.engine = stat_text("count");
	assert_int_equal(pm_suite_write(&suite, -1, &err), -EBADF);
	assert_int_equal(pm_suite_write(&suite, fd, &err), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_round_trip),
		cmocka_unit_test(test_plain),
		cmocka_unit_test(test_one_document_is_expected),
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_rows_of_cases),
		cmocka_unit_test(test_cut_anywhere),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_what_cannot_be_written),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
