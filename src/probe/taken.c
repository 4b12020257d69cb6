/* SPDX-License-Identifier: MIT */
/* Where a probe would break the program. What the kernel refuses it says itself: pm_hits_ask(). */
#include "pm/probe.h"

#include <elf.h>
#include <string.h>

#if defined(__x86_64__)
#define OUR_MACHINE EM_X86_64
#elif defined(__aarch64__)
#define OUR_MACHINE EM_AARCH64
#else
#define OUR_MACHINE EM_NONE
#endif

bool pm_probe_is_ours(uint16_t machine)
{
	return machine == OUR_MACHINE;
}

/* Literals: of a vector register the kernel takes it from where its copy of the instruction is;
 * of others older kernels read it as if it were their own memory. */
bool pm_probe_harms(uint16_t machine, const uint8_t *bytes, size_t len)
{
	uint32_t word;

	if (machine != EM_AARCH64 || len < sizeof(word))
		return false;
	memcpy(&word, bytes, sizeof(word));
	return (word & 0x3b000000) == 0x18000000;
}
