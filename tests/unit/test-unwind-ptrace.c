/* SPDX-License-Identifier: MIT */
/*
 * Stopped processes with a known chain, unwound three ways: by us from a copy of registers
 * and stack, by libunwind-ptrace, and by what the functions noted as their return addresses
 * on the way down. All three have to agree.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <alloca.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "pm/unwind.h"
#include "tests/oracle/live.h"
#include "tests/oracle/spaces.h"

#define NOINLINE __attribute__((noinline))
/* Keeps a call from becoming a jump and a value from being known. */
#define OPAQUE(value) __asm__ volatile("" : "+r"(value) : : "memory")

enum {
	NOTES_MAX = 64,
	DEPTH = 20,
};

/* What the child noted, outermost first; shared with the parent. */
struct notes {
	size_t len;
	uint64_t return_address[NOTES_MAX];
	pid_t tid; /* who is to be looked at */
	int pipe_fd; /* blocks for ever when read */
};
static struct notes *notes;

#define NOTE() \
	(notes->return_address[notes->len++] = (uint64_t)__builtin_return_address(0))

/* ---- the child -------------------------------------------------------------------------- */

static NOINLINE void stop_here(void)
{
	int done;

	NOTE();
	done = raise(SIGSTOP);
	OPAQUE(done);
}

static NOINLINE int recurse(int depth)
{
	NOTE();
	if (depth > 1)
		depth += recurse(depth - 1);
	else
		stop_here();
	OPAQUE(depth);
	return depth;
}

static NOINLINE void chain_recursion(void)
{
	int depth = DEPTH;

	NOTE();
	depth = recurse(depth);
	OPAQUE(depth);
}

static NOINLINE int compare(const void *a, const void *b)
{
	NOTE();
	stop_here();
	return *(const int *)a - *(const int *)b;
}

static NOINLINE void chain_qsort(void)
{
	int values[] = { 2, 1 };
	int *first = values;

	NOTE();
	qsort(values, PM_ARRAY_LEN(values), sizeof(values[0]), compare);
	OPAQUE(first);
}

static void on_signal(int signo)
{
	/* No note: a handler returns to the kernel's trampoline, not to a call. */
	stop_here();
	OPAQUE(signo);
}

static NOINLINE void chain_signal(void)
{
	struct sigaction action = { .sa_handler = on_signal };
	int done;

	NOTE();
	sigaction(SIGUSR1, &action, NULL);
	done = raise(SIGUSR1);
	OPAQUE(done);
}

/* A fault interrupts the first instruction of a function: pc - 1 is in the one before. */
static __attribute__((naked)) void trap(void)
{
#if defined(__aarch64__)
	__asm__ volatile(".inst 0\n\tret");
#else
	__asm__ volatile(".byte 0x0f, 0x0b\n\tret");
#endif
}

static NOINLINE void chain_fault(void)
{
	struct sigaction action = { .sa_handler = on_signal };
	int done = 0;

	NOTE();
	sigaction(SIGILL, &action, NULL);
	trap();
	OPAQUE(done);
}

static NOINLINE void block(void)
{
	char byte;
	ssize_t got;

	NOTE();
	got = read(notes->pipe_fd, &byte, 1);
	OPAQUE(got);
}

static NOINLINE void chain_syscall(void)
{
	int done = 0;

	NOTE();
	notes->tid = getpid();
	block();
	OPAQUE(done);
}

static NOINLINE void *thread_main(void *arg)
{
	/* A thread's own tid must be known before the parent may look: blocks after it. */
	notes->tid = (pid_t)syscall(SYS_gettid);
	block();
	OPAQUE(arg);
	return arg;
}

static NOINLINE void chain_thread(void)
{
	pthread_t thread;

	pthread_create(&thread, NULL, thread_main, NULL);
	pthread_join(thread, NULL);
}

static NOINLINE void realigned(size_t len)
{
	uint8_t wide[64] __attribute__((aligned(64)));
	uint8_t *bytes = alloca(len);
	uint8_t *first = wide;

	NOTE();
	memset(wide, 1, sizeof(wide));
	memset(bytes, 1, len);
	stop_here();
	OPAQUE(bytes);
	OPAQUE(first);
}

static NOINLINE void chain_realigned(void)
{
	size_t len = 200;

	NOTE();
	OPAQUE(len);
	realigned(len);
	OPAQUE(len);
}

/* ---- the parent ------------------------------------------------------------------------- */

/* Everything that is known of the stopped thread. */
struct view {
	pid_t pid;
	pid_t tid;
	int write_fd;
	struct pm_unw_frame ours[PM_UNW_FRAMES_MAX];
	size_t ours_len;
	enum pm_unw_stop stop;
	uint64_t theirs[PM_UNW_FRAMES_MAX];
	ssize_t theirs_len;
};

