/* SPDX-License-Identifier: MIT */
#include "options.h"

#include <getopt.h>
#include <string.h>

enum {
	DEFAULT_HZ = 999, /* not 1000: never in step with a timer of the target */
	/* With stitching, more stacks reach the root than 65528 bytes do without: see the
	 * table of docs/how-it-works.md. */
	DEFAULT_STACK_BYTES = 40960,
	NEAR_ENOUGH = 2, /* edits between a wrong name and one worth proposing */
	STACK_BYTES_STEP = 8, /* perf_event_open(2): sample_stack_user is a multiple */
	OPTION_CALL_GRAPH = 256,
	OPTION_STACK_BYTES,
	OPTION_NO_STITCH,
	OPTION_NO_SYMBOLS,
	OPTION_RAW,
	OPTION_ENGINE,
	OPTION_STACKS,
	OPTION_UNWINDER,
	OPTION_VERIFY,
	OPTION_HELP,
	OPTION_VERSION,
};

static const char default_event[] = "cycles";
static const char default_output[] = "samples.json";

static const char short_options[] = "+:e:F:c:gm:o:p:qt:vh";
static const struct option long_options[] = {
	{ "event", required_argument, NULL, 'e' },
	{ "freq", required_argument, NULL, 'F' },
	{ "count", required_argument, NULL, 'c' },
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
	{ "quiet", no_argument, NULL, 'q' },
	{ "verbose", no_argument, NULL, 'v' },
	{ "no-symbols", no_argument, NULL, OPTION_NO_SYMBOLS },
	{ "help", no_argument, NULL, 'h' },
	{ "version", no_argument, NULL, OPTION_VERSION },
	{ NULL, 0, NULL, 0 },
};

static const char help[] =
	"usage: pmrec [options] [--] COMMAND [ARGUMENT…]\n"
	"\n"
	"Runs COMMAND, samples it with everything that it starts, and writes the samples\n"
	"with complete call stacks, function names and lines to samples.json.\n"
	"\n"
	"What to sample\n"
	"  -e, --event EVENT[,…]     event to sample on, repeatable; `:u` user space\n"
	"                            only, `:k` kernel only (default: cycles)\n"
	"  -F, --freq HZ|max         samples a second and CPU (default: 999)\n"
	"  -c, --count N             instead: one sample every N events\n"
	"\n"
	"Call stacks\n"
	"  -g                        record call stacks (this is the default)\n"
	"      --call-graph HOW      dwarf[,BYTES]: by unwind tables (default)\n"
	"                            fp: by frame pointers; none: no call stacks\n"
	"      --stack-bytes N       bytes of stack to look at in a sample, up to 65528\n"
	"                            (default: 40960)\n"
	"      --no-stitch           leave a stack that is deeper without its callers,\n"
	"                            even if earlier samples tell them\n"
	"\n"
	"Output\n"
	"  -o, --output FILE|-       file to write (default: samples.json); a name that\n"
	"                            ends in .zst is compressed; `-` is standard output\n"
	"      --raw FILE            also keep registers and copied stacks, with all that\n"
	"                            is needed to unwind them again (tens of KB a sample)\n"
	"      --no-symbols          leave addresses as they are\n"
	"  -q, --quiet               print errors only\n"
	"  -v, --verbose             print what was opened and what it cost\n"
	"\n"
	"Without perf_event_open\n"
	"      --engine HOW          perf: the kernel's sampling (default); ptrace: stop\n"
	"                            running threads 99 times a second (-F up to 1000);\n"
	"                            auto: ptrace where perf is denied\n"
	"      --verify              with --engine ptrace and --stacks: ask libunwind,\n"
	"                            too, and tell where it finds other callers\n"
	"\n"
	"Stacks of a running process, once: pmrec --stacks -p PID\n"
	"      --stacks              print the stack of each thread, and record nothing\n"
	"  -p, --pid PID             of this process\n"
	"  -t, --tid TID             of this thread only\n"
	"      --unwinder WHICH      own (default) or libunwind\n"
	"\n"
	"  -m, --mmap-pages PAGES    size of each CPU's buffer, a power of two; with\n"
	"                            K, M or G in bytes\n"
	"  -h, --help, --version\n"
	"\n"
	"The exit status is that of COMMAND: its own, 128+N when signal N ended it, 127\n"
	"when it was not found, 126 when it could not be run; 125 when pmrec itself\n"
	"failed.\n"
	"\n"
	"Next: pmreport samples.json\n"
	"\n"
	"Events:\n";

