/* SPDX-License-Identifier: MIT */
#include "options-parts.h"

#include <string.h>

enum {
	WARMUPS_MAX = 1000000,
	CALLERS_MAX = 127, /* frames of a stack; more are not useful */
};

/* ---- what to count ------------------------------------------------------------------------ */

/* Returns the length of the first event in a list. Groups and PMUs contain commas,
 * too. */
static size_t first_event_len(const char *text)
{
	bool slashes = false;
	size_t len = 0, depth = 0;

	for (; text[len] != '\0'; len++) {
		if (text[len] == '/')
			slashes = !slashes;
		else if (text[len] == '{')
			depth++;
		else if (text[len] == '}' && depth > 0)
			depth--;
		else if (text[len] == ',' && depth == 0 && !slashes)
			break;
	}
	return len;
}

static int add_simulated(struct pmstat_options *options, const char *text, size_t len,
			 struct pm_error *err)
{
	static const char all[] = "sim.costs";
	char *name;
	int ret = 0;

	if (len == strlen(all) && strncasecmp(text, all, len) == 0) {
		for (size_t i = 0; ret == 0 && pm_sim_cost_name(i); i++)
			ret = add_simulated(options, pm_sim_cost_name(i),
					    strlen(pm_sim_cost_name(i)), err);
		return ret;
	}
	name = strndup(text, len);
	if (name && pm_vec_push(&options->simulated, name) == 0)
		return 0;
	free(name);
	return pm_error_set(err, -ENOMEM, "out of memory");
}

/* Adds events, and separates the simulated ones from those of the kernel. */
static int stat_add_events(void *to, const struct pm_option_use *use,
			   struct pm_error *err)
{
	struct pmstat_options *options = to;
	const char *text = use->text;
	struct pm_str others = { 0 };
	int ret = 0;

	options->event_given = true;
	if (!strstr(text, "sim."))
		return pm_event_specs_parse(text, &options->specs, err);
	for (const char *rest = text; ret == 0;) {
		size_t len = first_event_len(rest);

		if (pm_sim_event_is(rest))
			ret = add_simulated(options, rest, len, err);
		else {
			pm_str_separate(&others, ",");
			pm_str_printf(&others, "%.*s", (int)len, rest);
		}
		rest += len;
		if (*rest++ == '\0')
			break;
	}
	if (ret == 0 && others.failed)
		ret = pm_error_set(err, -ENOMEM, "out of memory");
	if (ret == 0 && others.data)
		ret = pm_event_specs_parse(others.data, &options->specs, err);
	pm_str_release(&others);
	return ret;
}

/* Adds a function or a range; the option's `value` is above 0 for a range. */
static int stat_add_region(void *to, const struct pm_option_use *use,
			   struct pm_error *err)
{
	struct pmstat_options *options = to;
	struct pm_region_spec spec = { .range = use->option->value > 0,
				       .text = use->text };

	if (spec.text[0] == '\0' && spec.range)
		return pmstat_usage(err, "--range: expected the name of a range, as "
					 "file.c:10-20");
	if (spec.text[0] == '\0')
		return pmstat_usage(err, "--fn: expected the name of a function");
	if (pm_vec_push(&options->regions, spec) < 0)
		return pm_error_no_memory(err);
	return 0;
}

static int stat_set_calls_from(void *to, const struct pm_option_use *use,
			       struct pm_error *err)
{
	struct pmstat_options *options = to;
	uint64_t callers = 1;

	if (use->text &&
	    (!pm_parse_u64(use->text, &callers) || callers == 0 || callers > CALLERS_MAX))
		return pmstat_usage(err,
				    "--calls-from=%s: expected a number of callers, 1 to "
				    "%d",
				    use->text, CALLERS_MAX);
	options->calls_from = (uint32_t)callers;
	return 0;
}

/* Parses FROM,TO and splits the string in two. Wildcards are rejected: valgrind would
 * expand them. */
static int stat_set_marked(void *to, const struct pm_option_use *use,
			   struct pm_error *err)
{
	struct pmstat_options *options = to;
	/* A word of argv, which may be written to. */
	char *text = (char *)(uintptr_t)use->text, *comma;

	options->marked = true;
	if (!text)
		return 0;
	comma = strchr(text, ',');
	if (!comma || comma == text || comma[1] == '\0' || strchr(comma + 1, ',') ||
	    strpbrk(text, "*?"))
		return pmstat_usage(err,
				    "--marked=%s: expected two names of the symbol "
				    "table, FROM,TO",
				    text);
	*comma = '\0';
	options->marked_from = text;
	options->marked_to = comma + 1;
	return 0;
}

static int stat_set_per(void *to, const struct pm_option_use *use, struct pm_error *err)
{
	struct pmstat_options *options = to;

	if (strcmp(use->text, "thread") == 0)
		options->by = PM_COUNTERS_BY_THREAD;
	else if (strcmp(use->text, "cpu") == 0)
		options->by = PM_COUNTERS_BY_CPU;
	else
		return pmstat_usage(err, "--per %s: expected thread or cpu", use->text);
	return 0;
}

