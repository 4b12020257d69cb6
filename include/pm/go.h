/* SPDX-License-Identifier: MIT */
/*
 * The function table that every Go program carries (.gopclntab): names, files, lines,
 * inlined calls and frame sizes. The program's own tracebacks need it; stripping
 * therefore keeps it. This room only reads bytes that its caller provides: it opens no
 * file and keeps no state.
 *
 * Layouts: Go's runtime/symtab.go, runtime/runtime2.go (_func, moduledata) and
 * cmd/link/internal/ld/pcln.go; debug/gosym/pclntab.go names the versions as used here.
 */
#pragma once

#include "pm/base.h"

enum {
	PM_GO_LOADS_MAX = 32, /* Go's linker writes 3, others 4 to 8 */
	PM_GO_INLINE_MAX = 64, /* frames at one address; more were never seen */
};

/* The source of the bytes. */
struct pm_go_file {
	/* Returns @len bytes at @offset of the file, which stay valid as long as the
	 * table is used, or NULL if they cannot be read. */
	const uint8_t *(*bytes)(void *user, uint64_t offset, size_t len);
	void *user;
};

enum pm_go_layout {
	PM_GO_1_2, /* up to 1.15; inlined calls are not read */
	PM_GO_1_16, /* and 1.17 */
	PM_GO_1_18, /* and 1.19 */
	PM_GO_1_20, /* and later */
};

struct pm_go_load {
	uint64_t vaddr, offset, filesz;
	uint32_t flags; /* PF_* */
};

/* Holds plain values and needs no release. */
struct pm_go_table {
	struct pm_go_file file;
	struct pm_go_load loads[PM_GO_LOADS_MAX];
	size_t loads_len;
	enum pm_go_layout layout;
	uint16_t machine; /* EM_* */
	uint8_t word_bytes; /* 4 or 8 */
	uint8_t quantum; /* of addresses in the tables: 1 or 4 */
	/* All fields below except functions_len are svma. */
	uint64_t header;
	uint64_t text; /* base of the offsets of code; 0 before 1.18 */
	uint64_t funcdata; /* base of the offsets of functions' data; 0: unknown */
	uint64_t low, high; /* the code that the table describes: [low, high) */
	uint64_t names, units, files, pcs, functions; /* starts of the tables */
	uint64_t functions_len;
};

/*
 * Finds the table by the section's name. In a file without sections, or in a Go program
 * without this section, it searches the segments for a valid header. Fills @out only if
 * it returns 0. Returns -ENOENT if there is no valid table. Needs only a few reads unless
 * it has to search.
 */
int pm_go_open(struct pm_go_table *out, const struct pm_go_file *file);
/* Whether a section of this name marks a file as Go's. */
bool pm_go_is_section(const char *name);

/* A function as described by the table; the numbers are offsets in the table's parts. */
struct pm_go_function {
	uint64_t entry, end; /* svma [entry, end) */
	uint64_t record; /* svma of its entry in the table */
	uint32_t name, sp, file, line, pcdata_len, unit;
	uint8_t flags; /* PM_GO_FLAG_*; 0 before 1.17 */
	uint8_t funcdata_len;
};

enum {
	PM_GO_FLAG_TOP_FRAME = 1, /* outermost of its stack */
	PM_GO_FLAG_SP_WRITE = 2, /* it may switch to another stack */
};

/* Finds the function at @svma. Returns 0, -ENOENT if the table has none there, or
 * -EBADMSG. */
int pm_go_find(const struct pm_go_table *table, uint64_t svma,
	       struct pm_go_function *out);
/* Finds the function with number @index, in ascending order of addresses. Returns 0,
 * -ENOENT or -EBADMSG. */
int pm_go_function_at(const struct pm_go_table *table, uint64_t index,
		      struct pm_go_function *out);
/* Returns the function's name, NUL-terminated and in place, or NULL if it cannot be
 * read. */
const char *pm_go_name(const struct pm_go_table *table,
		       const struct pm_go_function *function);
/*
 * Sets *out to the number of bytes that the stack pointer is below its value at the entry
 * of @function when @svma is executed, not counting the return address that a call
 * pushes. Each step through the table is subtracted from *work_left (@work_left NULL: no
 * limit). Returns 0, -ENOENT, -EBADMSG, or -EDQUOT when no work is left.
 */
int pm_go_stack_bytes(const struct pm_go_table *table,
		      const struct pm_go_function *function, uint64_t svma,
		      uint32_t *work_left, int32_t *out);

/* A function at an address: the one that runs there, or one that it is inlined into. */
struct pm_go_frame {
	const char *name; /* NULL: unknown; in place, as all strings here */
	const char *file; /* NULL: unknown */
	uint32_t line; /* 0: unknown */
};

/*
 * Fills @frames (of PM_GO_INLINE_MAX) with the functions at @svma in @function, innermost
 * first, and returns their number, at least 1. Values that cannot be read are unknown.
 */
size_t pm_go_frames(const struct pm_go_table *table,
		    const struct pm_go_function *function, uint64_t svma,
		    uint32_t *work_left, struct pm_go_frame *frames);
