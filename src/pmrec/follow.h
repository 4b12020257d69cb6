/* SPDX-License-Identifier: MIT */
/*
 * Which processes are recorded, and what existed before the events were opened. Mappings,
 * names and jitdumps of processes that existed before are read from /proc, because no
 * record describes them. The events are opened first, so that no change is missed. A
 * record changes nothing if it describes something that has already been read from /proc.
 */
#pragma once

#include "session.h"

struct pm_rec_follow;

struct pm_rec_follow *pm_rec_follow_new(void); /* NULL without memory */
void pm_rec_follow_free(struct pm_rec_follow *follow);

/* Queues the targets for pm_rec_follow_read(). To be called after the events have been
 * opened. Returns 0 or -ENOMEM. */
int pm_rec_follow_begin(struct pm_rec_session *session);
/* Reads from /proc for some milliseconds. Returns 1 if there is more to read, 0 if not,
 * or -ENOMEM. */
int pm_rec_follow_read(struct pm_rec_session *session);
/* Call this when records were lost: queues all processes to be read again. Returns 0 or
 * -ENOMEM. */
int pm_rec_follow_again(struct pm_rec_session *session);
/* The same, to be called after a CPU has come online: nothing on it was reported until
 * now. */
int pm_rec_follow_cpus(struct pm_rec_session *session);

/* Call this before @record is applied. Returns 1 if it belongs to the recording, 0 if
 * not, or a negative error of the file or of memory. */
int pm_rec_follow_admit(struct pm_rec_session *session, const struct pm_record *record);

/* Discards tasks that have ended, once there are many. Never blocks. @follow may be
 * NULL. */
void pm_rec_follow_sweep(struct pm_rec_follow *follow);
/* Whether a recorded process has created another one. */
bool pm_rec_follow_forked(const struct pm_rec_session *session);
/* Warns of what could not be read, and of processes that may be missing. */
void pm_rec_follow_warn(struct pm_rec_session *session);
