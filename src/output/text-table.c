/* SPDX-License-Identifier: MIT */
/* Tables for people: columns fit their contents, and the table fits the screen. */
#include "output-internal.h"

#include <string.h>

#include "pm/base-text.h"

enum {
	COLUMNS_MAX = 16,
	GAP = 2,
	MODULE_MAX = 22,
	SOURCE_MAX = 26,
	ROWS_MAX = 30, /* shown by default */
	ROWS_MIN = 10, /* the same if all rows are below the limit */
	CALLERS_MAX = 8, /* functions that only call expensive ones */
	WAITERS_MAX = 20, /* the same if all weight is in one kernel function */
	ROWS_READ = 10, /* rows that people read first */
	ROWS_TELL = 4, /* fewer rows say nothing about the recording */
};

enum cell {
	CELL_SELF,
	CELL_TOTAL,
	CELL_TIME,
	CELL_TAKEN, /* share of the samples, if weights measure something else */
	CELL_SAMPLES,
	CELL_FUNCTION,
	CELL_MODULE,
	CELL_PATH,
	CELL_SOURCE,
	CELL_ADDRESS,
	CELL_PID,
	CELL_TID,
	CELL_COMM,
	CELL_NUMBER,
};

enum align {
	LEFT,
	RIGHT,
};

struct column {
	enum cell cell;
	const char *title;
	enum align align;
	size_t max, width;
	enum pm_key key; /* the column's key, and its index among the report's keys */
	uint32_t at;
};

struct layout {
	const struct pm_text *text;
	const struct pm_section *section;
	struct pm_keys keys;
	struct column columns[COLUMNS_MAX];
	size_t len;
};

static void add_layout_column(struct layout *layout, enum cell cell, const char *title,
			      enum align align, size_t max, uint32_t at)
{
	layout->columns[layout->len++] = (struct column){
		.cell = cell,
		.title = title,
		.align = align,
		.max = max,
		.at = at,
		.key = layout->keys.key[at],
	};
}

static bool has_cell(const struct layout *layout, enum cell cell)
{
	for (size_t i = 0; i < layout->len; i++)
		if (layout->columns[i].cell == cell)
			return true;
	return false;
}

/* Returns the title of names: those of processes and of threads may be in adjacent
 * columns. */
static const char *name_title(const struct layout *layout, enum pm_key key)
{
	bool processes = false, threads = false, names = false;

	for (uint32_t i = 0; i < layout->keys.len; i++) {
		processes |= layout->keys.key[i] == PM_KEY_PROCESS;
		threads |= layout->keys.key[i] == PM_KEY_THREAD;
		names |= layout->keys.key[i] == PM_KEY_COMM;
	}
	if (processes + threads + names < 2)
		return "name";
	return pm_key_name(key);
}

/* Adds the columns of a key, without those that other keys have already added. */
static void add_key(struct layout *layout, uint32_t at)
{
	enum pm_key key = layout->keys.key[at];
	bool alone = layout->keys.len == 1;

	switch (key) {
	case PM_KEY_THREAD:
	case PM_KEY_PROCESS:
		if (!has_cell(layout, CELL_PID))
			add_layout_column(layout, CELL_PID, "pid", RIGHT, 10, at);
		if (key == PM_KEY_THREAD)
			add_layout_column(layout, CELL_TID, "tid", RIGHT, 10, at);
		if (!has_cell(layout, CELL_COMM) || key == PM_KEY_THREAD)
			add_layout_column(layout, CELL_COMM, name_title(layout, key),
					  LEFT, alone ? SIZE_MAX : 16, at);
		return;
	case PM_KEY_COMM:
		add_layout_column(layout, CELL_COMM, name_title(layout, key), LEFT,
				  alone ? SIZE_MAX : 16, at);
		return;
	case PM_KEY_CPU:
		add_layout_column(layout, CELL_NUMBER, "cpu", RIGHT, 10, at);
		return;
	case PM_KEY_PARALLELISM:
		add_layout_column(layout, CELL_NUMBER, "parallelism", RIGHT, 11, at);
		return;
	case PM_KEY_MODULE:
		if (!has_cell(layout, CELL_MODULE))
			add_layout_column(layout, CELL_MODULE, "module", LEFT, MODULE_MAX,
					  at);
		if (alone)
			add_layout_column(layout, CELL_PATH, "path", LEFT, SIZE_MAX, at);
		return;
	case PM_KEY_LINE:
		add_layout_column(layout, CELL_SOURCE, "source", LEFT, SOURCE_MAX, at);
		break;
	case PM_KEY_ADDRESS:
		add_layout_column(layout, CELL_ADDRESS, "address", LEFT, 18, at);
		break;
	case PM_KEY_FUNCTION:
		break;
	}
	if (!has_cell(layout, CELL_FUNCTION))
		add_layout_column(layout, CELL_FUNCTION, "function", LEFT, SIZE_MAX, at);
	if (!has_cell(layout, CELL_MODULE))
		add_layout_column(layout, CELL_MODULE, "module", LEFT, MODULE_MAX, at);
	if (alone && key != PM_KEY_LINE)
		add_layout_column(layout, CELL_SOURCE, "source", LEFT, SOURCE_MAX, at);
}

