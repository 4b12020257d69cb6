/* SPDX-License-Identifier: MIT */
#include "pm/chain-raw.h"

#include <elf.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "pm/corpus.h"

enum {
	/* The number of address spaces that are known to be written; a power of two. A
	 * space that is dropped from these is written again. */
	SPACES = 1024,
	CODE_BYTES = 16, /* on each side of the pc */
	/* The unwinder follows interrupted code to its return, which is usually within
	 * this distance. */
	EXIT_BYTES_BEFORE = 256,
	EXIT_BYTES_BEHIND = 1024,
	EXIT_PIECE_BYTES = 64,
	ENTRY_BYTES = 64, /* the bytes of an entry point that the unwinder examines */
	CODES_MAX = 1 << 20, /* pieces that are known to be written */
};

struct code_key {
	uint64_t svma;
	uint32_t module;
	/* bytes from svma on; 0: CODE_BYTES on both sides of svma */
	uint32_t len;
};

struct pm_chain_raw {
	struct pm_corpus_writer *writer;
	struct pm_procs *procs; /* borrowed */
	struct pm_chain_modules *modules; /* borrowed */
	struct {
		uint64_t print; /* fingerprint_space() of the space that was written; 0:
		                 * free */
		pid_t pid;
		uint32_t id;
	} spaces[SPACES];
	PM_VEC(uint32_t) module_ids; /* of the corpus, indexed by the id in procs */
	/* The ids of generated code, which has no id in procs. */
	PM_VEC(struct generated {
		const struct pm_unw_module *unwind;
		uint32_t id;
	})
	generated;
	struct pm_index generated_index;
	PM_VEC(struct pm_corpus_map) maps;
	PM_VEC(struct code_key) codes; /* that have been written */
	struct pm_index codes_index;
	uint64_t samples;
};

int pm_chain_raw_open(struct pm_chain_raw **out, const char *path, uint32_t stack_bytes,
		      struct pm_procs *procs, struct pm_chain_modules *modules,
		      struct pm_error *err)
{
	struct pm_corpus_header header = { .stack_bytes = stack_bytes,
					   .created_s = (uint64_t)time(NULL) };
	struct pm_chain_raw *raw = calloc(1, sizeof(*raw));
	int ret;

	if (!raw)
		return pm_error_set(err, -ENOMEM, "out of memory");
	raw->procs = procs;
	raw->modules = modules;
	ret = pm_corpus_writer_open(&raw->writer, path, &header, err);
	if (ret < 0) {
		free(raw);
		return ret;
	}
	*out = raw;
	return 0;
}

int pm_chain_raw_background(struct pm_chain_raw *raw, pm_file_wants_end_fn wants_end,
			    void *user)
{
	return pm_corpus_writer_background(raw->writer, wants_end, user);
}

int pm_chain_raw_close(struct pm_chain_raw *raw, bool complete, struct pm_error *err)
{
	int ret;

	if (!raw)
		return 0;
	ret = pm_corpus_writer_close(raw->writer, complete, err);
	pm_vec_release(&raw->module_ids);
	pm_vec_release(&raw->generated);
	pm_index_release(&raw->generated_index);
	pm_vec_release(&raw->maps);
	pm_vec_release(&raw->codes);
	pm_index_release(&raw->codes_index);
	free(raw);
	return ret;
}

uint64_t pm_chain_raw_samples(const struct pm_chain_raw *raw)
{
	return raw->samples;
}

uint64_t pm_chain_raw_bytes(const struct pm_chain_raw *raw)
{
	return pm_corpus_writer_bytes(raw->writer);
}

static uint32_t machine_of(enum pm_unw_arch arch)
{
	switch (arch) {
	case PM_UNW_X86_64:
		return PM_CORPUS_X86_64;
	case PM_UNW_I386:
		return PM_CORPUS_I386;
	case PM_UNW_AARCH64:
		return PM_CORPUS_AARCH64;
	}
	return 0;
}

/* ---- code -------------------------------------------------------------------------------- */

static bool same_code(const void *table, uint32_t id, const void *key)
{
	const struct code_key *a = (const struct code_key *)table + id, *b = key;

	return a->svma == b->svma && a->module == b->module && a->len == b->len;
}

/* Whether this piece of code has not been written before. Notes that it has been
 * written. */
