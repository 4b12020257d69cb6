/* SPDX-License-Identifier: MIT */
/* Children that are followed with ptrace: what is seen of them, and that they do not see us. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "pm/proc.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <time.h>

enum {
	ORPHANS = 50,
	KIDS = 60,
	ROUNDS_MAX = 20000, /* of half a millisecond: only a bug gets there */
};

/* What children tell; shared with the parent. */
struct told {
	volatile pid_t burner, sleeper;
	volatile int signals, value, done, ready, go, cpu;
	volatile uint64_t turns;
	int pipe_fds[2];
};
static struct told *told;

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void pause_a_little(void)
{
	nanosleep(&(struct timespec){ .tv_nsec = 500000 }, NULL);
}

#define WAIT_UNTIL(condition)                                \
	do {                                                 \
		int rounds_ = 0;                             \
		while (!(condition)) {                       \
			assert_true(rounds_++ < ROUNDS_MAX); \
			pause_a_little();                    \
		}                                            \
	} while (0)

/* ---- children --------------------------------------------------------------------------- */

static void burn(void)
{
	for (;;)
		told->turns++;
}

static void *burn_thread(void *unused)
{
	told->burner = (pid_t)syscall(SYS_gettid);
	burn();
	return unused;
}

static void child_burn(void)
{
	told->ready = 1;
	burn();
}

static void child_read(void)
{
	char byte = 0;
	ssize_t got;

	told->ready = 1;
	got = read(told->pipe_fds[0], &byte, 1);
	_exit(got == 1 ? 10 + byte : 99);
}

static void child_threads(void)
{
	pthread_t thread;
	char byte;

	told->sleeper = getpid();
	pthread_create(&thread, NULL, burn_thread, NULL);
	_exit(read(told->pipe_fds[0], &byte, 1) == 1 ? 0 : 99);
}

static void wait_for_go(void)
{
	while (!told->go)
		pause_a_little();
}

/* Two that share one CPU. */
static void child_one_cpu(void)
{
	pthread_t thread;
	cpu_set_t set;

	wait_for_go();
	CPU_ZERO(&set);
	CPU_SET(told->cpu, &set);
	sched_setaffinity(0, sizeof(set), &set);
	pthread_create(&thread, NULL, burn_thread, NULL);
	while (!told->burner)
		pause_a_little();
	told->ready = 1;
	burn();
}

static void on_signal(int number, siginfo_t *info, void *context)
{
	told->signals++;
	told->value = info->si_value.sival_int;
}

static void child_signals(void)
{
	struct sigaction action = { .sa_sigaction = on_signal, .sa_flags = SA_SIGINFO };

	sigaction(SIGUSR1, &action, NULL);
	told->ready = 1;
	burn();
}

/* A third of the kids by vfork(2). */
static void *fork_thread(void *unused)
{
	told->sleeper = (pid_t)syscall(SYS_gettid);
	while (!told->go)
		pause_a_little();
	for (int i = 0; i < KIDS; i++) {
		pid_t pid = i % 3 == 0 ? vfork() : fork();

		if (pid == 0)
			_exit(0);
		told->turns++;
	}
	while (waitpid(-1, NULL, __WNOTHREAD) > 0)
		;
	return unused;
}

static void child_forks_in_thread(void)
{
	pthread_t thread;

	pthread_create(&thread, NULL, fork_thread, NULL);
	pthread_join(thread, NULL);
	_exit(told->turns == KIDS ? 4 : 99);
}

static void child_forks(void)
{
	pthread_t thread;
	pid_t pid;

	wait_for_go();
	pid = fork();
	if (pid == 0)
		_exit(7);
	waitpid(pid, NULL, 0);
	pthread_create(&thread, NULL, burn_thread, NULL);
	while (!told->burner)
		pause_a_little();
	told->done = 1;
	_exit(3);
}

/* Children that have a child and end at once, all on one CPU. */
static void child_orphans(void)
{
	cpu_set_t set;

	wait_for_go();
	CPU_ZERO(&set);
	CPU_SET(told->cpu, &set);
	sched_setaffinity(0, sizeof(set), &set);
	for (int i = 0; i < ORPHANS; i++) {
		pid_t pid = fork();

		if (pid == 0) {
			fork();
			_exit(0);
		}
		waitpid(pid, NULL, 0);
	}
	_exit(0);
}

