/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Opens the root of tracefs for openat(2). Uses an existing mount; if there is none,
 * creates a private mount that ends with the descriptor and is visible to no other
 * process (root only). -ENOENT if there is no tracefs, -EACCES if it may not be read.
 */
int pm_tracefs_open(void);
/* The same for a caller that creates events. Apart from these, a private mount changes
 * nothing on the system. */
int pm_tracefs_open_writable(void);

/*
 * Returns the path of a mount of tracefs that only this process sees, for callers that
 * need a path when none is mounted. The first call creates the mount, which is then
 * kept. Returns NULL if it cannot be created. Not thread-safe.
 */
const char *pm_tracefs_own(void);
