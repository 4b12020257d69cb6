/* SPDX-License-Identifier: MIT */
/*
 * Accepts regressions. They are stored in a file of the repository, which is reviewed
 * with the change that causes the cost, and stays with the commit.
 */
#include "ack.h"

#include <fnmatch.h>
#include <math.h>
#include <string.h>
#include <time.h>

#include "git.h"
#include "history.h"
#include "pm/compare.h"
#include "place.h"
#include "say.h"

enum {
	FILE_MODE = 0666,
	TOLD_MAX = 4, /* rows in a message */
};

static const char acks_name[] = "pmdiff-acks.json";

/* ---- the file -------------------------------------------------------------------------- */

static int acks_find_path(const struct pmdiff_options *options, char **out,
			  struct pm_error *err)
{
	PM_AUTO_FREE char *top = NULL;
	int ret;

	if (options->acked.file) {
		if (pm_stat_text(out, options->acked.file) < 0)
			return pm_error_no_memory(err);
		return 0;
	}
	ret = pmdiff_find_top(&top, err);
	if (ret < 0)
		return ret;
	if (asprintf(out, "%s%s%s", pm_text_or_empty(top), pm_text_if(top, "/"),
		     acks_name) < 0) {
		*out = NULL;
		return pm_error_no_memory(err);
	}
	return 0;
}

int pmdiff_acks_read(struct pm_acks *out, const struct pmdiff_options *options,
		     struct pm_error *err)
{
	PM_AUTO_FREE char *path = NULL;
	int ret = acks_find_path(options, &path, err);

	if (ret < 0)
		return ret;
	return pm_acks_read(out, path, err);
}

static int acks_write_file(const struct pmdiff_options *options,
			   const struct pm_acks *acks, struct pm_error *err)
{
	PM_CLEANUP(pm_str_release) struct pm_str text = { 0 };
	PM_CLEANUP(pm_sink_release) struct pm_sink sink = { 0 };
	PM_AUTO_FREE char *path = NULL;
	int ret = acks_find_path(options, &path, err);

	pm_acks_put(&text, acks);
	if (ret == 0 && text.failed)
		ret = pm_error_no_memory(err);
	if (ret == 0)
		ret = pm_sink_open(&sink, path, FILE_MODE, err);
	if (ret < 0)
		return ret;
	fwrite(text.data, 1, text.len, sink.file);
	ret = pm_sink_close(&sink, err);
	if (ret == 0)
		pmdiff_say(options, "%s: commit it with the change", path);
	return ret;
}

/* ---- listing --------------------------------------------------------------------------- */

static void print_field_printable(FILE *to, const char *before, const char *text)
{
	PM_CLEANUP(pm_str_release) struct pm_str line = { 0 };

	pm_str_printable(&line, text, strlen(text));
	fprintf(to, "%s%s", before, pm_str_text(&line));
}

static void acks_print_list(const struct pm_acks *acks, FILE *to)
{
	for (size_t i = 0; i < acks->list.len; i++) {
		const struct pm_ack *ack = &acks->list.data[i];

		print_field_printable(to, "", ack->row);
		if (isfinite(ack->from))
			fprintf(to, "  from %.6g", ack->from);
		fprintf(to, "  up to %.6g", ack->to);
		if (ack->commit) {
			print_field_printable(to, "  for ", "");
			fprintf(to, "%.10s", ack->commit);
		}
		print_field_printable(to, "\n  ", ack->reason);
		fputc('\n', to);
	}
	if (acks->list.len == 0)
		fputs("no regression is accepted\n", to);
}

/* ---- accepting ------------------------------------------------------------------------- */

/* State while regressions are accepted. */
struct accepting {
	const struct pmdiff_options *options;
	struct pm_acks *acks;
	const char *commit; /* full hash; NULL: unknown */
	char created[32];
	size_t accepted;
};

static int acks_accept_row(struct accepting *to, const char *row, double from,
			   double level, struct pm_error *err)
{
	struct pm_ack ack = { .from = from, .to = level };
	int ret = 0;

	if (pm_stat_text(&ack.row, row) < 0 ||
	    pm_stat_text(&ack.reason, to->options->acked.reason) < 0 ||
	    pm_stat_text(&ack.commit, to->commit) < 0 ||
	    pm_stat_text(&ack.created, to->created[0] ? to->created : NULL) < 0)
		ret = pm_error_no_memory(err);
	if (ret == 0)
		ret = pm_acks_set(to->acks, &ack, err);
	pm_ack_release(&ack);
	if (ret < 0)
		return ret;
	to->accepted++;
	pmdiff_say(to->options, "accepted: %s up to %.6g", row, level);
	return 0;
}

/* Names may contain brackets and stars, so they are also compared literally. */
static bool pattern_fits_row_or_case(const char *wanted, const char *row,
				     const char *case_name)
{
	return strcmp(wanted, row) == 0 ||
	       (case_name && strcmp(wanted, case_name) == 0) ||
	       fnmatch(wanted, row, 0) == 0;
}

static int set_row_not_failed_error(const struct pm_diff_result *result,
				    const struct pmdiff_options *options,
				    struct pm_error *err)
{
	PM_CLEANUP(pm_str_release) struct pm_str names = { 0 };
	size_t told = 0, failed = 0;

