/* SPDX-License-Identifier: MIT */
/*
 * Programs with google-benchmark and with Rust's criterion list their cases, and run one
 * by its name. Both choose the number of iterations by the speed of the code, so no two
 * runs would count the same. Here they run the code once: a minimum time of 0 ends
 * google-benchmark after the first iteration (User Guide, "Runtime and Reporting
 * Considerations"), and criterion runs it once in its test mode (criterion.rs,
 * "Command-Line Options").
 */
#include "cases.h"

#include <string.h>
#include <sys/wait.h>

#include "process.h"

enum {
	NAMES_MAX = 4096, /* limit for the list of one program */
};
#define LIST_TIMEOUT_NS UINT64_C(30000000000)

struct pmdiff_harness {
	enum pm_diff_harness which;
	const char *name;
	const char *const *list; /* words that make it list its cases */
	const char *const
		*list_none; /* the same with a filter that matches nothing; or NULL */
	const char *end; /* end of each line, not part of the name */
	const char *old_end; /* the same in older versions; or NULL */
	const char *const *once; /* words for a run, after the filter */
	/* For --marked of pmstat: the part that callgrind counts;
	 * NULL: the whole program. */
	const char *marks;
};

static const struct pmdiff_harness harnesses[] = {
	{
		.which = PM_DIFF_HARNESS_GOOGLE_BENCHMARK,
		.name = "google-benchmark",
		.list = (const char *const[]){ "--benchmark_list_tests=true", NULL },
		.list_none = (const char *const[]){ "--benchmark_list_tests=true",
						    "--benchmark_filter=^$", NULL },
		.end = "",
		.once = (const char *const[]){ "--benchmark_min_time=0",
					       "--benchmark_repetitions=1", NULL },
		/* benchmark::State::StartKeepRunning() and FinishKeepRunning() are called
		 * before and after the loop, and start and stop its clock. */
		.marks = "_ZN9benchmark5State16StartKeepRunningEv,"
			 "_ZN9benchmark5State17FinishKeepRunningEv",
	},
	{
		.which = PM_DIFF_HARNESS_CRITERION,
		.name = "criterion",
		.list = (const char *const[]){ "--bench", "--list", "--format", "terse",
					       NULL },
		.end = ": benchmark",
		.old_end = ": bench",
		.once = (const char *const[]){ "--exact", "--test", NULL },
	},
};

const struct pmdiff_harness *pmdiff_harness_of(const struct pmdiff_measured *measured)
{
	for (size_t i = 0; i < PM_ARRAY_LEN(harnesses); i++)
		if (harnesses[i].which == measured->harness)
			return &harnesses[i];
	return NULL;
}

const char *pmdiff_harness_name(const struct pmdiff_harness *harness)
{
	return harness->name;
}

const char *pmdiff_harness_marks(const struct pmdiff_harness *harness)
{
	return harness->marks;
}

void pmdiff_names_release(struct pmdiff_names *names)
{
	for (size_t i = 0; i < names->list.len; i++)
		free(names->list.data[i]);
	pm_vec_release(&names->list);
}

/* ---- words ----------------------------------------------------------------------------- */

static int names_add_copy(struct pmdiff_names *words, const char *word)
{
	char *copy = strdup(word);

	if (copy && pm_vec_push(&words->list, copy) == 0)
		return 0;
	free(copy);
	return -ENOMEM;
}

static int names_add_copies(struct pmdiff_names *words, const char *const *list)
{
	int r = 0;

	for (; *list && r == 0; list++)
		r = names_add_copy(words, *list);
	return r;
}

/* google-benchmark expects an extended regular expression, so these
 * characters are escaped. */
static int names_add_exact_filter(struct pmdiff_names *words, const char *name)
{
	PM_CLEANUP(pm_str_release) struct pm_str filter = { 0 };

	pm_str_puts(&filter, "--benchmark_filter=^");
	for (const char *c = name; *c; c++) {
		if (strchr(".[]{}()*+?^$|\\", *c))
			pm_str_putc(&filter, '\\');
		pm_str_putc(&filter, *c);
	}
	pm_str_putc(&filter, '$');
	return filter.failed ? -ENOMEM : names_add_copy(words, filter.data);
}

int pmdiff_harness_words(struct pmdiff_names *ret, const struct pmdiff_harness *harness,
			 const char *const *command, const char *name)
{
	int r = names_add_copies(ret, command);

	if (r == 0 && harness->which == PM_DIFF_HARNESS_GOOGLE_BENCHMARK)
		r = names_add_exact_filter(ret, name);
	else if (r == 0)
		r = names_add_copy(ret, name);
	if (r == 0)
		r = names_add_copies(ret, harness->once);
	return r < 0 ? r : pm_vec_push(&ret->list, NULL);
}

/* ---- lists ----------------------------------------------------------------------------- */

/* How long a program may take to list its cases. */
static uint64_t list_timeout_ns(const struct pmdiff_meter *meter)
{
	uint64_t given_ns = meter->measured->timeout_ns;

	return given_ns > 0 ? given_ns : LIST_TIMEOUT_NS;
}

/* Runs the program with @more words, and stores its output. Its
 * status, or negative errno. */
