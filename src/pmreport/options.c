/* SPDX-License-Identifier: MIT */
#include "options.h"

#include <getopt.h>
#include <stdarg.h>
#include <string.h>

enum {
	NEAR_ENOUGH = 3, /* edits between a wrong name and one worth proposing */
	WIDTH_MIN = 40,
	WIDTH_MAX = 100000,
	OPTION_TREE = 256,
	OPTION_BOTTOM_UP,
	OPTION_CALLERS,
	OPTION_CALLEES,
	OPTION_BY,
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
	OPTION_COLOR,
	OPTION_WIDTH,
	OPTION_NO_INLINE,
	OPTION_IGNORED,
	OPTION_VERSION,
};

static const char default_input[] = "samples.json";

/* perf report's letters keep their meaning; --stdio and the like are what we do anyway. */
static const char short_options[] = ":i:o:s:S:c:d:x:qh";
static const struct option long_options[] = {
	{ "tree", no_argument, NULL, OPTION_TREE },
	{ "bottom-up", no_argument, NULL, OPTION_BOTTOM_UP },
	{ "callers", required_argument, NULL, OPTION_CALLERS },
	{ "callees", required_argument, NULL, OPTION_CALLEES },
	{ "by", required_argument, NULL, OPTION_BY },
	{ "sort", required_argument, NULL, OPTION_BY },
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
	{ "json", no_argument, NULL, OPTION_JSON },
	{ "field-separator", required_argument, NULL, 'x' },
	{ "color", required_argument, NULL, OPTION_COLOR },
	{ "width", required_argument, NULL, OPTION_WIDTH },
	{ "no-inline", no_argument, NULL, OPTION_NO_INLINE },
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

static const char help[] =
	"usage: pmreport [options] [FILE]\n"
	"\n"
	"Says where the time of a recording went. FILE is what pmrec wrote:\n"
	"samples.json unless given; `-` is standard input.\n"
	"\n"
	"What to show\n"
	"  -s, --by WHAT             table by function (default), module, thread,\n"
	"                            process, line or address\n"
	"      --tree                call tree from the root down\n"
	"      --bottom-up           from where the time is spent up to the callers\n"
	"      --callers F           who calls F\n"
	"      --callees F           what F calls\n"
	"      --children            sort tables by total (with callees), not by self\n"
	"      --limit PCT           leave out what is below PCT percent (default: 0.5)\n"
	"      --no-inline           count inlined functions to those that contain them\n"
	"\n"
	"Which samples\n"
	"      --event EVENT         of this event only; without it each has its section\n"
	"  -c, --comm NAME[,…]       of threads with this name\n"
	"      --pid ID[,…]          of these processes\n"
	"      --tid ID[,…]          of these threads\n"
	"  -d, --module NAME[,…]     taken in code of these files\n"
	"  -S, --symbol F            with F anywhere on the stack\n"
	"      --time A-B            from A to B: seconds from the start, or 10%-20%\n"
	"\n"
	"F is the name of a function, with or without scope and parameters, or an\n"
	"extended regular expression.\n"
	"\n"
	"How to write it\n"
	"      --json                JSON, everything (schema: man pmreport)\n"
	"  -x, --field-separator S   fields separated by S, a line of names first\n"
	"      --folded[=period]     folded stacks for flame graphs, counting samples\n"
	"  -o, --output FILE         write to FILE\n"
	"      --color WHEN          auto (default), always or never; see NO_COLOR\n"
	"      --width COLUMNS       default: the terminal's, else 80; 0: unlimited\n"
	"  -q, --quiet               data only: no heading, no hints\n"
	"  -i, --input FILE          the same as FILE\n"
	"  -h, --help                print this\n"
	"      --version             print the version\n"
	"\n"
	"Exit status: 0 done, 1 the file cannot be read, 2 the command line is wrong.\n";

static int PM_PRINTF(2, 3) usage(struct pm_error *err, const char *format, ...)
{
	char text[PM_ERROR_TEXT_MAX];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	pm_error_set(err, -EINVAL, "%s", text);
	pm_error_fix(err, "pmreport --help");
	return -EINVAL;
}

/* ---- names that are almost right ---------------------------------------------------------- */

static const char *nearest_option(const char *name)
{
	const char *best = NULL;
	size_t best_distance = NEAR_ENOUGH + 1;

	for (const struct option *option = long_options; option->name; option++) {
		size_t distance = pm_name_distance(name, option->name);

		if (strncmp(option->name, name, strlen(name)) == 0)
			distance = 1; /* the beginning of several */
		if (distance < best_distance) {
			best = option->name;
			best_distance = distance;
		}
	}
	return best;
}

static int unknown_option(const char *word, int letter, struct pm_error *err)
{
	const char *near;
	char name[64];

	if (strncmp(word, "--", 2) != 0)
		return usage(err, "unknown option -%c", letter);
	snprintf(name, sizeof(name), "%.*s", (int)strcspn(word + 2, "="), word + 2);
	for (const struct option *option = long_options; option->name; option++)
		if (strcmp(option->name, name) == 0)
			return usage(err, "option --%s takes no value", name);
	near = nearest_option(name);
	usage(err, "unknown option --%s", name);
	if (near)
		pm_error_fix(err, "--%s", near);
	return -EINVAL;
}

/* ---- values ------------------------------------------------------------------------------- */

static int parse_key(const char *text, enum pm_key *ret, struct pm_error *err)
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
		/* perf's words */
		{ "symbol", PM_KEY_FUNCTION },
		{ "sym", PM_KEY_FUNCTION },
		{ "dso", PM_KEY_MODULE },
		{ "comm", PM_KEY_THREAD },
		{ "tid", PM_KEY_THREAD },
		{ "pid", PM_KEY_PROCESS },
		{ "srcline", PM_KEY_LINE },
	};

	for (size_t i = 0; i < PM_ARRAY_LEN(keys); i++) {
		if (strcmp(keys[i].name, text) == 0) {
			*ret = keys[i].key;
			return 0;
		}
	}
	return usage(
		err,
		"cannot make a table by '%s': it is function, module, thread, process, "
		"line or address",
		text);
}

