/* SPDX-License-Identifier: MIT */
#include "options-parts.h"

#include <string.h>

enum {
	AB_RUNS = 20, /* enough pairs to find a change of 1 % on a busy machine */
	AB_RUNS_SIMULATED = 10, /* simulated runs are nearly equal */
};

static const char ab_separator[] = ":::";

bool pmstat_needs_engine(const struct pmstat_options *options)
{
	return options->regions.len > 0 || options->engine == PM_COUNT_ENGINE_CALLGRIND;
}

/* Checks the events. Kernel events and simulated ones cannot be mixed. */
static int check_event_options(const struct pmstat_options *options, struct pm_error *err)
{
	bool simulator = options->engine == PM_COUNT_ENGINE_CALLGRIND;

	if (simulator && options->specs.list.len > 0)
		return pmstat_usage(err,
				    "%s: --engine callgrind simulates a processor and "
				    "counts sim.* alone",
				    options->specs.list.data[0].requested);
	if (simulator || options->simulated.len == 0)
		return 0;
	pm_error_set(err, -EINVAL, "%s is simulated: only --engine callgrind counts it",
		     options->simulated.data[0]);
	pm_error_fix(err, "pmstat --engine callgrind -e %s", options->simulated.data[0]);
	return -EINVAL;
}

static int check_engine_options(const struct pmstat_options *options,
				struct pm_error *err)
{
	bool simulator = options->engine == PM_COUNT_ENGINE_CALLGRIND;

	if (options->regions.len == 0 &&
	    (options->live || options->calls_from > 0 ||
	     (options->engine != PM_COUNT_ENGINE_AUTO && !simulator)))
		return pmstat_usage(err, "--live, --calls-from, --engine uprobe and "
					 "--engine ptrace go with --fn and --range");
	if (simulator && options->attach)
		return pmstat_usage(err, "--engine callgrind counts a command that it "
					 "starts");
	if (simulator && (options->live || options->by == PM_COUNTERS_BY_CPU))
		return pmstat_usage(err, "--engine callgrind has no --live and no --per "
					 "cpu");
	if (!pmstat_needs_engine(options))
		return 0;
	if (options->targets.all_cpus)
		return pmstat_usage(err, "--fn and --range are of a command, -p, -t or "
					 "-u");
	if (options->attach && options->commands[0])
		return pmstat_usage(err, "--fn and --range of running processes go with "
					 "--timeout, not with a command");
	if (options->interval_ms > 0 || options->delay_ms > 0)
		return pmstat_usage(
			err, "-I and -D do not go with --fn, --range and --engine");
	if (options->by == PM_COUNTERS_BY_CPU)
		return pmstat_usage(err, "--fn and --range have --per thread only");
	return 0;
}

static int check_marked(const struct pmstat_options *options, struct pm_error *err)
{
	bool simulator = options->engine == PM_COUNT_ENGINE_CALLGRIND;

	if (!options->marked)
		return 0;
	if (options->attach)
		return pmstat_usage(err, "--marked counts a command that it starts");
	if (pmstat_needs_engine(options) && !simulator)
		return pmstat_usage(err, "--marked goes with whole programs and with "
					 "--engine callgrind");
	if (options->marked_from && !simulator)
		return pmstat_usage(err, "--marked=FROM,TO goes with --engine callgrind");
	if (options->interval_ms > 0 || options->delay_ms > 0)
		return pmstat_usage(err, "-I and -D do not go with --marked");
	return 0;
}

/* Checks --stacks, which needs a single run: each run would overwrite the file of the
 * previous one. */
static int check_stacks_option(const struct pmstat_options *options, struct pm_error *err)
{
	if (!options->stacks)
		return 0;
	if (options->engine != PM_COUNT_ENGINE_CALLGRIND || options->regions.len > 0)
		return pmstat_usage(err, "--stacks goes with --engine callgrind, without "
					 "--fn and --range");
	if (options->ab || options->repeat > 1 || options->warmups > 0)
		return pmstat_usage(err, "--stacks needs a single run");
	return 0;
}

