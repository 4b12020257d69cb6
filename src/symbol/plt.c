/* SPDX-License-Identifier: MIT */
/*
 * Names entries of the procedure linkage table, which have no symbols. They differ in the
 * GOT slot through which they jump, and therefore in the relocation that fills the slot
 * (x86-64 psABI §5.2). This works for .plt, .plt.sec, .plt.got and the entries that BOLT
 * creates. On other machines, the entries are in the same order as .rela.plt.
 */
#include "symbol-parts.h"

#include <string.h>

enum {
	RELOCATIONS_MAX = 1 << 24,
	X86_ENTRY_BYTES = 16,
	X86_SHORT_ENTRY_BYTES = 8, /* .plt.got without IBT */
	AARCH64_HEADER_BYTES = 32,
	AARCH64_ENTRY_BYTES = 16,
};

/* The GOT slot that a wanted PLT entry uses, or the number of its relocation. */
struct slot {
	uint64_t key;
	size_t wanted; /* index of the wanted address */
	bool by_number;
	bool is_done; /* a relocation was found for it */
};

struct plt {
	const struct pm_elf_image *image;
	const struct pm_elf_image *debug;
	const struct pm_wanted *wanted;
	struct pm_elf_symbol *symbols;
	PM_VEC(struct slot) slots; /* sorted by by_number, key */
	PM_VEC(struct slot)
	resolvers; /* of IFUNC entries: key is the resolver's
	                                * address */
};

static int compare_slots(const void *a, const void *b)
{
	const struct slot *x = a, *y = b;

	if (x->by_number != y->by_number)
		return PM_COMPARE(x->by_number, y->by_number);
	return PM_COMPARE(x->key, y->key);
}

/* Finds `jmp *disp32(%rip)` or `push $n` in the entry at @code. */
static bool decode_x86_plt_entry(const uint8_t *code, size_t len, uint64_t address,
				 struct slot *out)
{
	for (size_t i = 0; i + 5 <= len; i++) {
		int32_t number;

		if (code[i] == 0xff && code[i + 1] == 0x25 && i + 6 <= len) {
			memcpy(&number, code + i + 2, sizeof(number));
			out->key = address + i + 6 + (uint64_t)(int64_t)number;
			out->by_number = false;
			return true;
		}
		if (code[i] == 0x68) {
			memcpy(&number, code + i + 1, sizeof(number));
			out->key = (uint32_t)number;
			out->by_number = true;
			return true;
		}
	}
	return false;
}

static bool decode_plt_entry(Elf_Data *data, const GElf_Shdr *shdr, unsigned int machine,
			     uint64_t address, struct slot *out, uint64_t *start)
{
	uint64_t offset = address - shdr->sh_addr, size = X86_ENTRY_BYTES;

	if (machine == EM_AARCH64) {
		if (offset < AARCH64_HEADER_BYTES)
			return false;
		*start = address - offset % AARCH64_ENTRY_BYTES;
		out->key = (offset - AARCH64_HEADER_BYTES) / AARCH64_ENTRY_BYTES;
		out->by_number = true;
		return true;
	}
	if (machine != EM_X86_64)
		return false;
	if (shdr->sh_entsize == X86_SHORT_ENTRY_BYTES)
		size = X86_SHORT_ENTRY_BYTES;
	offset -= offset % size;
	if (offset + size > data->d_size)
		return false;
	*start = shdr->sh_addr + offset;
	return decode_x86_plt_entry((const uint8_t *)data->d_buf + offset, size, *start,
				    out);
}

