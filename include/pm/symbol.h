/* SPDX-License-Identifier: MIT */
/*
 * Resolves addresses to functions, files, lines and inline chains, in batches: all
 * addresses of a module are resolved at once, and its symbol tables and debug information
 * are read only once.
 */
#pragma once

#include "pm/base.h"

/* One level of the chain at an address. The strings are only valid during the
 * callback. */
struct pm_symbol_function {
	const char *name; /* demangled, printable; NULL if unknown */
	const char *file; /* of the place in this function, printable; NULL if unknown */
	uint32_t line; /* 1-based; 0: unknown, also possible with a file */
	/* Start of a function without a name, svma; 0: unknown. Only set for the
	 * outermost one. */
	uint64_t start;
};

/*
 * The chain of addresses[index], innermost first; functions[0..len-2] are inlined into
 * the next one. len 0: nothing is known about that address. Returns 0, or a negative
 * errno to stop.
 */
typedef int (*pm_symbol_emit_fn)(void *user, size_t index,
				 const struct pm_symbol_function *functions, size_t len);

/* Separate debug files of one module, already open; -1: none. */
struct pm_symbol_files {
	int debug;
	int alt; /* the file with the shared data that dwz moved out of several files */
};

struct pm_symbol_options {
	bool inlines; /* return inlined functions as well; otherwise only the outermost */
	bool lines; /* read line tables */
	/* Use .eh_frame to find the start of functions without a name. Such an address
	 * then has a chain of one function; everything except its start may be
	 * unknown. */
	bool starts;
	/*
	 * Read whole files into memory, instead of mapping them under a SIGBUS handler:
	 * for a process in which signals belong to the application.
	 */
	bool copy_files;
	const char *debug_dir; /* for separate debug files, NULL: /usr/lib/debug */
	/* A process in whose root directory debug files are searched for first, before
	 * ours, and the path of the file there. 0 and NULL: none. */
	pid_t pid;
	const char *path;
	/* The result of pm_symbol_files_find(), borrowed: no file is opened then. NULL:
	 * search for the files. */
	const struct pm_symbol_files *files;
	/* Set if some or all debug information was not read because of its cost: it
	 * inflates beyond reason, has too many units, or took too long. May be NULL. */
	bool *limited;
	/* Set to whether a symbol table or a separate debug file exists but cannot be
	 * read, which means that names may be missing. May be NULL. */
	bool *damaged;
};

/*
 * Finds the debug files with small reads and without a library: for a process that may
 * open files, on behalf of one that may not. @crc_bytes_left as in struct
 * pm_debug_search.
 */
void pm_symbol_files_find(int fd, const struct pm_symbol_options *options,
			  uint64_t *crc_bytes_left, struct pm_symbol_files *out);
void pm_symbol_files_release(struct pm_symbol_files *files);

/*
 * Resolves the @len svma at @addresses, sorted, ascending and distinct, in the ELF file
 * behind @fd (borrowed). Calls @emit once for each, in order. Uses DWARF (in the file, or
 * in a separate debug file found by build-id or .gnu_debuglink), .symtab and .dynsym.
 *
 * If an ELF symbol starts at the outermost function, the function has the symbol's name,
 * as pm_demangle() writes it and without its version. Other functions have DWARF's name,
 * with classes and namespaces. Files are absolute if the compiler left enough
 * information, and contain no `.` or `..`. PLT entries are `name@plt`.
 *
 * A broken file yields whatever can still be read; unresolved addresses are emitted with
 * len 0. Returns -ENOEXEC if it is not an ELF file, or a negative result of @emit.
 */
int pm_symbols_resolve(int fd, const uint64_t *addresses, size_t len,
		       const struct pm_symbol_options *options, pm_symbol_emit_fn emit,
		       void *user, struct pm_error *err);
/*
 * The same in two steps. The first reads everything that does not depend on the
 * addresses, such as compressed debug information; the objects that @options points to
 * must stay valid. The second may be called only once.
 */
struct pm_symbols;
int pm_symbols_open(int fd, const struct pm_symbol_options *options,
		    struct pm_symbols **out, struct pm_error *err);
int pm_symbols_answer(struct pm_symbols *symbols, const uint64_t *addresses, size_t len,
		      pm_symbol_emit_fn emit, void *user, struct pm_error *err);
void pm_symbols_free(struct pm_symbols *symbols);
/* The same for an ELF image in memory (the vDSO). */
int pm_symbols_resolve_memory(const void *image, size_t image_len,
			      const uint64_t *addresses, size_t len,
			      const struct pm_symbol_options *options,
			      pm_symbol_emit_fn emit, void *user, struct pm_error *err);

