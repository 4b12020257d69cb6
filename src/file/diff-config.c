/* SPDX-License-Identifier: MIT */
#include "pm/diff-config.h"

#include <fcntl.h>

#include "parse-values.h"
#include "pm/suite.h"

enum {
	CONFIG_BYTES_MAX = 1 << 20,
	CONFIG_RUNS_MAX = 1000000,
	CONFIG_GATES_MAX = 1000, /* each is searched for in the file, and in each row of
	                          * results */
	CONFIG_CASES_MAX = PM_SUITE_CASES_MAX,
	CONFIG_NEAR_ENOUGH = 3, /* maximum edits between a wrong key and one that is
	                         * suggested */
};

/* A position in the text: offset, depth and line. */
struct config_scan {
	size_t at, inside;
	int64_t line;
};

/* The current file, and the object that is being read. */
struct config_file {
	struct pm_diff_config *config;
	struct pm_diff_measure *measure; /* filled from the object */
	struct pm_diff_case *of_case; /* filled from the object; NULL: it is the outermost
	                               * object */
	size_t depth; /* of the object's keys */
	struct config_scan start; /* of the object: before its first key */
	const char *path;
	struct pm_str text;
	struct pm_error *err;
};

/* ---- lines ----------------------------------------------------------------------------- */

/* Returns the offset after the string that starts at @at, in valid JSON. */
static size_t skip_string(const struct pm_str *text, size_t at)
{
	for (at++; at < text->len && text->data[at] != '"'; at++)
		at += text->data[at] == '\\';
	return at + 1;
}

/* Moves to the next string, brace or bracket. It is then at scan->at, and counted in
 * scan->inside. Returns false if there is none. */
static bool config_scan_on(struct config_scan *scan, const struct pm_str *text, char *out)
{
	for (; scan->at < text->len; scan->at++) {
		char c = text->data[scan->at];

		scan->line += c == '\n';
		if (c == '{' || c == '[')
			scan->inside++;
		else if (c == '}' || c == ']')
			scan->inside--;
		else if (c != '"')
			continue;
		*out = c;
		return true;
	}
	return false;
}

static bool is_config_key_at(const struct pm_str *text, size_t at, size_t end,
			     const char *key)
{
	size_t len = strlen(key);

	if (end - at != len + 2 || memcmp(text->data + at + 1, key, len) != 0)
		return false;
	while (end < text->len && strchr(" \t\r\n", text->data[end]))
		end++;
	return end < text->len && text->data[end] == ':';
}

/* Returns the line of the key @key at depth @depth in the current object, or -1 if the
 * key is written with escapes. The parser does not store line numbers, but messages need
 * them. */
static int64_t config_line_of_key(const struct config_file *file, const char *key,
				  size_t depth)
{
	struct config_scan scan = file->start;
	char c;

	while (config_scan_on(&scan, &file->text, &c)) {
		size_t end = scan.at + 1;

		if (c == '"')
			end = skip_string(&file->text, scan.at);
		if (c == '"' && scan.inside == depth &&
		    is_config_key_at(&file->text, scan.at, end, key))
			return scan.line;
		if (scan.inside < file->depth)
			break;
		scan.at = end;
	}
	return -1;
}

/* Moves @scan from one object in the array of cases into the next one. */
static void config_scan_next_case(struct config_scan *scan, const struct pm_str *text)
{
	char c;

	while (config_scan_on(scan, text, &c)) {
		if (c == '"')
			scan->at = skip_string(text, scan->at);
		else
			scan->at++;
		if (c == '{' && scan->inside == 3)
			return;
	}
}

/* The message names the key, because that explains more than a line; the line helps to
 * find it. */
static int PM_PRINTF(4, 5)
	refuse_config_key(const struct config_file *file, const char *key, size_t depth,
			  const char *format, ...)
{
	char what[256];
	va_list args;

	va_start(args, format);
	vsnprintf(what, sizeof(what), format, args);
	va_end(args);
	pm_error_set(file->err, -EBADMSG, "\"%.64s\": %s", key, what);
	pm_error_where(file->err, file->path, config_line_of_key(file, key, depth));
	return -EBADMSG;
}

static int config_no_memory(const struct config_file *file)
{
	pm_error_set(file->err, -ENOMEM, "out of memory");
	pm_error_where(file->err, file->path, -1);
	return -ENOMEM;
}

/* ---- kinds of values ------------------------------------------------------------------- */

