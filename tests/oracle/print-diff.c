/* SPDX-License-Identifier: MIT */
/* Prints one comparison in a format: the most complete one, with --least the emptiest
 * one, or with --cases the most complete one of cases. */
#include "pm/compare-output.h"
#include "tests/compare-documents.h"

static const struct {
	const char *name;
	int (*print)(const struct pm_compare_report *report, FILE *to,
		     struct pm_error *err);
} formats[] = {
	{ "text", pm_output_compare_text },   { "markdown", pm_output_compare_markdown },
	{ "json", pm_output_compare_json },   { "junit", pm_output_compare_junit },
	{ "sarif", pm_output_compare_sarif }, { "html", pm_output_compare_html },
};

int main(int argc, char **argv)
{
	struct pm_comparison comparison = { 0 };
	struct pm_compare_report report = { .comparison = &comparison,
					    .width = 80,
					    .root = "/tmp/tree" };
	int r = -1;

	if (argc > 2 && strcmp(argv[2], "--least") == 0)
		comparison.verdict = PM_VERDICT_SAME;
	else if (argc > 2 && strcmp(argv[2], "--cases") == 0)
		compare_cases(&comparison);
	else
		compare_whole(&comparison);
	for (size_t i = 0; argc > 1 && i < PM_ARRAY_LEN(formats); i++)
		if (strcmp(formats[i].name, argv[1]) == 0)
			r = formats[i].print(&report, stdout, NULL);
	pm_comparison_release(&comparison);
	return r < 0;
}
