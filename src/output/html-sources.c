/* SPDX-License-Identifier: MIT */
/* The source text of the hottest functions, if it can be read, and the weights of its
 * lines. */
#include "html-internal.h"

#include <string.h>

enum {
	FUNCTIONS_PER_EVENT = 16,
	FUNCTIONS_MAX = 48,
	LINES_MAX = 400, /* lines of a function, around its hottest one */
	CONTEXT = 4,
	WITHHELD_NAMED = 3,
};
#define LEAST_PERCENT 0.5

void pm_page_sources_release(struct pm_page *page)
{
	for (size_t i = 0; i < page->sources.len; i++) {
		struct pm_page_source *source = &page->sources.data[i];

		for (uint32_t k = 0; source->lines && k <= source->last - source->first;
		     k++)
			free(source->lines[k]);
		free(source->lines);
		pm_vec_release(&source->weights);
	}
	pm_vec_release(&page->sources);
	pm_vec_release(&page->withheld);
}

int pm_page_choose_sources(struct pm_page *page, struct pm_section *section)
{
	const struct pm_table *table = pm_section_functions(section);
	const struct pm_profile *profile = page->report->profile;
	size_t chosen = 0;

	for (size_t i = 0; table && i < table->rows.len && chosen < FUNCTIONS_PER_EVENT;
	     i++) {
		const struct pm_row *row = &table->rows.data[i];
		struct pm_page_source source = { .function = row->id };
		uint32_t module = profile->functions.data[row->id].module;
		/* The kernel's sources are not at the path where it was built. */
		bool left_out = profile->functions.data[row->id].unknown ||
				(module != PM_PROFILE_NONE &&
				 profile->modules.data[module].kernel);

		if (pm_weight_percent(&row->self, &section->view->total) <
			    LEAST_PERCENT ||
		    page->sources.len == FUNCTIONS_MAX)
			break;
		chosen += !left_out;
		for (size_t k = 0; !left_out && k < page->sources.len; k++)
			left_out = page->sources.data[k].function == row->id;
		if (!left_out && pm_vec_push(&page->sources, source) < 0)
			return -ENOMEM;
	}
	if (!table)
		return -ENOMEM;
	return 0;
}

/*
 * Whether the file may be put into the page. A recording may name any files, and a page
 * is made to be shared. Only files with the suffix of a source are allowed, both by the
 * recorded name and by the file's own name, which a symbolic link hides.
 */
static bool is_source(const char *path)
{
	static const char *const suffixes[] = {
		".c",     ".cc",  ".cp",  ".cpp", ".cxx", ".c++", ".h",   ".hh", ".hpp",
		".hxx",   ".h++", ".inl", ".ipp", ".tcc", ".tpp", ".rs",  ".go", ".d",
		".zig",   ".S",   ".s",   ".asm", ".f",   ".f90", ".f95", ".m",  ".mm",
		".swift", ".ml",  ".hs",  ".nim", ".cr",  ".pas", ".adb", ".cu",
	};
	const char *dot = strrchr(pm_basename(path), '.');

	for (size_t i = 0; dot && i < PM_ARRAY_LEN(suffixes); i++)
		if (strcmp(dot, suffixes[i]) == 0)
			return true;
	return false;
}

/* Keeps only the lines that are needed: a file may have megabytes. */
static int source_keep_lines(struct pm_page_source *out, const struct pm_source *from)
{
	uint32_t count = out->last - out->first + 1;

	out->lines = calloc(count, sizeof(*out->lines));
	if (!out->lines)
		return -ENOMEM;
	for (uint32_t i = 0; i < count; i++) {
		size_t len = 0;
		bool cut = false;
		const char *text = pm_source_line(from, out->first + i, &len, &cut);

		if (asprintf(&out->lines[i], "%.*s%s", (int)len, pm_text_or_empty(text),
			     cut ? " …" : "") < 0) {
			out->lines[i] = NULL;
			return -ENOMEM;
		}
	}
	return 0;
}

/* Selects the lines with samples in the heaviest file, or those around the hottest line.
 * Returns false if the file, which has @end lines, is another version. */
static bool choose_lines(struct pm_page_source *out,
			 const struct pm_annotate_lines *lines, uint32_t end)
{
	const struct pm_annotate_file *file = &lines->files.data[0];
	uint32_t hottest = 0, first = UINT32_MAX, last = 0;
	struct pm_weight most = { 0 };

	for (uint32_t i = file->first; i < file->first + file->lines; i++) {
		const struct pm_annotate_line *line = &lines->lines.data[i];

		first = PM_MIN(line->line, first);
		last = PM_MAX(line->line, last);
		if (hottest == 0 || line->total.period > most.period) {
			hottest = line->line;
			most = line->total;
		}
	}
	if (hottest == 0 || hottest > end)
		return false;
	if (last - first >= LINES_MAX) {
		if (hottest > LINES_MAX / 2)
			first = hottest - LINES_MAX / 2;
		else
			first = 1;
		last = first + LINES_MAX - 1;
	}
	if (first > CONTEXT)
		out->first = first - CONTEXT;
	else
		out->first = 1;
	out->last = PM_MIN(last + CONTEXT, end);
	return true;
}

