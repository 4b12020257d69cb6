/* SPDX-License-Identifier: MIT */
/* Programs whose calls are known, counted by breakpoints; and that they do not notice. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "pm/count.h"

#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#include "src/count/engine-ptrace.h"

enum {
	NOBODY = 65534,
	EVENTS = 2, /* of which the last is elapsed time */
};

static char program[PATH_MAX], library[PATH_MAX], denier[PATH_MAX], self[PATH_MAX];

static enum pm_ptr_kind kind;

/* One run and what came of it. */
struct run {
	struct pm_regions regions;
	struct pm_event_specs specs;
	struct pm_stat stat;
	struct pm_child child;
	struct pm_error err;
	char output[256]; /* of the program */
	int ret;
};

static void find(struct run *run, const char *const *names, pid_t pid)
{
	struct pm_probe_context context = { .command = pid ? NULL : program,
					    .pids = &pid,
					    .pids_len = pid != 0 };
	struct pm_region_spec specs[4];
	size_t len = 0;

	for (; names[len]; len++)
		specs[len] = (struct pm_region_spec){ .text = names[len] };
	if (pm_regions_find(&run->regions, specs, len, &context, &run->err) < 0)
		fail_msg("%s", run->err.text);
}

static void describe(struct run *run)
{
	assert_int_equal(pm_event_specs_parse("task-clock:u", &run->specs, &run->err), 0);
	for (size_t i = 0; i < EVENTS; i++) {
		struct pm_stat_event event = {
			.name = strdup(i ? "wall-time" : "task-clock"),
			.source = strdup(i ? "tool" : "software")
		};

		assert_int_equal(pm_vec_push(&run->stat.events, event), 0);
	}
}

static void count_with(struct run *run, struct pm_engine_options *options)
{
	int out = dup(STDOUT_FILENO), to = memfd_create("output", MFD_CLOEXEC);
	sigset_t none;
	ssize_t len;

	assert_true(out >= 0 && to >= 0);
	/* Those of the run before are still blocked. */
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	run->child = (struct pm_child)PM_CHILD_INIT;
	describe(run);
	options->specs = run->specs.list.data;
	options->specs_len = run->specs.list.len;
	options->regions = &run->regions;
	fflush(stdout);
	dup2(to, STDOUT_FILENO);
	run->ret = pm_ptr_run(&run->stat, options, kind, &run->child, &run->err);
	dup2(out, STDOUT_FILENO);
	len = pread(to, run->output, sizeof(run->output) - 1, 0);
	run->output[len > 0 ? len : 0] = '\0';
	close(to);
	close(out);
}

static void count(struct run *run, const char *mode, const char *const *names)
{
	char *command[] = { program, strdup(mode), library, NULL };

	*run = (struct run){ 0 };
	find(run, names, 0);
	count_with(run, &(struct pm_engine_options){ .command = command });
	free(command[1]);
	if (run->ret < 0)
		fail_msg("%s", run->err.text);
}

static void release(struct run *run)
{
	pm_stat_release(&run->stat);
	pm_regions_release(&run->regions);
	pm_event_specs_release(&run->specs);
	pm_child_release(&run->child);
}

static const struct pm_stat_scope *scope(const struct run *run, const char *name)
{
	for (size_t i = 0; i < run->stat.scopes.len; i++)
		if (strcmp(run->stat.scopes.data[i].name, name) == 0)
			return &run->stat.scopes.data[i];
	fail_msg("no scope %s", name);
	return NULL;
}

#define COUNT(run, mode, ...) count(run, mode, (const char *const[]){ __VA_ARGS__, NULL })

/* How many there are but that of times which are not known: that depends on how long they are. */
static size_t count_warnings(const struct run *run)
{
	size_t len = 0;

	for (size_t i = 0; i < run->stat.warnings.len; i++)
		len += !strstr(run->stat.warnings.data[i], " took is not known: ");
	return len;
}

static void check(const char *mode, const char *name, uint64_t calls, uint64_t unfinished,
		  int exit_code)
{
	struct run run;

	COUNT(&run, mode, name);
	assert_int_equal(count_warnings(&run), 0);
	assert_int_equal(scope(&run, name)->calls, calls);
	assert_int_equal(scope(&run, name)->unfinished, unfinished);
	assert_int_equal(run.stat.runs.data[0].exit_code, exit_code);
	assert_int_equal(pm_exit_status(run.child.status), exit_code);
	release(&run);
}

