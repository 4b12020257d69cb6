/* SPDX-License-Identifier: MIT */
/*
 * The recorded file: JSON Lines, specified in docs/format.md. There is one `struct
 * pm_file_*` for each line type. The writer interns frames and stacks, so ids are dense
 * and defined before use. The writer borrows strings in records for the call; strings
 * from the reader are valid until its next call.
 */
#pragma once

#include "pm/base.h"

enum {
	PM_FILE_VERSION = 1,
};
/* No module or no stack; or a pid, tid or cpu that the kernel did not report. null in the
 * file. */
#define PM_FILE_NONE UINT32_MAX

enum pm_file_type {
	PM_FILE_HEADER,
	PM_FILE_MODULE,
	PM_FILE_THREAD,
	PM_FILE_FRAME,
	PM_FILE_STACK,
	PM_FILE_SAMPLE,
	PM_FILE_SYMBOL,
	PM_FILE_LOST,
	PM_FILE_NOTE,
	PM_FILE_TITLE,
	PM_FILE_FOOTER,
};

struct pm_file_event {
	uint32_t id; /* dense from 0: its index */
	const char *name; /* canonical name of the actual event: "cpu-clock" */
	const char *requested, *actual; /* with modifiers: "cycles:u", "cpu-clock:u" */
	const char *modifiers;
	const char *unit; /* of a period: "ns" for clocks, else "events" */
	bool by_frequency;
	uint64_t rate; /* Hz ("freq" in the file) or "period" */
	const char *filter; /* of a tracepoint; NULL: none */
	/* Id of its group's leader, which precedes it; its own id: no group. */
	uint32_t leader;
};

struct pm_file_header {
	uint32_t version;
	const char *pmrec; /* version of the writer */
	const char *created; /* RFC 3339, UTC */
	const char *clock; /* "monotonic" */
	struct {
		const char *hostname, *kernel, *arch, *cpu_model,
			*virt; /* NULL: unknown */
		const char *boot_id; /* identifies the boot; NULL: unknown */
		uint32_t cpus; /* 0: unknown */
	} host;
	/* The user of the command or, if all recorded processes had the same user, that
	 * user. */
	bool uid_known;
	uint32_t uid;
	/* Set only by the reader, and not stored in the file: the owner of the regular
	 * file; PM_FILE_NONE: read from a pipe or from memory. */
	uint32_t owner;
	const char *const *command; /* command_len strings; none: `target` was recorded */
	size_t command_len;
	const char *target; /* "-p 123", "-a", for people; NULL: the command */
	const struct pm_file_event *events;
	size_t events_len;
	struct {
		const char *call_graph; /* dwarf, fp, lbr, none */
		uint32_t stack_bytes; /* 0 unless dwarf */
		uint64_t ring_bytes; /* of one ring */
	} options;
};

struct pm_file_module {
	uint32_t id;
	const char *path;
	const char *build_id; /* hex, NULL: unknown */
	const char *kind; /* file, kernel, vdso, jit, anon */
};

struct pm_file_thread {
	uint32_t pid, tid; /* PM_FILE_NONE: unknown, as in samples */
	const char *comm;
	uint64_t time;
};

struct pm_file_frame {
	uint32_t id;
	uint32_t module; /* PM_FILE_NONE: in no module, then address is an avma */
	uint64_t address; /* svma, lookup address */
	const char *how;
};

struct pm_file_stack {
	uint32_t id;
	uint32_t parent; /* the caller's stack; PM_FILE_NONE at the root */
	uint32_t frame;
};

enum pm_file_field_kind {
	PM_FILE_FIELD_UNSIGNED,
	PM_FILE_FIELD_SIGNED,
	PM_FILE_FIELD_TEXT,
};

/* A field of a tracepoint or probe. The names in a sample are distinct. An unsigned
 * number above 2^63 - 1 is written as hexadecimal text and read as text. The reader uses
 * _SIGNED only for negative numbers. */
struct pm_file_field {
	const char *name;
	enum pm_file_field_kind kind;
	union {
		uint64_t number;
		int64_t negative_too;
		const char *text;
	};
};