static bool is_of_code(enum pm_key key)
{
	return key == PM_KEY_FUNCTION || key == PM_KEY_MODULE || key == PM_KEY_LINE ||
	       key == PM_KEY_ADDRESS;
}

static void choose_columns(struct layout *layout)
{
	const struct pm_profile *profile = layout->text->report->profile;
	const struct pm_profile_event *event =
		&profile->events.data[layout->section->view->event];
	bool code = false;

	pm_report_keys(layout->text->report, &layout->keys);
	for (uint32_t i = 0; i < layout->keys.len; i++)
		code |= is_of_code(layout->keys.key[i]);
	add_layout_column(layout, CELL_SELF, code ? "self" : "share", RIGHT, 7, 0);
	if (code)
		add_layout_column(layout, CELL_TOTAL, "total", RIGHT, 7, 0);
	if (pm_event_is_time(event))
		add_layout_column(layout, CELL_TIME, code ? "in all" : "time", RIGHT, 20,
				  0);
	if (event->divided)
		add_layout_column(layout, CELL_TAKEN, "CPU", RIGHT, 7, 0);
	if (!code)
		add_layout_column(layout, CELL_SAMPLES, "samples", RIGHT, 20, 0);
	for (uint32_t i = 0; i < layout->keys.len; i++)
		add_key(layout, i);
}

/* ---- cells ------------------------------------------------------------------------------ */

static void put_function_cell(const struct layout *layout, const struct column *column,
			      const struct pm_row *row, size_t width, struct pm_str *str)
{
	const struct pm_report *report = layout->text->report;
	const struct pm_profile *profile = report->profile;
	uint32_t id = pm_row_function(profile, column->key, column->at, row);
	const char *mark = row->inlined ? " (inlined)" : "";
	size_t room = width > strlen(mark) ? width - strlen(mark) : width;

	/* The module of an unknown function has a column of its own. */
	pm_put_name(str, profile->functions.data[id].name, room, report->ascii);
	pm_str_puts(str, mark);
}

static void put_source_cell(const struct layout *layout, const struct column *column,
			    const struct pm_row *row, size_t width, struct pm_str *str)
{
	const struct pm_report *report = layout->text->report;
	const struct pm_profile *profile = report->profile;
	uint32_t place = pm_row_place(profile, column->key, column->at, row);
	struct pm_str source = { 0 };

	if (place == PM_PROFILE_NONE)
		return;
	pm_put_source(&source, &profile->places.data[place]);
	if (source.len == 0 && column->key == PM_KEY_LINE)
		pm_str_puts(&source, "?");
	if (source.len > 0 && !source.failed)
		pm_put_cut(str, source.data, width, true, report->ascii);
	pm_str_release(&source);
}

static void put_id_cell(struct pm_str *str, uint32_t id)
{
	if (id == PM_FILE_NONE)
		pm_str_putc(str, '?');
	else
		pm_str_u64(str, id);
}

static uint32_t row_process(const struct pm_profile *profile, const struct column *column,
			    const struct pm_row *row)
{
	uint32_t id = pm_row_id(row, column->at);

	if (column->key == PM_KEY_PROCESS)
		return id;
	return profile->threads.data[id].process;
}

static void put_comm_cell(const struct layout *layout, const struct column *column,
			  const struct pm_row *row, size_t width, struct pm_str *str)
{
	const struct pm_report *report = layout->text->report;
	const struct pm_profile *profile = report->profile;
	uint32_t id = pm_row_id(row, column->at);
	struct pm_str names = { 0 };

	if (column->key == PM_KEY_PROCESS) {
		pm_put_process_names(&names, layout->section->view, id, report->ascii);
		if (names.len > 0 && !names.failed)
			pm_put_cut(str, names.data, width, false, report->ascii);
		else if (profile->processes.data[id].pid == PM_FILE_NONE)
			pm_str_puts(str, "?");
		pm_str_release(&names);
	} else {
		const char *comm = pm_thread_comm(&profile->threads.data[id]);

		pm_put_cut(str, pm_text_or(comm, "?"), width, false, report->ascii);
	}
}

