/* SPDX-License-Identifier: MIT */
/* Sorts commits in git's order, and by time if git does not know them. */
#include <string.h>
#include <time.h>

#include "git.h"
#include "history-internal.h"

struct place {
	struct pmdiff_history_commit *commit;
	bool known; /* git knows the commit */
	size_t position; /* in the order of all commits, oldest first */
	int64_t time; /* seconds since 1970 */
};

struct places {
	PM_VEC(struct place) list; /* by hash, until they have been sorted */
};

/* ---- times ----------------------------------------------------------------------------- */

static int64_t stat_created_time(const struct pm_stat *stat)
{
	struct tm tm = { 0 };

	if (stat->subjects.len > 0 && stat->subjects.data[0].commit &&
	    stat->subjects.data[0].commit_time >= 0)
		return stat->subjects.data[0].commit_time;
	if (stat->created && strptime(stat->created, "%Y-%m-%dT%H:%M:%S", &tm))
		return (int64_t)timegm(&tm);
	if (stat->runs.len > 0)
		return (int64_t)(stat->runs.data[0].begin_ns / 1000000000);
	return 0;
}

/* ---- queries of git -------------------------------------------------------------------- */

static int compare_places_by_hash(const void *a, const void *b)
{
	const struct place *x = a, *y = b;

	return strcmp(x->commit->commit, y->commit->commit);
}

/* Returns the place of the hash at the start of *@at, or NULL if it is not in the
 * history. Advances *@at past the hash. */
static struct place *find_place_of_line(const struct places *places, const char **at)
{
	char hash[65];
	struct pmdiff_history_commit commit = { .commit = hash };
	struct place key = { .commit = &commit };
	size_t len = strspn(*at, "0123456789abcdef");

	if (!pmdiff_is_hash(*at, len))
		return NULL;
	memcpy(hash, *at, len);
	hash[len] = '\0';
	*at += len;
	return bsearch(&key, places->list.data, places->list.len, sizeof(key),
		       compare_places_by_hash);
}

enum which_places {
	KNOWN_PLACES, /* commits that git knows */
	ALL_PLACES,
};

/* Runs git for commits, one per line, and appends its output; appends nothing without git
 * or a repository. Returns 0 or -ENOMEM. */
static int run_git_on_places(const struct places *places, const char *const *args,
			     enum which_places which, struct pm_str *out)
{
	PM_CLEANUP(pm_str_release) struct pm_str input = { 0 };
	int ret, status;

	for (size_t i = 0; i < places->list.len; i++) {
		const struct place *place = &places->list.data[i];

		if (which == KNOWN_PLACES && !place->known)
			continue;
		pm_str_puts(&input, place->commit->commit);
		pm_str_putc(&input, '\n');
	}
	if (input.failed)
		return -ENOMEM;
	if (input.len == 0)
		return 0;
	ret = pmdiff_git_run(&(const struct pmdiff_git_call){ .args = args,
							      .input = input.data,
							      .input_len = input.len,
							      .status = &status },
			     out, NULL);
	if (ret == 0 && status != 0)
		pm_str_clear(out);
	if (ret == -ENOMEM)
		return ret;
	return 0;
}

static const char *find_next_line(const char *at)
{
	const char *end = strchr(at, '\n');

	if (end)
		return end + 1;
	return at + strlen(at);
}

static int find_known_places(struct places *places)
{
	static const char *const args[] = { "cat-file", "--batch-check", NULL };
	PM_CLEANUP(pm_str_release) struct pm_str out = { 0 };
	int ret = run_git_on_places(places, args, ALL_PLACES, &out);

	for (const char *at = pm_str_text(&out); ret == 0 && *at;
	     at = find_next_line(at)) {
		struct place *place = find_place_of_line(places, &at);

		if (place && strncmp(at, " commit ", 8) == 0)
			place->known = true;
	}
	return ret;
}

