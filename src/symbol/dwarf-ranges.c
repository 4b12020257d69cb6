/* SPDX-License-Identifier: MIT */
/* Reads the code ranges of an entry: DWARF 5 §2.17, §7.25; DWARF 4 §2.17.3. */
#include "dwarf-parts.h"

#include <string.h>

struct walk {
	struct pm_dwarf *dwarf;
	const struct pm_unit *unit;
	pm_range_fn each;
	void *user;
	int count;
};

static uint64_t read_address_sized(struct pm_reader *reader, uint8_t size)
{
	if (size == 8)
		return pm_reader_u64(reader);
	return pm_reader_u32(reader);
}

/* Returns false if the section is absent or ends before @offset. */
static bool open_section_reader(struct pm_reader *reader, const struct pm_bytes *section,
				uint64_t offset)
{
	if (offset >= section->len)
		return false;
	pm_reader_init(reader, section->data + offset, section->len - offset);
	return true;
}

/* Reads an address from .debug_addr by its index (DWARF 5 §7.27). */
static bool read_indexed_address(const struct walk *walk, uint64_t index, uint64_t *out)
{
	const struct pm_bytes *section = &walk->dwarf->addr;
	struct pm_reader reader;
	uint64_t offset;

	if (__builtin_mul_overflow(index, walk->unit->address_size, &offset) ||
	    __builtin_add_overflow(offset, walk->unit->addr_base, &offset) ||
	    !open_section_reader(&reader, section, offset))
		return false;
	*out = read_address_sized(&reader, walk->unit->address_size);
	return !reader.failed;
}

/*
 * Reports a range. For functions that they drop, linkers leave ranges that start at 0, 1
 * or -1, or that have only their length. Therefore a range counts only if it starts in an
 * executable section, and only up to the end of that section.
 */
static int walk_emit_range(struct walk *walk, uint64_t start, uint64_t end)
{
	const struct pm_range *code;

	if (start >= end)
		return 0;
	if (walk->count < INT32_MAX)
		walk->count = walk->count + 1;
	code = pm_elf_image_code(walk->dwarf->image, start);
	if (!code)
		return 0;
	return walk->each(walk->user, start, PM_MIN(end, code->end));
}

static bool walk_spend_budget(struct walk *walk)
{
	if (walk->dwarf->ranges_budget == 0)
		return false;
	walk->dwarf->ranges_budget--;
	return true;
}

/* Reads a list of .debug_ranges: pairs of addresses; (-1, base) sets the base, (0, 0)
 * ends the list. */
static int walk_debug_ranges(struct walk *walk, uint64_t offset)
{
	const struct pm_bytes *section = &walk->dwarf->ranges;
	uint8_t size = walk->unit->address_size;
	uint64_t base = walk->unit->base;
	uint64_t all_ones = size == 8 ? UINT64_MAX : UINT32_MAX;
	struct pm_reader reader;

	if (!open_section_reader(&reader, section, offset))
		return 0;
	while (walk_spend_budget(walk)) {
		uint64_t start = read_address_sized(&reader, size);
		uint64_t end = read_address_sized(&reader, size);
		int ret;

		if (reader.failed || (start == 0 && end == 0))
			break;
		if (start == all_ones) {
			base = end;
			continue;
		}
		ret = walk_emit_range(walk, base + start, base + end);
		if (ret < 0)
			return ret;
	}
	return 0;
}

/* Reads one entry of .debug_rnglists. Returns 1 for a range, 0 for a base, -1 at the end
 * of the list. */
