/* SPDX-License-Identifier: MIT */
/* Reads a counting run from JSON: checks the type and range of every value, and then
 * whether the document is consistent. Skips keys that this version does not know. */
#include "parse-values.h"
#include "stat-internal.h"

#include <limits.h>

/* ---- kinds of values ------------------------------------------------------------------- */

static char *copy_stat_text(struct fields *fields, const char *text)
{
	char *copy = NULL;

	if (text && pm_stat_text(&copy, text) < 0)
		fail_memory(fields);
	return copy;
}

/* Returns a copy of the string @key. */
static char *take_stat_text(struct fields *fields, const char *key)
{
	return copy_stat_text(fields, get_text(fields, key));
}

static char *take_stat_text_or_null(struct fields *fields, const char *key)
{
	return copy_stat_text(fields, get_text_or_null(fields, key));
}

static bool is_null(struct fields *fields, const char *key)
{
	const json_t *value = json_object_get(fields->object, key);

	return !value || json_is_null(value);
}

/* Returns a count. Above 2^63 - 1, it is a hexadecimal string. */
static uint64_t get_count(struct fields *fields, const char *key)
{
	if (json_is_string(json_object_get(fields->object, key)))
		return get_address(fields, key);
	return get_u64(fields, key);
}

static uint64_t get_up_to(struct fields *fields, const char *key, uint64_t max)
{
	return as_u64(fields, key, get(fields, key), max);
}

/* Returns a number that fits into int32_t, or @otherwise if it is null. */
static int32_t get_i32_or(struct fields *fields, const char *key, int32_t otherwise)
{
	if (is_null(fields, key))
		return otherwise;
	return (int32_t)get_up_to(fields, key, INT32_MAX);
}

static bool get_bool(struct fields *fields, const char *key)
{
	const json_t *value = get(fields, key);

	if (value && !json_is_boolean(value))
		fail(fields, key, "expected true or false");
	return json_is_true(value);
}

static double get_real(struct fields *fields, const char *key)
{
	const json_t *value = get(fields, key);

	if (value && !json_is_number(value))
		fail(fields, key, "expected a number");
	return json_number_value(value);
}

/* Returns the index of the string @key in a list of words. @name_of returns the words,
 * and NULL after the last one. */
static unsigned int get_word(struct fields *fields, const char *key,
			     const char *(*name_of)(unsigned int))
{
	const char *text = get_text(fields, key), *name;

	for (unsigned int i = 0; text && (name = name_of(i)); i++)
		if (strcmp(name, text) == 0)
			return i;
	if (text)
		fail(fields, key, "\"%.32s\" is not known here", text);
	return 0;
}

static const char *state_name(unsigned int i)
{
	return pm_stat_state_name((enum pm_stat_state)i);
}

static const char *class_name(unsigned int i)
{
	return pm_stat_class_name((enum pm_stat_class)i);
}

static const char *scope_kind_name(unsigned int i)
{
	return pm_stat_kind_name((enum pm_stat_scope_kind)i);
}

/* ---- lists ----------------------------------------------------------------------------- */

/* The document that is being read. */
struct reading {
	struct pm_stat stat;
	size_t events;
};

typedef void (*read_fn)(struct reading *reading, struct fields *fields, void *item);

/*
 * Reads the list @key as an array of zeroed items of @size bytes; @read fills each. Even
 * on failure the caller must release *out and *ret_len, which contain the items reached
 * so far.
 */
static void read_list(struct reading *reading, struct fields *fields, const char *key,
		      size_t size, read_fn read, void **out, size_t *ret_len)
{
	const json_t *array = get_array(fields, key);
	size_t cap = 0, len = 0;
	char *data = NULL;

	for (size_t i = 0; fields->failed == 0 && i < json_array_size(array); i++) {
		struct fields element = get_element(fields, key, array, i);
		char *grown = pm_vec_grow(data, &cap, size, len + 1);

		if (!grown) {
			fail_memory(fields);
			break;
		}
		data = grown;
		memset(data + len * size, 0, size);
		len++;
		if (element.failed == 0)
			read(reading, &element, data + (len - 1) * size);
		fields->failed = element.failed;
	}
	*out = data;
	*ret_len = len;
}

#define READ_LIST(reading, fields, key, vec, read)                                  \
	({                                                                          \
		void *data_ = NULL;                                                 \
		read_list((reading), (fields), (key), sizeof(*(vec)->data), (read), \
			  &data_, &(vec)->len);                                     \
		(vec)->data = data_;                                                \
		(vec)->cap = (vec)->len;                                            \
	})

