/* SPDX-License-Identifier: MIT */
/* Calls out of visits that are made up: what threads do that no two programs do alike. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <malloc.h>
#include <string.h>

#include "pm/count.h"

/* Regions: functions F and G, a range R inside of F. Three places each. */
enum {
	F,
	G,
	R,
	REGIONS,
	ENTRY = 0,
	EXIT = 1,
	UNKNOWN_EXIT = 2, /* where the stack pointer is not known */
	PLACES_EACH = 3,
	PID = 100,
	TOP = 100000, /* a stack pointer */
	LOOPS = 300000,
};

struct world {
	struct pm_regions regions;
	struct pm_stat stat;
	struct pm_calls *calls;
	uint64_t now, count; /* one event, as the present thread has it */
	pid_t pid, tid;
	unsigned int told, told_depth;
	uint32_t caller;
};

static void told(void *user, uint32_t region, const struct pm_visit *entry,
		 const struct pm_visit *exit, uint32_t depth)
{
	struct world *world = user;

	assert_true(region < REGIONS);
	assert_true(entry->time <= exit->time);
	assert_true(entry->counts[0] <= exit->counts[0]);
	world->told++;
	if (depth > world->told_depth)
		world->told_depth = depth;
}

static int name_caller(void *user, uint32_t caller, struct pm_stat_caller *ret)
{
	return pm_vec_push(&ret->frames, (struct pm_stat_frame){ .line = caller });
}

static void add_event(struct pm_stat *stat, const char *name, const char *source)
{
	struct pm_stat_event event = { 0 };

	assert_int_equal(pm_stat_text(&event.name, name), 0);
	assert_int_equal(pm_stat_text(&event.source, source), 0);
	assert_int_equal(pm_vec_push(&stat->events, event), 0);
}

static struct world *begin_with(bool by_thread, int32_t sum_of_g)
{
	struct world *world = calloc(1, sizeof(*world));
	struct pm_calls_options options = { .events = 1,
					    .by_thread = by_thread,
					    .ended = told,
					    .name_caller = name_caller };

	assert_non_null(world);
	for (uint32_t i = 0; i < REGIONS; i++) {
		struct pm_region region = { .kind = PM_STAT_FUNCTION,
					    .sum = i == G ? sum_of_g : -1 };

		region.kind = i == R ? PM_STAT_RANGE : PM_STAT_FUNCTION;
		assert_int_equal(pm_vec_push(&world->regions.list, region), 0);
		for (uint32_t k = 0; k < PLACES_EACH; k++) {
			struct pm_place place = { .region = i,
						  .kind = k == ENTRY ? PM_PLACE_ENTRY
								     : PM_PLACE_EXIT,
						  .sp_known = k != UNKNOWN_EXIT };

			if (i == R)
				place.kind = k == ENTRY ? PM_PLACE_IN : PM_PLACE_OUT;
			assert_int_equal(pm_vec_push(&world->regions.places, place), 0);
		}
	}
	add_event(&world->stat, "instructions", "hardware");
	add_event(&world->stat, "wall-time", "tool");
	options.regions = &world->regions;
	options.user = world;
	assert_int_equal(pm_calls_new(&world->calls, &options), 0);
	world->pid = world->tid = PID;
	world->now = 1000;
	world->caller = UINT32_MAX;
	return world;
}

static struct world *begin(void)
{
	return begin_with(false, -1);
}

static void end(struct world *world)
{
	pm_calls_free(world->calls);
	pm_stat_release(&world->stat);
	pm_vec_release(&world->regions.list);
	pm_vec_release(&world->regions.places);
	free(world);
}

/* The thread counts @more, and comes by a place then. */
static void go(struct world *world, uint32_t region, uint32_t place, uint64_t sp,
	       uint64_t more)
{
	struct pm_visit visit = { .pid = world->pid,
				  .tid = world->tid,
				  .place = region * PLACES_EACH + place,
				  .sp = sp,
				  .caller = world->caller };

	world->count += more;
	world->now += 10 * more;
	visit.time = world->now;
	visit.counts = &world->count;
	visit.enabled_ns = visit.running_ns = world->now;
	assert_int_equal(pm_calls_visit(world->calls, &visit), 0);
}

