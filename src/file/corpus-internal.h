/* SPDX-License-Identifier: MIT */
/* The bytes of a corpus, docs/format.md §8; all little-endian, in units of 8 bytes. */
#pragma once

#include "file-internal.h"
#include "pm/corpus.h"

#define PM_CORPUS_MAGIC_1 "STKCORP1"
#define PM_CORPUS_MAGIC_2 "STKCORP2"

enum {
	PM_CORPUS_MAGIC_BYTES = 8,
	PM_CORPUS_HEADER_BYTES = 64, /* of both versions */
	/* u32 type, u32 zero, u64 bytes of the whole record. */
	PM_CORPUS_RECORD_HEAD_BYTES = 16,
	PM_CORPUS_LOAD_BYTES = 40,
	PM_CORPUS_MAP_BYTES = 32,
	PM_CORPUS_LOADS_MAX = 4096,
	PM_CORPUS_MAPS_MAX = 1 << 20,
	PM_CORPUS_PATH_MAX = 1 << 16,
	PM_CORPUS_CODE_BYTES_MAX = 1 << 16,
};

/* u32 type in a record of version 2. */
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

/* The numbers of records. Ids are checked against them, and the last record of a file
 * repeats them. */
struct pm_corpus_counts {
	uint64_t modules, spaces, samples;
};

/* Return NULL, or what is wrong; used by reader and writer. */
const char *pm_corpus_check_module(const struct pm_corpus_module *module);
const char *pm_corpus_check_space(const struct pm_corpus_space *space,
				  const struct pm_corpus_counts *counts);
const char *pm_corpus_check_code(const struct pm_corpus_code *code,
				 const struct pm_corpus_counts *counts);
const char *pm_corpus_check_sample(const struct pm_corpus_sample *sample,
				   const struct pm_corpus_counts *counts);

/* ---- reading ------------------------------------------------------------------------- */

struct pm_corpus {
	struct pm_file_source source;
	char *path; /* for messages */
	struct pm_corpus_header header;
	uint64_t pos; /* bytes read, decompressed */
	struct pm_corpus_counts counts; /* returned so far */
	struct pm_corpus_counts announced; /* version 1: the numbers in the header */
	uint64_t spaces_at, samples_at; /* version 1 */
	PM_VEC(uint8_t) record;
	PM_VEC(struct pm_corpus_load) loads;
	PM_VEC(struct pm_corpus_map) maps;
	bool ended, cut;
	int failed; /* sticky */
};

/* Sets @err, and makes all later reads fail. Returns @code. */
int pm_corpus_fail(struct pm_corpus *corpus, int code, const char *why,
		   struct pm_error *err);
enum pm_corpus_end {
	PM_CORPUS_END_COMPLETE,
	PM_CORPUS_END_CUT /* the writer did not finish */
};

/* Marks the end. Returns 0. */
int pm_corpus_end_here(struct pm_corpus *corpus, enum pm_corpus_end end);
/* Reads @len more bytes to the end of `record`. Returns 1, 0 if the file ends before
 * that, or negative errno. */
int pm_corpus_fill(struct pm_corpus *corpus, uint64_t len, struct pm_error *err);
/* Skips to offset @to. Returns as pm_corpus_fill(). */
int pm_corpus_skip_to(struct pm_corpus *corpus, uint64_t to, struct pm_error *err);

/* Parse parts of a record that both versions have. If bytes are missing, @reader
 * fails. */
void pm_corpus_take_loads(struct pm_corpus *corpus, struct pm_reader *reader,
			  uint64_t count, struct pm_corpus_module *out);
void pm_corpus_take_path(struct pm_reader *reader, uint32_t len,
			 struct pm_corpus_module *out);
void pm_corpus_take_part(struct pm_reader *reader, struct pm_corpus_part *part,
			 uint64_t len);
void pm_corpus_take_maps(struct pm_corpus *corpus, struct pm_reader *reader,
			 uint64_t count, struct pm_corpus_space *out);
/* Checks and counts the parsed record. Returns 1 or negative errno. */
int pm_corpus_give(struct pm_corpus *corpus, const struct pm_reader *reader,
		   struct pm_corpus_record *record, struct pm_corpus_record *out,
		   struct pm_error *err);

/* corpus-version-1.c: the rest of the header, and pm_corpus_next() for version 1. */
int pm_corpus_start_1(struct pm_corpus *corpus, struct pm_reader *reader,
		      struct pm_error *err);
int pm_corpus_next_1(struct pm_corpus *corpus, struct pm_corpus_record *out,
		     struct pm_error *err);
