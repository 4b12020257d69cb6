/* SPDX-License-Identifier: MIT */
/*
 * The bounds of functions according to the unwind information. .eh_frame_hdr has a sorted
 * table of starts (LSB "Exception Frames"); each refers to an entry of .eh_frame, which
 * has a length. Stripped files have it, too, and it distinguishes parts of functions even
 * if these have no names.
 */
#include "probe-internal.h"

#include <string.h>

enum {
	HEADER_BYTES = 4, /* version and three encodings */
	TABLE_ENCODING = 0x3b, /* datarel, sdata4: what linkers write */
	ENTRIES_MAX = 1 << 22,
	FDE_BYTES = 16, /* length, CIE, start, length of the code */
	CIE_BYTES = 9, /* length, id and version; the augmentation follows */
};

struct table {
	const struct pm_probe_elf *elf;
	uint64_t svma, offset; /* of .eh_frame_hdr */
	uint64_t rows; /* file offset of the first row */
	size_t len;
};

static bool probe_elf_read_at(const struct pm_probe_elf *elf, uint64_t offset, void *out,
			      size_t len)
{
	return offset <= elf->size && len <= elf->size - offset &&
	       pread(elf->fd, out, len, (off_t)offset) == (ssize_t)len;
}

static bool file_offset_of_address(const struct pm_probe_elf *elf, uint64_t address,
				   uint64_t *out)
{
	const struct pm_probe_segment *segment = pm_probe_elf_segment(elf, address);

	return segment &&
	       !__builtin_add_overflow(address - segment->start, segment->offset, out);
}

static bool open_frame_table(struct table *table, const struct pm_probe_elf *elf)
{
	const struct pm_probe_section *section =
		pm_probe_elf_section(elf, ".eh_frame_hdr");
	uint8_t header[HEADER_BYTES];
	uint32_t count;

	/* The address of .eh_frame, four bytes, is between header and count. */
	if (!section ||
	    !probe_elf_read_at(elf, section->offset, header, sizeof(header)) ||
	    header[0] != 1 || (header[1] & 0x0f) != 0x0b || header[2] != 0x03 ||
	    header[3] != TABLE_ENCODING ||
	    !probe_elf_read_at(elf, section->offset + 8, &count, sizeof(count)) ||
	    count > ENTRIES_MAX)
		return false;
	*table = (struct table){ .elf = elf,
				 .svma = section->address,
				 .offset = section->offset,
				 .rows = section->offset + 12,
				 .len = count };
	return true;
}

static bool read_frame_table_row(const struct table *table, size_t index, uint64_t *low,
				 uint64_t *fde)
{
	int32_t row[2];

	if (!probe_elf_read_at(table->elf, table->rows + index * sizeof(row), row,
			       sizeof(row)))
		return false;
	*low = table->svma + (uint64_t)(int64_t)row[0];
	*fde = table->svma + (uint64_t)(int64_t)row[1];
	return true;
}

/* Counts the rows that start at or before @address. */
static bool count_frame_rows_up_to(const struct table *table, uint64_t address,
				   size_t *out)
{
	size_t from = 0, to = table->len;

	while (from < to) {
		size_t mid = from + (to - from) / 2;
		uint64_t low, fde;

		if (!read_frame_table_row(table, mid, &low, &fde))
			return false;
		if (low <= address)
			from = mid + 1;
		else
			to = mid;
	}
	*out = from;
	return true;
}

/* Reads the entry of a row: its offset and its first words. */
static bool read_frame_table_fde(const struct table *table, size_t index,
				 struct pm_probe_piece *out, uint64_t *at,
				 uint32_t words[static FDE_BYTES / 4])
{
	uint64_t low, fde, offset;

	if (!read_frame_table_row(table, index, &low, &fde) ||
	    !file_offset_of_address(table->elf, fde, &offset) ||
	    !probe_elf_read_at(table->elf, offset, words, FDE_BYTES))
		return false;
	/* With another encoding of pointers, its start would not match. */
	if (words[0] < FDE_BYTES - 4 || words[0] == UINT32_MAX || words[1] == 0 ||
	    fde + 8 + (uint64_t)(int64_t)(int32_t)words[2] != low)
		return false;
	*out = (struct pm_probe_piece){ low, low + words[3] };
	*at = offset;
	return true;
}

/* Finds the entry that covers @address. */
static bool find_covering_fde(const struct pm_probe_elf *elf, uint64_t address,
			      struct pm_probe_piece *out, uint64_t *at,
			      uint32_t words[static FDE_BYTES / 4])
{
	struct pm_probe_piece piece;
	struct table table;
	size_t len;

	if (!open_frame_table(&table, elf) ||
	    !count_frame_rows_up_to(&table, address, &len) || len == 0 ||
	    !read_frame_table_fde(&table, len - 1, &piece, at, words))
		return false;
	if (piece.low > address || address - piece.low >= words[3])
		return false;
	*out = piece;
	return true;
}

bool pm_probe_frame_at(const struct pm_probe_elf *elf, uint64_t address,
		       struct pm_probe_piece *out)
{
	uint32_t words[FDE_BYTES / 4];
	uint64_t at;

	return find_covering_fde(elf, address, out, &at, words);
}

bool pm_probe_frame_next(const struct pm_probe_elf *elf, uint64_t address, uint64_t *out)
{
	struct table table;
	uint64_t low, fde;
	size_t len = 0;

	if (!open_frame_table(&table, elf) ||
	    (address > 0 && !count_frame_rows_up_to(&table, address - 1, &len)) ||
	    len >= table.len || !read_frame_table_row(&table, len, &low, &fde) ||
	    low < address)
		return false;
	*out = low;
	return true;
}

bool pm_probe_frame_catches(const struct pm_probe_elf *elf, uint64_t address)
{
	uint32_t words[FDE_BYTES / 4];
	struct pm_probe_piece piece;
	char augmentation[8];
	uint64_t at, cie;

	/* The distance to its CIE counts from this field. */
	if (!find_covering_fde(elf, address, &piece, &at, words) ||
	    __builtin_sub_overflow(at + 4, words[1], &cie) ||
	    !probe_elf_read_at(elf, cie + CIE_BYTES, augmentation, sizeof(augmentation)))
		return true;
	return augmentation[0] != 'z' ||
	       memchr(augmentation, 'L', strnlen(augmentation, sizeof(augmentation)));
}
