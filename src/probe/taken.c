/* SPDX-License-Identifier: MIT */
/* Finds places where a probe would break the program. The kernel itself reports what it
 * refuses: pm_hits_ask(). */
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

/* Loads of literals do harm: for a vector register, the kernel reads the literal relative
 * to its copy of the instruction; for other registers, older kernels read it from their
 * own memory. */
bool pm_probe_harms(uint16_t machine, const uint8_t *bytes, size_t len)
{
	uint32_t word;

	if (machine != EM_AARCH64 || len < sizeof(word))
		return false;
	memcpy(&word, bytes, sizeof(word));
	return (word & 0x3b000000) == 0x18000000;
}
