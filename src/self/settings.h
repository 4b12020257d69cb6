/* SPDX-License-Identifier: MIT */
/*
 * The settings that result from options and environment.
 */
#pragma once

#include "pm/base.h"
#include <pmself.h>

struct pm_self_settings {
	uint32_t rate_hz;
	const char *event; /* NULL: cycles, or its substitute */
	const char *output; /* NULL: no file */
	const char *table; /* file; NULL: returned to the caller of stop; "": none */
	enum pmself_engine engine;
	enum pmself_call_graph call_graph;
	pid_t tid; /* profile only this thread; 0: all */
	bool automatic; /* the program did not request this profile itself */
};
