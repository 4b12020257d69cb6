/* SPDX-License-Identifier: MIT */
/*
 * A command that waits before its exec. One byte through a socket starts it. (A socket is
 * used because writing to a pipe whose reader has died raises SIGPIPE.) The errno of a
 * failed exec is returned through a pipe, which a successful exec closes (CLOEXEC).
 */
#include "proc-internal.h"

#include <dirent.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>

enum {
	/* BINPRM_BUF_SIZE of the kernel, which does not read more of the first line of a
	 * script. */
	SHEBANG_BYTES = 256,
	/* Limits of the search for "did you mean". */
	NEAR_NAME_BYTES = NAME_MAX + 1,
	NEAR_ENTRIES_MAX = 50000,
	COULD_NOT_RUN = 127,
};

/* Everything that the child needs, allocated before the fork: another thread of ours may
 * hold a lock of malloc() at that moment. */
struct pm_launch_plan {
	PM_VEC(char *) paths; /* candidates for the command's path, in order */
	char **shell_argv; /* /bin/sh FILE ARGS…, for scripts without #! */
	char *const *argv;
	bool other_user;
	struct pm_user user; /* valid if other_user */
	sigset_t mask, defaults; /* for the command */
};

static void plan_release(struct pm_launch_plan *plan)
{
	for (size_t i = 0; i < plan->paths.len; i++)
		free(plan->paths.data[i]);
	pm_vec_release(&plan->paths);
	free(plan->shell_argv);
	pm_user_release(&plan->user);
}

static int plan_add_path(struct pm_launch_plan *plan, const char *folder,
			 size_t folder_len, const char *name)
{
	char *path = NULL;
	int ret;

	/* An empty part of PATH is the current directory (POSIX, "Other
	 * Environment Variables"). */
	if (asprintf(&path, "%.*s%s%s", (int)folder_len, folder, folder_len ? "/" : "",
		     name) < 0)
		return -ENOMEM;
	ret = pm_vec_push(&plan->paths, path);
	if (ret < 0)
		free(path);
	return ret;
}

static int plan_paths(struct pm_launch_plan *plan, const char *name)
{
	const char *at = getenv("PATH");

	if (name[0] == '\0')
		return 0;
	if (strchr(name, '/'))
		return plan_add_path(plan, "", 0, name);
	if (!at)
		at = "/bin:/usr/bin"; /* as confstr(_CS_PATH) and execvp(3) */
	for (;;) {
		size_t len = strcspn(at, ":");
		int ret = plan_add_path(plan, at, len, name);

		if (ret < 0)
			return ret;
		if (at[len] == '\0')
			return 0;
		at += len + 1;
	}
}

static int plan_shell(struct pm_launch_plan *plan, char *const argv[])
{
	static char shell[] = "/bin/sh";
	size_t argc = 0;

	while (argv[argc])
		argc++;
	/* shell, the file (filled in by the child), arguments, NULL */
	plan->shell_argv = calloc(argc + 2, sizeof(*plan->shell_argv));
	if (!plan->shell_argv)
		return -ENOMEM;
	plan->shell_argv[0] = shell;
	for (size_t i = 1; i < argc; i++)
		plan->shell_argv[i + 1] = argv[i];
	return 0;
}

/* ---- the child ----------------------------------------------------------------------- */

/* Shells run a text file without #! themselves, but refuse a
 * binary of another machine. */
static bool is_script(const char *path)
{
	char first[128];
	int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	ssize_t len = fd < 0 ? -1 : read(fd, first, sizeof(first));

	if (fd >= 0)
		close(fd);
	return len >= 0 && !memchr(first, '\0', (size_t)len);
}

/* Tries all paths. Returns the most informative errno if none could be executed. */
static int plan_exec_paths(const struct pm_launch_plan *plan)
{
	bool explicit = strchr(plan->argv[0], '/');
	int found = ENOENT;

	for (size_t i = 0; i < plan->paths.len; i++) {
		execv(plan->paths.data[i], plan->argv);
		if (errno == ENOEXEC && is_script(plan->paths.data[i])) {
			plan->shell_argv[1] = plan->paths.data[i];
			execv(plan->shell_argv[0], plan->shell_argv);
			errno = ENOEXEC;
		}
		/* Continue the search in the same cases as a shell does. A directory that
		 * may not be searched counts as one without the command. */
		if (errno == EACCES) {
			if (explicit || access(plan->paths.data[i], F_OK) == 0)
				found = EACCES;
		} else if (errno != ENOENT && errno != ENOTDIR && errno != ESTALE &&
			   errno != ENODEV && errno != ETIMEDOUT) {
			return errno;
		} else if (explicit) {
			found = errno;
		}
	}
	return found;
}

