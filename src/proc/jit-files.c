/* SPDX-License-Identifier: MIT */
/* The files in which a process describes the code that it generates. They are
 * opened in the process's view of the file system, and trusted only if the process
 * may have written them. */
#include "proc-internal.h"

#include <ctype.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <time.h>

enum {
	/* Timestamps of file systems lag by a tick, starttime is truncated to 10 ms, and
	 * the realtime clock may be adjusted. */
	SLACK_NS = 1100000000,
};
#define SECOND_NS INT64_C(1000000000)

static int64_t jit_clock_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (int64_t)now.tv_sec * SECOND_NS + now.tv_nsec;
}

/* Field @index of a line of /proc/PID/status, counted from 0; SIZE_MAX: the last one. */
static bool read_status_field(const char *line, const char *key, size_t index,
			      uint64_t *out)
{
	size_t len = strlen(key);
	bool found = false;

	if (strncmp(line, key, len) != 0)
		return false;
	line += len;
	for (size_t i = 0; i <= index; i++) {
		char *end;

		while (*line == ' ' || *line == '\t')
			line++;
		if (!isdigit((unsigned char)*line))
			return found && index == SIZE_MAX;
		*out = strtoull(line, &end, 10);
		found = true;
		line = end;
	}
	return true;
}

/* Reads euid and the pid in the innermost namespace. False if the process has ended. */
static bool read_jit_status(struct pm_jit_files *files)
{
	char path[32];
	PM_AUTO_FCLOSE FILE *status = NULL;
	PM_AUTO_FREE char *line = NULL;
	size_t cap = 0;
	bool uid = false;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)files->pid);
	status = fopen(path, "re");
	while (status && getline(&line, &cap, status) > 0) {
		uint64_t value;

		/* Uid: real, effective, saved set, file system. */
		if (read_status_field(line, "Uid:", 1, &value)) {
			files->euid = (uid_t)value;
			uid = true;
		} else if (read_status_field(line, "NSpid:", SIZE_MAX, &value)) {
			files->ns_pid = (pid_t)value;
		}
	}
	return uid;
}

/* When the process started, CLOCK_REALTIME; 0: unknown. Field 22 of proc_pid_stat(5). */
static int64_t started_ns(pid_t pid)
{
	enum {
		FIELDS_BETWEEN = 20 /* from the closing bracket after the comm */
	};
	char path[32];
	PM_AUTO_FCLOSE FILE *stat_file = NULL;
	PM_AUTO_FREE char *line = NULL;
	size_t cap = 0;
	const char *at;
	int64_t hz = sysconf(_SC_CLK_TCK), ticks;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	stat_file = fopen(path, "re");
	if (!stat_file || getdelim(&line, &cap, '\0', stat_file) <= 0)
		return 0;
	at = strrchr(line, ')');
	for (int i = 0; at && i < FIELDS_BETWEEN; i++)
		at = strchr(at + 1, ' ');
	if (!at || hz <= 0)
		return 0;
	ticks = strtoll(at, NULL, 10);
	return jit_clock_ns(CLOCK_REALTIME) - jit_clock_ns(CLOCK_BOOTTIME) +
	       ticks / hz * SECOND_NS + ticks % hz * (SECOND_NS / hz);
}

void pm_jit_files_init(struct pm_jit_files *files, pid_t pid, int64_t since_ns)
{
	*files = (struct pm_jit_files){ .pid = pid,
					.ns_pid = pid,
					.euid = geteuid(),
					.since_ns = since_ns,
					.tmp_fd = -1 };
	files->alive = pid > 0 && read_jit_status(files);
	if (files->alive) {
		int64_t started = started_ns(pid);

		if (started != 0)
			files->since_ns = started;
		files->tmp_fd = pm_open_handle(pid, "/tmp");
	}
	/* The process has ended, so its view of the file system is unavailable; usually
	 * it is the same as ours. */
	if (files->tmp_fd < 0)
		files->tmp_fd = pm_open_handle(0, "/tmp");
}

void pm_jit_files_release(struct pm_jit_files *files)
{
	pm_cleanup_close(&files->tmp_fd);
	files->tmp_fd = -1;
}

/* Whether the process may have written the file: no other user may provide
 * names for its functions. */
