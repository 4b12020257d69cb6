/* SPDX-License-Identifier: MIT */
/*
 * elf.c finds the table and what it refers to in an ELF file; table.c reads it.
 */
#pragma once

#include "pm/go.h"

/* @len bytes at @svma, in place; NULL when no segment's bytes in the file hold them all. */
const uint8_t *pm_go_bytes(const struct pm_go_table *table, uint64_t svma, uint64_t len);
/* How many bytes of the file follow @svma in its segment; 0: it lies in none. */
uint64_t pm_go_bytes_left(const struct pm_go_table *table, uint64_t svma);
bool pm_go_is_code(const struct pm_go_table *table, uint64_t svma);
/* A word of the program, or a number of 32 bits. */
bool pm_go_read_word(const struct pm_go_table *table, uint64_t svma, uint64_t *ret);
bool pm_go_read_u32(const struct pm_go_table *table, uint64_t svma, uint32_t *ret);

/*
 * Reads the header at @svma. The loads, the machine and the word size are known. 0 or -ENOENT:
 * there is no table that can be one. table->text may still be unknown (0).
 */
int pm_go_read_header(struct pm_go_table *table, uint64_t svma);
/* With table->text known: the range of code, and whether some rows are what they should be. */
int pm_go_read_range(struct pm_go_table *table);
/* Whether these 8 bytes can begin a table. */
bool pm_go_is_magic(const struct pm_go_table *table, const uint8_t *bytes);
