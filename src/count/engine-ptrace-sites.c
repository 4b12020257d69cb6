/* SPDX-License-Identifier: MIT */
/*
 * The instructions of files that get a breakpoint wherever the file is mapped. Sources:
 * gABI; for the dynamic linker's _dl_debug_state(), where debuggers set a breakpoint,
 * glibc's elf/dl-debug.c and musl's ldso/dynlink.c.
 */
#include "engine-ptrace.h"

#include <elf.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

enum {
	SEGMENTS_MAX = 256, /* program headers that are examined */
	SECTIONS_MAX = 4096,
	SYMBOLS_MAX = 1 << 16, /* of a dynamic linker; glibc's has about thirty */
};

static const char linker_function[] = "_dl_debug_state";

static bool elf_read_at(int fd, uint64_t offset, void *out, size_t len)
{
	return offset <= INT64_MAX && pread(fd, out, len, (off_t)offset) == (ssize_t)len;
}

static bool elf_read_header(int fd, Elf64_Ehdr *out)
{
	return elf_read_at(fd, 0, out, sizeof(*out)) &&
	       memcmp(out->e_ident, ELFMAG, SELFMAG) == 0 &&
	       out->e_ident[EI_CLASS] == ELFCLASS64 &&
	       out->e_phentsize == sizeof(Elf64_Phdr);
}

/* Gets the next segment that is mapped from the file. Returns false if there are no
 * more. */
static bool next_load(int fd, const Elf64_Ehdr *header, size_t *at, Elf64_Phdr *out)
{
	while (*at < header->e_phnum && *at < SEGMENTS_MAX) {
		uint64_t offset = header->e_phoff + (*at)++ * sizeof(*out);

		if (!elf_read_at(fd, offset, out, sizeof(*out)))
			return false;
		if (out->p_type == PT_LOAD && out->p_filesz > 0 &&
		    out->p_offset + out->p_filesz > out->p_offset)
			return true;
	}
	return false;
}

static int find_ends(int fd, struct pm_ptr_file *file)
{
	Elf64_Ehdr header;
	Elf64_Phdr load;
	int ret = 0;

	if (!elf_read_header(fd, &header))
		return 0;
	for (size_t at = 0; ret == 0 && next_load(fd, &header, &at, &load);)
		if ((load.p_flags & PF_X) && load.p_memsz == load.p_filesz)
			ret = pm_vec_push(&file->ends, load.p_offset + load.p_filesz);
	return ret;
}

bool pm_ptr_file_address(int fd, uint64_t offset, uint64_t *out)
{
	Elf64_Ehdr header;
	Elf64_Phdr load;

	if (!elf_read_header(fd, &header))
		return false;
	for (size_t at = 0; next_load(fd, &header, &at, &load);)
		if (offset >= load.p_offset && offset - load.p_offset < load.p_filesz) {
			*out = load.p_vaddr + (offset - load.p_offset);
			return true;
		}
	return false;
}

/* Returns the index of the file with this identity, which is added if it is new, or a
 * negative errno. */
static int64_t file_of(struct pm_ptr_sites *sites, int fd)
{
	struct pm_ptr_file file = { 0 };
	struct stat st;

	if (fstat(fd, &st) < 0)
		return -errno;
	for (size_t i = 0; i < sites->files.len; i++)
		if (sites->files.data[i].dev == st.st_dev &&
		    sites->files.data[i].ino == st.st_ino)
			return (int64_t)i;
	file.dev = st.st_dev;
	file.ino = st.st_ino;
	if (find_ends(fd, &file) < 0 || pm_vec_push(&sites->files, file) < 0) {
		pm_vec_release(&file.ends);
		return -ENOMEM;
	}
	return (int64_t)sites->files.len - 1;
}

/* ---- of regions ---------------------------------------------------------------------- */

/* A place and its file. */
struct key {
	uint32_t file, place;
	uint64_t offset;
	int turn;
};

