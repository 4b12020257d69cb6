/* SPDX-License-Identifier: MIT */
/*
 * Reads ELF files (gABI "Object Files") with pread(2) into our own memory: if a file is
 * truncated at the same time, that causes an error and not a signal. Only small pieces
 * are read: headers, and the tables that are needed.
 */
#include "probe-internal.h"

#include <elf.h>
#include <string.h>
#include <sys/stat.h>

enum {
	SEGMENTS_MAX = 4096,
	SECTIONS_MAX = 65536,
	SECTION_NAMES_MAX = 1 << 22,
	SYMBOLS_BYTES_MAX = 192 << 20, /* 8 million symbols */
	STRINGS_BYTES_MAX = 384 << 20,
	NAME_MAX_BYTES = 16384,
	/* Names may be suffixes of one another, but a table that consists only of such
	 * names is a trap. */
	BUDGET_RATIO = 8,
	BUDGET_FREE = 1 << 20,
};

int pm_probe_elf_read(const struct pm_probe_elf *elf, uint64_t offset, uint64_t len,
		      size_t max, char **out)
{
	PM_AUTO_FREE char *bytes = NULL;
	size_t have = 0;

	if (len > max)
		return -EFBIG;
	if (offset > elf->size || len > elf->size - offset)
		return -ENODATA;
	bytes = malloc((size_t)len + 1);
	if (!bytes)
		return -ENOMEM;
	while (have < len) {
		ssize_t n = pread(elf->fd, bytes + have, (size_t)len - have,
				  (off_t)(offset + have));

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			return -ENODATA;
		have += (size_t)n;
	}
	bytes[len] = '\0';
	*out = PM_TAKE_PTR(bytes);
	return 0;
}

/* Reads a table of @count entries of @stride bytes each. Only the first @entry bytes of
 * an entry are known. */
static int probe_elf_read_table(const struct pm_probe_elf *elf, uint64_t offset,
				uint64_t count, size_t stride, size_t entry, char **out)
{
	uint64_t len;

	if (stride < entry || __builtin_mul_overflow(count, (uint64_t)stride, &len))
		return -ENODATA;
	return pm_probe_elf_read(elf, offset, len, (size_t)SECTIONS_MAX * 256, out);
}

static int probe_elf_add_segment(struct pm_probe_elf *elf, const Elf64_Phdr *phdr)
{
	struct pm_probe_segment segment = {
		.start = phdr->p_vaddr,
		.offset = phdr->p_offset,
		.executable = phdr->p_flags & PF_X,
		.writable = phdr->p_flags & PF_W,
	};

	if (phdr->p_type == PT_DYNAMIC) {
		elf->dynamic = phdr->p_offset;
		elf->dynamic_len = phdr->p_filesz;
	}
	elf->has_interpreter |= phdr->p_type == PT_INTERP;
	if (phdr->p_type != PT_LOAD || phdr->p_offset > elf->size)
		return 0;
	/* Only bytes in the file count. The code that a debug file describes is not in
	 * it; an address there has no file offset. */
	if (__builtin_add_overflow(phdr->p_vaddr, phdr->p_filesz, &segment.end))
		return 0;
	return pm_vec_push(&elf->segments, segment);
}

static int probe_elf_read_segments(struct pm_probe_elf *elf, uint64_t offset,
				   size_t count, size_t stride)
{
	PM_AUTO_FREE char *bytes = NULL;
	size_t entry = elf->is_64 ? sizeof(Elf64_Phdr) : sizeof(Elf32_Phdr);
	int ret;

	if (count > SEGMENTS_MAX)
		return 0;
	ret = probe_elf_read_table(elf, offset, count, stride, entry, &bytes);
	for (size_t i = 0; ret == 0 && i < count; i++) {
		Elf64_Phdr phdr;
		Elf32_Phdr narrow;

		if (elf->is_64) {
			memcpy(&phdr, bytes + i * stride, sizeof(phdr));
		} else {
			memcpy(&narrow, bytes + i * stride, sizeof(narrow));
			phdr = (Elf64_Phdr){ .p_type = narrow.p_type,
					     .p_flags = narrow.p_flags,
					     .p_offset = narrow.p_offset,
					     .p_vaddr = narrow.p_vaddr,
					     .p_filesz = narrow.p_filesz };
		}
		ret = probe_elf_add_segment(elf, &phdr);
	}
	if (ret == -ENODATA)
		return 0;
	return ret;
}

