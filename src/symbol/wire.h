/* SPDX-License-Identifier: MIT */
/*
 * How a helper process reports its results. The helper has read untrusted files and is
 * not trusted either: a message that does not have this form ends it.
 * A message is the length of the following bytes (u32), a kind (u32), and then
 *   symbol: the address's index in the job's list (u32), the number of functions (u32),
 *           and for each its line (u32), flags for the fields that follow (u32), name and
 *           file with their NUL, its start (u64)
 *   opening: the index of the helper's job that is being opened (u32), or the number of
 *           jobs: all are open; before all other messages
 *   done:   0, a negative errno or PM_SYMBOL_WIRE_* (i32); the job is done, and messages
 *           of the next one follow
 * in host byte order: both sides are the same program.
 */
#pragma once

#include "pm/symbol-crew.h"

enum {
	PM_SYMBOL_WIRE_FUNCTIONS_MAX = PM_SYMBOL_CHAIN_MAX,
	PM_SYMBOL_WIRE_BYTES_MAX =
		1 << 22, /* of one message; if it is longer, outer functions are left out
		          * first */
};

enum {
	PM_SYMBOL_WIRE_LIMITED =
		1, /* debug information was not read; see struct pm_symbol_options */
	PM_SYMBOL_WIRE_DAMAGED = 2, /* names are missing, because a part of the file
	                             * cannot be read */
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
	/* The strings are borrowed from the bytes and may contain any characters. */
	struct pm_symbol_function functions[PM_SYMBOL_WIRE_FUNCTIONS_MAX];
	size_t functions_len;
};

void pm_symbol_wire_put_symbol(struct pm_str *to, uint32_t index,
			       const struct pm_symbol_function *functions, size_t len);
void pm_symbol_wire_put_opening(struct pm_str *to, uint32_t index);
void pm_symbol_wire_put_done(struct pm_str *to, int code);
/* Parses the first message. Returns 1 and its length in @taken; 0 if it is incomplete;
 * -EBADMSG. */
int pm_symbol_wire_next(const void *bytes, size_t len, struct pm_symbol_wire_message *out,
			size_t *taken);
