/* SPDX-License-Identifier: MIT */
/* Parses values of options and the words after them, and reports wrong ones. */
#include "options-parts.h"

#include <string.h>

enum {
	WARMUPS_MAX = 1000000,
};

static const char separator[] = ":::"; /* same as for pmstat ab */

int pmdiff_parse_engine(const char **out, const char *text, struct pm_error *err)
{
	static const char *const names[] = { "auto", "count", "uprobe", "ptrace",
					     "callgrind" };

	for (size_t i = 0; i < PM_ARRAY_LEN(names); i++) {
		if (strcmp(names[i], text) == 0) {
			*out = text;
			return 0;
		}
	}
	return pmdiff_usage(err,
			    "--engine %s: expected auto, count, uprobe, ptrace or "
			    "callgrind",
			    text);
}

int pmdiff_parse_format(enum pm_import_format *out, const char *text,
			struct pm_error *err)
{
	PM_CLEANUP(pm_str_release) struct pm_str names = { 0 };

	for (enum pm_import_format i = 0; i < PM_IMPORT_FORMATS; i++) {
		const char *name = pm_import_format_name(i);

		if (strcmp(name, text) == 0) {
			*out = i;
			return 0;
		}
		pm_str_printf(&names, "%s%s", pm_text_if(i > 0, ", "), name);
	}
	if (names.failed)
		return pm_error_no_memory(err);
	return pmdiff_usage(err, "--format %s: expected one of %s", text, names.data);
}

int pmdiff_parse_warmups(uint64_t *out, const char *text, struct pm_error *err)
{
	uint64_t value;

	if (!pm_parse_u64(text, &value) || value > WARMUPS_MAX)
		return pmdiff_usage(err, "-w %s: expected a number of runs", text);
	*out = value;
	return 0;
}

int pmdiff_add_text(struct pmdiff_texts *texts, const char *text, struct pm_error *err)
{
	if (text[0] == '\0')
		return pmdiff_usage(err, "-e, --fn and --range need a name");
	if (pm_vec_push(&texts->list, text) < 0)
		return pm_error_no_memory(err);
	return 0;
}

static const char *const form_names[PMDIFF_FORMS] = {
	[PMDIFF_TEXT] = "text",           [PMDIFF_JSON] = "--json",
	[PMDIFF_MARKDOWN] = "--markdown", [PMDIFF_JUNIT] = "--junit",
	[PMDIFF_SARIF] = "--sarif",       [PMDIFF_HTML] = "--html",
};

/* Two outputs must not be written to the same file. */
static int check_output_path(const struct pmdiff_options *options, enum pmdiff_form form,
			     const char *path, struct pm_error *err)
{
	for (size_t i = 0; i < PMDIFF_FORMS; i++) {
		const struct pmdiff_output *other = &options->outputs[i];

		if (i == form || !other->wanted)
			continue;
		if (!path && !other->path && i != PMDIFF_TEXT)
			return pmdiff_usage(err,
					    "%s and %s would share standard output: "
					    "%s=FILE parts them",
					    form_names[i], form_names[form],
					    form_names[i]);
		if (path && other->path && strcmp(path, other->path) == 0)
			return pmdiff_usage(err, "%s and %s would write the same file %s",
					    form_names[i], form_names[form], path);
	}
	return 0;
}

int pmdiff_add_output(struct pmdiff_options *options, enum pmdiff_form form,
		      const char *path, struct pm_error *err)
{
	int ret;

	if (path && path[0] == '\0')
		return pm_parse_name(form_names[form], "a file", path, "pmdiff", err);
	if (path && strcmp(path, "-") == 0)
		path = NULL;
	ret = check_output_path(options, form, path, err);
	if (ret < 0)
		return ret;
	options->outputs[form] = (struct pmdiff_output){ .wanted = true, .path = path };
	if (!path)
		options->outputs[PMDIFF_TEXT].wanted = false;
	return 0;
}

/* ---- words ----------------------------------------------------------------------------- */

static int set_no_files_error(struct pm_error *err)
{
	pm_error_set(err, -EINVAL, "no files to compare");
	pm_error_fix(err, "pmdiff BASE.json NEW.json; pmdiff run --base REV -- COMMAND; "
			  "or pmdiff --help");
	return -EINVAL;
}

