/* SPDX-License-Identifier: MIT */
#include "guard.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>

#include "pm/run.h"

enum {
	STAT_LINE_MAX = 4096,
	AGAIN_US = 2000, /* between two searches for processes that have survived a
	                  * kill */
	KILL_SECONDS_MAX = 30, /* a process that sleeps longer in the kernel is
	                        * reported */
};
#define NS_PER_SECOND UINT64_C(1000000000)

static const int wishes[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT };

/* ---- killing all that was started ---------------------------------------------------- */

struct family {
	PM_VEC(struct member {
		pid_t pid, parent;
		bool ours;
	})
	list;
};

/* Returns 0 if the process has ended. */
static pid_t read_parent_pid(const char *pid)
{
	char path[64], line[STAT_LINE_MAX];
	PM_AUTO_CLOSE int fd = -1;
	const char *at;
	ssize_t len;
	int parent;

	if (snprintf(path, sizeof(path), "/proc/%s/stat", pid) >= (int)sizeof(path))
		return 0;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	len = read(fd, line, sizeof(line) - 1);
	if (len <= 0)
		return 0;
	line[len] = '\0';
	at = strrchr(line, ')'); /* followed by " S PPID", see proc_pid_stat(5) */
	if (at && sscanf(at, ") %*c %d", &parent) == 1)
		return parent;
	return 0;
}

static void read_family(struct family *family)
{
	DIR *dir = opendir("/proc");
	struct dirent *entry;

	pm_vec_clear(&family->list);
	while (dir && (entry = readdir(dir))) {
		struct member member = { .pid = atoi(entry->d_name) };

		if (member.pid > 0 &&
		    (member.parent = read_parent_pid(entry->d_name)) > 0 &&
		    pm_vec_push(&family->list, member) < 0)
			break;
	}
	if (dir)
		closedir(dir);
}

static bool is_parent_of_member_ours(const struct family *family,
				     const struct member *member)
{
	if (member->parent == getpid())
		return true;
	for (size_t i = 0; i < family->list.len; i++)
		if (family->list.data[i].ours &&
		    family->list.data[i].pid == member->parent)
			return true;
	return false;
}

/* Kills all descendants that it finds. Those that are created in the meantime become our
 * children when their parents end, and are found next time. */
static void kill_family(struct family *family)
{
	bool more = true;

	read_family(family);
	while (more) {
		more = false;
		for (size_t i = 0; i < family->list.len; i++) {
			struct member *member = &family->list.data[i];

			if (member->ours || !is_parent_of_member_ours(family, member))
				continue;
			member->ours = more = true;
			kill(member->pid, SIGKILL);
		}
	}
}

/* Kills all descendants. As a subreaper, this process finally becomes the parent of each
 * of them: when it has no child, none is left. Returns false if a process did not end. */
static bool kill_all_descendants(void)
{
	uint64_t until = pm_now_ns() + KILL_SECONDS_MAX * NS_PER_SECOND;
	struct family family = { 0 };
	bool none = false;

	while (!none && pm_now_ns() < until) {
		pid_t pid;

		while ((pid = waitpid(-1, NULL, WNOHANG | __WALL)) > 0)
			;
		none = pid < 0 && errno == ECHILD;
		if (none)
			break;
		kill_family(&family);
		usleep(AGAIN_US);
	}
	pm_vec_release(&family.list);
	return none;
}

/* ---- the guard ----------------------------------------------------------------------- */

/* Reaps all processes that have ended. Returns true, with its status, if the
 * worker is among them. */
static bool reap_until_worker(pid_t worker, int *status)
{
	bool ended = false;
	int one;
	pid_t pid;

	while ((pid = waitpid(-1, &one, WNOHANG | __WALL)) > 0)
		if (pid == worker) {
			*status = pm_exit_status(one);
			ended = true;
		}
	return ended;
}

/* Waits until the worker ends, or the process that the user sees, whose end of the pipe
 * is then closed. */
static int watch_worker_and_user(pid_t worker, int life_fd, int signal_fd)
{
	struct signalfd_siginfo info;
	int status = PM_STATUS_FAILED;

	while (!reap_until_worker(worker, &status)) {
		struct pollfd fds[] = {
			{ .fd = life_fd, .events = POLLIN },
			{ .fd = signal_fd, .events = POLLIN },
		};

		if (poll(fds, PM_ARRAY_LEN(fds), -1) < 0)
			continue;
		if (fds[0].revents)
			break;
		while (read(signal_fd, &info, sizeof(info)) > 0)
			;
	}
	return status;
}

static void print_guard_error(int code, const char *text)
{
	struct pm_error err = { 0 };

	pm_error_set(&err, code, "%s", text);
	pm_error_print(&err, "pmdiff", stderr);
}

