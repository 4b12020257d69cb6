/* SPDX-License-Identifier: MIT */
/*
 * Resolves the FILE of a probe: a path, or a bare name. A bare name means, in this order:
 * a file that a running process has mapped, the program to be run, a library that it
 * needs, a library that the loader would find, or a program in PATH.
 */
#include "probe-internal.h"

#include <elf.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

#include "pm/proc.h"

enum {
	FILES_MAX = 64,
	SCRIPT_DEPTH_MAX = 4,
};

void pm_probe_file_release(struct pm_probe_file *file)
{
	pm_cleanup_close(&file->fd);
	free(file->label);
	free(file->path);
	*file = (struct pm_probe_file){ .fd = -1 };
}

void pm_probe_files_release(struct pm_probe_files *files)
{
	for (size_t i = 0; i < files->list.len; i++)
		pm_probe_file_release(&files->list.data[i]);
	pm_vec_release(&files->list);
}

bool pm_probe_library_is(const char *name, const char *word)
{
	size_t len = strlen(word);

	if (strncmp(name, word, len) != 0)
		return false;
	name += len;
	/* libc → libc.so.6, libc-2.31.so; libc.so → libc.so.6 */
	if (name[0] == '\0' || strncmp(name, ".so.", 4) == 0 || strcmp(name, ".so") == 0)
		return true;
	if (len > 3 && strcmp(word + len - 3, ".so") == 0 && name[0] == '.')
		return true;
	return name[0] == '-' && name[1] >= '0' && name[1] <= '9' && strstr(name, ".so");
}

/* Suggests the stem of the name, because that is what users type. */
static void note_similar_library(struct pm_near_names *near, const char *name)
{
	const char *so = strstr(name, ".so");
	char stem[PM_NEAR_NAMES_BYTES];
	size_t len = strlen(name);

	if (so)
		len = (size_t)(so - name);
	if (len >= sizeof(stem))
		return;
	memcpy(stem, name, len);
	stem[len] = '\0';
	pm_near_names_add(near, stem);
}

static bool probe_files_have_fd(const struct pm_probe_files *files, int fd)
{
	struct stat st, other;

	for (size_t i = 0; i < files->list.len && fstat(fd, &st) == 0; i++)
		if (fstat(files->list.data[i].fd, &other) == 0 &&
		    other.st_dev == st.st_dev && other.st_ino == st.st_ino)
			return true;
	return false;
}

/* Takes ownership of @taken, an fd. Skips files that are already there. */
static int probe_files_add_fd(struct pm_probe_files *files, int taken, const char *path,
			      pid_t pid)
{
	struct pm_probe_file file = { .fd = taken, .pid = pid };
	int ret;

	if (probe_files_have_fd(files, taken)) {
		pm_probe_file_release(&file);
		return 0;
	}
	file.label = strdup(pm_path_name(path));
	file.path = strdup(path);
	if (!file.label || !file.path)
		ret = -ENOMEM;
	else if (files->list.len >= FILES_MAX)
		ret = -E2BIG;
	else
		ret = pm_vec_push(&files->list, file);
	if (ret < 0)
		pm_probe_file_release(&file);
	return ret;
}

static int set_cannot_open_error(int code, const char *path, struct pm_error *err)
{
	pm_error_set(err, code, "%s", pm_error_open_text(code));
	pm_error_where(err, path, -1);
	return code;
}

/* ---- a path -------------------------------------------------------------------------------- */

static int find_files_by_path(struct pm_probe_files *files,
			      const struct pm_probe_context *context, const char *path,
			      struct pm_error *err)
{
	size_t pids = path[0] == '/' ? context->pids_len : 0;
	int first = 0, ret = 0;

	for (size_t i = 0; i < (pids > 0 ? pids : 1) && ret == 0; i++) {
		pid_t pid = pids > 0 ? context->pids[i] : 0;
		int fd = pm_file_open(pid, path);

		if (fd >= 0)
			ret = probe_files_add_fd(files, fd, path, pid);
		else if (first == 0)
			first = fd;
	}
	if (ret < 0)
		return set_cannot_open_error(ret, path, err);
	if (files->list.len > 0)
		return 0;
	return set_cannot_open_error(first, path, err);
}

/* ---- mapped files ----------------------------------------------------------------------------- */

static void free_files_procs(struct pm_procs **procs)
{
	pm_procs_free(*procs);
}

static int find_mapped_libraries(struct pm_probe_files *files, pid_t pid,
				 const char *word, struct pm_near_names *near,
				 struct pm_error *err)
{
	struct pm_procs *procs PM_CLEANUP(free_files_procs) = pm_procs_new(NULL);
	int ret;

