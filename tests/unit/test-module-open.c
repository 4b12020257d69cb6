/* SPDX-License-Identifier: MIT */
/* The file behind a mapping: found where it can be, never another in its place. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "src/proc/proc-internal.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <time.h>

static char *folder; /* a new one for each test */

static int enter_folder(void **state)
{
	char name[] = "/tmp/test-module-XXXXXX";

	folder = mkdtemp(name) ? realpath(name, NULL) : NULL;
	return folder && chdir(folder) == 0 && chmod(folder, 0755) == 0 ? 0 : -1;
}

static int leave_folder(void **state)
{
	PM_AUTO_FREE char *command = NULL;

	if (chdir("/") < 0 || asprintf(&command, "rm -r %s", folder) < 0)
		return -1;
	free(folder);
	return system(command);
}

static void put_file(const char *path, const char *text)
{
	PM_AUTO_CLOSE int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0755);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
}

/* The smallest ELF file with a build-id. */
static void put_program(const char *path, const uint8_t build_id[20])
{
	struct {
		Elf64_Ehdr header;
		Elf64_Phdr phdr;
		Elf64_Nhdr note;
		char name[4];
		uint8_t desc[20];
	} elf = {
		.header = { .e_ident = { 0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB },
			    .e_phoff = sizeof(Elf64_Ehdr),
			    .e_phnum = 1,
			    .e_phentsize = sizeof(Elf64_Phdr) },
		.phdr = { .p_type = PT_NOTE,
			  .p_offset = sizeof(Elf64_Ehdr) + sizeof(Elf64_Phdr),
			  .p_filesz = sizeof(Elf64_Nhdr) + 4 + 20,
			  .p_align = 4 },
		.note = { 4, 20, NT_GNU_BUILD_ID },
		.name = "GNU",
	};
	PM_AUTO_CLOSE int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0755);

	memcpy(elf.desc, build_id, 20);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, &elf, sizeof(elf)), sizeof(elf));
}

/* As a record of this moment shows the file; @path is kept by the caller. */
static struct pm_module module_of(const char *file, const char *path)
{
	struct stat st;

	assert_int_equal(stat(file, &st), 0);
	return (struct pm_module){ .identity = { .kind = PM_MODULE_FILE,
						 .path = path,
						 .major = major(st.st_dev),
						 .minor = minor(st.st_dev),
						 .inode = st.st_ino } };
}

static char *in_folder(const char *name)
{
	char *path;

	assert_true(asprintf(&path, "%s/%s", folder, name) > 0);
	return path;
}

