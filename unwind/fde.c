/* SPDX-License-Identifier: MIT */
#include "unwind-internal.h"

#include <dwarf.h>
#include <string.h>

/* ---- encoded pointers (LSB 10.5.1) ---------------------------------------------------- */

uint64_t pm_unw_read_encoded(struct pm_reader *reader, uint8_t encoding, uint64_t svma)
{
	uint64_t place = svma + reader->pos;
	uint64_t value;

	switch (encoding & 0x0f) {
	case DW_EH_PE_absptr:
	case DW_EH_PE_udata8:
	case DW_EH_PE_sdata8:
		value = pm_reader_u64(reader);
		break;
	case DW_EH_PE_udata2:
		value = pm_reader_u16(reader);
		break;
	case DW_EH_PE_udata4:
		value = pm_reader_u32(reader);
		break;
	case DW_EH_PE_sdata2:
		value = (uint64_t)(int64_t)(int16_t)pm_reader_u16(reader);
		break;
	case DW_EH_PE_sdata4:
		value = (uint64_t)(int64_t)(int32_t)pm_reader_u32(reader);
		break;
	case DW_EH_PE_uleb128:
		value = pm_reader_uleb(reader);
		break;
	case DW_EH_PE_sleb128:
		value = (uint64_t)pm_reader_sleb(reader);
		break;
	default:
		reader->failed = true;
		return 0;
	}
	switch (encoding & 0x70) {
	case DW_EH_PE_absptr:
		break;
	case DW_EH_PE_pcrel:
		value += place;
		break;
	default:
		reader->failed = true;
	}
	if (encoding & DW_EH_PE_indirect)
		reader->failed = true; /* for personalities only */
	return reader->failed ? 0 : value;
}

/* ---- one entry ------------------------------------------------------------------------ */

/*
 * libdw's reading of the CIE or FDE at @offset, after its bytes have been brought in.
 * Returns 0, 1 at the end of the section, -EBADMSG.
 */
static int read_entry(struct pm_unw_module *module, struct pm_unw_region *region,
		      size_t offset, size_t *next, Dwarf_CFI_Entry *ret)
{
	const uint8_t *head = pm_unw_region_need(region, offset, 4);
	uint32_t length32;
	uint64_t length;
	size_t prefix = 4;
	Elf_Data data = { .d_buf = region->data,
			  .d_size = region->len,
			  .d_version = EV_CURRENT,
			  .d_type = ELF_T_BYTE };
	Dwarf_Off after = 0;
	int rc;

	if (!head)
		return offset == region->len ? 1 : -EBADMSG;
	memcpy(&length32, head, 4);
	length = length32;
	if (length32 == 0xffffffff) {
		head = pm_unw_region_need(region, offset, 12);
		if (!head)
			return -EBADMSG;
		memcpy(&length, head + 4, 8);
		prefix = 12;
	}
	/* A terminator in the middle: `ld -r` and crtend.o leave them; libdw stops there. */
	if (length == 0 && region->svma != 0)
		return 1;
	if (length > region->len || !pm_unw_region_need(region, offset, prefix + length))
		return -EBADMSG;
	rc = dwarf_next_cfi(module->e_ident, &data, region != &module->debug_frame,
			    offset, &after, ret);
	if (rc != 0)
		return rc > 0 ? 1 : -EBADMSG;
	*next = offset + prefix + length;
	return 0;
}

/* The parts of a CIE's augmentation data (LSB 10.6.1.1.1) that unwinding needs. */
static bool read_augmentation(const Dwarf_CIE *cie, struct pm_unw_fde *ret, bool *sized)
{
	const char *augmentation = cie->augmentation;
	struct pm_reader reader;

	ret->encoding = DW_EH_PE_absptr;
	*sized = augmentation[0] == 'z';
	if (augmentation[0] == '\0')
		return true;
	if (strcmp(augmentation, "eh") == 0)
		return true;
	if (!*sized || !cie->augmentation_data)
		return false;
	pm_reader_init(&reader, cie->augmentation_data, cie->augmentation_data_size);
	for (const char *at = augmentation + 1; *at; at++) {
		uint8_t personality;

		switch (*at) {
		case 'R':
			ret->encoding = pm_reader_u8(&reader);
			break;
		case 'L':
			pm_reader_u8(&reader);
			break;
		case 'P':
			/* Its value is of no interest, only its length: read as absolute. */
			personality = pm_reader_u8(&reader);
			if (personality == DW_EH_PE_aligned)
				return false;
			pm_unw_read_encoded(&reader, personality & 0x0f, 0);
			break;
		case 'S':
			ret->signal = true;
			break;
		case 'B': /* aarch64: PAC key */
			break;
		default:
			/* The data is sized, so what comes later can be skipped, too. */
			return !reader.failed;
		}
	}
	return !reader.failed;
}

