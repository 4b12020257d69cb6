/* SPDX-License-Identifier: MIT */
#include "record.h"

#include <limits.h>
#include <linux/perf_event.h>
#include <string.h>

#include "fields.h"
#include "pm/chain-jit.h"
#include "off-cpu.h"

/* No number of the file is above 2^63 - 1 (docs/format.md §2). One that is comes from nonsense
 * in a ring, which is no reason to lose all that follows. */
static uint64_t storable(struct pm_rec_counts *counts, uint64_t value)
{
	if (value <= INT64_MAX)
		return value;
	counts->clamped++;
	return INT64_MAX;
}

/* Sums stay at the maximum. */
static void add(uint64_t *sum, uint64_t more)
{
	*sum = more > INT64_MAX - *sum ? INT64_MAX : *sum + more;
}

static int name_thread(struct pm_rec_session *session, const struct pm_record *record)
{
	const struct pm_thread *thread =
		pm_procs_thread(session->procs, (pid_t)record->pid, (pid_t)record->tid);

	if (!thread)
		return -ENOMEM;
	return pm_chain_threads_name(&session->threads, session->writer, record->pid,
				     record->tid, thread->comm,
				     storable(&session->counts, record->time));
}

int pm_rec_record_sample(struct pm_rec_session *session, const struct pm_record *record,
			 const struct pm_chain *chain, const struct pm_rec_said *said)
{
	struct pm_rec_counts *counts = &session->counts;
	uint64_t period = storable(counts, record->sample.period);

	if (!pm_chain_threads_known(&session->threads, record->pid, record->tid)) {
		int ret = name_thread(session, record);

		if (ret < 0)
			return ret;
	}
	/* Of what was overwritten before it, the file knows nothing. */
	if (session->options->overwrite && counts->samples == 0)
		session->begin_ns =
			record->time < session->end_ns ? record->time : session->end_ns;
	counts->samples++;
	counts->stops[chain->stop]++;
	counts->truncated += chain->stop == PM_UNW_STOP_TRUNCATED || chain->stitched;
	counts->stitched += chain->stitched;
	counts->events[record->event].samples++;
	add(&counts->events[record->event].period, period);
	return pm_file_write_sample(
		session->writer,
		&(struct pm_file_sample){
			.time = storable(counts, record->time),
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
			.branches_len = said->branches_len });
}

static int on_sample(struct pm_rec_session *session, const struct pm_record *record)
{
	struct pm_rec_said said = { 0 };
	struct pm_chain chain;
	int ret;

	if (record->event >= session->counts.events_len)
		return 0; /* of no event that we opened */
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
	return ret < 0 ? ret : pm_rec_record_sample(session, record, &chain, &said);
}

static int on_mmap(struct pm_rec_session *session, const struct pm_record *record)
{
	const struct pm_mmap_record *mmap = &record->mmap;
	struct pm_module_identity identity = { .major = mmap->major,
					       .minor = mmap->minor,
					       .inode = mmap->inode,
					       .build_id_len = mmap->build_id_len };
	char path[PATH_MAX];
	size_t len;
	int ret;

	identity.kind = pm_module_kind_of(mmap->path, &len);
	if (identity.kind == PM_MODULE_KERNEL || len >= sizeof(path))
		return 0;
	memcpy(path, mmap->path, len);
	path[len] = '\0';
	identity.path = path;
	if (identity.build_id_len > sizeof(identity.build_id))
		identity.build_id_len = 0;
	memcpy(identity.build_id, mmap->build_id, identity.build_id_len);
	ret = pm_procs_map(session->procs, (pid_t)record->pid, mmap->start, mmap->len,
			   mmap->pgoff, mmap->prot, &identity);
	if (ret == -ENOMEM)
		return ret; /* a senseless range changes nothing */
	return identity.kind == PM_MODULE_FILE
		       ? pm_chain_jit_map(session->jit, (pid_t)record->pid, &identity)
		       : 0;
}

static int on_lost(struct pm_rec_session *session, const struct pm_record *record)
{
	struct pm_rec_counts *counts = &session->counts;
	struct pm_file_lost line = { .time = storable(counts, record->time),
				     .cpu = record->cpu,
				     .count = storable(counts, record->lost) };

	add(&counts->lost, line.count);
	return pm_file_write_lost(session->writer, &line);
}

int pm_rec_record(struct pm_rec_session *session, const struct pm_record *record)
{
	pid_t pid = (pid_t)record->pid, tid = (pid_t)record->tid;
	int ret = pm_rec_off_cpu_record(session, record);

	if (ret != 0)
		return ret < 0 ? ret : 0;
	switch (record->type) {
	case PERF_RECORD_SAMPLE:
		return on_sample(session, record);
	case PERF_RECORD_MMAP:
	case PERF_RECORD_MMAP2:
		return on_mmap(session, record);
	case PERF_RECORD_COMM:
		if (record->comm.exec)
			pm_chains_forget_process(session->chains, record->pid);
		ret = record->comm.exec ? pm_chain_jit_exec(session->jit, pid) : 0;
		if (ret == 0)
			ret = pm_procs_comm(session->procs, pid, tid, record->comm.name,
					    record->comm.exec);
		return ret < 0 ? ret : name_thread(session, record);
	case PERF_RECORD_FORK:
		session->counts.threads++;
		pm_chains_forget_thread(session->chains, record->pid, record->tid);
		ret = pm_procs_fork(session->procs, pid, tid,
				    (pid_t)record->fork.parent_pid,
				    (pid_t)record->fork.parent_tid);
		if (ret == 0 && record->pid != record->fork.parent_pid)
			ret = pm_chain_jit_fork(session->jit, pid,
						(pid_t)record->fork.parent_pid);
		return ret < 0 ? ret : name_thread(session, record);
	case PERF_RECORD_EXIT:
		pm_chains_forget_thread(session->chains, record->pid, record->tid);
		pm_procs_exit(session->procs, pid, tid);
		return 0;
	case PERF_RECORD_LOST:
	case PERF_RECORD_LOST_SAMPLES:
		return on_lost(session, record);
	case PERF_RECORD_THROTTLE:
		session->counts.throttled++;
		return 0;
	default:
		return 0;
	}
}
