/* SPDX-License-Identifier: MIT */
/* Places in this very program, which a child of it comes by a known number of times. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/hw_breakpoint.h>
#include <linux/perf_event.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "pm/counters.h"
#include "src/perf/tracefs-mount.h"

enum {
	IN,
	OUT,
	CALLS = 300,
	THREADS = 3,
	FORKED_CALLS = 40,
	TOUCHED = 7, /* pages, on each CPU */
	MOVES = 6,
};

/* ---- what is looked at --------------------------------------------------------------- */

extern const char hits_in[], hits_out[];

/* The labels are places in a function whose body does not matter; the kernel does them itself,
 * without a page for copies, which would be a fault. */
__asm__(".text\n"
	".globl hits_visit, hits_in, hits_out\n"
	".hidden hits_visit, hits_in, hits_out\n"
	".type hits_visit, %function\n"
	"hits_visit:\n"
#ifdef __x86_64__
	"hits_in: nop\n"
	"call *%rdi\n"
	"nop\n"
	"hits_out: nop\n"
	"ret\n"
#else
	"stp x29, x30, [sp, -16]!\n"
	"hits_in: b 1f\n"
	"1: blr x0\n"
	"hits_out: nop\n"
	"ldp x29, x30, [sp], 16\n"
	"ret\n"
#endif
	".size hits_visit, . - hits_visit\n");
void hits_visit(void (*inside)(void)) __attribute__((visibility("hidden")));

static void nothing(void)
{
}

static void *many(void *unused)
{
	for (int i = 0; i < CALLS; i++)
		hits_visit(nothing);
	return NULL;
}

/* Where an address of this program is in its file. */
static uint64_t offset_of(const void *address)
{
	uint64_t at = (uintptr_t)address, low, high, offset;
	FILE *maps PM_AUTO_FCLOSE = fopen("/proc/self/maps", "re");
	char line[512];

	assert_non_null(maps);
	while (fgets(line, sizeof(line), maps))
		if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %*s %" SCNx64, &low, &high,
			   &offset) == 3 &&
		    at >= low && at < high)
			return at - low + offset;
	fail_msg("an address that is mapped nowhere");
	return 0;
}

/* ---- a child ------------------------------------------------------------------------- */

struct child {
	pid_t pid;
	int go;
};

static struct child start(void (*work)(void))
{
	struct child child;
	int go[2];

	assert_int_equal(pipe(go), 0);
	child.pid = fork();
	assert_true(child.pid >= 0);
	if (child.pid == 0) {
		char byte;

		close(go[1]);
		if (read(go[0], &byte, 1) == 1)
			work();
		_exit(0);
	}
	close(go[0]);
	child.go = go[1];
	return child;
}

static void let_go(struct child *child)
{
	assert_int_equal(write(child->go, "", 1), 1);
	close(child->go);
}

static void wait_for(const struct child *child)
{
	int status;

	assert_int_equal(waitpid(child->pid, &status, 0), child->pid);
	assert_int_equal(status, 0);
}

/* ---- looking ------------------------------------------------------------------------- */

static struct pm_event_spec software(const char *name, uint64_t config)
{
	struct pm_event_spec spec = { .kind = PM_EVENT_SOFTWARE,
				      .type = PERF_TYPE_SOFTWARE,
				      .config = config,
				      .user = true,
				      .kernel = true };

	snprintf(spec.name, sizeof(spec.name), "%s", name);
	snprintf(spec.requested, sizeof(spec.requested), "%s", name);
	return spec;
}

static struct pm_event_spec place_at(const void *address)
{
	return (struct pm_event_spec){ .name = "place",
				       .kind = PM_EVENT_UPROBE,
				       .path = "/proc/self/exe",
				       .config2 = offset_of(address),
				       .user = true,
				       .kernel = true };
}

static struct pm_hits *open_hits(struct pm_hits_options *options)
{
	struct pm_hits *hits = NULL;
	struct pm_error err;
	int r = pm_hits_open(&hits, options, &err);

	/* The last ones of breakpoints, where there are none or others have them. */
	if (r == -EPERM || r == -EACCES || r == -ENOENT || r == -EROFS || r == -ENODEV ||
	    r == -EOPNOTSUPP || r == -ENOSPC) {
		print_message("# SKIP: %s\n", err.text);
		skip();
	}
	if (r < 0)
		fail_msg("%s", err.text);
	return hits;
}

