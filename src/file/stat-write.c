/* SPDX-License-Identifier: MIT */
/* Writes a counting run as JSON, in the form of docs/format.md §9. */
#include "stat-internal.h"

#include <math.h>
#include <string.h>

struct writing {
	const struct pm_stat *stat;
	struct pm_str out;
};

/* ---- values ---------------------------------------------------------------------------- */

static void put_stat_text(struct writing *to, const char *text)
{
	pm_str_puts(&to->out, text);
}

static void put_text_of_key(struct writing *to, const char *key, const char *text)
{
	put_stat_text(to, key);
	pm_str_json(&to->out, text);
}

/* A number that JSON parsers for C cannot represent is written as a string. */
static void put_count(struct writing *to, const char *key, uint64_t count)
{
	put_stat_text(to, key);
	if (count <= PM_FILE_INTEGER_MAX) {
		pm_str_u64(&to->out, count);
		return;
	}
	put_stat_text(to, "\"");
	pm_str_hex(&to->out, count);
	put_stat_text(to, "\"");
}

static void put_count_if(struct writing *to, const char *key, bool known, uint64_t count)
{
	if (known) {
		put_count(to, key, count);
	} else {
		put_stat_text(to, key);
		put_stat_text(to, "null");
	}
}

static void put_number_of_key(struct writing *to, const char *key, int64_t number)
{
	put_stat_text(to, key);
	pm_str_printf(&to->out, "%lld", (long long)number);
}

static void put_bool(struct writing *to, const char *key, bool value)
{
	put_stat_text(to, key);
	put_stat_text(to, value ? "true" : "false");
}

/* A negative @value is unknown. */
static void put_bool_or_null(struct writing *to, const char *key, int value)
{
	if (value >= 0) {
		put_bool(to, key, value > 0);
		return;
	}
	put_stat_text(to, key);
	put_stat_text(to, "null");
}

/* Writes the fewest digits that are read back as the same number. */
static void put_real(struct writing *to, const char *key, double value)
{
	char digits[32];

	for (int precision = 15; precision <= 17; precision++) {
		snprintf(digits, sizeof(digits), "%.*g", precision, value);
		if (strtod(digits, NULL) == value)
			break;
	}
	put_stat_text(to, key);
	put_stat_text(to, isfinite(value) ? digits : "null");
}

static void put_address(struct writing *to, const char *key, uint64_t address)
{
	put_stat_text(to, key);
	put_stat_text(to, "\"");
	pm_str_hex(&to->out, address);
	put_stat_text(to, "\"");
}

static void put_value(struct writing *to, const struct pm_stat_value *value)
{
	bool known = pm_stat_has_value(value);

	put_count_if(to, "{\"value\":", known, value->value);
	put_text_of_key(to, ",\"status\":", pm_stat_state_name(value->state));
	if (known && value->raw != value->value)
		put_count(to, ",\"raw\":", value->raw);
	if (value->enabled_ns > 0 || value->running_ns > 0) {
		put_count(to, ",\"enabled_ns\":", value->enabled_ns);
		put_count(to, ",\"running_ns\":", value->running_ns);
	}
	put_stat_text(to, "}");
}

static void put_values(struct writing *to, const char *key,
		       const struct pm_stat_value *values)
{
	put_stat_text(to, key);
	for (size_t i = 0; i < to->stat->events.len; i++) {
		put_stat_text(to, i == 0 ? "[" : ",");
		put_value(to, &values[i]);
	}
	put_stat_text(to, to->stat->events.len == 0 ? "[]" : "]");
}

static void put_texts(struct writing *to, const char *key, char *const *texts, size_t len)
{
	put_stat_text(to, key);
	put_stat_text(to, "[");
	for (size_t i = 0; i < len; i++)
		put_text_of_key(to, i == 0 ? "" : ",", pm_text_or_empty(texts[i]));
	put_stat_text(to, "]");
}

/* ---- subjects, events and host --------------------------------------------------------- */

