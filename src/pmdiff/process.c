/* SPDX-License-Identifier: MIT */
#include "process.h"

#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/socket.h>

#include "pm/proc.h"
#include "pm/run.h"

enum {
	NS_PER_MS = 1000000,
	READ_BYTES = 64 * 1024,
};

/* From git(1): variables that select a repository and how it is read. Git sets some of
 * them for each hook. */
static const char *const of_hooks[] = {
	"GIT_DIR",
	"GIT_WORK_TREE",
	"GIT_COMMON_DIR",
	"GIT_INDEX_FILE",
	"GIT_PREFIX",
	"GIT_NAMESPACE",
	"GIT_OBJECT_DIRECTORY",
	"GIT_ALTERNATE_OBJECT_DIRECTORIES",
	"GIT_QUARANTINE_PATH",
	"GIT_SHALLOW_FILE",
	"GIT_GRAFT_FILE",
	"GIT_REPLACE_REF_BASE",
	"GIT_IMPLICIT_WORK_TREE",
	"GIT_INTERNAL_SUPER_PREFIX",
	"GIT_LITERAL_PATHSPECS",
	"GIT_GLOB_PATHSPECS",
	"GIT_NOGLOB_PATHSPECS",
	"GIT_ICASE_PATHSPECS",
};

static bool is_variable_named(const char *variable, const char *name)
{
	size_t len = strcspn(variable, "=");

	return strncmp(variable, name, len) == 0 &&
	       (name[len] == '\0' || name[len] == '=');
}

static bool is_variable_left_out(const char *variable, const char *const *instead)
{
	for (size_t i = 0; i < PM_ARRAY_LEN(of_hooks); i++)
		if (is_variable_named(variable, of_hooks[i]))
			return true;
	for (; instead && *instead; instead++)
		if (is_variable_named(variable, *instead))
			return true;
	return false;
}

struct environment {
	PM_VEC(const char *) list; /* NULL-terminated */
	char *pwd;
};

/* Sets PWD to the program's directory: a program that trusts $PWD would otherwise work in
 * ours. */
static int environment_add_pwd(struct environment *out, const char *dir)
{
	if (asprintf(&out->pwd, "PWD=%s", dir) < 0) {
		out->pwd = NULL;
		return -ENOMEM;
	}
	return pm_vec_push(&out->list, out->pwd);
}

static int environment_fill(struct environment *out, const char *dir,
			    const char *const *more)
{
	int ret = 0;

	if (dir)
		ret = environment_add_pwd(out, dir);
	for (char **old = environ; old && *old && ret == 0; old++)
		if (!is_variable_left_out(*old, more) &&
		    !(dir && is_variable_named(*old, "PWD")))
			ret = pm_vec_push(&out->list, *old);
	for (; more && *more && ret == 0; more++)
		ret = pm_vec_push(&out->list, *more);
	if (ret < 0)
		return ret;
	return pm_vec_push(&out->list, NULL);
}

static int add_stream_action(posix_spawn_file_actions_t *actions, int fd, int as)
{
	if (fd >= 0)
		return posix_spawn_file_actions_adddup2(actions, fd, as);
	return posix_spawn_file_actions_addopen(actions, as, "/dev/null",
						as == 0 ? O_RDONLY : O_WRONLY, 0);
}

static int fill_spawn_actions(posix_spawn_file_actions_t *actions,
			      const struct pmdiff_process *process)
{
	int ret = add_stream_action(actions, process->in, STDIN_FILENO);

	if (ret == 0)
		ret = add_stream_action(actions, process->out, STDOUT_FILENO);
	if (ret == 0)
		ret = add_stream_action(actions, process->err, STDERR_FILENO);
	if (ret == 0 && process->dir)
		ret = posix_spawn_file_actions_addchdir_np(actions, process->dir);
	return ret;
}

int pmdiff_process_start(const struct pmdiff_process *process, pid_t *out)
{
	struct environment environment = { 0 };
	posix_spawn_file_actions_t actions;
	pid_t pid;
	int ret;

	ret = posix_spawn_file_actions_init(&actions);
	if (ret != 0)
		return -ret;
	ret = -environment_fill(&environment, process->dir, process->env);
	if (ret == 0)
		ret = fill_spawn_actions(&actions, process);
	/* Both lists are only read, see posix_spawn(3p). */
	if (ret == 0)
		ret = posix_spawnp(&pid, process->argv[0], &actions, NULL,
				   (char *const *)(uintptr_t)process->argv,
				   (char *const *)(uintptr_t)environment.list.data);
	posix_spawn_file_actions_destroy(&actions);
	pm_vec_release(&environment.list);
	free(environment.pwd);
	if (ret == 0)
		*out = pid;
	return -ret;
}

int pmdiff_process_wait(pid_t pid)
{
	int status;

	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return -errno;
	return pm_exit_status(status);
}

