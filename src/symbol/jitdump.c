/* SPDX-License-Identifier: MIT */
#include "jit-internal.h"

#include <elf.h>
#include <string.h>
#include <sys/stat.h>

enum {
	HEADER_BYTES = 40,
	HEADER_BYTES_MAX = 1 << 12,
	PREFIX_BYTES = 16,
	LOAD_BYTES = 40, /* of a load record after its prefix, up to the name */
	MOVE_BYTES = 48,
	/* The part of a record that is read; a function's code may extend beyond it. */
	RECORD_BYTES_MAX = 1 << 20,
	LOAD_HEAD_BYTES = LOAD_BYTES + 2 * PM_JIT_NAME_MAX,
	CHUNK_BYTES = 1 << 16,
	LINES_MAX = 1 << 16,
};

#define MAGIC         0x4a695444u
#define MAGIC_FOREIGN 0x4454694au
/* A header flag that the specification reserves. Only V8 writes it
 * (src/diagnostics/perf-jit.cc). */
#define PAD_OF_V8 0xdeadbeefu
/* V8 adds this to the addresses of lines, to account for the ELF header of the files that
 * `perf inject` writes. */
#define V8_LINES_BIAS 0x40

enum record_id {
	JIT_CODE_LOAD = 0,
	JIT_CODE_MOVE = 1,
	JIT_CODE_DEBUG_INFO = 2,
	JIT_CODE_CLOSE = 3,
	JIT_CODE_UNWINDING_INFO = 4,
};

struct kept {
	uint8_t *data;
	size_t len, cap;
};

struct pm_jitdump {
	uint64_t offset; /* of the first record that has not been applied */
	int dead; /* permanent negative errno; 0: none */
	struct pm_error why;
	bool begun, closed, v8;
	/* Information about the next function, written before its load record: payloads
	 * of whole records. */
	struct kept debug_info, unwinding;
	/* A piece of the file that is read ahead: one pread(2) for each record is too
	 * slow. */
	uint8_t *chunk;
	uint64_t chunk_offset;
	size_t chunk_len;
};

struct reading {
	struct pm_jitdump *dump;
	int fd;
	uint64_t size; /* current size of the file */
	struct pm_jit_table *table;
	size_t read_bytes;
};

struct pm_jitdump *pm_jitdump_new(void)
{
	return calloc(1, sizeof(struct pm_jitdump));
}

void pm_jitdump_free(struct pm_jitdump *dump)
{
	if (!dump)
		return;
	pm_vec_release(&dump->debug_info);
	pm_vec_release(&dump->unwinding);
	free(dump->chunk);
	free(dump);
}

/* Marks the file as permanently unusable and reports why. */
static int jitdump_set_dead(struct pm_jitdump *dump, int error, const char *why)
{
	dump->dead = error;
	return pm_error_set(&dump->why, error, "%s", why);
}

/* Returns the bytes [offset, offset + len) of the file, valid until the next call; len is
 * at most RECORD_BYTES_MAX. On failure, returns NULL and sets @error; -ENODATA: the file
 * ends earlier. */
static const uint8_t *jitdump_read_bytes(struct reading *reading, uint64_t offset,
					 size_t len, int *error)
{
	struct pm_jitdump *dump = reading->dump;
	uint64_t skip = offset - dump->chunk_offset;
	ssize_t got;

	if (offset >= dump->chunk_offset && skip <= dump->chunk_len &&
	    len <= dump->chunk_len - skip)
		return dump->chunk + skip;
	*error = -ENOMEM;
	if (!dump->chunk) {
		dump->chunk = malloc(RECORD_BYTES_MAX);
		if (!dump->chunk)
			return NULL;
	}
	dump->chunk_len = 0;
	dump->chunk_offset = offset;
	got = pread(reading->fd, dump->chunk, PM_MAX(len, CHUNK_BYTES), (off_t)offset);
	*error = got < 0 ? -errno : -ENODATA;
	if (got < 0 || (size_t)got < len)
		return NULL;
	dump->chunk_len = (size_t)got;
	reading->read_bytes += (size_t)got;
	return dump->chunk;
}

