/* SPDX-License-Identifier: MIT */
/* Names and ids of tracepoints. Their samples are decoded in tracepoint-fields.c. */
#include "tracepoint.h"

#include <fcntl.h>
#include <fnmatch.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>

#include "tracefs-mount.h"

enum {
	ID_FILE_MAX = 32, /* a number and a newline */
	NAMES_FILE_MAX = 16 << 20, /* 62 KB on a usual kernel */
	EXPANDED_MAX = 256, /* each costs a descriptor on every CPU */
	NEAR_MAX = 3,
	NEAR_NAME_MIN = 3, /* shorter parts occur in too many names */
};

/* ---- tracefs ------------------------------------------------------------------------- */

static int set_tracefs_unreadable_error(const char *root, struct pm_error *err)
{
	struct stat st;
	unsigned int mode = stat(root, &st) == 0 ? st.st_mode & 07777 : 0;

	/* Since Linux 5.16 only owner and group may access the files in it, so changing
	 * the mode alone is not enough. */
	pm_error_set(
		err, -EACCES,
		"tracefs has mode %04o and group %u: user %u may not read the list of "
		"tracepoints",
		mode, mode ? (unsigned int)st.st_gid : 0, (unsigned int)geteuid());
	pm_error_where(err, root, -1);
	pm_error_fix(err, "sudo mount -o remount,mode=750,gid=%u %s",
		     (unsigned int)getegid(), root);
	return -EACCES;
}

int pm_tracefs_find(const char **out, struct pm_error *err)
{
	static const char *const places[] = { "/sys/kernel/tracing",
					      "/sys/kernel/debug/tracing" };
	const char *closed = NULL, *own;

	for (size_t i = 0; i < PM_ARRAY_LEN(places); i++) {
		struct statfs fs;

		if (statfs(places[i], &fs) < 0 || fs.f_type != TRACEFS_MAGIC)
			continue;
		/* Check the effective ids, which may have more permissions than the real
		 * ones. */
		if (faccessat(AT_FDCWD, places[i], R_OK | X_OK, AT_EACCESS) == 0) {
			*out = places[i];
			return 0;
		}
		closed = places[i];
	}
	if (closed)
		return set_tracefs_unreadable_error(closed, err);
	own = pm_tracefs_own();
	if (own) {
		*out = own;
		return 0;
	}
	pm_error_set(err, -ENOENT,
		     "tracepoints need tracefs, which is not mounted at "
		     "/sys/kernel/tracing");
	pm_error_fix(err, "sudo, or sudo mount -t tracefs -o mode=750,gid=%u nodev %s",
		     (unsigned int)getegid(), places[0]);
	return -ENOENT;
}

static int read_tracefs_file(int fd, size_t max, struct pm_str *out)
{
	char chunk[4096];

	for (;;) {
		ssize_t n = read(fd, chunk, sizeof(chunk));

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		if ((size_t)n > max - out->len)
			return -EFBIG;
		pm_str_append(out, chunk, (size_t)n);
	}
	pm_str_append(out, "", 0);
	if (out->failed)
		return -ENOMEM;
	return 0;
}

int pm_tracefs_read(const char *root, const char *file, size_t max, struct pm_str *out,
		    struct pm_error *err)
{
	struct pm_str text PM_CLEANUP(pm_str_release) = { 0 };
	char path[PATH_MAX];
	int fd PM_AUTO_CLOSE = -1;
	int ret;

	if ((size_t)snprintf(path, sizeof(path), "%s/%s", root, file) >= sizeof(path))
		return pm_error_set(err, -ENAMETOOLONG, "the name is too long");
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	if (fd < 0)
		ret = -errno;
	else
		ret = read_tracefs_file(fd, max, &text);
	if (ret == -EACCES)
		return set_tracefs_unreadable_error(root, err);
	if (ret < 0) {
		if (ret == -EFBIG)
			pm_error_set(err, ret, "has more than %zu bytes", max);
		else
			pm_error_set(err, ret, "%s", strerror(-ret));
		pm_error_where(err, path, -1);
		return ret;
	}
	pm_str_release(out);
	*out = text;
	text = (struct pm_str){ 0 };
	return 0;
}

/* ---- the list ------------------------------------------------------------------------ */

void pm_tracepoint_names_release(struct pm_tracepoint_names *names)
{
	pm_str_release(&names->text);
	pm_vec_release(&names->list);
}

