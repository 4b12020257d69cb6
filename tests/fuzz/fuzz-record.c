/* SPDX-License-Identifier: MIT */
/*
 * Bytes 0 and 1 choose the layout of the records, byte 2 where in the ring the first of them
 * begins, and how counts and branches look; the rest is what the kernel wrote. The same bytes go through the merge of two
 * rings and, one record at a time in an allocation of just its size, through the decoder.
 */
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "src/perf/perf-internal.h"

enum {
	PREFIX = 3,
	RING_BYTES = 1 << 14,
	BACKWARD_BYTES = 1 << 8, /* so that most go around */
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static volatile uint64_t sink;

static void touch(const void *bytes, size_t len)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < len; i++)
		sum += ((const uint8_t *)bytes)[i];
	sink += sum;
}

/* Reads everything that a record claims to have. */
static void touch_record(const struct pm_record *record,
			 const struct pm_record_layout *layout)
{
	uint64_t count;

	switch (record->type) {
	case PERF_RECORD_SAMPLE:
		assert(record->sample.stack_len <= record->sample.stack_asked);
		assert((uintptr_t)record->sample.callchain % 8 == 0);
		assert(record->sample.regs.known >> PM_DWARF_REGS_MAX == 0);
		touch(record->sample.callchain, record->sample.callchain_len * 8);
		touch(record->sample.stack, record->sample.stack_asked);
		touch(record->sample.raw, record->sample.raw_len);
		touch(record->sample.branches,
		      record->sample.branches_len * sizeof(struct perf_branch_entry));
		touch(record->sample.counts, record->sample.counts_len * 8);
		pm_sample_count(&record->sample, layout, 1, &count);
		break;
	case PERF_RECORD_MMAP:
	case PERF_RECORD_MMAP2:
		touch(record->mmap.path, strlen(record->mmap.path) + 1);
		break;
	case PERF_RECORD_COMM:
		touch(record->comm.name, strlen(record->comm.name) + 1);
		break;
	default:
		break;
	}
	assert(record->event < 2);
}

static struct pm_record_layout layout_of(const uint8_t *choice)
{
	struct pm_record_layout layout = { 0 };

	if (choice[0] < 3)
		return pm_attr_layout(&(struct pm_attr_shape){
			.call_graph = (enum pm_call_graph)choice[0] });
	/* Any fields: low 14 bits of PERF_SAMPLE_*, and IDENTIFIER. */
	layout.sample_type = (uint64_t)(choice[0] & 0x3f) << 8 | choice[1];
	if (choice[0] & 0x40)
		layout.sample_type |= PERF_SAMPLE_IDENTIFIER;
	/* The first five of PERF_FORMAT_*, and what changes the list of branches. */
	layout.read_format = choice[2] & 0x1f;
	if (choice[2] & 0x20)
		layout.branch_sample_type |= PERF_SAMPLE_BRANCH_HW_INDEX;
	if (choice[2] & 0x40)
		layout.branch_sample_type |= 1u << 19; /* _COUNTERS, Linux 6.8 */
	layout.regs_user = choice[0] & 0x80 ? UINT64_MAX : 0xff0fff;
	return layout;
}

static void read_merge(struct pm_merge *merge, const struct pm_record_layout *layout,
		       size_t size)
{
	size_t steps = 0;

	for (uint64_t limit = 0; limit < 3; limit++) {
		struct pm_record record;
		struct pm_error err;
		int r;

		pm_merge_begin(merge, limit < 2 ? limit << 40 : UINT64_MAX);
		while ((r = pm_merge_next(merge, &record, &err)) != 0) {
			if (r > 0)
				touch_record(&record, layout);
			/* Each call consumes 8 bytes or ends a ring. */
			assert(steps++ <= size / 8 + 2);
		}
	}
}

