/* SPDX-License-Identifier: MIT */
#include "event-names.h"

#include <linux/perf_event.h>
#include <string.h>

/* Name, canonical name, and type and config of perf_event_attr. If an event has two
 * names, the first one is shown. `dummy` and `bpf-output` never give a sample, so they
 * are absent. */
#define PLAIN_EVENTS(X)                                                          \
	X("cycles", "cycles", HARDWARE, HW_CPU_CYCLES)                           \
	X("cpu-cycles", "cycles", HARDWARE, HW_CPU_CYCLES)                       \
	X("instructions", "instructions", HARDWARE, HW_INSTRUCTIONS)             \
	X("cache-references", "cache-references", HARDWARE, HW_CACHE_REFERENCES) \
	X("cache-misses", "cache-misses", HARDWARE, HW_CACHE_MISSES)             \
	X("branches", "branches", HARDWARE, HW_BRANCH_INSTRUCTIONS)              \
	X("branch-instructions", "branches", HARDWARE, HW_BRANCH_INSTRUCTIONS)   \
	X("branch-misses", "branch-misses", HARDWARE, HW_BRANCH_MISSES)          \
	X("bus-cycles", "bus-cycles", HARDWARE, HW_BUS_CYCLES)                   \
	X("stalled-cycles-frontend", "stalled-cycles-frontend", HARDWARE,        \
	  HW_STALLED_CYCLES_FRONTEND)                                            \
	X("idle-cycles-frontend", "stalled-cycles-frontend", HARDWARE,           \
	  HW_STALLED_CYCLES_FRONTEND)                                            \
	X("stalled-cycles-backend", "stalled-cycles-backend", HARDWARE,          \
	  HW_STALLED_CYCLES_BACKEND)                                             \
	X("idle-cycles-backend", "stalled-cycles-backend", HARDWARE,             \
	  HW_STALLED_CYCLES_BACKEND)                                             \
	X("ref-cycles", "ref-cycles", HARDWARE, HW_REF_CPU_CYCLES)               \
	X("cpu-clock", "cpu-clock", SOFTWARE, SW_CPU_CLOCK)                      \
	X("task-clock", "task-clock", SOFTWARE, SW_TASK_CLOCK)                   \
	X("page-faults", "page-faults", SOFTWARE, SW_PAGE_FAULTS)                \
	X("faults", "page-faults", SOFTWARE, SW_PAGE_FAULTS)                     \
	X("minor-faults", "minor-faults", SOFTWARE, SW_PAGE_FAULTS_MIN)          \
	X("major-faults", "major-faults", SOFTWARE, SW_PAGE_FAULTS_MAJ)          \
	X("context-switches", "context-switches", SOFTWARE, SW_CONTEXT_SWITCHES) \
	X("cs", "context-switches", SOFTWARE, SW_CONTEXT_SWITCHES)               \
	X("cpu-migrations", "cpu-migrations", SOFTWARE, SW_CPU_MIGRATIONS)       \
	X("migrations", "cpu-migrations", SOFTWARE, SW_CPU_MIGRATIONS)           \
	X("cgroup-switches", "cgroup-switches", SOFTWARE, SW_CGROUP_SWITCHES)    \
	X("alignment-faults", "alignment-faults", SOFTWARE, SW_ALIGNMENT_FAULTS) \
	X("emulation-faults", "emulation-faults", SOFTWARE, SW_EMULATION_FAULTS)

struct plain_event {
	const char *name, *canonical;
	uint32_t type;
	uint64_t config;
};

