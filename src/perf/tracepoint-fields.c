/* SPDX-License-Identifier: MIT */
/*
 * Decodes the raw bytes of a sample. libtraceevent parses the description of a tracepoint
 * (its `format` file) once. The values are decoded here, since the bytes come from a ring
 * and are not trusted: nothing outside of them is read, whatever they contain.
 */
#include "tracepoint.h"

#include <inttypes.h>
#include <linux/perf_event.h>
#include <string.h>

#include <event-parse.h>

enum {
	FORMAT_FILE_MAX = 1 << 20, /* the longest of Linux 6.18 is 5.5 KB */
	FIELDS_MAX = 256, /* the most in Linux 6.18 is 20 */
	FIELD_BYTES_MAX = 64 << 10, /* of a record */
	/* Length of an array's string per byte of the array: "-32768," is the worst
	 * case. */
	TEXT_PER_BYTE = 4,
	PROBE_FIELDS_AT = 8, /* after struct trace_entry (linux/trace_events.h) */
	RETURN_PROBE_BIT = 1, /* config of a probe PMU: format/retprobe is "config:0" */
};

enum shape {
	SHAPE_NUMBER,
	SHAPE_TEXT, /* an array of char */
	SHAPE_BYTES, /* of bytes, or of an unknown type */
	SHAPE_NUMBERS,
};

struct field {
	char *name;
	uint32_t offset, size;
	uint32_t element; /* size of an element, for an array of numbers */
	enum shape shape;
	bool is_signed;
	/* The bytes at the offset are two u16: the position (counted from the start of
	 * the record or, if `relative`, from the end of the two) and the number of bytes
	 * (include/trace/stages/stage1_struct_define.h). */
	bool dynamic, relative;
};

struct pm_tracepoint {
	uint32_t id; /* common_type contains only the lower 16 bits */
	bool id_known; /* false for probes, whose id is dynamic */
	size_t static_bytes; /* of all arrays of a fixed size together */
	PM_VEC(struct field) fields;
};

void pm_event_fields_release(struct pm_event_fields *fields)
{
	pm_vec_release(&fields->list);
	pm_str_release(&fields->texts);
}

void pm_tracepoint_free(struct pm_tracepoint *tracepoint)
{
	if (!tracepoint)
		return;
	for (size_t i = 0; i < tracepoint->fields.len; i++)
		free(tracepoint->fields.data[i].name);
	pm_vec_release(&tracepoint->fields);
	free(tracepoint);
}

/* ---- descriptions -------------------------------------------------------------------- */

static int tracepoint_add_field(struct pm_tracepoint *tracepoint, const char *name,
				const struct field *like)
{
	struct field field = *like;

	field.name = strdup(name);
	if (!field.name || pm_vec_push(&tracepoint->fields, field) < 0) {
		free(field.name);
		return -ENOMEM;
	}
	return 0;
}

/* Whether the type is `char`, which is text, and not a type that only contains the
 * word. */
static bool is_char(const char *type)
{
	return strstr(type, "char") && !strstr(type, "unsigned char") &&
	       !strstr(type, "uchar") && !strchr(type, '*');
}

static enum shape shape_of_field(const struct tep_format_field *format, uint32_t *element)
{
	if (!(format->flags & (TEP_FIELD_IS_ARRAY | TEP_FIELD_IS_DYNAMIC))) {
		if (format->size == 1 || format->size == 2 || format->size == 4 ||
		    format->size == 8)
			return SHAPE_NUMBER;
		return SHAPE_BYTES; /* a struct */
	}
	*element = format->elementsize;
	if (is_char(format->type))
		return SHAPE_TEXT;
	if (*element == 2 || *element == 4 || *element == 8)
		return SHAPE_NUMBERS;
	return SHAPE_BYTES;
}

