/* SPDX-License-Identifier: MIT */
/*
 * Measures the cost of observation: an empty function is called repeatedly in a child of
 * ours, and observed like any other one.
 */
#include "engine-uprobe.h"

#include <link.h>
#include <linux/perf_event.h>
#include <string.h>
#include <sys/wait.h>

enum {
	CALLS_LEN = 1000,
	COLD = 100, /* the first calls, which are slower */
	PLACES = 4,
	RING_PAGES = 512,
};

void pm_up_cost_release(struct pm_up_cost *cost)
{
	for (size_t i = 0; i < 2; i++) {
		free(cost->call[i]);
		free(cost->visit[i]);
	}
	*cost = (struct pm_up_cost){ 0 };
}

/*
 * One function begins with an instruction that the kernel emulates, the other with one
 * that it steps over; both end with a return. They are in assembly because their own
 * instructions, which are not a cost, must be known: up to the exit, and from one entry
 * to the next.
 */
#if defined(__x86_64__)
#define TYPE  "@function"
#define CHEAP "push %rbp\npop %rbp\n"
#define DEAR  "mov %rsp, %rax\n"
#define CALLS                         \
	"push %rbx\nmov %edi, %ebx\n" \
	"1: call pm_up_dear\n"        \
	"call pm_up_cheap\n"          \
	"sub $1, %ebx\njne 1b\n"      \
	"pop %rbx\nret\n"
enum {
	CHEAP_LEN = 2,
};
#elif defined(__aarch64__)
#define TYPE  "%function"
#define CHEAP "adr x0, .\n"
#define DEAR  "mov x0, sp\n"
#define CALLS                                      \
	"stp x30, x19, [sp, #-16]!\nmov w19, w0\n" \
	"1: bl pm_up_dear\n"                       \
	"bl pm_up_cheap\n"                         \
	"subs w19, w19, #1\nb.ne 1b\n"             \
	"ldp x30, x19, [sp], #16\nret\n"
enum {
	CHEAP_LEN = 1,
};
#endif

#ifdef TYPE

/* Number of instructions of both functions (index: is the cheap one): up to the return;
 * and including the return and the instructions up to the next call. */
static const uint64_t own_instructions[2][2] = { { 1, 3 }, { CHEAP_LEN, CHEAP_LEN + 4 } };

__asm__(".text\n.p2align 4\n"
	".globl pm_up_cheap, pm_up_cheap_end, pm_up_dear, pm_up_dear_end, pm_up_calls\n"
	".hidden pm_up_cheap, pm_up_cheap_end, pm_up_dear, pm_up_dear_end, pm_up_calls\n"
	".type pm_up_cheap, " TYPE "\n"
	"pm_up_cheap: " CHEAP "pm_up_cheap_end: ret\n"
	".size pm_up_cheap, . - pm_up_cheap\n"
	".type pm_up_dear, " TYPE "\n"
	"pm_up_dear: " DEAR "pm_up_dear_end: ret\n"
	".size pm_up_dear, . - pm_up_dear\n"
	".type pm_up_calls, " TYPE "\n"
	"pm_up_calls: " CALLS ".size pm_up_calls, . - pm_up_calls\n");
void pm_up_cheap(void) __attribute__((visibility("hidden")));
void pm_up_dear(void) __attribute__((visibility("hidden")));
/* Calls each function @times times, alternating. */
void pm_up_calls(unsigned int times) __attribute__((visibility("hidden")));
extern const char pm_up_cheap_end[] __attribute__((visibility("hidden")));
extern const char pm_up_dear_end[] __attribute__((visibility("hidden")));

/* ---- the functions' locations ---------------------------------------------------------- */

struct where {
	uintptr_t address;
	uint64_t offset;
	char path[4096];
	bool found;
};

static int find_segment_of_address(struct dl_phdr_info *info, size_t size, void *user)
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

static bool locate_in_file(const void *address, struct where *out)
{
	out->address = (uintptr_t)address;
	out->found = false;
	dl_iterate_phdr(find_segment_of_address, out);
	return out->found;
}

