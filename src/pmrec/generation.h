/* SPDX-License-Identifier: MIT */
/*
 * Limits the memory of an endless recording. When the table of frames, stacks or modules
 * is full, a new generation of it starts in the same file: from then on equal frames,
 * stacks and modules get new ids. A copy of this process finds the names of the old
 * generation's frames, and writes their lines into a pipe.
 */
#pragma once

#include "session.h"

struct pm_rec_naming;

/* Creates session->chains and session->jit for the open file. Returns 0 or -ENOMEM. */
int pm_rec_generation_chains(struct pm_rec_session *session);
/* Starts a new generation of every table that is full. Call this between two records.
 * Returns 0 or a negative errno. */
int pm_rec_generation_check(struct pm_rec_session *session);
/* Reads the lines that the copy has written so far. */
int pm_rec_generation_collect(struct pm_rec_session *session);
/* Waits for the remaining lines and reads them. */
int pm_rec_generation_finish(struct pm_rec_session *session);
/* Discards tasks that have ended without a record. Call this once a second. */
void pm_rec_generation_sweep(struct pm_rec_session *session);
/* Warns of thread names, mappings and files that exceeded a limit and are therefore wrong
 * or missing. */
void pm_rec_generation_warn(struct pm_rec_session *session);
/* Kills the copy if it still runs. */
void pm_rec_generation_release(struct pm_rec_session *session);
