/* SPDX-License-Identifier: MIT */
/*
 * The effect of each kind of kernel record on the recording.
 */
#pragma once

#include "session.h"

/* Processes one record. Returns 0 or a negative errno of the file or of memory. */
int pm_rec_record(struct pm_rec_session *session, const struct pm_record *record);
/* Counts and writes one sample. The time, task, CPU, event and period are taken from the
 * record. */
int pm_rec_record_sample(struct pm_rec_session *session, const struct pm_record *record,
			 const struct pm_chain *chain, const struct pm_rec_said *said);
