/* SPDX-License-Identifier: MIT */
/* What the writer and the reader of counting runs agree on: docs/format.md §9. */
#pragma once

#include "file-internal.h"
#include "pm/stat.h"

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