/* A number from 0 to @max at *at, which moves behind it. strtod() would take "inf" and hex. */
static bool take_number(const char **at, double max, double *ret)
{
	size_t len = strspn(*at, "0123456789.");
	char digits[32], *end;

	if (len == 0 || len >= sizeof(digits))
		return false;
	memcpy(digits, *at, len);
	digits[len] = '\0';
	*ret = strtod(digits, &end);
	*at += len;
	return *end == '\0' && *ret <= max;
}

static int parse_time(const char *text, struct pm_profile_options *ret,
		      struct pm_error *err)
{
	const char *at = text;
	double from = 0, to = 1e12;
	bool from_percent = false, to_percent = false;

	if (*at != '-') {
		if (!take_number(&at, 1e12, &from))
			goto bad;
		from_percent = *at == '%';
		at += from_percent;
	}
	if (*at++ != '-')
		goto bad;
	if (*at != '\0') {
		if (!take_number(&at, 1e12, &to))
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
	ret->time_set = true;
	ret->time_percent = from_percent || to_percent;
	ret->time_from = from;
	ret->time_to = to;
	return 0;
bad:
	return usage(
		err,
		"'%s' is no range of time: it looks like 1.5-2 (seconds) or 10%%-20%%",
		text);
}

static int parse_limit(const char *text, double *ret, struct pm_error *err)
{
	const char *at = text;
	double limit;

	if (!take_number(&at, 100, &limit) || (*at != '\0' && strcmp(at, "%") != 0))
		return usage(err, "'%s' is no percentage from 0 to 100", text);
	*ret = limit;
	return 0;
}

static int parse_width(const char *text, struct pm_report_options *ret,
		       struct pm_error *err)
{
	uint64_t width;

