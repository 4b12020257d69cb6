/* SPDX-License-Identifier: MIT */
#include "pm/chain-jit.h"

#include <string.h>
#include <time.h>

#include "jit-internal.h"
#include "pm/chain-spaces.h"

enum {
	COVERED_MAX = 4096, /* functions of a process that come with unwind information */
	/* Code is kept for the steps that work without CFI, which functions with unwind
	 * information rarely need. */
	UNWIND_CODE_BYTES = 1 << 16, /* of one function */
	UNWIND_EH_FRAME_BYTES_MAX = 1 << 16, /* of one function; 100 are usual */
	UNWIND_MODULE_BYTES = 1 << 10, /* of one module, regardless of its content */
};

/* ---- processes ----------------------------------------------------------------------- */

/* Returns a new process, in jit->alive and with one reference, or NULL if memory is
 * out. */
static struct pm_chain_jit_process *process_new(struct pm_chain_jit *jit, pid_t pid)
{
	struct pm_chain_jit_process *process = calloc(1, sizeof(*process));

	if (!process)
		return NULL;
	process->table = pm_jit_table_new(&jit->budget);
	if (!process->table || pm_vec_push(&jit->alive, process) < 0) {
		pm_jit_table_free(process->table);
		free(process);
		return NULL;
	}
	process->pid = pid;
	process->refs = 1;
	process->map_fd = -1;
	process->files.tmp_fd = -1;
	return process;
}

/* Releases everything except the names of the process. */
static void process_end(struct pm_chain_jit_process *process)
{
	process->over = true;
	for (size_t i = 0; i < process->dumps.len; i++) {
		struct pm_chain_jit_dump *dump = &process->dumps.data[i];

		pm_jitdump_free(dump->reader);
		dump->reader = NULL;
		pm_cleanup_close(&dump->fd);
		dump->fd = -1;
		dump->unusable = true;
	}
	pm_cleanup_close(&process->map_fd);
	process->map_fd = -1;
	pm_jit_files_release(&process->files);
	pm_vec_release(&process->misses);
	pm_index_release(&process->misses_index);
	pm_vec_release(&process->covered);
}

static void process_free(struct pm_chain_jit *jit, struct pm_chain_jit_process *process)
{
	size_t kept = 0;

	process_end(process);
	for (size_t i = 0; i < jit->modules.len; i++)
		if (jit->modules.data[i].process == process)
			jit->modules.data[i].process = NULL;
	for (size_t i = 0; i < jit->alive.len; i++)
		if (jit->alive.data[i] != process)
			jit->alive.data[kept++] = jit->alive.data[i];
	jit->alive.len = kept;
	for (size_t i = 0; i < process->dumps.len; i++)
		free(process->dumps.data[i].path);
	pm_jit_table_free(process->table);
	pm_vec_release(&process->dumps);
	pm_vec_release(&process->file_ids);
	free(process);
}

static void jit_process_unref(struct pm_chain_jit *jit,
			      struct pm_chain_jit_process *process)
{
	while (process && --process->refs == 0) {
		struct pm_chain_jit_process *parent = process->parent;

		process_free(jit, process);
		process = parent;
	}
}

/* Returns the process from which children of @process inherit names: the first one, from
 * @process upwards, that has a source of names; or NULL. */
static struct pm_chain_jit_process *find_jit_heritage(
	struct pm_chain_jit_process *process)
{
	for (; process; process = process->parent) {
		struct pm_jit_table_stats stats;

		pm_jit_table_stats(process->table, &stats);
		if (stats.functions > 0 || process->dumps.len > 0 || process->map_fd >= 0)
			return process;
	}
	return NULL;
}

struct pm_chain_jit *pm_chain_jit_new(const struct pm_chain_jit_source *source)
{
	struct pm_chain_jit *jit = calloc(1, sizeof(*jit));
	struct timespec now;

