/* SPDX-License-Identifier: MIT */
/*
 * Reads lines in order: a parser takes each apart, and then it is checked against earlier
 * lines. Only counts of earlier lines are kept, so that memory does not grow with the
 * file.
 */
#include "file-internal.h"

#include <string.h>
#include <sys/stat.h>

enum {
	BUFFER_BYTES = 256 << 10, /* at first; grows to hold the longest line */
};

struct pm_file_reader {
	struct pm_file_source source;
	char *name; /* of the source, for messages */
	char *buffer;
	size_t cap, begin, end; /* unread: [begin, end) */
	/* The number of bytes from `begin` on that belong to an unfinished line and have
	 * no newline. */
	size_t looked;
	uint64_t line;
	struct pm_file_parsed parsed;
	size_t run_left; /* nodes of the current stack line that have not been returned
	                  * yet */
	uint32_t events, modules, frames, stacks; /* number of definitions so far */
	bool header_waits; /* was parsed, but not yet returned */
	bool footer, ended;
	struct pm_error failed; /* sticky */
};

/* ---- lines --------------------------------------------------------------------------- */

static int reader_make_room(struct pm_file_reader *reader, struct pm_error *err)
{
	char *grown;
	size_t cap;

	if (reader->begin > 0) {
		reader->end -= reader->begin;
		memmove(reader->buffer, reader->buffer + reader->begin, reader->end);
		reader->begin = 0;
	}
	if (reader->end < reader->cap)
		return 0;
	if (reader->end > PM_FILE_LINE_MAX)
		return pm_error_set(err, -EBADMSG, "the line is longer than %d MiB",
				    PM_FILE_LINE_MAX >> 20);
	cap = reader->cap * 2;
	if (cap > PM_FILE_LINE_MAX + 1)
		cap = PM_FILE_LINE_MAX + 1; /* with the newline */
	grown = realloc(reader->buffer, cap);
	if (!grown)
		return pm_error_set(err, -ENOMEM, "out of memory");
	reader->buffer = grown;
	reader->cap = cap;
	return 0;
}

/* Returns the next line, without its newline. The result is 1, 0 at the end, or a
 * negative errno. Sets @whole to false if the file ends before the newline. */
static int next_line(struct pm_file_reader *reader, char **out, size_t *len, bool *whole,
		     struct pm_error *err)
{
	size_t looked = reader->looked;

	reader->looked = 0;
	reader->line++;
	for (;;) {
		char *first = reader->buffer + reader->begin;
		size_t have = reader->end - reader->begin;
		char *newline = memchr(first + looked, '\n', have - looked);
		size_t got;
		int ret;

		*whole = newline != NULL;
		if (newline) {
			*out = first;
			*len = (size_t)(newline - first);
			reader->begin += *len + 1;
			return 1;
		}
		looked = have;
		ret = reader_make_room(reader, err);
		if (ret < 0)
			return ret;
		ret = pm_file_source_read(&reader->source, reader->buffer + reader->end,
					  reader->cap - reader->end, &got, err);
		if (ret == -EAGAIN)
			reader->looked = looked;
		if (ret < 0)
			return ret;
		if (ret == 0) {
			*out = reader->buffer;
			*len = have;
			reader->begin = reader->end;
			return have > 0;
		}
		reader->end += got;
	}
}

/* ---- checks -------------------------------------------------------------------------- */

static int report_undefined_id(struct pm_error *err, const char *what, uint32_t got,
			       uint32_t count, const char *things)
{
	return pm_error_set(err, -EBADMSG, "%s: %u is not defined yet (%u %s are)", what,
			    got, count, things);
}

static int check_next_id(const char *what, uint32_t id, uint32_t expected,
			 struct pm_error *err)
{
	if (id == expected)
		return 0;
	return pm_error_set(err, -EBADMSG, "%s.id: expected %u, the next one, not %u",
			    what, expected, id);
}

static int check_stack(struct pm_file_reader *reader, struct pm_error *err)
{
	const struct pm_file_stack *stack = &reader->parsed.record.stack;
	size_t len = reader->parsed.run.len;
	int ret = check_next_id("stack", stack->id, reader->stacks, err);

	if (ret < 0)
		return ret;
	if (stack->parent != PM_FILE_NONE && stack->parent >= reader->stacks)
		return report_undefined_id(err, "stack.parent", stack->parent,
					   reader->stacks, "stacks");
	for (size_t i = 0; i < len; i++)
		if (reader->parsed.run.data[i] >= reader->frames)
			return report_undefined_id(err, "stack.frames",
						   reader->parsed.run.data[i],
						   reader->frames, "frames");
	if (len >= PM_FILE_NONE - reader->stacks)
		return pm_error_set(err, -EBADMSG, "stack.id: too many stacks");
	reader->stacks += (uint32_t)len;
	reader->run_left = len;
	return 0;
}

