/* SPDX-License-Identifier: MIT */
/*
 * Any bytes as an ELF file: symbols, PLT, debug information. Addresses all over the range
 * that small files have their code in, so that whatever is claimed is hit.
 */
#include "pm/symbol.h"

#include <string.h>

enum {
	ADDRESSES = 512,
	STEP = 13, /* with the above, the first 6656 bytes of an image and its last ones */
};

static uint64_t address_of(size_t index)
{
	return index < ADDRESSES ? index * STEP : UINT64_MAX;
}

static int take(void *user, size_t index, const struct pm_symbol_function *functions,
		size_t len)
{
	size_t *next = user;

	/* Each once, in order; every text readable to its end. */
	if (index != (*next)++)
		abort();
	for (size_t i = 0; i < len; i++)
		if ((functions[i].name && strlen(functions[i].name) == 0) ||
		    (functions[i].file && strlen(functions[i].file) == 0) ||
		    (functions[i].start > 0 &&
		     (functions[i].name || functions[i].start > address_of(index))))
			abort();
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct pm_symbol_options options = { .inlines = true,
						   .lines = true,
						   .starts = true,
						   .debug_dir = "/nonexistent" };
	uint64_t addresses[ADDRESSES + 1];
	size_t next = 0;
	int code;

	for (size_t i = 0; i <= ADDRESSES; i++)
		addresses[i] = address_of(i);
	code = pm_symbols_resolve_memory(data, size, addresses, ADDRESSES + 1, &options,
					 take, &next, NULL);
	if (code == 0 && next != ADDRESSES + 1)
		abort();
	return 0;
}
