/* SPDX-License-Identifier: MIT */
/*
 * Folded stacks, as stackcollapse-perf.pl writes them and flamegraph.pl, inferno,
 * speedscope and Firefox Profiler read them. The format has no escapes: characters that
 * would break a line are replaced.
 */
#include "output-internal.h"

#include <string.h>

struct line {
	const char *comm; /* pooled by the profile: equal texts have equal pointers */
	uint32_t pid; /* replaces an unknown comm; otherwise 0 */
	uint32_t path;
	struct pm_weight weight;
};

/* The written form of a function: a part of `names`. */
struct name {
	size_t at;
	uint32_t len; /* 0: not made yet */
};

struct folding {
	const struct pm_profile *profile;
	struct pm_str names;
	struct name *name_of; /* by function */
	struct pm_paths paths;
	PM_VEC(struct line) lines;
	struct pm_index index;
	PM_VEC(uint32_t) chain;
	bool periods;
};

static void folded_lines_release(struct folding *folding)
{
	pm_str_release(&folding->names);
	free(folding->name_of);
	pm_paths_release(&folding->paths);
	pm_vec_release(&folding->lines);
	pm_index_release(&folding->index);
	pm_vec_release(&folding->chain);
}

static bool folded_line_equal(const void *table, uint32_t id, const void *key)
{
	const struct line *have = &((const struct folding *)table)->lines.data[id];
	const struct line *wanted = key;

	return have->path == wanted->path && have->comm == wanted->comm &&
	       have->pid == wanted->pid;
}

static int folding_add_cell(struct folding *folding, const struct pm_profile_cell *cell)
{
	const struct pm_profile_thread *thread =
		&folding->profile->threads.data[cell->thread];
	struct line line = {
		.comm = thread->comm,
		.pid = thread->comm[0] == '\0' ? thread->pid : 0,
		.path = folding->paths.of_stack[cell->stack],
	};
	uint64_t hash =
		pm_hash_mix(pm_hash_mix((uintptr_t)line.comm, line.pid), line.path);
	uint32_t id =
		pm_index_find(&folding->index, hash, folded_line_equal, folding, &line);

	if (id == PM_INDEX_NONE) {
		id = (uint32_t)folding->lines.len;
		if (pm_vec_push(&folding->lines, line) < 0 ||
		    pm_index_add(&folding->index, hash, id) < 0)
			return -ENOMEM;
	}
	pm_weight_add(&folding->lines.data[id].weight, &cell->weight);
	return 0;
}

static int line_order(const void *a, const void *b)
{
	const struct line *left = a, *right = b;
	int ret = strcmp(left->comm, right->comm);

	if (ret == 0)
		ret = PM_COMPARE(left->pid, right->pid);
	if (ret != 0)
		return ret;
	return PM_COMPARE(left->path, right->path);
}

static void replace_from(struct pm_str *str, size_t from, char old, char new)
{
	for (size_t i = from; !str->failed && i < str->len; i++)
		if (str->data[i] == old)
			str->data[i] = new;
}

/* Appends the name of a frame. Control characters become escapes, and `;`, which
 * separates frames, becomes `:`. */
static void put_folded_frame(struct pm_str *str, const char *name)
{
	size_t from = str->len;

	pm_str_printable(str, name, strlen(name));
	replace_from(str, from, ';', ':');
}

/* Appends the name of a thread, without blanks, which would end the name. */
static void put_folded_comm(struct pm_str *str, const char *comm)
{
	size_t from = str->len;

	put_folded_frame(str, comm);
	replace_from(str, from, ' ', '_');
}

static bool function_in_kernel(const struct pm_profile *profile, uint32_t function)
{
	uint32_t module = profile->functions.data[function].module;

	return module != PM_PROFILE_NONE && profile->modules.data[module].kernel;
}

/* Makes the written form of a function once, because most functions are on thousands of
 * stacks. */
static void make_name(struct folding *folding, uint32_t id)
{
	const struct pm_profile *profile = folding->profile;
	const struct pm_profile_function *function = &profile->functions.data[id];
	struct pm_str *str = &folding->names;
	size_t at = str->len;

	pm_str_putc(str, ';');
	if (function->start > 0) {
		put_folded_frame(str, function->name);
		pm_str_puts(str, " in ");
		put_folded_frame(str, profile->modules.data[function->module].name);
	} else if (function->unknown && function->module != PM_PROFILE_NONE) {
		const char *module = profile->modules.data[function->module].name;
		bool bracketed = module[0] == '[';

		if (!bracketed)
			pm_str_puts(str, "[");
		put_folded_frame(str, module);
		if (!bracketed)
			pm_str_puts(str, "]");
	} else {
		put_folded_frame(str, function->name);
	}
	if (function_in_kernel(profile, id))
		pm_str_puts(str, "_[k]");
	folding->name_of[id] =
		(struct name){ .at = at, .len = (uint32_t)(str->len - at) };
}

