/* SPDX-License-Identifier: MIT */
#include "unwind-parts.h"

#include <string.h>

static const char *const how_names[PM_UNW_HOW_COUNT] = {
	[PM_UNW_HOW_IP] = "ip",         [PM_UNW_HOW_CFI] = "cfi",
	[PM_UNW_HOW_GO] = "go",         [PM_UNW_HOW_FP] = "fp",
	[PM_UNW_HOW_LEAF] = "leaf",     [PM_UNW_HOW_TRAMPOLINE] = "trampoline",
	[PM_UNW_HOW_CODE] = "code",     [PM_UNW_HOW_START] = "start",
	[PM_UNW_HOW_KERNEL] = "kernel", [PM_UNW_HOW_STITCHED] = "stitched",
};

static const char *const stop_names[PM_UNW_STOP_COUNT] = {
	[PM_UNW_STOP_ROOT] = "root",
	[PM_UNW_STOP_TRUNCATED] = "truncated",
	[PM_UNW_STOP_NO_MODULE] = "no_module",
	[PM_UNW_STOP_NO_CFI] = "no_cfi",
	[PM_UNW_STOP_BAD_CFI] = "bad_cfi",
	[PM_UNW_STOP_NO_REGISTER] = "no_register",
	[PM_UNW_STOP_BAD_MEMORY] = "bad_memory",
	[PM_UNW_STOP_NO_PROGRESS] = "no_progress",
	[PM_UNW_STOP_LIMIT] = "limit",
	[PM_UNW_STOP_NO_REGS] = "no_regs",
	[PM_UNW_STOP_OTHER_STACK] = "other_stack",
	[PM_UNW_STOP_WORK_LIMIT] = "work_limit",
	[PM_UNW_STOP_TABLE_PENDING] = "table_pending",
	[PM_UNW_STOP_TABLE_TOO_LARGE] = "table_too_large",
};

const char *pm_unw_how_name(enum pm_unw_how how)
{
	return how_names[how];
}

const char *pm_unw_stop_name(enum pm_unw_stop stop)
{
	return stop_names[stop];
}

struct pm_unwinder *pm_unwinder_new(void)
{
	struct pm_unwinder *unwinder = calloc(1, sizeof(*unwinder));

	if (!unwinder)
		return NULL;
	unwinder->cache = calloc(PM_UNW_CACHE_SETS, sizeof(*unwinder->cache));
	if (!unwinder->cache) {
		free(unwinder);
		return NULL;
	}
	return unwinder;
}

void pm_unwinder_free(struct pm_unwinder *unwinder)
{
	if (!unwinder)
		return;
	pm_vec_release(&unwinder->rules);
	pm_vec_release(&unwinder->rows);
	pm_index_release(&unwinder->rules_index);
	pm_index_release(&unwinder->rows_index);
	free(unwinder->cache);
	free(unwinder);
}

void pm_unwinder_stats(const struct pm_unwinder *unwinder, struct pm_unw_stats *out)
{
	*out = unwinder->stats;
	out->table_bytes = PM_UNW_CACHE_SETS * sizeof(*unwinder->cache) +
			   unwinder->rules.cap * sizeof(*unwinder->rules.data) +
			   unwinder->rows.cap * sizeof(*unwinder->rows.data) +
			   (unwinder->rules_index.cap + unwinder->rows_index.cap) *
				   sizeof(struct pm_index_slot);
}

/* Sets the lookup address and the mapping of the frame that state->regs describe. */
static void enter_frame(struct pm_unw_state *state)
{
	uint64_t pc = state->regs.value[state->arch->pc];
	const struct pm_unw_map *map = state->map;

	if (state->first || state->interrupted)
		state->lookup = pc;
	else
		state->lookup = pc - 1;
	if (!map || state->lookup - map->start >= map->end - map->start)
		state->map = pm_unw_space_find(state->space, state->lookup);
}

/* Moves to the registers of the caller. Returns false and sets @stop if there is none. */
static bool leave_frame(struct pm_unwinder *unwinder, struct pm_unw_state *state,
			enum pm_unw_how *how, enum pm_unw_stop *stop)
{
	uint64_t pc = state->regs.value[state->arch->pc];
	uint64_t sp = state->regs.value[state->arch->sp];
	bool was_interrupted = state->first || state->interrupted;