/* Opens, checks the text when there is one, closes. */
static int open_it(const struct pm_module *module, const char *text, struct pm_error *err)
{
	PM_AUTO_CLOSE int fd = pm_module_open(module, err);
	char found[64] = "";

	if (fd < 0)
		return fd;
	assert_int_equal(fcntl(fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
	assert_int_equal(fcntl(fd, F_GETFL) & O_ACCMODE, O_RDONLY);
	if (text) {
		assert_int_equal(read(fd, found, sizeof(found) - 1), strlen(text));
		assert_string_equal(found, text);
	}
	return 0;
}

static void unchanged_file_opens(void **state)
{
	PM_AUTO_FREE char *path = in_folder("lib");
	struct pm_module module;

	put_file("lib", "code");
	module = module_of("lib", path);
	assert_int_equal(open_it(&module, "code", NULL), 0);
	module.seen_pid = getpid();
	assert_int_equal(open_it(&module, "code", NULL), 0);
	/* A process that is gone does not matter. */
	module.seen_pid = INT32_MAX;
	assert_int_equal(open_it(&module, "code", NULL), 0);
}

static void what_is_no_file_is_not_opened(void **state)
{
	static const enum pm_module_kind kinds[] = { PM_MODULE_ANON, PM_MODULE_VDSO,
						     PM_MODULE_KERNEL };

	for (size_t i = 0; i < PM_ARRAY_LEN(kinds); i++) {
		struct pm_module module = { .identity = { .kind = kinds[i],
							  .path = "/bin/true" } };
		struct pm_error err;

		assert_int_equal(pm_module_open(&module, &err), -ENOTSUP);
		assert_string_equal(err.source, "/bin/true");
	}
}

static void gone_file_is_gone(void **state)
{
	PM_AUTO_FREE char *path = in_folder("lib");
	struct pm_error err = { 0 };
	struct pm_module module;

	put_file("lib", "code");
	module = module_of("lib", path);
	unlink("lib");
	assert_int_equal(open_it(&module, NULL, &err), -ENOENT);
	assert_string_equal(err.source, path);
	assert_non_null(strstr(err.text, "gone"));
	module.identity.path = "relative";
	put_file("relative", "code");
	assert_int_equal(open_it(&module, NULL, &err), -ENOENT);
}

static void replaced_file_is_stale(void **state)
{
	PM_AUTO_FREE char *path = in_folder("lib");
	struct pm_error err = { 0 };
	struct pm_module module;

	put_file("lib", "old");
	module = module_of("lib", path);
	put_file("new", "new");
	assert_int_equal(rename("new", "lib"), 0);
	assert_int_equal(open_it(&module, NULL, &err), -ESTALE);
	assert_non_null(strstr(err.text, "replaced"));
}

static void file_written_over_in_place_is_stale(void **state)
{
	PM_AUTO_FREE char *path = in_folder("lib");
	struct pm_module module;
	struct timespec now, past[2];

	put_file("lib", "old");
	module = module_of("lib", path);
	clock_gettime(CLOCK_REALTIME, &now);
	/* Seen a minute ago, written just now: same inode, other content. */
	module.seen_ns = (int64_t)(now.tv_sec - 60) * 1000000000;
	put_file("lib", "new");
	assert_int_equal(open_it(&module, NULL, NULL), -ESTALE);
	/* Seen after it was written, it is the same. */
	module.seen_ns = (int64_t)(now.tv_sec + 60) * 1000000000;
	assert_int_equal(open_it(&module, "new", NULL), 0);
	/* An old time of writing on a new file: it was unpacked or copied with its times. */
	past[0] = past[1] = (struct timespec){ .tv_sec = now.tv_sec - 3600 };
	assert_int_equal(utimensat(AT_FDCWD, "lib", past, 0), 0);
	module.seen_ns = (int64_t)(now.tv_sec - 60) * 1000000000;
	struct statx st;

	assert_int_equal(statx(AT_FDCWD, "lib", 0, STATX_BTIME, &st), 0);
	assert_int_equal(open_it(&module, NULL, NULL),
			 st.stx_mask & STATX_BTIME ? -ESTALE : 0);
}

static void fifo_and_folder_are_not_touched(void **state)
{
	PM_AUTO_FREE char *path = in_folder("lib");
	struct pm_error err = { 0 };
	struct pm_module module;

	put_file("lib", "code");
	module = module_of("lib", path);
	unlink("lib");
	assert_int_equal(mkfifo("lib", 0644), 0);
	module.identity.inode = 0;
	assert_int_equal(open_it(&module, NULL, &err), -ESTALE);
	/* The very inode, too. */
	module.identity = module_of("lib", path).identity;
	assert_int_equal(open_it(&module, NULL, &err), -ESTALE);
	unlink("lib");
	assert_int_equal(mkdir("lib", 0755), 0);
	module.identity = module_of("lib", path).identity;
	assert_int_equal(open_it(&module, NULL, &err), -ESTALE);
	module.identity.path = "/dev/null";
	assert_int_equal(open_it(&module, NULL, &err), -ESTALE);
}

static void build_id_decides_where_it_is_known(void **state)
{
	PM_AUTO_FREE char *path = in_folder("program");
	struct pm_module module = { .identity = { .kind = PM_MODULE_FILE,
						  .path = path,
						  .build_id = "nineteen bytes long",
						  .build_id_len = 20 } };

	put_program("program", module.identity.build_id);
	assert_int_equal(open_it(&module, NULL, NULL), 0);
	/* Rebuilt without a change, it is as good, inode or not. */
	module.identity.inode = 1;
	assert_int_equal(open_it(&module, NULL, NULL), 0);
	module.identity.build_id[19] ^= 1;
	assert_int_equal(open_it(&module, NULL, NULL), -ESTALE);
	module.identity.build_id[19] ^= 1;
	put_file("new", "#!/bin/sh\n");
	assert_int_equal(rename("new", "program"), 0);
	assert_int_equal(open_it(&module, NULL, NULL), -ESTALE);
}

static void device_may_differ_where_stat_invents_it(void **state)
{
	PM_AUTO_FREE char *path = in_folder("lib");
	struct pm_module module;
	struct stat st;

	put_file("lib", "code");
	assert_int_equal(stat("lib", &st), 0);
	module = module_of("lib", path);
	/* As btrfs: one side shows an anonymous device. */
	if (major(st.st_dev) != 0)
		module.identity.major = 0;
	module.identity.minor += 7;
	assert_int_equal(open_it(&module, "code", NULL), 0);
	if (major(st.st_dev) == 0) {
		print_message("# the folder is on no real device\n");
		skip();
	}
	module.identity.major = major(st.st_dev) + 1;
	assert_int_equal(open_it(&module, NULL, NULL), -ESTALE);
}

static void name_may_really_end_in_deleted(void **state)
{
	PM_AUTO_FREE char *path = in_folder("lib (deleted)");
	struct pm_module module;
	size_t len;

	put_file("lib (deleted)", "code");
	module = module_of("lib (deleted)", path);
	assert_int_equal(pm_module_kind_of(path, &len), PM_MODULE_FILE);
	path[len] = '\0';
	assert_int_equal(open_it(&module, "code", NULL), 0);
	/* Another file under the short name does not hide it, nor is it taken. */
	put_file("lib", "decoy");
	assert_int_equal(open_it(&module, "code", NULL), 0);
	unlink("lib (deleted)");
	assert_int_equal(open_it(&module, NULL, NULL), -ESTALE);
}

static void without_identity_nothing_is_believed(void **state)
{
	PM_AUTO_FREE char *path = in_folder("lib");
	struct pm_module module = { .identity = { .kind = PM_MODULE_FILE,
						  .path = path } };

	put_file("lib", "code");
	assert_int_equal(open_it(&module, NULL, NULL), -ESTALE);
}

/* Only root may follow map_files. Before anything is allocated: skip() leaves by longjmp. */
static void need_root(void)
{
	if (geteuid() != 0)
		skip();
}

static void deleted_file_opens_through_its_mapping(void **state)
{
	need_root();

	PM_AUTO_FREE char *path = in_folder("lib");
	struct pm_module module;
	void *at;

	put_file("lib", "code");
	module = module_of("lib", path);
	PM_AUTO_CLOSE int fd = open("lib", O_RDONLY | O_CLOEXEC);

	at = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 0);
	assert_ptr_not_equal(at, MAP_FAILED);
	unlink("lib");
	module.seen_pid = getpid();
	module.seen_start = (uintptr_t)at;
	module.seen_end = module.seen_start + 4096;
	assert_int_equal(open_it(&module, "code", NULL), 0);
	/* What stands at the path now is of no interest. */
	put_file("lib", "decoy");
	assert_int_equal(open_it(&module, "code", NULL), 0);
	/* When something else was mapped there since, it is not taken. */
	munmap(at, 4096);
	unlink("lib");
	put_file("other", "other");
	PM_AUTO_CLOSE int other = open("other", O_RDONLY | O_CLOEXEC);

	assert_ptr_equal(mmap(at, 4096, PROT_READ, MAP_PRIVATE | MAP_FIXED, other, 0),
			 at);
	assert_int_equal(open_it(&module, NULL, NULL), -ENOENT);
	munmap(at, 4096);
}

static void memfd_opens_through_its_mapping(void **state)
{
	need_root();

	PM_AUTO_CLOSE int fd = memfd_create("jit", MFD_CLOEXEC);
	struct pm_procs *procs;
	const struct pm_mapping *mapping;
	void *at;

	assert_int_equal(write(fd, "code", 4), 4);
	at = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
	assert_ptr_not_equal(at, MAP_FAILED);
	procs = pm_procs_new(NULL);
	assert_non_null(procs);
	assert_int_equal(pm_procs_read(procs, getpid(), NULL), 0);
	mapping = pm_space_find(&pm_procs_get(procs, getpid())->space, (uintptr_t)at);
	assert_non_null(mapping);
	assert_string_equal(pm_procs_module(procs, mapping->module)->identity.path,
			    "/memfd:jit");
	assert_int_equal(open_it(pm_procs_module(procs, mapping->module), "code", NULL),
			 0);
	munmap(at, 4096);
	pm_procs_free(procs);
}

/* A child that has done @prepare, which returns an errno, and waits; SIGKILL ends it.
 * It may skip the test: nothing may be allocated yet. */
static pid_t waiting_child(int (*prepare)(void))
{
	int ends[2], error;
	pid_t child;

	assert_int_equal(pipe(ends), 0);
	child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		/* Even when an assertion fails meanwhile. */
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		error = prepare();
		if (write(ends[1], &error, sizeof(error)) == sizeof(error) && error == 0)
			pause();
		_exit(1);
	}
	/* Or the end of the child would go unnoticed. */
	close(ends[1]);
	assert_int_equal(read(ends[0], &error, sizeof(error)), sizeof(error));
	close(ends[0]);
	if (error == 0)
		return child;
	assert_int_equal(waitpid(child, NULL, 0), child);
	print_message("# a child with another root or mounts of its own: %s\n",
		      strerror(error));
	assert_true(error == EPERM || error == ENOTSUP);
	skip();
	return -1;
}

