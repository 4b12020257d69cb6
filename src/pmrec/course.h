/* SPDX-License-Identifier: MIT */
/*
 * A recording from its beginning to its end.
 */
#pragma once

#include "session.h"

/* Records until something ends it: see enum pm_rec_end. Interrupted, or when the file fails,
 * it waits for a command that is the target. */
int pm_rec_course_run(struct pm_rec_session *session, struct pm_error *err);
/* Until the command that runs still has ended. @failed: why it is waited for has been said. */
void pm_rec_course_wait(struct pm_rec_session *session, bool failed);
/* After a sample: whether it was the last one that --max-samples and --max-size allow. */
void pm_rec_course_limit(struct pm_rec_session *session);
/* Why it ended, if that was none of the usual ends, for people and in the file. */
void pm_rec_course_tell_end(struct pm_rec_session *session);
