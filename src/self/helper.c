/* SPDX-License-Identifier: MIT */
/*
 * The thread that empties the rings. It has its own table of file descriptors: its
 * descriptors have no numbers in the program, are not inherited by forked children, and
 * are not closed by a program that closes all its descriptors. It blocks all signals. It
 * also checks whether the program's own threads have all ended (guard.h).
 */
#include <fcntl.h>
#include <linux/close_range.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <time.h>

#include "core.h"
#include "guard.h"
#include "pm/run.h"
#include "recording.h"

enum {
	STACK_BYTES = 1 << 20, /* reading nested debug information needs deep recursion */
	STANDARD_STREAMS = 3,
	FORBIDDEN_SLEEP_MS = 10,
	/* Times between two checks: of whether the program's first thread has ended,
	 * which nothing reports (a pidfd does so only in some kernel versions), and after
	 * that, of whether all threads have ended. */
	FIRST_LOOK_MS = 200,
	LAST_LOOK_MS = 50,
};

enum state {
	OPENING,
	FAILED,
	RUNNING,
	STOPPING,
};

struct pm_self_helper {
	const struct pm_self_settings *settings;
	pthread_t thread;
	pthread_mutex_t lock; /* protects `state`, `tid`, `wake_fd` and `wake_signal` */
	pthread_cond_t changed;
	enum state state;
	pid_t tid;
	int wake_fd; /* writing to it wakes the helper; in the helper's table; -1: none */
	int wake_signal; /* sending it wakes the helper; 0: none */
	/* The remaining members belong to the helper until it has ended. */
	int wait_fd;
	PM_VEC(struct pollfd) polled;
	bool first_ended, left_alone;
	uint64_t looked_ns; /* time of the last check of both */
	int result;
	struct pm_error err;
	char *table;
	struct pm_self_guard guard;
};

/* ---- the helper's side -------------------------------------------------------------------- */

/*
 * Closes the program's descriptors in the helper's new table, because they would keep the
 * program's pipes open. The first files that are opened get the numbers of the standard
 * streams, so that nothing else gets them. If a system call filter forbids this, the
 * helper uses the program's table.
 */
static void leave_files(void)
{
	if (syscall(SYS_close_range, 0, ~0u, CLOSE_RANGE_UNSHARE) != 0)
		return;
	for (int i = 0; i < STANDARD_STREAMS; i++)
		if (eventfd(0, EFD_NONBLOCK) < 0)
			return;
}

static void helper_set_state(struct pm_self_helper *helper, enum state state)
{
	pthread_mutex_lock(&helper->lock);
	helper->state = state;
	pthread_cond_signal(&helper->changed);
	pthread_mutex_unlock(&helper->lock);
}

static bool is_stopping(struct pm_self_helper *helper)
{
	bool stopping;

	pthread_mutex_lock(&helper->lock);
	stopping = helper->state == STOPPING;
	pthread_mutex_unlock(&helper->lock);
	return stopping;
}

static int helper_init_polled(struct pm_self_helper *helper,
			      const struct pm_self_engine *engine)
{
	size_t len = 0;
	const int *fds = NULL;
	int ret = pm_vec_push(&helper->polled,
			      (struct pollfd){ .fd = helper->wait_fd, .events = POLLIN });

	if (engine->type->poll_fds)
		fds = engine->type->poll_fds(engine, &len);
	for (size_t i = 0; ret == 0 && i < len; i++)
		ret = pm_vec_push(&helper->polled,
				  (struct pollfd){ .fd = fds[i], .events = POLLIN });
	return ret;
}

static void await_signal(int number, int sleep_ms)
{
	const struct timespec longest = { .tv_sec = sleep_ms / 1000,
					  .tv_nsec = sleep_ms % 1000 * 1000000L };
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, number);
	/* If a filter forbids waiting, sleep, so that this does not become a busy
	 * loop. */
	if (sigtimedwait(&set, NULL, &longest) < 0 && errno != EAGAIN && errno != EINTR)
		poll(NULL, 0, FORBIDDEN_SLEEP_MS);
}

