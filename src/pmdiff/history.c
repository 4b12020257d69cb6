/* SPDX-License-Identifier: MIT */
/*
 * Histories: a directory with a document for each commit, or git notes.
 *
 * In git notes, each commit has a blob with its document, below a separate ref.
 */
#include <dirent.h>
#include <fcntl.h>
#include <stdarg.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "git.h"
#include "history-internal.h"
#include "pm/run.h"

static const char suffix[] = ".json";

enum {
	SUFFIX = sizeof(suffix) - 1,
};

void pmdiff_history_release(struct pmdiff_history *history)
{
	for (size_t i = 0; i < history->commits.len; i++) {
		struct pmdiff_history_commit *commit = &history->commits.data[i];

		free(commit->commit);
		free(commit->subject);
		pm_suite_release(&commit->suite);
	}
	for (size_t i = 0; i < history->warnings.len; i++)
		free(history->warnings.data[i]);
	pm_vec_release(&history->commits);
	pm_vec_release(&history->warnings);
	*history = (struct pmdiff_history){ 0 };
}

/* ---- one document ---------------------------------------------------------------------- */

static int PM_PRINTF(3, 4)
	history_add_warning(struct pmdiff_history *history, struct pm_error *err,
			    const char *format, ...)
{
	va_list args;
	char *text;
	int len;

	va_start(args, format);
	len = vasprintf(&text, format, args);
	va_end(args);
	if (len < 0)
		return pm_error_no_memory(err);
	if (pm_vec_push(&history->warnings, text) < 0) {
		free(text);
		return pm_error_no_memory(err);
	}
	return 0;
}

/* Returns the reason why the document cannot be that of the commit, or NULL. */
static const char *find_stat_fault(const struct pm_stat *stat, const char *commit)
{
	const struct pm_stat_subject *subject = stat->subjects.data;

	if (stat->subjects.len > 1)
		return "it holds both sides of `pmstat ab`";
	if (stat->subjects.len == 1 && subject->commit &&
	    strcmp(subject->commit, commit) != 0)
		return "it holds the counts of another commit";
	return NULL;
}

static const char *find_suite_fault(const struct pm_suite *suite, const char *commit)
{
	const char *fault = NULL;

	for (size_t i = 0; i < suite->cases.len && !fault; i++)
		fault = find_stat_fault(&suite->cases.data[i].stat, commit);
	return fault;
}

/* Adds the document in @fd. If it cannot be used, adds a warning instead. Returns 0 or
 * -ENOMEM. */
static int history_add(struct pmdiff_history *history, const char *commit, int fd,
		       const char *name, struct pm_error *err)
{
	struct pmdiff_history_commit entry = { 0 };
	struct pm_error why = { 0 };
	const char *fault;
	int ret = pm_suite_read(&entry.suite, fd, name, &why);

	if (ret == -ENOMEM)
		return pm_error_no_memory(err);
	if (ret < 0)
		return history_add_warning(history, err,
					   "%s is left out of the history: it %s.", name,
					   why.text);
	fault = find_suite_fault(&entry.suite, commit);
	if (fault) {
		pm_suite_release(&entry.suite);
		return history_add_warning(
			history, err, "%s is left out of the history: %s.", name, fault);
	}
	entry.commit = strdup(commit);
	if (!entry.commit || pm_vec_push(&history->commits, entry) < 0) {
		free(entry.commit);
		pm_suite_release(&entry.suite);
		return pm_error_no_memory(err);
	}
	return 0;
}

/* ---- a directory ----------------------------------------------------------------------- */

