/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <linux/filter.h>
#include <linux/perf_event.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>

#include "perf-level.h"
#include "src/perf/counters-state.h"

enum {
	NOBODY = 65534,
	SLEEPS = 20,
	PAGES = 4000,
	ATTACHED = 100, /* times, until a thread begins in between */
	/* Beside the known there are some faults of libc, and of sanitizers. */
	OTHERS = 700,
};

/* ---- arithmetic on recorded reads ------------------------------------------------------ */

static struct pm_count scaled(uint64_t value, uint64_t enabled_ns, uint64_t running_ns)
{
	return pm_count_scale(&(struct pm_count_read){ value, enabled_ns, running_ns });
}

static void scales_what_was_multiplexed(void **state)
{
	struct pm_count count = scaled(1000, 3000000, 1000000);

	(void)state;
	assert_int_equal(count.state, PM_STAT_MULTIPLEXED);
	assert_int_equal(count.value, 3000);
	assert_int_equal(count.raw, 1000);
	assert_int_equal(count.enabled_ns, 3000000);
	assert_int_equal(count.running_ns, 1000000);
	/* Rounded: 10 * 3 / 2 and 5 * 4 / 3. */
	assert_int_equal(scaled(10, 3, 2).value, 15);
	assert_int_equal(scaled(5, 4, 3).value, 7);
	/* More than 64 bits on the way, and at the end. */
	assert_int_equal(scaled(UINT64_MAX / 2, 4000000000, 2000000000).value,
			 UINT64_MAX - 1);
	assert_true(scaled(UINT64_MAX, 3, 2).value == UINT64_MAX);
}

static void sums_end_at_the_largest_number(void **state)
{
	struct pm_count_read sum = { UINT64_MAX - 1, 2, 3 };

	(void)state;
	pm_count_read_add(&sum, &(struct pm_count_read){ 2, 5, 7 });
	assert_true(sum.value == UINT64_MAX);
	assert_int_equal(sum.enabled_ns, 7);
	assert_int_equal(sum.running_ns, 10);
}

static void tells_what_is_not_known(void **state)
{
	(void)state;
	assert_int_equal(scaled(0, 5000, 0).state, PM_STAT_NOT_COUNTED);
	assert_int_equal(scaled(0, 0, 0).state, PM_STAT_OK);
	assert_int_equal(scaled(7, 5000, 5000).state, PM_STAT_OK);
	assert_int_equal(scaled(7, 5000, 5000).value, 7);
	assert_int_equal(scaled(7, 4999, 5000).state, PM_STAT_OK);
	assert_int_equal(scaled(7, 4999, 5000).value, 7);
}

/* Two intervals of a counter that was multiplexed in the second one alone. */
static void subtracts_all_three(void **state)
{
	struct pm_count_read first = { 100, 1000, 1000 }, second = { 150, 3000, 2000 };
	struct pm_count_read delta = { 1, 2, 3 };

	(void)state;
	assert_int_equal(pm_count_delta(&first, &second, &delta), 0);
	assert_int_equal(delta.value, 50);
	assert_int_equal(delta.enabled_ns, 2000);
	assert_int_equal(delta.running_ns, 1000);
	assert_int_equal(pm_count_scale(&delta).value, 100);
	/* What would go back is no number at all. */
	assert_int_equal(pm_count_delta(&second, &first, &delta), -ERANGE);
	second.running_ns = 999;
	assert_int_equal(pm_count_delta(&first, &second, &delta), -ERANGE);
	assert_int_equal(delta.value, 50);
}

/* A counter that tells what was recorded of one, in place of its descriptor: a pipe. */
static struct pm_counters *recorded(int *to)
{
	struct pm_counters *counters = calloc(1, sizeof(*counters));
	int ends[2];

