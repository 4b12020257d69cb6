/* SPDX-License-Identifier: MIT */
#include "options-parts.h"

#include <string.h>

enum {
	OPTION_TIME = 256,
	OPTION_TIMEOUT,
	OPTION_KEEP_GOING,
	OPTION_PER,
	OPTION_FN,
	OPTION_RANGE,
	OPTION_ENGINE,
	OPTION_CALLS_FROM,
	OPTION_LIVE,
	OPTION_MARKED,
	OPTION_STACKS,
	OPTION_JSON,
	OPTION_USER,
	OPTION_COLOR,
	OPTION_VERSION,
};

/* Letters of perf stat keep their meaning. */
static const char short_options[] = "+:aC:D:e:G:hiI:o:p:qr:t:u:vw:x:";
static const struct option long_options[] = {
	{ "event", required_argument, NULL, 'e' },
	{ "fn", required_argument, NULL, OPTION_FN },
	{ "range", required_argument, NULL, OPTION_RANGE },
	{ "engine", required_argument, NULL, OPTION_ENGINE },
	{ "calls-from", optional_argument, NULL, OPTION_CALLS_FROM },
	{ "live", no_argument, NULL, OPTION_LIVE },
	{ "marked", optional_argument, NULL, OPTION_MARKED },
	{ "stacks", required_argument, NULL, OPTION_STACKS },
	{ "per", required_argument, NULL, OPTION_PER },
	{ "pid", required_argument, NULL, 'p' },
	{ "tid", required_argument, NULL, 't' },
	{ "uid", required_argument, NULL, 'u' },
	{ "all-cpus", no_argument, NULL, 'a' },
	{ "cpu", required_argument, NULL, 'C' },
	{ "cgroup", required_argument, NULL, 'G' },
	{ "no-inherit", no_argument, NULL, 'i' },
	{ "user", required_argument, NULL, OPTION_USER },
	{ "repeat", required_argument, NULL, 'r' },
	{ "time", required_argument, NULL, OPTION_TIME },
	{ "warmup", required_argument, NULL, 'w' },
	{ "keep-going", no_argument, NULL, OPTION_KEEP_GOING },
	{ "interval-print", required_argument, NULL, 'I' },
	{ "delay", required_argument, NULL, 'D' },
	{ "timeout", required_argument, NULL, OPTION_TIMEOUT },
	{ "field-separator", required_argument, NULL, 'x' },
	{ "json", no_argument, NULL, OPTION_JSON },
	{ "output", required_argument, NULL, 'o' },
	{ "color", required_argument, NULL, OPTION_COLOR },
	{ "quiet", no_argument, NULL, 'q' },
	{ "verbose", no_argument, NULL, 'v' },
	{ "help", no_argument, NULL, 'h' },
	{ "version", no_argument, NULL, OPTION_VERSION },
	{ NULL, 0, NULL, 0 },
};

static int add_region_option(struct pmstat_options *options, bool range, const char *text,
			     struct pm_error *err)
{
	struct pm_region_spec spec = { .range = range, .text = text };

	if (text[0] == '\0' && range)
		return pmstat_usage(err, "--range: expected the name of a range, as "
					 "file.c:10-20");
	if (text[0] == '\0')
		return pmstat_usage(err, "--fn: expected the name of a function");
	if (pm_vec_push(&options->regions, spec) < 0)
		return pm_error_set(err, -ENOMEM, "out of memory");
	return 0;
}

