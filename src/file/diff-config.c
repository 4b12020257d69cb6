/* SPDX-License-Identifier: MIT */
#include "pm/diff-config.h"

#include <fcntl.h>

#include "parse-values.h"

enum {
	CONFIG_BYTES_MAX = 1 << 20,
	CONFIG_RUNS_MAX = 1000000,
	CONFIG_GATES_MAX = 1000, /* each is looked for in the file, and in each row */
	CONFIG_NEAR_ENOUGH = 3, /* edits between a wrong key and one worth proposing */
};

/* The file at hand. */
struct config_file {
	struct pm_diff_config *config;
	const char *path;
	struct pm_str text;
	struct pm_error *err;
};

/* ---- lines ----------------------------------------------------------------------------- */

/* Behind the string that begins at @at, in text that was found to be JSON. */
static size_t skip_string(const struct pm_str *text, size_t at)
{
	for (at++; at < text->len && text->data[at] != '"'; at++)
		at += text->data[at] == '\\';
	return at + 1;
}

/* Where the key @key of an object @depth deep stands; -1: written with escapes. The parser
 * keeps no lines, but people want them. */
static int64_t line_of(const struct pm_str *text, const char *key, size_t depth)
{
	size_t len = strlen(key), inside = 0;
	int64_t line = 1;

	for (size_t at = 0; at < text->len; at++) {
		size_t end;
		char c = text->data[at];

		line += c == '\n';
		if (c == '{' || c == '[')
			inside++;
		else if (c == '}' || c == ']')
			inside--;
		if (c != '"')
			continue;
		end = skip_string(text, at);
		if (inside == depth && end - at == len + 2 &&
		    memcmp(text->data + at + 1, key, len) == 0) {
			size_t next = end;

			while (next < text->len && strchr(" \t\r\n", text->data[next]))
				next++;
			if (next < text->len && text->data[next] == ':')
				return line;
		}
		at = end - 1;
	}
	return -1;
}

/* A key says what is wrong better than a number does, but people look for the line. */
static int PM_PRINTF(4, 5) refuse(const struct config_file *file, const char *key,
				  size_t depth, const char *format, ...)
{
	char what[256];
	va_list args;

	va_start(args, format);
	vsnprintf(what, sizeof(what), format, args);
	va_end(args);
	pm_error_set(file->err, -EBADMSG, "\"%.64s\": %s", key, what);
	pm_error_where(file->err, file->path, line_of(&file->text, key, depth));
	return -EBADMSG;
}

static int no_memory(const struct config_file *file)
{
	pm_error_set(file->err, -ENOMEM, "out of memory");
	pm_error_where(file->err, file->path, -1);
	return -ENOMEM;
}

/* ---- kinds of values ------------------------------------------------------------------- */

static int take_text(const struct config_file *file, const char *key, size_t depth,
		     const json_t *value, const char *expected, char **ret)
{
	if (!json_is_string(value) || json_string_length(value) == 0)
		return refuse(file, key, depth, "expected %s", expected);
	free(*ret);
	*ret = strdup(json_string_value(value));
	return *ret ? 0 : no_memory(file);
}

/* As the vectors of texts that the configuration has. */
struct text_vec {
	char **data;
	size_t len, cap;
};

