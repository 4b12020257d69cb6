/* SPDX-License-Identifier: MIT */
/* The regions' addresses, by file. */
#include "callgrind-sums.h"

#include <string.h>

static int compare_callgrind_pieces(const void *a, const void *b)
{
	const struct pm_callgrind_piece *one = a, *other = b;

	if (one->module != other->module)
		return PM_COMPARE(one->module, other->module);
	if (one->low != other->low)
		return PM_COMPARE(one->low, other->low);
	return 0;
}

static int exit_by_address(const void *a, const void *b)
{
	const struct pm_callgrind_exit *one = a, *other = b;

	if (one->region != other->region)
		return PM_COMPARE(one->region, other->region);
	if (one->address != other->address)
		return PM_COMPARE(one->address, other->address);
	return 0;
}

/* Whether the place is a return of x86 (maybe with a prefix for old branch predictors) or
 * of aarch64; otherwise it is a jump. */
static bool is_return(const struct pm_place *place)
{
	const uint8_t *bytes = place->bytes;
	size_t skip = place->len > 1 && (bytes[0] == 0xf3 || bytes[0] == 0xf2) ? 1 : 0;
	uint32_t word;

	memcpy(&word, bytes, sizeof(word));
	return bytes[skip] == 0xc3 || bytes[skip] == 0xc2 ||
	       (place->len == 4 && (word & 0xfffffc1f) == 0xd65f0000);
}

static int module_of_region(struct pm_callgrind_sums *sums,
			    const struct pm_region *region, uint32_t *out)
{
	struct pm_callgrind_module module = { .path = pm_text_or_empty(region->module) };
	struct stat st;

	if (region->fd >= 0 && fstat(region->fd, &st) == 0) {
		module.device = st.st_dev;
		module.inode = st.st_ino;
	}
	for (size_t i = 0; i < sums->modules.len; i++) {
		const struct pm_callgrind_module *have = &sums->modules.data[i];

		if (have->device == module.device && have->inode == module.inode &&
		    strcmp(have->path, module.path) == 0) {
			*out = (uint32_t)i;
			return 0;
		}
	}
	*out = (uint32_t)sums->modules.len;
	return pm_vec_push(&sums->modules, module);
}

static int add_region_pieces(struct pm_callgrind_sums *sums, uint32_t index)
{
	const struct pm_region *region = &sums->regions->list.data[index];
	uint32_t module;

	if (region->pieces.len == 0)
		return 0;
	if (module_of_region(sums, region, &module) < 0)
		return -ENOMEM;
	for (size_t i = 0; i < region->pieces.len; i++) {
		struct pm_callgrind_piece piece = { .module = module,
						    .region = index,
						    .low = region->pieces.data[i].low,
						    .high = region->pieces.data[i].high };

		if (pm_vec_push(&sums->pieces, piece) < 0)
			return -ENOMEM;
	}
	return 0;
}

int pm_callgrind_places_add(struct pm_callgrind_sums *sums)
{
	uint64_t high = 0;

	for (uint32_t i = 0; i < sums->regions->list.len; i++)
		if (add_region_pieces(sums, i) < 0)
			return -ENOMEM;
	for (size_t i = 0; i < sums->regions->places.len; i++) {
		const struct pm_place *place = &sums->regions->places.data[i];

		if (place->kind == PM_PLACE_EXIT &&
		    pm_vec_push(&sums->exits,
				(struct pm_callgrind_exit){ place->address, place->region,
							    is_return(place) }) < 0)
			return -ENOMEM;
	}
	if (sums->pieces.len > 0)
		qsort(sums->pieces.data, sums->pieces.len, sizeof(*sums->pieces.data),
		      compare_callgrind_pieces);
	if (sums->exits.len > 0)
		qsort(sums->exits.data, sums->exits.len, sizeof(*sums->exits.data),
		      exit_by_address);
	for (size_t i = 0; i < sums->pieces.len; i++) {
		struct pm_callgrind_piece *piece = &sums->pieces.data[i];

		if (i == 0 || piece[-1].module != piece->module)
			high = 0;
		high = PM_MAX(piece->high, high);
		piece->high_before = high;
	}
	return 0;
}

const struct pm_callgrind_exit *pm_callgrind_find_exit(
	const struct pm_callgrind_sums *sums, uint32_t region, uint64_t address)
{
	struct pm_callgrind_exit wanted = { address, region, false };

	if (sums->exits.len == 0)
		return NULL;
	return bsearch(&wanted, sums->exits.data, sums->exits.len, sizeof(wanted),
		       exit_by_address);
}

bool pm_callgrind_is_inside(const struct pm_region *region, uint64_t address)
{
	for (size_t i = 0; i < region->pieces.len; i++)
		if (address >= region->pieces.data[i].low &&
		    address < region->pieces.data[i].high)
			return true;
	return false;
}

/* Returns the module of an object that callgrind names. It is identified by its file, or
 * by name if the file no longer exists. */
static uint32_t find_object_module(const struct pm_callgrind_sums *sums, const char *path)
{
	struct stat st;
	bool there = stat(path, &st) == 0;

	for (size_t i = 0; i < sums->modules.len; i++) {
		const struct pm_callgrind_module *module = &sums->modules.data[i];

		if (there && module->inode != 0
			    ? st.st_dev == module->device && st.st_ino == module->inode
			    : strcmp(path, module->path) == 0)
			return (uint32_t)i;
	}
	return PM_CALLGRIND_NONE;
}

int pm_callgrind_module_of(struct pm_callgrind_sums *sums, uint32_t object, uint32_t *out)
{
	*out = PM_CALLGRIND_NONE;
	if (object == PM_CALLGRIND_NONE)
		return 0;
	while (sums->module_of.len <= object)
		if (pm_vec_push(&sums->module_of,
				find_object_module(
					sums,
					sums->table.objects.data[sums->module_of.len])) <
		    0)
			return -ENOMEM;
	*out = sums->module_of.data[object];
	return 0;
}

/* Returns the index past the last piece that begins at or before @address. */
size_t pm_callgrind_pieces_end(const struct pm_callgrind_sums *sums, uint32_t module,
			       uint64_t address)
{
	size_t low = 0, high = sums->pieces.len;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		const struct pm_callgrind_piece *piece = &sums->pieces.data[middle];

		if (piece->module < module ||
		    (piece->module == module && piece->low <= address))
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* Goes back from pm_callgrind_pieces_end(). Returns false if no earlier piece contains
 * the address. */
bool pm_callgrind_piece_before(const struct pm_callgrind_sums *sums, size_t *at,
			       uint32_t module, uint64_t address)
{
	while (*at > 0) {
		const struct pm_callgrind_piece *piece = &sums->pieces.data[--*at];

		if (piece->module != module || piece->high_before <= address)
			return false;
		if (address < piece->high)
			return true;
	}
	return false;
}
