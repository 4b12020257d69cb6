/* SPDX-License-Identifier: MIT */
#include <fcntl.h>
#include <langinfo.h>
#include <locale.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>

#include "pm/run.h"

enum {
	WIDTH_DEFAULT = 80,
	WIDTH_LEAST = 60, /* a narrower terminal wraps the lines */
	WIDTH_MOST = 1 << 16,
	NAMES_MAX = 100, /* the temporary names to try */
};

static int set_write_error(struct pm_error *err, int code, const char *path)
{
	pm_error_set(err, -code, "cannot write: %s", strerror(code));
	pm_error_where(err, pm_text_or(path, "standard output"), -1);
	return -code;
}

static mode_t mode_without_mask(mode_t mode)
{
	mode_t mask = umask(0);

	umask(mask);
	return mode & ~mask;
}

/* Sets @out to the path under which the kernel shows @fd. linkat(2) can give this file a
 * name. */
static void make_fd_path(int fd, char out[32])
{
	snprintf(out, 32, "/proc/self/fd/%d", fd);
}

/* Opens a file without a name, so that nothing is left of it if this process is killed.
 * Returns a negative value if the file system does not support that, or if there is no
 * /proc. */
static int open_unnamed_file(const char *target)
{
	const char *slash = strrchr(target, '/');
	PM_AUTO_FREE char *folder =
		slash ? strndup(target, (size_t)(slash - target) + 1) : strdup(".");
	PM_AUTO_CLOSE int fd = -1;
	char shown[32];

	if (folder)
		fd = open(folder, O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);
	make_fd_path(fd, shown);
	if (fd >= 0 && access(shown, F_OK) == 0)
		return pm_take_fd(&fd);
	return -1;
}

static int sink_open_named(struct pm_sink *sink)
{
	int fd;

	if (asprintf(&sink->temporary, "%s.XXXXXX", sink->target) < 0) {
		sink->temporary = NULL;
		return -ENOMEM;
	}
	fd = mkostemp(sink->temporary, O_CLOEXEC);
	if (fd >= 0)
		return fd;
	fd = -errno;
	free(sink->temporary);
	sink->temporary = NULL;
	return fd;
}

static int sink_open_temporary(struct pm_sink *sink, const struct stat *old, mode_t usual,
			       struct pm_error *err)
{
	PM_AUTO_CLOSE int fd = open_unnamed_file(sink->target);
	mode_t mode = old ? old->st_mode & 07777 : mode_without_mask(usual);
	int ret;

	if (fd < 0)
		fd = sink_open_named(sink);
	if (fd < 0)
		return set_write_error(err, -fd, sink->path);
	if (fchmod(fd, mode) < 0 || !(sink->file = fdopen(fd, "w"))) {
		ret = errno;
		if (sink->temporary)
			unlink(sink->temporary);
		free(sink->temporary);
		sink->temporary = NULL;
		return set_write_error(err, ret, sink->path);
	}
	pm_take_fd(&fd);
	return 0;
}

/* Gives a file without a name a temporary name beside its target. Returns 0 or an
 * errno. */
static int sink_name_temporary(struct pm_sink *sink)
{
	char shown[32];
	int ret = EEXIST;

	make_fd_path(fileno(sink->file), shown);
	for (int i = 0; i < NAMES_MAX && ret == EEXIST; i++) {
		char *name;

		if (asprintf(&name, "%s.%d.%d", sink->target, (int)getpid(), i) < 0)
			return ENOMEM;
		if (linkat(AT_FDCWD, shown, AT_FDCWD, name, AT_SYMLINK_FOLLOW) < 0)
			ret = errno;
		else
			ret = 0;
		if (ret == 0)
			sink->temporary = name;
		else
			free(name);
	}
	return ret;
}

