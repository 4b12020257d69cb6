/* SPDX-License-Identifier: MIT */
/*
 * One recording, from launching the command to the closed file.
 */
#pragma once

#include "pm/chain.h"
#include "control.h"
#include "options.h"
#include "pm/chain-threads.h"

/* What is counted for the footer. */
struct pm_rec_counts {
	uint64_t samples, lost, throttled;
	uint64_t truncated; /* copies that were too short, mended or not */
	uint64_t stitched; /* of them: with callers from other samples or looks */
	uint64_t
		too_large; /* of those that were not mended: the kernel copies no such frame */
	uint64_t copied_bytes; /* of stacks */
	uint64_t clamped; /* numbers that were too large for the file */
	uint64_t threads; /* that were started, processes among them */
	uint64_t
		max_sample_hz; /* perf_event_max_sample_rate at the beginning, 0: unknown */
	uint64_t stolen_ns; /* pm_stolen_ns() at the beginning */
	bool stolen_known;
	uint64_t stops[PM_CHAIN_STOP_COUNT];
	struct pm_rec_event_counts {
		uint64_t samples, period, lost;
		uint64_t largest; /* period of a sample */
		uint64_t counted, others; /* pm_perf_counted() */
		bool lost_known, counted_known;
	} * events; /* by event */
	size_t events_len;
};

/* Why there are no more samples. */
enum pm_rec_end {
	PM_REC_END_NONE, /* not yet */
	PM_REC_END_COMMAND, /* it has ended */
	PM_REC_END_TARGETS, /* they have */
	PM_REC_END_SIGNAL, /* asked to */
	PM_REC_END_TIME, /* --duration */
	PM_REC_END_SAMPLES, /* --max-samples */
	PM_REC_END_SIZE, /* --max-size */
	PM_REC_END_CONTROL, /* --control said so */
};

struct pm_rec_session {
	const struct pm_rec_options *options;
	struct pm_child child;
	struct pm_targets targets;
	struct pm_rec_follow *follow; /* NULL with the engine ptrace */
	struct pm_rec_control control;
	enum pm_rec_end end;
	struct pm_perf *perf; /* NULL with the engine ptrace */
	struct pm_rec_ptrace *ptrace; /* NULL without */
	bool go_command; /* the command's file is a Go program */
	struct pm_file_writer *writer;
	struct pm_chain_raw *raw; /* --raw, or NULL */
	struct pm_procs *procs;
	struct pm_chain_modules modules;
	struct pm_chain_threads threads;
	struct pm_chains *chains;
	struct pm_rec_counts counts;
	struct pm_error perf_denied; /* code 0: it was not, or was not tried */
	struct pm_chain_jit *jit;
	struct pm_rec_naming *naming; /* NULL: no names of a past generation are due */
	struct pm_rec_hold *hold; /* samples that wait for the rest of their stack */
	struct pm_rec_kernel_names *kernel_names; /* NULL until they are read */
	struct pm_rec_early_names *early_names; /* NULL: no module has frames yet */
	struct pm_rec_titles *titles; /* of processes; NULL with the engine ptrace */
	struct pm_rec_fields *fields; /* what tracepoints and probes say */
	struct pm_rec_off_cpu *off_cpu; /* --off-cpu, or NULL */
	struct pm_rec_realtime *realtime; /* NULL: the priority is as it was */
	struct pm_rec_clock_evidence *evidence; /* NULL where no event is of CPUs */
	uint64_t begin_ns,
		end_ns; /* of the command or of the recording, CLOCK_MONOTONIC */
	uint64_t cpu_ns; /* with `attach`: CPU time of the targets, if */
	bool cpu_known;
	uint64_t newest_ns; /* time of the youngest record so far */
	/* Until these times the rings are read much more often, and more often, because looks
	 * at stacks have to come while the threads run. CLOCK_MONOTONIC. */
	uint64_t hurry_until_ns, alert_until_ns;
	bool told; /* warnings only have to be noted in another file */
	struct {
		uint64_t frames, stacks; /* how many new generations have begun */
		uint64_t renewed_ns; /* for modules; time of a record */
		size_t modules; /* that were left when the last one began */
		struct pm_unw_stats unwound; /* by past generations */
		size_t sweep_at; /* tasks */
		size_t bytes; /* of frames and stacks, at the end */
	} tables;
	bool progress; /* a line of it stands on the terminal */
	uint64_t bytes; /* of the closed file */
	char *place; /* its name; NULL before it is closed */
	bool kept_old; /* what it replaced is .old now */
	int replaced_fd; /* of the file that goes when that gets its name; -1: none */
	pid_t closer; /* the child that closes it; 0: there is none */
};

/* Records options->command and returns the exit status for this program; what goes wrong
 * has been printed. */
int pm_rec_session_run(const struct pm_rec_options *options);

/* `pmrec: warning: …` on stderr unless --quiet; and a note in the file once it is open. */
void pm_rec_warn(struct pm_rec_session *session, const char *text);
/* A recording that failed has stopped while the command runs on. */
void pm_rec_say_stopped(const struct pm_error *err, int error);
/* The recording has stopped, the command not. @failed: that was said already. */
void pm_rec_say_waiting(const struct pm_rec_session *session, bool failed);
