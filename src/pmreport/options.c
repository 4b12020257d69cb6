/* SPDX-License-Identifier: MIT */
#include "options.h"

#include <string.h>

enum {
	WIDTH_MIN = 40,
	WIDTH_MAX = 100000,
	/* Default limit for one file: the debug information of a browser takes that
	 * long. */
	DEBUGINFOD_SECONDS = 60,
	DEBUGINFOD_SECONDS_MAX = 24 * 3600,
};

static const char default_input[] = "samples.json";

/* ---- what to show ------------------------------------------------------------------------- */

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

/* Selects the report; the option's `value` is a pm_report_show, its argument the
 * function. */
static int report_set_show(void *to, const struct pm_option_use *use,
			   struct pm_error *err)
{
	return set_show(to, use->option->value, use->text, err);
}

static bool parse_report_key(const char *word, size_t len, enum pm_key *out)
{
	static const struct {
		const char *name;
		enum pm_key key;
	} keys[] = {
		{ "function", PM_KEY_FUNCTION },
		{ "module", PM_KEY_MODULE },
		{ "thread", PM_KEY_THREAD },
		{ "process", PM_KEY_PROCESS },
		{ "line", PM_KEY_LINE },
		{ "address", PM_KEY_ADDRESS },
		{ "comm", PM_KEY_COMM },
		{ "cpu", PM_KEY_CPU },
		{ "parallelism", PM_KEY_PARALLELISM },
		/* the names in perf */
		{ "symbol", PM_KEY_FUNCTION },
		{ "sym", PM_KEY_FUNCTION },
		{ "dso", PM_KEY_MODULE },
		{ "tid", PM_KEY_THREAD },
		{ "pid", PM_KEY_PROCESS },
		{ "srcline", PM_KEY_LINE },
	};

	for (size_t i = 0; i < PM_ARRAY_LEN(keys); i++) {
		if (strlen(keys[i].name) == len && memcmp(keys[i].name, word, len) == 0) {
			*out = keys[i].key;
			return true;
		}
	}
	return false;
}

static int report_set_keys(void *to, const struct pm_option_use *use,
			   struct pm_error *err)
{
	struct pm_report_options *options = to;
	struct pm_keys keys = { .len = 0 };

	for (const char *word = use->text;; word++) {
		size_t len = strcspn(word, ",");
		enum pm_key key;

		if (!parse_report_key(word, len, &key))
			return pm_report_usage(
				err,
				"cannot make a table by '%.*s': it is function, module, "
				"thread, process, line, address, comm, cpu or "
				"parallelism",
				(int)len, word);
		for (uint32_t i = 0; i < keys.len; i++)
			if (keys.key[i] == key)
				return pm_report_usage(err, "--by has '%.*s' twice",
						       (int)len, word);
		if (keys.len == PM_KEYS_MAX)
			return pm_report_usage(err, "--by takes up to %d words",
					       PM_KEYS_MAX);
		keys.key[keys.len++] = key;
		word += len;
		if (*word == '\0')
			break;
	}
	options->report.by_key = true;
	options->report.key = keys.key[0];
	options->report.more_keys_len = keys.len - 1;
	memcpy(options->report.more_keys, keys.key + 1,
	       sizeof(options->report.more_keys));
	return 0;
}

/* Parses a number from 0 to @max at *@at and advances *@at past it. strtod() would also
 * accept "inf" and hex. */
static bool parse_bounded_number(const char **at, double max, double *out)
{
	size_t len = strspn(*at, "0123456789.");
	char digits[32], *end;

	if (len == 0 || len >= sizeof(digits))
		return false;
	memcpy(digits, *at, len);
	digits[len] = '\0';
	*out = strtod(digits, &end);
	*at += len;
	return *end == '\0' && *out <= max;
}

static int report_set_percentile(void *to, const struct pm_option_use *use,
				 struct pm_error *err)
{
	struct pm_report_options *options = to;
	static const double usual[] = { 50, 90, 99 };
	const char *text = use->text;
	size_t len = strcspn(text, ":");
	const char *at = text + len;
	struct pm_report *report = &options->report;
	int ret = set_show(options, PM_SHOW_PERCENTILES, NULL, err);

