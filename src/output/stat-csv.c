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
	/* For two programs. */
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
	struct pm_str fields[FIELDS]; /* of the current line */
};

/* ---- fields ---------------------------------------------------------------------------- */

static void set_text(struct csv *csv, enum field field, const char *text)
{
	pm_str_clear(&csv->fields[field]);
	if (text)
		pm_str_puts(&csv->fields[field], text);
}

static void set_number(struct csv *csv, enum field field, uint64_t number)
{
	pm_str_clear(&csv->fields[field]);
	pm_str_u64(&csv->fields[field], number);
}

static void set_number_if(struct csv *csv, enum field field, bool known, uint64_t number)
{
	pm_str_clear(&csv->fields[field]);
	if (known)
		pm_str_u64(&csv->fields[field], number);
}

/* With the fewest digits that give the same number when read. */
static void set_real(struct csv *csv, enum field field, double number)
{
	char digits[32] = "";

	for (int precision = 15; precision <= 17; precision++) {
		snprintf(digits, sizeof(digits), "%.*g", precision, number);
		if (strtod(digits, NULL) == number)
			break;
	}
	set_text(csv, field, digits);
}

/* In the unit of the event; as an integer if the scale is 1. */
static void set_scaled(struct csv *csv, enum field field,
		       const struct pm_stat_event *event, uint64_t number)
{
	if (event->scale == 1)
		set_number(csv, field, number);
	else
		set_real(csv, field, (double)number * event->scale);
}

static void end_line(struct csv *csv)
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

static void forget(struct csv *csv, enum field from, enum field to)
{
	for (size_t i = from; i <= to; i++)
		pm_str_clear(&csv->fields[i]);
}

/* ---- lines ----------------------------------------------------------------------------- */

static void put_titles(struct csv *csv)
{
	for (size_t i = 0; i < csv->fields_len; i++) {
		if (i > 0)
			pm_str_puts(&csv->out, csv->separator);
		pm_put_field(&csv->out, names[i], csv->separator);
	}
	pm_str_putc(&csv->out, '\n');
}

/* One line for each event, with the fields that are already set. */
static void put_values(struct csv *csv, const struct pm_stat_value *values,
		       const struct pm_stat_spread *spreads)
{
	for (size_t i = 0; i < csv->stat->events.len; i++) {
		const struct pm_stat_event *event = &csv->stat->events.data[i];
		const struct pm_stat_value *value = &values[i];
		bool timed = value->enabled_ns > 0 || value->running_ns > 0;

		forget(csv, EVENT, MAX);
		set_text(csv, EVENT, pm_stat_event_shown(event));
		if (pm_stat_has_value(value)) {
			set_scaled(csv, VALUE, event, value->value);
			set_scaled(csv, RAW, event, value->raw);
		}
		set_text(csv, UNIT, event->unit);
		set_text(csv, STATUS, pm_stat_state_name(value->state));
		set_number_if(csv, ENABLED_NS, timed, value->enabled_ns);
		set_number_if(csv, RUNNING_NS, timed, value->running_ns);
		if (spreads && spreads[i].known) {
			set_scaled(csv, MIN, event, spreads[i].min);
			set_scaled(csv, P50, event, spreads[i].p50);
			set_scaled(csv, P99, event, spreads[i].p99);
			set_scaled(csv, MAX, event, spreads[i].max);
		}
		end_line(csv);
	}
}

static void set_thread(struct csv *csv, int32_t pid, int32_t tid, const char *comm)
{
	bool known = comm || tid > 0;

	set_number_if(csv, PID, known, (uint64_t)pid);
	set_number_if(csv, TID, tid > 0, (uint64_t)tid);
	set_text(csv, COMM, comm);
}

