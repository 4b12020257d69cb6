/* SPDX-License-Identifier: MIT */
/* Two recordings before they are compared. */
#pragma once

#include "pm/compare.h"

/* The event of @profile that is @event of the other one; NULL: there is none. */
const struct pm_profile_event *pm_recordings_event(const struct pm_profile *profile,
						   const struct pm_profile_event *event);
/* What they are into @comparison, with what makes them incomparable or doubtful. -ENOMEM. */
int pm_recordings_check(struct pm_comparison *comparison,
			const struct pm_profile *const of[2]);
