/* SPDX-License-Identifier: MIT */
/* What the files of src/annotate share. */
#pragma once

#include "pm/annotate.h"

/* ---- stacks.c -------------------------------------------------------------------------- */

/*
 * Goes through the stacks of @view in depth: @enter when the path from the root has come to a
 * stack, @leave when all of its callees were seen. What is in no sample is left out.
 */
typedef void (*pm_annotate_stack_fn)(void *user, uint32_t stack);
void pm_annotate_walk(const struct pm_view *view, pm_annotate_stack_fn enter,
		      pm_annotate_stack_fn leave, void *user);

/* More of the two is first. */
static inline int pm_annotate_heavier(const struct pm_weight *a,
				      const struct pm_weight *b)
{
	return (a->period < b->period) - (a->period > b->period);
}

/* ---- texts.c --------------------------------------------------------------------------- */

/* Each text once, at an address that stays. */
struct pm_annotate_texts;

struct pm_annotate_texts *pm_annotate_texts_new(void);
void pm_annotate_texts_free(struct pm_annotate_texts *texts);
/* NULL without memory. */
const char *pm_annotate_texts_add(struct pm_annotate_texts *texts, const char *text);

/* ---- binary.c -------------------------------------------------------------------------- */

struct pm_annotate_binary {
	int fd;
	char *path; /* owned */
	bool unverified;
	char *debug_dir; /* where its separate debug file is; NULL: where they usually are */
};

/* The file of @module if it is the recorded one. Errors as pm_annotate_code_init(). */
int pm_annotate_binary_open(struct pm_annotate_binary *ret,
			    const struct pm_profile_module *module,
			    const struct pm_annotate_search *search,
			    struct pm_error *err);
void pm_annotate_binary_release(struct pm_annotate_binary *binary);

/* ---- places.c -------------------------------------------------------------------------- */

/* Files, lines and inlined functions of all instructions, and names of where they lead.
 * @name: of the function that was asked for. 0 or -ENOMEM. */
int pm_annotate_place_insns(struct pm_annotate_code *code,
			    const struct pm_annotate_binary *binary, const char *name);
/* The instruction that covers @address, or PM_PROFILE_NONE. */
uint32_t pm_annotate_find_insn(const struct pm_annotate_code *code, uint64_t address);
