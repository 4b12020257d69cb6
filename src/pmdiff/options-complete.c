/* SPDX-License-Identifier: MIT */
/* What the configuration of a repository adds to the command line, and what is then missing. */
#include "history.h"
#include "options-internal.h"
#include "place.h"

#include <string.h>

static const char config_name[] = "pmdiff.json";
static const char notes[] = PMDIFF_HISTORY_NOTES;

static int no_memory(struct pm_error *err)
{
	return pm_error_set(err, -ENOMEM, "out of memory");
}

/* The one that was named, or the repository's, if it has one. */
static int read_config(struct pmdiff_options *options, struct pm_error *err)
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
		return no_memory(err);
	}
	if (access(path, F_OK) < 0)
		return 0;
	return pm_diff_config_read(&options->config, path, err);
}

/* ---- gates ----------------------------------------------------------------------------- */

static int parse_gate(struct pm_gates *gates, const struct pm_diff_gate *gate,
		      const char *path, struct pm_error *err)
{
	PM_AUTO_FREE char *text = NULL;
	int ret;

	if (asprintf(&text, "%s%s%s", gate->row,
		     strncmp(gate->limit, "<=", 2) == 0 ? "" : "=", gate->limit) < 0) {
		text = NULL;
		return no_memory(err);
	}
	ret = pm_gates_parse(gates, text, config_name, err);
	if (ret < 0)
		pm_error_where(err, path, gate->line);
	return ret;
}

/* Those of the command line come last, for the last one holds. */
static int add_gates(struct pmdiff_options *options, struct pm_error *err)
{
	const struct pm_diff_config *config = &options->config;
	struct pm_gates gates = { 0 };
	int ret = 0;

	for (size_t i = 0; i < config->gates.len && ret == 0; i++)
		ret = parse_gate(&gates, &config->gates.data[i], config->path, err);
	if (ret == 0 &&
	    pm_vec_reserve(&gates.list, gates.list.len + options->gates.list.len) < 0)
		ret = no_memory(err);
	if (ret < 0) {
		pm_gates_release(&gates);
		return ret;
	}
	for (size_t i = 0; i < options->gates.list.len; i++)
		gates.list.data[gates.list.len++] = options->gates.list.data[i];
	pm_vec_release(&options->gates.list);
	options->gates = gates;
	return 0;
}

/* ---- what is measured ------------------------------------------------------------------ */

static int add_texts(struct pmdiff_texts *to, char *const *from, size_t len,
		     struct pm_error *err)
{
	if (to->list.len > 0)
		return 0;
	for (size_t i = 0; i < len; i++)
		if (pm_vec_push(&to->list, from[i]) < 0)
			return no_memory(err);
	return 0;
}

static int add_command(struct pmdiff_options *options, struct pm_error *err)
{
	const struct pm_diff_config *config = &options->config;

	if (options->measured.command || config->command.len == 0)
		return 0;
	for (size_t i = 0; i <= config->command.len; i++)
		if (pm_vec_push(&options->words, i < config->command.len
							 ? config->command.data[i]
							 : NULL) < 0)
			return no_memory(err);
	options->measured.command = options->words.data;
	return 0;
}

static int add_measured(struct pmdiff_options *options, struct pm_error *err)
{
	const struct pm_diff_config *config = &options->config;
	struct pmdiff_measured *measured = &options->measured;
	int ret = 0;

	if (!measured->build)
		measured->build = config->build;
	if (measured->runs == 0)
		measured->runs = config->runs;
	if (measured->warmups == UINT64_MAX && config->warmups_set)
		measured->warmups = config->warmups;
	if (!measured->engine && config->engine)
		ret = pmdiff_parse_engine(&measured->engine, config->engine, err);
	if (ret < 0)
		pm_error_where(err, config->path, -1);
	if (!measured->engine)
		measured->engine = "auto";
	if (ret == 0)
		ret = add_texts(&measured->events, config->events.data,
				config->events.len, err);
	if (ret == 0)
		ret = add_texts(&measured->functions, config->functions.data,
				config->functions.len, err);
	if (ret == 0)
		ret = add_texts(&measured->ranges, config->ranges.data,
				config->ranges.len, err);
	return ret < 0 ? ret : add_command(options, err);
}

/* ---- what is missing ------------------------------------------------------------------- */

static int check_measured(struct pmdiff_options *options, struct pm_error *err)
{
	struct pmdiff_measured *measured = &options->measured;
	bool run = options->action == PMDIFF_RUN;

	if (!measured->revs[0]) {
		pm_error_set(err, -EINVAL, "%s",
			     run ? "nothing to compare with: --base is missing"
				 : "--good is missing: a commit that was fine");
		pm_error_fix(err, "%s",
			     run ? "pmdiff run --base main -- COMMAND"
				 : "pmdiff bisect --good v1.0 --bad HEAD -- COMMAND");
		return -EINVAL;
	}
	if (!measured->revs[1])
		measured->revs[1] = "HEAD";
	if (measured->command)
		return 0;
	pm_error_set(err, -EINVAL, "no command to measure, and no \"command\" in %s",
		     options->config.path ? options->config.path : config_name);
	pm_error_fix(err, "pmdiff %s … -- COMMAND", run ? "run" : "bisect");
	return -EINVAL;
}

/* A directory of the configuration's is one beside it, wherever we are. */
static int add_history(struct pmdiff_options *options, struct pm_error *err)
{
	struct pm_diff_config *config = &options->config;
	const char *end = config->path ? strrchr(config->path, '/') : NULL;
	char *path;

	if (options->history || !config->history)
		return 0;
	if (end && config->history[0] != '/' &&
	    strncmp(config->history, notes, sizeof(notes) - 1) != 0) {
		if (asprintf(&path, "%.*s/%s", (int)(end - config->path), config->path,
			     config->history) < 0)
			return no_memory(err);
		free(config->history);
		config->history = path;
	}
	options->history = config->history;
	return 0;
}

int pmdiff_options_complete(struct pmdiff_options *options, struct pm_error *err)
{
	int ret = read_config(options, err);

	if (ret == 0)
		ret = add_gates(options, err);
	if (ret == 0)
		ret = add_history(options, err);
	/* Where nothing is measured, too: what is wrong in the file is told at once. */
	if (ret == 0)
		ret = add_measured(options, err);
	if (ret < 0)
		return ret;
	if (options->action == PMDIFF_RUN || options->action == PMDIFF_BISECT)
		return check_measured(options, err);
	if (options->action == PMDIFF_TREND && !options->history) {
		pm_error_set(err, -EINVAL, "--trend needs a history");
		pm_error_fix(err, "pmdiff --history DIRECTORY --trend");
		return -EINVAL;
	}
	return 0;
}
