/* SPDX-License-Identifier: MIT */
/*
 * Reads google-benchmark's --benchmark_format=json: the repetitions of a benchmark are
 * its runs; their aggregates are skipped. All other numbers of a repetition are counters
 * of the user.
 */
#include "import-internal.h"

enum {
	GOOGLE_TIMES = 2, /* the events that precede the counters */
	GOOGLE_COUNTERS_MAX =
		256, /* counters of a benchmark: each is searched for in each
		      * repetition */
};

/* A benchmark and its repetitions, collected before its document is built, because some
 * repetitions may lack counters. */
struct google_case {
	const char *name;
	PM_VEC(size_t) entries; /* indices into google.benchmarks */
};

struct google {
	struct pm_importing *to;
	const json_t *root, *benchmarks;
	PM_VEC(struct google_case) cases;
	struct pm_index index; /* of cases by name */
};

static void release_google(struct google *google)
{
	for (size_t i = 0; i < google->cases.len; i++)
		pm_vec_release(&google->cases.data[i].entries);
	pm_vec_release(&google->cases);
	pm_index_release(&google->index);
}

/* ---- benchmarks and their entries ------------------------------------------------------ */

static bool is_google_case_called(const void *table, uint32_t id, const void *key)
{
	return strcmp(((const struct google *)table)->cases.data[id].name, key) == 0;
}

static int google_find_or_add_case(struct google *google, const char *name, uint32_t *out)
{
	uint64_t hash = pm_hash_bytes(name, strlen(name));

	*out = pm_index_find(&google->index, hash, is_google_case_called, google, name);
	if (*out != PM_INDEX_NONE)
		return 0;
	*out = (uint32_t)google->cases.len;
	if (pm_vec_push(&google->cases, (struct google_case){ .name = name }) < 0 ||
	    pm_index_add(&google->index, hash, *out) < 0)
		return pm_import_no_memory(google->to);
	return 0;
}

/* Before version 1.5, aggregates could only be recognised by their names. */
static bool is_aggregate(const json_t *entry, const char *name)
{
	static const char *const ends[] = { "_mean", "_median", "_stddev",
					    "_cv",   "_BigO",   "_RMS" };
	const char *type = json_string_value(json_object_get(entry, "run_type"));
	size_t len = strlen(name);

	if (type)
		return strcmp(type, "aggregate") == 0;
	for (size_t i = 0; i < PM_ARRAY_LEN(ends); i++)
		if (len > strlen(ends[i]) &&
		    strcmp(name + len - strlen(ends[i]), ends[i]) == 0)
			return true;
	return false;
}

static int sort_entries(struct google *google, struct fields *fields)
{
	size_t aggregates = 0;

	for (size_t i = 0; i < json_array_size(google->benchmarks); i++) {
		struct fields entry =
			get_element(fields, "benchmarks", google->benchmarks, i);
		const char *key =
			json_object_get(entry.object, "run_name") ? "run_name" : "name";
		const char *name = entry.failed == 0 ? get_text(&entry, key) : NULL;
		uint32_t id;

		if (entry.failed != 0)
			return entry.failed;
		if (is_aggregate(entry.object, name)) {
			aggregates++;
			continue;
		}
		if (google_find_or_add_case(google, name, &id) < 0)
			return -ENOMEM;
		if (pm_vec_push(&google->cases.data[id].entries, i) < 0)
			return pm_import_no_memory(google->to);
	}
	if (google->cases.len > 0 || aggregates == 0)
		return 0;
	pm_error_set(
		google->to->err, -EBADMSG,
		"has aggregates only: how far single repetitions differ is not in it");
	pm_error_fix(google->to->err, "--benchmark_report_aggregates_only=false");
	return -EBADMSG;
}

/* ---- events ---------------------------------------------------------------------------- */

static bool is_google_counter(const char *key, const json_t *value)
{
	static const char *const others[] = {
		"repetitions", "repetition_index", "threads",
		"iterations",  "real_time",        "cpu_time",
		"time_unit",   "family_index",     "per_family_instance_index"
	};

	if (!json_is_number(value) && !json_is_null(value))
		return false;
	for (size_t i = 0; i < PM_ARRAY_LEN(others); i++)
		if (strcmp(key, others[i]) == 0)
			return false;
	return true;
}

