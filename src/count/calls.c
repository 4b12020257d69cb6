/* SPDX-License-Identifier: MIT */
/*
 * Turns visits into calls. A thread is a row of numbers that never decrease, and each
 * call an interval on it. The use of a region by a thread is the length of the union of
 * its calls' intervals: a call that ends adds its own length minus the length that was
 * added since it began. Recursion is therefore counted once. A call that was presumed
 * dead has added its length up to then; if it ends properly after all, it adds the rest.
 */
#include "calls-internal.h"

#include <string.h>

/* ---- frames -------------------------------------------------------------------------- */

static int new_frame(struct pm_calls *calls, uint32_t *out)
{
	size_t words = 2 * calls->columns;

	if (calls->frames_unused.len > 0) {
		*out = calls->frames_unused.data[--calls->frames_unused.len];
		return 0;
	}
	if (pm_vec_reserve(&calls->frames_unused, calls->frames.len + 1) < 0 ||
	    pm_vec_reserve(&calls->words, calls->words.len + words) < 0 ||
	    pm_vec_push(&calls->frames, (struct pm_calls_frame){ 0 }) < 0)
		return -ENOMEM;
	calls->words.len += words;
	*out = (uint32_t)calls->frames.len - 1;
	return 0;
}

static void drop_frame(struct pm_calls *calls, uint32_t frame)
{
	calls->frames_unused.data[calls->frames_unused.len++] = frame;
}

/* ---- dead frames --------------------------------------------------------------------- */

struct dead_key {
	const struct pm_calls *calls;
	uint32_t region;
	uint64_t sp;
};

static bool dead_equal(const void *table, uint32_t row, const void *wanted)
{
	const struct pm_calls_thread *thread = table;
	const struct dead_key *key = wanted;
	const struct pm_calls_frame *frame =
		&key->calls->frames.data[thread->dead_list.data[row]];

	return frame->region == key->region && frame->sp == key->sp;
}

/* Removes the frame of @region and @sp, and returns it; PM_INDEX_NONE: there is none. */
static uint32_t remove_dead_frame(struct pm_calls *calls, struct pm_calls_thread *thread,
				  uint32_t region, uint64_t sp)
{
	struct dead_key key = { calls, region, sp };
	uint64_t hash = pm_hash_mix(region, sp);
	uint32_t row = pm_index_find(&thread->dead, hash, dead_equal, thread, &key);
	uint32_t frame;

	if (row == PM_INDEX_NONE)
		return PM_INDEX_NONE;
	frame = thread->dead_list.data[row];
	pm_index_remove(&thread->dead, hash, row);
	thread->dead_list.data[row] = PM_INDEX_NONE;
	thread->dead_unused.data[thread->dead_unused.len++] = row;
	return frame;
}

/* Takes ownership of @frame. There must be none with its region and sp. */
static int put_dead(struct pm_calls *calls, struct pm_calls_thread *thread,
		    uint32_t frame)
{
	const struct pm_calls_frame *what = &calls->frames.data[frame];
	uint32_t row;

	if (thread->dead_unused.len == 0) {
		if (pm_vec_reserve(&thread->dead_unused, thread->dead_list.len + 1) < 0 ||
		    pm_vec_push(&thread->dead_list, PM_INDEX_NONE) < 0)
			return -ENOMEM;
		thread->dead_unused.data[thread->dead_unused.len++] =
			(uint32_t)thread->dead_list.len - 1;
	}
	row = thread->dead_unused.data[thread->dead_unused.len - 1];
	thread->dead_list.data[row] = frame;
	if (pm_index_add(&thread->dead, pm_hash_mix(what->region, what->sp), row) < 0)
		return -ENOMEM;
	thread->dead_unused.len--;
	return 0;
}

/* ---- ends ---------------------------------------------------------------------------- */

/* Adds the use of @frame up to the row @end that has not been added yet. Stores the
 * numbers of this call alone in calls->part. */