static const struct pm_stat_scope *finish(struct world *world)
{
	assert_int_equal(pm_calls_finish(world->calls, &world->stat, 0, NULL), 0);
	return world->stat.scopes.data;
}

static void check_calls(const struct pm_stat_scope *scope, uint64_t calls,
			uint64_t nested, uint32_t depth, uint64_t unfinished)
{
	assert_int_equal(scope->calls, calls);
	assert_int_equal(scope->nested, nested);
	assert_int_equal(scope->max_depth, depth);
	assert_int_equal(scope->unfinished, unfinished);
}

/* ---- tests --------------------------------------------------------------------------- */

static void counts_plain_calls(void **state)
{
	struct world *world = begin();
	const struct pm_stat_scope *scopes;

	for (uint64_t i = 1; i <= 100; i++) {
		go(world, F, ENTRY, TOP, 5);
		go(world, F, EXIT, TOP, i);
	}
	scopes = finish(world);
	assert_int_equal(world->stat.scopes.len, REGIONS);
	check_calls(&scopes[F], 100, 0, 1, 0);
	check_calls(&scopes[G], 0, 0, 0, 0);
	assert_int_equal(scopes[F].values[0].state, PM_STAT_OK);
	assert_int_equal(scopes[F].values[0].value, 5050);
	assert_int_equal(scopes[F].values[1].value, 50500);
	assert_int_equal(scopes[F].per_call[0].min, 1);
	assert_int_equal(scopes[F].per_call[0].p50, 50);
	assert_int_equal(scopes[F].per_call[0].p99, 99);
	assert_int_equal(scopes[F].per_call[0].max, 100);
	assert_int_equal(scopes[F].per_call[1].max, 1000);
	assert_int_equal(scopes[F].calls_kept, 100);
	assert_false(scopes[G].per_call[0].known);
	assert_int_equal(scopes[G].values[0].value, 0);
	assert_int_equal(world->told, 100);
	end(world);
}

static void counts_recursion_once(void **state)
{
	struct world *world = begin();
	const struct pm_stat_scope *scopes;

	for (uint64_t i = 0; i < 10; i++)
		go(world, F, ENTRY, TOP - 10 * i, 1);
	for (uint64_t i = 10; i-- > 0;)
		go(world, F, EXIT, TOP - 10 * i, 1);
	scopes = finish(world);
	check_calls(&scopes[F], 10, 9, 10, 0);
	assert_int_equal(scopes[F].values[0].value, 19);
	assert_int_equal(scopes[F].per_call[0].min, 1);
	assert_int_equal(scopes[F].per_call[0].max, 19);
	assert_int_equal(world->told_depth, 10);
	end(world);
}

static void counts_mutual_recursion(void **state)
{
	struct world *world = begin();
	const struct pm_stat_scope *scopes;

	for (uint64_t i = 0; i < 4; i++) {
		go(world, F, ENTRY, TOP - 20 * i, 1);
		go(world, G, ENTRY, TOP - 20 * i - 10, 1);
	}
	for (uint64_t i = 4; i-- > 0;) {
		go(world, G, EXIT, TOP - 20 * i - 10, 1);
		go(world, F, EXIT, TOP - 20 * i, 1);
	}
	scopes = finish(world);
	check_calls(&scopes[F], 4, 3, 4, 0);
	check_calls(&scopes[G], 4, 3, 4, 0);
	assert_int_equal(scopes[F].values[0].value, 15);
	assert_int_equal(scopes[G].values[0].value, 13);
	end(world);
}

