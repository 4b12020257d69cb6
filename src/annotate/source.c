/* SPDX-License-Identifier: MIT */
/*
 * Reads source files, whose names come from a recording and whose bytes may be anything.
 * Only regular files are opened, within limits, and files that are not text are refused.
 */
#include "annotate-internal.h"

#include "pm/proc.h"

#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum {
	NOBODY = 65534,
};

int64_t pm_annotate_recorded_at(const struct pm_profile *profile)
{
	struct tm utc = { 0 };
	const char *end;

	if (!profile->info.created)
		return 0;
	end = strptime(profile->info.created, "%Y-%m-%dT%H:%M:%S", &utc);
	if (end && strcmp(end, "Z") == 0)
		return (int64_t)timegm(&utc);
	return 0;
}

/*
 * Chooses the user whose permissions apply. Root may read all files, but passes the
 * report on, so that the report may show only what the recorded user may read. A
 * recording that belongs to another user only proves what its owner may read. If nothing
 * is known, the report shows only what everybody may read.
 */
static void choose_source_reader(struct pm_annotate_search *search,
				 const struct pm_profile_info *info)
{
	uint32_t uid = info->owner == 0 ? info->uid : info->owner;

	search->as_user = geteuid() == 0;
	search->uid = uid == PM_FILE_NONE ? NOBODY : uid;
}

void pm_annotate_search_of(struct pm_annotate_search *search,
			   const struct pm_profile *profile)
{
	if (search->recorded_at == 0)
		search->recorded_at = pm_annotate_recorded_at(profile);
	choose_source_reader(search, &profile->info);
}

/* ---- access rights ---------------------------------------------------------------------- */

static int read_real_path(int fd, char **out)
{
	char link[64], real[PATH_MAX];
	ssize_t len;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	len = readlink(link, real, sizeof(real));
	if (len < 0)
		return -errno;
	if (len == 0 || len == sizeof(real))
		return -ENAMETOOLONG;
	*out = strndup(real, (size_t)len);
	if (!*out)
		return -ENOMEM;
	return 0;
}

/* Whether the open file is in one of source_roots. Uses its real location, whichever
 * links have led to it. */
static bool is_file_below_root(int fd, const struct pm_annotate_search *search)
{
	PM_AUTO_FREE char *path = NULL;

	if (search->source_roots_len == 0 || read_real_path(fd, &path) < 0)
		return false;
	for (size_t i = 0; i < search->source_roots_len; i++) {
		PM_AUTO_FREE char *root = realpath(search->source_roots[i], NULL);
		size_t len;

		if (!root)
			continue;
		len = strlen(root);
		/* Only "/" ends in a slash. */
		if (strncmp(path, root, len) == 0 && (path[len] == '/' || len == 1))
			return true;
	}
	return false;
}

static bool is_owned_by_root(int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 && st.st_uid == 0;
}

/*
 * Checks the open file, not its name: the file can change between a check of the name and
 * the open(2). For root's own programs, files of root and files that everybody may read
 * are allowed.
 */
static int open_allowed_source(const char *path, const struct pm_annotate_search *search)
{
	PM_CLEANUP(pm_user_release) struct pm_user user = { 0 };
	PM_AUTO_CLOSE int fd = -1;
	int as_user;

	if (!search->as_user)
		return pm_file_open(0, path);
	pm_user_of_uid(search->uid == 0 ? NOBODY : search->uid, &user);
	as_user = pm_file_open_as(&user, path);
	if (as_user >= 0)
		return as_user;
	fd = pm_file_open(0, path);
	if (fd < 0)
		return fd;
	if (is_file_below_root(fd, search) || (search->uid == 0 && is_owned_by_root(fd)))
		return pm_take_fd(&fd);
	return -EPERM;
}

/* ---- search ---------------------------------------------------------------------------- */

/* The result of a search: an open file, or the first error other than "not found". */
struct finding {
	const struct pm_annotate_search *search;
	int fd;
	char *path;
	int reason;
};

