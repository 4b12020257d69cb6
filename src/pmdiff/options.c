/* SPDX-License-Identifier: MIT */
#include "options-parts.h"

#include <fnmatch.h>
#include <string.h>

enum {
	WARMUPS_MAX = 1000000,
};

static const char separator[] = ":::"; /* same as for pmstat ab */
static const char engines[] = "auto count uprobe ptrace callgrind";

/* Subcommands that accept an option: `modes` of the row. */
enum {
	OF_FILES = 1,
	OF_RUN = 2,
	OF_BISECT = 4,
	OF_TREND = 8,
	OF_IMPORT = 16,
	OF_ACK = 32,
	MEASURED = OF_RUN | OF_BISECT,
	COMPARED = OF_FILES | OF_RUN,
	SHOWN = COMPARED | OF_TREND,
	KEPT = OF_IMPORT | OF_ACK,
};

/* ---- values ------------------------------------------------------------------------------- */

int pmdiff_parse_engine(const char **out, const char *text, struct pm_error *err)
{
	if (pm_words_find(engines, text) < 0)
		return pmdiff_usage(
			err,
			"--engine %s: expected auto, count, uprobe, ptrace or "
			"callgrind",
			text);
	*out = text;
	return 0;
}

static int diff_set_engine(void *to, const struct pm_option_use *use,
			   struct pm_error *err)
{
	return pmdiff_parse_engine(pm_option_member(to, use), use->text, err);
}

static int diff_set_format(void *to, const struct pm_option_use *use,
			   struct pm_error *err)
{
	struct pmdiff_options *options = to;
	PM_CLEANUP(pm_str_release) struct pm_str names = { 0 };

	for (enum pm_import_format i = 0; i < PM_IMPORT_FORMATS; i++) {
		const char *name = pm_import_format_name(i);

		if (strcmp(name, use->text) == 0) {
			options->imported.format = i;
			return 0;
		}
		pm_str_printf(&names, "%s%s", pm_text_if(i > 0, ", "), name);
	}
	if (names.failed)
		return pm_error_no_memory(err);
	return pmdiff_usage(err, "--format %s: expected one of %s", use->text,
			    names.data);
}

static int diff_add_text(void *to, const struct pm_option_use *use, struct pm_error *err)
{
	struct pmdiff_texts *texts = pm_option_member(to, use);

	if (use->text[0] == '\0')
		return pmdiff_usage(err, "-e, --fn and --range need a name");
	if (pm_vec_push(&texts->list, use->text) < 0)
		return pm_error_no_memory(err);
	return 0;
}

static int diff_add_gates(void *to, const struct pm_option_use *use, struct pm_error *err)
{
	return pm_gates_parse(pm_option_member(to, use), use->text, use->label, err);
}

static const char *const form_names[PMDIFF_FORMS] = {
	[PMDIFF_TEXT] = "text",           [PMDIFF_JSON] = "--json",
	[PMDIFF_MARKDOWN] = "--markdown", [PMDIFF_JUNIT] = "--junit",
	[PMDIFF_SARIF] = "--sarif",       [PMDIFF_HTML] = "--html",
};

/* Two outputs must not be written to the same file. */
static int check_output_path(const struct pmdiff_options *options, enum pmdiff_form form,
			     const char *path, struct pm_error *err)
{
	for (size_t i = 0; i < PMDIFF_FORMS; i++) {
		const struct pmdiff_output *other = &options->outputs[i];

		if (i == form || !other->wanted)
			continue;
		if (!path && !other->path && i != PMDIFF_TEXT)
			return pmdiff_usage(err,
					    "%s and %s would share standard output: "
					    "%s=FILE parts them",
					    form_names[i], form_names[form],
					    form_names[i]);
		if (path && other->path && strcmp(path, other->path) == 0)
			return pmdiff_usage(err, "%s and %s would write the same file %s",
					    form_names[i], form_names[form], path);
	}
	return 0;
}

/* The option's `value` is the form. Without a file, it is written to standard output. */
static int diff_add_output(void *to, const struct pm_option_use *use,
			   struct pm_error *err)
{
	struct pmdiff_options *options = to;
	enum pmdiff_form form = use->option->value;
	const char *path = use->text;
	int ret;

