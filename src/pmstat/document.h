/* SPDX-License-Identifier: MIT */
/*
 * The circumstances that a document records.
 */
#pragma once

#include "options.h"

/* Records version, time, machine, commands and events. -ENOENT for an unknown sim.*
 * event, with similar names; -ENOMEM. */
int pmstat_document_begin(struct pm_stat *stat, const struct pmstat_options *options,
			  struct pm_error *err);
int pmstat_document_setting(struct pm_stat *stat, const char *name, const char *value);
int pmstat_document_warn(struct pm_stat *stat, const char *text);
