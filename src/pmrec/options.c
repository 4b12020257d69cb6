/* SPDX-License-Identifier: MIT */
#include "options-parts.h"

#include <linux/perf_event.h>
#include <string.h>

#include "off-cpu.h"
#include "pm/options.h"

enum {
	DEFAULT_HZ = 999, /* not 1000, to stay out of step with timers of the target */
	/* With stitching, more stacks reach the root than with 65528 bytes and without
	 * it: see the table in docs/how-it-works.md. */
	DEFAULT_STACK_BYTES = 40960,
	STACK_BYTES_STEP = 8, /* perf_event_open(2): sample_stack_user is a multiple */
	REALTIME_MAX = 99, /* sched(7) */
};

static const char default_event[] = "cycles";
static const char default_output[] = "samples.json";
static const char list_kinds[] = "hardware software cache pmu tracepoint probe";

/* ---- what to sample ----------------------------------------------------------------------- */

static int rec_add_events(void *to, const struct pm_option_use *use, struct pm_error *err)
{
	struct pm_rec_options *options = to;

	options->event_given = true;
	options->last_events = options->specs.list.len;
	return pm_event_specs_parse(use->text, &options->specs, err);
}

static int rec_set_frequency(void *to, const struct pm_option_use *use,
			     struct pm_error *err)
{
	struct pm_rec_options *options = to;

	options->by_frequency = options->rate_given = true;
	if (strcmp(use->text, "max") == 0)
		options->rate = UINT64_MAX;
	else if (!pm_parse_u64(use->text, &options->rate) || options->rate == 0 ||
		 options->rate > INT64_MAX)
		return pm_rec_usage(err,
				    "-F %s: expected samples a second, as 999, or max",
				    use->text);
	return 0;
}

static int rec_set_period(void *to, const struct pm_option_use *use, struct pm_error *err)
{
	struct pm_rec_options *options = to;

	options->by_frequency = false;
	options->count_given = true;
	if (pm_parse_u64(use->text, &options->rate) && options->rate > 0 &&
	    options->rate <= INT64_MAX)
		return 0;
	return pm_rec_usage(err, "-c %s: expected a number of events, as 1000000",
			    use->text);
}

static int rec_set_filter(void *to, const struct pm_option_use *use, struct pm_error *err)
{
	struct pm_rec_options *options = to;
	const char *text = use->text;
	struct pm_event_specs *specs = &options->specs;
	size_t first = options->last_events;
	const char *kept;

	if (first == specs->list.len || text[0] == '\0')
		return pm_rec_usage(
			err, text[0] ? "--filter belongs behind the -e that it filters"
				     : "--filter: it needs a text, as 'pid == 123'");
	kept = pm_event_specs_keep(specs, text, strlen(text));
	if (!kept)
		return pm_error_set(err, -ENOMEM, "out of memory");
	for (size_t i = first; i < specs->list.len; i++) {
		struct pm_event_spec *spec = &specs->list.data[i];

		if (spec->kind < PM_EVENT_TRACEPOINT)
			return pm_rec_usage(
				err, "--filter: %s is no tracepoint and has no fields",
				spec->requested);
		spec->filter = kept;
	}
	return 0;
}

/* The names of perf-record(1). */
static const struct {
	const char *name;
	uint64_t bit;
} branch_names[] = {
	{ "any", PERF_SAMPLE_BRANCH_ANY },
	{ "any_call", PERF_SAMPLE_BRANCH_ANY_CALL },
	{ "any_ret", PERF_SAMPLE_BRANCH_ANY_RETURN },
	{ "ind_call", PERF_SAMPLE_BRANCH_IND_CALL },
	{ "ind_jmp", PERF_SAMPLE_BRANCH_IND_JUMP },
	{ "call", PERF_SAMPLE_BRANCH_CALL },
	{ "stack", PERF_SAMPLE_BRANCH_CALL_STACK },
	{ "cond", PERF_SAMPLE_BRANCH_COND },
	{ "in_tx", PERF_SAMPLE_BRANCH_IN_TX },
	{ "no_tx", PERF_SAMPLE_BRANCH_NO_TX },
	{ "abort_tx", PERF_SAMPLE_BRANCH_ABORT_TX },
	{ "save_type", PERF_SAMPLE_BRANCH_TYPE_SAVE },
	{ "u", PERF_SAMPLE_BRANCH_USER },
	{ "k", PERF_SAMPLE_BRANCH_KERNEL },
	{ "hv", PERF_SAMPLE_BRANCH_HV },
};

