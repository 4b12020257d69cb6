/* SPDX-License-Identifier: MIT */
/* The filter of events of CPUs on kernels that this machine does not run. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <linux/filter.h>
#include <linux/perf_event.h>
#include <linux/seccomp.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>

#include "src/perf/tree-filter.h"

/*
 * Up to Linux 5.10 what BPF makes is locked memory. That kernel is played here: bpf(2) of one
 * thread is refused while the limit is a small one.
 */
struct old_kernel {
	int listener, go[2];
	struct rlimit small;
	size_t refused;
	int answer; /* of pm_tree_filter_new() */
	struct pm_error err;
};

static void *ask_old_kernel(void *user)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_bpf, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { PM_ARRAY_LEN(code), code };
	struct old_kernel *kernel = user;
	struct pm_tree_filter *filter = NULL;

	kernel->listener = (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
					SECCOMP_FILTER_FLAG_NEW_LISTENER, &program);
	assert_int_equal(write(kernel->go[1], "", 1), 1);
	if (kernel->listener >= 0) {
		kernel->answer = pm_tree_filter_new(&filter, true, &kernel->err);
		if (kernel->answer == 0)
			pm_tree_filter_free(filter);
	}
	return NULL;
}

/* Until the thread has ended, and with it the filter. */
static void be_old_kernel(struct old_kernel *kernel)
{
	struct seccomp_notif asked;
	struct pollfd poll_fd = { .fd = kernel->listener, .events = POLLIN };

	for (;;) {
		struct seccomp_notif_resp answer = { 0 };
		struct rlimit now;

		poll(&poll_fd, 1, -1);
		if (!(poll_fd.revents & POLLIN))
			return;
		memset(&asked, 0, sizeof(asked));
		if (ioctl(kernel->listener, SECCOMP_IOCTL_NOTIF_RECV, &asked) < 0)
			continue;
		getrlimit(RLIMIT_MEMLOCK, &now);
		answer.id = asked.id;
		if (now.rlim_cur == kernel->small.rlim_cur) {
			answer.error = -EPERM;
			kernel->refused++;
		} else {
			answer.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
		}
		ioctl(kernel->listener, SECCOMP_IOCTL_NOTIF_SEND, &answer);
	}
}

static void test_filter_with_little_locked_memory(void **state)
{
	struct old_kernel kernel = { .listener = -1 };
	struct pm_tree_filter *filter = NULL;
	struct rlimit before, after;
	pthread_t thread;
	char byte;

	if (pm_tree_filter_new(&filter, true, &kernel.err) < 0) {
		print_message("no filter here: %s\n", kernel.err.text);
		skip();
	}
	pm_tree_filter_free(filter);
	assert_int_equal(getrlimit(RLIMIT_MEMLOCK, &before), 0);
	if (before.rlim_max <= 65536) {
		print_message("a hard limit of locked memory that leaves no room\n");
		skip();
	}
	assert_int_equal(pipe2(kernel.go, O_CLOEXEC), 0);
	kernel.small = (struct rlimit){ 65536, before.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_MEMLOCK, &kernel.small), 0);
	assert_int_equal(pthread_create(&thread, NULL, ask_old_kernel, &kernel), 0);
	assert_int_equal(read(kernel.go[0], &byte, 1), 1);
	if (kernel.listener >= 0)
		be_old_kernel(&kernel);
	pthread_join(thread, NULL);
	assert_int_equal(getrlimit(RLIMIT_MEMLOCK, &after), 0);
	setrlimit(RLIMIT_MEMLOCK, &before);
	close(kernel.go[0]);
	close(kernel.go[1]);
	if (kernel.listener < 0) {
		print_message("seccomp tells nobody here\n");
		skip();
	}
	close(kernel.listener);
	if (kernel.answer < 0)
		fail_msg("%s", kernel.err.text);
	assert_true(kernel.refused > 0);
	assert_int_equal(after.rlim_cur, kernel.small.rlim_cur);
	assert_int_equal(after.rlim_max, kernel.small.rlim_max);
}

static uint64_t cpu_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void spin(uint64_t ns)
{
	uint64_t end = cpu_ns() + ns;

	while (cpu_ns() < end)
		;
}

/* Of an event of this CPU, while we are not marked. */
static void test_what_is_left_out_is_counted(void **state)
{
	struct perf_event_attr attr = { .size = sizeof(attr),
					.type = PERF_TYPE_SOFTWARE,
					.config = PERF_COUNT_SW_CPU_CLOCK,
					.sample_period = 1000000 };
	struct pm_tree_filter *filter = NULL;
	uint64_t left_out = 7, counted;
	struct pm_error err = { 0 };
	cpu_set_t before, one;
	int fd;

	if (pm_tree_filter_new(&filter, true, &err) < 0) {
		print_message("no filter here: %s\n", err.text);
		skip();
	}
	sched_getaffinity(0, sizeof(before), &before);
	CPU_ZERO(&one);
	CPU_SET(sched_getcpu(), &one);
	sched_setaffinity(0, sizeof(one), &one);
	fd = (int)syscall(SYS_perf_event_open, &attr, -1, sched_getcpu(), -1,
			  PERF_FLAG_FD_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(pm_tree_filter_left_out(filter, 3, &left_out), -ENOTSUP);
	assert_int_equal(left_out, 7);
	assert_int_equal(pm_tree_filter_attach(filter, fd, 3, false), 0);
	/* The timer's ticks do not pile up while a host has taken the CPU away. */
	for (int i = 0; i < 1000; i++) {
		spin(5000000);
		assert_int_equal(pm_tree_filter_left_out(filter, 3, &left_out), 0);
		if (left_out >= 5 * attr.sample_period)
			break;
	}
	ioctl(fd, PERF_EVENT_IOC_DISABLE, 0);
	assert_int_equal(pm_tree_filter_left_out(filter, 3, &left_out), 0);
	assert_int_equal(read(fd, &counted, sizeof(counted)), sizeof(counted));
	assert_in_range(left_out, 5 * attr.sample_period, counted);
	assert_int_equal(left_out % attr.sample_period, 0);
	assert_int_equal(pm_tree_filter_left_out(filter, 2, &left_out), -ENOTSUP);
	close(fd);
	sched_setaffinity(0, sizeof(before), &before);
	pm_tree_filter_free(filter);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_filter_with_little_locked_memory),
		cmocka_unit_test(test_what_is_left_out_is_counted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
