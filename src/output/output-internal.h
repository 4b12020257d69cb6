/* SPDX-License-Identifier: MIT */
/* What the formats share. */
#pragma once

#include "pm/output.h"

/* ---- the work on one report ------------------------------------------------------------- */

/* One event of a report: its view and, for callers and callees, the functions meant. */
struct pm_section {
	const struct pm_report *report;
	struct pm_view *view;
	struct pm_function_set only; /* empty unless callers, callees or annotate */
	struct pm_annotate_choices choices; /* annotate; none if the event has none */
	struct pm_table functions; /* by self; for text only, made when first asked for */
	bool functions_made;
	bool people; /* it is text for them */
	/* Of more than half of the first rows printed the name is cut; it is inlined. */
	bool much_cut, much_inlined;
};

int pm_section_init(struct pm_section *ret, const struct pm_report *report,
		    uint32_t event, struct pm_error *err);
void pm_section_release(struct pm_section *section);
/* The table of functions by self, several parts of the text need it. NULL without memory. */
const struct pm_table *pm_section_functions(struct pm_section *section);
/* Whether no sample of it has a stack. */
bool pm_section_is_stackless(const struct pm_section *section);
/* The tree that the report shows; not for tables. */
int pm_section_tree(const struct pm_section *section, bool fold, struct pm_tree **ret);
/* The events to report: from *first up to but without *end. */
void pm_report_events(const struct pm_report *report, uint32_t *first, uint32_t *end);

/*
 * Goes through a tree in depth, parents first, heaviest children first, and leaves out what
 * is below @limit percent of the view; needs no stack. 1 and the next node in *node (begin
 * with 0), 0 at the end, -ENOMEM.
 */
int pm_tree_next(struct pm_tree *tree, double limit, uint32_t *node);

/* ---- what rows are about ----------------------------------------------------------------- */

enum pm_row_field {
	PM_FIELD_FUNCTION,
	PM_FIELD_MODULE,
	PM_FIELD_FILE,
	PM_FIELD_LINE,
	PM_FIELD_INLINED,
	PM_FIELD_PATH,
	PM_FIELD_BUILD_ID,
	PM_FIELD_PID,
	PM_FIELD_TID,
	PM_FIELD_COMM,
	PM_FIELD_TITLE,
	PM_FIELD_ADDRESS,
	PM_FIELD_CPU,
	PM_FIELD_PARALLELISM,
	PM_FIELDS, /* how many */
};

struct pm_row_column {
	const char *name;
	enum pm_row_field field;
	enum pm_key key; /* that it belongs to, and which of the report's it is */
	uint32_t at;
};

struct pm_row_value {
	enum {
		PM_VALUE_TEXT,
		PM_VALUE_NUMBER,
		PM_VALUE_BOOL,
		PM_VALUE_ADDRESS,
	} kind;
	bool known; /* otherwise text is what people are shown */
	const char *text;
	uint64_t number;
	uint64_t start; /* of a function without a name; 0: unknown, too */
};

/* Says why a section could not be written. Returns @code. */
int pm_section_failed(int code, struct pm_error *err);

/* The keys of a report's tables, at least one. */
void pm_report_keys(const struct pm_report *report, struct pm_keys *ret);
/* The fields of its rows, each once: PM_FIELDS at most. */
size_t pm_row_fields(const struct pm_keys *keys, struct pm_row_column *ret);
/* NULL: of a thread that the kernel did not tell. */
const char *pm_thread_comm(const struct pm_profile_thread *thread);
void pm_row_get(const struct pm_profile *profile, const struct pm_row_column *column,
		const struct pm_row *row, struct pm_row_value *ret);
/* Of a row with @key, which is number @at of its keys and one of code. */
uint32_t pm_row_place(const struct pm_profile *profile, enum pm_key key, uint32_t at,
		      const struct pm_row *row);
uint32_t pm_row_function(const struct pm_profile *profile, enum pm_key key, uint32_t at,
			 const struct pm_row *row);
uint32_t pm_row_module(const struct pm_profile *profile, enum pm_key key, uint32_t at,
		       const struct pm_row *row);

/* ---- words --------------------------------------------------------------------------- */

const char *pm_key_name(enum pm_key key); /* as after --by */
const char *pm_basename(const char *path);

/* ---- text for people --------------------------------------------------------------------- */

enum pm_color {
	PM_COLOR_PLAIN,
	PM_COLOR_HEAD,
	PM_COLOR_HOT,
	PM_COLOR_WARM,
	PM_COLOR_DIM,
	PM_COLOR_WARNING,
};

struct pm_text {
	const struct pm_report *report;
	FILE *to;
	bool failed; /* memory */
};

void pm_text_color(const struct pm_text *text, enum pm_color color);
void pm_text_put(const struct pm_text *text, enum pm_color color, const char *words);
/* A percentage, 6 columns, warm or hot if it is much. */
void pm_text_percent(const struct pm_text *text, double percent);
/* Words broken at runs of at least @gap blanks to the width; further lines begin with @indent
 * blanks. */
void pm_text_wrap(const struct pm_text *text, enum pm_color color, const char *first,
		  unsigned indent, size_t gap, const char *words);
/* Ours, or its ASCII stand-in. */
const char *pm_text_ellipsis(const struct pm_text *text);
const char *pm_text_arrow(const struct pm_text *text, bool back);

/* Whether what it weighs is time that was measured each time, as blocked time. */
bool pm_event_is_time(const struct pm_profile_event *event);
/* The title of a process, or the names that it had while it was sampled, in order: it may have
 * executed another program, or its id belonged to another process before. */
void pm_put_process_names(struct pm_str *str, const struct pm_view *view,
			  uint32_t process, bool ascii);
/* A word for a shell command line, quoted where needed. */
void pm_put_shell(struct pm_str *str, const char *word);

void pm_text_heading(const struct pm_text *text);
void pm_text_file_warnings(const struct pm_text *text);
void pm_text_event_heading(const struct pm_text *text, const struct pm_section *section);
void pm_text_event_warnings(const struct pm_text *text, struct pm_section *section);
int pm_text_table(struct pm_text *text, struct pm_section *section);
int pm_text_tree(struct pm_text *text, const struct pm_section *section);
int pm_text_hottest(struct pm_text *text, const struct pm_section *section);
int pm_text_annotate(struct pm_text *text, const struct pm_section *section);

/* ---- text for programs ------------------------------------------------------------------- */

/* @text as a field of a line, as RFC 4180 has it: quoted where @separator makes that necessary.
 * What moves a cursor is escaped. */
void pm_put_field(struct pm_str *str, const char *text, const char *separator);
/* The function that the section annotates, as members of its event, or as lines. */
int pm_json_annotate(struct pm_str *out, FILE *to, const struct pm_section *section);
int pm_csv_annotate(struct pm_str *out, FILE *to, const char *separator,
		    const struct pm_section *section, bool titles);

/* Collects lines and hands them on in large pieces. */
/*
 * For documents that write the whole stack for each sample. By stack: the sum of
 * @frame_bytes, by frame, up to the root. NULL without memory.
 */
uint64_t *pm_stack_lengths(const struct pm_profile *profile, const uint32_t *frame_bytes);
/* Such a document of an hour at 1000 Hz has 3 GiB. */
#define PM_DOCUMENT_BYTES_MAX (UINT64_C(8) << 30)
/* -EFBIG with @err where a document would have more than @most bytes. */
int pm_check_document_bytes(uint64_t bytes, uint64_t most, struct pm_error *err);

void pm_flush_some(struct pm_str *str, FILE *to);
int pm_flush_all(struct pm_str *str, FILE *to, struct pm_error *err);
