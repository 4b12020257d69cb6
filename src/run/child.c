/* SPDX-License-Identifier: MIT */
#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <time.h>

#include "pm/run.h"

enum {
	START_TICK_MS = 50,
};
/* How long the exec may still take after we were asked to stop. */
#define START_NS_MAX 1000000000ull
/* How long a command that was asked to end may be in an uninterruptible sleep. */
#define STUCK_NS_MAX 1000000000ull

static int prepare_with_stderr(struct pm_launch *launch, char **command, const char *user,
			       const struct pm_launch_signals *signals,
			       struct pm_error *err)
{
	PM_AUTO_CLOSE int out = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
	int ret;

	if (out < 0 || dup2(STDERR_FILENO, STDOUT_FILENO) < 0)
		return pm_error_set(err, -errno, "standard output: %s", strerror(errno));
	ret = pm_launch_prepare_as(launch, command, user, signals, err);
	if (dup2(out, STDOUT_FILENO) < 0 && ret == 0) {
		ret = pm_error_set(err, -errno, "standard output: %s", strerror(errno));
		pm_launch_release(launch);
	}
	return ret;
}

static bool is_program_file(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISREG(st.st_mode) && access(path, X_OK) == 0;
}

/* Ignores @sig, and remembers to restore the default action for the command. */
static void ignore_signal(struct pm_child *child, int sig)
{
	struct sigaction before;

	if (sigaction(sig, NULL, &before) == 0 && before.sa_handler == SIG_DFL)
		sigaddset(&child->signals.defaults, sig);
	signal(sig, SIG_IGN);
}

/*
 * A key on the terminal (SI_KERNEL) sends the signal to the whole foreground group, which
 * includes the command unless it left the group. A signal that only we received is
 * forwarded as SIGTERM, as perf does: shells start background jobs with SIGINT ignored.
 */
static void stop_command(const struct pm_child *child, bool from_terminal)
{
	if (!child->running)
		return;
	if (child->interrupts > 1)
		kill(child->launch.pid, SIGKILL);
	else if (!from_terminal || getpgid(child->launch.pid) != getpgrp())
		kill(child->launch.pid, SIGTERM);
	/* A stopped process would not get the signal before it is resumed. */
	kill(child->launch.pid, SIGCONT);
}

static int fork_command(struct pm_child *child, char **command, const char *user,
			bool data_on_stdout, struct pm_error *err)
{
	const struct pm_launch_signals *signals =
		child->signal_fd >= 0 ? &child->signals : NULL;

	if (data_on_stdout)
		return prepare_with_stderr(&child->launch, command, user, signals, err);
	return pm_launch_prepare_as(&child->launch, command, user, signals, err);
}

int pm_child_prepare(struct pm_child *child, char **command, const char *user,
		     bool data_on_stdout, struct pm_error *err)
{
	struct rlimit raised;
	int ret;

	pm_launch_release(&child->launch);
	child->running = child->status_known = false;
	child->wait_error = 0;
	child->stuck_tid = 0;
	child->ending = false;
	child->status = child->launch_error = 0;
	child->usage = (struct rusage){ 0 };
	if (child->signal_fd >= 0)
		pm_child_signals(child);
	/* With an inherited SIG_IGN the kernel would reap the command without us. */
	signal(SIGCHLD, SIG_DFL);
	/* Opening events on many CPUs may have raised the limit since then
	 * (pm/perf.h). */
	if (child->signal_fd < 0 || getrlimit(RLIMIT_NOFILE, &raised) < 0)
		return fork_command(child, command, user, data_on_stdout, err);
	setrlimit(RLIMIT_NOFILE, &child->files);
	ret = fork_command(child, command, user, data_on_stdout, err);
	setrlimit(RLIMIT_NOFILE, &raised);
	return ret;
}

int pm_child_catch_signals(struct pm_child *child, bool snapshots, struct pm_error *err)
{
	static const int caught[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGCHLD };
	sigset_t set;

	if (child->signal_fd >= 0)
		return 0;
	sigemptyset(&set);
	for (size_t i = 0; i < PM_ARRAY_LEN(caught); i++)
		sigaddset(&set, caught[i]);
	if (snapshots)
		sigaddset(&set, SIGUSR2);
	sigemptyset(&child->signals.defaults);
	ignore_signal(child, SIGPIPE);
	/* A limit on the size of files (RLIMIT_FSIZE) is an error like a full disk. */
	ignore_signal(child, SIGXFSZ);
	sigprocmask(SIG_BLOCK, &set, &child->signals.mask);
	getrlimit(RLIMIT_NOFILE, &child->files);
	child->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (child->signal_fd < 0)
		return pm_error_set(err, -errno, "signalfd: %s", strerror(errno));
	return 0;
}

/* Waits for the result of the command's exec. The exec of a file on a server that does
 * not respond never returns; our signals must be handled nevertheless. */
static int await_exec_of_command(struct pm_child *child, struct pm_error *err)
{
	struct pollfd fds[] = { { .fd = child->launch.error_fd, .events = POLLIN },
				{ .fd = child->signal_fd, .events = POLLIN } };
	uint64_t asked_ns = 0;
	bool taken = false;
	int ret = pm_launch_begin(&child->launch, err);

	while (ret == 0 && fds[0].revents == 0) {
		poll(fds, PM_ARRAY_LEN(fds), asked_ns > 0 ? START_TICK_MS : -1);
		/* A SIGCHLD that arrives after poll(2) is left for the caller. */
		if (fds[1].revents != 0) {
			taken = true;
			pm_child_signals(child);
		}
		if (asked_ns == 0 && child->interrupts > 0)
			asked_ns = pm_now_ns();
		if (fds[0].revents == 0 && asked_ns > 0 &&
		    pm_now_ns() - asked_ns > START_NS_MAX)
			return pm_launch_abandon(&child->launch, err);
	}
	/* One of the signals may have been SIGCHLD; send it again for a
	 * caller that waits for it. */
	if (taken)
		kill(getpid(), SIGCHLD);
	return ret;
}

