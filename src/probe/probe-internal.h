/* SPDX-License-Identifier: MIT */
/* Private to this room. resolve.c explains how the files work together. */
#pragma once

#include "pm/probe.h"

/* ---- elf.c: ELF files, by small checked reads ----------------------------------------- */

struct pm_probe_segment { /* of PT_LOAD */
	uint64_t start, end; /* svma [start, end), of the bytes in the file */
	uint64_t offset;
	bool executable, writable;
};

struct pm_probe_section {
	uint32_t name, type, link;
	uint64_t flags, address, offset, size;
};

/* Closed if zero-initialised except for fd -1. */
struct pm_probe_elf {
	int fd; /* borrowed */
	uint64_t size;
	bool is_64;
	uint16_t machine, type;
	uint64_t entry;
	PM_VEC(struct pm_probe_segment) segments;
	PM_VEC(struct pm_probe_section) sections;
	char *names; /* names of sections, NUL-terminated; NULL: none */
	size_t names_len;
	uint64_t dynamic, dynamic_len; /* file offset of PT_DYNAMIC, 0: none */
	bool has_interpreter;
};

/* Returns 0, -ENOEXEC, -ENOMEM or the errno of reading. Skips header tables that are
 * broken or too large. */
int pm_probe_elf_open(struct pm_probe_elf *elf, int fd);
void pm_probe_elf_close(struct pm_probe_elf *elf);
/* Reads @len bytes at @offset and appends a NUL. The caller frees *out. Returns 0;
 * -ENODATA if the file does not have the bytes; -EFBIG if they are more than @max. */
int pm_probe_elf_read(const struct pm_probe_elf *elf, uint64_t offset, uint64_t len,
		      size_t max, char **out);
/* Returns the section of this name, or NULL. */
const struct pm_probe_section *pm_probe_elf_section(const struct pm_probe_elf *elf,
						    const char *name);
/* Returns the segment that contains @address, or NULL. */
const struct pm_probe_segment *pm_probe_elf_segment(const struct pm_probe_elf *elf,
						    uint64_t address);
/* Gets the file offset of the code at @address. Returns false if there is no code. */
bool pm_probe_elf_code(const struct pm_probe_elf *elf, uint64_t address,
		       uint64_t *offset);

/* One row of a symbol table. */
struct pm_probe_symbol {
	const char
		*name; /* NUL-terminated, without its version; borrowed from the tables */
	uint64_t address, size;
	uint8_t type, bind; /* STT_*, STB_* */
	bool defined, dynamic;
};

struct pm_probe_table {
	char *rows, *strings; /* strings NUL-terminated */
	size_t len, strings_len;
	uint64_t budget; /* bytes of names that may still be read */
	bool is_64, dynamic;
};

/* .symtab (from the file, or else from @debug, which may be NULL) and .dynsym. */
struct pm_probe_tables {
	struct pm_probe_table table[2];
	size_t len;
	bool has_symtab;
};

/* Returns 0 (even if there are none), -EFBIG, -ENOMEM or the errno of reading. */
int pm_probe_tables_open(struct pm_probe_tables *tables, const struct pm_probe_elf *elf,
			 const struct pm_probe_elf *debug);
void pm_probe_tables_close(struct pm_probe_tables *tables);
/* Reads row @index. Returns false if it has no usable name. Cuts off versions in
 * place. */
bool pm_probe_table_row(struct pm_probe_table *table, size_t index,
			struct pm_probe_symbol *out);

/* ---- frames.c ---------------------------------------------------------------------------- */

/* Finds the code around @address that one entry of the unwind information covers. */
bool pm_probe_frame_at(const struct pm_probe_elf *elf, uint64_t address,
		       struct pm_probe_piece *out);
/* Finds the start of the first entry at or after @address. */
bool pm_probe_frame_next(const struct pm_probe_elf *elf, uint64_t address, uint64_t *out);
/* Whether the code has a table of exceptions to catch. Also true if that is unknown. */
bool pm_probe_frame_catches(const struct pm_probe_elf *elf, uint64_t address);

/* ---- files.c: the files that FILE means ------------------------------------------------- */

struct pm_probe_file {
	int fd; /* owned */
	char *label; /* the usual short name: libc.so.6 */
	char *path; /* its path, as its owner sees it */
	pid_t pid; /* the process in whose root the path is; 0: ours */
};

struct pm_probe_files {
	PM_VEC(struct pm_probe_file) list;
};
void pm_probe_files_release(struct pm_probe_files *files);
/* Appends the files that @word means, without duplicates. If it returns 0, there is at
 * least one. */
int pm_probe_files_find(struct pm_probe_files *files,
			const struct pm_probe_context *context, const char *word,
			struct pm_error *err);
/* Finds the program that will be run, or a script's interpreter. */
int pm_probe_files_command(struct pm_probe_file *out,
			   const struct pm_probe_context *context, bool *is_script,
			   struct pm_error *err);
void pm_probe_file_release(struct pm_probe_file *file);
/* Whether @word may stand for @name: libc for libc.so.6 and libc-2.31.so. */
bool pm_probe_library_is(const char *name, const char *word);

/* ---- loader.c: libraries, found as ld.so(8) finds them ----------------------------------- */

/* @name: as a program refers to the library; @path: of the file. A result other than 0
 * stops the search. */
typedef int (*pm_probe_library_fn)(void *user, const char *name, const char *path);

/* The architecture that a file must have, and the process whose root is used (0:
 * ours). */
struct pm_probe_abi {
	pid_t pid;
	uint16_t machine; /* EM_* */
	bool is_64;
};

/*
 * Calls @each for the libraries that the program @fd, whose path is @path, needs, and for
 * those that they need, without duplicates. If a library exists in versions for several
 * processors, @each gets all of them, because any could be loaded. Returns the result of
 * @each, 0, or -ENOMEM.
 */
