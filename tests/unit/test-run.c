/* SPDX-License-Identifier: MIT */
/* A command's life, one after the other; words of command lines; files that appear at the end. */
#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "pm/run.h"

enum {
	WAIT_MS = 20000,
};

static useconds_t poll_delay_us;

/* Replaces libc's, to let time pass between what poll(2) finds and what its caller does. */
int poll(struct pollfd *fds, nfds_t count, int timeout_ms)
{
	struct timespec timeout = { timeout_ms / 1000, timeout_ms % 1000 * 1000000L };
	int ret = ppoll(fds, count, timeout_ms < 0 ? NULL : &timeout, NULL);

	if (poll_delay_us > 0)
		usleep(poll_delay_us);
	return ret;
}

/* Runs a shell to its end and returns its exit status. */
static int run(struct pm_child *child, char *script)
{
	char *argv[] = { (char[]){ "sh" }, (char[]){ "-c" }, script, NULL };
	struct pm_error err = { 0 };

	assert_int_equal(pm_child_prepare(child, argv, NULL, false, &err), 0);
	assert_int_equal(pm_child_catch_signals(child, false, &err), 0);
	assert_int_equal(pm_child_go(child, &err), 0);
	assert_true(child->running);
	while (child->running) {
		struct pollfd fd = { .fd = child->signal_fd, .events = POLLIN };

		assert_true(poll(&fd, 1, WAIT_MS) > 0);
		pm_child_signals(child);
		pm_child_reap(child);
	}
	assert_true(child->status_known);
	return pm_exit_status(child->status);
}

/* The masks of proc(5), of the shell itself: read by it without another process. */
static char masks[] =
	"while read -r key value; do case $key in "
	"SigBlk:|SigIgn:) echo \"$key $value\";; esac; done "
	"</proc/$$/status >\"$PM_TEST_FILE\"; ulimit -Sn >>\"$PM_TEST_FILE\"";

static void read_masks(const char *path, char ret[128])
{
	PM_AUTO_FCLOSE FILE *file = fopen(path, "re");
	size_t len;

	assert_non_null(file);
	len = fread(ret, 1, 127, file);
	ret[len] = '\0';
	assert_non_null(strstr(ret, "SigBlk"));
}

static void test_children_are_alike(void **state)
{
	char path[] = "/tmp/pm-test-run-XXXXXX", first[128], second[128];
	struct pm_child child = PM_CHILD_INIT;
	int fd = mkstemp(path);
	struct rlimit limit;

	assert_true(fd >= 0);
	close(fd);
	setenv("PM_TEST_FILE", path, 1);
	assert_int_equal(run(&child, masks), 0);
	read_masks(path, first);
	/* By now we block and ignore some, and opened many events. */
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	limit.rlim_cur = limit.rlim_cur > 100 ? limit.rlim_cur - 1 : limit.rlim_max;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	assert_int_equal(run(&child, masks), 0);
	read_masks(path, second);
	assert_string_equal(first, second);
	unlink(path);
	pm_child_release(&child);
}

static void test_children_in_turn(void **state)
{
	struct pm_child child = PM_CHILD_INIT;

	assert_int_equal(run(&child, (char[]){ "exit 3" }), 3);
	assert_int_equal(run(&child, (char[]){ "kill -9 $$" }), 128 + 9);
	assert_int_equal(run(&child, (char[]){ "exit 0" }), 0);
	assert_int_equal(child.interrupts, 0);
	pm_child_release(&child);
	assert_int_equal(child.signal_fd, -1);
}

/* @late: asked between the fork and the exec, else before the fork. */
static void stop_before_exec(struct pm_child *child, bool late)
{
	char *argv[] = { (char[]){ "sleep" }, (char[]){ "20" }, NULL };
	struct pm_error err = { 0 };
	struct pollfd fd;
	sigset_t none;

	/* As they are when a program begins: what is blocked then, is in the command, too. */
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	assert_int_equal(pm_child_catch_signals(child, false, &err), 0);
	if (!late)
		raise(SIGINT);
	assert_int_equal(pm_child_prepare(child, argv, NULL, false, &err), 0);
	if (late)
		raise(SIGINT);
	pm_child_signals(child);
	assert_int_equal(child->interrupts, 1);
	assert_int_equal(pm_child_go(child, &err), 0);
	fd = (struct pollfd){ .fd = child->signal_fd, .events = POLLIN };
	assert_true(poll(&fd, 1, WAIT_MS / 2) > 0);
	pm_child_reap(child);
	assert_true(child->status_known);
	assert_int_equal(pm_exit_status(child->status), 128 + SIGTERM);
	pm_child_release(child);
}

static void test_commands_that_nobody_wants_any_more(void **state)
{
	for (int late = 0; late <= 1; late++) {
		struct pm_child child = PM_CHILD_INIT;

		stop_before_exec(&child, late == 1);
	}
}