	if (ret < 0)
		return ret;
	if (len == 0 || len >= sizeof(options->field))
		return pm_report_usage(err, "--percentile has no name of a field: '%s'",
				       text);
	memcpy(options->field, text, len);
	options->field[len] = '\0';
	report->percentiles_len = 0;
	for (size_t i = 0; *at == '\0' && i < PM_ARRAY_LEN(usual); i++)
		report->percentiles[report->percentiles_len++] = usual[i];
	while (*at != '\0') {
		double percent;

		at++; /* the colon, or a comma */
		if (report->percentiles_len == PM_PERCENTILES_MAX)
			return pm_report_usage(err, "up to %d percentiles at a time",
					       PM_PERCENTILES_MAX);
		if (!parse_bounded_number(&at, 100, &percent) ||
		    (*at != ',' && *at != '\0'))
			return pm_report_usage(
				err, "'%s' is no list of percentiles from 0 to 100",
				text + len + 1);
		report->percentiles[report->percentiles_len++] = percent;
	}
	return 0;
}

static int report_set_annotate(void *to, const struct pm_option_use *use,
			       struct pm_error *err)
{
	struct pm_report_options *options = to;
	enum pm_annotate_show show = use->option->value;

	if (options->annotate_set && options->report.annotate != show)
		return pm_report_usage(err, "either --source or --asm; without them both "
					    "are shown");
	options->annotate_set = true;
	options->report.annotate = show;
	return 0;
}

static int report_add_source_dir(void *to, const struct pm_option_use *use,
				 struct pm_error *err)
{
	struct pm_report_options *options = to;
	const char *rule = use->text;

	if (rule[0] == '\0' || rule[strlen(rule) - 1] == '=')
		return pm_report_usage(err, "'%s' names no folder with sources", rule);
	if (options->report.search.source_dirs_len == PM_ARRAY_LEN(options->source_dirs))
		return pm_report_usage(err, "at most %zu folders with sources",
				       PM_ARRAY_LEN(options->source_dirs));
	options->source_dirs[options->report.search.source_dirs_len++] = rule;
	return 0;
}

static int report_add_source_root(void *to, const struct pm_option_use *use,
				  struct pm_error *err)
{
	struct pm_report_options *options = to;
	const char *folder = use->text;

	if (folder[0] == '\0')
		return pm_report_usage(err, "'' names no folder with sources");
	if (options->report.search.source_roots_len ==
	    PM_ARRAY_LEN(options->source_roots))
		return pm_report_usage(err, "at most %zu folders with sources",
				       PM_ARRAY_LEN(options->source_roots));
	options->source_roots[options->report.search.source_roots_len++] = folder;
	return 0;
}

static int report_set_limit(void *to, const struct pm_option_use *use,
			    struct pm_error *err)
{
	struct pm_report_options *options = to;
	const char *at = use->text;
	double limit;

	if (!parse_bounded_number(&at, 100, &limit) ||
	    (*at != '\0' && strcmp(at, "%") != 0))
		return pm_report_usage(err, "'%s' is no percentage from 0 to 100",
				       use->text);
	options->report.limit = limit;
	return 0;
}

/* ---- samples and names -------------------------------------------------------------------- */

static int report_set_time(void *data, const struct pm_option_use *use,
			   struct pm_error *err)
{
	struct pm_report_options *options = data;
	struct pm_profile_options *out = &options->profile;
	const char *text = use->text, *at = text;
	double from = 0, to = 1e12;
	bool from_percent = false, to_percent = false;

	options->report.time = text;
	if (*at != '-') {
		if (!parse_bounded_number(&at, 1e12, &from))
			goto bad;
		from_percent = *at == '%';
		at += from_percent;
	}
	if (*at++ != '-')
		goto bad;
	if (*at != '\0') {
		if (!parse_bounded_number(&at, 1e12, &to))
			goto bad;
		to_percent = *at == '%';
		at += to_percent;
		if (from_percent != to_percent && text[0] != '-')
			goto bad;
	} else if (at == text + 1) {
		goto bad;
	}
	if (*at != '\0' || from > to)
		goto bad;
	out->time_set = true;
	out->time_percent = from_percent || to_percent;
	out->time_from = from;
	out->time_to = to;
	return 0;
bad:
	return pm_report_usage(
		err,
		"'%s' is no range of time: it looks like 1.5-2 (seconds) or 10%%-20%%",
		text);
}