static int options_add_file(struct pmdiff_options *options, size_t side, const char *name,
			    struct pm_error *err)
{
	if (name[0] == '\0')
		return pm_parse_name("files", "a file", name, "pmdiff", err);
	if (pm_vec_push(&options->files[side].list, name) < 0)
		return pm_error_no_memory(err);
	return 0;
}

static int options_check_files(struct pmdiff_options *options, bool parted,
			       struct pm_error *err)
{
	size_t base = options->files[0].list.len, new = options->files[1].list.len;
	size_t streams = 0;

	for (size_t side = 0; side < PM_ARRAY_LEN(options->files); side++)
		for (size_t i = 0; i < options->files[side].list.len; i++)
			streams += strcmp(options->files[side].list.data[i], "-") == 0;
	if (parted && (base == 0 || new == 0))
		return pmdiff_usage(err, "%s: no files on the %s side", separator,
				    base == 0 ? "base" : "new");
	if (streams > 1)
		return pmdiff_usage(err, "standard input (-) can be read once only");
	return 0;
}

/* Without a separator, all words are first stored for the base. */
static int options_part_files(struct pmdiff_options *options, struct pm_error *err)
{
	struct pmdiff_texts *files = options->files;
	size_t len = files[0].list.len;

	if (len == 0)
		return set_no_files_error(err);
	if (len > 2)
		return pmdiff_usage(err,
				    "%zu files: %s parts those of the base from the "
				    "new ones",
				    len, separator);
	options->ab = len == 1;
	if (pm_vec_push(&files[1].list, files[0].list.data[len - 1]) < 0)
		return pm_error_no_memory(err);
	files[0].list.len = 1;
	return 0;
}

static int options_take_files(struct pmdiff_options *options, char **rest,
			      struct pm_error *err)
{
	bool parted = false;
	int ret = 0;

	for (; *rest && ret == 0; rest++) {
		if (strcmp(*rest, separator) != 0)
			ret = options_add_file(options, parted, *rest, err);
		else if (parted)
			ret = pmdiff_usage(err, "two sides are compared: one %s only",
					   separator);
		else
			parted = true;
	}
	if (ret == 0)
		ret = options_check_files(options, parted, err);
	if (ret < 0 || parted)
		return ret;
	return options_part_files(options, err);
}

/* import takes one word; ack takes a row and optionally a result. */
static int options_take_words(struct pmdiff_options *options, char **rest,
			      struct pm_error *err)
{
	bool import = options->action == PMDIFF_IMPORT;
	const char **to[2] = { import ? &options->imported.file : &options->acked.row,
			       import ? NULL : &options->acked.result };

	for (size_t i = 0; rest[i]; i++) {
		if (i >= PM_ARRAY_LEN(to) || !to[i])
			return pmdiff_usage(err, "%s: one %s at a time", rest[i],
					    import ? "file" : "row");
		if (rest[i][0] == '\0')
			return pmdiff_usage(err, "expected a name, not an empty text");
		*to[i] = rest[i];
	}
	if (!import || options->imported.file)
		return 0;
	pm_error_set(err, -EINVAL, "no file to import");
	pm_error_fix(err, "pmdiff import FILE -o OUT.json");
	return -EINVAL;
}

int pmdiff_take_words(struct pmdiff_options *options, char **rest, struct pm_error *err)
{
	switch (options->action) {
	case PMDIFF_COMPARE:
		return options_take_files(options, rest, err);
	case PMDIFF_RUN:
	case PMDIFF_BISECT:
		if (*rest && **rest == '\0')
			return pmdiff_usage(err, "the command has no name");
		if (*rest)
			options->measured.command = (const char *const *)rest;
		else
			options->measured.command = NULL;
		return 0;
	case PMDIFF_TREND:
		if (*rest)
			return pmdiff_usage(
				err, "%s: --trend is of a history, not of files", *rest);
		return 0;
	case PMDIFF_IMPORT:
	case PMDIFF_ACK:
		return options_take_words(options, rest, err);
	case PMDIFF_HELP:
	case PMDIFF_TELL_VERSION:
		break;
	}
	return 0;
}
