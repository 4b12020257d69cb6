/* SPDX-License-Identifier: MIT */
/* Encoded pointers of .eh_frame and .eh_frame_hdr (LSB 10.5.1). */
#include "unwind-parts.h"

#include <dwarf.h>

uint64_t pm_unw_read_word(const struct pm_unw_arch_info *arch, struct pm_reader *reader)
{
	if (arch->word_bytes == 4)
		return pm_reader_u32(reader);
	return pm_reader_u64(reader);
}

uint64_t pm_unw_read_encoded(const struct pm_unw_arch_info *arch,
			     struct pm_reader *reader, uint8_t encoding, uint64_t svma)
{
	uint64_t place = svma + reader->pos;
	uint64_t value;

	switch (encoding & 0x0f) {
	case DW_EH_PE_absptr:
		value = pm_unw_read_word(arch, reader);
		break;
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
		reader->failed = true; /* only for personalities */
	if (reader->failed)
		return 0;
	return value & arch->address_mask;
}
