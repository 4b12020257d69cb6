/* SPDX-License-Identifier: MIT */
/* A run with uprobes, from the command's start to its scopes. */
#include "engine-uprobe.h"

#include <linux/perf_event.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>
#include <time.h>

#include "callers.h"
#include "live.h"

enum {
	TICK_MS = 50, /* between two looks at the rings */
	TICK_LIVE_MS = 10,
};

#define GRACE_NS 2000000000u /* to end by SIGTERM when the time is up */

struct engine {
	const struct pm_engine_options *options;
	struct pm_stat *stat;
	struct pm_child *child;
	struct pm_up_places places;
	struct pm_up_cost cost;
	struct pm_hits *hits;
	struct pm_calls *calls;
	struct pm_callers *callers; /* NULL: nobody wants to know */
	PM_VEC(struct pollfd) poll_fds;
	uint32_t run;
	uint64_t began_ns; /* CLOCK_REALTIME */
	uint64_t begin_ns, end_ns, deadline_ns; /* UINT64_MAX: none */
	bool timed_out;
};

static void engine_release(struct engine *it)
{
	pm_hits_free(it->hits);
	pm_calls_free(it->calls);
	pm_callers_free(it->callers);
	pm_up_places_release(&it->places);
	pm_up_cost_release(&it->cost);
	pm_vec_release(&it->poll_fds);
}

static int out_of_memory(struct pm_error *err)
{
	return pm_error_set(err, -ENOMEM, "no memory for the calls");
}

/* ---- what comes ---------------------------------------------------------------------- */

static int see_hit(struct engine *it, const struct pm_hit *hit)
{
	const struct pm_regions *regions = it->options->regions;
	struct pm_visit visit = {
		.time = hit->time,
		.pid = hit->pid,
		.tid = hit->tid,
		.place = it->places.order.data[hit->place],
		.sp = hit->sp,
		.counts = hit->counts,
		.enabled_ns = hit->enabled_ns,
		.running_ns = hit->running_ns,
		.caller = UINT32_MAX,
	};
	const struct pm_place *place = &regions->places.data[visit.place];

	if (place->condition != 0 && !pm_place_leaves(place, hit->flags))
		return 0;
	if (it->callers && place->kind == PM_PLACE_ENTRY &&
	    pm_callers_of_sample(it->callers, hit->pid, hit->sample, &visit.caller) < 0)
		return -ENOMEM;
	return pm_calls_visit(it->calls, &visit);
}

static int see_record(struct engine *it, const struct pm_record *record)
{
	pid_t pid = (pid_t)record->pid, tid = (pid_t)record->tid;

	if (it->callers && pm_callers_record(it->callers, record) < 0)
		return -ENOMEM;
	switch (record->type) {
	case PERF_RECORD_FORK:
		return pm_calls_fork(it->calls, (pid_t)record->fork.parent_tid, pid, tid,
				     record->time);
	case PERF_RECORD_EXIT:
		pm_calls_thread_exit(it->calls, tid);
		return 0;
	case PERF_RECORD_COMM:
		if (record->comm.exec)
			pm_calls_thread_exit(it->calls, tid);
		if (it->options->by_thread)
			pm_calls_thread_named(it->calls, pid, tid, record->comm.name);
		return 0;
	default:
		return 0;
	}
}

static int drain(struct engine *it, bool final, struct pm_error *err)
{
	enum pm_hits_what what;
	struct pm_record record;
	struct pm_hit hit;
	int r;

	pm_hits_begin(it->hits, final);
	while ((r = pm_hits_next(it->hits, &what, &hit, &record, err)) == 1) {
		r = what == PM_HITS_HIT ? see_hit(it, &hit) : see_record(it, &record);
		if (r < 0)
			return out_of_memory(err);
	}
	return r;
}

/* ---- while it runs ------------------------------------------------------------------- */

static int fill_poll(struct engine *it)
{
	const int ends = it->options->targets ? it->options->targets->ends_fd : -1;
	const int own[] = { it->child->signal_fd, ends };
	size_t len;
	const int *rings = pm_hits_poll_fds(it->hits, &len);
	int r = 0;

	pm_vec_clear(&it->poll_fds);
	for (size_t i = 0; i < PM_ARRAY_LEN(own) && r == 0; i++)
		r = pm_vec_push(&it->poll_fds, (struct pollfd){ own[i], POLLIN, 0 });
	for (size_t i = 0; i < len && r == 0; i++)
		r = pm_vec_push(&it->poll_fds, (struct pollfd){ rings[i], POLLIN, 0 });
	return r;
}

