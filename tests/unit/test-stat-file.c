/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <sys/mman.h>

#include "tests/stat-documents.h"

/* ---- bytes in a file that has no name ------------------------------------------------------ */

static int file_of(const char *data, size_t len)
{
	int fd = memfd_create("stat", MFD_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, data, len), len);
	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	return fd;
}

/* NUL-terminated. */
static char *bytes_of(int fd, size_t *len)
{
	char *data;

	*len = (size_t)lseek(fd, 0, SEEK_END);
	data = calloc(1, *len + 1);
	assert_non_null(data);
	assert_int_equal(pread(fd, data, *len, 0), *len);
	return data;
}

static char *written(const struct pm_stat *stat, size_t *len)
{
	PM_AUTO_CLOSE int fd = file_of("", 0);

	assert_int_equal(pm_stat_write(stat, fd, NULL), 0);
	return bytes_of(fd, len);
}

static int read_bytes(struct pm_stat *stat, const char *data, size_t len,
		      struct pm_error *err)
{
	PM_AUTO_CLOSE int fd = file_of(data, len);

	return pm_stat_read(stat, fd, "counts.json", err);
}

/* @data with the first @from in it made @to, read; the line that it is refused with. */
static int read_changed(const char *data, const char *from, const char *to,
			struct pm_error *err)
{
	const char *at = strstr(data, from);
	struct pm_stat stat = { 0 };
	struct pm_str changed = { 0 };
	int r;

	if (!at)
		fail_msg("no %s", from);
	pm_str_append(&changed, data, (size_t)(at - data));
	pm_str_puts(&changed, to);
	pm_str_puts(&changed, at + strlen(from));
	r = read_bytes(&stat, changed.data, changed.len, err);
	pm_stat_release(&stat);
	pm_str_release(&changed);
	return r;
}

/* ---- tests --------------------------------------------------------------------------------- */

static void test_round_trip(void **state)
{
	PM_CLEANUP(pm_stat_release) struct pm_stat stat = { 0 }, again = { 0 };
	PM_AUTO_FREE char *first = NULL, *second = NULL;
	size_t len, len_again;
	struct pm_error err = { 0 };

	stat_whole(&stat);
	first = written(&stat, &len);
	assert_int_equal(strncmp(first, "{\"format\":\"pmstat\",\"version\":1,", 31), 0);
	assert_true(first[len - 1] == '\n');
	if (read_bytes(&again, first, len, &err) < 0)
		fail_msg("%s", err.text);
	second = written(&again, &len_again);
	assert_string_equal(first, second);
	assert_int_equal(len, len_again);
}

static void assert_same_value(const struct pm_stat_value *a,
			      const struct pm_stat_value *b)
{
	assert_int_equal(a->state, b->state);
	assert_true(a->value == b->value && a->raw == b->raw &&
		    a->enabled_ns == b->enabled_ns && a->running_ns == b->running_ns);
}

static void test_nothing_is_lost(void **state)
{
	PM_CLEANUP(pm_stat_release) struct pm_stat stat = { 0 }, again = { 0 };
	PM_AUTO_FREE char *data = NULL;
	const struct pm_stat_run *run;
	const struct pm_stat_scope *scope;
	size_t len;

	stat_whole(&stat);
	data = written(&stat, &len);
	assert_int_equal(read_bytes(&again, data, len, NULL), 0);
	assert_int_equal(again.events.len, 6);
	assert_true(again.events.data[3].scale == stat.events.data[3].scale);
	assert_string_equal(again.events.data[4].why, stat.events.data[4].why);
	assert_int_equal(again.events.data[2].group, 0);
	assert_int_equal(again.events.data[3].group, -1);
	assert_int_equal(again.host.paranoid, -1);
	assert_string_equal(again.subjects.data[0].commit, stat.subjects.data[0].commit);
	assert_int_equal(again.subjects.data[0].commit_time, 1700000000);
	assert_int_equal(again.subjects.data[0].dirty, 1);
	assert_null(again.subjects.data[1].commit);
	run = &again.runs.data[0];
	assert_true(run->exited && run->exit_code == 0 && run->signal == 0);
	assert_true(run->values[3].value == UINT64_MAX);
	assert_same_value(&run->values[2], &stat.runs.data[0].values[2]);
	assert_int_equal(run->values[4].state, PM_STAT_NOT_SUPPORTED);
	assert_int_equal(run->values[5].state, PM_STAT_NOT_PERMITTED);
	assert_string_equal(run->rows.data[0].comm, "a\033[31m\"b\xef\xbf\xbd");
	assert_int_equal(run->intervals.data[0].rows.data[0].cpu, 1);
	assert_null(run->intervals.data[0].rows.data[0].comm);
	assert_true(again.runs.data[1].signal == 6 &&
		    again.runs.data[1].exit_code == -1 && again.runs.data[1].exited);
	assert_true(!again.runs.data[2].exited && again.runs.data[2].stopped);
	scope = &again.scopes.data[0];
	assert_true(scope->per_call[0].p99 == 12 && !scope->per_call[1].known);
	assert_true(scope->lost == 5 && !scope->calls_exact && scope->nested == 3);
	assert_string_equal(scope->callers.data[0].frames.data[0].function, "main");
	assert_null(scope->callers.data[0].frames.data[1].function);
	assert_null(again.scopes.data[1].per_call);
	assert_true(again.metrics.data[2].value == 1.0 / 3);
	assert_false(again.metrics.data[1].known);
}

