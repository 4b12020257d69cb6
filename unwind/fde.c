/* SPDX-License-Identifier: MIT */
#include "unwind-parts.h"

#include <dwarf.h>
#include <string.h>

/* ---- one entry ------------------------------------------------------------------------ */

/*
 * These parts are not read by libdw: dwarf_next_cfi() of elfutils 0.188 assumes that an
 * augmentation has as many bytes of data as letters, and reads beyond the end of the
 * section.
 */

enum {
	CIE_BYTES_MAX = 4096, /* each may be read repeatedly; 24 are usual */
	CIE_HEAD_BYTES_MAX = 256, /* all of a CIE except its program; 17 are usual */
	AUGMENTATION_MAX = 16, /* letters; five are defined */
	TERMINATORS_MAX = 1024, /* in a row; a hole in a file looks like them */
	EMPTY_FDES_MAX = 16, /* in a row, with the same start; one is usual */
	CANCEL_EVERY = 1 << 12, /* entries between two checks for cancellation */
};

/* The part that CIEs and FDEs share (DWARF 5 §6.4.1, LSB 10.6.1). */
struct entry {
	const uint8_t *body, *end; /* after the id */
	size_t cie; /* offset of an FDE's CIE */
	bool is_cie;
};

static bool is_debug_region(const struct pm_unw_module *module,
			    const struct pm_unw_region *region)
{
	return region == &module->debug_frame;
}

/*
 * Reads the entry at @offset, after loading its bytes. Returns 0; 1 at the end of the
 * section; -ENOENT if there is only a terminator (`ld -r` leaves them in the middle); or
 * -EBADMSG, also if the entry is longer than @len_max. Sets @next, except at the end and
 * if the length is invalid.
 */
static int read_fde_entry(struct pm_unw_module *module, struct pm_unw_region *region,
			  size_t offset, size_t len_max, size_t *next, struct entry *out)
{
	bool debug = is_debug_region(module, region), is_64 = false;
	const uint8_t *bytes = pm_unw_region_need(region, offset, 4);
	struct pm_reader reader;
	uint64_t length, id;

	if (!bytes) {
		if (offset != region->len)
			return -EBADMSG;
		return 1;
	}
	pm_reader_init(&reader, bytes, 4);
	length = pm_reader_u32(&reader);
	if (length == 0) {
		*next = offset + 4;
		if (!region->open_ended)
			return -ENOENT;
		return 1;
	}
	offset += 4;
	if (length == 0xffffffff) {
		is_64 = true;
		bytes = pm_unw_region_need(region, offset, 8);
		if (!bytes)
			return -EBADMSG;
		pm_reader_init(&reader, bytes, 8);
		length = pm_reader_u64(&reader);
		offset += 8;
	}
	if (length > len_max)
		return -EBADMSG;
	bytes = pm_unw_region_need(region, offset, length);
	if (!bytes)
		return -EBADMSG;
	*next = offset + length;
	pm_reader_init(&reader, bytes, length);
	/* In .eh_frame, the id has four bytes in both formats and is an offset backward
	 * from its own position. */
	if (debug && is_64)
		id = pm_reader_u64(&reader);
	else
		id = pm_reader_u32(&reader);
	if (reader.failed)
		return -EBADMSG;
	if (debug)
		out->is_cie = id == (is_64 ? UINT64_MAX : UINT32_MAX);
	else
		out->is_cie = id == 0;
	out->cie = debug ? id : offset - id;
	out->body = bytes + reader.pos;
	out->end = bytes + length;
	return 0;
}

/* Skips a personality routine's pointer, whose value is not needed. */
static void skip_personality(const struct pm_unw_arch_info *arch,
			     struct pm_reader *reader, uint64_t svma)
{
	uint8_t encoding = pm_reader_u8(reader);

	if (encoding == DW_EH_PE_omit)
		return;
	if (encoding == DW_EH_PE_aligned)
		pm_reader_bytes(reader, -(svma + reader->pos) & (arch->word_bytes - 1u));
	pm_unw_read_encoded(arch, reader, encoding & 0x0f, 0);
}