static int cover_frame_until(struct pm_calls *calls, struct pm_calls_thread *thread,
			     uint32_t frame, const uint64_t *end)
{
	const struct pm_calls_frame *what = &calls->frames.data[frame];
	const uint64_t *begin = pm_calls_words(calls, frame);
	const uint64_t *before = begin + calls->columns;
	uint32_t at = pm_calls_cell(calls, thread, what->region);
	uint64_t *covered;
	int ret = 0;

	if (at == UINT32_MAX)
		return -ENOMEM;
	covered = &thread->covered.data[at * calls->columns];
	for (size_t i = 0; i < calls->columns; i++) {
		uint64_t whole = end[i] - begin[i];

		calls->part[i] = whole - (covered[i] - before[i]);
		covered[i] += calls->part[i];
		if (what->copied && calls->part[i] > 0 &&
		    i <= calls->options.events + PM_CALLS_TIME)
			calls->regions.data[what->region].copies_add = true;
	}
	if (what->caller != PM_CALLS_NO_CALLER)
		ret = pm_calls_site_add(calls, what->region, what->caller, calls->part,
					false);
	for (size_t i = 0; i < calls->columns; i++)
		calls->part[i] = end[i] - begin[i];
	return ret;
}

/* Marks a frame as dead: it seems to have been left without an exit, after the thread's
 * last visit. */
static int bury_frame(struct pm_calls *calls, struct pm_calls_thread *thread,
		      uint32_t frame)
{
	const struct pm_calls_frame what = calls->frames.data[frame];
	uint32_t older = remove_dead_frame(calls, thread, what.region, what.sp);
	uint32_t cell = pm_calls_cell(calls, thread, what.region);
	int ret = cover_frame_until(calls, thread, frame, thread->last);

	if (older != PM_INDEX_NONE)
		drop_frame(calls, older);
	if (cell != UINT32_MAX)
		thread->cells.data[cell].live--;
	if (!what.copied)
		calls->regions.data[what.region].unfinished++;
	if (ret == 0)
		ret = put_dead(calls, thread, frame);
	if (ret < 0)
		drop_frame(calls, frame);
	return ret;
}

/* Returns the row of the current visit, which is an exit and ends one measured call,
 * unless the call is a copy: the entry of that was not measured. */
static const uint64_t *exit_row(struct pm_calls *calls, bool copied)
{
	calls->scratch[calls->options.events + PM_CALLS_OWN] = !copied;
	return calls->scratch;
}

static void report_call_end(struct pm_calls *calls, uint32_t frame,
			    const struct pm_visit *visit)
{
	const struct pm_calls_frame *what = &calls->frames.data[frame];
	const uint64_t *words = pm_calls_words(calls, frame);
	size_t events = calls->options.events;
	struct pm_visit entry = *visit;

	if (!calls->options.ended || what->copied)
		return;
	entry.counts = words;
	entry.time = words[events + PM_CALLS_TIME];
	entry.enabled_ns = words[events + PM_CALLS_ENABLED];
	entry.running_ns = words[events + PM_CALLS_RUNNING];
	entry.sp = what->sp;
	entry.caller = what->caller;
	calls->options.ended(calls->options.user, what->region, &entry, visit,
			     what->depth);
}

static int complete_call(struct pm_calls *calls, struct pm_calls_thread *thread,
			 uint32_t frame, const struct pm_visit *visit)
{
	const struct pm_calls_frame what = calls->frames.data[frame];
	int ret = cover_frame_until(calls, thread, frame, exit_row(calls, what.copied));

	if (ret == 0 && !what.copied)
		ret = pm_calls_keep(calls, what.region, calls->part);
	report_call_end(calls, frame, visit);
	drop_frame(calls, frame);
	return ret;
}

/* ---- visits -------------------------------------------------------------------------- */

/* Whether calls with the same stack pointer are buried, too. */
enum same_sp {
	KEEP_SAME,
	BURY_SAME,
};

/* Buries the frames above an open call whose stack pointer is @sp: these calls were left
 * by longjmp(3) or an exception. Calls on another stack may still be open. So may calls
 * with the same stack pointer (unless BURY_SAME): after a range was left, its function
 * continues. */
static int bury_above(struct pm_calls *calls, struct pm_calls_thread *thread, size_t at,
		      uint64_t sp, enum same_sp same)
{
	size_t kept = at;
	int ret = 0;

	for (size_t i = at; i < thread->live.len; i++) {
		uint32_t frame = thread->live.data[i];
		uint64_t there = calls->frames.data[frame].sp;

		if (ret == 0 && (there < sp || (there == sp && same == BURY_SAME)))
			ret = bury_frame(calls, thread, frame);
		else
			thread->live.data[kept++] = frame;
	}
	thread->live.len = kept;
	return ret;
}

/* Buries the open calls on this stack whose return address is below @sp (or at it, with
 * BURY_SAME). Calls of other regions that were entered at the same instruction at this
 * very moment are exempt. */