static void put_origin(struct writing *to, const struct pm_stat_subject *subject)
{
	if (!subject->commit)
		return;
	put_text_of_key(to, ",\"commit\":", subject->commit);
	put_count_if(to, ",\"commit_time\":", subject->commit_time >= 0,
		     (uint64_t)subject->commit_time);
	put_bool_or_null(to, ",\"dirty\":", subject->dirty);
}

static void put_stat_head(struct writing *to)
{
	const struct pm_stat *stat = to->stat;
	const struct pm_stat_host *host = &stat->host;

	put_number_of_key(to, "{\"format\":\"pmstat\",\"version\":", PM_STAT_VERSION);
	put_text_of_key(to, ",\"pmstat\":", stat->version);
	put_text_of_key(to, ",\"created\":", stat->created);
	put_text_of_key(to, ",\"engine\":", stat->engine);
	put_text_of_key(to, ",\"target\":", stat->target);
	put_text_of_key(to, ",\n\"host\":{\"hostname\":", host->hostname);
	put_text_of_key(to, ",\"kernel\":", host->kernel);
	put_text_of_key(to, ",\"arch\":", host->arch);
	put_count_if(to, ",\"cpus\":", host->cpus > 0, host->cpus);
	put_text_of_key(to, ",\"cpu_model\":", host->cpu_model);
	put_text_of_key(to, ",\"virt\":", host->virt);
	if (host->paranoid == INT32_MIN)
		put_stat_text(to, ",\"paranoid\":null");
	else
		put_number_of_key(to, ",\"paranoid\":", host->paranoid);
	put_text_of_key(to, ",\"governor\":", host->governor);
	put_bool_or_null(to, ",\"smt\":", host->smt);
	put_stat_text(to, "}");
	put_stat_text(to, ",\n\"subjects\":[");
	for (size_t i = 0; i < stat->subjects.len; i++) {
		const struct pm_stat_subject *subject = &stat->subjects.data[i];

		put_texts(to,
			  i == 0 ? "\n{\"argv\":" : ",\n{\"argv\":", subject->argv.data,
			  subject->argv.len);
		put_text_of_key(to, ",\"build_id\":", subject->build_id);
		put_origin(to, subject);
		put_stat_text(to, "}");
	}
	put_stat_text(to, "]");
}

/* Returns NULL if neither less nor more is better. */
static const char *name_of_better(int8_t better)
{
	if (better < 0)
		return "less";
	if (better > 0)
		return "more";
	return NULL;
}

static void put_stat_event(struct writing *to, size_t id)
{
	const struct pm_stat_event *event = &to->stat->events.data[id];

	put_count(to, id == 0 ? "\n{\"id\":" : ",\n{\"id\":", id);
	put_text_of_key(to, ",\"name\":", event->name);
	put_text_of_key(to, ",\"requested\":", event->requested);
	put_text_of_key(to, ",\"unit\":", event->unit);
	put_real(to, ",\"scale\":", event->scale);
	put_text_of_key(to, ",\"source\":", event->source);
	put_text_of_key(to, ",\"class\":", pm_stat_class_name(event->class));
	put_text_of_key(to, ",\"better\":", name_of_better(event->better));
	put_count_if(to, ",\"group\":", event->group >= 0, (uint64_t)event->group);
	put_bool(to, ",\"user_only\":", event->user_only);
	put_bool(to, ",\"default\":", event->default_set);
	put_text_of_key(to, ",\"status\":", pm_stat_state_name(event->state));
	put_text_of_key(to, ",\"why\":", event->why);
	put_stat_text(to, "}");
}

/* ---- runs ------------------------------------------------------------------------------ */

static void put_thread_of(struct writing *to, int32_t pid, int32_t tid, const char *comm)
{
	bool known = comm || tid > 0;

	put_count_if(to, "\"pid\":", known, (uint64_t)pid);
	put_count_if(to, ",\"tid\":", tid > 0, (uint64_t)tid);
	put_text_of_key(to, ",\"comm\":", comm);
}