/* F jumps to G, which returns for it; and F to itself. */
static void ends_at_tail_calls(void **state)
{
	struct world *world = begin();
	const struct pm_stat_scope *scopes;

	go(world, F, ENTRY, TOP, 0);
	go(world, F, EXIT, TOP, 3);
	go(world, G, ENTRY, TOP, 1);
	go(world, G, EXIT, TOP, 4);
	go(world, F, ENTRY, TOP, 0);
	go(world, F, EXIT, TOP, 1);
	go(world, F, ENTRY, TOP, 0);
	go(world, F, EXIT, TOP, 1);
	scopes = finish(world);
	check_calls(&scopes[F], 3, 0, 1, 0);
	check_calls(&scopes[G], 1, 0, 1, 0);
	assert_int_equal(scopes[F].values[0].value, 5);
	assert_int_equal(scopes[G].values[0].value, 4);
	end(world);
}

/* The outermost F, five deep, has called setjmp, and goes on after longjmp. */
static void leaves_by_longjmp(void **state)
{
	struct world *world = begin();
	const struct pm_stat_scope *scopes;

	go(world, F, ENTRY, TOP, 0);
	for (uint64_t i = 1; i < 5; i++)
		go(world, F, ENTRY, TOP - 10 * i, 1);
	go(world, G, ENTRY, TOP - 60, 1);
	/* Back in the first F, which calls G. */
	go(world, G, ENTRY, TOP - 10, 7);
	go(world, G, EXIT, TOP - 10, 2);
	go(world, F, EXIT, TOP, 1);
	scopes = finish(world);
	check_calls(&scopes[F], 5, 4, 5, 4);
	check_calls(&scopes[G], 2, 0, 1, 1);
	assert_int_equal(scopes[F].values[0].value, 15);
	assert_int_equal(scopes[G].values[0].value, 2);
	end(world);
}

/* The one that longjmp leads back to returns at once; what it was deeper is over with it. */
static void ends_what_its_caller_outlived(void **state)
{
	struct world *world = begin();
	const struct pm_stat_scope *scopes;

	go(world, F, ENTRY, TOP, 0);
	go(world, G, ENTRY, TOP - 10, 1);
	go(world, F, EXIT, TOP, 1);
	go(world, G, ENTRY, TOP - 30, 1);
	go(world, G, EXIT, TOP - 30, 1);
	scopes = finish(world);
	check_calls(&scopes[G], 2, 0, 1, 1);
	end(world);
}

/* Each time at the same place of the stack, and never an exit; in between, deeper. */
static void forgets_what_threw(void **state)
{
	struct world *world = begin();
	const struct pm_stat_scope *scopes;
	size_t before = 0;

	for (uint64_t i = 0; i < LOOPS; i++) {
		go(world, F, ENTRY, TOP, 1);
		for (uint64_t k = 0; k < i % 7; k++)
			go(world, G, ENTRY, TOP - 10 - 10 * k, 1);
		if (i == 1000)
			before = mallinfo2().uordblks;
	}
	/* The address sanitizer's allocator tells nothing, and then both are 0. */
	assert_true(mallinfo2().uordblks <= before + 65536);
	scopes = finish(world);
	check_calls(&scopes[F], LOOPS, 0, 1, LOOPS);
	assert_int_equal(scopes[G].unfinished, scopes[G].calls);
	assert_int_equal(scopes[G].max_depth, 6);
	assert_false(scopes[F].per_call[0].known);
	end(world);
}

static void keeps_threads_apart(void **state)
{
	struct world *world = begin_with(true, -1);
	const struct pm_stat_scope *scopes;
	uint64_t counts[3] = { 0, 500, 0 };

	pm_calls_thread_named(world->calls, 0, PID + 1, "second");
	for (uint64_t i = 0; i < 2; i++)
		for (pid_t tid = 0; tid < 3; tid++) {
			world->tid = PID + tid;
			world->count = counts[tid];
			go(world, F, i == 0 ? ENTRY : EXIT, TOP, 1 + (uint64_t)tid);
			counts[tid] = world->count;
		}
	scopes = finish(world);
	check_calls(&scopes[F], 3, 0, 1, 0);
	assert_int_equal(scopes[F].values[0].value, 6);
	assert_int_equal(scopes[F].threads.len, 3);
	for (size_t i = 0; i < 3; i++) {
		const struct pm_stat_thread *thread = &scopes[F].threads.data[i];

		assert_int_equal(thread->calls, 1);
		assert_int_equal(thread->pid, PID);
		assert_int_equal(thread->values[0].value, thread->tid - PID + 1);
		assert_string_equal(thread->comm, thread->tid == PID + 1 ? "second" : "");
	}
	end(world);
}

