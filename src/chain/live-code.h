/* SPDX-License-Identifier: MIT */
/* Reads code that a process has generated from the running process. */
#pragma once

#include "pm/chain-modules.h"

/* Sets the time and the limit for pm_chain_live_read() for the next @samples, none of
 * which is younger than @time_ns (CLOCK_MONOTONIC). */
void pm_chain_live_begin(struct pm_chain_modules *modules, uint64_t time_ns,
			 size_t samples);
/*
 * Copies @len bytes as they were at some time after modules->live_since_ns. Returns false
 * unless all of them can be read: the process may have ended or unmapped them, pmrec may
 * lack the permission, or the process makes pmrec read more than real code needs.
 */
bool pm_chain_live_read(struct pm_chain_modules *modules, pid_t pid, uint64_t address,
			void *out, size_t len);
