/* SPDX-License-Identifier: MIT */
/*
 * Reads line tables (DWARF 5 §6.2, DWARF 4 §6.2). The program is run once, and each row
 * is compared with the next wanted address; no table of rows is built.
 */
#include "dwarf-parts.h"

#include <limits.h>
#include <string.h>

enum {
	FORMATS_MAX = 32, /* of one table; five content types are known */
	OPCODE_BASE_MIN = 1,
};

/* ---- header --------------------------------------------------------------------------- */

struct header {
	struct pm_lines *lines;
	struct pm_reader reader; /* ends where the unit's table ends */
	uint8_t offset_size;
};

static const char *section_text_at(const struct pm_bytes *section, uint64_t offset)
{
	if (offset >= section->len ||
	    !memchr(section->data + offset, '\0', section->len - offset))
		return NULL;
	return (const char *)section->data + offset;
}

static uint64_t read_section_offset(struct header *header)
{
	if (header->offset_size == 8)
		return pm_reader_u64(&header->reader);
	return pm_reader_u32(&header->reader);
}

/* Reads one field of an entry (version 5). Returns false if the form is unknown or not
 * allowed. */
static bool read_name_table_field(struct header *header, uint64_t form, const char **text,
				  uint64_t *number)
{
	struct pm_reader *reader = &header->reader;
	const struct pm_dwarf *dwarf = header->lines->dwarf;

	switch (form) {
	case DW_FORM_string:
		*text = pm_reader_cstr(reader);
		break;
	case DW_FORM_line_strp:
		*text = section_text_at(&dwarf->line_str, read_section_offset(header));
		break;
	case DW_FORM_strp:
		*text = section_text_at(&dwarf->str, read_section_offset(header));
		break;
	case DW_FORM_strp_sup:
		read_section_offset(header);
		break;
	case DW_FORM_udata:
		*number = pm_quick_uleb(reader);
		break;
	case DW_FORM_data1:
		*number = pm_quick_u8(reader);
		break;
	case DW_FORM_data2:
		*number = pm_reader_u16(reader);
		break;
	case DW_FORM_data4:
		*number = pm_reader_u32(reader);
		break;
	case DW_FORM_data8:
		*number = pm_reader_u64(reader);
		break;
	case DW_FORM_data16:
		pm_reader_bytes(reader, 16);
		break;
	case DW_FORM_block:
		pm_reader_bytes(reader, pm_quick_uleb(reader));
		break;
	default:
		return false;
	}
	return !reader->failed;
}

enum name_table {
	TABLE_OF_DIRECTORIES,
	TABLE_OF_FILES,
};

/* Reads a table of directories or files (version 5). */
static int read_name_table(struct header *header, enum name_table table)
{
	struct pm_lines *lines = header->lines;
	struct pm_reader *reader = &header->reader;
	uint64_t formats[FORMATS_MAX][2], entries;
	uint8_t count = pm_quick_u8(reader);

	if (count > FORMATS_MAX)
		return -EBADMSG;
	for (size_t i = 0; i < count; i++) {
		formats[i][0] = pm_quick_uleb(reader);
		formats[i][1] = pm_quick_uleb(reader);
	}
	entries = pm_quick_uleb(reader);
	/* Each known form takes at least one byte; the loop therefore ends with the
	 * table. */
	if (reader->failed || (count == 0 && entries > 0))
		return -EBADMSG;
	for (uint64_t n = 0; n < entries; n++) {
		struct pm_line_file file = { 0 };
		int ret;

		for (size_t i = 0; i < count; i++) {
			const char *text = NULL;
			uint64_t number = 0;

			if (!read_name_table_field(header, formats[i][1], &text, &number))
				return -EBADMSG;
			if (formats[i][0] == DW_LNCT_path)
				file.name = text;
			else if (formats[i][0] == DW_LNCT_directory_index)
				file.dir = number;
		}
		if (table == TABLE_OF_FILES)
			ret = pm_vec_push(&lines->files, file);
		else
			ret = pm_vec_push(&lines->dirs, file.name);
		if (ret < 0)
			return ret;
	}
	return 0;
}

/* Reads the tables of versions 2 to 4: strings, terminated by an empty one. Directory 0
 * is the compilation directory. */
static int read_old_name_tables(struct header *header)
{
	struct pm_lines *lines = header->lines;
	struct pm_reader *reader = &header->reader;
	const char *name;

	if (pm_vec_push(&lines->dirs, lines->comp_dir) < 0)
		return -ENOMEM;
	while ((name = pm_reader_cstr(reader)) && name[0])
		if (pm_vec_push(&lines->dirs, name) < 0)
			return -ENOMEM;
	/* Numbers of files start at 1. */
	if (pm_vec_push(&lines->files, (struct pm_line_file){ 0 }) < 0)
		return -ENOMEM;
	while ((name = pm_reader_cstr(reader)) && name[0]) {
		struct pm_line_file file = { .name = name };

		file.dir = pm_quick_uleb(reader);
		pm_quick_uleb(reader); /* modification time */
		pm_quick_uleb(reader); /* length */
		if (pm_vec_push(&lines->files, file) < 0)
			return -ENOMEM;
	}
	if (reader->failed)
		return -EBADMSG;
	return 0;
}

