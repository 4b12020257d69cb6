/* SPDX-License-Identifier: MIT */
/*
 * --overwrite: writes a snapshot of the buffers to a file.
 */
#pragma once

#include <time.h>

#include "session.h"

/* Completes the file with the contents of the buffers, gives it a name that contains the
 * time, and starts the next file. @err is set for errors other than those of the file. */
int pm_rec_snapshot(struct pm_rec_session *session, struct pm_error *err);
/* Writes the name into @out of @size bytes: "run.json.zst" becomes
 * "run-20261121T190001.123.json.zst", with "-@again" before the suffix if that is not 0.
 * Returns 0 or -ENAMETOOLONG. */
int pm_rec_snapshot_name(const char *path, const struct timespec *time,
			 unsigned int again, char *out, size_t size);
