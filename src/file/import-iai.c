/* SPDX-License-Identifier: MIT */
/*
 * Reads iai-callgrind's and Gungraun's summary.json (versions 1 to 6 of their schema),
 * one or several in a file, and callgrind's own files, of which only the totals are used.
 */
#include "import-internal.h"

enum {
	IAI_PARTS_MAX = 65536, /* parts of a callgrind.out file: dumps of threads and
	                        * processes */
	CALLGRIND_COLUMNS_MAX = 32,
};

/* ---- events ---------------------------------------------------------------------------- */

/* Returns pmstat's name for one of callgrind's events. */
static const char *sim_name(const char *kind)
{
	static const struct {
		const char *theirs, *ours;
	} names[] = { { "RamHits", "RAMhits" }, { "EstimatedCycles", "cycles" } };

	for (size_t i = 0; i < PM_ARRAY_LEN(names); i++)
		if (strcmp(kind, names[i].theirs) == 0)
			return names[i].ours;
	return kind;
}

/* The counts of caches and predictors depend on addresses, which differ from build to
 * build. */
static enum pm_stat_class iai_class_of_kind(const char *kind)
{
	static const char *const exact[] = { "Ir", "Dr", "Dw",       "Bc",
					     "Bi", "Ge", "SysCount", "TotalRW" };

	for (size_t i = 0; i < PM_ARRAY_LEN(exact); i++)
		if (strcmp(kind, exact[i]) == 0)
			return PM_STAT_EXACT;
	return PM_STAT_LOW_NOISE;
}

/* A tool of valgrind, and the names of its metrics here. */
struct iai_tool {
	const char *name, *prefix;
	bool simulates; /* it simulates caches: some metrics are not exact */
};

static const struct iai_tool tools[] = {
	{ "Callgrind", "sim.", true },      { "Cachegrind", "cachegrind.", true },
	{ "DHAT", "dhat.", false },         { "Memcheck", "memcheck.", false },
	{ "Helgrind", "helgrind.", false }, { "DRD", "drd.", false },
};

static const struct iai_tool *find_tool(const char *name)
{
	for (size_t i = 0; name && i < PM_ARRAY_LEN(tools); i++)
		if (strcmp(tools[i].name, name) == 0)
			return &tools[i];
	return NULL;
}

static int iai_add_event(struct pm_importing *to, struct pm_stat *stat,
			 const struct iai_tool *tool, const char *kind)
{
	PM_AUTO_FREE char *name = NULL;
	bool bytes = strstr(kind, "Bytes") != NULL;
	struct pm_import_event event = {
		.unit = bytes ? "bytes" : "",
		.source = "simulated",
		.scale = 1,
		.class = tool->simulates ? iai_class_of_kind(kind) : PM_STAT_EXACT,
		.better = -1,
	};

	/* More hits of the fastest cache are not a cost in themselves. */
	if (strcmp(kind, "L1hits") == 0)
		event.better = 0;
	if (asprintf(&name, "%s%s", tool->prefix,
		     tool->simulates ? sim_name(kind) : kind) < 0) {
		name = NULL;
		return pm_import_no_memory(to);
	}
	event.name = name;
	return pm_import_add_event(to, stat, &event);
}

/* ---- summaries ------------------------------------------------------------------------- */

/* The metrics of one run of a tool; the keys are kinds. */
struct iai_metrics {
	const struct iai_tool *tool;
	json_t *object;
};

struct iai_found {
	PM_VEC(struct iai_metrics) list;
};

static void release_found(struct iai_found *found)
{
	pm_vec_release(&found->list);
}

/* Returns NEW of {"Left": NEW} or {"Both": [NEW, OLD]}, or NULL if there is no new
 * value. */
static const json_t *iai_newest_metrics(const json_t *metrics)
{
	const json_t *left = json_object_get(metrics, "Left");

	if (left)
		return left;
	return json_array_get(json_object_get(metrics, "Both"), 0);
}

/* Returns the number in {"metrics": EITHER} or {"new": N}. Returns NULL if there is none,
 * or if it is a rate, which can be computed from others. */
static const json_t *count_of(const json_t *metric)
{
	const json_t *metrics = json_object_get(metric, "metrics");
	const json_t *value =
		metrics ? iai_newest_metrics(metrics) : json_object_get(metric, "new");

	if (json_is_object(value))
		value = json_object_get(value, "Int");
	if (json_is_null(value))
		return NULL;
	return value;
}

static int find_metrics(struct pm_importing *to, struct iai_found *found,
			const char *tool_name, json_t *object)
{
	struct iai_metrics metrics = { .tool = find_tool(tool_name), .object = object };

	if (!metrics.tool || !json_is_object(object))
		return 0;
	if (pm_vec_push(&found->list, metrics) < 0)
		return pm_import_no_memory(to);
	return 0;
}