/*
 * Demangles C++ (Itanium ABI) and Rust names (legacy and v0) for display in a table.
 * Returns a string for the caller to free, or NULL if @mangled is neither; use it
 * unchanged then.
 *
 * The result has no parameters or return types (`ns::f<int>`, `operator()`,
 * `main::{lambda(int)#1}`), and Rust names have no hashes. A suffix that the compiler
 * added for a copy or part of a function is kept (`f<int>.constprop.0`, `.cold`), but
 * ThinLTO's `.llvm.123` is removed. The result is printable. Time and memory are bounded
 * for hostile names: strings over 4096 bytes are not demangled, and a result is cut after
 * 16 KiB and ends with `…`.
 */
char *pm_demangle(const char *mangled);
/* The same with the parameters of C++ functions, which distinguish overloads:
 * `ns::f(int)`. */
char *pm_demangle_full(const char *mangled);

/* ---- from names to places ------------------------------------------------------------ */

enum {
	PM_SYMBOL_LINE_PLACES_MAX = 1 << 16,
};

/* The start of a statement of a line. */
struct pm_symbol_line {
	uint64_t address; /* svma */
	uint32_t line; /* the line asked for, or the next one that has code */
	const char *file; /* as in struct pm_symbol_function; valid during the callback */
};
/* A negative result stops the search. */
typedef int (*pm_symbol_line_fn)(void *user, const struct pm_symbol_line *place);

/*
 * Calls @emit, in ascending order, for each address where, according to the line tables,
 * a statement of @line of @source starts. A line can have many, for example in inlined
 * functions and loops. @source is the end of the file's path (`dir/src.c`, `src.c`) or
 * the whole path. If @line has no code, the next line of that file with code is used.
 *
 * Returns 0 if there was at least one; -ENODATA: no line tables; -ENOENT: @source is not
 * among the sources (the message lists similar names), or has no code from @line on;
 * -EINVAL: @source matches several files; -E2BIG: more than PM_SYMBOL_LINE_PLACES_MAX
 * places; -ENOEXEC: not an ELF file; or a negative result of @emit.
 */
int pm_symbols_find_line(int fd, const struct pm_symbol_options *options,
			 const char *source, uint32_t line, pm_symbol_line_fn emit,
			 void *user, struct pm_error *err);

/* A run of code that some lines produced. */
struct pm_symbol_span {
	uint64_t low, high; /* svma [low, high) */
	bool moved; /* not a statement of these lines, but code moved away from one */
	bool lent; /* code of other lines that follows theirs; no statement either */
	const char *file; /* as in struct pm_symbol_line */
};
/* A negative result stops the search. */
typedef int (*pm_symbol_span_fn)(void *user, const struct pm_symbol_span *span);

/*
 * Calls @emit, in ascending order, for each run of code that the lines @from to @to (not
 * 0) of @source produced. Code of other lines that was moved to the end of such a run is
 * `lent`. Fails like pm_symbols_find_line(), with -ENOENT also if these lines have no
 * code.
 */
int pm_symbols_find_lines(int fd, const struct pm_symbol_options *options,
			  const char *source, uint32_t from, uint32_t to,
			  pm_symbol_span_fn emit, void *user, struct pm_error *err);

/* One place where a function was inlined. Everything is only valid during the
 * callback. */
struct pm_symbol_inlined {
	const char *name; /* as in struct pm_symbol_function */
	const char *linkage; /* mangled; NULL: it has no other name */
	const char *call_file; /* of the inlined call; NULL: unknown */
	uint32_t call_line; /* 0: unknown */
	size_t len; /* number of ranges; 0: none of its code is left */
	const struct pm_symbol_range {
		uint64_t low, high; /* svma [low, high) */
	} * ranges;
};
/* Whether a function is searched for; @linkage may be NULL. Called once for each unit
 * that has inlined it. */
typedef bool (*pm_symbol_wanted_fn)(void *user, const char *linkage, const char *name);
/* A negative result stops the search. */
typedef int (*pm_symbol_inlined_fn)(void *user, const struct pm_symbol_inlined *place);

/*
 * Calls @emit for each place where a function that @wanted accepts was inlined. @word: a
 * string that is in every such name; files without it are not read. NULL: none. Returns
 * 0, also if there was none; -ENODATA: no debug information; -ENOEXEC: not an ELF file;
 * or a negative result of @emit.
 */
