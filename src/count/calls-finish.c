/* SPDX-License-Identifier: MIT */
/* Converts the sums of calls to scopes of the document. */
#include "calls-internal.h"
#include "tell.h"

#include <string.h>

/* Costs to subtract: of a measured call itself, and of each visit inside it. By event,
 * then elapsed time. */
struct costs {
	const uint64_t *call,
		*visit[2]; /* of a region, NULL: none; by whether the place is cheap */
	size_t events, columns;
};

struct finish {
	struct pm_calls *calls;
	struct pm_stat *stat;
	struct costs costs;
	bool subtract;
	size_t wall; /* index of the event for elapsed time; SIZE_MAX: none */
	uint64_t *sums; /* columns */
	/* Number of scopes most of whose count belongs to something else; the region of
	 * the first, and the result of find_inner() for it. */
	size_t vague;
	uint32_t vague_first, vague_inner;
};

/* ---- values -------------------------------------------------------------------------- */

/* Returns the cost of the visits inside. @column: an event, or the number of events for
 * elapsed time. */
static uint64_t inner_cost_of(const struct costs *costs, const uint64_t *words,
			      size_t column)
{
	const uint64_t *extra = words + costs->events;

	if (!costs->call)
		return 0;
	return extra[PM_CALLS_DEAR] * costs->visit[0][column] +
	       extra[PM_CALLS_CHEAP] * costs->visit[1][column];
}

static uint64_t cost_of(const struct costs *costs, const uint64_t *words, size_t column)
{
	if (!costs->call)
		return 0;
	return words[costs->events + PM_CALLS_OWN] * costs->call[column] +
	       inner_cost_of(costs, words, column);
}

/* Whether the kernel itself keeps the count: each observed call adds the same number,
 * such as one switch. */
static bool event_counts_whole_numbers(const struct pm_stat_event *event)
{
	return event->source && (strcmp(event->source, "tracepoint") == 0 ||
				 (strcmp(event->source, "software") == 0 &&
				  (!event->unit || event->unit[0] == '\0')));
}

/* Whether the remainder is meaningful. The cost of the visits inside a call is known to
 * about a tenth. If that cost is the larger part of a value, the remainder is noise; for
 * elapsed time the limit is lower, as the reader of the records takes some of it. A
 * negative remainder is noise as well. Whole-number counts are exact: a remainder of
 * nothing is 0. */
static bool remainder_is_known(const struct costs *costs, const uint64_t *words,
			       size_t column, uint64_t value, bool whole)
{
	uint64_t cost = cost_of(costs, words, column);
	uint64_t inner = inner_cost_of(costs, words, column);

	if (whole)
		return cost <= value;
	return inner <= value / (column == costs->events ? 4 : 2) &&
	       (cost == 0 || cost < value);
}

static struct pm_stat_value value_less_cost(const struct costs *costs,
					    const uint64_t *words, size_t column,
					    bool whole)
{
	struct pm_count count = { .state = PM_STAT_OK };
	uint64_t cost = cost_of(costs, words, column);
	struct pm_stat_value ret;

	if (column == costs->events)
		count.raw = count.value = words[costs->events + PM_CALLS_TIME];
	else
		count = pm_count_scale(&(struct pm_count_read){
			.value = words[column],
			.enabled_ns = words[costs->events + PM_CALLS_ENABLED],
			.running_ns = words[costs->events + PM_CALLS_RUNNING],
		});
	ret = (struct pm_stat_value){
		.state = count.state,
		.value = PM_SUB_OR_0(count.value, cost),
		.raw = count.raw,
		.enabled_ns = count.enabled_ns,
		.running_ns = count.running_ns,
	};
	if (pm_stat_has_value(&ret) &&
	    !remainder_is_known(costs, words, column, count.value, whole))
		ret.state = PM_STAT_NOT_KNOWN;
	return ret;
}

/* Returns the column of an event of the document, or SIZE_MAX if calls do not have this
 * event. */
