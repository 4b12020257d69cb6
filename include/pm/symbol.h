/* SPDX-License-Identifier: MIT */
/*
 * Addresses to functions, files, lines and inline chains, in batches: all addresses of a
 * module at once, so that symbol tables and debug information are walked once.
 */
#pragma once

#include "pm/base.h"

/* One level of the chain at an address. Texts are borrowed from the symboliser's call. */
struct pm_symbol_function {
	const char *name; /* demangled, printable; NULL if unknown */
	const char *file; /* of the place in this function, printable; NULL if unknown */
	uint32_t line; /* 1-based; 0 if unknown, also with a file */
	/* Where a function without a name begins, svma; 0: unknown. Only of the outermost. */
	uint64_t start;
};

/*
 * The chain of addresses[index], innermost first; functions[0..len-2] are inlined into the
 * one behind them. len 0: nothing is known about that address. Return 0, or a negative errno
 * to stop.
 */
typedef int (*pm_symbol_emit_fn)(void *user, size_t index,
				 const struct pm_symbol_function *functions, size_t len);

/* Separate debug files of one module, opened beforehand; -1: there is none. */
struct pm_symbol_files {
	int debug;
	int alt; /* to which dwz moved what several files share */
};

struct pm_symbol_options {
	bool inlines; /* give inlined functions of their own; else only the outermost */
	bool lines; /* read line tables */
	/* Tell where functions begin that have no name, by .eh_frame. Such an address has a chain
	 * then, of one function of which nothing else needs to be known. */
	bool starts;
	/*
	 * Files are read into memory as a whole, instead of being mapped under a handler for
	 * SIGBUS: for a process whose signals belong to somebody else.
	 */
	bool copy_files;
	const char *debug_dir; /* for separate debug files, NULL: /usr/lib/debug */
	/* A process in whose root those are looked for before ours, and the path of the file
	 * there. 0 and NULL: none. */
	pid_t pid;
	const char *path;
	/* What pm_symbol_files_find() found, borrowed: then no file is opened at all. NULL:
	 * they are looked for. */
	const struct pm_symbol_files *files;
	/* Set when debug information was not, or not all, read, for what that would cost: it
	 * inflates beyond reason, has too many units, or took too long. May be NULL. */
	bool *limited;
	/* Set to whether a symbol table or a separate debug file is there and cannot be read,
	 * so that names may be missing; may be NULL. */
	bool *damaged;
};

/*
 * Looks for them with small reads only, no library: for a process that may open files, on
 * behalf of one that may not. @crc_bytes_left as in struct pm_debug_search.
 */
void pm_symbol_files_find(int fd, const struct pm_symbol_options *options,
			  uint64_t *crc_bytes_left, struct pm_symbol_files *ret);
void pm_symbol_files_release(struct pm_symbol_files *files);

/*
 * Resolves @len svma of the ELF file behind @fd (borrowed), which are sorted, ascending and
 * distinct; calls @emit once for each, in order. Uses DWARF (in the file, or in a separate
 * debug file found by build-id or .gnu_debuglink), .symtab, .dynsym. The outermost function
 * has its ELF symbol's name where that starts at the function, as pm_demangle() writes it and
 * without its version; others have DWARF's, with classes and namespaces. Files are absolute
 * where the compiler left a way to tell, without `.` and `..`. PLT entries are `name@plt`.
 * A broken file gives what can still be had: unresolved addresses are emitted with len 0.
 * -ENOEXEC when it is no ELF; or what @emit returned.
 */
int pm_symbols_resolve(int fd, const uint64_t *addresses, size_t len,
		       const struct pm_symbol_options *options, pm_symbol_emit_fn emit,
		       void *user, struct pm_error *err);
/*
 * The same in two steps. The first reads all that does not depend on the addresses, as
 * compressed debug information; what @options points to has to stay. The second is called
 * once.
 */
struct pm_symbols;
int pm_symbols_open(int fd, const struct pm_symbol_options *options,
		    struct pm_symbols **ret, struct pm_error *err);
int pm_symbols_answer(struct pm_symbols *symbols, const uint64_t *addresses, size_t len,
		      pm_symbol_emit_fn emit, void *user, struct pm_error *err);