/* Once politely, and then for good. */
static bool is_time_up(struct engine *it)
{
	if (pm_now_ns() < it->deadline_ns)
		return false;
	if (!it->options->targets) {
		kill(it->child->launch.pid, it->timed_out ? SIGKILL : SIGTERM);
		it->deadline_ns += GRACE_NS;
	}
	it->timed_out = true;
	return it->options->targets != NULL;
}

/* Whether there is nothing more to wait for. */
static bool is_over(struct engine *it)
{
	bool time_up = is_time_up(it);

	pm_child_signals(it->child);
	if (it->options->targets)
		return time_up || it->child->interrupts > 0 ||
		       pm_targets_ended(it->options->targets);
	pm_child_reap(it->child);
	return !it->child->running;
}

static int go_on(struct engine *it, struct pm_error *err)
{
	int tick = it->options->live ? TICK_LIVE_MS : TICK_MS;
	bool over = false;
	int r = 0;

	while (!over && r == 0) {
		if (fill_poll(it) < 0)
			return out_of_memory(err);
		poll(it->poll_fds.data, it->poll_fds.len, tick);
		over = is_over(it);
		if (!over)
			r = drain(it, false, err);
	}
	it->end_ns = pm_now_ns();
	pm_hits_disable(it->hits);
	return r == 0 ? drain(it, true, err) : r;
}

/* The counting has failed in the middle: the command is none the worse for it. */
static void wait_for_command(struct engine *it)
{
	struct pollfd signals = { .fd = it->child->signal_fd, .events = POLLIN };

	while (!it->options->targets && it->child->running) {
		poll(&signals, 1, TICK_MS);
		pm_child_signals(it->child);
		pm_child_reap(it->child);
	}
}

/* ---- begin --------------------------------------------------------------------------- */

static int open_hits(struct engine *it, struct pm_error *err)
{
	const struct pm_engine_options *options = it->options;
	struct pm_hits_options wanted = {
		.counters = options->specs,
		.counters_len = options->specs_len,
		.places = it->places.specs.data,
		.places_len = it->places.specs.len,
		.classes = it->places.classes.data,
		.target = options->targets ? PM_PERF_TASKS : PM_PERF_COMMAND,
		.pid = it->child->launch.pid,
		.no_inherit = options->no_inherit,
	};

	if (it->callers) {
		wanted.stack_bytes = pm_callers_stack_bytes(options->calls_from);
		wanted.with_stack = it->places.entries.data;
	}
	if (options->targets) {
		wanted.tids = options->targets->tids.data;
		wanted.tids_len = options->targets->tids.len;
	}
	return pm_hits_open(&it->hits, &wanted, err);
}

static int launch(struct engine *it, struct pm_error *err)
{
	int r = pm_child_prepare(it->child, it->options->command, it->options->user,
				 it->options->data_on_stdout, err);

	if (r == 0)
		r = pm_child_catch_signals(it->child, false, err);
	if (r == 0)
		r = open_hits(it, err);
	it->begin_ns = pm_now_ns();
	return r == 0 ? pm_child_go(it->child, err) : r;
}

/* Threads that run already have no COMM record any more. */
static void name_thread(struct engine *it, pid_t tid)
{
	char path[64], comm[16];
	FILE *file PM_AUTO_FCLOSE = NULL;

	snprintf(path, sizeof(path), "/proc/%d/comm", (int)tid);
	file = fopen(path, "re");
	if (!file || !fgets(comm, sizeof(comm), file))
		return;
	comm[strcspn(comm, "\n")] = '\0';
	pm_calls_thread_named(it->calls, 0, tid, comm);
}

