/* SPDX-License-Identifier: MIT */
#include "hits-state.h"

#include <string.h>
#include <sys/ioctl.h>

enum {
	/* Counters that missed more than 1/N of a thread's time were displaced. */
	CROWDED_PART = 50,
};

/* ---- opening ------------------------------------------------------------------------- */

static bool is_software_event(const struct pm_event_spec *spec)
{
	return spec->type == PERF_TYPE_SOFTWARE || spec->type == PERF_TYPE_TRACEPOINT ||
	       spec->type == PERF_TYPE_BREAKPOINT;
}

static int hits_sums_init(const struct pm_hits *hits, struct pm_hits_sums *out)
{
	out->events = calloc(hits->events.len + 1, sizeof(*out->events));
	out->counters = calloc(hits->counters.len + 1, sizeof(*out->counters));
	if (!out->events || !out->counters)
		return -ENOMEM;
	return 0;
}

static void hits_sums_release(struct pm_hits_sums *sums)
{
	free(sums->events);
	free(sums->counters);
}

static int hits_check_options(const struct pm_hits_options *options, struct pm_error *err)
{
	bool command = options->target == PM_PERF_COMMAND && options->pid > 0;
	bool tasks = options->target == PM_PERF_TASKS && options->tids_len > 0;

	if (!command && !tasks)
		return pm_error_set(err, -EINVAL, "no process to follow");
	if (options->places_len == 0)
		return pm_error_set(err, -EINVAL, "no place to look at");
	if (options->counters_len > PM_HITS_COUNTERS_MAX)
		return pm_error_set(err, -E2BIG,
				    "%zu events at each call: %d at most can be counted",
				    options->counters_len, PM_HITS_COUNTERS_MAX);
	if (!pm_regs_native())
		return pm_error_set(err, -ENOTSUP,
				    "calls cannot be followed on this processor");
	if (options->stack_bytes % 8 != 0 || options->stack_bytes > PM_STACK_BYTES_MAX)
		return pm_error_set(err, -EINVAL, "%u bytes of stack cannot be copied",
				    options->stack_bytes);
	return 0;
}

static int hits_prepare(struct pm_hits *hits, const struct pm_hits_options *options,
			struct pm_error *err)
{
	int ret;

	hits->options = *options;
	hits->pending = PM_HITS_NO_PLACE;
	hits->software_only = true;
	pm_hits_probes_init(&hits->probes);
	pm_perf_env_read(&hits->env);
	hits->features = (struct pm_perf_features){ false, true };
	hits->shape = (struct pm_attr_shape){
		.call_graph = options->stack_bytes > 0 ? PM_CALL_GRAPH_DWARF
						       : PM_CALL_GRAPH_NONE,
		.hits = true,
	};
	hits->merge.layout = pm_attr_layout(&hits->shape);
	hits->merge.layout.ids = &hits->ids;
	for (size_t i = 0; i < options->counters_len; i++) {
		const struct pm_event_spec *spec = &options->counters[i];

		hits->software_only &= is_software_event(spec);
		if (pm_vec_push(&hits->counters,
				(struct pm_counters_event){ .spec = *spec }) < 0)
			return pm_error_set(err, -ENOMEM, "no memory for the events");
	}
	ret = pm_hits_plan(hits, options, err);
	if (ret == 0 && hits_sums_init(hits, &hits->closed) < 0)
		return pm_error_set(err, -ENOMEM, "no memory for the events");
	return ret;
}

void pm_hits_free(struct pm_hits *hits)
{
	if (!hits)
		return;
	pm_hits_close_all(hits);
	pm_hits_probes_release(&hits->probes);
	hits_sums_release(&hits->closed);
	for (size_t i = 0; i < hits->events.len; i++)
		free(hits->events.data[i].by_low);
	pm_vec_release(&hits->events);
	pm_vec_release(&hits->event_stack);
	pm_vec_release(&hits->places);
	pm_vec_release(&hits->counters);
	pm_vec_release(&hits->members);
	pm_vec_release(&hits->groups);
	pm_vec_release(&hits->anchors);
	pm_vec_release(&hits->poll_fds);
	pm_vec_release(&hits->late);
	pm_hits_threads_release(&hits->threads);
	pm_perf_notes_release(&hits->notes);
	free(hits);
}

