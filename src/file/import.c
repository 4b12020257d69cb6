/* SPDX-License-Identifier: MIT */
/* Reads results of other benchmark tools: recognises the tool, and calls its importer. */
#include "import-internal.h"

#include <sys/stat.h>

const char *pm_import_format_name(enum pm_import_format format)
{
	static const char *const names[] = {
		[PM_IMPORT_AUTO] = "auto",
		[PM_IMPORT_GOOGLE_BENCHMARK] = "google-benchmark",
		[PM_IMPORT_CRITERION] = "criterion",
		[PM_IMPORT_HYPERFINE] = "hyperfine",
		[PM_IMPORT_PYTEST_BENCHMARK] = "pytest-benchmark",
		[PM_IMPORT_PERF_STAT] = "perf-stat",
		[PM_IMPORT_IAI_CALLGRIND] = "iai-callgrind",
	};

	if ((size_t)format >= PM_ARRAY_LEN(names))
		return NULL;
	return names[format];
}

static bool has_json_key(const json_t *object, const char *key)
{
	return json_object_get(object, key) != NULL;
}

/* Recognises a tool by keys that no other tool has. @first is the first value of the
 * file. */
static enum pm_import_format find_format(const json_t *first)
{
	if (json_is_array(first))
		first = json_array_get(first, 0);
	if (has_json_key(first, "benchmarks")) {
		if (has_json_key(first, "context"))
			return PM_IMPORT_GOOGLE_BENCHMARK;
		return PM_IMPORT_PYTEST_BENCHMARK;
	}
	if (has_json_key(first, "results"))
		return PM_IMPORT_HYPERFINE;
	if (has_json_key(first, "counter-value") || has_json_key(first, "metric-value"))
		return PM_IMPORT_PERF_STAT;
	if (has_json_key(first, "iters") || has_json_key(first, "median_abs_dev"))
		return PM_IMPORT_CRITERION;
	if (has_json_key(first, "profiles") || has_json_key(first, "tool_summaries") ||
	    has_json_key(first, "callgrind_summary"))
		return PM_IMPORT_IAI_CALLGRIND;
	return PM_IMPORT_AUTO;
}

static int unknown_format(struct pm_importing *to, const json_t *first)
{
	PM_CLEANUP(pm_str_release) struct pm_str names = { 0 };
	const char *format = json_string_value(json_object_get(first, "format"));

	if (format && strncmp(format, "pmstat", 6) == 0)
		return pm_error_set(
			to->err, -EBADMSG,
			"is a document of %s already: pmdiff reads it as it is", format);
	pm_error_set(to->err, -EBADMSG, "has nothing in it by which a tool is known");
	for (enum pm_import_format i = PM_IMPORT_AUTO + 1; i < PM_IMPORT_FORMATS; i++)
		pm_str_printf(&names, "%s%s", i > 1 ? "|" : "", pm_import_format_name(i));
	if (!names.failed)
		pm_error_fix(to->err, "--format %s", names.data);
	return -EBADMSG;
}

static int take_values(struct pm_importing *to, enum pm_import_format format,
		       const json_t *root)
{
	if (format == PM_IMPORT_AUTO)
		format = find_format(json_array_get(root, 0));
	switch (format) {
	case PM_IMPORT_GOOGLE_BENCHMARK:
		return pm_import_google_benchmark(to, root);
	case PM_IMPORT_CRITERION:
		return pm_import_criterion_file(to, root);
	case PM_IMPORT_HYPERFINE:
		return pm_import_hyperfine(to, root);
	case PM_IMPORT_PYTEST_BENCHMARK:
		return pm_import_pytest_benchmark(to, root);
	case PM_IMPORT_PERF_STAT:
		return pm_import_perf_stat(to, root);
	case PM_IMPORT_IAI_CALLGRIND:
		return pm_import_iai_summary(to, root);
	case PM_IMPORT_AUTO:
	case PM_IMPORT_FORMATS:
		break;
	}
	return unknown_format(to, json_array_get(root, 0));
}

/* The first line of a callgrind file always begins with one of these. */
static bool is_callgrind_out(const struct pm_str *text)
{
	static const char *const heads[] = { "# callgrind format",
					     "version: ", "creator: " };

	for (size_t i = 0; i < PM_ARRAY_LEN(heads); i++)
		if (text->len >= strlen(heads[i]) &&
		    memcmp(text->data, heads[i], strlen(heads[i])) == 0)
			return true;
	return false;
}

static int take_file(struct pm_importing *to, enum pm_import_format format)
{
	PM_CLEANUP(pm_str_release) struct pm_str text = { 0 };
	json_t *root;
	size_t begin;
	int ret = pm_import_read_bytes(to->path, &text, to->err);

	if (ret < 0)
		return ret;
	begin = pm_import_skip_comments(&text, 0);
	if ((format == PM_IMPORT_AUTO || format == PM_IMPORT_IAI_CALLGRIND) &&
	    is_callgrind_out(&text))
		return pm_import_callgrind_out(to, &text);
	if ((format == PM_IMPORT_AUTO || format == PM_IMPORT_PERF_STAT) &&
	    begin < text.len && text.data[begin] != '{' && text.data[begin] != '[')
		return pm_import_perf_table(to, &text);
	ret = pm_import_parse(to, &text, &root);
	if (ret < 0)
		return ret;
	ret = take_values(to, format, root);
	json_decref(root);
	return ret;
}

static bool is_import_folder(const char *path)
{
	struct stat found;

	return strcmp(path, "-") != 0 && stat(path, &found) == 0 &&
	       S_ISDIR(found.st_mode);
}

int pm_import_read(struct pm_suite *out, const char *path, enum pm_import_format format,
		   struct pm_error *err)
{
	struct pm_error own = { .offset = -1 };
	struct pm_importing to = { .path = path, .err = err ? err : &own };
	int ret;

	if (is_import_folder(path) &&
	    (format == PM_IMPORT_AUTO || format == PM_IMPORT_CRITERION))
		ret = pm_import_criterion_folder(&to);
	else
		ret = take_file(&to, format);
	if (ret == 0 && to.suite.cases.len == 0)
		ret = pm_error_set(to.err, -EBADMSG, "has no benchmark in it");
	if (ret < 0) {
		pm_error_where(to.err,
			       strcmp(path, "-") == 0 ? "standard input" : to.path, -1);
		pm_suite_release(&to.suite);
		return ret;
	}
	*out = to.suite;
	return 0;
}
