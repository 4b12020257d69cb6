/* SPDX-License-Identifier: MIT */
/* The names of events and what perf_event_open(2) calls them. */
#pragma once

#include "pm/perf.h"

/*
 * Looks up the event named by the @len bytes at @name (without modifiers); fills
 * canonical name, type and config. False if there is no such event, or if the hardware
 * has no such cache operation.
 */
bool pm_event_name_find(const char *name, size_t len, struct pm_event_spec *out);
