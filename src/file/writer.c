/* SPDX-License-Identifier: MIT */
#include "file-internal.h"

#include <string.h>

enum {
	BUFFER_BYTES = 256 << 10, /* from this size on, whole lines are passed on */
	BUFFER_CAP = 2 * BUFFER_BYTES, /* so that it does not grow for usual lines */
};

static void writer_free(struct pm_file_writer *writer)
{
	pm_str_release(&writer->buffer);
	pm_vec_release(&writer->frames);
	pm_index_release(&writer->frame_index);
	free(writer->stack_slots);
	pm_vec_release(&writer->stack_rows);
	free(writer->path);
	free(writer);
}

/* The name of an output for messages. @path NULL: the writer stores nothing. */
static const char *name_of_output(const char *path)
{
	if (!path)
		return "nowhere";
	if (strcmp(path, "-") == 0)
		return "standard output";
	return path;
}

int pm_file_writer_open(struct pm_file_writer **out, const char *path,
			struct pm_error *err)
{
	struct pm_file_writer *writer = calloc(1, sizeof(*writer));
	int ret;

	if (!writer)
		return pm_error_set(err, -ENOMEM, "out of memory");
	writer->output.fd = -1;
	writer->path = strdup(name_of_output(path));
	writer->buffer.data = malloc(BUFFER_CAP);
	if (!writer->path || !writer->buffer.data) {
		writer_free(writer);
		return pm_error_set(err, -ENOMEM, "out of memory");
	}
	writer->buffer.cap = BUFFER_CAP;
	if (path)
		ret = pm_file_output_open(&writer->output, path, err);
	else
		ret = 0;
	if (ret < 0) {
		writer_free(writer);
		return ret;
	}
	*out = writer;
	return 0;
}

int pm_file_writer_background(struct pm_file_writer *writer,
			      pm_file_wants_end_fn wants_end, void *user)
{
	if (writer->output.fd < 0)
		return 0;
	return pm_file_output_background(&writer->output, wants_end, user);
}

void pm_file_writer_tee(struct pm_file_writer *writer, pm_file_tee_fn tee, void *user)
{
	writer->tee = tee;
	writer->tee_user = user;
}

int pm_file_writer_ready(const struct pm_file_writer *writer)
{
	if (writer->output.failed != 0)
		return writer->output.failed;
	if (writer->header && !writer->footer)
		return 0;
	return -EINVAL;
}

static int hand_on(struct pm_file_writer *writer)
{
	int ret = pm_file_output_write(&writer->output, writer->buffer.data,
				       writer->buffer.len);

	writer->buffer.len = 0;
	return ret;
}

int pm_file_line_end(struct pm_file_writer *writer, size_t start)
{
	struct pm_str *buffer = &writer->buffer;

	if (buffer->len - start > PM_FILE_LINE_MAX) {
		buffer->len = start;
		return -EMSGSIZE;
	}
	pm_str_putc(buffer, '\n');
	if (buffer->failed) {
		/* Later lines may refer to the id of this one: the file ends here. */
		buffer->len = start;
		buffer->failed = false;
		hand_on(writer);
		if (writer->output.failed == 0)
			writer->output.failed = -ENOMEM;
		return writer->output.failed;
	}
	if (buffer->len >= BUFFER_BYTES)
		return hand_on(writer);
	return 0;
}

int pm_file_tell(struct pm_file_writer *writer, enum pm_file_type type,
		 const void *record, size_t len)
{
	struct pm_file_record told = { .type = type };

	if (!writer->tee)
		return 0;
	memcpy(&told.header, record, len);
	return writer->tee(writer->tee_user, &told);
}

int pm_file_record_end(struct pm_file_writer *writer, size_t start,
		       enum pm_file_type type, const void *record, size_t len)
{
	int ret = pm_file_line_end(writer, start);

	if (ret < 0)
		return ret;
	return pm_file_tell(writer, type, record, len);
}

