/* SPDX-License-Identifier: MIT */
/*
 * The sampling engine: the kernel, or pmrec with ptrace.
 */
#pragma once

#include "session.h"

/* Opens the requested engine on the command that session->child has forked. Sets either
 * session->perf or session->ptrace. On failure, @err gives the reason and a remedy. */
int pm_rec_engine_open(struct pm_rec_session *session, struct pm_error *err);
/* For --verbose: prints what was opened. */
void pm_rec_engine_print(const struct pm_rec_session *session);
/* Reports which engine is used and how that affects the report, as warnings and notes. */
void pm_rec_engine_tell(struct pm_rec_session *session);