/* Versions 1 and 2: callgrind_summary.summaries[].events; the other tools have only
 * strings. */
static int find_in_version_2(struct pm_importing *to, struct fields *fields,
			     struct iai_found *found)
{
	struct fields summary = get_object(fields, "callgrind_summary");
	const json_t *runs = get_array(&summary, "summaries");

	if (summary.failed != 0)
		return summary.failed;
	if (json_array_size(runs) != 1) {
		fail(&summary, "summaries", "expected one run");
		return summary.failed;
	}
	return find_metrics(to, found, "Callgrind",
			    json_object_get(json_array_get(runs, 0), "events"));
}

/* From version 3 on: NAME[].summaries.total.summary.{KIND: metrics}. */
static int find_in_tools(struct pm_importing *to, struct fields *fields, const char *key,
			 struct iai_found *found)
{
	const json_t *list = get_array(fields, key);
	int ret = fields->failed;

	for (size_t i = 0; ret == 0 && i < json_array_size(list); i++) {
		struct fields tool = get_element(fields, key, list, i);
		struct fields summaries, total;
		const char *name, *kind;
		json_t *summary, *value;

		if (tool.failed == 0)
			name = get_text(&tool, "tool");
		else
			name = NULL;
		summaries = get_object(&tool, "summaries");
		total = get_object(&summaries, "total");
		summary = json_object_get(total.object, "summary");
		ret = total.failed;
		/* "None" stands for a tool without numbers. */
		json_object_foreach(summary, kind, value) if (ret == 0) ret =
			find_metrics(to, found, name, value);
	}
	return ret;
}

static int iai_add_events(struct pm_importing *to, struct pm_stat *stat,
			  const struct iai_found *found)
{
	int ret = 0;

	for (size_t i = 0; i < found->list.len; i++) {
		const char *kind;
		json_t *metric;

		json_object_foreach(found->list.data[i].object, kind,
				    metric) if (ret == 0 && count_of(metric)) ret =
			iai_add_event(to, stat, found->list.data[i].tool, kind);
	}
	return ret;
}

static int set_values(struct pm_stat_run *run, struct fields *fields,
		      const struct iai_found *found)
{
	size_t event = 0;

	for (size_t i = 0; i < found->list.len; i++) {
		const char *kind;
		json_t *metric;

		json_object_foreach(found->list.data[i].object, kind, metric)
		{
			const json_t *count = count_of(metric);

			if (!count)
				continue;
			if (!json_is_integer(count) || json_integer_value(count) < 0) {
				fail(fields, kind,
				     "expected a count, which is not negative");
				return fields->failed;
			}
			run->values[event] = (struct pm_stat_value){
				.state = PM_STAT_OK,
				.value = (uint64_t)json_integer_value(count),
				.raw = (uint64_t)json_integer_value(count),
			};
			event++;
		}
	}
	return 0;
}

static int add_document(struct pm_importing *to, struct fields *fields, const char *name,
			const struct iai_found *found)
{
	const char *program =
		json_string_value(json_object_get(fields->object, "benchmark_exe"));
	char place[2 * NAME_BYTES];
	struct pm_stat_run *run;
	struct pm_stat *stat;
	int ret;

	snprintf(place, sizeof(place), "%s.module_path", fields->name);
	ret = pm_import_add_case(to, name, "iai-callgrind", place, &stat);
	if (ret == 0 && program)
		ret = pm_import_set_command(to, stat, program);
	if (ret == 0)
		ret = iai_add_events(to, stat, found);
	if (ret == 0 && stat->events.len == 0) {
		fail(fields, "profiles", "there is no number of this run in it");
		ret = fields->failed;
	}
	if (ret == 0)
		ret = pm_import_add_run(to, stat, &run);
	if (ret < 0)
		return ret;
	return set_values(run, fields, found);
}

static int add_summary(struct pm_importing *to, struct fields *fields)
{
	PM_CLEANUP(release_found) struct iai_found found = { 0 };
	const char *path = get_text(fields, "module_path");
	const char *id = get_text_or_null(fields, "id");
	PM_AUTO_FREE char *name = NULL;
	int ret = fields->failed;

	if (ret == 0 && json_object_get(fields->object, "profiles"))
		ret = find_in_tools(to, fields, "profiles", &found);
	else if (ret == 0 &&
		 json_is_object(json_object_get(fields->object, "callgrind_summary")))
		ret = find_in_version_2(to, fields, &found);
	else if (ret == 0)
		ret = find_in_tools(to, fields, "tool_summaries", &found);
	if (ret < 0)
		return ret;
	if (asprintf(&name, "%s%s%s", path, id ? " " : "", pm_text_or_empty(id)) < 0) {
		name = NULL;
		return pm_import_no_memory(to);
	}
	return add_document(to, fields, name, &found);
}