static void put_rows(struct writing *to, const struct pm_stat_row *rows, size_t len)
{
	put_stat_text(to, ",\"rows\":[");
	for (size_t i = 0; i < len; i++) {
		put_stat_text(to, i == 0 ? "\n{" : ",\n{");
		put_thread_of(to, rows[i].pid, rows[i].tid, rows[i].comm);
		put_count_if(to, ",\"cpu\":", rows[i].cpu >= 0, (uint64_t)rows[i].cpu);
		put_values(to, ",\"counts\":", rows[i].values);
		put_stat_text(to, "}");
	}
	put_stat_text(to, "]");
}

static void put_run(struct writing *to, size_t id)
{
	const struct pm_stat_run *run = &to->stat->runs.data[id];

	put_count(to, id == 0 ? "\n{\"variant\":" : ",\n{\"variant\":", run->variant);
	put_count_if(to, ",\"begin_ns\":", run->begin_ns > 0, run->begin_ns);
	put_count_if(to, ",\"exit_code\":", run->exited && run->signal == 0,
		     (uint64_t)run->exit_code);
	put_count_if(to, ",\"signal\":", run->exited && run->signal > 0,
		     (uint64_t)run->signal);
	put_bool(to, ",\"stopped\":", run->stopped);
	put_values(to, ",\"counts\":", run->values);
	put_rows(to, run->rows.data, run->rows.len);
	put_stat_text(to, ",\"intervals\":[");
	for (size_t i = 0; i < run->intervals.len; i++) {
		const struct pm_stat_interval *interval = &run->intervals.data[i];

		put_count(to,
			  i == 0 ? "\n{\"at_ns\":" : ",\n{\"at_ns\":", interval->at_ns);
		put_values(to, ",\"counts\":", interval->values);
		put_rows(to, interval->rows.data, interval->rows.len);
		put_stat_text(to, "}");
	}
	put_stat_text(to, "]}");
}

/* ---- functions and ranges -------------------------------------------------------------- */

static void put_spreads(struct writing *to, const struct pm_stat_spread *spreads)
{
	if (!spreads) {
		put_stat_text(to, ",\"per_call\":null");
		return;
	}
	put_stat_text(to, ",\"per_call\":[");
	for (size_t i = 0; i < to->stat->events.len; i++) {
		put_stat_text(to, i == 0 ? "" : ",");
		if (!spreads[i].known) {
			put_stat_text(to, "null");
			continue;
		}
		put_count(to, "{\"min\":", spreads[i].min);
		put_count(to, ",\"p50\":", spreads[i].p50);
		put_count(to, ",\"p99\":", spreads[i].p99);
		put_count(to, ",\"max\":", spreads[i].max);
		put_stat_text(to, "}");
	}
	put_stat_text(to, "]");
}

static void put_caller(struct writing *to, const struct pm_stat_caller *caller)
{
	put_stat_text(to, "{\"frames\":[");
	for (size_t i = 0; i < caller->frames.len; i++) {
		const struct pm_stat_frame *frame = &caller->frames.data[i];

		put_text_of_key(to, i == 0 ? "{\"function\":" : ",{\"function\":",
				frame->function);
		put_text_of_key(to, ",\"file\":", frame->file);
		put_count_if(to, ",\"line\":", frame->line > 0, frame->line);
		put_text_of_key(to, ",\"module\":", frame->module);
		put_address(to, ",\"address\":", frame->address);
		put_stat_text(to, "}");
	}
	put_count(to, "],\"calls\":", caller->calls);
	put_values(to, ",\"counts\":", caller->values);
	put_stat_text(to, "}");
}

