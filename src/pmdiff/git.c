/* SPDX-License-Identifier: MIT */
#include "git.h"

#include <fcntl.h>
#include <string.h>
#include <sys/file.h>

#include "pm/run.h"
#include "process.h"

enum {
	LOCK_AGAIN_US = 2000,
	SHA1_DIGITS = 40,
	SHA256_DIGITS = 64,
};
#define LOCK_NS_MAX (60 * UINT64_C(1000000000))

/* ---- running git --------------------------------------------------------------------- */

/* Precedes the arguments of each call: no pager, no hooks, no automatic maintenance. */
static const char *const always[] = {
	"git", "--no-pager", "-c", "core.hooksPath=/dev/null",
	"-c",  "gc.auto=0",  "-c", "maintenance.auto=false",
};

/* Untranslated messages, no prompts, and no locks that could block another git. */
static const char *const environment[] = {
	"LC_ALL=C", "LANGUAGE=C", "GIT_TERMINAL_PROMPT=0", "GIT_OPTIONAL_LOCKS=0", NULL,
};

struct words {
	PM_VEC(const char *) list;
};

static int words_fill_git(struct words *words, const char *const *args)
{
	int ret = 0;

	for (size_t i = 0; i < PM_ARRAY_LEN(always) && ret == 0; i++)
		ret = pm_vec_push(&words->list, always[i]);
	for (; *args && ret == 0; args++)
		ret = pm_vec_push(&words->list, *args);
	if (ret < 0)
		return ret;
	return pm_vec_push(&words->list, NULL);
}

/* Finds the place where git reports a full disk, which need not be in the last line, and
 * may lack the reason. */
static const char *find_full_disk_message(const char *said)
{
	const char *at = strstr(said, "unable to write file");

	if (at)
		return at;
	return strstr(said, "No space left");
}

/* Finds the line that contains @at, without the prefix of git's errors. Returns its
 * length. */
static size_t find_line_around(const char **at, const char *said)
{
	const char *line = *at;

	while (line > said && line[-1] != '\n')
		line--;
	if (strncmp(line, "error: ", 7) == 0 || strncmp(line, "fatal: ", 7) == 0)
		line += 7;
	*at = line;
	return strcspn(line, "\n");
}

/* Finds the most informative line: one about a full disk, or else one with the prefix of
 * git's errors, or else the first one. Returns its length. */
static size_t find_telling_line(const char **at)
{
	static const char *const words[] = { "fatal: ", "error: " };
	const char *said = *at, *found = find_full_disk_message(said);

	for (size_t i = 0; i < PM_ARRAY_LEN(words) && !found; i++)
		found = strstr(said, words[i]);
	*at = pm_text_or(found, said);
	return find_line_around(at, said);
}

/* In the case of another user's directory, git prints the command that permits it on a
 * separate, indented line. */
static void suggest_fix_for_git(struct pm_error *err, const char *said)
{
	const char *fix = strstr(said, "\tgit ");

	if (fix)
		pm_error_fix(err, "%.*s", (int)strcspn(fix + 1, "\n"), fix + 1);
	else if (find_full_disk_message(said))
		pm_error_fix(err, "TMPDIR=DIR pmdiff …, where there is more room");
}

static int set_git_failed_error(struct pm_error *err, const struct pmdiff_git_call *call,
				int status, const struct pm_str *said)
{
	const char *line = pm_str_text(said);
	size_t len = find_telling_line(&line);

	if (len == 0)
		return pm_error_set(err, -EIO, "git %s failed with status %d",
				    call->args[0], status);
	pm_error_set(err, -EIO, "git says: %.*s", (int)len, line);
	suggest_fix_for_git(err, said->data);
	return -EIO;
}

static int set_git_not_run_error(struct pm_error *err, const struct pmdiff_git_call *call,
				 int code)
{
	if (code != -ENOENT)
		return pm_error_set(err, code, "cannot run git: %s", strerror(-code));
	if (call->dir && access(call->dir, X_OK) < 0) {
		pm_error_set(err, code, "cannot enter it: %s", strerror(errno));
		pm_error_where(err, call->dir, -1);
		return code;
	}
	pm_error_set(err, code, "git is not installed, or not in PATH");
	pm_error_fix(err, "apt install git");
	return code;
}