int pm_file_writer_flush(struct pm_file_writer *writer)
{
	if (writer->output.failed != 0)
		return writer->output.failed;
	pm_file_write_run(writer);
	hand_on(writer);
	return pm_file_output_flush(&writer->output);
}

int pm_file_writer_append(struct pm_file_writer *writer, const char *lines, size_t len)
{
	int ret = pm_file_writer_ready(writer);

	if (ret < 0)
		return ret;
	if (len == 0)
		return 0;
	/* pm_file_line_end() adds the last newline. */
	pm_str_append(&writer->buffer, lines, len - 1);
	return pm_file_line_end(writer, writer->buffer.len - (len - 1));
}

void pm_file_writer_redirect(struct pm_file_writer *writer, int fd)
{
	writer->output = (struct pm_file_output){ .fd = fd };
	writer->buffer.len = 0;
	writer->run.len = 0;
	writer->tee = NULL;
}

int pm_file_writer_sync(struct pm_file_writer *writer)
{
	int ret = pm_file_writer_flush(writer);

	if (ret < 0)
		return ret;
	return pm_file_output_settle(&writer->output);
}

uint64_t pm_file_writer_bytes(const struct pm_file_writer *writer)
{
	return writer->output.bytes;
}

static void explain_write_failure(struct pm_error *err, int code, const char *path)
{
	pm_error_set(err, code, "could not be written to its end: %s", strerror(-code));
	if (code == -EPIPE)
		pm_error_set(err, code, "the program that reads this pipe has ended");
	if (code == -ENOSPC || code == -EDQUOT)
		pm_error_fix(err, "pmrec -o /another/disk/samples.json.zst");
	if (code == -ETIMEDOUT)
		pm_error_set(err, code,
			     "could not be written to its end: nobody took more bytes");
	if (code == -EFBIG)
		pm_error_fix(err, "ulimit -f unlimited");
	pm_error_where(err, path, -1);
}

int pm_file_writer_publish(struct pm_file_writer *writer)
{
	int ret = pm_file_writer_flush(writer);

	if (ret == 0)
		pm_file_output_publish(&writer->output);
	return ret;
}

int pm_file_writer_settle(struct pm_file_writer *writer)
{
	int ret = pm_file_writer_flush(writer);
	int settled = pm_file_output_settle(&writer->output);

	if (ret == 0)
		ret = settled;
	/* A file that cannot be published is kept, whatever else fails. */
	if (!writer->output.partial || writer->output.unpublished < 0)
		return ret;
	if (ret < 0) {
		pm_file_output_discard(&writer->output);
		return ret;
	}
	/* The first sample publishes a file at once; this file therefore has none. */
	if (pm_file_partial_replaces(writer->output.path))
		return 0;
	pm_file_output_publish(&writer->output);
	return pm_file_output_settle(&writer->output);
}

const char *pm_file_writer_place(const struct pm_file_writer *writer)
{
	if (writer->output.partial)
		return writer->output.partial;
	return writer->path;
}

void pm_file_writer_stay_beside(struct pm_file_writer *writer)
{
	writer->output.beside = true;
}

bool pm_file_writer_kept_old(const struct pm_file_writer *writer)
{
	return writer->output.kept_old;
}

void pm_file_writer_discard(struct pm_file_writer *writer)
{
	if (!writer)
		return;
	pm_file_output_discard(&writer->output);
	pm_file_writer_close(writer, NULL);
}

int pm_file_writer_close(struct pm_file_writer *writer, struct pm_error *err)
{
	int ret, unpublished;

	if (!writer)
		return 0;
	pm_file_writer_settle(writer);
	unpublished = writer->output.unpublished;
	if (unpublished < 0)
		pm_file_output_explain_unpublished(&writer->output, err);
	ret = pm_file_output_close(&writer->output);
	/* Where the file is matters more than why it ends early. */
	if (ret < 0 && unpublished == 0)
		explain_write_failure(err, ret, writer->path);
	writer_free(writer);
	if (ret < 0)
		return ret;
	return unpublished;
}
