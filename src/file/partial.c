/* SPDX-License-Identifier: MIT */
/*
 * Names of a file that is being written. It is created beside its final path. Therefore,
 * the file of the previous recording stays until the new one has a sample:
 *   PATH.partial  --publish-->  PATH  --next publish-->  PATH.old
 */
#include "file-internal.h"

#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "corpus-internal.h"

enum {
	PARTIALS_MAX = 100, /* simultaneous recordings with the same path */
};

static char *name_partial(const char *path, unsigned int number)
{
	char *name;
	int len = number < 2 ? asprintf(&name, "%s.partial", path)
			     : asprintf(&name, "%s.partial.%u", path, number);

	if (len < 0)
		return NULL;
	return name;
}

static int open_regular(const char *path, struct stat *st)
{
	/* O_NONBLOCK is needed because the file may have been replaced by a FIFO since
	 * the caller checked it. */
	int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);

	if (fd >= 0 && (fstat(fd, st) < 0 || !S_ISREG(st->st_mode)))
		pm_cleanup_close(&fd);
	return fd;
}

/* Recognises a corpus by its first bytes, compressed or not. */
static bool is_corpus(const char *head, size_t len)
{
	PM_CLEANUP(pm_file_source_release) struct pm_file_source source = { .fd = -1 };
	char magic[PM_CORPUS_MAGIC_BYTES];
	size_t got = 0;

	if (pm_file_source_open_memory(&source, head, len, NULL) < 0 ||
	    pm_file_source_read(&source, magic, sizeof(magic), &got, NULL) < 0 ||
	    got < sizeof(magic))
		return false;
	return memcmp(magic, PM_CORPUS_MAGIC, sizeof(magic)) == 0;
}

/* Whether the file may be replaced. An empty file has no data that could be lost. */
static bool is_recording_or_empty(int fd, const struct stat *st)
{
	PM_AUTO_FREE char *head = NULL;
	ssize_t len;

	if (st->st_size == 0)
		return true;
	head = malloc(PM_FILE_HEAD_BYTES);
	if (head)
		len = pread(fd, head, PM_FILE_HEAD_BYTES, 0);
	else
		len = -1;
	return len > 0 && (pm_file_kind(head, (size_t)len) == PM_FILE_RECORDING ||
			   is_corpus(head, (size_t)len));
}

/* Returns 0, -EEXIST for a file that is not a recording, or the errno of reading it. */
static int check_file(const char *path, struct pm_error *err)
{
	struct stat st;
	PM_AUTO_CLOSE int fd = -1;
	int ret = -EEXIST;

	/* Only a regular file has bytes that a rename over it would destroy. */
	if (lstat(path, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size == 0)
		return 0;
	errno = 0;
	fd = open_regular(path, &st);
	if (fd >= 0 && is_recording_or_empty(fd, &st))
		return 0;
	if (fd < 0 && errno != 0) {
		ret = -errno;
		pm_error_set(
			err, ret,
			"exists and may be no recording, since it cannot be read: %s",
			strerror(-ret));
	} else {
		pm_error_set(err, ret,
			     "exists and is no recording, so it is not replaced");
	}
	pm_error_where(err, path, -1);
	return ret;
}

int pm_file_check_replaceable(const char *path, struct pm_error *err)
{
	PM_AUTO_FREE char *old = NULL;
	int ret;

	if (!path)
		return 0;
	if (asprintf(&old, "%s.old", path) < 0) {
		old = NULL;
		return pm_error_set(err, -ENOMEM, "out of memory");
	}
	ret = check_file(path, err);
	if (ret == 0 && pm_file_partial_replaces(path))
		ret = check_file(old, err);
	return ret;
}

static bool is_fd_named(int fd, const char *name)
{
	struct stat by_name, by_fd;

	return lstat(name, &by_name) == 0 && fstat(fd, &by_fd) == 0 &&
	       by_name.st_dev == by_fd.st_dev && by_name.st_ino == by_fd.st_ino;
}

/*
 * Removes the file @name if it was left behind by a recorder that has ended. Only the
 * process that holds the lock of a file removes its name, and only while the file still
 * has that name, because another recorder may have created its own file there in the
 * meantime.
 */
static void remove_left_over(const char *name)
{
	struct stat st;
	PM_AUTO_CLOSE int fd = open_regular(name, &st);

	if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0 &&
	    is_recording_or_empty(fd, &st) && is_fd_named(fd, name))
		unlink(name);
}

