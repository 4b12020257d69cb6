/* SPDX-License-Identifier: MIT */
/*
 * What the user asked for: the command line of pmrec as plain data.
 */
#pragma once

#include "pm/perf.h"

enum pm_rec_engine {
	PM_REC_ENGINE_PERF, /* the kernel's sampling */
	PM_REC_ENGINE_PTRACE, /* ours, see engine-ptrace.h */
	PM_REC_ENGINE_AUTO, /* the second where the first is denied */
};

enum pm_rec_action {
	PM_REC_RECORD,
	PM_REC_STACKS, /* of a running process, once */
	PM_REC_HELP,
	PM_REC_VERSION,
};

struct pm_rec_options {
	enum pm_rec_action action;
	enum pm_rec_engine engine;
	struct pm_event_specs specs;
	bool by_frequency, rate_given, stack_bytes_given, event_given;
	bool verify; /* ask libunwind, too */
	bool libunwind; /* --stacks: instead of our own unwinder */
	pid_t pid, tid; /* --stacks: of whom; tid 0: all threads */
	uint64_t rate; /* Hz or period; UINT64_MAX Hz: the maximum */
	enum pm_call_graph call_graph;
	uint32_t stack_bytes;
	bool stitch;
	size_t ring_pages; /* 0: choose */
	const char *output;
	const char *raw; /* NULL: not asked for */
	bool quiet, verbose, symbols;
	char **command; /* borrowed from argv, NULL-terminated */
};

/* 0, or -EINVAL with one clear line in @err. Release in both cases. */
int pm_rec_options_parse(struct pm_rec_options *options, int argc, char **argv,
			 struct pm_error *err);
void pm_rec_options_release(struct pm_rec_options *options);
/* The whole of --help, and the names of all events, to stdout. */
void pm_rec_options_help(void);
