/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>
#include <sys/mman.h>

#include "src/perf/perf-internal.h"
#include "tests/unit/records.h"

/* A ring in plain memory, and the kernel's side of it. */
struct fake {
	struct perf_event_mmap_page page;
	struct pm_ring ring;
	size_t bytes;
	uint64_t head;
	bool full; /* a write found no room */
};

static void fake_init(struct fake *fake, size_t bytes, uint64_t start)
{
	memset(fake, 0, sizeof(*fake));
	fake->bytes = bytes;
	fake->head = start;
	fake->page.data_head = fake->page.data_tail = start;
	fake->ring = (struct pm_ring){
		.base = &fake->page,
		.data = aligned_alloc(8, bytes),
		.data_bytes = bytes,
		.head = start,
		.tail = start,
	};
	assert_non_null(fake->ring.data);
	memset(fake->ring.data, 0xdb, bytes);
}

static uint8_t *fake_data(struct fake *fake)
{
	return fake->ring.data;
}

/* As __perf_output_begin(): nothing is written over what was not given back. */
static void fake_write(struct fake *fake, uint8_t *data, const void *bytes, size_t len)
{
	if (fake->head + len - fake->page.data_tail > fake->bytes) {
		fake->full = true;
		return;
	}
	for (size_t i = 0; i < len; i++)
		data[(fake->head + i) % fake->bytes] = ((const uint8_t *)bytes)[i];
	fake->head += len;
	fake->page.data_head = fake->head;
}

static void fake_record(struct fake *fake, uint8_t *data, uint32_t type, size_t size)
{
	static struct record_builder build;

	build.len = 0;
	begin_record(&build, type, 0);
	for (; build.len < size; build.len++)
		build.bytes[build.len] = (uint8_t)(type + build.len);
	fake_write(fake, data, end_record(&build), size);
}

static void fake_release(struct fake *fake)
{
	free(fake->ring.data);
	pm_ring_release(&fake->ring);
}

static void test_empty(void **state)
{
	const struct perf_event_header *header;
	struct fake fake;

	fake_init(&fake, 4096, 0);
	pm_ring_refresh(&fake.ring);
	assert_int_equal(pm_ring_peek(&fake.ring, &header, NULL), 0);
	fake_release(&fake);
}

/* Every place of a record of every small size, so that it wraps at each offset, at the end
 * of the counter's range, too. */
static void test_wrap_at_each_offset(void **state)
{
	static const uint64_t bases[] = { 0, 4096, UINT64_MAX - 255 };

	for (size_t b = 0; b < PM_ARRAY_LEN(bases); b++) {
		for (size_t offset = 0; offset < 256; offset += 8) {
			for (size_t size = 8; size <= 256; size += 8) {
				const struct perf_event_header *header = NULL;
				struct fake fake;
				bool wraps = offset + size > 256;

				fake_init(&fake, 256, bases[b] + offset);
				fake_record(&fake, fake_data(&fake), 7, size);
				assert_int_equal(pm_ring_peek(&fake.ring, &header, NULL),
						 0);
				pm_ring_refresh(&fake.ring);
				assert_int_equal(pm_ring_peek(&fake.ring, &header, NULL),
						 1);
				assert_int_equal(header->type, 7);
				assert_int_equal(header->size, size);
				for (size_t i = 8; i < size; i++)
					assert_int_equal(((const uint8_t *)header)[i],
							 (uint8_t)(7 + i));
				if (!wraps)
					assert_ptr_equal(header, fake.ring.data + offset);
				assert_int_equal(fake.ring.scratch != NULL, wraps);
				pm_ring_consume(&fake.ring);
				assert_int_equal(pm_ring_peek(&fake.ring, &header, NULL),
						 0);
				assert_int_equal(fake.page.data_tail, bases[b] + offset);
				pm_ring_publish(&fake.ring);
				assert_int_equal(fake.page.data_tail, fake.head);
				fake_release(&fake);
			}
		}
	}
}

static void test_full_ring(void **state)
{
	const struct perf_event_header *header;
	struct fake fake;
	int n = 0;

	fake_init(&fake, 1024, 1000);
	for (int i = 0; i < 64; i++)
		fake_record(&fake, fake_data(&fake), 3, 16);
	assert_false(fake.full);
	pm_ring_refresh(&fake.ring);
	while (pm_ring_peek(&fake.ring, &header, NULL) == 1) {
		pm_ring_consume(&fake.ring);
		n++;
	}
	assert_int_equal(n, 64);
	fake_release(&fake);
}