/* A thread's number is used again by another, whose counts begin anew. */
static void ends_with_its_thread(void **state)
{
	struct world *world = begin();
	const struct pm_stat_scope *scopes;

	go(world, F, ENTRY, TOP, 0);
	go(world, G, ENTRY, TOP - 10, 4);
	go(world, G, EXIT, TOP - 10, 4);
	pm_calls_thread_exit(world->calls, PID);
	pm_calls_thread_exit(world->calls, PID);
	world->count = 0;
	go(world, F, EXIT, TOP, 1);
	go(world, F, ENTRY, TOP, 1);
	go(world, F, EXIT, TOP, 1);
	scopes = finish(world);
	check_calls(&scopes[F], 2, 0, 1, 1);
	assert_int_equal(scopes[F].values[0].value, 9);
	end(world);
}

/* Both return from the call in which fork() was; it is one call. */
static void returns_twice_after_fork(void **state)
{
	struct world *world = begin();
	const struct pm_stat_scope *scopes;

	go(world, F, ENTRY, TOP, 100);
	go(world, G, ENTRY, TOP - 10, 1);
	assert_int_equal(pm_calls_fork(world->calls, PID, PID + 7, PID + 7, world->now),
			 0);
	go(world, G, EXIT, TOP - 10, 1);
	go(world, F, EXIT, TOP, 1);
	world->pid = world->tid = PID + 7;
	world->count = 0;
	go(world, G, EXIT, TOP - 10, 20);
	go(world, F, EXIT, TOP, 20);
	go(world, F, ENTRY, TOP, 1);
	go(world, F, EXIT, TOP, 5);
	scopes = finish(world);
	check_calls(&scopes[F], 2, 0, 1, 0);
	check_calls(&scopes[G], 1, 0, 1, 0);
	assert_int_equal(scopes[F].values[0].value, 3 + 40 + 5);
	assert_int_equal(scopes[G].values[0].value, 1 + 20);
	end(world);
}

/* The time before it is not the child's, which was not looked at when it entered either. */
static void begins_time_with_fork(void **state)
{
	struct world *world = begin();
	const uint64_t cost[] = { 100, 1000 };
	const struct pm_stat_scope *scope;

	go(world, F, ENTRY, TOP, 1);
	world->now += 1000000;
	assert_int_equal(pm_calls_fork(world->calls, PID, PID + 7, PID + 7, world->now),
			 0);
	go(world, F, EXIT, TOP, 300);
	world->pid = world->tid = PID + 7;
	world->count = 0;
	go(world, F, EXIT, TOP, 20);
	assert_int_equal(pm_calls_finish(world->calls, &world->stat, 0, cost), 0);
	scope = &world->stat.scopes.data[F];
	assert_int_equal(scope->calls, 1);
	assert_int_equal(scope->per_call[0].min, 200);
	assert_int_equal(scope->values[0].value, 200 + 20);
	assert_int_equal(scope->per_call[1].min, 1000000 + 3000 - 1000);
	assert_int_equal(scope->values[1].value, 1000000 + 3000 - 1000 + 3000 + 200);
	end(world);
}

/* A new thread has none of its maker's calls. */
static void begins_empty_in_new_threads(void **state)
{
	struct world *world = begin();

	go(world, F, ENTRY, TOP, 100);
	assert_int_equal(pm_calls_fork(world->calls, PID, PID, PID + 7, world->now), 0);
	world->tid = PID + 7;
	world->count = 0;
	go(world, F, EXIT, TOP, 20);
	check_calls(&finish(world)[F], 1, 0, 1, 1);
	end(world);
}

