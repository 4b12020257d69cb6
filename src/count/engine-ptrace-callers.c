/* SPDX-License-Identifier: MIT */
/*
 * Callers, for --calls-from: libunwind-ptrace unwinds a thread that is stopped at an
 * entry. A chain consists of places in files, so that it is the same in each process.
 * Their names are looked up together at the end.
 */
#include "engine-ptrace.h"

#include <string.h>

#include "pm/symbol.h"
#include "pm/unwind.h"

/* ---- frames and chains ----------------------------------------------------------------- */

static bool equal_frame(const void *table, uint32_t id, const void *key)
{
	const struct pm_ptr_callers *callers = table;
	const struct pm_ptr_frame *a = &callers->frames.data[id], *b = key;

	return a->module == b->module && a->offset == b->offset;
}

static bool equal_chain(const void *table, uint32_t id, const void *key)
{
	const struct pm_ptr_callers *callers = table;
	const struct pm_ptr_chain *a = &callers->chains.data[id], *b = key;

	return a->len == b->len &&
	       memcmp(callers->words.data + a->first, callers->words.data + b->first,
		      a->len * sizeof(*callers->words.data)) == 0;
}

/* Returns the id of the frame, or PM_INDEX_NONE if out of memory. */
static uint32_t intern_caller_frame(struct pm_ptr_callers *callers, int64_t module,
				    uint64_t offset)
{
	struct pm_ptr_frame frame = { .module = module, .offset = offset };
	uint64_t hash = pm_hash_mix((uint64_t)module, offset);
	uint32_t id =
		pm_index_find(&callers->by_frame, hash, equal_frame, callers, &frame);

	if (id != PM_INDEX_NONE)
		return id;
	id = (uint32_t)callers->frames.len;
	if (pm_vec_push(&callers->frames, frame) < 0)
		return PM_INDEX_NONE;
	if (pm_index_add(&callers->by_frame, hash, id) < 0) {
		callers->frames.len--;
		return PM_INDEX_NONE;
	}
	return id;
}

static uint32_t intern_pc_frame(struct pm_ptr_callers *callers, struct pm_procs *procs,
				pid_t pid, uint64_t pc)
{
	const struct pm_process *process = pm_procs_get(procs, pid);
	const struct pm_mapping *map = NULL;

	if (process)
		map = pm_space_find(&process->space, pc);
	/* A library that was mapped without a notification. */
	if (!map && process && pm_procs_read(procs, pid, NULL) == 0)
		map = pm_space_find(&process->space, pc);
	if (map)
		return intern_caller_frame(callers, map->module,
					   pc - map->start + map->pgoff);
	return intern_caller_frame(callers, PM_MODULE_NONE, pc);
}

/* Reads the place itself and its callers. The return address is where all exits lead to
 * and is cheap to read; callers beyond it need an unwinder, which takes a thousand times
 * as long. */
static ssize_t read_chain(const struct pm_ptr_look *look, uint64_t *pcs)
{
	uint32_t depth = PM_MIN(look->depth, PM_PTR_CALLERS_MAX);

	if (depth > 1)
		return pm_unw_ptrace_chain(look->tid, pcs, depth + 1, NULL);
	pcs[0] = 0;
	if (pm_ptr_regs_return(look->tid, look->regs, look->sp_offset, &pcs[1]))
		return 2;
	return 0;
}

uint32_t pm_ptr_callers_look(struct pm_ptr_callers *callers, struct pm_procs *procs,
			     const struct pm_ptr_look *look)
{
	uint64_t pcs[PM_PTR_CALLERS_MAX + 1], hash;
	struct pm_ptr_chain chain = { .first = callers->words.len };
	ssize_t len = read_chain(look, pcs);
	uint32_t id;

	for (ssize_t i = 1; i < len; i++) {
		uint32_t frame = intern_pc_frame(callers, procs, look->pid, pcs[i] - 1);

		if (frame == PM_INDEX_NONE || pm_vec_push(&callers->words, frame) < 0)
			break;
		chain.len++;
	}
	if (chain.len == 0)
		return PM_INDEX_NONE;
	hash = pm_hash_bytes(callers->words.data + chain.first,
			     chain.len * sizeof(*callers->words.data));
	id = pm_index_find(&callers->by_chain, hash, equal_chain, callers, &chain);
	if (id == PM_INDEX_NONE && pm_vec_push(&callers->chains, chain) == 0) {
		if (pm_index_add(&callers->by_chain, hash,
				 (uint32_t)callers->chains.len - 1) == 0)
			return (uint32_t)callers->chains.len - 1;
		callers->chains.len--;
	}
	callers->words.len = chain.first;
	return id;
}

