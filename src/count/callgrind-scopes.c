/* SPDX-License-Identifier: MIT */
/* Converts the sums of regions to scopes of the document. */
#include "callgrind-sums.h"
#include "tell.h"

#include "pm/symbol.h"

#include <string.h>

/* The sums of a scope, over all tallies or over those of one thread. */
struct total {
	uint64_t entered, back, nested, left;
	uint32_t max_level;
	bool tail, tail_in_recursion;
	uint64_t costs[PM_CALLGRIND_COLUMNS_MAX];
};

static size_t column_called(const struct pm_callgrind_sums *sums, const char *name)
{
	for (size_t i = 0; i < sums->columns_len; i++)
		if (strcmp(name, sums->columns[i]) == 0)
			return i;
	return SIZE_MAX;
}

/* Gets the count of @event. Returns false if callgrind does not have it, or if it is out
 * of range. */
static bool event_value_from_costs(const struct pm_callgrind_sums *sums,
				   const struct pm_stat_event *event,
				   const uint64_t *counted, uint64_t *out)
{
	const struct pm_sim_term *term;
	__int128_t sum = 0;

	if (strcmp(event->source, "simulated") != 0)
		return false;
	term = pm_sim_event_terms(event->name);
	if (!term) {
		size_t column = column_called(sums, event->name + strlen("sim."));

		if (column != SIZE_MAX)
			*out = counted[column];
		return column != SIZE_MAX;
	}
	for (; term->column; term++) {
		size_t column = column_called(sums, term->column);

		if (column == SIZE_MAX)
			return false;
		sum += (__int128_t)counted[column] * term->weight;
	}
	if (sum < 0 || sum > UINT64_MAX)
		return false;
	*out = (uint64_t)sum;
	return true;
}

/* Returns NULL if out of memory. Without @costs (no file was read), all values are
 * unknown. */
static struct pm_stat_value *values_from_costs(const struct pm_callgrind_sums *sums,
					       const struct pm_stat *stat,
					       const uint64_t *costs)
{
	struct pm_stat_value *values = pm_stat_values_new(stat->events.len);

	for (size_t i = 0; values && i < stat->events.len; i++) {
		uint64_t value;

		if (stat->events.data[i].state != PM_STAT_OK)
			values[i].state = stat->events.data[i].state;
		else if (costs && event_value_from_costs(sums, &stat->events.data[i],
							 costs, &value))
			values[i] = (struct pm_stat_value){ .state = PM_STAT_OK,
							    .value = value,
							    .raw = value };
	}
	return values;
}

/* ---- sums of a scope --------------------------------------------------------------------- */

/* Returns the tally of all threads. */
static const struct pm_callgrind_tally *whole_tally(const struct pm_callgrind_sums *sums,
						    const struct pm_callgrind_tally *of)
{
	struct pm_callgrind_tally key = { .region = of->region,
					  .function = of->function };

	return pm_callgrind_find_tally(sums, &key);
}

/*
 * The costs of a function are those of the symbol that has its first instruction; parts
 * of it under other symbols (`f.cold`) appear as calls from it. The deeper levels of a
 * range are included in the first level if the function calls itself from within the
 * range.
 */
static void add_tally_costs(const struct pm_callgrind_sums *sums, struct total *total,
			    const struct pm_callgrind_tally *tally, bool function)
{
	const struct pm_callgrind_tally *whole = whole_tally(sums, tally);

	if (function && !whole->at_entry)
		return;
	for (size_t i = 0; i < sums->columns_len; i++) {
		pm_callgrind_add(&total->costs[i], tally->first[i]);
		if (!function && !whole->recursive)
			pm_callgrind_add(&total->costs[i], tally->deeper[i]);
		/* Recursion may pass through code that the function jumps to at its end,
		 * and would be lost with that code. */
		if (function && tally->tail[i] > 0)
			total->tail = true;
		if (function && whole->nested == 0)
			total->costs[i] -= tally->tail[i];
		else if (function && whole->tail[i] > 0)
			total->tail_in_recursion = true;
	}
}

static void add_tally(const struct pm_callgrind_sums *sums, struct total *total,
		      const struct pm_callgrind_tally *tally)
{
	const struct pm_region *region = &sums->regions->list.data[tally->region];

	pm_callgrind_add(&total->entered, tally->entered);
	pm_callgrind_add(&total->back, tally->back);
	pm_callgrind_add(&total->nested, tally->nested);
	pm_callgrind_add(&total->left, tally->left);
	if (tally->max_level > total->max_level)
		total->max_level = tally->max_level;
	add_tally_costs(sums, total, tally, region->kind == PM_STAT_FUNCTION);
}

static bool scope_has_region(const struct pm_callgrind_sums *sums, uint32_t region,
			     uint32_t scope)
{
	int32_t sum = sums->regions->list.data[region].sum;

	return region == scope || (sum >= 0 && (uint32_t)sum == scope);
}

static uint64_t calls_of(const struct total *total)
{
	return PM_SUB_OR_0(total->entered, total->back);
}

/* ---- scopes ------------------------------------------------------------------------------ */

