/* SPDX-License-Identifier: MIT */
/* A counting run for spreadsheets and scripts: one line for each number. */
#include "stat-show.h"

#include <string.h>

/* The fields of a line, in order. A field that is not set is empty. */
enum field {
	WHAT,
	VARIANT,
	RUN,
	EXIT_CODE,
	SIGNAL,
	AT_NS,
	PID,
	TID,
	COMM,
	CPU,
	SCOPE,
	MODULE,
	FILE_NAME,
	LINE,
	CALLER,
	CALLS,
	NESTED,
	MAX_DEPTH,
	UNFINISHED,
	CALLS_EXACT,
	LOST,
	EVENT,
	VALUE,
	UNIT,
	STATUS,
	RAW,
	ENABLED_NS,
	RUNNING_NS,
	MIN,
	P50,
	P99,
	MAX,
	/* Of a comparison of two programs (`pmstat ab`): */
	RUNS_A,
	RUNS_B,
	MEDIAN_A,
	MEDIAN_B,
	LOW,
	HIGH,
	CHANGE,
	CHANGE_LOW,
	CHANGE_HIGH,
	P,
	P_CORRECTED,
	DECIDES,
	VERDICT,
	FIELDS,
};

static const char *const names[FIELDS] = {
	[WHAT] = "what",
	[VARIANT] = "variant",
	[RUN] = "run",
	[EXIT_CODE] = "exit_code",
	[SIGNAL] = "signal",
	[AT_NS] = "at_ns",
	[PID] = "pid",
	[TID] = "tid",
	[COMM] = "comm",
	[CPU] = "cpu",
	[SCOPE] = "scope",
	[MODULE] = "module",
	[FILE_NAME] = "file",
	[LINE] = "line",
	[CALLER] = "caller",
	[CALLS] = "calls",
	[NESTED] = "nested",
	[MAX_DEPTH] = "max_depth",
	[UNFINISHED] = "unfinished",
	[CALLS_EXACT] = "calls_exact",
	[LOST] = "lost",
	[EVENT] = "event",
	[VALUE] = "value",
	[UNIT] = "unit",
	[STATUS] = "status",
	[RAW] = "raw",
	[ENABLED_NS] = "enabled_ns",
	[RUNNING_NS] = "running_ns",
	[MIN] = "min",
	[P50] = "p50",
	[P99] = "p99",
	[MAX] = "max",
	[RUNS_A] = "runs_a",
	[RUNS_B] = "runs_b",
	[MEDIAN_A] = "median_a",
	[MEDIAN_B] = "median_b",
	[LOW] = "low",
	[HIGH] = "high",
	[CHANGE] = "change",
	[CHANGE_LOW] = "change_low",
	[CHANGE_HIGH] = "change_high",
	[P] = "p",
	[P_CORRECTED] = "p_corrected",
	[DECIDES] = "decides",
	[VERDICT] = "verdict",
};

struct csv {
	const struct pm_stat *stat;
	const char *separator;
	FILE *to;
	size_t fields_len; /* without those for two programs if there is only one */
	struct pm_str out;
	struct pm_str fields[FIELDS]; /* the fields of the current line */
};

/* ---- fields ---------------------------------------------------------------------------- */

static void stat_csv_set_text(struct csv *csv, enum field field, const char *text)
{
	pm_str_clear(&csv->fields[field]);
	if (text)
		pm_str_puts(&csv->fields[field], text);
}

static void stat_csv_set_number(struct csv *csv, enum field field, uint64_t number)
{
	pm_str_clear(&csv->fields[field]);
	pm_str_u64(&csv->fields[field], number);
}

static void stat_csv_set_number_if(struct csv *csv, enum field field, bool known,
				   uint64_t number)
{
	pm_str_clear(&csv->fields[field]);
	if (known)
		pm_str_u64(&csv->fields[field], number);
}

/* Sets a number, with the fewest digits that give the same number when read. */
static void stat_csv_set_real(struct csv *csv, enum field field, double number)
{
	char digits[32] = "";

	for (int precision = 15; precision <= 17; precision++) {
		snprintf(digits, sizeof(digits), "%.*g", precision, number);
		if (strtod(digits, NULL) == number)
			break;
	}
	stat_csv_set_text(csv, field, digits);
}

/* Sets a number in the unit of the event; an integer if the scale is 1. */
static void stat_csv_set_scaled(struct csv *csv, enum field field,
				const struct pm_stat_event *event, uint64_t number)
{
	if (event->scale == 1)
		stat_csv_set_number(csv, field, number);
	else
		stat_csv_set_real(csv, field, (double)number * event->scale);
}

