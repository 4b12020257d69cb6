/* SPDX-License-Identifier: MIT */
/*
 * Finds the ELF symbols of addresses, with one pass over each symbol table, which is not
 * sorted: of a hundred thousand symbols, only the few that contain a wanted address
 * matter. An address gets, in this order of preference:
 *  1. of the symbols with a size that contain it, the one that starts last (the
 *     innermost);
 *  2. the symbol before it in the same section, if that has no size (assembler code
 *     without .size) and no other symbol starts between them;
 *  3. of several with the same start: functions before labels, exported before local,
 *     fewer leading underscores, strong before weak, shorter, alphabetical. Therefore
 *     `read` is the name of a function that is also __read, __libc_read and __GI___read.
 */
#include "symbol-parts.h"

#include <string.h>

enum {
	/* Only this many characters of two names are compared. */
	COMPARED_BYTES = 255,
};

struct candidate {
	uint64_t start, end; /* end == start: the size is unknown */
	const char *name;
	uint8_t is_function, is_exported, is_strong;
	uint8_t underscores, len; /* of the name's first COMPARED_BYTES */
};

/* A string table up to its last NUL: each string that starts in it is terminated. */
struct strings {
	const char *data;
	size_t len;
};

struct scan {
	const struct pm_elf_image *image; /* whose sections say where code is */
	const struct pm_wanted *wanted;
	PM_VEC(struct candidate)
	found; /* candidates that have a size and contain a
	                                 * wanted address */
	/* For each wanted address, the symbol that starts last among those after the
	 * previous wanted address and up to this one. If name is NULL, there is none. */
	struct candidate *nearest;
};

static void measure_name(struct candidate *candidate)
{
	size_t len = strnlen(candidate->name, COMPARED_BYTES);
	const char *version = memchr(candidate->name, '@', len);
	uint8_t underscores = 0;

	while (underscores < len && candidate->name[underscores] == '_')
		underscores++;
	if (strncmp(candidate->name, "__GI_", 5) == 0)
		underscores = UINT8_MAX; /* an alias of glibc for its internal calls */
	candidate->underscores = underscores;
	candidate->len = (uint8_t)(version ? version - candidate->name : (ptrdiff_t)len);
}

/* Returns a positive number if @a is the better name for the same start. */
static int compare_candidate_names(const struct candidate *a, const struct candidate *b)
{
	if (a->is_function != b->is_function)
		return PM_COMPARE(a->is_function, b->is_function);
	if (a->is_exported != b->is_exported)
		return PM_COMPARE(a->is_exported, b->is_exported);
	if (a->underscores != b->underscores)
		return PM_COMPARE(b->underscores, a->underscores);
	if (a->is_strong != b->is_strong)
		return PM_COMPARE(a->is_strong, b->is_strong);
	if (a->len != b->len)
		return PM_COMPARE(b->len, a->len);
	return -strncmp(a->name, b->name, a->len);
}

static int compare_symbol_candidates(const void *a, const void *b)
{
	const struct candidate *x = a, *y = b;

	if (x->start != y->start)
		return PM_COMPARE(x->start, y->start);
	return compare_candidate_names(x, y);
}

/* Whether the name is a label that assemblers and linkers use internally. */
static bool is_internal_label(const char *name, bool is_function)
{
	/* "$x", "$d.1": mapping symbols of the Arm and RISC-V ABIs. */
	return name[0] == '\0' || name[0] == '$' || (name[0] == '.' && !is_function) ||
	       strncmp(name, ".L", 2) == 0;
}

static void keep_nearest_candidate(struct candidate *slot,
				   const struct candidate *candidate)
{
	/* At the same start, a symbol with a size is preferred: it shows that the
	 * function ends before the address. */
	if (slot->name && slot->start == candidate->start) {
		bool sized = candidate->end > candidate->start;

		if (slot->end > slot->start ||
		    (!sized && compare_candidate_names(candidate, slot) <= 0))
			return;
	} else if (slot->name && slot->start > candidate->start) {
		return;
	}
	*slot = *candidate;
}

static int scan_add_symbol(struct scan *scan, const struct strings *strings,
			   const GElf_Sym *sym)
{
	unsigned int type = GELF_ST_TYPE(sym->st_info), bind = GELF_ST_BIND(sym->st_info);
	const struct pm_range *section;
	struct candidate candidate = {
		.start = sym->st_value,
		.is_function = type != STT_NOTYPE,
		.is_exported = bind != STB_LOCAL,
		.is_strong = bind != STB_WEAK,
	};
	size_t next;

	if ((type != STT_FUNC && type != STT_GNU_IFUNC && type != STT_NOTYPE) ||
	    sym->st_shndx == SHN_UNDEF || sym->st_shndx == SHN_COMMON ||
	    (type == STT_NOTYPE && sym->st_shndx == SHN_ABS))
		return 0;
	next = pm_wanted_from(scan->wanted, sym->st_value);
	if (next == scan->wanted->len)
		return 0;
	section = pm_elf_image_code(scan->image, sym->st_value);
	if (!section)
		return 0;
	if (__builtin_add_overflow(sym->st_value, sym->st_size, &candidate.end) ||
	    candidate.end > section->end)
		candidate.end = section->end;
	bool holds = candidate.end > scan->wanted->addresses[next];

	if (!holds && scan->nearest[next].name &&
	    scan->nearest[next].start > candidate.start)
		return 0;
	if (sym->st_name >= strings->len)
		return 0;
	candidate.name = strings->data + sym->st_name;
	if (is_internal_label(candidate.name, candidate.is_function))
		return 0;
	measure_name(&candidate);
	keep_nearest_candidate(&scan->nearest[next], &candidate);
	if (holds)
		return pm_vec_push(&scan->found, candidate);
	return 0;
}