/* ---- lives of processes ----------------------------------------------------------------- */

static void test_calls(void **state)
{
	check("plain", "leaf", 20, 0, 7);
}

static void test_threads(void **state)
{
	check("threads", "leaf", 10000, 0, 0);
}

static void test_fork(void **state)
{
	check("fork", "leaf", 250, 0, 3);
}

static void test_vfork(void **state)
{
	check("vfork", "leaf", 28, 0, 7);
}

static void test_exec(void **state)
{
	check("exec", "leaf", 30, 0, 7);
	check("exec-thread", "leaf", 30, 0, 7);
}

/* The same by the processor's breakpoints, where they are used. */
static void test_hits(void **state)
{
	if (PM_PTR_HW_MAX == 0) {
		print_message("# SKIP: this processor's breakpoints are not used\n");
		skip();
	}
	kind = PM_PTR_HITS;
	check("plain", "leaf", 20, 0, 7);
	check("threads", "leaf", 10000, 0, 0);
	check("fork", "leaf", 250, 0, 3);
	check("vfork", "leaf", 28, 0, 7);
	check("exec", "leaf", 30, 0, 7);
	check("exec-thread", "leaf", 30, 0, 7);
	check("recursion", "recurse", 101, 0, 1);
	check("fault", "touch", 20, 10, 0);
	kind = PM_PTR_CHOOSE;
}

/* Which breakpoints there are is told; stops can be had always. */
static void test_kinds(void **state)
{
	struct run run;

	kind = PM_PTR_STOPS;
	COUNT(&run, "plain", "leaf");
	kind = PM_PTR_CHOOSE;
	assert_int_equal(run.stat.settings.len, 1);
	assert_string_equal(run.stat.settings.data[0].name, "breakpoints");
#if defined(__x86_64__)
	assert_string_equal(run.stat.settings.data[0].value, "int3");
#else
	assert_string_equal(run.stat.settings.data[0].value, "brk");
#endif
	release(&run);
}

/* Slots are in pages of their own, when there is no other room; not two of them are one. */
static void test_many_functions(void **state)
{
	struct run run;

	COUNT(&run, "all", "many_*");
	assert_int_equal(count_warnings(&run), 0);
	assert_int_equal(run.stat.scopes.len, 128);
	for (size_t i = 0; i < run.stat.scopes.len; i++)
		assert_int_equal(run.stat.scopes.data[i].calls, 1);
	assert_int_equal(run.stat.runs.data[0].exit_code, 4);
	release(&run);
}

static void test_no_inherit(void **state)
{
	char *command[] = { program, strdup("fork"), NULL };
	struct run run = { 0 };

	find(&run, (const char *const[]){ "leaf", NULL }, 0);
	count_with(&run,
		   &(struct pm_engine_options){ .command = command, .no_inherit = true });
	free(command[1]);
	assert_int_equal(run.ret, 0);
	assert_int_equal(scope(&run, "leaf")->calls, 200);
	assert_int_equal(run.stat.runs.data[0].exit_code, 3);
	release(&run);
}

static void test_recursion(void **state)
{
	struct run run;

	COUNT(&run, "recursion", "recurse");
	assert_int_equal(scope(&run, "recurse")->calls, 101);
	assert_int_equal(scope(&run, "recurse")->nested, 100);
	assert_int_equal(scope(&run, "recurse")->max_depth, 101);
	assert_int_equal(run.stat.runs.data[0].exit_code, 1);
	release(&run);
}

static void test_dlopen(void **state)
{
	char name[PATH_MAX + 16];
	struct run run;

	snprintf(name, sizeof(name), "from_library@%s", library);
	COUNT(&run, "dlopen", name);
	assert_int_equal(run.stat.scopes.data[0].calls, 33);
	assert_int_equal(run.stat.runs.data[0].exit_code, 0);
	release(&run);
}

/* ---- signals ---------------------------------------------------------------------------- */