struct seen {
	uint64_t hits[2];
	uint64_t threads; /* that hit something */
	pid_t tids[64];
	struct pm_hit first, last;
	uint64_t records;
};

static void take(struct pm_hits *hits, bool final, struct seen *seen)
{
	enum pm_hits_what what;
	struct pm_record record;
	struct pm_error err;
	struct pm_hit hit;
	int r;

	pm_hits_begin(hits, final);
	while ((r = pm_hits_next(hits, &what, &hit, &record, &err)) == 1) {
		size_t i = 0;

		if (what == PM_HITS_RECORD) {
			seen->records++;
			continue;
		}
		assert_true(hit.place < 2);
		if (seen->hits[IN] + seen->hits[OUT] == 0)
			seen->first = hit;
		seen->last = hit;
		seen->hits[hit.place]++;
		while (i < seen->threads && seen->tids[i] != hit.tid)
			i++;
		assert_true(i < PM_ARRAY_LEN(seen->tids));
		seen->tids[i] = hit.tid;
		if (i == seen->threads)
			seen->threads++;
	}
	if (r < 0)
		fail_msg("%s", err.text);
}

static struct pm_hits_options options_for(const struct child *child,
					  const struct pm_event_spec *places,
					  const struct pm_event_spec *counters,
					  size_t counters_len)
{
	static const uint32_t classes[] = { IN, OUT };

	return (struct pm_hits_options){
		.counters = counters,
		.counters_len = counters_len,
		.places = places,
		.places_len = 2,
		.classes = classes,
		.target = PM_PERF_TASKS,
		.tids = &child->pid,
		.tids_len = 1,
	};
}

/* ---- tests --------------------------------------------------------------------------- */

static void only_many(void)
{
	many(NULL);
}

static void with_threads(void)
{
	pthread_t threads[THREADS];

	for (size_t i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, many, NULL);
	for (size_t i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	if (fork() == 0) {
		for (int i = 0; i < FORKED_CALLS; i++)
			hits_visit(nothing);
		_exit(0);
	}
	wait(NULL);
}

static void sees_threads_and_processes(void **state)
{
	struct pm_event_spec places[] = { place_at(hits_in), place_at(hits_out) };
	struct pm_event_spec counters[] = { software("task-clock",
						     PERF_COUNT_SW_TASK_CLOCK) };
	struct child child = start(with_threads);
	struct pm_hits_options options = options_for(&child, places, counters, 1);
	struct pm_hits *hits = open_hits(&options);
	struct pm_count_read total;
	struct seen seen = { 0 };
	uint64_t count;

	let_go(&child);
	wait_for(&child);
	if (pm_hits_finds_threads(hits)) {
		pm_hits_free(hits);
		print_message(
			"# SKIP: threads are handed counters at places from Linux 6.12 "
			"on\n");
		skip();
	}
	pm_hits_disable(hits);
	take(hits, true, &seen);
	assert_int_equal(pm_hits_totals(hits, &total), 0);
	assert_true(total.value >= seen.last.counts[0]);
	for (uint32_t class = IN; class <= OUT; class ++) {
		assert_int_equal(seen.hits[class], THREADS * CALLS + FORKED_CALLS);
		assert_int_equal(pm_hits_count(hits, class, &count), 0);
		assert_int_equal(count, THREADS * CALLS + FORKED_CALLS);
	}
	assert_int_equal(seen.threads, THREADS + 1);
	assert_int_equal(pm_hits_lost(hits), 0);
	assert_true(seen.records >= 2 * (THREADS + 1));
	pm_hits_free(hits);
}

/* A line for uprobe_events. False: there is no such file here. */
static bool command(const char *text)
{
	int tracefs = pm_tracefs_open_writable();
	int fd = tracefs < 0 ? -1 : openat(tracefs, "uprobe_events", O_WRONLY | O_APPEND);
	ssize_t written = fd < 0 ? 0 : write(fd, text, strlen(text));

	if (fd >= 0)
		close(fd);
	if (tracefs >= 0)
		close(tracefs);
	return written == (ssize_t)strlen(text);
}

/* A killed predecessor had our number, and its event our name. The first of all tests. */
static void takes_nothing_from_namesakes(void **state)
{
	struct pm_event_spec places[] = { place_at(hits_in), place_at(hits_out) };
	struct child child = start(only_many);
	struct pm_hits_options options = options_for(&child, places, NULL, 0);
	struct pm_hits *hits;
	struct seen seen = { 0 };
	struct stat namespace;
	char event[64], line[256];

	assert_int_equal(stat("/proc/self/ns/pid", &namespace), 0);
	snprintf(event, sizeof(event), "pmstat_%ju_%d/p0", (uintmax_t) namespace.st_ino,
		 (int)getpid());
	snprintf(line, sizeof(line), "p:%s /proc/self/exe:0x%" PRIx64 "\n", event,
		 offset_of(hits_out));
	if (!command(line))
		print_message("# no event can be left over here\n");
	hits = open_hits(&options);
	let_go(&child);
	wait_for(&child);
	take(hits, true, &seen);
	assert_int_equal(seen.hits[IN], CALLS);
	assert_int_equal(seen.hits[OUT], CALLS);
	pm_hits_free(hits);
	snprintf(line, sizeof(line), "-:%s\n", event);
	assert_false(command(line));
}

static char *fresh;

static void touch(void)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	cpu_set_t all, one;
	int cpu = -1;

	sched_getaffinity(0, sizeof(all), &all);
	for (size_t move = 0; move < MOVES; move++) {
		do
			cpu = (cpu + 1) % CPU_SETSIZE;
		while (!CPU_ISSET(cpu, &all));
		CPU_ZERO(&one);
		CPU_SET(cpu, &one);
		sched_setaffinity(0, sizeof(one), &one);
		for (size_t i = 0; i < TOUCHED; i++)
			fresh[(move * TOUCHED + i) * page] = 1;
	}
	sched_setaffinity(0, sizeof(all), &all);
}

