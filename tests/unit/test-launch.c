/* SPDX-License-Identifier: MIT */
/* Commands that wait for their start, and the words for those that cannot start. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "pm/proc.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

static char
	*folder; /* a new one for each test, with a subfolder bin that PATH leads to */
static char *path_before;

static int enter_folder(void **state)
{
	char name[] = "/tmp/test-launch-XXXXXX";

	folder = mkdtemp(name) ? strdup(name) : NULL;
	path_before = strdup(getenv("PATH"));
	if (!folder || !path_before || chdir(folder) < 0 || chmod(folder, 0755) < 0 ||
	    mkdir("bin", 0755) < 0)
		return -1;
	return 0;
}

static int leave_folder(void **state)
{
	PM_AUTO_FREE char *command = NULL;

	setenv("PATH", path_before, 1);
	free(path_before);
	if (chdir("/") < 0 || asprintf(&command, "rm -r %s", folder) < 0)
		return -1;
	free(folder);
	return system(command);
}

static void put_file(const char *path, const char *bytes, size_t len, mode_t mode)
{
	PM_AUTO_CLOSE int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, bytes, len), len);
	assert_int_equal(fchmod(fd, mode), 0);
}

static void put_script(const char *path, const char *text, mode_t mode)
{
	put_file(path, text, strlen(text), mode);
}

/* Its exit status as a shell counts. */
static int wait_for(pid_t pid)
{
	int status = 0;

	assert_int_equal(waitpid(pid, &status, 0), pid);
	return pm_exit_status(status);
}

static int run(const char *command, const char *argument)
{
	char *argv[] = { strdup(command), argument ? strdup(argument) : NULL, NULL };
	struct pm_launch launch;
	struct pm_error err = { 0 };
	int status;

	assert_int_equal(pm_launch_prepare(&launch, argv, &err), 0);
	if (pm_launch_go(&launch, &err) != 0)
		fail_msg("%s: %s", err.source, err.text);
	status = wait_for(launch.pid);
	pm_launch_release(&launch);
	free(argv[0]);
	free(argv[1]);
	return status;
}

/* The error of a command that cannot start; its child has to be gone. */
static int refuse(const char *command, struct pm_error *err)
{
	char *argv[] = { strdup(command), NULL };
	struct pm_launch launch;
	pid_t pid;
	int rc;

	assert_int_equal(pm_launch_prepare(&launch, argv, err), 0);
	pid = launch.pid;
	rc = pm_launch_go(&launch, err);
	assert_int_equal(err->code, rc);
	assert_int_equal(waitpid(pid, NULL, WNOHANG), -1);
	assert_int_equal(errno, ECHILD);
	pm_launch_release(&launch);
	free(argv[0]);
	return rc;
}

/* ---- commands that run --------------------------------------------------------------- */

static void command_waits_until_it_may_go(void **state)
{
	char *argv[] = { (char[]){ "touch" }, (char[]){ "mark" }, NULL };
	struct pm_launch launch;
	struct pm_error err;

	assert_int_equal(pm_launch_prepare(&launch, argv, &err), 0);
	usleep(50000);
	assert_int_equal(access("mark", F_OK), -1);
	assert_int_equal(waitpid(launch.pid, NULL, WNOHANG), 0);
	assert_int_equal(pm_launch_go(&launch, &err), 0);
	assert_int_equal(wait_for(launch.pid), 0);
	assert_int_equal(access("mark", F_OK), 0);
	assert_int_equal(pm_launch_go(&launch, &err), -EINVAL);
	pm_launch_release(&launch);
}

static void status_is_a_shells(void **state)
{
	put_script("bin/seven", "#!/bin/sh\nexit 7\n", 0755);
	put_script("bin/killed", "#!/bin/sh\nkill -TERM $$\n", 0755);
	put_script("bin/first", "#!/bin/sh\nexit \"$1\"\n", 0755);
	setenv("PATH", "bin", 1);
	assert_int_equal(run("seven", NULL), 7);
	assert_int_equal(run("bin/seven", NULL), 7);
	setenv("PATH", path_before, 1);
	assert_int_equal(run("bin/killed", NULL), 128 + SIGTERM);
	assert_int_equal(run("bin/first", "42"), 42);
	assert_int_equal(pm_exit_status(0x137f), 128 + 0x13); /* stopped */
}

