/* SPDX-License-Identifier: MIT */
/*
 * A comparison as JUnit XML: a test case for each gated number. There is no single
 * schema; this uses what the schemas of Ant and of Jenkins have in common. Inconclusive
 * numbers are skipped, not passed.
 */
#include "compare-show.h"

#include <string.h>

enum {
	SECONDS_LEN = 19, /* of 2024-05-06T07:08:09Z: Ant's schema has no time zone */
};

static void junit_put_attribute(struct pm_str *out, const char *name, const char *value)
{
	pm_str_printf(out, " %s=\"", name);
	pm_put_markup(out, value);
	pm_str_putc(out, '"');
}

/* Writes an attribute. @value is our own text and may contain untrusted names; it is
 * cleared. */
static void junit_put_attribute_str(struct pm_str *out, const char *name,
				    struct pm_str *value)
{
	out->failed |= value->failed;
	junit_put_attribute(out, name, pm_text_if(!value->failed, pm_str_text(value)));
	pm_str_clear(value);
}

static void junit_put_property(struct pm_str *out, const char *name, const char *value)
{
	if (!value)
		return;
	pm_str_puts(out, "<property");
	junit_put_attribute(out, "name", name);
	junit_put_attribute(out, "value", value);
	pm_str_puts(out, "/>\n");
}

static void junit_put_properties(struct pm_str *out,
				 const struct pm_comparison *comparison)
{
	pm_str_puts(out, "<properties>\n");
	junit_put_property(out, "base", comparison->base.name);
	junit_put_property(out, "base.commit", comparison->base.commit);
	junit_put_property(out, "new", comparison->new.name);
	junit_put_property(out, "new.commit", comparison->new.commit);
	junit_put_property(out, "command", comparison->new.command);
	junit_put_property(out, "engine", comparison->engine);
	junit_put_property(out, "cpu_model", comparison->cpu_model);
	for (size_t i = 0; i < comparison->differences.len; i++)
		junit_put_property(out, "difference", comparison->differences.data[i]);
	for (size_t i = 0; i < comparison->warnings.len; i++)
		junit_put_property(out, "warning", comparison->warnings.data[i]);
	pm_str_puts(out, "</properties>\n");
}

/* Appends "+3.10 %, gate 0.5 % (--gate)". The details follow in the body of the
 * element. */
static void junit_put_summary(struct pm_str *text, const struct pm_compare_row *row)
{
	pm_put_compare_change(text, row);
	pm_str_puts(text, ", gate ");
	pm_put_compare_gate(text, row, false);
}

static void junit_put_details(struct pm_str *text, const struct pm_compare_row *row)
{
	if (row->file) {
		pm_put_compare_place(text, row, true);
		pm_str_puts(text, "\n");
	}
	pm_put_compare_median(text, row, &row->base, false);
	pm_str_puts(text, " -> ");
	pm_put_compare_median(text, row, &row->new, false);
	pm_str_puts(text, " (");
	pm_put_compare_method(text, row);
	pm_str_puts(text, ")");
}

static void junit_put_result(struct pm_str *out, const struct pm_compare_row *row,
			     bool failed)
{
	struct pm_str text = { 0 };

	if (failed)
		pm_str_puts(out, ">\n<failure");
	else
		pm_str_puts(out, ">\n<skipped");
	junit_put_summary(&text, row);
	if (!failed) {
		pm_str_clear(&text);
		pm_str_puts(&text, pm_verdict_name(row->verdict));
		if (row->why)
			pm_str_printf(&text, ": %s", row->why);
	}
	junit_put_attribute_str(out, "message", &text);
	if (!failed) {
		pm_str_puts(out, "/>\n</testcase>\n");
		pm_str_release(&text);
		return;
	}
	junit_put_attribute(out, "type", pm_verdict_name(row->verdict));
	pm_str_puts(out, ">");
	junit_put_details(&text, row);
	out->failed |= text.failed;
	/* Writes line by line: the newline is the only control character that we add. */
	for (char *line = text.data, *end; line && *line; line = end) {
		end = strchrnul(line, '\n');
		if (*end)
			*end++ = '\0';
		pm_put_markup(out, line);
		if (*end)
			pm_str_puts(out, "\n");
	}
	if (row->why) {
		pm_str_putc(out, '\n');
		pm_put_markup(out, row->why);
	}
	pm_str_puts(out, "</failure>\n</testcase>\n");
	pm_str_release(&text);
}

