/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <string.h>

#include "pm/run.h"

enum {
	WORTH_PERCENT = 10,
};
#define NS_PER_S 1000000000u
#define WORTH_NS (NS_PER_S / 10)

bool pm_stolen_parse(const char *line, long ticks_per_s, uint64_t *ret)
{
	uint64_t ticks, ns;

	if (ticks_per_s <= 0 || strncmp(line, "cpu ", 4) != 0 ||
	    sscanf(line, "cpu %*u %*u %*u %*u %*u %*u %*u %" SCNu64, &ticks) != 1)
		return false;
	if (__builtin_mul_overflow(ticks, NS_PER_S / (uint64_t)ticks_per_s, &ns))
		return false;
	*ret = ns;
	return true;
}

bool pm_stolen_ns(uint64_t *ret)
{
	PM_AUTO_FCLOSE FILE *file = fopen("/proc/stat", "re");
	char line[512];

	return file && fgets(line, sizeof(line), file) &&
	       pm_stolen_parse(line, sysconf(_SC_CLK_TCK), ret);
}

bool pm_stolen_text(char *text, size_t size, const char *clock, uint64_t clock_ns,
		    uint64_t stolen_ns)
{
	if (stolen_ns < WORTH_NS || stolen_ns < clock_ns / 100 * WORTH_PERCENT)
		return false;
	snprintf(
		text, size,
		"the host took %.2f s of this machine's CPU time for others meanwhile: %s "
		"(%.2f s) goes on while a program's CPU is away, so that it may be too long "
		"by as much",
		(double)stolen_ns / NS_PER_S, clock, (double)clock_ns / NS_PER_S);
	return true;
}