/* ---- the child ------------------------------------------------------------------------- */

/* Returns the child's pid; it waits for a byte on @go. */
static pid_t start_sampled_child(int *go)
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
			pm_up_calls(CALLS_LEN);
		_exit(0);
	}
	close(fds[0]);
	*go = fds[1];
	if (pid < 0)
		close(pm_take_fd(go));
	return pid;
}

/* ---- numbers --------------------------------------------------------------------------- */

/* For both functions; index: is the cheap one. */
struct samples {
	size_t columns;
	PM_VEC(uint64_t) rows[2][2]; /* from entry to exit; from one entry to the next */
	uint64_t entry[PM_HITS_COUNTERS_MAX + 1];
	bool entered, of_cheap; /* of the last entry */
	size_t seen;
};

static void samples_release(struct samples *samples)
{
	for (size_t i = 0; i < 4; i++)
		pm_vec_release(&samples->rows[i / 2][i % 2]);
}

static int samples_add_row(struct samples *samples, bool whole, const uint64_t *now)
{
	for (size_t i = 0; i < samples->columns; i++)
		if (pm_vec_push(&samples->rows[samples->of_cheap][whole],
				now[i] - samples->entry[i]) < 0)
			return -ENOMEM;
	return 0;
}

/* Places: entry and exit of the dear function, then of the cheap one. */
static int samples_add_hit(struct samples *samples, const struct pm_hit *hit)
{
	bool entry = hit->place % 2 == 0;
	uint64_t now[PM_HITS_COUNTERS_MAX + 1];
	int ret = 0;

	memcpy(now, hit->counts, (samples->columns - 1) * sizeof(*now));
	now[samples->columns - 1] = hit->time;
	if (samples->entered && samples->seen >= COLD)
		ret = samples_add_row(samples, entry, now);
	if (entry) {
		memcpy(samples->entry, now, sizeof(now));
		samples->entered = true;
		samples->of_cheap = hit->place >= 2;
		samples->seen++;
	}
	return ret;
}

static int compare_sample_values(const void *a, const void *b)
{
	uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;

	return PM_COMPARE(left, right);
}

/* Returns the medians over all rows, by column; NULL if out of memory. */
static uint64_t *samples_column_medians(const struct samples *samples, bool cheap,
					bool whole)
{
	const uint64_t *rows = samples->rows[cheap][whole].data;
	size_t len = samples->rows[cheap][whole].len / samples->columns;
	PM_AUTO_FREE uint64_t *values = calloc(len + 1, sizeof(*values));
	uint64_t *ret = calloc(samples->columns, sizeof(*ret));

	if (!values || !ret) {
		free(ret);
		return NULL;
	}
	for (size_t column = 0; column < samples->columns; column++) {
		for (size_t i = 0; i < len; i++)
			values[i] = rows[i * samples->columns + column];
		qsort(values, len, sizeof(*values), compare_sample_values);
		ret[column] = values[len / 2];
	}
	return ret;
}

static bool counts_instructions(const struct pm_event_spec *spec)
{
	return spec->kind == PM_EVENT_HARDWARE && spec->user &&
	       (spec->config & UINT32_MAX) == PERF_COUNT_HW_INSTRUCTIONS;
}

static void subtract_to_zero(uint64_t *from, uint64_t what)
{
	*from -= PM_MIN(what, *from);
}

static void subtract_own_cost(const struct pm_up_cost *cost,
			      const struct pm_engine_options *options)
{
	for (size_t i = 0; i < options->specs_len; i++)
		for (size_t cheap = 0; cheap < 2; cheap++) {
			if (!counts_instructions(&options->specs[i]))
				continue;
			subtract_to_zero(&cost->call[cheap][i],
					 own_instructions[cheap][0]);
			subtract_to_zero(&cost->visit[cheap][i],
					 own_instructions[cheap][1]);
		}
}