static void test_wrong_sizes(void **state)
{
	static const uint16_t sizes[] = { 0, 4, 7, 9, 12, 40, 4096, 65528, 65535 };

	for (size_t i = 0; i < PM_ARRAY_LEN(sizes); i++) {
		const struct perf_event_header *header = (const void *)&sizes;
		struct pm_error err = { 0 };
		struct fake fake;

		fake_init(&fake, 4096, 4088); /* the bad header is the last word */
		fake_record(&fake, fake_data(&fake), 1, 32);
		((struct perf_event_header *)(void *)(fake.ring.data + 4088))->size =
			sizes[i];
		pm_ring_refresh(&fake.ring);
		for (int again = 0; again < 2; again++)
			assert_int_equal(pm_ring_peek(&fake.ring, &header, &err),
					 -EBADMSG);
		assert_ptr_equal(header, &sizes);
		assert_int_equal(err.code, -EBADMSG);
		fake_release(&fake);
	}
}

static void test_wrong_heads(void **state)
{
	/* More than the ring holds; behind the tail; less than a header; a crooked tail. */
	static const uint64_t positions[][2] = {
		{ 0, 264 }, { 0, UINT64_MAX }, { 512, 256 }, { 0, 4 }, { 4, 12 },
	};

	for (size_t i = 0; i < PM_ARRAY_LEN(positions); i++) {
		const struct perf_event_header *header;
		struct fake fake;

		fake_init(&fake, 256, 0);
		fake.ring.tail = positions[i][0];
		fake.page.data_head = positions[i][1];
		pm_ring_refresh(&fake.ring);
		assert_int_equal(pm_ring_peek(&fake.ring, &header, NULL), -EBADMSG);
		fake_release(&fake);
	}
}

static void test_map_refuses_odd_sizes(void **state)
{
	struct pm_error err = { 0 };
	struct pm_ring ring = { 0 };

	assert_int_equal(pm_ring_map(&ring, -1, 0, &err), -EINVAL);
	assert_int_equal(pm_ring_map(&ring, -1, 3, &err), -EINVAL);
	assert_int_equal(pm_ring_map(&ring, -1, (size_t)1 << 63, &err), -EINVAL);
	assert_int_equal(pm_ring_map(&ring, -1, 1, &err), -EBADF);
	assert_null(ring.base);
}

/* ---- merge ---------------------------------------------------------------------------------- */

enum {
	ID = 42,
	CPUS = 5,
	RING = 4096,
};

struct fakes {
	struct fake cpu[CPUS];
	uint8_t *data[CPUS];
	struct pm_merge merge;
	struct pm_event_ids ids;
};

static void fakes_init(struct fakes *fakes)
{
	memset(fakes, 0, sizeof(*fakes));
	assert_int_equal(pm_event_ids_add(&fakes->ids, ID, 0), 0);
	fakes->merge.layout = pm_attr_layout(&(struct pm_attr_shape){ 0 });
	fakes->merge.layout.ids = &fakes->ids;
	for (uint32_t i = 0; i < CPUS; i++) {
		fake_init(&fakes->cpu[i], RING, 64 * i);
		fakes->data[i] = fakes->cpu[i].ring.data;
		assert_int_equal(pm_merge_add(&fakes->merge, &fakes->cpu[i].ring, 10 + i),
				 0);
		assert_null(fakes->cpu[i].ring.data);
	}
}

static void fakes_release(struct fakes *fakes)
{
	pm_merge_release(&fakes->merge);
	pm_event_ids_release(&fakes->ids);
	for (size_t i = 0; i < CPUS; i++)
		free(fakes->data[i]);
}

/* A sample whose ip repeats the time, so that a torn one is seen. */
static void write_sample(struct fakes *fakes, uint32_t cpu, uint64_t time)
{
	static struct record_builder build;
	struct perf_event_header *header;

	build.len = 0;
	begin_record(&build, PERF_RECORD_SAMPLE, 0);
	put_u64(&build, ID);
	put_u64(&build, time);
	put_u32s(&build, 1, 1);
	put_u64(&build, time);
	put_u32s(&build, cpu, 0);
	put_u64(&build, 1);
	header = end_record(&build);
	fake_write(&fakes->cpu[cpu], fakes->data[cpu], header, header->size);
}

