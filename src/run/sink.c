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
	WIDTH_LEAST = 60, /* a narrower terminal wraps */
};

static int failed(struct pm_error *err, int code, const char *path)
{
	pm_error_set(err, -code, "cannot write: %s", strerror(code));
	pm_error_where(err, path ? path : "standard output", -1);
	return -code;
}

static mode_t without_mask(mode_t mode)
{
	mode_t mask = umask(0);

	umask(mask);
	return mode & ~mask;
}

static int open_temporary(struct pm_sink *sink, const struct stat *old, mode_t usual,
			  struct pm_error *err)
{
	PM_AUTO_CLOSE int fd = -1;
	mode_t mode = old ? old->st_mode & 07777 : without_mask(usual);
	int code;

	if (asprintf(&sink->temporary, "%s.XXXXXX", sink->target) < 0) {
		sink->temporary = NULL;
		return failed(err, ENOMEM, sink->path);
	}
	fd = mkostemp(sink->temporary, O_CLOEXEC);
	if (fd < 0 || fchmod(fd, mode) < 0 || !(sink->file = fdopen(fd, "w"))) {
		code = errno;
		if (fd >= 0)
			unlink(sink->temporary);
		free(sink->temporary);
		sink->temporary = NULL;
		return failed(err, code, sink->path);
	}
	pm_take_fd(&fd);
	return 0;
}

static int open_directly(struct pm_sink *sink, mode_t mode, struct pm_error *err)
{
	PM_AUTO_CLOSE int fd =
		open(sink->path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode);

	if (fd < 0 || !(sink->file = fdopen(fd, "w")))
		return failed(err, errno, sink->path);
	pm_take_fd(&fd);
	return 0;
}

/* The file behind symbolic links. NULL: a device, a pipe, or something that the kernel
 * presents as a link, such as /dev/stdout, where a new file would differ from the one
 * that is open. */
static char *find_target(const char *path, struct stat *stat_buf, bool *exists)
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

int pm_sink_open(struct pm_sink *ret, const char *path, mode_t mode, struct pm_error *err)
{
	struct pm_sink sink = { .path = path };
	struct stat stat_buf;
	bool exists;
	int r;

	if (!path || strcmp(path, "-") == 0) {
		*ret = (struct pm_sink){ .file = stdout };
		return 0;
	}
	sink.target = find_target(path, &stat_buf, &exists);
	r = sink.target ? open_temporary(&sink, exists ? &stat_buf : NULL, mode, err)
			: open_directly(&sink, mode, err);
	if (r < 0) {
		free(sink.target);
		return r;
	}
	*ret = sink;
	return 0;
}

int pm_sink_close(struct pm_sink *sink, struct pm_error *err)
{
	int code = 0;

	/* ferror() alone loses the reason; the write that failed last fails again. */
	errno = 0;
	if (fflush(sink->file) != 0)
		code = errno;
	if (code == 0 && ferror(sink->file))
		code = errno ? errno : EIO;
	if (sink->path || code == 0) {
		if (fclose(sink->file) != 0 && code == 0)
			code = errno;
		sink->file = NULL;
	}
	if (code == 0 && sink->temporary && rename(sink->temporary, sink->target) < 0)
		code = errno;
	if (code != 0) {
		const char *path = sink->path;

		pm_sink_release(sink);
		return failed(err, code, path);
	}
	free(sink->temporary);
	free(sink->target);
	sink->temporary = sink->target = NULL;
	return 0;
}

unsigned pm_sink_width(int fd)
{
	struct winsize size;

	if (!isatty(fd) || ioctl(fd, TIOCGWINSZ, &size) < 0 || size.ws_col == 0)
		return WIDTH_DEFAULT;
	return size.ws_col > WIDTH_LEAST ? size.ws_col : WIDTH_LEAST;
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
