/* SPDX-License-Identifier: MIT */
#include "options-parts.h"

#include <getopt.h>
#include <string.h>

enum {
	OPTION_TREE = 256,
	OPTION_BOTTOM_UP,
	OPTION_CALLERS,
	OPTION_CALLEES,
	OPTION_ANNOTATE,
	OPTION_SOURCE,
	OPTION_ASM,
	OPTION_SOURCE_DIR,
	OPTION_SOURCE_ROOT,
	OPTION_BY,
	OPTION_LATENCY,
	OPTION_THREADS,
	OPTION_FIELDS,
	OPTION_PERCENTILE,
	OPTION_BRANCHES,
	OPTION_CHILDREN,
	OPTION_EVENT,
	OPTION_COMM,
	OPTION_PID,
	OPTION_TID,
	OPTION_MODULE,
	OPTION_SYMBOL,
	OPTION_TIME,
	OPTION_LIMIT,
	OPTION_FOLDED,
	OPTION_JSON,
	OPTION_TUI,
	OPTION_HTML,
	OPTION_FLAMEGRAPH,
	OPTION_DIFF,
	OPTION_FORMAT,
	OPTION_COLOR,
	OPTION_WIDTH,
	OPTION_NO_INLINE,
	OPTION_SYMFS,
	OPTION_DEBUG_DIR,
	OPTION_DEBUGINFOD,
	OPTION_NO_RESYMBOLIZE,
	OPTION_FOLLOW,
	OPTION_INTERVAL,
	OPTION_IGNORED,
	OPTION_VERSION,
};

static const char default_input[] = "samples.json";

/* Letters that perf report uses have the same meaning here; --stdio and the like are the
 * default. */
static const char short_options[] = ":i:o:s:S:c:d:x:qh";
static const struct option long_options[] = {
	{ "tree", no_argument, NULL, OPTION_TREE },
	{ "bottom-up", no_argument, NULL, OPTION_BOTTOM_UP },
	{ "callers", required_argument, NULL, OPTION_CALLERS },
	{ "callees", required_argument, NULL, OPTION_CALLEES },
	{ "annotate", required_argument, NULL, OPTION_ANNOTATE },
	{ "source", no_argument, NULL, OPTION_SOURCE },
	{ "asm", no_argument, NULL, OPTION_ASM },
	{ "source-dir", required_argument, NULL, OPTION_SOURCE_DIR },
	{ "source-root", required_argument, NULL, OPTION_SOURCE_ROOT },
	{ "by", required_argument, NULL, OPTION_BY },
	{ "sort", required_argument, NULL, OPTION_BY },
	{ "threads", no_argument, NULL, OPTION_THREADS },
	{ "fields", no_argument, NULL, OPTION_FIELDS },
	{ "percentile", required_argument, NULL, OPTION_PERCENTILE },
	{ "branches", no_argument, NULL, OPTION_BRANCHES },
	{ "latency", no_argument, NULL, OPTION_LATENCY },
	{ "children", no_argument, NULL, OPTION_CHILDREN },
	{ "event", required_argument, NULL, OPTION_EVENT },
	{ "comm", required_argument, NULL, OPTION_COMM },
	{ "pid", required_argument, NULL, OPTION_PID },
	{ "tid", required_argument, NULL, OPTION_TID },
	{ "module", required_argument, NULL, OPTION_MODULE },
	{ "symbol", required_argument, NULL, OPTION_SYMBOL },
	{ "time", required_argument, NULL, OPTION_TIME },
	{ "limit", required_argument, NULL, OPTION_LIMIT },
	{ "folded", optional_argument, NULL, OPTION_FOLDED },
	{ "tui", no_argument, NULL, OPTION_TUI },
	{ "json", no_argument, NULL, OPTION_JSON },
	{ "html", required_argument, NULL, OPTION_HTML },
	{ "flamegraph", required_argument, NULL, OPTION_FLAMEGRAPH },
	{ "diff", required_argument, NULL, OPTION_DIFF },
	{ "format", required_argument, NULL, OPTION_FORMAT },
	{ "field-separator", required_argument, NULL, 'x' },
	{ "color", required_argument, NULL, OPTION_COLOR },
	{ "width", required_argument, NULL, OPTION_WIDTH },
	{ "no-inline", no_argument, NULL, OPTION_NO_INLINE },
	{ "symfs", required_argument, NULL, OPTION_SYMFS },
	{ "debug-dir", required_argument, NULL, OPTION_DEBUG_DIR },
	{ "debuginfod", optional_argument, NULL, OPTION_DEBUGINFOD },
	{ "no-resymbolize", no_argument, NULL, OPTION_NO_RESYMBOLIZE },
	{ "follow", no_argument, NULL, OPTION_FOLLOW },
	{ "interval", required_argument, NULL, OPTION_INTERVAL },
	{ "input", required_argument, NULL, 'i' },
	{ "output", required_argument, NULL, 'o' },
	{ "quiet", no_argument, NULL, 'q' },
	{ "help", no_argument, NULL, 'h' },
	{ "version", no_argument, NULL, OPTION_VERSION },
	/* perf's names for the same */
	{ "comms", required_argument, NULL, OPTION_COMM },
	{ "dsos", required_argument, NULL, OPTION_MODULE },
	{ "symbols", required_argument, NULL, OPTION_SYMBOL },
	{ "percent-limit", required_argument, NULL, OPTION_LIMIT },
	{ "no-children", no_argument, NULL, OPTION_IGNORED },
	{ "inline", no_argument, NULL, OPTION_IGNORED },
	{ "stdio", no_argument, NULL, OPTION_IGNORED },
	{ NULL, 0, NULL, 0 },
};

