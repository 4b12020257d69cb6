/* SPDX-License-Identifier: MIT */
/*
 * What the program and the environment ask for.
 */
#pragma once

#include "settings.h"

/* PMSELF=off: nothing is to be done at all. */
bool pm_self_is_off(void);
/* Whether the whole program is to be profiled: PMSELF=on, or we were preloaded. */
bool pm_self_is_automatic(void);
/* -EINVAL: PMSELF is another word, and so means nothing. */
int pm_self_check(struct pm_error *err);
/* By the environment: the programs that this one executes are not the first to be profiled. */
void pm_self_tell_children(void);
/* What scopes count. */
enum pm_self_scopes {
	PM_SELF_SCOPES_OFF, /* nothing is done */
	PM_SELF_SCOPES_TIME, /* calls and elapsed time, which costs least */
	PM_SELF_SCOPES_ALL,
};
/* -EINVAL: PMSELF_SCOPES is another word. */
int pm_self_read_scopes(enum pm_self_scopes *ret, struct pm_error *err);
/* PMSELF_QUIET is not set. */
bool pm_self_may_print(void);

/*
 * @options may be NULL. What the environment says wins. Texts in @ret are its own, to be
 * released, also after a failure. 0; -EINVAL, -ENOMEM.
 */
int pm_self_settings_init(struct pm_self_settings *ret,
			  const struct pmself_options *options, struct pm_error *err);
void pm_self_settings_release(struct pm_self_settings *settings);
