/* SPDX-License-Identifier: MIT */
/* Functions and ranges: the costs of their calls, individually and in total. */
#include "stat-show.h"

#include <string.h>

#include "pm/base-text.h"

enum {
	INDENT = 2,
	FRAME_COLUMNS = 36, /* columns of a caller's name */
};

/* ---- name and location ----------------------------------------------------------------- */

static void put_scope_place(struct pm_str *str, const struct pm_stat_scope *scope)
{
	const char *file = NULL;

	if (scope->file)
		file = pm_basename(scope->file);
	if (scope->module) {
		const char *module = pm_basename(scope->module);

		pm_str_puts(str, "  ");
		pm_str_printable(str, module, strlen(module));
	}
	if (file && scope->kind != PM_STAT_RANGE) {
		pm_str_puts(str, "  ");
		pm_str_printable(str, file, strlen(file));
		if (scope->line > 0)
			pm_str_printf(str, ":%u", scope->line);
	}
	if (scope->kind == PM_STAT_INLINED && scope->places == 1)
		pm_str_puts(str, "  inlined here");
	else if (scope->kind == PM_STAT_INLINED)
		pm_str_printf(str, "  inlined at %u places", scope->places);
}

void pm_stat_text_scope_name(const struct pm_stat_text *to,
			     const struct pm_stat_scope *scope)
{
	struct pm_str name = { 0 }, place = { 0 };
	size_t width = to->report->width, rest;

	put_scope_place(&place, scope);
	rest = pm_str_columns(&place);
	/* The name is shortened, but keeps some width. */
	pm_put_name(&name, scope->name, width > 2 * rest ? width - rest : width,
		    to->report->ascii);
	if (!name.failed && !place.failed) {
		pm_text_put(&to->text, PM_COLOR_HEAD, pm_str_text(&name));
		fprintf(to->text.to, "%s\n", pm_str_text(&place));
	}
	pm_str_release(&name);
	pm_str_release(&place);
}

/* Whether the function is inlined and interleaved with other code: entries into each part
 * are counted. */
static bool is_in_parts(const struct pm_stat_scope *scope)
{
	return scope->kind == PM_STAT_INLINED && !scope->calls_exact && scope->lost == 0;
}

static void print_scope_calls(const struct pm_stat_text *to,
			      const struct pm_stat_scope *scope)
{
	struct pm_str line = { 0 };
	bool in_parts = is_in_parts(scope);

	if (scope->calls_unknown) {
		pm_str_puts(&line, "calls: not known");
		pm_stat_text_line(to, PM_COLOR_WARNING, INDENT, &line);
		pm_str_release(&line);
		return;
	}
	if (!scope->calls_exact && !in_parts)
		pm_str_puts(&line, "at least ");
	pm_put_count(&line, scope->calls);
	pm_str_puts(&line, scope->kind == PM_STAT_RANGE || in_parts ? " time" : " call");
	pm_str_puts(&line, pm_plural_s(scope->calls));
	if (in_parts)
		pm_str_puts(&line, " in one of its parts");
	if (scope->nested > 0) {
		pm_str_puts(&line, ", ");
		pm_put_count(&line, scope->nested);
		pm_str_puts(&line, " of them from inside of itself");
	}
	if (scope->max_depth > 1)
		pm_str_printf(&line, ", %u deep", scope->max_depth);
	if (scope->unfinished > 0) {
		pm_str_puts(&line, ", ");
		pm_put_count(&line, scope->unfinished);
		pm_str_puts(&line, " unfinished");
	}
	pm_stat_text_line(to, PM_COLOR_PLAIN, INDENT, &line);
	if (scope->lost > 0 && !to->report->quiet) {
		pm_str_puts(&line, "warning: lost ");
		pm_put_count(&line, scope->lost);
		pm_str_puts(&line, pm_plural(scope->lost, " hit", " hits"));
		pm_str_puts(&line, ", the numbers are too small");
		pm_stat_text_line(to, PM_COLOR_WARNING, INDENT, &line);
	}
	pm_str_release(&line);
}

/* ---- calls ----------------------------------------------------------------------------- */

/* Returns the number of calls for averages: nested calls are included in their outermost
 * ones. */
static uint64_t count_outermost_calls(const struct pm_stat_scope *scope)
{
	return PM_SUB_OR_0(scope->calls, scope->nested);
}

static bool has_spreads(const struct pm_stat *stat, const struct pm_stat_scope *scope)
{
	for (size_t i = 0; scope->per_call && i < stat->events.len; i++)
		if (scope->per_call[i].known)
			return true;
	return false;
}