/* Our handlers are meaningless in the child. Ignored signals stay
 * ignored across the exec. */
static void reset_handlers(const struct pm_launch_plan *plan)
{
	for (int sig = 1; sig < NSIG; sig++) {
		struct sigaction action;

		if (sigaction(sig, NULL, &action) == 0 && action.sa_handler != SIG_DFL &&
		    (action.sa_handler != SIG_IGN ||
		     sigismember(&plan->defaults, sig) == 1)) {
			action = (struct sigaction){ .sa_handler = SIG_DFL };
			sigaction(sig, &action, NULL);
		}
	}
}

/* Returns 0 or an errno. The groups are set first, because only root may change them. */
static int become_user(const struct pm_user *user)
{
	if (setgroups(user->groups_len, user->groups) < 0 ||
	    setresgid(user->gid, user->gid, user->gid) < 0 ||
	    setresuid(user->uid, user->uid, user->uid) < 0)
		return errno;
	return 0;
}

static _Noreturn void run_child_until_exec(const struct pm_launch_plan *plan, int go_fd,
					   int error_fd)
{
	char go;
	ssize_t n;
	int failure;

	reset_handlers(plan);
	sigprocmask(SIG_SETMASK, &plan->mask, NULL);
	do
		n = recv(go_fd, &go, 1, 0);
	while (n < 0 && errno == EINTR);
	/* End of file without a byte: the process that wanted to
	 * start the command is gone. */
	if (n == 0)
		_exit(COULD_NOT_RUN);
	failure = n < 0 ? errno : 0;
	/* A negative number means that the failure came before the exec. */
	if (failure == 0 && plan->other_user)
		failure = -become_user(&plan->user);
	if (failure == 0)
		failure = plan_exec_paths(plan);
	do
		n = write(error_fd, &failure, sizeof(failure));
	while (n < 0 && errno == EINTR);
	_exit(COULD_NOT_RUN);
}

/* ---- messages ------------------------------------------------------------------------ */

/* Reads the interpreter from the first line of a script. Returns false if there is
 * none. */
static bool read_interpreter(const char *path, char out[SHEBANG_BYTES])
{
	PM_AUTO_CLOSE int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	ssize_t len = fd < 0 ? -1 : read(fd, out, SHEBANG_BYTES - 1);
	size_t skip;

	if (len < 2 || out[0] != '#' || out[1] != '!')
		return false;
	out[len] = '\0';
	skip = 2 + strspn(out + 2, " \t");
	memmove(out, out + skip, strlen(out + skip) + 1);
	out[strcspn(out, " \t\n")] = '\0';
	return out[0] != '\0';
}

/* Returns the first candidate that exists, or NULL. */
static const char *first_existing(const struct pm_launch_plan *plan, struct stat *st)
{
	for (size_t i = 0; i < plan->paths.len; i++)
		if (stat(plan->paths.data[i], st) == 0)
			return plan->paths.data[i];
	return NULL;
}

/* Finds the name of a command that is similar to @name. Returns false if there is
 * none. */
static bool find_near(const char *name, char out[NEAR_NAME_BYTES])
{
	const char *at = getenv("PATH");
	size_t best = strlen(name) < 5 ? 2 : 3; /* allows for one or two typos, but not
	                                         * for another word */
	size_t seen = 0, start = best;

	while (at && *at && seen < NEAR_ENTRIES_MAX) {
		size_t len = strcspn(at, ":");
		PM_AUTO_FREE char *folder = strndup(at, len);
		DIR *entries = folder ? opendir(folder) : NULL;
		const struct dirent *entry;

		while (entries && seen++ < NEAR_ENTRIES_MAX &&
		       (entry = readdir(entries))) {
			size_t distance = pm_name_distance(name, entry->d_name);

			if (distance >= best || distance >= strlen(name) ||
			    faccessat(dirfd(entries), entry->d_name, X_OK, 0) < 0)
				continue;
			best = distance;
			snprintf(out, NEAR_NAME_BYTES, "%s", entry->d_name);
		}
		if (entries)
			closedir(entries);
		at += len + (at[len] == ':');
	}
	return best < start;
}