static void write_comm(struct fakes *fakes, uint32_t cpu, uint64_t time)
{
	static struct record_builder build;
	struct perf_event_header *header;

	build.len = 0;
	begin_record(&build, PERF_RECORD_COMM, 0);
	put_u32s(&build, 1, 1);
	put_text(&build, "name");
	header = end_record_with_id(&build, 1, 1, time, cpu, ID);
	fake_write(&fakes->cpu[cpu], fakes->data[cpu], header, header->size);
}

static uint64_t next_time(struct fakes *fakes)
{
	struct pm_record record;
	struct pm_error err = { 0 };
	int r = pm_merge_next(&fakes->merge, &record, &err);

	if (r < 0)
		fail_msg("%s", err.text);
	assert_int_equal(r, 1);
	if (record.type == PERF_RECORD_SAMPLE)
		assert_int_equal(record.sample.ip, record.time);
	return record.time;
}

static void expect_end(struct fakes *fakes)
{
	struct pm_record record;

	assert_int_equal(pm_merge_next(&fakes->merge, &record, NULL), 0);
	assert_int_equal(pm_merge_next(&fakes->merge, &record, NULL), 0);
}

static void test_merge_by_time(void **state)
{
	static struct fakes fakes;
	uint64_t last = 0, random = 12345, written = 0, given = 0;
	uint64_t clock[CPUS] = { 0 };

	fakes_init(&fakes);
	/* Many rounds around the rings; each CPU's times rise by random steps. */
	for (int round = 0; round < 400; round++) {
		for (int i = 0; i < 60; i++) {
			uint32_t cpu;

			random = random * 6364136223846793005u + 1442695040888963407u;
			cpu = (uint32_t)(random >> 33) % CPUS;
			clock[cpu] += (random >> 40) % 100;
			if (clock[cpu] <= last)
				clock[cpu] = last + 1;
			if (random >> 60 == 0)
				write_comm(&fakes, cpu, clock[cpu]);
			else
				write_sample(&fakes, cpu, clock[cpu]);
			written++;
		}
		pm_merge_begin(&fakes.merge, UINT64_MAX);
		for (int i = 0; i < 60; i++) {
			uint64_t time = next_time(&fakes);

			assert_true(time >= last);
			last = time;
			given++;
		}
		expect_end(&fakes);
		for (size_t i = 0; i < CPUS; i++) {
			assert_false(fakes.cpu[i].full);
			assert_int_equal(fakes.cpu[i].page.data_tail, fakes.cpu[i].head);
		}
	}
	assert_int_equal(given, written);
	fakes_release(&fakes);
}

static void test_merge_equal_times_go_by_cpu(void **state)
{
	static struct fakes fakes;
	struct pm_record record;

	fakes_init(&fakes);
	for (uint32_t cpu = CPUS; cpu-- > 0;)
		write_sample(&fakes, cpu, 500);
	pm_merge_begin(&fakes.merge, UINT64_MAX);
	for (uint32_t cpu = 0; cpu < CPUS; cpu++) {
		assert_int_equal(pm_merge_next(&fakes.merge, &record, NULL), 1);
		assert_int_equal(record.cpu, cpu);
	}
	expect_end(&fakes);
	fakes_release(&fakes);
}

static void test_merge_waits_for_the_next_round(void **state)
{
	static struct fakes fakes;

	fakes_init(&fakes);
	write_sample(&fakes, 0, 100);
	write_sample(&fakes, 0, 300);
	write_sample(&fakes, 1, 200);
	write_sample(&fakes, 1, 201);
	pm_merge_begin(&fakes.merge, 200);
	write_sample(&fakes, 2, 50); /* after the heads were read: not of this round */
	assert_int_equal(next_time(&fakes), 100);
	assert_int_equal(next_time(&fakes), 200);
	expect_end(&fakes);
	pm_merge_begin(&fakes.merge, 1000);
	assert_int_equal(next_time(&fakes), 50);
	assert_int_equal(next_time(&fakes), 201);
	assert_int_equal(next_time(&fakes), 300);
	expect_end(&fakes);
	fakes_release(&fakes);
}

