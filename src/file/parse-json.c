/* SPDX-License-Identifier: MIT */
/*
 * Parses one line of JSON into a record: checks the syntax, and the presence and types of
 * keys. The reader checks whether ids are consistent.
 */
#include "parse-values.h"

enum {
	VALUES_COUNTED_FROM =
		PM_FILE_LINE_VALUES_MAX, /* shorter lines cannot have more values */
};

/* ---- simple types -------------------------------------------------------------------- */

static void parse_module_json(struct pm_file_parsed *parsed, struct fields *fields)
{
	struct pm_file_module *module = &parsed->record.module;

	module->id = get_u32(fields, "id");
	module->path = get_text(fields, "path");
	module->build_id = get_text_or_null(fields, "build_id");
	module->kind = get_text(fields, "kind");
}

static void parse_thread(struct pm_file_parsed *parsed, struct fields *fields)
{
	struct pm_file_thread *thread = &parsed->record.thread;

	thread->pid = get_u32_or_null(fields, "pid");
	thread->tid = get_u32_or_null(fields, "tid");
	thread->comm = get_text(fields, "comm");
	thread->time = get_u64(fields, "time");
}

static void parse_frame_json(struct pm_file_parsed *parsed, struct fields *fields)
{
	struct pm_file_frame *frame = &parsed->record.frame;

	frame->id = get_u32(fields, "id");
	frame->module = get_u32_or_null(fields, "module");
	frame->address = get_address(fields, "address");
	frame->how = get_text(fields, "how");
}

static void parse_stack_json(struct pm_file_parsed *parsed, struct fields *fields)
{
	struct pm_file_stack *stack = &parsed->record.stack;
	const json_t *array;

	stack->id = get_u32(fields, "id");
	stack->parent = get_u32_or_null(fields, "parent");
	array = get_array(fields, "frames");
	if (array && json_array_size(array) == 0)
		fail(fields, "frames", "expected at least one frame");
	pm_vec_clear(&parsed->run);
	for (size_t i = 0; fields->failed == 0 && i < json_array_size(array); i++) {
		uint64_t frame = as_u64(fields, "frames", json_array_get(array, i),
					PM_FILE_NONE - 1);

		if (fields->failed == 0 && pm_vec_push(&parsed->run, (uint32_t)frame) < 0)
			fail_memory(fields);
	}
	if (fields->failed == 0)
		stack->frame = parsed->run.data[0];
}

static struct pm_file_field field_of(struct fields *fields, const char *name,
				     const json_t *value)
{
	struct pm_file_field field = { .name = name, .kind = PM_FILE_FIELD_UNSIGNED };

	if (json_is_string(value)) {
		field.kind = PM_FILE_FIELD_TEXT;
		field.text = json_string_value(value);
	} else if (json_is_integer(value)) {
		field.negative_too = json_integer_value(value);
		if (field.negative_too < 0)
			field.kind = PM_FILE_FIELD_SIGNED;
	} else {
		fail(fields, "fields", "%.64s: expected an integer or a string", name);
	}
	return field;
}

static void parse_fields(struct pm_file_parsed *parsed, struct fields *fields)
{
	/* jansson's iterator does not accept const, although it changes nothing. */
	json_t *object = json_object_get(parsed->root, "fields");

	pm_vec_clear(&parsed->fields);
	if (!object || json_is_null(object))
		return;
	if (!json_is_object(object))
		fail(fields, "fields", "expected an object");
	for (void *at = json_object_iter(object); fields->failed == 0 && at;
	     at = json_object_iter_next(object, at))
		if (pm_vec_push(&parsed->fields,
				field_of(fields, json_object_iter_key(at),
					 json_object_iter_value(at))) < 0)
			fail_memory(fields);
	parsed->record.sample.fields = parsed->fields.data;
	parsed->record.sample.fields_len = parsed->fields.len;
}

/* Returns the array @key, which has groups of @each values, or NULL if there is none. */
static const json_t *get_groups(struct fields *fields, const char *key, size_t each)
{
	const json_t *array = json_object_get(fields->object, key);

	if (!array || json_is_null(array))
		return NULL;
	array = get_array(fields, key);
	if (array && json_array_size(array) % each != 0)
		fail(fields, key, "expected %zu values for each", each);
	return array;
}

