/* SPDX-License-Identifier: MIT */
/*
 * Scopes and the counters of the own thread: the arithmetic of the page on pages that are made
 * up, the calls on software events, which each machine has.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#include <pmself.h>

#include "src/self/rdpmc.h"
#include "src/self/scope-sums.h"

/* ---- the page ------------------------------------------------------------------------------ */

static uint64_t counter;
static uint32_t asked;
/* A page that the kernel writes while it is read, so many times. */
static struct perf_event_mmap_page *moving;
static int moves;

static uint64_t pmc(uint32_t number)
{
	asked = number;
	if (moves > 0) {
		moves--;
		moving->lock += 2;
		moving->offset += 1000;
	}
	return counter;
}

static struct perf_event_mmap_page page_of(uint16_t width)
{
	struct perf_event_mmap_page page = {
		.lock = 2, .index = 3, .offset = 5000, .pmc_width = width
	};

	page.cap_user_rdpmc = 1;
	page.time_enabled = 700;
	page.time_running = 600;
	return page;
}

static void test_page(void **state)
{
	struct perf_event_mmap_page page = page_of(48);
	uint64_t value = 0, waited = 0;

	counter = 77;
	assert_true(pm_self_page_read(&page, pmc, &value, &waited));
	assert_int_equal(value, 5077);
	assert_int_equal(waited, 100);
	assert_int_equal(asked, 2);
	/* Of 48 bits the last one is the sign, what is above is not the counter's. */
	counter = 0x7123ffffffffff38;
	assert_true(pm_self_page_read(&page, pmc, &value, &waited));
	assert_int_equal(value, 5000 - 200);
	counter = 0x7fffffffffff;
	assert_true(pm_self_page_read(&page, pmc, &value, &waited));
	assert_int_equal(value, 5000 + 0x7fffffffffff);
	page = page_of(64);
	counter = UINT64_MAX;
	assert_true(pm_self_page_read(&page, pmc, &value, &waited));
	assert_int_equal(value, 4999);
	page = page_of(32);
	counter = 0x180000000;
	assert_true(pm_self_page_read(&page, pmc, &value, &waited));
	assert_int_equal(value, (uint64_t)5000 - 0x80000000);
}

static void test_page_moves(void **state)
{
	struct perf_event_mmap_page page = page_of(48);
	uint64_t value = 1, waited = 2;

	moving = &page;
	moves = 3;
	counter = 1;
	assert_true(pm_self_page_read(&page, pmc, &value, &waited));
	assert_int_equal(value, 8001);
	/* For ever; and in the midst of a writing. */
	moves = INT32_MAX;
	assert_false(pm_self_page_read(&page, pmc, &value, &waited));
	moves = 0;
	page = page_of(48);
	page.lock = 3;
	assert_false(pm_self_page_read(&page, pmc, &value, &waited));
	assert_int_equal(value, 8001);
}

static void test_page_refuses(void **state)
{
	struct perf_event_mmap_page page = page_of(48);
	uint64_t value, waited;

	page.index = 0; /* on no counter now */
	assert_false(pm_self_page_read(&page, pmc, &value, &waited));
	page = page_of(48);
	page.cap_user_rdpmc = 0;
	assert_false(pm_self_page_read(&page, pmc, &value, &waited));
	page = page_of(0);
	assert_false(pm_self_page_read(&page, pmc, &value, &waited));
	page = page_of(65);
	assert_false(pm_self_page_read(&page, pmc, &value, &waited));
#if defined(__aarch64__)
	page = page_of(64);
	page.index = 33; /* PMICNTR_EL0 or whatever comes next */
	assert_false(pm_self_page_read(&page, pmc, &value, &waited));
	page.index = 32;
	assert_true(pm_self_page_read(&page, pmc, &value, &waited));
#endif
}

/* ---- the call ------------------------------------------------------------------------------ */

static int open_software(struct pm_self_counters *ret)
{
	const struct perf_event_attr attrs[PM_SELF_COUNTERS] = {
		{ .type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_PAGE_FAULTS },
		{ .type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_DUMMY },
	};

	return pm_self_counters_open(ret, attrs);
}