static void end_child(pid_t child)
{
	assert_int_equal(kill(child, SIGKILL), 0);
	assert_int_equal(waitpid(child, NULL, 0), child);
}

static int enter_root(void)
{
	return chroot("root") < 0 || chdir("/") < 0 ? errno : 0;
}

static void file_in_another_root_is_found(void **state)
{
	struct pm_module module;

	need_root();
	assert_int_equal(mkdir("root", 0755), 0);
	put_file("root/lib", "code");
	module = module_of("root/lib", "/lib");
	module.seen_pid = waiting_child(enter_root);
	assert_int_equal(open_it(&module, "code", NULL), 0);
	end_child(module.seen_pid);
	/* Our own /lib is a folder: something else stands there. */
	assert_int_equal(open_it(&module, NULL, NULL), -ESTALE);
}

/* Path and build-id are all that some records have, and both can be copied. */
static void build_of_ours_comes_before_that_of_a_process(void **state)
{
	need_root();
	assert_int_equal(mkdir("root", 0755), 0);
	pid_t child = waiting_child(enter_root);
	PM_AUTO_FREE char *path = in_folder("program");
	PM_AUTO_FREE char *make = NULL;
	struct pm_module module = { .identity = { .kind = PM_MODULE_FILE,
						  .path = path,
						  .build_id = "nineteen bytes long",
						  .build_id_len = 20 },
				    .seen_pid = child };
	struct stat found, ours, forged;

	put_program("program", module.identity.build_id);
	assert_true(asprintf(&make, "mkdir -p root%s && cp program root%s/", folder,
			     folder) > 0);
	assert_int_equal(system(make), 0);
	snprintf(make, strlen(make) + 1, "root%s/program", folder);
	assert_int_equal(stat(path, &ours), 0);
	assert_int_equal(stat(make, &forged), 0);
	PM_AUTO_CLOSE int fd = pm_module_open(&module, NULL);

	assert_int_equal(fstat(fd, &found), 0);
	assert_int_equal(found.st_ino, ours.st_ino);
	/* What we do not have, it may still give. */
	unlink("program");
	PM_AUTO_CLOSE int other = pm_module_open(&module, NULL);

	assert_int_equal(fstat(other, &found), 0);
	assert_int_equal(found.st_ino, forged.st_ino);
	end_child(child);
}

