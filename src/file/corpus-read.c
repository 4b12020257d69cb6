/* SPDX-License-Identifier: MIT */
/*
 * Reads corpora from front to back, one record at a time: a file may be larger than
 * memory, compressed, or a pipe.
 */
#include "corpus-internal.h"

#include <string.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "corpora are little endian");
/* Arrays of these structs are copied as they are. */
_Static_assert(sizeof(struct pm_corpus_load) == PM_CORPUS_LOAD_BYTES, "layout");
_Static_assert(sizeof(struct pm_corpus_map) == PM_CORPUS_MAP_BYTES, "layout");

enum {
	/* Memory grows in steps, because a stated length is trusted only as far as bytes
	 * follow. */
	READ_STEP_BYTES = 1 << 20,
};

struct pm_corpus {
	struct pm_file_source source;
	char *path; /* for messages */
	struct pm_corpus_header header;
	uint64_t pos; /* decompressed bytes that have been read */
	struct pm_corpus_counts counts; /* of the records that have been returned */
	PM_VEC(uint8_t) record;
	PM_VEC(struct pm_corpus_load) loads;
	PM_VEC(struct pm_corpus_map) maps;
	bool ended, cut;
	int failed; /* sticky */
};

/* Makes all later reads fail, too. Returns @code. */
static int corpus_fail(struct pm_corpus *corpus, int code, const char *why,
		       struct pm_error *err)
{
	corpus->failed = pm_error_set(err, code, "%s", why);
	pm_error_where(err, corpus->path, (int64_t)corpus->pos);
	return code;
}

/* Reads up to @len bytes; fewer only at the end of the file. Returns 0 or negative
 * errno. */
static int corpus_read_bytes(struct pm_corpus *corpus, uint8_t *to, size_t len,
			     size_t *out, struct pm_error *err)
{
	size_t have = 0;

	while (have < len) {
		size_t got = 0;
		int more = pm_file_source_read(&corpus->source, (char *)to + have,
					       len - have, &got, err);

		if (more < 0) {
			pm_error_where(err, corpus->path, (int64_t)corpus->pos);
			corpus->failed = more;
			return more;
		}
		if (more == 0)
			break;
		have += got;
		corpus->pos += got;
	}
	*out = have;
	return 0;
}

enum corpus_end {
	CORPUS_END_COMPLETE,
	CORPUS_END_CUT /* the writer did not finish */
};

/* Returns 0, as there is no further record. */
static int corpus_end_here(struct pm_corpus *corpus, enum corpus_end end)
{
	corpus->ended = true;
	corpus->cut = end == CORPUS_END_CUT;
	return 0;
}

/* Appends the next @len bytes to `record`. Returns 1, 0 if the file ends before that, or
 * negative errno. */
static int corpus_fill_record(struct pm_corpus *corpus, uint64_t len,
			      struct pm_error *err)
{
	if (len > PM_CORPUS_RECORD_BYTES_MAX - corpus->record.len)
		return corpus_fail(corpus, -EBADMSG, "a record is too long", err);
	while (len > 0) {
		size_t step = PM_MIN(len, READ_STEP_BYTES);
		size_t got;
		int ret;

		if (pm_vec_reserve(&corpus->record, corpus->record.len + step) < 0)
			return corpus_fail(corpus, -ENOMEM, "out of memory", err);
		ret = corpus_read_bytes(corpus, corpus->record.data + corpus->record.len,
					step, &got, err);
		if (ret < 0)
			return ret;
		if (got < step)
			return corpus_end_here(corpus, CORPUS_END_CUT);
		corpus->record.len += step;
		len -= step;
	}
	return 1;
}

/* Skips to offset @to. Returns as corpus_fill_record() does. */
static int corpus_skip_to(struct pm_corpus *corpus, uint64_t to, struct pm_error *err)
{
	if (to < corpus->pos)
		return corpus_fail(corpus, -EBADMSG,
				   "its parts overlap or are out of order", err);
	while (corpus->pos < to) {
		uint64_t left = to - corpus->pos;
		int more;

		pm_vec_clear(&corpus->record);
		more = corpus_fill_record(corpus, PM_MIN(left, READ_STEP_BYTES), err);
		if (more <= 0)
			return more;
	}
	return 1;
}

/* ---- records ----------------------------------------------------------------------------- */

/* If bytes are missing, these functions set reader->failed. */

