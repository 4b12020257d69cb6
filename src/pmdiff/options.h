/* SPDX-License-Identifier: MIT */
/*
 * The user's request: the command line of pmdiff, and pmdiff.json, as plain data.
 */
#pragma once

#include "pm/acks.h"
#include "pm/compare.h"
#include "pm/diff-config.h"
#include "pm/import.h"
#include "pm/run.h"

enum pmdiff_action {
	PMDIFF_COMPARE, /* files */
	PMDIFF_RUN,
	PMDIFF_BISECT,
	PMDIFF_TREND,
	PMDIFF_IMPORT,
	PMDIFF_ACK,
	PMDIFF_HELP,
	PMDIFF_TELL_VERSION,
};

enum pmdiff_form {
	PMDIFF_TEXT,
	PMDIFF_JSON,
	PMDIFF_MARKDOWN,
	PMDIFF_JUNIT,
	PMDIFF_SARIF,
	PMDIFF_HTML,
	PMDIFF_FORMS,
};

/* Strings that are owned by argv or by the configuration. */
struct pmdiff_texts {
	PM_VEC(const char *) list;
};

/* `run` and `bisect`: what to measure, and how. */
struct pmdiff_measured {
	const char *revs[2]; /* base and head; for bisect, good and bad */
	const char *row; /* bisect: the row that changed, in the form of a gate; NULL:
	                  * find it */
	const char *build; /* shell command; NULL: nothing to build */
	const char *const *command; /* NULL-terminated */
	uint64_t runs; /* of each side; 0: depends on the engine */
	uint64_t warmups; /* UINT64_MAX: depends on the engine */
	/* As the user typed them, for pmstat's -e, --fn and --range; if empty, pmstat's
	 * defaults apply. */
	struct pmdiff_texts events, functions, ranges;
	/* "auto", "count", "uprobe", "ptrace", "callgrind". "count" stands for all
	 * engines that really count, with or without functions. */
	const char *engine;
	uint64_t timeout_ns; /* of one run; 0: none */
	const char *setup; /* shell command before each run, not counted; NULL: none */
	enum pm_diff_harness harness;
	enum pm_diff_part part;
	const char *marks; /* the part that callgrind counts, set by a harness; NULL:
	                    * all */
};

/* A case of the configuration; with a harness it stands for several cases. */
struct pmdiff_case {
	const char *name; /* borrowed from the configuration */
	struct pmdiff_measured measured;
	struct pmdiff_texts words; /* of its command, NULL-terminated */
};

/* `import`: converts a file of another tool. */
struct pmdiff_imported {
	enum pm_import_format format;
	const char *file;
	const char *path; /* -o; NULL: standard output, unless there is a history */
};

/* `ack`: accepted regressions. */
struct pmdiff_acked {
	const char *row; /* a row as in a gate, or a case; NULL: list them */
	const char *result; /* a --json document with the regressions; NULL: none */
	const char *reason;
	const char *file; /* --acks; NULL: at the top of the repository */
	bool remove;
};

struct pmdiff_output {
	bool wanted;
	const char *path; /* NULL: standard output */
};

struct pmdiff_options {
	enum pmdiff_action action;

	struct pmdiff_texts files[2]; /* base and new; a document of `ab` is in both */
	bool ab; /* a single file contains both sides */
	struct pmdiff_measured measured;
	/* The cases of `run` without a command, which are used instead of `measured`. If
	 * empty, `measured` is used. */
	PM_VEC(struct pmdiff_case) cases;
	const char *case_pattern; /* --case: pattern for names of cases; NULL: all */
	struct pmdiff_imported imported;
	struct pmdiff_acked acked;
	const char *commit; /* import, ack: a revision of git; NULL: none was given */

	/* How the comparison is judged. */
	struct pm_gates gates; /* from the configuration, then from --gate */
	struct pm_gates history_gates; /* for the history, in the same order */
	struct pm_acks acks; /* accepted regressions; empty if nothing is judged */
	const char *history; /* directory, "git-notes" or "git-notes:REF"; NULL: none */
	bool force, strict;

	/* Output. */
	struct pmdiff_output outputs[PMDIFF_FORMS];
	enum pm_color_wish color;
	bool quiet, all;

	const char *config_path; /* --config; NULL: the default place */
	struct pm_diff_config config; /* the members above may borrow from this */
	struct pmdiff_texts words; /* of the configuration's command, NULL-terminated */
};

/* Parses only the command line. Returns 0, or -EINVAL with a one-line message. @options
 * must be released in both cases. */
int pmdiff_options_parse(struct pmdiff_options *options, int argc, char **argv,
			 struct pm_error *err);
/* Adds those values of the configuration that the command line does not override, and
 * then checks that nothing is missing. Returns 0 or a negative errno. */
int pmdiff_options_complete(struct pmdiff_options *options, struct pm_error *err);
void pmdiff_options_release(struct pmdiff_options *options);
/* Whether neither functions nor ranges were requested. */
bool pmdiff_names_no_functions(const struct pmdiff_measured *measured);
/* Whether --case selects the case @name, which belongs to the group @group. */
bool pmdiff_is_case_wanted(const struct pmdiff_options *options, const char *name,
			   const char *group);
extern const struct pm_option_table pmdiff_option_table;