	if (path && path[0] == '\0')
		return pm_parse_name(form_names[form], "a file", path, "pmdiff", err);
	if (path && strcmp(path, "-") == 0)
		path = NULL;
	ret = check_output_path(options, form, path, err);
	if (ret < 0)
		return ret;
	options->outputs[form] = (struct pmdiff_output){ .wanted = true, .path = path };
	if (!path)
		options->outputs[PMDIFF_TEXT].wanted = false;
	return 0;
}

/* ---- the table ---------------------------------------------------------------------------- */

#define TO(member) PM_OPTION_TO(struct pmdiff_options, member)
#define AT(member) PM_OPTION_AT(struct pmdiff_options, member)
#define REVISION   PM_OPTION_REVISION, .expected = "a revision"
#define FORM(form) .set = diff_add_output, .value = form

static const struct pm_option diff_option_rows[] = {
	PM_OPTION_GROUP("What to measure (run, bisect)"),
	{ "base", 0, "REV", "the commit to compare with", REVISION, TO(measured.revs[0]),
	  .modes = OF_RUN },
	{ "head", 0, "REV", "the commit that is judged (default: HEAD)", REVISION,
	  TO(measured.revs[1]), .modes = OF_RUN },
	{ "good", 0, "REV", "bisect: a commit that was fine", REVISION,
	  TO(measured.revs[0]), .modes = OF_BISECT },
	{ "bad", 0, "REV", "bisect: a commit that is not (default: HEAD)", REVISION,
	  TO(measured.revs[1]), .modes = OF_BISECT },
	{ "row", 0, "ROW",
	  "bisect: the number that moved, as a gate names it (default: the one that got "
	  "worse the most)",
	  TO(measured.row), .expected = "a row, as fn:parse:sim.Ir", .modes = OF_BISECT },
	{ "case", 0, "GLOB", "only these cases of pmdiff.json; bisect: this one",
	  TO(case_pattern), .expected = "a name or a glob",
	  .modes = MEASURED | OF_FILES },
	{ "build", 0, "COMMAND", "builds a commit; given to sh in its worktree",
	  PM_OPTION_COMMAND, TO(measured.build), .expected = "a command",
	  .modes = MEASURED },
	{ "repeat", 'r', "N", "runs of each side (default: 20; callgrind: 2)",
	  PM_OPTION_NUMBER, TO(measured.runs), .modes = MEASURED },
	{ "warmup", 'w', "N", "runs of each side before, uncounted", PM_OPTION_NUMBER,
	  TO(measured.warmups), .max = WARMUPS_MAX, .expected = "a number of runs",
	  .modes = MEASURED },
	{ "event", 'e', "EVENT[,…]", "events to count, as of pmstat, repeatable",
	  PM_OPTION_EVENT, .repeatable = true, .set = diff_add_text, AT(measured.events),
	  .modes = MEASURED },
	{ "fn", 0, "NAME", "in this function, repeatable", .repeatable = true,
	  .set = diff_add_text, AT(measured.functions), .modes = MEASURED },
	{ "range", 0, "RANGE", "in this range of code, repeatable", .repeatable = true,
	  .set = diff_add_text, AT(measured.ranges), .modes = MEASURED },
	{ "engine", 0, "HOW",
	  "auto: real counters where there are cycles to count, else callgrind (default); "
	  "count, uprobe, ptrace or callgrind",
	  PM_OPTION_WORD, engines, .set = diff_set_engine, AT(measured.engine),
	  .modes = MEASURED },
	{ "timeout", 0, "TIME", "of one run: 10s, 500ms, 2m, …", PM_OPTION_DURATION,
	  TO(measured.timeout_ns), .modes = MEASURED },

	PM_OPTION_GROUP("How to judge"),
	{ "gate", 0, "ROW=N%[,…]",
	  "how far a row may get worse, repeatable: sim.Ir=1%, wall=5%, fn:parse:calls=0%; "
	  "=+-N% both ways; ROW<=N how much it may be: sim.Ir<=1.2M; CASE//ROW of this "
	  "case: 'parse_*//sim.Ir=1%'",
	  .repeatable = true, .set = diff_add_gates, AT(gates),
	  .modes = COMPARED | OF_BISECT },
	{ "history-gate", 0, "ROW=N%[,…]",
	  "how far above the median of the last 50 commits of the history a row may be, "
	  "repeatable",
	  .repeatable = true, .set = diff_add_gates, AT(history_gates),
	  .modes = COMPARED },
	{ "acks", 0, "FILE",
	  "accepted regressions (default: pmdiff-acks.json at the top of the repository, if "
	  "there is one)",
	  PM_OPTION_FILE, TO(acked.file), .expected = "a file", .modes = SHOWN | OF_ACK },
	{ "force", 0, NULL, "compare what does not compare: other CPUs or engines",
	  TO(force), .modes = OF_FILES },
	{ "strict", 0, NULL, "exit with 4 where more runs are needed to tell", TO(strict),
	  .modes = COMPARED },
	{ "config", 0, "FILE",
	  "settings (default: pmdiff.json at the top of the repository, if there is one); "
	  "options win",
	  PM_OPTION_FILE, TO(config_path), .expected = "a file" },
	{ "history", 0, "WHERE",
	  "a directory with a document for each commit, or git-notes[:REF]: how far rows "
	  "differ anyway; run adds what it measures",
	  PM_OPTION_FOLDER, "git-notes", TO(history),
	  .expected = "a directory, or git-notes", .modes = SHOWN | OF_IMPORT },
	{ "trend", 0, NULL, "no comparison: the steps in that history", TO(action),
	  .value = PMDIFF_TREND },

	PM_OPTION_GROUP("import, ack"),
	{ "format", 0, "FORMAT",
	  "google-benchmark, criterion, hyperfine, pytest-benchmark, perf-stat, "
	  "iai-callgrind or auto (default): as the content says",
	  PM_OPTION_WORD,
	  "auto google-benchmark criterion hyperfine pytest-benchmark perf-stat "
	  "iai-callgrind",
	  .set = diff_set_format, .modes = OF_IMPORT },
	{ "output", 'o', "FILE", "where import writes (default: standard output)",
	  PM_OPTION_FILE, TO(imported.path), .expected = "a file", .modes = OF_IMPORT },
	{ "commit", 0, "REV",
	  "the commit that it is of; with it import adds the numbers to --history",
	  REVISION, TO(commit), .modes = KEPT },
	{ "reason", 0, "TEXT", "why ack accepts it", TO(acked.reason),
	  .expected = "a text", .modes = OF_ACK },
	{ "remove", 0, NULL, "ack: do not accept ROW any more", TO(acked.remove),
	  .modes = OF_ACK },

	PM_OPTION_GROUP("Output"),
	{ "json", 0, "[=FILE]",
	  "JSON (schema: man pmdiff). Without FILE this and the next four take the place of "
	  "the text",
	  PM_OPTION_FILE, FORM(PMDIFF_JSON), .modes = SHOWN },
	{ "markdown", 0, "[=FILE]", "for comments and step summaries", PM_OPTION_FILE,
	  FORM(PMDIFF_MARKDOWN), .modes = COMPARED },
	{ "junit", 0, "[=FILE]", "a test case for each row with a gate", PM_OPTION_FILE,
	  FORM(PMDIFF_JUNIT), .modes = COMPARED },
	{ "sarif", 0, "[=FILE]", "findings with file and line", PM_OPTION_FILE,
	  FORM(PMDIFF_SARIF), .modes = COMPARED },
	{ "html", 0, "[=FILE]", "one page, with plots; of recordings to browse in",
	  PM_OPTION_FILE, FORM(PMDIFF_HTML), .modes = SHOWN },
	{ "all", 0, NULL, "rows that have not changed, too", TO(all), .modes = SHOWN },
	{ "color", 0, "WHEN", "auto (default), always or never; see NO_COLOR",
	  PM_OPTION_WORD, "auto always never", .set = pm_color_set, AT(color) },
	{ "quiet", 'q', NULL, "the result only: no notes, no warnings", TO(quiet) },
	{ "help", 'h', NULL, "print this help", TO(action), .value = PMDIFF_HELP,
	  .last = true },
	{ "version", 0, NULL, "print the version", TO(action),
	  .value = PMDIFF_TELL_VERSION, .last = true },
};

