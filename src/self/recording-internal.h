/* SPDX-License-Identifier: MIT */
/* A recording, shared by recording.c, header.c and names.c. */
#pragma once

#include "changes.h"
#include "pm/chain-tasks.h"
#include "recording.h"

enum {
	/* Limit of open module files, in the helper's own table. */
	PM_SELF_FILES_MAX = 512,
};

struct pm_self_recording {
	const struct pm_self_settings *settings;
	struct pm_self_engine *engine;
	struct pm_file_writer *writer; /* stores nothing if there is no output file */
	struct pm_profile_stream *profile; /* receives everything that is written */
	struct pm_procs *procs;
	struct pm_chain_modules modules;
	struct pm_chain_threads threads;
	struct pm_chains *chains;
	struct pm_chain_jit *jit;
	pid_t pid;
	uint64_t begin_ns, begin_cpu_ns;
	/* For the footer: */
	uint64_t samples, period, lost, throttled, truncated, stitched;
	uint64_t stops[PM_CHAIN_STOP_COUNT];
	struct pm_self_changes changes; /* of the mappings */
	struct pm_error refused; /* why the first engine was not used; code 0: it was
	                          * used */
	struct pm_error failed; /* the first failure; code 0: none */
};

/* Adds a note to the file. */
void pm_self_note(struct pm_self_recording *recording, const char *text);

int pm_self_write_header(struct pm_self_recording *recording);
int pm_self_write_footer(struct pm_self_recording *recording, uint64_t end_ns);
/* Writes the names of all frames so far. */
int pm_self_write_names(struct pm_self_recording *recording);
