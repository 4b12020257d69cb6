/* SPDX-License-Identifier: MIT */
/*
 * Whether code was mapped or unmapped, for engines that are not told. To read all mappings and
 * find nothing new costs far more than to see that nothing is.
 */
#pragma once

#include "pm/base.h"

/* @known is what the last call has left there, 0 at first. True also if it cannot be known. */
bool pm_self_mappings_changed(uint64_t *known);
