/* SPDX-License-Identifier: MIT */
/*
 * --off-cpu: how long threads were blocked, and in which place.
 *
 * The kernel tells when a task leaves its CPU and when it comes back (PERF_RECORD_SWITCH),
 * and the event context-switches, sampled each time, fires in the task that leaves: its
 * stack is the one that blocks. On x86-64 and Linux 6.18 that sample comes first, about a
 * microsecond before the record; here either may come first, and either may be lost. When
 * the task comes back, one sample is written: its time is that moment, its period the
 * nanoseconds since the task left. So blocked time includes what the task waited for a CPU
 * after it was woken. A task that was preempted was not blocked, and gives no sample.
 */
#pragma once

#include "session.h"

struct pm_rec_off_cpu;

/* Appends the event that tells the stacks to @specs, which is for --off-cpu alone: its name
 * in the file is "off-cpu". 0 or negative errno. */
int pm_rec_off_cpu_request(struct pm_event_specs *specs, struct pm_error *err);
/* Puts one that needs no privilege in its place: blocked time by thread alone. False when it
 * is not there, or that was done before. */
bool pm_rec_off_cpu_without_stacks(const struct pm_rec_options *options);
/* When the events are open: session->off_cpu, if there is that event among them. 0 or -ENOMEM. */
int pm_rec_off_cpu_open(struct pm_rec_session *session);
/* Whether event @index is that one. */
bool pm_rec_off_cpu_is(const struct pm_rec_session *session, size_t index);
void pm_rec_off_cpu_free(struct pm_rec_off_cpu *off);
/* Names and unit in the header, if @event is that one. */
void pm_rec_off_cpu_event(const struct pm_rec_session *session,
			  struct pm_file_event *event);

/*
 * Each takes one record, and does nothing where @session->off_cpu is NULL or the record is
 * not for it. 1: it was, and is done with; 0: it is for others, too; or negative errno.
 */
int pm_rec_off_cpu_record(struct pm_rec_session *session, const struct pm_record *record);
/* Each task that is blocked now gets a sample up to the end of the recording. 0 or negative
 * errno. */
int pm_rec_off_cpu_finish(struct pm_rec_session *session);
/* Forgets tasks that have ended without a report of the kernel. NULL is fine. */
void pm_rec_off_cpu_sweep(struct pm_rec_off_cpu *off);
/* The events are being disabled, or the recording ends: what happens from @end_ns on does not count. */
void pm_rec_off_cpu_until(struct pm_rec_session *session, uint64_t end_ns);
/* Once all records up to then are taken: as _finish(), and who is away is unknown again. */
int pm_rec_off_cpu_pause(struct pm_rec_session *session);
/* The events are enabled, and were not before. */
void pm_rec_off_cpu_resume(struct pm_rec_session *session, uint64_t begin_ns);
/* What is missing and why: warnings and notes. When the events are open, and at the end. */
void pm_rec_off_cpu_tell(struct pm_rec_session *session);
void pm_rec_off_cpu_tell_end(struct pm_rec_session *session);
