/* SPDX-License-Identifier: MIT */
/*
 * Finds .gopclntab and the module data (runtime.moduledata), which says where code and
 * function data start. Both may lack a name: in position-independent programs, linkers
 * merge the section into .data.rel.ro, and sstrip removes all section headers.
 *
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
#include "pm/go.h"

#include <elf.h>
#include <string.h>

enum {
	MAGIC_1_2 = 0xfffffffb,
	MAGIC_1_16 = 0xfffffffa,
	MAGIC_1_18 = 0xfffffff0,
	MAGIC_1_20 = 0xfffffff1,
	HEADER_BYTES = 8, /* before the words of the header: magic, two zeros, quantum,
	                   * word size */
	FUNCTIONS_MAX = 1 << 24,
	NAME_BYTES_MAX = 16384,
	/* The most steps that one table of values may take; each covers at least one
	 * instruction. */
	STEPS_MAX = 1 << 20,
	PCDATA_INLINE_TREE = 2, /* internal/abi/funcdata.go */
	FUNCDATA_INLINE_TREE = 3,
};

/* ---- header ------------------------------------------------------------------------------ */

/* Whether these 8 bytes can be the start of a table. */
static bool go_is_magic(const struct pm_go_table *table, const uint8_t *bytes)
{
	uint32_t magic;

	memcpy(&magic, bytes, sizeof(magic));
	return (magic == (uint32_t)MAGIC_1_20 || magic == (uint32_t)MAGIC_1_18 ||
		magic == (uint32_t)MAGIC_1_16 || magic == (uint32_t)MAGIC_1_2) &&
	       bytes[4] == 0 && bytes[5] == 0 && (bytes[6] == 1 || bytes[6] == 4) &&
	       bytes[7] == table->word_bytes;
}

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

/* ---- bytes by address ------------------------------------------------------------------ */

static const struct pm_go_load *find_load(const struct pm_go_table *table, uint64_t svma)
{
	for (size_t i = 0; i < table->loads_len; i++)
		if (svma - table->loads[i].vaddr < table->loads[i].filesz)
			return &table->loads[i];
	return NULL;
}

/* Returns the number of bytes of the file that follow @svma in its segment, or 0 if it is
 * in none. */
static uint64_t go_bytes_left(const struct pm_go_table *table, uint64_t svma)
{
	const struct pm_go_load *load = find_load(table, svma);

	if (load)
		return load->filesz - (svma - load->vaddr);
	return 0;
}

/* Returns the @len bytes at @svma, in place, or NULL if no segment has all of them in the
 * file. */
static const uint8_t *go_bytes(const struct pm_go_table *table, uint64_t svma,
			       uint64_t len)
{
	const struct pm_go_load *load = find_load(table, svma);
	uint64_t skip;

	if (!load)
		return NULL;
	skip = svma - load->vaddr;
	if (len > load->filesz - skip || len > SIZE_MAX || load->offset + skip < skip)
		return NULL;
	return table->file.bytes(table->file.user, load->offset + skip, (size_t)len);
}

static bool go_read_u32(const struct pm_go_table *table, uint64_t svma, uint32_t *out)
{
	const uint8_t *bytes = go_bytes(table, svma, sizeof(*out));

	if (bytes)
		memcpy(out, bytes, sizeof(*out));
	return bytes;
}

/* Reads a word of the program, which has 4 or 8 bytes. */
static bool go_read_word(const struct pm_go_table *table, uint64_t svma, uint64_t *out)
{
	const uint8_t *bytes;
	uint32_t half;

	if (table->word_bytes == 4) {
		if (!go_read_u32(table, svma, &half))
			return false;
		*out = half;
		return true;
	}
	bytes = go_bytes(table, svma, sizeof(*out));
	if (bytes)
		memcpy(out, bytes, sizeof(*out));
	return bytes;
}

/* Reads the offsets of the parts from the header, where they have the same order as the
 * parts. */