static uint16_t native_elf_machine(void)
{
#if defined(__x86_64__)
	return EM_X86_64;
#elif defined(__aarch64__)
	return EM_AARCH64;
#else
	return EM_NONE;
#endif
}

/* Reads the file's header. Returns 0; -ENODATA: the header is still incomplete; or a
 * permanent error. */
static int jitdump_read_header(struct reading *reading)
{
	struct pm_jitdump *dump = reading->dump;
	struct pm_reader reader;
	uint32_t magic, version, total_size, machine, pad;
	uint64_t flags;
	int ret;
	const uint8_t *bytes = jitdump_read_bytes(reading, 0, HEADER_BYTES, &ret);

	if (!bytes)
		return ret;
	pm_reader_init(&reader, bytes, HEADER_BYTES);
	magic = pm_reader_u32(&reader);
	version = pm_reader_u32(&reader);
	total_size = pm_reader_u32(&reader);
	machine = pm_reader_u32(&reader);
	pad = pm_reader_u32(&reader);
	pm_reader_u32(&reader); /* pid, as the process itself sees it */
	pm_reader_u64(&reader); /* time of creation */
	flags = pm_reader_u64(&reader);
	if (magic == MAGIC_FOREIGN)
		return jitdump_set_dead(dump, -ENOTSUP, "it has the other byte order");
	if (magic != MAGIC)
		return jitdump_set_dead(dump, -ENOEXEC, "it is no jitdump");
	if (version != 1)
		return jitdump_set_dead(dump, -ENOTSUP, "its version is not 1");
	if (total_size < HEADER_BYTES || total_size > HEADER_BYTES_MAX)
		return jitdump_set_dead(dump, -EBADMSG, "its header has no valid size");
	if (flags & 1)
		return jitdump_set_dead(
			dump, -ENOTSUP,
			"its times are not of CLOCK_MONOTONIC but of the processor");
	if (machine != native_elf_machine())
		return jitdump_set_dead(dump, -ENOTSUP,
					"its code is for another processor");
	dump->v8 = pad == PAD_OF_V8;
	dump->begun = true;
	dump->offset = total_size;
	return 0;
}

/* ---- lines --------------------------------------------------------------------------- */

typedef PM_VEC(struct pm_jit_line) pm_jit_lines;

static void pm_jit_lines_release(pm_jit_lines *lines)
{
	pm_vec_release(lines);
}

/*
 * Reads one entry: avma, line, column, NUL-terminated file; the file FF means the
 * previous one. Returns false if it is invalid. V8 11 (in Node.js 20) writes file names
 * from memory that it has freed: if a name is not text, or an address is outside of the
 * function, all lines of the function are doubtful.
 */
static bool jitdump_read_line(struct pm_reader *reader,
			      const struct pm_jit_function *function, uint64_t bias,
			      pm_jit_lines *lines)
{
	struct pm_jit_line line = { .offset = pm_reader_u64(reader) - bias -
					      function->start };
	const char *file;

	line.line = pm_reader_u32(reader);
	pm_reader_u32(reader);
	file = pm_reader_cstr(reader);
	if (!file || line.offset > function->len)
		return false;
	if (strcmp(file, "\xff") == 0 && lines->len > 0)
		file = lines->data[lines->len - 1].file;
	for (size_t i = 0, len = strlen(file), n; i < len; i += n) {
		n = pm_utf8_char(file + i, len - i);
		/* A C0 control, DEL or C1 control, which no file name given to a compiler
		 * contains. */
		if (n == 0 || (n == 1 && ((uint8_t)file[i] < 0x20 || file[i] == 0x7f)) ||
		    (n == 2 && (uint8_t)file[i] == 0xc2 && (uint8_t)file[i + 1] < 0xa0))
			return false;
	}
	line.file = file;
	if (line.line == 0 || *file == '\0')
		return true; /* the entry has no line or no file */
	/* Entries at one address are a chain of inlined calls, outermost first. */
	if (lines->len > 0 && lines->data[lines->len - 1].offset > line.offset)
		return false;
	return pm_vec_push(lines, line) == 0;
}