	if (!jit)
		return NULL;
	jit->from = *source;
	jit->budget.max = PM_CHAIN_JIT_BYTES_MAX;
	jit->first_frame = pm_file_writer_first_frame(source->writer);
	clock_gettime(CLOCK_REALTIME, &now);
	jit->since_ns = (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
	return jit;
}

void pm_chain_jit_free(struct pm_chain_jit *jit)
{
	if (!jit)
		return;
	for (size_t i = 0; i < jit->processes.len; i++)
		jit_process_unref(jit, jit->processes.data[i]);
	for (size_t i = 0; i < jit->unwind_modules.len; i++)
		pm_unw_module_free(jit->unwind_modules.data[i]);
	pm_vec_release(&jit->processes);
	pm_vec_release(&jit->alive);
	pm_vec_release(&jit->unwind_modules);
	pm_vec_release(&jit->modules);
	pm_vec_release(&jit->named);
	free(jit);
}

static struct pm_chain_jit_process *jit_find_process(struct pm_chain_jit *jit, pid_t pid)
{
	/* Usually the last process is the one wanted. */
	for (size_t i = jit->processes.len; i-- > 0;) {
		struct pm_chain_jit_process *process = jit->processes.data[i];

		if (process->pid != pid)
			continue;
		memmove(jit->processes.data + i, jit->processes.data + i + 1,
			(jit->processes.len - 1 - i) * sizeof(*jit->processes.data));
		jit->processes.data[jit->processes.len - 1] = process;
		return process;
	}
	return NULL;
}

/* Names the places whose names can be read until @until_ns, and drops the process at
 * @index. */
static int process_drop(struct pm_chain_jit *jit, size_t index, uint64_t until_ns)
{
	struct pm_chain_jit_process *process = jit->processes.data[index];
	int ret = pm_chain_jit_finish_process(jit, process, until_ns);

	memmove(jit->processes.data + index, jit->processes.data + index + 1,
		(jit->processes.len - 1 - index) * sizeof(*jit->processes.data));
	jit->processes.len--;
	process_end(process);
	jit_process_unref(jit, process);
	return ret;
}

/* The same, within the time that reading may take while samples wait. */
static int jit_drop_process_in_time(struct pm_chain_jit *jit, size_t index)
{
	uint64_t begun_ns, until_ns = pm_chain_jit_begin_dropping(jit, &begun_ns);
	int ret = process_drop(jit, index, until_ns);

	pm_chain_jit_end_dropping(jit, begun_ns);
	return ret;
}

/* Returns the index of a process that a new one replaces, or SIZE_MAX. */
static size_t jit_find_replaceable_process(const struct pm_chain_jit *jit)
{
	bool is_full = jit->alive.len >= PM_CHAIN_JIT_PROCESSES_MAX ||
		       jit->budget.bytes > PM_CHAIN_JIT_BYTES_FULL;

	for (size_t i = 0;
	     i < jit->processes.len && jit->budget.bytes > PM_CHAIN_JIT_BYTES_ENDED; i++)
		if (jit->processes.data[i]->exited)
			return i;
	/* The least recently used process is the one that has most likely exited. */
	return jit->processes.len > 0 && is_full ? 0 : SIZE_MAX;
}

/* Finds the process, or creates it if it is not known. */
static int jit_get_process(struct pm_chain_jit *jit, pid_t pid,
			   struct pm_chain_jit_process **out)
{
	struct pm_chain_jit_process *process = jit_find_process(jit, pid);
	int ret = 0;

