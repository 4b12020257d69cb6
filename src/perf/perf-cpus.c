/* SPDX-License-Identifier: MIT */
/* Handles CPUs that come online and go offline while a recording runs. */
#include "perf-state.h"

#include <string.h>

enum {
	TRIES_MAX = 16,
	CLOCKS_DIFFER_NS = 10000000, /* far more than the time between two readings */
};

/*
 * The kernel removes the events of a CPU that goes offline from their context and does
 * not put them back (perf_event_exit_cpu()). The events do not report it. But their
 * enabled time stops, which is visible even if the CPU came back before this check.
 */
static bool has_place_stopped(struct pm_perf_place *place)
{
	uint64_t values[2]; /* { value; time_enabled; } */
	uint64_t enabled_before = place->enabled_ns, before = place->watched_ns, passed;

	if (place->watch < 0 ||
	    read(place->watch, values, sizeof(values)) != (ssize_t)sizeof(values))
		return false;
	place->watched_ns = pm_perf_now_ns();
	place->enabled_ns = values[1];
	passed = place->watched_ns - before;
	return before != 0 &&
	       values[1] - enabled_before + passed / 8 + CLOCKS_DIFFER_NS < passed;
}

/* Reopens the place, and tries again after -EAGAIN: the kernel refused something, which
 * is now left out. */
static int perf_retry_reopen_place(struct pm_perf *perf, uint32_t at,
				   struct pm_error *err)
{
	int ret = -EAGAIN;

	for (int i = 0; i < TRIES_MAX && ret == -EAGAIN; i++) {
		pm_perf_close_place(perf, at, PM_CLOSE_EVERY_TASK);
		ret = pm_perf_reopen_place(perf, at, err);
	}
	return ret;
}

static int perf_bring_back_place(struct pm_perf *perf, uint32_t at, struct pm_error *err)
{
	int ret = perf_retry_reopen_place(perf, at, err);

	if (ret == 0 && perf->enabled)
		ret = pm_perf_switch(perf, (int)at, true);
	if (ret == 0)
		return 1;
	pm_perf_close_place(perf, at, PM_CLOSE_EVERY_TASK);
	/* If the CPU is offline again, the next check tries again. Other errors are
	 * reported once. */
	perf->places.data[at].offline = ret == -ENODEV;
	if (ret == -ENODEV)
		return 0;
	return ret;
}

static int perf_check_place(struct pm_perf *perf, uint32_t at, bool online,
			    struct pm_error *err)
{
	struct pm_perf_place *place = &perf->places.data[at];
	bool was_offline = place->offline;

	if (!online) {
		place->offline = true;
		return 0;
	}
	place->offline = false;
	/* Events of tasks on a CPU continue by themselves when it is back. */
	if (!pm_perf_wide(perf) && !perf->filter)
		return 0;
	if (!was_offline && !has_place_stopped(place))
		return 0;
	return perf_bring_back_place(perf, at, err);
}

static int perf_add_cpu_place(struct pm_perf *perf, uint32_t cpu, struct pm_error *err)
{
	struct pm_perf_place place = { .cpu = (int)cpu,
				       .sampled = !perf->some_cpus,
				       .anchor = -1,
				       .backward = -1,
				       .watch = -1 };
	uint32_t at = (uint32_t)perf->places.len;
	int ret = -EAGAIN;

	if (pm_vec_push(&perf->places, place) < 0)
		return pm_error_set(err, -ENOMEM, "no memory for the CPUs");
	for (int i = 0; i < TRIES_MAX && ret == -EAGAIN; i++) {
		pm_perf_close_place(perf, at, PM_CLOSE_ALL);
		ret = pm_perf_open_place(perf, at, err);
	}
	if (ret == 0 && perf->enabled)
		ret = pm_perf_switch(perf, (int)at, true);
	/* If the CPU is offline again, the next check tries again. After other errors,
	 * the events that were opened stay, and the next checks do not try again. */
	perf->places.data[at].offline = ret == -ENODEV;
	if (ret < 0) {
		if (ret == -ENODEV)
			return 1;
		return ret;
	}
	if (!pm_perf_wide(perf) && !perf->filter)
		pm_perf_note(
			perf,
			"CPU %u came online during the recording: processes that were "
			"started before are not sampled on it.",
			cpu);
	return 1;
}

int pm_perf_check_cpus(struct pm_perf *perf, struct pm_error *err)
{
	pm_cpu_list online PM_CLEANUP(pm_cpu_list_release) = { 0 };
	size_t before = perf->places.len;
	int ret = 0, status;

	if (before == 0 || perf->places.data[0].cpu < 0)
		return 0;
	status = pm_cpu_list_online(&online);
	if (status < 0)
		return pm_error_set(err, status, "the list of CPUs cannot be read");
	for (uint32_t i = 0; i < before; i++) {
		status = perf_check_place(
			perf, i,
			pm_cpu_list_has(&online, (uint32_t)perf->places.data[i].cpu),
			err);
		if (status != 0 && ret >= 0)
			ret = status;
	}
	for (size_t i = 0; i < online.len; i++) {
		bool known = false;

		for (size_t k = 0; k < before; k++)
			known |= perf->places.data[k].cpu == (int)online.data[i];
		if (known)
			continue;
		status = perf_add_cpu_place(perf, online.data[i], err);
		if (ret >= 0)
			ret = status;
	}
	return ret;
}