static int read_rnglist_entry(struct walk *walk, struct pm_reader *reader, uint64_t *base,
			      uint64_t *start, uint64_t *end)
{
	uint8_t size = walk->unit->address_size, kind = pm_reader_u8(reader);
	bool fine = true;

	switch (kind) {
	case DW_RLE_base_addressx:
		fine = read_indexed_address(walk, pm_reader_uleb(reader), base);
		break;
	case DW_RLE_base_address:
		*base = read_address_sized(reader, size);
		break;
	case DW_RLE_startx_endx:
		fine = read_indexed_address(walk, pm_reader_uleb(reader), start) &&
		       read_indexed_address(walk, pm_reader_uleb(reader), end);
		break;
	case DW_RLE_startx_length:
		fine = read_indexed_address(walk, pm_reader_uleb(reader), start);
		*end = *start + pm_reader_uleb(reader);
		break;
	case DW_RLE_offset_pair:
		*start = *base + pm_reader_uleb(reader);
		*end = *base + pm_reader_uleb(reader);
		break;
	case DW_RLE_start_end:
		*start = read_address_sized(reader, size);
		*end = read_address_sized(reader, size);
		break;
	case DW_RLE_start_length:
		*start = read_address_sized(reader, size);
		*end = *start + pm_reader_uleb(reader);
		break;
	default: /* DW_RLE_end_of_list, or an unknown entry, whose length is unknown */
		return -1;
	}
	if (reader->failed || !fine)
		return -1;
	return kind != DW_RLE_base_addressx && kind != DW_RLE_base_address;
}

static int walk_rnglists(struct walk *walk, uint64_t offset)
{
	const struct pm_bytes *section = &walk->dwarf->rnglists;
	uint64_t base = walk->unit->base;
	struct pm_reader reader;

	if (!open_section_reader(&reader, section, offset))
		return 0;
	while (walk_spend_budget(walk)) {
		uint64_t start = 0, end = 0;
		int kind = read_rnglist_entry(walk, &reader, &base, &start, &end);
		int ret = 0;

		if (kind > 0)
			ret = walk_emit_range(walk, start, end);

		if (kind < 0)
			break;
		if (ret < 0)
			return ret;
	}
	return 0;
}

/* Reads the list of DW_FORM_rnglistx: an index into the table of offsets at
 * DW_AT_rnglists_base (DWARF 5 §7.28). */
static int walk_indexed_rnglist(struct walk *walk, uint64_t index)
{
	const struct pm_bytes *section = &walk->dwarf->rnglists;
	uint64_t base = walk->unit->rnglists_base, offset;
	struct pm_reader reader;

	if (__builtin_mul_overflow(index, walk->unit->offset_size, &offset) ||
	    __builtin_add_overflow(offset, base, &offset) ||
	    !open_section_reader(&reader, section, offset))
		return 0;
	offset = read_address_sized(&reader, walk->unit->offset_size);
	if (reader.failed || __builtin_add_overflow(offset, base, &offset))
		return 0;
	return walk_rnglists(walk, offset);
}

static bool is_address_index_form(uint16_t form)
{
	return form == DW_FORM_addrx || form == DW_FORM_addrx1 ||
	       form == DW_FORM_addrx2 || form == DW_FORM_addrx3 ||
	       form == DW_FORM_addrx4 || form == DW_FORM_GNU_addr_index;
}

static bool resolve_form_address(const struct walk *walk, uint16_t form, uint64_t value,
				 uint64_t *out)
{
	if (is_address_index_form(form))
		return read_indexed_address(walk, value, out);
	*out = value;
	return form == DW_FORM_addr;
}

int pm_pcs_each(struct pm_dwarf *dwarf, const struct pm_unit *unit,
		const struct pm_pcs *pcs, pm_range_fn each, void *user)
{
	struct walk walk = { .dwarf = dwarf, .unit = unit, .each = each, .user = user };
	int ret = 0;

	if (pcs->low_form && pcs->high_form) {
		uint64_t low, high;

		if (!resolve_form_address(&walk, pcs->low_form, pcs->low, &low))
			return 0;
		/* DW_AT_high_pc of class address is an end; of class constant, a
		 * length. */
		if (pcs->high_form == DW_FORM_addr ||
		    is_address_index_form(pcs->high_form)) {
			if (!resolve_form_address(&walk, pcs->high_form, pcs->high,
						  &high))
				return 0;
		} else if (__builtin_add_overflow(low, pcs->high, &high)) {
			return 0;
		}
		ret = walk_emit_range(&walk, low, high);
	} else if (pcs->ranges_form) {
		if (pcs->ranges_form == DW_FORM_rnglistx)
			ret = walk_indexed_rnglist(&walk, pcs->ranges);
		else if (unit->version >= 5)
			ret = walk_rnglists(&walk, pcs->ranges);
		else
			ret = walk_debug_ranges(&walk, pcs->ranges);
	}
	if (ret < 0)
		return ret;
	return walk.count;
}
