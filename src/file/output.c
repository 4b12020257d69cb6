/* SPDX-License-Identifier: MIT */
#include "file-internal.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <zstd.h>

enum {
	ZSTD_LEVEL = 3, /* costs less time than it saves; 19 gains only ~15 % more */
};

/* Suggests a shell command that repairs a path, which is quoted if necessary. */
static void fix_with_path(struct pm_error *err, const char *command, const char *path,
			  size_t len)
{
	struct pm_str quoted = { 0 };
	bool plain = len > 0 && path[0] != '-';

	for (size_t i = 0; i < len; i++)
		if (!strchr("/._-+,:=@%0123456789"
			    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ",
			    path[i]))
			plain = false;
	for (size_t i = 0; !plain && i < len; i++) {
		if (path[i] == '\'')
			pm_str_puts(&quoted, "'\\''");
		else
			pm_str_putc(&quoted, path[i]);
	}
	if (plain)
		pm_error_fix(err, "%s %.*s", command, (int)len, path);
	else if (quoted.data && !quoted.failed)
		pm_error_fix(err, "%s -- '%s'", command, quoted.data);
	pm_str_release(&quoted);
}

/* Sets @err to the reason why @path cannot be created; the most common reason is a
 * missing folder. */
static int open_failed(const char *path, int error, struct pm_error *err)
{
	const char *slash = strrchr(path, '/');
	size_t folder_len = slash ? (size_t)(slash - path) : 0;

	if (error == ENOENT && folder_len > 0) {
		PM_AUTO_FREE char *folder = strndup(path, folder_len);
		struct stat st;

		if (folder && stat(folder, &st) != 0 && errno == ENOENT) {
			pm_error_set(err, -ENOENT,
				     "cannot be written: there is no folder %s", folder);
			fix_with_path(err, "mkdir -p", folder, folder_len);
			pm_error_where(err, path, -1);
			return -ENOENT;
		}
	}
	pm_error_set(err, -error, "cannot be written: %s",
		     path[0] ? strerror(error) : "the name is empty");
	pm_error_where(err, path, -1);
	return -error;
}

/*
 * Returns the descriptor of ours that /dev/stdout and similar names mean, or -1. Opening
 * it again would start at offset 0, and replacing it as other symbolic links are replaced
 * would remove /dev/stdout for all processes.
 */
static int fd_of_name(const char *path)
{
	static const char *const folders[] = { "/dev/fd/", "/proc/self/fd/" };
	uint64_t fd;

	if (strcmp(path, "-") == 0 || strcmp(path, "/dev/stdout") == 0)
		return STDOUT_FILENO;
	if (strcmp(path, "/dev/stderr") == 0)
		return STDERR_FILENO;
	for (size_t i = 0; i < PM_ARRAY_LEN(folders); i++)
		if (strncmp(path, folders[i], strlen(folders[i])) == 0 &&
		    pm_parse_u64(path + strlen(folders[i]), &fd) && fd <= INT32_MAX)
			return (int)fd;
	return -1;
}

/* Opens a pipe or device, which is not replaced. Without O_NONBLOCK, a FIFO without a
 * reader would block here, before the user's program even starts. */
