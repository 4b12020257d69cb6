/* SPDX-License-Identifier: MIT */
/* The first layout: a sequence of structs without a head that gives their type. */
#include "corpus-internal.h"

#include <string.h>

enum {
	/* The fixed parts of struct c_module, c_sample and the others. */
	MODULE_1_BYTES = 120,
	ROOT_1_BYTES = 16,
	SPACE_1_BYTES = 8,
	SAMPLE_1_BYTES = 176,
	REGS_1 = 17,
};

static int read_module_1(struct pm_corpus *corpus, struct pm_corpus_record *out,
			 struct pm_error *err)
{
	struct pm_corpus_record record = { .type = PM_CORPUS_MODULE };
	struct pm_corpus_module *module = &record.module;
	uint64_t hdr_len, eh_len;
	struct pm_reader reader;
	uint32_t bytes, loads, roots, path_len;
	const void *build_id;
	int more = pm_corpus_fill(corpus, sizeof(bytes), err);

	if (more <= 0)
		return more;
	memcpy(&bytes, corpus->record.data, sizeof(bytes));
	if (bytes < MODULE_1_BYTES)
		return pm_corpus_fail(corpus, -EBADMSG, "a module is too short", err);
	more = pm_corpus_fill(corpus, bytes - sizeof(bytes), err);
	if (more <= 0)
		return more;
	pm_reader_init(&reader, corpus->record.data, corpus->record.len);
	reader.pos = sizeof(bytes);
	*module = (struct pm_corpus_module){ .machine = PM_CORPUS_X86_64, .path = "" };
	module->flags = pm_reader_u32(&reader);
	module->entry = pm_reader_u64(&reader);
	module->eh_frame_hdr.svma = pm_reader_u64(&reader);
	hdr_len = pm_reader_u64(&reader);
	module->eh_frame.svma = pm_reader_u64(&reader);
	eh_len = pm_reader_u64(&reader);
	pm_reader_bytes(&reader, 4 * sizeof(uint64_t)); /* .text and .got */
	loads = pm_reader_u32(&reader);
	roots = pm_reader_u32(&reader);
	path_len = pm_reader_u32(&reader);
	module->build_id_len = pm_reader_u32(&reader);
	build_id = pm_reader_bytes(&reader, PM_CORPUS_BUILD_ID_MAX);
	if (build_id)
		memcpy(module->build_id, build_id, PM_CORPUS_BUILD_ID_MAX);
	pm_corpus_take_loads(corpus, &reader, loads, module);
	pm_reader_bytes(&reader, (size_t)roots * ROOT_1_BYTES);
	pm_corpus_take_path(&reader, path_len, module);
	pm_corpus_take_part(&reader, &module->eh_frame_hdr, hdr_len);
	pm_corpus_take_part(&reader, &module->eh_frame, eh_len);
	return pm_corpus_give(corpus, &reader, &record, out, err);
}

static int read_space_1(struct pm_corpus *corpus, struct pm_corpus_record *out,
			struct pm_error *err)
{
	struct pm_corpus_record record = { .type = PM_CORPUS_SPACE };
	struct pm_reader reader;
	uint32_t maps;
	int more = pm_corpus_fill(corpus, SPACE_1_BYTES, err);

	if (more <= 0)
		return more;
	memcpy(&maps, corpus->record.data, sizeof(maps));
	more = pm_corpus_fill(corpus, (uint64_t)maps * PM_CORPUS_MAP_BYTES, err);
	if (more <= 0)
		return more;
	pm_reader_init(&reader, corpus->record.data, corpus->record.len);
	reader.pos = sizeof(maps);
	record.space = (struct pm_corpus_space){ .pid = pm_reader_u32(&reader) };
	pm_corpus_take_maps(corpus, &reader, maps, &record.space);
	return pm_corpus_give(corpus, &reader, &record, out, err);
}

static int read_sample_1(struct pm_corpus *corpus, struct pm_corpus_record *out,
			 struct pm_error *err)
{
	struct pm_corpus_record record = { .type = PM_CORPUS_SAMPLE };
	struct pm_corpus_sample *sample = &record.sample;
	struct pm_reader reader;
	uint32_t bytes;
	uint64_t len;
	int more = pm_corpus_fill(corpus, sizeof(bytes), err);

	if (more <= 0)
		return more;
	memcpy(&bytes, corpus->record.data, sizeof(bytes));
	if (bytes < SAMPLE_1_BYTES)
		return pm_corpus_fail(corpus, -EBADMSG, "a sample is too short", err);
	more = pm_corpus_fill(corpus, bytes - sizeof(bytes), err);
	if (more <= 0)
		return more;
	pm_reader_init(&reader, corpus->record.data, corpus->record.len);
	reader.pos = sizeof(bytes);
	*sample = (struct pm_corpus_sample){ .index = corpus->counts.samples,
					     .machine = PM_CORPUS_X86_64,
					     .known = (1u << REGS_1) - 1 };
	sample->space = pm_reader_u32(&reader);
	sample->pid = pm_reader_u32(&reader);
	sample->tid = pm_reader_u32(&reader);
	sample->time = pm_reader_u64(&reader);
	sample->ip = pm_reader_u64(&reader);
	for (size_t i = 0; i < REGS_1; i++)
		sample->regs[i] = pm_reader_u64(&reader);
	sample->stack_start = sample->regs[7]; /* rsp */
	len = pm_reader_u64(&reader);
	sample->stack_len = len;
	sample->stack = pm_reader_bytes(&reader, len);
	return pm_corpus_give(corpus, &reader, &record, out, err);
}

int pm_corpus_next_1(struct pm_corpus *corpus, struct pm_corpus_record *out,
		     struct pm_error *err)
{
	int more;

	if (corpus->counts.modules < corpus->announced.modules) {
		pm_vec_clear(&corpus->record);
		return read_module_1(corpus, out, err);
	}
	if (corpus->counts.spaces < corpus->announced.spaces) {
		if (corpus->counts.spaces == 0)
			more = pm_corpus_skip_to(corpus, corpus->spaces_at, err);
		else
			more = 1;
		pm_vec_clear(&corpus->record);
		if (more != 1)
			return more;
		return read_space_1(corpus, out, err);
	}
	if (corpus->counts.samples < corpus->announced.samples) {
		if (corpus->counts.samples == 0)
			more = pm_corpus_skip_to(corpus, corpus->samples_at, err);
		else
			more = 1;
		pm_vec_clear(&corpus->record);
		if (more != 1)
			return more;
		return read_sample_1(corpus, out, err);
	}
	return pm_corpus_end_here(corpus, PM_CORPUS_END_COMPLETE);
}

/* A writer of version 1 leaves zeros here until it has finished. */
int pm_corpus_start_1(struct pm_corpus *corpus, struct pm_reader *reader,
		      struct pm_error *err)
{
	uint64_t modules_at;

	corpus->header.version = 1;
	corpus->announced.modules = pm_reader_u32(reader);
	corpus->announced.spaces = pm_reader_u32(reader);
	corpus->announced.samples = pm_reader_u64(reader);
	modules_at = pm_reader_u64(reader);
	corpus->spaces_at = pm_reader_u64(reader);
	corpus->samples_at = pm_reader_u64(reader);
	if (modules_at == 0)
		return pm_corpus_end_here(corpus, PM_CORPUS_END_CUT);
	return pm_corpus_skip_to(corpus, modules_at, err);
}
