/* SPDX-License-Identifier: MIT */
/* Reads generated code from the memory of a running process. */
#pragma once

#include "pm/chain-modules.h"

/* To be called before samples are unwound: sets the time and the limit for
 * pm_chain_live_read(). There are @samples samples, and none of them was taken after
 * @time_ns (CLOCK_MONOTONIC). */
void pm_chain_live_begin(struct pm_chain_modules *modules, uint64_t time_ns,
			 size_t samples);
/*
 * Copies @len bytes, with contents from some time after modules->live_since_ns. Returns
 * false if some of them cannot be read: the process may have exited or unmapped them,
 * pmrec may lack the permission, or the process makes pmrec read more than real code
 * needs.
 */
bool pm_chain_live_read(struct pm_chain_modules *modules, pid_t pid, uint64_t address,
			void *out, size_t len);