/* ---- when, and where to ------------------------------------------------------------------- */

static int stat_set_timeout(void *to, const struct pm_option_use *use,
			    struct pm_error *err)
{
	struct pmstat_options *options = to;
	uint64_t ms;

	if (!pm_parse_u64(use->text, &ms))
		return pm_parse_duration(&options->timeout_ns, "--timeout", use->text,
					 "pmstat", err);
	if (ms == 0 || ms > INT32_MAX)
		return pmstat_usage(err,
				    "--timeout %s: expected a time, as 10s or 500ms; a "
				    "bare number counts milliseconds",
				    use->text);
	options->timeout_ns = ms * 1000000;
	return 0;
}

/* Sets the output form to the option's `value`. */
static int stat_set_form(void *to, const struct pm_option_use *use, struct pm_error *err)
{
	struct pmstat_options *options = to;
	enum pmstat_form form = use->option->value;
	int ret = 0;

	if (form == PMSTAT_CSV)
		ret = pm_parse_separator(&options->separator, use->text, "pmstat", err);
	if (ret < 0)
		return ret;
	if (options->form != PMSTAT_TEXT && options->form != form)
		return pmstat_usage(err, "-x and --json exclude each other");
	options->form = form;
	return 0;
}

/* ---- the table ---------------------------------------------------------------------------- */

#define TO(member) PM_OPTION_TO(struct pmstat_options, member)
#define AT(member) PM_OPTION_AT(struct pmstat_options, member)
#define MS         .min = 1, .max = INT32_MAX, .expected = "a number of milliseconds, at least 1"

static const struct pm_option stat_option_rows[] = {
	PM_OPTION_GROUP("What to count"),
	{ "event", 'e', "EVENT[,…]",
	  "these events, repeatable; {A,B} a group; `:u` user space only, `:k` kernel only "
	  "(pmrec --list has all)",
	  PM_OPTION_EVENT,
	  "sim.Ir sim.Dr sim.Dw sim.I1mr sim.D1mr sim.D1mw sim.ILmr sim.DLmr sim.DLmw sim.Bc "
	  "sim.Bcm sim.Bi sim.Bim sim.L1hits sim.LLhits sim.RAMhits sim.cycles sim.costs",
	  .repeatable = true, .set = stat_add_events },
	{ "fn", 0, "NAME",
	  "in this function, repeatable: a name or glob, also NAME@library.so, or FILE:LINE "
	  "of its definition",
	  .repeatable = true, .set = stat_add_region },
	{ "range", 0, "RANGE",
	  "in this range of code, repeatable: file.c:10-20 or 0xA-0xB",
	  .repeatable = true, .set = stat_add_region, .value = true },
	{ "engine", 0, "HOW",
	  "uprobe: the kernel's probes; ptrace: breakpoints; auto: the first of these that "
	  "works (default); callgrind: a simulated processor, events sim.*",
	  PM_OPTION_WORD, "auto uprobe ptrace callgrind", TO(engine) },
	{ "calls-from", 0, "[=N]",
	  "by where functions are called from: N callers (default: 1)",
	  .set = stat_set_calls_from },
	{ "live", 0, NULL, "print each call when it returns", TO(live) },
	{ "marked", 0, "[=FROM,TO]",
	  "only what COMMAND marks, by perf_start() and perf_stop() of pmself(3); "
	  "callgrind: or by requests of valgrind, or between calls of two functions",
	  .set = stat_set_marked },
	{ "stacks", 0, "FILE",
	  "callgrind: what each stack has cost, to FILE, which pmreport reads as a "
	  "recording",
	  PM_OPTION_FILE, TO(stacks), .expected = "a file" },
	{ "per", 0, "WHAT", "thread or cpu: also a row for each", PM_OPTION_WORD,
	  "thread cpu", .set = stat_set_per },

	PM_OPTION_GROUP("Whom to count"),
	{ "pid", 'p', "PID[,…]", "running processes, with all that they start",
	  PM_OPTION_PROCESS, .set = pm_task_list_set, AT(targets.pids) },
	{ "tid", 't', "TID[,…]", "running threads", PM_OPTION_PROCESS,
	  .set = pm_task_list_set, AT(targets.tids) },
	{ "uid", 'u', "USER", "all processes of a user, with all that they start",
	  PM_OPTION_USER, TO(targets.uid), .expected = "a user" },
	{ "all-cpus", 'a', NULL, "everything on all CPUs", TO(targets.all_cpus) },
	{ "cpu", 'C', "CPUS", "everything on these CPUs, as 0,2-4",
	  .set = pm_targets_set_cpus, AT(targets) },
	{ "cgroup", 'G', "GROUP",
	  "everything in a control group: its folder, or its name below /sys/fs/cgroup",
	  PM_OPTION_FOLDER, TO(targets.cgroup), .expected = "a control group" },
	{ "no-inherit", 'i', NULL, "leave out threads and processes that start later",
	  TO(targets.no_inherit) },
	{ "user", 0, "USER", "run COMMAND as this user", PM_OPTION_USER, TO(user),
	  .expected = "a user" },

	PM_OPTION_GROUP("How often, and when"),
	{ "repeat", 'r', "N", "run it N times (ab: each of both; default: 20)",
	  PM_OPTION_NUMBER, TO(repeat) },
	{ "time", 0, "TIME", "run it again until so long: 5s, 500ms, 2m, …",
	  PM_OPTION_DURATION, TO(time_ns) },
	{ "warmup", 'w', "N", "run it N times before, uncounted", PM_OPTION_NUMBER,
	  TO(warmups), .max = WARMUPS_MAX, .expected = "a number of runs" },
	{ "keep-going", 0, NULL, "run on after a run that failed", TO(keep_going) },
	{ "interval-print", 'I', "MS", "print what was counted every MS milliseconds",
	  PM_OPTION_NUMBER, TO(interval_ms), MS },
	{ "delay", 'D', "MS", "begin so many milliseconds later", PM_OPTION_NUMBER,
	  TO(delay_ms), MS },
	{ "timeout", 0, "TIME", "end after so long; a bare number counts milliseconds",
	  .set = stat_set_timeout },

	PM_OPTION_GROUP("Output"),
	{ "output", 'o', "FILE|-",
	  "write to FILE; `-` is standard output, and that of COMMAND then goes to standard "
	  "error (default: standard error)",
	  PM_OPTION_FILE, TO(output), .expected = "a file" },
	{ "field-separator", 'x', "S", "fields separated by S, a line of names first",
	  .excludes = "json", .set = stat_set_form, .value = PMSTAT_CSV },
	{ "json", 0, NULL, "JSON, everything (schema: man pmstat)", .set = stat_set_form,
	  .value = PMSTAT_JSON },
	{ "color", 0, "WHEN", "auto (default), always or never; see NO_COLOR",
	  PM_OPTION_WORD, "auto always never", .set = pm_color_set, AT(color) },
	{ "quiet", 'q', NULL, "the result only: no warnings", TO(quiet) },
	{ "verbose", 'v', NULL, "each run as it ends, and the values of settings",
	  TO(verbose) },
	{ "help", 'h', NULL, "print this help", TO(action), .value = PMSTAT_HELP,
	  .last = true },
	{ "version", 0, NULL, "print the version", TO(action),
	  .value = PMSTAT_TELL_VERSION, .last = true },
};

