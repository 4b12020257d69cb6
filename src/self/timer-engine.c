/* SPDX-License-Identifier: MIT */
/*
 * Sampling without the kernel's support: a timer of each thread's CPU time sends SIGPROF
 * to the thread, whose handler copies registers and stack (timer-signal.c).
 * timer-threads.c finds the threads.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <linux/perf_event.h>
#include <signal.h>
#include <string.h>
#include <time.h>

#include "pm/run.h"
#include "clock.h"
#include "recording-internal.h"
#include "timer-threads.h"

enum {
	SLEEP_MS = 1000, /* while no thread runs */
	/* CPU time of the process between two checks for new threads and full slots:
	 * while the set of threads changes, and while it does not. */
	WAKE_CPU_NS = 10000000,
	WAKE_SELDOM_CPU_NS = 40000000,
	/* The longest time for which entries wait, unless their slot is half full. */
	DRAIN_NS = 250000000,
	COMM_BYTES = 16,
	/* The helper also waits for signals that are sent to the process, so this must be
	 * a signal that programs do not use (signal(7)); otherwise the program would miss
	 * its own ones. A signalfd would wake the helper at each SIGPROF. */
	WAKE_SIGNAL = SIGSTKFLT,
};

/* A sample in a slot. */
struct item {
	uint64_t time;
	struct pm_self_slot *slot;
	struct pm_self_entry *entry;
};

struct engine {
	struct pm_self_engine engine;
	const struct pm_self_settings *settings;
	struct pm_self_timers timers;
	pid_t pid;
	PM_VEC(struct item) items;
	uint64_t drained_ns;
	uint64_t begin_cpu_ns,
		/* CPU time of the sampled threads at the start and at the end. */
		cpu_ns;
	uint64_t lost;
	int wake_timer;
	uint64_t wake_ns;
	bool begun, ended;
	bool replaced; /* the program has replaced our handler */
	int looked; /* negative errno if threads could not be listed */
};

static struct engine *timer_engine_of(const struct pm_self_engine *engine)
{
	return (struct engine *)(uintptr_t)engine;
}

/* ---- opening ------------------------------------------------------------------------------- */

static void timer_engine_end(struct pm_self_engine *engine);

static void timer_engine_free(struct pm_self_engine *engine)
{
	struct engine *timer = timer_engine_of(engine);

	timer_engine_end(engine);
	for (size_t i = 0; i < PM_SELF_SLOTS_MAX && pm_self_slots[i].entries; i++)
		pm_self_slots[i].tid = 0;
	pm_self_timer_delete(timer->wake_timer);
	pm_vec_release(&timer->items);
	free(timer);
}

static int timer_check_event(const struct pm_self_settings *settings,
			     struct pm_error *err)
{
	const char *event = settings->event;

	if (!event || strcmp(event, "cpu-clock") == 0 || strcmp(event, "task-clock") == 0)
		return 0;
	return pm_error_set(err, -EINVAL, "%s: timers know nothing but cpu-clock", event);
}

static int timer_engine_open(struct pm_self_engine **out,
			     const struct pm_self_settings *settings, pid_t helper,
			     struct pm_error *err)
{
	struct engine *timer;
	int ret = timer_check_event(settings, err);

	if (ret < 0)
		return ret;
	timer = calloc(1, sizeof(*timer));
	if (!timer)
		return pm_error_set(err, -ENOMEM, "out of memory");
	timer->engine.type = &pm_self_engine_timer;
	timer->settings = settings;
	timer->pid = getpid();
	timer->timers = (struct pm_self_timers){
		.interval_ns = 1000000000u / settings->rate_hz,
		.stacks = settings->call_graph != PMSELF_CALL_GRAPH_NONE,
		.only = settings->tid,
	};
	/* The timer that wakes the helper costs nothing while no thread runs. */
	ret = pm_self_timer_new(CLOCK_PROCESS_CPUTIME_ID, helper, WAKE_SIGNAL, NULL);
	if (ret < 0)
		timer->wake_timer = PM_SELF_NO_TIMER;
	else
		timer->wake_timer = ret;
	if (ret < 0) {
		timer_engine_free(&timer->engine);
		return pm_error_set(err, ret, "timers of CPU time cannot be made: %s",
				    strerror(-ret));
	}
	*out = &timer->engine;
	return 0;
}

static void timer_engine_event(const struct pm_self_engine *engine,
			       struct pm_file_event *out)
{
	const char *event = timer_engine_of(engine)->settings->event;

	*out = (struct pm_file_event){
		.name = "cpu-clock",
		.requested = pm_text_or(event, "cpu-clock"),
		.actual = "cpu-clock",
		.modifiers = "",
		.unit = "ns",
		.by_frequency = true,
		.rate = timer_engine_of(engine)->settings->rate_hz,
	};
}

