/* SPDX-License-Identifier: MIT */
#pragma once

#include "options.h"

/* Before anything is read: -ENOTTY where --tui has no terminal. */
int pm_browse_check(const struct pm_report_options *options, struct pm_error *err);
/* What pm_tui_run() gives. */
int pm_browse(const struct pm_report *report, const struct pm_report_options *options,
	      struct pm_error *err);
