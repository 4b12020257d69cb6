/* SPDX-License-Identifier: MIT */
/* Definitions shared by the formats. */
#pragma once

#include "pm/output.h"

/* ---- a section of a report -------------------------------------------------------------- */

/* One event of a report: its view and, for callers and callees, the selected
 * functions. */
struct pm_section {
	const struct pm_report *report;
	struct pm_view *view;
	struct pm_function_set only; /* empty unless callers, callees or annotate */
	/* For annotate; empty if the event has none. */
	struct pm_annotate_choices choices;
	struct pm_table functions; /* by self; only for text; computed on first use */
	bool functions_made;
	bool people; /* the section is printed as text for people */
	/* Among the first printed rows, more than half of the names are truncated, or are
	 * of inlined functions. */
	bool much_cut, much_inlined;
};

int pm_section_init(struct pm_section *out, const struct pm_report *report,
		    uint32_t event, struct pm_error *err);
void pm_section_release(struct pm_section *section);
/* Returns the table of functions by self, which several parts of the text need. NULL
 * without memory. */
const struct pm_table *pm_section_functions(struct pm_section *section);
/* Whether none of the section's samples has a stack. */
bool pm_section_is_stackless(const struct pm_section *section);
/* Creates the tree that the report shows; not to be used for tables. */
int pm_section_tree(const struct pm_section *section, bool fold, struct pm_tree **out);
/* Gets the events to report: from *first to *end - 1. */
void pm_report_events(const struct pm_report *report, uint32_t *first, uint32_t *end);

/*
 * Traverses a tree in preorder, heaviest children first, and leaves out nodes below
 * @limit percent of the view; needs no stack. Returns 1 and the next node in *node (start
 * with 0), 0 at the end, or -ENOMEM.
 */
int pm_tree_next(struct pm_tree *tree, double limit, uint32_t *node);

/* ---- fields of rows ---------------------------------------------------------------------- */

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
	PM_FIELDS, /* number of fields */
};

struct pm_row_column {
	const char *name;
	enum pm_row_field field;
	/* The key that the field belongs to, and its index among the report's keys. */
	enum pm_key key;
	uint32_t at;
};

struct pm_row_value {
	enum {
		PM_VALUE_TEXT,
		PM_VALUE_NUMBER,
		PM_VALUE_BOOL,
		PM_VALUE_ADDRESS,
	} kind;
	bool known; /* false: `text` is a substitute for people */
	const char *text;
	uint64_t number;
	uint64_t start; /* start of a function without a name; 0: unknown */
};

/* Sets @err to the reason why a section could not be written. Returns @code. */
int pm_section_failed(int code, struct pm_error *err);

/* Gets the keys of a report's tables, at least one. */
void pm_report_keys(const struct pm_report *report, struct pm_keys *out);
/* Gets the fields of the report's rows, each once, and returns their number, at most
 * PM_FIELDS. */
size_t pm_row_fields(const struct pm_keys *keys, struct pm_row_column *out);
/* Returns NULL if the kernel did not report the thread's name. */
const char *pm_thread_comm(const struct pm_profile_thread *thread);
void pm_row_get(const struct pm_profile *profile, const struct pm_row_column *column,
		const struct pm_row *row, struct pm_row_value *out);
/* Return the place or function of a row whose key number @at is @key, a key of code. */
uint32_t pm_row_place(const struct pm_profile *profile, enum pm_key key, uint32_t at,
		      const struct pm_row *row);
uint32_t pm_row_function(const struct pm_profile *profile, enum pm_key key, uint32_t at,
			 const struct pm_row *row);
uint32_t pm_row_module(const struct pm_profile *profile, enum pm_key key, uint32_t at,
		       const struct pm_row *row);

/* ---- words --------------------------------------------------------------------------- */

const char *pm_key_name(enum pm_key key); /* as in --by */
const char *pm_basename(const char *path);
/* Returns NULL if the function has no known name. */
const char *pm_function_known_name(const struct pm_profile_function *function);
/* Returns NULL if @id is PM_PROFILE_NONE. */
const char *pm_module_known_name(const struct pm_profile *profile, uint32_t id);

/* ---- text for people --------------------------------------------------------------------- */

enum {
	/* The most columns that a table pads a text to if lines have no limit. A longer text
	 * is not cut, and moves the rest of its row. */
	PM_TEXT_UNLIMITED_COLUMNS = 60,
};

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
	bool failed; /* out of memory */
};

void pm_text_color(const struct pm_text *text, enum pm_color color);
void pm_text_put(const struct pm_text *text, enum pm_color color, const char *words);
enum pm_color pm_percent_color(double percent);
/* Prints a percentage in 6 columns, in the warm or hot colour if it is large. */
void pm_text_percent(const struct pm_text *text, double percent);
/* Prints words, wrapped to the width at runs of at least @gap blanks; continuation lines
 * are indented by @indent blanks. */
void pm_text_wrap(const struct pm_text *text, enum pm_color color, const char *first,
		  unsigned indent, size_t gap, const char *words);
/* Return the character, or its ASCII replacement. */
const char *pm_text_ellipsis(const struct pm_text *text);
const char *pm_text_arrow(const struct pm_text *text, bool back);

/* Whether the event's weight is a time measured for each sample, such as blocked time. */
bool pm_event_is_time(const struct pm_profile_event *event);
/* Appends the title of a process, or the names that it had while it was sampled, in
 * order: it may have executed another program, or another process may have had the same
 * id earlier. */
void pm_put_process_names(struct pm_str *str, const struct pm_view *view,
			  uint32_t process, bool ascii);
/* Appends a word for a shell command line, quoted if necessary. */
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

/* Appends @text as a field of a line, as in RFC 4180: quoted if @separator makes that
 * necessary. Characters that move a cursor are escaped. */
void pm_put_field(struct pm_str *str, const char *text, const char *separator);
/* Write the function that the section annotates: as members of its event, or as lines. */
int pm_json_annotate(struct pm_str *out, FILE *to, const struct pm_section *section);
int pm_csv_annotate(struct pm_str *out, FILE *to, const char *separator,
		    const struct pm_section *section, bool titles);

/*
 * For documents that write the whole stack for each sample. Returns, by stack, the sum of
 * @frame_bytes, which is by frame, up to the root. NULL without memory.
 */
uint64_t *pm_stack_lengths(const struct pm_profile *profile, const uint32_t *frame_bytes);
/* An hour at 1000 Hz gives 3 GiB in such a document. */
#define PM_DOCUMENT_BYTES_MAX (UINT64_C(8) << 30)
/* Returns -EFBIG with @err if a document would exceed @most bytes. */
int pm_check_document_bytes(uint64_t bytes, uint64_t most, struct pm_error *err);

/* Writes collected lines in large pieces. pm_flush_all() writes the remaining ones. */
void pm_flush_some(struct pm_str *str, FILE *to);
int pm_flush_all(struct pm_str *str, FILE *to, struct pm_error *err);