static bool remember_raw_code(struct pm_chain_raw *raw, uint32_t module, uint64_t svma,
			      uint32_t len)
{
	struct code_key key = { .svma = svma, .module = module, .len = len };
	uint64_t hash = pm_hash_mix(svma, (uint64_t)len << 32 | module);

	if (pm_index_find(&raw->codes_index, hash, same_code, raw->codes.data, &key) !=
	    PM_INDEX_NONE)
		return false;
	if (raw->codes.len == CODES_MAX) {
		pm_vec_clear(&raw->codes);
		pm_index_release(&raw->codes_index);
	}
	/* If memory runs out, the piece is written again, which does no harm. */
	if (pm_vec_reserve(&raw->codes, raw->codes.len + 1) == 0 &&
	    pm_index_add(&raw->codes_index, hash, (uint32_t)raw->codes.len) == 0)
		raw->codes.data[raw->codes.len++] = key;
	return true;
}

static int write_code(struct pm_chain_raw *raw, uint32_t module,
		      struct pm_unw_module *unwind, uint64_t svma, size_t len)
{
	uint8_t bytes[ENTRY_BYTES];
	struct pm_corpus_code code = { .module = module, .part = { svma, bytes, len } };

	if (!pm_unw_module_read(unwind, svma, bytes, len))
		return 0; /* the unwinder could not read it either */
	return pm_corpus_write_code(raw->writer, &code);
}

/* ---- modules and address spaces ---------------------------------------------------------- */

static int write_parts(struct pm_chain_raw *raw, struct pm_corpus_module *module,
		       const struct pm_unw_parts *parts, uint32_t *out)
{
	PM_AUTO_FREE struct pm_corpus_load *loads =
		calloc(parts->loads_len + 1, sizeof(*loads));
	const struct pm_unw_part *from[] = { &parts->eh_frame_hdr, &parts->eh_frame,
					     &parts->debug_frame };
	struct pm_corpus_part *to[] = { &module->eh_frame_hdr, &module->eh_frame,
					&module->debug_frame };
	int ret;

	if (!loads)
		return -ENOMEM;
	module->machine = machine_of(parts->arch);
	module->entry = parts->entry;
	for (size_t i = 0; i < parts->loads_len; i++) {
		const struct pm_unw_part_load *load = &parts->loads[i];

		loads[i] = (struct pm_corpus_load){
			.vaddr = load->vaddr,
			.memsz = load->filesz,
			.offset = load->offset,
			.filesz = load->filesz,
			.flags = PF_R | (load->executable ? PF_X : 0u),
		};
	}
	module->loads = loads;
	module->loads_len = parts->loads_len;
	for (size_t i = 0; i < PM_ARRAY_LEN(from); i++)
		*to[i] = (struct pm_corpus_part){ from[i]->svma, from[i]->data,
						  from[i]->len };
	ret = pm_corpus_write_module(raw->writer, module, out);
	if (ret != -EINVAL)
		return ret;
	/* The information exceeds a limit of corpora. Without it, the samples are still
	 * useful. */
	for (size_t i = 0; i < PM_ARRAY_LEN(to); i++)
		*to[i] = (struct pm_corpus_part){ 0 };
	return pm_corpus_write_module(raw->writer, module, out);
}

static int write_module(struct pm_chain_raw *raw, uint32_t id, uint32_t *out)
{
	const struct pm_module_identity *identity =
		&pm_procs_module(raw->procs, id)->identity;
	const struct pm_chain_module *from = &raw->modules->list.data[id];
	struct pm_corpus_module module = { .path = identity->path };
	struct pm_unw_parts parts = { 0 };
	uint8_t len = identity->build_id_len;
	int ret = 0;

	pm_chain_modules_reopen(raw->modules, raw->procs, id);
	memcpy(module.build_id, identity->build_id, sizeof(identity->build_id));
	if (len == 0 && from->fd >= 0 &&
	    pm_elf_build_id(from->fd, module.build_id, &len) < 0)
		len = 0;
	module.build_id_len = len;
	if (identity->kind == PM_MODULE_VDSO)
		module.flags = PM_CORPUS_VDSO;
	else
		module.flags = 0;
	if (from->unwind)
		ret = pm_unw_module_parts(from->unwind, &parts);
	if (ret == 0)
		ret = write_parts(raw, &module, &parts, out);
	if (ret == 0 && from->unwind && parts.entry != 0)
		ret = write_code(raw, *out, from->unwind, parts.entry, ENTRY_BYTES);
	free((void *)(uintptr_t)parts.loads);
	return ret;
}