static int history_add_file(struct pmdiff_history *history, const char *folder,
			    int folder_fd, const char *name, struct pm_error *err)
{
	size_t len = strlen(name), hash_len = PM_SUB_OR_0(len, SUFFIX);
	PM_AUTO_FREE char *commit = strndup(name, hash_len), *path = NULL;
	PM_AUTO_CLOSE int fd = -1;
	struct stat stat_buf;

	if (!commit || asprintf(&path, "%s/%s", folder, name) < 0) {
		path = NULL;
		return pm_error_no_memory(err);
	}
	if (strcmp(name + hash_len, suffix) != 0 || !pmdiff_is_hash(commit, hash_len)) {
		history->foreign++;
		return 0;
	}
	/* Without O_NONBLOCK, opening a pipe without a writer would block. */
	fd = openat(folder_fd, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return history_add_warning(history, err,
					   "%s is left out of the history: %s.", path,
					   strerror(errno));
	if (fstat(fd, &stat_buf) < 0 || !S_ISREG(stat_buf.st_mode)) {
		history->foreign++;
		return 0;
	}
	return history_add(history, commit, fd, path, err);
}

static void close_history_folder(DIR **folder)
{
	if (*folder)
		closedir(*folder);
}

static int history_read_folder(struct pmdiff_history *history, const char *where,
			       struct pm_error *err)
{
	PM_CLEANUP(close_history_folder) DIR *folder = opendir(where);
	int ret = 0;

	if (!folder)
		ret = -errno;
	while (folder && ret == 0) {
		const struct dirent *entry;

		errno = 0;
		entry = readdir(folder);
		if (!entry) {
			ret = -errno;
			break;
		}
		/* Hidden files are not part of the history: .git, and files
		 * that are being written. */
		if (entry->d_name[0] == '.')
			continue;
		ret = history_add_file(history, where, dirfd(folder), entry->d_name, err);
		if (ret < 0)
			return ret;
	}
	if (ret < 0) {
		pm_error_set(err, ret, "cannot read the history: %s", strerror(-ret));
		pm_error_where(err, where, -1);
	}
	return ret;
}

static int write_history_file(const char *where, const char *commit,
			      const struct pm_suite *suite, struct pm_error *err)
{
	PM_CLEANUP(pm_sink_release) struct pm_sink sink = { 0 };
	PM_AUTO_FREE char *path = NULL;
	int ret;

	if (mkdir(where, 0777) < 0 && errno != EEXIST) {
		ret = pm_error_set(err, -errno, "cannot make this directory: %s",
				   strerror(errno));
		pm_error_where(err, where, -1);
		return ret;
	}
	if (asprintf(&path, "%s/%s%s", where, commit, suffix) < 0) {
		path = NULL;
		return pm_error_no_memory(err);
	}
	ret = pm_sink_open(&sink, path, 0666, err);
	if (ret < 0)
		return ret;
	ret = pm_suite_write(suite, fileno(sink.file), err);
	if (ret < 0) {
		pm_error_where(err, path, -1);
		return ret;
	}
	return pm_sink_close(&sink, err);
}

static int set_unexpected_output_error(struct pm_error *err)
{
	return pm_error_set(err, -EBADMSG, "git told of notes what is not understood");
}

/* Checks that @ref is a valid name of a ref. Returns -EINVAL if not. */
static int notes_check(const char *ref, struct pm_error *err)
{
	PM_AUTO_FREE char *full = NULL;
	int status, ret;

	/* The check is applied to the name as git completes it, so that it also covers
	 * names that start with a dash. */
	if (asprintf(&full, "refs/notes/%s", ref) < 0) {
		full = NULL;
		return pm_error_no_memory(err);
	}
	ret = pmdiff_git_run(
		&(const struct pmdiff_git_call){
			.args = (const char *const[]){ "check-ref-format", full, NULL },
			.status = &status,
		},
		NULL, err);
	if (ret < 0 || status == 0)
		return ret;
	return pm_error_set(err, -EINVAL, "this cannot be the name of a ref: %s", ref);
}

/* ---- reading --------------------------------------------------------------------------- */

/* Returns "--ref=REF", which the caller has to free. */
static char *make_ref_option(const char *ref)
{
	char *option;

	if (asprintf(&option, "--ref=%s", ref) < 0)
		return NULL;
	return option;
}

/* One line of the list: the note's blob, and the annotated object. */
struct note {
	const char *blob, *commit; /* of length `len` */
	size_t len;
};

/* Parses the line at *@at and advances past it. Returns false at the end, or if the line
 * has another form; *@at is not at the end then. */
static bool next_note(const char **at, struct note *out)
{
	const char *space = strchr(*at, ' '), *end = strchr(*at, '\n');

	if (!space || !end || space > end ||
	    !pmdiff_is_hash(*at, (size_t)(space - *at)) ||
	    !pmdiff_is_hash(space + 1, (size_t)(end - space - 1)))
		return false;
	*out = (struct note){ .blob = *at,
			      .commit = space + 1,
			      .len = (size_t)(end - space - 1) };
	*at = end + 1;
	return true;
}

static int read_note_blobs(const char *list, struct pm_str *blobs, struct pm_error *err)
{
	PM_CLEANUP(pm_str_release) struct pm_str wanted = { 0 };
	struct note note;

	while (next_note(&list, &note)) {
		pm_str_append(&wanted, note.blob, note.len);
		pm_str_putc(&wanted, '\n');
	}
	if (*list)
		return set_unexpected_output_error(err);
	if (wanted.failed)
		return pm_error_no_memory(err);
	if (wanted.len == 0)
		return 0;
	return pmdiff_git_run(
		&(const struct pmdiff_git_call){
			.args = (const char *const[]){ "cat-file", "--batch", NULL },
			.input = wanted.data,
			.input_len = wanted.len,
		},
		blobs, err);
}

static int add_note_to_history(struct pmdiff_history *history, const char *ref,
			       const struct note *note, const char *bytes, size_t len,
			       struct pm_error *err)
{
	PM_AUTO_FREE char *commit = strndup(note->commit, note->len), *name = NULL;
	PM_AUTO_CLOSE int fd = memfd_create("note", MFD_CLOEXEC);
	int ret;

	if (!commit || asprintf(&name, "the note of %.12s in %s", commit, ref) < 0) {
		name = NULL;
		return pm_error_no_memory(err);
	}
	for (size_t at = 0; fd >= 0 && at < len;) {
		ssize_t n = write(fd, bytes + at, len - at);

		if (n < 0)
			break;
		at += (size_t)n;
	}
	if (fd < 0 || lseek(fd, 0, SEEK_CUR) != (off_t)len ||
	    lseek(fd, 0, SEEK_SET) < 0) {
		ret = -errno;
		return pm_error_set(err, ret, "cannot keep a note in memory: %s",
				    strerror(-ret));
	}
	return history_add(history, commit, fd, name, err);
}

/*
 * Parses the output of `git cat-file --batch` for one object, at *@at: "HASH TYPE SIZE",
 * followed by a line with SIZE bytes and a newline; or "HASH missing". Returns false if
 * it is something else.
 */
static bool next_blob(const struct pm_str *blobs, size_t *at, const char **bytes,
		      size_t *len)
{
	const char *line = blobs->data + *at, *end = memchr(line, '\n', blobs->len - *at);
	const char *space = NULL;
	size_t left;
	unsigned long long size;
	char type[16];

	if (end)
		space = memchr(line, ' ', (size_t)(end - line));
	if (!space)
		return false;
	*bytes = NULL;
	*len = 0;
	*at = (size_t)(end - blobs->data) + 1;
	left = blobs->len - *at;
	if (sscanf(space, " %15s %llu", type, &size) != 2)
		return strncmp(space, " missing\n", 9) == 0;
	if (size >= left)
		return false;
	if (strcmp(type, "blob") == 0) {
		*bytes = end + 1;
		*len = (size_t)size;
	}
	*at += (size_t)size + 1;
	return true;
}

static int notes_read(struct pmdiff_history *history, const char *ref,
		      struct pm_error *err)
{
	PM_CLEANUP(pm_str_release) struct pm_str list = { 0 }, blobs = { 0 };
	PM_AUTO_FREE char *option = make_ref_option(ref);
	const char *at;
	struct note note;
	size_t blob_at = 0;
	int ret;

	if (!option)
		return pm_error_no_memory(err);
	ret = notes_check(ref, err);
	if (ret == 0)
		ret = pmdiff_git(NULL, &list, err, "notes", option, "list");
	at = pm_str_text(&list);
	if (ret == 0)
		ret = read_note_blobs(at, &blobs, err);
	while (ret == 0 && next_note(&at, &note)) {
		const char *bytes;
		size_t len;

		if (!blobs.data || !next_blob(&blobs, &blob_at, &bytes, &len))
			ret = set_unexpected_output_error(err);
		else if (!bytes)
			history->foreign++;
		else
			ret = add_note_to_history(history, ref, &note, bytes, len, err);
	}
	return ret;
}

/* ---- writing --------------------------------------------------------------------------- */

/*
 * Makes instances of pmdiff wait for each other. `git notes` reads its tree, changes it
 * and moves the ref without checking whether another process has moved it in between; of
 * two simultaneous writes, one would be lost.
 */
static int lock_repository(int *out, struct pm_error *err)
{
	PM_CLEANUP(pmdiff_repository_release) struct pmdiff_repository repository = { 0 };
	int ret = pmdiff_repository_open(&repository, err);

	if (ret < 0)
		return ret;
	return pmdiff_repository_lock(out, repository.common_dir, err);
}

/* Stores the contents of @fd as a blob. @blob is set to its hash. */
static int store_note_blob(int fd, struct pm_str *blob, struct pm_error *err)
{
	off_t len = lseek(fd, 0, SEEK_END);
	char *bytes;
	int ret;

	if (len > 0)
		bytes = mmap(NULL, (size_t)len, PROT_READ, MAP_PRIVATE, fd, 0);
	else
		bytes = MAP_FAILED;
	if (bytes == MAP_FAILED)
		return pm_error_set(err, -errno, "cannot read the counts again: %s",
				    strerror(errno));
	ret = pmdiff_git_run(
		&(const struct pmdiff_git_call){
			.args = (const char *const[]){ "hash-object", "-w", "--stdin",
						       NULL },
			.input = bytes,
			.input_len = (size_t)len,
		},
		blob, err);
	munmap(bytes, (size_t)len);
	if (ret < 0)
		return ret;
	if (blob->len == 0 || !pmdiff_is_hash(blob->data, blob->len - 1))
		return set_unexpected_output_error(err);
	blob->data[--blob->len] = '\0';
	return 0;
}

/* Whether git knows the user's name and address; in CI they are usually not
 * configured. */
static bool has_git_identity(void)
{
	return pmdiff_git(NULL, NULL, NULL, "var", "GIT_COMMITTER_IDENT") == 0 &&
	       pmdiff_git(NULL, NULL, NULL, "var", "GIT_AUTHOR_IDENT") == 0;
}

/* Stores a note. @fd is the document, positioned at its start. */
static int notes_write(const char *ref, const char *commit, int fd, struct pm_error *err)
{
	PM_CLEANUP(pm_str_release) struct pm_str blob = { 0 };
	PM_AUTO_FREE char *option = make_ref_option(ref);
	PM_AUTO_CLOSE int lock = -1;
	int ret;

	if (!option)
		return pm_error_no_memory(err);
	ret = lock_repository(&lock, err);
	if (ret == 0)
		ret = store_note_blob(fd, &blob, err);
	if (ret < 0)
		return ret;
	if (has_git_identity())
		return pmdiff_git(NULL, NULL, err, "notes", option, "add", "-f", "-C",
				  blob.data, commit);
	return pmdiff_git(NULL, NULL, err, "-c", "user.name=pmdiff", "-c",
			  "user.email=pmdiff@localhost", "notes", option, "add", "-f",
			  "-C", blob.data, commit);
}

/* ---- both kinds ------------------------------------------------------------------------ */

/* Whether @where refers to notes. Sets @ref, which is empty if @where does not name
 * one. */
static bool is_notes(const char *where, const char **ref)
{
	static const char notes[] = PMDIFF_HISTORY_NOTES;
	size_t len = sizeof(notes) - 1;

	if (strncmp(where, notes, len) != 0 || (where[len] != '\0' && where[len] != ':'))
		return false;
	*ref = PMDIFF_NOTES_REF;
	if (where[len])
		*ref = where + len + 1;
	return true;
}

static int set_no_ref_error(const char *where, struct pm_error *err)
{
	pm_error_set(err, -EINVAL, "expected the name of a ref behind the colon");
	pm_error_where(err, where, -1);
	pm_error_fix(err, PMDIFF_HISTORY_NOTES ":" PMDIFF_NOTES_REF);
	return -EINVAL;
}

/* Whether a case of @suite was measured with uncommitted changes. */
static bool is_suite_dirty(const struct pm_suite *suite)
{
	for (size_t i = 0; i < suite->cases.len; i++) {
		const struct pm_stat *stat = &suite->cases.data[i].stat;

		if (stat->subjects.len > 0 && stat->subjects.data[0].commit &&
		    stat->subjects.data[0].dirty > 0)
			return true;
	}
	return false;
}

static int history_warn_of_dirty(struct pmdiff_history *history, struct pm_error *err)
{
	size_t dirty = 0;

	for (size_t i = 0; i < history->commits.len; i++)
		dirty += is_suite_dirty(&history->commits.data[i].suite);
	if (dirty == 0)
		return 0;
	return history_add_warning(
		history, err,
		"%zu of the history's %zu commits %s measured with changes "
		"that were not committed.",
		dirty, history->commits.len, pm_plural(dirty, "was", "were"));
}

/* Whether the commands are equal, except for the directory of the program, which may
 * differ between machines. */
static bool are_commands_equal(const struct pm_stat *a, const struct pm_stat *b)
{
	const struct pm_stat_subject *x = a->subjects.data, *y = b->subjects.data;

	if (a->subjects.len != b->subjects.len || a->subjects.len == 0)
		return a->subjects.len == b->subjects.len;
	if (x->argv.len != y->argv.len)
		return false;
	for (size_t i = 0; i < x->argv.len; i++) {
		const char *word = x->argv.data[i], *other = y->argv.data[i];

		if (i == 0) {
			word = basename(word);
			other = basename(other);
		}
		if (strcmp(word, other) != 0)
			return false;
	}
	return true;
}

/* Whether the commands of common cases are equal. If only one of the suites has cases,
 * they are not. */
static bool are_suite_commands_equal(const struct pm_suite *a, const struct pm_suite *b)
{
	bool any = false;

	for (size_t i = 0; i < a->cases.len; i++) {
		const struct pm_suite_case *one = &a->cases.data[i];
		const struct pm_suite_case *other = pm_suite_find(b, one->name);

		if (other && !are_commands_equal(&one->stat, &other->stat))
			return false;
		any = any || other || one->name;
	}
	return any;
}

static int history_warn_of_commands(struct pmdiff_history *history, struct pm_error *err)
{
	size_t len = history->commits.len, other = 0;

	for (size_t i = 0; i < len; i++)
		other += !are_suite_commands_equal(&history->commits.data[i].suite,
						   &history->commits.data[len - 1].suite);
	if (other == 0)
		return 0;
	return history_add_warning(history, err,
				   "%zu of the history's %zu commits ran another command "
				   "than the last one: their numbers say nothing of it. "
				   "Each command wants a history of its own.",
				   other, len);
}

int pmdiff_history_read(struct pmdiff_history *out, const char *where,
			struct pm_error *err)
{
	struct pmdiff_history history = { 0 };
	const char *ref;
	int ret;

	if (!is_notes(where, &ref))
		ret = history_read_folder(&history, where, err);
	else if (*ref)
		ret = notes_read(&history, ref, err);
	else
		ret = set_no_ref_error(where, err);
	if (ret == 0)
		ret = pmdiff_history_order(&history, err);
	if (ret == 0)
		ret = history_warn_of_dirty(&history, err);
	if (ret == 0)
		ret = history_warn_of_commands(&history, err);
	if (ret < 0)
		pmdiff_history_release(&history);
	else
		*out = history;
	return ret;
}

/* Returns -1 if git does not know the commit. */
static int64_t find_commit_time(const char *commit)
{
	PM_CLEANUP(pm_str_release) struct pm_str out = { 0 };
	uint64_t seconds;

	if (pmdiff_git(NULL, &out, NULL, "show", "-s", "--no-show-signature",
		       "--format=%ct", commit) < 0 ||
	    out.len == 0)
		return -1;
	out.data[strcspn(out.data, "\n")] = '\0';
	if (pm_parse_u64(out.data, &seconds) && seconds <= INT64_MAX)
		return (int64_t)seconds;
	return -1;
}

/* Sets the commit of a joined document, which borrows @commit like all its contents.
 * Values that the document already has are kept. */
static int set_joined_commit(struct pm_stat *stat, char *commit, struct pm_error *err)
{
	struct pm_stat_subject *subject;

	if (stat->subjects.len == 0 &&
	    pm_vec_push(&stat->subjects, (struct pm_stat_subject){ 0 }) < 0)
		return pm_error_no_memory(err);
	subject = &stat->subjects.data[0];
	if (subject->commit && strcmp(subject->commit, commit) != 0)
		return pm_error_set(err, -EINVAL,
				    "these are the counts of another commit: %s",
				    subject->commit);
	if (!subject->commit) {
		subject->commit_time = -1;
		subject->dirty = -1;
	}
	subject->commit = commit;
	if (subject->commit_time < 0)
		subject->commit_time = find_commit_time(commit);
	return 0;
}

static int write_suite_as_note(const char *ref, const char *commit,
			       const struct pm_suite *suite, struct pm_error *err)
{
	PM_AUTO_CLOSE int fd = memfd_create("note", MFD_CLOEXEC);
	int ret;

	if (fd < 0)
		return pm_error_set(err, -errno, "cannot make a file in memory: %s",
				    strerror(errno));
	ret = pm_suite_write(suite, fd, err);
	if (ret == 0 && lseek(fd, 0, SEEK_SET) < 0)
		ret = -errno;
	if (ret < 0)
		return ret;
	return notes_write(ref, commit, fd, err);
}

/* Returns the directory in which @path will be created; modifies @path. */
static const char *cut_to_parent_path(char *path)
{
	size_t len = strlen(path);

	while (len > 1 && path[len - 1] == '/')
		len--;
	while (len > 0 && path[len - 1] != '/')
		len--;
	if (len == 0)
		return ".";
	path[len] = '\0';
	return path;
}

static int check_history_folder(const char *where, struct pm_error *err)
{
	PM_AUTO_FREE char *copy = strdup(where);
	const char *folder = where;
	struct stat found;
	int ret = 0;

	if (!copy)
		return pm_error_no_memory(err);
	if (stat(where, &found) < 0 && errno == ENOENT)
		folder = cut_to_parent_path(copy);
	if (stat(folder, &found) < 0)
		ret = -errno;
	else if (!S_ISDIR(found.st_mode))
		ret = -ENOTDIR;
	else if (access(folder, W_OK | X_OK) < 0)
		ret = -errno;
	if (ret == 0)
		return 0;
	pm_error_set(err, ret, "cannot keep a history here: %s", strerror(-ret));
	pm_error_where(err, where, -1);
	return ret;
}

int pmdiff_history_check(const char *where, struct pm_error *err)
{
	const char *ref;

	if (!is_notes(where, &ref))
		return check_history_folder(where, err);
	if (*ref)
		return notes_check(ref, err);
	return set_no_ref_error(where, err);
}

static void release_borrowed(struct pm_suite *suite)
{
	for (size_t i = 0; i < suite->cases.len; i++)
		pm_stat_join_release(&suite->cases.data[i].stat);
	pm_vec_release(&suite->cases);
}

/* Makes a copy that borrows everything except its arrays, and names the commit. */
static int borrow_suite(struct pm_suite *out, const struct pm_suite *suite, char *commit,
			struct pm_error *err)
{
	int ret = 0;

	for (size_t i = 0; i < suite->cases.len && ret == 0; i++) {
		struct pm_suite_case one = { .name = suite->cases.data[i].name };

		ret = pm_stat_join(&one.stat, &suite->cases.data[i].stat, 1, err);
		if (ret == 0 && pm_vec_push(&out->cases, one) < 0) {
			pm_stat_join_release(&one.stat);
			ret = pm_error_no_memory(err);
		}
		if (ret == 0)
			ret = set_joined_commit(&out->cases.data[i].stat, commit, err);
	}
	return ret;
}

int pmdiff_history_write_suite(const char *where, const char *commit,
			       const struct pm_suite *suite, struct pm_error *err)
{
	PM_CLEANUP(release_borrowed) struct pm_suite borrowed = { 0 };
	PM_AUTO_FREE char *name = strdup(commit);
	const char *ref;
	int ret;

	if (!name)
		return pm_error_no_memory(err);
	if (!pmdiff_is_hash(commit, strlen(commit)))
		return pm_error_set(err, -EINVAL, "not the full hash of a commit: %s",
				    commit);
	ret = borrow_suite(&borrowed, suite, name, err);
	if (ret < 0)
		return ret;
	if (!is_notes(where, &ref))
		return write_history_file(where, commit, &borrowed, err);
	if (*ref)
		return write_suite_as_note(ref, commit, &borrowed, err);
	return set_no_ref_error(where, err);
}

int pmdiff_history_write(const char *where, const char *commit,
			 const struct pm_stat *stats, size_t len, struct pm_error *err)
{
	PM_CLEANUP(release_borrowed) struct pm_suite suite = { 0 };
	struct pm_suite_case one = { 0 };
	int ret = pm_stat_join(&one.stat, stats, len, err);

	if (ret < 0)
		return ret;
	if (pm_vec_push(&suite.cases, one) < 0) {
		pm_stat_join_release(&one.stat);
		return pm_error_no_memory(err);
	}
	return pmdiff_history_write_suite(where, commit, &suite, err);
}
