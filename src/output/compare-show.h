/* SPDX-License-Identifier: MIT */
/* What the documents of a comparison share: sections, numbers and words. */
#pragma once

#include "html-internal.h"
#include "pm/compare-output.h"
#include "stat-show.h"

/* ---- sections -------------------------------------------------------------------------- */

/* In the order in which people want them. */
enum pm_compare_section {
	PM_COMPARED_FAILED, /* gated, and beyond the gate */
	PM_COMPARED_ACCEPTED, /* the same, up to a level that somebody has accepted */
	PM_COMPARED_OPEN, /* gated, and not decided */
	PM_COMPARED_WORSE, /* from here on nothing is gated that matters to the verdict */
	PM_COMPARED_CHANGED,
	PM_COMPARED_BETTER,
	PM_COMPARED_NEW,
	PM_COMPARED_GONE,
	PM_COMPARED_UNDECIDED, /* not gated */
	PM_COMPARED_UNKNOWN,
	PM_COMPARED_WITHIN, /* gated, and changed by no more than the gate */
	PM_COMPARED_SAME,
	PM_COMPARED_SECTIONS, /* how many */
};
enum pm_compare_section pm_compare_section_of(const struct pm_compare_row *row);
/* "worse, beyond the gate". */
const char *pm_compare_section_words(enum pm_compare_section section);

/* Rows of each section; and those with a gate. */
struct pm_compare_counts {
	size_t of[PM_COMPARED_SECTIONS];
	size_t gated;
	size_t gated_new; /* of these, with nothing to be compared with, nor a limit */
};
void pm_compare_count(struct pm_compare_counts *ret,
		      const struct pm_comparison *comparison);

/* ---- words ----------------------------------------------------------------------------- */

/* Foreign names come out printable, and each cut to @width columns (0: whole). */

/* The first line of every document, without an end: "worse: 1 of 5 gates is broken". */
void pm_put_compare_verdict(struct pm_str *str, const struct pm_compare_report *report);
/* "task-clock decides. …"; nothing where gates or names do. */
void pm_put_compare_deciding(struct pm_str *str, const struct pm_comparison *comparison);
/* UNKNOWN where nothing was compared. */
enum pm_verdict pm_compare_verdict_of(const struct pm_compare_report *report);
/* The row as a gate names it: "fn:parse:sim.Ir", "parse/64//wall-time". */
void pm_put_compare_name(struct pm_str *str, const struct pm_compare_row *row,
			 size_t width, bool ascii);
/* The same below a heading that says the case. */
void pm_put_compare_row(struct pm_str *str, const struct pm_compare_row *row,
			size_t width, bool ascii);
/* "parse.c:12", or nothing. With @whole the path as it is. */
void pm_put_compare_place(struct pm_str *str, const struct pm_compare_row *row,
			  bool whole);
/* "inlined now", or nothing. */
const char *pm_compare_inlined_words(const struct pm_compare_row *row);
/* "exact", "low noise", "noisy". */
const char *pm_compare_class_words(enum pm_stat_class class);
/* A side: "HEAD  3f2a1bc0  Tidy up the parser  20 runs". */
void pm_put_compare_side(struct pm_str *str, const struct pm_compare_of *of, bool ascii);

/* The median of a side in the unit that suits both; a dash where it is not known. */
void pm_put_compare_median(struct pm_str *str, const struct pm_compare_row *row,
			   const struct pm_compare_side *side, bool ascii);
/* "+3.1 %", of shares "+1.2 points", "from 0"; "-" where it is not known. */
void pm_put_compare_change(struct pm_str *str, const struct pm_compare_row *row);
/* "+2.9 … +3.3 %", or nothing where the change is all there is. */
void pm_put_compare_interval(struct pm_str *str, const struct pm_compare_row *row,
			     bool ascii);
/* "0.5 % (--gate)", "±0.5 % (pmdiff.json)", or "none". */
void pm_put_compare_gate(struct pm_str *str, const struct pm_compare_row *row,
			 bool ascii);
/* How it was judged: "Hodges-Lehmann, 20 and 20 runs, p 0.001". */
void pm_put_compare_method(struct pm_str *str, const struct pm_compare_row *row);

/* ---- cases ----------------------------------------------------------------------------- */

/* The part of a comparison that is of one case, as a comparison. It borrows all, and is not to be
 * released. */
struct pm_comparison pm_compare_view(const struct pm_comparison *comparison,
				     const struct pm_compare_case *one);
/* "better, 1 number is better: sim.Ir -3 %", "new", "failed on the new side: …". */
void pm_put_compare_case(struct pm_str *str, const struct pm_compare_report *report,
			 const struct pm_compare_case *one);

/* ---- where added cost is --------------------------------------------------------------- */

/* "exact counts of callgrind, sim.Ir". */
void pm_put_hot_source(struct pm_str *str, const struct pm_hot *hot);
/* "+1,200", "1.25 ms". */
void pm_put_hot_number(struct pm_str *str, const struct pm_hot *hot, double number,
		       bool sign);
/* The lists from 0 on, with the words for each; NULL: there are no more. */
const struct pm_hot_rows *pm_hot_list(const struct pm_hot *hot, size_t index,
				      const char **title);
/* "parse.c:12", or nothing; "parse". */
void pm_put_hot_place(struct pm_str *str, const struct pm_hot_row *row);
void pm_put_hot_name(struct pm_str *str, const struct pm_hot_row *row, size_t width);

/* ---- JSON ------------------------------------------------------------------------------ */

/* @key is what goes before it: ",\"line\":". What is no finite number is null. */
void pm_put_compare_json(struct pm_str *str, const char *key, double number);
void pm_put_compare_json_text(struct pm_str *str, const char *key, const char *text);

/* ---- HTML ------------------------------------------------------------------------------ */

/* A page up to and with <body>: no scripts, nothing loaded, light or dark as the reader has it.
 * @title is foreign. */
void pm_put_plain_page(struct pm_str *out, const char *title);
