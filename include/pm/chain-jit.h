/* SPDX-License-Identifier: MIT */
/*
 * Code that processes generate while they run, as described by their perf maps and
 * jitdumps. These files are read while they are being written, so that each sample gets
 * the name that was valid at its time.
 *
 * The recorded file has such code in modules of kind "jit". One process may have several:
 * if a named place later has other code, the new code gets another module, so that each
 * frame has only one name.
 */
#pragma once

#include "pm/chain-modules.h"

struct pm_chain_jit;

/* Inputs and outputs; all borrowed. */
struct pm_chain_jit_source {
	struct pm_procs *procs;
	struct pm_chain_modules *modules;
	struct pm_file_writer *writer;
	bool symbols; /* names are requested */
	/* Called at the end: @text describes in one sentence what was wrong. */
	void (*warn)(void *user, const char *text);
	void *user;
};

/* Returns NULL if out of memory. */
struct pm_chain_jit *pm_chain_jit_new(const struct pm_chain_jit_source *source);
void pm_chain_jit_free(struct pm_chain_jit *jit);

/* These apply records, and do nothing if @jit is NULL. The mapping of a jitdump shows
 * where the dump is; other mappings are ignored. */
int pm_chain_jit_map(struct pm_chain_jit *jit, pid_t pid,
		     const struct pm_module_identity *mapped);
int pm_chain_jit_fork(struct pm_chain_jit *jit, pid_t pid, pid_t parent);
/* Also to be called when a pid is reused. */
int pm_chain_jit_exec(struct pm_chain_jit *jit, pid_t pid);
/* To be called when the process has exited. Its names are kept until other processes need
 * the memory, because late samples may need them. */
void pm_chain_jit_exit(struct pm_chain_jit *jit, pid_t pid);

/*
 * Returns whether functions of these frames have unwind information that the process's
 * space does not contain yet. If so, the space contains it from now on, and the caller
 * must unwind the stack again.
 */
bool pm_chain_jit_cover(struct pm_chain_jit *jit, struct pm_process *process,
			const struct pm_unw_frame *frames, size_t len, uint64_t time_ns);

/* Sets *out to the file's id of the module that contains @address in generated code at
 * @time_ns. The frame's address in the file is then @address itself. */
int pm_chain_jit_module(struct pm_chain_jit *jit, pid_t pid, uint64_t address,
			enum pm_unw_how how, uint64_t time_ns, uint32_t *out);
/* To be called for each frame that is interned: names the frame if it is in generated
 * code. */
int pm_chain_jit_frame(struct pm_chain_jit *jit, uint32_t module, uint64_t address,
		       enum pm_unw_how how, uint64_t time_ns, uint32_t frame);

/* The time for reading the remaining names: if the recording ended with its command; if
 * the user stopped it; and while samples wait, where the time is also limited to what all
 * reading may take in total. */
#define PM_CHAIN_JIT_END_NS  UINT64_C(10000000000)
#define PM_CHAIN_JIT_STOP_NS UINT64_C(1500000000)
#define PM_CHAIN_JIT_DROP_NS UINT64_C(100000000)

/* At the end of a recording: adds names that were written late, for about @max_ns at
 * most, and warns about everything that was wrong. */
int pm_chain_jit_finish(struct pm_chain_jit *jit, uint64_t max_ns);
