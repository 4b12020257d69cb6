/* SPDX-License-Identifier: MIT */
/* Whether Go programs are recorded. If they are, the kernel follows frame pointers for
 * each sample. */
#pragma once

#include "session.h"

/*
 * Whether the file of the command, or of a process selected by -p or -t, is a Go program.
 * Programs that these start later are not considered; with -a, -C and -G the answer is
 * false.
 */
bool pm_rec_records_go(const struct pm_rec_session *session);
/* Examines the command's file. The file system may not respond, so call this while a
 * signal ends this process. */
void pm_rec_look_at_command(struct pm_rec_session *session);
