/* SPDX-License-Identifier: MIT */
/*
 * Runs other programs without a shell in between: git, pmstat, and the shell for builds.
 */
#pragma once

#include "pm/base.h"

struct pmdiff_process {
	const char *dir; /* NULL: the working directory */
	const char *const *argv; /* NULL-terminated; the first is looked up in PATH */
	const char *const
		*env; /* NAME=VALUE, added to ours; NULL: none, else NULL-terminated */
	int in, out, err; /* borrowed; -1: /dev/null */
	uint64_t timeout_ns; /* of pmdiff_process_read(); 0: none */
};

/* Starts the program. Environment variables with which git's hooks select a repository
 * are removed, because they would also apply to every other one. 0 or negative errno:
 * -ENOENT: @dir or the program does not exist. */
int pmdiff_process_start(const struct pmdiff_process *process, pid_t *out);
/* Waits for the program. Its status in the convention of shells, or negative errno. */
int pmdiff_process_wait(pid_t pid);

/* The output of a program. */
struct pmdiff_output_text {
	struct pm_str out, err;
};
void pmdiff_output_text_release(struct pmdiff_output_text *text);
/* Runs it with @input on its stdin (NULL: nothing), and stores its output; ignores the
 * fds of @process. Its status, or negative errno: -ETIMEDOUT: it took longer than its
 * timeout, and was killed. */
int pmdiff_process_read(const struct pmdiff_process *process, const char *input,
			size_t input_len, struct pmdiff_output_text *out);
