/* SPDX-License-Identifier: MIT */
/*
 * Names for what a recording has none for, from files of this machine or of debuginfod
 * servers: only from those whose build-id is that of what was recorded, never by path alone.
 */
#pragma once

#include "pm/profile.h"

struct pm_resymbolize_options {
	bool off; /* only the names of the file */
	const char *symfs; /* below which paths are looked for first; NULL: none */
	const char *debug_dir; /* of separate debug files; NULL: the usual one */
	unsigned debuginfod_seconds; /* for one file; 0: no server is asked */
	bool quiet; /* nothing on standard error */
	bool live; /* asked again and again: not more often than it is worth */
};

struct pm_resymbolize;

/* -ENOENT, -ENOTDIR when a folder of @options is none; -ENOMEM. */
int pm_resymbolize_new(struct pm_resymbolize **ret,
		       const struct pm_resymbolize_options *options,
		       struct pm_error *err);
void pm_resymbolize_free(struct pm_resymbolize *resymbolize);
/* For struct pm_profile_options; NULL when it is off. Borrowed. */
const struct pm_profile_symbolizer *pm_resymbolize_symbolizer(
	const struct pm_resymbolize *resymbolize);
/*
 * What has no name still, on standard error: if it was to be found, or if the recorder has
 * given no names at all. @file: as the report was asked for, for commands.
 */
void pm_resymbolize_tell(const struct pm_resymbolize *resymbolize,
			 const struct pm_profile *profile, const char *file);
/* Nothing of it is to be put off any more. */
void pm_resymbolize_last(struct pm_resymbolize *resymbolize);