	assert_non_null(counters);
	assert_int_equal(pipe(ends), 0);
	*to = ends[1];
	counters->cgroup_fd = -1;
	counters->own_rows = 1;
	if (pm_vec_push(&counters->events, (struct pm_counters_event){ 0 }) < 0 ||
	    pm_vec_push(&counters->rows, (struct pm_counters_row){ .cpu = -1 }) < 0 ||
	    pm_vec_push(&counters->places, (struct pm_counter_place){ .reference = -1 }) <
		    0 ||
	    pm_vec_push(&counters->fds,
			(struct pm_counter_fd){ .fd = ends[0], .leads = true }) < 0)
		fail();
	return counters;
}

static void tell(int to, const struct pm_count_read *read)
{
	uint64_t words[] = { read->value, read->enabled_ns, read->running_ns, 1 };

	assert_int_equal(write(to, words, sizeof(words)), sizeof(words));
}

/* Read three times, or once, with nothing counted in the middle. */
static void readings_do_not_change_the_whole(void **state)
{
	static const struct pm_count_read reads[] = { { 100, 1000, 1000 },
						      { 100, 2000, 1000 },
						      { 300, 3000, 1500 } };
	static const struct pm_count expected[] = {
		{ PM_STAT_OK, 100, 1000, 1000, 100 },
		{ PM_STAT_NOT_COUNTED, 0, 1000, 0, 0 },
		{ PM_STAT_MULTIPLEXED, 200, 1000, 500, 400 },
	};
	struct pm_counters_values values[4] = { 0 };
	int to;
	struct pm_counters *counters = recorded(&to);

	(void)state;
	for (size_t i = 0; i < PM_ARRAY_LEN(reads); i++) {
		struct pm_count count;

		tell(to, &reads[i]);
		assert_int_equal(pm_counters_read(counters, &values[i + 1], NULL), 0);
		count = pm_counters_total(counters, i > 0 ? &values[i] : NULL,
					  &values[i + 1], 0);
		assert_int_equal(count.state, expected[i].state);
		assert_int_equal(count.raw, expected[i].raw);
		assert_int_equal(count.enabled_ns, expected[i].enabled_ns);
		assert_int_equal(count.running_ns, expected[i].running_ns);
		assert_int_equal(count.value, expected[i].value);
	}
	assert_int_equal(pm_counters_total(counters, NULL, &values[3], 0).value, 600);
	assert_int_equal(pm_counters_row_count(counters, NULL, &values[3], 0, 0).value,
			 600);
	close(to);
	pm_counters_free(counters);
	for (size_t i = 0; i < PM_ARRAY_LEN(values); i++)
		pm_counters_values_release(&values[i]);
}

/* ---- real counters --------------------------------------------------------------------- */

struct run {
	struct pm_event_specs specs;
	struct pm_counters_options options;
	struct pm_counters *counters;
	struct pm_counters_values values;
	struct pm_error why;
};

static void parse(struct run *run, const char *events)
{
	*run = (struct run){ .options = { .cgroup_fd = -1 } };
	if (pm_event_specs_parse(events, &run->specs, &run->why) < 0)
		fail_msg("%s", run->why.text);
	run->options.specs = run->specs.list.data;
	run->options.specs_len = run->specs.list.len;
}

static void open_run(struct run *run)
{
	int r = pm_counters_open(&run->counters, &run->options, &run->why);

	if (r == -ENOSYS) {
		print_message("perf_event_open is not allowed here\n");
		skip();
	}
	if (r < 0)
		fail_msg("%s", run->why.text);
}

static void read_run(struct run *run)
{
	if (pm_counters_read(run->counters, &run->values, &run->why) < 0)
		fail_msg("%s", run->why.text);
}

static void release(struct run *run)
{
	pm_counters_free(run->counters);
	pm_counters_values_release(&run->values);
	pm_event_specs_release(&run->specs);
}

static struct pm_count total(const struct run *run, size_t event)
{
	return pm_counters_total(run->counters, NULL, &run->values, event);
}

static const struct pm_counters_event *event_of(const struct run *run, size_t event)
{
	size_t len;
	const struct pm_counters_event *events = pm_counters_events(run->counters, &len);

	assert_true(event < len);
	return &events[event];
}

/* A process that waits at a gate before it calls @act, and then at one before it ends. */
struct target {
	pid_t pid;
	int go, done, leave;
};

