/* SPDX-License-Identifier: MIT */
/* Trends as one JSON document: docs/pmdiff-trend.schema.json. */
#include "trend-show.h"

enum {
	SCHEMA_VERSION = 1
};

static void trend_json_put_commits(struct pm_str *out, const struct pm_trends *trends)
{
	pm_str_puts(out, ",\n\"commits\":[");
	for (size_t i = 0; i < trends->commits.len; i++) {
		const struct pm_trend_commit *commit = &trends->commits.data[i];

		pm_put_compare_json_text(
			out,
			i == 0 ? "\n{\"commit\":" : ",\n{\"commit\":", commit->commit);
		pm_put_compare_json_text(out, ",\"subject\":", commit->subject);
		pm_put_compare_json_text(out, ",\"created\":", commit->created);
		pm_str_putc(out, '}');
	}
	pm_str_putc(out, ']');
}

static void trend_json_put_points(struct pm_str *out, const struct pm_trend *trend)
{
	pm_str_puts(out, ",\"points\":[");
	for (size_t i = 0; i < trend->points.len; i++) {
		const struct pm_trend_point *point = &trend->points.data[i];

		if (i > 0)
			pm_str_puts(out, ",");
		if (!isfinite(point->median)) {
			pm_str_puts(out, "null");
			continue;
		}
		pm_put_compare_json(out, "{\"median\":", point->median);
		pm_put_compare_json(out, ",\"min\":", point->min);
		pm_put_compare_json(out, ",\"max\":", point->max);
		pm_str_printf(out, ",\"runs\":%zu}", point->runs);
	}
	pm_str_putc(out, ']');
}

static void trend_json_put_steps(struct pm_str *out, const struct pm_trends *trends,
				 const struct pm_trend *trend)
{
	pm_str_puts(out, ",\"steps\":[");
	for (size_t i = 0; i < trend->steps.len; i++) {
		const struct pm_trend_step *step = &trend->steps.data[i];

		pm_put_compare_json_text(out, i == 0 ? "{\"commit\":" : ",{\"commit\":",
					 trends->commits.data[step->at].commit);
		pm_str_printf(out, ",\"at\":%zu,\"from\":%zu", step->at, step->from);
		pm_put_compare_json_text(out,
					 ",\"verdict\":", pm_verdict_name(step->verdict));
		pm_put_compare_json(out, ",\"before\":", step->before);
		pm_put_compare_json(out, ",\"after\":", step->after);
		pm_put_compare_json(out, ",\"change\":", step->change);
		pm_put_compare_json(out, ",\"noise\":", step->noise);
		pm_str_putc(out, '}');
	}
	pm_str_putc(out, ']');
}

static void trend_json_put_trend(struct pm_str *out, const struct pm_trends *trends,
				 const struct pm_trend *trend)
{
	const char *better = NULL;

	pm_put_compare_json_text(out, "{\"case\":", trend->case_name);
	pm_put_compare_json_text(out, ",\"scope\":", trend->scope);
	pm_put_compare_json_text(out, ",\"module\":", trend->module);
	pm_put_compare_json_text(out, ",\"event\":", trend->event);
	pm_put_compare_json_text(out, ",\"unit\":", trend->unit);
	pm_put_compare_json_text(out, ",\"machine\":", trend->machine);
	pm_put_compare_json_text(out, ",\"class\":", pm_stat_class_name(trend->class));
	if (trend->better < 0)
		better = "less";
	else if (trend->better > 0)
		better = "more";
	pm_put_compare_json_text(out, ",\"better\":", better);
	trend_json_put_steps(out, trends, trend);
	trend_json_put_points(out, trend);
	pm_str_putc(out, '}');
}

int pm_output_trend_json(const struct pm_trend_report *report, FILE *to,
			 struct pm_error *err)
{
	const struct pm_trends *trends = report->trends;
	struct pm_str out = { 0 };

	pm_str_printf(&out, "{\"format\":\"pmdiff-trend\",\"version\":%d",
		      SCHEMA_VERSION);
	pm_str_puts(&out, ",\n\"warnings\":[");
	for (size_t i = 0; i < trends->warnings.len; i++)
		pm_put_compare_json_text(&out, pm_text_if(i > 0, ","),
					 trends->warnings.data[i]);
	pm_str_putc(&out, ']');
	trend_json_put_commits(&out, trends);
	pm_str_puts(&out, ",\n\"series\":[");
	for (size_t i = 0; i < trends->list.len; i++) {
		if (i > 0)
			pm_str_putc(&out, ',');
		pm_str_putc(&out, '\n');
		trend_json_put_trend(&out, trends, &trends->list.data[i]);
		pm_flush_some(&out, to);
	}
	pm_str_puts(&out, "]}\n");
	return pm_flush_all(&out, to, err);
}
