/* SPDX-License-Identifier: MIT */
#include "profile.h"

#include <fcntl.h>
#include <string.h>

#include "linemap.h"
#include "log.h"
#include "pm/output.h"
#include "pm/profile.h"
#include "process.h"
#include "say.h"

enum {
	CASES_MAX = 10, /* cases that are profiled, each of which needs two more runs */
	TIMEOUT_MS = 600000, /* limit of one run, unless the user has set another one */
	FILE_MODE = 0666,
	NS_PER_MS = 1000000,
};

static const char page_prefix[] = "pmdiff-flame";

/* One case, or everything if there are no cases. */
struct profiling {
	struct pm_comparison *comparison;
	struct pmdiff_workshop *shop;
	const struct pmdiff_linemap *lines;
	const char *case_name; /* NULL: no cases */
	struct pm_hot **hot;
	struct pm_profile *profiles[2];
};

static bool is_profile_wanted(const struct pmdiff_options *options)
{
	if (options->config.profile >= 0)
		return options->config.profile > 0;
	return options->outputs[PMDIFF_MARKDOWN].wanted ||
	       options->outputs[PMDIFF_HTML].wanted ||
	       options->outputs[PMDIFF_JSON].wanted;
}

/* ---- one side -------------------------------------------------------------------------- */

struct words {
	PM_VEC(const char *) list;
};

static int append_words(struct words *words, const char *const *list)
{
	int ret = 0;

	for (; *list && ret == 0; list++)
		ret = pm_vec_push(&words->list, *list);
	return ret;
}

/* Searches for pmrec next to pmstat. */
static int find_pmrec_program(char **out, const struct pmdiff_meter *meter)
{
	const char *slash = strrchr(meter->pmstat, '/');
	int len = 0;

	if (slash)
		len = (int)(slash - meter->pmstat);
	for (size_t i = 0; i < 2 && slash; i++) {
		if (asprintf(out, "%.*s/%s", len, meter->pmstat,
			     i == 0 ? "pmrec" : "../pmrec/pmrec") < 0) {
			*out = NULL;
			return -ENOMEM;
		}
		if (access(*out, X_OK) == 0)
			return 0;
		free(PM_TAKE_PTR(*out));
	}
	*out = strdup("pmrec");
	if (!*out)
		return -ENOMEM;
	return 0;
}

static int fill_profiler_words(struct words *words, const struct pmdiff_meter *meter,
			       const char *pmrec, const char *file, const char *timeout,
			       const char *marked)
{
	const char *const counting[] = { meter->pmstat, "--json",        "-q",
					 "-o",          meter->document, "--engine",
					 "callgrind",   "--stacks",      file,
					 NULL };
	const char *const sampling[] = { pmrec, "-q", "-o", file, NULL };
	int ret = append_words(words, meter->simulated ? counting : sampling);

	if (ret == 0 && meter->simulated && marked)
		ret = pm_vec_push(&words->list, marked);
	if (ret == 0 && meter->simulated)
		ret = append_words(words,
				   (const char *const[]){ "--timeout", timeout, NULL });
	if (ret == 0)
		ret = pm_vec_push(&words->list, "--");
	if (ret == 0)
		ret = append_words(words, meter->measured->command);
	if (ret < 0)
		return ret;
	return pm_vec_push(&words->list, NULL);
}

/* Counting each chain of callers separately takes longer than plain counting. */
static uint64_t profiler_timeout_ms(const struct pmdiff_meter *meter)
{
	uint64_t ns = meter->measured->timeout_ns;

	if (ns == 0)
		return TIMEOUT_MS;
	return (ns + NS_PER_MS - 1) / NS_PER_MS;
}

/* Whether callgrind ran the command to its end. */
static bool has_callgrind_ended_well(const struct pmdiff_meter *meter)
{
	PM_AUTO_CLOSE int fd = open(meter->document, O_RDONLY | O_CLOEXEC);
	struct pm_stat stat;
	bool ended;

	if (fd < 0 || pm_stat_read(&stat, fd, meter->document, NULL) < 0)
		return false;
	ended = stat.runs.len > 0 && pm_stat_run_ended_well(&stat.runs.data[0]);
	pm_stat_release(&stat);
	return ended;
}

