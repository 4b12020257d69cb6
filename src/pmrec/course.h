/* SPDX-License-Identifier: MIT */
/*
 * A recording from its beginning to its end.
 */
#pragma once

#include "session.h"

/* Records until the command ends or the user stops it, then waits for the command. */
int pm_rec_course_run(struct pm_rec_session *session, struct pm_error *err);
