/* SPDX-License-Identifier: MIT */
/*
 * Which processes are recorded, and what was there before the events: mappings, names and
 * jitdumps of processes that no record tells of are read from /proc. Events are open before,
 * so nothing falls between; records of what /proc has shown already change nothing.
 */
#pragma once

#include "session.h"

struct pm_rec_follow;

struct pm_rec_follow *pm_rec_follow_new(void); /* NULL without memory */
void pm_rec_follow_free(struct pm_rec_follow *follow);

/* Events are open. 0 or -ENOMEM. */
int pm_rec_follow_begin(struct pm_rec_session *session);
/* Reads from /proc for some milliseconds. 1: there is more to read, 0, or -ENOMEM. */
int pm_rec_follow_read(struct pm_rec_session *session);
/* Records have been missed: all is to be read again. 0 or -ENOMEM. */
int pm_rec_follow_again(struct pm_rec_session *session);
/* The same after a CPU has come, or is back: nothing on it was told of until now. */
int pm_rec_follow_cpus(struct pm_rec_session *session);

/* Before @record is applied: 1 if it belongs to the recording, else 0, or a negative error of
 * the file or of memory. */
int pm_rec_follow_admit(struct pm_rec_session *session, const struct pm_record *record);

/* Forgets tasks that have ended, once there are many. Never blocks. NULL is fine. */
void pm_rec_follow_sweep(struct pm_rec_follow *follow);
/* Whether a process that is recorded has made another one. */
bool pm_rec_follow_forked(const struct pm_rec_session *session);
/* Tells what could not be read, and who may be missing. */
void pm_rec_follow_warn(struct pm_rec_session *session);
