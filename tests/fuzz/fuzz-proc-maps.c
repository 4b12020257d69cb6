/* SPDX-License-Identifier: MIT */
/*
 * The three texts and files of the room `proc` that others write. What the input begins with
 * says which one it is: an ELF file (build-id), `K` (kernel symbols behind it), or lines of
 * /proc/PID/maps, which go into a table of processes as records would.
 */
#include "pm/proc.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>

#define EXPECT(what)             \
	do {                     \
		if (!(what))     \
			abort(); \
	} while (0)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_space(const struct pm_procs *procs, const struct pm_space *space)
{
	for (size_t i = 0; i < space->maps.len; i++) {
		const struct pm_mapping *mapping = &space->maps.data[i];

		EXPECT(mapping->start < mapping->end);
		EXPECT(i == 0 || mapping[-1].end <= mapping->start);
		EXPECT(pm_procs_module(procs, mapping->module));
		EXPECT(pm_space_find(space, mapping->start) == mapping);
		EXPECT(pm_space_find(space, mapping->end - 1) == mapping);
	}
}

static int apply_line(struct pm_procs *procs, const char *line, size_t len, pid_t pid)
{
	struct pm_maps_line parsed;
	PM_AUTO_FREE char *path = NULL;
	size_t path_len;

	if (pm_maps_line_parse(line, len, &parsed) < 0)
		return 0;
	EXPECT(parsed.start < parsed.end && parsed.path_len <= len);
	path = strndup(parsed.path, parsed.path_len);
	if (!path)
		return -1;
	struct pm_module_identity identity = {
		.kind = pm_module_kind_of(path, &path_len),
		.path = path,
		.major = parsed.major,
		.minor = parsed.minor,
		.inode = parsed.inode,
	};
	EXPECT(path_len <= strlen(path));
	path[path_len] = '\0';
	EXPECT(pm_procs_map(procs, pid, parsed.start, parsed.end - parsed.start,
			    parsed.pgoff, parsed.prot, &identity) == 0);
	return 0;
}

static int fuzz_maps(const char *text, size_t size)
{
	struct pm_procs *procs = pm_procs_new(NULL);
	const char *end = text + size;
	int rc = procs ? 0 : -1;

	while (rc == 0 && text < end) {
		const char *newline = memchr(text, '\n', (size_t)(end - text));
		size_t len = (size_t)((newline ? newline : end) - text);

		/* Lines that are none drive the table: the other kinds of records. */
		if (len == 3 && text[0] == 'f')
			rc = pm_procs_fork(procs, text[1], text[1], text[2], text[2]);
		else if (len == 3 && text[0] == 't')
			rc = pm_procs_fork(procs, text[1], text[2], text[1], text[1]);
		else if (len == 3 && text[0] == 'x')
			rc = pm_procs_comm(procs, text[1], text[1], "fuzz", text[2] & 1);
		else if (len == 3 && text[0] == 'q')
			pm_procs_exit(procs, text[1], text[2]);
		else
			rc = apply_line(procs, text, len, '1');
		text += len + 1;
	}
	if (rc == 0)
		for (pid_t pid = -128; pid < 128; pid++)
			check_space(procs, &pm_procs_get(procs, pid)->space);
	pm_procs_free(procs);
	return rc;
}

static int open_bytes(const uint8_t *data, size_t size)
{
	int fd = memfd_create("fuzz", MFD_CLOEXEC);

	EXPECT(fd >= 0 && write(fd, data, size) == (ssize_t)size);
	return fd;
}

static int fuzz_kallsyms(const uint8_t *data, size_t size)
{
	PM_AUTO_CLOSE int fd = open_bytes(data, size);
	struct pm_kallsyms *kallsyms;
	struct pm_error err = { 0 };
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (pm_kallsyms_load(&kallsyms, path, &err) < 0) {
		EXPECT(err.code < 0 && err.text[0] != '\0');
		return 0;
	}
	for (unsigned int bit = 0; bit < 64; bit++) {
		const char *module = NULL;
		const char *name =
			pm_kallsyms_find(kallsyms, (uint64_t)1 << bit, &module);

		EXPECT(!name || (strlen(name) > 0 && module && strlen(module) < size));
	}
	pm_kallsyms_find(kallsyms, 0, NULL);
	pm_kallsyms_find(kallsyms, UINT64_MAX, NULL);
	pm_kallsyms_free(kallsyms);
	return 0;
}

static int fuzz_build_id(const uint8_t *data, size_t size)
{
	PM_AUTO_CLOSE int fd = open_bytes(data, size);
	uint8_t id[PM_MODULE_BUILD_ID_MAX], len = 0;
	int rc = pm_elf_build_id(fd, id, &len);

	EXPECT(rc == -ENODATA || rc == -ENOEXEC || (rc == 0 && len > 0));
	EXPECT(len <= PM_MODULE_BUILD_ID_MAX);
	/* It is in the file, byte by byte. */
	EXPECT(rc < 0 || memmem(data, size, id, len));
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size > 0 && data[0] == 0x7f)
		return fuzz_build_id(data, size);
	if (size > 0 && data[0] == 'K')
		return fuzz_kallsyms(data + 1, size - 1);
	return fuzz_maps((const char *)data, size);
}