static int report_set_debuginfod(void *to, const struct pm_option_use *use,
				 struct pm_error *err)
{
	struct pm_report_options *options = to;
	const char *text = use->text;
	uint64_t seconds = DEBUGINFOD_SECONDS;

	if (text && (!pm_parse_u64(text, &seconds) || seconds == 0 ||
		     seconds > DEBUGINFOD_SECONDS_MAX))
		return pm_report_usage(err,
				       "--debuginfod takes the seconds for a file, 1 to "
				       "%d, not '%s'",
				       DEBUGINFOD_SECONDS_MAX, text);
	options->symbols.debuginfod_seconds = (unsigned)seconds;
	return 0;
}

/* ---- how to write it ---------------------------------------------------------------------- */

static int report_set_interval(void *to, const struct pm_option_use *use,
			       struct pm_error *err)
{
	struct pm_report_options *options = to;
	const char *at = use->text;
	double seconds;

	if (!parse_bounded_number(&at, 3600, &seconds) || *at != '\0' || seconds < 0.1)
		return pm_report_usage(
			err, "'%s' is no interval: it is 0.1 to 3600 seconds", use->text);
	options->interval = seconds;
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

static int report_set_format(void *to, const struct pm_option_use *use,
			     struct pm_error *err)
{
	return set_report_format(to, use->text, err);
}

static int report_set_json(void *to, const struct pm_option_use *use,
			   struct pm_error *err)
{
	return set_report_format(to, "json", err);
}

static int report_set_output(void *to, const struct pm_option_use *use,
			     struct pm_error *err)
{
	struct pm_report_options *options = to;

	if (options->output_named && strcmp(options->output, use->text) != 0)
		return pm_report_usage(err, "two files to write: '%s' and '%s'",
				       options->output, use->text);
	options->output = use->text;
	return 0;
}

/* `--html FILE` is `--format html -o FILE`: the option is named after the format. */
static int report_set_format_file(void *to, const struct pm_option_use *use,
				  struct pm_error *err)
{
	struct pm_report_options *options = to;

	if (options->output && strcmp(options->output, use->text) != 0)
		return pm_report_usage(err, "two files to write: '%s' and '%s'",
				       options->output, use->text);
	options->output = use->text;
	options->output_named = true;
	return set_report_format(options, use->option->name, err);
}

static int report_set_folded(void *to, const struct pm_option_use *use,
			     struct pm_error *err)
{
	struct pm_report_options *options = to;

	if (use->text && pm_words_find(use->option->words, use->text) < 0)
		return pm_report_usage(err, "--folded counts samples or period, not '%s'",
				       use->text);
	options->folded_periods = use->text && strcmp(use->text, "period") == 0;
	return set_report_format(options, "folded", err);
}

static int report_set_separator(void *to, const struct pm_option_use *use,
				struct pm_error *err)
{
	struct pm_report_options *options = to;
	int ret = pm_parse_separator(&options->separator, use->text, "pmreport", err);

	if (ret < 0)
		return ret;
	return set_report_format(options, "csv", err);
}

static int report_set_width(void *to, const struct pm_option_use *use,
			    struct pm_error *err)
{
	struct pm_report_options *options = to;
	uint64_t width;