static void touch(size_t pages)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	volatile char *memory = mmap(NULL, pages * page, PROT_READ | PROT_WRITE,
				     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_true(memory != MAP_FAILED);
	madvise((void *)(uintptr_t)memory, pages * page, MADV_NOHUGEPAGE);
	for (size_t i = 0; i < pages; i++)
		memory[i * page] = 1;
	munmap((void *)(uintptr_t)memory, pages * page);
}

static void test_call(void **state)
{
	struct pm_self_counters counters;
	struct pm_self_reading begin;
	uint64_t counted[PM_SELF_COUNTERS];
	int other;

	if (open_software(&counters) < 0) {
		print_message("perf_event_open is refused here\n");
		skip();
	}
	pm_self_counters_begin(&counters, &begin);
	assert_int_equal(begin.way, PM_SELF_BY_CALL);
	touch(50);
	assert_true(pm_self_counters_end(&counters, &begin, counted));
	assert_in_range(counted[0], 50, 400); /* a sanitizer has pages of its own */
	assert_int_equal(counted[1], 0);
	/* A wait in between: then something is missing. */
	begin.waited_ns++;
	assert_false(pm_self_counters_end(&counters, &begin, counted));
	begin.waited_ns--;
	/* Never an end of another kind. */
	begin.way = PM_SELF_BY_PAGE;
	assert_false(pm_self_counters_end(&counters, &begin, counted));
	begin.way = PM_SELF_UNREAD;
	assert_false(pm_self_counters_end(&counters, &begin, counted));
	/* The program closes it, and opens a file of its own. */
	other = open("/dev/zero", O_RDONLY | O_CLOEXEC);
	assert_int_equal(dup2(other, counters.fds[0]), counters.fds[0]);
	begin.way = PM_SELF_BY_CALL;
	assert_false(pm_self_counters_end(&counters, &begin, counted));
	int taken[] = { counters.fds[0], counters.fds[1] };

	pm_self_counters_close(&counters);
	assert_int_equal(fcntl(taken[0], F_GETFD), 0);
	assert_int_equal(fcntl(taken[1], F_GETFD), -1);
	close(taken[0]);
	/* Only the second one. */
	assert_int_equal(open_software(&counters), 0);
	taken[0] = counters.fds[0];
	taken[1] = counters.fds[1];
	assert_int_equal(dup2(other, taken[1]), taken[1]);
	pm_self_counters_close(&counters);
	assert_int_equal(fcntl(taken[0], F_GETFD), -1);
	assert_int_equal(fcntl(taken[1], F_GETFD), 0);
	close(taken[1]);
	close(other);
}

/* ---- a PMU --------------------------------------------------------------------------------- */

static const char user_access[] = "/proc/sys/kernel/perf_user_access";

/* The character that was there, 0 where there is no such file or it may not be written. */
static char set_access(char value)
{
	int fd = open(user_access, O_RDWR | O_CLOEXEC);
	char before = 0;

	if (fd < 0)
		return 0;
	if (pread(fd, &before, 1, 0) != 1 || pwrite(fd, &value, 1, 0) != 1)
		before = 0;
	close(fd);
	return before;
}

static void spin(uint32_t turns)
{
	for (volatile uint32_t i = 0; i < turns; i++)
		;
}

/* What is counted by page lies within what is counted by calls around it, as closely as those
 * can be; also when the thread has left its CPU in between. */
