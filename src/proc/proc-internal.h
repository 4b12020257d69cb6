/* SPDX-License-Identifier: MIT */
/* Shared by the files of this room. */
#pragma once

#include "pm/proc.h"

/* ---- modules.c ----------------------------------------------------------------------- */

/* The table of modules. Rows never move; only pm_modules_drop() removes them. */
struct pm_modules {
	PM_VEC(struct pm_module *) rows; /* by id; NULL: the id is free */
	PM_VEC(uint32_t) free_ids;
	size_t bytes; /* size of all rows */
	uint64_t refused; /* mappings of files that were beyond PM_MODULES_MAX */
	/* A row that has both a build-id and an inode is indexed by each of them. */
	struct pm_index index;
};

/* Sets the name of the vDSO of a 32-bit task, which is recognized by its start
 * address. */
void pm_module_name_vdso(struct pm_module_identity *identity, uint64_t start);

void pm_modules_release(struct pm_modules *modules);
int64_t pm_modules_intern(struct pm_modules *modules,
			  const struct pm_module_identity *identity);
/* Returns the module's id, or PM_INDEX_NONE if there is none. */
uint32_t pm_modules_find(const struct pm_modules *modules,
			 const struct pm_module_identity *identity);
void pm_modules_retire(struct pm_modules *modules, uint32_t id);
void pm_modules_drop(struct pm_modules *modules, uint32_t id);

/* ---- space.c ------------------------------------------------------------------------- */

enum {
	/* Twice the default of vm.max_map_count. Unmapping is never recorded, so a
	 * mapping stays here until another one replaces it. The limit bounds the cost of
	 * a process that keeps mapping new places. */
	PM_SPACE_MAPS_MAX = 1 << 17,
};

/*
 * Removes [start, end) from existing mappings, and inserts @mapping there unless it is
 * NULL (start and end must be those of @mapping). Returns 1 if that changed something, 0
 * if it did not, or -ENOMEM without any change.
 */
int pm_space_replace(struct pm_space *space, uint64_t start, uint64_t end,
		     const struct pm_mapping *mapping);

/* ---- procs.c ------------------------------------------------------------------------- */

/* Replaces the process's mappings by @space, and takes ownership of it on success. @space
 * was read from @tid, a thread of @pid that has memory. */
int pm_procs_adopt(struct pm_procs *procs, pid_t pid, pid_t tid, struct pm_space *space);

/* ---- maps.c -------------------------------------------------------------------------- */

/*
 * Searches for the module in /proc/PID/maps at the place where it was seen. Returns 0 if
 * a mapping with its device and inode is still there, -ENOENT if not, or the errno of the
 * failed read. Sets @named if the line has the module's path, and does not mark it as
 * deleted.
 */
int pm_maps_find(const struct pm_module *module, bool *named);

/* ---- elf-file.c ---------------------------------------------------------------------- */

/* Returns 0, -ENODATA if the file is too short, or the errno of the read. */
int pm_read_at(int fd, uint64_t offset, void *out, size_t len);

/* The header fields that are needed, for either class. @fd is borrowed. */
struct pm_elf_file {
	int fd;
	bool is_64;
	uint64_t phoff, shoff;
	uint32_t phnum, shnum, phentsize, shentsize, shstrndx;
};

/* A segment or a section. */
struct pm_elf_part {
	uint32_t name, type; /* name: offset in the table of section names */
	uint64_t offset, size, align;
};

enum {
	PM_ELF_BUILD_ID_MAX = 64, /* longer ones are truncated */
};

struct pm_elf_debuglink {
	char name[256]; /* name of the debug file: untrusted text */
	uint32_t crc;
};

/* Returns 0, -ENOEXEC if it is not an ELF file with this byte order, or the errno of the
 * read. */
int pm_elf_file_init(struct pm_elf_file *elf, int fd);
/* Returns 0, -ENODATA if there is none, or the errno of the read. */
int pm_elf_file_segment(const struct pm_elf_file *elf, uint32_t index,
			struct pm_elf_part *out);
int pm_elf_file_section(const struct pm_elf_file *elf, uint32_t index,
			struct pm_elf_part *out);
int pm_elf_file_debuglink(const struct pm_elf_file *elf, struct pm_elf_debuglink *out);

/* Reads the build-id in .gnu_debugaltlink. */
int pm_elf_file_altlink(const struct pm_elf_file *elf, uint8_t id[PM_ELF_BUILD_ID_MAX],
			uint8_t *ret_len);

/* ---- elf-build-id.c ------------------------------------------------------------------ */

/* pm_elf_build_id() without the length limit of the kernel's records. */
int pm_elf_build_id_whole(int fd, uint8_t out[PM_ELF_BUILD_ID_MAX], uint8_t *ret_len);

/* ---- open-file.c --------------------------------------------------------------------- */

/*
 * Returns an O_PATH fd of @path (absolute) as process @pid sees it: symbolic links are
 * resolved inside its root and cannot lead out of it. @pid 0 is this process. On failure,
 * returns a negative errno.
 */
int pm_open_handle(pid_t pid, const char *path);
/* pm_open_handle() below the directory @root, for kernels before 5.6. The path may have
 * no symbolic links at all. */
int pm_open_handle_by_steps(int root, const char *path);
/* Opens the file of an O_PATH fd for reading. Returns -ENOTSUP if it is not a regular
 * file, or -ENXIO if /proc, which is needed for that, is not mounted. */
int pm_open_regular(int handle);

/* ---- kallsyms.c ---------------------------------------------------------------------- */

/* The offset of an entry without a name: text ends here (data starts, or a section's end
 * marker follows). */
#define PM_KALLSYMS_HOLE UINT32_MAX

struct pm_kallsyms_symbol {
	uint64_t address;
	uint32_t name; /* offset in `names`, or PM_KALLSYMS_HOLE */
	uint32_t module; /* offset in `names` */
};

struct pm_kallsyms {
	struct pm_str names; /* each is NUL-terminated */
	PM_VEC(struct pm_kallsyms_symbol)
	symbols; /* sorted by address, without
	                                            * duplicates */
};

/* Whether the "module" in /proc/kallsyms is a real module, or the kernel. */
bool pm_kallsyms_is_permanent(const char *module);