static int bury_below(struct pm_calls *calls, struct pm_calls_thread *thread, uint64_t sp,
		      enum same_sp same, uint64_t now)
{
	size_t time = calls->options.events + PM_CALLS_TIME, at = thread->live.len;
	int ret = 0;

	while (at > 0 && ret == 0) {
		uint32_t frame = thread->live.data[at - 1];
		uint64_t there = calls->frames.data[frame].sp;

		if (there > sp || (there == sp && same == KEEP_SAME))
			break;
		at--;
		if (pm_calls_words(calls, frame)[time] == now)
			continue;
		thread->live.len--;
		memmove(&thread->live.data[at], &thread->live.data[at + 1],
			(thread->live.len - at) * sizeof(*thread->live.data));
		ret = bury_frame(calls, thread, frame);
	}
	return ret;
}

/* Returns the index of the youngest open call of @region with this stack pointer (@sp
 * NULL: with any), or SIZE_MAX. */
static size_t find_live(const struct pm_calls *calls,
			const struct pm_calls_thread *thread, uint32_t region,
			const uint64_t *sp)
{
	for (size_t at = thread->live.len; at-- > 0;) {
		const struct pm_calls_frame *frame =
			&calls->frames.data[thread->live.data[at]];

		if (frame->region == region && (!sp || frame->sp == *sp))
			return at;
	}
	return SIZE_MAX;
}

static void count_entry(struct pm_calls *calls, uint32_t region, uint32_t live)
{
	struct pm_calls_region *sums = &calls->regions.data[region];

	sums->calls++;
	sums->nested += live > 0;
	if (live + 1 > sums->max_depth)
		sums->max_depth = live + 1;
}

static int open_call(struct pm_calls *calls, struct pm_calls_thread *thread,
		     const struct pm_visit *visit, uint32_t region, uint64_t sp)
{
	uint32_t cell = pm_calls_cell(calls, thread, region), frame;
	uint64_t *words;
	int ret;

	if (cell == UINT32_MAX || pm_vec_reserve(&thread->live, thread->live.len + 1) < 0)
		return -ENOMEM;
	/* After a new entry at this stack pointer, no older call can return to it. */
	frame = remove_dead_frame(calls, thread, region, sp);
	if (frame == PM_INDEX_NONE)
		ret = new_frame(calls, &frame);
	else
		ret = 0;
	if (ret < 0)
		return ret;
	calls->frames.data[frame] = (struct pm_calls_frame){
		.region = region,
		.caller = visit->caller,
		.sp = sp,
		.depth = thread->cells.data[cell].live + 1,
	};
	words = pm_calls_words(calls, frame);
	memcpy(words, calls->scratch, calls->columns * sizeof(*words));
	memcpy(words + calls->columns, &thread->covered.data[cell * calls->columns],
	       calls->columns * sizeof(*words));
	thread->live.data[thread->live.len++] = frame;
	count_entry(calls, region, thread->cells.data[cell].live++);
	thread->cells.data[cell].calls++;
	if (visit->caller != PM_CALLS_NO_CALLER)
		return pm_calls_site_add(calls, region, visit->caller, NULL, true);
	return 0;
}

/* @place is where the call was left. @sp NULL: unknown. */
static int close_call(struct pm_calls *calls, struct pm_calls_thread *thread,
		      const struct pm_visit *visit, const struct pm_place *place,
		      const uint64_t *sp)
{
	uint32_t region = place->region, frame, cell;
	size_t at = find_live(calls, thread, region, sp);
	int ret;

	if (at == SIZE_MAX) {
		if (sp)
			frame = remove_dead_frame(calls, thread, region, *sp);
		else
			frame = PM_INDEX_NONE;
		if (frame == PM_INDEX_NONE)
			return 0; /* entered before the counting started */
		if (!calls->frames.data[frame].copied)
			calls->regions.data[region].unfinished--;
		return complete_call(calls, thread, frame, visit);
	}
	frame = thread->live.data[at];
	cell = pm_calls_cell(calls, thread, region);
	ret = bury_above(calls, thread, at + 1, calls->frames.data[frame].sp,
			 place->kind == PM_PLACE_EXIT ? BURY_SAME : KEEP_SAME);
	memmove(&thread->live.data[at], &thread->live.data[at + 1],
		(--thread->live.len - at) * sizeof(*thread->live.data));
	thread->cells.data[cell].live--;
	if (ret < 0) {
		drop_frame(calls, frame);
		return ret;
	}
	return complete_call(calls, thread, frame, visit);
}

/* Buries a call of a range that its function left without an exit: the range is entered
 * again. */