int pm_child_go(struct pm_child *child, struct pm_error *err)
{
	if (child->signal_fd >= 0 && !child->launch.begun)
		child->launch_error = await_exec_of_command(child, err);
	else
		child->launch_error = 0;
	if (child->launch_error == 0)
		child->launch_error = pm_launch_go(&child->launch, err);
	/* The command may already have exited, and a tracer has its status. */
	child->running = child->launch_error == 0 && !child->status_known;
	/* We were asked to stop before the command could be signalled. */
	if (child->interrupts > 0)
		stop_command(child, false);
	return child->launch_error;
}

void pm_child_release(struct pm_child *child)
{
	pm_cleanup_close(&child->signal_fd);
	child->signal_fd = -1;
	pm_launch_release(&child->launch);
}

bool pm_child_is_runnable(const char *name)
{
	const char *rest = getenv("PATH");

	if (strchr(name, '/'))
		return is_program_file(name);
	for (rest = pm_text_or(rest, "/bin:/usr/bin");; rest++) {
		size_t len = strcspn(rest, ":");
		PM_AUTO_FREE char *path = NULL;

		if (asprintf(&path, "%.*s%s%s", (int)len, rest, pm_text_if(len > 0, "/"),
			     name) < 0) {
			path = NULL;
			return true;
		}
		if (is_program_file(path))
			return true;
		rest += len;
		if (*rest == '\0')
			return false;
	}
}

void pm_child_signals(struct pm_child *child)
{
	struct signalfd_siginfo info;

	while (read(child->signal_fd, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
		if (info.ssi_signo == SIGCHLD)
			continue;
		if (info.ssi_signo == SIGUSR2) {
			child->snapshots++;
			continue;
		}
		child->interrupts++;
		stop_command(child, info.ssi_code == SI_KERNEL);
	}
}

void pm_child_reap(struct pm_child *child)
{
	pid_t ended;

	if (!child->running)
		return;
	ended = wait4(child->launch.pid, &child->status, WNOHANG, &child->usage);
	if (ended == 0 || (ended < 0 && errno == EINTR))
		return;
	child->running = false;
	child->status_known = ended > 0;
	child->wait_error = 0;
	if (ended < 0)
		child->wait_error = -errno;
}

/* A thread in an uninterruptible sleep, and the number of its sleeps so far. */
struct sleeper {
	pid_t tid; /* 0: none */
	uint64_t sleeps;
};

/*
 * Sets out->tid to @tid if the thread is in an uninterruptible sleep, otherwise to 0.
 * Returns false if the process is writing a core dump: its threads wait for that in such
 * a sleep, and it ends by itself. See proc_pid_status(5).
 */
static bool read_sleep_of_thread(pid_t pid, pid_t tid, struct sleeper *out)
{
	PM_AUTO_FCLOSE FILE *file = NULL;
	PM_AUTO_FREE char *line = NULL;
	char path[64], state = 0;
	unsigned int dumps = 0;
	size_t cap = 0;

	*out = (struct sleeper){ 0 };
	snprintf(path, sizeof(path), "/proc/%d/task/%d/status", (int)pid, (int)tid);
	file = fopen(path, "re");
	while (file && getline(&line, &cap, file) > 0) {
		(void)sscanf(line, "State: %c", &state);
		(void)sscanf(line, "CoreDumping: %u", &dumps);
		(void)sscanf(line, "voluntary_ctxt_switches: %" SCNu64, &out->sleeps);
	}
	out->tid = state == 'D' ? tid : 0;
	return dumps == 0;
}

/* Returns the thread that was in such a sleep @before if it still is, otherwise any other
 * such thread. */
static struct sleeper find_sleeping_thread(pid_t pid, struct sleeper before)
{
	struct sleeper found = { 0 }, one;
	const struct dirent *entry;
	char path[64];
	bool ends = false;
	DIR *folder;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	folder = opendir(path);
	while (folder && !ends && (entry = readdir(folder))) {
		uint64_t tid;

		if (!pm_parse_u64(entry->d_name, &tid) || tid > INT32_MAX)
			continue;
		ends = !read_sleep_of_thread(pid, (pid_t)tid, &one);
		if (one.tid != 0 && (found.tid == 0 || (one.tid == before.tid &&
							one.sleeps == before.sleeps)))
			found = one;
	}
	if (folder)
		closedir(folder);
	if (!ends)
		return found;
	return (struct sleeper){ 0 };
}

bool pm_child_give_up_stuck(struct pm_child *child, const char *program)
{
	const struct sleeper before = { child->stuck_tid, child->stuck_sleeps };
	struct sleeper now = { 0 };

	if (child->running && (child->interrupts > 0 || child->ending))
		now = find_sleeping_thread(child->launch.pid, before);
	/* A thread that started another sleep is waiting for a slow disk, and is not
	 * stuck. */
	if (now.tid != before.tid || now.sleeps != before.sleeps)
		child->stuck_since_ns = pm_now_ns();
	child->stuck_tid = now.tid;
	child->stuck_sleeps = now.sleeps;
	if (now.tid == 0 || pm_now_ns() - child->stuck_since_ns <= STUCK_NS_MAX)
		return false;
	fprintf(stderr,
		"%s: not waiting for the command: process %d waits for a file system or a "
		"device, and cannot be ended\n",
		program, (int)child->launch.pid);
	child->running = false;
	return true;
}

uint64_t pm_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}
