/* SPDX-License-Identifier: MIT */
/*
 * The table itself: a header, then names, units (compilation units' lists of files), files,
 * tables of values by address, and the functions in order of address. The layouts differ:
 *
 *   1.2   no parts: all offsets count from the header; functions by absolute address
 *   1.16  the parts above; functions by absolute address; inlined calls: 20 bytes
 *   1.18  functions and their data by 32-bit offsets from text and go:func.*
 *   1.20  a function also has its first line; inlined calls: 16 bytes
 *
 * Since 1.26 the header no longer says where text starts; moduledata does.
 */
#include "go-internal.h"

#include <string.h>

enum {
	MAGIC_1_2 = 0xfffffffb,
	MAGIC_1_16 = 0xfffffffa,
	MAGIC_1_18 = 0xfffffff0,
	MAGIC_1_20 = 0xfffffff1,
	HEADER_BYTES = 8, /* before its words: magic, two zeros, quantum, word size */
	FUNCTIONS_MAX = 1 << 24,
	NAME_BYTES_MAX = 16384,
	/* The most steps that one table of values may take; each covers an instruction at
	 * least. */
	STEPS_MAX = 1 << 20,
	PCDATA_INLINE_TREE = 2, /* internal/abi/funcdata.go */
	FUNCDATA_INLINE_TREE = 3,
};

bool pm_go_is_magic(const struct pm_go_table *table, const uint8_t *bytes)
{
	uint32_t magic;

	memcpy(&magic, bytes, sizeof(magic));
	return (magic == (uint32_t)MAGIC_1_20 || magic == (uint32_t)MAGIC_1_18 ||
		magic == (uint32_t)MAGIC_1_16 || magic == (uint32_t)MAGIC_1_2) &&
	       bytes[4] == 0 && bytes[5] == 0 && (bytes[6] == 1 || bytes[6] == 4) &&
	       bytes[7] == table->word_bytes;
}

/* ---- header ------------------------------------------------------------------------------ */

static enum pm_go_layout header_layout(const uint8_t *header)
{
	uint32_t magic;

	memcpy(&magic, header, sizeof(magic));
	if (magic == (uint32_t)MAGIC_1_20)
		return PM_GO_1_20;
	if (magic == (uint32_t)MAGIC_1_18)
		return PM_GO_1_18;
	if (magic == (uint32_t)MAGIC_1_16)
		return PM_GO_1_16;
	return PM_GO_1_2;
}

/* Reads the offsets from the header, in the order in which linkers write the parts. */
static bool read_table_parts(struct pm_go_table *table, uint64_t at)
{
	uint64_t *parts[] = { &table->names, &table->units, &table->files, &table->pcs,
			      &table->functions };
	uint64_t left = pm_go_bytes_left(table, table->header), last = 0;

	for (size_t i = 0; i < PM_ARRAY_LEN(parts); i++) {
		uint64_t offset;

		if (!pm_go_read_word(table, at + i * table->word_bytes, &offset) ||
		    offset <= last || offset >= left)
			return false;
		*parts[i] = table->header + offset;
		last = offset;
	}
	return true;
}

int pm_go_read_header(struct pm_go_table *table, uint64_t svma)
{
	const uint8_t *header = pm_go_bytes(table, svma, HEADER_BYTES);
	uint64_t at = svma + HEADER_BYTES, word = table->word_bytes;

	if (!header || !pm_go_is_magic(table, header))
		return -ENOENT;
	table->header = svma;
	table->layout = header_layout(header);
	table->quantum = header[6];
	table->text = 0;
	if (!pm_go_read_word(table, at, &table->functions_len) ||
	    table->functions_len == 0 || table->functions_len > FUNCTIONS_MAX)
		return -ENOENT;
	if (table->layout == PM_GO_1_2) {
		/* The list of files follows the functions (debug/gosym, go12Init). */
		uint64_t files = at + word + (2 * table->functions_len + 1) * word;
		uint32_t offset;

		if (!pm_go_read_u32(table, files, &offset))
			return -ENOENT;
		table->names = table->units = table->pcs = svma;
		table->files = svma + offset;
		table->functions = at + word;
		return 0;
	}
	at += 2 * word;
	if (table->layout >= PM_GO_1_18) {
		if (!pm_go_read_word(table, at, &table->text))
			return -ENOENT;
		at += word;
	}
	if (!read_table_parts(table, at))
		return -ENOENT;
	return 0;
}

/* ---- functions --------------------------------------------------------------------------- */

struct row {
	uint64_t entry, record;
};

/* Reads row @index of the functions. The row after the last has only an entry: the end of
 * the code. */
