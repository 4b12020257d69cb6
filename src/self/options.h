/* SPDX-License-Identifier: MIT */
/*
 * Options of the program and the environment.
 */
#pragma once

#include "settings.h"

/* PMSELF=off: nothing is done at all. */
bool pm_self_is_off(void);
/* Whether the whole program is to be profiled: PMSELF=on, or the library was
 * preloaded. */
bool pm_self_is_automatic(void);
/* -EINVAL: PMSELF has another value, which has no effect. */
int pm_self_check(struct pm_error *err);
/* Sets an environment variable, from which programs executed by this one see that they are
 * not the first ones profiled. */
void pm_self_tell_children(void);
/* What scopes count. */
enum pm_self_scopes {
	PM_SELF_SCOPES_OFF, /* nothing is done */
	PM_SELF_SCOPES_TIME, /* calls and elapsed time, which costs least */
	PM_SELF_SCOPES_ALL,
};
/* -EINVAL: PMSELF_SCOPES has another value. */
int pm_self_read_scopes(enum pm_self_scopes *out, struct pm_error *err);
/* Whether PMSELF_QUIET is unset. */
bool pm_self_may_print(void);

/*
 * @options may be NULL. The environment takes precedence. @out owns its texts and must be
 * released, even after a failure. Returns 0, -EINVAL or -ENOMEM.
 */
int pm_self_settings_init(struct pm_self_settings *out,
			  const struct pmself_options *options, struct pm_error *err);
void pm_self_settings_release(struct pm_self_settings *settings);