static int rec_add_branches(void *to, const struct pm_option_use *use,
			    struct pm_error *err)
{
	struct pm_rec_options *options = to;
	const uint64_t levels = PERF_SAMPLE_BRANCH_USER | PERF_SAMPLE_BRANCH_KERNEL |
				PERF_SAMPLE_BRANCH_HV;
	uint64_t branches = 0;

	for (const char *rest = use->text;; rest++) {
		size_t len = strcspn(rest, ",");
		uint64_t bit = 0;

		for (size_t i = 0; i < PM_ARRAY_LEN(branch_names); i++)
			if (strlen(branch_names[i].name) == len &&
			    memcmp(branch_names[i].name, rest, len) == 0)
				bit = branch_names[i].bit;
		if (bit == 0) {
			return pm_rec_usage(
				err,
				"-j: unknown kind of branch \"%.*s\"; known are "
				"any, any_call, any_ret, ind_call, ind_jmp, call, "
				"stack, cond, in_tx, no_tx, abort_tx, save_type, u, k, "
				"hv",
				(int)PM_MIN(len, 40), rest);
		}
		branches |= bit;
		rest += len;
		if (*rest == '\0')
			break;
	}
	/* perf_event_open(2): without a kind, nothing is recorded. */
	if ((branches & ~levels & ~(uint64_t)PERF_SAMPLE_BRANCH_TYPE_SAVE) == 0)
		branches |= PERF_SAMPLE_BRANCH_ANY;
	options->branches = branches;
	return 0;
}

static int rec_add_any_branch(void *to, const struct pm_option_use *use,
			      struct pm_error *err)
{
	struct pm_rec_options *options = to;

	options->branches |= PERF_SAMPLE_BRANCH_ANY;
	return 0;
}

/* ---- when ----------------------------------------------------------------------------------- */

static int rec_set_delay(void *to, const struct pm_option_use *use, struct pm_error *err)
{
	struct pm_rec_options *options = to;
	const char *text = use->text;
	uint64_t ms;

	options->wait_for_control = strcmp(text, "-1") == 0;
	if (options->wait_for_control)
		return 0;
	if (!pm_parse_u64(text, &ms) || ms > INT32_MAX)
		return pm_rec_usage(
			err,
			"-D %s: expected a number of milliseconds, or -1 to begin "
			"when --control says enable",
			text);
	options->delay_ms = ms;
	return 0;
}

static int rec_set_control(void *to, const struct pm_option_use *use,
			   struct pm_error *err)
{
	struct pm_rec_options *options = to;
	const char *text = use->text;
	const char *names = text + strcspn(text, ":");
	size_t first;
	uint64_t fd;

	options->control = text;
	if (strncmp(text, "fifo:", 5) == 0) {
		first = strcspn(++names, ",");
		if (first > 0 && (names[first] == '\0' || names[first + 1] != '\0'))
			return 0;
	} else if (strncmp(text, "fd:", 3) == 0) {
		names++;
		if (pm_parse_u64_part(&names, &fd) && fd <= INT32_MAX &&
		    (*names == '\0' ||
		     (names++, pm_parse_u64_part(&names, &fd) && fd <= INT32_MAX &&
				       *names == '\0')))
			return 0;
	}
	return pm_rec_usage(
		err, "--control %s: expected fifo:PATH[,ACK-PATH] or fd:NUMBER[,ACK]",
		text);
}

static int rec_set_realtime(void *to, const struct pm_option_use *use,
			    struct pm_error *err)
{
	struct pm_rec_options *options = to;
	const char *text = use->text;
	uint64_t priority;

	if (!pm_parse_u64(text, &priority) || priority > REALTIME_MAX)
		return pm_rec_usage(err,
				    "-r %s: expected a priority, 1 to %d, or 0 for "
				    "none",
				    text, REALTIME_MAX);
	if (priority > 0)
		options->realtime = (int)priority;
	else
		options->realtime = -1;
	return 0;
}

/* ---- call stacks ---------------------------------------------------------------------------- */

static int parse_stack_bytes(struct pm_rec_options *options, const char *option,
			     const char *text, struct pm_error *err)
{
	uint64_t bytes;

	if (!pm_parse_u64(text, &bytes) || bytes == 0 || bytes > PM_STACK_BYTES_MAX)
		return pm_rec_usage(err, "%s %s: expected a number of bytes, 8 to %u",
				    option, text, PM_STACK_BYTES_MAX);
	options->stack_bytes_given = true;
	options->stack_bytes = (uint32_t)((bytes + STACK_BYTES_STEP - 1) /
					  STACK_BYTES_STEP * STACK_BYTES_STEP);
	return 0;
}

