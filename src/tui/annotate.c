/* SPDX-License-Identifier: MIT */
/* Lines and instructions of one function, formatted as in the text report. */
#include "tui-internal.h"

#include <string.h>

enum {
	CONTEXT_ROWS = 5, /* shown above the hottest row */
};

bool line_percent(const char *line, double *out, unsigned *columns)
{
	char *end;

	if (line[strspn(line, " 0123456789")] != '.')
		return false;
	*out = strtod(line, &end);
	*columns = (unsigned)(end - line) + 1;
	return *end == '%';
}

int tui_annotate_report(struct pm_tui *tui, const struct page *page, unsigned width,
			FILE *to, struct pm_error *err)
{
	struct pm_report report = tui->report;

	report.event = tui->event;
	report.filter = &tui->filter;
	report.show = PM_SHOW_ANNOTATE;
	report.annotate = tui->annotate;
	report.function = page->function;
	report.quiet = width > 0;
	report.color = false;
	report.width = width;
	return pm_output_text(&report, to, err);
}

int tui_annotate_lines(struct pm_tui *tui, struct page *page)
{
	struct pm_error err = { .offset = -1 };
	char *text = NULL;
	size_t len = 0;
	FILE *stream = open_memstream(&text, &len);
	int ret;

	if (!stream)
		return -ENOMEM;
	ret = tui_annotate_report(tui, page, tui_room(tui, 1, 1), stream, &err);
	if (fclose(stream) != 0)
		ret = -ENOMEM;
	if (ret == 0 && text)
		pm_str_append(&page->text, text, len);
	else if (ret < 0 && ret != -ENOMEM)
		pm_str_printf(&page->text, "! %s\n", err.text);
	free(text);
	if (ret == -ENOMEM || page->text.failed)
		return -ENOMEM;
	return 0;
}

void tui_show_hottest(struct pm_tui *tui, struct page *page)
{
	double percent, most = 0;
	size_t hottest = 0;
	unsigned columns;

	for (size_t i = 0; i < page->rows.len; i++) {
		if (!line_percent(page_line(page, i), &percent, &columns) ||
		    percent <= most)
			continue;
		most = percent;
		hottest = i;
	}
	page_select(tui, page, PM_SUB_OR_0(hottest, CONTEXT_ROWS));
}

int tui_push_annotate(struct pm_tui *tui, const char *function)
{
	struct page page = { .kind = PAGE_TEXT, .text_kind = TEXT_ANNOTATE };
	int ret;

	page.function = strdup(function);
	if (!page.function)
		return -ENOMEM;
	ret = tui_push(tui, &page);
	if (ret == 0)
		tui_show_hottest(tui, tui_page(tui));
	return ret;
}
