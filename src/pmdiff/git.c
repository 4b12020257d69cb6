/* SPDX-License-Identifier: MIT */
#include "git.h"

#include <fcntl.h>
#include <string.h>
#include <sys/file.h>

#include "pm/run.h"
#include "process.h"

enum {
	LOCK_AGAIN_US = 2000,
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

static int fill_words(struct words *words, const char *const *args)
{
	int r = 0;

	for (size_t i = 0; i < PM_ARRAY_LEN(always) && r == 0; i++)
		r = pm_vec_push(&words->list, always[i]);
	for (; *args && r == 0; args++)
		r = pm_vec_push(&words->list, *args);
	return r < 0 ? r : pm_vec_push(&words->list, NULL);
}

/* The place where git reports a full disk, which need not be its last line,
 * and may lack the reason. */
static const char *full_disk(const char *said)
{
	const char *at = strstr(said, "unable to write file");

	return at ? at : strstr(said, "No space left");
}

/* The line that contains @at, without git's prefix of errors. */
static size_t line_around(const char **at, const char *said)
{
	const char *line = *at;

	while (line > said && line[-1] != '\n')
		line--;
	if (strncmp(line, "error: ", 7) == 0 || strncmp(line, "fatal: ", 7) == 0)
		line += 7;
	*at = line;
	return strcspn(line, "\n");
}

/* The length of the most informative line: one about a full disk, else one with git's
 * prefix of errors, else the first one. */
static size_t telling_line(const char **at)
{
	static const char *const words[] = { "fatal: ", "error: " };
	const char *said = *at, *found = full_disk(said);

	for (size_t i = 0; i < PM_ARRAY_LEN(words) && !found; i++)
		found = strstr(said, words[i]);
	*at = found ? found : said;
	return line_around(at, said);
}

/* git prints the command that permits a directory of another user on a
 * separate, indented line. */
static void add_remedy(struct pm_error *err, const char *said)
{
	const char *fix = strstr(said, "\tgit ");

	if (fix)
		pm_error_fix(err, "%.*s", (int)strcspn(fix + 1, "\n"), fix + 1);
	else if (full_disk(said))
		pm_error_fix(err, "TMPDIR=DIR pmdiff …, where there is more room");
}

static int git_failed(struct pm_error *err, const struct pmdiff_git_call *call,
		      int status, const struct pm_str *said)
{
	const char *line = said->len ? said->data : "";
	size_t len = telling_line(&line);

	if (len == 0)
		return pm_error_set(err, -EIO, "git %s failed with status %d",
				    call->args[0], status);
	pm_error_set(err, -EIO, "git says: %.*s", (int)len, line);
	add_remedy(err, said->data);
	return -EIO;
}

static int not_run(struct pm_error *err, const struct pmdiff_git_call *call, int code)
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

	status = fill_words(&words, call->args);
	if (status == 0) {
		process.argv = words.list.data;
		status = pmdiff_process_read(&process, call->input, call->input_len,
					     &text);
	}
	pm_vec_release(&words.list);
	if (status < 0)
		return not_run(err, call, status);
	if (status > 0 && !call->status)
		return git_failed(err, call, status, &text.err);
	if (out) {
		pm_str_append(out, text.out.data ? text.out.data : "", text.out.len);
		if (out->failed)
			return pm_error_no_memory(err);
	}
	if (call->status)
		*call->status = status;
	return 0;
}

/* ---- the current repository ---------------------------------------------------------- */

/* Takes the line at *@at; NULL without memory. */
static char *take_line(const char **at)
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

/* Makes a separate call for each question, because the name of a directory
 * may contain a newline. */
static int ask(char **ret, struct pm_error *err, const char *what)
{
	PM_CLEANUP(pm_str_release) struct pm_str out = { 0 };
	int r = pmdiff_git(NULL, &out, err, "rev-parse", what);

	if (r < 0)
		return r;
	if (out.len > 0 && out.data[out.len - 1] == '\n')
		out.data[--out.len] = '\0';
	*ret = PM_TAKE_PTR(out.data);
	return *ret ? 0 : pm_error_no_memory(err);
}

int pmdiff_repository_open(struct pmdiff_repository *ret, struct pm_error *err)
{
	struct pmdiff_repository repository = { 0 };
	PM_AUTO_FREE char *common = NULL, *inside = NULL, *shallow = NULL;
	int r;

	r = ask(&common, err, "--git-common-dir");
	if (r == 0 && !(repository.common_dir = realpath(common, NULL))) {
		r = pm_error_set(err, -errno, "%s", strerror(errno));
		pm_error_where(err, common, -1);
	}
	if (r == 0)
		r = ask(&shallow, err, "--is-shallow-repository");
	if (r == 0)
		r = ask(&inside, err, "--is-inside-work-tree");
	if (r == 0 && strcmp(inside, "true") == 0)
		r = ask(&repository.top, err, "--show-toplevel");
	if (r < 0) {
		pmdiff_repository_release(&repository);
		return r;
	}
	repository.shallow = strcmp(shallow, "true") == 0;
	*ret = repository;
	return 0;
}