/* Finds the module's id in the corpus; memory without a file has none. */
static int raw_module_id(struct pm_chain_raw *raw, uint32_t id, uint32_t *out)
{
	enum pm_module_kind kind = pm_procs_module(raw->procs, id)->identity.kind;
	uint32_t none = (uint32_t)PM_CORPUS_NO_MODULE;

	while (raw->module_ids.len <= id)
		if (pm_vec_push(&raw->module_ids, none) < 0)
			return -ENOMEM;
	if (raw->module_ids.data[id] == none &&
	    (kind == PM_MODULE_FILE || kind == PM_MODULE_VDSO)) {
		int ret = write_module(raw, id, &raw->module_ids.data[id]);

		if (ret < 0)
			return ret;
	}
	*out = raw->module_ids.data[id];
	return 0;
}

static bool same_generated(const void *table, uint32_t id, const void *key)
{
	return ((const struct generated *)table)[id].unwind == key;
}

/* Finds the id of code that a jitdump describes. Such modules exist until the recording
 * ends. */
static int generated_id(struct pm_chain_raw *raw, struct pm_unw_module *unwind,
			uint32_t *out)
{
	uint64_t hash = pm_hash_mix((uintptr_t)unwind, 0);
	uint32_t at = pm_index_find(&raw->generated_index, hash, same_generated,
				    raw->generated.data, unwind);
	struct pm_corpus_module module = { .path = "[generated]" };
	struct generated new = { .unwind = unwind };
	struct pm_unw_parts parts;
	int ret;

	if (at != PM_INDEX_NONE) {
		*out = raw->generated.data[at].id;
		return 0;
	}
	ret = pm_unw_module_parts(unwind, &parts);
	if (ret < 0)
		return ret;
	ret = write_parts(raw, &module, &parts, &new.id);
	free((void *)(uintptr_t)parts.loads);
	if (ret < 0)
		return ret;
	if (pm_vec_push(&raw->generated, new) < 0 ||
	    pm_index_add(&raw->generated_index, hash, (uint32_t)raw->generated.len - 1) <
		    0)
		return -ENOMEM;
	*out = new.id;
	return 0;
}

static int raw_module_of_map(struct pm_chain_raw *raw, const struct pm_unw_map *map,
			     uint32_t *out)
{
	if (map->module && raw->modules->list.data[map->tag].unwind != map->module)
		return generated_id(raw, map->module, out);
	return raw_module_id(raw, map->tag, out);
}

/* @mapping is the mapping of the process at that place; generated code counts as a
 * separate file. */
static int push_map(struct pm_chain_raw *raw, const struct pm_unw_map *from,
		    const struct pm_mapping *mapping)
{
	struct pm_corpus_map map = { .start = from->start,
				     .end = from->end,
				     .prot = PROT_READ | PROT_EXEC };
	bool generated =
		from->module && raw->modules->list.data[from->tag].unwind != from->module;
	int ret = raw_module_of_map(raw, from, &map.module);

	if (ret < 0)
		return ret;
	if (generated)
		map.pgoff = 0;
	else
		map.pgoff = mapping->pgoff + (from->start - mapping->start);
	return pm_vec_push(&raw->maps, map);
}

/* Writes the space that the unwinder used: the mappings, and the generated code within
 * them. */
static int write_space(struct pm_chain_raw *raw, const struct pm_process *process,
		       const struct pm_unw_space *shown, uint32_t *out)
{
	struct pm_corpus_space space = { .pid = (uint32_t)process->pid };

	pm_vec_clear(&raw->maps);
	for (size_t i = 0; i < shown->len; i++) {
		const struct pm_mapping *mapping =
			pm_space_find(&process->space, shown->maps[i].start);
		int ret = mapping ? push_map(raw, &shown->maps[i], mapping) : 0;

		if (ret < 0)
			return ret;
	}
	space.maps = raw->maps.data;
	space.maps_len = raw->maps.len;
	return pm_corpus_write_space(raw->writer, &space, out);
}

/* Returns a hash of the content of a space, because generated code changes without a new
 * epoch. It is never 0. */
static uint64_t fingerprint_space(const struct pm_process *process,
				  const struct pm_unw_space *shown)
{
	uint64_t print = process->space.epoch;

	for (size_t i = 0; i < shown->len; i++)
		print = pm_hash_mix(print ^ shown->maps[i].start,
				    (uintptr_t)shown->maps[i].module);
	return print | 1;
}

