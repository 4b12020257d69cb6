/* SPDX-License-Identifier: MIT */
#include "tracefs-mount.h"

#include <fcntl.h>
#include <string.h>
#include <sys/syscall.h>

#include "pm/base.h"

/* linux/mount.h; the C library may be older than the kernel. */
#ifndef FSOPEN_CLOEXEC
#define FSOPEN_CLOEXEC 1
#endif
#ifndef FSMOUNT_CLOEXEC
#define FSMOUNT_CLOEXEC 1
#endif
#ifndef FSCONFIG_CMD_CREATE
#define FSCONFIG_CMD_CREATE 6
#endif
#ifndef MOUNT_ATTR_NOSUID
#define MOUNT_ATTR_RDONLY 1
#define MOUNT_ATTR_NOSUID 2
#define MOUNT_ATTR_NODEV  4
#define MOUNT_ATTR_NOEXEC 8
#endif

static int open_tracefs_folder(const char *path)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	return fd;
}

/* Opens a mounted tracefs that contains events; an unmounted mount point is empty. */
static int open_mounted_tracefs(bool writable)
{
	static const char *const places[] = { "/sys/kernel/tracing",
					      "/sys/kernel/debug/tracing" };
	const char *name = "events";
	int mode = R_OK, why = -ENOENT;

	if (writable) {
		name = "uprobe_events";
		mode = R_OK | W_OK;
	}
	for (size_t i = 0; i < PM_ARRAY_LEN(places); i++) {
		int fd PM_AUTO_CLOSE = open_tracefs_folder(places[i]);

		/* Check the effective ids, which may have more permissions than the real
		 * ones. */
		if (fd >= 0 && faccessat(fd, name, mode, AT_EACCESS) == 0)
			return pm_take_fd(&fd);
		if (fd == -EACCES || (fd >= 0 && errno == EACCES))
			why = -EACCES;
	}
	return why;
}

/* Creates a mount that is attached nowhere and lasts as long as its descriptor
 * (fsmount(2), Linux 5.2). */
static int mount_detached_tracefs(bool writable)
{
#ifdef SYS_fsmount
	int context PM_AUTO_CLOSE = (int)syscall(SYS_fsopen, "tracefs", FSOPEN_CLOEXEC);
	int fd;

	if (context < 0 ||
	    syscall(SYS_fsconfig, context, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
		return -errno;
	fd = (int)syscall(SYS_fsmount, context, FSMOUNT_CLOEXEC,
			  (writable ? 0 : MOUNT_ATTR_RDONLY) | MOUNT_ATTR_NOSUID |
				  MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC);
	if (fd < 0)
		return -errno;
	return fd;
#else
	(void)writable;
	return -ENOSYS;
#endif
}

const char *pm_tracefs_own(void)
{
	static char path[sizeof("/proc/self/fd/") + 3 * sizeof(int)];
	int fd;

	if (path[0] == '\0') {
		fd = mount_detached_tracefs(false);
		if (fd < 0)
			return NULL;
		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	}
	return path;
}

static int open_tracefs_root(bool writable)
{
	int fd = open_mounted_tracefs(writable), detached;

	if (fd >= 0)
		return fd;
	detached = mount_detached_tracefs(writable);
	if (detached >= 0)
		return detached;
	return fd;
}

int pm_tracefs_open(void)
{
	return open_tracefs_root(false);
}

int pm_tracefs_open_writable(void)
{
	return open_tracefs_root(true);
}