static int read_line_header(struct header *header)
{
	struct pm_lines *lines = header->lines;
	struct pm_reader *reader = &header->reader;
	uint64_t length;
	size_t tables;
	int ret;

	lines->version = pm_reader_u16(reader);
	if (lines->version < 2 || lines->version > 5)
		return -EBADMSG;
	if (lines->version >= 5) {
		lines->address_size = pm_quick_u8(reader);
		pm_quick_u8(reader); /* segment selector size */
	}
	length = read_section_offset(header);
	if (length > pm_reader_left(reader))
		return -EBADMSG;
	tables = reader->pos + length; /* end of the tables and start of the program */
	lines->min_instruction = pm_quick_u8(reader);
	if (lines->version >= 4)
		lines->max_operations = pm_quick_u8(reader);
	else
		lines->max_operations = 1;
	lines->default_is_stmt = pm_quick_u8(reader) != 0;
	lines->line_base = (int8_t)pm_quick_u8(reader);
	lines->line_range = pm_quick_u8(reader);
	lines->opcode_base = pm_quick_u8(reader);
	if (reader->failed || lines->line_range == 0 ||
	    lines->opcode_base < OPCODE_BASE_MIN)
		return -EBADMSG;
	lines->opcode_lengths = pm_reader_bytes(reader, lines->opcode_base - 1u);
	if (reader->failed || reader->pos > tables)
		return -EBADMSG;
	lines->program = (struct pm_bytes){ reader->data + tables, reader->len - tables };
	if (lines->version < 5)
		return read_old_name_tables(header);
	ret = read_name_table(header, TABLE_OF_DIRECTORIES);
	if (ret < 0)
		return ret;
	return read_name_table(header, TABLE_OF_FILES);
}

int pm_lines_open(struct pm_lines *lines, struct pm_dwarf *dwarf,
		  const struct pm_unit *unit)
{
	struct header header = { .lines = lines };
	const struct pm_bytes *section = &dwarf->line;
	Dwarf_Die die = unit->die;
	Dwarf_Attribute attr;
	Dwarf_Word offset;
	uint64_t length;
	int ret;

	*lines = (struct pm_lines){ .dwarf = dwarf,
				    .unit = unit,
				    .address_size = unit->address_size };
	if (dwarf_attr(&die, DW_AT_comp_dir, &attr) &&
	    dwarf_whatform(&attr) != DW_FORM_GNU_strp_alt &&
	    dwarf_whatform(&attr) != DW_FORM_strp_sup)
		lines->comp_dir = dwarf_formstring(&attr);
	if (!dwarf_attr(&die, DW_AT_stmt_list, &attr) ||
	    dwarf_formudata(&attr, &offset) != 0 || offset >= section->len)
		return -ENOENT;
	pm_reader_init(&header.reader, section->data + offset, section->len - offset);
	length = pm_reader_u32(&header.reader);
	header.offset_size = 4;
	if (length == UINT32_MAX) {
		length = pm_reader_u64(&header.reader);
		header.offset_size = 8;
	}
	if (length < pm_reader_left(&header.reader))
		header.reader.len = header.reader.pos + length;
	if (dwarf->lines_budget == 0)
		return -EBADMSG;
	ret = read_line_header(&header);
	/* Units may share a table, but there is a limit to how often its list of files
	 * may be read again. */
	dwarf->lines_budget -= PM_MIN(header.reader.pos, dwarf->lines_budget);
	/* Files before the damaged entry keep their numbers. Without the program, the
	 * table is useless. */
	if (ret < 0 && !lines->program.data)
		pm_lines_release(lines);
	if (!lines->program.data)
		return -EBADMSG;
	return 0;
}

void pm_lines_release(struct pm_lines *lines)
{
	pm_vec_release(&lines->dirs);
	pm_vec_release(&lines->files);
	lines->program = (struct pm_bytes){ 0 };
}

/* ---- program -------------------------------------------------------------------------- */

struct row {
	uint64_t address, file, line, op_index;
};