/* An NMI wrote 105 before 100 could be written: 100 keeps its true time, comes right behind
 * it, and holds nothing up. */
static void test_merge_small_disorder(void **state)
{
	static struct fakes fakes;

	fakes_init(&fakes);
	write_sample(&fakes, 0, 105);
	write_sample(&fakes, 0, 100);
	write_sample(&fakes, 0, 110);
	write_sample(&fakes, 1, 102);
	write_sample(&fakes, 1, 107);
	pm_merge_begin(&fakes.merge, 120);
	assert_int_equal(next_time(&fakes), 102);
	assert_int_equal(next_time(&fakes), 105);
	assert_int_equal(next_time(&fakes), 100);
	assert_int_equal(next_time(&fakes), 107);
	assert_int_equal(next_time(&fakes), 110);
	expect_end(&fakes);
	fakes_release(&fakes);
}

/* While the caller holds a record the kernel must not get its room, but it gets what lies
 * before, by quarters. */
static void test_merge_publishes_on_the_way(void **state)
{
	static struct fakes fakes;
	struct pm_record record;
	uint64_t start;

	fakes_init(&fakes);
	start = fakes.cpu[0].head;
	for (int i = 0; i < 70; i++)
		write_sample(&fakes, 0, (uint64_t)i + 1); /* 56 bytes each */
	pm_merge_begin(&fakes.merge, UINT64_MAX);
	for (uint64_t i = 0; i < 70; i++) {
		uint64_t held = start + 56 * i, tail;

		assert_int_equal(pm_merge_next(&fakes.merge, &record, NULL), 1);
		tail = fakes.cpu[0].page.data_tail;
		assert_true(tail <= held);
		assert_true(held - tail < RING / 4);
	}
	expect_end(&fakes);
	assert_int_equal(fakes.cpu[0].page.data_tail, fakes.cpu[0].head);
	fakes_release(&fakes);
}

/* Of what is held no room goes back, not at the end of the round either. */
static void test_merge_hold(void **state)
{
	static struct fakes fakes;
	struct pm_record record;
	uint64_t start;

	fakes_init(&fakes);
	for (uint64_t i = 1; i <= 70; i++)
		write_sample(&fakes, 0, i);
	start = fakes.cpu[0].page.data_tail;
	pm_merge_begin(&fakes.merge, UINT64_MAX);
	for (uint64_t i = 1; i <= 30; i++)
		assert_int_equal(pm_merge_next(&fakes.merge, &record, NULL), 1);
	assert_true(fakes.cpu[0].page.data_tail > start);
	start = fakes.cpu[0].page.data_tail;
	pm_merge_hold(&fakes.merge, true);
	for (uint64_t i = 31; i <= 70; i++) {
		assert_int_equal(pm_merge_next(&fakes.merge, &record, NULL), 1);
		assert_int_equal(record.time, i);
		assert_int_equal(fakes.cpu[0].page.data_tail, start);
	}
	assert_int_equal(pm_merge_next(&fakes.merge, &record, NULL), 0);
	assert_int_equal(fakes.cpu[0].page.data_tail, start);
	pm_merge_hold(&fakes.merge, false);
	assert_int_equal(fakes.cpu[0].page.data_tail, fakes.cpu[0].head);
	fakes_release(&fakes);
}

/* A new round may begin while a record is held. */
static void test_merge_begin_in_the_middle(void **state)
{
	static struct fakes fakes;

	fakes_init(&fakes);
	for (uint64_t i = 1; i <= 6; i++)
		write_sample(&fakes, (uint32_t)i % 2, i);
	for (uint64_t i = 1; i <= 6; i++) {
		pm_merge_begin(&fakes.merge, UINT64_MAX);
		assert_int_equal(next_time(&fakes), i);
	}
	expect_end(&fakes);
	fakes_release(&fakes);
}