/* A handler on an alternate stack above: F seems left, and is not. */
static void revives_calls_of_other_stacks(void **state)
{
	struct world *world = begin();
	const struct pm_stat_scope *scopes;

	go(world, F, ENTRY, TOP, 0);
	go(world, G, ENTRY, TOP - 10, 1);
	go(world, F, ENTRY, 2 * TOP, 1);
	go(world, F, EXIT, 2 * TOP, 1);
	go(world, G, EXIT, TOP - 10, 1);
	go(world, F, EXIT, TOP, 1);
	scopes = finish(world);
	assert_int_equal(scopes[F].calls, 2);
	assert_int_equal(scopes[F].unfinished, 0);
	assert_int_equal(scopes[G].unfinished, 0);
	assert_int_equal(scopes[F].values[0].value, 5);
	assert_int_equal(scopes[G].values[0].value, 3);
	assert_int_equal(world->told, 3);
	end(world);
}

static void lives_with_missing_visits(void **state)
{
	struct world *world = begin();
	const struct pm_stat_scope *scopes;

	/* Entered before we looked. */
	go(world, F, EXIT, TOP, 5);
	/* The exit is lost; then the entry. */
	go(world, F, ENTRY, TOP, 5);
	go(world, F, ENTRY, TOP, 5);
	go(world, F, EXIT, TOP, 2);
	go(world, F, EXIT, TOP, 2);
	/* At a place where nothing is known of the stack. */
	go(world, F, ENTRY, TOP - 40, 0);
	go(world, F, UNKNOWN_EXIT, 3, 6);
	scopes = finish(world);
	check_calls(&scopes[F], 3, 0, 1, 1);
	assert_int_equal(scopes[F].values[0].value, 8);
	end(world);
}

/* Its entry is the head of its loop. */
static void goes_on_at_its_entry(void **state)
{
	struct world *world = begin();
	const struct pm_stat_scope *scopes;

	world->regions.places.data[F * PLACES_EACH + ENTRY].again = true;
	for (int i = 0; i < 3; i++) {
		go(world, F, ENTRY, TOP, 1);
		go(world, F, ENTRY, TOP, 1);
		go(world, F, ENTRY, TOP, 1);
		go(world, F, ENTRY, TOP - 10, 1);
		go(world, F, EXIT, TOP - 10, 1);
		go(world, F, EXIT, TOP, 1);
	}
	scopes = finish(world);
	check_calls(&scopes[F], 6, 3, 2, 0);
	assert_int_equal(scopes[F].values[0].value, 15);
	end(world);
}

/* Entered at the function's first instruction, jumped about in, left, entered again; and all
 * that once more inside of a call out of it. */
static void counts_ranges(void **state)
{
	struct world *world = begin();
	const struct pm_stat_scope *scopes;

	world->now += 1;
	go(world, F, ENTRY, TOP, 0);
	go(world, R, ENTRY, TOP, 0);
	go(world, R, ENTRY, TOP, 1);
	go(world, F, ENTRY, TOP - 50, 1);
	go(world, R, ENTRY, TOP - 50, 0);
	go(world, R, EXIT, TOP - 50, 2);
	go(world, R, EXIT, TOP - 50, 2);
	go(world, F, EXIT, TOP - 50, 2);
	go(world, R, EXIT, TOP, 1);
	go(world, R, ENTRY, TOP, 10);
	go(world, R, EXIT, TOP, 1);
	go(world, F, EXIT, TOP, 1);
	scopes = finish(world);
	check_calls(&scopes[R], 3, 1, 2, 0);
	check_calls(&scopes[F], 2, 1, 2, 0);
	assert_int_equal(scopes[R].values[0].value, 10);
	assert_int_equal(scopes[F].values[0].value, 21);
	end(world);
}

