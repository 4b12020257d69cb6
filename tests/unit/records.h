/* SPDX-License-Identifier: MIT */
/* Builds perf records byte by byte, as linux/perf_event.h lays them out. */
#pragma once

#include <linux/perf_event.h>
#include <stdint.h>
#include <string.h>

struct record_builder {
	_Alignas(8) uint8_t bytes[1 << 17];
	size_t len, start;
};

static inline void put_bytes(struct record_builder *to, const void *bytes, size_t len)
{
	memcpy(to->bytes + to->len, bytes, len);
	to->len += len;
}

static inline void put_u64(struct record_builder *to, uint64_t value)
{
	put_bytes(to, &value, sizeof(value));
}

static inline void put_u32s(struct record_builder *to, uint32_t first, uint32_t second)
{
	put_bytes(to, &first, sizeof(first));
	put_bytes(to, &second, sizeof(second));
}

/* With its NUL, padded to 8 as the kernel does. */
static inline void put_text(struct record_builder *to, const char *text)
{
	put_bytes(to, text, strlen(text) + 1);
	while (to->len % 8 != 0)
		to->bytes[to->len++] = 0;
}

static inline void begin_record(struct record_builder *to, uint32_t type, uint16_t misc)
{
	struct perf_event_header header = { .type = type, .misc = misc };

	to->start = to->len;
	put_bytes(to, &header, sizeof(header));
}

static inline struct perf_event_header *end_record(struct record_builder *to)
{
	struct perf_event_header *header = (void *)(to->bytes + to->start);

	header->size = (uint16_t)(to->len - to->start);
	return header;
}

/* The trailer of TID | TIME | CPU | IDENTIFIER. */
static inline struct perf_event_header *end_record_with_id(struct record_builder *to,
							   uint32_t pid, uint32_t tid,
							   uint64_t time, uint32_t cpu,
							   uint64_t id)
{
	put_u32s(to, pid, tid);
	put_u64(to, time);
	put_u32s(to, cpu, 0);
	put_u64(to, id);
	return end_record(to);
}
