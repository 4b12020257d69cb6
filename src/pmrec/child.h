/* SPDX-License-Identifier: MIT */
/*
 * The command's life and the signals that are sent to this program.
 */
#pragma once

#include "session.h"

/* Forks the command, stopped, to run as @user (NULL: as we do). With @data_on_stdout its output goes to stderr, so that the
 * recording has stdout to itself. */
int pm_rec_child_prepare(struct pm_rec_child *child, char **command, const char *user,
			 bool data_on_stdout, struct pm_error *err);
/* From here on signals are read by pm_rec_child_signals(). After _prepare(): the command
 * shall not inherit the mask. With @snapshots SIGUSR2 is one of them. */
int pm_rec_child_catch_signals(struct pm_rec_child *child, bool snapshots,
			       struct pm_error *err);
void pm_rec_child_release(struct pm_rec_child *child);

/* Takes what signals there are. The first wish to stop is handed on to a command that did
 * not get it from the terminal; the second kills it. */
void pm_rec_child_signals(struct pm_rec_child *child);
/* Takes the command's exit status when it has ended. */
void pm_rec_child_reap(struct pm_rec_child *child);
