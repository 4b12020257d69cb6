/* SPDX-License-Identifier: MIT */
#include "tests/bench/unwind-bench.h"

#include <malloc.h>
#include <string.h>

enum {
	SPACES_MAX = 32, /* address spaces that libdwfl keeps open */
	CHAIN_MAX = PM_UNW_FRAMES_MAX,
	CLOCK_ROUNDS = 1000,
};

struct timed {
	uint64_t samples, frames, cold_ns, hot_ns;
};

struct bench_peers {
	struct bench_corpus *corpus; /* borrowed */
	struct bench_dw *dw;
	struct dwfl_space **spaces; /* by space; NULL: not among the largest */
	PM_VEC(uint32_t) chosen; /* samples */
	struct timed dwfl_time, dw_time;
	size_t dwfl_bytes, dw_bytes; /* kept after all samples, from malloc */
	double clock_ns; /* what reading the clock twice costs */
	double start_ms;
	struct dwfl_frame frames[CHAIN_MAX];
	uint64_t pcs[CHAIN_MAX];
};

typedef size_t (*unwind_fn)(struct bench_peers *peers, const struct bench_sample *sample);

static size_t unwind_dwfl(struct bench_peers *peers, const struct bench_sample *sample)
{
	bool failed;

	return dwfl_space_unwind(peers->spaces[sample->space], &sample->regs,
				 &sample->stack, peers->frames, CHAIN_MAX, &failed);
}

static size_t unwind_dw(struct bench_peers *peers, const struct bench_sample *sample)
{
	return bench_dw_unwind(peers->dw, sample, peers->pcs, CHAIN_MAX);
}

static size_t malloc_bytes(void)
{
#if __GLIBC_PREREQ(2, 33)
	return mallinfo2().uordblks + mallinfo2().hblkhd;
#else
	return 0;
#endif
}

/* What they learn of the files at first is not timed. */
static size_t warm_up(struct bench_peers *peers, unwind_fn unwind, size_t before)
{
	for (size_t i = 0; i < peers->chosen.len; i++)
		unwind(peers, &peers->corpus->samples.data[peers->chosen.data[i]]);
	return malloc_bytes() - before;
}

static void measure_clock(struct bench_peers *peers)
{
	uint64_t begin = bench_cpu_ns();

	for (int i = 0; i < CLOCK_ROUNDS; i++)
		bench_cpu_ns();
	peers->clock_ns = (double)(bench_cpu_ns() - begin) / CLOCK_ROUNDS;
}

/* The spaces with the most samples; their handles are kept from now on. */
static void open_spaces(struct bench_peers *peers)
{
	struct bench_corpus *corpus = peers->corpus;
	double longest = 0;

	for (size_t round = 0; round < SPACES_MAX && round < corpus->spaces.len;
	     round++) {
		size_t best = corpus->spaces.len;
		uint64_t begin;

		for (size_t i = 0; i < corpus->spaces.len; i++)
			if (!peers->spaces[i] && corpus->spaces.data[i].samples > 0 &&
			    (best == corpus->spaces.len ||
			     corpus->spaces.data[i].samples >
				     corpus->spaces.data[best].samples))
				best = i;
		if (best == corpus->spaces.len)
			break;
		begin = bench_cpu_ns();
		peers->spaces[best] =
			dwfl_space_new(&corpus->spaces.data[best].maps, &corpus->files);
		for (size_t i = 0; i < corpus->samples.len; i++)
			if (corpus->samples.data[i].space == best) {
				unwind_dwfl(peers, &corpus->samples.data[i]);
				break;
			}
		if (round == 0)
			longest = (double)(bench_cpu_ns() - begin) / 1e6;
	}
	peers->start_ms = longest;
}

static void choose(struct bench_peers *peers, size_t every)
{
	const struct bench_corpus *corpus = peers->corpus;

	for (size_t i = 0; i < corpus->samples.len; i += every) {
		const struct bench_sample *sample = &corpus->samples.data[i];

		if (peers->spaces[sample->space] && sample->regs.arch == PM_UNW_X86_64 &&
		    pm_vec_push(&peers->chosen, (uint32_t)i) < 0)
			abort();
	}
}

static void time_one(struct bench_peers *peers, const struct bench_sample *sample,
		     unwind_fn unwind, struct timed *timed)
{
	uint64_t begin, middle, end;
	size_t len;

	bench_evict(sample, 1);
	begin = bench_cpu_ns();
	len = unwind(peers, sample);
	middle = bench_cpu_ns();
	unwind(peers, sample);
	end = bench_cpu_ns();
	timed->samples++;
	timed->frames += len;
	timed->cold_ns += middle - begin;
	timed->hot_ns += end - middle;
}

struct bench_peers *bench_peers_new(struct bench_corpus *corpus, size_t every)
{
	struct bench_peers *peers = calloc(1, sizeof(*peers));
	size_t before;

	if (!peers)
		abort();
	peers->corpus = corpus;
	peers->spaces = calloc(corpus->spaces.len + 1, sizeof(struct dwfl_space *));
	if (!peers->spaces)
		abort();
	bench_files_open(corpus);
	measure_clock(peers);
	before = malloc_bytes();
	open_spaces(peers);
	choose(peers, every);
	peers->dwfl_bytes = warm_up(peers, unwind_dwfl, before);
	before = malloc_bytes();
	peers->dw = bench_dw_new(corpus);
	peers->dw_bytes = warm_up(peers, unwind_dw, before);
	return peers;
}

void bench_peers_free(struct bench_peers *peers)
{
	if (!peers)
		return;
	for (size_t i = 0; i < peers->corpus->spaces.len; i++)
		dwfl_space_free(peers->spaces[i]);
	bench_dw_free(peers->dw);
	pm_vec_release(&peers->chosen);
	free(peers->spaces);
	free(peers);
}

/* One after the other, so that neither takes the caches from the other's tables. */
static void pass(struct bench_peers *peers, unwind_fn unwind, struct timed *timed)
{
	for (size_t i = 0; i < peers->chosen.len; i++)
		time_one(peers, &peers->corpus->samples.data[peers->chosen.data[i]],
			 unwind, timed);
}

void bench_peers_pass(struct bench_peers *peers)
{
	pass(peers, unwind_dwfl, &peers->dwfl_time);
	pass(peers, unwind_dw, &peers->dw_time);
}

static struct bench_peer result(const struct bench_peers *peers,
				const struct timed *timed)
{
	double clocks = (double)timed->samples * peers->clock_ns;
	struct bench_peer ret = { .samples = timed->samples, .frames = timed->frames };

	if (timed->frames > 0) {
		ret.cold_ns = ((double)timed->cold_ns - clocks) / (double)timed->frames;
		ret.hot_ns = ((double)timed->hot_ns - clocks) / (double)timed->frames;
	}
	return ret;
}

void bench_peers_result(const struct bench_peers *peers, struct bench_peer *dwfl,
			struct bench_peer *dw, double *dwfl_start_ms)
{
	*dwfl = result(peers, &peers->dwfl_time);
	*dw = result(peers, &peers->dw_time);
	dwfl->bytes = peers->dwfl_bytes;
	dw->bytes = peers->dw_bytes;
	*dwfl_start_ms = peers->start_ms;
}
