/* SPDX-License-Identifier: MIT */
/* The document of a counting run in memory: strings, release, and checks for
 * consistency. */
#include "stat-internal.h"

#include <math.h>
#include <string.h>

const char *pm_stat_state_name(enum pm_stat_state state)
{
	switch (state) {
	case PM_STAT_OK:
		return "ok";
	case PM_STAT_MULTIPLEXED:
		return "multiplexed";
	case PM_STAT_NOT_COUNTED:
		return "not_counted";
	case PM_STAT_NOT_SUPPORTED:
		return "not_supported";
	case PM_STAT_NOT_PERMITTED:
		return "not_permitted";
	case PM_STAT_NOT_KNOWN:
		return "not_known";
	}
	return NULL;
}

const char *pm_stat_class_name(enum pm_stat_class class)
{
	switch (class) {
	case PM_STAT_EXACT:
		return "exact";
	case PM_STAT_LOW_NOISE:
		return "low_noise";
	case PM_STAT_NOISY:
		return "noisy";
	}
	return NULL;
}

const char *pm_stat_kind_name(enum pm_stat_scope_kind kind)
{
	switch (kind) {
	case PM_STAT_FUNCTION:
		return "function";
	case PM_STAT_RANGE:
		return "range";
	case PM_STAT_INLINED:
		return "inlined";
	}
	return NULL;
}

const char *pm_stat_outcome_name(enum pm_stat_outcome outcome)
{
	switch (outcome) {
	case PM_STAT_UNKNOWN:
		return "unknown";
	case PM_STAT_EQUAL:
		return "equal";
	case PM_STAT_LESS:
		return "less";
	case PM_STAT_MORE:
		return "more";
	case PM_STAT_UNDECIDED:
		return "undecided";
	case PM_STAT_TOO_FEW:
		return "too_few_runs";
	}
	return NULL;
}

int pm_stat_text(char **out, const char *text)
{
	char *copy = text ? strdup(text) : NULL;

	if (text && !copy)
		return -ENOMEM;
	*out = copy;
	return 0;
}

struct pm_stat_value *pm_stat_values_new(size_t len)
{
	struct pm_stat_value *values = calloc(len > 0 ? len : 1, sizeof(*values));

	for (size_t i = 0; values && i < len; i++)
		values[i].state = PM_STAT_NOT_COUNTED;
	return values;
}

/* ---- release --------------------------------------------------------------------------- */

static void release_stat_rows(struct pm_stat_row *rows, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		free(rows[i].comm);
		free(rows[i].values);
	}
	free(rows);
}

static void release_run(struct pm_stat_run *run)
{
	free(run->values);
	release_stat_rows(run->rows.data, run->rows.len);
	for (size_t i = 0; i < run->intervals.len; i++) {
		struct pm_stat_interval *interval = &run->intervals.data[i];

		free(interval->values);
		release_stat_rows(interval->rows.data, interval->rows.len);
	}
	pm_vec_release(&run->intervals);
}

static void release_caller(struct pm_stat_caller *caller)
{
	for (size_t i = 0; i < caller->frames.len; i++) {
		free(caller->frames.data[i].function);
		free(caller->frames.data[i].file);
		free(caller->frames.data[i].module);
	}
	pm_vec_release(&caller->frames);
	free(caller->values);
}

static void release_scope(struct pm_stat_scope *scope)
{
	free(scope->name);
	free(scope->symbol);
	free(scope->module);
	free(scope->build_id);
	free(scope->file);
	free(scope->values);
	free(scope->per_call);
	for (size_t i = 0; i < scope->threads.len; i++) {
		free(scope->threads.data[i].comm);
		free(scope->threads.data[i].values);
	}
	pm_vec_release(&scope->threads);
	for (size_t i = 0; i < scope->callers.len; i++)
		release_caller(&scope->callers.data[i]);
	pm_vec_release(&scope->callers);
}

static void release_event(struct pm_stat_event *event)
{
	free(event->name);
	free(event->requested);
	free(event->unit);
	free(event->source);
	free(event->why);
}

static void release_texts(struct pm_stat *stat)
{
	free(stat->version);
	free(stat->created);
	free(stat->engine);
	free(stat->target);
	free(stat->host.hostname);
	free(stat->host.kernel);
	free(stat->host.arch);
	free(stat->host.cpu_model);
	free(stat->host.virt);
	free(stat->host.governor);
	for (size_t i = 0; i < stat->subjects.len; i++) {
		struct pm_stat_subject *subject = &stat->subjects.data[i];

		for (size_t j = 0; j < subject->argv.len; j++)
			free(subject->argv.data[j]);
		pm_vec_release(&subject->argv);
		free(subject->build_id);
		free(subject->commit);
	}
	for (size_t i = 0; i < stat->warnings.len; i++)
		free(stat->warnings.data[i]);
	for (size_t i = 0; i < stat->settings.len; i++) {
		free(stat->settings.data[i].name);
		free(stat->settings.data[i].value);
	}
}

uint32_t pm_stat_variants_ended(const struct pm_stat *stat)
{
	uint32_t ret = 0;

	for (size_t i = 0; i < stat->runs.len; i++) {
		const struct pm_stat_run *run = &stat->runs.data[i];

		if (run->variant < 32 && pm_stat_run_ended_well(run))
			ret |= UINT32_C(1) << run->variant;
	}
	return ret;
}

