/* SPDX-License-Identifier: MIT */
/*
 * Names are looked up at the end, for all addresses of a module at once. Most of the time for
 * that goes into what does not depend on the addresses: the compressed debug information of
 * libc takes 60 ms to inflate. Helper processes therefore do that part while the target runs,
 * for the first modules that have frames, on CPUs that have nothing else to do.
 */
#pragma once

#include "session.h"

/* Whether a process may be forked for more than an exec while other threads run: in a fork, a
 * sanitizer's locks stay as another thread held them. */
bool pm_rec_early_names_may_fork(void);
/* Starts at most one helper, if a module has got its first frame. */
void pm_rec_early_names_look(struct pm_rec_session *session);
/* To be called now and then: waits for helpers that have ended. */
void pm_rec_early_names_reap(struct pm_rec_session *session);
/* The helper that has module @id open, borrowed. NULL: none. */
struct pm_symbol_early *pm_rec_early_names_of(const struct pm_rec_session *session,
					      uint32_t id);
void pm_rec_early_names_free(struct pm_rec_early_names *names);