static int compare_tracepoint_names(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Whether the string is one component of a path that cannot be misread as something
 * else. */
static bool is_good_path_part(const char *part, size_t len)
{
	if (len == 0 || len >= PM_TRACEPOINT_NAME_MAX || part[0] == '.')
		return false;
	for (size_t i = 0; i < len; i++)
		if ((unsigned char)part[i] <= ' ' || (unsigned char)part[i] >= 0x7f ||
		    strchr("/:,", part[i]))
			return false;
	return true;
}

static bool is_good_tracepoint_name(const char *line, size_t len)
{
	const char *colon = memchr(line, ':', len);

	return colon && is_good_path_part(line, (size_t)(colon - line)) &&
	       is_good_path_part(colon + 1, len - (size_t)(colon - line) - 1);
}

int pm_tracepoint_names_read_in(const char *root, struct pm_tracepoint_names *out,
				struct pm_error *err)
{
	struct pm_tracepoint_names names PM_CLEANUP(pm_tracepoint_names_release) = { 0 };
	int ret = pm_tracefs_read(root, "available_events", NAMES_FILE_MAX, &names.text,
				  err);

	if (ret < 0)
		return ret;
	for (char *line = names.text.data; *line;) {
		size_t len = strcspn(line, "\n");
		char *next = line + len + (line[len] != '\0');

		line[len] = '\0';
		if (is_good_tracepoint_name(line, len) &&
		    pm_vec_push(&names.list, line) < 0)
			return pm_error_no_memory(err);
		line = next;
	}
	if (names.list.len > 0)
		qsort(names.list.data, names.list.len, sizeof(names.list.data[0]),
		      compare_tracepoint_names);
	pm_tracepoint_names_release(out);
	*out = names;
	names = (struct pm_tracepoint_names){ 0 };
	return 0;
}

int pm_tracepoint_names_read(struct pm_tracepoint_names *out, struct pm_error *err)
{
	const char *root;
	int ret = pm_tracefs_find(&root, err);

	if (ret < 0)
		return ret;
	return pm_tracepoint_names_read_in(root, out, err);
}

/* ---- unknown names -------------------------------------------------------------------- */

/* Returns the distance between the names, or SIZE_MAX if they are not similar. */
static size_t nearness_of_tracepoint(const char *system, const char *name,
				     const char *candidate)
{
	const char *other = strchr(candidate, ':') + 1;
	char whole[2 * PM_TRACEPOINT_NAME_MAX];
	size_t distance, len;

	if (strcmp(name, other) == 0)
		return 1; /* in another system */
	len = (size_t)snprintf(whole, sizeof(whole), "%s:%s", system, name);
	if (len >= sizeof(whole))
		return SIZE_MAX;
	distance = pm_name_distance(whole, candidate);
	if (distance <= 2)
		return distance;
	if (strlen(name) >= NEAR_NAME_MIN && strstr(other, name)) {
		if (strncmp(system, candidate, strlen(system)) == 0)
			return 2;
		return 4;
	}
	if (distance <= len / 3)
		return distance;
	return SIZE_MAX;
}

static void list_near_tracepoints(const struct pm_tracepoint_names *names,
				  const char *system, const char *name,
				  struct pm_str *out)
{
	const char *near[NEAR_MAX];
	size_t score[NEAR_MAX], len = 0;

	for (size_t i = 0; i < names->list.len; i++) {
		size_t this = nearness_of_tracepoint(system, name, names->list.data[i]),
		       at = len;

		while (at > 0 && score[at - 1] > this)
			at--;
		if (this == SIZE_MAX || at >= NEAR_MAX)
			continue;
		if (len < NEAR_MAX)
			len++;
		for (size_t move = len - 1; move > at; move--) {
			near[move] = near[move - 1];
			score[move] = score[move - 1];
		}
		near[at] = names->list.data[i];
		score[at] = this;
	}
	for (size_t i = 0; i < len; i++)
		pm_str_printf(out, "%s%s", pm_text_if(i > 0, ", "), near[i]);
}

static bool is_system_known(const struct pm_tracepoint_names *names, const char *system)
{
	size_t len = strlen(system);

	for (size_t i = 0; i < names->list.len; i++)
		if (strncmp(names->list.data[i], system, len) == 0 &&
		    names->list.data[i][len] == ':')
			return true;
	return false;
}

static int set_unknown_tracepoint_error(const char *root, const char *system,
					const char *name, struct pm_error *err)
{
	struct pm_tracepoint_names names PM_CLEANUP(pm_tracepoint_names_release) = { 0 };
	struct pm_str near PM_CLEANUP(pm_str_release) = { 0 };
	bool glob = strpbrk(system, "*?[") || strpbrk(name, "*?[");
	bool is_near_known;
	int ret = pm_tracepoint_names_read_in(root, &names, err);

	if (ret < 0)
		return ret;
	list_near_tracepoints(&names, system, name, &near);
	is_near_known = near.len > 0 && !near.failed;
	pm_error_set(err, -EINVAL, "%s \"%s:%s\"%s%s",
		     glob ? "no tracepoint matches" : "unknown tracepoint", system, name,
		     pm_text_if(is_near_known, "; near names: "),
		     pm_text_if(is_near_known, near.data));
	if (is_system_known(&names, system))
		pm_error_fix(err, "pmrec --list tracepoint '%s:*'", system);
	else
		pm_error_fix(err, "pmrec --list tracepoint");
	return -EINVAL;
}

/* ---- from names to specs ---------------------------------------------------------------- */

static int read_tracepoint_id(const char *root, const char *system, const char *name,
			      uint64_t *out, struct pm_error *err)
{
	struct pm_str text PM_CLEANUP(pm_str_release) = { 0 };
	char file[2 * PM_TRACEPOINT_NAME_MAX + 16];
	uint64_t id;
	int ret;

	snprintf(file, sizeof(file), "events/%s/%s/id", system, name);
	ret = pm_tracefs_read(root, file, ID_FILE_MAX, &text, err);
	if (ret < 0)
		return ret;
	text.data[strcspn(text.data, "\n")] = '\0';
	if (!pm_parse_u64(text.data, &id) || id > UINT32_MAX) {
		pm_error_set(err, -EBADMSG, "the id of %s:%s is no number", system, name);
		pm_error_where(err, root, -1);
		return -EBADMSG;
	}
	*out = id;
	return 0;
}

static int add_tracepoint_spec(const char *root, const char *system, const char *name,
			       const struct pm_event_spec *like,
			       struct pm_event_specs *out, struct pm_error *err)
{
	struct pm_event_spec spec = *like;
	int ret = read_tracepoint_id(root, system, name, &spec.config, err);

	if (ret < 0)
		return ret;
	snprintf(spec.name, sizeof(spec.name), "%s:%s", system, name);
	/* Each tracepoint that matches a glob gets its own name as the requested one. */
	snprintf(spec.requested, sizeof(spec.requested), "%s:%s%s%s", system, name,
		 pm_text_if(spec.modifiers[0], ":"), spec.modifiers);
	spec.kind = PM_EVENT_TRACEPOINT;
	spec.type = PERF_TYPE_TRACEPOINT;
	spec.config1 = spec.config2 = 0;
	ret = pm_vec_push(&out->list, spec);
	if (ret < 0)
		return pm_error_set(err, ret, "out of memory");
	return 0;
}

static int expand_tracepoint_glob(const char *root, const char *system, const char *name,
				  const struct pm_event_spec *like,
				  struct pm_event_specs *out, struct pm_error *err)
{
	struct pm_tracepoint_names names PM_CLEANUP(pm_tracepoint_names_release) = { 0 };
	size_t matches = 0;
	int ret = pm_tracepoint_names_read_in(root, &names, err);

	/* Move the matching names to the front; the others are not needed any more. */
	for (size_t i = 0; ret == 0 && i < names.list.len; i++) {
		char of[PM_TRACEPOINT_NAME_MAX];
		const char *line = names.list.data[i], *colon = strchr(line, ':');

		snprintf(of, sizeof(of), "%.*s", (int)(colon - line), line);
		if (fnmatch(system, of, 0) == 0 && fnmatch(name, colon + 1, 0) == 0)
			names.list.data[matches++] = line;
	}
	if (ret == 0 && matches == 0)
		return set_unknown_tracepoint_error(root, system, name, err);
	if (ret == 0 && matches > EXPANDED_MAX)
		return pm_error_set(err, -EINVAL,
				    "\"%s:%s\" matches %zu tracepoints, more than %d",
				    system, name, matches, EXPANDED_MAX);
	for (size_t i = 0; ret == 0 && i < matches; i++) {
		char of[PM_TRACEPOINT_NAME_MAX];
		const char *line = names.list.data[i], *colon = strchr(line, ':');

		snprintf(of, sizeof(of), "%.*s", (int)(colon - line), line);
		ret = add_tracepoint_spec(root, of, colon + 1, like, out, err);
		/* A module's tracepoints disappear when it is unloaded. */
		if (ret == -ENOENT)
			ret = 0;
	}
	return ret;
}

int pm_tracepoints_expand_in(const char *root, const char *system, const char *name,
			     const struct pm_event_spec *like, struct pm_event_specs *out,
			     struct pm_error *err)
{
	size_t before = out->list.len;
	int ret;

	if (strlen(system) >= PM_TRACEPOINT_NAME_MAX ||
	    strlen(name) >= PM_TRACEPOINT_NAME_MAX)
		return pm_error_set(err, -EINVAL,
				    "no tracepoint has a name of %d bytes or more",
				    PM_TRACEPOINT_NAME_MAX);
	if (strpbrk(system, "*?[") || strpbrk(name, "*?["))
		ret = expand_tracepoint_glob(root, system, name, like, out, err);
	else if (!is_good_path_part(system, strlen(system)) ||
		 !is_good_path_part(name, strlen(name)))
		ret = set_unknown_tracepoint_error(root, system, name, err);
	else
		ret = add_tracepoint_spec(root, system, name, like, out, err);
	if (ret == -ENOENT || (ret == 0 && out->list.len == before))
		ret = set_unknown_tracepoint_error(root, system, name, err);
	if (ret < 0)
		out->list.len = before;
	return ret;
}

int pm_tracepoints_expand(const char *system, const char *name,
			  const struct pm_event_spec *like, struct pm_event_specs *out,
			  struct pm_error *err)
{
	const char *root;
	int ret = pm_tracefs_find(&root, err);

	if (ret < 0)
		return ret;
	return pm_tracepoints_expand_in(root, system, name, like, out, err);
}