/* Once for what the first pass alone has to fault in: code, stack, pages shared by fork. */
static void touch_twice(void)
{
	size_t bytes = (size_t)sysconf(_SC_PAGESIZE) * TOUCHED * MOVES;

	fresh = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		     0);
	madvise(fresh, bytes, MADV_NOHUGEPAGE);
	touch();
	madvise(fresh, bytes, MADV_DONTNEED);
	hits_visit(touch);
}

/* Each page on whatever CPU counts once, and each move is a switch. */
static void sums_over_cpus(void **state)
{
	struct pm_event_spec places[] = { place_at(hits_in), place_at(hits_out) };
	struct pm_event_spec counters[] = {
		software("cpu-migrations", PERF_COUNT_SW_CPU_MIGRATIONS),
		software("minor-faults", PERF_COUNT_SW_PAGE_FAULTS_MIN),
	};
	struct child child = start(touch_twice);
	struct pm_hits_options options = options_for(&child, places, counters, 2);
	struct pm_hits *hits = open_hits(&options);
	struct seen seen = { 0 };

	let_go(&child);
	wait_for(&child);
	take(hits, true, &seen);
	assert_int_equal(seen.hits[IN] + seen.hits[OUT], 2);
	assert_int_equal(seen.last.counts[1] - seen.first.counts[1], MOVES * TOUCHED);
	if (sysconf(_SC_NPROCESSORS_ONLN) > 1)
		assert_true(seen.last.counts[0] - seen.first.counts[0] >= MOVES - 1);
	assert_true(seen.last.sp == seen.first.sp && seen.first.sp != 0);
#ifdef __x86_64__
	assert_true(seen.last.flags & 2); /* always set, Intel SDM vol. 1, 3.4.3 */
#endif
	assert_true(seen.last.time > seen.first.time);
	assert_true(seen.last.enabled_ns > seen.first.enabled_ns);
	assert_int_equal(seen.last.enabled_ns, seen.last.running_ns);
	pm_hits_free(hits);
}

/* A ring of a page has room for some of 600 hits; the others are counted. */
static void counts_what_is_lost(void **state)
{
	struct pm_event_spec places[] = { place_at(hits_in), place_at(hits_out) };
	struct child child = start(only_many);
	struct pm_hits_options options = options_for(&child, places, NULL, 0);
	struct pm_hits *hits;
	struct seen seen = { 0 };
	uint64_t count;

	options.ring_pages = 1;
	hits = open_hits(&options);
	let_go(&child);
	wait_for(&child);
	pm_hits_disable(hits);
	take(hits, true, &seen);
	assert_true(pm_hits_lost(hits) > 0);
	assert_int_equal(seen.hits[IN] + seen.hits[OUT] + pm_hits_lost(hits), 2 * CALLS);
	assert_int_equal(pm_hits_lost(hits),
			 pm_hits_lost_of(hits, IN) + pm_hits_lost_of(hits, OUT));
	assert_int_equal(pm_hits_count(hits, IN, &count), 0);
	assert_int_equal(count, CALLS);
	assert_int_equal(pm_hits_count(hits, 7, &count), -ENOENT);
	pm_hits_free(hits);
}

