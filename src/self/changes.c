/* SPDX-License-Identifier: MIT */
#include "changes.h"

#include <string.h>
#include <sys/mman.h>

#include "pm/run.h"

enum {
	TRIES_MAX = 3, /* libraries may be loaded while the mappings are read; then they
	                * are read again */
};

/* Without /proc no mappings are known, and frames get no names. */
static int read_process_maps(struct pm_self_changes *changes)
{
	int ret = pm_procs_read(changes->procs, changes->pid, NULL);

	if (ret == -ENOMEM)
		return ret;
	return 0;
}

int pm_self_changes_begin(struct pm_self_changes *changes, struct pm_procs *procs,
			  pid_t pid)
{
	int ret = pm_self_mappings_init();

	if (ret < 0)
		return -ENOMEM;
	changes->procs = procs;
	changes->pid = pid;
	changes->now_ns = changes->whole_ns = pm_now_ns();
	pm_self_libraries_changed(&changes->seen);
	pm_self_mappings_changed(&changes->seen);
	return read_process_maps(changes);
}

void pm_self_changes_release(struct pm_self_changes *changes)
{
	pm_vec_release(&changes->before);
	pm_vec_release(&changes->now);
}

/* ---- stages -------------------------------------------------------------------------------- */

static bool mappings_are_same(const struct pm_mapping *a, const struct pm_mapping *b)
{
	return a->module == b->module && a->pgoff - a->start == b->pgoff - b->start;
}

static const struct pm_mapping *choose_mapping(enum pm_self_stage stage,
					       const struct pm_mapping *before,
					       const struct pm_mapping *now)
{
	if (stage == PM_SELF_BEFORE)
		return before;
	if (stage == PM_SELF_NOW)
		return now;
	if (before && now)
		return NULL;
	if (before)
		return before;
	return now;
}

/* Maps @mapping in [start, end), or unmaps the range if @mapping is NULL. */
static int map_piece(struct pm_self_changes *changes, uint64_t start, uint64_t end,
		     const struct pm_mapping *mapping)
{
	const struct pm_module_identity *identity;

	if (!mapping)
		return pm_procs_map(changes->procs, changes->pid, start, end - start, 0,
				    0, NULL);
	identity = &pm_procs_module(changes->procs, mapping->module)->identity;
	return pm_procs_map(changes->procs, changes->pid, start, end - start,
			    mapping->pgoff + (start - mapping->start), PROT_EXEC,
			    identity);
}

/* Returns the mapping at @at, or NULL. @end is lowered to the end of that mapping or
 * gap. */
static const struct pm_mapping *find_mapping_at(const struct pm_mapping *maps, size_t len,
						size_t *i, uint64_t at, uint64_t *end)
{
	while (*i < len && maps[*i].end <= at)
		++*i;
	if (*i == len)
		return NULL;
	if (maps[*i].start > at) {
		if (*end > maps[*i].start)
			*end = maps[*i].start;
		return NULL;
	}
	if (*end > maps[*i].end)
		*end = maps[*i].end;
	return &maps[*i];
}

/* Changes only the ranges in which `before` and `now` differ. */
static int set_stage(struct pm_self_changes *changes, enum pm_self_stage stage)
{
	size_t i = 0, j = 0;
	uint64_t at = 0, end;

	for (changes->stage = stage; at < UINT64_MAX; at = end) {
		const struct pm_mapping *before, *now;
		int ret;

		end = UINT64_MAX;
		before = find_mapping_at(changes->before.data, changes->before.len, &i,
					 at, &end);
		now = find_mapping_at(changes->now.data, changes->now.len, &j, at, &end);
		if ((!before && !now) ||
		    (before && now && mappings_are_same(before, now)))
			continue;
		ret = map_piece(changes, at, end, choose_mapping(stage, before, now));
		if (ret < 0)
			return ret;
	}
	return 0;
}

