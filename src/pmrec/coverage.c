/* SPDX-License-Identifier: MIT */
#include "coverage.h"

#include <inttypes.h>
#include <linux/perf_event.h>
#include <string.h>

#include "clock-evidence.h"
#include "follow.h"
#include "progress.h"

enum {
	COVERED_PERCENT = 90, /* of the CPU time: if less was sampled, time was missed */
	FAST_HZ = 10000, /* from this rate on, a timer is fast */
	TICK_HZ = 100, /* tick of the slowest kernels: the granularity of user time */
	COUNTED_PERCENT = 95, /* COVERED_PERCENT for counted events with a fixed period */
	FEW_SAMPLES = 4, /* this few prove nothing */
	TOO_MUCH_PART = 10, /* an excess of up to a tenth of the count is accepted */
	EVIDENCE_SAMPLES_MIN = 100, /* fewer prove nothing */
	TOO_MUCH_PERCENT =
		105, /* if more of the CPU time was sampled, some counts twice */
	MANY_SAMPLES = 20, /* with fewer samples of a PMU, one is a large part */
};
#define NS_PER_S 1000000000u
/* The kernel adds a thread's time to its process's time shortly before the thread stops
 * running (__exit_signal()). The rest is not accounted: 3 to 6 us were measured. */
#define UNACCOUNTED_NS 10000u

static uint64_t coverage_timeval_ns(const struct timeval *time)
{
	return (uint64_t)time->tv_sec * NS_PER_S + (uint64_t)time->tv_usec * 1000u;
}

/* Returns the sum, or UINT64_MAX if it overflows. */
static uint64_t add_saturating(uint64_t a, uint64_t b)
{
	uint64_t ret;

	if (__builtin_add_overflow(a, b, &ret))
		return UINT64_MAX;
	return ret;
}

/*
 * Whether a difference of @missing_ns, in either direction, may be due to chance. For n
 * sampled units of time, the limit is four standard deviations (the deviation of a
 * binomial distribution is below sqrt(n)/2), plus the unfinished period on each CPU.
 */
static bool may_be_chance(const struct pm_rec_coverage *known, uint64_t missing_ns)
{
	double unit = (double)known->period_ns;
	double begun = (double)known->cpus * unit;
	double rest = (double)missing_ns - begun;

	/* The kernel splits user time from system time at its tick. */
	if (known->user_only && unit < NS_PER_S / TICK_HZ)
		unit = NS_PER_S / TICK_HZ;
	/* rest <= 2 * unit * sqrt(n), without sqrt() */
	return rest <= 0 || rest * rest <= 4 * unit * ((double)known->cpu_ns + unit);
}

/* Whether stolen time explains the excess. */
static bool is_of_host(const struct pm_rec_coverage *known)
{
	return known->sampled_ns - known->cpu_ns <= known->stolen_ns;
}

static enum pm_rec_cover judge_excess(const struct pm_rec_coverage *known)
{
	uint64_t excess = known->sampled_ns - known->cpu_ns, unaccounted;

	if (known->sampled_ns / TOO_MUCH_PERCENT <= known->cpu_ns / 100)
		return PM_REC_COVER_WELL;
	if (__builtin_mul_overflow(known->threads, UNACCOUNTED_NS, &unaccounted) ||
	    excess <= unaccounted || may_be_chance(known, excess - unaccounted))
		return PM_REC_COVER_WELL;
	return PM_REC_COVER_TOO_MUCH;
}

enum pm_rec_cover pm_rec_coverage_judge(const struct pm_rec_coverage *known)
{
	uint64_t sampled = add_saturating(known->sampled_ns, known->lost_ns), missing;

	if (known->period_ns == 0)
		return PM_REC_COVER_WELL;
	/* The lost samples may have represented less than that, so they are not added. */
	if (known->sampled_ns > known->cpu_ns)
		return judge_excess(known);
	if (sampled >= known->cpu_ns)
		return PM_REC_COVER_WELL;
	missing = known->cpu_ns - sampled;
	if (sampled >= known->cpu_ns / 100 * COVERED_PERCENT ||
	    may_be_chance(known, missing))
		return PM_REC_COVER_WELL;
	/* Each thread may have one unfinished period on each CPU. */
	if (missing / known->period_ns / known->cpus <= known->threads)
		return PM_REC_COVER_SHORT_THREADS;
	return PM_REC_COVER_SKIPPED;
}