static int bury_stale(struct pm_calls *calls, struct pm_calls_thread *thread, size_t at)
{
	uint32_t frame = thread->live.data[at];

	memmove(&thread->live.data[at], &thread->live.data[at + 1],
		(--thread->live.len - at) * sizeof(*thread->live.data));
	return bury_frame(calls, thread, frame);
}

static int apply_visit(struct pm_calls *calls, struct pm_calls_thread *thread,
		       const struct pm_visit *visit, const struct pm_place *place)
{
	uint64_t sp = visit->sp + place->sp_offset;
	const uint64_t *known_sp = NULL;
	size_t at;
	int ret;

	if (place->sp_known)
		known_sp = &sp;
	switch (place->kind) {
	case PM_PLACE_ENTRY:
		if (place->again &&
		    find_live(calls, thread, place->region, &sp) != SIZE_MAX)
			return 0;
		ret = bury_below(calls, thread, sp, BURY_SAME, visit->time);
		if (ret < 0)
			return ret;
		return open_call(calls, thread, visit, place->region, sp);
	case PM_PLACE_IN:
		at = find_live(calls, thread, place->region, known_sp);
		if (at != SIZE_MAX && !(place->fresh && place->sp_known))
			return 0;
		ret = 0;
		if (at != SIZE_MAX)
			ret = bury_stale(calls, thread, at);
		if (ret == 0)
			ret = bury_below(calls, thread, sp, KEEP_SAME, visit->time);
		if (ret < 0)
			return ret;
		return open_call(calls, thread, visit, place->region, sp);
	case PM_PLACE_EXIT:
	case PM_PLACE_OUT:
		return close_call(calls, thread, visit, place, known_sp);
	}
	return 0;
}

static void count_visit(struct pm_calls_thread *thread, const struct pm_place *place)
{
	if (place->cheap)
		thread->cheap++;
	else
		thread->dear++;
}

int pm_calls_visit(struct pm_calls *calls, const struct pm_visit *visit)
{
	size_t events = calls->options.events;
	uint64_t *extra = calls->scratch + events;
	const struct pm_place *place;
	struct pm_calls_thread *thread;
	bool begins;
	int ret;

	if (visit->place >= calls->options.regions->places.len)
		return -EINVAL;
	place = &calls->options.regions->places.data[visit->place];
	begins = place->kind == PM_PLACE_ENTRY || place->kind == PM_PLACE_IN;
	thread = pm_calls_thread(calls, visit->pid, visit->tid);
	if (!thread)
		return -ENOMEM;
	thread->pid = visit->pid;
	if (events > 0)
		memcpy(calls->scratch, visit->counts, events * sizeof(*visit->counts));
	extra[PM_CALLS_TIME] = visit->time;
	extra[PM_CALLS_ENABLED] = visit->enabled_ns;
	extra[PM_CALLS_RUNNING] = visit->running_ns;
	extra[PM_CALLS_OWN] = 0;
	if (begins)
		count_visit(thread, place);
	extra[PM_CALLS_CHEAP] = thread->cheap;
	extra[PM_CALLS_DEAR] = thread->dear;
	ret = apply_visit(calls, thread, visit, place);
	if (!begins)
		count_visit(thread, place);
	extra[PM_CALLS_CHEAP] = thread->cheap;
	extra[PM_CALLS_DEAR] = thread->dear;
	extra[PM_CALLS_OWN] = 0;
	memcpy(thread->last, calls->scratch, calls->columns * sizeof(*thread->last));
	return ret;
}

/* ---- threads ------------------------------------------------------------------------- */

static int close_all(struct pm_calls *calls, struct pm_calls_thread *thread)
{
	int ret = 0;

	while (thread->live.len > 0 && ret == 0)
		ret = bury_frame(calls, thread, thread->live.data[--thread->live.len]);
	for (size_t i = 0; i < thread->dead_list.len; i++)
		if (thread->dead_list.data[i] != PM_INDEX_NONE)
			drop_frame(calls, thread->dead_list.data[i]);
	return ret;
}

void pm_calls_thread_exit(struct pm_calls *calls, pid_t tid)
{
	struct pm_calls_thread *thread = pm_calls_find_thread(calls, tid);

	if (!thread)
		return;
	if (close_all(calls, thread) < 0 || pm_calls_thread_fold(calls, thread) < 0)
		calls->failed = true;
}

