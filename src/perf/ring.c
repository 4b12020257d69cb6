/* SPDX-License-Identifier: MIT */
#include "pm/perf.h"

#include <linux/perf_event.h>
#include <string.h>
#include <sys/mman.h>

enum {
	RECORD_BYTES_MAX = 65536, /* header.size is a u16 */
};

/*
 * The kernel writes records, then data_head. Reading data_head with acquire order makes
 * the records before it visible. We read records, then write data_tail. Release order
 * keeps our reads before the kernel's reuse of the space (linux/perf_event.h, at
 * @data_head).
 */
static inline uint64_t load_data_head(const struct perf_event_mmap_page *page)
{
	return __atomic_load_n(&page->data_head, __ATOMIC_ACQUIRE);
}

static inline void store_data_tail(struct perf_event_mmap_page *page, uint64_t tail)
{
	__atomic_store_n(&page->data_tail, tail, __ATOMIC_RELEASE);
}

static int map_ring_pages(struct pm_ring *ring, int fd, size_t data_pages, int prot,
			  struct pm_error *err)
{
	size_t page_bytes = (size_t)sysconf(_SC_PAGESIZE);
	size_t map_bytes;
	void *base;

	if (data_pages == 0 || (data_pages & (data_pages - 1)) != 0 ||
	    data_pages > SIZE_MAX / 2 / page_bytes)
		return pm_error_set(
			err, -EINVAL,
			"a ring of %zu pages: the number must be a power of two",
			data_pages);
	map_bytes = (data_pages + 1) * page_bytes;
	base = mmap(NULL, map_bytes, prot, MAP_SHARED, fd, 0);
	if (base == MAP_FAILED) {
		int ret = -errno;

		return pm_error_set(err, ret, "cannot map a ring of %zu KiB: %s",
				    data_pages * page_bytes / 1024, strerror(-ret));
	}
	*ring = (struct pm_ring){
		.base = base,
		.map_bytes = map_bytes,
		.data = (uint8_t *)base + page_bytes,
		.data_bytes = data_pages * page_bytes,
	};
	return 0;
}

int pm_ring_map(struct pm_ring *ring, int fd, size_t data_pages, struct pm_error *err)
{
	return map_ring_pages(ring, fd, data_pages, PROT_READ | PROT_WRITE, err);
}

/* Without PROT_WRITE, the kernel ignores data_tail and overwrites old records
 * (perf_mmap()). */
int pm_ring_map_backward(struct pm_ring *ring, int fd, size_t data_pages,
			 struct pm_error *err)
{
	int ret = map_ring_pages(ring, fd, data_pages, PROT_READ, err);

	if (ret == 0)
		ring->backward = true;
	return ret;
}

void pm_ring_release(struct pm_ring *ring)
{
	if (ring->map_bytes > 0)
		munmap(ring->base, ring->map_bytes);
	free(ring->scratch);
	pm_vec_release(&ring->starts);
	*ring = (struct pm_ring){ 0 };
}

void pm_ring_refresh(struct pm_ring *ring)
{
	if (!ring->backward)
		ring->head = load_data_head(ring->base);
}

static const struct perf_event_header *ring_header_at(const struct pm_ring *ring,
						      uint64_t at)
{
	return (const void *)(ring->data + (at & (ring->data_bytes - 1)));
}

/*
 * The newest record is at `head`, followed by the older ones. The chain ends where the
 * last reading started or, if that has been overwritten, with the last complete record.
 */
static int ring_find_starts(struct pm_ring *ring, struct pm_error *err)
{
	uint64_t there = ring->tail - ring->head, at = 0;
	bool cut = there > ring->data_bytes;
	size_t size = sizeof(struct perf_event_header);

	pm_vec_clear(&ring->starts);
	if (ring->head % 8 != 0)
		return pm_error_set(err, -EBADMSG, "head %llu of a backward ring",
				    (unsigned long long)ring->head);
	if (cut)
		there = ring->data_bytes;
	for (; there - at >= sizeof(struct perf_event_header); at += size) {
		size = ring_header_at(ring, ring->head + at)->size;
		if (size < sizeof(struct perf_event_header) || size % 8 != 0)
			return pm_error_set(err, -EBADMSG,
					    "a record of %zu bytes in a backward ring",
					    size);
		if (size > there - at)
			break;
		if (pm_vec_push(&ring->starts, (uint32_t)at) < 0)
			return pm_error_set(err, -ENOMEM, "no memory for the records");
	}
	if (at < there && !cut)
		return pm_error_set(err, -EBADMSG,
				    "a record of %zu bytes where %llu are there", size,
				    (unsigned long long)(there - at));
	return 0;
}

int pm_ring_stop(struct pm_ring *ring, bool stop, struct pm_error *err)
{
	if (!ring->backward || ring->stopped == stop)
		return 0;
	ring->stopped = stop;
	if (!stop) {
		ring->tail = ring->head;
		pm_vec_clear(&ring->starts);
		return 0;
	}
	ring->head = load_data_head(ring->base);
	return ring_find_starts(ring, err);
}

/* Copies a record that wraps to `scratch`. @size bytes must be available. */
static int ring_unwrap_record(struct pm_ring *ring, size_t offset, size_t size,
			      struct pm_error *err)
{
	size_t first = ring->data_bytes - offset;

	if (!ring->scratch) {
		ring->scratch = malloc(RECORD_BYTES_MAX);
		if (!ring->scratch)
			return pm_error_set(err, -ENOMEM,
					    "no memory for a wrapped record");
	}
	memcpy(ring->scratch, ring->data + offset, first);
	memcpy(ring->scratch + first, ring->data, size - first);
	return 0;
}

static int ring_give_record(struct pm_ring *ring, uint64_t at,
			    const struct perf_event_header **out, struct pm_error *err)
{
	size_t offset = at & (ring->data_bytes - 1);
	const struct perf_event_header *header = ring_header_at(ring, at);

	if (header->size > ring->data_bytes - offset) {
		int ret = ring_unwrap_record(ring, offset, header->size, err);

		if (ret < 0)
			return ret;
		header = (const void *)ring->scratch;
	}
	*out = header;
	return 1;
}

int pm_ring_peek(struct pm_ring *ring, const struct perf_event_header **out,
		 struct pm_error *err)
{
	uint64_t available = ring->head - ring->tail;
	size_t size;

	if (ring->backward) {
		size_t left = ring->starts.len;

		if (left > 0)
			return ring_give_record(
				ring, ring->head + ring->starts.data[left - 1], out, err);
		return 0;
	}
	if (available == 0)
		return 0;
	/* The sizes of records and of the ring are multiples of 8, so a header never
	 * wraps. */
	if (available > ring->data_bytes || available < sizeof(**out) ||
	    ring->tail % 8 != 0)
		return pm_error_set(
			err, -EBADMSG,
			"head %llu and tail %llu do not fit a ring of %zu bytes",
			(unsigned long long)ring->head, (unsigned long long)ring->tail,
			ring->data_bytes);
	size = ring_header_at(ring, ring->tail)->size;
	if (size < sizeof(**out) || size % 8 != 0 || size > available)
		return pm_error_set(err, -EBADMSG,
				    "a record of %zu bytes where %llu are there", size,
				    (unsigned long long)available);
	return ring_give_record(ring, ring->tail, out, err);
}

void pm_ring_consume(struct pm_ring *ring)
{
	if (ring->backward)
		ring->starts.len--;
	else
		ring->tail += ring_header_at(ring, ring->tail)->size;
}

void pm_ring_publish(struct pm_ring *ring)
{
	if (!ring->backward)
		store_data_tail(ring->base, ring->tail);
}
