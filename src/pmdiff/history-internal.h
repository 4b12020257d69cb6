/* SPDX-License-Identifier: MIT */
/* What the parts of histories share. */
#pragma once

#include "history.h"

#define PMDIFF_NOTES_REF "refs/notes/pmdiff"

/* The full name of a commit, SHA-1 or SHA-256. */
bool pmdiff_is_hash(const char *text, size_t len);
/* A document from @fd. One that is of no use becomes a warning. 0 or -ENOMEM. */
int pmdiff_history_add(struct pmdiff_history *history, const char *commit, int fd,
		       const char *name, struct pm_error *err);
/* Oldest first, and with the subjects that git knows. -ENOMEM. */
int pmdiff_history_order(struct pmdiff_history *history, struct pm_error *err);

int pmdiff_notes_read(struct pmdiff_history *history, const char *ref,
		      struct pm_error *err);
/* Whether a ref can have this name. -EINVAL. */
int pmdiff_notes_check(const char *ref, struct pm_error *err);
/* @fd: the document, from its begin. */
int pmdiff_notes_write(const char *ref, const char *commit, int fd, struct pm_error *err);
