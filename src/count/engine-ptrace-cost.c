/* SPDX-License-Identifier: MIT */
/*
 * Measures the cost of a visit: a child of ours calls an empty function, and is counted
 * like any other process.
 */
#include "engine-ptrace.h"

#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>

#if defined(__x86_64__) || defined(__aarch64__)

enum {
	CALLS = 200,
	ENTRY_AT = 0, /* offset in the function; this instruction runs in a slot */
#if defined(__x86_64__)
	EXIT_AT = 2,
	INSN_BYTES = 1,
#else
	EXIT_AT = 8,
	INSN_BYTES = 4,
#endif
	MEASURED_MAX = 8, /* seconds; a safeguard */
};

extern void pm_ptr_nothing(void) __attribute__((visibility("hidden")));
__asm__(".text\n"
	".p2align 4\n"
	".globl pm_ptr_nothing\n"
	".hidden pm_ptr_nothing\n"
	".type pm_ptr_nothing, %function\n"
	"pm_ptr_nothing:\n"
#if defined(__x86_64__)
	"	push %rbx\n"
	"	pop %rbx\n"
#else
	"	str x19, [sp, -16]!\n"
	"	ldr x19, [sp], 16\n"
#endif
	"	ret\n"
	".size pm_ptr_nothing, .-pm_ptr_nothing\n");

struct measure {
	struct pm_ptr ptr;
	struct pm_regions regions;
	size_t columns; /* events and elapsed time */
	uint64_t *words; /* CALLS × 2 visits × columns */
	size_t visits;
	uint64_t first_ns, last_ns; /* in real time, including stops */
	pid_t child;
	int go_fd;
};

static void measure_release(struct measure *it)
{
	pm_ptr_release(&it->ptr);
	for (size_t i = 0; i < it->regions.list.len; i++)
		pm_cleanup_close(&it->regions.list.data[i].fd);
	pm_vec_release(&it->regions.list);
	pm_vec_release(&it->regions.places);
	free(it->words);
	pm_cleanup_close(&it->go_fd);
}

/* ---- the function, as a region --------------------------------------------------------- */

static int measure_add_place(struct measure *it, const struct pm_mapping *map, size_t at)
{
	uint64_t address = (uint64_t)(uintptr_t)pm_ptr_nothing + at;
	struct pm_place place = { .kind = at == ENTRY_AT ? PM_PLACE_ENTRY : PM_PLACE_EXIT,
				  .address = address,
				  .offset = address - map->start + map->pgoff,
				  .len = INSN_BYTES };

	memcpy(place.bytes, (const char *)pm_ptr_nothing + at, INSN_BYTES);
	return pm_vec_push(&it->regions.places, place);
}

static int measure_find_function(struct measure *it)
{
	uint64_t address = (uint64_t)(uintptr_t)pm_ptr_nothing;
	struct pm_procs *procs = pm_procs_new(NULL);
	const struct pm_process *own;
	const struct pm_mapping *map;
	struct pm_region region = { .fd = -1 };
	int ret = -ENOMEM;

	if (procs)
		ret = pm_procs_read(procs, getpid(), NULL);
	if (ret == 0)
		own = pm_procs_get(procs, getpid());
	else
		own = NULL;
	if (own)
		map = pm_space_find(&own->space, address);
	else
		map = NULL;
	if (map)
		region.fd = pm_module_open(pm_procs_module(procs, map->module), NULL);
	if (ret == 0 && region.fd < 0)
		ret = -ENOENT;
	if (ret == 0 && pm_vec_push(&it->regions.list, region) < 0) {
		close(region.fd);
		ret = -ENOMEM;
	}
	if (ret == 0 && (measure_add_place(it, map, ENTRY_AT) < 0 ||
			 measure_add_place(it, map, EXIT_AT) < 0))
		ret = -ENOMEM;
	pm_procs_free(procs);
	return ret;
}

/* ---- visits -------------------------------------------------------------------------- */

static int measure_record_visit(void *user, const struct pm_visit *visit)
{
	struct measure *it = user;
	uint64_t *words = it->words + it->visits * it->columns;

	/* Entries and exits in turn, starting with an entry. */
	if (it->visits == (size_t)CALLS * 2 || visit->place != it->visits % 2)
		return 0;
	memcpy(words, visit->counts, (it->columns - 1) * sizeof(*words));
	words[it->columns - 1] = visit->time;
	if (it->ptr.hw.hits)
		it->last_ns = visit->time;
	else
		it->last_ns = pm_now_ns();
	if (it->visits++ == 0)
		it->first_ns = it->last_ns;
	return 0;
}

static int measure_ignore_fork(void *user, pid_t parent_tid, pid_t pid, pid_t tid)
{
	return 0;
}

static void measure_ignore_exit(void *user, pid_t tid)
{
}

static void measure_ignore_name(void *user, pid_t pid, pid_t tid, const char *comm)
{
}

static const struct pm_ptr_listener listener = { .visit = measure_record_visit,
						 .fork = measure_ignore_fork,
						 .exit = measure_ignore_exit,
						 .named = measure_ignore_name };

