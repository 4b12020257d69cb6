/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

#include "pm/proc.h"

struct fixture {
	struct pm_jit_files files;
	char path[PATH_MAX + 32];
	struct pm_module_identity mapped;
};

/* A file of ours, as if we had it mapped. */
static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	char folder[PATH_MAX];
	struct stat st;
	FILE *out;

	*state = f;
	if (!f || !getcwd(folder, sizeof(folder)))
		return -1;
	snprintf(f->path, sizeof(f->path), "%s/jit-%d.dump", folder, (int)getpid());
	out = fopen(f->path, "we");
	if (!out || fputs("dump", out) < 0 || fstat(fileno(out), &st) < 0)
		return -1;
	fclose(out);
	f->mapped = (struct pm_module_identity){ .kind = PM_MODULE_FILE,
						 .path = f->path,
						 .major = major(st.st_dev),
						 .minor = minor(st.st_dev),
						 .inode = st.st_ino };
	pm_jit_files_init(&f->files, getpid(), 0);
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	unlink(f->path);
	pm_jit_files_release(&f->files);
	free(f);
	return 0;
}

static void refuse(struct fixture *f)
{
	struct pm_error err = { 0 };

	assert_int_equal(pm_jit_files_jitdump(&f->files, &f->mapped, &err), -ESTALE);
	assert_string_equal(err.source, f->path);
	assert_non_null(strstr(err.text, "not the file that was mapped"));
}

static void test_opens(void **state)
{
	struct fixture *f = *state;
	char bytes[4];
	int fd = pm_jit_files_jitdump(&f->files, &f->mapped, NULL);

	assert_true(fd >= 0);
	assert_int_equal(read(fd, bytes, sizeof(bytes)), 4);
	assert_memory_equal(bytes, "dump", 4);
	close(fd);
	f->mapped.inode = 0;
	fd = pm_jit_files_jitdump(&f->files, &f->mapped, NULL);
	assert_true(fd >= 0);
	close(fd);
}

static void test_other_inode(void **state)
{
	struct fixture *f = *state;

	f->mapped.inode++;
	refuse(f);
}

/* The number alone is that of many files. */
static void test_other_device(void **state)
{
	struct fixture *f = *state;
	int fd;

	if (f->mapped.major == 0) {
		print_message("skipped: the folder is on no real device\n");
		skip();
	}
	f->mapped.minor++;
	refuse(f);
	f->mapped.minor--;
	f->mapped.major++;
	refuse(f);
	/* Where only one side shows a real device the inode decides. */
	f->mapped.major = 0;
	fd = pm_jit_files_jitdump(&f->files, &f->mapped, NULL);
	assert_true(fd >= 0);
	close(fd);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_opens),
		TEST(test_other_inode),
		TEST(test_other_device),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
