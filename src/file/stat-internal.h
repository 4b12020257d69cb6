/* SPDX-License-Identifier: MIT */
/* Shared by the writer and the reader of counting runs: docs/format.md §9. */
#pragma once

#include "file-internal.h"
#include "pm/stat.h"

#include <jansson.h>

enum {
	PM_STAT_FILE_MAX = 256 << 20, /* bytes that our reader accepts */
	/* JSON values in a file; each costs about 100 bytes. */
	PM_STAT_VALUES_MAX = 4 << 20,
	PM_STAT_VARIANTS_MAX = 64,
	PM_STAT_EVENTS_MAX = 4096,
};

/* Returns NULL, or an error message. The writer and the reader use it. */
const char *pm_stat_check(const struct pm_stat *stat);
/* Reads @fd from its position to the end, and decompresses it if necessary. Returns
 * -EFBIG, -ENOMEM, or the error of reading or decompressing; @text may then contain a
 * part. */
int pm_stat_read_bytes(struct pm_str *text, int fd, struct pm_error *err);
bool pm_stat_has_too_many_values(const struct pm_str *text);
/* Parses the text of a file as JSON, within the limits above. Returns 0, -EBADMSG, -EFBIG
 * or -ENOMEM. */
int pm_stat_load_json(json_t **out, const struct pm_str *text, struct pm_error *err);
/* Parses one document. The caller has checked its `format`. */
int pm_stat_parse(struct pm_stat *out, const json_t *root, struct pm_error *err);
/* Appends one document as text. If memory runs out, sets out->failed. Returns -EINVAL in
 * the same cases as pm_stat_write(). */
int pm_stat_put(struct pm_str *out, const struct pm_stat *stat, struct pm_error *err);
int pm_stat_write_bytes(int fd, const struct pm_str *out, struct pm_error *err);