static void put_parts(struct writing *to, const struct pm_stat_scope *scope)
{
	put_stat_text(to, ",\"threads\":[");
	for (size_t i = 0; i < scope->threads.len; i++) {
		const struct pm_stat_thread *thread = &scope->threads.data[i];

		put_stat_text(to, i == 0 ? "\n{" : ",\n{");
		put_thread_of(to, thread->pid, thread->tid, thread->comm);
		put_count(to, ",\"calls\":", thread->calls);
		put_values(to, ",\"counts\":", thread->values);
		put_stat_text(to, "}");
	}
	put_stat_text(to, "],\"callers\":[");
	for (size_t i = 0; i < scope->callers.len; i++) {
		put_stat_text(to, i == 0 ? "\n" : ",\n");
		put_caller(to, &scope->callers.data[i]);
	}
	put_stat_text(to, "]}");
}

static void put_scope(struct writing *to, size_t id)
{
	const struct pm_stat_scope *scope = &to->stat->scopes.data[id];
	bool known = !scope->calls_unknown;

	put_count(to, id == 0 ? "\n{\"run\":" : ",\n{\"run\":", scope->run);
	put_text_of_key(to, ",\"kind\":", pm_stat_kind_name(scope->kind));
	put_text_of_key(to, ",\"name\":", scope->name);
	put_text_of_key(to, ",\"symbol\":", scope->symbol);
	put_text_of_key(to, ",\"module\":", scope->module);
	put_text_of_key(to, ",\"build_id\":", scope->build_id);
	put_text_of_key(to, ",\"file\":", scope->file);
	put_count_if(to, ",\"line\":", scope->line > 0, scope->line);
	put_count_if(to, ",\"line_end\":", scope->line_end > 0, scope->line_end);
	put_address(to, ",\"low\":", scope->low);
	put_address(to, ",\"high\":", scope->high);
	put_count(to, ",\"places\":", scope->places);
	put_count_if(to, ",\"calls\":", known, scope->calls);
	put_count_if(to, ",\"nested\":", known, scope->nested);
	put_count_if(to, ",\"max_depth\":", known, scope->max_depth);
	put_count_if(to, ",\"unfinished\":", known, scope->unfinished);
	put_bool(to, ",\"calls_exact\":", scope->calls_exact);
	put_count(to, ",\"lost\":", scope->lost);
	put_values(to, ",\"counts\":", scope->values);
	put_spreads(to, scope->per_call);
	put_count(to, ",\"calls_kept\":", scope->calls_kept);
	put_parts(to, scope);
}

/* ---- the rest -------------------------------------------------------------------------- */

static void put_metric(struct writing *to, size_t id)
{
	const struct pm_stat_metric *metric = &to->stat->metrics.data[id];

	put_text_of_key(to, id == 0 ? "\n{\"name\":" : ",\n{\"name\":", metric->name);
	put_text_of_key(to, ",\"unit\":", metric->unit);
	put_text_of_key(to, ",\"formula\":", metric->formula);
	put_count(to, ",\"variant\":", metric->variant);
	put_count_if(to, ",\"scope\":", metric->scope >= 0, (uint64_t)metric->scope);
	put_count(to, ",\"event\":", metric->event);
	put_real(to, ",\"value\":", metric->known ? metric->value : NAN);
	put_stat_text(to, "}");
}

static void put_difference(struct writing *to, size_t id)
{
	const struct pm_stat_difference *difference = &to->stat->differences.data[id];

	put_count_if(to,
		     id == 0 ? "\n{\"scope\":" : ",\n{\"scope\":", difference->scope >= 0,
		     (uint64_t)difference->scope);
	put_count_if(to, ",\"event\":", difference->event < to->stat->events.len,
		     difference->event);
	put_count(to, ",\"runs_a\":", difference->runs[0]);
	put_count(to, ",\"runs_b\":", difference->runs[1]);
	put_real(to, ",\"median_a\":", difference->median[0]);
	put_real(to, ",\"median_b\":", difference->median[1]);
	put_real(to, ",\"difference\":", difference->by);
	put_real(to, ",\"low\":", difference->by_low);
	put_real(to, ",\"high\":", difference->by_high);
	put_real(to, ",\"change\":", difference->change);
	put_real(to, ",\"change_low\":", difference->change_low);
	put_real(to, ",\"change_high\":", difference->change_high);
	put_real(to, ",\"p\":", difference->p);
	put_real(to, ",\"p_corrected\":", difference->p_corrected);
	put_bool(to, ",\"paired\":", difference->paired);
	put_bool(to, ",\"decides\":", difference->decides);
	put_text_of_key(to, ",\"verdict\":", pm_stat_outcome_name(difference->outcome));
	put_stat_text(to, "}");
}