static void cleanup_hits(struct pm_hits **hits)
{
	pm_hits_free(*hits);
}

int pm_hits_open(struct pm_hits **out, const struct pm_hits_options *options,
		 struct pm_error *err)
{
	struct pm_hits *hits PM_CLEANUP(cleanup_hits) = NULL;
	int ret = hits_check_options(options, err);

	if (ret < 0)
		return ret;
	hits = calloc(1, sizeof(*hits));
	if (!hits)
		return pm_error_set(err, -ENOMEM, "no memory for the events");
	ret = hits_prepare(hits, options, err);
	if (ret == 0)
		ret = pm_hits_open_all(hits, options, err);
	if (ret < 0)
		return ret;
	hits->options.tids = NULL;
	hits->options.places = hits->options.counters = NULL;
	hits->enabled = !options->begin_disabled;
	if (hits->enabled && options->target == PM_PERF_TASKS) {
		ret = pm_hits_enable(hits);
		if (ret < 0)
			return pm_error_set(err, ret, "events cannot be enabled: %s",
					    strerror(-ret));
	}
	*out = PM_TAKE_PTR(hits);
	return 0;
}

int pm_hits_check(struct pm_error *err)
{
	return pm_hits_probes_check(err);
}

/* ---- properties ---------------------------------------------------------------------- */

const struct pm_counters_event *pm_hits_counters(const struct pm_hits *hits, size_t *len)
{
	*len = hits->counters.len;
	return hits->counters.data;
}

const struct pm_perf_notes *pm_hits_notes(const struct pm_hits *hits)
{
	return &hits->notes;
}

const int *pm_hits_poll_fds(const struct pm_hits *hits, size_t *len)
{
	*len = hits->poll_fds.len;
	return hits->poll_fds.data;
}

int pm_hits_follow(struct pm_hits *hits, pid_t tid, struct pm_error *err)
{
	if (!hits->by_task || pm_hits_has_task(hits, tid))
		return 0;
	return pm_hits_open_task(hits, tid, err);
}

void pm_hits_hold(struct pm_hits *hits)
{
	if (hits->by_task)
		hits->options.follow = true;
}

bool pm_hits_follows(const struct pm_hits *hits, pid_t tid)
{
	return hits->by_task && pm_hits_has_task(hits, tid);
}

void pm_hits_renamed(struct pm_hits *hits, pid_t former, pid_t tid)
{
	for (size_t i = 0; i < hits->groups.len; i++)
		if (hits->groups.data[i].tid == former && !hits->groups.data[i].ended)
			hits->groups.data[i].tid = tid;
}

/* ---- lost hits ----------------------------------------------------------------------- */

static int hits_sum_up(const struct pm_hits *hits, struct pm_hits_sums *out)
{
	int ret = hits_sums_init(hits, out);

	if (ret < 0)
		return ret;
	memcpy(out->events, hits->closed.events, hits->events.len * sizeof(*out->events));
	memcpy(out->counters, hits->closed.counters,
	       hits->counters.len * sizeof(*out->counters));
	for (size_t i = 0; i < hits->groups.len && ret == 0; i++)
		if (hits->groups.data[i].len > 0)
			ret = pm_hits_read_group(hits, &hits->groups.data[i], out);
	return ret;
}

/* @class NULL: all classes. */
static uint64_t hits_count_lost(const struct pm_hits *hits, const uint32_t *class)
{
	struct pm_hits_sums sums PM_CLEANUP(hits_sums_release) = { 0 };
	uint64_t sum = 0;

	/* If the counts cannot be read, the number that the rings report is a lower
	 * bound. */
	if (hits_sum_up(hits, &sums) < 0)
		return hits->lost_records;
	for (size_t i = 0; i < hits->events.len; i++) {
		const struct pm_hits_event *event = &hits->events.data[i];

		if ((!class || event->class == *class) && sums.events[i] > event->given)
			sum += sums.events[i] - event->given;
	}
	return sum;
}

uint64_t pm_hits_lost(const struct pm_hits *hits)
{
	return hits_count_lost(hits, NULL);
}

uint64_t pm_hits_lost_of(const struct pm_hits *hits, uint32_t class)
{
	return hits_count_lost(hits, &class);
}