/* Adds the slots of the wanted PLT entries in one section. */
static int scan_entries(struct plt *plt, Elf_Scn *section, const GElf_Shdr *shdr,
			unsigned int machine)
{
	size_t i = pm_wanted_from(plt->wanted, shdr->sh_addr);
	Elf_Data *data = NULL;

	for (; i < plt->wanted->len &&
	       plt->wanted->addresses[i] - shdr->sh_addr < shdr->sh_size;
	     i++) {
		struct slot slot = { .wanted = i };
		uint64_t start;

		if (plt->symbols[i].name)
			continue;
		if (!data && (!(data = elf_rawdata(section, NULL)) || !data->d_buf))
			return 0;
		if (!decode_plt_entry(data, shdr, machine, plt->wanted->addresses[i],
				      &slot, &start))
			continue;
		plt->symbols[i].start = start;
		if (pm_vec_push(&plt->slots, slot) < 0)
			return -ENOMEM;
	}
	return 0;
}

static int find_plt_slots(struct plt *plt, unsigned int machine)
{
	Elf_Scn *section = NULL;
	size_t names;

	if (elf_getshdrstrndx(plt->image->elf, &names) < 0)
		return 0;
	while ((section = elf_nextscn(plt->image->elf, section))) {
		GElf_Shdr shdr;
		const char *name;

		if (!gelf_getshdr(section, &shdr) || shdr.sh_type != SHT_PROGBITS ||
		    !(shdr.sh_flags & SHF_EXECINSTR) ||
		    !(name = elf_strptr(plt->image->elf, names, shdr.sh_name)) ||
		    (strcmp(name, ".plt") != 0 && strncmp(name, ".plt.", 5) != 0))
			continue;
		if (scan_entries(plt, section, &shdr, machine) < 0)
			return -ENOMEM;
	}
	if (plt->slots.len > 1)
		qsort(plt->slots.data, plt->slots.len, sizeof(*plt->slots.data),
		      compare_slots);
	return 0;
}

static const char *dynamic_symbol_name(struct plt *plt, uint32_t link, uint64_t index)
{
	Elf_Scn *section = elf_getscn(plt->image->elf, link);
	Elf_Data *data = elf_getdata(section, NULL);
	const char *name;
	GElf_Shdr shdr;
	GElf_Sym sym;

	if (!data || index == 0 || index > INT32_MAX || !gelf_getshdr(section, &shdr) ||
	    !gelf_getsym(data, (int)index, &sym))
		return NULL;
	name = elf_strptr(plt->image->elf, shdr.sh_link, sym.st_name);
	if (name && name[0])
		return name;
	return NULL;
}

/* Assigns the name of the symbol that @rela refers to to the slots with @key. */
static int name_plt_slots(struct plt *plt, const struct slot *key, uint32_t symbols,
			  const GElf_Rela *rela)
{
	size_t low = 0, high = plt->slots.len;
	const char *name;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (compare_slots(&plt->slots.data[mid], key) < 0)
			low = mid + 1;
		else
			high = mid;
	}
	/* Only the first relocation counts: a hostile file has a million for one slot. */
	if (low == plt->slots.len || compare_slots(&plt->slots.data[low], key) != 0 ||
	    plt->slots.data[low].is_done)
		return 0;
	plt->slots.data[low].is_done = true;
	name = dynamic_symbol_name(plt, symbols, GELF_R_SYM(rela->r_info));
	for (; low < plt->slots.len && compare_slots(&plt->slots.data[low], key) == 0;
	     low++) {
		struct slot slot = plt->slots.data[low];

		if (plt->symbols[slot.wanted].name)
			continue;
		if (name) {
			plt->symbols[slot.wanted].name = name;
			plt->symbols[slot.wanted].plt = true;
			continue;
		}
		slot.key = (uint64_t)rela->r_addend;
		slot.by_number = false;
		if (slot.key != 0 && pm_vec_push(&plt->resolvers, slot) < 0)
			return -ENOMEM;
	}
	return 0;
}

/* Reads one relocation section. @numbered: its relocations are in the order of the PLT's
 * entries. */
