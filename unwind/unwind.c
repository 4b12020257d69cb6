/* SPDX-License-Identifier: MIT */
#include "unwind-internal.h"

#include <string.h>

static const char *const how_names[PM_UNW_HOW_COUNT] = {
	[PM_UNW_HOW_IP] = "ip",
	[PM_UNW_HOW_CFI] = "cfi",
	[PM_UNW_HOW_FP] = "fp",
	[PM_UNW_HOW_LEAF] = "leaf",
	[PM_UNW_HOW_TRAMPOLINE] = "trampoline",
	[PM_UNW_HOW_KERNEL] = "kernel",
	[PM_UNW_HOW_STITCHED] = "stitched",
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

void pm_unwinder_stats(const struct pm_unwinder *unwinder, struct pm_unw_stats *ret)
{
	*ret = unwinder->stats;
	ret->table_bytes = PM_UNW_CACHE_SETS * sizeof(*unwinder->cache) +
			   unwinder->rules.cap * sizeof(*unwinder->rules.data) +
			   unwinder->rows.cap * sizeof(*unwinder->rows.data) +
			   (unwinder->rules_index.cap + unwinder->rows_index.cap) *
				   sizeof(struct pm_index_slot);
}

/*
 * A stack grows from caller to callee, so leaving a frame raises the stack pointer. Two
 * exceptions: a signal frame may stand on another stack, and at an interrupted place that
 * keeps its return address in a register (vfork) nothing was pushed.
 */
bool pm_unw_progressed(const struct pm_unw_state *state, uint64_t old_sp, uint64_t old_pc,
		       bool was_interrupted)
{
	uint64_t sp = state->regs.value[state->arch->sp];

	if (state->interrupted || sp > old_sp)
		return true;
	return sp == old_sp && was_interrupted &&
	       state->regs.value[state->arch->pc] != old_pc;
}

size_t pm_unw_walk(struct pm_unwinder *unwinder, const struct pm_unw_space *space,
		   const struct pm_unw_regs *regs, const struct pm_unw_stack *stack,
		   struct pm_unw_frame *frames, enum pm_unw_stop *stop)
{
	const struct pm_unw_arch_info *arch = &pm_unw_arch_infos[regs->arch];
	struct pm_unw_state state = {
		.arch = arch, .space = space, .stack = stack, .first = true
	};
	enum pm_unw_how how = PM_UNW_HOW_IP;
	size_t len = 0;

	state.regs = *regs;
	*stop = PM_UNW_STOP_NO_REGS;
	if (!(regs->known >> arch->pc & 1))
		return 0;
	for (;;) {
		uint64_t pc = state.regs.value[arch->pc];
		uint64_t sp = state.regs.value[arch->sp];
		bool was_interrupted = state.first || state.interrupted;

		state.lookup = was_interrupted ? pc : pc - 1;
		if (!state.map ||
		    state.lookup - state.map->start >= state.map->end - state.map->start)
			state.map = pm_unw_space_find(space, state.lookup);
		if (!state.map && len > 0) {
			*stop = PM_UNW_STOP_NO_MODULE;
			break;
		}
		frames[len++] = (struct pm_unw_frame){ .pc = pc,
						       .lookup = state.lookup,
						       .sp = pm_unw_regs_sp(&state.regs),
						       .map = state.map,
						       .how = how };
		if (len == PM_UNW_FRAMES_MAX) {
			*stop = PM_UNW_STOP_LIMIT;
			break;
		}
		if (!pm_unw_step(unwinder, &state, &how, stop)) {
			if (!state.map && *stop == PM_UNW_STOP_NO_CFI)
				*stop = PM_UNW_STOP_NO_MODULE;
			break;
		}
		if (!pm_unw_progressed(&state, sp, pc, was_interrupted)) {
			*stop = PM_UNW_STOP_NO_PROGRESS;
			break;
		}
		if (state.regs.value[arch->pc] == 0) {
			/* Nothing returns to 0: the psABI's mark of the first frame. */
			*stop = PM_UNW_STOP_ROOT;
			break;
		}
		state.first = false;
	}
	unwinder->stats.frames += len;
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

void pm_unwind_batch(struct pm_unwinder *unwinder, struct pm_unw_job *jobs, size_t len)
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