static void test_signals(void **state)
{
	struct run run;
	int turns = 0, handled = 0;

	COUNT(&run, "signals", "leaf", "pushes", "odd");
	assert_int_equal(sscanf(run.output, "%d %d", &turns, &handled), 2);
	assert_int_equal(scope(&run, "pushes")->calls, turns);
	assert_int_equal(scope(&run, "pushes")->unfinished, 0);
	assert_int_equal(scope(&run, "odd")->calls, turns);
	assert_int_equal(scope(&run, "odd")->unfinished, 0);
	assert_int_equal(scope(&run, "leaf")->calls, turns * 3 + handled);
	release(&run);
}

static void test_own_traps(void **state)
{
	struct run run;

	COUNT(&run, "trap", "leaf", "pushes");
	assert_string_equal(run.output, "40\n");
	assert_int_equal(scope(&run, "pushes")->calls, 20);
	assert_int_equal(run.stat.runs.data[0].exit_code, 0);
	release(&run);
}

/* That such signals are blocked is known to us no more than to the program. */
static void test_blocked_traps(void **state)
{
	struct run run;

	kind = PM_PTR_STOPS;
	COUNT(&run, "blocks", "pushes");
	kind = PM_PTR_CHOOSE;
	assert_string_equal(run.output, "20\n");
	assert_int_equal(scope(&run, "pushes")->calls, 20);
	assert_int_equal(run.stat.runs.data[0].exit_code, 0);
	assert_int_equal(count_warnings(&run), 1);
	assert_non_null(strstr(run.stat.warnings.data[0], "SIGTRAP"));
	release(&run);
}

/* A fault in the instruction that runs elsewhere is seen where it belongs; one that is mended
 * and tried again is one call, one that longjmp leaves is one each time. */
static void test_faults(void **state)
{
	struct run run;

	COUNT(&run, "fault", "touch");
	assert_string_equal(run.output, "20\n");
	assert_int_equal(scope(&run, "touch")->calls, 20);
	assert_int_equal(scope(&run, "touch")->unfinished, 10);
	assert_int_equal(run.stat.runs.data[0].exit_code, 0);
	release(&run);
}

static void test_crash(void **state)
{
	struct run run;

	COUNT(&run, "crash", "touch", "leaf");
	assert_int_equal(scope(&run, "touch")->calls, 1);
	assert_int_equal(scope(&run, "touch")->unfinished, 1);
	assert_int_equal(scope(&run, "leaf")->calls, 3);
	assert_int_equal(run.stat.runs.data[0].signal, SIGSEGV);
	release(&run);
}

/* Somebody wants an end: the command gets it, and what was counted is told. */
static void test_interrupt(void **state)
{
	struct run run;

	COUNT(&run, "asks", "pushes");
	assert_true(run.stat.runs.data[0].stopped);
	assert_int_equal(scope(&run, "pushes")->calls, 10);
	assert_int_equal(run.stat.runs.data[0].signal, SIGTERM);
	release(&run);
}

/* It stops and goes on as its user wants. */
static void test_job_control(void **state)
{
	struct run run = { 0 };
	char *command[] = { program, strdup("stops"), NULL };

	find(&run, (const char *const[]){ "leaf", NULL }, 0);
	count_with(&run, &(struct pm_engine_options){ .command = command });
	free(command[1]);
	assert_int_equal(run.ret, 0);
	assert_int_equal(scope(&run, "leaf")->calls, 15);
	assert_int_equal(run.stat.runs.data[0].exit_code, 6);
	release(&run);
}

/* ---- displaced instructions ------------------------------------------------------------- */

static void test_odd_instructions(void **state)
{
	struct run run;

	COUNT(&run, "odd", "odd");
	assert_string_equal(run.output, "92\n");
	assert_int_equal(scope(&run, "odd")->calls, 10);
	release(&run);
}

