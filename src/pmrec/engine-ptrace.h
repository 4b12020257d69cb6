/* SPDX-License-Identifier: MIT */
/*
 * Sampling without perf_event_open(2). At each tick of a timer, ptrace(2) stops the
 * threads that are on a CPU. Their registers and stacks are copied, and they continue;
 * unwinding happens while they run. The samples are processed like the kernel's.
 *
 * A sample represents the CPU time, user and system, that its thread has used since its
 * previous sample, or since tracing started. The sum of the periods is therefore the CPU
 * time used, except for what each thread used after its last sample. A sleeping thread
 * costs nothing and counts for nothing. Kernel functions are not visible: their time
 * counts for the function that called the kernel.
 */
#pragma once

#include "session.h"

enum {
	PM_REC_PTRACE_HZ = 99, /* default; each sample costs two context switches */
	PM_REC_PTRACE_HZ_MAX = 1000,
};

struct pm_rec_ptrace;

/* Starts to trace the command that session->child has forked. Sets session->ptrace and
 * session->counts. If tracing is denied, @err explains why. */
int pm_rec_ptrace_open(struct pm_rec_session *session, struct pm_error *err);
/* Lets the command run; same contract as pm_launch_go(). */
int pm_rec_ptrace_go(struct pm_rec_session *session, struct pm_error *err);
/* Records until the command ends or the user stops it, then waits for the command. */
int pm_rec_ptrace_record(struct pm_rec_session *session, struct pm_error *err);
void pm_rec_ptrace_free(struct pm_rec_ptrace *ptrace);

/* Describes the event for the header. @requested is borrowed from the options. */
void pm_rec_ptrace_event(const struct pm_rec_session *session, struct pm_file_event *out);
/* Returns the number of stops that gave no sample because the thread had waited for a
 * CPU, or might have. Its time counts at its next sample, if there is one. */
uint64_t pm_rec_ptrace_waiting(const struct pm_rec_ptrace *ptrace);
/* Returns how often a thread could not be examined because too many files were open. */
uint64_t pm_rec_ptrace_unseen(const struct pm_rec_ptrace *ptrace);
/* Returns how many bytes of each stack are copied at first. */
uint32_t pm_rec_ptrace_stack_bytes(const struct pm_rec_session *session);
/* What every reader of the report has to know. */
extern const char pm_rec_ptrace_note[];
