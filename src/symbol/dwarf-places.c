/* SPDX-License-Identifier: MIT */
/*
 * Finds the addresses where the statements of a source line start, according to the line
 * tables (DWARF 5 §6.2.2, is_stmt). All tables are run once; only rows of the best line
 * found so far are kept.
 */
#include "pm/symbol.h"

#include <string.h>

#include "dwarf-parts.h"

enum {
	NEAR_MAX = 4,
	PATHS_MAX = 8, /* listed when a source name is ambiguous */
	LAST_TABLES = 64,
};

enum span_kind {
	SPAN_NONE,
	SPAN_WHOLE,
	SPAN_MOVED,
	SPAN_LENT,
};

struct span {
	uint64_t low, high;
	enum span_kind kind;
};

struct finder {
	struct pm_dwarf dwarf;
	const char *source, *name; /* as requested; the last component of the source */
	uint32_t wanted, best; /* lines; best is 0 until one is found */
	struct pm_texts texts;
	PM_VEC(const char *) paths; /* different paths that match @source */
	PM_VEC(const char *) near; /* paths whose last component is similar */
	PM_VEC(uint64_t) tables; /* offsets of the tables that have been run */
	PM_VEC(uint64_t) places;
	PM_VEC(bool) is_wanted; /* by number of the file in the current table */
	/* The last statement in the current sequence. If the next statement has the same
	 * line, both belong to the same visit of the line. */
	uint64_t last_file, last_line;
	/* The last line if code of a range of lines is searched for; 0: places of one
	 * line are. */
	uint32_t to;
	PM_VEC(struct span) spans;
	uint64_t span; /* start of the current span */
	enum span_kind kind; /* of the current span */
	bool has_tables, failed, too_many;
};

static void line_finder_release(struct finder *finder)
{
	pm_dwarf_close(&finder->dwarf);
	pm_texts_release(&finder->texts);
	pm_vec_release(&finder->paths);
	pm_vec_release(&finder->near);
	pm_vec_release(&finder->tables);
	pm_vec_release(&finder->places);
	pm_vec_release(&finder->spans);
	pm_vec_release(&finder->is_wanted);
}

static bool path_ends_in_source(const char *path, const char *source)
{
	size_t len = strlen(path), want = strlen(source);

	if (want > len || strcmp(path + len - want, source) != 0)
		return false;
	return want == len || source[0] == '/' || path[len - want - 1] == '/';
}

static void note_similar_source(struct finder *finder, const char *name)
{
	const char *text = pm_path_name(name);

	if (finder->near.len >= NEAR_MAX || finder->paths.len > 0 ||
	    pm_name_distance(text, finder->name) > 2)
		return;
	for (size_t i = 0; i < finder->near.len; i++)
		if (strcmp(finder->near.data[i], text) == 0)
			return;
	text = pm_texts_add(&finder->texts, text, strlen(text));
	if (text)
		finder->failed |= pm_vec_push(&finder->near, text) < 0;
}

/* Marks the numbers of those files in this table that match the source. */
static bool mark_files(struct finder *finder, struct pm_lines *lines)
{
	bool any = false;

	pm_vec_clear(&finder->is_wanted);
	if (pm_vec_reserve(&finder->is_wanted, lines->files.len + 1) < 0) {
		finder->failed = true;
		return false;
	}
	for (size_t i = 0; i < lines->files.len; i++) {
		const char *name = lines->files.data[i].name, *path = NULL;
		bool found = false;

		finder->is_wanted.data[finder->is_wanted.len++] = false;
		if (!name)
			continue;
		if (strcmp(pm_path_name(name), finder->name) == 0)
			path = pm_lines_path(lines, i, &finder->texts);
		else
			note_similar_source(finder, name);
		if (!path || !path_ends_in_source(path, finder->source))
			continue;
		any = finder->is_wanted.data[i] = true;
		/* Equal strings are stored once: equal paths are the same pointer. */
		for (size_t j = 0; j < finder->paths.len && !found; j++)
			found = finder->paths.data[j] == path;
		if (!found && finder->paths.len < PATHS_MAX)
			finder->failed |= pm_vec_push(&finder->paths, path) < 0;
	}
	return any;
}

static bool is_in_source(const struct finder *finder, const struct pm_line_row *row)
{
	return row->file < finder->is_wanted.len && finder->is_wanted.data[row->file] &&
	       row->line >= finder->wanted;
}

/* Returns the kind of the code that starts at @row. Code of the lines that was moved away
 * from its statement is a separate span; so is code of other lines that follows theirs
 * and is not a statement. */
static enum span_kind classify_next_row(const struct finder *finder,
					const struct pm_line_row *row)
{
	bool goes_on = finder->kind == SPAN_WHOLE || finder->kind == SPAN_LENT;

	if (row->ends)
		return SPAN_NONE;
	if (is_in_source(finder, row) && row->line > 0 && row->line <= finder->to) {
		if (row->is_stmt || goes_on)
			return SPAN_WHOLE;
		return SPAN_MOVED;
	}
	if (!row->is_stmt && goes_on)
		return SPAN_LENT;
	return SPAN_NONE;
}