static NOINLINE void run_child(void (*chain)(void))
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	chain();
	_exit(0);
}

/* Until SIGSTOP; other signals go on to the child's handlers. */
static void wait_for_stop(pid_t pid)
{
	int status;

	for (;;) {
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_true(WIFSTOPPED(status));
		if (WSTOPSIG(status) == SIGSTOP)
			return;
		assert_int_equal(ptrace(PTRACE_CONT, pid, NULL, WSTOPSIG(status)), 0);
	}
}

/* /proc/TID/syscall shows SYS_read first while it blocks there, "running" before. */
static void wait_for_block(pid_t pid, const volatile pid_t *tid)
{
	char path[64], text[64] = "", *end;

	for (;;) {
		PM_AUTO_CLOSE int fd = -1;
		ssize_t len;

		assert_int_equal(waitpid(pid, NULL, WNOHANG), 0);
		usleep(1000);
		if (*tid == 0)
			continue;
		snprintf(path, sizeof(path), "/proc/%d/syscall", (int)*tid);
		fd = open(path, O_RDONLY | O_CLOEXEC);
		assert_true(fd >= 0);
		len = read(fd, text, sizeof(text) - 1);
		if (len > 2 && strtol(text, &end, 10) == SYS_read && *end == ' ')
			return;
	}
}

static void unwind_ours(struct view *view)
{
	static uint8_t bytes[LIVE_STACK_BYTES];
	struct pm_procs *procs = pm_procs_new(NULL);
	struct pm_unwinder *unwinder = pm_unwinder_new();
	struct spaces_modules modules = { 0 };
	struct spaces_maps maps = { 0 };
	struct pm_unw_space space;
	struct pm_unw_regs regs;
	struct pm_unw_stack stack;

	assert_non_null(procs);
	assert_non_null(unwinder);
	assert_int_equal(pm_procs_read(procs, view->pid, NULL), 0);
	spaces_fill(&maps, &modules, procs, &pm_procs_get(procs, view->pid)->space);
	space = (struct pm_unw_space){ maps.maps.data, maps.maps.len };
	assert_true(live_regs(view->tid, &regs));
	stack.start = regs.value[LIVE_SP];
	stack.data = bytes;
	stack.len = live_stack(view->pid, stack.start, bytes);
	view->ours_len =
		pm_unwind(unwinder, &space, &regs, &stack, view->ours, &view->stop);
	pm_vec_release(&maps.maps);
	pm_unwinder_free(unwinder);
	spaces_modules_release(&modules);
	pm_procs_free(procs);
}

static void print_chains(const struct view *view)
{
	size_t theirs = view->theirs_len > 0 ? (size_t)view->theirs_len : 0;

	print_message("# stop: %s\n", pm_unw_stop_name(view->stop));
	for (size_t i = 0; i < view->ours_len || i < theirs; i++)
		print_message("# %2zu ours %#lx %s, libunwind %#lx\n", i,
			      i < view->ours_len ? view->ours[i].pc : 0,
			      i < view->ours_len ? pm_unw_how_name(view->ours[i].how)
						 : "",
			      i < theirs ? view->theirs[i] : 0);
}

/* The notes in the order of the chain, and each its own frame; returns where the last is. */
static size_t check_notes(const struct view *view, bool adjacent)
{
	size_t at = 0;

	assert_true(notes->len > 0);
	for (size_t n = notes->len; n-- > 0;) {
		size_t before = at;

		while (at < view->ours_len &&
		       view->ours[at].pc != notes->return_address[n])
			at++;
		assert_true(at < view->ours_len);
		if (adjacent && n + 1 < notes->len)
			assert_int_equal(at, before);
		assert_int_equal(view->ours[at].lookup, view->ours[at].pc - 1);
		at++;
	}
	return at;
}

static void check_chains(const struct view *view, bool adjacent)
{
	bool equal = view->theirs_len == (ssize_t)view->ours_len;
	size_t outer;

	for (size_t i = 0; equal && i < view->ours_len; i++)
		equal = view->ours[i].pc == view->theirs[i];
	if (!equal || view->stop != PM_UNW_STOP_ROOT)
		print_chains(view);
	assert_true(equal);
	assert_int_equal(view->stop, PM_UNW_STOP_ROOT);
	outer = check_notes(view, adjacent);
	/* Below what was noted there is at least where it all began. */
	assert_true(outer < view->ours_len);
}