static uint32_t timer_engine_stack_bytes(const struct pm_self_engine *engine)
{
	if (timer_engine_of(engine)->timers.stacks)
		return PM_SELF_STACK_BYTES;
	return 0;
}

static uint64_t timer_engine_ring_bytes(const struct pm_self_engine *engine)
{
	return PM_SELF_ENTRIES * sizeof(struct pm_self_entry);
}

/* ---- begin and end ------------------------------------------------------------------------- */

/* Returns the CPU time that the samples represent. */
static uint64_t sampled_cpu_ns(const struct engine *timer)
{
	if (timer->timers.only)
		return pm_self_clock_ns(pm_self_thread_clock(timer->timers.only));
	return pm_self_cpu_ns();
}

static int set_wake(struct engine *timer, uint64_t ns)
{
	if (timer->wake_ns == ns)
		return 0;
	timer->wake_ns = ns;
	return pm_self_timer_run(timer->wake_timer, ns, ns);
}

static uint64_t coarse_tick_ns(void)
{
	struct timespec tick = { 0 };

	clock_getres(CLOCK_MONOTONIC_COARSE, &tick);
	return (uint64_t)tick.tv_nsec;
}

/* Returns the longest wake interval at which no slot gets more than a quarter full. */
static uint64_t seldom_ns(const struct engine *timer)
{
	uint64_t interval = timer->timers.interval_ns, tick = coarse_tick_ns();
	uint64_t quarter = PM_SELF_ENTRIES / 4 * PM_MAX(interval, tick);

	if (quarter < WAKE_CPU_NS)
		return WAKE_CPU_NS;
	return PM_MIN(quarter, WAKE_SELDOM_CPU_NS);
}

static int timer_engine_begin(struct pm_self_engine *engine, struct pm_error *err)
{
	struct engine *timer = timer_engine_of(engine);
	int ret = pm_self_signal_install();

	timer->begun = ret == 0;
	timer->begin_cpu_ns = sampled_cpu_ns(timer);
	timer->drained_ns = pm_now_ns();
	if (ret == 0)
		ret = pm_self_timers_look(&timer->timers);
	if (ret == 0 && timer->timers.threads == 0) {
		if (timer->timers.without_errno)
			ret = -timer->timers.without_errno;
		else
			ret = -ESRCH;
	}
	if (ret == 0)
		ret = set_wake(timer, WAKE_CPU_NS);
	if (ret < 0)
		return pm_error_set(err, ret, "sampling could not begin: %s",
				    strerror(-ret));
	return 0;
}

/* Waits until running handlers have finished their entries, but only as long as that may
 * take. */
static void await_handlers(void)
{
	const struct timespec moment = { .tv_nsec = 1000000 };

	for (int tries = 0; tries < 10; tries++) {
		bool busy = false;

		for (size_t i = 0; i < PM_SELF_SLOTS_MAX && pm_self_slots[i].entries; i++)
			busy |= pm_self_slots[i].tid &&
				atomic_load(&pm_self_slots[i].busy);
		if (!busy)
			return;
		nanosleep(&moment, NULL);
	}
}

static void timer_engine_end(struct pm_self_engine *engine)
{
	struct engine *timer = timer_engine_of(engine);

	if (!timer->begun || timer->ended)
		return;
	timer->ended = true;
	pm_self_timers_stop();
	timer->cpu_ns = sampled_cpu_ns(timer);
	timer->replaced |= !pm_self_signal_is_ours();
	pm_self_timer_delete(timer->wake_timer);
	timer->wake_timer = PM_SELF_NO_TIMER;
	pm_self_signal_remove();
	await_handlers();
}

/* ---- draining ------------------------------------------------------------------------------ */

static bool drain_is_due(const struct engine *timer)
{
	if (pm_now_ns() - timer->drained_ns > DRAIN_NS)
		return true;
	for (size_t i = 0; i < PM_SELF_SLOTS_MAX && pm_self_slots[i].entries; i++) {
		const struct pm_self_slot *slot = &pm_self_slots[i];

		if (slot->tid && atomic_load(&slot->head) - atomic_load(&slot->tail) >=
					 PM_SELF_ENTRIES / 2)
			return true;
	}
	return false;
}

static int compare_item_times(const void *left, const void *right)
{
	const struct item *a = left, *b = right;

	if (a->time != b->time)
		return PM_COMPARE(a->time, b->time);
	return PM_COMPARE(a->entry, b->entry);
}

