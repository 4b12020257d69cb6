/* SPDX-License-Identifier: MIT */
/*
 * Whether the samples stand for what the command did: the sum of a clock's periods against
 * the CPU time that the kernel accounts (getrusage), and whether the kernel slowed sampling
 * down meanwhile.
 */
#pragma once

#include "session.h"

/* What is known of it; plain numbers, so that it can be tested. */
struct pm_rec_coverage {
	uint64_t cpu_ns; /* accounted: user time alone for an event without the kernel */
	bool user_only;
	uint64_t period_ns; /* of one sample */
	uint64_t sampled_ns; /* sum of the periods */
	uint64_t lost_ns; /* the lost samples stand for so much at most */
	uint64_t
		stolen_ns; /* at most, by the host: CPU time leaves it out, a clock does not */
	uint64_t threads; /* that were started */
	uint64_t cpus;
};

enum pm_rec_cover {
	PM_REC_COVER_WELL, /* or too little happened to tell */
	PM_REC_COVER_SHORT_THREADS, /* each begins a new period; they may explain it */
	PM_REC_COVER_SKIPPED, /* they do not: timer ticks were not samples */
	PM_REC_COVER_TOO_MUCH, /* more than happened */
};
enum pm_rec_cover pm_rec_coverage_judge(const struct pm_rec_coverage *known);

/* The same for any event, by what the kernel has counted of it. */
struct pm_rec_counted {
	uint64_t counted, sampled; /* of everybody */
	uint64_t others; /* of `sampled`: of samples that were left out */
	uint64_t lost; /* at most; not in `sampled` */
	uint64_t
		away; /* by a clock of CPUs, while the host had them: no timer ticks then */
	uint64_t samples, enough; /* so many prove something */
	uint64_t period; /* the largest of a sample */
	uint64_t begun; /* periods that may have begun: of each thread on each CPU */
	bool by_frequency;
};
enum pm_rec_cover pm_rec_counted_judge(const struct pm_rec_counted *known);

/* cpu-clock and task-clock: the period is time. */
bool pm_rec_is_clock(const struct pm_perf_event *event);

/* When the recording begins. */
void pm_rec_coverage_begin(struct pm_rec_session *session);
/* At the end: warns of time without samples. True when it did. Where there is not one sample,
 * and not even short threads explain that, others have to find the reason. */
bool pm_rec_coverage_warn(struct pm_rec_session *session);
/* At the end: warns of what was counted and has no samples, and of samples that stand for more
 * than was counted. True when it did. */
bool pm_rec_coverage_warn_counted(struct pm_rec_session *session);
/* At the end: warns of CPU time that the host took, which clocks have and CPU time has not. */
void pm_rec_coverage_warn_stolen(struct pm_rec_session *session);
/* Warns of throttling and of a lowered perf_event_max_sample_rate. */
void pm_rec_coverage_warn_slowed(struct pm_rec_session *session);
/* Fills the footer's rows for each clock whose periods differ from the CPU time.
 * @footer borrows them from @cpus. */
typedef PM_VEC(struct pm_file_clock_cpu) pm_rec_clock_cpus;
int pm_rec_coverage_footer(const struct pm_rec_session *session, pm_rec_clock_cpus *cpus,
			   struct pm_file_footer *footer);
/* Prints the same numbers of all clocks, for --verbose. */
void pm_rec_coverage_print(const struct pm_rec_session *session);
