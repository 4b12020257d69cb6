/* SPDX-License-Identifier: MIT */
/* The files of a program or of running processes, and access to their bytes. */
#include "probe-internal.h"

#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

#include "pm/proc.h"

enum {
	BINARIES_MAX = 4096,
};

static void binary_release(struct pm_probe_binary *binary)
{
	pm_cleanup_close(&binary->fd);
	free(binary->label);
	free(binary->path);
}

void pm_probe_binaries_release(struct pm_probe_binaries *binaries)
{
	for (size_t i = 0; i < binaries->list.len; i++)
		binary_release(&binaries->list.data[i]);
	pm_vec_release(&binaries->list);
}

static bool fds_are_same_file(int a, int b)
{
	struct stat x, y;

	return fstat(a, &x) == 0 && fstat(b, &y) == 0 && x.st_dev == y.st_dev &&
	       x.st_ino == y.st_ino;
}

/* Takes ownership of the fd and strings of @file. Skips files that are already there. */
static int binaries_add_file(struct pm_probe_binaries *out, struct pm_probe_file *file)
{
	struct pm_probe_binary binary = { .pid = file->pid };
	int ret;

	for (size_t i = 0; i < out->list.len; i++)
		if (fds_are_same_file(out->list.data[i].fd, file->fd)) {
			pm_probe_file_release(file);
			return 0;
		}
	binary.fd = pm_take_fd(&file->fd);
	binary.label = PM_TAKE_PTR(file->label);
	binary.path = PM_TAKE_PTR(file->path);
	if (out->list.len >= BINARIES_MAX)
		ret = -E2BIG;
	else
		ret = pm_vec_push(&out->list, binary);
	if (ret < 0)
		binary_release(&binary);
	return ret;
}

/* Takes ownership of @fd. */
static int binaries_add_path(struct pm_probe_binaries *out, int fd, const char *path,
			     pid_t pid)
{
	struct pm_probe_file file = { .fd = fd,
				      .path = strdup(path),
				      .label = strdup(pm_path_name(path)),
				      .pid = pid };

	if (file.path && file.label)
		return binaries_add_file(out, &file);
	pm_probe_file_release(&file);
	return -ENOMEM;
}

static int set_binaries_error(int code, struct pm_error *err)
{
	if (code == -E2BIG)
		return pm_error_set(err, code, "there are too many files");
	if (code < 0)
		return pm_error_set(err, code, "no memory left for the files");
	return 0;
}

/* ---- programs ------------------------------------------------------------------------------ */

static int add_process_program(struct pm_probe_binaries *out, pid_t pid,
			       struct pm_error *err)
{
	char link[32], path[PATH_MAX];
	ssize_t len;
	int fd;

	snprintf(link, sizeof(link), "/proc/%d/exe", (int)pid);
	fd = pm_file_open(0, link);
	if (fd < 0)
		len = 0;
	else
		len = readlink(link, path, sizeof(path) - 1);
	if (fd < 0 || len < 0) {
		fd = fd < 0 ? fd : -ENOENT;
		pm_error_set(err, fd, "its program cannot be opened: %s", strerror(-fd));
		pm_error_where(err, link, -1);
		return fd;
	}
	path[len] = '\0';
	return set_binaries_error(binaries_add_path(out, fd, path, pid), err);
}

int pm_probe_find_program(struct pm_probe_binaries *out,
			  const struct pm_probe_context *context, struct pm_error *err)
{
	struct pm_probe_file file = { .fd = -1 };
	bool is_script;
	int ret = 0;

	for (size_t i = 0; i < context->pids_len && ret == 0; i++)
		ret = add_process_program(out, context->pids[i], err);
	if (context->pids_len > 0)
		return ret;
	if (!context->command)
		return pm_error_set(err, -EINVAL, "there is no program to look into");
	ret = pm_probe_files_command(&file, context, &is_script, err);
	if (ret < 0)
		return ret;
	return set_binaries_error(binaries_add_file(out, &file), err);
}

int pm_probe_find_binary(struct pm_probe_binaries *out,
			 const struct pm_probe_context *context, const char *word,
			 struct pm_error *err)
{
	struct pm_probe_files files = { 0 };
	int ret = pm_probe_files_find(&files, context, word, err);

	for (size_t i = 0; i < files.list.len && ret == 0; i++)
		ret = set_binaries_error(binaries_add_file(out, &files.list.data[i]),
					 err);
	pm_probe_files_release(&files);
	return ret;
}