static void put_spread(struct pm_grid *grid, const struct pm_stat_event *event,
		       const struct pm_stat_spread *spread, bool ascii)
{
	const uint64_t numbers[] = { spread->p50, spread->min, spread->p99, spread->max };
	struct pm_str cell = { 0 };

	for (size_t i = 0; i < PM_ARRAY_LEN(numbers); i++) {
		if (spread->known)
			pm_put_stat_value(&cell, event, (double)numbers[i] * event->scale,
					  ascii);
		pm_grid_put(grid, &cell);
	}
	pm_str_release(&cell);
}

static void put_scope_mean(struct pm_grid *grid, const struct pm_stat_text *to,
			   const struct pm_stat_scope *scope, uint32_t i)
{
	const struct pm_stat_event *event = &to->stat->events.data[i];
	const struct pm_stat_value *value = &scope->values[i];
	uint64_t calls = count_outermost_calls(scope);
	struct pm_str cell = { 0 };

	if (pm_stat_has_value(value) && calls > 0)
		pm_put_stat_value(&cell, event,
				  (double)value->value * event->scale / (double)calls,
				  to->report->ascii);
	pm_grid_put(grid, &cell);
	pm_str_release(&cell);
}

/* Appends an event. The median comes first: if some calls lost their CPU, the mean says
 * little about the others. */
static void put_scope_event(struct pm_grid *grid, const struct pm_stat_text *to,
			    const struct pm_stat_scope *scope, uint32_t i, bool spreads)
{
	static const struct pm_stat_spread unknown;
	const struct pm_stat_event *event = &to->stat->events.data[i];
	const char *name = pm_stat_event_shown(event);
	struct pm_str cell = { 0 };

	pm_str_printable(&cell, name, strlen(name));
	pm_grid_put(grid, &cell);
	if (spreads)
		put_spread(grid, event, scope->per_call ? &scope->per_call[i] : &unknown,
			   to->report->ascii);
	if (scope->calls > 1)
		put_scope_mean(grid, to, scope, i);
	pm_put_stat_count(&cell, event, &scope->values[i], to->report->ascii);
	pm_grid_put(grid, &cell);
	pm_str_release(&cell);
}

bool pm_stat_says_something(const struct pm_stat_event *event, bool known, bool zero,
			    enum pm_stat_state state)
{
	if (known)
		return !zero || !event->default_set || pm_stat_is_time(event);
	return state == PM_STAT_NOT_KNOWN ||
	       !(event->default_set || pm_stat_is_tools(event));
}

static int print_scope_table(const struct pm_stat_text *to,
			     const struct pm_stat_scope *scope)
{
	PM_CLEANUP(pm_grid_release)
	struct pm_grid grid = { .titled = true, .fixed = 1, .indent = INDENT };
	/* For a single call, the total is its value. */
	bool spreads = scope->calls > 1 && has_spreads(to->stat, scope);
	/* Nested calls are included in the outermost ones. */
	const char *mean = scope->nested > 0 ? "per outer" : "per call";
	const char *const titles[] = { "", "median", "min", "p99", "max", mean, "total" };

	for (size_t pass = 0; pass < 2; pass++)
		for (size_t i = 0; i < PM_ARRAY_LEN(titles); i++) {
			bool of_spread = i > 0 && i < 5;

			if ((of_spread && !spreads) || (i == 5 && scope->calls <= 1))
				continue;
			if (pass == 0)
				pm_grid_column(&grid, i == 0);
			else
				pm_grid_puts(&grid, titles[i]);
		}
	for (uint32_t i = 0; i < to->stat->events.len; i++) {
		const struct pm_stat_value *value = &scope->values[i];

		if (pm_stat_says_something(&to->stat->events.data[i],
					   pm_stat_has_value(value), value->value == 0,
					   value->state))
			put_scope_event(&grid, to, scope, i, spreads);
	}
	return pm_grid_print(&grid, &to->text);
}

static void print_scope_metrics(const struct pm_stat_text *to,
				const struct pm_stat_scope *scope)
{
	int32_t id = (int32_t)(scope - to->stat->scopes.data);
	uint32_t variant = to->stat->runs.data[scope->run].variant;
	struct pm_str line = { 0 };

	pm_put_stat_metrics(&line, to->stat, PM_STAT_ANY_EVENT, variant, id);
	pm_stat_text_line(to, PM_COLOR_PLAIN, INDENT, &line);
	pm_str_release(&line);
}

/* ---- by thread, by caller -------------------------------------------------------------- */

static void begin_parts(struct pm_grid *grid, const struct pm_stat_columns *columns,
			const char *title)
{
	*grid = (struct pm_grid){ .titled = true, .fixed = 1, .indent = INDENT };
	pm_grid_column(grid, true);
	pm_grid_column(grid, false);
	pm_stat_grid_columns(grid, columns);
	pm_grid_puts(grid, title);
	pm_grid_puts(grid, "calls");
	pm_stat_grid_events(grid, columns);
}

