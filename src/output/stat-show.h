/* SPDX-License-Identifier: MIT */
/* What the text of counting runs is made of. */
#pragma once

#include "output-internal.h"
#include "pm/stat-output.h"
#include "pm/stats.h"

#include <math.h>

/* ---- numbers --------------------------------------------------------------------------- */

/* How numbers of one kind and size are written: those of a table row share it. */
struct pm_stat_unit {
	double factor; /* of the event's own unit */
	int decimals;
	const char
		*suffix; /* "ms", "M", "J"; "" for plain counts. Borrowed of the event */
};

/* @magnitude in the event's own unit. @event NULL: plain counts. */
struct pm_stat_unit pm_stat_unit_of(const struct pm_stat_event *event, double magnitude,
				    bool ascii);
/* 1,234.5 without the suffix; NaN as a dash. */
void pm_put_stat_number(struct pm_str *str, const struct pm_stat_unit *unit,
			double number);
/* One value: exact where it is a plain count, words where it is none. */
void pm_put_stat_count(struct pm_str *str, const struct pm_stat_event *event,
		       const struct pm_stat_value *value, bool ascii);
/* "not supported". */
const char *pm_stat_state_words(enum pm_stat_state state);
/* As people asked for it. */
const char *pm_stat_event_shown(const struct pm_stat_event *event);
bool pm_stat_is_time(const struct pm_stat_event *event);
/* What the tool itself knows, as wait4(2) tells it: nothing of parts of a program, or before its
 * end, where it has no value. NULL, which is calls, is none of them. */
bool pm_stat_is_tools(const struct pm_stat_event *event);
/* Whether a number belongs in the table of a function: requested events, times, and
 * events that happened there at all. @zero: it is known, and 0 each time. */
bool pm_stat_says_something(const struct pm_stat_event *event, bool known, bool zero,
			    enum pm_stat_state state);
/* Of PM_STAT_MULTIPLEXED: the share of the time, in percent; NaN of others. */
double pm_stat_share(const struct pm_stat_value *value);
#define PM_STAT_ANY_EVENT UINT32_MAX
/* Metrics beside an event: "1.93 IPC, …". */
void pm_put_stat_metrics(struct pm_str *str, const struct pm_stat *stat, uint32_t event,
			 uint32_t variant, int32_t scope);

/* ---- tables ---------------------------------------------------------------------------- */

struct pm_grid {
	PM_VEC(bool) left; /* for each column: aligned so; otherwise right */
	PM_VEC(char *) cells;
	bool titled; /* the first row is of titles */
	size_t fixed; /* first columns that come again where the rest is divided */
	unsigned int indent;
	bool failed; /* memory */
};
void pm_grid_release(struct pm_grid *grid);
/* Adds a column; before all cells. */
void pm_grid_column(struct pm_grid *grid, bool left);
/* The next cell, row by row; takes the text out of @str, which is empty afterwards. */
void pm_grid_put(struct pm_grid *grid, struct pm_str *str);
void pm_grid_puts(struct pm_grid *grid, const char *text);
/* Prints it; too wide, the columns behind the fixed ones follow below. 0 or -ENOMEM. */
int pm_grid_print(const struct pm_grid *grid, const struct pm_text *text);

/* ---- runs and scopes together ---------------------------------------------------------- */

/* What one event was in all runs, or in one function in all runs. */
struct pm_stat_series {
	const struct pm_stat_event *event; /* NULL: calls */
	PM_VEC(double) of[2]; /* by variant, in the event's own unit */
	enum pm_stat_state state; /* of the first that has no value; else OK */
};
void pm_stat_series_release(struct pm_stat_series *series);

/* One function or range in all runs; the whole program has none. */
struct pm_stat_group {
	const struct pm_stat_scope *scope; /* the first one */
	PM_VEC(uint32_t) members; /* scopes */
};
struct pm_stat_groups {
	PM_VEC(struct pm_stat_group) list;
};
void pm_stat_groups_release(struct pm_stat_groups *groups);
int pm_stat_groups_find(struct pm_stat_groups *groups, const struct pm_stat *stat);

/* Whether something is known of whole runs, or there is nothing else to show: engines that see
 * functions know of those only. */
bool pm_stat_program_is_shown(const struct pm_stat *stat);

/* @group NULL: the program. @event at stat->events.len: calls. */
int pm_stat_series_get(struct pm_stat_series *ret, const struct pm_stat *stat,
		       const struct pm_stat_group *group, size_t event);

/* ---- parts of the text ----------------------------------------------------------------- */

/* What all of them need. */
struct pm_stat_text {
	const struct pm_stat_report *report;
	const struct pm_stat *stat;
	struct pm_report shim; /* for pm_text */
	struct pm_text text;
};
void pm_stat_text_init(struct pm_stat_text *to, const struct pm_stat_report *report,
		       FILE *stream);
/* One line, broken at blanks, from @indent on. */
void pm_stat_text_line(const struct pm_stat_text *to, enum pm_color color,
		       unsigned int indent, struct pm_str *line);
/* Who a row or thread is: "worker 13", "CPU 1". */
void pm_put_stat_row_name(struct pm_str *str, int32_t tid, const char *comm, int32_t cpu);
/* Columns of a table that are events: those that have a value in any row. */
struct pm_stat_columns {
	const struct pm_stat *stat;
	PM_VEC(uint32_t) events;
};
void pm_stat_columns_release(struct pm_stat_columns *columns);
/* Looks at @values, those of one more row. -ENOMEM. */
int pm_stat_columns_add(struct pm_stat_columns *columns,
			const struct pm_stat_value *values);
/* Columns, and then titles, of them all. */
void pm_stat_grid_columns(struct pm_grid *grid, const struct pm_stat_columns *columns);
void pm_stat_grid_events(struct pm_grid *grid, const struct pm_stat_columns *columns);
void pm_stat_grid_values(struct pm_grid *grid, const struct pm_stat_columns *columns,
			 const struct pm_stat_value *values, bool ascii);

/* Repeated runs: means and the like, and what makes them doubtful. */
int pm_stat_text_repeated(const struct pm_stat_text *to,
			  const struct pm_stat_group *group);
/* A against B: the differences of the document. */
int pm_stat_text_compared(const struct pm_stat_text *to);
int pm_stat_text_scope(const struct pm_stat_text *to, const struct pm_stat_scope *scope);
/* Its name and where it is. */
void pm_stat_text_scope_name(const struct pm_stat_text *to,
			     const struct pm_stat_scope *scope);
/* Lines about all of the numbers, below them. */
void pm_stat_text_worth(const struct pm_stat_text *to);
