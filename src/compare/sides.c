/* SPDX-License-Identifier: MIT */
/* Checks whether the numbers of two sides may be compared at all, and what makes that
 * doubtful. */
#include "compare-internal.h"

#include <stdarg.h>
#include <string.h>

/* ---- sentences ---------------------------------------------------------------------- */

static char *PM_PRINTF(1, 0) format_text(const char *format, va_list arguments)
{
	char *text;

	if (vasprintf(&text, format, arguments) < 0)
		return NULL;
	return text;
}

int pm_compare_warn(struct pm_comparison *comparison, const char *format, ...)
{
	va_list arguments;
	char *text;

	va_start(arguments, format);
	text = format_text(format, arguments);
	va_end(arguments);
	for (size_t i = 0; text && i < comparison->warnings.len; i++) {
		if (strcmp(comparison->warnings.data[i], text) == 0) {
			free(text);
			return 0;
		}
	}
	if (text && pm_vec_push(&comparison->warnings, text) == 0)
		return 0;
	free(text);
	return -ENOMEM;
}

int pm_compare_differ(struct pm_comparison *comparison, const char *format, ...)
{
	va_list arguments;
	char *text;

	va_start(arguments, format);
	text = format_text(format, arguments);
	va_end(arguments);
	for (size_t i = 0; text && i < comparison->differences.len; i++) {
		if (strcmp(comparison->differences.data[i], text) == 0) {
			free(text);
			return 0;
		}
	}
	if (text && pm_vec_push(&comparison->differences, text) == 0)
		return 0;
	free(text);
	return -ENOMEM;
}

int pm_compare_why(struct pm_compare_row *row, const char *format, ...)
{
	va_list arguments;
	char *text;

	va_start(arguments, format);
	text = format_text(format, arguments);
	va_end(arguments);
	if (!text)
		return -ENOMEM;
	free(row->why);
	row->why = text;
	return 0;
}

int pm_compare_refuse(const struct pm_comparison *comparison, struct pm_error *err)
{
	struct pm_str text = { 0 };

	for (size_t i = 0; i < comparison->differences.len; i++)
		pm_str_printf(&text, "%s%s", i > 0 ? "; " : "",
			      comparison->differences.data[i]);
	pm_error_set(err, -EXDEV, "the sides do not compare: %s",
		     text.data ? text.data : strerror(ENOMEM));
	pm_error_fix(err, "--force");
	pm_str_release(&text);
	return -EXDEV;
}

/* ---- comparison with the first document --------------------------------------------- */

/* Two documents, possibly of the same side. */
struct check {
	struct pm_comparison *comparison;
	const struct pm_stat *first, *other;
	const char *whose; /* for messages: "the new side" */
	/* None of the counts depends on the kernel or the load of the machine. */
	bool only_exact;
};

static int sides_differ(const struct check *check, const char *what, const char *a,
			const char *b)
{
	if (!a || !b || strcmp(a, b) == 0)
		return 0;
	return pm_compare_differ(check->comparison, "%s: %s on the base, %s on %s", what,
				 a, b, check->whose);
}

static int sides_doubt(const struct check *check, const char *what, const char *a,
		       const char *b)
{
	if (!a || !b || strcmp(a, b) == 0)
		return 0;
	return pm_compare_warn(check->comparison,
			       "The %s differs: %s on the base, %s on %s.", what, a, b,
			       check->whose);
}

static int check_host(const struct check *check)
{
	const struct pm_stat_host *a = &check->first->host, *b = &check->other->host;

	if (sides_differ(check, "architecture", a->arch, b->arch) < 0 ||
	    sides_differ(check, "cpu", a->cpu_model, b->cpu_model) < 0 ||
	    sides_differ(check, "virtualisation", a->virt, b->virt) < 0 ||
	    sides_differ(check, "engine", check->first->engine, check->other->engine) < 0)
		return -ENOMEM;
	if (check->only_exact)
		return 0;
	if (a->cpus > 0 && b->cpus > 0 && a->cpus != b->cpus &&
	    pm_compare_warn(check->comparison,
			    "The number of CPUs differs: %u on the base, %u on %s.",
			    a->cpus, b->cpus, check->whose) < 0)
		return -ENOMEM;
	if (sides_doubt(check, "kernel", a->kernel, b->kernel) < 0 ||
	    sides_doubt(check, "machine", a->hostname, b->hostname) < 0 ||
	    sides_doubt(check, "CPU's governor", a->governor, b->governor) < 0)
		return -ENOMEM;
	return 0;
}

