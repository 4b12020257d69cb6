/* SPDX-License-Identifier: MIT */
/*
 * Programs with google-benchmark and with Rust's criterion list their cases, and run one
 * by its name. Both choose the number of iterations by the speed of the code, so that two
 * runs would never count the same. Here they run the code once: a minimum time of 0 ends
 * google-benchmark after the first iteration (User Guide, "Runtime and Reporting
 * Considerations"), and criterion runs it once in its test mode (criterion.rs,
 * "Command-Line Options").
 */
#include "cases.h"

#include <string.h>
#include <sys/wait.h>

#include "process.h"

enum {
	NAMES_MAX = 4096, /* maximum number of cases of one program */
};
#define LIST_TIMEOUT_NS UINT64_C(30000000000)

struct pmdiff_harness {
	enum pm_diff_harness which;
	const char *name;
	const char *const *list; /* options that make a program list its cases */
	const char *const
		*list_none; /* the same, with a filter that matches no case; NULL: not
		             * used */
	const char *end; /* end of each line, not part of the name */
	const char *old_end; /* the same in older versions; NULL: none */
	const char *const *once; /* options for a run, which follow the filter */
	/* The part that callgrind counts, for --marked of pmstat; NULL: the whole
	 * program. */
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
	int ret = 0;

	for (; *list && ret == 0; list++)
		ret = names_add_copy(words, *list);
	return ret;
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
	if (filter.failed)
		return -ENOMEM;
	return names_add_copy(words, filter.data);
}

int pmdiff_harness_words(struct pmdiff_names *out, const struct pmdiff_harness *harness,
			 const char *const *command, const char *name)
{
	int ret = names_add_copies(out, command);

	if (ret == 0 && harness->which == PM_DIFF_HARNESS_GOOGLE_BENCHMARK)
		ret = names_add_exact_filter(out, name);
	else if (ret == 0)
		ret = names_add_copy(out, name);
	if (ret == 0)
		ret = names_add_copies(out, harness->once);
	if (ret < 0)
		return ret;
	return pm_vec_push(&out->list, NULL);
}

/* ---- lists ----------------------------------------------------------------------------- */

/* Returns the time that a program may take to list its cases. */
static uint64_t list_timeout_ns(const struct pmdiff_meter *meter)
{
	uint64_t given_ns = meter->measured->timeout_ns;

	return given_ns > 0 ? given_ns : LIST_TIMEOUT_NS;
}

/* Runs the program with the additional words @more, and stores its output. Returns its
 * status, or a negative errno. */
static int run_harness_program(struct pmdiff_output_text *out,
			       const struct pmdiff_meter *meter,
			       const struct pmdiff_tree *tree, const char *const *more)
{
	PM_CLEANUP(pmdiff_names_release) struct pmdiff_names words = { 0 };
	PM_AUTO_FREE char *scratch = NULL;
	struct pmdiff_process process = { .dir = tree->path,
					  .timeout_ns = list_timeout_ns(meter) };
	int ret = names_add_copies(&words, meter->measured->command);

	if (ret == 0)
		ret = names_add_copies(&words, more);
	if (ret == 0)
		ret = pm_vec_push(&words.list, NULL);
	if (ret == 0 && asprintf(&scratch, "TMPDIR=%s", meter->scratch) < 0) {
		scratch = NULL;
		ret = -ENOMEM;
	}
	if (ret < 0)
		return ret;
	process.argv = (const char *const *)words.list.data;
	process.env = (const char *const[]){ scratch, NULL };
	return pmdiff_process_read(&process, NULL, 0, out);
}

static bool line_ends_in(const char *line, size_t len, const char *end)
{
	size_t own;

	if (!end)
		return false;
	own = strlen(end);
	return len > own && memcmp(line + len - own, end, own) == 0;
}

/* Parses one line of a list. Returns false if the line does not belong to one. */
static bool parse_case_line(struct pmdiff_names *out,
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
	if (out->list.len == NAMES_MAX)
		return false;
	name = strndup(line, len);
	if (!name || pm_vec_push(&out->list, name) < 0) {
		free(name);
		*failed = -ENOMEM;
	}
	return true;
}

