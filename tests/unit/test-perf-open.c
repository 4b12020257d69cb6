/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/perf_event.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "perf-level.h"
#include "src/perf/perf-internal.h"

/* Busy for a moment, then a fork and an exec. */
static const char busy_script[] =
	"i=0; while [ $i -lt 150000 ]; do i=$((i+1)); done; /bin/true; exec /bin/true";

struct target {
	pid_t pid;
	int go; /* closing it lets the child exec */
};

static struct target start(const char *script)
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
		execl("/bin/sh", "sh", "-c", script, (char *)NULL);
		_exit(127);
	}
	close(gate[0]);
	target.go = gate[1];
	return target;
}

static void stop(struct target *target)
{
	kill(target->pid, SIGKILL);
	close(target->go);
	waitpid(target->pid, NULL, 0);
}

static struct pm_perf_options options_of(const struct pm_event_specs *specs,
					 enum pm_call_graph graph, pid_t pid)
{
	return (struct pm_perf_options){
		.specs = specs->list.data,
		.specs_len = specs->list.len,
		.by_frequency = true,
		.rate = 2000,
		.call_graph = graph,
		.stack_bytes = 8192,
		.pid = pid,
	};
}

static void skip_if_forbidden(int r, const struct pm_error *err)
{
	if (r == -EACCES || r == -EPERM || r == -ENOSYS) {
		print_message("perf_event_open is not allowed here: %s\n", err->text);
		skip();
	}
	if (r < 0)
		fail_msg("%s", err->text);
}

/* What a recording showed, checked record by record. */
struct seen {
	uint32_t pid;
	uint64_t last_time;
	size_t records, samples[4], exec_comms, exec_mmaps, identified, forks, exits;
	size_t with_regs, with_stack, with_chain, disorder;
	uint64_t period, lost;
};

static void see(struct seen *seen, const struct pm_record *record)
{
	seen->records++;
	if (record->time + 1000000 < seen->last_time)
		seen->disorder++;
	if (record->time > seen->last_time)
		seen->last_time = record->time;
	switch (record->type) {
	case PERF_RECORD_SAMPLE:
		assert_true(record->event < 4);
		seen->samples[record->event]++;
		seen->period += record->sample.period;
		assert_true(record->sample.stack_len <= record->sample.stack_asked);
		seen->with_chain += record->sample.callchain_len > 0;
		seen->with_stack += record->sample.stack_len > 0;
		if (record->sample.regs.abi == PM_REGS_64)
			seen->with_regs++;
		break;
	case PERF_RECORD_MMAP2:
		seen->exec_mmaps += (record->mmap.prot & PROT_EXEC) != 0;
		seen->identified += record->mmap.identified && record->mmap.inode > 0;
		assert_true(record->mmap.len > 0);
		break;
	case PERF_RECORD_COMM:
		if (record->comm.exec)
			seen->exec_comms++;
		break;
	case PERF_RECORD_FORK:
		seen->forks++;
		assert_int_not_equal(record->pid, record->fork.parent_pid);
		break;
	case PERF_RECORD_EXIT:
		seen->exits++;
		break;
	case PERF_RECORD_LOST:
		seen->lost += record->lost;
		break;
	default:
		break;
	}
}

static void drain(struct pm_perf *perf, bool final, struct seen *seen)
{
	struct pm_record record;
	struct pm_error err;
	int r;

	pm_perf_begin(perf, final);
	while ((r = pm_perf_next(perf, &record, &err)) > 0)
		see(seen, &record);
	if (r < 0)
		fail_msg("%s", err.text);
}

static void follow(struct pm_perf *perf, struct target *target, struct seen *seen)
{
	struct pollfd fds[256];
	size_t len;
	const int *ring_fds = pm_perf_poll_fds(perf, &len);
	int status;

	assert_in_range(len, 1, 256);
	for (size_t i = 0; i < len; i++)
		fds[i] = (struct pollfd){ ring_fds[i], POLLIN, 0 };
	close(target->go);
	while (waitpid(target->pid, &status, WNOHANG) == 0) {
		poll(fds, len, 20);
		drain(perf, false, seen);
	}
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
	assert_int_equal(pm_perf_disable(perf), 0);
	drain(perf, true, seen);
}