static int compare_measured_counts(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	if (*x < *y)
		return -1;
	return *x > *y;
}

/* Returns the median difference between visits n and n + @step, n even. */
static uint64_t median_between_visits(const struct measure *it, size_t column,
				      size_t step)
{
	uint64_t values[CALLS];
	size_t len = 0;

	for (size_t n = 0; n + step < it->visits; n += 2) {
		const uint64_t *from = it->words + n * it->columns,
			       *to = it->words + (n + step) * it->columns;

		values[len++] = PM_SUB_OR_0(to[column], from[column]);
	}
	if (len == 0)
		return 0;
	qsort(values, len, sizeof(*values), compare_measured_counts);
	return values[len / 2];
}

/* ---- the child ----------------------------------------------------------------------- */

static _Noreturn void run_child(int fd)
{
	char go;

	alarm(MEASURED_MAX);
	if (read(fd, &go, 1) == 1)
		for (int i = 0; i < CALLS; i++)
			pm_ptr_nothing();
	_exit(0);
}

static int measure_start_child(struct measure *it, struct pm_error *err)
{
	pid_t self = getpid();
	int fds[2];

	if (pipe2(fds, O_CLOEXEC) < 0)
		return pm_error_set(err, -errno, "pipe: %s", strerror(errno));
	it->child = fork();
	if (it->child == 0) {
		close(fds[1]);
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() == self)
			run_child(fds[0]);
		_exit(0);
	}
	close(fds[0]);
	it->go_fd = fds[1];
	if (it->child < 0)
		return pm_error_set(err, -errno, "fork: %s", strerror(errno));
	return 0;
}

/* The child always ends and is reaped, even if something else fails. */
static int measure_follow_child(struct measure *it, struct pm_error *err)
{
	struct pm_trace_event event;
	int ret = pm_ptr_attach(&it->ptr, it->child, err);
	bool begun = false;

	if (ret < 0)
		return ret;
	pm_trace_interrupt(it->ptr.trace);
	do {
		ret = pm_trace_wait(it->ptr.trace, &event, err);
		if (ret <= 0)
			continue;
		ret = pm_ptr_event(&it->ptr, &event);
		pm_ptr_go_on(&it->ptr);
		if (ret < 0)
			return pm_error_set(err, ret, "%s", strerror(-ret));
		if (!begun && event.what == PM_TRACE_STOPPED)
			begun = write(it->go_fd, "g", 1) == 1;
	} while (ret >= 0 && pm_trace_len(it->ptr.trace) > 0);
	if (ret < 0)
		return ret;
	return 0;
}

int pm_ptr_measure(const struct pm_event_spec *specs, size_t len, bool hw,
		   struct pm_ptr_costs *costs, struct pm_error *err)
{
	struct measure it PM_CLEANUP(
		measure_release) = { .columns = len + 1, .child = -1, .go_fd = -1 };
	int ret = measure_find_function(&it);

	it.words = calloc((size_t)CALLS * 2, it.columns * sizeof(*it.words));
	if (ret == 0 && !it.words)
		ret = -ENOMEM;
	if (ret < 0)
		return pm_error_set(err, ret,
				    "the cost of a visit cannot be measured: %s",
				    strerror(-ret));
	ret = pm_ptr_init(&it.ptr, &it.regions, specs, len, err);
	if (ret < 0)
		return ret;
	it.ptr.listener = &listener;
	it.ptr.hw_wanted = hw;
	it.ptr.user = &it;
	ret = measure_start_child(&it, err);
	if (ret < 0)
		return ret;
	ret = measure_follow_child(&it, err);
	if (ret < 0) {
		kill(it.child, SIGKILL);
		waitpid(it.child, NULL, __WALL);
		return ret;
	}
	if (it.visits != (size_t)CALLS * 2)
		return pm_error_set(err, -EIO, "the cost of a visit: %zu of %d seen",
				    it.visits, CALLS * 2);
	for (size_t i = 0; i < it.columns; i++) {
		costs->call[i] = median_between_visits(&it, i, 1);
		costs->visit[i] = median_between_visits(&it, i, 2) / 2;
	}
	costs->whole_ns = (it.last_ns - it.first_ns) / CALLS;
	costs->by_hits = it.ptr.hw.hits != NULL;
	costs->known = true;
	return 0;
}

#else

int pm_ptr_measure(const struct pm_event_spec *specs, size_t len, bool hw,
		   struct pm_ptr_costs *costs, struct pm_error *err)
{
	return pm_error_set(err, -EOPNOTSUPP,
			    "breakpoints are for x86-64 and aarch64 only");
}

#endif

int pm_ptr_costs_init(struct pm_ptr_costs *costs, size_t events)
{
	*costs = (struct pm_ptr_costs){ .call = calloc(events + 1, sizeof(*costs->call)),
					.visit = calloc(events + 1,
							sizeof(*costs->visit)) };
	if (costs->call && costs->visit)
		return 0;
	return -ENOMEM;
}

void pm_ptr_costs_release(struct pm_ptr_costs *costs)
{
	free(costs->call);
	free(costs->visit);
	costs->call = costs->visit = NULL;
}
