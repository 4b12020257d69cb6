/* SPDX-License-Identifier: MIT */
/* What the writer's and the reader's files share among themselves. */
#pragma once

#include "pm/file.h"

enum {
	/* Of the specification, docs/format.md §1: what a line may hold at most. */
	PM_FILE_LINE_MAX = 64 << 20, /* bytes, without the newline */
	PM_FILE_LINE_VALUES_MAX = 1
				  << 20, /* JSON values; each costs a parser ~100 bytes */
	PM_FILE_EVENTS_MAX = 16384,
	PM_FILE_FUNCTIONS_MAX =
		1024, /* of a symbol: each counts in every stack with it */
	PM_FILE_RUN_MAX = 4096, /* nodes of one stack line that our writer makes */
};
#define PM_FILE_INTEGER_MAX INT64_MAX /* what every JSON parser for C can hold */

/* ---- writing ------------------------------------------------------------------------- */

struct pm_file_queue;

/* Where the bytes go: a file descriptor, compressed or not. */
struct pm_file_output {
	int fd;
	struct pm_file_queue
		*queue; /* writes in the background; NULL: the caller writes */
	struct ZSTD_CCtx_s *zstd; /* NULL: plain */
	char *compressed; /* buffer of `zstd` */
	size_t compressed_cap;
	uint64_t bytes; /* that the kernel or the queue took */
	int failed; /* first failure, negative errno; sticky */
	char *path; /* as the caller named it */
	char *partial; /* the name until it is published; NULL: it has none of its own */
	bool asked; /* its publication was requested */
	bool beside; /* the caller gives it another name */
	int unpublished; /* negative errno: why it keeps that name */
	bool kept_old; /* what was at `path` is at PATH.old now */
};

/*
 * A regular file is created beside @path (see pm_file_partial_create()); devices, pipes and
 * descriptors are written to directly.
 */
int pm_file_output_open(struct pm_file_output *ret, const char *path,
			struct pm_error *err);
/* Renames the file to its path, also after a write that failed, because the lines
 * before the failure may be of use. Legal more than once. Where it cannot be renamed, it
 * keeps its name, and `unpublished` says why: nothing of it is lost. */
void pm_file_output_publish(struct pm_file_output *output);
/* Whether it is to be renamed to its path, and is not yet. */
static inline bool pm_file_output_waits(const struct pm_file_output *output)
{
	return output->partial && !output->beside && !output->asked;
}
/* Reports where the file is instead, and why. */
void pm_file_output_explain_unpublished(const struct pm_file_output *output,
					struct pm_error *err);
/* Removes a file that has not been published. */
void pm_file_output_discard(struct pm_file_output *output);
/* From now on a thread writes: see pm_file_writer_background(). */
int pm_file_output_background(struct pm_file_output *output,
			      pm_file_wants_end_fn wants_end, void *user);
int pm_file_output_write(struct pm_file_output *output, const char *data, size_t len);
int pm_file_output_flush(struct pm_file_output *output);
/* Waits until the thread has handled all requests. Returns the first failure. */
int pm_file_output_settle(struct pm_file_output *output);
/* Ends the stream, closes, and releases; returns the first failure. Legal on a zeroed
 * one with fd -1. A file that has not been published keeps its name beside. */
int pm_file_output_close(struct pm_file_output *output);

/*
 * Creates PATH.partial (or PATH.partial.2, … where others are in use), mode 0600, locked with
 * flock(2) as long as it is open. Left-overs of recordings that were killed are replaced.
 * The descriptor, or negative errno.
 */
int pm_file_partial_create(const char *path, char **ret_partial);
/* The result of publishing. */
struct pm_file_published {
	bool given; /* the file has its name */
	bool kept_old; /* the file that had it is PATH.old */
	int refused; /* negative errno: it keeps the name that it had */
};
/* Renames @partial to @path. A regular file there that is not empty becomes PATH.old; it stays
 * where it is if that fails. */
void pm_file_partial_publish(const char *path, const char *partial,
			     struct pm_file_published *ret);
/* For a file that cannot be published: renames *partial to PATH.kept (or PATH.kept.2,
 * ...), which no other recorder takes for a left-over. If that fails, the file stays as
 * it is. */
void pm_file_partial_keep(const char *path, char **partial);
/* Whether publishing at @path would move a file away. */
bool pm_file_partial_replaces(const char *path);

/* Writes all of it, unless the kernel refuses. Adds the bytes that it took to
 * *@written. */
int pm_file_write_fully(int fd, const char *data, size_t len, uint64_t *written);

/*
 * A queue of bytes and the thread that writes them to @fd. @path, @partial: for publishing, both
 * borrowed; NULL: there is nothing to rename. One caller's thread. 0 or negative errno.
 */
int pm_file_queue_new(struct pm_file_queue **ret, int fd, const char *path,
		      const char *partial, pm_file_wants_end_fn wants_end, void *user);
