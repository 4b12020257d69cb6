/* SPDX-License-Identifier: MIT */
#include "budget.h"

#include <unistd.h>

enum {
	ROWS = 4096, /* a power of two */
	PROBES = 8,
	/* Each sample has this much free work, whatever budget is left. A sample may get
	 * it twice, because it may be unwound ahead of its turn. */
	FREE_NS = 4096,
	FREE_NS_MAX = 16 * FREE_NS,
	OPEN_MAX = 16, /* rows with chains in progress */
	CPUS_MAX = 4, /* more CPUs do not add budget: one thread serves all of them */
	RATE_USUAL = 999,
	RATE_MAX = 100000, /* higher rates do not add budget */
	SCARCE_SHARE = 16,
	PAUSE_MS_FIRST = 250,
	PAUSE_MS_MAX = 8000,
};
#define MS_NS     1000000ull
#define SECOND_NS (1000 * MS_NS)
/* Gained per second and CPU, by all processes together and by each: real programs with
 * deep stacks that are new each time need 50 ms at the default rate. */
#define FILL_NS (64 * MS_NS)
/* The maximum with higher rates and more CPUs: the recorder has other work to do. */
#define FILL_NS_MAX (512 * MS_NS)
/* The most that may be spent at once; the rings hold several times as much. */
#define BURST_NS (64 * MS_NS)
/* After a process has stayed within its share for this long, its pauses start short
 * again. */
#define FORGIVEN_NS (30 * SECOND_NS)

/* A bucket that fills with time. */
struct bucket {
	uint64_t left_ns, filled_ns; /* the content, and the time when it was computed */
};

/* The budget of one process. If there are too many processes, several share a row: see
 * budget_find_row(). */
struct row {
	uint32_t pid; /* 0: unused */
	/* The work left for the chains in progress, which subtract from it. */
	uint32_t allowance;
	uint32_t given; /* its initial value */
	uint32_t free_ns; /* free work that recent samples have not used */
	struct bucket bucket;
	uint64_t paused_until_ns; /* 0: never paused */
	uint32_t pause_ms; /* length of the last pause */
};

struct pm_chain_budget {
	struct row rows[ROWS];
	struct row *open[OPEN_MAX];
	size_t open_len;
	struct bucket all;
	uint64_t fill_ns; /* what each bucket gains per second */
	struct pm_chain_cut cut;
};

/* Returns what a bucket gains per second. A higher sampling rate needs more work. */
static uint64_t find_fill_ns(uint64_t rate)
{
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);
	uint64_t fill_ns;

	cpus = PM_MAX(cpus, 1);
	fill_ns = FILL_NS * (uint64_t)PM_MIN(cpus, CPUS_MAX);
	if (rate <= RATE_USUAL)
		return fill_ns;
	fill_ns = fill_ns * PM_MIN(rate, RATE_MAX) / RATE_USUAL;
	return PM_MIN(fill_ns, FILL_NS_MAX);
}

struct pm_chain_budget *pm_chain_budget_new(uint64_t rate)
{
	struct pm_chain_budget *budget = calloc(1, sizeof(*budget));

	if (!budget)
		return NULL;
	budget->fill_ns = find_fill_ns(rate);
	budget->all.left_ns = BURST_NS;
	return budget;
}

void pm_chain_budget_free(struct pm_chain_budget *budget)
{
	free(budget);
}

static void fill_bucket(struct bucket *bucket, uint64_t time_ns, uint64_t fill_ns)
{
	uint64_t passed;

	if (time_ns <= bucket->filled_ns)
		return;
	passed = time_ns - bucket->filled_ns;
	bucket->filled_ns = time_ns;
	if (passed >= SECOND_NS) {
		bucket->left_ns = BURST_NS;
		return;
	}
	bucket->left_ns += passed * fill_ns / SECOND_NS;
	if (bucket->left_ns > BURST_NS)
		bucket->left_ns = BURST_NS;
}

static uint64_t take_from_bucket(struct bucket *bucket, uint64_t ns)
{
	ns = PM_MIN(ns, bucket->left_ns);
	bucket->left_ns -= ns;
	return ns;
}

/*
 * Returns the row of @pid. A row whose process has a full budget, like a new one, holds
 * no information and may be given to another process. If there is no such row, two
 * processes share one.
 */