static void test_merge_corrupt_ring(void **state)
{
	static struct fakes fakes;
	struct pm_error err = { 0 };
	struct pm_record record;
	uint64_t head;

	fakes_init(&fakes);
	write_sample(&fakes, 0, 10);
	write_sample(&fakes, 2, 20);
	head = fakes.cpu[2].head;
	write_sample(&fakes, 2, 30);
	write_sample(&fakes, 0, 40);
	((struct perf_event_header *)(void *)(fakes.data[2] + head % RING))->size = 0;
	pm_merge_begin(&fakes.merge, UINT64_MAX);
	assert_int_equal(next_time(&fakes), 10);
	assert_int_equal(next_time(&fakes), 20);
	assert_int_equal(pm_merge_next(&fakes.merge, &record, &err), -EBADMSG);
	assert_non_null(strstr(err.text, "CPU 12"));
	/* Told once; the others go on, in later rounds, too. */
	assert_int_equal(next_time(&fakes), 40);
	expect_end(&fakes);
	write_sample(&fakes, 1, 50);
	pm_merge_begin(&fakes.merge, UINT64_MAX);
	assert_int_equal(next_time(&fakes), 50);
	expect_end(&fakes);
	fakes_release(&fakes);
}

static void test_merge_unreadable_record(void **state)
{
	static struct fakes fakes;
	struct pm_error err = { 0 };
	struct pm_record record;

	fakes_init(&fakes);
	write_sample(&fakes, 1, 10);
	fake_record(&fakes.cpu[1], fakes.data[1], PERF_RECORD_SAMPLE, 16);
	write_sample(&fakes, 1, 30);
	pm_merge_begin(&fakes.merge, UINT64_MAX);
	assert_int_equal(next_time(&fakes), 10);
	assert_int_equal(pm_merge_next(&fakes.merge, &record, &err), -EBADMSG);
	assert_non_null(strstr(err.text, "CPU 11"));
	assert_int_equal(next_time(&fakes), 30);
	expect_end(&fakes);
	fakes_release(&fakes);
}

/* ---- rings that keep the newest --------------------------------------------------------- */

/* As __perf_output_begin() with write_backward: downwards, over whatever is there. */
static void write_backward(struct fake *fake, uint32_t type, size_t size)
{
	static struct record_builder build;
	const uint8_t *bytes;

	build.len = 0;
	begin_record(&build, type, 0);
	for (; build.len < size; build.len++)
		build.bytes[build.len] = (uint8_t)(type + build.len);
	bytes = (const void *)end_record(&build);
	fake->head -= size;
	for (size_t i = 0; i < size; i++)
		fake->ring.data[(fake->head + i) % fake->bytes] = bytes[i];
	fake->page.data_head = fake->head;
}

static void expect_records(struct fake *fake, uint32_t first, uint32_t end)
{
	const struct perf_event_header *header;

	for (uint32_t type = first; type < end; type++) {
		assert_int_equal(pm_ring_peek(&fake->ring, &header, NULL), 1);
		assert_int_equal(header->type, type);
		for (size_t i = 8; i < header->size; i++)
			assert_int_equal(((const uint8_t *)header)[i],
					 (uint8_t)(type + i));
		pm_ring_consume(&fake->ring);
		pm_ring_publish(&fake->ring);
	}
	assert_int_equal(pm_ring_peek(&fake->ring, &header, NULL), 0);
}

/* Records of all sizes, so that each place of the ring's end is met. Of n records those are
 * left that fit, oldest first. */
static void test_backward(void **state)
{
	for (uint32_t n = 0; n < 60; n++) {
		struct fake fake;
		uint32_t first = n;
		size_t bytes = 0;

		fake_init(&fake, 256, 0);
		fake.ring.backward = true;
		for (uint32_t i = 0; i < n; i++)
			write_backward(&fake, i, 8 + i * 24 % 64);
		while (first > 0 && bytes + 8 + (first - 1) * 24 % 64 <= 256)
			bytes += 8 + --first * 24 % 64;
		pm_ring_refresh(&fake.ring);
		expect_records(&fake, 0, 0); /* not while it runs */
		assert_int_equal(pm_ring_stop(&fake.ring, true, NULL), 0);
		pm_ring_refresh(&fake.ring);
		expect_records(&fake, first, n);
		assert_int_equal(fake.page.data_tail, 0); /* its memory is read-only */
		assert_int_equal(pm_ring_stop(&fake.ring, false, NULL), 0);
		/* Then only what came since. */
		assert_int_equal(pm_ring_stop(&fake.ring, true, NULL), 0);
		expect_records(&fake, 0, 0);
		assert_int_equal(pm_ring_stop(&fake.ring, false, NULL), 0);
		write_backward(&fake, 200, 64);
		write_backward(&fake, 201, 32);
		assert_int_equal(pm_ring_stop(&fake.ring, true, NULL), 0);
		expect_records(&fake, 200, 202);
		fake_release(&fake);
	}
}

