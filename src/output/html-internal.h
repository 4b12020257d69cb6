/* SPDX-License-Identifier: MIT */
/* Definitions shared by the files of the HTML page. */
#pragma once

#include "notes.h"
#include "pm/flame.h"

struct pm_page_event {
	uint32_t event; /* index in the profile */
	uint32_t base; /* index in the base; PM_PROFILE_NONE: not in the base */
	struct pm_weight total, base_total; /* of the samples that passed the filter */
};

/* All samples of one event and thread with the same path and stop reason. */
struct pm_page_cell {
	uint32_t event; /* of the page */
	uint32_t thread, path, stop; /* merged ids */
	struct pm_weight weight;
};

struct pm_page_cells {
	PM_VEC(struct pm_page_cell) rows;
	struct pm_index index;
	uint32_t *of; /* by cell of the profile; PM_PROFILE_NONE: not on the page */
};

/* New, dense ids for the rows that are used; the others are left out. */
struct pm_page_ids {
	uint32_t *ids; /* by old id; PM_PROFILE_NONE: left out */
	uint32_t count;
};

struct pm_page_line {
	uint32_t event; /* of the page */
	uint32_t line;
	struct pm_weight self, total;
};

/* Source text of a function, lines first to last. */
struct pm_page_source {
	uint32_t function; /* of the profile */
	bool asked;
	const char *path; /* as recorded; NULL: not on the page */
	bool newer;
	uint32_t first, last;
	char **lines; /* one string per line */
	PM_VEC(struct pm_page_line) weights;
};

/* The contents of the page before it is written. */
struct pm_page {
	const struct pm_report *report;
	struct pm_report base_report;
	struct pm_merged merged;
	PM_VEC(struct pm_page_event) events;
	struct pm_page_cells cells[2];
	struct pm_notes notes[2];
	struct pm_page_ids paths, functions, threads;
	PM_VEC(struct pm_page_source) sources;
	uint32_t source_uid; /* the user for whom the sources were read */
	PM_VEC(const char *)
	withheld; /* paths of sources: see struct pm_annotate_search */
	struct pm_str top; /* HTML: the heaviest functions of each event */
};

/* Same return values as the writers of reports. */
int pm_page_init(struct pm_page *out, const struct pm_report *report,
		 struct pm_error *err);
void pm_page_release(struct pm_page *page);
/* Returns the event of report->base that corresponds to @event; PM_PROFILE_NONE: none. */
uint32_t pm_base_event(const struct pm_report *report, uint32_t event);

/* Chooses the hottest functions of an event, and reads the sources of all functions that
 * were chosen. Returns 0 or -ENOMEM. Sources that cannot be read are left out, and so are
 * those that may not be shown, with a note. */
int pm_page_choose_sources(struct pm_page *page, struct pm_section *section);
int pm_page_read_sources(struct pm_page *page);
void pm_page_sources_release(struct pm_page *page);

/* Writes the page's data as JSON that may be placed in a script element. */
void pm_page_put_data(struct pm_page *page, struct pm_str *out, FILE *to);

/* Appends a readable title: the command or the target. */
void pm_put_title(struct pm_str *str, const struct pm_profile *profile);
/* Appends the text made printable, without characters that affect the display of adjacent
 * text. */
void pm_put_plain(struct pm_str *str, const char *text);
/* The same, with escapes for HTML and XML. */
void pm_put_markup(struct pm_str *str, const char *text);
/* The same for the text in @str, which is cleared. */
void pm_put_markup_str(struct pm_str *out, struct pm_str *str);
