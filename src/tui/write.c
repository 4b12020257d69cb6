/* SPDX-License-Identifier: MIT */
/* Writes the visible page as text to a file. */
#include "tui-internal.h"

#include <fcntl.h>
#include <string.h>

static int write_page_rows(struct pm_tui *tui, struct page *page, FILE *to)
{
	PM_CLEANUP(pm_str_release) struct pm_str line = { 0 };

	if (page->kind == PAGE_TREE) {
		const char *of_function = "callers of";
		const char *columns = "  share  function";

		if (page->tree_kind == PM_TREE_TOP_DOWN) {
			of_function = "what is called by";
			columns = "  total     self  function";
		}
		if (page->function) {
			pm_put_cut(&line, page->function, 0, false, tui->report.ascii);
			fprintf(to, "\n%s %s\n", of_function,
				line.failed ? "?" : line.data);
		}
		fprintf(to, "\n%s\n", columns);
	}
	for (size_t i = 0; i < page->rows.len; i++) {
		pm_str_clear(&line);
		if (page->kind == PAGE_TREE)
			put_tree_row(tui, page, i, &line);
		else
			pm_put_cut(&line, page_line(page, i), 0, false,
				   tui->report.ascii);
		if (line.failed)
			return -ENOMEM;
		fprintf(to, "%s\n", pm_str_text(&line));
	}
	return 0;
}

static int write_table_page(struct pm_tui *tui, FILE *to, struct pm_error *err)
{
	struct page *page = tui_page(tui);
	struct pm_report report = tui->report;
	int ret;

	report.event = tui->event;
	report.filter = &tui->filter;
	report.show = PM_SHOW_TABLE;
	report.key = page->key;
	report.by_total = tui->by_total;
	report.limit = tui->limit;
	report.color = false;
	report.width = 0;
	if (page->kind == PAGE_TABLE)
		return pm_output_text(&report, to, err);
	if (page->kind == PAGE_TEXT && page->text_kind == TEXT_ANNOTATE)
		return tui_annotate_report(tui, page, 0, to, err);
	if (page->kind == PAGE_TREE) {
		ret = pm_output_heading(&report, to, err);
		if (ret < 0)
			return ret;
	}
	return write_page_rows(tui, page, to);
}

int tui_write(struct pm_tui *tui, const char *path)
{
	struct pm_error err = { .offset = -1 };
	/* Never overwrite an existing file or follow a symbolic link. */
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666), ret;
	FILE *to = NULL;
	bool failed;

	if (fd >= 0)
		to = fdopen(fd, "w");
	if (!to) {
		ret = errno;
		if (fd >= 0)
			close(fd);
		if (ret == EEXIST)
			tui_warn(tui, "not written: there is such a file already");
		else
			tui_warn(tui, "not written: %s", strerror(ret));
		return 0;
	}
	ret = write_table_page(tui, to, &err);
	failed = ferror(to) != 0;
	if (fclose(to) != 0)
		failed = true;
	if (ret == 0 && !failed) {
		PM_CLEANUP(pm_str_release) struct pm_str shown = { 0 };

		pm_put_cut(&shown, path, 0, false, tui->report.ascii);
		tui_say(tui, "written to %s", shown.data ? shown.data : "the file");
		return 0;
	}
	tui_warn(tui, "not written: %s", ret < 0 ? err.text : strerror(EIO));
	unlink(path);
	if (ret == -ENOMEM)
		return ret;
	return 0;
}
