/* SPDX-License-Identifier: MIT */
#include "pm/options.h"

#include <string.h>

#include "pm/base-text.h"
#include "pm/run.h"

enum {
	HELP_COLUMN = 28, /* of the descriptions */
	HELP_COLUMNS = 80,
	LABEL_BYTES = 40,
	/* getopt's value for an option without a letter, plus its row */
	OPTION_LONG = 256,
};

/* ---- words -------------------------------------------------------------------------------- */

/* Appends "a, b or c". */
static void words_put_choice(struct pm_str *str, const char *words)
{
	for (const char *word = words;;) {
		size_t len = strcspn(word, " ");

		pm_str_append(str, word, len);
		if (word[len] == '\0')
			return;
		word += len + 1;
		pm_str_puts(str, strchr(word, ' ') ? ", " : " or ");
	}
}

/* ---- values ------------------------------------------------------------------------------- */

/* Returns the index of the typed word, or -EINVAL. */
static int option_parse_word(const struct pm_option_use *use, struct pm_error *err)
{
	PM_CLEANUP(pm_str_release) struct pm_str choice = { 0 };
	int index = pm_words_find(use->option->words, use->text);

	if (index >= 0)
		return index;
	words_put_choice(&choice, use->option->words);
	return pm_usage(err, use->program, "%s %s: expected %s", use->label, use->text,
			pm_str_complete_or(&choice, "another word"));
}

static int option_parse_number(uint64_t *out, const struct pm_option_use *use,
			       struct pm_error *err)
{
	const struct pm_option *option = use->option;
	uint64_t value, min = option->min, max = option->max;

	if (option->kind == PM_OPTION_DURATION)
		return pm_parse_duration(out, use->label, use->text, use->program, err);
	if (option->kind == PM_OPTION_SIZE)
		return pm_parse_size(out, use->label, use->text, use->program, err);
	if (max == 0) {
		min = 1;
		max = INT64_MAX;
	}
	if (!pm_parse_u64(use->text, &value) || value < min || value > max)
		return pm_usage(err, use->program, "%s %s: expected %s", use->label,
				use->text,
				pm_text_or(option->expected, "a number, at least 1"));
	*out = value;
	return 0;
}

static int option_apply(void *to, const struct pm_option_use *use, struct pm_error *err)
{
	const struct pm_option *option = use->option;
	void *member = pm_option_member(to, use);
	int value = (int)option->value;

	if (option->set)
		return option->set(to, use, err);
	if (option->kind == PM_OPTION_WORD && option->type != PM_OPTION_TEXT && use->text)
		value = option_parse_word(use, err);
	if (value < 0)
		return value;
	switch (option->type) {
	case PM_OPTION_NOWHERE:
		break;
	case PM_OPTION_BOOL:
		if (option->kind == PM_OPTION_WORD)
			*(bool *)member = value > 0;
		else
			*(bool *)member = !option->negates;
		break;
	case PM_OPTION_ENUM:
		*(unsigned int *)member = (unsigned int)value;
		break;
	case PM_OPTION_U64:
		return option_parse_number(member, use, err);
	case PM_OPTION_TEXT:
		*(const char **)member = use->text;
		if (option->expected)
			return pm_parse_name(use->label, option->expected, use->text,
					     use->program, err);
		break;
	}
	return 0;
}

/* ---- the command line --------------------------------------------------------------------- */

/* The table in the form that getopt_long(3) needs. */
struct getopt_table {
	char letters[2 * PM_OPTIONS_MAX + 3];
	struct option names[PM_OPTIONS_MAX + 1];
};

static int option_has_arg(const struct pm_option *option)
{
	if (!option->argument)
		return no_argument;
	if (option->argument[0] != '[')
		return required_argument;
	if (option->argument[1] == '=')
		return optional_argument;
	return no_argument;
}

/* Returns @row, or the row of the option that it is an alias of. */
static size_t option_row_of_alias(const struct pm_option_table *table, size_t row)
{
	const char *alias = table->rows[row].alias;

	for (size_t i = 0; alias && i < table->len; i++)
		if (table->rows[i].name && strcmp(table->rows[i].name, alias) == 0)
			return i;
	return row;
}

/* Fills the tables for getopt_long(3). An alias has the same value as its option, because
 * getopt_long(3) then does not consider a common abbreviation ambiguous. */
static void getopt_table_init(struct getopt_table *out,
			      const struct pm_option_table *table,
			      enum pm_options_order order)
{
	struct option *name = out->names;
	char *letter = out->letters;

	if (order == PM_OPTIONS_FIRST)
		*letter++ = '+';
	*letter++ = ':';
	for (size_t i = 0; i < table->len && i < PM_OPTIONS_MAX; i++) {
		size_t row = option_row_of_alias(table, i);
		const struct pm_option *option = &table->rows[row];
		int value = OPTION_LONG + (int)row;

		if (table->rows[i].letter) {
			*letter++ = option->letter;
			if (option_has_arg(option) == required_argument)
				*letter++ = ':';
		}
		if (option->letter)
			value = option->letter;
		if (table->rows[i].name)
			*name++ = (struct option){ table->rows[i].name,
						   option_has_arg(option), NULL, value };
	}
	*letter = '\0';
	*name = (struct option){ NULL, 0, NULL, 0 };
}

