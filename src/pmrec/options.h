/* SPDX-License-Identifier: MIT */
/*
 * What the user asked for: the command line of pmrec as plain data.
 */
#pragma once

#include "pm/options.h"
#include "pm/perf.h"
#include "pm/probe.h"
#include "pm/run.h"

enum pm_rec_engine {
	PM_REC_ENGINE_PERF, /* the kernel's sampling */
	PM_REC_ENGINE_PTRACE, /* pmrec's own, see engine-ptrace.h */
	PM_REC_ENGINE_AUTO, /* PERF, or PTRACE if that is denied */
};

enum pm_rec_action {
	PM_REC_RECORD,
	PM_REC_STACKS, /* prints the stacks of a running process */
	PM_REC_LIST, /* of the events of this machine */
	PM_REC_DOCTOR, /* prints what works on this machine */
	PM_REC_HELP,
	PM_REC_VERSION,
};

struct pm_rec_options {
	enum pm_rec_action action;
	enum pm_rec_engine engine;
	struct pm_event_specs specs;
	struct pm_probes probes; /* for events in `specs` that are places in files */
	bool by_frequency, rate_given, count_given, stack_bytes_given, event_given;
	size_t last_events; /* index of the first event of the last -e, for --filter */
	bool verify; /* also unwind with libunwind, and compare */
	bool libunwind; /* --stacks: use libunwind instead of our own unwinder */
	pid_t pid, tid; /* --stacks: the process; tid 0: all threads */
	uint64_t rate; /* Hz or period; UINT64_MAX Hz: the maximum */
	enum pm_call_graph call_graph;
	bool lbr; /* --call-graph lbr: the CPU's call stack */
	uint32_t stack_bytes;
	bool stitch;
	uint64_t branches; /* -b, -j: PERF_SAMPLE_BRANCH_*, 0: none */
	size_t ring_pages; /* 0: pmrec chooses */

	/* What to record: one of these with `attach`, else the command. */
	bool attach;
	struct pm_targets_request targets; /* -p, -t, -a, -C, -G, -u, -i */
	bool per_task;
	bool off_cpu;

	/* When. */
	uint64_t delay_ms; /* -D, 0: none */
	bool wait_for_control; /* -D -1: start when --control says so, or never */
	uint64_t duration_ns, max_bytes, max_samples; /* 0: no limit */
	const char *control; /* "fifo:PATH[,ACK]" or "fd:N[,ACK]", NULL: none */
	bool overwrite;

	int realtime; /* -r: SCHED_FIFO priority; 0: not given, -1: leave it unchanged */
	const char *user; /* --user: user that runs the command; NULL: ours */

	const char *list_kind, *list_glob; /* --list: as typed; NULL: all */
	bool json; /* --list, --doctor */

	const char *output;
	const char *raw; /* --raw: path; NULL: not given */
	bool force; /* --force: also replace files that are not recordings */
	bool quiet, verbose, symbols;
	/* Borrowed from argv, NULL-terminated. NULL if there is no command, which only
	 * `attach` allows: there it only determines how long the recording lasts. */
	char **command;
};

/* Returns 0, or -EINVAL with a message of one line in @err. Call the release function in
 * both cases. */
int pm_rec_options_parse(struct pm_rec_options *options, int argc, char **argv,
			 struct pm_error *err);
void pm_rec_options_release(struct pm_rec_options *options);
extern const struct pm_option_table pm_rec_option_table;
/* Prints the complete text of --help, with the names of all events, to stdout. */
void pm_rec_options_help(void);