const struct pm_option_table pmdiff_option_table = {
	"pmdiff",
	PM_OPTION_ROWS(diff_option_rows),
	.before =
		"usage: pmdiff [options] BASE.json NEW.json\n"
		"       pmdiff [options] BASE.json… ::: NEW.json…\n"
		"       pmdiff [options] AB.json\n"
		"       pmdiff run --base REV [options] [[--] COMMAND [ARGUMENT…]]\n"
		"       pmdiff bisect --good REV [options] [--] COMMAND [ARGUMENT…]\n"
		"       pmdiff --history WHERE --trend [options]\n"
		"       pmdiff import [--format FORMAT] FILE [-o OUT.json]\n"
		"       pmdiff ack ROW --reason TEXT RESULT.json\n"
		"\n"
		"Says what has changed between two sides, and whether that is more than chance:\n"
		"documents of `pmstat --json` (one or several a side, or one of `pmstat ab`), or\n"
		"two recordings of pmrec. `-` is standard input; .zst is read, too.\n"
		"run counts COMMAND, or the cases in pmdiff.json, in two commits of the\n"
		"repository, built side by side and run in turns; bisect finds the commit between\n"
		"two that moved a number. import reads results of google-benchmark, criterion,\n"
		"hyperfine, pytest-benchmark, perf stat and iai-callgrind; ack accepts a\n"
		"regression.\n",
	.after =
		"\n"
		"The exit status is 0 when nothing got worse, 1 for a regression, 2 for wrong\n"
		"usage or files, 3 when the sides do not compare, 4 with --strict when more runs\n"
		"are needed, and 125 when pmdiff, a build or COMMAND failed.\n",
	.modes = "run bisect import ack",
	.command_modes = "run bisect",
};