static void record_script(const char *events, enum pm_call_graph graph, struct seen *seen,
			  uint64_t lost[4])
{
	struct pm_event_specs specs = { 0 };
	struct target target = start(busy_script);
	struct pm_perf_options options;
	struct pm_perf *perf = NULL;
	struct pm_error err = { 0 };
	size_t len;
	int r;

	*seen = (struct seen){ .pid = (uint32_t)target.pid };
	assert_int_equal(pm_event_specs_parse(events, &specs, &err), 0);
	options = options_of(&specs, graph, target.pid);
	r = pm_perf_open(&perf, &options, &err);
	if (r < 0)
		stop(&target);
	skip_if_forbidden(r, &err);
	follow(perf, &target, seen);
	pm_perf_events(perf, &len);
	for (size_t i = 0; i < len; i++) {
		r = pm_perf_lost(perf, i, &lost[i]);
		assert_true(r == 0 || r == -ENOTSUP);
	}
	pm_perf_free(perf);
	pm_event_specs_release(&specs);
}

static void test_records_of_a_program(void **state)
{
	uint64_t lost[4] = { 0 };
	struct seen seen;

	record_script("cpu-clock", PM_CALL_GRAPH_DWARF, &seen, lost);
	print_message("%zu records, %zu samples\n", seen.records, seen.samples[0]);
	assert_true(seen.samples[0] >= 20);
	assert_int_equal(seen.disorder, 0);
	/* The shell, /bin/true in a child, /bin/true in its place. */
	assert_int_equal(seen.exec_comms, 3);
	assert_int_equal(seen.forks, 1);
	assert_int_equal(seen.exits, 2);
	assert_true(seen.exec_mmaps >= 3 * 2);
	assert_true(seen.with_regs > seen.samples[0] / 2);
	assert_true(seen.with_stack > seen.samples[0] / 2);
	assert_int_equal(seen.lost, 0);
	assert_int_equal(lost[0], 0);
	/* 2000 Hz of cpu-clock: each sample stands for half a millisecond or more. */
	assert_true(seen.period >= seen.samples[0] * 500000);
}

static void test_two_events_share_rings(void **state)
{
	uint64_t lost[4] = { 0 };
	struct seen seen;

	record_script("cpu-clock:u,task-clock", PM_CALL_GRAPH_FP, &seen, lost);
	assert_true(seen.samples[0] >= 20);
	assert_true(seen.samples[1] >= 20);
	assert_int_equal(seen.exec_comms, 3); /* told once, not once for each event */
	assert_true(seen.with_chain > 0);
	assert_int_equal(seen.disorder, 0);
}

static void test_fallback_is_told(void **state)
{
	struct pm_event_specs specs = { 0 };
	struct target target = start(busy_script);
	struct pm_perf_options options;
	const struct pm_perf_event *event;
	struct pm_perf *perf = NULL;
	struct pm_error err = { 0 };
	size_t len;
	int r;

	assert_int_equal(pm_event_specs_parse("cycles:u", &specs, &err), 0);
	options = options_of(&specs, PM_CALL_GRAPH_NONE, target.pid);
	options.rate = UINT64_MAX;
	r = pm_perf_open(&perf, &options, &err);
	stop(&target);
	skip_if_forbidden(r, &err);
	event = pm_perf_events(perf, &len);
	assert_int_equal(len, 1);
	assert_string_equal(event->requested.requested, "cycles:u");
	assert_true(event->rate > 0 && event->rate < UINT64_MAX);
	if (event->actual.type == PERF_TYPE_SOFTWARE) {
		assert_string_equal(event->actual.name, "cpu-clock");
		assert_string_equal(event->actual.modifiers, "u");
		assert_false(event->actual.kernel);
		assert_int_equal(pm_perf_notes(perf)->texts.len, 1);
		assert_non_null(strstr(pm_perf_notes(perf)->texts.data[0], "cpu-clock"));
	}
	pm_perf_free(perf);
	pm_event_specs_release(&specs);
}