static int usage(struct pm_error *err)
{
	pm_error_fix(err, "pmrec --help");
	return -EINVAL;
}

static const char *nearest_option(const char *name, size_t len)
{
	const char *best = NULL;
	size_t best_distance = NEAR_ENOUGH + 1;
	char wrong[64];

	snprintf(wrong, sizeof(wrong), "%.*s", (int)(len < 63 ? len : 63), name);
	for (const struct option *option = long_options; option->name; option++) {
		size_t distance = pm_name_distance(wrong, option->name);

		if (distance < best_distance) {
			best = option->name;
			best_distance = distance;
		}
	}
	return best;
}

static int unknown_option(char **argv, struct pm_error *err)
{
	const char *word = optopt ? "" : argv[optind - 1];
	size_t len = strcspn(word, "=");
	const char *near = len > 2 ? nearest_option(word + 2, len - 2) : NULL;

	if (optopt == 'a')
		pm_error_set(err, -EINVAL,
			     "unknown option -%c: pmrec records a command that it "
			     "starts, not the whole system yet",
			     optopt);
	else if (optopt > 0 && optopt < 256)
		pm_error_set(err, -EINVAL, "unknown option -%c", optopt);
	else if (optopt) /* a long one that takes no value was given one */
		pm_error_set(err, -EINVAL, "%s: this option takes no value",
			     argv[optind - 1]);
	else if (near)
		pm_error_set(err, -EINVAL, "unknown option %.*s; did you mean --%s?",
			     (int)len, word, near);
	else
		pm_error_set(err, -EINVAL, "unknown option %.*s", (int)len, word);
	return usage(err);
}

static int parse_rate(struct pm_rec_options *options, const char *text, bool by_frequency,
		      struct pm_error *err)
{
	uint64_t rate;

	if (by_frequency && strcmp(text, "max") == 0) {
		rate = UINT64_MAX;
	} else if (!pm_parse_u64(text, &rate) || rate == 0 || rate > INT64_MAX) {
		if (by_frequency)
			pm_error_set(err, -EINVAL,
				     "-F %s: expected samples a second, as 999, or max",
				     text);
		else
			pm_error_set(err, -EINVAL,
				     "-c %s: expected a number of events, as 1000000",
				     text);
		return usage(err);
	}
	options->by_frequency = by_frequency;
	options->rate = rate;
	return 0;
}

static int parse_stack_bytes(struct pm_rec_options *options, const char *option,
			     const char *text, struct pm_error *err)
{
	uint64_t bytes;

	if (!pm_parse_u64(text, &bytes) || bytes == 0 || bytes > PM_STACK_BYTES_MAX) {
		pm_error_set(err, -EINVAL, "%s %s: expected a number of bytes, 8 to %u",
			     option, text, PM_STACK_BYTES_MAX);
		return usage(err);
	}
	options->stack_bytes_given = true;
	options->stack_bytes = (uint32_t)((bytes + STACK_BYTES_STEP - 1) /
					  STACK_BYTES_STEP * STACK_BYTES_STEP);
	return 0;
}