bool pm_rec_is_clock(const struct pm_perf_event *event)
{
	return strcmp(event->actual.name, "cpu-clock") == 0 ||
	       strcmp(event->actual.name, "task-clock") == 0;
}

/* Whether everything that the command did is known and should have been sampled. */
static bool is_comparable(const struct pm_rec_session *session)
{
	const struct pm_rec_options *options = session->options;
	const struct pm_child *child = &session->child;

	return session->perf && child->status_known && child->interrupts == 0 &&
	       !options->attach && !options->targets.no_inherit && !options->overwrite &&
	       options->delay_ms == 0 && !options->wait_for_control &&
	       !options->control && options->duration_ns == 0 &&
	       options->max_bytes == 0 && options->max_samples == 0 &&
	       session->counts.throttled == 0;
}

/* Stores the CPU time that the host has taken from the recorded CPUs since the start.
 * Returns false if it is unknown. */
static bool stolen_meanwhile(const struct pm_rec_session *session, uint64_t *out)
{
	uint64_t now;

	if (!session->counts.stolen_known || !pm_stolen_ns(session->targets.cpus, &now) ||
	    now < session->counts.stolen_ns)
		return false;
	*out = now - session->counts.stolen_ns;
	return true;
}

static void compute_coverage(const struct pm_rec_session *session,
			     const struct pm_perf_event *event,
			     const struct pm_rec_event_counts *counts,
			     struct pm_rec_coverage *out)
{
	const struct rusage *usage = &session->child.usage;
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);

	*out = (struct pm_rec_coverage){
		.cpu_ns = coverage_timeval_ns(&usage->ru_utime),
		.user_only = !event->actual.kernel || event->kernel_dropped,
		.period_ns = event->by_frequency ? NS_PER_S / event->rate : event->rate,
		.threads = session->counts.threads,
		.cpus = cpus > 0 ? (uint64_t)cpus : 1,
	};
	if (!out->user_only)
		out->cpu_ns += coverage_timeval_ns(&usage->ru_stime);
	out->sampled_ns = counts->period;
	if (counts->lost_known &&
	    __builtin_mul_overflow(counts->lost, out->period_ns, &out->lost_ns))
		out->lost_ns = UINT64_MAX;
	if (stolen_meanwhile(session, &out->stolen_ns) && out->stolen_ns > 0)
		out->stolen_ns += NS_PER_S / (uint64_t)sysconf(_SC_CLK_TCK);
}

/* Suggests how to record the missing time: with events of CPUs, or with shorter
 * periods. */
static void put_remedy(struct pm_str *text, const struct pm_rec_session *session,
		       const struct pm_perf_event *event, enum pm_rec_cover cover)
{
	bool fast = event->by_frequency ? event->rate >= FAST_HZ
					: event->rate <= NS_PER_S / FAST_HZ;

	pm_str_puts(text, "; try: ");
	if (cover == PM_REC_COVER_SKIPPED) {
		if (!fast)
			pm_str_puts(text, "-F max");
		else if (event->by_frequency)
			pm_str_puts(text, "a smaller -F");
		else
			pm_str_puts(text, "a larger -c");
		return;
	}
	if (session->options->per_task)
		pm_str_puts(text, "without --per-task, or ");
	else if (geteuid() != 0)
		pm_str_puts(text, "sudo, or ");
	pm_str_puts(text, "-F max");
}

