/* SPDX-License-Identifier: MIT */
/* Real programs, each with about a second of work or more. */
#pragma once

enum {
	WORKLOAD_ARGS_MAX = 8,
};

struct workload {
	const char *name; /* where most samples are taken */
	const char
		*argv[WORKLOAD_ARGS_MAX]; /* NULL-terminated; relative to the directory */
};

/* Creates their input files in the current directory; 0 or -errno. */
int workloads_prepare(void);
/* Ends with a NULL name. */
extern const struct workload workloads[];
