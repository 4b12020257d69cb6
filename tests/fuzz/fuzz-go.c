/* SPDX-License-Identifier: MIT */
/* Any bytes as a Go program: its function table is found, and read at many addresses. */
#include "pm/go.h"

#include <string.h>

struct bytes {
	const uint8_t *data;
	size_t size;
};

static const uint8_t *read_bytes(void *user, uint64_t offset, size_t len)
{
	const struct bytes *bytes = user;

	return offset <= bytes->size && len <= bytes->size - offset ? bytes->data + offset
								    : NULL;
}

/* Every text readable to its end. */
static void read_text(const char *text)
{
	if (text && strlen(text) == 0)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	enum {
		ADDRESSES = 128,
		WORK = 100000
	};
	struct bytes bytes = { data, size };
	const struct pm_go_file file = { read_bytes, &bytes };
	struct pm_go_frame frames[PM_GO_INLINE_MAX];
	struct pm_go_table table;
	uint32_t work_left = WORK;

	if (pm_go_open(&table, &file) < 0)
		return 0;
	if (table.low >= table.high)
		abort();
	for (uint64_t i = 0; i < ADDRESSES; i++) {
		uint64_t svma = table.low + i * 3;
		struct pm_go_function function;
		int32_t stack;
		size_t len;

		if (pm_go_find(&table, svma, &function) < 0)
			continue;
		read_text(pm_go_name(&table, &function));
		pm_go_stack_bytes(&table, &function, svma, &work_left, &stack);
		len = pm_go_frames(&table, &function, svma, &work_left, frames);
		if (len < 1 || len > PM_GO_INLINE_MAX)
			abort();
		for (size_t k = 0; k < len; k++) {
			read_text(frames[k].name);
			read_text(frames[k].file);
		}
	}
	return 0;
}
