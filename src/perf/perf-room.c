/* SPDX-License-Identifier: MIT */
/* Chooses the size of the rings: as large as useful, within the limits. */
#include "perf-state.h"

enum {
	PLAIN_RECORD_BYTES = 1536, /* a sample with 127 callchain entries and registers */
	RECORD_BYTES_MAX = 65528, /* header.size is a u16, in steps of 8 */
	RECORDS_MIN = 2,
	/* With fewer, the reader would have to run in step with the samples. */
	RECORDS_COMFORTABLE = 16,
	RECORDS_WANTED = 256,
	/* Divisor of the physical memory: the limit for all rings together. */
	MEMORY_SHARE = 16,
};

#define NS_PER_S           1e9
#define RING_BYTES_MIN     ((size_t)32 * 1024)
#define RING_BYTES_DEFAULT ((size_t)4 * 1024 * 1024)
/* With hundreds of CPUs each ring gets less, since one thread empties them all. */
#define ALL_RINGS_MOST  ((size_t)512 * 1024 * 1024)
#define RING_BYTES_MOST ((size_t)1024 * 1024 * 1024) /* wakeup_watermark is a u32 */

static size_t power_of_two_above(size_t value)
{
	size_t power = 1;

	while (power < value)
		power *= 2;
	return power;
}

static size_t sample_record_bytes(const struct pm_perf_options *options)
{
	size_t bytes = PLAIN_RECORD_BYTES;

	if (options->call_graph == PM_CALL_GRAPH_DWARF)
		bytes += options->stack_bytes;
	return PM_MIN(bytes, RECORD_BYTES_MAX);
}

static size_t ring_bytes_for(const struct pm_perf_options *options, size_t samples)
{
	size_t bytes = power_of_two_above(samples * sample_record_bytes(options));

	return PM_MAX(bytes, RING_BYTES_MIN);
}

static size_t ring_bytes_min(const struct pm_perf_options *options)
{
	return ring_bytes_for(options, RECORDS_MIN);
}

static size_t perf_rings_len(const struct pm_perf *perf)
{
	size_t places = PM_MAX(perf->places.len, 1);

	if (perf->options.overwrite)
		return 2 * places;
	return places;
}

/*
 * Returns the size that perf_mmap() of kernel/events/core.c will presumably allow, so
 * that the first try usually fits: perf_event_mlock_kb for each online CPU, then
 * RLIMIT_MEMLOCK, both including the control page. The memory used by other recordings of
 * the same user is not known.
 */
static size_t perf_allowed_ring_bytes(const struct pm_perf *perf)
{
	const struct pm_perf_env *env = &perf->env;
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	uint64_t share;

	if (pm_perf_env_unlimited_rings(env) || env->memlock_bytes == UINT64_MAX)
		return RING_BYTES_MOST;
	share = env->mlock_kb * 1024 + env->memlock_bytes / perf_rings_len(perf);
	if (share > page)
		return share - page;
	return 0;
}

static size_t read_memory_bytes(void)
{
	long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);

	if (pages <= 0)
		return RING_BYTES_MOST;
	return (size_t)pages * (size_t)page;
}

/* Returns one ring's share of the memory that all rings may use. */
static size_t perf_ring_bytes_share(const struct pm_perf *perf)
{
	size_t all = read_memory_bytes() / MEMORY_SHARE;

	return PM_MIN(all, ALL_RINGS_MOST) / perf_rings_len(perf);
}

static size_t perf_choose_ring_bytes(const struct pm_perf *perf,
				     const struct pm_perf_options *options)
{
	size_t min = ring_bytes_min(options), want = RING_BYTES_DEFAULT;
	size_t share = perf_ring_bytes_share(perf);
	size_t allowed = perf_allowed_ring_bytes(perf);

	if (pm_perf_env_unlimited_rings(&perf->env) &&
	    options->call_graph == PM_CALL_GRAPH_DWARF) {
		size_t roomy =
			power_of_two_above(RECORDS_WANTED * sample_record_bytes(options));

		if (roomy > want)
			want = roomy;
	}
	while (want > min && (want > share || want > allowed))
		want /= 2;
	return PM_MAX(want, min);
}

/* Whether the rings receive everything that happens on a CPU. */
static bool are_rings_of_cpus(const struct pm_perf *perf)
{
	return perf->filter || pm_perf_wide(perf);
}

