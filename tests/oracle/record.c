/* SPDX-License-Identifier: MIT */
#include "tests/oracle/record.h"

#include <linux/perf_event.h>
#include <poll.h>
#include <string.h>
#include <sys/wait.h>

enum {
	POLL_FDS_MAX = 1024,
	POLL_MS = 100,
};

struct recording {
	struct pm_perf *perf;
	struct pm_procs *procs;
	struct record_totals *totals;
	record_fn fn;
	void *arg;
};

static void on_mmap(struct pm_procs *procs, const struct pm_record *record)
{
	const struct pm_mmap_record *mmap = &record->mmap;
	size_t path_len = strlen(mmap->path);
	struct pm_module_identity identity = {
		.kind = pm_module_kind_of(mmap->path, &path_len),
		.path = mmap->path,
		.major = mmap->major,
		.minor = mmap->minor,
		.inode = mmap->inode,
		.generation = mmap->inode_generation,
		.generation_known = mmap->identified,
	};

	pm_procs_map(procs, (pid_t)record->pid, mmap->start, mmap->len, mmap->pgoff,
		     mmap->prot, &identity);
}

static void on_sample(struct recording *recording, const struct pm_record *record)
{
	struct pm_process *process;

	if (record->sample.regs.abi != PM_REGS_64) {
		recording->totals->without_regs++;
		return;
	}
	process = pm_procs_get(recording->procs, (pid_t)record->pid);
	if (!process)
		abort();
	recording->totals->samples++;
	recording->fn(recording->arg, process, record);
}

static void on_record(struct recording *recording, const struct pm_record *record)
{
	struct pm_procs *procs = recording->procs;
	pid_t pid = (pid_t)record->pid;
	pid_t tid = (pid_t)record->tid;

	switch (record->type) {
	case PERF_RECORD_MMAP:
	case PERF_RECORD_MMAP2:
		on_mmap(procs, record);
		break;
	case PERF_RECORD_COMM:
		pm_procs_comm(procs, pid, tid, record->comm.name, record->comm.exec);
		break;
	case PERF_RECORD_FORK:
		pm_procs_fork(procs, pid, tid, (pid_t)record->fork.parent_pid,
			      (pid_t)record->fork.parent_tid);
		break;
	case PERF_RECORD_EXIT:
		pm_procs_exit(procs, pid, tid);
		break;
	case PERF_RECORD_SAMPLE:
		on_sample(recording, record);
		break;
	default:
		break;
	}
}

static int drain(struct recording *recording, bool final, struct pm_error *err)
{
	struct pm_record record;
	int rc;

	pm_perf_begin(recording->perf, final);
	while ((rc = pm_perf_next(recording->perf, &record, err)) > 0)
		on_record(recording, &record);
	return rc;
}

/* Runs until the command has ended; does not wait for processes that it left running. */
static int follow(struct recording *recording, struct pm_launch *launch,
		  struct pm_error *err)
{
	struct pollfd fds[POLL_FDS_MAX];
	size_t len;
	const int *perf_fds = pm_perf_poll_fds(recording->perf, &len);
	int status;
	int rc = 0;

	if (len > POLL_FDS_MAX - 1)
		len = POLL_FDS_MAX - 1;
	for (size_t i = 0; i < len; i++)
		fds[i] = (struct pollfd){ .fd = perf_fds[i], .events = POLLIN };
	fds[len] = (struct pollfd){ .fd = launch->pidfd, .events = POLLIN };
	while (rc == 0 && waitpid(launch->pid, &status, WNOHANG) == 0) {
		poll(fds, len + 1, POLL_MS);
		rc = drain(recording, false, err);
	}
	if (rc < 0)
		return rc;
	recording->totals->exit_status = pm_exit_status(status);
	pm_perf_disable(recording->perf);
	return drain(recording, true, err);
}

static void count_lost(struct recording *recording)
{
	uint64_t lost;

	if (pm_perf_lost(recording->perf, 0, &lost) == 0)
		recording->totals->lost += lost;
}

static int record_launched(struct recording *recording, struct pm_launch *launch,
			   const char *event, uint64_t hz, struct pm_error *err)
{
	struct pm_event_specs specs = { 0 };
	struct pm_perf_options options = {
		.by_frequency = true,
		.rate = hz,
		.call_graph = PM_CALL_GRAPH_DWARF,
		.stack_bytes = PM_STACK_BYTES_MAX,
		.pid = launch->pid,
	};
	int rc = pm_event_specs_parse(event, &specs, err);

	if (rc < 0)
		return rc;
	options.specs = specs.list.data;
	options.specs_len = specs.list.len;
	rc = pm_perf_open(&recording->perf, &options, err);
	pm_event_specs_release(&specs);
	if (rc == 0)
		rc = pm_launch_go(launch, err);
	if (rc == 0)
		rc = follow(recording, launch, err);
	if (recording->perf)
		count_lost(recording);
	pm_perf_free(recording->perf);
	return rc;
}

int record_run(char *const argv[], const char *event, uint64_t hz, struct pm_procs *procs,
	       record_fn fn, void *arg, struct record_totals *totals,
	       struct pm_error *err)
{
	struct recording recording = {
		.procs = procs,
		.totals = totals,
		.fn = fn,
		.arg = arg,
	};
	struct pm_launch launch;
	int rc = pm_launch_prepare(&launch, argv, err);

	if (rc < 0)
		return rc;
	rc = record_launched(&recording, &launch, event, hz, err);
	pm_launch_release(&launch);
	return rc;
}