static size_t find_event(const struct pm_stat *stat, const char *name)
{
	size_t i = GOOGLE_TIMES;

	while (i < stat->events.len && strcmp(stat->events.data[i].name, name) != 0)
		i++;
	return i;
}

static struct pm_import_event counter_event(const char *key)
{
	struct pm_import_event event = {
		.name = key,
		.unit = "",
		.source = "tool",
		.scale = PM_IMPORT_FINE,
		.class = PM_STAT_NOISY,
		.secondary = true,
	};

	if (strcmp(key, "items_per_second") == 0 ||
	    strcmp(key, "bytes_per_second") == 0) {
		event.better = 1;
		event.unit = key[0] == 'b' ? "bytes/s" : "/s";
	}
	return event;
}

static int add_counters(struct pm_importing *to, struct pm_stat *stat, json_t *entry)
{
	const char *key;
	json_t *value;

	json_object_foreach(entry, key, value)
	{
		struct pm_import_event event = counter_event(key);
		int ret;

		if (!is_google_counter(key, value) ||
		    find_event(stat, key) < stat->events.len)
			continue;
		if (stat->events.len >= GOOGLE_TIMES + GOOGLE_COUNTERS_MAX)
			return pm_error_set(to->err, -EFBIG,
					    "a benchmark has more than %d counters",
					    GOOGLE_COUNTERS_MAX);
		ret = pm_import_add_event(to, stat, &event);
		if (ret < 0)
			return ret;
	}
	return 0;
}

static int google_add_events(struct google *google, const struct google_case *of,
			     struct pm_stat *stat)
{
	static const struct pm_import_event times[GOOGLE_TIMES] = {
		{ "wall-time", "ns", "tool", PM_IMPORT_FINE, PM_STAT_NOISY, -1, true,
		  false },
		{ "cpu-time", "ns", "tool", PM_IMPORT_FINE, PM_STAT_NOISY, -1, false,
		  false },
	};
	int ret = 0;

	for (size_t i = 0; i < GOOGLE_TIMES && ret == 0; i++)
		ret = pm_import_add_event(google->to, stat, &times[i]);
	for (size_t i = 0; i < of->entries.len && ret == 0; i++)
		ret = add_counters(
			google->to, stat,
			json_array_get(google->benchmarks, of->entries.data[i]));
	return ret;
}

/* ---- runs ------------------------------------------------------------------------------ */

static double time_factor(struct fields *entry)
{
	static const struct {
		const char *unit;
		double ns;
	} units[] = { { "ns", 1 }, { "us", 1e3 }, { "ms", 1e6 }, { "s", 1e9 } };
	const char *unit = json_object_get(entry->object, "time_unit")
				   ? get_text(entry, "time_unit")
				   : "ns";

	for (size_t i = 0; unit && i < PM_ARRAY_LEN(units); i++)
		if (strcmp(unit, units[i].unit) == 0)
			return units[i].ns;
	if (unit)
		fail(entry, "time_unit", "expected ns, us, ms or s");
	return 1;
}

static void set_time(struct fields *entry, struct pm_stat_value *value, const char *key,
		     double factor)
{
	double number;

	if (json_is_null(json_object_get(entry->object, key)))
		return;
	number = pm_import_get_number(entry, key);
	if (entry->failed == 0 &&
	    !pm_import_set_value(value, number * factor, PM_IMPORT_FINE))
		fail(entry, key, "is longer than a time can be here");
}

/* A counter that is negative or too large counts as unknown, because our values cannot
 * hold it. */
static int set_counters(struct pm_importing *to, struct pm_stat *stat,
			struct pm_stat_run *run, json_t *entry)
{
	const char *key;
	json_t *value;

	json_object_foreach(entry, key, value)
	{
		size_t event = is_google_counter(key, value) ? find_event(stat, key)
							     : stat->events.len;

		if (event >= stat->events.len || json_is_null(value) ||
		    pm_import_set_value(&run->values[event], json_number_value(value),
					PM_IMPORT_FINE))
			continue;
		if (pm_import_add_warning(
			    to, stat,
			    "%s: %g cannot be held: values are at least 0 and at most %g.",
			    key, json_number_value(value), 0x1p64 * PM_IMPORT_FINE) < 0)
			return -ENOMEM;
	}
	return 0;
}

/* Returns the message of SkipWithError() or SkipWithMessage(), or NULL if the benchmark
 * was not skipped. */
