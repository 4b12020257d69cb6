/* SPDX-License-Identifier: MIT */
/* Checks whether recordings may be compared at all, and what makes the comparison
 * doubtful. */
#include "recordings.h"

#include <string.h>

#include "compare-internal.h"

struct check {
	struct pm_comparison *comparison;
	const struct pm_profile *const *of; /* base, new */
};

/* ---- hosts and programs ------------------------------------------------------------- */

static int recordings_differ(struct check *check, const char *what, const char *a,
			     const char *b)
{
	if (!a || !b || strcmp(a, b) == 0)
		return 0;
	return pm_compare_differ(check->comparison,
				 "%s: %s on the base, %s on the new side", what, a, b);
}

static int recordings_doubt(struct check *check, const char *what, const char *a,
			    const char *b)
{
	if (!a || !b || strcmp(a, b) == 0)
		return 0;
	return pm_compare_warn(check->comparison,
			       "The %s differs: %s on the base, %s on the new side.",
			       what, a, b);
}

static int describe_recording(struct pm_compare_of *of, const struct pm_profile *profile)
{
	struct pm_str command = { 0 };
	int ret = 0;

	of->documents = of->runs = 1;
	for (size_t i = 0; i < profile->command.len; i++) {
		pm_str_puts(&command, i > 0 ? " " : "");
		pm_str_puts(&command, profile->command.data[i]);
	}
	if (command.failed || pm_stat_text(&of->created, profile->info.created) < 0 ||
	    pm_stat_text(&of->command, command.data) < 0)
		ret = -ENOMEM;
	pm_str_release(&command);
	return ret;
}

static int warn_of_one(struct check *check, unsigned int side)
{
	static const char *const names[] = { "base", "new side" };
	const struct pm_profile_info *info = &check->of[side]->info;

	if (info->cut &&
	    pm_compare_warn(check->comparison,
			    "The recording of the %s is cut short: its recorder was "
			    "killed.",
			    names[side]) < 0)
		return -ENOMEM;
	if (info->lost > 0 &&
	    pm_compare_warn(check->comparison, "Of the %s %llu samples are lost.",
			    names[side], (unsigned long long)info->lost) < 0)
		return -ENOMEM;
	if (info->exited && info->exit != 0)
		return pm_compare_warn(check->comparison,
				       "The program of the %s failed with status %u.",
				       names[side], info->exit);
	return 0;
}

static int check_hosts(struct check *check)
{
	const struct pm_profile_info *a = &check->of[0]->info, *b = &check->of[1]->info;
	struct pm_comparison *comparison = check->comparison;

	if (describe_recording(&comparison->base, check->of[0]) < 0 ||
	    describe_recording(&comparison->new, check->of[1]) < 0 ||
	    pm_stat_text(&comparison->cpu_model, b->cpu_model) < 0 ||
	    recordings_differ(check, "architecture", a->arch, b->arch) < 0 ||
	    recordings_differ(check, "cpu", a->cpu_model, b->cpu_model) < 0 ||
	    recordings_differ(check, "virtualisation", a->virt, b->virt) < 0 ||
	    recordings_doubt(check, "kernel", a->kernel, b->kernel) < 0 ||
	    recordings_doubt(check, "machine", a->hostname, b->hostname) < 0 ||
	    recordings_doubt(check, "kind of stacks", a->call_graph, b->call_graph) < 0 ||
	    recordings_doubt(check, "command", comparison->base.command,
			     comparison->new.command) < 0)
		return -ENOMEM;
	if (check->of[0]->latency != check->of[1]->latency &&
	    pm_compare_differ(comparison,
			      "weights: one is divided by what ran in parallel") < 0)
		return -ENOMEM;
	if (warn_of_one(check, 0) < 0 || warn_of_one(check, 1) < 0)
		return -ENOMEM;
	return 0;
}

/* ---- events ------------------------------------------------------------------------- */

static bool is_same_recording_text(const char *a, const char *b)
{
	if (a && b)
		return strcmp(a, b) == 0;
	return a == b;
}

static int check_events(struct check *check, const struct pm_profile_event *a,
			const struct pm_profile_event *b)
{
	struct pm_comparison *comparison = check->comparison;

	if (recordings_differ(check, a->name, a->actual, b->actual) < 0 ||
	    recordings_differ(check, a->name, a->unit, b->unit) < 0)
		return -ENOMEM;
	if (!is_same_recording_text(a->filter, b->filter) &&
	    pm_compare_differ(comparison,
			      "%s: only where %s on the base, only where %s on "
			      "the new side",
			      a->name, pm_text_or(a->filter, "anything"),
			      pm_text_or(b->filter, "anything")) < 0)
		return -ENOMEM;
	if (a->by_frequency == b->by_frequency && a->rate == b->rate)
		return 0;
	return pm_compare_warn(
		comparison,
		"%s was sampled %s %llu on the base, %s %llu on the new side.", a->name,
		a->by_frequency ? "at a frequency of" : "each",
		(unsigned long long)a->rate,
		b->by_frequency ? "at a frequency of" : "each",
		(unsigned long long)b->rate);
}

/* Warns of events that only one side has, because no rows include them. */
static int warn_of_alone(struct check *check, unsigned int side)
{
	static const char *const names[] = { "base", "new side" };

	for (size_t i = 0; i < check->of[side]->events.len; i++) {
		const struct pm_profile_event *event = &check->of[side]->events.data[i];
		const struct pm_profile_event *other =
			pm_recordings_event(check->of[!side], event);

		if (event->total.samples > 0 && (!other || other->total.samples == 0) &&
		    pm_compare_warn(check->comparison,
				    "There are samples of %s on the %s alone: it is not "
				    "compared.",
				    event->actual, names[side]) < 0)
			return -ENOMEM;
	}
	return 0;
}

const struct pm_profile_event *pm_recordings_event(const struct pm_profile *profile,
						   const struct pm_profile_event *event)
{
	for (size_t i = 0; i < profile->events.len; i++)
		if (strcmp(profile->events.data[i].actual, event->actual) == 0)
			return &profile->events.data[i];
	for (size_t i = 0; i < profile->events.len; i++)
		if (strcmp(profile->events.data[i].name, event->name) == 0)
			return &profile->events.data[i];
	return NULL;
}

int pm_recordings_check(struct pm_comparison *comparison,
			const struct pm_profile *const of[2])
{
	struct check check = { comparison, of };
	int ret = check_hosts(&check);

	for (size_t i = 0; i < of[0]->events.len && ret == 0; i++) {
		const struct pm_profile_event *a = &of[0]->events.data[i];
		const struct pm_profile_event *b = pm_recordings_event(of[1], a);

		if (b)
			ret = check_events(&check, a, b);
	}
	for (unsigned int side = 0; side < 2 && ret == 0; side++)
		ret = warn_of_alone(&check, side);
	return ret;
}