static void *exec_thread(void *unused)
{
	told->sleeper = (pid_t)syscall(SYS_gettid);
	execl("/bin/sh", "sh", "-c", "exit 5", NULL);
	_exit(98);
	return unused;
}

static void child_exec(void)
{
	pthread_t idle, executing;

	wait_for_go();
	pthread_create(&idle, NULL, burn_thread, NULL);
	pthread_create(&executing, NULL, exec_thread, NULL);
	for (;;)
		pause();
}

static void child_vfork(void)
{
	int status;
	pid_t pid;

	wait_for_go();
	pid = vfork();
	if (pid == 0)
		execl("/bin/sh", "sh", "-c", "exit 6", NULL);
	waitpid(pid, &status, 0);
	_exit(WEXITSTATUS(status));
}

/* ---- the parent ------------------------------------------------------------------------- */

static pid_t start(void (*chain)(void))
{
	int fds[2];
	pid_t pid;

	memset(told, 0, sizeof(*told));
	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	told->pipe_fds[0] = fds[0];
	told->pipe_fds[1] = fds[1];
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		chain();
		_exit(0);
	}
	return pid;
}

static struct pm_trace *follow(pid_t pid)
{
	struct pm_trace *trace = pm_trace_new();
	struct pm_error err = { 0 };

	assert_non_null(trace);
	if (pm_trace_seize(trace, pid, true, &err) < 0)
		fail_msg("%s", err.text);
	return trace;
}

/* The next event, which has to come. */
static struct pm_trace_event next(struct pm_trace *trace)
{
	struct pm_trace_event event;
	int ret;

	for (int i = 0; (ret = pm_trace_next(trace, &event, NULL)) == 0; i++) {
		assert_true(i < ROUNDS_MAX);
		pause_a_little();
	}
	assert_int_equal(ret, 1);
	return event;
}

static void end(struct pm_trace *trace, pid_t pid)
{
	kill(pid, SIGKILL);
	while (next(trace).tid != pid)
		;
	assert_int_equal(pm_trace_len(trace), 0);
	pm_trace_free(trace);
	close(told->pipe_fds[0]);
	close(told->pipe_fds[1]);
}

static char state_of(pid_t tid)
{
	struct pm_stat_line line = { .state = '?' };
	PM_AUTO_CLOSE int fd = -1;
	char path[64], text[1024];
	ssize_t len;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)tid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	len = fd < 0 ? 0 : read(fd, text, sizeof(text));
	if (len > 0)
		assert_int_equal(pm_stat_line_parse(text, (size_t)len, &line), 0);
	return line.state;
}

/* ---- text ------------------------------------------------------------------------------- */

#define NUMBERS                                                             \
	" 1 2 3 0 -1 4194304 111 0 1 0 23 5 0 0 20 0 2 0 99 123456789 100 " \
	"18446744073709551615 1 1 0 0 0 0 0 4096 0 0 0 0 17 7 0 0 0 0 0 0 0 0 0 0 0 0 0\n"