static int check_frame(struct pm_file_reader *reader, struct pm_error *err)
{
	const struct pm_file_frame *frame = &reader->parsed.record.frame;
	int ret = check_next_id("frame", frame->id, reader->frames, err);

	if (ret < 0)
		return ret;
	if (frame->module != PM_FILE_NONE && frame->module >= reader->modules)
		return report_undefined_id(err, "frame.module", frame->module,
					   reader->modules, "modules");
	reader->frames++;
	return 0;
}

static int check_sample(struct pm_file_reader *reader, struct pm_error *err)
{
	const struct pm_file_sample *sample = &reader->parsed.record.sample;

	if (sample->event >= reader->events)
		return report_undefined_id(err, "sample.event", sample->event,
					   reader->events, "events");
	if (sample->stack != PM_FILE_NONE && sample->stack >= reader->stacks)
		return report_undefined_id(err, "sample.stack", sample->stack,
					   reader->stacks, "stacks");
	for (size_t i = 0; i < sample->counts_len; i++)
		if (sample->counts[i].event >= reader->events)
			return report_undefined_id(err, "sample.counts",
						   sample->counts[i].event,
						   reader->events, "events");
	for (size_t i = 0; i < sample->branches_len; i++) {
		const struct pm_file_branch *branch = &sample->branches[i];
		uint32_t last = PM_MAX(branch->from, branch->to);

		if (last >= reader->frames)
			return report_undefined_id(err, "sample.branches", last,
						   reader->frames, "frames");
	}
	return 0;
}

/* Checks whether the current record is consistent with earlier ones. */
static int check_record_order(struct pm_file_reader *reader, struct pm_error *err)
{
	const struct pm_file_record *record = &reader->parsed.record;
	int ret;

	switch (record->type) {
	case PM_FILE_HEADER:
		return pm_error_set(err, -EBADMSG, "a second header");
	case PM_FILE_MODULE:
		ret = check_next_id("module", record->module.id, reader->modules, err);
		if (ret == 0)
			reader->modules++;
		return ret;
	case PM_FILE_FRAME:
		return check_frame(reader, err);
	case PM_FILE_STACK:
		return check_stack(reader, err);
	case PM_FILE_SAMPLE:
		return check_sample(reader, err);
	case PM_FILE_SYMBOL:
		if (record->symbol.frame >= reader->frames)
			return report_undefined_id(err, "symbol.frame",
						   record->symbol.frame, reader->frames,
						   "frames");
		return 0;
	case PM_FILE_FOOTER:
		if (record->footer.events_len > reader->events)
			return pm_error_set(err, -EBADMSG,
					    "footer.events: more than the header has");
		reader->footer = true;
		return 0;
	case PM_FILE_THREAD:
	case PM_FILE_LOST:
	case PM_FILE_NOTE:
	case PM_FILE_TITLE:
		return 0;
	}
	return 0;
}

/* Reads lines until one has a known type; skips the others. Returns 1, 0 at the end, or a
 * negative errno. @err must not be NULL, and stays empty unless the function fails. */
static int next_record(struct pm_file_reader *reader, struct pm_error *err)
{
	for (;;) {
		bool whole, syntax;
		size_t len;
		char *line;
		int ret = next_line(reader, &line, &len, &whole, err);

		if (ret <= 0)
			return ret;
		if (len == 0)
			continue;
		if (reader->footer)
			return pm_error_set(err, -EBADMSG,
					    "a line after the footer, which is the last");
		if (!pm_file_parse_fast(&reader->parsed, line, len)) {
			ret = pm_file_parse_json(&reader->parsed, line, len, &syntax,
						 err);
			if (ret == 0)
				continue;
			if (ret < 0 && syntax && !whole) {
				/* A recorder that was killed leaves an unfinished line,
				 * which is not a failure. */
				*err = (struct pm_error){ 0 };
				return 0;
			}
			if (ret < 0)
				return ret;
		}
		ret = check_record_order(reader, err);
		if (ret < 0)
			return ret;
		return 1;
	}
}

/* ---- opening ------------------------------------------------------------------------- */

static uint32_t owner_of(int fd)
{
	struct stat st;

	if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
		return st.st_uid;
	return PM_FILE_NONE;
}