static void stat_csv_end_line(struct csv *csv)
{
	for (size_t i = 0; i < csv->fields_len; i++) {
		if (i > 0)
			pm_str_puts(&csv->out, csv->separator);
		if (csv->fields[i].failed)
			csv->out.failed = true;
		else if (csv->fields[i].len > 0)
			pm_put_field(&csv->out, csv->fields[i].data, csv->separator);
	}
	pm_str_putc(&csv->out, '\n');
	pm_flush_some(&csv->out, csv->to);
}

static void stat_csv_clear_fields(struct csv *csv, enum field from, enum field to)
{
	for (size_t i = from; i <= to; i++)
		pm_str_clear(&csv->fields[i]);
}

/* ---- lines ----------------------------------------------------------------------------- */

static void stat_csv_put_titles(struct csv *csv)
{
	for (size_t i = 0; i < csv->fields_len; i++) {
		if (i > 0)
			pm_str_puts(&csv->out, csv->separator);
		pm_put_field(&csv->out, names[i], csv->separator);
	}
	pm_str_putc(&csv->out, '\n');
}

/* Writes one line for each event, with the fields that are already set. */
static void stat_csv_put_values(struct csv *csv, const struct pm_stat_value *values,
				const struct pm_stat_spread *spreads)
{
	for (size_t i = 0; i < csv->stat->events.len; i++) {
		const struct pm_stat_event *event = &csv->stat->events.data[i];
		const struct pm_stat_value *value = &values[i];
		bool timed = value->enabled_ns > 0 || value->running_ns > 0;

		stat_csv_clear_fields(csv, EVENT, MAX);
		stat_csv_set_text(csv, EVENT, pm_stat_event_shown(event));
		if (pm_stat_has_value(value)) {
			stat_csv_set_scaled(csv, VALUE, event, value->value);
			stat_csv_set_scaled(csv, RAW, event, value->raw);
		}
		stat_csv_set_text(csv, UNIT, event->unit);
		stat_csv_set_text(csv, STATUS, pm_stat_state_name(value->state));
		stat_csv_set_number_if(csv, ENABLED_NS, timed, value->enabled_ns);
		stat_csv_set_number_if(csv, RUNNING_NS, timed, value->running_ns);
		if (spreads && spreads[i].known) {
			stat_csv_set_scaled(csv, MIN, event, spreads[i].min);
			stat_csv_set_scaled(csv, P50, event, spreads[i].p50);
			stat_csv_set_scaled(csv, P99, event, spreads[i].p99);
			stat_csv_set_scaled(csv, MAX, event, spreads[i].max);
		}
		stat_csv_end_line(csv);
	}
}

static void stat_csv_set_thread(struct csv *csv, int32_t pid, int32_t tid,
				const char *comm)
{
	bool known = comm || tid > 0;

	stat_csv_set_number_if(csv, PID, known, (uint64_t)pid);
	stat_csv_set_number_if(csv, TID, tid > 0, (uint64_t)tid);
	stat_csv_set_text(csv, COMM, comm);
}

static void stat_csv_put_rows(struct csv *csv, const char *what,
			      const struct pm_stat_row *rows, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		stat_csv_set_text(csv, WHAT, what);
		stat_csv_set_thread(csv, rows[i].pid, rows[i].tid, rows[i].comm);
		stat_csv_set_number_if(csv, CPU, rows[i].cpu >= 0, (uint64_t)rows[i].cpu);
		stat_csv_put_values(csv, rows[i].values, NULL);
	}
	stat_csv_clear_fields(csv, PID, CPU);
}

static void stat_csv_set_run(struct csv *csv, const struct pm_stat_run *run, size_t id)
{
	stat_csv_clear_fields(csv, WHAT, MAX);
	stat_csv_set_number(csv, VARIANT, run->variant);
	stat_csv_set_number(csv, RUN, id);
}

/* Writes the lines for all threads together, then for each thread. */
static void stat_csv_put_interval(struct csv *csv,
				  const struct pm_stat_interval *interval)
{
	stat_csv_set_text(csv, WHAT, "interval");
	stat_csv_set_number(csv, AT_NS, interval->at_ns);
	stat_csv_put_values(csv, interval->values, NULL);
	stat_csv_put_rows(csv, "interval", interval->rows.data, interval->rows.len);
	stat_csv_clear_fields(csv, AT_NS, AT_NS);
}