int pm_symbols_find_inlined(int fd, const struct pm_symbol_options *options,
			    const char *word, pm_symbol_wanted_fn wanted,
			    pm_symbol_inlined_fn emit, void *user, struct pm_error *err);

/* The declaration of the function at addresses[index]. @inlined: the compiler has also
 * inlined it (DW_AT_inline), possibly without leaving an instruction. A negative result
 * stops the search. */
typedef int (*pm_symbol_declared_fn)(void *user, size_t index, const char *file,
				     uint32_t line, bool inlined);
/*
 * Calls @emit for those of the @len svma at @addresses (sorted, ascending, distinct) at
 * which a function starts whose declaration is in the debug information. Returns like
 * pm_symbols_find_inlined().
 */
int pm_symbols_find_declared(int fd, const struct pm_symbol_options *options,
			     const uint64_t *addresses, size_t len,
			     pm_symbol_declared_fn emit, void *user,
			     struct pm_error *err);

/* ---- the code of functions ---------------------------------------------------------- */

/* A function with its bounds from the symbol tables or .eh_frame. Everything is only
 * valid during the callback. */
struct pm_symbol_code {
	uint64_t start, end; /* [start, end) svma */
	bool open_end; /* the symbol has no size: up to the next one, or its section's end */
	/* As in struct pm_symbol_function; for a PLT entry, the function that it jumps
	 * to. NULL: found by .eh_frame. */
	const char *name;
	uint16_t machine; /* EM_* (gABI) */
	bool is_64;
	const uint8_t *bytes; /* from start on */
	size_t len; /* of bytes; less than end - start if the file ends earlier */
};
/* A negative result stops the search. */
typedef int (*pm_symbol_code_fn)(void *user, const struct pm_symbol_code *code);

/*
 * Calls @emit once for each function that contains some of the @len svma at @addresses,
 * which are sorted, ascending and distinct. Skips addresses that are in no function or
 * whose bytes are not in the file, and symbols without a size after the first 256.
 * Functions come by ascending address, but may overlap. Returns 0; -ENOEXEC: not an ELF
 * file; or a negative result of @emit.
 */
int pm_symbols_code(int fd, const uint64_t *addresses, size_t len,
		    const struct pm_symbol_options *options, pm_symbol_code_fn emit,
		    void *user, struct pm_error *err);

/* Finds the section @name: [low, high) svma. -ENOENT: the file has no such section with
 * bytes; -ENOEXEC: not an ELF file. */
int pm_symbols_section(int fd, const char *name, uint64_t *low, uint64_t *high);

/* ---- code generated at run time ------------------------------------------------------ */

/* A source line, valid from this offset in a function up to the next line's. */
struct pm_jit_line {
	uint64_t offset; /* from the function's start; ascending */
	uint32_t line; /* 1-based */
	const char *file; /* printable */
};

/* The source of a function's description. In ascending order of how long a description
 * stays valid. */
enum pm_jit_source {
	PM_JIT_OF_MAP, /* which may be rewritten */
	PM_JIT_OF_DUMP,
};

/* A function that a JIT has described. Borrowed from its table until the table
 * changes. */
struct pm_jit_function {
	uint64_t start, len; /* [start, start + len) avma */
	enum pm_jit_source source;
	uint64_t serial; /* of this function; never reused in its table */
	/*
	 * Rises when a function replaces one that was used (pm_jit_table_use()) under
	 * another name. Therefore (generation, address) always means the same name.
	 */
	uint32_t generation;
	const char *name; /* as the JIT gave it, printable; NULL: uncertain */
	/* The function's start in the source, if V8 or CPython encoded it in the name. */
	const char *file; /* NULL: unknown */
	uint32_t line; /* 0: unknown */
	const struct pm_jit_line *lines;
	size_t lines_len;
	/* An .eh_frame (LSB 10.6.1) for this function, valid at avma eh_frame_at, and the
	 * code itself; NULL: unknown. */
	const uint8_t *eh_frame;
	size_t eh_frame_len;
	uint64_t eh_frame_at;
	const uint8_t *code; /* len bytes */
};

/* The functions of one address space by address; later ones replace earlier ones. */
struct pm_jit_table;

enum {
	PM_JIT_NAME_MAX = 4096, /* bytes; a longer name ends with `…` */
	PM_JIT_FUNCTIONS_MAX = 1 << 20,
	PM_JIT_GENERATIONS_MAX = 1 << 12, /* beyond it, names are not known for certain */
};
/* Memory for one table; functions that would exceed it are counted as left out. */
#define PM_JIT_TABLE_BYTES_MAX ((size_t)256 << 20)