	if (!procs)
		return pm_error_set(err, -ENOMEM, "no memory left");
	ret = pm_procs_read(procs, pid, err);
	for (size_t i = 0; ret == 0 && i < pm_procs_modules_len(procs); i++) {
		const struct pm_module *module = pm_procs_module(procs, (uint32_t)i);
		const char *name = pm_path_name(module->identity.path);
		int fd;

		if (module->identity.kind != PM_MODULE_FILE)
			continue;
		if (!pm_probe_library_is(name, word)) {
			note_similar_library(near, name);
			continue;
		}
		fd = pm_module_open(module, err);
		if (fd < 0)
			return fd;
		ret = probe_files_add_fd(files, fd, module->identity.path, pid);
		if (ret < 0)
			pm_error_set(err, ret, "%s", strerror(-ret));
	}
	return ret;
}

/* ---- the command --------------------------------------------------------------------------------- */

static int open_in_command_path(const char *name, char path[PATH_MAX])
{
	const char *list = getenv("PATH");
	int fd;

	if (strchr(name, '/')) {
		snprintf(path, PATH_MAX, "%s", name);
		return pm_file_open(0, path);
	}
	if (!list)
		list = "/bin:/usr/bin";
	for (;;) {
		size_t len = strcspn(list, ":");

		/* An empty entry means the current folder. */
		if (snprintf(path, PATH_MAX, "%.*s%s%s", (int)len, list, len ? "/" : "",
			     name) < PATH_MAX &&
		    access(path, X_OK) == 0) {
			fd = pm_file_open(0, path);
			if (fd >= 0)
				return fd;
		}
		if (list[len] == '\0')
			return -ENOENT;
		list += len + 1;
	}
}

/* Returns the interpreter of a script (execve(2), "Interpreter scripts"), or NULL. */
static char *read_script_interpreter(int fd)
{
	char line[256], *at = line + 2;
	ssize_t len = pread(fd, line, sizeof(line) - 1, 0);

	if (len < 2 || line[0] != '#' || line[1] != '!')
		return NULL;
	line[len] = '\0';
	at += strspn(at, " \t");
	at[strcspn(at, " \t\n")] = '\0';
	if (!*at)
		return NULL;
	return strdup(at);
}

int pm_probe_files_command(struct pm_probe_file *out,
			   const struct pm_probe_context *context, bool *is_script,
			   struct pm_error *err)
{
	PM_AUTO_CLOSE int fd = -1;
	char path[PATH_MAX];

	*is_script = false;
	fd = open_in_command_path(context->command, path);
	for (int depth = 0; fd >= 0 && depth < SCRIPT_DEPTH_MAX; depth++) {
		PM_AUTO_FREE char *interpreter = read_script_interpreter(fd);

		if (!interpreter)
			break;
		*is_script = true;
		close(fd);
		snprintf(path, sizeof(path), "%s", interpreter);
		fd = pm_file_open(0, path);
	}
	if (fd < 0 && *is_script)
		return set_cannot_open_error(fd, path, err);
	if (fd < 0)
		return set_cannot_open_error(fd, context->command, err);
	*out = (struct pm_probe_file){ .label = strdup(pm_path_name(path)),
				       .path = strdup(path),
				       .fd = pm_take_fd(&fd) };
	if (out->label && out->path)
		return 0;
	pm_probe_file_release(out);
	return pm_error_set(err, -ENOMEM, "no memory left");
}

/* ---- libraries -------------------------------------------------------------------------------------- */

struct candidates {
	struct pm_probe_files *files;
	const struct pm_probe_abi *abi;
	const char *word;
	char name[NAME_MAX + 1]; /* of the first match */
	char other[NAME_MAX + 1]; /* another name that the word could mean */
	struct pm_near_names *near;
};

static int consider_library_candidate(void *user, const char *name, const char *path)
{
	struct candidates *candidates = user;
	PM_AUTO_CLOSE int fd = -1;

	if (strlen(name) > NAME_MAX)
		return 0;
	if (!pm_probe_library_is(pm_path_name(name), candidates->word)) {
		note_similar_library(candidates->near, pm_path_name(name));
		return 0;
	}
	fd = pm_file_open(candidates->abi->pid, path);
	/* libfoo.so, for building, is usually the same file as libfoo.so.1. */
	if (fd < 0 || probe_files_have_fd(candidates->files, fd))
		return 0;
	if (candidates->name[0] && strcmp(candidates->name, name) != 0) {
		memcpy(candidates->other, name, strlen(name) + 1);
		return 0;
	}
	memcpy(candidates->name, name, strlen(name) + 1);
	return probe_files_add_fd(candidates->files, pm_take_fd(&fd), path,
				  candidates->abi->pid);
}

/* Returns 1: found; 0: not found; -EINVAL: the word means several libraries. */
static int settle_library_candidates(struct candidates *candidates, int code,
				     struct pm_error *err)
{
	struct pm_probe_files *files = candidates->files;

	if (code < 0)
		return pm_error_set(err, code, "%s", strerror(-code));
	if (files->list.len == 0)
		return 0;
	if (strcmp(candidates->name, candidates->word) == 0)
		return 1;
	if (candidates->other[0]) {
		pm_error_set(err, -EINVAL, "\"%s\" could be %s or %s", candidates->word,
			     candidates->name, candidates->other);
		pm_error_fix(err, "the whole name, or a path");
		return -EINVAL;
	}
	return 1;
}

