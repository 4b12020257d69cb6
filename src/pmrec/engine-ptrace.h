/* SPDX-License-Identifier: MIT */
/*
 * Sampling without perf_event_open(2): at each tick of a timer the threads that are on a CPU
 * are stopped by ptrace(2), their registers and stack are copied, and they go on; unwinding
 * happens while they run. The samples take the same way as the kernel's.
 *
 * A sample stands for the CPU time, user and system, that its thread has used since its
 * sample before, or since it is followed. So the sum of the periods is the CPU time used, but
 * for what each thread has used after its last sample; and a thread that sleeps costs nothing
 * and counts for nothing. Kernel functions are not seen: their time counts for the function
 * that called the kernel.
 */
#pragma once

#include "session.h"

enum {
	PM_REC_PTRACE_HZ =
		99, /* unless told otherwise: each sample is two context switches */
	PM_REC_PTRACE_HZ_MAX = 1000,
};

struct pm_rec_ptrace;

/* Follows the command that session->child has forked, and fills session->ptrace and
 * session->counts. Explained when it may not. */
int pm_rec_ptrace_open(struct pm_rec_session *session, struct pm_error *err);
/* Lets the command go; as pm_launch_go(). */
int pm_rec_ptrace_go(struct pm_rec_session *session, struct pm_error *err);
/* Records until the command ends or the user stops it, then waits for the command. */
int pm_rec_ptrace_record(struct pm_rec_session *session, struct pm_error *err);
void pm_rec_ptrace_free(struct pm_rec_ptrace *ptrace);

/* The event, for the header. @requested is borrowed from the options. */
void pm_rec_ptrace_event(const struct pm_rec_session *session, struct pm_file_event *ret);
/* Stops that gave no sample: the thread had waited for a CPU, or may have. Its time counts
 * at its next sample, if there is one. */
uint64_t pm_rec_ptrace_waiting(const struct pm_rec_ptrace *ptrace);
/* How often a thread could not be looked at, for too many files were open. */
uint64_t pm_rec_ptrace_unseen(const struct pm_rec_ptrace *ptrace);
/* How much of each stack is copied at first. */
uint32_t pm_rec_ptrace_stack_bytes(const struct pm_rec_session *session);
/* What everybody has to know who reads the report. */
extern const char pm_rec_ptrace_note[];