int pmdiff_git_run(const struct pmdiff_git_call *call, struct pm_str *out,
		   struct pm_error *err)
{
	PM_CLEANUP(pmdiff_output_text_release) struct pmdiff_output_text text = { 0 };
	struct words words = { 0 };
	struct pmdiff_process process = { .dir = call->dir, .env = environment };
	int status;

	status = words_fill_git(&words, call->args);
	if (status == 0) {
		process.argv = words.list.data;
		status = pmdiff_process_read(&process, call->input, call->input_len,
					     &text);
	}
	pm_vec_release(&words.list);
	if (status < 0)
		return set_git_not_run_error(err, call, status);
	if (status > 0 && !call->status)
		return set_git_failed_error(err, call, status, &text.err);
	if (out) {
		pm_str_append(out, pm_str_text(&text.out), text.out.len);
		if (out->failed)
			return pm_error_no_memory(err);
	}
	if (call->status)
		*call->status = status;
	return 0;
}

/* ---- the current repository ---------------------------------------------------------- */

/* Returns a copy of the line at *@at, or NULL if memory runs out. */
static char *take_line_of_output(const char **at)
{
	size_t len = strcspn(*at, "\n");
	char *line = strndup(*at, len);

	*at += len + ((*at)[len] == '\n');
	return line;
}

void pmdiff_repository_release(struct pmdiff_repository *repository)
{
	free(repository->common_dir);
	free(repository->top);
	*repository = (struct pmdiff_repository){ 0 };
}

/* Each question is a separate call, because the name of a directory may contain a
 * newline. */
static int ask_git_path(char **out, struct pm_error *err, const char *what)
{
	PM_CLEANUP(pm_str_release) struct pm_str answer = { 0 };
	int ret = pmdiff_git(NULL, &answer, err, "rev-parse", what);

	if (ret < 0)
		return ret;
	if (answer.len > 0 && answer.data[answer.len - 1] == '\n')
		answer.data[--answer.len] = '\0';
	*out = PM_TAKE_PTR(answer.data);
	if (!*out)
		return pm_error_no_memory(err);
	return 0;
}

int pmdiff_repository_open(struct pmdiff_repository *out, struct pm_error *err)
{
	struct pmdiff_repository repository = { 0 };
	PM_AUTO_FREE char *common = NULL, *inside = NULL, *shallow = NULL;
	int ret;

	ret = ask_git_path(&common, err, "--git-common-dir");
	if (ret == 0 && !(repository.common_dir = realpath(common, NULL))) {
		ret = pm_error_set(err, -errno, "%s", strerror(errno));
		pm_error_where(err, common, -1);
	}
	if (ret == 0)
		ret = ask_git_path(&shallow, err, "--is-shallow-repository");
	if (ret == 0)
		ret = ask_git_path(&inside, err, "--is-inside-work-tree");
	if (ret == 0 && strcmp(inside, "true") == 0)
		ret = ask_git_path(&repository.top, err, "--show-toplevel");
	if (ret < 0) {
		pmdiff_repository_release(&repository);
		return ret;
	}
	repository.shallow = strcmp(shallow, "true") == 0;
	*out = repository;
	return 0;
}

