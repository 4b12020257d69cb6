/* SPDX-License-Identifier: MIT */
/*
 * Options from the program and from the environment.
 */
#pragma once

#include "settings.h"

/* Whether PMSELF is "off": then nothing is done at all. */
bool pm_self_is_off(void);
/* Whether the whole program is to be profiled: PMSELF=on, or the library was
 * preloaded. */
bool pm_self_is_automatic(void);
/* Returns -EINVAL if PMSELF has an invalid value, which has no effect. */
int pm_self_check(struct pm_error *err);
/* Sets an environment variable. By it, programs that this program executes recognise that
 * they are not the first ones to be profiled. */
void pm_self_tell_children(void);
/* The values that scopes count. */
enum pm_self_scopes {
	PM_SELF_SCOPES_OFF, /* scopes do nothing */
	PM_SELF_SCOPES_TIME, /* calls and elapsed time, which costs least */
	PM_SELF_SCOPES_ALL,
};
/* Reads PMSELF_SCOPES. Returns -EINVAL if its value is invalid. */
int pm_self_read_scopes(enum pm_self_scopes *out, struct pm_error *err);
/* Whether PMSELF_QUIET is unset. */
bool pm_self_may_print(void);

/*
 * Combines options and environment; the environment takes precedence. @options may be
 * NULL. @out owns its strings and must be released, even after a failure. Returns 0,
 * -EINVAL or -ENOMEM.
 */
int pm_self_settings_init(struct pm_self_settings *out,
			  const struct pmself_options *options, struct pm_error *err);
void pm_self_settings_release(struct pm_self_settings *settings);
