/* SPDX-License-Identifier: MIT */
/*
 * With --verbose, on a terminal: how the recording goes, on one line.
 */
#pragma once

#include "session.h"

void pm_rec_progress(struct pm_rec_session *session, uint64_t now_ns);
/* Leaves the line empty for what comes. */
void pm_rec_progress_end(struct pm_rec_session *session);
