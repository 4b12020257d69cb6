/* SPDX-License-Identifier: MIT */
#include "live-code.h"

#include <string.h>
#include <time.h>

enum {
	PAGE_BYTES = 4096, /* of this cache; the machine's pages may be larger */
	PAGES = 64, /* a power of two */
	/* The limit for one sample: code that is followed to its return is in one or two
	 * pages. */
	PAGES_PER_SAMPLE = 16,
};

struct pm_chain_live_page {
	uint64_t address;
	uint64_t read_ns; /* time of the read, CLOCK_MONOTONIC; 0: never */
	pid_t pid;
	size_t len; /* the number of bytes that could be read */
	uint8_t bytes[PAGE_BYTES];
};

static uint64_t live_code_clock_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

void pm_chain_live_begin(struct pm_chain_modules *modules, uint64_t time_ns,
			 size_t samples)
{
	modules->live_since_ns = time_ns;
	modules->live_pages_left = (uint32_t)(samples * PAGES_PER_SAMPLE);
}

static const struct pm_chain_live_page *find_live_page(struct pm_chain_modules *modules,
						       pid_t pid, uint64_t address)
{
	struct pm_chain_live_page *page;

	if (!modules->live_pages)
		modules->live_pages = calloc(PAGES, sizeof(*modules->live_pages));
	if (!modules->live_pages)
		return NULL;
	page = &modules->live_pages[pm_hash_mix(address, (uint64_t)pid) & (PAGES - 1)];
	/* Code may be replaced at any time: a page that was read before the sample was
	 * taken need not contain the code that ran then. */
	if (page->address != address || page->pid != pid ||
	    page->read_ns <= modules->live_since_ns) {
		if (modules->live_pages_left == 0)
			return NULL;
		modules->live_pages_left--;
		page->address = address;
		page->pid = pid;
		page->read_ns = live_code_clock_ns();
		page->len = pm_trace_read(pid, address, page->bytes, PAGE_BYTES);
	}
	return page;
}

bool pm_chain_live_read(struct pm_chain_modules *modules, pid_t pid, uint64_t address,
			void *out, size_t len)
{
	uint8_t *to = out;

	while (len > 0) {
		uint64_t skip = address % PAGE_BYTES;
		size_t here = PM_MIN(len, PAGE_BYTES - skip);
		const struct pm_chain_live_page *page =
			find_live_page(modules, pid, address - skip);

		if (!page || page->len < skip + here)
			return false;
		memcpy(to, page->bytes + skip, here);
		to += here;
		address += here;
		len -= here;
	}
	return true;
}