static void read_value(struct fields *fields, struct pm_stat_value *value)
{
	value->state = (enum pm_stat_state)get_word(fields, "status", state_name);
	if (pm_stat_has_value(value))
		value->value = get_count(fields, "value");
	else if (!is_null(fields, "value"))
		fail(fields, "value", "expected null with this status");
	if (pm_stat_has_value(value) && !is_null(fields, "raw"))
		value->raw = get_count(fields, "raw");
	else
		value->raw = value->value;
	if (is_null(fields, "enabled_ns"))
		return;
	value->enabled_ns = get_count(fields, "enabled_ns");
	value->running_ns = get_count(fields, "running_ns");
}

/* Reads one value for each event. */
static struct pm_stat_value *read_values(struct reading *reading, struct fields *fields,
					 const char *key)
{
	const json_t *array = get_array(fields, key);
	struct pm_stat_value *values;

	if (array && json_array_size(array) != reading->events)
		fail(fields, key, "expected %zu values, one for each event",
		     reading->events);
	if (fields->failed != 0)
		return NULL;
	values = pm_stat_values_new(reading->events);
	if (!values)
		fail_memory(fields);
	for (size_t i = 0; fields->failed == 0 && i < reading->events; i++) {
		struct fields element = get_element(fields, key, array, i);

		if (element.failed == 0)
			read_value(&element, &values[i]);
		fields->failed = element.failed;
	}
	return values;
}

/* ---- subjects, events and host --------------------------------------------------------- */

static void read_host(struct fields *fields, struct pm_stat_host *host)
{
	host->hostname = take_stat_text_or_null(fields, "hostname");
	host->kernel = take_stat_text_or_null(fields, "kernel");
	host->arch = take_stat_text_or_null(fields, "arch");
	if (is_null(fields, "cpus"))
		host->cpus = 0;
	else
		host->cpus = (uint32_t)get_up_to(fields, "cpus", UINT32_MAX);
	host->cpu_model = take_stat_text_or_null(fields, "cpu_model");
	host->virt = take_stat_text_or_null(fields, "virt");
	host->paranoid = INT32_MIN;
	if (!is_null(fields, "paranoid")) {
		const json_t *paranoid = get(fields, "paranoid");

		/* -1 means that everything is allowed. */
		if (json_is_integer(paranoid) && json_integer_value(paranoid) < 0 &&
		    json_integer_value(paranoid) > INT32_MIN)
			host->paranoid = (int32_t)json_integer_value(paranoid);
		else
			host->paranoid =
				(int32_t)get_up_to(fields, "paranoid", INT32_MAX);
	}
	host->governor = take_stat_text_or_null(fields, "governor");
	if (is_null(fields, "smt"))
		host->smt = -1;
	else
		host->smt = get_bool(fields, "smt");
}

/* Reads the strings of the list @key. */
static void read_texts(struct fields *fields, const char *key, char ***out, size_t *len,
		       size_t *cap)
{
	const json_t *array = get_array(fields, key);
	PM_VEC(char *) texts = { 0 };

	for (size_t i = 0; fields->failed == 0 && i < json_array_size(array); i++) {
		const char *text = json_string_value(json_array_get(array, i));
		char *copy = NULL;

		if (!text)
			fail(fields, key, "expected strings");
		else if (pm_stat_text(&copy, text) < 0 || pm_vec_push(&texts, copy) < 0) {
			free(copy);
			fail_memory(fields);
		}
	}
	*out = texts.data;
	*len = texts.len;
	*cap = texts.cap;
}

static void read_subject(struct reading *reading, struct fields *fields, void *item)
{
	struct pm_stat_subject *subject = item;

	read_texts(fields, "argv", &subject->argv.data, &subject->argv.len,
		   &subject->argv.cap);
	subject->build_id = take_stat_text_or_null(fields, "build_id");
	if (is_null(fields, "commit"))
		return;
	subject->commit = take_stat_text(fields, "commit");
	if (is_null(fields, "commit_time"))
		subject->commit_time = -1;
	else
		subject->commit_time =
			(int64_t)get_up_to(fields, "commit_time", PM_FILE_INTEGER_MAX);
	if (is_null(fields, "dirty"))
		subject->dirty = -1;
	else
		subject->dirty = get_bool(fields, "dirty");
}