static void put_cause(struct pm_str *text, const struct pm_rec_session *session,
		      const struct pm_rec_coverage *known, enum pm_rec_cover cover)
{
	if (cover == PM_REC_COVER_SKIPPED)
		pm_str_puts(text,
			    "the timer ticked less often than it was asked to, or the "
			    "command had time that may not be sampled (set-user-ID)");
	else if (pm_perf_per_cpu(session->perf))
		pm_str_puts(text, "some of its processes or threads were not followed");
	else
		pm_str_printf(text,
			      "each of %" PRIu64
			      " threads begins a period of its own, so that "
			      "what runs shorter than %.3g ms is hardly ever sampled",
			      known->threads + 1, (double)known->period_ns / 1e6);
}

/* Warns of an excess, with its cause. */
static void warn_too_much(struct pm_rec_session *session,
			  const struct pm_perf_event *event,
			  const struct pm_rec_coverage *known)
{
	struct pm_str text = { 0 };
	char said[512];

	/* pm_rec_coverage_warn_stolen() has printed this already. */
	if (is_of_host(known) && pm_stolen_text(said, sizeof(said), event->actual.name,
						known->sampled_ns, known->stolen_ns))
		return;
	pm_str_printf(&text, "%s shows %.2f s of %.2f s %sCPU time (%.0f%%): ",
		      event->actual.name, (double)known->sampled_ns / 1e9,
		      (double)known->cpu_ns / 1e9, known->user_only ? "user " : "",
		      100.0 * (double)known->sampled_ns / (double)known->cpu_ns);
	if (is_of_host(known))
		pm_str_printf(
			&text,
			"the host took up to %.2f s of the CPUs meanwhile, in which "
			"the clock goes on",
			(double)known->stolen_ns / 1e9);
	else if (session->evidence &&
		 (!pm_perf_is_paced(session->perf) || session->options->overwrite))
		pm_str_puts(
			&text,
			"samples wake pmrec, which then runs in the program's time, so "
			"that shares may be wrong, too; try: a larger -m");
	else if (pm_rec_follow_forked(session))
		/* wait4(2): not if the parent ignores SIGCHLD or has exited. */
		pm_str_puts(&text,
			    "the kernel adds up no CPU time of processes for which "
			    "their parent did not wait; if there were none, the cause "
			    "is not known, and shares may be wrong, too");
	else
		/* __schedule() does not read the clock again after the wake-up that
		 * demands it (rq_clock_skip_update()). */
		pm_str_puts(&text,
			    "CPU time ends when another CPU wakes the thread that comes "
			    "next, the clock when that thread gets the CPU, which a "
			    "busy virtual machine delays; if that was rare, the cause is "
			    "not known, and shares may be wrong, too");
	if (!text.failed)
		pm_rec_warn(session, text.data);
	pm_str_release(&text);
}

bool pm_rec_coverage_warn(struct pm_rec_session *session)
{
	size_t len;
	const struct pm_perf_event *events;

	if (!is_comparable(session))
		return false;
	events = pm_perf_events(session->perf, &len);
	for (size_t i = 0; i < len && i < session->counts.events_len; i++) {
		struct pm_str text = { 0 };
		struct pm_rec_coverage known;
		enum pm_rec_cover cover;

		if (!pm_rec_is_clock(&events[i]) || !events[i].actual.user ||
		    events[i].rate == 0)
			continue;
		compute_coverage(session, &events[i], &session->counts.events[i], &known);
		cover = pm_rec_coverage_judge(&known);
		if (cover == PM_REC_COVER_TOO_MUCH) {
			warn_too_much(session, &events[i], &known);
			return true;
		}
		if (cover == PM_REC_COVER_WELL ||
		    (cover == PM_REC_COVER_SKIPPED && known.sampled_ns == 0))
			continue;
		known.sampled_ns = add_saturating(known.sampled_ns, known.lost_ns);
		pm_str_printf(
			&text,
			"the samples stand for %.2f s of %.2f s %sCPU time (%.0f%%): ",
			(double)known.sampled_ns / 1e9, (double)known.cpu_ns / 1e9,
			known.user_only ? "user " : "",
			100.0 * (double)known.sampled_ns / (double)known.cpu_ns);
		put_cause(&text, session, &known, cover);
		put_remedy(&text, session, &events[i], cover);
		if (!text.failed)
			pm_rec_warn(session, text.data);
		pm_str_release(&text);
		return true;
	}
	return false;
}

