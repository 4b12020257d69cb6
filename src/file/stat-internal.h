/* SPDX-License-Identifier: MIT */
/* What the writer and the reader of counting runs agree on: docs/format.md §9. */
#pragma once

#include "file-internal.h"
#include "pm/stat.h"

#include <jansson.h>

enum {
	PM_STAT_FILE_MAX = 256 << 20, /* bytes that our reader takes */
	PM_STAT_VALUES_MAX = 4 << 20, /* JSON values of it; each costs about 100 bytes */
	PM_STAT_VARIANTS_MAX = 64,
	PM_STAT_EVENTS_MAX = 4096,
};

const char *pm_stat_class_name(enum pm_stat_class class);
/* NULL, or what is wrong with it: of both sides. */
const char *pm_stat_check(const struct pm_stat *stat);
/* All that @fd has from where it stands, unpacked if it is compressed. -EFBIG, -ENOMEM, or what
 * reading and unpacking say; @text may then hold a part. */
int pm_stat_read_bytes(struct pm_str *text, int fd, struct pm_error *err);
bool pm_stat_has_too_many_values(const struct pm_str *text);
/* The text of a file as JSON, within the limits above. -EBADMSG, -EFBIG, -ENOMEM. */
int pm_stat_load_json(json_t **ret, const struct pm_str *text, struct pm_error *err);
/* One document. The caller has looked at its `format`. */
int pm_stat_parse(struct pm_stat *ret, const json_t *root, struct pm_error *err);
/* One document as text; memory that is missing is a flag of @out. -EINVAL as of pm_stat_write(). */
int pm_stat_put(struct pm_str *out, const struct pm_stat *stat, struct pm_error *err);
int pm_stat_write_bytes(int fd, const struct pm_str *out, struct pm_error *err);