static const char *find_stat_setting(const struct pm_stat *stat, const char *name)
{
	for (size_t i = 0; i < stat->settings.len; i++)
		if (strcmp(stat->settings.data[i].name, name) == 0)
			return stat->settings.data[i].value;
	return NULL;
}

/* Checks the settings that influence simulated counts. */
static int check_settings(const struct check *check)
{
	static const char *const names[] = { "valgrind", "GLIBC_TUNABLES", "I1", "D1",
					     "LL" };

	if (!check->first->engine || strcmp(check->first->engine, "callgrind") != 0)
		return 0;
	for (size_t i = 0; i < PM_ARRAY_LEN(names); i++)
		if (sides_differ(check, names[i],
				 find_stat_setting(check->first, names[i]),
				 find_stat_setting(check->other, names[i])) < 0)
			return -ENOMEM;
	return 0;
}

static void put_command(struct pm_str *str, const struct pm_stat *stat, uint32_t variant)
{
	if (variant >= stat->subjects.len)
		return;
	for (size_t i = 0; i < stat->subjects.data[variant].argv.len; i++) {
		pm_str_puts(str, i > 0 ? " " : "");
		pm_str_puts(str, stat->subjects.data[variant].argv.data[i]);
	}
}

static int check_command(const struct check *check, uint32_t a_variant,
			 uint32_t b_variant)
{
	struct pm_str a = { 0 }, b = { 0 };
	int ret = 0;

	put_command(&a, check->first, a_variant);
	put_command(&b, check->other, b_variant);
	if (a.failed || b.failed)
		ret = -ENOMEM;
	else
		ret = sides_doubt(check, "command", a.data, b.data);
	pm_str_release(&a);
	pm_str_release(&b);
	return ret;
}

/* ---- events ------------------------------------------------------------------------- */

static const char *counted_space_name(bool user_only)
{
	if (user_only)
		return "user space only";
	return "with the kernel";
}

static int check_pair(struct pm_comparison *comparison, const struct pm_event_pair *pair)
{
	const struct pm_stat_event *a = pair->of[PM_BASE], *b = pair->of[PM_NEW];

	if (!a || !b)
		return 0;
	if (a->user_only != b->user_only &&
	    pm_compare_differ(comparison, "%s: %s on the base, %s on the new side",
			      pair->name, counted_space_name(a->user_only),
			      counted_space_name(b->user_only)) < 0)
		return -ENOMEM;
	if (strcmp(a->source, b->source) != 0 &&
	    pm_compare_differ(comparison, "%s: %s on the base, %s on the new side",
			      pair->name, a->source, b->source) < 0)
		return -ENOMEM;
	if ((strcmp(a->unit, b->unit) != 0 || a->scale < b->scale ||
	     a->scale > b->scale) &&
	    pm_compare_differ(comparison,
			      "%s: in %g %s on the base, in %g %s on the new side",
			      pair->name, a->scale, a->unit[0] ? a->unit : "times",
			      b->scale, b->unit[0] ? b->unit : "times") < 0)
		return -ENOMEM;
	return 0;
}

static bool are_exact(const struct pm_event_pairs *pairs)
{
	for (size_t i = 0; i < pairs->list.len; i++)
		for (unsigned int side = 0; side < PM_SIDES; side++) {
			const struct pm_stat_event *of = pairs->list.data[i].of[side];

			if (of && strcmp(of->source, "simulated") != 0 &&
			    strcmp(of->source, "tool") != 0)
				return false;
		}
	return true;
}

/* ---- all documents ------------------------------------------------------------------ */

struct begin {
	uint64_t at;
	unsigned int side;
};

static int compare_begins(const void *a, const void *b)
{
	const struct begin *x = a, *y = b;

	return PM_COMPARE(x->at, y->at);
}

/* Whether the runs were made in turns. @begins are runs in the order in which they
 * started. */
