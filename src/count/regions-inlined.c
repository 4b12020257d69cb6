/* SPDX-License-Identifier: MIT */
/* Functions that were inlined: one region for each place, and one for the sum. */
#include "regions-internal.h"

#include <string.h>

static int region_set_source(struct pm_region *region,
			     const struct pm_probe_inlined *inlined)
{
	region->line = inlined->line;
	if (!inlined->file)
		return 0;
	region->file = strdup(inlined->file);
	if (!region->file)
		return -ENOMEM;
	return 0;
}

/* Whether control enters the last region at several places: the code between its pieces
 * does not belong to the function, which is left and entered again there. */
static bool is_parted(const struct pm_regions *regions)
{
	size_t in = 0;

	for (size_t i = regions->places.len; i > 0; i--) {
		const struct pm_place *place = &regions->places.data[i - 1];

		if (place->region != regions->list.len - 1)
			break;
		in += place->kind == PM_PLACE_IN;
	}
	return in > 1;
}

static bool mark_parted(struct pm_regions *regions, int32_t sum)
{
	bool parted = is_parted(regions);

	regions->list.data[regions->list.len - 1].parted = parted;
	if (parted && sum >= 0)
		regions->list.data[sum].parted = true;
	return parted;
}

static int note_parted_places(struct pm_finder *finder, uint32_t total, uint32_t parted)
{
	if (parted == 0)
		return 0;
	return pm_finder_note(
		finder,
		"mixed with other code at %u of %u place%s: there, calls are "
		"how often control came to a part of it",
		parted, total, pm_plural_s(total));
}

/* @parted is incremented if control enters at several parts of the place. */
static int add_inlined_place(struct pm_finder *finder, const struct pm_finder_file *file,
			     const struct pm_probe_inlined *inlined, int32_t sum,
			     uint32_t total, uint32_t *parted)
{
	pm_pieces pieces = { 0 };
	struct pm_region *region =
		pm_finder_add(finder, file, PM_STAT_INLINED, inlined->name);
	int ret;

	if (region)
		ret = region_set_source(region, inlined);
	else
		ret = finder->err->code;
	for (size_t i = 0; i < inlined->pieces.len && ret == 0; i++)
		ret = pm_vec_push(&pieces, inlined->pieces.data[i]);
	if (ret == 0) {
		region->sum = sum;
		region->places_total = total;
		ret = pm_finder_give_pieces(finder, file, &pieces);
		if (ret == 0)
			*parted += mark_parted(finder->ret, sum);
	} else if (ret == -ENOMEM) {
		pm_finder_no_memory(finder);
	}
	pm_vec_release(&pieces);
	return ret;
}

/* All places of one function. */
static int add_inlined_function(struct pm_finder *finder,
				const struct pm_finder_file *file,
				const struct pm_probe_inlined_list *inlined,
				const char *name)
{
	uint32_t total = 0, empty = 0, parted = 0;
	int32_t sum = -1;
	int ret = 0;

	for (size_t i = 0; i < inlined->list.len; i++) {
		if (strcmp(inlined->list.data[i].name, name) != 0)
			continue;
		if (inlined->list.data[i].pieces.len > 0)
			total++;
		else
			empty++;
	}
	if (total > 1) {
		struct pm_region *region =
			pm_finder_add(finder, file, PM_STAT_INLINED, name);

		if (!region)
			return finder->err->code;
		region->places_total = total;
		sum = (int32_t)finder->ret->list.len - 1;
	}
	for (size_t i = 0; i < inlined->list.len && ret == 0; i++)
		if (inlined->list.data[i].pieces.len > 0 &&
		    strcmp(inlined->list.data[i].name, name) == 0)
			ret = add_inlined_place(finder, file, &inlined->list.data[i], sum,
						total, &parted);
	if (ret == 0)
		ret = note_parted_places(finder, total, parted);
	if (ret == 0 && empty > 0)
		ret = pm_finder_note(finder,
				     "of %u place%s where %s was inlined nothing is left",
				     empty, pm_plural_s(empty), name);
	return ret;
}

int pm_finder_find_inlined(struct pm_finder *finder, const struct pm_finder_file *file)
{
	struct pm_probe_inlined_list inlined = { 0 };
	int ret = pm_probe_find_inlined(&inlined, file->binary, finder->context,
					finder->name, finder->err);

	for (size_t i = 0; i < inlined.list.len && ret == 0; i++) {
		bool is_first = true;

		for (size_t n = 0; n < i && is_first; n++)
			is_first = strcmp(inlined.list.data[n].name,
					  inlined.list.data[i].name) != 0;
		if (is_first)
			ret = add_inlined_function(finder, file, &inlined,
						   inlined.list.data[i].name);
	}
	if (ret == 0)
		ret = (int)inlined.list.len;
	pm_probe_inlined_release(&inlined);
	return ret;
}