static void fuzz_merge(const struct pm_record_layout *layout, const uint8_t *data,
		       size_t size, uint64_t start)
{
	struct perf_event_mmap_page pages[2] = { 0 };
	uint8_t *memory[2] = { NULL, NULL };
	struct pm_merge merge = { .layout = *layout };
	size_t half = size / 2 & ~(size_t)7;

	for (uint32_t cpu = 0; cpu < 2; cpu++) {
		size_t len = cpu ? size - half : half;
		struct pm_ring ring = { .base = &pages[cpu],
					.data = aligned_alloc(8, RING_BYTES),
					.data_bytes = RING_BYTES,
					.head = start,
					.tail = start };

		memory[cpu] = ring.data;
		memset(ring.data, 0, RING_BYTES);
		for (size_t i = 0; i < len && i < RING_BYTES; i++)
			ring.data[(start + i) % RING_BYTES] = data[cpu * half + i];
		pages[cpu].data_head = start + len; /* may be more than the ring holds */
		if (pm_merge_add(&merge, &ring, cpu) < 0)
			abort();
	}
	read_merge(&merge, layout, size);
	pm_merge_release(&merge);
	free(memory[0]);
	free(memory[1]);
}

/* The same bytes as rings that keep the newest: the first byte is at the head. */
static void fuzz_backward(const struct pm_record_layout *layout, const uint8_t *data,
			  size_t size)
{
	struct perf_event_mmap_page pages[2] = { 0 };
	uint8_t *memory[2] = { NULL, NULL };
	struct pm_merge merge = { .layout = *layout };
	size_t half = size / 2 & ~(size_t)7;

	for (uint32_t cpu = 0; cpu < 2; cpu++) {
		size_t len = cpu ? size - half : half;
		struct pm_ring ring = { .base = &pages[cpu],
					.data = aligned_alloc(8, BACKWARD_BYTES),
					.data_bytes = BACKWARD_BYTES,
					.backward = true };

		memory[cpu] = ring.data;
		memset(ring.data, 0, BACKWARD_BYTES);
		pages[cpu].data_head = 0 - (uint64_t)len; /* may have gone around */
		for (size_t i = 0; i < len && i < BACKWARD_BYTES; i++)
			ring.data[(pages[cpu].data_head + i) % BACKWARD_BYTES] =
				data[cpu * half + i];
		if (pm_merge_add(&merge, &ring, cpu) < 0)
			abort();
	}
	pm_merge_stop_backward(&merge, true, NULL);
	read_merge(&merge, layout, size);
	pm_merge_stop_backward(&merge, false, NULL);
	pm_merge_release(&merge);
	free(memory[0]);
	free(memory[1]);
}

static void fuzz_decode(const struct pm_record_layout *layout, const uint8_t *data,
			size_t size)
{
	while (size >= sizeof(struct perf_event_header)) {
		struct perf_event_header header;
		struct pm_record record;
		struct pm_error err;
		uint64_t time;
		uint8_t *copy;

		memcpy(&header, data, sizeof(header));
		if (header.size < sizeof(header) || header.size > size)
			header.size = (uint16_t)(size < 65528 ? size : 65528);
		copy = malloc(header.size);
		if (!copy)
			abort();
		memcpy(copy, data, header.size);
		memcpy(copy, &header, sizeof(header));
		if (pm_record_decode((void *)copy, layout, &record, &err) == 0) {
			touch_record(&record, layout);
			if (pm_record_time((void *)copy, layout, &time))
				assert(time == record.time);
		}
		free(copy);
		data += header.size;
		size -= header.size;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct pm_event_ids ids = { 0 };
	struct pm_record_layout layout;

	if (size < PREFIX)
		return 0;
	if (pm_event_ids_add(&ids, 0, 0) < 0 || pm_event_ids_add(&ids, 1, 1) < 0)
		abort();
	layout = layout_of(data);
	layout.ids = &ids;
	fuzz_merge(&layout, data + PREFIX, size - PREFIX, RING_BYTES - 8u * data[2]);
	fuzz_backward(&layout, data + PREFIX, size - PREFIX);
	fuzz_decode(&layout, data + PREFIX, size - PREFIX);
	pm_event_ids_release(&ids);
	return 0;
}