static void test_missing_event_names_others(void **state)
{
	struct pm_event_specs specs = { 0 };
	struct target target = start(busy_script);
	struct pm_perf_options options;
	struct pm_perf *perf = NULL;
	struct pm_error err = { 0 };
	int r;

	assert_int_equal(pm_event_specs_parse("node-prefetch-misses", &specs, &err), 0);
	options = options_of(&specs, PM_CALL_GRAPH_NONE, target.pid);
	r = pm_perf_open(&perf, &options, &err);
	stop(&target);
	pm_event_specs_release(&specs);
	if (r == 0) {
		pm_perf_free(perf);
		print_message("this machine has node-prefetch-misses\n");
		skip();
	}
	assert_null(perf);
	if (r == -EACCES || r == -EPERM || r == -ENOSYS)
		skip_if_forbidden(r, &err);
	assert_string_equal(err.source, "node-prefetch-misses");
	assert_non_null(strstr(err.text, "events that work here: "));
}

static void test_rate_is_clamped(void **state)
{
	struct pm_event_specs specs = { 0 };
	struct target target = start(busy_script);
	struct pm_perf_options options;
	const struct pm_perf_event *event;
	struct pm_perf *perf = NULL;
	struct pm_error err = { 0 };
	size_t len;
	int r;

	assert_int_equal(pm_event_specs_parse("cpu-clock:u", &specs, &err), 0);
	options = options_of(&specs, PM_CALL_GRAPH_NONE, target.pid);
	options.rate = 3000000000;
	r = pm_perf_open(&perf, &options, &err);
	stop(&target);
	skip_if_forbidden(r, &err);
	event = pm_perf_events(perf, &len);
	assert_true(event->rate < 3000000000);
	assert_int_equal(pm_perf_notes(perf)->texts.len, 1);
	assert_non_null(strstr(pm_perf_notes(perf)->texts.data[0], "3000000000 Hz"));
	pm_perf_free(perf);
	pm_event_specs_release(&specs);
}

static void test_wrong_options(void **state)
{
	struct pm_event_specs specs = { 0 };
	struct pm_perf_options options, good;
	struct pm_perf *perf = NULL;
	struct pm_error err = { 0 };

	assert_int_equal(pm_event_specs_parse("cpu-clock:u", &specs, &err), 0);
	good = options_of(&specs, PM_CALL_GRAPH_DWARF, getpid());
	options = good;
	options.stack_bytes = PM_STACK_BYTES_MAX + 8;
	assert_int_equal(pm_perf_open(&perf, &options, &err), -EINVAL);
	options.stack_bytes = 4097;
	assert_int_equal(pm_perf_open(&perf, &options, &err), -EINVAL);
	options = good;
	options.rate = 0;
	assert_int_equal(pm_perf_open(&perf, &options, &err), -EINVAL);
	options = good;
	options.ring_pages = 3;
	assert_int_equal(pm_perf_open(&perf, &options, &err), -EINVAL);
	options = good;
	options.specs_len = 0;
	assert_int_equal(pm_perf_open(&perf, &options, &err), -EINVAL);
	options = good;
	options.pid = 0;
	assert_int_equal(pm_perf_open(&perf, &options, NULL), -EINVAL);
	assert_null(perf);
	pm_perf_free(NULL);
	pm_event_specs_release(&specs);
}

