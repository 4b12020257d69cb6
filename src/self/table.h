/* SPDX-License-Identifier: MIT */
/*
 * The table of functions by time, for people.
 */
#pragma once

#include "engine.h"
#include "pm/profile.h"

struct pm_self_table_options {
	bool whole; /* the profile ended normally */
	size_t rows; /* at most this many; 0: all */
	unsigned width; /* columns at which names are cut; 0: do not cut */
};

/* Makes the table. @out is a string that the caller has to free. */
int pm_self_table(struct pm_profile_stream *stream, const struct pm_self_engine *engine,
		  const struct pm_self_table_options *options, char **out,
		  struct pm_error *err);