/* Reads the lines of @function from the record that was kept; there are none if it is
 * invalid. Their file names are borrowed from the record. */
static void jitdump_read_lines(struct pm_jitdump *dump,
			       const struct pm_jit_function *function,
			       pm_jit_lines *lines)
{
	struct pm_reader reader;
	uint64_t start, count;

	pm_reader_init(&reader, dump->debug_info.data, dump->debug_info.len);
	start = pm_reader_u64(&reader);
	count = pm_reader_u64(&reader);
	if (reader.failed || start != function->start || count > LINES_MAX)
		return;
	for (uint64_t i = 0; i < count; i++) {
		if (!jitdump_read_line(&reader, function, dump->v8 ? V8_LINES_BIAS : 0,
				       lines)) {
			pm_vec_clear(lines);
			return;
		}
	}
}

/* ---- unwind information --------------------------------------------------------------- */

/*
 * Uses the .eh_frame of the record that was kept. It is laid out as if it followed the
 * code, at the next multiple of 8, with the .eh_frame_hdr last. V8 writes this order, and
 * perf expects it (jit_add_eh_frame_info() in tools/perf/util/genelf.c), although the
 * specification puts the header first. The bytes show which part comes first: no
 * .eh_frame starts with a header's `01 1b`, because that would be a length beyond its
 * end.
 */
static void jitdump_read_unwinding(const struct pm_jitdump *dump,
				   struct pm_jit_function *function)
{
	struct pm_reader reader;
	uint64_t size, header_size, mapped_size;
	const uint8_t *data;
	bool header_first;

	pm_reader_init(&reader, dump->unwinding.data, dump->unwinding.len);
	size = pm_reader_u64(&reader);
	header_size = pm_reader_u64(&reader);
	mapped_size = pm_reader_u64(&reader);
	/* If the size of the mapped part is 0, there is only the header, and frame
	 * pointers are to be used. */
	if (reader.failed || mapped_size == 0 || header_size >= size ||
	    size > pm_reader_left(&reader))
		return;
	data = reader.data + reader.pos;
	header_first = header_size >= 4 && data[0] == 1 && (data[1] & 0x70) == 0x10;
	function->eh_frame = data;
	function->eh_frame_len = size - header_size;
	function->eh_frame_at = (function->start + function->len + 7) & ~UINT64_C(7);
	if (header_first) {
		function->eh_frame += header_size;
		function->eh_frame_at += header_size;
	}
}

/* ---- records ------------------------------------------------------------------------- */

/* Keeps the payload of a record for the function that follows. */
static int jitdump_keep_payload(struct reading *reading, uint64_t at, uint64_t len,
				struct kept *to)
{
	const uint8_t *bytes;
	int ret;

	pm_vec_clear(to);
	if (len > RECORD_BYTES_MAX)
		return 0; /* too large for the information about one function */
	bytes = jitdump_read_bytes(reading, at, len, &ret);
	if (!bytes)
		return ret;
	if (pm_vec_reserve(to, len) < 0)
		return -ENOMEM;
	memcpy(to->data, bytes, len);
	to->len = len;
	return 0;
}

/* Reads the code after the name at @at, if the unwinder needs it because the function has
 * its own unwind rules. */
static int jitdump_read_code(struct reading *reading, uint64_t at, uint64_t len,
			     struct pm_jit_function *function)
{
	int ret = 0;

	if (function->eh_frame && function->len <= len && len <= RECORD_BYTES_MAX)
		function->code = jitdump_read_bytes(reading, at, function->len, &ret);
	if (function->code)
		return 0;
	return ret;
}