static const char *why_skipped(const json_t *entry)
{
	static const char *const flags[] = { "error_occurred", "skipped" };
	static const char *const words[] = { "error_message", "skip_message" };

	for (size_t i = 0; i < PM_ARRAY_LEN(flags); i++) {
		const char *text = json_string_value(json_object_get(entry, words[i]));

		if (json_is_true(json_object_get(entry, flags[i]))) {
			if (text)
				return text;
			return "it was skipped";
		}
	}
	return NULL;
}

static int add_repetition(struct google *google, struct pm_stat *stat,
			  struct fields *entry, json_t *object)
{
	const char *skipped = why_skipped(entry->object);
	struct pm_stat_run *run;
	double factor;
	int ret = pm_import_add_run(google->to, stat, &run);

	if (ret < 0)
		return ret;
	if (skipped) {
		run->stopped = true;
		return pm_import_add_warning(
			google->to, stat, "A repetition did not end well: %s.", skipped);
	}
	factor = time_factor(entry);
	set_time(entry, &run->values[0], "real_time", factor);
	set_time(entry, &run->values[1], "cpu_time", factor);
	if (entry->failed != 0)
		return entry->failed;
	return set_counters(google->to, stat, run, object);
}

/* ---- documents ------------------------------------------------------------------------- */

static int set_context(struct google *google, struct pm_stat *stat)
{
	struct pm_importing *to = google->to;
	const json_t *context = json_object_get(google->root, "context"),
		     *cpus = json_object_get(context, "num_cpus");
	const char *date = json_string_value(json_object_get(context, "date")),
		   *program = json_string_value(json_object_get(context, "executable")),
		   *build = json_string_value(
			   json_object_get(context, "library_build_type"));
	char created[32];
	int ret = 0;

	if (json_is_integer(cpus) && json_integer_value(cpus) > 0 &&
	    json_integer_value(cpus) <= UINT32_MAX)
		stat->host.cpus = (uint32_t)json_integer_value(cpus);
	if ((pm_import_utc(date, created, sizeof(created)) &&
	     pm_stat_text(&stat->created, created) < 0) ||
	    pm_stat_text(&stat->host.hostname,
			 json_string_value(json_object_get(context, "host_name"))) < 0)
		return pm_import_no_memory(to);
	if (program)
		ret = pm_import_set_command(to, stat, program);
	if (ret == 0)
		ret = pm_import_add_setting(to, stat, "library_build_type", build);
	if (ret == 0 && build && strcmp(build, "debug") == 0)
		ret = pm_import_add_warning(
			to, stat,
			"The library was built as DEBUG, which may add "
			"to times.");
	if (ret == 0 && json_is_true(json_object_get(context, "cpu_scaling_enabled")))
		ret = pm_import_add_warning(to, stat,
					    "The frequency of the CPUs was not fixed.");
	return ret;
}

static int google_add_benchmark(struct google *google, struct fields *fields,
				const struct google_case *of)
{
	char place[NAME_BYTES];
	struct pm_stat *stat;
	int ret;

	snprintf(place, sizeof(place), "benchmarks[%zu].name", of->entries.data[0]);
	ret = pm_import_add_case(google->to, of->name, "google-benchmark", place, &stat);
	if (ret == 0)
		ret = set_context(google, stat);
	if (ret == 0)
		ret = google_add_events(google, of, stat);
	for (size_t i = 0; i < of->entries.len && ret == 0; i++) {
		struct fields entry = get_element(
			fields, "benchmarks", google->benchmarks, of->entries.data[i]);

		ret = add_repetition(
			google, stat, &entry,
			json_array_get(google->benchmarks, of->entries.data[i]));
	}
	return ret;
}

int pm_import_google_benchmark(struct pm_importing *to, const json_t *root)
{
	PM_CLEANUP(release_google)
	struct google google = { .to = to, .root = json_array_get(root, 0) };
	struct fields fields = { .object = google.root,
				 .err = to->err,
				 .name = "google" };
	int ret;

	google.benchmarks = get_array(&fields, "benchmarks");
	ret = fields.failed;
	if (ret == 0)
		ret = sort_entries(&google, &fields);
	for (size_t i = 0; i < google.cases.len && ret == 0; i++)
		ret = google_add_benchmark(&google, &fields, &google.cases.data[i]);
	return ret;
}
