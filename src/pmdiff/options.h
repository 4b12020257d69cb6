/* SPDX-License-Identifier: MIT */
/*
 * What the user asked for: the command line of pmdiff, and pmdiff.json, as plain data.
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

/* Texts that argv or the configuration owns. */
struct pmdiff_texts {
	PM_VEC(const char *) list;
};

/* `run` and `bisect`: what to measure, and how. */
struct pmdiff_measured {
	const char *revs[2]; /* base and head; of bisect good and bad */
	const char *row; /* bisect: which one moved, as in a gate; NULL: to be found */
	const char *build; /* for the shell; NULL: nothing to build */
	const char *const *command; /* NULL-terminated */
	uint64_t runs; /* of each side; 0: as the engine needs */
	uint64_t warmups; /* UINT64_MAX: as the engine needs */
	/* As typed, for pmstat's -e, --fn and --range; empty: its defaults. */
	struct pmdiff_texts events, functions, ranges;
	/* "auto", "count", "uprobe", "ptrace", "callgrind". Count: what counts for real, with
	 * or without functions. */
	const char *engine;
	uint64_t timeout_ns; /* of one run; 0: none */
	const char
		*setup; /* for the shell: before each run, not counted; NULL: nothing */
	enum pm_diff_harness harness;
	enum pm_diff_part part;
	const char *marks; /* of a harness: the part that callgrind counts; NULL: none */
};

/* A case of the configuration, which is several where a harness has them. */
struct pmdiff_case {
	const char *name; /* borrowed of the configuration */
	struct pmdiff_measured measured;
	struct pmdiff_texts words; /* of its command, NULL-terminated */
};

/* `import`: a file of another tool as one of ours. */
struct pmdiff_imported {
	enum pm_import_format format;
	const char *file;
	const char *path; /* -o; NULL: standard output, where there is no history */
};

/* `ack`: regressions that were accepted. */
struct pmdiff_acked {
	const char *row; /* as a gate names it, or a case; NULL: list them */
	const char
		*result; /* a document of --json that says what got worse; NULL: none */
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
	bool ab; /* one file, which is both sides */
	struct pmdiff_measured measured;
	/* `run` without a command: what to measure in the place of `measured`. Empty: that. */
	PM_VEC(struct pmdiff_case) cases;
	const char *case_pattern; /* --case: of the names of cases; NULL: all */
	struct pmdiff_imported imported;
	struct pmdiff_acked acked;
	const char *commit; /* import, ack: as git names it; NULL: none was named */

	/* How to judge. */
	struct pm_gates gates; /* the configuration's, then those of --gate */
	struct pm_gates history_gates; /* over the history, in the same order */
	struct pm_acks acks; /* accepted regressions; empty where nothing is judged */
	const char *history; /* folder, "git-notes" or "git-notes:REF"; NULL: none */
	bool force, strict;

	/* Where results go, and how. */
	struct pmdiff_output outputs[PMDIFF_FORMS];
	enum pm_color_wish color;
	bool quiet, all;

	const char *config_path; /* --config; NULL: where it is looked for */
	struct pm_diff_config config; /* what the members above may borrow from */
	struct pmdiff_texts words; /* of the configuration's command, NULL-terminated */
};

/* The command line alone. 0, or -EINVAL with one clear line. Release in both cases. */
int pmdiff_options_parse(struct pmdiff_options *options, int argc, char **argv,
			 struct pm_error *err);
/* Adds what the configuration says and the command line does not, and then looks whether
 * anything is missing. 0 or negative. */
int pmdiff_options_complete(struct pmdiff_options *options, struct pm_error *err);
void pmdiff_options_release(struct pmdiff_options *options);
/* Whether nobody has said which functions and ranges are of interest. */
bool pmdiff_names_no_functions(const struct pmdiff_measured *measured);
/* Whether --case means the case @name, which is one of the group @group. */
bool pmdiff_is_case_wanted(const struct pmdiff_options *options, const char *name,
			   const char *group);
/* The whole of --help to stdout. */
void pmdiff_options_help(void);
