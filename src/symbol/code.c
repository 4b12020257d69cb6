/* SPDX-License-Identifier: MIT */
/* Reads the bytes of whole functions, with bounds from the symbol tables or .eh_frame. */
#include "symbol-parts.h"

#include <string.h>

enum {
	PLT_ENTRY_BYTES = 16, /* assumed, because PLT entries have no symbols */
	/* Each open end costs a pass over the symbols. Only a hostile file has many
	 * more. */
	OPEN_ENDS_MAX = 256,
};

struct finder {
	struct pm_elf_image image, debug; /* debug.elf is NULL if there is no debug
	                                   * file */
	struct pm_elf_symbol *symbols;
	struct pm_texts texts;
	size_t open_ends;
};

static void code_finder_release(struct finder *finder)
{
	pm_elf_image_close(&finder->debug);
	pm_elf_image_close(&finder->image);
	free(finder->symbols);
	pm_texts_release(&finder->texts);
}

/* Returns the start of the first function symbol after @start in the symbol tables of
 * @image if it is before @end, otherwise @end. */
static uint64_t next_symbol_start(const struct pm_elf_image *image, uint64_t start,
				  uint64_t end)
{
	Elf_Scn *section = NULL;
	GElf_Shdr shdr;

	while ((section = elf_nextscn(image->elf, section))) {
		Elf_Data *data;
		GElf_Sym sym;

		if (!gelf_getshdr(section, &shdr) ||
		    (shdr.sh_type != SHT_SYMTAB && shdr.sh_type != SHT_DYNSYM))
			continue;
		data = elf_getdata(section, NULL);
		for (int i = 1; data && gelf_getsym(data, i, &sym); i++) {
			unsigned int type = GELF_ST_TYPE(sym.st_info);

			if (sym.st_shndx != SHN_UNDEF && sym.st_value > start &&
			    sym.st_value < end &&
			    (type == STT_FUNC || type == STT_GNU_IFUNC))
				end = sym.st_value;
		}
	}
	return end;
}

/* Returns the end of a function whose symbol has no size. */
static uint64_t find_function_end(const struct finder *finder,
				  const struct pm_range *section,
				  const struct pm_elf_symbol *symbol)
{
	uint64_t end = section->end;

	if (symbol->plt && end - symbol->start > PLT_ENTRY_BYTES)
		return symbol->start + PLT_ENTRY_BYTES;
	end = next_symbol_start(&finder->image, symbol->start, end);
	if (!finder->debug.elf)
		return end;
	return next_symbol_start(&finder->debug, symbol->start, end);
}

/* Returns the bytes from @start to the end of its section, as far as the file contains
 * them. */
static const uint8_t *image_bytes_at(const struct pm_elf_image *image, uint64_t start,
				     size_t *len)
{
	Elf_Scn *section = NULL;
	GElf_Shdr shdr;

	while ((section = elf_nextscn(image->elf, section))) {
		uint64_t inside, left;

		if (!gelf_getshdr(section, &shdr) || shdr.sh_type == SHT_NOBITS ||
		    !(shdr.sh_flags & SHF_EXECINSTR) || start < shdr.sh_addr ||
		    start - shdr.sh_addr >= shdr.sh_size)
			continue;
		inside = start - shdr.sh_addr;
		left = shdr.sh_size - inside;
		if (shdr.sh_offset >= image->file_len ||
		    inside >= image->file_len - shdr.sh_offset)
			return NULL;
		if (left > image->file_len - shdr.sh_offset - inside)
			left = image->file_len - shdr.sh_offset - inside;
		*len = left;
		return (const uint8_t *)image->map + shdr.sh_offset + inside;
	}
	return NULL;
}

static const char *intern_unversioned_name(struct finder *finder, const char *name)
{
	size_t len = strnlen(name, PM_SYMBOL_TEXT_MAX);
	const char *version = NULL;

	if (len > 0)
		version = memchr(name + 1, '@', len - 1);
	if (version)
		len = (size_t)(version - name);
	return pm_texts_add_name(&finder->texts, name, len);
}

