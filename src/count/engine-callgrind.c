/* SPDX-License-Identifier: MIT */
/*
 * The engine without counters: valgrind runs the command and counts what a simulated
 * machine would do. Its files go into a directory of ours. They are read and deleted as
 * soon as they are closed, because a process that executes another program reuses the
 * same names.
 */
#include "engine-callgrind.h"
#include "marks.h"
#include "tell.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <time.h>

enum {
	/* Time for a command to end after SIGTERM, when the timeout is over. */
	GRACE_NS = 2000000000,
	TICK_MS = 100, /* between checks of a command that was asked to end */
};

struct engine {
	const struct pm_engine_options *options;
	struct pm_stat *stat;
	struct pm_child *child;
	struct pm_callgrind_call call;
	struct pm_callgrind_sums *sums;
	char dir[PATH_MAX];
	int dir_fd, inotify_fd;
	uint32_t run;
	uint64_t deadline_ns; /* UINT64_MAX: none */
	bool timed_out;
	bool keep_folder; /* a process still writes there */
	size_t files;
};

static void callgrind_engine_release(struct engine *it)
{
	pm_callgrind_call_release(&it->call);
	pm_callgrind_sums_free(it->sums);
	pm_cleanup_close(&it->inotify_fd);
	pm_cleanup_close(&it->dir_fd);
}

/* ---- the folder ------------------------------------------------------------------------- */

static int folder_error(struct pm_error *err, const char *path)
{
	int ret = -errno;

	pm_error_set(err, ret, "a folder for valgrind's files: %s", strerror(errno));
	pm_error_where(err, path, -1);
	return ret;
}

/* Gives the directory to the command's user, whose processes write there. */
static int chown_folder(const struct engine *it, struct pm_error *err)
{
	struct pm_user user;
	int ret;

	if (!it->options->user)
		return 0;
	ret = pm_user_find(it->options->user, &user, err);
	if (ret < 0)
		return ret;
	if (chown(it->dir, user.uid, user.gid) < 0)
		ret = folder_error(err, it->dir);
	else
		ret = 0;
	pm_user_release(&user);
	return ret;
}

