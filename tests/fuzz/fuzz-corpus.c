/* SPDX-License-Identifier: MIT */
/*
 * The reader of corpora over any bytes: every record keeps what the contract promises. Bytes
 * without a magic are read behind a header of version 2.
 */
#include "pm/corpus.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const uint8_t header[64] = "STKCORP2\x40\0\0\0";

#define CHECK(condition)          \
	do {                      \
		if (!(condition)) \
			abort();  \
	} while (0)

static volatile uint64_t seen; /* so that it is computed */

/* Every byte that is promised is looked at. */
static uint64_t sum(const void *data, size_t len)
{
	return len > 0 ? pm_hash_bytes(data, len) : 0;
}

static uint64_t check_module(const struct pm_corpus_module *module)
{
	CHECK(module->build_id_len <= PM_CORPUS_BUILD_ID_MAX);
	return sum(module->path, strlen(module->path)) +
	       sum(module->loads, module->loads_len * sizeof(*module->loads)) +
	       sum(module->eh_frame_hdr.data, module->eh_frame_hdr.len) +
	       sum(module->eh_frame.data, module->eh_frame.len) +
	       sum(module->debug_frame.data, module->debug_frame.len);
}

static uint64_t check_space(const struct pm_corpus_space *space, uint64_t modules)
{
	for (size_t i = 0; i < space->maps_len; i++) {
		const struct pm_corpus_map *map = &space->maps[i];

		CHECK(map->start < map->end);
		CHECK(i == 0 || map[-1].end <= map->start);
		CHECK(map->module < modules ||
		      map->module == (uint32_t)PM_CORPUS_NO_MODULE);
	}
	return sum(space->maps, space->maps_len * sizeof(*space->maps));
}

static uint64_t check_sample(const struct pm_corpus_sample *sample, uint64_t spaces)
{
	CHECK(sample->space < spaces && sample->known >> PM_CORPUS_REGS_MAX == 0);
	return sum(sample->stack, sample->stack_len) + sample->stack_start;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	bool whole = size > 4 && (memcmp(data, "STKCORP", 7 < size ? 7 : size) == 0 ||
				  data[0] == 0x28);
	size_t before = whole ? 0 : sizeof(header);
	PM_AUTO_FREE uint8_t *file = malloc(before + size + 1);
	uint64_t modules = 0, spaces = 0, all = 0;
	struct pm_corpus_record record;
	struct pm_error err = { 0 };
	struct pm_corpus *corpus;
	int result;

	CHECK(file);
	memcpy(file, header, before);
	if (size > 0)
		memcpy(file + before, data, size);
	result = pm_corpus_open_memory(&corpus, file, before + size, &err);
	CHECK(result == 0 || (result == err.code && err.text[0]));
	if (result < 0)
		return 0;
	while ((result = pm_corpus_next(corpus, &record, &err)) == 1) {
		switch (record.type) {
		case PM_CORPUS_MODULE:
			all += check_module(&record.module);
			modules++;
			break;
		case PM_CORPUS_SPACE:
			all += check_space(&record.space, modules);
			spaces++;
			break;
		case PM_CORPUS_CODE:
			CHECK(record.code.module < modules);
			all += sum(record.code.part.data, record.code.part.len);
			break;
		case PM_CORPUS_SAMPLE:
			all += check_sample(&record.sample, spaces);
			break;
		}
	}
	CHECK(result == 0 || (result == err.code && err.text[0]));
	CHECK(pm_corpus_next(corpus, &record, NULL) == result);
	pm_corpus_free(corpus);
	seen = all;
	return 0;
}