/* Describes the function of @symbol. Sets len to 0 if it has no bytes. */
static void describe_symbol_code(struct finder *finder,
				 const struct pm_elf_symbol *symbol,
				 struct pm_symbol_code *out)
{
	const struct pm_range *section = pm_elf_image_code(&finder->image, symbol->start);
	size_t have = 0;
	GElf_Ehdr header;

	*out = (struct pm_symbol_code){ .start = symbol->start };
	if (!section || !gelf_getehdr(finder->image.elf, &header))
		return;
	out->open_end = symbol->end <= symbol->start;
	if (out->open_end && finder->open_ends++ >= OPEN_ENDS_MAX)
		return;
	if (out->open_end)
		out->end = find_function_end(finder, section, symbol);
	else
		out->end = symbol->end;
	if (symbol->name)
		out->name = intern_unversioned_name(finder, symbol->name);
	else
		out->name = NULL;
	out->machine = header.e_machine;
	out->is_64 = header.e_ident[EI_CLASS] == ELFCLASS64;
	out->bytes = image_bytes_at(&finder->image, out->start, &have);
	if (!out->bytes)
		out->len = 0;
	else if (have < out->end - out->start)
		out->len = have;
	else
		out->len = (size_t)(out->end - out->start);
}

static int emit_symbol_code(struct finder *finder, const struct pm_wanted *wanted,
			    pm_symbol_code_fn emit, void *user)
{
	struct pm_symbol_code code = { 0 };

	for (size_t i = 0; i < wanted->len; i++) {
		int ret;

		if ((!finder->symbols[i].name && finder->symbols[i].end == 0) ||
		    (code.end > code.start && wanted->addresses[i] < code.end))
			continue;
		describe_symbol_code(finder, &finder->symbols[i], &code);
		if (code.end <= wanted->addresses[i] || code.len == 0)
			continue;
		ret = emit(user, &code);
		if (ret < 0)
			return ret;
	}
	return 0;
}

int pm_symbols_code(int fd, const uint64_t *addresses, size_t len,
		    const struct pm_symbol_options *options, pm_symbol_code_fn emit,
		    void *user, struct pm_error *err)
{
	PM_CLEANUP(code_finder_release) struct finder finder = { 0 };
	const struct pm_wanted wanted = { addresses, len };
	const struct pm_elf_image *debug;
	int ret = pm_elf_image_open(&finder.image, fd, false);

	if (ret < 0)
		return pm_error_set(err, ret, "%s", pm_error_elf_text(ret));
	if (pm_debug_file_open(&finder.debug, &finder.image, fd, options) < 0)
		finder.debug = (struct pm_elf_image){ 0 };
	debug = finder.debug.elf ? &finder.debug : NULL;
	finder.symbols = calloc(len + 1, sizeof(*finder.symbols));
	if (finder.symbols)
		ret = pm_symtab_resolve(&finder.image, debug, &wanted, finder.symbols);
	else
		ret = -ENOMEM;
	if (ret == 0)
		ret = pm_plt_resolve(&finder.image, debug, &wanted, finder.symbols);
	if (ret == 0)
		ret = pm_go_resolve(&finder.image, &wanted, finder.symbols, NULL, NULL);
	if (ret == 0)
		ret = pm_starts_resolve(&finder.image, &wanted, finder.symbols);
	if (ret < 0)
		return pm_error_set(err, ret, "no memory left for its symbols");
	return emit_symbol_code(&finder, &wanted, emit, user);
}

int pm_symbols_section(int fd, const char *name, uint64_t *low, uint64_t *high)
{
	struct pm_elf_image image = { 0 };
	GElf_Shdr shdr;
	int ret = pm_elf_image_open(&image, fd, false);

	if (ret < 0)
		return ret;
	if (!pm_elf_image_section(&image, name, NULL, &shdr) ||
	    shdr.sh_addr + shdr.sh_size < shdr.sh_addr) {
		ret = -ENOENT;
	} else {
		*low = shdr.sh_addr;
		*high = shdr.sh_addr + shdr.sh_size;
	}
	pm_elf_image_close(&image);
	return ret;
}