int pm_probe_needed_each(int fd, const char *path, const struct pm_probe_abi *abi,
			 pm_probe_library_fn each, void *user);
/* Calls @each for the libraries in the loader's cache, /etc/ld.so.cache. */
int pm_probe_cache_each(const struct pm_probe_abi *abi, pm_probe_library_fn each,
			void *user);
/* The same for the cache's bytes. */
int pm_probe_cache_parse(const char *bytes, size_t len, const struct pm_probe_abi *abi,
			 pm_probe_library_fn each, void *user);
/* The folders that the loader searches last; NULL-terminated. */
extern const char *const pm_probe_library_dirs[];

/* ---- match.c: names ----------------------------------------------------------------------- */

/* The kind of suffix that a compiler appends to the name of a function that it makes
 * from another one. */
enum pm_probe_copy {
	PM_PROBE_WHOLE, /* none, or that of a complete copy: .constprop.0 */
	PM_PROBE_PART, /* that of a part that was split off: .cold, .part.0 */
};
/* Returns the length of @name without that suffix. */
size_t pm_probe_base_len(const char *name, enum pm_probe_copy *copy);

/* A name or glob as typed, prepared for comparison with many names. */
struct pm_probe_pattern {
	char *text; /* without insignificant spaces */
	char *needle; /* a substring of every mangled name that could match; NULL: none */
	bool is_glob; /* it has glob characters */
	bool with_parameters; /* it has parameters: `f(int)` */
	bool names_copy; /* it has a dot: parts of functions also match */
	uint64_t budget; /* bytes of names that may still be demangled */
	bool exhausted;
};
int pm_probe_pattern_init(struct pm_probe_pattern *pattern, const char *text);
void pm_probe_pattern_release(struct pm_probe_pattern *pattern);
enum pm_probe_comparison {
	PM_PROBE_EQUAL, /* globs, too, are compared literally */
	PM_PROBE_GLOB,
};
bool pm_probe_pattern_matches(struct pm_probe_pattern *pattern, const char *name,
			      enum pm_probe_comparison comparison);
/* Returns the name for display, with parameters if it has them, to be freed by the
 * caller; NULL if out of memory. */
char *pm_probe_pretty(const char *name);

/* ---- meant.c: guesses at names ------------------------------------------------------------ */

/* The functions with names similar to the one typed. */
struct pm_probe_meant {
	struct pm_near_names near; /* .wanted is set by the caller */
	size_t demangled; /* number of names that were demangled */
	char *last; /* the first name whose last part was typed */
	bool several; /* there are other such names */
};
void pm_probe_meant_release(struct pm_probe_meant *meant);
/* Adds all functions of the tables. */
void pm_probe_meant_symbols(struct pm_probe_meant *meant,
			    const struct pm_probe_tables *tables);
/* Returns the only name whose last part was typed, or NULL if there is none or there are
 * several. */
const char *pm_probe_meant_only(const struct pm_probe_meant *meant);

/* ---- places ---------------------------------------------------------------------------------- */

struct pm_probe_place {
	uint64_t address, offset; /* svma; in the file */
	uint64_t semaphore; /* file offset; 0: none */
	char *name; /* is shown after the file's name: `malloc`, `src.c:12` */
	/* For functions: the linker's name and the size; 0: unknown. */
	char *symbol;
	uint64_t size;
};

struct pm_probe_places {
	PM_VEC(struct pm_probe_place) list;
	size_t ifuncs; /* IFUNCs that a glob matched and that were left out */
	size_t parts; /* parts of functions that were left out */
	bool is_ours; /* the code runs in the same mode as this program */
};
void pm_probe_places_release(struct pm_probe_places *places);
/* Appends @place and takes ownership of its strings. -ENOMEM also if its name is NULL. */
static inline int pm_probe_places_add(struct pm_probe_places *places,
				      struct pm_probe_place place)
{
	int ret = -ENOMEM;

	if (place.name)
		ret = pm_vec_push(&places->list, place);

	if (ret < 0) {
		free(place.name);
		free(place.symbol);
	}
	return ret;
}

/* The input of a search for places. */
struct pm_probe_search {
	const struct pm_event_spec *spec;
	const struct pm_probe_context *context;
	const struct pm_probe_file *file;
	const struct pm_probe_elf *elf;
	int debug_fd; /* -1: none */
	struct pm_str *note; /* one line for the user, or empty */
	bool is_region; /* the search is for functions, and not for places of events */
};

/* symbols.c */
int pm_probe_find_symbols(const struct pm_probe_search *search,
			  struct pm_probe_places *places, struct pm_error *err);
/* lines.c */
int pm_probe_find_lines(const struct pm_probe_search *search,
			struct pm_probe_places *places, struct pm_error *err);
/* stapsdt.c */
int pm_probe_find_markers(const struct pm_probe_search *search,
			  struct pm_probe_places *places, struct pm_error *err);
/* data.c: a variable's address in the processes of @context. */
int pm_probe_find_data(const struct pm_probe_context *context,
		       const struct pm_event_spec *spec, uint64_t *address,
		       struct pm_error *err);

/* A marker in .note.stapsdt (sys/sdt.h, SystemTap wiki "UserSpaceProbeImplementation"). */
struct pm_probe_marker {
	uint64_t address, base, semaphore; /* as noted */
	const char *provider, *name, *arguments;
};
/* A negative result stops the search. */
typedef int (*pm_probe_marker_fn)(void *user, const struct pm_probe_marker *marker);
/* Reads the notes up to the first broken one. Returns the result of @each, or 0. */
int pm_probe_markers_each(const char *bytes, size_t len, bool is_64,
			  pm_probe_marker_fn each, void *user);
