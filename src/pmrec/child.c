/* SPDX-License-Identifier: MIT */
#include "child.h"

#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>

static int prepare_with_stderr(struct pm_launch *launch, char **command, const char *user,
			       struct pm_error *err)
{
	PM_AUTO_CLOSE int out = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
	int ret;

	if (out < 0 || dup2(STDERR_FILENO, STDOUT_FILENO) < 0)
		return pm_error_set(err, -errno, "standard output: %s", strerror(errno));
	ret = pm_launch_prepare_as(launch, command, user, err);
	if (dup2(out, STDOUT_FILENO) < 0 && ret == 0) {
		ret = pm_error_set(err, -errno, "standard output: %s", strerror(errno));
		pm_launch_release(launch);
	}
	return ret;
}

int pm_rec_child_prepare(struct pm_rec_child *child, char **command, const char *user,
			 bool data_on_stdout, struct pm_error *err)
{
	/* An inherited SIG_IGN would reap the command behind our back. */
	signal(SIGCHLD, SIG_DFL);
	return data_on_stdout ? prepare_with_stderr(&child->launch, command, user, err)
			      : pm_launch_prepare_as(&child->launch, command, user, err);
}

int pm_rec_child_catch_signals(struct pm_rec_child *child, bool snapshots,
			       struct pm_error *err)
{
	static const int caught[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGCHLD };
	sigset_t set;

	sigemptyset(&set);
	for (size_t i = 0; i < PM_ARRAY_LEN(caught); i++)
		sigaddset(&set, caught[i]);
	if (snapshots)
		sigaddset(&set, SIGUSR2);
	signal(SIGPIPE, SIG_IGN);
	/* A limit on the size of files (RLIMIT_FSIZE) is an error like a full disk. */
	signal(SIGXFSZ, SIG_IGN);
	sigprocmask(SIG_BLOCK, &set, NULL);
	child->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (child->signal_fd < 0)
		return pm_error_set(err, -errno, "signalfd: %s", strerror(errno));
	return 0;
}

void pm_rec_child_release(struct pm_rec_child *child)
{
	pm_cleanup_close(&child->signal_fd);
	pm_launch_release(&child->launch);
}

/*
 * A key on the terminal (SI_KERNEL) reaches the whole foreground group, the command included
 * unless it left the group. What only we got has to be handed on; SIGTERM, as perf does:
 * shells start background jobs with SIGINT ignored.
 */
static void stop_child(const struct pm_rec_child *child, bool from_terminal)
{
	if (!child->running)
		return;
	if (child->interrupts > 1)
		kill(child->launch.pid, SIGKILL);
	else if (!from_terminal || getpgid(child->launch.pid) != getpgrp())
		kill(child->launch.pid, SIGTERM);
}

void pm_rec_child_signals(struct pm_rec_child *child)
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
		stop_child(child, info.ssi_code == SI_KERNEL);
	}
}

void pm_rec_child_reap(struct pm_rec_child *child)
{
	pid_t ended;

	if (!child->running)
		return;
	ended = wait4(child->launch.pid, &child->status, WNOHANG, &child->usage);
	if (ended == 0 || (ended < 0 && errno == EINTR))
		return;
	child->running = false;
	child->status_known = ended > 0;
}
