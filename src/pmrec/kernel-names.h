/* SPDX-License-Identifier: MIT */
/*
 * The names of kernel functions. The kernel generates the text of /proc/kallsyms anew for
 * each reader, 4 KB per read. Reading it takes longer than all other work at the end of a
 * short recording. Therefore a separate thread reads it while the target still runs, once
 * the first kernel frame has been seen.
 */
#pragma once

#include "session.h"

/* Starts to read if a kernel frame has been seen and names are wanted. */
void pm_rec_kernel_names_begin(struct pm_rec_session *session);
/* Call this at the end. It raises the priority of the reading thread, which other busy
 * threads may have kept from running. */
void pm_rec_kernel_names_hurry(struct pm_rec_session *session);
/*
 * Gets the table, borrowed from the session; reads it now if begin() has not. @addresses
 * are the addresses to be named. A table that was read early may be wrong about one of
 * them, because modules were loaded or unloaded or because the code there is not
 * permanent; in that case the table is read again. Returns 0 or a negative errno, with
 * the reason in @err.
 */
int pm_rec_kernel_names_get(struct pm_rec_session *session, const uint64_t *addresses,
			    size_t addresses_len, const struct pm_kallsyms **out,
			    struct pm_error *err);
void pm_rec_kernel_names_free(struct pm_rec_kernel_names *names);
