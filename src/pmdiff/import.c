/* SPDX-License-Identifier: MIT */
#include "import.h"

#include "git.h"
#include "history.h"
#include "pm/run.h"
#include "say.h"

enum {
	FILE_MODE = 0666,
};

/* Prints the warnings of all cases. */
static void report_import_warnings(const struct pmdiff_options *options,
				   const struct pm_suite *suite)
{
	for (size_t i = 0; i < suite->cases.len; i++) {
		const struct pm_suite_case *one = &suite->cases.data[i];

		for (size_t j = 0; j < one->stat.warnings.len; j++)
			pmdiff_say(
				options, "warning: %s%s%s", pm_text_or_empty(one->name),
				pm_text_if(one->name, ": "), one->stat.warnings.data[j]);
	}
}

static int write_imported_suite(const struct pmdiff_options *options,
				const struct pm_suite *suite, struct pm_error *err)
{
	PM_CLEANUP(pm_sink_release) struct pm_sink sink = { 0 };
	int ret = pm_sink_open(&sink, options->imported.path, FILE_MODE, err);

	if (ret == 0)
		ret = pm_suite_write(suite, fileno(sink.file), err);
	if (ret < 0)
		return ret;
	return pm_sink_close(&sink, err);
}

/* Finds the commit that the numbers belong to: the one that the user named, or else the
 * one in the tool's file. */
static int find_imported_commit(const struct pmdiff_options *options,
				const struct pm_suite *suite, char **out,
				struct pm_error *err)
{
	PM_CLEANUP(pmdiff_repository_release) struct pmdiff_repository repository = { 0 };
	PM_CLEANUP(pmdiff_commit_release) struct pmdiff_commit commit = { 0 };
	const char *known = suite->cases.data[0].stat.subjects.data[0].commit;
	int ret;

	if (!options->commit && known)
		return pm_stat_text(out, known);
	if (!options->commit) {
		pm_error_set(err, -EINVAL, "the file does not say of which commit it is");
		pm_error_where(err, options->imported.file, -1);
		pm_error_fix(err, "--commit HEAD");
		return -EINVAL;
	}
	ret = pmdiff_repository_open(&repository, err);
	if (ret == 0)
		ret = pmdiff_commit_find(&commit, &repository, options->commit, err);
	if (ret < 0)
		return ret;
	return pm_stat_text(out, commit.hash);
}

static int keep_imported_suite(const struct pmdiff_options *options,
			       const struct pm_suite *suite, struct pm_error *err)
{
	PM_AUTO_FREE char *commit = NULL;
	int ret = find_imported_commit(options, suite, &commit, err);

	if (ret < 0)
		return ret;
	return pmdiff_history_write_suite(options->history, commit, suite, err);
}

int pmdiff_import(const struct pmdiff_options *options, struct pm_error *err)
{
	PM_CLEANUP(pm_suite_release) struct pm_suite suite = { 0 };
	int ret = pm_import_read(&suite, options->imported.file, options->imported.format,
				 err);

	if (ret < 0)
		return ret;
	report_import_warnings(options, &suite);
	if (options->history)
		ret = keep_imported_suite(options, &suite, err);
	if (ret == 0 && (!options->history || options->imported.path))
		ret = write_imported_suite(options, &suite, err);
	return ret;
}
