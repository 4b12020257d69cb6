/* SPDX-License-Identifier: MIT */
#include "engine-uprobe.h"

#include <string.h>

enum {
	/* So many regions have classes of their own: each is an event of the kernel, and each
	 * hit tells the counts of them all. */
	CLASSES_REGIONS_MAX = 8,
};

/* Functions are entered at one place: hits there are calls, lost ones too. */
static uint32_t class_of(const struct pm_place *place)
{
	return 2 * place->region +
	       (place->kind == PM_PLACE_EXIT || place->kind == PM_PLACE_OUT);
}

#if defined(__x86_64__)

/*
 * Instructions with a segment override (of which one is called "notrack") or a lock have no
 * probes: is_prefix_bad() of arch/x86/kernel/uprobes.c, Linux 6.18.
 */
static bool is_refused(const struct pm_place *place)
{
	static const uint8_t refused[] = { 0x26, 0x2e, 0x36, 0x3e, 0xf0 };
	static const uint8_t others[] = { 0x64, 0x65, 0x66, 0x67, 0xf2, 0xf3 };

	for (uint8_t i = 0; i < place->len && i < sizeof(place->bytes); i++) {
		if (memchr(refused, place->bytes[i], sizeof(refused)))
			return true;
		if (!memchr(others, place->bytes[i], sizeof(others)))
			return false;
	}
	return false;
}

#elif defined(__aarch64__)

/* Hints that check signatures, wait, or are of a later time. */
static bool is_refused_hint(uint32_t word)
{
	static const uint8_t taken[] = { 0, 7, 8, 10, 24, 25, 26, 27, 32, 34, 36, 38 };

	return (word & 0xfffff01f) == 0xd503201f &&
	       !memchr(taken, (int)(word >> 5 & 127), sizeof(taken));
}

/*
 * What the kernel can neither step over elsewhere nor emulate (arm_probe_decode_insn() of
 * arch/arm64/kernel/probes/decode-insn.c, Linux 6.1), and one more: a literal that is loaded
 * into a vector register it would take from where the copy of the instruction is.
 */
static bool is_refused(const struct pm_place *place)
{
	static const struct {
		uint32_t mask, value;
	} refused[] = {
		{ 0x3b000000, 0x18000000 }, /* literals */
		{ 0x3f800000, 0x08000000 }, /* exclusive ones */
		{ 0xff000000, 0xd4000000 }, /* svc, brk */
		{ 0xfff00000, 0xd5100000 }, /* msr */
		{ 0xfff8f01f, 0xd500401f }, /* msr of an immediate */
		{ 0xffffffe0, 0xd53b4220 }, /* mrs of DAIF */
		{ 0xfe000800, 0xd6000800 }, /* braa, blraa, retaa */
		{ 0xffff0000, 0 }, /* udf */
	};
	uint32_t word;

	memcpy(&word, place->bytes, sizeof(word));
	for (size_t i = 0; i < PM_ARRAY_LEN(refused); i++)
		if ((word & refused[i].mask) == refused[i].value)
			return true;
	return is_refused_hint(word);
}

#else

static bool is_refused(const struct pm_place *place)
{
	return false;
}

#endif

/* Who reads the flags with a hit can tell whether a conditional jump is taken. */
static bool is_judged(const struct pm_place *place)
{
#ifdef __x86_64__
	return !pm_place_asks_register(place);
#else
	return place->condition == 0;
#endif
}

static int add(struct pm_up_places *places, const struct pm_regions *regions,
	       uint32_t index)
{
	const struct pm_place *place = &regions->places.data[index];
	const struct pm_region *region = &regions->list.data[place->region];
	struct pm_event_spec spec = { .kind = PM_EVENT_UPROBE,
				      .config2 = place->offset,
				      .user = true,
				      .kernel = true };
	char *path;

	if (!is_judged(place)) {
		places->unjudged++;
		places->unjudged_region = place->region;
		return 0;
	}
	if (is_refused(place)) {
		places->refused++;
		places->refused_region = place->region;
		return 0;
	}
	if (asprintf(&path, "/proc/self/fd/%d", region->fd) < 0)
		return -ENOMEM;
	if (pm_vec_push(&places->paths, path) < 0) {
		free(path);
		return -ENOMEM;
	}
	snprintf(spec.name, sizeof(spec.name), "%s", region->name ? region->name : "");
	spec.path = path;
	if (pm_vec_push(&places->specs, spec) < 0 ||
	    pm_vec_push(&places->order, index) < 0 ||
	    pm_vec_push(&places->entries, place->kind == PM_PLACE_ENTRY) < 0)
		return -ENOMEM;
	return pm_vec_push(&places->classes, places->by_region ? class_of(place) : 0);
}

int pm_up_places_make(struct pm_up_places *places, const struct pm_regions *regions)
{
	places->by_region = regions->list.len <= CLASSES_REGIONS_MAX;
	for (int turn = 0; turn < PM_PLACE_TURNS; turn++)
		for (uint32_t i = 0; i < regions->places.len; i++)
			if (pm_place_turn(regions, i) == turn &&
			    add(places, regions, i) < 0)
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
}

bool pm_up_class(const struct pm_up_places *places, uint32_t region, uint32_t which,
		 uint32_t *ret)
{
	if (which >= (places->by_region ? 2 : 1))
		return false;
	*ret = places->by_region ? 2 * region + which : 0;
	return true;
}

bool pm_up_entered_cheaply(const struct pm_regions *regions, uint32_t region)
{
	for (size_t i = 0; i < regions->places.len; i++) {
		const struct pm_place *place = &regions->places.data[i];
		int32_t sum = regions->list.data[place->region].sum;

		if ((place->region == region || sum == (int32_t)region) &&
		    (place->kind == PM_PLACE_ENTRY || place->kind == PM_PLACE_IN))
			return place->cheap;
	}
	return false;
}