static void wait_for_end(int fd)
{
	char byte;

	while (read(fd, &byte, 1) < 0 && errno == EINTR)
		;
	close(fd);
}

static struct target start(void (*act)(void))
{
	int go[2], done[2], leave[2];
	struct target target;
	char ready;

	assert_int_equal(pipe(go) | pipe(done) | pipe(leave), 0);
	target.pid = fork();
	assert_true(target.pid >= 0);
	if (target.pid == 0) {
		close(go[1]);
		close(done[0]);
		close(leave[1]);
		if (write(done[1], "r", 1) != 1)
			_exit(1);
		wait_for_end(go[0]);
		act();
		close(done[1]);
		wait_for_end(leave[0]);
		_exit(0);
	}
	close(go[0]);
	close(done[1]);
	close(leave[0]);
	/* It stands still from here on, but for that one read. */
	assert_int_equal(read(done[0], &ready, 1), 1);
	target.go = go[1];
	target.done = done[0];
	target.leave = leave[1];
	return target;
}

static void let_act(struct target *target)
{
	close(target->go);
	wait_for_end(target->done);
}

static void let_end(struct target *target)
{
	close(target->leave);
	waitpid(target->pid, NULL, 0);
}

static void aim(struct run *run, const struct target *target)
{
	run->options.target = PM_PERF_TASKS;
	run->options.tids = &target->pid;
	run->options.tids_len = 1;
}

/* A sanitizer would look at its own memory each time, which has pages, too. */
__attribute__((no_sanitize("address", "undefined"))) static void touch(size_t pages)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	char *memory = mmap(NULL, pages * page, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED)
		_exit(1);
	madvise(memory, pages * page, MADV_NOHUGEPAGE);
	for (size_t i = 0; i < pages; i++)
		((volatile char *)memory)[i * page] = 1;
	munmap(memory, pages * page);
}

static void touch_and_sleep(void)
{
	struct timespec moment = { .tv_nsec = 100000 };

	touch(PAGES);
	for (int i = 0; i < SLEEPS; i++)
		nanosleep(&moment, NULL);
}

static void *touch_in_thread(void *pages)
{
	touch((size_t)(uintptr_t)pages);
	return NULL;
}

/* A process of 2000 pages, threads of 4000 and 8000, and 2800 by itself. */
static void touch_in_many(void)
{
	pthread_t threads[2];
	pid_t child = fork();

	if (child == 0) {
		prctl(PR_SET_NAME, "grandchild");
		touch(2000);
		_exit(0);
	}
	waitpid(child, NULL, 0);
	for (uintptr_t i = 0; i < 2; i++)
		pthread_create(&threads[i], NULL, touch_in_thread,
			       (void *)(4000 * (i + 1)));
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	touch(2800);
}

static void assert_about(uint64_t value, uint64_t expected)
{
	assert_in_range(value, expected, expected + OTHERS);
}

static void counts_faults_and_switches(void **state)
{
	struct target target = start(touch_and_sleep);
	struct run run;

	(void)state;
	parse(&run,
	      "page-faults,context-switches,task-clock,{minor-faults,major-faults}");
	aim(&run, &target);
	open_run(&run);
	let_act(&target);
	read_run(&run);
	assert_int_equal(run.values.rows.len, 1);
	assert_int_equal(run.values.rows.data[0].cpu, -1);
	for (size_t i = 0; i < 5; i++)
		if (event_of(&run, i)->state == PM_STAT_OK)
			assert_int_equal(total(&run, i).state, PM_STAT_OK);
	assert_about(total(&run, 0).value, PAGES);
	assert_about(total(&run, 3).value, PAGES);
	if (event_of(&run, 1)->state == PM_STAT_OK)
		assert_in_range(total(&run, 1).value, SLEEPS, 10 * SLEEPS);
	assert_true(total(&run, 2).value > 0);
	let_end(&target);
	release(&run);
}

