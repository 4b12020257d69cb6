/* SPDX-License-Identifier: MIT */
/*
 * The functions that took the time, for people.
 */
#pragma once

#include "engine.h"
#include "pm/profile.h"

/* @whole: it came to its end. @rows at most, 0: all of them. @ret gets a text to be freed. */
int pm_self_table(struct pm_profile_stream *stream, const struct pm_self_engine *engine,
		  bool whole, size_t rows, char **ret, struct pm_error *err);
