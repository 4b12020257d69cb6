/* SPDX-License-Identifier: MIT */
/*
 * A separate thread builds tables of call frame information if that takes long, so that
 * the rings are still drained.
 */
#pragma once

#include "pm/chain-modules.h"

struct pm_chain_tables;

/* Returns NULL if memory runs out. The thread is created when the first table is needed. */
struct pm_chain_tables *pm_chain_tables_new(void);
/* Waits for the thread only briefly, because the file that it reads may not respond. */
void pm_chain_tables_free(struct pm_chain_tables *tables);
/* Returns the negative errno of creating the thread; 0: it was created, or not needed. */
int pm_chain_tables_error(const struct pm_chain_tables *tables);
const struct pm_unw_helper *pm_chain_tables_helper(struct pm_chain_tables *tables);