/* An attached run of no events: as little as there can be. */
static void test_least(void **state)
{
	PM_CLEANUP(pm_stat_release) struct pm_stat stat = { 0 }, again = { 0 };
	PM_AUTO_FREE char *data = NULL;
	size_t len;

	stat_begin(&stat, "count");
	data = written(&stat, &len);
	assert_int_equal(read_bytes(&again, data, len, NULL), 0);
	assert_int_equal(again.runs.len, 0);
	assert_int_equal(again.host.paranoid, INT32_MIN);
	assert_int_equal(again.host.smt, -1);
	assert_null(again.host.hostname);
	assert_null(again.overhead);
}

static void test_unknown_origin(void **state)
{
	PM_CLEANUP(pm_stat_release) struct pm_stat stat = { 0 }, again = { 0 };
	PM_AUTO_FREE char *data = NULL;
	size_t len;

	stat_whole(&stat);
	stat.subjects.data[0].commit_time = -1;
	stat.subjects.data[0].dirty = -1;
	data = written(&stat, &len);
	assert_int_equal(read_bytes(&again, data, len, NULL), 0);
	assert_int_equal(again.subjects.data[0].commit_time, -1);
	assert_int_equal(again.subjects.data[0].dirty, -1);
}

/* Runs and scopes of both, in order, and every warning once. */
static void test_join(void **state)
{
	PM_CLEANUP(pm_stat_join_release) struct pm_stat joined = { 0 };
	PM_CLEANUP(pm_stat_release) struct pm_stat again = { 0 };
	struct pm_stat stats[2] = { 0 };
	PM_AUTO_FREE char *data = NULL;
	size_t len;

	stat_whole(&stats[0]);
	stat_whole(&stats[1]);
	stat_warning(&stats[1], "Another one.");
	stats[1].runs.data[0].values[1].value = 124;
	assert_int_equal(pm_stat_join(&joined, stats, 2, NULL), 0);
	assert_int_equal(joined.runs.len, 6);
	assert_int_equal(joined.runs.data[3].values[1].value, 124);
	assert_int_equal(joined.scopes.len, 4);
	assert_int_equal(joined.scopes.data[1].run, 1);
	assert_int_equal(joined.scopes.data[3].run, 4);
	assert_int_equal(joined.warnings.len, 2);
	assert_int_equal(joined.metrics.len, 0);
	data = written(&joined, &len);
	assert_int_equal(read_bytes(&again, data, len, NULL), 0);
	assert_int_equal(again.scopes.data[3].run, 4);
	pm_stat_release(&stats[0]);
	pm_stat_release(&stats[1]);
}

static void test_what_cannot_be_joined(void **state)
{
	struct pm_stat stats[2] = { 0 }, joined = { 0 };
	struct pm_error err = { 0 };

	stat_whole(&stats[0]);
	stat_whole(&stats[1]);
	stats[1].events.data[2].user_only = false;
	assert_int_equal(pm_stat_join(&joined, stats, 2, &err), -EINVAL);
	assert_non_null(strstr(err.text, "events"));
	stats[1].engine[0] = 'x';
	assert_int_equal(pm_stat_join(&joined, stats, 2, &err), -EINVAL);
	assert_non_null(strstr(err.text, "engines"));
	assert_int_equal(pm_stat_join(&joined, stats, 0, &err), -EINVAL);
	assert_null(joined.version);
	pm_stat_release(&stats[0]);
	pm_stat_release(&stats[1]);
}