/* Returns 1 if the output is a list, which may be empty, otherwise 0. */
static int parse_case_list(struct pmdiff_names *out, const struct pmdiff_harness *harness,
			   const struct pm_str *output)
{
	const char *at = output->data, *end = at ? at + output->len : NULL;
	int failed = 0;

	if (output->len > 0 && memchr(at, '\0', output->len))
		return 0;
	while (at < end && failed == 0) {
		const char *newline = memchr(at, '\n', (size_t)(end - at));
		const char *line_end = pm_text_or(newline, end);
		size_t len = (size_t)(line_end - at);

		while (len > 0 && at[len - 1] == '\r')
			len--;
		if (len > 0 && !parse_case_line(out, harness, at, len, &failed))
			return 0;
		at = line_end + (newline != NULL);
	}
	if (failed < 0)
		return failed;
	return 1;
}

/* Returns 1 if the program knows the options. A program that does not has the same output
 * with a filter that matches no case. */
static int knows_filter(const struct pmdiff_harness *harness,
			const struct pmdiff_meter *meter, const struct pmdiff_tree *tree)
{
	PM_CLEANUP(pmdiff_output_text_release) struct pmdiff_output_text text = { 0 };
	int ret;

	if (!harness->list_none)
		return 1;
	ret = run_harness_program(&text, meter, tree, harness->list_none);
	if (ret < 0)
		return ret;
	return text.out.len == 0;
}

/* Returns 1 if the program has listed its cases, 0 if it does not use this harness. */
static int try_harness(struct pmdiff_names *out, const struct pmdiff_harness *harness,
		       const struct pmdiff_meter *meter, const struct pmdiff_tree *tree)
{
	PM_CLEANUP(pmdiff_output_text_release) struct pmdiff_output_text text = { 0 };
	PM_CLEANUP(pmdiff_names_release) struct pmdiff_names names = { 0 };
	int ret = run_harness_program(&text, meter, tree, harness->list);

	if (ret < 0)
		return ret;
	if (ret > 0)
		ret = 0;
	else
		ret = parse_case_list(&names, harness, &text.out);
	if (ret > 0 && names.list.len == 0)
		ret = 0;
	if (ret > 0)
		ret = knows_filter(harness, meter, tree);
	if (ret > 0) {
		*out = names;
		names = (struct pmdiff_names){ 0 };
	}
	return ret;
}

static int set_error_of_command(struct pm_error *err, int code,
				const struct pmdiff_tree *tree, const char *command,
				const char *what)
{
	return pm_error_set(err, code, "%s, " PMDIFF_SHORT_HASH " (%.100s): %.200s %s",
			    tree->role, tree->commit->hash, tree->commit->subject,
			    command, what);
}

int pmdiff_harness_list(struct pmdiff_names *out, const struct pmdiff_harness **harness,
			const struct pmdiff_meter *meter, const struct pmdiff_tree *tree,
			struct pm_error *err)
{
	const char *command = meter->measured->command[0];
	bool named = *harness != NULL;
	int ret = 0;

	for (size_t i = 0; i < PM_ARRAY_LEN(harnesses) && ret == 0; i++) {
		if (named && *harness != &harnesses[i])
			continue;
		ret = try_harness(out, &harnesses[i], meter, tree);
		if (ret > 0)
			*harness = &harnesses[i];
	}
	if (ret > 0 || (ret == 0 && !named))
		return 0;
	if (ret == -ENOENT)
		return set_error_of_command(err, ret, tree, command,
					    "is not in its worktree");
	if (ret == -ETIMEDOUT)
		return set_error_of_command(
			err, ret, tree, command,
			"did not list its cases in time (--timeout, or else 30 s)");
	if (ret < 0)
		return set_error_of_command(err, ret, tree, command, strerror(-ret));
	return set_error_of_command(err, -EBADMSG, tree, command,
				    "does not list its cases");
}