/* With @on_and_off, enabled for a moment before there is anything to count. */
static void count_disabled(bool on_and_off)
{
	struct target target = start(touch_and_sleep);
	struct run run;

	parse(&run, "page-faults");
	aim(&run, &target);
	run.options.begin_disabled = true;
	open_run(&run);
	if (on_and_off) {
		assert_int_equal(pm_counters_enable(run.counters), 0);
		assert_int_equal(pm_counters_disable(run.counters), 0);
	}
	let_act(&target);
	read_run(&run);
	assert_int_equal(total(&run, 0).value, 0);
	let_end(&target);
	release(&run);
}

static void counts_from_enable_to_disable(void **state)
{
	(void)state;
	count_disabled(false);
	count_disabled(true);
}

/* Two intervals, and both together. */
static void intervals_sum_to_the_whole(void **state)
{
	struct target target = start(touch_and_sleep);
	struct pm_counters_values first = { 0 };
	struct run run;

	(void)state;
	parse(&run, "page-faults,task-clock");
	aim(&run, &target);
	open_run(&run);
	if (pm_counters_read(run.counters, &first, &run.why) < 0)
		fail_msg("%s", run.why.text);
	let_act(&target);
	read_run(&run);
	for (size_t i = 0; i < 2; i++) {
		uint64_t early = pm_counters_total(run.counters, NULL, &first, i).value;
		uint64_t late =
			pm_counters_total(run.counters, &first, &run.values, i).value;

		assert_int_equal(early + late, total(&run, i).value);
		if (i == 0) {
			assert_about(early, 0);
			assert_about(late, PAGES);
		}
	}
	pm_counters_values_release(&first);
	let_end(&target);
	release(&run);
}

static const struct pm_counters_row *row_with(const struct run *run, uint64_t faults,
					      size_t *ret)
{
	for (size_t i = 0; i < run->values.rows.len; i++) {
		uint64_t value =
			pm_counters_row_count(run->counters, NULL, &run->values, i, 0)
				.value;

		if (value < faults || value > faults + OTHERS)
			continue;
		*ret = i;
		return &run->values.rows.data[i];
	}
	fail_msg("no row has %llu faults", (unsigned long long)faults);
	return NULL;
}

/* Where the kernel tells nothing of who has ended, that is known, and nothing is missing. */
static void check_untold(const struct run *run)
{
	struct utsname name;
	unsigned major = 0, minor = 0;

	assert_int_equal(uname(&name), 0);
	assert_int_equal(sscanf(name.release, "%u.%u", &major, &minor), 2);
	if (major > 6 || (major == 6 && minor > 18) || major < 5)
		fail_msg("Linux %s tells of threads that end", name.release);
	assert_int_equal(pm_counters_lost_rows(run->counters), 3);
	assert_int_equal(run->values.rows.len, 1);
}

static void check_rows(const struct run *run, const struct target *target)
{
	const struct pm_counters_row *row;
	size_t at;

	assert_int_equal(pm_counters_lost_rows(run->counters), 0);
	assert_int_equal(run->values.rows.len, 4);
	row = row_with(run, 2000, &at);
	assert_int_not_equal(row->pid, target->pid);
	assert_int_equal(row->pid, row->tid);
	assert_string_equal(row->comm, "grandchild");
	row = row_with(run, 4000, &at);
	assert_int_equal(row->pid, target->pid);
	assert_int_not_equal(row->tid, target->pid);
	row_with(run, 8000, &at);
	row_with(run, 2800, &at);
	assert_int_equal(at, 0);
}

static void threads_have_rows(void **state)
{
	struct target target = start(touch_in_many);
	struct run run;

	(void)state;
	parse(&run, "page-faults,{task-clock,minor-faults}");
	aim(&run, &target);
	run.options.by = PM_COUNTERS_BY_THREAD;
	open_run(&run);
	let_act(&target);
	read_run(&run);
	if (pm_counters_ends_untold(run.counters))
		check_untold(&run);
	else
		check_rows(&run, &target);
	assert_int_equal(run.values.rows.data[0].tid, target.pid);
	/* On whatever CPUs they were: nothing was multiplexed. */
	for (size_t i = 0; i < run.values.rows.len; i++)
		for (size_t k = 0; k < 3; k++)
			assert_int_equal(pm_counters_row_count(run.counters, NULL,
							       &run.values, i, k)
						 .state,
					 PM_STAT_OK);
	assert_in_range(total(&run, 0).value, 16800, 16800 + 4 * OTHERS);
	let_end(&target);
	release(&run);
}

