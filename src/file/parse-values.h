/* SPDX-License-Identifier: MIT */
/* Functions that read values of a JSON object and check their types and ranges; for the
 * parsers of lines. */
#pragma once

#include "file-internal.h"

#include <stdarg.h>
#include <string.h>

#include <jansson.h>

enum {
	NAME_BYTES = 64,
};

/* The current object, and the first error in it. */
struct fields {
	const json_t *object;
	struct pm_error *err;
	int failed; /* 0 or negative errno */
	char name[NAME_BYTES]; /* of the object, for messages: "footer.events[2]" */
};

static inline void fail(struct fields *fields, const char *key, const char *format, ...)
	PM_PRINTF(3, 4);

static inline void fail(struct fields *fields, const char *key, const char *format, ...)
{
	char what[256];
	va_list args;

	if (fields->failed != 0)
		return;
	va_start(args, format);
	vsnprintf(what, sizeof(what), format, args);
	va_end(args);
	fields->failed =
		pm_error_set(fields->err, -EBADMSG, "%s.%s: %s", fields->name, key, what);
}

static inline void fail_memory(struct fields *fields)
{
	if (fields->failed == 0)
		fields->failed = pm_error_set(fields->err, -ENOMEM, "out of memory");
}

static inline const json_t *get(struct fields *fields, const char *key)
{
	const json_t *value = json_object_get(fields->object, key);

	if (!value)
		fail(fields, key, "missing");
	return value;
}

static inline uint64_t as_u64(struct fields *fields, const char *key, const json_t *value,
			      uint64_t max)
{
	if (!value)
		return 0;
	if (!json_is_integer(value) || json_integer_value(value) < 0)
		fail(fields, key, "expected a non-negative integer");
	else if ((uint64_t)json_integer_value(value) > max)
		fail(fields, key, "expected at most %llu", (unsigned long long)max);
	else
		return (uint64_t)json_integer_value(value);
	return 0;
}

static inline uint64_t get_u64(struct fields *fields, const char *key)
{
	return as_u64(fields, key, get(fields, key), PM_FILE_INTEGER_MAX);
}

/* For keys that were added later: returns 0 if the key is missing, as in older files. */
static inline uint64_t get_u64_or_0(struct fields *fields, const char *key)
{
	return json_object_get(fields->object, key) ? get_u64(fields, key) : 0;
}

static inline uint32_t get_u32(struct fields *fields, const char *key)
{
	return (uint32_t)as_u64(fields, key, get(fields, key), PM_FILE_NONE - 1);
}

static inline uint32_t get_u32_or_null(struct fields *fields, const char *key)
{
	const json_t *value = get(fields, key);

	if (json_is_null(value))
		return PM_FILE_NONE;
	return (uint32_t)as_u64(fields, key, value, PM_FILE_NONE - 1);
}

static inline const char *get_text(struct fields *fields, const char *key)
{
	const json_t *value = get(fields, key);

	if (value && !json_is_string(value))
		fail(fields, key, "expected a string");
	return json_string_value(value);
}

/* Returns NULL if the value is missing or null, which means that it is unknown. */
static inline const char *get_text_or_null(struct fields *fields, const char *key)
{
	const json_t *value = json_object_get(fields->object, key);

	if (value && !json_is_null(value) && !json_is_string(value))
		fail(fields, key, "expected a string or null");
	return json_string_value(value);
}

static inline uint64_t get_address(struct fields *fields, const char *key)
{
	enum {
		DIGITS_MAX = 16
	};
	const char *text = get_text(fields, key);
	size_t digits = text ? strlen(text) : 0;
	uint64_t value;

	if (!text)
		return 0;
	if (digits < 3 || digits - 2 > DIGITS_MAX || text[0] != '0' || text[1] != 'x' ||
	    !pm_parse_u64(text, &value)) {
		fail(fields, key, "expected a hexadecimal address such as \"0x1f\"");
		return 0;
	}
	return value;
}

static inline const json_t *get_array(struct fields *fields, const char *key)
{
	const json_t *value = get(fields, key);

	if (value && !json_is_array(value))
		fail(fields, key, "expected an array");
	return json_is_array(value) ? value : NULL;
}

/* Returns the object @key. If it is not an object, returns an empty object, for which
 * every get fails. */
static inline struct fields get_object(struct fields *fields, const char *key)
{
	struct fields inner = { .err = fields->err };
	const json_t *value = get(fields, key);

	if (value && !json_is_object(value))
		fail(fields, key, "expected an object");
	inner.object = value;
	inner.failed = fields->failed;
	snprintf(inner.name, sizeof(inner.name), "%.32s.%s", fields->name, key);
	return inner;
}

/* The same for element @index of @array. */
static inline struct fields get_element(struct fields *fields, const char *key,
					const json_t *array, size_t index)
{
	struct fields inner = { .err = fields->err, .failed = fields->failed };

	inner.object = json_array_get(array, index);
	snprintf(inner.name, sizeof(inner.name), "%.20s.%s[%zu]", fields->name, key,
		 index);
	if (!json_is_object(inner.object)) {
		char element[NAME_BYTES];

		snprintf(element, sizeof(element), "%s[%zu]", key, index);
		fail(fields, element, "expected an object");
		inner.failed = fields->failed;
	}
	return inner;
}

/* Implemented in parse-header.c. */
void pm_file_parse_header(struct pm_file_parsed *parsed, struct fields *fields);
