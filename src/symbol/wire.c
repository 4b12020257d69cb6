/* SPDX-License-Identifier: MIT */
#include "wire.h"

#include <string.h>

enum {
	HAS_NAME = 1,
	HAS_FILE = 2,
	HAS_START = 4,
	HAS_ALL = 7,
};

static uint32_t function_field_flags(const struct pm_symbol_function *function)
{
	uint32_t flags = 0;

	if (function->name)
		flags |= HAS_NAME;
	if (function->file)
		flags |= HAS_FILE;
	if (function->start > 0)
		flags |= HAS_START;
	return flags;
}

static void wire_append_u32(struct pm_str *to, uint32_t value)
{
	pm_str_append(to, (const char *)&value, sizeof(value));
}

static size_t wire_text_bytes(const char *text)
{
	if (text)
		return strlen(text) + 1;
	return 0;
}

static size_t wire_function_bytes(const struct pm_symbol_function *function)
{
	size_t bytes = 2 * sizeof(uint32_t) + wire_text_bytes(function->name) +
		       wire_text_bytes(function->file);

	if (function->start > 0)
		bytes += sizeof(function->start);
	return bytes;
}

void pm_symbol_wire_put_symbol(struct pm_str *to, uint32_t index,
			       const struct pm_symbol_function *functions, size_t len)
{
	size_t bytes = 3 * sizeof(uint32_t), fit = 0;

	for (; fit < len && fit < PM_SYMBOL_WIRE_FUNCTIONS_MAX; fit++) {
		size_t more = wire_function_bytes(&functions[fit]);

		if (more > PM_SYMBOL_WIRE_BYTES_MAX - bytes)
			break;
		bytes += more;
	}
	wire_append_u32(to, (uint32_t)bytes);
	wire_append_u32(to, PM_SYMBOL_WIRE_SYMBOL);
	wire_append_u32(to, index);
	wire_append_u32(to, (uint32_t)fit);
	for (size_t i = 0; i < fit; i++) {
		const struct pm_symbol_function *function = &functions[i];

		wire_append_u32(to, function->line);
		wire_append_u32(to, function_field_flags(function));
		pm_str_append(to, function->name, wire_text_bytes(function->name));
		pm_str_append(to, function->file, wire_text_bytes(function->file));
		if (function->start > 0)
			pm_str_append(to, (const char *)&function->start,
				      sizeof(function->start));
	}
}

void pm_symbol_wire_put_opening(struct pm_str *to, uint32_t index)
{
	wire_append_u32(to, 2 * sizeof(uint32_t));
	wire_append_u32(to, PM_SYMBOL_WIRE_OPENING);
	wire_append_u32(to, index);
}

void pm_symbol_wire_put_done(struct pm_str *to, int code)
{
	wire_append_u32(to, 2 * sizeof(uint32_t));
	wire_append_u32(to, PM_SYMBOL_WIRE_DONE);
	wire_append_u32(to, (uint32_t)code);
}

static bool wire_read_symbol(struct pm_reader *reader, struct pm_symbol_wire_message *out)
{
	out->index = pm_reader_u32(reader);
	out->functions_len = pm_reader_u32(reader);
	if (reader->failed || out->functions_len > PM_SYMBOL_WIRE_FUNCTIONS_MAX)
		return false;
	for (size_t i = 0; i < out->functions_len; i++) {
		struct pm_symbol_function function = { .line = pm_reader_u32(reader) };
		uint32_t follows = pm_reader_u32(reader);

		if (follows & HAS_NAME)
			function.name = pm_reader_cstr(reader);
		if (follows & HAS_FILE)
			function.file = pm_reader_cstr(reader);
		if (follows & HAS_START)
			function.start = pm_reader_u64(reader);
		if (reader->failed || follows > HAS_ALL)
			return false;
		out->functions[i] = function;
	}
	return true;
}

int pm_symbol_wire_next(const void *bytes, size_t len, struct pm_symbol_wire_message *out,
			size_t *taken)
{
	struct pm_reader reader;
	uint32_t size, kind;
	bool valid;

	if (len < sizeof(size))
		return 0;
	memcpy(&size, bytes, sizeof(size));
	if (size < 2 * sizeof(uint32_t) || size > PM_SYMBOL_WIRE_BYTES_MAX)
		return -EBADMSG;
	if (len - sizeof(size) < size)
		return 0;
	pm_reader_init(&reader, (const char *)bytes + sizeof(size), size);
	kind = pm_reader_u32(&reader);
	if (kind == PM_SYMBOL_WIRE_SYMBOL) {
		valid = wire_read_symbol(&reader, out);
	} else if (kind == PM_SYMBOL_WIRE_OPENING) {
		out->index = pm_reader_u32(&reader);
		valid = !reader.failed;
	} else {
		out->code = (int32_t)pm_reader_u32(&reader);
		valid = kind == PM_SYMBOL_WIRE_DONE &&
			out->code <= PM_SYMBOL_WIRE_DAMAGED;
	}
	if (!valid || pm_reader_left(&reader) > 0)
		return -EBADMSG;
	out->kind = kind;
	*taken = sizeof(size) + size;
	return 1;
}
