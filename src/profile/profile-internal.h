/* SPDX-License-Identifier: MIT */
/* Shared by the files of src/profile. */
#pragma once

#include "pm/profile.h"

/* ---- texts, each stored once at a fixed address ----------------------------------------- */

struct pm_text_pool;

struct pm_text_pool *pm_text_pool_new(void);
void pm_text_pool_free(struct pm_text_pool *pool);
/* Returns the pool's copy of @text; equal strings have the same pointer. Returns NULL
 * without memory. */
const char *pm_text_pool_add(struct pm_text_pool *pool, const char *text, size_t len);

/* ---- loading ---------------------------------------------------------------------------- */

struct pm_loader_thread {
	uint32_t pid, tid;
	uint32_t current; /* row in profile->threads */
};

/* The last count of an event, for a thread on a CPU. */
struct pm_loader_count {
	uint32_t pid, tid, cpu, event; /* pid and tid 0: the count is of the whole CPU */
	uint64_t value;
};

/* Indexes and other state that only loading needs. */
struct pm_loader {
	struct pm_profile *profile;
	const struct pm_profile_options *options;
	struct pm_index threads_by_name, threads_by_tid, processes;
	struct pm_index functions, places, cells, field_names, branches;
	/* Indexes of modules by path, and by path and build-id. */
	struct pm_index modules_by_path, modules_by_build;
	PM_VEC(uint32_t) modules; /* by id in the file: the row in profile->modules */
	PM_VEC(uint32_t) same_path; /* by row: the first row with the same path */
	PM_VEC(struct pm_loader_thread) tids;
	struct pm_index count_rows;
	PM_VEC(struct pm_loader_count) counts;
	/* Row in `tids` of the last sample: the next sample often has the same. */
	uint32_t last_tid;
	uint64_t lost_records;
	uint64_t first_thread_ns;
	PM_VEC(uint16_t) depths; /* by stack: number of frames */
	bool thread_seen, sample_seen;
	PM_VEC(bool) named; /* by row of modules: the file has symbols of the module */
	uint32_t asked; /* frames below this row were passed to the symbolizer */
};

/* Creates an empty profile. Returns 0 or -ENOMEM. */
int pm_loader_init(struct pm_loader *loader, const struct pm_profile_options *options);

void pm_loader_release(struct pm_loader *loader);

/* Loads any record, or a record of one type. Return 0 or a negative errno. */
int pm_load_record(struct pm_loader *loader, const struct pm_file_record *record);
int pm_load_header(struct pm_loader *loader, const struct pm_file_header *header);
int pm_load_module(struct pm_loader *loader, const struct pm_file_module *module);
int pm_load_frame(struct pm_loader *loader, const struct pm_file_frame *frame);
int pm_load_stack(struct pm_loader *loader, const struct pm_file_stack *stack);
int pm_load_note(struct pm_loader *loader, const struct pm_file_note *note);
int pm_load_thread(struct pm_loader *loader, const struct pm_file_thread *thread);
int pm_load_title(struct pm_loader *loader, const struct pm_file_title *title);
int pm_load_sample(struct pm_loader *loader, const struct pm_file_sample *sample);
int pm_load_symbol(struct pm_loader *loader, const struct pm_file_symbol *symbol);
/* Loads a symbol that is not from the file, and does not count it. */
int pm_load_names(struct pm_loader *loader, const struct pm_file_symbol *symbol);
int pm_load_footer(struct pm_loader *loader, const struct pm_file_footer *footer);
/* Computes everything that depends on the whole file: unnamed frames, children, times,
 * sums. */
int pm_load_finish(struct pm_loader *loader);
/* Sets @err to the reason for @code and returns @code. */
int pm_load_failed(int code, struct pm_error *err);
/* Passes frames without names to the symbolizer of the options, if there is one. Returns
 * 0 or a negative errno. */
int pm_load_resymbolize(struct pm_loader *loader);
/* Adds the branches of a sample of @cell. Returns 0 or -ENOMEM. */
int pm_load_branches(struct pm_loader *loader, const struct pm_file_sample *sample,
		     uint32_t cell);
/* Adds one sample to a cell. */
void pm_load_add(struct pm_profile_cell *cell, uint64_t period);
/* Computes the parallelism of each kept sample, and divides the periods by it if
 * requested. The samples must be in order of time. Returns 0 or -ENOMEM. */
int pm_load_parallelism(struct pm_loader *loader);

/* Whether @functions only contains the start of a function without a name. */
bool pm_load_is_start(const struct pm_file_function *functions, size_t len);
int pm_load_function(struct pm_loader *loader, const struct pm_file_function *named,
		     uint32_t module, uint32_t *out);
int pm_load_place(struct pm_loader *loader, uint32_t function, const char *file,
		  uint32_t line, uint32_t *out);
/* Stores in @out the pool's copy of @text, or NULL if @text is NULL. Returns 0 or
 * -ENOMEM. */
int pm_load_text(struct pm_loader *loader, const char *text, const char **out);

/* Sorts the rows by self or by total weight, heaviest first. */
void pm_table_sort(struct pm_table *table, bool total_first);

/* ---- tables by several keys --------------------------------------------------------------- */

/* The values of a table's frame keys at one place; the other keys are 0. */
struct pm_table_part {
	uint32_t of[PM_KEYS_MAX]; /* by key */
	/* During the walk: number of occurrences on the path from the root. */
	uint32_t active, proper;
	uint32_t context, row; /* used by the caller */
};

/* A part that occurs for the first time on the path from the root. */
struct pm_table_first {
	uint32_t part;
	bool counts; /* the first occurrence, inlined or not */
	bool proper; /* the first occurrence that is not inlined */
};

struct pm_table_node {
	uint32_t first, len; /* range in `firsts`; len 0: all parts occur further up */
	uint32_t up; /* the next node towards the root with len > 0, or NONE */
	uint32_t leaf; /* the part at the node's innermost level */
	uint32_t context; /* context and weight are used by the caller */
	struct pm_weight weight;
};

struct pm_table_paths {
	PM_VEC(struct pm_table_part) parts;
	PM_VEC(struct pm_table_first) firsts;
	/* By stack; empty if the view has no samples there. */
	struct pm_table_node *nodes;
};

bool pm_table_is_frame_key(enum pm_key key);
/* @keys must contain a key of frames. Returns 0 or -ENOMEM. Call the release function in
 * both cases. */
int pm_table_paths_init(struct pm_table_paths *paths, const struct pm_view *view,
			const struct pm_keys *keys);
void pm_table_paths_release(struct pm_table_paths *paths);
