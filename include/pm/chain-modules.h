/* SPDX-License-Identifier: MIT */
/*
 * One module, three views: the table of src/proc knows its identity, the unwinder its CFI,
 * the file its id. Opened at the first sample that finds it mapped, and kept open, so that
 * deleting the file afterwards costs neither stacks nor names. If more files would be open than
 * may be, those that no stack has used for the longest time are closed. Such a file is opened
 * again by its identity when a frame lies in it.
 */
#pragma once

#include "pm/file.h"
#include "pm/proc.h"
#include "pm/unwind.h"
#include "pm/chain-vdso.h"

struct pm_chain_module {
	struct pm_unw_module *unwind; /* NULL: no file, no ELF, or out of reach */
	int fd; /* of the file, for symbols at the end; -1. Of `unwind`, if there is one */
	uint32_t file_id; /* PM_FILE_NONE until a frame lies in it */
	bool opened; /* was tried */
	/* The file is to be opened when a frame lies in it: it was closed to make room, or
	 * there was none. If `unwind` is there, it knows the segments still. */
	bool closed;
	uint64_t used; /* modules->stamp of the last stack with a frame in it */
	bool generated; /* code that was made while running: see jit.h */
	int error; /* why a file could not be opened: a negative errno */
	struct pm_chain_gap *gap; /* private */
	bool was_open; /* then the file had: */
	/* mtime_ns INT64_MIN: it had changed by then. */
	int64_t mtime_ns;
	uint64_t size;
};

struct pm_chain_modules {
	PM_VEC(struct pm_chain_module) list; /* by the id of struct pm_procs */
	/* The id of struct pm_procs; PM_FILE_NONE: the kernel, or generated code. From
	 * first_file_id on. */
	PM_VEC(uint32_t) by_file_id;
	uint32_t first_file_id;
	uint32_t kernel_file_id; /* PM_FILE_NONE until a frame lies in it */
	size_t fds, fds_max; /* kept open, and how many may be */
	size_t closed_len;
	uint64_t stamp; /* counts stacks */
	/* Counts modules that got an `unwind` late: the views of spaces lack it. */
	uint64_t version;
	uint64_t crc_bytes_left; /* to be read for checksums of debug files */
	struct pm_chain_vdso vdso; /* this process's own, which is everyone's */
	struct pm_chain_vdso vdso32; /* that of 32-bit processes, copied from the first */
	/* Cached pages of generated code (live-code.c); NULL: none so far. */
	struct pm_chain_live_page *live_pages;
	/* CLOCK_MONOTONIC; pages that were read before this are read again.
	 * UINT64_MAX: all pages. */
	uint64_t live_since_ns;
	uint32_t live_pages_left; /* that may still be read */
	/* Makes tables in a thread of its own; NULL: they are made while a sample waits. */
	struct pm_chain_tables *tables;
};

void pm_chain_modules_init(struct pm_chain_modules *modules);
/* Lets this process open as many files as it may; not before the command is forked, for it
 * shall keep the limit that it was given. */
void pm_chain_modules_raise_limit(struct pm_chain_modules *modules);
/* From now on, a separate thread makes tables that take long. 0 or -ENOMEM. */
int pm_chain_modules_make_tables_aside(struct pm_chain_modules *modules);
/* Why there is no such thread though one was needed: a negative errno. 0: there is one, or none was
 * needed. */
int pm_chain_modules_tables_error(const struct pm_chain_modules *modules);
void pm_chain_modules_release(struct pm_chain_modules *modules);
/* No module has an id in the file yet, which is another one than before. */
void pm_chain_modules_new_file(struct pm_chain_modules *modules);
/* The same in the same file: each gets another id when a frame is in it again. */
void pm_chain_modules_new_generation(struct pm_chain_modules *modules);
/* Closes module @id, which nobody has mapped any more. */
void pm_chain_modules_drop(struct pm_chain_modules *modules, uint32_t id);
/* The id of struct pm_procs of a module of the file, which is of this generation;
 * PM_FILE_NONE: the kernel, or generated code. */
uint32_t pm_chain_modules_of_file_id(const struct pm_chain_modules *modules,
				     uint32_t file_id);

/* Opens module @id for the unwinder if that was not tried. Borrowed until the next call;
 * NULL only without memory. */
struct pm_chain_module *pm_chain_modules_touch(struct pm_chain_modules *modules,
					       const struct pm_procs *procs, uint32_t id);
/* Module @id has a frame of the stack that is unwound. It stays open meanwhile. */
void pm_chain_modules_use(struct pm_chain_modules *modules, uint32_t id);
/*
 * Opens the file of touched module @id, if it is closed. Closes others where there is no room:
 * nobody may use what the unwinder has read of them. Whether the module is another one now.
 */
bool pm_chain_modules_reopen(struct pm_chain_modules *modules,
			     const struct pm_procs *procs, uint32_t id);
/* The image of a touched module of the vDSO's kind; an empty one if it could not be had. */
const struct pm_chain_vdso *pm_chain_modules_vdso(const struct pm_chain_modules *modules,
						  const struct pm_module *module);
/* The id in the file of touched module @id; its line is written at the first time. */
int pm_chain_modules_file_id(struct pm_chain_modules *modules,
			     const struct pm_procs *procs, struct pm_file_writer *writer,
			     uint32_t id, uint32_t *ret);
int pm_chain_modules_kernel_id(struct pm_chain_modules *modules,
			       struct pm_file_writer *writer, uint32_t *ret);
/* The id of a new module for generated code. */
int pm_chain_modules_jit_id(struct pm_chain_modules *modules,
			    struct pm_file_writer *writer, uint32_t *ret);
/* The file of a touched module, opened again when it was not kept. To close unless it is
 * module->fd. Negative errno. */
int pm_chain_modules_open_file(const struct pm_chain_modules *modules,
			       const struct pm_procs *procs, uint32_t id);
