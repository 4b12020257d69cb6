/* SPDX-License-Identifier: MIT */
#include "bisect-internal.h"

#include <string.h>

void pmdiff_hashes_release(struct pmdiff_hashes *hashes)
{
	for (size_t i = 0; i < hashes->list.len; i++)
		free(hashes->list.data[i]);
	pm_vec_release(&hashes->list);
}

void pmdiff_range_release(struct pmdiff_range *range)
{
	free(range->bad);
	pmdiff_hashes_release(&range->good);
	pmdiff_hashes_release(&range->skipped);
	*range = (struct pmdiff_range){ 0 };
}

int pmdiff_range_add(struct pmdiff_hashes *hashes, const char *hash, struct pm_error *err)
{
	char *own = strdup(hash);

	if (own && pm_vec_push(&hashes->list, own) == 0)
		return 0;
	free(own);
	return pm_error_no_memory(err);
}

static bool hashes_contain(const struct pmdiff_hashes *hashes, const char *hash,
			   size_t len)
{
	for (size_t i = 0; i < hashes->list.len; i++)
		if (strlen(hashes->list.data[i]) == len &&
		    memcmp(hashes->list.data[i], hash, len) == 0)
			return true;
	return false;
}

/* Checks that good is an ancestor of bad; otherwise, the change may be on no path between
 * them. */
static int range_check_ancestor(const char *good, const char *bad, struct pm_error *err)
{
	PM_CLEANUP(pm_str_release) struct pm_str base = { 0 };
	int status, ret;

	ret = pmdiff_git_run(
		&(const struct pmdiff_git_call){
			.args = (const char *const[]){ "merge-base", "--is-ancestor",
						       good, bad, NULL },
			.status = &status,
		},
		NULL, err);
	if (ret < 0 || status == 0)
		return ret;
	pm_error_set(err, -EINVAL,
		     PMDIFF_SHORT_HASH " is no ancestor of " PMDIFF_SHORT_HASH
				       ": nothing leads from good to bad",
		     good, bad);
	ret = pmdiff_git_run(
		&(const struct pmdiff_git_call){
			.args = (const char *const[]){ "merge-base", good, bad, NULL },
			.status = &status,
		},
		&base, NULL);
	if (ret == 0 && status == 0 && base.len > 0)
		pm_error_fix(err, "--good " PMDIFF_SHORT_HASH ", where they parted",
			     base.data);
	return -EINVAL;
}

int pmdiff_range_init(struct pmdiff_range *out, const char *good, const char *bad,
		      struct pm_error *err)
{
	struct pmdiff_range range = { .bad = strdup(bad) };
	int ret;

	if (range.bad)
		ret = range_check_ancestor(good, bad, err);
	else
		ret = pm_error_no_memory(err);
	if (ret == 0)
		ret = pmdiff_range_add(&range.good, good, err);
	if (ret < 0) {
		pmdiff_range_release(&range);
		return ret;
	}
	*out = range;
	return 0;
}

/* Runs `rev-list OPTION bad --not good…`. The commits are passed on stdin, because there
 * may be many. */
static int range_list_commits(struct pm_str *out, const struct pmdiff_range *range,
			      const char *option, struct pm_error *err)
{
	PM_CLEANUP(pm_str_release) struct pm_str input = { 0 };
	struct pmdiff_git_call call = {
		.args = (const char *const[]){ "rev-list", option, "--stdin", NULL },
	};

	pm_str_printf(&input, "%s\n", range->bad);
	for (size_t i = 0; i < range->good.list.len; i++)
		pm_str_printf(&input, "^%s\n", range->good.list.data[i]);
	if (input.failed)
		return pm_error_no_memory(err);
	call.input = input.data;
	call.input_len = input.len;
	return pmdiff_git_run(&call, out, err);
}

int pmdiff_range_next(char **out, size_t *ret_left, const struct pmdiff_range *range,
		      struct pm_error *err)
{
	PM_CLEANUP(pm_str_release) struct pm_str commits = { 0 };
	char *best = NULL;
	size_t left = 0;
	int ret = range_list_commits(&commits, range, "--bisect-all", err);

	if (ret < 0)
		return ret;
	/* Each line is "HASH (dist=N)", with the best commit first. */
	for (const char *line = commits.data; line && *line;
	     line = strchr(line, '\n') + 1) {
		size_t len = strspn(line, "0123456789abcdef");

		left++;
		if (!best && len > 0 && !hashes_contain(&range->skipped, line, len) &&
		    strncmp(line, range->bad, len) != 0 && !(best = strndup(line, len)))
			return pm_error_no_memory(err);
		if (!strchr(line, '\n'))
			break;
	}
	*out = best;
	*ret_left = left;
	return 0;
}

int pmdiff_range_left(struct pmdiff_hashes *out, const struct pmdiff_range *range,
		      struct pm_error *err)
{
	PM_CLEANUP(pm_str_release) struct pm_str commits = { 0 };
	struct pmdiff_hashes hashes = { 0 };
	char *line = NULL, *rest = NULL;
	int ret = range_list_commits(&commits, range, "--topo-order", err);

	if (commits.data)
		line = strtok_r(commits.data, "\n", &rest);
	for (; ret == 0 && line; line = strtok_r(NULL, "\n", &rest))
		ret = pmdiff_range_add(&hashes, line, err);
	if (ret < 0) {
		pmdiff_hashes_release(&hashes);
		return ret;
	}
	*out = hashes;
	return 0;
}
