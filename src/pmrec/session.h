/* SPDX-License-Identifier: MIT */
/*
 * One recording, from the launch of the command to the closed file.
 */
#pragma once

#include "pm/chain.h"
#include "control.h"
#include "options.h"
#include "pm/chain-threads.h"

/* Counts for the footer. */
struct pm_rec_counts {
	uint64_t samples, lost, throttled;
	uint64_t truncated; /* stacks longer than their copy, completed later or not */
	uint64_t stitched; /* of these: completed by other samples or reads of memory */
	uint64_t too_large; /* of the others: need more than the largest copy */
	uint64_t copied_bytes; /* of stacks */
	uint64_t clamped; /* numbers that were too large for the file */
	uint64_t threads; /* threads and processes that were started */
	uint64_t max_sample_hz; /* perf_event_max_sample_rate at the start, 0: unknown */
	uint64_t stolen_ns; /* pm_stolen_ns() at the start */
	bool stolen_known;
	uint64_t stops[PM_CHAIN_STOP_COUNT];
	struct pm_rec_event_counts {
		uint64_t samples, period, lost;
		uint64_t largest; /* largest period of a sample */
		uint64_t counted, others; /* pm_perf_counted() */
		bool lost_known, counted_known;
	} * events; /* by event */
	size_t events_len;
};

/* Why the recording ended. */
enum pm_rec_end {
	PM_REC_END_NONE, /* not yet */
	PM_REC_END_COMMAND, /* the command has ended */
	PM_REC_END_TARGETS, /* all targets have ended */
	PM_REC_END_SIGNAL, /* pmrec received a signal */
	PM_REC_END_TIME, /* --duration */
	PM_REC_END_SAMPLES, /* --max-samples */
	PM_REC_END_SIZE, /* --max-size */
	PM_REC_END_CONTROL, /* a command of --control */
};

struct pm_rec_session {
	const struct pm_rec_options *options;
	struct pm_child child;
	struct pm_targets targets;
	struct pm_rec_follow *follow; /* NULL with the engine ptrace */
	struct pm_rec_control control;
	enum pm_rec_end end;
	struct pm_perf *perf; /* NULL with the engine ptrace */
	struct pm_rec_ptrace *ptrace; /* NULL with the engine perf */
	bool go_command; /* the command's file is a Go program */
	struct pm_file_writer *writer;
	struct pm_chain_raw *raw; /* --raw, or NULL */
	struct pm_procs *procs;
	struct pm_chain_modules modules;
	struct pm_chain_threads threads;
	struct pm_chains *chains;
	struct pm_rec_counts counts;
	struct pm_error perf_denied; /* code 0: perf was not denied, or was not tried */
	struct pm_chain_jit *jit;
	struct pm_rec_naming *naming; /* names the previous generation; NULL: none runs */
	struct pm_rec_hold *hold; /* samples that wait for the rest of their stack */
	struct pm_rec_kernel_names *kernel_names; /* NULL until they are read */
	struct pm_rec_early_names *early_names; /* NULL: no module has frames yet */
	struct pm_rec_titles *titles; /* of processes; NULL with the engine ptrace */
	struct pm_rec_fields *fields; /* fields and counts of tracepoints and probes */
	struct pm_rec_off_cpu *off_cpu; /* --off-cpu, or NULL */
	struct pm_rec_realtime *realtime; /* NULL: the priority is unchanged */
	struct pm_rec_clock_evidence *evidence; /* NULL without events of CPUs */
	uint64_t begin_ns,
		end_ns; /* of the command or of the recording, CLOCK_MONOTONIC */
	struct {
		uint64_t before_ns, end_ns; /* see cpu-waits.c */
	} cpu_waits;
	uint64_t cpu_ns; /* with `attach`: CPU time of the targets, if known */
	bool cpu_known;
	uint64_t newest_ns; /* time of the newest record so far */
	/* Until these times (CLOCK_MONOTONIC) the rings are read much more often (hurry)
	 * or more often (alert): stacks must be completed from the memory of threads
	 * while these run. */
	uint64_t hurry_until_ns, alert_until_ns;
	bool told; /* warnings are only noted in the file, not printed */
	struct {
		uint64_t frames, stacks; /* generations that followed the first */
		uint64_t renewed_ns; /* last renewal of modules: time of a record */
		size_t modules; /* modules that the last renewal kept */
		struct pm_unw_stats unwound; /* statistics of past generations */
		size_t sweep_at; /* number of tasks that causes a sweep */
		size_t bytes; /* memory of frames and stacks, at the end */
	} tables;
	bool progress; /* the progress line is on the terminal */
	uint64_t bytes; /* size of the closed file */
	char *place; /* path of the closed file; NULL before */
	bool kept_old; /* the replaced file was renamed to .old */
	int replaced_fd; /* the file that disappears when ours gets its name; -1: none */
	pid_t closer; /* the child that closes replaced_fd; 0: none */
};

/* The parts of a sample in addition to its stack. */
struct pm_rec_said {
	const struct pm_file_field *fields;
	size_t fields_len;
	const struct pm_file_event_count *counts;
	size_t counts_len;
	const struct pm_file_branch *branches;
	size_t branches_len;
};

/* Counts and writes one sample. */
typedef int (*pm_rec_sample_fn)(struct pm_rec_session *session,
				const struct pm_record *record,
				const struct pm_chain *chain,
				const struct pm_rec_said *said);

/* Makes the recording that @options describe and returns pmrec's exit status; errors have
 * been printed. */
int pm_rec_session_run(const struct pm_rec_options *options);
