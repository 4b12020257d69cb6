/* SPDX-License-Identifier: MIT */
/* Processes as /proc shows them, against what the loader and the kernel know. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "pm/proc.h"

#include <dirent.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

static size_t descriptors; /* that were open before the test */

static size_t count_descriptors(void)
{
	DIR *folder = opendir("/proc/self/fd");
	size_t count = 0;

	assert_non_null(folder);
	while (readdir(folder))
		count++;
	closedir(folder);
	return count;
}

static int make_procs(void **state)
{
	descriptors = count_descriptors();
	*state = pm_procs_new(NULL);
	return *state ? 0 : -1;
}

static int free_procs(void **state)
{
	pm_procs_free(*state);
	assert_int_equal(count_descriptors(), descriptors);
	return 0;
}

/* The path mapped there, or NULL. */
static const char *path_at(struct pm_procs *procs, pid_t pid, uint64_t address)
{
	const struct pm_process *process = pm_procs_get(procs, pid);
	const struct pm_mapping *mapping = pm_space_find(&process->space, address);

	return mapping ? pm_procs_module(procs, mapping->module)->identity.path : NULL;
}

struct compared {
	struct pm_procs *procs;
	int files;
};

static int compare_object(struct dl_phdr_info *info, size_t size, void *user)
{
	struct compared *compared = user;
	const struct pm_space *space = &pm_procs_get(compared->procs, getpid())->space;
	PM_AUTO_FREE char *path =
		realpath(info->dlpi_name[0] ? info->dlpi_name : "/proc/self/exe", NULL);

	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *phdr = &info->dlpi_phdr[i];
		const struct pm_mapping *mapping =
			pm_space_find(space, info->dlpi_addr + phdr->p_vaddr);
		const struct pm_module *module;

		if (phdr->p_type != PT_LOAD || !(phdr->p_flags & PF_X))
			continue;
		assert_non_null(mapping);
		assert_int_equal(info->dlpi_addr + phdr->p_vaddr - mapping->start +
					 mapping->pgoff,
				 path ? phdr->p_offset : 0);
		module = pm_procs_module(compared->procs, mapping->module);
		if (!path) {
			assert_int_equal(module->identity.kind, PM_MODULE_VDSO);
			continue;
		}
		assert_int_equal(module->identity.kind, PM_MODULE_FILE);
		assert_string_equal(module->identity.path, path);
		assert_int_not_equal(module->identity.inode, 0);
		compared->files++;
	}
	return 0;
}

static void own_maps_are_what_the_loader_knows(void **state)
{
	struct compared compared = { .procs = *state };
	struct pm_error err;

	assert_int_equal(pm_procs_read(*state, getpid(), &err), 0);
	dl_iterate_phdr(compare_object, &compared);
	assert_true(compared.files >= 3); /* the test, cmocka, libc, ld.so */
}

static pid_t second_tid;

static void *wait_here(void *pipe_ends)
{
	char byte;

	prctl(PR_SET_NAME, "second\nthread");
	second_tid = gettid();
	if (write(((int *)pipe_ends)[3], "r", 1) == 1 &&
	    read(((int *)pipe_ends)[0], &byte, 1) < 0)
		abort();
	return NULL;
}

static void comms_of_own_threads(void **state)
{
	struct pm_error err;
	int ends[4];
	pthread_t thread;
	char byte;

	assert_int_equal(pipe(ends), 0);
	assert_int_equal(pipe(ends + 2), 0);
	assert_int_equal(pthread_create(&thread, NULL, wait_here, ends), 0);
	assert_int_equal(read(ends[2], &byte, 1), 1);
	assert_int_equal(pm_procs_read(*state, getpid(), NULL), 0);
	assert_string_equal(pm_procs_thread(*state, getpid(), second_tid)->comm,
			    "second\nthread");
	/* The number of a thread is not that of a process. */
	assert_int_equal(pm_procs_read(*state, second_tid, &err), -ESRCH);
	assert_non_null(strstr(err.text, "is a thread of process"));
	assert_int_equal(write(ends[1], "g", 1), 1);
	pthread_join(thread, NULL);
	for (size_t i = 0; i < 4; i++)
		close(ends[i]);
}

static void reading_again_forgets_what_is_gone(void **state)
{
	struct pm_procs *procs = *state;
	uint64_t where;
	void *at = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS,
			-1, 0);

	assert_ptr_not_equal(at, MAP_FAILED);
	where = (uintptr_t)at;
	assert_int_equal(pm_procs_read(procs, getpid(), NULL), 0);
	assert_string_equal(path_at(procs, getpid(), where), "//anon");
	munmap(at, 4096);
	assert_int_equal(pm_procs_read(procs, getpid(), NULL), 0);
	assert_null(path_at(procs, getpid(), where));
}

static void names_with_newlines_are_read_back(void **state)
{
	char path[] = "/tmp/test-procs\n(deleted)XXXXXX";
	PM_AUTO_CLOSE int fd = mkstemp(path);
	uint64_t where;
	void *at;

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, 4096), 0);
	at = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
	where = (uintptr_t)at;
	assert_int_equal(pm_procs_read(*state, getpid(), NULL), 0);
	unlink(path);
	if (at == MAP_FAILED)
		skip(); /* /tmp is mounted noexec */
	munmap(at, 4096);
	assert_string_equal(path_at(*state, getpid(), where), path);
}