static void stat_csv_put_run(struct csv *csv, size_t id, bool intervals)
{
	const struct pm_stat_run *run = &csv->stat->runs.data[id];

	stat_csv_set_run(csv, run, id);
	for (size_t i = 0; intervals && i < run->intervals.len; i++)
		stat_csv_put_interval(csv, &run->intervals.data[i]);
	stat_csv_set_text(csv, WHAT, "run");
	stat_csv_set_number_if(csv, EXIT_CODE, run->exited && run->signal == 0,
			       (uint64_t)run->exit_code);
	stat_csv_set_number_if(csv, SIGNAL, run->exited && run->signal > 0,
			       (uint64_t)run->signal);
	stat_csv_put_values(csv, run->values, NULL);
	stat_csv_put_rows(csv, "row", run->rows.data, run->rows.len);
}

/* Sets the caller: the function or the address, then its callers. */
static void stat_csv_set_caller(struct csv *csv, const struct pm_stat_caller *caller)
{
	struct pm_str *str = &csv->fields[CALLER];

	pm_str_clear(str);
	for (size_t i = 0; i < caller->frames.len; i++) {
		const struct pm_stat_frame *frame = &caller->frames.data[i];

		if (i > 0)
			pm_str_puts(str, " < ");
		if (frame->function)
			pm_str_puts(str, frame->function);
		else
			pm_str_hex(str, frame->address);
		if (frame->file)
			pm_str_printf(str, " %s:%u", frame->file, frame->line);
	}
}

static void stat_csv_put_parts(struct csv *csv, const struct pm_stat_scope *scope)
{
	stat_csv_clear_fields(csv, NESTED, LOST);
	for (size_t i = 0; i < scope->threads.len; i++) {
		const struct pm_stat_thread *thread = &scope->threads.data[i];

		stat_csv_set_text(csv, WHAT, "thread");
		stat_csv_set_thread(csv, thread->pid, thread->tid, thread->comm);
		stat_csv_set_number(csv, CALLS, thread->calls);
		stat_csv_put_values(csv, thread->values, NULL);
	}
	stat_csv_clear_fields(csv, PID, COMM);
	for (size_t i = 0; i < scope->callers.len; i++) {
		const struct pm_stat_caller *caller = &scope->callers.data[i];

		stat_csv_set_text(csv, WHAT, "caller");
		stat_csv_set_caller(csv, caller);
		stat_csv_set_number(csv, CALLS, caller->calls);
		stat_csv_put_values(csv, caller->values, NULL);
	}
}

static void stat_csv_put_scope(struct csv *csv, const struct pm_stat_scope *scope)
{
	stat_csv_set_run(csv, &csv->stat->runs.data[scope->run], scope->run);
	stat_csv_set_text(csv, WHAT, pm_stat_kind_name(scope->kind));
	stat_csv_set_text(csv, SCOPE, scope->name);
	stat_csv_set_text(csv, MODULE, scope->module);
	stat_csv_set_text(csv, FILE_NAME, scope->file);
	stat_csv_set_number_if(csv, LINE, scope->line > 0, scope->line);
	stat_csv_set_number_if(csv, CALLS, !scope->calls_unknown, scope->calls);
	stat_csv_set_number_if(csv, NESTED, !scope->calls_unknown, scope->nested);
	stat_csv_set_number_if(csv, MAX_DEPTH, !scope->calls_unknown, scope->max_depth);
	stat_csv_set_number_if(csv, UNFINISHED, !scope->calls_unknown, scope->unfinished);
	stat_csv_set_number(csv, CALLS_EXACT, scope->calls_exact);
	stat_csv_set_number(csv, LOST, scope->lost);
	stat_csv_put_values(csv, scope->values, scope->per_call);
	stat_csv_put_parts(csv, scope);
}

static void stat_csv_put_metric(struct csv *csv, const struct pm_stat_metric *metric)
{
	stat_csv_clear_fields(csv, WHAT, MAX);
	stat_csv_set_text(csv, WHAT, "metric");
	stat_csv_set_number(csv, VARIANT, metric->variant);
	if (metric->scope >= 0)
		stat_csv_set_text(csv, SCOPE, csv->stat->scopes.data[metric->scope].name);
	stat_csv_set_text(csv, EVENT, metric->name);
	if (metric->known && isfinite(metric->value))
		stat_csv_set_real(csv, VALUE, metric->value);
	stat_csv_set_text(csv, UNIT, metric->unit);
	stat_csv_end_line(csv);
}

static void stat_csv_set_real_if(struct csv *csv, enum field field, double number)
{
	pm_str_clear(&csv->fields[field]);
	if (isfinite(number))
		stat_csv_set_real(csv, field, number);
}