/* ---- events by their counts --------------------------------------------------------------- */

enum pm_rec_cover pm_rec_counted_judge(const struct pm_rec_counted *known)
{
	/* The kernel keeps a frequency by changing the period, and then discards the
	 * unfinished period (perf_adjust_period()). */
	uint64_t percent = known->by_frequency ? COVERED_PERCENT : COUNTED_PERCENT;
	uint64_t sampled = add_saturating(known->sampled, known->lost);
	uint64_t missing;

	if (known->samples >= known->enough && known->sampled > known->counted &&
	    known->sampled - known->counted > known->counted / TOO_MUCH_PART)
		return PM_REC_COVER_TOO_MUCH;
	if (known->period == 0 || sampled >= known->counted)
		return PM_REC_COVER_WELL;
	missing = known->counted - sampled;
	if (missing <= known->away)
		return PM_REC_COVER_WELL;
	/* The margin for chance is computed from what could be sampled. */
	sampled = add_saturating(sampled, known->away);
	missing -= known->away;
	if (missing / known->period < FEW_SAMPLES ||
	    sampled / percent >= known->counted / 100)
		return PM_REC_COVER_WELL;
	if (missing / known->period > known->begun)
		return PM_REC_COVER_SKIPPED;
	if (sampled / COVERED_PERCENT >= known->counted / 100)
		return PM_REC_COVER_WELL;
	return PM_REC_COVER_SHORT_THREADS;
}

/* Whether samples of this event are expected and nothing else explains their absence. */
static bool is_countable(const struct pm_rec_session *session, size_t index,
			 const struct pm_perf_event *event)
{
	const struct pm_rec_counts *counts = &session->counts;
	uint32_t leader = event->requested.leader;
	size_t len;
	const struct pm_perf_event *events = pm_perf_events(session->perf, &len);

	if (!counts->events[index].counted_known || counts->throttled > 0 ||
	    session->end == PM_REC_END_SAMPLES || session->end == PM_REC_END_SIZE)
		return false;
	/* Samples were lost, and it is unknown which event they belong to. */
	if (counts->lost > 0 && !counts->events[index].lost_known)
		return false;
	/* This event is only counted, with the samples of its group. */
	if (leader != index && leader < len && events[leader].requested.read_group)
		return false;
	return !pm_rec_is_clock(event) || !is_comparable(session);
}

static uint64_t threads_of(const struct pm_rec_session *session)
{
	size_t roots = session->targets.tids.len;

	if (pm_perf_per_cpu(session->perf) || session->targets.kind == PM_PERF_CPUS ||
	    session->targets.kind == PM_PERF_CGROUP)
		return 1;
	return session->counts.threads + (roots > 0 ? roots : 1);
}

/* Returns the CPU time that the host took from the recorded CPUs since the start; 0 if
 * unknown. */
static uint64_t away_ns(const struct pm_rec_session *session)
{
	uint64_t now;

	if (session->counts.stolen_known && pm_stolen_ns(session->targets.cpus, &now) &&
	    now > session->counts.stolen_ns)
		return now - session->counts.stolen_ns;
	return 0;
}

/* Whether the kernel itself counts the event; no PMU and no timer does. */
static bool kernel_counts(const struct pm_perf_event *event)
{
	return !pm_rec_is_clock(event) && (event->actual.type == PERF_TYPE_SOFTWARE ||
					   event->actual.type == PERF_TYPE_TRACEPOINT ||
					   event->actual.type == PERF_TYPE_BREAKPOINT);
}