static void put_path(struct pm_str *str, struct folding *folding,
		     const struct pm_path *path)
{
	struct name *name = &folding->name_of[path->function];

	if (name->len == 0)
		make_name(folding, path->function);
	if (folding->names.failed) {
		str->failed = true;
		return;
	}
	pm_str_append(str, folding->names.data + name->at, name->len);
	if (path->inlined && !function_in_kernel(folding->profile, path->function))
		pm_str_puts(str, "_[i]");
}

static int put_folded_line(struct pm_str *str, struct folding *folding,
			   const struct line *line)
{
	const struct pm_path *paths = folding->paths.paths.data;

	pm_vec_clear(&folding->chain);
	for (uint32_t at = line->path; at != PM_PROFILE_NONE; at = paths[at].parent)
		if (pm_vec_push(&folding->chain, at) < 0)
			return -ENOMEM;
	if (line->comm[0] != '\0')
		put_folded_comm(str, line->comm);
	else if (line->pid == PM_FILE_NONE)
		pm_str_puts(str, "[unknown]");
	else
		pm_str_printf(str, ":%u", line->pid);
	for (size_t i = folding->chain.len; i-- > 0;)
		put_path(str, folding, &paths[folding->chain.data[i]]);
	pm_str_putc(str, ' ');
	pm_str_u64(str, folding->periods ? line->weight.period : line->weight.samples);
	pm_str_putc(str, '\n');
	return 0;
}

/* Checks the size of the lines, without the numbers at their ends. */
static int folding_check_size(struct folding *folding, struct pm_error *err)
{
	const struct pm_paths *paths = &folding->paths;
	PM_AUTO_FREE uint64_t *lengths = calloc(paths->paths.len + 1, sizeof(*lengths));
	uint64_t bytes = 0;

	if (!lengths)
		return -ENOMEM;
	for (size_t i = 0; i < paths->paths.len; i++) {
		const struct pm_path *path = &paths->paths.data[i];
		struct name *name = &folding->name_of[path->function];

		if (name->len == 0)
			make_name(folding, path->function);
		if (folding->names.failed)
			return -ENOMEM;
		lengths[i] = name->len;
		if (path->parent != PM_PROFILE_NONE)
			lengths[i] += lengths[path->parent];
	}
	for (size_t i = 0; i < folding->lines.len; i++)
		bytes += lengths[folding->lines.data[i].path];
	return pm_check_document_bytes(bytes, PM_DOCUMENT_BYTES_MAX, err);
}

int pm_output_folded(const struct pm_report *report, bool periods, FILE *to,
		     struct pm_error *err)
{
	PM_CLEANUP(pm_section_release) struct pm_section section = { 0 };
	PM_CLEANUP(folded_lines_release)
	struct folding folding = {
		.profile = report->profile,
		.periods = periods,
	};
	struct pm_str out = { 0 };
	uint32_t event, end;
	int ret;

	pm_report_events(report, &event, &end);
	if (event == end)
		return 0;
	ret = pm_section_init(&section, report, event, err);
	if (ret < 0)
		return ret;
	folding.name_of =
		calloc(report->profile->functions.len + 1, sizeof(*folding.name_of));
	if (folding.name_of)
		ret = pm_paths_init(&folding.paths, report->profile, err);
	else
		ret = -ENOMEM;
	for (size_t i = 0; ret == 0 && i < section.view->cells.len; i++)
		ret = folding_add_cell(
			&folding,
			&report->profile->cells.data[section.view->cells.data[i]]);
	if (ret == 0 && folding.lines.len > 0)
		qsort(folding.lines.data, folding.lines.len, sizeof(struct line),
		      line_order);
	if (ret == 0)
		ret = folding_check_size(&folding, err);
	for (size_t i = 0; ret == 0 && i < folding.lines.len; i++) {
		ret = put_folded_line(&out, &folding, &folding.lines.data[i]);
		pm_flush_some(&out, to);
	}
	if (ret < 0) {
		pm_str_release(&out);
		if (ret == -ENOMEM)
			return pm_error_set(err, ret, "out of memory");
		return ret;
	}
	return pm_flush_all(&out, to, err);
}