static void test_stat_line(void **state)
{
	static const struct {
		const char *text, *comm;
	} good[] = {
		{ "12 (split) R" NUMBERS, "split" },
		{ "12 () R" NUMBERS, "" },
		{ "12 () S 1 2) R) R" NUMBERS, ") S 1 2) R" },
		{ "12 (a\nb (c)) R" NUMBERS, "a\nb (c)" },
		{ "12 (kworker/u8:1-events_unbound) R" NUMBERS, "kworker/u8:1-ev" },
	};
	static const char *const bad[] = {
		"",
		"12",
		"12 (",
		"12 )(",
		"12 (x)",
		"12 (x) ",
		"12 (x) R",
		"12 (x) R 1 2 3",
		"12 (x) R 1 x 3 0 -1 4194304 111 0 1 0 23 5 0 0 20 0 2 0 99 1 1 1 1 1 1 1 1 1 1 1 "
		"1 1 1 1 1 1 1 1 1",
		"12 (x) R 1 2 3 0 -1 4194304 111 0 1 0 99999999999999999999999 5 0 0 20 0 2 0 99 1 "
		"1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1",
		"12 (x) R 1 2 3 0 -1 4194304 111 0 1 0 18446744073709551615 5 0 0 20 0 2 0 99 1 1 1 "
		"1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1",
	};
	struct pm_stat_line line;

	for (size_t i = 0; i < PM_ARRAY_LEN(good); i++) {
		assert_int_equal(
			pm_stat_line_parse(good[i].text, strlen(good[i].text), &line), 0);
		assert_string_equal(line.comm, good[i].comm);
		assert_int_equal(line.state, 'R');
		assert_int_equal(line.ticks, 28);
		assert_int_equal(line.virtual_bytes, 123456789);
		assert_int_equal(line.cpu, 7);
	}
	line.cpu = 42;
	for (size_t i = 0; i < PM_ARRAY_LEN(bad); i++) {
		assert_int_equal(pm_stat_line_parse(bad[i], strlen(bad[i]), &line),
				 -EBADMSG);
		assert_int_equal(line.cpu, 42);
	}
}

/* ---- processes -------------------------------------------------------------------------- */

static void test_a_running_thread_is_sampled(void **state)
{
	pid_t pid = start(child_burn);
	struct pm_trace *trace = follow(pid);
	struct pm_trace_event event;
	struct pm_trace_regs regs;
	uint64_t before, after, turns;
	static uint8_t stack[1 << 20];
	size_t len;

	WAIT_UNTIL(told->ready);
	assert_int_equal(pm_trace_cpu_ns(trace, pid, &before), 0);
	turns = told->turns;
	/* The kernel's count may need more than a moment to begin. */
	WAIT_UNTIL(told->turns > turns && pm_trace_cpu_ns(trace, pid, &after) == 0 &&
		   after > before);
	WAIT_UNTIL(pm_trace_tick(trace, now_ns()) == 1);
	event = next(trace);
	assert_int_equal(event.what, PM_TRACE_STOPPED);
	assert_int_equal(event.pid, pid);
	assert_int_equal(event.tid, pid);
	assert_int_equal(pm_trace_regs(pid, &regs), 0);
	assert_true(!regs.is_32 && regs.pc != 0);
	assert_int_equal(pm_trace_cpu_ns(trace, pid, &after), 0);
	assert_true(after >= before);
	assert_string_equal(pm_trace_seen(trace, pid)->comm, "test-trace");
	/* The stack ends long before a MiB is full, and none of it is unknown. */
	len = pm_trace_read(pid, regs.sp, stack, sizeof(stack));
	assert_in_range(len, 256, sizeof(stack) - 1);
	assert_int_equal((regs.sp + len) % (uint64_t)sysconf(_SC_PAGESIZE), 0);
	assert_int_equal(pm_trace_read(pid, 0, stack, sizeof(stack)), 0);
	/* It stands still until the next call, and then goes on. */
	turns = told->turns;
	pause_a_little();
	assert_true(told->turns == turns);
	assert_int_equal(pm_trace_next(trace, &event, NULL), 0);
	WAIT_UNTIL(told->turns > turns);
	end(trace, pid);
}

static void test_sleeping_threads_are_left_alone(void **state)
{
	pid_t pid = start(child_threads);
	struct pm_trace *trace;
	struct pm_trace_event event;

	WAIT_UNTIL(told->burner != 0 && state_of(told->sleeper) == 'S');
	trace = follow(pid);
	assert_int_equal(pm_trace_len(trace), 2);
	for (int i = 0, samples = 0; samples < 20; i++) {
		size_t asked = pm_trace_tick(trace, now_ns());

		assert_true(i < ROUNDS_MAX);
		assert_in_range(asked, 0, 1);
		if (asked == 1) {
			assert_int_equal(next(trace).tid, told->burner);
			samples++;
		}
		assert_int_equal(pm_trace_next(trace, &event, NULL), 0);
		pause_a_little();
	}
	end(trace, pid);
}

