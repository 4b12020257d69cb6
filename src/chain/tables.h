/* SPDX-License-Identifier: MIT */
/*
 * A separate thread makes tables of call frame information that take long, while the
 * rings are drained.
 */
#pragma once

#include "pm/chain-modules.h"

struct pm_chain_tables;

/* NULL without memory. The thread begins with the first table. */
struct pm_chain_tables *pm_chain_tables_new(void);
/* Waits for the thread only for a moment: the file that it reads may be out of reach. */
void pm_chain_tables_free(struct pm_chain_tables *tables);
/* Why no thread could be made; 0: there is one, or none was needed. */
int pm_chain_tables_error(const struct pm_chain_tables *tables);
const struct pm_unw_helper *pm_chain_tables_helper(struct pm_chain_tables *tables);
