/* SPDX-License-Identifier: MIT */
/*
 * Finds names that are missing in a recording, from files of this machine or of
 * debuginfod servers. It only uses files with the recorded build-id, never a path alone.
 */
#pragma once

#include "pm/profile.h"

struct pm_resymbolize_options {
	bool off; /* only use the names in the recording */
	const char *symfs; /* paths are first looked up below it; NULL: none */
	const char *debug_dir; /* of separate debug files; NULL: the default */
	unsigned debuginfod_seconds; /* time limit for one file; 0: do not ask servers */
	bool quiet; /* print nothing on standard error */
	bool live; /* called repeatedly: limit the time spent */
};

struct pm_resymbolize;

/* Returns 0; -ENOENT or -ENOTDIR if a folder of @options is invalid; or -ENOMEM. */
int pm_resymbolize_new(struct pm_resymbolize **out,
		       const struct pm_resymbolize_options *options,
		       struct pm_error *err);
void pm_resymbolize_free(struct pm_resymbolize *resymbolize);
/* Returns the symbolizer for struct pm_profile_options, borrowed, or NULL if it is
 * off. */
const struct pm_profile_symbolizer *pm_resymbolize_symbolizer(
	const struct pm_resymbolize *resymbolize);
/*
 * Reports on standard error what still has no name, if the user asked for names or if the
 * recorder wrote none at all. @file: the recording as named by the user, for suggested
 * commands.
 */
void pm_resymbolize_tell(const struct pm_resymbolize *resymbolize,
			 const struct pm_profile *profile, const char *file);
/* Announces the last call, which must not postpone anything. */
void pm_resymbolize_last(struct pm_resymbolize *resymbolize);