/* Returns the exit status of the profiler, or a negative errno. */
static int run_profiler(struct pmdiff_meter *meter, const struct pmdiff_tree *tree,
			const char *file)
{
	PM_AUTO_FREE char *scratch = NULL, *pmrec = NULL, *timeout = NULL;
	PM_AUTO_FREE char *marked = NULL;
	PM_AUTO_CLOSE int log = open(
		meter->log, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0600);
	struct pmdiff_process process = { .dir = tree->path, .in = -1 };
	struct words words = { 0 };
	pid_t pid;
	int ret = 0;

	if (log < 0)
		ret = -errno;
	if (ret == 0)
		ret = find_pmrec_program(&pmrec, meter);
	if (ret == 0)
		ret = pmdiff_meter_marked(&marked, meter);
	if (asprintf(&scratch, "TMPDIR=%s", meter->scratch) < 0)
		scratch = NULL;
	if (asprintf(&timeout, "%llums", (unsigned long long)profiler_timeout_ms(meter)) <
	    0)
		timeout = NULL;
	if (ret == 0 && (!scratch || !timeout))
		ret = -ENOMEM;
	if (ret == 0)
		ret = fill_profiler_words(&words, meter, pmrec, file, timeout, marked);
	if (ret == 0) {
		process.argv = words.list.data;
		/* Turn off the program's own profiler, which would be part of the
		 * profile. */
		process.env = (const char *const[]){
			scratch, meter->simulated ? "PMDIFF_PADDING=" : "PMSELF=off", NULL
		};
		process.out = process.err = log;
		ret = pmdiff_process_start(&process, &pid);
	}
	pm_vec_release(&words.list);
	if (ret < 0)
		return ret;
	return pmdiff_process_wait(pid);
}

static void free_file_reader(struct pm_file_reader **reader)
{
	pm_file_reader_free(*reader);
}

static int load_profile_of_file(struct pm_profile **out, const char *file, bool samples,
				struct pm_error *err)
{
	struct pm_profile_options how = { .no_starts = true, .keep_samples = samples };
	PM_CLEANUP(free_file_reader) struct pm_file_reader *reader = NULL;
	int ret = pm_file_reader_open(&reader, file, err);

	if (ret < 0)
		return ret;
	return pm_profile_load(out, reader, &how, err);
}

static int profile_side(struct profiling *it, size_t side, struct pm_error *err)
{
	struct pmdiff_meter *meter = &it->shop->meter;
	const struct pmdiff_tree *tree = &it->shop->trees[side];
	bool samples = meter->options->outputs[PMDIFF_HTML].wanted;
	PM_AUTO_FREE char *file = NULL, *why = NULL;
	int ret = pmdiff_meter_set_up(meter, tree, err), status;

	if (ret < 0)
		return ret;
	if (asprintf(&file, "%s/profile.json", it->shop->folder.path) < 0) {
		file = NULL;
		return pm_error_no_memory(err);
	}
	unlink(meter->document);
	pmdiff_progress_show(&meter->progress, "pmdiff: %s%sprofile of %s",
			     pm_text_or_empty(it->case_name),
			     pm_text_if(it->case_name, ", "), tree->role);
	status = run_profiler(meter, tree, file);
	pmdiff_progress_clear(&meter->progress);
	if (status == -ENOMEM)
		return pm_error_no_memory(err);
	if (status != 0) {
		why = pmdiff_log_find(meter->log,
				      meter->simulated ? "pmstat: " : "pmrec: ");
		if (!why && status < 0)
			why = strerror(-status);
		return pm_error_set(err, -ECANCELED, "%s: %s", tree->role,
				    pm_text_or(why, "the profiler failed"));
	}
	if (meter->simulated && !has_callgrind_ended_well(meter)) {
		unlink(file);
		return pm_error_set(err, -ECANCELED, "%s: the run was stopped, or failed",
				    tree->role);
	}
	ret = load_profile_of_file(&it->profiles[side], file, samples, err);
	unlink(file);
	return ret;
}

/* ---- the page -------------------------------------------------------------------------- */

/* Returns the path of a page, in the directory of the --html file: a fixed prefix, and
 * the name of the case, in which characters that are unusual in file names are
 * replaced. */
static char *make_page_path(const struct profiling *it, size_t number)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyz"
				    "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
	const char *html = it->shop->meter.options->outputs[PMDIFF_HTML].path;
	const char *slash = strrchr(html, '/');
	PM_CLEANUP(pm_str_release) struct pm_str path = { 0 };
	bool odd = false;

	if (slash)
		pm_str_append(&path, html, (size_t)(slash + 1 - html));
	pm_str_puts(&path, page_prefix);
	if (it->case_name)
		pm_str_putc(&path, '-');
	for (const char *c = pm_text_or_empty(it->case_name); *c; c++) {
		odd = odd || !strchr(plain, *c);
		pm_str_putc(&path, strchr(plain, *c) ? *c : '_');
	}
	/* Two names may differ only in characters that were replaced. No name without
	 * such characters contains "=". */
	if (odd)
		pm_str_printf(&path, "=%zu", number);
	pm_str_puts(&path, ".html");
	if (path.failed)
		return NULL;
	return strdup(path.data);
}

