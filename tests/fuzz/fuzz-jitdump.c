/* SPDX-License-Identifier: MIT */
/*
 * Any bytes as a jitdump that grows while it is read, up to several times, and what it brings
 * for unwinding in the hands of the unwinder.
 */
#include "pm/symbol.h"
#include "pm/unwind.h"

#include <string.h>
#include <sys/mman.h>

enum {
	STEPS = 4,
	READ_BYTES = 1 << 20,
	UNWOUND_MAX = 16, /* addresses of one input */
};

static void unwind(const struct pm_jit_function *function, uint64_t address)
{
	static struct pm_unw_frame frames[PM_UNW_FRAMES_MAX];
	static const uint8_t bytes[256] = { 1, 2, 3 };
	struct pm_unw_part_load load = { .vaddr = function->start,
					 .filesz = function->len,
					 .executable = true };
	struct pm_unw_part code = { .svma = function->start,
				    .data = function->code,
				    .len = function->code ? (size_t)function->len : 0 };
	struct pm_unw_parts parts = { .arch = PM_UNW_X86_64,
				      .loads = &load,
				      .loads_len = 1,
				      .eh_frame = { .svma = function->eh_frame_at,
						    .data = function->eh_frame,
						    .len = function->eh_frame_len },
				      .code = &code,
				      .code_len = 1 };
	struct pm_unw_map map = { .start = function->start,
				  .end = function->start + function->len };
	struct pm_unw_space space = { .maps = &map, .len = 1 };
	struct pm_unw_regs regs = { .known = (1u << PM_UNW_X86_64_REGS) - 1 };
	struct pm_unw_stack stack = { .start = 0x7000, .data = bytes, .len = 256 };
	/* One for all: its megabytes are what a new one costs. */
	static struct pm_unwinder *unwinder;
	enum pm_unw_stop stop;

	for (size_t i = 0; i < PM_UNW_X86_64_REGS; i++)
		regs.value[i] = 0x7000;
	regs.value[PM_UNW_X86_64_RIP] = address;
	if (!unwinder)
		unwinder = pm_unwinder_new();
	if (unwinder && pm_unw_module_from_parts(&map.module, &parts, NULL) == 0) {
		pm_unwind(unwinder, &space, &regs, &stack, frames, &stop);
		pm_unw_module_free(map.module);
	}
}

static void check(struct pm_jit_table *table, uint64_t address, unsigned int *unwound)
{
	const struct pm_jit_function *function = pm_jit_table_use(table, address);
	const char *file;
	uint32_t line;

	if (!function)
		return;
	if (address - function->start >= function->len ||
	    (function->name && strlen(function->name) == 0))
		abort();
	pm_jit_function_place(function, address, &file, &line);
	if (file && strlen(file) == 0)
		abort();
	if (function->eh_frame && ++*unwound <= UNWOUND_MAX)
		unwind(function, address);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static int fd = -1;
	struct pm_jit_table *table = pm_jit_table_new(NULL);
	struct pm_jitdump *dump = pm_jitdump_new();
	uint64_t time_ns = 0, until_ns = 0;
	unsigned int unwound = 0;

	if (fd < 0)
		fd = memfd_create("dump", MFD_CLOEXEC);
	if (!table || !dump || fd < 0 || ftruncate(fd, 0) < 0)
		goto out;
	for (size_t step = 1; step <= STEPS; step++) {
		size_t from = size * (step - 1) / STEPS, to = size * step / STEPS;

		if (pwrite(fd, data + from, to - from, (off_t)from) !=
		    (ssize_t)(to - from))
			abort();
		/* Half of the records that wait, by time, and all at the end. */
		until_ns = step == STEPS ? UINT64_MAX
			   : pm_jitdump_peek(dump, fd, &time_ns)
				   ? time_ns + time_ns % 1000
				   : 0;
		pm_jitdump_read(dump, fd, table, until_ns, READ_BYTES, NULL);
	}
	if (pm_jitdump_peek(dump, fd, &time_ns))
		abort();
	/* Wherever eight bytes of the input look like an address. */
	for (size_t i = 0; i + 8 <= size; i += 8) {
		uint64_t address;

		memcpy(&address, data + i, 8);
		check(table, address, &unwound);
		check(table, address + 3, &unwound);
	}
out:
	pm_jitdump_free(dump);
	pm_jit_table_free(table);
	return 0;
}
