/* SPDX-License-Identifier: MIT */
/* Real programs with about a second or more of work each. */
#pragma once

enum {
	WORKLOAD_ARGS_MAX = 8,
};

struct workload {
	const char *name; /* what most samples are of */
	const char
		*argv[WORKLOAD_ARGS_MAX]; /* NULL-terminated; relative to the directory */
};

/* Makes what they read in the current directory; 0 or -errno. */
int workloads_prepare(void);
/* NULL-named at the end. */
extern const struct workload workloads[];