static size_t column_of(const struct finish *finish, size_t event)
{
	if (event == finish->wall)
		return finish->costs.events;
	if (event < finish->costs.events)
		return event;
	return SIZE_MAX;
}

/* Whether elapsed time is little more than the cost: if CPU time is then unknown, elapsed
 * time is, too. The elapsed time of a call that waits exceeds any cost. */
static bool is_mostly_cost(const struct finish *finish, const uint64_t *words)
{
	const struct costs *costs = &finish->costs;

	return finish->wall < finish->stat->events.len &&
	       cost_of(costs, words, costs->events) >
		       words[costs->events + PM_CALLS_TIME] / 4;
}

/* Returns NULL if out of memory. */
static struct pm_stat_value *values_from_words(const struct finish *finish,
					       const uint64_t *words)
{
	const struct pm_stat *stat = finish->stat;
	struct pm_stat_value *values = pm_stat_values_new(stat->events.len);
	bool vague = false;

	for (size_t i = 0; values && i < stat->events.len; i++) {
		size_t column = column_of(finish, i);

		if (stat->events.data[i].state != PM_STAT_OK) {
			values[i].state = stat->events.data[i].state;
			continue;
		}
		if (column != SIZE_MAX)
			values[i] = value_less_cost(
				&finish->costs, words, column,
				event_counts_whole_numbers(&stat->events.data[i]));
		vague |= values[i].state == PM_STAT_NOT_KNOWN;
	}
	if (vague && is_mostly_cost(finish, words))
		values[finish->wall].state = PM_STAT_NOT_KNOWN;
	return values;
}

/* ---- individual calls ---------------------------------------------------------------- */

static int compare_call_values(const void *a, const void *b)
{
	uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;

	return PM_COMPARE(left, right);
}

/* Returns the percentile @percent of @len sorted values, by nearest rank. */
static uint64_t nearest_rank(const uint64_t *values, size_t len, unsigned int percent)
{
	size_t rank = (len * percent + 99) / 100;

	return values[rank > 0 ? rank - 1 : 0];
}

/* Minimum and maximum are of all calls; if a call's cost depends on what was called
 * inside, they are of the calls that were kept. */
static void fill_spread(const struct finish *finish, const struct pm_calls_region *region,
			size_t column, uint64_t *values, struct pm_stat_spread *out)
{
	const struct costs *costs = &finish->costs;
	size_t cheap = costs->events + PM_CALLS_CHEAP;
	size_t dear = costs->events + PM_CALLS_DEAR;

	for (size_t i = 0; i < region->kept; i++)
		values[i] = value_less_cost(costs, &region->rows.data[i * costs->columns],
					    column, false)
				    .value;
	qsort(values, region->kept, sizeof(*values), compare_call_values);
	*out = (struct pm_stat_spread){
		.known = true,
		.min = values[0],
		.p50 = nearest_rank(values, region->kept, 50),
		.p99 = nearest_rank(values, region->kept, 99),
		.max = values[region->kept - 1],
	};
	if (costs->call && (region->least[cheap] != region->most[cheap] ||
			    region->least[dear] != region->most[dear]))
		return;
	if (column < costs->events &&
	    region->most[costs->events + PM_CALLS_ENABLED] !=
		    region->most[costs->events + PM_CALLS_RUNNING])
		return;
	out->min = value_less_cost(costs, region->least, column, false).value;
	out->max = value_less_cost(costs, region->most, column, false).value;
}

static int fill_spreads(const struct finish *finish, const struct pm_calls_region *region,
			struct pm_stat_scope *scope)
{
	const struct pm_stat *stat = finish->stat;
	PM_AUTO_FREE uint64_t *values = NULL;

	scope->calls_kept = region->kept;
	scope->per_call = calloc(stat->events.len + 1, sizeof(*scope->per_call));
	if (!scope->per_call)
		return -ENOMEM;
	if (region->kept == 0)
		return 0;
	values = calloc(region->kept, sizeof(*values));
	if (!values)
		return -ENOMEM;
	for (size_t i = 0; i < stat->events.len; i++) {
		size_t column = column_of(finish, i);

		if (column != SIZE_MAX && stat->events.data[i].state == PM_STAT_OK &&
		    scope->values[i].state != PM_STAT_NOT_KNOWN)
			fill_spread(finish, region, column, values, &scope->per_call[i]);
	}
	return 0;
}