static void put_weight_cell(const struct layout *layout, enum cell cell,
			    const struct pm_row *row, struct pm_str *str)
{
	const struct pm_weight *whole = &layout->section->view->total;

	if (cell == CELL_TIME)
		pm_put_duration(str, row->total.period);
	else if (cell == CELL_TAKEN)
		pm_str_printf(str, "%.1f%%",
			      whole->samples ? 100.0 * (double)row->self.samples /
						       (double)whole->samples
					     : 0);
	else if (cell == CELL_SAMPLES)
		pm_put_count(str, row->self.samples);
	else
		pm_str_printf(
			str, "%.1f%%",
			pm_weight_percent(cell == CELL_SELF ? &row->self : &row->total,
					  whole));
}

/* Appends the text of a cell, at most @width columns (0: unlimited). */
static void put_table_cell(const struct layout *layout, const struct column *column,
			   const struct pm_row *row, size_t width, struct pm_str *str)
{
	const struct pm_report *report = layout->text->report;
	const struct pm_profile *profile = report->profile;
	uint32_t id = pm_row_id(row, column->at);

	switch (column->cell) {
	case CELL_SELF:
	case CELL_TOTAL:
	case CELL_TIME:
	case CELL_TAKEN:
	case CELL_SAMPLES:
		put_weight_cell(layout, column->cell, row, str);
		break;
	case CELL_FUNCTION:
		put_function_cell(layout, column, row, width, str);
		break;
	case CELL_MODULE:
		id = pm_row_module(profile, column->key, column->at, row);
		pm_put_cut(str, pm_profile_module_name(profile, id), width, false,
			   report->ascii);
		break;
	case CELL_PATH:
		if (id != PM_PROFILE_NONE)
			pm_put_cut(str, profile->modules.data[id].path, width, true,
				   report->ascii);
		break;
	case CELL_SOURCE:
		put_source_cell(layout, column, row, width, str);
		break;
	case CELL_ADDRESS:
		pm_str_hex(str, profile->frames.data[id].address);
		break;
	case CELL_PID:
		id = row_process(profile, column, row);
		put_id_cell(str, profile->processes.data[id].pid);
		break;
	case CELL_TID:
		put_id_cell(str, profile->threads.data[id].tid);
		break;
	case CELL_COMM:
		put_comm_cell(layout, column, row, width, str);
		break;
	case CELL_NUMBER:
		put_id_cell(str, column->key == PM_KEY_PARALLELISM && id == 0
					 ? PM_FILE_NONE
					 : id);
		break;
	}
}

/* ---- layout ---------------------------------------------------------------------------- */

/* Narrows the columns with one kind of cell down to @floor, until @excess is gone. */
static size_t narrow_cells(struct layout *layout, enum cell cell, size_t floor,
			   size_t excess)
{
	for (size_t c = 0; c < layout->len; c++) {
		struct column *column = &layout->columns[c];
		size_t more = PM_SUB_OR_0(column->width, floor);

		if (column->cell != cell)
			continue;
		if (more > excess)
			more = excess;
		column->width -= more;
		excess -= more;
	}
	return excess;
}

/* Narrows a table that is too wide for the screen. Names of functions are narrowed last
 * and least. */
static void layout_squeeze(struct layout *layout, size_t screen)
{
	static const struct {
		enum cell cell;
		size_t floor;
	} steps[] = {
		{ CELL_FUNCTION, 36 }, { CELL_MODULE, 16 }, { CELL_SOURCE, 18 },
		{ CELL_FUNCTION, 28 }, { CELL_MODULE, 12 }, { CELL_SOURCE, 14 },
		{ CELL_PATH, 20 },     { CELL_COMM, 16 },   { CELL_FUNCTION, 16 },
	};
	size_t width = 0, excess;

	for (size_t c = 0; c < layout->len; c++)
		width += layout->columns[c].width + (c > 0 ? GAP : 0);
	excess = PM_SUB_OR_0(width, screen);
	for (size_t i = 0; i < PM_ARRAY_LEN(steps) && excess > 0; i++)
		excess = narrow_cells(layout, steps[i].cell, steps[i].floor, excess);
}

