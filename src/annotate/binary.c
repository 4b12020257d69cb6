/* SPDX-License-Identifier: MIT */
/*
 * Opens the file of a module. Its path alone proves nothing: the file may have been
 * rebuilt, or belong to another machine.
 */
#include "annotate-internal.h"

#include "pm/proc.h"

#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/stat.h>

enum {
	VDSO_BYTES_MAX = 1 << 16, /* Linux has 4 to 12 KiB */
};

/* ---- the vDSO -------------------------------------------------------------------------- */

/* Returns the length of the mapping that starts at @start, or 0 if there is none. */
static size_t find_mapping_len(uint64_t start)
{
	PM_AUTO_FCLOSE FILE *maps = fopen("/proc/self/maps", "re");
	PM_AUTO_FREE char *text = NULL;
	struct pm_maps_line line;
	size_t cap = 0;
	ssize_t len;

	while (maps && (len = getline(&text, &cap, maps)) > 0) {
		if (text[len - 1] == '\n')
			text[--len] = '\0';
		if (pm_maps_line_parse(text, (size_t)len, &line) == 0 &&
		    line.start == start && line.end > start &&
		    line.end - start <= VDSO_BYTES_MAX)
			return (size_t)(line.end - start);
	}
	return 0;
}

/* Copies the vDSO that the kernel has mapped into this process to a file. It is a
 * complete ELF file. */
