/* SPDX-License-Identifier: MIT */
#include "measure.h"

#include <fcntl.h>
#include <string.h>
#include <sys/statvfs.h>

#include "judge.h"
#include "log.h"
#include "process.h"
#include "say.h"

enum {
	RUN_LINES = 40, /* last lines of a command's output that are printed if it
	                 * fails */
	PADDING_MAX = 4096, /* in bytes; shifts the stack, whose position affects times */
	NS_PER_MS = 1000000,
};

/* SplitMix64 by Steele, Lea and Flood (2014). */
static uint64_t next_random_number(struct pmdiff_meter *meter)
{
	uint64_t z = meter->random += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return z ^ z >> 31;
}

/* ---- one run ------------------------------------------------------------------------- */

struct words {
	PM_VEC(const char *) list;
};

static int words_add_option_texts(struct words *words, const char *option,
				  const struct pmdiff_texts *texts)
{
	int ret = 0;

	for (size_t i = 0; i < texts->list.len && ret == 0; i++) {
		ret = pm_vec_push(&words->list, option);
		if (ret == 0)
			ret = pm_vec_push(&words->list, texts->list.data[i]);
	}
	return ret;
}

static int words_add_list(struct words *words, const char *const *list)
{
	int ret = 0;

	for (; *list && ret == 0; list++)
		ret = pm_vec_push(&words->list, *list);
	return ret;
}

static bool is_function_missing(const struct pmdiff_tree *tree, const char *name)
{
	for (size_t i = 0; i < tree->missing.len; i++)
		if (strcmp(tree->missing.data[i].name, name) == 0)
			return true;
	return false;
}

static int tree_add_missing(struct pmdiff_tree *tree, const char *name, const char *more)
{
	struct pmdiff_missing missing = { name, strdup(more) };
	int ret = -ENOMEM;

	if (missing.more)
		ret = pm_vec_push(&tree->missing, missing);
	if (ret < 0)
		free(missing.more);
	return ret;
}

void pmdiff_tree_forget_missing(struct pmdiff_tree *tree)
{
	for (size_t i = 0; i < tree->missing.len; i++)
		free(tree->missing.data[i].more);
	pm_vec_release(&tree->missing);
}

static int words_add_functions(struct words *words, const struct pmdiff_meter *meter,
			       const struct pmdiff_tree *tree)
{
	const struct pmdiff_texts *functions = &meter->measured->functions;
	int ret = 0;

	if (meter->all_functions)
		return words_add_list(words, (const char *const[]){ "--fn", "*", NULL });
	for (size_t i = 0; i < functions->list.len && ret == 0; i++) {
		const char *name = functions->list.data[i];

		if (!is_function_missing(tree, name))
			ret = words_add_list(words,
					     (const char *const[]){ "--fn", name, NULL });
	}
	return ret;
}

static int fill_pmstat_words(struct words *words, const struct pmdiff_meter *meter,
			     const struct pmdiff_tree *tree, const char *timeout,
			     const char *marked)
{
	const struct pmdiff_measured *measured = meter->measured;
	int ret = words_add_list(words,
				 (const char *const[]){ meter->pmstat, "--json", "-q",
							"-o", meter->document, NULL });

	if (ret == 0 && meter->engine)
		ret = words_add_list(
			words, (const char *const[]){ "--engine", meter->engine, NULL });
	if (ret == 0 && marked)
		ret = pm_vec_push(&words->list, marked);
	if (ret == 0 && timeout)
		ret = words_add_list(words,
				     (const char *const[]){ "--timeout", timeout, NULL });
	if (ret == 0)
		ret = words_add_option_texts(words, "-e", &measured->events);
	if (ret == 0)
		ret = words_add_functions(words, meter, tree);
	if (ret == 0)
		ret = words_add_option_texts(words, "--range", &measured->ranges);
	if (ret == 0)
		ret = pm_vec_push(&words->list, "--");
	if (ret == 0)
		ret = words_add_list(words, measured->command);
	if (ret < 0)
		return ret;
	return pm_vec_push(&words->list, NULL);
}

