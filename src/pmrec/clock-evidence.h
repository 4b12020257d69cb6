/* SPDX-License-Identifier: MIT */
/*
 * What the samples of a CPU's clock say of the clock itself, and when the reader ran: kept while
 * recording, a few numbers for each CPU, so that a sum of periods that differs from the CPU time
 * can be explained afterwards.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pm_rec_clock_evidence;

/* NULL: no memory. Of CPUs with numbers below @cpus_len. */
struct pm_rec_clock_evidence *pm_rec_clock_evidence_new(size_t cpus_len,
							size_t events_len);
void pm_rec_clock_evidence_free(struct pm_rec_clock_evidence *evidence);

/* The calling thread is about to wait: it has read until now, since the call before. */
void pm_rec_clock_evidence_pause(struct pm_rec_clock_evidence *evidence);
/* A sample of a CPU's clock. In order of time for each CPU. */
void pm_rec_clock_evidence_sample(struct pm_rec_clock_evidence *evidence, uint32_t event,
				  uint32_t cpu, uint64_t time_ns, uint64_t period);

/* Of one event on one CPU. */
struct pm_rec_clock_tally {
	uint64_t samples, period; /* its sum */
	uint64_t longer; /* gaps between samples that are longer than a period */
	uint64_t late,
		late_ns; /* shorter gaps, for the tick before came late: by how much */
};
/* Zeros where nothing is known. */
struct pm_rec_clock_tally pm_rec_clock_evidence_of(
	const struct pm_rec_clock_evidence *evidence, uint32_t event, uint32_t cpu);
/* How often the reader ran on @cpu, and for how long. */
void pm_rec_clock_evidence_reader(const struct pm_rec_clock_evidence *evidence,
				  uint32_t cpu, uint64_t *runs, uint64_t *cpu_ns);
