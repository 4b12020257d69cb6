/* SPDX-License-Identifier: MIT */
/*
 * Code that processes make while they run: what their perf maps and jitdumps tell of it,
 * read while they are being written, so that each sample gets the name of its time.
 *
 * In the file such code is in modules of kind "jit". One process may have several: a place
 * that was named and then got other code is in the next one, so that a frame has one name.
 */
#pragma once

#include "modules.h"

struct pm_rec_jit;
struct pm_rec_session;

/* NULL without memory. The session (its modules, procs, writer and options) is borrowed. */
struct pm_rec_jit *pm_rec_jit_new(struct pm_rec_session *session);
void pm_rec_jit_free(struct pm_rec_jit *jit);

/* What records change; without @jit nothing. A mapping of a jitdump tells where it is; others
 * mean nothing here. */
int pm_rec_jit_map(struct pm_rec_jit *jit, pid_t pid,
		   const struct pm_module_identity *mapped);
int pm_rec_jit_fork(struct pm_rec_jit *jit, pid_t pid, pid_t parent);
/* Also when a pid is used again. */
int pm_rec_jit_exec(struct pm_rec_jit *jit, pid_t pid);

/*
 * Whether functions of these frames bring unwind information of their own that the process's
 * space does not show yet: then it does from now on, and the stack is to be unwound again.
 */
bool pm_rec_jit_cover(struct pm_rec_jit *jit, struct pm_process *process,
		      const struct pm_unw_frame *frames, size_t len, uint64_t time_ns);

/* The file's id of the module that a place in generated code is in at that time, and the
 * frame is then at @address itself. */
int pm_rec_jit_module(struct pm_rec_jit *jit, pid_t pid, uint64_t address,
		      enum pm_unw_how how, uint64_t time_ns, uint32_t *ret);
/* To be told of each frame that is interned: names those of generated code. */
int pm_rec_jit_frame(struct pm_rec_jit *jit, uint32_t module, uint64_t address,
		     enum pm_unw_how how, uint64_t time_ns, uint32_t frame);

/* At the end of a recording: names what was only told afterwards, and says what was wrong. */
int pm_rec_jit_finish(struct pm_rec_jit *jit);
