/* SPDX-License-Identifier: MIT */
/* Which line of one commit a line of another one has become, as git tells their difference. */
#pragma once

#include "pm/base.h"

struct pmdiff_linemap;
/* 0 or negative with @err. */
int pmdiff_linemap_new(struct pmdiff_linemap **ret, const char *base, const char *head,
		       struct pm_error *err);
void pmdiff_linemap_free(struct pmdiff_linemap *map);
/* The line of the head; lines of a changed block are taken in their order. 0: it is gone. */
uint32_t pmdiff_linemap_of(void *map, const char *file, uint32_t line);
/* As pmdiff_linemap_new() of what `git diff -U0` has written. Cuts @text into pieces. -ENOMEM. */
int pmdiff_linemap_parse(struct pmdiff_linemap **ret, char *text);
