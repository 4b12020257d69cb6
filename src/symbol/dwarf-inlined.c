/* SPDX-License-Identifier: MIT */
/*
 * Finds the places where functions were inlined, by name. The entries of each unit are
 * walked once, and the inlined copies are collected; then the origin of each copy is
 * looked up, once for all copies that share it. The same walk also finds where functions
 * are declared, by address.
 */
#include <string.h>

#include "dwarf-parts.h"

enum {
	COPIES_MAX = 1 << 22, /* of one unit */
	RANGES_MAX = 4096, /* of one copy */
};

struct copy {
	uint64_t offset;
	struct pm_pcs pcs;
};

/* The function that copies refer to. */
struct origin {
	const void *at; /* address of its bytes in memory, unique across files */
	const char *name, *linkage;
	bool is_wanted;
};

struct finder {
	struct pm_elf_image image, debug;
	struct pm_dwarf dwarf;
	struct pm_texts texts;
	struct pm_walk *walk;
	pm_symbol_wanted_fn wanted;
	pm_symbol_inlined_fn emit;
	void *user;
	/* Functions whose declarations are searched for; NULL: inlined copies are. */
	const uint64_t *addresses;
	size_t len;
	pm_symbol_declared_fn declared;
	PM_VEC(struct copy) copies; /* of the current unit */
	PM_VEC(struct origin) origins; /* of the current unit */
	struct pm_index by_entry;
	PM_VEC(struct pm_symbol_range) ranges; /* of the current copy */
};

static int collect_copy(void *user, bool inlined, uint64_t offset,
			const struct pm_pcs *pcs)
{
	struct finder *finder = user;

	if (inlined == (finder->addresses != NULL))
		return 0;
	if (finder->copies.len >= COPIES_MAX)
		return -EBADMSG;
	return pm_vec_push(&finder->copies, (struct copy){ offset, *pcs });
}

static int collect_copy_range(void *user, uint64_t low, uint64_t high)
{
	struct finder *finder = user;

	if (finder->ranges.len >= RANGES_MAX)
		return 0;
	return pm_vec_push(&finder->ranges, (struct pm_symbol_range){ low, high });
}

static bool is_origin(const void *table, uint32_t id, const void *key)
{
	const struct finder *finder = table;

	return finder->origins.data[id].at == key;
}

/* Returns the origin of the copy at @offset, or NULL if memory runs out. */
static const struct origin *find_copy_origin(struct finder *finder,
					     const struct pm_entries *entries,
					     uint64_t offset)
{
	struct pm_node node = { .offset = offset };
	struct origin origin = { 0 };
	uint64_t hash;
	uint32_t id;
	Dwarf_Die die = { 0 };
	const char *linkage = pm_entry_linkage(&finder->dwarf, offset, &die);

	origin.at = die.addr;
	hash = pm_hash_mix((uintptr_t)die.addr, 1);
	id = pm_index_find(&finder->by_entry, hash, is_origin, finder, die.addr);
	if (id != PM_INDEX_NONE)
		return &finder->origins.data[id];
	origin.name = pm_node_name(entries, &node, &finder->texts);
	if (linkage)
		origin.linkage =
			pm_texts_add(&finder->texts, linkage, PM_SYMBOL_TEXT_MAX);
	else
		origin.linkage = NULL;
	origin.is_wanted =
		origin.name && finder->wanted(finder->user, origin.linkage, origin.name);
	id = (uint32_t)finder->origins.len;
	if (pm_vec_push(&finder->origins, origin) < 0 ||
	    pm_index_add(&finder->by_entry, hash, id) < 0)
		return NULL;
	return &finder->origins.data[id];
}

static uint32_t read_number_attribute(Dwarf_Die *die, unsigned int name, uint64_t *out)
{
	Dwarf_Attribute attr;
	Dwarf_Word value;

	if (!dwarf_attr(die, name, &attr) || dwarf_formudata(&attr, &value) != 0)
		value = 0;
	if (out)
		*out = value;
	if (value <= UINT32_MAX)
		return (uint32_t)value;
	return 0;
}

