/* SPDX-License-Identifier: MIT */
/*
 * A profile as text for people and for programs. Each function writes one complete
 * document to a stdio stream. Write errors are left to the stream: check ferror() and
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
	PM_SHOW_THREADS, /* this and the next two need profiles that kept samples */
	PM_SHOW_FIELDS, /* of the samples */
	PM_SHOW_PERCENTILES, /* of `field` */
	PM_SHOW_BRANCHES, /* needs profile->branches */
};

enum pm_annotate_show {
	PM_ANNOTATE_BOTH,
	PM_ANNOTATE_SOURCE, /* lines only; no binary is searched for */
	PM_ANNOTATE_CODE, /* instructions only */
};

#define PM_LIMIT_DEFAULT (-1.0)

enum {
	PM_PERCENTILES_MAX = 8,
};

/* The content and the form of a report. Strings are borrowed. */
struct pm_report {
	const struct pm_profile *profile;
	const struct pm_profile *base; /* to compare with (--diff); NULL: none */
	/* In a page: the costs of both sides are compared unscaled, because both did the
	 * same work. Otherwise the base is scaled to the same total. */
	bool absolute;
	const struct pm_filter *filter;
	const char *time; /* the time range as given, for the heading; NULL: all */
	uint32_t event; /* PM_PROFILE_NONE: every event, one section each */
	enum pm_report_show show;
	enum pm_key key; /* of a table */
	enum pm_key more_keys[PM_KEYS_MAX - 1]; /* several keys: rows are combinations */
	uint32_t more_keys_len;
	bool by_total; /* sort tables by total, not by self */
	const char *function; /* for callers, callees, annotate: see pm_function_set */
	const char *field; /* for percentiles: a field's name, or "period" */
	double percentiles[PM_PERCENTILES_MAX];
	size_t percentiles_len;
	/* Percentiles for each row of a table, not for all rows together; threads grouped
	 * by process. */
	bool by_key;
	double limit; /* percent below which rows and branches are left out */
	enum pm_annotate_show annotate;
	struct pm_annotate_search search; /* for sources and binaries to annotate */
	/* For text for people only. */
	const char *file; /* named in suggested commands; NULL: the default file */
	bool quiet; /* only the data */
	bool color;
	bool ascii; /* use only ASCII characters of our own */
	unsigned width; /* columns; 0: unlimited */
	/* Receives sentences about parts that were too large for the document; NULL: they
	 * are written to the document only. */
	struct pm_str *left_out;
};

/*
 * Each returns 0, or a negative errno with @err and nothing written: a filter or a
 * function names something that does not exist (-ENOENT), is ambiguous (-ENOTUNIQ: @err
 * lists the candidates) or invalid (-EINVAL), or memory runs out.
 */
int pm_output_text(const struct pm_report *report, FILE *to, struct pm_error *err);
/*
 * The heading of the text: what was recorded, and all reservations about it, for each
 * reported event.
 */
int pm_output_heading(const struct pm_report *report, FILE *to, struct pm_error *err);
/* Fields separated by @separator, quoted as in RFC 4180 where needed, after a line of
 * names. Limit 0 unless one is set. */
int pm_output_csv(const struct pm_report *report, const char *separator, FILE *to,
		  struct pm_error *err);
/* The schema is in pmreport(1). Limit 0 unless one is set. */
int pm_output_json(const struct pm_report *report, FILE *to, struct pm_error *err);
/* One line for each stack of one event, `comm;root;…;leaf COUNT`; counts samples, or sums
 * periods. */
int pm_output_folded(const struct pm_report *report, bool periods, FILE *to,
		     struct pm_error *err);

/*
 * Files for other programs, with all events that the report names, each sample once, and
 * names made printable. Warnings of the text report are included where the format has
 * room for them. Formats marked (S) write samples only if the profile has kept them.
 */
/* pprof's profile.proto, compressed with gzip, and therefore binary. */
int pm_output_pprof(const struct pm_report *report, FILE *to, struct pm_error *err);
/* (S) Firefox Profiler's format, with a thread for each event and thread. */
int pm_output_firefox(const struct pm_report *report, FILE *to, struct pm_error *err);
/* (S) speedscope's own format, with a profile for each event and thread. */
int pm_output_speedscope(const struct pm_report *report, FILE *to, struct pm_error *err);
/* Costs by function, line and call, events as columns; threads are added up. */
int pm_output_callgrind(const struct pm_report *report, FILE *to, struct pm_error *err);
/* (S) Samples as `perf script` prints them, for programs that read that. */
int pm_output_perf_script(const struct pm_report *report, FILE *to, struct pm_error *err);
/*
 * One HTML file that contains the recording and the viewer; with report->base, it is a
 * comparison with that profile. Views over time need kept samples.
 */
int pm_output_html(const struct pm_report *report, FILE *to, struct pm_error *err);
/*
 * A flame graph of one event as SVG; inverted with PM_SHOW_BOTTOM_UP; with report->base,
 * coloured by the difference from that profile.
 */
int pm_output_flamegraph(const struct pm_report *report, FILE *to, struct pm_error *err);

/* ---- words --------------------------------------------------------------------------- */

/* For programs that show a profile in other ways than on a stream. Foreign text is made
 * printable. */

/* 1234567 as 1,234,567. */
void pm_put_count(struct pm_str *str, uint64_t count);
void pm_put_duration(struct pm_str *str, uint64_t ns);
/* A function with its marks, for trees: `f (inlined)`, `[unknown] in libx.so`. */
void pm_put_function(struct pm_str *str, const struct pm_profile *profile,
		     uint32_t function, size_t width, bool ascii);
/* Appends the name of an event as measured, and also the requested name if another event
 * has the same measured one. */
void pm_put_event(struct pm_str *str, const struct pm_profile *profile, uint32_t event);
/* "file.c:12", or nothing. */
void pm_put_source(struct pm_str *str, const struct pm_profile_place *place);
/* Whether a stop reason means that callers are missing. None are missing in execve(2)
 * after the old program's memory has been released: only the kernel's frames exist
 * then. */
bool pm_stop_is_incomplete(const char *stop);
