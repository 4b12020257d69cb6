/* SPDX-License-Identifier: MIT */
/* The files of src/output/page, which the program holds. */
#pragma once

#include <stddef.h>

struct pm_page_file {
	const char *name; /* without folder */
	const unsigned char *bytes; /* not terminated */
	size_t len;
	const char *sha256; /* base64 */
};

/* As src/output/page/meson.build lists them. */
extern const struct pm_page_file pm_page_files[];
extern const size_t pm_page_files_len;
