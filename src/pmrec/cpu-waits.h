/* SPDX-License-Identifier: MIT */
/*
 * How long the recorder itself had to wait for a CPU, before and after the recording. On
 * an overloaded machine, this is why a recording of three seconds takes much longer.
 */
#pragma once

#include "session.h"

/* Call these when the recording starts, and when it has ended. */
void pm_rec_cpu_waits_begin(struct pm_rec_session *session);
void pm_rec_cpu_waits_end(struct pm_rec_session *session);
/* Warns if the waits so far were long. */
void pm_rec_cpu_waits_warn(struct pm_rec_session *session);
