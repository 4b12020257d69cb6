/* SPDX-License-Identifier: MIT */
/* Degrades a recording step by step to what the machine permits this user. */
#include "perf-state.h"

#include <stdarg.h>
#include <string.h>
#include <sys/resource.h>

#define HZ_MAX_DEFAULT 100000 /* DEFAULT_MAX_SAMPLE_RATE, kernel/events/core.c */

/* A note is dropped if there is no memory for it, which is then the least problem. */
void pm_perf_notes_add(struct pm_perf_notes *notes, const char *format, ...)
{
	va_list args;
	char *text;
	int n;

	va_start(args, format);
	n = vasprintf(&text, format, args);
	va_end(args);
	if (n < 0)
		return;
	if (pm_vec_push(&notes->texts, text) < 0)
		free(text);
}

void pm_perf_notes_release(struct pm_perf_notes *notes)
{
	for (size_t i = 0; i < notes->texts.len; i++)
		free(notes->texts.data[i]);
	pm_vec_release(&notes->texts);
}

/* ---- substitutes ------------------------------------------------------------------------ */

static bool does_kernel_know_event(const char *name)
{
	struct pm_event_specs specs PM_CLEANUP(pm_event_specs_release) = { 0 };
	struct perf_event_attr attr;
	int fd PM_AUTO_CLOSE = -1;

	if (pm_event_specs_parse(name, &specs, NULL) < 0)
		return false;
	memset(&attr, 0, sizeof(attr));
	attr.size = sizeof(attr);
	attr.type = specs.list.data[0].type;
	attr.config = specs.list.data[0].config;
	attr.disabled = 1;
	attr.exclude_kernel = 1;
	attr.exclude_hv = 1;
	fd = pm_sys_perf_event_open(&attr, 0, -1, -1, 0);
	return fd >= 0;
}

int pm_perf_explain_missing(const struct pm_event_spec *spec, int code,
			    struct pm_error *err)
{
	struct pm_str near PM_CLEANUP(pm_str_release) = { 0 };
	bool software = spec->type == PERF_TYPE_SOFTWARE;
	bool pmu = !software && (does_kernel_know_event("cycles") ||
				 does_kernel_know_event("instructions"));
	const char *missing = "this machine does not have the event";

	if (software || pmu)
		pm_event_names_near(spec->name, does_kernel_know_event, 3, &near);
	if (near.len == 0)
		pm_str_puts(&near, "cpu-clock, task-clock, page-faults");
	if (!software && !pmu)
		missing = "this machine has no hardware counters, as is usual in "
			  "virtual machines";
	pm_error_set(err, -code, "%s (%s); events that work here: %s", missing,
		     strerror(code), pm_str_text_or(&near, "cpu-clock"));
	pm_error_where(err, spec->requested, -1);
	return -code;
}

/* ---- degrading, one step at a time -------------------------------------------------------- */

bool pm_perf_in_kernel_only(const struct pm_event_spec *spec)
{
	return spec->type == PERF_TYPE_SOFTWARE &&
	       (spec->config == PERF_COUNT_SW_CONTEXT_SWITCHES ||
		spec->config == PERF_COUNT_SW_CPU_MIGRATIONS ||
		spec->config == PERF_COUNT_SW_CGROUP_SWITCHES);
}

bool pm_perf_clamp_rate(struct pm_perf *perf, struct pm_perf_event *event,
			uint64_t max_hz)
{
	uint64_t asked = event->rate;

	if (max_hz == 0)
		max_hz = HZ_MAX_DEFAULT;
	if (!event->by_frequency || asked <= max_hz)
		return false;
	event->rate = max_hz;
	if (asked != UINT64_MAX && !perf->rate_noted) {
		pm_perf_note(
			perf,
			"%llu Hz are more than the kernel allows, so %llu Hz are sampled "
			"(more: sudo sysctl kernel.perf_event_max_sample_rate=%llu).",
			(unsigned long long)asked, (unsigned long long)max_hz,
			(unsigned long long)asked);
		perf->rate_noted = true;
	}
	return true;
}

/* Drops the newest feature in use, because EINVAL does not say what is wrong. */
static bool perf_degrade_attr(struct pm_perf *perf, struct pm_perf_event *event)
{
	if (pm_perf_clamp_rate(perf, event, pm_perf_env_max_hz()))
		return true;
	if (perf->features.inherit_read && perf->shape.read) {
		perf->features.inherit_read = false;
		return true;
	}
	if (perf->features.format_lost) {
		perf->features.format_lost = false;
		return true;
	}
	if (perf->features.exclude_guest && event->actual.type != PERF_TYPE_SOFTWARE) {
		perf->features.exclude_guest = false;
		return true;
	}
	return false;
}

bool pm_perf_can_drop_kernel(const struct pm_event_spec *spec)
{
	return spec->user && !spec->explicit_kernel && !pm_perf_in_kernel_only(spec);
}

/* Restricts all events of a group to user space together, so that they count the same
 * code and their counts can be compared. */
