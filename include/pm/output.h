/* SPDX-License-Identifier: MIT */
/*
 * A profile as text for people and for programs. Each function writes one complete document
 * to a stdio stream; whether all of it arrived is the stream's business: ask ferror() and
 * fclose() once at the end.
 */
#pragma once

#include "pm/annotate.h"
#include "pm/base.h"
#include "pm/profile.h"

enum pm_report_show {
	PM_SHOW_TABLE,
	PM_SHOW_TREE, /* top-down */
	PM_SHOW_BOTTOM_UP,
	PM_SHOW_CALLERS, /* of `function` */
	PM_SHOW_CALLEES,
	PM_SHOW_ANNOTATE, /* lines and instructions of `function` */
	/* Lists, from here on. */
	PM_SHOW_THREADS, /* this and the next two need profiles with samples kept */
	PM_SHOW_FIELDS, /* and their fields */
	PM_SHOW_PERCENTILES, /* of `field` */
	PM_SHOW_BRANCHES, /* needs profile->branches */
};

enum pm_annotate_show {
	PM_ANNOTATE_BOTH,
	PM_ANNOTATE_SOURCE, /* lines only: no binary is looked for */
	PM_ANNOTATE_CODE, /* instructions only */
};

#define PM_LIMIT_DEFAULT (-1.0)

enum {
	PM_PERCENTILES_MAX = 8,
};

/* What to report, and how. Texts are borrowed. */
struct pm_report {
	const struct pm_profile *profile;
	const struct pm_profile *base; /* to compare with (--diff), NULL: none */
	/* Of a page: costs of both are compared as they are, because both did the same work. Else
	 * the base counts as if it had as much in all. */
	bool absolute;
	const struct pm_filter *filter;
	const char *time; /* the time range as given, for the heading; NULL: all */
	uint32_t event; /* PM_PROFILE_NONE: every event, one section each */
	enum pm_report_show show;
	enum pm_key key; /* of a table */
	enum pm_key more_keys[PM_KEYS_MAX - 1]; /* several: its rows are combinations */
	uint32_t more_keys_len;
	bool by_total; /* sort tables by total, not by self */
	const char *function; /* for callers, callees, annotate: see pm_function_set */
	const char *field; /* for percentiles: a field's name, or "period" */
	double percentiles[PM_PERCENTILES_MAX];
	size_t percentiles_len;
	bool by_key; /* percentiles for each row of a table, not of all at once; and threads
		      * by process */
	double limit; /* percent below which rows and branches are left out */
	enum pm_annotate_show annotate;
	struct pm_annotate_search search; /* for sources and binaries to annotate */
	/* Text for people only. */
	const char *file; /* to name in suggested commands; NULL: the default file */
	bool quiet; /* only the data */
	bool color;
	bool ascii; /* no characters outside of ASCII of our own */
	unsigned width; /* columns; 0: as wide as it comes */
	/* Gets sentences about parts that were too large for the document; NULL: they are
	 * in the document only. */
	struct pm_str *left_out;
};

/*
 * Each: 0, or a negative errno with @err and nothing written when a filter or a function
 * names what is not there (-ENOENT), is ambiguous (-ENOTUNIQ: @err lists the candidates), is
 * not valid (-EINVAL), or memory ends.
 */
int pm_output_text(const struct pm_report *report, FILE *to, struct pm_error *err);
/*
 * The heading of the text: what was recorded, and all there is to be wary of, for each event
 * that is reported.
 */
int pm_output_heading(const struct pm_report *report, FILE *to, struct pm_error *err);
/* Fields separated by @separator, quoted as in RFC 4180 where needed; a line of names first.
 * Limit 0 unless one is set. */
int pm_output_csv(const struct pm_report *report, const char *separator, FILE *to,
		  struct pm_error *err);
/* The schema is in pmreport(1). Limit 0 unless one is set. */
int pm_output_json(const struct pm_report *report, FILE *to, struct pm_error *err);
/* One line for each stack, `comm;root;…;leaf COUNT`, of one event; counts samples, or sums
 * periods. */
int pm_output_folded(const struct pm_report *report, bool periods, FILE *to,
		     struct pm_error *err);

/*
 * Files of other programs. All events that the report names, each sample once, names made
 * printable; what the text report warns of stands where the format has room for it. Those
 * marked (S) need a profile that has kept its samples, and write none otherwise.
 */
/* pprof's profile.proto, in gzip; thus binary. */
int pm_output_pprof(const struct pm_report *report, FILE *to, struct pm_error *err);
/* (S) Firefox Profiler's, a thread for each event and thread. */
int pm_output_firefox(const struct pm_report *report, FILE *to, struct pm_error *err);
/* (S) speedscope's own, a profile for each event and thread. */
int pm_output_speedscope(const struct pm_report *report, FILE *to, struct pm_error *err);
/* Costs by function, line and call, events as columns; threads are added up. */
int pm_output_callgrind(const struct pm_report *report, FILE *to, struct pm_error *err);
/* (S) As `perf script` prints samples, for what reads that. */
int pm_output_perf_script(const struct pm_report *report, FILE *to, struct pm_error *err);
/*
 * One HTML file that holds the recording and the program to look at it; with report->base,
 * compared with that. Needs kept samples for what is about time.
 */
int pm_output_html(const struct pm_report *report, FILE *to, struct pm_error *err);
/*
 * A flame graph of one event as SVG; inverted with PM_SHOW_BOTTOM_UP; with report->base,
 * coloured by the difference to that.
 */
int pm_output_flamegraph(const struct pm_report *report, FILE *to, struct pm_error *err);

/* ---- words --------------------------------------------------------------------------- */

/* For what shows a profile by other means than a stream. Foreign text comes out printable. */

/* 1234567 as 1,234,567. */
void pm_put_count(struct pm_str *str, uint64_t count);
void pm_put_duration(struct pm_str *str, uint64_t ns);
/* A function with its marks, for trees: `f (inlined)`, `[unknown] in libx.so`. */
void pm_put_function(struct pm_str *str, const struct pm_profile *profile,
		     uint32_t function, size_t width, bool ascii);
/* An event as measured; and what it stands for where another one has the same name. */
void pm_put_event(struct pm_str *str, const struct pm_profile *profile, uint32_t event);
/* "file.c:12", or nothing. */
void pm_put_source(struct pm_str *str, const struct pm_profile_place *place);
/* Whether a stop reason means that callers are missing. Not so in execve(2), after the memory of
 * the old program is gone: then the kernel's frames are all there are. */
bool pm_stop_is_incomplete(const char *stop);
