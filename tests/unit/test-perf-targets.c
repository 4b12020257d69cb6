/* SPDX-License-Identifier: MIT */
/* Whom events are opened for: a command's tree, tasks that run, CPUs, a cgroup. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dirent.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#include "pm/run.h"
#include "src/perf/perf-state.h"

/* ---- programs to be sampled ----------------------------------------------------------- */

static uint64_t cpu_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void burn(uint64_t ns)
{
	uint64_t end = cpu_ns(CLOCK_THREAD_CPUTIME_ID) + ns;

	while (cpu_ns(CLOCK_THREAD_CPUTIME_ID) < end)
		for (volatile int i = 0; i < 1000; i++)
			;
}

static void *short_life(void *unused)
{
	burn(400000);
	return NULL;
}

/* 1000 threads of 0.4 ms, one after the other. */
static void many_threads(void)
{
	for (int i = 0; i < 1000; i++) {
		pthread_t thread;

		if (pthread_create(&thread, NULL, short_life, NULL) != 0)
			_exit(1);
		pthread_join(thread, NULL);
	}
}

static void one_child(void)
{
	pid_t pid = fork();

	if (pid == 0) {
		burn(100000000);
		_exit(0);
	}
	burn(100000000);
	waitpid(pid, NULL, 0);
}

static void busy(void)
{
	burn(300000000);
}

struct target {
	pid_t pid;
	int go; /* closing it lets the child begin */
};

static struct target start(void (*what)(void))
{
	struct target target;
	int gate[2];

	assert_int_equal(pipe2(gate, O_CLOEXEC), 0);
	target.pid = fork();
	assert_true(target.pid >= 0);
	if (target.pid == 0) {
		char byte;

		close(gate[1]);
		while (read(gate[0], &byte, 1) < 0 && errno == EINTR)
			;
		what();
		_exit(0);
	}
	close(gate[0]);
	target.go = gate[1];
	return target;
}