static int set_show(struct pm_report_options *options, enum pm_report_show show,
		    const char *function, struct pm_error *err)
{
	if (options->report.show != PM_SHOW_TABLE && options->report.show != show)
		return pm_report_usage(
			err, "of --tree, --bottom-up, --callers, --callees, --annotate, "
			     "--threads, --fields, --percentile and --branches only one "
			     "at a time");
	options->report.show = show;
	options->report.function = function;
	return 0;
}

static int set_keys(struct pm_report_options *options, const char *value,
		    struct pm_error *err)
{
	struct pm_keys keys;
	int ret = pm_report_parse_keys(value, &keys, err);

	if (ret < 0)
		return ret;
	options->report.by_key = true;
	options->report.key = keys.key[0];
	options->report.more_keys_len = keys.len - 1;
	memcpy(options->report.more_keys, keys.key + 1,
	       sizeof(options->report.more_keys));
	return 0;
}

static int set_percentile(struct pm_report_options *options, const char *value,
			  struct pm_error *err)
{
	int ret = set_show(options, PM_SHOW_PERCENTILES, NULL, err);

	if (ret < 0)
		return ret;
	return pm_report_parse_percentile(value, options, err);
}

static int set_annotate(struct pm_report_options *options, enum pm_annotate_show show,
			struct pm_error *err)
{
	if (options->annotate_set && options->report.annotate != show)
		return pm_report_usage(err, "either --source or --asm; without them both "
					    "are shown");
	options->annotate_set = true;
	options->report.annotate = show;
	return 0;
}

static int add_source_dir(struct pm_report_options *options, const char *rule,
			  struct pm_error *err)
{
	if (rule[0] == '\0' || rule[strlen(rule) - 1] == '=')
		return pm_report_usage(err, "'%s' names no folder with sources", rule);
	if (options->report.search.source_dirs_len == PM_ARRAY_LEN(options->source_dirs))
		return pm_report_usage(err, "at most %zu folders with sources",
				       PM_ARRAY_LEN(options->source_dirs));
	options->source_dirs[options->report.search.source_dirs_len++] = rule;
	return 0;
}

static int add_source_root(struct pm_report_options *options, const char *folder,
			   struct pm_error *err)
{
	if (folder[0] == '\0')
		return pm_report_usage(err, "'' names no folder with sources");
	if (options->report.search.source_roots_len ==
	    PM_ARRAY_LEN(options->source_roots))
		return pm_report_usage(err, "at most %zu folders with sources",
				       PM_ARRAY_LEN(options->source_roots));
	options->source_roots[options->report.search.source_roots_len++] = folder;
	return 0;
}

static int set_report_format(struct pm_report_options *options, const char *name,
			     struct pm_error *err)
{
	const struct pm_report_format *format = pm_report_format_find(name, err);