static void find_span_in_row(struct finder *finder, const struct pm_line_row *row)
{
	struct span span = { finder->span, row->address, finder->kind };
	enum span_kind kind = classify_next_row(finder, row);

	/* A statement without any code left starts where code of another line continues:
	 * its line counts as visited. */
	if (kind == finder->kind || (kind == SPAN_LENT && finder->kind == SPAN_WHOLE &&
				     row->address == finder->span))
		return;
	if (finder->kind != SPAN_NONE && row->address > finder->span &&
	    pm_elf_image_code(finder->dwarf.image, span.low)) {
		if (finder->spans.len >= PM_SYMBOL_LINE_PLACES_MAX)
			finder->too_many = true;
		else
			finder->failed |= pm_vec_push(&finder->spans, span) < 0;
	}
	finder->kind = kind;
	finder->span = row->address;
}

static void find_line_in_row(void *user, const struct pm_line_row *row)
{
	struct finder *finder = user;
	bool same;

	if (finder->to > 0) {
		find_span_in_row(finder, row);
		return;
	}
	if (row->ends) {
		finder->last_line = 0;
		return;
	}
	if (!row->is_stmt)
		return;
	same = finder->last_line == row->line && finder->last_file == row->file;
	finder->last_file = row->file;
	finder->last_line = row->line;
	if (same || !is_in_source(finder, row) || row->line == 0 ||
	    (finder->best > 0 && row->line > finder->best) || row->line > UINT32_MAX ||
	    !pm_elf_image_code(finder->dwarf.image, row->address))
		return;
	if (row->line != finder->best) {
		finder->best = (uint32_t)row->line;
		pm_vec_clear(&finder->places);
	}
	if (finder->places.len >= PM_SYMBOL_LINE_PLACES_MAX)
		finder->too_many = true;
	else
		finder->failed |= pm_vec_push(&finder->places, row->address) < 0;
}

/* Whether the line table of this unit is to be run. Units share tables; each is run
 * once. */
static bool is_new_table(struct finder *finder, Dwarf_Die *die)
{
	Dwarf_Attribute attr;
	Dwarf_Word offset;

	if (!dwarf_attr(die, DW_AT_stmt_list, &attr) ||
	    dwarf_formudata(&attr, &offset) != 0)
		return false;
	/* Usually only adjacent units share a table. Running a table twice adds nothing,
	 * and the lines budget limits it. */
	for (size_t i = finder->tables.len;
	     i-- > 0 && finder->tables.len - i < LAST_TABLES;)
		if (finder->tables.data[i] == offset)
			return false;
	if (pm_vec_push(&finder->tables, offset) < 0) {
		finder->failed = true;
		return false;
	}
	return true;
}

static void find_lines_in_units(struct finder *finder)
{
	Dwarf_CU *cu = NULL;
	Dwarf_Half version;
	uint8_t type;
	Dwarf_Die die;

	while (!finder->failed && !finder->too_many &&
	       dwarf_get_units(finder->dwarf.dwarf, cu, &cu, &version, &type, &die,
			       NULL) == 0) {
		struct pm_unit unit;
		struct pm_lines lines;

		if (!is_new_table(finder, &die) ||
		    pm_unit_init(&unit, &finder->dwarf, &die, version) < 0 ||
		    pm_lines_open(&lines, &finder->dwarf, &unit) < 0)
			continue;
		finder->has_tables = true;
		finder->last_line = 0;
		finder->kind = SPAN_NONE;
		if (mark_files(finder, &lines))
			pm_lines_visit(&lines, find_line_in_row, finder);
		pm_lines_release(&lines);
	}
}