static void put_rows(struct csv *csv, const char *what, const struct pm_stat_row *rows,
		     size_t len)
{
	for (size_t i = 0; i < len; i++) {
		set_text(csv, WHAT, what);
		set_thread(csv, rows[i].pid, rows[i].tid, rows[i].comm);
		set_number_if(csv, CPU, rows[i].cpu >= 0, (uint64_t)rows[i].cpu);
		put_values(csv, rows[i].values, NULL);
	}
	forget(csv, PID, CPU);
}

static void set_run(struct csv *csv, const struct pm_stat_run *run, size_t id)
{
	forget(csv, WHAT, MAX);
	set_number(csv, VARIANT, run->variant);
	set_number(csv, RUN, id);
}

/* For all threads together, then for each thread. */
static void put_interval(struct csv *csv, const struct pm_stat_interval *interval)
{
	set_text(csv, WHAT, "interval");
	set_number(csv, AT_NS, interval->at_ns);
	put_values(csv, interval->values, NULL);
	put_rows(csv, "interval", interval->rows.data, interval->rows.len);
	forget(csv, AT_NS, AT_NS);
}

static void put_run(struct csv *csv, size_t id, bool intervals)
{
	const struct pm_stat_run *run = &csv->stat->runs.data[id];

	set_run(csv, run, id);
	for (size_t i = 0; intervals && i < run->intervals.len; i++)
		put_interval(csv, &run->intervals.data[i]);
	set_text(csv, WHAT, "run");
	set_number_if(csv, EXIT_CODE, run->exited && run->signal == 0,
		      (uint64_t)run->exit_code);
	set_number_if(csv, SIGNAL, run->exited && run->signal > 0, (uint64_t)run->signal);
	put_values(csv, run->values, NULL);
	put_rows(csv, "row", run->rows.data, run->rows.len);
}

/* The function, or the address; its callers follow. */
static void set_caller(struct csv *csv, const struct pm_stat_caller *caller)
{
	struct pm_str *str = &csv->fields[CALLER];

	pm_str_clear(str);
	for (size_t i = 0; i < caller->frames.len; i++) {
		const struct pm_stat_frame *frame = &caller->frames.data[i];

		pm_str_puts(str, i > 0 ? " < " : "");
		if (frame->function)
			pm_str_puts(str, frame->function);
		else
			pm_str_hex(str, frame->address);
		if (frame->file)
			pm_str_printf(str, " %s:%u", frame->file, frame->line);
	}
}

static void put_parts(struct csv *csv, const struct pm_stat_scope *scope)
{
	forget(csv, NESTED, LOST);
	for (size_t i = 0; i < scope->threads.len; i++) {
		const struct pm_stat_thread *thread = &scope->threads.data[i];

		set_text(csv, WHAT, "thread");
		set_thread(csv, thread->pid, thread->tid, thread->comm);
		set_number(csv, CALLS, thread->calls);
		put_values(csv, thread->values, NULL);
	}
	forget(csv, PID, COMM);
	for (size_t i = 0; i < scope->callers.len; i++) {
		const struct pm_stat_caller *caller = &scope->callers.data[i];

		set_text(csv, WHAT, "caller");
		set_caller(csv, caller);
		set_number(csv, CALLS, caller->calls);
		put_values(csv, caller->values, NULL);
	}
}

static void put_scope(struct csv *csv, const struct pm_stat_scope *scope)
{
	set_run(csv, &csv->stat->runs.data[scope->run], scope->run);
	set_text(csv, WHAT, pm_stat_kind_name(scope->kind));
	set_text(csv, SCOPE, scope->name);
	set_text(csv, MODULE, scope->module);
	set_text(csv, FILE_NAME, scope->file);
	set_number_if(csv, LINE, scope->line > 0, scope->line);
	set_number_if(csv, CALLS, !scope->calls_unknown, scope->calls);
	set_number_if(csv, NESTED, !scope->calls_unknown, scope->nested);
	set_number_if(csv, MAX_DEPTH, !scope->calls_unknown, scope->max_depth);
	set_number_if(csv, UNFINISHED, !scope->calls_unknown, scope->unfinished);
	set_number(csv, CALLS_EXACT, scope->calls_exact);
	set_number(csv, LOST, scope->lost);
	put_values(csv, scope->values, scope->per_call);
	put_parts(csv, scope);
}