static int jitdump_apply_load(struct reading *reading, uint64_t at, uint64_t len)
{
	struct pm_jitdump *dump = reading->dump;
	size_t head_len = PM_MIN(len, LOAD_HEAD_BYTES);
	char name[LOAD_HEAD_BYTES];
	PM_CLEANUP(pm_jit_lines_release) pm_jit_lines lines = { 0 };
	struct pm_jit_function function = { .source = PM_JIT_OF_DUMP };
	struct pm_reader reader;
	size_t name_len;
	int ret;
	const uint8_t *bytes;

	if (len < LOAD_BYTES)
		return jitdump_set_dead(dump, -EBADMSG,
					"a JIT_CODE_LOAD record is too short");
	bytes = jitdump_read_bytes(reading, at, head_len, &ret);
	if (!bytes)
		return ret;
	pm_reader_init(&reader, bytes, head_len);
	pm_reader_u64(&reader); /* pid, tid */
	pm_reader_u64(&reader); /* vma, equal to the next field */
	function.start = pm_reader_u64(&reader);
	function.len = pm_reader_u64(&reader);
	name_len = strnlen((const char *)bytes + LOAD_BYTES, head_len - LOAD_BYTES);
	memcpy(name, bytes + LOAD_BYTES, name_len);
	jitdump_read_lines(dump, &function, &lines);
	function.lines = lines.data;
	function.lines_len = lines.len;
	jitdump_read_unwinding(dump, &function);
	/* If the name is too long, neither its end nor the start of the code is known. */
	if (name_len < head_len - LOAD_BYTES)
		ret = jitdump_read_code(reading, at + LOAD_BYTES + name_len + 1,
					len - LOAD_BYTES - name_len - 1, &function);
	else
		ret = 0;
	if (ret == 0)
		ret = pm_jit_table_add(reading->table, &function, name, name_len);
	pm_vec_clear(&dump->debug_info);
	pm_vec_clear(&dump->unwinding);
	/* Functions without code or name, and functions beyond the limits, are
	 * skipped. */
	if (ret == -EINVAL || ret == -ENOSPC)
		return 0;
	return ret;
}

/* Adds the function at its new address. Its old address keeps its bytes, and therefore
 * the function, too. */
static int jitdump_apply_move(struct reading *reading, uint64_t at, uint64_t len)
{
	struct pm_reader reader;
	uint64_t from, to;
	int ret;
	const uint8_t *bytes;

	if (len < MOVE_BYTES)
		return jitdump_set_dead(reading->dump, -EBADMSG,
					"a JIT_CODE_MOVE record is too short");
	bytes = jitdump_read_bytes(reading, at, MOVE_BYTES, &ret);
	if (!bytes)
		return ret;
	pm_reader_init(&reader, bytes, MOVE_BYTES);
	pm_reader_u64(&reader); /* pid, tid */
	pm_reader_u64(&reader); /* vma, equal to the new address */
	from = pm_reader_u64(&reader);
	to = pm_reader_u64(&reader);
	ret = pm_jit_table_move(reading->table, from, to);
	if (ret == -ENOMEM)
		return ret;
	return 0;
}

/* Applies the record @id with the payload [at, at + len). Returns 0 or a negative
 * errno. */
static int jitdump_apply_record(struct reading *reading, uint32_t id, uint64_t at,
				uint64_t len)
{
	switch (id) {
	case JIT_CODE_LOAD:
		return jitdump_apply_load(reading, at, len);
	case JIT_CODE_MOVE:
		return jitdump_apply_move(reading, at, len);
	case JIT_CODE_DEBUG_INFO:
		return jitdump_keep_payload(reading, at, len, &reading->dump->debug_info);
	case JIT_CODE_UNWINDING_INFO:
		return jitdump_keep_payload(reading, at, len, &reading->dump->unwinding);
	case JIT_CODE_CLOSE:
		reading->dump->closed = true;
		return 0;
	default:
		return 0; /* a record of a later version; its size is known */
	}
}

struct prefix {
	uint32_t id, total_size;
	uint64_t time_ns;
};

/* Reads the prefix of the next record. Returns 1; 0 if the record is incomplete; or a
 * negative errno. */
