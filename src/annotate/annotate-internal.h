/* SPDX-License-Identifier: MIT */
/* Shared by the files of src/annotate. */
#pragma once

#include "pm/annotate.h"

/* ---- stacks.c -------------------------------------------------------------------------- */

/*
 * Walks the stacks of @view depth-first. Calls @enter when the path from the root reaches
 * a stack, and @leave after all of its callees. Stacks without samples are skipped.
 */
typedef void (*pm_annotate_stack_fn)(void *user, uint32_t stack);
void pm_annotate_walk(const struct pm_view *view, pm_annotate_stack_fn enter,
		      pm_annotate_stack_fn leave, void *user);

/* Compares for sorting: the heavier one comes first. */
static inline int pm_annotate_heavier(const struct pm_weight *a,
				      const struct pm_weight *b)
{
	return (a->period < b->period) - (a->period > b->period);
}

/* ---- texts.c --------------------------------------------------------------------------- */

/* A set with one copy of each string, at a permanent address. */
struct pm_annotate_texts;

struct pm_annotate_texts *pm_annotate_texts_new(void);
void pm_annotate_texts_free(struct pm_annotate_texts *texts);
/* Returns the copy of @text, or NULL if out of memory. */
const char *pm_annotate_texts_add(struct pm_annotate_texts *texts, const char *text);

/* ---- binary.c -------------------------------------------------------------------------- */

struct pm_annotate_binary {
	int fd;
	char *path; /* owned */
	bool unverified;
	char *debug_dir; /* folder with its debug file; NULL: the default one */
};

/* Opens the file of @module if it is the recorded one. Fails like
 * pm_annotate_code_init(). */
int pm_annotate_binary_open(struct pm_annotate_binary *out,
			    const struct pm_profile_module *module,
			    const struct pm_annotate_search *search,
			    struct pm_error *err);
void pm_annotate_binary_release(struct pm_annotate_binary *binary);

/* ---- places.c -------------------------------------------------------------------------- */

/* Sets the files, lines and inlined functions of all instructions, and the names of the
 * targets of jumps and calls. @name is the name of the requested function. Returns 0 or
 * -ENOMEM. */
int pm_annotate_place_insns(struct pm_annotate_code *code,
			    const struct pm_annotate_binary *binary, const char *name);
/* Returns the index of the instruction that covers @address, or PM_PROFILE_NONE. */
uint32_t pm_annotate_find_insn(const struct pm_annotate_code *code, uint64_t address);
