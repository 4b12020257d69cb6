/* SPDX-License-Identifier: MIT */
/*
 * Reads the state of a running process from /proc. Source of the line format: proc(5),
 * show_map_vma() in the kernel's fs/proc/task_mmu.c.
 */
#include "proc-internal.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/mman.h>

static bool take_number(const char **at, const char *end, unsigned int base,
			uint64_t *out)
{
	const char *first = *at;
	uint64_t value = 0;

	for (; *at < end; (*at)++) {
		unsigned int digit;
		char c = **at;

		if (c >= '0' && c <= '9')
			digit = (unsigned int)(c - '0');
		else if (base == 16 && c >= 'a' && c <= 'f')
			digit = (unsigned int)(c - 'a') + 10;
		else
			break;
		if (__builtin_mul_overflow(value, (uint64_t)base, &value) ||
		    __builtin_add_overflow(value, (uint64_t)digit, &value))
			return false;
	}
	*out = value;
	return *at > first;
}

static bool take_char(const char **at, const char *end, char c)
{
	if (*at >= end || **at != c)
		return false;
	(*at)++;
	return true;
}

static bool take_prot(const char **at, const char *end, uint32_t *out)
{
	static const struct {
		char set;
		uint32_t prot;
	} flags[] = { { 'r', PROT_READ }, { 'w', PROT_WRITE }, { 'x', PROT_EXEC } };

	*out = 0;
	for (size_t i = 0; i < PM_ARRAY_LEN(flags); i++) {
		if (take_char(at, end, flags[i].set))
			*out |= flags[i].prot;
		else if (!take_char(at, end, '-'))
			return false;
	}
	return take_char(at, end, 'p') || take_char(at, end, 's');
}

int pm_maps_line_parse(const char *line, size_t len, struct pm_maps_line *out)
{
	const char *at = line, *end = line + len;
	struct pm_maps_line parsed = { 0 };
	uint64_t major, minor;

	if (!take_number(&at, end, 16, &parsed.start) || !take_char(&at, end, '-') ||
	    !take_number(&at, end, 16, &parsed.end) || !take_char(&at, end, ' ') ||
	    !take_prot(&at, end, &parsed.prot) || !take_char(&at, end, ' ') ||
	    !take_number(&at, end, 16, &parsed.pgoff) || !take_char(&at, end, ' ') ||
	    !take_number(&at, end, 16, &major) || !take_char(&at, end, ':') ||
	    !take_number(&at, end, 16, &minor) || !take_char(&at, end, ' ') ||
	    !take_number(&at, end, 10, &parsed.inode))
		return -EBADMSG;
	if (parsed.start >= parsed.end || major > UINT32_MAX || minor > UINT32_MAX)
		return -EBADMSG;
	if (at < end && !take_char(&at, end, ' '))
		return -EBADMSG;
	while (take_char(&at, end, ' '))
		;
	if (memchr(at, '\0', (size_t)(end - at)) || memchr(at, '\n', (size_t)(end - at)))
		return -EBADMSG;
	parsed.major = (uint32_t)major;
	parsed.minor = (uint32_t)minor;
	parsed.path = at < end ? at : "";
	parsed.path_len = (size_t)(end - at);
	*out = parsed;
	return 0;
}

/* The kernel writes a newline in a name as \012 here, and escapes nothing else. */
static void unescape_maps_path(struct pm_str *to, const char *path, size_t len)
{
	pm_str_clear(to);
	pm_str_append(to, "", 0);
	for (size_t i = 0; i < len; i++) {
		if (len - i >= 4 && memcmp(path + i, "\\012", 4) == 0) {
			pm_str_putc(to, '\n');
			i += 3;
		} else {
			pm_str_putc(to, path[i]);
		}
	}
}

static FILE *open_text(const char *path)
{
	return fopen(path, "rce");
}

/* ---- one mapping of a process ---------------------------------------------------------- */

int pm_maps_find(const struct pm_module *module, bool *named)
{
	const struct pm_module_identity *identity = &module->identity;
	struct pm_str path PM_CLEANUP(pm_str_release) = { 0 };
	PM_AUTO_FCLOSE FILE *file = NULL;
	PM_AUTO_FREE char *text = NULL;
	size_t cap = 0;
	char name[64];
	ssize_t len;

	snprintf(name, sizeof(name), "/proc/%d/maps", (int)module->seen_pid);
	file = open_text(name);
	if (!file)
		return -errno;
	while ((len = getline(&text, &cap, file)) > 0) {
		struct pm_maps_line line;

		if (text[len - 1] == '\n')
			len--;
		if (pm_maps_line_parse(text, (size_t)len, &line) < 0 ||
		    module->seen_start < line.start || module->seen_start >= line.end)
			continue;
		if (line.inode != identity->inode || line.major != identity->major ||
		    line.minor != identity->minor)
			return -ENOENT;
		unescape_maps_path(&path, line.path, line.path_len);
		*named = !path.failed && strcmp(path.data, identity->path) == 0;
		return 0;
	}
	return -ENOENT;
}