/* Collects the samples taken until @until. */
static int timer_collect_items(struct engine *timer, uint64_t until)
{
	timer->items.len = 0;
	for (size_t i = 0; i < PM_SELF_SLOTS_MAX && pm_self_slots[i].entries; i++) {
		struct pm_self_slot *slot = &pm_self_slots[i];
		unsigned int head, at;

		if (!slot->tid)
			continue;
		head = atomic_load_explicit(&slot->head, memory_order_acquire);
		for (at = atomic_load(&slot->tail); at != head; at++) {
			struct pm_self_entry *entry =
				&slot->entries[at % PM_SELF_ENTRIES];

			/* The entries of a slot are in time order. */
			if (entry->time > until)
				break;
			if (pm_vec_push(&timer->items,
					(struct item){ entry->time, slot, entry }) < 0)
				return -ENOMEM;
		}
	}
	if (timer->items.len > 0)
		qsort(timer->items.data, timer->items.len, sizeof(struct item),
		      compare_item_times);
	return 0;
}

/* Reports the thread's name before its first sample. */
static int report_thread_name(const struct engine *timer, struct pm_self_slot *slot,
			      uint64_t time, const struct pm_self_take *take)
{
	struct pm_record record = { .type = PERF_RECORD_COMM,
				    .time = time,
				    .pid = (uint32_t)timer->pid,
				    .tid = (uint32_t)slot->tid,
				    .cpu = UINT32_MAX };
	char path[64], comm[COMM_BYTES + 1];
	ssize_t len;
	int fd;

	slot->named = true;
	snprintf(path, sizeof(path), "/proc/self/task/%d/comm", (int)slot->tid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0; /* the thread has ended */
	len = read(fd, comm, sizeof(comm) - 1);
	close(fd);
	if (len <= 0)
		return 0;
	comm[comm[len - 1] == '\n' ? len - 1 : len] = '\0';
	record.comm.name = comm;
	return take->record(take->user, &record);
}

static int report_sample(const struct engine *timer, const struct item *item,
			 const struct pm_self_take *take)
{
	enum {
#if defined(__x86_64__)
		REGS = 17
#else
		REGS = PM_DWARF_REGS_MAX
#endif
	};
	const struct pm_self_entry *entry = item->entry;
	struct pm_record record = {
		.type = PERF_RECORD_SAMPLE,
		.misc = PERF_RECORD_MISC_USER,
		.time = entry->time,
		.pid = (uint32_t)timer->pid,
		.tid = (uint32_t)item->slot->tid,
		.cpu = entry->cpu,
		/* The program counter is the last register on both architectures. */
		.sample = { .ip = entry->regs[REGS - 1],
			    .period = entry->ticks * timer->timers.interval_ns,
			    .regs = { .abi = PM_REGS_64,
				      .known = ((uint64_t)1 << REGS) - 1 },
			    .stack = entry->stack,
			    .stack_len = entry->stack_len,
			    .stack_asked = PM_SELF_STACK_BYTES },
	};

	memcpy(record.sample.regs.value, entry->regs, REGS * sizeof(entry->regs[0]));
	return take->record(take->user, &record);
}

/* Reports the lost samples of a slot, and the end of its thread. */
static int report_losses_and_end(struct engine *timer, struct pm_self_slot *slot,
				 const struct pm_self_take *take)
{
	uint64_t lost = slot->lost - slot->lost_told;
	struct pm_record record = { .time = pm_now_ns(),
				    .pid = (uint32_t)timer->pid,
				    .tid = (uint32_t)slot->tid,
				    .cpu = UINT32_MAX };
	int ret = 0;

	if (lost > 0) {
		slot->lost_told += lost;
		timer->lost += lost;
		record.type = PERF_RECORD_LOST;
		record.lost = lost;
		ret = take->record(take->user, &record);
	}
	if (ret < 0 || !slot->gone ||
	    atomic_load(&slot->head) != atomic_load(&slot->tail))
		return ret;
	record.type = PERF_RECORD_EXIT;
	record.fork.parent_pid = record.pid;
	record.fork.parent_tid = record.tid;
	pm_self_timers_release(&timer->timers, slot);
	return take->record(take->user, &record);
}

static int report_samples(struct engine *timer, uint64_t until,
			  const struct pm_self_take *take)
{
	int ret = timer_collect_items(timer, until);

	timer->drained_ns = pm_now_ns();
	for (size_t i = 0; ret == 0 && i < timer->items.len; i++) {
		const struct item *item = &timer->items.data[i];

		if (!item->slot->named)
			ret = report_thread_name(timer, item->slot, item->time, take);
		if (ret == 0)
			ret = report_sample(timer, item, take);
		atomic_fetch_add_explicit(&item->slot->tail, 1, memory_order_release);
	}
	for (size_t i = 0; ret == 0 && i < PM_SELF_SLOTS_MAX && pm_self_slots[i].entries;
	     i++)
		if (pm_self_slots[i].tid)
			ret = report_losses_and_end(timer, &pm_self_slots[i], take);
	return ret;
}

static int timer_engine_drain(struct pm_self_engine *engine, bool final,
			      const struct pm_self_take *take, struct pm_error *err)
{
	struct engine *timer = timer_engine_of(engine);
	bool due = final || drain_is_due(timer);
	uint64_t until;
	int ret, changed;

	if (!timer->ended && !pm_self_signal_is_ours()) {
		/* The program's own handler would not expect our signals: stop sending
		 * them. */
		timer_engine_end(engine);
		timer->replaced = true;
	}
	changed = take->mappings(take->user, due, &until);
	if (changed < 0)
		return pm_error_set(err, changed, "%s", strerror(-changed));
	if (!timer->ended) {
		ret = pm_self_timers_look_again(&timer->timers);
		if (ret < 0)
			timer->looked = ret;
		/* A program that loads one library usually loads more. */
		if (changed)
			timer->timers.unchanged = 0;
		set_wake(timer, pm_self_timers_stable(&timer->timers) ? seldom_ns(timer)
								      : WAKE_CPU_NS);
	}
	if (!due && !changed)
		return 0;
	ret = report_samples(timer, until, take);
	if (ret < 0)
		return pm_error_set(err, ret, "%s", strerror(-ret));
	return 0;
}

static int timer_engine_lost(const struct pm_self_engine *engine, uint64_t *out)
{
	*out = timer_engine_of(engine)->lost;
	return 0;
}

/* ---- what was missed ----------------------------------------------------------------------- */

/* Reports CPU time without ticks. Each thread may have run for some time since its last
 * tick, or since its clock was last checked; that is not missing. */
static void note_missing_ticks(const struct engine *timer,
			       const struct pm_self_tell *tell)
{
	const struct pm_self_timers *timers = &timer->timers;
	uint64_t ran = PM_SUB_OR_0(timer->cpu_ns, timer->begin_cpu_ns);
	uint64_t seen = timers->ticks * timers->interval_ns;
	uint64_t slack;
	char text[160];

	slack = timers->threads * (timers->interval_ns + 2 * coarse_tick_ns()) +
		ran / 100;
	if (ran <= seen + slack)
		return;
	snprintf(
		text, sizeof(text),
		"CPU time in no tick: %.3f s, of threads that were too short to be found, "
		"that run between ticks, or that block SIGPROF",
		(double)(ran - seen) / 1e9);
	tell->note(tell->user, text);
}

/* Reports that the kernel checks CPU-time timers only at its tick, CONFIG_HZ times a
 * second. */
static void note_rate(const struct engine *timer, const struct pm_self_tell *tell)
{
	uint64_t tick = coarse_tick_ns(), hz = tick > 0 ? 1000000000u / tick : UINT64_MAX;
	char text[160];

	if (hz >= timer->settings->rate_hz)
		return;
	snprintf(text, sizeof(text),
		 "timers tick %" PRIu64
		 " times a second here: each tick stands for the CPU "
		 "time since the last",
		 hz);
	tell->note(tell->user, text);
}

static void timer_engine_report(const struct pm_self_engine *engine,
				const struct pm_self_tell *tell)
{
	const struct engine *timer = timer_engine_of(engine);
	char text[160];

	note_rate(timer, tell);
	note_missing_ticks(timer, tell);
	if (timer->replaced)
		tell->note(tell->user, "the program has put a handler of SIGPROF in our "
				       "place: there are no ticks after that");
	if (timer->timers.blocked > 0) {
		snprintf(text, sizeof(text),
			 "threads that block SIGPROF, without ticks: %zu",
			 timer->timers.blocked);
		tell->note(tell->user, text);
	}
	if (timer->timers.unread > 0) {
		snprintf(text, sizeof(text),
			 "ticks whose stack could not be read: %" PRIu64,
			 timer->timers.unread);
		tell->note(tell->user, text);
	}
	if (timer->timers.without > 0) {
		snprintf(text, sizeof(text), "threads without a timer: %zu (%s)",
			 timer->timers.without, strerror(timer->timers.without_errno));
		tell->note(tell->user, text);
	}
	if (timer->looked < 0) {
		snprintf(text, sizeof(text), "new threads could not be listed: %s",
			 strerror(-timer->looked));
		tell->note(tell->user, text);
	}
}

const struct pm_self_engine_type pm_self_engine_timer = {
	.name = "timer",
	.sleep_ms = SLEEP_MS,
	.open = timer_engine_open,
	.free = timer_engine_free,
	.event = timer_engine_event,
	.stack_bytes = timer_engine_stack_bytes,
	.ring_bytes = timer_engine_ring_bytes,
	.begin = timer_engine_begin,
	.wake_signal = WAKE_SIGNAL,
	.drain = timer_engine_drain,
	.end = timer_engine_end,
	.lost = timer_engine_lost,
	.tell = timer_engine_report,
};