/* Nobody reads until the end: what did not fit is counted, and all that fitted is given. */
static void test_loss_is_counted(void **state)
{
	struct pm_event_specs specs = { 0 };
	struct target target = start(busy_script);
	struct pm_perf_options options;
	struct pm_perf *perf = NULL, *cpus = NULL;
	struct pm_error err = { 0 };
	struct seen seen = { 0 };
	uint64_t lost = 0;
	int r;

	assert_int_equal(pm_event_specs_parse("cpu-clock", &specs, &err), 0);
	options = options_of(&specs, PM_CALL_GRAPH_DWARF, target.pid);
	options.stack_bytes = 65528;
	options.ring_pages = 1;
	options.ring_pages_explicit = true;
	/* What is read by time has room for sixteen, if memory is not limited. */
	if (geteuid() == 0 && pm_perf_open(&cpus, &options, NULL) == 0 &&
	    pm_perf_per_cpu(cpus)) {
		assert_int_equal(pm_perf_ring_pages(cpus) * (size_t)sysconf(_SC_PAGESIZE),
				 1048576);
		assert_true(pm_perf_is_paced(cpus));
		assert_true(pm_perf_quarter_ns(cpus) > 0);
	}
	pm_perf_free(cpus);
	options.per_task = true;
	r = pm_perf_open(&perf, &options, &err);
	if (r < 0)
		stop(&target);
	skip_if_forbidden(r, &err);
	/* One page was asked for; two records of 64 KiB is what it takes. */
	assert_int_equal(pm_perf_ring_pages(perf) * (size_t)sysconf(_SC_PAGESIZE),
			 131072);
	assert_int_equal(pm_perf_notes(perf)->texts.len, 1);
	assert_non_null(strstr(pm_perf_notes(perf)->texts.data[0], "a ring of 1 pages"));
	close(target.go);
	assert_int_equal(waitpid(target.pid, NULL, 0), target.pid);
	assert_int_equal(pm_perf_disable(perf), 0);
	drain(perf, true, &seen);
	r = pm_perf_lost(perf, 0, &lost);
	assert_true(r == 0 || r == -ENOTSUP);
	assert_true(seen.samples[0] > 0);
	if (r == 0) {
		print_message("%zu samples, %llu lost, %llu told by records\n",
			      seen.samples[0], (unsigned long long)lost,
			      (unsigned long long)seen.lost);
		assert_true(lost > 0);
		assert_true(seen.lost <= lost);
	}
	assert_int_equal(pm_perf_lost(perf, 1, &lost), -EINVAL);
	pm_perf_free(perf);
	pm_event_specs_release(&specs);
}

/* ---- as a user without privileges ------------------------------------------------------ */

enum {
	NOBODY = 65534,
};

