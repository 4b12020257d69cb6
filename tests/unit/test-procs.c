/* SPDX-License-Identifier: MIT */
/* Tables of processes, threads and modules: changed by records. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "pm/proc.h"

#include <linux/magic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>

static int users_freed;

static void free_user(void *user)
{
	users_freed++;
	free(user);
}

static int make_procs(void **state)
{
	users_freed = 0;
	*state = pm_procs_new(free_user);
	return *state ? 0 : -1;
}

static int free_procs(void **state)
{
	pm_procs_free(*state);
	return 0;
}

static struct pm_module_identity file(const char *path, uint64_t inode)
{
	return (struct pm_module_identity){ .kind = PM_MODULE_FILE,
					    .path = path,
					    .major = 8,
					    .minor = 1,
					    .inode = inode };
}

static void map(struct pm_procs *procs, pid_t pid, uint64_t start, uint64_t len,
		const char *path)
{
	struct pm_module_identity identity = file(path, 1);

	assert_int_equal(
		pm_procs_map(procs, pid, start, len, 0, PROT_READ | PROT_EXEC, &identity),
		0);
}

/* The path mapped there, or NULL. */
static const char *path_at(struct pm_procs *procs, pid_t pid, uint64_t address)
{
	const struct pm_process *process = pm_procs_get(procs, pid);
	const struct pm_mapping *mapping = pm_space_find(&process->space, address);

	return mapping ? pm_procs_module(procs, mapping->module)->identity.path : NULL;
}

static uint64_t epoch(struct pm_procs *procs, pid_t pid)
{
	return pm_procs_get(procs, pid)->space.epoch;
}

/* ---- modules ------------------------------------------------------------------------- */

static int64_t intern(struct pm_procs *procs, struct pm_module_identity identity)
{
	return pm_procs_intern_module(procs, &identity);
}

static struct pm_module_identity with_build_id(struct pm_module_identity identity,
					       uint8_t first)
{
	identity.build_id_len = 20;
	identity.build_id[0] = first;
	return identity;
}

static void modules_are_one_by_path_and_identity(void **state)
{
	struct pm_procs *procs = *state;
	char name[] = "/bin/a";
	struct pm_module_identity other = file("/bin/a", 1);

	assert_int_equal(intern(procs, file(name, 1)), 0);
	name[5] = 'x'; /* the table has a copy of its own */
	assert_int_equal(intern(procs, file("/bin/a", 1)), 0);
	assert_string_equal(pm_procs_module(procs, 0)->identity.path, "/bin/a");
	assert_int_equal(intern(procs, file("/bin/a", 2)), 1);
	assert_int_equal(intern(procs, file("/bin/b", 1)), 2);
	other.minor = 2;
	assert_int_equal(intern(procs, other), 3);
	assert_int_equal(intern(procs, with_build_id(file("/bin/a", 0), 1)), 4);
	assert_int_equal(intern(procs, with_build_id(file("/bin/a", 0), 2)), 5);
	assert_int_equal(intern(procs, with_build_id(file("/bin/a", 0), 1)), 4);
	assert_int_equal(intern(procs, file("/bin/a", 0)), 6);
	assert_int_equal(pm_procs_modules_len(procs), 7);
	assert_null(pm_procs_module(procs, 7));
}

static void module_known_both_ways_is_found_either_way(void **state)
{
	struct pm_procs *procs = *state;

	assert_int_equal(intern(procs, with_build_id(file("/bin/a", 7), 1)), 0);
	assert_int_equal(intern(procs, with_build_id(file("/bin/a", 0), 1)), 0);
	assert_int_equal(intern(procs, file("/bin/a", 7)), 0);
	/* Another build in the same inode is another file. */
	assert_int_equal(intern(procs, with_build_id(file("/bin/a", 7), 2)), 1);
	assert_int_equal(intern(procs, file("/bin/a", 8)), 2);
}

