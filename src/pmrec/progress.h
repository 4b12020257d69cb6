/* SPDX-License-Identifier: MIT */
/*
 * The messages of pmrec on stderr: warnings, the end of the recording, and with --verbose, on a
 * terminal, its progress on one line.
 */
#pragma once

#include "session.h"

void pm_rec_progress(struct pm_rec_session *session, uint64_t now_ns);
/* Clears the progress line. */
void pm_rec_progress_end(struct pm_rec_session *session);

/* Prints `pmrec: warning: …` on stderr unless --quiet, and adds a note to the
 * file once it is open. */
void pm_rec_warn(struct pm_rec_session *session, const char *text);
/* Reports that the recording has failed and stopped, but the command still runs. */
void pm_rec_say_stopped(const struct pm_error *err, int error);
/* Reports that the recording has stopped, but the command has not. @failed: the failure
 * has been printed. */
void pm_rec_say_waiting(const struct pm_rec_session *session, bool failed);
/* Reports an unusual end of the recording, on stderr and in the file. */
void pm_rec_say_end(struct pm_rec_session *session);