static int make_folder(struct engine *it, struct pm_error *err)
{
	const char *wanted = getenv("TMPDIR"), *tmp = "/tmp";
	int len;

	if (wanted && wanted[0] == '/' && !strchr(wanted, '%'))
		tmp = wanted;
	len = snprintf(it->dir, sizeof(it->dir), "%s/pmstat-XXXXXX", tmp);
	if (len >= (int)sizeof(it->dir) || !mkdtemp(it->dir)) {
		it->dir[0] = '\0';
		return folder_error(err, pm_text_or(wanted, "/tmp"));
	}
	it->dir_fd = open(it->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	it->inotify_fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	if (it->dir_fd < 0 || it->inotify_fd < 0 ||
	    inotify_add_watch(it->inotify_fd, it->dir, IN_CLOSE_WRITE | IN_ONLYDIR) < 0)
		return folder_error(err, it->dir);
	return chown_folder(it, err);
}

/* Removes only plain files, which is all that valgrind creates. */
static void remove_folder(struct engine *it)
{
	bool remove = it->dir[0] && !it->keep_folder;
	DIR *entries = NULL;
	const struct dirent *entry;

	if (remove)
		entries = opendir(it->dir);
	while (entries && (entry = readdir(entries)))
		if (entry->d_name[0] != '.')
			unlinkat(dirfd(entries), entry->d_name, 0);
	if (entries)
		closedir(entries);
	if (remove)
		rmdir(it->dir);
}

/* ---- files ------------------------------------------------------------------------------ */

/* Whether the name is `out.PID-THREAD` or `out.PID.PART-THREAD`. Valgrind
 * also creates a file without a thread, which stays empty. */
static bool is_wanted_output(const struct engine *it, const char *name)
{
	char *end;
	long pid;

	if (strncmp(name, "out.", 4) != 0 || !strchr(name, '-'))
		return false;
	pid = strtol(name + 4, &end, 10);
	return end != name + 4 &&
	       (!it->options->no_inherit || pid == it->child->launch.pid);
}

/* Reads a file. If it is damaged, that only causes a warning. */
static int add_output_file(struct engine *it, const char *name)
{
	int fd = openat(it->dir_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	struct pm_error err = { 0 };
	int ret;

	if (fd < 0)
		return 0;
	ret = pm_callgrind_sums_add(it->sums, fd, name, &err);
	unlinkat(it->dir_fd, name, 0);
	it->files++;
	if (ret == -ENOMEM)
		return ret;
	if (ret == 0)
		return 0;
	return pm_tell_warning(it->stat,
			       "a file of callgrind is damaged, and its "
			       "process is not counted whole: %s",
			       err.text);
}

/* Reads files that were closed since the last call. add_remaining_files() finds those that are
 * missing after a queue overflow. */
static int add_closed_files(struct engine *it)
{
	union {
		struct inotify_event event;
		char bytes[4096];
	} buffer;
	ssize_t len;

	while ((len = read(it->inotify_fd, &buffer, sizeof(buffer))) > 0) {
		for (size_t at = 0; at < (size_t)len;) {
			struct inotify_event event;
			const char *name = buffer.bytes + at + sizeof(event);
			int ret;

			memcpy(&event, buffer.bytes + at, sizeof(event));
			at += sizeof(event) + event.len;
			if (event.len == 0 || !is_wanted_output(it, name))
				continue;
			ret = add_output_file(it, name);
			if (ret < 0)
				return ret;
		}
	}
	return 0;
}

/* Sorts by PID, then PART; the last part, which has no number, comes after the numbered
 * ones. */
static int by_part(const struct dirent **a, const struct dirent **b)
{
	const struct dirent *entries[] = { *a, *b };
	uint64_t pid[2], part[2];

	for (size_t i = 0; i < 2; i++) {
		char *end;

		pid[i] = strtoull(entries[i]->d_name + strlen("out."), &end, 10);
		if (*end == '.')
			part[i] = strtoull(end + 1, NULL, 10);
		else
			part[i] = UINT64_MAX;
	}
	if (pid[0] != pid[1])
		return PM_COMPARE(pid[0], pid[1]);
	if (part[0] != part[1])
		return PM_COMPARE(part[0], part[1]);
	return strcmp(entries[0]->d_name, entries[1]->d_name);
}

static int is_file_of_ours(const struct dirent *entry)
{
	return strncmp(entry->d_name, "out.", 4) == 0;
}

static int add_remaining_files(struct engine *it)
{
	struct dirent **entries = NULL;
	int len = scandir(it->dir, &entries, is_file_of_ours, by_part), ret = 0;

	for (int i = 0; i < len; i++) {
		if (ret == 0 && is_wanted_output(it, entries[i]->d_name))
			ret = add_output_file(it, entries[i]->d_name);
		free(entries[i]);
	}
	free(entries);
	if (len < 0 && errno == ENOMEM)
		return -ENOMEM;
	return ret;
}

/* ---- the command ------------------------------------------------------------------------ */

/* The command inherits our environment at the time of the fork. */
static int prepare_valgrind_environment(struct engine *it, struct pm_error *err)
{
	static const char name[] = "GLIBC_TUNABLES";
	const char *own = getenv(name);
	PM_AUTO_FREE char *before = NULL;
	int ret;

	if (own)
		before = strdup(own);
	if ((own && !before) || setenv(name, it->call.tunables, 1) < 0)
		return pm_error_set(err, -ENOMEM, "%s", strerror(ENOMEM));
	if (it->options->marked)
		ret = pm_marks_export(PM_MARKS_CALLGRIND, err);
	else
		ret = 0;
	if (ret == 0)
		ret = pm_child_prepare(it->child, it->call.argv.data, it->options->user,
				       it->options->data_on_stdout, err);
	if (it->options->marked)
		pm_marks_export(NULL, NULL);
	if (before)
		setenv(name, before, 1);
	else
		unsetenv(name);
	return ret;
}

static int launch_valgrind(struct engine *it, struct pm_error *err)
{
	int ret = prepare_valgrind_environment(it, err);

	if (ret == 0)
		ret = pm_child_catch_signals(it->child, false, err);
	if (ret == 0)
		ret = pm_launch_go(&it->child->launch, err);
	if (ret < 0)
		return ret;
	it->child->running = true;
	pm_callgrind_sums_root(it->sums, it->child->launch.pid);
	if (it->options->timeout_ns > 0)
		it->deadline_ns = pm_now_ns() + it->options->timeout_ns;
	return 0;
}

/* Ends the command with SIGTERM; with SIGKILL when called again. */
static void time_is_up(struct engine *it)
{
	kill(it->child->launch.pid, it->timed_out ? SIGKILL : SIGTERM);
	it->child->ending = true;
	it->timed_out = true;
	it->deadline_ns += GRACE_NS;
}

/* Runs until the command has ended, even if something else fails. */
static int wait_for_valgrind(struct engine *it)
{
	struct pollfd fds[] = {
		{ .fd = it->child->signal_fd, .events = POLLIN },
		{ .fd = it->inotify_fd, .events = POLLIN },
	};
	int ret = 0;

	for (;;) {
		uint64_t now = pm_now_ns();
		int wait_ms = -1;

		if (now >= it->deadline_ns)
			time_is_up(it);
		if (it->deadline_ns != UINT64_MAX) {
			if (it->deadline_ns > now)
				wait_ms = (int)((it->deadline_ns - now) / 1000000 %
						INT32_MAX) +
					  1;
			else
				wait_ms = 1;
		}
		/* The command may have ended before we caught its signal. */
		pm_child_reap(it->child);
		pm_child_give_up_stuck(it->child, "pmstat");
		if (!it->child->running)
			return ret;
		if ((it->child->interrupts > 0 || it->child->ending) &&
		    (wait_ms < 0 || wait_ms > TICK_MS))
			wait_ms = TICK_MS;
		if (poll(fds, PM_ARRAY_LEN(fds), wait_ms) < 0 && errno != EINTR)
			return -errno;
		pm_child_signals(it->child);
		if (ret == 0)
			ret = add_closed_files(it);
	}
}

/* ---- the run ---------------------------------------------------------------------------- */

static void run_fill_callgrind_end(const struct engine *it, struct pm_stat_run *run)
{
	const struct pm_child *child = it->child;

	run->exited = child->status_known;
	pm_tell_status(run, child->status);
	run->stopped = it->timed_out || child->interrupts > 0;
}

static int mark_events_refused(struct pm_stat *stat)
{
	for (size_t i = 0; i < stat->events.len; i++) {
		struct pm_stat_event *event = &stat->events.data[i];

		if (strcmp(event->source, "simulated") == 0 || event->why)
			continue;
		event->state = PM_STAT_NOT_SUPPORTED;
		if (pm_stat_text(
			    &event->why,
			    "callgrind counts what it simulates; times and memory of "
			    "a simulation are not the program's") < 0)
			return -ENOMEM;
	}
	return 0;
}

static int check_log(struct engine *it, struct pm_error *err)
{
	struct pm_callgrind_log log;
	char first[32];
	int ret;

	snprintf(first, sizeof(first), "log.%d", (int)it->child->launch.pid);
	ret = pm_callgrind_log_read(&log, it->stat, it->dir,
				    it->options->no_inherit ? first : NULL);
	if (ret < 0)
		return pm_error_set(err, ret, "%s", strerror(-ret));
	if (log.processes == 0 && it->files == 0 && it->child->interrupts == 0) {
		pm_error_set(err, -ENOEXEC, "valgrind could not run it%s%s",
			     log.words[0] ? ": " : "", log.words);
		pm_error_where(err, it->options->command[0], -1);
		return -ENOEXEC;
	}
	if (log.unreadable[0] && it->files == 0) {
		pm_error_set(err, -ENOEXEC,
			     "valgrind cannot read the debug information of it and "
			     "has given up (3.19 does not know clang's DWARF 5)");
		if (strcmp(log.unreadable, "?") == 0)
			pm_error_where(err, it->options->command[0], -1);
		else
			pm_error_where(err, log.unreadable, -1);
		pm_error_fix(err, "build with -gdwarf-4, or take a newer valgrind");
		return -ENOEXEC;
	}
	it->keep_folder = log.running > 0;
	if (it->keep_folder &&
	    pm_tell_warning(it->stat,
			    "%zu processes run on under valgrind; %s can be removed when "
			    "they have ended",
			    log.running, it->dir) < 0)
		return pm_error_set(err, -ENOMEM, "%s", strerror(ENOMEM));
	if (WIFSIGNALED(it->child->status) && it->options->regions &&
	    it->options->regions->list.len > 0 &&
	    pm_tell_warning(
		    it->stat,
		    "ended by a signal: callgrind does not tell of the last "
		    "instructions before it, nor of a call that began with them") < 0)
		return pm_error_set(err, -ENOMEM, "%s", strerror(ENOMEM));
	if (log.cut == 0)
		return 0;
	pm_callgrind_sums_cut(it->sums);
	if (pm_tell_warning(it->stat,
			    "%zu of %zu processes were not seen to their end; what they "
			    "did is missing",
			    log.cut, log.processes) < 0)
		return pm_error_set(err, -ENOMEM, "%s", strerror(ENOMEM));
	return 0;
}

static int add_run(struct engine *it)
{
	struct timespec now;
	struct pm_stat_run run = { 0 };

	clock_gettime(CLOCK_REALTIME, &now);
	run.begin_ns = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
	it->run = (uint32_t)it->stat->runs.len;
	return pm_vec_push(&it->stat->runs, run);
}

static int count_with_callgrind(struct engine *it, struct pm_error *err)
{
	int ret = add_run(it);

	if (ret == 0)
		ret = wait_for_valgrind(it);
	run_fill_callgrind_end(it, &it->stat->runs.data[it->run]);
	if (ret == 0)
		ret = add_closed_files(it);
	if (ret == 0)
		ret = add_remaining_files(it);
	if (ret < 0)
		return pm_error_set(err, ret, "%s", strerror(-ret));
	ret = check_log(it, err);
	if (ret < 0)
		return ret;
	if (it->options->marked && it->child->status == 0 &&
	    pm_callgrind_sums_are_empty(it->sums))
		return pm_marks_none(it->options->command[0], it->options->marked_from,
				     it->options->marked_to, err);
	if (mark_events_refused(it->stat) < 0 ||
	    pm_callgrind_setting(it->stat, "valgrind",
				 pm_callgrind_sums_creator(it->sums)) < 0 ||
	    pm_callgrind_sums_finish(it->sums, it->stat, it->run) < 0)
		return pm_error_set(err, -ENOMEM, "%s", strerror(ENOMEM));
	if (it->options->stacks)
		return pm_callgrind_sums_write_stacks(it->sums, it->stat, err);
	return 0;
}

/* Valgrind would report this on the command's own stderr. */
static int check_command_is_program(const char *name, struct pm_error *err)
{
	if (pm_child_is_runnable(name))
		return 0;
	if (strchr(name, '/') && access(name, F_OK) == 0)
		pm_error_set(err, -EACCES, "not executable");
	else
		pm_error_set(err, -ENOENT, "no such command");
	pm_error_where(err, name, -1);
	if (err)
		return err->code;
	return -ENOENT;
}

int pm_engine_callgrind_check(struct pm_error *err)
{
	if (pm_child_is_runnable("valgrind"))
		return 0;
	pm_error_set(err, -ENOENT, "valgrind is not installed");
	pm_error_fix(err, "apt install valgrind");
	return -ENOENT;
}

int pm_engine_callgrind_run(struct pm_stat *stat, const struct pm_engine_options *options,
			    struct pm_child *child, struct pm_error *err)
{
	struct engine it PM_CLEANUP(callgrind_engine_release) = { .options = options,
								  .stat = stat,
								  .child = child,
								  .dir_fd = -1,
								  .inotify_fd = -1,
								  .deadline_ns =
									  UINT64_MAX };
	size_t runs = stat->runs.len;
	int ret;

	if (options->targets || !options->command)
		return pm_error_set(
			err, -EINVAL,
			"callgrind simulates a command from its beginning; it "
			"cannot look at what runs already");
	ret = pm_engine_callgrind_check(err);
	if (ret == 0)
		ret = check_command_is_program(options->command[0], err);
	if (ret == 0)
		ret = make_folder(&it, err);
	if (ret == 0 && (pm_callgrind_call_make(&it.call, stat, options, it.dir) < 0 ||
			 pm_callgrind_sums_new(&it.sums, options) < 0))
		ret = pm_error_set(err, -ENOMEM, "%s", strerror(ENOMEM));
	if (ret == 0)
		ret = launch_valgrind(&it, err);
	if (ret == 0)
		ret = count_with_callgrind(&it, err);
	/* A run without values does not count. */
	if (ret < 0 && stat->runs.len > runs && !stat->runs.data[runs].values)
		stat->runs.len = runs;
	remove_folder(&it);
	return ret;
}
