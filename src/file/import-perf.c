/* SPDX-License-Identifier: MIT */
/*
 * Reads `perf stat -j` and `perf stat -x`: one event in a line, with "<not counted>" and
 * similar words in place of a number. There is one run: with -r, perf keeps only means.
 */
#include "import-internal.h"

/* The content of one line, in either form. Missing fields are NULL or NaN. */
struct perf_line {
	const char *value, *unit, *event;
	double running_ns, percent; /* the time for which the event was on a counter, and
	                             * its percentage */
	bool mean; /* the value is the mean of several runs */
	const char *metric_unit;
	double metric;
};

static const char not_counted[] = "<not counted>", not_supported[] = "<not supported>";

/* ---- events ---------------------------------------------------------------------------- */

static const char *bare_name(const char *event, char *out, size_t size)
{
	snprintf(out, size, "%.*s", (int)strcspn(event, ":"), event);
	return out;
}

/* Returns the class that pmstat gives the same event. */
static enum pm_stat_class perf_class_of_event(const char *event)
{
	static const char *const steady[] = { "instructions", "branches", "page-faults",
					      "faults", "minor-faults" };
	char name[NAME_BYTES];

	bare_name(event, name, sizeof(name));
	for (size_t i = 0; i < PM_ARRAY_LEN(steady); i++)
		if (strcmp(name, steady[i]) == 0)
			return PM_STAT_LOW_NOISE;
	return PM_STAT_NOISY;
}

/* Returns -1 if less is better. Returns 0 (neither) for events that are not costs in
 * themselves, such as "sched:sched_switch" and "cpu/config=1/". */
static int8_t better_of(const char *event)
{
	const char *colon = strchr(event, ':');

	if (strchr(event, '/') ||
	    (colon && strspn(colon + 1, "ukhGHpPSDWeI") != strlen(colon + 1)))
		return 0;
	return -1;
}

static bool is_user_only(const char *event)
{
	const char *colon = strrchr(event, ':');

	return colon && strchr(colon, 'u') && !strchr(colon, 'k') &&
	       strspn(colon + 1, "ukhGHpPSDWeI") == strlen(colon + 1);
}

/* perf reports clocks in milliseconds; ours are in ns. @ret_factor is the factor from
 * perf's values to ours. */
static struct pm_import_event describe_perf_event(const struct perf_line *line,
						  double *ret_factor)
{
	struct pm_import_event event = {
		.name = line->event,
		.unit = pm_text_or_empty(line->unit),
		.source = "perf",
		.scale = 1,
		.class = perf_class_of_event(line->event),
		.better = better_of(line->event),
		.user_only = is_user_only(line->event),
	};

	*ret_factor = 1;
	if (strcmp(event.unit, "msec") == 0) {
		event.unit = "ns";
		*ret_factor = 1e6;
	} else if (event.unit[0] != '\0' && strcmp(event.unit, "ns") != 0) {
		/* For joules, MiB and degrees, fractions matter. */
		event.scale = PM_IMPORT_FINE;
	}
	return event;
}

/* ---- values ---------------------------------------------------------------------------- */

static int set_state(struct pm_importing *to, struct pm_stat_event *event,
		     struct pm_stat_value *value, enum pm_stat_state state,
		     const char *why)
{
	value->state = event->state = state;
	if (pm_stat_text(&event->why, why) < 0)
		return pm_import_no_memory(to);
	return 0;
}

/* perf scales the value of an event that shared its counter. */
static void set_times(struct pm_stat_value *value, const struct perf_line *line)
{
	double enabled = line->running_ns * 100 / line->percent;

	/* Impossible times and percentages count as unknown. */
	if (!(line->running_ns > 0 && line->running_ns < 0x1p63) ||
	    !(line->percent > 0 && line->percent <= 100) || !(enabled < 0x1p63))
		return;
	value->running_ns = (uint64_t)line->running_ns;
	if (line->percent < 100)
		value->enabled_ns = (uint64_t)enabled;
	else
		value->enabled_ns = value->running_ns;
	if (line->percent >= 100)
		return;
	value->state = PM_STAT_MULTIPLEXED;
	value->raw = (uint64_t)((double)value->value * line->percent / 100);
}

/* Returns -EINVAL if the value is not a number. */
static int set_value(struct pm_importing *to, struct pm_stat *stat, size_t index,
		     const struct perf_line *line, double factor)
{
	struct pm_stat_event *event = &stat->events.data[index];
	struct pm_stat_value *value = &stat->runs.data[0].values[index];
	double number;
	char *end;

	if (strcmp(line->value, not_counted) == 0)
		return set_state(to, event, value, PM_STAT_NOT_COUNTED,
				 "perf had it on no counter.");
	if (strcmp(line->value, not_supported) == 0)
		return set_state(to, event, value, PM_STAT_NOT_SUPPORTED,
				 "perf says that this machine does not have it.");
	number = strtod(line->value, &end);
	if (end == line->value || *end != '\0' ||
	    strspn(line->value, "0123456789.") != strlen(line->value) ||
	    !pm_import_set_value(value, number * factor, event->scale))
		return -EINVAL;
	set_times(value, line);
	return 0;
}

