/* SPDX-License-Identifier: MIT */
/*
 * The file of a recording, and with --raw the second one, from the header to the footer.
 */
#pragma once

#include "session.h"

/* Opens them, writes the header, and creates the objects that turn records into lines. */
int pm_rec_output_open(struct pm_rec_session *session, struct pm_error *err);
/* Completes the file: what was lost, names, warnings, footer. */
int pm_rec_output_finish(struct pm_rec_session *session, struct pm_error *err);
/* Closes the file. The writer knows its own errors; for any other @error, @err is already
 * set. */
int pm_rec_output_close(struct pm_rec_session *session, int error, struct pm_error *err);
/* Closes the files and removes them. */
void pm_rec_output_remove(struct pm_rec_session *session);
/* Closes the file that this one has replaced, in a child process, because the file system
 * may take any amount of time for that; later calls reap the child. Call this now and
 * then, and when nothing is written any more (@ends). */
void pm_rec_output_let_go(struct pm_rec_session *session, bool ends);
