/* SPDX-License-Identifier: MIT */
/* What can be opened without blocking: through local file systems alone, whatever the path is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "src/proc/proc-internal.h"

#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

static char *folder; /* a new one for each test */
static struct pm_mounts *mounts;

static int enter_folder(void **state)
{
	char name[] = "/tmp/test-mounts-XXXXXX";

	mounts = pm_mounts_new();
	folder = mkdtemp(name) ? realpath(name, NULL) : NULL;
	if (!mounts || !folder || chdir(folder) < 0 || mkdir("real", 0755) < 0 ||
	    mkdir("real/deep", 0755) < 0)
		return -1;
	close(open("real/deep/file", O_CREAT | O_WRONLY | O_CLOEXEC, 0644));
	return 0;
}

static int leave_folder(void **state)
{
	PM_AUTO_FREE char *command = NULL;

	pm_mounts_free(mounts);
	if (chdir("/") < 0 || asprintf(&command, "rm -r %s", folder) < 0)
		return -1;
	free(folder);
	return system(command);
}

/* The handle of @path below the folder is that of the file. */
static void assert_leads(const char *path)
{
	PM_AUTO_FREE char *whole = NULL;
	PM_AUTO_CLOSE int fd = -1;
	struct stat st, file;

	assert_true(asprintf(&whole, "%s/%s", folder, path) > 0);
	fd = pm_open_handle_local(mounts, 0, whole);
	assert_true(fd >= 0);
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(stat("real/deep/file", &file), 0);
	assert_int_equal(st.st_ino, file.st_ino);
	assert_int_equal(st.st_dev, file.st_dev);
}

static int handle_of(const char *path)
{
	PM_AUTO_FREE char *whole = NULL;
	PM_AUTO_CLOSE int fd = -1;

	if (asprintf(&whole, "%s/%s", folder, path) < 0)
		return -ENOMEM;
	fd = pm_open_handle_local(mounts, 0, whole);
	return fd < 0 ? fd : 0;
}

static void paths_lead_where_the_kernel_goes(void **state)
{
	PM_AUTO_FREE char *absolute = NULL;
	PM_AUTO_FREE char *whole = NULL;
	PM_AUTO_CLOSE int fd = -1;

	(void)state;
	assert_true(asprintf(&absolute, "%s/real", folder) > 0);
	assert_int_equal(symlink(absolute, "absolute"), 0);
	assert_int_equal(symlink("real/deep", "relative"), 0);
	assert_int_equal(symlink("../deep/../../relative/file", "real/deep/back"), 0);
	assert_int_equal(symlink("..", "real/up"), 0);
	assert_leads("real/deep/file");
	assert_leads("real//deep/./file");
	assert_leads("real/deep/../deep/file");
	assert_leads("absolute/deep/file");
	assert_leads("relative/file");
	assert_leads("real/deep/back");
	assert_leads("real/up/real/deep/file");
	/* Above the root is the root. */
	assert_true(asprintf(&whole, "/../..%s/real/deep/../deep/file", folder) > 0);
	fd = pm_open_handle_local(mounts, 0, whole);
	assert_true(fd >= 0);
}

static void paths_that_lead_nowhere(void **state)
{
	char *longest = calloc(1, PATH_MAX + 1);

	(void)state;
	assert_int_equal(handle_of("real/none"), -ENOENT);
	assert_int_equal(handle_of("real/deep/file/none"), -ENOTDIR);
	assert_int_equal(symlink("loop", "loop"), 0);
	assert_int_equal(handle_of("loop"), -ELOOP);
	assert_non_null(longest);
	memset(longest, 'x', PATH_MAX);
	assert_int_equal(pm_open_handle_local(mounts, 0, longest), -EREMOTE);
	assert_int_equal(pm_open_handle_local(mounts, 0, "relative"), -EREMOTE);
	longest[NAME_MAX + 1] = '\0';
	assert_int_equal(handle_of(longest), -ENAMETOOLONG);
	free(longest);
}

static void other_file_systems_are_not_asked(void **state)
{
	PM_AUTO_CLOSE int proc = open("/proc", O_PATH | O_CLOEXEC);
	PM_AUTO_CLOSE int own = open(folder, O_PATH | O_CLOEXEC);

	(void)state;
	assert_int_equal(pm_mounts_locality(mounts, own, 0), PM_LOCAL);
	assert_int_equal(pm_mounts_locality(mounts, proc, 0), PM_REMOTE);
	assert_int_equal(pm_mounts_locality(mounts, -1, 0), PM_LOCALITY_UNKNOWN);
	assert_int_equal(pm_open_handle_local(mounts, 0, "/proc/self/maps"), -EREMOTE);
	assert_int_equal(symlink("/proc/self/exe", "magic"), 0);
	assert_int_equal(handle_of("magic"), -EREMOTE);
}

/* A memfd is of a mount that is in no list. */
static void what_is_in_no_list_is_unknown(void **state)
{
	PM_AUTO_CLOSE int fd = memfd_create("test", MFD_CLOEXEC);

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(pm_mounts_locality(mounts, fd, 0), PM_LOCALITY_UNKNOWN);
	assert_int_equal(pm_mounts_locality(mounts, fd, getpid()), PM_LOCALITY_UNKNOWN);
}

static void a_module_is_opened_if_it_is_the_one(void **state)
{
	PM_AUTO_FREE char *path = NULL;
	PM_AUTO_CLOSE int fd = -1;
	struct pm_module module = { 0 };
	struct statx st;

	(void)state;
	assert_true(asprintf(&path, "%s/real/deep/file", folder) > 0);
	assert_int_equal(statx(AT_FDCWD, path, 0, STATX_BASIC_STATS | STATX_BTIME, &st),
			 0);
	module.identity = (struct pm_module_identity){ .kind = PM_MODULE_FILE,
						       .path = path,
						       .major = st.stx_dev_major,
						       .minor = st.stx_dev_minor,
						       .inode = st.stx_ino };
	module.seen_pid = getpid();
	fd = pm_module_open_local(mounts, &module);
	if (!(st.stx_mask & STATX_BTIME)) {
		assert_int_equal(fd, -EREMOTE);
		return;
	}
	assert_true(fd >= 0);
	module.identity.inode++;
	assert_int_equal(pm_module_open_local(mounts, &module), -EREMOTE);
	/* It was made after the mapping was seen. */
	module.identity.inode--;
	module.seen_ns = 1;
	assert_int_equal(pm_module_open_local(mounts, &module), -EREMOTE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(paths_lead_where_the_kernel_goes,
						enter_folder, leave_folder),
		cmocka_unit_test_setup_teardown(paths_that_lead_nowhere, enter_folder,
						leave_folder),
		cmocka_unit_test_setup_teardown(other_file_systems_are_not_asked,
						enter_folder, leave_folder),
		cmocka_unit_test_setup_teardown(what_is_in_no_list_is_unknown,
						enter_folder, leave_folder),
		cmocka_unit_test_setup_teardown(a_module_is_opened_if_it_is_the_one,
						enter_folder, leave_folder),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
