/* SPDX-License-Identifier: MIT */
/* What the files of this room share and nobody else sees. resolve.c tells how they work
 * together. */
#pragma once

#include "pm/probe.h"

/* ---- elf.c: files as they are, by small checked reads --------------------------------- */

struct pm_probe_segment { /* PT_LOAD */
	uint64_t start, end; /* svma [start, end), of what is in the file */
	uint64_t offset;
	bool executable, writable;
};

struct pm_probe_section {
	uint32_t name, type, link;
	uint64_t flags, address, offset, size;
};

/* Zero-initialised but for fd -1 is closed. */
struct pm_probe_elf {
	int fd; /* borrowed */
	uint64_t size;
	bool is_64;
	uint16_t machine, type;
	uint64_t entry;
	PM_VEC(struct pm_probe_segment) segments;
	PM_VEC(struct pm_probe_section) sections;
	char *names; /* of sections, NUL-terminated; NULL: none */
	size_t names_len;
	uint64_t dynamic, dynamic_len; /* file offset of PT_DYNAMIC, 0: none */
	bool has_interpreter;
};

/* 0, -ENOEXEC, -ENOMEM or the errno of reading. Header tables that are broken or too large
 * are left out. */
int pm_probe_elf_open(struct pm_probe_elf *elf, int fd);
void pm_probe_elf_close(struct pm_probe_elf *elf);
/* @len bytes at @offset with a zero behind them, to free(). -ENODATA when the file does not
 * have them, -EFBIG over @max. */
int pm_probe_elf_read(const struct pm_probe_elf *elf, uint64_t offset, uint64_t len,
		      size_t max, char **ret);
/* NULL: none of this name. */
const struct pm_probe_section *pm_probe_elf_section(const struct pm_probe_elf *elf,
						    const char *name);
/* The segment that holds @address, or NULL. */
const struct pm_probe_segment *pm_probe_elf_segment(const struct pm_probe_elf *elf,
						    uint64_t address);
/* The file offset of code at @address; false when no code is there. */
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
	uint64_t budget; /* bytes of names that may still be looked at */
	bool is_64, dynamic;
};

/* .symtab (of the file or else of @debug, which may be NULL) and .dynsym. */
struct pm_probe_tables {
	struct pm_probe_table table[2];
	size_t len;
	bool has_symtab;
};

/* 0 (also without any), -EFBIG, -ENOMEM or the errno of reading. */
int pm_probe_tables_open(struct pm_probe_tables *tables, const struct pm_probe_elf *elf,
			 const struct pm_probe_elf *debug);
void pm_probe_tables_close(struct pm_probe_tables *tables);
/* Row @index; false when it has no name that could be meant. Versions are cut off in place. */
bool pm_probe_table_row(struct pm_probe_table *table, size_t index,
			struct pm_probe_symbol *ret);

/* ---- frames.c ---------------------------------------------------------------------------- */

/* The code around @address that one entry of the unwinding information is about. */
bool pm_probe_frame_at(const struct pm_probe_elf *elf, uint64_t address,
		       struct pm_probe_piece *ret);
/* Where the first one begins at or behind @address. */
bool pm_probe_frame_next(const struct pm_probe_elf *elf, uint64_t address, uint64_t *ret);
/* Whether it has a table of exceptions to catch; true also when that is not known. */
bool pm_probe_frame_catches(const struct pm_probe_elf *elf, uint64_t address);

/* ---- files.c: whom FILE means ----------------------------------------------------------- */

struct pm_probe_file {
	int fd; /* owned */
	char *label; /* as people call it: libc.so.6 */
	char *path; /* where it is, as whoever has it sees it */
	pid_t pid; /* in whose root, 0: ours */
};

struct pm_probe_files {
	PM_VEC(struct pm_probe_file) list;
};
void pm_probe_files_release(struct pm_probe_files *files);
/* Appends the files that @word means, each once; at least one when it returns 0. */
int pm_probe_files_find(struct pm_probe_files *files,
			const struct pm_probe_context *context, const char *word,
			struct pm_error *err);
/* The program that is to be run, or of a script its interpreter. */
int pm_probe_files_command(struct pm_probe_file *ret,
			   const struct pm_probe_context *context, bool *is_script,
			   struct pm_error *err);
void pm_probe_file_release(struct pm_probe_file *file);
/* Whether @name is what people mean by @word: libc.so.6 and libc-2.31.so by libc. */
bool pm_probe_library_is(const char *name, const char *word);

/* ---- loader.c: libraries, as ld.so(8) searches them ------------------------------------- */

/* @name as a program needs it, @path where it is. Not 0: stops. */
typedef int (*pm_probe_library_fn)(void *user, const char *name, const char *path);

