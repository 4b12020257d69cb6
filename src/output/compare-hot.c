/* SPDX-License-Identifier: MIT */
/* Where the additional cost of regressions is: words and table cells that the documents
 * share. */
#include "compare-show.h"

#include <string.h>

void pm_put_hot_source(struct pm_str *str, const struct pm_hot *hot)
{
	if (hot->exact)
		pm_str_puts(str, "exact counts of callgrind, ");
	else
		pm_str_puts(str, "samples of pmrec, one run a side, ");
	pm_str_printable(str, hot->event, strlen(hot->event));
}

void pm_put_hot_number(struct pm_str *str, const struct pm_hot *hot, double number,
		       bool sign)
{
	struct pm_stat_event event = { .unit = (char *)(uintptr_t)hot->unit };
	struct pm_stat_unit unit = pm_stat_unit_of(&event, fabs(number), true);

	if (sign && number > 0)
		pm_str_putc(str, '+');
	pm_put_stat_number(str, &unit, number);
	if (unit.suffix[0])
		pm_str_printf(str, " %s", unit.suffix);
}

const struct pm_hot_rows *pm_hot_list(const struct pm_hot *hot, size_t index,
				      const char **title)
{
	static const char *const titles[] = {
		"Functions with the most added cost of their own",
		"Functions with the most added cost, with what they call",
		"Lines with the most added cost",
	};
	const struct pm_hot_rows *const lists[] = { &hot->self, &hot->total,
						    &hot->lines };

	if (index >= PM_ARRAY_LEN(lists))
		return NULL;
	*title = titles[index];
	return lists[index];
}

void pm_put_hot_place(struct pm_str *str, const struct pm_hot_row *row)
{
	if (!row->file)
		return;
	pm_str_printable(str, row->file, strlen(row->file));
	if (row->line > 0)
		pm_str_printf(str, ":%u", row->line);
}

void pm_put_hot_name(struct pm_str *str, const struct pm_hot_row *row, size_t width)
{
	if (row->function)
		pm_put_name(str, row->function, width, false);
	else
		pm_str_puts(str, "[unknown]");
}
