/* SPDX-License-Identifier: MIT */
/* What the files of names share. */
#pragma once

#include "debuginfod.h"
#include "pm/proc.h"
#include "pm/symbol-crew.h"
#include "resymbolize.h"

/* What became of one module. */
enum pm_resymbolize_state {
	PM_RESYMBOLIZE_UNTRIED,
	PM_RESYMBOLIZE_NO_ID, /* it has no build-id: nothing can be trusted to be it */
	PM_RESYMBOLIZE_NOT_HERE,
	PM_RESYMBOLIZE_OTHER_BUILD, /* at its path stands something else */
	PM_RESYMBOLIZE_FOUND,
	PM_RESYMBOLIZE_OTHER_KERNEL, /* or another boot */
};

struct pm_resymbolize_module {
	char *path, *build_id; /* build_id NULL: unknown */
	uint8_t id[PM_MODULE_BUILD_ID_MAX];
	uint8_t id_len; /* 0: unknown, or no hexadecimal text */
	enum pm_resymbolize_state state;
	bool asked; /* the servers */
	bool lines; /* names with lines were found */
	char *fetched; /* from a server; NULL: nothing */
	bool fetched_executable;
	char why[PM_ERROR_TEXT_MAX + 16]; /* something went wrong, "" if not */
};

struct pm_resymbolize {
	struct pm_resymbolize_options options;
	char *symfs, *debug_dir; /* absolute */
	char *symfs_debug; /* the usual folder below symfs */
	struct pm_profile_symbolizer symbolizer;
	struct pm_debuginfod debuginfod;
	PM_VEC(struct pm_resymbolize_module) modules;
	struct pm_index by_name; /* of modules: path and build-id */
	struct pm_kallsyms *kallsyms;
	bool kallsyms_tried;
	bool last;
	uint64_t again_ns; /* not before that; 0: whenever */
};

bool pm_resymbolize_explicit(const struct pm_resymbolize *resymbolize);
/* The row of it, or NULL. */
const struct pm_resymbolize_module *pm_resymbolize_find(
	const struct pm_resymbolize *resymbolize, const struct pm_profile_module *module);
/* The row of it, or of a new one; NULL without memory. Moves rows. */
struct pm_resymbolize_module *pm_resymbolize_module(
	struct pm_resymbolize *resymbolize, const struct pm_profile_module *module);
/*
 * Opens what is to be read for @module, each file checked by build-id: what a server gave, else
 * what is here. Sets fd and debug of @ret, which the caller closes, and where to look on.
 */
enum pm_resymbolize_state pm_resymbolize_open(const struct pm_resymbolize *resymbolize,
					      const struct pm_resymbolize_module *module,
					      struct pm_symbol_input *ret);
