/* SPDX-License-Identifier: MIT */
/*
 * From the rings to what each record does.
 */
#pragma once

#include "session.h"

/* One round; @final: everything, the events are stopped. @err is set for what is not the
 * file's fault. */
int pm_rec_drain(struct pm_rec_session *session, bool final, struct pm_error *err);
