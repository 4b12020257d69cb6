/* SPDX-License-Identifier: MIT */
/* Adds the configuration of the repository to the command line, and checks that nothing
 * is missing. */
#include "ack.h"
#include "history.h"
#include "options-parts.h"
#include "place.h"
#include "pm/suite.h"

#include <math.h>
#include <string.h>

static const char config_name[] = "pmdiff.json";
static const char notes[] = PMDIFF_HISTORY_NOTES;

/* Reads the configuration that was named, or that of the repository, if there is one. */
static int options_read_config(struct pmdiff_options *options, struct pm_error *err)
{
	PM_AUTO_FREE char *top = NULL, *path = NULL;
	int ret;

	if (options->config_path)
		return pm_diff_config_read(&options->config, options->config_path, err);
	ret = pmdiff_find_top(&top, err);
	if (ret < 0 || !top)
		return ret;
	if (asprintf(&path, "%s/%s", top, config_name) < 0) {
		path = NULL;
		return pm_error_no_memory(err);
	}
	if (access(path, F_OK) < 0)
		return 0;
	return pm_diff_config_read(&options->config, path, err);
}

/* ---- gates ----------------------------------------------------------------------------- */

static int options_parse_gate(struct pm_gates *gates, const struct pm_diff_gate *gate,
			      const char *path, struct pm_error *err)
{
	PM_AUTO_FREE char *text = NULL;
	int ret;

	if (asprintf(&text, "%s%s%s", gate->row,
		     pm_text_if(strncmp(gate->limit, "<=", 2) != 0, "="),
		     gate->limit) < 0) {
		text = NULL;
		return pm_error_no_memory(err);
	}
	ret = pm_gates_parse(gates, text, config_name, err);
	if (ret < 0)
		pm_error_where(err, path, gate->line);
	return ret;
}

/* Parses the gates of one case. Its name is not a pattern, although
 * it may look like one. */
static int options_parse_case_gates(struct pm_gates *gates,
				    const struct pm_diff_case *one, const char *path,
				    struct pm_error *err)
{
	size_t before = gates->list.len;
	int ret = 0;

	for (size_t i = 0; i < one->measure.gates.len && ret == 0; i++)
		ret = options_parse_gate(gates, &one->measure.gates.data[i], path, err);
	for (size_t i = before; i < gates->list.len && ret == 0; i++) {
		struct pm_gate *gate = &gates->list.data[i];

		if (gate->case_name) {
			ret = pm_error_set(err, -EINVAL,
					   "\"%.100s" PM_CASE_SEPARATOR
					   "%.100s\": the gate of a "
					   "case names another case",
					   gate->case_name, gate->event);
			pm_error_where(err, path, one->line);
			break;
		}
		gate->case_name = strdup(one->name);
		gate->case_exact = true;
		if (!gate->case_name)
			ret = pm_error_no_memory(err);
	}
	return ret;
}

/* Moves the gates of @more to the end of @to. */
static int move_gates_to_end(struct pm_gates *to, struct pm_gates *more,
			     struct pm_error *err)
{
	if (pm_vec_reserve(&to->list, to->list.len + more->list.len) < 0)
		return pm_error_no_memory(err);
	for (size_t i = 0; i < more->list.len; i++)
		to->list.data[to->list.len++] = more->list.data[i];
	pm_vec_release(&more->list);
	return 0;
}

/* Adds all gates. The last one that matches applies: gates of the command line come last,
 * and those of a case after the general ones. */
static int options_add_gates(struct pmdiff_options *options, struct pm_error *err)
{
	const struct pm_diff_config *config = &options->config;
	struct pm_gates gates = { 0 };
	int ret = 0;

	for (size_t i = 0; i < config->all.gates.len && ret == 0; i++)
		ret = options_parse_gate(&gates, &config->all.gates.data[i], config->path,
					 err);
	for (size_t i = 0; i < config->cases.len && ret == 0; i++)
		ret = options_parse_case_gates(&gates, &config->cases.data[i],
					       config->path, err);
	if (ret == 0)
		ret = move_gates_to_end(&gates, &options->gates, err);
	if (ret < 0)
		pm_gates_release(&gates);
	else
		options->gates = gates;
	return ret;
}

