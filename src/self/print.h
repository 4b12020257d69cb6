/* SPDX-License-Identifier: MIT */
#pragma once

#include "pm/base.h"

/* Writes the text to stderr without any change. */
void pm_self_print(const char *text);
/* Prints one line, unless PMSELF_QUIET is set. */
void pm_self_print_error(const struct pm_error *err);