	if (process) {
		/* Only its first thread had exited; other threads still run. */
		process->exited = false;
		*out = process;
		return 0;
	}
	for (;;) {
		size_t index = jit_find_replaceable_process(jit);

		if (index == SIZE_MAX)
			break;
		ret = jit_drop_process_in_time(jit, index);
		if (ret < 0)
			return ret;
	}
	process = process_new(jit, pid);
	if (!process)
		return -ENOMEM;
	ret = pm_vec_push(&jit->processes, process);
	if (ret < 0) {
		jit_process_unref(jit, process);
		return ret;
	}
	*out = process;
	return 0;
}

int pm_chain_jit_map(struct pm_chain_jit *jit, pid_t pid,
		     const struct pm_module_identity *mapped)
{
	struct pm_chain_jit_process *process;
	int ret;

	if (!jit || !pm_is_jitdump_path(mapped->path))
		return 0;
	ret = jit_get_process(jit, pid, &process);
	if (ret < 0)
		return ret;
	return pm_chain_jit_open_dump(jit, process, mapped);
}

int pm_chain_jit_exec(struct pm_chain_jit *jit, pid_t pid)
{
	if (!jit || !jit_find_process(jit, pid))
		return 0;
	return jit_drop_process_in_time(jit, jit->processes.len - 1);
}

void pm_chain_jit_exit(struct pm_chain_jit *jit, pid_t pid)
{
	struct pm_chain_jit_process *process = jit ? jit_find_process(jit, pid) : NULL;

	if (!process)
		return;
	process->exited = true;
	/* The process is the last one, because it is the most recently used; move it to
	 * the front. */
	memmove(jit->processes.data + 1, jit->processes.data,
		(jit->processes.len - 1) * sizeof(*jit->processes.data));
	jit->processes.data[0] = process;
}

int pm_chain_jit_fork(struct pm_chain_jit *jit, pid_t pid, pid_t parent_pid)
{
	struct pm_chain_jit_process *process, *parent;
	int ret = pm_chain_jit_exec(jit, pid);

	/* A process without names is not referred to, but its nearest ancestor with
	 * names, so that the chain of parents does not grow. */
	if (jit && ret == 0)
		parent = find_jit_heritage(jit_find_process(jit, parent_pid));
	else
		parent = NULL;
	if (parent && parent->depth >= PM_CHAIN_JIT_DEPTH_MAX) {
		jit->forks_left++;
		parent = NULL;
	}
	if (!parent)
		return ret;
	/* Take the reference first: jit_get_process() may drop processes to make room. */
	parent->refs++;
	ret = jit_get_process(jit, pid, &process);
	if (ret < 0) {
		jit_process_unref(jit, parent);
		return ret;
	}
	process->parent = parent;
	process->depth = parent->depth + 1;
	return 0;
}

/* ---- modules of the file ------------------------------------------------------------- */

static int new_module(struct pm_chain_jit *jit, struct pm_chain_jit_process *process,
		      uint32_t generation, uint32_t *out)
{
	int ret = pm_chain_modules_jit_id(jit->from.modules, jit->from.writer, out);

	if (ret < 0)
		return ret;
	return pm_vec_push(&jit->modules,
			   (struct pm_chain_jit_module){ .process = process,
							 .generation = generation,
							 .file_id = *out });
}

/* Finds the module of a generation; nearly every process has only one or two. */
static int jit_module_of_generation(struct pm_chain_jit *jit,
				    struct pm_chain_jit_process *process,
				    uint32_t generation, uint32_t *out)
{
	while (process->file_ids.len <= generation)
		if (pm_vec_push(&process->file_ids, PM_FILE_NONE) < 0)
			return -ENOMEM;
	*out = process->file_ids.data[generation];
	if (*out == PM_FILE_NONE) {
		int ret = new_module(jit, process, generation, out);

		if (ret < 0)
			return ret;
		process->file_ids.data[generation] = *out;
	}
	return 0;
}

/* Opens dumps of code that was generated before the recording started, and dumps whose
 * mapping was not recorded. */
static int jit_scan_mappings(struct pm_chain_jit *jit,
			     struct pm_chain_jit_process *process)
{
	struct pm_procs *procs = jit->from.procs;
	struct pm_process *of = pm_procs_get(procs, process->pid);
	int ret = 0;

	if (!of)
		return -ENOMEM;
	if (of->space.epoch == process->scanned_epoch)
		return 0;
	process->scanned_epoch = of->space.epoch;
	for (size_t i = 0; i < of->space.maps.len && ret == 0; i++) {
		const struct pm_module_identity *identity =
			&pm_procs_module(procs, of->space.maps.data[i].module)->identity;

		if (identity->kind == PM_MODULE_FILE &&
		    pm_is_jitdump_path(identity->path))
			ret = pm_chain_jit_open_dump(jit, process, identity);
	}
	return ret;
}

static const struct pm_chain_jit_module *find_module(const struct pm_chain_jit *jit,
						     uint32_t file_id)
{
	size_t low = 0, high = jit->modules.len;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (jit->modules.data[middle].file_id < file_id)
			low = middle + 1;
		else
			high = middle;
	}
	if (low < jit->modules.len && jit->modules.data[low].file_id == file_id)
		return &jit->modules.data[low];
	return NULL;
}

