/* SPDX-License-Identifier: MIT */
/*
 * A cache file with the table of kernel symbols. The kernel formats the text of
 * /proc/kallsyms anew for each reader, which takes longer than all other work of a short
 * recording.
 */
#include "proc-internal.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#define KALLSYMS_PATH "/proc/kallsyms"
#define ROOT_CACHE    "/var/cache"
#define FILE_NAME     "kallsyms"
#define NEW_NAME      "kallsyms.new"

enum {
	FILE_BYTES_MAX = 64 << 20, /* 3 MB for a usual kernel */
	FIRST_BYTES = 4096,
	/* A file that is older than this was left behind by a process that was killed. */
	NEW_SECONDS_MAX = 60,
};

/* Changes with the layout or the meaning of the file. */
static const char magic[8] = "PMKSYM1\n";

/* The file consists of this header, the symbols, and the names, in the byte
 * order of this machine. */
struct head {
	char magic[8];
	char boot_id[40];
	uint64_t modules;
	/* Hash of the first bytes of the kernel's text. It differs if the kernel hides
	 * its addresses from this process. */
	uint64_t first;
	uint64_t symbols_len, names_len;
	uint64_t sum; /* of everything that follows */
};

/* ---- ownership and place of the file ------------------------------------------------- */

/* Whether only the effective user and root can have written to the file. */
static bool is_written_only_by_us(int fd, mode_t kind, struct stat *st)
{
	return fstat(fd, st) == 0 && (st->st_mode & S_IFMT) == kind &&
	       st->st_uid == geteuid() && (st->st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

/* Whether the file belongs to another user: sudo -E keeps the environment. Files that
 * root creates in another user's directory would be in that user's way, or end up where
 * that user's symbolic link points. */
static bool is_of_another(const char *path)
{
	struct stat st;

	return lstat(path, &st) == 0 && st.st_uid != geteuid() && st.st_uid != 0;
}

static bool find_folder(struct pm_str *out)
{
	const char *cache = secure_getenv("XDG_CACHE_HOME");
	const char *home = secure_getenv("HOME");

	/* XDG Base Directory Specification: a relative path is ignored. sudo may keep
	 * HOME of another user. */
	if (cache && cache[0] == '/' && !is_of_another(cache))
		pm_str_printf(out, "%s/pmrec", cache);
	else if (geteuid() == 0)
		pm_str_puts(out, ROOT_CACHE "/pmrec");
	else if (home && home[0] == '/')
		pm_str_printf(out, "%s/.cache/pmrec", home);
	else
		return false;
	return !out->failed;
}

/* Opens the directory, which is created if necessary. Returns -1 if it is not available,
 * or if others may write to it. */
static int open_folder(const char *path)
{
	PM_AUTO_CLOSE int fd = -1;
	struct pm_str own PM_CLEANUP(pm_str_release) = { 0 };
	struct stat st;
	int ret;

	if (!path && !find_folder(&own))
		return -1;
	if (!path)
		path = own.data;
	if (mkdir(path, 0700) < 0 && errno != EEXIST)
		return -1;
	fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || !is_written_only_by_us(fd, S_IFDIR, &st))
		return -1;
	ret = fd;
	fd = -1;
	return ret;
}

/* ---- reading ------------------------------------------------------------------------- */

static bool read_kept_bytes(int fd, void *out, size_t len)
{
	size_t done = 0;

	while (done < len) {
		ssize_t n = read(fd, (char *)out + done, len - done);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		done += (size_t)n;
	}
	return true;
}

static uint64_t sum_of(const struct pm_kallsyms *kallsyms)
{
	size_t symbols_len = kallsyms->symbols.len * sizeof(*kallsyms->symbols.data);

	return pm_hash_mix(pm_hash_bytes(kallsyms->symbols.data, symbols_len),
			   pm_hash_bytes(kallsyms->names.data, kallsyms->names.len));
}

/* Whether every look-up stays within the table. */
static bool is_valid(const struct pm_kallsyms *kallsyms)
{
	const struct pm_kallsyms_symbol *symbols = kallsyms->symbols.data;
	size_t names_len = kallsyms->names.len;

	if (names_len == 0 || kallsyms->names.data[names_len - 1] != '\0')
		return false;
	for (size_t i = 0; i < kallsyms->symbols.len; i++) {
		if (i > 0 && symbols[i].address <= symbols[i - 1].address)
			return false;
		if (symbols[i].name != PM_KALLSYMS_HOLE && symbols[i].name >= names_len)
			return false;
		if (symbols[i].module >= names_len)
			return false;
	}
	return true;
}

static void cleanup_kept_kallsyms(struct pm_kallsyms **kallsyms)
{
	pm_kallsyms_free(*kallsyms);
}

/* Returns the table in @folder if it matches @wanted, otherwise NULL. */
static struct pm_kallsyms *read_kept(int folder, const struct head *wanted)
{
	PM_AUTO_CLOSE int fd =
		openat(folder, FILE_NAME, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	struct pm_kallsyms *kallsyms PM_CLEANUP(cleanup_kept_kallsyms) = NULL;
	const size_t each = sizeof(*kallsyms->symbols.data);
	struct head head;
	struct stat st;

	if (fd < 0 || !is_written_only_by_us(fd, S_IFREG, &st) ||
	    st.st_size > FILE_BYTES_MAX || !read_kept_bytes(fd, &head, sizeof(head)) ||
	    memcmp(head.magic, wanted->magic, sizeof(head.magic)) != 0 ||
	    memcmp(head.boot_id, wanted->boot_id, sizeof(head.boot_id)) != 0 ||
	    head.modules != wanted->modules || head.first != wanted->first ||
	    head.symbols_len > FILE_BYTES_MAX / each || head.names_len > FILE_BYTES_MAX ||
	    sizeof(head) + head.symbols_len * each + head.names_len !=
		    (uint64_t)st.st_size)
		return NULL;
	kallsyms = calloc(1, sizeof(*kallsyms));
	if (!kallsyms || pm_vec_reserve(&kallsyms->symbols, head.symbols_len) < 0)
		return NULL;
	kallsyms->names.data = malloc(head.names_len + 1);
	if (!kallsyms->names.data ||
	    !read_kept_bytes(fd, kallsyms->symbols.data, head.symbols_len * each) ||
	    !read_kept_bytes(fd, kallsyms->names.data, head.names_len))
		return NULL;
	kallsyms->symbols.len = head.symbols_len;
	kallsyms->names.len = head.names_len;
	kallsyms->names.cap = head.names_len + 1;
	if (!is_valid(kallsyms) || sum_of(kallsyms) != head.sum)
		return NULL;
	return PM_TAKE_PTR(kallsyms);
}

/* ---- writing ------------------------------------------------------------------------- */

static bool write_kept_bytes(int fd, const void *bytes, size_t len)
{
	size_t done = 0;

	while (done < len) {
		ssize_t n = write(fd, (const char *)bytes + done, len - done);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		done += (size_t)n;
	}
	return true;
}

static bool is_old(int folder)
{
	struct stat st;

	return fstatat(folder, NEW_NAME, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	       (st.st_mtime > time(NULL) || time(NULL) - st.st_mtime > NEW_SECONDS_MAX);
}

/* Whether the table contains functions of modules whose loading and unloading this
 * process cannot detect. */
static bool has_unseen_modules(const struct pm_kallsyms *kallsyms, uint64_t fingerprint)
{
	if (fingerprint != 0)
		return false;
	for (size_t i = 0; i < kallsyms->symbols.len; i++) {
		const char *module =
			kallsyms->names.data + kallsyms->symbols.data[i].module;

		if (module[0] != '\0' && pm_kallsyms_is_permanent(module))
			return true;
	}
	return false;
}

/* Writes the table to a new file and renames it: readers see either the complete table or
 * the previous one. After a crash of the machine the file may be incomplete, but then it
 * belongs to an earlier boot. */
static void keep_table(int folder, struct head *head, const struct pm_kallsyms *kallsyms)
{
	const int flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
	const size_t bytes = kallsyms->symbols.len * sizeof(*kallsyms->symbols.data);
	PM_AUTO_CLOSE int fd = -1;

	if (sizeof(*head) + bytes + kallsyms->names.len > FILE_BYTES_MAX)
		return;
	if (is_old(folder))
		unlinkat(folder, NEW_NAME, 0);
	/* If the file exists, another recorder is about to store its table. */
	fd = openat(folder, NEW_NAME, flags, 0600);
	if (fd < 0)
		return;
	head->symbols_len = kallsyms->symbols.len;
	head->names_len = kallsyms->names.len;
	head->sum = sum_of(kallsyms);
	if (!write_kept_bytes(fd, head, sizeof(*head)) ||
	    !write_kept_bytes(fd, kallsyms->symbols.data, bytes) ||
	    !write_kept_bytes(fd, kallsyms->names.data, kallsyms->names.len) ||
	    renameat(folder, NEW_NAME, folder, FILE_NAME) < 0)
		unlinkat(folder, NEW_NAME, 0);
}

/* ---- the table ----------------------------------------------------------------------- */

/* Fills in the header that a matching table must have. */
static bool find_wanted(const struct pm_kallsyms_keep *keep, struct head *out)
{
	PM_AUTO_CLOSE int fd = open(keep->path ? keep->path : KALLSYMS_PATH,
				    O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	char first[FIRST_BYTES];
	ssize_t n = fd < 0 ? -1 : read(fd, first, sizeof(first));

	*out = (struct head){ .modules = keep->modules };
	if (n <= 0 || keep->boot_id[0] == '\0' ||
	    strlen(keep->boot_id) >= sizeof(out->boot_id))
		return false;
	memcpy(out->magic, magic, sizeof(magic));
	memcpy(out->boot_id, keep->boot_id, strlen(keep->boot_id));
	out->first = pm_hash_bytes(first, (size_t)n);
	return true;
}

int pm_kallsyms_load_kept(struct pm_kallsyms **out, const struct pm_kallsyms_keep *keep,
			  struct pm_error *err)
{
	PM_AUTO_CLOSE int folder = -1;
	struct pm_kallsyms *kept;
	struct head wanted;
	int ret;

	if (find_wanted(keep, &wanted))
		folder = open_folder(keep->folder);
	if (folder < 0)
		kept = NULL;
	else
		kept = read_kept(folder, &wanted);
	if (kept) {
		*out = kept;
		return 0;
	}
	ret = pm_kallsyms_load(out, keep->path, err);
	if (ret == 0 && folder >= 0 && !has_unseen_modules(*out, keep->modules) &&
	    pm_kernel_modules_fingerprint() == keep->modules)
		keep_table(folder, &wanted, *out);
	return ret;
}