static int jitdump_read_prefix(struct reading *reading, struct prefix *out)
{
	struct pm_jitdump *dump = reading->dump;
	struct pm_reader reader;
	int ret;
	const uint8_t *bytes;

	if (dump->closed || reading->size - dump->offset < PREFIX_BYTES)
		return 0;
	bytes = jitdump_read_bytes(reading, dump->offset, PREFIX_BYTES, &ret);
	if (!bytes) {
		if (ret == -ENODATA)
			return 0;
		return ret;
	}
	pm_reader_init(&reader, bytes, PREFIX_BYTES);
	out->id = pm_reader_u32(&reader);
	out->total_size = pm_reader_u32(&reader);
	out->time_ns = pm_reader_u64(&reader);
	if (out->total_size < PREFIX_BYTES)
		return jitdump_set_dead(dump, -EBADMSG, "a record has no valid size");
	return out->total_size <= reading->size - dump->offset;
}

/* Applies the next record. Returns 1; 0 if there is none yet; or a negative errno. */
static int jitdump_apply_next_record(struct reading *reading, uint64_t until_ns)
{
	struct pm_jitdump *dump = reading->dump;
	struct prefix prefix = { 0 }; /* gcc does not see that it is filled if 1 is
	                               * returned */
	int ret = jitdump_read_prefix(reading, &prefix);

	if (ret != 1)
		return ret;
	if (prefix.time_ns > until_ns)
		return 0;
	ret = jitdump_apply_record(reading, prefix.id, dump->offset + PREFIX_BYTES,
				   prefix.total_size - PREFIX_BYTES);
	/* The file was truncated since its size was read; the next call detects that. */
	if (ret == -ENODATA)
		return 0;
	if (ret < 0)
		return ret;
	dump->offset += prefix.total_size;
	return 1;
}

/* Checks the file and reads its header if necessary. Returns 0 if records can be read;
 * -ENODATA: there are none yet; or a permanent error. */
static int jitdump_start_reading(struct reading *reading)
{
	struct pm_jitdump *dump = reading->dump;
	struct stat st;

	if (dump->dead != 0)
		return dump->dead;
	if (fstat(reading->fd, &st) < 0)
		return -errno;
	reading->size = (uint64_t)st.st_size;
	if (reading->size < dump->offset)
		return jitdump_set_dead(dump, -ESTALE,
					"it was cut short while it was used");
	if (!dump->begun && reading->size < HEADER_BYTES)
		return -ENODATA;
	if (!dump->begun) {
		int ret = jitdump_read_header(reading);

		if (ret < 0)
			return ret;
	}
	if (reading->size < dump->offset)
		return -ENODATA;
	return 0;
}

int pm_jitdump_read(struct pm_jitdump *dump, int fd, struct pm_jit_table *table,
		    uint64_t until_ns, size_t max_bytes, struct pm_error *err)
{
	struct reading reading = { .dump = dump, .fd = fd, .table = table };
	int ret = jitdump_start_reading(&reading);

	if (ret == -ENODATA)
		return 0;
	if (ret == 0)
		while ((ret = jitdump_apply_next_record(&reading, until_ns)) == 1)
			if (reading.read_bytes >= max_bytes)
				return 1;
	if (ret < 0 && dump->dead == 0)
		return pm_error_set(err, ret, "%s", strerror(-ret));
	if (ret < 0 && err)
		*err = dump->why;
	return ret;
}

bool pm_jitdump_peek(struct pm_jitdump *dump, int fd, uint64_t *time_ns)
{
	struct reading reading = { .dump = dump, .fd = fd };
	struct prefix prefix = { 0 }; /* gcc does not see that it is filled if 1 is
	                               * returned */

	/* Errors are reported when the records are read. */
	if (jitdump_start_reading(&reading) < 0 ||
	    jitdump_read_prefix(&reading, &prefix) != 1)
		return false;
	*time_ns = prefix.time_ns;
	return true;
}
