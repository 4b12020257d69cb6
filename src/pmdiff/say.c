/* SPDX-License-Identifier: MIT */
#include "say.h"

#include <stdarg.h>

void pmdiff_say(const struct pmdiff_options *options, const char *format, ...)
{
	struct pm_error text = { .offset = -1 };
	va_list args;

	if (options->quiet)
		return;
	va_start(args, format);
	vsnprintf(text.text, sizeof(text.text), format, args);
	va_end(args);
	pm_error_print(&text, "pmdiff", stderr);
}
