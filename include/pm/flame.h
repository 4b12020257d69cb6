/* SPDX-License-Identifier: MIT */
/*
 * Flame graphs of a view, alone or compared with a view of another profile, and the
 * merged ids that they use: functions, paths and threads of two profiles under one set of
 * ids.
 *
 * Everything is computed once and then only read. Nothing recurses, since a stack may
 * have 100,000 frames.
 */
#pragma once

#include "pm/base.h"
#include "pm/profile.h"

/* ---- two profiles as one ------------------------------------------------------------- */

enum pm_flame_kind {
	PM_FLAME_USER,
	PM_FLAME_KERNEL,
	PM_FLAME_GENERATED, /* code generated at run time */
	PM_FLAME_UNKNOWN, /* a function without a name */
};

struct pm_merged_function {
	const char *name; /* "[unknown]" without a name */
	uint32_t module; /* in `modules`; PM_PROFILE_NONE: no module */
	enum pm_flame_kind kind;
	bool unknown;
};

/* Arrays that map the ids of a profile to merged ids. */
struct pm_merged_map {
	uint32_t *functions, *modules, *threads, *stops;
	uint32_t *paths; /* by stack: the path of its innermost function */
};

/*
 * The first profile keeps its ids. A module of the second profile equals one of the first
 * if they have the same short name or are both the main program; functions are equal by
 * name and module, paths by their functions. Threads are equal by name, the nth of a name
 * with the nth, since pids differ between runs. Strings are valid as long as the
 * profiles.
 */
struct pm_merged {
	const struct pm_profile *of[2]; /* [1] NULL: there is only one */
	PM_VEC(struct pm_profile_module) modules;
	PM_VEC(struct pm_merged_function) functions;
	PM_VEC(struct pm_profile_thread) threads;
	PM_VEC(const char *) stops; /* [0] is NULL */
	PM_VEC(struct pm_path) paths; /* parents first */
	struct pm_merged_map map[2];
};

/* @base may be NULL. Returns 0, -ENOMEM, or -E2BIG with @err like pm_paths_init(). */
int pm_merged_init(struct pm_merged *out, const struct pm_profile *profile,
		   const struct pm_profile *base, struct pm_error *err);
void pm_merged_release(struct pm_merged *merged);

/* ---- graphs -------------------------------------------------------------------------- */

struct pm_flame_node {
	/* Index in pm_merged; PM_PROFILE_NONE for node 0, which is everything. */
	uint32_t function;
	uint32_t parent; /* of node 0: itself */
	uint32_t depth; /* 0 for node 0 */
	bool inlined; /* every instance in this node is inlined */
	struct pm_weight total;
	struct pm_weight self; /* total minus the totals of the children */
	struct pm_weight base_total, base_self; /* as measured; 0 if there is no base */
};

struct pm_flame_options {
	bool inverted; /* from the sampled functions to their callers */
	double least; /* nodes below this percentage of everything are left out */
};

/* In preorder, children heaviest first, then by name. */
struct pm_flame {
	PM_VEC(struct pm_flame_node) nodes;
	uint32_t deepest;
	/* Number of nodes that are below `least` or exist in the base only. In an
	 * inverted graph, nodes above such a node are not counted. */
	size_t left_out;
	bool cut; /* inverted and too large: the outermost callers are left out */
};

/*
 * @view belongs to merged->of[0], @base to merged->of[1] or is NULL. Time and memory are
 * linear in the number of paths; inverted, in the sum of the lengths of the distinct
 * stacks, up to a limit. Returns 0 or -ENOMEM.
 */
int pm_flame_init(struct pm_flame *out, const struct pm_merged *merged,
		  const struct pm_view *view, const struct pm_view *base,
		  const struct pm_flame_options *options);
void pm_flame_release(struct pm_flame *flame);