static int parse_call_graph(struct pm_rec_options *options, const char *text,
			    struct pm_error *err)
{
	if (strcmp(text, "dwarf") == 0) {
		options->call_graph = PM_CALL_GRAPH_DWARF;
	} else if (strncmp(text, "dwarf,", 6) == 0) {
		options->call_graph = PM_CALL_GRAPH_DWARF;
		return parse_stack_bytes(options, "--call-graph dwarf,", text + 6, err);
	} else if (strcmp(text, "fp") == 0) {
		options->call_graph = PM_CALL_GRAPH_FP;
	} else if (strcmp(text, "none") == 0 || strcmp(text, "no") == 0) {
		options->call_graph = PM_CALL_GRAPH_NONE;
	} else {
		pm_error_set(err, -EINVAL,
			     "--call-graph %s: expected dwarf, dwarf,BYTES, fp or none",
			     text);
		return usage(err);
	}
	return 0;
}

/* As perf: a bare number counts pages, one with a unit counts bytes. */
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
	if (!valid || pages > UINT32_MAX || (pages & (pages - 1)) != 0) {
		pm_error_set(err, -EINVAL,
			     "-m %s: expected a number of pages that is a power of two, "
			     "as 512, or of bytes, as 2M",
			     text);
		return usage(err);
	}
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
	pm_error_set(err, -EINVAL, "--engine %s: expected perf, ptrace or auto", text);
	return usage(err);
}

static int parse_unwinder(struct pm_rec_options *options, const char *text,
			  struct pm_error *err)
{
	options->libunwind = strcmp(text, "libunwind") == 0;
	if (options->libunwind || strcmp(text, "own") == 0)
		return 0;
	pm_error_set(err, -EINVAL, "--unwinder %s: expected own or libunwind", text);
	return usage(err);
}

static int parse_pid(pid_t *ret, char option, const char *text, struct pm_error *err)
{
	uint64_t pid;

	if (!pm_parse_u64(text, &pid) || pid == 0 || pid > INT32_MAX) {
		pm_error_set(err, -EINVAL, "-%c %s: expected the number of a %s", option,
			     text, option == 'p' ? "process" : "thread");
		return usage(err);
	}
	*ret = (pid_t)pid;
	return 0;
}

struct seen {
	bool rate, count;
};

static int apply(struct pm_rec_options *options, struct seen *seen, int option,
		 char **argv, struct pm_error *err)
{
	switch (option) {
	case 'e':
		options->event_given = true;
		return pm_event_specs_parse(optarg, &options->specs, err);
	case 'F':
		seen->rate = options->rate_given = true;
		return parse_rate(options, optarg, true, err);
	case 'c':
		seen->count = true;
		return parse_rate(options, optarg, false, err);
	case 'g':
		return 0;
	case OPTION_CALL_GRAPH:
		return parse_call_graph(options, optarg, err);
	case OPTION_STACK_BYTES:
		return parse_stack_bytes(options, "--stack-bytes", optarg, err);
	case OPTION_ENGINE:
		return parse_engine(options, optarg, err);
	case OPTION_STACKS:
		options->action = PM_REC_STACKS;
		return 0;
	case OPTION_UNWINDER:
		return parse_unwinder(options, optarg, err);
	case OPTION_VERIFY:
		options->verify = true;
		return 0;
	case 'p':
		return parse_pid(&options->pid, 'p', optarg, err);
	case 't':
		return parse_pid(&options->tid, 't', optarg, err);
	case 'm':
		return parse_ring_pages(options, optarg, err);
	case 'o':
		options->output = optarg;
		return 0;
	case 'q':
		options->quiet = true;
		return 0;
	case 'v':
		options->verbose = true;
		return 0;
	case OPTION_RAW:
		options->raw = optarg;
		return 0;
	case OPTION_NO_STITCH:
		options->stitch = false;
		return 0;
	case OPTION_NO_SYMBOLS:
		options->symbols = false;
		return 0;
	case 'h':
		options->action = PM_REC_HELP;
		return 0;
	case OPTION_VERSION:
		options->action = PM_REC_VERSION;
		return 0;
	case ':':
		pm_error_set(err, -EINVAL, "%s: this option needs a value",
			     argv[optind - 1]);
		return usage(err);
	default:
		return unknown_option(argv, err);
	}
}