static int rec_set_stack_bytes(void *to, const struct pm_option_use *use,
			       struct pm_error *err)
{
	return parse_stack_bytes(to, "--stack-bytes", use->text, err);
}

static int rec_set_call_graph(void *to, const struct pm_option_use *use,
			      struct pm_error *err)
{
	struct pm_rec_options *options = to;
	const char *text = use->text;

	options->lbr = strcmp(text, "lbr") == 0;
	if (options->lbr) {
		/* With lbr, the kernel part of the stack is the kernel's own chain, as
		 * with fp. */
		options->call_graph = PM_CALL_GRAPH_FP;
	} else if (strcmp(text, "dwarf") == 0) {
		options->call_graph = PM_CALL_GRAPH_DWARF;
	} else if (strncmp(text, "dwarf,", 6) == 0) {
		options->call_graph = PM_CALL_GRAPH_DWARF;
		return parse_stack_bytes(options, "--call-graph dwarf,", text + 6, err);
	} else if (strcmp(text, "fp") == 0) {
		options->call_graph = PM_CALL_GRAPH_FP;
	} else if (strcmp(text, "none") == 0 || strcmp(text, "no") == 0) {
		options->call_graph = PM_CALL_GRAPH_NONE;
	} else {
		return pm_rec_usage(
			err,
			"--call-graph %s: expected dwarf, dwarf,BYTES, fp, lbr or "
			"none",
			text);
	}
	return 0;
}

/* As in perf, a bare number is in pages, a number with a unit in bytes. */
static int rec_set_ring_pages(void *to, const struct pm_option_use *use,
			      struct pm_error *err)
{
	struct pm_rec_options *options = to;
	const char *text = use->text;
	static const char units[] = "BKMG";
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	size_t len = strlen(text);
	const char *unit = len > 1 ? strchr(units, text[len - 1] & ~0x20) : NULL;
	char number[32];
	uint64_t pages;
	bool valid;

	snprintf(number, sizeof(number), "%.*s", (int)(unit && *unit ? len - 1 : len),
		 text);
	valid = len < sizeof(number) && pm_parse_u64(number, &pages) && pages > 0 &&
		pages <= UINT32_MAX;
	if (valid && unit && *unit) {
		pages <<= 10 * (unit - units);
		valid = pages >= page && pages % page == 0;
		pages /= page;
	}
	if (!valid || pages > UINT32_MAX || (pages & (pages - 1)) != 0)
		return pm_rec_usage(
			err,
			"-m %s: expected a number of pages that is a power of two, "
			"as 512, or of bytes, as 2M",
			text);
	options->ring_pages = (size_t)pages;
	return 0;
}

/* ---- the table ------------------------------------------------------------------------------ */

#define TO(member) PM_OPTION_TO(struct pm_rec_options, member)
#define AT(member) PM_OPTION_AT(struct pm_rec_options, member)