void pm_stat_release(struct pm_stat *stat)
{
	release_texts(stat);
	for (size_t i = 0; i < stat->events.len; i++)
		release_event(&stat->events.data[i]);
	for (size_t i = 0; i < stat->runs.len; i++)
		release_run(&stat->runs.data[i]);
	for (size_t i = 0; i < stat->scopes.len; i++)
		release_scope(&stat->scopes.data[i]);
	for (size_t i = 0; i < stat->metrics.len; i++) {
		free(stat->metrics.data[i].name);
		free(stat->metrics.data[i].unit);
		free(stat->metrics.data[i].formula);
	}
	pm_vec_release(&stat->subjects);
	pm_vec_release(&stat->events);
	pm_vec_release(&stat->runs);
	pm_vec_release(&stat->scopes);
	pm_vec_release(&stat->metrics);
	pm_vec_release(&stat->differences);
	pm_vec_release(&stat->warnings);
	pm_vec_release(&stat->settings);
	free(stat->overhead);
	free(stat->overhead_inner);
	*stat = (struct pm_stat){ 0 };
}

/* ---- checks ---------------------------------------------------------------------------- */

static const char *check_values(const struct pm_stat *stat,
				const struct pm_stat_value *values)
{
	if (!values)
		return "values are missing";
	for (size_t i = 0; i < stat->events.len; i++)
		if (!pm_stat_state_name(values[i].state))
			return "a value has an unknown status";
	return NULL;
}

static const char *check_rows(const struct pm_stat *stat, const struct pm_stat_row *rows,
			      size_t len)
{
	const char *wrong = NULL;

	for (size_t i = 0; !wrong && i < len; i++)
		wrong = check_values(stat, rows[i].values);
	return wrong;
}

static const char *check_event(const struct pm_stat *stat,
			       const struct pm_stat_event *event)
{
	if (!event->name || !event->requested || !event->unit || !event->source)
		return "an event lacks a text";
	if (!isfinite(event->scale) || event->scale <= 0)
		return "the scale of an event is no positive number";
	if (!pm_stat_class_name(event->class) || !pm_stat_state_name(event->state))
		return "an event is of an unknown class or status";
	if (event->group < -1)
		return "the group of an event is negative";
	return NULL;
}

static const char *check_run(const struct pm_stat *stat, const struct pm_stat_run *run)
{
	const char *wrong = check_values(stat, run->values);

	/* Variant 0 may have no subject. */
	if (run->variant >= stat->subjects.len && run->variant > 0)
		return "the variant of a run is not among the subjects";
	if (!wrong)
		wrong = check_rows(stat, run->rows.data, run->rows.len);
	for (size_t i = 0; !wrong && i < run->intervals.len; i++) {
		const struct pm_stat_interval *interval = &run->intervals.data[i];

		wrong = check_values(stat, interval->values);
		if (!wrong)
			wrong = check_rows(stat, interval->rows.data, interval->rows.len);
	}
	return wrong;
}

static const char *check_scope(const struct pm_stat *stat,
			       const struct pm_stat_scope *scope)
{
	const char *wrong = check_values(stat, scope->values);

	if (scope->run >= stat->runs.len)
		return "the run of a scope is not there";
	if (!scope->name || !pm_stat_kind_name(scope->kind))
		return "a scope has no name or is of an unknown kind";
	for (size_t i = 0; !wrong && i < scope->threads.len; i++)
		wrong = check_values(stat, scope->threads.data[i].values);
	for (size_t i = 0; !wrong && i < scope->callers.len; i++)
		wrong = check_values(stat, scope->callers.data[i].values);
	return wrong;
}

static const char *check_difference(const struct pm_stat *stat,
				    const struct pm_stat_difference *difference)
{
	bool of_program = difference->scope == -1;

	if (difference->scope < -1 ||
	    (!of_program && (size_t)difference->scope >= stat->scopes.len))
		return "the scope of a difference is not there";
	if (difference->event >= stat->events.len + !of_program)
		return "the event of a difference is not there";
	if (pm_stat_outcome_name(difference->outcome) &&
	    pm_stat_state_name(difference->state))
		return NULL;
	return "the outcome of a difference is unknown";
}

static const char *check_metric(const struct pm_stat *stat,
				const struct pm_stat_metric *metric)
{
	if (!metric->name || !metric->unit || !metric->formula)
		return "a metric lacks a text";
	if (metric->event >= stat->events.len)
		return "the event of a metric is not there";
	if (metric->scope < -1 ||
	    (metric->scope >= 0 && (size_t)metric->scope >= stat->scopes.len))
		return "the scope of a metric is not there";
	if (metric->variant >= stat->subjects.len && metric->variant > 0)
		return "the variant of a metric is not among the subjects";
	return NULL;
}

const char *pm_stat_check(const struct pm_stat *stat)
{
	const char *wrong = NULL;

	if (!stat->version || !stat->engine)
		return "its version or engine is missing";
	if (stat->subjects.len > PM_STAT_VARIANTS_MAX)
		return "there are too many subjects";
	if (stat->events.len > PM_STAT_EVENTS_MAX)
		return "there are too many events";
	for (size_t i = 0; !wrong && i < stat->events.len; i++)
		wrong = check_event(stat, &stat->events.data[i]);
	for (size_t i = 0; !wrong && i < stat->runs.len; i++)
		wrong = check_run(stat, &stat->runs.data[i]);
	for (size_t i = 0; !wrong && i < stat->scopes.len; i++)
		wrong = check_scope(stat, &stat->scopes.data[i]);
	if (!wrong && stat->overhead)
		wrong = check_values(stat, stat->overhead);
	if (!wrong && stat->overhead_inner)
		wrong = check_values(stat, stat->overhead_inner);
	for (size_t i = 0; !wrong && i < stat->metrics.len; i++)
		wrong = check_metric(stat, &stat->metrics.data[i]);
	for (size_t i = 0; !wrong && i < stat->differences.len; i++)
		wrong = check_difference(stat, &stat->differences.data[i]);
	return wrong;
}
