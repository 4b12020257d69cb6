/* SPDX-License-Identifier: MIT */
/*
 * The second opinion: libunwind-ptrace reads the stopped thread itself, with an own CFI
 * reader, so it shares neither code nor input with our unwinder. Slow: one ptrace(2) call
 * for each word.
 */
#include "pm/unwind.h"

#include <sys/ptrace.h>

#include <libunwind-ptrace.h>

/* What one look at a thread needs; every part may be missing. */
struct ptrace_session {
	unw_addr_space_t space;
	void *upt;
};

static void ptrace_session_release(struct ptrace_session *session)
{
	if (session->upt)
		_UPT_destroy(session->upt);
	if (session->space)
		unw_destroy_addr_space(session->space);
}

/* libunwind's error numbers say nothing about ptrace, so ask ptrace first. */
static int check_stopped(pid_t tid, struct pm_error *err)
{
	unsigned long message;

	/* Every processor has this one. */
	if (ptrace(PTRACE_GETEVENTMSG, tid, NULL, &message) == 0)
		return 0;
	return pm_error_set(err, -errno, "thread %d is not ptrace-stopped by this thread",
			    (int)tid);
}

static int unwind_error(struct pm_error *err, int unw, pid_t tid, const char *what)
{
	int code = unw == -UNW_ENOMEM ? -ENOMEM : -EIO;

	return pm_error_set(err, code, "libunwind cannot %s thread %d: %s", what,
			    (int)tid, unw_strerror(unw));
}

static int start(struct ptrace_session *session, unw_cursor_t *cursor, pid_t tid,
		 struct pm_error *err)
{
	int unw;

	/* A new space caches nothing, so a module that has moved cannot be mistaken. */
	session->space = unw_create_addr_space(&_UPT_accessors, 0);
	session->upt = _UPT_create(tid);
	if (!session->space || !session->upt)
		return pm_error_set(err, -ENOMEM, "out of memory");
	unw = unw_init_remote(cursor, session->space, session->upt);
	if (unw < 0)
		return unwind_error(err, unw, tid, "read the registers of");
	return 0;
}

ssize_t pm_unw_ptrace_chain(pid_t tid, uint64_t *pcs, size_t max, struct pm_error *err)
{
	PM_CLEANUP(ptrace_session_release) struct ptrace_session session = { 0 };
	unw_cursor_t cursor;
	unw_word_t last_pc = 0;
	unw_word_t last_sp = 0;
	size_t len = 0;
	int rc;

	rc = check_stopped(tid, err);
	if (rc < 0)
		return rc;
	rc = start(&session, &cursor, tid, err);
	if (rc < 0)
		return rc;
	while (len < max) {
		unw_word_t pc;
		unw_word_t sp;
		int unw = unw_get_reg(&cursor, UNW_REG_IP, &pc);

		if (unw == 0)
			unw = unw_get_reg(&cursor, UNW_REG_SP, &sp);
		if (unw < 0)
			return unwind_error(err, unw, tid, "step in");
		/* pc 0 is how libunwind shows a chain that ended; the same pc and sp again
		 * is CFI that leads nowhere. */
		if (len > 0 && (pc == 0 || (pc == last_pc && sp == last_sp)))
			break;
		pcs[len++] = pc;
		last_pc = pc;
		last_sp = sp;
		/* A failing step is how a chain ends without a root: what was found
		 * stands. */
		if (unw_step(&cursor) <= 0)
			break;
	}
	return (ssize_t)len;
}