static void test_who_waits_for_a_cpu_is_told_apart(void **state)
{
	pid_t pid;
	struct pm_trace *trace;
	struct pm_trace_event event;
	int both = 0, had = 0;
	cpu_set_t set;

	assert_int_equal(sched_getaffinity(0, sizeof(set), &set), 0);
	pid = start(child_one_cpu);
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
		if (CPU_ISSET(cpu, &set))
			told->cpu = cpu;
	told->go = 1;
	WAIT_UNTIL(told->ready);
	trace = follow(pid);
	for (int i = 0; both < 40; i++) {
		size_t asked;

		assert_true(i < ROUNDS_MAX);
		asked = pm_trace_tick(trace, now_ns());
		both += asked == 2;
		for (size_t n = 0; n < asked; n++)
			had += next(trace).had_cpu && asked == 2;
		assert_int_equal(pm_trace_next(trace, &event, NULL), 0);
		pause_a_little();
	}
	/* Of two at most one has the CPU; a few are on the border. */
	assert_in_range(had, 0, both + both / 4);
	end(trace, pid);
}

static void test_a_system_call_is_restarted(void **state)
{
	pid_t pid = start(child_read);
	struct pm_trace *trace;
	struct pm_trace_event event;

	WAIT_UNTIL(told->ready && state_of(pid) == 'S');
	trace = follow(pid);
	for (int i = 0; i < 3; i++) {
		pm_trace_interrupt(trace);
		event = next(trace);
		assert_int_equal(event.what, PM_TRACE_STOPPED);
		assert_int_equal(event.tid, pid);
		assert_int_equal(pm_trace_next(trace, &event, NULL), 0);
		WAIT_UNTIL(state_of(pid) == 'S');
	}
	assert_int_equal(write(told->pipe_fds[1], "\5", 1), 1);
	event = next(trace);
	assert_int_equal(event.what, PM_TRACE_EXIT);
	assert_true(WIFEXITED(event.status));
	assert_int_equal(WEXITSTATUS(event.status), 15);
	assert_int_equal(pm_trace_len(trace), 0);
	pm_trace_free(trace);
}

static void test_signals_arrive_unchanged(void **state)
{
	pid_t pid = start(child_signals);
	struct pm_trace *trace = follow(pid);
	struct pm_trace_event event;

	WAIT_UNTIL(told->ready);
	for (int i = 1; i <= 20; i++) {
		union sigval value = { .sival_int = 1000 + i };

		pm_trace_tick(trace, now_ns());
		assert_int_equal(sigqueue(pid, SIGUSR1, value), 0);
		for (int n = 0; told->signals < i; n++) {
			assert_true(n < ROUNDS_MAX);
			if (pm_trace_next(trace, &event, NULL) == 0)
				pause_a_little();
		}
		assert_int_equal(told->value, 1000 + i);
	}
	assert_int_equal(told->signals, 20);
	end(trace, pid);
}

static void test_job_control_works(void **state)
{
	pid_t pid = start(child_burn);
	struct pm_trace *trace = follow(pid);
	struct pm_trace_event event;
	uint64_t turns;

	WAIT_UNTIL(told->ready);
	kill(pid, SIGSTOP);
	/* First it stops to get the signal, then to obey it. */
	for (int n = 0, still = 0; still < 20; n++) {
		assert_true(n < ROUNDS_MAX);
		still = state_of(pid) == 't' ? still + 1 : 0;
		assert_int_equal(pm_trace_next(trace, &event, NULL), 0);
		pause_a_little();
	}
	turns = told->turns;
	assert_int_equal(pm_trace_tick(trace, now_ns()), 0);
	/* A look at a stopped one leaves it stopped. */
	pm_trace_interrupt(trace);
	assert_int_equal(next(trace).what, PM_TRACE_STOPPED);
	assert_int_equal(pm_trace_next(trace, &event, NULL), 0);
	pause_a_little();
	assert_true(told->turns == turns);
	kill(pid, SIGCONT);
	for (int n = 0; told->turns == turns; n++) {
		assert_true(n < ROUNDS_MAX);
		assert_int_equal(pm_trace_next(trace, &event, NULL), 0);
		pause_a_little();
	}
	end(trace, pid);
}