static int run_harness_program(struct pmdiff_output_text *ret,
			       const struct pmdiff_meter *meter,
			       const struct pmdiff_tree *tree, const char *const *more)
{
	PM_CLEANUP(pmdiff_names_release) struct pmdiff_names words = { 0 };
	PM_AUTO_FREE char *scratch = NULL;
	struct pmdiff_process process = { .dir = tree->path,
					  .timeout_ns = list_timeout_ns(meter) };
	int r = names_add_copies(&words, meter->measured->command);

	if (r == 0)
		r = names_add_copies(&words, more);
	if (r == 0)
		r = pm_vec_push(&words.list, NULL);
	if (r == 0 && asprintf(&scratch, "TMPDIR=%s", meter->scratch) < 0) {
		scratch = NULL;
		r = -ENOMEM;
	}
	if (r < 0)
		return r;
	process.argv = (const char *const *)words.list.data;
	process.env = (const char *const[]){ scratch, NULL };
	return pmdiff_process_read(&process, NULL, 0, ret);
}

static bool line_ends_in(const char *line, size_t len, const char *end)
{
	size_t own = end ? strlen(end) : 0;

	return end && len > own && memcmp(line + len - own, end, own) == 0;
}

/* False: the line does not belong to a list. */
static bool parse_case_line(struct pmdiff_names *ret,
			    const struct pmdiff_harness *harness, const char *line,
			    size_t len, int *failed)
{
	char *name;

	if (line_ends_in(line, len, harness->end))
		len -= strlen(harness->end);
	else if (line_ends_in(line, len, harness->old_end))
		len -= strlen(harness->old_end);
	else
		return false;
	if (ret->list.len == NAMES_MAX)
		return false;
	name = strndup(line, len);
	if (!name || pm_vec_push(&ret->list, name) < 0) {
		free(name);
		*failed = -ENOMEM;
	}
	return true;
}

/* 1: the output is a list, which may be empty; 0: it is not. */
static int parse_case_list(struct pmdiff_names *ret, const struct pmdiff_harness *harness,
			   const struct pm_str *out)
{
	const char *at = out->data, *end = at ? at + out->len : NULL;
	int failed = 0;

	if (out->len > 0 && memchr(at, '\0', out->len))
		return 0;
	while (at < end && failed == 0) {
		const char *newline = memchr(at, '\n', (size_t)(end - at));
		size_t len = (size_t)((newline ? newline : end) - at);

		while (len > 0 && at[len - 1] == '\r')
			len--;
		if (len > 0 && !parse_case_line(ret, harness, at, len, &failed))
			return 0;
		at = newline ? newline + 1 : end;
	}
	return failed < 0 ? failed : 1;
}

/* 1: the program knows the options. Otherwise its output is the same with a filter
 * that matches nothing. */
static int knows_filter(const struct pmdiff_harness *harness,
			const struct pmdiff_meter *meter, const struct pmdiff_tree *tree)
{
	PM_CLEANUP(pmdiff_output_text_release) struct pmdiff_output_text text = { 0 };
	int r;

	if (!harness->list_none)
		return 1;
	r = run_harness_program(&text, meter, tree, harness->list_none);
	return r < 0 ? r : text.out.len == 0;
}

/* 1: the program has answered; 0: it does not use this harness. */
static int try_harness(struct pmdiff_names *ret, const struct pmdiff_harness *harness,
		       const struct pmdiff_meter *meter, const struct pmdiff_tree *tree)
{
	PM_CLEANUP(pmdiff_output_text_release) struct pmdiff_output_text text = { 0 };
	PM_CLEANUP(pmdiff_names_release) struct pmdiff_names names = { 0 };
	int r = run_harness_program(&text, meter, tree, harness->list);

	if (r < 0)
		return r;
	r = r > 0 ? 0 : parse_case_list(&names, harness, &text.out);
	if (r > 0 && names.list.len == 0)
		r = 0;
	if (r > 0)
		r = knows_filter(harness, meter, tree);
	if (r > 0) {
		*ret = names;
		names = (struct pmdiff_names){ 0 };
	}
	return r;
}

static int set_error_of_command(struct pm_error *err, int code,
				const struct pmdiff_tree *tree, const char *command,
				const char *what)
{
	return pm_error_set(err, code, "%s, " PMDIFF_SHORT_HASH " (%.100s): %.200s %s",
			    tree->role, tree->commit->hash, tree->commit->subject,
			    command, what);
}

int pmdiff_harness_list(struct pmdiff_names *ret, const struct pmdiff_harness **harness,
			const struct pmdiff_meter *meter, const struct pmdiff_tree *tree,
			struct pm_error *err)
{
	const char *command = meter->measured->command[0];
	bool named = *harness != NULL;
	int r = 0;

	for (size_t i = 0; i < PM_ARRAY_LEN(harnesses) && r == 0; i++) {
		if (named && *harness != &harnesses[i])
			continue;
		r = try_harness(ret, &harnesses[i], meter, tree);
		if (r > 0)
			*harness = &harnesses[i];
	}
	if (r > 0 || (r == 0 && !named))
		return 0;
	if (r == -ENOENT)
		return set_error_of_command(err, r, tree, command,
					    "is not in its worktree");
	if (r == -ETIMEDOUT)
		return set_error_of_command(
			err, r, tree, command,
			"did not list its cases in time (--timeout, or else 30 s)");
	if (r < 0)
		return set_error_of_command(err, r, tree, command, strerror(-r));
	return set_error_of_command(err, -EBADMSG, tree, command,
				    "does not list its cases");
}
