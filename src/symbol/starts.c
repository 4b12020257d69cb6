/* SPDX-License-Identifier: MIT */
/*
 * Finds the start of functions without a symbol. .eh_frame has an entry for each, even in
 * stripped files, because exceptions need it (LSB 10.6.1). A function that was split has
 * an entry for each part. The section is read from start to end, and .eh_frame_hdr is not
 * used: not every file has it, and it is as untrusted as the section itself.
 */
#include "symbol-parts.h"

#include <dwarf.h>
#include <string.h>

enum {
	CIE_HEAD_BYTES_MAX = 256, /* all except its program; 17 are usual */
	AUGMENTATION_MAX = 16, /* letters; five are known */
};

/* The function that starts last among those after the previous wanted address and up to
 * this one. */
struct slot {
	uint64_t start, end; /* end 0: none */
};

struct frames {
	const struct pm_elf_image *image;
	const struct pm_wanted *wanted;
	struct slot *slots; /* by wanted address */
	const uint8_t *bytes;
	size_t len;
	uint64_t svma; /* of the section */
	bool is_64;
	/* The CIE that was read last; in most files, all entries use the same one. */
	size_t cie; /* its offset; equal to len: none */
	uint8_t encoding; /* DW_EH_PE_omit: entries of this CIE cannot be read */
};

/* ---- encoded pointers (LSB 10.5.1) ---------------------------------------------------- */

static uint64_t read_encoded_value(const struct frames *frames, struct pm_reader *reader,
				   uint8_t encoding)
{
	switch (encoding & 0x0f) {
	case DW_EH_PE_absptr:
		if (frames->is_64)
			return pm_reader_u64(reader);
		return pm_reader_u32(reader);
	case DW_EH_PE_udata2:
		return pm_reader_u16(reader);
	case DW_EH_PE_sdata2:
		return (uint64_t)(int16_t)pm_reader_u16(reader);
	case DW_EH_PE_udata4:
		return pm_reader_u32(reader);
	case DW_EH_PE_sdata4:
		return (uint64_t)(int32_t)pm_reader_u32(reader);
	case DW_EH_PE_udata8:
	case DW_EH_PE_sdata8:
		return pm_reader_u64(reader);
	case DW_EH_PE_uleb128:
		return pm_reader_uleb(reader);
	case DW_EH_PE_sleb128:
		return (uint64_t)pm_reader_sleb(reader);
	default:
		reader->failed = true;
		return 0;
	}
}

/* Reads an address with the encoding of the last CIE. The data of @reader start at
 * @offset of the section. */
static uint64_t read_encoded_address(const struct frames *frames,
				     struct pm_reader *reader, size_t offset)
{
	uint8_t relative = frames->encoding & 0xf0;
	uint64_t place = frames->svma + offset + reader->pos;
	uint64_t value = read_encoded_value(frames, reader, frames->encoding);

	if (relative == DW_EH_PE_pcrel)
		value += place;
	else if (relative != DW_EH_PE_absptr)
		reader->failed = true;
	if (frames->is_64)
		return value;
	return (uint32_t)value;
}

/* ---- entries -------------------------------------------------------------------------- */

/* Reads the length of the entry at @offset. Returns false at the section's end. [@begin,
 * @end) is the entry from its id on. */
static bool read_entry_length(const struct frames *frames, size_t offset, size_t *begin,
			      size_t *end)
{
	struct pm_reader reader;
	uint64_t length;

	pm_reader_init(&reader, frames->bytes + offset, frames->len - offset);
	length = pm_reader_u32(&reader);
	if (length == UINT32_MAX)
		length = pm_reader_u64(&reader);
	if (reader.failed || length > pm_reader_left(&reader))
		return false;
	*begin = offset + reader.pos;
	*end = *begin + (size_t)length;
	return true;
}

/* Returns the encoding that letter R has in the augmentation data, or DW_EH_PE_omit if it
 * cannot be found. */
static uint8_t find_pointer_encoding(const struct frames *frames,
				     struct pm_reader *reader, const char *letters)
{
	uint8_t encoding = DW_EH_PE_absptr;

	for (; *letters && *letters != 'R' && !reader->failed; letters++) {
		if (*letters == 'L') {
			pm_reader_u8(reader);
		} else if (*letters == 'P') {
			uint8_t personality = pm_reader_u8(reader);

			/* An aligned pointer would be padded; no compiler is known to use
			 * it. */
			if (personality == DW_EH_PE_aligned)
				return DW_EH_PE_omit;
			if (personality != DW_EH_PE_omit)
				read_encoded_value(frames, reader, personality);
		} else if (*letters != 'S' && *letters != 'B') {
			return DW_EH_PE_omit;
		}
	}
	if (*letters == 'R')
		encoding = pm_reader_u8(reader);
	if (reader->failed)
		return DW_EH_PE_omit;
	return encoding;
}