static struct pm_probe_section find_section_of_pointer(const struct pm_probe_elf *elf,
						       const char *at)
{
	Elf64_Shdr wide;
	Elf32_Shdr narrow;

	if (elf->is_64) {
		memcpy(&wide, at, sizeof(wide));
		return (struct pm_probe_section){ wide.sh_name, wide.sh_type,
						  wide.sh_link, wide.sh_flags,
						  wide.sh_addr, wide.sh_offset,
						  wide.sh_size };
	}
	memcpy(&narrow, at, sizeof(narrow));
	return (struct pm_probe_section){ narrow.sh_name, narrow.sh_type,
					  narrow.sh_link, narrow.sh_flags,
					  narrow.sh_addr, narrow.sh_offset,
					  narrow.sh_size };
}

static int probe_elf_read_sections(struct pm_probe_elf *elf, uint64_t offset,
				   uint64_t count, size_t stride, uint32_t names)
{
	PM_AUTO_FREE char *bytes = NULL;
	size_t entry = elf->is_64 ? sizeof(Elf64_Shdr) : sizeof(Elf32_Shdr);
	int ret;

	if (offset == 0)
		return 0;
	/* Numbers that do not fit into 16 bits are in the first header (gABI
	 * "e_shnum"). */
	if (count == 0 || names == SHN_XINDEX) {
		struct pm_probe_section first;

		ret = probe_elf_read_table(elf, offset, 1, stride, entry, &bytes);
		if (ret < 0) {
			if (ret == -ENODATA)
				return 0;
			return ret;
		}
		first = find_section_of_pointer(elf, bytes);
		if (count == 0)
			count = first.size;
		if (names == SHN_XINDEX)
			names = first.link;
		free(PM_TAKE_PTR(bytes));
	}
	if (count > SECTIONS_MAX)
		return 0;
	ret = probe_elf_read_table(elf, offset, count, stride, entry, &bytes);
	for (size_t i = 0; ret == 0 && i < count; i++)
		ret = pm_vec_push(&elf->sections,
				  find_section_of_pointer(elf, bytes + i * stride));
	if (ret == 0 && names < elf->sections.len) {
		const struct pm_probe_section *section = &elf->sections.data[names];

		ret = pm_probe_elf_read(elf, section->offset, section->size,
					SECTION_NAMES_MAX, &elf->names);
		if (ret == 0)
			elf->names_len = (size_t)section->size;
	}
	if (ret == -ENOMEM)
		return ret;
	return 0;
}

