/* SPDX-License-Identifier: MIT */
/* Takes copies of modules apart. */
#include "unwind-parts.h"

static struct pm_unw_part make_part_of_region(struct pm_unw_region *region, size_t len)
{
	const uint8_t *data = pm_unw_region_need(region, 0, len);

	return (struct pm_unw_part){ region->svma, data, data ? len : 0 };
}

int pm_unw_module_parts(struct pm_unw_module *module, struct pm_unw_parts *out)
{
	struct pm_unw_part_load *loads = calloc(module->loads.len + 1, sizeof(*loads));
	const struct pm_unw_helper *helper = module->helper;

	if (!loads)
		return -ENOMEM;
	for (size_t i = 0; i < module->loads.len; i++) {
		const struct pm_unw_load *load = &module->loads.data[i];

		loads[i] = (struct pm_unw_part_load){ .vaddr = load->vaddr,
						      .offset = load->offset,
						      .filesz = load->filesz,
						      .executable = load->executable };
	}
	/* Reads everything now, not only the parts that were needed so far. */
	pm_unw_task_drop(module);
	module->helper = NULL;
	pm_unw_module_fill_gap(module);
	module->helper = helper;
	*out = (struct pm_unw_parts){
		.arch = module->arch,
		.entry = module->entry,
		.page_bytes = module->page_bytes,
		.loads = loads,
		.loads_len = module->loads.len,
		.eh_frame_hdr = make_part_of_region(&module->eh_frame_hdr,
						    module->eh_frame_hdr.len),
		.eh_frame = make_part_of_region(&module->eh_frame,
						pm_unw_eh_frame_len(module)),
		.debug_frame =
			make_part_of_region(&module->debug_frame, module->debug_frame.len)
	};
	return 0;
}
