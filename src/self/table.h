/* SPDX-License-Identifier: MIT */
/*
 * The functions that took the time, for people.
 */
#pragma once

#include "engine.h"
#include "pm/profile.h"

struct pm_self_table_options {
	bool whole; /* it came to its end */
	size_t rows; /* at most; 0: all of them */
	unsigned width; /* columns that names are cut to; 0: none is */
};

/* @ret gets a text to be freed. */
int pm_self_table(struct pm_profile_stream *stream, const struct pm_self_engine *engine,
		  const struct pm_self_table_options *options, char **ret,
		  struct pm_error *err);