/* Returns 1 if the field was added, 0 if it cannot be decoded, or a negative errno. */
static int tracepoint_take_field(struct pm_tracepoint *tracepoint,
				 const struct tep_format_field *format)
{
	struct field field = {
		.is_signed = format->flags & TEP_FIELD_IS_SIGNED,
		.dynamic = format->flags & TEP_FIELD_IS_DYNAMIC,
		.relative = format->flags & TEP_FIELD_IS_RELATIVE,
	};
	int ret;

	if (format->offset < 0 || format->size < 0 || format->offset > FIELD_BYTES_MAX ||
	    format->size > FIELD_BYTES_MAX)
		return -EBADMSG;
	/* An array without a length reaches into the padding, so its end is unknown. */
	if (format->size == 0 || (field.dynamic && format->size != 4))
		return 0;
	if (format->flags & TEP_FIELD_IS_POINTER)
		field.is_signed = false;
	field.offset = (uint32_t)format->offset;
	field.size = (uint32_t)format->size;
	field.shape = shape_of_field(format, &field.element);
	if (!field.dynamic && field.shape != SHAPE_NUMBER)
		tracepoint->static_bytes += field.size;
	if (tracepoint->static_bytes > FIELD_BYTES_MAX ||
	    tracepoint->fields.len >= FIELDS_MAX)
		return -EBADMSG;
	ret = tracepoint_add_field(tracepoint, format->name, &field);
	if (ret < 0)
		return ret;
	return 1;
}

/* Drops the print format, which is not needed and takes longest to parse. */
static int drop_print_format(const char *format, size_t len, struct pm_str *out)
{
	const char *print = memmem(format, len, "\nprint fmt:", 11);

	pm_str_append(out, format, print ? (size_t)(print - format) : len);
	pm_str_puts(out, "\nprint fmt: \"\"\n");
	if (out->failed)
		return -ENOMEM;
	return 0;
}

static int tracepoint_read_format(struct pm_tracepoint *tracepoint,
				  struct tep_handle *tep, const char *system,
				  const struct pm_str *text)
{
	struct tep_event *event = NULL; /* owned by @tep */
	int ret = 0;

	if (tep_parse_format(tep, &event, text->data, text->len, system) != 0 || !event ||
	    event->flags & TEP_EVENT_FL_FAILED)
		return -EBADMSG;
	for (const struct tep_format_field *at = event->format.fields; at && ret >= 0;
	     at = at->next)
		ret = tracepoint_take_field(tracepoint, at);
	if (ret < 0)
		return ret;
	return 0;
}

int pm_tracepoint_parse(struct pm_tracepoint **out, const char *system, uint32_t id,
			const char *format, size_t len, struct pm_error *err)
{
	struct pm_tracepoint *tracepoint = calloc(1, sizeof(*tracepoint));
	struct tep_handle *tep = tep_alloc();
	struct pm_str text PM_CLEANUP(pm_str_release) = { 0 };
	int ret = -ENOMEM;

	tep_set_loglevel(TEP_LOG_NONE); /* libraries never print */
	if (tracepoint && tep) {
		tep_set_long_size(tep, sizeof(long));
		ret = drop_print_format(format, len, &text);
	}
	if (ret == 0)
		ret = tracepoint_read_format(tracepoint, tep, system, &text);
	tep_free(tep);
	if (ret < 0) {
		pm_tracepoint_free(tracepoint);
		return pm_error_set(err, ret,
				    ret == -ENOMEM ? "out of memory"
						   : "its description cannot be read");
	}
	tracepoint->id = id;
	tracepoint->id_known = true;
	*out = tracepoint;
	return 0;
}

static int fields_of_probe(struct pm_tracepoint **out, const struct pm_event_spec *spec,
			   struct pm_error *err)
{
	static const char *const on_entry[] = { "ip", NULL };
	static const char *const on_return[] = { "func", "ret_ip", NULL };
	struct pm_tracepoint *tracepoint = calloc(1, sizeof(*tracepoint));
	struct field field = { .offset = PROBE_FIELDS_AT, .size = sizeof(long) };
	const char *const *name = on_entry;
	int ret = 0;

