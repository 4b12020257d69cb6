/* SPDX-License-Identifier: MIT */
#include "tests/bench/unwind-bench.h"

#include <string.h>

enum {
	CHUNK_BYTES = 64 << 20, /* larger than any stack */
};

static const struct {
	uint32_t machine;
	enum pm_unw_arch arch;
} machines[] = {
	{ PM_CORPUS_X86_64, PM_UNW_X86_64 },
	{ PM_CORPUS_I386, PM_UNW_I386 },
	{ PM_CORPUS_AARCH64, PM_UNW_AARCH64 },
};

static bool arch_of(uint32_t machine, enum pm_unw_arch *ret)
{
	for (size_t i = 0; i < PM_ARRAY_LEN(machines); i++)
		if (machines[i].machine == machine) {
			*ret = machines[i].arch;
			return true;
		}
	return false;
}

static void *copy(const void *data, size_t len)
{
	void *ret = malloc(len + 1);

	if (!ret)
		abort();
	if (len > 0)
		memcpy(ret, data, len);
	return ret;
}

static struct pm_corpus_part copy_part(const struct pm_corpus_part *part)
{
	return (struct pm_corpus_part){ part->svma, copy(part->data, part->len),
					part->len };
}

static void add_module(struct bench_corpus *corpus, const struct pm_corpus_module *from)
{
	struct bench_module module = { .path = copy(from->path, strlen(from->path) + 1),
				       .build_id_len = from->build_id_len,
				       .machine = from->machine,
				       .flags = from->flags,
				       .entry = from->entry };

	memcpy(module.build_id, from->build_id, sizeof(module.build_id));
	for (size_t i = 0; i < from->loads_len; i++)
		if (pm_vec_push(&module.loads, from->loads[i]) < 0)
			abort();
	module.eh_frame_hdr = copy_part(&from->eh_frame_hdr);
	module.eh_frame = copy_part(&from->eh_frame);
	module.debug_frame = copy_part(&from->debug_frame);
	if (pm_vec_push(&corpus->modules, module) < 0)
		abort();
}

static void add_code(struct bench_corpus *corpus, const struct pm_corpus_code *code)
{
	struct bench_module *module = &corpus->modules.data[code->module];
	struct pm_unw_part part = { .svma = code->part.svma,
				    .data = copy(code->part.data, code->part.len),
				    .len = code->part.len };

	if (pm_vec_push(&module->code, part) < 0)
		abort();
}

static void add_space(struct bench_corpus *corpus, const struct pm_corpus_space *from)
{
	struct bench_space space = { 0 };

	for (size_t i = 0; i < from->maps_len; i++) {
		/* bias: once the modules are complete. Until then it keeps pgoff. */
		struct pm_unw_map map = { .start = from->maps[i].start,
					  .end = from->maps[i].end,
					  .bias = from->maps[i].pgoff,
					  .tag = from->maps[i].module };

		if (pm_vec_push(&space.maps.maps, map) < 0)
			abort();
	}
	if (pm_vec_push(&corpus->spaces, space) < 0)
		abort();
}

