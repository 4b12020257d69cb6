/* SPDX-License-Identifier: MIT */
#include "pm/base.h"

#include <string.h>

const void *pm_reader_bytes(struct pm_reader *reader, size_t size)
{
	const uint8_t *at;

	if (reader->failed || size > reader->len - reader->pos) {
		reader->failed = true;
		return NULL;
	}
	at = reader->data + reader->pos;
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
 * The payload of a LEB128 number: @shift tells how many bits of it were given, @beyond
 * whether bits were set that a 64-bit number has no place for.
 */
static uint64_t leb_payload(struct pm_reader *reader, unsigned int *shift, uint8_t *last,
			    bool *beyond)
{
	enum {
		PADDED_BITS_MAX = 20 * 7 /* padding is legal, endless padding is not */
	};
	uint64_t value = 0;

	*shift = 0;
	*beyond = false;
	do {
		uint8_t bits;

		*last = pm_reader_u8(reader);
		bits = *last & 0x7f;
		if (*shift < 64)
			value |= (uint64_t)bits << *shift;
		if (*shift == 63 ? bits > 1 : *shift > 63 && bits > 0)
			*beyond = true;
		*shift += 7;
		if (*shift > PADDED_BITS_MAX)
			reader->failed = true;
	} while ((*last & 0x80) && !reader->failed);
	return reader->failed ? 0 : value;
}

uint64_t pm_reader_uleb(struct pm_reader *reader)
{
	unsigned int shift;
	uint8_t last;
	bool beyond;
	uint64_t value = leb_payload(reader, &shift, &last, &beyond);

	if (beyond) {
		reader->failed = true;
		return 0;
	}
	return value;
}

int64_t pm_reader_sleb(struct pm_reader *reader)
{
	unsigned int shift;
	uint8_t last;
	bool beyond; /* sign bits reach past 64 in every negative number of ten bytes */
	uint64_t value = leb_payload(reader, &shift, &last, &beyond);

	if (!reader->failed && shift < 64 && (last & 0x40))
		value |= ~(uint64_t)0 << shift;
	return (int64_t)value;
}

const char *pm_reader_cstr(struct pm_reader *reader)
{
	size_t left = pm_reader_left(reader);
	const char *text = (const char *)reader->data + reader->pos;

	if (left == 0 || !memchr(text, '\0', left)) {
		reader->failed = true;
		return NULL;
	}
	reader->pos += strlen(text) + 1;
	return text;
}