/* Reads the data of a 'z' augmentation (LSB 10.6.1.1.1), which start at @svma. */
static bool read_cie_augmentation(const char *letters, struct pm_reader *data,
				  uint64_t svma, struct pm_unw_fde *out)
{
	for (; *letters && !data->failed; letters++) {
		switch (*letters) {
		case 'R':
			out->encoding = pm_reader_u8(data);
			break;
		case 'L':
			pm_reader_u8(data);
			break;
		case 'P':
			skip_personality(out->arch, data, svma);
			break;
		case 'S':
			out->signal = true;
			break;
		case 'B': /* aarch64: PACs use key B; they are stripped in the same way */
			break;
		default:
			/* The size of the data is known, so the remaining letters can be
			 * skipped, too. */
			return true;
		}
	}
	return !data->failed;
}

/* A CIE, cached for the next FDE, which usually has the same one. */
struct cie {
	bool is_read;
	size_t offset;
	int rc; /* result of read_cie_at() */
	struct pm_unw_fde fde; /* the part common to its FDEs */
	bool sized; /* the augmentation data is preceded by its length */
};

/* Reads the part of @out that comes from the CIE. For @sized, see struct cie. */
static int read_cie_at(struct pm_unw_module *module, struct pm_unw_region *region,
		       size_t offset, struct pm_unw_fde *out, bool *sized)
{
	struct pm_reader reader, data;
	struct entry entry;
	const char *letters;
	const uint8_t *at;
	uint8_t version;
	uint64_t size;
	size_t unused, len;

	if (read_fde_entry(module, region, offset, CIE_BYTES_MAX, &unused, &entry) != 0 ||
	    !entry.is_cie)
		return -EBADMSG;
	len = (size_t)(entry.end - entry.body);
	pm_reader_init(&reader, entry.body, PM_MIN(len, CIE_HEAD_BYTES_MAX));
	version = pm_reader_u8(&reader);
	letters = pm_reader_cstr(&reader);
	if (!letters || strlen(letters) > AUGMENTATION_MAX ||
	    (version != 1 && version != 3 && version != 4))
		return -EBADMSG;
	*sized = letters[0] == 'z';
	if (strcmp(letters, "eh") == 0)
		pm_unw_read_word(out->arch, &reader); /* g++ 2's exception table */
	else if (letters[0] != '\0' && !*sized)
		return -EBADMSG;
	if (version == 4 && (pm_reader_u8(&reader) != out->arch->word_bytes ||
			     pm_reader_u8(&reader) != 0))
		return -EBADMSG; /* address_size must be the architecture's, and
		                  * segment_selector_size 0 */
	out->code_align = pm_reader_uleb(&reader);
	out->data_align = pm_reader_sleb(&reader);
	if (version == 1)
		out->ra_reg = pm_reader_u8(&reader);
	else
		out->ra_reg = (uint32_t)pm_reader_uleb(&reader);
	out->encoding = DW_EH_PE_absptr;
	if (*sized) {
		size = pm_reader_uleb(&reader);
		at = pm_reader_bytes(&reader, size);
		if (reader.failed)
			return -EBADMSG;
		pm_reader_init(&data, at, size);
		if (!read_cie_augmentation(letters + 1, &data,
					   region->svma + (uint64_t)(at - region->data),
					   out))
			return -EBADMSG;
	}
	out->initial = reader.data + reader.pos;
	out->initial_end = entry.end;
	if (reader.failed)
		return -EBADMSG;
	return 0;
}

static void use_cie_of_fde(struct pm_unw_module *module, struct pm_unw_region *region,
			   size_t offset, struct cie *cie)
{
	if (cie->is_read && cie->offset == offset)
		return;
	*cie = (struct cie){ .is_read = true,
			     .offset = offset,
			     .fde = { .arch = &pm_unw_arch_infos[module->arch],
				      .region_svma = region->svma,
				      .region_data = region->data } };
	cie->rc = read_cie_at(module, region, offset, &cie->fde, &cie->sized);
}

/* Reads the FDE at @offset into @out. Returns -ENOENT if it is a CIE. @cie is the last
 * one used. */
