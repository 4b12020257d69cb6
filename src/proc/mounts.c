/* SPDX-License-Identifier: MIT */
/*
 * Which file systems wait for nothing but a disk of this machine. The others wait for servers
 * elsewhere (NFS), or for a process of anybody (FUSE), which may have stopped: then open(2),
 * statfs(2), statx(2) and a read do not return. What the kernel's list of mounts says
 * (proc_pid_mountinfo(5)) is known without a question to a file system, and so is the mount of an
 * O_PATH descriptor.
 */
#include "proc-internal.h"

#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <string.h>

enum {
	LINKS_MAX = 40, /* symbolic links in one path, as the kernel has it */
	TYPE_BYTES = 16, /* longer than any name of a local type */
};

struct mount {
	unsigned int id, major, minor;
	bool local, overlay;
};

struct mounts {
	PM_VEC(struct mount) rows;
};

struct pm_mounts {
	int fd; /* polled for changes of the list; -1: not read yet */
	struct mounts own; /* of our mount namespace */
};

struct pm_mounts *pm_mounts_new(void)
{
	struct pm_mounts *mounts = calloc(1, sizeof(*mounts));

	if (mounts)
		mounts->fd = -1;
	return mounts;
}

void pm_mounts_forget(struct pm_mounts *mounts)
{
	pm_cleanup_close(&mounts->fd);
	mounts->fd = -1;
}

void pm_mounts_free(struct pm_mounts *mounts)
{
	if (!mounts)
		return;
	pm_mounts_forget(mounts);
	pm_vec_release(&mounts->own.rows);
	free(mounts);
}

/* ---- the list -------------------------------------------------------------------------- */

static bool is_local_type(const char *type)
{
	static const char *const local[] = {
		"bcachefs", "btrfs",    "cramfs", "devtmpfs", "erofs",   "exfat",
		"ext2",     "ext3",     "ext4",   "f2fs",     "hfsplus", "hugetlbfs",
		"iso9660",  "jfs",      "minix",  "msdos",    "nilfs2",  "ntfs3",
		"ramfs",    "reiserfs", "rootfs", "squashfs", "tmpfs",   "udf",
		"vfat",     "xfs",      "zfs",
	};

	for (size_t i = 0; i < PM_ARRAY_LEN(local); i++)
		if (strcmp(type, local[i]) == 0)
			return true;
	return false;
}

/* ID PARENT MAJOR:MINOR … - TYPE …; the kernel escapes the blanks of names. */
static bool parse_mount(const char *line, struct mount *ret)
{
	const char *type = strstr(line, " - ");
	char name[TYPE_BYTES];

	if (!type ||
	    sscanf(line, "%u %*u %u:%u", &ret->id, &ret->major, &ret->minor) != 3)
		return false;
	type += strlen(" - ");
	snprintf(name, sizeof(name), "%.*s", (int)strcspn(type, " \n"), type);
	ret->local = is_local_type(name);
	ret->overlay = strcmp(name, "overlay") == 0;
	return true;
}

static void read_mounts(const char *path, struct mounts *ret)
{
	PM_AUTO_FCLOSE FILE *file = fopen(path, "re");
	PM_AUTO_FREE char *line = NULL;
	size_t cap = 0;

	pm_vec_clear(&ret->rows);
	while (file && getline(&line, &cap, file) > 0) {
		struct mount mount;

		if (parse_mount(line, &mount) && pm_vec_push(&ret->rows, mount) < 0)
			return; /* what is not in the list is not local */
	}
}

/* Reads the list again if it has changed. */
static void refresh(struct pm_mounts *mounts)
{
	static const char own[] = "/proc/self/mountinfo";
	struct pollfd changed = { .fd = mounts->fd, .events = POLLPRI };

	if (mounts->fd >= 0 && poll(&changed, 1, 0) == 0)
		return;
	if (mounts->fd < 0)
		mounts->fd = open(own, O_RDONLY | O_CLOEXEC);
	read_mounts(own, &mounts->own);
}

static const struct mount *find_mount(const struct mounts *mounts, unsigned int id)
{
	for (size_t i = 0; i < mounts->rows.len; i++)
		if (mounts->rows.data[i].id == id)
			return &mounts->rows.data[i];
	return NULL;
}

/* An overlay that we have, too. */
static bool has_overlay(const struct mounts *mounts, const struct mount *like)
{
	for (size_t i = 0; i < mounts->rows.len; i++) {
		const struct mount *mount = &mounts->rows.data[i];

		if (mount->overlay && mount->major == like->major &&
		    mount->minor == like->minor)
			return true;
	}
	return false;
}

