/* SPDX-License-Identifier: MIT */
/*
 * Computes from samples alone how many CPUs ran the recorded program at a time. A sample
 * of an event that is taken F times a second stands for the previous 1/F seconds on its
 * CPU. A CPU counts as running while such an interval covers the time, and the
 * parallelism is the number of running CPUs. A preempted thread leaves part of an
 * interval uncovered, and the next thread starts with part of its own. A gap on one CPU
 * that is shorter than an interval is therefore not a pause.
 */
#include "profile-internal.h"

#include <string.h>

#define NS_PER_S 1000000000

struct lane {
	uint64_t key; /* a CPU, or a thread if the CPU is unknown */
	uint64_t last_ns; /* time of its last sample */
	bool seen;
};

struct work {
	struct pm_profile *profile;
	struct pm_index index;
	PM_VEC(struct lane) lanes;
	/* By thread: time of its last sample, or of its start, plus 1. */
	uint64_t *last_of;
	/* Intervals (starts, ends] during which a lane ran. Each list is sorted
	 * separately. */
	PM_VEC(uint64_t) starts;
	PM_VEC(uint64_t) ends;
};

static void parallel_work_release(struct work *work)
{
	pm_index_release(&work->index);
	pm_vec_release(&work->lanes);
	free(work->last_of);
	pm_vec_release(&work->starts);
	pm_vec_release(&work->ends);
}

/* ---- choosing the event ------------------------------------------------------------------ */

/* Returns the time between two samples of a running thread; 0 if it is unknown. */
static uint64_t event_interval_ns(const struct pm_profile_event *event)
{
	if (pm_profile_is_blocked_time(event) || event->rate == 0)
		return 0;
	if (event->by_frequency) {
		if (event->rate < NS_PER_S)
			return NS_PER_S / event->rate;
		return 1;
	}
	if (strcmp(event->unit, "ns") == 0)
		return event->rate;
	return 0;
}

/* Returns the event whose samples are used. If several qualify, this is the one with the
 * most samples. */
static uint32_t find_clock_event(const struct pm_profile *profile,
				 const uint64_t *samples)
{
	uint32_t best = PM_PROFILE_NONE;

	for (uint32_t i = 0; i < profile->events.len; i++) {
		const struct pm_profile_event *event = &profile->events.data[i];

		if (samples[i] > 0 && event_interval_ns(event) > 0 &&
		    (best == PM_PROFILE_NONE || samples[i] > samples[best]))
			best = i;
	}
	return best;
}

static bool is_idle_sample(const struct pm_profile *profile,
			   const struct pm_profile_sample *sample)
{
	return profile->threads.data[profile->cells.data[sample->cell].thread].pid == 0;
}

static uint32_t event_of_sample(const struct pm_profile *profile,
				const struct pm_profile_sample *sample)
{
	return profile->cells.data[sample->cell].event;
}

/* ---- intervals --------------------------------------------------------------------------- */

static bool lane_equal(const void *table, uint32_t id, const void *key)
{
	return ((const struct work *)table)->lanes.data[id].key == *(const uint64_t *)key;
}

static int find_or_add_lane(struct work *work, const struct pm_profile_sample *sample,
			    struct lane **out)
{
	uint64_t key = sample->cpu, hash;
	uint32_t id;
	int ret = 0;

	if (sample->cpu == PM_FILE_NONE)
		key = 1ull << 32 | work->profile->cells.data[sample->cell].thread;
	hash = pm_hash_mix(key, 0);
	id = pm_index_find(&work->index, hash, lane_equal, work, &key);
	if (id == PM_INDEX_NONE) {
		id = (uint32_t)work->lanes.len;
		ret = pm_vec_push(&work->lanes, (struct lane){ .key = key });
		if (ret == 0)
			ret = pm_index_add(&work->index, hash, id);
		if (ret < 0)
			return ret;
	}
	*out = &work->lanes.data[id];
	return 0;
}

/* Adds the interval (last, time] if there was no pause, otherwise (time - interval,
 * time]. A thread is on one CPU at a time: after a move to another CPU, its interval does
 * not start before the move, and the interval of its first sample does not start before
 * the thread did. */
static int add_covered_interval(struct work *work, const struct pm_profile_sample *sample,
				uint64_t interval)
{
	uint64_t time = sample->time_ns;
	uint64_t start = PM_SUB_OR_0(time, interval);
	uint64_t *last_of =
		&work->last_of[work->profile->cells.data[sample->cell].thread];
	struct lane *lane;
	int ret = find_or_add_lane(work, sample, &lane);

	if (ret < 0)
		return ret;
	if (lane->seen && (lane->last_ns >= start || start - lane->last_ns < interval))
		start = lane->last_ns;
	if (*last_of > time)
		start = time;
	else if (*last_of > start)
		start = *last_of - 1;
	*last_of = time + 1;
	lane->seen = true;
	lane->last_ns = time;
	ret = pm_vec_push(&work->starts, start);
	if (ret < 0)
		return ret;
	return pm_vec_push(&work->ends, time);
}

