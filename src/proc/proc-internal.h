/* SPDX-License-Identifier: MIT */
/* What the files of this room share and nobody else sees. */
#pragma once

#include "pm/proc.h"

/* ---- modules.c ----------------------------------------------------------------------- */

/* The table of modules: rows never move, and go away by pm_modules_drop() only. */
struct pm_modules {
	PM_VEC(struct pm_module *) rows; /* by id; NULL: the id is free */
	PM_VEC(uint32_t) free_ids;
	size_t bytes; /* of the rows */
	uint64_t refused; /* mappings of files beyond PM_MODULES_MAX */
	/* A row with both a build-id and an inode is found under either. */
	struct pm_index index;
};

/* Gives the vDSO of a 32-bit task, by where it begins, a name of its own. */
void pm_module_name_vdso(struct pm_module_identity *identity, uint64_t start);

void pm_modules_release(struct pm_modules *modules);
int64_t pm_modules_intern(struct pm_modules *modules,
			  const struct pm_module_identity *identity);
/* PM_INDEX_NONE: it is not there. */
uint32_t pm_modules_find(const struct pm_modules *modules,
			 const struct pm_module_identity *identity);
void pm_modules_retire(struct pm_modules *modules, uint32_t id);
void pm_modules_drop(struct pm_modules *modules, uint32_t id);

/* ---- space.c ------------------------------------------------------------------------- */

enum {
	/* Twice the default of vm.max_map_count. Unmapping is never recorded, so what is
	 * gone stays here until something takes its place; a process that maps ever new
	 * places must not cost ever more. */
	PM_SPACE_MAPS_MAX = 1 << 17,
};

/*
 * Makes room in [start, end) by cutting what is there, and puts @mapping there unless NULL
 * (then start and end are its own). Returns 1 when something changed, 0 when it was like
 * that before, -ENOMEM without any change.
 */
int pm_space_replace(struct pm_space *space, uint64_t start, uint64_t end,
		     const struct pm_mapping *mapping);

/* ---- procs.c ------------------------------------------------------------------------- */

/* Puts @space in the place of the process's mappings and takes it over when it succeeds. It
 * was read of @tid, a thread of @pid that has memory. */
int pm_procs_adopt(struct pm_procs *procs, pid_t pid, pid_t tid, struct pm_space *space);

/* ---- maps.c -------------------------------------------------------------------------- */

/*
 * Looks for the module in /proc/PID/maps where it was seen: 0 when a mapping with its device
 * and inode is still there; @named tells whether that is shown under the module's path, and
 * not as deleted. -ENOENT when something else or nothing is there, or why it cannot be read.
 */
int pm_maps_find(const struct pm_module *module, bool *named);

/* ---- elf-file.c ---------------------------------------------------------------------- */

/* 0, -ENODATA when the file ends before, or the errno of the read. */
int pm_read_at(int fd, uint64_t offset, void *ret, size_t len);

/* The header fields needed, of either class. @fd is borrowed. */
struct pm_elf_file {
	int fd;
	bool is_64;
	uint64_t phoff, shoff;
	uint32_t phnum, shnum, phentsize, shentsize, shstrndx;
};

/* A segment or a section. */
struct pm_elf_part {
	uint32_t name, type; /* name: offset in the table of names; sections only */
	uint64_t offset, size, align;
};

enum {
	PM_ELF_BUILD_ID_MAX = 64, /* longer ones are cut */
};

struct pm_elf_debuglink {
	char name[256]; /* of a file, as it stands there: foreign text */
	uint32_t crc;
};

/* 0, -ENOEXEC when it is no ELF file of this byte order, or the errno of the read. */
int pm_elf_file_init(struct pm_elf_file *elf, int fd);
/* 0, -ENODATA when there is none, or the errno of the read. */
int pm_elf_file_segment(const struct pm_elf_file *elf, uint32_t index,
			struct pm_elf_part *ret);
int pm_elf_file_section(const struct pm_elf_file *elf, uint32_t index,
			struct pm_elf_part *ret);
int pm_elf_file_debuglink(const struct pm_elf_file *elf, struct pm_elf_debuglink *ret);

/* The build-id in .gnu_debugaltlink. */
int pm_elf_file_altlink(const struct pm_elf_file *elf, uint8_t id[PM_ELF_BUILD_ID_MAX],
			uint8_t *ret_len);

/* ---- elf-build-id.c ------------------------------------------------------------------ */

/* pm_elf_build_id() without the limit of the kernel's records. */
int pm_elf_build_id_whole(int fd, uint8_t ret[PM_ELF_BUILD_ID_MAX], uint8_t *ret_len);

/* ---- open-file.c --------------------------------------------------------------------- */

/*
 * An O_PATH fd of @path (absolute) as process @pid sees it: symbolic links are resolved
 * inside of its root and lead nowhere else. @pid 0: as this process sees it. Negative errno.
 */
int pm_open_handle(pid_t pid, const char *path);
/* pm_open_handle() below the folder @root, as kernels before 5.6 let us: without symbolic
 * links at all. */
int pm_open_handle_by_steps(int root, const char *path);
/* The file behind an O_PATH fd for reading. -ENOTSUP: it is not a regular one; -ENXIO: there is no
 * /proc to open it by. */
int pm_open_regular(int handle);

/* ---- kallsyms.c ---------------------------------------------------------------------- */

/* No name: text ends here (data begins, or a section's end marker stands here). */
#define PM_KALLSYMS_HOLE UINT32_MAX

struct pm_kallsyms_symbol {
	uint64_t address;
	uint32_t name; /* offset in `names`, or PM_KALLSYMS_HOLE */
	uint32_t module; /* offset in `names` */
};

struct pm_kallsyms {
	struct pm_str names; /* each ends with a NUL */
	PM_VEC(struct pm_kallsyms_symbol) symbols; /* by address, each once */
};

/* Whether code of this "module" of /proc/kallsyms is that of a module, or of the kernel. */
bool pm_kallsyms_is_permanent(const char *module);