static void path_is_searched_like_a_shell_does(void **state)
{
	put_script("bin/tool", "#!/bin/sh\nexit 1\n", 0755);
	assert_int_equal(mkdir("other", 0755), 0);
	put_script("other/tool", "#!/bin/sh\nexit 2\n", 0755);
	put_script("tool", "#!/bin/sh\nexit 3\n", 0755);
	assert_int_equal(mkdir("denied", 0755), 0);
	put_script("denied/tool", "#!/bin/sh\nexit 4\n", 0644);
	setenv("PATH", "bin:other", 1);
	assert_int_equal(run("tool", NULL), 1);
	setenv("PATH", "nowhere:tool/below:other:bin", 1);
	assert_int_equal(run("tool", NULL), 2);
	/* An empty part is the current folder, wherever it stands. */
	setenv("PATH", ":bin", 1);
	assert_int_equal(run("tool", NULL), 3);
	setenv("PATH", "nowhere:", 1);
	assert_int_equal(run("tool", NULL), 3);
	/* What may not be executed is passed over. */
	setenv("PATH", "denied:bin", 1);
	assert_int_equal(run("tool", NULL), 1);
	unsetenv("PATH");
	assert_int_equal(run("true", NULL), 0);
}

/* A folder that we may not look into holds no such command; one of root's own in PATH is
 * usual after su. */
static void folder_of_somebody_else_is_passed_over(void **state)
{
	pid_t child;

	if (geteuid() != 0)
		skip();
	put_script("bin/tool", "#!/bin/sh\nexit 1\n", 0755);
	assert_int_equal(chmod("bin", 0700), 0);
	child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		char *argv[] = { (char[]){ "tool" }, NULL };
		struct pm_launch launch;

		setenv("PATH", "bin", 1);
		if (setgid(65534) != 0 || setuid(65534) != 0 ||
		    pm_launch_prepare(&launch, argv, NULL) < 0)
			_exit(2);
		_exit(pm_launch_go(&launch, NULL) == -ENOENT ? 0 : 1);
	}
	assert_int_equal(wait_for(child), 0);
}

static void script_without_first_line_runs_in_sh(void **state)
{
	put_script("plain", "exit $(($1 + 1))\n", 0755);
	put_script("empty", "", 0755);
	assert_int_equal(run("./plain", "41"), 42);
	assert_int_equal(run("./empty", NULL), 0);
}

/* The line of our own /proc/self/status. */
static void own_status(const char *key, char ret[64])
{
	PM_AUTO_FCLOSE FILE *file = fopen("/proc/self/status", "re");

	assert_non_null(file);
	while (fgets(ret, 64, file))
		if (strncmp(ret, key, strlen(key)) == 0) {
			ret[strcspn(ret, "\n")] = '\0';
			return;
		}
	fail_msg("no %s", key);
}

static void child_keeps_group_streams_and_signals(void **state)
{
	struct sigaction ignore = { .sa_handler = SIG_IGN }, before;
	PM_AUTO_FREE char *script = NULL;
	char blocked[64], ignored[64];

	assert_int_equal(sigaction(SIGPIPE, &ignore, &before), 0);
	own_status("SigBlk", blocked);
	own_status("SigIgn", ignored);
	assert_true(asprintf(&script,
			     "#!/bin/sh\n"
			     "test $(cut -d' ' -f5 /proc/$$/stat) = %d || exit 1\n"
			     "grep -qx '%s' /proc/self/status || exit 2\n"
			     "grep -qx '%s' /proc/self/status || exit 3\n"
			     "set -- /proc/$$/fd/*\n"
			     "case \"$*\" in *fd/0*fd/1*fd/2*) exit 0;; esac\n"
			     "exit 4\n",
			     (int)getpgrp(), blocked, ignored) > 0);
	put_script("look", script, 0755);
	assert_int_equal(run("./look", NULL), 0);
	assert_int_equal(sigaction(SIGPIPE, &before, NULL), 0);
}

