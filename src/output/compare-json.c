/* SPDX-License-Identifier: MIT */
/* A comparison as one JSON document: docs/pmdiff.schema.json. Each
 * row is on its own line. */
#include "compare-show.h"

enum {
	SCHEMA_VERSION = 1
};

static void compare_json_put_bool(struct pm_str *out, const char *key, bool value)
{
	pm_str_printf(out, "%s%s", key, value ? "true" : "false");
}

static void compare_json_put_origin(struct pm_str *out, const char *key,
				    const struct pm_compare_of *of)
{
	pm_str_puts(out, key);
	pm_put_compare_json_text(out, "{\"name\":", of->name);
	pm_put_compare_json_text(out, ",\"commit\":", of->commit);
	pm_put_compare_json_text(out, ",\"subject\":", of->subject);
	pm_put_compare_json_text(out, ",\"created\":", of->created);
	pm_put_compare_json_text(out, ",\"command\":", of->command);
	pm_str_printf(out, ",\"documents\":%zu,\"runs\":%zu,\"left_out\":%zu}",
		      of->documents, of->runs, of->left_out);
}

static void compare_json_put_texts(struct pm_str *out, const char *key,
				   char *const *texts, size_t len)
{
	pm_str_puts(out, key);
	for (size_t i = 0; i < len; i++)
		pm_put_compare_json_text(out, pm_text_if(i > 0, ","), texts[i]);
	pm_str_putc(out, ']');
}

/* Also writes counts of 0, so that a reader does not have to know all verdicts. */
static void compare_json_put_counts(struct pm_str *out,
				    const struct pm_comparison *comparison)
{
	size_t counts[PM_VERDICT_GONE + 1] = { 0 }, gated = 0;

	for (size_t i = 0; i < comparison->rows.len; i++) {
		counts[comparison->rows.data[i].verdict]++;
		gated += comparison->rows.data[i].gated;
	}
	pm_str_printf(out, ",\n\"counts\":{\"rows\":%zu,\"gated\":%zu",
		      comparison->rows.len, gated);
	for (size_t i = 0; i < PM_ARRAY_LEN(counts); i++)
		pm_str_printf(out, ",\"%s\":%zu", pm_verdict_name((enum pm_verdict)i),
			      counts[i]);
	pm_str_putc(out, '}');
}

static void compare_json_put_side(struct pm_str *out, const char *key,
				  const struct pm_compare_row *row,
				  const struct pm_compare_side *side)
{
	pm_str_puts(out, key);
	if (!side->known) {
		pm_str_puts(out, "null");
		return;
	}
	pm_put_compare_json(out, "{\"median\":", side->median);
	pm_put_compare_json(out, ",\"min\":", side->min);
	pm_put_compare_json(out, ",\"max\":", side->max);
	pm_str_puts(out, ",\"values\":[");
	for (size_t i = 0; i < side->len; i++)
		pm_put_compare_json(out, pm_text_if(i > 0, ","), side->values[i]);
	pm_str_puts(out, "]");
	if (row->subject == PM_COMPARE_FUNCTION) {
		pm_str_puts(out, ",\"samples\":");
		pm_str_u64(out, side->samples);
		pm_put_compare_json(out, ",\"share\":", side->share);
	}
	pm_str_putc(out, '}');
}

static void compare_json_put_subject(struct pm_str *out, const struct pm_compare_row *row)
{
	static const char *const subjects[] = {
		[PM_COMPARE_PROGRAM] = "program",
		[PM_COMPARE_SCOPE] = "scope",
		[PM_COMPARE_FUNCTION] = "function",
	};

	pm_put_compare_json_text(out, "{\"case\":", row->case_name);
	pm_put_compare_json_text(out, ",\"subject\":", subjects[row->subject]);
	pm_put_compare_json_text(out, ",\"scope\":", row->scope);
	pm_put_compare_json_text(out, ",\"symbol\":", row->symbol);
	pm_put_compare_json_text(out, ",\"module\":", row->module);
	pm_put_compare_json_text(out, ",\"file\":", row->file);
	if (row->line > 0)
		pm_str_printf(out, ",\"line\":%u", row->line);
	else
		pm_str_puts(out, ",\"line\":null");
	compare_json_put_bool(out, ",\"inlined_base\":", row->inlined_base);
	compare_json_put_bool(out, ",\"inlined_new\":", row->inlined_new);
}