static int compare_keys(const void *a, const void *b)
{
	const struct key *x = a, *y = b;

	if (x->file != y->file)
		return PM_COMPARE(x->file, y->file);
	if (x->offset != y->offset)
		return PM_COMPARE(x->offset, y->offset);
	if (x->turn != y->turn)
		return PM_COMPARE(x->turn, y->turn);
	if (x->place < y->place)
		return -1;
	return x->place > y->place;
}

static int sites_add_place(struct pm_ptr_sites *sites, const struct key *key,
			   const struct pm_place *place)
{
	struct pm_ptr_file *file = &sites->files.data[key->file];
	struct pm_ptr_site *last = NULL;
	struct pm_ptr_site site = { .offset = key->offset,
				    .len = place->len,
				    .first = (uint32_t)sites->order.len,
				    .places = 1 };

	if (file->sites.len > 0)
		last = &file->sites.data[file->sites.len - 1];
	if (pm_vec_push(&sites->order, key->place) < 0)
		return -ENOMEM;
	if (last && last->offset == key->offset) {
		last->places++;
		return 0;
	}
	memcpy(site.bytes, place->bytes, sizeof(site.bytes));
	return pm_vec_push(&file->sites, site);
}

static int sites_add_places(struct pm_ptr_sites *sites, const struct pm_regions *regions,
			    struct key *keys)
{
	size_t len = regions->places.len;

	for (size_t i = 0; i < len; i++) {
		const struct pm_place *place = &regions->places.data[i];
		int64_t file = file_of(sites, regions->list.data[place->region].fd);

		if (file < 0)
			return (int)file;
		keys[i] = (struct key){ .file = (uint32_t)file,
					.place = (uint32_t)i,
					.offset = place->offset,
					.turn = pm_place_turn(regions, (uint32_t)i) };
	}
	qsort(keys, len, sizeof(*keys), compare_keys);
	for (size_t i = 0; i < len; i++)
		if (sites_add_place(sites, &keys[i],
				    &regions->places.data[keys[i].place]) < 0)
			return -ENOMEM;
	return 0;
}

int pm_ptr_sites_init(struct pm_ptr_sites *sites, const struct pm_regions *regions,
		      struct pm_error *err)
{
	struct pm_ptr_sites made = { 0 };
	PM_AUTO_FREE struct key *keys = calloc(regions->places.len + 1, sizeof(*keys));
	int ret = -ENOMEM;

	if (keys)
		ret = sites_add_places(&made, regions, keys);
	if (ret < 0) {
		pm_ptr_sites_release(&made);
		return pm_error_set(err, ret, "places in files: %s", strerror(-ret));
	}
	made.wanted = made.files.len;
	*sites = made;
	return 0;
}

void pm_ptr_sites_release(struct pm_ptr_sites *sites)
{
	for (size_t i = 0; i < sites->files.len; i++) {
		pm_vec_release(&sites->files.data[i].sites);
		pm_vec_release(&sites->files.data[i].ends);
	}
	pm_vec_release(&sites->files);
	pm_vec_release(&sites->order);
	pm_vec_release(&sites->by_module);
}

/* ---- of modules ---------------------------------------------------------------------- */

static int64_t find_file_of_module(const struct pm_ptr_sites *sites,
				   const struct pm_procs *procs, uint32_t module)
{
	PM_AUTO_CLOSE int fd = pm_module_open(pm_procs_module(procs, module), NULL);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return -1;
	for (size_t i = 0; i < sites->files.len; i++)
		if (sites->files.data[i].dev == st.st_dev &&
		    sites->files.data[i].ino == st.st_ino)
			return (int64_t)i;
	return -1;
}

int64_t pm_ptr_sites_find(struct pm_ptr_sites *sites, const struct pm_procs *procs,
			  uint32_t module)
{
	while (sites->by_module.len <= module)
		if (pm_vec_push(&sites->by_module, -2) < 0)
			return -ENOMEM;
	if (sites->by_module.data[module] == -2)
		sites->by_module.data[module] = find_file_of_module(sites, procs, module);
	return sites->by_module.data[module];
}