/* A copy of a program in another root, under the same name there. */
static void copied_build_is_another_module(void **state)
{
	struct pm_procs *procs = *state;
	PM_AUTO_FREE char *path = realpath("/proc/self/exe", NULL);
	struct pm_module_identity ours;
	struct statfs fs;
	struct stat st;

	assert_non_null(path);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(statfs(path, &fs), 0);
	if ((unsigned long)fs.f_type == OVERLAYFS_SUPER_MAGIC) {
		print_message("on overlayfs inodes tell nothing\n");
		skip();
	}
	ours = with_build_id(file(path, st.st_ino), 1);
	ours.major = major(st.st_dev);
	ours.minor = minor(st.st_dev);
	assert_int_equal(intern(procs, with_build_id(file(path, st.st_ino + 1), 1)), 0);
	assert_int_equal(intern(procs, with_build_id(file(path, 0), 1)), 1);
	assert_int_equal(intern(procs, ours), 1);
	assert_int_equal(intern(procs, with_build_id(file(path, st.st_ino + 1), 1)), 0);
	assert_int_equal(intern(procs, with_build_id(file(path, 0), 1)), 1);
}

/* A file system uses the number of a deleted file again. */
static void inode_of_another_generation_is_another_module(void **state)
{
	struct pm_procs *procs = *state;
	struct pm_module_identity from_proc = file("/bin/a", 7), old = from_proc, new;

	old.generation_known = true;
	old.generation = 1;
	new = old;
	new.generation = 2;
	assert_int_equal(intern(procs, from_proc), 0);
	assert_int_equal(intern(procs, old), 0);
	assert_int_equal(intern(procs, new), 1);
	assert_int_equal(intern(procs, old), 0);
	assert_int_equal(pm_procs_find_module(procs, &new), 1);
	/* Written over in its place. */
	pm_procs_retire_module(procs, 1);
	assert_int_equal(pm_procs_find_module(procs, &new), PM_MODULE_NONE);
	assert_int_equal(intern(procs, new), 2);
}

static void note_drop(void *user, uint32_t id)
{
	*(uint64_t *)user |= (uint64_t)1 << id;
}

static void modules_that_nobody_maps_are_dropped(void **state)
{
	struct pm_procs *procs = *state;
	struct pm_module_identity a = file("/a", 1), b = file("/b", 2), c = file("/c", 3);
	uint64_t dropped = 0;

	assert_int_equal(pm_procs_map(procs, 1, 0x1000, 0x1000, 0, PROT_EXEC, &a), 0);
	assert_int_equal(pm_procs_map(procs, 1, 0x3000, 0x1000, 0, PROT_EXEC, &b), 0);
	assert_int_equal(pm_procs_map(procs, 1, 0x1000, 0x1000, 0, PROT_EXEC, &c), 0);
	assert_int_equal(pm_procs_drop_modules(procs, note_drop, &dropped), 0);
	assert_int_equal(dropped, 1);
	assert_null(pm_procs_module(procs, 0));
	assert_string_equal(path_at(procs, 1, 0x3000), "/b");
	assert_string_equal(path_at(procs, 1, 0x1000), "/c");
	/* The id is used again, the file found again. */
	assert_int_equal(intern(procs, file("/d", 4)), 0);
	assert_int_equal(intern(procs, file("/a", 1)), 3);
	assert_int_equal(intern(procs, file("/b", 2)), 1);
}

static void files_that_are_too_many_share_a_module(void **state)
{
	struct pm_procs *procs = *state;
	struct pm_procs_stats stats;
	int64_t first = -1;

	for (uint64_t i = 0; i < PM_MODULES_MAX + 10; i++) {
		int64_t id = intern(procs, file("/bin/a", i + 1));

		assert_true(id >= 0 && id <= PM_MODULES_MAX);
		if (i >= PM_MODULES_MAX) {
			first = first < 0 ? id : first;
			assert_int_equal(id, first);
		}
	}
	assert_string_equal(pm_procs_module(procs, (uint32_t)first)->identity.path,
			    PM_MODULES_REFUSED_PATH);
	pm_procs_stats(procs, &stats);
	assert_int_equal(stats.modules_refused, 10);
	assert_int_equal(stats.modules, PM_MODULES_MAX + 1);
}

/* A hundred processes with ten times the mappings that the table may hold. */
static void mappings_are_bounded(void **state)
{
	struct pm_procs *procs = *state;
	struct pm_module_identity a = file("/a", 1);
	struct pm_procs_stats stats;

	for (pid_t pid = 1; pid <= 100; pid++)
		for (uint64_t i = 0; i < 20000; i++)
			assert_int_equal(pm_procs_map(procs, pid, 0x10000 + i * 0x2000,
						      0x1000, 0, PROT_EXEC, &a),
					 0);
	pm_procs_stats(procs, &stats);
	assert_true(stats.maps <= (1 << 20) + 100 * 1024);
	assert_true(stats.maps_forgotten > 0);
	assert_true(stats.bytes < (size_t)64 << 20);
	/* The newest mapping is there, and a process with few mappings has all of
	 * them. */
	assert_string_equal(path_at(procs, 100, 0x10000 + 19999 * 0x2000), "/a");
	for (uint64_t i = 0; i < 100; i++)
		assert_int_equal(pm_procs_map(procs, 101, 0x10000 + i * 0x2000, 0x1000, 0,
					      PROT_EXEC, &a),
				 0);
	assert_string_equal(path_at(procs, 101, 0x10000), "/a");
}