static int scan_relocations(struct plt *plt, Elf_Scn *section, const GElf_Shdr *shdr,
			    bool numbered)
{
	Elf_Data *data = elf_getdata(section, NULL);
	size_t entry = gelf_fsize(plt->image->elf, ELF_T_RELA, 1, EV_CURRENT);
	size_t count = data && entry > 0 ? data->d_size / entry : 0;

	for (size_t i = 0; i < count && i < RELOCATIONS_MAX; i++) {
		GElf_Rela rela;

		if (!gelf_getrela(data, (int)i, &rela))
			break;
		/* Most relocations in .rela.dyn are RELATIVE, which fill no PLT slot. */
		if (!numbered && GELF_R_SYM(rela.r_info) == 0)
			continue;
		struct slot by_slot = { .key = rela.r_offset };
		struct slot by_number = { .key = i, .by_number = true };

		if (name_plt_slots(plt, &by_slot, shdr->sh_link, &rela) < 0 ||
		    (numbered &&
		     name_plt_slots(plt, &by_number, shdr->sh_link, &rela) < 0))
			return -ENOMEM;
	}
	return 0;
}

static int find_plt_names(struct plt *plt)
{
	Elf_Scn *section = NULL;
	size_t names;

	if (elf_getshdrstrndx(plt->image->elf, &names) < 0)
		return 0;
	while ((section = elf_nextscn(plt->image->elf, section))) {
		GElf_Shdr shdr;
		const char *name;
		bool numbered;

		if (!gelf_getshdr(section, &shdr) || shdr.sh_type != SHT_RELA ||
		    !(name = elf_strptr(plt->image->elf, names, shdr.sh_name)))
			continue;
		numbered =
			strcmp(name, ".rela.plt") == 0 || strcmp(name, ".rela.iplt") == 0;
		if ((numbered || strcmp(name, ".rela.dyn") == 0) &&
		    scan_relocations(plt, section, &shdr, numbered) < 0)
			return -ENOMEM;
	}
	return 0;
}

/* Names the slots of IRELATIVE relocations. These have no symbol; the resolver, whose
 * address is the addend, has the function's name. */
static int name_ifunc_slots(struct plt *plt)
{
	PM_AUTO_FREE uint64_t *addresses = calloc(plt->resolvers.len, sizeof(*addresses));
	PM_AUTO_FREE struct pm_elf_symbol *found =
		calloc(plt->resolvers.len, sizeof(*found));
	struct pm_wanted wanted = { .addresses = addresses };
	int ret;

	if (!addresses || !found)
		return -ENOMEM;
	qsort(plt->resolvers.data, plt->resolvers.len, sizeof(*plt->resolvers.data),
	      compare_slots);
	for (size_t i = 0; i < plt->resolvers.len; i++)
		if (wanted.len == 0 ||
		    addresses[wanted.len - 1] != plt->resolvers.data[i].key)
			addresses[wanted.len++] = plt->resolvers.data[i].key;
	ret = pm_symtab_resolve(plt->image, plt->debug, &wanted, found);
	for (size_t i = 0; ret == 0 && i < plt->resolvers.len; i++) {
		const struct slot *slot = &plt->resolvers.data[i];
		size_t at = pm_wanted_from(&wanted, slot->key);

		if (found[at].name && found[at].start == slot->key) {
			plt->symbols[slot->wanted].name = found[at].name;
			plt->symbols[slot->wanted].plt = true;
		}
	}
	return ret;
}

int pm_plt_resolve(const struct pm_elf_image *image, const struct pm_elf_image *debug,
		   const struct pm_wanted *wanted, struct pm_elf_symbol *symbols)
{
	struct plt plt = {
		.image = image, .debug = debug, .wanted = wanted, .symbols = symbols
	};
	GElf_Ehdr ehdr;
	int ret;

	if (!gelf_getehdr(image->elf, &ehdr))
		return 0;
	ret = find_plt_slots(&plt, ehdr.e_machine);
	if (ret == 0 && plt.slots.len > 0)
		ret = find_plt_names(&plt);
	if (ret == 0 && plt.resolvers.len > 0)
		ret = name_ifunc_slots(&plt);
	pm_vec_release(&plt.slots);
	pm_vec_release(&plt.resolvers);
	return ret;
}