/* Returns the program that corresponds to a subcommand of perf(1), or NULL if @word is
 * none. */
static const char *program_for(const char *word)
{
	static const char *const words[][2] = {
		{ "record", "pmrec COMMAND" },
		{ "report", "pmreport FILE" },
		{ "annotate", "pmreport --annotate FUNCTION" },
	};

	for (size_t i = 0; i < PM_ARRAY_LEN(words); i++)
		if (strcmp(word, words[i][0]) == 0)
			return words[i][1];
	return NULL;
}

static int explain_not_found(const struct pm_launch_plan *plan, const char *name,
			     struct pm_error *err)
{
	char interpreter[SHEBANG_BYTES], near[NEAR_NAME_BYTES];
	struct stat st;
	const char *path = first_existing(plan, &st);

	if (path && S_ISREG(st.st_mode)) {
		if (read_interpreter(path, interpreter))
			return pm_error_set(err, -ENOENT,
					    "its interpreter %s does not exist",
					    interpreter);
		return pm_error_set(err, -ENOENT,
				    "its dynamic loader does not exist on this system");
	}
	if (strchr(name, '/'))
		return pm_error_set(err, -ENOENT, "no such file");
	pm_error_set(err, -ENOENT, "no such command");
	if (stat(name, &st) == 0 && S_ISREG(st.st_mode) && access(name, X_OK) == 0)
		pm_error_fix(err, "./%s", name);
	else if (program_for(name))
		pm_error_fix(err, "%s", program_for(name));
	else if (find_near(name, near))
		pm_error_fix(err, "%s", near);
	else
		pm_error_fix(err, "the path of the program, as in ./%s", name);
	return -ENOENT;
}

static int explain_denied(const struct pm_launch_plan *plan, struct pm_error *err)
{
	char interpreter[SHEBANG_BYTES];
	struct stat st;
	const char *path = first_existing(plan, &st);

	if (path && S_ISDIR(st.st_mode))
		return pm_error_set(err, -EACCES, "is a directory");
	if (path && !S_ISREG(st.st_mode))
		return pm_error_set(err, -EACCES, "not a regular file");
	if (path && !(st.st_mode & 0111)) {
		pm_error_set(err, -EACCES, "not executable");
		pm_error_fix(err, "chmod +x %s", path);
		return -EACCES;
	}
	if (path && read_interpreter(path, interpreter) && access(interpreter, X_OK) < 0)
		return pm_error_set(err, -EACCES, "its interpreter %s is not executable",
				    interpreter);
	return pm_error_set(err, -EACCES, "permission denied");
}

static int explain_exec_failure(const struct pm_launch_plan *plan, int failure,
				struct pm_error *err)
{
	const char *name = plan->argv[0];
	int ret;

	if (failure < 0)
		ret = pm_error_set(err, failure, "cannot become user %u: %s",
				   (unsigned int)plan->user.uid, strerror(-failure));
	else if (failure == ENOENT || failure == ENOTDIR)
		ret = explain_not_found(plan, name, err);
	else if (failure == EACCES)
		ret = explain_denied(plan, err);
	else if (failure == ENOEXEC)
		ret = pm_error_set(err, -ENOEXEC, "not a program for this machine");
	else
		ret = pm_error_set(err, -failure, "cannot be run: %s", strerror(failure));
	pm_error_where(err, name[0] ? name : "''", -1);
	return ret;
}

/* ---- public -------------------------------------------------------------------------- */

static void plan_free(struct pm_launch_plan *plan)
{
	if (plan)
		plan_release(plan);
	free(plan);
}

static void plan_cleanup(struct pm_launch_plan **plan)
{
	plan_free(*plan);
}

/* Waits for @pid, which has exited or is about to. Returns 0 or a negative errno. */
static int reap_child(pid_t pid, int *status)
{
	pid_t rc;

	do
		rc = waitpid(pid, status, 0);
	while (rc < 0 && errno == EINTR);
	if (rc < 0)
		return -errno;
	return 0;
}