static void compare_json_put_ack(struct pm_str *out, const struct pm_ack *ack)
{
	if (!ack) {
		pm_str_puts(out, ",\"ack\":null");
		return;
	}
	pm_put_compare_json_text(out, ",\"ack\":{\"reason\":", ack->reason);
	pm_put_compare_json(out, ",\"from\":", ack->from);
	pm_put_compare_json(out, ",\"to\":", ack->to);
	pm_put_compare_json_text(out, ",\"commit\":", ack->commit);
	pm_str_putc(out, '}');
}

static void compare_json_put_row(struct pm_str *out, const struct pm_compare_row *row)
{
	static const char *const better[] = { "lower", NULL, "higher" };

	compare_json_put_subject(out, row);
	pm_put_compare_json_text(out, ",\"event\":", row->event);
	pm_put_compare_json_text(out, ",\"unit\":", row->unit);
	pm_put_compare_json_text(out, ",\"class\":", pm_stat_class_name(row->class));
	pm_put_compare_json_text(out, ",\"better\":", better[row->better + 1]);
	pm_put_compare_json_text(out, ",\"verdict\":", pm_verdict_name(row->verdict));
	pm_put_compare_json_text(out, ",\"why\":", row->why);
	compare_json_put_side(out, ",\"base\":", row, &row->base);
	compare_json_put_side(out, ",\"new\":", row, &row->new);
	pm_put_compare_json(out, ",\"change\":", row->change);
	compare_json_put_bool(out, ",\"from_zero\":", isinf(row->change));
	pm_put_compare_json(out, ",\"low\":", row->low);
	pm_put_compare_json(out, ",\"high\":", row->high);
	pm_put_compare_json_text(out, ",\"method\":", row->method);
	pm_put_compare_json(out, ",\"p\":", row->p);
	pm_put_compare_json(out, ",\"p_holm\":", row->p_holm);
	compare_json_put_bool(out, ",\"gated\":", row->gated);
	pm_put_compare_json(out, ",\"gate\":", row->gate);
	pm_put_compare_json(out, ",\"at_most\":", row->at_most);
	compare_json_put_bool(out, ",\"gate_both\":", row->both);
	pm_put_compare_json_text(out, ",\"gate_source\":", row->gate_source);
	compare_json_put_bool(out, ",\"history\":", row->of_history);
	compare_json_put_ack(out, row->ack);
	pm_str_putc(out, '}');
}

static void compare_json_put_hot_rows(struct pm_str *out, const char *key,
				      const struct pm_hot_rows *rows)
{
	pm_str_printf(out, "%s{\"more\":%zu,\"rows\":[", key, rows->more);
	for (size_t i = 0; i < rows->list.len; i++) {
		const struct pm_hot_row *row = &rows->list.data[i];

		pm_put_compare_json_text(
			out,
			i == 0 ? "\n{\"function\":" : ",\n{\"function\":", row->function);
		pm_put_compare_json_text(out, ",\"module\":", row->module);
		pm_put_compare_json_text(out, ",\"file\":", row->file);
		if (row->line > 0)
			pm_str_printf(out, ",\"line\":%u", row->line);
		else
			pm_str_puts(out, ",\"line\":null");
		pm_put_compare_json(out, ",\"base\":", row->base);
		pm_put_compare_json(out, ",\"new\":", row->new);
		pm_put_compare_json(out, ",\"added\":", row->new - row->base);
		pm_str_putc(out, '}');
	}
	pm_str_puts(out, "]}");
}

