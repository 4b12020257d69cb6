/* SPDX-License-Identifier: MIT */
/* Shared by the resymbolize*.c files. */
#pragma once

#include "debuginfod.h"
#include "pm/proc.h"
#include "pm/symbol-crew.h"
#include "resymbolize.h"

/* The result of the search for a module's file. */
enum pm_resymbolize_state {
	PM_RESYMBOLIZE_UNTRIED,
	PM_RESYMBOLIZE_NO_ID, /* no build-id: no file can be identified as the module */
	PM_RESYMBOLIZE_NOT_HERE,
	PM_RESYMBOLIZE_OTHER_BUILD, /* there is another build at its path */
	PM_RESYMBOLIZE_FOUND,
	PM_RESYMBOLIZE_OTHER_KERNEL, /* another kernel runs, or the same one rebooted */
};

struct pm_resymbolize_module {
	char *path, *build_id; /* build_id NULL: unknown */
	uint8_t id[PM_MODULE_BUILD_ID_MAX];
	uint8_t id_len; /* 0: unknown, or not hexadecimal */
	enum pm_resymbolize_state state;
	bool asked; /* servers were asked */
	bool lines; /* names with lines were found */
	char *fetched; /* path of the file from a server; NULL: none */
	bool fetched_executable;
	char why[PM_ERROR_TEXT_MAX + 16]; /* message of the error; "": none */
};

struct pm_resymbolize {
	struct pm_resymbolize_options options;
	char *symfs, *debug_dir; /* absolute */
	char *symfs_debug; /* the usual debug folder below symfs */
	struct pm_profile_symbolizer symbolizer;
	struct pm_debuginfod debuginfod;
	PM_VEC(struct pm_resymbolize_module) modules;
	struct pm_index by_name; /* index of modules: path and build-id */
	struct pm_kallsyms *kallsyms;
	bool kallsyms_tried;
	bool last;
	uint64_t again_ns; /* time of the next attempt; 0: at once */
};

bool pm_resymbolize_explicit(const struct pm_resymbolize *resymbolize);
/* Returns the row of the module, or NULL. */
const struct pm_resymbolize_module *pm_resymbolize_find(
	const struct pm_resymbolize *resymbolize, const struct pm_profile_module *module);
/* Finds or creates the row of the module. Returns NULL without memory. May move the
 * rows. */
struct pm_resymbolize_module *pm_resymbolize_module(
	struct pm_resymbolize *resymbolize, const struct pm_profile_module *module);
/*
 * Opens the files to be read for @module, each checked by its build-id: those from a
 * server if there are any, otherwise local ones. Sets the fd and debug fields of @out,
 * which the caller closes, and the places where other files are searched.
 */
enum pm_resymbolize_state pm_resymbolize_open(const struct pm_resymbolize *resymbolize,
					      const struct pm_resymbolize_module *module,
					      struct pm_symbol_input *out);
