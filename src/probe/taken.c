/* SPDX-License-Identifier: MIT */
/* Where the kernel takes a probe. It is not asked: what it refuses it tells nobody when the
 * program is mapped only later. */
#include "pm/probe.h"

#include <elf.h>
#include <string.h>

/*
 * Instructions with a segment override (of which one is called "notrack") or a lock have no
 * probes: is_prefix_bad() of arch/x86/kernel/uprobes.c, Linux 6.18.
 */
static enum pm_probe_taken taken_x86(const uint8_t *bytes, size_t len)
{
	static const uint8_t refused[] = { 0x26, 0x2e, 0x36, 0x3e, 0xf0 };
	static const uint8_t others[] = { 0x64, 0x65, 0x66, 0x67, 0xf2, 0xf3 };

	for (size_t i = 0; i < len; i++) {
		if (memchr(refused, bytes[i], sizeof(refused)))
			return PM_PROBE_REFUSED;
		if (!memchr(others, bytes[i], sizeof(others)))
			break;
	}
	return PM_PROBE_TAKEN;
}

/* Hints that check signatures, wait, or are of a later time. */
static bool is_refused_hint(uint32_t word)
{
	static const uint8_t taken[] = { 0, 7, 8, 10, 24, 25, 26, 27, 32, 34, 36, 38 };

	return (word & 0xfffff01f) == 0xd503201f &&
	       !memchr(taken, (int)(word >> 5 & 127), sizeof(taken));
}

/* What the kernel can neither step over elsewhere nor emulate: arm_probe_decode_insn() of
 * arch/arm64/kernel/probes/decode-insn.c, Linux 6.1. */
static enum pm_probe_taken taken_aarch64(const uint8_t *bytes, size_t len)
{
	static const struct {
		uint32_t mask, value;
	} refused[] = {
		{ 0x3f800000, 0x08000000 }, /* exclusive ones */
		{ 0xff000000, 0xd4000000 }, /* svc, brk */
		{ 0xfff00000, 0xd5100000 }, /* msr */
		{ 0xfff8f01f, 0xd500401f }, /* msr of an immediate */
		{ 0xffffffe0, 0xd53b4220 }, /* mrs of DAIF */
		{ 0xfe000800, 0xd6000800 }, /* braa, blraa, retaa */
		{ 0xffff0000, 0 }, /* udf */
	};
	uint32_t word;

	if (len < sizeof(word))
		return PM_PROBE_TAKEN;
	memcpy(&word, bytes, sizeof(word));
	/* Literals: of a vector register the kernel takes it from where its copy of the
	 * instruction is; of others older ones read it as if it were their own memory. */
	if ((word & 0x3b000000) == 0x18000000)
		return PM_PROBE_HARMS;
	for (size_t i = 0; i < PM_ARRAY_LEN(refused); i++)
		if ((word & refused[i].mask) == refused[i].value)
			return PM_PROBE_REFUSED;
	return is_refused_hint(word) ? PM_PROBE_REFUSED : PM_PROBE_TAKEN;
}

enum pm_probe_taken pm_probe_takes(uint16_t machine, const uint8_t *bytes, size_t len)
{
	switch (machine) {
	case EM_386:
	case EM_X86_64:
		return taken_x86(bytes, len);
	case EM_AARCH64:
		return taken_aarch64(bytes, len);
	default:
		return PM_PROBE_TAKEN;
	}
}