/* ---- the document ---------------------------------------------------------------------- */

struct perf_lines {
	PM_VEC(struct perf_line) list;
	PM_VEC(size_t) numbers; /* line numbers in the file, or indices in the array */
};

static void release_lines(struct perf_lines *lines)
{
	pm_vec_release(&lines->list);
	pm_vec_release(&lines->numbers);
}

static int perf_lines_add(struct pm_importing *to, struct perf_lines *lines,
			  const struct perf_line *line, size_t number)
{
	if (lines->list.len >= PM_STAT_EVENTS_MAX)
		return pm_error_set(to->err, -EFBIG, "has more than %d events",
				    PM_STAT_EVENTS_MAX);
	if (pm_vec_push(&lines->list, *line) < 0 ||
	    pm_vec_push(&lines->numbers, number) < 0)
		return pm_import_no_memory(to);
	return 0;
}

static int make_events(struct pm_importing *to, struct pm_stat *stat,
		       const struct perf_lines *lines, double *factors)
{
	int ret = 0;

	for (size_t i = 0; i < lines->list.len && ret == 0; i++) {
		struct pm_import_event event =
			describe_perf_event(&lines->list.data[i], &factors[i]);

		ret = pm_import_add_event(to, stat, &event);
	}
	return ret;
}

/* Adds a ratio that perf computed. It is shown beside its event, but never compared. */
static int add_metric(struct pm_importing *to, struct pm_stat *stat, size_t event,
		      const struct perf_line *line)
{
	struct pm_stat_metric metric = { .scope = -1, .event = (uint32_t)event };

	if (!line->metric_unit || line->metric_unit[0] == '\0' || !isfinite(line->metric))
		return 0;
	metric.known = true;
	metric.value = line->metric;
	if (pm_stat_text(&metric.name, line->metric_unit) == 0 &&
	    pm_stat_text(&metric.unit, "") == 0 &&
	    pm_stat_text(&metric.formula, "by perf") == 0 &&
	    pm_vec_push(&stat->metrics, metric) == 0)
		return 0;
	free(metric.name);
	free(metric.unit);
	free(metric.formula);
	return pm_import_no_memory(to);
}

static int make_document(struct pm_importing *to, const struct perf_lines *lines,
			 const char *place)
{
	PM_AUTO_FREE double *factors = calloc(lines->list.len + 1, sizeof(*factors));
	struct pm_stat_run *run;
	struct pm_stat *stat;
	bool mean = false;
	int ret = factors ? 0 : pm_import_no_memory(to);

	if (ret == 0 && lines->list.len == 0)
		ret = pm_error_set(to->err, -EBADMSG, "has no event in it");
	if (ret == 0)
		ret = pm_import_add_case(to, NULL, "perf-stat", place, &stat);
	if (ret == 0)
		ret = make_events(to, stat, lines, factors);
	if (ret == 0)
		ret = pm_import_add_run(to, stat, &run);
	for (size_t i = 0; i < lines->list.len && ret == 0; i++) {
		const struct perf_line *line = &lines->list.data[i];

		mean = mean || line->mean;
		ret = set_value(to, stat, i, line, factors[i]);
		if (ret == -EINVAL)
			ret = pm_error_set(
				to->err, -EBADMSG, "%s %zu: %.60s: \"%.60s\" is no count",
				place, lines->numbers.data[i], line->event, line->value);
		if (ret == 0)
			ret = add_metric(to, stat, i, line);
	}
	if (ret == 0 && mean)
		ret = pm_import_add_warning(
			to, stat,
			"The values are means of several runs (-r): how "
			"far the runs differ, perf does not keep.");
	return ret;
}

/* ---- JSON ------------------------------------------------------------------------------ */

static double perf_number_or_nan(const struct fields *fields, const char *key)
{
	const json_t *value = json_object_get(fields->object, key);

	if (!json_is_number(value))
		return NAN;
	return json_number_value(value);
}

/* Refuses counts that are divided into parts (by interval, CPU, core and so on), for
 * which there is no document. */
