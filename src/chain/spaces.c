/* SPDX-License-Identifier: MIT */
#include "pm/chain-spaces.h"

#include <string.h>

#include "live-code.h"

struct view {
	struct pm_chain_modules *modules; /* borrowed */
	pid_t pid;
	uint64_t epoch; /* epoch of the struct pm_space that it was built from */
	bool built;
	uint64_t version; /* counts rebuilds */
	uint64_t modules_version; /* `version` of the modules that it was built from */
	PM_VEC(struct pm_unw_map) maps;
	PM_VEC(struct pm_unw_map) overlay;
};

/*
 * If the ELF headers do not give a bias, the file offset is used as svma. For memory
 * without a file, svma and avma are equal.
 */
static struct pm_unw_map convert_mapping(const struct pm_mapping *mapping,
					 const struct pm_chain_module *module,
					 enum pm_module_kind kind)
{
	struct pm_unw_map map = { .start = mapping->start,
				  .end = mapping->end,
				  .tag = mapping->module };

	if (module->unwind && pm_unw_module_bias(module->unwind, mapping->start,
						 mapping->pgoff, &map.bias) == 0)
		map.module = module->unwind;
	else if (kind == PM_MODULE_FILE)
		map.bias = mapping->start - mapping->pgoff;
	return map;
}

/* Appends a map that has no module, with its overlaid pieces replaced by the overlay's
 * maps. */
static int push_with_overlay(struct view *view, struct pm_unw_map map)
{
	size_t low = 0, high = view->overlay.len;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (view->overlay.data[middle].end <= map.start)
			low = middle + 1;
		else
			high = middle;
	}
	for (; low < view->overlay.len && view->overlay.data[low].start < map.end;
	     low++) {
		struct pm_unw_map piece = view->overlay.data[low], before = map;

		if (piece.start < map.start || piece.end > map.end)
			continue; /* the code has been unmapped since */
		before.end = piece.start;
		piece.tag = map.tag;
		if ((before.start < before.end && pm_vec_push(&view->maps, before) < 0) ||
		    pm_vec_push(&view->maps, piece) < 0)
			return -ENOMEM;
		map.start = piece.end;
	}
	if (map.start < map.end)
		return pm_vec_push(&view->maps, map);
	return 0;
}

/*
 * Extends the map of the page for probes downward. The trampoline of return probes is at
 * the start of the page, and a look-up of the return address minus 1 must find it.
 */
static void widen_uprobes(const struct view *view, const struct pm_module *module,
			  struct pm_unw_map *map)
{
	const struct pm_unw_map *last =
		view->maps.len > 0 ? &view->maps.data[view->maps.len - 1] : NULL;

	if (strcmp(module->identity.path, PM_UPROBES_PATH) == 0 && map->start > 0 &&
	    (!last || last->end < map->start))
		map->start--;
}

static int rebuild_view(struct view *view, const struct pm_space *space,
			struct pm_chain_modules *modules, const struct pm_procs *procs)
{
	if (pm_vec_reserve(&view->maps, space->maps.len) < 0)
		return -ENOMEM;
	view->built = false;
	view->maps.len = 0;
	for (size_t i = 0; i < space->maps.len; i++) {
		const struct pm_mapping *mapping = &space->maps.data[i];
		const struct pm_chain_module *module =
			pm_chain_modules_touch(modules, procs, mapping->module);
		struct pm_unw_map map;
		int ret;

		if (!module)
			return -ENOMEM;
		map = convert_mapping(
			mapping, module,
			pm_procs_module(procs, mapping->module)->identity.kind);
		widen_uprobes(view, pm_procs_module(procs, mapping->module), &map);
		if (map.module || view->overlay.len == 0)
			ret = pm_vec_push(&view->maps, map);
		else
			ret = push_with_overlay(view, map);
		if (ret < 0)
			return ret;
	}
	view->epoch = space->epoch;
	view->modules_version = modules->version;
	view->version++;
	view->built = true;
	return 0;
}

static bool read_code(void *user, uint64_t address, void *out, size_t len)
{
	const struct view *view = user;

	return pm_chain_live_read(view->modules, view->pid, address, out, len);
}

int pm_chain_space_get(struct pm_process *process, struct pm_chain_modules *modules,
		       const struct pm_procs *procs, struct pm_unw_space *out)
{
	struct view *view = process->user;

	if (!view) {
		view = calloc(1, sizeof(*view));
		if (!view)
			return -ENOMEM;
		process->user = view;
	}
	view->modules = modules;
	view->pid = process->pid;
	if (!view->built || view->epoch != process->space.epoch ||
	    view->modules_version != modules->version) {
		int ret = rebuild_view(view, &process->space, modules, procs);

		if (ret < 0)
			return ret;
	}
	*out = (struct pm_unw_space){ .maps = view->maps.data,
				      .len = view->maps.len,
				      .read_code = read_code,
				      .read_code_user = view };
	return 0;
}

uint64_t pm_chain_space_version(const struct pm_process *process)
{
	const struct view *view = process->user;

	if (view && view->built)
		return view->version;
	return 0;
}

int pm_chain_space_overlay(struct pm_process *process, const struct pm_unw_map *maps,
			   size_t len)
{
	struct view *view = process->user;

	if (!view)
		return -ENOENT;
	if (pm_vec_reserve(&view->overlay, len) < 0)
		return -ENOMEM;
	if (len > 0)
		memcpy(view->overlay.data, maps, len * sizeof(*maps));
	view->overlay.len = len;
	view->built = false;
	return 0;
}

void pm_chain_space_free(void *user)
{
	struct view *view = user;

	if (view) {
		pm_vec_release(&view->maps);
		pm_vec_release(&view->overlay);
	}
	free(view);
}
