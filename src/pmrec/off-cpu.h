/* SPDX-License-Identifier: MIT */
/*
 * --off-cpu: how long threads were blocked, and where.
 *
 * The kernel reports when a task leaves its CPU and when it comes back
 * (PERF_RECORD_SWITCH). The event context-switches, sampled each time, fires in the task
 * that leaves: its stack is the one that blocks. On x86-64 and Linux 6.18 that sample
 * comes first, about a microsecond before the record; this code accepts either order, and
 * the loss of either. When the task comes back, one sample is written: its time is that
 * moment, its period the nanoseconds since the task left. Blocked time therefore includes
 * the time that the task waited for a CPU after it was woken. A task that was preempted
 * was not blocked, and gives no sample.
 */
#pragma once

#include "session.h"

struct pm_rec_off_cpu;

/* Appends the event that supplies the stacks to @specs. It is used for --off-cpu only;
 * its name in the file is "off-cpu". 0 or negative errno. */
int pm_rec_off_cpu_request(struct pm_event_specs *specs, struct pm_error *err);
/* Replaces that event by one that needs no privilege and gives blocked time by thread
 * only. False if the event is not there, or was replaced before. */
bool pm_rec_off_cpu_without_stacks(const struct pm_rec_options *options);
/* Call this when the events are open. Sets session->off_cpu if that event is among them.
 * @write takes each sample of blocked time. 0 or -ENOMEM. */
int pm_rec_off_cpu_open(struct pm_rec_session *session, pm_rec_sample_fn write);
/* Whether event @index is the off-cpu event. */
bool pm_rec_off_cpu_is(const struct pm_rec_session *session, size_t index);
void pm_rec_off_cpu_free(struct pm_rec_off_cpu *off);
/* Sets names and unit in the header, if @event is the off-cpu event. */
void pm_rec_off_cpu_event(const struct pm_rec_session *session,
			  struct pm_file_event *event);

/*
 * Takes one record. Does nothing if @session->off_cpu is NULL or the record does not
 * concern it. 1: the record is done with; 0: others need it, too; or negative errno.
 */
int pm_rec_off_cpu_record(struct pm_rec_session *session, const struct pm_record *record);
/* Writes a sample for each task that is blocked now, up to the end of the recording. 0 or
 * negative errno. */
int pm_rec_off_cpu_finish(struct pm_rec_session *session);
/* Forgets tasks whose end the kernel has not reported. NULL is fine. */
void pm_rec_off_cpu_sweep(struct pm_rec_off_cpu *off);
/* The events are being disabled, or the recording ends: nothing from @end_ns on
 * counts. */
void pm_rec_off_cpu_until(struct pm_rec_session *session, uint64_t end_ns);
/* Call this once all records up to then are processed. Same as _finish(); afterwards it
 * is unknown again which tasks are off CPU. */
int pm_rec_off_cpu_pause(struct pm_rec_session *session);
/* The events were disabled and are enabled now. */
void pm_rec_off_cpu_resume(struct pm_rec_session *session, uint64_t begin_ns);
/* Reports what is missing and why, as warnings and notes: when the events are open, and
 * at the end. */
void pm_rec_off_cpu_tell(struct pm_rec_session *session);
void pm_rec_off_cpu_tell_end(struct pm_rec_session *session);
