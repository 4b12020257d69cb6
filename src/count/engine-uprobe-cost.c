/* SPDX-License-Identifier: MIT */
/*
 * What looking costs: a function that does nothing is called some times in a child of ours, and
 * looked at as others are.
 */
#include "engine-uprobe.h"

#include <link.h>
#include <string.h>
#include <sys/wait.h>

enum {
	CALLS = 1000,
	COLD = 100, /* the first ones, which are slower */
	RING_PAGES = 256,
};

void pm_up_cost_release(struct pm_up_cost *cost)
{
	free(cost->call);
	free(cost->visit);
	*cost = (struct pm_up_cost){ 0 };
}

#ifdef __x86_64__

/* One begins with what the kernel emulates, one with what it steps over; both end as functions
 * do. */
__asm__(".text\n"
	".globl pm_up_cheap, pm_up_cheap_end, pm_up_dear, pm_up_dear_end\n"
	".hidden pm_up_cheap, pm_up_cheap_end, pm_up_dear, pm_up_dear_end\n"
	".type pm_up_cheap, @function\n"
	"pm_up_cheap: push %rbp\n"
	"pop %rbp\n"
	"pm_up_cheap_end: ret\n"
	".size pm_up_cheap, . - pm_up_cheap\n"
	".type pm_up_dear, @function\n"
	"pm_up_dear: mov %rsp, %rax\n"
	"pm_up_dear_end: ret\n"
	".size pm_up_dear, . - pm_up_dear\n");
void pm_up_cheap(void) __attribute__((visibility("hidden")));
void pm_up_dear(void) __attribute__((visibility("hidden")));
extern const char pm_up_cheap_end[] __attribute__((visibility("hidden")));
extern const char pm_up_dear_end[] __attribute__((visibility("hidden")));

/* ---- where it is ----------------------------------------------------------------------- */

struct where {
	uintptr_t address;
	uint64_t offset;
	char path[4096];
	bool found;
};

static int find(struct dl_phdr_info *info, size_t size, void *user)
{
	struct where *where = user;

	for (size_t i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
		uintptr_t begin = info->dlpi_addr + segment->p_vaddr;

		if (segment->p_type != PT_LOAD || where->address < begin ||
		    where->address - begin >= segment->p_filesz)
			continue;
		where->offset = where->address - begin + segment->p_offset;
		snprintf(where->path, sizeof(where->path), "%s",
			 info->dlpi_name[0] ? info->dlpi_name : "/proc/self/exe");
		where->found = true;
		return 1;
	}
	return 0;
}

static bool locate(const void *address, struct where *ret)
{
	ret->address = (uintptr_t)address;
	ret->found = false;
	dl_iterate_phdr(find, ret);
	return ret->found;
}

/* ---- the child ------------------------------------------------------------------------- */

/* Its number, and what it waits for. */
static pid_t start_child(void (*function)(void), int *go)
{
	int fds[2];
	pid_t pid;

	if (pipe(fds) < 0)
		return -1;
	pid = fork();
	if (pid == 0) {
		char byte;

		close(fds[1]);
		if (read(fds[0], &byte, 1) == 1)
			for (int i = 0; i < CALLS; i++)
				function();
		_exit(0);
	}
	close(fds[0]);
	*go = fds[1];
	if (pid < 0)
		close(pm_take_fd(go));
	return pid;
}

/* ---- numbers --------------------------------------------------------------------------- */

struct samples {
	size_t columns;
	PM_VEC(uint64_t) calls, pairs; /* rows of `columns` */
	uint64_t entry[PM_HITS_COUNTERS_MAX + 1];
	bool entered;
	size_t seen;
};

static int add_row(struct samples *samples, bool pair, const uint64_t *now)
{
	for (size_t i = 0; i < samples->columns; i++) {
		uint64_t value = now[i] - samples->entry[i];
		int r = pair ? pm_vec_push(&samples->pairs, value)
			     : pm_vec_push(&samples->calls, value);

		if (r < 0)
			return r;
	}
	return 0;
}

static int take_hit(struct samples *samples, const struct pm_hit *hit)
{
	uint64_t now[PM_HITS_COUNTERS_MAX + 1];
	int r = 0;

	memcpy(now, hit->counts, (samples->columns - 1) * sizeof(*now));
	now[samples->columns - 1] = hit->time;
	if (samples->entered && samples->seen >= COLD)
		r = add_row(samples, hit->place == 0, now);
	if (hit->place == 0) {
		memcpy(samples->entry, now, sizeof(now));
		samples->entered = true;
		samples->seen++;
	}
	return r;
}

