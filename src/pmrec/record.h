/* SPDX-License-Identifier: MIT */
/*
 * What each kind of record from the kernel does to the recording.
 */
#pragma once

#include "session.h"

/* 0 or negative errno of the file or of memory. */
int pm_rec_record(struct pm_rec_session *session, const struct pm_record *record);
/* What a sample contains beside its stack. */
struct pm_rec_said {
	const struct pm_file_field *fields;
	size_t fields_len;
	const struct pm_file_event_count *counts;
	size_t counts_len;
	const struct pm_file_branch *branches;
	size_t branches_len;
};

typedef int (*pm_rec_sample_fn)(struct pm_rec_session *session,
				const struct pm_record *record,
				const struct pm_chain *chain,
				const struct pm_rec_said *said);
/* Counts and writes one sample. Time, task, CPU, event and period are those of the
 * record. */
int pm_rec_record_sample(struct pm_rec_session *session, const struct pm_record *record,
			 const struct pm_chain *chain, const struct pm_rec_said *said);
