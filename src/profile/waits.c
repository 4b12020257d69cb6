/* SPDX-License-Identifier: MIT */
/* Attributes blocked time to the function that waits. A blocked stack ends in the
 * kernel's scheduler, called through the C library's implementation of the wait. Neither
 * is of interest. */
#include "profile-internal.h"

#include <string.h>

static bool starts_with_prefix(const char *text, const char *prefix)
{
	return strncmp(text, prefix, strlen(prefix)) == 0;
}

static bool starts_with_any_prefix(const char *text, const char *const *prefixes,
				   size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (starts_with_prefix(text, prefixes[i]))
			return true;
	return false;
}

/* ---- classifying names --------------------------------------------------------------------- */

/* Returns the name of the system call that a kernel function implements, or NULL. */
static const char *system_call_of_function(const char *name)
{
	static const char *const prefixes[] = { "__x64_sys_",
						"__ia32_sys_",
						"__ia32_compat_sys_",
						"__arm64_sys_",
						"__arm64_compat_sys_",
						"__riscv_sys_",
						"__s390x_sys_",
						"__se_sys_",
						"__do_sys_",
						"ksys_",
						"__sys_",
						"do_sys_" };

	/* These appear if the compiler has turned their call into a jump. */
	static const struct {
		const char *name, *syscall;
	} others[] = {
		{ "kernel_wait4", "wait4" },     { "kernel_waitid", "waitid" },
		{ "do_futex", "futex" },         { "do_epoll_wait", "epoll_wait" },
		{ "core_sys_select", "select" },
	};

	for (size_t i = 0; i < PM_ARRAY_LEN(prefixes); i++)
		if (starts_with_prefix(name, prefixes[i]))
			return name + strlen(prefixes[i]);
	for (size_t i = 0; i < PM_ARRAY_LEN(others); i++)
		if (strcmp(name, others[i].name) == 0)
			return others[i].syscall;
	return NULL;
}

static bool is_scheduler_function(const char *name)
{
	static const char *const prefixes[] = { "__schedule", "schedule_", "io_schedule",
						"preempt_schedule", "__cond_resched" };

	return strcmp(name, "schedule") == 0 ||
	       starts_with_any_prefix(name, prefixes, PM_ARRAY_LEN(prefixes));
}

static bool is_library_module(const struct pm_profile *profile, uint32_t module)
{
	static const char *const prefixes[] = {
		"libc.so", "libc-2.",  "libc.musl-", "ld-musl-",      "ld-linux",
		"ld-2.",   "librt.so", "librt-2.",   "libpthread.so", "libpthread-2.",
		"[vdso]",  "libc++.",  "libc++abi.", "libstdc++."
	};

	return module != PM_PROFILE_NONE &&
	       starts_with_any_prefix(profile->modules.data[module].name, prefixes,
				      PM_ARRAY_LEN(prefixes));
}

/* Whether another compiler made the name, for a function of the program: gfortran names
 * those of modules this way, Cython all of them. */
static bool is_compiler_made_name(const char *name)
{
	return starts_with_prefix(name, "__pyx_") ||
	       (starts_with_prefix(name, "__") && strstr(name, "_MOD_"));
}

/* Whether the name is one of the library. If the program is linked statically, only names
 * identify it: those that C 7.1.3 and POSIX 2.2.2 reserve, and the functions that run
 * before the first function of a thread. */
static bool is_library_name(const char *name)
{
	static const char *const prefixes[] = { "std::", "<std::", "__",   "pthread_",
						"sem_",  "mtx_",   "cnd_", "thrd_" };
	static const char *const names[] = {
		"_start",     "accept",
		"accept4",    "clock_nanosleep",
		"clone",      "clone3",
		"connect",    "epoll_pwait",
		"epoll_wait", "execute_native_thread_routine",
		"fdatasync",  "flock",
		"fsync",      "futex",
		"nanosleep",  "open",
		"poll",       "ppoll",
		"pread64",    "pselect",
		"pwrite64",   "read",
		"readv",      "recv",
		"recvfrom",   "recvmsg",
		"select",     "send",
		"sendmsg",    "sendto",
		"sleep",      "start_thread",
		"syscall",    "usleep",
		"wait",       "wait4",
		"waitid",     "waitpid",
		"write",      "writev"
	};

	if (starts_with_any_prefix(name, prefixes, PM_ARRAY_LEN(prefixes)))
		return !is_compiler_made_name(name);
	for (size_t i = 0; i < PM_ARRAY_LEN(names); i++)
		if (strcmp(name, names[i]) == 0)
			return true;
	return false;
}

/* ---- classifying stacks -------------------------------------------------------------------- */

