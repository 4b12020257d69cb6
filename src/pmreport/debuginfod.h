/* SPDX-License-Identifier: MIT */
/*
 * Debug information from debuginfod servers, by build-id (debuginfod(8)). Uses elfutils'
 * library, which is loaded on demand in a child process that can be killed.
 */
#pragma once

#include "pm/base.h"

struct pm_debuginfod {
	unsigned file_seconds; /* time limit for one file */
	uint64_t ms_left; /* time left for all files; counted down */
	bool progress; /* show progress on standard error */
};

/* Checks that the library is installed and servers are configured. Returns 0, or -ENOENT
 * with the reason in @err. */
int pm_debuginfod_check(struct pm_error *err);

enum pm_debuginfod_kind {
	PM_DEBUGINFOD_DEBUG_FILE,
	PM_DEBUGINFOD_EXECUTABLE,
};

/*
 * Finds the file that a server has for @build_id (hexadecimal, checked): its debug
 * information, or the file itself. @name is for messages. Returns its
 * path in the library's cache, which the caller frees; the contents of the file are not
 * checked. Returns NULL with the reason in @err: -ENOENT if no server has it, -ETIMEDOUT,
 * or another error.
 */
char *pm_debuginfod_find(struct pm_debuginfod *from, const char *build_id,
			 enum pm_debuginfod_kind kind, const char *name,
			 struct pm_error *err);
