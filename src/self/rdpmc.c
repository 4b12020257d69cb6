/* SPDX-License-Identifier: MIT */
#include "rdpmc.h"

#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>

enum {
	TRIES_MAX = 100, /* the page changes whenever the thread returns to a CPU */
	/* `rdpmc` in the format/ directory of aarch64's PMUs: without it the kernel does
	 * not allow user space to read the counter (Documentation/arch/arm64/perf.rst).
	 * It takes effect if kernel.perf_user_access is 1. */
	ARM_CONFIG1_USER_READ = 2,
};

/* ---- by page -------------------------------------------------------------------------------- */

#if defined(__x86_64__)

static bool pmc_is_readable(uint32_t counter)
{
	return true;
}

static uint64_t read_pmc(uint32_t counter)
{
	uint32_t low, high;

	__asm__ volatile("rdpmc" : "=a"(low), "=d"(high) : "c"(counter));
	return (uint64_t)high << 32 | low;
}

#elif defined(__aarch64__)

enum {
	CYCLE_COUNTER = 31, /* PMCCNTR_EL0 */
};

/* Processors may have more counters, with higher numbers that have no case below. */
static bool pmc_is_readable(uint32_t counter)
{
	return counter <= CYCLE_COUNTER;
}

/* The register number is encoded in the instruction (Arm ARM D13, PMEVCNTR<n>_EL0). */
#define EVENT_COUNTER(n)                                                      \
	case n:                                                               \
		__asm__ volatile("mrs %0, pmevcntr" #n "_el0" : "=r"(value)); \
		break

static uint64_t read_pmc(uint32_t counter)
{
	uint64_t value = 0;

	switch (counter) {
		EVENT_COUNTER(0);
		EVENT_COUNTER(1);
		EVENT_COUNTER(2);
		EVENT_COUNTER(3);
		EVENT_COUNTER(4);
		EVENT_COUNTER(5);
		EVENT_COUNTER(6);
		EVENT_COUNTER(7);
		EVENT_COUNTER(8);
		EVENT_COUNTER(9);
		EVENT_COUNTER(10);
		EVENT_COUNTER(11);
		EVENT_COUNTER(12);
		EVENT_COUNTER(13);
		EVENT_COUNTER(14);
		EVENT_COUNTER(15);
		EVENT_COUNTER(16);
		EVENT_COUNTER(17);
		EVENT_COUNTER(18);
		EVENT_COUNTER(19);
		EVENT_COUNTER(20);
		EVENT_COUNTER(21);
		EVENT_COUNTER(22);
		EVENT_COUNTER(23);
		EVENT_COUNTER(24);
		EVENT_COUNTER(25);
		EVENT_COUNTER(26);
		EVENT_COUNTER(27);
		EVENT_COUNTER(28);
		EVENT_COUNTER(29);
		EVENT_COUNTER(30);
	default:
		__asm__ volatile("mrs %0, pmccntr_el0" : "=r"(value));
		break;
	}
	return value;
}

#else
#error "counters of this architecture are not known"
#endif

/* The kernel writes the page on the CPU that reads it, so it is enough to keep the
 * compiler from reordering. */
static void compiler_barrier(void)
{
	__asm__ volatile("" ::: "memory");
}

/* The counter has fewer bits than the variable and may be negative. */
static int64_t sign_extend(uint64_t value, uint16_t width)
{
	unsigned int unused = 64u - width;

	return (int64_t)(value << unused) >> unused;
}

bool pm_self_page_read(const struct perf_event_mmap_page *page, pm_self_pmc_fn pmc,
		       uint64_t *value, uint64_t *waited_ns)
{
	const volatile struct perf_event_mmap_page *now = page;

	for (int tries = 0; tries < TRIES_MAX; tries++) {
		uint32_t lock = now->lock, index;
		uint64_t count, waited;

		compiler_barrier();
		index = now->index;
		if (!now->cap_user_rdpmc || index == 0 || !pmc_is_readable(index - 1) ||
		    now->pmc_width == 0 || now->pmc_width > 64)
			return false;
		waited = now->time_enabled - now->time_running;
		count = (uint64_t)now->offset +
			(uint64_t)sign_extend(pmc(index - 1), now->pmc_width);
		compiler_barrier();
		if (now->lock == lock && lock % 2 == 0) {
			*value = count;
			*waited_ns = waited;
			return true;
		}
	}
	return false;
}

static bool read_pages(const struct pm_self_counters *counters,
		       struct pm_self_reading *out)
{
	uint64_t waited[PM_SELF_COUNTERS];

	for (size_t i = 0; i < PM_SELF_COUNTERS; i++)
		if (!counters->pages[i] ||
		    !pm_self_page_read(counters->pages[i], read_pmc, &out->values[i],
				       &waited[i]))
			return false;
	out->waited_ns = waited[0];
	out->way = PM_SELF_BY_PAGE;
	return true;
}

/* ---- by call -------------------------------------------------------------------------------- */

/* Whether the descriptor still refers to our counter. A program that closes all its
 * descriptors may have opened another file with the same number, which must not be
 * read. */
static bool counter_is_ours(const struct pm_self_counters *counters, size_t i)
{
	uint64_t id;

	return ioctl(counters->fds[i], PERF_EVENT_IOC_ID, &id) == 0 &&
	       id == counters->ids[i];
}

static bool read_call(const struct pm_self_counters *counters,
		      struct pm_self_reading *out)
{
	/* This does not use libc's wrapper, which is a cancellation point. */
	struct {
		uint64_t len, enabled_ns, running_ns, values[PM_SELF_COUNTERS];
	} group;

	if (counters->fds[0] < 0 || !counter_is_ours(counters, 0) ||
	    syscall(SYS_read, counters->fds[0], &group, sizeof(group)) != sizeof(group) ||
	    group.len != PM_SELF_COUNTERS)
		return false;
	memcpy(out->values, group.values, sizeof(out->values));
	out->waited_ns = group.enabled_ns - group.running_ns;
	out->way = PM_SELF_BY_CALL;
	return true;
}

void pm_self_counters_begin(const struct pm_self_counters *counters,
			    struct pm_self_reading *out)
{
	out->way = PM_SELF_UNREAD;
	if (!read_pages(counters, out))
		read_call(counters, out);
}

bool pm_self_counters_end(const struct pm_self_counters *counters,
			  const struct pm_self_reading *begin,
			  uint64_t counted[PM_SELF_COUNTERS])
{
	struct pm_self_reading end;

	if (begin->way == PM_SELF_UNREAD ||
	    !(begin->way == PM_SELF_BY_PAGE ? read_pages(counters, &end)
					    : read_call(counters, &end)) ||
	    end.waited_ns != begin->waited_ns)
		return false;
	for (size_t i = 0; i < PM_SELF_COUNTERS; i++)
		counted[i] = end.values[i] - begin->values[i];
	return true;
}

/* ---- opening -------------------------------------------------------------------------------- */

static void map_pages(struct pm_self_counters *counters)
{
	counters->page_bytes = (size_t)sysconf(_SC_PAGESIZE);
	for (size_t i = 0; i < PM_SELF_COUNTERS; i++) {
		void *page = mmap(NULL, counters->page_bytes, PROT_READ, MAP_SHARED,
				  counters->fds[i], 0);

		if (page != MAP_FAILED)
			counters->pages[i] = page;
	}
}

int pm_self_counters_open(struct pm_self_counters *out,
			  const struct perf_event_attr attrs[PM_SELF_COUNTERS])
{
	struct pm_self_counters counters = { .fds = { -1, -1 } };

	for (size_t i = 0; i < PM_SELF_COUNTERS; i++) {
		struct perf_event_attr attr = attrs[i];

		attr.size = sizeof(attr);
#if defined(__aarch64__)
		if (attr.type == PERF_TYPE_HARDWARE)
			attr.config1 |= ARM_CONFIG1_USER_READ;
#endif
		attr.exclude_kernel = attr.exclude_hv = 1;
		attr.read_format = PERF_FORMAT_GROUP | PERF_FORMAT_TOTAL_TIME_ENABLED |
				   PERF_FORMAT_TOTAL_TIME_RUNNING;
		counters.fds[i] = (int)syscall(SYS_perf_event_open, &attr, 0, -1,
					       counters.fds[0], PERF_FLAG_FD_CLOEXEC);
		if (counters.fds[i] < 0 ||
		    ioctl(counters.fds[i], PERF_EVENT_IOC_ID, &counters.ids[i]) < 0) {
			int ret = -errno;

			for (size_t j = 0; j <= i; j++)
				if (counters.fds[j] >= 0)
					syscall(SYS_close, counters.fds[j]);
			return ret;
		}
	}
	map_pages(&counters);
	*out = counters;
	return 0;
}

int pm_self_counters_open_default(struct pm_self_counters *out)
{
	const struct perf_event_attr attrs[PM_SELF_COUNTERS] = {
		{ .type = PERF_TYPE_HARDWARE, .config = PERF_COUNT_HW_CPU_CYCLES },
		{ .type = PERF_TYPE_HARDWARE, .config = PERF_COUNT_HW_INSTRUCTIONS },
	};

	return pm_self_counters_open(out, attrs);
}

void pm_self_counters_close(struct pm_self_counters *counters)
{
	for (size_t i = 0; i < PM_SELF_COUNTERS; i++)
		if (counters->fds[i] >= 0 && counter_is_ours(counters, i))
			close(counters->fds[i]);
	for (size_t i = 0; i < PM_SELF_COUNTERS; i++)
		if (counters->pages[i])
			munmap(counters->pages[i], counters->page_bytes);
	*counters = (struct pm_self_counters){ .fds = { -1, -1 } };
}