/* Rejects a hard limit, which does not refer to a history. */
static int options_check_history_gates(const struct pmdiff_options *options,
				       struct pm_error *err)
{
	for (size_t i = 0; i < options->history_gates.list.len; i++) {
		const struct pm_gate *gate = &options->history_gates.list.data[i];

		if (isnan(gate->at_most))
			continue;
		pm_error_set(err, -EINVAL,
			     "%s: a gate over the history is a change, as 3%%",
			     gate->event);
		pm_error_where(err, gate->source, -1);
		return -EINVAL;
	}
	return 0;
}

static int options_add_history_gates(struct pmdiff_options *options, struct pm_error *err)
{
	const struct pm_diff_measure *all = &options->config.all;
	struct pm_gates gates = { 0 };
	bool typed = options->history_gates.list.len > 0;
	int ret = 0;

	if (typed && !options->history) {
		pm_error_set(err, -EINVAL, "--history-gate needs a history");
		pm_error_fix(err, "--history DIRECTORY, or git-notes");
		return -EINVAL;
	}
	for (size_t i = 0; i < all->history_gates.len && ret == 0; i++)
		ret = options_parse_gate(&gates, &all->history_gates.data[i],
					 options->config.path, err);
	if (ret == 0)
		ret = move_gates_to_end(&gates, &options->history_gates, err);
	if (ret < 0) {
		pm_gates_release(&gates);
		return ret;
	}
	options->history_gates = gates;
	return options_check_history_gates(options, err);
}

/* ---- what to measure ------------------------------------------------------------------- */

static int texts_add_if_empty(struct pmdiff_texts *to, char *const *from, size_t len,
			      struct pm_error *err)
{
	if (to->list.len > 0)
		return 0;
	for (size_t i = 0; i < len; i++)
		if (pm_vec_push(&to->list, from[i]) < 0)
			return pm_error_no_memory(err);
	return 0;
}

/* @words owns the list that @measured borrows. */
static int measured_add_command(struct pmdiff_measured *measured,
				struct pmdiff_texts *words,
				const struct pm_diff_measure *from, struct pm_error *err)
{
	if (measured->command || from->command.len == 0)
		return 0;
	for (size_t i = 0; i < from->command.len; i++)
		if (pm_vec_push(&words->list, from->command.data[i]) < 0)
			return pm_error_no_memory(err);
	if (pm_vec_push(&words->list, NULL) < 0)
		return pm_error_no_memory(err);
	measured->command = words->list.data;
	return 0;
}

/* Sets the values that @measured does not have yet. */
static int measured_add_defaults(struct pmdiff_measured *measured,
				 struct pmdiff_texts *words,
				 const struct pm_diff_measure *from, struct pm_error *err)
{
	int ret = 0;

	if (measured->runs == 0)
		measured->runs = from->runs;
	if (measured->warmups == UINT64_MAX && from->warmups_set)
		measured->warmups = from->warmups;
	if (!measured->setup)
		measured->setup = from->setup;
	if (measured->harness == PM_DIFF_HARNESS_UNSET)
		measured->harness = from->harness;
	if (measured->part == PM_DIFF_PART_UNSET)
		measured->part = from->measured;
	if (!measured->engine && from->engine)
		ret = pmdiff_parse_engine(&measured->engine, from->engine, err);
	if (ret == 0 && measured->timeout_ns == 0 && from->timeout)
		ret = pm_parse_duration(&measured->timeout_ns, "\"timeout\"",
					from->timeout, "pmdiff", err);
	if (ret == 0)
		ret = texts_add_if_empty(&measured->events, from->events.data,
					 from->events.len, err);
	if (ret == 0)
		ret = texts_add_if_empty(&measured->functions, from->functions.data,
					 from->functions.len, err);
	if (ret == 0)
		ret = texts_add_if_empty(&measured->ranges, from->ranges.data,
					 from->ranges.len, err);
	if (ret < 0)
		return ret;
	return measured_add_command(measured, words, from, err);
}

static int texts_copy(struct pmdiff_texts *to, const struct pmdiff_texts *from,
		      struct pm_error *err)
{
	for (size_t i = 0; i < from->list.len; i++)
		if (pm_vec_push(&to->list, from->list.data[i]) < 0)
			return pm_error_no_memory(err);
	return 0;
}

/* Each case gets a copy of the values of the command line. */
static int measured_copy(struct pmdiff_measured *to, const struct pmdiff_measured *from,
			 struct pm_error *err)
{
	int ret;