static int read_next_fde(struct pm_unw_module *module, struct pm_unw_region *region,
			 size_t offset, struct cie *cie, struct pm_unw_fde *out,
			 size_t *next)
{
	struct pm_unw_fde fde;
	struct pm_reader reader;
	struct entry entry;
	uint64_t size;
	int ret = read_fde_entry(module, region, offset, region->len, next, &entry);

	if (ret != 0)
		return ret;
	if (entry.is_cie)
		return -ENOENT;
	use_cie_of_fde(module, region, entry.cie, cie);
	if (cie->rc != 0)
		return cie->rc;
	fde = cie->fde;
	pm_reader_init(&reader, entry.body, (size_t)(entry.end - entry.body));
	fde.start =
		pm_unw_read_encoded(fde.arch, &reader, fde.encoding,
				    region->svma + (uint64_t)(entry.body - region->data));
	/* The length has the pointer's format, but is not relative to anything. */
	size = pm_unw_read_encoded(fde.arch, &reader, fde.encoding & 0x0f, 0);
	if (cie->sized)
		pm_reader_bytes(&reader, pm_reader_uleb(&reader));
	if (reader.failed || __builtin_add_overflow(fde.start, size, &fde.end))
		return -EBADMSG;
	fde.program = reader.data + reader.pos;
	fde.program_end = entry.end;
	*out = fde;
	return 0;
}

static int read_fde_at(struct pm_unw_module *module, struct pm_unw_region *region,
		       size_t offset, struct pm_unw_fde *out, size_t *next)
{
	struct cie cie = { 0 };

	return read_next_fde(module, region, offset, &cie, out, next);
}

/* ---- tables --------------------------------------------------------------------------- */

static int compare_places_by_start(const void *a, const void *b)
{
	const struct pm_unw_fde_place *x = a, *y = b;

	return PM_COMPARE(x->start, y->start);
}

/*
 * Linkers keep the debug information of functions that they drop (--gc-sections, COMDAT),
 * with a start of 0. There may be code at 0, but it belongs to other functions.
 */
static bool is_function_dropped(const struct pm_unw_code_span *code,
				const struct pm_unw_fde *fde)
{
	return fde->start == 0 || fde->start < code->start || fde->start >= code->end;
}

/* Collects all FDEs of a region that has no sorted header table, in order of address. */
static void scan_region_for_fdes(struct pm_unw_module *module,
				 struct pm_unw_region *region,
				 struct pm_unw_fde_table *table)
{
	size_t offset = 0, next = 0, terminators = 0, entries = 0, bytes;
	struct pm_unw_code_span code = pm_unw_module_code_span(module);
	struct cie cie = { 0 };
	bool sorted = true;

	table->scanned = true;
	while (offset < region->len) {
		size_t len = table->places.len;
		struct pm_unw_fde fde;
		int ret = read_next_fde(module, region, offset, &cie, &fde, &next);

		if (ret == 0 && fde.end > fde.start &&
		    !(is_debug_region(module, region) &&
		      is_function_dropped(&code, &fde))) {
			sorted &= len == 0 ||
				  table->places.data[len - 1].start <= fde.start;
			table->too_large = !pm_unw_fde_table_push(table, &fde, offset);
		}
		if (ret == 1 || next <= offset || table->too_large ||
		    (++entries % CANCEL_EVERY == 0 && pm_unw_is_cancelled(module)))
			break;
		if (ret == -ENOENT && next - offset == 4)
			terminators++;
		else
			terminators = 0;
		if (terminators > TERMINATORS_MAX)
			break;
		offset = next;
	}
	/* No pointer into the region is in use, unless the header's table was used before
	 * it was dropped. */
	if (table->places.len == 0 && !table->too_large &&
	    (is_debug_region(module, region) || module->hdr_count == 0))
		pm_unw_region_forget(region);
	if (table->places.len > 0)
		pm_unw_fde_table_resize(table, table->places.len);
	/* qsort(3) needs the same amount of memory again. */
	bytes = table->places.len * sizeof(*table->places.data);
	if (!sorted && !table->too_large && !pm_unw_is_cancelled(module)) {
		table->too_large = !pm_unw_budget_take(bytes);
		if (!table->too_large) {
			qsort(table->places.data, table->places.len,
			      sizeof(*table->places.data), compare_places_by_start);
			pm_unw_budget_give(bytes);
		}
	}
	if (table->too_large) {
		pm_unw_fde_table_release(table);
		table->scanned = table->too_large = true;
	}
}