static bool read_function_row(const struct pm_go_table *table, uint64_t index,
			      struct row *out)
{
	if (table->layout >= PM_GO_1_18) {
		uint64_t at = table->functions + index * 8;
		uint32_t entry, record = 0;

		if (!pm_go_read_u32(table, at, &entry) ||
		    (index < table->functions_len &&
		     !pm_go_read_u32(table, at + 4, &record)))
			return false;
		*out = (struct row){ table->text + entry, table->functions + record };
		return true;
	}
	uint64_t at = table->functions + index * 2 * table->word_bytes;
	uint64_t entry, record = 0, records = table->functions;

	if (!pm_go_read_word(table, at, &entry) ||
	    (index < table->functions_len &&
	     !pm_go_read_word(table, at + table->word_bytes, &record)))
		return false;
	if (table->layout == PM_GO_1_2)
		records = table->header;
	*out = (struct row){ entry, records + record };
	return true;
}

static int read_function_record(const struct pm_go_table *table, const struct row *row,
				struct pm_go_function *out)
{
	enum {
		TAIL_BYTES = 4, /* funcID, flag, a byte, the number of funcdata */
	};
	uint32_t fields[8]; /* name, args, deferreturn, sp, file, line, pcdata, unit */
	size_t entry_bytes = table->layout >= PM_GO_1_18 ? 4 : table->word_bytes;
	size_t fields_len = table->layout == PM_GO_1_2 ? 7 : 8;
	uint64_t at = row->record + entry_bytes;
	const uint8_t *bytes = pm_go_bytes(table, at, fields_len * sizeof(*fields));

	if (!bytes)
		return -EBADMSG;
	memset(fields, 0, sizeof(fields));
	memcpy(fields, bytes, fields_len * sizeof(*fields));
	out->record = row->record;
	out->name = fields[0];
	out->sp = fields[3];
	out->file = fields[4];
	out->line = fields[5];
	out->pcdata_len = fields[6];
	out->unit = fields[7];
	out->flags = out->funcdata_len = 0;
	/* Before 1.12 there are two 32-bit numbers, which are not needed here. */
	if (table->layout == PM_GO_1_2)
		return 0;
	at += fields_len * sizeof(*fields);
	if (table->layout >= PM_GO_1_20)
		at += 4;
	bytes = pm_go_bytes(table, at, TAIL_BYTES);
	if (!bytes)
		return -EBADMSG;
	out->flags = bytes[1];
	out->funcdata_len = bytes[3];
	return 0;
}

/* The start of the data of @function: tables of values, then pointers. */
static uint64_t function_data_address(const struct pm_go_table *table,
				      const struct pm_go_function *function)
{
	if (table->layout >= PM_GO_1_20)
		return function->record + 44;
	if (table->layout >= PM_GO_1_18)
		return function->record + 40;

	return function->record + table->word_bytes + 36;
}

static int read_go_function(const struct pm_go_table *table, uint64_t index,
			    struct pm_go_function *out)
{
	struct row row, next;

	if (!read_function_row(table, index, &row) ||
	    !read_function_row(table, index + 1, &next) || next.entry < row.entry)
		return -EBADMSG;
	out->entry = row.entry;
	out->end = next.entry;
	return read_function_record(table, &row, out);
}

int pm_go_function_at(const struct pm_go_table *table, uint64_t index,
		      struct pm_go_function *out)
{
	if (index >= table->functions_len)
		return -ENOENT;
	return read_go_function(table, index, out);
}

/* Checks that the function's record has the same entry, and a name. */
static bool is_function_row_sound(const struct pm_go_table *table, uint64_t index)
{
	struct pm_go_function function;
	uint64_t entry;
	uint32_t offset;

	if (read_go_function(table, index, &function) < 0 ||
	    !pm_go_is_code(table, function.entry) || !pm_go_name(table, &function))
		return false;
	if (table->layout >= PM_GO_1_18) {
		if (!pm_go_read_u32(table, function.record, &offset))
			return false;
		entry = table->text + offset;
	} else if (!pm_go_read_word(table, function.record, &entry)) {
		return false;
	}
	return entry == function.entry;
}

int pm_go_read_range(struct pm_go_table *table)
{
	struct row first, end;

	if ((table->layout >= PM_GO_1_18 && !pm_go_is_code(table, table->text)) ||
	    !read_function_row(table, 0, &first) ||
	    !read_function_row(table, table->functions_len, &end) ||
	    end.entry <= first.entry || !is_function_row_sound(table, 0) ||
	    !is_function_row_sound(table, table->functions_len / 2) ||
	    !is_function_row_sound(table, table->functions_len - 1))
		return -ENOENT;
	table->low = first.entry;
	table->high = end.entry;
	return 0;
}