#if defined(__x86_64__)
/* Runs one instruction, and what it leads to, in a slot: rax, of which each way has its own. */
static uint64_t run_displaced(const char *bytes, uint8_t len, uint64_t rdi)
{
	uint8_t *code = mmap(NULL, 8192, PROT_READ | PROT_WRITE | PROT_EXEC,
			     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint64_t address = (uint64_t)(uintptr_t)code + 64;
	uint8_t *slot = code + 4096;
	struct pm_ptr_code made;
	uint64_t ret;

	assert_ptr_not_equal(code, MAP_FAILED);
	assert_int_equal(pm_ptr_slot_make_x86((const uint8_t *)bytes, len, address,
					      (uint64_t)(uintptr_t)slot, &made),
			 0);
	memcpy(slot, made.bytes, made.len);
	/* mov $1,%eax; ret behind it; mov $2,%eax; ret 32 bytes further. */
	memcpy(code + 64 + len, "\xb8\x01\0\0\0\xc3", 6);
	memcpy(code + 64 + len + 32, "\xb8\x02\0\0\0\xc3", 6);
	memcpy(code + 64 + len + 100, "\x11\x22\x33\x44\0\0\0\0", 8);
	__asm__ volatile("xor %%ecx,%%ecx\n\t"
			 "test %%rdi,%%rdi\n\t"
			 "call *%[slot]"
			 : "=a"(ret), "+D"(rdi)
			 : [slot] "r"(slot)
			 : "rcx", "rdx", "memory", "cc");
	munmap(code, 8192);
	return rdi << 32 | ret;
}

static void test_slots(void **state)
{
	/* je, both ways; with 32 bits, too. */
	assert_int_equal(run_displaced("\x74\x20", 2, 0), 2);
	assert_int_equal(run_displaced("\x74\x20", 2, 5), UINT64_C(5) << 32 | 1);
	assert_int_equal(run_displaced("\x0f\x85\x20\0\0\0", 6, 7),
			 UINT64_C(7) << 32 | 2);
	assert_int_equal(run_displaced("\xeb\x20", 2, 0), 2);
	assert_int_equal(run_displaced("\xe9\x20\0\0\0", 5, 0), 2);
	/* jrcxz, taken. */
	assert_int_equal(run_displaced("\xe3\x20", 2, 0), 2);
	/* call: it returns behind the place. */
	assert_int_equal(run_displaced("\xe8\x20\0\0\0", 5, 0), 1);
	/* mov 100(%rip),%edi; lea; with an immediate behind: cmpl. */
	assert_int_equal(run_displaced("\x8b\x3d\x64\0\0\0", 6, 0),
			 UINT64_C(0x44332211) << 32 | 1);
	assert_int_equal(run_displaced("\xc7\x05\x64\0\0\0\x09\0\0\0", 10, 3),
			 UINT64_C(3) << 32 | 1);
	/* nop, endbr64. */
	assert_int_equal(run_displaced("\x90", 1, 0), 1);
	assert_int_equal(run_displaced("\xf3\x0f\x1e\xfa", 4, 0), 1);
}

static void test_slots_refuse(void **state)
{
	struct pm_ptr_code made = { .len = 77 };
	const uint8_t lea[] = { 0x8d, 0x05, 0, 0, 0, 0 };

	/* Out of reach, cut short, a transaction, nothing at all. */
	assert_int_equal(pm_ptr_slot_make_x86(lea, 6, 0x1000, UINT64_C(1) << 40, &made),
			 -EOPNOTSUPP);
	assert_int_equal(pm_ptr_slot_make_x86(lea, 4, 0x1000, 0x2000, &made),
			 -EOPNOTSUPP);
	assert_int_equal(pm_ptr_slot_make_x86((const uint8_t *)"\xc7\xf8\0\0\0\0", 6,
					      0x1000, 0x2000, &made),
			 -EOPNOTSUPP);
	assert_int_equal(pm_ptr_slot_make_x86(lea, 0, 0x1000, 0x2000, &made),
			 -EOPNOTSUPP);
	assert_int_equal(pm_ptr_slot_make_x86((const uint8_t *)"\x66\x66", 2, 0x1000,
					      0x2000, &made),
			 -EOPNOTSUPP);
	assert_int_equal(made.len, 77);
	/* Any bytes. */
	for (uint32_t seed = 1, i = 0; i < 200000; i++) {
		uint8_t bytes[PM_PTR_INSN_MAX];

		for (size_t j = 0; j < sizeof(bytes); j++)
			bytes[j] = (uint8_t)((seed = seed * 1664525 + 1013904223) >> 24);
		pm_ptr_slot_make_x86(bytes, (uint8_t)(1 + i % sizeof(bytes)), 0x400000,
				     0x500000, &made);
	}
}
#endif

/* ---- what it costs ---------------------------------------------------------------------- */

static void test_costs(void **state)
{
	struct run run;

	COUNT(&run, "plain", "leaf");
	assert_true(run.stat.overhead_subtracted);
	/* Two stops take some time. */
	assert_int_equal(run.stat.overhead[EVENTS - 1].state, PM_STAT_OK);
	assert_true(run.stat.overhead[EVENTS - 1].value > 200);
	/* It is hardly more than nothing, or not even told apart from that. */
	for (size_t i = 0; i < EVENTS; i++) {
		const struct pm_stat_value *value = &scope(&run, "leaf")->values[i];

		assert_true(value->state == PM_STAT_NOT_KNOWN ||
			    (value->state == PM_STAT_OK && value->value > 0));
	}
	assert_int_equal(run.stat.runs.data[0].values[0].state, PM_STAT_OK);
	assert_true(run.stat.runs.data[0].values[0].value > 0);
	release(&run);
}

/* ---- callers ---------------------------------------------------------------------------- */

static void count_callers(struct run *run, const char *mode, const char *name,
			  uint32_t depth)
{
	char *command[] = { program, strdup(mode), NULL };

	*run = (struct run){ 0 };
	find(run, (const char *const[]){ name, NULL }, 0);
	count_with(run, &(struct pm_engine_options){ .command = command,
						     .calls_from = depth });
	free(command[1]);
	assert_int_equal(run->ret, 0);
}

/* How often "recurse" was called by @names, innermost first. */
static uint64_t called_by(const struct run *run, const char *const *names, size_t len)
{
	const struct pm_stat_scope *of = scope(run, "recurse");

	for (size_t i = 0; i < of->callers.len; i++) {
		const struct pm_stat_caller *caller = &of->callers.data[i];
		size_t same = 0;

		while (same < len && same < caller->frames.len &&
		       caller->frames.data[same].function &&
		       strcmp(caller->frames.data[same].function, names[same]) == 0)
			same++;
		if (same == len)
			return caller->calls;
	}
	return 0;
}

static void test_callers(void **state)
{
	static const char *const names[] = { "recurse", "recurse", "main" };
	struct run run;

	count_callers(&run, "recursion", "recurse", 1);
	assert_int_equal(called_by(&run, names, 1), 100);
	assert_int_equal(called_by(&run, names + 2, 1), 1);
	release(&run);
	count_callers(&run, "recursion", "recurse", 3);
	assert_int_equal(called_by(&run, names, 3), 1);
	assert_int_equal(called_by(&run, names + 1, 2), 1);
	assert_int_equal(count_warnings(&run), 0);
	release(&run);
}

/* One thread's stack is read while others stop. */
static void test_callers_of_threads(void **state)
{
	struct run run;

	count_callers(&run, "threads", "thread", 1);
	assert_int_equal(count_warnings(&run), 0);
	release(&run);
	count_callers(&run, "threads", "thread", 2);
	assert_int_equal(count_warnings(&run), 1);
	assert_non_null(strstr(run.stat.warnings.data[0], "contains their wait"));
	release(&run);
}

/* ---- who runs already ------------------------------------------------------------------- */

static pid_t start(const char *mode)
{
	int fds[2];
	char line[32];
	pid_t pid;

	assert_int_equal(pipe(fds), 0);
	pid = fork();
	if (pid == 0) {
		dup2(fds[1], STDOUT_FILENO);
		execl(program, program, mode, NULL);
		_exit(99);
	}
	close(fds[1]);
	assert_true(read(fds[0], line, sizeof(line)) > 0);
	close(fds[0]);
	return pid;
}

/* Its code is as in the file. */
static void check_code(pid_t pid, const struct pm_regions *regions)
{
	struct pm_procs *procs = pm_procs_new(NULL);
	const struct pm_process *process;
	size_t seen = 0;

	assert_int_equal(pm_procs_read(procs, pid, NULL), 0);
	process = pm_procs_get(procs, pid);
	for (size_t i = 0; i < process->space.maps.len; i++) {
		const struct pm_mapping *map = &process->space.maps.data[i];

		if (!strstr(pm_procs_module(procs, map->module)->identity.path,
			    "count-life"))
			continue;
		for (size_t j = 0; j < regions->places.len; j++) {
			const struct pm_place *place = &regions->places.data[j];
			uint8_t bytes[16];

			assert_int_equal(
				pm_trace_read(pid,
					      map->start + place->offset - map->pgoff,
					      bytes, place->len),
				place->len);
			assert_memory_equal(bytes, place->bytes, place->len);
			seen++;
		}
	}
	assert_int_equal(seen, regions->places.len);
	pm_procs_free(procs);
}

/* Looks at it for so long. */
static void count_attached(struct run *run, pid_t pid, const char *const *names,
			   uint64_t ns)
{
	struct pm_targets_request request = { 0 };
	struct pm_targets targets;

	pm_targets_init(&targets);
	assert_int_equal(pm_vec_push(&request.pids.list, pid), 0);
	assert_int_equal(pm_targets_find(&targets, &request, &run->err), 0);
	find(run, names, pid);
	count_with(run,
		   &(struct pm_engine_options){ .targets = &targets, .timeout_ns = ns });
	pm_targets_release(&targets);
	pm_targets_request_release(&request);
	if (run->ret < 0)
		fail_msg("%s", run->err.text);
}

/* For a moment; for a longer one where the machine does something else meanwhile. In the first
 * call that is seen of leaf() it may be in the middle of pushes(), and at the end as well. */
static void test_attach(void **state)
{
	pid_t pid = start("long");
	uint64_t seen = 0;
	int status;

	for (uint64_t ns = 100000000; seen == 0; ns *= 2) {
		struct run run = { 0 };

		assert_true(ns < UINT64_C(60000000000));
		count_attached(&run, pid, (const char *const[]){ "leaf", "pushes", NULL },
			       ns);
		seen = scope(&run, "pushes")->calls;
		assert_in_range(scope(&run, "leaf")->calls,
				(seen - scope(&run, "pushes")->unfinished) * 2,
				(seen + 1) * 2);
		assert_true(run.stat.runs.data[0].stopped);
		assert_false(run.stat.runs.data[0].exited);
		check_code(pid, &run.regions);
		release(&run);
	}
	/* It lives, and nobody traces it. */
	nanosleep(&(struct timespec){ .tv_nsec = 20000000 }, NULL);
	assert_int_equal(waitpid(pid, &status, WNOHANG), 0);
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(WTERMSIG(status), SIGKILL);
}

/* The number of the system call that it waits in. */
static long waits_in(pid_t pid)
{
	char path[64], text[64] = "", *end;

	snprintf(path, sizeof(path), "/proc/%d/syscall", (int)pid);
	for (;;) {
		FILE *file = fopen(path, "re");
		long number;

		assert_non_null(file);
		if (!fgets(text, sizeof(text), file))
			text[0] = '\0';
		fclose(file);
		number = strtol(text, &end, 10);
		if (end > text && number >= 0)
			return number;
		nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
	}
}

/* Who waits maps a page for us, and waits for what is left of his time. */
static void test_map_of_who_waits(void **state)
{
	const uint64_t address = 0x10000000;
	pid_t pid = start("sleeps");
	uint8_t byte = 1;

	while (waits_in(pid) != SYS_clock_nanosleep)
		;
	assert_int_equal(ptrace(PTRACE_SEIZE, pid, NULL, NULL), 0);
	assert_int_equal(ptrace(PTRACE_INTERRUPT, pid, NULL, NULL), 0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_int_equal(pm_ptr_map(pid, address, 65536), 0);
	assert_int_equal(pm_ptr_map(pid, address, 65536), -EEXIST);
	assert_int_equal(pm_trace_read(pid, address + 65535, &byte, 1), 1);
	assert_int_equal(byte, 0);
	assert_int_equal(ptrace(PTRACE_DETACH, pid, NULL, NULL), 0);
	/* Until it runs, the call that was interrupted is still to be seen. */
	for (int i = 0; waits_in(pid) != SYS_restart_syscall; i++) {
		assert_true(i < 10000);
		nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
	}
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

/* ---- without rights --------------------------------------------------------------------- */

/* This program anew, with one thing to do; its exit status. */
static int run_self(const char *word, char *through, bool nobody)
{
	char code[] = "13";
	PM_AUTO_FREE char *what = strdup(word);
	char *words[] = { through, code, self, what, NULL };
	char **argv = through ? words : words + 2;
	int status = 0;
	pid_t pid = fork();

	if (pid == 0) {
		if (nobody && (setgid(NOBODY) < 0 || setuid(NOBODY) < 0))
			_exit(3);
		if (access(self, X_OK) < 0 || access(program, X_OK) < 0)
			_exit(2);
		execv(argv[0], argv);
		_exit(99);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return pm_exit_status(status);
}

static int run_as_nobody(void)
{
	struct run run;
	int ok;

	COUNT(&run, "fork", "leaf");
	ok = scope(&run, "leaf")->calls == 250 && run.stat.runs.data[0].exit_code == 3;
	release(&run);
	return ok ? 0 : 1;
}

static void test_nobody(void **state)
{
	int status;

	if (geteuid() != 0) {
		print_message("# SKIP: only root can become nobody\n");
		skip();
	}
	status = run_self("nobody", NULL, true);
	if (status == 2) {
		print_message(
			"[  SKIPPED ] nobody may not run programs of this folder\n");
		skip();
	}
	assert_int_equal(status, 0);
}

/* Where perf_event_open(2) is forbidden: elapsed time, and CPU time by /proc. */
static int run_denied(void)
{
	struct run run;
	int ok;

	COUNT(&run, "threads", "leaf");
	ok = scope(&run, "leaf")->calls == 10000 &&
	     run.stat.runs.data[0].values[0].state == PM_STAT_OK &&
	     run.stat.runs.data[0].values[0].value > 0 &&
	     (scope(&run, "leaf")->values[EVENTS - 1].state == PM_STAT_OK ||
	      scope(&run, "leaf")->values[EVENTS - 1].state == PM_STAT_NOT_KNOWN);
	release(&run);
	return ok ? 0 : 1;
}

static void test_perf_denied(void **state)
{
	assert_int_equal(run_self("denied", denier, false), 0);
}

static void test_no_such_program(void **state)
{
	char name[] = "/nowhere/at-all";
	char *command[] = { name, NULL };
	struct run run = { 0 };

	find(&run, (const char *const[]){ "leaf", NULL }, 0);
	count_with(&run, &(struct pm_engine_options){ .command = command });
	assert_int_equal(run.ret, -ENOENT);
	assert_int_equal(run.stat.runs.len, 0);
	release(&run);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_calls),
		cmocka_unit_test(test_threads),
		cmocka_unit_test(test_fork),
		cmocka_unit_test(test_vfork),
		cmocka_unit_test(test_exec),
		cmocka_unit_test(test_hits),
		cmocka_unit_test(test_kinds),
		cmocka_unit_test(test_many_functions),
		cmocka_unit_test(test_no_inherit),
		cmocka_unit_test(test_recursion),
		cmocka_unit_test(test_dlopen),
		cmocka_unit_test(test_signals),
		cmocka_unit_test(test_own_traps),
		cmocka_unit_test(test_blocked_traps),
		cmocka_unit_test(test_faults),
		cmocka_unit_test(test_crash),
		cmocka_unit_test(test_interrupt),
		cmocka_unit_test(test_job_control),
		cmocka_unit_test(test_odd_instructions),
#if defined(__x86_64__)
		cmocka_unit_test(test_slots),
		cmocka_unit_test(test_slots_refuse),
#endif
		cmocka_unit_test(test_costs),
		cmocka_unit_test(test_callers),
		cmocka_unit_test(test_callers_of_threads),
		cmocka_unit_test(test_attach),
		cmocka_unit_test(test_map_of_who_waits),
		cmocka_unit_test(test_nobody),
		cmocka_unit_test(test_perf_denied),
		cmocka_unit_test(test_no_such_program),
	};
	const char *programs = getenv("PROGRAMS");

	if (!programs || readlink("/proc/self/exe", self, sizeof(self) - 1) < 0)
		return 99;
	snprintf(program, sizeof(program), "%s/count-life", programs);
	snprintf(library, sizeof(library), "%s/libcount-life.so", programs);
	snprintf(denier, sizeof(denier), "%s/deny-perf", programs);
	if (argc > 1)
		return strcmp(argv[1], "denied") == 0 ? run_denied() : run_as_nobody();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
