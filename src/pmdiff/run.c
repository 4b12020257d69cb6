/* SPDX-License-Identifier: MIT */
#include "run.h"

#include <string.h>

#include "cases.h"
#include "history.h"
#include "say.h"
#include "workshop.h"

/* The documents have paths as if the sources were in the user's working tree. */
static int side_set_commit_names(struct pmdiff_side *side, const char *rev,
				 const char *top, const struct pmdiff_commit *commit)
{
	if (top && !(side->root = strdup(top)))
		return -ENOMEM;
	side->name = strdup(rev);
	side->commit = strdup(commit->hash);
	side->subject = strdup(commit->subject);
	return side->name && side->commit && side->subject ? 0 : -ENOMEM;
}

static int measure_command(struct pmdiff_workshop *workshop, struct pmdiff_side *sides,
			   struct pm_error *err)
{
	struct pmdiff_meter *meter = &workshop->meter;

	pmdiff_say(
		meter->options,
		"%llu run%s of each side%s%s, in turns, in an order by chance (seed %llu)",
		(unsigned long long)meter->runs, meter->runs == 1 ? "" : "s",
		meter->engine ? " by " : "", meter->engine ? meter->engine : "",
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
		   meter->options->cases.len, meter->options->cases.len == 1 ? "" : "s",
		   (unsigned long long)meter->seed);
	return pmdiff_cases_measure(workshop, sides, err);
}

static int build_and_measure_sides(struct pmdiff_workshop *workshop,
				   struct pmdiff_side *sides, struct pm_error *err)
{
	struct pmdiff_meter *meter = &workshop->meter;
	int r = 0;

	for (size_t i = 0; i < 2 && r == 0; i++)
		if (side_set_commit_names(&sides[i], meter->options->measured.revs[i],
					  meter->top, &workshop->commits[i]) < 0)
			r = pm_error_no_memory(err);
	for (size_t i = 0; i < 2 && r == 0; i++)
		r = pmdiff_meter_build(meter, &workshop->trees[i], err);
	if (r < 0)
		return r;
	return meter->options->cases.len > 0 ? measure_cases(workshop, sides, err)
					     : measure_command(workshop, sides, err);
}

int pmdiff_measure(struct pmdiff_side ret[2], struct pmdiff_workshop *workshop,
		   const struct pmdiff_options *options, struct pm_error *err)
{
	static const char *const roles[] = { "base", "head" };
	struct pmdiff_side sides[2] = { 0 };
	/* Check this first, because measuring takes long. */
	int r = options->history ? pmdiff_history_check(options->history, err) : 0;

	if (r == 0)
		r = pmdiff_workshop_open(workshop, options, roles, err);
	if (r < 0)
		return r;
	r = build_and_measure_sides(workshop, sides, err);
	if (r < 0)
		pmdiff_workshop_release(workshop);
	for (size_t i = 0; i < 2; i++)
		if (r < 0)
			pmdiff_side_release(&sides[i]);
		else
			ret[i] = sides[i];
	return r;
}
