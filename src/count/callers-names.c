/* SPDX-License-Identifier: MIT */
/* The names of the places where calls were made. */
#include "callers-internal.h"

#include <stdlib.h>
#include <string.h>

#include "pm/symbol-crew.h"

struct work {
	struct pm_callers *callers;
	uint32_t *order; /* places, by module and address */
	uint64_t *addresses; /* of the places in `order` */
	PM_VEC(struct pm_symbol_job) jobs;
	PM_VEC(size_t) first; /* by job: in `order` */
};

static int compare_caller_places(const void *a, const void *b, void *user)
{
	const struct pm_callers *callers = user;
	const struct pm_callers_place *left = &callers->places.data[*(const uint32_t *)a];
	const struct pm_callers_place *right =
		&callers->places.data[*(const uint32_t *)b];

	if (left->module != right->module)
		return PM_COMPARE(left->module, right->module);
	return PM_COMPARE(left->address, right->address);
}

static uint32_t caller_job_module(const struct work *work, size_t job)
{
	return work->callers->places.data[work->order[work->first.data[job]]].module;
}

/* The callbacks of struct pm_symbol_crew_calls. */
static void caller_names_open_module(void *user, size_t job, struct pm_symbol_input *out)
{
	const struct work *work = user;
	const struct pm_callers *callers = work->callers;
	uint32_t id = caller_job_module(work, job);
	const struct pm_module *module = pm_procs_module(callers->procs, id);
	const struct pm_unw_module *unwind = NULL;

	if (id < callers->modules.len)
		unwind = callers->modules.data[id].unwind;
	if (!unwind)
		return;
	out->fd = pm_unw_module_fd(unwind);
	out->pid = module->seen_pid;
	out->path = module->identity.path;
}

static int add_name(struct pm_callers_place *place,
		    const struct pm_symbol_function *function)
{
	struct pm_stat_frame frame = { .line = function->line };

	if (pm_stat_text(&frame.function, function->name) < 0 ||
	    pm_stat_text(&frame.file, function->file) < 0 ||
	    pm_vec_push(&place->names, frame) < 0) {
		free(frame.function);
		free(frame.file);
		return -ENOMEM;
	}
	return 0;
}

static int caller_names_add_symbol(void *user, size_t job, size_t index,
				   const struct pm_symbol_function *functions, size_t len)
{
	const struct work *work = user;
	uint32_t at = work->order[work->first.data[job] + index];
	int ret = 0;

	for (size_t i = 0; i < len && ret == 0; i++)
		ret = add_name(&work->callers->places.data[at], &functions[i]);
	return ret;
}

/* A place without names is shown by its address. */
static int caller_names_done(void *user, size_t job, const char *what, const char *why)
{
	return 0;
}

static int caller_names_tick(void *user)
{
	return 0;
}

/* Makes one job for the places of each module. */
static int make_jobs(struct work *work)
{
	const struct pm_callers *callers = work->callers;
	size_t len = callers->places.len, end;

	for (size_t i = 0; i < len; i = end) {
		uint32_t module = callers->places.data[work->order[i]].module;

		for (end = i; end < len; end++)
			if (callers->places.data[work->order[end]].module != module)
				break;
		if (module == PM_INDEX_NONE)
			continue;
		if (pm_vec_push(&work->first, i) < 0 ||
		    pm_vec_push(&work->jobs, (struct pm_symbol_job){ &work->addresses[i],
								     end - i }) < 0)
			return -ENOMEM;
	}
	return 0;
}

int pm_callers_resolve(struct pm_callers *callers)
{
	size_t len = callers->places.len;
	PM_AUTO_FREE uint32_t *order = calloc(len + 1, sizeof(*order));
	PM_AUTO_FREE uint64_t *addresses = calloc(len + 1, sizeof(*addresses));
	struct work work = { .callers = callers, .order = order, .addresses = addresses };
	struct pm_symbol_crew_calls calls = { .user = &work,
					      .open = caller_names_open_module,
					      .symbol = caller_names_add_symbol,
					      .done = caller_names_done,
					      .tick = caller_names_tick,
					      .wake_fd = -1,
					      .process_name = "pmstat-symbols" };
	struct pm_symbol_crew_cost cost = { 0 };
	int ret = 0;

	if (!order || !addresses)
		return -ENOMEM;
	for (size_t i = 0; i < len; i++)
		order[i] = (uint32_t)i;
	qsort_r(order, len, sizeof(*order), compare_caller_places, callers);
	for (size_t i = 0; i < len; i++)
		addresses[i] = callers->places.data[order[i]].address;
	ret = make_jobs(&work);
	if (ret == 0 && work.jobs.len > 0)
		ret = pm_symbol_crew_run(work.jobs.data, work.jobs.len, &calls, &cost);
	pm_vec_release(&work.jobs);
	pm_vec_release(&work.first);
	/* A failure is ignored: chains without names are still chains. */
	if (ret == -ENOMEM)
		return ret;
	return 0;
}

static int push_frame(struct pm_stat_caller *caller, const struct pm_stat_frame *like,
		      const struct pm_callers_place *place, const char *module)
{
	struct pm_stat_frame frame = { .line = like->line, .address = place->address };

	if (pm_stat_text(&frame.function, like->function) < 0 ||
	    pm_stat_text(&frame.file, like->file) < 0 ||
	    pm_stat_text(&frame.module, module) < 0 ||
	    pm_vec_push(&caller->frames, frame) < 0) {
		free(frame.function);
		free(frame.file);
		free(frame.module);
		return -ENOMEM;
	}
	return 0;
}

int pm_callers_name(const struct pm_callers *callers, uint32_t caller,
		    struct pm_stat_caller *out)
{
	static const struct pm_stat_frame unknown = { 0 };
	const uint32_t *chain = &callers->chains.data[(size_t)caller * callers->depth];

	for (uint32_t i = 0; i < callers->depth && chain[i] != PM_INDEX_NONE; i++) {
		const struct pm_callers_place *place = &callers->places.data[chain[i]];
		const char *module = NULL;
		size_t names = 1;

		if (place->module != PM_INDEX_NONE)
			module = pm_procs_module(callers->procs, place->module)
					 ->identity.path;
		if (place->names.len > 0)
			names = place->names.len;
		for (size_t k = 0; k < names; k++)
			if (push_frame(out,
				       place->names.len > 0 ? &place->names.data[k]
							    : &unknown,
				       place, module) < 0)
				return -ENOMEM;
	}
	return 0;
}
