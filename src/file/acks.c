/* SPDX-License-Identifier: MIT */
/* Accepted regressions as JSON (docs/pmdiff-acks.schema.json), and the parts of pmdiff's
 * results that can be accepted. */
#include "pm/acks.h"

#include <fcntl.h>
#include <math.h>

#include "parse-values.h"
#include "stat-internal.h"

enum {
	TEXT_MAX = 4096, /* bytes of a row or a reason */
};

void pm_ack_release(struct pm_ack *ack)
{
	free(ack->row);
	free(ack->reason);
	free(ack->commit);
	free(ack->created);
	*ack = (struct pm_ack){ 0 };
}

void pm_acks_release(struct pm_acks *acks)
{
	for (size_t i = 0; i < acks->list.len; i++)
		pm_ack_release(&acks->list.data[i]);
	pm_vec_release(&acks->list);
}

/* ---- the list -------------------------------------------------------------------------- */

/* Returns the index of @row, or where it would be inserted. */
static size_t acks_find_place(const struct pm_acks *acks, const char *row, bool *found)
{
	size_t low = 0, high = acks->list.len;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (strcmp(acks->list.data[middle].row, row) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	*found = low < acks->list.len && strcmp(acks->list.data[low].row, row) == 0;
	return low;
}

const struct pm_ack *pm_acks_find(const struct pm_acks *acks, const char *row)
{
	bool found;
	size_t at = acks_find_place(acks, row, &found);

	if (!found)
		return NULL;
	return &acks->list.data[at];
}

/* Readers refuse longer strings. */
static int check_length(const char *what, const char *text, struct pm_error *err)
{
	if (!text || strlen(text) <= TEXT_MAX)
		return 0;
	return pm_error_set(err, -EFBIG, "%s %.60s… has more than %d bytes", what, text,
			    TEXT_MAX);
}

int pm_acks_set(struct pm_acks *acks, struct pm_ack *ack, struct pm_error *err)
{
	bool found;
	size_t at = acks_find_place(acks, ack->row, &found);
	int ret = check_length("the row", ack->row, err);

	if (ret == 0)
		ret = check_length("the reason", ack->reason, err);
	if (ret < 0)
		return ret;
	if (!found && acks->list.len >= PM_ACKS_MAX)
		return pm_error_set(err, -EFBIG, "more than %d regressions are accepted",
				    PM_ACKS_MAX);
	if (found) {
		pm_ack_release(&acks->list.data[at]);
	} else {
		if (pm_vec_reserve(&acks->list, acks->list.len + 1) < 0)
			return pm_error_set(err, -ENOMEM, "out of memory");
		memmove(&acks->list.data[at + 1], &acks->list.data[at],
			(acks->list.len - at) * sizeof(*acks->list.data));
		acks->list.len++;
	}
	acks->list.data[at] = *ack;
	*ack = (struct pm_ack){ 0 };
	return 0;
}

bool pm_acks_remove(struct pm_acks *acks, const char *row)
{
	bool found;
	size_t at = acks_find_place(acks, row, &found);

	if (!found)
		return false;
	pm_ack_release(&acks->list.data[at]);
	memmove(&acks->list.data[at], &acks->list.data[at + 1],
		(acks->list.len - at - 1) * sizeof(*acks->list.data));
	acks->list.len--;
	return true;
}

/* ---- writing --------------------------------------------------------------------------- */

static void put_ack_number(struct pm_str *out, const char *key, double number)
{
	pm_str_puts(out, key);
	/* Readers parse "-0" as an integer. */
	if (isfinite(number))
		pm_str_printf(out, "%.17g", number == 0 ? 0 : number);
	else
		pm_str_puts(out, "null");
}

static void put_ack_text(struct pm_str *out, const char *key, const char *text)
{
	pm_str_puts(out, key);
	pm_str_json(out, text);
}

void pm_acks_put(struct pm_str *out, const struct pm_acks *acks)
{
	pm_str_printf(out, "{\"format\":\"pmdiff-acks\",\"version\":%d,\"acks\":[",
		      PM_ACKS_VERSION);
	for (size_t i = 0; i < acks->list.len; i++) {
		const struct pm_ack *ack = &acks->list.data[i];

		put_ack_text(out, i == 0 ? "\n{\"row\":" : ",\n{\"row\":", ack->row);
		put_ack_number(out, ",\"from\":", ack->from);
		put_ack_number(out, ",\"to\":", ack->to);
		put_ack_text(out, ",\"reason\":", ack->reason);
		put_ack_text(out, ",\"commit\":", ack->commit);
		put_ack_text(out, ",\"created\":", ack->created);
		pm_str_putc(out, '}');
	}
	pm_str_puts(out, "\n]}\n");
}

/* ---- reading --------------------------------------------------------------------------- */

static double get_ack_number(struct fields *fields, const char *key)
{
	const json_t *value = json_object_get(fields->object, key);

	if (!value || json_is_null(value))
		return NAN;
	if (!json_is_number(value))
		fail(fields, key, "expected a number or null");
	return json_number_value(value);
}

static char *copy_ack_text(struct fields *fields, const char *key, const char *text)
{
	char *copy = NULL;

	if (text && strlen(text) > TEXT_MAX)
		fail(fields, key, "expected at most %d bytes", TEXT_MAX);
	else if (text && pm_stat_text(&copy, text) < 0)
		fail_memory(fields);
	return copy;
}

static void read_ack(struct pm_acks *acks, struct fields *fields)
{
	struct pm_ack ack = { .from = get_ack_number(fields, "from"),
			      .to = get_ack_number(fields, "to") };

	ack.row = copy_ack_text(fields, "row", get_text(fields, "row"));
	ack.reason = copy_ack_text(fields, "reason", get_text(fields, "reason"));
	ack.commit = copy_ack_text(fields, "commit", get_text_or_null(fields, "commit"));
	ack.created =
		copy_ack_text(fields, "created", get_text_or_null(fields, "created"));
	if (fields->failed == 0 && !isfinite(ack.to))
		fail(fields, "to", "expected a number: the level that was accepted");
	if (fields->failed == 0 && ack.row[0] == '\0')
		fail(fields, "row", "expected a row, as \"fn:parse:sim.Ir\"");
	if (fields->failed == 0 && ack.reason[0] == '\0')
		fail(fields, "reason", "expected why it was accepted");
	if (fields->failed == 0 && pm_acks_find(acks, ack.row))
		fail(fields, "row", "%.200s is there twice", ack.row);
	if (fields->failed == 0)
		fields->failed = pm_acks_set(acks, &ack, fields->err);
	pm_ack_release(&ack);
}

/* Loads an object that has this format and version. Returns -ENOENT if there is no
 * file. */
static int load_json_file(json_t **out, const char *path, const char *format,
			  uint64_t version, struct pm_error *err)
{
	PM_CLEANUP(pm_str_release) struct pm_str text = { 0 };
	PM_AUTO_CLOSE int fd = open(path, O_RDONLY | O_NOCTTY | O_CLOEXEC);
	struct fields fields = { .err = err, .name = "document" };
	const char *found;
	json_t *root;
	int ret;

	if (fd < 0)
		return pm_error_set(err, -errno, "cannot be read: %s", strerror(errno));
	ret = pm_stat_read_bytes(&text, fd, err);
	if (ret == 0)
		ret = pm_stat_load_json(&root, &text, err);
	if (ret < 0)
		return ret;
	fields.object = root;
	found = json_string_value(json_object_get(root, "format"));
	if (!found || strcmp(found, format) != 0)
		fields.failed =
			pm_error_set(err, -EBADMSG, "is no file of format %s", format);
	if (fields.failed == 0 && get_u64(&fields, "version") > version)
		fields.failed = pm_error_set(
			err, -ENOTSUP, "has a version that this program does not know");
	if (fields.failed != 0)
		json_decref(root);
	else
		*out = root;
	return fields.failed;
}

int pm_acks_read(struct pm_acks *out, const char *path, struct pm_error *err)
{
	PM_CLEANUP(pm_acks_release) struct pm_acks acks = { 0 };
	struct fields fields = { .err = err, .name = "document" };
	json_t *root = NULL;
	const json_t *list;
	int ret = load_json_file(&root, path, "pmdiff-acks", PM_ACKS_VERSION, err);

	if (ret == -ENOENT)
		return 0;
	fields.object = root;
	fields.failed = ret;
	if (ret == 0)
		list = get_array(&fields, "acks");
	else
		list = NULL;
	for (size_t i = 0; fields.failed == 0 && i < json_array_size(list); i++) {
		struct fields one = get_element(&fields, "acks", list, i);

		if (one.failed == 0)
			read_ack(&acks, &one);
		fields.failed = one.failed;
	}
	json_decref(root);
	if (fields.failed != 0) {
		pm_error_where(err, path, -1);
		return fields.failed;
	}
	*out = acks;
	acks = (struct pm_acks){ 0 };
	return 0;
}

/* ---- results --------------------------------------------------------------------------- */

void pm_diff_result_release(struct pm_diff_result *result)
{
	for (size_t i = 0; i < result->rows.len; i++) {
		free(result->rows.data[i].row);
		free(result->rows.data[i].case_name);
	}
	pm_vec_release(&result->rows);
	free(result->commit);
	*result = (struct pm_diff_result){ 0 };
}

static double get_side_median(struct fields *fields, const char *key)
{
	struct fields side = { .object = json_object_get(fields->object, key),
			       .err = fields->err };

	if (!side.object || json_is_null(side.object))
		return NAN;
	if (!json_is_object(side.object)) {
		fail(fields, key, "expected an object or null");
		return NAN;
	}
	return get_ack_number(&side, "median");
}

static void read_result_row(struct pm_diff_result *result, struct fields *fields)
{
	const char *case_name = get_text_or_null(fields, "case");
	const char *scope = get_text_or_null(fields, "scope");
	bool history = json_is_true(json_object_get(fields->object, "history"));
	const char *event = get_text(fields, "event"),
		   *verdict = get_text(fields, "verdict");
	struct pm_diff_result_row row = { .base = get_side_median(fields, "base"),
					  .new = get_side_median(fields, "new") };

	if (fields->failed != 0)
		return;
	row.failed = json_is_true(json_object_get(fields->object, "gated")) &&
		     strcmp(verdict, "worse") == 0;
	row.case_name = copy_ack_text(fields, "case", case_name);
	if (fields->failed == 0 &&
	    asprintf(&row.row, "%s%s%s%s%s%s%s", pm_text_or_empty(case_name),
		     pm_text_if(case_name, "//"), pm_text_if(history, "history:"),
		     pm_text_if(scope, "fn:"), pm_text_or_empty(scope),
		     pm_text_if(scope, ":"), event) < 0) {
		row.row = NULL;
		fail_memory(fields);
	}
	if (fields->failed == 0 && pm_vec_push(&result->rows, row) == 0)
		return;
	fail_memory(fields);
	free(row.case_name);
	free(row.row);
}

int pm_diff_result_read(struct pm_diff_result *out, const char *path,
			struct pm_error *err)
{
	PM_CLEANUP(pm_diff_result_release) struct pm_diff_result result = { 0 };
	struct fields fields = { .err = err, .name = "document" };
	json_t *root = NULL;
	const json_t *rows;
	int ret = load_json_file(&root, path, "pmdiff", 1, err);

	fields.object = root;
	fields.failed = ret;
	if (ret == 0) {
		struct fields side = get_object(&fields, "new");

		result.commit = copy_ack_text(
			&side, "commit",
			side.failed == 0 ? get_text_or_null(&side, "commit") : NULL);
		fields.failed = side.failed;
	}
	if (fields.failed == 0)
		rows = get_array(&fields, "rows");
	else
		rows = NULL;
	for (size_t i = 0; fields.failed == 0 && i < json_array_size(rows); i++) {
		struct fields one = get_element(&fields, "rows", rows, i);

		if (one.failed == 0)
			read_result_row(&result, &one);
		fields.failed = one.failed;
	}
	json_decref(root);
	if (fields.failed != 0) {
		pm_error_where(err, path, -1);
		return fields.failed;
	}
	*out = result;
	result = (struct pm_diff_result){ 0 };
	return 0;
}