/* Valgrind numbers threads itself; only the first thread has a known tid, that of its
 * process. */
static int name_valgrind_thread(const struct pm_callgrind_thread *thread, int32_t *tid,
				char **comm)
{
	char text[32];

	if (thread->thread <= 1)
		*tid = thread->pid;
	else
		*tid = 0;
	snprintf(text, sizeof(text), "thread %d", thread->thread);
	return pm_stat_text(comm, text);
}

static int fill_thread(const struct pm_callgrind_sums *sums, const struct pm_stat *stat,
		       struct pm_stat_scope *scope, uint32_t index,
		       const struct pm_callgrind_thread *of)
{
	struct pm_stat_thread thread = { .pid = of->pid };
	struct total total = { 0 };
	bool any = false;

	for (size_t i = 0; i < sums->tallies.len; i++) {
		const struct pm_callgrind_tally *tally = &sums->tallies.data[i];

		if (tally->pid != of->pid || tally->thread != of->thread ||
		    !scope_has_region(sums, tally->region, index))
			continue;
		add_tally(sums, &total, tally);
		any = true;
	}
	if (!any)
		return 0;
	thread.calls = calls_of(&total);
	thread.values = values_from_costs(sums, stat, total.costs);
	if (!thread.values || name_valgrind_thread(of, &thread.tid, &thread.comm) < 0 ||
	    pm_vec_push(&scope->threads, thread) < 0) {
		free(thread.values);
		free(thread.comm);
		return -ENOMEM;
	}
	return 0;
}

static int copy_demangled(char **out, const char *name)
{
	PM_AUTO_FREE char *plain = pm_demangle(name);

	return pm_stat_text(out, pm_text_or(plain, name));
}

/* Appends a caller. Code that a function jumps to at its end is included in the costs of
 * its callers, but not listed separately: with @tail it is not known which part is the
 * function's own. */
static int fill_caller(const struct pm_callgrind_sums *sums, const struct pm_stat *stat,
		       struct pm_stat_scope *scope, const struct pm_callgrind_site *site,
		       bool tail)
{
	const struct pm_callgrind_table *table = &sums->table;
	struct pm_stat_caller *caller;
	struct pm_stat_frame *frame;

	if (pm_vec_push(&scope->callers, (struct pm_stat_caller){ 0 }) < 0)
		return -ENOMEM;
	caller = &scope->callers.data[scope->callers.len - 1];
	caller->calls = site->calls;
	caller->values = values_from_costs(sums, stat, tail ? NULL : site->costs);
	if (!caller->values ||
	    pm_vec_push(&caller->frames, (struct pm_stat_frame){ 0 }) < 0)
		return -ENOMEM;
	frame = &caller->frames.data[0];
	frame->address = site->address;
	if (site->function != PM_CALLGRIND_NONE) {
		const struct pm_callgrind_function *function =
			&table->functions.data[site->function];

		if (copy_demangled(&frame->function, function->name) < 0 ||
		    (function->object != PM_CALLGRIND_NONE &&
		     pm_stat_text(&frame->module, table->objects.data[function->object]) <
			     0))
			return -ENOMEM;
	}
	if (site->file == PM_CALLGRIND_NONE || site->line == 0 || site->line > UINT32_MAX)
		return 0;
	frame->line = (uint32_t)site->line;
	return pm_stat_text(&frame->file, table->files.data[site->file]);
}

/* Valgrind attributes only a file's .text to its functions, not other sections. */
static bool region_is_outside_text(const struct pm_callgrind_sums *sums, uint32_t index)
{
	const struct pm_region *region = &sums->regions->list.data[index];
	uint64_t low, high;

	return region->pieces.len > 0 && region->fd >= 0 &&
	       (pm_symbols_section(region->fd, ".text", &low, &high) < 0 ||
		region->pieces.data[0].low < low || region->pieces.data[0].low >= high);
}

static int scope_set_unknown(struct pm_stat *stat, struct pm_stat_scope *scope)
{
	pm_tell_unknown(stat, scope);
	return pm_tell_warning(
		stat,
		"%s is not in the section .text, and callgrind does not tell "
		"whether it was called",
		scope->name);
}

static int scope_fill_counts(const struct pm_callgrind_sums *sums, struct pm_stat *stat,
			     struct pm_stat_scope *scope, const struct total *total)
{
	bool function = scope->kind == PM_STAT_FUNCTION;

	scope->calls = calls_of(total);
	scope->nested = PM_MIN(total->nested, scope->calls);
	if (scope->calls == 0)
		scope->max_depth = 0;
	else
		scope->max_depth = PM_MAX(total->max_level, 1);
	if (function && scope->calls > total->left)
		scope->unfinished = scope->calls - total->left;
	scope->calls_exact = !sums->damaged;
	scope->values = values_from_costs(sums, stat, total->costs);
	scope->per_call = calloc(stat->events.len, sizeof(*scope->per_call));
	if (!scope->values || !scope->per_call)
		return -ENOMEM;
	if (total->tail_in_recursion &&
	    pm_tell_warning(
		    stat, "%s calls itself; what it jumps to at its end is in its values",
		    scope->name) < 0)
		return -ENOMEM;
	if (scope->max_depth >= PM_CALLGRIND_LEVELS &&
	    pm_tell_warning(stat,
			    "%s may recurse deeper than callgrind was told to follow",
			    scope->name) < 0)
		return -ENOMEM;
	return 0;
}

