/* SPDX-License-Identifier: MIT */
#include "print.h"

#include <langinfo.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "pm/compare-output.h"
#include "pm/output.h"

enum {
	FILE_MODE = 0666,
};

static bool is_locale_ascii(void)
{
	return strcmp(nl_langinfo(CODESET), "UTF-8") != 0;
}

/* ---- one format -------------------------------------------------------------------------- */

static int write_profile_page(const struct pmdiff_shown *shown, FILE *to,
			      struct pm_error *err)
{
	const struct pm_filter everything = { 0 };
	struct pm_report report = {
		.profile = shown->new,
		.base = shown->base,
		.filter = &everything,
		.event = PM_PROFILE_NONE,
		.limit = PM_LIMIT_DEFAULT,
	};

	return pm_output_html(&report, to, err);
}

static int write_comparison_as(const struct pmdiff_options *options, const void *what,
			       enum pmdiff_form form, FILE *to, struct pm_error *err)
{
	const struct pmdiff_shown *shown = what;
	struct pm_compare_report report = {
		.comparison = shown->comparison,
		.failure = shown->failure,
		.quiet = options->quiet,
		.color = pm_color_is_wanted(options->color, STDOUT_FILENO),
		.ascii = is_locale_ascii(),
		.all = options->all,
		.width = pm_sink_width(STDOUT_FILENO),
	};

	switch (form) {
	case PMDIFF_JSON:
		return pm_output_compare_json(&report, to, err);
	case PMDIFF_MARKDOWN:
		return pm_output_compare_markdown(&report, to, err);
	case PMDIFF_JUNIT:
		return pm_output_compare_junit(&report, to, err);
	case PMDIFF_SARIF:
		return pm_output_compare_sarif(&report, to, err);
	case PMDIFF_HTML:
		if (shown->new)
			return write_profile_page(shown, to, err);
		return pm_output_compare_html(&report, to, err);
	case PMDIFF_TEXT:
	case PMDIFF_FORMS:
		break;
	}
	if (shown->failure)
		return 0; /* printed on standard error */
	return pm_output_compare_text(&report, to, err);
}

/* Writes text, JSON or HTML; the options allow no other formats. */
static int write_trends_as(const struct pmdiff_options *options, const void *what,
			   enum pmdiff_form form, FILE *to, struct pm_error *err)
{
	struct pm_trend_report report = {
		.trends = what,
		.quiet = options->quiet,
		.color = pm_color_is_wanted(options->color, STDOUT_FILENO),
		.ascii = is_locale_ascii(),
		.all = options->all,
		.width = pm_sink_width(STDOUT_FILENO),
		.title = options->history,
		.acks = &options->acks,
	};

	if (form == PMDIFF_JSON)
		return pm_output_trend_json(&report, to, err);
	if (form == PMDIFF_HTML)
		return pm_output_trend_html(&report, to, err);
	return pm_output_trend_text(&report, to, err);
}

/* ---- all formats ------------------------------------------------------------------------- */

typedef int (*write_fn)(const struct pmdiff_options *options, const void *what,
			enum pmdiff_form form, FILE *to, struct pm_error *err);

static int print_one_output(const struct pmdiff_options *options, enum pmdiff_form form,
			    write_fn write, const void *what, struct pm_error *err)
{
	PM_CLEANUP(pm_sink_release) struct pm_sink sink = { 0 };
	int ret = pm_sink_open(&sink, options->outputs[form].path, FILE_MODE, err);

	if (ret == 0)
		ret = write(options, what, form, sink.file, err);
	if (ret < 0)
		return ret;
	return pm_sink_close(&sink, err);
}

static int print_all_outputs(const struct pmdiff_options *options, write_fn write,
			     const void *what, struct pm_error *err)
{
	static const bool standard[] = { false, true };
	int ret = 0;

	for (size_t i = 0; i < PM_ARRAY_LEN(standard); i++) {
		for (enum pmdiff_form form = 0; form < PMDIFF_FORMS && ret == 0; form++) {
			const struct pmdiff_output *output = &options->outputs[form];

			if (output->wanted && (output->path == NULL) == standard[i])
				ret = print_one_output(options, form, write, what, err);
		}
	}
	return ret;
}

static bool are_paths_one_file(const char *a, const char *b)
{
	struct stat of_a, of_b;

	return a && b && stat(a, &of_a) == 0 && S_ISREG(of_a.st_mode) &&
	       stat(b, &of_b) == 0 && of_a.st_dev == of_b.st_dev &&
	       of_a.st_ino == of_b.st_ino;
}

