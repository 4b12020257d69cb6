/* SPDX-License-Identifier: MIT */
#include "workshop.h"

#include <string.h>

#include "say.h"

static int set_nothing_to_compare_error(struct pm_error *err,
					const struct pmdiff_workshop *workshop,
					const struct pmdiff_options *options, bool dirty)
{
	const char *const *revs = options->measured.revs;

	pm_error_set(err, -EINVAL,
		     "%.100s and %.100s are the same commit, " PMDIFF_SHORT_HASH
		     ": there is nothing to compare%s",
		     revs[0], revs[1], workshop->commits[0].hash,
		     pm_text_if(dirty, ", for what is not committed is left out"));
	if (dirty)
		pm_error_fix(err, "git commit, then --base HEAD~1");
	else
		pm_error_fix(err, "--base %s~1", revs[1]);
	return -EINVAL;
}

static bool is_path_below(const char *path, const char *top)
{
	size_t len = strlen(top);

	return strncmp(path, top, len) == 0 && (path[len] == '/' || path[len] == '\0');
}

/* Whether @word refers to a file in the user's working tree: by a path anywhere in the
 * word, or through symbolic links. */
static bool word_names_own_file(const char *word, const char *top)
{
	static const char of_names[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
		"0123456789._-";
	PM_AUTO_FREE char *path = NULL;

	if (word[0] == '/')
		path = realpath(word, NULL);
	if (path && is_path_below(path, top))
		return true;
	for (const char *at = word; (at = strstr(at, top)); at++)
		if (!strchr(of_names, at[strlen(top)]) || at[strlen(top)] == '\0')
			return true;
	return false;
}

static void warn_of_own_words(const struct pmdiff_options *options,
			      const char *const *command, const char *top)
{
	for (const char *const *word = command; word && *word; word++)
		if (word_names_own_file(*word, top))
			pmdiff_say(
				options,
				"warning: %.200s is in your own working tree, the same "
				"for both sides; name files from the top: ./FILE",
				*word);
}

/* Warns of files that belong to neither commit: both sides would use the same ones. */
static void warn_of_own_files(const struct pmdiff_workshop *workshop,
			      const struct pmdiff_options *options)
{
	const char *top = workshop->repository.top;
	const char *build = options->measured.build;

	if (!top || strcmp(top, "/") == 0)
		return;
	if (build && word_names_own_file(build, top))
		pmdiff_say(options,
			   "warning: --build names your own working tree, which is "
			   "neither side; name files from the top: ./FILE");
	if (options->cases.len == 0 || options->action == PMDIFF_BISECT)
		warn_of_own_words(options, options->measured.command, top);
	for (size_t i = 0; i < options->cases.len; i++)
		if (options->action == PMDIFF_RUN)
			warn_of_own_words(options,
					  options->cases.data[i].measured.command, top);
}

static int workshop_find_commits(struct pmdiff_workshop *workshop,
				 const struct pmdiff_options *options,
				 struct pm_error *err)
{
	int ret = pmdiff_repository_open(&workshop->repository, err), dirty;

	for (size_t i = 0; i < 2 && ret == 0; i++)
		ret = pmdiff_commit_find(&workshop->commits[i], &workshop->repository,
					 options->measured.revs[i], err);
	if (ret < 0)
		return ret;
	dirty = pmdiff_repository_is_dirty(&workshop->repository, err);
	if (dirty < 0)
		return dirty;
	if (strcmp(workshop->commits[0].hash, workshop->commits[1].hash) == 0)
		return set_nothing_to_compare_error(err, workshop, options, dirty);
	if (dirty)
		pmdiff_say(options,
			   "the working tree has changes that are not committed: "
			   "they are left out");
	warn_of_own_files(workshop, options);
	return 0;
}

static int workshop_check_out(struct pmdiff_workshop *workshop,
			      const char *const roles[2], struct pm_error *err)
{
	/* The lengths are equal, because paths are also on the stack. */
	static const char *const names[] = { "base", "head" };
	int ret = 0;

	for (size_t i = 0; i < 2 && ret == 0; i++) {
		struct pmdiff_tree *tree = &workshop->trees[i];

		tree->role = roles[i];
		tree->commit = &workshop->commits[i];
		pmdiff_progress_show(&workshop->meter.progress,
				     "pmdiff: checking %s out, " PMDIFF_SHORT_HASH,
				     tree->role, tree->commit->hash);
		ret = pmdiff_worktree_add(&tree->path, &workshop->folder, names[i],
					  tree->commit->hash, err);
	}
	pmdiff_progress_clear(&workshop->meter.progress);
	return ret;
}

void pmdiff_workshop_release(struct pmdiff_workshop *workshop)
{
	pmdiff_meter_release(&workshop->meter);
	pmdiff_folder_release(&workshop->folder);
	for (size_t i = 0; i < 2; i++) {
		free(workshop->trees[i].path);
		pmdiff_tree_forget_missing(&workshop->trees[i]);
		pmdiff_commit_release(&workshop->commits[i]);
	}
	pmdiff_repository_release(&workshop->repository);
	*workshop = (struct pmdiff_workshop){ 0 };
}

int pmdiff_workshop_open(struct pmdiff_workshop *out,
			 const struct pmdiff_options *options, const char *const roles[2],
			 struct pm_error *err)
{
	int ret;

	*out = (struct pmdiff_workshop){ 0 };
	ret = workshop_find_commits(out, options, err);
	if (ret == 0)
		ret = pmdiff_guard_enter(&out->folder, out->repository.common_dir, err);
	if (ret == 0) {
		pmdiff_folders_sweep(out->repository.common_dir);
		ret = pmdiff_meter_init(&out->meter, options, &out->folder,
					out->repository.top, err);
	}
	if (ret == 0)
		ret = workshop_check_out(out, roles, err);
	if (ret < 0)
		pmdiff_workshop_release(out);
	return ret;
}