static void test_unknown_keys_are_passed_over(void **state)
{
	PM_CLEANUP(pm_stat_release) struct pm_stat stat = { 0 };
	PM_AUTO_FREE char *data = NULL;
	struct pm_error err = { 0 };
	size_t len;

	stat_whole(&stat);
	data = written(&stat, &len);
	assert_int_equal(read_changed(data, "{\"value\":",
				      "{\"of a later version\":[{}],\"value\":", &err),
			 0);
	assert_int_equal(read_changed(data, "\"runs\":", "\"news\":{},\"runs\":", &err),
			 0);
}

static void test_refused(void **state)
{
	static const struct {
		const char *from, *to;
		int code;
		const char *text;
	} cases[] = {
		{ "pmstat\",\"v", "other\",\"v", -EBADMSG, "no file of pmstat" },
		{ "\"version\":1", "\"version\":2", -ENOTSUP, "has version 2" },
		{ "\"version\":1", "\"version\":0", -EBADMSG, "at least 1" },
		{ "\"status\":\"ok\"", "\"status\":\"fine\"", -EBADMSG, "\"fine\"" },
		{ "{\"value\":123,", "{\"value\":-1,", -EBADMSG, "non-negative" },
		{ "{\"value\":123,", "{\"value\":1.5,", -EBADMSG, "non-negative" },
		{ "{\"value\":123,", "{\"value\":null,", -EBADMSG, "value" },
		{ "{\"value\":123,", "{", -EBADMSG, "missing" },
		{ "{\"value\":null,", "{\"value\":7,", -EBADMSG, "expected null" },
		{ "{\"value\":\"0xff", "{\"value\":\"0xffff", -EBADMSG, "hexadecimal" },
		{ "\"counts\":[", "\"counts\":[{\"value\":1,\"status\":\"ok\"},",
		  -EBADMSG, "expected 6 values" },
		{ "\"variant\":1", "\"variant\":2", -EBADMSG, "among the subjects" },
		{ "\"variant\":1", "\"variant\":64", -EBADMSG, "at most 63" },
		{ "{\"run\":1", "{\"run\":3", -EBADMSG, "run of a scope" },
		{ "\"scope\":1,", "\"scope\":2,", -EBADMSG, "scope of a metric" },
		{ "\"event\":2", "\"event\":6", -EBADMSG, "event of a metric" },
		{ "\"scale\":1", "\"scale\":0", -EBADMSG, "scale" },
		{ "\"signal\":6", "\"signal\":6,\"exit_code\":0", -EBADMSG, "" },
		{ "\"signal\":6", "\"signal\":0", -EBADMSG, "signal" },
		{ "\"kind\":\"range", "\"kind\":\"orange", -EBADMSG, "orange" },
		{ "\"better\":\"less", "\"better\":\"worse", -EBADMSG, "better" },
		{ "\"low\":\"0x1139", "\"low\":\"1139", -EBADMSG, "hexadecimal" },
		{ "\"subtracted\":true", "\"subtracted\":1", -EBADMSG, "true or false" },
		{ "\"argv\":[\"", "\"argv\":[1,\"", -EBADMSG, "expected strings" },
		{ "\"frames\":[{", "\"frames\":[7,{", -EBADMSG, "expected an object" },
		{ "\"per_call\":[{", "\"per_call\":[null,{", -EBADMSG,
		  "one for each event" },
		{ "\"commit\":\"", "\"commit\":1,\"x\":\"", -EBADMSG, "commit" },
		{ "\"commit_time\":1", "\"commit_time\":-1", -EBADMSG, "commit_time" },
		{ "\"dirty\":true", "\"dirty\":1", -EBADMSG, "true or false" },
		{ "\"host\":{", "\"host\":3,\"x\":{", -EBADMSG, "expected an object" },
		{ "\"comm\":\"a", "\"comm\":\"\\u0000a", -EBADMSG, "JSON" },
		{ "]}\n", "]}\n{}", -EBADMSG, "JSON" },
	};
	PM_CLEANUP(pm_stat_release) struct pm_stat stat = { 0 };
	PM_AUTO_FREE char *data = NULL;
	size_t len;

	stat_whole(&stat);
	data = written(&stat, &len);
	for (size_t i = 0; i < PM_ARRAY_LEN(cases); i++) {
		struct pm_error err = { 0 };
		int r = read_changed(data, cases[i].from, cases[i].to, &err);

		if (r != cases[i].code || err.code != r ||
		    !strstr(err.text, cases[i].text) ||
		    strcmp(err.source, "counts.json") != 0)
			fail_msg("%s: %d, %s: %s", cases[i].to, r, err.source, err.text);
	}
}

