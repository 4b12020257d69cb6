/* SPDX-License-Identifier: MIT */
/*
 * Finds .eh_frame by its bytes. In static programs only section headers say where it is,
 * because such programs register it themselves. Packers and sstrip remove these headers.
 * The bytes are still there and have an unmistakable form.
 */
#include "unwind-parts.h"

#include <string.h>

enum {
	SEARCHED_BYTES_MAX = 1 << 26,
	CANDIDATES_MAX = 4, /* each is scanned to its end */
	CIE_BYTES_MAX = 256,
};

/* Whether a CIE starts here as assemblers write it (LSB 10.6.1.1): length, id 0, version,
 * augmentation "z…". */
static bool is_cie_at(const uint8_t *bytes)
{
	uint32_t head[2];

	memcpy(head, bytes, sizeof(head));
	return head[1] == 0 && head[0] >= 8 && head[0] <= CIE_BYTES_MAX &&
	       (bytes[8] == 1 || bytes[8] == 3) && bytes[9] == 'z';
}

static bool is_place_in_code(const struct pm_unw_code_span *code,
			     const struct pm_unw_fde_place *place)
{
	return place->start >= code->start && place->start < code->end &&
	       place->len <= code->end - place->start;
}

/* Uses the section that starts at offset @skip of @load if everything that it describes
 * is code. */
static bool take_eh_frame_at(struct pm_unw_module *module, const struct pm_unw_load *load,
			     size_t skip)
{
	struct pm_unw_code_span code = pm_unw_module_code_span(module);
	const struct pm_unw_fde_table *table;
	size_t good = 0;

	pm_unw_region_open(module, &module->eh_frame, load->vaddr + skip,
			   load->offset + skip, load->filesz - skip);
	module->eh_frame.open_ended = true;
	table = pm_unw_fde_scan(module);
	while (good < table->places.len &&
	       is_place_in_code(&code, &table->places.data[good]))
		good++;
	if (good > 0 && good == table->places.len)
		return true;
	pm_unw_region_release(&module->eh_frame);
	pm_unw_fde_scan(module);
	return false;
}

bool pm_unw_eh_frame_search(struct pm_unw_module *module)
{
	size_t step = pm_unw_arch_infos[module->arch].word_bytes;
	uint64_t left = SEARCHED_BYTES_MAX;
	int candidates = 0;

	if (!module->no_sections || module->eh_frame.len > 0)
		return false;
	for (size_t i = 0; i < module->loads.len; i++) {
		const struct pm_unw_load *load = &module->loads.data[i];
		struct pm_unw_region region = { 0 };
		const uint8_t *bytes;
		bool found = false;

		if (load->filesz > left)
			continue;
		left -= load->filesz;
		pm_unw_region_open(module, &region, load->vaddr, load->offset,
				   load->filesz);
		for (size_t at = -load->vaddr & (step - 1);
		     !found && candidates < CANDIDATES_MAX &&
		     (bytes = pm_unw_region_need(&region, at, 16));
		     at += step)
			if (is_cie_at(bytes)) {
				candidates++;
				found = take_eh_frame_at(module, load, at);
			}
		pm_unw_region_release(&region);
		if (found)
			return true;
	}
	return false;
}

uint64_t pm_unw_eh_frame_search_cost(const struct pm_unw_module *module)
{
	uint64_t left = SEARCHED_BYTES_MAX;

	for (size_t i = 0; i < module->loads.len; i++)
		if (module->loads.data[i].filesz <= left)
			left -= module->loads.data[i].filesz;
	return SEARCHED_BYTES_MAX - left;
}