void pm_symbols_free(struct pm_symbols *symbols);
/* The same for an ELF image in memory (the vDSO). */
int pm_symbols_resolve_memory(const void *image, size_t image_len,
			      const uint64_t *addresses, size_t len,
			      const struct pm_symbol_options *options,
			      pm_symbol_emit_fn emit, void *user, struct pm_error *err);

/*
 * C++ (Itanium ABI) and Rust (legacy and v0) names as people write them; a text to free, or
 * NULL when @mangled is neither (then use it as it is). For a table, not for a compiler:
 * without parameters and return types (`ns::f<int>`, `operator()`, `main::{lambda(int)#1}`),
 * Rust without its hashes; what the compiler appended to a copy or part of a function stays
 * (`f<int>.constprop.0`, `.cold`), but not ThinLTO's `.llvm.123`. Printable. Time and memory
 * are bounded for hostile names: over 4096 bytes they are no names, and a result ends with
 * `…` after 16 KiB.
 */
char *pm_demangle(const char *mangled);
/* The same with the parameters of C++ functions, to tell overloads apart: `ns::f(int)`. */
char *pm_demangle_full(const char *mangled);

/* ---- from names to places ------------------------------------------------------------ */

enum {
	PM_SYMBOL_LINE_PLACES_MAX = 1 << 16,
};

/* Where a statement of a line begins. */
struct pm_symbol_line {
	uint64_t address; /* svma */
	uint32_t line; /* the line asked for, or the next one that has code */
	const char *file; /* as in struct pm_symbol_function; borrowed during the call */
};
/* Negative stops. */
typedef int (*pm_symbol_line_fn)(void *user, const struct pm_symbol_line *place);

/*
 * Calls @emit for each place where the line tables let a statement of @line of @source begin,
 * by ascending address: one line can be at many, as inlined functions and loops are. @source
 * is the end of the file's path (`dir/src.c`, `src.c`) or all of it. Where @line has no code
 * the next line of that file that has some is taken.
 * 0 when there was at least one; -ENODATA without line tables; -ENOENT when @source is none of
 * the sources (near names are told) or has no code from @line on; -EINVAL when @source means
 * several files; -E2BIG over PM_SYMBOL_LINE_PLACES_MAX places; -ENOEXEC when it is no ELF; or
 * what @emit returned.
 */
int pm_symbols_find_line(int fd, const struct pm_symbol_options *options,
			 const char *source, uint32_t line, pm_symbol_line_fn emit,
			 void *user, struct pm_error *err);

/* A run of code that some lines made. */
struct pm_symbol_span {
	uint64_t low, high; /* svma [low, high) */
	bool moved; /* it is no statement of theirs, but what was moved away from one */
	bool lent; /* no statement, either, but of other lines: what follows theirs */
	const char *file; /* as in struct pm_symbol_line */
};
/* Negative stops. */
typedef int (*pm_symbol_span_fn)(void *user, const struct pm_symbol_span *span);

/*
 * Calls @emit for each run of code that the lines @from to @to (not 0) of @source made, by
 * ascending address. What of other lines was moved in behind it is lent.
 * Errors as those of pm_symbols_find_line(); -ENOENT also when these lines have no code.
 */
int pm_symbols_find_lines(int fd, const struct pm_symbol_options *options,
			  const char *source, uint32_t from, uint32_t to,
			  pm_symbol_span_fn emit, void *user, struct pm_error *err);

/* One place where a function was inlined. All is borrowed during the call. */
struct pm_symbol_inlined {
	const char *name; /* as in struct pm_symbol_function */
	const char *linkage; /* mangled; NULL: it has no other name */
	const char *call_file; /* where it would have been called; NULL: unknown */
	uint32_t call_line; /* 0: unknown */
	size_t len; /* of its ranges; 0: nothing of it is left */
	const struct pm_symbol_range {
		uint64_t low, high; /* svma [low, high) */
	} * ranges;
};
/* Whether a function is looked for; @linkage may be NULL. Asked once for each unit that has
 * inlined it. */
typedef bool (*pm_symbol_wanted_fn)(void *user, const char *linkage, const char *name);
/* Negative stops. */
typedef int (*pm_symbol_inlined_fn)(void *user, const struct pm_symbol_inlined *place);

/*
 * Calls @emit for each place where a function that @wanted says yes to was inlined. @word: a
 * text that is in every such name, so that files without it need not be read; NULL: none.
 * 0, also without any; -ENODATA without debug information; -ENOEXEC when it is no ELF; or what
 * @emit returned.
 */