/* ---- threads and callers ------------------------------------------------------------- */

static bool finish_scope_has_region(const struct finish *finish, uint32_t region,
				    uint32_t scope)
{
	int32_t sum = finish->calls->options.regions->list.data[region].sum;

	return region == scope || (sum >= 0 && (uint32_t)sum == scope);
}

static int fill_threads(const struct finish *finish, uint32_t region,
			struct pm_stat_scope *scope)
{
	const struct pm_calls *calls = finish->calls;

	for (size_t i = 0; i < calls->done.len; i++) {
		const struct pm_calls_done *done = &calls->done.data[i];
		struct pm_stat_thread thread = { .pid = done->pid,
						 .tid = done->tid,
						 .calls = done->calls };

		if (!finish_scope_has_region(finish, done->region, region))
			continue;
		thread.values = values_from_words(
			finish, &calls->done_words.data[i * calls->columns]);
		if (!thread.values || pm_stat_text(&thread.comm, done->comm) < 0 ||
		    pm_vec_push(&scope->threads, thread) < 0) {
			free(thread.comm);
			free(thread.values);
			return -ENOMEM;
		}
	}
	return 0;
}

static int fill_callers(const struct finish *finish, uint32_t region,
			struct pm_stat_scope *scope)
{
	const struct pm_calls *calls = finish->calls;
	const struct pm_calls_options *options = &calls->options;

	for (size_t i = 0; i < calls->sites.len; i++) {
		const struct pm_calls_site *site = &calls->sites.data[i];
		struct pm_stat_caller caller = { .calls = site->calls }, *kept;

		if (!finish_scope_has_region(finish, site->region, region))
			continue;
		caller.values = values_from_words(
			finish, &calls->site_words.data[i * calls->columns]);
		if (!caller.values || pm_vec_push(&scope->callers, caller) < 0) {
			free(caller.values);
			return -ENOMEM;
		}
		kept = &scope->callers.data[scope->callers.len - 1];
		if (options->name_caller &&
		    options->name_caller(options->user, site->caller, kept) < 0)
			return -ENOMEM;
	}
	return 0;
}

/* ---- scopes -------------------------------------------------------------------------- */

static void scope_add_region_sums(struct finish *finish, uint32_t region,
				  struct pm_stat_scope *scope)
{
	const struct pm_calls *calls = finish->calls;
	const struct pm_calls_region *sums = &calls->regions.data[region];

	scope->calls += sums->calls;
	scope->nested += sums->nested;
	scope->unfinished += sums->unfinished;
	if (sums->max_depth > scope->max_depth)
		scope->max_depth = sums->max_depth;
	for (size_t i = 0; i < calls->columns; i++)
		finish->sums[i] += calls->totals[region * calls->columns + i];
}

/* Selects the costs for the way in which the region is entered. */
static void choose_costs(struct finish *finish, uint32_t index)
{
	const struct pm_calls *calls = finish->calls;
	const struct pm_regions *regions = calls->options.regions;
	bool cheap = false;

	for (size_t i = 0; i < regions->places.len; i++) {
		const struct pm_place *place = &regions->places.data[i];

		if (!finish_scope_has_region(finish, place->region, index) ||
		    (place->kind != PM_PLACE_ENTRY && place->kind != PM_PLACE_IN))
			continue;
		cheap = place->cheap;
		break;
	}
	if (finish->subtract)
		finish->costs.call = calls->call_cost[cheap];
	else
		finish->costs.call = NULL;
}

