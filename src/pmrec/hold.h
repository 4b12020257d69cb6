/* SPDX-License-Identifier: MIT */
/*
 * Samples on their way into the file. One whose stack was longer than the copy waits a moment,
 * for later samples and looks at the thread's memory may show its outer callers
 * (pm_chains_settle()). Those behind it wait with it: the file has all in one order.
 */
#pragma once

#include "pm/file.h"
#include "session.h"

struct pm_rec_hold;

struct pm_rec_hold *pm_rec_hold_new(void); /* NULL without memory */
void pm_rec_hold_free(struct pm_rec_hold *hold);
/* Counts a chain for the footer, or, with @counted false, no more. */
void pm_rec_hold_count(struct pm_rec_counts *counts, const struct pm_chain *chain,
		       bool counted);
/* Takes a sample, which is copied where it has to wait. @chain is what its stack and stop are
 * of. 0 or negative errno. */
int pm_rec_hold_add(struct pm_rec_session *session, const struct pm_file_sample *sample,
		    const struct pm_chain *chain);
/* Writes the samples from before @time_ns, UINT64_MAX: all; and those that need not wait. 0 or
 * negative errno. */
int pm_rec_hold_release(struct pm_rec_session *session, uint64_t time_ns);
/* Which samples have waited long enough when the youngest record is of @now_ns. */
uint64_t pm_rec_hold_until(uint64_t now_ns);
/* Before a record that gives a thread another name, which the samples so far do not have. */
int pm_rec_hold_before(struct pm_rec_session *session, const struct pm_record *record);
