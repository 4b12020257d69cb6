/* SPDX-License-Identifier: MIT */
/*
 * One module, three views: src/proc knows its identity, the unwinder its CFI, and the
 * recorded file its id. A module is opened at the first sample whose process has it
 * mapped, and kept open, so that a file that is deleted later loses neither stacks nor
 * names. If more files would be open than allowed, those that no stack has used for the
 * longest time are closed. A closed file is opened again by its identity when a frame
 * lies in it.
 */
#pragma once

#include "pm/file.h"
#include "pm/proc.h"
#include "pm/unwind.h"
#include "pm/chain-vdso.h"

struct pm_chain_module {
	struct pm_unw_module *unwind; /* NULL: no file, no ELF file, or not accessible */
	/* The open file, from which symbols are read at the end; -1: none. `unwind` owns
	 * it, if there is one. */
	int fd;
	uint32_t file_id; /* PM_FILE_NONE until a frame lies in it */
	bool opened; /* an attempt was made to open it */
	/* The file must be opened when a frame lies in it, because it was closed to make
	 * room or there was no room. If `unwind` is set, it still knows the segments. */
	bool closed;
	uint64_t used; /* modules->stamp of the last stack with a frame in it */
	bool generated; /* generated code: see chain-jit.h */
	int error; /* why a file could not be opened: a negative errno */
	struct pm_chain_gap *gap; /* private */
	bool was_open; /* if true, the file had, when first opened: */
	/* INT64_MIN: the file had changed before it was opened, or its times are
	 * unknown. */
	int64_t mtime_ns;
	uint64_t size;
};

struct pm_chain_modules {
	PM_VEC(struct pm_chain_module) list; /* indexed by the id of struct pm_procs */
	/* The id of struct pm_procs; PM_FILE_NONE: the kernel, or generated code. The
	 * first entry is that of first_file_id. */
	PM_VEC(uint32_t) by_file_id;
	uint32_t first_file_id;
	uint32_t kernel_file_id; /* PM_FILE_NONE until a frame lies in it */
	size_t fds, fds_max; /* the number kept open, and its limit */
	size_t closed_len;
	uint64_t reopened; /* counts files that were opened again: stacks lead further */
	uint64_t stamp; /* counts stacks */
	/* Counts modules that got `unwind` late: cached spaces lack it. */
	uint64_t version;
	uint64_t crc_bytes_left; /* remaining limit for checksums of debug files */
	struct pm_chain_vdso vdso; /* our own; all processes of our kind have the same */
	/* That of 32-bit processes, copied from the first one. */
	struct pm_chain_vdso vdso32;
	/* Cached pages of generated code (live-code.c); NULL: none so far. */
	struct pm_chain_live_page *live_pages;
	/* CLOCK_MONOTONIC; pages that were read before this are read again.
	 * UINT64_MAX: all pages. */
	uint64_t live_since_ns;
	uint32_t live_pages_left; /* remaining limit of pages to read */
	/* Makes tables in a separate thread; NULL: they are made while a sample waits. */
	struct pm_chain_tables *tables;
};

void pm_chain_modules_init(struct pm_chain_modules *modules);
/* Raises this process's limit of open files to its maximum. Call this after the command
 * is forked, because the command has to keep its original limit. */
void pm_chain_modules_raise_limit(struct pm_chain_modules *modules);
/* From now on, a separate thread makes tables that take long. Returns 0 or -ENOMEM. */
int pm_chain_modules_make_tables_aside(struct pm_chain_modules *modules);
/* Returns why there is no such thread although one was needed: a negative errno. 0: there
 * is one, or none was needed. */
int pm_chain_modules_tables_error(const struct pm_chain_modules *modules);
void pm_chain_modules_release(struct pm_chain_modules *modules);
/* Starts another file: no module has an id in it yet. */
void pm_chain_modules_new_file(struct pm_chain_modules *modules);
/* Starts a new generation of the same file: each module gets another id when a frame is
 * in it again. */
void pm_chain_modules_new_generation(struct pm_chain_modules *modules);
/* Closes module @id, which no process has mapped any more. */
void pm_chain_modules_drop(struct pm_chain_modules *modules, uint32_t id);
/* Returns the id of struct pm_procs for @file_id of the current generation; PM_FILE_NONE:
 * the kernel, or generated code. */
uint32_t pm_chain_modules_of_file_id(const struct pm_chain_modules *modules,
				     uint32_t file_id);

/* Opens module @id for the unwinder unless this was already tried. The result is valid
 * until the next call; NULL: out of memory. */
struct pm_chain_module *pm_chain_modules_touch(struct pm_chain_modules *modules,
					       const struct pm_procs *procs, uint32_t id);
/* Notes that a frame of the current stack lies in module @id, which keeps the module open
 * until the next stack. */
void pm_chain_modules_use(struct pm_chain_modules *modules, uint32_t id);
/*
 * Opens the file of touched module @id if it is closed. If there is no room, closes other
 * files: data that the unwinder has read from them must not be in use. Returns true if
 * the module was closed and was tried again, which may have changed it.
 */
bool pm_chain_modules_reopen(struct pm_chain_modules *modules,
			     const struct pm_procs *procs, uint32_t id);
/* Returns the image for a touched module of the vDSO's kind; it is empty if the image
 * could not be obtained. */
const struct pm_chain_vdso *pm_chain_modules_vdso(const struct pm_chain_modules *modules,
						  const struct pm_module *module);
/* Returns the id in the file of touched module @id, and writes the module's line the
 * first time. */
int pm_chain_modules_file_id(struct pm_chain_modules *modules,
			     const struct pm_procs *procs, struct pm_file_writer *writer,
			     uint32_t id, uint32_t *out);
int pm_chain_modules_kernel_id(struct pm_chain_modules *modules,
			       struct pm_file_writer *writer, uint32_t *out);
/* Writes a new module for generated code and returns its id. */
int pm_chain_modules_jit_id(struct pm_chain_modules *modules,
			    struct pm_file_writer *writer, uint32_t *out);
/* Returns the file of a touched module, opened again if it was not kept open, or negative
 * errno. The caller closes it unless it is module->fd. */
int pm_chain_modules_open_file(const struct pm_chain_modules *modules,
			       const struct pm_procs *procs, uint32_t id);