/*
 * Whether the first instruction of the function can be a return address that no call has
 * left. If a goroutine has switched stacks, the runtime makes it look as if
 * systemstack_switch had been the caller (gosave_systemstack_switch), and signal handlers
 * return to sigreturn. A look-up of the address minus 1 then finds the function before
 * it.
 */
static bool is_call_returned_to(const struct pm_go_table *table,
				const struct pm_go_function *function)
{
	const char *name = pm_go_name(table, function);

	return name && (strncmp(name, "runtime.systemstack_switch", 26) == 0 ||
			strncmp(name, "runtime.sigreturn", 17) == 0);
}

int pm_go_find(const struct pm_go_table *table, uint64_t svma, struct pm_go_function *out)
{
	uint64_t low = 0, high = table->functions_len;
	struct pm_go_function found, next;
	int ret;

	if (svma < table->low || svma >= table->high)
		return -ENOENT;
	while (low < high) {
		uint64_t middle = low + (high - low) / 2;
		struct row row;

		if (!read_function_row(table, middle, &row))
			return -EBADMSG;
		if (row.entry <= svma)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == 0)
		return -ENOENT;
	ret = read_go_function(table, low - 1, &found);
	if (ret == 0 && svma >= found.end)
		ret = -EBADMSG;
	if (ret < 0)
		return ret;
	if (svma + 1 == found.end && low < table->functions_len &&
	    read_go_function(table, low, &next) == 0 && is_call_returned_to(table, &next))
		found = next;
	*out = found;
	return 0;
}

/* ---- strings ----------------------------------------------------------------------------- */

/* Returns the string at @svma, in place. @end: the end of the part that must contain
 * it. */
static const char *go_text_at(const struct pm_go_table *table, uint64_t svma,
			      uint64_t end)
{
	uint64_t left = pm_go_bytes_left(table, svma);

	if (svma >= end || left == 0)
		return NULL;
	if (left > end - svma)
		left = end - svma;
	for (uint64_t len = 64;; len *= 16) {
		const uint8_t *bytes;

		len = PM_MIN(len, left);
		len = PM_MIN(len, NAME_BYTES_MAX);
		bytes = pm_go_bytes(table, svma, len);
		if (!bytes)
			return NULL;
		if (*bytes == '\0')
			return NULL;
		if (memchr(bytes, '\0', (size_t)len))
			return (const char *)bytes;
		if (len == left || len == NAME_BYTES_MAX)
			return NULL;
	}
}

static const char *go_function_name_at(const struct pm_go_table *table, uint32_t offset)
{
	if (table->layout == PM_GO_1_2)
		return go_text_at(table, table->names + offset, UINT64_MAX);
	return go_text_at(table, table->names + offset, table->units);
}

const char *pm_go_name(const struct pm_go_table *table,
		       const struct pm_go_function *function)
{
	return go_function_name_at(table, function->name);
}

/* The name of file number @file in the unit of @function. */
static const char *go_file_name(const struct pm_go_table *table,
				const struct pm_go_function *function, int32_t file)
{
	uint32_t offset;

	if (file < 0)
		return NULL;
	if (table->layout == PM_GO_1_2) {
		if (file > 0 &&
		    pm_go_read_u32(table, table->files + 4 * (uint64_t)file, &offset))
			return go_text_at(table, table->header + offset, UINT64_MAX);
		return NULL;
	}
	if (!pm_go_read_u32(
		    table, table->units + 4 * ((uint64_t)function->unit + (uint64_t)file),
		    &offset) ||
	    offset == UINT32_MAX)
		return NULL;
	return go_text_at(table, table->files + offset, table->pcs);
}

/* ---- tables of values -------------------------------------------------------------------- */

enum {
	STEP_BYTES_MAX = 20, /* two numbers of ten bytes; five are enough for 32 bits */
	WINDOW_BYTES = 512,
};

/* Ensures that @reader holds at least one step, if the table has that many bytes. */
static bool refill_step_reader(const struct pm_go_table *table, struct pm_reader *reader,
			       uint64_t *svma)
{
	uint64_t at = *svma + reader->pos, left = pm_go_bytes_left(table, at);
	const uint8_t *bytes;

	if (pm_reader_left(reader) >= STEP_BYTES_MAX)
		return true;
	left = PM_MIN(left, WINDOW_BYTES);
	if (left > 0)
		bytes = pm_go_bytes(table, at, left);
	else
		bytes = NULL;
	if (!bytes)
		return false;
	pm_reader_init(reader, bytes, (size_t)left);
	*svma = at;
	return true;
}

/*
 * Reads the value at @svma from the table at @offset (runtime/symtab.go, pcvalue and
 * step). It has pairs of LEB128 numbers: the change of the value, and the length for
 * which it is valid. A change of 0 that is not the first ends the table.
 */