	if (!pm_parse_u64(use->text, &width) || width > WIDTH_MAX ||
	    (width > 0 && width < WIDTH_MIN))
		return pm_report_usage(err, "'%s' is no width: it is 0 or from %d up",
				       use->text, WIDTH_MIN);
	options->report.width = (unsigned)width;
	options->width_set = true;
	return 0;
}

/* ---- the table ---------------------------------------------------------------------------- */

#define TO(member) PM_OPTION_TO(struct pm_report_options, member)
#define AT(member) PM_OPTION_AT(struct pm_report_options, member)
#define SHOW(show) .set = report_set_show, .value = show
#define RECORDING  PM_OPTION_FILE, "*.json *.json.zst"

/* Letters that perf report uses have the same meaning here; --stdio and the like are the
 * default. */
static const struct pm_option report_option_rows[] = {
	PM_OPTION_GROUP("What to show"),
	{ "by", 's', "WHAT[,…]",
	  "table by function (default), module, thread, process, line, address, comm, cpu or "
	  "parallelism, or by up to three of them",
	  PM_OPTION_WORD,
	  "function module thread process line address comm cpu parallelism",
	  .set = report_set_keys },
	{ "threads", 0, NULL, "threads: time, first and last seen, activity",
	  SHOW(PM_SHOW_THREADS) },
	{ "fields", 0, NULL, "what tracepoints and probes tell, with examples",
	  SHOW(PM_SHOW_FIELDS) },
	{ "percentile", 0, "FIELD[:50,90,99]",
	  "how its values are spread, also by --by; of period",
	  .set = report_set_percentile },
	{ "branches", 0, NULL, "branches taken and mispredicted (pmrec -b, -j)",
	  SHOW(PM_SHOW_BRANCHES) },
	{ "latency", 0, NULL,
	  "shares of wall-clock time: where it waits for one thread, not where many are busy",
	  TO(profile.latency) },
	{ "tree", 0, NULL, "call tree from the root down", SHOW(PM_SHOW_TREE),
	  .excludes = "bottom-up callers callees annotate" },
	{ "bottom-up", 0, NULL, "from where the time is spent up to the callers",
	  SHOW(PM_SHOW_BOTTOM_UP), .excludes = "callers callees annotate" },
	{ "callers", 0, "F", "who calls F", SHOW(PM_SHOW_CALLERS),
	  .excludes = "callees annotate" },
	{ "callees", 0, "F", "what F calls", SHOW(PM_SHOW_CALLEES),
	  .excludes = "annotate" },
	{ "annotate", 0, "F", "lines and instructions of F", SHOW(PM_SHOW_ANNOTATE) },
	{ "source", 0, NULL, "of these only lines", .excludes = "asm",
	  .set = report_set_annotate, .value = PM_ANNOTATE_SOURCE },
	{ "asm", 0, NULL, "of these only instructions", .set = report_set_annotate,
	  .value = PM_ANNOTATE_CODE },
	{ "source-dir", 0, "DIR", "where sources are now; OLD=NEW for a moved folder",
	  PM_OPTION_FOLDER, .repeatable = true, .set = report_add_source_dir },
	{ "source-root", 0, "DIR", "as root: show sources below DIR in any case",
	  PM_OPTION_FOLDER, .repeatable = true, .set = report_add_source_root },
	{ "children", 0, NULL, "sort tables by total (with callees), not by self",
	  TO(report.by_total) },
	{ "limit", 0, "PCT", "leave out what is below PCT percent (default: 0.5)",
	  .set = report_set_limit },
	{ "no-inline", 0, NULL, "count inlined functions to those that contain them",
	  TO(profile.no_inlines) },

	PM_OPTION_GROUP("Which samples"),
	{ "event", 0, "EVENT", "of this event only; without it each has its section",
	  TO(event) },
	{ "comm", 'c', "NAME[,…]", "of threads with this name", TO(filter.comm) },
	{ "pid", 0, "ID[,…]", "of these processes", TO(filter.pid) },
	{ "tid", 0, "ID[,…]", "of these threads", TO(filter.tid) },
	{ "module", 'd', "NAME[,…]", "taken in code of these files", TO(filter.module) },
	{ "symbol", 'S', "F", "with F anywhere on the stack", TO(filter.symbol) },
	{ "time", 0, "A-B", "from A to B: seconds from the start, or 10%-20%",
	  .set = report_set_time },

	PM_OPTION_GROUP(
		"F is the name of a function, with or without scope and parameters, or an\n"
		"extended regular expression. `!` before F, a NAME or an ID leaves it out.\n"
		"\n"
		"Names that the recording lacks"),
	{ "symfs", 0, "DIR", "look for its files below DIR first", PM_OPTION_FOLDER,
	  TO(symbols.symfs) },
	{ "debug-dir", 0, "DIR", "look for debug files in DIR first", PM_OPTION_FOLDER,
	  TO(symbols.debug_dir) },
	{ "debuginfod", 0, "[=SEC]",
	  "ask the servers of DEBUGINFOD_URLS, at most SEC seconds for a file (default: 60)",
	  .set = report_set_debuginfod },
	{ "no-resymbolize", 0, NULL, "only the names that are in the recording",
	  TO(symbols.off), .excludes = "symfs debug-dir debuginfod" },

	PM_OPTION_GROUP("How to write it"),
	{ "follow", 0, NULL, "while it is recorded, again and again", TO(follow) },
	{ "interval", 0, "SEC", "with --follow: every SEC seconds (default: 1)",
	  .set = report_set_interval },
	{ "tui", 0, NULL, "browse it in the terminal; h lists the keys", TO(tui),
	  .excludes = "json field-separator folded format output" },
	{ "json", 0, NULL, "JSON, everything (schema: man pmreport)",
	  .excludes = "field-separator folded", .set = report_set_json },
	{ "field-separator", 'x', "S", "fields separated by S, a line of names first",
	  .excludes = "folded", .set = report_set_separator },
	{ "folded", 0, "[=period]", "folded stacks for flame graphs, counting samples",
	  PM_OPTION_WORD, "samples period", .set = report_set_folded },
	{ "html", 0, "FILE", "one page to look at in a browser", PM_OPTION_FILE, "*.html",
	  .excludes = "flamegraph output", .set = report_set_format_file },
	{ "flamegraph", 0, "FILE", "flame graph as SVG; --bottom-up turns it",
	  PM_OPTION_FILE, "*.svg", .excludes = "output", .set = report_set_format_file },
	{ "diff", 0, "BASE", "compare with BASE, for those two", RECORDING, TO(diff) },
	{ "format", 0, "NAME",
	  "text, csv, json, folded, html, flamegraph; or pprof, firefox, speedscope, "
	  "callgrind, perf-script",
	  PM_OPTION_WORD,
	  "text csv json folded html flamegraph pprof firefox speedscope callgrind "
	  "perf-script",
	  .set = report_set_format },
	{ "output", 'o', "FILE", "write to FILE", PM_OPTION_FILE,
	  .set = report_set_output },
	{ "color", 0, "WHEN", "auto (default), always or never; see NO_COLOR",
	  PM_OPTION_WORD, "auto always never", .set = pm_color_set, AT(color) },
	{ "width", 0, "COLUMNS", "default: the terminal's, else $COLUMNS; 0: none",
	  .set = report_set_width },
	{ "quiet", 'q', NULL, "data only: no heading, no hints", TO(report.quiet) },
	{ "input", 'i', "FILE", "the same as FILE", RECORDING, TO(input) },
	{ "help", 'h', NULL, "print this help", TO(help) },
	{ "version", 0, NULL, "print the version", TO(version) },
	/* the names of these options in perf */
	{ "sort", .alias = "by" },
	{ "comms", .alias = "comm" },
	{ "dsos", .alias = "module" },
	{ "symbols", .alias = "symbol" },
	{ "percent-limit", .alias = "limit" },
	{ "no-children" },
	{ "inline" },
	{ "stdio" },
};

const struct pm_option_table pm_report_option_table = {
	"pmreport",
	PM_OPTION_ROWS(report_option_rows),
	.before = "usage: pmreport [options] [FILE]\n"
		  "\n"
		  "Says where the time of a recording went. FILE is what pmrec wrote:\n"
		  "samples.json unless given; `-` is standard input.\n",
	.after =
		"\n"
		"Exit status: 0 done, 1 the file cannot be read, 2 the command line is wrong.\n",
	.files = "*.json *.json.zst",
};

/* Chooses which properties of single samples the profile keeps. */
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

/* Checks the options for sources of names, which contradict --no-resymbolize. */
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

/* Checks --follow. A repeated report is text for a reader, and following keeps no single
 * samples. */
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
	int ret;

	opterr = 0;
	optind = 1;
	ret = pm_options_parse(&pm_report_option_table, &options, argc, argv,
			       PM_OPTIONS_ANYWHERE, NULL, err);
	if (ret < 0)
		return ret;
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
