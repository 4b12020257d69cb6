/* SPDX-License-Identifier: MIT */
/* The names of events and what perf_event_open(2) calls them. */
#pragma once

#include "pm/perf.h"

/*
 * Looks up the event named by the @len bytes at @name (without modifiers); fills the
 * canonical name, type and config. Returns false if there is no such event, or if the
 * cache does not have this operation.
 */
bool pm_event_name_find(const char *name, size_t len, struct pm_event_spec *out);