int pm_hits_count(const struct pm_hits *hits, uint32_t class, uint64_t *out)
{
	struct pm_hits_sums sums PM_CLEANUP(hits_sums_release) = { 0 };
	uint64_t sum = 0;
	bool found = false;
	int ret = hits_sum_up(hits, &sums);

	if (ret < 0)
		return ret;
	for (size_t i = 0; i < hits->events.len; i++) {
		if (hits->events.data[i].class != class)
			continue;
		sum += sums.events[i];
		found = true;
	}
	if (!found)
		return -ENOENT;
	*out = sum;
	return 0;
}

int pm_hits_totals(const struct pm_hits *hits, struct pm_count_read *out)
{
	struct pm_hits_sums sums PM_CLEANUP(hits_sums_release) = { 0 };
	int ret = hits_sum_up(hits, &sums);

	if (ret == 0)
		memcpy(out, sums.counters, hits->counters.len * sizeof(*out));
	return ret;
}

bool pm_hits_crowded(const struct pm_hits *hits)
{
	return hits->crowded;
}

bool pm_hits_missed(const struct pm_hits *hits)
{
	return hits->missed;
}

bool pm_hits_finds_threads(const struct pm_hits *hits)
{
	return hits->by_task && !hits->options.follow && !hits->options.no_inherit;
}

uint64_t pm_hits_lost_records(const struct pm_hits *hits)
{
	return hits->lost_records;
}

/* ---- reading ------------------------------------------------------------------------- */

/* Opens a task that started while nothing is inherited. Only the first failure is noted,
 * since all later ones have the same cause. */
static void hits_follow_late_task(struct pm_hits *hits, pid_t tid)
{
	struct pm_error why;
	int ret;

	if (pm_hits_has_task(hits, tid))
		return;
	ret = pm_hits_open_task(hits, tid, &why);
	if (ret == 0 || ret == -ESRCH || hits->missed_noted)
		return;
	hits->missed_noted = true;
	pm_perf_notes_add(&hits->notes, "thread %d, and maybe others, is not counted: %s",
			  (int)tid, why.text);
}

void pm_hits_begin(struct pm_hits *hits, bool final)
{
	for (size_t i = 0; i < hits->late.len; i++)
		hits_follow_late_task(hits, hits->late.data[i]);
	pm_vec_clear(&hits->late);
	pm_hits_close_ended(hits);
	pm_merge_begin_now(&hits->merge, final);
}

/* PERF_SAMPLE_READ of a group: { u64 nr, enabled, running; { u64 value, id; } [nr]; } */
static int hits_take_counts(struct pm_hits *hits, const struct pm_record *record,
			    struct pm_hit *hit, struct pm_error *err)
{
	uint32_t at = hits->members.data[record->event].group;
	const struct pm_hits_group *group = &hits->groups.data[at];
	const uint64_t *words = record->sample.counts;
	uint64_t counts[PM_HITS_COUNTERS_MAX] = { 0 };
	struct pm_hits_thread *thread;

	if (record->sample.counts_len != 3 + 2 * (size_t)group->len ||
	    words[0] != group->len)
		return pm_error_set(err, -EBADMSG, "a hit without its group's counts");
	for (size_t i = 0; i < group->len; i++) {
		const struct pm_hits_member *member =
			&hits->members.data[group->first + i];

		if (words[4 + 2 * i] != member->id)
			return pm_error_set(err, -EBADMSG, "a hit of another group");
		if (member->counter >= 0)
			counts[member->counter] = words[3 + 2 * i];
	}
	thread = pm_hits_thread(&hits->threads, (pid_t)record->tid);
	if (!thread ||
	    pm_hits_thread_seen(thread, at, counts, hits->counters.len, words[2]) < 0)
		return pm_error_set(err, -ENOMEM, "no memory for the threads");
	for (size_t i = 0; i < hits->counters.len; i++)
		hit->counts[i] = thread->counts[i] + counts[i];
	/* A task's event is enabled while the task runs, on whatever CPU. */
	hit->enabled_ns = words[1];
	if (hits->software_only)
		hit->running_ns = words[1];
	else
		hit->running_ns = thread->running_ns + words[2];
	/* A thread runs for about a microsecond after its last values on a CPU are
	 * written. */
	if (hit->running_ns < hit->enabled_ns - hit->enabled_ns / CROWDED_PART)
		hits->crowded = true;
	return 0;
}

