/* SPDX-License-Identifier: MIT */
/* Notes on how far the numbers can be trusted, for the text and for the page. */
#pragma once

#include "output-internal.h"

/* BAD: much is missing or wrong. */
enum pm_note_level {
	PM_NOTE_GOOD,
	PM_NOTE_WARN,
	PM_NOTE_BAD,
};

struct pm_note {
	enum pm_note_level level;
	struct pm_str words; /* printable */
};

struct pm_notes {
	const struct pm_report *report;
	PM_VEC(struct pm_note) notes;
	bool failed; /* out of memory: some notes are missing */
};

void pm_notes_add(struct pm_notes *notes, enum pm_note_level level, const char *format,
		  ...) PM_PRINTF(3, 4);
/* Add the notes about the file, or about one of its events. */
void pm_notes_add_file(struct pm_notes *notes);
void pm_notes_add_event(struct pm_notes *notes, struct pm_section *section);
void pm_notes_release(struct pm_notes *notes);
/* Appends one line: an event, its samples, and the shares that are lost, truncated or
 * unknown. */
void pm_put_event_line(struct pm_str *str, const struct pm_section *section);
