/* SPDX-License-Identifier: MIT */
/*
 * One HTML file that contains a recording and the viewer: src/output/page, filled in. It
 * loads nothing, and its policy allows only the scripts that it was made with.
 */
#include "html-internal.h"
#include "page.h"

#include <string.h>

static void put_file_bytes(struct pm_str *out, const struct pm_page_file *file)
{
	pm_str_append(out, (const char *)file->bytes, file->len);
}

static bool has_suffix(const struct pm_page_file *file, const char *suffix)
{
	size_t len = strlen(file->name), suffix_len = strlen(suffix);

	return len > suffix_len && strcmp(file->name + len - suffix_len, suffix) == 0;
}

static bool is_script_file(const struct pm_page_file *file)
{
	return has_suffix(file, ".js") && !has_suffix(file, ".svg.js");
}

static bool is_style_file(const struct pm_page_file *file)
{
	return has_suffix(file, ".css");
}

/* ---- parts of the template ---------------------------------------------------------------- */

static void put_hashes(struct pm_str *out,
		       bool (*wanted)(const struct pm_page_file *file))
{
	for (size_t i = 0; i < pm_page_files_len; i++)
		if (wanted(&pm_page_files[i]))
			pm_str_printf(out, " 'sha256-%s'", pm_page_files[i].sha256);
}

static void put_policy(struct pm_page *page, struct pm_str *out, FILE *to)
{
	pm_str_puts(out,
		    "<meta http-equiv=\"Content-Security-Policy\" content=\""
		    "default-src 'none'; base-uri 'none'; form-action 'none'; style-src");
	put_hashes(out, is_style_file);
	pm_str_puts(out, "; script-src");
	put_hashes(out, is_script_file);
	pm_str_puts(out, "\">");
}

static void put_page_title(struct pm_page *page, struct pm_str *out, FILE *to)
{
	struct pm_str title = { 0 };

	pm_put_title(&title, page->report->profile);
	out->failed |= title.failed;
	pm_str_puts(out, "<title>");
	pm_put_markup(out, pm_str_text(&title));
	pm_str_puts(out, " – pmreport</title>");
	pm_str_release(&title);
}

/* The policy's hashes cover the exact bytes between the tags. */
static void put_elements(struct pm_str *out, const char *tag,
			 bool (*wanted)(const struct pm_page_file *file))
{
	for (size_t i = 0; i < pm_page_files_len; i++) {
		if (!wanted(&pm_page_files[i]))
			continue;
		pm_str_printf(out, "<%s>", tag);
		put_file_bytes(out, &pm_page_files[i]);
		pm_str_printf(out, "</%s>\n", tag);
	}
}

static void put_style_elements(struct pm_page *page, struct pm_str *out, FILE *to)
{
	put_elements(out, "style", is_style_file);
}

/* Writes the part of the page that readers without scripts see. */
static void put_noscript(struct pm_page *page, struct pm_str *out, FILE *to)
{
	const struct pm_notes *notes = &page->notes[0];
	struct pm_str title = { 0 };

	pm_put_title(&title, page->report->profile);
	out->failed |= title.failed;
	pm_str_puts(out, "<noscript>\n<h1>");
	pm_put_markup(out, pm_str_text(&title));
	pm_str_puts(out,
		    "</h1>\n<p>This page draws with JavaScript, which is switched off. "
		    "Without it there is this:</p>\n<ul>\n");
	for (size_t i = 0; i < notes->notes.len; i++) {
		pm_str_puts(out, "<li>");
		pm_put_markup(out, pm_str_text(&notes->notes.data[i].words));
		pm_str_puts(out, "</li>\n");
	}
	pm_str_puts(out, "</ul>\n");
	pm_str_append(out, pm_str_text(&page->top), page->top.len);
	pm_str_puts(out, "</noscript>");
	pm_str_release(&title);
}

static void put_data_element(struct pm_page *page, struct pm_str *out, FILE *to)
{
	pm_str_puts(out, "<script type=\"application/json\" id=\"pm-data\">");
	pm_page_put_data(page, out, to);
	pm_str_puts(out, "</script>");
}

static void put_script_elements(struct pm_page *page, struct pm_str *out, FILE *to)
{
	put_elements(out, "script", is_script_file);
}

static const struct {
	const char *mark;
	void (*put)(struct pm_page *page, struct pm_str *out, FILE *to);
} parts[] = {
	{ "<!--@csp@-->", put_policy },
	{ "<!--@title@-->", put_page_title },
	{ "<!--@style@-->", put_style_elements },
	{ "<!--@noscript@-->", put_noscript },
	{ "<!--@data@-->", put_data_element },
	{ "<!--@scripts@-->", put_script_elements },
};

static const struct pm_page_file *find_template(void)
{
	for (size_t i = 0; i < pm_page_files_len; i++)
		if (strcmp(pm_page_files[i].name, "page.html") == 0)
			return &pm_page_files[i];
	return NULL;
}

static void fill_in(struct pm_page *page, const struct pm_page_file *template,
		    struct pm_str *out, FILE *to)
{
	const char *at = (const char *)template->bytes, *end = at + template->len;

	while (at < end) {
		const char *mark = memmem(at, (size_t)(end - at), "<!--@", 5);
		size_t i;

		pm_str_append(out, at, (size_t)((mark ? mark : end) - at));
		if (!mark)
			return;
		for (i = 0; i < PM_ARRAY_LEN(parts); i++) {
			size_t len = strlen(parts[i].mark);

			if ((size_t)(end - mark) < len ||
			    memcmp(mark, parts[i].mark, len) != 0)
				continue;
			parts[i].put(page, out, to);
			at = mark + len;
			break;
		}
		if (i == PM_ARRAY_LEN(parts)) { /* a comment of the template */
			pm_str_append(out, mark, 5);
			at = mark + 5;
		}
	}
}

int pm_output_html(const struct pm_report *report, FILE *to, struct pm_error *err)
{
	const struct pm_page_file *template = find_template();
	PM_CLEANUP(pm_page_release) struct pm_page page = { 0 };
	struct pm_str out = { 0 };
	int ret;

	if (!template)
		return pm_error_set(err, -ENOSYS, "this program was built without page");
	ret = pm_page_init(&page, report, err);
	if (ret < 0)
		return ret;
	fill_in(&page, template, &out, to);
	return pm_flush_all(&out, to, err);
}