/* Waits until there is work to do. A ring that no event writes to any more reports
 * POLLHUP forever and is no longer polled. */
static void wait_for_work(struct pm_self_helper *helper,
			  const struct pm_self_engine *engine)
{
	int sleep_ms = helper->first_ended ? LAST_LOOK_MS : FIRST_LOOK_MS;

	if (sleep_ms > engine->type->sleep_ms)
		sleep_ms = engine->type->sleep_ms;
	if (engine->type->wake_signal) {
		await_signal(engine->type->wake_signal, sleep_ms);
		return;
	}
	poll(helper->polled.data, helper->polled.len, sleep_ms);
	for (size_t i = 0; i < helper->polled.len; i++)
		if (helper->polled.data[i].revents & (POLLHUP | POLLERR | POLLNVAL))
			helper->polled.data[i].fd = -1;
}

/* Checks from time to time whether the program's last thread has ended. */
static void check_program_end(struct pm_self_helper *helper)
{
	uint64_t now = pm_now_ns();
	uint64_t after_ms = helper->first_ended ? LAST_LOOK_MS : FIRST_LOOK_MS;

	if (helper->left_alone || now - helper->looked_ns < after_ms * 1000000u / 2)
		return;
	helper->looked_ns = now;
	helper->first_ended = helper->first_ended || pm_self_first_thread_ended();
	helper->left_alone = helper->first_ended && pm_self_is_left_alone();
	if (helper->left_alone)
		pm_self_guard_end_program(&helper->guard);
}

static int helper_run(struct pm_self_helper *helper, struct pm_self_recording *recording)
{
	const struct pm_self_engine *engine = pm_self_recording_engine(recording);
	bool failed = false;

	while (!is_stopping(helper)) {
		wait_for_work(helper, engine);
		/* After a failure, the error is kept until the profile is stopped. */
		if (!failed)
			failed = pm_self_recording_drain(recording, &helper->err) < 0;
		check_program_end(helper);
	}
	return pm_self_recording_finish(recording, &helper->table, &helper->err);
}

static int helper_open(struct pm_self_helper *helper, struct pm_self_recording **out)
{
	int wake[2], ret;

	leave_files();
	if (pipe2(wake, O_CLOEXEC | O_NONBLOCK) < 0)
		return pm_error_set(&helper->err, -errno, "no pipe can be made: %s",
				    strerror(errno));
	helper->wait_fd = wake[0];
	helper->tid = gettid();
	helper->wake_fd = wake[1];
	pm_self_set_own_thread(PM_SELF_HELPER, helper->tid);
	ret = pm_self_recording_open(out, helper->settings, &helper->err);
	if (ret == 0) {
		helper->wake_signal = pm_self_recording_engine(*out)->type->wake_signal;
		if (helper_init_polled(helper, pm_self_recording_engine(*out)) < 0)
			ret = pm_error_set(&helper->err, -ENOMEM, "out of memory");
	}
	if (ret == 0)
		ret = pm_self_recording_begin(*out, &helper->err);
	return ret;
}

static void *helper_main(void *user)
{
	struct pm_self_helper *helper = user;
	struct pm_self_recording *recording = NULL;

	pthread_setname_np(pthread_self(), "pmself");
	helper->result = helper_open(helper, &recording);
	helper_set_state(helper, helper->result < 0 ? FAILED : RUNNING);
	if (helper->result == 0)
		helper->result = helper_run(helper, recording);
	pm_self_recording_free(recording);
	pm_vec_release(&helper->polled);
	if (helper->wait_fd >= 0) {
		close(helper->wait_fd);
		close(helper->wake_fd);
	}
	return NULL;
}

/* ---- the program's side ------------------------------------------------------------------- */

