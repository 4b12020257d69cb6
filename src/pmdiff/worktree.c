/* SPDX-License-Identifier: MIT */
#include "worktree.h"

#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>

enum {
	REMOVE_FDS = 32,
	STAT_LINE_MAX = 4096,
	START_FIELD = 20, /* index of starttime in proc_pid_stat(5), counted after the
	                   * comm */
};

/* ---- ownership ----------------------------------------------------------------------- */

/* The parts of "pmdiff-HOST-BOOT-PID-START-CHANCE". */
struct owner {
	uint32_t host, boot; /* hashes: of host name and pid namespace; of the boot id */
	pid_t pid;
	uint64_t start; /* start time of the process, in ticks since boot */
};
#define OWNER_FORMAT "pmdiff-%08x-%08x-%d-%llu-"
/* The name has a constant length: paths are on the stack of simulated programs, whose
 * results must not vary. */
#define OWNER_PRINTED "pmdiff-%08x-%08x-%07d-%012llu-"

/* Reads up to @size - 1 bytes of a file; "" if it cannot be read. */
static void read_small_file(const char *path, char *out, size_t size)
{
	PM_AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	ssize_t len = 0;

	if (fd >= 0)
		len = read(fd, out, size - 1);
	out[PM_MAX(len, 0)] = '\0';
}

/* Returns 0 if there is no such process. */
static uint64_t read_start_of_process(pid_t pid)
{
	char path[64], line[STAT_LINE_MAX], *at;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	read_small_file(path, line, sizeof(line));
	at = strrchr(line, ')'); /* the comm may contain anything */
	for (int field = 0; at && field < START_FIELD; field++)
		at = strchr(at + 1, ' ');
	if (at)
		return strtoull(at + 1, NULL, 10);
	return 0;
}

static struct owner describe_own_process(void)
{
	char host[2 * HOST_NAME_MAX] = "", boot[64];
	ssize_t len;

	gethostname(host, HOST_NAME_MAX);
	len = readlink("/proc/self/ns/pid", host + strlen(host), HOST_NAME_MAX / 2);
	(void)len; /* if it fails, the name must suffice */
	read_small_file("/proc/sys/kernel/random/boot_id", boot, sizeof(boot));
	return (struct owner){
		.host = (uint32_t)pm_hash_bytes(host, strlen(host)),
		.boot = (uint32_t)pm_hash_bytes(boot, strlen(boot)),
		.pid = getpid(),
		.start = read_start_of_process(getpid()),
	};
}

/* Returns the length of the owner part at the start of @name, or 0 if it is not one of
 * ours. */
static size_t parse_owner(const char *name, struct owner *out)
{
	unsigned long long start;
	unsigned chance;
	int len = 0;

	if (sscanf(name, OWNER_FORMAT "%8x%n", &out->host, &out->boot, &out->pid, &start,
		   &chance, &len) != 5)
		return 0;
	out->start = start;
	return (size_t)len;
}

/* Whether the owner is known to have ended. False for other hosts and containers, whose
 * processes are unknown. */
static bool is_dead(const struct owner *owner, const struct owner *us)
{
	return owner->host == us->host &&
	       (owner->boot != us->boot ||
		read_start_of_process(owner->pid) != owner->start);
}

/* ---- removing ------------------------------------------------------------------------ */

static int make_folder_accessible(const char *path, const struct stat *stat_buf, int type,
				  struct FTW *at)
{
	if (type == FTW_D || type == FTW_DNR)
		chmod(path, (stat_buf->st_mode & 07777) | S_IRWXU);
	return 0;
}

static int remove_tree_entry(const char *path, const struct stat *stat_buf, int type,
			     struct FTW *at)
{
	remove(path);
	return 0;
}

/* Removes a tree except mounted file systems. Builds may leave directories that not even
 * their owner may write to. */
