/* SPDX-License-Identifier: MIT */
/* `pmrec --list`: the events of this machine, and which of them work for this user. */
#pragma once

#include "options.h"

/* Prints to stdout, as text or JSON, the events that options->list_kind and
 * options->list_glob select. Returns the exit status; errors have been printed. */
int pm_rec_list_run(const struct pm_rec_options *options);
