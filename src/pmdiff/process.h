/* SPDX-License-Identifier: MIT */
/*
 * Runs other programs directly, without a shell: git, pmstat, and the shell that runs
 * builds.
 */
#pragma once

#include "pm/base.h"

struct pmdiff_process {
	const char *dir; /* NULL: the working directory */
	const char *const *argv; /* NULL-terminated; the first is looked up in PATH */
	const char *const
		*env; /* NULL-terminated list of NAME=VALUE, added to our environment;
		       * NULL: none */
	int in, out, err; /* borrowed; -1: /dev/null */
	uint64_t timeout_ns; /* limit of pmdiff_process_read(); 0: none */
};

/* Starts the program. Environment variables with which git's hooks select a repository
 * are removed, because they would also apply to every other repository. Returns 0 or a
 * negative errno; -ENOENT: @dir or the program does not exist. */
int pmdiff_process_start(const struct pmdiff_process *process, pid_t *out);
/* Waits for the program. Returns its status in the convention of shells, or a negative
 * errno. */
int pmdiff_process_wait(pid_t pid);

/* The output of a program. */
struct pmdiff_output_text {
	struct pm_str out, err;
};
void pmdiff_output_text_release(struct pmdiff_output_text *text);
/* Runs the program with @input on its stdin (NULL: nothing), and stores its output;
 * ignores the fds of @process. Returns its status, or a negative errno; -ETIMEDOUT: it
 * took longer than its timeout, and was killed. */
int pmdiff_process_read(const struct pmdiff_process *process, const char *input,
			size_t input_len, struct pmdiff_output_text *out);