static int probe_elf_read_header(struct pm_probe_elf *elf)
{
	unsigned char native =
		__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? ELFDATA2LSB : ELFDATA2MSB;
	PM_AUTO_FREE char *bytes = NULL;
	Elf64_Ehdr wide;
	Elf32_Ehdr narrow;
	int ret = pm_probe_elf_read(elf, 0, sizeof(narrow), sizeof(wide), &bytes);

	if (ret < 0) {
		if (ret == -ENODATA)
			return -ENOEXEC;
		return ret;
	}
	if (memcmp(bytes, ELFMAG, SELFMAG) != 0 ||
	    (unsigned char)bytes[EI_DATA] != native ||
	    (bytes[EI_CLASS] != ELFCLASS64 && bytes[EI_CLASS] != ELFCLASS32))
		return -ENOEXEC;
	elf->is_64 = bytes[EI_CLASS] == ELFCLASS64;
	if (!elf->is_64) {
		memcpy(&narrow, bytes, sizeof(narrow));
		wide = (Elf64_Ehdr){ .e_type = narrow.e_type,
				     .e_machine = narrow.e_machine,
				     .e_entry = narrow.e_entry,
				     .e_phoff = narrow.e_phoff,
				     .e_shoff = narrow.e_shoff,
				     .e_phentsize = narrow.e_phentsize,
				     .e_phnum = narrow.e_phnum,
				     .e_shentsize = narrow.e_shentsize,
				     .e_shnum = narrow.e_shnum,
				     .e_shstrndx = narrow.e_shstrndx };
	} else {
		free(PM_TAKE_PTR(bytes));
		ret = pm_probe_elf_read(elf, 0, sizeof(wide), sizeof(wide), &bytes);
		if (ret < 0) {
			if (ret == -ENODATA)
				return -ENOEXEC;
			return ret;
		}
		memcpy(&wide, bytes, sizeof(wide));
	}
	elf->type = wide.e_type;
	elf->machine = wide.e_machine;
	elf->entry = wide.e_entry;
	ret = probe_elf_read_segments(elf, wide.e_phoff, wide.e_phnum, wide.e_phentsize);
	if (ret < 0)
		return ret;
	return probe_elf_read_sections(elf, wide.e_shoff, wide.e_shnum, wide.e_shentsize,
				       wide.e_shstrndx);
}

int pm_probe_elf_open(struct pm_probe_elf *elf, int fd)
{
	struct stat st;
	int ret;

	*elf = (struct pm_probe_elf){ .fd = fd };
	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode) || st.st_size < 0)
		return -ENOEXEC;
	elf->size = (uint64_t)st.st_size;
	ret = probe_elf_read_header(elf);
	if (ret < 0)
		pm_probe_elf_close(elf);
	return ret;
}

void pm_probe_elf_close(struct pm_probe_elf *elf)
{
	pm_vec_release(&elf->segments);
	pm_vec_release(&elf->sections);
	free(elf->names);
	*elf = (struct pm_probe_elf){ .fd = -1 };
}

const struct pm_probe_section *pm_probe_elf_section(const struct pm_probe_elf *elf,
						    const char *name)
{
	for (size_t i = 0; i < elf->sections.len; i++) {
		const struct pm_probe_section *section = &elf->sections.data[i];

		/* The names are NUL-terminated. */
		if (section->name < elf->names_len &&
		    strcmp(elf->names + section->name, name) == 0)
			return section;
	}
	return NULL;
}

const struct pm_probe_segment *pm_probe_elf_segment(const struct pm_probe_elf *elf,
						    uint64_t address)
{
	for (size_t i = 0; i < elf->segments.len; i++) {
		const struct pm_probe_segment *segment = &elf->segments.data[i];

		if (address >= segment->start && address < segment->end)
			return segment;
	}
	return NULL;
}

bool pm_probe_elf_code(const struct pm_probe_elf *elf, uint64_t address, uint64_t *offset)
{
	const struct pm_probe_segment *segment = pm_probe_elf_segment(elf, address);
	uint64_t at;

	if (!segment || !segment->executable)
		return false;
	if (__builtin_add_overflow(address - segment->start, segment->offset, &at) ||
	    at >= elf->size)
		return false;
	*offset = at;
	return true;
}

/* ---- symbol tables ----------------------------------------------------------------------- */