static int read_header(struct pm_file_reader *reader, struct pm_error *err)
{
	bool whole, syntax;
	size_t len;
	char *line;
	int ret = next_line(reader, &line, &len, &whole, err);

	if (ret < 0)
		return ret;
	if (ret == 0)
		return pm_error_set(err, -ENODATA,
				    "the file ends before its first line: nothing was "
				    "recorded");
	ret = pm_file_parse_json(&reader->parsed, line, len, &syntax, err);
	if (ret < 0 && syntax && !whole && len > 0 && line[0] == '{')
		return pm_error_set(err, -ENODATA,
				    "the file ends within its first line: nothing was "
				    "recorded");
	if (ret == 0 || (ret < 0 && syntax) ||
	    (ret == 1 && reader->parsed.record.type != PM_FILE_HEADER))
		return pm_error_set(err, -EBADMSG,
				    "this is no file of pmrec: its first line is no "
				    "header");
	if (ret < 0)
		return ret;
	reader->parsed.record.header.owner = owner_of(reader->source.fd);
	reader->events = (uint32_t)reader->parsed.record.header.events_len;
	reader->header_waits = true;
	return 0;
}

/* Takes ownership of @source. */
static int reader_new(struct pm_file_reader **out, struct pm_file_source *source,
		      const char *name, struct pm_error *err)
{
	struct pm_file_reader *reader = calloc(1, sizeof(*reader));
	int ret = -ENOMEM;

	if (!reader) {
		pm_file_source_release(source);
		return pm_error_set(err, -ENOMEM, "out of memory");
	}
	reader->source = *source;
	reader->name = strdup(name);
	reader->buffer = malloc(BUFFER_BYTES);
	reader->cap = BUFFER_BYTES;
	if (!reader->name || !reader->buffer)
		pm_error_set(err, -ENOMEM, "out of memory");
	else
		ret = read_header(reader, err);
	if (ret < 0) {
		pm_file_reader_free(reader);
		return ret;
	}
	*out = reader;
	return 0;
}

int pm_file_reader_open(struct pm_file_reader **out, const char *path,
			struct pm_error *err)
{
	const char *name = strcmp(path, "-") == 0 ? "standard input" : path;
	struct pm_file_source source;
	int ret = pm_file_source_open(&source, path, err);

	if (ret == 0)
		ret = reader_new(out, &source, name, err);
	if (ret < 0)
		pm_error_where(err, name, -1);
	return ret;
}

int pm_file_reader_open_memory(struct pm_file_reader **out, const void *data, size_t len,
			       struct pm_error *err)
{
	struct pm_file_source source;
	int ret = pm_file_source_open_memory(&source, data, len, err);

	if (ret < 0)
		return ret;
	return reader_new(out, &source, "memory", err);
}

void pm_file_reader_free(struct pm_file_reader *reader)
{
	if (!reader)
		return;
	pm_file_source_release(&reader->source);
	pm_file_parsed_release(&reader->parsed);
	free(reader->buffer);
	free(reader->name);
	free(reader);
}

/* ---- results ------------------------------------------------------------------------- */

/* Returns the next node of the current stack line. */
static void give_stack(struct pm_file_reader *reader, struct pm_file_record *out)
{
	const struct pm_file_stack *first = &reader->parsed.record.stack;
	uint32_t at = (uint32_t)(reader->parsed.run.len - reader->run_left--);

	out->type = PM_FILE_STACK;
	out->line = reader->line;
	out->stack = (struct pm_file_stack){
		.id = first->id + at,
		.parent = at == 0 ? first->parent : first->id + at - 1,
		.frame = reader->parsed.run.data[at],
	};
}

int pm_file_reader_next(struct pm_file_reader *reader, struct pm_file_record *out,
			struct pm_error *err)
{
	int ret;

	if (reader->failed.code != 0) {
		if (err)
			*err = reader->failed;
		return reader->failed.code;
	}
	if (!reader->header_waits) {
		if (reader->run_left > 0) {
			give_stack(reader, out);
			return 1;
		}
		if (reader->ended)
			return 0;
		ret = next_record(reader, &reader->failed);
		if (ret == -EAGAIN && reader->source.follow) {
			/* The line is read again from its start when more of it is
			 * available. */
			reader->failed = (struct pm_error){ 0 };
			reader->line--;
			return ret;
		}
		if (ret < 0) {
			pm_error_where(&reader->failed, reader->name,
				       (int64_t)reader->line);
			if (err)
				*err = reader->failed;
			return ret;
		}
		if (ret == 0) {
			reader->ended = true;
			return 0;
		}
		if (reader->parsed.record.type == PM_FILE_STACK) {
			give_stack(reader, out);
			return 1;
		}
	}
	reader->header_waits = false;
	*out = reader->parsed.record;
	out->line = reader->line;
	return 1;
}

void pm_file_reader_follow(struct pm_file_reader *reader, bool on)
{
	reader->source.follow = on;
}

int pm_file_reader_fd(const struct pm_file_reader *reader)
{
	return reader->source.fd;
}

bool pm_file_reader_cut(const struct pm_file_reader *reader)
{
	return reader->ended && !reader->footer;
}