static bool are_mixed(const struct begin *begins, size_t len, const size_t *runs)
{
	uint64_t first[PM_SIDES], last[PM_SIDES];
	size_t changes = 0;

	if (runs[PM_BASE] == 0 || runs[PM_NEW] == 0)
		return false;
	for (size_t i = 0; i < len; i++)
		last[begins[i].side] = begins[i].at;
	for (size_t i = len; i-- > 0;)
		first[begins[i].side] = begins[i].at;
	for (size_t i = 1; i < len; i++)
		changes += begins[i].side != begins[i - 1].side;
	/* The state of a machine lasts for many runs: two blocks for each side are not
	 * turns. */
	return first[PM_BASE] < last[PM_NEW] && first[PM_NEW] < last[PM_BASE] &&
	       4 * changes >= PM_MIN(runs[PM_BASE], runs[PM_NEW]);
}

int pm_sides_took_turns(const struct pm_side *sides, bool *out)
{
	PM_VEC(struct begin) begins = { 0 };
	size_t runs[PM_SIDES] = { 0 };
	int failed = 0;

	for (unsigned int side = 0; side < PM_SIDES; side++)
		for (size_t i = 0; i < sides[side].len; i++) {
			const struct pm_stat *stat = sides[side].docs[i];

			for (size_t r = 0; r < stat->runs.len && failed == 0; r++) {
				const struct pm_stat_run *run = &stat->runs.data[r];

				if (!pm_side_counts(&sides[side], run))
					continue;
				failed = pm_vec_push(
					&begins, (struct begin){ run->begin_ns, side });
				runs[side]++;
			}
		}
	if (failed == 0 && begins.len > 0)
		qsort(begins.data, begins.len, sizeof(*begins.data), compare_begins);
	if (failed == 0)
		*out = are_mixed(begins.data, begins.len, runs);
	pm_vec_release(&begins);
	return failed;
}

bool pm_sides_ran_on_one_machine(const struct pm_side *sides)
{
	const char *first =
		sides[PM_BASE].len > 0 ? sides[PM_BASE].docs[0]->host.hostname : NULL;

	for (unsigned int side = 0; side < PM_SIDES; side++)
		for (size_t i = 0; i < sides[side].len; i++) {
			const char *name = sides[side].docs[i]->host.hostname;

			if (first && name && strcmp(first, name) != 0)
				return false;
		}
	return true;
}

static const char *overhead_words(const struct pm_stat *stat)
{
	return stat->overhead_subtracted ? "subtracted" : "left in";
}

static int check_overhead(const struct check *check)
{
	if (check->first->scopes.len == 0 || check->other->scopes.len == 0 ||
	    check->first->overhead_subtracted == check->other->overhead_subtracted)
		return 0;
	return pm_compare_differ(
		check->comparison, "cost of measuring: %s on the base, %s on %s",
		overhead_words(check->first), overhead_words(check->other), check->whose);
}

/* Checks how the runs have ended: a program that gives up early is not faster. */
static int check_ends(struct pm_comparison *comparison, const struct pm_side *sides)
{
	static const char *const words[] = { "all failed", "some ended well" };

	if (comparison->base.runs == 0 || comparison->new.runs == 0 ||
	    sides[PM_BASE].ended == sides[PM_NEW].ended)
		return 0;
	return pm_compare_differ(comparison, "runs: %s on the base, %s on the new side",
				 words[sides[PM_BASE].ended], words[sides[PM_NEW].ended]);
}

int pm_compare_sides_check(struct pm_comparison *comparison, const struct pm_side *sides,
			   const struct pm_event_pairs *pairs)
{
	bool ab = sides[PM_BASE].docs == sides[PM_NEW].docs;

	if (sides[PM_BASE].len == 0 || sides[PM_NEW].len == 0)
		return 0;
	if (check_ends(comparison, sides) < 0)
		return -ENOMEM;
	for (size_t i = 0; i < pairs->list.len; i++)
		if (check_pair(comparison, &pairs->list.data[i]) < 0)
			return -ENOMEM;
	for (unsigned int side = 0; side < PM_SIDES && !ab; side++)
		for (size_t i = 0; i < sides[side].len; i++) {
			struct check check = {
				.comparison = comparison,
				.first = sides[PM_BASE].docs[0],
				.other = sides[side].docs[i],
				.whose = side == PM_NEW ? "the new side"
							: "another document of it",
				.only_exact = are_exact(pairs),
			};

			if (check_host(&check) < 0 || check_settings(&check) < 0 ||
			    check_overhead(&check) < 0 ||
			    check_command(&check, sides[PM_BASE].variant,
					  sides[side].variant) < 0)
				return -ENOMEM;
		}
	return 0;
}