static void put_tail(struct writing *to)
{
	const struct pm_stat *stat = to->stat;

	put_stat_text(to, ",\n\"overhead\":");
	if (stat->overhead) {
		put_values(to, "{\"per_call\":", stat->overhead);
		if (stat->overhead_inner)
			put_values(to, ",\"per_inner_call\":", stat->overhead_inner);
		put_bool(to, ",\"subtracted\":", stat->overhead_subtracted);
		put_stat_text(to, "}");
	} else {
		put_stat_text(to, "null");
	}
	put_stat_text(to, ",\n\"metrics\":[");
	for (size_t i = 0; i < stat->metrics.len; i++)
		put_metric(to, i);
	put_stat_text(to, "],\n\"differences\":[");
	for (size_t i = 0; i < stat->differences.len; i++)
		put_difference(to, i);
	put_texts(to, "],\n\"warnings\":", stat->warnings.data, stat->warnings.len);
	put_stat_text(to, ",\n\"settings\":[");
	for (size_t i = 0; i < stat->settings.len; i++) {
		put_text_of_key(to, i == 0 ? "{\"name\":" : ",{\"name\":",
				pm_text_or_empty(stat->settings.data[i].name));
		put_text_of_key(to, ",\"value\":", stat->settings.data[i].value);
		put_stat_text(to, "}");
	}
	put_stat_text(to, "]}\n");
}

static void put_document(struct writing *to)
{
	const struct pm_stat *stat = to->stat;

	put_stat_head(to);
	put_stat_text(to, ",\n\"events\":[");
	for (size_t i = 0; i < stat->events.len; i++)
		put_stat_event(to, i);
	put_count(to, "],\n\"warmups\":", stat->warmups);
	put_stat_text(to, ",\n\"runs\":[");
	for (size_t i = 0; i < stat->runs.len; i++)
		put_run(to, i);
	put_stat_text(to, "],\n\"scopes\":[");
	for (size_t i = 0; i < stat->scopes.len; i++)
		put_scope(to, i);
	put_stat_text(to, "]");
	put_tail(to);
}

int pm_stat_put(struct pm_str *out, const struct pm_stat *stat, struct pm_error *err)
{
	struct writing to = { .stat = stat, .out = *out };
	const char *wrong = pm_stat_check(stat);

	if (wrong)
		return pm_error_set(err, -EINVAL, "cannot be written: %s", wrong);
	put_document(&to);
	*out = to.out;
	return 0;
}

static int write_stat_bytes(int fd, const char *data, size_t len)
{
	for (size_t at = 0; at < len;) {
		ssize_t n = write(fd, data + at, len - at);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		at += (size_t)n;
	}
	return 0;
}

int pm_stat_write_bytes(int fd, const struct pm_str *out, struct pm_error *err)
{
	int ret = out->failed ? -ENOMEM : write_stat_bytes(fd, out->data, out->len);

	if (ret < 0)
		return pm_error_set(err, ret, "cannot be written: %s", strerror(-ret));
	return 0;
}

int pm_stat_write(const struct pm_stat *stat, int fd, struct pm_error *err)
{
	PM_CLEANUP(pm_str_release) struct pm_str out = { 0 };
	int ret = pm_stat_put(&out, stat, err);

	if (ret < 0)
		return ret;
	return pm_stat_write_bytes(fd, &out, err);
}
