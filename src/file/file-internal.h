/* SPDX-License-Identifier: MIT */
/* Shared by the files of the writer and the reader. */
#pragma once

#include "pm/file.h"

enum {
	/* Limits of a line, from the specification, docs/format.md §1. */
	PM_FILE_LINE_MAX = 64 << 20, /* bytes, without the newline */
	PM_FILE_LINE_VALUES_MAX = 1 << 20, /* number of JSON values; each costs a parser
				          * about 100 bytes */
	PM_FILE_EVENTS_MAX = 16384,
	PM_FILE_FUNCTIONS_MAX =
		1024, /* functions of a symbol, each of which counts in every stack with
		       * it */
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
	uint64_t bytes; /* accepted by the kernel or the queue */
	int failed; /* first failure, negative errno; sticky */
	char *path; /* as the caller named it */
	char *partial; /* name of the file until it is published; NULL: it has no separate
	                * name */
	bool asked; /* its publication was requested */
	bool beside; /* the caller renames the file itself */
	int unpublished; /* negative errno: why the file still has the name `partial` */
	bool kept_old; /* the file that was at `path` is now PATH.old */
};

/*
 * Opens the output. A regular file is created beside @path (see
 * pm_file_partial_create()); devices, pipes and descriptors are written to directly.
 */
int pm_file_output_open(struct pm_file_output *out, const char *path,
			struct pm_error *err);
/* Renames the file to its path, even after a failed write, because the lines before the
 * failure may be useful. May be called more than once. If the file cannot be renamed, it
 * keeps its name, so that nothing is lost, and `unpublished` has the reason. */
void pm_file_output_publish(struct pm_file_output *output);
/* Whether the file still has to be renamed to its path. */
static inline bool pm_file_output_waits(const struct pm_file_output *output)
{
	return output->partial && !output->beside && !output->asked;
}
/* Adds to @err where the file is instead, and why. */
void pm_file_output_explain_unpublished(const struct pm_file_output *output,
					struct pm_error *err);
/* Removes a file that has not been published. */
void pm_file_output_discard(struct pm_file_output *output);
/* Creates a thread that does all further writes: see pm_file_writer_background(). */
int pm_file_output_background(struct pm_file_output *output,
			      pm_file_wants_end_fn wants_end, void *user);
int pm_file_output_write(struct pm_file_output *output, const char *data, size_t len);
int pm_file_output_flush(struct pm_file_output *output);
/* Waits until the thread has handled all requests. Returns the first error. */
int pm_file_output_settle(struct pm_file_output *output);
/* Ends the stream, closes, and releases; returns the first error. May also be called for
 * a zeroed output with fd -1. A file that has not been published keeps its partial
 * name. */
int pm_file_output_close(struct pm_file_output *output);

/*
 * Creates PATH.partial (or PATH.partial.2, … if others are in use) with mode 0600, locked
 * with flock(2) as long as it is open. Replaces files that were left behind by recordings
 * that were killed. Returns the descriptor, or a negative errno.
 */
int pm_file_partial_create(const char *path, char **ret_partial);
/* The result of publishing. */
struct pm_file_published {
	bool given; /* the file has its final name */
	bool kept_old; /* the file that had this name before is now PATH.old */
	int refused; /* negative errno: why the file still has its partial name */
};
/* Renames @partial to @path. A regular file there that is not empty is renamed to
 * PATH.old first, and gets its name back if the rename of @partial fails. */
void pm_file_partial_publish(const char *path, const char *partial,
			     struct pm_file_published *out);
/* For a file that cannot be published: renames *partial to PATH.kept (or PATH.kept.2,
 * ...), which other recorders do not remove. If that fails, the file keeps its partial
 * name. */
void pm_file_partial_keep(const char *path, char **partial);
/* Whether publishing at @path would rename an existing file. */
bool pm_file_partial_replaces(const char *path);

/* Writes all bytes, unless the kernel returns an error. Adds the number of bytes that
 * were written to *@written. */
