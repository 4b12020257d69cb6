/* SPDX-License-Identifier: MIT */
/* Helper processes that read names: when they begin, and at which priority. */
#include "pm/symbol-crew.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/mman.h>
#include <time.h>

#define MS_NS 1000000ull

enum {
	ADDRESSES = 400,
	STEP = 16, /* bytes from one address to the next */
	/* More than a pipe takes without being read. */
	ADDRESSES_MANY = 200000,
	WAIT_MS = 60000,
};

/* The state that the helper saw of itself, in memory that both share. */
struct seen {
	int nice_before, nice_after;
};

struct run {
	const char *path; /* of the file to read */
	struct pm_str names;
	size_t symbols, done;
	uint64_t sleep_ms, burn_ms; /* in the helper, while it opens */
	struct seen *seen;
};

static uint64_t clock_ms(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static void sleep_ms(uint64_t ms)
{
	nanosleep(&(struct timespec){ .tv_sec = (time_t)(ms / 1000),
				      .tv_nsec = (long)(ms % 1000 * MS_NS) },
		  NULL);
}

/* ---- struct pm_symbol_crew_calls ------------------------------------------------------ */

static void on_open(void *user, size_t job, struct pm_symbol_input *ret)
{
	struct run *run = user;
	uint64_t end;

	(void)job;
	ret->fd = open(run->path, O_RDONLY | O_CLOEXEC);
	if (!run->seen)
		return;
	sleep_ms(run->sleep_ms);
	run->seen->nice_before = getpriority(PRIO_PROCESS, 0);
	end = clock_ms(CLOCK_PROCESS_CPUTIME_ID) + run->burn_ms;
	while (clock_ms(CLOCK_PROCESS_CPUTIME_ID) < end)
		;
	/* Until the parent looks again. */
	end = clock_ms(CLOCK_MONOTONIC) + WAIT_MS;
	while (run->burn_ms > 0 && getpriority(PRIO_PROCESS, 0) != 0 &&
	       clock_ms(CLOCK_MONOTONIC) < end)
		sleep_ms(10);
	run->seen->nice_after = getpriority(PRIO_PROCESS, 0);
}

static int on_symbol(void *user, size_t job, size_t index,
		     const struct pm_symbol_function *functions, size_t len)
{
	struct run *run = user;

	run->symbols++;
	pm_str_printf(&run->names, "%zu %zu", job, index);
	for (size_t i = 0; i < len; i++)
		pm_str_printf(&run->names, " %s %s %u",
			      functions[i].name ? functions[i].name : "-",
			      functions[i].file ? functions[i].file : "-",
			      functions[i].line);
	pm_str_putc(&run->names, '\n');
	return 0;
}

static int on_done(void *user, size_t job, const char *what, const char *why)
{
	struct run *run = user;

	(void)job;
	if (why)
		print_error("%s: %s\n", what, why);
	run->done += why == NULL;
	return 0;
}

static int on_tick(void *user)
{
	(void)user;
	return 0;
}

static struct pm_symbol_crew_calls calls_of(struct run *run)
{
	return (struct pm_symbol_crew_calls){ .user = run,
					      .open = on_open,
					      .symbol = on_symbol,
					      .done = on_done,
					      .tick = on_tick,
					      .wake_fd = -1,
					      .process_name = "test-crew" };
}

/* ---- files and addresses -------------------------------------------------------------- */

/* The code of this program. Its own addresses stand in for svma: it is linked at 0. */
static uint64_t *own_addresses(size_t len, size_t step)
{
	extern const char __executable_start[];
	uint64_t first =
		(uint64_t)(uintptr_t)on_open - (uint64_t)(uintptr_t)__executable_start;
	uint64_t *addresses = calloc(len, sizeof(*addresses));

	assert_non_null(addresses);
	for (size_t i = 0; i < len; i++)
		addresses[i] = first + i * step;
	return addresses;
}

/* An early helper of a small file, as in the guest, ends before it is asked. */
static bool waits_to_be_asked(void)
{
	struct stat own;

	assert_int_equal(stat("/proc/self/exe", &own), 0);
	return own.st_size >= 1 << 18;
}

static struct run resolved(size_t len, size_t step, struct pm_symbol_early *early)
{
	struct run run = { .path = "/proc/self/exe" };
	struct pm_symbol_crew_calls calls = calls_of(&run);
	struct pm_symbol_crew_cost cost = { 0 };
	uint64_t *addresses = own_addresses(len, step);
	struct pm_symbol_job job = { .addresses = addresses,
				     .addresses_len = len,
				     .early = early };

	assert_int_equal(pm_symbol_crew_run(&job, 1, &calls, &cost), 0);
	assert_int_equal(run.done, 1);
	assert_in_range(cost.processes, 1, early && !waits_to_be_asked() ? 2 : 1);
	free(addresses);
	return run;
}

static struct pm_symbol_early *start_early(const char *path, bool yields)
{
	struct run run = { .path = path };
	struct pm_symbol_crew_calls calls = calls_of(&run);
	struct pm_symbol_early *early = NULL;

	assert_int_equal(pm_symbol_early_start(&calls, 7, yields, &early), 0);
	return early;
}

/* ---- tests ---------------------------------------------------------------------------- */

static void test_early_helper_says_the_same(void **state)
{
	struct run plain = resolved(ADDRESSES, STEP, NULL);

	(void)state;
	assert_non_null(strstr(plain.names.data, "on_open"));
	/* One helper that still reads, and one that has waited for long; yielding takes a
	 * privilege. */
	for (int i = 0; i < 4; i++) {
		struct pm_symbol_early *early =
			start_early("/proc/self/exe", i % 2 == 1 && geteuid() == 0);
		struct run run;

		if (i >= 2)
			sleep_ms(300);
		if (waits_to_be_asked())
			assert_true(pm_symbol_early_is_there(early));
		run = resolved(ADDRESSES, STEP, early);
		assert_string_equal(run.names.data, plain.names.data);
		pm_str_release(&run.names);
		/* It is used up, and its job goes to another one. */
		assert_false(pm_symbol_early_is_there(early));
		run = resolved(ADDRESSES, STEP, early);
		assert_string_equal(run.names.data, plain.names.data);
		pm_str_release(&run.names);
		pm_symbol_early_free(early);
	}
	pm_str_release(&plain.names);
}

static void test_early_helper_with_more_addresses_than_a_pipe_takes(void **state)
{
	struct pm_symbol_early *early = start_early("/proc/self/exe", false);
	struct run plain, run;

	(void)state;
	run = resolved(ADDRESSES_MANY, 1, early);
	plain = resolved(ADDRESSES_MANY, 1, NULL);
	assert_true(plain.symbols > 0);
	assert_int_equal(run.symbols, plain.symbols);
	assert_string_equal(run.names.data, plain.names.data);
	pm_str_release(&run.names);
	pm_str_release(&plain.names);
	pm_symbol_early_free(early);
}

static void test_early_helper_of_a_small_file_ends(void **state)
{
	char path[] = "/tmp/test-symbol-crew-XXXXXX";
	int fd = mkstemp(path);
	struct pm_symbol_early *early;
	uint64_t end;

	(void)state;
	assert_true(fd >= 0);
	early = start_early(path, false);
	end = clock_ms(CLOCK_MONOTONIC) + WAIT_MS;
	while (pm_symbol_early_is_there(early) && clock_ms(CLOCK_MONOTONIC) < end)
		sleep_ms(5);
	assert_false(pm_symbol_early_is_there(early));
	pm_symbol_early_free(early);
	close(fd);
	unlink(path);
}

static void test_early_helper_that_nobody_asks(void **state)
{
	(void)state;
	pm_symbol_early_free(start_early("/proc/self/exe", false));
	pm_symbol_early_free(NULL);
}

/* The nice value that the helper had after @sleep_ms, and the one after it used @burn_ms. */
static struct seen nice_values(uint64_t hurry_ms, uint64_t sleep_ms, uint64_t burn_ms)
{
	struct seen *seen = mmap(NULL, sizeof(*seen), PROT_READ | PROT_WRITE,
				 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct run run = { .path = "/proc/self/exe",
			   .sleep_ms = sleep_ms,
			   .burn_ms = burn_ms,
			   .seen = seen };
	struct pm_symbol_crew_calls calls = calls_of(&run);
	struct pm_symbol_crew_cost cost = { 0 };
	uint64_t address = 0;
	struct pm_symbol_job job = { .addresses = &address, .addresses_len = 1 };
	struct seen ret;

	assert_ptr_not_equal(seen, MAP_FAILED);
	calls.hurry_ns = hurry_ms * MS_NS;
	calls.hurry_nice = 5; /* which everybody may give */
	assert_int_equal(pm_symbol_crew_run(&job, 1, &calls, &cost), 0);
	pm_str_release(&run.names);
	ret = *seen;
	munmap(seen, sizeof(*seen));
	return ret;
}

/* Beside a hundred busy threads a helper gets a tenth of a second of CPU time in ten seconds. */
static void test_helpers_hurry_by_cpu_time(void **state)
{
	struct seen seen;

	(void)state;
	if (geteuid() != 0 || getpriority(PRIO_PROCESS, 0) != 0) {
		print_message("# SKIP needs root at nice 0\n");
		skip();
	}
	/* By the clock it is over. */
	seen = nice_values(300, 700, 0);
	assert_int_equal(seen.nice_before, 5);
	assert_int_equal(seen.nice_after, 5);
	/* By CPU time. */
	seen = nice_values(300, 0, 400);
	assert_int_equal(seen.nice_after, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_early_helper_says_the_same),
		cmocka_unit_test(test_early_helper_with_more_addresses_than_a_pipe_takes),
		cmocka_unit_test(test_early_helper_of_a_small_file_ends),
		cmocka_unit_test(test_early_helper_that_nobody_asks),
		cmocka_unit_test(test_helpers_hurry_by_cpu_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
