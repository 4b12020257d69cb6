/* SPDX-License-Identifier: MIT */
/* Reads the bytes of a counting run's file, compressed or not. */
#include "stat-internal.h"

#include <string.h>

static int too_large(struct pm_error *err)
{
	return pm_error_set(err, -EFBIG, "is larger than %d MiB", PM_STAT_FILE_MAX >> 20);
}

static int read_stat_bytes(int fd, struct pm_str *text, struct pm_error *err)
{
	char buffer[64 << 10];

	for (;;) {
		ssize_t n = read(fd, buffer, sizeof(buffer));

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0) {
			int ret = -errno;

			return pm_error_set(err, ret, "cannot be read: %s",
					    strerror(-ret));
		}
		if (n == 0) {
			if (text->failed)
				return pm_error_set(err, -ENOMEM, "out of memory");
			return 0;
		}
		if (text->len + (size_t)n > PM_STAT_FILE_MAX)
			return too_large(err);
		pm_str_append(text, buffer, (size_t)n);
	}
}

/* Replaces @text by its decompressed bytes, if it is compressed. */
static int inflate_stat_text(struct pm_str *text, struct pm_error *err)
{
	PM_CLEANUP(pm_file_source_release) struct pm_file_source source = { .fd = -1 };
	PM_CLEANUP(pm_str_release) struct pm_str plain = { 0 };
	char buffer[64 << 10];
	size_t len = 0;
	int ret;

	if (!pm_file_is_zstd(text->data, text->len))
		return 0;
	ret = pm_file_source_open_memory(&source, text->data, text->len, err);
	while (ret == 0 && (ret = pm_file_source_read(&source, buffer, sizeof(buffer),
						      &len, err)) > 0) {
		ret = 0;
		if (plain.len + len > PM_STAT_FILE_MAX)
			return too_large(err);
		pm_str_append(&plain, buffer, len);
	}
	if (ret == 0 && plain.failed)
		ret = pm_error_set(err, -ENOMEM, "out of memory");
	if (ret == 0) {
		struct pm_str compressed = *text;

		*text = plain;
		plain = compressed;
	}
	return ret;
}

int pm_stat_read_bytes(struct pm_str *text, int fd, struct pm_error *err)
{
	int ret = read_stat_bytes(fd, text, err);

	if (ret < 0)
		return ret;
	return inflate_stat_text(text, err);
}