/* The number may be another process's by now. */
static void range_of_a_later_process_is_not_believed(void **state)
{
	need_root();

	struct pm_module module = { .identity = { .kind = PM_MODULE_FILE,
						  .path = "/nowhere/lib" },
				    .seen_pid = getpid() };
	struct timespec now;
	void *at;

	put_file("lib", "code");
	PM_AUTO_CLOSE int fd = open("lib", O_RDONLY | O_CLOEXEC);

	at = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 0);
	assert_ptr_not_equal(at, MAP_FAILED);
	module.seen_start = (uintptr_t)at;
	module.seen_end = module.seen_start + 4096;
	clock_gettime(CLOCK_REALTIME, &now);
	module.seen_ns = (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
	assert_int_equal(open_it(&module, "code", NULL), 0);
	module.seen_ns -= (int64_t)3600 * 1000000000;
	assert_int_equal(open_it(&module, NULL, NULL), -ENOENT);
	munmap(at, 4096);
}

/* A file system that only this process sees, with a file under a name that others have. */
static int enter_mount_namespace(void)
{
	if (unshare(CLONE_NEWNS) < 0)
		return errno;
	/* Where chroot(2) made our root, nothing is mounted at it, and what we mount below it
	 * might be seen by all. */
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		return errno == EINVAL ? ENOTSUP : errno;
	if (mount("none", "private", "tmpfs", 0, NULL) < 0)
		return errno;
	put_file("private/lib", "code");
	return 0;
}

