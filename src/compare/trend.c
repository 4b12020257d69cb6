/* SPDX-License-Identifier: MIT */
/*
 * Levels of every number over many commits.
 *
 * Collects each number as a series over many commits.
 */
#include <math.h>
#include <stdarg.h>
#include <string.h>

#include "compare-internal.h"
#include "pm/stats.h"
#include "trend-internal.h"

static void trend_release(struct pm_trend *trend)
{
	free(trend->case_name);
	free(trend->scope);
	free(trend->module);
	free(trend->event);
	free(trend->unit);
	free(trend->machine);
	pm_vec_release(&trend->points);
	pm_vec_release(&trend->steps);
	*trend = (struct pm_trend){ 0 };
}

void pm_trends_release(struct pm_trends *trends)
{
	for (size_t i = 0; i < trends->commits.len; i++) {
		free(trends->commits.data[i].commit);
		free(trends->commits.data[i].subject);
		free(trends->commits.data[i].created);
	}
	for (size_t i = 0; i < trends->list.len; i++)
		trend_release(&trends->list.data[i]);
	for (size_t i = 0; i < trends->warnings.len; i++)
		free(trends->warnings.data[i]);
	pm_vec_release(&trends->commits);
	pm_vec_release(&trends->list);
	pm_vec_release(&trends->warnings);
	*trends = (struct pm_trends){ 0 };
}

/* Commits whose numbers can be compared: they have the same case, engine and kind of
 * machine. */
struct machine {
	const char *case_name; /* NULL: the only case */
	const char *engine;
	const struct pm_stat_host *host; /* host of its first commit */
	PM_VEC(const struct pm_stat *) docs;
	PM_VEC(size_t) commits; /* by document: the index of its commit */
};

struct machines {
	PM_VEC(struct machine) list;
};

static void release_machines(struct machines *machines)
{
	for (size_t i = 0; i < machines->list.len; i++) {
		pm_vec_release(&machines->list.data[i].docs);
		pm_vec_release(&machines->list.data[i].commits);
	}
	pm_vec_release(&machines->list);
}

/* All measurements of one machine, as one side; the other side is empty. */
struct collecting {
	struct pm_trends *to;
	const struct machine *machine;
	const char *label; /* label of the series; NULL: there is only one machine */
	struct pm_side sides[PM_SIDES];
	struct pm_event_pairs pairs;
	struct pm_scope_groups groups;
};

/* One series, while it is built. */
struct making {
	const struct collecting *of;
	size_t event; /* index of the pair; equal to the number of pairs: calls */
	const struct pm_stat_event *like; /* the event in the latest document; NULL:
	                                   * calls */
	struct pm_trend trend;
	size_t known; /* number of points with a value */
	PM_VEC(double) values; /* of the current commit */
	bool multiplexed, at_least, varies, unlike;
};

/* ---- machines -------------------------------------------------------------------------- */

static bool is_same_trend_text(const char *a, const char *b)
{
	if (a && b)
		return strcmp(a, b) == 0;
	return a == b;
}

static bool is_like(const struct machine *machine, const char *engine,
		    const struct pm_stat_host *host)
{
	return is_same_trend_text(machine->engine, engine) &&
	       is_same_trend_text(machine->host->arch, host->arch) &&
	       is_same_trend_text(machine->host->cpu_model, host->cpu_model) &&
	       is_same_trend_text(machine->host->virt, host->virt);
}

static int add_to_machine(struct machines *machines, const struct pm_trend_of *of,
			  size_t commit)
{
	const struct pm_stat *stat = of->stat;
	size_t i = 0;

	while (i < machines->list.len &&
	       !(is_same_trend_text(machines->list.data[i].case_name, of->case_name) &&
		 is_like(&machines->list.data[i], stat->engine, &stat->host)))
		i++;
	if (i == machines->list.len &&
	    pm_vec_push(&machines->list, (struct machine){ .case_name = of->case_name,
							   .engine = stat->engine,
							   .host = &stat->host }) < 0)
		return -ENOMEM;
	if (pm_vec_push(&machines->list.data[i].docs, stat) < 0)
		return -ENOMEM;
	return pm_vec_push(&machines->list.data[i].commits, commit);
}

/* Returns the number of machines, each counted only once, although each case has its
 * own. */
static size_t count_machines(const struct machines *machines)
{
	size_t len = 0;

	for (size_t i = 0; i < machines->list.len; i++) {
		const struct machine *machine = &machines->list.data[i];
		size_t before = 0;

		while (before < i && !is_like(&machines->list.data[before],
					      machine->engine, machine->host))
			before++;
		len += before == i;
	}
	return len;
}

