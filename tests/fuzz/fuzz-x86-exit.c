/* SPDX-License-Identifier: MIT */
/* Interrupted code that is to be followed to its return; the program counter is in it. */
#include "unwind/unwind-parts.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define CODE UINT64_C(0x7f0000000000)

struct code {
	const uint8_t *bytes;
	size_t len;
};

static bool read_code(void *user, uint64_t address, void *ret, size_t len)
{
	const struct code *code = user;

	if (address < CODE || address - CODE > code->len ||
	    len > code->len - (address - CODE))
		return false;
	memcpy(ret, code->bytes + (address - CODE), len);
	return true;
}

/* The first byte says where in the rest. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct pm_unw_map map = { .start = CODE, .end = CODE + size };
	struct code code = { data + 1, size - 1 };
	struct pm_unw_space space = {
		.maps = &map, .len = 1, .read_code = read_code, .read_code_user = &code
	};
	struct pm_unw_row row = { 0 };

	if (size < 2)
		return 0;
	if (pm_unw_x86_find_exit(&space, CODE + data[0] % (size - 1), NULL, &row) ==
		    PM_UNW_EXIT_BY_ROW &&
	    (row.cfa_offset < 8 || row.regs[PM_UNW_X86_64_RIP].value >= 0 ||
	     row.cfa_offset + row.regs[PM_UNW_X86_64_RIP].value < 0))
		abort(); /* the return address is not between the stack pointer and the CFA */
	return 0;
}
