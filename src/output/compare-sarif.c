/* SPDX-License-Identifier: MIT */
/*
 * A comparison as SARIF 2.1.0 (OASIS): a result for each number of a function that got
 * worse, at the function's line. A regression without a file, such as the time of the
 * whole program, is a notification of the tool, because services reject results without a
 * location.
 */
#include "compare-show.h"

#include <ctype.h>
#include <string.h>

static bool is_sarif_result(const struct pm_compare_row *row)
{
	enum pm_compare_section section = pm_compare_section_of(row);

	return section == PM_COMPARED_FAILED || section == PM_COMPARED_ACCEPTED ||
	       section == PM_COMPARED_WORSE;
}

static const char *sarif_level_of_row(const struct pm_compare_row *row)
{
	if (pm_compare_section_of(row) == PM_COMPARED_FAILED)
		return "error";
	return "note";
}

static void sarif_put_message(struct pm_str *out, const struct pm_compare_row *row)
{
	struct pm_str text = { 0 };

	pm_put_compare_name(&text, row, 0, false);
	pm_str_puts(&text, ": ");
	pm_put_compare_change(&text, row);
	pm_str_puts(&text, ", from ");
	pm_put_compare_median(&text, row, &row->base, false);
	pm_str_puts(&text, " to ");
	pm_put_compare_median(&text, row, &row->new, false);
	if (row->gated) {
		pm_str_puts(&text, ", gate ");
		pm_put_compare_gate(&text, row, false);
	}
	pm_str_puts(&text, " (");
	pm_put_compare_method(&text, row);
	pm_str_puts(&text, ").");
	if (row->why)
		pm_str_printf(&text, " %s", row->why);
	out->failed |= text.failed;
	pm_put_compare_json_text(out, "\"message\":{\"text\":", pm_str_text(&text));
	pm_str_putc(out, '}');
	pm_str_release(&text);
}

/* Writes a URI (RFC 3986), relative to the root of the sources, or absolute on this
 * machine. */
static void sarif_put_uri(struct pm_str *out, const char *file, const char *root)
{
	size_t len = strlen(pm_text_or_empty(root));

	while (len > 1 && root[len - 1] == '/')
		len--;
	if (len > 0 && strncmp(file, root, len) == 0 && file[len] == '/') {
		file += len;
		file += strspn(file, "/");
	}
	pm_str_puts(out, "\"uri\":\"");
	if (file[0] == '/')
		pm_str_puts(out, "file://");
	for (const unsigned char *c = (const unsigned char *)file; *c; c++) {
		if (*c < 0x80 && (isalnum(*c) || strchr("/._~-", *c)))
			pm_str_putc(out, (char)*c);
		else
			pm_str_printf(out, "%%%02X", *c);
	}
	pm_str_putc(out, '"');
	if (file[0] != '/')
		pm_str_puts(out, ",\"uriBaseId\":\"%SRCROOT%\"");
}

static void sarif_put_location(struct pm_str *out, const struct pm_compare_row *row,
			       const char *root)
{
	pm_str_puts(out, ",\"locations\":[{\"physicalLocation\":{\"artifactLocation\":{");
	sarif_put_uri(out, row->file, root);
	pm_str_puts(out, "}");
	if (row->line > 0)
		pm_str_printf(out, ",\"region\":{\"startLine\":%u}", row->line);
	pm_str_puts(out, "}");
	if (row->scope) {
		pm_put_compare_json_text(
			out, ",\"logicalLocations\":[{\"kind\":\"function\",\"name\":",
			row->scope);
		pm_str_puts(out, "}]");
	}
	pm_str_puts(out, "}]");
}

/* Writes a fingerprint, by which the same number in two runs is one finding, even if its
 * line has moved. */
static void sarif_put_fingerprint(struct pm_str *out, const struct pm_compare_row *row)
{
	uint64_t hash = pm_hash_bytes(row->event, strlen(row->event));

	if (row->scope)
		hash = pm_hash_mix(hash, pm_hash_bytes(row->scope, strlen(row->scope)));
	if (row->module)
		hash = pm_hash_mix(hash, pm_hash_bytes(row->module, strlen(row->module)));
	if (row->case_name)
		hash = pm_hash_mix(hash,
				   pm_hash_bytes(row->case_name, strlen(row->case_name)));
	pm_str_printf(out, ",\"partialFingerprints\":{\"pmdiffNumber/v1\":\"%016llx\"}",
		      (unsigned long long)hash);
}

static double median_of_side(const struct pm_compare_side *side)
{
	if (side->known)
		return side->median;
	return NAN;
}

static void sarif_put_number(struct pm_str *out, const struct pm_compare_row *row)
{
	pm_put_compare_json_text(out, ",\"properties\":{\"event\":", row->event);
	pm_put_compare_json_text(out, ",\"unit\":", row->unit);
	pm_put_compare_json(out, ",\"base\":", median_of_side(&row->base));
	pm_put_compare_json(out, ",\"new\":", median_of_side(&row->new));
	pm_put_compare_json(out, ",\"change\":", row->change);
	pm_put_compare_json(out, ",\"gate\":", row->gate);
	pm_str_putc(out, '}');
}

/* Marks an accepted regression as suppressed. It remains in the document (SARIF
 * §3.35). */