static void corpus_parse_loads(struct pm_corpus *corpus, struct pm_reader *reader,
			       uint64_t count, struct pm_corpus_module *out)
{
	const void *bytes;

	if (count > PM_CORPUS_LOADS_MAX ||
	    !(bytes = pm_reader_bytes(reader, count * PM_CORPUS_LOAD_BYTES)) ||
	    pm_vec_reserve(&corpus->loads, count) < 0) {
		reader->failed = reader->failed || count > 0;
		return;
	}
	if (count > 0)
		memcpy(corpus->loads.data, bytes, count * PM_CORPUS_LOAD_BYTES);
	out->loads = corpus->loads.data;
	out->loads_len = count;
}

static void corpus_parse_path(struct pm_reader *reader, uint32_t len,
			      struct pm_corpus_module *out)
{
	const char *path = pm_reader_bytes(reader, pm_corpus_pad((uint64_t)len + 1));

	if (path && path[len] == '\0')
		out->path = path;
	else
		reader->failed = true;
}

static void corpus_parse_part(struct pm_reader *reader, struct pm_corpus_part *part,
			      uint64_t len)
{
	/* A larger length could overflow when it is padded. */
	if (len > PM_CORPUS_RECORD_BYTES_MAX) {
		reader->failed = true;
		return;
	}
	part->data = pm_reader_bytes(reader, pm_corpus_pad(len));
	part->len = len;
}

static void corpus_parse_maps(struct pm_corpus *corpus, struct pm_reader *reader,
			      uint64_t count, struct pm_corpus_space *out)
{
	const void *bytes;

	if (count > PM_CORPUS_MAPS_MAX ||
	    !(bytes = pm_reader_bytes(reader, count * PM_CORPUS_MAP_BYTES)) ||
	    pm_vec_reserve(&corpus->maps, count) < 0) {
		reader->failed = reader->failed || count > 0;
		return;
	}
	if (count > 0)
		memcpy(corpus->maps.data, bytes, count * PM_CORPUS_MAP_BYTES);
	out->maps = corpus->maps.data;
	out->maps_len = count;
}

/* Checks and counts the parsed record. Returns 1 or negative errno. */
static int corpus_check_record(struct pm_corpus *corpus, const struct pm_reader *reader,
			       struct pm_corpus_record *record,
			       struct pm_corpus_record *out, struct pm_error *err)
{
	const char *wrong = NULL;

	if (reader->failed)
		return corpus_fail(corpus, -EBADMSG,
				   "a record is shorter than what it says", err);
	switch (record->type) {
	case PM_CORPUS_MODULE:
		wrong = pm_corpus_check_module(&record->module);
		corpus->counts.modules++;
		break;
	case PM_CORPUS_SPACE:
		wrong = pm_corpus_check_space(&record->space, &corpus->counts);
		corpus->counts.spaces++;
		break;
	case PM_CORPUS_CODE:
		wrong = pm_corpus_check_code(&record->code, &corpus->counts);
		break;
	case PM_CORPUS_SAMPLE:
		wrong = pm_corpus_check_sample(&record->sample, &corpus->counts);
		corpus->counts.samples++;
		break;
	}
	if (wrong)
		return corpus_fail(corpus, -EBADMSG, wrong, err);
	*out = *record;
	return 1;
}

static void corpus_parse_module(struct pm_corpus *corpus, struct pm_reader *reader,
				struct pm_corpus_module *out)
{
	struct pm_corpus_part *parts[] = { &out->eh_frame_hdr, &out->eh_frame,
					   &out->debug_frame };
	uint64_t lens[PM_ARRAY_LEN(parts)];
	uint32_t loads, path_len;
	const void *build_id;

	*out = (struct pm_corpus_module){ .path = "" };
	out->machine = pm_reader_u32(reader);
	out->flags = pm_reader_u32(reader);
	out->entry = pm_reader_u64(reader);
	for (size_t i = 0; i < PM_ARRAY_LEN(parts); i++) {
		parts[i]->svma = pm_reader_u64(reader);
		lens[i] = pm_reader_u64(reader);
	}
	loads = pm_reader_u32(reader);
	path_len = pm_reader_u32(reader);
	out->build_id_len = pm_reader_u32(reader);
	pm_reader_u32(reader);
	build_id = pm_reader_bytes(reader, PM_CORPUS_BUILD_ID_MAX);
	if (build_id)
		memcpy(out->build_id, build_id, PM_CORPUS_BUILD_ID_MAX);
	corpus_parse_loads(corpus, reader, loads, out);
	corpus_parse_path(reader, path_len, out);
	for (size_t i = 0; i < PM_ARRAY_LEN(parts); i++)
		corpus_parse_part(reader, parts[i], lens[i]);
}