const struct pm_option_table pmstat_option_table = {
	"pmstat",
	PM_OPTION_ROWS(stat_option_rows),
	.before =
		"usage: pmstat [options] [--] COMMAND [ARGUMENT…]\n"
		"       pmstat ab [options] -- COMMAND_A… ::: COMMAND_B…\n"
		"       pmstat [options] -p PID | -t TID | -u USER | -a  [COMMAND…]\n"
		"\n"
		"Runs COMMAND and counts events in it and in everything that it starts: time,\n"
		"faults, context switches and, where there is a PMU, cycles, instructions and\n"
		"misses. With --fn and --range it counts them in functions and in ranges of code.\n",
	.after =
		"\n"
		"The exit status is that of COMMAND: its own, 128+N when signal N ended it, 127\n"
		"when it was not found, 126 when it could not be run; 125 when pmstat itself\n"
		"failed; 0 without COMMAND, and when --timeout ended it. The first run that\n"
		"fails is the last one, unless --keep-going.\n",
	.modes = "ab",
	.command_modes = "*",
};

/* Checks for `--calls-from N`. An optional value must follow a `=`; otherwise the word is
 * the command. */
static int check_calls_from(char **rest, struct pm_error *err)
{
	uint64_t callers;

	if (!rest[0] || strncmp(rest[-1], "--calls", strlen("--calls")) != 0 ||
	    strchr(rest[-1], '=') || !pm_parse_u64(rest[0], &callers))
		return 0;
	return pmstat_usage(err, "%s %s: write --calls-from=%s, or ./%s for a command",
			    rest[-1], rest[0], rest[0], rest[0]);
}

int pmstat_options_parse(struct pmstat_options *options, int argc, char **argv,
			 struct pm_error *err)
{
	int ret;

	*options = (struct pmstat_options){ .separator = "," };
	/* A program of that name can be run as `-- ab` or `./ab`. */
	options->ab = argc > 1 && strcmp(argv[1], "ab") == 0;
	if (options->ab) {
		argc--;
		argv++;
	}
	ret = pm_options_parse(&pmstat_option_table, options, argc, argv,
			       PM_OPTIONS_FIRST, NULL, err);
	if (ret != 0)
		return PM_MIN(ret, 0);
	ret = check_calls_from(argv + optind, err);
	if (ret < 0)
		return ret;
	return pmstat_check(options, argv + optind, err);
}

void pmstat_options_release(struct pmstat_options *options)
{
	pm_event_specs_release(&options->specs);
	pm_probes_release(&options->probes);
	for (size_t i = 0; i < options->simulated.len; i++)
		free(options->simulated.data[i]);
	pm_vec_release(&options->simulated);
	pm_vec_release(&options->regions);
	pm_targets_request_release(&options->targets);
}
