/* SPDX-License-Identifier: MIT */
#include "pm/base.h"

#include <string.h>

const void *pm_reader_bytes(struct pm_reader *reader, size_t size)
{
	const uint8_t *at;

	if (reader->failed || reader->pos > reader->len ||
	    size > reader->len - reader->pos) {
		reader->failed = true;
		return NULL;
	}
	/* Arithmetic on the NULL of an empty reader would be undefined. */
	at = reader->data ? reader->data + reader->pos : NULL;
	reader->pos += size;
	return at;
}

#define READ_INTEGER(type)                                      \
	const void *at = pm_reader_bytes(reader, sizeof(type)); \
	type value = 0;                                         \
                                                                \
	if (at)                                                 \
		memcpy(&value, at, sizeof(value));              \
	return value

uint8_t pm_reader_u8(struct pm_reader *reader)
{
	READ_INTEGER(uint8_t);
}

uint16_t pm_reader_u16(struct pm_reader *reader)
{
	READ_INTEGER(uint16_t);
}

uint32_t pm_reader_u32(struct pm_reader *reader)
{
	READ_INTEGER(uint32_t);
}

uint64_t pm_reader_u64(struct pm_reader *reader)
{
	READ_INTEGER(uint64_t);
}

/*
 * Reads one LEB128 number as 64 bits. All further bits must be padding: zeros, or copies
 * of the sign bit.
 */
static uint64_t read_leb(struct pm_reader *reader, bool is_signed)
{
	enum {
		PADDED_BYTES_MAX = 20 /* padding is legal, endless padding is not */
	};
	uint64_t value = 0;

	for (unsigned int i = 0; i < PADDED_BYTES_MAX; i++) {
		uint8_t byte = pm_reader_u8(reader);
		uint8_t bits = byte & 0x7f;
		unsigned int shift = i * 7;

		if (reader->failed)
			return 0;
		if (shift < 64)
			value |= (uint64_t)bits << shift;
		if (shift >= 63) {
			bool negative = is_signed && value >> 63;

			/* Only the lowest bit of the tenth byte belongs to the value. */
			if (shift == 63 && !is_signed)
				bits >>= 1;
			if (bits != (negative ? 0x7f : 0))
				break;
		}
		if (byte & 0x80)
			continue;
		if (is_signed && shift + 7 < 64 && (byte & 0x40))
			value |= ~(uint64_t)0 << (shift + 7);
		return value;
	}
	reader->failed = true;
	return 0;
}

uint64_t pm_reader_uleb(struct pm_reader *reader)
{
	return read_leb(reader, false);
}

int64_t pm_reader_sleb(struct pm_reader *reader)
{
	return (int64_t)read_leb(reader, true);
}

const char *pm_reader_cstr(struct pm_reader *reader)
{
	size_t left = pm_reader_left(reader);
	const char *text = NULL, *end = NULL;

	if (left > 0) {
		text = (const char *)reader->data + reader->pos;
		end = memchr(text, '\0', left);
	}
	if (!end) {
		reader->failed = true;
		return NULL;
	}
	reader->pos += (size_t)(end - text) + 1;
	return text;
}