static void file_in_another_mount_namespace_is_found(void **state)
{
	need_root();
	assert_int_equal(mkdir("private", 0755), 0);
	put_file("private/lib", "decoy");
	pid_t child = waiting_child(enter_mount_namespace);
	PM_AUTO_FREE char *path = in_folder("private/lib");
	PM_AUTO_FREE char *inside = NULL;
	struct pm_module module;

	assert_true(asprintf(&inside, "/proc/%d/root%s", (int)child, path) > 0);
	module = module_of(inside, path);
	module.seen_pid = child;
	assert_int_equal(open_it(&module, "code", NULL), 0);
	end_child(child);
	/* With its process the file is gone; the decoy is no substitute. */
	assert_int_equal(open_it(&module, NULL, NULL), -ESTALE);
}

/* Maps @name and returns what the table calls it. */
static char *name_in_table(const char *name, struct pm_procs *procs)
{
	PM_AUTO_CLOSE int fd = open(name, O_RDONLY | O_CLOEXEC);
	const struct pm_mapping *mapping;
	char *found;
	void *at;

	assert_true(fd >= 0);
	at = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
	assert_ptr_not_equal(at, MAP_FAILED);
	assert_int_equal(pm_procs_read(procs, getpid(), NULL), 0);
	mapping = pm_space_find(&pm_procs_get(procs, getpid())->space, (uintptr_t)at);
	assert_non_null(mapping);
	assert_int_equal(open_it(pm_procs_module(procs, mapping->module), "code", NULL),
			 0);
	found = strdup(pm_procs_module(procs, mapping->module)->identity.path);
	munmap(at, 4096);
	return found;
}

