/* SPDX-License-Identifier: MIT */
/*
 * The parts of the DWARF reader. libdw provides units, abbreviations and references
 * between entries. Everything that is read in bulk (entries of a unit, range lists, line
 * programs) is read here, once. Memory is bounded by the wanted addresses, and time by
 * the size of the sections.
 */
#pragma once

#include "symbol-parts.h"

#include <dwarf.h>

/* ---- the debug information of one file ----------------------------------------------- */

struct pm_bytes {
	const uint8_t *data;
	size_t len;
};

struct pm_foreign;

struct pm_dwarf {
	const struct pm_elf_image *image; /* says where code is */
	Dwarf *dwarf;
	struct pm_elf_image alt_image; /* holds what dwz moved out */
	Dwarf *alt;
	struct pm_bytes info, line, line_str, str, ranges, rnglists, addr;
	uint64_t ranges_budget; /* steps left for reading range lists */
	uint64_t lines_budget; /* bytes left for running line programs */
	bool limited; /* some was not opened, because of the cost */
	PM_VEC(struct pm_foreign *)
	foreign; /* units that gave names to other units */
};

/* -ENOENT: there is none, or none that is sane. -ENOMEM. */
int pm_dwarf_open(struct pm_dwarf *dwarf, const struct pm_elf_image *image,
		  const struct pm_elf_image *debug,
		  const struct pm_symbol_options *options);
void pm_dwarf_close(struct pm_dwarf *dwarf);

/* pm_reader_uleb() with a fast path for the usual single byte. */
static inline uint64_t pm_quick_uleb(struct pm_reader *reader)
{
	if (!reader->failed && reader->pos < reader->len &&
	    reader->data[reader->pos] < 0x80)
		return reader->data[reader->pos++];
	return pm_reader_uleb(reader);
}

static inline uint8_t pm_quick_u8(struct pm_reader *reader)
{
	if (reader->failed || reader->pos == reader->len) {
		reader->failed = true;
		return 0;
	}
	return reader->data[reader->pos++];
}

static inline bool pm_quick_skip(struct pm_reader *reader, uint64_t size)
{
	if (reader->failed || size > reader->len - reader->pos) {
		reader->failed = true;
		return false;
	}
	reader->pos += size;
	return true;
}

/* ---- units ---------------------------------------------------------------------------- */

struct pm_unit {
	Dwarf_Die die;
	struct pm_bytes dies; /* from the unit's own entry to its end */
	uint64_t dies_offset; /* of `dies` in .debug_info */
	uint16_t version;
	uint8_t address_size, offset_size;
	uint64_t base; /* of its range lists: the unit's DW_AT_low_pc */
	uint64_t addr_base, rnglists_base;
};

/* The value of the attribute @name, else of @other; 0: it has neither. */
uint64_t pm_form_attribute(Dwarf_Die *die, unsigned int name, unsigned int other);
int pm_unit_init(struct pm_unit *unit, const struct pm_dwarf *dwarf, Dwarf_Die *die,
		 unsigned int version);

/* ---- ranges --------------------------------------------------------------------------- */

/* The attributes that say where an entry's code is (DWARF 5 §2.17), undecoded. */
struct pm_pcs {
	uint16_t low_form, high_form, ranges_form; /* 0: absent */
	uint64_t low, high, ranges;
};

/* A negative result stops the walk. */
typedef int (*pm_range_fn)(void *user, uint64_t start, uint64_t end);

/*
 * Calls @each for the ranges of an entry that are in code, as far as they can be read.
 * Returns the result of @each if it was negative, otherwise the number of ranges, in code
 * or not.
 */
int pm_pcs_each(struct pm_dwarf *dwarf, const struct pm_unit *unit,
		const struct pm_pcs *pcs, pm_range_fn each, void *user);

/* ---- entries -------------------------------------------------------------------------- */

#define PM_NODE_NONE  UINT32_MAX
#define PM_SCOPE_NONE UINT32_MAX

/* A function, or an inlined copy of one, that contains a wanted address. */
struct pm_node {
	uint64_t offset; /* of its entry in .debug_info */
	uint64_t entry; /* its first address */
	uint32_t parent; /* the node it is inlined into, or PM_NODE_NONE */
	uint32_t scope; /* class or namespace of its entry, or PM_SCOPE_NONE */
	bool is_named; /* the fields below have been filled */
	uint32_t call_line;
	const char *name, *call_file;
};

/* A namespace or class. */
struct pm_scope {
	uint64_t offset;
	uint64_t function; /* the function directly around it; 0: none */
	uint32_t parent;
};

/* A function without a mangled name, and the scope of its declaration. */
struct pm_member {
	uint64_t offset;
	uint32_t scope;
};

