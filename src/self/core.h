/* SPDX-License-Identifier: MIT */
/*
 * The part of libpmself that depends on other libraries. The shared library loads it for
 * the first profile, into a separate scope: a program that is linked with libpmself, or
 * runs under LD_PRELOAD, does not see libdw, libelf and their dependencies, and its own
 * symbols cannot interpose theirs. The static library links it directly.
 */
#pragma once

#include "settings.h"

struct pm_self_helper;

struct pm_self_core {
	/* Starts a profile. @settings are borrowed until it is stopped. Returns 0 or a
	 * negative errno. */
	int (*start)(struct pm_self_helper **out, const struct pm_self_settings *settings,
		     struct pm_error *err);
	/* Stops the profile. Always frees @helper. @table is set to a string, which the
	 * caller has to free, or to NULL. */
	int (*stop)(struct pm_self_helper *helper, char **table, struct pm_error *err);
};

extern const struct pm_self_core pm_self_core;

/* Returns the core, and loads it if necessary. On failure, returns NULL and sets @err. */
const struct pm_self_core *pm_self_core_load(struct pm_error *err);
