/* SPDX-License-Identifier: MIT */
/*
 * A recording from start to end.
 */
#pragma once

#include "session.h"

/* Records until something ends the recording: see enum pm_rec_end. After an interrupt, or
 * when writing the file fails, waits for the command if the command is the target. */
int pm_rec_course_run(struct pm_rec_session *session, struct pm_error *err);
/* Waits until the running command has ended. @failed: the reason for waiting has been
 * printed already. */
void pm_rec_course_wait(struct pm_rec_session *session, bool failed);
