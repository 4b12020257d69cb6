/* SPDX-License-Identifier: MIT */
/* Checks of two recordings before they are compared. */
#pragma once

#include "pm/compare.h"

/* Returns the event of @profile that corresponds to @event of the other recording, or
 * NULL if there is none. */
const struct pm_profile_event *pm_recordings_event(const struct pm_profile *profile,
						   const struct pm_profile_event *event);
/* Describes the recordings in @comparison, and adds the reasons why they cannot be
 * compared, or are doubtful. Returns 0 or -ENOMEM. */
int pm_recordings_check(struct pm_comparison *comparison,
			const struct pm_profile *const of[2]);
