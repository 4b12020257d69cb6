/* SPDX-License-Identifier: MIT */
/* Shared by history*.c. */
#pragma once

#include "history.h"

#define PMDIFF_NOTES_REF "refs/notes/pmdiff"

/* Adds the document in @fd. A document that cannot be used becomes a
 * warning. 0 or -ENOMEM. */
int pmdiff_history_add(struct pmdiff_history *history, const char *commit, int fd,
		       const char *name, struct pm_error *err);
/* Sorts the commits, oldest first, and adds the subjects that git knows. -ENOMEM. */
int pmdiff_history_order(struct pmdiff_history *history, struct pm_error *err);

int pmdiff_notes_read(struct pmdiff_history *history, const char *ref,
		      struct pm_error *err);
/* Checks that @ref is a valid name of a ref. -EINVAL. */
int pmdiff_notes_check(const char *ref, struct pm_error *err);
/* @fd: the document, positioned at its start. */
int pmdiff_notes_write(const char *ref, const char *commit, int fd, struct pm_error *err);