static void sarif_put_suppression(struct pm_str *out, const struct pm_compare_row *row)
{
	if (!row->ack)
		return;
	pm_put_compare_json_text(
		out,
		",\"suppressions\":[{\"kind\":\"external\",\"status\":\"accepted\","
		"\"justification\":",
		row->ack->reason);
	pm_str_puts(out, "}]");
}

static void sarif_put_results(struct pm_str *out, const struct pm_compare_report *report,
			      FILE *to)
{
	const struct pm_comparison *comparison = report->comparison;
	bool first = true;

	for (size_t i = 0; i < comparison->rows.len; i++) {
		const struct pm_compare_row *row = &comparison->rows.data[i];

		if (!is_sarif_result(row) || !row->file)
			continue;
		pm_str_printf(out,
			      "%s\n{\"ruleId\":\"regression\",\"ruleIndex\":0,"
			      "\"level\":\"%s\",",
			      pm_text_if(!first, ","), sarif_level_of_row(row));
		first = false;
		sarif_put_message(out, row);
		sarif_put_location(out, row, report->root);
		sarif_put_fingerprint(out, row);
		sarif_put_number(out, row);
		sarif_put_suppression(out, row);
		pm_str_putc(out, '}');
		pm_flush_some(out, to);
	}
}

static void sarif_put_notifications(struct pm_str *out,
				    const struct pm_compare_report *report)
{
	const struct pm_comparison *comparison = report->comparison;
	bool first = !report->failure;

	if (report->failure) {
		pm_put_compare_json_text(
			out,
			"\n{\"level\":\"error\",\"message\":{\"text\":", report->failure);
		pm_str_puts(out, "}}");
	}
	for (size_t i = 0; i < comparison->rows.len; i++) {
		const struct pm_compare_row *row = &comparison->rows.data[i];

		if (!is_sarif_result(row) || row->file)
			continue;
		pm_str_printf(out, "%s\n{\"level\":\"%s\",", pm_text_if(!first, ","),
			      sarif_level_of_row(row));
		first = false;
		sarif_put_message(out, row);
		sarif_put_number(out, row);
		pm_str_putc(out, '}');
	}
	for (size_t i = 0; i < comparison->cases.len; i++) {
		const struct pm_compare_case *one = &comparison->cases.data[i];
		struct pm_str text = { 0 };

		if (one->verdict != PM_VERDICT_UNKNOWN)
			continue;
		pm_str_printable(&text, one->name, strlen(one->name));
		pm_str_puts(&text, ": ");
		pm_put_compare_case(&text, report, one);
		pm_str_printf(out, "%s\n{\"level\":\"error\"", pm_text_if(!first, ","));
		first = false;
		pm_put_compare_json_text(out,
					 ",\"message\":{\"text\":", pm_str_text(&text));
		pm_str_puts(out, "}}");
		out->failed |= text.failed;
		pm_str_release(&text);
	}
	for (size_t i = 0; i < comparison->warnings.len; i++) {
		pm_str_printf(out, "%s\n{\"level\":\"warning\"", pm_text_if(!first, ","));
		first = false;
		pm_put_compare_json_text(
			out, ",\"message\":{\"text\":", comparison->warnings.data[i]);
		pm_str_puts(out, "}}");
	}
}

static void sarif_put_tool(struct pm_str *out)
{
	pm_str_printf(
		out,
		"{\"tool\":{\"driver\":{\"name\":\"pmdiff\",\"version\":\"%s\",\n"
		"\"rules\":[{\"id\":\"regression\",\"name\":\"Regression\","
		"\"shortDescription\":{\"text\":\"A counter got worse\"},"
		"\"fullDescription\":{\"text\":\"The new side needs more of it than the "
		"base does, by more than chance and more than the gate allows.\"},"
		"\"help\":{\"text\":\"pmdiff(1) says how numbers are judged.\"},"
		"\"defaultConfiguration\":{\"level\":\"error\"},"
		"\"properties\":{\"tags\":[\"performance\"]}}]}}",
		PM_VERSION);
}

int pm_output_compare_sarif(const struct pm_compare_report *report, FILE *to,
			    struct pm_error *err)
{
	const struct pm_comparison *comparison = report->comparison;
	struct pm_str out = { 0 }, verdict = { 0 };

	pm_put_compare_verdict(&verdict, report);
	out.failed |= verdict.failed;
	pm_str_puts(&out,
		    "{\"$schema\":\"https://json.schemastore.org/sarif-2.1.0.json\","
		    "\"version\":\"2.1.0\",\"runs\":[\n");
	sarif_put_tool(&out);
	pm_str_printf(&out,
		      ",\n\"columnKind\":\"unicodeCodePoints\",\n\"invocations\":[{"
		      "\"executionSuccessful\":%s,\"toolExecutionNotifications\":[",
		      report->failure ? "false" : "true");
	sarif_put_notifications(&out, report);
	pm_put_compare_json_text(
		&out, "]}],\n\"properties\":{\"verdict\":", pm_str_text(&verdict));
	pm_put_compare_json_text(&out, ",\"base\":", comparison->base.name);
	pm_put_compare_json_text(&out, ",\"new\":", comparison->new.name);
	pm_str_puts(&out, "},\n\"results\":[");
	sarif_put_results(&out, report, to);
	pm_str_puts(&out, "]}]}\n");
	pm_str_release(&verdict);
	return pm_flush_all(&out, to, err);
}
