/* SPDX-License-Identifier: MIT */
/*
 * The walk for x86-64. Nearly all steps use rules of one word (PM_UNW_QUICK_*). These
 * need only rsp and rbp; no other register is tracked. If a later step needs the others,
 * their values are gathered from the frames that were left since they were last known.
 * The result is the same as if they had been tracked, because the copied stack does not
 * change.
 *
 * Several chains proceed side by side, in turn, by one frame each: while one waits for a
 * cache line of its stack, the others go on. A lane keeps no index into the tables from
 * one turn to the next, because another lane may clear them.
 */
#include "unwind-parts.h"

#include <string.h>

enum {
	LINE_BYTES = 64,
	/* Prefetched above the current frame; most compiled frames have 100 to 200
	 * bytes. */
	AHEAD_BYTES = 1024,
};

/* The state of quick steps: the last frame found, hot->next[-1]. */
struct hot {
	uint64_t sp;
	uint64_t
		/* rbp. With `fp_saved`, its value is at fp_slot instead, if that can be
		 * read. */
		fp;
	uint64_t fp_slot;
	const uint8_t *data; /* the copied stack */
	uint64_t start;
	/* The number of offsets at which 8 bytes can be read; 0: no quick steps. */
	uint64_t places;
	struct pm_unw_frame *next, *last;
	uint32_t quick; /* quick rule of the frame; 0: not known */
	bool fp_saved;
	/* The caller's pc, which is in `fp`, is in no mapping; the caller was not
	 * entered. */
	bool outside;
	uint64_t map_start, map_bytes; /* of the frame's mapping */
	uint64_t key_minus_lookup;
	const struct pm_unw_map *map;
} __attribute__((aligned(64)));

struct lane {
	struct hot hot;
	struct pm_unw_job *job;
	size_t base; /* index of the frame for which state.regs was complete */
	bool gathered; /* state.regs is filled; until then job->regs is valid */
	/* See struct pm_unw_expr_input; state.work_left points to it. */
	uint32_t work_left, work_max;
	size_t others; /* steps that were not quick */
	/* See struct hot, but valid even if the mapping has no rules. */
	uint64_t places;
	struct pm_unw_state state;
};

/* ---- quick steps ---------------------------------------------------------------------- */

#define ALWAYS_INLINE inline __attribute__((always_inline))

static const struct pm_unw_map *find_map_of_address(struct pm_unwinder *unwinder,
						    const struct pm_unw_space *space,
						    uint64_t address)
{
	uint16_t *hint = &unwinder->map_hints[address >> 18 & (PM_UNW_MAP_HINTS - 1)];
	const struct pm_unw_map *map;

	if (*hint < space->len) {
		map = &space->maps[*hint];
		if (address - map->start < map->end - map->start)
			return map;
	}
	map = pm_unw_space_find(space, address);
	if (map && map - space->maps <= UINT16_MAX)
		*hint = (uint16_t)(map - space->maps);
	return map;
}

/* Quick steps avoid conditional jumps that depend on data, except those that are rarely
 * taken. */
static ALWAYS_INLINE uint64_t choose_without_jump(bool first, uint64_t a, uint64_t b)
{
	return b ^ ((a ^ b) & -(uint64_t)first);
}

static ALWAYS_INLINE void hot_enter_map(struct hot *hot, const struct pm_unw_map *map)
{
	uint64_t bytes = map->end - map->start;

	hot->map = map;
	hot->map_start = map->start;
	hot->map_bytes = bytes;
	/* Without keys, the result of find_quick_rule() is not usable. */
	if (!pm_unw_map_has_cfi(map, PM_UNW_X86_64) ||
	    !pm_unw_has_keys(map->module, map->start - map->bias, bytes))
		hot->places = 0;
	else
		hot->key_minus_lookup = pm_unw_key_base(map->module) - map->bias;
}

static ALWAYS_INLINE void hot_store_frame(struct hot *hot, uint64_t pc, uint64_t lookup,
					  enum pm_unw_how how)
{
	*hot->next++ = (struct pm_unw_frame){
		.pc = pc, .lookup = lookup, .sp = hot->sp, .map = hot->map, .how = how
	};
}

