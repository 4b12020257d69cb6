/* SPDX-License-Identifier: MIT */
/*
 * Reads times of whole commands and of Python's functions: hyperfine's --export-json, and
 * pytest-benchmark's --benchmark-json. Both store the seconds of each run.
 */
#include "import-internal.h"

static const struct pm_import_event wall_time = {
	.name = "wall-time",
	.unit = "ns",
	.source = "tool",
	.scale = 1,
	.class = PM_STAT_NOISY,
	.better = -1,
};
static const struct pm_import_event wall_time_of_call = {
	.name = "wall-time",
	.unit = "ns",
	.source = "tool",
	.scale = PM_IMPORT_FINE,
	.class = PM_STAT_NOISY,
	.better = -1,
};

/* Sets the first value of @run from a time in seconds. */
static void set_seconds(struct fields *fields, const char *key, size_t index,
			const json_t *number, const struct pm_stat *stat,
			struct pm_stat_run *run)
{
	double seconds = json_number_value(number);

	if (json_is_number(number) && seconds >= 0 &&
	    pm_import_set_value(&run->values[0], seconds * PM_IMPORT_NS,
				stat->events.data[0].scale))
		return;
	/* Null, which also stands for NaN, is left as "not counted". */
	if (!json_is_null(number))
		fail(fields, key, "value %zu: expected seconds, at least 0", index);
}

static int add_seconds(struct pm_importing *to, struct pm_stat *stat,
		       struct fields *fields, const char *key)
{
	const json_t *times = get_array(fields, key);
	struct pm_stat_run *run;
	int ret = fields->failed;

	for (size_t i = 0; ret == 0 && i < json_array_size(times); i++) {
		ret = pm_import_add_run(to, stat, &run);
		if (ret == 0)
			set_seconds(fields, key, i, json_array_get(times, i), stat, run);
		if (ret == 0)
			ret = fields->failed;
	}
	if (ret == 0 && stat->runs.len == 0) {
		fail(fields, key, "there are no times in it");
		ret = fields->failed;
	}
	return ret;
}

/* ---- hyperfine ------------------------------------------------------------------------- */

/* Null means that a signal killed the command; hyperfine does not report which one. */
static void set_exit_codes(struct fields *fields, struct pm_stat *stat)
{
	const json_t *codes = json_object_get(fields->object, "exit_codes");

	for (size_t i = 0; i < json_array_size(codes) && i < stat->runs.len; i++) {
		struct pm_stat_run *run = &stat->runs.data[i];
		const json_t *code = json_array_get(codes, i);

		if (json_is_null(code)) {
			run->stopped = true;
			continue;
		}
		if (!json_is_integer(code) || json_integer_value(code) < 0 ||
		    json_integer_value(code) > INT32_MAX) {
			fail(fields, "exit_codes",
			     "value %zu: expected an exit status or null", i);
			return;
		}
		run->exited = true;
		run->exit_code = (int32_t)json_integer_value(code);
	}
}

/* Adds a time of which hyperfine reports only the mean. */
static int add_mean(struct pm_importing *to, struct fields *fields, struct pm_stat *stat,
		    const char *key, const char *name)
{
	const json_t *mean = json_object_get(fields->object, key);
	struct pm_stat_metric metric = { .scope = -1 };

	if (!json_is_number(mean))
		return 0;
	metric.known = isfinite(json_number_value(mean));
	metric.value = json_number_value(mean);
	if (pm_stat_text(&metric.name, name) == 0 &&
	    pm_stat_text(&metric.unit, "s") == 0 &&
	    pm_stat_text(&metric.formula, "mean of the runs") == 0 &&
	    pm_vec_push(&stat->metrics, metric) == 0)
		return 0;
	free(metric.name);
	free(metric.unit);
	free(metric.formula);
	return pm_import_no_memory(to);
}

static int add_hyperfine_result(struct pm_importing *to, struct fields *fields)
{
	const char *command = get_text(fields, "command");
	char place[2 * NAME_BYTES];
	struct pm_stat *stat;
	int ret = fields->failed;

	snprintf(place, sizeof(place), "%s.command", fields->name);
	if (ret == 0)
		ret = pm_import_add_case(to, command, "hyperfine", place, &stat);
	if (ret == -EBADMSG)
		pm_error_fix(to->err, "hyperfine --command-name NAME");
	if (ret == 0)
		ret = pm_import_set_command(to, stat, command);
	if (ret == 0)
		ret = pm_import_add_event(to, stat, &wall_time);
	if (ret == 0)
		ret = add_seconds(to, stat, fields, "times");
	if (ret == 0) {
		set_exit_codes(fields, stat);
		ret = fields->failed;
	}
	if (ret == 0)
		ret = add_mean(to, fields, stat, "user", "user time");
	if (ret < 0)
		return ret;
	return add_mean(to, fields, stat, "system", "system time");
}