static void put_metric(struct csv *csv, const struct pm_stat_metric *metric)
{
	forget(csv, WHAT, MAX);
	set_text(csv, WHAT, "metric");
	set_number(csv, VARIANT, metric->variant);
	if (metric->scope >= 0)
		set_text(csv, SCOPE, csv->stat->scopes.data[metric->scope].name);
	set_text(csv, EVENT, metric->name);
	if (metric->known && isfinite(metric->value))
		set_real(csv, VALUE, metric->value);
	set_text(csv, UNIT, metric->unit);
	end_line(csv);
}

static void set_real_if(struct csv *csv, enum field field, double number)
{
	pm_str_clear(&csv->fields[field]);
	if (isfinite(number))
		set_real(csv, field, number);
}

/* B compared with A: `value` is the difference. */
static void put_difference(struct csv *csv, const struct pm_stat_difference *difference)
{
	const struct pm_stat *stat = csv->stat;
	bool calls = difference->event >= stat->events.len;

	forget(csv, WHAT, VERDICT);
	set_text(csv, WHAT, "difference");
	if (difference->scope >= 0) {
		set_text(csv, SCOPE, stat->scopes.data[difference->scope].name);
		set_text(csv, MODULE, stat->scopes.data[difference->scope].module);
	}
	set_text(csv, EVENT,
		 calls ? "calls"
		       : pm_stat_event_shown(&stat->events.data[difference->event]));
	set_text(csv, UNIT, calls ? "" : stat->events.data[difference->event].unit);
	set_real_if(csv, VALUE, difference->by);
	set_number(csv, RUNS_A, difference->runs[0]);
	set_number(csv, RUNS_B, difference->runs[1]);
	set_real_if(csv, MEDIAN_A, difference->median[0]);
	set_real_if(csv, MEDIAN_B, difference->median[1]);
	set_real_if(csv, LOW, difference->by_low);
	set_real_if(csv, HIGH, difference->by_high);
	set_real_if(csv, CHANGE, difference->change);
	set_real_if(csv, CHANGE_LOW, difference->change_low);
	set_real_if(csv, CHANGE_HIGH, difference->change_high);
	set_real_if(csv, P, difference->p);
	set_real_if(csv, P_CORRECTED, difference->p_corrected);
	set_number(csv, DECIDES, difference->decides);
	set_text(csv, VERDICT, pm_stat_outcome_name(difference->outcome));
	end_line(csv);
}

/* ---- the whole document ---------------------------------------------------------------- */

static size_t fields_of(const struct pm_stat *stat)
{
	return stat->subjects.len > 1 ? FIELDS : RUNS_A;
}

static int finish(struct csv *csv, struct pm_error *err)
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
		put_titles(&csv);
	for (size_t i = 0; i < stat->runs.len; i++)
		put_run(&csv, i, !report->intervals_told);
	for (size_t i = 0; i < stat->scopes.len; i++)
		put_scope(&csv, &stat->scopes.data[i]);
	if (stat->overhead) {
		forget(&csv, WHAT, MAX);
		set_text(&csv, WHAT, "overhead");
		put_values(&csv, stat->overhead, NULL);
	}
	for (size_t i = 0; i < stat->metrics.len; i++)
		put_metric(&csv, &stat->metrics.data[i]);
	for (size_t i = 0; i < stat->differences.len; i++)
		put_difference(&csv, &stat->differences.data[i]);
	return finish(&csv, err);
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
		put_titles(&csv);
	set_run(&csv, run, id);
	if (run->intervals.len > 0)
		put_interval(&csv, &run->intervals.data[run->intervals.len - 1]);
	return finish(&csv, err);
}