static int helper_begin_thread(struct pm_self_helper *helper)
{
	sigset_t all, before;
	pthread_attr_t attr;
	int ret = pthread_attr_init(&attr);

	if (ret != 0)
		return -ret;
	pthread_attr_setstacksize(&attr, STACK_BYTES);
	/* A signal that is raised by a fault must end the program as usual. */
	sigfillset(&all);
	sigdelset(&all, SIGSEGV);
	sigdelset(&all, SIGBUS);
	sigdelset(&all, SIGILL);
	sigdelset(&all, SIGFPE);
	sigdelset(&all, SIGTRAP);
	sigdelset(&all, SIGABRT);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	ret = -pm_self_guard_start(&helper->guard, &before);
	pm_self_set_own_thread(PM_SELF_GUARD, helper->guard.tid);
	if (ret == 0) {
		ret = pthread_create(&helper->thread, &attr, helper_main, helper);
		if (ret != 0)
			pm_self_guard_stop(&helper->guard);
	}
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attr);
	return -ret;
}

static void helper_free(struct pm_self_helper *helper)
{
	pthread_cond_destroy(&helper->changed);
	pthread_mutex_destroy(&helper->lock);
	free(helper);
}

static int helper_start(struct pm_self_helper **out,
			const struct pm_self_settings *settings, struct pm_error *err)
{
	struct pm_self_helper *helper = calloc(1, sizeof(*helper));
	int ret;

	if (!helper)
		return pm_error_set(err, -ENOMEM, "out of memory");
	helper->settings = settings;
	helper->wait_fd = helper->wake_fd = -1;
	pthread_mutex_init(&helper->lock, NULL);
	pthread_cond_init(&helper->changed, NULL);
	ret = helper_begin_thread(helper);
	if (ret < 0) {
		helper_free(helper);
		return pm_error_set(err, ret, "no thread can be made: %s",
				    strerror(-ret));
	}
	pthread_mutex_lock(&helper->lock);
	while (helper->state == OPENING)
		pthread_cond_wait(&helper->changed, &helper->lock);
	pthread_mutex_unlock(&helper->lock);
	if (helper->state == RUNNING) {
		*out = helper;
		return 0;
	}
	pthread_join(helper->thread, NULL);
	pm_self_guard_stop(&helper->guard);
	ret = helper->result;
	*err = helper->err;
	helper_free(helper);
	return ret;
}

/*
 * Ends the helper's sleep, which could otherwise last up to a second. The pipe is in the
 * helper's table and is therefore opened by its path in /proc. It is opened for reading
 * as well, because writing to a pipe that the helper has already closed would raise
 * SIGPIPE here. libc's wrappers are avoided, because a sanitizer would take these calls
 * as uses of the program's descriptor with the same number.
 */
static void helper_wake(const struct pm_self_helper *helper)
{
	char path[64];
	long fd;

	if (helper->wake_signal) {
		pthread_kill(helper->thread, helper->wake_signal);
		return;
	}
	snprintf(path, sizeof(path), "/proc/self/task/%d/fd/%d", (int)helper->tid,
		 helper->wake_fd);
	fd = syscall(SYS_openat, AT_FDCWD, path, O_RDWR | O_NONBLOCK | O_CLOEXEC, 0);
	if (fd < 0)
		return;
	syscall(SYS_write, fd, "", 1);
	syscall(SYS_close, fd);
}

static int helper_stop(struct pm_self_helper *helper, char **table, struct pm_error *err)
{
	int ret;

	helper_set_state(helper, STOPPING);
	helper_wake(helper);
	pthread_join(helper->thread, NULL);
	pm_self_guard_stop(&helper->guard);
	*table = helper->table;
	ret = helper->result;
	if (ret < 0)
		*err = helper->err;
	helper_free(helper);
	return ret;
}

__attribute__((visibility("default"))) const struct pm_self_core pm_self_core = {
	.start = helper_start,
	.stop = helper_stop,
};