static void read_event(struct reading *reading, struct fields *fields, void *item)
{
	struct pm_stat_event *event = item;
	const char *better = get_text_or_null(fields, "better");

	event->name = take_stat_text(fields, "name");
	event->requested = take_stat_text(fields, "requested");
	event->unit = take_stat_text(fields, "unit");
	event->scale = get_real(fields, "scale");
	event->source = take_stat_text(fields, "source");
	event->class = (enum pm_stat_class)get_word(fields, "class", class_name);
	event->group = get_i32_or(fields, "group", -1);
	event->user_only = get_bool(fields, "user_only");
	event->default_set = get_bool(fields, "default");
	event->state = (enum pm_stat_state)get_word(fields, "status", state_name);
	event->why = take_stat_text_or_null(fields, "why");
	if (better && strcmp(better, "less") == 0)
		event->better = -1;
	else if (better && strcmp(better, "more") == 0)
		event->better = 1;
	else if (better)
		fail(fields, "better", "expected \"less\", \"more\" or null");
}

/* ---- runs ------------------------------------------------------------------------------ */

static void read_row(struct reading *reading, struct fields *fields, void *item)
{
	struct pm_stat_row *row = item;

	row->pid = get_i32_or(fields, "pid", 0);
	row->tid = get_i32_or(fields, "tid", 0);
	row->comm = take_stat_text_or_null(fields, "comm");
	row->cpu = get_i32_or(fields, "cpu", -1);
	row->values = read_values(reading, fields, "counts");
}

static void read_interval(struct reading *reading, struct fields *fields, void *item)
{
	struct pm_stat_interval *interval = item;

	interval->at_ns = get_count(fields, "at_ns");
	interval->values = read_values(reading, fields, "counts");
	READ_LIST(reading, fields, "rows", &interval->rows, read_row);
}

static void read_run(struct reading *reading, struct fields *fields, void *item)
{
	struct pm_stat_run *run = item;
	bool exited = !is_null(fields, "exit_code"), killed = !is_null(fields, "signal");

	run->variant = (uint32_t)get_up_to(fields, "variant", PM_STAT_VARIANTS_MAX - 1);
	if (is_null(fields, "begin_ns"))
		run->begin_ns = 0;
	else
		run->begin_ns = get_count(fields, "begin_ns");
	run->exited = exited || killed;
	run->exit_code = get_i32_or(fields, "exit_code", run->exited ? -1 : 0);
	if (killed)
		run->signal = (int32_t)get_up_to(fields, "signal", INT32_MAX);
	else
		run->signal = 0;
	if (killed && (exited || run->signal == 0))
		fail(fields, "signal", "expected a signal, and then no exit_code");
	run->stopped = get_bool(fields, "stopped");
	run->values = read_values(reading, fields, "counts");
	READ_LIST(reading, fields, "rows", &run->rows, read_row);
	READ_LIST(reading, fields, "intervals", &run->intervals, read_interval);
}

/* ---- functions and ranges -------------------------------------------------------------- */

static void read_spread(struct fields *fields, struct pm_stat_spread *spread)
{
	spread->known = true;
	spread->min = get_count(fields, "min");
	spread->p50 = get_count(fields, "p50");
	spread->p99 = get_count(fields, "p99");
	spread->max = get_count(fields, "max");
}

static void read_spreads(struct reading *reading, struct fields *fields,
			 struct pm_stat_spread **out)
{
	static const char key[] = "per_call";
	const json_t *array = is_null(fields, key) ? NULL : get_array(fields, key);
	struct pm_stat_spread *spreads;

	if (array && json_array_size(array) != reading->events)
		fail(fields, key, "expected one for each event");
	if (!array || fields->failed != 0)
		return;
	*out = spreads =
		calloc(reading->events > 0 ? reading->events : 1, sizeof(*spreads));
	if (!spreads)
		fail_memory(fields);
	for (size_t i = 0; fields->failed == 0 && i < reading->events; i++) {
		struct fields element;

		if (json_is_null(json_array_get(array, i)))
			continue;
		element = get_element(fields, key, array, i);
		if (element.failed == 0)
			read_spread(&element, &spreads[i]);
		fields->failed = element.failed;
	}
}

static void read_thread(struct reading *reading, struct fields *fields, void *item)
{
	struct pm_stat_thread *thread = item;

	thread->pid = get_i32_or(fields, "pid", 0);
	thread->tid = get_i32_or(fields, "tid", 0);
	thread->comm = take_stat_text_or_null(fields, "comm");
	thread->calls = get_count(fields, "calls");
	thread->values = read_values(reading, fields, "counts");
}

static void read_frame(struct reading *reading, struct fields *fields, void *item)
{
	struct pm_stat_frame *frame = item;

	frame->function = take_stat_text_or_null(fields, "function");
	frame->file = take_stat_text_or_null(fields, "file");
	frame->line = (uint32_t)get_i32_or(fields, "line", 0);
	frame->module = take_stat_text_or_null(fields, "module");
	frame->address = get_address(fields, "address");
}

