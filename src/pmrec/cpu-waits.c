/* SPDX-License-Identifier: MIT */
#include "cpu-waits.h"

#include <inttypes.h>

#include "progress.h"
#include "realtime.h"

/* Waits at least this long are reported: they explain why the recording took longer than
 * asked for. */
#define LONG_NS 1000000000ull

/*
 * Returns how long this thread has waited for a CPU since it was created: the second
 * number of schedstat (Documentation/scheduler/sched-stats.rst). Returns 0 if the kernel
 * does not report it.
 */
static uint64_t read_waited_ns(void)
{
	FILE *file = fopen("/proc/thread-self/schedstat", "re");
	uint64_t ran, waited = 0;

	if (!file)
		return 0;
	if (fscanf(file, "%" SCNu64 " %" SCNu64, &ran, &waited) != 2)
		waited = 0;
	fclose(file);
	return waited;
}

void pm_rec_cpu_waits_begin(struct pm_rec_session *session)
{
	session->cpu_waits.before_ns = read_waited_ns();
}

void pm_rec_cpu_waits_end(struct pm_rec_session *session)
{
	session->cpu_waits.end_ns = read_waited_ns();
}

void pm_rec_cpu_waits_warn(struct pm_rec_session *session)
{
	uint64_t before = session->cpu_waits.before_ns, now = read_waited_ns();
	uint64_t after =
		now > session->cpu_waits.end_ns ? now - session->cpu_waits.end_ns : 0;
	char text[192];

	if (before + after < LONG_NS)
		return;
	snprintf(
		text, sizeof(text),
		"the machine is overloaded: pmrec had to wait for a CPU, %.1f s before the "
		"recording and %.1f s after it%s",
		(double)before / 1e9, (double)after / 1e9,
		pm_rec_realtime_is_refused(session)
			? "; try: sudo (for real-time priority)"
			: "");
	pm_rec_warn(session, text);
}
