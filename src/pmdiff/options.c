/* SPDX-License-Identifier: MIT */
#include "options-parts.h"

#include <fnmatch.h>
#include <string.h>

enum {
	OPTION_BASE = 256,
	OPTION_HEAD,
	OPTION_GOOD,
	OPTION_BAD,
	OPTION_ROW,
	OPTION_BUILD,
	OPTION_CASE,
	OPTION_FN,
	OPTION_RANGE,
	OPTION_ENGINE,
	OPTION_TIMEOUT,
	OPTION_GATE,
	OPTION_FORCE,
	OPTION_STRICT,
	OPTION_CONFIG,
	OPTION_HISTORY,
	OPTION_TREND,
	OPTION_JSON,
	OPTION_MARKDOWN,
	OPTION_JUNIT,
	OPTION_SARIF,
	OPTION_HTML,
	OPTION_ALL,
	OPTION_COLOR,
	OPTION_FORMAT,
	OPTION_COMMIT,
	OPTION_REASON,
	OPTION_REMOVE,
	OPTION_ACKS,
	OPTION_HISTORY_GATE,
	OPTION_VERSION,
};

/* Files may come before options, but a command has its own options. */
static const char short_options[] = ":e:ho:qr:w:";
static const char short_options_command[] = "+:e:ho:qr:w:";
static const struct option long_options[] = {
	{ "base", required_argument, NULL, OPTION_BASE },
	{ "head", required_argument, NULL, OPTION_HEAD },
	{ "good", required_argument, NULL, OPTION_GOOD },
	{ "bad", required_argument, NULL, OPTION_BAD },
	{ "row", required_argument, NULL, OPTION_ROW },
	{ "build", required_argument, NULL, OPTION_BUILD },
	{ "case", required_argument, NULL, OPTION_CASE },
	{ "repeat", required_argument, NULL, 'r' },
	{ "warmup", required_argument, NULL, 'w' },
	{ "event", required_argument, NULL, 'e' },
	{ "fn", required_argument, NULL, OPTION_FN },
	{ "range", required_argument, NULL, OPTION_RANGE },
	{ "engine", required_argument, NULL, OPTION_ENGINE },
	{ "timeout", required_argument, NULL, OPTION_TIMEOUT },
	{ "gate", required_argument, NULL, OPTION_GATE },
	{ "force", no_argument, NULL, OPTION_FORCE },
	{ "strict", no_argument, NULL, OPTION_STRICT },
	{ "config", required_argument, NULL, OPTION_CONFIG },
	{ "history", required_argument, NULL, OPTION_HISTORY },
	{ "trend", no_argument, NULL, OPTION_TREND },
	{ "history-gate", required_argument, NULL, OPTION_HISTORY_GATE },
	{ "acks", required_argument, NULL, OPTION_ACKS },
	{ "format", required_argument, NULL, OPTION_FORMAT },
	{ "output", required_argument, NULL, 'o' },
	{ "commit", required_argument, NULL, OPTION_COMMIT },
	{ "reason", required_argument, NULL, OPTION_REASON },
	{ "remove", no_argument, NULL, OPTION_REMOVE },
	{ "json", optional_argument, NULL, OPTION_JSON },
	{ "markdown", optional_argument, NULL, OPTION_MARKDOWN },
	{ "junit", optional_argument, NULL, OPTION_JUNIT },
	{ "sarif", optional_argument, NULL, OPTION_SARIF },
	{ "html", optional_argument, NULL, OPTION_HTML },
	{ "all", no_argument, NULL, OPTION_ALL },
	{ "color", required_argument, NULL, OPTION_COLOR },
	{ "quiet", no_argument, NULL, 'q' },
	{ "help", no_argument, NULL, 'h' },
	{ "version", no_argument, NULL, OPTION_VERSION },
	{ NULL, 0, NULL, 0 },
};

enum {
	MEASURED = PMDIFF_OF_RUN | PMDIFF_OF_BISECT,
	COMPARED = PMDIFF_OF_FILES | PMDIFF_OF_RUN,
	SHOWN = COMPARED | PMDIFF_OF_TREND,
	KEPT = PMDIFF_OF_IMPORT | PMDIFF_OF_ACK,
};

/* The modes in which each option is valid; options that are not listed
 * are valid everywhere. */
