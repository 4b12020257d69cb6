/* SPDX-License-Identifier: MIT */
/*
 * Names that earlier profiles of this process have found: to read the debug information of libc
 * anew takes a tenth of a second, however few ticks there are to be named. Belongs to the helper
 * thread, of which there is one at a time.
 */
#pragma once

#include "pm/symbol.h"

/* A file as it is: one that is written to is another. */
struct pm_self_file {
	uint64_t device, inode, bytes, modified_ns, changed_ns;
};

/* 0 or negative errno. */
int pm_self_file_of(int fd, struct pm_self_file *ret);

/* Whether the chain of functions at an address of the file (svma) is known; it may be empty. Good
 * until the next call that adds. */
bool pm_self_names_find(const struct pm_self_file *file, uint64_t address,
			const struct pm_symbol_function **ret, size_t *len);
/* Keeps a copy. What does not fit is found again the next time. */
void pm_self_names_add(const struct pm_self_file *file, uint64_t address,
		       const struct pm_symbol_function *functions, size_t len);
/* Forgets all of them. */
void pm_self_names_clear(void);
