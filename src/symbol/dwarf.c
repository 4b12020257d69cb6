/* SPDX-License-Identifier: MIT */
#include "symbol-internal.h"

bool pm_dwarf_present(const struct pm_elf_image *image)
{
	GElf_Shdr shdr;

	return pm_elf_image_section(image, ".debug_info", ".zdebug_info", &shdr) != NULL;
}

int pm_dwarf_resolve(const struct pm_elf_image *image, const struct pm_elf_image *debug,
		     const struct pm_wanted *wanted,
		     const struct pm_symbol_options *options, struct pm_texts *texts,
		     struct pm_dwarf_answers *answers)
{
	return 0;
}
