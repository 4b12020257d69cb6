/* SPDX-License-Identifier: MIT */
#include "engine-uprobe.h"

enum {
	/* Up to this many regions have classes of their own: each class is a kernel
	 * event, and each hit has the counts of all of them. */
	CLASSES_REGIONS_MAX = 8,
};

/* A function has one entry: hits there, including lost ones, are its calls. */
static uint32_t uprobe_class_of_place(const struct pm_place *place)
{
	return 2 * place->region +
	       (place->kind == PM_PLACE_EXIT || place->kind == PM_PLACE_OUT);
}

/* Whether a conditional jump is taken can be decided if hits have the flags. */
static bool condition_can_be_decided(const struct pm_place *place)
{
#ifdef __x86_64__
	return !pm_place_asks_register(place);
#else
	return place->condition == 0;
#endif
}

static int uprobe_add_place(struct pm_up_places *places, const struct pm_regions *regions,
			    uint32_t index)
{
	const struct pm_place *place = &regions->places.data[index];
	const struct pm_region *region = &regions->list.data[place->region];
	struct pm_event_spec spec = { .kind = PM_EVENT_UPROBE,
				      .config2 = place->offset,
				      .user = true,
				      .kernel = true };
	char *path;

	if (!condition_can_be_decided(place)) {
		places->unjudged++;
		places->unjudged_region = place->region;
		return 0;
	}
	places->behind += place->passed > 0;
	if (place->passed > 0)
		places->behind_region = place->region;
	if (place->refused) {
		places->refused++;
		places->refused_region = place->region;
		if (pm_place_is_way_in(place))
			return pm_vec_push(&places->short_regions, place->region);
		return 0;
	}
	if (asprintf(&path, "/proc/self/fd/%d", region->fd) < 0)
		return -ENOMEM;
	if (pm_vec_push(&places->paths, path) < 0) {
		free(path);
		return -ENOMEM;
	}
	snprintf(spec.name, sizeof(spec.name), "%s", pm_text_or_empty(region->name));
	spec.path = path;
	if (pm_vec_push(&places->specs, spec) < 0 ||
	    pm_vec_push(&places->order, index) < 0 ||
	    pm_vec_push(&places->entries, place->kind == PM_PLACE_ENTRY) < 0)
		return -ENOMEM;
	return pm_vec_push(&places->classes,
			   places->by_region ? uprobe_class_of_place(place) : 0);
}

int pm_up_places_make(struct pm_up_places *places, const struct pm_regions *regions)
{
	places->by_region = regions->list.len <= CLASSES_REGIONS_MAX;
	for (int turn = 0; turn < PM_PLACE_TURNS; turn++)
		for (uint32_t i = 0; i < regions->places.len; i++)
			if (pm_place_turn(regions, i) == turn &&
			    uprobe_add_place(places, regions, i) < 0)
				return -ENOMEM;
	return 0;
}

void pm_up_places_release(struct pm_up_places *places)
{
	for (size_t i = 0; i < places->paths.len; i++)
		free(places->paths.data[i]);
	pm_vec_release(&places->paths);
	pm_vec_release(&places->specs);
	pm_vec_release(&places->order);
	pm_vec_release(&places->classes);
	pm_vec_release(&places->entries);
	pm_vec_release(&places->short_regions);
}

bool pm_up_class(const struct pm_up_places *places, uint32_t region, uint32_t which,
		 uint32_t *out)
{
	if (which >= (places->by_region ? 2 : 1))
		return false;
	if (places->by_region)
		*out = 2 * region + which;
	else
		*out = 0;
	return true;
}

bool pm_up_entered_cheaply(const struct pm_regions *regions, uint32_t region)
{
	for (size_t i = 0; i < regions->places.len; i++) {
		const struct pm_place *place = &regions->places.data[i];
		int32_t sum = regions->list.data[place->region].sum;

		if ((place->region == region || sum == (int32_t)region) &&
		    pm_place_is_way_in(place))
			return place->cheap;
	}
	return false;
}

bool pm_up_is_short(const struct pm_up_places *places, uint32_t region)
{
	for (size_t i = 0; i < places->short_regions.len; i++)
		if (places->short_regions.data[i] == region)
			return true;
	return false;
}