/* Returns the encoding of addresses in entries that use the CIE at @offset. */
static uint8_t read_cie_encoding(const struct frames *frames, size_t offset)
{
	struct pm_reader reader;
	const char *letters;
	size_t begin, end;
	uint8_t version;

	if (offset >= frames->len || !read_entry_length(frames, offset, &begin, &end))
		return DW_EH_PE_omit;
	if (end - begin > CIE_HEAD_BYTES_MAX)
		end = begin + CIE_HEAD_BYTES_MAX;
	pm_reader_init(&reader, frames->bytes + begin, end - begin);
	if (pm_reader_u32(&reader) != 0)
		return DW_EH_PE_omit;
	version = pm_reader_u8(&reader);
	letters = pm_reader_cstr(&reader);
	if (!letters || strlen(letters) > AUGMENTATION_MAX ||
	    (version != 1 && version != 3))
		return DW_EH_PE_omit;
	if (letters[0] == '\0')
		return DW_EH_PE_absptr;
	if (letters[0] != 'z')
		return DW_EH_PE_omit;
	pm_reader_uleb(&reader); /* code alignment */
	pm_reader_sleb(&reader); /* data alignment */
	if (version == 1)
		pm_reader_u8(&reader); /* register of the return address */
	else
		pm_reader_uleb(&reader);
	pm_reader_uleb(&reader); /* length of the augmentation data */
	return find_pointer_encoding(frames, &reader, letters + 1);
}

static void note_function_bounds(struct frames *frames, uint64_t start, uint64_t end)
{
	const struct pm_range *section = pm_elf_image_code(frames->image, start);
	size_t next = pm_wanted_from(frames->wanted, start);
	struct slot *slot = &frames->slots[next];

	/* An entry with address 0 may be left from code that the linker has dropped. */
	if (!section || start == 0 || next == frames->wanted->len)
		return;
	if (end > section->end)
		end = section->end;
	if (slot->end == 0 || slot->start < start ||
	    (slot->start == start && slot->end < end))
		*slot = (struct slot){ start, end };
}

/* Reads an entry, [@begin, @end) of the section, without its length field. */
static void read_frame_entry(struct frames *frames, size_t begin, size_t end)
{
	struct pm_reader reader;
	uint64_t start, len, after;
	uint32_t back;

	pm_reader_init(&reader, frames->bytes + begin, end - begin);
	back = pm_reader_u32(&reader);
	/* An id of 0 marks a CIE. */
	if (reader.failed || back == 0 || back > begin)
		return;
	if (frames->cie != begin - back) {
		frames->cie = begin - back;
		frames->encoding = read_cie_encoding(frames, frames->cie);
	}
	if (frames->encoding == DW_EH_PE_omit)
		return;
	start = read_encoded_address(frames, &reader, begin);
	len = read_encoded_value(frames, &reader, frames->encoding);
	if (!reader.failed && len > 0 && !__builtin_add_overflow(start, len, &after))
		note_function_bounds(frames, start, after);
}

/* Reads all entries up to the first damaged one, after which the start of the next one is
 * unknown. */
static void read_frame_entries(struct frames *frames)
{
	size_t offset = 0, begin, end;

	while (offset < frames->len && read_entry_length(frames, offset, &begin, &end)) {
		if (end > begin)
			read_frame_entry(frames, begin, end);
		offset = end;
	}
}

static bool find_frame_section(struct frames *frames)
{
	GElf_Shdr shdr;
	Elf_Scn *section = pm_elf_image_section(frames->image, ".eh_frame", NULL, &shdr);
	Elf_Data *data = elf_rawdata(section, NULL);

	if (!data || !data->d_buf)
		return false;
	frames->bytes = data->d_buf;
	frames->len = frames->cie = data->d_size;
	frames->svma = shdr.sh_addr;
	frames->is_64 = gelf_getclass(frames->image->elf) == ELFCLASS64;
	return true;
}

/* Whether bounds from .eh_frame are needed. PLT entries have been identified already;
 * .eh_frame has one entry for all of them. */
static bool needs_function_bounds(const struct pm_elf_symbol *symbol)
{
	return !symbol->name && symbol->start == 0;
}

int pm_starts_resolve(const struct pm_elf_image *image, const struct pm_wanted *wanted,
		      struct pm_elf_symbol *symbols)
{
	PM_AUTO_FREE struct slot *slots = calloc(wanted->len + 1, sizeof(*slots));
	struct frames frames = { .image = image, .wanted = wanted, .slots = slots };
	struct slot last = { 0 };
	bool asked = false;

	if (!slots)
		return -ENOMEM;
	for (size_t i = 0; i < wanted->len && !asked; i++)
		asked = needs_function_bounds(&symbols[i]);
	if (!asked || !find_frame_section(&frames))
		return 0;
	read_frame_entries(&frames);
	for (size_t i = 0; i < wanted->len; i++) {
		if (slots[i].end > 0)
			last = slots[i];
		if (needs_function_bounds(&symbols[i]) &&
		    last.end > wanted->addresses[i]) {
			symbols[i].start = last.start;
			symbols[i].end = last.end;
		}
	}
	return 0;
}