static const struct pm_option rec_option_rows[] = {
	PM_OPTION_GROUP("What to sample"),
	{ "event", 'e', "EVENT[,…]",
	  "event to sample on, repeatable; `:u` user space only, `:k` kernel only (default: "
	  "cycles)",
	  PM_OPTION_EVENT, "uprobe: uretprobe: kprobe: usdt: mem:", .repeatable = true,
	  .set = rec_add_events },
	{ "freq", 'F', "HZ|max", "samples a second and CPU (default: 999)",
	  PM_OPTION_WORD, "99 999 4999 max", .excludes = "count",
	  .set = rec_set_frequency },
	{ "count", 'c', "N", "instead: one sample every N events",
	  .set = rec_set_period },
	{ "filter", 0, "TEXT",
	  "of the tracepoints of the -e before it: only hits whose fields fit, as "
	  "'prev_pid > 0'",
	  .repeatable = true, .set = rec_set_filter },
	{ "off-cpu", 0, NULL, "also the time in which threads are blocked", TO(off_cpu) },
	{ "branch-any", 'b', NULL, "record the branches taken before each sample",
	  .set = rec_add_any_branch },
	{ "branch-filter", 'j', "KIND[,…]",
	  "of these only: any_call, any_ret, cond, u, k, …", PM_OPTION_WORD,
	  "any any_call any_ret ind_call cond call u k", .set = rec_add_branches },

	PM_OPTION_GROUP("Whom to sample"),
	{ "pid", 'p', "PID[,…]",
	  "running processes, their descendants, and all that these start",
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
	{ "only-pid", 0, NULL, "with -p: without processes already started",
	  TO(targets.only_pid) },
	{ "per-task", 0, NULL, "never sample CPUs where tasks are the target",
	  TO(per_task) },
	{ "user", 0, "USER", "run COMMAND as this user", PM_OPTION_USER, TO(user),
	  .expected = "a user" },

	PM_OPTION_GROUP("When"),
	{ "delay", 'D', "MS",
	  "begin so many milliseconds later; -1: when --control says so",
	  .set = rec_set_delay },
	{ "duration", 0, "TIME", "end after 10s, 500ms, 2m, …", PM_OPTION_DURATION,
	  TO(duration_ns) },
	{ "max-size", 0, "SIZE", "end when the file has this size, as 100M",
	  PM_OPTION_SIZE, TO(max_bytes) },
	{ "max-samples", 0, "N", "end after N samples", PM_OPTION_NUMBER,
	  TO(max_samples) },
	{ "control", 0, "fifo:PATH[,ACK]",
	  "obey enable, disable, ping, snapshot and stop from a FIFO; fd:N[,ACK] from an "
	  "open file",
	  PM_OPTION_WORD, "fifo: fd:", .set = rec_set_control },
	{ "overwrite", 0, NULL,
	  "keep only the newest samples in the buffers; each SIGUSR2 writes them to a file "
	  "of its own",
	  TO(overwrite) },

	PM_OPTION_GROUP("Call stacks"),
	{ NULL, 'g', NULL, "record call stacks (this is the default)" },
	{ "call-graph", 0, "HOW",
	  "how to find them; dwarf[,BYTES]: by unwind tables (default); fp: by frame "
	  "pointers; lbr: by the CPU's branch records; none: no call stacks",
	  PM_OPTION_WORD, "dwarf fp lbr none", .set = rec_set_call_graph },
	{ "stack-bytes", 0, "N",
	  "bytes of stack to look at in a sample, up to 65528 (default: 40960)",
	  .set = rec_set_stack_bytes },
	{ "no-stitch", 0, NULL,
	  "leave a stack that is deeper without its callers, even if other samples have "
	  "them",
	  TO(stitch), .negates = true },

	PM_OPTION_GROUP("Output"),
	{ "output", 'o', "FILE|-",
	  "file to write (default: samples.json); a name that ends in .zst is compressed; "
	  "`-` is standard output",
	  PM_OPTION_FILE, TO(output) },
	{ "raw", 0, "FILE",
	  "also keep registers and copied stacks, with all that is needed to unwind them "
	  "again (tens of KB a sample)",
	  PM_OPTION_FILE, TO(raw) },
	{ "force", 0, NULL,
	  "also replace a file that is no recording; what a new file replaces is kept as "
	  "FILE.old",
	  TO(force) },
	{ "no-symbols", 0, NULL, "leave addresses as they are", TO(symbols),
	  .negates = true },
	{ "quiet", 'q', NULL, "print errors only", TO(quiet) },
	{ "verbose", 'v', NULL, "print what was opened, how it goes and what it cost",
	  TO(verbose) },

	PM_OPTION_GROUP("What works here"),
	{ "list", 0, "[KIND] [GLOB]",
	  "list the events of this machine: hardware, software, cache, pmu, tracepoint or "
	  "probe",
	  PM_OPTION_WORD, list_kinds, TO(action), .value = PM_REC_LIST },
	{ "doctor", 0, NULL, "tell what this user may record here, and what to do",
	  TO(action), .value = PM_REC_DOCTOR },
	{ "json", 0, NULL, "either of them as JSON", TO(json) },

	PM_OPTION_GROUP("Without perf_event_open"),
	{ "engine", 0, "HOW",
	  "perf: the kernel's sampling (default); ptrace: stop running threads 99 times a "
	  "second (-F up to 1000); auto: ptrace where perf is denied",
	  PM_OPTION_WORD, "perf ptrace auto", TO(engine) },
	{ "verify", 0, NULL,
	  "with --engine ptrace and --stacks: ask libunwind, too, and tell where it finds "
	  "other callers",
	  TO(verify) },

	PM_OPTION_GROUP(
		"Stacks of a running process, once: pmrec --stacks -p PID [-t TID]"),
	{ "stacks", 0, NULL, "print the stack of each thread, and record nothing",
	  TO(action), .value = PM_REC_STACKS },
	{ "unwinder", 0, "WHICH", "own (default) or libunwind", PM_OPTION_WORD,
	  "own libunwind", TO(libunwind) },

	PM_OPTION_GROUP("Other"),
	{ "mmap-pages", 'm', "PAGES",
	  "size of each CPU's buffer, a power of two; with K, M or G in bytes",
	  .set = rec_set_ring_pages },
	{ "realtime", 'r', "PRIO", "read the buffers with this real-time priority",
	  .set = rec_set_realtime },
	{ "help", 'h', NULL, "print this help", TO(action), .value = PM_REC_HELP,
	  .last = true },
	{ "version", 0, NULL, "print the version", TO(action), .value = PM_REC_VERSION,
	  .last = true },
};

const struct pm_option_table pm_rec_option_table = {
	"pmrec",
	PM_OPTION_ROWS(rec_option_rows),
	.before =
		"usage: pmrec [options] [--] COMMAND [ARGUMENT…]\n"
		"       pmrec [options] -p PID | -t TID | -u USER | -a  [COMMAND…]\n"
		"\n"
		"Runs COMMAND, samples it with everything that it starts, and writes the samples\n"
		"with complete call stacks, function names and lines to samples.json. With -p,\n"
		"-t, -u, -a, -C or -G it samples what runs already, until Ctrl-C, --duration, the\n"
		"end of those processes, or the end of COMMAND (as in `pmrec -a -- sleep 5`).\n",
	.after =
		"\n"
		"The exit status is that of COMMAND: its own, 128+N when signal N ended it, 127\n"
		"when it was not found, 126 when it could not be run; 125 when pmrec itself\n"
		"failed; 0 without COMMAND.\n"
		"\n"
		"Next: pmreport samples.json\n"
		"\n"
		"Events:\n",
	.command_modes = "*",
};

/* Handles a word after the options. `--list` may be followed by a kind and a glob, and by
 * more options. */
static bool take_list_word(struct pm_rec_options *options, char *word)
{
	if (options->action != PM_REC_LIST || !word)
		return false;
	if (!options->list_kind && pm_words_find(list_kinds, word) >= 0)
		options->list_kind = word;
	else if (!options->list_glob)
		options->list_glob = word;
	else
		return false;
	return true;
}

int pm_rec_options_parse(struct pm_rec_options *options, int argc, char **argv,
			 struct pm_error *err)
{
	int ret;

	*options = (struct pm_rec_options){
		.by_frequency = true,
		.rate = DEFAULT_HZ,
		.call_graph = PM_CALL_GRAPH_DWARF,
		.stack_bytes = DEFAULT_STACK_BYTES,
		.stitch = true,
		.output = default_output,
		.symbols = true,
	};
	do {
		ret = pm_options_parse(&pm_rec_option_table, options, argc, argv,
				       PM_OPTIONS_FIRST, NULL, err);
		if (ret != 0)
			return PM_MIN(ret, 0);
	} while (take_list_word(options, argv[optind]) && ++optind);
	if (options->rate_given && options->count_given)
		return pm_rec_usage(err, "-F and -c exclude each other");
	ret = pm_rec_check(options, argv + optind, err);
	if (ret < 0 || options->action != PM_REC_RECORD)
		return ret;
	if (options->specs.list.len == 0)
		ret = pm_event_specs_parse(default_event, &options->specs, err);
	if (ret == 0 && options->off_cpu)
		return pm_rec_off_cpu_request(&options->specs, err);
	return ret;
}

void pm_rec_options_release(struct pm_rec_options *options)
{
	pm_event_specs_release(&options->specs);
	pm_probes_release(&options->probes);
	pm_targets_request_release(&options->targets);
}

void pm_rec_options_help(void)
{
	const char *const *names = pm_event_names();
	size_t column = 0;

	pm_options_print_help(&pm_rec_option_table, stdout);
	for (; *names; names++) {
		size_t len = strlen(*names) + 2;

		if (column > 0 && column + len > 80) {
			putchar('\n');
			column = 0;
		}
		printf("%s%s", column == 0 ? "  " : ", ", *names);
		column += len;
	}
	putchar('\n');
}