static int remove_tree_below(const char *path, struct pm_error *err)
{
	struct stat stat_buf;

	nftw(path, remove_tree_entry, REMOVE_FDS, FTW_PHYS | FTW_DEPTH | FTW_MOUNT);
	if (lstat(path, &stat_buf) < 0)
		return 0;
	nftw(path, make_folder_accessible, REMOVE_FDS, FTW_PHYS | FTW_MOUNT);
	nftw(path, remove_tree_entry, REMOVE_FDS, FTW_PHYS | FTW_DEPTH | FTW_MOUNT);
	if (lstat(path, &stat_buf) < 0)
		return 0;
	pm_error_set(err, -EBUSY, "cannot be removed altogether");
	pm_error_where(err, path, -1);
	return -EBUSY;
}

/* Called for git's data about a worktree (gitrepository-layout(5)),
 * with its path and name. */
typedef void (*admin_fn)(void *context, const char *path, const char *name);

static void for_each_admin_folder(const char *common_dir, admin_fn each, void *context)
{
	PM_AUTO_FREE char *all = NULL;
	struct dirent *entry;
	DIR *dir;

	if (asprintf(&all, "%s/worktrees", common_dir) < 0) {
		all = NULL;
		return;
	}
	dir = opendir(all);
	while (dir && (entry = readdir(dir))) {
		char *path;

		if (strncmp(entry->d_name, "pmdiff-", 7) != 0 ||
		    asprintf(&path, "%s/%s", all, entry->d_name) < 0)
			continue;
		each(context, path, entry->d_name);
		free(path);
	}
	if (dir)
		closedir(dir);
	rmdir(all); /* git does the same: it keeps the directory only while it is not
	             * empty */
}

struct removal {
	const struct pmdiff_folder *folder;
	struct pm_error *err;
	int result;
};

static void remove_own_admin(void *context, const char *path, const char *name)
{
	struct removal *removal = context;
	size_t len = strlen(removal->folder->name);

	if (strncmp(name, removal->folder->name, len) != 0 || name[len] != '-')
		return;
	if (removal->result == 0)
		removal->result = remove_tree_below(path, removal->err);
	else
		remove_tree_below(path, NULL);
}

int pmdiff_folder_remove(const struct pmdiff_folder *folder, struct pm_error *err)
{
	struct removal removal = { .folder = folder, .err = err };
	PM_AUTO_CLOSE int lock = -1;

	removal.result = remove_tree_below(folder->path, err);
	/* Without the lock, a checkout by another process may fail; but data that is left
	 * behind would be in the way later. */
	(void)pmdiff_repository_lock(&lock, folder->common_dir, NULL);
	for_each_admin_folder(folder->common_dir, remove_own_admin, &removal);
	return removal.result;
}

/* ---- leftovers of other processes ---------------------------------------------------- */

static void remove_dead_folder(const char *path, const struct owner *us)
{
	const char *name = strrchr(path, '/');
	struct owner owner;
	struct stat stat_buf;

	if (!name || parse_owner(name + 1, &owner) != strlen(name + 1) ||
	    !is_dead(&owner, us) || lstat(path, &stat_buf) < 0 ||
	    !S_ISDIR(stat_buf.st_mode) || stat_buf.st_uid != geteuid())
		return;
	remove_tree_below(path, NULL);
}

/* The worktree may be in another $TMPDIR; git has recorded its path. */
static void remove_dead_admin(void *context, const char *path, const char *name)
{
	const struct owner *us = context;
	char where[PATH_MAX] = "", link[PATH_MAX];
	struct stat stat_buf;
	struct owner owner;
	char *end;

	/* The processes of another user may be hidden from us. */
	if (parse_owner(name, &owner) == 0 || !is_dead(&owner, us) ||
	    lstat(path, &stat_buf) < 0 || stat_buf.st_uid != geteuid())
		return;
	if (snprintf(link, sizeof(link), "%s/gitdir", path) < (int)sizeof(link))
		read_small_file(link, where, sizeof(where));
	for (int part = 0; part < 2; part++) { /* of FOLDER/WORKTREE/.git */
		end = strrchr(where, '/');
		if (end)
			*end = '\0';
	}
	remove_dead_folder(where, us);
	remove_tree_below(path, NULL);
}

static const char *find_temporary_dir(void)
{
	const char *dir = getenv("TMPDIR");

	if (dir && *dir)
		return dir;
	return "/tmp";
}