	if (!pm_parse_u64(text, &width) || width > WIDTH_MAX ||
	    (width > 0 && width < WIDTH_MIN))
		return usage(err, "'%s' is no width: it is 0 or from %d up", text,
			     WIDTH_MIN);
	ret->report.width = (unsigned)width;
	ret->width_set = true;
	return 0;
}

static int parse_color(const char *text, enum pm_color_wish *ret, struct pm_error *err)
{
	static const char *const words[] = {
		[PM_COLOR_AUTO] = "auto",
		[PM_COLOR_ALWAYS] = "always",
		[PM_COLOR_NEVER] = "never",
	};

	for (size_t i = 0; i < PM_ARRAY_LEN(words); i++) {
		if (strcmp(words[i], text) == 0) {
			*ret = (enum pm_color_wish)i;
			return 0;
		}
	}
	return usage(err, "--color is auto, always or never, not '%s'", text);
}

static int set_show(struct pm_report_options *options, enum pm_report_show show,
		    const char *function, struct pm_error *err)
{
	if (options->report.show != PM_SHOW_TABLE && options->report.show != show)
		return usage(err, "of --tree, --bottom-up, --callers and --callees only "
				  "one at a time");
	options->report.show = show;
	options->report.function = function;
	return 0;
}

static int set_format(struct pm_report_options *options, enum pm_report_format format,
		      struct pm_error *err)
{
	if (options->format != PM_FORMAT_TEXT && options->format != format)
		return usage(err, "of --json, --folded and -x only one at a time");
	options->format = format;
	return 0;
}

static int set_folded(struct pm_report_options *options, const char *count,
		      struct pm_error *err)
{
	if (count && strcmp(count, "period") != 0 && strcmp(count, "samples") != 0)
		return usage(err, "--folded counts samples or period, not '%s'", count);
	options->folded_periods = count && strcmp(count, "period") == 0;
	return set_format(options, PM_FORMAT_FOLDED, err);
}

static int set_separator(struct pm_report_options *options, const char *separator,
			 struct pm_error *err)
{
	if (separator[0] == '\0' || strpbrk(separator, "\"\n"))
		return usage(err, "'%s' cannot separate fields", separator);
	options->separator = strcmp(separator, "\\t") == 0 ? "\t" : separator;
	return set_format(options, PM_FORMAT_CSV, err);
}

/* ---- options ------------------------------------------------------------------------------ */

static int apply(struct pm_report_options *options, int option, const char *value,
		 struct pm_error *err)
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
	case OPTION_BY:
	case 's':
		return parse_key(value, &options->report.key, err);
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
		return parse_time(value, &options->profile, err);
	case OPTION_LIMIT:
		return parse_limit(value, &options->report.limit, err);
	case OPTION_FOLDED:
		return set_folded(options, value, err);
	case OPTION_JSON:
		return set_format(options, PM_FORMAT_JSON, err);
	case 'x':
		return set_separator(options, value, err);
	case OPTION_COLOR:
		return parse_color(value, &options->color, err);
	case OPTION_WIDTH:
		return parse_width(value, options, err);
	case OPTION_NO_INLINE:
		options->profile.no_inlines = true;
		return 0;
	case 'i':
		options->input = value;
		return 0;
	case 'o':
		options->output = value;
		return 0;
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

/* What goes together only in one way. */
static int check(struct pm_report_options *options, struct pm_error *err)
{
	if (options->format == PM_FORMAT_FOLDED && options->report.show != PM_SHOW_TABLE)
		return usage(err, "--folded has whole stacks: it goes with no tree");
	if ((options->report.show == PM_SHOW_CALLERS ||
	     options->report.show == PM_SHOW_CALLEES) &&
	    options->report.function[0] == '\0')
		return usage(err, "the name of the function is empty");
	return 0;
}

int pm_report_options_parse(struct pm_report_options *ret, int argc, char **argv,
			    struct pm_error *err)
{
	struct pm_report_options options = {
		.report = { .event = PM_PROFILE_NONE, .limit = PM_LIMIT_DEFAULT },
	};
	int option, r = 0;

	opterr = 0;
	optind = 1;
	for (;;) {
		/* Where the word at hand is, for messages: getopt() moves operands. */
		int at = optind;

		option = getopt_long(argc, argv, short_options, long_options, NULL);
		if (option == -1)
			break;
		if (option == '?')
			return unknown_option(argv[optind > at ? optind - 1 : at], optopt,
					      err);
		if (option == ':')
			return usage(err, "option %s needs a value", argv[optind - 1]);
		r = apply(&options, option, optarg, err);
		if (r < 0)
			return r;
	}
	if (optind + 1 < argc)
		return usage(err, "one file at a time: '%s' is too many",
			     argv[optind + 1]);
	if (optind < argc && options.input)
		return usage(err, "two files: '%s' and -i '%s'", argv[optind],
			     options.input);
	if (optind < argc)
		options.input = argv[optind];
	if (options.input && strcmp(options.input, default_input) != 0)
		options.report.file = options.input;
	if (!options.input)
		options.input = default_input;
	r = check(&options, err);
	if (r == 0)
		*ret = options;
	return r;
}

void pm_report_options_help(FILE *to)
{
	fputs(help, to);
}