static void parse_counts(struct pm_file_parsed *parsed, struct fields *fields)
{
	const json_t *array = get_groups(fields, "counts", 2);

	pm_vec_clear(&parsed->counts);
	for (size_t i = 0; fields->failed == 0 && i < json_array_size(array); i += 2) {
		struct pm_file_event_count count = {
			.event = (uint32_t)as_u64(fields, "counts",
						  json_array_get(array, i),
						  PM_FILE_NONE - 1),
			.count = as_u64(fields, "counts", json_array_get(array, i + 1),
					PM_FILE_INTEGER_MAX),
		};

		if (fields->failed == 0 && pm_vec_push(&parsed->counts, count) < 0)
			fail_memory(fields);
	}
	parsed->record.sample.counts = parsed->counts.data;
	parsed->record.sample.counts_len = parsed->counts.len;
}

static void parse_branches(struct pm_file_parsed *parsed, struct fields *fields)
{
	const json_t *array = get_groups(fields, "branches", 4);

	pm_vec_clear(&parsed->branches);
	for (size_t i = 0; fields->failed == 0 && i < json_array_size(array); i += 4) {
		uint32_t value[4];

		for (size_t j = 0; j < 4; j++) {
			const json_t *of = json_array_get(array, i + j);

			if (j == 3 && json_is_null(of))
				value[j] = PM_FILE_NONE;
			else
				value[j] = (uint32_t)as_u64(fields, "branches", of,
							    PM_FILE_NONE - 1);
		}
		if (fields->failed == 0 &&
		    pm_vec_push(&parsed->branches,
				((struct pm_file_branch){ value[0], value[1], value[2],
							  value[3] })) < 0)
			fail_memory(fields);
	}
	parsed->record.sample.branches = parsed->branches.data;
	parsed->record.sample.branches_len = parsed->branches.len;
}

static void parse_sample_json(struct pm_file_parsed *parsed, struct fields *fields)
{
	struct pm_file_sample *sample = &parsed->record.sample;

	sample->time = get_u64(fields, "time");
	sample->pid = get_u32_or_null(fields, "pid");
	sample->tid = get_u32_or_null(fields, "tid");
	sample->cpu = get_u32_or_null(fields, "cpu");
	sample->event = get_u32(fields, "event");
	sample->period = get_u64(fields, "period");
	sample->stack = get_u32_or_null(fields, "stack");
	sample->stop = get_text_or_null(fields, "stop");
	parse_fields(parsed, fields);
	parse_counts(parsed, fields);
	parse_branches(parsed, fields);
}

static void parse_symbol_json(struct pm_file_parsed *parsed, struct fields *fields)
{
	struct pm_file_symbol *symbol = &parsed->record.symbol;
	const json_t *array;

	symbol->frame = get_u32(fields, "frame");
	array = get_array(fields, "functions");
	if (array && json_array_size(array) == 0)
		fail(fields, "functions", "expected at least one function");
	if (array && json_array_size(array) > PM_FILE_FUNCTIONS_MAX)
		fail(fields, "functions", "more than 1,024 functions");
	pm_vec_clear(&parsed->functions);
	for (size_t i = 0; fields->failed == 0 && i < json_array_size(array); i++) {
		struct fields in = get_element(fields, "functions", array, i);
		struct pm_file_function function = { 0 };
		const json_t *line = json_object_get(in.object, "line");
		const json_t *start = json_object_get(in.object, "start");

		function.name = get_text_or_null(&in, "name");
		function.file = get_text_or_null(&in, "file");
		if (!json_is_null(line))
			function.line =
				(uint32_t)as_u64(&in, "line", line, UINT32_MAX - 1);
		if (start && !json_is_null(start))
			function.start = get_address(&in, "start");
		fields->failed = in.failed;
		if (in.failed == 0 && pm_vec_push(&parsed->functions, function) < 0)
			fail_memory(fields);
	}
	symbol->functions = parsed->functions.data;
	symbol->functions_len = parsed->functions.len;
}