/* Makes @ret of the FDE at @offset; -ENOENT when it is a CIE. */
static int read_fde(struct pm_unw_module *module, struct pm_unw_region *region,
		    size_t offset, struct pm_unw_fde *ret, size_t *next)
{
	struct pm_unw_fde fde = { .region_svma = region->svma,
				  .region_data = region->data };
	Dwarf_CFI_Entry entry, cie;
	struct pm_reader reader;
	uint64_t size, skip;
	size_t unused;
	bool sized;
	int rc = read_entry(module, region, offset, next, &entry);

	if (rc != 0)
		return rc;
	if (dwarf_cfi_cie_p(&entry))
		return -ENOENT;
	if (entry.fde.CIE_pointer > region->len ||
	    read_entry(module, region, entry.fde.CIE_pointer, &unused, &cie) != 0 ||
	    !dwarf_cfi_cie_p(&cie) || !cie.cie.augmentation)
		return -EBADMSG;
	if (!read_augmentation(&cie.cie, &fde, &sized))
		return -EBADMSG;
	pm_reader_init(&reader, entry.fde.start,
		       (size_t)(entry.fde.end - entry.fde.start));
	fde.start = pm_unw_read_encoded(
		&reader, fde.encoding,
		region->svma + (uint64_t)(entry.fde.start - region->data));
	/* The length has the format of the pointer, but is not relative to anything. */
	size = pm_unw_read_encoded(&reader, fde.encoding & 0x0f, 0);
	if (sized) {
		skip = pm_reader_uleb(&reader);
		if (skip > pm_reader_left(&reader))
			return -EBADMSG;
		pm_reader_bytes(&reader, skip);
	}
	if (reader.failed || __builtin_add_overflow(fde.start, size, &fde.end))
		return -EBADMSG;
	fde.program = reader.data + reader.pos;
	fde.program_end = reader.data + reader.len;
	fde.initial = cie.cie.initial_instructions;
	fde.initial_end = cie.cie.initial_instructions_end;
	fde.code_align = cie.cie.code_alignment_factor;
	fde.data_align = cie.cie.data_alignment_factor;
	fde.ra_reg = (uint32_t)cie.cie.return_address_register;
	*ret = fde;
	return 0;
}

/* ---- finding -------------------------------------------------------------------------- */

static int by_start(const void *a, const void *b)
{
	const struct pm_unw_fde_place *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

/* All FDEs of a region in order of address, for regions that no header sorts. */
static void scan(struct pm_unw_module *module, struct pm_unw_region *region,
		 struct pm_unw_fde_table *table)
{
	size_t offset = 0, next = 0;

	table->scanned = true;
	while (offset < region->len) {
		struct pm_unw_fde fde;
		int rc = read_fde(module, region, offset, &fde, &next);

		if (rc == 0 && fde.end > fde.start &&
		    pm_vec_push(
			    &table->places,
			    (struct pm_unw_fde_place){ fde.start, fde.end, offset }) != 0)
			return;
		if (rc == 1 || next <= offset)
			break;
		offset = next;
	}
	if (table->places.len > 0)
		qsort(table->places.data, table->places.len, sizeof(*table->places.data),
		      by_start);
}

static int find_scanned(struct pm_unw_module *module, struct pm_unw_region *region,
			struct pm_unw_fde_table *table, uint64_t svma,
			struct pm_unw_fde *ret)
{
	size_t low = 0, high, next;

	if (region->len == 0)
		return -ENOENT;
	if (!table->scanned)
		scan(module, region, table);
	for (high = table->places.len; low < high;) {
		size_t middle = low + (high - low) / 2;

		if (table->places.data[middle].start <= svma)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == 0 || svma >= table->places.data[low - 1].end)
		return -ENOENT;
	return read_fde(module, region, table->places.data[low - 1].offset, ret, &next);
}

/* The sorted table of .eh_frame_hdr: pairs of 32-bit offsets from the header. */
static int find_in_hdr(struct pm_unw_module *module, uint64_t svma,
		       struct pm_unw_fde *ret)
{
	struct pm_unw_region *hdr = &module->eh_frame_hdr;
	size_t low = 0, high = module->hdr_count, next;
	const uint8_t *pair;
	struct pm_unw_fde fde;
	uint64_t address;
	int32_t relative;
	int rc;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		pair = pm_unw_region_need(hdr, module->hdr_table + middle * 8, 8);
		if (!pair)
			return -EBADMSG;
		memcpy(&relative, pair, 4);
		if (hdr->svma + (uint64_t)(int64_t)relative <= svma)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == 0)
		return -ENOENT;
	pair = pm_unw_region_need(hdr, module->hdr_table + (low - 1) * 8, 8);
	if (!pair)
		return -EBADMSG;
	memcpy(&relative, pair + 4, 4);
	address = hdr->svma + (uint64_t)(int64_t)relative - module->eh_frame.svma;
	if (address >= module->eh_frame.len)
		return -EBADMSG;
	rc = read_fde(module, &module->eh_frame, address, &fde, &next);
	if (rc != 0)
		return -EBADMSG;
	if (svma < fde.start || svma >= fde.end)
		return -ENOENT;
	*ret = fde;
	return 0;
}

int pm_unw_fde_find(struct pm_unw_module *module, uint64_t svma, struct pm_unw_fde *ret)
{
	int rc, debug_rc;

	if (module->hdr_table)
		rc = find_in_hdr(module, svma, ret);
	else
		rc = find_scanned(module, &module->eh_frame, &module->eh_scanned, svma,
				  ret);
	if (rc == 0)
		return 0;
	debug_rc = find_scanned(module, &module->debug_frame, &module->debug_scanned,
				svma, ret);
	return debug_rc == -ENOENT ? rc : debug_rc;
}
