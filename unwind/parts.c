/* SPDX-License-Identifier: MIT */
/* Code of modules without a file, which are made from parts. */
#include "unwind-parts.h"

#include <stdatomic.h>
#include <string.h>

/* The limit for all modules together: a program can generate any number of functions. */
#define CODE_BYTES_MAX ((size_t)1 << 26)

static atomic_size_t code_bytes;

static void *map_code_memory(uint64_t len)
{
	void *ret = NULL;

	if (len > CODE_BYTES_MAX)
		return NULL;
	if (atomic_fetch_add(&code_bytes, len) <= CODE_BYTES_MAX - len)
		ret = malloc(len);
	if (!ret)
		atomic_fetch_sub(&code_bytes, len);
	return ret;
}

static void unmap_code_memory(const void *data, size_t len)
{
	atomic_fetch_sub(&code_bytes, len);
	free((void *)(uintptr_t)data);
}

static int compare_parts_by_svma(const void *a, const void *b)
{
	const struct pm_unw_part *x = a, *y = b;

	return PM_COMPARE(x->svma, y->svma);
}

/*
 * Merges pieces that overlap or touch. Afterwards any range is either within one piece or
 * not available. If pieces contradict each other, the one with the higher start wins.
 */
static int merge_code_parts(struct pm_unw_module *module, const struct pm_unw_part *parts,
			    size_t from, size_t to)
{
	uint64_t start = parts[from].svma, end = start;
	uint8_t *data;

	for (size_t i = from; i < to; i++)
		if (parts[i].svma - start + parts[i].len > end - start)
			end = parts[i].svma + parts[i].len;
	data = map_code_memory(end - start);
	if (!data)
		return -ENOMEM;
	for (size_t i = from; i < to; i++)
		memcpy(data + (parts[i].svma - start), parts[i].data, parts[i].len);
	if (pm_vec_push(&module->code,
			(struct pm_unw_part){ start, data, (size_t)(end - start) }) < 0) {
		unmap_code_memory(data, (size_t)(end - start));
		return -ENOMEM;
	}
	return 0;
}

int pm_unw_code_add(struct pm_unw_module *module, const struct pm_unw_part *parts,
		    size_t len)
{
	PM_AUTO_FREE struct pm_unw_part *sorted = NULL;
	size_t kept = 0, from = 0;

	if (len == 0)
		return 0;
	sorted = calloc(len, sizeof(*sorted));
	if (!sorted)
		return -ENOMEM;
	for (size_t i = 0; i < len; i++)
		if (parts[i].len > 0 && parts[i].svma + parts[i].len > parts[i].svma)
			sorted[kept++] = parts[i];
	qsort(sorted, kept, sizeof(*sorted), compare_parts_by_svma);
	while (from < kept) {
		uint64_t end = sorted[from].svma + sorted[from].len;
		size_t to = from + 1;

		for (; to < kept && sorted[to].svma <= end; to++)
			if (sorted[to].svma + sorted[to].len > end)
				end = sorted[to].svma + sorted[to].len;
		if (merge_code_parts(module, sorted, from, to) < 0)
			return -ENOMEM;
		from = to;
	}
	return 0;
}

bool pm_unw_code_read(const struct pm_unw_module *module, uint64_t svma, void *out,
		      size_t len)
{
	size_t low = 0, high = module->code.len;
	const struct pm_unw_part *part;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (module->code.data[middle].svma <= svma)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == 0)
		return false;
	part = &module->code.data[low - 1];
	if (svma - part->svma > part->len || len > part->len - (svma - part->svma))
		return false;
	memcpy(out, (const uint8_t *)part->data + (svma - part->svma), len);
	return true;
}

void pm_unw_code_release(struct pm_unw_module *module)
{
	for (size_t i = 0; i < module->code.len; i++)
		unmap_code_memory(module->code.data[i].data, module->code.data[i].len);
	pm_vec_release(&module->code);
}
