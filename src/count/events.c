/* SPDX-License-Identifier: MIT */
/* The default events, and the properties of each event. */
#include "pm/count.h"

#include <string.h>

/* ---- without -e ------------------------------------------------------------------------ */

static const char software_events[] =
	"task-clock,context-switches,cpu-migrations,page-faults,minor-faults,major-faults";

/* Each line is a group; those of its events that exist are used. */
static const char *const hardware_groups[] = {
	"{cycles,instructions}",
	"{branches,branch-misses}",
	"{cache-references,cache-misses}",
	"{slots,topdown-retiring,topdown-bad-spec,topdown-fe-bound,topdown-be-bound}",
};

/* Appends the events of @from that are marked in @kept to @to, with new leaders. */
static int append_kept_specs(struct pm_event_specs *to, const struct pm_event_specs *from,
			     const bool *kept)
{
	uint32_t leader = PM_INDEX_NONE;

	for (size_t i = 0; i < from->list.len; i++) {
		struct pm_event_spec spec = from->list.data[i];

		if (!kept[i])
			continue;
		if (leader == PM_INDEX_NONE)
			leader = (uint32_t)to->list.len;
		spec.leader = leader;
		if (spec.cpus)
			spec.cpus = pm_event_specs_keep(to, spec.cpus, strlen(spec.cpus));
		if ((from->list.data[i].cpus && !spec.cpus) ||
		    pm_vec_push(&to->list, spec) < 0)
			return -ENOMEM;
	}
	return 0;
}

enum {
	GROUP_MAX = 8,
};

static int add_event_group(struct pm_event_specs *specs, const char *text)
{
	struct pm_event_specs group PM_CLEANUP(pm_event_specs_release) = { 0 };
	bool kept[GROUP_MAX] = { false };

	/* The machine does not know one of the names, mostly of top-down events. */
	if (pm_event_specs_parse(text, &group, NULL) < 0 || group.list.len > GROUP_MAX)
		return 0;
	for (size_t i = 0; i < group.list.len; i++)
		kept[i] = pm_perf_try(&group.list.data[i], NULL) != PM_PERF_NOT_AVAILABLE;
	return append_kept_specs(specs, &group, kept);
}

int pm_count_default_events(struct pm_event_specs *specs, struct pm_error *err)
{
	int ret = pm_event_specs_parse(software_events, specs, err);

	if (ret < 0)
		return ret;
	for (size_t i = 0; i < PM_ARRAY_LEN(hardware_groups); i++)
		if (add_event_group(specs, hardware_groups[i]) < 0)
			return pm_error_set(err, -ENOMEM, "no memory for the events");
	return 0;
}

/* ---- properties of an event ------------------------------------------------------------ */

static const char *source_of(const struct pm_event_spec *spec)
{
	switch (spec->kind) {
	case PM_EVENT_HARDWARE:
		return "hardware";
	case PM_EVENT_SOFTWARE:
		return "software";
	case PM_EVENT_CACHE:
		return "cache";
	case PM_EVENT_RAW:
		return "raw";
	case PM_EVENT_PMU:
		return "pmu";
	case PM_EVENT_BREAKPOINT:
		return "breakpoint";
	case PM_EVENT_TRACEPOINT:
		return "tracepoint";
	case PM_EVENT_UPROBE:
	case PM_EVENT_KPROBE:
		break;
	}
	return "probe";
}

static bool name_is_one_of(const char *name, const char *const *names, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (strcmp(name, names[i]) == 0)
			return true;
	return false;
}

static bool is_clock(const struct pm_event_spec *spec)
{
	static const char *const clocks[] = { "task-clock", "cpu-clock" };

	return spec->kind == PM_EVENT_SOFTWARE &&
	       name_is_one_of(spec->name, clocks, PM_ARRAY_LEN(clocks));
}

static enum pm_stat_class spec_noise_class(const struct pm_event_spec *spec)
{
	static const char *const steady[] = { "instructions", "branches", "page-faults",
					      "minor-faults" };

	if (name_is_one_of(spec->name, steady, PM_ARRAY_LEN(steady)))
		return PM_STAT_LOW_NOISE;
	return PM_STAT_NOISY;
}

/* An event that is not a cost by itself is neither good nor bad. */
static int8_t spec_better_direction(const struct pm_event_spec *spec)
{
	if (spec->kind == PM_EVENT_HARDWARE || spec->kind == PM_EVENT_SOFTWARE ||
	    spec->kind == PM_EVENT_CACHE)
		return -1;
	return 0;
}

static bool spec_is_in_group(const struct pm_event_specs *specs, size_t index)
{
	for (size_t i = 0; i < specs->list.len; i++)
		if (i != index &&
		    specs->list.data[i].leader == specs->list.data[index].leader)
			return true;
	return false;
}

/* Takes ownership of the members of @event, also on failure. */
static int stat_push_event(struct pm_stat *stat, struct pm_stat_event *event,
			   const char *name, const char *requested, const char *unit,
			   const char *source)
{
	if (pm_stat_text(&event->name, name) == 0 &&
	    pm_stat_text(&event->requested, requested) == 0 &&
	    pm_stat_text(&event->unit, unit) == 0 &&
	    pm_stat_text(&event->source, source) == 0 &&
	    pm_vec_push(&stat->events, *event) == 0)
		return 0;
	free(event->name);
	free(event->requested);
	free(event->unit);
	free(event->source);
	return -ENOMEM;
}

static int add_event_of_spec(struct pm_stat *stat, const struct pm_event_specs *specs,
			     size_t index, bool default_set)
{
	const struct pm_event_spec *spec = &specs->list.data[index];
	struct pm_stat_event event = {
		.class = spec_noise_class(spec),
		.better = spec_better_direction(spec),
		.group = spec_is_in_group(specs, index) ? (int32_t)spec->leader : -1,
		.user_only = !spec->kernel && !is_clock(spec),
		.default_set = default_set,
	};
	char unit[PM_EVENT_UNIT_MAX];
	const char *requested = spec->requested, *shown_unit = unit;

	pm_event_spec_unit(spec, unit, &event.scale);
	if (!requested[0])
		requested = spec->name;
	if (is_clock(spec))
		shown_unit = "ns";
	return stat_push_event(stat, &event, spec->name, requested, shown_unit,
			       source_of(spec));
}

int pm_count_describe_events(struct pm_stat *stat, const struct pm_event_specs *specs,
			     bool default_set)
{
	static const struct {
		const char *name, *unit;
	} tools[PM_COUNT_TOOL_EVENTS] = {
		{ "wall-time", "ns" },
		{ "user-time", "ns" },
		{ "system-time", "ns" },
		{ "max-rss", "bytes" },
	};

	for (size_t i = 0; i < specs->list.len; i++)
		if (add_event_of_spec(stat, specs, i, default_set) < 0)
			return -ENOMEM;
	for (size_t i = 0; i < PM_COUNT_TOOL_EVENTS; i++) {
		struct pm_stat_event event = { .scale = 1,
					       .class = PM_STAT_NOISY,
					       .better = -1,
					       .group = -1,
					       .default_set = true };

		if (stat_push_event(stat, &event, tools[i].name, tools[i].name,
				    tools[i].unit, "tool") < 0)
			return -ENOMEM;
	}
	return 0;
}
