/* SPDX-License-Identifier: MIT */
/*
 * A separate thread makes tables of call frame information that take long, so that the
 * rings are drained meanwhile.
 */
#pragma once

#include "pm/chain-modules.h"

struct pm_chain_tables;

/* NULL: out of memory. The thread starts with the first table. */
struct pm_chain_tables *pm_chain_tables_new(void);
/* Waits only a moment for the thread, because the file that it reads may not respond. */
void pm_chain_tables_free(struct pm_chain_tables *tables);
/* Why the thread could not be created; 0: it was created, or not needed. */
int pm_chain_tables_error(const struct pm_chain_tables *tables);
const struct pm_unw_helper *pm_chain_tables_helper(struct pm_chain_tables *tables);