static int PM_PRINTF(2, 3) warn_of_trend(struct pm_trends *to, const char *format, ...)
{
	va_list args;
	char *text;
	int len;

	va_start(args, format);
	len = vasprintf(&text, format, args);
	va_end(args);
	if (len < 0)
		return -ENOMEM;
	if (pm_vec_push(&to->warnings, text) < 0) {
		free(text);
		return -ENOMEM;
	}
	return 0;
}

/* ---- points ---------------------------------------------------------------------------- */

/* Returns the index of the event in this document, or PM_INDEX_NONE if the event has
 * another meaning there. */
static uint32_t event_of(struct making *making, size_t doc)
{
	uint32_t at = making->of->pairs.at[PM_BASE][doc][making->event];
	const struct pm_stat_event *like = making->like, *event;

	if (at == PM_INDEX_NONE)
		return at;
	event = &making->of->sides[PM_BASE].docs[doc]->events.data[at];
	if (event->user_only == like->user_only && event->scale >= like->scale &&
	    event->scale <= like->scale && is_same_trend_text(event->unit, like->unit) &&
	    is_same_trend_text(event->source, like->source))
		return at;
	making->unlike = true;
	return PM_INDEX_NONE;
}

static int take_trend_value(struct making *making, const struct pm_stat_event *event,
			    const struct pm_stat_value *value)
{
	double scaled = (double)value->value * event->scale;

	/* The factor of a hostile document can make it infinite. */
	if (!pm_stat_has_value(value) || !isfinite(scaled))
		return 0;
	making->multiplexed =
		making->multiplexed || (value->state == PM_STAT_MULTIPLEXED &&
					value->running_ns < value->enabled_ns);
	return pm_vec_push(&making->values, scaled);
}

/* Called when the values of a document are complete. */
static int finish_point(struct making *making, size_t doc)
{
	struct pm_trend_point *point =
		&making->trend.points.data[making->of->machine->commits.data[doc]];
	struct pm_stats_summary summary;
	int ret;

	if (making->values.len == 0)
		return 0;
	ret = pm_stats_summarize(making->values.data, making->values.len, &summary);
	if (ret < 0)
		return ret;
	*point = (struct pm_trend_point){ .median = summary.median,
					  .min = summary.min,
					  .max = summary.max,
					  .runs = summary.len };
	making->varies = making->varies || summary.min < summary.max;
	making->known++;
	pm_vec_clear(&making->values);
	return 0;
}

static int take_program(struct making *making)
{
	const struct pm_side *side = &making->of->sides[PM_BASE];
	int ret = 0;

	for (size_t doc = 0; doc < side->len && ret == 0; doc++) {
		const struct pm_stat *stat = side->docs[doc];
		uint32_t event = event_of(making, doc);

		if (event == PM_INDEX_NONE)
			continue;
		for (size_t i = 0; i < stat->runs.len && ret == 0; i++)
			if (pm_side_counts(side, &stat->runs.data[i]))
				ret = take_trend_value(making, &stat->events.data[event],
						       &stat->runs.data[i].values[event]);
		if (ret == 0)
			ret = finish_point(making, doc);
	}
	return ret;
}

static int take_member(struct making *making, const struct pm_scope_member *member)
{
	const struct pm_stat *stat = making->of->sides[PM_BASE].docs[member->doc];
	const struct pm_stat_scope *scope = &stat->scopes.data[member->scope];
	const struct pm_event_pairs *pairs = &making->of->pairs;
	uint32_t event;

	if (making->event == pairs->list.len) {
		if (scope->calls_unknown)
			return 0;
		making->at_least = making->at_least || !scope->calls_exact;
		return pm_vec_push(&making->values, (double)scope->calls);
	}
	event = event_of(making, member->doc);
	if (event == PM_INDEX_NONE)
		return 0;
	making->at_least = making->at_least || scope->lost > 0;
	return take_trend_value(making, &stat->events.data[event], &scope->values[event]);
}

/* Members are in the order of their documents. */
static int take_group(struct making *making, const struct pm_scope_group *group)
{
	int ret = 0;

	for (size_t i = 0; i < group->members.len && ret == 0; i++) {
		const struct pm_scope_member *member = &group->members.data[i];

		ret = take_member(making, member);
		if (ret == 0 && (i + 1 == group->members.len ||
				 group->members.data[i + 1].doc != member->doc))
			ret = finish_point(making, member->doc);
	}
	return ret;
}

/* ---- series ---------------------------------------------------------------------------- */

/* Returns the event as described in the latest document, because descriptions may have
 * been corrected. */