/* Returns "PMDIFF_PADDING=xxx…". The length of the environment affects the position of
 * data on the stack and therefore, by chance, the speed of the command. Each run gets
 * another length. In a simulation the length is constant: the loader searches the
 * environment, so results that are otherwise always the same would vary. */
static char *make_padding_variable(struct pmdiff_meter *meter)
{
	static const char name[] = "PMDIFF_PADDING=";
	size_t len = meter->simulated ? 0 : next_random_number(meter) % PADDING_MAX;
	char *text = malloc(sizeof(name) + len);

	if (!text)
		return NULL;
	memcpy(text, name, sizeof(name) - 1);
	memset(text + sizeof(name) - 1, 'x', len);
	text[sizeof(name) - 1 + len] = '\0';
	return text;
}

int pmdiff_meter_marked(char **out, const struct pmdiff_meter *meter)
{
	const struct pmdiff_measured *measured = meter->measured;
	bool functions = measured->marks && meter->simulated;

	*out = NULL;
	if (measured->part != PM_DIFF_PART_MARKED && !functions)
		return 0;
	if (asprintf(out, "--marked%s%s", pm_text_if(functions, "="),
		     pm_text_if(functions, measured->marks)) < 0) {
		*out = NULL;
		return -ENOMEM;
	}
	return 0;
}

/* Returns the exit status of pmstat, or a negative errno. */
static int run_pmstat(struct pmdiff_meter *meter, const struct pmdiff_tree *tree)
{
	uint64_t timeout_ns = meter->measured->timeout_ns;
	PM_AUTO_FREE char *scratch = NULL, *pad = make_padding_variable(meter),
			  *timeout = NULL;
	PM_AUTO_FREE char *marked = NULL;
	PM_AUTO_CLOSE int log = open(
		meter->log, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0600);
	struct pmdiff_process process = { .dir = tree->path, .in = -1 };
	struct words words = { 0 };
	pid_t pid;
	int ret = 0;

	if (log < 0)
		ret = -errno;
	if (asprintf(&scratch, "TMPDIR=%s", meter->scratch) < 0)
		scratch = NULL;
	if (timeout_ns &&
	    asprintf(&timeout, "%llums",
		     (unsigned long long)(timeout_ns + NS_PER_MS - 1) / NS_PER_MS) < 0)
		timeout = NULL;
	if (ret == 0 && (!scratch || !pad || (timeout_ns && !timeout)))
		ret = -ENOMEM;
	if (ret == 0)
		ret = pmdiff_meter_marked(&marked, meter);
	if (ret == 0)
		ret = fill_pmstat_words(&words, meter, tree, timeout, marked);
	if (ret == 0) {
		process.argv = words.list.data;
		process.env = (const char *const[]){ scratch, pad, NULL };
		process.out = process.err = log;
		ret = pmdiff_process_start(&process, &pid);
	}
	pm_vec_release(&words.list);
	if (ret < 0)
		return ret;
	return pmdiff_process_wait(pid);
}

/* ---- failures ------------------------------------------------------------------------ */

static int set_bad_commit_error(struct pm_error *err, const struct pmdiff_tree *tree,
				const char *what)
{
	if (!tree->role)
		return pm_error_set(err, PMDIFF_BAD_COMMIT, "%s", what);
	return pm_error_set(err, PMDIFF_BAD_COMMIT,
			    "%s, " PMDIFF_SHORT_HASH " (%.100s): %s", tree->role,
			    tree->commit->hash, tree->commit->subject, what);
}

static int set_command_missing_error(struct pm_error *err,
				     const struct pmdiff_meter *meter,
				     struct pmdiff_tree *tree)
{
	char what[PM_ERROR_TEXT_MAX];

	tree->absent = true;
	snprintf(what, sizeof(what),
		 "%.200s is not in its worktree, at whose top it is run%s",
		 meter->measured->command[0],
		 meter->options->measured.build ? ": does the build make it?"
						: ", and nothing was built");
	set_bad_commit_error(err, tree, what);
	pm_error_fix(err, "--build CMD, which makes it; or commit it");
	return PMDIFF_BAD_COMMIT;
}

