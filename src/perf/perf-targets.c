/* SPDX-License-Identifier: MIT */
/* Decides what is opened where: events of CPUs, of tasks on CPUs, or of tasks alone. */
#include "perf-state.h"

#include <fcntl.h>
#include <linux/perf_event.h>
#include <string.h>

enum {
	/* Up to this many tasks get a side-band event each. For more tasks, one side-band
	 * event for all tasks of a CPU is cheaper, unless it also reports context switches. */
	SIDE_BAND_TASKS_MAX = 8,
};

/* If opening takes longer than this, a note says why the recording began late. */
#define SLOW_OPENING_NS 1000000000ull

/* ---- which way ------------------------------------------------------------------------ */

/*
 * Whether the event may be opened per CPU. This is for events whose period a short task
 * does not complete, and for probes, which are never inherited. It is not for other
 * events that are sampled at every occurrence, nor for rare software events with a
 * frequency: occurrences in other tasks would lengthen the period for all.
 */
static bool event_fits_cpus(const struct pm_perf_event *event)
{
	const struct pm_event_spec *spec = &event->requested;

	if (pm_perf_is_probe(spec))
		return true;
	if (spec->read_group || (!event->by_frequency && event->rate <= 1))
		return false;
	switch (spec->kind) {
	case PM_EVENT_HARDWARE:
	case PM_EVENT_CACHE:
	case PM_EVENT_RAW:
	case PM_EVENT_PMU:
		return true;
	case PM_EVENT_SOFTWARE:
		return pm_perf_is_clock(spec);
	case PM_EVENT_BREAKPOINT:
	case PM_EVENT_TRACEPOINT:
	case PM_EVENT_UPROBE:
	case PM_EVENT_KPROBE:
		break;
	}
	return false;
}

/*
 * When a task forks, the kernel creates the child's event from the attr, and reads the
 * path of a probe at our address in the memory of that task: the fork fails with EFAULT,
 * or the probe is placed in another file (perf_uprobe_init(), perf_kprobe_init(); Linux
 * 6.18). Probes are therefore never inherited.
 */
bool pm_perf_is_probe(const struct pm_event_spec *spec)
{
	return spec->kind == PM_EVENT_UPROBE || spec->kind == PM_EVENT_KPROBE;
}

bool pm_perf_group_has_probe(const struct pm_perf *perf, uint32_t event)
{
	for (uint32_t i = 0; i < perf->events.len; i++)
		if (pm_perf_leader(perf, i) == pm_perf_leader(perf, event) &&
		    pm_perf_is_probe(&perf->events.data[i].requested))
			return true;
	return false;
}

/* A group is opened per CPU only if all of its members can be. */
static bool group_fits_cpus(const struct pm_perf *perf, uint32_t event)
{
	for (uint32_t i = 0; i < perf->events.len; i++)
		if (pm_perf_leader(perf, i) == pm_perf_leader(perf, event) &&
		    !event_fits_cpus(&perf->events.data[i]))
			return false;
	return true;
}

bool pm_perf_filtered(const struct pm_perf *perf, uint32_t event)
{
	return perf->filter && group_fits_cpus(perf, event);
}

static bool any_group_fits_cpus(const struct pm_perf *perf)
{
	for (uint32_t i = 0; i < perf->events.len; i++)
		if (group_fits_cpus(perf, i))
			return true;
	return false;
}

bool pm_perf_by_task(const struct pm_perf *perf)
{
	return perf->places.len > 0 && perf->places.data[0].cpu < 0;
}

/*
 * A busy machine switches tasks a million times a second, which a side band for all tasks
 * would write into the rings. A side band for each task reports the switches of that task
 * alone.
 */
void pm_perf_decide_side_band(struct pm_perf *perf)
{
	perf->side_band_wide =
		pm_perf_wide(perf) ||
		(perf->options.target == PM_PERF_TASKS && perf->filter &&
		 perf->tasks.len > SIDE_BAND_TASKS_MAX &&
		 (!perf->options.switches || perf->side_band_must_be_wide));
}

