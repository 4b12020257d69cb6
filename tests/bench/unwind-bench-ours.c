/* SPDX-License-Identifier: MIT */
#include "tests/bench/unwind-bench.h"

#include <inttypes.h>
#include <string.h>

#if defined(__x86_64__)
#include <emmintrin.h>
#endif

enum {
	LINE_BYTES = 64,
	SWEEP_BYTES = 256 << 20, /* larger than any cache at hand */
	/* A pass over so much throws out what it read before by itself. */
	SELF_EVICTING_BYTES = 512 << 20,
	HOT_SETS = 64, /* of one batch each, spread over the corpus */
	HOT_ROUNDS = 20,
};

static struct pm_unw_frame frames[PM_UNW_BATCH_MAX][PM_UNW_FRAMES_MAX];

#if defined(__x86_64__)
static void evict_range(const void *data, size_t len)
{
	const char *at = data;

	for (size_t i = 0; i < len; i += LINE_BYTES)
		_mm_clflush(at + i);
}

void bench_evict(const struct bench_sample *samples, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		evict_range(samples[i].stack.data, samples[i].stack.len);
		evict_range(&samples[i], sizeof(samples[i]));
	}
	_mm_mfence();
}
#else
void bench_evict(const struct bench_sample *samples, size_t len)
{
	static volatile char *sweep;

	if (!sweep)
		sweep = malloc(SWEEP_BYTES);
	for (size_t i = 0; sweep && i < SWEEP_BYTES; i += LINE_BYTES)
		sweep[i]++;
}
#endif

static void evict_all(const struct bench_corpus *corpus)
{
	if (corpus->stack_bytes < SELF_EVICTING_BYTES)
		bench_evict(corpus->samples.data, corpus->samples.len);
}

/* Unwinds [from, from + len), at most a batch. Returns how many frames. */
static uint64_t unwind(struct pm_unwinder *unwinder, const struct bench_corpus *corpus,
		       size_t from, size_t len, struct pm_unw_job *jobs)
{
	struct pm_unw_space spaces[PM_UNW_BATCH_MAX];
	uint64_t found = 0;

	for (size_t i = 0; i < len; i++) {
		const struct bench_sample *sample = &corpus->samples.data[from + i];

		spaces[i] = bench_space_of(corpus, sample);
		jobs[i] = (struct pm_unw_job){ .space = &spaces[i],
					       .regs = &sample->regs,
					       .stack = sample->stack,
					       .frames = frames[i] };
	}
	pm_unwind_batch(unwinder, jobs, len);
	for (size_t i = 0; i < len; i++)
		found += jobs[i].len;
	return found;
}

static size_t batch_at(const struct bench_corpus *corpus, size_t from, size_t batch)
{
	size_t left = corpus->samples.len - from;

	return left < batch ? left : batch;
}

/* All samples once; ns a frame. */
static double pass(struct pm_unwinder *unwinder, const struct bench_corpus *corpus,
		   struct bench_ours *ret)
{
	struct pm_unw_job jobs[PM_UNW_BATCH_MAX];
	uint64_t begin = bench_cpu_ns(), took;
	size_t len;

	ret->frames = 0;
	memset(ret->stops, 0, sizeof(ret->stops));
	for (size_t from = 0; from < corpus->samples.len; from += len) {
		len = batch_at(corpus, from, ret->batch);
		ret->frames += unwind(unwinder, corpus, from, len, jobs);
		for (size_t i = 0; i < len; i++)
			ret->stops[jobs[i].stop]++;
	}
	took = bench_cpu_ns() - begin;
	return ret->frames > 0 ? (double)took / (double)ret->frames : 0;
}

/* The same few samples again and again, their rules found before. */
static double pass_hot(struct pm_unwinder *unwinder, const struct bench_corpus *corpus,
		       size_t batch)
{
	struct pm_unw_job jobs[PM_UNW_BATCH_MAX];
	size_t batches = (corpus->samples.len + batch - 1) / batch;
	size_t sets = batches < HOT_SETS ? batches : HOT_SETS;
	uint64_t found = 0, took = 0;

	for (size_t i = 0; i < sets; i++) {
		size_t from = batches * i / sets * batch;
		size_t len = batch_at(corpus, from, batch);
		uint64_t begin;

		unwind(unwinder, corpus, from, len, jobs);
		begin = bench_cpu_ns();
		for (int round = 0; round < HOT_ROUNDS; round++)
			found += unwind(unwinder, corpus, from, len, jobs);
		took += bench_cpu_ns() - begin;
	}
	return found > 0 ? (double)took / (double)found : 0;
}