/* Returns the function's address, or 0 if it is not found. */
static uint64_t find_linker_function(int fd, const Elf64_Shdr *symbols,
				     const Elf64_Shdr *names)
{
	uint64_t len = symbols->sh_size / sizeof(Elf64_Sym);

	for (uint64_t i = 0; i < len && i < SYMBOLS_MAX; i++) {
		char name[sizeof(linker_function)];
		Elf64_Sym symbol;

		if (!elf_read_at(fd, symbols->sh_offset + i * sizeof(symbol), &symbol,
				 sizeof(symbol)))
			return 0;
		if (symbol.st_shndx != SHN_UNDEF && symbol.st_name < names->sh_size &&
		    elf_read_at(fd, names->sh_offset + symbol.st_name, name,
				sizeof(name)) &&
		    memcmp(name, linker_function, sizeof(name)) == 0)
			return symbol.st_value;
	}
	return 0;
}

static uint64_t find_in_sections(int fd, const Elf64_Ehdr *header)
{
	if (header->e_shentsize != sizeof(Elf64_Shdr))
		return 0;
	for (size_t i = 0; i < header->e_shnum && i < SECTIONS_MAX; i++) {
		Elf64_Shdr symbols, names;

		if (!elf_read_at(fd, header->e_shoff + i * sizeof(symbols), &symbols,
				 sizeof(symbols)))
			return 0;
		if (symbols.sh_type == SHT_DYNSYM && symbols.sh_link < header->e_shnum &&
		    elf_read_at(fd, header->e_shoff + symbols.sh_link * sizeof(names),
				&names, sizeof(names)))
			return find_linker_function(fd, &symbols, &names);
	}
	return 0;
}

/* The length of the function's first instruction. The function is empty, and few
 * instructions are possible. */
static uint8_t first_length(const uint8_t *bytes, uint16_t machine)
{
	if (machine == EM_AARCH64)
		return 4;
	if (bytes[0] == 0xc3 || bytes[0] == 0x55)
		return 1;
	if (bytes[0] == 0xf3 && bytes[1] == 0xc3)
		return 2;
	if (memcmp(bytes, "\xf3\x0f\x1e\xfa", 4) == 0)
		return 4;
	return 0;
}

static int make_linker_site(int fd, struct pm_ptr_site *out)
{
	Elf64_Ehdr header;
	Elf64_Phdr load;
	uint64_t address;

	if (!elf_read_header(fd, &header))
		return -ENOEXEC;
	address = find_in_sections(fd, &header);
	for (size_t at = 0; address != 0 && next_load(fd, &header, &at, &load);) {
		struct pm_ptr_site site = { .linker = true };

		if (address < load.p_vaddr || address - load.p_vaddr >= load.p_filesz)
			continue;
		site.offset = load.p_offset + (address - load.p_vaddr);
		if (!elf_read_at(fd, site.offset, site.bytes, 4))
			return -ENODATA;
		site.len = first_length(site.bytes, header.e_machine);
		if (site.len == 0)
			return -EOPNOTSUPP;
		*out = site;
		return 0;
	}
	return -ENODATA;
}

/* Appends the site, as images refer to sites by index. */
static int file_append_site(struct pm_ptr_file *file, const struct pm_ptr_site *site)
{
	for (size_t i = 0; i < file->sites.len; i++)
		if (file->sites.data[i].offset == site->offset) {
			file->sites.data[i].linker = true;
			return 0;
		}
	return pm_vec_push(&file->sites, *site);
}

int pm_ptr_sites_add_linker(struct pm_ptr_sites *sites, const struct pm_procs *procs,
			    uint32_t module)
{
	PM_AUTO_CLOSE int fd = pm_module_open(pm_procs_module(procs, module), NULL);
	struct pm_ptr_site site;
	int64_t file;
	int ret;

	if (fd < 0)
		return fd;
	ret = make_linker_site(fd, &site);
	if (ret < 0)
		return ret;
	file = file_of(sites, fd);
	if (file < 0)
		return (int)file;
	ret = file_append_site(&sites->files.data[file], &site);
	if (ret == 0 && module < sites->by_module.len)
		sites->by_module.data[module] = file;
	return ret;
}
