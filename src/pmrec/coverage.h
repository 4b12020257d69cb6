/* SPDX-License-Identifier: MIT */
/*
 * Whether the samples represent what the command did: compares the sum of a clock's
 * periods with the CPU time that the kernel accounts (getrusage), and checks whether the
 * kernel throttled sampling during the recording.
 */
#pragma once

#include "session.h"

/* The input of pm_rec_coverage_judge(), apart from the session, so that tests can set
 * it. */
struct pm_rec_coverage {
	uint64_t cpu_ns; /* accounted; only user time if the event excludes the kernel */
	bool user_only;
	uint64_t period_ns; /* of one sample */
	uint64_t sampled_ns; /* sum of the periods */
	uint64_t lost_ns; /* at most this much is represented by lost samples */
	uint64_t stolen_ns; /* upper bound; included in clocks, not in CPU time */
	uint64_t threads; /* threads started */
	uint64_t cpus;
};

enum pm_rec_cover {
	PM_REC_COVER_WELL, /* or too little happened to decide */
	PM_REC_COVER_SHORT_THREADS, /* each starts a new period; that may explain it */
	PM_REC_COVER_SKIPPED, /* more than that: timer ticks gave no samples */
	PM_REC_COVER_TOO_MUCH, /* more than happened */
};
enum pm_rec_cover pm_rec_coverage_judge(const struct pm_rec_coverage *known);

/* The same for any event: compares the samples with the kernel's count of the event. */
struct pm_rec_counted {
	uint64_t counted, sampled; /* of all tasks */
	uint64_t others; /* part of `sampled`: samples that were not recorded */
	uint64_t lost; /* upper bound; not in `sampled` */
	uint64_t away; /* time of CPU clocks while the host had the CPUs: no ticks */
	uint64_t samples, enough; /* enough: as many samples prove something */
	uint64_t period; /* largest period of a sample */
	uint64_t begun; /* unfinished periods: at most one per thread and CPU */
	bool by_frequency;
};
enum pm_rec_cover pm_rec_counted_judge(const struct pm_rec_counted *known);

/* Whether @event is cpu-clock or task-clock: its periods are times. */
bool pm_rec_is_clock(const struct pm_perf_event *event);

/* Call this when the recording starts. */
void pm_rec_coverage_begin(struct pm_rec_session *session);
/* At the end: warns of time without samples. Returns true if it did. If there is no
 * sample at all and short threads do not explain that, no warning is given here: other
 * warnings give the reason. */
bool pm_rec_coverage_warn(struct pm_rec_session *session);
/* At the end: warns of events that were counted without samples, and of samples that
 * represent more than was counted. Returns true if it did. */
bool pm_rec_coverage_warn_counted(struct pm_rec_session *session);
/* At the end: warns of CPU time that the host took (steal time). Clocks include it, CPU
 * time does not. */
void pm_rec_coverage_warn_stolen(struct pm_rec_session *session);
/* Warns of throttling and of a lowered perf_event_max_sample_rate. */
void pm_rec_coverage_warn_slowed(struct pm_rec_session *session);
/* Fills the footer's rows for each clock whose periods differ from the CPU time. @footer
 * borrows the rows from @cpus. */
typedef PM_VEC(struct pm_file_clock_cpu) pm_rec_clock_cpus;
int pm_rec_coverage_footer(const struct pm_rec_session *session, pm_rec_clock_cpus *cpus,
			   struct pm_file_footer *footer);
/* Prints the same numbers of all clocks, for --verbose. */
void pm_rec_coverage_print(const struct pm_rec_session *session);
