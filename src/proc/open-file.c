/* SPDX-License-Identifier: MIT */
/*
 * Opens files whose names come from other processes. A path is first opened with O_PATH:
 * a full open of a device can have side effects, and that of a FIFO can affect other
 * processes.
 */
#include "proc-internal.h"

#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <linux/openat2.h>
#include <linux/securebits.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>

int pm_open_handle_by_steps(int root, const char *path)
{
	PM_AUTO_CLOSE int at = fcntl(root, F_DUPFD_CLOEXEC, 0);
	char name[NAME_MAX + 1];

	if (at < 0)
		return -errno;
	for (;;) {
		size_t len;
		int next;

		path += strspn(path, "/");
		len = strcspn(path, "/");
		if (len == 0)
			return pm_take_fd(&at);
		if (len > NAME_MAX)
			return -ENAMETOOLONG;
		memcpy(name, path, len);
		name[len] = '\0';
		if (strcmp(name, "..") == 0)
			return -ELOOP;
		/* A symbolic link is opened as such; it is not a directory, so the next
		 * step fails. */
		next = openat(at, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
		if (next < 0)
			return -errno;
		close(at);
		at = next;
		path += len;
	}
}

static int open_in_root(int root, const char *path)
{
	enum {
		TRIES = 8 /* it fails if a directory is renamed at the same time */
	};
	struct open_how how = { .flags = O_PATH | O_CLOEXEC,
				.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS };
	long fd = -1;

	for (int i = 0; i < TRIES; i++) {
		fd = syscall(SYS_openat2, root, path, &how, sizeof(how));
		if (fd >= 0 || errno != EAGAIN)
			break;
	}
	/* Old containers return EPERM for system calls that they do not support. */
	if (fd < 0 && (errno == ENOSYS || errno == EPERM))
		return pm_open_handle_by_steps(root, path);
	if (fd < 0)
		return -errno;
	return (int)fd;
}

int pm_open_handle(pid_t pid, const char *path)
{
	PM_AUTO_CLOSE int root = -1;
	char name[32];
	int fd;

	if (pid <= 0) {
		fd = open(path, O_PATH | O_CLOEXEC);
		if (fd < 0)
			return -errno;
		return fd;
	}
	snprintf(name, sizeof(name), "/proc/%d/root", (int)pid);
	root = open(name, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (root < 0)
		return -errno;
	return open_in_root(root, path);
}

int pm_open_regular(int handle)
{
	struct stat st;
	char link[40];
	int fd;

	if (fstat(handle, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -ENOTSUP;
	snprintf(link, sizeof(link), "/proc/thread-self/fd/%d", handle);
	fd = open(link, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	/* The file of the handle exists; only its link in /proc is missing. */
	if (fd < 0 && errno == ENOENT)
		return -ENXIO;
	if (fd < 0)
		return -errno;
	return fd;
}

int pm_file_open(pid_t pid, const char *path)
{
	PM_AUTO_CLOSE int handle = pm_open_handle(pid, path);

	if (handle < 0)
		return handle;
	return pm_open_regular(handle);
}

/* ---- as another user --------------------------------------------------------------------- */

/* The system call changes only this thread; the C library's
 * function changes all threads. */
static int set_thread_groups(size_t len, const gid_t *groups)
{
	if (syscall(SYS_setgroups, len, groups) == 0)
		return 0;
	return -errno;
}

/* setfsuid() and setfsgid() do not report failure; they return the previous id. */
static bool has_fs_ids(uid_t uid, gid_t gid)
{
	return (uid_t)setfsuid((uid_t)-1) == uid && (gid_t)setfsgid((gid_t)-1) == gid;
}

/* Whether root loses its capabilities for files when its file ids change; this securebit
 * prevents that. */
static bool drops_capabilities(void)
{
	int bits = prctl(PR_GET_SECUREBITS);

	return bits >= 0 && !(bits & SECBIT_NO_SETUID_FIXUP);
}

/* When its own file ids are restored, root has its capabilities for files again. */
static int open_with_rights(const struct pm_user *user, const char *path)
{
	int fd = -EPERM;

	setfsgid(user->gid);
	setfsuid(user->uid);
	if (drops_capabilities() && has_fs_ids(user->uid, user->gid))
		fd = pm_file_open(0, path);
	setfsuid(geteuid());
	setfsgid(getegid());
	return fd;
}

int pm_file_open_as(const struct pm_user *user, const char *path)
{
	int len = getgroups(0, NULL), fd;
	PM_AUTO_FREE gid_t *own = len < 0 ? NULL : calloc((size_t)len + 1, sizeof(*own));

	if (!own)
		return -ENOMEM;
	len = getgroups(len, own);
	if (len < 0)
		return -errno;
	if (set_thread_groups(user->groups_len, user->groups) < 0)
		return -EPERM;
	fd = open_with_rights(user, path);
	if (set_thread_groups((size_t)len, own) == 0)
		return fd;
	if (fd >= 0)
		close(fd);
	return -EPERM;
}