/* If lines have no limit, one long name does not move the columns of all rows. */
static void layout_cap_columns(struct layout *layout)
{
	for (size_t c = 0; c < layout->len; c++)
		layout->columns[c].width =
			PM_MIN(layout->columns[c].width, PM_TEXT_UNLIMITED_COLUMNS);
}

static int layout_measure_columns(struct layout *layout, const struct pm_row *rows,
				  size_t len)
{
	struct pm_str cell = { 0 };
	size_t screen = layout->text->report->width;
	bool failed = false;

	for (size_t c = 0; c < layout->len; c++) {
		struct column *column = &layout->columns[c];

		column->width = strlen(column->title);
		if (column->max == 7) /* percentages: 100.0% with a blank before */
			column->width = 7;
		for (size_t i = 0; i < len; i++) {
			size_t columns;

			pm_str_clear(&cell);
			put_table_cell(layout, column, &rows[i], 0, &cell);
			columns = pm_str_columns(&cell);
			failed |= cell.failed;
			if (columns > column->width)
				column->width = columns;
		}
		if (column->width > column->max)
			column->width = column->max;
	}
	pm_str_release(&cell);
	if (screen > 0)
		layout_squeeze(layout, screen);
	else
		layout_cap_columns(layout);
	if (failed)
		return -ENOMEM;
	return 0;
}

static enum pm_color cell_color(const struct layout *layout, enum cell cell,
				const struct pm_row *row)
{
	const struct pm_weight *whole = &layout->section->view->total;

	if (cell == CELL_MODULE || cell == CELL_SOURCE || cell == CELL_PATH)
		return PM_COLOR_DIM;
	if (cell == CELL_SELF)
		return pm_percent_color(pm_weight_percent(&row->self, whole));
	if (cell == CELL_TOTAL)
		return pm_percent_color(pm_weight_percent(&row->total, whole));
	return PM_COLOR_PLAIN;
}

/* Prints a row. @row NULL: the titles. */
static int layout_print_row(const struct layout *layout, const struct pm_row *row)
{
	const struct pm_text *text = layout->text;
	struct pm_str cell = { 0 };
	bool is_bounded = text->report->width > 0;
	size_t owed = 0; /* blanks, printed only if something follows */
	bool failed = false;

	for (size_t c = 0; c < layout->len; c++) {
		const struct column *column = &layout->columns[c];
		size_t columns;

		pm_str_clear(&cell);
		if (row)
			put_table_cell(layout, column, row,
				       is_bounded ? column->width : 0, &cell);
		else
			pm_str_puts(&cell, column->title);
		failed |= cell.failed;
		if (cell.data && !cell.failed)
			columns = pm_columns(cell.data);
		else
			columns = 0;
		if (column->align == RIGHT && column->width > columns)
			owed += column->width - columns;
		if (columns > 0) {
			fprintf(text->to, "%*s", (int)owed, "");
			owed = 0;
			pm_text_put(text,
				    row ? cell_color(layout, column->cell, row)
					: PM_COLOR_HEAD,
				    cell.data);
		}
		if (column->align == LEFT && column->width > columns)
			owed += column->width - columns;
		owed += GAP;
	}
	fputc('\n', text->to);
	pm_str_release(&cell);
	if (failed)
		return -ENOMEM;
	return 0;
}

/* ---- rows ------------------------------------------------------------------------------ */

/*
 * Selects the rows to show: heavy ones and, in tables by self, also functions with hardly
 * any self weight that call expensive ones. Functions that never ran themselves are left
 * to the tree. Unless a limit was set, the rows fit on a screen. @below: all rows that
 * were left out are below the limit.
 */
static size_t choose_table_rows(const struct pm_section *section, struct pm_table *table,
				double limit, struct pm_weight *hidden, bool *below)
{
	const struct pm_weight *whole = &section->view->total;
	size_t most = section->report->limit < 0 ? ROWS_MAX : SIZE_MAX;
	size_t callers = section->report->limit < 0 ? CALLERS_MAX : SIZE_MAX;
	size_t least = 0, shown = 0;
	/* A thread blocks in the scheduler; the functions above it show what it waits
	 * for. */
	bool waits = pm_event_is_time(
		&section->view->profile->events.data[section->view->event]);

	if (waits && callers == CALLERS_MAX)
		callers = WAITERS_MAX;

	/* If the weight is spread evenly, show the first rows anyway. */
	if (section->report->limit < 0 && table->rows.len > 0 &&
	    pm_weight_percent(&table->rows.data[0].self, whole) < limit)
		least = ROWS_MIN;
	*below = true;
	for (size_t i = 0; i < table->rows.len; i++) {
		const struct pm_row *row = &table->rows.data[i];
		double self = pm_weight_percent(&row->self, whole);
		double total = pm_weight_percent(&row->total, whole);
		double share = section->report->by_total ? total : self;
		bool heavy = share >= limit || (i < least && row->self.samples > 0);
		bool calls = !heavy && !section->report->by_total &&
			     (row->self.samples > 0 || waits) &&
			     total >= limit * (waits ? 10 : 20);

		if ((heavy && most > 0) || (calls && callers > 0)) {
			most -= heavy;
			callers -= calls;
			table->rows.data[shown++] = *row;
		} else {
			pm_weight_add(hidden, &row->self);
			*below &= share < limit;
		}
	}
	return shown;
}

