/* SPDX-License-Identifier: MIT */
/*
 * The processor's own breakpoints, as perf events, need no stop: a hit is a record in a
 * ring and takes a seventh of the time of a stop. There are four breakpoints. A thread is
 * held when it is created, and has them from its first instruction on.
 */
#include "engine-ptrace.h"

#include <linux/hw_breakpoint.h>
#include <linux/perf_event.h>
#include <string.h>

/* Each region has two classes: hits that begin something in it, and hits that end it. */
static uint32_t hw_class_of_place(const struct pm_place *place, bool ends)
{
	return place->region * 2 + ends;
}

static int hw_add_place(struct pm_ptr_hw *hw, const struct pm_regions *regions,
			uint32_t place, uint64_t address)
{
	const struct pm_place *of = &regions->places.data[place];
	struct pm_event_spec spec = { .kind = PM_EVENT_BREAKPOINT,
				      .type = PERF_TYPE_BREAKPOINT,
				      .bp_type = HW_BREAKPOINT_X,
				      .config1 = address,
				      .config2 = sizeof(long),
				      .user = true };

	snprintf(spec.name, sizeof(spec.name), "mem:0x%llx:x",
		 (unsigned long long)address);
	if (pm_vec_push(&hw->specs, spec) < 0 || pm_vec_push(&hw->order, place) < 0 ||
	    pm_vec_push(&hw->classes, hw_class_of_place(of, !pm_place_is_way_in(of))) < 0)
		return -ENOMEM;
	return 0;
}

/* Finds the addresses of all places in the process. */
static int hw_find_places(struct pm_ptr_hw *hw, struct pm_ptr_sites *sites,
			  const struct pm_regions *regions, struct pm_procs *procs,
			  const struct pm_space *space)
{
	const struct pm_ptr_file *file = &sites->files.data[0];

	for (size_t i = 0; i < space->maps.len; i++) {
		const struct pm_mapping *map = &space->maps.data[i];

		if (pm_ptr_sites_find(sites, procs, map->module) != 0)
			continue;
		for (size_t j = 0; j < file->sites.len; j++) {
			const struct pm_ptr_site *site = &file->sites.data[j];

			if (site->offset < map->pgoff ||
			    site->offset - map->pgoff >= map->end - map->start)
				continue;
			for (uint32_t k = 0; k < site->places; k++)
				if (hw_add_place(hw, regions,
						 sites->order.data[site->first + k],
						 map->start +
							 (site->offset - map->pgoff)) < 0)
					return -ENOMEM;
		}
	}
	if (hw->order.len == regions->places.len)
		return 0;
	return -ENOENT;
}

static int hw_open_hits(struct pm_ptr_hw *hw, const struct pm_event_spec *counters,
			size_t counters_len, pid_t tid)
{
	struct pm_hits_options options = { .counters = counters,
					   .counters_len = counters_len,
					   .places = hw->specs.data,
					   .places_len = hw->specs.len,
					   .classes = hw->classes.data,
					   .target = PM_PERF_TASKS,
					   .tids = &tid,
					   .tids_len = 1,
					   .no_inherit = true,
					   .follow = true };

	return pm_hits_open(&hw->hits, &options, NULL);
}

static void hw_clear(struct pm_ptr_hw *hw)
{
	pm_hits_free(hw->hits);
	pm_vec_release(&hw->specs);
	pm_vec_release(&hw->order);
	pm_vec_release(&hw->classes);
	hw->hits = NULL;
}

void pm_ptr_hw_release(struct pm_ptr_hw *hw)
{
	hw_clear(hw);
}

int pm_ptr_hw_start(struct pm_ptr_hw *hw, struct pm_ptr_sites *sites,
		    const struct pm_regions *regions, struct pm_procs *procs,
		    const struct pm_event_spec *counters, size_t counters_len, pid_t pid)
{
	const struct pm_process *process;
	int ret;

	if (hw->hits || sites->files.len != 1 || counters_len > PM_HITS_COUNTERS_MAX ||
	    sites->files.data[0].sites.len > PM_PTR_HW_MAX)
		return 0;
	ret = pm_procs_read(procs, pid, NULL);
	if (ret == 0)
		process = pm_procs_get(procs, pid);
	else
		process = NULL;
	if (!process || !pm_ptr_image_is_program(sites, procs, pid, &process->space)) {
		if (ret == -ENOMEM)
			return ret;
		return 0;
	}
	ret = hw_find_places(hw, sites, regions, procs, &process->space);
	if (ret == 0)
		ret = hw_open_hits(hw, counters, counters_len, pid);
	if (ret == 0)
		return 1;
	hw_clear(hw);
	if (ret == -ENOMEM)
		return ret;
	return 0;
}

int pm_ptr_hw_drain(struct pm_ptr_hw *hw, bool final,
		    int (*see)(void *user, const struct pm_hit *hit, uint32_t place),
		    void *user, struct pm_error *err)
{
	enum pm_hits_what what;
	struct pm_record record;
	struct pm_hit hit;
	int ret;

	if (!hw->hits)
		return 0;
	pm_hits_begin(hw->hits, final);
	while ((ret = pm_hits_next(hw->hits, &what, &hit, &record, err)) == 1) {
		if (what == PM_HITS_HIT)
			ret = see(user, &hit, hw->order.data[hit.place]);
		else
			ret = 0;
		if (ret < 0)
			return pm_error_set(err, ret, "%s", strerror(-ret));
	}
	return ret;
}

void pm_ptr_hw_tell_lost(const struct pm_ptr_hw *hw, const struct pm_regions *regions,
			 struct pm_stat_scope *scopes, size_t len)
{
	size_t at = 0;

	if (!hw->hits)
		return;
	for (uint32_t i = 0; i < regions->list.len && at < len; i++) {
		if (regions->list.data[i].sum >= 0)
			continue;
		for (uint32_t part = 0; part < regions->list.len; part++)
			if (part == i || regions->list.data[part].sum == (int32_t)i)
				scopes[at].lost +=
					pm_hits_lost_of(hw->hits, part * 2) +
					pm_hits_lost_of(hw->hits, part * 2 + 1);
		if (scopes[at].lost > 0)
			scopes[at].calls_exact = false;
		at++;
	}
}
