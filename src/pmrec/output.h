/* SPDX-License-Identifier: MIT */
/*
 * The file of a recording, and the second file with --raw, from the header to the footer.
 */
#pragma once

#include "session.h"

/* Opens the files, writes the header, and creates the objects that turn records into
 * lines. */
int pm_rec_output_open(struct pm_rec_session *session, struct pm_error *err);
/* Completes the file: writes the losses, names, warnings and the footer. */
int pm_rec_output_finish(struct pm_rec_session *session, struct pm_error *err);
/* Closes the file. @error is 0 or the failure so far: of the writer, which knows the
 * reason, or another one, for which the caller has set @err. */
int pm_rec_output_close(struct pm_rec_session *session, int error, struct pm_error *err);
/* Closes the files and removes them. */
void pm_rec_output_remove(struct pm_rec_session *session);
/* Closes the file that the new one has replaced, in a child process, because the file
 * system may take any amount of time for that; later calls reap the child. Call this now
 * and then, and with @ends when nothing more is written. */
void pm_rec_output_let_go(struct pm_rec_session *session, bool ends);
