/* SPDX-License-Identifier: MIT */
/*
 * Writes corpora as a sequence of records. This works while samples arrive, and into a
 * pipe. If the writer is killed, everything that it has written so far can be read.
 */
#include "corpus-internal.h"

#include <string.h>

enum {
	BUFFER_BYTES = 1 << 20,
};

struct pm_corpus_writer {
	struct pm_file_output output;
	char *path;
	struct pm_corpus_counts counts;
	size_t len;
	uint8_t buffer[BUFFER_BYTES];
};

static void corpus_flush_buffer(struct pm_corpus_writer *writer)
{
	pm_file_output_write(&writer->output, (const char *)writer->buffer, writer->len);
	writer->len = 0;
	/* As with a recording, the first sample publishes the file. */
	if (writer->counts.samples > 0)
		pm_file_output_publish(&writer->output);
}

/* Errors are stored in writer->output. */
static void corpus_put_bytes(struct pm_corpus_writer *writer, const void *data,
			     size_t len)
{
	if (len == 0)
		return;
	if (len > BUFFER_BYTES - writer->len)
		corpus_flush_buffer(writer);
	if (len > BUFFER_BYTES) {
		pm_file_output_write(&writer->output, data, len);
		return;
	}
	memcpy(writer->buffer + writer->len, data, len);
	writer->len += len;
}

static void put_padded(struct pm_corpus_writer *writer, const void *data, size_t len)
{
	static const uint8_t zeros[8];

	corpus_put_bytes(writer, data, len);
	corpus_put_bytes(writer, zeros, (size_t)(pm_corpus_pad(len) - len));
}

static void put_u32(struct pm_corpus_writer *writer, uint32_t value)
{
	corpus_put_bytes(writer, &value, sizeof(value));
}

static void corpus_put_u64(struct pm_corpus_writer *writer, uint64_t value)
{
	corpus_put_bytes(writer, &value, sizeof(value));
}

static void corpus_put_head(struct pm_corpus_writer *writer,
			    enum pm_corpus_wire_type type, uint64_t body_bytes)
{
	put_u32(writer, (uint32_t)type);
	put_u32(writer, 0);
	corpus_put_u64(writer, PM_CORPUS_RECORD_HEAD_BYTES + body_bytes);
}

int pm_corpus_writer_open(struct pm_corpus_writer **out, const char *path,
			  const struct pm_corpus_header *header, struct pm_error *err)
{
	static const uint8_t zeros[PM_CORPUS_HEADER_BYTES];
	struct pm_corpus_writer *writer = malloc(sizeof(*writer));
	int ret;

	if (!writer)
		return pm_error_set(err, -ENOMEM, "out of memory");
	memset(writer, 0, offsetof(struct pm_corpus_writer, buffer));
	writer->path = strdup(path);
	if (writer->path)
		ret = pm_file_output_open(&writer->output, path, err);
	else
		ret = pm_error_set(err, -ENOMEM, "out of memory");
	if (ret < 0) {
		free(writer->path);
		free(writer);
		return ret;
	}
	corpus_put_bytes(writer, PM_CORPUS_MAGIC, PM_CORPUS_MAGIC_BYTES);
	put_u32(writer, PM_CORPUS_HEADER_BYTES);
	put_u32(writer, header->stack_bytes);
	corpus_put_u64(writer, header->created_s);
	corpus_put_bytes(writer, zeros, PM_CORPUS_HEADER_BYTES - writer->len);
	*out = writer;
	return 0;
}

int pm_corpus_writer_background(struct pm_corpus_writer *writer,
				pm_file_wants_end_fn wants_end, void *user)
{
	return pm_file_output_background(&writer->output, wants_end, user);
}

int pm_corpus_write_module(struct pm_corpus_writer *writer,
			   const struct pm_corpus_module *module, uint32_t *ret_id)
{
	const struct pm_corpus_part *parts[] = { &module->eh_frame_hdr, &module->eh_frame,
						 &module->debug_frame };
	size_t path_len = strlen(module->path);
	uint64_t bytes = 104 + pm_corpus_pad(path_len + 1) +
			 module->loads_len * PM_CORPUS_LOAD_BYTES;
	uint8_t build_id[PM_CORPUS_BUILD_ID_MAX] = { 0 };

	if (pm_corpus_check_module(module) || writer->counts.modules >= UINT32_MAX)
		return -EINVAL;
	memcpy(build_id, module->build_id, module->build_id_len);
	for (size_t i = 0; i < PM_ARRAY_LEN(parts); i++)
		bytes += pm_corpus_pad(parts[i]->len);
	corpus_put_head(writer, PM_CORPUS_WIRE_MODULE, bytes);
	put_u32(writer, module->machine);
	put_u32(writer, module->flags);
	corpus_put_u64(writer, module->entry);
	for (size_t i = 0; i < PM_ARRAY_LEN(parts); i++) {
		corpus_put_u64(writer, parts[i]->svma);
		corpus_put_u64(writer, parts[i]->len);
	}
	put_u32(writer, (uint32_t)module->loads_len);
	put_u32(writer, (uint32_t)path_len);
	put_u32(writer, module->build_id_len);
	put_u32(writer, 0);
	corpus_put_bytes(writer, build_id, sizeof(build_id));
	corpus_put_bytes(writer, module->loads, module->loads_len * PM_CORPUS_LOAD_BYTES);
	put_padded(writer, module->path, path_len + 1);
	for (size_t i = 0; i < PM_ARRAY_LEN(parts); i++)
		put_padded(writer, parts[i]->data, parts[i]->len);
	if (ret_id)
		*ret_id = (uint32_t)writer->counts.modules;
	writer->counts.modules++;
	return writer->output.failed;
}

