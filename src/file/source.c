/* SPDX-License-Identifier: MIT */
#include "file-internal.h"

#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <zstd.h>

enum {
	IN_BYTES = 128 << 10,
	MAGIC_BYTES = 8,
	/* 2^27 = 128 MiB is also the default limit of `zstd -d`. */
	ZSTD_WINDOW_LOG_MAX = 27,
	/* Recordings are compressed to between a tenth and a fortieth. A file with a much
	 * higher ratio consists of repeated lines, and a few of its megabytes would take
	 * hours to read. */
	INFLATION_MAX = 256,
	INFLATED_BYTES_FREE = 16 << 20, /* always allowed */
};

/* Whether a read will not block. */
static bool is_ready(int fd)
{
	struct pollfd ready = { .fd = fd, .events = POLLIN };

	return poll(&ready, 1, 0) > 0;
}

static bool is_growing(int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 && S_ISREG(st.st_mode);
}

static ssize_t read_some(struct pm_file_source *source, void *buffer, size_t cap)
{
	ssize_t n;

	if (source->fd < 0) {
		size_t have = source->memory_len;

		if (have > cap)
			have = cap;
		if (have > 0)
			memcpy(buffer, source->memory, have);
		source->memory += have;
		source->memory_len -= have;
		return (ssize_t)have;
	}
	if (source->follow && !is_ready(source->fd))
		return -EAGAIN;
	do
		n = read(source->fd, buffer, cap);
	while (n < 0 && errno == EINTR);
	if (n == 0 && source->follow && is_growing(source->fd))
		return -EAGAIN;
	if (n < 0)
		return -errno;
	return n;
}

static int source_refill(struct pm_file_source *source, struct pm_error *err)
{
	ssize_t n = read_some(source, source->in, IN_BYTES);

	if (n < 0)
		return pm_error_set(err, (int)n, "cannot be read: %s", strerror((int)-n));
	source->consumed += source->in_len;
	source->in_pos = 0;
	source->in_len = (size_t)n;
	source->end = n == 0;
	return 0;
}

/* The magic number of RFC 8878 §3.1.1. */
bool pm_file_is_zstd(const void *bytes, size_t len)
{
	return len >= 4 && memcmp(bytes, "\x28\xb5\x2f\xfd", 4) == 0;
}

static bool begins_with(const struct pm_file_source *source, const char *magic,
			size_t len)
{
	return source->in_len >= len && memcmp(source->in, magic, len) == 0;
}

/* Refuses files that are often passed by mistake, which are recognised by their magic
 * numbers. */
static int refuse_foreign(const struct pm_file_source *source, struct pm_error *err)
{
	static const struct {
		const char *magic;
		size_t len;
		const char *text, *fix;
	} foreign[] = {
		{ "PERFILE2", 8,
		  "this is a perf.data file; pmreport reads files of pmrec",
		  "pmrec -- PROGRAM, or perf report" },
		{ "2ELIFREP", 8,
		  "this is a perf.data file; pmreport reads files of pmrec",
		  "pmrec -- PROGRAM, or perf report" },
		{ "\x1f\x8b", 2, "this file is compressed by gzip; only zstd is read",
		  "gunzip FILE" },
		{ "\xfd"
		  "7zXZ",
		  5, "this file is compressed by xz; only zstd is read", "unxz FILE" },
		{ "BZh", 3, "this file is compressed by bzip2; only zstd is read",
		  "bunzip2 FILE" },
		{ "\x7f"
		  "ELF",
		  4, "this is a program, not a recording", "pmrec -- PROGRAM" },
	};

	for (size_t i = 0; i < PM_ARRAY_LEN(foreign); i++) {
		if (!begins_with(source, foreign[i].magic, foreign[i].len))
			continue;
		pm_error_set(err, -EBADMSG, "%s", foreign[i].text);
		pm_error_fix(err, "%s", foreign[i].fix);
		return -EBADMSG;
	}
	return 0;
}

static int source_start(struct pm_file_source *source, struct pm_error *err)
{
	source->in = malloc(IN_BYTES);
	if (!source->in)
		return pm_error_set(err, -ENOMEM, "out of memory");
	/* A read from a pipe may return fewer bytes than a magic number has. */
	while (source->in_len < MAGIC_BYTES) {
		ssize_t n = read_some(source, source->in + source->in_len,
				      IN_BYTES - source->in_len);

		if (n < 0)
			return pm_error_set(err, (int)n, "cannot be read: %s",
					    strerror((int)-n));
		if (n == 0)
			break;
		source->in_len += (size_t)n;
	}
	if (source->in_len == 0)
		return pm_error_set(err, -ENODATA,
				    "the file is empty: nothing was recorded");
	if (pm_file_is_zstd(source->in, source->in_len)) {
		source->zstd = ZSTD_createDCtx();
		if (!source->zstd ||
		    ZSTD_isError(ZSTD_DCtx_setParameter(source->zstd, ZSTD_d_windowLogMax,
							ZSTD_WINDOW_LOG_MAX)))
			return pm_error_set(err, -ENOMEM, "out of memory");
		return 0;
	}
	return refuse_foreign(source, err);
}

