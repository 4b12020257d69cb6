/* SPDX-License-Identifier: MIT */
#pragma once

#include "options.h"

/* To be called before anything is read. Returns 0, or -ENOTTY if --tui has no
 * terminal. */
int pm_browse_check(const struct pm_report_options *options, struct pm_error *err);
/* Returns what pm_tui_run() returns. */
int pm_browse(const struct pm_report *report, const struct pm_report_options *options,
	      struct pm_error *err);
