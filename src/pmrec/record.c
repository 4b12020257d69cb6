/* SPDX-License-Identifier: MIT */
#include "record.h"

#include <linux/perf_event.h>
#include <string.h>

#include "fields.h"
#include "hold.h"
#include "off-cpu.h"
#include "pm/chain-tasks.h"
#include "titles.h"

enum {
	HURRY_NS = 100 * 1000 * 1000,
	ALERT_NS = 1000 * 1000 * 1000,
};

/* Limits @value to 2^63 - 1, the largest number of the file (docs/format.md §2), and
 * counts if that was necessary. A larger value comes from garbage in a ring, and should
 * not invalidate the records that follow. */
static uint64_t clamp_to_storable(struct pm_rec_counts *counts, uint64_t value)
{
	if (value <= INT64_MAX)
		return value;
	counts->clamped++;
	return INT64_MAX;
}

/* Adds to a sum, which saturates. */
static void add_saturated(uint64_t *sum, uint64_t more)
{
	*sum = more > INT64_MAX - *sum ? INT64_MAX : *sum + more;
}

static struct pm_chain_tasks tasks_of(struct pm_rec_session *session)
{
	return (struct pm_chain_tasks){ .procs = session->procs,
					.chains = session->chains,
					.jit = session->jit,
					.modules = &session->modules };
}

/*
 * Makes the loop read the rings more often for a while. A program that has just started
 * may end soon, and a stack whose outer callers are unknown may change. The callers can
 * be read from the thread's memory only while it runs.
 */
static void hurry_after(struct pm_rec_session *session, uint64_t time_ns)
{
	/* Ignore times in the future: times of records come from the ring unchecked. */
	if (!session->options->stitch || time_ns > pm_now_ns())
		return;
	if (time_ns + HURRY_NS > session->hurry_until_ns)
		session->hurry_until_ns = time_ns + HURRY_NS;
	if (time_ns + ALERT_NS > session->alert_until_ns)
		session->alert_until_ns = time_ns + ALERT_NS;
}

int pm_rec_record_sample(struct pm_rec_session *session, const struct pm_record *record,
			 const struct pm_chain *chain, const struct pm_rec_said *said)
{
	struct pm_rec_counts *counts = &session->counts;
	uint64_t period = clamp_to_storable(counts, record->sample.period);
	struct pm_chain_tasks tasks = tasks_of(session);
	struct pm_chain_names names;
	int ret = pm_chain_tasks_names(&tasks, record, &names);

	if (ret == 0 && session->titles)
		ret = pm_rec_titles_sampled(session->titles, record->pid, record->time);
	if (ret < 0)
		return ret;
	/* Nothing is known about overwritten records: the recording starts with this
	 * sample. */
	if (session->options->overwrite && counts->samples == 0)
		session->begin_ns = PM_MIN(record->time, session->end_ns);
	if (chain->promise != 0 && chain->stop != PM_UNW_STOP_ROOT)
		hurry_after(session, record->time);
	counts->samples++;
	pm_rec_hold_count(counts, chain, true);
	counts->events[record->event].samples++;
	add_saturated(&counts->events[record->event].period, period);
	if (period > counts->events[record->event].largest)
		counts->events[record->event].largest = period;
	return pm_rec_hold_add(session,
			       &(struct pm_file_sample){
				       .time = clamp_to_storable(counts, record->time),
				       .pid = record->pid,
				       .tid = record->tid,
				       .cpu = record->cpu,
				       .event = record->event,
				       .period = period,
				       .stack = chain->stack,
				       .stop = chain->stop == PM_UNW_STOP_ROOT
						       ? NULL
						       : pm_chain_stop_name(chain->stop),
				       .fields = said->fields,
				       .fields_len = said->fields_len,
				       .counts = said->counts,
				       .counts_len = said->counts_len,
				       .branches = said->branches,
				       .branches_len = said->branches_len },
			       chain, &names);
}

/* Names the command's first thread when the command is executed, so that no other thread
 * comes first in the file. */
static int name_command(struct pm_rec_session *session, const struct pm_record *record)
{
	struct pm_chain_tasks tasks = tasks_of(session);
	struct pm_chain_names names;
	int ret;

	if (session->threads.list.len > 0 || !session->options->command ||
	    record->pid != (uint32_t)session->child.launch.pid)
		return 0;
	ret = pm_chain_tasks_names(&tasks, record, &names);
	if (ret < 0)
		return ret;
	return pm_chain_threads_name(&session->threads, session->writer, record->pid,
				     record->tid, &names, record->time);
}

static int on_sample_record(struct pm_rec_session *session,
			    const struct pm_record *record)
{
	struct pm_rec_said said = { 0 };
	struct pm_chain chain;
	int ret;

	if (record->event >= session->counts.events_len)
		return 0; /* an event that we did not open */
	add_saturated(&session->counts.copied_bytes, record->sample.stack_len);
	ret = pm_chains_add(session->chains, record, &chain);
	if (ret >= 0)
		ret = pm_rec_fields_of(session->fields, record, &said.fields,
				       &said.fields_len);
	if (ret >= 0)
		ret = pm_rec_fields_counts(session->fields, session->perf, record,
					   &said.counts, &said.counts_len);
	if (ret >= 0)
		ret = pm_chains_branches(session->chains, record, &said.branches,
					 &said.branches_len);
	if (ret < 0)
		return ret;
	return pm_rec_record_sample(session, record, &chain, &said);
}

static int on_lost(struct pm_rec_session *session, const struct pm_record *record)
{
	struct pm_rec_counts *counts = &session->counts;
	struct pm_file_lost line = { .time = clamp_to_storable(counts, record->time),
				     .cpu = record->cpu,
				     .count = clamp_to_storable(counts, record->lost) };

	add_saturated(&counts->lost, line.count);
	return pm_file_write_lost(session->writer, &line);
}

int pm_rec_record(struct pm_rec_session *session, const struct pm_record *record)
{
	struct pm_chain_tasks tasks = tasks_of(session);
	int ret;

	if (record->time > session->newest_ns)
		session->newest_ns = record->time;
	ret = pm_rec_off_cpu_record(session, record);
	if (ret != 0)
		return PM_MIN(ret, 0);
	switch (record->type) {
	case PERF_RECORD_SAMPLE:
		return on_sample_record(session, record);
	case PERF_RECORD_LOST:
	case PERF_RECORD_LOST_SAMPLES:
		return on_lost(session, record);
	case PERF_RECORD_THROTTLE:
		session->counts.throttled++;
		return 0;
	case PERF_RECORD_COMM:
		if (record->comm.exec) {
			hurry_after(session, record->time);
			ret = pm_rec_titles_reset(session, record->pid, record->time,
						  false);
		}
		if (ret >= 0)
			ret = pm_chain_tasks_record(&tasks, record);
		if (ret < 0 || !record->comm.exec)
			return ret;
		return name_command(session, record);
	case PERF_RECORD_FORK:
		hurry_after(session, record->time);
		session->counts.threads++;
		if (record->pid == record->tid)
			ret = pm_rec_titles_reset(session, record->pid, record->time,
						  true);
		if (ret < 0)
			return ret;
		return pm_chain_tasks_record(&tasks, record);
	default:
		return pm_chain_tasks_record(&tasks, record);
	}
}