size_t pm_perf_count_fds(const struct pm_perf *perf)
{
	size_t sum = 0, tasks = pm_perf_by_task(perf) ? 1 : perf->tasks.len;

	for (size_t i = 0; i < perf->places.len; i++) {
		const struct pm_perf_place *place = &perf->places.data[i];

		sum += 1 + perf->options.overwrite; /* the rings */
		if (place->cpu >= 0) {
			sum += perf->side_band_wide ? 1 : tasks;
			sum += pm_perf_wide(perf) || perf->filter; /* watch */
		}
		for (uint32_t event = 0; place->sampled && event < perf->events.len;
		     event++) {
			if (pm_perf_wide(perf) || pm_perf_filtered(perf, event))
				sum += 1;
			else
				sum += tasks;
		}
	}
	return sum;
}

/* ---- planning ------------------------------------------------------------------------- */

static int check_cpus_online(const pm_cpu_list *wanted, const pm_cpu_list *online,
			     struct pm_error *err)
{
	for (size_t i = 0; i < wanted->len; i++)
		if (!pm_cpu_list_has(online, wanted->data[i]))
			return pm_error_set(err, -ENODEV,
					    "CPU %u is not online (see "
					    "/sys/devices/system/cpu/online)",
					    wanted->data[i]);
	return 0;
}

int pm_perf_cpus_wanted(const char *text, pm_cpu_list *out, pm_cpu_list *online,
			struct pm_error *err)
{
	pm_cpu_list wanted PM_CLEANUP(pm_cpu_list_release) = { 0 };
	pm_cpu_list all PM_CLEANUP(pm_cpu_list_release) = { 0 };
	int ret = pm_cpu_list_online(&all);

	if (ret == 0 && all.len == 0)
		ret = -ENODEV;
	if (ret < 0)
		return pm_error_set(err, ret, "the list of CPUs cannot be read");
	if (text)
		ret = pm_cpu_list_parse(text, &wanted);
	else
		ret = pm_cpu_list_online(&wanted);
	if (ret < 0) {
		pm_error_set(err, ret, "no list of CPUs, such as 0-3,8");
		pm_error_where(err, pm_text_or_empty(text), -1);
		return ret;
	}
	if (text)
		ret = check_cpus_online(&wanted, &all, err);
	else
		ret = 0;
	if (ret < 0)
		return ret;
	*out = wanted;
	wanted = (pm_cpu_list){ 0 };
	if (online) {
		*online = all;
		all = (pm_cpu_list){ 0 };
	}
	return 0;
}

/* Includes CPUs that are not sampled, since processes also fork, map and exit there. */
static int perf_plan_places(struct pm_perf *perf, const char *cpus, struct pm_error *err)
{
	pm_cpu_list wanted PM_CLEANUP(pm_cpu_list_release) = { 0 };
	pm_cpu_list online PM_CLEANUP(pm_cpu_list_release) = { 0 };
	int ret = pm_perf_cpus_wanted(cpus, &wanted, &online, err);

	if (ret < 0)
		return ret;
	for (size_t i = 0; i < online.len; i++) {
		struct pm_perf_place place = {
			.cpu = (int)online.data[i],
			.sampled = pm_cpu_list_has(&wanted, online.data[i]),
			.anchor = -1,
			.backward = -1,
			.watch = -1,
		};

		if (pm_vec_push(&perf->places, place) < 0)
			return pm_error_set(err, -ENOMEM, "no memory for the CPUs");
	}
	return 0;
}

static int perf_plan_tasks(struct pm_perf *perf, const struct pm_perf_options *options)
{
	if (options->target == PM_PERF_COMMAND)
		return pm_vec_push(&perf->tasks, options->pid);
	if (options->target != PM_PERF_TASKS)
		return 0;
	for (size_t i = 0; i < options->tids_len; i++)
		if (pm_vec_push(&perf->tasks, options->tids[i]) < 0)
			return -ENOMEM;
	return 0;
}

/*
 * The kernel opens and closes tracepoints one at a time (event_mutex). Another recorder
 * that closes its own makes us wait until no CPU is inside of them any more
 * (perf_trace_event_unreg()). On an overloaded machine that takes seconds, and the system
 * call cannot be made to give up.
 */
static void perf_follow_by_tracepoints(struct pm_perf *perf, bool inherit)
{
	uint64_t begin = pm_perf_now_ns(), took;

	(void)pm_tree_filter_new(&perf->filter, inherit, NULL);
	took = pm_perf_now_ns() - begin;
	if (took >= SLOW_OPENING_NS)
		pm_perf_note(
			perf,
			"the recording began %.1f s late: the kernel took so long to "
			"open tracepoints, as it does while another recorder closes "
			"its own on a busy machine (--per-task does without)",
			(double)took / 1e9);
}