static int run_as_nobody(int (*what)(void))
{
	pid_t pid = fork();
	int status;

	assert_true(pid >= 0);
	if (pid == 0) {
		struct rlimit memlock = { 8 << 20, 8 << 20 };

		setrlimit(RLIMIT_MEMLOCK, &memlock);
		if (setgid(NOBODY) < 0 || setuid(NOBODY) < 0)
			_exit(77);
		/* A change of uid makes a process undumpable, and its children closed to
		 * ptrace access checks; after an exec, as in life, this is gone. */
		prctl(PR_SET_DUMPABLE, 1);
		_exit(what());
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static int paranoid(void)
{
	struct pm_perf_env env;

	pm_perf_env_read(&env);
	return env.paranoid_known ? env.paranoid : 0;
}

#define CHECK(condition)                                                          \
	do {                                                                      \
		if (!(condition)) {                                               \
			fprintf(stderr, "# line %d: %s\n", __LINE__, #condition); \
			_exit(1);                                                 \
		}                                                                 \
	} while (0)

/* Nothing of cmocka in here: this runs in a child. */
static int nobody_records(const char *events, bool expect_drop, uint32_t stack_bytes,
			  size_t ring_pages)
{
	struct pm_event_specs specs = { 0 };
	struct target target = start(busy_script);
	const struct pm_perf_event *event;
	struct pm_perf_options options;
	struct pm_perf *perf = NULL;
	struct pm_error err = { 0 };
	struct seen seen = { 0 };
	size_t len;
	int r;

	CHECK(pm_event_specs_parse(events, &specs, &err) == 0);
	options = options_of(&specs, PM_CALL_GRAPH_DWARF, target.pid);
	options.stack_bytes = stack_bytes;
	options.ring_pages = ring_pages;
	options.ring_pages_explicit = ring_pages > 0;
	r = pm_perf_open(&perf, &options, &err);
	if (r < 0)
		fprintf(stderr, "# %s: %s (%s)\n", err.source, err.text, err.fix);
	CHECK(r == 0);
	event = pm_perf_events(perf, &len);
	CHECK(event->kernel_dropped == expect_drop);
	for (size_t i = 0; i < pm_perf_notes(perf)->texts.len; i++)
		fprintf(stderr, "# note: %s\n", pm_perf_notes(perf)->texts.data[i]);
	CHECK((pm_perf_notes(perf)->texts.len > 0) == (expect_drop || ring_pages > 0));
	if (ring_pages > 0)
		CHECK(pm_perf_ring_pages(perf) < ring_pages);
	follow(perf, &target, &seen);
	CHECK(seen.samples[0] >= 20);
	CHECK(seen.exec_comms == 3);
	pm_perf_free(perf);
	pm_event_specs_release(&specs);
	return 0;
}

static int nobody_user_only(void)
{
	return nobody_records("cpu-clock:u", false, 65528, 0);
}

static int nobody_implicit_kernel(void)
{
	return nobody_records("cpu-clock", paranoid() >= 2, 65528, 0);
}

static int nobody_large_ring(void)
{
	return nobody_records("cpu-clock:u", false, 16384, 65536);
}

static int nobody_explicit_kernel(void)
{
	struct pm_event_specs specs = { 0 };
	struct target target = start(busy_script);
	struct pm_perf_options options;
	struct pm_perf *perf = NULL;
	struct pm_error err = { 0 };

	CHECK(pm_event_specs_parse("cpu-clock:uk", &specs, &err) == 0);
	options = options_of(&specs, PM_CALL_GRAPH_NONE, target.pid);
	CHECK(pm_perf_open(&perf, &options, &err) == -EACCES);
	stop(&target);
	CHECK(strstr(err.text, "perf_event_paranoid is 2") != NULL);
	CHECK(strcmp(err.fix, "sudo sysctl kernel.perf_event_paranoid=1") == 0);
	pm_event_specs_release(&specs);
	return 0;
}

static int nobody_kernel_event(void)
{
	struct pm_event_specs specs = { 0 };
	struct target target = start(busy_script);
	struct pm_perf_options options;
	struct pm_perf *perf = NULL;
	struct pm_error err = { 0 };

	CHECK(pm_event_specs_parse("context-switches", &specs, &err) == 0);
	options = options_of(&specs, PM_CALL_GRAPH_NONE, target.pid);
	CHECK(pm_perf_open(&perf, &options, &err) == -EACCES);
	stop(&target);
	CHECK(strstr(err.text, "happens inside the kernel") != NULL);
	CHECK(strcmp(err.fix, "sudo sysctl kernel.perf_event_paranoid=1") == 0);
	pm_event_specs_release(&specs);
	return 0;
}

static int open_with_files(rlim_t soft, rlim_t hard, struct pm_error *err)
{
	struct pm_event_specs specs = { 0 };
	struct target target = start(busy_script);
	struct rlimit limit = { soft, hard };
	struct pm_perf_options options;
	struct pm_perf *perf = NULL;
	int r;

	CHECK(pm_event_specs_parse("cpu-clock:u,task-clock:u,faults:u", &specs, err) ==
	      0);
	options = options_of(&specs, PM_CALL_GRAPH_NONE, target.pid);
	CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0);
	r = pm_perf_open(&perf, &options, err);
	stop(&target);
	pm_perf_free(perf);
	pm_event_specs_release(&specs);
	return r;
}

static int nobody_raises_files(void)
{
	struct pm_error err = { 0 };

	CHECK(open_with_files(5, 4096, &err) == 0);
	return 0;
}

static int nobody_has_too_few_files(void)
{
	struct pm_error err = { 0 };

	CHECK(open_with_files(5, 5, &err) == -EMFILE);
	CHECK(strstr(err.text, "hard limit is 5") != NULL);
	CHECK(strstr(err.fix, "prlimit") != NULL);
	return 0;
}

enum {
	NO_SECCOMP = 254
}; /* an exit status: a sandbox that allows no filter inside */

/* What a container's default profile does. */
static int nobody_behind_seccomp(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_perf_event_open, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { PM_ARRAY_LEN(code), code };
	struct pm_error err = { 0 };

	CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
	if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) < 0)
		return NO_SECCOMP;
	CHECK(open_with_files(64, 64, &err) == -EPERM);
	CHECK(strstr(err.text, "seccomp") != NULL);
	CHECK(strstr(err.fix, "--cap-add PERFMON") != NULL);
	return 0;
}