void pm_ptr_callers_release(struct pm_ptr_callers *callers)
{
	for (size_t i = 0; i < callers->frames.len; i++) {
		free(callers->frames.data[i].function);
		free(callers->frames.data[i].file);
	}
	pm_vec_release(&callers->frames);
	pm_vec_release(&callers->words);
	pm_vec_release(&callers->chains);
	pm_index_release(&callers->by_frame);
	pm_index_release(&callers->by_chain);
}

/* ---- names --------------------------------------------------------------------------- */

static int compare_frames(const void *a, const void *b)
{
	const struct pm_ptr_frame *x = *(struct pm_ptr_frame *const *)a,
				  *y = *(struct pm_ptr_frame *const *)b;

	if (x->module != y->module)
		return PM_COMPARE(x->module, y->module);
	if (x->address < y->address)
		return -1;
	return x->address > y->address;
}

static int set_frame_name(void *user, size_t index,
			  const struct pm_symbol_function *functions, size_t len)
{
	struct pm_ptr_frame *frame = ((struct pm_ptr_frame **)user)[index];

	/* The function that contains the call, as compiled, without inlined ones. */
	if (len == 0)
		return 0;
	if (pm_stat_text(&frame->function, functions[len - 1].name) < 0 ||
	    pm_stat_text(&frame->file, functions[len - 1].file) < 0)
		return -ENOMEM;
	frame->line = functions[len - 1].line;
	return 0;
}

/* Names @frames, which all belong to one module, whose file is @fd. */
static int name_frames(struct pm_ptr_frame **frames, size_t len, int fd)
{
	static const struct pm_symbol_options options = { .lines = true };
	PM_AUTO_FREE uint64_t *addresses = calloc(len, sizeof(*addresses));
	int ret;

	if (!addresses)
		return -ENOMEM;
	for (size_t i = 0; i < len; i++)
		addresses[i] = frames[i]->address;
	ret = pm_symbols_resolve(fd, addresses, len, &options, set_frame_name, frames,
				 NULL);
	if (ret == -ENOMEM)
		return ret;
	return 0;
}

static int name_frames_of_module(const struct pm_procs *procs,
				 struct pm_ptr_frame **frames, size_t len)
{
	PM_AUTO_CLOSE int fd = -1;
	size_t known = 0;

	if (frames[0]->module < 0)
		return 0;
	fd = pm_module_open(pm_procs_module(procs, (uint32_t)frames[0]->module), NULL);
	for (size_t i = 0; fd >= 0 && i < len; i++)
		if (pm_ptr_file_address(fd, frames[i]->offset, &frames[i]->address))
			frames[known++] = frames[i];
	if (known == 0)
		return 0;
	qsort(frames, known, sizeof(*frames), compare_frames);
	return name_frames(frames, known, fd);
}

int pm_ptr_callers_name(struct pm_ptr_callers *callers, const struct pm_procs *procs)
{
	PM_AUTO_FREE struct pm_ptr_frame **frames =
		calloc(callers->frames.len + 1, sizeof(struct pm_ptr_frame *));
	int ret = 0;

	if (!frames)
		ret = -ENOMEM;
	for (size_t i = 0; ret == 0 && i < callers->frames.len; i++) {
		frames[i] = &callers->frames.data[i];
		frames[i]->address = frames[i]->offset;
	}
	if (ret == 0)
		qsort(frames, callers->frames.len, sizeof(struct pm_ptr_frame *),
		      compare_frames);
	for (size_t from = 0, to; ret == 0 && from < callers->frames.len; from = to) {
		for (to = from + 1; to < callers->frames.len &&
				    frames[to]->module == frames[from]->module;)
			to++;
		ret = name_frames_of_module(procs, frames + from, to - from);
	}
	return ret;
}

int pm_ptr_callers_fill(const struct pm_ptr_callers *callers,
			const struct pm_procs *procs, uint32_t caller,
			struct pm_stat_caller *out)
{
	const struct pm_ptr_chain *chain;

	if (caller >= callers->chains.len)
		return 0;
	chain = &callers->chains.data[caller];
	for (uint32_t i = 0; i < chain->len; i++) {
		const struct pm_ptr_frame *from =
			&callers->frames.data[callers->words.data[chain->first + i]];
		struct pm_stat_frame frame = { .line = from->line,
					       .address = from->address };
		const char *path = NULL;

		if (from->module >= 0)
			path = pm_procs_module(procs, (uint32_t)from->module)
				       ->identity.path;
		if (pm_stat_text(&frame.function, from->function) < 0 ||
		    pm_stat_text(&frame.file, from->file) < 0 ||
		    pm_stat_text(&frame.module, path) < 0 ||
		    pm_vec_push(&out->frames, frame) < 0) {
			free(frame.function);
			free(frame.file);
			free(frame.module);
			return -ENOMEM;
		}
	}
	return 0;
}