static bool check_whole(struct fields *fields)
{
	static const char *const parts[] = { "interval", "cpu",    "core",
					     "die",      "socket", "node",
					     "thread",   "S",      "cgroup" };

	for (size_t i = 0; i < PM_ARRAY_LEN(parts); i++)
		if (json_object_get(fields->object, parts[i]))
			fail(fields, parts[i],
			     "counts of the whole program are wanted: without -I, -A, "
			     "--per-* and -G");
	return fields->failed == 0;
}

int pm_import_perf_stat(struct pm_importing *to, const json_t *root)
{
	PM_CLEANUP(release_lines) struct perf_lines lines = { 0 };
	struct fields fields = { .err = to->err, .name = "perf" };
	int ret = 0;

	/* perf 6.3 and later may write a list. */
	if (json_is_array(json_array_get(root, 0)) && json_array_size(root) == 1)
		root = json_array_get(root, 0);
	for (size_t i = 0; i < json_array_size(root) && ret == 0; i++) {
		struct fields line = get_element(&fields, "line", root, i);
		struct perf_line found = {
			.running_ns = perf_number_or_nan(&line, "event-runtime"),
			.percent = perf_number_or_nan(&line, "pcnt-running"),
			.metric = perf_number_or_nan(&line, "metric-value"),
			.mean = json_object_get(line.object, "variance") != NULL,
		};

		if (line.failed != 0 || !check_whole(&line))
			return line.failed;
		found.metric_unit = get_text_or_null(&line, "metric-unit");
		/* A second metric of the previous event. */
		if (!json_object_get(line.object, "counter-value"))
			continue;
		found.value = get_text(&line, "counter-value");
		found.event = get_text(&line, "event");
		found.unit = get_text_or_null(&line, "unit");
		ret = line.failed;
		if (ret == 0)
			ret = perf_lines_add(to, &lines, &found, i + 1);
	}
	if (ret < 0)
		return ret;
	return make_document(to, &lines, "event");
}

/* ---- tables ---------------------------------------------------------------------------- */

enum {
	PERF_FIELDS_MAX = 16,
};

/* Returns the byte that separates the fields. It follows the first field, which is a
 * number or a word in angle brackets. Returns '\0' if the field is neither. */
static char separator_of(const char *line)
{
	size_t len = strspn(line, "0123456789.");
	const char *close = line[0] == '<' ? strchr(line, '>') : NULL;

	if (close)
		len = (size_t)(close - line) + 1;
	if (len > 0 && strchr(",;\t|", line[len]))
		return line[len];
	return '\0';
}

static double parse_or_nan(const char *text)
{
	char *end;
	double number = strtod(text, &end);

	if (end != text && *end == '\0')
		return number;
	return NAN;
}

/* VALUE,UNIT,EVENT[,VARIANCE%],RUNTIME,PERCENT[,METRIC,UNIT] */
static bool perf_split_fields(char *text, char separator, struct perf_line *out)
{
	char *fields[PERF_FIELDS_MAX] = { NULL };
	size_t len = 0, at = 3;

	for (char *next = text; next && len < PERF_FIELDS_MAX;) {
		fields[len++] = next;
		next = strchr(next, separator);
		if (next)
			*next++ = '\0';
	}
	if (len < 5)
		return false;
	*out = (struct perf_line){
		.value = fields[0], .unit = fields[1], .event = fields[2], .metric = NAN
	};
	if (strchr(fields[3], '%')) {
		out->mean = true;
		at++;
	}
	if (at + 1 >= len)
		return false;
	out->running_ns = parse_or_nan(fields[at]);
	out->percent = parse_or_nan(fields[at + 1]);
	if (at + 3 < len && fields[at + 3][0]) {
		out->metric = parse_or_nan(fields[at + 2]);
		out->metric_unit = fields[at + 3];
	}
	return out->event[0] != '\0' && isfinite(out->running_ns) &&
	       isfinite(out->percent);
}

int pm_import_perf_table(struct pm_importing *to, const struct pm_str *text)
{
	PM_CLEANUP(release_lines) struct perf_lines lines = { 0 };
	PM_AUTO_FREE char *copy = strndup(text->data, text->len);
	char *line, *rest = copy;
	int ret = copy ? 0 : pm_import_no_memory(to);

	for (size_t number = 1; ret == 0 && (line = strsep(&rest, "\n")); number++) {
		struct perf_line found;
		char separator = separator_of(line);

		if (line[0] == '#' || line[strspn(line, " \t\r")] == '\0')
			continue;
		if (separator == '\0' || !perf_split_fields(line, separator, &found)) {
			ret = pm_error_set(
				to->err, -EBADMSG,
				"line %zu: neither JSON, nor fields of perf stat "
				"-x, of the whole program",
				number);
			continue;
		}
		ret = perf_lines_add(to, &lines, &found, number);
	}
	if (ret < 0)
		return ret;
	return make_document(to, &lines, "line");
}
