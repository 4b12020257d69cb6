/* SPDX-License-Identifier: MIT */
/*
 * Any bytes as a perf map that grows while it is read: the first two bytes say in pieces of
 * what size, and whether it is written anew in between.
 */
#include "pm/symbol.h"

#include <string.h>
#include <sys/mman.h>

enum {
	READ_BYTES = 1 << 20,
};

static void check_function(struct pm_jit_table *table, uint64_t address)
{
	const struct pm_jit_function *function = pm_jit_table_find(table, address);
	const char *file;
	uint32_t line;

	if (!function)
		return;
	if (address - function->start >= function->len || function->len == 0 ||
	    (function->name && strlen(function->name) == 0))
		abort();
	pm_jit_function_place(function, address, &file, &line);
	if (file && strlen(file) == 0)
		abort();
	if (pm_jit_table_use(table, address) != function)
		abort();
}

/* Numbers as they stand in the text, and their neighbours: what is claimed is hit. */
static void check_table(struct pm_jit_table *table, const uint8_t *data, size_t size)
{
	uint64_t value = 0;

	for (size_t i = 0; i < size; i++) {
		char digit[2] = { (char)data[i], 0 };
		char *end;
		unsigned long number = strtoul(digit, &end, 16);

		if (end != digit && data[i] != '-' && data[i] != '+') {
			value = value << 4 | number;
			continue;
		}
		check_function(table, value);
		check_function(table, value - 1);
		value = 0;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static int fd = -1;
	struct pm_jit_table *table = pm_jit_table_new(NULL);
	struct pm_perf_map map = { 0 };
	struct pm_jit_table_stats stats;
	size_t piece, at = 0;
	bool anew;

	if (fd < 0)
		fd = memfd_create("map", MFD_CLOEXEC);
	if (!table || fd < 0 || ftruncate(fd, 0) < 0 || size < 2) {
		pm_jit_table_free(table);
		return 0;
	}
	piece = (size_t)data[0] * 64 + 40;
	anew = data[1] & 1;
	data += 2;
	size -= 2;
	for (size_t off = 0; off < size; off += piece) {
		size_t len = size - off < piece ? size - off : piece;

		if (anew && off > size / 2) {
			anew = false;
			at = 0;
			if (ftruncate(fd, 0) < 0)
				abort();
		}
		if (pwrite(fd, data + off, len, (off_t)at) != (ssize_t)len)
			abort();
		at += len;
		if (pm_perf_map_read(&map, fd, table, READ_BYTES) != 0)
			abort();
	}
	check_table(table, data, size);
	pm_jit_table_clear(table);
	pm_jit_table_stats(table, &stats);
	if (stats.functions != 0 || stats.with_eh_frame != 0)
		abort();
	pm_jit_table_free(table);
	return 0;
}