/* Sets @err to the reason that pmstat has printed. */
static int set_pmstat_error(struct pm_error *err, const struct pmdiff_meter *meter,
			    const struct pmdiff_tree *tree)
{
	PM_AUTO_FREE char *why = pmdiff_log_find(meter->log, "pmstat: ");
	PM_AUTO_FREE char *fix = pmdiff_log_find(meter->log, "pmstat: try: ");
	char what[PM_ERROR_TEXT_MAX];
	struct statvfs disk;

	if (!why && !meter->brief)
		pmdiff_log_show(meter->log, RUN_LINES);
	snprintf(what, sizeof(what), "pmstat: %.400s",
		 pm_text_or(why, "failed, see above"));
	set_bad_commit_error(err, tree, what);
	if (fix)
		pm_error_fix(err, "%s", fix);
	else if (statvfs(tree->path, &disk) == 0 && (disk.f_flag & ST_NOEXEC))
		pm_error_fix(err, "TMPDIR=DIR pmdiff …, where programs may be run");
	return PMDIFF_BAD_COMMIT;
}

static int set_run_error(struct pm_error *err, const struct pmdiff_meter *meter,
			 const struct pmdiff_tree *tree, const struct pm_stat_run *run)
{
	const char *command = meter->measured->command[0];
	char what[PM_ERROR_TEXT_MAX];

	if (run->stopped && meter->measured->timeout_ns) {
		snprintf(what, sizeof(what), "%.200s took longer than --timeout allows",
			 command);
		return set_bad_commit_error(err, tree, what);
	}
	if (!meter->brief)
		pmdiff_log_show(meter->log, RUN_LINES);
	if (run->exit_code >= 0)
		snprintf(what, sizeof(what), "%.200s failed with status %d", command,
			 run->exit_code);
	else
		snprintf(what, sizeof(what), "%.200s was ended by signal %d", command,
			 run->signal);
	return set_bad_commit_error(err, tree, what);
}

/* ---- the document of a run ----------------------------------------------------------- */

/* Converts a path in a worktree to the corresponding path in the user's working tree. */
static int set_path_of_user(char **path, const char *tree, const char *top)
{
	size_t len = strlen(tree);
	char *own;

	if (!*path || strncmp(*path, tree, len) != 0 || (*path)[len] != '/')
		return 0;
	if (asprintf(&own, "%s%s", pm_text_or_empty(top), *path + len + (top ? 0 : 1)) <
	    0)
		return -ENOMEM;
	free(*path);
	*path = own;
	return 0;
}

static int set_stat_paths(struct pm_stat *stat, const char *tree, const char *top)
{
	int ret = 0;

	for (size_t i = 0; i < stat->scopes.len && ret == 0; i++) {
		struct pm_stat_scope *scope = &stat->scopes.data[i];

		ret = set_path_of_user(&scope->module, tree, top);
		if (ret == 0)
			ret = set_path_of_user(&scope->file, tree, top);
	}
	return ret;
}

static int set_stat_commit(struct pm_stat *stat, const struct pmdiff_commit *commit)
{
	for (size_t i = 0; i < stat->subjects.len; i++) {
		struct pm_stat_subject *subject = &stat->subjects.data[i];

		free(subject->commit);
		subject->commit = strdup(commit->hash);
		if (!subject->commit)
			return -ENOMEM;
		subject->commit_time = commit->time;
		subject->dirty = 0;
	}
	return 0;
}