/* Two ranges of one call, of which the inner one is left: the other one goes on. */
static void ranges_share_a_function(void **state)
{
	struct world *world = begin();
	const struct pm_stat_scope *scopes;

	world->regions.list.data[G].kind = PM_STAT_RANGE;
	world->regions.places.data[G * PLACES_EACH + ENTRY].kind = PM_PLACE_IN;
	world->regions.places.data[G * PLACES_EACH + EXIT].kind = PM_PLACE_OUT;
	go(world, G, ENTRY, TOP, 1);
	go(world, R, ENTRY, TOP, 0);
	go(world, G, EXIT, TOP, 2);
	go(world, R, ENTRY, TOP, 3);
	go(world, R, EXIT, TOP, 4);
	scopes = finish(world);
	check_calls(&scopes[G], 1, 0, 1, 0);
	check_calls(&scopes[R], 1, 0, 1, 0);
	assert_int_equal(scopes[R].values[0].value, 9);
	end(world);
}

/* Left by an exception that the function does not see, and entered again just as deep. */
static void ranges_are_left_by_exceptions(void **state)
{
	struct world *world = begin();
	const struct pm_stat_scope *scopes;

	world->regions.places.data[R * PLACES_EACH + ENTRY].fresh = true;
	for (int i = 0; i < 3; i++)
		go(world, R, ENTRY, TOP, 1);
	go(world, R, EXIT, TOP, 4);
	scopes = finish(world);
	check_calls(&scopes[R], 3, 0, 1, 2);
	end(world);
}

/* A call's own cost, and that of each visit inside: of F five, of G's two calls one each. */
static void takes_costs_off(void **state)
{
	static const uint64_t call[] = { 3, 30 }, visit[] = { 7, 70 };
	struct world *world = begin();
	const struct pm_stat_scope *scopes;

	go(world, F, ENTRY, TOP, 0);
	for (int i = 0; i < 2; i++) {
		go(world, G, ENTRY, TOP - 10, 100);
		go(world, G, EXIT, TOP - 10, 10);
	}
	go(world, F, EXIT, TOP, 100);
	go(world, G, ENTRY, TOP - 10, 0);
	go(world, G, EXIT, TOP - 10, 1);
	assert_int_equal(pm_calls_set_visit_cost(world->calls, visit), 0);
	assert_int_equal(pm_calls_finish(world->calls, &world->stat, 0, call), 0);
	scopes = world->stat.scopes.data;
	assert_int_equal(scopes[F].values[0].value, 320 - 3 - 4 * 7);
	assert_int_equal(scopes[F].values[1].value, 3200 - 30 - 4 * 70);
	assert_int_equal(scopes[F].values[0].raw, 320);
	assert_int_equal(scopes[G].values[0].value, 21 - 3 * 3);
	assert_int_equal(scopes[G].per_call[0].min, 0);
	assert_int_equal(scopes[G].per_call[0].max, 7);
	end(world);
}

/* F is entered at a cheap place, and left at another; G is entered and left at others. */
static void takes_costs_off_by_kind(void **state)
{
	static const uint64_t dear[] = { 9, 90 }, dear_visit[] = { 8, 80 };
	static const uint64_t cheap[] = { 2, 20 }, cheap_visit[] = { 1, 10 };
	struct world *world = begin();
	const struct pm_stat_scope *scopes;

	world->regions.places.data[F * PLACES_EACH + ENTRY].cheap = true;
	go(world, G, ENTRY, TOP, 0);
	go(world, F, ENTRY, TOP - 10, 100);
	go(world, F, EXIT, TOP - 10, 10);
	go(world, G, EXIT, TOP, 100);
	assert_int_equal(pm_calls_set_costs(world->calls, false, dear, dear_visit), 0);
	assert_int_equal(pm_calls_set_costs(world->calls, true, cheap, cheap_visit), 0);
	assert_int_equal(pm_calls_finish(world->calls, &world->stat, 0, dear), 0);
	scopes = world->stat.scopes.data;
	assert_int_equal(scopes[F].values[0].value, 10 - 2);
	assert_int_equal(scopes[F].per_call[1].max, 100 - 20);
	assert_int_equal(scopes[G].values[0].value, 210 - 9 - 8 - 1);
	end(world);
}

