/* SPDX-License-Identifier: MIT */
/* The fields of tracepoints and probes in the samples of an event, for the file. */
#pragma once

#include "session.h"

struct pm_file_event_count;
struct pm_file_field;

struct pm_rec_fields;
/* Reads the descriptions of the events of session->perf. If one cannot be read, a warning
 * says so and the event has no fields. Returns NULL without memory. */
struct pm_rec_fields *pm_rec_fields_new(struct pm_rec_session *session);
void pm_rec_fields_free(struct pm_rec_fields *fields);
/* Gets the fields of @record, a sample; they are valid until the next call. If @fields is
 * NULL, there are none. Returns 0 or -ENOMEM. */
int pm_rec_fields_of(struct pm_rec_fields *fields, const struct pm_record *record,
		     const struct pm_file_field **out, size_t *len);
/* Gets the counts of the event's group, if requested (`S`). Same contract as above. */
int pm_rec_fields_counts(struct pm_rec_fields *fields, const struct pm_perf *perf,
			 const struct pm_record *record,
			 const struct pm_file_event_count **out, size_t *len);
/* At the end: warns once of samples whose fields could not be read. */
void pm_rec_fields_tell(const struct pm_rec_fields *fields,
			struct pm_rec_session *session);

/* Returns the id of the leader of @event's group, or the event's own id if it is in no
 * group. */
uint32_t pm_rec_fields_leader(const struct pm_perf_event *events, size_t event);
