/* SPDX-License-Identifier: MIT */
/* Bytes of a module, read when they are needed. */
#include "unwind-parts.h"

#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>

enum {
	PIECE_BYTES = 1 << 16,
	REGION_BYTES_MAX = 1 << 28, /* the largest one seen has 60 MB */
};
/* The limit of all regions together: a target can map any number of files, whose holes
 * cost it nothing. All CFI of clang and rustc together has 100 MB. */
#define RESIDENT_BYTES_MAX ((size_t)1 << 29)
/* Prevents one region from using up the whole limit. */
#define REGION_RESIDENT_BYTES_MAX (RESIDENT_BYTES_MAX / 8)

static atomic_size_t resident_bytes;

bool pm_unw_budget_take(size_t len)
{
	if (len <= RESIDENT_BYTES_MAX &&
	    atomic_fetch_add(&resident_bytes, len) <= RESIDENT_BYTES_MAX - len)
		return true;
	if (len <= RESIDENT_BYTES_MAX)
		atomic_fetch_sub(&resident_bytes, len);
	return false;
}

void pm_unw_budget_give(size_t len)
{
	atomic_fetch_sub(&resident_bytes, len);
}

bool pm_unw_budget_is_short(void)
{
	return atomic_load(&resident_bytes) > RESIDENT_BYTES_MAX - PIECE_BYTES;
}

bool pm_unw_read_fully(int fd, void *to, size_t len, uint64_t offset)
{
	uint8_t *at = to;

	while (len > 0) {
		ssize_t n = pread(fd, at, len, (off_t)offset);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		at += n;
		offset += (uint64_t)n;
		len -= (size_t)n;
	}
	return true;
}

static bool region_read_piece(struct pm_unw_region *region, size_t piece)
{
	size_t from = piece * PIECE_BYTES;
	size_t len = PM_MIN(region->len - from, PIECE_BYTES);

	if (region->missing[piece / 64] >> piece % 64 & 1 ||
	    region->budget + len > REGION_RESIDENT_BYTES_MAX || !pm_unw_budget_take(len))
		return false;
	if (!pm_unw_read_fully(region->fd, region->data + from, len,
			       region->file_offset + from)) {
		pm_unw_budget_give(len);
		madvise(region->data + from, len, MADV_DONTNEED);
		region->missing[piece / 64] |= (uint64_t)1 << piece % 64;
		return false;
	}
	region->budget += len;
	region->pieces[piece / 64] |= (uint64_t)1 << piece % 64;
	return true;
}

const uint8_t *pm_unw_region_need(struct pm_unw_region *region, size_t offset, size_t len)
{
	if (!region->data || offset > region->len || len > region->len - offset)
		return NULL;
	if (region->pieces && len > 0) {
		size_t last = (offset + len - 1) / PIECE_BYTES;

		for (size_t i = offset / PIECE_BYTES; i <= last; i++)
			if (!(region->pieces[i / 64] >> i % 64 & 1) &&
			    !region_read_piece(region, i))
				return NULL;
	}
	return region->data + offset;
}

void pm_unw_region_open(struct pm_unw_module *module, struct pm_unw_region *region,
			uint64_t svma, uint64_t offset, uint64_t len)
{
	size_t words = (len + PIECE_BYTES - 1) / PIECE_BYTES / 64 + 1;
	void *data;

	if (len == 0 || len > REGION_BYTES_MAX)
		return;
	*region = (struct pm_unw_region){ .svma = svma, .fd = module->fd };
	region->file_offset = offset;
	if (module->image) {
		if (offset > module->image_len || len > module->image_len - offset)
			return;
		region->data = module->image + offset;
		region->len = len;
		return;
	}
	region->pieces = calloc(2 * words, sizeof(*region->pieces));
	data = mmap(NULL, len, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (!region->pieces || data == MAP_FAILED) {
		free(region->pieces);
		region->pieces = NULL;
		if (data != MAP_FAILED)
			munmap(data, len);
		return;
	}
	/* A huge page would use 2 MiB for a piece, while the limit counts pieces. */
	(void)madvise(data, len, MADV_NOHUGEPAGE);
	region->missing = region->pieces + words;
	region->data = data;
	region->mapped = true;
	region->len = len;
}

bool pm_unw_region_copy(struct pm_unw_region *region, uint64_t svma, const void *bytes,
			size_t len)
{
	uint8_t *data;

	if (len == 0 || len > REGION_RESIDENT_BYTES_MAX || !pm_unw_budget_take(len))
		return false;
	data = malloc(len);
	if (!data) {
		pm_unw_budget_give(len);
		return false;
	}
	memcpy(data, bytes, len);
	*region = (struct pm_unw_region){
		.svma = svma, .len = len, .data = data, .owned = true, .budget = len
	};
	return true;
}

void pm_unw_region_forget(struct pm_unw_region *region)
{
	if (!region->pieces)
		return;
	madvise(region->data, region->len, MADV_DONTNEED);
	memset(region->pieces, 0,
	       (size_t)((char *)region->missing - (char *)region->pieces));
	pm_unw_budget_give(region->budget);
	region->budget = 0;
}

void pm_unw_region_release(struct pm_unw_region *region)
{
	if (region->mapped)
		munmap(region->data, region->len);
	if (region->owned)
		free(region->data);
	free(region->pieces);
	pm_unw_budget_give(region->budget);
	*region = (struct pm_unw_region){ 0 };
}
