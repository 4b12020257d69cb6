/* SPDX-License-Identifier: MIT */
/*
 * What each kind of record from the kernel does to the recording.
 */
#pragma once

#include "session.h"

/* 0 or negative errno of the file or of memory. */
int pm_rec_record(struct pm_rec_session *session, const struct pm_record *record);
/* Counts and writes one sample. Time, task, CPU, event and period are those of the
 * record. */
int pm_rec_record_sample(struct pm_rec_session *session, const struct pm_record *record,
			 const struct pm_chain *chain, const struct pm_rec_said *said);