static const struct pm_stat_event *find_youngest_event(const struct collecting *of,
						       size_t event)
{
	for (size_t doc = of->sides[PM_BASE].len; doc-- > 0;) {
		uint32_t at = of->pairs.at[PM_BASE][doc][event];

		if (at != PM_INDEX_NONE)
			return &of->sides[PM_BASE].docs[doc]->events.data[at];
	}
	return of->pairs.list.data[event].of[PM_BASE];
}

static int name_series(struct making *making, const struct pm_scope_group *group)
{
	struct pm_trend *trend = &making->trend;
	const struct pm_event_pairs *pairs = &making->of->pairs;
	const char *event = "calls", *unit = "", *module;
	size_t len;

	trend->class = PM_STAT_EXACT;
	trend->better = -1;
	if (making->event < pairs->list.len) {
		event = pairs->list.data[making->event].name;
		unit = making->like->unit;
		trend->class = making->like->class;
		trend->better = making->like->better;
	}
	if (pm_stat_text(&trend->event, event) < 0 ||
	    pm_stat_text(&trend->unit, unit) < 0 ||
	    pm_stat_text(&trend->machine, making->of->label) < 0 ||
	    pm_stat_text(&trend->case_name, making->of->machine->case_name) < 0)
		return -ENOMEM;
	if (!group)
		return 0;
	if (group->of[PM_BASE]->module)
		module = pm_module_name(group->of[PM_BASE]->module, &len);
	else
		module = NULL;
	if (pm_stat_text(&trend->scope, group->of[PM_BASE]->name) < 0)
		return -ENOMEM;
	return pm_stat_text(&trend->module, module);
}

static int init_points(struct making *making)
{
	size_t len = making->of->to->commits.len;
	int ret = pm_vec_reserve(&making->trend.points, len);

	for (size_t i = 0; i < len && ret == 0; i++)
		making->trend.points.data[i] =
			(struct pm_trend_point){ .median = NAN, .min = NAN, .max = NAN };
	if (ret == 0)
		making->trend.points.len = len;
	return ret;
}

/* Adjusts the class of the series: a value that was scaled, is a lower bound, or varies,
 * is less exact than its class says. */
static void lower_trend_class(struct making *making)
{
	struct pm_trend *trend = &making->trend;

	if (making->multiplexed)
		trend->class = PM_STAT_NOISY;
	else if (trend->class == PM_STAT_EXACT && (making->at_least || making->varies))
		trend->class = PM_STAT_LOW_NOISE;
}

/* @group is NULL for the program. */
static int add_series(const struct collecting *of, const struct pm_scope_group *group,
		      size_t event)
{
	struct making making = { .of = of, .event = event };
	int ret = init_points(&making);

	if (event < of->pairs.list.len)
		making.like = find_youngest_event(of, event);
	if (ret == 0) {
		if (group)
			ret = take_group(&making, group);
		else
			ret = take_program(&making);
	}
	if (ret == 0 && making.known >= 2) {
		ret = name_series(&making, group);
		lower_trend_class(&making);
		if (ret == 0)
			ret = pm_vec_push(&of->to->list, making.trend);
		if (ret == 0)
			making.trend = (struct pm_trend){ 0 };
	}
	if (ret == 0 && making.unlike && !group)
		ret = warn_of_trend(
			of->to,
			"%s was counted in another way, unit or part of the machine in "
			"some commits than in the last: those have no value of it.",
			of->pairs.list.data[event].name);
	trend_release(&making.trend);
	pm_vec_release(&making.values);
	return ret;
}

static int add_all_series(const struct collecting *of)
{
	int ret = 0;

	for (size_t event = 0; event < of->pairs.list.len && ret == 0; event++)
		ret = add_series(of, NULL, event);
	for (size_t i = 0; i < of->groups.list.len && ret == 0; i++) {
		const struct pm_scope_group *group = &of->groups.list.data[i];

		if (group->repeated) {
			ret = warn_of_trend(
				of->to,
				"%s has no series: several of this name are in one run, "
				"and which is which cannot be told.",
				group->of[PM_BASE]->name);
			continue;
		}
		for (size_t event = 0; event <= of->pairs.list.len && ret == 0; event++)
			ret = add_series(of, group, event);
	}
	return ret;
}

static int name_machine(char **out, const struct machine *machine)
{
	const struct pm_stat_host *host = machine->host;
	const char *arch = pm_text_or(host->arch, "unknown");

	if (asprintf(out, "%s, %s%s%s%s", machine->engine,
		     pm_text_or(host->cpu_model, arch),
		     pm_text_if(!host->cpu_model, " processor"),
		     pm_text_if(host->virt, ", "), pm_text_or_empty(host->virt)) >= 0)
		return 0;
	*out = NULL;
	return -ENOMEM;
}