/* Adds a path, once. A profile stores each string once: equal strings have equal
 * pointers. */
static int add_withheld(struct pm_page *page, const char *path)
{
	for (size_t i = 0; i < page->withheld.len; i++)
		if (page->withheld.data[i] == path)
			return 0;
	return pm_vec_push(&page->withheld, path);
}

static void note_withheld(struct pm_page *page)
{
	const char *folder = page->withheld.data[0];
	const char *slash = strrchr(folder, '/');
	int folder_len = 1; /* the root */
	struct pm_str names = { 0 };

	if (!slash)
		folder = ".";
	else if (slash > folder)
		folder_len = (int)(slash - folder);

	for (size_t i = 0; i < page->withheld.len && i < WITHHELD_NAMED; i++) {
		if (i > 0)
			pm_str_puts(&names, ", ");
		pm_str_printf(&names, "%.200s", page->withheld.data[i]);
	}
	if (page->withheld.len > WITHHELD_NAMED)
		pm_str_printf(&names, " and %zu more",
			      page->withheld.len - WITHHELD_NAMED);
	if (names.failed)
		page->notes[0].failed = true;
	else
		pm_notes_add(&page->notes[0], PM_NOTE_WARN,
			     "sources that are not for the recorded user (uid %u) are "
			     "left out of root's report: %s; pmreport --source-root "
			     "%.*s shows them",
			     page->source_uid, names.data, folder_len, folder);
	pm_str_release(&names);
}

/* Reads the source of a function. Its file and lines are chosen for the first event that
 * has the function. */
static int read_source(struct pm_page *page, struct pm_page_source *out,
		       const struct pm_annotate_lines *lines)
{
	PM_CLEANUP(pm_source_release) struct pm_source source = { 0 };
	struct pm_annotate_search search = page->report->search;
	const char *path = lines->files.data[0].path;
	int ret;

	pm_annotate_search_of(&search, page->report->profile);
	page->source_uid = search.uid;
	if (!is_source(path))
		return 0;
	ret = pm_source_read(&source, path, &search, NULL);
	if (ret == -EPERM)
		return add_withheld(page, path);
	if (ret < 0) {
		if (ret == -ENOMEM)
			return ret;
		return 0;
	}
	if (!is_source(source.real_path))
		return 0;
	if (!choose_lines(out, lines, (uint32_t)source.starts.len))
		return 0;
	ret = source_keep_lines(out, &source);
	if (ret == 0)
		out->path = path;
	out->newer = source.newer;
	return ret;
}

static int source_add_weights(struct pm_page_source *source, uint32_t event,
			      const struct pm_annotate_lines *lines)
{
	for (size_t i = 0; i < lines->lines.len; i++) {
		const struct pm_annotate_line *line = &lines->lines.data[i];
		struct pm_page_line weight = {
			.event = event,
			.line = line->line,
			.self = line->self,
			.total = line->total,
		};

		if (line->file == PM_PROFILE_NONE || line->line < source->first ||
		    line->line > source->last ||
		    strcmp(lines->files.data[line->file].path, source->path) != 0)
			continue;
		if (pm_vec_push(&source->weights, weight) < 0)
			return -ENOMEM;
	}
	return 0;
}

/* Weighs all chosen functions by one event of the page at once. */
static int weigh_event(struct pm_page *page, uint32_t event)
{
	PM_CLEANUP(pm_section_release) struct pm_section section = { 0 };
	size_t count = page->sources.len;
	PM_AUTO_FREE struct pm_annotate_lines *lines = calloc(count, sizeof(*lines));
	PM_AUTO_FREE uint32_t *functions = calloc(count, sizeof(*functions));
	int ret;

	if (!lines || !functions)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++)
		functions[i] = page->sources.data[i].function;
	ret = pm_section_init(&section, page->report, page->events.data[event].event,
			      NULL);
	if (ret == 0)
		ret = pm_annotate_lines_init(lines, section.view, functions, count);
	if (ret < 0)
		return ret;
	for (size_t i = 0; i < count; i++) {
		struct pm_page_source *source = &page->sources.data[i];

		if (!source->asked && lines[i].files.len > 0) {
			source->asked = true;
			if (ret == 0)
				ret = read_source(page, source, &lines[i]);
		}
		if (ret == 0 && source->path)
			ret = source_add_weights(source, event, &lines[i]);
		pm_annotate_lines_release(&lines[i]);
	}
	return ret;
}

int pm_page_read_sources(struct pm_page *page)
{
	int ret = 0;

	for (uint32_t i = 0; ret == 0 && page->sources.len > 0 && i < page->events.len;
	     i++)
		if (page->events.data[i].total.samples > 0)
			ret = weigh_event(page, i);
	if (ret == 0 && page->withheld.len > 0)
		note_withheld(page);
	return ret;
}
