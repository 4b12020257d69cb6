/* SPDX-License-Identifier: MIT */
#include "options-parts.h"

#include <getopt.h>
#include <linux/perf_event.h>
#include <string.h>

#include "off-cpu.h"

enum {
	DEFAULT_HZ = 999, /* not 1000, to stay out of step with timers of the target */
	/* With stitching, more stacks reach the root than with 65528 bytes and without
	 * it: see the table in docs/how-it-works.md. */
	DEFAULT_STACK_BYTES = 40960,
	STACK_BYTES_STEP = 8, /* perf_event_open(2): sample_stack_user is a multiple */
	OPTION_CALL_GRAPH = 256,
	OPTION_STACK_BYTES,
	OPTION_NO_STITCH,
	OPTION_NO_SYMBOLS,
	OPTION_RAW,
	OPTION_FORCE,
	OPTION_ENGINE,
	OPTION_STACKS,
	OPTION_UNWINDER,
	OPTION_VERIFY,
	OPTION_ONLY_PID,
	OPTION_PER_TASK,
	OPTION_OFF_CPU,
	OPTION_DURATION,
	OPTION_MAX_SIZE,
	OPTION_MAX_SAMPLES,
	OPTION_CONTROL,
	OPTION_OVERWRITE,
	OPTION_FILTER,
	OPTION_USER,
	OPTION_LIST,
	OPTION_JSON,
	OPTION_DOCTOR,
	OPTION_VERSION,
};

static const char default_event[] = "cycles";
static const char default_output[] = "samples.json";

static const char short_options[] = "+:aC:D:e:F:bc:gG:hij:m:o:p:qr:t:u:v";
static const struct option long_options[] = {
	{ "event", required_argument, NULL, 'e' },
	{ "freq", required_argument, NULL, 'F' },
	{ "count", required_argument, NULL, 'c' },
	{ "filter", required_argument, NULL, OPTION_FILTER },
	{ "off-cpu", no_argument, NULL, OPTION_OFF_CPU },
	{ "branch-any", no_argument, NULL, 'b' },
	{ "branch-filter", required_argument, NULL, 'j' },
	{ "all-cpus", no_argument, NULL, 'a' },
	{ "cpu", required_argument, NULL, 'C' },
	{ "cgroup", required_argument, NULL, 'G' },
	{ "uid", required_argument, NULL, 'u' },
	{ "no-inherit", no_argument, NULL, 'i' },
	{ "only-pid", no_argument, NULL, OPTION_ONLY_PID },
	{ "per-task", no_argument, NULL, OPTION_PER_TASK },
	{ "user", required_argument, NULL, OPTION_USER },
	{ "delay", required_argument, NULL, 'D' },
	{ "duration", required_argument, NULL, OPTION_DURATION },
	{ "max-size", required_argument, NULL, OPTION_MAX_SIZE },
	{ "max-samples", required_argument, NULL, OPTION_MAX_SAMPLES },
	{ "control", required_argument, NULL, OPTION_CONTROL },
	{ "overwrite", no_argument, NULL, OPTION_OVERWRITE },
	{ "realtime", required_argument, NULL, 'r' },
	{ "list", no_argument, NULL, OPTION_LIST },
	{ "json", no_argument, NULL, OPTION_JSON },
	{ "doctor", no_argument, NULL, OPTION_DOCTOR },
	{ "call-graph", required_argument, NULL, OPTION_CALL_GRAPH },
	{ "stack-bytes", required_argument, NULL, OPTION_STACK_BYTES },
	{ "no-stitch", no_argument, NULL, OPTION_NO_STITCH },
	{ "engine", required_argument, NULL, OPTION_ENGINE },
	{ "stacks", no_argument, NULL, OPTION_STACKS },
	{ "pid", required_argument, NULL, 'p' },
	{ "tid", required_argument, NULL, 't' },
	{ "unwinder", required_argument, NULL, OPTION_UNWINDER },
	{ "verify", no_argument, NULL, OPTION_VERIFY },
	{ "mmap-pages", required_argument, NULL, 'm' },
	{ "output", required_argument, NULL, 'o' },
	{ "raw", required_argument, NULL, OPTION_RAW },
	{ "force", no_argument, NULL, OPTION_FORCE },
	{ "quiet", no_argument, NULL, 'q' },
	{ "verbose", no_argument, NULL, 'v' },
	{ "no-symbols", no_argument, NULL, OPTION_NO_SYMBOLS },
	{ "help", no_argument, NULL, 'h' },
	{ "version", no_argument, NULL, OPTION_VERSION },
	{ NULL, 0, NULL, 0 },
};