int pm_chain_jit_module(struct pm_chain_jit *jit, pid_t pid, uint64_t address,
			enum pm_unw_how how, uint64_t time_ns, uint32_t *out)
{
	struct pm_chain_jit_process *process, *owner;
	const struct pm_jit_function *function;
	struct pm_jit_table_stats stats;
	int ret = jit_get_process(jit, pid, &process);

	if (ret == 0)
		ret = jit_scan_mappings(jit, process);
	if (ret == 0)
		ret = pm_chain_jit_refresh(jit, process, time_ns);
	if (ret < 0)
		return ret;
	function = pm_jit_table_use(process->table, address);
	/* Code that was generated before the fork also exists in the child. */
	for (owner = process; !function && owner->parent;) {
		owner = owner->parent;
		function = pm_jit_table_use(owner->table, address);
	}
	if (function)
		return jit_module_of_generation(jit, owner, function->generation, out);
	pm_jit_table_stats(process->table, &stats);
	ret = pm_chain_jit_miss(
		jit, process,
		(struct pm_chain_jit_place){ address, stats.generation, (uint32_t)how },
		time_ns, PM_FILE_NONE);
	if (ret < 0)
		return ret;
	return jit_module_of_generation(jit, process, stats.generation, out);
}

int pm_chain_jit_frame(struct pm_chain_jit *jit, uint32_t file_id, uint64_t address,
		       enum pm_unw_how how, uint64_t time_ns, uint32_t frame)
{
	const struct pm_chain_jit_module *module = find_module(jit, file_id);
	const struct pm_jit_function *function;

	if (!module || !module->process || !jit->from.symbols ||
	    pm_chain_jit_is_named(jit, frame))
		return 0;
	function = pm_jit_table_find(module->process->table, address);
	if (function && function->generation == module->generation)
		return pm_chain_jit_name(jit, frame, function, address);
	return pm_chain_jit_miss(
		jit, module->process,
		(struct pm_chain_jit_place){ address, module->generation, (uint32_t)how },
		time_ns, frame);
}

int pm_chain_jit_finish(struct pm_chain_jit *jit, uint64_t max_ns)
{
	uint64_t until_ns = pm_chain_jit_now_ns() + max_ns;
	int ret = 0;

	while (ret == 0 && jit->processes.len > 0)
		ret = process_drop(jit, 0, until_ns);
	if (ret == 0)
		pm_chain_jit_tell(jit);
	return ret;
}

/* ---- unwind information --------------------------------------------------------------- */

static struct pm_unw_module *unwind_module(struct pm_chain_jit *jit,
					   const struct pm_jit_function *function)
{
	struct pm_unw_part_load load = { .vaddr = function->start,
					 .filesz = function->len,
					 .executable = true };
	struct pm_unw_part code = { .svma = function->start,
				    .data = function->code,
				    .len = function->len < UNWIND_CODE_BYTES
						   ? (size_t)function->len
						   : UNWIND_CODE_BYTES };
	struct pm_unw_parts parts = { .loads = &load,
				      .loads_len = 1,
				      .eh_frame = { .svma = function->eh_frame_at,
						    .data = function->eh_frame,
						    .len = function->eh_frame_len },
				      .code = &code,
				      .code_len = 1 };
	struct pm_unw_module *module;
	/* The table made from .eh_frame needs about the same amount again. */
	size_t bytes = UNWIND_MODULE_BYTES + code.len + 2 * function->eh_frame_len;

#if defined(__aarch64__)
	parts.arch = PM_UNW_AARCH64;
#else
	parts.arch = PM_UNW_X86_64;
#endif
	if (function->eh_frame_len > UNWIND_EH_FRAME_BYTES_MAX ||
	    bytes > PM_CHAIN_JIT_UNWIND_BYTES_MAX - jit->unwind_bytes) {
		jit->unwind_full = true;
		return NULL;
	}
	if (pm_vec_reserve(&jit->unwind_modules, jit->unwind_modules.len + 1) < 0 ||
	    pm_unw_module_from_parts(&module, &parts, NULL) < 0)
		return NULL;
	/* The module is kept until the end, because the unwinder may still refer to
	 * it. */
	jit->unwind_bytes += bytes;
	jit->unwind_modules.data[jit->unwind_modules.len++] = module;
	return module;
}