/* Tasks whose end no record reported: the kernel may have lost it. */
static void ended_tasks_are_swept(void **state)
{
	enum {
		NOBODY = 5000000, /* above 2^22, the limit of pid_max (proc(5)) */
		ENDED = 3000,
	};
	struct pm_procs *procs = *state;
	struct pm_procs_stats stats;
	pid_t own = getpid();

	for (pid_t pid = NOBODY; pid < NOBODY + ENDED; pid++)
		assert_non_null(pm_procs_thread(procs, pid, pid));
	assert_non_null(pm_procs_thread(procs, own, own));
	pm_procs_sweep(procs);
	pm_procs_stats(procs, &stats);
	assert_true(stats.processes <= 1025 && stats.threads <= 1025);
	assert_true(pm_task_is_gone(NOBODY));
	assert_false(pm_task_is_gone(own));
	assert_non_null(pm_procs_find_thread(procs, own, own));
	/* The last that have ended stay for late samples. */
	assert_non_null(
		pm_procs_find_thread(procs, NOBODY + ENDED - 1, NOBODY + ENDED - 1));
	assert_null(pm_procs_find_thread(procs, NOBODY, NOBODY));
}

static void memory_without_a_file_is_one_by_name(void **state)
{
	struct pm_procs *procs = *state;
	struct pm_module_identity anon = { .kind = PM_MODULE_ANON, .path = "//anon" };
	struct pm_module_identity from_proc = { .kind = PM_MODULE_ANON, .path = "" };
	struct pm_module_identity zero = { .kind = PM_MODULE_ANON, .path = "/dev/zero" };
	struct pm_module_identity vdso = { .kind = PM_MODULE_VDSO, .path = "[vdso]" };

	assert_int_equal(intern(procs, anon), 0);
	assert_int_equal(intern(procs, from_proc), 0);
	assert_int_equal(intern(procs, zero), 1);
	zero.inode = 5; /* each shared mapping has one of its own */
	assert_int_equal(intern(procs, zero), 1);
	assert_int_equal(intern(procs, vdso), 2);
	assert_int_equal(intern(procs, vdso), 2);
}

static void senseless_build_id_is_refused(void **state)
{
	struct pm_module_identity identity = file("/bin/a", 1);

	identity.build_id_len = PM_MODULE_BUILD_ID_MAX + 1;
	assert_int_equal(pm_procs_intern_module(*state, &identity), -EINVAL);
	assert_int_equal(pm_procs_modules_len(*state), 0);
}

static void thousands_of_modules_keep_their_ids(void **state)
{
	for (int round = 0; round < 2; round++)
		for (int i = 0; i < 5000; i++) {
			char path[32];

			snprintf(path, sizeof(path), "/lib/%d", i);
			assert_int_equal(intern(*state, file(path, 1)), i);
		}
}

/* ---- mappings ------------------------------------------------------------------------ */