static int check_jit_writer(const struct pm_jit_files *files, const struct stat *st,
			    struct pm_error *err)
{
	if (S_ISLNK(st->st_mode))
		return pm_error_set(err, -ELOOP, "it is a symbolic link");
	if (!S_ISREG(st->st_mode))
		return pm_error_set(err, -ENOTSUP, "it is no regular file");
	if (st->st_uid != files->euid && st->st_uid != 0)
		return pm_error_set(err, -EPERM,
				    "it belongs to user %u and not to the process's, %u",
				    (unsigned int)st->st_uid, (unsigned int)files->euid);
	if ((int64_t)st->st_mtim.tv_sec * SECOND_NS + st->st_mtim.tv_nsec <
	    files->since_ns - SLACK_NS)
		return pm_error_set(err, -ESTALE,
				    "it is older than the process, which was given the "
				    "number of one before it");
	return 0;
}

/*
 * Inode numbers are unique only within a device. On btrfs and overlayfs stat(2) shows an
 * anonymous device (major 0), mappings another one. There the inode number alone is
 * compared.
 */
static bool is_mapped(const struct pm_module_identity *mapped, const struct stat *st)
{
	uint32_t major = major(st->st_dev), minor = minor(st->st_dev);

	if (st->st_ino != mapped->inode)
		return false;
	return (major == mapped->major && minor == mapped->minor) || major == 0 ||
	       mapped->major == 0;
}

/* Takes ownership of the handle. @mapped NULL: any file is acceptable. */
static int open_checked(const struct pm_jit_files *files, int handle, const char *path,
			const struct pm_module_identity *mapped, struct pm_error *err)
{
	PM_AUTO_CLOSE int owned = handle;
	struct stat st;
	int ret;

	if (handle < 0)
		ret = pm_error_set(err, handle, "%s", strerror(-handle));
	else if (fstat(owned, &st) < 0)
		ret = pm_error_set(err, -errno, "%s", strerror(errno));
	else if (mapped && mapped->inode != 0 && !is_mapped(mapped, &st))
		ret = pm_error_set(err, -ESTALE, "it is not the file that was mapped");
	else
		ret = check_jit_writer(files, &st, err);
	if (ret == 0) {
		ret = pm_open_regular(owned);
		if (ret < 0)
			pm_error_set(err, ret, "%s", strerror(-ret));
	}
	if (ret < 0)
		pm_error_where(err, path, -1);
	return ret;
}

static void map_name(const struct pm_jit_files *files, char *out, size_t size)
{
	snprintf(out, size, "perf-%d.map", (int)files->ns_pid);
}

int pm_jit_files_perf_map(const struct pm_jit_files *files, struct pm_error *err)
{
	char name[32], path[64];
	int handle;

	map_name(files, name, sizeof(name));
	snprintf(path, sizeof(path), "/tmp/%s", name);
	handle = openat(files->tmp_fd, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	if (handle < 0)
		handle = files->tmp_fd < 0 ? -ENOENT : -errno;
	return open_checked(files, handle, path, NULL, err);
}

bool pm_jit_files_perf_map_is(const struct pm_jit_files *files, int fd)
{
	char name[32];
	struct stat now, opened;

	map_name(files, name, sizeof(name));
	return files->tmp_fd < 0 ||
	       fstatat(files->tmp_fd, name, &now, AT_SYMLINK_NOFOLLOW) < 0 ||
	       fstat(fd, &opened) < 0 ||
	       (now.st_dev == opened.st_dev && now.st_ino == opened.st_ino);
}

int pm_jit_files_jitdump(const struct pm_jit_files *files,
			 const struct pm_module_identity *mapped, struct pm_error *err)
{
	const char *path = mapped->path;
	int handle = -ENOENT;

	if (path[0] == '/' && files->alive)
		handle = pm_open_handle(files->pid, path);
	/* The inode identifies the mapped file, so it does not matter through
	 * which root it is opened. */
	if (path[0] == '/' && handle < 0 && mapped->inode != 0)
		handle = pm_open_handle(0, path);
	return open_checked(files, handle, path, mapped, err);
}

bool pm_is_jitdump_path(const char *path)
{
	const char *base = strrchr(path, '/');
	size_t digits;

	if (!base || strncmp(base, "/jit-", 5) != 0)
		return false;
	digits = strspn(base + 5, "0123456789");
	return digits > 0 && strcmp(base + 5 + digits, ".dump") == 0;
}
