/* SPDX-License-Identifier: MIT */
/* Shared by the documents of a comparison: sections, numbers and words. */
#pragma once

#include "html-internal.h"
#include "pm/compare-output.h"
#include "stat-show.h"

/* ---- sections -------------------------------------------------------------------------- */

/* In the order in which they are shown. */
enum pm_compare_section {
	PM_COMPARED_FAILED, /* gated, and beyond the gate */
	PM_COMPARED_ACCEPTED, /* beyond the gate, but not beyond an accepted level */
	PM_COMPARED_OPEN, /* gated, and inconclusive */
	PM_COMPARED_WORSE, /* no gate; from here on nothing gated affects the verdict */
	PM_COMPARED_CHANGED,
	PM_COMPARED_BETTER,
	PM_COMPARED_NEW,
	PM_COMPARED_GONE,
	PM_COMPARED_UNDECIDED, /* not gated */
	PM_COMPARED_UNKNOWN,
	PM_COMPARED_WITHIN, /* gated, and changed within the gate */
	PM_COMPARED_SAME,
	PM_COMPARED_SECTIONS, /* number of sections */
};
enum pm_compare_section pm_compare_section_of(const struct pm_compare_row *row);
/* Returns the title of a section, such as "beyond the gate". */
const char *pm_compare_section_words(enum pm_compare_section section);

/* The numbers of rows in each section, and with a gate. */
struct pm_compare_counts {
	size_t of[PM_COMPARED_SECTIONS];
	size_t gated;
	size_t gated_new; /* of these: have neither a base value nor a limit */
};
void pm_compare_count(struct pm_compare_counts *out,
		      const struct pm_comparison *comparison);

/* ---- words ----------------------------------------------------------------------------- */

/* Untrusted names are made printable, and each is truncated to @width columns (0: not
 * truncated). */

/* Appends the first line of every document, without a newline: "worse, 1 of 5 gated
 * numbers beyond the gate: sim.Ir +3.10 %". */
void pm_put_compare_verdict(struct pm_str *str, const struct pm_compare_report *report);
/* Appends "task-clock decides. …", or nothing if gates or names determine the verdict. */
void pm_put_compare_deciding(struct pm_str *str, const struct pm_comparison *comparison);
/* Returns the verdict; UNKNOWN if nothing was compared. */
enum pm_verdict pm_compare_verdict_of(const struct pm_compare_report *report);
/* Appends the name of the row, in the form of a gate: "fn:parse:sim.Ir",
 * "parse/64//wall-time". */
void pm_put_compare_name(struct pm_str *str, const struct pm_compare_row *row,
			 size_t width, bool ascii);
/* Appends the same without the case, for use below a heading that names the case. */
void pm_put_compare_row(struct pm_str *str, const struct pm_compare_row *row,
			size_t width, bool ascii);
/* Appends "parse.c:12", or nothing. @whole: with the complete path. */
void pm_put_compare_place(struct pm_str *str, const struct pm_compare_row *row,
			  bool whole);
/* Returns words such as "inlined now", or "". */
const char *pm_compare_inlined_words(const struct pm_compare_row *row);
/* Returns "exact", "low noise" or "noisy". */
const char *pm_compare_class_words(enum pm_stat_class class);
/* Appends a side: "HEAD  3f2a1bc0  Tidy up the parser  20 runs". */
void pm_put_compare_side(struct pm_str *str, const struct pm_compare_of *of, bool ascii);

/* Appends the median of a side, in a unit that suits both sides, or a dash if it is
 * unknown. */
void pm_put_compare_median(struct pm_str *str, const struct pm_compare_row *row,
			   const struct pm_compare_side *side, bool ascii);
/* Appends "+3.1 %", for shares "+1.2 points", "from 0", or "-" if the change is
 * unknown. */
void pm_put_compare_change(struct pm_str *str, const struct pm_compare_row *row);
/* Appends the interval, "+2.9 … +3.3 %", or nothing if only the change is known. */
void pm_put_compare_interval(struct pm_str *str, const struct pm_compare_row *row,
			     bool ascii);
/* Appends "0.5 % (--gate)", "±0.5 % (pmdiff.json)", or "none". */
void pm_put_compare_gate(struct pm_str *str, const struct pm_compare_row *row,
			 bool ascii);
/* Appends how the row was judged: "Hodges-Lehmann, 20 runs a side, p 0.001". */
void pm_put_compare_method(struct pm_str *str, const struct pm_compare_row *row);

/* ---- cases ----------------------------------------------------------------------------- */

/* Returns the part of a comparison that belongs to one case, as a comparison. Everything
 * is borrowed; do not release it. */
struct pm_comparison pm_compare_view(const struct pm_comparison *comparison,
				     const struct pm_compare_case *one);
/* Appends "better, 1 number is better: sim.Ir -3 %", "new", "failed on the new side:
 * …". */
void pm_put_compare_case(struct pm_str *str, const struct pm_compare_report *report,
			 const struct pm_compare_case *one);

/* ---- where the additional cost is ------------------------------------------------------ */

/* Appends "exact counts of callgrind, sim.Ir". */
void pm_put_hot_source(struct pm_str *str, const struct pm_hot *hot);
/* Appends "+1,200" or "1.25 ms". */
void pm_put_hot_number(struct pm_str *str, const struct pm_hot *hot, double number,
		       bool sign);
/* Returns the list number @index and its title, or NULL after the last list. */
const struct pm_hot_rows *pm_hot_list(const struct pm_hot *hot, size_t index,
				      const char **title);
/* The first appends "parse.c:12", or nothing; the second "parse". */
void pm_put_hot_place(struct pm_str *str, const struct pm_hot_row *row);
void pm_put_hot_name(struct pm_str *str, const struct pm_hot_row *row, size_t width);

/* ---- JSON ------------------------------------------------------------------------------ */

/* @key is written before the value: ",\"line\":". A number that is not finite becomes
 * null. */
void pm_put_compare_json(struct pm_str *str, const char *key, double number);
void pm_put_compare_json_text(struct pm_str *str, const char *key, const char *text);

/* ---- HTML ------------------------------------------------------------------------------ */

/* Writes a page up to and including <body>: no scripts, no external resources, light or
 * dark as the reader prefers. @title is untrusted. */
void pm_put_plain_page(struct pm_str *out, const char *title);