static int collect_machine(struct pm_trends *to, const struct machine *machine,
			   bool labelled)
{
	struct collecting of = {
		.to = to,
		.machine = machine,
		.sides[PM_BASE] = { .docs = machine->docs.data,
				    .len = machine->docs.len,
				    .ended = true },
	};
	PM_AUTO_FREE char *label = NULL;
	int ret;

	if (labelled && name_machine(&label, machine) < 0)
		return -ENOMEM;
	of.label = label;
	ret = pm_event_pairs_find(&of.pairs, of.sides);
	if (ret == 0)
		ret = pm_scope_groups_find(&of.groups, of.sides);
	if (ret == 0)
		ret = add_all_series(&of);
	pm_event_pairs_release(&of.pairs);
	pm_scope_groups_release(&of.groups);
	return ret;
}

/* Whether both belong to the same commit: other cases of a commit differ only in their
 * name. */
static bool is_same_commit(const struct pm_trend_of *before, const struct pm_trend_of *of)
{
	return of->case_name && before->case_name && of->commit &&
	       is_same_trend_text(before->commit, of->commit);
}

static int add_commit(struct pm_trends *to, const struct pm_trend_of *of)
{
	struct pm_trend_commit commit = { 0 };

	if (pm_stat_text(&commit.commit, of->commit) == 0 &&
	    pm_stat_text(&commit.subject, of->subject) == 0 &&
	    pm_stat_text(&commit.created, of->stat->created) == 0 &&
	    pm_vec_push(&to->commits, commit) == 0)
		return 0;
	free(commit.commit);
	free(commit.subject);
	free(commit.created);
	return -ENOMEM;
}

/* Fills out->list with series and their points, and adds warnings; does not find steps.
 * Returns 0 or -ENOMEM. */
static int trends_collect(struct pm_trends *out, const struct pm_trend_of *commits,
			  size_t len)
{
	PM_CLEANUP(release_machines) struct machines machines = { 0 };
	size_t kinds;
	int ret = 0;

	for (size_t i = 0; i < len && ret == 0; i++) {
		if (i == 0 || !is_same_commit(&commits[i - 1], &commits[i]))
			ret = add_commit(out, &commits[i]);
		if (ret == 0)
			ret = add_to_machine(&machines, &commits[i],
					     out->commits.len - 1);
	}
	kinds = count_machines(&machines);
	if (ret == 0 && kinds > 1)
		ret = warn_of_trend(
			out,
			"The commits were measured by %zu kinds of machines or engines, "
			"whose numbers do not compare: each has series of its own.",
			kinds);
	for (size_t i = 0; i < machines.list.len && ret == 0; i++)
		ret = collect_machine(out, &machines.list.data[i], kinds > 1);
	return ret;
}

/* ---- the order ------------------------------------------------------------------------- */

/* Returns the size of the last step, or -1 if there is none. */
static double size_of_last(const struct pm_trend *trend)
{
	if (trend->steps.len == 0)
		return -1;
	return fabs(trend->steps.data[trend->steps.len - 1].change);
}

static int compare_trend_texts(const char *a, const char *b)
{
	if (!a || !b)
		return (a != NULL) - (b != NULL);
	return strcmp(a, b);
}

static int largest_first(const void *a, const void *b)
{
	const struct pm_trend *x = a, *y = b;
	double size_x = size_of_last(x), size_y = size_of_last(y);
	int ret;

	if (size_x != size_y)
		return PM_COMPARE(size_y, size_x);
	ret = compare_trend_texts(x->case_name, y->case_name);
	if (ret == 0)
		ret = compare_trend_texts(x->scope, y->scope);
	if (ret == 0)
		ret = compare_trend_texts(x->event, y->event);
	if (ret == 0)
		ret = compare_trend_texts(x->module, y->module);
	if (ret != 0)
		return ret;
	return compare_trend_texts(x->machine, y->machine);
}

int pm_trends_find(struct pm_trends *out, const struct pm_trend_of *commits, size_t len,
		   struct pm_error *err)
{
	struct pm_trends trends = { 0 };
	int ret = trends_collect(&trends, commits, len);

	for (size_t i = 0; i < trends.list.len && ret == 0; i++)
		ret = pm_trend_find_steps(&trends.list.data[i]);
	if (ret < 0) {
		pm_trends_release(&trends);
		return pm_error_set(err, ret, "out of memory");
	}
	if (trends.list.len > 0)
		qsort(trends.list.data, trends.list.len, sizeof(*trends.list.data),
		      largest_first);
	*out = trends;
	return 0;
}
