/* SPDX-License-Identifier: MIT */
/* Any text as a mangled name. */
#include "pm/symbol.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	PM_AUTO_FREE char *mangled = strndup((const char *)data, size);
	PM_AUTO_FREE char *name = mangled ? pm_demangle(mangled) : NULL;

	for (size_t i = 0; name && name[i]; i++)
		if ((unsigned char)name[i] < 0x20 || name[i] == 0x7f)
			abort();
	return 0;
}
