/* SPDX-License-Identifier: MIT */
/*
 * Debug information from debuginfod servers, by build-id (debuginfod(8)): through elfutils'
 * library, which is loaded when it is asked for, in a process of its own that can be ended.
 */
#pragma once

#include "pm/base.h"

struct pm_debuginfod {
	unsigned file_seconds; /* at most, for one file */
	uint64_t ms_left; /* for all of them; counted down */
	bool progress; /* tell it on standard error */
};

/* The library is there and knows of servers. 0, or -ENOENT and why in @err. */
int pm_debuginfod_check(struct pm_error *err);

/*
 * The path of the file that a server has for @build_id (hexadecimal, checked), in the cache of
 * the library: its debug information, or with @executable itself. @name is for people. A text
 * to free; what is in the file is not checked. NULL, and why in @err: -ENOENT when no server
 * has it, -ETIMEDOUT, or another error.
 */
char *pm_debuginfod_find(struct pm_debuginfod *from, const char *build_id,
			 bool executable, const char *name, struct pm_error *err);