/* Writes a comparison of B with A: `value` is the difference. */
static void stat_csv_put_difference(struct csv *csv,
				    const struct pm_stat_difference *difference)
{
	const struct pm_stat *stat = csv->stat;
	bool calls = difference->event >= stat->events.len;

	stat_csv_clear_fields(csv, WHAT, VERDICT);
	stat_csv_set_text(csv, WHAT, "difference");
	if (difference->scope >= 0) {
		stat_csv_set_text(csv, SCOPE, stat->scopes.data[difference->scope].name);
		stat_csv_set_text(csv, MODULE,
				  stat->scopes.data[difference->scope].module);
	}
	stat_csv_set_text(
		csv, EVENT,
		calls ? "calls"
		      : pm_stat_event_shown(&stat->events.data[difference->event]));
	stat_csv_set_text(csv, UNIT,
			  calls ? "" : stat->events.data[difference->event].unit);
	stat_csv_set_real_if(csv, VALUE, difference->by);
	stat_csv_set_number(csv, RUNS_A, difference->runs[0]);
	stat_csv_set_number(csv, RUNS_B, difference->runs[1]);
	stat_csv_set_real_if(csv, MEDIAN_A, difference->median[0]);
	stat_csv_set_real_if(csv, MEDIAN_B, difference->median[1]);
	stat_csv_set_real_if(csv, LOW, difference->by_low);
	stat_csv_set_real_if(csv, HIGH, difference->by_high);
	stat_csv_set_real_if(csv, CHANGE, difference->change);
	stat_csv_set_real_if(csv, CHANGE_LOW, difference->change_low);
	stat_csv_set_real_if(csv, CHANGE_HIGH, difference->change_high);
	stat_csv_set_real_if(csv, P, difference->p);
	stat_csv_set_real_if(csv, P_CORRECTED, difference->p_corrected);
	stat_csv_set_number(csv, DECIDES, difference->decides);
	stat_csv_set_text(csv, VERDICT, pm_stat_outcome_name(difference->outcome));
	stat_csv_end_line(csv);
}

/* ---- the whole document ---------------------------------------------------------------- */

static size_t fields_of(const struct pm_stat *stat)
{
	if (stat->subjects.len > 1)
		return FIELDS;
	return RUNS_A;
}

static int stat_csv_finish(struct csv *csv, struct pm_error *err)
{
	for (size_t i = 0; i < FIELDS; i++)
		pm_str_release(&csv->fields[i]);
	return pm_flush_all(&csv->out, csv->to, err);
}

int pm_output_stat_csv(const struct pm_stat_report *report, const char *separator,
		       FILE *to, struct pm_error *err)
{
	const struct pm_stat *stat = report->stat;
	struct csv csv = { .stat = stat,
			   .separator = separator,
			   .to = to,
			   .fields_len = fields_of(stat) };

	if (!report->intervals_told)
		stat_csv_put_titles(&csv);
	for (size_t i = 0; i < stat->runs.len; i++)
		stat_csv_put_run(&csv, i, !report->intervals_told);
	for (size_t i = 0; i < stat->scopes.len; i++)
		stat_csv_put_scope(&csv, &stat->scopes.data[i]);
	if (stat->overhead) {
		stat_csv_clear_fields(&csv, WHAT, MAX);
		stat_csv_set_text(&csv, WHAT, "overhead");
		stat_csv_put_values(&csv, stat->overhead, NULL);
	}
	for (size_t i = 0; i < stat->metrics.len; i++)
		stat_csv_put_metric(&csv, &stat->metrics.data[i]);
	for (size_t i = 0; i < stat->differences.len; i++)
		stat_csv_put_difference(&csv, &stat->differences.data[i]);
	return stat_csv_finish(&csv, err);
}

int pm_output_stat_interval_csv(const struct pm_stat_report *report,
				const struct pm_stat_run *run, bool first,
				const char *separator, FILE *to, struct pm_error *err)
{
	const struct pm_stat *stat = report->stat;
	struct csv csv = { .stat = stat,
			   .separator = separator,
			   .to = to,
			   .fields_len = fields_of(stat) };
	size_t id = stat->runs.len;

	for (size_t i = 0; i < stat->runs.len; i++)
		if (run == &stat->runs.data[i])
			id = i;
	if (first)
		stat_csv_put_titles(&csv);
	stat_csv_set_run(&csv, run, id);
	if (run->intervals.len > 0)
		stat_csv_put_interval(&csv, &run->intervals.data[run->intervals.len - 1]);
	return stat_csv_finish(&csv, err);
}