/* The space with the most samples, and the first of them. */
static const struct bench_sample *first_sample(const struct bench_corpus *corpus)
{
	size_t best = 0;

	for (size_t i = 1; i < corpus->spaces.len; i++)
		if (corpus->spaces.data[i].samples > corpus->spaces.data[best].samples)
			best = i;
	for (size_t i = 0; i < corpus->samples.len; i++)
		if (corpus->samples.data[i].space == best)
			return &corpus->samples.data[i];
	return NULL;
}

/* A process begins: all that it has mapped is opened, and its first sample unwound. */
static void cold_start(const struct bench_corpus *corpus, struct bench_ours *ret)
{
	const struct bench_sample *sample = first_sample(corpus);
	PM_AUTO_FREE struct pm_unw_module **opened =
		calloc(corpus->modules.len + 1, sizeof(*opened));
	PM_VEC(struct pm_unw_map) maps = { 0 };
	const struct pm_unw_map *map;
	struct pm_unwinder *unwinder;
	enum pm_unw_stop stop;
	struct pm_unw_space space;
	uint64_t begin;

	if (!sample || !opened)
		return;
	space = bench_space_of(corpus, sample);
	if (pm_vec_reserve(&maps, space.len + 1) < 0)
		abort();
	memcpy(maps.data, space.maps, space.len * sizeof(*space.maps));
	space.maps = maps.data;
	ret->start_modules = 0;
	begin = bench_cpu_ns();
	unwinder = pm_unwinder_new();
	for (size_t i = 0; i < space.len; i++) {
		map = &maps.data[i];
		if (!map->module)
			continue;
		if (!opened[map->tag] &&
		    pm_unw_module_open(&opened[map->tag],
				       corpus->files.list.data[map->tag].fd, NULL) == 0)
			ret->start_modules++;
		maps.data[i].module = opened[map->tag];
	}
	pm_unwind(unwinder, &space, &sample->regs, &sample->stack, frames[0], &stop);
	ret->start_ms = (double)(bench_cpu_ns() - begin) / 1e6;
	pm_unwinder_free(unwinder);
	for (size_t i = 0; i < corpus->modules.len; i++)
		pm_unw_module_free(opened[i]);
	pm_vec_release(&maps);
}

void bench_ours_pass(struct bench_corpus *corpus, struct bench_ours *ret)
{
	struct pm_unwinder *unwinder = pm_unwinder_new();

	if (!unwinder)
		abort();
	evict_all(corpus);
	ret->first_ns = pass(unwinder, corpus, ret);
	pm_unwinder_stats(unwinder, &ret->stats);
	evict_all(corpus);
	ret->cold_ns = pass(unwinder, corpus, ret);
	ret->hot_ns = pass_hot(unwinder, corpus, ret->batch);
	pm_unwinder_free(unwinder);
	cold_start(corpus, ret);
}

int bench_ours_print(struct bench_corpus *corpus, FILE *to)
{
	struct pm_unwinder *unwinder = pm_unwinder_new();
	struct pm_unw_job jobs[PM_UNW_BATCH_MAX];
	size_t len;

	if (!unwinder)
		abort();
	for (size_t from = 0; from < corpus->samples.len; from += len) {
		len = batch_at(corpus, from, PM_UNW_BATCH_MAX);
		unwind(unwinder, corpus, from, len, jobs);
		for (size_t i = 0; i < len; i++) {
			fputs(pm_unw_stop_name(jobs[i].stop), to);
			for (size_t j = 0; j < jobs[i].len; j++)
				fprintf(to, " %" PRIx64, frames[i][j].pc);
			fputc('\n', to);
		}
	}
	pm_unwinder_free(unwinder);
	return ferror(to) ? -EIO : 0;
}