/* FROM,TO; the text is cut in two. Wildcards are rejected: valgrind would expand them. */
static int parse_marked_functions(struct pmstat_options *options, char *text,
				  struct pm_error *err)
{
	char *comma = strchr(text, ',');

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

static int apply_count_option(struct pmstat_options *options, int option,
			      struct pm_error *err)
{
	switch (option) {
	case 'e':
		options->event_given = true;
		return pmstat_parse_events(options, optarg, err);
	case OPTION_FN:
		return add_region_option(options, false, optarg, err);
	case OPTION_RANGE:
		return add_region_option(options, true, optarg, err);
	case OPTION_ENGINE:
		return pmstat_parse_engine(&options->engine, optarg, err);
	case OPTION_CALLS_FROM:
		return pmstat_parse_calls_from(&options->calls_from, optarg, err);
	case OPTION_LIVE:
		options->live = true;
		return 0;
	case OPTION_MARKED:
		options->marked = true;
		if (optarg)
			return parse_marked_functions(options, optarg, err);
		return 0;
	case OPTION_STACKS:
		options->stacks = optarg;
		return pm_parse_name("--stacks", "a file", optarg, "pmstat", err);
	case OPTION_PER:
		return pmstat_parse_per(&options->by, optarg, err);
	case OPTION_USER:
		options->user = optarg;
		return pm_parse_name("--user", "a user", optarg, "pmstat", err);
	default:
		return pm_targets_option(&options->targets, option, optarg, "pmstat",
					 err);
	}
}

static int apply_when(struct pmstat_options *options, int option, struct pm_error *err)
{
	switch (option) {
	case 'r':
		return pm_parse_count(&options->repeat, "-r", optarg, "pmstat", err);
	case 'w':
		return pmstat_parse_warmups(&options->warmups, optarg, err);
	case OPTION_TIME:
		return pm_parse_duration(&options->time_ns, "--time", optarg, "pmstat",
					 err);
	case OPTION_KEEP_GOING:
		options->keep_going = true;
		return 0;
	case 'I':
		return pmstat_parse_ms(&options->interval_ms, 'I', optarg, err);
	case 'D':
		return pmstat_parse_ms(&options->delay_ms, 'D', optarg, err);
	case OPTION_TIMEOUT:
		return pmstat_parse_timeout(&options->timeout_ns, optarg, err);
	default:
		return 1;
	}
}

static int set_form(struct pmstat_options *options, enum pmstat_form form,
		    struct pm_error *err)
{
	if (options->form != PMSTAT_TEXT && options->form != form)
		return pmstat_usage(err, "-x and --json exclude each other");
	options->form = form;
	return 0;
}

static int apply_output(struct pmstat_options *options, int option, struct pm_error *err)
{
	int ret;

	switch (option) {
	case 'x':
		ret = pm_parse_separator(&options->separator, optarg, "pmstat", err);
		if (ret < 0)
			return ret;
		return set_form(options, PMSTAT_CSV, err);
	case OPTION_JSON:
		return set_form(options, PMSTAT_JSON, err);
	case 'o':
		options->output = optarg;
		return pm_parse_name("-o", "a file", optarg, "pmstat", err);
	case OPTION_COLOR:
		return pm_parse_color(&options->color, optarg, "pmstat", err);
	case 'q':
		options->quiet = true;
		return 0;
	case 'v':
		options->verbose = true;
		return 0;
	case 'h':
		options->action = PMSTAT_HELP;
		return 0;
	case OPTION_VERSION:
		options->action = PMSTAT_TELL_VERSION;
		return 0;
	default:
		return 1;
	}
}

static int apply_option(struct pmstat_options *options, int option, const char *word,
			struct pm_error *err)
{
	int ret = apply_count_option(options, option, err);

	if (ret > 0)
		ret = apply_when(options, option, err);
	if (ret > 0)
		ret = apply_output(options, option, err);
	if (ret > 0)
		return pm_usage_option(err, "pmstat", long_options, option, word);
	return ret;
}

/* An optional value must follow a `=`; otherwise the word is the command. */
static int check_calls_from(char **rest, struct pm_error *err)
{
	uint64_t callers;

	if (!rest[0] || strncmp(rest[-1], "--calls", strlen("--calls")) != 0 ||
	    strchr(rest[-1], '=') || !pm_parse_u64(rest[0], &callers))
		return 0;
	return pmstat_usage(err, "%s %s: write --calls-from=%s, or ./%s for a command",
			    rest[-1], rest[0], rest[0], rest[0]);
}

/* Parses options up to the first other word, to which *rest then points. */
static int parse_leading_options(struct pmstat_options *options, int argc, char **argv,
				 char ***rest, struct pm_error *err)
{
	for (;;) {
		int at = PM_MAX(optind, 1);
		int option = getopt_long(argc, argv, short_options, long_options, NULL);
		int ret;

		if (option == -1)
			break;
		ret = apply_option(options, option, argv[optind > at ? optind - 1 : at],
				   err);
		if (ret < 0 || options->action != PMSTAT_COUNT)
			return ret;
	}
	*rest = argv + optind;
	return check_calls_from(*rest, err);
}

int pmstat_options_parse(struct pmstat_options *options, int argc, char **argv,
			 struct pm_error *err)
{
	char **rest = NULL;
	int ret;

	*options = (struct pmstat_options){ .separator = "," };
	/* A program of that name can be run as `-- ab` or `./ab`. */
	options->ab = argc > 1 && strcmp(argv[1], "ab") == 0;
	if (options->ab) {
		argc--;
		argv++;
	}
	ret = parse_leading_options(options, argc, argv, &rest, err);
	if (ret < 0 || options->action != PMSTAT_COUNT)
		return ret;
	return pmstat_check(options, rest, err);
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