/* Where a stack waits, if it ends here. Names belong to the profile and may have a
 * suffix. */
struct site {
	/* A place and a function outside of the kernel, as in struct pm_wait. */
	uint32_t waiter, call;
	bool found; /* the waiter does not belong to the library */
	/* The innermost place in the kernel that does not belong to the scheduler. */
	uint32_t inner;
	const char *syscall;
	bool fault;
};

static const struct site nowhere = { .waiter = PM_PROFILE_NONE,
				     .call = PM_PROFILE_NONE,
				     .inner = PM_PROFILE_NONE };

static bool is_kernel_stack(const struct pm_profile *profile, uint32_t stack)
{
	uint32_t module = profile->frames.data[profile->stacks.data[stack].frame].module;

	return module != PM_PROFILE_NONE && profile->modules.data[module].kernel;
}

/* Handles a frame of the kernel. The outermost function that is named like a system call
 * is the one that was called: its implementation may use those of others. */
static void site_enter_kernel(const struct pm_profile *profile, uint32_t stack,
			      struct site *site)
{
	uint32_t place = pm_profile_level_place(profile, stack, 0);
	const struct pm_profile_function *function =
		&profile->functions.data[profile->places.data[place].function];

	if (function->unknown || is_scheduler_function(function->name))
		return;
	site->inner = place;
	if (!site->syscall)
		site->syscall = system_call_of_function(function->name);
	site->fault |= strstr(function->name, "page_fault") != NULL;
}

/* Finds the innermost function that does not belong to the library, and the library
 * function that it called. If all functions belong to the library, as while a thread
 * ends, uses the innermost one. */
static void site_enter_program(const struct pm_profile *profile, uint32_t stack,
			       struct site *site)
{
	uint32_t levels = pm_profile_levels(profile, stack), call = PM_PROFILE_NONE;

	for (uint32_t i = 0; i < levels; i++) {
		uint32_t id = pm_profile_level_function(profile, stack, i);
		const struct pm_profile_function *function = &profile->functions.data[id];

		if (!is_library_module(profile, function->module) &&
		    !is_library_name(function->name)) {
			*site = nowhere;
			site->waiter = pm_profile_level_place(profile, stack, i);
			site->call = call;
			site->found = true;
			return;
		}
		call = id;
	}
	if (!site->found)
		site->waiter = pm_profile_level_place(profile, stack, 0);
	else if (site->call == PM_PROFILE_NONE)
		site->call = call;
	site->inner = PM_PROFILE_NONE;
	site->syscall = NULL;
	site->fault = false;
}

/* Finds the sites of all stacks. Parents come first, so each frame is examined once. The
 * caller frees the result. */
static struct site *find_wait_sites(const struct pm_view *view)
{
	const struct pm_profile *profile = view->profile;
	struct site *sites = malloc((profile->stacks.len + 1) * sizeof(*sites));

	for (uint32_t i = 0; sites && i < profile->stacks.len; i++) {
		uint32_t parent = profile->stacks.data[i].parent;

		sites[i] = parent == PM_PROFILE_NONE ? nowhere : sites[parent];
		if (view->sum[i].samples == 0)
			continue;
		if (is_kernel_stack(profile, i))
			site_enter_kernel(profile, i, &sites[i]);
		else
			site_enter_program(profile, i, &sites[i]);
	}
	return sites;
}

/* Returns the place that waits. For a kernel thread it is in the kernel. */
static uint32_t waiter_place_of_site(const struct pm_profile *profile,
				     const struct site *site, uint32_t stack)
{
	if (site->waiter != PM_PROFILE_NONE)
		return site->waiter;
	if (site->inner != PM_PROFILE_NONE)
		return site->inner;
	return pm_profile_level_place(profile, stack, 0);
}

static const char *kernel_call_of_site(const struct pm_profile *profile,
				       const struct site *site)
{
	if (site->syscall)
		return site->syscall;
	if (site->fault)
		return "page fault";
	if (site->inner == PM_PROFILE_NONE || site->waiter == PM_PROFILE_NONE)
		return NULL;
	return profile->functions.data[profile->places.data[site->inner].function].name;
}

bool pm_profile_is_blocked_time(const struct pm_profile_event *event)
{
	return event->blocked;
}

uint32_t *pm_view_waiters(const struct pm_view *view)
{
	const struct pm_profile *profile = view->profile;
	PM_AUTO_FREE struct site *sites = find_wait_sites(view);
	uint32_t *waiters = malloc((profile->stacks.len + 1) * sizeof(*waiters));

	if (!sites) {
		free(waiters);
		return NULL;
	}
	for (uint32_t i = 0; waiters && i < profile->stacks.len; i++) {
		if (view->self[i].samples > 0)
			waiters[i] = waiter_place_of_site(profile, &sites[i], i);
		else
			waiters[i] = PM_PROFILE_NONE;
	}
	return waiters;
}