/* Of an open descriptor; false: unknown. */
static bool mount_id(int fd, unsigned int *ret)
{
	PM_AUTO_CLOSE int info = -1;
	char path[48], text[256];
	const char *at;
	ssize_t len;

	snprintf(path, sizeof(path), "/proc/thread-self/fdinfo/%d", fd);
	info = open(path, O_RDONLY | O_CLOEXEC);
	len = info < 0 ? -1 : read(info, text, sizeof(text) - 1);
	if (len <= 0)
		return false;
	text[len] = '\0';
	at = strstr(text, "mnt_id:");
	return at && sscanf(at, "mnt_id: %u", ret) == 1;
}

/*
 * An overlay may lie over any file system. One that our mount namespace has was mounted by those
 * who may mount here. One that only others have can be anybody's, by a user namespace.
 */
enum pm_locality pm_mounts_locality(struct pm_mounts *mounts, int fd, pid_t pid)
{
	struct mounts theirs = { 0 };
	enum pm_locality ret = PM_LOCALITY_UNKNOWN;
	const struct mount *mount;
	unsigned int id;
	char path[48];

	if (!mount_id(fd, &id))
		return ret;
	refresh(mounts);
	mount = find_mount(&mounts->own, id);
	if (mount)
		return mount->local || mount->overlay ? PM_LOCAL : PM_REMOTE;
	if (pid <= 0)
		return ret;
	snprintf(path, sizeof(path), "/proc/%d/mountinfo", (int)pid);
	read_mounts(path, &theirs);
	mount = find_mount(&theirs, id);
	if (mount)
		ret = mount->local || (mount->overlay && has_overlay(&mounts->own, mount))
			      ? PM_LOCAL
			      : PM_REMOTE;
	pm_vec_release(&theirs.rows);
	return ret;
}

static bool is_local(struct pm_mounts *mounts, int fd, pid_t pid)
{
	return pm_mounts_locality(mounts, fd, pid) == PM_LOCAL;
}

/* ---- paths ----------------------------------------------------------------------------- */

/* Replaces the part of @path from @start to @end, between two slashes, by @by. */
static int replace_part(char path[PATH_MAX], size_t start, size_t end, const char *by)
{
	char whole[PATH_MAX];
	int len = snprintf(whole, sizeof(whole), "%.*s/%s/%s",
			   by[0] == '/' ? 0 : (int)start, path, by, path + end);

	if (len < 0 || (size_t)len >= sizeof(whole))
		return -ENAMETOOLONG;
	memcpy(path, whole, (size_t)len + 1);
	return 0;
}

/* Where the part before the one at @at begins. */
static size_t previous_part(const char *path, size_t at)
{
	while (at > 0 && path[at - 1] == '/')
		at--;
	while (at > 0 && path[at - 1] != '/')
		at--;
	return at;
}

/*
 * Goes through folders without a symbolic link. -EAGAIN: there was a link, or a "..", which is
 * resolved in @path now.
 */
static int walk(struct pm_mounts *mounts, pid_t pid, int root, char path[PATH_MAX])
{
	PM_AUTO_CLOSE int at = fcntl(root, F_DUPFD_CLOEXEC, 0);
	char name[NAME_MAX + 1], target[PATH_MAX];
	size_t pos = 0;

	if (at < 0)
		return -errno;
	for (;;) {
		size_t len;
		ssize_t linked;
		int next;

		pos += strspn(path + pos, "/");
		len = strcspn(path + pos, "/");
		if (!is_local(mounts, at, pid))
			return -EREMOTE;
		if (len == 0)
			return pm_take_fd(&at);
		if (len > NAME_MAX)
			return -ENAMETOOLONG;
		memcpy(name, path + pos, len);
		name[len] = '\0';
		if (strcmp(name, "..") == 0) {
			int rc = replace_part(path, previous_part(path, pos), pos + len,
					      "");
			return rc < 0 ? rc : -EAGAIN;
		}
		next = openat(at, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
		if (next < 0)
			return -errno;
		close(at);
		at = next;
		linked = readlinkat(at, "", target, sizeof(target) - 1);
		if (linked >= 0) {
			int rc;

			target[linked] = '\0';
			rc = replace_part(path, pos, pos + len, target);
			return rc < 0 ? rc : -EAGAIN;
		}
		pos += len;
	}
}

int pm_open_handle_local(struct pm_mounts *mounts, pid_t pid, const char *path)
{
	PM_AUTO_CLOSE int root = -1;
	char name[32] = "/", whole[PATH_MAX];
	int rc = -ELOOP;

	if (path[0] != '/' || strlen(path) >= sizeof(whole))
		return -EREMOTE;
	memcpy(whole, path, strlen(path) + 1);
	if (pid > 0)
		snprintf(name, sizeof(name), "/proc/%d/root", (int)pid);
	root = open(name, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (root < 0)
		return -errno;
	for (int i = 0; i < LINKS_MAX; i++) {
		rc = walk(mounts, pid, root, whole);
		if (rc != -EAGAIN)
			return rc;
		rc = -ELOOP;
	}
	return rc;
}