static bool perf_drop_kernel_of_group(struct pm_perf *perf, struct pm_perf_event *event)
{
	const struct pm_event_spec *spec = &event->actual;
	char level[16] = "unknown";

	if (!spec->kernel || event->kernel_dropped || !pm_perf_can_drop_kernel(spec))
		return false;
	for (size_t i = 0; i < perf->events.len; i++) {
		struct pm_perf_event *other = &perf->events.data[i];

		if (other->requested.leader != event->requested.leader || other == event)
			continue;
		if (other->actual.kernel && !pm_perf_can_drop_kernel(&other->actual))
			return false;
		other->kernel_dropped = other->actual.kernel;
	}
	event->kernel_dropped = true;
	if (perf->env.paranoid_known)
		snprintf(level, sizeof(level), "%d", perf->env.paranoid);
	pm_perf_note(
		perf,
		"kernel samples are not allowed here (kernel.perf_event_paranoid is %s): "
		"%s is sampled in user space only (sudo sysctl "
		"kernel.perf_event_paranoid=1 allows both).",
		level, spec->name);
	return true;
}

static bool perf_substitute_event(struct pm_perf *perf, struct pm_perf_event *event,
				  int code)
{
	if (!pm_event_spec_fallback(&event->actual, code, &event->actual))
		return false;
	pm_perf_note(perf,
		     "this machine has no hardware counter for %s (%s): %s is sampled "
		     "instead%s.",
		     event->requested.requested, strerror(code), event->actual.name,
		     pm_text_if(!event->by_frequency, ", its period counts nanoseconds"));
	return true;
}

uint64_t pm_perf_nofile(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) == 0)
		return limit.rlim_cur;
	return UINT64_MAX;
}

bool pm_perf_raise_nofile(bool *raised)
{
	struct rlimit limit;

	if (*raised || getrlimit(RLIMIT_NOFILE, &limit) < 0 ||
	    limit.rlim_cur >= limit.rlim_max)
		return false;
	*raised = true;
	limit.rlim_cur = limit.rlim_max;
	return setrlimit(RLIMIT_NOFILE, &limit) == 0;
}

/* Returns true if something was changed that makes another try worthwhile. */
bool pm_perf_degrade(struct pm_perf *perf, struct pm_perf_event *event, int code,
		     bool first)
{
	switch (code) {
	case EMFILE:
		return pm_perf_raise_nofile(&perf->nofile_raised);
	case EINVAL:
		return perf_degrade_attr(perf, event);
	case EACCES:
	case EPERM:
		return perf_drop_kernel_of_group(perf, event);
	default:
		/* At a later place the event is known to exist, so it is not substituted.
		 * Nor is it if branches are recorded, because no substitute can record
		 * them. */
		return first && perf->shape.branches == 0 &&
		       perf_substitute_event(perf, event, code);
	}
}

/* This file exists if the CPU records branches, and contains their number. CPUs with two
 * kinds of cores have it under other names. */
static const char branches_path[] = "/sys/bus/event_source/devices/cpu/caps/branches";

static int explain_no_branches(const struct pm_event_spec *spec, int code,
			       struct pm_error *err)
{
	if (spec->type == PERF_TYPE_SOFTWARE || spec->type == PERF_TYPE_TRACEPOINT ||
	    spec->kind >= PM_EVENT_BREAKPOINT) {
		pm_error_set(err, -EOPNOTSUPP,
			     "branches are recorded with events of the CPU only");
		pm_error_where(err, spec->requested, -1);
		pm_error_fix(err, "-e cycles");
		return -EOPNOTSUPP;
	}
	if (access(branches_path, R_OK) == 0) {
		pm_error_set(err, -code, "the CPU records no such branches with it: %s",
			     strerror(code));
		pm_error_where(err, spec->requested, -1);
		return -code;
	}
	pm_error_set(err, -code,
		     "-b, -j and --call-graph lbr: this machine keeps no records of "
		     "branches (LBR), as is usual in virtual machines");
	pm_error_where(err, branches_path, -1);
	pm_error_fix(err, "--call-graph dwarf, without -b and -j");
	return -code;
}

int pm_perf_refused(struct pm_perf *perf, const struct pm_perf_event *event, int code,
		    struct pm_error *err)
{
	struct pm_perf_refusal why = {
		.code = code,
		.event = event->requested.requested,
		.kernel = event->actual.kernel && !event->kernel_dropped,
		.in_kernel_only = pm_perf_in_kernel_only(&event->actual),
		.kind = event->actual.kind,
		.wide = pm_perf_wide(perf),
		.others = perf->options.target == PM_PERF_TASKS,
		.fds = perf->fds_needed,
		.env = &perf->env,
	};

	if (perf->shape.branches != 0 &&
	    (code == ENOENT || code == ENODEV || code == EOPNOTSUPP || code == EINVAL))
		return explain_no_branches(&event->requested, code, err);
	if (code == ENOENT || code == ENXIO || code == ENODEV || code == EOPNOTSUPP)
		return pm_perf_explain_missing(&event->requested, code, err);
	return pm_perf_explain_open(&why, err);
}