/* Returns the cached quick rule for @lookup, which is in hot->map, or 0 if there is
 * none. */
static ALWAYS_INLINE uint32_t find_quick_rule(const struct pm_unwinder *unwinder,
					      const struct hot *hot, uint64_t lookup)
{
	uint64_t key = hot->key_minus_lookup + lookup;
	const struct pm_unw_cache_slot *set = pm_unw_cache_set(unwinder, key);

	/* At most one of the two slots has the key. */
	return (set[0].quick & -(uint32_t)(set[0].key == key)) |
	       (set[1].quick & -(uint32_t)(set[1].key == key));
}

static ALWAYS_INLINE uint64_t load_word(const uint8_t *from)
{
	uint64_t value;

	memcpy(&value, from, 8);
	return value;
}

/* Loads hot->fp if @quick needs it. Returns false if it cannot be read. */
static ALWAYS_INLINE bool hot_load_fp(struct hot *hot, uint32_t quick)
{
	if (!(quick & PM_UNW_QUICK_BY_FP) || !hot->fp_saved)
		return true;
	if (hot->fp_slot - hot->start >= hot->places)
		return false;
	hot->fp = load_word(hot->data + (hot->fp_slot - hot->start));
	hot->fp_saved = false;
	return true;
}

static ALWAYS_INLINE uint64_t quick_cfa(const struct hot *hot, uint32_t quick)
{
	uint64_t words = (uint64_t)(int64_t)((int32_t)quick >> PM_UNW_QUICK_CFA_SHIFT);

	return choose_without_jump(quick & PM_UNW_QUICK_BY_FP, hot->fp, hot->sp) +
	       words * 8;
}

/* Steps to the caller's @pc, sp and fp. Returns false, without any change, if another
 * kind of step is needed. */
static ALWAYS_INLINE bool hot_step_quick(struct hot *hot, uint32_t quick, uint64_t *pc)
{
	uint64_t cfa = quick_cfa(hot, quick), ra;
	uint32_t slot = quick >> PM_UNW_QUICK_SLOT_SHIFT & PM_UNW_QUICK_SLOT_MAX;

	/* This also rejects a @quick of 0. */
	if (cfa <= hot->sp || cfa - 8 - hot->start >= hot->places)
		return false;
	ra = load_word(hot->data + (cfa - 8 - hot->start));
	if (ra == 0)
		return false;
	hot->fp_slot = choose_without_jump(slot == 1, hot->fp_slot, cfa - slot * 8);
	hot->fp_saved |= slot != 1;
	hot->sp = cfa;
	*pc = ra;
	return true;
}

static ALWAYS_INLINE void hot_set_quick(const struct pm_unwinder *unwinder,
					struct hot *hot, uint64_t lookup)
{
	hot->quick = find_quick_rule(unwinder, hot, lookup);
	if (__builtin_expect(!hot_load_fp(hot, hot->quick), 0))
		hot->quick = 0;
}

static ALWAYS_INLINE enum pm_unw_how quick_how(uint32_t quick)
{
	_Static_assert(PM_UNW_HOW_GO == PM_UNW_HOW_CFI + 1, "added");

	return (enum pm_unw_how)(PM_UNW_HOW_CFI + (quick >> PM_UNW_QUICK_GO_SHIFT & 1));
}

/* Enters the frame with @pc, found by @how. Returns false if @pc is in no mapping. */
static ALWAYS_INLINE bool hot_enter_caller(struct pm_unwinder *unwinder, struct hot *hot,
					   const struct pm_unw_space *space, uint64_t pc,
					   enum pm_unw_how how)
{
	if (pc - 1 - hot->map_start >= hot->map_bytes) {
		const struct pm_unw_map *map =
			find_map_of_address(unwinder, space, pc - 1);

		if (!map) {
			hot->outside = true;
			hot->fp = pc;
			return false;
		}
		hot_enter_map(hot, map);
	}
	hot_store_frame(hot, pc, pc - 1, how);
	hot_set_quick(unwinder, hot, pc - 1);
	return true;
}

static ALWAYS_INLINE void hot_prefetch_step(const struct hot *hot)
{
	/* The address may be invalid: a prefetch of a bad address does nothing. */
	__builtin_prefetch((const void *)((uintptr_t)hot->data +
					  (quick_cfa(hot, hot->quick) - 8 - hot->start)));
}

