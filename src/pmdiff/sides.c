/* SPDX-License-Identifier: MIT */
#include "sides.h"

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
