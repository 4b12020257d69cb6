/* SPDX-License-Identifier: MIT */
#include "run.h"

#include <string.h>

#include "cases.h"
#include "history.h"
#include "say.h"
#include "workshop.h"

/* Sets the names and the directory of the sources: documents have paths as if the sources
 * were in the user's working tree. */
static int side_set_commit_names(struct pmdiff_side *side, const char *rev,
				 const char *top, const struct pmdiff_commit *commit)
{
	if (top && !(side->root = strdup(top)))
		return -ENOMEM;
	side->name = strdup(rev);
	side->commit = strdup(commit->hash);
	side->subject = strdup(commit->subject);
	if (!side->name || !side->commit || !side->subject)
		return -ENOMEM;
	return 0;
}

static int measure_command(struct pmdiff_workshop *workshop, struct pmdiff_side *sides,
			   struct pm_error *err)
{
	struct pmdiff_meter *meter = &workshop->meter;

	pmdiff_say(
		meter->options,
		"%llu run%s of each side%s%s, in turns, in an order by chance (seed %llu)",
		(unsigned long long)meter->runs, pm_plural_s(meter->runs),
		pm_text_if(meter->engine, " by "), pm_text_or_empty(meter->engine),
		(unsigned long long)meter->seed);
	pmdiff_meter_explain(meter);
	for (size_t i = 0; i < 2; i++)
		sides[i].explains = pmdiff_names_no_functions(meter->measured);
	return pmdiff_meter_measure(meter, workshop->trees, sides, 2, err);
}

static int measure_cases(struct pmdiff_workshop *workshop, struct pmdiff_side *sides,
			 struct pm_error *err)
{
	const struct pmdiff_meter *meter = &workshop->meter;

	pmdiff_say(meter->options,
		   "%zu case%s, both sides of each in turns, in an order by chance (seed "
		   "%llu)",
		   meter->options->cases.len, pm_plural_s(meter->options->cases.len),
		   (unsigned long long)meter->seed);
	return pmdiff_cases_measure(workshop, sides, err);
}

static int build_and_measure_sides(struct pmdiff_workshop *workshop,
				   struct pmdiff_side *sides, struct pm_error *err)
{
	struct pmdiff_meter *meter = &workshop->meter;
	int ret = 0;

	for (size_t i = 0; i < 2 && ret == 0; i++)
		if (side_set_commit_names(&sides[i], meter->options->measured.revs[i],
					  meter->top, &workshop->commits[i]) < 0)
			ret = pm_error_no_memory(err);
	for (size_t i = 0; i < 2 && ret == 0; i++)
		ret = pmdiff_meter_build(meter, &workshop->trees[i], err);
	if (ret < 0)
		return ret;
	if (meter->options->cases.len > 0)
		return measure_cases(workshop, sides, err);
	return measure_command(workshop, sides, err);
}

int pmdiff_measure(struct pmdiff_side out[2], struct pmdiff_workshop *workshop,
		   const struct pmdiff_options *options, struct pm_error *err)
{
	static const char *const roles[] = { "base", "head" };
	struct pmdiff_side sides[2] = { 0 };
	int ret = 0;

	/* Check this first, because measuring takes long. */
	if (options->history)
		ret = pmdiff_history_check(options->history, err);
	if (ret == 0)
		ret = pmdiff_workshop_open(workshop, options, roles, err);
	if (ret < 0)
		return ret;
	ret = build_and_measure_sides(workshop, sides, err);
	if (ret < 0)
		pmdiff_workshop_release(workshop);
	for (size_t i = 0; i < 2; i++)
		if (ret < 0)
			pmdiff_side_release(&sides[i]);
		else
			out[i] = sides[i];
	return ret;
}