/* ---- other steps ---------------------------------------------------------------------- */

/*
 * Whether the chain ends at a frame with rule @quick. Most chains end here, some after
 * very many frames; gathering registers for that would be wasted.
 */
static bool lane_end_by_quick_rule(struct lane *lane, uint32_t quick,
				   enum pm_unw_stop *stop)
{
	uint64_t pc;

	if (!quick || !lane->hot.places || !hot_load_fp(&lane->hot, quick))
		return false;
	*stop = PM_UNW_STOP_ROOT;
	if (!pm_unw_stack_u64(&lane->job->stack, quick_cfa(&lane->hot, quick) - 8, &pc,
			      stop))
		return true;
	return pc == 0 && quick_cfa(&lane->hot, quick) > lane->hot.sp;
}

static bool lane_end(struct lane *lane, enum pm_unw_stop stop)
{
	lane->job->stop = stop;
	return false;
}

/* Ends a chain in which a quick step has led out of all mappings. */
static bool lane_end_outside_maps(struct lane *lane)
{
	return lane_end(lane, pm_unw_stop_outside(&lane->hot.next[-1], lane->hot.fp));
}

/* Brings lane->state.regs up to date with the last frame found. */
static void lane_gather_regs(struct pm_unwinder *unwinder, struct lane *lane)
{
	const struct pm_unw_arch_info *arch = lane->state.arch;
	struct pm_unw_regs *regs = &lane->state.regs;
	struct pm_unw_frame *frames = lane->job->frames;
	size_t at = (size_t)(lane->hot.next - frames) - 1;
	uint64_t wanted = arch->callee_saved & ~((uint64_t)1 << arch->fp);
	enum pm_unw_stop lost;

	if (!lane->gathered)
		*regs = *lane->job->regs;
	lane->gathered = true;
	if (at == lane->base)
		return;
	regs->known &= arch->callee_saved;
	for (size_t i = at; i-- > lane->base && wanted;) {
		const struct pm_unw_map *map = frames[i].map;
		struct pm_unw_lookup lookup = { .found = PM_UNW_FOUND_NO_CFI };
		const struct pm_unw_rule *rule;

		if (frames[i + 1].how == PM_UNW_HOW_CFI)
			lookup = pm_unw_rule_again(unwinder, map->module,
						   frames[i].lookup - map->bias);
		/* A step by frame pointer keeps no other register. If the step used a
		 * rule, memory is now too short to look it up again. */
		if (lookup.found != PM_UNW_FOUND_RULE) {
			regs->known &= ~wanted;
			break;
		}
		rule = &unwinder->rules.data[lookup.index];
		for (unsigned int k = 0; k + 1 < arch->saved_len; k++) {
			uint64_t bit = (uint64_t)1 << arch->saved[k];

			if (!(rule->saved >> k & 1) || !(wanted & bit))
				continue;
			wanted &= ~bit;
			regs->known |= bit;
			if (!pm_unw_stack_u64(&lane->job->stack,
					      frames[i + 1].sp +
						      (uint64_t)(rule->slot[k] * 8),
					      &regs->value[arch->saved[k]], &lost))
				regs->known &= ~bit;
		}
	}
	regs->known |= (uint64_t)1 << arch->fp | (uint64_t)1 << arch->sp |
		       (uint64_t)1 << arch->pc;
	regs->value[arch->fp] = lane->hot.fp;
	if (lane->hot.fp_saved && !pm_unw_stack_u64(&lane->job->stack, lane->hot.fp_slot,
						    &regs->value[arch->fp], &lost))
		regs->known &= ~((uint64_t)1 << arch->fp);
	regs->value[arch->sp] = lane->hot.sp;
	regs->value[arch->pc] = frames[at].pc;
}

/* Takes over the registers of lane->state and enters their frame. Returns false if the
 * chain ends. */