static void clean_up_guarded_folder(const struct pmdiff_folder *folder)
{
	struct pm_error err = { 0 };

	if (!kill_all_descendants())
		print_guard_error(
			-EBUSY,
			"a process of the build or of the command does not end, though "
			"it was killed");
	if (folder->path && pmdiff_folder_remove(folder, &err) < 0)
		pm_error_print(&err, "pmdiff", stderr);
}

/* Prepares the worker to be killed with the guard, however the guard ends. */
static int become_worker(pid_t guard, const sigset_t *mask)
{
	prctl(PR_SET_NAME, "pmdiff");
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != guard)
		_exit(PM_STATUS_FAILED);
	sigprocmask(SIG_SETMASK, mask, NULL);
	return 0;
}

/* Runs the guard. Only returns in the worker. */
static int run_guard_process(struct pmdiff_folder *out, const char *common_dir,
			     int life_fd, const sigset_t *mask, struct pm_error *err)
{
	struct pmdiff_folder folder = { 0 };
	pid_t us = getpid(), worker;
	int ret, status, signal_fd;
	sigset_t all;

	/* Leave the terminal's session, and the process group and name that kill(1)
	 * and pkill(1) may target. */
	setsid();
	prctl(PR_SET_NAME, "worktree-guard");
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	sigemptyset(&all);
	sigaddset(&all, SIGCHLD);
	signal_fd = signalfd(-1, &all, SFD_CLOEXEC | SFD_NONBLOCK);
	if (signal_fd < 0)
		ret = pm_error_set(err, -errno, "signals: %s", strerror(errno));
	else
		ret = pmdiff_folder_make(&folder, common_dir, err);
	worker = fork();
	if (worker == 0) {
		close(life_fd);
		close(signal_fd);
		become_worker(us, mask);
		*out = folder;
		return ret;
	}
	if (worker < 0)
		print_guard_error(-EAGAIN, "cannot fork");
	if (worker > 0)
		status = watch_worker_and_user(worker, life_fd, signal_fd);
	else
		status = PM_STATUS_FAILED;
	clean_up_guarded_folder(&folder);
	_exit(status);
}

/* ---- the process that the user sees -------------------------------------------------- */

/* Called if the guard was killed. All processes that it had started are now our children,
 * and its directory is left as after a power failure. */
static void clean_up_for_killed_guard(const char *common_dir)
{
	kill_all_descendants();
	pmdiff_folders_sweep(common_dir);
}

/* Never returns. The first signal that asks to end closes the pipe; a second one ends the
 * wait. */
static void wait_for_guard(pid_t pid, const char *common_dir, int life_fd,
			   const sigset_t *waited, const sigset_t *mask)
{
	int wish = 0, status = 0;
	pid_t ended;

	while ((ended = waitpid(pid, &status, WNOHANG)) == 0) {
		int signal = sigwaitinfo(waited, NULL);

		if (signal < 0 || signal == SIGCHLD)
			continue;
		if (wish != 0)
			break;
		wish = signal;
		pm_cleanup_close(&life_fd);
	}
	if (ended == pid && WIFSIGNALED(status))
		clean_up_for_killed_guard(common_dir);
	if (wish != 0) {
		if (isatty(STDERR_FILENO)) /* end the line that shows the progress */
			fputc('\n', stderr);
		signal(wish, SIG_DFL);
		sigprocmask(SIG_SETMASK, mask, NULL);
		raise(wish);
	}
	_exit(ended == pid ? pm_exit_status(status) : PM_STATUS_FAILED);
}

/* Signals that are ignored, as under nohup(1), stay ignored. */
static void fill_waited_signals(sigset_t *waited)
{
	struct sigaction action;

	sigemptyset(waited);
	sigaddset(waited, SIGCHLD);
	for (size_t i = 0; i < PM_ARRAY_LEN(wishes); i++)
		if (sigaction(wishes[i], NULL, &action) == 0 &&
		    action.sa_handler != SIG_IGN)
			sigaddset(waited, wishes[i]);
}

int pmdiff_guard_enter(struct pmdiff_folder *out, const char *common_dir,
		       struct pm_error *err)
{
	sigset_t waited, mask;
	int life[2], ret;
	pid_t pid;

	if (pipe2(life, O_CLOEXEC) < 0)
		return pm_error_set(err, -errno, "a pipe: %s", strerror(errno));
	/* If SIGCHLD stayed ignored, no child could be waited for. */
	signal(SIGCHLD, SIG_DFL);
	fill_waited_signals(&waited);
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	sigprocmask(SIG_BLOCK, &waited, &mask);
	pid = fork();
	if (pid > 0) {
		close(life[0]);
		wait_for_guard(pid, common_dir, life[1], &waited, &mask);
	}
	if (pid == 0) {
		close(life[1]);
		return run_guard_process(out, common_dir, life[0], &mask, err);
	}
	ret = errno;
	sigprocmask(SIG_SETMASK, &mask, NULL);
	close(life[0]);
	close(life[1]);
	return pm_error_set(err, -ret, "cannot fork: %s", strerror(ret));
}
