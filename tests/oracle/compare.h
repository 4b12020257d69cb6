/* SPDX-License-Identifier: MIT */
/* Compares two chains of one sample: they are equal, different for a proven reason, or
 * wrong. */
#pragma once

#include "tests/oracle/dwfl-chain.h"

enum {
	/* One more than our chain can have, so that a longer chain from libdwfl is
	 * noticed. */
	COMPARE_FRAMES_MAX = PM_UNW_FRAMES_MAX + 1,
};

struct our_chain {
	struct pm_unw_frame frames[PM_UNW_FRAMES_MAX];
	size_t len;
	enum pm_unw_stop stop;
};

struct their_chain {
	struct dwfl_frame frames[COMPARE_FRAMES_MAX];
	size_t len;
	bool failed;
};

enum verdict {
	VERDICT_EQUAL,
	/*
	 * libdw has no CFI for the last frame that both have, or libdwfl has guessed the
	 * frames before by x30. Beyond that frame both sides guess: libdwfl follows rbp
	 * without checks (backends/x86_64_unwind.c), we require a call before the return
	 * address. Neither is authoritative. The frames before it are compared.
	 */
	VERDICT_NO_CFI,
	/*
	 * Both find the same return address, which is in no executable mapping. libdwfl
	 * reports it as its last frame; our chain ends before it, with
	 * PM_UNW_STOP_NO_MODULE.
	 */
	VERDICT_OUTSIDE,
	/* Our chain ends at PM_UNW_FRAMES_MAX, theirs continues. */
	VERDICT_LIMIT,
	/*
	 * The sample was taken between the pop of a register and the ret. libdwfl looks
	 * for the register in its slot below the stack pointer, has no bytes there and
	 * loses the chain; we know that the value is back in the register
	 * (pm_unw_row_keep_popped()). Or, in a realigned frame, libdwfl looks in a slot
	 * relative to rbp, which already is the caller's, and finds something else.
	 *
	 * If the slot is served from the register, libdwfl finds exactly our chain.
	 * oracle-step shows on live processes that this chain is the true one.
	 */
	VERDICT_POPPED,
	/*
	 * The CFA of a caller is in r8…r11, and the CFI of the called subroutine does not
	 * say that it preserves them. libdwfl treats them as lost and ends there,
	 * although it keeps rax and others in the same case; we look for a return address
	 * that follows a call where the register points (fp). OpenSSL's AES has such
	 * code; oracle-step shows that our chain is true.
	 *
	 * Likewise for a return address of aarch64 in x9…x15, as in glibc's rawmemchr
	 * while it calls strlen: we continue with the frame record (fp).
	 *
	 * Likewise for rbx, which is missing in libdw's ABI rules for x86-64
	 * (backends/x86_64_cfi.c of 0.188 has rax in its place): glibc's resolver has its
	 * CFA in rbx, and the functions it calls have not saved it yet.
	 */
	VERDICT_KEPT,
	/*
	 * DW_CFA_def_cfa_register after a CFA by expression. libdw 0.188 reports an
	 * expression without operations, and libdwfl ends there; we keep the offset from
	 * before the expression, as libgcc and binutils do, and as is intended. At the
	 * end of libgcrypt's functions; oracle-step shows that our chain is true.
	 */
	VERDICT_MIXED,
	/*
	 * The chain passes through glibc's resolver for aarch64, which is entered after a
	 * push of 16 bytes that its CFI omits; the return address is above its CFA.
	 * libdwfl continues with a stack pointer that is 16 too low, which leads into a
	 * circle or to wrong frames; we add the pair (pm_unw_row_count_pair()). If only
	 * those 16 bytes are added for libdwfl, it finds exactly our chain.
	 */
	VERDICT_RESOLVER,
	/*
	 * The return address is the first byte of a function, so no call stored it there:
	 * makecontext(3) wrote it, so that __start_context runs when the coroutine's
	 * function returns. We name that function and report it as the root; libdwfl
	 * looks up the byte before it, which belongs to another function, and fails there
	 * or finds wrong frames.
	 */
	VERDICT_UNCALLED,
	VERDICT_WRONG,
};
#define VERDICT_COUNT (VERDICT_WRONG + 1)
const char *verdict_name(enum verdict verdict);

/* @why: what is wrong, in words; set for VERDICT_WRONG. Never returns VERDICT_POPPED or
 * VERDICT_RESOLVER: these need the sample, see the caller. */
enum verdict compare_chains(struct dwfl_space *space, const struct spaces_maps *maps,
			    const struct our_chain *ours,
			    const struct their_chain *theirs, const char **why);