static void corpus_parse_code(struct pm_reader *reader, struct pm_corpus_code *out)
{
	uint32_t len;

	*out = (struct pm_corpus_code){ .module = pm_reader_u32(reader) };
	len = pm_reader_u32(reader);
	out->part.svma = pm_reader_u64(reader);
	corpus_parse_part(reader, &out->part, len);
}

static void corpus_parse_sample(struct pm_reader *reader, struct pm_corpus_sample *out)
{
	uint32_t regs, stack_len;

	*out = (struct pm_corpus_sample){ .space = pm_reader_u32(reader) };
	out->pid = pm_reader_u32(reader);
	out->tid = pm_reader_u32(reader);
	out->machine = pm_reader_u32(reader);
	out->index = pm_reader_u64(reader);
	out->time = pm_reader_u64(reader);
	out->ip = pm_reader_u64(reader);
	out->known = pm_reader_u64(reader);
	out->stack_start = pm_reader_u64(reader);
	regs = pm_reader_u32(reader);
	stack_len = pm_reader_u32(reader);
	if (regs > PM_CORPUS_REGS_MAX || (regs < 64 && out->known >> regs != 0)) {
		reader->failed = true;
		return;
	}
	for (uint32_t i = 0; i < regs; i++)
		out->regs[i] = pm_reader_u64(reader);
	out->stack = pm_reader_bytes(reader, stack_len);
	out->stack_len = stack_len;
}

/* The last record has the numbers of records: they differ if the file was pieced together
 * from several ones. */
static int corpus_parse_end(struct pm_corpus *corpus, struct pm_reader *reader,
			    struct pm_error *err)
{
	struct pm_corpus_counts counts = { .modules = pm_reader_u64(reader),
					   .spaces = pm_reader_u64(reader),
					   .samples = pm_reader_u64(reader) };

	if (reader->failed || memcmp(&counts, &corpus->counts, sizeof(counts)) != 0)
		return corpus_fail(corpus, -EBADMSG,
				   "its last record counts other records than there are",
				   err);
	return corpus_end_here(corpus, CORPUS_END_COMPLETE);
}

static int corpus_read_record(struct pm_corpus *corpus, uint32_t *type,
			      struct pm_error *err)
{
	uint64_t bytes;
	int more;

	pm_vec_clear(&corpus->record);
	more = corpus_fill_record(corpus, PM_CORPUS_RECORD_HEAD_BYTES, err);
	if (more <= 0)
		return more;
	memcpy(type, corpus->record.data, sizeof(*type));
	memcpy(&bytes, corpus->record.data + 8, sizeof(bytes));
	if (bytes < PM_CORPUS_RECORD_HEAD_BYTES || bytes % 8 != 0)
		return corpus_fail(corpus, -EBADMSG,
				   "the length of a record is not valid", err);
	return corpus_fill_record(corpus, bytes - PM_CORPUS_RECORD_HEAD_BYTES, err);
}

static int corpus_next_record(struct pm_corpus *corpus, struct pm_corpus_record *out,
			      struct pm_error *err)
{
	for (;;) {
		struct pm_corpus_record record;
		struct pm_reader reader;
		uint32_t type, count;
		int more = corpus_read_record(corpus, &type, err);

		if (more <= 0)
			return more;
		pm_reader_init(&reader, corpus->record.data, corpus->record.len);
		reader.pos = PM_CORPUS_RECORD_HEAD_BYTES;
		switch (type) {
		case PM_CORPUS_WIRE_MODULE:
			record.type = PM_CORPUS_MODULE;
			corpus_parse_module(corpus, &reader, &record.module);
			break;
		case PM_CORPUS_WIRE_SPACE:
			record.type = PM_CORPUS_SPACE;
			record.space =
				(struct pm_corpus_space){ .pid = pm_reader_u32(&reader) };
			count = pm_reader_u32(&reader);
			corpus_parse_maps(corpus, &reader, count, &record.space);
			break;
		case PM_CORPUS_WIRE_CODE:
			record.type = PM_CORPUS_CODE;
			corpus_parse_code(&reader, &record.code);
			break;
		case PM_CORPUS_WIRE_SAMPLE:
			record.type = PM_CORPUS_SAMPLE;
			corpus_parse_sample(&reader, &record.sample);
			break;
		case PM_CORPUS_WIRE_END:
			return corpus_parse_end(corpus, &reader, err);
		default:
			continue; /* a record of a newer writer */
		}
		return corpus_check_record(corpus, &reader, &record, out, err);
	}
}