int pm_corpus_write_space(struct pm_corpus_writer *writer,
			  const struct pm_corpus_space *space, uint32_t *ret_id)
{
	if (pm_corpus_check_space(space, &writer->counts) ||
	    writer->counts.spaces >= UINT32_MAX)
		return -EINVAL;
	corpus_put_head(writer, PM_CORPUS_WIRE_SPACE,
			8 + space->maps_len * PM_CORPUS_MAP_BYTES);
	put_u32(writer, space->pid);
	put_u32(writer, (uint32_t)space->maps_len);
	corpus_put_bytes(writer, space->maps, space->maps_len * PM_CORPUS_MAP_BYTES);
	if (ret_id)
		*ret_id = (uint32_t)writer->counts.spaces;
	writer->counts.spaces++;
	return writer->output.failed;
}

int pm_corpus_write_code(struct pm_corpus_writer *writer,
			 const struct pm_corpus_code *code)
{
	if (pm_corpus_check_code(code, &writer->counts))
		return -EINVAL;
	corpus_put_head(writer, PM_CORPUS_WIRE_CODE, 16 + pm_corpus_pad(code->part.len));
	put_u32(writer, code->module);
	put_u32(writer, (uint32_t)code->part.len);
	corpus_put_u64(writer, code->part.svma);
	put_padded(writer, code->part.data, code->part.len);
	return writer->output.failed;
}

int pm_corpus_write_sample(struct pm_corpus_writer *writer,
			   const struct pm_corpus_sample *sample)
{
	uint32_t regs = sample->known ? 64 - (uint32_t)__builtin_clzll(sample->known) : 0;

	if (pm_corpus_check_sample(sample, &writer->counts))
		return -EINVAL;
	corpus_put_head(writer, PM_CORPUS_WIRE_SAMPLE,
			64 + regs * 8 + pm_corpus_pad(sample->stack_len));
	put_u32(writer, sample->space);
	put_u32(writer, sample->pid);
	put_u32(writer, sample->tid);
	put_u32(writer, sample->machine);
	corpus_put_u64(writer, sample->index);
	corpus_put_u64(writer, sample->time);
	corpus_put_u64(writer, sample->ip);
	corpus_put_u64(writer, sample->known);
	corpus_put_u64(writer, sample->stack_start);
	put_u32(writer, regs);
	put_u32(writer, (uint32_t)sample->stack_len);
	corpus_put_bytes(writer, sample->regs, regs * 8);
	put_padded(writer, sample->stack, sample->stack_len);
	writer->counts.samples++;
	return writer->output.failed;
}

uint64_t pm_corpus_writer_bytes(const struct pm_corpus_writer *writer)
{
	return writer->output.bytes;
}

int pm_corpus_writer_close(struct pm_corpus_writer *writer, bool complete,
			   struct pm_error *err)
{
	int ret, unpublished;

	if (!writer)
		return 0;
	if (complete) {
		corpus_put_head(writer, PM_CORPUS_WIRE_END, sizeof(writer->counts));
		corpus_put_bytes(writer, &writer->counts, sizeof(writer->counts));
	}
	corpus_flush_buffer(writer);
	/* Like a recording, a corpus without samples does not replace another file. */
	if (writer->counts.samples > 0 ||
	    (complete && !pm_file_partial_replaces(writer->path)))
		pm_file_output_publish(&writer->output);
	else
		pm_file_output_discard(&writer->output);
	pm_file_output_settle(&writer->output);
	unpublished = writer->output.unpublished;
	if (unpublished < 0)
		pm_file_output_explain_unpublished(&writer->output, err);
	ret = pm_file_output_close(&writer->output);
	if (ret < 0) {
		pm_error_set(err, ret, "cannot be written: %s", strerror(-ret));
		pm_error_where(err, writer->path, -1);
	}
	free(writer->path);
	free(writer);
	if (ret < 0)
		return ret;
	return unpublished;
}
