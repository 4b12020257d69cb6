/* SPDX-License-Identifier: MIT */
/*
 * The first line of the file: what was recorded, where and how.
 */
#pragma once

#include "session.h"

/* Call this once the engine is open. Returns 0 or a negative errno of the file or of
 * memory. */
int pm_rec_header_write(struct pm_rec_session *session);