/* The count of an event when a sample was taken. */
struct pm_file_event_count {
	uint32_t event;
	uint64_t count;
};

enum {
	/* From struct perf_branch_entry: its first four bits, then its type. */
	PM_FILE_BRANCH_MISPREDICTED = 1,
	PM_FILE_BRANCH_PREDICTED = 2, /* neither: unknown */
	PM_FILE_BRANCH_IN_TX = 4,
	PM_FILE_BRANCH_ABORT = 8,
	PM_FILE_BRANCH_TYPE_SHIFT = 4, /* PERF_BR_*, 0: unknown */
};

/* A branch that the CPU had taken. */
struct pm_file_branch {
	uint32_t from, to; /* frames */
	uint32_t flags; /* PM_FILE_BRANCH_* */
	uint32_t cycles; /* since the previous branch; PM_FILE_NONE: unknown */
};

struct pm_file_sample {
	uint64_t time; /* ns */
	uint32_t pid, tid, cpu; /* PM_FILE_NONE: unknown, e.g. of a task that has ended */
	uint32_t event;
	uint64_t period;
	uint32_t stack; /* id of the leaf's pm_file_stack; PM_FILE_NONE: no frames */
	const char *stop; /* NULL: complete to the root (key absent) */
	/* The fields that the event adds: usually few, at most some hundreds. */
	const struct pm_file_field *fields;
	size_t fields_len;
	const struct pm_file_event_count *counts; /* of its group (`S`) */
	size_t counts_len;
	const struct pm_file_branch *branches; /* newest first */
	size_t branches_len;
};

struct pm_file_function {
	const char *name; /* NULL: unknown */
	const char *file; /* NULL: unknown */
	uint32_t line; /* 0: unknown, key absent */
	uint64_t start; /* svma, only without a name; 0: unknown, key absent */
};

struct pm_file_symbol {
	uint32_t frame;
	const struct pm_file_function *functions; /* innermost first; len >= 1 */
	size_t functions_len;
};

struct pm_file_lost {
	uint64_t time;
	uint32_t cpu; /* PM_FILE_NONE: unknown */
	uint64_t count;
};

/* A warning to the user while recording, which readers of the report should see, too. */
struct pm_file_note {
	const char *text;
};

/* The command line of a process, once the process has replaced it by its own text. */
struct pm_file_title {
	uint32_t pid;
	const char *text; /* NULL: that text was removed */
	uint64_t time;
};

struct pm_file_count {
	const char *name; /* a stop reason, an event */
	uint64_t count;
};

struct pm_file_footer {
	uint64_t samples, lost, throttled;
	uint64_t truncated; /* stack copies that were too short, stitched or not */
	/* truncated stacks with frames from other samples or reads of the stack */
	uint64_t stitched;
	const struct pm_file_count
		*stops; /* by reason, "root" included, zeros left out */
	size_t stops_len;
	uint64_t duration_ns; /* wall time of the recording */
	uint64_t
		cpu_ns; /* user + system time of the target and its waited-for children */
	bool cpu_known, exited, signalled;
	uint32_t exit; /* code when exited, signal number when signalled */
	struct pm_file_footer_event {
		uint64_t samples, period, lost;
		bool lost_known; /* null in the file otherwise */
		bool counted_known; /* keys absent otherwise */
		/* The kernel's count; the part of it that belongs to other tasks. */
		uint64_t counted, others;
	} * events; /* by event id */
	size_t events_len;
	/* Evidence about clocks whose periods do not sum to `cpu_ns`, for finding the
	 * cause. It is only written; no reader of ours uses it. */
	const struct pm_file_clock_cpu {
		uint32_t event, cpu;
		uint64_t samples, period;
		uint64_t longer; /* gaps between samples that are longer than a period */
		/* ticks after a late one, and by how much it was late */
		uint64_t late, late_ns;
		uint64_t reader_runs, reader_ns;
	} * clock;
	size_t clock_len; /* 0: no such object in the file */
	bool stolen_known; /* null in the file otherwise */
	uint64_t stolen_ns, stolen_step_ns;
};