static int read_pmstat_document(struct pm_stat *out, const struct pmdiff_meter *meter,
				const struct pmdiff_tree *tree, struct pm_error *err)
{
	PM_AUTO_CLOSE int fd = open(meter->document, O_RDONLY | O_CLOEXEC);
	struct pm_stat stat;
	int ret;

	if (fd < 0)
		return pm_error_set(err, -errno, "no document of pmstat: %s",
				    strerror(errno));
	ret = pm_stat_read(&stat, fd, meter->document, err);
	if (ret < 0)
		return ret;
	if (stat.runs.len == 0)
		ret = set_bad_commit_error(err, tree, "pmstat has not run it");
	else if (!pm_stat_run_ended_well(&stat.runs.data[0]))
		ret = set_run_error(err, meter, tree, &stat.runs.data[0]);
	else if (set_stat_paths(&stat, tree->path, meter->top) < 0 ||
		 set_stat_commit(&stat, tree->commit) < 0)
		ret = pm_error_no_memory(err);
	if (ret < 0) {
		pm_stat_release(&stat);
		return ret;
	}
	stat.warmups = (uint32_t)meter->warmups;
	*out = stat;
	return 0;
}

/* Whether pmstat failed because of a function that this commit does not have, for example
 * because the function is new in the other commit. If it did, the function is no longer
 * requested here. At least one function must remain, because otherwise engines that only
 * see functions would not be the same on both sides. */
static bool learn_missing_function(struct pmdiff_meter *meter, struct pmdiff_tree *tree)
{
	const struct pmdiff_texts *functions = &meter->measured->functions;
	PM_AUTO_FREE char *why = pmdiff_log_find(meter->log, "pmstat: ");

	if (!why || meter->all_functions ||
	    (!meter->simulated && tree->missing.len + 1 >= functions->list.len))
		return false;
	for (size_t i = 0; i < functions->list.len; i++) {
		const char *name = functions->list.data[i];
		PM_AUTO_FREE char *said = NULL;
		const char *at;

		if (asprintf(&said, "no function \"%.*s\"", (int)strcspn(name, "@"),
			     name) < 0)
			said = NULL;
		if (said)
			at = strstr(why, said);
		else
			at = NULL;
		if (at && !is_function_missing(tree, name))
			return tree_add_missing(tree, name, at + strlen(said)) == 0;
	}
	return false;
}

/* If there is no document, pmstat has not started the command, or has failed itself. */
static int measure_tree_once(struct pm_stat *out, struct pmdiff_meter *meter,
			     struct pmdiff_tree *tree, struct pm_error *err)
{
	int status;

	do {
		int ret = pmdiff_meter_set_up(meter, tree, err);

		if (ret < 0)
			return ret;
		unlink(meter->document);
		status = run_pmstat(meter, tree);
		if (status < 0)
			return pm_error_set(err, status, "cannot run %s: %s",
					    meter->pmstat, strerror(-status));
		if (access(meter->document, F_OK) == 0)
			return read_pmstat_document(out, meter, tree, err);
	} while (status != PM_STATUS_NOT_FOUND && learn_missing_function(meter, tree));
	pmdiff_progress_clear(&meter->progress);
	if (status != PM_STATUS_NOT_FOUND && meter->all_functions)
		meter->no_functions = pmdiff_log_find(meter->log, "pmstat: ");
	if (status == PM_STATUS_NOT_FOUND)
		return set_command_missing_error(err, meter, tree);
	return set_pmstat_error(err, meter, tree);
}

/* ---- all runs ------------------------------------------------------------------------ */

static int measure_tree_into_side(struct pmdiff_meter *meter, struct pmdiff_tree *tree,
				  struct pmdiff_side *side, bool warmup,
				  struct pm_error *err)
{
	struct pm_stat stat;
	int ret;

	pmdiff_progress_show(&meter->progress, "pmdiff: %s%s%s %llu of %llu: %s",
			     pm_text_or_empty(meter->case_name),
			     pm_text_if(meter->case_name, ", "),
			     warmup ? "warm-up, run" : "run",
			     (unsigned long long)meter->progress.done + 1,
			     (unsigned long long)meter->progress.runs,
			     pm_text_or(tree->role, tree->commit->subject));
	ret = measure_tree_once(&stat, meter, tree, err);
	if (ret < 0)
		return ret;
	pmdiff_progress_step(&meter->progress);
	if (!warmup && pm_vec_push(&side->stats, stat) == 0)
		return 0;
	pm_stat_release(&stat);
	if (!warmup)
		return pm_error_no_memory(err);
	return 0;
}

