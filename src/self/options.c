/* SPDX-License-Identifier: MIT */
#include "options.h"

#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "pm/base-text.h"

enum {
	RATE_HZ_DEFAULT = 999,
	RATE_HZ_MAX = 100000,
};

/* Returns the value of an environment variable. Ignores it in programs that gain
 * privileges, because the caller must not choose the files that they write to. */
static const char *read_variable(const char *name)
{
	const char *value = secure_getenv(name);

	if (value && value[0])
		return value;
	return NULL;
}

static bool is_either(const char *value, const char *word, const char *digit)
{
	return value && (strcasecmp(value, word) == 0 || strcmp(value, digit) == 0);
}

bool pm_self_is_off(void)
{
	return is_either(read_variable("PMSELF"), "off", "0");
}

static bool is_on(void)
{
	return is_either(read_variable("PMSELF"), "on", "1");
}

bool pm_self_is_automatic(void)
{
	const char *preload = read_variable("LD_PRELOAD");

	return is_on() || (preload && strstr(preload, "libpmself.so"));
}

int pm_self_check(struct pm_error *err)
{
	const char *value = read_variable("PMSELF");

	if (!value || is_on() || pm_self_is_off())
		return 0;
	return pm_error_set(err, -EINVAL,
			    "PMSELF=%s: it may be on, off; goes on as if it were not set",
			    value);
}

/* The variable that contains the pid of the first preloaded program. */
static const char first_name[] = "PMSELF_FIRST";

void pm_self_tell_children(void)
{
	char pid[16];

	snprintf(pid, sizeof(pid), "%d", (int)getpid());
	setenv(first_name, pid, 0);
}

static bool is_child(void)
{
	const char *first = read_variable(first_name);
	uint64_t pid;

	return first && pm_parse_u64(first, &pid) && pid != (uint64_t)getpid();
}

bool pm_self_may_print(void)
{
	return !read_variable("PMSELF_QUIET");
}

/* ---- values ------------------------------------------------------------------------------- */

/* Finds @text among @words. @name is the environment variable's name. */
static int find_setting_word(const char *name, const char *text, const char *const *words,
			     size_t len, unsigned int *out, struct pm_error *err)
{
	struct pm_str all = { 0 };

	for (size_t i = 0; i < len; i++) {
		if (strcmp(text, words[i]) == 0) {
			*out = (unsigned int)i;
			pm_str_release(&all);
			return 0;
		}
		if (i > 0)
			pm_str_puts(&all, ", ");
		pm_str_puts(&all, words[i]);
	}
	pm_error_set(err, -EINVAL, "%s=%s: it may be %s", name, text,
		     pm_str_complete_or(&all, "another word"));
	pm_str_release(&all);
	return -EINVAL;
}

int pm_self_read_scopes(enum pm_self_scopes *out, struct pm_error *err)
{
	static const char *const words[] = { [PM_SELF_SCOPES_OFF] = "off",
					     [PM_SELF_SCOPES_TIME] = "time",
					     [PM_SELF_SCOPES_ALL] = "all" };
	const char *text = read_variable("PMSELF_SCOPES");
	unsigned int word = PM_SELF_SCOPES_ALL;
	int ret = 0;

	if (text && !pm_self_is_off())
		ret = find_setting_word("PMSELF_SCOPES", text, words, PM_ARRAY_LEN(words),
					&word, err);
	if (ret < 0)
		pm_error_set(err, ret, "%s; no scope is counted", err->text);
	else if (pm_self_is_off())
		*out = PM_SELF_SCOPES_OFF;
	else
		*out = (enum pm_self_scopes)word;
	return ret;
}

static int read_rate(struct pm_self_settings *settings, struct pm_error *err)
{
	const char *text = read_variable("PMSELF_RATE");
	uint64_t rate = settings->rate_hz;

	if (text && (!pm_parse_u64(text, &rate) || rate == 0))
		return pm_error_set(err, -EINVAL, "PMSELF_RATE=%s: it is a number of Hz",
				    text);
	if (rate == 0)
		rate = RATE_HZ_DEFAULT;
	if (rate > RATE_HZ_MAX)
		return pm_error_set(err, -EINVAL,
				    "a rate of %llu Hz: %d are the most that is possible",
				    (unsigned long long)rate, RATE_HZ_MAX);
	settings->rate_hz = (uint32_t)rate;
	return 0;
}

static int read_words(struct pm_self_settings *settings, struct pm_error *err)
{
	static const char *const engines[] = { [PMSELF_ENGINE_AUTO] = "auto",
					       [PMSELF_ENGINE_PERF] = "perf",
					       [PMSELF_ENGINE_TIMER] = "timer" };
	static const char *const graphs[] = {
		[PMSELF_CALL_GRAPH_DWARF] = "dwarf", [PMSELF_CALL_GRAPH_NONE] = "none"
	};
	static const char *const threads[] = { "this", "all" };
	unsigned int engine = settings->engine, graph = settings->call_graph;
	unsigned int thread = settings->tid == 0;
	const char *text = read_variable("PMSELF_ENGINE");
	int ret = 0;

	if (text)
		ret = find_setting_word("PMSELF_ENGINE", text, engines,
					PM_ARRAY_LEN(engines), &engine, err);
	text = read_variable("PMSELF_CALL_GRAPH");
	if (ret == 0 && text)
		ret = find_setting_word("PMSELF_CALL_GRAPH", text, graphs,
					PM_ARRAY_LEN(graphs), &graph, err);
	text = read_variable("PMSELF_THREADS");
	if (ret == 0 && text)
		ret = find_setting_word("PMSELF_THREADS", text, threads,
					PM_ARRAY_LEN(threads), &thread, err);
	if (ret == 0 &&
	    (engine >= PM_ARRAY_LEN(engines) || graph >= PM_ARRAY_LEN(graphs)))
		ret = pm_error_set(err, -EINVAL,
				   "engine or call_graph is none of pmself.h");
	settings->engine = (enum pmself_engine)engine;
	settings->call_graph = (enum pmself_call_graph)graph;
	if (thread == 0)
		settings->tid = gettid();
	else
		settings->tid = 0;
	return ret;
}