	*to = *from;
	to->events = to->functions = to->ranges = (struct pmdiff_texts){ 0 };
	ret = texts_copy(&to->events, &from->events, err);
	if (ret == 0)
		ret = texts_copy(&to->functions, &from->functions, err);
	if (ret < 0)
		return ret;
	return texts_copy(&to->ranges, &from->ranges, err);
}

static int options_add_case(struct pmdiff_options *options,
			    const struct pm_diff_case *from, struct pm_error *err)
{
	struct pmdiff_case *one;
	int ret;

	if (pm_vec_push(&options->cases, (struct pmdiff_case){ .name = from->name }) < 0)
		return pm_error_no_memory(err);
	one = &options->cases.data[options->cases.len - 1];
	ret = measured_copy(&one->measured, &options->measured, err);
	if (ret == 0)
		ret = measured_add_defaults(&one->measured, &one->words, &from->measure,
					    err);
	if (ret == 0)
		ret = measured_add_defaults(&one->measured, &one->words,
					    &options->config.all, err);
	if (ret < 0)
		pm_error_where(err, options->config.path, from->line);
	if (!one->measured.engine)
		one->measured.engine = "auto";
	if (ret == 0 && !one->measured.command) {
		ret = pm_error_set(err, -EINVAL, "the case \"%.200s\" has no \"command\"",
				   from->name);
		pm_error_where(err, options->config.path, from->line);
	}
	return ret;
}

/* Adds the cases of the configuration, unless the command line has a command, which is
 * measured instead. */
static int options_add_cases(struct pmdiff_options *options, struct pm_error *err)
{
	const struct pm_diff_config *config = &options->config;
	int ret = 0;

	for (size_t i = 0; i < config->cases.len && ret == 0; i++)
		ret = options_add_case(options, &config->cases.data[i], err);
	return ret;
}

static int options_add_measured(struct pmdiff_options *options, struct pm_error *err)
{
	struct pmdiff_measured *measured = &options->measured;
	bool command = measured->command != NULL;
	int ret = 0;

	if (!measured->build)
		measured->build = options->config.build;
	if (!command)
		ret = options_add_cases(options, err);
	if (ret < 0)
		return ret;
	ret = measured_add_defaults(measured, &options->words, &options->config.all, err);
	if (ret < 0)
		pm_error_where(err, options->config.path, -1);
	if (!measured->engine)
		measured->engine = "auto";
	return ret;
}

/* ---- checks ---------------------------------------------------------------------------- */

/* Chooses the case of a bisection, which uses one number and therefore one case. */
static int options_choose_case(struct pmdiff_options *options, struct pm_error *err)
{
	struct pmdiff_case *chosen = NULL;
	size_t wanted = 0;

	for (size_t i = 0; i < options->cases.len; i++)
		if (pmdiff_is_case_wanted(options, options->cases.data[i].name, NULL)) {
			chosen = &options->cases.data[i];
			wanted++;
		}
	if (wanted != 1) {
		pm_error_set(err, -EINVAL,
			     "--case means %zu of %zu cases, and bisect "
			     "measures one",
			     wanted, options->cases.len);
		pm_error_fix(err, "--case '%s'", options->cases.data[0].name);
		return -EINVAL;
	}
	if (chosen->measured.harness > PM_DIFF_HARNESS_NONE)
		return pm_error_set(
			err, -EINVAL,
			"the case \"%.200s\" has cases of its own (\"harness\"): "
			"bisect needs a command",
			chosen->name);
	chosen->measured.revs[0] = options->measured.revs[0];
	chosen->measured.revs[1] = options->measured.revs[1];
	pm_vec_release(&options->measured.events.list);
	pm_vec_release(&options->measured.functions.list);
	pm_vec_release(&options->measured.ranges.list);
	options->measured = chosen->measured;
	chosen->measured.events = chosen->measured.functions = chosen->measured.ranges =
		(struct pmdiff_texts){ 0 };
	return 0;
}

static int set_no_case_error(const struct pmdiff_options *options, struct pm_error *err)
{
	if (options->cases.len == 0) {
		pm_error_set(err, -EINVAL, "--case %.200s: %s", options->case_pattern,
			     options->measured.command
				     ? "a command of its own is measured without cases"
				     : "there are no cases");
		pm_error_fix(err, "\"cases\" in %s", config_name);
	} else {
		pm_error_set(err, -EINVAL, "--case %.200s means none of %zu cases",
			     options->case_pattern, options->cases.len);
		pm_error_where(err, options->config.path, -1);
		pm_error_fix(err, "--case '%s'", options->cases.data[0].name);
	}
	return -EINVAL;
}