static void rows_of_cpus_sum_to_the_whole(void **state)
{
	struct target target = start(touch_in_many);
	struct run whole, cpus;
	uint64_t sum = 0;

	(void)state;
	parse(&whole, "page-faults,task-clock");
	aim(&whole, &target);
	open_run(&whole);
	parse(&cpus, "page-faults,task-clock");
	aim(&cpus, &target);
	cpus.options.by = PM_COUNTERS_BY_CPU;
	open_run(&cpus);
	let_act(&target);
	let_end(&target);
	read_run(&whole);
	read_run(&cpus);
	assert_int_equal(cpus.values.rows.len, sysconf(_SC_NPROCESSORS_ONLN));
	for (size_t i = 0; i < cpus.values.rows.len; i++) {
		struct pm_count count =
			pm_counters_row_count(cpus.counters, NULL, &cpus.values, i, 0);

		assert_int_not_equal(count.state, PM_STAT_MULTIPLEXED);
		assert_true(cpus.values.rows.data[i].cpu >= 0);
		sum += count.value;
	}
	assert_int_equal(sum, total(&cpus, 0).value);
	/* The first was there a little longer. */
	assert_about(total(&whole, 0).value, sum);
	assert_int_equal(total(&cpus, 0).state, PM_STAT_OK);
	release(&whole);
	release(&cpus);
}

/* One that runs while its events are enabled, one after the other. */
static void rows_of_who_runs_already_are_whole(void **state)
{
	static const enum pm_counters_by ways[] = { PM_COUNTERS_BY_CPU,
						    PM_COUNTERS_BY_THREAD };
	pid_t self = getpid();

	(void)state;
	for (size_t i = 0; i < PM_ARRAY_LEN(ways); i++) {
		struct run run;

		parse(&run, "page-faults:u,minor-faults:u");
		run.options.target = PM_PERF_TASKS;
		run.options.tids = &self;
		run.options.tids_len = 1;
		run.options.by = ways[i];
		open_run(&run);
		touch(PAGES);
		read_run(&run);
		for (size_t event = 0; event < 2; event++) {
			uint64_t sum = 0;

			for (size_t row = 0; row < run.values.rows.len; row++) {
				struct pm_count count = pm_counters_row_count(
					run.counters, NULL, &run.values, row, event);

				assert_int_not_equal(count.state, PM_STAT_MULTIPLEXED);
				sum += count.value;
			}
			assert_int_equal(total(&run, event).state, PM_STAT_OK);
			assert_int_equal(total(&run, event).value, sum);
			assert_about(sum, PAGES);
		}
		release(&run);
	}
}

static atomic_bool spawning;
static atomic_int spawner_tid;

static void *nap(void *unused)
{
	nanosleep(&(struct timespec){ .tv_nsec = 5000000 }, NULL);
	return unused;
}

static void *spawn(void *unused)
{
	pthread_attr_t attr;
	pthread_t thread;

	assert_int_equal(pthread_attr_init(&attr), 0);
	assert_int_equal(pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED), 0);
	spawner_tid = (int)syscall(SYS_gettid);
	while (spawning) {
		pthread_create(&thread, &attr, nap, NULL);
		nanosleep(&(struct timespec){ .tv_nsec = 50000 }, NULL);
	}
	pthread_attr_destroy(&attr);
	return unused;
}

