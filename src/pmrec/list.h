/* SPDX-License-Identifier: MIT */
/* `pmrec --list`: the events of this machine, and which of them work for this user. */
#pragma once

#include "options.h"

/* Prints what options->list_kind and options->list_glob choose to stdout, as text or JSON.
 * The exit status; what goes wrong has been printed. */
int pm_rec_list_run(const struct pm_rec_options *options);