void pmdiff_folders_sweep(const char *common_dir)
{
	struct owner us = describe_own_process();
	PM_AUTO_CLOSE int lock = -1;
	struct dirent *entry;
	DIR *dir;

	(void)pmdiff_repository_lock(&lock, common_dir, NULL);
	for_each_admin_folder(common_dir, remove_dead_admin, &us);
	dir = opendir(find_temporary_dir());
	while (dir && (entry = readdir(dir))) {
		char *path;

		if (strncmp(entry->d_name, "pmdiff-", 7) != 0 ||
		    asprintf(&path, "%s/%s", find_temporary_dir(), entry->d_name) < 0)
			continue;
		remove_dead_folder(path, &us);
		free(path);
	}
	if (dir)
		closedir(dir);
}

/* ---- the directory ------------------------------------------------------------------- */

void pmdiff_folder_release(struct pmdiff_folder *folder)
{
	free(folder->common_dir);
	free(folder->path);
	*folder = (struct pmdiff_folder){ 0 };
}

static int set_no_folder_error(struct pm_error *err, int code)
{
	pm_error_set(err, code, "a folder for worktrees: %s", strerror(-code));
	pm_error_where(err, find_temporary_dir(), -1);
	pm_error_fix(err, "TMPDIR=DIR pmdiff …");
	return code;
}

int pmdiff_folder_make(struct pmdiff_folder *out, const char *common_dir,
		       struct pm_error *err)
{
	struct pmdiff_folder folder = { .common_dir = strdup(common_dir) };
	PM_AUTO_FREE char *dir = realpath(find_temporary_dir(), NULL);
	struct owner us = describe_own_process();
	uint32_t chance = 0;
	int ret = 0;

	if (!dir)
		ret = -errno;
	else if (getrandom(&chance, sizeof(chance), 0) < 0)
		ret = -errno;
	else if (!folder.common_dir ||
		 asprintf(&folder.path, "%s/" OWNER_PRINTED "%08x", dir, us.host, us.boot,
			  us.pid, (unsigned long long)us.start, chance) < 0)
		ret = -ENOMEM;
	else if (mkdir(folder.path, 0700) < 0)
		ret = -errno;
	if (ret < 0) {
		pmdiff_folder_release(&folder);
		return set_no_folder_error(err, ret);
	}
	folder.name = strrchr(folder.path, '/') + 1;
	*out = folder;
	return 0;
}

/* ---- worktrees ----------------------------------------------------------------------- */

/* Creates a worktree under the lock: git reads its data about all worktrees, and fails if
 * one is just being created. The checkout, which takes long, does not need the lock. */
static int make_worktree(const struct pmdiff_folder *folder, const char *path,
			 const char *commit, struct pm_error *err)
{
	PM_AUTO_CLOSE int lock = -1;
	int ret = pmdiff_repository_lock(&lock, folder->common_dir, err);

	if (ret < 0)
		return ret;
	return pmdiff_git(NULL, NULL, err, "worktree", "add", "--no-checkout", "--detach",
			  path, commit);
}

int pmdiff_worktree_add(char **out, const struct pmdiff_folder *folder, const char *name,
			const char *commit, struct pm_error *err)
{
	PM_AUTO_FREE char *path = NULL;
	int ret;

	if (asprintf(&path, "%s/%s-%s", folder->path, folder->name, name) < 0) {
		path = NULL;
		return pm_error_no_memory(err);
	}
	ret = make_worktree(folder, path, commit, err);
	if (ret == 0)
		ret = pmdiff_git(path, NULL, err, "reset", "--hard", "--quiet");
	if (ret == 0)
		*out = PM_TAKE_PTR(path);
	return ret;
}

int pmdiff_worktree_move(const char *path, const char *commit,
			 enum pmdiff_untracked untracked, struct pm_error *err)
{
	int ret = 0;

	if (untracked == PMDIFF_REMOVE_UNTRACKED)
		ret = pmdiff_git(path, NULL, err, "clean", "-ffdxq");
	if (ret < 0)
		return ret;
	return pmdiff_git(path, NULL, err, "checkout", "--quiet", "--force", "--detach",
			  commit);
}
