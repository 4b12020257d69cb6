/* SPDX-License-Identifier: MIT */
/*
 * Other programs, run without a shell in between: git, pmstat, and the shell that builds.
 */
#pragma once

#include "pm/base.h"

struct pmdiff_process {
	const char *dir; /* NULL: where we are */
	const char *const *argv; /* NULL-terminated; the first is looked up in PATH */
	const char *const
		*env; /* NAME=VALUE, beside ours; NULL: none, else NULL-terminated */
	int in, out, err; /* borrowed; -1: /dev/null */
};

/* Starts it. What hooks of git have in their environment to point at a repository is left out:
 * it would hold in every other one, too. 0 or negative errno: -ENOENT, @dir or the program is
 * not there. */
int pmdiff_process_start(const struct pmdiff_process *process, pid_t *ret);
/* Waits for it. Its status as a shell counts it, or negative errno. */
int pmdiff_process_wait(pid_t pid);

/* What a program has written. */
struct pmdiff_output_text {
	struct pm_str out, err;
};
void pmdiff_output_text_release(struct pmdiff_output_text *text);
/* Runs it with @input on its stdin (NULL: nothing), and keeps what it writes; the fds of
 * @process are not looked at. Its status, or negative errno. */
int pmdiff_process_read(const struct pmdiff_process *process, const char *input,
			size_t input_len, struct pmdiff_output_text *ret);