	if (!tracepoint)
		return pm_error_no_memory(err);
	if (spec->config & RETURN_PROBE_BIT)
		name = on_return;
	for (; *name && ret == 0; name++) {
		ret = tracepoint_add_field(tracepoint, *name, &field);
		field.offset += field.size;
	}
	if (ret < 0) {
		pm_tracepoint_free(tracepoint);
		return pm_error_set(err, ret, "out of memory");
	}
	*out = tracepoint;
	return 0;
}

int pm_tracepoint_new(struct pm_tracepoint **out, const struct pm_event_spec *spec,
		      struct pm_error *err)
{
	struct pm_str text PM_CLEANUP(pm_str_release) = { 0 };
	char file[PM_EVENT_NAME_MAX + 32];
	const char *colon = strchr(spec->name, ':'), *root;
	char system[PM_TRACEPOINT_NAME_MAX];
	int ret;

	if (spec->kind == PM_EVENT_UPROBE || spec->kind == PM_EVENT_KPROBE)
		return fields_of_probe(out, spec, err);
	if (spec->kind != PM_EVENT_TRACEPOINT || !colon ||
	    (size_t)(colon - spec->name) >= sizeof(system))
		return pm_error_set(err, -EINVAL, "\"%s\" is no tracepoint", spec->name);
	snprintf(system, sizeof(system), "%.*s", (int)(colon - spec->name), spec->name);
	snprintf(file, sizeof(file), "events/%s/%s/format", system, colon + 1);
	ret = pm_tracefs_find(&root, err);
	if (ret == 0)
		ret = pm_tracefs_read(root, file, FORMAT_FILE_MAX, &text, err);
	if (ret == 0) {
		ret = pm_tracepoint_parse(out, system, (uint32_t)spec->config, text.data,
					  text.len, err);
		if (ret < 0)
			pm_error_where(err, spec->name, -1);
	}
	return ret;
}

int pm_tracepoint_explain_filter(const struct pm_event_spec *spec, int code,
				 struct pm_error *err)
{
	struct pm_tracepoint *tracepoint = NULL;
	struct pm_str fields PM_CLEANUP(pm_str_release) = { 0 };

	if (code == EINVAL && pm_tracepoint_new(&tracepoint, spec, NULL) == 0)
		for (size_t i = 0; i < tracepoint->fields.len; i++)
			pm_str_printf(
				&fields, "%s%s%s", pm_text_if(i > 0, ", "),
				tracepoint->fields.data[i].name,
				pm_text_if(tracepoint->fields.data[i].shape == SHAPE_TEXT,
					   " (text)"));
	pm_tracepoint_free(tracepoint);
	if (fields.len > 0 && !fields.failed) {
		pm_error_set(
			err, -code,
			"the kernel does not take the filter \"%s\"; the fields of %s "
			"are %s",
			spec->filter, spec->name, fields.data);
		pm_error_fix(err, "a filter such as 'FIELD > 1 && TEXT ~ \"a*\"', see "
				  "Documentation/trace/events.rst");
	} else {
		pm_error_set(err, -code, "the filter \"%s\" cannot be set: %s",
			     spec->filter, strerror(code));
	}
	pm_error_where(err, spec->requested, -1);
	return -code;
}

/* ---- values ---------------------------------------------------------------------------- */

/* An unsigned number of @size bytes: 1, 2, 4 or 8. */
static uint64_t read_number_of_size(const uint8_t *at, uint32_t size)
{
	uint64_t u64;
	uint32_t u32;
	uint16_t u16;

	switch (size) {
	case 1:
		return *at;
	case 2:
		memcpy(&u16, at, sizeof(u16));
		return u16;
	case 4:
		memcpy(&u32, at, sizeof(u32));
		return u32;
	default:
		memcpy(&u64, at, sizeof(u64));
		return u64;
	}
}

static int64_t extend_sign(uint64_t value, uint32_t size)
{
	unsigned int shift = 64 - 8 * size;

	return (int64_t)(value << shift) >> shift;
}

