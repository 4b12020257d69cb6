/* SPDX-License-Identifier: MIT */
/*
 * The file of a recording, and with --raw the second one, from the header to the footer.
 */
#pragma once

#include "session.h"

/* Opens them, writes the header, and makes what turns records into lines. */
int pm_rec_output_open(struct pm_rec_session *session, struct pm_error *err);
/* Completes the file: what was lost, names, warnings, footer. */
int pm_rec_output_finish(struct pm_rec_session *session, struct pm_error *err);
/* What was wrong with the file is known to the writer; anything else, @error, is in @err
 * already. */
int pm_rec_output_close(struct pm_rec_session *session, int error, struct pm_error *err);
/* Closes the files and leaves none behind. */
void pm_rec_output_remove(struct pm_rec_session *session);
/* Makes session->chains and session->jit, for the file that is open. 0 or -ENOMEM. */
int pm_rec_output_chains(struct pm_rec_session *session);
/* To be called now and then, and when nothing is written any more (@ends). Closes the file that
 * this one has replaced, in a child process, because the file system may take any time for
 * that; later calls wait for the child. */
void pm_rec_output_let_go(struct pm_rec_session *session, bool ends);
