/* SPDX-License-Identifier: MIT */
/* Whether Go programs are recorded. If so, the kernel follows frame pointers for each
 * sample. */
#pragma once

#include "session.h"

/*
 * Whether the command, or a process selected by -p or -t, is a Go program; its file
 * decides. Programs that these start later do not count, and with -a, -C and -G nothing
 * does.
 */
bool pm_rec_records_go(const struct pm_rec_session *session);
/* Examines the command's file. The file system may not respond: call this while a signal
 * ends this process. */
void pm_rec_look_at_command(struct pm_rec_session *session);