static const struct {
	int option;
	unsigned int modes;
} meanings[] = {
	{ OPTION_BASE, PMDIFF_OF_RUN },
	{ OPTION_HEAD, PMDIFF_OF_RUN },
	{ OPTION_GOOD, PMDIFF_OF_BISECT },
	{ OPTION_BAD, PMDIFF_OF_BISECT },
	{ OPTION_ROW, PMDIFF_OF_BISECT },
	{ OPTION_BUILD, MEASURED },
	{ OPTION_CASE, MEASURED | PMDIFF_OF_FILES },
	{ 'r', MEASURED },
	{ 'w', MEASURED },
	{ 'e', MEASURED },
	{ OPTION_FN, MEASURED },
	{ OPTION_RANGE, MEASURED },
	{ OPTION_ENGINE, MEASURED },
	{ OPTION_TIMEOUT, MEASURED },
	{ OPTION_GATE, COMPARED | PMDIFF_OF_BISECT },
	{ OPTION_FORCE, PMDIFF_OF_FILES },
	{ OPTION_STRICT, COMPARED },
	{ OPTION_HISTORY, SHOWN | PMDIFF_OF_IMPORT },
	{ OPTION_HISTORY_GATE, COMPARED },
	{ OPTION_ACKS, SHOWN | PMDIFF_OF_ACK },
	{ OPTION_FORMAT, PMDIFF_OF_IMPORT },
	{ 'o', PMDIFF_OF_IMPORT },
	{ OPTION_COMMIT, KEPT },
	{ OPTION_REASON, PMDIFF_OF_ACK },
	{ OPTION_REMOVE, PMDIFF_OF_ACK },
	{ OPTION_JSON, SHOWN },
	{ OPTION_MARKDOWN, COMPARED },
	{ OPTION_JUNIT, COMPARED },
	{ OPTION_SARIF, COMPARED },
	{ OPTION_HTML, SHOWN },
	{ OPTION_ALL, SHOWN },
};

static int apply_measuring_option(struct pmdiff_measured *measured, int option,
				  struct pm_error *err)
{
	switch (option) {
	case OPTION_BASE:
	case OPTION_GOOD:
		measured->revs[0] = optarg;
		return pm_parse_name(option == OPTION_BASE ? "--base" : "--good",
				     "a revision", optarg, "pmdiff", err);
	case OPTION_HEAD:
	case OPTION_BAD:
		measured->revs[1] = optarg;
		return pm_parse_name(option == OPTION_HEAD ? "--head" : "--bad",
				     "a revision", optarg, "pmdiff", err);
	case OPTION_ROW:
		measured->row = optarg;
		return pm_parse_name("--row", "a row, as fn:parse:sim.Ir", optarg,
				     "pmdiff", err);
	case OPTION_BUILD:
		measured->build = optarg;
		return pm_parse_name("--build", "a command", optarg, "pmdiff", err);
	case 'r':
		return pm_parse_count(&measured->runs, "-r", optarg, "pmdiff", err);
	case 'w':
		return pmdiff_parse_warmups(&measured->warmups, optarg, err);
	case 'e':
		return pmdiff_add_text(&measured->events, optarg, err);
	case OPTION_FN:
		return pmdiff_add_text(&measured->functions, optarg, err);
	case OPTION_RANGE:
		return pmdiff_add_text(&measured->ranges, optarg, err);
	case OPTION_ENGINE:
		return pmdiff_parse_engine(&measured->engine, optarg, err);
	case OPTION_TIMEOUT:
		return pm_parse_duration(&measured->timeout_ns, "--timeout", optarg,
					 "pmdiff", err);
	default:
		return 1;
	}
}

static int apply_judging_option(struct pmdiff_options *options, int option,
				struct pm_error *err)
{
	switch (option) {
	case OPTION_CASE:
		options->case_pattern = optarg;
		return pm_parse_name("--case", "a name or a glob", optarg, "pmdiff", err);
	case OPTION_GATE:
		return pm_gates_parse(&options->gates, optarg, "--gate", err);
	case OPTION_HISTORY_GATE:
		return pm_gates_parse(&options->history_gates, optarg, "--history-gate",
				      err);
	case OPTION_FORCE:
		options->force = true;
		return 0;
	case OPTION_STRICT:
		options->strict = true;
		return 0;
	case OPTION_CONFIG:
		options->config_path = optarg;
		return pm_parse_name("--config", "a file", optarg, "pmdiff", err);
	case OPTION_HISTORY:
		options->history = optarg;
		return pm_parse_name("--history", "a directory, or git-notes", optarg,
				     "pmdiff", err);
	case OPTION_TREND:
		options->action = PMDIFF_TREND;
		return 0;
	default:
		return 1;
	}
}