static void read_caller(struct reading *reading, struct fields *fields, void *item)
{
	struct pm_stat_caller *caller = item;

	READ_LIST(reading, fields, "frames", &caller->frames, read_frame);
	caller->calls = get_count(fields, "calls");
	caller->values = read_values(reading, fields, "counts");
}

static void read_scope(struct reading *reading, struct fields *fields, void *item)
{
	struct pm_stat_scope *scope = item;

	scope->run = (uint32_t)get_up_to(fields, "run", UINT32_MAX);
	scope->kind = (enum pm_stat_scope_kind)get_word(fields, "kind", scope_kind_name);
	scope->name = take_stat_text(fields, "name");
	scope->symbol = take_stat_text_or_null(fields, "symbol");
	scope->module = take_stat_text_or_null(fields, "module");
	scope->build_id = take_stat_text_or_null(fields, "build_id");
	scope->file = take_stat_text_or_null(fields, "file");
	scope->line = (uint32_t)get_i32_or(fields, "line", 0);
	scope->line_end = (uint32_t)get_i32_or(fields, "line_end", 0);
	scope->low = get_address(fields, "low");
	scope->high = get_address(fields, "high");
	scope->places = (uint32_t)get_up_to(fields, "places", UINT32_MAX);
	scope->calls_unknown = json_is_null(json_object_get(fields->object, "calls"));
	if (!scope->calls_unknown) {
		scope->calls = get_count(fields, "calls");
		scope->nested = get_count(fields, "nested");
		scope->max_depth = (uint32_t)get_up_to(fields, "max_depth", UINT32_MAX);
		scope->unfinished = get_count(fields, "unfinished");
	}
	scope->calls_exact = get_bool(fields, "calls_exact");
	scope->lost = get_count(fields, "lost");
	scope->values = read_values(reading, fields, "counts");
	read_spreads(reading, fields, &scope->per_call);
	scope->calls_kept = get_count(fields, "calls_kept");
	READ_LIST(reading, fields, "threads", &scope->threads, read_thread);
	READ_LIST(reading, fields, "callers", &scope->callers, read_caller);
}

/* ---- the rest -------------------------------------------------------------------------- */

static void read_metric(struct reading *reading, struct fields *fields, void *item)
{
	struct pm_stat_metric *metric = item;

	metric->name = take_stat_text(fields, "name");
	metric->unit = take_stat_text(fields, "unit");
	metric->formula = take_stat_text(fields, "formula");
	metric->variant = (uint32_t)get_up_to(fields, "variant", UINT32_MAX);
	metric->scope = get_i32_or(fields, "scope", -1);
	metric->event = (uint32_t)get_up_to(fields, "event", UINT32_MAX);
	metric->known = !is_null(fields, "value");
	if (metric->known)
		metric->value = get_real(fields, "value");
	else
		metric->value = 0;
}

static void read_setting(struct reading *reading, struct fields *fields, void *item)
{
	struct pm_stat_setting *setting = item;

	setting->name = take_stat_text(fields, "name");
	setting->value = take_stat_text_or_null(fields, "value");
}

static void read_overhead(struct reading *reading, struct fields *fields)
{
	struct fields overhead;

	if (is_null(fields, "overhead"))
		return;
	overhead = get_object(fields, "overhead");
	if (overhead.failed == 0) {
		reading->stat.overhead = read_values(reading, &overhead, "per_call");
		if (!is_null(&overhead, "per_inner_call"))
			reading->stat.overhead_inner =
				read_values(reading, &overhead, "per_inner_call");
		reading->stat.overhead_subtracted = get_bool(&overhead, "subtracted");
	}
	fields->failed = overhead.failed;
}

static void read_document(struct reading *reading, struct fields *fields)
{
	struct pm_stat *stat = &reading->stat;
	struct fields host;

	stat->version = take_stat_text(fields, "pmstat");
	stat->created = take_stat_text_or_null(fields, "created");
	stat->engine = take_stat_text(fields, "engine");
	stat->target = take_stat_text_or_null(fields, "target");
	host = get_object(fields, "host");
	if (host.failed == 0)
		read_host(&host, &stat->host);
	fields->failed = host.failed;
	READ_LIST(reading, fields, "subjects", &stat->subjects, read_subject);
	READ_LIST(reading, fields, "events", &stat->events, read_event);
	reading->events = stat->events.len;
	stat->warmups = (uint32_t)get_up_to(fields, "warmups", UINT32_MAX);
	READ_LIST(reading, fields, "runs", &stat->runs, read_run);
	READ_LIST(reading, fields, "scopes", &stat->scopes, read_scope);
	read_overhead(reading, fields);
	READ_LIST(reading, fields, "metrics", &stat->metrics, read_metric);
	read_texts(fields, "warnings", &stat->warnings.data, &stat->warnings.len,
		   &stat->warnings.cap);
	READ_LIST(reading, fields, "settings", &stat->settings, read_setting);
}

