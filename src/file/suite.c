/* SPDX-License-Identifier: MIT */
/* The documents of several cases in one file, in the form of docs/format.md §10. */
#include "pm/suite.h"

#include <string.h>

#include "parse-values.h"
#include "stat-internal.h"

/* ---- names ----------------------------------------------------------------------------- */

/* U+0080 … U+009F are control characters, too; in UTF-8 all of them start with C2. */
static bool is_control(const char *at, size_t len)
{
	unsigned char c = (unsigned char)at[0], next = len > 1 ? (unsigned char)at[1] : 0;

	return c < 0x20 || c == 0x7f || (c == 0xc2 && next < 0xa0);
}

const char *pm_suite_name_check(const char *name)
{
	size_t len = strlen(name), one;

	if (len == 0)
		return "the name of a case is empty";
	if (len > PM_SUITE_NAME_MAX)
		return "the name of a case has more than 200 bytes";
	for (size_t at = 0; at < len; at += one) {
		one = pm_utf8_char(name + at, len - at);
		if (one == 0)
			return "the name of a case is no UTF-8";
		if (is_control(name + at, one))
			return "the name of a case has a control character in it";
	}
	return NULL;
}

const char *pm_case_row(const char *text)
{
	const char *found = NULL;

	for (const char *at = strstr(text, PM_CASE_SEPARATOR); at;
	     at = strstr(at + 1, PM_CASE_SEPARATOR))
		if (at > text && at[strlen(PM_CASE_SEPARATOR)] != '\0')
			found = at + strlen(PM_CASE_SEPARATOR);
	return found;
}

static bool is_same_name(const char *a, const char *b)
{
	if (a && b)
		return strcmp(a, b) == 0;
	return a == b;
}

const struct pm_suite_case *pm_suite_find(const struct pm_suite *suite, const char *name)
{
	for (size_t i = 0; i < suite->cases.len; i++)
		if (is_same_name(suite->cases.data[i].name, name))
			return &suite->cases.data[i];
	return NULL;
}

/* ---- in memory ------------------------------------------------------------------------- */

int pm_suite_add(struct pm_suite *suite, const char *name, struct pm_stat *stat,
		 struct pm_error *err)
{
	struct pm_suite_case one = { 0 };
	const char *wrong = name ? pm_suite_name_check(name) : NULL;

	if (!wrong && pm_suite_find(suite, name)) {
		if (name)
			wrong = "two cases have the same name";
		else
			wrong = "two cases have no name";
	}
	if (wrong)
		return pm_error_set(err, -EINVAL, "%s%s%.200s", wrong,
				    name && name[0] ? ": " : "", pm_text_or_empty(name));
	if (suite->cases.len == PM_SUITE_CASES_MAX)
		return pm_error_set(err, -EFBIG, "has more than %d cases",
				    PM_SUITE_CASES_MAX);
	if (pm_stat_text(&one.name, name) < 0 || pm_vec_push(&suite->cases, one) < 0) {
		free(one.name);
		return pm_error_set(err, -ENOMEM, "out of memory");
	}
	suite->cases.data[suite->cases.len - 1].stat = *stat;
	*stat = (struct pm_stat){ 0 };
	return 0;
}

void pm_suite_release(struct pm_suite *suite)
{
	for (size_t i = 0; i < suite->cases.len; i++) {
		free(suite->cases.data[i].name);
		pm_stat_release(&suite->cases.data[i].stat);
	}
	pm_vec_release(&suite->cases);
}

/* ---- writing --------------------------------------------------------------------------- */

static int put_suite(struct pm_str *out, const struct pm_suite *suite,
		     struct pm_error *err)
{
	int ret = 0;

	pm_str_printf(out, "{\"format\":\"pmstat-suite\",\"version\":%d,\"cases\":[",
		      PM_SUITE_VERSION);
	for (size_t i = 0; i < suite->cases.len && ret == 0; i++) {
		const struct pm_suite_case *one = &suite->cases.data[i];

		if (!one->name)
			return pm_error_set(
				err, -EINVAL,
				"cannot be written: one of several cases has no "
				"name");
		pm_str_puts(out, i == 0 ? "\n{\"case\":" : ",\n{\"case\":");
		pm_str_json(out, one->name);
		pm_str_puts(out, ",\"stat\":\n");
		ret = pm_stat_put(out, &one->stat, err);
		pm_str_puts(out, "}");
	}
	pm_str_puts(out, "]}\n");
	return ret;
}

