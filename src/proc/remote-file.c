/* SPDX-License-Identifier: MIT */
/*
 * Files on file systems that may stop answering: those of servers elsewhere (NFS), and those
 * whose server is a process of anybody (FUSE). An open file of such a file system is no safer
 * than its name: each page that is not in the cache is asked for.
 */
#include "fetch-internal.h"

#include <elf.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>

enum {
	WHOLE_BYTES_MAX = 4 << 20, /* smaller files are copied whole */
	PIECE_BYTES = 1 << 16,
	PARTS_MAX = 65536, /* segments and sections that are looked at */
	HEADER_BYTES = 64, /* of either class */
};

bool pm_file_is_local(struct pm_mounts *mounts, int fd, pid_t pid)
{
	/* statfs(2) */
	static const unsigned long local[] = {
		EXT4_SUPER_MAGIC, BTRFS_SUPER_MAGIC, XFS_SUPER_MAGIC,
		TMPFS_MAGIC,      RAMFS_MAGIC,       HUGETLBFS_MAGIC,
	};
	enum pm_locality locality = pm_mounts_locality(mounts, fd, pid);
	struct statfs fs;

	if (locality != PM_LOCALITY_UNKNOWN)
		return locality == PM_LOCAL;
	/* The mounts of the kernel itself are in no list, as that of memfds, nor are those
	 * that were removed. */
	if (fstatfs(fd, &fs) < 0)
		return false;
	for (size_t i = 0; i < PM_ARRAY_LEN(local); i++)
		if ((unsigned long)fs.f_type == local[i])
			return true;
	return false;
}

/* ---- copies ---------------------------------------------------------------------------- */

struct copy {
	int from, to;
	uint64_t size; /* of the file */
	uint64_t bytes, bytes_max;
};

static int copy_range(struct copy *copy, uint64_t offset, uint64_t len)
{
	PM_AUTO_FREE uint8_t *piece = malloc(PIECE_BYTES);

	if (!piece)
		return -ENOMEM;
	if (offset >= copy->size)
		return 0;
	if (len > copy->size - offset)
		len = copy->size - offset;
	if (len > copy->bytes_max - copy->bytes)
		return -EFBIG;
	while (len > 0) {
		size_t here = len < PIECE_BYTES ? (size_t)len : PIECE_BYTES;
		ssize_t n = pread(copy->from, piece, here, (off_t)offset);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			return 0; /* shorter than it said: the copy has zeros there */
		if (pwrite(copy->to, piece, (size_t)n, (off_t)offset) != n)
			return -ENOMEM;
		offset += (uint64_t)n;
		len -= (uint64_t)n;
		copy->bytes += (uint64_t)n;
	}
	return 0;
}

/* Sections that stacks are unwound by, though they are not mapped. */
static bool is_of_unwinding(const struct pm_elf_file *elf,
			    const struct pm_elf_part *section, uint64_t names)
{
	static const char *const wanted[] = { ".debug_frame", ".zdebug_frame",
					      ".gnu_debuglink", ".gnu_debugaltlink",
					      ".shstrtab" };
	char name[32] = "";

	if (pread(elf->fd, name, sizeof(name) - 1, (off_t)(names + section->name)) <= 0)
		return false;
	for (size_t i = 0; i < PM_ARRAY_LEN(wanted); i++)
		if (strcmp(name, wanted[i]) == 0)
			return true;
	return false;
}

static int copy_elf(struct copy *copy)
{
	struct pm_elf_file elf;
	struct pm_elf_part part, names = { 0 };
	int rc = pm_elf_file_init(&elf, copy->from);

	if (rc == 0)
		rc = copy_range(copy, 0, HEADER_BYTES);
	if (rc == 0)
		rc = copy_range(copy, elf.phoff, (uint64_t)elf.phnum * elf.phentsize);
	if (rc == 0)
		rc = copy_range(copy, elf.shoff, (uint64_t)elf.shnum * elf.shentsize);
	for (uint32_t i = 0; rc == 0 && i < elf.phnum && i < PARTS_MAX; i++)
		if (pm_elf_file_segment(&elf, i, &part) == 0 &&
		    (part.type == PT_LOAD || part.type == PT_NOTE))
			rc = copy_range(copy, part.offset, part.size);
	if (rc < 0 || pm_elf_file_section(&elf, elf.shstrndx, &names) < 0)
		return rc;
	for (uint32_t i = 0; rc == 0 && i < elf.shnum && i < PARTS_MAX; i++)
		if (pm_elf_file_section(&elf, i, &part) == 0 && part.type != SHT_NOBITS &&
		    is_of_unwinding(&elf, &part, names.offset))
			rc = copy_range(copy, part.offset, part.size);
	return rc;
}

int pm_file_copy(int fd, uint64_t bytes_max, bool *partial, uint64_t *copied_bytes)
{
	PM_AUTO_CLOSE int to = memfd_create("pmrec-copy", MFD_CLOEXEC);
	struct copy copy = { .from = fd, .to = to, .bytes_max = bytes_max };
	struct stat st;
	bool whole;
	int rc;

	if (to < 0 || fstat(fd, &st) < 0)
		return -errno;
	copy.size = st.st_size > 0 ? (uint64_t)st.st_size : 0;
	/* Offsets stay as they are; what is not copied is a hole. */
	if (ftruncate(to, st.st_size) < 0)
		return -errno;
	whole = copy.size <= WHOLE_BYTES_MAX;
	rc = whole ? copy_range(&copy, 0, copy.size) : copy_elf(&copy);
	if (rc < 0)
		return rc;
	*partial = !whole;
	*copied_bytes = copy.bytes;
	return pm_take_fd(&to);
}