static double finish(struct target *target)
{
	struct rusage usage;

	close(target->go);
	assert_int_equal(wait4(target->pid, NULL, 0, &usage), target->pid);
	return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1e9 +
	       (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1e3;
}

/* ---- recording ------------------------------------------------------------------------ */

struct seen {
	size_t samples, mine, of_others, forks, exits, maps, switches, idle;
	double period;
	uint32_t cpus; /* a bit for each of the first 32 */
};

struct run {
	struct pm_event_specs specs;
	struct pm_perf_options options;
	struct pm_perf *perf;
	pid_t pid; /* whose samples are `mine`, with its children's */
};

static void see(const struct run *run, const struct pm_record *record, struct seen *seen)
{
	switch (record->type) {
	case PERF_RECORD_SAMPLE:
		seen->samples++;
		seen->period += (double)record->sample.period;
		if (record->pid == (uint32_t)run->pid)
			seen->mine++;
		else
			seen->of_others++;
		seen->idle += record->pid == 0;
		seen->cpus |= 1u << (record->cpu & 31);
		break;
	case PERF_RECORD_FORK:
		seen->forks++;
		break;
	case PERF_RECORD_EXIT:
		seen->exits++;
		break;
	case PERF_RECORD_MMAP2:
		seen->maps++;
		break;
	case PERF_RECORD_SWITCH:
	case PERF_RECORD_SWITCH_CPU_WIDE:
		seen->switches++;
		break;
	default:
		break;
	}
}

static void close_file(FILE **file)
{
	if (*file)
		fclose(*file);
}

static void drain(const struct run *run, bool final, struct seen *seen)
{
	struct pm_record record;
	struct pm_error err;
	int r;

	pm_perf_begin(run->perf, final);
	while ((r = pm_perf_next(run->perf, &record, &err)) > 0)
		see(run, &record, seen);
	if (r < 0)
		fail_msg("%s", err.text);
}

static void run_init(struct run *run, const char *events, enum pm_perf_target target)
{
	struct pm_error err;

	*run = (struct run){ .pid = 0 };
	if (pm_event_specs_parse(events, &run->specs, &err) < 0)
		fail_msg("%s: %s", events, err.text);
	run->options = (struct pm_perf_options){
		.specs = run->specs.list.data,
		.specs_len = run->specs.list.len,
		.by_frequency = true,
		.rate = 999,
		.target = target,
		.cgroup_fd = -1,
	};
}

static int run_open(struct run *run)
{
	struct pm_error err = { 0 };
	int r = pm_perf_open(&run->perf, &run->options, &err);

	if (r < 0)
		print_message("%s (%s)\n", err.text, err.fix);
	return r;
}

static void run_release(struct run *run)
{
	pm_perf_free(run->perf);
	pm_event_specs_release(&run->specs);
}

static void stop(struct target *target)
{
	kill(target->pid, SIGKILL);
	close(target->go);
	waitpid(target->pid, NULL, 0);
}

static void must_open(struct run *run, struct target *target)
{
	int r = run_open(run);

	if (r < 0 && target)
		stop(target);
	if (r == -EACCES || r == -EPERM || r == -ENOSYS) {
		print_message("perf_event_open is not allowed here\n");
		run_release(run);
		skip();
	}
	assert_int_equal(r, 0);
}

static void end(struct run *run, struct seen *seen)
{
	assert_int_equal(pm_perf_disable(run->perf), 0);
	drain(run, true, seen);
}

/* What the host has taken from this machine until now: the clock that is sampled goes on in it,
 * and CPU time does not. */
static double stolen(void)
{
	uint64_t ns;

	return pm_stolen_ns(NULL, &ns) ? (double)ns : 0;
}

/* What was taken since then at most, for it is told by clock ticks. */
static double stolen_since(double before)
{
	double ns = stolen() - before;

	return ns > 0 ? ns + 1e9 / (double)sysconf(_SC_CLK_TCK) : 0;
}

/* ---- tasks ---------------------------------------------------------------------------- */

static void record_task(struct run *run, struct target *target, struct seen *seen,
			double *used)
{
	run->pid = target->pid;
	run->options.tids = &target->pid;
	run->options.tids_len = 1;
	must_open(run, target);
	*used = finish(target);
	end(run, seen);
}

static void test_running_task(void **state)
{
	for (int per_task = 0; per_task < 2; per_task++) {
		struct target target = start(one_child);
		struct seen seen = { 0 };
		struct run run;
		double used, before = stolen();

		run_init(&run, "cpu-clock", PM_PERF_TASKS);
		run.options.per_task = per_task;
		record_task(&run, &target, &seen, &used);
		print_message("%s: %zu samples of it, %zu of others, %.3f of the time\n",
			      pm_perf_per_cpu(run.perf) ? "CPUs" : "task", seen.mine,
			      seen.of_others, seen.period / used);
		if (per_task)
			assert_false(pm_perf_per_cpu(run.perf));
		assert_true(seen.mine >= 30);
		assert_true(seen.of_others >= 30); /* its child */
		assert_int_equal(seen.idle, 0);
		assert_int_equal(seen.forks, 1);
		assert_int_equal(seen.exits, 2);
		assert_true(seen.period >= 0.8 * used);
		assert_true(seen.period <= 1.2 * used + stolen_since(before));
		run_release(&run);
	}
}

static void test_not_inherited(void **state)
{
	for (int per_task = 0; per_task < 2; per_task++) {
		struct target target = start(one_child);
		struct seen seen = { 0 };
		struct run run;
		double used;

		run_init(&run, "cpu-clock", PM_PERF_TASKS);
		run.options.per_task = per_task;
		run.options.no_inherit = true;
		record_task(&run, &target, &seen, &used);
		assert_true(seen.mine >= 30);
		assert_int_equal(seen.of_others, 0);
		run_release(&run);
	}
}

static void test_short_threads(void **state)
{
	struct target target = start(many_threads);
	struct target neighbour = start(busy);
	struct seen seen = { 0 };
	struct run run;
	double used, missing;

	close(neighbour.go);
	run_init(&run, "cpu-clock", PM_PERF_TASKS);
	record_task(&run, &target, &seen, &used);
	neighbour.go = -1;
	stop(&neighbour);
	print_message("%zu samples, %.3f of %.0f ms\n", seen.samples, seen.period / used,
		      used / 1e6);
	if (!pm_perf_per_cpu(run.perf)) {
		struct pm_tree_filter *filter = NULL;
		struct pm_error err = { 0 };

		assert_true(pm_tree_filter_new(&filter, true, &err) < 0);
		print_message("no filter here: %s\n", err.text);
		run_release(&run);
		skip();
	}
	/* 5 standard deviations of about 400 samples of a time that is known to 10 ms */
	missing = used - 1e7 - seen.period;
	assert_true(missing < 0 || missing * missing < 25 * used * 1e6);
	assert_int_equal(seen.of_others, 0); /* of the neighbour nothing */
	run_release(&run);
}

static void test_task_that_is_gone(void **state)
{
	struct target target = start(busy);
	struct target gone = start(busy);
	pid_t tids[] = { gone.pid, target.pid };
	struct seen seen = { 0 };
	struct run run;

	stop(&gone);
	run_init(&run, "cpu-clock", PM_PERF_TASKS);
	run.options.tids = tids;
	run.options.tids_len = 2;
	run.options.per_task = true;
	run.pid = target.pid;
	must_open(&run, &target);
	finish(&target);
	end(&run, &seen);
	assert_true(seen.mine >= 100);
	pm_perf_free(run.perf);
	run.perf = NULL;
	assert_int_equal(run_open(&run), -ESRCH);
	run_release(&run);
}

static void *wait_for_end(void *fd)
{
	char byte;

	while (read(*(int *)fd, &byte, 1) < 0 && errno == EINTR)
		;
	burn(20000000);
	return NULL;
}

enum {
	WAITING = 40,
	/* One for each of them and the first thread, and one for what is told of each. */
	FDS_BY_TASK = 2 * (WAITING + 1),
	ALL_WELL = 50, /* exit codes of the child below; more is a line's number */
	WITH_A_NOTE,
	REFUSED,
};

#define CHECK(condition)                                                          \
	do {                                                                      \
		if (!(condition)) {                                               \
			fprintf(stderr, "# line %d: %s\n", __LINE__, #condition); \
			_exit(1);                                                 \
		}                                                                 \
	} while (0)

static size_t own_tids(pid_t *ret, size_t max)
{
	DIR *dir = opendir("/proc/self/task");
	struct dirent *entry;
	size_t len = 0;

	while ((entry = readdir(dir)))
		if (entry->d_name[0] != '.' && len < max)
			ret[len++] = atoi(entry->d_name);
	closedir(dir);
	return len;
}

/* In a child, for a lowered limit cannot be raised again, and without cmocka therefore. */
static int record_threads(void)
{
	pthread_t threads[WAITING];
	struct seen seen = { 0 };
	struct pm_error err = { 0 };
	struct pm_record record;
	pid_t tids[WAITING + 2];
	struct run run;
	size_t notes;
	int gate[2], r;

	CHECK(pipe2(gate, O_CLOEXEC) == 0);
	for (size_t i = 0; i < WAITING; i++)
		CHECK(pthread_create(&threads[i], NULL, wait_for_end, &gate[0]) == 0);
	run_init(&run, "cpu-clock:u", PM_PERF_TASKS);
	run.options.tids = tids;
	run.options.tids_len = own_tids(tids, PM_ARRAY_LEN(tids));
	CHECK(run.options.tids_len == WAITING + 1);
	run.options.per_task = true;
	run.options.ring_pages = 8;
	run.pid = getpid();
	r = pm_perf_open(&run.perf, &run.options, &err);
	if (r < 0)
		fprintf(stderr, "# %s\n", err.text);
	CHECK(r == 0 || strstr(err.text, "82 file descriptors are needed"));
	close(gate[1]);
	for (size_t i = 0; i < WAITING; i++)
		pthread_join(threads[i], NULL);
	close(gate[0]);
	if (r < 0) {
		run_release(&run);
		return r == -EMFILE ? REFUSED : 1;
	}
	notes = pm_perf_notes(run.perf)->texts.len;
	for (size_t i = 0; i < notes; i++)
		fprintf(stderr, "# %s\n", pm_perf_notes(run.perf)->texts.data[i]);
	pm_perf_begin(run.perf, true);
	while (pm_perf_next(run.perf, &record, &err) > 0)
		see(&run, &record, &seen);
	run_release(&run);
	CHECK(seen.mine >= 300);
	return notes > 0 ? WITH_A_NOTE : ALL_WELL;
}

static int with_descriptors(rlim_t soft, rlim_t hard)
{
	pid_t pid = fork();
	int status;

	assert_true(pid >= 0);
	if (pid == 0) {
		struct rlimit limit = { soft, hard };

		CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0);
		_exit(record_threads());
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static void test_few_descriptors(void **state)
{
	struct rlimit limit;
	struct run run;

	run_init(&run, "cpu-clock:u", PM_PERF_TASKS);
	run.options.tids = (pid_t[]){ getpid() };
	run.options.tids_len = 1;
	must_open(&run, NULL);
	run_release(&run);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	if (limit.rlim_max < 64 + FDS_BY_TASK * (rlim_t)sysconf(_SC_NPROCESSORS_ONLN) +
				     (rlim_t)sysconf(_SC_NPROCESSORS_ONLN)) {
		print_message("the hard limit of file descriptors is %llu\n",
			      (unsigned long long)limit.rlim_max);
		skip();
	}
	assert_int_equal(with_descriptors(40, limit.rlim_max), ALL_WELL);
	assert_int_equal(with_descriptors(40, 60), REFUSED);
	if (sysconf(_SC_NPROCESSORS_ONLN) < 2) {
		print_message("one CPU: events of tasks need no fewer\n");
		return;
	}
	assert_int_equal(with_descriptors(40, 64 + FDS_BY_TASK + 8), WITH_A_NOTE);
}

/* ---- CPUs ----------------------------------------------------------------------------- */

static void test_all_cpus(void **state)
{
	struct target target = start(busy);
	struct seen seen = { 0 };
	struct run run;

	run_init(&run, "cpu-clock", PM_PERF_CPUS);
	run.pid = target.pid;
	must_open(&run, &target);
	finish(&target);
	end(&run, &seen);
	assert_false(pm_perf_per_cpu(run.perf));
	assert_true(seen.mine >= 100);
	assert_true(seen.of_others > 0);
	assert_true(seen.exits >= 1);
	run_release(&run);
}

static void test_one_cpu(void **state)
{
	struct target target = start(busy);
	struct seen seen = { 0 };
	struct run run;

	run_init(&run, "cpu-clock", PM_PERF_CPUS);
	run.options.cpus = "0";
	run.pid = target.pid;
	must_open(&run, &target);
	finish(&target);
	for (int i = 0; i < 1000 && seen.samples < 100; i++) {
		usleep(10000);
		drain(&run, false, &seen);
	}
	end(&run, &seen);
	assert_true(seen.samples >= 100);
	assert_int_equal(seen.cpus, 1);
	assert_true(seen.exits >= 1); /* on whichever CPU it was */
	run_release(&run);

	run_init(&run, "cpu-clock", PM_PERF_CPUS);
	run.options.cpus = "0,60000";
	assert_int_equal(run_open(&run), -ENODEV);
	run.options.cpus = "zero";
	assert_int_equal(run_open(&run), -EINVAL);
	run_release(&run);
}

static void test_switches(void **state)
{
	for (int wide = 0; wide < 2; wide++) {
		struct target target = start(busy);
		struct seen seen = { 0 };
		struct run run;
		double used;

		run_init(&run, "cpu-clock", wide ? PM_PERF_CPUS : PM_PERF_TASKS);
		run.options.switches = true;
		record_task(&run, &target, &seen, &used);
		assert_true(seen.switches >= 2);
		run_release(&run);
	}
}

/* ---- CPUs that come and go --------------------------------------------------------------- */

static size_t samples_of_a_while(const struct run *run)
{
	struct seen seen = { 0 };

	drain(run, false, &seen); /* what was */
	seen = (struct seen){ 0 };
	burn(100000000);
	drain(run, false, &seen);
	return seen.samples;
}

/* What a CPU that went off leaves: events that are there, but stand still. */
static void stop_as_offline(struct pm_perf *perf)
{
	assert_int_equal(pm_perf_switch(perf, -1, false), 0);
	for (size_t i = 0; i < perf->places.len; i++)
		assert_int_equal(
			ioctl(perf->places.data[i].watch, PERF_EVENT_IOC_DISABLE, 0), 0);
}

static void test_cpu_was_off(void **state)
{
	struct pm_error err = { 0 };
	uint64_t lost;
	struct run run;
	size_t fds;

	run_init(&run, "cpu-clock", PM_PERF_CPUS);
	must_open(&run, NULL);
	fds = run.perf->fds.len;
	assert_int_equal(pm_perf_check_cpus(run.perf, &err), 0);
	usleep(30000);
	assert_int_equal(pm_perf_check_cpus(run.perf, &err), 0);
	assert_true(samples_of_a_while(&run) > 20);
	stop_as_offline(run.perf);
	assert_int_equal(samples_of_a_while(&run), 0);
	assert_int_equal(pm_perf_check_cpus(run.perf, &err), 1);
	assert_int_equal(run.perf->fds.len, fds);
	assert_true(samples_of_a_while(&run) > 20);
	usleep(30000);
	assert_int_equal(pm_perf_check_cpus(run.perf, &err), 0);
	/* While it is disabled, what comes back is disabled, too. */
	assert_int_equal(pm_perf_disable(run.perf), 0);
	stop_as_offline(run.perf);
	usleep(30000);
	assert_int_equal(pm_perf_check_cpus(run.perf, &err), 1);
	assert_int_equal(samples_of_a_while(&run), 0);
	assert_int_equal(pm_perf_enable(run.perf), 0);
	assert_true(samples_of_a_while(&run) > 20);
	assert_true(pm_perf_lost(run.perf, 0, &lost) == 0 ||
		    !run.perf->features.format_lost);
	run_release(&run);
}

/* The last CPU is taken out of the books: it is new then. */
static void test_cpu_is_new(void **state)
{
	static const enum pm_perf_target targets[] = { PM_PERF_CPUS, PM_PERF_TASKS };

	for (size_t i = 0; i < PM_ARRAY_LEN(targets); i++) {
		struct target target = start(busy);
		struct pm_error err = { 0 };
		struct pm_perf_place *last;
		struct seen seen = { 0 };
		size_t poll_fds, len;
		struct run run;
		double used;

		run_init(&run, "cpu-clock", targets[i]);
		run.options.tids = &target.pid;
		run.options.tids_len = 1;
		run.pid = target.pid;
		must_open(&run, &target);
		last = &run.perf->places.data[run.perf->places.len - 1];
		pm_perf_close_place(run.perf, (uint32_t)run.perf->places.len - 1, false);
		last->cpu = 60000;
		pm_perf_poll_fds(run.perf, &poll_fds);
		assert_int_equal(pm_perf_check_cpus(run.perf, &err), 1);
		pm_perf_poll_fds(run.perf, &len);
		assert_int_equal(len, poll_fds + 1);
		usleep(30000);
		assert_int_equal(pm_perf_check_cpus(run.perf, &err), 0);
		used = finish(&target);
		end(&run, &seen);
		print_message("%zu samples, %.3f\n", seen.mine, seen.period / used);
		assert_true(seen.mine >= 200);
		run_release(&run);
	}
}

/* Its events do not fit below the soft limit, which is raised in the middle of them. */
static void test_cpu_is_new_and_descriptors_are_few(void **state)
{
	struct pm_error err = { 0 };
	struct rlimit before, few;
	bool found = false;
	size_t places;
	struct run run;
	int next;

	run_init(&run, "cpu-clock", PM_PERF_CPUS);
	must_open(&run, NULL);
	places = run.perf->places.len;
	pm_perf_close_place(run.perf, (uint32_t)places - 1, false);
	run.perf->places.data[places - 1].cpu = 60000;
	next = dup(0);
	close(next);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	few = (struct rlimit){ (rlim_t)next + 1, before.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	run.perf->nofile_raised = false;
	assert_int_equal(pm_perf_check_cpus(run.perf, &err), 1);
	setrlimit(RLIMIT_NOFILE, &before);
	assert_true(run.perf->nofile_raised);
	assert_int_equal(run.perf->places.len, places + 1);
	for (size_t i = 0; i < run.perf->fds.len; i++)
		found |= run.perf->fds.data[i].place == places &&
			 run.perf->fds.data[i].event == 0;
	assert_true(found);
	run_release(&run);
}

/* ---- groups --------------------------------------------------------------------------- */

static void test_group(void **state)
{
	struct target target = start(busy);
	struct seen seen = { 0 };
	struct run run;
	double used;

	run_init(&run, "cpu-clock,task-clock", PM_PERF_TASKS);
	run.specs.list.data[1].leader = 0;
	record_task(&run, &target, &seen, &used);
	assert_true(seen.mine >= 300);
	run_release(&run);
}

/* Where code of this program is in its file; 0: nowhere. */
static uint64_t file_offset(uintptr_t address)
{
	FILE *file PM_CLEANUP(close_file) = fopen("/proc/self/maps", "re");
	unsigned long start, end, offset;
	char line[1024];

	while (file && fgets(line, sizeof(line), file))
		if (sscanf(line, "%lx-%lx %*s %lx", &start, &end, &offset) == 3 &&
		    address >= start && address < end)
			return address - start + offset;
	return 0;
}

/* Its fork would fail, or the kernel refuse the group, if anything of it were inherited. */
static void test_group_with_probe(void **state)
{
	static const char type_file[] = "/sys/bus/event_source/devices/uprobe/type";
	FILE *file PM_CLEANUP(close_file) = fopen(type_file, "re");
	struct target target = start(one_child);
	struct seen seen = { 0 };
	unsigned int type = 0;
	struct run run;
	double used;

	if (!file || fscanf(file, "%u", &type) != 1) {
		stop(&target);
		print_message("this kernel has no uprobe PMU\n");
		skip();
	}
	run_init(&run, "cpu-clock,task-clock", PM_PERF_TASKS);
	run.options.per_task = true;
	run.specs.list.data[1].leader = 0;
	run.specs.list.data[1].kind = PM_EVENT_UPROBE;
	run.specs.list.data[1].type = type;
	run.specs.list.data[1].config = 0;
	run.specs.list.data[1].path = "/proc/self/exe";
	run.specs.list.data[1].config2 = file_offset((uintptr_t)one_child);
	record_task(&run, &target, &seen, &used);
	print_message("%zu samples, %zu forks\n", seen.samples, seen.forks);
	assert_true(seen.mine >= 50);
	assert_int_equal(seen.forks, 1);
	run_release(&run);
}

/* ---- overwritten rings ---------------------------------------------------------------- */

static void test_snapshot(void **state)
{
	struct target target = start(busy);
	struct seen first = { 0 }, second = { 0 };
	struct run run;

	run_init(&run, "cpu-clock", PM_PERF_TASKS);
	run.options.overwrite = true;
	run.options.ring_pages = 1; /* 32 KiB are the least */
	run.options.rate = 20000;
	run.pid = target.pid;
	run.options.tids = &target.pid;
	run.options.tids_len = 1;
	must_open(&run, &target);
	finish(&target);
	drain(&run, false, &first);
	assert_int_equal(first.samples, 0); /* nothing of it while it runs */
	assert_int_equal(pm_perf_snapshot(run.perf, true), 0);
	drain(&run, true, &first);
	print_message("%zu samples are left\n", first.samples);
	/* A sample is 56 bytes here. */
	assert_in_range(first.samples, 100, 2 * 32768 / 56);
	drain(&run, true, &second);
	assert_int_equal(second.samples, 0); /* once */
	assert_int_equal(pm_perf_snapshot(run.perf, false), 0);
	assert_int_equal(pm_perf_snapshot(run.perf, true), 0);
	drain(&run, true, &second);
	assert_int_equal(second.samples, 0);
	run_release(&run);
}

/* ---- the filter itself ---------------------------------------------------------------- */

static size_t count_fds(void)
{
	struct dirent *entry;
	DIR *dir = opendir("/proc/self/fd");
	size_t count = 0;

	while ((entry = readdir(dir)))
		count++;
	closedir(dir);
	return count;
}

static void test_filter_follows(void **state)
{
	struct pm_tree_filter *filter = NULL;
	struct pm_error err = { 0 };
	size_t before = count_fds();
	struct target target, gone;
	int r = pm_tree_filter_new(&filter, true, &err);

	if (r < 0) {
		print_message("no filter here: %s\n", err.text);
		assert_null(filter);
		assert_int_equal(count_fds(), before);
		skip();
	}
	target = start(busy);
	assert_int_equal(pm_tree_filter_marked(filter, target.pid), PM_TREE_NO);
	pm_tree_filter_mark(filter, getpid(), PM_TREE_YES);
	gone = start(busy);
	assert_int_equal(pm_tree_filter_marked(filter, gone.pid), PM_TREE_YES);
	assert_int_equal(pm_tree_filter_marked(filter, target.pid), PM_TREE_NO);
	pm_tree_filter_mark(filter, 0, PM_TREE_YES);
	pm_tree_filter_mark(filter, -1, PM_TREE_YES);
	pm_tree_filter_mark(filter, INT32_MAX, PM_TREE_YES);
	assert_int_equal(pm_tree_filter_marked(filter, 0), PM_TREE_NO);
	assert_int_equal(pm_tree_filter_marked(filter, INT32_MAX), PM_TREE_NO);
	stop(&target);
	stop(&gone);
	pm_tree_filter_free(filter);
	assert_int_equal(count_fds(), before);
}

static void exec_true(void)
{
	execl("/bin/sh", "sh", "-c", "read x", (char *)NULL);
}

static void test_filter_waits_for_exec(void **state)
{
	struct pm_tree_filter *filter = NULL;
	struct pm_error err = { 0 };
	struct target target;

	if (pm_tree_filter_new(&filter, true, &err) < 0) {
		print_message("no filter here: %s\n", err.text);
		skip();
	}
	target = start(exec_true);
	pm_tree_filter_mark(filter, target.pid, PM_TREE_AT_EXEC);
	assert_int_equal(pm_tree_filter_marked(filter, target.pid), PM_TREE_AT_EXEC);
	close(target.go);
	target.go = -1;
	/* It ends by itself: standard input of tests is no terminal. */
	for (int i = 0;
	     i < 1000 && pm_tree_filter_marked(filter, target.pid) == PM_TREE_AT_EXEC;
	     i++)
		usleep(10000);
	assert_int_equal(pm_tree_filter_marked(filter, target.pid), PM_TREE_YES);
	stop(&target);
	pm_tree_filter_free(filter);
}

static void test_nothing_stays_open(void **state)
{
	struct target target = start(busy);
	size_t before;
	struct run run;

	run_init(&run, "cpu-clock,task-clock", PM_PERF_TASKS);
	run.options.tids = &target.pid;
	run.options.tids_len = 1;
	before = count_fds();
	must_open(&run, &target);
	assert_true(count_fds() > before);
	pm_perf_free(run.perf);
	run.perf = NULL;
	assert_int_equal(count_fds(), before);
	run_release(&run);
	stop(&target);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_running_task),
		cmocka_unit_test(test_not_inherited),
		cmocka_unit_test(test_short_threads),
		cmocka_unit_test(test_task_that_is_gone),
		cmocka_unit_test(test_few_descriptors),
		cmocka_unit_test(test_all_cpus),
		cmocka_unit_test(test_one_cpu),
		cmocka_unit_test(test_switches),
		cmocka_unit_test(test_cpu_was_off),
		cmocka_unit_test(test_cpu_is_new),
		cmocka_unit_test(test_cpu_is_new_and_descriptors_are_few),
		cmocka_unit_test(test_group),
		cmocka_unit_test(test_group_with_probe),
		cmocka_unit_test(test_snapshot),
		cmocka_unit_test(test_filter_follows),
		cmocka_unit_test(test_filter_waits_for_exec),
		cmocka_unit_test(test_nothing_stays_open),
	};

	return cmocka_run_group_tests_name("perf-targets", tests, NULL, NULL);
}