static void compare_json_put_hot(struct pm_str *out, const char *key,
				 const struct pm_hot *hot)
{
	pm_str_puts(out, key);
	if (!hot) {
		pm_str_puts(out, "null");
		return;
	}
	compare_json_put_bool(out, "{\"exact\":", hot->exact);
	pm_put_compare_json_text(out, ",\"event\":", hot->event);
	pm_put_compare_json_text(out, ",\"unit\":", hot->unit);
	pm_put_compare_json(out, ",\"base\":", hot->all[0]);
	pm_put_compare_json(out, ",\"new\":", hot->all[1]);
	pm_put_compare_json_text(out, ",\"page\":", hot->page);
	compare_json_put_hot_rows(out, ",\n\"functions_self\":", &hot->self);
	compare_json_put_hot_rows(out, ",\n\"functions_total\":", &hot->total);
	compare_json_put_hot_rows(out, ",\n\"lines\":", &hot->lines);
	pm_str_putc(out, '}');
}

static void compare_json_put_case(struct pm_str *out, const struct pm_compare_case *one)
{
	pm_put_compare_json_text(out, "{\"name\":", one->name);
	pm_put_compare_json_text(out, ",\"verdict\":", pm_verdict_name(one->verdict));
	pm_put_compare_json_text(out, ",\"why\":", one->why);
	compare_json_put_bool(out, ",\"failed_base\":", one->failed_base);
	compare_json_put_bool(out, ",\"failed_new\":", one->failed_new);
	pm_put_compare_json_text(out, ",\"engine\":", one->engine);
	pm_put_compare_json_text(out, ",\"deciding\":", one->deciding);
	compare_json_put_origin(out, ",\"base\":", &one->base);
	compare_json_put_origin(out, ",\"new\":", &one->new);
	pm_str_printf(out, ",\"rows\":%zu", one->len);
	compare_json_put_hot(out, ",\"hot\":", one->hot);
	pm_str_putc(out, '}');
}

int pm_output_compare_json(const struct pm_compare_report *report, FILE *to,
			   struct pm_error *err)
{
	const struct pm_comparison *comparison = report->comparison;
	struct pm_str out = { 0 };

	pm_str_printf(&out, "{\"format\":\"pmdiff\",\"version\":%d,\"pmdiff\":\"%s\"",
		      SCHEMA_VERSION, PM_VERSION);
	pm_put_compare_json_text(
		&out, ",\n\"kind\":", comparison->recordings ? "recordings" : "counts");
	pm_put_compare_json_text(
		&out, ",\n\"verdict\":", pm_verdict_name(pm_compare_verdict_of(report)));
	compare_json_put_counts(&out, comparison);
	compare_json_put_origin(&out, ",\n\"base\":", &comparison->base);
	compare_json_put_origin(&out, ",\n\"new\":", &comparison->new);
	pm_put_compare_json_text(&out, ",\n\"engine\":", comparison->engine);
	pm_put_compare_json_text(&out, ",\"cpu_model\":", comparison->cpu_model);
	pm_put_compare_json_text(&out, ",\n\"deciding\":", comparison->deciding);
	pm_put_compare_json_text(&out, ",\n\"failure\":", report->failure);
	compare_json_put_bool(&out, ",\n\"forced\":", comparison->forced);
	compare_json_put_texts(&out, ",\"differences\":[", comparison->differences.data,
			       comparison->differences.len);
	compare_json_put_texts(&out, ",\n\"warnings\":[", comparison->warnings.data,
			       comparison->warnings.len);
	compare_json_put_hot(&out, ",\n\"hot\":", comparison->hot);
	pm_str_puts(&out, ",\n\"cases\":[");
	for (size_t i = 0; i < comparison->cases.len; i++) {
		if (i > 0)
			pm_str_putc(&out, ',');
		pm_str_putc(&out, '\n');
		compare_json_put_case(&out, &comparison->cases.data[i]);
	}
	pm_str_puts(&out, "],\n\"rows\":[");
	for (size_t i = 0; i < comparison->rows.len; i++) {
		if (i > 0)
			pm_str_putc(&out, ',');
		pm_str_putc(&out, '\n');
		compare_json_put_row(&out, &comparison->rows.data[i]);
		pm_flush_some(&out, to);
	}
	pm_str_puts(&out, "]}\n");
	return pm_flush_all(&out, to, err);
}