static uint64_t stack_pointer_of_regs(const struct pm_user_regs *regs)
{
	const struct pm_regs_arch *arch = pm_regs_native();
	uint8_t number = regs->abi == PM_REGS_32 ? arch->dwarf_32[arch->sp]
						 : arch->dwarf_64[arch->sp];

	if (number < PM_DWARF_REGS_MAX && (regs->known >> number & 1))
		return regs->value[number];
	return 0;
}

/* Returns 1 if @hit is a hit, 0 if the sample only reports the counters. */
static int hits_take_sample(struct pm_hits *hits, const struct pm_record *record,
			    struct pm_hit *hit, struct pm_error *err)
{
	int32_t index = hits->members.data[record->event].event;
	struct pm_hits_event *event;
	int ret = hits_take_counts(hits, record, hit, err);

	if (ret < 0 || index < 0)
		return ret;
	event = &hits->events.data[index];
	event->given++;
	hit->place = pm_hits_place_at(event, record->sample.ip);
	if (hit->place == PM_HITS_NO_PLACE)
		return pm_error_set(err, -EBADMSG, "a hit at no place of its event");
	hit->time = record->time;
	hit->pid = (pid_t)record->pid;
	hit->tid = (pid_t)record->tid;
	hit->cpu = record->cpu;
	hit->ip = record->sample.ip;
	hit->sp = stack_pointer_of_regs(&record->sample.regs);
	if (pm_regs_native()->flags == PM_NO_REG)
		hit->flags = 0;
	else
		hit->flags = record->sample.regs.flags;
	if (hits->options.stack_bytes > 0)
		hit->sample = &record->sample;
	else
		hit->sample = NULL;
	hits->pending = hits->places.data[hit->place].same;
	if (hits->pending != PM_HITS_NO_PLACE)
		hits->last = *hit;
	return 1;
}

static void hits_note_missed(struct pm_hits *hits)
{
	if (hits->missed)
		return;
	hits->missed = true;
	pm_perf_notes_add(
		&hits->notes,
		"%s: of threads that started meanwhile the first moments may be missed.",
		hits->few_fds
			? "not enough file descriptors for each thread on each CPU"
			: "this kernel (before Linux 6.12) does not hand counters at "
			  "places on to new threads, or this user may not have that");
}

static void hits_handle_task_record(struct pm_hits *hits, const struct pm_record *record)
{
	pid_t tid = (pid_t)record->tid;

	pm_hits_thread_forget(&hits->threads, tid);
	if (record->type == PERF_RECORD_FORK) {
		if (!pm_hits_finds_threads(hits) || pm_hits_has_task(hits, tid))
			return;
		hits_note_missed(hits);
		/* Opened after the round, because that adds rings. */
		if (pm_vec_push(&hits->late, tid) < 0)
			pm_perf_notes_add(&hits->notes, "no memory to count thread %d.",
					  (int)tid);
		return;
	}
	for (size_t i = 0; hits->by_task && i < hits->groups.len; i++)
		if (hits->groups.data[i].tid == tid)
			hits->groups.data[i].ended = true;
}

int pm_hits_next(struct pm_hits *hits, enum pm_hits_what *what, struct pm_hit *hit,
		 struct pm_record *record, struct pm_error *err)
{
	if (hits->pending != PM_HITS_NO_PLACE) {
		*hit = hits->last;
		hit->place = hits->pending;
		hits->pending = hits->places.data[hits->pending].same;
		*what = PM_HITS_HIT;
		return 1;
	}
	for (;;) {
		int ret = pm_merge_next(&hits->merge, record, err);

		if (ret <= 0)
			return ret;
		switch (record->type) {
		case PERF_RECORD_SAMPLE:
			ret = hits_take_sample(hits, record, hit, err);
			if (ret == 0)
				continue;
			*what = PM_HITS_HIT;
			return ret;
		case PERF_RECORD_LOST:
			hits->lost_records += record->lost;
			continue;
		case PERF_RECORD_FORK:
		case PERF_RECORD_EXIT:
			hits_handle_task_record(hits, record);
			*what = PM_HITS_RECORD;
			return 1;
		case PERF_RECORD_COMM:
		case PERF_RECORD_MMAP:
		case PERF_RECORD_MMAP2:
			*what = PM_HITS_RECORD;
			return 1;
		default:
			continue;
		}
	}
}
