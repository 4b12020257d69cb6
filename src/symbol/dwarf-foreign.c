/* SPDX-License-Identifier: MIT */
/*
 * Reads the scopes of functions in other units. With link-time optimisation, and with
 * dwz, an inlined copy refers to an entry in a different unit.
 */
#include "dwarf-parts.h"

enum {
	FOREIGN_MAX = 1 << 12,
};

struct pm_foreign {
	struct pm_unit unit;
	struct pm_entries entries;
	struct pm_lines lines;
	bool has_lines;
};

static void foreign_free(struct pm_foreign *foreign)
{
	if (foreign->has_lines)
		pm_lines_release(&foreign->lines);
	pm_entries_release(&foreign->entries);
	free(foreign);
}

void pm_foreign_release(struct pm_dwarf *dwarf)
{
	for (size_t i = 0; i < dwarf->foreign.len; i++)
		foreign_free(dwarf->foreign.data[i]);
	pm_vec_release(&dwarf->foreign);
}

/* Whether names of the unit's language need scopes. In other languages, functions are not
 * in classes, or have a mangled name. */
static bool unit_has_classes(Dwarf_Die *unit)
{
	switch (dwarf_srclang(unit)) {
	case DW_LANG_C_plus_plus:
	case DW_LANG_C_plus_plus_03:
	case DW_LANG_C_plus_plus_11:
	case DW_LANG_C_plus_plus_14:
		return true;
	default:
		return false;
	}
}

static int ignore_entry(void *user, bool inlined, uint64_t offset,
			const struct pm_pcs *pcs)
{
	return 0;
}

/* A unit that cannot be read has no scopes. */
static void read_foreign_scopes(struct pm_foreign *foreign, Dwarf_Die *die,
				unsigned int version)
{
	struct pm_entries *entries = &foreign->entries;
	struct pm_dwarf *dwarf = entries->dwarf;

	if (!unit_has_classes(die) ||
	    pm_unit_init(&foreign->unit, dwarf, die, version) < 0 ||
	    !(entries->walk = pm_walk_new()))
		return;
	if (pm_entries_scan(entries) < 0) {
		pm_vec_clear(&entries->scopes);
		pm_vec_clear(&entries->members);
	}
	pm_walk_free(entries->walk);
	entries->walk = NULL;
	foreign->has_lines = pm_lines_open(&foreign->lines, dwarf, &foreign->unit) == 0;
	if (foreign->has_lines)
		entries->lines = &foreign->lines;
}

const struct pm_entries *pm_foreign_entries(struct pm_dwarf *dwarf, const Dwarf_Die *die)
{
	struct pm_foreign *foreign;
	Dwarf_Half version;
	Dwarf_Die unit;

	/* Usually the unit that was found last matches again. */
	for (size_t i = dwarf->foreign.len; i-- > 0;)
		if (dwarf->foreign.data[i]->unit.die.cu == die->cu)
			return &dwarf->foreign.data[i]->entries;
	if (dwarf->foreign.len >= FOREIGN_MAX ||
	    dwarf_cu_info(die->cu, &version, NULL, &unit, NULL, NULL, NULL, NULL) != 0 ||
	    !(foreign = calloc(1, sizeof(*foreign))))
		return NULL;
	foreign->unit.die = unit;
	foreign->entries = (struct pm_entries){
		.dwarf = dwarf, .unit = &foreign->unit, .number = 1, .each = ignore_entry
	};
	if (pm_vec_push(&dwarf->foreign, foreign) < 0) {
		free(foreign);
		return NULL;
	}
	read_foreign_scopes(foreign, &unit, version);
	return &foreign->entries;
}