static void know_counted(const struct pm_rec_session *session,
			 const struct pm_perf_event *event,
			 const struct pm_rec_event_counts *counts,
			 struct pm_rec_counted *out)
{
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);

	*out = (struct pm_rec_counted){
		.counted = counts->counted,
		.sampled = add_saturating(counts->period, counts->others),
		.others = counts->others,
		.samples = counts->samples,
		.enough = kernel_counts(event) ? FEW_SAMPLES : MANY_SAMPLES,
		.period = counts->largest,
		.begun = threads_of(session) * (cpus > 0 ? (uint64_t)cpus : 1),
		.by_frequency = event->by_frequency,
	};
	if (pm_rec_is_clock(event) && session->targets.kind == PM_PERF_CPUS)
		out->away = away_ns(session);
	if (!event->by_frequency && out->period < event->rate)
		out->period = event->rate;
	if (counts->lost_known &&
	    __builtin_mul_overflow(counts->lost, out->period, &out->lost))
		out->lost = UINT64_MAX;
}

/* Whether the periods in the samples are wrong because of a kernel bug (Linux 5.10 to
 * 6.18, and some PMUs before 6.16). It affects events that the kernel counts itself, at a
 * frequency: the length of a period is chosen before the period that the sample reports
 * (perf_swevent_set_period()), and a task that gets a CPU has the reported period set
 * again (perf_swevent_add()). */
static bool has_wrong_periods(const struct pm_perf_event *event, enum pm_rec_cover cover)
{
	return event->by_frequency &&
	       (cover == PM_REC_COVER_TOO_MUCH ||
		(cover == PM_REC_COVER_SKIPPED && kernel_counts(event)));
}

static void say_wrong_periods(struct pm_str *text, const struct pm_perf_event *event,
			      const struct pm_rec_counted *known)
{
	uint64_t others = known->others < known->counted ? known->others : 0;
	uint64_t period = (known->counted - others) / known->samples + 1;

	pm_str_puts(text, "at a frequency the kernel may give a sample the period of "
			  "another, so that shares are wrong, too; ");
	pm_str_printf(text,
		      event->requested.rate_given ? "try: period=%" PRIu64
						  : "try: -c %" PRIu64,
		      period);
}

/* Explains skipped ticks. At a usual rate, a timer does not miss ticks for lack of time:
 * its CPU did not run. */
static void say_skipped(struct pm_str *text, const struct pm_perf_event *event)
{
	if (pm_rec_is_clock(event) &&
	    (event->by_frequency ? event->rate < FAST_HZ
				 : event->rate > NS_PER_S / FAST_HZ)) {
		pm_str_puts(text, "the timer ticked late, or not at all, as where a host "
				  "runs a machine's idle or busy CPUs only at times: "
				  "shares may be wrong");
		return;
	}
	pm_str_puts(text, "the kernel saw the ends of periods too late, or not at all; ");
	if (event->by_frequency && event->rate >= FAST_HZ)
		pm_str_puts(text, "try: -F 999");
	else
		pm_str_puts(text, event->by_frequency ? "try: a smaller -F"
						      : "try: a larger -c");
}

static void say_cause(struct pm_str *text, const struct pm_rec_session *session,
		      const struct pm_perf_event *event, enum pm_rec_cover cover)
{
	switch (cover) {
	case PM_REC_COVER_WELL:
	case PM_REC_COVER_TOO_MUCH:
		pm_str_puts(text, "the kernel has told of more than it counted");
		return;
	case PM_REC_COVER_SHORT_THREADS:
		pm_str_printf(text,
			      "each of %" PRIu64 " threads begins a period of its own; ",
			      threads_of(session));
		pm_str_puts(text,
			    event->by_frequency ? "try: -F max" : "try: a smaller -c");
		return;
	case PM_REC_COVER_SKIPPED:
		say_skipped(text, event);
		return;
	}
}

static void say_counted(struct pm_rec_session *session, const struct pm_perf_event *event,
			const struct pm_rec_counted *known, enum pm_rec_cover cover)
{
	/* The lost samples may have represented less than that, so they are not added. */
	uint64_t sampled = cover == PM_REC_COVER_TOO_MUCH
				   ? known->sampled
				   : add_saturating(known->sampled, known->lost);
	struct pm_str text = { 0 };

	pm_str_printf(&text,
		      "the samples of %s stand for %.0f%% of what was counted "
		      "(%" PRIu64 " of %" PRIu64 "): ",
		      pm_rec_is_clock(event) ? event->actual.name
					     : event->actual.requested,
		      100.0 * (double)sampled / (double)known->counted, sampled,
		      known->counted);
	if (has_wrong_periods(event, cover) && known->samples > 0)
		say_wrong_periods(&text, event, known);
	else
		say_cause(&text, session, event, cover);
	if (!text.failed)
		pm_rec_warn(session, text.data);
	pm_str_release(&text);
}

