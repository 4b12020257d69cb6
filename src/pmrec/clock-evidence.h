/* SPDX-License-Identifier: MIT */
/*
 * Evidence about the clock of each CPU: gaps between its samples, and when the reader
 * ran. The recorder keeps a few numbers for each CPU. They help to explain afterwards why
 * the sum of periods differs from the CPU time.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pm_rec_clock_evidence;

/* For CPUs with numbers below @cpus_len. Returns NULL without memory. */
struct pm_rec_clock_evidence *pm_rec_clock_evidence_new(size_t cpus_len,
							size_t events_len);
void pm_rec_clock_evidence_free(struct pm_rec_clock_evidence *evidence);

/* Call this before the thread waits: it accounts the thread's CPU time since the previous
 * call as time of reading. */
void pm_rec_clock_evidence_pause(struct pm_rec_clock_evidence *evidence);
/* Adds a sample of a CPU's clock. Samples of one CPU must be added in order of time. */
void pm_rec_clock_evidence_sample(struct pm_rec_clock_evidence *evidence, uint32_t event,
				  uint32_t cpu, uint64_t time_ns, uint64_t period);

/* The evidence about one event on one CPU. */
struct pm_rec_clock_tally {
	uint64_t samples, period; /* sum of the periods */
	uint64_t longer; /* gaps between samples that are longer than a period */
	uint64_t late, late_ns; /* shorter gaps: how many, and by how much */
};
/* Returns zeros if nothing is known. */
struct pm_rec_clock_tally pm_rec_clock_evidence_of(
	const struct pm_rec_clock_evidence *evidence, uint32_t event, uint32_t cpu);
/* Returns how often the reader ran on @cpu, and for how long. */
void pm_rec_clock_evidence_reader(const struct pm_rec_clock_evidence *evidence,
				  uint32_t cpu, uint64_t *runs, uint64_t *cpu_ns);