/* Whether `covered` has a function at @start. Sets *out to its index, or to the index
 * where it would be inserted. */
static bool find_covered(const struct pm_chain_jit_process *process, uint64_t start,
			 size_t *out)
{
	size_t low = 0, high = process->covered.len;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (process->covered.data[middle].map.start < start)
			low = middle + 1;
		else
			high = middle;
	}
	*out = low;
	return low < process->covered.len &&
	       process->covered.data[low].map.start == start;
}

static bool jit_cover_function(struct pm_chain_jit *jit,
			       struct pm_chain_jit_process *process,
			       const struct pm_jit_function *function)
{
	struct pm_unw_module *module;
	size_t at;

	if (find_covered(process, function->start, &at) ||
	    process->covered.len >= COVERED_MAX ||
	    pm_vec_reserve(&process->covered, process->covered.len + 1) < 0)
		return false;
	module = unwind_module(jit, function);
	if (!module)
		return false;
	memmove(process->covered.data + at + 1, process->covered.data + at,
		(process->covered.len - at) * sizeof(*process->covered.data));
	process->covered.data[at] = (struct pm_chain_jit_covered){
		.map = { .start = function->start,
			 .end = function->start + function->len,
			 .module = module },
		.serial = function->serial,
	};
	process->covered.len++;
	return true;
}

/* Removes functions that have been replaced by other code. */
static bool jit_uncover_replaced(struct pm_chain_jit_process *process)
{
	size_t kept = 0, before = process->covered.len;

	for (size_t i = 0; i < before; i++) {
		const struct pm_chain_jit_covered *covered = &process->covered.data[i];
		const struct pm_jit_function *first, *last;

		first = pm_jit_table_find(process->table, covered->map.start);
		last = pm_jit_table_find(process->table, covered->map.end - 1);
		if (first && last && first->serial == covered->serial &&
		    last->serial == covered->serial)
			process->covered.data[kept++] = *covered;
	}
	process->covered.len = kept;
	return kept != before;
}

static bool show_covered(struct pm_chain_jit_process *process, struct pm_process *to)
{
	PM_AUTO_FREE struct pm_unw_map *maps =
		calloc(process->covered.len + 1, sizeof(*maps));

	if (!maps)
		return false;
	for (size_t i = 0; i < process->covered.len; i++)
		maps[i] = process->covered.data[i].map;
	return pm_chain_space_overlay(to, maps, process->covered.len) == 0;
}

bool pm_chain_jit_cover(struct pm_chain_jit *jit, struct pm_process *to,
			const struct pm_unw_frame *frames, size_t len, uint64_t time_ns)
{
	struct pm_chain_jit_process *process = jit_find_process(jit, to->pid);
	struct pm_jit_table_stats stats;
	bool changed = false;

	if (!process || process->dumps.len == 0 ||
	    pm_chain_jit_refresh(jit, process, time_ns) < 0)
		return false;
	pm_jit_table_stats(process->table, &stats);
	if (stats.changes != process->covered_changes)
		changed = jit_uncover_replaced(process);
	process->covered_changes = stats.changes;
	for (size_t i = 0; i < len && stats.with_eh_frame > 0; i++) {
		const struct pm_unw_map *map = frames[i].map;
		const struct pm_jit_function *function =
			map && !map->module
				? pm_jit_table_find(process->table, frames[i].lookup)
				: NULL;

		if (function && function->eh_frame && function->code)
			changed |= jit_cover_function(jit, process, function);
	}
	return changed && show_covered(process, to);
}