/* Small pages, as the kernel's ring has. */
static uint8_t *room(struct bench_corpus *corpus, size_t len)
{
	len = (len + 63) & ~(size_t)63;
	if (corpus->chunks.len == 0 || corpus->chunk_used + len > CHUNK_BYTES) {
		void *chunk = mmap(NULL, CHUNK_BYTES, PROT_READ | PROT_WRITE,
				   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		if (chunk == MAP_FAILED || pm_vec_push(&corpus->chunks, chunk) < 0)
			abort();
		madvise(chunk, CHUNK_BYTES, MADV_NOHUGEPAGE);
		corpus->chunk_used = 0;
	}
	corpus->chunk_used += len;
	return (uint8_t *)corpus->chunks.data[corpus->chunks.len - 1] +
	       corpus->chunk_used - len;
}

static void add_sample(struct bench_corpus *corpus, const struct pm_corpus_sample *from,
		       uint64_t max_bytes)
{
	struct bench_sample sample = { .space = from->space };
	uint8_t *stack;

	if (!arch_of(from->machine, &sample.regs.arch)) {
		corpus->foreign++;
		return;
	}
	if (corpus->stack_bytes + from->stack_len > max_bytes) {
		corpus->left_out++;
		return;
	}
	memcpy(sample.regs.value, from->regs, sizeof(sample.regs.value));
	sample.regs.known = from->known;
	stack = room(corpus, from->stack_len);
	if (from->stack_len > 0)
		memcpy(stack, from->stack, from->stack_len);
	sample.stack = (struct pm_unw_stack){ from->stack_start, stack, from->stack_len };
	corpus->stack_bytes += from->stack_len;
	corpus->spaces.data[from->space].samples++;
	if (pm_vec_push(&corpus->samples, sample) < 0)
		abort();
}

static int read_records(struct bench_corpus *corpus, struct pm_corpus *from,
			uint64_t max_bytes, struct pm_error *err)
{
	struct pm_corpus_record record;
	int more;

	while ((more = pm_corpus_next(from, &record, err)) == 1) {
		switch (record.type) {
		case PM_CORPUS_MODULE:
			add_module(corpus, &record.module);
			break;
		case PM_CORPUS_SPACE:
			add_space(corpus, &record.space);
			break;
		case PM_CORPUS_CODE:
			add_code(corpus, &record.code);
			break;
		case PM_CORPUS_SAMPLE:
			add_sample(corpus, &record.sample, max_bytes);
			break;
		}
	}
	corpus->cut = more == 0 && pm_corpus_is_cut(from);
	return more;
}

static struct pm_unw_part unw_part(const struct pm_corpus_part *part)
{
	return (struct pm_unw_part){ part->svma, part->data, part->len };
}

/* One of a machine that we do not know stays without: its frames have no CFI. */
static void make_module(struct bench_module *module)
{
	PM_VEC(struct pm_unw_part_load) loads = { 0 };
	struct pm_unw_parts parts = { .entry = module->entry };

	if (!arch_of(module->machine, &parts.arch))
		return;
	for (size_t i = 0; i < module->loads.len; i++) {
		const struct pm_corpus_load *load = &module->loads.data[i];

		if (pm_vec_push(&loads, (struct pm_unw_part_load){
						.vaddr = load->vaddr,
						.offset = load->offset,
						.filesz = load->filesz,
						.executable = load->flags & PF_X }) < 0)
			abort();
	}
	parts.loads = loads.data;
	parts.loads_len = loads.len;
	parts.eh_frame_hdr = unw_part(&module->eh_frame_hdr);
	parts.eh_frame = unw_part(&module->eh_frame);
	parts.debug_frame = unw_part(&module->debug_frame);
	parts.code = module->code.data;
	parts.code_len = module->code.len;
	if (pm_unw_module_from_parts(&module->unw, &parts, NULL) < 0)
		abort();
	pm_vec_release(&loads);
}

static void place_maps(struct bench_corpus *corpus, struct bench_space *space)
{
	for (size_t i = 0; i < space->maps.maps.len; i++) {
		struct pm_unw_map *map = &space->maps.maps.data[i];
		uint64_t pgoff = map->bias;
		struct pm_unw_module *unw = map->tag == (uint32_t)PM_CORPUS_NO_MODULE
						    ? NULL
						    : corpus->modules.data[map->tag].unw;

		map->bias = 0;
		if (unw && pm_unw_module_bias(unw, map->start, pgoff, &map->bias) == 0)
			map->module = unw;
	}
}

int bench_corpus_load(struct bench_corpus *ret, const char *path, uint64_t max_bytes,
		      struct pm_error *err)
{
	struct bench_corpus corpus = { .path = path };
	struct pm_corpus *from;
	int error = pm_corpus_open(&from, path, err);

	if (error < 0)
		return error;
	error = read_records(&corpus, from, max_bytes, err);
	pm_corpus_free(from);
	if (error < 0) {
		bench_corpus_release(&corpus);
		return error;
	}
	for (size_t i = 0; i < corpus.modules.len; i++)
		make_module(&corpus.modules.data[i]);
	for (size_t i = 0; i < corpus.spaces.len; i++)
		place_maps(&corpus, &corpus.spaces.data[i]);
	*ret = corpus;
	return 0;
}

static void free_part(struct pm_corpus_part *part)
{
	free((void *)(uintptr_t)part->data);
}

void bench_corpus_release(struct bench_corpus *corpus)
{
	for (size_t i = 0; i < corpus->modules.len; i++) {
		struct bench_module *module = &corpus->modules.data[i];

		pm_unw_module_free(module->unw);
		free_part(&module->eh_frame_hdr);
		free_part(&module->eh_frame);
		free_part(&module->debug_frame);
		for (size_t j = 0; j < module->code.len; j++)
			free((void *)(uintptr_t)module->code.data[j].data);
		pm_vec_release(&module->code);
		pm_vec_release(&module->loads);
		free(module->path);
	}
	for (size_t i = 0; i < corpus->spaces.len; i++)
		pm_vec_release(&corpus->spaces.data[i].maps.maps);
	for (size_t i = 0; i < corpus->chunks.len; i++)
		munmap(corpus->chunks.data[i], CHUNK_BYTES);
	spaces_modules_release(&corpus->files);
	pm_vec_release(&corpus->modules);
	pm_vec_release(&corpus->spaces);
	pm_vec_release(&corpus->samples);
	pm_vec_release(&corpus->chunks);
}