static int parse_rate(struct pm_rec_options *options, const char *text, bool by_frequency,
		      struct pm_error *err)
{
	uint64_t rate;

	if (by_frequency && strcmp(text, "max") == 0) {
		rate = UINT64_MAX;
	} else if (!pm_parse_u64(text, &rate) || rate == 0 || rate > INT64_MAX) {
		if (by_frequency)
			return pm_rec_usage(
				err, "-F %s: expected samples a second, as 999, or max",
				text);
		return pm_rec_usage(err, "-c %s: expected a number of events, as 1000000",
				    text);
	}
	options->by_frequency = by_frequency;
	options->rate = rate;
	return 0;
}

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

static int parse_call_graph(struct pm_rec_options *options, const char *text,
			    struct pm_error *err)
{
	options->lbr = strcmp(text, "lbr") == 0;
	if (options->lbr) {
		/* The kernel part of the stack is the kernel's own chain, as with fp. */
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

/* Same as perf: a bare number is in pages, a number with a unit in bytes. */
static int parse_ring_pages(struct pm_rec_options *options, const char *text,
			    struct pm_error *err)
{
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

static int parse_engine(struct pm_rec_options *options, const char *text,
			struct pm_error *err)
{
	static const char *const names[] = { [PM_REC_ENGINE_PERF] = "perf",
					     [PM_REC_ENGINE_PTRACE] = "ptrace",
					     [PM_REC_ENGINE_AUTO] = "auto" };

	for (size_t i = 0; i < PM_ARRAY_LEN(names); i++) {
		if (strcmp(text, names[i]) != 0)
			continue;
		options->engine = (enum pm_rec_engine)i;
		return 0;
	}
	return pm_rec_usage(err, "--engine %s: expected perf, ptrace or auto", text);
}

static int parse_unwinder(struct pm_rec_options *options, const char *text,
			  struct pm_error *err)
{
	options->libunwind = strcmp(text, "libunwind") == 0;
	if (options->libunwind || strcmp(text, "own") == 0)
		return 0;
	return pm_rec_usage(err, "--unwinder %s: expected own or libunwind", text);
}

struct seen {
	bool rate, count;
	size_t last_events; /* index of the first event of the last -e */
};

static int parse_event_option(struct pm_rec_options *options, struct seen *seen,
			      struct pm_error *err)
{
	options->event_given = true;
	seen->last_events = options->specs.list.len;
	return pm_event_specs_parse(optarg, &options->specs, err);
}

static int apply_event(struct pm_rec_options *options, struct seen *seen, int option,
		       struct pm_error *err)
{
	switch (option) {
	case 'e':
		return parse_event_option(options, seen, err);
	case 'F':
		seen->rate = options->rate_given = true;
		return parse_rate(options, optarg, true, err);
	case 'c':
		seen->count = true;
		return parse_rate(options, optarg, false, err);
	case OPTION_FILTER:
		return pm_rec_parse_filter(options, seen->last_events, optarg, err);
	case OPTION_CALL_GRAPH:
		return parse_call_graph(options, optarg, err);
	case OPTION_STACK_BYTES:
		return parse_stack_bytes(options, "--stack-bytes", optarg, err);
	case 'b':
		options->branches |= PERF_SAMPLE_BRANCH_ANY;
		return 0;
	case 'j':
		return pm_rec_parse_branches(&options->branches, optarg, err);
	default:
		return 1;
	}
}

static int apply_target(struct pm_rec_options *options, int option, struct pm_error *err)
{
	if (option != OPTION_USER)
		return pm_targets_option(&options->targets, option, optarg, "pmrec", err);
	options->user = optarg;
	return pm_parse_name("--user", "a user", optarg, "pmrec", err);
}

static int apply_course(struct pm_rec_options *options, int option, struct pm_error *err)
{
	switch (option) {
	case 'D':
		return pm_rec_parse_delay(options, optarg, err);
	case OPTION_DURATION:
		return pm_parse_duration(&options->duration_ns, "--duration", optarg,
					 "pmrec", err);
	case OPTION_MAX_SIZE:
		return pm_parse_size(&options->max_bytes, "--max-size", optarg, "pmrec",
				     err);
	case OPTION_MAX_SAMPLES:
		return pm_parse_count(&options->max_samples, "--max-samples", optarg,
				      "pmrec", err);
	case OPTION_CONTROL:
		options->control = optarg;
		return pm_rec_parse_control(optarg, err);
	case OPTION_ENGINE:
		return parse_engine(options, optarg, err);
	case OPTION_UNWINDER:
		return parse_unwinder(options, optarg, err);
	case 'm':
		return parse_ring_pages(options, optarg, err);
	case 'r':
		return pm_rec_parse_realtime(&options->realtime, optarg, err);
	case 'o':
		options->output = optarg;
		return 0;
	case OPTION_RAW:
		options->raw = optarg;
		return 0;
	default:
		return 1;
	}
}

/* The field of an option without a value. */
static bool *switch_of(struct pm_rec_options *options, int option)
{
	switch (option) {
	case 'q':
		return &options->quiet;
	case 'v':
		return &options->verbose;
	case OPTION_ONLY_PID:
		return &options->targets.only_pid;
	case OPTION_PER_TASK:
		return &options->per_task;
	case OPTION_OFF_CPU:
		return &options->off_cpu;
	case OPTION_OVERWRITE:
		return &options->overwrite;
	case OPTION_FORCE:
		return &options->force;
	case OPTION_JSON:
		return &options->json;
	case OPTION_VERIFY:
		return &options->verify;
	case OPTION_NO_STITCH:
		return &options->stitch;
	case OPTION_NO_SYMBOLS:
		return &options->symbols;
	default:
		return NULL;
	}
}

static bool action_of(int option, enum pm_rec_action *out)
{
	switch (option) {
	case OPTION_STACKS:
		*out = PM_REC_STACKS;
		return true;
	case OPTION_LIST:
		*out = PM_REC_LIST;
		return true;
	case OPTION_DOCTOR:
		*out = PM_REC_DOCTOR;
		return true;
	case 'h':
		*out = PM_REC_HELP;
		return true;
	case OPTION_VERSION:
		*out = PM_REC_VERSION;
		return true;
	default:
		return false;
	}
}

static int apply_rec_option(struct pm_rec_options *options, struct seen *seen, int option,
			    const char *word, struct pm_error *err)
{
	bool *on = switch_of(options, option);
	int ret;

	if (on) {
		*on = option != OPTION_NO_STITCH && option != OPTION_NO_SYMBOLS;
		return 0;
	}
	if (option == 'g' || action_of(option, &options->action))
		return 0;
	ret = apply_event(options, seen, option, err);
	if (ret > 0)
		ret = apply_target(options, option, err);
	if (ret > 0)
		ret = apply_course(options, option, err);
	if (ret <= 0)
		return ret;
	return pm_usage_option(err, "pmrec", long_options, option, word);
}

/* `--list` may be followed by a kind and a glob, and by more options. */
static bool take_list_word(struct pm_rec_options *options, char *word)
{
	static const char *const kinds[] = { "hardware", "software",   "cache",
					     "pmu",      "tracepoint", "probe" };

	if (options->action != PM_REC_LIST || !word)
		return false;
	for (size_t i = 0; i < PM_ARRAY_LEN(kinds) && !options->list_kind; i++) {
		if (strcmp(word, kinds[i]) != 0)
			continue;
		options->list_kind = kinds[i];
		return true;
	}
	if (options->list_glob)
		return false;
	options->list_glob = word;
	return true;
}

/* Parses options up to the first word that is not one. */
static int take_options(struct pm_rec_options *options, struct seen *seen, int argc,
			char **argv, struct pm_error *err)
{
	for (;;) {
		int at = optind > 0 ? optind : 1;
		int option = getopt_long(argc, argv, short_options, long_options, NULL);
		int ret;

		if (option == -1)
			return 0;
		ret = apply_rec_option(options, seen, option,
				       argv[optind > at ? optind - 1 : at], err);
		if (ret < 0 || options->action == PM_REC_HELP ||
		    options->action == PM_REC_VERSION)
			return ret;
	}
}

int pm_rec_options_parse(struct pm_rec_options *options, int argc, char **argv,
			 struct pm_error *err)
{
	struct seen seen = { 0 };
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
		ret = take_options(options, &seen, argc, argv, err);
		if (ret < 0 || options->action == PM_REC_HELP ||
		    options->action == PM_REC_VERSION)
			return ret;
	} while (take_list_word(options, argv[optind]) && ++optind);
	if (seen.rate && seen.count)
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