/* Some of its threads inherit a part of a group. */
static void groups_are_read_of_who_starts_threads(void **state)
{
	pthread_t spawner;

	(void)state;
	spawning = true;
	spawner_tid = 0;
	assert_int_equal(pthread_create(&spawner, NULL, spawn, NULL), 0);
	while (spawner_tid == 0)
		nanosleep(&(struct timespec){ .tv_nsec = 100000 }, NULL);
	for (int i = 0; i < ATTACHED; i++) {
		pid_t tid = spawner_tid;
		struct run run;

		parse(&run, "{page-faults:u,minor-faults:u,major-faults:u,task-clock:u,"
			    "cpu-clock:u,page-faults:u,minor-faults:u,major-faults:u}");
		run.options.target = PM_PERF_TASKS;
		run.options.tids = &tid;
		run.options.tids_len = 1;
		open_run(&run);
		read_run(&run);
		release(&run);
	}
	spawning = false;
	assert_int_equal(pthread_join(spawner, NULL), 0);
	/* The last of those that nobody waits for. */
	nanosleep(&(struct timespec){ .tv_nsec = 20000000 }, NULL);
}

/* ---- states ---------------------------------------------------------------------------- */

static bool has_pmu(void)
{
	struct perf_event_attr attr = { .size = sizeof(attr),
					.type = PERF_TYPE_HARDWARE,
					.config = PERF_COUNT_HW_INSTRUCTIONS,
					.exclude_kernel = 1,
					.exclude_hv = 1 };
	int fd = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0);

	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

static void missing_events_have_no_value(void **state)
{
	struct target target;
	struct run run;

	(void)state;
	if (has_pmu()) {
		print_message("this machine has hardware counters\n");
		skip();
	}
	target = start(touch_and_sleep);
	/* The others of its group are counted, and so is the group that it led. */
	parse(&run, "{cycles,page-faults,instructions},task-clock");
	aim(&run, &target);
	open_run(&run);
	let_act(&target);
	read_run(&run);
	assert_int_equal(total(&run, 0).state, PM_STAT_NOT_SUPPORTED);
	assert_int_equal(total(&run, 0).value, 0);
	assert_int_equal(total(&run, 2).state, PM_STAT_NOT_SUPPORTED);
	assert_non_null(strstr(event_of(&run, 0)->why.text, "no hardware counters"));
	assert_int_equal(total(&run, 1).state, PM_STAT_OK);
	assert_about(total(&run, 1).value, PAGES);
	assert_int_equal(total(&run, 3).state, PM_STAT_OK);
	let_end(&target);
	release(&run);
}