static struct strings string_table(Elf *elf, size_t index)
{
	Elf_Scn *section = elf_getscn(elf, index);
	Elf_Data *data = elf_getdata(section, NULL);
	const char *last;

	if (!data || !data->d_buf)
		return (struct strings){ 0 };
	last = memrchr(data->d_buf, '\0', data->d_size);
	if (!last)
		return (struct strings){ 0 };
	return (struct strings){ data->d_buf, (size_t)(last - (char *)data->d_buf) };
}

static int scan_symbol_table(struct scan *scan, Elf *elf, Elf_Scn *section,
			     const GElf_Shdr *shdr)
{
	const struct strings strings = string_table(elf, shdr->sh_link);
	Elf_Data *data = elf_getdata(section, NULL);
	size_t entry = gelf_fsize(elf, ELF_T_SYM, 1, EV_CURRENT);
	size_t count = data && entry > 0 ? data->d_size / entry : 0;

	if (count > INT32_MAX)
		count = INT32_MAX;
	for (size_t i = 1; i < count; i++) {
		GElf_Sym sym;
		int ret;

		if (!gelf_getsym(data, (int)i, &sym))
			break;
		ret = scan_add_symbol(scan, &strings, &sym);
		if (ret < 0)
			return ret;
	}
	return 0;
}

/* Scans the first symbol table of @type. Returns 1 if there was one. */
static int scan_symbol_tables(struct scan *scan, Elf *elf, uint32_t type)
{
	Elf_Scn *section = NULL;

	while ((section = elf_nextscn(elf, section))) {
		GElf_Shdr shdr;
		int ret;

		if (!gelf_getshdr(section, &shdr) || shdr.sh_type != type)
			continue;
		ret = scan_symbol_table(scan, elf, section, &shdr);
		if (ret < 0)
			return ret;
		return 1;
	}
	return 0;
}

static void answer_from_candidate(const struct pm_elf_image *image, uint64_t address,
				  const struct candidate *candidate,
				  struct pm_elf_symbol *out)
{
	if (candidate->end == candidate->start &&
	    pm_elf_image_code(image, address) !=
		    pm_elf_image_code(image, candidate->start))
		return;
	out->name = candidate->name;
	out->start = candidate->start;
	out->end = candidate->end;
}

/*
 * Both lists are in ascending order. Symbols that have started are on a stack, the last
 * one on top. A symbol that ends before an address cannot contain a later address either,
 * and is removed.
 */
static int scan_resolve_addresses(struct scan *scan, struct pm_elf_symbol *symbols)
{
	PM_AUTO_FREE size_t *open = calloc(scan->found.len + 1, sizeof(*open));
	const struct candidate *found = scan->found.data, *last = NULL;
	size_t depth = 0, next = 0;

	if (!open)
		return -ENOMEM;
	if (scan->found.len > 1)
		qsort(scan->found.data, scan->found.len, sizeof(*found),
		      compare_symbol_candidates);
	for (size_t i = 0; i < scan->wanted->len; i++) {
		uint64_t address = scan->wanted->addresses[i];

		if (scan->nearest[i].name)
			last = &scan->nearest[i];
		while (next < scan->found.len && found[next].start <= address)
			open[depth++] = next++;
		while (depth > 0 && found[open[depth - 1]].end <= address)
			depth--;
		if (depth > 0)
			answer_from_candidate(scan->image, address,
					      &found[open[depth - 1]], &symbols[i]);
		else if (last && last->end == last->start)
			answer_from_candidate(scan->image, address, last, &symbols[i]);
	}
	return 0;
}

bool pm_symtab_readable(const struct pm_elf_image *image)
{
	GElf_Shdr shdr;

	return !pm_elf_image_section(image, ".symtab", NULL, &shdr) ||
	       (shdr.sh_offset <= image->file_len &&
		shdr.sh_size <= image->file_len - shdr.sh_offset);
}

int pm_symtab_resolve(const struct pm_elf_image *image, const struct pm_elf_image *debug,
		      const struct pm_wanted *wanted, struct pm_elf_symbol *symbols)
{
	PM_AUTO_FREE struct candidate *nearest =
		calloc(wanted->len + 1, sizeof(*nearest));
	struct scan scan = { .image = image, .wanted = wanted, .nearest = nearest };
	int ret;

	if (!nearest)
		return -ENOMEM;
	ret = scan_symbol_tables(&scan, image->elf, SHT_SYMTAB);
	if (ret == 0) {
		if (debug)
			ret = scan_symbol_tables(&scan, debug->elf, SHT_SYMTAB);
		else
			ret = 0;
		if (ret >= 0)
			ret = scan_symbol_tables(&scan, image->elf, SHT_DYNSYM);
	}
	if (ret >= 0)
		ret = scan_resolve_addresses(&scan, symbols);
	pm_vec_release(&scan.found);
	if (ret < 0)
		return ret;
	return 0;
}