static void processes_that_cannot_be_read(void **state)
{
	struct pm_error err = { 0 };
	pid_t child = fork();
	int status;

	assert_true(child >= 0);
	if (child == 0)
		_exit(0);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(pm_procs_read(*state, child, &err), -ESRCH);
	assert_non_null(strstr(err.text, "no process"));
	if (geteuid() != 0)
		return;
	/* Somebody else's process. */
	child = fork();
	if (child == 0) {
		if (setgid(65534) != 0 || setuid(65534) != 0)
			_exit(1);
		status = pm_procs_read(*state, 1, &err);
		_exit(status == -EACCES && err.fix[0] != '\0' ? 0 : 2);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(pm_exit_status(status), 0);
}

static bool same_spaces(struct pm_procs *a, pid_t pid_a, struct pm_procs *b, pid_t pid_b)
{
	const struct pm_space *left = &pm_procs_get(a, pid_a)->space;
	const struct pm_space *right = &pm_procs_get(b, pid_b)->space;

	if (left->maps.len != right->maps.len)
		return false;
	for (size_t i = 0; i < left->maps.len; i++) {
		const struct pm_mapping *l = &left->maps.data[i],
					*r = &right->maps.data[i];

		if (l->start != r->start || l->end != r->end || l->pgoff != r->pgoff ||
		    strcmp(pm_procs_module(a, l->module)->identity.path,
			   pm_procs_module(b, r->module)->identity.path) != 0)
			return false;
	}
	return left->maps.len > 0;
}

/* What the table makes of a fork is what the kernel made of it. */
static void a_real_fork_is_as_the_table_says(void **state)
{
	struct pm_procs *read = pm_procs_new(NULL);
	int ends[2];
	pid_t child;

	assert_int_equal(pm_procs_read(*state, getpid(), NULL), 0);
	assert_int_equal(pipe(ends), 0);
	child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		char byte;

		close(ends[1]);
		_exit((int)syscall(SYS_read, ends[0], &byte, 1));
	}
	assert_int_equal(pm_procs_fork(*state, child, child, getpid(), getpid()), 0);
	assert_non_null(read);
	assert_int_equal(pm_procs_read(read, child, NULL), 0);
	assert_true(same_spaces(*state, child, read, child));
	assert_string_equal(pm_procs_thread(*state, child, child)->comm,
			    pm_procs_thread(read, child, child)->comm);
	close(ends[0]);
	close(ends[1]);
	assert_int_equal(waitpid(child, NULL, 0), child);
	pm_procs_free(read);
}

static const char *first_file(struct pm_procs *procs, pid_t pid)
{
	const struct pm_space *space = &pm_procs_get(procs, pid)->space;

	assert_true(space->maps.len > 0);
	return pm_procs_module(procs, space->maps.data[0].module)->identity.path;
}

static void a_real_exec_changes_all_of_it(void **state)
{
	char *argv[] = { (char[]){ "sleep" }, (char[]){ "100" }, NULL };
	PM_AUTO_FREE char *own = realpath("/proc/self/exe", NULL);
	PM_AUTO_FREE char *program = NULL, *link = NULL;
	const struct pm_space *space;
	struct pm_launch launch;

	assert_int_equal(pm_launch_prepare(&launch, argv, NULL), 0);
	assert_int_equal(pm_procs_read(*state, launch.pid, NULL), 0);
	assert_string_equal(first_file(*state, launch.pid), own);
	space = &pm_procs_get(*state, launch.pid)->space;
	assert_int_equal(pm_procs_comm(*state, launch.pid, launch.pid, "sleep", true), 0);
	assert_int_equal(space->maps.len, 0);
	assert_int_equal(pm_launch_go(&launch, NULL), 0);
	/* The kernel closes our pipe before it maps the new program. */
	assert_true(asprintf(&link, "/proc/%d/exe", (int)launch.pid) > 0);
	for (int i = 0; i < 10000 && space->maps.len == 0; i++) {
		usleep(1000);
		assert_int_equal(pm_procs_read(*state, launch.pid, NULL), 0);
	}
	program = realpath(link, NULL);
	assert_non_null(program);
	assert_string_equal(first_file(*state, launch.pid), program);
	assert_string_not_equal(program, own);
	assert_string_equal(pm_procs_thread(*state, launch.pid, launch.pid)->comm,
			    "sleep");
	assert_int_equal(kill(launch.pid, SIGKILL), 0);
	assert_int_equal(waitpid(launch.pid, NULL, 0), launch.pid);
	pm_launch_release(&launch);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, make_procs, free_procs)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(own_maps_are_what_the_loader_knows),
		TEST(comms_of_own_threads),
		TEST(reading_again_forgets_what_is_gone),
		TEST(names_with_newlines_are_read_back),
		TEST(a_real_fork_is_as_the_table_says),
		TEST(a_real_exec_changes_all_of_it),
		TEST(processes_that_cannot_be_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