static bool lane_enter_any_frame(struct pm_unwinder *unwinder, struct lane *lane,
				 enum pm_unw_how how)
{
	const struct pm_unw_regs *regs =
		lane->gathered ? &lane->state.regs : lane->job->regs;
	uint64_t needed = (uint64_t)1 << PM_UNW_X86_64_RSP | (uint64_t)1
								     << PM_UNW_X86_64_RBP;
	uint64_t pc = regs->value[PM_UNW_X86_64_RIP], lookup;
	const struct pm_unw_map *map;
	struct hot *hot = &lane->hot;

	hot->sp = regs->value[PM_UNW_X86_64_RSP];
	hot->fp = regs->value[PM_UNW_X86_64_RBP];
	hot->fp_saved = false;
	lane->places = 0;
	if ((regs->known & needed) == needed && lane->job->stack.len >= 8)
		lane->places = lane->job->stack.len - 7;
	hot->places = lane->places;
	lane->base = (size_t)(hot->next - lane->job->frames);
	lookup = lane->state.first || lane->state.interrupted ? pc : pc - 1;
	map = find_map_of_address(unwinder, lane->job->space, lookup);
	hot->quick = 0;
	if (map) {
		hot_enter_map(hot, map);
		hot_set_quick(unwinder, hot, lookup);
	} else if (lane->base > 0) {
		return lane_end(lane, pm_unw_stop_outside(&hot->next[-1], pc));
	}
	hot_store_frame(hot, pc, lookup, how);
	hot->next[-1].sp = pm_unw_regs_sp(regs);
	return true;
}

/* Makes a step with all registers, by @found if @has_cfi. Returns false if the chain
 * ends. */
static bool lane_step_whole(struct pm_unwinder *unwinder, struct lane *lane, bool has_cfi,
			    struct pm_unw_lookup found)
{
	struct hot *hot = &lane->hot;
	struct pm_unw_state *state = &lane->state;
	size_t at = (size_t)(hot->next - lane->job->frames) - 1;
	const struct pm_unw_frame *frame = &lane->job->frames[at];
	bool quick_before = at != lane->base, was_interrupted;
	enum pm_unw_how how;
	enum pm_unw_stop stop;

	lane_gather_regs(unwinder, lane);
	state->map = frame->map;
	state->lookup = frame->lookup;
	state->first = at == 0;
	state->interrupted = state->interrupted && !quick_before;
	state->how = frame->how;
	state->uncalled = false;
	was_interrupted = state->first || state->interrupted;
	if (!(has_cfi ? pm_unw_step_by(unwinder, found, state, &how, &stop)
		      : pm_unw_step_without_cfi(state, &how, &stop))) {
		if (state->uncalled)
			hot->next[-1].lookup = frame->pc;
		if (!state->map && stop == PM_UNW_STOP_NO_CFI)
			stop = PM_UNW_STOP_NO_MODULE;
		return lane_end(lane, stop);
	}
	if (!pm_unw_progressed(state, hot->sp, frame->pc, was_interrupted))
		return lane_end(lane, PM_UNW_STOP_NO_PROGRESS);
	if (pm_unw_is_end_mark(state->regs.value[PM_UNW_X86_64_RIP]))
		return lane_end(lane, PM_UNW_STOP_ROOT);
	state->first = false;
	return lane_enter_any_frame(unwinder, lane, how);
}

/* Whether lane_step_whole() would use the frame pointer, if the stack has the words that
 * this needs. */
static bool will_lane_step_by_fp(const struct lane *lane, bool has_cfi,
				 struct pm_unw_lookup found)
{
	const struct pm_unw_frame *frame = &lane->hot.next[-1];

	if (frame == lane->job->frames || !frame->map)
		return false;
	if (!has_cfi)
		return !frame->map->module;
	return found.found == PM_UNW_FOUND_NO_CFI &&
	       (found.index & PM_UNW_OFF_TRAMPOLINE) && frame->how == PM_UNW_HOW_FP &&
	       pm_unw_exit_leads_to_fp(found) &&
	       !pm_unw_module_is_entry(frame->map->module,
				       frame->lookup - frame->map->bias);
}

/*
 * The usual step in interpreters and generated code. It finds the same caller as
 * lane_step_whole(), but does not gather registers that the step discards. Returns false,
 * still in the same frame, if lane_step_whole() has to make the step.
 */