static void print_hidden_rows(const struct pm_text *text,
			      const struct pm_section *section, size_t hidden,
			      const struct pm_weight *weight, double limit, bool below)
{
	struct pm_str line = { 0 };

	if (hidden == 0)
		return;
	pm_str_puts(&line, "  ");
	pm_str_puts(&line, pm_text_ellipsis(text));
	pm_str_putc(&line, ' ');
	pm_put_count(&line, hidden);
	pm_str_puts(&line, " more");
	if (below)
		pm_str_printf(&line, " below %g%%", limit);
	pm_str_printf(&line, " (%.1f%% in all; --limit 0 shows all)",
		      pm_weight_percent(weight, &section->view->total));
	if (!line.failed) {
		pm_text_put(text, PM_COLOR_DIM, line.data);
		fputc('\n', text->to);
	}
	pm_str_release(&line);
}

/* Makes a copy whose rows may be removed; the section's own table stays complete. */
static int get_table(struct pm_table *out, struct pm_section *section)
{
	const struct pm_report *report = section->report;
	const struct pm_table *have;
	struct pm_keys keys;

	pm_report_keys(report, &keys);
	if (keys.len > 1 || report->key != PM_KEY_FUNCTION || report->by_total)
		return pm_table_init_keys(out, section->view, &keys, report->by_total);
	have = pm_section_functions(section);
	if (!have || pm_vec_reserve(&out->rows, have->rows.len + 1) < 0)
		return -ENOMEM;
	memcpy(out->rows.data, have->rows.data, have->rows.len * sizeof(struct pm_row));
	out->rows.len = have->rows.len;
	return 0;
}

/* Notes what makes the rows hard to read, for the hints. */
static void note_rows(struct pm_section *section, const struct layout *layout,
		      const struct pm_row *rows, size_t len)
{
	const struct pm_profile *profile = section->report->profile;
	bool is_bounded = section->report->width > 0;
	size_t inlined = 0, cut = 0;

	if (len > ROWS_READ)
		len = ROWS_READ;
	for (size_t c = 0; c < layout->len; c++) {
		const struct column *column = &layout->columns[c];

		for (size_t i = 0; column->cell == CELL_FUNCTION && i < len; i++) {
			uint32_t id = pm_row_function(profile, column->key, column->at,
						      &rows[i]);

			inlined += rows[i].inlined;
			cut += is_bounded &&
			       pm_columns(profile->functions.data[id].name) >
				       column->width;
		}
	}
	section->much_inlined = inlined > len / 2 && len >= ROWS_TELL;
	section->much_cut = cut > len / 2 && len >= ROWS_TELL;
}

int pm_text_table(struct pm_text *text, struct pm_section *section)
{
	const struct pm_report *report = text->report;
	double limit = report->limit < 0 ? 0.5 : report->limit;
	struct layout layout = { .text = text, .section = section };
	PM_CLEANUP(pm_table_release) struct pm_table table = { 0 };
	struct pm_weight hidden = { 0 };
	size_t shown;
	bool below;
	int ret = get_table(&table, section);

	if (ret < 0)
		return ret;
	shown = choose_table_rows(section, &table, limit, &hidden, &below);
	choose_columns(&layout);
	ret = layout_measure_columns(&layout, table.rows.data, shown);
	note_rows(section, &layout, table.rows.data, shown);
	if (ret == 0)
		ret = layout_print_row(&layout, NULL);
	for (size_t i = 0; ret == 0 && i < shown; i++)
		ret = layout_print_row(&layout, &table.rows.data[i]);
	if (ret == 0 && !report->quiet)
		print_hidden_rows(text, section, table.rows.len - shown, &hidden, limit,
				  below);
	return ret;
}