static int take_config_text(const struct config_file *file, const char *key, size_t depth,
			    const json_t *value, const char *expected, char **out)
{
	if (!json_is_string(value) || json_string_length(value) == 0)
		return refuse_config_key(file, key, depth, "expected %s", expected);
	free(*out);
	*out = strdup(json_string_value(value));
	if (*out)
		return 0;
	return config_no_memory(file);
}

/* Has the same layout as the vectors of strings in the configuration. */
struct text_vec {
	char **data;
	size_t len, cap;
};

static int take_texts(const struct config_file *file, const char *key,
		      const json_t *value, const char *expected, struct text_vec *out)
{
	if (!json_is_array(value))
		return refuse_config_key(file, key, file->depth, "expected %s", expected);
	for (size_t i = 0; i < json_array_size(value); i++) {
		char *text = NULL;
		int ret = take_config_text(file, key, file->depth,
					   json_array_get(value, i), expected, &text);

		if (ret == 0 && pm_vec_push(out, text) < 0)
			ret = config_no_memory(file);
		if (ret < 0) {
			free(text);
			return ret;
		}
	}
	return 0;
}

#define TAKE_TEXTS(file, key, value, expected, vec)                                   \
	({                                                                            \
		struct text_vec texts_ = { 0 };                                       \
		int taken_ = take_texts((file), (key), (value), (expected), &texts_); \
		(vec)->data = texts_.data;                                            \
		(vec)->len = texts_.len;                                              \
		(vec)->cap = texts_.cap;                                              \
		taken_;                                                               \
	})

static int take_count(const struct config_file *file, const char *key,
		      const json_t *value, uint64_t least, uint64_t *out)
{
	json_int_t count = json_integer_value(value);

	if (!json_is_integer(value) || count < (json_int_t)least ||
	    count > CONFIG_RUNS_MAX)
		return refuse_config_key(file, key, file->depth,
					 "expected a number of runs, %llu to %d",
					 (unsigned long long)least, CONFIG_RUNS_MAX);
	*out = (uint64_t)count;
	return 0;
}

/* ---- keys ------------------------------------------------------------------------------ */

/* @len is the number of gates of the same kind so far. */
static int take_gate(const struct config_file *file, const char *row, const json_t *value,
		     size_t len, struct pm_diff_gate *out)
{
	size_t depth = file->depth + 1;
	struct pm_diff_gate gate = { .line = config_line_of_key(file, row, depth) };
	int ret;

	if (row[0] == '\0')
		return refuse_config_key(file, row, depth,
					 "expected a row, as \"fn:parse:sim.Ir\"");
	if (len == CONFIG_GATES_MAX)
		return refuse_config_key(file, "gates", file->depth,
					 "expected at most %d", CONFIG_GATES_MAX);
	ret = take_config_text(file, row, depth, value,
			       "how much it may change, as \"1%\"", &gate.limit);
	if (ret < 0)
		return ret;
	gate.row = strdup(row);
	if (gate.row) {
		*out = gate;
		return 0;
	}
	free(gate.limit);
	return config_no_memory(file);
}

#define TAKE_GATES(file, key, value, vec)                                            \
	({                                                                           \
		int gates_ = 0;                                                      \
		const char *row_;                                                    \
		json_t *limit_;                                                      \
                                                                                     \
		if (!json_is_object(value))                                          \
			gates_ = refuse_config_key(                                  \
				(file), (key), (file)->depth,                        \
				"expected an object, as {\"sim.Ir\": \"1%%\"}");     \
		json_object_foreach((value), row_, limit_)                           \
		{                                                                    \
			struct pm_diff_gate gate_ = { 0 };                           \
                                                                                     \
			if (gates_ == 0)                                             \
				gates_ = take_gate((file), row_, limit_, (vec)->len, \
						   &gate_);                          \
			if (gates_ == 0 && pm_vec_push((vec), gate_) < 0) {          \
				free(gate_.row);                                     \
				free(gate_.limit);                                   \
				gates_ = config_no_memory(file);                     \
			}                                                            \
		}                                                                    \
		gates_;                                                              \
	})

static int take_gates(const struct config_file *file, const char *key, json_t *value)
{
	return TAKE_GATES(file, key, value, &file->measure->gates);
}

static int take_history_gates(const struct config_file *file, const char *key,
			      json_t *value)
{
	return TAKE_GATES(file, key, value, &file->measure->history_gates);
}