static void child_inherits_no_fds_of_ours(void **state)
{
	put_script("count",
		   "#!/bin/sh\nn=0\nfor f in /proc/self/fd/*; do\n"
		   "case $(readlink $f) in *socket*|*pipe*) n=$((n+1));; esac\n"
		   "done </dev/null >/dev/null 2>&1\nexit $n\n",
		   0755);
	/* The command's own streams are pipes where the tests run: compare with a shell's. */
	int status = system("./count");

	assert_int_equal(run("./count", NULL), pm_exit_status(status));
}

static volatile sig_atomic_t handled;

static void on_signal(int sig)
{
	handled = 1;
}

static void our_handlers_do_not_run_in_the_child(void **state)
{
	struct sigaction action = { .sa_handler = on_signal }, before;
	char *argv[] = { (char[]){ "true" }, NULL };
	struct pm_launch launch;
	struct pm_error err;

	assert_int_equal(sigaction(SIGINT, &action, &before), 0);
	assert_int_equal(pm_launch_prepare(&launch, argv, &err), 0);
	/* Ctrl-C before the start ends the child; that is no crash of ours (SIGPIPE). */
	assert_int_equal(kill(launch.pid, SIGINT), 0);
	assert_int_equal(waitid(P_PID, (id_t)launch.pid, NULL, WEXITED | WNOWAIT), 0);
	assert_int_equal(pm_launch_go(&launch, &err), -ECANCELED);
	assert_non_null(strstr(err.text, "signal 2"));
	assert_int_equal(waitpid(launch.pid, NULL, WNOHANG), -1);
	pm_launch_release(&launch);
	assert_int_equal(handled, 0);
	assert_int_equal(sigaction(SIGINT, &before, NULL), 0);
}

static void pidfd_tells_the_end(void **state)
{
	char *argv[] = { (char[]){ "true" }, NULL };
	struct pm_launch launch;
	struct pm_error err;
	struct pollfd poll_fd;

	assert_int_equal(pm_launch_prepare(&launch, argv, &err), 0);
	if (launch.pidfd < 0) {
		pm_launch_release(&launch);
		skip();
	}
	poll_fd = (struct pollfd){ .fd = launch.pidfd, .events = POLLIN };
	assert_int_equal(poll(&poll_fd, 1, 0), 0);
	assert_int_equal(pm_launch_go(&launch, &err), 0);
	assert_int_equal(poll(&poll_fd, 1, 10000), 1);
	assert_int_equal(wait_for(launch.pid), 0);
	pm_launch_release(&launch);
}

/* ---- commands that never start ------------------------------------------------------- */

static void released_before_the_start_it_never_runs(void **state)
{
	char *argv[] = { (char[]){ "touch" }, (char[]){ "mark" }, NULL };
	struct pm_launch launch;
	struct pm_error err;
	pid_t pid;

	assert_int_equal(pm_launch_prepare(&launch, argv, &err), 0);
	pid = launch.pid;
	pm_launch_release(&launch);
	assert_int_equal(kill(pid, 0), -1);
	assert_int_equal(access("mark", F_OK), -1);
	pm_launch_release(&launch);
}

static void without_its_parent_it_never_runs(void **state)
{
	int ends[2];
	pid_t parent;
	char byte;

	/* The parent dies hard between prepare and go; the grandchild holds the pipe's
	 * other end until it is gone, too. */
	assert_int_equal(pipe(ends), 0);
	parent = fork();
	assert_true(parent >= 0);
	if (parent == 0) {
		char *argv[] = { (char[]){ "touch" }, (char[]){ "mark" }, NULL };
		struct pm_launch launch;

		if (pm_launch_prepare(&launch, argv, NULL) == 0)
			kill(getpid(), SIGKILL);
		_exit(1);
	}
	close(ends[1]);
	assert_int_equal(wait_for(parent), 128 + SIGKILL);
	assert_int_equal(read(ends[0], &byte, 1), 0);
	close(ends[0]);
	assert_int_equal(access("mark", F_OK), -1);
}

static void command_that_is_not_there(void **state)
{
	struct pm_error err;

	assert_int_equal(refuse("nosuch-command", &err), -ENOENT);
	assert_string_equal(err.source, "nosuch-command");
	assert_string_equal(err.text, "no such command");
	assert_string_not_equal(err.fix, "");
	put_script("nosuch-command", "#!/bin/sh\n", 0755);
	assert_int_equal(refuse("nosuch-command", &err), -ENOENT);
	assert_string_equal(err.fix, "./nosuch-command");
	assert_int_equal(refuse("record", &err), -ENOENT);
	assert_string_equal(err.fix, "pmrec COMMAND");
	assert_int_equal(refuse("./nosuch-file", &err), -ENOENT);
	assert_string_equal(err.text, "no such file");
	assert_int_equal(refuse("./nosuch-command/below", &err), -ENOENT);
	assert_int_equal(refuse("", &err), -ENOENT);
}

