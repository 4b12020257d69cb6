/* SPDX-License-Identifier: MIT */
/*
 * Flame graphs of a view, alone or beside a view of another profile, and the ground they
 * stand on: functions, paths and threads of two profiles under one set of ids.
 *
 * What is made here is made once and then only read. Nothing recurses: a stack may have
 * 100,000 frames.
 */
#pragma once

#include "pm/base.h"
#include "pm/profile.h"

/* ---- two profiles as one ------------------------------------------------------------- */

enum pm_flame_kind {
	PM_FLAME_USER,
	PM_FLAME_KERNEL,
	PM_FLAME_GENERATED, /* code made while running */
	PM_FLAME_UNKNOWN, /* a function without a name */
};

struct pm_merged_function {
	const char *name; /* "[unknown]" if it has none */
	uint32_t module; /* in `modules`, PM_PROFILE_NONE: in none */
	enum pm_flame_kind kind;
	bool unknown;
};

/* From the ids of a profile to merged ones. */
struct pm_merged_map {
	uint32_t *functions, *modules, *threads, *stops;
	uint32_t *paths; /* by stack: of its innermost function */
};

/*
 * The first profile keeps its ids. Of the second, modules are the same by their short name,
 * or because they are what was run; functions by name and module; paths by their functions;
 * threads by name, the nth of a name with the nth, for a pid never comes again. Texts live as
 * long as the profiles.
 */
struct pm_merged {
	const struct pm_profile *of[2]; /* [1] NULL: one only */
	PM_VEC(struct pm_profile_module) modules;
	PM_VEC(struct pm_merged_function) functions;
	PM_VEC(struct pm_profile_thread) threads;
	PM_VEC(const char *) stops; /* [0] is NULL */
	PM_VEC(struct pm_path) paths; /* parents first */
	struct pm_merged_map map[2];
};

/* @base may be NULL. 0 or -ENOMEM; -E2BIG with @err as pm_paths_init(). */
int pm_merged_init(struct pm_merged *ret, const struct pm_profile *profile,
		   const struct pm_profile *base, struct pm_error *err);
void pm_merged_release(struct pm_merged *merged);

/* ---- graphs -------------------------------------------------------------------------- */

struct pm_flame_node {
	uint32_t
		function; /* of pm_merged; PM_PROFILE_NONE in node 0, which is everything */
	uint32_t parent; /* node 0: itself */
	uint32_t depth; /* 0 for node 0 */
	bool inlined; /* every instance here is */
	struct pm_weight total;
	struct pm_weight self; /* total without the children's: what ends here */
	struct pm_weight base_total, base_self; /* as measured; 0 without a base */
};

struct pm_flame_options {
	bool inverted; /* from where samples were taken to their callers */
	double least; /* percent of everything below which nodes are left out */
};

/* In preorder, children heaviest first, then by name. */
struct pm_flame {
	PM_VEC(struct pm_flame_node) nodes;
	uint32_t deepest;
	/* Nodes that are below `least`, or have nothing but a base. Inverted, what is above
	 * such a node is not counted. */
	size_t left_out;
	bool cut; /* inverted: grew too large, the outermost callers are left out */
};

/*
 * @view is of merged->of[0], @base of merged->of[1] or NULL. Time and memory are linear in
 * the number of paths; inverted, in the sum of the lengths of the distinct stacks, up to a
 * limit. 0 or -ENOMEM.
 */
int pm_flame_init(struct pm_flame *ret, const struct pm_merged *merged,
		  const struct pm_view *view, const struct pm_view *base,
		  const struct pm_flame_options *options);
void pm_flame_release(struct pm_flame *flame);
