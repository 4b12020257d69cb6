/* SPDX-License-Identifier: MIT */
/* Builds the documents for results of other tools, and parses JSON. */
#include "import-internal.h"

#include <fcntl.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <time.h>

int pm_import_no_memory(const struct pm_importing *to)
{
	return pm_error_set(to->err, -ENOMEM, "out of memory");
}

/* ---- documents ------------------------------------------------------------------------- */

/* Some benchmarks are named after whole commands, which may contain newlines and have any
 * length. */
static void put_case_name(struct pm_str *out, const char *name)
{
	static const char more[] = "…";
	size_t len = strlen(name), one, kept = 0;

	for (size_t at = 0; at < len; at += one) {
		bool control;

		one = pm_utf8_char(name + at, len - at);
		one = one > 0 ? one : 1;
		control = (unsigned char)name[at] < 0x20 || name[at] == 0x7f ||
			  ((unsigned char)name[at] == 0xc2 && one == 2 &&
			   (unsigned char)name[at + 1] < 0xa0);
		if (control)
			pm_str_putc(out, ' ');
		else
			pm_str_append(out, name + at, one);
		if (out->len <= PM_SUITE_NAME_MAX - strlen(more))
			kept = out->len;
	}
	if (out->failed || out->len <= PM_SUITE_NAME_MAX)
		return;
	out->len = kept;
	pm_str_puts(out, more);
}

int pm_import_add_case(struct pm_importing *to, const char *name, const char *engine,
		       const char *place, struct pm_stat **out)
{
	PM_CLEANUP(pm_str_release) struct pm_str text = { 0 };
	struct pm_stat_subject subject = { .commit_time = -1, .dirty = -1 };
	struct pm_stat stat = { .host = { .paranoid = INT32_MIN, .smt = -1 } };
	struct pm_error why = { .offset = -1 };
	int ret = 0;

	if (name)
		put_case_name(&text, name);
	if (text.failed || pm_stat_text(&stat.version, PM_VERSION) < 0 ||
	    pm_stat_text(&stat.engine, engine) < 0 ||
	    pm_vec_push(&stat.subjects, subject) < 0)
		ret = pm_import_no_memory(to);
	if (ret == 0)
		ret = pm_suite_add(&to->suite, name ? text.data ? text.data : "" : NULL,
				   &stat, &why);
	if (ret == -EINVAL)
		ret = pm_error_set(to->err, -EBADMSG, "%s: %s", place, why.text);
	else if (ret < 0 && why.code < 0)
		*to->err = why;
	if (ret < 0) {
		pm_stat_release(&stat);
		return ret;
	}
	*out = &to->suite.cases.data[to->suite.cases.len - 1].stat;
	return 0;
}

int pm_import_add_event(struct pm_importing *to, struct pm_stat *stat,
			const struct pm_import_event *event)
{
	struct pm_stat_event added = {
		.scale = event->scale,
		.class = event->class,
		.better = event->better,
		.group = -1,
		.user_only = event->user_only,
		.default_set = event->secondary,
	};

	if (stat->events.len >= PM_STAT_EVENTS_MAX)
		return pm_error_set(to->err, -EFBIG,
				    "a benchmark has more than %d numbers",
				    PM_STAT_EVENTS_MAX);
	if (pm_stat_text(&added.name, event->name) == 0 &&
	    pm_stat_text(&added.requested, event->name) == 0 &&
	    pm_stat_text(&added.unit, event->unit) == 0 &&
	    pm_stat_text(&added.source, event->source) == 0 &&
	    pm_vec_push(&stat->events, added) == 0)
		return 0;
	free(added.name);
	free(added.requested);
	free(added.unit);
	free(added.source);
	return pm_import_no_memory(to);
}

int pm_import_add_run(struct pm_importing *to, struct pm_stat *stat,
		      struct pm_stat_run **out)
{
	struct pm_stat_run run = { .variant = 0 };