struct machine {
	struct pm_lines *lines;
	const struct pm_wanted *wanted;
	struct pm_hit *hits;
	uint32_t number;
	struct pm_reader reader;
	struct row now;
	struct row last; /* the previous row; valid in a sequence */
	struct row lined; /* the last row whose line is not 0; valid if has_lined */
	bool in_sequence, has_lined;
	size_t next; /* index of the first wanted address not below last.address */
	pm_line_row_fn visit; /* NULL: the rows are matched with the wanted addresses */
	void *user;
	bool is_stmt;
};

static void machine_start_sequence(struct machine *machine)
{
	machine->now = (struct row){ .file = 1, .line = 1 };
	machine->in_sequence = false;
	machine->has_lined = false;
	machine->is_stmt = machine->lines->default_is_stmt;
}

static void machine_emit_row(const struct machine *machine, struct pm_hit *hit)
{
	const struct row *row = &machine->last;

	if (hit->unit != machine->number || hit->has_line)
		return;
	hit->has_line = true;
	/* Line 0 means code without a line. The preceding line in the same file is the
	 * best one to show, unless it belongs to another function. */
	if (row->line == 0 && machine->has_lined && machine->lined.file == row->file)
		row = &machine->lined;
	hit->is_borrowed = row == &machine->lined;
	if (row->file < UINT32_MAX)
		hit->file = (uint32_t)row->file;
	else
		hit->file = UINT32_MAX;
	if (row->line < UINT32_MAX)
		hit->line = (uint32_t)row->line;
	else
		hit->line = 0;
	hit->row = row->address;
}

/* Called when `now` is complete: the code from the last row up to it belongs to the last
 * row. */
static void machine_append_row(struct machine *machine)
{
	const struct pm_wanted *wanted = machine->wanted;
	const struct row *now = &machine->now;

	if (machine->visit) {
		machine->visit(machine->user,
			       &(struct pm_line_row){ .address = now->address,
						      .file = now->file,
						      .line = now->line,
						      .is_stmt = machine->is_stmt });
		return;
	}
	if (!machine->in_sequence || now->address < machine->last.address) {
		/* Sequences of dropped functions start outside of any code section. */
		bool is_code = pm_elf_image_code(machine->lines->dwarf->image,
						 now->address) != NULL;

		machine->in_sequence = true;
		machine->has_lined = false;
		if (is_code)
			machine->next = pm_wanted_from(wanted, now->address);
		else
			machine->next = wanted->len;
	}
	while (machine->next < wanted->len &&
	       wanted->addresses[machine->next] < now->address)
		machine_emit_row(machine, &machine->hits[machine->next++]);
	machine->last = *now;
	if (now->line > 0) {
		machine->lined = *now;
		machine->has_lined = true;
	}
}

static void machine_advance_address(struct machine *machine, uint64_t operations)
{
	const struct pm_lines *lines = machine->lines;
	struct row *now = &machine->now;

	if (lines->max_operations <= 1) {
		now->address += operations * lines->min_instruction;
		return;
	}
	operations += now->op_index;
	now->address += operations / lines->max_operations * lines->min_instruction;
	now->op_index = operations % lines->max_operations;
}

static void machine_run_extended_opcode(struct machine *machine)
{
	struct pm_reader *reader = &machine->reader;
	uint64_t length = pm_quick_uleb(reader);
	size_t end;
	uint8_t opcode;

	if (length == 0 || length > pm_reader_left(reader)) {
		reader->failed = true;
		return;
	}
	end = reader->pos + length;
	opcode = pm_quick_u8(reader);
	if (opcode == DW_LNE_end_sequence) {
		if (machine->visit)
			machine->visit(
				machine->user,
				&(struct pm_line_row){ .address = machine->now.address,
						       .ends = true });
		else
			machine_append_row(machine);
		machine_start_sequence(machine);
	} else if (opcode == DW_LNE_set_address) {
		if (length - 1 >= 8)
			machine->now.address = pm_reader_u64(reader);
		else if (length - 1 >= 4)
			machine->now.address = pm_reader_u32(reader);
		else
			machine->now.address = 0;
		machine->now.op_index = 0;
	}
	/* DW_LNE_define_file adds files, but current compilers do not use it. */
	reader->pos = end;
}

static void machine_run_standard_opcode(struct machine *machine, uint8_t opcode)
{
	const struct pm_lines *lines = machine->lines;
	struct pm_reader *reader = &machine->reader;
	struct row *now = &machine->now;

	switch (opcode) {
	case DW_LNS_copy:
		machine_append_row(machine);
		break;
	case DW_LNS_advance_pc:
		machine_advance_address(machine, pm_quick_uleb(reader));
		break;
	case DW_LNS_advance_line:
		now->line = (uint32_t)(now->line + (uint64_t)pm_reader_sleb(reader));
		break;
	case DW_LNS_set_file:
		now->file = pm_quick_uleb(reader);
		break;
	case DW_LNS_negate_stmt:
		machine->is_stmt = !machine->is_stmt;
		break;
	case DW_LNS_const_add_pc:
		machine_advance_address(machine,
					(255u - lines->opcode_base) / lines->line_range);
		break;
	case DW_LNS_fixed_advance_pc:
		now->address += pm_reader_u16(reader);
		now->op_index = 0;
		break;
	default:
		/* Opcodes for columns and flags, and those of later versions: all
		 * arguments are LEB128. */
		for (uint8_t i = 0; i < lines->opcode_lengths[opcode - 1]; i++)
			pm_quick_uleb(reader);
		break;
	}
}

