/* SPDX-License-Identifier: MIT */
/* Lines, and a table of texts; each column is as wide as its widest cell. */
#include "stat-show.h"

#include <string.h>

#include "pm/base-text.h"

enum {
	GAP = 2,
};

void pm_grid_release(struct pm_grid *grid)
{
	for (size_t i = 0; i < grid->cells.len; i++)
		free(grid->cells.data[i]);
	pm_vec_release(&grid->cells);
	pm_vec_release(&grid->left);
}

void pm_grid_column(struct pm_grid *grid, bool left)
{
	grid->failed |= pm_vec_push(&grid->left, left) < 0;
}

void pm_grid_puts(struct pm_grid *grid, const char *text)
{
	char *copy = strdup(text);

	if (!copy || pm_vec_push(&grid->cells, copy) < 0) {
		free(copy);
		grid->failed = true;
	}
}

void pm_grid_put(struct pm_grid *grid, struct pm_str *str)
{
	grid->failed |= str->failed;
	pm_grid_puts(grid, pm_str_complete_or(str, ""));
	pm_str_clear(str);
}

/* ---- printing -------------------------------------------------------------------------- */

struct part { /* columns [first, end), after the fixed ones */
	size_t first, end;
};

static void grid_measure_columns(const struct pm_grid *grid, size_t *widths)
{
	for (size_t i = 0; i < grid->cells.len; i++) {
		size_t columns = pm_columns(grid->cells.data[i]);
		size_t *width = &widths[i % grid->left.len];

		if (columns > *width)
			*width = columns;
	}
}

/* Selects as many columns from part->first on as fit, but at least one. */
static void grid_fill_part(const struct pm_grid *grid, const size_t *widths,
			   size_t screen, struct part *part)
{
	size_t sum = grid->indent;

	for (size_t c = 0; c < grid->fixed; c++)
		sum += widths[c] + GAP;
	part->end = part->first;
	while (part->end < grid->left.len) {
		sum += widths[part->end];
		if (screen > 0 && part->end > part->first && sum > screen)
			return;
		sum += GAP;
		part->end++;
	}
}

static void grid_print_row(const struct pm_grid *grid, const struct pm_text *text,
			   const size_t *widths, const struct part *part, size_t row)
{
	enum pm_color color = grid->titled && row == 0 ? PM_COLOR_HEAD : PM_COLOR_PLAIN;
	size_t owed = grid->indent;

	for (size_t c = 0; c < part->end; c++) {
		const char *cell = grid->cells.data[row * grid->left.len + c];
		size_t blanks = widths[c] - pm_columns(cell);

		if (c >= grid->fixed && c < part->first)
			continue;
		if (!grid->left.data[c])
			owed += blanks;
		if (cell[0] != '\0') {
			fprintf(text->to, "%*s", (int)owed, "");
			pm_text_put(text, color, cell);
			owed = 0;
		}
		owed += GAP + (grid->left.data[c] ? blanks : 0);
	}
	fputc('\n', text->to);
}

int pm_grid_print(const struct pm_grid *grid, const struct pm_text *text)
{
	struct part part = { .first = grid->fixed };
	PM_AUTO_FREE size_t *widths = NULL;

	if (grid->failed)
		return -ENOMEM;
	if (grid->left.len == 0)
		return 0;
	widths = calloc(grid->left.len, sizeof(*widths));
	if (!widths)
		return -ENOMEM;
	grid_measure_columns(grid, widths);
	for (; part.first < grid->left.len; part.first = part.end) {
		if (part.first > grid->fixed)
			fputc('\n', text->to);
		grid_fill_part(grid, widths, text->report->width, &part);
		for (size_t row = 0; row < grid->cells.len / grid->left.len; row++)
			grid_print_row(grid, text, widths, &part, row);
	}
	return 0;
}

/* ---- columns of events ----------------------------------------------------------------- */

void pm_stat_columns_release(struct pm_stat_columns *columns)
{
	pm_vec_release(&columns->events);
}