static void command_that_is_nearly_there(void **state)
{
	struct pm_error err;

	setenv("PATH", "nowhere:bin:", 1);
	put_script("bin/compile", "#!/bin/sh\n", 0755);
	put_script("bin/compilf", "#!/bin/sh\n", 0644);
	put_script("bin/cp", "#!/bin/sh\n", 0755);
	assert_int_equal(refuse("comiple", &err), -ENOENT);
	assert_string_equal(err.fix, "compile");
	assert_int_equal(refuse("compilff", &err), -ENOENT);
	assert_string_equal(err.fix, "compile");
	/* Another word is no slip; and every word is near to the shortest. */
	assert_int_equal(refuse("contrive", &err), -ENOENT);
	assert_null(strstr(err.fix, "compile"));
	assert_int_equal(refuse("x", &err), -ENOENT);
	assert_string_equal(err.fix, "the path of the program, as in ./x");
	unsetenv("PATH");
	assert_int_equal(refuse("nosuch", &err), -ENOENT);
}

static void command_that_is_not_executable(void **state)
{
	struct pm_error err;

	put_script("plain", "#!/bin/sh\n", 0644);
	assert_int_equal(refuse("./plain", &err), -EACCES);
	assert_string_equal(err.text, "not executable");
	assert_string_equal(err.fix, "chmod +x ./plain");
	setenv("PATH", ".:bin", 1);
	assert_int_equal(refuse("plain", &err), -EACCES);
	assert_int_equal(refuse("./bin", &err), -EACCES);
	assert_string_equal(err.text, "is a directory");
	assert_int_equal(refuse("/", &err), -EACCES);
	assert_int_equal(refuse("/dev/null", &err), -EACCES);
	assert_string_equal(err.text, "not a regular file");
}

static void program_of_another_machine(void **state)
{
	static const char elf[64] = "\x7f"
				    "ELF\2\2\1";
	struct pm_error err;

	put_file("binary", elf, sizeof(elf), 0755);
	assert_int_equal(refuse("./binary", &err), -ENOEXEC);
	assert_string_equal(err.text, "not a program for this machine");
}

static void interpreter_that_is_not_there(void **state)
{
	struct pm_error err;

	put_script("script", "#! /no/such/interpreter -x\n", 0755);
	assert_int_equal(refuse("./script", &err), -ENOENT);
	assert_string_equal(err.text,
			    "its interpreter /no/such/interpreter does not exist");
	put_script("plain", "", 0644);
	put_script("script", "#!./plain", 0755);
	assert_int_equal(refuse("./script", &err), -EACCES);
	assert_string_equal(err.text, "its interpreter ./plain is not executable");
}

static void no_command_at_all(void **state)
{
	char *argv[] = { NULL };
	struct pm_launch launch;
	struct pm_error err;

	assert_int_equal(pm_launch_prepare(&launch, argv, &err), -EINVAL);
}

#define TEST(function) \
	cmocka_unit_test_setup_teardown(function, enter_folder, leave_folder)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(command_waits_until_it_may_go),
		TEST(status_is_a_shells),
		TEST(path_is_searched_like_a_shell_does),
		TEST(folder_of_somebody_else_is_passed_over),
		TEST(script_without_first_line_runs_in_sh),
		TEST(child_keeps_group_streams_and_signals),
		TEST(child_inherits_no_fds_of_ours),
		TEST(our_handlers_do_not_run_in_the_child),
		TEST(pidfd_tells_the_end),
		TEST(released_before_the_start_it_never_runs),
		TEST(without_its_parent_it_never_runs),
		TEST(command_that_is_not_there),
		TEST(command_that_is_nearly_there),
		TEST(command_that_is_not_executable),
		TEST(program_of_another_machine),
		TEST(interpreter_that_is_not_there),
		TEST(no_command_at_all),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