static void parse_lost(struct pm_file_parsed *parsed, struct fields *fields)
{
	struct pm_file_lost *lost = &parsed->record.lost;

	lost->time = get_u64(fields, "time");
	lost->cpu = get_u32_or_null(fields, "cpu");
	lost->count = get_u64(fields, "count");
}

static void parse_note(struct pm_file_parsed *parsed, struct fields *fields)
{
	parsed->record.note.text = get_text(fields, "text");
}

static void parse_title(struct pm_file_parsed *parsed, struct fields *fields)
{
	struct pm_file_title *title = &parsed->record.title;

	title->pid = get_u32(fields, "pid");
	title->time = get_u64(fields, "time");
	title->text = get_text_or_null(fields, "text");
}

/* ---- the footer ---------------------------------------------------------------------- */

static void parse_exit(struct pm_file_footer *footer, struct fields *fields)
{
	struct fields in;

	if (json_is_null(get(fields, "exit")))
		return;
	in = get_object(fields, "exit");
	footer->exited = json_object_get(in.object, "code") != NULL;
	footer->signalled = json_object_get(in.object, "signal") != NULL;
	if (footer->exited == footer->signalled)
		fail(&in, "code", "expected either code or signal");
	else
		footer->exit = get_u32(&in, footer->exited ? "code" : "signal");
	fields->failed = in.failed;
}

static void parse_stops(struct pm_file_parsed *parsed, struct fields *fields)
{
	struct fields in = get_object(fields, "stops");
	/* jansson's iterator does not accept const, although it changes nothing. */
	json_t *object = json_object_get(parsed->root, "stops");

	pm_vec_clear(&parsed->stops);
	for (void *at = json_object_iter(object); in.failed == 0 && at;
	     at = json_object_iter_next(object, at)) {
		struct pm_file_count stop = { .name = json_object_iter_key(at) };

		stop.count = as_u64(&in, stop.name, json_object_iter_value(at),
				    PM_FILE_INTEGER_MAX);
		if (in.failed == 0 && pm_vec_push(&parsed->stops, stop) < 0)
			fail_memory(&in);
	}
	fields->failed = in.failed;
}

static void parse_footer_events(struct pm_file_parsed *parsed, struct fields *fields)
{
	const json_t *array = get_array(fields, "events");

	pm_vec_clear(&parsed->footer_events);
	for (size_t i = 0; fields->failed == 0 && i < json_array_size(array); i++) {
		struct fields in = get_element(fields, "events", array, i);
		struct pm_file_footer_event event = { 0 };
		const json_t *lost = get(&in, "lost");

		if (get_u32(&in, "id") != i)
			fail(&in, "id", "expected %zu", i);
		event.samples = get_u64(&in, "samples");
		event.period = get_u64(&in, "period");
		event.lost_known = !json_is_null(lost);
		if (event.lost_known)
			event.lost = as_u64(&in, "lost", lost, PM_FILE_INTEGER_MAX);
		event.counted_known = json_object_get(in.object, "counted") != NULL;
		event.counted = get_u64_or_0(&in, "counted");
		event.others = get_u64_or_0(&in, "others");
		fields->failed = in.failed;
		if (in.failed == 0 && pm_vec_push(&parsed->footer_events, event) < 0)
			fail_memory(fields);
	}
}

static void parse_footer(struct pm_file_parsed *parsed, struct fields *fields)
{
	struct pm_file_footer *footer = &parsed->record.footer;
	const json_t *cpu;

	footer->samples = get_u64(fields, "samples");
	footer->lost = get_u64(fields, "lost");
	footer->throttled = get_u64(fields, "throttled");
	footer->truncated = get_u64(fields, "truncated");
	footer->stitched = get_u64_or_0(fields, "stitched");
	parse_stops(parsed, fields);
	footer->duration_ns = get_u64(fields, "duration_ns");
	cpu = get(fields, "cpu_ns");
	footer->cpu_known = !json_is_null(cpu);
	if (footer->cpu_known)
		footer->cpu_ns = as_u64(fields, "cpu_ns", cpu, PM_FILE_INTEGER_MAX);
	parse_exit(footer, fields);
	parse_footer_events(parsed, fields);
	footer->stops = parsed->stops.data;
	footer->stops_len = parsed->stops.len;
	footer->events = parsed->footer_events.data;
	footer->events_len = parsed->footer_events.len;
}

