/* SPDX-License-Identifier: MIT */
#include "proc-internal.h"

#include <string.h>

/* Returns the index of the first mapping that ends above @address; space->maps.len if
 * there is none. */
static size_t first_ending_above(const struct pm_space *space, uint64_t address)
{
	size_t low = 0, high = space->maps.len;

	/* Loaders map upward, and the records of a process come in that order. */
	if (high == 0 || space->maps.data[high - 1].end <= address)
		return high;
	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (space->maps.data[middle].end > address)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

const struct pm_mapping *pm_space_find(const struct pm_space *space, uint64_t address)
{
	size_t at = first_ending_above(space, address);

	if (at == space->maps.len || space->maps.data[at].start > address)
		return NULL;
	return &space->maps.data[at];
}

static bool same_mapping(const struct pm_mapping *a, const struct pm_mapping *b)
{
	return a->start == b->start && a->end == b->end && a->pgoff == b->pgoff &&
	       a->module == b->module;
}

int pm_space_replace(struct pm_space *space, uint64_t start, uint64_t end,
		     const struct pm_mapping *mapping)
{
	/* maps[from, to) overlap [start, end); the parts outside of it and the new
	 * mapping stay. */
	size_t from = first_ending_above(space, start), to = from, put = 0, len;
	struct pm_mapping parts[3];

	while (to < space->maps.len && space->maps.data[to].start < end)
		to++;
	if (from == to && !mapping)
		return 0;
	if (to - from == 1 && mapping && same_mapping(&space->maps.data[from], mapping))
		return 0;
	if (from < to && space->maps.data[from].start < start) {
		parts[put] = space->maps.data[from];
		parts[put++].end = start;
	}
	if (mapping)
		parts[put++] = *mapping;
	if (from < to && space->maps.data[to - 1].end > end) {
		parts[put] = space->maps.data[to - 1];
		parts[put].pgoff += end - parts[put].start;
		parts[put++].start = end;
	}
	len = space->maps.len - (to - from) + put;
	if (len > PM_SPACE_MAPS_MAX) {
		/* Drop all other mappings: those are then unknown, and the newest one is
		 * the most likely to still exist. */
		pm_vec_clear(&space->maps);
		from = to = 0;
		put = 0;
		if (mapping)
			parts[put++] = *mapping;
		len = put;
	}
	if (pm_vec_reserve(&space->maps, len) < 0)
		return -ENOMEM;
	memmove(space->maps.data + from + put, space->maps.data + to,
		(space->maps.len - to) * sizeof(*space->maps.data));
	memcpy(space->maps.data + from, parts, put * sizeof(*parts));
	space->maps.len = len;
	return 1;
}
