/* SPDX-License-Identifier: MIT */
#pragma once

#include "options.h"

/* Prints `pmdiff: …` on stderr, unless --quiet. */
void PM_PRINTF(2, 3)
	pmdiff_say(const struct pmdiff_options *options, const char *format, ...);