static void mappings_come_and_go(void **state)
{
	struct pm_procs *procs = *state;
	struct pm_module_identity identity = file("/lib/data", 2);
	uint64_t before;

	map(procs, 1, 0x1000, 0x3000, "/lib/a");
	assert_string_equal(path_at(procs, 1, 0x1000), "/lib/a");
	assert_string_equal(path_at(procs, 1, 0x3fff), "/lib/a");
	assert_null(path_at(procs, 1, 0x4000));
	assert_null(path_at(procs, 1, 0xfff));
	assert_null(path_at(procs, 2, 0x1000));
	map(procs, 1, 0x2000, 0x1000, "/lib/b");
	assert_string_equal(path_at(procs, 1, 0x1fff), "/lib/a");
	assert_string_equal(path_at(procs, 1, 0x2000), "/lib/b");
	assert_string_equal(path_at(procs, 1, 0x3000), "/lib/a");
	assert_int_equal(pm_space_find(&pm_procs_get(procs, 1)->space, 0x3000)->pgoff,
			 0x2000);
	/* Data in the place of code cuts it, and is itself not kept. */
	assert_int_equal(pm_procs_map(procs, 1, 0x2800, 0x1000, 0, PROT_READ, &identity),
			 0);
	assert_string_equal(path_at(procs, 1, 0x27ff), "/lib/b");
	assert_null(path_at(procs, 1, 0x2800));
	assert_null(path_at(procs, 1, 0x37ff));
	assert_string_equal(path_at(procs, 1, 0x3800), "/lib/a");
	assert_int_equal(pm_procs_modules_len(procs), 2);
	/* Data elsewhere changes nothing. */
	before = epoch(procs, 1);
	assert_int_equal(pm_procs_map(procs, 1, 0x9000, 0x1000, 0, PROT_READ, &identity),
			 0);
	assert_int_equal(epoch(procs, 1), before);
}

static void senseless_ranges_change_nothing(void **state)
{
	struct pm_procs *procs = *state;
	struct pm_module_identity identity = file("/lib/a", 1);
	uint64_t before;

	map(procs, 1, 0x1000, 0x1000, "/lib/a");
	before = epoch(procs, 1);
	assert_int_equal(
		pm_procs_map(procs, 1, 0x1000, UINT64_MAX, 0, PROT_EXEC, &identity),
		-EINVAL);
	assert_int_equal(pm_procs_map(procs, 1, 0x1000, 0, 0, PROT_EXEC, &identity), 0);
	assert_int_equal(epoch(procs, 1), before);
	assert_string_equal(path_at(procs, 1, 0x1fff), "/lib/a");
}

static void epochs_are_unique_and_tell_changes(void **state)
{
	struct pm_procs *procs = *state;
	uint64_t first;

	assert_int_not_equal(epoch(procs, 1), epoch(procs, 2));
	map(procs, 1, 0x1000, 0x1000, "/lib/a");
	first = epoch(procs, 1);
	map(procs, 1, 0x1000, 0x1000, "/lib/a");
	assert_int_equal(epoch(procs, 1), first);
	map(procs, 1, 0x1000, 0x1000, "/lib/b");
	assert_int_not_equal(epoch(procs, 1), first);
	map(procs, 2, 0x1000, 0x1000, "/lib/b");
	assert_int_not_equal(epoch(procs, 1), epoch(procs, 2));
	assert_int_equal(pm_procs_fork(procs, 3, 3, 1, 1), 0);
	assert_int_not_equal(epoch(procs, 1), epoch(procs, 3));
	first = epoch(procs, 3);
	assert_int_equal(pm_procs_comm(procs, 3, 3, "x", false), 0);
	assert_int_equal(epoch(procs, 3), first);
	assert_int_equal(pm_procs_comm(procs, 3, 3, "x", true), 0);
	assert_int_not_equal(epoch(procs, 3), first);
}

/* ---- fork, exec, exit ---------------------------------------------------------------- */

static void forked_process_copies_and_goes_its_way(void **state)
{
	struct pm_procs *procs = *state;

	map(procs, 10, 0x1000, 0x1000, "/bin/sh");
	assert_int_equal(pm_procs_comm(procs, 10, 10, "sh", false), 0);
	assert_int_equal(pm_procs_comm(procs, 10, 12, "worker", false), 0);
	assert_int_equal(pm_procs_fork(procs, 11, 11, 10, 12), 0);
	assert_string_equal(pm_procs_thread(procs, 11, 11)->comm, "worker");
	assert_string_equal(pm_procs_thread(procs, 11, 15)->comm, "worker");
	assert_string_equal(path_at(procs, 11, 0x1000), "/bin/sh");
	map(procs, 11, 0x1000, 0x1000, "/lib/child");
	assert_string_equal(path_at(procs, 10, 0x1000), "/bin/sh");
	map(procs, 10, 0x5000, 0x1000, "/lib/parent");
	assert_null(path_at(procs, 11, 0x5000));
}