static void compare_ways(const struct pm_self_counters *counters)
{
	const struct timespec moment = { .tv_nsec = 2000000 };
	struct pm_self_counters calls = *counters;
	uint64_t outer[PM_SELF_COUNTERS], inner[PM_SELF_COUNTERS];
	struct pm_self_reading by_call, by_page;

	memset(calls.pages, 0, sizeof(calls.pages));
	for (uint32_t turn = 0; turn < 5; turn++) {
		pm_self_counters_begin(&calls, &by_call);
		pm_self_counters_begin(counters, &by_page);
		assert_int_equal(by_call.way, PM_SELF_BY_CALL);
		assert_int_equal(by_page.way, PM_SELF_BY_PAGE);
		spin(100000 * (turn + 1));
		if (turn % 2 == 0)
			nanosleep(&moment, NULL);
		assert_true(pm_self_counters_end(counters, &by_page, inner));
		assert_true(pm_self_counters_end(&calls, &by_call, outer));
		for (size_t i = 0; i < PM_SELF_COUNTERS; i++) {
			assert_true(inner[i] >= 100000 * (turn + 1));
			assert_true(inner[i] <= outer[i]);
			assert_true(outer[i] - inner[i] < 20000);
		}
	}
}

static void test_pmu(void **state)
{
	struct pm_self_counters counters;
	struct pm_self_reading reading;
	char before = set_access('1');
	bool by_page;

	if (pm_self_counters_open_default(&counters) < 0) {
		print_message("there is no PMU, or it is refused\n");
		skip();
	}
	pm_self_counters_begin(&counters, &reading);
	by_page = reading.way == PM_SELF_BY_PAGE;
	if (by_page)
		compare_ways(&counters);
	pm_self_counters_close(&counters);
	if (before)
		set_access(before);
	if (!by_page) {
		print_message("the kernel lets nobody read counters\n");
		assert_false(before);
		skip();
	}
}

/* ---- sums ---------------------------------------------------------------------------------- */

static void test_sums(void **state)
{
	char twin[] = "same";
	struct pm_self_sums sums = { 0 }, all = { 0 };
	struct pm_self_sum one = { .calls = 1,
				   .elapsed_ns = 5,
				   .cpu_ns = 4,
				   .cycles = PM_SELF_UNKNOWN,
				   .instructions = 7 };
	uint32_t a, b, again;

	assert_int_equal(pm_self_sums_at(&sums, "same", &a), 0);
	assert_int_equal(pm_self_sums_at(&sums, twin, &b), 0);
	assert_int_equal(pm_self_sums_at(&sums, twin, &again), 0);
	assert_int_not_equal(a, b);
	assert_int_equal(b, again);
	pm_self_sum_add(&sums.list.data[a], &one);
	one.cycles = 3;
	pm_self_sum_add(&sums.list.data[b], &one);
	pm_self_sum_add(&sums.list.data[b], &one);
	assert_int_equal(sums.list.data[b].cycles, 6);
	assert_int_equal(pm_self_sums_merge(&all, sums.list.data, sums.list.len), 0);
	assert_int_equal(all.list.len, 1);
	assert_int_equal(all.list.data[0].calls, 3);
	assert_int_equal(all.list.data[0].elapsed_ns, 15);
	assert_int_equal(all.list.data[0].instructions, 21);
	/* One that is not known: the sum is not either. */
	assert_true(all.list.data[0].cycles == PM_SELF_UNKNOWN);
	/* Another text in the same place, as after dlclose(3) and dlopen(3). */
	strcpy(twin, "else");
	assert_int_equal(pm_self_sums_at(&sums, twin, &again), 0);
	assert_int_not_equal(b, again);
	assert_string_equal(sums.list.data[b].name, "same");
	assert_string_equal(sums.list.data[again].name, "else");
	pm_self_sums_clear(&sums);
	assert_int_equal(sums.list.data[b].calls, 0);
	assert_int_equal(pm_self_sums_at(&sums, twin, &a), 0);
	assert_int_equal(a, again);
	assert_int_equal(pm_self_sums_merge(&all, sums.list.data, sums.list.len), 0);
	assert_int_equal(all.list.len, 1);
	pm_self_sums_release(&sums);
	pm_self_sums_release(&all);
}

/* ---- scopes -------------------------------------------------------------------------------- */

static uint64_t now_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void burn(uint64_t ns)
{
	uint64_t end = now_ns(CLOCK_THREAD_CPUTIME_ID) + ns;

	while (now_ns(CLOCK_THREAD_CPUTIME_ID) < end)
		;
}

static struct pmself_counts counts_of(const char *name)
{
	struct pmself_counts counts = { .size = sizeof(counts) };