/* F has nothing but its calls of G, and R is a little more than those; what a call of G takes is
 * less than seeing it: all that is no 0, and no number. */
static void tells_what_is_not_known(void **state)
{
	static const uint64_t call[] = { 10, 10 }, visit[] = { 10, 10 };
	struct world *world = begin();
	const struct pm_stat_scope *scopes;

	for (int f = 0; f < 2; f++) {
		go(world, f ? R : F, ENTRY, TOP, 0);
		for (int i = 0; i < 10; i++) {
			go(world, G, ENTRY, TOP - 10, 10);
			go(world, G, EXIT, TOP - 10, 10);
		}
		go(world, f ? R : F, EXIT, TOP, f ? 2000 : 30);
	}
	assert_int_equal(pm_calls_set_visit_cost(world->calls, visit), 0);
	assert_int_equal(pm_calls_finish(world->calls, &world->stat, 0, call), 0);
	scopes = world->stat.scopes.data;
	assert_int_equal(scopes[F].values[0].state, PM_STAT_NOT_KNOWN);
	assert_false(scopes[F].per_call[0].known);
	assert_int_equal(scopes[G].values[0].state, PM_STAT_NOT_KNOWN);
	assert_int_equal(scopes[R].values[0].state, PM_STAT_OK);
	assert_int_equal(scopes[R].values[0].value, 2200 - 10 - 20 * 10);
	assert_int_equal(world->stat.warnings.len, 1);
	assert_non_null(strstr(world->stat.warnings.data[0], "try: without --fn"));
	end(world);
}

/* Each visit is a switch, and nothing else is: there were none. */
static void knows_whole_numbers(void **state)
{
	static const uint64_t call[] = { 1, 1 }, visit[] = { 1, 1 };
	struct world *world = begin();
	const struct pm_stat_scope *scopes;

	free(world->stat.events.data[0].source);
	world->stat.events.data[0].source = NULL;
	assert_int_equal(pm_stat_text(&world->stat.events.data[0].source, "software"), 0);
	go(world, F, ENTRY, TOP, 0);
	go(world, G, ENTRY, TOP - 10, 1);
	go(world, G, EXIT, TOP - 10, 1);
	go(world, F, EXIT, TOP, 1);
	go(world, R, ENTRY, TOP, 0);
	go(world, R, EXIT, TOP, 0);
	assert_int_equal(pm_calls_set_visit_cost(world->calls, visit), 0);
	assert_int_equal(pm_calls_finish(world->calls, &world->stat, 0, call), 0);
	scopes = world->stat.scopes.data;
	for (int i = F; i <= G; i++) {
		assert_int_equal(scopes[i].values[0].state, PM_STAT_OK);
		assert_int_equal(scopes[i].values[0].value, 0);
		assert_int_equal(scopes[i].values[1].state, PM_STAT_OK);
		assert_true(scopes[i].per_call[0].known);
	}
	/* Less than nothing is none of them. */
	assert_int_equal(scopes[R].values[0].state, PM_STAT_NOT_KNOWN);
	assert_int_equal(scopes[R].values[1].state, PM_STAT_NOT_KNOWN);
	end(world);
}

/* F has nothing but its calls of G, and waits: how long is known. */
static void knows_who_waits(void **state)
{
	static const uint64_t call[] = { 10, 100 }, visit[] = { 10, 100 };
	struct world *world = begin();
	const struct pm_stat_scope *scopes;

	go(world, F, ENTRY, TOP, 0);
	go(world, G, ENTRY, TOP - 10, 10);
	go(world, G, EXIT, TOP - 10, 10);
	world->now += 1000000;
	go(world, F, EXIT, TOP, 10);
	assert_int_equal(pm_calls_set_visit_cost(world->calls, visit), 0);
	assert_int_equal(pm_calls_finish(world->calls, &world->stat, 0, call), 0);
	scopes = world->stat.scopes.data;
	assert_int_equal(scopes[F].values[0].state, PM_STAT_NOT_KNOWN);
	assert_int_equal(scopes[F].values[1].state, PM_STAT_OK);
	assert_int_equal(scopes[F].values[1].value, 1000000);
	assert_int_equal(scopes[G].values[1].state, PM_STAT_NOT_KNOWN);
	end(world);
}