/* Returns the number of samples that a ring must at least hold, even if the user asks for
 * less. */
static size_t ring_samples_min(const struct pm_perf *perf,
			       const struct pm_perf_options *options)
{
	size_t bytes =
		power_of_two_above(RECORDS_COMFORTABLE * sample_record_bytes(options));

	if (are_rings_of_cpus(perf) && !options->overwrite &&
	    bytes <= perf_ring_bytes_share(perf) &&
	    pm_perf_env_unlimited_rings(&perf->env))
		return RECORDS_COMFORTABLE;
	return RECORDS_MIN;
}

int pm_perf_plan_rings(struct pm_perf *perf, const struct pm_perf_options *options,
		       size_t *explicit_bytes, struct pm_error *err)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), pages = options->ring_pages;
	size_t samples;

	*explicit_bytes = 0;
	if (pages == 0) {
		perf->ring_bytes = perf_choose_ring_bytes(perf, options);
		return 0;
	}
	if ((pages & (pages - 1)) != 0 || pages > RING_BYTES_MOST / page)
		return pm_error_set(
			err, -EINVAL,
			"a ring of %zu pages: the number must be a power of two, "
			"at most %zu",
			pages, RING_BYTES_MOST / page);
	perf->ring_bytes = pages * page;
	samples = ring_samples_min(perf, options);
	if (perf->ring_bytes < ring_bytes_for(options, samples)) {
		perf->ring_bytes = ring_bytes_for(options, samples);
		pm_perf_note(
			perf,
			"a ring of %zu pages has no room for %zu samples, so it has %zu "
			"pages.",
			pages, samples, perf->ring_bytes / page);
	}
	if (options->ring_pages_explicit)
		*explicit_bytes = perf->ring_bytes;
	return 0;
}

void pm_perf_note_rings(struct pm_perf *perf, const struct pm_perf_options *options,
			size_t explicit_bytes)
{
	size_t fit = perf->ring_bytes / sample_record_bytes(options);
	size_t wanted = explicit_bytes;

	if (explicit_bytes <= perf->ring_bytes && fit >= RECORDS_COMFORTABLE)
		return;
	/* No note about a small ring that the user asked for. */
	if (explicit_bytes == perf->ring_bytes)
		return;
	if (wanted <= perf->ring_bytes)
		wanted = power_of_two_above(RECORDS_COMFORTABLE * 4 *
					    sample_record_bytes(options));
	pm_perf_note(
		perf,
		"the rings are %zu KiB for each CPU, room for %zu samples, because locked "
		"memory is limited (more: sudo sysctl kernel.perf_event_mlock_kb=%llu).",
		perf->ring_bytes / 1024, fit,
		(unsigned long long)pm_perf_mlock_kb_for(wanted));
}

bool pm_perf_shrink_rings(struct pm_perf *perf, const struct pm_perf_options *options)
{
	if (perf->ring_bytes / 2 < ring_bytes_min(options))
		return false;
	perf->ring_bytes /= 2;
	return true;
}

/* Returns the rate at which an event is sampled on a CPU, in Hz; 0: unknown. */
static double event_asked_hz(const struct pm_perf_event *event)
{
	if (event->by_frequency)
		return (double)event->rate;
	if (pm_perf_is_clock(&event->actual) && event->rate > 0)
		return NS_PER_S / (double)event->rate;
	return 0;
}

uint64_t pm_perf_quarter_ns(const struct pm_perf *perf)
{
	double records =
		(double)perf->ring_bytes / (double)sample_record_bytes(&perf->options);
	double hz = 0;

	for (size_t i = 0; i < perf->events.len; i++)
		hz += event_asked_hz(&perf->events.data[i]);
	if (hz > 0)
		return (uint64_t)(records / 4 / hz * NS_PER_S);
	return 0;
}

bool pm_perf_is_paced(const struct pm_perf *perf)
{
	for (size_t i = 0; i < perf->events.len; i++)
		if (!pm_perf_is_clock(&perf->events.data[i].actual))
			return false;
	return true;
}

uint32_t pm_perf_wakeup_bytes(const struct pm_perf *perf)
{
	bool by_time = are_rings_of_cpus(perf) && pm_perf_quarter_ns(perf) > 0;

	return (uint32_t)(perf->ring_bytes / (by_time ? 2 : 4));
}
