/* SPDX-License-Identifier: MIT */
/*
 * What is known at the end: warnings, the footer of the file, the line for the user.
 */
#pragma once

#include "session.h"

/* Reads the kernel's own counts of lost samples. After the last round. */
void pm_rec_summary_count_lost(struct pm_rec_session *session);
/* What the numbers say against themselves: lost, missing, none at all. */
void pm_rec_summary_warn(struct pm_rec_session *session);
/* Only that files could not be read; before their modules are forgotten. */
void pm_rec_summary_warn_unreachable(struct pm_rec_session *session);
int pm_rec_summary_footer(struct pm_rec_session *session);
/* The one line, and with --verbose what it all cost. Unless --quiet. */
void pm_rec_summary_print(const struct pm_rec_session *session);