	assert_int_equal(pmself_scope_read(name, &counts), 0);
	return counts;
}

static void test_nested(void **state)
{
	const struct timespec sleep = { .tv_nsec = 5000000 };
	uint64_t begin = now_ns(CLOCK_MONOTONIC);
	struct pmself_counts outer, inner;

	assert_int_equal(pmself_scope_begin("outer"), 0);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(pmself_scope_begin("inner"), 0);
		burn(2000000);
		assert_int_equal(pmself_scope_end("outer"), -EINVAL);
		assert_int_equal(pmself_scope_end("inner"), 0);
	}
	nanosleep(&sleep, NULL);
	assert_int_equal(counts_of("outer").unfinished, 1);
	assert_int_equal(counts_of("outer").calls, 0);
	assert_int_equal(pmself_scope_end("outer"), 0);
	assert_int_equal(pmself_scope_end("outer"), -EINVAL);
	outer = counts_of("outer");
	inner = counts_of("inner");
	assert_int_equal(outer.calls, 1);
	assert_int_equal(outer.unfinished, 0);
	assert_int_equal(inner.calls, 3);
	assert_true(inner.cpu_ns >= 6000000);
	assert_true(outer.cpu_ns >= inner.cpu_ns);
	assert_true(inner.elapsed_ns >= 6000000);
	assert_true(outer.elapsed_ns >= inner.elapsed_ns + 5000000);
	assert_true(outer.elapsed_ns <= now_ns(CLOCK_MONOTONIC) - begin);
	assert_true(outer.cpu_ns < outer.elapsed_ns - 4000000);
}

/* Names of libraries that come and go: nothing of them is read once a scope has ended. */
static void test_name_goes(void **state)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	char *name = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			  -1, 0);

	assert_true(name != MAP_FAILED);
	for (int i = 0; i < 3; i++) {
		strcpy(name, i < 2 ? "of one" : "of two");
		assert_int_equal(pmself_scope_begin(name), 0);
		assert_int_equal(pmself_scope_end(name), 0);
	}
	munmap(name, page);
	assert_int_equal(counts_of("of one").calls, 2);
	assert_int_equal(counts_of("of two").calls, 1);
}

/* Stands for what the program's own malloc() may do. */
static bool nesting;
static int begun, ended;

char *strdup(const char *text)
{
	size_t len = strlen(text) + 1;
	char *copy = malloc(len);

	if (nesting) {
		begun = pmself_scope_begin("inside");
		ended = pmself_scope_end("inside");
	}
	return copy ? memcpy(copy, text, len) : NULL;
}

static void *nesting_thread(void *unused)
{
	begun = ended = 0;
	nesting = true;
	assert_int_equal(pmself_scope_begin("around malloc"), 0);
	nesting = false;
	assert_int_equal(begun, -EBUSY);
	assert_int_equal(ended, -EBUSY);
	assert_int_equal(pmself_scope_end("around malloc"), 0);
	assert_int_equal(counts_of("around malloc").calls, 1);
	return unused;
}

static void test_inside(void **state)
{
	struct pmself_counts counts = { .size = sizeof(counts) };
	pthread_t id;

	assert_int_equal(pthread_create(&id, NULL, nesting_thread, NULL), 0);
	pthread_join(id, NULL);
	assert_int_equal(pmself_scope_read("inside", &counts), -ENOENT);
	assert_int_equal(pmself_scope_begin(NULL), -EINVAL);
	assert_int_equal(pmself_scope_end(NULL), -EINVAL);
	assert_int_equal(pmself_scope_read(NULL, &counts), -EINVAL);
	assert_int_equal(pmself_scope_read("inside", NULL), -EINVAL);
}

static void test_deep(void **state)
{
	for (int i = 0; i < 64; i++)
		assert_int_equal(pmself_scope_begin("deep"), 0);
	assert_int_equal(pmself_scope_begin("deep"), -ENOSPC);
	assert_int_equal(pmself_scope_end("deep"), -ENOSPC);
	for (int i = 0; i < 64; i++)
		assert_int_equal(pmself_scope_end("deep"), 0);
	assert_int_equal(pmself_scope_end("deep"), -EINVAL);
	assert_int_equal(counts_of("deep").calls, 64);
}

