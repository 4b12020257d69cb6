/* SPDX-License-Identifier: MIT */
/* Chooses the list that a report shows. */
#include "sheet.h"

bool pm_report_is_sheet(const struct pm_report *report)
{
	return report->show == PM_SHOW_THREADS || report->show == PM_SHOW_FIELDS ||
	       report->show == PM_SHOW_PERCENTILES || report->show == PM_SHOW_BRANCHES;
}

int pm_sheet_make(struct pm_sheet *sheet, struct pm_section *section,
		  struct pm_error *err)
{
	switch (section->report->show) {
	case PM_SHOW_THREADS:
		return pm_sheet_threads(sheet, section, err);
	case PM_SHOW_FIELDS:
		return pm_sheet_fields(sheet, section, err);
	case PM_SHOW_PERCENTILES:
		return pm_sheet_percentiles(sheet, section, err);
	case PM_SHOW_BRANCHES:
		return pm_sheet_branches(sheet, section, err);
	case PM_SHOW_TABLE:
	case PM_SHOW_TREE:
	case PM_SHOW_BOTTOM_UP:
	case PM_SHOW_CALLERS:
	case PM_SHOW_CALLEES:
	case PM_SHOW_ANNOTATE:
		break;
	}
	return pm_error_set(err, -EINVAL, "this report is no list");
}