static void skip_unless_root(int paranoid_max)
{
	if (geteuid() != 0) {
		print_message("only root can become nobody\n");
		skip();
	}
	if (paranoid() > paranoid_max) {
		print_message("perf_event_paranoid is %d\n", paranoid());
		skip();
	}
}

static void test_nobody_user_only(void **state)
{
	skip_unless_root(2);
	assert_int_equal(run_as_nobody(nobody_user_only), 0);
}

static void test_nobody_loses_the_kernel(void **state)
{
	skip_unless_root(2);
	assert_int_equal(run_as_nobody(nobody_implicit_kernel), 0);
}

static void test_nobody_gets_a_smaller_ring(void **state)
{
	skip_unless_root(2);
	if (paranoid() < 0)
		skip();
	assert_int_equal(run_as_nobody(nobody_large_ring), 0);
}

static void test_nobody_and_files(void **state)
{
	skip_unless_root(2);
	assert_int_equal(run_as_nobody(nobody_raises_files), 0);
	assert_int_equal(run_as_nobody(nobody_has_too_few_files), 0);
}

static void test_nobody_is_told_why(void **state)
{
	int status;

	skip_unless_root(2);
	if (paranoid() != 2)
		skip();
	assert_int_equal(run_as_nobody(nobody_explicit_kernel), 0);
	assert_int_equal(run_as_nobody(nobody_kernel_event), 0);
	status = run_as_nobody(nobody_behind_seccomp);
	if (status == NO_SECCOMP) {
		print_message("no seccomp filter can be set here\n");
		skip();
	}
	assert_int_equal(status, 0);
}

/* ---- why the kernel said no --------------------------------------------------------------- */

struct refusal_case {
	int code;
	int paranoid;
	int seccomp;
	uint64_t caps;
	bool kernel;
	const char *text, *fix; /* parts that must be in there; NULL: the fix is empty */
};

