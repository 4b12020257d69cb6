/* SPDX-License-Identifier: MIT */
#include "compare-internal.h"

#include <stdlib.h>
#include <string.h>

const char *pm_verdict_name(enum pm_verdict verdict)
{
	static const char *const names[] = {
		[PM_VERDICT_SAME] = "same",
		[PM_VERDICT_BETTER] = "better",
		[PM_VERDICT_CHANGED] = "changed",
		[PM_VERDICT_WORSE] = "worse",
		[PM_VERDICT_ACCEPTED] = "accepted",
		[PM_VERDICT_INCONCLUSIVE] = "inconclusive",
		[PM_VERDICT_UNKNOWN] = "unknown",
		[PM_VERDICT_NEW] = "new",
		[PM_VERDICT_GONE] = "gone",
	};

	return names[verdict];
}

void pm_compare_row_free(struct pm_compare_row *row)
{
	free(row->scope);
	free(row->symbol);
	free(row->module);
	free(row->file);
	free(row->event);
	free(row->unit);
	free(row->base.values);
	free(row->new.values);
	free(row->base.begins);
	free(row->new.begins);
	pm_vec_release(&row->pairs);
	free(row->why);
}

static void free_of(struct pm_compare_of *of)
{
	free(of->name);
	free(of->commit);
	free(of->subject);
	free(of->created);
	free(of->command);
}

void pm_comparison_release(struct pm_comparison *comparison)
{
	free_of(&comparison->base);
	free_of(&comparison->new);
	free(comparison->engine);
	free(comparison->cpu_model);
	free(comparison->deciding);
	pm_hot_free(comparison->hot);
	for (size_t i = 0; i < comparison->rows.len; i++)
		pm_compare_row_free(&comparison->rows.data[i]);
	for (size_t i = 0; i < comparison->cases.len; i++) {
		struct pm_compare_case *one = &comparison->cases.data[i];

		free(one->name);
		free_of(&one->base);
		free_of(&one->new);
		free(one->engine);
		free(one->deciding);
		free(one->why);
		pm_hot_free(one->hot);
	}
	for (size_t i = 0; i < comparison->differences.len; i++)
		free(comparison->differences.data[i]);
	for (size_t i = 0; i < comparison->warnings.len; i++)
		free(comparison->warnings.data[i]);
	pm_vec_release(&comparison->rows);
	pm_vec_release(&comparison->cases);
	pm_vec_release(&comparison->differences);
	pm_vec_release(&comparison->warnings);
	*comparison = (struct pm_comparison){ 0 };
}

size_t pm_compare_decider_rank(const char *event)
{
	static const char *const names[PM_COMPARE_DECIDERS] = { "cycles", "instructions",
								"task-clock" };
	size_t rank = 0;

	while (rank < PM_COMPARE_DECIDERS && strcmp(event, names[rank]) != 0)
		rank++;
	return rank;
}
