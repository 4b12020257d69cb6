/* SPDX-License-Identifier: MIT */
/*
 * --overwrite: what the buffers hold now, as a file of its own.
 */
#pragma once

#include <time.h>

#include "session.h"

/* Completes the file with what the buffers hold, gives it a name with the time in it, and
 * begins the next one. @err is set for what is not the file's fault. */
int pm_rec_snapshot(struct pm_rec_session *session, struct pm_error *err);
/* `ret` of @size bytes: "run.json.zst" becomes "run-20261121T190001.123.json.zst", with
 * "-@again" in front of the point where that is not 0. -ENAMETOOLONG. */
int pm_rec_snapshot_name(const char *path, const struct timespec *time,
			 unsigned int again, char *ret, size_t size);