static bool lane_step_fp_quickly(struct pm_unwinder *unwinder, struct lane *lane)
{
	struct hot *hot = &lane->hot;
	const struct pm_unw_map *map = hot->map;
	uint64_t fp, caller_fp, pc;

	/* hot_enter_map() has cleared it, because there are no quick rules here. */
	hot->places = lane->places;
	if (!hot_load_fp(hot, PM_UNW_QUICK_BY_FP))
		return false;
	fp = hot->fp;
	if (fp < hot->sp || fp % 8 != 0 || fp - hot->sp >= PM_UNW_STACK_SPAN_MAX ||
	    fp - hot->start >= lane->places || fp + 8 - hot->start >= lane->places)
		return false;
	caller_fp = load_word(hot->data + (fp - hot->start));
	pc = load_word(hot->data + (fp + 8 - hot->start));
	if (pc - 1 - hot->map_start >= hot->map_bytes)
		map = find_map_of_address(unwinder, lane->job->space, pc - 1);
	if (pc == 0 || !map ||
	    !pm_unw_is_return(unwinder, PM_UNW_X86_64, lane->job->space, map, pc))
		return false;
	hot->sp = fp + 16;
	hot->fp = caller_fp;
	hot->fp_saved = false;
	hot->places = lane->places;
	hot_enter_map(hot, map);
	hot_store_frame(hot, pc, pc - 1, PM_UNW_HOW_FP);
	hot_set_quick(unwinder, hot, pc - 1);
	return true;
}

/* Makes a step of any kind and enters the next frame. Returns false if the chain ends. */
static bool lane_step_any(struct pm_unwinder *unwinder, struct lane *lane)
{
	struct hot *hot = &lane->hot;
	const struct pm_unw_frame *frame = &hot->next[-1];
	bool has_cfi = pm_unw_map_has_cfi(frame->map, PM_UNW_X86_64);
	struct pm_unw_lookup found = { 0 };
	enum pm_unw_stop stop;
	uint64_t pc;

	if (hot->outside)
		return lane_end_outside_maps(lane);
	lane->others++;
	if (hot->next == hot->last)
		return lane_end(lane, PM_UNW_STOP_LIMIT);
	if (lane->work_left == 0)
		return lane_end(lane, PM_UNW_STOP_WORK_LIMIT);
	unwinder->work_left = &lane->work_left;
	if (has_cfi) {
		found = pm_unw_rule_find(unwinder, frame->map->module,
					 frame->lookup - frame->map->bias);
		if (found.found == PM_UNW_FOUND_ROOT)
			return lane_end(lane, PM_UNW_STOP_ROOT);
		if (hot_load_fp(hot, found.quick) &&
		    hot_step_quick(hot, found.quick, &pc))
			return hot_enter_caller(unwinder, hot, lane->job->space, pc,
						quick_how(found.quick)) ||
			       lane_end_outside_maps(lane);
		if (lane_end_by_quick_rule(lane, found.quick, &stop))
			return lane_end(lane, stop);
	}
	if (will_lane_step_by_fp(lane, has_cfi, found) &&
	    lane_step_fp_quickly(unwinder, lane))
		return true;
	return lane_step_whole(unwinder, lane, has_cfi, found);
}

/* ---- lanes ---------------------------------------------------------------------------- */

/* Starts the chain of @job. Returns false if it has already ended. */
static bool lane_begin(struct pm_unwinder *unwinder, struct lane *lane,
		       struct pm_unw_job *job)
{
	job->len = 0;
	lane->job = job;
	lane->gathered = false;
	lane->others = 0;
	lane->state.unwinder = unwinder;
	lane->state.arch = &pm_unw_arch_infos[PM_UNW_X86_64];
	lane->state.space = job->space;
	lane->state.stack = &job->stack;
	lane->state.work_left = &lane->work_left;
	lane->work_left = lane->work_max = pm_unw_work_of(job->space);
	lane->state.first = true;
	lane->state.interrupted = false;
	lane->hot = (struct hot){ .data = job->stack.data,
				  .start = job->stack.start,
				  .next = job->frames,
				  .last = job->frames + PM_UNW_FRAMES_MAX };
	if (!(job->regs->known >> PM_UNW_X86_64_RIP & 1))
		return lane_end(lane, PM_UNW_STOP_NO_REGS);
	if (!lane_enter_any_frame(unwinder, lane, PM_UNW_HOW_IP))
		return false;
	return lane->work_left > 0 || lane_end(lane, PM_UNW_STOP_WORK_LIMIT);
}

