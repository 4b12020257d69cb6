/* SPDX-License-Identifier: MIT */
/* Maps lines of one commit to lines of another one, using git's diff. */
#pragma once

#include "pm/base.h"

struct pmdiff_linemap;
/* Runs git's diff and parses it. Returns 0, or a negative errno with @err. */
int pmdiff_linemap_new(struct pmdiff_linemap **out, const char *base, const char *head,
		       struct pm_error *err);
void pmdiff_linemap_free(struct pmdiff_linemap *map);
/* Returns the line of the head that @line of the base has become; the lines of a changed
 * block are mapped in order. Returns 0 if the line was removed. */
uint32_t pmdiff_linemap_of(void *map, const char *file, uint32_t line);
/* The same as pmdiff_linemap_new(), from the output of `git diff -U0`. Modifies @text.
 * Returns 0 or -ENOMEM. */
int pmdiff_linemap_parse(struct pmdiff_linemap **out, char *text);