int pm_file_write_fully(int fd, const char *data, size_t len, uint64_t *written);

/*
 * Creates a queue of bytes and the thread that writes them to @fd. @path and @partial are
 * for publishing, both borrowed; NULL: nothing is renamed. Only one thread may call these
 * functions. Returns 0 or a negative errno.
 */
int pm_file_queue_new(struct pm_file_queue **out, int fd, const char *path,
		      const char *partial, pm_file_wants_end_fn wants_end, void *user);
/* Appends bytes; waits for room if the queue is full. Returns the first error so far. */
int pm_file_queue_write(struct pm_file_queue *queue, const char *data, size_t len);
int pm_file_queue_failed(struct pm_file_queue *queue);
/* Requests publishing, which is done after all bytes queued so far are written. */
void pm_file_queue_publish(struct pm_file_queue *queue);
/* Waits until there is nothing left to do. @out is the result of publishing so far. */
int pm_file_queue_settle(struct pm_file_queue *queue, struct pm_file_published *out);
/* Waits, ends the thread and frees the queue. Returns false if the thread hangs in a
 * system call; @fd, @path and @partial must then stay valid. @written is the number of
 * bytes that the kernel accepted. */
bool pm_file_queue_free(struct pm_file_queue *queue, uint64_t *written);

struct pm_file_stack_slot {
	uint64_t key; /* parent << 32 | frame */
	uint32_t id_plus_1; /* 0: free */
};

struct pm_file_stack_row {
	uint32_t parent, frame;
};

struct pm_file_writer {
	struct pm_file_output output; /* fd -1: the lines are not stored */
	pm_file_tee_fn tee; /* NULL: none */
	void *tee_user;
	char *path;
	struct pm_str buffer; /* whole lines */
	bool header, footer; /* whether they have been written */
	uint32_t events, modules; /* how many are defined */
	/* The frames and stacks of this generation: those with ids from first_frame and
	 * first_stack on. */
	PM_VEC(struct pm_file_frame) frames;
	struct pm_index frame_index; /* of indices in `frames` */
	uint32_t first_frame;
	struct pm_file_stack_slot *stack_slots;
	size_t stack_cap; /* 0 or a power of two */
	uint32_t stacks; /* the next id */
	uint32_t first_stack;
	PM_VEC(struct pm_file_stack_row) stack_rows;
	/* New nodes that have not been written yet; each is the child of the previous
	 * one. */
	struct {
		uint32_t id, parent, len;
		uint32_t frames[PM_FILE_RUN_MAX];
	} run;
};

/* Whether a line other than the header may be written now. Returns 0 or negative
 * errno. */
int pm_file_writer_ready(const struct pm_file_writer *writer);
/* Passes the tee a record that is not a separate line. */
int pm_file_tell(struct pm_file_writer *writer, enum pm_file_type type,
		 const void *record, size_t len);
int pm_file_write_frame(struct pm_file_writer *writer, const struct pm_file_frame *frame);
/* Returns the id of the next new frame. */
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
	bool end; /* the end of the file was reached */
	bool follow; /* return -EAGAIN if there are no more bytes yet */
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

/* One parsed line. Strings point into the line or into `root`. */
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
 * Parses a sample, stack, frame or symbol line if it has, byte by byte, the form that our
 * writer uses. Otherwise returns false, and pm_file_parse_json() has to parse it. Writes
 * NULs into @line only if it succeeds.
 */
bool pm_file_parse_fast(struct pm_file_parsed *parsed, char *line, size_t len);
/*
 * Parses any line. Returns 1; 0 for a type that this version does not support; -EBADMSG,
 * with *syntax set if the line is not JSON; -ENOTSUP for a header of a newer version; or
 * -ENOMEM.
 */
int pm_file_parse_json(struct pm_file_parsed *parsed, const char *line, size_t len,
		       bool *syntax, struct pm_error *err);
void pm_file_parsed_release(struct pm_file_parsed *parsed);
