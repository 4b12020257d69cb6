/* SPDX-License-Identifier: MIT */
/*
 * --raw FILE: keeps the unwinder's input beside the recording, as a corpus, so that every
 * stack can be unwound again.
 */
#pragma once

#include "pm/chain-modules.h"
#include "pm/perf.h"

struct pm_chain_raw;

struct pm_chain_raw_sample {
	uint64_t index; /* of its line in the recording */
	const struct pm_record *record;
	const struct pm_unw_space *space; /* tags: module ids */
	const struct pm_unw_regs *regs;
	const struct pm_unw_stack *stack;
	const struct pm_unw_frame *frames; /* as found, leaf first */
	size_t frames_len;
};

/* Opens the corpus file @path. @stack_bytes is the number requested from the kernel.
 * @procs and @modules are borrowed. */
int pm_chain_raw_open(struct pm_chain_raw **out, const char *path, uint32_t stack_bytes,
		      struct pm_procs *procs, struct pm_chain_modules *modules,
		      struct pm_error *err);
/* Like pm_file_writer_background(). */
int pm_chain_raw_background(struct pm_chain_raw *raw, pm_file_wants_end_fn wants_end,
			    void *user);
/* Adds a sample. Every module that the process has mapped must have been touched before.
 * Returns 0 or negative errno. */
int pm_chain_raw_add(struct pm_chain_raw *raw, const struct pm_chain_raw_sample *sample);
/* Return the numbers of samples and bytes written so far. */
uint64_t pm_chain_raw_samples(const struct pm_chain_raw *raw);
uint64_t pm_chain_raw_bytes(const struct pm_chain_raw *raw);
/* Closes the corpus; @complete marks it as a whole one. Returns the first error since the
 * file was opened. @raw may be NULL. */
int pm_chain_raw_close(struct pm_chain_raw *raw, bool complete, struct pm_error *err);