/* A child that runs @chain, stopped in it. @blocks: by a system call, not by itself. */
static void begin(struct view *view, void (*chain)(void), bool blocks)
{
	int fds[2];

	memset(notes, 0, sizeof(*notes));
	assert_int_equal(pipe(fds), 0);
	notes->pipe_fd = fds[0];
	view->write_fd = fds[1];
	view->pid = view->tid = fork();
	assert_true(view->pid >= 0);
	if (view->pid == 0) {
		if (!blocks)
			ptrace(PTRACE_TRACEME, 0, NULL, NULL);
		run_child(chain);
	}
	close(fds[0]);
	if (!blocks) {
		wait_for_stop(view->pid);
		return;
	}
	wait_for_block(view->pid, &notes->tid);
	view->tid = notes->tid;
	assert_int_equal(ptrace(PTRACE_SEIZE, view->tid, NULL, NULL), 0);
	assert_int_equal(ptrace(PTRACE_INTERRUPT, view->tid, NULL, NULL), 0);
	assert_int_equal(waitpid(view->tid, NULL, __WALL), view->tid);
}

static void end(struct view *view)
{
	close(view->write_fd);
	kill(view->pid, SIGKILL);
	/* A traced thread has to be reaped before its process can be. */
	if (view->tid != view->pid)
		waitpid(view->tid, NULL, __WALL);
	assert_int_equal(waitpid(view->pid, NULL, 0), view->pid);
}

static void compare_on(void (*chain)(void), bool blocks, bool adjacent)
{
	static struct view view;
	struct pm_error err = { 0 };

	begin(&view, chain, blocks);
	view.theirs_len =
		pm_unw_ptrace_chain(view.tid, view.theirs, PM_UNW_FRAMES_MAX, &err);
	unwind_ours(&view);
	end(&view);
	if (view.theirs_len < 0)
		fail_msg("%s", err.text);
	check_chains(&view, adjacent);
}

static void test_recursion(void **state)
{
	compare_on(chain_recursion, false, true);
	assert_int_equal(notes->len, 1 + DEPTH + 1);
}

static void test_qsort_callback(void **state)
{
	compare_on(chain_qsort, false, false);
	assert_int_equal(notes->len, 3);
}

static void test_signal_handler(void **state)
{
	compare_on(chain_signal, false, false);
	assert_int_equal(notes->len, 2);
}

static void test_fault_handler(void **state)
{
	compare_on(chain_fault, false, false);
	assert_int_equal(notes->len, 2);
}

static void test_blocking_syscall(void **state)
{
	compare_on(chain_syscall, true, true);
	assert_int_equal(notes->len, 2);
}

static void test_thread(void **state)
{
	compare_on(chain_thread, true, true);
	assert_int_equal(notes->len, 1);
}

static void test_realigned_frame(void **state)
{
	compare_on(chain_realigned, false, true);
	assert_int_equal(notes->len, 3);
}

static void test_room_is_respected(void **state)
{
	static struct view view;
	uint64_t pcs[4] = { 0, 0, 0, 42 };
	ssize_t len;

	begin(&view, chain_recursion, false);
	len = pm_unw_ptrace_chain(view.tid, pcs, 3, NULL);
	end(&view);
	assert_int_equal(len, 3);
	assert_true(pcs[2] != 0);
	assert_int_equal(pcs[3], 42);
}

static void test_not_stopped_is_told(void **state)
{
	struct pm_error err = { 0 };
	uint64_t pcs[4];

	assert_int_equal(pm_unw_ptrace_chain(getpid(), pcs, 4, &err), -ESRCH);
	assert_int_equal(err.code, -ESRCH);
	assert_non_null(strstr(err.text, "not ptrace-stopped"));
	assert_int_equal(pm_unw_ptrace_chain(-1, pcs, 4, NULL), -ESRCH);
}

static size_t count_lines(const char *path)
{
	PM_AUTO_FCLOSE FILE *file = fopen(path, "re");
	size_t lines = 0;
	int c;

	assert_non_null(file);
	while ((c = fgetc(file)) != EOF)
		lines += c == '\n';
	return lines;
}

static void test_nothing_stays_mapped(void **state)
{
	static struct view view;
	uint64_t pcs[64];
	size_t before = 0;

	begin(&view, chain_qsort, false);
	for (int i = 0; i < 40; i++) {
		assert_true(pm_unw_ptrace_chain(view.tid, pcs, 64, NULL) > 0);
		/* The first rounds fill malloc's and libunwind's own pools. */
		if (i == 9)
			before = count_lines("/proc/self/maps");
	}
	end(&view);
	assert_in_range(count_lines("/proc/self/maps"), 0, before + 8);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_recursion),
		cmocka_unit_test(test_qsort_callback),
		cmocka_unit_test(test_signal_handler),
		cmocka_unit_test(test_fault_handler),
		cmocka_unit_test(test_blocking_syscall),
		cmocka_unit_test(test_thread),
		cmocka_unit_test(test_realigned_frame),
		cmocka_unit_test(test_room_is_respected),
		cmocka_unit_test(test_not_stopped_is_told),
		cmocka_unit_test(test_nothing_stays_mapped),
	};

	notes = mmap(NULL, sizeof(*notes), PROT_READ | PROT_WRITE,
		     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (notes == MAP_FAILED)
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
