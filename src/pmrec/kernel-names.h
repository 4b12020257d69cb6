/* SPDX-License-Identifier: MIT */
/*
 * The names of kernel functions. The kernel formats the text of /proc/kallsyms anew for
 * each reader, 4 KB a read. Reading it takes longer than all other work at the end of a
 * short recording. Therefore another thread reads it while the target still runs, once
 * the first kernel frame has been seen.
 */
#pragma once

#include "session.h"

/* Starts to read once a kernel frame has been seen, if names are wanted. */
void pm_rec_kernel_names_begin(struct pm_rec_session *session);
/* At the end: other busy threads may have kept the reading thread from its CPU so far. */
void pm_rec_kernel_names_hurry(struct pm_rec_session *session);
/*
 * The table, borrowed from the session; reads it now if begin() has not. @addresses are
 * those to be named. The early table may be wrong about one of them, because modules came
 * or went or because the code there is not permanent; in that case the table is read
 * again. Returns 0 or negative errno, with the reason in @err.
 */
int pm_rec_kernel_names_get(struct pm_rec_session *session, const uint64_t *addresses,
			    size_t addresses_len, const struct pm_kallsyms **out,
			    struct pm_error *err);
void pm_rec_kernel_names_free(struct pm_rec_kernel_names *names);
