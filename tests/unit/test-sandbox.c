/* SPDX-License-Identifier: MIT */
/* What the helper processes that read symbols may still do, and how they answer. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "pm/symbol-crew.h"
#include "src/symbol/sandbox.h"
#include "src/symbol/wire.h"
#include "tests/unit/sanitized.h"

#define MEMORY_BYTES ((uint64_t)64 << 20)

/* ---- the sandbox ---------------------------------------------------------------------- */

/* The wait status of a child that enters the sandbox and does @what. */
static int status_of(int (*what)(int fd))
{
	pid_t parent = getpid(), pid = fork();
	int status;

	assert_true(pid >= 0);
	if (pid == 0) {
		int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
		int kept[] = { fd };
		struct pm_sandbox sandbox = { .memory_bytes = MEMORY_BYTES,
					      .parent = parent };

		pm_sandbox_keep_files(kept, 1);
		if (pm_sandbox_enter(&sandbox) < 0)
			_exit(100);
		_exit(what(fd));
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

static int reads_what_it_had(int fd)
{
	char bytes[4];

	return pread(fd, bytes, sizeof(bytes), 0) == 4 && memcmp(bytes, "\177ELF", 4) == 0
		       ? 0
		       : 1;
}

static int opens_nothing(int fd)
{
	(void)fd;
	return open("/proc/self/exe", O_RDONLY | O_CLOEXEC) < 0 ? 0 : 1;
}

static int starts_nothing(int fd)
{
	(void)fd;
	return fork() < 0 ? 0 : 1;
}

static int has_little_memory(int fd)
{
	void *some, *much;

	(void)fd;
	some = mmap(NULL, MEMORY_BYTES / 4, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	much = mmap(NULL, 2 * MEMORY_BYTES, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	return some != MAP_FAILED && much == MAP_FAILED ? 0 : 1;
}

static int runs_for_ever(int fd)
{
	(void)fd;
	pm_sandbox_cpu_time(0);
	for (volatile unsigned int i = 1; i > 0; i += 2)
		;
	return 0;
}

/* Its parent runs as the same user where this is no root. */
static int leaves_others_alone(int fd)
{
	struct rlimit limit = { 1000, 1000 };

	(void)fd;
	errno = 0;
	if (syscall(SYS_tgkill, getppid(), getppid(), 0) == 0 || errno != EPERM)
		return 1;
	errno = 0;
	if (syscall(SYS_prlimit64, getppid(), RLIMIT_NOFILE, NULL, &limit) == 0 ||
	    errno != EPERM)
		return 2;
	if (syscall(SYS_tgkill, getpid(), gettid(), 0) != 0 ||
	    syscall(SYS_prlimit64, 0, RLIMIT_NOFILE, NULL, &limit) != 0 ||
	    syscall(SYS_prlimit64, getpid(), RLIMIT_NOFILE, NULL, &limit) != 0)
		return 3;
	return 0;
}

static int gets_no_more_time(int fd)
{
	(void)fd;
	pm_sandbox_cpu_time_of_all(0);
	pm_sandbox_cpu_time(1000);
	for (volatile unsigned int i = 1; i > 0; i += 2)
		;
	return 0;
}

static void test_what_is_left(void **state)
{
	assert_int_equal(status_of(reads_what_it_had), 0);
	/* A sanitizer's reports need files. */
	if (!PM_SANITIZED) {
		assert_int_equal(status_of(opens_nothing), 0);
		assert_int_equal(status_of(starts_nothing), 0);
		assert_int_equal(status_of(leaves_others_alone), 0);
		assert_int_equal(status_of(has_little_memory), 0);
	}
}

/* What the kernel says of a process in the sandbox, which waits for @hold's end. */
static void read_status(char *text, size_t size)
{
	pid_t parent = getpid(), pid;
	int hold[2], ready[2];
	char path[64], byte;
	ssize_t len;
	int fd;

	assert_int_equal(pipe(hold), 0);
	assert_int_equal(pipe(ready), 0);
	pid = fork();
	if (pid == 0) {
		int kept[] = { ready[1], hold[0] };
		struct pm_sandbox sandbox = { .memory_bytes = MEMORY_BYTES,
					      .parent = parent };

		pm_sandbox_keep_files(kept, 2);
		if (pm_sandbox_enter(&sandbox) < 0 || write(ready[1], "r", 1) != 1 ||
		    read(hold[0], &byte, 1) != 0)
			_exit(1);
		_exit(0);
	}
	close(hold[0]);
	close(ready[1]);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	len = read(fd, text, size - 1);
	assert_true(len > 0);
	text[len] = '\0';
	close(fd);
	close(hold[1]);
	close(ready[0]);
	assert_int_equal(waitpid(pid, &fd, 0), pid);
	assert_int_equal(fd, 0);
}

static void test_rights_are_gone(void **state)
{
	char text[8192];

	read_status(text, sizeof(text));
	assert_non_null(strstr(text, "\nCapEff:\t0000000000000000\n"));
	assert_non_null(strstr(text, "\nCapPrm:\t0000000000000000\n"));
	assert_non_null(strstr(text, "\nNoNewPrivs:\t1\n"));
	if (!PM_SANITIZED)
		assert_non_null(strstr(text, "\nSeccomp:\t2\n"));
}

static void test_root_becomes_nobody(void **state)
{
	char text[8192];

	if (geteuid() != 0) {
		print_message("skip: needs root\n");
		skip();
	}
	read_status(text, sizeof(text));
	assert_non_null(strstr(text, "\nUid:\t65534\t65534\t65534\t65534\n"));
	assert_non_null(strstr(text, "\nGid:\t65534\t65534\t65534\t65534\n"));
	assert_non_null(strstr(text, "\nGroups:\t \n"));
}

static void test_time_ends(void **state)
{
	int status = status_of(runs_for_ever);

	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGXCPU);
	/* At a hard limit the kernel kills. */
	status = status_of(gets_no_more_time);
	assert_true(WIFSIGNALED(status));
	assert_true(WTERMSIG(status) == SIGXCPU || WTERMSIG(status) == SIGKILL);
}

static void test_only_for_a_child(void **state)
{
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		struct pm_sandbox sandbox = { .memory_bytes = MEMORY_BYTES, .parent = 1 };

		/* Whose parent has gone already is not to stay. */
		_exit(getppid() == 1 || pm_sandbox_enter(&sandbox) == -ESRCH ? 0 : 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

/* ---- messages ------------------------------------------------------------------------- */

static void test_messages_come_back(void **state)
{
	static const struct pm_symbol_function functions[] = {
		{ .name = "inner", .file = "/src/a.c", .line = 7 },
		{ .name = NULL, .file = "", .line = 0 },
		{ .name = NULL, .file = NULL, .line = UINT32_MAX, .start = 0x123456789a },
	};
	struct pm_str bytes = { 0 };
	struct pm_symbol_wire_message *message = malloc(sizeof(*message));
	size_t taken, at;

	assert_non_null(message);
	pm_symbol_wire_put_symbol(&bytes, 41, functions, 3);
	pm_symbol_wire_put_done(&bytes, -ENOEXEC);
	assert_false(bytes.failed);
	assert_int_equal(pm_symbol_wire_next(bytes.data, bytes.len, message, &taken), 1);
	assert_int_equal(message->kind, PM_SYMBOL_WIRE_SYMBOL);
	assert_int_equal(message->index, 41);
	assert_int_equal(message->functions_len, 3);
	assert_string_equal(message->functions[0].name, "inner");
	assert_string_equal(message->functions[0].file, "/src/a.c");
	assert_int_equal(message->functions[0].line, 7);
	assert_null(message->functions[1].name);
	assert_string_equal(message->functions[1].file, "");
	assert_int_equal(message->functions[1].start, 0);
	assert_null(message->functions[2].name);
	assert_null(message->functions[2].file);
	assert_int_equal(message->functions[2].start, 0x123456789a);
	assert_int_equal(message->functions[2].line, UINT32_MAX);
	at = taken;
	assert_int_equal(
		pm_symbol_wire_next(bytes.data + at, bytes.len - at, message, &taken), 1);
	assert_int_equal(message->kind, PM_SYMBOL_WIRE_DONE);
	assert_int_equal(message->code, -ENOEXEC);
	assert_int_equal(at + taken, bytes.len);
	/* Cut anywhere, it is not there yet. */
	for (size_t len = 0; len < at; len++)
		assert_int_equal(pm_symbol_wire_next(bytes.data, len, message, &taken),
				 0);
	free(message);
	pm_str_release(&bytes);
}

/* Each byte changed to each value: an answer or an error, and nothing outside is read. */
static void test_nonsense(void **state)
{
	static const struct pm_symbol_function function = { .name = "f",
							    .file = "g",
							    .start = 1 };
	struct pm_symbol_wire_message *message = malloc(sizeof(*message));
	struct pm_str bytes = { 0 };
	size_t taken, refused = 0;

	pm_symbol_wire_put_symbol(&bytes, 0, &function, 1);
	assert_true(message && !bytes.failed);
	for (size_t i = 0; i < bytes.len; i++) {
		for (int value = 0; value < 256; value++) {
			uint8_t *copy = malloc(bytes.len);
			int code;

			memcpy(copy, bytes.data, bytes.len);
			copy[i] = (uint8_t)value;
			code = pm_symbol_wire_next(copy, bytes.len, message, &taken);
			assert_true(code == 0 || code == 1 || code == -EBADMSG);
			assert_true(code != 1 || taken <= bytes.len);
			refused += code == -EBADMSG;
			free(copy);
		}
	}
	assert_true(refused > 1000);
	free(message);
	pm_str_release(&bytes);
}

/* A chain of names that no message has room for keeps what fits. */
static void test_long_names(void **state)
{
	struct pm_symbol_function functions[PM_SYMBOL_WIRE_FUNCTIONS_MAX];
	struct pm_symbol_wire_message *message = malloc(sizeof(*message));
	char *name = malloc(65536);
	struct pm_str bytes = { 0 };
	size_t taken;

	assert_true(message && name);
	memset(name, 'n', 65535);
	name[65535] = '\0';
	for (size_t i = 0; i < PM_ARRAY_LEN(functions); i++)
		functions[i] = (struct pm_symbol_function){ .name = name };
	pm_symbol_wire_put_symbol(&bytes, 1, functions, PM_ARRAY_LEN(functions));
	assert_true(bytes.len <= PM_SYMBOL_WIRE_BYTES_MAX + 4);
	assert_int_equal(pm_symbol_wire_next(bytes.data, bytes.len, message, &taken), 1);
	assert_int_equal(taken, bytes.len);
	assert_in_range(message->functions_len, 60, 64);
	free(message);
	free(name);
	pm_str_release(&bytes);
}

/* ---- the crew -------------------------------------------------------------------------- */

enum {
	JOBS = 6,
	HUNG = 3,
};

struct seen {
	int silent[2]; /* a pipe that nobody writes to */
	size_t done;
	char why[JOBS][160];
};

/* As a file system whose server has stopped. */
static void open_job(void *user, size_t job, struct pm_symbol_input *ret)
{
	struct seen *seen = user;
	char byte;

	if (job == HUNG)
		(void)!read(seen->silent[0], &byte, 1);
	ret->fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	ret->no_search = true;
}

static int on_symbol(void *user, size_t job, size_t index,
		     const struct pm_symbol_function *functions, size_t len)
{
	return 0;
}

static int on_done(void *user, size_t job, const char *what, const char *why)
{
	struct seen *seen = user;

	assert_int_equal(job, seen->done);
	seen->done++;
	snprintf(seen->why[job], sizeof(seen->why[job]), "%s", why ? why : "");
	return 0;
}

static int on_tick(void *user)
{
	return 0;
}

/* All jobs are of one helper, which opens all files before it reads any. */
static void test_a_file_that_hangs_costs_only_itself(void **state)
{
	const uint64_t address = 0x1000;
	struct pm_symbol_job jobs[JOBS];
	struct seen seen = { .done = 0 };
	struct pm_symbol_crew_calls calls = { .user = &seen,
					      .open = open_job,
					      .symbol = on_symbol,
					      .done = on_done,
					      .tick = on_tick,
					      .wake_fd = -1,
					      .process_name = "test",
					      .wait_ns = 300000000 };
	struct pm_symbol_crew_cost cost = { 0 };

	for (size_t i = 0; i < JOBS; i++)
		jobs[i] = (struct pm_symbol_job){ .addresses = &address,
						  .addresses_len = 1 };
	assert_int_equal(pipe(seen.silent), 0);
	assert_int_equal(pm_symbol_crew_run(jobs, JOBS, &calls, &cost), 0);
	assert_int_equal(seen.done, JOBS);
	for (size_t i = 0; i < JOBS; i++)
		assert_string_equal(seen.why[i],
				    i == HUNG ? "the file system that it is on does not "
						"answer"
					      : "");
	assert_int_equal(cost.processes, 2);
	close(seen.silent[0]);
	close(seen.silent[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_is_left),
		cmocka_unit_test(test_rights_are_gone),
		cmocka_unit_test(test_root_becomes_nobody),
		cmocka_unit_test(test_time_ends),
		cmocka_unit_test(test_only_for_a_child),
		cmocka_unit_test(test_messages_come_back),
		cmocka_unit_test(test_nonsense),
		cmocka_unit_test(test_long_names),
		cmocka_unit_test(test_a_file_that_hangs_costs_only_itself),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