const struct pm_unw_fde_table *pm_unw_fde_scan(struct pm_unw_module *module)
{
	pm_unw_fde_table_release(&module->eh_scanned);
	scan_region_for_fdes(module, &module->eh_frame, &module->eh_scanned);
	return &module->eh_scanned;
}

void pm_unw_fde_scan_debug(struct pm_unw_module *module)
{
	pm_unw_fde_table_release(&module->debug_scanned);
	scan_region_for_fdes(module, &module->debug_frame, &module->debug_scanned);
}

static int find_fde_in_scanned(struct pm_unw_module *module, struct pm_unw_region *region,
			       struct pm_unw_fde_table *table, uint64_t svma,
			       struct pm_unw_fde *out)
{
	size_t low = 0, high, next;
	int ret;

	if (region->len == 0)
		return -ENOENT;
	if (!table->scanned && (module->task || !pm_unw_may_now(module, region->len)))
		return pm_unw_do_later(module,
				       is_debug_region(module, region)
					       ? PM_UNW_WANTED_DEBUG_TABLE
					       : PM_UNW_WANTED_EH_TABLE,
				       -1);
	if (!table->scanned)
		scan_region_for_fdes(module, region, table);
	if (table->too_large)
		return -EFBIG;
	for (high = table->places.len; low < high;) {
		size_t middle = low + (high - low) / 2;

		if (table->places.data[middle].start <= svma)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == 0)
		return -ENOENT;
	ret = read_fde_at(module, region, table->places.data[low - 1].offset, out, &next);
	/* The file may have changed since the other thread read it. */
	if (ret == 0 && (svma < out->start || svma >= out->end))
		return -ENOENT;
	return ret;
}

/*
 * If several FDEs have the same start, BOLT puts only the first into the table. If that
 * one is empty, the next one in the section is the right one. Returns false if that one
 * is empty, too, or starts elsewhere.
 */
static bool read_behind_empty(struct pm_unw_module *module, size_t offset,
			      struct pm_unw_fde *fde)
{
	struct pm_unw_fde behind;
	size_t next;

	if (read_fde_at(module, &module->eh_frame, offset, &behind, &next) != 0 ||
	    behind.start != fde->start || behind.end <= behind.start)
		return false;
	*fde = behind;
	return true;
}

/* Reads the FDE of a row of the header's table. Returns -ENOENT if it does not cover
 * @svma. */
static int read_hdr_row(struct pm_unw_module *module, size_t row, uint64_t svma,
			struct pm_unw_fde *out)
{
	struct pm_unw_region *hdr = &module->eh_frame_hdr;
	const uint8_t *pair;
	struct pm_unw_fde fde;
	int32_t start, relative;
	uint64_t offset;
	size_t next;

	/* Empty FDEs have the same start as the next function; which comes first depends
	 * on the linker. */
	for (int i = 0; i < EMPTY_FDES_MAX; i++, row--) {
		pair = pm_unw_region_need(hdr, module->hdr_table + row * 8, 8);
		if (!pair)
			return -EBADMSG;
		memcpy(&start, pair, 4);
		memcpy(&relative, pair + 4, 4);
		offset = hdr->svma + (uint64_t)(int64_t)relative - module->eh_frame.svma;
		if (offset >= module->eh_frame.len ||
		    read_fde_at(module, &module->eh_frame, offset, &fde, &next) != 0 ||
		    fde.start != hdr->svma + (uint64_t)(int64_t)start)
			return -EBADMSG;
		if (fde.end > fde.start || read_behind_empty(module, next, &fde) ||
		    row == 0)
			break;
	}
	if (svma < fde.start || svma >= fde.end)
		return -ENOENT;
	*out = fde;
	return 0;
}

