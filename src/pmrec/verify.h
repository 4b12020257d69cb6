/* SPDX-License-Identifier: MIT */
/*
 * --verify: each chain of a stopped thread is also unwound by libunwind-ptrace, which
 * shares neither code nor input with our unwinder, and the two chains are compared.
 */
#pragma once

#include "pm/proc.h"
#include "pm/unwind.h"
#include "session.h"

enum {
	PM_REC_VERIFY_SHOWN = 5, /* pairs of chains that are printed */
};

struct pm_rec_verify;

struct pm_rec_verify *pm_rec_verify_new(void); /* NULL without memory */
void pm_rec_verify_free(struct pm_rec_verify *verify);

/* Unwinds thread @tid of @pid with both unwinders. The calling thread must have stopped
 * it. Returns 0 or -ENOMEM; failures of libunwind are counted. */
int pm_rec_verify_add(struct pm_rec_verify *verify, struct pm_rec_session *session,
		      pid_t pid, pid_t tid, const struct pm_trace_regs *regs,
		      const struct pm_unw_stack *stack);
/* Prints the counts and the first pairs that differ to stderr. */
void pm_rec_verify_print(const struct pm_rec_verify *verify,
			 const struct pm_rec_session *session);

/* Converts the registers of a stopped thread to those of the unwinder. */
void pm_rec_unwind_regs(const struct pm_trace_regs *regs, struct pm_unw_regs *out);

enum pm_rec_verdict {
	PM_REC_EQUAL,
	PM_REC_THEIRS_SHORTER, /* equal up to the end of libunwind's chain */
	PM_REC_OURS_SHORTER, /* equal up to the end of our chain */
	PM_REC_DIFFERENT,
};
#define PM_REC_VERDICT_COUNT (PM_REC_DIFFERENT + 1)
/* Compares two chains. @at: the first frame that only one of them has, or that
 * differs. */
enum pm_rec_verdict pm_rec_compare(const struct pm_unw_frame *ours, size_t ours_len,
				   const uint64_t *theirs, size_t theirs_len, size_t *at);