static int fill_cost(struct pm_up_cost *cost, const struct pm_engine_options *options,
		     const struct samples *samples)
{
	struct pm_up_cost found = { .known = true };

	for (size_t i = 0; i < 2; i++) {
		found.call[i] = samples_column_medians(samples, i == 1, false);
		found.visit[i] = samples_column_medians(samples, i == 1, true);
	}
	if (!found.call[0] || !found.call[1] || !found.visit[0] || !found.visit[1]) {
		pm_up_cost_release(&found);
		return -ENOMEM;
	}
	subtract_own_cost(&found, options);
	/* From one entry to the next there are two visits: both stepped over, or one of
	 * them. */
	for (size_t i = 0; i < samples->columns; i++) {
		uint64_t dear = found.visit[0][i] / 2, both = found.visit[1][i];

		found.visit[0][i] = dear;
		found.visit[1][i] = PM_SUB_OR_0(both, dear);
	}
	*cost = found;
	return 0;
}

static int read_hits(struct pm_hits *hits, struct samples *samples)
{
	enum pm_hits_what what;
	struct pm_record record;
	struct pm_hit hit;
	int ret;

	pm_hits_begin(hits, true);
	while ((ret = pm_hits_next(hits, &what, &hit, &record, NULL)) == 1) {
		if (what != PM_HITS_HIT)
			continue;
		ret = samples_add_hit(samples, &hit);
		if (ret < 0)
			return ret;
	}
	return ret;
}

/* ---- the measurement ------------------------------------------------------------------- */

static int sample_child_hits(pid_t pid, int go, const struct where *places,
			     const struct pm_engine_options *options,
			     struct samples *samples)
{
	struct pm_event_spec specs[PLACES] = { 0 };
	struct pm_hits_options wanted = {
		.counters = options->specs,
		.counters_len = options->specs_len,
		.places = specs,
		.places_len = PLACES,
		.target = PM_PERF_TASKS,
		.tids = &pid,
		.tids_len = 1,
		.ring_pages = RING_PAGES,
	};
	struct pm_hits *hits = NULL;
	int ret;

	for (size_t i = 0; i < PLACES; i++) {
		specs[i].kind = PM_EVENT_UPROBE;
		specs[i].path = places[i].path;
		specs[i].config2 = places[i].offset;
		specs[i].user = specs[i].kernel = true;
	}
	ret = pm_hits_open(&hits, &wanted, NULL);
	if (ret < 0)
		return ret;
	if (write(go, "", 1) == 1 && waitpid(pid, NULL, 0) == pid)
		ret = read_hits(hits, samples);
	else
		ret = -errno;
	pm_hits_free(hits);
	return ret;
}

int pm_up_cost_measure(struct pm_up_cost *cost, const struct pm_engine_options *options)
{
	const void *const addresses[PLACES] = { (const void *)pm_up_dear, pm_up_dear_end,
						(const void *)pm_up_cheap,
						pm_up_cheap_end };
	struct samples samples PM_CLEANUP(
		samples_release) = { .columns = options->specs_len + 1 };
	PM_AUTO_FREE struct where *places = calloc(PLACES, sizeof(*places));
	int go PM_AUTO_CLOSE = -1;
	bool any = true;
	pid_t pid;
	int ret;

	if (!places)
		return -ENOMEM;
	for (size_t i = 0; i < PLACES; i++)
		if (!locate_in_file(addresses[i], &places[i]))
			return 0;
	pid = start_sampled_child(&go);
	if (pid < 0)
		return 0;
	ret = sample_child_hits(pid, go, places, options, &samples);
	/* Without a byte, the child ends by itself. */
	close(pm_take_fd(&go));
	waitpid(pid, NULL, 0);
	for (size_t i = 0; i < 4; i++)
		any &= samples.rows[i / 2][i % 2].len > 0;
	if (ret == 0 && any)
		ret = fill_cost(cost, options, &samples);
	/* Without a cost nothing is subtracted, and that is reported. */
	if (ret == -ENOMEM)
		return ret;
	return 0;
}

#else

int pm_up_cost_measure(struct pm_up_cost *cost, const struct pm_engine_options *options)
{
	return 0;
}

#endif
