/* SPDX-License-Identifier: MIT */
/*
 * Who samples: the kernel, or pmrec by ptrace.
 */
#pragma once

#include "session.h"

/* Opens the engine that was asked for on the command that session->child has forked: then one
 * of session->perf and session->ptrace is set. @err tells why not, and what would do. */
int pm_rec_engine_open(struct pm_rec_session *session, struct pm_error *err);
/* What was opened, for --verbose. */
void pm_rec_engine_print(const struct pm_rec_session *session);
/* Which engine it is, and what that changes for who reads the report: warnings and notes. */
void pm_rec_engine_tell(struct pm_rec_session *session);