static size_t option_row_of_value(const struct pm_option_table *table, int value)
{
	size_t row = 0;

	if (value >= OPTION_LONG)
		return (size_t)(value - OPTION_LONG);
	while (table->rows[row].letter != value)
		row++;
	return row;
}

int pm_options_parse(const struct pm_option_table *table, void *to, int argc, char **argv,
		     enum pm_options_order order, bool *seen, struct pm_error *err)
{
	struct getopt_table getopt_table;

	getopt_table_init(&getopt_table, table, order);
	for (;;) {
		/* The index of the current word, for messages, because getopt() moves
		 * words. */
		int at = PM_MAX(optind, 1), ret;
		int value = getopt_long(argc, argv, getopt_table.letters,
					getopt_table.names, NULL);
		char label[LABEL_BYTES];
		struct pm_option_use use = { .program = table->program,
					     .label = label,
					     .text = optarg };
		size_t row;

		if (value == -1)
			return 0;
		if (value == '?' || value == ':')
			return pm_usage_option(err, table->program, getopt_table.names,
					       value,
					       argv[optind > at ? optind - 1 : at]);
		row = option_row_of_value(table, value);
		use.option = &table->rows[row];
		if (use.option->letter)
			snprintf(label, sizeof(label), "-%c", use.option->letter);
		else
			snprintf(label, sizeof(label), "--%s", use.option->name);
		ret = option_apply(to, &use, err);
		if (ret < 0)
			return ret;
		if (use.option->last)
			return 1;
		if (seen)
			seen[row] = true;
	}
}

/* ---- output ------------------------------------------------------------------------------- */

static void put_spaces(size_t count, FILE *to)
{
	fprintf(to, "%*s", (int)count, "");
}

/* Prints @text from HELP_COLUMN on, in lines of whole words. The first line already has
 * @columns columns. */
static void put_wrapped_help(const char *text, size_t columns, FILE *to)
{
	if (columns >= HELP_COLUMN) {
		fputc('\n', to);
		columns = 0;
	}
	put_spaces(HELP_COLUMN - columns, to);
	columns = HELP_COLUMN;
	while (*text) {
		size_t len = strcspn(text, " "), width = 0;

		for (size_t i = 0; i < len; i++) /* counts UTF-8 characters */
			width += (text[i] & 0xc0) != 0x80;
		if (columns > HELP_COLUMN && columns + 1 + width > HELP_COLUMNS) {
			fputc('\n', to);
			put_spaces(HELP_COLUMN, to);
			columns = HELP_COLUMN;
		} else if (columns > HELP_COLUMN) {
			fputc(' ', to);
			columns++;
		}
		fwrite(text, 1, len, to);
		columns += width;
		text += len + (text[len] == ' ');
	}
	fputc('\n', to);
}

void pm_options_print_help(const struct pm_option_table *table, FILE *to)
{
	fputs(table->before, to);
	for (size_t i = 0; i < table->len; i++) {
		const struct pm_option *option = &table->rows[i];
		const char *argument = pm_text_or_empty(option->argument);
		char left[HELP_COLUMNS * 2], letter[8] = "    ";
		bool optional = option_has_arg(option) == optional_argument;

		if (!option->help)
			continue;
		if (!option->name && !option->letter) {
			fprintf(to, "\n%s\n", option->help);
			continue;
		}
		if (option->letter)
			snprintf(letter, sizeof(letter), "-%c%s", option->letter,
				 pm_text_if(option->name, ", "));
		snprintf(left, sizeof(left), "  %s%s%s%s%s", letter,
			 pm_text_if(option->name, "--"), pm_text_or_empty(option->name),
			 pm_text_if(argument[0] && !optional, " "), argument);
		fputs(left, to);
		put_wrapped_help(option->help, pm_columns(left), to);
	}
	fputs(table->after, to);
}

void pm_options_print_table(const struct pm_option_table *table)
{
	static const char *const kinds[] = {
		[PM_OPTION_ANY] = "any",           [PM_OPTION_WORD] = "word",
		[PM_OPTION_NUMBER] = "any",        [PM_OPTION_DURATION] = "any",
		[PM_OPTION_SIZE] = "any",          [PM_OPTION_FILE] = "file",
		[PM_OPTION_FOLDER] = "folder",     [PM_OPTION_EVENT] = "event",
		[PM_OPTION_PROCESS] = "process",   [PM_OPTION_USER] = "user",
		[PM_OPTION_REVISION] = "revision", [PM_OPTION_COMMAND] = "command",
	};

	printf("%s\t%s\t%s\t%s\n", table->program, pm_text_or_empty(table->modes),
	       pm_text_or_empty(table->command_modes), pm_text_or_empty(table->files));
	for (size_t i = 0; i < table->len; i++) {
		const struct pm_option *option = &table->rows[i];

		if (!option->help || (!option->name && !option->letter))
			continue;
		printf("%s\t%.1s\t%s\t%s\t%s\t%s\t%s\t%s\n",
		       pm_text_or_empty(option->name), &option->letter,
		       pm_text_or_empty(option->argument), kinds[option->kind],
		       pm_text_or_empty(option->words),
		       pm_text_or_empty(option->excludes),
		       pm_text_if(option->repeatable, "*"), option->help);
	}
}
