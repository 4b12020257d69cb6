/* SPDX-License-Identifier: MIT */
/*
 * A comparison in the formats of people and of CI services. Each function writes one complete
 * document; whether all of it arrived is the stream's business, as in pm/output.h. Foreign text
 * comes out printable.
 */
#pragma once

#include "pm/base.h"
#include "pm/compare.h"

struct pm_compare_report {
	const struct pm_comparison *comparison; /* borrowed */
	/* Why nothing was compared: the document tells that, and of @comparison what the sides
	 * are and in what they differ. NULL: it was compared. */
	const char *failure;
	bool quiet, color, ascii; /* text for people only */
	bool all; /* rows without a change, too, and every number */
	unsigned width; /* columns; 0: as wide as it comes */
	size_t limit_bytes; /* of Markdown: rows are left out, and counted; 0: 65,000 */
	const char *
		root; /* SARIF: files below it are told relative to it; NULL: as they are */
};

/* Each: 0, or -ENOMEM with @err and perhaps a part written. */
int pm_output_compare_text(const struct pm_compare_report *report, FILE *to,
			   struct pm_error *err);
/* GitHub's and GitLab's: the verdict first, unchanged rows folded away. */
int pm_output_compare_markdown(const struct pm_compare_report *report, FILE *to,
			       struct pm_error *err);
/* docs/pmdiff.schema.json. */
int pm_output_compare_json(const struct pm_compare_report *report, FILE *to,
			   struct pm_error *err);
/* A test case for each gated row; one that is not decided is skipped. Nothing compared is an error,
 * for a job without tests passes. */
int pm_output_compare_junit(const struct pm_compare_report *report, FILE *to,
			    struct pm_error *err);
/* 2.1.0, a result for each row that got worse; a notification where it stands in no file. */
int pm_output_compare_sarif(const struct pm_compare_report *report, FILE *to,
			    struct pm_error *err);
/* One page, nothing fetched from anywhere, without scripts: of counting documents. Recordings
 * have pm_output_html(). */
int pm_output_compare_html(const struct pm_compare_report *report, FILE *to,
			   struct pm_error *err);

struct pm_trend_report {
	const struct pm_trends *trends; /* borrowed */
	bool quiet, color, ascii;
	bool all; /* series without a step, too */
	unsigned width;
	const char *title; /* of the page, NULL: none */
	const struct pm_acks *acks; /* borrowed; NULL: none */
};
int pm_output_trend_text(const struct pm_trend_report *report, FILE *to,
			 struct pm_error *err);
int pm_output_trend_json(const struct pm_trend_report *report, FILE *to,
			 struct pm_error *err);
/* One page with a plot for each series. */
int pm_output_trend_html(const struct pm_trend_report *report, FILE *to,
			 struct pm_error *err);