/* The two ends of each direction. */
struct channel {
	int near_go, far_go;
	int near_error, far_error;
};

static void channel_release(struct channel *channel)
{
	pm_cleanup_close(&channel->near_go);
	pm_cleanup_close(&channel->far_go);
	pm_cleanup_close(&channel->near_error);
	pm_cleanup_close(&channel->far_error);
}

static int channel_open(struct channel *channel)
{
	int go[2], error[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, go) < 0)
		return -errno;
	channel->near_go = go[0];
	channel->far_go = go[1];
	if (pipe2(error, O_CLOEXEC) < 0)
		return -errno;
	channel->near_error = error[0];
	channel->far_error = error[1];
	return 0;
}

/* Signals are blocked during the fork; otherwise, the child might run our handlers. */
static pid_t fork_child(struct pm_launch_plan *plan,
			const struct pm_launch_signals *signals,
			const struct channel *channel)
{
	sigset_t all, before;
	pid_t pid;
	int saved;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	plan->mask = signals ? signals->mask : before;
	if (signals)
		plan->defaults = signals->defaults;
	else
		sigemptyset(&plan->defaults);
	pid = fork();
	if (pid == 0) {
		/* If the child kept our end open, it would not notice our death. */
		close(channel->near_go);
		run_child_until_exec(plan, channel->far_go, channel->far_error);
	}
	saved = errno;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	errno = saved;
	return pid;
}

static int plan_user(struct pm_launch_plan *plan, const char *user, struct pm_error *err)
{
	if (!user)
		return 0;
	if (geteuid() != 0) {
		pm_error_set(err, -EPERM, "only root may run a command as another user");
		pm_error_fix(err, "the same with sudo");
		return -EPERM;
	}
	plan->other_user = true;
	return pm_user_find(user, &plan->user, err);
}

int pm_launch_prepare(struct pm_launch *launch, char *const argv[], struct pm_error *err)
{
	return pm_launch_prepare_as(launch, argv, NULL, NULL, err);
}

int pm_launch_prepare_as(struct pm_launch *launch, char *const argv[], const char *user,
			 const struct pm_launch_signals *signals, struct pm_error *err)
{
	struct pm_launch_plan *plan PM_CLEANUP(plan_cleanup) = calloc(1, sizeof(*plan));
	struct channel channel PM_CLEANUP(channel_release) = { -1, -1, -1, -1 };
	pid_t pid;
	int ret;

	if (!argv || !argv[0])
		return pm_error_set(err, -EINVAL, "no command given");
	if (!plan || plan_paths(plan, argv[0]) < 0 || plan_shell(plan, argv) < 0)
		return pm_error_set(err, -ENOMEM, "%s", strerror(ENOMEM));
	plan->argv = argv;
	ret = plan_user(plan, user, err);
	if (ret < 0)
		return ret;
	ret = channel_open(&channel);
	if (ret < 0)
		return pm_error_set(err, ret, "cannot make a channel to the command: %s",
				    strerror(-ret));
	pid = fork_child(plan, signals, &channel);
	if (pid < 0) {
		ret = -errno;
		return pm_error_set(err, ret, "cannot make a process: %s",
				    strerror(-ret));
	}
	launch->pid = pid;
	/* Old kernels and seccomp refuse this; then waitpid(2) is used instead. */
	launch->pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	launch->go_fd = pm_take_fd(&channel.near_go);
	launch->error_fd = pm_take_fd(&channel.near_error);
	launch->begun = launch->ended = false;
	launch->status = 0;
	launch->plan = PM_TAKE_PTR(plan);
	return 0;
}

/* Returns 1 if the byte was sent, 0 if the child is already dead, or a negative errno; in
 * that case the child is killed, because it would wait forever. */
static int send_go(const struct pm_launch *launch, int fd, struct pm_error *err)
{
	ssize_t n;
	int ret;

	do
		n = send(fd, "g", 1, MSG_NOSIGNAL);
	while (n < 0 && errno == EINTR);
	if (n == 1 || errno == EPIPE || errno == ECONNRESET)
		return n == 1;
	ret = -errno;
	kill(launch->pid, SIGKILL);
	pm_error_set(err, ret, "the command cannot be let go: send: %s", strerror(-ret));
	pm_error_where(err, launch->plan->argv[0], -1);
	return ret;
}

