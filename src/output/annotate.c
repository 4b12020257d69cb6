/* SPDX-License-Identifier: MIT */
/* The contents of an annotated function, for all formats. */
#include "annotate-internal.h"

#include <string.h>

enum {
	SOURCES_MAX = 16, /* files read for one function */
};

void pm_put_error(struct pm_str *str, const struct pm_error *err, bool fix)
{
	if (err->source[0] != '\0') {
		pm_str_printable(str, err->source, strlen(err->source));
		pm_str_puts(str, ": ");
	}
	pm_str_printable(str, err->text, strlen(err->text));
	if (fix && err->fix[0] != '\0') {
		pm_str_puts(str, "; try ");
		pm_str_printable(str, err->fix, strlen(err->fix));
	}
}

/* ---- sources ----------------------------------------------------------------------------- */

static int read_sources(struct pm_annotation *a)
{
	size_t len = a->lines.files.len;

	a->sources = calloc(len + 1, sizeof(*a->sources));
	if (!a->sources)
		return -ENOMEM;
	for (size_t i = 0; i < len; i++) {
		struct pm_annotation_source *source = &a->sources[i];
		int ret;

		source->why.offset = -1;
		if (i >= SOURCES_MAX) {
			pm_error_set(&source->why, -E2BIG,
				     "not read: the function has code of many files");
			continue;
		}
		ret = pm_source_read(&source->source, a->lines.files.data[i].path,
				     &a->search, &source->why);
		if (ret == -ENOMEM)
			return ret;
		source->readable = ret == 0;
	}
	return 0;
}

/* ---- instructions ------------------------------------------------------------------------ */

static int compare_annotation_places(const void *a, const void *b)
{
	const struct pm_annotation_place *x = a, *y = b;

	if (x->file != y->file)
		return PM_COMPARE(x->file, y->file);
	if (x->line != y->line)
		return PM_COMPARE(x->line, y->line);
	return PM_COMPARE(x->insn, y->insn);
}

struct named_file {
	const char *path;
	uint32_t file;
};

static int compare_files(const void *a, const void *b)
{
	const struct named_file *x = a, *y = b;

	return strcmp(x->path, y->path);
}

static uint32_t find_named_file(const struct named_file *files, size_t len,
				const char *path)
{
	const struct named_file key = { .path = path };
	const struct named_file *found = NULL;

	if (path)
		found = bsearch(&key, files, len, sizeof(key), compare_files);
	if (found)
		return found->file;
	return PM_PROFILE_NONE;
}

static int sort_places(struct pm_annotation *a)
{
	/* Path and file of the previous instruction: the next one mostly has the same. */
	const char *path = NULL;
	uint32_t file = PM_PROFILE_NONE;
	size_t len = a->lines.files.len;
	PM_AUTO_FREE struct named_file *files = calloc(len + 1, sizeof(*files));

	if (!files)
		return -ENOMEM;
	for (uint32_t i = 0; i < len; i++)
		files[i] = (struct named_file){ a->lines.files.data[i].path, i };
	qsort(files, len, sizeof(*files), compare_files);
	for (uint32_t i = 0; i < a->code.insns.len; i++) {
		const struct pm_annotate_insn *insn = &a->code.insns.data[i];

		if (insn->foreign)
			continue;
		if (insn->file != path)
			file = find_named_file(files, len, insn->file);
		path = insn->file;
		if (pm_vec_push(&a->places,
				(struct pm_annotation_place){
					.file = file,
					.line = file == PM_PROFILE_NONE ? 0 : insn->line,
					.insn = i }) < 0)
			return -ENOMEM;
	}
	if (a->places.len > 1)
		qsort(a->places.data, a->places.len, sizeof(*a->places.data),
		      compare_annotation_places);
	return 0;
}

size_t pm_annotation_places_from(const struct pm_annotation *annotation, uint32_t file,
				 uint32_t line)
{
	const struct pm_annotation_place key = { .file = file, .line = line };
	size_t low = 0, high = annotation->places.len;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (compare_annotation_places(&annotation->places.data[mid], &key) < 0)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

static int annotation_read_code(struct pm_annotation *a)
{
	int ret;

	if (a->section->report->annotate == PM_ANNOTATE_SOURCE)
		return 0;
	ret = pm_annotate_code_init(&a->code, a->section->view, a->function, &a->search,
				    &a->no_code);
	a->has_code = ret == 0;
	if (ret == -ENOMEM)
		return ret;
	if (a->has_code)
		return sort_places(a);
	return 0;
}

int pm_annotation_init(struct pm_annotation *out, const struct pm_section *section)
{
	PM_CLEANUP(pm_annotation_release)
	struct pm_annotation a = {
		.section = section,
		.search = section->report->search,
		.function = section->choices.rows.data[0].function,
		.no_code = { .offset = -1 },
	};
	int ret;

	pm_annotate_search_of(&a.search, section->report->profile);
	ret = pm_annotate_lines_init(&a.lines, section->view, &a.function, 1);
	if (ret < 0)
		return ret;
	a.own = a.lines.self;
	pm_weight_add(&a.own, &a.lines.inlined);
	ret = read_sources(&a);
	if (ret == 0)
		ret = annotation_read_code(&a);
	if (ret < 0)
		return ret;
	*out = a;
	a = (struct pm_annotation){ 0 };
	return 0;
}

void pm_annotation_release(struct pm_annotation *annotation)
{
	for (size_t i = 0; annotation->sources && i < annotation->lines.files.len; i++)
		pm_source_release(&annotation->sources[i].source);
	free(annotation->sources);
	pm_annotate_lines_release(&annotation->lines);
	pm_annotate_code_release(&annotation->code);
	pm_vec_release(&annotation->places);
}

int pm_annotation_line_text(const struct pm_annotation *annotation,
			    const struct pm_annotate_line *line, char **out)
{
	const struct pm_annotation_source *source;
	const char *bytes;
	size_t len;

	*out = NULL;
	if (line->file == PM_PROFILE_NONE)
		return 0;
	source = &annotation->sources[line->file];
	if (!source->readable)
		return 0;
	bytes = pm_source_line(&source->source, line->line, &len, NULL);
	if (!bytes)
		return 0;
	*out = strndup(bytes, len);
	if (!*out)
		return -ENOMEM;
	return 0;
}
