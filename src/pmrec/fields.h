/* SPDX-License-Identifier: MIT */
/* What the events themselves say: fields of tracepoints and probes, for the file. */
#pragma once

#include "session.h"

struct pm_file_event_count;
struct pm_file_field;

struct pm_rec_fields;
/* Of the events of session->perf. An event whose description cannot be read has no fields,
 * which is told by a warning. NULL: out of memory. */
struct pm_rec_fields *pm_rec_fields_new(struct pm_rec_session *session);
void pm_rec_fields_free(struct pm_rec_fields *fields);
/* The fields of @record, a sample; good until the next call. Without @fields none. 0 or
 * -ENOMEM. */
int pm_rec_fields_of(struct pm_rec_fields *fields, const struct pm_record *record,
		     const struct pm_file_field **ret, size_t *len);
/* What its group had counted, where that was asked for (`S`); as above. */
int pm_rec_fields_counts(struct pm_rec_fields *fields, const struct pm_perf *perf,
			 const struct pm_record *record,
			 const struct pm_file_event_count **ret, size_t *len);
/* Tells of samples whose fields could not be had, once, at the end. */
void pm_rec_fields_tell(const struct pm_rec_fields *fields,
			struct pm_rec_session *session);

/* The id of the event that leads the group of @event: its own where it is in none. */
uint32_t pm_rec_fields_leader(const struct pm_perf_event *events, size_t event);
