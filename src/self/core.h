/* SPDX-License-Identifier: MIT */
/*
 * The part of libpmself that depends on other libraries. The shared library loads it for
 * the first profile, into a scope of its own: a program that is linked with libpmself, or
 * runs under LD_PRELOAD, does not see libdw, libelf and their dependencies, and its own
 * symbols cannot interpose theirs. The static library links it directly.
 */
#pragma once

#include "settings.h"

struct pm_self_helper;

struct pm_self_core {
	/* @settings are borrowed until the profile is stopped. Returns 0 if it runs, or a
	 * negative errno. */
	int (*start)(struct pm_self_helper **out, const struct pm_self_settings *settings,
		     struct pm_error *err);
	/* Always frees @helper. @table: a text to be freed, or NULL. */
	int (*stop)(struct pm_self_helper *helper, char **table, struct pm_error *err);
};

extern const struct pm_self_core pm_self_core;

/* Loads the core unless it is loaded. NULL with @err. */
const struct pm_self_core *pm_self_core_load(struct pm_error *err);
