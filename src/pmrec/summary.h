/* SPDX-License-Identifier: MIT */
/*
 * The end of a recording: warnings, the footer of the file, the summary line for the
 * user.
 */
#pragma once

#include "session.h"

/* Reads the kernel's counts of lost samples. Call this after the last round. */
void pm_rec_summary_count_lost(struct pm_rec_session *session);
/* Warns of everything that makes the numbers doubtful: lost or missing samples, or none
 * at all. */
void pm_rec_summary_warn(struct pm_rec_session *session);
/* Warns of files that could not be read. Call this before their modules are discarded. */
void pm_rec_summary_warn_unreachable(struct pm_rec_session *session);
int pm_rec_summary_footer(struct pm_rec_session *session);
/* Prints the summary line, and with --verbose the cost of the recording. Prints nothing
 * with --quiet. */
void pm_rec_summary_print(const struct pm_rec_session *session);