static void adds_places_up(void **state)
{
	struct world *world = begin_with(false, F);
	const struct pm_stat_scope *scopes;

	go(world, G, ENTRY, TOP, 0);
	go(world, G, EXIT, TOP, 4);
	scopes = finish(world);
	assert_int_equal(world->stat.scopes.len, REGIONS - 1);
	check_calls(&scopes[0], 1, 0, 1, 0);
	assert_int_equal(scopes[0].values[0].value, 4);
	assert_int_equal(scopes[0].per_call[0].max, 4);
	assert_int_equal(scopes[0].calls_kept, 1);
	end(world);
}

static void tells_callers_apart(void **state)
{
	struct world *world = begin();
	const struct pm_stat_scope *scope;

	for (uint32_t i = 0; i < 6; i++) {
		world->caller = i % 2;
		go(world, F, ENTRY, TOP, 0);
		go(world, F, EXIT, TOP, 1 + i % 2);
	}
	scope = &finish(world)[F];
	assert_int_equal(scope->callers.len, 2);
	for (uint32_t i = 0; i < 2; i++) {
		assert_int_equal(scope->callers.data[i].calls, 3);
		assert_int_equal(scope->callers.data[i].values[0].value, 3 + 3 * i);
		assert_int_equal(scope->callers.data[i].frames.len, 1);
		assert_int_equal(scope->callers.data[i].frames.data[0].line, i);
	}
	end(world);
}

/* More than can be kept: the quantiles are of a sample, the ends of all. */
static void samples_many_calls(void **state)
{
	struct world *world = begin();
	const struct pm_stat_scope *scope;

	for (uint64_t i = 0; i < 100000; i++) {
		go(world, F, ENTRY, TOP, 0);
		go(world, F, EXIT, TOP, i * 7919 % 100000);
	}
	scope = &finish(world)[F];
	assert_true(scope->calls_kept >= 1000 && scope->calls_kept < 100000);
	assert_int_equal(scope->per_call[0].min, 0);
	assert_int_equal(scope->per_call[0].max, 99999);
	/* Six standard deviations of a sample of a thousand. */
	assert_in_range(scope->per_call[0].p50, 40000, 60000);
	assert_in_range(scope->per_call[0].p99, 97000, 99999);
	end(world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(counts_plain_calls),
		cmocka_unit_test(counts_recursion_once),
		cmocka_unit_test(counts_mutual_recursion),
		cmocka_unit_test(ends_at_tail_calls),
		cmocka_unit_test(leaves_by_longjmp),
		cmocka_unit_test(ends_what_its_caller_outlived),
		cmocka_unit_test(forgets_what_threw),
		cmocka_unit_test(keeps_threads_apart),
		cmocka_unit_test(ends_with_its_thread),
		cmocka_unit_test(returns_twice_after_fork),
		cmocka_unit_test(begins_time_with_fork),
		cmocka_unit_test(begins_empty_in_new_threads),
		cmocka_unit_test(revives_calls_of_other_stacks),
		cmocka_unit_test(lives_with_missing_visits),
		cmocka_unit_test(goes_on_at_its_entry),
		cmocka_unit_test(counts_ranges),
		cmocka_unit_test(ranges_share_a_function),
		cmocka_unit_test(ranges_are_left_by_exceptions),
		cmocka_unit_test(takes_costs_off),
		cmocka_unit_test(takes_costs_off_by_kind),
		cmocka_unit_test(tells_what_is_not_known),
		cmocka_unit_test(knows_whole_numbers),
		cmocka_unit_test(knows_who_waits),
		cmocka_unit_test(adds_places_up),
		cmocka_unit_test(tells_callers_apart),
		cmocka_unit_test(samples_many_calls),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