/* ---- needed files -------------------------------------------------------------------------- */

static void free_binaries_procs(struct pm_procs **procs)
{
	pm_procs_free(*procs);
}

static int add_process_mappings(struct pm_probe_binaries *out, pid_t pid,
				struct pm_error *err)
{
	struct pm_procs *procs PM_CLEANUP(free_binaries_procs) = pm_procs_new(NULL);
	int ret;

	if (!procs)
		return set_binaries_error(-ENOMEM, err);
	ret = pm_procs_read(procs, pid, err);
	for (size_t i = 0; ret == 0 && i < pm_procs_modules_len(procs); i++) {
		const struct pm_module *module = pm_procs_module(procs, (uint32_t)i);
		int fd = -1;

		if (module->identity.kind == PM_MODULE_FILE)
			fd = pm_module_open(module, NULL);
		if (fd >= 0)
			ret = set_binaries_error(
				binaries_add_path(out, fd, module->identity.path, pid),
				err);
	}
	return ret;
}

static int add_needed_library(void *user, const char *name, const char *path)
{
	int fd = pm_file_open(0, path);

	(void)name;
	if (fd < 0)
		return 0;
	return binaries_add_path(user, fd, path, 0);
}

int pm_probe_find_needed(struct pm_probe_binaries *out,
			 const struct pm_probe_context *context, struct pm_error *err)
{
	struct pm_probe_file file = { .fd = -1 };
	struct pm_probe_abi abi = { 0 };
	struct pm_probe_elf elf;
	bool is_script;
	int ret = 0;

	for (size_t i = 0; i < context->pids_len && ret == 0; i++)
		ret = add_process_mappings(out, context->pids[i], err);
	if (context->pids_len > 0 || !context->command)
		return ret;
	ret = pm_probe_files_command(&file, context, &is_script, err);
	if (ret < 0)
		return ret;
	if (pm_probe_elf_open(&elf, file.fd) == 0) {
		abi.machine = elf.machine;
		abi.is_64 = elf.is_64;
		pm_probe_elf_close(&elf);
		ret = set_binaries_error(pm_probe_needed_each(file.fd, file.path, &abi,
							      add_needed_library, out),
					 err);
	}
	pm_probe_file_release(&file);
	return ret;
}

/* ---- bytes --------------------------------------------------------------------------------- */

struct pm_probe_image {
	struct pm_probe_elf elf;
};

int pm_probe_image_open(struct pm_probe_image **out, int fd)
{
	struct pm_probe_image *image = calloc(1, sizeof(*image));
	int ret;

	if (!image)
		return -ENOMEM;
	ret = pm_probe_elf_open(&image->elf, fd);

	if (ret < 0) {
		free(image);
		return ret;
	}
	*out = image;
	return 0;
}

void pm_probe_image_close(struct pm_probe_image *image)
{
	if (!image)
		return;
	pm_probe_elf_close(&image->elf);
	free(image);
}

uint16_t pm_probe_image_machine(const struct pm_probe_image *image)
{
	return image->elf.machine;
}

bool pm_probe_image_is_64(const struct pm_probe_image *image)
{
	return image->elf.is_64;
}

bool pm_probe_image_code(const struct pm_probe_image *image, uint64_t address,
			 uint64_t *offset)
{
	return pm_probe_elf_code(&image->elf, address, offset);
}

bool pm_probe_image_read(const struct pm_probe_image *image, uint64_t address, void *out,
			 size_t len)
{
	const struct pm_probe_segment *segment =
		pm_probe_elf_segment(&image->elf, address);
	uint64_t offset;
	size_t have = 0;

	if (!segment || len > segment->end - address ||
	    __builtin_add_overflow(address - segment->start, segment->offset, &offset) ||
	    offset > image->elf.size || len > image->elf.size - offset)
		return false;
	while (have < len) {
		ssize_t n = pread(image->elf.fd, (char *)out + have, len - have,
				  (off_t)(offset + have));

		if (n <= 0 && !(n < 0 && errno == EINTR))
			return false;
		if (n > 0)
			have += (size_t)n;
	}
	return true;
}

bool pm_probe_image_frame(const struct pm_probe_image *image, uint64_t address,
			  struct pm_probe_piece *out)
{
	return pm_probe_frame_at(&image->elf, address, out);
}

bool pm_probe_image_catches(const struct pm_probe_image *image, uint64_t address)
{
	return pm_probe_frame_catches(&image->elf, address);
}
