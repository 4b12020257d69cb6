/* SPDX-License-Identifier: MIT */
#include "callers-internal.h"

#include <linux/perf_event.h>
#include <limits.h>
#include <string.h>

enum {
	STACK_OF_ONE = 256, /* the return address is on top of the stack, or nearly */
	STACK_OF_EACH = 2048,
	STACK_MAX = 32768,
};

/* A process's mappings in the unwinder's format. */
struct view {
	uint64_t epoch; /* of the struct pm_space that it shows */
	bool built;
	PM_VEC(struct pm_unw_map) maps;
};

static void free_view(void *user)
{
	struct view *view = user;

	if (!view)
		return;
	pm_vec_release(&view->maps);
	free(view);
}

/* ---- life ---------------------------------------------------------------------------- */

static void release_names(struct pm_callers_place *place)
{
	for (size_t i = 0; i < place->names.len; i++) {
		free(place->names.data[i].function);
		free(place->names.data[i].file);
		free(place->names.data[i].module);
	}
	pm_vec_release(&place->names);
}

void pm_callers_free(struct pm_callers *callers)
{
	if (!callers)
		return;
	pm_procs_free(callers->procs);
	pm_unwinder_free(callers->unwinder);
	for (size_t i = 0; i < callers->modules.len; i++)
		pm_unw_module_free(callers->modules.data[i].unwind);
	pm_vec_release(&callers->modules);
	for (size_t i = 0; i < callers->places.len; i++)
		release_names(&callers->places.data[i]);
	pm_vec_release(&callers->places);
	pm_index_release(&callers->by_place);
	pm_vec_release(&callers->chains);
	pm_index_release(&callers->by_chain);
	free(callers->frames);
	free(callers);
}

static void cleanup_callers(struct pm_callers **callers)
{
	pm_callers_free(*callers);
}

struct pm_callers *pm_callers_new(uint32_t depth)
{
	struct pm_callers *callers PM_CLEANUP(cleanup_callers) =
		calloc(1, sizeof(*callers));

	if (!callers)
		return NULL;
	callers->depth = PM_MIN(depth, PM_CALLERS_DEPTH_MAX);
	callers->procs = pm_procs_new(free_view);
	callers->unwinder = pm_unwinder_new();
	callers->frames = calloc(PM_UNW_FRAMES_MAX, sizeof(*callers->frames));
	if (!callers->procs || !callers->unwinder || !callers->frames)
		return NULL;
	return PM_TAKE_PTR(callers);
}

uint32_t pm_callers_stack_bytes(uint32_t depth)
{
	if (depth <= 1)
		return STACK_OF_ONE;
	if (depth < STACK_MAX / STACK_OF_EACH)
		return depth * STACK_OF_EACH;
	return STACK_MAX;
}

/* ---- address spaces ------------------------------------------------------------------ */

int pm_callers_process(struct pm_callers *callers, pid_t pid)
{
	int ret = pm_procs_read(callers->procs, pid, NULL);

	/* A process that has ended has no callers; if we may not read a process, its
	 * callers are unknown. */
	if (ret == -ENOMEM)
		return ret;
	return 0;
}

static int callers_map_module(struct pm_callers *callers, const struct pm_record *record)
{
	const struct pm_mmap_record *mmap = &record->mmap;
	struct pm_module_identity identity = { .major = mmap->major,
					       .minor = mmap->minor,
					       .inode = mmap->inode,
					       .generation = mmap->inode_generation,
					       .generation_known = mmap->identified };
	char path[PATH_MAX];
	size_t len;
	int ret;

	identity.kind = pm_module_kind_of(mmap->path, &len);
	if (identity.kind == PM_MODULE_KERNEL || len >= sizeof(path))
		return 0;
	memcpy(path, mmap->path, len);
	path[len] = '\0';
	identity.path = path;
	ret = pm_procs_map(callers->procs, (pid_t)record->pid, mmap->start, mmap->len,
			   mmap->pgoff, mmap->prot, &identity);
	if (ret == -ENOMEM)
		return ret;
	return 0;
}

int pm_callers_record(struct pm_callers *callers, const struct pm_record *record)
{
	pid_t pid = (pid_t)record->pid, tid = (pid_t)record->tid;

	switch (record->type) {
	case PERF_RECORD_FORK:
		return pm_procs_fork(callers->procs, pid, tid,
				     (pid_t)record->fork.parent_pid,
				     (pid_t)record->fork.parent_tid);
	case PERF_RECORD_EXIT:
		pm_procs_exit(callers->procs, pid, tid);
		return 0;
	case PERF_RECORD_COMM:
		return pm_procs_comm(callers->procs, pid, tid, record->comm.name,
				     record->comm.exec);
	case PERF_RECORD_MMAP:
	case PERF_RECORD_MMAP2:
		return callers_map_module(callers, record);
	default:
		return 0;
	}
}

/* Returns the module, which is opened on first use, while its file exists; NULL if out of
 * memory. */
static struct pm_callers_module *callers_open_module(struct pm_callers *callers,
						     uint32_t id)
{
	struct pm_callers_module *module;
	int fd PM_AUTO_CLOSE = -1;

	if (pm_vec_reserve(&callers->modules, (size_t)id + 1) < 0)
		return NULL;
	while (callers->modules.len <= id)
		callers->modules.data[callers->modules.len++] =
			(struct pm_callers_module){ 0 };
	module = &callers->modules.data[id];
	if (module->opened)
		return module;
	module->opened = true;
	fd = pm_module_open(pm_procs_module(callers->procs, id), NULL);
	if (fd >= 0)
		pm_unw_module_open(&module->unwind, fd, NULL);
	return module;
}

