/* SPDX-License-Identifier: MIT */
/* Reports of a recording that is still being made. */
#pragma once

#include "options.h"
#include "resymbolize.h"

/*
 * Writes the text report of what is there again and again, until the recording ends or the
 * user says so; then @ret is what the last one is to be made of: to be freed. 0 or negative
 * errno. SIGINT and SIGTERM are blocked meanwhile.
 */
int pm_follow(struct pm_profile_stream **ret, const struct pm_profile **profile,
	      const struct pm_report_options *options, struct pm_resymbolize *resymbolize,
	      struct pm_error *err);
