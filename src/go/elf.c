/* SPDX-License-Identifier: MIT */
/*
 * Finds .gopclntab and the module data (runtime.moduledata), which says where code and
 * function data start. Both may lack a name: in position-independent programs, linkers
 * merge the section into .data.rel.ro, and sstrip removes all section headers.
 */
#include "go-internal.h"

#include <elf.h>
#include <string.h>

enum {
	PHDRS_MAX = 256,
	SECTIONS_MAX = 1 << 12, /* Go's own programs have about thirty */
	NAME_BYTES_MAX = 32,
	SEARCHED_BYTES_MAX = 1 << 28, /* the largest programs seen have 150 MB */
	CHUNK_BYTES = 1 << 12,
	CANDIDATES_MAX = 16,
	/* Relocations read for one file, including repeated reads: Kubernetes' largest
	 * programs have 300,000, which are read twice. */
	RELOCS_READ_MAX = 1 << 21,
	/* Words of moduledata (runtime/symtab.go). */
	MODULE_NAMES = 1,
	MODULE_TEXT = 22,
	MODULE_FUNCDATA_1_18 = 38,
	MODULE_FUNCDATA_1_20 = 40, /* covctrs and ecovctrs came in between */
	MODULE_WORDS = 41,
	GO_NOTE = 4, /* ELF_NOTE_GOBUILDID_TAG, cmd/internal/buildid/note.go */
};

/* The fields of the file's headers that the search for the table needs. */
struct headers {
	struct pm_go_table *table;
	uint64_t shoff, shentsize, shnum, names_offset, names_size;
	uint64_t rela, rela_size; /* svma; size 0: none */
	uint32_t relocs_left; /* relocations that may still be read */
	bool is_go; /* a note or a section shows it */
	uint64_t section; /* svma of the table by the section's name; 0: none has it */
};

bool pm_go_is_section(const char *name)
{
	return strcmp(name, ".gopclntab") == 0 ||
	       strcmp(name, ".data.rel.ro.gopclntab") == 0 ||
	       strcmp(name, ".go.buildinfo") == 0 ||
	       strcmp(name, ".note.go.buildid") == 0;
}

/* ---- bytes by address ------------------------------------------------------------------ */

static const struct pm_go_load *find_load(const struct pm_go_table *table, uint64_t svma)
{
	for (size_t i = 0; i < table->loads_len; i++)
		if (svma - table->loads[i].vaddr < table->loads[i].filesz)
			return &table->loads[i];
	return NULL;
}

uint64_t pm_go_bytes_left(const struct pm_go_table *table, uint64_t svma)
{
	const struct pm_go_load *load = find_load(table, svma);

	if (load)
		return load->filesz - (svma - load->vaddr);
	return 0;
}

const uint8_t *pm_go_bytes(const struct pm_go_table *table, uint64_t svma, uint64_t len)
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

bool pm_go_is_code(const struct pm_go_table *table, uint64_t svma)
{
	const struct pm_go_load *load = find_load(table, svma);

	return load && (load->flags & PF_X);
}

bool pm_go_read_u32(const struct pm_go_table *table, uint64_t svma, uint32_t *out)
{
	const uint8_t *bytes = pm_go_bytes(table, svma, sizeof(*out));

	if (bytes)
		memcpy(out, bytes, sizeof(*out));
	return bytes;
}

bool pm_go_read_word(const struct pm_go_table *table, uint64_t svma, uint64_t *out)
{
	const uint8_t *bytes;
	uint32_t half;

	if (table->word_bytes == 4) {
		if (!pm_go_read_u32(table, svma, &half))
			return false;
		*out = half;
		return true;
	}
	bytes = pm_go_bytes(table, svma, sizeof(*out));
	if (bytes)
		memcpy(out, bytes, sizeof(*out));
	return bytes;
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
 * linker has put several notes into one segment, it is still the first, or its section
 * identifies it. */
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

/* Reads DT_RELA and DT_RELASZ; only 64-bit programs have them, others keep addends in
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
	char name[NAME_BYTES_MAX];
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

/* R_X86_64_RELATIVE, R_AARCH64_RELATIVE */
static bool is_relative_reloc(const struct pm_go_table *table, uint64_t info)
{
	if (table->machine == EM_AARCH64)
		return info == R_AARCH64_RELATIVE;
	return info == R_X86_64_RELATIVE;
}

/* False: there is no such relocation, or the limit is reached. */
static bool read_reloc(struct headers *headers, uint64_t index, Elf64_Rela *out)
{
	const uint8_t *bytes;

	if (index >= headers->rela_size / sizeof(*out) || headers->relocs_left == 0)
		return false;
	headers->relocs_left--;
	bytes = pm_go_bytes(headers->table, headers->rela + index * sizeof(*out),
			    sizeof(*out));
	if (bytes)
		memcpy(out, bytes, sizeof(*out));
	return bytes;
}

/* Reads the words of the module data at @svma that the loader fills in by relocations. */
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

/* Copies from module data the addresses that the table needs, if it is the data of
 * this table. */
static bool use_go_module(struct pm_go_table *table, const uint64_t *words)
{
	uint64_t text = words[MODULE_TEXT];
	uint64_t funcdata = words[MODULE_FUNCDATA_1_18];

	if (table->layout >= PM_GO_1_20)
		funcdata = words[MODULE_FUNCDATA_1_20];

	if (words[0] != table->header || words[MODULE_NAMES] != table->names ||
	    !pm_go_is_code(table, text) || (table->text != 0 && table->text != text))
		return false;
	table->text = text;
	if (pm_go_bytes_left(table, funcdata) > 0)
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
		if (!pm_go_read_word(table, svma + i * table->word_bytes, &words[i]))
			return false;
	return use_go_module(table, words);
}

/* Calls @use with the address of each word in the segments that satisfies @is_wanted,
 * until @use returns true. */
struct search {
	bool (*is_wanted)(const struct pm_go_table *table, const uint8_t *word);
	bool (*use)(struct pm_go_table *table, uint64_t svma);
	uint32_t flags, no_flags; /* PF_* that a segment must have, and must not have */
	uint8_t bytes; /* of a word, which is aligned to its size */
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
			chunk = pm_go_bytes(table, load->vaddr + skip, len);
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
	return pm_go_read_header(table, svma) == 0;
}

int pm_go_open(struct pm_go_table *out, const struct pm_go_file *file)
{
	static const struct search search = { .is_wanted = pm_go_is_magic,
					      .use = use_go_header_at,
					      .no_flags = PF_X,
					      .bytes = 8 };
	struct pm_go_table table = { 0 };
	struct headers headers = { .table = &table, .relocs_left = RELOCS_READ_MAX };

	if (read_headers(&headers, file) < 0)
		return -ENOENT;
	if (headers.section == 0 || pm_go_read_header(&table, headers.section) < 0) {
		if (!headers.is_go && headers.names_size > 0)
			return -ENOENT;
		if (!search_segments(&table, &search))
			return -ENOENT;
	}
	if (table.layout >= PM_GO_1_18)
		find_go_module(&headers);
	if (pm_go_read_range(&table) < 0)
		return -ENOENT;
	*out = table;
	return 0;
}