static int source_start_or_release(struct pm_file_source *out,
				   struct pm_file_source *source, struct pm_error *err)
{
	int ret = source_start(source, err);

	if (ret < 0) {
		pm_file_source_release(source);
		return ret;
	}
	*out = *source;
	return 0;
}

int pm_file_source_open(struct pm_file_source *out, const char *path,
			struct pm_error *err)
{
	struct pm_file_source source = { .fd = -1 };
	int ret;

	if (strcmp(path, "-") == 0)
		source.fd = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3);
	else
		source.fd = open(path, O_RDONLY | O_NOCTTY | O_CLOEXEC);
	if (source.fd < 0) {
		ret = -errno;
		pm_error_set(err, ret, "cannot be opened: %s", strerror(-ret));
		if (ret == -ENOENT)
			pm_error_fix(err, "pmrec -- PROGRAM, which records one");
		return ret;
	}
	return source_start_or_release(out, &source, err);
}

int pm_file_source_open_memory(struct pm_file_source *out, const void *data, size_t len,
			       struct pm_error *err)
{
	struct pm_file_source source = { .fd = -1, .memory = data, .memory_len = len };

	return source_start_or_release(out, &source, err);
}

static int read_plain(struct pm_file_source *source, char *buffer, size_t cap,
		      size_t *out, struct pm_error *err)
{
	size_t have = source->in_len - source->in_pos;
	ssize_t n;

	if (have > 0) {
		if (have > cap)
			have = cap;
		memcpy(buffer, source->in + source->in_pos, have);
		source->in_pos += have;
		*out = have;
		return 1;
	}
	n = read_some(source, buffer, cap);
	if (n < 0)
		return pm_error_set(err, (int)n, "cannot be read: %s", strerror((int)-n));
	*out = (size_t)n;
	return n > 0;
}

static int check_inflation(const struct pm_file_source *source, struct pm_error *err)
{
	uint64_t read = source->consumed + source->in_pos;

	if (source->inflated <= INFLATED_BYTES_FREE + read * INFLATION_MAX)
		return 0;
	pm_error_set(err, -EFBIG,
		     "%llu KiB of compressed data became %llu MiB: more than %d times "
		     "as much is no recording's, and the rest is not read",
		     (unsigned long long)read >> 10,
		     (unsigned long long)source->inflated >> 20, INFLATION_MAX);
	pm_error_fix(err, "zstd -d FILE, if you trust it");
	return -EFBIG;
}

static int read_zstd(struct pm_file_source *source, char *buffer, size_t cap, size_t *out,
		     struct pm_error *err)
{
	ZSTD_outBuffer plain = { .dst = buffer, .size = cap };

	/* Every iteration consumes, produces or reaches the end. Frames may be empty, but
	 * each takes up bytes of the file. */
	while (plain.pos == 0) {
		ZSTD_inBuffer in = { .src = source->in,
				     .size = source->in_len,
				     .pos = source->in_pos };
		size_t left = ZSTD_decompressStream(source->zstd, &plain, &in);

		if (ZSTD_isError(left))
			return pm_error_set(
				err, -EBADMSG,
				"the compressed data is damaged near byte %llu: %s",
				(unsigned long long)source->consumed + in.pos,
				ZSTD_getErrorName(left));
		source->in_pos = in.pos;
		if (plain.pos > 0)
			break;
		if (source->end)
			return 0;
		if (in.pos == in.size) {
			int ret = source_refill(source, err);

			if (ret < 0)
				return ret;
		}
	}
	source->inflated += plain.pos;
	*out = plain.pos;
	if (check_inflation(source, err) < 0)
		return -EFBIG;
	return 1;
}

int pm_file_source_read(struct pm_file_source *source, char *buffer, size_t cap,
			size_t *out, struct pm_error *err)
{
	if (source->zstd)
		return read_zstd(source, buffer, cap, out, err);
	return read_plain(source, buffer, cap, out, err);
}

void pm_file_source_release(struct pm_file_source *source)
{
	if (source->fd >= 0)
		close(source->fd);
	ZSTD_freeDCtx(source->zstd);
	free(source->in);
	*source = (struct pm_file_source){ .fd = -1 };
}