/* Searches the sorted table of .eh_frame_hdr: pairs of 32-bit offsets from the header. */
static int find_fde_in_hdr(struct pm_unw_module *module, uint64_t svma,
			   struct pm_unw_fde *out)
{
	struct pm_unw_region *hdr = &module->eh_frame_hdr;
	size_t low = 0, high = module->hdr_count;
	const uint8_t *pair;
	int32_t relative;

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
	return read_hdr_row(module, low - 1, svma, out);
}

/* Whether some rows of the table, among them the first and the last, are correct. A table
 * that passes is trusted: the program's own exceptions use it, too. */
static bool is_table_sound(struct pm_unw_module *module)
{
	enum {
		ROWS = 8
	};
	struct pm_unw_region *hdr = &module->eh_frame_hdr;
	size_t last_row = 0;
	int32_t last = INT32_MIN;

	for (size_t i = 0; i < ROWS && !module->hdr_sound; i++) {
		size_t row = (module->hdr_count - 1) / (ROWS - 1) * i;
		const uint8_t *pair;
		struct pm_unw_fde fde;
		int32_t start;

		if (i == ROWS - 1)
			row = module->hdr_count - 1;
		pair = pm_unw_region_need(hdr, module->hdr_table + row * 8, 4);
		if (!pair)
			return false;
		memcpy(&start, pair, 4);
		if ((row > last_row && start < last) ||
		    read_hdr_row(module, row, hdr->svma + (uint64_t)(int64_t)start,
				 &fde) == -EBADMSG)
			return false;
		last = start;
		last_row = row;
	}
	module->hdr_sound = true;
	return true;
}

/*
 * Searches the header's table. If the table turns out to be wrong, it is dropped and the
 * whole section is scanned.
 */
int pm_unw_fde_in_eh_frame(struct pm_unw_module *module, uint64_t svma,
			   struct pm_unw_fde *out)
{
	int ret = -ENOENT, scan_rc;

	if (module->hdr_table) {
		ret = find_fde_in_hdr(module, svma, out);
		if (ret == 0 || (ret == -ENOENT && is_table_sound(module)))
			return ret;
		/* The table may be correct, and only memory was too short to read it. */
		if (pm_unw_budget_is_short())
			return -ENOBUFS;
		module->hdr_table = 0;
		/* There may be entries that the table did not lead to; this invalidates
		 * cached results. */
		pm_unw_module_renew(module);
	}
	scan_rc = find_fde_in_scanned(module, &module->eh_frame, &module->eh_scanned,
				      svma, out);
	if (scan_rc == -ENOENT)
		return ret;
	return scan_rc;
}

/* Returns the offset after the last entry that the header's table refers to. */
static size_t hdr_end(struct pm_unw_module *module)
{
	struct pm_unw_region *hdr = &module->eh_frame_hdr, *region = &module->eh_frame;
	size_t last = 0, next;
	struct entry entry;

	for (size_t i = 0; module->hdr_table && i < module->hdr_count; i++) {
		const uint8_t *pair =
			pm_unw_region_need(hdr, module->hdr_table + i * 8, 8);
		int32_t relative;
		uint64_t offset;

		if (!pair)
			break;
		memcpy(&relative, pair + 4, 4);
		offset = hdr->svma + (uint64_t)(int64_t)relative - region->svma;
		if (offset < region->len && offset > last)
			last = offset;
	}
	if (read_fde_entry(module, region, last, region->len, &next, &entry) == 0)
		return next;
	return last;
}

int pm_unw_fde_in_debug_frame(struct pm_unw_module *module, uint64_t svma,
			      struct pm_unw_fde *out)
{
	return find_fde_in_scanned(module, &module->debug_frame, &module->debug_scanned,
				   svma, out);
}

size_t pm_unw_eh_frame_len(struct pm_unw_module *module)
{
	struct pm_unw_region *region = &module->eh_frame;
	size_t offset = 0, next = 0, by_hdr;
	struct entry entry;

	if (!region->open_ended)
		return region->len;
	while (read_fde_entry(module, region, offset, region->len, &next, &entry) == 0 &&
	       next > offset)
		offset = next;
	/* The table may refer to entries after a terminator in the middle. */
	by_hdr = hdr_end(module);
	return PM_MAX(by_hdr, offset);
}