static int check_output_options(const struct pmstat_options *options,
				struct pm_error *err)
{
	if (options->live && options->form != PMSTAT_TEXT && !options->output)
		return pmstat_usage(err, "--live and the result would share standard "
					 "error: -o FILE parts them");
	return 0;
}

static int check_target_options(struct pmstat_options *options, struct pm_error *err)
{
	int ret = pm_targets_check(&options->targets, "pmstat", err);

	if (ret < 0)
		return ret;
	options->attach = pm_targets_request_any(&options->targets);
	if (options->attach && options->user)
		return pmstat_usage(err, "--user is for a command that pmstat starts; -u "
					 "is for what runs already");
	if (options->attach && options->ab)
		return pmstat_usage(err, "ab compares commands, not what runs already");
	if (options->targets.all_cpus && options->by == PM_COUNTERS_BY_THREAD)
		return pmstat_usage(err, "--per thread needs a command, -p, -t or -u");
	return 0;
}

static uint64_t ab_runs(const struct pmstat_options *options)
{
	if (options->engine == PM_COUNT_ENGINE_CALLGRIND)
		return AB_RUNS_SIMULATED;
	return AB_RUNS;
}

/* Checks the number of runs. */
static int check_repetition(struct pmstat_options *options, struct pm_error *err)
{
	bool many = options->repeat > 0 || options->time_ns > 0 || options->warmups > 0;

	if (many && !options->commands[0])
		return pmstat_usage(err, "-r, --time and -w run a command again, and "
					 "there is none");
	if (options->ab && options->interval_ms > 0)
		return pmstat_usage(err, "ab compares whole runs, without -I");
	if (options->repeat == 0) {
		if (options->time_ns > 0)
			options->repeat = UINT64_MAX;
		else if (options->ab)
			options->repeat = ab_runs(options);
		else
			options->repeat = 1;
	}
	return 0;
}

static int no_command(struct pm_error *err, bool ab)
{
	if (ab) {
		pm_error_set(err, -EINVAL,
			     "ab compares two commands, with ::: between them");
		pm_error_fix(err, "pmstat ab -- COMMAND ::: COMMAND");
	} else {
		pm_error_set(err, -EINVAL, "no command to count");
		pm_error_fix(err, "pmstat -- COMMAND; pmstat -p PID; pmstat -a; or "
				  "pmstat --help");
	}
	return -EINVAL;
}

static int set_commands(struct pmstat_options *options, char **rest, struct pm_error *err)
{
	char **second = NULL;

	for (char **word = rest; options->ab && *word; word++) {
		if (strcmp(*word, ab_separator) != 0)
			continue;
		if (second)
			return pmstat_usage(err,
					    "ab compares two commands: one ::: only");
		second = word + 1;
		*word = NULL;
	}
	if (options->ab && (!second || !second[0] || second[0][0] == '\0'))
		return no_command(err, true);
	if (rest[0])
		options->commands[0] = rest;
	else
		options->commands[0] = NULL;
	options->commands[1] = second;
	if (rest[0] ? rest[0][0] == '\0' : !options->attach)
		return no_command(err, options->ab);
	return 0;
}

int pmstat_check(struct pmstat_options *options, char **rest, struct pm_error *err)
{
	int ret = check_target_options(options, err);

	if (ret == 0)
		ret = set_commands(options, rest, err);
	if (ret == 0)
		ret = check_repetition(options, err);
	if (ret == 0)
		ret = check_event_options(options, err);
	if (ret == 0)
		ret = check_engine_options(options, err);
	if (ret == 0)
		ret = check_marked(options, err);
	if (ret == 0)
		ret = check_stacks_option(options, err);
	if (ret < 0)
		return ret;
	return check_output_options(options, err);
}