static int take_history(const struct config_file *file, const char *key, json_t *value)
{
	return take_config_text(file, key, file->depth, value,
				"a directory, or \"git-notes\"", &file->config->history);
}

static int take_build(const struct config_file *file, const char *key, json_t *value)
{
	return take_config_text(file, key, file->depth, value,
				"a command for the shell, as \"make -j2\"",
				&file->config->build);
}

static int take_engine(const struct config_file *file, const char *key, json_t *value)
{
	return take_config_text(file, key, file->depth, value, "a name, as \"auto\"",
				&file->measure->engine);
}

static int take_command(const struct config_file *file, const char *key, json_t *value)
{
	static const char expected[] = "an array of words, as [\"./bench\", \"-q\"]";
	int ret = TAKE_TEXTS(file, key, value, expected, &file->measure->command);

	if (ret == 0 && file->measure->command.len == 0)
		return refuse_config_key(file, key, file->depth, "expected %s", expected);
	return ret;
}

static int take_runs(const struct config_file *file, const char *key, json_t *value)
{
	return take_count(file, key, value, 1, &file->measure->runs);
}

static int take_warmups(const struct config_file *file, const char *key, json_t *value)
{
	file->measure->warmups_set = true;
	return take_count(file, key, value, 0, &file->measure->warmups);
}

static int take_events(const struct config_file *file, const char *key, json_t *value)
{
	return TAKE_TEXTS(file, key, value, "an array of events, as [\"instructions:u\"]",
			  &file->measure->events);
}

static int take_functions(const struct config_file *file, const char *key, json_t *value)
{
	return TAKE_TEXTS(file, key, value, "an array of functions, as [\"parse\"]",
			  &file->measure->functions);
}

static int take_ranges(const struct config_file *file, const char *key, json_t *value)
{
	return TAKE_TEXTS(file, key, value, "an array of ranges, as [\"file.c:10-20\"]",
			  &file->measure->ranges);
}

static int take_setup(const struct config_file *file, const char *key, json_t *value)
{
	return take_config_text(file, key, file->depth, value,
				"a command for the shell, as \"./make-input\"",
				&file->measure->setup);
}

static int take_timeout(const struct config_file *file, const char *key, json_t *value)
{
	return take_config_text(file, key, file->depth, value, "a time, as \"10s\"",
				&file->measure->timeout);
}

/* Sets *out to the index in @words of the string, counted from 1. */
static int take_word(const struct config_file *file, const char *key, json_t *value,
		     const char *const *words, const char *expected, int *out)
{
	const char *text = json_string_value(value);

	for (int i = 0; text && words[i]; i++)
		if (strcmp(words[i], text) == 0) {
			*out = i + 1;
			return 0;
		}
	return refuse_config_key(file, key, file->depth, "expected %s", expected);
}

static int take_harness(const struct config_file *file, const char *key, json_t *value)
{
	static const char *const words[] = { "none", "auto", "google-benchmark",
					     "criterion", NULL };
	int word = 0, ret = take_word(file, key, value, words,
				      "\"auto\", \"google-benchmark\", \"criterion\" or "
				      "\"none\"",
				      &word);

	file->measure->harness = (enum pm_diff_harness)word;
	return ret;
}

static int take_measured(const struct config_file *file, const char *key, json_t *value)
{
	static const char *const words[] = { "whole", "marked", NULL };
	int word = 0,
	    ret = take_word(file, key, value, words, "\"whole\" or \"marked\"", &word);

	file->measure->measured = (enum pm_diff_part)word;
	return ret;
}

static int take_profile(const struct config_file *file, const char *key, json_t *value)
{
	if (!json_is_boolean(value))
		return refuse_config_key(file, key, file->depth,
					 "expected true or false");
	file->config->profile = json_is_true(value);
	return 0;
}

static int take_case_name(const struct config_file *file, const char *key, json_t *value)
{
	const char *wrong = NULL;
	int ret = take_config_text(file, key, file->depth, value,
				   "a name, as \"parse/small\"", &file->of_case->name);

	if (ret == 0)
		wrong = pm_suite_name_check(file->of_case->name);
	if (wrong)
		return refuse_config_key(file, key, file->depth, "%s", wrong);
	file->of_case->line = config_line_of_key(file, key, file->depth);
	return ret;
}

static int take_cases(const struct config_file *file, const char *key, json_t *value);

enum {
	KEY_OF_ALL = 1, /* a key of the outermost object */
	KEY_OF_CASE = 2,
};