int pm_import_iai_summary(struct pm_importing *to, const json_t *root)
{
	struct fields fields = { .err = to->err, .name = "iai" };

	/* The text has the lines of --output-format=json, or a list that jq has made from
	 * them. */
	if (json_is_array(json_array_get(root, 0)) && json_array_size(root) == 1)
		root = json_array_get(root, 0);
	for (size_t i = 0; fields.failed == 0 && i < json_array_size(root); i++) {
		struct fields summary = get_element(&fields, "summary", root, i);

		fields.failed = summary.failed;
		if (fields.failed == 0)
			fields.failed = add_summary(to, &summary);
	}
	return fields.failed;
}

/* ---- callgrind.out --------------------------------------------------------------------- */

struct callgrind_out {
	struct pm_importing *to;
	char *columns[CALLGRIND_COLUMNS_MAX]; /* pointers into the file's text */
	uint64_t totals[CALLGRIND_COLUMNS_MAX];
	size_t len, parts;
	const char *command;
};

static char *value_of(char *line, const char *key)
{
	size_t len = strlen(key);

	if (strncmp(line, key, len) != 0)
		return NULL;
	return line + len + strspn(line + len, " ");
}

static int set_columns(struct callgrind_out *out, char *value, size_t line)
{
	size_t len = 0;
	char *word;

	while ((word = strsep(&value, " \t"))) {
		if (*word == '\0')
			continue;
		if (len == CALLGRIND_COLUMNS_MAX)
			return pm_error_set(out->to->err, -EFBIG,
					    "line %zu: more than %d events", line,
					    CALLGRIND_COLUMNS_MAX);
		if (out->len > 0 && (len >= out->len || strcmp(out->columns[len], word)))
			return pm_error_set(out->to->err, -EBADMSG,
					    "line %zu: the parts have other events each",
					    line);
		out->columns[len++] = word;
	}
	if (len == 0 || (out->len > 0 && len != out->len))
		return pm_error_set(out->to->err, -EBADMSG, "line %zu: expected events",
				    line);
	out->len = len;
	return 0;
}

/* Counts that are missing at the end of the line are 0: callgrind omits them. */
static int add_totals(struct callgrind_out *out, char *value, size_t line)
{
	size_t at = 0;
	char *word;

	while ((word = strsep(&value, " \t"))) {
		uint64_t count;

		if (*word == '\0')
			continue;
		if (at >= out->len || !pm_parse_u64(word, &count) ||
		    out->totals[at] > UINT64_MAX - count)
			return pm_error_set(out->to->err, -EBADMSG,
					    "line %zu: expected a count for each event",
					    line);
		out->totals[at++] += count;
	}
	if (++out->parts > IAI_PARTS_MAX)
		return pm_error_set(out->to->err, -EFBIG, "has more than %d parts",
				    IAI_PARTS_MAX);
	return 0;
}

static int take_line(struct callgrind_out *out, char *line, size_t number)
{
	char *value;

	if ((value = value_of(line, "events:")))
		return set_columns(out, value, number);
	if ((value = value_of(line, "totals:")))
		return add_totals(out, value, number);
	if (!out->command && (value = value_of(line, "cmd:")))
		out->command = value;
	return 0;
}

static int make_out(struct callgrind_out *out)
{
	struct pm_importing *to = out->to;
	struct pm_stat_run *run;
	struct pm_stat *stat;
	int ret;

	if (out->parts == 0)
		return pm_error_set(
			to->err, -EBADMSG,
			"has no line \"totals:\": it was not written to its end");
	ret = pm_import_add_case(to, NULL, "iai-callgrind", "the file", &stat);
	if (ret == 0 && out->command && out->command[0])
		ret = pm_import_set_command(to, stat, out->command);
	for (size_t i = 0; i < out->len && ret == 0; i++)
		ret = iai_add_event(to, stat, &tools[0], out->columns[i]);
	if (ret == 0)
		ret = pm_import_add_run(to, stat, &run);
	for (size_t i = 0; i < out->len && ret == 0; i++)
		run->values[i] = (struct pm_stat_value){ .state = PM_STAT_OK,
							 .value = out->totals[i],
							 .raw = out->totals[i] };
	return ret;
}

int pm_import_callgrind_out(struct pm_importing *to, const struct pm_str *text)
{
	struct callgrind_out out = { .to = to };
	PM_AUTO_FREE char *copy = strndup(text->data, text->len);
	char *line, *rest = copy;
	int ret = copy ? 0 : pm_import_no_memory(to);

	for (size_t number = 1; ret == 0 && (line = strsep(&rest, "\n")); number++)
		ret = take_line(&out, line, number);
	if (ret < 0)
		return ret;
	return make_out(&out);
}