static int write_profile_page_file(struct profiling *it, size_t number,
				   struct pm_error *err)
{
	const struct pmdiff_output *html = &it->shop->meter.options->outputs[PMDIFF_HTML];
	const struct pm_filter everything = { 0 };
	struct pm_report report = {
		.profile = it->profiles[1],
		.base = it->profiles[0],
		.absolute = true,
		.filter = &everything,
		.event = PM_PROFILE_NONE,
		.limit = PM_LIMIT_DEFAULT,
	};
	PM_CLEANUP(pm_sink_release) struct pm_sink sink = { 0 };
	PM_AUTO_FREE char *path = NULL;
	int ret;

	if (!html->wanted || !html->path)
		return 0;
	path = make_page_path(it, number);
	if (!path)
		return pm_error_no_memory(err);
	ret = pm_sink_open(&sink, path, FILE_MODE, err);
	if (ret == 0)
		ret = pm_output_html(&report, sink.file, err);
	if (ret == 0)
		ret = pm_sink_close(&sink, err);
	if (ret == 0)
		(*it->hot)->page = PM_TAKE_PTR(path);
	return ret;
}

/* ---- one case -------------------------------------------------------------------------- */

static int add_profile_warning(struct profiling *it, const struct pm_error *why,
			       struct pm_error *err)
{
	char *text;

	if (asprintf(&text, "%s%sWhere the added cost is cannot be told: %s%s%s.",
		     pm_text_or_empty(it->case_name), pm_text_if(it->case_name, ": "),
		     why->source, pm_text_if(why->source[0], ": "), why->text) < 0)
		return pm_error_no_memory(err);
	if (pm_vec_push(&it->comparison->warnings, text) == 0)
		return 0;
	free(text);
	return pm_error_no_memory(err);
}

static int find_hot_and_write_page(struct profiling *it, size_t number,
				   struct pm_error *err)
{
	struct pm_hot_options how = { .exact = it->shop->meter.simulated,
				      .roots = { it->shop->trees[0].path,
						 it->shop->trees[1].path },
				      .line_of = it->lines ? pmdiff_linemap_of : NULL,
				      .user = (void *)(uintptr_t)it->lines };
	int ret = 0;

	for (size_t side = 0; side < 2 && ret == 0; side++)
		ret = profile_side(it, side, err);
	if (ret == 0)
		ret = pm_hot_find(it->hot, it->profiles[0], it->profiles[1], &how, err);
	if (ret < 0)
		return ret;
	return write_profile_page_file(it, number, err);
}

static int profile_one_case(struct profiling *it, const struct pmdiff_measured *measured,
			    size_t number, struct pm_error *err)
{
	struct pm_error why = { .offset = -1 };
	int ret;

	pmdiff_meter_choose(&it->shop->meter, measured, it->case_name);
	ret = find_hot_and_write_page(it, number, &why);
	for (size_t side = 0; side < 2; side++) {
		pm_profile_free(it->profiles[side]);
		it->profiles[side] = NULL;
	}
	if (ret == -ENOMEM)
		return pm_error_no_memory(err);
	if (ret < 0)
		return add_profile_warning(it, &why, err);
	return 0;
}

static int profile_compared_cases(struct profiling *it, const struct pmdiff_side *side,
				  struct pm_error *err)
{
	struct pm_comparison *comparison = it->comparison;
	size_t number = 0;
	int ret = 0;

	for (size_t i = 0; i < comparison->cases.len && ret == 0; i++) {
		struct pm_compare_case *one = &comparison->cases.data[i];
		const struct pmdiff_side_case *of =
			pmdiff_side_find_case(side, one->name);

		if (one->verdict != PM_VERDICT_WORSE || !of || one->base.documents == 0)
			continue;
		if (number++ == CASES_MAX) {
			struct pm_error why = { .offset = -1 };

			pm_error_set(&why, -E2BIG, "%d others got worse, too", CASES_MAX);
			it->case_name = one->name;
			return add_profile_warning(it, &why, err);
		}
		it->case_name = one->name;
		it->hot = &one->hot;
		ret = profile_one_case(it, &of->measured, number, err);
	}
	return ret;
}

int pmdiff_profile(struct pm_comparison *comparison, struct pmdiff_workshop *workshop,
		   const struct pmdiff_side sides[2], struct pm_error *err)
{
	const struct pmdiff_options *options = workshop->meter.options;
	struct profiling it = { .comparison = comparison,
				.shop = workshop,
				.hot = &comparison->hot };
	struct pmdiff_linemap *lines = NULL;
	int ret;

	if (comparison->verdict != PM_VERDICT_WORSE || !is_profile_wanted(options))
		return 0;
	/* Without the map, lines are matched by their numbers. */
	if (pmdiff_linemap_new(&lines, workshop->commits[0].hash,
			       workshop->commits[1].hash, NULL) == -ENOMEM)
		return pm_error_no_memory(err);
	it.lines = lines;
	if (comparison->cases.len > 0)
		ret = profile_compared_cases(&it, &sides[1], err);
	else
		ret = profile_one_case(&it, &options->measured, 0, err);
	pmdiff_linemap_free(lines);
	return ret;
}