static void test_forks_and_threads_are_followed(void **state)
{
	pid_t pid = start(child_forks), kid = 0;
	struct pm_trace *trace = follow(pid);
	bool thread = false;

	told->go = 1;
	for (;;) {
		struct pm_trace_event event = next(trace);

		if (event.what == PM_TRACE_NEW && event.pid != pid) {
			assert_int_equal(event.parent_pid, pid);
			assert_int_equal(event.tid, event.pid);
			kid = event.pid;
		} else if (event.what == PM_TRACE_NEW) {
			assert_int_equal(event.parent_pid, pid);
			thread = true;
		} else if (event.what == PM_TRACE_EXIT && event.tid == kid) {
			assert_int_equal(WEXITSTATUS(event.status), 7);
		} else if (event.what == PM_TRACE_EXIT && event.tid == pid) {
			assert_int_equal(WEXITSTATUS(event.status), 3);
			break;
		}
	}
	assert_true(kid != 0 && thread && told->done);
	pm_trace_free(trace);
}

/* In whatever order the kernel tells of both, the child is told while its maker stands where it
 * forked, and with all that is known of it. */
static void test_makers_wait_for_their_kids(void **state)
{
	pid_t pid = start(child_forks_in_thread);
	struct pm_trace *trace;
	struct pm_trace_event event;
	uint64_t kids = 0;

	WAIT_UNTIL(told->sleeper != 0);
	trace = follow(pid);
	told->go = 1;
	do {
		event = next(trace);
		if (event.what == PM_TRACE_NEW) {
			assert_int_equal(event.parent_pid, pid);
			assert_int_equal(event.parent_tid, told->sleeper);
			assert_int_equal(event.by_vfork, kids % 3 == 0);
			assert_int_equal(told->turns, kids);
			kids++;
			/* Who waits for another is asked all the same. */
			pm_trace_interrupt(trace);
		}
	} while (event.what != PM_TRACE_EXIT || event.tid != pid);
	assert_int_equal(kids, KIDS);
	assert_int_equal(WEXITSTATUS(event.status), 4);
	pm_trace_free(trace);
}

static void test_parents_that_end_at_once(void **state)
{
	pid_t pid = start(child_orphans), middle[ORPHANS];
	struct pm_trace *trace = follow(pid);
	int middles = 0, orphans = 0;
	bool ended = false;
	cpu_set_t set;

	assert_int_equal(sched_getaffinity(0, sizeof(set), &set), 0);
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
		if (CPU_ISSET(cpu, &set))
			told->cpu = cpu;
	told->go = 1;
	while (!ended || pm_trace_len(trace) > 0) {
		struct pm_trace_event event = next(trace);
		bool known = event.parent_pid == pid;

		ended |= event.what == PM_TRACE_EXIT && event.tid == pid;
		if (event.what != PM_TRACE_NEW)
			continue;
		for (int i = 0; i < middles && !known; i++)
			known = event.parent_pid == middle[i];
		assert_true(known);
		if (event.parent_pid != pid)
			orphans++;
		else if (middles < ORPHANS)
			middle[middles++] = event.pid;
	}
	assert_int_equal(middles, ORPHANS);
	assert_int_equal(orphans, ORPHANS);
	pm_trace_free(trace);
}

static void test_exec_of_a_thread(void **state)
{
	pid_t pid = start(child_exec);
	struct pm_trace *trace = follow(pid);
	bool executed = false;

	told->go = 1;
	for (;;) {
		struct pm_trace_event event = next(trace);

		if (event.what == PM_TRACE_EXEC) {
			assert_int_equal(event.pid, pid);
			assert_int_equal(event.tid, pid);
			assert_int_equal(event.former_tid, told->sleeper);
			assert_int_equal(pm_trace_len(trace), 1);
			executed = true;
		} else if (event.what == PM_TRACE_EXIT && event.tid == pid) {
			assert_int_equal(WEXITSTATUS(event.status), 5);
			break;
		}
	}
	assert_true(executed);
	assert_int_equal(pm_trace_len(trace), 0);
	pm_trace_free(trace);
}