int pm_launch_begin(struct pm_launch *launch, struct pm_error *err)
{
	int ret;

	if (launch->go_fd < 0 || launch->begun)
		return pm_error_set(err, -EINVAL, "the command was let go before");
	ret = send_go(launch, launch->go_fd, err);
	/* If the child is already dead, pm_launch_go() detects that. */
	launch->begun = ret == 1;
	return PM_MIN(ret, 0);
}

/* Explains why the child did not reach its exec. */
static int explain_end(const struct pm_launch *launch, struct pm_error *err)
{
	int status = launch->status,
	    ret = launch->ended ? 0 : reap_child(launch->pid, &status);

	if (ret < 0)
		pm_error_set(err, -ECANCELED,
			     "ended before it could start, and cannot be waited for: %s",
			     strerror(-ret));
	else if (WIFSIGNALED(status))
		pm_error_set(err, -ECANCELED, "ended by signal %d before it could start",
			     WTERMSIG(status));
	else
		pm_error_set(err, -ECANCELED,
			     "ended with status %d before it could start",
			     WEXITSTATUS(status));
	pm_error_where(err, launch->plan->argv[0], -1);
	return -ECANCELED;
}

/* Kills a child whose exec may have been reached, because its result cannot be read. */
static int kill_unknown(struct pm_launch *launch, int code, struct pm_error *err)
{
	kill(launch->pid, SIGKILL);
	if (!launch->ended)
		reap_child(launch->pid, &launch->status);
	pm_error_set(err, code, "whether the command has started is not known: read: %s",
		     strerror(-code));
	pm_error_where(err, launch->plan->argv[0], -1);
	return code;
}

int pm_launch_go(struct pm_launch *launch, struct pm_error *err)
{
	PM_AUTO_CLOSE int go_fd = pm_take_fd(&launch->go_fd);
	PM_AUTO_CLOSE int error_fd = pm_take_fd(&launch->error_fd);
	int failure = 0, sent;
	ssize_t n = -1;

	if (go_fd < 0)
		return pm_error_set(err, -EINVAL, "the command was let go before");
	if (launch->begun)
		sent = 1;
	else
		sent = send_go(launch, go_fd, err);
	if (sent < 0) {
		reap_child(launch->pid, &failure);
		return sent;
	}
	if (sent == 1)
		do
			n = read(error_fd, &failure, sizeof(failure));
		while (n < 0 && errno == EINTR);
	/* End of file: the exec closed the child's end. */
	if (n == 0)
		return 0;
	/* The command may already be running; waiting for it would take until it
	 * exits. */
	if (sent == 1 && n < 0)
		return kill_unknown(launch, -errno, err);
	if (n != sizeof(failure) || failure == 0)
		return explain_end(launch, err);
	if (!launch->ended)
		reap_child(launch->pid, &launch->status);
	return explain_exec_failure(launch->plan, failure, err);
}

int pm_launch_abandon(struct pm_launch *launch, struct pm_error *err)
{
	pm_cleanup_close(&launch->go_fd);
	pm_cleanup_close(&launch->error_fd);
	launch->go_fd = launch->error_fd = -1;
	kill(launch->pid, SIGKILL);
	pm_error_set(err, -ECANCELED,
		     "has not started, and is not waited for: its file system may not "
		     "answer");
	pm_error_where(err, launch->plan->argv[0], -1);
	return -ECANCELED;
}

void pm_launch_release(struct pm_launch *launch)
{
	if (launch->pid <= 0)
		return;
	if (launch->go_fd >= 0) {
		kill(launch->pid, SIGKILL);
		close(launch->go_fd);
		close(launch->error_fd);
		reap_child(launch->pid, &launch->status);
	}
	if (launch->pidfd >= 0)
		close(launch->pidfd);
	plan_free(launch->plan);
	*launch =
		(struct pm_launch){ .pid = -1, .pidfd = -1, .go_fd = -1, .error_fd = -1 };
}

int pm_exit_status(int status)
{
	if (WIFEXITED(status))
		return WEXITSTATUS(status);
	if (WIFSIGNALED(status))
		return 128 + WTERMSIG(status);
	if (WIFSTOPPED(status))
		return 128 + WSTOPSIG(status);
	return 0;
}