	if (!format)
		return -EINVAL;
	if (options->format && options->format != format)
		return pm_report_usage(err, "either %s or %s, one format at a time",
				       options->format->name, format->name);
	options->format = format;
	return 0;
}

/* `--html FILE` is `--format html -o FILE`. */
static int set_format_file(struct pm_report_options *options, const char *format,
			   const char *file, struct pm_error *err)
{
	if (options->output && strcmp(options->output, file) != 0)
		return pm_report_usage(err, "two files to write: '%s' and '%s'",
				       options->output, file);
	options->output = file;
	options->output_named = true;
	return set_report_format(options, format, err);
}

static int set_output(struct pm_report_options *options, const char *file,
		      struct pm_error *err)
{
	if (options->output_named && strcmp(options->output, file) != 0)
		return pm_report_usage(err, "two files to write: '%s' and '%s'",
				       options->output, file);
	options->output = file;
	return 0;
}

static int set_folded(struct pm_report_options *options, const char *count,
		      struct pm_error *err)
{
	if (count && strcmp(count, "period") != 0 && strcmp(count, "samples") != 0)
		return pm_report_usage(err, "--folded counts samples or period, not '%s'",
				       count);
	options->folded_periods = count && strcmp(count, "period") == 0;
	return set_report_format(options, "folded", err);
}

static int set_separator(struct pm_report_options *options, const char *separator,
			 struct pm_error *err)
{
	int ret = pm_parse_separator(&options->separator, separator, "pmreport", err);

	if (ret < 0)
		return ret;
	return set_report_format(options, "csv", err);
}

/* ---- options ------------------------------------------------------------------------------ */

static int apply_report_option(struct pm_report_options *options, int option,
			       const char *value, struct pm_error *err)
{
	switch (option) {
	case OPTION_TREE:
		return set_show(options, PM_SHOW_TREE, NULL, err);
	case OPTION_BOTTOM_UP:
		return set_show(options, PM_SHOW_BOTTOM_UP, NULL, err);
	case OPTION_CALLERS:
		return set_show(options, PM_SHOW_CALLERS, value, err);
	case OPTION_CALLEES:
		return set_show(options, PM_SHOW_CALLEES, value, err);
	case OPTION_ANNOTATE:
		return set_show(options, PM_SHOW_ANNOTATE, value, err);
	case OPTION_SOURCE:
		return set_annotate(options, PM_ANNOTATE_SOURCE, err);
	case OPTION_ASM:
		return set_annotate(options, PM_ANNOTATE_CODE, err);
	case OPTION_SOURCE_DIR:
		return add_source_dir(options, value, err);
	case OPTION_SOURCE_ROOT:
		return add_source_root(options, value, err);
	case OPTION_BY:
	case 's':
		return set_keys(options, value, err);
	case OPTION_THREADS:
		return set_show(options, PM_SHOW_THREADS, NULL, err);
	case OPTION_FIELDS:
		return set_show(options, PM_SHOW_FIELDS, NULL, err);
	case OPTION_BRANCHES:
		return set_show(options, PM_SHOW_BRANCHES, NULL, err);
	case OPTION_PERCENTILE:
		return set_percentile(options, value, err);
	case OPTION_LATENCY:
		options->profile.latency = true;
		return 0;
	case OPTION_CHILDREN:
		options->report.by_total = true;
		return 0;
	case OPTION_EVENT:
		options->event = value;
		return 0;
	case OPTION_COMM:
	case 'c':
		options->filter.comm = value;
		return 0;
	case OPTION_PID:
		options->filter.pid = value;
		return 0;
	case OPTION_TID:
		options->filter.tid = value;
		return 0;
	case OPTION_MODULE:
	case 'd':
		options->filter.module = value;
		return 0;
	case OPTION_SYMBOL:
	case 'S':
		options->filter.symbol = value;
		return 0;
	case OPTION_TIME:
		options->report.time = value;
		return pm_report_parse_time(value, &options->profile, err);
	case OPTION_LIMIT:
		return pm_report_parse_limit(value, &options->report.limit, err);
	case OPTION_FOLDED:
		return set_folded(options, value, err);
	case OPTION_TUI:
		options->tui = true;
		return 0;
	case OPTION_JSON:
		return set_report_format(options, "json", err);
	case OPTION_HTML:
		return set_format_file(options, "html", value, err);
	case OPTION_FLAMEGRAPH:
		return set_format_file(options, "flamegraph", value, err);
	case OPTION_DIFF:
		options->diff = value;
		return 0;
	case OPTION_FORMAT:
		return set_report_format(options, value, err);
	case 'x':
		return set_separator(options, value, err);
	case OPTION_COLOR:
		return pm_parse_color(&options->color, value, "pmreport", err);
	case OPTION_WIDTH:
		return pm_report_parse_width(value, options, err);
	case OPTION_NO_INLINE:
		options->profile.no_inlines = true;
		return 0;
	case OPTION_SYMFS:
		options->symbols.symfs = value;
		return 0;
	case OPTION_DEBUG_DIR:
		options->symbols.debug_dir = value;
		return 0;
	case OPTION_DEBUGINFOD:
		return pm_report_parse_debuginfod(
			value, &options->symbols.debuginfod_seconds, err);
	case OPTION_NO_RESYMBOLIZE:
		options->symbols.off = true;
		return 0;
	case OPTION_FOLLOW:
		options->follow = true;
		return 0;
	case OPTION_INTERVAL:
		return pm_report_parse_interval(value, &options->interval, err);
	case 'i':
		options->input = value;
		return 0;
	case 'o':
		return set_output(options, value, err);
	case 'q':
		options->report.quiet = true;
		return 0;
	case 'h':
		options->help = true;
		return 0;
	case OPTION_VERSION:
		options->version = true;
		return 0;
	default: /* OPTION_IGNORED */
		return 0;
	}
}

