/* SPDX-License-Identifier: MIT */
/*
 * Code that processes make while they run: what their perf maps and jitdumps tell of it,
 * read while they are being written, so that each sample gets the name of its time.
 *
 * In the file such code is in modules of kind "jit". One process may have several: a place
 * that was named and then got other code is in the next one, so that a frame has one name.
 */
#pragma once

#include "pm/chain-modules.h"

struct pm_chain_jit;

/* Where it reads and writes; all borrowed. */
struct pm_chain_jit_source {
	struct pm_procs *procs;
	struct pm_chain_modules *modules;
	struct pm_file_writer *writer;
	bool symbols; /* names are wanted */
	/* What was wrong, in a sentence, at the end. */
	void (*warn)(void *user, const char *text);
	void *user;
};

/* NULL without memory. */
struct pm_chain_jit *pm_chain_jit_new(const struct pm_chain_jit_source *source);
void pm_chain_jit_free(struct pm_chain_jit *jit);

/* What records change; without @jit nothing. A mapping of a jitdump tells where it is; others
 * mean nothing here. */
int pm_chain_jit_map(struct pm_chain_jit *jit, pid_t pid,
		     const struct pm_module_identity *mapped);
int pm_chain_jit_fork(struct pm_chain_jit *jit, pid_t pid, pid_t parent);
/* Also when a pid is used again. */
int pm_chain_jit_exec(struct pm_chain_jit *jit, pid_t pid);

/*
 * Whether functions of these frames bring unwind information of their own that the process's
 * space does not show yet: then it does from now on, and the stack is to be unwound again.
 */
bool pm_chain_jit_cover(struct pm_chain_jit *jit, struct pm_process *process,
			const struct pm_unw_frame *frames, size_t len, uint64_t time_ns);

/* The file's id of the module that a place in generated code is in at that time, and the
 * frame is then at @address itself. */
int pm_chain_jit_module(struct pm_chain_jit *jit, pid_t pid, uint64_t address,
			enum pm_unw_how how, uint64_t time_ns, uint32_t *ret);
/* To be told of each frame that is interned: names those of generated code. */
int pm_chain_jit_frame(struct pm_chain_jit *jit, uint32_t module, uint64_t address,
		       enum pm_unw_how how, uint64_t time_ns, uint32_t frame);

/* At the end of a recording: names what was only told afterwards, and says what was wrong. */
int pm_chain_jit_finish(struct pm_chain_jit *jit);