/* Runs @check in a process of its own, which fails with what it says. */
static void in_child(void (*prepare)(void), void (*check)(void))
{
	pid_t pid = fork();
	int status;

	assert_true(pid >= 0);
	if (pid == 0) {
		prepare();
		check();
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

#define NEED(what, number)             \
	do {                           \
		if (!(what))           \
			_exit(number); \
	} while (0)

static void become_nobody(void)
{
	NEED(setresgid(NOBODY, NOBODY, NOBODY) == 0, 1);
	NEED(setresuid(NOBODY, NOBODY, NOBODY) == 0, 2);
	/* So that /proc/self is one's own again. */
	NEED(prctl(PR_SET_DUMPABLE, 1) == 0, 3);
}

static void open_on_self(struct run *run, const char *events)
{
	static pid_t self;

	*run = (struct run){ .options = { .cgroup_fd = -1 } };
	self = getpid();
	NEED(pm_event_specs_parse(events, &run->specs, &run->why) == 0, 10);
	run->options.specs = run->specs.list.data;
	run->options.specs_len = run->specs.list.len;
	run->options.target = PM_PERF_TASKS;
	run->options.tids = &self;
	run->options.tids_len = 1;
}

static void check_nobody(void)
{
	struct run run;

	open_on_self(&run, "{page-faults,context-switches},task-clock,minor-faults:u");
	NEED(pm_counters_open(&run.counters, &run.options, &run.why) == 0, 11);
	touch(PAGES);
	NEED(pm_counters_read(run.counters, &run.values, &run.why) == 0, 12);
	/* Faults of user space can be had without the kernel. */
	NEED(event_of(&run, 0)->state == PM_STAT_OK, 13);
	NEED(event_of(&run, 0)->kernel_dropped, 14);
	NEED(total(&run, 0).value >= PAGES && total(&run, 0).value < PAGES + OTHERS, 15);
	/* Switches happen in the kernel alone. */
	NEED(event_of(&run, 1)->state == PM_STAT_NOT_PERMITTED, 16);
	NEED(total(&run, 1).value == 0, 17);
	NEED(strstr(event_of(&run, 1)->why.text, "paranoid"), 18);
	/* A clock is the same with and without. */
	NEED(event_of(&run, 2)->state == PM_STAT_OK, 19);
	NEED(!event_of(&run, 2)->kernel_dropped, 20);
	NEED(!event_of(&run, 3)->kernel_dropped, 21);
	NEED(pm_counters_notes(run.counters)->texts.len == 1, 22);
	NEED(strstr(pm_counters_notes(run.counters)->texts.data[0], "page-faults"), 23);
	release(&run);
}

static bool kernel_is_hidden(void)
{
	char text[16] = "";
	FILE *file PM_AUTO_FCLOSE = fopen("/proc/sys/kernel/perf_event_paranoid", "re");

	return file && fgets(text, sizeof(text), file) && atoi(text) == 2;
}

static void ordinary_users_count_user_space(void **state)
{
	(void)state;
	if (geteuid() != 0 || !kernel_is_hidden()) {
		print_message("needs root and kernel.perf_event_paranoid=2\n");
		skip();
	}
	in_child(become_nobody, check_nobody);
}

static void check_no_exclude(void)
{
	struct run run;

	open_on_self(&run, "{page-faults,msr/tsc/}");
	NEED(pm_counters_open(&run.counters, &run.options, &run.why) == 0, 11);
	NEED(event_of(&run, 0)->state == PM_STAT_OK, 12);
	NEED(event_of(&run, 1)->state == PM_STAT_NOT_PERMITTED, 13);
	NEED(strstr(event_of(&run, 1)->why.text, "paranoid"), 14);
	release(&run);
}

/* It cannot leave out the kernel: that is no reason to say that it is not there. */
static void what_needs_the_kernel_is_not_permitted(void **state)
{
	(void)state;
	if (geteuid() != 0 || !kernel_is_hidden() ||
	    access("/sys/bus/event_source/devices/msr/events/tsc", R_OK) != 0) {
		print_message("needs root, kernel.perf_event_paranoid=2 and msr/tsc/\n");
		skip();
	}
	in_child(become_nobody, check_no_exclude);
}

/* perf_event_open fails with @code; with @members_only that of members of groups. */
static void refuse(uint32_t code, bool members_only)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_perf_event_open, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
			 offsetof(struct seccomp_data, args[3])),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, UINT32_MAX, members_only, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | code),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { .len = PM_ARRAY_LEN(filter), .filter = filter };

	NEED(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0, 1);
	NEED(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0, 2);
}

static void refuse_members(void)
{
	refuse(EINVAL, true);
}

static void check_groups(void)
{
	struct run run;

	open_on_self(&run, "{page-faults,task-clock,minor-faults},cpu-clock");
	NEED(pm_counters_open(&run.counters, &run.options, &run.why) == -EINVAL, 11);
	NEED(strstr(run.why.text, "together"), 12);
	run.options.weak_groups = true;
	NEED(pm_counters_open(&run.counters, &run.options, &run.why) == 0, 13);
	touch(PAGES);
	NEED(pm_counters_read(run.counters, &run.values, &run.why) == 0, 14);
	for (size_t i = 0; i < 3; i++) {
		NEED(event_of(&run, i)->state == PM_STAT_OK, 15);
		NEED(event_of(&run, i)->group_broken, 16);
	}
	NEED(!event_of(&run, 3)->group_broken, 17);
	NEED(total(&run, 0).value >= PAGES && total(&run, 2).value >= PAGES, 18);
	NEED(pm_counters_notes(run.counters)->texts.len == 1, 19);
	release(&run);
}

static void weak_groups_fall_apart(void **state)
{
	(void)state;
	in_child(refuse_members, check_groups);
}

static void refuse_all(void)
{
	refuse(EPERM, false);
}