static void test_explanations(void **state)
{
	static const struct refusal_case cases[] = {
		{ EACCES, 2, 0, 0, true, "paranoid is 2", "perf_event_paranoid=1" },
		{ EACCES, 3, 0, 0, true, "paranoid is 3, which forbids all",
		  "perf_event_paranoid=1" },
		{ EACCES, 4, 0, 0, false, "paranoid is 4, which forbids all",
		  "perf_event_paranoid=2" },
		{ EACCES, 3, 2, 0, false, "paranoid is 3", "perf_event_paranoid=2" },
		{ EPERM, 2, 2, 0, true, "seccomp", "--cap-add PERFMON" },
		{ EPERM, 1, 2, 0, false, "seccomp", "--cap-add PERFMON" },
		{ EACCES, 1, 2, 0, false, "seccomp", "--cap-add PERFMON" },
		{ ENOSYS, 1, 2, 0, false, "seccomp", "--cap-add PERFMON" },
		{ ENOSYS, 1, 0, 0, false, "CONFIG_PERF_EVENTS", NULL },
		{ EACCES, 2, 0, 0, false, "although kernel.perf_event_paranoid=2", NULL },
		{ EACCES, 2, 0, (uint64_t)1 << 38, true, "although", NULL },
		{ EACCES, 3, 0, (uint64_t)1 << 38, true, "CAP_PERFMON is not enough",
		  "perf_event_paranoid=2" },
		{ EPERM, 4, 0, (uint64_t)1 << 38, true, "although", NULL },
		{ EACCES, 4, 0, (uint64_t)1 << 21, true, "although", NULL },
		{ EMFILE, 2, 0, 0, false, "1000 file descriptors", "--nofile=1064:1064" },
		{ ESRCH, 2, 0, 0, false, "gone", NULL },
	};

	for (size_t i = 0; i < PM_ARRAY_LEN(cases); i++) {
		const struct refusal_case *it = &cases[i];
		struct pm_perf_env env = {
			.paranoid_known = true,
			.paranoid = it->paranoid,
			.seccomp = it->seccomp,
			.caps_known = true,
			.caps = it->caps,
			.nofile_hard = 256,
		};
		struct pm_perf_refusal why = {
			.code = it->code,
			.event = "cycles",
			.kernel = it->kernel,
			.fds = 1000,
			.env = &env,
		};
		struct pm_error err = { 0 };

		assert_int_equal(pm_perf_explain_open(&why, &err), -it->code);
		assert_int_equal(err.code, -it->code);
		if (!strstr(err.text, it->text))
			fail_msg("case %zu: %s", i, err.text);
		if (it->fix ? !strstr(err.fix, it->fix) : err.fix[0] != '\0')
			fail_msg("case %zu: fix %s", i, err.fix);
		assert_int_equal(pm_perf_explain_open(&why, NULL), -it->code);
	}
}

struct kind_case {
	struct pm_perf_refusal why;
	int paranoid;
	enum pm_lockdown lockdown;
	uint64_t caps;
	const char *text, *fix;
};

/* What is refused for its kind, or for whom it is about. */
static void test_explanations_of_kinds(void **state)
{
	static const struct kind_case cases[] = {
		{ { .code = EACCES, .kind = PM_EVENT_UPROBE },
		  -1,
		  PM_LOCKDOWN_OFF,
		  0,
		  "CAP_PERFMON",
		  "sudo" },
		{ { .code = EACCES, .kind = PM_EVENT_UPROBE },
		  -1,
		  PM_LOCKDOWN_OFF,
		  1ull << 38, /* CAP_PERFMON */
		  "with CAP_SYS_ADMIN",
		  "sudo" },
		{ { .code = EACCES, .kind = PM_EVENT_KPROBE },
		  2,
		  PM_LOCKDOWN_OFF,
		  0,
		  "CAP_PERFMON",
		  "sudo" },
		{ { .code = EPERM, .kind = PM_EVENT_TRACEPOINT, .in_kernel_only = true },
		  0,
		  PM_LOCKDOWN_OFF,
		  0,
		  "paranoid is 0, and above -1",
		  "perf_event_paranoid=-1" },
		{ { .code = EACCES, .wide = true },
		  1,
		  PM_LOCKDOWN_OFF,
		  0,
		  "paranoid is 1, and above 0",
		  "perf_event_paranoid=0" },
		{ { .code = EACCES, .wide = true },
		  0,
		  PM_LOCKDOWN_OFF,
		  0,
		  "although",
		  NULL },
		{ { .code = EACCES, .others = true },
		  1,
		  PM_LOCKDOWN_OFF,
		  0,
		  "belongs to another user",
		  "sudo" },
		{ { .code = EPERM, .kind = PM_EVENT_KPROBE },
		  2,
		  PM_LOCKDOWN_CONFIDENTIALITY,
		  UINT64_MAX,
		  "locked down (confidentiality)",
		  "boot without" },
		{ { .code = EACCES, .kernel = true },
		  2,
		  PM_LOCKDOWN_INTEGRITY,
		  0,
		  "paranoid is 2",
		  "perf_event_paranoid=1" },
	};

	for (size_t i = 0; i < PM_ARRAY_LEN(cases); i++) {
		const struct kind_case *it = &cases[i];
		struct pm_perf_env env = {
			.paranoid_known = true,
			.paranoid = it->paranoid,
			.caps_known = true,
			.caps = it->caps,
			.lockdown = it->lockdown,
		};
		struct pm_perf_refusal why = it->why;
		struct pm_error err = { 0 };

		why.event = "it";
		why.env = &env;
		assert_int_equal(pm_perf_explain_open(&why, &err), -why.code);
		if (!strstr(err.text, it->text))
			fail_msg("case %zu: %s", i, err.text);
		if (it->fix ? !strstr(err.fix, it->fix) : err.fix[0] != '\0')
			fail_msg("case %zu: fix %s", i, err.fix);
	}
}