	if (!pm_unw_step(unwinder, state, how, stop)) {
		if (!state->map && *stop == PM_UNW_STOP_NO_CFI)
			*stop = PM_UNW_STOP_NO_MODULE;
		return false;
	}
	if (!pm_unw_progressed(state, sp, pc, was_interrupted)) {
		*stop = PM_UNW_STOP_NO_PROGRESS;
		return false;
	}
	*stop = PM_UNW_STOP_ROOT;
	state->first = false;
	state->how = *how;
	return !pm_unw_is_end_mark(state->regs.value[state->arch->pc]);
}

size_t pm_unw_walk(struct pm_unwinder *unwinder, const struct pm_unw_space *space,
		   const struct pm_unw_regs *regs, const struct pm_unw_stack *stack,
		   struct pm_unw_frame *frames, enum pm_unw_stop *stop)
{
	const struct pm_unw_arch_info *arch = &pm_unw_arch_infos[regs->arch];
	uint32_t work_left = pm_unw_work_of(space), work_max = work_left;
	struct pm_unw_state state = { .unwinder = unwinder,
				      .arch = arch,
				      .space = space,
				      .stack = stack,
				      .first = true,
				      .work_left = &work_left };
	enum pm_unw_how how = PM_UNW_HOW_IP;
	size_t len = 0;

	state.regs = *regs;
	*stop = PM_UNW_STOP_NO_REGS;
	if (!(regs->known >> arch->pc & 1))
		return 0;
	unwinder->work_left = &work_left;
	do {
		enter_frame(&state);
		if (!state.map && len > 0) {
			*stop = pm_unw_stop_outside(&frames[len - 1],
						    state.regs.value[arch->pc]);
			break;
		}
		frames[len++] = (struct pm_unw_frame){ .pc = state.regs.value[arch->pc],
						       .lookup = state.lookup,
						       .sp = pm_unw_regs_sp(&state.regs),
						       .map = state.map,
						       .how = how };
		if (len == PM_UNW_FRAMES_MAX) {
			*stop = PM_UNW_STOP_LIMIT;
			break;
		}
	} while (work_left > 0 && leave_frame(unwinder, &state, &how, stop));
	if (work_left == 0 && *stop != PM_UNW_STOP_ROOT)
		*stop = PM_UNW_STOP_WORK_LIMIT;
	pm_unw_take_work(space->work_left, work_max - work_left);
	if (state.uncalled)
		frames[len - 1].lookup = frames[len - 1].pc;
	unwinder->work_left = NULL;
	unwinder->stats.frames += len;
	unwinder->overworked += work_left == 0;
	return len;
}

size_t pm_unwind(struct pm_unwinder *unwinder, const struct pm_unw_space *space,
		 const struct pm_unw_regs *regs, const struct pm_unw_stack *stack,
		 struct pm_unw_frame *frames, enum pm_unw_stop *stop)
{
	struct pm_unw_job job = {
		.space = space, .regs = regs, .stack = *stack, .frames = frames
	};

	pm_unwind_batch(unwinder, &job, 1);
	*stop = job.stop;
	return job.len;
}

static void run_some_jobs(struct pm_unwinder *unwinder, struct pm_unw_job *jobs,
			  size_t len)
{
	struct pm_unw_job *job;

	for (job = jobs; job < jobs + len && job->regs->arch == PM_UNW_X86_64; job++)
		;
	if (job == jobs + len) {
		pm_unw_lanes_run(unwinder, jobs, len);
		return;
	}
	for (job = jobs; job < jobs + len; job++)
		job->len = pm_unw_walk(unwinder, job->space, job->regs, &job->stack,
				       job->frames, &job->stop);
}

void pm_unwind_batch(struct pm_unwinder *unwinder, struct pm_unw_job *jobs, size_t len)
{
	for (; len > PM_UNW_BATCH_MAX; jobs += PM_UNW_BATCH_MAX, len -= PM_UNW_BATCH_MAX)
		run_some_jobs(unwinder, jobs, PM_UNW_BATCH_MAX);
	if (len > 0)
		run_some_jobs(unwinder, jobs, len);
}