static int apply_keeping_option(struct pmdiff_options *options, int option,
				struct pm_error *err)
{
	switch (option) {
	case OPTION_ACKS:
		options->acked.file = optarg;
		return pm_parse_name("--acks", "a file", optarg, "pmdiff", err);
	case OPTION_FORMAT:
		return pmdiff_parse_format(&options->imported.format, optarg, err);
	case 'o':
		options->imported.path = optarg;
		return pm_parse_name("-o", "a file", optarg, "pmdiff", err);
	case OPTION_COMMIT:
		options->commit = optarg;
		return pm_parse_name("--commit", "a revision", optarg, "pmdiff", err);
	case OPTION_REASON:
		options->acked.reason = optarg;
		return pm_parse_name("--reason", "a text", optarg, "pmdiff", err);
	case OPTION_REMOVE:
		options->acked.remove = true;
		return 0;
	default:
		return 1;
	}
}

static int apply_showing_option(struct pmdiff_options *options, int option,
				struct pm_error *err)
{
	switch (option) {
	case OPTION_JSON:
		return pmdiff_add_output(options, PMDIFF_JSON, optarg, err);
	case OPTION_MARKDOWN:
		return pmdiff_add_output(options, PMDIFF_MARKDOWN, optarg, err);
	case OPTION_JUNIT:
		return pmdiff_add_output(options, PMDIFF_JUNIT, optarg, err);
	case OPTION_SARIF:
		return pmdiff_add_output(options, PMDIFF_SARIF, optarg, err);
	case OPTION_HTML:
		return pmdiff_add_output(options, PMDIFF_HTML, optarg, err);
	case OPTION_ALL:
		options->all = true;
		return 0;
	case OPTION_COLOR:
		return pm_parse_color(&options->color, optarg, "pmdiff", err);
	case 'q':
		options->quiet = true;
		return 0;
	case 'h':
		options->action = PMDIFF_HELP;
		return 0;
	case OPTION_VERSION:
		options->action = PMDIFF_TELL_VERSION;
		return 0;
	default:
		return 1;
	}
}

static bool is_action_done(const struct pmdiff_options *options)
{
	return options->action == PMDIFF_HELP || options->action == PMDIFF_TELL_VERSION;
}

static const char *long_option_name(int option)
{
	for (size_t i = 0; long_options[i].name; i++)
		if (long_options[i].val == option)
			return long_options[i].name;
	return "";
}

/* Rejects options of another mode: the user had that mode in mind. */
static int check_option_modes(const struct pmdiff_options *options, const bool *seen,
			      struct pm_error *err)
{
	static const struct {
		enum pmdiff_mode mode;
		const char *name, *usage;
	} modes[] = {
		[PMDIFF_COMPARE] = { PMDIFF_OF_FILES, "files", "BASE.json NEW.json" },
		[PMDIFF_RUN] = { PMDIFF_OF_RUN, "pmdiff run",
				 "run --base REV -- COMMAND" },
		[PMDIFF_BISECT] = { PMDIFF_OF_BISECT, "pmdiff bisect",
				    "bisect --good REV -- COMMAND" },
		[PMDIFF_TREND] = { PMDIFF_OF_TREND, "--trend",
				   "--history WHERE --trend" },
		[PMDIFF_IMPORT] = { PMDIFF_OF_IMPORT, "pmdiff import", "import FILE" },
		[PMDIFF_ACK] = { PMDIFF_OF_ACK, "pmdiff ack",
				 "ack ROW --reason TEXT RESULT.json" },
	};

	for (size_t i = 0; i < PM_ARRAY_LEN(meanings); i++) {
		if (!seen[i] || (meanings[i].modes & modes[options->action].mode))
			continue;
		pm_error_set(err, -EINVAL, "--%s does not go with %s",
			     long_option_name(meanings[i].option),
			     modes[options->action].name);
		for (size_t j = 0; j < PM_ARRAY_LEN(modes); j++)
			if (meanings[i].modes & modes[j].mode) {
				pm_error_fix(err, "pmdiff %s; or pmdiff --help",
					     modes[j].usage);
				break;
			}
		return -EINVAL;
	}
	return 0;
}