static void test_commands_that_cannot_begin(void **state)
{
	struct pm_child child = PM_CHILD_INIT;
	char *argv[] = { (char[]){ "/nowhere/at-all" }, NULL };
	struct pm_error err = { 0 };

	assert_false(pm_child_is_runnable(argv[0]));
	assert_true(pm_child_is_runnable("sh"));
	assert_int_equal(pm_child_prepare(&child, argv, NULL, false, &err), 0);
	assert_int_equal(pm_child_go(&child, &err), -ENOENT);
	assert_false(child.running);
	assert_int_equal(pm_child_launch_status(child.launch_error), PM_STATUS_NOT_FOUND);
	argv[0] = (char[]){ "/" };
	assert_int_equal(pm_child_prepare(&child, argv, NULL, false, &err), 0);
	assert_int_equal(pm_child_go(&child, &err), -EACCES);
	assert_int_equal(pm_child_launch_status(child.launch_error),
			 PM_STATUS_CANNOT_RUN);
	assert_int_equal(run(&child, (char[]){ "exit 4" }), 4);
	assert_int_equal(child.launch_error, 0);
	pm_child_release(&child);
}

static void test_end_right_after_exec(void **state)
{
	struct pm_child child = PM_CHILD_INIT;

	(void)state;
	assert_int_equal(run(&child, (char[]){ "exit 3" }), 3);
	/* From here on, signals are caught while the command starts. */
	poll_delay_us = 200000;
	assert_int_equal(run(&child, (char[]){ "exit 4" }), 4);
	poll_delay_us = 0;
	pm_child_release(&child);
}

static void assert_file(const char *path, const char *expected)
{
	FILE *file = fopen(path, "re");
	char text[8] = "";

	assert_non_null(file);
	assert_non_null(fgets(text, sizeof(text), file));
	fclose(file);
	assert_string_equal(text, expected);
}

static void write_sink(const char *path, const char *text, bool complete)
{
	struct pm_sink sink;

	assert_int_equal(pm_sink_open(&sink, path, 0600, NULL), 0);
	fputs(text, sink.file);
	if (complete)
		assert_int_equal(pm_sink_close(&sink, NULL), 0);
	else
		pm_sink_release(&sink);
}

static size_t count_files(const char *folder)
{
	DIR *dir = opendir(folder);
	size_t count = 0;

	assert_non_null(dir);
	while (readdir(dir))
		count++;
	closedir(dir);
	return count - 2; /* . and .. */
}