static int corpus_parse_header(struct pm_corpus *corpus, struct pm_reader *reader,
			       struct pm_error *err)
{
	uint32_t bytes = pm_reader_u32(reader);

	corpus->header.stack_bytes = pm_reader_u32(reader);
	corpus->header.created_s = pm_reader_u64(reader);
	if (bytes < PM_CORPUS_HEADER_BYTES || bytes % 8 != 0)
		return corpus_fail(corpus, -EBADMSG,
				   "the length of its header is not valid", err);
	return corpus_skip_to(corpus, bytes, err);
}

/* ---- public ------------------------------------------------------------------------------ */

static int corpus_read_start(struct pm_corpus *corpus, struct pm_error *err)
{
	struct pm_reader reader;
	const uint8_t *bytes;
	int more = corpus_fill_record(corpus, PM_CORPUS_HEADER_BYTES, err);

	if (more < 0)
		return more;
	bytes = corpus->record.data;
	if (more == 0 || memcmp(bytes, PM_CORPUS_MAGIC, PM_CORPUS_MAGIC_BYTES - 1) != 0)
		return corpus_fail(corpus, -EBADMSG, "this is no corpus of stacks", err);
	if (memcmp(bytes, PM_CORPUS_MAGIC, PM_CORPUS_MAGIC_BYTES) != 0)
		return corpus_fail(
			corpus, -ENOTSUP,
			"this corpus is of another version; only version 2 is read", err);
	pm_reader_init(&reader, bytes, PM_CORPUS_HEADER_BYTES);
	reader.pos = PM_CORPUS_MAGIC_BYTES;
	return corpus_parse_header(corpus, &reader, err);
}

static int corpus_new(struct pm_corpus **out, struct pm_file_source *source,
		      const char *path, struct pm_error *err)
{
	struct pm_corpus *corpus = calloc(1, sizeof(*corpus));
	int ret;

	if (!corpus || !(corpus->path = strdup(path))) {
		pm_file_source_release(source);
		free(corpus);
		return pm_error_set(err, -ENOMEM, "out of memory");
	}
	corpus->source = *source;
	ret = corpus_read_start(corpus, err);
	if (ret < 0) {
		pm_corpus_free(corpus);
		return ret;
	}
	*out = corpus;
	return 0;
}

int pm_corpus_open(struct pm_corpus **out, const char *path, struct pm_error *err)
{
	struct pm_file_source source;
	int ret = pm_file_source_open(&source, path, err);

	if (ret < 0) {
		pm_error_where(err, path, -1);
		return ret;
	}
	return corpus_new(out, &source, path, err);
}

int pm_corpus_open_memory(struct pm_corpus **out, const void *data, size_t len,
			  struct pm_error *err)
{
	struct pm_file_source source;
	int ret = pm_file_source_open_memory(&source, data, len, err);

	if (ret < 0)
		return ret;
	return corpus_new(out, &source, "", err);
}

void pm_corpus_free(struct pm_corpus *corpus)
{
	if (!corpus)
		return;
	pm_file_source_release(&corpus->source);
	pm_vec_release(&corpus->record);
	pm_vec_release(&corpus->loads);
	pm_vec_release(&corpus->maps);
	free(corpus->path);
	free(corpus);
}

const struct pm_corpus_header *pm_corpus_header(const struct pm_corpus *corpus)
{
	return &corpus->header;
}

int pm_corpus_next(struct pm_corpus *corpus, struct pm_corpus_record *out,
		   struct pm_error *err)
{
	if (corpus->failed < 0)
		return corpus_fail(corpus, corpus->failed,
				   "it cannot be read any further", err);
	if (corpus->ended)
		return 0;
	return corpus_next_record(corpus, out, err);
}

bool pm_corpus_is_cut(const struct pm_corpus *corpus)
{
	return corpus->cut;
}