static int pc_value_at(const struct pm_go_table *table,
		       const struct pm_go_function *function, uint32_t offset,
		       uint64_t svma, uint32_t *work_left, int32_t *out)
{
	uint64_t at = table->pcs + offset, pc = function->entry;
	struct pm_reader reader = { 0 };
	uint32_t value = UINT32_MAX; /* -1 */

	if (offset == 0)
		return -ENOENT;
	for (uint32_t step = 0; step < STEPS_MAX; step++) {
		uint64_t change, length;

		if (work_left && *work_left == 0)
			return -EDQUOT;
		if (work_left)
			--*work_left;
		if (!refill_step_reader(table, &reader, &at))
			return -EBADMSG;
		change = pm_reader_uleb(&reader);
		if (change == 0 && step > 0)
			return -ENOENT;
		length = pm_reader_uleb(&reader) * table->quantum;
		if (reader.failed || change > UINT32_MAX || length > UINT32_MAX)
			return -EBADMSG;
		value += (uint32_t)(change >> 1) ^ -(uint32_t)(change & 1);
		pc += length;
		if (svma < pc) {
			*out = (int32_t)value;
			return 0;
		}
	}
	return -EBADMSG;
}

int pm_go_stack_bytes(const struct pm_go_table *table,
		      const struct pm_go_function *function, uint64_t svma,
		      uint32_t *work_left, int32_t *out)
{
	svma = PM_MAX(svma, function->entry);
	return pc_value_at(table, function, function->sp, svma, work_left, out);
}

/* ---- inlined calls ----------------------------------------------------------------------- */

/* svma of the list of calls that were inlined into @function; 0: none. */
static uint64_t find_inline_tree(const struct pm_go_table *table,
				 const struct pm_go_function *function)
{
	uint64_t at = function_data_address(table, function) +
		      4 * (uint64_t)function->pcdata_len,
		 tree;
	uint32_t offset;

	if (table->layout == PM_GO_1_2 || function->pcdata_len <= PCDATA_INLINE_TREE ||
	    function->funcdata_len <= FUNCDATA_INLINE_TREE)
		return 0;
	if (table->layout >= PM_GO_1_18) {
		if (table->funcdata != 0 &&
		    pm_go_read_u32(table, at + 4 * FUNCDATA_INLINE_TREE, &offset) &&
		    offset != UINT32_MAX)
			return table->funcdata + offset;
		return 0;
	}
	/* Aligned pointers (runtime/symtab.go of 1.17, funcdata). */
	at += -at & (table->word_bytes - 1u);
	if (pm_go_read_word(table, at + FUNCDATA_INLINE_TREE * table->word_bytes, &tree))
		return tree;
	return 0;
}

/* Reads inlined call @index: the function's name, and the place of the call in its caller. */
static bool read_inlined_call(const struct pm_go_table *table, uint64_t tree,
			      uint32_t index, uint32_t *name, uint32_t *parent_pc)
{
	uint64_t at;

	if (table->layout < PM_GO_1_20) {
		at = tree + (uint64_t)index * 20;
		return pm_go_read_u32(table, at + 12, name) &&
		       pm_go_read_u32(table, at + 16, parent_pc);
	}
	at = tree + (uint64_t)index * 16;
	return pm_go_read_u32(table, at + 4, name) &&
	       pm_go_read_u32(table, at + 8, parent_pc);
}

size_t pm_go_frames(const struct pm_go_table *table,
		    const struct pm_go_function *function, uint64_t svma,
		    uint32_t *work_left, struct pm_go_frame *frames)
{
	uint64_t tree = find_inline_tree(table, function);
	uint32_t of_index = 0;
	size_t len = 0;

	if (svma < function->entry)
		svma = function->entry;
	if (tree != 0 && !pm_go_read_u32(table,
					 function_data_address(table, function) +
						 4 * PCDATA_INLINE_TREE,
					 &of_index))
		of_index = 0;
	for (;;) {
		struct pm_go_frame *frame = &frames[len++];
		int32_t file, line, index;
		uint32_t name, parent;

		*frame = (struct pm_go_frame){ .name = pm_go_name(table, function) };
		if (pc_value_at(table, function, function->file, svma, work_left,
				&file) == 0)
			frame->file = go_file_name(table, function, file);
		if (pc_value_at(table, function, function->line, svma, work_left,
				&line) == 0 &&
		    line > 0)
			frame->line = (uint32_t)line;
		if (len == PM_GO_INLINE_MAX ||
		    pc_value_at(table, function, of_index, svma, work_left, &index) < 0 ||
		    index < 0 ||
		    !read_inlined_call(table, tree, (uint32_t)index, &name, &parent) ||
		    parent >= function->end - function->entry)
			return len;
		frame->name = go_function_name_at(table, name);
		svma = function->entry + parent;
	}
}
