/* SPDX-License-Identifier: MIT */
/* Maps lines of one commit to lines of another one, using git's diff. */
#pragma once

#include "pm/base.h"

struct pmdiff_linemap;
/* 0 or negative with @err. */
int pmdiff_linemap_new(struct pmdiff_linemap **out, const char *base, const char *head,
		       struct pm_error *err);
void pmdiff_linemap_free(struct pmdiff_linemap *map);
/* The line in the head; the lines of a changed block are mapped in
 * order. 0: it is gone. */
uint32_t pmdiff_linemap_of(void *map, const char *file, uint32_t line);
/* The same as pmdiff_linemap_new(), from the output of `git diff -U0`.
 * Modifies @text. -ENOMEM. */
int pmdiff_linemap_parse(struct pmdiff_linemap **out, char *text);
