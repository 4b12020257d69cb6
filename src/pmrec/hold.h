/* SPDX-License-Identifier: MIT */
/*
 * A queue of samples to be written to the file. If a stack was longer than its copy, the
 * sample waits half a second, because later samples and reads of the thread's memory may
 * show its outer callers (pm_chains_settle()). Later samples wait with it, to keep the
 * file in order of time.
 */
#pragma once

#include "pm/file.h"
#include "session.h"

struct pm_rec_hold;

struct pm_rec_hold *pm_rec_hold_new(void); /* NULL without memory */
void pm_rec_hold_free(struct pm_rec_hold *hold);
/* Counts a chain for the footer; with @counted false, subtracts it again. */
void pm_rec_hold_count(struct pm_rec_counts *counts, const struct pm_chain *chain,
		       bool counted);
/* Writes a sample, or queues a copy of it if it has to wait. Its stack and stop reason
 * are read from @chain. Returns 0 or a negative errno. */
int pm_rec_hold_add(struct pm_rec_session *session, const struct pm_file_sample *sample,
		    const struct pm_chain *chain, const struct pm_chain_names *names);
/* Writes the samples from before @time_ns (UINT64_MAX: all), and those that do not need
 * to wait. Returns 0 or a negative errno. */
int pm_rec_hold_release(struct pm_rec_session *session, uint64_t time_ns);
/* Returns the time before which samples have waited long enough. @now_ns is the time of
 * the newest record. */
uint64_t pm_rec_hold_until(uint64_t now_ns);

/* Starts a new generation of stacks if this one is full. Samples that wait keep their
 * stacks. Returns 0 or a negative errno. */
int pm_rec_hold_new_stacks(struct pm_rec_session *session);