/* Chooses which properties of single samples are kept. */
static void choose_samples(struct pm_report_options *options)
{
	struct pm_profile_options *profile = &options->profile;
	enum pm_report_show show = options->report.show;

	profile->keep_fields |= show == PM_SHOW_FIELDS || show == PM_SHOW_PERCENTILES;
	profile->keep_branches = show == PM_SHOW_BRANCHES;
	profile->keep_samples = options->format->samples || profile->latency ||
				profile->keep_fields || show == PM_SHOW_THREADS;
	/* Addresses cannot be compared with those of another build. */
	profile->no_starts = options->diff != NULL;
	for (uint32_t i = 0; i <= options->report.more_keys_len; i++) {
		enum pm_key key =
			i == 0 ? options->report.key : options->report.more_keys[i - 1];

		profile->parallelism |= key == PM_KEY_PARALLELISM;
		profile->keep_samples |= key == PM_KEY_PARALLELISM || key == PM_KEY_CPU;
	}
}

/* --tui excludes formats and files: it has its own format and writes to a terminal. */
static int check_tui(const struct pm_report_options *options, struct pm_error *err)
{
	if (!options->tui)
		return 0;
	if (options->format)
		return pm_report_usage(err, "--tui or %s, one at a time",
				       options->format->name);
	if (options->output)
		return pm_report_usage(err, "--tui writes no file; P in it does");
	if (options->report.more_keys_len > 0)
		return pm_report_usage(err, "--tui has tables by one key each");
	if (options->report.show >= PM_SHOW_THREADS)
		return pm_report_usage(err, "--tui has no --threads, --fields, "
					    "--percentile and --branches");
	return 0;
}

static int check_diff(const struct pm_report_options *options, struct pm_error *err)
{
	if (!options->diff)
		return 0;
	if (!options->format || !options->format->compares) {
		int ret = pm_report_usage(
			err,
			"--diff goes with --html and --flamegraph, not with "
			"%s",
			options->format ? options->format->name : "text");

		if (!options->format)
			pm_error_fix(err, "pmdiff %s %s", options->diff, options->input);
		return ret;
	}
	if (strcmp(options->diff, "-") == 0 && strcmp(options->input, "-") == 0)
		return pm_report_usage(err, "standard input is one file only");
	return 0;
}

/* Options for sources of names contradict --no-resymbolize. */
static int check_symbols(struct pm_report_options *options, struct pm_error *err)
{
	struct pm_resymbolize_options *symbols = &options->symbols;

	symbols->quiet = options->report.quiet;
	symbols->live = options->follow;
	if (symbols->off &&
	    (symbols->symfs || symbols->debug_dir || symbols->debuginfod_seconds > 0))
		return pm_report_usage(err,
				       "--no-resymbolize finds no names: it goes without "
				       "--symfs, --debug-dir and --debuginfod");
	return 0;
}