static void field_put_numbers(struct pm_str *out, const struct field *field,
			      const uint8_t *at, size_t len)
{
	for (size_t i = 0; i + field->element <= len; i += field->element) {
		uint64_t value = read_number_of_size(at + i, field->element);

		if (i > 0)
			pm_str_putc(out, ',');
		if (field->is_signed)
			pm_str_printf(out, "%" PRId64,
				      extend_sign(value, field->element));
		else
			pm_str_u64(out, value);
	}
}

static void field_put_hex(struct pm_str *out, const uint8_t *at, size_t len)
{
	static const char digits[] = "0123456789abcdef";

	for (size_t i = 0; i < len; i++) {
		pm_str_putc(out, digits[at[i] >> 4]);
		pm_str_putc(out, digits[at[i] & 15]);
	}
}

/* Returns the string's position in @out. */
static const char *field_put_text(struct pm_str *out, const struct field *field,
				  const uint8_t *at, size_t len)
{
	size_t begin = out->len;

	if (field->shape == SHAPE_TEXT)
		pm_str_append(out, (const char *)at, strnlen((const char *)at, len));
	else if (field->shape == SHAPE_NUMBERS)
		field_put_numbers(out, field, at, len);
	else
		field_put_hex(out, at, len);
	pm_str_append(out, "", 1); /* include the NUL */
	return out->data + begin;
}

/* Finds the bytes of a field. Returns false if they are not all in the record. */
static bool field_find_bytes(const struct field *field, const uint8_t *raw,
			     size_t raw_len, size_t *at, size_t *len)
{
	uint64_t where;

	*at = field->offset;
	*len = field->size;
	if (*at > raw_len || *len > raw_len - *at)
		return false;
	if (!field->dynamic)
		return true;
	where = read_number_of_size(raw + *at, sizeof(uint32_t));
	*at = (where & 0xffff) + (field->relative ? field->offset + field->size : 0);
	*len = where >> 16;
	return *at <= raw_len && *len <= raw_len - *at;
}

int pm_tracepoint_fields(const struct pm_tracepoint *tracepoint, const uint8_t *raw,
			 size_t raw_len, struct pm_event_fields *out)
{
	size_t dynamic_bytes = 0, fields = tracepoint->fields.len;

	pm_vec_clear(&out->list);
	pm_str_clear(&out->texts);
	if (raw_len < sizeof(uint16_t) || raw_len > FIELD_BYTES_MAX ||
	    (tracepoint->id_known &&
	     read_number_of_size(raw, sizeof(uint16_t)) != (tracepoint->id & 0xffff)))
		return -EBADMSG;
	/* Reserve everything at once, so that no string moves. */
	if (pm_vec_reserve(&out->list, fields) < 0 ||
	    pm_vec_reserve(&out->texts,
			   TEXT_PER_BYTE * (tracepoint->static_bytes + raw_len) + fields +
				   1) < 0)
		return -ENOMEM;
	for (size_t i = 0; i < fields; i++) {
		const struct field *field = &tracepoint->fields.data[i];
		struct pm_event_field *decoded = &out->list.data[i];
		size_t at, len;

		if (!field_find_bytes(field, raw, raw_len, &at, &len))
			return -EBADMSG;
		/* Real arrays do not overlap; only forged ones share bytes. */
		if (field->dynamic)
			dynamic_bytes += len;
		if (dynamic_bytes > raw_len)
			return -EBADMSG;
		decoded->name = field->name;
		if (field->shape != SHAPE_NUMBER) {
			decoded->kind = PM_EVENT_FIELD_TEXT;
			decoded->text = field_put_text(&out->texts, field, raw + at, len);
			continue;
		}
		if (field->is_signed)
			decoded->kind = PM_EVENT_FIELD_SIGNED;
		else
			decoded->kind = PM_EVENT_FIELD_UNSIGNED;
		decoded->number = read_number_of_size(raw + at, field->size);
		if (field->is_signed)
			decoded->negative_too = extend_sign(decoded->number, field->size);
	}
	if (out->texts.failed)
		return -ENOMEM;
	out->list.len = fields;
	return 0;
}
