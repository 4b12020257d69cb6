/* SPDX-License-Identifier: MIT */
#include "proc-internal.h"

#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <time.h>

/* The failures at all places that were tried, for the error message. */
struct attempts {
	bool stale; /* another file was there */
	bool not_regular; /* … that was not a regular file */
	bool denied_path, denied_proc;
	int other; /* any other errno, 0 if none */
};

static int64_t stamp_ns(const struct statx_timestamp *stamp)
{
	return (int64_t)stamp->tv_sec * 1000000000 + stamp->tv_nsec;
}

/*
 * An inode number is reused soon after its file was removed, and a file can be
 * overwritten. A file that was created or written after the mapping was seen is therefore
 * not the mapped one. A time in the future comes from a wrong clock and is ignored.
 */
static bool is_younger(const struct pm_module *module, const struct statx *st)
{
	struct timespec now;
	int64_t now_ns;

	if (module->seen_ns == 0)
		return false;
	clock_gettime(CLOCK_REALTIME, &now);
	now_ns = (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
	if ((st->stx_mask & STATX_BTIME) && stamp_ns(&st->stx_btime) > module->seen_ns &&
	    stamp_ns(&st->stx_btime) <= now_ns)
		return true;
	return stamp_ns(&st->stx_mtime) > module->seen_ns &&
	       stamp_ns(&st->stx_mtime) <= now_ns;
}

/*
 * On btrfs and overlayfs stat(2) shows an anonymous device (major 0) for each subvolume
 * or layer, while the kernel's records show that of the superblock or of the lower layer.
 * In this case only the inode is compared. If both devices are real and differ, the files
 * are different.
 */
static bool same_device(const struct pm_module_identity *identity, const struct statx *st)
{
	if (st->stx_dev_major == identity->major && st->stx_dev_minor == identity->minor)
		return true;
	return st->stx_dev_major == 0 || identity->major == 0;
}

/*
 * Before Linux 6.8, once a file was changed in the upper layer of overlayfs, stat(2)
 * shows another inode than its mappings, which show that of the layer. The list of
 * mappings, from which the identity was taken, then decides what the process has mapped
 * and under which name.
 */
static bool is_shown_mapped(const struct pm_module *module, const struct statx *st,
			    bool by_range)
{
	bool named;

	if (st->stx_dev_major != 0 || module->seen_pid <= 0 ||
	    pm_maps_find(module, &named) < 0)
		return false;
	return by_range || named;
}

/* Whether the process that now has the module's pid already existed
 * when the module was seen. */
static bool is_same_process(const struct pm_module *module)
{
	enum {
		STARTED = 20, /* number of spaces from the name to starttime, proc(5) */
	};
	PM_AUTO_CLOSE int fd = -1;
	struct timespec now, up;
	char path[64], text[1024];
	const char *at;
	ssize_t len;
	double started;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)module->seen_pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		len = -1;
	else
		len = read(fd, text, sizeof(text) - 1);
	if (len <= 0)
		return false;
	text[len] = '\0';
	at = strrchr(text, ')');
	for (int i = 0; at && i < STARTED; i++)
		at = strchr(at + 1, ' ');
	if (!at)
		return false;
	clock_gettime(CLOCK_REALTIME, &now);
	clock_gettime(CLOCK_BOOTTIME, &up);
	/* Seconds since boot, rounded down to ticks, which can only
	 * make this check succeed. */
	started = strtod(at, NULL) / (double)sysconf(_SC_CLK_TCK);
	started += (double)(now.tv_sec - up.tv_sec);
	started += (double)(now.tv_nsec - up.tv_nsec) / 1e9;
	return module->seen_ns == 0 || started <= (double)module->seen_ns / 1e9;
}

/* Whether @fd is the mapped file. 0, -ESTALE, or the errno of reading it. */
static int verify_mapped_file(const struct pm_module *module, int fd,
			      const struct statx *st, bool by_range)
{
	const struct pm_module_identity *identity = &module->identity;

	if (identity->build_id_len > 0) {
		uint8_t id[PM_MODULE_BUILD_ID_MAX];
		uint8_t len;
		int ret = pm_elf_build_id(fd, id, &len);

		if (ret == -ENODATA || ret == -ENOEXEC)
			return -ESTALE;
		if (ret < 0)
			return ret;
		/* The kernel's record may be padded with zeros to the full length. */
		if (len > identity->build_id_len ||
		    memcmp(id, identity->build_id, len) != 0)
			return -ESTALE;
		for (size_t i = len; i < identity->build_id_len; i++)
			if (identity->build_id[i] != 0)
				return -ESTALE;
		return 0;
	}
	/* Without any identity, only the kernel's link by range can be trusted. */
	if (identity->inode == 0) {
		if (by_range && is_same_process(module))
			return 0;
		return -ESTALE;
	}
	if ((st->stx_ino != identity->inode || !same_device(identity, st)) &&
	    !is_shown_mapped(module, st, by_range))
		return -ESTALE;
	if (!by_range && is_younger(module, st))
		return -ESTALE;
	return 0;
}

/* How a candidate for the file of a module was reached. */
enum place {
	PLACE_OUR_ROOT, /* its name, in our own root */
	PLACE_PROCESS, /* below /proc/PID, which only few may read */
	PLACE_RANGE, /* there, too: the kernel's link by the range of the mapping */
};

/* Returns the fd of @handle's file if it is the mapped one, else a negative value.
 * @handle_ is an O_PATH fd, which is consumed, or -errno. */