int pm_suite_write(const struct pm_suite *suite, int fd, struct pm_error *err)
{
	PM_CLEANUP(pm_str_release) struct pm_str out = { 0 };
	int ret;

	if (suite->cases.len == 0)
		return pm_error_set(err, -EINVAL, "cannot be written: it has no cases");
	if (suite->cases.len == 1 && !suite->cases.data[0].name)
		return pm_stat_write(&suite->cases.data[0].stat, fd, err);
	ret = put_suite(&out, suite, err);
	if (ret < 0)
		return ret;
	return pm_stat_write_bytes(fd, &out, err);
}

/* ---- reading --------------------------------------------------------------------------- */

static int parse_case(struct pm_suite *suite, struct fields *fields, struct pm_error *err)
{
	const char *name = get_text(fields, "case"), *format = NULL, *wrong = NULL;
	const json_t *document = get(fields, "stat");
	struct pm_stat stat;
	int ret;

	if (fields->failed == 0) {
		wrong = pm_suite_name_check(name);
		format = json_string_value(json_object_get(document, "format"));
	}
	if (wrong)
		fail(fields, "case", "%s", wrong);
	else if (fields->failed == 0 && (!format || strcmp(format, "pmstat") != 0))
		fail(fields, "stat", "expected a document of pmstat");
	else if (fields->failed == 0 && pm_suite_find(suite, name))
		fail(fields, "case", "two cases are called \"%.200s\"", name);
	if (fields->failed != 0)
		return fields->failed;
	ret = pm_stat_parse(&stat, document, err);
	if (ret < 0)
		return ret;
	ret = pm_suite_add(suite, name, &stat, err);
	if (ret < 0)
		pm_stat_release(&stat);
	return ret;
}

static int parse_suite(struct pm_suite *suite, const json_t *root, struct pm_error *err)
{
	struct fields fields = { .object = root, .err = err, .name = "suite" };
	uint64_t version = get_u64(&fields, "version");
	const json_t *cases;

	if (fields.failed == 0 && version > PM_SUITE_VERSION)
		return pm_error_set(err, -ENOTSUP,
				    "has version %llu, this program knows %d",
				    (unsigned long long)version, PM_SUITE_VERSION);
	if (fields.failed == 0 && version == 0)
		fail(&fields, "version", "expected at least 1");
	cases = get_array(&fields, "cases");
	if (fields.failed == 0 && json_array_size(cases) == 0)
		fail(&fields, "cases", "expected at least one");
	if (fields.failed == 0 && json_array_size(cases) > PM_SUITE_CASES_MAX)
		return pm_error_set(err, -EFBIG, "has more than %d cases",
				    PM_SUITE_CASES_MAX);
	for (size_t i = 0; fields.failed == 0 && i < json_array_size(cases); i++) {
		struct fields one = get_element(&fields, "cases", cases, i);
		int ret = one.failed != 0 ? one.failed : parse_case(suite, &one, err);

		if (ret < 0)
			return ret;
	}
	return fields.failed;
}

static int parse_plain(struct pm_suite *suite, const json_t *root, struct pm_error *err)
{
	struct pm_stat stat;
	int ret = pm_stat_parse(&stat, root, err);

	if (ret < 0)
		return ret;
	ret = pm_suite_add(suite, NULL, &stat, err);
	if (ret < 0)
		pm_stat_release(&stat);
	return ret;
}

static int parse_suite_root(struct pm_suite *suite, const json_t *root,
			    struct pm_error *err)
{
	const char *format = json_string_value(json_object_get(root, "format"));

	if (format && strcmp(format, "pmstat-suite") == 0)
		return parse_suite(suite, root, err);
	if (format && strcmp(format, "pmstat") == 0)
		return parse_plain(suite, root, err);
	return pm_error_set(err, -EBADMSG, "is no file of pmstat");
}

int pm_suite_read(struct pm_suite *out, int fd, const char *name, struct pm_error *err)
{
	PM_CLEANUP(pm_str_release) struct pm_str text = { 0 };
	PM_CLEANUP(pm_suite_release) struct pm_suite suite = { 0 };
	json_t *root = NULL;
	int ret = pm_stat_read_bytes(&text, fd, err);

	if (ret == 0)
		ret = pm_stat_load_json(&root, &text, err);
	if (ret == 0)
		ret = parse_suite_root(&suite, root, err);
	json_decref(root);
	if (ret < 0) {
		pm_error_where(err, name, -1);
		return ret;
	}
	*out = suite;
	suite = (struct pm_suite){ 0 };
	return 0;
}