static int emit_copy(struct finder *finder, const struct pm_entries *entries,
		     const struct copy *copy, const struct origin *origin)
{
	struct pm_symbol_inlined place = { .name = origin->name,
					   .linkage = origin->linkage };
	uint64_t file;
	Dwarf_Die die;
	int ret;

	pm_vec_clear(&finder->ranges);
	ret = pm_pcs_each(&finder->dwarf, entries->unit, &copy->pcs, collect_copy_range,
			  finder);
	if (ret < 0)
		return ret;
	if (!dwarf_offdie(finder->dwarf.dwarf, copy->offset, &die))
		return 0;
	place.ranges = finder->ranges.data;
	place.len = finder->ranges.len;
	place.call_line = read_number_attribute(&die, DW_AT_call_line, NULL);
	read_number_attribute(&die, DW_AT_call_file, &file);
	if (entries->lines)
		place.call_file = pm_lines_path(entries->lines, file, &finder->texts);
	return finder->emit(finder->user, &place);
}

static int emit_inlined(struct finder *finder, const struct pm_entries *entries,
			const struct copy *copy)
{
	const struct origin *origin = find_copy_origin(finder, entries, copy->offset);

	if (!origin)
		return -ENOMEM;
	if (origin->is_wanted)
		return emit_copy(finder, entries, copy, origin);
	return 0;
}

/* The attribute is on the declaration that the code's entry refers to (DWARF 5
 * §3.3.8.1). */
static bool is_inlined_somewhere(const struct finder *finder, uint64_t offset)
{
	Dwarf_Attribute attr;
	Dwarf_Word value;
	Dwarf_Die die;

	return dwarf_offdie(finder->dwarf.dwarf, offset, &die) &&
	       dwarf_attr_integrate(&die, DW_AT_inline, &attr) &&
	       dwarf_formudata(&attr, &value) == 0 &&
	       (value == DW_INL_inlined || value == DW_INL_declared_inlined);
}

static int emit_declared(struct finder *finder, const struct pm_entries *entries,
			 const struct copy *copy)
{
	const struct pm_wanted wanted = { finder->addresses, finder->len };
	const char *file;
	uint32_t line;
	size_t at;
	int ret;

	pm_vec_clear(&finder->ranges);
	ret = pm_pcs_each(&finder->dwarf, entries->unit, &copy->pcs, collect_copy_range,
			  finder);
	if (ret < 0)
		return ret;
	if (finder->ranges.len == 0 || !entries->lines)
		return 0;
	at = pm_wanted_from(&wanted, finder->ranges.data[0].low);
	if (at == finder->len || finder->addresses[at] != finder->ranges.data[0].low ||
	    !pm_entry_declared(&finder->dwarf, copy->offset, entries->lines,
			       &finder->texts, &file, &line))
		return 0;
	return finder->declared(finder->user, at, file, line,
				is_inlined_somewhere(finder, copy->offset));
}

static int find_inlined_in_unit(struct finder *finder, const struct pm_unit *unit,
				uint32_t number)
{
	struct pm_entries entries = { .dwarf = &finder->dwarf,
				      .walk = finder->walk,
				      .unit = unit,
				      .number = number,
				      .each = collect_copy,
				      .user = finder };
	struct pm_lines lines;
	bool has_lines = false;
	int ret;

	pm_vec_clear(&finder->copies);
	pm_vec_clear(&finder->origins);
	pm_index_release(&finder->by_entry);
	ret = pm_entries_scan(&entries);
	if (finder->copies.len > 0)
		has_lines = pm_lines_open(&lines, &finder->dwarf, unit) == 0;
	if (has_lines)
		entries.lines = &lines;
	for (size_t i = 0; i < finder->copies.len && ret == 0; i++) {
		const struct copy *copy = &finder->copies.data[i];

		if (finder->addresses)
			ret = emit_declared(finder, &entries, copy);
		else
			ret = emit_inlined(finder, &entries, copy);
	}
	if (has_lines)
		pm_lines_release(&lines);
	pm_entries_release(&entries);
	return ret;
}

