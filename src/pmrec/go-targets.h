/* SPDX-License-Identifier: MIT */
/* Whether Go programs are recorded: the kernel then follows frame pointers for each sample. */
#pragma once

#include "session.h"

/*
 * Whether the command, or a process that -p or -t names, is a Go program, by its file. Programs
 * that these start later do not count, nor does anything with -a, -C and -G.
 */
bool pm_rec_records_go(const struct pm_rec_session *session);
/* Looks at the command's file. It may be on a file system that does not answer: to be called while
 * a signal ends this process. */
void pm_rec_look_at_command(struct pm_rec_session *session);