static void new_thread_copies_only_the_comm(void **state)
{
	struct pm_procs *procs = *state;
	uint64_t before;

	map(procs, 10, 0x1000, 0x1000, "/bin/sh");
	assert_int_equal(pm_procs_comm(procs, 10, 10, "main", false), 0);
	assert_int_equal(pm_procs_comm(procs, 10, 11, "pool", false), 0);
	before = epoch(procs, 10);
	assert_int_equal(pm_procs_fork(procs, 10, 12, 10, 11), 0);
	assert_string_equal(pm_procs_thread(procs, 10, 12)->comm, "pool");
	assert_string_equal(pm_procs_thread(procs, 10, 99)->comm, "main");
	assert_int_equal(epoch(procs, 10), before);
	assert_int_equal(pm_procs_get(procs, 10)->generation, 0);
}

static void fork_of_an_unknown_parent_is_empty(void **state)
{
	struct pm_procs *procs = *state;

	assert_int_equal(pm_procs_fork(procs, 20, 20, 19, 19), 0);
	assert_int_equal(pm_procs_get(procs, 20)->space.maps.len, 0);
	assert_string_equal(pm_procs_thread(procs, 20, 20)->comm, "");
}

static void exec_begins_a_new_generation(void **state)
{
	struct pm_procs *procs = *state;
	struct pm_process *process = pm_procs_get(procs, 10);

	map(procs, 10, 0x1000, 0x1000, "/bin/sh");
	process->user = malloc(1);
	assert_int_equal(pm_procs_comm(procs, 10, 10, "renamed", false), 0);
	assert_int_equal(process->generation, 0);
	assert_int_equal(process->space.maps.len, 1);
	assert_int_equal(
		pm_procs_comm(procs, 10, 10, "a name longer than 15 bytes", true), 0);
	assert_ptr_equal(pm_procs_get(procs, 10), process);
	assert_int_equal(process->generation, 1);
	assert_int_equal(process->space.maps.len, 0);
	assert_non_null(process->user);
	assert_int_equal(users_freed, 0);
	assert_string_equal(pm_procs_thread(procs, 10, 10)->comm, "a name longer t");
}

/* A thread that calls exec takes over the pid of the leader, which exits before. */
static void a_thread_that_execs_becomes_the_leader(void **state)
{
	enum {
		OTHERS = 3000
	};
	struct pm_procs *procs = *state;

	pm_procs_get(procs, 10)->user = malloc(1);
	assert_int_equal(pm_procs_comm(procs, 10, 10, "old", false), 0);
	assert_int_equal(pm_procs_fork(procs, 10, 11, 10, 10), 0);
	pm_procs_exit(procs, 10, 10);
	assert_int_equal(pm_procs_comm(procs, 10, 10, "new", true), 0);
	assert_string_equal(pm_procs_thread(procs, 10, 10)->comm, "new");
	for (pid_t pid = 100; pid < 100 + OTHERS; pid++) {
		assert_int_equal(pm_procs_fork(procs, pid, pid, 9, 9), 0);
		pm_procs_exit(procs, pid, pid);
	}
	assert_int_equal(users_freed, 0);
	assert_string_equal(pm_procs_thread(procs, 10, 10)->comm, "new");
	pm_procs_exit(procs, 10, 10);
	for (pid_t pid = 100; pid < 100 + OTHERS; pid++) {
		assert_int_equal(pm_procs_fork(procs, pid, pid, 9, 9), 0);
		pm_procs_exit(procs, pid, pid);
	}
	assert_int_equal(users_freed, 1);
}

/* A record of another thread shows that the process goes on. */
static void a_process_with_a_new_thread_has_not_ended(void **state)
{
	enum {
		OTHERS = 3000
	};
	struct pm_procs *procs = *state;

	pm_procs_get(procs, 10)->user = malloc(1);
	assert_int_equal(pm_procs_comm(procs, 10, 10, "shell", false), 0);
	pm_procs_exit(procs, 10, 10);
	assert_string_equal(pm_procs_thread(procs, 10, 11)->comm, "shell");
	for (pid_t pid = 100; pid < 100 + OTHERS; pid++) {
		assert_int_equal(pm_procs_fork(procs, pid, pid, 9, 9), 0);
		pm_procs_exit(procs, pid, pid);
	}
	assert_int_equal(users_freed, 0);
}

