/* SPDX-License-Identifier: MIT */
/* Tables of the FDEs of a region, within a limit for all of them together. */
#include "unwind-parts.h"

enum {
	/* The entries of one section; the largest one seen has 1.2 million. */
	PLACES_MAX = 1 << 21,
	PLACES_FIRST = 1 << 10,
};
/* For all tables together: a quarter of the limit for regions and tables. */
#define PLACES_BYTES_MAX ((size_t)1 << 27)

static atomic_size_t places_bytes;

static bool take_budget_for_places(size_t bytes)
{
	if (!pm_unw_budget_take(bytes))
		return false;
	if (atomic_fetch_add(&places_bytes, bytes) <= PLACES_BYTES_MAX - bytes)
		return true;
	atomic_fetch_sub(&places_bytes, bytes);
	pm_unw_budget_give(bytes);
	return false;
}

static void give_back_budget_for_places(size_t bytes)
{
	atomic_fetch_sub(&places_bytes, bytes);
	pm_unw_budget_give(bytes);
}

void pm_unw_fde_table_release(struct pm_unw_fde_table *table)
{
	give_back_budget_for_places(table->places.cap * sizeof(*table->places.data));
	pm_vec_release(&table->places);
	*table = (struct pm_unw_fde_table){ 0 };
}

bool pm_unw_fde_table_resize(struct pm_unw_fde_table *table, size_t cap)
{
	size_t size = sizeof(*table->places.data), had = table->places.cap;
	struct pm_unw_fde_place *data;

	if (cap > PLACES_MAX ||
	    (cap > had && !take_budget_for_places((cap - had) * size)))
		return false;
	data = reallocarray(table->places.data, cap, size);
	if (data)
		table->places.data = data;
	if (data)
		table->places.cap = cap;
	if (data && cap < had)
		give_back_budget_for_places((had - cap) * size);
	else if (!data && cap > had)
		give_back_budget_for_places((cap - had) * size);
	return data;
}

bool pm_unw_fde_table_push(struct pm_unw_fde_table *table, const struct pm_unw_fde *fde,
			   size_t offset)
{
	size_t cap = table->places.cap;
	uint64_t len = fde->end - fde->start;

	if (table->places.len == cap &&
	    !pm_unw_fde_table_resize(table, cap ? 2 * cap : PLACES_FIRST))
		return false;
	table->places.data[table->places.len++] = (struct pm_unw_fde_place){
		.start = fde->start,
		.offset = (uint32_t)offset,
		.len = (uint32_t)PM_MIN(len, UINT32_MAX),
	};
	return true;
}