static int attach(struct engine *it, struct pm_error *err)
{
	struct pm_targets *targets = it->options->targets;
	int r = pm_child_catch_signals(it->child, false, err);

	if (r == 0 && targets->kind != PM_PERF_TASKS)
		return pm_error_set(err, -EINVAL,
				    "functions are looked at in a command or in "
				    "processes, not on all CPUs or in control groups");
	if (r == 0)
		r = open_hits(it, err);
	if (r == 0)
		r = pm_targets_begin(targets, err);
	/* Began while the events of the others were being opened. */
	for (size_t i = 0; r == 0 && i < targets->late.len; i++)
		pm_hits_follow(it->hits, targets->late.data[i], NULL);
	for (size_t i = 0; r == 0 && it->callers && i < targets->roots.len; i++)
		if (pm_callers_process(it->callers, targets->roots.data[i].pid) < 0)
			return out_of_memory(err);
	for (size_t i = 0; r == 0 && it->options->by_thread && i < targets->tids.len; i++)
		name_thread(it, targets->tids.data[i]);
	it->begin_ns = pm_now_ns();
	return r;
}

static void on_ended(void *user, uint32_t region, const struct pm_visit *entry,
		     const struct pm_visit *exit, uint32_t depth)
{
	const struct engine *it = user;

	pm_live_call(it->options, it->stat,
		     it->cost.known && !it->options->keep_overhead
			     ? it->cost.call[pm_up_entered_cheaply(it->options->regions,
								   region)]
			     : NULL,
		     region, entry, exit, depth);
}

static int name_caller(void *user, uint32_t caller, struct pm_stat_caller *ret)
{
	return pm_callers_name(((struct engine *)user)->callers, caller, ret);
}

static int prepare(struct engine *it, struct pm_error *err)
{
	const struct pm_engine_options *options = it->options;
	struct pm_calls_options calls = { .regions = options->regions,
					  .events = options->specs_len,
					  .by_thread = options->by_thread,
					  .ended = options->live && options->live_line
							   ? on_ended
							   : NULL,
					  .name_caller = name_caller,
					  .user = it };
	struct timespec now;
	int r;

	if (options->specs_len > PM_HITS_COUNTERS_MAX)
		return pm_error_set(err, -E2BIG,
				    "%zu events at each call: %d at most can be counted",
				    options->specs_len, PM_HITS_COUNTERS_MAX);
	clock_gettime(CLOCK_REALTIME, &now);
	it->began_ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
	r = pm_up_places_make(&it->places, options->regions);
	if (r == 0)
		r = pm_up_cost_measure(&it->cost, options);
	if (r == 0)
		r = pm_calls_new(&it->calls, &calls);
	if (r == 0 && options->calls_from > 0) {
		it->callers = pm_callers_new(options->calls_from);
		r = it->callers ? 0 : -ENOMEM;
	}
	for (size_t i = 0; i < 2 && r == 0 && it->cost.known; i++)
		r = pm_calls_set_costs(it->calls, i == 1, it->cost.call[i],
				       it->cost.visit[i]);
	return r < 0 ? out_of_memory(err) : 0;
}

/* ---- end ----------------------------------------------------------------------------- */

static PM_PRINTF(2, 3) int warn(struct pm_stat *stat, const char *format, ...)
{
	va_list args;
	char *text;
	int len;

	va_start(args, format);
	len = vasprintf(&text, format, args);
	va_end(args);
	if (len < 0)
		return -ENOMEM;
	if (pm_vec_push(&stat->warnings, text) < 0) {
		free(text);
		return -ENOMEM;
	}
	return 0;
}

static int fill_events(const struct engine *it)
{
	size_t len;
	const struct pm_counters_event *counters = pm_hits_counters(it->hits, &len);

	for (size_t i = 0; i < len && i < it->stat->events.len; i++) {
		struct pm_stat_event *event = &it->stat->events.data[i];

		event->state = (enum pm_stat_state)counters[i].state;
		event->user_only |= counters[i].kernel_dropped;
		if (counters[i].state == PM_COUNT_OK || event->why)
			continue;
		if (pm_stat_text(&event->why, counters[i].why.text) < 0)
			return -ENOMEM;
	}
	return 0;
}

static uint64_t time_of(const struct timeval *time)
{
	return (uint64_t)time->tv_sec * 1000000000u + (uint64_t)time->tv_usec * 1000u;
}

