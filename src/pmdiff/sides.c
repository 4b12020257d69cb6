/* SPDX-License-Identifier: MIT */
#include "sides.h"

#include <string.h>

void pmdiff_side_release(struct pmdiff_side *side)
{
	free(side->name);
	free(side->commit);
	free(side->subject);
	free(side->root);
	for (size_t i = 0; i < side->stats.len; i++)
		pm_stat_release(&side->stats.data[i]);
	pm_vec_release(&side->stats);
	*side = (struct pmdiff_side){ 0 };
}

static void forget_functions(struct pm_stat *stat)
{
	struct pm_stat old = { .scopes = stat->scopes, .metrics = stat->metrics };

	memset(&stat->scopes, 0, sizeof(stat->scopes));
	memset(&stat->metrics, 0, sizeof(stat->metrics));
	pm_stat_release(&old);
}

void pmdiff_side_forget_functions(struct pmdiff_side *side)
{
	for (size_t i = 0; i < side->stats.len; i++)
		forget_functions(&side->stats.data[i]);
}
