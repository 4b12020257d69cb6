/* SPDX-License-Identifier: MIT */
#include "run.h"

#include <string.h>

#include "history.h"
#include "say.h"
#include "workshop.h"

/* Its documents tell paths as if they were in the user's working tree. */
static int name_side(struct pmdiff_side *side, const char *rev, const char *top,
		     const struct pmdiff_commit *commit)
{
	if (top && !(side->root = strdup(top)))
		return -ENOMEM;
	side->name = strdup(rev);
	side->commit = strdup(commit->hash);
	side->subject = strdup(commit->subject);
	return side->name && side->commit && side->subject ? 0 : -ENOMEM;
}

static int fill_sides(struct pmdiff_workshop *workshop, struct pmdiff_side *sides,
		      struct pm_error *err)
{
	struct pmdiff_meter *meter = &workshop->meter;
	int r = 0;

	for (size_t i = 0; i < 2 && r == 0; i++)
		if (name_side(&sides[i], meter->options->measured.revs[i], meter->top,
			      &workshop->commits[i]) < 0)
			r = pm_error_set(err, -ENOMEM, "out of memory");
	for (size_t i = 0; i < 2 && r == 0; i++)
		r = pmdiff_meter_build(meter, &workshop->trees[i], err);
	if (r < 0)
		return r;
	pmdiff_say(
		meter->options,
		"%llu run%s of each side%s%s, in turns, in an order by chance (seed %llu)",
		(unsigned long long)meter->runs, meter->runs == 1 ? "" : "s",
		meter->engine ? " by " : "", meter->engine ? meter->engine : "",
		(unsigned long long)meter->seed);
	pmdiff_meter_explain(meter);
	return pmdiff_meter_measure(meter, workshop->trees, sides, 2, err);
}

int pmdiff_measure(struct pmdiff_side ret[2], const struct pmdiff_options *options,
		   struct pm_error *err)
{
	static const char *const roles[] = { "base", "head" };
	struct pmdiff_side sides[2] = { 0 };
	struct pmdiff_workshop workshop;
	/* What is to be kept takes long. */
	int r = options->history ? pmdiff_history_check(options->history, err) : 0;

	if (r == 0)
		r = pmdiff_workshop_open(&workshop, options, roles, err);
	if (r < 0)
		return r;
	r = fill_sides(&workshop, sides, err);
	pmdiff_workshop_release(&workshop);
	for (size_t i = 0; i < 2; i++)
		if (r < 0)
			pmdiff_side_release(&sides[i]);
		else
			ret[i] = sides[i];
	return r;
}