static void check_refused(void)
{
	struct run run;

	open_on_self(&run, "page-faults,cpu-clock");
	NEED(pm_counters_open(&run.counters, &run.options, &run.why) == 0, 11);
	NEED(pm_counters_read(run.counters, &run.values, &run.why) == 0, 12);
	for (size_t i = 0; i < 2; i++) {
		NEED(total(&run, i).state == PM_STAT_NOT_PERMITTED, 13);
		NEED(strstr(event_of(&run, i)->why.text, "seccomp"), 14);
		NEED(!event_of(&run, i)->kernel_dropped, 15);
	}
	NEED(pm_counters_notes(run.counters)->texts.len == 0, 16);
	release(&run);
	open_on_self(&run, "page-faults");
	run.options.by = PM_COUNTERS_BY_THREAD;
	NEED(pm_counters_open(&run.counters, &run.options, &run.why) == 0, 17);
	NEED(pm_counters_read(run.counters, &run.values, &run.why) == 0, 18);
	NEED(total(&run, 0).state == PM_STAT_NOT_PERMITTED, 19);
	release(&run);
}

static void refusals_are_states(void **state)
{
	(void)state;
	in_child(refuse_all, check_refused);
}

static void targets_that_are_not_there(void **state)
{
	struct target target = start(touch_and_sleep);
	struct run run;

	(void)state;
	let_act(&target);
	let_end(&target);
	parse(&run, "page-faults");
	aim(&run, &target);
	assert_int_equal(pm_counters_open(&run.counters, &run.options, &run.why), -ESRCH);
	run.options.target = PM_PERF_CPUS;
	run.options.cpus = "4000";
	assert_int_equal(pm_counters_open(&run.counters, &run.options, &run.why),
			 -ENODEV);
	run.options.cpus = NULL;
	run.options.by = PM_COUNTERS_BY_THREAD;
	assert_int_equal(pm_counters_open(&run.counters, &run.options, &run.why),
			 -EINVAL);
	release(&run);
}

static void counts_everybody(void **state)
{
	struct target target = start(touch_and_sleep);
	struct run run;

	(void)state;
	parse(&run, "page-faults,{cpu-clock,context-switches}");
	run.options.target = PM_PERF_CPUS;
	run.options.by = PM_COUNTERS_BY_CPU;
	open_run(&run);
	let_act(&target);
	read_run(&run);
	if (event_of(&run, 0)->state == PM_STAT_OK) {
		assert_int_equal(run.values.rows.len, sysconf(_SC_NPROCESSORS_ONLN));
		assert_true(total(&run, 0).value >= PAGES);
		assert_true(total(&run, 2).value >= SLEEPS);
		assert_int_equal(total(&run, 1).state, PM_STAT_OK);
	} else {
		assert_int_equal(event_of(&run, 0)->state, PM_STAT_NOT_PERMITTED);
	}
	let_end(&target);
	release(&run);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(scales_what_was_multiplexed),
		cmocka_unit_test(sums_end_at_the_largest_number),
		cmocka_unit_test(tells_what_is_not_known),
		cmocka_unit_test(subtracts_all_three),
		cmocka_unit_test(readings_do_not_change_the_whole),
		cmocka_unit_test(counts_faults_and_switches),
		cmocka_unit_test(counts_from_enable_to_disable),
		cmocka_unit_test(intervals_sum_to_the_whole),
		cmocka_unit_test(threads_have_rows),
		cmocka_unit_test(rows_of_cpus_sum_to_the_whole),
		cmocka_unit_test(rows_of_who_runs_already_are_whole),
		cmocka_unit_test(groups_are_read_of_who_starts_threads),
		cmocka_unit_test(missing_events_have_no_value),
		cmocka_unit_test(ordinary_users_count_user_space),
		cmocka_unit_test(what_needs_the_kernel_is_not_permitted),
		cmocka_unit_test(weak_groups_fall_apart),
		cmocka_unit_test(refusals_are_states),
		cmocka_unit_test(targets_that_are_not_there),
		cmocka_unit_test(counts_everybody),
	};

	keep_perf_level();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
