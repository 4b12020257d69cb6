/* SPDX-License-Identifier: MIT */
#include "annotate-internal.h"

void pm_annotate_walk(const struct pm_view *view, pm_annotate_stack_fn enter,
		      pm_annotate_stack_fn leave, void *user)
{
	const struct pm_profile_stack *stacks = view->profile->stacks.data;
	uint32_t at = view->profile->first_root;

	while (at != PM_PROFILE_NONE) {
		bool occurs = view->sum[at].samples > 0;

		if (occurs) {
			enter(user, at);
			if (stacks[at].first_child != PM_PROFILE_NONE) {
				at = stacks[at].first_child;
				continue;
			}
			leave(user, at);
		}
		while (stacks[at].next == PM_PROFILE_NONE) {
			at = stacks[at].parent;
			if (at == PM_PROFILE_NONE)
				return;
			leave(user, at);
		}
		at = stacks[at].next;
	}
}