enum {
	THREADS = 4,
	ROUNDS = 1000,
};

static void *scope_thread(void *name)
{
	for (int i = 0; i < ROUNDS; i++) {
		pmself_scope_begin(name);
		pmself_scope_begin("common");
		pmself_scope_end("common");
		pmself_scope_end(name);
	}
	pmself_scope_begin("left");
	return NULL;
}

static void test_threads(void **state)
{
	static char names[THREADS][8];
	pthread_t ids[THREADS];
	struct pmself_counts counts = { .size = sizeof(counts) };

	/* The same text, as other libraries would have it. */
	for (int i = 0; i < THREADS; i++) {
		strcpy(names[i], "thread");
		assert_int_equal(pthread_create(&ids[i], NULL, scope_thread, names[i]),
				 0);
	}
	for (int i = 0; i < 100; i++)
		pmself_scope_read("common", &counts);
	for (int i = 0; i < THREADS; i++)
		pthread_join(ids[i], NULL);
	assert_int_equal(counts_of("thread").calls, THREADS * ROUNDS);
	assert_int_equal(counts_of("common").calls, THREADS * ROUNDS);
	assert_int_equal(counts_of("left").unfinished, THREADS);
	assert_int_equal(counts_of("left").calls, 0);
}

static void test_read(void **state)
{
	struct pmself_counts counts = { .size = sizeof(counts) };
	struct {
		size_t size;
		uint64_t calls, guard;
	} old = { .size = 2 * sizeof(uint64_t), .guard = 42 };

	assert_int_equal(pmself_scope_read("nowhere", &counts), -ENOENT);
	counts.size = 1;
	assert_int_equal(pmself_scope_read("nowhere", &counts), -EINVAL);
	/* A caller that was built when the struct was shorter. */
	assert_int_equal(pmself_scope_begin("read"), 0);
	assert_int_equal(pmself_scope_end("read"), 0);
	assert_int_equal(pmself_scope_read("read", (struct pmself_counts *)&old), 0);
	assert_int_equal(old.calls, 1);
	assert_int_equal(old.guard, 42);
}

static int in_child(void)
{
	struct pmself_counts counts = { .size = sizeof(counts) };

	if (pmself_scope_read("before", &counts) != -ENOENT)
		return 1;
	burn(1000000);
	if (pmself_scope_end("around") != 0 || pmself_scope_read("around", &counts) != 0)
		return 2;
	if (counts.calls != 1 || counts.cpu_ns < 1000000 || counts.cpu_ns > 1000000000)
		return 3;
	return 0;
}

static void forked(bool raw)
{
	int status = -1;
	pid_t pid;

	uint64_t calls;

	assert_int_equal(pmself_scope_begin("before"), 0);
	assert_int_equal(pmself_scope_end("before"), 0);
	calls = counts_of("before").calls;
	assert_int_equal(pmself_scope_begin("around"), 0);
	burn(1000000);
	/* Of the second libc tells nobody. */
	pid = raw ? (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0) : fork();
	assert_true(pid >= 0);
	if (pid == 0)
		_exit(in_child());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(pmself_scope_end("around"), 0);
	assert_int_equal(counts_of("around").calls, calls);
	assert_int_equal(counts_of("before").calls, calls);
}

static void test_fork(void **state)
{
	forked(false);
	forked(true);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_page),         cmocka_unit_test(test_page_moves),
		cmocka_unit_test(test_page_refuses), cmocka_unit_test(test_call),
		cmocka_unit_test(test_sums),         cmocka_unit_test(test_nested),
		cmocka_unit_test(test_deep),         cmocka_unit_test(test_threads),
		cmocka_unit_test(test_read),         cmocka_unit_test(test_fork),
		cmocka_unit_test(test_name_goes),    cmocka_unit_test(test_inside),
		cmocka_unit_test(test_pmu),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
