/* SPDX-License-Identifier: MIT */
#include "jit-internal.h"

#include <string.h>

static bool same_bytes(const uint8_t *a, const uint8_t *b, size_t len)
{
	return a == b || (a && b && memcmp(a, b, len) == 0);
}

static bool same_lines(const struct pm_jit_function *a, const struct pm_jit_function *b)
{
	if (a->lines == b->lines)
		return true;
	if (a->lines_len != b->lines_len)
		return false;
	for (size_t i = 0; i < a->lines_len; i++)
		if (a->lines[i].offset != b->lines[i].offset ||
		    a->lines[i].line != b->lines[i].line ||
		    strcmp(a->lines[i].file, b->lines[i].file) != 0)
			return false;
	return true;
}

bool pm_jit_function_holds(const struct pm_jit_function *a,
			   const struct pm_jit_function *b)
{
	if (b->lines_len > 0 && !same_lines(a, b))
		return false;
	if (!b->eh_frame)
		return true;
	return a->eh_frame && a->eh_frame_len == b->eh_frame_len &&
	       a->eh_frame_at == b->eh_frame_at &&
	       same_bytes(a->eh_frame, b->eh_frame, b->eh_frame_len) &&
	       (!b->code || same_bytes(a->code, b->code, b->len));
}

void pm_jit_function_place(const struct pm_jit_function *function, uint64_t address,
			   const char **file, uint32_t *line)
{
	uint64_t offset = address - function->start;
	size_t low = 0, high = function->lines_len;

	*file = function->file;
	*line = function->line;
	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (function->lines[middle].offset <= offset)
			low = middle + 1;
		else
			high = middle;
	}
	if (low > 0) {
		*file = function->lines[low - 1].file;
		*line = function->lines[low - 1].line;
	}
}