static void test_vfork(void **state)
{
	pid_t pid = start(child_vfork);
	struct pm_trace *trace = follow(pid);
	int executed = 0;

	told->go = 1;
	for (;;) {
		struct pm_trace_event event = next(trace);

		executed += event.what == PM_TRACE_EXEC && event.pid != pid;
		if (event.what == PM_TRACE_EXIT && event.tid == pid) {
			assert_int_equal(WEXITSTATUS(event.status), 6);
			break;
		}
		pm_trace_tick(trace, now_ns());
	}
	assert_int_equal(executed, 1);
	pm_trace_free(trace);
}

static void detach_all(struct pm_trace *trace)
{
	struct pm_trace_event event;

	pm_trace_detach(trace);
	for (int i = 0; pm_trace_len(trace) > 0; i++) {
		assert_true(i < ROUNDS_MAX);
		if (pm_trace_next(trace, &event, NULL) == 0)
			pause_a_little();
	}
}

static void test_let_go(void **state)
{
	pid_t pid = start(child_threads);
	struct pm_trace *trace;
	uint64_t turns;
	int status;

	WAIT_UNTIL(told->burner != 0 && state_of(told->sleeper) == 'S');
	trace = follow(pid);
	/* One kept, one held. */
	pm_trace_interrupt(trace);
	next(trace);
	pm_trace_keep(trace);
	next(trace);
	turns = told->turns;
	pause_a_little();
	assert_true(told->turns == turns);
	detach_all(trace);
	pm_trace_free(trace);
	WAIT_UNTIL(told->turns > turns && state_of(pid) == 'S');
	assert_int_equal(write(told->pipe_fds[1], "x", 1), 1);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

/* At any moment of a fork. */
static void test_let_go_while_forking(void **state)
{
	for (int events = 0; events < 12; events++) {
		pid_t pid = start(child_forks_in_thread);
		struct pm_trace *trace;
		int status;

		WAIT_UNTIL(told->sleeper != 0);
		trace = follow(pid);
		told->go = 1;
		for (int i = 0; i < events; i++)
			next(trace);
		detach_all(trace);
		pm_trace_free(trace);
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 4);
	}
}

/* Who is asked in the middle of a fork answers when its child has been told of. */
static void test_nobody_is_told_of_after_its_maker(void **state)
{
	for (int events = 0; events < 24; events++) {
		pid_t pid = start(child_forks_in_thread), maker;
		struct pm_trace *trace;
		struct pm_trace_event event;
		bool parted = false;

		WAIT_UNTIL(told->sleeper != 0);
		maker = (pid_t)told->sleeper;
		trace = follow(pid);
		told->go = 1;
		for (int i = 0; i < events; i++)
			next(trace);
		usleep((useconds_t)events % 5 * 50);
		pm_trace_interrupt(trace);
		do {
			event = next(trace);
			assert_true(event.what != PM_TRACE_NEW || !parted);
			if (event.what != PM_TRACE_STOPPED || event.tid != maker)
				continue;
			pm_trace_let_go(trace);
			parted = true;
		} while (event.what != PM_TRACE_EXIT || event.tid != pid);
		assert_true(parted);
		assert_int_equal(WEXITSTATUS(event.status), 4);
		pm_trace_free(trace);
	}
}

/* Who has made somebody, and was killed at whatever moment, ends after it where it is known. */
static void test_kids_of_the_killed(void **state)
{
	int known = 0;

	/* In about ten of thirty. */
	for (int round = 0; round < 30 || (known == 0 && round < 300); round++) {
		pid_t pid = start(child_forks_in_thread);
		struct pm_trace *trace;
		struct pm_trace_event event = { 0 };
		bool ended = false;

		WAIT_UNTIL(told->sleeper != 0);
		trace = follow(pid);
		told->go = 1;
		for (int i = 0; i < round % 30; i++)
			next(trace);
		kill(pid, SIGKILL);
		while (pm_trace_len(trace) > 0) {
			event = next(trace);
			if (event.what == PM_TRACE_NEW) {
				assert_true(!ended || event.parent_pid != pid);
				known += event.parent_pid == pid;
			}
			ended = ended ||
				(event.what == PM_TRACE_EXIT && event.tid == pid);
		}
		assert_true(ended);
		pm_trace_free(trace);
	}
	assert_true(known > 0);
}

