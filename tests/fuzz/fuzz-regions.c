/* SPDX-License-Identifier: MIT */
/* Code of others: any bytes as a function, and files with functions, lines and inlined code
 * that regions are looked for in. Bytes that begin with an ELF header are a file. */
#include <elf.h>
#include <string.h>
#include <sys/mman.h>

#include "src/count/flow.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum {
	BASE = 0x1000
};

struct code {
	const uint8_t *bytes;
	size_t len;
};

/* The code is its own table of jumps, too. */
static bool read_code(void *user, uint64_t address, void *ret, size_t len)
{
	const struct code *code = user;

	if (address < BASE || address - BASE > code->len ||
	    len > code->len - (address - BASE))
		return false;
	memcpy(ret, code->bytes + (address - BASE), len);
	return true;
}

static bool part_of_code(void *user, uint64_t address, struct pm_probe_piece *ret)
{
	const struct code *code = user;

	if (address < BASE || address - BASE >= code->len)
		return false;
	*ret = (struct pm_probe_piece){ address, BASE + code->len };
	return true;
}

static void check_places(const struct pm_flow *flow, const pm_places *places)
{
	for (size_t i = 0; i < places->len; i++)
		if (places->data[i].len > 15 ||
		    (places->data[i].len > 0 &&
		     pm_flow_find(flow, places->data[i].address) == SIZE_MAX))
			abort();
}

/* The first half is the function, the rest may be parts of it. */
static void any_bytes(uint16_t machine, const uint8_t *data, size_t size)
{
	struct code code = { data, size };
	struct pm_flow_source source = { .machine = machine,
					 .is_64 = true,
					 .read = read_code,
					 .part = part_of_code,
					 .user = &code };
	struct pm_probe_piece whole = { BASE, BASE + (size + 1) / 2 };
	/* Where a word may begin. */
	struct pm_probe_piece part = { BASE + size * 3 / 16 * 4, BASE + size };
	struct pm_probe_piece range = { BASE + size / 4, BASE + size / 3 + 1 };
	struct pm_flow_doubts doubts = { 0 };
	pm_places places = { 0 };
	struct pm_flow flow;

	if (pm_flow_open(&flow, &source, &whole, &part, 1, size % 2 == 0) < 0)
		return;
	if (pm_flow_function_places(&flow, &places, &doubts) == 0)
		check_places(&flow, &places);
	pm_vec_clear(&places);
	if (pm_flow_range_places(&flow, &range, 1, &places, &doubts) == 0)
		check_places(&flow, &places);
	pm_vec_release(&places);
	pm_flow_close(&flow);
}

static void one_file(const uint8_t *data, size_t size)
{
	static const struct {
		bool range;
		const char *text;
	} words[] = { { false, "*" },
		      { false, "inner" },
		      { false, "tiny.c:9" },
		      { true, "tiny.c:1-99" },
		      { true, "0x1000-0x1040" } };
	const struct pm_probe_context context = { .debug_dir = "/nonexistent" };
	PM_AUTO_CLOSE int fd = memfd_create("fuzz", MFD_CLOEXEC);

	if (fd < 0 || write(fd, data, size) != (ssize_t)size)
		return;
	for (size_t i = 0; i < PM_ARRAY_LEN(words); i++) {
		char text[64];
		struct pm_region_spec spec = { words[i].range, text };
		struct pm_regions regions = { 0 };
		struct pm_error err = { 0 };

		snprintf(text, sizeof(text), "%s@/proc/self/fd/%d", words[i].text, fd);
		if (pm_regions_find(&regions, &spec, 1, &context, &err) < 0 &&
		    err.text[0] == '\0')
			abort();
		pm_regions_release(&regions);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const uint16_t machines[] = { EM_X86_64, EM_AARCH64 };
	PM_AUTO_FREE uint8_t *copy = malloc(size + 1);

	if (!copy || size == 0 || size > 1 << 20)
		return 0;
	/* Exactly so many bytes, for the sanitizer. */
	memcpy(copy, data, size);
	if (size >= EI_NIDENT && memcmp(data, ELFMAG, SELFMAG) == 0)
		one_file(copy, size);
	else
		for (size_t i = 0; i < PM_ARRAY_LEN(machines); i++)
			any_bytes(machines[i], copy, size);
	return 0;
}