static void lane_finish(struct pm_unwinder *unwinder, struct lane *lane)
{
	lane->job->len = (size_t)(lane->hot.next - lane->job->frames);
	unwinder->stats.frames += lane->job->len;
	if (lane->work_left == 0 && lane->job->stop != PM_UNW_STOP_ROOT)
		lane->job->stop = PM_UNW_STOP_WORK_LIMIT;
	pm_unw_take_work(lane->job->space->work_left, lane->work_max - lane->work_left);
	unwinder->overworked += lane->work_left == 0;
	/* The other steps were counted when their rules were looked up. */
	unwinder->stats.cache_hits += lane->job->len - lane->others;
}

/* Advances by one frame with a quick step. */
static ALWAYS_INLINE bool hot_advance(struct pm_unwinder *unwinder, struct hot *hot,
				      const struct pm_unw_space *space)
{
	uint32_t quick = hot->quick;
	uint64_t pc;

	return hot->next != hot->last && hot_step_quick(hot, quick, &pc) &&
	       hot_enter_caller(unwinder, hot, space, pc, quick_how(quick));
}

/*
 * When only one chain is unwound, no other chain can go on while it waits for memory. The
 * addresses of its next frames are unknown until their rules are, but they are higher and
 * mostly close together. One cache line per frame is enough: the CPU itself fetches
 * neighbours.
 */
static ALWAYS_INLINE void hot_prefetch_ahead(const struct hot *hot)
{
	uintptr_t at = (uintptr_t)hot->data + (hot->sp - hot->start);

	__builtin_prefetch((const void *)(at + AHEAD_BYTES - AHEAD_BYTES / 4));
}

static void run_one_lane(struct pm_unwinder *unwinder, struct pm_unw_job *job)
{
	struct lane lane;

	for (size_t i = 0; i < AHEAD_BYTES; i += LINE_BYTES)
		__builtin_prefetch((const void *)((uintptr_t)job->stack.data + i));
	if (lane_begin(unwinder, &lane, job)) {
		do {
			struct hot hot = lane.hot;

			do
				hot_prefetch_ahead(&hot);
			while (hot_advance(unwinder, &hot, job->space));
			lane.hot = hot;
		} while (lane_step_any(unwinder, &lane));
	}
	lane_finish(unwinder, &lane);
}

static void run_several_lanes(struct pm_unwinder *unwinder, struct pm_unw_job *jobs,
			      size_t len)
{
	struct lane lanes[PM_UNW_BATCH_MAX], *active[PM_UNW_BATCH_MAX];
	size_t left = 0;

	for (size_t i = 0; i < len; i++) {
		__builtin_prefetch(&jobs[i].regs->value[PM_UNW_X86_64_RSP]);
		__builtin_prefetch(&jobs[i].regs->value[PM_UNW_X86_64_RIP]);
		__builtin_prefetch(&jobs[i].regs->known);
	}
	for (size_t i = 0; i < len; i++) {
		if (lane_begin(unwinder, &lanes[i], &jobs[i])) {
			active[left++] = &lanes[i];
			hot_prefetch_step(&lanes[i].hot);
		} else {
			lane_finish(unwinder, &lanes[i]);
		}
	}
	while (left > 0) {
		for (size_t i = 0; i < left; i++) {
			struct lane *lane = active[i];

			if (!hot_advance(unwinder, &lane->hot, lane->job->space) &&
			    !lane_step_any(unwinder, lane)) {
				lane_finish(unwinder, lane);
				active[i--] = active[--left];
				continue;
			}
			hot_prefetch_step(&lane->hot);
		}
	}
}

void pm_unw_lanes_run(struct pm_unwinder *unwinder, struct pm_unw_job *jobs, size_t len)
{
	if (len == 1)
		run_one_lane(unwinder, jobs);
	else
		run_several_lanes(unwinder, jobs, len);
	unwinder->work_left = NULL;
}
