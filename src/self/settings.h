/* SPDX-License-Identifier: MIT */
/*
 * What is to be done, once options and environment have been read.
 */
#pragma once

#include "pm/base.h"
#include <pmself.h>

struct pm_self_settings {
	uint32_t rate_hz;
	const char *event; /* NULL: cycles, or what stands for it */
	const char *output; /* NULL: no file */
	const char *table; /* NULL: handed to who stops; "": none */
	enum pmself_engine engine;
	enum pmself_call_graph call_graph;
	pid_t tid; /* of this thread only; 0: all */
	bool automatic; /* nobody asked for this very profile */
};
