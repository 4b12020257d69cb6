/* SPDX-License-Identifier: MIT */
/* Shared by history*.c. */
#pragma once

#include "history.h"

#define PMDIFF_NOTES_REF "refs/notes/pmdiff"

/* Sorts the commits, oldest first, and adds the subjects that git knows. -ENOMEM. */
int pmdiff_history_order(struct pmdiff_history *history, struct pm_error *err);