static int warn_of_added_copies(const struct finish *finish, uint32_t index,
				const struct pm_stat_scope *scope)
{
	const struct pm_calls *calls = finish->calls;
	bool add = false;

	for (uint32_t i = 0; i < calls->regions.len && !add; i++)
		add = finish_scope_has_region(finish, i, index) &&
		      calls->regions.data[i].copies_add;
	if (!add)
		return 0;
	return pm_tell_warning(
		finish->stat,
		"%s: processes that were forked in the middle of a call add to its totals and "
		"\"per call\", but not to min, p50, p99 and max",
		scope->name);
}

/* Finds the region without which this one should be measured: the most frequently called
 * of the others, if the visits inside can be its calls. Returns UINT32_MAX if there is
 * none. */
static uint32_t find_inner(const struct finish *finish, uint32_t index)
{
	const struct pm_calls *calls = finish->calls;
	const uint64_t *extra = finish->sums + finish->costs.events;
	uint64_t inside = extra[PM_CALLS_CHEAP] + extra[PM_CALLS_DEAR], most = 0, all = 0;
	uint32_t ret = UINT32_MAX;

	for (uint32_t i = 0; i < calls->regions.len; i++) {
		uint64_t times = calls->regions.data[i].calls;

		if (finish_scope_has_region(finish, i, index))
			continue;
		all += times;
		if (times > most) {
			most = times;
			ret = i;
		}
	}
	if (all >= inside / 4)
		return ret;
	return UINT32_MAX;
}

static void note_not_known(struct finish *finish, uint32_t index,
			   const struct pm_stat_scope *scope)
{
	const uint64_t *extra = finish->sums + finish->costs.events;
	bool any = false;

	for (size_t i = 0; i < finish->stat->events.len; i++)
		any |= scope->values[i].state == PM_STAT_NOT_KNOWN;
	/* For short calls with nothing inside, the state is enough: there may be many of
	 * them. */
	if (!any || extra[PM_CALLS_CHEAP] + extra[PM_CALLS_DEAR] == 0)
		return;
	if (finish->vague++ == 0) {
		finish->vague_first = index;
		finish->vague_inner = find_inner(finish, index);
	}
}

static int warn_of_unknown_costs(const struct finish *finish)
{
	const struct pm_region *regions = finish->calls->options.regions->list.data;
	const char *name = regions[finish->vague_first].name;
	const struct pm_region *inner;
	char others[48] = "";

	if (finish->vague == 0)
		return 0;
	if (finish->vague > 1)
		snprintf(others, sizeof(others), " and %zu other%s", finish->vague - 1,
			 pm_plural_s(finish->vague - 1));
	if (finish->vague_inner == UINT32_MAX)
		return pm_tell_warning(
			finish->stat,
			"what %s%s took is not known: most of what was counted there is what "
			"it cost to see how often places inside were passed; try: --engine "
			"callgrind",
			name, others);
	inner = &regions[finish->vague_inner];
	return pm_tell_warning(
		finish->stat,
		"what %s%s took is not known: most of what was counted there is what it "
		"cost to see the calls inside; try: without %s %s",
		name, others, inner->kind == PM_STAT_RANGE ? "--range" : "--fn",
		inner->name);
}

static int finish_fill_scope(struct finish *finish, uint32_t index,
			     struct pm_stat_scope *scope)
{
	const struct pm_calls *calls = finish->calls;
	int ret = pm_tell_scope(scope, &calls->options.regions->list.data[index]);

	scope->calls_exact = !calls->options.regions->list.data[index].parted;
	choose_costs(finish, index);
	memset(finish->sums, 0, calls->columns * sizeof(*finish->sums));
	for (uint32_t i = 0; i < calls->regions.len; i++)
		if (finish_scope_has_region(finish, i, index))
			scope_add_region_sums(finish, i, scope);
	scope->values = values_from_words(finish, finish->sums);
	if (ret < 0 || !scope->values)
		return -ENOMEM;
	ret = pm_tell_inlined(finish->stat, scope,
			      &calls->options.regions->list.data[index]);
	if (ret == 0)
		ret = fill_spreads(finish, &calls->regions.data[index], scope);
	note_not_known(finish, index, scope);
	if (ret == 0)
		ret = warn_of_added_copies(finish, index, scope);
	if (ret == 0)
		ret = fill_threads(finish, index, scope);
	if (ret < 0)
		return ret;
	return fill_callers(finish, index, scope);
}

