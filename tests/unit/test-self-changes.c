/* SPDX-License-Identifier: MIT */
/* What is mapped, as looks from time to time see it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "src/self/changes.h"

/* Of libc, but nobody's need. */
#define LIBRARY "libBrokenLocale.so.1"

enum {
	ROUNDS = 150,
};

static bool has_library(const struct pm_self_changes *changes)
{
	const struct pm_process *process = pm_procs_get(changes->procs, changes->pid);

	assert_non_null(process);
	for (size_t i = 0; i < process->space.maps.len; i++) {
		uint32_t id = process->space.maps.data[i].module;

		if (strstr(pm_procs_module(changes->procs, id)->identity.path, LIBRARY))
			return true;
	}
	return false;
}

static atomic_bool ended;

/* As often as @user says, then it stays. */
static void *come_and_go(void *user)
{
	void *library = NULL;

	for (uintptr_t i = 0; i < (uintptr_t)user; i++) {
		if (library)
			dlclose(library);
		library = dlopen(LIBRARY, RTLD_NOW);
	}
	atomic_store(&ended, true);
	return library;
}

/* However fast libraries come while the mappings are read: what is there in the end is seen. */
static void test_faster_than_looks(void **state)
{
	struct pm_procs *procs = pm_procs_new(NULL);
	struct pm_self_changes changes = { 0 };
	uint64_t until;

	assert_non_null(procs);
	assert_int_equal(pm_self_changes_begin(&changes, procs, getpid()), 0);
	for (uintptr_t round = 0; round < ROUNDS; round++) {
		void *library;
		pthread_t id;
		int ret;

		atomic_store(&ended, false);
		assert_int_equal(
			pthread_create(&id, NULL, come_and_go, (void *)(10 + round % 29)),
			0);
		while (!atomic_load(&ended))
			assert_true(pm_self_changes_look(&changes, false, &until) >= 0);
		pthread_join(id, &library);
		while ((ret = pm_self_changes_look(&changes, false, &until)) > 0)
			;
		assert_int_equal(ret, 0);
		assert_non_null(library);
		assert_true(has_library(&changes));
		dlclose(library);
		while ((ret = pm_self_changes_look(&changes, false, &until)) > 0)
			;
		assert_int_equal(ret, 0);
		assert_false(has_library(&changes));
	}
	pm_self_changes_release(&changes);
	pm_procs_free(procs);
}

/* Ends the process: 0, or which of the looks was wrong. */
static void *look(void *first)
{
	size_t bytes = (size_t)sysconf(_SC_PAGESIZE);
	struct pm_self_mappings known = { 0 };
	int wrong = 0;

	pthread_join(*(pthread_t *)first, NULL);
	if (!pm_self_mappings_changed(&known))
		wrong |= 1;
	if (pm_self_mappings_changed(&known))
		wrong |= 2;
	if (mmap(NULL, bytes, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		 0) == MAP_FAILED)
		wrong |= 4;
	if (!pm_self_mappings_changed(&known))
		wrong |= 8;
	_exit(wrong);
}

static void test_first_thread_ends(void **state)
{
	pid_t pid = fork();
	int status = -1;

	assert_true(pid >= 0);
	if (pid == 0) {
		static pthread_t first;
		pthread_t id;

		first = pthread_self();
		if (pthread_create(&id, NULL, look, &first) != 0)
			_exit(16);
		pthread_exit(NULL);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_faster_than_looks),
		cmocka_unit_test(test_first_thread_ends),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
