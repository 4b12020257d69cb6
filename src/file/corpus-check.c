/* SPDX-License-Identifier: MIT */
/* Checks records; used by the reader and the writer. */
#include "corpus-internal.h"

#include <string.h>

const char *pm_corpus_check_module(const struct pm_corpus_module *module)
{
	uint64_t bytes = (uint64_t)module->eh_frame_hdr.len + module->eh_frame.len +
			 module->debug_frame.len;

	if (module->loads_len > PM_CORPUS_LOADS_MAX)
		return "a module has too many segments";
	if (module->build_id_len > PM_CORPUS_BUILD_ID_MAX)
		return "a build-id is too long";
	if (strlen(module->path) >= PM_CORPUS_PATH_MAX)
		return "a path is too long";
	/* The sum cannot overflow, because all these bytes are in memory. */
	if (bytes > PM_CORPUS_RECORD_BYTES_MAX / 2)
		return "a module has too many bytes of CFI";
	return NULL;
}

const char *pm_corpus_check_space(const struct pm_corpus_space *space,
				  const struct pm_corpus_counts *counts)
{
	uint64_t last = 0;

	if (space->maps_len > PM_CORPUS_MAPS_MAX)
		return "an address space has too many mappings";
	for (size_t i = 0; i < space->maps_len; i++) {
		const struct pm_corpus_map *map = &space->maps[i];

		if (map->start < last || map->end <= map->start)
			return "mappings are not sorted or overlap";
		if (map->module != (uint32_t)PM_CORPUS_NO_MODULE &&
		    map->module >= counts->modules)
			return "a mapping is of a module that is not there";
		last = map->end;
	}
	return NULL;
}

const char *pm_corpus_check_code(const struct pm_corpus_code *code,
				 const struct pm_corpus_counts *counts)
{
	if (code->module >= counts->modules)
		return "code is of a module that is not there";
	if (code->part.len > PM_CORPUS_CODE_BYTES_MAX ||
	    code->part.svma + code->part.len < code->part.svma)
		return "a piece of code is too long";
	return NULL;
}

const char *pm_corpus_check_sample(const struct pm_corpus_sample *sample,
				   const struct pm_corpus_counts *counts)
{
	if (sample->space >= counts->spaces)
		return "a sample is of an address space that is not there";
	if (sample->known >> PM_CORPUS_REGS_MAX)
		return "a sample has too many registers";
	if (sample->stack_len > PM_CORPUS_STACK_BYTES_MAX)
		return "a stack is too long";
	return NULL;
}