int pm_symbols_find_inlined(int fd, const struct pm_symbol_options *options,
			    const char *word, pm_symbol_wanted_fn wanted,
			    pm_symbol_inlined_fn emit, void *user, struct pm_error *err);

/* Where the function at addresses[index] is declared. @inlined: the compiler has put it into
 * others, too (DW_AT_inline), perhaps without leaving an instruction. Negative stops. */
typedef int (*pm_symbol_declared_fn)(void *user, size_t index, const char *file,
				     uint32_t line, bool inlined);
/*
 * Calls @emit for those of the @len svma at @addresses, which are sorted, ascending and distinct,
 * that functions begin at and of which debug information knows the declaration. Returns as
 * pm_symbols_find_inlined().
 */
int pm_symbols_find_declared(int fd, const struct pm_symbol_options *options,
			     const uint64_t *addresses, size_t len,
			     pm_symbol_declared_fn emit, void *user,
			     struct pm_error *err);

/* ---- the code of functions ---------------------------------------------------------- */

/* A function as the symbol tables bound it, or .eh_frame. All is borrowed during the call. */
struct pm_symbol_code {
	uint64_t start, end; /* [start, end) svma */
	bool open_end; /* the symbol has no size: up to the next one, or its section's end */
	/* As in struct pm_symbol_function; of an entry of the PLT, what it leads to. NULL: by
	 * .eh_frame. */
	const char *name;
	uint16_t machine; /* EM_* (gABI) */
	bool is_64;
	const uint8_t *bytes; /* from start on */
	size_t len; /* of them; less than end - start where the file ends before */
};
/* Negative stops. */
typedef int (*pm_symbol_code_fn)(void *user, const struct pm_symbol_code *code);

/*
 * Calls @emit once for each function that holds some of the @len svma at @addresses, which
 * are sorted, ascending and distinct. Addresses that nothing holds, or for which the file
 * has no bytes, are passed over; so are those behind the first 256 symbols without a size.
 * Functions come by ascending address, but may overlap. 0; -ENOEXEC when it is no ELF; or what @emit returned.
 */
int pm_symbols_code(int fd, const uint64_t *addresses, size_t len,
		    const struct pm_symbol_options *options, pm_symbol_code_fn emit,
		    void *user, struct pm_error *err);

/* Where the section @name lies: [low, high) svma. -ENOENT when the file has none of it with bytes,
 * -ENOEXEC when it is no ELF. */
int pm_symbols_section(int fd, const char *name, uint64_t *low, uint64_t *high);

/* ---- code made while running --------------------------------------------------------- */

/* From a place in a function on, up to the next one's: a line of the source. */
struct pm_jit_line {
	uint64_t offset; /* from the function's start; ascending */
	uint32_t line; /* 1-based */
	const char *file; /* printable */
};

/* Who told of a function; the later one of these is to be believed longer. */
enum pm_jit_source {
	PM_JIT_OF_MAP, /* which may be written anew */
	PM_JIT_OF_DUMP,
};

/* A function that a JIT has told of. Borrowed from its table until that changes. */
struct pm_jit_function {
	uint64_t start, len; /* [start, start + len) avma */
	enum pm_jit_source source;
	uint64_t serial; /* of this function, never used again in its table */
	/*
	 * Where a function takes the place of one that was used (pm_jit_table_use()) and had
	 * another name, this is higher: (generation, address) means one name for ever.
	 */
	uint32_t generation;
	const char *name; /* as it was given, printable; NULL: not known for certain */
	/* Where the function begins, when its name says so in the way of V8 or CPython. */
	const char *file; /* NULL: unknown */
	uint32_t line; /* 0: unknown */
	const struct pm_jit_line *lines;
	size_t lines_len;
	/* An .eh_frame (LSB 10.6.1) for this function as if it stood at avma eh_frame_at, and
	 * the code itself; NULL where that is not known. */
	const uint8_t *eh_frame;
	size_t eh_frame_len;
	uint64_t eh_frame_at;
	const uint8_t *code; /* len bytes */
};

/* The functions of one address space by address; what was added last holds. */
struct pm_jit_table;