/* ---- modes -------------------------------------------------------------------------------- */

/* Rejects options of another mode, which the user probably had in mind. */
static int check_option_modes(const struct pmdiff_options *options, const bool *seen,
			      struct pm_error *err)
{
	static const struct {
		unsigned int mode;
		const char *name, *usage;
	} modes[] = {
		[PMDIFF_COMPARE] = { OF_FILES, "files", "BASE.json NEW.json" },
		[PMDIFF_RUN] = { OF_RUN, "pmdiff run", "run --base REV -- COMMAND" },
		[PMDIFF_BISECT] = { OF_BISECT, "pmdiff bisect",
				    "bisect --good REV -- COMMAND" },
		[PMDIFF_TREND] = { OF_TREND, "--trend", "--history WHERE --trend" },
		[PMDIFF_IMPORT] = { OF_IMPORT, "pmdiff import", "import FILE" },
		[PMDIFF_ACK] = { OF_ACK, "pmdiff ack",
				 "ack ROW --reason TEXT RESULT.json" },
	};

	for (size_t i = 0; i < PM_ARRAY_LEN(diff_option_rows); i++) {
		const struct pm_option *option = &diff_option_rows[i];
		size_t other = 0;

		if (!seen[i] || option->modes == 0 ||
		    option->modes & modes[options->action].mode)
			continue;
		pm_error_set(err, -EINVAL, "--%s does not go with %s", option->name,
			     modes[options->action].name);
		while (!(option->modes & modes[other].mode))
			other++;
		pm_error_fix(err, "pmdiff %s; or pmdiff --help", modes[other].usage);
		return -EINVAL;
	}
	return 0;
}

/* ---- the words after the options ---------------------------------------------------------- */

static int set_no_files_error(struct pm_error *err)
{
	pm_error_set(err, -EINVAL, "no files to compare");
	pm_error_fix(err, "pmdiff BASE.json NEW.json; pmdiff run --base REV -- COMMAND; "
			  "or pmdiff --help");
	return -EINVAL;
}

static int options_add_file(struct pmdiff_options *options, size_t side, const char *name,
			    struct pm_error *err)
{
	if (name[0] == '\0')
		return pm_parse_name("files", "a file", name, "pmdiff", err);
	if (pm_vec_push(&options->files[side].list, name) < 0)
		return pm_error_no_memory(err);
	return 0;
}

static int options_check_files(struct pmdiff_options *options, bool parted,
			       struct pm_error *err)
{
	size_t base = options->files[0].list.len, new = options->files[1].list.len;
	size_t streams = 0;

