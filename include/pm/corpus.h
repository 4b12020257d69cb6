/* SPDX-License-Identifier: MIT */
/*
 * Corpora: registers and copied stacks of sampled threads, with the CFI bytes and
 * mappings that are needed to unwind them. Any unwinder can be run on the same samples
 * again, also on another machine. docs/format.md §8 is the specification of the bytes.
 *
 * A corpus is a stream of records. Modules and spaces come before the records that refer
 * to them; ids count from 0 in the order of the records of their type. Part of the room
 * `file`.
 *
 * Threads: one thread at a time for each reader or writer.
 */
#pragma once

#include "pm/file.h"

enum {
	PM_CORPUS_REGS_MAX = 33, /* aarch64: x0…x30, sp, pc */
	PM_CORPUS_BUILD_ID_MAX = 24,
	PM_CORPUS_NO_MODULE = -1, /* as uint32_t: a mapping without a known file */
	/* The limit for one record: the largest .eh_frame seen is 60 MB. */
	PM_CORPUS_RECORD_BYTES_MAX = 256 << 20,
	/* The kernel copies at most 65,528 bytes; with ptrace there is no limit. */
	PM_CORPUS_STACK_BYTES_MAX = 16 << 20,
};

/* ELF's e_machine: selects the registers (by DWARF number) and the CFI. */
enum pm_corpus_machine {
	PM_CORPUS_I386 = 3,
	PM_CORPUS_X86_64 = 62,
	PM_CORPUS_AARCH64 = 183,
};

struct pm_corpus_header {
	uint32_t stack_bytes; /* requested from the kernel for each stack; 0: unknown */
	uint64_t created_s; /* CLOCK_REALTIME; 0: unknown */
};

struct pm_corpus_part {
	uint64_t svma;
	const void *data; /* decompressed, as in memory at `svma` */
	size_t len; /* 0: there is none */
};

struct pm_corpus_load {
	uint64_t vaddr, memsz, offset, filesz; /* as in the program header */
	uint64_t flags; /* PF_* */
};

enum {
	PM_CORPUS_EXEC = 1, /* ET_EXEC */
	PM_CORPUS_INTERP = 2, /* has PT_INTERP */
	PM_CORPUS_VDSO = 4,
};

/* One file, with the parts that unwinding needs. */
struct pm_corpus_module {
	uint32_t machine; /* enum pm_corpus_machine, or another machine of ELF */
	uint32_t flags;
	const char *path; /* as the target saw it, NUL-terminated; "[vdso]" */
	uint8_t build_id[PM_CORPUS_BUILD_ID_MAX];
	uint32_t build_id_len; /* 0: unknown */
	uint64_t entry; /* svma; 0: none */
	const struct pm_corpus_load *loads; /* PT_LOAD in file order */
	size_t loads_len;
	struct pm_corpus_part eh_frame_hdr, eh_frame, debug_frame;
};

/* [start, end) avma; only executable mappings. */
struct pm_corpus_map {
	uint64_t start, end, pgoff;
	uint32_t module; /* id or PM_CORPUS_NO_MODULE */
	uint32_t prot; /* PROT_* */
};

/* The mappings of one process for some time: sorted by start, without overlap. */
struct pm_corpus_space {
	uint32_t pid;
	const struct pm_corpus_map *maps;
	size_t maps_len;
};

/* A few bytes of code that the unwinder read because there was no CFI. */
struct pm_corpus_code {
	uint32_t module;
	struct pm_corpus_part part;
};

struct pm_corpus_sample {
	/* Number of the sample's line in the accompanying recording, from 0. */
	uint64_t index;
	uint64_t time; /* ns, clock of that recording */
	uint64_t ip; /* as sampled; a kernel address if the thread was in the kernel */
	uint32_t space, pid, tid;
	uint32_t machine;
	uint64_t known; /* bit n: regs[n] is known */
	uint64_t regs[PM_CORPUS_REGS_MAX];
	uint64_t stack_start; /* avma of the first copied byte */
	const uint8_t *stack;
	size_t stack_len;
};

/* ---- reading ------------------------------------------------------------------------- */

enum pm_corpus_type {
	PM_CORPUS_MODULE,
	PM_CORPUS_SPACE,
	PM_CORPUS_CODE, /* not in version 1 */
	PM_CORPUS_SAMPLE,
};

/* Pointers in it are valid until the next call. */
struct pm_corpus_record {
	enum pm_corpus_type type;
	union {
		struct pm_corpus_module module;
		struct pm_corpus_space space;
		struct pm_corpus_code code;
		struct pm_corpus_sample sample;
	};
};

struct pm_corpus;

/*
 * Opens a corpus, plain or compressed by zstd; "-" is standard input. Fails with -ENODATA
 * if it is empty, -EBADMSG if it is not a corpus, and -ENOTSUP if it has another version.
 * The file is not mapped: if it is truncated during reading, it just ends earlier.
 */
int pm_corpus_open(struct pm_corpus **out, const char *path, struct pm_error *err);
int pm_corpus_open_memory(struct pm_corpus **out, const void *data, size_t len,
			  struct pm_error *err);
void pm_corpus_free(struct pm_corpus *corpus);
const struct pm_corpus_header *pm_corpus_header(const struct pm_corpus *corpus);
/*
 * Returns 1 and the next record; 0 at the end; or negative errno: -EBADMSG for an invalid
 * record, after which reading cannot continue. A returned record is whole and consistent:
 * ids exist, mappings are sorted, no length exceeds its limit.
 */
int pm_corpus_next(struct pm_corpus *corpus, struct pm_corpus_record *out,
		   struct pm_error *err);
/* To be called after the end: returns whether the file lacks its last record, because its
 * writer did not finish. */
bool pm_corpus_is_cut(const struct pm_corpus *corpus);

/* ---- writing ------------------------------------------------------------------------- */

struct pm_corpus_writer;

/* Like pm_file_writer_open(): the mode is 0600, an old file is replaced, a link is never
 * followed, and a name that ends in .zst turns on compression. */
int pm_corpus_writer_open(struct pm_corpus_writer **out, const char *path,
			  const struct pm_corpus_header *header, struct pm_error *err);
/* Like pm_file_writer_background(). */
int pm_corpus_writer_background(struct pm_corpus_writer *writer,
				pm_file_wants_end_fn wants_end, void *user);
/*
 * These return 0 or a negative errno. A record that the reader would refuse is refused
 * with -EINVAL and changes nothing. *ret_id is the id of the new record; @ret_id may be
 * NULL.
 */
int pm_corpus_write_module(struct pm_corpus_writer *writer,
			   const struct pm_corpus_module *module, uint32_t *ret_id);
int pm_corpus_write_space(struct pm_corpus_writer *writer,
			  const struct pm_corpus_space *space, uint32_t *ret_id);
int pm_corpus_write_code(struct pm_corpus_writer *writer,
			 const struct pm_corpus_code *code);
int pm_corpus_write_sample(struct pm_corpus_writer *writer,
			   const struct pm_corpus_sample *sample);
/* Returns the number of bytes that have left this process so far. */
uint64_t pm_corpus_writer_bytes(const struct pm_corpus_writer *writer);
/* Closes and frees the writer in any case; @complete: first writes the last record.
 * Returns the first error since the corpus was opened. NULL is allowed. */
int pm_corpus_writer_close(struct pm_corpus_writer *writer, bool complete,
			   struct pm_error *err);