static void junit_put_case(struct pm_str *out, const struct pm_compare_row *row)
{
	enum pm_compare_section section = pm_compare_section_of(row);
	struct pm_str text = { 0 };

	pm_str_puts(out, "<testcase");
	pm_put_compare_name(&text, row, 0, false);
	junit_put_attribute_str(out, "name", &text);
	junit_put_attribute(out, "classname", pm_text_or(row->module, "program"));
	pm_str_puts(out, " time=\"0\"");
	/* Accepted regressions are skipped, with their reason. */
	if (section == PM_COMPARED_FAILED || section == PM_COMPARED_OPEN ||
	    section == PM_COMPARED_ACCEPTED)
		junit_put_result(out, row, section == PM_COMPARED_FAILED);
	else
		pm_str_puts(out, "/>\n");
	pm_str_release(&text);
}

/* Writes an error, because a suite without tests would pass. */
static void junit_put_failure(struct pm_str *out, const char *failure, const char *type)
{
	pm_str_puts(out, "<testcase name=\"comparison\" classname=\"program\" "
			 "time=\"0\">\n<error");
	junit_put_attribute(out, "message", failure);
	junit_put_attribute(out, "type", type);
	pm_str_puts(out, "/>\n</testcase>\n");
}

/* Starts the suite of a case, or of the whole comparison if there are no cases. */
static void junit_put_suite_begin(struct pm_str *out,
				  const struct pm_comparison *comparison, size_t id,
				  const char *name, bool failed)
{
	struct pm_compare_counts counts;
	const char *created = comparison->new.created;

	pm_compare_count(&counts, comparison);
	pm_str_printf(out, "<testsuite id=\"%zu\" package=\"pmdiff\"", id);
	junit_put_attribute(out, "name", name);
	pm_str_printf(out,
		      " tests=\"%zu\" failures=\"%zu\" errors=\"%d\" skipped=\"%zu\" "
		      "time=\"0\" hostname=\"localhost\"",
		      counts.gated + failed, counts.of[PM_COMPARED_FAILED], failed,
		      counts.of[PM_COMPARED_OPEN] + counts.of[PM_COMPARED_ACCEPTED]);
	if (created && strlen(created) >= SECONDS_LEN) {
		char date[SECONDS_LEN + 1];

		snprintf(date, sizeof(date), "%s", created);
		junit_put_attribute(out, "timestamp", date);
	}
	pm_str_puts(out, ">\n");
	junit_put_properties(out, comparison);
}

static void junit_put_suite(struct pm_str *out, const struct pm_compare_report *report,
			    const struct pm_compare_case *one, size_t id, FILE *to)
{
	struct pm_comparison view;
	const struct pm_comparison *comparison = report->comparison;
	const char *failure = report->failure;
	struct pm_str verdict = { 0 };

	if (one) {
		view = pm_compare_view(comparison, one);
		view.base.name = comparison->base.name;
		view.new.name = comparison->new.name;
		/* Statements about all cases are in the first suite. */
		if (id == 0) {
			view.differences.data = comparison->differences.data;
			view.differences.len = comparison->differences.len;
			view.warnings.data = comparison->warnings.data;
			view.warnings.len = comparison->warnings.len;
		}
		comparison = &view;
		failure = NULL;
		if (one->verdict == PM_VERDICT_UNKNOWN)
			failure = one->why;
		pm_put_compare_case(&verdict, report, one);
	} else {
		pm_put_compare_verdict(&verdict, report);
	}
	junit_put_suite_begin(out, comparison, id, one ? one->name : "pmdiff",
			      failure != NULL);
	if (failure)
		junit_put_failure(out, failure, one ? "failed" : "not compared");
	for (size_t i = 0; i < comparison->rows.len; i++) {
		if (comparison->rows.data[i].gated)
			junit_put_case(out, &comparison->rows.data[i]);
		pm_flush_some(out, to);
	}
	pm_str_puts(out, "<system-out>");
	pm_put_markup(out, pm_str_text(&verdict));
	pm_str_puts(out, "</system-out>\n<system-err/>\n</testsuite>\n");
	out->failed |= verdict.failed;
	pm_str_release(&verdict);
}

int pm_output_compare_junit(const struct pm_compare_report *report, FILE *to,
			    struct pm_error *err)
{
	const struct pm_comparison *comparison = report->comparison;
	bool cases = comparison->cases.len > 0 && !report->failure;
	struct pm_str out = { 0 };

	pm_str_puts(&out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n");
	if (!cases)
		junit_put_suite(&out, report, NULL, 0, to);
	for (size_t i = 0; cases && i < comparison->cases.len; i++)
		junit_put_suite(&out, report, &comparison->cases.data[i], i, to);
	pm_str_puts(&out, "</testsuites>\n");
	return pm_flush_all(&out, to, err);
}