/* Returns false if another recorder, which saw the file unlocked, has removed it. */
static bool lock_own(int fd, const char *name)
{
	/* Other processes hold the lock only while they check whether the file is in use.
	 * On a file system without locks, a second recorder is merely not warned. */
	while (flock(fd, LOCK_EX) < 0 && errno == EINTR)
		;
	return is_fd_named(fd, name);
}

int pm_file_partial_create(const char *path, char **ret_partial)
{
	int ret = -EEXIST;

	for (unsigned int i = 1; i <= PARTIALS_MAX; i++) {
		PM_AUTO_FREE char *name = name_partial(path, i);
		int fd;

		if (!name)
			return -ENOMEM;
		remove_left_over(name);
		fd = open(name,
			  O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_NOCTTY | O_CLOEXEC,
			  0600);
		if (fd >= 0 && lock_own(fd, name)) {
			*ret_partial = PM_TAKE_PTR(name);
			return fd;
		}
		if (fd >= 0) {
			close(fd);
			continue;
		}
		ret = -errno;
		if (ret != -EEXIST)
			break;
	}
	return ret;
}

bool pm_file_partial_replaces(const char *path)
{
	struct stat st;

	return lstat(path, &st) == 0 && S_ISREG(st.st_mode) && st.st_size > 0;
}

int pm_file_open_replaced(const char *path)
{
	PM_AUTO_FREE char *old = NULL;
	int fd;

	if (!pm_file_partial_replaces(path))
		return -ENOENT;
	if (asprintf(&old, "%s.old", path) < 0) {
		old = NULL;
		return -ENOMEM;
	}
	fd = open(old, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	if (fd >= 0)
		return fd;
	return -errno;
}

void pm_file_partial_publish(const char *path, const char *partial,
			     struct pm_file_published *out)
{
	PM_AUTO_FREE char *old = NULL;
	bool replaces = pm_file_partial_replaces(path);

	*out = (struct pm_file_published){ .given = false };
	if (asprintf(&old, "%s.old", path) < 0) {
		old = NULL;
		out->refused = -ENOMEM;
		return;
	}
	if (replaces && rename(path, old) < 0) {
		out->refused = -errno;
		return;
	}
	out->given = rename(partial, path) == 0;
	if (!out->given)
		out->refused = -errno;
	/* If the new file cannot be renamed, the old one gets its name back. */
	out->kept_old = replaces && (out->given || rename(old, path) < 0);
}

/* Like rename(2), but does not replace a file at @to. */
static int rename_to_new(const char *from, const char *to)
{
	if (renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE) == 0)
		return 0;
	/* File systems that do not support RENAME_NOREPLACE have hard links. */
	if (errno != EINVAL)
		return -errno;
	if (link(from, to) < 0)
		return -errno;
	if (unlink(from) < 0)
		return -errno;
	return 0;
}

void pm_file_partial_keep(const char *path, char **partial)
{
	int ret = -EEXIST;

	for (unsigned int i = 1; i <= PARTIALS_MAX && ret == -EEXIST; i++) {
		char *name;
		int len = i < 2 ? asprintf(&name, "%s.kept", path)
				: asprintf(&name, "%s.kept.%u", path, i);

		if (len < 0)
			return;
		ret = rename_to_new(*partial, name);
		if (ret == 0) {
			free(*partial);
			*partial = name;
			return;
		}
		free(name);
	}
}

enum pm_file_partial pm_file_partial_find(const char *path, char **ret_name)
{
	enum pm_file_partial found = PM_FILE_PARTIAL_NONE;
	PM_AUTO_FREE char *kept = NULL;

	/* A recording that is still growing is preferred to one that was left behind.
	 * Recorders with lower numbers may have published their files already. */
	for (unsigned int i = 1; i <= PARTIALS_MAX && found != PM_FILE_PARTIAL_GROWING;
	     i++) {
		PM_AUTO_FREE char *name = name_partial(path, i);
		struct stat st;
		PM_AUTO_CLOSE int fd = name ? open_regular(name, &st) : -1;
		bool grows;

		if (fd < 0)
			continue;
		grows = flock(fd, LOCK_SH | LOCK_NB) < 0 && errno == EWOULDBLOCK;
		if (!grows && found != PM_FILE_PARTIAL_NONE)
			continue;
		found = grows ? PM_FILE_PARTIAL_GROWING : PM_FILE_PARTIAL_LEFT;
		free(kept);
		kept = PM_TAKE_PTR(name);
	}
	if (ret_name)
		*ret_name = PM_TAKE_PTR(kept);
	return found;
}
