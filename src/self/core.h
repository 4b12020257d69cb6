/* SPDX-License-Identifier: MIT */
/*
 * The part of libpmself that stands on other libraries. The shared library loads it with the
 * first profile, into a scope of its own: a program that is linked with libpmself, or runs
 * under LD_PRELOAD, does not see libdw, libelf and what they need, nor do its own symbols come
 * between them. In the static library it is just linked.
 */
#pragma once

#include "settings.h"

struct pm_self_helper;

struct pm_self_core {
	/* @settings are borrowed until the profile is stopped. 0, and it runs; or negative
	 * errno. */
	int (*start)(struct pm_self_helper **ret, const struct pm_self_settings *settings,
		     struct pm_error *err);
	/* Whatever it returns, @helper is gone. @table: a text to be freed, or NULL. */
	int (*stop)(struct pm_self_helper *helper, char **table, struct pm_error *err);
};

extern const struct pm_self_core pm_self_core;

/* The core, loaded now unless it was before. NULL with @err. */
const struct pm_self_core *pm_self_core_load(struct pm_error *err);