/* Checks that --case matches a case. The cases of a harness are not known yet. */
static int options_check_cases(struct pmdiff_options *options, struct pm_error *err)
{
	bool any = options->case_pattern == NULL;

	for (size_t i = 0; i < options->cases.len; i++)
		any = any ||
		      options->cases.data[i].measured.harness > PM_DIFF_HARNESS_NONE ||
		      pmdiff_is_case_wanted(options, options->cases.data[i].name, NULL);
	if (!any)
		return set_no_case_error(options, err);
	if (options->action == PMDIFF_BISECT && options->cases.len > 0)
		return options_choose_case(options, err);
	return 0;
}

static int options_check_measured(struct pmdiff_options *options, struct pm_error *err)
{
	struct pmdiff_measured *measured = &options->measured;
	bool run = options->action == PMDIFF_RUN;
	int ret = options_check_cases(options, err);

	if (ret < 0)
		return ret;

	if (!measured->revs[0]) {
		if (run) {
			pm_error_set(err, -EINVAL,
				     "nothing to compare with: --base is missing");
			pm_error_fix(err, "pmdiff run --base main -- COMMAND");
		} else {
			pm_error_set(err, -EINVAL,
				     "--good is missing: a commit that was fine");
			pm_error_fix(err,
				     "pmdiff bisect --good v1.0 --bad HEAD -- COMMAND");
		}
		return -EINVAL;
	}
	if (!measured->revs[1])
		measured->revs[1] = "HEAD";
	for (size_t i = 0; i < options->cases.len; i++) {
		options->cases.data[i].measured.revs[0] = measured->revs[0];
		options->cases.data[i].measured.revs[1] = measured->revs[1];
	}
	if (measured->command || options->cases.len > 0)
		return 0;
	pm_error_set(err, -EINVAL, "no command to measure, and no \"command\" in %s",
		     pm_text_or(options->config.path, config_name));
	pm_error_fix(err, "pmdiff %s … -- COMMAND", run ? "run" : "bisect");
	return -EINVAL;
}

/* Adds the configuration's history. A directory is relative to the configuration, not to
 * the working directory. */
static int options_add_history(struct pmdiff_options *options, struct pm_error *err)
{
	struct pm_diff_config *config = &options->config;
	const char *end = NULL;
	char *path;

	if (config->path)
		end = strrchr(config->path, '/');
	if (options->history || !config->history)
		return 0;
	/* import only writes to the history if the user has named a commit. */
	if (options->action == PMDIFF_IMPORT && !options->commit)
		return 0;
	if (end && config->history[0] != '/' &&
	    strncmp(config->history, notes, sizeof(notes) - 1) != 0) {
		if (asprintf(&path, "%.*s/%s", (int)(end - config->path), config->path,
			     config->history) < 0)
			return pm_error_no_memory(err);
		free(config->history);
		config->history = path;
	}
	options->history = config->history;
	return 0;
}

/* Whether accepted regressions matter for this command. */
static bool are_rows_judged(const struct pmdiff_options *options)
{
	return options->action == PMDIFF_COMPARE || options->action == PMDIFF_RUN ||
	       options->action == PMDIFF_TREND;
}

int pmdiff_options_complete(struct pmdiff_options *options, struct pm_error *err)
{
	int ret = options_read_config(options, err);

	if (ret == 0)
		ret = options_add_gates(options, err);
	if (ret == 0)
		ret = options_add_history(options, err);
	if (ret == 0)
		ret = options_add_history_gates(options, err);
	if (ret == 0 && are_rows_judged(options))
		ret = pmdiff_acks_read(&options->acks, options, err);
	/* This is also done if nothing is measured, so that mistakes in the file are
	 * reported immediately. */
	if (ret == 0)
		ret = options_add_measured(options, err);
	if (ret < 0)
		return ret;
	if (options->action == PMDIFF_RUN || options->action == PMDIFF_BISECT)
		return options_check_measured(options, err);
	if (options->action == PMDIFF_TREND && !options->history) {
		pm_error_set(err, -EINVAL, "--trend needs a history");
		pm_error_fix(err, "pmdiff --history DIRECTORY --trend");
		return -EINVAL;
	}
	return 0;
}