static int space_id(struct pm_chain_raw *raw, pid_t pid, const struct pm_unw_space *shown,
		    uint32_t *out)
{
	const struct pm_process *process = pm_procs_get(raw->procs, pid);
	uint64_t print;
	size_t at;

	if (!process)
		return -ENOMEM;
	print = fingerprint_space(process, shown);
	at = pm_hash_mix(print, (uint64_t)pid) & (SPACES - 1);
	if (raw->spaces[at].print != print || raw->spaces[at].pid != pid) {
		int ret = write_space(raw, process, shown, &raw->spaces[at].id);

		if (ret < 0)
			return ret;
		raw->spaces[at].print = print;
		raw->spaces[at].pid = pid;
	}
	*out = raw->spaces[at].id;
	return 0;
}

/* ---- samples ----------------------------------------------------------------------------- */

/* Writes the code before and after a pc. */
static int write_code_around(struct pm_chain_raw *raw, const struct pm_unw_frame *frame)
{
	const struct pm_unw_map *map = frame->map;
	uint64_t svma;
	uint32_t module;
	int ret;

	if (!map || !map->module)
		return 0;
	ret = raw_module_of_map(raw, map, &module);
	svma = frame->pc - map->bias;
	if (ret < 0 || module == (uint32_t)PM_CORPUS_NO_MODULE ||
	    !remember_raw_code(raw, module, svma, 0))
		return ret;
	ret = write_code(raw, module, map->module, svma - CODE_BYTES, CODE_BYTES);
	if (ret < 0)
		return ret;
	return write_code(raw, module, map->module, svma, CODE_BYTES);
}

/* Writes the code between an interrupted instruction and its likely `ret`. */
static int write_exit(struct pm_chain_raw *raw, const struct pm_unw_frame *frame)
{
	const struct pm_unw_map *map = frame->map;
	uint32_t module;
	uint64_t start;
	int ret;

	if (!map || !map->module)
		return 0;
	ret = raw_module_of_map(raw, map, &module);
	if (ret < 0 || module == (uint32_t)PM_CORPUS_NO_MODULE)
		return ret;
	start = ((frame->pc - map->bias) & -(uint64_t)EXIT_PIECE_BYTES) -
		EXIT_BYTES_BEFORE;
	for (uint64_t at = 0; at < EXIT_BYTES_BEFORE + EXIT_BYTES_BEHIND && ret == 0;
	     at += EXIT_PIECE_BYTES)
		if (remember_raw_code(raw, module, start + at, EXIT_PIECE_BYTES))
			ret = write_code(raw, module, map->module, start + at,
					 EXIT_PIECE_BYTES);
	return ret;
}

/* Writes the code at both ends of each step that did not use CFI, because such steps
 * examine it. */
static int write_codes(struct pm_chain_raw *raw, const struct pm_unw_frame *frames,
		       size_t len)
{
	/* If the frame has no caller, the reason may be that the code shows no call. */
	if (len > 0 && (len == 1 || frames[1].how != PM_UNW_HOW_CFI)) {
		int ret = write_exit(raw, &frames[0]);

		if (ret < 0)
			return ret;
	}
	for (size_t i = 1; i < len; i++) {
		int ret;

		/* A step by CFI does not need the code, unless it leads to a frame that
		 * has made no call: only the code shows that. */
		if (frames[i].how == PM_UNW_HOW_CFI && frames[i].lookup != frames[i].pc)
			continue;
		ret = write_code_around(raw, &frames[i - 1]);
		if (ret == 0 && frames[i].how == PM_UNW_HOW_CODE)
			ret = write_exit(raw, &frames[i - 1]);
		if (ret == 0)
			ret = write_code_around(raw, &frames[i]);
		if (ret < 0)
			return ret;
	}
	return 0;
}

int pm_chain_raw_add(struct pm_chain_raw *raw, const struct pm_chain_raw_sample *from)
{
	const struct pm_record *record = from->record;
	struct pm_corpus_sample sample = { .index = from->index,
					   .time = record->time,
					   .ip = record->sample.ip,
					   .pid = record->pid,
					   .tid = record->tid,
					   .machine = machine_of(from->regs->arch),
					   .known = from->regs->known,
					   .stack_start = from->stack->start,
					   .stack = from->stack->data,
					   .stack_len = from->stack->len };
	int ret = space_id(raw, (pid_t)record->pid, from->space, &sample.space);

	_Static_assert((int)PM_CORPUS_REGS_MAX == (int)PM_UNW_REGS_MAX,
		       "the same numbers");
	memcpy(sample.regs, from->regs->value, sizeof(sample.regs));
	if (ret == 0)
		ret = write_codes(raw, from->frames, from->frames_len);
	if (ret == 0)
		ret = pm_corpus_write_sample(raw->writer, &sample);
	if (ret == 0)
		raw->samples++;
	return ret;
}