/* A repeated report is text to be read. Following keeps no single samples. */
static int check_follow(struct pm_report_options *options, struct pm_error *err)
{
	if (!options->follow) {
		if (options->interval > 0)
			return pm_report_usage(err, "--interval is for --follow");
		return 0;
	}
	if (options->interval <= 0)
		options->interval = 1;
	if (options->tui)
		return pm_report_usage(err, "--follow writes text, not --tui");
	if (strcmp(options->format->name, "text") != 0)
		return pm_report_usage(err, "--follow writes text, not %s",
				       options->format->name);
	if (options->output)
		return pm_report_usage(err, "--follow writes to no file");
	if (options->profile.time_set || options->profile.keep_samples)
		return pm_report_usage(
			err, "--follow keeps sums, not samples: it goes without "
			     "--time, --latency, --threads, --fields, --percentile, and "
			     "--by cpu or parallelism");
	return 0;
}

/* Checks combinations of options. */
static int check_option_combinations(struct pm_report_options *options,
				     struct pm_error *err)
{
	int ret = check_tui(options, err);

	if (ret == 0)
		ret = check_diff(options, err);
	if (ret < 0)
		return ret;
	if (!options->format)
		options->format = pm_report_format_find("text", NULL);
	if (!options->format->shows && options->report.show != PM_SHOW_TABLE &&
	    !(options->format->inverts && options->report.show == PM_SHOW_BOTTOM_UP))
		return pm_report_usage(
			err,
			"--format %s has whole stacks: it goes with no tree and no list",
			options->format->name);
	choose_samples(options);
	if (options->report.show == PM_SHOW_BRANCHES && options->profile.time_set)
		return pm_report_usage(err, "--branches are of the whole recording: "
					    "without --time");
	if ((options->report.show == PM_SHOW_CALLERS ||
	     options->report.show == PM_SHOW_CALLEES ||
	     options->report.show == PM_SHOW_ANNOTATE) &&
	    options->report.function[0] == '\0')
		return pm_report_usage(err, "the name of the function is empty");
	if (options->annotate_set && options->report.show != PM_SHOW_ANNOTATE)
		return pm_report_usage(err, "--source and --asm go with --annotate");
	ret = check_symbols(options, err);
	if (ret < 0)
		return ret;
	return check_follow(options, err);
}

int pm_report_options_parse(struct pm_report_options *out, int argc, char **argv,
			    struct pm_error *err)
{
	struct pm_report_options options = {
		.report = { .event = PM_PROFILE_NONE, .limit = PM_LIMIT_DEFAULT },
		.separator = ",",
	};
	int option, ret = 0;

	opterr = 0;
	optind = 1;
	for (;;) {
		/* Index of the current word, for messages: getopt() moves operands. */
		int at = optind;

		option = getopt_long(argc, argv, short_options, long_options, NULL);
		if (option == -1)
			break;
		if (option == '?' || option == ':')
			return pm_usage_option(err, "pmreport", long_options, option,
					       argv[optind > at ? optind - 1 : at]);
		ret = apply_report_option(&options, option, optarg, err);
		if (ret < 0)
			return ret;
	}
	if (optind + 1 < argc)
		return pm_report_usage(err, "one file at a time: '%s' is too many",
				       argv[optind + 1]);
	if (optind < argc && options.input)
		return pm_report_usage(err, "two files: '%s' and -i '%s'", argv[optind],
				       options.input);
	if (optind < argc)
		options.input = argv[optind];
	if (options.input && strcmp(options.input, default_input) != 0)
		options.report.file = options.input;
	if (!options.input)
		options.input = default_input;
	ret = check_option_combinations(&options, err);
	if (ret < 0)
		return ret;
	*out = options;
	out->report.search.source_dirs = out->source_dirs;
	out->report.search.source_roots = out->source_roots;
	out->report.search.symfs = out->symbols.symfs;
	out->report.search.debug_dir = out->symbols.debug_dir;
	return 0;
}
