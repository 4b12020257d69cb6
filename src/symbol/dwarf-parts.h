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
	const struct pm_elf_image *image; /* whose sections say where code is */
	Dwarf *dwarf;
	struct pm_elf_image alt_image; /* the file with the entries that dwz moved out */
	Dwarf *alt;
	struct pm_bytes info, line, line_str, str, ranges, rnglists, addr;
	uint64_t ranges_budget; /* steps that may still be spent on reading range lists */
	uint64_t lines_budget; /* bytes of line programs that may still be run */
	bool limited; /* some information was not opened, because of its cost */
	PM_VEC(struct pm_foreign *)
	foreign; /* units that gave names to other units */
};

/* Opens the debug information of @debug. Returns 0; -ENOENT: there is none, or none that
 * is plausible; or -ENOMEM. */
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
	uint64_t base; /* DW_AT_low_pc of the unit, the base of its range lists */
	uint64_t addr_base, rnglists_base;
};

/* Returns the value of attribute @name, or else of @other, or 0 if the entry has
 * neither. */
uint64_t pm_form_attribute(Dwarf_Die *die, unsigned int name, unsigned int other);
int pm_unit_init(struct pm_unit *unit, const struct pm_dwarf *dwarf, Dwarf_Die *die,
		 unsigned int version);

/* ---- ranges --------------------------------------------------------------------------- */

/* The attributes that say where an entry's code is (DWARF 5 §2.17), undecoded. */
struct pm_pcs {
	uint16_t low_form, high_form, ranges_form; /* 0: absent */
	uint64_t low, high, ranges;
};

/* A negative result ends the iteration. */
typedef int (*pm_range_fn)(void *user, uint64_t start, uint64_t end);

/*
 * Calls @each for those ranges of an entry that are in code, until one cannot be read.
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
	uint32_t parent; /* the node that it is inlined into, or PM_NODE_NONE */
	uint32_t scope; /* class or namespace of its entry, or PM_SCOPE_NONE */
	bool is_named; /* the fields below have been filled */
	uint32_t call_line;
	const char *name, *call_file;
};

/* A namespace or class. */
struct pm_scope {
	uint64_t offset;
	uint64_t function; /* the function that directly contains it; 0: none */
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
	uint32_t node; /* index in the nodes of the unit that is being read */
	uint64_t low; /* start of the innermost node's range around the address */
	uint64_t row; /* address of the last line row at or below the address */
	uint32_t file, line; /* line 0: unknown */
	bool has_node, has_line;
	bool is_borrowed; /* file and line are those of a row that precedes a row with
	                   * line 0 */
	bool is_counted; /* it is included in resolver.found */
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
	struct pm_lines *lines; /* for file names in names of lambdas; NULL: none */
	const struct pm_wanted *wanted;
	struct pm_hit *hits;
	uint32_t number; /* of the unit; never reused */
	struct pm_owned *owned;
	uint64_t *claims_budget; /* steps that may still be spent on assigning addresses
	                          * to nodes */
	/* If not NULL, called for each function or inlined copy that has code, and no
	 * wanted addresses are searched for. A negative result ends the scan. */
	int (*each)(void *user, bool inlined, uint64_t offset, const struct pm_pcs *pcs);
	void *user;
	PM_VEC(struct pm_node) nodes;
	PM_VEC(struct pm_scope) scopes; /* sorted by offset */
	PM_VEC(struct pm_member) members; /* sorted by offset */
};

/* Reads the unit's entries and assigns nodes to wanted addresses that have none yet. */
int pm_entries_scan(struct pm_entries *entries);
void pm_entries_release(struct pm_entries *entries);

/* ---- dwarf-foreign.c --------------------------------------------------------------------- */

/* Returns the scopes of another unit, that of @die, if its language has classes. Each
 * unit is read once and owned by @dwarf. Returns NULL if the scopes are unknown. */
const struct pm_entries *pm_foreign_entries(struct pm_dwarf *dwarf, const Dwarf_Die *die);
void pm_foreign_release(struct pm_dwarf *dwarf);

/* ---- names ---------------------------------------------------------------------------- */

/* Returns the linker's name of the function whose entry is at @offset, whether it is
 * linked or not; NULL: its linker name is the one in the source. Sets @origin to the
 * entry that all its copies refer to. */
const char *pm_entry_linkage(const struct pm_dwarf *dwarf, uint64_t offset,
			     Dwarf_Die *origin);
/* Finds the place of the declaration of the function whose entry is at @offset. Returns
 * false if it is unknown, or if the file is not in the table of @lines, which must belong
 * to the same unit. */
bool pm_entry_declared(const struct pm_dwarf *dwarf, uint64_t offset,
		       struct pm_lines *lines, struct pm_texts *texts, const char **file,
		       uint32_t *line);
/* Returns the qualified name of the node's function, or NULL if it is unknown. */
const char *pm_node_name(const struct pm_entries *entries, const struct pm_node *node,
			 struct pm_texts *texts);

/* ---- lines ---------------------------------------------------------------------------- */

struct pm_line_file {
	const char *name; /* NUL-terminated within its section */
	uint64_t dir;
	const char *path; /* built on demand */
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

/* Reads the header of the unit's line table. Returns a negative errno if there is
 * none. */
int pm_lines_open(struct pm_lines *lines, struct pm_dwarf *dwarf,
		  const struct pm_unit *unit);
/* Runs the line program, and sets the lines of those hits that belong to unit @number. */
void pm_lines_run(struct pm_lines *lines, const struct pm_wanted *wanted,
		  struct pm_hit *hits, uint32_t number);
/* A row of the table (DWARF 5 §6.2.2). */
struct pm_line_row {
	uint64_t address, file, line;
	bool is_stmt; /* a recommended place for a breakpoint */
	bool ends; /* the address after the last instruction of a sequence; it has no
	            * line */
};
typedef void (*pm_line_row_fn)(void *user, const struct pm_line_row *row);
/* Runs the line program and calls @visit for each row. */
void pm_lines_visit(struct pm_lines *lines, pm_line_row_fn visit, void *user);
/* Returns the normalised path of the file with the number that entries and rows use, or
 * NULL if it is unknown. */
const char *pm_lines_path(struct pm_lines *lines, uint64_t file, struct pm_texts *texts);
void pm_lines_release(struct pm_lines *lines);