	for (size_t i = 0; i < result->rows.len; i++) {
		if (!result->rows.data[i].failed)
			continue;
		if (told < TOLD_MAX)
			pm_str_printf(&names, "%s%s", pm_text_if(told++ > 0, ", "),
				      result->rows.data[i].row);
		failed++;
	}
	pm_error_set(err, -EINVAL,
		     failed > 0 ? "%s has not failed: there is nothing to accept"
				: "%s: nothing has failed in this result",
		     options->acked.row);
	pm_error_where(err, options->acked.result, -1);
	if (failed > 0 && !names.failed)
		pm_error_fix(err, "one of: %s", names.data);
	return -EINVAL;
}

static int acks_accept_rows_of_result(struct accepting *to, struct pm_error *err)
{
	PM_CLEANUP(pm_diff_result_release) struct pm_diff_result result = { 0 };
	const struct pmdiff_options *options = to->options;
	int ret = pm_diff_result_read(&result, options->acked.result, err);

	if (ret < 0) {
		pm_error_where(err, options->acked.result, -1);
		return ret;
	}
	if (!to->commit)
		to->commit = result.commit;
	for (size_t i = 0; i < result.rows.len && ret == 0; i++) {
		const struct pm_diff_result_row *row = &result.rows.data[i];

		if (row->failed && isfinite(row->new) &&
		    pattern_fits_row_or_case(options->acked.row, row->row,
					     row->case_name))
			ret = acks_accept_row(to, row->row, row->base, row->new, err);
	}
	if (ret == 0 && to->accepted == 0)
		ret = set_row_not_failed_error(&result, options, err);
	to->commit = NULL;
	return ret;
}

static int acks_accept_changes(const struct pmdiff_options *options, struct pm_acks *acks,
			       struct pm_error *err)
{
	PM_CLEANUP(pmdiff_repository_release) struct pmdiff_repository repository = { 0 };
	PM_CLEANUP(pmdiff_commit_release) struct pmdiff_commit commit = { 0 };
	struct accepting to = { .options = options, .acks = acks };
	time_t now = time(NULL);
	struct tm tm;
	int ret = 0;

	if (gmtime_r(&now, &tm))
		strftime(to.created, sizeof(to.created), "%Y-%m-%dT%H:%M:%SZ", &tm);
	if (options->commit) {
		ret = pmdiff_repository_open(&repository, err);
		if (ret == 0)
			ret = pmdiff_commit_find(&commit, &repository, options->commit,
						 err);
		to.commit = commit.hash;
	}
	if (ret < 0)
		return ret;
	return acks_accept_rows_of_result(&to, err);
}

static int acks_remove_row(const struct pmdiff_options *options, struct pm_acks *acks,
			   struct pm_error *err)
{
	if (pm_acks_remove(acks, options->acked.row))
		return 0;
	pm_error_set(err, -EINVAL, "%s is not accepted", options->acked.row);
	pm_error_fix(err, "pmdiff ack, which lists what is");
	return -EINVAL;
}

static int acks_check_words(const struct pmdiff_options *options, struct pm_error *err)
{
	const struct pmdiff_acked *acked = &options->acked;

	if (!acked->row && !acked->remove && !acked->reason)
		return 0;
	if (!acked->row) {
		pm_error_set(err, -EINVAL, "no row is named");
		pm_error_fix(err, "pmdiff ack ROW --reason TEXT RESULT.json");
		return -EINVAL;
	}
	if (acked->remove && (acked->reason || acked->result)) {
		pm_error_set(err, -EINVAL, "--remove takes a row alone");
		pm_error_fix(err, "pmdiff ack --remove ROW");
		return -EINVAL;
	}
	if (acked->remove)
		return 0;
	if (!acked->reason) {
		pm_error_set(err, -EINVAL, "why is it accepted? --reason is missing");
		pm_error_fix(err, "pmdiff ack ROW --reason TEXT RESULT.json");
		return -EINVAL;
	}
	if (acked->reason[strspn(acked->reason, " \t\r\n")] == '\0')
		return pm_error_set(err, -EINVAL, "--reason is empty");
	if (!acked->result) {
		pm_error_set(
			err, -EINVAL,
			"which level is accepted? The result that failed is missing");
		pm_error_fix(err, "pmdiff run --json=result.json …; pmdiff ack ROW "
				  "--reason TEXT result.json");
		return -EINVAL;
	}
	return 0;
}

int pmdiff_ack(const struct pmdiff_options *options, FILE *to, struct pm_error *err)
{
	PM_CLEANUP(pm_acks_release) struct pm_acks acks = { 0 };
	int ret = acks_check_words(options, err);

	if (ret == 0)
		ret = pmdiff_acks_read(&acks, options, err);
	if (ret < 0)
		return ret;
	if (!options->acked.row) {
		acks_print_list(&acks, to);
		return 0;
	}
	if (options->acked.remove)
		ret = acks_remove_row(options, &acks, err);
	else
		ret = acks_accept_changes(options, &acks, err);
	if (ret < 0)
		return ret;
	return acks_write_file(options, &acks, err);
}
