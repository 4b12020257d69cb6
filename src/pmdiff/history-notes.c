/* SPDX-License-Identifier: MIT */
/* Documents as git notes: a blob for each commit, below a separate ref. */
#include <string.h>
#include <sys/mman.h>

#include "git.h"
#include "history-internal.h"

static int set_unexpected_output_error(struct pm_error *err)
{
	return pm_error_set(err, -EBADMSG, "git told of notes what is not understood");
}

int pmdiff_notes_check(const char *ref, struct pm_error *err)
{
	PM_AUTO_FREE char *full = NULL;
	int status, ret;

	/* Checks the name as git completes it; also covers names
	 * that start with a dash. */
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

/* "--ref=REF", to be freed. */
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

/* Takes the line at *@at. False at the end, or if the line has another form; *@at
 * is not at the end then. */
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
	return pmdiff_history_add(history, commit, fd, name, err);
}

/*
 * Parses the output of `git cat-file --batch` for one object, at *@at: "HASH TYPE SIZE",
 * followed by a line with SIZE bytes and a newline; or "HASH missing". False if it is
 * something else.
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

int pmdiff_notes_read(struct pmdiff_history *history, const char *ref,
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
	ret = pmdiff_notes_check(ref, err);
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
 * `git notes` reads its tree, changes it and moves the ref without checking whether
 * another process has moved it meanwhile: of two simultaneous writes one would be lost.
 * Instances of pmdiff therefore wait for each other.
 */
static int lock_repository(int *out, struct pm_error *err)
{
	PM_CLEANUP(pmdiff_repository_release) struct pmdiff_repository repository = { 0 };
	int ret = pmdiff_repository_open(&repository, err);

	if (ret < 0)
		return ret;
	return pmdiff_repository_lock(out, repository.common_dir, err);
}

/* Stores the contents of @fd as a blob, and returns its name. */
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

/* Whether git knows the user's name; in CI it is usually not configured. */
static bool has_git_identity(void)
{
	return pmdiff_git(NULL, NULL, NULL, "var", "GIT_COMMITTER_IDENT") == 0 &&
	       pmdiff_git(NULL, NULL, NULL, "var", "GIT_AUTHOR_IDENT") == 0;
}

int pmdiff_notes_write(const char *ref, const char *commit, int fd, struct pm_error *err)
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
