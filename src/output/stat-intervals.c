/* SPDX-License-Identifier: MIT */
/* Prints intervals as they end, while the program runs. */
#include "stat-show.h"

#include <string.h>

#include "pm/base-text.h"

/* Fixed widths, because later values are unknown. */
enum {
	TIME_COLUMNS = 12,
	VALUE_COLUMNS = 16,
	ROW_COLUMNS = 22,
};

static void put_blanks(struct pm_str *str, size_t used, size_t columns)
{
	pm_str_printf(str, "%*s", (int)PM_SUB_OR_0(columns, used), "");
}

static void put_left(struct pm_str *str, size_t from, size_t columns)
{
	if (!str->failed)
		put_blanks(str, pm_columns(str->data + from), columns);
}

static void put_right(struct pm_str *str, struct pm_str *cell, size_t columns)
{
	const char *text = pm_str_complete_or(cell, "");

	put_blanks(str, pm_columns(text), columns);
	pm_str_puts(str, text);
	str->failed |= cell->failed;
	pm_str_clear(cell);
}

static void put_interval_lines(struct pm_str *out, const struct pm_stat_report *report,
			       uint64_t at_ns, const struct pm_stat_row *row,
			       const struct pm_stat_value *values)
{
	struct pm_str cell = { 0 };

	for (size_t i = 0; i < report->stat->events.len; i++) {
		const struct pm_stat_event *event = &report->stat->events.data[i];
		const char *name = pm_stat_event_shown(event);
		double share = pm_stat_share(&values[i]);

		/* Why an event is unavailable is stated once, at the end; wait4(2)
		 * reports nothing before that. */
		if (!pm_stat_has_value(&values[i]) &&
		    (event->state > PM_STAT_NOT_COUNTED || pm_stat_is_tools(event)))
			continue;
		pm_str_printf(out, "%*.6f  ", TIME_COLUMNS, (double)at_ns / 1e9);
		if (row) {
			size_t from = out->len;

			pm_put_stat_row_name(&cell, row->tid, row->comm, row->cpu);
			pm_put_cut(out, pm_str_text(&cell), ROW_COLUMNS, false,
				   report->ascii);
			pm_str_clear(&cell);
			put_left(out, from, ROW_COLUMNS);
		}
		pm_put_stat_count(&cell, event, &values[i], report->ascii);
		put_right(out, &cell, VALUE_COLUMNS);
		pm_str_puts(out, "  ");
		pm_str_printable(out, name, strlen(name));
		if (!isnan(share))
			pm_str_printf(out, "  (%.1f %% of the time)", share);
		pm_str_putc(out, '\n');
	}
	pm_str_release(&cell);
}

int pm_output_stat_interval_text(const struct pm_stat_report *report,
				 const struct pm_stat_run *run, bool first, FILE *stream,
				 struct pm_error *err)
{
	PM_CLEANUP(pm_str_release) struct pm_str out = { 0 };
	const struct pm_stat_interval *interval;
	struct pm_stat_text to;

	if (run->intervals.len == 0)
		return 0;
	interval = &run->intervals.data[run->intervals.len - 1];
	pm_stat_text_init(&to, report, stream);
	if (first && !report->quiet) {
		bool rows = interval->rows.len > 0;

		pm_str_printf(&out, "%*s  ", TIME_COLUMNS, "seconds");
		if (rows)
			pm_str_printf(&out, "%-*s", ROW_COLUMNS,
				      interval->rows.data[0].cpu >= 0 ? "CPU" : "thread");
		pm_str_printf(&out, "%*s  event", VALUE_COLUMNS, "count");
		if (!out.failed)
			pm_text_put(&to.text, PM_COLOR_HEAD, out.data);
		pm_str_clear(&out);
		pm_str_putc(&out, '\n');
	}
	for (size_t i = 0; i < interval->rows.len; i++)
		put_interval_lines(&out, report, interval->at_ns, &interval->rows.data[i],
				   interval->rows.data[i].values);
	if (interval->rows.len == 0)
		put_interval_lines(&out, report, interval->at_ns, NULL, interval->values);
	if (out.failed)
		return pm_error_set(err, -ENOMEM, "out of memory");
	if (out.len > 0)
		fwrite(out.data, 1, out.len, stream);
	return 0;
}
