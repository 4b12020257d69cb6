/* SPDX-License-Identifier: MIT */
/*
 * At the end of a recording: names for all frames of the file, module by module.
 */
#pragma once

#include "session.h"

/* Writes a `symbol` line for each frame whose function is known. If the user requests an
 * end, stops early and returns success. Returns 0 or a negative errno of the file or of
 * memory. */
int pm_rec_symbols_write(struct pm_rec_session *session);