static void test_explain_mlock(void **state)
{
	struct pm_perf_env env = { .mlock_kb = 516, .memlock_bytes = 8 << 20 };
	struct pm_error err = { 0 };

	assert_int_equal(pm_perf_explain_map(EPERM, &env, 1 << 20, 8, &err), -EPERM);
	assert_non_null(strstr(err.text, "perf_event_mlock_kb=516"));
	assert_non_null(strstr(err.text, "8192 KiB"));
	assert_string_equal(err.fix, "sudo sysctl kernel.perf_event_mlock_kb=1028");
	assert_int_equal(pm_perf_explain_map(ENOMEM, &env, 1 << 20, 8, &err), -ENOMEM);
	assert_string_equal(err.fix, "");
}

/* ---- lists of CPUs ------------------------------------------------------------------------ */

static void test_cpu_list(void **state)
{
	static const char *const wrong[] = {
		"",    "\n",    "-", "1-",  "3-1",  "0,",    ",0",           "0 1",
		"1,1", "0-3,2", "a", "0x1", "0--1", "65536", "0-4294967296", "99999999999"
	};
	pm_cpu_list list = { 0 };

	assert_int_equal(pm_cpu_list_parse("0-3,8,10-11\n", &list), 0);
	assert_int_equal(list.len, 7);
	assert_int_equal(list.data[3], 3);
	assert_int_equal(list.data[4], 8);
	assert_int_equal(list.data[6], 11);
	for (size_t i = 0; i < PM_ARRAY_LEN(wrong); i++) {
		if (pm_cpu_list_parse(wrong[i], &list) != -EINVAL)
			fail_msg("\"%s\" was taken", wrong[i]);
		assert_int_equal(list.len, 7);
	}
	pm_cpu_list_release(&list);
	assert_int_equal(pm_cpu_list_online(&list), 0);
	assert_int_equal(list.len, sysconf(_SC_NPROCESSORS_ONLN));
	pm_cpu_list_release(&list);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_explanations),
		cmocka_unit_test(test_explanations_of_kinds),
		cmocka_unit_test(test_explain_mlock),
		cmocka_unit_test(test_cpu_list),
		cmocka_unit_test(test_wrong_options),
		cmocka_unit_test(test_records_of_a_program),
		cmocka_unit_test(test_two_events_share_rings),
		cmocka_unit_test(test_fallback_is_told),
		cmocka_unit_test(test_missing_event_names_others),
		cmocka_unit_test(test_rate_is_clamped),
		cmocka_unit_test(test_loss_is_counted),
		cmocka_unit_test(test_nobody_user_only),
		cmocka_unit_test(test_nobody_and_files),
		cmocka_unit_test(test_nobody_loses_the_kernel),
		cmocka_unit_test(test_nobody_gets_a_smaller_ring),
		cmocka_unit_test(test_nobody_is_told_why),
	};

	keep_perf_level();
	return cmocka_run_group_tests_name("perf-open", tests, NULL, NULL);
}