/* Of a process that is killed nothing is left, where the file system can do that. */
static void test_sinks_without_a_name(void **state)
{
	char folder[] = "/tmp/pm-test-run-XXXXXX", path[64];
	struct pm_sink sink;
	int fd;

	assert_non_null(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/file", folder);
	fd = open(folder, O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);
	assert_int_equal(pm_sink_open(&sink, path, 0600, NULL), 0);
	assert_int_equal(count_files(folder), fd < 0);
	fputs("one", sink.file);
	assert_int_equal(pm_sink_close(&sink, NULL), 0);
	assert_int_equal(count_files(folder), 1);
	assert_file(path, "one");
	assert_int_equal(unlink(path), 0);
	assert_int_equal(rmdir(folder), 0);
	if (fd >= 0)
		close(fd);
}

static void test_sinks(void **state)
{
	char folder[] = "/tmp/pm-test-run-XXXXXX", path[64];
	struct pm_sink sink;
	struct stat st;

	assert_non_null(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/file", folder);
	/* Nothing is there until it is complete, and nothing stays of what was not. */
	assert_int_equal(pm_sink_open(&sink, path, 0600, NULL), 0);
	assert_int_equal(access(path, F_OK), -1);
	pm_sink_release(&sink);
	write_sink(path, "one", true);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	write_sink(path, "two", false);
	assert_file(path, "one");
	assert_int_equal(unlink(path), 0);
	assert_int_equal(rmdir(folder), 0); /* there is no other file in it */
	assert_int_equal(pm_sink_open(&sink, path, 0600, NULL), -ENOENT);
}

static void test_sinks_behind_links(void **state)
{
	char folder[] = "/tmp/pm-test-run-XXXXXX", path[64], link[64];
	struct stat st;

	assert_non_null(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/file", folder);
	snprintf(link, sizeof(link), "%s/link", folder);
	assert_int_equal(symlink("file", link), 0);
	/* A file that was not there yet is made as any other. */
	write_sink(link, "one", true);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	write_sink(link, "two", false);
	assert_file(path, "one");
	write_sink(link, "two", true);
	assert_file(path, "two");
	assert_int_equal(lstat(link, &st), 0);
	assert_true(S_ISLNK(st.st_mode));
	assert_int_equal(unlink(link), 0);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(rmdir(folder), 0);
}

static void test_options(void **state)
{
	static const struct option options[] = { { "repeat", 1, NULL, 'r' },
						 { "json", 0, NULL, 'j' },
						 { NULL, 0, NULL, 0 } };
	struct pm_error err;

	assert_int_equal(pm_usage_option(&err, "x", options, '?', "--repaet=3"), -EINVAL);
	assert_string_equal(err.text, "unknown option --repaet; did you mean --repeat?");
	assert_string_equal(err.fix, "x --help");
	pm_usage_option(&err, "x", options, '?', "--json=3");
	assert_string_equal(err.text, "option --json takes no value");
	pm_usage_option(&err, "x", options, '?', "--elsewhere");
	assert_string_equal(err.text, "unknown option --elsewhere");
	pm_usage_option(&err, "x", options, ':', "-r");
	assert_string_equal(err.text, "option -r needs a value");
}

static void test_colors(void **state)
{
	enum pm_color_wish wish = PM_COLOR_AUTO;

	static const struct pm_option row = { "color", .words = "auto always never" };
	struct pm_option_use use = { .option = &row, .program = "x", .text = "often" };

	assert_int_equal(pm_color_set(&wish, &use, NULL), -EINVAL);
	use.text = "always";
	assert_int_equal(pm_color_set(&wish, &use, NULL), 0);
	assert_true(pm_color_is_wanted(wish, -1));
	assert_false(pm_color_is_wanted(PM_COLOR_AUTO, -1)); /* no terminal */

	unsetenv("COLUMNS");
	assert_int_equal(pm_sink_width(-1), 0); /* no limit */
	setenv("COLUMNS", "132", 1);
	assert_int_equal(pm_sink_width(-1), 132);
	setenv("COLUMNS", "20", 1);
	assert_int_equal(pm_sink_width(-1), 60);
	setenv("COLUMNS", "wide", 1);
	assert_int_equal(pm_sink_width(-1), 0);
	unsetenv("COLUMNS");
}

static void test_stolen_time(void **state)
{
	char text[512] = "as before";
	uint64_t ns = 7;

	assert_true(
		pm_stolen_parse("cpu  10 20 30 40 50 60 70 80 90 100\n", NULL, 100, &ns));
	assert_int_equal(ns, 800000000);
	assert_true(pm_stolen_parse("cpu 0 0 0 0 0 0 0 0", NULL, 1000, &ns));
	assert_int_equal(ns, 0);
	ns = 7;
	/* Of Linux before 2.6.11, of one CPU only, nonsense, more than 2^64 ns. */
	assert_false(pm_stolen_parse("cpu 1 2 3 4 5 6 7\n", NULL, 100, &ns));
	assert_false(pm_stolen_parse("cpu0 1 2 3 4 5 6 7 8\n", NULL, 100, &ns));
	assert_false(pm_stolen_parse("", NULL, 100, &ns));
	assert_false(pm_stolen_parse("cpu 1 2 3 4 5 6 7 8\n", NULL, 0, &ns));
	assert_false(pm_stolen_parse("cpu 1 2 3 4 5 6 7 9999999999999999999\n", NULL, 100,
				     &ns));
	assert_int_equal(ns, 7);
	/* Of some CPUs. */
	assert_true(pm_stolen_parse("cpu12 1 2 3 4 5 6 7 8 9 10\n", "0,3-12", 100, &ns));
	assert_int_equal(ns, 80000000);
	ns = 7;
	assert_false(pm_stolen_parse("cpu1 1 2 3 4 5 6 7 8\n", "0,3-12", 100, &ns));
	assert_false(pm_stolen_parse("cpu13 1 2 3 4 5 6 7 8\n", "0,3-12", 100, &ns));
	assert_false(pm_stolen_parse("cpu 1 2 3 4 5 6 7 8\n", "0,3-12", 100, &ns));
	assert_false(pm_stolen_parse("cpu3\n", "3", 100, &ns));
	assert_false(pm_stolen_parse("cpu3 1 2 3 4 5 6 7 8\n", "x", 100, &ns));
	assert_int_equal(ns, 7);
	assert_false(pm_stolen_ns("4294967295", &ns));

	assert_false(
		pm_stolen_text(text, sizeof(text), "task-clock", 1000000000, 99999999));
	assert_false(
		pm_stolen_text(text, sizeof(text), "task-clock", 2000000000, 199999999));
	assert_string_equal(text, "as before");
	assert_true(
		pm_stolen_text(text, sizeof(text), "task-clock", 2000000000, 260000000));
	assert_string_equal(
		text, "the host took 0.26 s of this machine's CPU time for others "
		      "meanwhile: task-clock (2.00 s) goes on while a program's CPU is "
		      "away, so that it may be too long by as much");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_children_are_alike),
		cmocka_unit_test(test_children_in_turn),
		cmocka_unit_test(test_commands_that_nobody_wants_any_more),
		cmocka_unit_test(test_commands_that_cannot_begin),
		cmocka_unit_test(test_end_right_after_exec),
		cmocka_unit_test(test_sinks),
		cmocka_unit_test(test_sinks_without_a_name),
		cmocka_unit_test(test_sinks_behind_links),
		cmocka_unit_test(test_options),
		cmocka_unit_test(test_colors),
		cmocka_unit_test(test_stolen_time),
	};

	return cmocka_run_group_tests_name("run", tests, NULL, NULL);
}
