/* SPDX-License-Identifier: MIT */
#include "trend.h"

#include <stdio.h>
#include <string.h>

#include "history.h"

static int trends_add_warning(struct pm_trends *trends, char *text)
{
	return pm_vec_push(&trends->warnings, text);
}

/* Moves the warnings to @trends. */
static int trends_take_warnings(struct pm_trends *trends, struct pmdiff_history *history)
{
	while (history->warnings.len > 0) {
		if (trends_add_warning(
			    trends, history->warnings.data[history->warnings.len - 1]) <
		    0)
			return -ENOMEM;
		history->warnings.len--;
	}
	if (history->foreign > 0) {
		char *text;

		if (asprintf(&text, "%zu %s of the history %s left out: not of a commit.",
			     history->foreign,
			     pm_plural(history->foreign, "entry", "entries"),
			     pm_plural(history->foreign, "was", "were")) < 0)
			return -ENOMEM;
		if (trends_add_warning(trends, text) < 0) {
			free(text);
			return -ENOMEM;
		}
	}
	if (history->commits.len == 0) {
		char *text =
			strdup("The history has no commit yet: `pmdiff run` with the "
			       "same --history adds those that it measures.");

		if (!text || trends_add_warning(trends, text) < 0) {
			free(text);
			return -ENOMEM;
		}
	}
	return 0;
}

int pmdiff_trend(struct pm_trends *out, const struct pmdiff_options *options,
		 struct pm_error *err)
{
	PM_CLEANUP(pmdiff_history_release) struct pmdiff_history history = { 0 };
	struct pm_trends trends = { 0 };
	PM_AUTO_FREE struct pm_trend_of *commits = NULL;
	size_t len = 0, documents = 0;
	int ret = pmdiff_history_read(&history, options->history, err);

	if (ret < 0)
		return ret;
	for (size_t i = 0; i < history.commits.len; i++)
		documents += history.commits.data[i].suite.cases.len;
	commits = calloc(documents + 1, sizeof(*commits));
	if (!commits)
		return pm_error_no_memory(err);
	for (size_t i = 0; i < history.commits.len; i++) {
		const struct pmdiff_history_commit *commit = &history.commits.data[i];

		for (size_t j = 0; j < commit->suite.cases.len; j++)
			commits[len++] = (struct pm_trend_of){
				.stat = &commit->suite.cases.data[j].stat,
				.case_name = commit->suite.cases.data[j].name,
				.commit = commit->commit,
				.subject = commit->subject,
			};
	}
	ret = pm_trends_find(&trends, commits, len, err);
	if (ret < 0)
		return ret;
	if (trends_take_warnings(&trends, &history) < 0) {
		pm_trends_release(&trends);
		return pm_error_no_memory(err);
	}
	*out = trends;
	return 0;
}