static int compare_place_addresses(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static int compare_spans_by_start(const void *a, const void *b)
{
	const struct span *x = a, *y = b;

	return PM_COMPARE(x->low, y->low);
}

static int emit_line_spans(struct finder *finder, pm_symbol_span_fn emit, void *user)
{
	int ret = 0;

	qsort(finder->spans.data, finder->spans.len, sizeof(*finder->spans.data),
	      compare_spans_by_start);
	for (size_t i = 0; i < finder->spans.len && ret == 0; i++) {
		struct pm_symbol_span span = {
			.low = finder->spans.data[i].low,
			.high = finder->spans.data[i].high,
			.moved = finder->spans.data[i].kind == SPAN_MOVED,
			.lent = finder->spans.data[i].kind == SPAN_LENT,
			.file = finder->paths.data[0]
		};

		ret = emit(user, &span);
	}
	return ret;
}

static int emit_line_places(struct finder *finder, pm_symbol_line_fn emit, void *user)
{
	qsort(finder->places.data, finder->places.len, sizeof(*finder->places.data),
	      compare_place_addresses);
	for (size_t i = 0; i < finder->places.len; i++) {
		struct pm_symbol_line place = { .address = finder->places.data[i],
						.line = finder->best,
						.file = finder->paths.data[0] };
		int ret;

		if (i > 0 && finder->places.data[i - 1] == place.address)
			continue;
		ret = emit(user, &place);
		if (ret < 0)
			return ret;
	}
	return 0;
}

static int set_unknown_source_error(struct finder *finder, struct pm_error *err)
{
	struct pm_str near = { 0 };
	int ret;

	for (size_t i = 0; i < finder->near.len; i++) {
		pm_str_puts(&near, i == 0 ? "; near names: " : ", ");
		pm_str_puts(&near, finder->near.data[i]);
	}
	if (near.failed)
		pm_str_clear(&near);
	ret = pm_error_set(err, -ENOENT, "no source \"%s\" is in the debug information%s",
			   finder->source, pm_str_text(&near));
	pm_str_release(&near);
	return ret;
}

/* Returns 0 if something was found. */
static int check_line_places(struct finder *finder, struct pm_error *err)
{
	if (finder->failed)
		return pm_error_set(err, -ENOMEM, "no memory left for its lines");
	if (!finder->has_tables)
		return pm_error_set(err, -ENODATA, "it has no line tables");
	if (finder->paths.len == 0)
		return set_unknown_source_error(finder, err);
	if (finder->paths.len > 1) {
		const char *at_least = finder->paths.len == PATHS_MAX ? "at least " : "";
		const char *more = finder->paths.len > 2 ? ", …" : "";

		return pm_error_set(err, -EINVAL, "\"%s\" means %s%zu sources: %s, %s%s",
				    finder->source, at_least, finder->paths.len,
				    finder->paths.data[0], finder->paths.data[1], more);
	}
	if (finder->too_many)
		return pm_error_set(err, -E2BIG, "more than %d places",
				    PM_SYMBOL_LINE_PLACES_MAX);
	if (finder->to > 0 && finder->spans.len == 0)
		return pm_error_set(err, -ENOENT, "%s has no code at lines %u to %u",
				    finder->paths.data[0], finder->wanted, finder->to);
	if (finder->to == 0 && finder->places.len == 0)
		return pm_error_set(err, -ENOENT, "%s has no code at line %u or below it",
				    finder->paths.data[0], finder->wanted);
	return 0;
}

struct images {
	struct pm_elf_image image, debug;
};

static void images_close(struct images *images)
{
	pm_elf_image_close(&images->debug);
	pm_elf_image_close(&images->image);
}

/* Runs all line tables of the file @fd. @images must stay open as long as @finder is
 * used. */
static int find_lines_in_file(struct finder *finder, struct images *images, int fd,
			      const struct pm_symbol_options *options,
			      struct pm_error *err)
{
	const struct pm_elf_image *with_dwarf = &images->image;
	int ret = pm_elf_image_open(&images->image, fd, false);

	if (ret < 0)
		return pm_error_set(err, ret, "%s", pm_error_elf_text(ret));
	if (!pm_dwarf_present(&images->image) &&
	    pm_debug_file_open(&images->debug, &images->image, fd, options) == 0)
		with_dwarf = &images->debug;
	ret = pm_dwarf_open(&finder->dwarf, &images->image, with_dwarf, options);
	if (ret == -ENOMEM)
		return pm_error_set(err, ret, "no memory left for its lines");
	if (ret < 0)
		return pm_error_set(err, -ENODATA, "it has no debug information");
	find_lines_in_units(finder);
	return check_line_places(finder, err);
}

int pm_symbols_find_line(int fd, const struct pm_symbol_options *options,
			 const char *source, uint32_t line, pm_symbol_line_fn emit,
			 void *user, struct pm_error *err)
{
	struct finder finder = { .source = source,
				 .name = pm_path_name(source),
				 .wanted = line };
	struct images images = { 0 };
	int ret = find_lines_in_file(&finder, &images, fd, options, err);

	if (ret == 0)
		ret = emit_line_places(&finder, emit, user);
	line_finder_release(&finder);
	images_close(&images);
	return ret;
}

int pm_symbols_find_lines(int fd, const struct pm_symbol_options *options,
			  const char *source, uint32_t from, uint32_t to,
			  pm_symbol_span_fn emit, void *user, struct pm_error *err)
{
	struct finder finder = {
		.source = source, .name = pm_path_name(source), .wanted = from, .to = to
	};
	struct images images = { 0 };
	int ret = find_lines_in_file(&finder, &images, fd, options, err);

	if (ret == 0)
		ret = emit_line_spans(&finder, emit, user);
	line_finder_release(&finder);
	images_close(&images);
	return ret;
}