int pm_self_changes_at(struct pm_self_changes *changes, uint64_t time)
{
	if (changes->stage == PM_SELF_BEFORE && time > changes->before_ns)
		return set_stage(changes, PM_SELF_BETWEEN);
	return 0;
}

/* ---- looking ------------------------------------------------------------------------------- */

static int copy_mappings(struct pm_self_changes *changes, bool before)
{
	const struct pm_process *process = pm_procs_get(changes->procs, changes->pid);
	struct pm_mapping *copy;
	size_t len;

	if (!process)
		return -ENOMEM;
	len = process->space.maps.len;
	if ((before ? pm_vec_reserve(&changes->before, len)
		    : pm_vec_reserve(&changes->now, len)) < 0)
		return -ENOMEM;
	if (before)
		copy = changes->before.data;
	else
		copy = changes->now.data;
	if (len > 0)
		memcpy(copy, process->space.maps.data, len * sizeof(*copy));
	if (before)
		changes->before.len = len;
	else
		changes->now.len = len;
	return 0;
}

/* Returns the number of libraries that have a new mapping. */
static uint64_t count_new_mappings(const struct pm_self_changes *changes)
{
	uint64_t len = 0, last = UINT64_MAX;
	size_t j = 0;

	for (size_t i = 0; i < changes->now.len; i++) {
		const struct pm_mapping *now = &changes->now.data[i], *before;
		uint64_t end = now->end;

		before = find_mapping_at(changes->before.data, changes->before.len, &j,
					 now->start, &end);
		if ((before && mappings_are_same(before, now)) || now->module == last)
			continue;
		last = now->module;
		len++;
	}
	return len;
}

/* Reads the mappings, as of changes->now_ns or later. If they change again while they are
 * read, the next check will notice it. */
static int read_changed(struct pm_self_changes *changes)
{
	struct pm_self_mappings after;
	int ret = copy_mappings(changes, true);

	for (int tries = 0; ret == 0 && tries < TRIES_MAX; tries++) {
		changes->now_ns = changes->whole_ns = pm_now_ns();
		pm_self_libraries_changed(&changes->seen);
		pm_self_mappings_changed(&changes->seen);
		ret = read_process_maps(changes);
		after = changes->seen;
		if (ret == 0 && !pm_self_libraries_changed(&after))
			break;
	}
	if (ret == 0)
		return copy_mappings(changes, false);
	return ret;
}

/* Starts the stage for samples from before the last check, which come first. @loaded is
 * the number of libraries loaded since the check before it. */
static int begin_stage_before(struct pm_self_changes *changes, uint64_t loaded)
{
	uint64_t found = count_new_mappings(changes);

	changes->hidden += PM_SUB_OR_0(loaded, found);
	return set_stage(changes, PM_SELF_BEFORE);
}

int pm_self_changes_look(struct pm_self_changes *changes, bool whole, uint64_t *until)
{
	struct pm_self_mappings seen = changes->seen, last = seen;
	uint64_t begin_ns = pm_now_ns();
	bool loaded = pm_self_libraries_changed(&seen);
	int ret = 0;

	if (changes->stage != PM_SELF_NOW)
		ret = set_stage(changes, PM_SELF_NOW);
	if (ret < 0)
		return ret;
	if (!loaded && !(whole && pm_self_mappings_changed(&seen))) {
		changes->now_ns = begin_ns;
		if (whole)
			changes->whole_ns = begin_ns;
	} else {
		/* Mappings that are not libraries may have changed at any time since all
		 * mappings were last compared. */
		if (loaded)
			changes->before_ns = changes->now_ns;
		else
			changes->before_ns = changes->whole_ns;
		ret = read_changed(changes);
		if (ret == 0 && until)
			ret = begin_stage_before(changes,
						 changes->seen.loaded - last.loaded);
		if (ret >= 0)
			ret = 1;
	}
	if (until)
		*until = changes->now_ns;
	return ret;
}