static int scope_fill_from_tallies(const struct pm_callgrind_sums *sums,
				   struct pm_stat *stat, struct pm_stat_scope *scope,
				   uint32_t index)
{
	struct total total = { 0 };

	for (size_t i = 0; i < sums->tallies.len; i++) {
		const struct pm_callgrind_tally *tally = &sums->tallies.data[i];

		if (tally->pid == 0 && tally->thread == 0 &&
		    scope_has_region(sums, tally->region, index))
			add_tally(sums, &total, tally);
	}
	if (pm_tell_scope(scope, &sums->regions->list.data[index]) < 0 ||
	    scope_fill_counts(sums, stat, scope, &total) < 0)
		return -ENOMEM;
	if (sums->regions->list.data[index].parted)
		scope->calls_exact = false;
	if (total.entered == 0 && region_is_outside_text(sums, index) &&
	    scope_set_unknown(stat, scope) < 0)
		return -ENOMEM;
	if (pm_tell_inlined(stat, scope, &sums->regions->list.data[index]) < 0)
		return -ENOMEM;
	for (size_t i = 0; sums->options->by_thread && i < sums->threads.len; i++)
		if (fill_thread(sums, stat, scope, index, &sums->threads.data[i]) < 0)
			return -ENOMEM;
	for (size_t i = 0; i < sums->sites.len; i++)
		if (scope_has_region(sums, sums->sites.data[i].region, index) &&
		    fill_caller(sums, stat, scope, &sums->sites.data[i], total.tail) < 0)
			return -ENOMEM;
	return 0;
}

/* ---- the run ----------------------------------------------------------------------------- */

static int run_fill_thread_rows(const struct pm_callgrind_sums *sums,
				const struct pm_stat *stat, struct pm_stat_run *run)
{
	for (size_t i = 0; i < sums->threads.len; i++) {
		const struct pm_callgrind_thread *thread = &sums->threads.data[i];
		struct pm_stat_row row = { .pid = thread->pid, .cpu = -1 };

		row.values = values_from_costs(sums, stat, thread->costs);
		if (!row.values ||
		    name_valgrind_thread(thread, &row.tid, &row.comm) < 0 ||
		    pm_vec_push(&run->rows, row) < 0) {
			free(row.values);
			free(row.comm);
			return -ENOMEM;
		}
	}
	return 0;
}

/* Warns about costs in copies of a process that cannot be distinguished from those of
 * their parents. */
static int warn_of_forked_copies(struct pm_callgrind_sums *sums, struct pm_stat *stat)
{
	sums->damaged |= sums->copies_left_out > 0 || sums->copies_with_threads > 0 ||
			 sums->copies_with_handlers > 0;
	if (sums->copies_with_handlers > 0 &&
	    pm_tell_warning(
		    stat,
		    "%zu times fork(3) was called: handlers of pthread_atfork(3) are "
		    "not counted in the child with this C library",
		    sums->copies_with_handlers) < 0)
		return -ENOMEM;
	if (sums->copies_left_out > 0 &&
	    pm_tell_warning(
		    stat,
		    "%zu process%s made by a system call of the program's own, not "
		    "by fork(3): what they did is not counted, for callgrind adds "
		    "it to what their parents did",
		    sums->copies_left_out,
		    pm_plural(sums->copies_left_out, " was", "es were")) < 0)
		return -ENOMEM;
	if (sums->copies_with_threads == 0)
		return 0;
	return pm_tell_warning(stat,
			       "%zu forked process%s made threads: what these did is not "
			       "counted, for callgrind adds it to what threads of their "
			       "parents did",
			       sums->copies_with_threads,
			       pm_plural(sums->copies_with_threads, "", "es"));
}

int pm_callgrind_sums_finish(struct pm_callgrind_sums *sums, struct pm_stat *stat,
			     uint32_t run)
{
	struct pm_stat_run *it = &stat->runs.data[run];

	if (warn_of_forked_copies(sums, stat) < 0)
		return -ENOMEM;
	free(it->values);
	it->values = values_from_costs(sums, stat, sums->total);
	if (!it->values ||
	    (sums->options->by_thread && run_fill_thread_rows(sums, stat, it) < 0))
		return -ENOMEM;
	for (uint32_t i = 0; i < sums->regions->list.len; i++) {
		struct pm_stat_scope scope = { .run = run };

		if (sums->regions->list.data[i].sum >= 0)
			continue;
		if (pm_vec_push(&stat->scopes, scope) < 0 ||
		    scope_fill_from_tallies(
			    sums, stat, &stat->scopes.data[stat->scopes.len - 1], i) < 0)
			return -ENOMEM;
	}
	return 0;
}
