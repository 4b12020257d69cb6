/* SPDX-License-Identifier: MIT */
#include "spaces.h"

struct view {
	uint64_t epoch; /* of struct pm_space that it shows */
	bool built;
	PM_VEC(struct pm_unw_map) maps;
};

/*
 * Where the ELF headers cannot tell, an address counts as the file does: its offset. Memory
 * without a file has only the process's own addresses.
 */
static struct pm_unw_map convert(const struct pm_mapping *mapping,
				 const struct pm_rec_module *module,
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

static int rebuild(struct view *view, const struct pm_space *space,
		   struct pm_rec_modules *modules, const struct pm_procs *procs)
{
	if (pm_vec_reserve(&view->maps, space->maps.len) < 0)
		return -ENOMEM;
	view->built = false;
	view->maps.len = 0;
	for (size_t i = 0; i < space->maps.len; i++) {
		const struct pm_mapping *mapping = &space->maps.data[i];
		const struct pm_rec_module *module =
			pm_rec_modules_touch(modules, procs, mapping->module);

		if (!module)
			return -ENOMEM;
		view->maps.data[view->maps.len++] =
			convert(mapping, module,
				pm_procs_module(procs, mapping->module)->identity.kind);
	}
	view->epoch = space->epoch;
	view->built = true;
	return 0;
}

int pm_rec_space_get(struct pm_process *process, struct pm_rec_modules *modules,
		     const struct pm_procs *procs, struct pm_unw_space *ret)
{
	struct view *view = process->user;

	if (!view) {
		view = calloc(1, sizeof(*view));
		if (!view)
			return -ENOMEM;
		process->user = view;
	}
	if (!view->built || view->epoch != process->space.epoch) {
		int error = rebuild(view, &process->space, modules, procs);

		if (error < 0)
			return error;
	}
	*ret = (struct pm_unw_space){ .maps = view->maps.data, .len = view->maps.len };
	return 0;
}

void pm_rec_space_free(void *user)
{
	struct view *view = user;

	if (view)
		pm_vec_release(&view->maps);
	free(view);
}