/* What clocks and wait4(2) say; of an attached process only clocks. */
static void fill_tool_events(const struct engine *it, struct pm_stat_value *values)
{
	const struct rusage *usage = &it->child->usage;
	bool ended = !it->options->targets && it->child->status_known;
	const struct {
		const char *name;
		bool known;
		uint64_t value;
	} tools[] = {
		{ "wall-time", true, it->end_ns - it->begin_ns },
		{ "user-time", ended, time_of(&usage->ru_utime) },
		{ "system-time", ended, time_of(&usage->ru_stime) },
		{ "max-rss", ended, (uint64_t)usage->ru_maxrss * 1024 },
	};

	for (size_t i = it->options->specs_len; i < it->stat->events.len; i++)
		for (size_t k = 0; k < PM_ARRAY_LEN(tools); k++)
			if (tools[k].known &&
			    strcmp(it->stat->events.data[i].name, tools[k].name) == 0)
				values[i] = (struct pm_stat_value){
					.value = tools[k].value,
					.raw = tools[k].value,
				};
}

/* Counters that were given to others have no sum. */
static int fill_counts(const struct engine *it, struct pm_stat_value *values)
{
	struct pm_count_read reads[PM_HITS_COUNTERS_MAX] = { 0 };
	bool crowded = pm_hits_crowded(it->hits);
	int r = pm_hits_totals(it->hits, reads);

	for (size_t i = 0; i < it->options->specs_len && i < it->stat->events.len; i++) {
		struct pm_count count = pm_count_scale(&reads[i]);

		if (r < 0 || it->stat->events.data[i].state != PM_STAT_OK || crowded) {
			values[i].state = it->stat->events.data[i].state == PM_STAT_OK
						  ? PM_STAT_NOT_COUNTED
						  : it->stat->events.data[i].state;
			continue;
		}
		values[i] =
			(struct pm_stat_value){ .state = (enum pm_stat_state)count.state,
						.value = count.value,
						.raw = count.raw,
						.enabled_ns = count.enabled_ns,
						.running_ns = count.running_ns };
	}
	return r == -ENOMEM ? r : 0;
}

static int fill_run(struct engine *it)
{
	const struct pm_child *child = it->child;
	struct pm_stat_run run = { .begin_ns = it->began_ns, .exit_code = -1 };
	int r;

	run.exited = child->status_known && !it->options->targets;
	if (run.exited && WIFEXITED(child->status))
		run.exit_code = WEXITSTATUS(child->status);
	if (run.exited && WIFSIGNALED(child->status))
		run.signal = WTERMSIG(child->status);
	run.stopped = it->timed_out || child->interrupts > 0;
	run.values = pm_stat_values_new(it->stat->events.len);
	if (!run.values)
		return -ENOMEM;
	it->run = (uint32_t)it->stat->runs.len;
	fill_tool_events(it, run.values);
	r = fill_counts(it, run.values);
	if (r == 0)
		r = pm_vec_push(&it->stat->runs, run);
	if (r < 0)
		free(run.values);
	return r;
}

/* Of column @at, of the calls that were seen from scope @first on, on average. */
static uint64_t mean_cost(const struct engine *it, size_t first, size_t at)
{
	const struct pm_regions *regions = it->options->regions;
	unsigned __int128 sum = 0;
	uint64_t calls = 0;
	size_t scope = first;

	for (uint32_t i = 0; i < regions->list.len; i++) {
		bool cheap = pm_up_entered_cheaply(regions, i);

		if (regions->list.data[i].sum >= 0)
			continue;
		sum += (unsigned __int128)it->stat->scopes.data[scope].calls *
		       it->cost.call[cheap][at];
		calls += it->stat->scopes.data[scope++].calls;
	}
	return calls > 0 ? (uint64_t)(sum / calls) : it->cost.call[0][at];
}

static int fill_overhead(struct engine *it, size_t first)
{
	struct pm_stat *stat = it->stat;
	struct pm_stat_value *values = pm_stat_values_new(stat->events.len);
	size_t specs = it->options->specs_len;

	if (!values)
		return -ENOMEM;
	for (size_t i = 0; i < stat->events.len; i++) {
		bool is_wall =
			i >= specs && strcmp(stat->events.data[i].name, "wall-time") == 0;

		if (stat->events.data[i].state != PM_STAT_OK)
			values[i].state = stat->events.data[i].state;
		else if (is_wall || i < specs)
			values[i] = (struct pm_stat_value){
				.value = mean_cost(it, first, is_wall ? specs : i)
			};
		values[i].raw = values[i].value;
	}
	free(stat->overhead);
	stat->overhead = values;
	stat->overhead_subtracted = !it->options->keep_overhead;
	return 0;
}