int pm_import_hyperfine(struct pm_importing *to, const json_t *root)
{
	struct fields fields = { .object = json_array_get(root, 0),
				 .err = to->err,
				 .name = "hyperfine" };
	const json_t *results = get_array(&fields, "results");

	for (size_t i = 0; fields.failed == 0 && i < json_array_size(results); i++) {
		struct fields result = get_element(&fields, "results", results, i);

		fields.failed = result.failed;
		if (fields.failed == 0)
			fields.failed = add_hyperfine_result(to, &result);
	}
	return fields.failed;
}

/* ---- pytest-benchmark ------------------------------------------------------------------ */

/* Returns an optional string of an object, or NULL if it is missing. */
static const char *text_of(const json_t *object, const char *key)
{
	return json_string_value(json_object_get(object, key));
}

static int set_machine(struct pm_importing *to, struct pm_stat *stat, const json_t *root)
{
	const json_t *machine = json_object_get(root, "machine_info"),
		     *cpu = json_object_get(machine, "cpu"),
		     *commit = json_object_get(root, "commit_info"),
		     *count = json_object_get(cpu, "count");
	const char *id = text_of(commit, "id");
	struct pm_stat_subject *subject = &stat->subjects.data[0];
	struct pm_stat_host *host = &stat->host;
	char created[32];

	if (pm_import_utc(text_of(root, "datetime"), created, sizeof(created)) &&
	    pm_stat_text(&stat->created, created) < 0)
		return pm_import_no_memory(to);
	if (json_is_integer(count) && json_integer_value(count) > 0 &&
	    json_integer_value(count) <= UINT32_MAX)
		host->cpus = (uint32_t)json_integer_value(count);
	if (pm_stat_text(&host->hostname, text_of(machine, "node")) < 0 ||
	    pm_stat_text(&host->kernel, text_of(machine, "release")) < 0 ||
	    pm_stat_text(&host->arch, text_of(machine, "machine")) < 0 ||
	    pm_stat_text(&host->cpu_model, text_of(cpu, "brand_raw")) < 0)
		return pm_import_no_memory(to);
	if (pm_import_add_setting(to, stat, "pytest-benchmark",
				  text_of(root, "version")) < 0 ||
	    pm_import_add_setting(to, stat, "python",
				  text_of(machine, "python_version")) < 0)
		return -ENOMEM;
	/* The ids of other version control systems may have any form. */
	if (!id || strlen(id) != 40 || strspn(id, "0123456789abcdef") != 40)
		return 0;
	if (json_is_boolean(json_object_get(commit, "dirty")))
		subject->dirty = json_is_true(json_object_get(commit, "dirty"));
	if (pm_stat_text(&subject->commit, id) < 0)
		return pm_import_no_memory(to);
	return 0;
}

/* Without --benchmark-save-data, a file has only statistics. */
static int add_median(struct pm_importing *to, struct pm_stat *stat, struct fields *stats)
{
	double median = pm_import_get_number(stats, "median");
	struct pm_stat_run *run;
	int ret = stats->failed;

	if (ret == 0)
		ret = pm_import_add_run(to, stat, &run);
	if (ret < 0)
		return ret;
	if (!pm_import_set_value(&run->values[0], median * PM_IMPORT_NS,
				 PM_IMPORT_FINE)) {
		fail(stats, "median", "expected seconds");
		return stats->failed;
	}
	return pm_import_add_warning(
		to, stat,
		"The file has no single rounds: the median of them is the only value, and "
		"how far rounds differ is not known (--benchmark-save-data keeps them).");
}

static int add_pytest_benchmark(struct pm_importing *to, struct fields *fields,
				const json_t *root)
{
	const char *key =
		json_object_get(fields->object, "fullname") ? "fullname" : "name";
	const char *name = get_text(fields, key);
	struct fields stats = get_object(fields, "stats");
	char place[2 * NAME_BYTES];
	struct pm_stat *stat;
	int ret = stats.failed;

	snprintf(place, sizeof(place), "%s.%s", fields->name, key);
	if (ret == 0)
		ret = pm_import_add_case(to, name, "pytest-benchmark", place, &stat);
	if (ret == 0)
		ret = pm_import_set_command(to, stat, name);
	if (ret == 0)
		ret = set_machine(to, stat, root);
	if (ret == 0)
		ret = pm_import_add_event(to, stat, &wall_time_of_call);
	if (ret < 0)
		return ret;
	if (json_object_get(stats.object, "data"))
		return add_seconds(to, stat, &stats, "data");
	return add_median(to, stat, &stats);
}

int pm_import_pytest_benchmark(struct pm_importing *to, const json_t *root)
{
	const json_t *first = json_array_get(root, 0);
	struct fields fields = { .object = first, .err = to->err, .name = "pytest" };
	const json_t *benchmarks = get_array(&fields, "benchmarks");

	for (size_t i = 0; fields.failed == 0 && i < json_array_size(benchmarks); i++) {
		struct fields benchmark =
			get_element(&fields, "benchmarks", benchmarks, i);

		fields.failed = benchmark.failed;
		if (fields.failed == 0)
			fields.failed = add_pytest_benchmark(to, &benchmark, first);
	}
	return fields.failed;
}
