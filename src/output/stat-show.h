/* SPDX-License-Identifier: MIT */
/* Building blocks of the text of counting runs. */
#pragma once

#include "output-internal.h"
#include "pm/stat-output.h"
#include "pm/stats.h"

#include <math.h>

/* ---- numbers --------------------------------------------------------------------------- */

/* The format of numbers of one kind and size; numbers of a table row share it. */
struct pm_stat_unit {
	double factor; /* relative to the event's own unit */
	int decimals;
	const char *suffix; /* "ms", "M", "J"; "": plain counts. Borrowed */
};

/* Returns the unit for numbers of @magnitude, in the event's own unit. @event NULL: plain
 * counts. */
struct pm_stat_unit pm_stat_unit_of(const struct pm_stat_event *event, double magnitude,
				    bool ascii);
/* Appends a number such as 1,234.5 without the suffix; NaN as a dash. */
void pm_put_stat_number(struct pm_str *str, const struct pm_stat_unit *unit,
			double number);
/* Appends one value: exact if it is a plain count, words if it has none. */
void pm_put_stat_count(struct pm_str *str, const struct pm_stat_event *event,
		       const struct pm_stat_value *value, bool ascii);
/* Returns words such as "not supported". */
const char *pm_stat_state_words(enum pm_stat_state state);
/* Returns the name by which the event was requested. */
const char *pm_stat_event_shown(const struct pm_stat_event *event);
bool pm_stat_is_time(const struct pm_stat_event *event);
/* Whether the tool itself measures the event, by wait4(2): it has no value for parts of a
 * program, nor before the program's end. Returns false for NULL (calls). */
bool pm_stat_is_tools(const struct pm_stat_event *event);
/* Whether a number is shown in a function's table: requested events, times, and events
 * that occurred there. @zero: the number is known, and 0 in each call. */
bool pm_stat_says_something(const struct pm_stat_event *event, bool known, bool zero,
			    enum pm_stat_state state);
/* Returns the share of the time for PM_STAT_MULTIPLEXED, in percent; otherwise NaN. */
double pm_stat_share(const struct pm_stat_value *value);
#define PM_STAT_ANY_EVENT UINT32_MAX
/* Appends the metrics beside an event: "1.93 IPC, …". */
void pm_put_stat_metrics(struct pm_str *str, const struct pm_stat *stat, uint32_t event,
			 uint32_t variant, int32_t scope);

/* ---- tables ---------------------------------------------------------------------------- */

struct pm_grid {
	PM_VEC(bool) left; /* by column: left-aligned; otherwise right */
	PM_VEC(char *) cells;
	bool titled; /* the first row has the titles */
	size_t fixed; /* leading columns that are repeated if the table is split */
	unsigned int indent;
	bool failed; /* out of memory */
};
void pm_grid_release(struct pm_grid *grid);
/* Adds a column. All columns must be added before the cells. */
void pm_grid_column(struct pm_grid *grid, bool left);
/* Adds the next cell, row by row, with the contents of @str, which is cleared. */
void pm_grid_put(struct pm_grid *grid, struct pm_str *str);
void pm_grid_puts(struct pm_grid *grid, const char *text);
/* Prints the grid. If it is too wide, the columns after the fixed ones continue below.
 * Returns 0 or -ENOMEM. */
int pm_grid_print(const struct pm_grid *grid, const struct pm_text *text);

/* ---- runs and scopes together ---------------------------------------------------------- */

/* The values of one event in all runs, or in one function in all runs. */
struct pm_stat_series {
	const struct pm_stat_event *event; /* NULL: calls */
	PM_VEC(double) of[2]; /* by variant, in the event's own unit */
	enum pm_stat_state state; /* of the first run without a value; otherwise OK */
};
void pm_stat_series_release(struct pm_stat_series *series);

/* One function or range in all runs; not used for the whole program. */
struct pm_stat_group {
	const struct pm_stat_scope *scope; /* the first scope */
	PM_VEC(uint32_t) members; /* scopes */
};
struct pm_stat_groups {
	PM_VEC(struct pm_stat_group) list;
};
void pm_stat_groups_release(struct pm_stat_groups *groups);
int pm_stat_groups_find(struct pm_stat_groups *groups, const struct pm_stat *stat);

/* Whether there are values of whole runs, or nothing else to show: engines that observe
 * functions have values of these only. */
bool pm_stat_program_is_shown(const struct pm_stat *stat);

/* Collects the values of an event. @group NULL: the whole program. @event at
 * stat->events.len: calls. */
int pm_stat_series_get(struct pm_stat_series *out, const struct pm_stat *stat,
		       const struct pm_stat_group *group, size_t event);

/* ---- parts of the text ----------------------------------------------------------------- */

/* State shared by all parts. */
struct pm_stat_text {
	const struct pm_stat_report *report;
	const struct pm_stat *stat;
	struct pm_report shim; /* only for calls of pm_text functions */
	struct pm_text text;
};
void pm_stat_text_init(struct pm_stat_text *to, const struct pm_stat_report *report,
		       FILE *stream);
/* Prints one line, wrapped at blanks and indented by @indent. */
void pm_stat_text_line(const struct pm_stat_text *to, enum pm_color color,
		       unsigned int indent, struct pm_str *line);
/* Appends the name of a row or thread: "worker 13", "CPU 1". */
void pm_put_stat_row_name(struct pm_str *str, int32_t tid, const char *comm, int32_t cpu);
/* The columns of a table that are events: those with a value in any row. */
struct pm_stat_columns {
	const struct pm_stat *stat;
	PM_VEC(uint32_t) events;
};
void pm_stat_columns_release(struct pm_stat_columns *columns);
/* Adds the columns for @values, those of one more row. Returns 0 or -ENOMEM. */
int pm_stat_columns_add(struct pm_stat_columns *columns,
			const struct pm_stat_value *values);
/* Add the columns of all events; their titles; their values. */
void pm_stat_grid_columns(struct pm_grid *grid, const struct pm_stat_columns *columns);
void pm_stat_grid_events(struct pm_grid *grid, const struct pm_stat_columns *columns);
void pm_stat_grid_values(struct pm_grid *grid, const struct pm_stat_columns *columns,
			 const struct pm_stat_value *values, bool ascii);

/* Prints the values of repeated runs, such as means, and doubts about them. */
int pm_stat_text_repeated(const struct pm_stat_text *to,
			  const struct pm_stat_group *group);
/* Prints the comparison of A and B: the differences of the document. */
int pm_stat_text_compared(const struct pm_stat_text *to);
int pm_stat_text_scope(const struct pm_stat_text *to, const struct pm_stat_scope *scope);
/* Prints the scope's name and location. */
void pm_stat_text_scope_name(const struct pm_stat_text *to,
			     const struct pm_stat_scope *scope);
/* Prints the lines below the numbers, about all of them. */
void pm_stat_text_worth(const struct pm_stat_text *to);