static int view_rebuild(struct pm_callers *callers, const struct pm_space *space,
			struct view *view)
{
	view->built = false;
	pm_vec_clear(&view->maps);
	for (size_t i = 0; i < space->maps.len; i++) {
		const struct pm_mapping *mapping = &space->maps.data[i];
		const struct pm_callers_module *module =
			callers_open_module(callers, mapping->module);
		struct pm_unw_map map = { .start = mapping->start,
					  .end = mapping->end,
					  .bias = mapping->start - mapping->pgoff,
					  .tag = mapping->module };

		if (!module)
			return -ENOMEM;
		if (module->unwind && pm_unw_module_bias(module->unwind, mapping->start,
							 mapping->pgoff, &map.bias) == 0)
			map.module = module->unwind;
		if (pm_vec_push(&view->maps, map) < 0)
			return -ENOMEM;
	}
	view->epoch = space->epoch;
	view->built = true;
	return 0;
}

static int view_get_space(struct pm_callers *callers, pid_t pid, struct pm_unw_space *out)
{
	struct pm_process *process = pm_procs_get(callers->procs, pid);
	struct view *view;
	int ret = 0;

	if (!process)
		return -ENOMEM;
	if (!process->user)
		process->user = calloc(1, sizeof(*view));
	view = process->user;
	if (!view)
		return -ENOMEM;
	if (!view->built || view->epoch != process->space.epoch)
		ret = view_rebuild(callers, &process->space, view);
	*out = (struct pm_unw_space){ .maps = view->maps.data, .len = view->maps.len };
	return ret;
}

/* ---- chains -------------------------------------------------------------------------- */

struct place_key {
	uint32_t module;
	uint64_t address;
};

static bool caller_place_equal(const void *table, uint32_t row, const void *wanted)
{
	const struct pm_callers *callers = table;
	const struct place_key *key = wanted;

	return callers->places.data[row].module == key->module &&
	       callers->places.data[row].address == key->address;
}

static int intern_place(struct pm_callers *callers, const struct pm_unw_map *map,
			uint64_t lookup, uint32_t *out)
{
	struct place_key key = { PM_INDEX_NONE, lookup };
	uint64_t hash;
	uint32_t row;

	if (map) {
		key.module = map->tag;
		key.address = lookup - map->bias;
	}
	hash = pm_hash_mix(key.module, key.address);
	row = pm_index_find(&callers->by_place, hash, caller_place_equal, callers, &key);
	if (row == PM_INDEX_NONE) {
		row = (uint32_t)callers->places.len;
		if (pm_vec_push(&callers->places,
				(struct pm_callers_place){ .module = key.module,
							   .address = key.address }) < 0)
			return -ENOMEM;
		if (pm_index_add(&callers->by_place, hash, row) < 0) {
			callers->places.len--;
			return -ENOMEM;
		}
	}
	*out = row;
	return 0;
}

static bool chain_equal(const void *table, uint32_t row, const void *wanted)
{
	const struct pm_callers *callers = table;

	return memcmp(&callers->chains.data[(size_t)row * callers->depth], wanted,
		      callers->depth * sizeof(uint32_t)) == 0;
}

static int intern_chain(struct pm_callers *callers, const uint32_t *chain, uint32_t *out)
{
	uint64_t hash = pm_hash_bytes(chain, callers->depth * sizeof(*chain));
	uint32_t row =
		pm_index_find(&callers->by_chain, hash, chain_equal, callers, chain);
	size_t len = callers->chains.len + callers->depth;

	if (row == PM_INDEX_NONE) {
		row = (uint32_t)(callers->chains.len / callers->depth);
		if (pm_vec_reserve(&callers->chains, len) < 0)
			return -ENOMEM;
		memcpy(&callers->chains.data[callers->chains.len], chain,
		       callers->depth * sizeof(*chain));
		if (pm_index_add(&callers->by_chain, hash, row) < 0)
			return -ENOMEM;
		callers->chains.len = len;
	}
	*out = row;
	return 0;
}

/* Gets the registers that the unwinder starts with; both sides use the same numbers.
 * Returns false if there are none. */
static bool convert_regs(const struct pm_user_regs *from, struct pm_unw_regs *out)
{
	if (from->abi == PM_REGS_NONE)
		return false;
	*out = (struct pm_unw_regs){ .known = from->known };
	memcpy(out->value, from->value, sizeof(from->value));
#if defined(__aarch64__)
	out->arch = PM_UNW_AARCH64;
	return from->abi == PM_REGS_64;
#else
	if (from->abi == PM_REGS_32)
		out->arch = PM_UNW_I386;
	else
		out->arch = PM_UNW_X86_64;
	return true;
#endif
}

int pm_callers_of_sample(struct pm_callers *callers, pid_t pid,
			 const struct pm_sample *sample, uint32_t *out)
{
	uint32_t chain[PM_CALLERS_DEPTH_MAX];
	struct pm_unw_space space;
	struct pm_unw_regs regs;
	enum pm_unw_stop stop;
	size_t len = 0;
	int ret = view_get_space(callers, pid, &space);

	if (ret < 0)
		return ret;
	if (convert_regs(&sample->regs, &regs))
		len = pm_unwind(callers->unwinder, &space, &regs,
				&(struct pm_unw_stack){ .start = pm_unw_regs_sp(&regs),
							.data = sample->stack,
							.len = sample->stack_len },
				callers->frames, &stop);
	for (size_t i = 0; i < callers->depth; i++) {
		const struct pm_unw_frame *frame = &callers->frames[i + 1];

		chain[i] = PM_INDEX_NONE;
		if (i + 1 < len &&
		    intern_place(callers, frame->map, frame->lookup, &chain[i]) < 0)
			return -ENOMEM;
	}
	return intern_chain(callers, chain, out);
}
