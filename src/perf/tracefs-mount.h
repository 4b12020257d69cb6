/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * A descriptor of the root of tracefs, for openat(2): where it is mounted, else of a mount of
 * its own that ends with the descriptor, so that nothing changes for anybody (root only).
 * -ENOENT when there is none, -EACCES when it may not be read.
 */
int pm_tracefs_open(void);
/* The same for who makes events. A mount of its own then changes nothing but these. */
int pm_tracefs_open_writable(void);

/*
 * Where a mount of its own is for this process alone, made by the first call and kept: for who
 * needs a path and has none mounted. NULL when it cannot be made. One thread at a time.
 */
const char *pm_tracefs_own(void);
