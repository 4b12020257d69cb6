/* SPDX-License-Identifier: MIT */
/*
 * elf.c finds the table, and the data that it refers to, in an ELF file; table.c reads
 * it.
 */
#pragma once

#include "pm/go.h"

/* @len bytes at @svma, in place; NULL: no segment has them all in the file. */
const uint8_t *pm_go_bytes(const struct pm_go_table *table, uint64_t svma, uint64_t len);
/* The number of bytes of the file that follow @svma in its segment; 0: it is in none. */
uint64_t pm_go_bytes_left(const struct pm_go_table *table, uint64_t svma);
bool pm_go_is_code(const struct pm_go_table *table, uint64_t svma);
/* Reads a word of the program, or a 32-bit number. */
bool pm_go_read_word(const struct pm_go_table *table, uint64_t svma, uint64_t *out);
bool pm_go_read_u32(const struct pm_go_table *table, uint64_t svma, uint32_t *out);

/*
 * Reads the header at @svma. The loads, the machine and the word size must be known.
 * Returns 0, or -ENOENT: there is no valid header. table->text may remain unknown (0).
 */
int pm_go_read_header(struct pm_go_table *table, uint64_t svma);
/* With table->text known: reads the range of code, and checks some rows. */
int pm_go_read_range(struct pm_go_table *table);
/* Whether these 8 bytes can be the start of a table. */
bool pm_go_is_magic(const struct pm_go_table *table, const uint8_t *bytes);