static void late_samples_still_know_who_exited(void **state)
{
	struct pm_procs *procs = *state;

	map(procs, 10, 0x1000, 0x1000, "/bin/sh");
	assert_int_equal(pm_procs_comm(procs, 10, 10, "sh", false), 0);
	assert_int_equal(pm_procs_comm(procs, 10, 11, "pool", false), 0);
	pm_procs_exit(procs, 10, 11);
	pm_procs_exit(procs, 10, 10);
	pm_procs_exit(procs, 10, 10);
	pm_procs_exit(procs, 77, 78); /* never seen */
	assert_string_equal(path_at(procs, 10, 0x1000), "/bin/sh");
	assert_string_equal(pm_procs_thread(procs, 10, 11)->comm, "pool");
	assert_string_equal(pm_procs_thread(procs, 10, 10)->comm, "sh");
}

static void pid_that_is_used_again_is_a_new_process(void **state)
{
	struct pm_procs *procs = *state;
	struct pm_process *process = pm_procs_get(procs, 10);

	process->user = malloc(1);
	map(procs, 9, 0x1000, 0x1000, "/bin/sh");
	map(procs, 10, 0x5000, 0x1000, "/bin/old");
	assert_int_equal(pm_procs_comm(procs, 10, 10, "old", false), 0);
	assert_int_equal(pm_procs_comm(procs, 9, 9, "sh", false), 0);
	pm_procs_exit(procs, 10, 10);
	assert_int_equal(users_freed, 0);
	assert_int_equal(pm_procs_fork(procs, 10, 10, 9, 9), 0);
	process = pm_procs_get(procs, 10);
	assert_int_equal(users_freed, 1);
	assert_null(process->user);
	assert_int_equal(process->generation, 1);
	assert_null(path_at(procs, 10, 0x5000));
	assert_string_equal(path_at(procs, 10, 0x1000), "/bin/sh");
	assert_string_equal(pm_procs_thread(procs, 10, 10)->comm, "sh");
}

/* A build: a shell that starts one short program after the other. */
static void short_processes_do_not_pile_up(void **state)
{
	enum {
		CHILDREN = 20000,
		FIRST = 1000
	};
	struct pm_procs *procs = *state;
	struct pm_process *shell = pm_procs_get(procs, 1);

	shell->user = malloc(1);
	map(procs, 1, 0x1000, 0x1000, "/bin/sh");
	assert_int_equal(pm_procs_comm(procs, 1, 1, "sh", false), 0);
	for (pid_t pid = FIRST; pid < FIRST + CHILDREN; pid++) {
		assert_int_equal(pm_procs_fork(procs, pid, pid, 1, 1), 0);
		pm_procs_get(procs, pid)->user = malloc(1);
		assert_int_equal(pm_procs_comm(procs, pid, pid, "cc", true), 0);
		map(procs, pid, 0x9000, 0x1000, "/bin/cc");
		pm_procs_exit(procs, pid, pid);
	}
	/* The most are gone, the last ones are still known, and so is who lives. */
	assert_in_range(users_freed, CHILDREN - 5000, CHILDREN - 100);
	assert_string_equal(path_at(procs, FIRST + CHILDREN - 1, 0x9000), "/bin/cc");
	assert_string_equal(path_at(procs, FIRST + CHILDREN - 100, 0x9000), "/bin/cc");
	assert_ptr_equal(pm_procs_get(procs, 1), shell);
	assert_non_null(shell->user);
	/* A dropped one's (pid, generation) never comes back: it had reached 1. */
	assert_true(pm_procs_get(procs, FIRST)->generation > 1);
}

static void a_process_lives_until_its_last_thread_exits(void **state)
{
	struct pm_procs *procs = *state;

	assert_int_equal(pm_procs_fork(procs, 10, 10, 1, 1), 0);
	assert_int_equal(pm_procs_fork(procs, 10, 11, 10, 10), 0);
	map(procs, 10, 0x1000, 0x1000, "/bin/daemon");
	pm_procs_exit(procs, 10, 10);
	for (pid_t pid = 1000; pid < 5000; pid++) {
		assert_int_equal(pm_procs_fork(procs, pid, pid, 10, 11), 0);
		pm_procs_exit(procs, pid, pid);
	}
	assert_string_equal(path_at(procs, 10, 0x1000), "/bin/daemon");
	/* It exits, is used again at once, and then belongs to the living. */
	pm_procs_exit(procs, 10, 11);
	assert_int_equal(pm_procs_fork(procs, 10, 10, 2, 2), 0);
	map(procs, 10, 0x1000, 0x1000, "/bin/again");
	for (pid_t pid = 1000; pid < 5000; pid++) {
		assert_int_equal(pm_procs_fork(procs, pid, pid, 10, 10), 0);
		pm_procs_exit(procs, pid, pid);
	}
	assert_string_equal(path_at(procs, 10, 0x1000), "/bin/again");
}