/* Whether @word occurs in one of the sections that may have a part of a name. Short names
 * are in .debug_info itself. File names, which are part of lambdas' names, are in the
 * line sections. */
static bool dwarf_has_word(const struct pm_dwarf *dwarf, const char *word)
{
	const struct pm_bytes *places[] = { &dwarf->str, &dwarf->info, &dwarf->line_str,
					    &dwarf->line };

	if (!word || dwarf->alt)
		return true;
	for (size_t i = 0; i < PM_ARRAY_LEN(places); i++)
		if (places[i]->len > 0 &&
		    memmem(places[i]->data, places[i]->len, word, strlen(word)))
			return true;
	return false;
}

static int find_inlined_in_units(struct finder *finder)
{
	Dwarf_CU *cu = NULL;
	Dwarf_Half version;
	uint8_t type;
	Dwarf_Die die;
	uint32_t number = 0;
	int ret = 0;

	while (ret == 0 && dwarf_get_units(finder->dwarf.dwarf, cu, &cu, &version, &type,
					   &die, NULL) == 0) {
		struct pm_unit unit;

		if (pm_unit_init(&unit, &finder->dwarf, &die, version) == 0)
			ret = find_inlined_in_unit(finder, &unit, ++number);
	}
	return ret;
}

static void inlined_finder_release(struct finder *finder)
{
	pm_dwarf_close(&finder->dwarf);
	pm_texts_release(&finder->texts);
	pm_walk_free(finder->walk);
	pm_vec_release(&finder->copies);
	pm_vec_release(&finder->origins);
	pm_vec_release(&finder->ranges);
	pm_index_release(&finder->by_entry);
	pm_elf_image_close(&finder->debug);
	pm_elf_image_close(&finder->image);
}

static int find_inlined_in_file(struct finder *finder, int fd,
				const struct pm_symbol_options *options, const char *word,
				struct pm_error *err)
{
	const struct pm_elf_image *with_dwarf = &finder->image;
	int ret = pm_elf_image_open(&finder->image, fd, false);

	if (ret < 0)
		return pm_error_set(err, ret, "%s", pm_error_elf_text(ret));
	if (!pm_dwarf_present(&finder->image) &&
	    pm_debug_file_open(&finder->debug, &finder->image, fd, options) == 0)
		with_dwarf = &finder->debug;
	ret = pm_dwarf_open(&finder->dwarf, &finder->image, with_dwarf, options);
	if (ret == 0 && !(finder->walk = pm_walk_new()))
		ret = -ENOMEM;
	if (ret == -ENOMEM)
		return pm_error_set(err, ret, "no memory left for its functions");
	if (ret < 0)
		return pm_error_set(err, -ENODATA, "it has no debug information");
	if (dwarf_has_word(&finder->dwarf, word))
		return find_inlined_in_units(finder);
	return 0;
}

int pm_symbols_find_inlined(int fd, const struct pm_symbol_options *options,
			    const char *word, pm_symbol_wanted_fn wanted,
			    pm_symbol_inlined_fn emit, void *user, struct pm_error *err)
{
	PM_CLEANUP(inlined_finder_release)
	struct finder finder = { .wanted = wanted, .emit = emit, .user = user };

	return find_inlined_in_file(&finder, fd, options, word, err);
}

int pm_symbols_find_declared(int fd, const struct pm_symbol_options *options,
			     const uint64_t *addresses, size_t len,
			     pm_symbol_declared_fn emit, void *user, struct pm_error *err)
{
	PM_CLEANUP(inlined_finder_release)
	struct finder finder = {
		.addresses = addresses, .len = len, .declared = emit, .user = user
	};

	if (len > 0)
		return find_inlined_in_file(&finder, fd, options, NULL, err);
	return 0;
}
