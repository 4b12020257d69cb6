/* SPDX-License-Identifier: MIT */
/* The user that a command runs as: names and numbers of users and groups. */
#include "pm/proc.h"

#include <grp.h>
#include <limits.h>
#include <pwd.h>
#include <string.h>

enum {
	TEXT_MAX = 256,
	ENTRY_BYTES = 1 << 16,
	GROUPS_MAX = 65536, /* NGROUPS_MAX of Linux */
};

/* A number other than (uid_t)-1, which means "unchanged". */
static bool parse_id(const char *text, uint32_t *out)
{
	uint64_t value;

	if (text[0] < '0' || text[0] > '9' || !pm_parse_u64(text, &value) ||
	    value >= UINT32_MAX)
		return false;
	*out = (uint32_t)value;
	return true;
}

/* Parses the group, the part of @text after the colon. */
static int find_group(const char *text, struct pm_user *user, struct pm_error *err)
{
	PM_AUTO_FREE char *bytes = malloc(ENTRY_BYTES);
	struct group entry, *found = NULL;

	if (!bytes)
		return pm_error_set(err, -ENOMEM, "out of memory");
	if (parse_id(text, &user->gid))
		return 0;
	if (getgrnam_r(text, &entry, bytes, ENTRY_BYTES, &found) == 0 && found) {
		user->gid = found->gr_gid;
		return 0;
	}
	return pm_error_set(err, -ENOENT, "there is no group '%s'", text);
}

static int find_groups(const char *name, struct pm_user *user)
{
	int len = 64;

	for (;;) {
		gid_t *grown = reallocarray(user->groups, (size_t)len, sizeof(*grown));
		int room = len;

		if (!grown)
			return -ENOMEM;
		user->groups = grown;
		if (getgrouplist(name, user->gid, grown, &len) >= 0) {
			user->groups_len = (size_t)len;
			return 0;
		}
		if (len <= room)
			len = 2 * room;
		if (len > GROUPS_MAX)
			return -E2BIG;
	}
}

/* Finds all groups of the user, or only the one that was given. */
static int set_user_groups(const char *name, bool group_given, struct pm_user *user)
{
	if (name && !group_given)
		return find_groups(name, user);
	user->groups = calloc(1, sizeof(*user->groups));
	if (!user->groups)
		return -ENOMEM;
	user->groups[0] = user->gid;
	user->groups_len = 1;
	return 0;
}

static int read_user_entry(const char *name, const char *group, struct pm_user *user,
			   struct pm_error *err)
{
	PM_AUTO_FREE char *bytes = malloc(ENTRY_BYTES);
	struct passwd entry, *found = NULL;
	int ret;

	if (!bytes)
		return pm_error_set(err, -ENOMEM, "out of memory");
	if (parse_id(name, &user->uid))
		getpwuid_r(user->uid, &entry, bytes, ENTRY_BYTES, &found);
	else if (getpwnam_r(name, &entry, bytes, ENTRY_BYTES, &found) != 0 || !found)
		return pm_error_set(err, -ENOENT, "there is no user '%s'", name);
	if (!found && !group) {
		pm_error_set(err, -ENOENT, "user %s has no entry that tells its group",
			     name);
		pm_error_fix(err, "--user %s:%s", name, name);
		return -ENOENT;
	}
	if (found) {
		user->uid = found->pw_uid;
		user->gid = found->pw_gid;
	}
	if (group)
		ret = find_group(group, user, err);
	else
		ret = 0;
	if (ret < 0)
		return ret;
	ret = set_user_groups(found ? found->pw_name : NULL, group != NULL, user);
	if (ret < 0)
		return pm_error_set(err, ret, "the groups of user '%s': %s", name,
				    strerror(-ret));
	return 0;
}

int pm_user_find(const char *text, struct pm_user *out, struct pm_error *err)
{
	struct pm_user user = { .groups = NULL };
	char name[TEXT_MAX];
	char *colon;
	int ret;

	if (text[0] == '\0' || text[0] == ':' || strlen(text) >= sizeof(name))
		return pm_error_set(err, -EINVAL, "'%s' is no user: USER or USER:GROUP",
				    text);
	snprintf(name, sizeof(name), "%s", text);
	colon = strchr(name, ':');
	if (colon)
		*colon++ = '\0';
	ret = read_user_entry(name, colon, &user, err);
	if (ret < 0)
		pm_user_release(&user);
	else
		*out = user;
	return ret;
}

void pm_user_of_uid(uid_t uid, struct pm_user *out)
{
	enum {
		NOGROUP = 65534
	};
	char text[16];

	snprintf(text, sizeof(text), "%u", uid);
	if (pm_user_find(text, out, NULL) < 0)
		*out = (struct pm_user){ .uid = uid, .gid = NOGROUP };
}

void pm_user_release(struct pm_user *user)
{
	free(user->groups);
	*user = (struct pm_user){ .groups = NULL };
}