static bool has_column(const struct pm_stat_columns *columns, uint32_t event)
{
	for (size_t i = 0; i < columns->events.len; i++)
		if (columns->events.data[i] == event)
			return true;
	return false;
}

/* Inserts an event in the order of events, whichever row has a value first. */
static int columns_insert_event(struct pm_stat_columns *columns, uint32_t event)
{
	size_t at = columns->events.len;
	uint32_t *events;

	if (pm_vec_push(&columns->events, event) < 0)
		return -ENOMEM;
	events = columns->events.data;
	for (; at > 0 && events[at - 1] > event; at--) {
		events[at] = events[at - 1];
		events[at - 1] = event;
	}
	return 0;
}

int pm_stat_columns_add(struct pm_stat_columns *columns,
			const struct pm_stat_value *values)
{
	int ret = 0;

	for (uint32_t i = 0; ret == 0 && i < columns->stat->events.len; i++)
		if (pm_stat_has_value(&values[i]) && !has_column(columns, i))
			ret = columns_insert_event(columns, i);
	return ret;
}

void pm_stat_grid_columns(struct pm_grid *grid, const struct pm_stat_columns *columns)
{
	for (size_t i = 0; i < columns->events.len; i++)
		pm_grid_column(grid, false);
}

void pm_stat_grid_events(struct pm_grid *grid, const struct pm_stat_columns *columns)
{
	struct pm_str cell = { 0 };

	for (size_t i = 0; i < columns->events.len; i++) {
		uint32_t event = columns->events.data[i];
		const char *name =
			pm_stat_event_shown(&columns->stat->events.data[event]);

		pm_str_printable(&cell, name, strlen(name));
		pm_grid_put(grid, &cell);
	}
	pm_str_release(&cell);
}

/* In a large table an unknown value is a dash; the reason is stated once elsewhere. */
void pm_stat_grid_values(struct pm_grid *grid, const struct pm_stat_columns *columns,
			 const struct pm_stat_value *values, bool ascii)
{
	struct pm_str cell = { 0 };

	for (size_t i = 0; i < columns->events.len; i++) {
		uint32_t event = columns->events.data[i];

		if (pm_stat_has_value(&values[event]))
			pm_put_stat_count(&cell, &columns->stat->events.data[event],
					  &values[event], ascii);
		else
			pm_str_putc(&cell, '-');
		pm_grid_put(grid, &cell);
	}
	pm_str_release(&cell);
}

/* ---- lines ----------------------------------------------------------------------------- */

void pm_stat_text_init(struct pm_stat_text *to, const struct pm_stat_report *report,
		       FILE *stream)
{
	*to = (struct pm_stat_text){ .report = report, .stat = report->stat };
	to->shim = (struct pm_report){ .quiet = report->quiet,
				       .color = report->color,
				       .ascii = report->ascii,
				       .width = report->width };
	to->text = (struct pm_text){ .report = &to->shim, .to = stream };
}

void pm_stat_text_line(const struct pm_stat_text *to, enum pm_color color,
		       unsigned int indent, struct pm_str *line)
{
	char blanks[16];

	snprintf(blanks, sizeof(blanks), "%*s", (int)indent, "");
	if (!line->failed && line->len > 0)
		pm_text_wrap(&to->text, color, blanks, indent + 2, 1, line->data);
	pm_str_clear(line);
}

void pm_put_stat_row_name(struct pm_str *str, int32_t tid, const char *comm, int32_t cpu)
{
	if (comm || tid > 0) {
		pm_str_printable(str, pm_text_or(comm, "?"),
				 strlen(pm_text_or(comm, "?")));
		if (tid > 0)
			pm_str_printf(str, " %d", tid);
	}
	if (cpu >= 0) {
		if (comm || tid > 0)
			pm_str_puts(str, " ");
		pm_str_printf(str, "CPU %d", cpu);
	}
}
