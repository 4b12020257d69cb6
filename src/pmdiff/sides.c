/* SPDX-License-Identifier: MIT */
#include "sides.h"

#include <string.h>

struct pmdiff_side_case *pmdiff_side_find_case(const struct pmdiff_side *side,
					       const char *name)
{
	for (size_t i = 0; i < side->cases.len; i++)
		if (strcmp(side->cases.data[i].name, name) == 0)
			return &side->cases.data[i];
	return NULL;
}

struct pmdiff_side_case *pmdiff_side_add_case(struct pmdiff_side *side, const char *name,
					      const char *group)
{
	struct pmdiff_side_case *found = pmdiff_side_find_case(side, name);
	struct pmdiff_side_case one = { .group = group };

	if (found)
		return found;
	one.name = strdup(name);
	if (!one.name || pm_vec_push(&side->cases, one) < 0) {
		free(one.name);
		return NULL;
	}
	return &side->cases.data[side->cases.len - 1];
}

static void side_case_release(struct pmdiff_side_case *one)
{
	free(one->name);
	free(one->failure);
	for (size_t i = 0; i < one->stats.len; i++)
		pm_stat_release(&one->stats.data[i]);
	pm_vec_release(&one->stats);
	for (size_t i = 0; i < one->words.len; i++)
		free(one->words.data[i]);
	pm_vec_release(&one->words);
}

void pmdiff_side_release(struct pmdiff_side *side)
{
	free(side->name);
	free(side->commit);
	free(side->subject);
	free(side->root);
	for (size_t i = 0; i < side->stats.len; i++)
		pm_stat_release(&side->stats.data[i]);
	pm_vec_release(&side->stats);
	for (size_t i = 0; i < side->cases.len; i++)
		side_case_release(&side->cases.data[i]);
	pm_vec_release(&side->cases);
	*side = (struct pmdiff_side){ 0 };
}

static void stat_forget_functions(struct pm_stat *stat)
{
	struct pm_stat old = { .scopes = stat->scopes, .metrics = stat->metrics };

	memset(&stat->scopes, 0, sizeof(stat->scopes));
	memset(&stat->metrics, 0, sizeof(stat->metrics));
	pm_stat_release(&old);
}

void pmdiff_side_forget_functions(struct pmdiff_side *side)
{
	for (size_t i = 0; i < side->stats.len && side->explains; i++)
		stat_forget_functions(&side->stats.data[i]);
	for (size_t i = 0; i < side->cases.len; i++) {
		struct pmdiff_side_case *one = &side->cases.data[i];

		for (size_t j = 0; j < one->stats.len && one->explains; j++)
			stat_forget_functions(&one->stats.data[j]);
	}
}