/* ---- rows ---------------------------------------------------------------------------------- */

struct work {
	const struct pm_profile *profile;
	struct pm_waits waits;
	struct pm_index index;
	struct site *sites; /* by stack */
	bool lines;
};

static void waits_work_release(struct work *work)
{
	pm_waits_release(&work->waits);
	pm_index_release(&work->index);
	free(work->sites);
}

static bool wait_key_equal(const void *table, uint32_t id, const void *key)
{
	const struct pm_wait *have = &((const struct work *)table)->waits.rows.data[id];
	const struct pm_wait *wanted = key;

	return have->function == wanted->function && have->place == wanted->place &&
	       have->call == wanted->call && have->kernel == wanted->kernel;
}

/* Stores the name in @out without suffixes that the compiler has added, such as
 * `.constprop.0` and `.isra.0`. */
static int keep_wait_name(struct work *work, const char *name, const char **out)
{
	*out = NULL;
	if (!name)
		return 0;
	*out = pm_text_pool_add(work->waits.names, name, strcspn(name, "."));
	if (!*out)
		return -ENOMEM;
	return 0;
}

static int find_or_add_wait(struct work *work, uint32_t stack, uint32_t *out)
{
	const struct site *site = &work->sites[stack];
	uint32_t place = waiter_place_of_site(work->profile, site, stack);
	struct pm_wait wanted = {
		.function = work->profile->places.data[place].function,
		.place = work->lines ? place : PM_PROFILE_NONE,
		.call = site->call,
	};
	uint64_t hash;
	uint32_t id;
	int ret = keep_wait_name(work, kernel_call_of_site(work->profile, site),
				 &wanted.kernel);

	if (ret < 0)
		return ret;
	hash = pm_hash_mix((uint64_t)wanted.function << 32 | wanted.call,
			   (uintptr_t)wanted.kernel);
	hash = pm_hash_mix(hash, wanted.place);
	id = pm_index_find(&work->index, hash, wait_key_equal, work, &wanted);
	if (id == PM_INDEX_NONE) {
		id = (uint32_t)work->waits.rows.len;
		ret = pm_vec_push(&work->waits.rows, wanted);
		if (ret == 0)
			ret = pm_index_add(&work->index, hash, id);
	}
	*out = id;
	return ret;
}

static int compare_waits_by_time(const void *a, const void *b)
{
	const struct pm_wait *left = a, *right = b;

	if (left->weight.period != right->weight.period)
		return PM_COMPARE(right->weight.period, left->weight.period);
	if (left->function != right->function)
		return PM_COMPARE(left->function, right->function);
	if (left->place != right->place)
		return PM_COMPARE(left->place, right->place);
	if (left->call != right->call)
		return PM_COMPARE(left->call, right->call);
	return strcmp(pm_text_or_empty(left->kernel), pm_text_or_empty(right->kernel));
}

static int waits_add_cells(struct work *work, const struct pm_view *view)
{
	for (size_t i = 0; i < view->cells.len; i++) {
		const struct pm_profile_cell *cell =
			&work->profile->cells.data[view->cells.data[i]];
		struct pm_wait *row;
		uint32_t id;
		int ret = find_or_add_wait(work, cell->stack, &id);

		if (ret < 0)
			return ret;
		row = &work->waits.rows.data[id];
		pm_weight_add(&row->weight, &cell->weight);
		if (cell->longest > row->longest)
			row->longest = cell->longest;
	}
	return 0;
}

int pm_waits_init(struct pm_waits *out, const struct pm_view *view, bool lines)
{
	PM_CLEANUP(waits_work_release)
	struct work work = { .profile = view->profile, .lines = lines };
	int ret;

	work.waits.names = pm_text_pool_new();
	work.sites = find_wait_sites(view);
	if (!work.waits.names || !work.sites)
		return -ENOMEM;
	ret = waits_add_cells(&work, view);
	if (ret < 0)
		return ret;
	if (work.waits.rows.len > 0)
		qsort(work.waits.rows.data, work.waits.rows.len, sizeof(struct pm_wait),
		      compare_waits_by_time);
	*out = work.waits;
	work.waits = (struct pm_waits){ 0 };
	return 0;
}

void pm_waits_release(struct pm_waits *waits)
{
	pm_vec_release(&waits->rows);
	pm_text_pool_free(waits->names);
}