	for (size_t side = 0; side < PM_ARRAY_LEN(options->files); side++)
		for (size_t i = 0; i < options->files[side].list.len; i++)
			streams += strcmp(options->files[side].list.data[i], "-") == 0;
	if (parted && (base == 0 || new == 0))
		return pmdiff_usage(err, "%s: no files on the %s side", separator,
				    base == 0 ? "base" : "new");
	if (streams > 1)
		return pmdiff_usage(err, "standard input (-) can be read once only");
	return 0;
}

/* Assigns the files to the two sides. Without a separator, all were first stored for the
 * base. */
static int options_part_files(struct pmdiff_options *options, struct pm_error *err)
{
	struct pmdiff_texts *files = options->files;
	size_t len = files[0].list.len;

	if (len == 0)
		return set_no_files_error(err);
	if (len > 2)
		return pmdiff_usage(err,
				    "%zu files: %s parts those of the base from the "
				    "new ones",
				    len, separator);
	options->ab = len == 1;
	if (pm_vec_push(&files[1].list, files[0].list.data[len - 1]) < 0)
		return pm_error_no_memory(err);
	files[0].list.len = 1;
	return 0;
}

static int options_take_files(struct pmdiff_options *options, char **rest,
			      struct pm_error *err)
{
	bool parted = false;
	int ret = 0;

	for (; *rest && ret == 0; rest++) {
		if (strcmp(*rest, separator) != 0)
			ret = options_add_file(options, parted, *rest, err);
		else if (parted)
			ret = pmdiff_usage(err, "two sides are compared: one %s only",
					   separator);
		else
			parted = true;
	}
	if (ret == 0)
		ret = options_check_files(options, parted, err);
	if (ret < 0 || parted)
		return ret;
	return options_part_files(options, err);
}

/* Stores the words: import takes one; ack takes a row and optionally a result. */
static int options_take_words(struct pmdiff_options *options, char **rest,
			      struct pm_error *err)
{
	bool import = options->action == PMDIFF_IMPORT;
	const char **to[2] = { import ? &options->imported.file : &options->acked.row,
			       import ? NULL : &options->acked.result };

	for (size_t i = 0; rest[i]; i++) {
		if (i >= PM_ARRAY_LEN(to) || !to[i])
			return pmdiff_usage(err, "%s: one %s at a time", rest[i],
					    import ? "file" : "row");
		if (rest[i][0] == '\0')
			return pmdiff_usage(err, "expected a name, not an empty text");
		*to[i] = rest[i];
	}
	if (!import || options->imported.file)
		return 0;
	pm_error_set(err, -EINVAL, "no file to import");
	pm_error_fix(err, "pmdiff import FILE -o OUT.json");
	return -EINVAL;
}

static int options_take_rest(struct pmdiff_options *options, char **rest,
			     struct pm_error *err)
{
	switch (options->action) {
	case PMDIFF_COMPARE:
		return options_take_files(options, rest, err);
	case PMDIFF_RUN:
	case PMDIFF_BISECT:
		if (*rest && **rest == '\0')
			return pmdiff_usage(err, "the command has no name");
		if (*rest)
			options->measured.command = (const char *const *)rest;
		else
			options->measured.command = NULL;
		return 0;
	case PMDIFF_TREND:
		if (*rest)
			return pmdiff_usage(err, "%s: --trend reads a history, not files",
					    *rest);
		return 0;
	case PMDIFF_IMPORT:
	case PMDIFF_ACK:
		return options_take_words(options, rest, err);
	case PMDIFF_HELP:
	case PMDIFF_TELL_VERSION:
		break;
	}
	return 0;
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
	/* Files may come before options, but a command has its own options. */
	enum pm_options_order order = PM_OPTIONS_ANYWHERE;
	bool seen[PM_ARRAY_LEN(diff_option_rows)] = { 0 };
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
	if (options->action == PMDIFF_RUN || options->action == PMDIFF_BISECT)
		order = PM_OPTIONS_FIRST;
	ret = pm_options_parse(&pmdiff_option_table, options, argc, argv, order, seen,
			       err);
	if (ret != 0)
		return PM_MIN(ret, 0);
	ret = check_option_modes(options, seen, err);
	if (ret < 0)
		return ret;
	return options_take_rest(options, argv + optind, err);
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
