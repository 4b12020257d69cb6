/* SPDX-License-Identifier: MIT */
/*
 * --off-cpu: how long threads were blocked, and where.
 *
 * The kernel reports when a task leaves its CPU and when it returns to one
 * (PERF_RECORD_SWITCH). The event context-switches, sampled each time, fires in the task
 * that leaves: its stack shows where the task blocks. On x86-64 and Linux 6.18 that
 * sample comes first, about a microsecond before the record; this code accepts either
 * order, and the loss of either. When the task returns, one sample is written. Its time
 * is that of the return, and its period is the time since the task left, in nanoseconds.
 * Blocked time therefore includes the time that the task waited for a CPU after it was
 * woken. A task that was preempted was not blocked, and gives no sample.
 */
#pragma once

#include "session.h"

struct pm_rec_off_cpu;

/* Appends the event that supplies the stacks to @specs. It is used for --off-cpu only;
 * its name in the file is "off-cpu". Returns 0 or a negative errno. */
int pm_rec_off_cpu_request(struct pm_event_specs *specs, struct pm_error *err);
/* Replaces that event by one that needs no privilege and gives the blocked time of each
 * thread, but no stacks. Returns false if the event is not there, or was replaced
 * before. */
bool pm_rec_off_cpu_without_stacks(const struct pm_rec_options *options);
/* Call this when the events are open. Sets session->off_cpu if the off-cpu event is among
 * them. @write is called with each sample of blocked time. Returns 0 or -ENOMEM. */
int pm_rec_off_cpu_open(struct pm_rec_session *session, pm_rec_sample_fn write);
/* Whether event @index is the off-cpu event. */
bool pm_rec_off_cpu_is(const struct pm_rec_session *session, size_t index);
void pm_rec_off_cpu_free(struct pm_rec_off_cpu *off);
/* Sets the names and the unit of @event for the header if it is the off-cpu event. */
void pm_rec_off_cpu_event(const struct pm_rec_session *session,
			  struct pm_file_event *event);

/*
 * Processes one record. Does nothing if @session->off_cpu is NULL or the record does not
 * concern it. Returns 1 if the record needs no other processing, 0 if it does, or a
 * negative errno.
 */
int pm_rec_off_cpu_record(struct pm_rec_session *session, const struct pm_record *record);
/* Writes a sample for each task that is blocked now, up to the end of the recording.
 * Returns 0 or a negative errno. */
int pm_rec_off_cpu_finish(struct pm_rec_session *session);
/* Discards tasks whose end the kernel has not reported. @off may be NULL. */
void pm_rec_off_cpu_sweep(struct pm_rec_off_cpu *off);
/* Call this when the events are being disabled or the recording ends: nothing from
 * @end_ns on counts. */
void pm_rec_off_cpu_until(struct pm_rec_session *session, uint64_t end_ns);
/* Call this after pm_rec_off_cpu_until(), once all records up to @end_ns are processed.
 * Same as _finish(), but afterwards it is unknown which tasks are off CPU. */
int pm_rec_off_cpu_pause(struct pm_rec_session *session);
/* Call this when events that were disabled have been enabled: records count from
 * @begin_ns on. */
void pm_rec_off_cpu_resume(struct pm_rec_session *session, uint64_t begin_ns);
/* Reports what is missing and why, as warnings and notes. Call the first one when the
 * events are open, the second one at the end. */
void pm_rec_off_cpu_tell(struct pm_rec_session *session);
void pm_rec_off_cpu_tell_end(struct pm_rec_session *session);