static void test_backward_garbage(void **state)
{
	static const uint16_t sizes[] = { 0, 4, 12, 72 };

	for (size_t i = 0; i < PM_ARRAY_LEN(sizes); i++) {
		struct perf_event_header header = { .size = sizes[i] };
		struct fake fake;

		fake_init(&fake, 256, 0);
		fake.ring.backward = true;
		write_backward(&fake, 1, 16);
		write_backward(&fake, 2, 16);
		memcpy(fake.ring.data + (fake.head & 255), &header, sizeof(header));
		assert_int_equal(pm_ring_stop(&fake.ring, true, NULL), -EBADMSG);
		expect_records(&fake, 0, 0);
		fake_release(&fake);
	}
}

/* Two of them beside one that goes forward: one order of time. */
static void test_backward_is_merged(void **state)
{
	struct pm_merge merge = { .layout =
					  pm_attr_layout(&(struct pm_attr_shape){ 0 }) };
	static struct record_builder build;
	struct fake fakes[2];
	struct pm_record record;
	uint8_t *memory[2];

	for (uint32_t k = 0; k < 2; k++) {
		fake_init(&fakes[k], 256, 0);
		fakes[k].ring.backward = true;
		memory[k] = fakes[k].ring.data;
		for (uint64_t i = 0; i < 3; i++) {
			const uint8_t *bytes;

			build.len = 0;
			begin_record(&build, PERF_RECORD_THROTTLE, 0);
			bytes = (const void *)end_record_with_id(&build, 1, 1, 10 * i + k,
								 k, 0);
			fakes[k].head -= build.len;
			for (size_t b = 0; b < build.len; b++)
				memory[k][(fakes[k].head + b) % 256] = bytes[b];
			fakes[k].page.data_head = fakes[k].head;
		}
		assert_int_equal(pm_merge_add(&merge, &fakes[k].ring, k), 0);
	}
	pm_merge_begin(&merge, UINT64_MAX);
	assert_int_equal(pm_merge_next(&merge, &record, NULL), 0);
	assert_int_equal(pm_merge_stop_backward(&merge, true, NULL), 0);
	pm_merge_begin(&merge, UINT64_MAX);
	for (uint64_t i = 0; i < 6; i++) {
		assert_int_equal(pm_merge_next(&merge, &record, NULL), 1);
		assert_int_equal(record.time, i / 2 * 10 + i % 2);
	}
	assert_int_equal(pm_merge_next(&merge, &record, NULL), 0);
	assert_int_equal(pm_merge_stop_backward(&merge, false, NULL), 0);
	pm_merge_release(&merge);
	free(memory[0]);
	free(memory[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_empty),
		cmocka_unit_test(test_wrap_at_each_offset),
		cmocka_unit_test(test_full_ring),
		cmocka_unit_test(test_wrong_sizes),
		cmocka_unit_test(test_wrong_heads),
		cmocka_unit_test(test_map_refuses_odd_sizes),
		cmocka_unit_test(test_merge_by_time),
		cmocka_unit_test(test_merge_equal_times_go_by_cpu),
		cmocka_unit_test(test_merge_waits_for_the_next_round),
		cmocka_unit_test(test_merge_small_disorder),
		cmocka_unit_test(test_merge_publishes_on_the_way),
		cmocka_unit_test(test_merge_hold),
		cmocka_unit_test(test_merge_begin_in_the_middle),
		cmocka_unit_test(test_merge_corrupt_ring),
		cmocka_unit_test(test_merge_unreadable_record),
		cmocka_unit_test(test_backward),
		cmocka_unit_test(test_backward_garbage),
		cmocka_unit_test(test_backward_is_merged),
	};

	return cmocka_run_group_tests_name("ring", tests, NULL, NULL);
}
