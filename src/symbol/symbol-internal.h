/* SPDX-License-Identifier: MIT */
/* What the parts of the symboliser share. See symbol.c for how they work together. */
#pragma once

#include "pm/symbol.h"

#include <elfutils/libdw.h>
#include <gelf.h>
#include <libelf.h>

struct pm_range {
	uint64_t start, end; /* [start, end) */
};

/* ---- wanted addresses ---------------------------------------------------------------- */

/* Sorted, ascending, distinct. Borrowed. */
struct pm_wanted {
	const uint64_t *addresses;
	size_t len;
};

/* Index of the first wanted address that is not below @address. */
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

/* ---- texts --------------------------------------------------------------------------- */

/* Each text once, at an address that stays. Zero-initialised is empty. */
struct pm_texts {
	PM_VEC(char *) blocks;
	PM_VEC(const char *) rows;
	struct pm_index index;
	size_t block_len, block_cap; /* of the last block */
};

/* A printable copy of at most @len bytes at @text, or NULL (also when memory ends). */
const char *pm_texts_add(struct pm_texts *texts, const char *text, size_t len);
void pm_texts_release(struct pm_texts *texts);

/* Symbol and function names beyond this are cut. */
enum {
	PM_SYMBOL_TEXT_MAX = 16384
};

/* Demangled when it is mangled. */
const char *pm_texts_add_name(struct pm_texts *texts, const char *name, size_t len);

/* ---- ELF images ---------------------------------------------------------------------- */

/*
 * An ELF file or image, mapped. Zero-initialised is closed. An open one stays at its address
 * and with its thread.
 */
struct pm_elf_image {
	Elf *elf;
	void *map; /* private: what libelf writes to it stays here */
	size_t map_len; /* with a page of zeros behind the file */
	size_t file_len;
	PM_VEC(struct pm_range) code; /* executable sections, ascending */
	struct pm_elf_image *next; /* of guard.c */
	bool is_guarded;
};

/* -ENOEXEC when it is no ELF file. @copy: as struct pm_symbol_options says. */
int pm_elf_image_open(struct pm_elf_image *image, int fd, bool copy);
/* Copies @bytes. */
int pm_elf_image_open_memory(struct pm_elf_image *image, const void *bytes, size_t len);
void pm_elf_image_close(struct pm_elf_image *image);

/* From here to there, pages of @image that the file has lost read as zeros. */
void pm_guard_add(struct pm_elf_image *image);
void pm_guard_remove(struct pm_elf_image *image);

/* The executable section that @address lies in, or NULL. */
const struct pm_range *pm_elf_image_code(const struct pm_elf_image *image,
					 uint64_t address);
/* The first section whose name is one of two (@other may be NULL) and has bytes. */
Elf_Scn *pm_elf_image_section(const struct pm_elf_image *image, const char *name,
			      const char *other, GElf_Shdr *shdr);
/* NULL when it has none. @ret is borrowed from the image. */
ssize_t pm_elf_image_build_id(const struct pm_elf_image *image, const void **ret);

/*
 * The separate debug file of @image, which is the file behind @fd (-1: in memory only), by
 * build-id or .gnu_debuglink. -ENOENT when there is none that fits.
 */
int pm_debug_file_open(struct pm_elf_image *ret, const struct pm_elf_image *image, int fd,
		       const struct pm_symbol_options *options);
/* The file that dwz made, whose build-id is in another's .gnu_debugaltlink. */
int pm_debug_file_alt(struct pm_elf_image *ret, const void *id, size_t id_len,
		      const struct pm_symbol_options *options);

/* ---- symbol tables ------------------------------------------------------------------- */

/* The symbol for one wanted address; name NULL: none, but it may be known where it begins. */
struct pm_elf_symbol {
	const char *name; /* borrowed from the image, with its version */
	uint64_t start, end; /* [start, end); end == start or 0: it has no size */
	bool plt; /* an entry of the PLT that leads to it */
};

/* False: it has a symbol table that goes beyond its end. */
bool pm_symtab_readable(const struct pm_elf_image *image);
/*
 * Fills @symbols (of wanted->len, zeroed) from the tables of @image and, where it has no
 * .symtab, of @debug (may be NULL).
 */
int pm_symtab_resolve(const struct pm_elf_image *image, const struct pm_elf_image *debug,
		      const struct pm_wanted *wanted, struct pm_elf_symbol *symbols);
/* The same from the relocations of the PLT, for addresses without a symbol. */
int pm_plt_resolve(const struct pm_elf_image *image, const struct pm_elf_image *debug,
		   const struct pm_wanted *wanted, struct pm_elf_symbol *symbols);

/* Gives @symbols without a name and a start those that .eh_frame has for their functions, and
 * the ends. */
int pm_starts_resolve(const struct pm_elf_image *image, const struct pm_wanted *wanted,
		      struct pm_elf_symbol *symbols);

/* ---- debug information --------------------------------------------------------------- */

/* What DWARF says about one wanted address. */
struct pm_dwarf_answer {
	size_t first, len; /* the chain, innermost first, in pm_dwarf_answers.functions */
	uint64_t entry; /* of the outermost function, valid with len > 0 */
	const char *file; /* by the line table */
	uint32_t line;
};

struct pm_dwarf_answers {
	struct pm_dwarf_answer *of; /* of wanted->len, zeroed by the caller */
	PM_VEC(struct pm_symbol_function) functions;
	bool limited; /* not all was read, for what that would cost */
};

struct pm_dwarf;

/*
 * Opens and inflates the debug information, whether there is any or not. @image says where
 * code lies, @debug holds the DWARF (may be the same); the result borrows both. 0 or -ENOMEM.
 */
int pm_dwarf_load(const struct pm_elf_image *image, const struct pm_elf_image *debug,
		  const struct pm_symbol_options *options, struct pm_dwarf **ret);
/* Reads what pm_dwarf_resolve() reads for any addresses. */
void pm_dwarf_read_ahead(struct pm_dwarf *dwarf);
void pm_dwarf_free(struct pm_dwarf *dwarf);
/*
 * Whatever is broken in the debug information only makes answers fewer. Returns 0 or
 * -ENOMEM.
 */
int pm_dwarf_resolve(struct pm_dwarf *dwarf, const struct pm_wanted *wanted,
		     const struct pm_symbol_options *options, struct pm_texts *texts,
		     struct pm_dwarf_answers *answers);
/*
 * From the function table of a Go program: fills @symbols that have no name, and answers that
 * are empty. Without @answers it does symbols only. 0 or -ENOMEM.
 */
int pm_go_resolve(const struct pm_elf_image *image, const struct pm_wanted *wanted,
		  struct pm_elf_symbol *symbols, struct pm_texts *texts,
		  struct pm_dwarf_answers *answers);
/* Whether there is any. */
bool pm_dwarf_present(const struct pm_elf_image *image);