static int take_texts(const struct config_file *file, const char *key,
		      const json_t *value, const char *expected, struct text_vec *ret)
{
	if (!json_is_array(value))
		return refuse(file, key, 1, "expected %s", expected);
	for (size_t i = 0; i < json_array_size(value); i++) {
		char *text = NULL;
		int r = take_text(file, key, 1, json_array_get(value, i), expected,
				  &text);

		if (r == 0 && pm_vec_push(ret, text) < 0)
			r = no_memory(file);
		if (r < 0) {
			free(text);
			return r;
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
		      const json_t *value, uint64_t least, uint64_t *ret)
{
	json_int_t count = json_integer_value(value);

	if (!json_is_integer(value) || count < (json_int_t)least ||
	    count > CONFIG_RUNS_MAX)
		return refuse(file, key, 1, "expected a number of runs, %llu to %d",
			      (unsigned long long)least, CONFIG_RUNS_MAX);
	*ret = (uint64_t)count;
	return 0;
}

/* ---- keys ------------------------------------------------------------------------------ */

static int take_gate(const struct config_file *file, const char *row, const json_t *value)
{
	struct pm_diff_gate gate = { .line = line_of(&file->text, row, 2) };
	int r;

	if (row[0] == '\0')
		return refuse(file, row, 2, "expected a row, as \"fn:parse:sim.Ir\"");
	if (file->config->gates.len == CONFIG_GATES_MAX)
		return refuse(file, "gates", 1, "expected at most %d", CONFIG_GATES_MAX);
	r = take_text(file, row, 2, value, "how much it may change, as \"1%\"",
		      &gate.limit);
	if (r < 0)
		return r;
	gate.row = strdup(row);
	if (gate.row && pm_vec_push(&file->config->gates, gate) == 0)
		return 0;
	free(gate.row);
	free(gate.limit);
	return no_memory(file);
}

static int take_gates(const struct config_file *file, const char *key, json_t *value)
{
	const char *row;
	json_t *limit;

	if (!json_is_object(value))
		return refuse(file, key, 1,
			      "expected an object, as {\"sim.Ir\": \"1%%\"}");
	json_object_foreach(value, row, limit)
	{
		int r = take_gate(file, row, limit);

		if (r < 0)
			return r;
	}
	return 0;
}

static int take_history(const struct config_file *file, const char *key, json_t *value)
{
	return take_text(file, key, 1, value, "a directory, or \"git-notes\"",
			 &file->config->history);
}

static int take_build(const struct config_file *file, const char *key, json_t *value)
{
	return take_text(file, key, 1, value, "a command for the shell, as \"make -j2\"",
			 &file->config->build);
}

static int take_engine(const struct config_file *file, const char *key, json_t *value)
{
	return take_text(file, key, 1, value, "a name, as \"auto\"",
			 &file->config->engine);
}

static int take_command(const struct config_file *file, const char *key, json_t *value)
{
	static const char expected[] = "an array of words, as [\"./bench\", \"-q\"]";
	int r = TAKE_TEXTS(file, key, value, expected, &file->config->command);

	if (r == 0 && file->config->command.len == 0)
		return refuse(file, key, 1, "expected %s", expected);
	return r;
}

static int take_runs(const struct config_file *file, const char *key, json_t *value)
{
	return take_count(file, key, value, 1, &file->config->runs);
}

static int take_warmups(const struct config_file *file, const char *key, json_t *value)
{
	file->config->warmups_set = true;
	return take_count(file, key, value, 0, &file->config->warmups);
}

static int take_events(const struct config_file *file, const char *key, json_t *value)
{
	return TAKE_TEXTS(file, key, value, "an array of events, as [\"instructions:u\"]",
			  &file->config->events);
}

static int take_functions(const struct config_file *file, const char *key, json_t *value)
{
	return TAKE_TEXTS(file, key, value, "an array of functions, as [\"parse\"]",
			  &file->config->functions);
}

static int take_ranges(const struct config_file *file, const char *key, json_t *value)
{
	return TAKE_TEXTS(file, key, value, "an array of ranges, as [\"file.c:10-20\"]",
			  &file->config->ranges);
}

static const struct {
	const char *key;
	int (*take)(const struct config_file *file, const char *key, json_t *value);
} keys[] = {
	{ "gates", take_gates },         { "build", take_build },
	{ "command", take_command },     { "runs", take_runs },
	{ "warmups", take_warmups },     { "events", take_events },
	{ "functions", take_functions }, { "ranges", take_ranges },
	{ "engine", take_engine },       { "history", take_history },
};

static int refuse_key(const struct config_file *file, const char *key)
{
	size_t best_distance = CONFIG_NEAR_ENOUGH + 1;
	const char *best = NULL;

	for (size_t i = 0; i < PM_ARRAY_LEN(keys); i++) {
		size_t distance = pm_name_distance(key, keys[i].key);

		if (distance < best_distance) {
			best = keys[i].key;
			best_distance = distance;
		}
	}
	if (best)
		return refuse(file, key, 1, "there is no such key; did you mean \"%s\"?",
			      best);
	return refuse(file, key, 1, "there is no such key");
}

static int take_key(const struct config_file *file, const char *key, json_t *value)
{
	for (size_t i = 0; i < PM_ARRAY_LEN(keys); i++)
		if (strcmp(keys[i].key, key) == 0)
			return keys[i].take(file, key, value);
	return refuse_key(file, key);
}

/* ---- the file -------------------------------------------------------------------------- */

static int parse(const struct config_file *file)
{
	json_error_t why;
	const char *key;
	json_t *root, *value;
	int r = 0;

	root = json_loadb(file->text.data ? file->text.data : "", file->text.len,
			  JSON_REJECT_DUPLICATES, &why);
	if (!root && json_error_code(&why) == json_error_out_of_memory)
		return no_memory(file);
	if (!root) {
		pm_error_set(file->err, -EBADMSG, "cannot be read as JSON: %s", why.text);
		pm_error_where(file->err, file->path, why.line);
		return -EBADMSG;
	}
	if (!json_is_object(root)) {
		r = pm_error_set(file->err, -EBADMSG, "expected an object: { … }");
		pm_error_where(file->err, file->path, 1);
	}
	json_object_foreach(root, key, value)
	{
		r = take_key(file, key, value);
		if (r < 0)
			break;
	}
	json_decref(root);
	return r;
}

static int read_file(const struct config_file *file, struct pm_str *text)
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
		if (n == 0)
			return text->failed ? no_memory(file) : 0;
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

int pm_diff_config_read(struct pm_diff_config *ret, const char *path,
			struct pm_error *err)
{
	struct pm_diff_config config = { .path = strdup(path) };
	PM_CLEANUP(release_text)
	struct config_file file = { .config = &config, .path = path, .err = err };
	int r = config.path ? read_file(&file, &file.text) : no_memory(&file);

	if (r == 0)
		r = parse(&file);
	if (r < 0)
		pm_diff_config_release(&config);
	else
		*ret = config;
	return r;
}

#define RELEASE_TEXTS(vec)                                 \
	({                                                 \
		for (size_t i_ = 0; i_ < (vec)->len; i_++) \
			free((vec)->data[i_]);             \
		pm_vec_release(vec);                       \
	})

void pm_diff_config_release(struct pm_diff_config *config)
{
	for (size_t i = 0; i < config->gates.len; i++) {
		free(config->gates.data[i].row);
		free(config->gates.data[i].limit);
	}
	pm_vec_release(&config->gates);
	RELEASE_TEXTS(&config->command);
	RELEASE_TEXTS(&config->events);
	RELEASE_TEXTS(&config->functions);
	RELEASE_TEXTS(&config->ranges);
	free(config->path);
	free(config->build);
	free(config->engine);
	free(config->history);
	*config = (struct pm_diff_config){ 0 };
}