void pmdiff_output_text_release(struct pmdiff_output_text *text)
{
	pm_str_release(&text->out);
	pm_str_release(&text->err);
}

/* Our ends of a program's streams; -1: closed. */
struct ends {
	int in, out, err;
};

static void close_stream_end(int *fd)
{
	pm_cleanup_close(fd);
	*fd = -1;
}

static void close_stream_ends(struct ends *ends)
{
	close_stream_end(&ends->in);
	close_stream_end(&ends->out);
	close_stream_end(&ends->err);
}

/* Stdin is a socket, so that we do not get SIGPIPE if the program does not read it. */
static int open_stream_ends(struct ends *ours, struct ends *theirs)
{
	int in[2], out[2], err[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, in) < 0)
		return -errno;
	ours->in = in[0];
	theirs->in = in[1];
	if (pipe2(out, O_CLOEXEC) < 0)
		return -errno;
	ours->out = out[0];
	theirs->out = out[1];
	if (pipe2(err, O_CLOEXEC) < 0)
		return -errno;
	ours->err = err[0];
	theirs->err = err[1];
	return 0;
}

static void read_stream_part(int *fd, struct pm_str *to)
{
	char bytes[READ_BYTES];
	ssize_t len = read(*fd, bytes, sizeof(bytes));

	if (len > 0)
		pm_str_append(to, bytes, (size_t)len);
	else if (len == 0 || (errno != EINTR && errno != EAGAIN))
		close_stream_end(fd);
}

static void write_stream_part(int *fd, const char **input, size_t *left)
{
	ssize_t len = send(*fd, *input, *left, MSG_NOSIGNAL | MSG_DONTWAIT);

	if (len >= 0) {
		*input += len;
		*left -= (size_t)len;
	} else if (errno != EINTR && errno != EAGAIN) {
		*left = 0; /* the program does not read the remaining input */
	}
	if (*left == 0)
		close_stream_end(fd);
}

/* Returns the time in ms that poll(2) may wait until @until_ns (CLOCK_MONOTONIC; 0: no
 * limit). */
static int poll_ms(uint64_t until_ns)
{
	uint64_t now = pm_now_ns(), ms;

	if (until_ns == 0)
		return -1;
	if (now >= until_ns)
		return 0;
	ms = (until_ns - now) / NS_PER_MS + 1;
	return ms < INT_MAX ? (int)ms : INT_MAX;
}

static int exchange_streams(struct ends *ends, const char *input, size_t left,
			    uint64_t until_ns, struct pmdiff_output_text *text)
{
	if (left == 0)
		close_stream_end(&ends->in);
	while (ends->out >= 0 || ends->err >= 0) {
		struct pollfd fds[] = {
			{ .fd = ends->in, .events = POLLOUT },
			{ .fd = ends->out, .events = POLLIN },
			{ .fd = ends->err, .events = POLLIN },
		};

		int ready = poll(fds, PM_ARRAY_LEN(fds), poll_ms(until_ns));

		if (until_ns != 0 && pm_now_ns() >= until_ns)
			return -ETIMEDOUT;
		if (ready < 0) {
			if (errno != EINTR)
				return -errno;
			continue;
		}
		if (fds[0].revents)
			write_stream_part(&ends->in, &input, &left);
		if (fds[1].revents)
			read_stream_part(&ends->out, &text->out);
		if (fds[2].revents)
			read_stream_part(&ends->err, &text->err);
	}
	if (text->out.failed || text->err.failed)
		return -ENOMEM;
	return 0;
}

int pmdiff_process_read(const struct pmdiff_process *process, const char *input,
			size_t input_len, struct pmdiff_output_text *out)
{
	struct ends ours = { -1, -1, -1 }, theirs = { -1, -1, -1 };
	struct pmdiff_output_text text = { 0 };
	struct pmdiff_process mine = *process;
	uint64_t until_ns = process->timeout_ns ? pm_now_ns() + process->timeout_ns : 0;
	pid_t pid = -1;
	int ret, status = 0;

	ret = open_stream_ends(&ours, &theirs);
	if (ret == 0) {
		mine.in = theirs.in;
		mine.out = theirs.out;
		mine.err = theirs.err;
		ret = pmdiff_process_start(&mine, &pid);
	}
	close_stream_ends(&theirs);
	if (ret == 0) {
		ret = exchange_streams(&ours, input, input_len, until_ns, &text);
		close_stream_ends(&ours);
		if (ret == -ETIMEDOUT)
			kill(pid, SIGKILL);
		status = pmdiff_process_wait(pid);
	}
	close_stream_ends(&ours);
	if (ret == 0 && status < 0)
		ret = status;
	if (ret < 0) {
		pmdiff_output_text_release(&text);
		return ret;
	}
	*out = text;
	return status;
}