static struct row *budget_find_row(struct pm_chain_budget *budget, uint32_t pid,
				   uint64_t time_ns)
{
	size_t first = pm_hash_mix(pid, 0);
	struct row *idle = NULL, *row = NULL;

	for (size_t i = 0; i < PROBES; i++) {
		row = &budget->rows[(first + i) % ROWS];
		if (row->pid == pid)
			return row;
		if (!idle &&
		    (row->pid == 0 || (time_ns > row->bucket.filled_ns + SECOND_NS &&
				       time_ns > row->paused_until_ns + FORGIVEN_NS)))
			idle = row;
	}
	if (!idle)
		return row;
	*idle = (struct row){ .pid = pid,
			      .bucket = { .left_ns = BURST_NS, .filled_ns = time_ns } };
	return idle;
}

static void pause_process(struct pm_chain_budget *budget, struct row *row)
{
	uint64_t now_ns = row->bucket.filled_ns;

	if (now_ns > row->paused_until_ns + FORGIVEN_NS)
		row->pause_ms = 0;
	if (row->pause_ms == 0)
		row->pause_ms = PAUSE_MS_FIRST;
	else
		row->pause_ms = 2 * row->pause_ms;
	if (row->pause_ms > PAUSE_MS_MAX)
		row->pause_ms = PAUSE_MS_MAX;
	row->paused_until_ns = now_ns + row->pause_ms * MS_NS;
	if (budget->cut.pauses++ == 0)
		budget->cut.first_pid = row->pid;
	budget->cut.others |= row->pid != budget->cut.first_pid;
}

/* Whether all processes together have used up most of the shared budget. While that is
 * so, the budgets refill slowly, and processes that keep using much have to pause. */
static bool is_scarce(const struct pm_chain_budget *budget)
{
	return budget->all.left_ns < BURST_NS / 2;
}

static void budget_spend(struct pm_chain_budget *budget, struct row *row, uint64_t ns)
{
	uint64_t free_ns = PM_MIN(ns, row->free_ns), short_ns;
	bool is_over;

	row->free_ns -= (uint32_t)free_ns;
	ns -= free_ns;
	if (ns == 0)
		return;
	short_ns = ns - take_from_bucket(&row->bucket, ns);
	take_from_bucket(&budget->all, ns);
	is_over = short_ns > 0 ||
		  (budget->all.left_ns == 0 && row->bucket.left_ns < BURST_NS / 4 * 3);
	if (is_over && row->bucket.filled_ns >= row->paused_until_ns)
		pause_process(budget, row);
}

static void settle_row(struct pm_chain_budget *budget, struct row *row)
{
	uint32_t used = row->given - row->allowance;

	row->given = row->allowance = 0;
	if (used > 0)
		budget_spend(budget, row, used);
}

uint32_t *pm_chain_budget_begin(struct pm_chain_budget *budget, uint32_t pid,
				uint64_t time_ns)
{
	struct row *row = budget_find_row(budget, pid, time_ns);
	uint64_t left;

	if (budget->open_len == OPEN_MAX)
		pm_chain_budget_settle(budget);
	fill_bucket(&budget->all, time_ns, budget->fill_ns);
	fill_bucket(&row->bucket, time_ns,
		    is_scarce(budget) ? budget->fill_ns / SCARCE_SHARE : budget->fill_ns);
	settle_row(budget, row);
	if (row->free_ns < FREE_NS_MAX)
		row->free_ns += FREE_NS;
	if (row->bucket.filled_ns < row->paused_until_ns)
		return &row->allowance;
	left = PM_MIN(row->bucket.left_ns, budget->all.left_ns);
	row->given = row->allowance = row->free_ns + (uint32_t)left;
	budget->open[budget->open_len++] = row;
	return &row->allowance;
}

void pm_chain_budget_settle(struct pm_chain_budget *budget)
{
	for (size_t i = 0; i < budget->open_len; i++)
		settle_row(budget, budget->open[i]);
	budget->open_len = 0;
}

void pm_chain_budget_spend(struct pm_chain_budget *budget, uint32_t pid, uint64_t ns)
{
	struct row *row = budget_find_row(budget, pid, 0);

	if (row->pid == pid)
		budget_spend(budget, row, ns);
}

const struct pm_chain_cut *pm_chain_budget_cut(const struct pm_chain_budget *budget)
{
	return &budget->cut;
}
