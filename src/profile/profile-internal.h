/* SPDX-License-Identifier: MIT */
/* What the files of src/profile share. */
#pragma once

#include "pm/profile.h"

/* ---- texts, each kept once, at an address that stays ------------------------------------ */

struct pm_text_pool;

struct pm_text_pool *pm_text_pool_new(void);
void pm_text_pool_free(struct pm_text_pool *pool);
/* The pool's copy of @text: equal texts are one pointer. NULL without memory. */
const char *pm_text_pool_add(struct pm_text_pool *pool, const char *text, size_t len);

/* ---- loading ---------------------------------------------------------------------------- */

struct pm_loader_thread {
	uint32_t pid, tid;
	uint32_t current; /* row in profile->threads */
};

/* The last count of an event in a thread on a CPU. */
struct pm_loader_count {
	uint32_t pid, tid, cpu, event; /* pid and tid 0: of the CPU */
	uint64_t value;
};

/* Indexes and leftovers that only loading needs. */
struct pm_loader {
	struct pm_profile *profile;
	const struct pm_profile_options *options;
	struct pm_index threads_by_name, threads_by_tid, processes;
	struct pm_index functions, places, cells, field_names, branches;
	/* By path; by path and build-id; and what the file's ids became. */
	struct pm_index modules_by_path, modules_by_build;
	PM_VEC(uint32_t) modules; /* by id in the file: the row in profile->modules */
	PM_VEC(uint32_t) same_path; /* by row: the first row of its path */
	PM_VEC(struct pm_loader_thread) tids;
	struct pm_index count_rows;
	PM_VEC(struct pm_loader_count) counts;
	uint32_t last_tid; /* row in tids of the last sample: often the same again */
	uint64_t lost_records;
	uint64_t first_thread_ns;
	PM_VEC(uint16_t) depths; /* by stack: how many frames it has */
	bool thread_seen, sample_seen;
	PM_VEC(bool) named; /* by row of modules: the file has symbols of it */
	uint32_t asked; /* frames below this were given to the symbolizer */
};

/* An empty profile. 0 or -ENOMEM. */
int pm_loader_init(struct pm_loader *loader, const struct pm_profile_options *options);

void pm_loader_release(struct pm_loader *loader);

/* Any record; and one for each type. 0 or negative errno. */
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
/* The same for names that are not the file's; nothing is counted. */
int pm_load_names(struct pm_loader *loader, const struct pm_file_symbol *symbol);
int pm_load_footer(struct pm_loader *loader, const struct pm_file_footer *footer);
/* What can be known only at the end: names of the nameless, children, times, sums. */
int pm_load_finish(struct pm_loader *loader);
/* Says why it failed. Returns @code. */
int pm_load_failed(int code, struct pm_error *err);
/* Asks the symbolizer of the options, if there is one. 0 or negative errno. */
int pm_load_resymbolize(struct pm_loader *loader);
/* Adds the branches of a sample of @cell. 0 or -ENOMEM. */
int pm_load_branches(struct pm_loader *loader, const struct pm_file_sample *sample,
		     uint32_t cell);
/* Adds a weight of one sample and @period to the cell that is as @cell says; *ret: its row.
 * 0 or -ENOMEM. */
int pm_load_weight(struct pm_loader *loader, const struct pm_file_sample *sample,
		   const struct pm_profile_cell *cell, uint64_t period, uint32_t *ret);
/* Adds one sample to a cell. */
static inline void pm_load_add(struct pm_profile_cell *cell, uint64_t period)
{
	pm_weight_add(&cell->weight,
		      &(struct pm_weight){ .samples = 1, .period = period });
	if (period > cell->longest)
		cell->longest = period;
}
/* Adds what the other events of the group counted since the sample before. @at: its cell. */
int pm_load_counts(struct pm_loader *loader, const struct pm_file_sample *sample,
		   const struct pm_profile_cell *at);
/* How many CPUs ran at each kept sample, and shares of wall-clock time if asked for. Once
 * samples are in order. 0 or -ENOMEM. */
int pm_load_parallelism(struct pm_loader *loader);

/* Whether all that @functions tell is where one without a name begins. */
bool pm_load_is_start(const struct pm_file_function *functions, size_t len);
int pm_load_function(struct pm_loader *loader, const struct pm_file_function *named,
		     uint32_t module, uint32_t *ret);
int pm_load_place(struct pm_loader *loader, uint32_t function, const char *file,
		  uint32_t line, uint32_t *ret);
/* Copies @text into the pool; NULL stays NULL. -ENOMEM. */
int pm_load_text(struct pm_loader *loader, const char *text, const char **ret);

/* Sorts rows by self, or by total, heaviest first. */
void pm_table_sort(struct pm_table *table, bool total_first);

/* ---- tables by several keys --------------------------------------------------------------- */

/* What the keys of frames of a table say in one place; other keys are 0. */
struct pm_table_part {
	uint32_t of[PM_KEYS_MAX]; /* by key */
	uint32_t active, proper; /* while walking: times on the way from the root */
	uint32_t context, row; /* the caller's */
};

/* Where a part comes first on the way from the root. */
struct pm_table_first {
	uint32_t part;
	bool counts; /* at all */
	bool proper; /* as the function itself, not inlined */
};

struct pm_table_node {
	uint32_t first, len; /* in firsts; 0 where everything was further up, too */
	uint32_t up; /* the next node towards the root with a length, or NONE */
	uint32_t leaf; /* the part of its innermost level */
	uint32_t context; /* the caller's, as is: */
	struct pm_weight weight;
};

struct pm_table_paths {
	PM_VEC(struct pm_table_part) parts;
	PM_VEC(struct pm_table_first) firsts;
	struct pm_table_node *nodes; /* by stack; empty where the view has no samples */
};

bool pm_table_is_frame_key(enum pm_key key);
/* @keys has at least one key of frames. 0 or -ENOMEM; release it in either case. */
int pm_table_paths_init(struct pm_table_paths *paths, const struct pm_view *view,
			const struct pm_keys *keys);
void pm_table_paths_release(struct pm_table_paths *paths);