static int check_raw(const struct pm_rec_options *options, struct pm_error *err)
{
	const char *wrong = NULL;

	if (!options->raw)
		return 0;
	if (options->raw[0] == '\0')
		wrong = "--raw: the file needs a name";
	else if (strcmp(options->raw, options->output) == 0)
		wrong = "--raw and -o cannot be the same file";
	else if (options->call_graph != PM_CALL_GRAPH_DWARF)
		wrong = "--raw keeps copied stacks, which only --call-graph dwarf has";
	if (!wrong)
		return 0;
	pm_error_set(err, -EINVAL, "%s", wrong);
	return usage(err);
}

static int check_stacks(const struct pm_rec_options *options, char *const *rest,
			struct pm_error *err)
{
	if (rest[0])
		pm_error_set(err, -EINVAL,
			     "--stacks looks at a running process and runs no command");
	else if (options->pid == 0)
		pm_error_set(err, -EINVAL, "--stacks: of which process?");
	else
		return 0;
	pm_error_fix(err, "pmrec --stacks -p PID");
	return -EINVAL;
}

/* What only another engine or action has. */
static int check_engine(const struct pm_rec_options *options, struct pm_error *err)
{
	bool ptrace = options->engine == PM_REC_ENGINE_PTRACE;
	const char *wrong = NULL;

	if (options->pid || options->tid)
		wrong = "-p and -t belong to --stacks: pmrec records a command that it "
			"starts, not running processes yet";
	else if (options->libunwind)
		wrong = "--unwinder libunwind belongs to --stacks";
	else if (options->verify && !ptrace)
		wrong = "--verify belongs to --engine ptrace and to --stacks";
	else if (ptrace && !options->by_frequency)
		wrong = "-c: --engine ptrace samples by time; use -F";
	else if (ptrace && options->call_graph == PM_CALL_GRAPH_FP)
		wrong = "--call-graph fp is the kernel's; --engine ptrace has dwarf and "
			"none";
	else if (ptrace && options->ring_pages > 0)
		wrong = "-m: --engine ptrace has no buffers";
	if (!wrong)
		return 0;
	pm_error_set(err, -EINVAL, "%s", wrong);
	return usage(err);
}

int pm_rec_options_parse(struct pm_rec_options *options, int argc, char **argv,
			 struct pm_error *err)
{
	struct seen seen = { 0 };
	int option;
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
	while ((option = getopt_long(argc, argv, short_options, long_options, NULL)) !=
	       -1) {
		ret = apply(options, &seen, option, argv, err);
		if (ret < 0)
			return ret;
		if (options->action == PM_REC_HELP || options->action == PM_REC_VERSION)
			return 0;
	}
	if (options->action == PM_REC_STACKS)
		return check_stacks(options, argv + optind, err);
	ret = check_engine(options, err);
	if (ret < 0)
		return ret;
	if (seen.rate && seen.count) {
		pm_error_set(err, -EINVAL, "-F and -c exclude each other");
		return usage(err);
	}
	if (options->output[0] == '\0') {
		pm_error_set(err, -EINVAL, "-o: the file needs a name");
		return usage(err);
	}
	ret = check_raw(options, err);
	if (ret < 0)
		return ret;
	options->command = argv + optind;
	if (optind >= argc || argv[optind][0] == '\0') {
		pm_error_set(err, -EINVAL, "no command to record");
		pm_error_fix(err, "pmrec -- COMMAND, or pmrec --help");
		return -EINVAL;
	}
	return options->specs.list.len > 0
		       ? 0
		       : pm_event_specs_parse(default_event, &options->specs, err);
}

void pm_rec_options_release(struct pm_rec_options *options)
{
	pm_event_specs_release(&options->specs);
}

void pm_rec_options_help(void)
{
	const char *const *names = pm_event_names();
	size_t column = 0;

	fputs(help, stdout);
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
