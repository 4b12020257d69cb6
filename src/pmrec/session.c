/* SPDX-License-Identifier: MIT */
#include "session.h"

#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "clock-evidence.h"
#include "course.h"
#include "coverage.h"
#include "cpu-waits.h"
#include "early-names.h"
#include "engine-ptrace.h"
#include "engine.h"
#include "fields.h"
#include "follow.h"
#include "generation.h"
#include "go-targets.h"
#include "hold.h"
#include "kernel-names.h"
#include "off-cpu.h"
#include "output.h"
#include "pm/chain-jit.h"
#include "pm/chain-spaces.h"
#include "progress.h"
#include "realtime.h"
#include "summary.h"
#include "titles.h"

enum {
	LATE_SCANS_MAX = 10, /* limit for a process that keeps starting others */
};

static int fail_with_error(const struct pm_error *err, int status)
{
	pm_error_print(err, "pmrec", stderr);
	return status;
}

/* Ends a recording whose command could not be executed, or appeared too late. Leaves no
 * file behind. */
static int launch_failed(struct pm_rec_session *session, int error, struct pm_error *err)
{
	if (session->writer)
		pm_rec_output_remove(session);
	if (error == 0) {
		kill(session->child.launch.pid, SIGKILL);
		error = pm_error_set(err, -EAGAIN, "%s appeared just now",
				     session->options->command[0]);
	}
	return fail_with_error(err, pm_child_launch_status(error));
}

static int prepare_child(struct pm_rec_session *session, struct pm_error *err)
{
	const struct pm_rec_options *options = session->options;
	struct pm_child *child = &session->child;
	bool data_on_stdout = strcmp(options->output, "-") == 0 ||
			      (options->raw && strcmp(options->raw, "-") == 0);
	int ret = options->command ? pm_child_prepare(child, options->command,
						      options->user, data_on_stdout, err)
				   : 0;

	if (ret == 0)
		ret = pm_child_catch_signals(child, options->overwrite, err);
	pm_chain_modules_raise_limit(&session->modules);
	return ret;
}

/* Follows processes started while events were being opened, and their children. */
static int follow_late(struct pm_rec_session *session, struct pm_error *err)
{
	struct pm_targets *targets = &session->targets;
	int ret = targets->late.len > 0;

	for (int i = 0; i < LATE_SCANS_MAX && ret > 0; i++) {
		if (!pm_perf_follow(session->perf, targets->late.data, targets->late.len))
			return 0;
		ret = pm_targets_again(targets, err);
	}
	/* Keep the list for blocked time: it needs events of tasks, which these processes
	 * lack. */
	if (ret == 0 && !session->off_cpu)
		pm_vec_clear(&targets->late);
	return PM_MIN(ret, 0);
}

/* Finds the targets, and opens everything before anything runs. */
static int open_all(struct pm_rec_session *session, struct pm_error *err)
{
	const struct pm_rec_options *options = session->options;
	int ret = 0;

	/* The command has been forked by now. */
	if (options->command)
		ret = pm_rec_realtime_hurry(session, err);
	if (ret == 0)
		ret = pm_targets_find(&session->targets, &options->targets, err);
	if (ret == 0 && options->control)
		ret = pm_rec_control_open(&session->control, options->control, err);
	if (ret == 0)
		ret = pm_rec_engine_open(session, err);
	if (ret == 0)
		ret = pm_targets_begin(&session->targets, err);
	if (ret == 0 && session->perf)
		ret = follow_late(session, err);
	if (ret == 0 && session->perf) {
		session->follow = pm_rec_follow_new();
		if (!session->follow || pm_rec_follow_begin(session) < 0)
			ret = pm_error_set(err, -ENOMEM, "out of memory");
	}
	/* Open the file first: the threads that write it inherit the current priority. */
	if (ret == 0)
		ret = pm_rec_output_open(session, err);
	if (ret < 0)
		return ret;
	return pm_rec_realtime_begin(session, err);
}

static int start_command(struct pm_rec_session *session, struct pm_error *err)
{
	if (!session->options->command)
		return 0;
	if (!session->ptrace)
		return pm_child_go(&session->child, err);
	session->child.running = true;
	return pm_rec_ptrace_go(session, err);
}