void pm_calls_thread_named(struct pm_calls *calls, pid_t pid, pid_t tid, const char *comm)
{
	struct pm_calls_thread *thread = pm_calls_thread(calls, pid, tid);

	if (thread)
		snprintf(thread->comm, sizeof(thread->comm), "%s", comm);
	else
		calls->failed = true;
}

/* Opens a copy of the parent's call, whose numbers start now. */
static int copy_call(struct pm_calls *calls, struct pm_calls_thread *thread,
		     const struct pm_calls_frame *like, uint64_t time)
{
	uint32_t cell = pm_calls_cell(calls, thread, like->region), frame;
	uint64_t *words;

	if (cell == UINT32_MAX ||
	    pm_vec_reserve(&thread->live, thread->live.len + 1) < 0 ||
	    new_frame(calls, &frame) < 0)
		return -ENOMEM;
	calls->frames.data[frame] = *like;
	calls->frames.data[frame].copied = true;
	words = pm_calls_words(calls, frame);
	memset(words, 0, 2 * calls->columns * sizeof(*words));
	words[calls->options.events + PM_CALLS_TIME] = time;
	thread->live.data[thread->live.len++] = frame;
	thread->cells.data[cell].live++;
	return 0;
}

int pm_calls_fork(struct pm_calls *calls, pid_t parent_tid, pid_t pid, pid_t tid,
		  uint64_t time)
{
	struct pm_calls_thread *parent = pm_calls_find_thread(calls, parent_tid), *thread;
	size_t row;

	pm_calls_thread_exit(calls, tid);
	if (!parent)
		return 0;
	row = (size_t)(parent - calls->threads.data);
	thread = pm_calls_thread(calls, pid, tid);
	if (!thread)
		return -ENOMEM;
	parent = &calls->threads.data[row];
	memcpy(thread->comm, parent->comm, sizeof(thread->comm));
	if (pid == parent->pid)
		return 0;
	thread->last[calls->options.events + PM_CALLS_TIME] = time;
	for (size_t i = 0; i < parent->live.len; i++) {
		struct pm_calls_frame like = calls->frames.data[parent->live.data[i]];
		int ret = copy_call(calls, thread, &like, time);

		if (ret < 0)
			return ret;
	}
	return 0;
}

/* ---- creation and destruction -------------------------------------------------------- */

void pm_calls_free(struct pm_calls *calls)
{
	if (!calls)
		return;
	for (size_t i = 0; i < calls->threads.len; i++)
		pm_calls_thread_release(&calls->threads.data[i]);
	for (size_t i = 0; i < calls->regions.len; i++) {
		pm_vec_release(&calls->regions.data[i].rows);
		free(calls->regions.data[i].least);
		free(calls->regions.data[i].most);
	}
	pm_vec_release(&calls->regions);
	free(calls->totals);
	pm_vec_release(&calls->frames);
	pm_vec_release(&calls->words);
	pm_vec_release(&calls->frames_unused);
	pm_vec_release(&calls->threads);
	pm_vec_release(&calls->threads_unused);
	pm_index_release(&calls->by_tid);
	pm_vec_release(&calls->sites);
	pm_vec_release(&calls->site_words);
	pm_index_release(&calls->by_site);
	pm_vec_release(&calls->done);
	pm_vec_release(&calls->done_words);
	for (size_t i = 0; i < 2; i++) {
		free(calls->call_cost[i]);
		free(calls->visit_cost[i]);
	}
	free(calls->scratch);
	free(calls->part);
	free(calls);
}

static void cleanup_calls(struct pm_calls **calls)
{
	pm_calls_free(*calls);
}

int pm_calls_new(struct pm_calls **out, const struct pm_calls_options *options)
{
	struct pm_calls *calls PM_CLEANUP(cleanup_calls) = calloc(1, sizeof(*calls));
	size_t regions = options->regions->list.len;

	if (!calls)
		return -ENOMEM;
	calls->options = *options;
	calls->columns = options->events + PM_CALLS_COLUMNS;
	calls->scratch = calloc(calls->columns, sizeof(uint64_t));
	calls->part = calloc(calls->columns, sizeof(uint64_t));
	calls->totals = calloc(regions * calls->columns + 1, sizeof(uint64_t));
	if (!calls->scratch || !calls->part || !calls->totals)
		return -ENOMEM;
	for (size_t i = 0; i < regions; i++)
		if (pm_vec_push(&calls->regions,
				(struct pm_calls_region){ .random = i + 1 }) < 0)
			return -ENOMEM;
	*out = PM_TAKE_PTR(calls);
	return 0;
}
