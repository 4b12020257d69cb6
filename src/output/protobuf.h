/* SPDX-License-Identifier: MIT */
/* The wire format of Protocol Buffers, as far as pprof's files need it. */
#pragma once

#include "pm/base.h"

enum pm_wire {
	PM_WIRE_VARINT = 0,
	PM_WIRE_BYTES = 2,
};

static inline void pm_wire_varint(struct pm_str *str, uint64_t value)
{
	while (value >= 0x80) {
		pm_str_putc(str, (char)(value | 0x80));
		value >>= 7;
	}
	pm_str_putc(str, (char)value);
}

static inline void pm_wire_key(struct pm_str *str, unsigned field, enum pm_wire wire)
{
	pm_wire_varint(str, (uint64_t)field << 3 | wire);
}

/* Appends a number, unless it is 0, the default of an absent field. */
static inline void pm_wire_number(struct pm_str *str, unsigned field, uint64_t value)
{
	if (value == 0)
		return;
	pm_wire_key(str, field, PM_WIRE_VARINT);
	pm_wire_varint(str, value);
}

static inline void pm_wire_bytes(struct pm_str *str, unsigned field, const char *bytes,
				 size_t len)
{
	pm_wire_key(str, field, PM_WIRE_BYTES);
	pm_wire_varint(str, len);
	pm_str_append(str, bytes, len);
}