/* ---- reading a process --------------------------------------------------------------- */

/* Explains why /proc/PID cannot be read. */
static int explain_unreadable_maps(pid_t pid, int code, struct pm_error *err)
{
	if (code == -ENOENT || code == -ESRCH)
		return pm_error_set(err, -ESRCH, "no process %d", (int)pid);
	if (code == -EACCES || code == -EPERM) {
		pm_error_set(err, -EACCES,
			     "not permitted to see the memory of process %d", (int)pid);
		pm_error_fix(err, "run as root or as the user of that process");
		return -EACCES;
	}
	pm_error_set(err, code, "cannot be read: %s", strerror(-code));
	return code;
}

static bool is_path_in_roots(pid_t pid, const struct pm_str *path)
{
	PM_AUTO_CLOSE int in_root = -1;
	PM_AUTO_CLOSE int here = -1;

	if (path->failed || path->data[0] != '/')
		return false;
	in_root = pm_open_handle(pid, path->data);
	if (in_root < 0)
		here = pm_open_handle(0, path->data);
	else
		here = -1;
	return in_root >= 0 || here >= 0;
}

/* A name may contain the four characters of the escape literally; the
 * existing file decides. */
static void choose_name(pid_t pid, const struct pm_maps_line *line, struct pm_str *path)
{
	unescape_maps_path(path, line->path, line->path_len);
	if (path->len == line->path_len || is_path_in_roots(pid, path))
		return;
	pm_str_clear(path);
	pm_str_append(path, line->path, line->path_len);
	if (!is_path_in_roots(pid, path))
		unescape_maps_path(path, line->path, line->path_len);
}

static int apply_line(struct pm_procs *procs, pid_t pid, const struct pm_maps_line *line,
		      struct pm_str *path, struct pm_space *space)
{
	struct pm_mapping mapping = {
		.start = line->start,
		.end = line->end,
		.pgoff = line->pgoff,
	};
	struct pm_module_identity identity = {
		.major = line->major,
		.minor = line->minor,
		.inode = line->inode,
	};
	size_t path_len;
	int64_t module;
	int ret;

	if (!(line->prot & PROT_EXEC))
		return 0;
	choose_name(pid, line, path);
	if (path->failed)
		return -ENOMEM;
	identity.kind = pm_module_kind_of(path->data, &path_len);
	path->data[path_len] = '\0';
	identity.path = path->data;
	pm_module_name_vdso(&identity, line->start);
	module = pm_procs_intern_module(procs, &identity);
	if (module < 0)
		return (int)module;
	mapping.module = (uint32_t)module;
	ret = pm_space_replace(space, line->start, line->end, &mapping);
	return PM_MIN(ret, 0);
}

static void release_space(struct pm_space *space)
{
	pm_vec_release(&space->maps);
}

/* Reads the mappings of @tid, a thread of some process. */
static int read_lines(struct pm_procs *procs, pid_t tid, struct pm_space *space,
		      int64_t *lines, struct pm_error *err)
{
	struct pm_str path PM_CLEANUP(pm_str_release) = { 0 };
	PM_AUTO_FCLOSE FILE *file = NULL;
	PM_AUTO_FREE char *line = NULL;
	char name[64];
	size_t cap = 0;
	ssize_t len;
	int ret = 0;

	*lines = 0;
	snprintf(name, sizeof(name), "/proc/%d/maps", (int)tid);
	file = open_text(name);
	if (!file)
		ret = explain_unreadable_maps(tid, -errno, err);
	while (file && ret == 0 && (errno = 0, (len = getline(&line, &cap, file)) > 0)) {
		struct pm_maps_line parsed;

		++*lines;
		if (line[len - 1] == '\n')
			len--;
		if (pm_maps_line_parse(line, (size_t)len, &parsed) < 0) {
			ret = pm_error_set(err, -EBADMSG, "not a line of a memory map");
			pm_error_where(err, name, *lines);
			return ret;
		}
		ret = apply_line(procs, tid, &parsed, &path, space);
		if (ret < 0)
			ret = pm_error_set(err, ret, "%s", strerror(-ret));
	}
	if (file && ret == 0 && ferror(file))
		ret = explain_unreadable_maps(tid, errno ? -errno : -EIO, err);
	if (ret < 0)
		pm_error_where(err, name, -1);
	return ret;
}