int pmdiff_repository_lock(int *ret, const char *common_dir, struct pm_error *err)
{
	PM_AUTO_CLOSE int fd = open(common_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	uint64_t until = pm_now_ns() + LOCK_NS_MAX;
	int code = fd < 0 ? errno : 0;

	/* The process that holds the lock may hang on a remote file
	 * system; do not hang with it. */
	while (code == 0 && flock(fd, LOCK_EX | LOCK_NB) < 0) {
		if (errno != EWOULDBLOCK && errno != EINTR)
			code = errno;
		else if (pm_now_ns() >= until)
			code = EBUSY;
		else
			usleep(LOCK_AGAIN_US);
	}
	if (code != 0) {
		pm_error_set(err, -code, "cannot lock it: %s",
			     code == EBUSY ? "another pmdiff has" : strerror(code));
		pm_error_where(err, common_dir, -1);
		return -code;
	}
	*ret = pm_take_fd(&fd);
	return 0;
}

/* ---- commits ------------------------------------------------------------------------- */

void pmdiff_commit_release(struct pmdiff_commit *commit)
{
	free(commit->hash);
	free(commit->subject);
	free(commit->author);
	free(commit->date);
	*commit = (struct pmdiff_commit){ 0 };
}

/* Suggests a remote branch of that name, if the clone knows one. */
static void add_branch(struct pm_error *err, const char *rev)
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

static int no_commit(struct pm_error *err, const struct pmdiff_repository *repository,
		     const char *rev)
{
	pm_error_set(err, -ENOENT, "no such revision%s: %s",
		     repository->shallow ? " in this shallow clone" : "", rev);
	if (repository->shallow)
		pm_error_fix(err, "git fetch --unshallow (in a CI job: fetch-depth: 0)");
	else if (strncmp(rev, "HEAD", 4) != 0) /* everything about HEAD is local */
		add_branch(err, rev);
	return -ENOENT;
}

static int read_commit(struct pmdiff_commit *ret, const char *hash, struct pm_error *err)
{
	PM_CLEANUP(pm_str_release) struct pm_str out = { 0 };
	PM_AUTO_FREE char *time = NULL;
	struct pmdiff_commit commit;
	uint64_t seconds;
	const char *at;
	int r;

	r = pmdiff_git(NULL, &out, err, "log", "-1", "--no-show-signature",
		       "--date=short", "--encoding=UTF-8",
		       "--format=%H%n%an%n%ad%n%ct%n%s", hash);
	if (r < 0)
		return r;
	at = out.data;
	commit.hash = take_line(&at);
	commit.author = take_line(&at);
	commit.date = take_line(&at);
	time = take_line(&at);
	commit.time = time && pm_parse_u64(time, &seconds) ? (int64_t)seconds : -1;
	commit.subject = take_line(&at);
	if (!commit.hash || !commit.author || !commit.date || !commit.subject) {
		pmdiff_commit_release(&commit);
		return pm_error_no_memory(err);
	}
	*ret = commit;
	return 0;
}

int pmdiff_commit_find(struct pmdiff_commit *ret,
		       const struct pmdiff_repository *repository, const char *rev,
		       struct pm_error *err)
{
	PM_CLEANUP(pm_str_release) struct pm_str hash = { 0 };
	PM_AUTO_FREE char *peeled = NULL;
	int r, status;

	/* A revision cannot start like this; git would parse it as an option. */
	if (rev[0] == '-')
		return no_commit(err, repository, rev);
	if (asprintf(&peeled, "%s^{commit}", rev) < 0) {
		peeled = NULL;
		return pm_error_no_memory(err);
	}
	r = pmdiff_git_run(
		&(const struct pmdiff_git_call){
			.args = (const char *const[]){ "rev-parse", "--verify", "--quiet",
						       peeled, NULL },
			.status = &status,
		},
		&hash, err);
	if (r < 0)
		return r;
	if (status != 0 || hash.len == 0)
		return no_commit(err, repository, rev);
	hash.data[strcspn(hash.data, "\n")] = '\0';
	return read_commit(ret, hash.data, err);
}

int pmdiff_repository_is_dirty(const struct pmdiff_repository *repository,
			       struct pm_error *err)
{
	PM_CLEANUP(pm_str_release) struct pm_str out = { 0 };
	int r;

	if (!repository->top)
		return 0;
	r = pmdiff_git(repository->top, &out, err, "status", "--porcelain", "-z",
		       "--untracked-files=no");
	return r < 0 ? r : out.len > 0;
}
