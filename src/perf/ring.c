/* SPDX-License-Identifier: MIT */
#include "pm/perf.h"

#include <linux/perf_event.h>
#include <string.h>
#include <sys/mman.h>

enum {
	RECORD_BYTES_MAX = 65536, /* header.size is a u16 */
};

/*
 * The kernel writes records, then data_head; reading data_head with acquire order makes the
 * records behind it visible. We read records, then write data_tail; release order keeps our
 * reads before the kernel's reuse of the room (linux/perf_event.h, at @data_head).
 */
static inline uint64_t load_data_head(const struct perf_event_mmap_page *page)
{
	return __atomic_load_n(&page->data_head, __ATOMIC_ACQUIRE);
}

static inline void store_data_tail(struct perf_event_mmap_page *page, uint64_t tail)
{
	__atomic_store_n(&page->data_tail, tail, __ATOMIC_RELEASE);
}

int pm_ring_map(struct pm_ring *ring, int fd, size_t data_pages, struct pm_error *err)
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
	base = mmap(NULL, map_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (base == MAP_FAILED) {
		int code = -errno;

		return pm_error_set(err, code, "cannot map a ring of %zu KiB: %s",
				    data_pages * page_bytes / 1024, strerror(-code));
	}
	*ring = (struct pm_ring){
		.base = base,
		.map_bytes = map_bytes,
		.data = (uint8_t *)base + page_bytes,
		.data_bytes = data_pages * page_bytes,
	};
	return 0;
}

void pm_ring_release(struct pm_ring *ring)
{
	if (ring->map_bytes > 0)
		munmap(ring->base, ring->map_bytes);
	free(ring->scratch);
	*ring = (struct pm_ring){ 0 };
}

void pm_ring_refresh(struct pm_ring *ring)
{
	ring->head = load_data_head(ring->base);
}

/* A record that wraps, made whole. @size bytes are known to be there. */
static int unwrap(struct pm_ring *ring, size_t offset, size_t size, struct pm_error *err)
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

int pm_ring_peek(struct pm_ring *ring, const struct perf_event_header **ret,
		 struct pm_error *err)
{
	uint64_t available = ring->head - ring->tail;
	size_t offset = ring->tail & (ring->data_bytes - 1);
	const struct perf_event_header *header;
	size_t size;
	int r;

	if (available == 0)
		return 0;
	/* Records are multiples of 8 and so is the ring: a header itself never wraps. */
	if (available > ring->data_bytes || available < sizeof(*header) ||
	    ring->tail % 8 != 0)
		return pm_error_set(
			err, -EBADMSG,
			"head %llu and tail %llu do not fit a ring of %zu bytes",
			(unsigned long long)ring->head, (unsigned long long)ring->tail,
			ring->data_bytes);
	header = (const void *)(ring->data + offset);
	size = header->size;
	if (size < sizeof(*header) || size % 8 != 0 || size > available)
		return pm_error_set(err, -EBADMSG,
				    "a record of %zu bytes where %llu are there", size,
				    (unsigned long long)available);
	if (size > ring->data_bytes - offset) {
		r = unwrap(ring, offset, size, err);
		if (r < 0)
			return r;
		header = (const void *)ring->scratch;
	}
	*ret = header;
	return 1;
}

void pm_ring_consume(struct pm_ring *ring)
{
	const struct perf_event_header *header =
		(const void *)(ring->data + (ring->tail & (ring->data_bytes - 1)));

	ring->tail += header->size;
}

void pm_ring_publish(struct pm_ring *ring)
{
	store_data_tail(ring->base, ring->tail);
}