/* Returns the reason why @path must not be overwritten, or NULL if it may be: inputs may
 * have been measured long ago, or written by hand, and are easily mistaken for
 * outputs. */
static const char *why_path_is_kept(const struct pmdiff_options *options,
				    const char *path)
{
	for (size_t side = 0; side < PM_ARRAY_LEN(options->files); side++)
		for (size_t i = 0; i < options->files[side].list.len; i++)
			if (are_paths_one_file(path, options->files[side].list.data[i]))
				return "it is compared";
	if (!are_paths_one_file(path, options->config.path))
		return NULL;
	return "it has the settings";
}

/* Stats the directory that a file will be in. */
static int stat_folder_of_path(struct stat *out, const char *path)
{
	size_t len = (size_t)(basename(path) - path);
	PM_AUTO_FREE char *folder = NULL;

	if (len > 0)
		folder = strndup(path, len);
	else
		folder = strdup(".");

	if (!folder)
		return -1;
	return stat(folder, out);
}

/* Refuses two outputs to the same file, however its name is written, because the first
 * one would be lost. */
static int check_outputs_apart(const char *a, const char *b, struct pm_error *err)
{
	struct stat of_a, of_b;

	if (strcmp(basename(a), basename(b)) != 0 || stat_folder_of_path(&of_a, a) < 0 ||
	    stat_folder_of_path(&of_b, b) < 0 || of_a.st_dev != of_b.st_dev ||
	    of_a.st_ino != of_b.st_ino)
		return 0;
	pm_error_set(err, -EINVAL, "would be written twice: %s is the same file", b);
	pm_error_where(err, a, -1);
	return -EINVAL;
}

static int check_one_output(const struct pmdiff_options *options, const char *path,
			    struct pm_error *err)
{
	const char *why = why_path_is_kept(options, path);
	struct pm_sink sink = { 0 };
	int ret;

	if (why) {
		pm_error_set(err, -EINVAL, "would be overwritten: %s", why);
		pm_error_where(err, path, -1);
		return -EINVAL;
	}
	ret = pm_sink_open(&sink, path, FILE_MODE, err);
	pm_sink_release(&sink);
	return ret;
}

int pmdiff_print_check(const struct pmdiff_options *options, struct pm_error *err)
{
	for (enum pmdiff_form form = 0; form < PMDIFF_FORMS; form++) {
		const char *path = options->outputs[form].path;
		int ret = 0;

		if (path)
			ret = check_one_output(options, path, err);
		for (size_t other = 0; path && other < form && ret == 0; other++)
			if (options->outputs[other].path)
				ret = check_outputs_apart(
					path, options->outputs[other].path, err);
		if (ret < 0)
			return ret;
	}
	return 0;
}

int pmdiff_print_comparison(const struct pmdiff_options *options,
			    const struct pmdiff_shown *shown, struct pm_error *err)
{
	return print_all_outputs(options, write_comparison_as, shown, err);
}

static char *copy_side_name(const struct pmdiff_options *options, size_t side)
{
	const struct pmdiff_texts *files = &options->files[side];

	if (options->action == PMDIFF_COMPARE)
		return strdup(files->list.data[0]);
	return strdup(options->measured.revs[side]);
}

int pmdiff_print_failure(const struct pmdiff_options *options,
			 const struct pm_comparison *comparison,
			 const struct pm_error *why, struct pm_error *err)
{
	char failure[sizeof(*why)];
	PM_AUTO_FREE char *base = copy_side_name(options, 0),
			  *new = copy_side_name(options, 1);
	struct pm_comparison told = *comparison; /* borrows everything */
	struct pmdiff_shown shown = { .comparison = &told, .failure = failure };

	snprintf(failure, sizeof(failure), "%s%s%s%s%s", why->source,
		 pm_text_if(why->source[0], ": "), why->text,
		 pm_text_if(why->fix[0], "; try: "), why->fix);
	if (!told.base.name)
		told.base.name = base;
	if (!told.new.name)
		told.new.name = new;
	return print_all_outputs(options, write_comparison_as, &shown, err);
}

int pmdiff_print_trends(const struct pmdiff_options *options,
			const struct pm_trends *trends, struct pm_error *err)
{
	return print_all_outputs(options, write_trends_as, trends, err);
}