static int by_value(const void *a, const void *b)
{
	uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;

	return (left > right) - (left < right);
}

/* Of a column of rows; 0 of none. -ENOMEM. */
static int median(const uint64_t *rows, size_t len, size_t columns, size_t column,
		  uint64_t *ret)
{
	size_t rows_len = len / columns;
	PM_AUTO_FREE uint64_t *values = calloc(rows_len + 1, sizeof(*values));

	if (!values)
		return -ENOMEM;
	for (size_t i = 0; i < rows_len; i++)
		values[i] = rows[i * columns + column];
	qsort(values, rows_len, sizeof(*values), by_value);
	*ret = values[rows_len / 2];
	return 0;
}

static int fill_cost(struct pm_up_cost *cost, const struct samples *samples)
{
	struct pm_up_cost found = { .known = true };
	int r = 0;

	found.call = calloc(samples->columns, sizeof(*found.call));
	found.visit = calloc(samples->columns, sizeof(*found.visit));
	if (!found.call || !found.visit)
		r = -ENOMEM;
	for (size_t i = 0; i < samples->columns && r == 0; i++) {
		r = median(samples->calls.data, samples->calls.len, samples->columns, i,
			   &found.call[i]);
		if (r == 0)
			r = median(samples->pairs.data, samples->pairs.len,
				   samples->columns, i, &found.visit[i]);
		/* An entry and an exit. */
		found.visit[i] /= 2;
	}
	if (r < 0)
		pm_up_cost_release(&found);
	else
		*cost = found;
	return r;
}

static int read_hits(struct pm_hits *hits, struct samples *samples)
{
	enum pm_hits_what what;
	struct pm_record record;
	struct pm_hit hit;
	int r;

	pm_hits_begin(hits, true);
	while ((r = pm_hits_next(hits, &what, &hit, &record, NULL)) == 1) {
		if (what != PM_HITS_HIT)
			continue;
		r = take_hit(samples, &hit);
		if (r < 0)
			return r;
	}
	return r;
}

/* ---- all ------------------------------------------------------------------------------- */

static int look_at(pid_t pid, int go, const struct where *places,
		   const struct pm_engine_options *options, struct samples *samples)
{
	struct pm_event_spec specs[2] = { 0 };
	struct pm_hits_options wanted = {
		.counters = options->specs,
		.counters_len = options->specs_len,
		.places = specs,
		.places_len = 2,
		.target = PM_PERF_TASKS,
		.tids = &pid,
		.tids_len = 1,
		.ring_pages = RING_PAGES,
	};
	struct pm_hits *hits = NULL;
	int r;

	for (size_t i = 0; i < 2; i++) {
		specs[i].kind = PM_EVENT_UPROBE;
		specs[i].path = places[i].path;
		specs[i].config2 = places[i].offset;
		specs[i].user = specs[i].kernel = true;
	}
	r = pm_hits_open(&hits, &wanted, NULL);
	if (r < 0)
		return r;
	if (write(go, "", 1) == 1 && waitpid(pid, NULL, 0) == pid)
		r = read_hits(hits, samples);
	else
		r = -errno;
	pm_hits_free(hits);
	return r;
}

int pm_up_cost_measure(struct pm_up_cost *cost, const struct pm_engine_options *options)
{
	bool cheap = pm_up_entered_cheaply(options->regions);
	struct samples samples = { .columns = options->specs_len + 1 };
	PM_AUTO_FREE struct where *places = calloc(2, sizeof(*places));
	int go PM_AUTO_CLOSE = -1;
	pid_t pid;
	int r;

	if (!places)
		return -ENOMEM;
	if (!locate(cheap ? (const void *)pm_up_cheap : (const void *)pm_up_dear,
		    &places[0]) ||
	    !locate(cheap ? pm_up_cheap_end : pm_up_dear_end, &places[1]))
		return 0;
	pid = start_child(cheap ? pm_up_cheap : pm_up_dear, &go);
	if (pid < 0)
		return 0;
	r = look_at(pid, go, places, options, &samples);
	/* It ends by itself when nobody tells it to go. */
	close(pm_take_fd(&go));
	waitpid(pid, NULL, 0);
	if (r == 0 && samples.calls.len > 0 && samples.pairs.len > 0)
		r = fill_cost(cost, &samples);
	pm_vec_release(&samples.calls);
	pm_vec_release(&samples.pairs);
	/* Without it nothing is taken off, which is told. */
	return r == -ENOMEM ? r : 0;
}

#else

int pm_up_cost_measure(struct pm_up_cost *cost, const struct pm_engine_options *options)
{
	return 0;
}

#endif
