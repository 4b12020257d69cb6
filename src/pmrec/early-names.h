/* SPDX-License-Identifier: MIT */
/*
 * Names are looked up at the end, for all addresses of a module at once. Most of the time
 * is spent on work that does not depend on the addresses: the compressed debug
 * information of libc takes 60 ms to inflate. Helper processes therefore do that part
 * while the target runs, for the first modules that have frames, on CPUs that are
 * otherwise idle.
 */
#pragma once

#include "pm/symbol-crew.h"
#include "session.h"

/* Whether a process may be forked that does more than an exec while other threads run.
 * With a sanitizer this is not safe: a lock that another thread holds stays locked in the
 * child. */
bool pm_rec_early_names_may_fork(void);
/* Starts a helper if a module has got its first frame; at most one per call. */
void pm_rec_early_names_look(struct pm_rec_session *session);
/* Reaps helpers that have ended. Call this now and then. */
void pm_rec_early_names_reap(struct pm_rec_session *session);
/* Returns the helper that has opened module @id, borrowed, or NULL. */
struct pm_symbol_early *pm_rec_early_names_of(const struct pm_rec_session *session,
					      uint32_t id);
void pm_rec_early_names_free(struct pm_rec_early_names *names);

/* Opens the files that contain the names of module @id. Runs in a helper process. */
void pm_rec_early_names_open(const struct pm_rec_session *session, uint32_t id,
			     struct pm_symbol_input *out);