/* ---- kinds of files ------------------------------------------------------------------ */

enum pm_file_kind {
	PM_FILE_FOREIGN, /* none of the kinds below, or too short to be recognised */
	PM_FILE_RECORDING, /* from pmrec; see pm_file_reader_open() */
	PM_FILE_COUNTS, /* JSON, presumably from pmstat; see pm_stat_read() */
};

enum {
	PM_FILE_HEAD_BYTES = 256 << 10, /* enough to recognise every kind */
};

/* Recognises a file by its first bytes, compressed or not. */
enum pm_file_kind pm_file_kind(const void *head, size_t len);

/* ---- writing ------------------------------------------------------------------------- */

struct pm_file_writer;

/*
 * Opens @path for writing. "-" is stdout. A name that ends in ".zst" turns on
 * compression. Devices and pipes are written to directly. @err has the path and the
 * reason.
 *
 * Anything else becomes a new file of mode 0600. A file that is already at @path stays
 * there until the new one is worth keeping: the new file is created as PATH.partial and
 * renamed to @path when it has its first sample, or at the end. A regular file that is at
 * @path at that time is kept as PATH.old; a symbolic link is replaced, never followed. A
 * file without a sample does not replace another file: it stays PATH.partial. The same
 * holds for a file whose recorder is killed before the first sample.
 */
int pm_file_writer_open(struct pm_file_writer **out, const char *path,
			struct pm_error *err);

/* Whether the caller wants to end. If so, the writer does not wait for a file that
 * accepts no data. */
typedef bool (*pm_file_wants_end_fn)(void *user);
/*
 * From now on, a thread of the writer makes the system calls that write and rename. Then
 * a slow disk or reader does not stop the caller, as long as 8 MiB are enough. The calls
 * below report a failure of the thread late, but they report each one. If 8 MiB are not
 * enough, and in pm_file_writer_settle() and _close(), the caller waits, and calls
 * @wants_end ten times a second. If it returns true and nothing could be written for 1.5
 * s (30 s for a regular file), the file ends with -ETIMEDOUT. Returns 0, or a negative
 * errno if there is no thread, and the calls still write themselves.
 */
int pm_file_writer_background(struct pm_file_writer *writer,
			      pm_file_wants_end_fn wants_end, void *user);
/*
 * Checks that pm_file_writer_open(@path) would replace only recordings. Returns 0;
 * -EEXIST if the file at @path or at PATH.old is not empty and is neither a recording nor
 * a corpus; or another negative errno if one of them cannot be read, so that it may be
 * anything. @err has the text. @path NULL, for a writer that stores nothing: 0.
 */
int pm_file_check_replaceable(const char *path, struct pm_error *err);

struct pm_file_record;
/* Receives a record as a reader would return it; borrowed for the call. Returns 0 or
 * negative errno, which the writing function then returns. */
typedef int (*pm_file_tee_fn)(void *user, const struct pm_file_record *record);
/*
 * From now on, @tee receives each record that is written. A writer opened with @path NULL
 * stores nothing, and only serves its @tee.
 */
void pm_file_writer_tee(struct pm_file_writer *writer, pm_file_tee_fn tee, void *user);

/*
 * Each function writes one line into the buffer. The first failure of the output (disk
 * full, closed pipe) is kept: this and every later call return it. The program has to
 * ignore SIGPIPE and SIGXFSZ. Data that a reader would refuse is not written: -EINVAL for
 * ids that are undefined or not the next one, for texts that must not be NULL, and for
 * anything before the header or after the footer; -ERANGE for times and counts over
 * INT64_MAX; -EMSGSIZE for a line over 64 MiB. These three errors change nothing and are
 * not kept.
 */
int pm_file_write_header(struct pm_file_writer *writer,
			 const struct pm_file_header *header);
int pm_file_write_module(struct pm_file_writer *writer,
			 const struct pm_file_module *module);
int pm_file_write_thread(struct pm_file_writer *writer,
			 const struct pm_file_thread *thread);
