/* SPDX-License-Identifier: MIT */
/*
 * The options of a program as a table. It is used to parse the command line, to print
 * --help, and to generate the completions of the shells (docs/completions/generate).
 */
#pragma once

#include "pm/base.h"

enum {
	PM_OPTIONS_MAX = 96, /* rows of a table */
};

/* The kind of an argument: how it is parsed if it is stored in a member, and which words
 * the shells offer. */
enum pm_option_kind {
	PM_OPTION_ANY,
	PM_OPTION_WORD, /* one of `words`; an enum or bool gets its index */
	PM_OPTION_NUMBER, /* from `min` to `max` */
	PM_OPTION_DURATION, /* see pm_parse_duration() */
	PM_OPTION_SIZE, /* see pm_parse_size() */
	PM_OPTION_FILE,
	PM_OPTION_FOLDER,
	PM_OPTION_EVENT, /* also `words` */
	PM_OPTION_PROCESS,
	PM_OPTION_USER,
	PM_OPTION_REVISION, /* of git */
	PM_OPTION_COMMAND,
};

/* The type of the member that an option sets. */
enum pm_option_type {
	PM_OPTION_NOWHERE,
	PM_OPTION_BOOL, /* gets true, or false with `negates` */
	PM_OPTION_TEXT, /* is borrowed */
	PM_OPTION_U64,
	PM_OPTION_ENUM, /* gets `value`, unless the argument is a PM_OPTION_WORD */
};

/* An option as it was typed. */
struct pm_option_use {
	const char *program;
	const struct pm_option *option;
	const char *label; /* for messages: "-o", or "--raw" */
	const char *text; /* the argument; NULL: none */
};

struct pm_option {
	const char *name; /* NULL: only a letter; with no letter either, a heading */
	char letter; /* 0: none */
	const char *argument; /* its name; "[=NAME]" is optional; "[NAME]": no argument */
	/* One paragraph. The shells show the part before a semicolon or bracket. NULL:
	 * not shown anywhere. */
	const char *help;
	enum pm_option_kind kind;
	const char *words; /* words that shells offer, with spaces between them */
	bool repeatable;
	/* for the shells: options that it excludes, with spaces between them */
	const char *excludes;
	const char *alias; /* the option that this is another name of; NULL: none */

	/* Where the argument is stored: in a member, or by `set`, which returns 0 or a
	 * negative errno. */
	enum pm_option_type type;
	size_t offset;
	int (*set)(void *to, const struct pm_option_use *use, struct pm_error *err);
	unsigned int value;
	bool negates;
	uint64_t min, max; /* max 0: from 1 to INT64_MAX */
	/* For messages, after "expected": the kind of number, or what the argument names,
	 * e.g. "a file"; it must then not be empty. */
	const char *expected;
	bool last; /* nothing is parsed after it: --help, --version */
	/* the program's modes in which it is valid; used only by the program */
	unsigned int modes;
};

/* Returns the member of @to that the option sets. */
static inline void *pm_option_member(void *to, const struct pm_option_use *use)
{
	return (char *)to + use->option->offset;
}

/* Initialises a row with the member that its option sets. */
#define PM_OPTION_TO(struct_type, member) \
	.offset = offsetof(struct_type, member),                              \
	.type = _Generic(((struct_type *)0)->member, bool                     \
			 : PM_OPTION_BOOL, const char *                       \
			 : PM_OPTION_TEXT, uint64_t                           \
			 : PM_OPTION_U64, unsigned int                        \
			 : PM_OPTION_ENUM)

/* The same for an option with `set`. */
#define PM_OPTION_AT(struct_type, member) .offset = offsetof(struct_type, member)

/* A row that begins a group of --help. */
#define PM_OPTION_GROUP(title)  \
	{                       \
		.help = (title) \
	}

/* For `rows` and `len` of a table; a table that is too long does not compile. */
#define PM_OPTION_ROWS(array)         \
	(array),                      \
		PM_ARRAY_LEN(array) + \
			0 * sizeof(char[PM_ARRAY_LEN(array) <= PM_OPTIONS_MAX ? 1 : -1])

struct pm_option_table {
	const char *program;
	const struct pm_option *rows;
	size_t len;
	const char *before, *after; /* --help around the options */
	/* For the shells: the words that may come first; those of them that a command
	 * follows ("*": always); globs of files. NULL: none. */
	const char *modes, *command_modes, *files;
};

enum pm_options_order {
	PM_OPTIONS_ANYWHERE, /* other words may come before options, and are moved */
	PM_OPTIONS_FIRST, /* the first other word ends the options */
};

/* Parses options from `optind` on, with getopt_long(3), into the structure @to. @seen is
 * NULL, or has an element for each row, which becomes true if the option was used.
 * Returns 0, 1 after an option that is `last`, or negative, -EINVAL with one clear
 * line. */
int pm_options_parse(const struct pm_option_table *table, void *to, int argc, char **argv,
		     enum pm_options_order order, bool *seen, struct pm_error *err);
/* Prints --help: at most 80 columns. */
void pm_options_print_help(const struct pm_option_table *table, FILE *to);
/* Prints the options to standard output, for docs/completions/generate. */
void pm_options_print_table(const struct pm_option_table *table);

/* Returns the index of @text among @words, or -1 if it is none of them. */
int pm_words_find(const char *words, const char *text);