static int open_existing(const char *path, struct pm_error *err)
{
	PM_AUTO_CLOSE int fd = open(path, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	int flags;

	if (fd < 0 && errno == ENXIO) {
		pm_error_set(err, -ENXIO, "cannot be written: nobody reads this pipe");
		fix_with_path(err, "cat", path, strlen(path));
		pm_error_where(err, path, -1);
		return -ENXIO;
	}
	if (fd < 0)
		return open_failed(path, errno, err);
	flags = fcntl(fd, F_GETFL);
	if (flags < 0 || fcntl(fd, F_SETFL, flags & ~O_NONBLOCK) < 0)
		return open_failed(path, errno, err);
	return pm_take_fd(&fd);
}

/* @ret_partial is set to the name that the file has until it is published, or to NULL if
 * it is opened under its own name. */
static int open_path(const char *path, char **ret_partial, struct pm_error *err)
{
	int fd = fd_of_name(path);
	struct stat st;

	*ret_partial = NULL;
	if (fd >= 0) {
		fd = fcntl(fd, F_DUPFD_CLOEXEC, 3);
		if (fd >= 0)
			return fd;
		return open_failed(path, errno, err);
	}
	if (lstat(path, &st) == 0) {
		struct stat target;
		bool link = S_ISLNK(st.st_mode);

		/* A symbolic link is followed only to files that cannot be
		 * overwritten. */
		if (link && stat(path, &target) == 0 &&
		    (S_ISFIFO(target.st_mode) || S_ISCHR(target.st_mode)))
			st = target;
		if (S_ISFIFO(st.st_mode) || S_ISCHR(st.st_mode))
			return open_existing(path, err);
		if (S_ISDIR(st.st_mode))
			return open_failed(path, EISDIR, err);
		if (!S_ISREG(st.st_mode) && !link) {
			pm_error_set(err, -EINVAL,
				     "cannot be written: it is a socket or a disk");
			pm_error_where(err, path, -1);
			return -EINVAL;
		}
	}
	if (path[0] == '\0')
		return open_failed(path, ENOENT, err);
	fd = pm_file_partial_create(path, ret_partial);
	if (fd >= 0)
		return fd;
	return open_failed(path, -fd, err);
}

static bool ends_with(const char *text, const char *end)
{
	size_t text_len = strlen(text), end_len = strlen(end);

	return text_len >= end_len && strcmp(text + text_len - end_len, end) == 0;
}

int pm_file_output_open(struct pm_file_output *out, const char *path,
			struct pm_error *err)
{
	struct pm_file_output output = { .fd = -1 };
	int fd;

	if (ends_with(path, ".zst")) {
		output.zstd = ZSTD_createCCtx();
		output.compressed_cap = ZSTD_CStreamOutSize();
		output.compressed = malloc(output.compressed_cap);
		if (!output.zstd || !output.compressed ||
		    ZSTD_isError(ZSTD_CCtx_setParameter(
			    output.zstd, ZSTD_c_compressionLevel, ZSTD_LEVEL)) ||
		    ZSTD_isError(ZSTD_CCtx_setParameter(output.zstd, ZSTD_c_checksumFlag,
							1))) {
			pm_file_output_close(&output);
			return pm_error_set(err, -ENOMEM, "out of memory");
		}
	}
	output.path = strdup(path);
	if (!output.path) {
		pm_file_output_close(&output);
		return pm_error_set(err, -ENOMEM, "out of memory");
	}
	fd = open_path(path, &output.partial, err);
	if (fd < 0) {
		pm_file_output_close(&output);
		return fd;
	}
	output.fd = fd;
	*out = output;
	return 0;
}

int pm_file_output_background(struct pm_file_output *output,
			      pm_file_wants_end_fn wants_end, void *user)
{
	return pm_file_queue_new(&output->queue, output->fd, output->path,
				 output->partial, wants_end, user);
}

static int output_write_bytes(struct pm_file_output *output, const char *data, size_t len)
{
	if (output->failed != 0)
		return output->failed;
	if (output->queue) {
		output->failed = pm_file_queue_write(output->queue, data, len);
		output->bytes += len;
	} else {
		output->failed =
			pm_file_write_fully(output->fd, data, len, &output->bytes);
	}
	return output->failed;
}

static int output_compress(struct pm_file_output *output, const char *data, size_t len,
			   ZSTD_EndDirective how)
{
	ZSTD_inBuffer in = { .src = data, .size = len };
	size_t left;

	do {
		ZSTD_outBuffer out = { .dst = output->compressed,
				       .size = output->compressed_cap };

		left = ZSTD_compressStream2(output->zstd, &out, &in, how);
		if (ZSTD_isError(left))
			output->failed = -ENOMEM; /* running out of memory is the only way
			                           * it can fail */
		else
			output_write_bytes(output, output->compressed, out.pos);
	} while (output->failed == 0 &&
		 (how == ZSTD_e_continue ? in.pos < in.size : left > 0));
	return output->failed;
}

int pm_file_output_write(struct pm_file_output *output, const char *data, size_t len)
{
	if (output->failed != 0 || len == 0 || output->fd < 0)
		return output->failed;
	if (output->zstd)
		return output_compress(output, data, len, ZSTD_e_continue);
	return output_write_bytes(output, data, len);
}

int pm_file_output_flush(struct pm_file_output *output)
{
	if (output->queue && output->failed == 0)
		output->failed = pm_file_queue_failed(output->queue);
	if (output->failed != 0 || !output->zstd)
		return output->failed;
	return output_compress(output, NULL, 0, ZSTD_e_flush);
}

/* Takes over the result of publishing. The thread, if there is one, no longer needs the
 * name. */
static void output_take_published(struct pm_file_output *output,
				  const struct pm_file_published *published)
{
	output->kept_old |= published->kept_old;
	if (published->given)
		free(PM_TAKE_PTR(output->partial));
	if (published->refused == 0 || output->unpublished < 0)
		return;
	output->unpublished = published->refused;
	pm_file_partial_keep(output->path, &output->partial);
}

void pm_file_output_publish(struct pm_file_output *output)
{
	struct pm_file_published published = { .given = false };

	if (!pm_file_output_waits(output))
		return;
	output->asked = true;
	if (output->queue) {
		pm_file_queue_publish(output->queue);
		return;
	}
	pm_file_partial_publish(output->path, output->partial, &published);
	output_take_published(output, &published);
}

void pm_file_output_explain_unpublished(const struct pm_file_output *output,
					struct pm_error *err)
{
	pm_error_set(err, output->unpublished,
		     "cannot be replaced: %s; what was recorded is in %s",
		     strerror(-output->unpublished), output->partial);
	fix_with_path(err, "pmreport", output->partial, strlen(output->partial));
	pm_error_where(err, output->path, -1);
}

int pm_file_output_settle(struct pm_file_output *output)
{
	struct pm_file_published published;
	int failed;

	if (!output->queue)
		return output->failed;
	failed = pm_file_queue_settle(output->queue, &published);
	output_take_published(output, &published);
	if (output->failed == 0)
		output->failed = failed;
	return output->failed;
}

/* Returns false if the thread hangs in a system call; the thread then keeps the
 * descriptor and the names. */
static bool end_queue(struct pm_file_output *output)
{
	if (!output->queue)
		return true;
	pm_file_output_settle(output);
	return pm_file_queue_free(PM_TAKE_PTR(output->queue), &output->bytes);
}

void pm_file_output_discard(struct pm_file_output *output)
{
	char *partial;
	bool ended = end_queue(output);

	partial = PM_TAKE_PTR(output->partial);
	output->unpublished = 0; /* there is no file to keep */
	if (partial)
		unlink(partial);
	if (ended)
		free(partial);
	else
		output->fd = -1;
}

int pm_file_output_close(struct pm_file_output *output)
{
	bool ended;
	int failed;

	if (output->fd >= 0 && output->failed == 0 && output->zstd)
		output_compress(output, NULL, 0, ZSTD_e_end);
	ended = end_queue(output);
	/* Network file systems report a full disk only here. Linux closes the descriptor
	 * in any case, even if close(2) returns EINTR. */
	if (ended && output->fd >= 0 && close(output->fd) != 0 && errno != EINTR &&
	    output->failed == 0)
		output->failed = -errno;
	failed = output->failed;
	ZSTD_freeCCtx(output->zstd);
	free(output->compressed);
	if (ended) {
		free(output->partial);
		free(output->path);
	}
	*output = (struct pm_file_output){ .fd = -1 };
	return failed;
}