static int open_vdso_copy(void)
{
	PM_AUTO_CLOSE int fd = -1;
	uint64_t start = getauxval(AT_SYSINFO_EHDR);
	size_t len = 0;

	if (start)
		len = find_mapping_len(start);
	if (len == 0)
		return -ENOENT;
	fd = memfd_create("vdso", MFD_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (write(fd, (const void *)(uintptr_t)start, len) != (ssize_t)len)
		return -EIO;
	return pm_take_fd(&fd);
}

/* ---- checks ---------------------------------------------------------------------------- */

/* Returns 0 if the build-id of @fd is the recorded one. */
static int check_build_id(int fd, const char *recorded, struct pm_error *err)
{
	uint8_t id[PM_MODULE_BUILD_ID_MAX], len;
	char hex[2 * PM_MODULE_BUILD_ID_MAX + 1] = "";
	int ret = pm_elf_build_id(fd, id, &len);

	if (ret == -ENODATA)
		return pm_error_set(err, -ESTALE,
				    "another file is there now: it has no build-id, the "
				    "recorded one has %s",
				    recorded);
	if (ret < 0)
		return pm_error_set(err, ret, "%s", pm_error_elf_text(ret));
	for (size_t i = 0; i < len; i++)
		snprintf(hex + 2 * i, 3, "%02x", id[i]);
	if (strcasecmp(hex, recorded) != 0)
		return pm_error_set(err, -ESTALE,
				    "another file is there now: its build-id is %s, the "
				    "recorded one's is %s",
				    hex, recorded);
	return 0;
}

/* Checks a file without a build-id, for which the only evidence is that it is old
 * enough. */
static int check_age(int fd, int64_t recorded_at, struct pm_error *err)
{
	uint8_t id[PM_MODULE_BUILD_ID_MAX], len;
	struct stat st;
	int ret = pm_elf_build_id(fd, id, &len);

	if (ret == 0)
		return pm_error_set(
			err, -ESTALE,
			"the recording knows no build-id of it, and this file "
			"has one: it may be another");
	if (ret != -ENODATA)
		return pm_error_set(err, ret, "%s", pm_error_elf_text(ret));
	if (fstat(fd, &st) < 0)
		return pm_error_set(err, -errno, "%s", strerror(errno));
	if (recorded_at == 0 || st.st_mtim.tv_sec > recorded_at)
		return pm_error_set(err, -ESTALE,
				    "it has no build-id and was changed after the "
				    "recording began");
	return 0;
}

static int check_recorded_binary(struct pm_annotate_binary *binary,
				 const struct pm_profile_module *module,
				 const struct pm_annotate_search *search,
				 struct pm_error *err)
{
	int ret;

	if (module->build_id)
		return check_build_id(binary->fd, module->build_id, err);
	ret = check_age(binary->fd, search->recorded_at, err);
	binary->unverified = ret == 0;
	return ret;
}

/* ---- opening --------------------------------------------------------------------------- */

static int set_missing_binary_error(const struct pm_profile_module *module,
				    struct pm_error *err)
{
	if (module->kernel)
		return pm_error_set(
			err, -ENOTSUP,
			"the kernel's code is not in a file: it patches itself "
			"when it starts, and only /proc/kcore has what ran");
	if (strcmp(module->kind, "jit") == 0 || strcmp(module->kind, "anon") == 0)
		return pm_error_set(err, -ENOTSUP,
				    "code that was made while running is in no file");
	return 0;
}

/* Opens the file at its path below @root. */
static int open_binary_below_root(struct pm_annotate_binary *out, const char *root,
				  const struct pm_profile_module *module,
				  const struct pm_annotate_search *search,
				  struct pm_error *err)
{
	struct pm_str path = { 0 };
	int ret;

	pm_str_puts(&path, root);
	if (path.len > 0 && path.data[path.len - 1] == '/')
		path.data[--path.len] = '\0';
	pm_str_puts(&path, module->path);
	if (path.failed) {
		pm_str_release(&path);
		return pm_error_set(err, -ENOMEM, "out of memory");
	}
	pm_annotate_binary_release(out);
	out->path = path.data;
	out->fd = pm_file_open(0, out->path);
	if (out->fd < 0)
		ret = out->fd;
	else
		ret = check_recorded_binary(out, module, search, err);
	if (out->fd >= 0)
		return ret;
	pm_error_set(err, ret, "%s", pm_error_open_text(ret));
	if (ret == -ENOENT)
		pm_error_fix(err, "--symfs with the folder under which it is now");
	return ret;
}

static int open_binary_at_path(struct pm_annotate_binary *out,
			       const struct pm_profile_module *module,
			       const struct pm_annotate_search *search,
			       struct pm_error *err)
{
	int ret;

	if (module->path[0] != '/')
		return pm_error_set(err, -ENOENT, "this is no path of a file");
	if (search->symfs)
		ret = open_binary_below_root(out, search->symfs, module, search, err);
	else
		ret = -ENOENT;
	/* If both files are unusable, report what is wrong with the one below symfs. */
	if (ret == -ENOENT)
		ret = open_binary_below_root(out, "", module, search, err);
	else if (ret < 0 && open_binary_below_root(out, "", module, search, NULL) == 0)
		ret = 0;
	return ret;
}

/* Chooses the folder that has the separate debug file. If none has it, the default folder
 * may. */
static int find_binary_debug_dir(struct pm_annotate_binary *binary,
				 const struct pm_annotate_search *search)
{
	struct pm_str below = { 0 };
	int ret = 0;

	if (search->symfs)
		pm_str_printf(&below, "%s/usr/lib/debug", search->symfs);
	for (int i = 0; ret == 0 && !binary->debug_dir && i < 2; i++) {
		const struct pm_debug_search debug = { .dir = i == 0 ? search->debug_dir
								     : below.data };
		PM_AUTO_CLOSE int fd = -1;

		if (!debug.dir)
			continue;
		fd = pm_debug_find(binary->fd, &debug);
		if (fd < 0)
			continue;
		binary->debug_dir = strdup(debug.dir);
		if (!binary->debug_dir)
			ret = -ENOMEM;
	}
	if (below.failed)
		ret = -ENOMEM;
	pm_str_release(&below);
	return ret;
}

int pm_annotate_binary_open(struct pm_annotate_binary *out,
			    const struct pm_profile_module *module,
			    const struct pm_annotate_search *search, struct pm_error *err)
{
	PM_CLEANUP(pm_annotate_binary_release)
	struct pm_annotate_binary binary = { .fd = -1 };
	int ret = set_missing_binary_error(module, err);

	if (ret < 0)
		return ret;
	if (strcmp(module->kind, "vdso") == 0) {
		binary.path = strdup(module->path);
		binary.fd = open_vdso_copy();
		if (binary.fd < 0)
			ret = pm_error_set(err, binary.fd,
					   "this process has no vDSO to look at");
		else
			ret = 0;
		/* Its age says nothing: it is as old as this process. */
		if (ret == 0 && !module->build_id)
			ret = pm_error_set(err, -ESTALE,
					   "the recording knows no build-id of the vDSO");
		if (ret == 0)
			ret = check_recorded_binary(&binary, module, search, err);
	} else {
		ret = open_binary_at_path(&binary, module, search, err);
	}
	if (ret == 0 && find_binary_debug_dir(&binary, search) < 0)
		ret = pm_error_set(err, -ENOMEM, "out of memory");
	if (ret < 0) {
		pm_error_where(err, binary.path ? binary.path : module->path, -1);
		return ret;
	}
	*out = binary;
	binary = (struct pm_annotate_binary){ .fd = -1 };
	return 0;
}

void pm_annotate_binary_release(struct pm_annotate_binary *binary)
{
	pm_cleanup_close(&binary->fd);
	free(binary->path);
	free(binary->debug_dir);
	*binary = (struct pm_annotate_binary){ .fd = -1 };
}