static int print_scope_threads(const struct pm_stat_text *to,
			       const struct pm_stat_scope *scope)
{
	PM_CLEANUP(pm_grid_release) struct pm_grid grid = { 0 };
	PM_CLEANUP(pm_stat_columns_release)
	struct pm_stat_columns columns = { .stat = to->stat };
	struct pm_str cell = { 0 };
	int ret = 0;

	for (size_t i = 0; ret == 0 && i < scope->threads.len; i++)
		ret = pm_stat_columns_add(&columns, scope->threads.data[i].values);
	if (ret < 0 || scope->threads.len == 0)
		return ret;
	fputc('\n', to->text.to);
	begin_parts(&grid, &columns, "thread");
	for (size_t i = 0; i < scope->threads.len; i++) {
		const struct pm_stat_thread *thread = &scope->threads.data[i];

		pm_put_stat_row_name(&cell, thread->tid, thread->comm, -1);
		pm_grid_put(&grid, &cell);
		pm_put_count(&cell, thread->calls);
		pm_grid_put(&grid, &cell);
		pm_stat_grid_values(&grid, &columns, thread->values, to->report->ascii);
	}
	pm_str_release(&cell);
	return pm_grid_print(&grid, &to->text);
}

static void put_caller_frame(struct pm_str *str, const struct pm_stat_frame *frame,
			     size_t depth, bool ascii)
{
	struct pm_str place = { 0 };
	size_t columns;

	if (frame->file) {
		pm_str_putc(&place, ' ');
		pm_put_cut(&place, pm_basename(frame->file), FRAME_COLUMNS / 2, true,
			   ascii);
		if (frame->line > 0)
			pm_str_printf(&place, ":%u", frame->line);
	}
	columns = pm_str_columns(&place);
	if (depth > 0)
		pm_str_puts(str, ascii ? "< " : "← ");
	if (frame->function) {
		pm_put_name(str, frame->function, FRAME_COLUMNS - columns, ascii);
	} else {
		pm_str_hex(str, frame->address);
		if (frame->module) {
			pm_str_puts(str, " in ");
			pm_put_cut(str, pm_basename(frame->module), FRAME_COLUMNS / 2,
				   false, ascii);
		}
	}
	if (place.data)
		pm_str_puts(str, place.data);
	str->failed |= place.failed;
	pm_str_release(&place);
}

static void put_scope_caller(struct pm_grid *grid, const struct pm_stat_columns *columns,
			     const struct pm_stat_caller *caller, bool ascii)
{
	struct pm_str cell = { 0 };

	if (caller->frames.len > 0)
		put_caller_frame(&cell, &caller->frames.data[0], 0, ascii);
	else
		pm_str_puts(&cell, "unknown");
	pm_grid_put(grid, &cell);
	pm_put_count(&cell, caller->calls);
	pm_grid_put(grid, &cell);
	pm_stat_grid_values(grid, columns, caller->values, ascii);
	for (size_t i = 1; i < caller->frames.len; i++) {
		put_caller_frame(&cell, &caller->frames.data[i], i, ascii);
		pm_grid_put(grid, &cell);
		for (size_t c = 0; c <= columns->events.len; c++)
			pm_grid_puts(grid, "");
	}
	pm_str_release(&cell);
}

static int print_scope_callers(const struct pm_stat_text *to,
			       const struct pm_stat_scope *scope)
{
	PM_CLEANUP(pm_grid_release) struct pm_grid grid = { 0 };
	PM_CLEANUP(pm_stat_columns_release)
	struct pm_stat_columns columns = { .stat = to->stat };
	int ret = 0;

	for (size_t i = 0; ret == 0 && i < scope->callers.len; i++)
		ret = pm_stat_columns_add(&columns, scope->callers.data[i].values);
	if (ret < 0 || scope->callers.len == 0)
		return ret;
	fputc('\n', to->text.to);
	begin_parts(&grid, &columns, "called from");
	for (size_t i = 0; i < scope->callers.len; i++)
		put_scope_caller(&grid, &columns, &scope->callers.data[i],
				 to->report->ascii);
	return pm_grid_print(&grid, &to->text);
}

int pm_stat_text_scope(const struct pm_stat_text *to, const struct pm_stat_scope *scope)
{
	int ret = 0;

	pm_stat_text_scope_name(to, scope);
	print_scope_calls(to, scope);
	if (scope->calls > 0)
		ret = print_scope_table(to, scope);
	if (ret == 0 && scope->calls > 0)
		print_scope_metrics(to, scope);
	if (ret == 0)
		ret = print_scope_threads(to, scope);
	if (ret == 0)
		return print_scope_callers(to, scope);
	return ret;
}