static int sink_open_directly(struct pm_sink *sink, mode_t mode, struct pm_error *err)
{
	PM_AUTO_CLOSE int fd =
		open(sink->path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode);

	if (fd < 0 || !(sink->file = fdopen(fd, "w")))
		return set_write_error(err, errno, sink->path);
	pm_take_fd(&fd);
	return 0;
}

/* Returns @path with symbolic links resolved. Returns NULL for a device, a pipe, or
 * something that the kernel presents as a link, such as /dev/stdout: there, a new file
 * would not be the one that is open. */
static char *find_target_of_path(const char *path, struct stat *stat_buf, bool *exists)
{
	*exists = lstat(path, stat_buf) == 0;
	if (!*exists || S_ISREG(stat_buf->st_mode))
		return strdup(path);
	if (!S_ISLNK(stat_buf->st_mode) || strncmp(path, "/dev/", 5) == 0 ||
	    strncmp(path, "/proc/", 6) == 0 || stat(path, stat_buf) < 0 ||
	    !S_ISREG(stat_buf->st_mode))
		return NULL;
	return realpath(path, NULL);
}

int pm_sink_open(struct pm_sink *out, const char *path, mode_t mode, struct pm_error *err)
{
	struct pm_sink sink = { .path = path };
	struct stat stat_buf;
	bool exists;
	int ret;

	if (!path || strcmp(path, "-") == 0) {
		*out = (struct pm_sink){ .file = stdout };
		return 0;
	}
	sink.target = find_target_of_path(path, &stat_buf, &exists);
	if (sink.target)
		ret = sink_open_temporary(&sink, exists ? &stat_buf : NULL, mode, err);
	else
		ret = sink_open_directly(&sink, mode, err);
	if (ret < 0) {
		free(sink.target);
		return ret;
	}
	*out = sink;
	return 0;
}

int pm_sink_close(struct pm_sink *sink, struct pm_error *err)
{
	int ret = 0;

	/* ferror() does not give the reason, but if the write that failed is repeated, it
	 * fails again with the same errno. */
	errno = 0;
	if (fflush(sink->file) != 0)
		ret = errno;
	if (ret == 0 && ferror(sink->file))
		ret = errno ? errno : EIO;
	if (ret == 0 && sink->target && !sink->temporary)
		ret = sink_name_temporary(sink);
	if (sink->path || ret == 0) {
		if (fclose(sink->file) != 0 && ret == 0)
			ret = errno;
		sink->file = NULL;
	}
	if (ret == 0 && sink->temporary && rename(sink->temporary, sink->target) < 0)
		ret = errno;
	if (ret != 0) {
		const char *path = sink->path;

		pm_sink_release(sink);
		return set_write_error(err, ret, path);
	}
	free(sink->temporary);
	free(sink->target);
	sink->temporary = sink->target = NULL;
	return 0;
}

unsigned pm_sink_width(int fd)
{
	const char *columns = getenv("COLUMNS");
	struct winsize size;
	uint64_t wanted;

	if (isatty(fd) && ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
		return PM_MAX(size.ws_col, WIDTH_LEAST);
	if (columns && pm_parse_u64(columns, &wanted) && wanted > 0)
		return (unsigned)PM_MIN(PM_MAX(wanted, WIDTH_LEAST), WIDTH_MOST);
	if (isatty(fd))
		return WIDTH_DEFAULT;
	return 0;
}

bool pm_sink_is_ascii(void)
{
	locale_t locale = newlocale(LC_CTYPE_MASK, "", (locale_t)0);
	bool utf8 = locale && strcmp(nl_langinfo_l(CODESET, locale), "UTF-8") == 0;

	if (locale)
		freelocale(locale);
	return !utf8;
}

void pm_sink_release(struct pm_sink *sink)
{
	if (sink->file && sink->path)
		fclose(sink->file);
	if (sink->temporary)
		unlink(sink->temporary);
	free(sink->temporary);
	free(sink->target);
	*sink = (struct pm_sink){ 0 };
}
