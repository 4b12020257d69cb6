/* SPDX-License-Identifier: MIT */
/* Shared by history*.c. */
#pragma once

#include "history.h"

#define PMDIFF_NOTES_REF "refs/notes/pmdiff"

/* Sorts the commits from oldest to newest, and adds the subjects that git knows. Returns
 * 0 or -ENOMEM. */
int pmdiff_history_order(struct pmdiff_history *history, struct pm_error *err);
