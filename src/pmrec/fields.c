/* SPDX-License-Identifier: MIT */
#include "fields.h"

#include <inttypes.h>
#include <linux/perf_event.h>

#include "pm/file.h"
#include "progress.h"

struct pm_rec_fields {
	PM_VEC(struct pm_tracepoint *) events; /* by event; NULL: it has no fields */
	struct pm_event_fields decoded;
	PM_VEC(struct pm_file_field) lines;
	PM_VEC(bool) grouped; /* by event: its samples contain the counts of its group */
	PM_VEC(struct pm_file_event_count) counts;
	uint64_t unreadable; /* samples whose bytes do not match the description */
};

static bool has_fields(const struct pm_event_spec *spec)
{
	return spec->kind == PM_EVENT_TRACEPOINT || spec->kind == PM_EVENT_UPROBE ||
	       spec->kind == PM_EVENT_KPROBE;
}

/* Returns the description of @spec's event. If it cannot be read, warns and returns
 * NULL. */
static struct pm_tracepoint *describe_tracepoint(struct pm_rec_session *session,
						 const struct pm_event_spec *spec)
{
	struct pm_tracepoint *tracepoint = NULL;
	struct pm_str text PM_CLEANUP(pm_str_release) = { 0 };
	struct pm_error err = { 0 };

	if (pm_tracepoint_new(&tracepoint, spec, &err) == 0)
		return tracepoint;
	pm_str_printf(&text, "%s is recorded without its fields: %s%s%s", spec->name,
		      err.source, err.source[0] ? ": " : "", err.text);
	if (!text.failed)
		pm_rec_warn(session, text.data);
	return NULL;
}

struct pm_rec_fields *pm_rec_fields_new(struct pm_rec_session *session)
{
	struct pm_rec_fields *fields = calloc(1, sizeof(*fields));
	size_t len = 0;
	const struct pm_perf_event *events =
		session->perf ? pm_perf_events(session->perf, &len) : NULL;

	if (!fields || pm_vec_reserve(&fields->events, len) < 0 ||
	    pm_vec_reserve(&fields->grouped, len) < 0 ||
	    pm_vec_reserve(&fields->counts, len) < 0) {
		pm_rec_fields_free(fields);
		return NULL;
	}
	for (size_t i = 0; i < len; i++) {
		fields->events.data[fields->events.len++] =
			has_fields(&events[i].actual)
				? describe_tracepoint(session, &events[i].actual)
				: NULL;
		fields->grouped.data[fields->grouped.len++] =
			events[i].requested.read_group;
	}
	return fields;
}

void pm_rec_fields_free(struct pm_rec_fields *fields)
{
	if (!fields)
		return;
	for (size_t i = 0; i < fields->events.len; i++)
		pm_tracepoint_free(fields->events.data[i]);
	pm_vec_release(&fields->events);
	pm_vec_release(&fields->lines);
	pm_vec_release(&fields->grouped);
	pm_vec_release(&fields->counts);
	pm_event_fields_release(&fields->decoded);
	free(fields);
}

static struct pm_file_field field_line_of(const struct pm_event_field *field)
{
	switch (field->kind) {
	case PM_EVENT_FIELD_UNSIGNED:
		return (struct pm_file_field){ .name = field->name,
					       .kind = PM_FILE_FIELD_UNSIGNED,
					       .number = field->number };
	case PM_EVENT_FIELD_SIGNED:
		return (struct pm_file_field){ .name = field->name,
					       .kind = PM_FILE_FIELD_SIGNED,
					       .negative_too = field->negative_too };
	case PM_EVENT_FIELD_TEXT:
		break;
	}
	return (struct pm_file_field){ .name = field->name,
				       .kind = PM_FILE_FIELD_TEXT,
				       .text = field->text };
}

int pm_rec_fields_of(struct pm_rec_fields *fields, const struct pm_record *record,
		     const struct pm_file_field **out, size_t *len)
{
	const struct pm_tracepoint *of = fields && record->event < fields->events.len
						 ? fields->events.data[record->event]
						 : NULL;
	int ret = of ? pm_tracepoint_fields(of, record->sample.raw,
					    record->sample.raw_len, &fields->decoded)
		     : 0;

	if (ret == -EBADMSG)
		fields->unreadable++;
	*out = NULL;
	*len = 0;
	if (!of || ret == -EBADMSG)
		return 0;
	if (ret == 0)
		ret = pm_vec_reserve(&fields->lines, fields->decoded.list.len);
	if (ret < 0)
		return ret;
	pm_vec_clear(&fields->lines);
	for (size_t i = 0; i < fields->decoded.list.len; i++)
		fields->lines.data[fields->lines.len++] =
			field_line_of(&fields->decoded.list.data[i]);
	*out = fields->lines.data;
	*len = fields->lines.len;
	return 0;
}

int pm_rec_fields_counts(struct pm_rec_fields *fields, const struct pm_perf *perf,
			 const struct pm_record *record,
			 const struct pm_file_event_count **out, size_t *len)
{
	*out = NULL;
	*len = 0;
	if (!fields || record->event >= fields->grouped.len ||
	    !fields->grouped.data[record->event])
		return 0;
	pm_vec_clear(&fields->counts);
	for (uint32_t i = 0; i < fields->grouped.len; i++) {
		struct pm_file_event_count count = { .event = i };
		int ret = pm_perf_count(perf, record, i, &count.count);

		if (ret == -ENOENT || ret == -ENOTSUP)
			continue; /* in another group */
		if (ret == 0 && count.count > INT64_MAX)
			count.count = INT64_MAX;
		if (ret == 0)
			ret = pm_vec_push(&fields->counts, count);
		if (ret < 0)
			return ret;
	}
	*out = fields->counts.data;
	*len = fields->counts.len;
	return 0;
}

void pm_rec_fields_tell(const struct pm_rec_fields *fields,
			struct pm_rec_session *session)
{
	char text[128];

	if (!fields || fields->unreadable == 0)
		return;
	snprintf(text, sizeof(text),
		 "%" PRIu64 " samples have no fields: their bytes are not as the kernel "
		 "describes them",
		 fields->unreadable);
	pm_rec_warn(session, text);
}

uint32_t pm_rec_fields_leader(const struct pm_perf_event *events, size_t event)
{
	uint32_t leader = events[event].requested.leader;

	if (leader < event && events[leader].requested.leader == leader)
		return leader;
	return (uint32_t)event;
}
