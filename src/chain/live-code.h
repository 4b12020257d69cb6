/* SPDX-License-Identifier: MIT */
/* Code that a process has generated, read from the running process. */
#pragma once

#include "pm/chain-modules.h"

/*
 * Copies @len bytes as they were at some time after modules->live_since_ns. False when not all
 * of them can be read: the process has ended, unmapped them, or may not be looked at.
 */
bool pm_chain_live_read(struct pm_chain_modules *modules, pid_t pid, uint64_t address,
			void *ret, size_t len);
