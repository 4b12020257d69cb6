/* SPDX-License-Identifier: MIT */
/*
 * Shared by the files that parse the command line.
 */
#pragma once

#include "options.h"

#define pmdiff_usage(err, ...) pm_usage(err, "pmdiff", __VA_ARGS__)

/* Subcommands that an option applies to. */
enum pmdiff_mode {
	PMDIFF_OF_FILES = 1,
	PMDIFF_OF_RUN = 2,
	PMDIFF_OF_BISECT = 4,
	PMDIFF_OF_TREND = 8,
	PMDIFF_OF_IMPORT = 16,
	PMDIFF_OF_ACK = 32,
};

/* Parsers of option values: 0, or negative with one clear line. */
int pmdiff_parse_engine(const char **out, const char *text, struct pm_error *err);
int pmdiff_parse_format(enum pm_import_format *out, const char *text,
			struct pm_error *err);
int pmdiff_parse_warmups(uint64_t *out, const char *text, struct pm_error *err);
int pmdiff_add_text(struct pmdiff_texts *texts, const char *text, struct pm_error *err);
/* @path NULL: standard output. */
int pmdiff_add_output(struct pmdiff_options *options, enum pmdiff_form form,
		      const char *path, struct pm_error *err);

/* Completes the options. @rest are the words after them. */
int pmdiff_take_words(struct pmdiff_options *options, char **rest, struct pm_error *err);
