/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "pm/run.h"

enum {
	WORTH_PERCENT = 10,
};
#define NS_PER_S 1000000000u
#define WORTH_NS (NS_PER_S / 10)

/* Whether @cpu is in a list such as 0,2-4. */
static bool is_cpu_in_list(const char *list, uint32_t cpu)
{
	while (*list) {
		char *end;
		unsigned long from = strtoul(list, &end, 10), to = from;

		if (end == list)
			return false;
		if (*end == '-')
			to = strtoul(end + 1, &end, 10);
		if (cpu >= from && cpu <= to)
			return true;
		list = *end == ',' ? end + 1 : "";
	}
	return false;
}

bool pm_stolen_parse(const char *line, const char *cpus, long ticks_per_s, uint64_t *out)
{
	uint64_t ticks, ns;
	uint32_t cpu;
	int begin = 0;

	if (ticks_per_s <= 0)
		return false;
	if (!cpus && strncmp(line, "cpu ", 4) == 0)
		begin = 4;
	else if (!cpus || sscanf(line, "cpu%" SCNu32 " %n", &cpu, &begin) != 1 ||
		 !is_cpu_in_list(cpus, cpu))
		return false;
	if (begin == 0 ||
	    sscanf(line + begin, "%*u %*u %*u %*u %*u %*u %*u %" SCNu64, &ticks) != 1)
		return false;
	if (__builtin_mul_overflow(ticks, NS_PER_S / (uint64_t)ticks_per_s, &ns))
		return false;
	*out = ns;
	return true;
}

bool pm_stolen_ns(const char *cpus, uint64_t *out)
{
	PM_AUTO_FCLOSE FILE *file = fopen("/proc/stat", "re");
	long ticks_per_s = sysconf(_SC_CLK_TCK);
	uint64_t sum = 0, ns;
	bool known = false;
	char line[512];

	while (file && fgets(line, sizeof(line), file) && strncmp(line, "cpu", 3) == 0) {
		if (!pm_stolen_parse(line, cpus, ticks_per_s, &ns))
			continue;
		if (__builtin_add_overflow(sum, ns, &sum))
			return false;
		known = true;
	}
	if (known)
		*out = sum;
	return known;
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