static void test_cut_anywhere(void **state)
{
	PM_CLEANUP(pm_stat_release) struct pm_stat stat = { 0 }, none = { 0 };
	PM_AUTO_FREE char *data = NULL;
	size_t len;

	stat_whole(&stat);
	data = written(&stat, &len);
	/* Without the newline it is whole. */
	for (size_t cut = 0; cut < len - 1; cut += cut < 200 ? 1 : 37) {
		struct pm_error err = { 0 };

		assert_int_equal(read_bytes(&none, data, cut, &err), -EBADMSG);
		assert_true(err.text[0] != '\0');
		assert_null(none.version);
	}
	assert_int_equal(read_bytes(&none, data, len - 1, NULL), 0);
}

static void test_foreign_and_large(void **state)
{
	static const char recording[] =
		"{\"type\":\"header\",\"format\":\"pmrec\"}\n{}\n";
	struct pm_stat none = { 0 };
	struct pm_error err = { 0 };
	size_t len = (4 << 20) + 100;
	PM_AUTO_FREE char *many = malloc(len);

	assert_int_equal(read_bytes(&none, recording, sizeof(recording) - 1, &err),
			 -EBADMSG);
	assert_non_null(strstr(err.text, "recording of pmrec"));
	assert_int_equal(read_bytes(&none, "[]", 2, &err), -EBADMSG);
	assert_non_null(many);
	memset(many, '[', len);
	assert_int_equal(read_bytes(&none, many, len, &err), -EFBIG);
	assert_int_equal(read_bytes(&none, many, 100000, &err), -EBADMSG);
	assert_int_equal(pm_stat_read(&none, -1, "nothing", &err), -EBADF);
	assert_string_equal(err.source, "nothing");
}

static void test_what_cannot_be_written(void **state)
{
	PM_CLEANUP(pm_stat_release) struct pm_stat stat = { 0 };
	PM_AUTO_CLOSE int fd = file_of("", 0);
	struct pm_error err = { 0 };

	stat_whole(&stat);
	stat.runs.data[0].variant = 2;
	assert_int_equal(pm_stat_write(&stat, fd, &err), -EINVAL);
	stat.runs.data[0].variant = 0;
	stat.events.data[0].scale = 0;
	assert_int_equal(pm_stat_write(&stat, fd, &err), -EINVAL);
	stat.events.data[0].scale = 1;
	stat.metrics.data[0].event = 6;
	assert_int_equal(pm_stat_write(&stat, fd, &err), -EINVAL);
	stat.metrics.data[0].event = 0;
	free(stat.runs.data[0].values);
	stat.runs.data[0].values = NULL;
	assert_int_equal(pm_stat_write(&stat, fd, &err), -EINVAL);
	assert_non_null(strstr(err.text, "values are missing"));
	assert_int_equal(lseek(fd, 0, SEEK_END), 0); /* not a byte */
	stat.runs.data[0].values = pm_stat_values_new(6);
	assert_int_equal(pm_stat_write(&stat, -1, &err), -EBADF);
	assert_int_equal(pm_stat_write(&stat, fd, &err), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_round_trip),
		cmocka_unit_test(test_nothing_is_lost),
		cmocka_unit_test(test_least),
		cmocka_unit_test(test_unknown_origin),
		cmocka_unit_test(test_join),
		cmocka_unit_test(test_what_cannot_be_joined),
		cmocka_unit_test(test_unknown_keys_are_passed_over),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_cut_anywhere),
		cmocka_unit_test(test_foreign_and_large),
		cmocka_unit_test(test_what_cannot_be_written),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