static void gives_places_of_one_address(void **state)
{
	struct pm_event_spec places[] = { place_at(hits_in), place_at(hits_in) };
	struct child child = start(only_many);
	struct pm_hits_options options = options_for(&child, places, NULL, 0);
	struct pm_hits *hits = open_hits(&options);
	struct seen seen = { 0 };

	let_go(&child);
	wait_for(&child);
	take(hits, true, &seen);
	assert_int_equal(seen.hits[0], CALLS);
	assert_int_equal(seen.hits[1], CALLS);
	pm_hits_free(hits);
}

static void knows_what_cannot_be_counted(void **state)
{
	struct pm_event_spec places[] = { place_at(hits_in), place_at(hits_out) };
	/* A cache that no machine has, between two that all have. */
	struct pm_event_spec counters[] = {
		software("page-faults", PERF_COUNT_SW_PAGE_FAULTS),
		{ .requested = "r0",
		  .name = "r0",
		  .kind = PM_EVENT_RAW,
		  .type = 0x7ffffff0,
		  .user = true },
		software("task-clock", PERF_COUNT_SW_TASK_CLOCK),
	};
	struct child child = start(only_many);
	struct pm_hits_options options = options_for(&child, places, counters, 3);
	struct pm_hits *hits = open_hits(&options);
	const struct pm_counters_event *events;
	struct seen seen = { 0 };
	size_t len;

	let_go(&child);
	wait_for(&child);
	take(hits, true, &seen);
	events = pm_hits_counters(hits, &len);
	assert_int_equal(len, 3);
	assert_int_equal(events[0].state, PM_STAT_OK);
	assert_int_equal(events[1].state, PM_STAT_NOT_SUPPORTED);
	assert_true(events[1].why.text[0] != '\0');
	assert_int_equal(events[2].state, PM_STAT_OK);
	assert_int_equal(seen.last.counts[1], 0);
	assert_true(seen.last.counts[2] > seen.first.counts[2]);
	pm_hits_free(hits);
}

/* As a tracer does for who may have no uprobes: a breakpoint of the thread alone. */
static void takes_breakpoints_of_a_thread(void **state)
{
	struct pm_event_spec places[2] = { 0 };
	const void *const addresses[] = { hits_in, hits_out };
	struct pm_event_spec counters[] = { software("task-clock",
						     PERF_COUNT_SW_TASK_CLOCK) };
	struct child child = start(only_many);
	struct pm_hits_options options = options_for(&child, places, counters, 1);
	struct pm_hits *hits;
	struct seen seen = { 0 };

	for (size_t i = 0; i < 2; i++) {
		places[i].kind = PM_EVENT_BREAKPOINT;
		places[i].type = PERF_TYPE_BREAKPOINT;
		places[i].bp_type = HW_BREAKPOINT_X;
		places[i].config1 = (uintptr_t)addresses[i];
		places[i].config2 = sizeof(long);
		places[i].user = true;
	}
	counters[0].kernel = false;
	options.follow = true;
	hits = open_hits(&options);
	let_go(&child);
	wait_for(&child);
	take(hits, false, &seen);
	take(hits, true, &seen);
	assert_int_equal(seen.hits[IN], CALLS);
	assert_int_equal(seen.hits[OUT], CALLS);
	assert_true(seen.last.counts[0] > seen.first.counts[0]);
	assert_int_equal(pm_hits_lost(hits), 0);
	pm_hits_free(hits);
}

/* Who is not root gets a reason. */
static void tells_who_may_not(void **state)
{
	struct pm_error err;
	pid_t pid;
	int status;

	if (geteuid() != 0) {
		assert_true(pm_hits_check(&err) < 0);
		return;
	}
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		int r = setresuid(65534, 65534, 65534) < 0 ? 0 : pm_hits_check(&err);

		_exit(r == -EACCES && strstr(err.text, "user 65534") ? 0 : 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(takes_nothing_from_namesakes),
		cmocka_unit_test(sees_threads_and_processes),
		cmocka_unit_test(sums_over_cpus),
		cmocka_unit_test(counts_what_is_lost),
		cmocka_unit_test(gives_places_of_one_address),
		cmocka_unit_test(knows_what_cannot_be_counted),
		cmocka_unit_test(takes_breakpoints_of_a_thread),
		cmocka_unit_test(tells_who_may_not),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
