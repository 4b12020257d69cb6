/* SPDX-License-Identifier: MIT */
/*
 * With --verbose, on a terminal: the progress of the recording, on one line.
 */
#pragma once

#include "session.h"

void pm_rec_progress(struct pm_rec_session *session, uint64_t now_ns);
/* Clears the line. */
void pm_rec_progress_end(struct pm_rec_session *session);
