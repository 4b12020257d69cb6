/* SPDX-License-Identifier: MIT */
#include "parse-values.h"

/* Returns the leader of event @id, which is @id itself if the event is in no group. */
static uint32_t get_group(const struct pm_file_parsed *parsed, struct fields *in,
			  uint32_t id)
{
	uint32_t leader;

	if (json_is_null(json_object_get(in->object, "group")) ||
	    !json_object_get(in->object, "group"))
		return id;
	leader = get_u32(in, "group");
	if (in->failed == 0 && (leader >= parsed->events.len ||
				parsed->events.data[leader].leader != leader))
		fail(in, "group", "expected an event before it that leads a group");
	return leader;
}

static void parse_header_events(struct pm_file_parsed *parsed, struct fields *fields)
{
	const json_t *array = get_array(fields, "events");

	pm_vec_clear(&parsed->events);
	/* Each event is costly, because reports read all samples for each. */
	if (fields->failed == 0 && json_array_size(array) > PM_FILE_EVENTS_MAX)
		fail(fields, "events", "more than %d events", PM_FILE_EVENTS_MAX);
	for (size_t i = 0; fields->failed == 0 && i < json_array_size(array); i++) {
		struct fields in = get_element(fields, "events", array, i);
		struct pm_file_event event = { 0 };

		event.id = get_u32(&in, "id");
		event.name = get_text(&in, "name");
		event.requested = get_text(&in, "requested");
		event.actual = get_text(&in, "actual");
		event.modifiers = get_text(&in, "modifiers");
		event.unit = get_text(&in, "unit");
		event.by_frequency = json_object_get(in.object, "freq") != NULL;
		event.rate = get_u64(&in, event.by_frequency ? "freq" : "period");
		event.filter = get_text_or_null(&in, "filter");
		event.leader = get_group(parsed, &in, (uint32_t)i);
		if (event.id != i)
			fail(&in, "id", "expected %zu", i);
		fields->failed = in.failed;
		if (in.failed == 0 && pm_vec_push(&parsed->events, event) < 0)
			fail_memory(fields);
	}
}

static void parse_command(struct pm_file_parsed *parsed, struct fields *fields)
{
	const json_t *array = get_array(fields, "command");

	pm_vec_clear(&parsed->command);
	for (size_t i = 0; fields->failed == 0 && i < json_array_size(array); i++) {
		const char *word = json_string_value(json_array_get(array, i));

		if (!word)
			fail(fields, "command", "expected an array of strings");
		else if (pm_vec_push(&parsed->command, word) < 0)
			fail_memory(fields);
	}
}

static void parse_host(struct pm_file_header *header, struct fields *fields)
{
	struct fields in = get_object(fields, "host");

	header->host.hostname = get_text_or_null(&in, "hostname");
	header->host.kernel = get_text_or_null(&in, "kernel");
	header->host.arch = get_text_or_null(&in, "arch");
	header->host.cpu_model = get_text_or_null(&in, "cpu_model");
	header->host.virt = get_text_or_null(&in, "virt");
	header->host.boot_id = get_text_or_null(&in, "boot_id");
	header->host.cpus = get_u32_or_null(&in, "cpus");
	if (header->host.cpus == PM_FILE_NONE)
		header->host.cpus = 0;
	fields->failed = in.failed;
}

static void parse_options(struct pm_file_header *header, struct fields *fields)
{
	struct fields in = get_object(fields, "options");

	header->options.call_graph = get_text(&in, "call_graph");
	header->options.stack_bytes = get_u32(&in, "stack_bytes");
	header->options.ring_bytes = get_u64(&in, "ring_bytes");
	fields->failed = in.failed;
}

void pm_file_parse_header(struct pm_file_parsed *parsed, struct fields *fields)
{
	struct pm_file_header *header = &parsed->record.header;
	const char *format = get_text(fields, "format");
	uint64_t version;

	if (format && strcmp(format, "pmrec") != 0)
		fail(fields, "format", "expected \"pmrec\", not \"%s\"", format);
	/* The version is checked before anything that a newer version may have
	 * changed. */
	version = get_u64(fields, "version");
	if (fields->failed == 0 && version > PM_FILE_VERSION) {
		fields->failed = pm_error_set(
			fields->err, -ENOTSUP,
			"file version %llu is newer than this pmreport understands (%d)",
			(unsigned long long)version, PM_FILE_VERSION);
		pm_error_fix(fields->err, "a newer pmreport");
		return;
	}
	if (version < 1)
		fail(fields, "version", "expected an integer from 1 on");
	header->version = (uint32_t)version;
	header->pmrec = get_text(fields, "pmrec");
	header->created = get_text(fields, "created");
	header->clock = get_text(fields, "clock");
	parse_host(header, fields);
	parse_command(parsed, fields);
	header->target = get_text_or_null(fields, "target");
	header->uid = PM_FILE_NONE;
	if (json_object_get(fields->object, "uid"))
		header->uid = get_u32_or_null(fields, "uid");
	header->uid_known = header->uid != PM_FILE_NONE;
	header->owner = PM_FILE_NONE;
	parse_header_events(parsed, fields);
	parse_options(header, fields);
	header->command = parsed->command.data;
	header->command_len = parsed->command.len;
	header->events = parsed->events.data;
	header->events_len = parsed->events.len;
}