/* The memory that several tables share. The caller sets @max, the tables count @bytes. */
struct pm_jit_budget {
	size_t bytes, max;
};

/* Returns NULL if out of memory. @budget must outlive the table; if it is NULL, only the
 * limits of one table apply. */
struct pm_jit_table *pm_jit_table_new(struct pm_jit_budget *budget);
void pm_jit_table_free(struct pm_jit_table *table);
/* Removes all functions; generations continue. */
void pm_jit_table_clear(struct pm_jit_table *table);
/* Removes all functions from @source. Functions from another source that they replaced do
 * not come back. */
void pm_jit_table_clear_source(struct pm_jit_table *table, enum pm_jit_source source);
/*
 * Copies @function (source, start, len, lines, eh_frame, code) with the @name_len
 * untrusted bytes at @name as its name. Returns 0; -EINVAL: it has no bytes or no name,
 * or it wraps; -ENOSPC: beyond the limits; -ENOMEM.
 */
int pm_jit_table_add(struct pm_jit_table *table, const struct pm_jit_function *function,
		     const char *name, size_t name_len);
/*
 * Makes the function that starts at @from also appear at @to, with the same strings,
 * which are not copied. Returns like pm_jit_table_add(), and -ENOENT if no named function
 * starts at @from.
 */
int pm_jit_table_move(struct pm_jit_table *table, uint64_t from, uint64_t to);
/* Returns the function at @address, or NULL. */
const struct pm_jit_function *pm_jit_table_find(const struct pm_jit_table *table,
						uint64_t address);
/* The same, and records that its name has been used for @address. */
const struct pm_jit_function *pm_jit_table_use(struct pm_jit_table *table,
					       uint64_t address);
/* Finds the source line at avma @address: from the function's own lines, or else from its
 * start. */
void pm_jit_function_place(const struct pm_jit_function *function, uint64_t address,
			   const char **file, uint32_t *line);

struct pm_jit_table_stats {
	size_t functions; /* present now */
	size_t bytes; /* of memory */
	size_t with_eh_frame; /* of the functions present now */
	uint64_t left_out; /* functions, or only their names, over the limits */
	uint64_t changes; /* rises with each change */
	uint32_t generation; /* generation in which an unknown address has had no name */
};
void pm_jit_table_stats(const struct pm_jit_table *table, struct pm_jit_table_stats *out);

/*
 * A reader of a perf map (linux tools/perf/Documentation/jit-interface.txt): lines of the
 * form `START SIZE name`, with hexadecimal numbers. The file may grow between reads. A
 * zero-initialised reader starts at the beginning of the file.
 */
struct pm_perf_map {
	uint64_t bad_lines; /* lines of another form, or longer than 16 KiB */
	uint64_t restarts; /* how often the file was rewritten */
	uint64_t offset; /* this and the members below are private */
	uint8_t tail[64];
	size_t tail_len;
	bool skipping;
};

/*
 * Reads into @table the complete lines that were added to the file behind @fd since the
 * last call, about @max_bytes at most. If the file was rewritten, its earlier functions
 * are removed first. A line without its newline is left for the next call. Returns 1 if
 * there may be more, 0 if all was read; negative errno of reading, or -ENOMEM.
 */
int pm_perf_map_read(struct pm_perf_map *map, int fd, struct pm_jit_table *table,
		     size_t max_bytes);

/* A reader of a jitdump (linux tools/perf/Documentation/jitdump-specification.txt). */
struct pm_jitdump;

struct pm_jitdump *pm_jitdump_new(void); /* NULL: out of memory */
void pm_jitdump_free(struct pm_jitdump *dump);
/*
 * Applies to @table, in order, the records in the file behind @fd that have not been
 * applied and are not younger than @until_ns (CLOCK_MONOTONIC); reads about @max_bytes at
 * most. Returns 1 if @max_bytes was reached; 0 if all records that are complete and old
 * enough were read; negative errno of reading, or -ENOMEM. These errors are permanent,
 * and @err says why: -ENOEXEC: not a jitdump; -ENOTSUP: of a kind that cannot be used
 * here; -EBADMSG: an invalid record; -ESTALE: the file was truncated.
 */
int pm_jitdump_read(struct pm_jitdump *dump, int fd, struct pm_jit_table *table,
		    uint64_t until_ns, size_t max_bytes, struct pm_error *err);
/* Sets *time_ns to the time of the next record to apply. Returns false if there is no
 * complete one. */
bool pm_jitdump_peek(struct pm_jitdump *dump, int fd, uint64_t *time_ns);
