/* SPDX-License-Identifier: MIT */
/* CFI sections made byte by byte (DWARF 5 §6.4.1, LSB 10.6). */
#pragma once

#include "pm/base.h"

#include <dwarf.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

enum {
	PCREL = DW_EH_PE_pcrel | DW_EH_PE_sdata4,
};

struct bytes {
	PM_VEC(uint8_t) vec;
};

static inline void put(struct bytes *to, const void *data, size_t len)
{
	for (size_t i = 0; i < len; i++)
		assert_int_equal(pm_vec_push(&to->vec, ((const uint8_t *)data)[i]), 0);
}

static inline void put_u8(struct bytes *to, uint8_t value)
{
	put(to, &value, 1);
}

static inline void put_u32(struct bytes *to, uint64_t value)
{
	put(to, &(uint32_t){ (uint32_t)value }, 4);
}

static inline void put_u64(struct bytes *to, uint64_t value)
{
	put(to, &value, 8);
}

/* The length field of an entry; end_entry() fills it in. */
static inline size_t begin_entry(struct bytes *to, bool is_64)
{
	if (is_64) {
		put_u32(to, 0xffffffff);
		put_u64(to, 0);
	} else {
		put_u32(to, 0);
	}
	return to->vec.len;
}

static inline void end_entry(struct bytes *to, size_t begin, bool is_64)
{
	uint64_t len;

	while (to->vec.len % 8 != 0)
		put_u8(to, DW_CFA_nop);
	len = to->vec.len - begin;
	memcpy(to->vec.data + begin - (is_64 ? 8 : 4), &len, is_64 ? 8 : 4);
}