static int probe_tables_read_symbols(struct pm_probe_tables *tables,
				     const struct pm_probe_elf *elf, uint32_t type)
{
	size_t entry = elf->is_64 ? sizeof(Elf64_Sym) : sizeof(Elf32_Sym);
	struct pm_probe_table *table = &tables->table[tables->len];
	const struct pm_probe_section *rows = NULL, *strings;
	int ret;

	for (size_t i = 0; i < elf->sections.len && !rows; i++)
		if (elf->sections.data[i].type == type)
			rows = &elf->sections.data[i];
	if (!rows || rows->link >= elf->sections.len || rows->flags & SHF_COMPRESSED)
		return 0;
	strings = &elf->sections.data[rows->link];
	*table = (struct pm_probe_table){ .is_64 = elf->is_64,
					  .dynamic = type == SHT_DYNSYM };
	ret = pm_probe_elf_read(elf, rows->offset, rows->size, SYMBOLS_BYTES_MAX,
				&table->rows);
	if (ret == 0)
		ret = pm_probe_elf_read(elf, strings->offset, strings->size,
					STRINGS_BYTES_MAX, &table->strings);
	if (ret < 0) {
		free(PM_TAKE_PTR(table->rows));
		if (ret == -ENODATA)
			return 0;
		return ret;
	}
	table->len = (size_t)rows->size / entry;
	table->strings_len = (size_t)strings->size;
	table->budget = BUDGET_FREE + BUDGET_RATIO * (uint64_t)table->strings_len;
	tables->len++;
	return 1;
}

int pm_probe_tables_open(struct pm_probe_tables *tables, const struct pm_probe_elf *elf,
			 const struct pm_probe_elf *debug)
{
	int ret;

	*tables = (struct pm_probe_tables){ 0 };
	ret = probe_tables_read_symbols(tables, elf, SHT_SYMTAB);
	if (ret == 0 && debug)
		ret = probe_tables_read_symbols(tables, debug, SHT_SYMTAB);
	tables->has_symtab = ret > 0;
	if (ret >= 0)
		ret = probe_tables_read_symbols(tables, elf, SHT_DYNSYM);
	if (ret < 0)
		pm_probe_tables_close(tables);
	if (ret < 0)
		return ret;
	return 0;
}

void pm_probe_tables_close(struct pm_probe_tables *tables)
{
	for (size_t i = 0; i < tables->len; i++) {
		free(tables->table[i].rows);
		free(tables->table[i].strings);
	}
	*tables = (struct pm_probe_tables){ 0 };
}

bool pm_probe_table_row(struct pm_probe_table *table, size_t index,
			struct pm_probe_symbol *out)
{
	Elf64_Sym symbol;
	Elf32_Sym narrow;
	char *name, *version;
	size_t len;

	if (table->is_64) {
		memcpy(&symbol, table->rows + index * sizeof(symbol), sizeof(symbol));
	} else {
		memcpy(&narrow, table->rows + index * sizeof(narrow), sizeof(narrow));
		symbol = (Elf64_Sym){ narrow.st_name,  narrow.st_info,  narrow.st_other,
				      narrow.st_shndx, narrow.st_value, narrow.st_size };
	}
	if (symbol.st_name >= table->strings_len)
		return false;
	name = table->strings + symbol.st_name;
	len = strnlen(name, NAME_MAX_BYTES);
	if (len == NAME_MAX_BYTES || len > table->budget)
		return false;
	table->budget -= len;
	/* "$x": mapping symbols of the Arm ABI; ".L": labels left by an assembler. */
	if (name[0] == '\0' || name[0] == '$' || strncmp(name, ".L", 2) == 0)
		return false;
	/* name@VERSION or name@@VERSION in .symtab; an @ at the start does not begin a
	 * version. */
	version = memchr(name + 1, '@', len - 1);
	if (version)
		*version = '\0';
	*out = (struct pm_probe_symbol){
		.name = name,
		.address = symbol.st_value,
		.size = symbol.st_size,
		.type = ELF64_ST_TYPE(symbol.st_info),
		.bind = ELF64_ST_BIND(symbol.st_info),
		.defined = symbol.st_shndx != SHN_UNDEF && symbol.st_shndx != SHN_COMMON,
		.dynamic = table->dynamic,
	};
	return true;
}