/* ---- all ----------------------------------------------------------------------------- */

/* Closes threads that are still running, or whose end is unknown. */
static int fold_threads(struct pm_calls *calls)
{
	for (size_t i = 0; i < calls->threads.len; i++)
		if (calls->threads.data[i].tid != 0)
			pm_calls_thread_exit(calls, calls->threads.data[i].tid);
	if (calls->failed)
		return -ENOMEM;
	return 0;
}

static size_t find_wall(const struct pm_stat *stat)
{
	for (size_t i = 0; i < stat->events.len; i++)
		if (stat->events.data[i].source &&
		    strcmp(stat->events.data[i].source, "tool") == 0 &&
		    strcmp(stat->events.data[i].name, "wall-time") == 0)
			return i;
	return SIZE_MAX;
}

static int copy_costs(uint64_t **to, const uint64_t *costs, size_t len)
{
	uint64_t *copy = calloc(len, sizeof(*copy));

	if (!copy)
		return -ENOMEM;
	memcpy(copy, costs, len * sizeof(*copy));
	free(*to);
	*to = copy;
	return 0;
}

int pm_calls_set_costs(struct pm_calls *calls, bool cheap, const uint64_t *call,
		       const uint64_t *visit)
{
	size_t len = calls->options.events + 1;

	if (copy_costs(&calls->call_cost[cheap], call, len) < 0)
		return -ENOMEM;
	return copy_costs(&calls->visit_cost[cheap], visit, len);
}

int pm_calls_set_visit_cost(struct pm_calls *calls, const uint64_t *costs)
{
	size_t len = calls->options.events + 1;

	if (copy_costs(&calls->visit_cost[0], costs, len) < 0)
		return -ENOMEM;
	return copy_costs(&calls->visit_cost[1], costs, len);
}

/* Fills in costs that were not given: a visit costs half of a call. */
static int complete_costs(struct pm_calls *calls, const uint64_t *overhead)
{
	size_t len = calls->options.events + 1;
	PM_AUTO_FREE uint64_t *half = calloc(len, sizeof(*half));
	int ret = 0;

	if (!half)
		ret = -ENOMEM;
	for (size_t i = 0; half && i < len; i++)
		half[i] = overhead[i] / 2;
	for (size_t i = 0; i < 2 && ret == 0; i++) {
		if (!calls->call_cost[i])
			ret = copy_costs(&calls->call_cost[i], overhead, len);
		if (ret == 0 && !calls->visit_cost[i])
			ret = copy_costs(&calls->visit_cost[i], half, len);
	}
	return ret;
}

int pm_calls_finish(struct pm_calls *calls, struct pm_stat *stat, uint32_t run,
		    const uint64_t *overhead)
{
	PM_AUTO_FREE uint64_t *sums = calloc(calls->columns, sizeof(*sums));
	struct finish finish = {
		.calls = calls,
		.stat = stat,
		.costs = { .events = calls->options.events, .columns = calls->columns },
		.subtract = overhead != NULL,
		.wall = find_wall(stat),
		.sums = sums,
	};

	if (overhead && complete_costs(calls, overhead) < 0)
		return -ENOMEM;
	finish.costs.visit[0] = calls->visit_cost[0];
	finish.costs.visit[1] = calls->visit_cost[1];
	if (!sums || fold_threads(calls) < 0)
		return -ENOMEM;
	for (uint32_t i = 0; i < calls->regions.len; i++) {
		struct pm_stat_scope scope = { .run = run };

		if (calls->options.regions->list.data[i].sum >= 0)
			continue;
		/* The document owns the scope before it is complete. */
		if (pm_vec_push(&stat->scopes, scope) < 0 ||
		    finish_fill_scope(&finish, i,
				      &stat->scopes.data[stat->scopes.len - 1]) < 0)
			return -ENOMEM;
	}
	return warn_of_unknown_costs(&finish);
}
