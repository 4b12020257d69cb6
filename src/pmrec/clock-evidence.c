/* SPDX-License-Identifier: MIT */
#include "clock-evidence.h"

#include <sched.h>
#include <stdlib.h>
#include <time.h>

enum {
	/* A tick is late if the gap is short by more than 1/8 of a period. */
	LATE_PART = 8,
};

/* The clock of one event on one CPU. */
struct cpu_clock {
	uint64_t last_ns; /* time of the last sample; 0: none yet */
	struct pm_rec_clock_tally tally;
};

struct pm_rec_clock_evidence {
	size_t cpus_len, events_len;
	struct cpu_clock *clocks; /* by CPU, then by event */
	struct {
		uint64_t runs, cpu_ns;
	} * reader; /* by CPU */
	uint64_t before_ns; /* CPU time of the thread at the previous call */
};

static uint64_t thread_cpu_ns(void)
{
	struct timespec now;

	if (clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now) < 0)
		return 0;
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

struct pm_rec_clock_evidence *pm_rec_clock_evidence_new(size_t cpus_len,
							size_t events_len)
{
	struct pm_rec_clock_evidence *evidence = calloc(1, sizeof(*evidence));

	if (!evidence)
		return NULL;
	evidence->reader = calloc(cpus_len + 1, sizeof(*evidence->reader));
	evidence->clocks = calloc(cpus_len * events_len + 1, sizeof(*evidence->clocks));
	if (!evidence->reader || !evidence->clocks) {
		pm_rec_clock_evidence_free(evidence);
		return NULL;
	}
	evidence->cpus_len = cpus_len;
	evidence->events_len = events_len;
	evidence->before_ns = thread_cpu_ns();
	return evidence;
}

void pm_rec_clock_evidence_free(struct pm_rec_clock_evidence *evidence)
{
	if (!evidence)
		return;
	free(evidence->reader);
	free(evidence->clocks);
	free(evidence);
}

void pm_rec_clock_evidence_pause(struct pm_rec_clock_evidence *evidence)
{
	uint64_t now = thread_cpu_ns();
	int cpu = sched_getcpu();

	if (cpu >= 0 && (size_t)cpu < evidence->cpus_len && now > evidence->before_ns) {
		evidence->reader[cpu].runs++;
		evidence->reader[cpu].cpu_ns += now - evidence->before_ns;
	}
	evidence->before_ns = now;
}

/* Saturates at 2^63 - 1, the largest number that the file can hold: a ring may contain a
 * garbage period. */
static void add_bounded(uint64_t *sum, uint64_t more)
{
	if (more > INT64_MAX || *sum > INT64_MAX - more)
		*sum = INT64_MAX;
	else
		*sum += more;
}

/* Classifies the gap between two samples. The timer expires at whole periods after its
 * start (hrtimer_forward_now()), so a gap that is shorter than a period shows that the
 * previous tick was late. */
static void tally_gap(struct pm_rec_clock_tally *tally, uint64_t gap, uint64_t period)
{
	if (gap > period + period / 2) {
		tally->longer++;
	} else if (gap < period - period / LATE_PART) {
		tally->late++;
		add_bounded(&tally->late_ns, period - gap);
	}
}

void pm_rec_clock_evidence_sample(struct pm_rec_clock_evidence *evidence, uint32_t event,
				  uint32_t cpu, uint64_t time_ns, uint64_t period)
{
	struct cpu_clock *clock;

	if (cpu >= evidence->cpus_len || event >= evidence->events_len)
		return;
	clock = &evidence->clocks[cpu * evidence->events_len + event];
	if (clock->last_ns > 0 && time_ns > clock->last_ns)
		tally_gap(&clock->tally, time_ns - clock->last_ns, period);
	clock->last_ns = time_ns;
	clock->tally.samples++;
	add_bounded(&clock->tally.period, period);
}

struct pm_rec_clock_tally pm_rec_clock_evidence_of(
	const struct pm_rec_clock_evidence *evidence, uint32_t event, uint32_t cpu)
{
	if (cpu >= evidence->cpus_len || event >= evidence->events_len)
		return (struct pm_rec_clock_tally){ 0 };
	return evidence->clocks[cpu * evidence->events_len + event].tally;
}

void pm_rec_clock_evidence_reader(const struct pm_rec_clock_evidence *evidence,
				  uint32_t cpu, uint64_t *runs, uint64_t *cpu_ns)
{
	bool known = cpu < evidence->cpus_len;

	*runs = known ? evidence->reader[cpu].runs : 0;
	*cpu_ns = known ? evidence->reader[cpu].cpu_ns : 0;
}