	to->cells += stat->events.len;
	if (to->cells > PM_IMPORT_CELLS_MAX)
		return pm_error_set(to->err, -EFBIG, "holds more than %d values of runs",
				    PM_IMPORT_CELLS_MAX);
	run.values = pm_stat_values_new(stat->events.len);
	if (!run.values || pm_vec_push(&stat->runs, run) < 0) {
		free(run.values);
		return pm_import_no_memory(to);
	}
	*out = &stat->runs.data[stat->runs.len - 1];
	return 0;
}

int pm_import_set_command(struct pm_importing *to, struct pm_stat *stat,
			  const char *command)
{
	char *copy = strdup(command);

	if (copy && pm_vec_push(&stat->subjects.data[0].argv, copy) == 0)
		return 0;
	free(copy);
	return pm_import_no_memory(to);
}

int pm_import_add_warning(struct pm_importing *to, struct pm_stat *stat,
			  const char *format, ...)
{
	va_list args;
	char *text;
	int len;

	va_start(args, format);
	len = vasprintf(&text, format, args);
	va_end(args);
	if (len < 0)
		return pm_import_no_memory(to);
	if (pm_vec_push(&stat->warnings, text) == 0)
		return 0;
	free(text);
	return pm_import_no_memory(to);
}

int pm_import_add_setting(struct pm_importing *to, struct pm_stat *stat, const char *name,
			  const char *value)
{
	struct pm_stat_setting setting = { 0 };

	if (!value)
		return 0;
	if (pm_stat_text(&setting.name, name) == 0 &&
	    pm_stat_text(&setting.value, value) == 0 &&
	    pm_vec_push(&stat->settings, setting) == 0)
		return 0;
	free(setting.name);
	free(setting.value);
	return pm_import_no_memory(to);
}

bool pm_import_set_value(struct pm_stat_value *value, double number, double scale)
{
	double whole = number / scale + 0.5;

	/* 2^64 is the first number that is too large. */
	if (!(number >= 0) || !(whole < 0x1p64))
		return false;
	*value = (struct pm_stat_value){ .state = PM_STAT_OK,
					 .value = (uint64_t)whole,
					 .raw = (uint64_t)whole };
	return true;
}

double pm_import_get_number(struct fields *fields, const char *key)
{
	const json_t *value = get(fields, key);

	if (!value)
		return 0;
	if (!json_is_number(value))
		fail(fields, key, "expected a number");
	else if (!(json_number_value(value) >= 0))
		fail(fields, key, "expected a number that is not negative");
	return json_number_value(value);
}

bool pm_import_utc(const char *text, char *out, size_t size)
{
	struct tm tm = { 0 };
	const char *end = text ? strptime(text, "%Y-%m-%dT%H:%M:%S", &tm) : NULL;
	time_t seconds;
	long offset = 0;

	if (!end)
		return false;
	if (*end == '.')
		end += 1 + strspn(end + 1, "0123456789");
	if (*end == '+' || *end == '-') {
		int hours, minutes;

		if (sscanf(end + 1, "%2d:%2d", &hours, &minutes) != 2 || hours < 0 ||
		    minutes < 0)
			return false;
		offset = (*end == '-' ? -60L : 60L) * (60L * hours + minutes);
	} else if (*end != 'Z' && *end != '\0') {
		return false;
	}
	seconds = timegm(&tm) - offset;
	return gmtime_r(&seconds, &tm) &&
	       strftime(out, size, "%Y-%m-%dT%H:%M:%SZ", &tm) > 0;
}

/* ---- JSON ------------------------------------------------------------------------------ */

/* Returns the offset after the string that starts at @at. */
static size_t string_end(const struct pm_str *text, size_t at)
{
	for (at++; at < text->len && text->data[at] != '"'; at++)
		at += text->data[at] == '\\';
	if (at < text->len)
		return at + 1;
	return text->len;
}

/* Returns the length of a word such as "NaN", "-Infinity" or "inf", which JSON does not
 * have, or 0. */
static size_t non_number_len(const char *text, size_t len)
{
	static const char *const words[] = { "NaN", "nan", "Infinity", "inf", "Inf" };
	size_t sign = len > 0 && (*text == '-' || *text == '+');

	for (size_t i = 0; i < PM_ARRAY_LEN(words); i++) {
		size_t word = strlen(words[i]);

		if (len - sign >= word && memcmp(text + sign, words[i], word) == 0)
			return sign + word;
	}
	return 0;
}