static bool read_table_parts(struct pm_go_table *table, uint64_t at)
{
	uint64_t *parts[] = { &table->names, &table->units, &table->files, &table->pcs,
			      &table->functions };
	uint64_t left = go_bytes_left(table, table->header), last = 0;

	for (size_t i = 0; i < PM_ARRAY_LEN(parts); i++) {
		uint64_t offset;

		if (!go_read_word(table, at + i * table->word_bytes, &offset) ||
		    offset <= last || offset >= left)
			return false;
		*parts[i] = table->header + offset;
		last = offset;
	}
	return true;
}

/*
 * Reads the header at @svma. The loads, the machine and the word size must be known.
 * Returns 0, or -ENOENT if there is no valid header. table->text may remain unknown (0).
 */
static int go_read_header(struct pm_go_table *table, uint64_t svma)
{
	const uint8_t *header = go_bytes(table, svma, HEADER_BYTES);
	uint64_t at = svma + HEADER_BYTES, word = table->word_bytes;

	if (!header || !go_is_magic(table, header))
		return -ENOENT;
	table->header = svma;
	table->layout = header_layout(header);
	table->quantum = header[6];
	table->text = 0;
	if (!go_read_word(table, at, &table->functions_len) ||
	    table->functions_len == 0 || table->functions_len > FUNCTIONS_MAX)
		return -ENOENT;
	if (table->layout == PM_GO_1_2) {
		/* The list of files follows the functions (debug/gosym, go12Init). */
		uint64_t files = at + word + (2 * table->functions_len + 1) * word;
		uint32_t offset;

		if (!go_read_u32(table, files, &offset))
			return -ENOENT;
		table->names = table->units = table->pcs = svma;
		table->files = svma + offset;
		table->functions = at + word;
		return 0;
	}
	at += 2 * word;
	if (table->layout >= PM_GO_1_18) {
		if (!go_read_word(table, at, &table->text))
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

/* Reads row @index of the functions. The row after the last function has only an entry,
 * which is the end of the code. */
static bool read_function_row(const struct pm_go_table *table, uint64_t index,
			      struct row *out)
{
	if (table->layout >= PM_GO_1_18) {
		uint64_t at = table->functions + index * 8;
		uint32_t entry, record = 0;

		if (!go_read_u32(table, at, &entry) ||
		    (index < table->functions_len &&
		     !go_read_u32(table, at + 4, &record)))
			return false;
		*out = (struct row){ table->text + entry, table->functions + record };
		return true;
	}
	uint64_t at = table->functions + index * 2 * table->word_bytes;
	uint64_t entry, record = 0, records = table->functions;

	if (!go_read_word(table, at, &entry) ||
	    (index < table->functions_len &&
	     !go_read_word(table, at + table->word_bytes, &record)))
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
		TAIL_BYTES = 4, /* funcID, flag, an unused byte, the number of funcdata */
	};
	uint32_t fields[8]; /* name, args, deferreturn, sp, file, line, pcdata, unit */
	size_t entry_bytes = table->layout >= PM_GO_1_18 ? 4 : table->word_bytes;
	size_t fields_len = table->layout == PM_GO_1_2 ? 7 : 8;
	uint64_t at = row->record + entry_bytes;
	const uint8_t *bytes = go_bytes(table, at, fields_len * sizeof(*fields));

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
	bytes = go_bytes(table, at, TAIL_BYTES);
	if (!bytes)
		return -EBADMSG;
	out->flags = bytes[1];
	out->funcdata_len = bytes[3];
	return 0;
}

/* Returns the address of the data of @function: tables of values, then pointers. */
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

/* Whether @svma is in executable code. */
static bool go_is_code(const struct pm_go_table *table, uint64_t svma)
{
	const struct pm_go_load *load = find_load(table, svma);

	return load && (load->flags & PF_X);
}

/* Whether the function's record has a name and the same entry address as the row, and
 * that address is in executable code. */
static bool is_function_row_sound(const struct pm_go_table *table, uint64_t index)
{
	struct pm_go_function function;
	uint64_t entry;
	uint32_t offset;

	if (read_go_function(table, index, &function) < 0 ||
	    !go_is_code(table, function.entry) || !pm_go_name(table, &function))
		return false;
	if (table->layout >= PM_GO_1_18) {
		if (!go_read_u32(table, function.record, &offset))
			return false;
		entry = table->text + offset;
	} else if (!go_read_word(table, function.record, &entry)) {
		return false;
	}
	return entry == function.entry;
}

/* Reads the range of code, and checks some rows. table->text must be known. */
static int go_read_range(struct pm_go_table *table)
{
	struct row first, end;

	if ((table->layout >= PM_GO_1_18 && !go_is_code(table, table->text)) ||
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
 * pushed. If a goroutine has switched stacks, the runtime makes it look as if
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

/* Returns the string at @svma, in place. @end is the end of the part that must contain
 * it. */
static const char *go_text_at(const struct pm_go_table *table, uint64_t svma,
			      uint64_t end)
{
	uint64_t left = go_bytes_left(table, svma);

	if (svma >= end || left == 0)
		return NULL;
	if (left > end - svma)
		left = end - svma;
	for (uint64_t len = 64;; len *= 16) {
		const uint8_t *bytes;

		len = PM_MIN(len, left);
		len = PM_MIN(len, NAME_BYTES_MAX);
		bytes = go_bytes(table, svma, len);
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

/* Returns the name of file number @file in the unit of @function. */
static const char *go_file_name(const struct pm_go_table *table,
				const struct pm_go_function *function, int32_t file)
{
	uint32_t offset;

	if (file < 0)
		return NULL;
	if (table->layout == PM_GO_1_2) {
		if (file > 0 &&
		    go_read_u32(table, table->files + 4 * (uint64_t)file, &offset))
			return go_text_at(table, table->header + offset, UINT64_MAX);
		return NULL;
	}
	if (!go_read_u32(table,
			 table->units + 4 * ((uint64_t)function->unit + (uint64_t)file),
			 &offset) ||
	    offset == UINT32_MAX)
		return NULL;
	return go_text_at(table, table->files + offset, table->pcs);
}

/* ---- tables of values -------------------------------------------------------------------- */

enum {
	STEP_BYTES_MAX = 20, /* two numbers of ten bytes each; five are enough for 32
	                      * bits */
	WINDOW_BYTES = 512,
};

/* Ensures that @reader holds at least one step, if the table has that many bytes. */
static bool refill_step_reader(const struct pm_go_table *table, struct pm_reader *reader,
			       uint64_t *svma)
{
	uint64_t at = *svma + reader->pos, left = go_bytes_left(table, at);
	const uint8_t *bytes;

	if (pm_reader_left(reader) >= STEP_BYTES_MAX)
		return true;
	left = PM_MIN(left, WINDOW_BYTES);
	if (left > 0)
		bytes = go_bytes(table, at, left);
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
 * step). The table consists of pairs of LEB128 numbers: the change of the value, and the
 * length for which it is valid. A change of 0, except in the first pair, ends the table.
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

/* Returns the svma of the list of calls that were inlined into @function, or 0 if there
 * is none. */
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
		    go_read_u32(table, at + 4 * FUNCDATA_INLINE_TREE, &offset) &&
		    offset != UINT32_MAX)
			return table->funcdata + offset;
		return 0;
	}
	/* In this layout, the pointers are aligned (runtime/symtab.go of 1.17,
	 * funcdata). */
	at += -at & (table->word_bytes - 1u);
	if (go_read_word(table, at + FUNCDATA_INLINE_TREE * table->word_bytes, &tree))
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
		return go_read_u32(table, at + 12, name) &&
		       go_read_u32(table, at + 16, parent_pc);
	}
	at = tree + (uint64_t)index * 16;
	return go_read_u32(table, at + 4, name) && go_read_u32(table, at + 8, parent_pc);
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
	if (tree != 0 &&
	    !go_read_u32(table,
			 function_data_address(table, function) + 4 * PCDATA_INLINE_TREE,
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

enum {
	PHDRS_MAX = 256,
	SECTIONS_MAX = 1 << 12, /* Go's own programs have about thirty */
	SECTION_NAME_BYTES_MAX = 32,
	SEARCHED_BYTES_MAX = 1 << 28, /* the largest programs seen have 150 MB */
	CHUNK_BYTES = 1 << 12,
	CANDIDATES_MAX = 16,
	/* Limit of relocations that are read for one file, including repeated reads:
	 * Kubernetes' largest programs have 300,000, which are read twice. */
	RELOCS_READ_MAX = 1 << 21,
	/* Indices of words in moduledata (runtime/symtab.go). */
	MODULE_NAMES = 1,
	MODULE_TEXT = 22,
	MODULE_FUNCDATA_1_18 = 38,
	MODULE_FUNCDATA_1_20 = 40, /* covctrs and ecovctrs were added before it */
	MODULE_WORDS = 41,
	GO_NOTE = 4, /* ELF_NOTE_GOBUILDID_TAG, cmd/internal/buildid/note.go */
};

/* The fields of the file's headers that the search for the table needs. */
struct headers {
	struct pm_go_table *table;
	uint64_t shoff, shentsize, shnum, names_offset, names_size;
	uint64_t rela, rela_size; /* svma; size 0: none */
	uint32_t relocs_left; /* relocations that may still be read */
	bool is_go; /* a note or a section shows that the file is from Go */
	uint64_t section; /* svma of the table according to a section's name; 0: there is
	                   * none */
};

bool pm_go_is_section(const char *name)
{
	return strcmp(name, ".gopclntab") == 0 ||
	       strcmp(name, ".data.rel.ro.gopclntab") == 0 ||
	       strcmp(name, ".go.buildinfo") == 0 ||
	       strcmp(name, ".note.go.buildid") == 0;
}

/* ---- ELF headers ------------------------------------------------------------------------ */

static bool read_go_file_bytes(const struct pm_go_file *file, uint64_t offset, void *out,
			       size_t len)
{
	const uint8_t *bytes = file->bytes(file->user, offset, len);

	if (bytes)
		memcpy(out, bytes, len);
	return bytes;
}

static bool read_phdr(const struct headers *headers, uint64_t offset, Elf64_Phdr *out)
{
	Elf32_Phdr small;

	if (headers->table->word_bytes == 8)
		return read_go_file_bytes(&headers->table->file, offset, out,
					  sizeof(*out));
	if (!read_go_file_bytes(&headers->table->file, offset, &small, sizeof(small)))
		return false;
	*out = (Elf64_Phdr){ .p_type = small.p_type,
			     .p_flags = small.p_flags,
			     .p_offset = small.p_offset,
			     .p_vaddr = small.p_vaddr,
			     .p_filesz = small.p_filesz };
	return true;
}

/* Whether the first note of a segment is the one that Go's linker writes. If another
 * linker has put several notes into one segment, it is still the first one, or its
 * section identifies it. */
static bool is_go_note(const struct pm_go_table *table, const Elf64_Phdr *phdr)
{
	Elf64_Nhdr note;
	char name[4];

	return phdr->p_filesz > sizeof(note) + sizeof(name) &&
	       read_go_file_bytes(&table->file, phdr->p_offset, &note, sizeof(note)) &&
	       read_go_file_bytes(&table->file, phdr->p_offset + sizeof(note), name,
				  sizeof(name)) &&
	       note.n_type == GO_NOTE && memcmp(name, "Go\0\0", sizeof(name)) == 0;
}

/* Reads DT_RELA and DT_RELASZ. Only 64-bit programs have them; others keep addends in
 * place. */
static void read_dynamic(struct headers *headers, const Elf64_Phdr *phdr)
{
	enum {
		ENTRIES_MAX = 256
	};
	Elf64_Dyn dyn;

	for (uint64_t i = 0; i < ENTRIES_MAX && i < phdr->p_filesz / sizeof(dyn); i++) {
		if (!read_go_file_bytes(&headers->table->file,
					phdr->p_offset + i * sizeof(dyn), &dyn,
					sizeof(dyn)) ||
		    dyn.d_tag == DT_NULL)
			return;
		if (dyn.d_tag == DT_RELA)
			headers->rela = dyn.d_un.d_ptr;
		else if (dyn.d_tag == DT_RELASZ)
			headers->rela_size = dyn.d_un.d_val;
	}
}

static void read_phdrs(struct headers *headers, uint64_t offset, uint64_t entry_bytes,
		       uint64_t len)
{
	struct pm_go_table *table = headers->table;

	for (uint64_t i = 0; i < len && i < PHDRS_MAX; i++) {
		Elf64_Phdr phdr;

		if (!read_phdr(headers, offset + i * entry_bytes, &phdr))
			return;
		if (phdr.p_type == PT_LOAD && table->loads_len < PM_GO_LOADS_MAX)
			table->loads[table->loads_len++] = (struct pm_go_load){
				.vaddr = phdr.p_vaddr,
				.offset = phdr.p_offset,
				.filesz = phdr.p_filesz,
				.flags = phdr.p_flags,
			};
		else if (phdr.p_type == PT_NOTE)
			headers->is_go |= is_go_note(table, &phdr);
		else if (phdr.p_type == PT_DYNAMIC && table->word_bytes == 8)
			read_dynamic(headers, &phdr);
	}
}

static bool read_shdr(const struct headers *headers, uint64_t index, Elf64_Shdr *out)
{
	uint64_t offset = headers->shoff + index * headers->shentsize;
	Elf32_Shdr small;

	if (headers->table->word_bytes == 8)
		return read_go_file_bytes(&headers->table->file, offset, out,
					  sizeof(*out));
	if (!read_go_file_bytes(&headers->table->file, offset, &small, sizeof(small)))
		return false;
	*out = (Elf64_Shdr){ .sh_name = small.sh_name,
			     .sh_type = small.sh_type,
			     .sh_addr = small.sh_addr,
			     .sh_offset = small.sh_offset,
			     .sh_size = small.sh_size };
	return true;
}

static void read_shdrs(struct headers *headers, uint64_t names)
{
	char name[SECTION_NAME_BYTES_MAX];
	Elf64_Shdr shdr;

	if (headers->shoff == 0 || !read_shdr(headers, names, &shdr))
		return;
	headers->names_offset = shdr.sh_offset;
	headers->names_size = shdr.sh_size;
	for (uint64_t i = 1; i < headers->shnum && i < SECTIONS_MAX; i++) {
		size_t len = sizeof(name);

		if (!read_shdr(headers, i, &shdr))
			return;
		if (shdr.sh_name >= headers->names_size)
			continue;
		if (len > headers->names_size - shdr.sh_name)
			len = headers->names_size - shdr.sh_name;
		memset(name, 0, sizeof(name));
		if (!read_go_file_bytes(&headers->table->file,
					headers->names_offset + shdr.sh_name, name,
					len) ||
		    !memchr(name, '\0', sizeof(name)) || !pm_go_is_section(name))
			continue;
		headers->is_go = true;
		if (strstr(name, "gopclntab") && shdr.sh_type != SHT_NOBITS)
			headers->section = shdr.sh_addr;
	}
}

static int read_headers(struct headers *headers, const struct pm_go_file *file)
{
	struct pm_go_table *table = headers->table;
	union {
		unsigned char ident[EI_NIDENT];
		Elf32_Ehdr h32;
		Elf64_Ehdr h64;
	} header;

	if (!read_go_file_bytes(file, 0, &header.h32, sizeof(header.h32)) ||
	    memcmp(header.ident, ELFMAG, SELFMAG) != 0 ||
	    header.ident[EI_DATA] != ELFDATA2LSB)
		return -ENOENT;
	table->file = *file;
	if (header.ident[EI_CLASS] == ELFCLASS32) {
		table->word_bytes = 4;
		table->machine = header.h32.e_machine;
		headers->shoff = header.h32.e_shoff;
		headers->shentsize = header.h32.e_shentsize;
		headers->shnum = header.h32.e_shnum;
		read_phdrs(headers, header.h32.e_phoff, header.h32.e_phentsize,
			   header.h32.e_phnum);
		read_shdrs(headers, header.h32.e_shstrndx);
		return 0;
	}
	if (!read_go_file_bytes(file, 0, &header.h64, sizeof(header.h64)))
		return -ENOENT;
	table->word_bytes = 8;
	table->machine = header.h64.e_machine;
	headers->shoff = header.h64.e_shoff;
	headers->shentsize = header.h64.e_shentsize;
	headers->shnum = header.h64.e_shnum;
	read_phdrs(headers, header.h64.e_phoff, header.h64.e_phentsize,
		   header.h64.e_phnum);
	read_shdrs(headers, header.h64.e_shstrndx);
	return 0;
}

/* ---- module data ------------------------------------------------------------------------ */

/* Whether the type is R_X86_64_RELATIVE or R_AARCH64_RELATIVE. */
static bool is_relative_reloc(const struct pm_go_table *table, uint64_t info)
{
	if (table->machine == EM_AARCH64)
		return info == R_AARCH64_RELATIVE;
	return info == R_X86_64_RELATIVE;
}

/* Returns false if there is no such relocation, or the limit is reached. */
static bool read_reloc(struct headers *headers, uint64_t index, Elf64_Rela *out)
{
	const uint8_t *bytes;

	if (index >= headers->rela_size / sizeof(*out) || headers->relocs_left == 0)
		return false;
	headers->relocs_left--;
	bytes = go_bytes(headers->table, headers->rela + index * sizeof(*out),
			 sizeof(*out));
	if (bytes)
		memcpy(out, bytes, sizeof(*out));
	return bytes;
}

/* Reads the words of the module data at @svma that the loader will fill in by
 * relocations. */
static void read_relocated(struct headers *headers, uint64_t svma, uint64_t *words)
{
	Elf64_Rela rela;

	for (uint64_t i = 0; read_reloc(headers, i, &rela); i++) {
		uint64_t word = (rela.r_offset - svma) / headers->table->word_bytes;

		if (rela.r_offset >= svma && word < MODULE_WORDS &&
		    is_relative_reloc(headers->table, rela.r_info))
			words[word] = (uint64_t)rela.r_addend;
	}
}

/* Copies the addresses that the table needs from module data, if these belong to this
 * table. */
static bool use_go_module(struct pm_go_table *table, const uint64_t *words)
{
	uint64_t text = words[MODULE_TEXT];
	uint64_t funcdata = words[MODULE_FUNCDATA_1_18];

	if (table->layout >= PM_GO_1_20)
		funcdata = words[MODULE_FUNCDATA_1_20];

	if (words[0] != table->header || words[MODULE_NAMES] != table->names ||
	    !go_is_code(table, text) || (table->text != 0 && table->text != text))
		return false;
	table->text = text;
	if (go_bytes_left(table, funcdata) > 0)
		table->funcdata = funcdata;
	else
		table->funcdata = 0;
	return true;
}

static bool find_go_module_by_relocs(struct headers *headers)
{
	Elf64_Rela rela;
	int candidates = 0;

	for (uint64_t i = 0; read_reloc(headers, i, &rela); i++) {
		uint64_t words[MODULE_WORDS] = { 0 };

		if (!is_relative_reloc(headers->table, rela.r_info) ||
		    (uint64_t)rela.r_addend != headers->table->header)
			continue;
		if (++candidates > CANDIDATES_MAX)
			break;
		read_relocated(headers, rela.r_offset, words);
		if (use_go_module(headers->table, words))
			return true;
	}
	return false;
}

static bool use_go_module_at(struct pm_go_table *table, uint64_t svma)
{
	uint64_t words[MODULE_WORDS];

	for (size_t i = 0; i < MODULE_WORDS; i++)
		if (!go_read_word(table, svma + i * table->word_bytes, &words[i]))
			return false;
	return use_go_module(table, words);
}

/* Calls @use for each word in the segments that satisfies @is_wanted, with the word's
 * address, until @use returns true. */
struct search {
	bool (*is_wanted)(const struct pm_go_table *table, const uint8_t *word);
	bool (*use)(struct pm_go_table *table, uint64_t svma);
	uint32_t flags, no_flags; /* PF_* that a segment must have, and must not have */
	uint8_t bytes; /* size of a word, which is aligned to that size */
};

static bool search_segments(struct pm_go_table *table, const struct search *search)
{
	uint64_t left = SEARCHED_BYTES_MAX;
	int candidates = 0;

	for (size_t i = 0; i < table->loads_len; i++) {
		const struct pm_go_load *load = &table->loads[i];
		uint64_t skip = -load->vaddr & (search->bytes - 1u);

		if ((load->flags & search->flags) != search->flags ||
		    (load->flags & search->no_flags))
			continue;
		while (skip < load->filesz && left >= CHUNK_BYTES) {
			uint64_t len = load->filesz - skip;
			const uint8_t *chunk;

			len = PM_MIN(len, CHUNK_BYTES);
			left -= CHUNK_BYTES;
			chunk = go_bytes(table, load->vaddr + skip, len);
			if (!chunk)
				break;
			for (uint64_t at = 0; at + search->bytes <= len;
			     at += search->bytes) {
				if (!search->is_wanted(table, chunk + at))
					continue;
				if (search->use(table, load->vaddr + skip + at))
					return true;
				if (++candidates >= CANDIDATES_MAX)
					return false;
			}
			skip += CHUNK_BYTES;
		}
	}
	return false;
}

static bool points_to_table(const struct pm_go_table *table, const uint8_t *word)
{
	uint64_t value = 0;

	memcpy(&value, word, table->word_bytes);
	return value == table->header;
}

static void find_go_module(struct headers *headers)
{
	const struct search search = { .is_wanted = points_to_table,
				       .use = use_go_module_at,
				       .flags = PF_W,
				       .no_flags = PF_X,
				       .bytes = headers->table->word_bytes };

	if (!search_segments(headers->table, &search))
		find_go_module_by_relocs(headers);
}

/* ---- public ------------------------------------------------------------------------------ */

static bool use_go_header_at(struct pm_go_table *table, uint64_t svma)
{
	return go_read_header(table, svma) == 0;
}

int pm_go_open(struct pm_go_table *out, const struct pm_go_file *file)
{
	static const struct search search = { .is_wanted = go_is_magic,
					      .use = use_go_header_at,
					      .no_flags = PF_X,
					      .bytes = 8 };
	struct pm_go_table table = { 0 };
	struct headers headers = { .table = &table, .relocs_left = RELOCS_READ_MAX };

	if (read_headers(&headers, file) < 0)
		return -ENOENT;
	if (headers.section == 0 || go_read_header(&table, headers.section) < 0) {
		if (!headers.is_go && headers.names_size > 0)
			return -ENOENT;
		if (!search_segments(&table, &search))
			return -ENOENT;
	}
	if (table.layout >= PM_GO_1_18)
		find_go_module(&headers);
	if (go_read_range(&table) < 0)
		return -ENOENT;
	*out = table;
	return 0;
}