static void threads_are_found_among_many(void **state)
{
	struct pm_procs *procs = *state;
	const struct pm_thread *first = pm_procs_thread(procs, 1, 100);

	for (pid_t tid = 100; tid < 30000; tid++) {
		char comm[16];

		snprintf(comm, sizeof(comm), "t%d", tid);
		assert_int_equal(pm_procs_comm(procs, tid % 7, tid, comm, false), 0);
	}
	for (pid_t tid = 100; tid < 30000; tid++) {
		const struct pm_thread *thread = pm_procs_thread(procs, tid % 7, tid);

		assert_int_equal(thread->tid, tid);
		assert_int_equal(thread->pid, tid % 7);
		assert_int_equal(strtol(thread->comm + 1, NULL, 10), tid);
	}
	assert_ptr_equal(pm_procs_thread(procs, 1, 100), first);
}

static void a_thousand_processes_of_two_hundred_mappings(void **state)
{
	struct pm_procs *procs = *state;

	for (uint64_t i = 0; i < 200; i++)
		map(procs, 1, i * 0x2000, 0x1000, "/lib/a");
	for (pid_t pid = 2; pid < 1002; pid++)
		assert_int_equal(pm_procs_fork(procs, pid, pid, pid - 1, pid - 1), 0);
	for (uint64_t i = 0; i < 200; i++) {
		assert_string_equal(path_at(procs, 1001, i * 0x2000), "/lib/a");
		assert_null(path_at(procs, 1001, i * 0x2000 + 0x1000));
	}
	assert_int_equal(pm_procs_modules_len(procs), 1);
}

static void a_module_is_seen_where_it_lives(void **state)
{
	struct pm_procs *procs = *state;
	const struct pm_module *module;

	map(procs, 10, 0x1000, 0x1000, "/lib/a");
	map(procs, 11, 0x8000, 0x2000, "/lib/a");
	module = pm_procs_module(procs, 0);
	assert_int_equal(module->seen_pid, 10);
	assert_int_equal(module->seen_start, 0x1000);
	assert_int_equal(module->seen_end, 0x2000);
	assert_int_not_equal(module->seen_ns, 0);
	/* Its process runs another program now. */
	assert_int_equal(pm_procs_comm(procs, 10, 10, "x", true), 0);
	map(procs, 12, 0x8000, 0x2000, "/lib/a");
	assert_int_equal(module->seen_pid, 12);
	assert_int_equal(module->seen_start, 0x8000);
	assert_int_equal(pm_procs_comm(procs, 12, 12, "x", false), 0);
	pm_procs_exit(procs, 12, 12);
	map(procs, 13, 0x3000, 0x1000, "/lib/a");
	assert_int_equal(module->seen_pid, 13);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, make_procs, free_procs)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(modules_are_one_by_path_and_identity),
		TEST(module_known_both_ways_is_found_either_way),
		TEST(copied_build_is_another_module),
		TEST(inode_of_another_generation_is_another_module),
		TEST(modules_that_nobody_maps_are_dropped),
		TEST(files_that_are_too_many_share_a_module),
		TEST(mappings_are_bounded),
		TEST(ended_tasks_are_swept),
		TEST(memory_without_a_file_is_one_by_name),
		TEST(senseless_build_id_is_refused),
		TEST(thousands_of_modules_keep_their_ids),
		TEST(mappings_come_and_go),
		TEST(senseless_ranges_change_nothing),
		TEST(epochs_are_unique_and_tell_changes),
		TEST(forked_process_copies_and_goes_its_way),
		TEST(new_thread_copies_only_the_comm),
		TEST(fork_of_an_unknown_parent_is_empty),
		TEST(exec_begins_a_new_generation),
		TEST(a_thread_that_execs_becomes_the_leader),
		TEST(a_process_with_a_new_thread_has_not_ended),
		TEST(late_samples_still_know_who_exited),
		TEST(pid_that_is_used_again_is_a_new_process),
		TEST(short_processes_do_not_pile_up),
		TEST(a_process_lives_until_its_last_thread_exits),
		TEST(threads_are_found_among_many),
		TEST(a_thousand_processes_of_two_hundred_mappings),
		TEST(a_module_is_seen_where_it_lives),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
