/* SPDX-License-Identifier: MIT */
/*
 * What a document says of the circumstances.
 */
#pragma once

#include "options.h"

/* Version, time, machine, commands and what is counted. -ENOENT for an unknown sim.* event, with
 * near names; -ENOMEM. */
int pmstat_document_begin(struct pm_stat *stat, const struct pmstat_options *options,
			  struct pm_error *err);
int pmstat_document_setting(struct pm_stat *stat, const char *name, const char *value);
int pmstat_document_warn(struct pm_stat *stat, const char *text);