int pm_file_write_sample(struct pm_file_writer *writer,
			 const struct pm_file_sample *sample);
int pm_file_write_symbol(struct pm_file_writer *writer,
			 const struct pm_file_symbol *symbol);
int pm_file_write_lost(struct pm_file_writer *writer, const struct pm_file_lost *lost);
int pm_file_write_note(struct pm_file_writer *writer, const struct pm_file_note *note);
int pm_file_write_title(struct pm_file_writer *writer, const struct pm_file_title *title);
int pm_file_write_footer(struct pm_file_writer *writer,
			 const struct pm_file_footer *footer);

/* Sets *out to the id of an equal frame (module, address, how), or of a new one, whose
 * line is written. @how must stay valid as long as the writer. Returns 0 or negative
 * errno. */
int pm_file_intern_frame(struct pm_file_writer *writer, uint32_t module, uint64_t address,
			 const char *how, uint32_t *out);
int pm_file_intern_stack(struct pm_file_writer *writer, uint32_t parent, uint32_t frame,
			 uint32_t *out);
/* Whether stack @id belongs to this generation (see below). */
bool pm_file_writer_has_stack(const struct pm_file_writer *writer, uint32_t id);
/* Returns the frame of such a stack, and in *parent the stack of its caller. */
uint32_t pm_file_writer_stack(const struct pm_file_writer *writer, uint32_t id,
			      uint32_t *parent);
/* Returns all frames of this generation, in order of their ids, for symbolising them.
 * They are valid until the next intern. */
const struct pm_file_frame *pm_file_writer_frames(const struct pm_file_writer *writer,
						  size_t *len);

/*
 * Generations: the writer remembers a limited number of frames and stacks, but the file
 * may have any number. When one of the tables is full, the caller starts a new generation
 * of it. Ids continue: a frame or stack that occurs again gets a new id. The functions
 * above know only this generation. Frames of earlier generations may still get names.
 */
enum {
	PM_FILE_STACKS_MAX = 1 << 22, /* of a generation: 160 MB */
	PM_FILE_FRAMES_MAX = 1 << 20, /* 48 MB */
	/* A table is full if it has fewer free entries than this: enough for a few
	 * samples. */
	PM_FILE_GENERATION_MARGIN = 1 << 14,
};
/* Returns the first id of this generation of frames. */
uint32_t pm_file_writer_first_frame(const struct pm_file_writer *writer);
bool pm_file_writer_stacks_full(const struct pm_file_writer *writer);
bool pm_file_writer_frames_full(const struct pm_file_writer *writer);
int pm_file_writer_new_stacks(struct pm_file_writer *writer);
/* Also starts a new generation of stacks. */
int pm_file_writer_new_frames(struct pm_file_writer *writer);
/* Returns the memory of the tables, in bytes. */
size_t pm_file_writer_table_bytes(const struct pm_file_writer *writer);
/* Appends whole lines that a copy of this writer has written (see
 * pm_file_writer_redirect()). */
int pm_file_writer_append(struct pm_file_writer *writer, const char *lines, size_t len);
/* In a child process: from now on, this copy of the writer writes to @fd, as plain lines,
 * and nowhere else. The file belongs to the parent. */
void pm_file_writer_redirect(struct pm_file_writer *writer, int fd);

/* Hands everything written so far to the kernel, so that a kill loses only what follows.
 * In the background, hands it to the thread that writes. */
int pm_file_writer_flush(struct pm_file_writer *writer);
/* Like pm_file_writer_flush(), and waits until the thread of pm_file_writer_background()
 * has written it. */
int pm_file_writer_sync(struct pm_file_writer *writer);
uint64_t pm_file_writer_bytes(const struct pm_file_writer *writer); /* as stored */
/* Flushes and renames the file to its path now; otherwise its first sample causes the
 * rename. */
int pm_file_writer_publish(struct pm_file_writer *writer);
/* Opens the file that is deleted when pm_file_writer_publish() gives a file the name
 * @path. As long as this descriptor is open, publishing does not wait until the file
 * system has freed that file, which takes seconds on a busy disk. Returns a negative
 * errno if there is no such file. */
