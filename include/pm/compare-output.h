/* SPDX-License-Identifier: MIT */
/*
 * A comparison in formats for people and for CI services. Each function writes one
 * complete document; errors of the stream are left to the caller, as in pm/output.h.
 * Untrusted text is made printable.
 */
#pragma once

#include "pm/base.h"
#include "pm/compare.h"

struct pm_compare_report {
	const struct pm_comparison *comparison; /* borrowed */
	/* Why nothing was compared. The document then contains this reason, but only the
	 * sides and their differences from @comparison. NULL: the sides were compared. */
	const char *failure;
	bool quiet, color, ascii; /* text output only */
	bool all; /* also rows without a change, and every number */
	unsigned width; /* columns; 0: unlimited */
	size_t limit_bytes; /* of Markdown; further rows are only counted; 0: 65,000 */
	const char *
		root; /* SARIF: paths of files below it are relative; NULL: as they are */
};

/* All of these return 0, or -ENOMEM with @err; part of the document
 * may have been written. */
int pm_output_compare_text(const struct pm_compare_report *report, FILE *to,
			   struct pm_error *err);
/* For GitHub and GitLab: the verdict first, unchanged rows collapsed. */
int pm_output_compare_markdown(const struct pm_compare_report *report, FILE *to,
			       struct pm_error *err);
/* Format: docs/pmdiff.schema.json. */
int pm_output_compare_json(const struct pm_compare_report *report, FILE *to,
			   struct pm_error *err);
/* A test case for each gated row; an inconclusive one is skipped. If nothing was
 * compared, writes an error, because a job without tests would pass. */
int pm_output_compare_junit(const struct pm_compare_report *report, FILE *to,
			    struct pm_error *err);
/* SARIF 2.1.0: a result for each row that got worse; a notification if
 * it belongs to no file. */
int pm_output_compare_sarif(const struct pm_compare_report *report, FILE *to,
			    struct pm_error *err);
/* One page for counts, without scripts or external resources. For recordings use
 * pm_output_html(). */
int pm_output_compare_html(const struct pm_compare_report *report, FILE *to,
			   struct pm_error *err);

struct pm_trend_report {
	const struct pm_trends *trends; /* borrowed */
	bool quiet, color, ascii;
	bool all; /* also series without a step */
	unsigned width;
	const char *title; /* of the page; NULL: none */
	const struct pm_acks *acks; /* borrowed; NULL: none */
};
int pm_output_trend_text(const struct pm_trend_report *report, FILE *to,
			 struct pm_error *err);
int pm_output_trend_json(const struct pm_trend_report *report, FILE *to,
			 struct pm_error *err);
/* One page with a plot for each series. */
int pm_output_trend_html(const struct pm_trend_report *report, FILE *to,
			 struct pm_error *err);