/* What file it has to be, and in whose root (0: ours). */
struct pm_probe_abi {
	pid_t pid;
	uint16_t machine; /* EM_* */
	bool is_64;
};

/* Libraries that the program behind @fd at @path needs, and those that these need, each once.
 * Where a library is there in versions for several processors all of them are told, for any
 * could be taken. Returns what @each returned, 0, or -ENOMEM. */
int pm_probe_needed_each(int fd, const char *path, const struct pm_probe_abi *abi,
			 pm_probe_library_fn each, void *user);
/* Libraries in the loader's cache, /etc/ld.so.cache. */
int pm_probe_cache_each(const struct pm_probe_abi *abi, pm_probe_library_fn each,
			void *user);
/* The same of the cache's bytes. */
int pm_probe_cache_parse(const char *bytes, size_t len, const struct pm_probe_abi *abi,
			 pm_probe_library_fn each, void *user);
/* Folders where the loader looks at last; NULL-terminated. */
extern const char *const pm_probe_library_dirs[];

/* ---- match.c: names ----------------------------------------------------------------------- */

/* What compilers append to the name of what they made of a function. */
enum pm_probe_copy {
	PM_PROBE_WHOLE, /* nothing, or of a copy that does all of it: .constprop.0 */
	PM_PROBE_PART, /* of a part that was split off: .cold, .part.0 */
};
/* The length of @name without it. */
size_t pm_probe_base_len(const char *name, enum pm_probe_copy *copy);

/* A name or glob as typed, ready to be compared with many. */
struct pm_probe_pattern {
	char *text; /* without spaces that mean nothing */
	char *needle; /* a part that is in every mangled name that could match; NULL: none */
	bool is_glob; /* it has characters of one */
	bool with_parameters; /* has some: `f(int)` */
	bool names_copy; /* has a dot: parts of functions are meant, too */
	uint64_t budget; /* bytes of demangled names left */
	bool exhausted;
};
int pm_probe_pattern_init(struct pm_probe_pattern *pattern, const char *text);
void pm_probe_pattern_release(struct pm_probe_pattern *pattern);
/* @glob: compare as one; otherwise the name has to be the same. */
bool pm_probe_pattern_matches(struct pm_probe_pattern *pattern, const char *name,
			      bool glob);
/* A name for people, with parameters where it has them; to free(). NULL without memory. */
char *pm_probe_pretty(const char *name);

/* ---- meant.c: what may have been meant ---------------------------------------------------- */

/* The functions that come near to what was typed. */
struct pm_probe_meant {
	struct pm_near_names near; /* .wanted is given */
	size_t demangled; /* names that had to be */
	char *last; /* the first name whose last part was typed */
	bool several; /* there are others, too */
};
void pm_probe_meant_release(struct pm_probe_meant *meant);
/* Adds all functions of the tables. */
void pm_probe_meant_symbols(struct pm_probe_meant *meant,
			    const struct pm_probe_tables *tables);
/* The only name whose last part was typed; else NULL. */
const char *pm_probe_meant_only(const struct pm_probe_meant *meant);

/* ---- places ---------------------------------------------------------------------------------- */

struct pm_probe_place {
	uint64_t address, offset; /* svma; in the file */
	uint64_t semaphore; /* offset in the file, 0: none */
	char *name; /* behind the file's: `malloc`, `src.c:12` */
	/* Of functions: the linker's name, and how long it is; 0: not known. */
	char *symbol;
	uint64_t size;
};

struct pm_probe_places {
	PM_VEC(struct pm_probe_place) list;
	size_t ifuncs; /* that were left out of a glob's */
	size_t parts; /* parts of functions that were left out */
	bool is_ours; /* code of the mode that this program runs in */
};
void pm_probe_places_release(struct pm_probe_places *places);
/* Appends; takes its texts (a name of NULL: then -ENOMEM). */
int pm_probe_places_add(struct pm_probe_places *places, struct pm_probe_place place);

/* What a search for places works on. */
struct pm_probe_search {
	const struct pm_event_spec *spec;
	const struct pm_probe_context *context;
	const struct pm_probe_file *file;
	const struct pm_probe_elf *elf;
	int debug_fd; /* -1: none */
	struct pm_str *note; /* one line that the user should know, or empty */
	bool is_region; /* functions are looked for, not places of events */
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
/* Negative stops. */
typedef int (*pm_probe_marker_fn)(void *user, const struct pm_probe_marker *marker);
/* Reads the notes; broken ones end it. Returns what @each returned, or 0. */
int pm_probe_markers_each(const char *bytes, size_t len, bool is_64,
			  pm_probe_marker_fn each, void *user);