static void machine_run_special_opcode(struct machine *machine, uint8_t opcode)
{
	const struct pm_lines *lines = machine->lines;
	uint8_t adjusted = (uint8_t)(opcode - lines->opcode_base);

	machine_advance_address(machine, adjusted / lines->line_range);
	machine->now.line = (uint32_t)((int64_t)machine->now.line + lines->line_base +
				       adjusted % lines->line_range);
	machine_append_row(machine);
}

static void machine_run_program(struct machine *machine)
{
	struct pm_lines *lines = machine->lines;
	struct pm_reader *reader = &machine->reader;

	if (lines->program.len > lines->dwarf->lines_budget)
		return;
	lines->dwarf->lines_budget -= lines->program.len;
	pm_reader_init(reader, lines->program.data, lines->program.len);
	machine_start_sequence(machine);
	while (pm_reader_left(reader) > 0) {
		uint8_t opcode = pm_quick_u8(reader);

		if (opcode >= lines->opcode_base)
			machine_run_special_opcode(machine, opcode);
		else if (opcode == 0)
			machine_run_extended_opcode(machine);
		else
			machine_run_standard_opcode(machine, opcode);
	}
}

void pm_lines_run(struct pm_lines *lines, const struct pm_wanted *wanted,
		  struct pm_hit *hits, uint32_t number)
{
	struct machine machine = {
		.lines = lines, .wanted = wanted, .hits = hits, .number = number
	};

	machine_run_program(&machine);
}

void pm_lines_visit(struct pm_lines *lines, pm_line_row_fn visit, void *user)
{
	struct machine machine = { .lines = lines, .visit = visit, .user = user };

	machine_run_program(&machine);
}

/* ---- files ---------------------------------------------------------------------------- */

/* Appends the components of @path to the normalised path @str. */
static void append_path_part(struct pm_str *str, const char *path)
{
	size_t left = strnlen(path, PATH_MAX);

	while (left > 0) {
		size_t len = 0;

		while (len < left && path[len] != '/')
			len++;
		if (len == 2 && path[0] == '.' && path[1] == '.' && str->len > 1) {
			/* Removing the last component is wrong if it is a symbolic link,
			 * but other tools show the same. */
			while (str->len > 0 && str->data[str->len - 1] != '/')
				str->len--;
			if (str->len > 1)
				str->len--;
			str->data[str->len] = '\0';
		} else if (len > 0 && !(len == 1 && path[0] == '.')) {
			if (str->len > 0 && str->data[str->len - 1] != '/')
				pm_str_putc(str, '/');
			pm_str_append(str, path, len);
		}
		path += len;
		left -= len;
		if (left > 0) {
			path++;
			left--;
		}
	}
}

static const char *make_line_file_path(const struct pm_lines *lines,
				       const struct pm_line_file *file,
				       struct pm_texts *texts)
{
	const char *dir =
		file->dir < lines->dirs.len ? lines->dirs.data[file->dir] : NULL;
	const char *parts[] = { lines->comp_dir, dir, file->name };
	size_t first = PM_ARRAY_LEN(parts) - 1;
	struct pm_str str = { 0 };
	const char *path;

	/* Start at the last part that is absolute, or else at the first part. */
	while (first > 0 && !(parts[first] && parts[first][0] == '/'))
		first--;
	if (parts[first] && parts[first][0] == '/')
		pm_str_putc(&str, '/');
	/* Directory 0, if it is relative, is the compilation directory itself. */
	for (size_t i = first; i < PM_ARRAY_LEN(parts); i++)
		if (parts[i] && !(i == 1 && first == 0 && file->dir == 0))
			append_path_part(&str, parts[i]);
	if (str.failed || str.len == 0)
		path = NULL;
	else
		path = pm_texts_add(texts, str.data, str.len);
	pm_str_release(&str);
	return path;
}

const char *pm_lines_path(struct pm_lines *lines, uint64_t number, struct pm_texts *texts)
{
	struct pm_line_file *file;

	if (number >= lines->files.len)
		return NULL;
	file = &lines->files.data[number];
	if (!file->path && file->name && file->name[0])
		file->path = make_line_file_path(lines, file, texts);
	return file->path;
}
