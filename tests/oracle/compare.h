/* SPDX-License-Identifier: MIT */
/* Two chains of one sample: the same, different for a reason that is proven, or wrong. */
#pragma once

#include "tests/oracle/dwfl-chain.h"

enum {
	/* One more than ours can have, so that a longer chain of theirs is seen. */
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
	 * libdw itself has no CFI for the last frame that both have, or libdwfl has guessed its
	 * way there by x30. Beyond it both sides guess: libdwfl follows rbp without looking
	 * (backends/x86_64_unwind.c), we ask for a call before the return address. Neither is
	 * the truth. The frames before it are compared.
	 */
	VERDICT_NO_CFI,
	/*
	 * Both find the same return address, which lies in no executable mapping. libdwfl
	 * gives it as its last frame, we end with PM_UNW_STOP_NO_MODULE before it.
	 */
	VERDICT_OUTSIDE,
	/* Ours ends at PM_UNW_FRAMES_MAX, theirs goes on. */
	VERDICT_LIMIT,
	/*
	 * The sample fell between the pop of a register and the ret. libdwfl looks for the
	 * register in its slot below the stack pointer, has no bytes there and loses the
	 * chain; we know that it is back in the register (pm_unw_row_keep_popped()). Or, in
	 * a realigned frame, it looks in a slot counted from an rbp that is the caller's
	 * already, and finds something else. With the slot served from the register libdwfl finds the very chain that we found.
	 * oracle-step shows on live processes that this chain is the true one.
	 */
	VERDICT_POPPED,
	/*
	 * The CFA of a caller is in r8…r11 and the called subroutine does not say that it
	 * leaves them alone. libdwfl takes them for lost and ends there, while it keeps rax
	 * and the like for the same case; we look for a return address that follows a call
	 * where the register points (fp). OpenSSL's AES; oracle-step shows it to be true.
	 * Likewise a return address of aarch64 in x9…x15, as rawmemchr of glibc has it while
	 * it calls strlen: we go on with the frame record (fp).
	 * And rbx, which libdw's rules of the ABI for x86-64 leave out (backends/x86_64_cfi.c
	 * of 0.188 has rax in its place): glibc's resolver has its CFA in it, and what it calls
	 * has not saved it yet.
	 */
	VERDICT_KEPT,
	/*
	 * DW_CFA_def_cfa_register after a CFA by expression. libdw 0.188
	 * gives an expression of no operations, and libdwfl ends there; we keep the offset
	 * from before the expression, as libgcc and binutils do, and as is meant. At the end
	 * of libgcrypt's functions; oracle-step shows it to be true.
	 */
	VERDICT_MIXED,
	/*
	 * The chain leads through glibc's resolver for aarch64, which is entered behind a push
	 * of 16 bytes that its CFI leaves out; the return address stands above its CFA. libdwfl goes
	 * on with a stack pointer that is 16 too low, into a circle or astray; we count the
	 * pair (pm_unw_row_count_pair()). Given those 16 bytes, and nothing else, libdwfl finds
	 * the very chain that we found.
	 */
	VERDICT_RESOLVER,
	/*
	 * The return address is the first byte of a function, so no call has left it there:
	 * makecontext(3) wrote it, for __start_context to run when the coroutine's function
	 * returns. We name that function and call it the root; libdwfl looks up the byte
	 * before, which belongs to another function, and fails there or goes astray.
	 */
	VERDICT_UNCALLED,
	VERDICT_WRONG,
};
#define VERDICT_COUNT (VERDICT_WRONG + 1)
const char *verdict_name(enum verdict verdict);

/* @why: what is wrong, in words; set for VERDICT_WRONG. Never gives VERDICT_POPPED nor
 * VERDICT_RESOLVER: they take the sample, see the caller. */
enum verdict compare_chains(struct dwfl_space *space, const struct spaces_maps *maps,
			    const struct our_chain *ours,
			    const struct their_chain *theirs, const char **why);