static const struct config_key {
	const char *key;
	int (*take)(const struct config_file *file, const char *key, json_t *value);
	int where;
} keys[] = {
	{ "gates", take_gates, KEY_OF_ALL | KEY_OF_CASE },
	{ "command", take_command, KEY_OF_ALL | KEY_OF_CASE },
	{ "setup", take_setup, KEY_OF_ALL | KEY_OF_CASE },
	{ "runs", take_runs, KEY_OF_ALL | KEY_OF_CASE },
	{ "warmups", take_warmups, KEY_OF_ALL | KEY_OF_CASE },
	{ "events", take_events, KEY_OF_ALL | KEY_OF_CASE },
	{ "functions", take_functions, KEY_OF_ALL | KEY_OF_CASE },
	{ "ranges", take_ranges, KEY_OF_ALL | KEY_OF_CASE },
	{ "engine", take_engine, KEY_OF_ALL | KEY_OF_CASE },
	{ "timeout", take_timeout, KEY_OF_ALL | KEY_OF_CASE },
	{ "harness", take_harness, KEY_OF_ALL | KEY_OF_CASE },
	{ "measured", take_measured, KEY_OF_ALL | KEY_OF_CASE },
	{ "name", take_case_name, KEY_OF_CASE },
	{ "cases", take_cases, KEY_OF_ALL },
	{ "build", take_build, KEY_OF_ALL },
	{ "history", take_history, KEY_OF_ALL },
	{ "history_gates", take_history_gates, KEY_OF_ALL },
	{ "profile", take_profile, KEY_OF_ALL },
};

static bool is_key_of(const struct config_file *file, const struct config_key *key)
{
	return key->where & (file->of_case ? KEY_OF_CASE : KEY_OF_ALL);
}

static int refuse_key(const struct config_file *file, const char *key)
{
	size_t best_distance = CONFIG_NEAR_ENOUGH + 1;
	const char *best = NULL;

	for (size_t i = 0; i < PM_ARRAY_LEN(keys); i++) {
		size_t distance = pm_name_distance(key, keys[i].key);

		if (is_key_of(file, &keys[i]) && distance < best_distance) {
			best = keys[i].key;
			best_distance = distance;
		}
	}
	if (best)
		return refuse_config_key(file, key, file->depth,
					 "there is no such key; did you mean \"%s\"?",
					 best);
	return refuse_config_key(file, key, file->depth, "there is no such key");
}

static int take_key(const struct config_file *file, const char *key, json_t *value)
{
	for (size_t i = 0; i < PM_ARRAY_LEN(keys); i++)
		if (strcmp(keys[i].key, key) == 0 && is_key_of(file, &keys[i]))
			return keys[i].take(file, key, value);
	return refuse_key(file, key);
}

/* ---- cases ----------------------------------------------------------------------------- */

static int take_object(const struct config_file *file, json_t *object)
{
	const char *key;
	json_t *value;
	int ret = 0;

	json_object_foreach(object, key, value)
	{
		ret = take_key(file, key, value);
		if (ret < 0)
			break;
	}
	return ret;
}

static int take_config_case(const struct config_file *outer, json_t *value, size_t index,
			    const struct config_scan *start)
{
	struct pm_diff_config *config = outer->config;
	struct pm_diff_case *one = &config->cases.data[index];
	struct config_file file = *outer;
	int ret;

	file.measure = &one->measure;
	file.of_case = one;
	file.depth = 3;
	file.start = *start;
	ret = take_object(&file, value);
	if (ret < 0)
		return ret;
	if (!one->name)
		return refuse_config_key(outer, "cases", 1, "a case has no \"name\"");
	for (size_t i = 0; i < index; i++)
		if (strcmp(config->cases.data[i].name, one->name) == 0)
			return refuse_config_key(&file, "name", 3,
						 "two cases are called \"%.100s\"",
						 one->name);
	return 0;
}

static int take_cases(const struct config_file *file, const char *key, json_t *value)
{
	struct config_scan start = { .line = 1 };
	size_t len = json_array_size(value);
	int ret = 0;

	if (!json_is_array(value) || len == 0)
		return refuse_config_key(
			file, key, 1,
			"expected an array of objects, as [{\"name\": \"small\", "
			"\"command\": [\"./bench\"]}]");
	if (len > CONFIG_CASES_MAX)
		return refuse_config_key(file, key, 1, "expected at most %d",
					 CONFIG_CASES_MAX);
	for (size_t i = 0; i < len && ret == 0; i++) {
		json_t *one = json_array_get(value, i);

		if (!json_is_object(one))
			return refuse_config_key(file, key, 1, "expected objects");
		if (pm_vec_push(&file->config->cases,
				(struct pm_diff_case){ .line = -1 }) < 0)
			return config_no_memory(file);
		config_scan_next_case(&start, &file->text);
		ret = take_config_case(file, one, i, &start);
	}
	return ret;
}