/* The state of one wanted address. */
struct pm_hit {
	uint32_t unit; /* number of the unit that contains it, from 1; 0: none yet */
	uint32_t node; /* index in that unit's nodes while the unit is being read */
	uint64_t low; /* start of the innermost node's range around the address */
	uint64_t row; /* address of the line row below */
	uint32_t file, line; /* line 0: unknown */
	bool has_node, has_line;
	bool is_borrowed; /* from a row before a row of line 0 */
	bool is_counted; /* in resolver.found */
};

/* Indices of the wanted addresses that belong to a unit. */
struct pm_owned {
	PM_VEC(size_t) of;
};

/* Buffers for reading entries; one serves all units. */
struct pm_walk;
struct pm_walk *pm_walk_new(void);
void pm_walk_free(struct pm_walk *walk);

struct pm_lines;

struct pm_entries {
	struct pm_dwarf *dwarf;
	struct pm_walk *walk;
	const struct pm_unit *unit;
	struct pm_lines *lines; /* for file names within names; NULL: none */
	const struct pm_wanted *wanted;
	struct pm_hit *hits;
	uint32_t number; /* of the unit; never reused */
	struct pm_owned *owned;
	uint64_t *claims_budget; /* steps left for assigning addresses to nodes */
	/* Called for each function or inlined copy that has code, instead of looking for
	 * wanted addresses; negative stops. NULL: not used. */
	int (*each)(void *user, bool inlined, uint64_t offset, const struct pm_pcs *pcs);
	void *user;
	PM_VEC(struct pm_node) nodes;
	PM_VEC(struct pm_scope) scopes; /* by offset */
	PM_VEC(struct pm_member) members; /* by offset */
};

/* Reads the unit's entries and assigns nodes to wanted addresses that have none yet. */
int pm_entries_scan(struct pm_entries *entries);
void pm_entries_release(struct pm_entries *entries);

/* ---- dwarf-foreign.c --------------------------------------------------------------------- */

/* The scopes of the unit of @die, another unit; only for languages that have classes.
 * Each is read once and owned by @dwarf. NULL: unknown. */
const struct pm_entries *pm_foreign_entries(struct pm_dwarf *dwarf, const Dwarf_Die *die);
void pm_foreign_release(struct pm_dwarf *dwarf);

/* ---- names ---------------------------------------------------------------------------- */

/* The linker's name of the function of the entry at @offset, whether it is linked or not;
 * NULL: as in its source. @origin: the entry to which all its copies refer. */
const char *pm_entry_linkage(const struct pm_dwarf *dwarf, uint64_t offset,
			     Dwarf_Die *origin);
/* Where the function of the entry at @offset is declared, if the table of @lines, of the
 * same unit, has that file. */
bool pm_entry_declared(const struct pm_dwarf *dwarf, uint64_t offset,
		       struct pm_lines *lines, struct pm_texts *texts, const char **file,
		       uint32_t *line);
/* NULL: unknown. */
const char *pm_node_name(const struct pm_entries *entries, const struct pm_node *node,
			 struct pm_texts *texts);

/* ---- lines ---------------------------------------------------------------------------- */

struct pm_line_file {
	const char *name; /* NUL-terminated within its section */
	uint64_t dir;
	const char *path; /* made on demand */
};

struct pm_lines {
	struct pm_dwarf *dwarf;
	const struct pm_unit *unit;
	const char *comp_dir; /* or NULL */
	uint16_t version;
	PM_VEC(const char *) dirs;
	PM_VEC(struct pm_line_file) files;
	struct pm_bytes program;
	bool default_is_stmt;
	uint8_t min_instruction, max_operations, line_range, opcode_base;
	int8_t line_base;
	uint8_t address_size;
	const uint8_t *opcode_lengths; /* opcode_base - 1 of them */
};

/* Reads the header of the unit's line table. Negative: there is none. */
int pm_lines_open(struct pm_lines *lines, struct pm_dwarf *dwarf,
		  const struct pm_unit *unit);
/* Runs the program for the hits of unit @number. */
void pm_lines_run(struct pm_lines *lines, const struct pm_wanted *wanted,
		  struct pm_hit *hits, uint32_t number);
/* A row of the table (DWARF 5 §6.2.2). */
struct pm_line_row {
	uint64_t address, file, line;
	bool is_stmt; /* a recommended place for a breakpoint */
	bool ends; /* after the last instruction of a sequence; it has no line */
};
typedef void (*pm_line_row_fn)(void *user, const struct pm_line_row *row);
/* Runs the program; @visit gets each row. */
void pm_lines_visit(struct pm_lines *lines, pm_line_row_fn visit, void *user);
/* The normalised path of a file, by the number that entries and rows use; NULL:
 * unknown. */
const char *pm_lines_path(struct pm_lines *lines, uint64_t file, struct pm_texts *texts);
void pm_lines_release(struct pm_lines *lines);