bool pm_rec_coverage_warn_counted(struct pm_rec_session *session)
{
	const struct pm_perf_event *events;
	bool warned = false;
	size_t len;

	if (!session->perf)
		return false;
	events = pm_perf_events(session->perf, &len);
	for (size_t i = 0; i < len && i < session->counts.events_len; i++) {
		struct pm_rec_counted known;
		enum pm_rec_cover cover;

		if (!is_countable(session, i, &events[i]))
			continue;
		know_counted(session, &events[i], &session->counts.events[i], &known);
		cover = pm_rec_counted_judge(&known);
		if (cover == PM_REC_COVER_WELL)
			continue;
		say_counted(session, &events[i], &known, cover);
		warned = true;
	}
	return warned;
}

/* ---- CPU time taken by the host ---------------------------------------------------------- */

void pm_rec_coverage_warn_stolen(struct pm_rec_session *session)
{
	const struct pm_rec_counts *counts = &session->counts;
	const struct pm_perf_event *events;
	uint64_t now;
	size_t len;
	char text[512];

	/* The ptrace engine samples by CPU time, which does not include stolen time. */
	if (!session->perf || !counts->stolen_known ||
	    !pm_stolen_ns(session->targets.cpus, &now) || now < counts->stolen_ns)
		return;
	events = pm_perf_events(session->perf, &len);
	for (size_t i = 0; i < len && i < counts->events_len; i++) {
		if (!pm_rec_is_clock(&events[i]))
			continue;
		if (pm_stolen_text(text, sizeof(text), events[i].actual.name,
				   counts->events[i].period, now - counts->stolen_ns))
			pm_rec_warn(session, text);
		return;
	}
}

/* ---- throttling --------------------------------------------------------------------------- */

/* Returns perf_event_max_sample_rate in Hz, or 0 if it is unknown. */
static uint64_t max_sample_hz(void)
{
	PM_AUTO_FCLOSE FILE *file =
		fopen("/proc/sys/kernel/perf_event_max_sample_rate", "re");
	uint64_t hz;

	if (file && fscanf(file, "%" SCNu64, &hz) == 1)
		return hz;
	return 0;
}

void pm_rec_coverage_begin(struct pm_rec_session *session)
{
	session->counts.max_sample_hz = max_sample_hz();
	session->counts.stolen_known =
		pm_stolen_ns(session->targets.cpus, &session->counts.stolen_ns);
}

void pm_rec_coverage_warn_slowed(struct pm_rec_session *session)
{
	const struct pm_rec_counts *counts = &session->counts;
	uint64_t hz = max_sample_hz();
	char text[256];

	if (counts->throttled > 0) {
		snprintf(text, sizeof(text),
			 "the kernel paused sampling %" PRIu64
			 " times, for samples came too "
			 "fast: what ran then is missing; try: a %s",
			 counts->throttled,
			 session->options->by_frequency ? "smaller -F" : "larger -c");
		pm_rec_warn(session, text);
	}
	if (hz > 0 && hz < counts->max_sample_hz) {
		snprintf(
			text, sizeof(text),
			"the kernel lowered perf_event_max_sample_rate from %" PRIu64
			" to %" PRIu64
			" Hz while recording, for samples took it too long; "
			"clocks go on as they were, events of the CPU's PMU may be paused",
			counts->max_sample_hz, hz);
		pm_rec_warn(session, text);
	}
}

/* ---- evidence about clocks --------------------------------------------------------------- */