int pm_file_open_replaced(const char *path);
/* Gives the file its final name, when no more lines follow: see pm_file_writer_open(). A
 * file that could not be written is removed. pm_file_writer_close() calls this if the
 * caller has not. */
int pm_file_writer_settle(struct pm_file_writer *writer);
/* Returns the current path of the file, valid until the next call. */
const char *pm_file_writer_place(const struct pm_file_writer *writer);
/* From now on, the writer does not rename the file to its path, which another file may
 * have: the caller renames it. */
void pm_file_writer_stay_beside(struct pm_file_writer *writer);
/* Whether the file that was at its path is now PATH.old. */
bool pm_file_writer_kept_old(const struct pm_file_writer *writer);
/* Flushes and closes. Returns 0 only if everything was written and the file has its final
 * path. A file that cannot be renamed is complete, but keeps its temporary name. Frees
 * the writer in every case. @err has the path and the reason. NULL is fine. */
int pm_file_writer_close(struct pm_file_writer *writer, struct pm_error *err);
/* Closes, and removes a file that has no sample. NULL is fine. */
void pm_file_writer_discard(struct pm_file_writer *writer);

/* The state of a recording for @path that has not been renamed to @path. */
enum pm_file_partial {
	PM_FILE_PARTIAL_NONE,
	PM_FILE_PARTIAL_GROWING, /* its recorder has it open */
	PM_FILE_PARTIAL_LEFT, /* its recorder was killed, or found no sample */
};
/* Returns that state, and sets *ret_name to the file's name, which the caller frees
 * (NULL: there is no such file). @ret_name may be NULL. */
enum pm_file_partial pm_file_partial_find(const char *path, char **ret_name);

/* ---- reading ------------------------------------------------------------------------- */

struct pm_file_record {
	enum pm_file_type type;
	uint64_t line; /* 1-based, for messages */
	union {
		struct pm_file_header header;
		struct pm_file_module module;
		struct pm_file_thread thread;
		struct pm_file_frame frame;
		struct pm_file_stack stack;
		struct pm_file_sample sample;
		struct pm_file_symbol symbol;
		struct pm_file_lost lost;
		struct pm_file_note note;
		struct pm_file_title title;
		struct pm_file_footer footer;
	};
};

struct pm_file_reader;

/* Opens @path ("-": stdin), plain or zstd (by its magic), and reads up to the header.
 * Returns -ENODATA if the file ends before that, -EBADMSG for any other start, -ENOTSUP
 * for a newer version, with a clear text in @err. */
int pm_file_reader_open(struct pm_file_reader **out, const char *path,
			struct pm_error *err);
/* Reads from memory (borrowed), for tests and fuzzers. */
int pm_file_reader_open_memory(struct pm_file_reader **out, const void *data, size_t len,
			       struct pm_error *err);
void pm_file_reader_free(struct pm_file_reader *reader);
/*
 * Reads the next record, the header first; unknown types are skipped. Returns 1; 0 at the
 * end; or -EBADMSG with the line number and what was expected. Ids are checked here:
 * dense, defined before use, events and modules known. A last line without its newline,
 * or a zstd stream that ends early, is not an error: a killed recorder leaves such a
 * file. See pm_file_reader_cut().
 */
int pm_file_reader_next(struct pm_file_reader *reader, struct pm_file_record *out,
			struct pm_error *err);
/*
 * With @on, for a file that still grows: at the end of the present content, within a line
 * or not, pm_file_reader_next() returns -EAGAIN instead of waiting, and can be called
 * again. The end of a pipe is still reported as the end. Without @on, so is the end of a
 * file.
 */
void pm_file_reader_follow(struct pm_file_reader *reader, bool on);
/* Returns the descriptor for poll(2) and fstat(2), borrowed; -1: it reads from memory. */
int pm_file_reader_fd(const struct pm_file_reader *reader);
/* To be called after the end: returns whether the footer was missing. */
bool pm_file_reader_cut(const struct pm_file_reader *reader);