int pmdiff_repository_lock(int *out, const char *common_dir, struct pm_error *err)
{
	PM_AUTO_CLOSE int fd = open(common_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	uint64_t until = pm_now_ns() + LOCK_NS_MAX;
	int ret = 0;

	if (fd < 0)
		ret = errno;
	/* The process that holds the lock may hang on a remote file system; this one must
	 * not hang with it. */
	while (ret == 0 && flock(fd, LOCK_EX | LOCK_NB) < 0) {
		if (errno != EWOULDBLOCK && errno != EINTR)
			ret = errno;
		else if (pm_now_ns() >= until)
			ret = EBUSY;
		else
			usleep(LOCK_AGAIN_US);
	}
	if (ret != 0) {
		pm_error_set(err, -ret, "cannot lock it: %s",
			     ret == EBUSY ? "another pmdiff has" : strerror(ret));
		pm_error_where(err, common_dir, -1);
		return -ret;
	}
	*out = pm_take_fd(&fd);
	return 0;
}

/* ---- commits ------------------------------------------------------------------------- */

bool pmdiff_is_hash(const char *text, size_t len)
{
	return (len == SHA1_DIGITS || len == SHA256_DIGITS) &&
	       strspn(text, "0123456789abcdef") >= len;
}

void pmdiff_commit_release(struct pmdiff_commit *commit)
{
	free(commit->hash);
	free(commit->subject);
	free(commit->author);
	free(commit->date);
	*commit = (struct pmdiff_commit){ 0 };
}

/* Suggests a remote branch of that name if the clone has one. */
static void suggest_remote_branch(struct pm_error *err, const char *rev)
{
	PM_CLEANUP(pm_str_release) struct pm_str out = { 0 };
	PM_AUTO_FREE char *pattern = NULL;

	pm_error_fix(err, "git fetch");
	/* These cannot be part of a branch's name. */
	if (rev[0] == '\0' || strpbrk(rev, "*?[~^:@{\\ "))
		return;
	if (asprintf(&pattern, "refs/remotes/*/%s", rev) < 0) {
		pattern = NULL;
		return;
	}
	if (pmdiff_git(NULL, &out, NULL, "for-each-ref", "--count=1",
		       "--format=%(refname:short)", pattern) < 0 ||
	    out.len == 0)
		return;
	pm_error_fix(err, "%.*s, which is here", (int)strcspn(out.data, "\n"), out.data);
}

static int set_no_commit_error(struct pm_error *err,
			       const struct pmdiff_repository *repository,
			       const char *rev)
{
	pm_error_set(err, -ENOENT, "no such revision%s: %s",
		     pm_text_if(repository->shallow, " in this shallow clone"), rev);
	if (repository->shallow)
		pm_error_fix(err, "git fetch --unshallow (in a CI job: fetch-depth: 0)");
	else if (strncmp(rev, "HEAD", 4) != 0) /* everything about HEAD is local */
		suggest_remote_branch(err, rev);
	return -ENOENT;
}

static int read_commit_of_hash(struct pmdiff_commit *out, const char *hash,
			       struct pm_error *err)
{
	PM_CLEANUP(pm_str_release) struct pm_str answer = { 0 };
	PM_AUTO_FREE char *time = NULL;
	struct pmdiff_commit commit;
	uint64_t seconds;
	const char *at;
	int ret;

	ret = pmdiff_git(NULL, &answer, err, "log", "-1", "--no-show-signature",
			 "--date=short", "--encoding=UTF-8",
			 "--format=%H%n%an%n%ad%n%ct%n%s", hash);
	if (ret < 0)
		return ret;
	at = answer.data;
	commit.hash = take_line_of_output(&at);
	commit.author = take_line_of_output(&at);
	commit.date = take_line_of_output(&at);
	time = take_line_of_output(&at);
	if (time && pm_parse_u64(time, &seconds))
		commit.time = (int64_t)seconds;
	else
		commit.time = -1;
	commit.subject = take_line_of_output(&at);
	if (!commit.hash || !commit.author || !commit.date || !commit.subject) {
		pmdiff_commit_release(&commit);
		return pm_error_no_memory(err);
	}
	*out = commit;
	return 0;
}

int pmdiff_commit_find(struct pmdiff_commit *out,
		       const struct pmdiff_repository *repository, const char *rev,
		       struct pm_error *err)
{
	PM_CLEANUP(pm_str_release) struct pm_str hash = { 0 };
	PM_AUTO_FREE char *peeled = NULL;
	int ret, status;

	/* No revision starts with "-"; git would parse it as an option. */
	if (rev[0] == '-')
		return set_no_commit_error(err, repository, rev);
	if (asprintf(&peeled, "%s^{commit}", rev) < 0) {
		peeled = NULL;
		return pm_error_no_memory(err);
	}
	ret = pmdiff_git_run(
		&(const struct pmdiff_git_call){
			.args = (const char *const[]){ "rev-parse", "--verify", "--quiet",
						       peeled, NULL },
			.status = &status,
		},
		&hash, err);
	if (ret < 0)
		return ret;
	if (status != 0 || hash.len == 0)
		return set_no_commit_error(err, repository, rev);
	hash.data[strcspn(hash.data, "\n")] = '\0';
	return read_commit_of_hash(out, hash.data, err);
}

int pmdiff_repository_is_dirty(const struct pmdiff_repository *repository,
			       struct pm_error *err)
{
	PM_CLEANUP(pm_str_release) struct pm_str out = { 0 };
	int ret;

	if (!repository->top)
		return 0;
	ret = pmdiff_git(repository->top, &out, err, "status", "--porcelain", "-z",
			 "--untracked-files=no");
	if (ret < 0)
		return ret;
	return out.len > 0;
}