static int try_handle(const struct pm_module *module, int handle_, enum place place,
		      struct attempts *attempts)
{
	PM_AUTO_CLOSE int handle = handle_;
	PM_AUTO_CLOSE int fd = -1;
	struct statx st;
	int ret = PM_MIN(handle, 0);

	if (ret == 0 &&
	    statx(handle, "", AT_EMPTY_PATH, STATX_BASIC_STATS | STATX_BTIME, &st) < 0)
		ret = -errno;
	if (ret == 0) {
		fd = pm_open_regular(handle);
		if (fd < 0)
			ret = fd;
	}
	if (ret == -ENOTSUP) {
		attempts->not_regular = true;
		return -1;
	}
	if (ret == 0) {
		ret = verify_mapped_file(module, fd, &st, place == PLACE_RANGE);
		if (ret == 0)
			return pm_take_fd(&fd);
	}
	if (ret == -ESTALE)
		attempts->stale = true;
	else if ((ret == -EACCES || ret == -EPERM) && place == PLACE_OUR_ROOT)
		attempts->denied_path = true;
	else if (ret == -EACCES || ret == -EPERM)
		attempts->denied_proc = true;
	else if (ret != -ENOENT && ret != -ENOTDIR && ret != -ESRCH)
		attempts->other = -ret;
	return -1;
}

/* Opens the name in the root of the process, then in ours. @suffix: a name may really end
 * in the text that the kernel appends. */
static int try_name(const struct pm_module *module, const char *suffix,
		    struct attempts *attempts)
{
	struct pm_str path PM_CLEANUP(pm_str_release) = { 0 };
	int fd = -1;

	/* Anything else is not an absolute name. */
	if (module->identity.path[0] != '/')
		return -1;
	pm_str_printf(&path, "%s%s", module->identity.path, suffix);
	if (path.failed) {
		attempts->other = ENOMEM;
		return -1;
	}
	if (module->seen_pid > 0)
		fd = try_handle(module, pm_open_handle(module->seen_pid, path.data),
				PLACE_PROCESS, attempts);
	if (fd >= 0)
		return fd;
	return try_handle(module, pm_open_handle(0, path.data), PLACE_OUR_ROOT, attempts);
}

static int try_all(const struct pm_module *module, struct attempts *attempts)
{
	struct attempts aside = { 0 }; /* of places where a different file is expected */
	char path[64];
	int fd;

	/* Such a module stands for every process that mapped this build under this name.
	 * The file in our root is preferable to that of the first process, whose root may
	 * contain something else. */
	if (module->identity.build_id_len > 0 && module->identity.inode == 0 &&
	    module->identity.path[0] == '/') {
		fd = try_handle(module, pm_open_handle(0, module->identity.path),
				PLACE_OUR_ROOT, &aside);
		if (fd >= 0)
			return fd;
	}
	if (module->seen_pid > 0 && module->seen_end > module->seen_start) {
		snprintf(path, sizeof(path), "/proc/%d/map_files/%" PRIx64 "-%" PRIx64,
			 (int)module->seen_pid, module->seen_start, module->seen_end);
		fd = try_handle(module, pm_open_handle(0, path), PLACE_RANGE, &aside);
		if (fd >= 0)
			return fd;
	}
	fd = try_name(module, "", attempts);
	if (fd < 0)
		fd = try_name(module, " (deleted)", &aside);
	if (fd < 0 && module->seen_pid > 0) {
		/* The owner can open a program without a name (memfd,
		 * deleted) through this link. */
		snprintf(path, sizeof(path), "/proc/%d/exe", (int)module->seen_pid);
		fd = try_handle(module, pm_open_handle(0, path), PLACE_PROCESS, &aside);
	}
	attempts->denied_proc |= aside.denied_proc;
	return fd;
}

static int explain_attempts(const struct attempts *attempts, struct pm_error *err)
{
	if (attempts->stale)
		return pm_error_set(
			err, -ESTALE,
			"another file stands there now: it was replaced since it was mapped");
	if (attempts->not_regular)
		return pm_error_set(
			err, -ESTALE,
			"no regular file stands there now: it was replaced since it was mapped");
	if (attempts->denied_path) {
		pm_error_set(err, -EACCES, "not permitted to read this file");
		pm_error_fix(err, "run as root, or as a user who may read it");
		return -EACCES;
	}
	if (attempts->other == ENXIO) {
		pm_error_set(err, -ENXIO, "cannot be opened: /proc is not mounted");
		pm_error_fix(err, "mount -t proc proc /proc");
		return -ENXIO;
	}
	if (attempts->other != 0)
		return pm_error_set(err, -attempts->other, "cannot be read: %s",
				    strerror(attempts->other));
	pm_error_set(err, -ENOENT,
		     "the file is gone: deleted or moved since it was mapped");
	if (attempts->denied_proc)
		pm_error_fix(err, "run as root: the process may still hold the file");
	return -ENOENT;
}

int pm_module_open(const struct pm_module *module, struct pm_error *err)
{
	struct attempts attempts = { 0 };
	int fd, ret;

	if (module->identity.kind != PM_MODULE_FILE) {
		ret = pm_error_set(err, -ENOTSUP, "not a file");
	} else {
		fd = try_all(module, &attempts);
		if (fd >= 0)
			return fd;
		ret = explain_attempts(&attempts, err);
	}
	pm_error_where(err, module->identity.path, -1);
	return ret;
}
