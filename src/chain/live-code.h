/* SPDX-License-Identifier: MIT */
/* Reads code that a process has generated from the running process. */
#pragma once

#include "pm/chain-modules.h"

/*
 * Copies @len bytes as they were at some time after modules->live_since_ns. Returns false
 * unless all of them can be read: the process may have ended or unmapped them, or pmrec
 * may lack the permission.
 */
bool pm_chain_live_read(struct pm_chain_modules *modules, pid_t pid, uint64_t address,
			void *ret, size_t len);