/* Replaces such words by null: Google's and Python's writers use them in place of
 * numbers. */
static void put_without_non_numbers(struct pm_str *out, const struct pm_str *text)
{
	size_t kept = 0;

	for (size_t at = 0; at < text->len;) {
		size_t len;

		if (text->data[at] == '"') {
			at = string_end(text, at);
			continue;
		}
		if (strchr("-+NnIi", text->data[at]) && text->data[at])
			len = non_number_len(text->data + at, text->len - at);
		else
			len = 0;
		if (len > 0) {
			pm_str_append(out, text->data + kept, at - kept);
			pm_str_puts(out, "null");
			kept = at + len;
		}
		at += len > 0 ? len : 1;
	}
	if (text->len > kept)
		pm_str_append(out, text->data + kept, text->len - kept);
}

size_t pm_import_skip_comments(const struct pm_str *text, size_t at)
{
	bool line_begins = at == 0;

	for (; at < text->len; at++) {
		char c = text->data[at];

		if (c == '#' && line_begins) {
			const char *end = memchr(text->data + at, '\n', text->len - at);

			if (!end)
				return text->len;
			at = (size_t)(end - text->data);
			c = '\n';
		}
		line_begins = c == '\n' || (line_begins && (c == ' ' || c == '\t'));
		if (!strchr(" \t\r\n", c) || c == '\0')
			break;
	}
	return at;
}

static int line_at(const struct pm_str *text, size_t at)
{
	int line = 1;

	for (size_t i = 0; i < at; i++)
		line += text->data[i] == '\n';
	return line;
}

static int parse_all(struct pm_importing *to, const struct pm_str *text, json_t *all)
{
	size_t at = pm_import_skip_comments(text, 0);

	while (at < text->len) {
		json_error_t why;
		json_t *value =
			json_loadb(text->data + at, text->len - at,
				   JSON_REJECT_DUPLICATES | JSON_DISABLE_EOF_CHECK, &why);

		if (!value && json_error_code(&why) == json_error_out_of_memory)
			return pm_import_no_memory(to);
		if (!value)
			return pm_error_set(to->err, -EBADMSG,
					    "cannot be read as JSON: line %d: %s",
					    line_at(text, at) + why.line - 1, why.text);
		if (json_array_append_new(all, value) < 0)
			return pm_import_no_memory(to);
		/* A value has at least one byte. */
		at = pm_import_skip_comments(
			text, at + (size_t)(why.position > 0 ? why.position : 1));
	}
	return 0;
}

int pm_import_parse(struct pm_importing *to, const struct pm_str *text, json_t **out)
{
	PM_CLEANUP(pm_str_release) struct pm_str plain = { 0 };
	json_t *all;
	int ret;

	if (pm_stat_has_too_many_values(text))
		return pm_error_set(to->err, -EFBIG, "holds more than %d values",
				    PM_STAT_VALUES_MAX);
	put_without_non_numbers(&plain, text);
	all = json_array();
	if (plain.failed || !all) {
		json_decref(all);
		return pm_import_no_memory(to);
	}
	ret = parse_all(to, &plain, all);
	if (ret == 0 && json_array_size(all) == 0)
		ret = pm_error_set(to->err, -EBADMSG, "is empty");
	if (ret < 0) {
		json_decref(all);
		return ret;
	}
	*out = all;
	return 0;
}

int pm_import_read_bytes(const char *path, struct pm_str *text, struct pm_error *err)
{
	bool standard = strcmp(path, "-") == 0;
	PM_AUTO_CLOSE int fd = standard ? fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3)
					: open(path, O_RDONLY | O_NOCTTY | O_CLOEXEC);
	struct stat found;

	if (fd < 0 || fstat(fd, &found) < 0)
		return pm_error_set(err, -errno, "cannot be read: %s", strerror(errno));
	if (S_ISDIR(found.st_mode))
		return pm_error_set(err, -EISDIR, "cannot be read: %s", strerror(EISDIR));
	return pm_stat_read_bytes(text, fd, err);
}