/* Measures each tree once. The order is random, so that periodic activity of the machine
 * does not always affect the same tree. */
static int measure_trees_once(struct pmdiff_meter *meter, struct pmdiff_tree *trees,
			      struct pmdiff_side *sides, size_t len, bool warmup,
			      struct pm_error *err)
{
	size_t first = 0;
	int ret = 0;

	if (len > 1)
		first = next_random_number(meter) % len;
	for (size_t i = 0; i < len && ret == 0; i++) {
		size_t at = (first + i) % len;

		ret = measure_tree_into_side(meter, &trees[at], &sides[at], warmup, err);
		trees[at].failed = ret < 0;
	}
	return ret;
}

static void report_missing_function(const struct pmdiff_meter *meter,
				    const struct pmdiff_tree *tree,
				    const struct pmdiff_missing *missing)
{
	pmdiff_say(meter->options, "%s has no function \"%s\"", tree->role,
		   missing->name);
}

/* If no commit has a function, that is a mistake of the user. */
static int check_missing_functions(struct pmdiff_meter *meter,
				   const struct pmdiff_tree *trees, struct pm_error *err)
{
	for (size_t i = 0; i < trees[0].missing.len; i++) {
		const struct pmdiff_missing *missing = &trees[0].missing.data[i];

		if (is_function_missing(&trees[1], missing->name))
			return pm_error_set(err, -ENOENT,
					    "neither %s nor %s has a function \"%s\"%s",
					    trees[0].role, trees[1].role, missing->name,
					    missing->more);
		report_missing_function(meter, &trees[0], missing);
	}
	for (size_t i = 0; i < trees[1].missing.len; i++)
		report_missing_function(meter, &trees[1], &trees[1].missing.data[i]);
	return 0;
}

static int measure_all_rounds(struct pmdiff_meter *meter, struct pmdiff_tree *trees,
			      struct pmdiff_side *sides, size_t len, struct pm_error *err)
{
	uint64_t rounds = meter->warmups + meter->runs;
	int ret = 0;

	pmdiff_progress_begin(&meter->progress, rounds * len);
	for (uint64_t i = 0; i < rounds && ret == 0; i++) {
		ret = measure_trees_once(meter, trees, sides, len, i < meter->warmups,
					 err);
		if (ret == 0 && i == 0 && trees[0].role && len == 2)
			ret = check_missing_functions(meter, trees, err);
		if (ret == 0 && i == meter->warmups && trees[0].role && len == 2 &&
		    !meter->case_name)
			ret = pmdiff_check_gates(sides, meter->options, err);
	}
	pmdiff_progress_clear(&meter->progress);
	return ret;
}

static void clear_side_runs(struct pmdiff_side *side)
{
	for (size_t i = 0; i < side->stats.len; i++)
		pm_stat_release(&side->stats.data[i]);
	pm_vec_clear(&side->stats);
}

int pmdiff_meter_measure(struct pmdiff_meter *meter, struct pmdiff_tree *trees,
			 struct pmdiff_side *sides, size_t len, struct pm_error *err)
{
	int ret = measure_all_rounds(meter, trees, sides, len, err);

	if (ret == 0 || !meter->all_functions || !meter->no_functions)
		return ret;
	/* All functions are no longer measured on either side: those of one side would be
	 * useless. */
	meter->all_functions = false;
	for (size_t i = 0; i < len; i++) {
		trees[i].failed = trees[i].absent = false;
		clear_side_runs(&sides[i]);
	}
	ret = measure_all_rounds(meter, trees, sides, len, err);
	if (ret == 0)
		pmdiff_say(meter->options, "%s%sfunctions are not measured: %s",
			   pm_text_or_empty(meter->case_name),
			   pm_text_if(meter->case_name, ": "), meter->no_functions);
	return ret;
}