/* Waits for the command after the file is complete, and returns the exit status. */
static int end_command(struct pm_rec_session *session)
{
	struct pm_child *child = &session->child;
	bool timer = session->options->attach;

	if (!session->options->command)
		return 0;
	/* A command that only limited the duration is not needed any more. */
	if (child->running && timer && session->end != PM_REC_END_SIGNAL) {
		kill(child->launch.pid, SIGTERM);
		child->ending = true;
		pm_rec_course_wait(session, false);
		return 0;
	}
	pm_rec_course_wait(session, false);
	if (child->wait_error < 0)
		fprintf(stderr,
			"pmrec: the exit status of the command is not known: wait4: %s\n",
			strerror(-child->wait_error));
	if (!child->status_known)
		return PM_STATUS_FAILED;
	return pm_exit_status(child->status);
}

static int run_session(struct pm_rec_session *session)
{
	const struct pm_rec_options *options = session->options;
	struct pm_child *child = &session->child;
	struct pm_error err = { 0 };
	bool runnable = !options->command || pm_child_is_runnable(options->command[0]);
	int ret = 0;

	if (options->command && runnable && options->call_graph == PM_CALL_GRAPH_DWARF)
		pm_rec_look_at_command(session);
	/* Beside many busy threads, a thread of usual priority waits 1 s for each
	 * slice. */
	if (!options->command)
		ret = pm_rec_realtime_hurry(session, &err);
	if (ret == 0)
		ret = prepare_child(session, &err);
	/* A mistyped command must not cost the user the file of the previous run. */
	if (ret == 0 && !runnable)
		return launch_failed(session, pm_launch_go(&child->launch, &err), &err);
	if (ret == 0)
		ret = open_all(session, &err);
	if (ret < 0) {
		/* Nothing has run, so an empty file would be useless. */
		if (session->writer)
			pm_rec_output_remove(session);
		return fail_with_error(&err, PM_STATUS_FAILED);
	}
	if (options->verbose && !options->quiet) {
		pm_rec_engine_print(session);
		pm_rec_realtime_print(session);
	}
	pm_rec_coverage_begin(session);
	pm_rec_cpu_waits_begin(session);
	session->begin_ns = session->end_ns = pm_now_ns();
	ret = start_command(session, &err);
	if (ret < 0)
		return launch_failed(session, ret, &err);
	if (session->ptrace)
		ret = pm_rec_ptrace_record(session, &err);
	else
		ret = pm_rec_course_run(session, &err);
	pm_rec_cpu_waits_end(session);
	pm_rec_realtime_end(session);
	if (ret == 0)
		ret = pm_rec_output_finish(session, &err);
	ret = pm_rec_output_close(session, ret, &err);
	if (ret < 0)
		return fail_with_error(&err, PM_STATUS_FAILED);
	pm_rec_summary_print(session);
	return end_command(session);
}

int pm_rec_session_run(const struct pm_rec_options *options)
{
	struct pm_rec_session session = {
		.options = options,
		.child = PM_CHILD_INIT,
		.procs = pm_procs_new(pm_chain_space_free),
		.replaced_fd = -1,
	};
	int status = PM_STATUS_FAILED;

	pm_chain_modules_init(&session.modules);
	pm_targets_init(&session.targets);
	pm_rec_control_init(&session.control);
	session.hold = pm_rec_hold_new();
	if (session.procs && session.hold) {
		status = run_session(&session);
	} else {
		struct pm_error err = { 0 };

		pm_error_set(&err, -ENOMEM, "out of memory");
		pm_error_print(&err, "pmrec", stderr);
	}
	pm_rec_generation_release(&session);
	pm_rec_hold_free(session.hold);
	pm_chains_free(session.chains);
	pm_chain_jit_free(session.jit);
	pm_rec_early_names_free(session.early_names);
	pm_rec_kernel_names_free(session.kernel_names);
	pm_rec_titles_free(session.titles);
	pm_rec_fields_free(session.fields);
	pm_rec_off_cpu_free(session.off_cpu);
	pm_rec_realtime_free(session.realtime);
	pm_rec_clock_evidence_free(session.evidence);
	pm_file_writer_close(session.writer, NULL);
	pm_chain_raw_close(session.raw, false, NULL);
	pm_perf_free_behind(session.perf);
	pm_rec_follow_free(session.follow);
	pm_rec_control_release(&session.control);
	pm_targets_release(&session.targets);
	pm_rec_ptrace_free(session.ptrace);
	pm_child_release(&session.child);
	pm_chain_threads_release(&session.threads);
	pm_chain_modules_release(&session.modules);
	pm_procs_free(session.procs);
	free(session.counts.events);
	free(session.place);
	return status;
}