/* ---- the file -------------------------------------------------------------------------- */

/* Counts everything for which a parser allocates memory: separators and opening brackets,
 * including those in strings. */
bool pm_stat_has_too_many_values(const struct pm_str *text)
{
	size_t values = 0;

	for (size_t i = 0; i < text->len; i++)
		values += text->data[i] == ',' || text->data[i] == '[' ||
			  text->data[i] == '{';
	return values > PM_STAT_VALUES_MAX;
}

static int refuse_stat_text(const struct pm_str *text, const json_error_t *why,
			    struct pm_error *err)
{
	static const char recording[] = "\"format\":\"pmrec\"";
	size_t head = PM_MIN(text->len, 256);

	if (text->len == 0)
		return pm_error_set(err, -EBADMSG, "is empty");
	if (memmem(text->data, head, recording, sizeof(recording) - 1))
		return pm_error_set(err, -EBADMSG,
				    "is a recording of pmrec, no counts of pmstat");
	return pm_error_set(err, -EBADMSG, "cannot be read as JSON: line %d: %s",
			    why->line, why->text);
}

static int parse_stat_root(struct reading *reading, const json_t *root,
			   struct pm_error *err)
{
	struct fields fields = { .object = root, .err = err, .name = "document" };
	const char *wrong;
	uint64_t version = get_u64(&fields, "version");

	if (fields.failed == 0 && version > PM_STAT_VERSION)
		return pm_error_set(err, -ENOTSUP,
				    "has version %llu, this program knows %d",
				    (unsigned long long)version, PM_STAT_VERSION);
	if (fields.failed == 0 && version == 0)
		fail(&fields, "version", "expected at least 1");
	if (fields.failed == 0)
		read_document(reading, &fields);
	if (fields.failed != 0)
		return fields.failed;
	wrong = pm_stat_check(&reading->stat);
	if (wrong)
		return pm_error_set(err, -EBADMSG, "%s", wrong);
	return 0;
}

int pm_stat_parse(struct pm_stat *out, const json_t *root, struct pm_error *err)
{
	struct reading reading = { 0 };
	int ret = parse_stat_root(&reading, root, err);

	if (ret < 0)
		pm_stat_release(&reading.stat);
	else
		*out = reading.stat;
	return ret;
}

int pm_stat_load_json(json_t **out, const struct pm_str *text, struct pm_error *err)
{
	json_error_t why;
	json_t *root;

	if (pm_stat_has_too_many_values(text))
		return pm_error_set(err, -EFBIG, "holds more than %d values",
				    PM_STAT_VALUES_MAX);
	root = json_loadb(pm_text_or_empty(text->data), text->len, JSON_REJECT_DUPLICATES,
			  &why);
	if (!root && json_error_code(&why) == json_error_out_of_memory)
		return pm_error_set(err, -ENOMEM, "out of memory");
	if (!root)
		return refuse_stat_text(text, &why, err);
	*out = root;
	return 0;
}

static int read_text(struct pm_stat *out, const struct pm_str *text, struct pm_error *err)
{
	json_t *root;
	const char *format;
	int ret = pm_stat_load_json(&root, text, err);

	if (ret < 0)
		return ret;
	format = json_string_value(json_object_get(root, "format"));
	if (format && strcmp(format, "pmstat") == 0)
		ret = pm_stat_parse(out, root, err);
	else if (format && strcmp(format, "pmstat-suite") == 0)
		ret = pm_error_set(err, -EBADMSG,
				   "has several cases, and one document is expected");
	else
		ret = pm_error_set(err, -EBADMSG, "is no file of pmstat");
	json_decref(root);
	return ret;
}

int pm_stat_read(struct pm_stat *out, int fd, const char *name, struct pm_error *err)
{
	PM_CLEANUP(pm_str_release) struct pm_str text = { 0 };
	int ret = pm_stat_read_bytes(&text, fd, err);

	if (ret == 0)
		ret = read_text(out, &text, err);
	if (ret < 0)
		pm_error_where(err, name, -1);
	return ret;
}