/* Which scopes are short of calls, from @first on. */
static void fill_lost(struct engine *it, size_t first)
{
	const struct pm_regions *regions = it->options->regions;
	size_t scope = first;

	for (uint32_t i = 0; i < regions->list.len; i++) {
		struct pm_stat_scope *to;

		if (regions->list.data[i].sum >= 0)
			continue;
		to = &it->stat->scopes.data[scope++];
		for (uint32_t part = 0; part < regions->list.len; part++) {
			uint32_t class;

			if (part != i && regions->list.data[part].sum != (int32_t)i)
				continue;
			for (uint32_t which = 0;
			     pm_up_class(&it->places, part, which, &class); which++)
				to->lost += pm_hits_lost_of(it->hits, class);
		}
		to->calls_exact = to->lost == 0 && !pm_hits_crowded(it->hits) &&
				  !pm_hits_missed(it->hits);
	}
}

static int tell_warnings(const struct engine *it)
{
	const struct pm_perf_notes *notes = pm_hits_notes(it->hits);
	uint64_t lost = pm_hits_lost(it->hits);
	int r = 0;

	for (size_t i = 0; i < notes->texts.len && r == 0; i++)
		r = warn(it->stat, "%s", notes->texts.data[i]);
	if (r == 0 && lost > 0)
		r = warn(it->stat,
			 "%llu of the times that a place was passed were lost, because "
			 "they came faster than they could be read: calls are \"at "
			 "least\", and some values too small.",
			 (unsigned long long)lost);
	if (r == 0 && pm_hits_crowded(it->hits))
		r = warn(it->stat,
			 "the processor had not enough counters for all events at all "
			 "times, and calls were not seen meanwhile: count fewer events.");
	if (r == 0 && it->places.refused > 0)
		r = warn(
			it->stat,
			"the kernel puts no probe on some instructions (%zu, one of them of "
			"%s): calls that begin or end there are not seen to do so.",
			it->places.refused,
			it->options->regions->list.data[it->places.refused_region].name);
	if (r == 0 && !it->cost.known)
		r = warn(it->stat, "what looking at a call costs could not be measured: "
				   "nothing was taken off.");
	return r;
}

static int finish(struct engine *it, struct pm_error *err)
{
	bool take_off = it->cost.known && !it->options->keep_overhead;
	size_t first = it->stat->scopes.len;
	int r = fill_events(it);

	if (r == 0)
		r = fill_run(it);
	if (r == 0 && it->callers)
		r = pm_callers_resolve(it->callers);
	if (r == 0)
		r = pm_calls_finish(it->calls, it->stat, it->run,
				    take_off ? it->cost.call[0] : NULL);
	if (r == 0 && it->cost.known)
		r = fill_overhead(it, first);
	if (r == 0) {
		fill_lost(it, first);
		r = tell_warnings(it);
	}
	return r < 0 ? out_of_memory(err) : 0;
}

/* ---- public -------------------------------------------------------------------------- */

int pm_engine_uprobe_check(struct pm_error *err)
{
	return pm_hits_check(err);
}

int pm_engine_uprobe_run(struct pm_stat *stat, const struct pm_engine_options *options,
			 struct pm_child *child, struct pm_error *err)
{
	struct engine it PM_CLEANUP(engine_release) = { .stat = stat,
							.options = options,
							.child = child,
							.deadline_ns = UINT64_MAX };
	int r = pm_engine_uprobe_check(err);

	if (r == 0)
		r = prepare(&it, err);
	if (r == 0)
		r = options->targets ? attach(&it, err) : launch(&it, err);
	if (r < 0)
		return r;
	if (options->timeout_ns > 0)
		it.deadline_ns = it.begin_ns + options->timeout_ns;
	r = go_on(&it, err);
	if (r < 0) {
		wait_for_command(&it);
		return r;
	}
	return finish(&it, err);
}