/* Whether the periods of a clock's samples differ too much from the CPU time. */
static bool clock_differs_from_cpu_time(const struct pm_rec_session *session,
					size_t index, const struct pm_perf_event *event)
{
	struct pm_rec_coverage known;

	if (!pm_rec_is_clock(event) || !event->actual.user || event->rate == 0 ||
	    session->counts.events[index].samples < EVIDENCE_SAMPLES_MIN)
		return false;
	compute_coverage(session, event, &session->counts.events[index], &known);
	return add_saturating(known.sampled_ns, known.lost_ns) / COUNTED_PERCENT <
		       known.cpu_ns / 100 ||
	       known.sampled_ns / TOO_MUCH_PERCENT > known.cpu_ns / 100;
}

static int add_clock_cpus(const struct pm_rec_session *session, uint32_t event,
			  pm_rec_clock_cpus *out)
{
	long cpus = sysconf(_SC_NPROCESSORS_CONF);

	for (long cpu = 0; cpu < cpus; cpu++) {
		struct pm_rec_clock_tally tally =
			pm_rec_clock_evidence_of(session->evidence, event, (uint32_t)cpu);
		struct pm_file_clock_cpu row = { .event = event,
						 .cpu = (uint32_t)cpu,
						 .samples = tally.samples,
						 .period = tally.period,
						 .longer = tally.longer,
						 .late = tally.late,
						 .late_ns = tally.late_ns };

		pm_rec_clock_evidence_reader(session->evidence, (uint32_t)cpu,
					     &row.reader_runs, &row.reader_ns);
		if (row.samples + row.reader_runs > 0 && pm_vec_push(out, row) < 0)
			return -ENOMEM;
	}
	return 0;
}

int pm_rec_coverage_footer(const struct pm_rec_session *session, pm_rec_clock_cpus *cpus,
			   struct pm_file_footer *footer)
{
	const struct pm_perf_event *events;
	int ret = 0;
	size_t len;

	if (!session->evidence || !is_comparable(session))
		return 0;
	events = pm_perf_events(session->perf, &len);
	for (size_t i = 0; i < len && i < session->counts.events_len && ret == 0; i++)
		if (clock_differs_from_cpu_time(session, i, &events[i]))
			ret = add_clock_cpus(session, (uint32_t)i, cpus);
	footer->clock = cpus->data;
	footer->clock_len = cpus->len;
	footer->stolen_known = stolen_meanwhile(session, &footer->stolen_ns);
	footer->stolen_step_ns = NS_PER_S / (uint64_t)sysconf(_SC_CLK_TCK);
	return ret;
}

void pm_rec_coverage_print(const struct pm_rec_session *session)
{
	pm_rec_clock_cpus cpus = { 0 };
	const struct pm_perf_event *events;
	uint64_t stolen;
	size_t len;

	if (!session->evidence)
		return;
	events = pm_perf_events(session->perf, &len);
	for (size_t i = 0; i < len && i < session->counts.events_len; i++)
		if (pm_rec_is_clock(&events[i]) &&
		    add_clock_cpus(session, (uint32_t)i, &cpus) < 0)
			break;
	for (size_t i = 0; i < cpus.len; i++) {
		const struct pm_file_clock_cpu *cpu = &cpus.data[i];

		fprintf(stderr,
			"pmrec: %s, CPU %" PRIu32 ": %" PRIu64
			" samples for %.1f ms, %" PRIu64
			" gaps longer than a period, %" PRIu64
			" ticks late (%.1f ms); reader: %" PRIu64 " runs, %.1f ms\n",
			events[cpu->event].actual.name, cpu->cpu, cpu->samples,
			(double)cpu->period / 1e6, cpu->longer, cpu->late,
			(double)cpu->late_ns / 1e6, cpu->reader_runs,
			(double)cpu->reader_ns / 1e6);
	}
	pm_vec_release(&cpus);
	if (stolen_meanwhile(session, &stolen))
		fprintf(stderr,
			"pmrec: the host took %.0f ms of the CPUs (in steps of %.0f ms)\n",
			(double)stolen / 1e6, 1e3 / (double)sysconf(_SC_CLK_TCK));
}