/* Gets the architecture of the files that the program loads. */
static void read_file_abi(int fd, struct pm_probe_abi *abi)
{
	PM_AUTO_CLOSE int own = -1;
	struct pm_probe_elf elf;

	if (fd < 0)
		fd = own = pm_file_open(0, "/proc/self/exe");
	if (pm_probe_elf_open(&elf, fd) < 0)
		return;
	abi->machine = elf.machine;
	abi->is_64 = elf.is_64;
	pm_probe_elf_close(&elf);
}

static int find_command_libraries(struct pm_probe_files *files,
				  const struct pm_probe_context *context,
				  const char *word, struct pm_near_names *near,
				  struct pm_error *err)
{
	struct pm_probe_file program = { .fd = -1 };
	struct pm_probe_abi abi = { 0 };
	struct candidates candidates = {
		.files = files, .abi = &abi, .word = word, .near = near
	};
	bool is_script;
	/* If it cannot be run, that is reported when it is started. */
	int ret = pm_probe_files_command(&program, context, &is_script, NULL);

	if (ret < 0) {
		if (ret == -ENOMEM)
			return pm_error_set(err, ret, "no memory left");
		return 0;
	}
	if (is_script && strcmp(pm_path_name(context->command), word) == 0) {
		ret = pm_error_set(err, -EINVAL, "this is a script, run by %s",
				   program.path);
		pm_error_where(err, context->command, -1);
	} else if (strcmp(program.label, word) == 0 ||
		   strcmp(pm_path_name(context->command), word) == 0) {
		ret = probe_files_add_fd(files, pm_take_fd(&program.fd), program.path, 0);
		if (ret < 0)
			ret = pm_error_set(err, ret, "%s", strerror(-ret));
		else
			ret = 1;
	} else {
		read_file_abi(program.fd, &abi);
		pm_near_names_add(near, program.label);
		ret = pm_probe_needed_each(program.fd, program.path, &abi,
					   consider_library_candidate, &candidates);
		ret = settle_library_candidates(&candidates, ret, err);
	}
	pm_probe_file_release(&program);
	return ret;
}

/* Uses the loader's cache and folders, in the root of @pid. */
static int find_system_libraries(struct pm_probe_files *files, pid_t pid,
				 const char *word, struct pm_near_names *near,
				 struct pm_error *err)
{
	PM_AUTO_CLOSE int exe = -1;
	struct pm_probe_abi abi = { .pid = pid };
	struct candidates candidates = {
		.files = files, .abi = &abi, .word = word, .near = near
	};
	char path[PATH_MAX];
	int ret;

	if (pid > 0) {
		snprintf(path, sizeof(path), "/proc/%d/exe", (int)pid);
		exe = pm_file_open(0, path);
	}
	read_file_abi(exe, &abi);
	ret = settle_library_candidates(
		&candidates,
		pm_probe_cache_each(&abi, consider_library_candidate, &candidates), err);
	for (size_t i = 0; ret == 0 && pm_probe_library_dirs[i]; i++) {
		int fd;

		if (snprintf(path, sizeof(path), "%s/%s", pm_probe_library_dirs[i],
			     word) >= PATH_MAX)
			break;
		fd = pm_file_open(pid, path);
		if (fd >= 0) {
			if (probe_files_add_fd(files, fd, path, pid) < 0)
				ret = -ENOMEM;
			else
				ret = 1;
		}
	}
	return ret;
}

static int find_libraries_by_name(struct pm_probe_files *files,
				  const struct pm_probe_context *context,
				  const char *word, struct pm_near_names *near,
				  struct pm_error *err)
{
	char path[PATH_MAX];
	pid_t pid = 0;
	int ret = 0, fd;

	for (size_t i = 0; ret == 0 && i < context->pids_len; i++)
		ret = find_mapped_libraries(files, context->pids[i], word, near, err);
	if (ret < 0 || files->list.len > 0)
		return ret;
	if (context->command)
		ret = find_command_libraries(files, context, word, near, err);
	if (context->pids_len > 0)
		pid = context->pids[0];
	if (ret == 0)
		ret = find_system_libraries(files, pid, word, near, err);
	if (ret != 0) {
		if (ret < 0)
			return ret;
		return 0;
	}
	fd = open_in_command_path(word, path);
	if (fd >= 0 && probe_files_add_fd(files, fd, path, 0) < 0)
		return pm_error_set(err, -ENOMEM, "no memory left");
	return 0;
}

int pm_probe_files_find(struct pm_probe_files *files,
			const struct pm_probe_context *context, const char *word,
			struct pm_error *err)
{
	struct pm_near_names near = { .wanted = word };
	int ret;

	if (strchr(word, '/'))
		return find_files_by_path(files, context, word, err);
	ret = find_libraries_by_name(files, context, word, &near, err);
	if (ret < 0 || files->list.len > 0)
		return ret;
	pm_error_set(err, -ENOENT, "no program and no library is called \"%s\"", word);
	pm_near_names_tell(&near, err);
	pm_error_fix(err, "a path: ./%s", word);
	return -ENOENT;
}