static int find_place_positions(struct places *places)
{
	static const char *const args[] = { "rev-list", "--topo-order", "--reverse",
					    "--stdin", NULL };
	PM_CLEANUP(pm_str_release) struct pm_str out = { 0 };
	size_t position = 0;
	int ret = run_git_on_places(places, args, KNOWN_PLACES, &out);

	/* 0 means that the commit was not listed. */
	for (const char *at = pm_str_text(&out); ret == 0 && *at;
	     at = find_next_line(at)) {
		struct place *place = find_place_of_line(places, &at);

		position++;
		if (place)
			place->position = position;
	}
	for (size_t i = 0; i < places->list.len; i++)
		places->list.data[i].known = places->list.data[i].position > 0;
	return ret;
}

/* Parses lines of the form "HASH TIME SUBJECT". */
static int find_place_subjects(struct places *places)
{
	static const char *const args[] = { "log",
					    "--no-walk=unsorted",
					    "--no-show-signature",
					    "--encoding=UTF-8",
					    "--format=%H %ct %s",
					    "--stdin",
					    NULL };
	PM_CLEANUP(pm_str_release) struct pm_str out = { 0 };
	int ret = run_git_on_places(places, args, KNOWN_PLACES, &out);

	for (const char *at = pm_str_text(&out); ret == 0 && *at;
	     at = find_next_line(at)) {
		struct place *place = find_place_of_line(places, &at);
		char *end;

		if (!place || *at != ' ' || place->commit->subject)
			continue;
		place->time = strtoll(at, &end, 10);
		at = end + (*end == ' ');
		place->commit->subject = strndup(at, strcspn(at, "\n"));
		if (!place->commit->subject)
			ret = -ENOMEM;
	}
	return ret;
}

/* ---- the order ------------------------------------------------------------------------- */

/* Commits that git knows come first, in its order; the others are sorted by time. */
static int compare_places_by_position(const void *a, const void *b)
{
	const struct place *x = a, *y = b;

	if (x->known != y->known)
		return PM_COMPARE(y->known, x->known);
	if (x->known)
		return PM_COMPARE(x->position, y->position);
	if (x->time != y->time)
		return PM_COMPARE(x->time, y->time);
	return compare_places_by_hash(a, b);
}

/* Sorts the history. A commit that git does not know is put before the first newer one
 * that it knows. */
static int sort_history_by_places(struct pmdiff_history *history, struct places *places)
{
	const struct place *list = places->list.data;
	size_t len = places->list.len, known = 0, at = 0, other;
	struct pmdiff_history_commit *sorted = calloc(len, sizeof(*sorted));

	if (!sorted)
		return -ENOMEM;
	qsort(places->list.data, len, sizeof(*list), compare_places_by_position);
	while (known < len && list[known].known)
		known++;
	other = known;
	for (size_t i = 0; i < known; i++) {
		while (other < len && list[other].time < list[i].time)
			sorted[at++] = *list[other++].commit;
		sorted[at++] = *list[i].commit;
	}
	while (other < len)
		sorted[at++] = *list[other++].commit;
	memcpy(history->commits.data, sorted, len * sizeof(*sorted));
	free(sorted);
	return 0;
}

int pmdiff_history_order(struct pmdiff_history *history, struct pm_error *err)
{
	struct places places = { 0 };
	int ret = 0;

	for (size_t i = 0; ret == 0 && i < history->commits.len; i++) {
		struct pmdiff_history_commit *commit = &history->commits.data[i];

		ret = pm_vec_push(
			&places.list,
			(struct place){ .commit = commit,
					.time = stat_created_time(
						&commit->suite.cases.data[0].stat) });
	}
	if (ret == 0 && places.list.len > 0) {
		qsort(places.list.data, places.list.len, sizeof(*places.list.data),
		      compare_places_by_hash);
		ret = find_known_places(&places);
		if (ret == 0)
			ret = find_place_positions(&places);
		if (ret == 0)
			ret = find_place_subjects(&places);
		if (ret == 0)
			ret = sort_history_by_places(history, &places);
	}
	pm_vec_release(&places.list);
	if (ret < 0)
		return pm_error_set(err, ret, "out of memory");
	return 0;
}