static int compare_numbers(const void *a, const void *b)
{
	uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;

	return PM_COMPARE(left, right);
}

static int find_covered_intervals(struct work *work)
{
	const struct pm_profile *profile = work->profile;
	uint64_t interval =
		event_interval_ns(&profile->events.data[profile->clock_event]);

	work->last_of = calloc(profile->threads.len + 1, sizeof(uint64_t));
	if (!work->last_of)
		return -ENOMEM;
	for (size_t i = 0; i < profile->threads.len; i++)
		if (profile->threads.data[i].begin_ns > 0)
			work->last_of[i] = profile->threads.data[i].begin_ns + 1;
	for (size_t i = 0; i < profile->samples.len; i++) {
		const struct pm_profile_sample *sample = &profile->samples.data[i];
		int ret = 0;

		if (event_of_sample(profile, sample) == profile->clock_event &&
		    !is_idle_sample(profile, sample))
			ret = add_covered_interval(work, sample, interval);
		if (ret < 0)
			return ret;
	}
	/* The samples are in order of time. The ends therefore are, too, and the starts
	 * nearly. */
	if (work->starts.len > 0)
		qsort(work->starts.data, work->starts.len, sizeof(uint64_t),
		      compare_numbers);
	return 0;
}

/* ---- at each sample ----------------------------------------------------------------------- */

static void count_parallel_samples(struct work *work)
{
	struct pm_profile *profile = work->profile;
	size_t begun = 0, ended = 0;

	for (size_t i = 0; i < profile->samples.len; i++) {
		const struct pm_profile_sample *sample = &profile->samples.data[i];
		uint64_t time = sample->time_ns;

		while (begun < work->starts.len && work->starts.data[begun] < time)
			begun++;
		while (ended < work->ends.len && work->ends.data[ended] < time)
			ended++;
		/* A sample at the start of the recording has an interval of length 0. */
		if (is_idle_sample(profile, sample) ||
		    pm_profile_is_blocked_time(
			    &profile->events.data[event_of_sample(profile, sample)]))
			profile->parallelism.data[i] = 0;
		else if (begun > ended)
			profile->parallelism.data[i] = (uint32_t)(begun - ended);
		else if (event_of_sample(profile, sample) == profile->clock_event)
			profile->parallelism.data[i] = 1;
		else
			profile->parallelism.data[i] = 0;
	}
}

/* Divides the periods by the parallelism. Periods are integers: the remainder of a
 * division is carried to the next sample of the event, so that small periods do not
 * vanish. */
static int divide_periods(struct pm_profile *profile)
{
	PM_AUTO_FREE double *left = calloc(profile->events.len + 1, sizeof(*left));

	if (!left)
		return -ENOMEM;
	for (size_t i = 0; i < profile->events.len; i++)
		profile->events.data[i].divided =
			event_interval_ns(&profile->events.data[i]) > 0;
	for (size_t i = 0; i < profile->cells.len; i++) {
		profile->cells.data[i].weight = (struct pm_weight){ 0 };
		profile->cells.data[i].longest = 0;
	}
	for (size_t i = 0; i < profile->samples.len; i++) {
		struct pm_profile_sample *sample = &profile->samples.data[i];
		uint32_t event = event_of_sample(profile, sample);
		uint32_t running = profile->parallelism.data[i];

		if (profile->events.data[event].divided &&
		    is_idle_sample(profile, sample)) {
			sample->period = 0;
		} else if (profile->events.data[event].divided && running > 1) {
			left[event] += (double)(sample->period % running) / running;
			sample->period /= running;
			if (left[event] >= 1 - 1e-9) {
				left[event] -= 1;
				sample->period++;
			}
		}
		pm_load_add(&profile->cells.data[sample->cell], sample->period);
	}
	profile->latency = true;
	return 0;
}

int pm_load_parallelism(struct pm_loader *loader)
{
	struct pm_profile *profile = loader->profile;
	const struct pm_profile_options *options = loader->options;
	PM_CLEANUP(parallel_work_release) struct work work = { .profile = profile };
	PM_AUTO_FREE uint64_t *samples = NULL;
	int ret;

	profile->clock_event = PM_PROFILE_NONE;
	if (!options || !options->keep_samples ||
	    (!options->parallelism && !options->latency))
		return 0;
	samples = calloc(profile->events.len + 1, sizeof(*samples));
	if (!samples ||
	    pm_vec_reserve(&profile->parallelism, profile->samples.len + 1) < 0)
		return -ENOMEM;
	for (size_t i = 0; i < profile->samples.len; i++)
		samples[event_of_sample(profile, &profile->samples.data[i])]++;
	profile->clock_event = find_clock_event(profile, samples);
	memset(profile->parallelism.data, 0, profile->samples.len * sizeof(uint32_t));
	profile->parallelism.len = profile->samples.len;
	if (profile->clock_event == PM_PROFILE_NONE)
		return 0;
	ret = find_covered_intervals(&work);
	if (ret < 0)
		return ret;
	count_parallel_samples(&work);
	if (options->latency)
		return divide_periods(profile);
	return 0;
}