/* ---- a line -------------------------------------------------------------------------- */

typedef void (*parse_fn)(struct pm_file_parsed *parsed, struct fields *fields);

static const struct {
	const char *name;
	enum pm_file_type type;
	parse_fn parse;
} types[] = {
	{ "header", PM_FILE_HEADER, pm_file_parse_header },
	{ "module", PM_FILE_MODULE, parse_module_json },
	{ "thread", PM_FILE_THREAD, parse_thread },
	{ "frame", PM_FILE_FRAME, parse_frame_json },
	{ "stack", PM_FILE_STACK, parse_stack_json },
	{ "sample", PM_FILE_SAMPLE, parse_sample_json },
	{ "symbol", PM_FILE_SYMBOL, parse_symbol_json },
	{ "lost", PM_FILE_LOST, parse_lost },
	{ "note", PM_FILE_NOTE, parse_note },
	{ "title", PM_FILE_TITLE, parse_title },
	{ "footer", PM_FILE_FOOTER, parse_footer },
};

/* Whether the line would make a parser allocate too many values. Counts separators and
 * opening brackets outside of strings. The count may be wrong for an invalid line, which
 * is refused later. */
static bool too_many_values(const char *line, size_t len)
{
	size_t values = 0;
	bool in_text = false;

	for (size_t i = 0; i < len; i++) {
		if (line[i] == '"')
			in_text = !in_text;
		else if (in_text && line[i] == '\\')
			i++;
		else if (!in_text && (line[i] == ',' || line[i] == '[' || line[i] == '{'))
			values++;
	}
	return values > PM_FILE_LINE_VALUES_MAX;
}

int pm_file_parse_json(struct pm_file_parsed *parsed, const char *line, size_t len,
		       bool *syntax, struct pm_error *err)
{
	struct fields fields = { .err = err, .name = "line" };
	const char *type;
	json_error_t why;

	*syntax = false;
	json_decref(parsed->root);
	parsed->root = NULL;
	if (len >= VALUES_COUNTED_FROM && too_many_values(line, len))
		return pm_error_set(err, -EBADMSG, "the line holds more than %d values",
				    PM_FILE_LINE_VALUES_MAX);
	parsed->root = json_loadb(line, len, JSON_REJECT_DUPLICATES, &why);
	if (!parsed->root) {
		if (json_error_code(&why) == json_error_out_of_memory)
			return pm_error_set(err, -ENOMEM, "out of memory");
		*syntax = true;
		return pm_error_set(err, -EBADMSG, "cannot be read as JSON: %s",
				    why.text);
	}
	fields.object = parsed->root;
	if (!json_is_object(parsed->root))
		return pm_error_set(err, -EBADMSG, "expected an object with a type");
	type = get_text(&fields, "type");
	if (!type)
		return fields.failed;
	for (size_t i = 0; i < PM_ARRAY_LEN(types); i++) {
		if (strcmp(type, types[i].name) != 0)
			continue;
		snprintf(fields.name, sizeof(fields.name), "%s", type);
		parsed->record = (struct pm_file_record){ .type = types[i].type };
		types[i].parse(parsed, &fields);
		if (fields.failed != 0)
			return fields.failed;
		return 1;
	}
	return 0;
}

void pm_file_parsed_release(struct pm_file_parsed *parsed)
{
	json_decref(parsed->root);
	pm_vec_release(&parsed->run);
	pm_vec_release(&parsed->command);
	pm_vec_release(&parsed->events);
	pm_vec_release(&parsed->fields);
	pm_vec_release(&parsed->counts);
	pm_vec_release(&parsed->branches);
	pm_vec_release(&parsed->functions);
	pm_vec_release(&parsed->stops);
	pm_vec_release(&parsed->footer_events);
	*parsed = (struct pm_file_parsed){ 0 };
}