/* Replaces %p by the pid and %% by a percent sign. With @unique, appends the pid unless
 * @text has %p. Returns NULL if memory runs out. */
static char *expand_path(const char *text, bool unique)
{
	struct pm_str str = { 0 };

	pm_str_puts(&str, "");
	for (; *text; text++) {
		if (text[0] == '%' && text[1] == 'p') {
			pm_str_u64(&str, (uint64_t)getpid());
			unique = false;
			text++;
		} else {
			text += text[0] == '%' && text[1] == '%';
			pm_str_putc(&str, *text);
		}
	}
	if (unique)
		pm_str_printf(&str, ".%d", (int)getpid());
	if (str.failed)
		pm_str_release(&str);
	return str.data;
}

/* Whether the path refers to a descriptor. The helper has no standard streams, and its
 * descriptors differ from the program's. */
static bool is_descriptor(const char *path)
{
	static const char *const names[] = { "/dev/stdin", "/dev/stdout", "/dev/stderr",
					     "/dev/fd/", "/proc/self/fd/" };

	for (size_t i = 0; i < PM_ARRAY_LEN(names); i++)
		if (strncmp(path, names[i], strlen(names[i])) == 0)
			return true;
	return strcmp(path, "-") == 0;
}

/* Whether the file's name has to contain the pid. All programs under LD_PRELOAD have the
 * same variables, and a program must not overwrite the file of the program that executed
 * it. Devices and pipes may be shared. */
static bool has_to_be_unique(const char *path)
{
	struct stat status;

	return is_child() && (stat(path, &status) < 0 || S_ISREG(status.st_mode));
}

static int copy_path(const char *variable_name, const char *asked, bool automatic,
		     const char **out, struct pm_error *err)
{
	const char *text = read_variable(variable_name);
	char *path;

	if (!text)
		text = asked;
	if (!text)
		return 0;
	if (is_descriptor(text))
		return pm_error_set(err, -EINVAL,
				    "%s: the profile is written to files only", text);
	/* An empty variable counts as unset; "none" selects no file. */
	if (strcmp(text, "none") == 0)
		path = strdup("");
	else
		path = expand_path(text, automatic && has_to_be_unique(text));
	if (!path)
		return pm_error_set(err, -ENOMEM, "out of memory");
	*out = path;
	return 0;
}

static void drop_empty_path(const char **path)
{
	if (*path && !(*path)[0]) {
		free((void *)(uintptr_t)*path);
		*path = NULL;
	}
}

static int read_text_settings(struct pm_self_settings *settings, const char *event,
			      const char *output, const char *table, struct pm_error *err)
{
	const char *text = read_variable("PMSELF_EVENT");
	int ret;

	if (!text)
		text = event;
	if (text)
		settings->event = strdup(text);
	else
		settings->event = NULL;
	if (text && !settings->event)
		return pm_error_set(err, -ENOMEM, "out of memory");
	ret = copy_path("PMSELF_OUTPUT", output, settings->automatic, &settings->output,
			err);
	if (ret == 0)
		ret = copy_path("PMSELF_TABLE", table, settings->automatic,
				&settings->table, err);
	drop_empty_path(&settings->output);
	return ret;
}

int pm_self_settings_init(struct pm_self_settings *out,
			  const struct pmself_options *options, struct pm_error *err)
{
	struct pmself_options own = PMSELF_OPTIONS_INIT;
	int ret;

	*out = (struct pm_self_settings){ 0 };
	if (options) {
		if (options->size < sizeof(options->size))
			return pm_error_set(err, -EINVAL,
					    "options begin with PMSELF_OPTIONS_INIT");
		memcpy(&own, options, PM_MIN(options->size, sizeof(own)));
	}
	out->automatic = !options && pm_self_is_automatic();
	out->rate_hz = own.rate_hz;
	out->engine = own.engine;
	out->call_graph = own.call_graph;
	if (own.this_thread_only)
		out->tid = gettid();
	else
		out->tid = 0;
	ret = read_text_settings(out, own.event, own.output, own.table, err);
	if (ret == 0)
		ret = read_rate(out, err);
	if (ret == 0)
		return read_words(out, err);
	return ret;
}

void pm_self_settings_release(struct pm_self_settings *settings)
{
	free((void *)(uintptr_t)settings->event);
	free((void *)(uintptr_t)settings->output);
	free((void *)(uintptr_t)settings->table);
	*settings = (struct pm_self_settings){ 0 };
}