static const struct plain_event plain_events[] = {
#define X(name, canonical, type, config) \
	{ name, canonical, PERF_TYPE_##type, PERF_COUNT_##config },
	PLAIN_EVENTS(X)
#undef X
};

#define READS(cache)      cache "-loads", cache "-load-misses"
#define WRITES(cache)     cache "-stores", cache "-store-misses"
#define PREFETCHES(cache) cache "-prefetches", cache "-prefetch-misses"

static const char *const shown_names[] = {
#define X(name, canonical, type, config) name,
	PLAIN_EVENTS(X)
#undef X
		READS("L1-dcache"),
	WRITES("L1-dcache"),
	PREFETCHES("L1-dcache"),
	READS("L1-icache"),
	PREFETCHES("L1-icache"),
	READS("LLC"),
	WRITES("LLC"),
	PREFETCHES("LLC"),
	READS("dTLB"),
	WRITES("dTLB"),
	PREFETCHES("dTLB"),
	READS("iTLB"),
	READS("branch"),
	READS("node"),
	WRITES("node"),
	PREFETCHES("node"),
	NULL,
};

/* ---- hardware cache events: CACHE[-OP][-RESULT], perf's spellings --------------------- */

enum {
	SPELLINGS_MAX = 7,
	READ = 1 << PERF_COUNT_HW_CACHE_OP_READ,
	WRITE = 1 << PERF_COUNT_HW_CACHE_OP_WRITE,
	PREFETCH = 1 << PERF_COUNT_HW_CACHE_OP_PREFETCH,
	UNSAID = -1,
};

/* Indexed by PERF_COUNT_HW_CACHE_*. The first spelling is the canonical one. */
static const struct {
	const char *spellings[SPELLINGS_MAX];
	unsigned int ops; /* operations that such a cache supports */
} caches[PERF_COUNT_HW_CACHE_MAX] = {
	[PERF_COUNT_HW_CACHE_L1D] = { { "L1-dcache", "l1-d", "l1d", "L1-data" },
				      READ | WRITE | PREFETCH },
	[PERF_COUNT_HW_CACHE_L1I] = { { "L1-icache", "l1-i", "l1i", "L1-instruction" },
				      READ | PREFETCH },
	[PERF_COUNT_HW_CACHE_LL] = { { "LLC", "L2" }, READ | WRITE | PREFETCH },
	[PERF_COUNT_HW_CACHE_DTLB] = { { "dTLB", "d-tlb", "Data-TLB" },
				       READ | WRITE | PREFETCH },
	[PERF_COUNT_HW_CACHE_ITLB] = { { "iTLB", "i-tlb", "Instruction-TLB" }, READ },
	[PERF_COUNT_HW_CACHE_BPU] = { { "branch", "branches", "bpu", "btb", "bpc" },
				      READ },
	[PERF_COUNT_HW_CACHE_NODE] = { { "node" }, READ | WRITE | PREFETCH },
};

/* With a result the first spelling is canonical ("load-misses"), without one the second
 * ("loads"). */
static const char *const ops[PERF_COUNT_HW_CACHE_OP_MAX][SPELLINGS_MAX] = {
	[PERF_COUNT_HW_CACHE_OP_READ] = { "load", "loads", "read" },
	[PERF_COUNT_HW_CACHE_OP_WRITE] = { "store", "stores", "write" },
	[PERF_COUNT_HW_CACHE_OP_PREFETCH] = { "prefetch", "prefetches",
					      "speculative-read", "speculative-load" },
};
static const char *const results[PERF_COUNT_HW_CACHE_RESULT_MAX][SPELLINGS_MAX] = {
	[PERF_COUNT_HW_CACHE_RESULT_ACCESS] = { "refs", "Reference", "ops", "access" },
	[PERF_COUNT_HW_CACHE_RESULT_MISS] = { "misses", "miss" },
};

/*
 * Returns the length of the longest of @spellings at the start of [at, at+len) that is
 * followed by '-' or the end; 0 if there is none.
 */
static size_t longest_spelling_at(const char *const *spellings, const char *at,
				  size_t len)
{
	size_t longest = 0;

	for (size_t i = 0; i < SPELLINGS_MAX && spellings[i]; i++) {
		size_t n = strlen(spellings[i]);

		if (n > longest && n <= len && memcmp(spellings[i], at, n) == 0 &&
		    (n == len || at[n] == '-'))
			longest = n;
	}
	return longest;
}

/* Consumes "-WORD", a spelling in a row of @table, from [*at, *at+*len). Returns the row,
 * or UNSAID. */
static int take_spelled_word(const char *const (*table)[SPELLINGS_MAX], int rows,
			     const char **at, size_t *len)
{
	if (*len < 2 || (*at)[0] != '-')
		return UNSAID;
	for (int i = 0; i < rows; i++) {
		size_t n = longest_spelling_at(table[i], *at + 1, *len - 1);

		if (n > 0) {
			*at += n + 1;
			*len -= n + 1;
			return i;
		}
	}
	return UNSAID;
}

static bool parse_cache_event(int cache, const char *at, size_t len,
			      struct pm_event_spec *out)
{
	int op = UNSAID, ret = UNSAID;

	/* perf accepts the two words in either order: "L1-dcache-misses-load". */
	while (len > 0) {
		int found = UNSAID;

		if (op == UNSAID)
			op = found = take_spelled_word(ops, PERF_COUNT_HW_CACHE_OP_MAX,
						       &at, &len);
		if (found == UNSAID && ret == UNSAID)
			ret = found = take_spelled_word(
				results, PERF_COUNT_HW_CACHE_RESULT_MAX, &at, &len);
		if (found == UNSAID)
			return false;
	}
	if (op == UNSAID)
		op = PERF_COUNT_HW_CACHE_OP_READ;
	if (ret == UNSAID)
		ret = PERF_COUNT_HW_CACHE_RESULT_ACCESS;
	if (!(caches[cache].ops & 1u << op))
		return false;
	out->kind = PM_EVENT_CACHE;
	out->type = PERF_TYPE_HW_CACHE;
	out->config = (uint64_t)cache | (uint64_t)op << 8 | (uint64_t)ret << 16;
	if (ret == PERF_COUNT_HW_CACHE_RESULT_ACCESS)
		snprintf(out->name, sizeof(out->name), "%s-%s",
			 caches[cache].spellings[0], ops[op][1]);
	else
		snprintf(out->name, sizeof(out->name), "%s-%s-%s",
			 caches[cache].spellings[0], ops[op][0], results[ret][0]);
	return true;
}

bool pm_event_name_find(const char *name, size_t len, struct pm_event_spec *out)
{
	for (size_t i = 0; i < PM_ARRAY_LEN(plain_events); i++) {
		const struct plain_event *event = &plain_events[i];

		if (strlen(event->name) == len && memcmp(event->name, name, len) == 0) {
			snprintf(out->name, sizeof(out->name), "%s", event->canonical);
			if (event->type == PERF_TYPE_SOFTWARE)
				out->kind = PM_EVENT_SOFTWARE;
			else
				out->kind = PM_EVENT_HARDWARE;
			out->type = event->type;
			out->config = event->config;
			return true;
		}
	}
	for (int i = 0; i < PERF_COUNT_HW_CACHE_MAX; i++) {
		size_t n = longest_spelling_at(caches[i].spellings, name, len);

		if (n > 0)
			return parse_cache_event(i, name + n, len - n, out);
	}
	return false;
}

const char *const *pm_event_names(void)
{
	return shown_names;
}
