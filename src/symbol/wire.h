/* SPDX-License-Identifier: MIT */
/*
 * How a helper process tells us what it found. The helper has read files that others made, so
 * it is believed nothing: a message that is not of this form ends it.
 *
 * A message is the length of what follows (u32), a kind (u32), then
 *   symbol: the address by its place in the job's list (u32), how many functions (u32), and
 *           for each its line (u32), what follows (u32): name and file with their NUL, its
 *           start (u64)
 *   opening: which of the helper's jobs is being opened (u32), or how many there are: all
 *           are open; before all other messages
 *   done:   0, a negative errno or PM_SYMBOL_WIRE_* (i32); the job is over, the next one's messages follow
 * in host byte order: both sides are one program.
 */
#pragma once

#include "pm/symbol-crew.h"

enum {
	PM_SYMBOL_WIRE_FUNCTIONS_MAX = PM_SYMBOL_CHAIN_MAX,
	PM_SYMBOL_WIRE_BYTES_MAX =
		1 << 22, /* of one message; the outermost functions go first */
};

enum {
	PM_SYMBOL_WIRE_LIMITED =
		1, /* debug information was left out, see struct pm_symbol_options */
	PM_SYMBOL_WIRE_DAMAGED = 2, /* so were names */
};

enum pm_symbol_wire_kind {
	PM_SYMBOL_WIRE_SYMBOL,
	PM_SYMBOL_WIRE_DONE,
	PM_SYMBOL_WIRE_OPENING,
};

struct pm_symbol_wire_message {
	enum pm_symbol_wire_kind kind;
	uint32_t index;
	int32_t code;
	/* Texts are borrowed from the bytes; nothing is known of their characters. */
	struct pm_symbol_function functions[PM_SYMBOL_WIRE_FUNCTIONS_MAX];
	size_t functions_len;
};

void pm_symbol_wire_put_symbol(struct pm_str *to, uint32_t index,
			       const struct pm_symbol_function *functions, size_t len);
void pm_symbol_wire_put_opening(struct pm_str *to, uint32_t index);
void pm_symbol_wire_put_done(struct pm_str *to, int code);
/* 1 and how many bytes it took, 0 when the first message is not complete, -EBADMSG. */
int pm_symbol_wire_next(const void *bytes, size_t len, struct pm_symbol_wire_message *ret,
			size_t *taken);
