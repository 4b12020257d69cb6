/* SPDX-License-Identifier: MIT */
/* Shared by the files of the writer and the reader. */
#pragma once

#include "pm/file.h"

enum {
	/* Limits of a line, from the specification, docs/format.md §1. */
	PM_FILE_LINE_MAX = 64 << 20, /* bytes, without the newline */
	PM_FILE_LINE_VALUES_MAX = 1
				  << 20, /* JSON values; each costs a parser ~100 bytes */
	PM_FILE_EVENTS_MAX = 16384,
	PM_FILE_FUNCTIONS_MAX =
		1024, /* of a symbol: each counts in every stack with it */
	PM_FILE_RUN_MAX = 4096, /* nodes in one stack line of our writer */
};
#define PM_FILE_INTEGER_MAX INT64_MAX /* every JSON parser for C can represent it */

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
	uint64_t bytes; /* taken by the kernel or the queue */
	int failed; /* first failure, negative errno; sticky */
	char *path; /* as the caller named it */
	char *partial; /* its name until it is published; NULL: no separate name */
	bool asked; /* its publication was requested */
	bool beside; /* the caller gives it another name */
	int unpublished; /* negative errno: why `partial` is still its name */
	bool kept_old; /* the file that was at `path` is now PATH.old */
};

/*
 * A regular file is created beside @path (see pm_file_partial_create()); devices, pipes and
 * descriptors are written to directly.
 */
int pm_file_output_open(struct pm_file_output *out, const char *path,
			struct pm_error *err);
/* Renames the file to its path, also after a failed write, because the lines before the
 * failure may be of use. Legal more than once. If it cannot be renamed, it keeps its
 * name, so that nothing is lost, and `unpublished` says why. */
void pm_file_output_publish(struct pm_file_output *output);
/* Whether the file still has to be renamed to its path. */
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
 * Creates PATH.partial (or PATH.partial.2, … if others are in use), mode 0600, locked
 * with flock(2) as long as it is open. Replaces left-overs of recordings that were
 * killed. Returns the descriptor, or negative errno.
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
			     struct pm_file_published *out);
/* For a file that cannot be published: renames *partial to PATH.kept (or PATH.kept.2,
 * ...), which other recorders do not mistake for a left-over. If that fails, the file
 * stays as it is. */
void pm_file_partial_keep(const char *path, char **partial);
/* Whether publishing at @path would move a file away. */
bool pm_file_partial_replaces(const char *path);

/* Writes all of it, unless the kernel refuses. Adds the bytes that the kernel took to
 * *@written. */
int pm_file_write_fully(int fd, const char *data, size_t len, uint64_t *written);

/*
 * A queue of bytes and the thread that writes them to @fd. @path, @partial: for
 * publishing, both borrowed; NULL: there is nothing to rename. Only one thread may call
 * these functions. Returns 0 or negative errno.
 */
int pm_file_queue_new(struct pm_file_queue **out, int fd, const char *path,
		      const char *partial, pm_file_wants_end_fn wants_end, void *user);
/* Waits for room if the queue is full. Returns the first failure so far. */
int pm_file_queue_write(struct pm_file_queue *queue, const char *data, size_t len);
int pm_file_queue_failed(struct pm_file_queue *queue);
/* Requests the name: the file gets it when all bytes queued so far are written. */
void pm_file_queue_publish(struct pm_file_queue *queue);
/* Waits until nothing is left to do. @out: the result of publishing so far. */
int pm_file_queue_settle(struct pm_file_queue *queue, struct pm_file_published *out);
/* Waits, ends the thread and frees. Returns false if the thread hangs in a system call;
 * then @fd, @path and @partial must stay valid. @written: bytes that the kernel took. */
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
	struct pm_index frame_index; /* of indices in `frames` */
	uint32_t first_frame;
	struct pm_file_stack_slot *stack_slots;
	size_t stack_cap; /* 0 or a power of two */
	uint32_t stacks; /* the next id */
	uint32_t first_stack;
	PM_VEC(struct pm_file_stack_row) stack_rows;
	/* New nodes, each the child of the previous one, not yet written. */
	struct {
		uint32_t id, parent, len;
		uint32_t frames[PM_FILE_RUN_MAX];
	} run;
};

/* Whether a line other than the header may be written now. Returns 0 or negative
 * errno. */
int pm_file_writer_ready(const struct pm_file_writer *writer);
/* Gives the tee a record that is not a separate line. */
int pm_file_tell(struct pm_file_writer *writer, enum pm_file_type type,
		 const void *record, size_t len);
int pm_file_write_frame(struct pm_file_writer *writer, const struct pm_file_frame *frame);
/* The id of the next new frame. */
static inline uint32_t pm_file_writer_frames_end(const struct pm_file_writer *writer)
{
	return writer->first_frame + (uint32_t)writer->frames.len;
}
/* Writes the pending run of stacks, if any. */
int pm_file_write_run(struct pm_file_writer *writer);

/* ---- reading ------------------------------------------------------------------------- */

/* The source of the bytes: a file or memory, compressed or not. */
struct pm_file_source {
	int fd; /* -1: memory */
	const uint8_t *memory;
	size_t memory_len;
	struct ZSTD_DCtx_s *zstd; /* NULL: plain */
	uint8_t *in;
	size_t in_pos, in_len;
	uint64_t consumed; /* bytes of the file before `in` */
	uint64_t inflated; /* bytes returned, if it is compressed */
	bool end; /* of the file */
	bool follow; /* return -EAGAIN if nothing more is there yet */
};

bool pm_file_is_zstd(const void *bytes, size_t len);
int pm_file_source_open(struct pm_file_source *out, const char *path,
			struct pm_error *err);
int pm_file_source_open_memory(struct pm_file_source *out, const void *data, size_t len,
			       struct pm_error *err);
/* Reads decompressed bytes. Returns 1 with at least one byte in @buffer, 0 at the end, or
 * negative errno. */
int pm_file_source_read(struct pm_file_source *source, char *buffer, size_t cap,
			size_t *out, struct pm_error *err);
void pm_file_source_release(struct pm_file_source *source);

/* One parsed line. Texts point into the line or into `root`. */
struct pm_file_parsed {
	struct pm_file_record record;
	PM_VEC(uint32_t) run; /* frames of a stack line, outermost first */
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
 * Parses a sample, stack, frame or symbol line if it has, byte by byte, the form of our
 * writer. Otherwise returns false, and pm_file_parse_json() decides. Writes NULs into
 * @line only if it succeeds.
 */
bool pm_file_parse_fast(struct pm_file_parsed *parsed, char *line, size_t len);
/*
 * Parses any line. Returns 1; 0 for a type that this version does not know; -EBADMSG,
 * with *syntax set if the line is not JSON; -ENOTSUP for a header of a newer version; or
 * -ENOMEM.
 */
int pm_file_parse_json(struct pm_file_parsed *parsed, const char *line, size_t len,
		       bool *syntax, struct pm_error *err);
void pm_file_parsed_release(struct pm_file_parsed *parsed);
