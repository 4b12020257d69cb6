/* SPDX-License-Identifier: MIT */
/*
 * The circumstances of the measurement, for the document.
 */
#pragma once

#include "options.h"

/* Stores version, time, machine, commands and events in @stat. Returns 0; -ENOENT for an
 * unknown sim.* event, with similar names in @err; or -ENOMEM. */
int pmstat_document_begin(struct pm_stat *stat, const struct pmstat_options *options,
			  struct pm_error *err);
int pmstat_document_setting(struct pm_stat *stat, const char *name, const char *value);
int pmstat_document_warn(struct pm_stat *stat, const char *text);