/* Waits for room if the queue is full. Returns the first failure so far. */
int pm_file_queue_write(struct pm_file_queue *queue, const char *data, size_t len);
int pm_file_queue_failed(struct pm_file_queue *queue);
/* Requests the name: the file gets it when all bytes queued so far are written. */
void pm_file_queue_publish(struct pm_file_queue *queue);
/* Waits until nothing is left to do. @ret: what became of the name by now. */
int pm_file_queue_settle(struct pm_file_queue *queue, struct pm_file_published *ret);
/* Waits, ends the thread and frees. False: the thread hangs in a system call; then @fd, @path and
 * @partial have to stay. @written: bytes that the kernel took. */
bool pm_file_queue_free(struct pm_file_queue *queue, uint64_t *written);

struct pm_file_stack_slot {
	uint64_t key; /* parent << 32 | frame */
	uint32_t id_plus_1; /* 0: free */
};

struct pm_file_stack_row {
	uint32_t parent, frame;
};

struct pm_file_writer {
	struct pm_file_output output; /* fd -1: nowhere */
	pm_file_tee_fn tee; /* NULL: none */
	void *tee_user;
	char *path;
	struct pm_str buffer; /* whole lines */
	bool header, footer; /* written */
	uint32_t events, modules; /* how many are defined */
	/* Of this generation: from ids first_frame and first_stack on. */
	PM_VEC(struct pm_file_frame) frames;
	struct pm_index frame_index; /* of places in `frames` */
	uint32_t first_frame;
	struct pm_file_stack_slot *stack_slots;
	size_t stack_cap; /* 0 or a power of two */
	uint32_t stacks; /* the next id */
	uint32_t first_stack;
	PM_VEC(struct pm_file_stack_row) stack_rows;
	/* New nodes, each the child of the one before, not yet written. */
	struct {
		uint32_t id, parent, len;
		uint32_t frames[PM_FILE_RUN_MAX];
	} run;
};

/* May a line be written now, other than the header? 0 or negative errno. */
int pm_file_writer_ready(const struct pm_file_writer *writer);
/*
 * Ends the line that began at @start of the buffer: adds the newline and hands a full buffer
 * on. A line that got too long or found no memory is taken back.
 */
int pm_file_line_end(struct pm_file_writer *writer, size_t start);
/* The same, and tells who listens of @record, the struct pm_file_* of that type and length. */
int pm_file_record_end(struct pm_file_writer *writer, size_t start,
		       enum pm_file_type type, const void *record, size_t len);
/* Tells of one that is no line of its own. */
int pm_file_tell(struct pm_file_writer *writer, enum pm_file_type type,
		 const void *record, size_t len);
int pm_file_write_frame(struct pm_file_writer *writer, const struct pm_file_frame *frame);
/* The id of the next new frame. */
uint32_t pm_file_writer_frames_end(const struct pm_file_writer *writer);
/* Writes the pending run of stacks, if any. */
int pm_file_write_run(struct pm_file_writer *writer);

/* ---- reading ------------------------------------------------------------------------- */

/* Where the bytes come from: a file or memory, compressed or not. */
struct pm_file_source {
	int fd; /* -1: memory */
	const uint8_t *memory;
	size_t memory_len;
	struct ZSTD_DCtx_s *zstd; /* NULL: plain */
	uint8_t *in;
	size_t in_pos, in_len;
	uint64_t consumed; /* bytes of the file before `in` */
	uint64_t inflated; /* bytes that were given out, where it is compressed */
	bool end; /* of the file */
	bool follow; /* -EAGAIN where nothing more is there yet */
};

bool pm_file_is_zstd(const void *bytes, size_t len);
int pm_file_source_open(struct pm_file_source *ret, const char *path,
			struct pm_error *err);
int pm_file_source_open_memory(struct pm_file_source *ret, const void *data, size_t len,
			       struct pm_error *err);
/* Decompressed bytes: 1 and at least one of them in @buffer, 0 at the end, negative errno. */
int pm_file_source_read(struct pm_file_source *source, char *buffer, size_t cap,
			size_t *ret, struct pm_error *err);
void pm_file_source_release(struct pm_file_source *source);

/* One line taken apart. Texts point into the line or into `root`. */
struct pm_file_parsed {
	struct pm_file_record record;
	PM_VEC(uint32_t) run; /* of a stack line: frames, root-ward first */
	struct json_t *root;
	PM_VEC(const char *) command;
	PM_VEC(struct pm_file_event) events;
	PM_VEC(struct pm_file_field) fields;
	PM_VEC(struct pm_file_event_count) counts;
	PM_VEC(struct pm_file_branch) branches;
	PM_VEC(struct pm_file_function) functions;
	PM_VEC(struct pm_file_count) stops;
	PM_VEC(struct pm_file_footer_event) footer_events;
};

/*
 * Takes a sample, stack, frame or symbol line apart when it is, byte by byte, of the form our writer
 * gives it; false otherwise, then pm_file_parse_json() shall judge. Writes NULs into @line,
 * only when it succeeds.
 */
bool pm_file_parse_fast(struct pm_file_parsed *parsed, char *line, size_t len);
/*
 * Any line. 1; 0 for a type this version does not know; -EBADMSG, then *syntax tells whether
 * it was no JSON at all; -ENOTSUP for a header of a newer version; -ENOMEM.
 */
int pm_file_parse_json(struct pm_file_parsed *parsed, const char *line, size_t len,
		       bool *syntax, struct pm_error *err);
void pm_file_parsed_release(struct pm_file_parsed *parsed);
