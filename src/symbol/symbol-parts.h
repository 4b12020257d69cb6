/* SPDX-License-Identifier: MIT */
/* Shared by the parts of the symboliser. See symbol.c for how they work together. */
#pragma once

#include "pm/symbol.h"

#include <elfutils/libdw.h>
#include <gelf.h>
#include <libelf.h>

struct pm_range {
	uint64_t start, end; /* [start, end) */
};

/* ---- wanted addresses ---------------------------------------------------------------- */

/* Sorted in ascending order, without duplicates. The addresses are borrowed. */
struct pm_wanted {
	const uint64_t *addresses;
	size_t len;
};

/* Returns the index of the first wanted address that is not below @address. */
static inline size_t pm_wanted_from(const struct pm_wanted *wanted, uint64_t address)
{
	size_t low = 0, high = wanted->len;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (wanted->addresses[mid] < address)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

/* ---- strings ------------------------------------------------------------------------- */

/* Strings that are stored once each, at a permanent address. Empty if
 * zero-initialised. */
struct pm_texts {
	PM_VEC(char *) blocks;
	PM_VEC(const char *) rows;
	struct pm_index index;
	size_t block_len, block_cap; /* of the last block */
};

/* Returns a printable copy of the @len bytes at @text, up to the first NUL. Returns NULL
 * if there are none, or if memory runs out. */
const char *pm_texts_add(struct pm_texts *texts, const char *text, size_t len);
void pm_texts_release(struct pm_texts *texts);

/* Longer symbol and function names are truncated. */
enum {
	PM_SYMBOL_TEXT_MAX = 16384
};

/* pm_texts_add() for a name, which is demangled if it is mangled. */
const char *pm_texts_add_name(struct pm_texts *texts, const char *name, size_t len);

/* ---- ELF images ---------------------------------------------------------------------- */

/*
 * A mapped ELF file or image. Closed if zero-initialised. While it is open, it must not
 * be moved, and only the thread that opened it may use it.
 */
struct pm_elf_image {
	Elf *elf;
	void *map; /* private; changes by libelf do not reach the file */
	size_t map_len; /* including a page of zeros after the file */
	size_t file_len;
	PM_VEC(struct pm_range) code; /* executable sections, in ascending order */
	struct pm_elf_image *next; /* for guard.c */
	bool is_guarded;
};

/* Returns 0 or a negative errno, among them -ENOEXEC: not an ELF file. For @copy, see
 * struct pm_symbol_options. */
int pm_elf_image_open(struct pm_elf_image *image, int fd, bool copy);
/* The same for a copy of @bytes. */
int pm_elf_image_open_memory(struct pm_elf_image *image, const void *bytes, size_t len);
void pm_elf_image_close(struct pm_elf_image *image);

/* Between these two calls, pages of @image that have been truncated from the file read as
 * zeros. */
void pm_guard_add(struct pm_elf_image *image);
void pm_guard_remove(struct pm_elf_image *image);

/* Returns the executable section that contains @address, or NULL. */
const struct pm_range *pm_elf_image_code(const struct pm_elf_image *image,
					 uint64_t address);
/* Returns the first section that has bytes and one of the two names (@other may be
 * NULL). */
Elf_Scn *pm_elf_image_section(const struct pm_elf_image *image, const char *name,
			      const char *other, GElf_Shdr *shdr);
/* Returns the length of the build-id, or a negative errno if there is none. @out is
 * borrowed from the image. */
ssize_t pm_elf_image_build_id(const struct pm_elf_image *image, const void **out);

/*
 * Opens the separate debug file of @image, by build-id or .gnu_debuglink. @fd is the file
 * of @image, -1 if it is in memory only. Returns -ENOENT if there is no matching file.
 */
int pm_debug_file_open(struct pm_elf_image *out, const struct pm_elf_image *image, int fd,
		       const struct pm_symbol_options *options);
/* Opens the file that dwz created. @id is its build-id, from .gnu_debugaltlink of another
 * file. */
int pm_debug_file_alt(struct pm_elf_image *out, const void *id, size_t id_len,
		      const struct pm_symbol_options *options);

/* ---- symbol tables ------------------------------------------------------------------- */

/* The symbol of one wanted address. If name is NULL, there is none, but the start may be
 * known. */
struct pm_elf_symbol {
	const char *name; /* borrowed from the image, with its version */
	uint64_t start, end; /* [start, end); end == start or 0: the size is unknown */
	bool plt; /* an entry of the PLT that leads to the symbol */
};

/* Returns false if the file has a symbol table that extends beyond its end. */
bool pm_symtab_readable(const struct pm_elf_image *image);
/*
 * Fills @symbols (wanted->len elements, zeroed) from the tables of @image and, if it has
 * no .symtab, from those of @debug (may be NULL).
 */
int pm_symtab_resolve(const struct pm_elf_image *image, const struct pm_elf_image *debug,
		      const struct pm_wanted *wanted, struct pm_elf_symbol *symbols);
/* The same from the relocations of the PLT, for addresses that have no symbol yet. */
int pm_plt_resolve(const struct pm_elf_image *image, const struct pm_elf_image *debug,
		   const struct pm_wanted *wanted, struct pm_elf_symbol *symbols);

/* For @symbols that have neither a name nor a start, sets the start and end of their
 * functions from .eh_frame. */
int pm_starts_resolve(const struct pm_elf_image *image, const struct pm_wanted *wanted,
		      struct pm_elf_symbol *symbols);

/* ---- debug information --------------------------------------------------------------- */

/* What DWARF says about one wanted address. */
struct pm_dwarf_answer {
	size_t first, len; /* the chain, innermost first, in pm_dwarf_answers.functions */
	uint64_t entry; /* entry address of the outermost function; valid if len > 0 */
	const char *file; /* from the line table, as is the line */
	uint32_t line;
};

struct pm_dwarf_answers {
	struct pm_dwarf_answer *of; /* wanted->len elements, zeroed by the caller */
	PM_VEC(struct pm_symbol_function) functions;
	bool limited; /* some information was not read, because of its cost */
};

struct pm_dwarf;

/*
 * Opens the debug information and decompresses it, whether or not there is any. @image
 * says where code is, and @debug (which may be the same) has the DWARF; the result
 * borrows both. Returns 0 or -ENOMEM.
 */
int pm_dwarf_load(const struct pm_elf_image *image, const struct pm_elf_image *debug,
		  const struct pm_symbol_options *options, struct pm_dwarf **out);
/* Reads everything that pm_dwarf_resolve() needs independently of the addresses. */
void pm_dwarf_read_ahead(struct pm_dwarf *dwarf);
void pm_dwarf_free(struct pm_dwarf *dwarf);
/*
 * Fills @answers. Damaged debug information only reduces the number of answers. Returns 0
 * or -ENOMEM.
 */
int pm_dwarf_resolve(struct pm_dwarf *dwarf, const struct pm_wanted *wanted,
		     const struct pm_symbol_options *options, struct pm_texts *texts,
		     struct pm_dwarf_answers *answers);
/*
 * Uses the function table of a Go program: fills those @symbols that have no name, and
 * those @answers that are empty. If @answers is NULL, fills only symbols. Returns 0 or
 * -ENOMEM.
 */
int pm_go_resolve(const struct pm_elf_image *image, const struct pm_wanted *wanted,
		  struct pm_elf_symbol *symbols, struct pm_texts *texts,
		  struct pm_dwarf_answers *answers);
/* Whether @image has any debug information. */
bool pm_dwarf_present(const struct pm_elf_image *image);