/* ---- the file -------------------------------------------------------------------------- */

static int parse_config_file(const struct config_file *file)
{
	json_error_t why;
	json_t *root;
	int ret = 0;

	root = json_loadb(pm_text_or_empty(file->text.data), file->text.len,
			  JSON_REJECT_DUPLICATES, &why);
	if (!root && json_error_code(&why) == json_error_out_of_memory)
		return config_no_memory(file);
	if (!root) {
		pm_error_set(file->err, -EBADMSG, "cannot be read as JSON: %s", why.text);
		pm_error_where(file->err, file->path, why.line);
		return -EBADMSG;
	}
	if (!json_is_object(root)) {
		ret = pm_error_set(file->err, -EBADMSG, "expected an object: { … }");
		pm_error_where(file->err, file->path, 1);
	}
	if (ret == 0)
		ret = take_object(file, root);
	json_decref(root);
	return ret;
}

static int read_config_file(const struct config_file *file, struct pm_str *text)
{
	PM_AUTO_CLOSE int fd = open(file->path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	char buffer[16 << 10];
	ssize_t n;

	while (fd >= 0) {
		n = read(fd, buffer, sizeof(buffer));
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			break;
		if (n == 0) {
			if (text->failed)
				return config_no_memory(file);
			return 0;
		}
		if (text->len + (size_t)n > CONFIG_BYTES_MAX) {
			pm_error_set(file->err, -EFBIG, "is larger than %d KiB",
				     CONFIG_BYTES_MAX >> 10);
			pm_error_where(file->err, file->path, -1);
			return -EFBIG;
		}
		pm_str_append(text, buffer, (size_t)n);
	}
	n = -errno;
	pm_error_set(file->err, (int)n, "cannot be read: %s", strerror((int)-n));
	pm_error_where(file->err, file->path, -1);
	return (int)n;
}

static void release_text(struct config_file *file)
{
	pm_str_release(&file->text);
}

int pm_diff_config_read(struct pm_diff_config *out, const char *path,
			struct pm_error *err)
{
	struct pm_diff_config config = { .path = strdup(path), .profile = -1 };
	PM_CLEANUP(release_text)
	struct config_file file = { .config = &config,
				    .measure = &config.all,
				    .depth = 1,
				    .start = { .line = 1 },
				    .path = path,
				    .err = err };
	int ret = config.path ? read_config_file(&file, &file.text)
			      : config_no_memory(&file);

	if (ret == 0)
		ret = parse_config_file(&file);
	if (ret < 0)
		pm_diff_config_release(&config);
	else
		*out = config;
	return ret;
}

#define RELEASE_TEXTS(vec)                                 \
	({                                                 \
		for (size_t i_ = 0; i_ < (vec)->len; i_++) \
			free((vec)->data[i_]);             \
		pm_vec_release(vec);                       \
	})

#define RELEASE_GATES(vec)                                   \
	({                                                   \
		for (size_t i_ = 0; i_ < (vec)->len; i_++) { \
			free((vec)->data[i_].row);           \
			free((vec)->data[i_].limit);         \
		}                                            \
		pm_vec_release(vec);                         \
	})

static void release_measure(struct pm_diff_measure *measure)
{
	RELEASE_GATES(&measure->gates);
	RELEASE_GATES(&measure->history_gates);
	RELEASE_TEXTS(&measure->command);
	RELEASE_TEXTS(&measure->events);
	RELEASE_TEXTS(&measure->functions);
	RELEASE_TEXTS(&measure->ranges);
	free(measure->setup);
	free(measure->engine);
	free(measure->timeout);
}

void pm_diff_config_release(struct pm_diff_config *config)
{
	release_measure(&config->all);
	for (size_t i = 0; i < config->cases.len; i++) {
		free(config->cases.data[i].name);
		release_measure(&config->cases.data[i].measure);
	}
	pm_vec_release(&config->cases);
	free(config->path);
	free(config->build);
	free(config->history);
	*config = (struct pm_diff_config){ 0 };
}
