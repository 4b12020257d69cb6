/* SPDX-License-Identifier: MIT */
#include "options-parts.h"

#include <string.h>

static int refuse_options(struct pm_error *err, const char *wrong)
{
	return pm_rec_usage(err, "%s", wrong);
}

/* Checks the options for branches. Whether the CPU can record them is known only when the
 * events are opened. */
static int check_branches(const struct pm_rec_options *options, struct pm_error *err)
{
	if (options->lbr && options->branches)
		return refuse_options(
			err, "--call-graph lbr and -b or -j exclude each other: the "
			     "CPU records calls or branches");
	if (options->off_cpu && (options->lbr || options->branches))
		return refuse_options(
			err, "--off-cpu has none of -b, -j and --call-graph lbr: "
			     "no CPU counts what does not run");
	return 0;
}

static int check_raw(const struct pm_rec_options *options, struct pm_error *err)
{
	if (!options->raw)
		return 0;
	if (options->raw[0] == '\0')
		return refuse_options(err, "--raw: the file needs a name");
	if (strcmp(options->raw, options->output) == 0)
		return refuse_options(err, "--raw and -o cannot be the same file");
	if (options->call_graph != PM_CALL_GRAPH_DWARF || options->lbr)
		return refuse_options(
			err, "--raw keeps copied stacks, which only --call-graph "
			     "dwarf has");
	if (options->overwrite)
		return refuse_options(err, "--raw and --overwrite exclude each other");
	/* The samples are written when a thread returns to a CPU, but their stacks are
	 * from when it left. */
	if (options->off_cpu)
		return refuse_options(err, "--raw and --off-cpu exclude each other");
	return 0;
}

static int check_stacks(struct pm_rec_options *options, char *const *rest,
			struct pm_error *err)
{
	if (rest[0])
		pm_error_set(err, -EINVAL,
			     "--stacks looks at a running process and runs no command");
	else if (options->targets.pids.list.len == 0)
		pm_error_set(err, -EINVAL, "--stacks: of which process?");
	else if (options->targets.pids.list.len > 1 || options->targets.tids.list.len > 1)
		pm_error_set(err, -EINVAL, "--stacks looks at one process at a time");
	else if (options->targets.all_cpus || options->targets.cgroup ||
		 options->targets.uid)
		pm_error_set(err, -EINVAL, "--stacks looks at a process, -p");
	else {
		options->pid = options->targets.pids.list.data[0];
		if (options->targets.tids.list.len > 0)
			options->tid = options->targets.tids.list.data[0];
		return 0;
	}
	pm_error_fix(err, "pmrec --stacks -p PID");
	return -EINVAL;
}

/* Refuses options that only another engine or action supports. */
static int check_engine(const struct pm_rec_options *options, struct pm_error *err)
{
	bool ptrace = options->engine == PM_REC_ENGINE_PTRACE;
	const char *wrong = NULL;

	if (options->libunwind)
		wrong = "--unwinder libunwind belongs to --stacks";
	else if (options->verify && !ptrace)
		wrong = "--verify belongs to --engine ptrace and to --stacks";
	else if (options->json)
		wrong = "--json belongs to --list and --doctor; samples are JSON "
			"anyway";
	if (wrong)
		return refuse_options(err, wrong);
	if (!ptrace)
		return 0;
	if (options->attach)
		wrong = "--engine ptrace records a command that it starts; for running "
			"processes see --stacks";
	else if (!options->by_frequency)
		wrong = "-c: --engine ptrace samples by time; use -F";
	else if (options->call_graph == PM_CALL_GRAPH_FP || options->lbr)
		wrong = "--call-graph fp is the kernel's; --engine ptrace has dwarf and "
			"none";
	else if (options->ring_pages > 0)
		wrong = "-m: --engine ptrace has no buffers";
	else if (options->targets.no_inherit || options->per_task || options->off_cpu ||
		 options->branches || options->overwrite || options->control ||
		 options->delay_ms > 0 || options->wait_for_control ||
		 options->duration_ns > 0 || options->max_bytes > 0 ||
		 options->max_samples > 0)
		wrong = "--engine ptrace has none of -b, -D, -i, -j, --control, "
			"--duration, --max-samples, --max-size, --off-cpu, --overwrite, "
			"--per-task";
	if (wrong)
		return refuse_options(err, wrong);
	return 0;
}

static int check_target(struct pm_rec_options *options, struct pm_error *err)
{
	int ret = pm_targets_check(&options->targets, "pmrec", err);

	if (ret < 0)
		return ret;
	options->attach = pm_targets_request_any(&options->targets);
	options->targets.with_children = options->targets.pids.list.len > 0;
	if (options->targets.only_pid && !options->targets.with_children)
		return refuse_options(err, "--only-pid limits -p");
	if (options->user && (options->attach || options->action != PM_REC_RECORD))
		return refuse_options(
			err, "--user is for a command that pmrec starts; -u is for "
			     "what runs already");
	return 0;
}

static int check_course(const struct pm_rec_options *options, struct pm_error *err)
{
	if (options->wait_for_control && !options->control)
		return refuse_options(
			err, "-D -1 begins when --control says enable, and there "
			     "is no --control");
	if (options->overwrite && strcmp(options->output, "-") == 0)
		return refuse_options(err,
				      "--overwrite writes several files; -o - is one "
				      "stream");
	/* With --overwrite, overwritten records are not reported as lost. A thread whose
	 * return to a CPU was overwritten would seem to be off CPU until it leaves one
	 * again. */
	if (options->overwrite && options->off_cpu)
		return refuse_options(
			err, "--overwrite and --off-cpu exclude each other: blocked "
			     "time takes all switches, not only the newest");
	if (options->overwrite && (options->max_samples > 0 || options->max_bytes > 0))
		return refuse_options(
			err, "--overwrite keeps what the buffers hold: --max-samples "
			     "and --max-size do not go with it");
	return 0;
}

static int check_record(struct pm_rec_options *options, char **rest, struct pm_error *err)
{
	int ret = check_target(options, err);

	if (ret == 0)
		ret = check_engine(options, err);
	if (ret == 0 && options->output[0] == '\0')
		ret = refuse_options(err, "-o: the file needs a name");
	if (ret == 0)
		ret = check_raw(options, err);
	if (ret == 0)
		ret = check_course(options, err);
	if (ret < 0)
		return ret;
	options->command = rest[0] ? rest : NULL;
	if (rest[0] ? rest[0][0] == '\0' : !options->attach) {
		pm_error_set(err, -EINVAL, "no command to record");
		pm_error_fix(err, "pmrec -- COMMAND; pmrec -p PID; pmrec -a; or pmrec "
				  "--help");
		return -EINVAL;
	}
	return check_branches(options, err);
}

int pm_rec_check(struct pm_rec_options *options, char **rest, struct pm_error *err)
{
	switch (options->action) {
	case PM_REC_STACKS:
		return check_stacks(options, rest, err);
	case PM_REC_RECORD:
		return check_record(options, rest, err);
	case PM_REC_LIST:
	case PM_REC_DOCTOR:
		if (rest[0])
			return refuse_options(
				err, options->action == PM_REC_LIST
					     ? "--list takes a kind and a glob, no more"
					     : "--doctor runs no command");
		return 0;
	case PM_REC_HELP:
	case PM_REC_VERSION:
		return 0;
	}
	return 0;
}