static void note_option_seen(bool *seen, int option)
{
	for (size_t i = 0; i < PM_ARRAY_LEN(meanings); i++)
		seen[i] = seen[i] || meanings[i].option == option;
}

static int apply_long_option(struct pmdiff_options *options, int option, const char *word,
			     struct pm_error *err)
{
	int ret = apply_measuring_option(&options->measured, option, err);

	if (ret > 0)
		ret = apply_judging_option(options, option, err);
	if (ret > 0)
		ret = apply_keeping_option(options, option, err);
	if (ret > 0)
		ret = apply_showing_option(options, option, err);
	if (ret <= 0)
		return ret;
	return pm_usage_option(err, "pmdiff", long_options, option, word);
}

static int parse_option_words(struct pmdiff_options *options, int argc, char **argv,
			      struct pm_error *err)
{
	bool command = options->action == PMDIFF_RUN || options->action == PMDIFF_BISECT;
	bool seen[PM_ARRAY_LEN(meanings)] = { 0 };

	for (;;) {
		int at = optind > 0 ? optind : 1;
		int option = getopt_long(argc, argv,
					 command ? short_options_command : short_options,
					 long_options, NULL);
		int ret;

		if (option == -1)
			break;
		ret = apply_long_option(options, option,
					argv[optind > at ? optind - 1 : at], err);
		if (ret < 0 || is_action_done(options))
			return ret;
		note_option_seen(seen, option);
	}
	return check_option_modes(options, seen, err);
}

int pmdiff_options_parse(struct pmdiff_options *options, int argc, char **argv,
			 struct pm_error *err)
{
	static const struct {
		const char *word;
		enum pmdiff_action action;
	} actions[] = {
		{ "run", PMDIFF_RUN },
		{ "bisect", PMDIFF_BISECT },
		{ "import", PMDIFF_IMPORT },
		{ "ack", PMDIFF_ACK },
	};
	int ret;

	*options = (struct pmdiff_options){
		.measured = { .warmups = UINT64_MAX },
		.outputs = { [PMDIFF_TEXT] = { .wanted = true } },
	};
	/* A file with such a name can be given as ./run. */
	for (size_t i = 0; i < PM_ARRAY_LEN(actions) && argc > 1; i++)
		if (strcmp(argv[1], actions[i].word) == 0)
			options->action = actions[i].action;
	if (options->action != PMDIFF_COMPARE) {
		argc--;
		argv++;
	}
	ret = parse_option_words(options, argc, argv, err);
	if (ret < 0 || is_action_done(options))
		return ret;
	return pmdiff_take_words(options, argv + optind, err);
}

bool pmdiff_names_no_functions(const struct pmdiff_measured *measured)
{
	return measured->functions.list.len == 0 && measured->ranges.list.len == 0;
}

/* Names may contain brackets and stars, so they are also compared literally. */
static bool fits_case_pattern(const char *pattern, const char *name)
{
	return name && (strcmp(pattern, name) == 0 || fnmatch(pattern, name, 0) == 0);
}

bool pmdiff_is_case_wanted(const struct pmdiff_options *options, const char *name,
			   const char *group)
{
	return !options->case_pattern || fits_case_pattern(options->case_pattern, name) ||
	       fits_case_pattern(options->case_pattern, group);
}

static void measured_release(struct pmdiff_measured *measured)
{
	pm_vec_release(&measured->events.list);
	pm_vec_release(&measured->functions.list);
	pm_vec_release(&measured->ranges.list);
}

void pmdiff_options_release(struct pmdiff_options *options)
{
	for (size_t i = 0; i < PM_ARRAY_LEN(options->files); i++)
		pm_vec_release(&options->files[i].list);
	measured_release(&options->measured);
	for (size_t i = 0; i < options->cases.len; i++) {
		measured_release(&options->cases.data[i].measured);
		pm_vec_release(&options->cases.data[i].words.list);
	}
	pm_vec_release(&options->cases);
	pm_vec_release(&options->words.list);
	pm_gates_release(&options->gates);
	pm_gates_release(&options->history_gates);
	pm_acks_release(&options->acks);
	pm_diff_config_release(&options->config);
}