static bool try_source_path(struct finding *finding, struct pm_str *path)
{
	int fd = -ENOMEM;

	if (!path->failed && path->len > 0)
		fd = open_allowed_source(path->data, finding->search);
	if (fd >= 0) {
		finding->fd = fd;
		finding->path = PM_TAKE_PTR(path->data);
		*path = (struct pm_str){ 0 };
		return true;
	}
	if (finding->reason == -ENOENT && fd != -ENOTDIR)
		finding->reason = fd;
	return false;
}

static bool try_source_path_tails(struct finding *finding, const char *folder,
				  size_t folder_len, const char *path)
{
	struct pm_str whole = { 0 };
	bool found;

	pm_str_append(&whole, folder, folder_len);
	if (whole.len == 0 || whole.data[whole.len - 1] != '/')
		pm_str_putc(&whole, '/');
	pm_str_puts(&whole, path + strspn(path, "/"));
	found = try_source_path(finding, &whole);
	pm_str_release(&whole);
	return found;
}

/* Tries the paths that @rule makes of @path. @rule is OLD=NEW or DIR; see struct
 * pm_annotate_search. */
static bool try_source_dir_rule(struct finding *finding, const char *rule,
				const char *path)
{
	const char *equals = strchr(rule, '=');
	size_t old_len = equals ? (size_t)(equals - rule) : 0;

	if (equals) {
		while (old_len > 0 && rule[old_len - 1] == '/')
			old_len--;
		if (strncmp(rule, path, old_len) != 0 ||
		    (path[old_len] != '/' && path[old_len] != '\0' && old_len > 0))
			return false;
		return try_source_path_tails(finding, equals + 1, strlen(equals + 1),
					     path + old_len);
	}
	for (const char *end = path; end; end = strchr(end, '/')) {
		end += strspn(end, "/");
		if (*end != '\0' &&
		    try_source_path_tails(finding, rule, strlen(rule), end))
			return true;
	}
	return false;
}

static int find_source_file(struct finding *finding, const char *path)
{
	const struct pm_annotate_search *search = finding->search;
	struct pm_str whole = { 0 };
	bool found;

	for (size_t i = 0; i < search->source_dirs_len; i++)
		if (try_source_dir_rule(finding, search->source_dirs[i], path))
			return 0;
	/* A relative path refers to a folder that is no longer known. */
	if (path[0] != '/')
		return finding->reason;
	if (search->symfs &&
	    try_source_path_tails(finding, search->symfs, strlen(search->symfs), path))
		return 0;
	pm_str_puts(&whole, path);
	found = try_source_path(finding, &whole);
	pm_str_release(&whole);
	if (found)
		return 0;
	return finding->reason;
}

/* ---- text ------------------------------------------------------------------------------ */

/* Reads at most one byte more than the limit, even if the file grows during the read. */
static int read_source_text(int fd, struct pm_source *out)
{
	size_t cap = 0;

	for (;;) {
		ssize_t n;
		char *grown = pm_vec_grow(out->text, &cap, 1, out->text_len + 4097);

		if (!grown)
			return -ENOMEM;
		out->text = grown;
		n = read(fd, out->text + out->text_len, cap - out->text_len - 1);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		out->text_len += (size_t)n;
		if (out->text_len > PM_SOURCE_BYTES_MAX)
			return -EFBIG;
		if (n == 0)
			break;
	}
	out->text[out->text_len] = '\0';
	if (memchr(out->text, '\0', out->text_len))
		return -EBADMSG;
	return 0;
}

static int split_source_lines(struct pm_source *source)
{
	size_t at = 0;

	while (at < source->text_len) {
		const char *end = memchr(source->text + at, '\n', source->text_len - at);

		if (source->starts.len == PM_SOURCE_LINES_MAX)
			return -EFBIG;
		if (pm_vec_push(&source->starts, (uint32_t)at) < 0)
			return -ENOMEM;
		if (end)
			at = (size_t)(end - source->text) + 1;
		else
			at = source->text_len;
	}
	return 0;
}