static void names_with_escapes_are_told_apart(void **state)
{
	static const char *const names[] = { "two\nlines", "literal\\012here", "a\\b",
					     "space and\ttab", "x (deleted)" };

	for (size_t i = 0; i < PM_ARRAY_LEN(names); i++) {
		struct pm_procs *procs = pm_procs_new(NULL);
		PM_AUTO_FREE char *found = NULL;
		PM_AUTO_FREE char *path = in_folder(names[i]);

		assert_non_null(procs);
		put_file(names[i], "code");
		found = name_in_table(names[i], procs);
		/* What the kernel could have added is left out of the name, not of the search. */
		if (strcmp(names[i], "x (deleted)") == 0)
			path[strlen(path) - strlen(" (deleted)")] = '\0';
		assert_string_equal(found, path);
		pm_procs_free(procs);
		unlink(names[i]);
	}
}

static void process_tells_what_it_has_mapped(void **state)
{
	PM_AUTO_FREE char *path = in_folder("lib");
	struct pm_module module;
	bool named = false;
	void *at;

	put_file("lib", "code");
	PM_AUTO_CLOSE int fd = open("lib", O_RDONLY | O_CLOEXEC);

	at = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 0);
	assert_ptr_not_equal(at, MAP_FAILED);
	module = module_of("lib", path);
	module.seen_pid = getpid();
	module.seen_start = (uintptr_t)at;
	module.seen_end = module.seen_start + 4096;
	if (module.identity.major == 0) {
		munmap(at, 4096);
		print_message("stat(2) invents devices here\n");
		skip();
	}
	assert_int_equal(pm_maps_find(&module, &named), 0);
	assert_true(named);
	assert_int_equal(rename("lib", "other"), 0);
	assert_int_equal(pm_maps_find(&module, &named), 0);
	assert_false(named);
	unlink("other");
	assert_int_equal(pm_maps_find(&module, &named), 0);
	assert_false(named);
	module.identity.inode++;
	assert_int_equal(pm_maps_find(&module, &named), -ENOENT);
	module.identity.inode--;
	munmap(at, 4096);
	assert_int_equal(pm_maps_find(&module, &named), -ENOENT);
}

static void file_that_may_not_be_read(void **state)
{
	need_root();

	PM_AUTO_FREE char *path = in_folder("lib");
	struct pm_module module;
	pid_t child;
	int status;

	put_file("lib", "code");
	module = module_of("lib", path);
	assert_int_equal(chmod("lib", 0700), 0);
	child = fork();
	if (child == 0) {
		struct pm_error err = { 0 };

		if (setgid(65534) != 0 || setuid(65534) != 0)
			_exit(1);
		status = pm_module_open(&module, &err);
		_exit(status == -EACCES && strstr(err.text, "not permitted") && err.fix[0]
			      ? 0
			      : 2);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(pm_exit_status(status), 0);
}

#define TEST(function) \
	cmocka_unit_test_setup_teardown(function, enter_folder, leave_folder)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(unchanged_file_opens),
		TEST(what_is_no_file_is_not_opened),
		TEST(gone_file_is_gone),
		TEST(replaced_file_is_stale),
		TEST(file_written_over_in_place_is_stale),
		TEST(fifo_and_folder_are_not_touched),
		TEST(build_id_decides_where_it_is_known),
		TEST(device_may_differ_where_stat_invents_it),
		TEST(name_may_really_end_in_deleted),
		TEST(without_identity_nothing_is_believed),
		TEST(deleted_file_opens_through_its_mapping),
		TEST(memfd_opens_through_its_mapping),
		TEST(file_in_another_root_is_found),
		TEST(build_of_ours_comes_before_that_of_a_process),
		TEST(range_of_a_later_process_is_not_believed),
		TEST(file_in_another_mount_namespace_is_found),
		TEST(names_with_escapes_are_told_apart),
		TEST(process_tells_what_it_has_mapped),
		TEST(file_that_may_not_be_read),
	};

	/* A FIFO must never hold us up. */
	alarm(60);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