enum {
	PM_JIT_NAME_MAX = 4096, /* bytes; a longer name ends with `…` */
	PM_JIT_FUNCTIONS_MAX = 1 << 20,
	PM_JIT_GENERATIONS_MAX = 1 << 12, /* names after that are not known for certain */
};
/* Of memory for one table; what would go beyond is counted as left out. */
#define PM_JIT_TABLE_BYTES_MAX ((size_t)256 << 20)

struct pm_jit_table *pm_jit_table_new(void); /* NULL without memory */
void pm_jit_table_free(struct pm_jit_table *table);
/* Forgets all functions; generations go on. */
void pm_jit_table_clear(struct pm_jit_table *table);
/* Forgets what @source told. What another had told of the same places before is gone, too. */
void pm_jit_table_clear_source(struct pm_jit_table *table, enum pm_jit_source source);
/*
 * Copies @function (source, start, len, lines, eh_frame, code) named by the @name_len bytes at @name,
 * which are foreign. 0; -EINVAL when it has no bytes, no name or wraps; -ENOSPC beyond the
 * limits; -ENOMEM.
 */
int pm_jit_table_add(struct pm_jit_table *table, const struct pm_jit_function *function,
		     const char *name, size_t name_len);
/*
 * The function that begins at @from is at @to, too, with the same texts, which are not copied.
 * As for adding, and -ENOENT when none with a name begins there.
 */
int pm_jit_table_move(struct pm_jit_table *table, uint64_t from, uint64_t to);
/* The function at @address, or NULL. */
const struct pm_jit_function *pm_jit_table_find(const struct pm_jit_table *table,
						uint64_t address);
/* The same, and its name at @address has now been given to somebody. */
const struct pm_jit_function *pm_jit_table_use(struct pm_jit_table *table,
					       uint64_t address);
/* The line of the function at avma @address: its own lines', else where it begins. */
void pm_jit_function_place(const struct pm_jit_function *function, uint64_t address,
			   const char **file, uint32_t *line);

struct pm_jit_table_stats {
	size_t functions; /* known now */
	size_t bytes; /* of memory */
	size_t with_eh_frame; /* of the functions known now */
	uint64_t left_out; /* functions, or their names alone, for the limits */
	uint64_t changes; /* rises with each change */
	uint32_t generation; /* in which an address that is not known has had no name */
};
void pm_jit_table_stats(const struct pm_jit_table *table, struct pm_jit_table_stats *ret);

/*
 * Reader of a perf map (linux tools/perf/Documentation/jit-interface.txt): lines `START SIZE
 * name`, numbers in hex. It grows while it is read. Zero-initialised is at the beginning.
 */
struct pm_perf_map {
	uint64_t bad_lines; /* that have another form, or are longer than 16 KiB */
	uint64_t restarts; /* the file was written anew */
	uint64_t offset; /* the rest is private */
	uint8_t tail[64];
	size_t tail_len;
	bool skipping;
};

/*
 * Reads the whole lines that were added to the file behind @fd since the last call, about
 * @max_bytes at most, into @table; a file that was written anew forgets what it told before. A line
 * without its newline waits. 1 when there may be more at once, 0 when all was read; negative
 * errno of reading, -ENOMEM.
 */
int pm_perf_map_read(struct pm_perf_map *map, int fd, struct pm_jit_table *table,
		     size_t max_bytes);

/* Reader of a jitdump (linux tools/perf/Documentation/jitdump-specification.txt). */
struct pm_jitdump;

struct pm_jitdump *pm_jitdump_new(void); /* NULL without memory */
void pm_jitdump_free(struct pm_jitdump *dump);
/*
 * Applies the records in the file behind @fd that were not applied yet and are not younger
 * than @until_ns (CLOCK_MONOTONIC) to @table, in their order; reads about @max_bytes at most.
 * 1 when @max_bytes was reached, 0 when all was read that is there and old enough; and these,
 * which stay: -ENOEXEC when it is no jitdump, -ENOTSUP when it is of a kind that cannot be
 * used here, -EBADMSG when a record is not valid, -ESTALE when it was cut short; @err says
 * why. Negative errno of reading, -ENOMEM.
 */
int pm_jitdump_read(struct pm_jitdump *dump, int fd, struct pm_jit_table *table,
		    uint64_t until_ns, size_t max_bytes, struct pm_error *err);
/* The time of the record that is to be applied next; false while there is no whole one. */
bool pm_jitdump_peek(struct pm_jitdump *dump, int fd, uint64_t *time_ns);