static int set_source_error(int code, const char *path, struct pm_error *err)
{
	switch (code) {
	case -ENOENT:
		if (path[0] == '/')
			pm_error_set(err, code, "this source is not here");
		else
			pm_error_set(err, code,
				     "of this source only the name is recorded, not its "
				     "folder");
		pm_error_where(err, path, -1);
		pm_error_fix(err, "--source-dir OLD=NEW, or --source-dir DIR");
		return code;
	case -ENOTSUP:
		pm_error_set(err, code, "this is no regular file");
		break;
	case -EFBIG:
		pm_error_set(err, code, "too large for a source");
		break;
	case -EBADMSG:
		pm_error_set(err, code, "this is no text: it has NUL bytes");
		break;
	default:
		pm_error_set(err, code, "cannot read this source: %s", strerror(-code));
	}
	pm_error_where(err, path, -1);
	return code;
}

static int set_withheld_source_error(const char *path,
				     const struct pm_annotate_search *search,
				     struct pm_error *err)
{
	const char *slash = strrchr(path, '/');

	pm_error_set(err, -EPERM,
		     "not shown: this source is not for the recorded user (uid %u), and "
		     "root's reports show only what is",
		     search->uid);
	pm_error_where(err, path, -1);
	if (slash == path)
		pm_error_fix(err, "--source-root /");
	else if (slash)
		pm_error_fix(err, "--source-root %.*s", (int)(slash - path), path);
	else
		pm_error_fix(err, "--source-root .");
	return -EPERM;
}

int pm_source_read(struct pm_source *out, const char *path,
		   const struct pm_annotate_search *search, struct pm_error *err)
{
	static const struct pm_annotate_search nothing;
	PM_CLEANUP(pm_source_release) struct pm_source source = { 0 };
	PM_AUTO_CLOSE int fd = -1;
	struct finding finding = { .search = search ? search : &nothing,
				   .fd = -1,
				   .reason = -ENOENT };
	struct stat st;
	int ret = find_source_file(&finding, path);

	if (ret == -EPERM)
		return set_withheld_source_error(path, search, err);
	if (ret < 0)
		return set_source_error(ret, path, err);
	fd = finding.fd;
	source.path = finding.path;
	if (fstat(fd, &st) < 0)
		return set_source_error(-errno, source.path, err);
	source.newer = search && search->recorded_at > 0 &&
		       st.st_mtim.tv_sec > search->recorded_at;
	ret = read_real_path(fd, &source.real_path);
	if (ret == 0) {
		if (st.st_size > PM_SOURCE_BYTES_MAX)
			ret = -EFBIG;
		else
			ret = read_source_text(fd, &source);
	}
	if (ret == 0)
		ret = split_source_lines(&source);
	if (ret < 0)
		return set_source_error(ret, source.path, err);
	*out = source;
	source = (struct pm_source){ 0 };
	return 0;
}

void pm_source_release(struct pm_source *source)
{
	free(source->path);
	free(source->real_path);
	free(source->text);
	pm_vec_release(&source->starts);
	*source = (struct pm_source){ 0 };
}

const char *pm_source_line(const struct pm_source *source, uint32_t line, size_t *len,
			   bool *cut)
{
	size_t start, end;

	if (line == 0 || line > source->starts.len)
		return NULL;
	start = source->starts.data[line - 1];
	if (line < source->starts.len)
		end = source->starts.data[line];
	else
		end = source->text_len;
	if (end > start && source->text[end - 1] == '\n')
		end--;
	if (end > start && source->text[end - 1] == '\r')
		end--;
	*len = end - start;
	if (cut)
		*cut = *len > PM_SOURCE_LINE_BYTES_MAX;
	if (*len > PM_SOURCE_LINE_BYTES_MAX)
		*len = PM_SOURCE_LINE_BYTES_MAX;
	return source->text + start;
}