static void test_a_stopped_process_stays_so(void **state)
{
	pid_t pid = start(child_burn);
	struct pm_trace *trace;
	int status;

	WAIT_UNTIL(told->ready);
	kill(pid, SIGSTOP);
	assert_int_equal(waitpid(pid, &status, WUNTRACED), pid);
	for (int keep = 0; keep < 2; keep++) {
		trace = follow(pid);
		pm_trace_interrupt(trace);
		assert_int_equal(next(trace).what, PM_TRACE_STOPPED);
		if (keep)
			pm_trace_keep(trace);
		detach_all(trace);
		pm_trace_free(trace);
		WAIT_UNTIL(state_of(pid) == 'T');
	}
	/* Without a look at it, too. */
	trace = follow(pid);
	detach_all(trace);
	pm_trace_free(trace);
	WAIT_UNTIL(state_of(pid) == 'T');
	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
}

static void test_refusals_are_explained(void **state)
{
	struct pm_trace *trace = pm_trace_new();
	struct pm_error err = { 0 };
	pid_t pid, other;

	assert_int_equal(pm_trace_seize(trace, 0x7ffffff0, false, &err), -ESRCH);
	assert_non_null(strstr(err.text, "no process"));
	pid = start(child_threads);
	WAIT_UNTIL(told->burner != 0);
	assert_int_equal(pm_trace_seize(trace, told->burner, false, &err), -ESRCH);
	assert_non_null(strstr(err.text, "is a thread of process"));
	/* One that is traced already. */
	other = fork();
	if (other == 0) {
		told->ready = ptrace(PTRACE_SEIZE, pid, NULL, NULL) == 0 ? 1 : -1;
		for (;;)
			pause();
	}
	WAIT_UNTIL(told->ready != 0);
	assert_int_equal(told->ready, 1);
	assert_int_equal(pm_trace_seize(trace, pid, false, &err), -EPERM);
	assert_non_null(strstr(err.text, "traces it already"));
	kill(other, SIGKILL);
	waitpid(other, NULL, 0);
	assert_int_equal(pm_trace_len(trace), 0);
	pm_trace_free(trace);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static void test_nobody_is_followed(void **state)
{
	struct pm_trace *trace = pm_trace_new();
	struct pm_trace_event event;
	struct pm_trace_regs regs;
	uint64_t ns;

	assert_int_equal(pm_trace_next(trace, &event, NULL), 0);
	assert_int_equal(pm_trace_tick(trace, now_ns()), 0);
	assert_int_equal(pm_trace_cpu_ns(trace, getpid(), &ns), -ESRCH);
	assert_null(pm_trace_seen(trace, getpid()));
	assert_int_equal(pm_trace_regs(getpid(), &regs), -ESRCH);
	pm_trace_keep(trace);
	pm_trace_detach(trace);
	pm_trace_free(trace);
	pm_trace_free(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_stat_line),
		cmocka_unit_test(test_a_running_thread_is_sampled),
		cmocka_unit_test(test_sleeping_threads_are_left_alone),
		cmocka_unit_test(test_who_waits_for_a_cpu_is_told_apart),
		cmocka_unit_test(test_a_system_call_is_restarted),
		cmocka_unit_test(test_signals_arrive_unchanged),
		cmocka_unit_test(test_job_control_works),
		cmocka_unit_test(test_forks_and_threads_are_followed),
		cmocka_unit_test(test_makers_wait_for_their_kids),
		cmocka_unit_test(test_parents_that_end_at_once),
		cmocka_unit_test(test_exec_of_a_thread),
		cmocka_unit_test(test_vfork),
		cmocka_unit_test(test_let_go),
		cmocka_unit_test(test_let_go_while_forking),
		cmocka_unit_test(test_nobody_is_told_of_after_its_maker),
		cmocka_unit_test(test_kids_of_the_killed),
		cmocka_unit_test(test_a_stopped_process_stays_so),
		cmocka_unit_test(test_refusals_are_explained),
		cmocka_unit_test(test_nobody_is_followed),
	};

	told = mmap(NULL, sizeof(*told), PROT_READ | PROT_WRITE,
		    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (told == MAP_FAILED)
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