/* The next thread of @pid above @tid that has memory, 0: none. Leaders that have ended
 * have none, nor do kernel threads. */
static pid_t next_with_memory(pid_t pid, pid_t tid)
{
	const struct dirent *entry;
	char name[64];
	pid_t found = 0;
	DIR *folder;

	snprintf(name, sizeof(name), "/proc/%d/task", (int)pid);
	folder = opendir(name);
	while (folder && found == 0 && (entry = readdir(folder))) {
		PM_AUTO_FCLOSE FILE *file = NULL;
		uint64_t other;

		if (!pm_parse_u64(entry->d_name, &other) || other > INT32_MAX ||
		    (pid_t)other <= tid)
			continue;
		snprintf(name, sizeof(name), "/proc/%d/maps", (int)other);
		file = open_text(name);
		if (file && getc(file) != EOF)
			found = (pid_t)other;
	}
	if (folder)
		closedir(folder);
	return found;
}

static int read_maps(struct pm_procs *procs, pid_t pid, struct pm_error *err)
{
	struct pm_space space PM_CLEANUP(release_space) = { 0 };
	const struct pm_process *known;
	pid_t tid = 0, from = pid;
	int64_t lines;
	int ret = read_lines(procs, pid, &space, &lines, err);

	/* Threads may end meanwhile; each is tried once. */
	while (ret == 0 && lines == 0 && (tid = next_with_memory(pid, tid)) != 0) {
		from = tid;
		if (read_lines(procs, tid, &space, &lines, NULL) < 0) {
			pm_vec_clear(&space.maps);
			lines = 0;
		}
	}
	if (ret < 0)
		return ret;
	known = pm_procs_get(procs, pid);
	if (lines == 0 && known && known->space.maps.len > 0)
		return 0;
	ret = pm_procs_adopt(procs, pid, from, &space);
	if (ret < 0)
		return pm_error_set(err, ret, "%s", strerror(-ret));
	return 0;
}

static int read_comm(struct pm_procs *procs, pid_t pid, pid_t tid)
{
	char name[64], comm[64];
	PM_AUTO_CLOSE int fd = -1;
	ssize_t len;

	snprintf(name, sizeof(name), "/proc/%d/task/%d/comm", (int)pid, (int)tid);
	fd = open(name, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0; /* it has ended since the directory was read */
	len = read(fd, comm, sizeof(comm) - 1);
	if (len <= 0)
		return 0;
	/* Only a final newline is not part of the name. */
	comm[comm[len - 1] == '\n' ? len - 1 : len] = '\0';
	return pm_procs_comm(procs, pid, tid, comm, false);
}

static int read_tasks(struct pm_procs *procs, pid_t pid, struct pm_error *err)
{
	const struct dirent *entry;
	char name[64];
	DIR *folder;
	int ret = 0;

	snprintf(name, sizeof(name), "/proc/%d/task", (int)pid);
	folder = opendir(name);
	if (!folder) {
		ret = explain_unreadable_maps(pid, -errno, err);
		pm_error_where(err, name, -1);
		return ret;
	}
	while (ret == 0 && (entry = readdir(folder))) {
		uint64_t tid;

		if (pm_parse_u64(entry->d_name, &tid) && tid <= INT32_MAX)
			ret = read_comm(procs, pid, (pid_t)tid);
	}
	closedir(folder);
	if (ret < 0)
		pm_error_set(err, ret, "%s", strerror(-ret));
	return ret;
}

/* /proc/TID exists for every thread, although it is not listed. If it was read as a
 * process, that process would exist twice. */
static int refuse_thread(pid_t pid, struct pm_error *err)
{
	PM_AUTO_FCLOSE FILE *file = NULL;
	char name[64], line[256];

	snprintf(name, sizeof(name), "/proc/%d/status", (int)pid);
	file = open_text(name);
	while (file && fgets(line, sizeof(line), file)) {
		long tgid;

		if (sscanf(line, "Tgid: %ld", &tgid) != 1)
			continue;
		if (tgid == pid)
			return 0;
		pm_error_set(err, -ESRCH, "%d is a thread of process %ld", (int)pid,
			     tgid);
		pm_error_fix(err, "%ld", tgid);
		return -ESRCH;
	}
	return 0; /* later reads will report what is wrong */
}

int pm_procs_read(struct pm_procs *procs, pid_t pid, struct pm_error *err)
{
	int ret = refuse_thread(pid, err);

	if (ret == 0)
		ret = read_maps(procs, pid, err);
	if (ret < 0)
		return ret;
	return read_tasks(procs, pid, err);
}