int pm_perf_plan_targets(struct pm_perf *perf, const struct pm_perf_options *options,
			 struct pm_error *err)
{
	int ret = perf_plan_places(perf, options->cpus, err);

	perf->some_cpus = options->cpus != NULL;
	if (ret < 0)
		return ret;
	if (perf_plan_tasks(perf, options) < 0)
		return pm_error_set(err, -ENOMEM, "no memory for the tasks");
	if (options->target == PM_PERF_CGROUP) {
		perf->cgroup_fd = fcntl(options->cgroup_fd, F_DUPFD_CLOEXEC, 0);
		if (perf->cgroup_fd < 0)
			return pm_error_set(err, -errno, "no such cgroup: %s",
					    strerror(errno));
	}
	/* If this user may not use the filter, the events are opened per task. That is
	 * normal without privileges and not worth a note. */
	if (!pm_perf_wide(perf) && !options->per_task && !perf->no_filter &&
	    any_group_fits_cpus(perf) && pm_perf_env_perfmon(&perf->env))
		perf_follow_by_tracepoints(perf, !options->no_inherit);
	perf->no_filter = true;
	pm_perf_decide_side_band(perf);
	return 0;
}

static bool is_event_in_group(const struct pm_perf *perf, uint32_t event)
{
	for (uint32_t i = 0; i < perf->events.len; i++)
		if (i != event && pm_perf_leader(perf, i) == pm_perf_leader(perf, event))
			return true;
	return false;
}

void pm_perf_note_probes(struct pm_perf *perf)
{
	if (pm_perf_wide(perf) || perf->options.no_inherit)
		return;
	for (uint32_t i = 0; i < perf->events.len; i++) {
		const struct pm_event_spec *spec = &perf->events.data[i].requested;

		if (!pm_perf_is_probe(spec) || pm_perf_filtered(perf, i))
			continue;
		pm_perf_note(perf,
			     "%s%s is not seen in threads and processes that are started "
			     "from now on: the kernel does not hand probes on, and "
			     "events of CPUs, which need CAP_PERFMON with CAP_BPF (or "
			     "root) and no --per-task, cannot be used%s.",
			     spec->name,
			     pm_text_if(is_event_in_group(perf, i), ", with its group,"),
			     pm_text_if(is_event_in_group(perf, i), " for all of it"));
		return;
	}
}

bool pm_perf_plan_fewer_fds(struct pm_perf *perf)
{
	size_t before = pm_perf_count_fds(perf);

	if (perf->options.target == PM_PERF_TASKS && perf->filter &&
	    !perf->side_band_wide && !perf->side_band_must_be_wide) {
		perf->side_band_must_be_wide = true;
		pm_perf_close_all(perf);
		pm_perf_decide_side_band(perf);
		return perf->side_band_wide;
	}
	if (perf->options.target != PM_PERF_TASKS || pm_perf_by_task(perf) ||
	    perf->filter || perf->some_cpus || perf->options.overwrite)
		return false;
	pm_perf_close_all(perf);
	pm_vec_clear(&perf->places);
	for (size_t i = 0; i < perf->tasks.len; i++) {
		struct pm_perf_place place = { .cpu = -1,
					       .task = perf->tasks.data[i],
					       .sampled = true,
					       .anchor = -1,
					       .backward = -1,
					       .watch = -1 };

		if (place.task > 0 && pm_vec_push(&perf->places, place) < 0)
			return false;
	}
	pm_perf_note(
		perf,
		"%zu threads on all CPUs need %zu file descriptors, more than the limit "
		"of %llu: what they start from now on is not sampled.",
		perf->tasks.len, before, (unsigned long long)perf->env.nofile_hard);
	return true;
}

void pm_perf_note_counts(struct pm_perf *perf)
{
	if (pm_perf_wide(perf) || perf->options.no_inherit || !perf->shape.read ||
	    perf->features.inherit_read)
		return;
	pm_perf_note(
		perf,
		"threads and processes that are started from now on are not seen: this "
		"kernel (before Linux 6.12) hands on no group with :S.");
}
