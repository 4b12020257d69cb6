/* SPDX-License-Identifier: MIT */
/* The bytes of a corpus, docs/format.md §8; all little-endian, in units of 8 bytes. */
#pragma once

#include "file-internal.h"
#include "pm/corpus.h"

#define PM_CORPUS_MAGIC "STKCORP2"

enum {
	PM_CORPUS_MAGIC_BYTES = 8,
	PM_CORPUS_HEADER_BYTES = 64,
	/* A u32 type, a u32 zero, and the length of the whole record in bytes (u64). */
	PM_CORPUS_RECORD_HEAD_BYTES = 16,
	PM_CORPUS_LOAD_BYTES = 40,
	PM_CORPUS_MAP_BYTES = 32,
	PM_CORPUS_LOADS_MAX = 4096,
	PM_CORPUS_MAPS_MAX = 1 << 20,
	PM_CORPUS_PATH_MAX = 1 << 16,
	PM_CORPUS_CODE_BYTES_MAX = 1 << 16,
};

/* The u32 type of a record. */
enum pm_corpus_wire_type {
	PM_CORPUS_WIRE_MODULE = 1,
	PM_CORPUS_WIRE_SPACE = 2,
	PM_CORPUS_WIRE_CODE = 3,
	PM_CORPUS_WIRE_SAMPLE = 4,
	PM_CORPUS_WIRE_END = 5,
};

static inline uint64_t pm_corpus_pad(uint64_t bytes)
{
	return (bytes + 7) & ~(uint64_t)7;
}

/* The numbers of records so far. Ids are checked against them, and the last record of a
 * file repeats them. */
struct pm_corpus_counts {
	uint64_t modules, spaces, samples;
};

/* These return NULL, or an error message. The reader and the writer use them. */
const char *pm_corpus_check_module(const struct pm_corpus_module *module);
const char *pm_corpus_check_space(const struct pm_corpus_space *space,
				  const struct pm_corpus_counts *counts);
const char *pm_corpus_check_code(const struct pm_corpus_code *code,
				 const struct pm_corpus_counts *counts);
const char *pm_corpus_check_sample(const struct pm_corpus_sample *sample,
				   const struct pm_corpus_counts *counts);
