/* SPDX-License-Identifier: MIT */
/* Reports of a recording that is still being written. */
#pragma once

#include "options.h"
#include "resymbolize.h"

/*
 * Repeatedly writes the text report of the recording so far, until the recording ends or
 * the user stops it. *@out is then the stream for the last report, which the caller
 * frees. Returns 0 or a negative errno. SIGINT and SIGTERM are blocked while following.
 */
int pm_follow(struct pm_profile_stream **out, const struct pm_profile **profile,
	      const struct pm_report_options *options, struct pm_resymbolize *resymbolize,
	      struct pm_error *err);
