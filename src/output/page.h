/* SPDX-License-Identifier: MIT */
/* The files of src/output/page, which are embedded in the program. */
#pragma once

#include <stddef.h>

struct pm_page_file {
	const char *name; /* without directory */
	const unsigned char *bytes; /* not terminated */
	size_t len;
	const char *sha256; /* base64 */
};

/* The files in the order of src/output/page/meson.build. */
extern const struct pm_page_file pm_page_files[];
extern const size_t pm_page_files_len;
