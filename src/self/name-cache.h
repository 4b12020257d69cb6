/* SPDX-License-Identifier: MIT */
/*
 * Names that earlier profiles of this process have found: reading the debug information
 * of libc again takes a tenth of a second, even for a few samples. Belongs to the helper
 * thread, of which only one exists at a time.
 */
#pragma once

#include "pm/symbol.h"

/* Identifies a version of a file: a file that is written to becomes a different one. */
struct pm_self_file {
	uint64_t device, inode, bytes, modified_ns, changed_ns;
};

/* Identifies the file @fd. Returns 0 or a negative errno. */
int pm_self_file_of(int fd, struct pm_self_file *out);

/* Whether the chain of functions at an address of the file (svma) is cached; the chain
 * may be empty. @out is valid until the next call that adds names. */
bool pm_self_names_find(const struct pm_self_file *file, uint64_t address,
			const struct pm_symbol_function **out, size_t *len);
/* Stores a copy. If there is no room, nothing is stored, and the names have to be found
 * again next time. */
void pm_self_names_add(const struct pm_self_file *file, uint64_t address,
		       const struct pm_symbol_function *functions, size_t len);
/* Drops all names. */
void pm_self_names_clear(void);
